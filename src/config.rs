//! What the command line and the environment say, as a checked, plain [`Config`]. Read once, under `main`.
//! Knows nothing of the kubeconfig, nor of what any cluster holds.

mod correct;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::cli::{
    self, Args, CaptureArgs, CheckArgs, Color, ConfigCheckArgs, ConfigVerb, DiffArgs, HistoryArgs, HistoryFormat,
    InstallArgs, ManArgs, Manifests, Screen, Shell, Shown, Verb, Where, Which,
};
use crate::complete::Question;
use crate::drift::finding::{Condition, Mode, ReleaseReport, Storage};
use crate::drift::name::{LONGEST_NAMESPACE, LONGEST_RELEASE, is_dns_label};
use crate::drift::selector::{Selector, SelectorError};
use crate::env::{Env, Host};
use crate::links::Place;
use crate::settings::{Settings, SettingsError};

pub(crate) use crate::cli::{Engine, Format, PlanFormat};
pub(crate) use correct::{ChartSource, Consent, Correct, Evidence, HelmPlaces};

/// Everything a run needs to know. Below `app` a function takes the part it needs.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) command: Command,
    pub(crate) scope: Scope,
    /// The desired state is in files; of `scope` then only one namespace counts.
    pub(crate) files: Option<Files>,
    pub(crate) target: Target,
    pub(crate) output: Output,
    pub(crate) engine: Engine,
    /// What the configuration file says.
    pub(crate) settings: Arc<Settings>,
    /// `--mode`; never [`Mode::Correct`] where nothing is changed.
    pub(crate) mode: Option<Mode>,
    /// Answers come from this capture; `target` is then of no use.
    pub(crate) from: Option<PathBuf>,
    pub(crate) verbosity: Verbosity,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    Check,
    /// The check, with [`Format::Diff`].
    Diff,
    /// Of the one release in scope.
    History,
    Capture {
        to: PathBuf,
        include_secrets: bool,
    },
    /// The file that was read is valid; what its rules cover is looked up unless `offline`.
    ConfigCheck {
        file: PathBuf,
        offline: bool,
    },
    Correct(Box<Correct>),
    Completion(Shell),
    Manual(Manual),
    InstallKubectl(Place),
    /// What may stand in the place of the last word.
    Complete(Question),
    Version,
}

/// Which pages, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Manual {
    /// To stdout: the program's, `drift`, or a command's, `drift-diff`.
    Page(String),
    /// All, as files of this directory.
    All(PathBuf),
}

/// Which releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) namespaces: Namespaces,
    /// Checked names, each once, in the order typed; none: all of the namespaces.
    pub(crate) releases: Vec<String>,
    /// From 1; only with exactly one release.
    pub(crate) revision: Option<u64>,
    /// On the newest record's labels, after it is chosen.
    pub(crate) selector: Option<Selector>,
    /// [`Storage::Files`] with [`Config::files`] only, and never [`Storage::Sql`].
    pub(crate) storage: Storage,
}

/// What `-f` names: each argument once, in the order typed; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) sources: Vec<Source>,
    pub(crate) recursive: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    /// A file or a directory.
    Path(PathBuf),
}

/// As it was typed.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("-"),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Namespaces {
    All,
    /// `None`: the kubeconfig context's, else the service account's, else `default`.
    One(Option<String>),
}

/// How the result is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) show_all: bool,
    /// Only releases that it keeps are shown, and only they decide about the exit code.
    pub(crate) status: Option<StatusFilter>,
    /// Whether to colour stdout, and stderr.
    pub(crate) color: bool,
    pub(crate) color_stderr: bool,
    /// Nothing but errors on stderr.
    pub(crate) quiet: bool,
    /// Whether progress may be shown: stderr is a terminal, and neither `--quiet`, `--no-progress` nor a log is in the way.
    pub(crate) progress: bool,
    /// Columns of the terminal, or as COLUMNS asks; `None`: neither, and nothing is cut.
    pub(crate) width: Option<usize>,
}

/// `--status`: one condition and the value it must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusFilter {
    Ready(Condition),
    Stalled(Condition),
}

impl StatusFilter {
    pub(crate) fn keeps(self, release: &ReleaseReport) -> bool {
        match self {
            Self::Ready(value) => release.ready == value,
            Self::Stalled(value) => release.stalled == value,
        }
    }
}

/// What the log says, on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    Quiet,
    /// What the user may act on.
    Normal,
    /// And each request.
    Requests,
    /// And each step.
    Everything,
}

/// Which cluster, and how to get there. Precedence (flag, then `HELM_*`, then kubeconfig, then in-cluster) is settled already
/// for what flags and environment say; the kubeconfig itself is read by `cluster/connect.rs`.
#[derive(Clone, Default)]
pub(crate) struct Target {
    /// Files to merge: `--kubeconfig`, else `KUBECONFIG` (a list), else `~/.kube/config`.
    pub(crate) kubeconfig: Vec<PathBuf>,
    /// Named by flag or `KUBECONFIG`: its absence is an error, never a reason to go in-cluster.
    pub(crate) kubeconfig_named: bool,
    pub(crate) context: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) as_user: Option<String>,
    pub(crate) as_groups: Vec<String>,
    pub(crate) certificate_authority: Option<PathBuf>,
    pub(crate) client_certificate: Option<PathBuf>,
    pub(crate) client_key: Option<PathBuf>,
    pub(crate) insecure_skip_tls_verify: bool,
    pub(crate) tls_server_name: Option<String>,
    /// `HTTPS_PROXY`/`https_proxy`, and the hosts of `NO_PROXY`/`no_proxy`.
    pub(crate) https_proxy: Option<String>,
    pub(crate) no_proxy: Vec<String>,
    /// Of one request, from sending it to its last byte; [`Duration::MAX`]: no limit.
    pub(crate) request_timeout: Duration,
    /// Requests in flight at most.
    pub(crate) parallel: usize,
    /// Where digests of OpenAPI documents and discovery are kept; `None`: nowhere (`--no-cache`, or no such directory).
    pub(crate) cache: Option<PathBuf>,
}

/// Without the token: nothing secret reaches a log by way of `{:?}`.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("kubeconfig", &self.kubeconfig)
            .field("context", &self.context)
            .field("server", &self.server)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("as_user", &self.as_user)
            .field("as_groups", &self.as_groups)
            .field("request_timeout", &self.request_timeout)
            .field("parallel", &self.parallel)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// Why there is no [`Config`]: all of them are errors of usage.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("a release name is empty; leave it out to check all releases of the namespace")]
    EmptyName,
    #[error("no release is called \"{name}\": Helm stores lower-case names only; did you mean \"{lower}\"?")]
    MixedCase { name: String, lower: String },
    #[error("no release is called \"{name}\": Helm allows at most {LONGEST_RELEASE} characters, these are {length}")]
    LongName { name: String, length: usize },
    #[error("\"{0}\" is not a release name; the namespace is named by -n: {1}")]
    Slash(String, String),
    #[error(
        "\"{0}\" is not a release name: lower-case letters, digits, \"-\" and \".\" only, a letter or digit at both ends"
    )]
    BadName(String),
    #[error(
        "\"{name}\" is not a namespace ({from}): lower-case letters, digits and \"-\" only, a letter or digit at both ends, at most 63"
    )]
    BadNamespace { name: String, from: &'static str },
    #[error("--revision needs the name of one release, not {0}")]
    Revision(&'static str),
    #[error("{0:?} is no chart: --chart names a directory, an archive, or a repository or OCI reference")]
    Chart(String),
    #[error("--evidence none leaves no place for --include-secrets; --discard-secret-values gives the old values up")]
    NoEvidenceForSecrets,
    #[error("drift correct goes back to the current revision; to another one leads `helm rollback NAME N`")]
    CorrectToRevision,
    #[error("unknown driver \"{driver}\" ({from}); there are secret and configmap")]
    UnknownDriver { driver: String, from: &'static str },
    #[error(
        "driver \"memory\" ({0}) keeps nothing after helm has ended, so there is nothing to read; name the one that is used by --storage-driver"
    )]
    MemoryDriver(&'static str),
    #[error(
        "driver \"sql\" ({0}) is not supported: only records that Helm keeps in the cluster can be read; name secret or configmap by --storage-driver"
    )]
    SqlDriver(&'static str),
    #[error("--selector \"{text}\"")]
    Selector { text: String, source: SelectorError },
    #[error("{0} is not UTF-8 text")]
    NotText(&'static str),
    #[error("there is no command {0:?}, and so no page of it")]
    NoSuchCommand(String),
    #[error("-f names no file; - is standard input")]
    NoFile,
    #[error("-f reads files: fetch it first, as in: curl -fsSL {0} | {1} -f -")]
    Url(String, String),
    #[error("configuration file {file} cannot be read: {why}")]
    SettingsFile { file: String, why: String },
    #[error("there is no configuration file: name one")]
    NoSettings,
    /// Two places in one: `FILE:LINE:COLUMN: what`, as editors understand it.
    #[error("{file}:{error}")]
    Settings { file: String, error: SettingsError },
    #[error("--mode correct changes the cluster, and this command never does; use {0} correct")]
    Correct(String),
}

impl Config {
    pub(crate) fn new(args: Args, env: &Env) -> Result<Self, ConfigError> {
        match args.verb {
            None => Self::of_check(args.check, env),
            Some(Verb::Check(check)) => Self::of_check(*check, env),
            Some(Verb::Diff(diff)) => Self::of_diff(*diff, env),
            Some(Verb::History(history)) => Self::of_history(*history, env),
            Some(Verb::Capture(capture)) => Self::of_capture(*capture, env),
            Some(Verb::Config(config)) => {
                let ConfigVerb::Check(check) = config.verb;
                Self::of_config_check(*check, env)
            }
            Some(Verb::Correct(correct)) => Self::of_correct(*correct, env),
            Some(Verb::Completion { shell }) => Ok(Self::without_cluster(Command::Completion(shell))),
            Some(Verb::Man(man)) => Ok(Self::without_cluster(Command::Manual(Manual::new(man)?))),
            Some(Verb::InstallKubectl(install)) => {
                Ok(Self::without_cluster(Command::InstallKubectl(place(install, env))))
            }
            Some(Verb::Complete { words }) => Ok(Self::of_completion(&words, env)),
            Some(Verb::Version) => Ok(Self::without_cluster(Command::Version)),
        }
    }

    fn of_check(args: CheckArgs, env: &Env) -> Result<Self, ConfigError> {
        let (scope, files) = scope_or_files(args.which, args.manifests, env)?;
        Ok(Self {
            command: Command::Check,
            scope,
            files,
            target: Target::new(args.target, env)?,
            output: Output::new(args.output, Some(&args.shown), &args.screen, env),
            engine: args.shown.engine,
            mode: mode(args.told.mode, env)?,
            settings: settings(args.told.config, env)?,
            from: args.replay.from,
            verbosity: Verbosity::new(&args.screen, env),
        })
    }

    fn of_diff(args: DiffArgs, env: &Env) -> Result<Self, ConfigError> {
        let (scope, files) = scope_or_files(args.which, args.manifests, env)?;
        Ok(Self {
            command: Command::Diff,
            scope,
            files,
            target: Target::new(args.target, env)?,
            output: Output::new(Format::Diff, Some(&args.shown), &args.screen, env),
            engine: args.shown.engine,
            mode: mode(args.told.mode, env)?,
            settings: settings(args.told.config, env)?,
            from: args.replay.from,
            verbosity: Verbosity::new(&args.screen, env),
        })
    }

    fn of_history(args: HistoryArgs, env: &Env) -> Result<Self, ConfigError> {
        let which = Which {
            releases: vec![args.release],
            namespace: args.namespace,
            all_namespaces: false,
            selector: None,
            revision: None,
            storage_driver: args.storage_driver,
        };
        let format = match args.output {
            HistoryFormat::Table => Format::Table,
            HistoryFormat::Json => Format::Json,
            HistoryFormat::Yaml => Format::Yaml,
        };
        Ok(Self {
            command: Command::History,
            scope: Scope::new(which, env)?,
            files: None,
            mode: mode(args.told.mode, env)?,
            settings: settings(args.told.config, env)?,
            target: Target::new(args.target, env)?,
            engine: Engine::Local,
            output: Output::new(format, None, &args.screen, env),
            from: args.replay.from,
            verbosity: Verbosity::new(&args.screen, env),
        })
    }

    fn of_capture(args: CaptureArgs, env: &Env) -> Result<Self, ConfigError> {
        Ok(Self {
            command: Command::Capture { to: args.to, include_secrets: args.include_secrets },
            scope: Scope::new(args.which, env)?,
            files: None,
            target: Target::new(args.target, env)?,
            output: Output::new(Format::Table, None, &args.screen, env),
            engine: Engine::Local,
            mode: mode(args.told.mode, env)?,
            settings: settings(args.told.config, env)?,
            from: None,
            verbosity: Verbosity::new(&args.screen, env),
        })
    }

    fn of_config_check(args: ConfigCheckArgs, env: &Env) -> Result<Self, ConfigError> {
        let file = some_path(args.file).or_else(|| default_file(env)).ok_or(ConfigError::NoSettings)?;
        let settings = read_settings(&file)?.ok_or_else(|| not_there(&file))?;
        Ok(Self {
            command: Command::ConfigCheck { file, offline: args.offline },
            files: None,
            scope: Scope {
                namespaces: namespaces(args.namespace.is_none(), args.namespace, env)?,
                releases: Vec::new(),
                revision: None,
                selector: None,
                storage: storage(args.storage_driver, env)?,
            },
            target: Target::new(args.target, env)?,
            output: Output::new(Format::Table, None, &args.screen, env),
            engine: Engine::Local,
            mode: None,
            settings: Arc::new(settings),
            from: args.replay.from,
            verbosity: Verbosity::new(&args.screen, env),
        })
    }

    /// Nobody is there to read an error: where the line so far is wrong, nothing is asked of a cluster.
    fn of_completion(words: &[OsString], env: &Env) -> Self {
        let mut question = Question::new(words);
        let argv = ["drift".into(), "check".into()].into_iter().chain(question.place.clone()).collect();
        let place = cli::parse(argv, "drift").ok().and_then(|args| Self::new(args, env).ok());
        let Some(mut config) = place else {
            question.ask = None;
            return Self::without_cluster(Command::Complete(question));
        };
        // The shell is waiting.
        config.target.request_timeout = config.target.request_timeout.min(Duration::from_secs(4));
        config.verbosity = Verbosity::Quiet;
        config.command = Command::Complete(question);
        config
    }

    /// For commands that only print: a wrong `HELM_DRIVER` is no reason not to tell the version.
    fn without_cluster(command: Command) -> Self {
        Self {
            command,
            scope: Scope {
                namespaces: Namespaces::One(None),
                releases: Vec::new(),
                revision: None,
                selector: None,
                storage: Storage::Secret,
            },
            files: None,
            target: Target::default(),
            output: Output {
                format: Format::Table,
                show_all: false,
                status: None,
                color: false,
                color_stderr: false,
                quiet: false,
                progress: false,
                width: None,
            },
            engine: Engine::Local,
            mode: None,
            settings: Arc::default(),
            from: None,
            verbosity: Verbosity::Normal,
        }
    }
}

impl Manual {
    fn new(args: ManArgs) -> Result<Self, ConfigError> {
        if let Some(directory) = args.to {
            return Ok(Self::All(directory));
        }
        match args.command {
            None => Ok(Self::Page("drift".to_owned())),
            Some(command) => {
                let definition = cli::definition("drift");
                match definition.find_subcommand(&command).filter(|verb| !verb.is_hide_set()) {
                    Some(verb) => Ok(Self::Page(format!("drift-{}", verb.get_name()))),
                    None => Err(ConfigError::NoSuchCommand(command)),
                }
            }
        }
    }
}

fn place(args: InstallArgs, env: &Env) -> Place {
    let path = env.get("PATH").map(|path| std::env::split_paths(path).filter(|entry| entry.is_absolute()).collect());
    Place {
        program: env.file.clone().unwrap_or_default(),
        to: args.to,
        path: path.unwrap_or_default(),
        home: env.home.clone(),
    }
}

/// Releases, or files and the namespace of what is in them: where Helm keeps its records is then of no interest.
fn scope_or_files(which: Which, manifests: Manifests, env: &Env) -> Result<(Scope, Option<Files>), ConfigError> {
    let Some(files) = Files::new(manifests, env)? else { return Ok((Scope::new(which, env)?, None)) };
    let scope = Scope {
        namespaces: namespaces(false, which.namespace, env)?,
        releases: Vec::new(),
        revision: None,
        selector: None,
        storage: Storage::Files,
    };
    Ok((scope, Some(files)))
}

impl Files {
    /// `None`: no `-f` was given.
    fn new(manifests: Manifests, env: &Env) -> Result<Option<Self>, ConfigError> {
        let mut sources = Vec::new();
        for path in manifests.filename {
            let source = match path.to_str() {
                Some("") => return Err(ConfigError::NoFile),
                Some("-") => Source::Stdin,
                Some(url) if url.starts_with("http://") || url.starts_with("https://") => {
                    return Err(ConfigError::Url(url.to_owned(), env.called()));
                }
                _ => Source::Path(path),
            };
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        Ok((!sources.is_empty()).then_some(Self { sources, recursive: manifests.recursive }))
    }
}

fn mode(flag: Option<crate::cli::Mode>, env: &Env) -> Result<Option<Mode>, ConfigError> {
    match flag {
        None => Ok(None),
        Some(crate::cli::Mode::Warn) => Ok(Some(Mode::Warn)),
        Some(crate::cli::Mode::Disabled) => Ok(Some(Mode::Disabled)),
        Some(crate::cli::Mode::Correct) => Err(ConfigError::Correct(env.called())),
    }
}

/// A file that is named must be there; the default one need not.
fn settings(flag: Option<PathBuf>, env: &Env) -> Result<Arc<Settings>, ConfigError> {
    let settings = match some_path(flag) {
        Some(file) => read_settings(&file)?.ok_or_else(|| not_there(&file))?,
        None => match default_file(env) {
            Some(file) => read_settings(&file)?.unwrap_or_default(),
            None => Settings::default(),
        },
    };
    Ok(Arc::new(settings))
}

/// Not below `HELM_CONFIG_HOME`: the plugin obeys the same file as the program itself.
fn default_file(env: &Env) -> Option<PathBuf> {
    env.config.as_deref().map(|directory| directory.join("helm-drift").join("config.yaml"))
}

/// `None`: there is no such file.
fn read_settings(file: &Path) -> Result<Option<Settings>, ConfigError> {
    let name = || file.display().to_string();
    let unreadable = |why: String| ConfigError::SettingsFile { file: name(), why };
    let bytes = match std::fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| unreadable(error.to_string()))?,
    };
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is no UTF-8 text".to_owned()))?;
    Settings::parse(&text).map(Some).map_err(|error| ConfigError::Settings { file: name(), error })
}

fn not_there(file: &Path) -> ConfigError {
    ConfigError::SettingsFile { file: file.display().to_string(), why: "there is no such file".to_owned() }
}

impl Scope {
    fn new(which: Which, env: &Env) -> Result<Self, ConfigError> {
        let mut releases: Vec<String> = Vec::new();
        for name in which.releases {
            check_release_name(&name, env)?;
            if !releases.contains(&name) {
                releases.push(name);
            }
        }
        match (which.revision, releases.len()) {
            (None, _) | (Some(_), 1) => {}
            (Some(_), 0) => return Err(ConfigError::Revision("none")),
            (Some(_), _) => return Err(ConfigError::Revision("several")),
        }
        let selector = match which.selector {
            None => None,
            Some(text) => match text.parse() {
                Ok(selector) => Some(selector),
                Err(source) => return Err(ConfigError::Selector { text, source }),
            },
        };
        Ok(Self {
            namespaces: namespaces(which.all_namespaces, which.namespace, env)?,
            releases,
            revision: which.revision,
            selector,
            storage: storage(which.storage_driver, env)?,
        })
    }
}

/// Helm's rule for names, told before the cluster answers "not found" (helm/helm#5168, #9339).
fn check_release_name(name: &str, env: &Env) -> Result<(), ConfigError> {
    let is_label = |label: &str| is_dns_label(label);
    if name.is_empty() {
        return Err(ConfigError::EmptyName);
    }
    if let Some((namespace, release)) = name.split_once('/')
        && is_dns_label(namespace)
        && release.split('.').all(is_label)
    {
        return Err(ConfigError::Slash(name.to_owned(), format!("{} {release} -n {namespace}", env.called())));
    }
    let lower = name.to_lowercase();
    if !lower.split('.').all(is_label) {
        return Err(ConfigError::BadName(name.to_owned()));
    }
    if name.len() > LONGEST_RELEASE {
        return Err(ConfigError::LongName { name: name.to_owned(), length: name.len() });
    }
    if lower != name {
        return Err(ConfigError::MixedCase { name: name.to_owned(), lower });
    }
    Ok(())
}

/// `--all-namespaces` wins over `--namespace`, as in helm and kubectl: `helm` sets `HELM_NAMESPACE` for a plugin in any case.
fn namespaces(all: bool, flag: Option<String>, env: &Env) -> Result<Namespaces, ConfigError> {
    if all {
        return Ok(Namespaces::All);
    }
    let (name, from) = match flag.filter(|name| !name.is_empty()) {
        Some(name) => (Some(name), "--namespace"),
        None => (helm_text(env, "HELM_NAMESPACE")?, "HELM_NAMESPACE"),
    };
    match name {
        Some(name) if name.len() > LONGEST_NAMESPACE || !is_dns_label(&name) => {
            Err(ConfigError::BadNamespace { name, from })
        }
        name => Ok(Namespaces::One(name)),
    }
}

/// Helm's own table, compared as written (helm.md §1.1).
fn storage(flag: Option<String>, env: &Env) -> Result<Storage, ConfigError> {
    let (driver, from) = match flag.filter(|driver| !driver.is_empty()) {
        Some(driver) => (driver, "--storage-driver"),
        None => (text(env, "HELM_DRIVER")?.unwrap_or_default(), "HELM_DRIVER"),
    };
    match driver.as_str() {
        "" | "secret" | "secrets" => Ok(Storage::Secret),
        "configmap" | "configmaps" => Ok(Storage::ConfigMap),
        "memory" => Err(ConfigError::MemoryDriver(from)),
        "sql" => Err(ConfigError::SqlDriver(from)),
        _ => Err(ConfigError::UnknownDriver { driver, from }),
    }
}

impl Target {
    fn new(flags: Where, env: &Env) -> Result<Self, ConfigError> {
        let mut target = Self {
            kubeconfig: Vec::new(),
            kubeconfig_named: true,
            context: or_helm(flags.context, env, "HELM_KUBECONTEXT")?,
            server: or_helm(flags.server, env, "HELM_KUBEAPISERVER")?,
            token: or_helm(flags.token, env, "HELM_KUBETOKEN")?,
            as_user: or_helm(flags.as_user, env, "HELM_KUBEASUSER")?,
            as_groups: flags.as_group.into_iter().filter(|group| !group.is_empty()).collect(),
            certificate_authority: path_or_helm(flags.certificate_authority, env, "HELM_KUBECAFILE"),
            client_certificate: some_path(flags.client_certificate),
            client_key: some_path(flags.client_key),
            insecure_skip_tls_verify: match flags.insecure_skip_tls_verify {
                Some(typed) => typed,
                None => is_true(helm_text(env, "HELM_KUBEINSECURE_SKIP_TLS_VERIFY")?.as_deref()),
            },
            tls_server_name: or_helm(flags.tls_server_name, env, "HELM_KUBETLS_SERVER_NAME")?,
            https_proxy: proxy(env, ["HTTPS_PROXY", "https_proxy"])?,
            no_proxy: list(proxy(env, ["NO_PROXY", "no_proxy"])?),
            request_timeout: flags.request_timeout,
            parallel: usize::from(flags.parallel),
            cache: if flags.no_cache { None } else { cache(env) },
        };
        if target.as_groups.is_empty() {
            target.as_groups = list(helm_text(env, "HELM_KUBEASGROUPS")?);
        }
        if let Some(file) = some_path(flags.kubeconfig) {
            target.kubeconfig.push(file);
        } else if let Some(files) = env.get("KUBECONFIG") {
            target.kubeconfig = std::env::split_paths(files).filter(|file| !file.as_os_str().is_empty()).collect();
        }
        if target.kubeconfig.is_empty() {
            target.kubeconfig_named = false;
            target.kubeconfig.extend(env.home.as_deref().map(|home| home.join(".kube").join("config")));
        }
        Ok(target)
    }
}

/// `HELM_CACHE_HOME` where Helm's variables count, so that the plugin leaves its files beside Helm's.
fn cache(env: &Env) -> Option<PathBuf> {
    let of_helm = helm_value(env, "HELM_CACHE_HOME").map(Path::new).filter(|directory| directory.is_absolute());
    of_helm.or(env.cache.as_deref()).map(|directory| directory.join("helm-drift"))
}

fn some_path(flag: Option<PathBuf>) -> Option<PathBuf> {
    flag.filter(|path| !path.as_os_str().is_empty())
}

fn path_or_helm(flag: Option<PathBuf>, env: &Env, name: &str) -> Option<PathBuf> {
    some_path(flag).or_else(|| helm_value(env, name).map(PathBuf::from))
}

fn or_helm(flag: Option<String>, env: &Env, name: &'static str) -> Result<Option<String>, ConfigError> {
    match flag.filter(|value| !value.is_empty()) {
        Some(value) => Ok(Some(value)),
        None => helm_text(env, name),
    }
}

/// What Helm's variables say counts for Helm's plugin and for `drift` itself, never under kubectl (design.md §3).
fn helm_value<'a>(env: &'a Env, name: &str) -> Option<&'a OsStr> {
    match env.host() {
        Host::Shell | Host::Helm(_) => env.get(name),
        Host::Kubectl(_) => None,
    }
}

fn helm_text(env: &Env, name: &'static str) -> Result<Option<String>, ConfigError> {
    as_text(helm_value(env, name), name)
}

fn text(env: &Env, name: &'static str) -> Result<Option<String>, ConfigError> {
    as_text(env.get(name), name)
}

fn as_text(value: Option<&OsStr>, name: &'static str) -> Result<Option<String>, ConfigError> {
    value.map(|value| value.to_str().map(str::to_owned).ok_or(ConfigError::NotText(name))).transpose()
}

/// The first of two spellings that is set, as Go reads them (golang.org/x/net `http/httpproxy`).
fn proxy(env: &Env, names: [&'static str; 2]) -> Result<Option<String>, ConfigError> {
    for name in names {
        if let Some(value) = text(env, name)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Comma-separated, blanks and empty items dropped.
fn list(text: Option<String>) -> Vec<String> {
    let text = text.unwrap_or_default();
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Go's `strconv.ParseBool`; what it refuses is false, so that a typing error never turns verification off.
fn is_true(text: Option<&str>) -> bool {
    matches!(text, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

impl Output {
    fn new(format: Format, shown: Option<&Shown>, screen: &Screen, env: &Env) -> Self {
        let verbosity = Verbosity::new(screen, env);
        Self {
            format,
            show_all: shown.is_some_and(|shown| shown.show_all),
            status: shown.and_then(|shown| shown.status.as_deref()).and_then(status_filter),
            color: wants_color(screen.color, env, env.stdout_is_terminal),
            color_stderr: wants_color(screen.color, env, env.stderr_is_terminal),
            quiet: screen.quiet,
            progress: env.stderr_is_terminal && !screen.no_progress && verbosity == Verbosity::Normal,
            width: env.width.or_else(|| columns(env)),
        }
    }
}

/// What ps(1) and help take COLUMNS for, too: the width where stdout is no terminal.
fn columns(env: &Env) -> Option<usize> {
    env.get("COLUMNS")?.to_str()?.parse().ok().filter(|columns| *columns > 0)
}

/// The command line takes [`crate::cli::STATUS`] only.
fn status_filter(text: &str) -> Option<StatusFilter> {
    let (condition, value) = text.split_once('=')?;
    let value = match value.to_ascii_lowercase().as_str() {
        "true" => Condition::True,
        "false" => Condition::False,
        _ => Condition::Unknown,
    };
    Some(if condition.eq_ignore_ascii_case("ready") {
        StatusFilter::Ready(value)
    } else {
        StatusFilter::Stalled(value)
    })
}

/// Flag, then NO_COLOR (no-color.org) before HELM_COLOR as in Helm 4 (`pkg/cli/environment.go`), then CLICOLOR_FORCE and
/// CLICOLOR (bixense.com/clicolors), then whether there is a terminal that can.
fn wants_color(flag: Color, env: &Env, is_terminal: bool) -> bool {
    let is = |name: &str, value: &str| env.get(name).is_some_and(|set| set.eq_ignore_ascii_case(value));
    match flag {
        Color::Always => true,
        Color::Never => false,
        Color::Auto if env.get("NO_COLOR").is_some() || is("HELM_COLOR", "never") => false,
        Color::Auto if is("HELM_COLOR", "always") => true,
        Color::Auto if env.get("CLICOLOR_FORCE").is_some_and(|force| force != "0") => true,
        Color::Auto => is_terminal && !is("CLICOLOR", "0") && !is("TERM", "dumb"),
    }
}

/// Whether `--help` is coloured; it is asked for before any flag is understood.
pub(crate) fn colors_help(env: &Env) -> bool {
    wants_color(Color::Auto, env, env.stdout_is_terminal)
}

impl Verbosity {
    fn new(screen: &Screen, env: &Env) -> Self {
        let is_debug = screen.debug || is_true(env.get("HELM_DEBUG").and_then(OsStr::to_str));
        match screen.verbose.iter().copied().fold(0, u8::saturating_add) {
            _ if screen.quiet => Self::Quiet,
            0 if !is_debug => Self::Normal,
            0 | 1 => Self::Requests,
            _ => Self::Everything,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(program: &str, variables: &[(&'static str, &str)]) -> Env {
        Env {
            program: program.to_owned(),
            variables: variables.iter().map(|(name, value)| (*name, value.into())).collect(),
            home: Some("/home/me".into()),
            cache: Some("/home/me/.cache".into()),
            ..Env::default()
        }
    }

    fn config_in(env: &Env, line: &str) -> Result<Config, ConfigError> {
        let argv = std::iter::once("drift").chain(line.split_whitespace()).map(Into::into).collect();
        let args = crate::cli::parse(argv, &env.called()).unwrap_or_else(|error| panic!("{line}: {error:?}"));
        Config::new(args, env)
    }

    fn config(line: &str) -> Result<Config, ConfigError> {
        config_in(&env("drift", &[]), line)
    }

    fn refused(env: &Env, line: &str) -> String {
        format!("{:#}", anyhow::Error::from(config_in(env, line).expect_err(line)))
    }

    const HELM: (&str, &str) = ("HELM_PLUGIN_NAME", "drift");

    #[test]
    fn the_namespace_is_the_flags_then_helms_then_the_contexts() {
        let one = |name: &str| Namespaces::One(Some(name.to_owned()));
        let set = ("HELM_NAMESPACE", "env");
        for (program, variables, line, namespaces) in [
            ("drift", &[][..], "", Namespaces::One(None)),
            ("drift", &[], "-n flag", one("flag")),
            ("drift", &[set], "", one("env")),
            ("drift", &[set], "-n flag", one("flag")),
            ("drift", &[set], "-A", Namespaces::All),
            ("drift", &[set], "-A -n flag", Namespaces::All),
            ("drift", &[("HELM_NAMESPACE", "")], "", Namespaces::One(None)),
            ("drift", &[set], "--namespace=", one("env")),
            ("drift", &[HELM, set], "", one("env")),
            ("kubectl-drift", &[set], "", Namespaces::One(None)),
            ("kubectl-drift", &[HELM, set], "", Namespaces::One(None)),
            ("kubectl-drift", &[set], "-n flag", one("flag")),
        ] {
            let scope = config_in(&env(program, variables), line).expect(line).scope;
            assert_eq!(scope.namespaces, namespaces, "{program} {variables:?} {line}");
        }
    }

    #[test]
    fn the_cluster_is_the_flags_then_helms() {
        let variables = [
            ("HELM_KUBECONTEXT", "ec"),
            ("HELM_KUBEAPISERVER", "https://e"),
            ("HELM_KUBETOKEN", "et"),
            ("HELM_KUBEASUSER", "eu"),
            ("HELM_KUBEASGROUPS", "eg, eh,"),
            ("HELM_KUBECAFILE", "/e/ca"),
            ("HELM_KUBEINSECURE_SKIP_TLS_VERIFY", "true"),
            ("HELM_KUBETLS_SERVER_NAME", "en"),
        ];
        let seen = |program: &str, line: &str| {
            let target = config_in(&env(program, &variables), line).expect(line).target;
            let texts = [target.context, target.server, target.token, target.as_user, target.tls_server_name];
            let texts = texts.map(|text| text.unwrap_or_else(|| "-".to_owned())).join(" ");
            let ca = target.certificate_authority.unwrap_or_default();
            format!("{texts} {} {} {}", target.as_groups.join("+"), ca.display(), target.insecure_skip_tls_verify)
        };
        assert_eq!(seen("drift", ""), "ec https://e et eu en eg+eh /e/ca true");
        assert_eq!(seen("kubectl-drift", ""), "- - - - -   false");
        let flags = "--context c --server https://s --token t --as u --as-group a,b --certificate-authority /f/ca \
                     --insecure-skip-tls-verify=false --tls-server-name n";
        for program in ["drift", "kubectl-drift"] {
            assert_eq!(seen(program, flags), "c https://s t u n a,b /f/ca false");
        }
    }

    #[test]
    fn verification_is_off_only_when_somebody_says_so_clearly() {
        for (value, off) in [("1", true), ("T", true), ("true", true), ("false", false), ("yes", false), ("", false)] {
            let env = env("drift", &[("HELM_KUBEINSECURE_SKIP_TLS_VERIFY", value)]);
            assert_eq!(config_in(&env, "").expect("").target.insecure_skip_tls_verify, off, "{value}");
        }
    }

    #[test]
    fn the_kubeconfig_is_the_flags_then_the_variables_then_homes() {
        let set = ("KUBECONFIG", "/a:/b::");
        for (variables, line, files, named) in [
            (&[][..], "", &["/home/me/.kube/config"][..], false),
            (&[set], "", &["/a", "/b"], true),
            (&[set], "--kubeconfig /c", &["/c"], true),
            (&[("KUBECONFIG", "")], "", &["/home/me/.kube/config"], false),
            (&[("KUBECONFIG", ":")], "", &["/home/me/.kube/config"], false),
        ] {
            let target = config_in(&env("kubectl-drift", variables), line).expect(line).target;
            assert_eq!(target.kubeconfig, files.iter().map(PathBuf::from).collect::<Vec<_>>(), "{variables:?} {line}");
            assert_eq!(target.kubeconfig_named, named, "{variables:?} {line}");
        }
        assert!(config_in(&Env::default(), "").expect("").target.kubeconfig.is_empty());
    }

    #[test]
    fn requests_go_as_told() {
        let variables = [("HTTPS_PROXY", "http://p:1"), ("https_proxy", "http://q:2"), ("no_proxy", "a, .b,")];
        let target = config_in(&env("drift", &variables), "--parallel 3 --request-timeout 5").expect("").target;
        assert_eq!(target.https_proxy.as_deref(), Some("http://p:1"));
        assert_eq!(target.no_proxy, ["a", ".b"]);
        assert_eq!((target.parallel, target.request_timeout), (3, Duration::from_secs(5)));
        let plain = config("").expect("").target;
        assert_eq!((plain.parallel, plain.request_timeout), (8, Duration::from_secs(30)));
    }

    #[test]
    fn digests_are_kept_beside_helms_where_helm_says_so() {
        let helm = ("HELM_CACHE_HOME", "/helm");
        for (program, variables, line, directory) in [
            ("drift", &[][..], "", Some("/home/me/.cache/helm-drift")),
            ("drift", &[], "--no-cache", None),
            ("drift", &[HELM, helm], "", Some("/helm/helm-drift")),
            ("kubectl-drift", &[helm], "", Some("/home/me/.cache/helm-drift")),
            ("drift", &[("HELM_CACHE_HOME", "here")], "", Some("/home/me/.cache/helm-drift")),
        ] {
            let cache = config_in(&env(program, variables), line).expect(line).target.cache;
            assert_eq!(cache, directory.map(PathBuf::from), "{program} {variables:?} {line}");
        }
    }

    #[test]
    fn records_are_where_helms_table_says() {
        for (driver, storage) in [
            ("", Storage::Secret),
            ("secret", Storage::Secret),
            ("secrets", Storage::Secret),
            ("configmap", Storage::ConfigMap),
            ("configmaps", Storage::ConfigMap),
        ] {
            for program in ["drift", "kubectl-drift"] {
                let env = env(program, &[("HELM_DRIVER", driver)]);
                assert_eq!(config_in(&env, "").expect(driver).scope.storage, storage, "{driver}");
            }
            let env = env("drift", &[("HELM_DRIVER", "sql")]);
            let flag = format!("--storage-driver={}", if driver.is_empty() { "secret" } else { driver });
            assert_eq!(config_in(&env, &flag).expect(driver).scope.storage, storage, "{driver}");
        }
        for (driver, start) in [
            ("sql", "driver \"sql\" (HELM_DRIVER) is not supported"),
            ("memory", "driver \"memory\" (HELM_DRIVER) keeps nothing"),
            ("Secret", "unknown driver \"Secret\" (HELM_DRIVER)"),
        ] {
            let env = env("drift", &[("HELM_DRIVER", driver)]);
            assert!(refused(&env, "").starts_with(start), "{driver}");
            assert!(config_in(&env, "version").is_ok(), "the version is told whatever HELM_DRIVER says");
        }
    }

    #[test]
    fn names_are_checked_before_the_cluster_is_asked() {
        let long = "a".repeat(54);
        for (name, message) in [
            ("nucleus", None),
            ("a.b-c.9", None),
            ("7", None),
            (
                "Nucleus",
                Some("no release is called \"Nucleus\": Helm stores lower-case names only; did you mean \"nucleus\"?"),
            ),
            (
                "prod/nucleus",
                Some("\"prod/nucleus\" is not a release name; the namespace is named by -n: drift nucleus -n prod"),
            ),
            ("a_b", Some("\"a_b\" is not a release name: ")),
            ("a.", Some("\"a.\" is not a release name: ")),
            (".a", Some("\".a\" is not a release name: ")),
            ("a..b", Some("\"a..b\" is not a release name: ")),
            ("./chart", Some("\"./chart\" is not a release name: ")),
            ("ünit", Some("\"ünit\" is not a release name: ")),
            (&long, Some("no release is called \"aaa")),
        ] {
            match (config(name), message) {
                (Ok(config), None) => assert_eq!(config.scope.releases, [name]),
                (Err(error), Some(message)) => assert!(error.to_string().starts_with(message), "{error}"),
                (result, _) => panic!("{name}: {result:?}"),
            }
        }
        assert_eq!(config("web nucleus web").expect("").scope.releases, ["web", "nucleus"]);
        assert!(config(&"a".repeat(53)).is_ok());
        let empty =
            crate::cli::parse(vec!["drift".into(), String::new().into()], "drift").expect("an empty word is a word");
        assert_eq!(Config::new(empty, &Env::default()).expect_err("no name"), ConfigError::EmptyName);
    }

    #[test]
    fn scopes_that_make_no_sense_are_refused() {
        for (line, message) in [
            ("-n Prod", "\"Prod\" is not a namespace (--namespace): "),
            ("-n a.b", "\"a.b\" is not a namespace (--namespace): "),
            ("--revision 3", "--revision needs the name of one release, not none"),
            ("a b --revision 3", "--revision needs the name of one release, not several"),
            ("-l app=web,", "--selector \"app=web,\": a label key is missing at the end"),
        ] {
            assert!(refused(&env("drift", &[]), line).starts_with(message), "{line}");
        }
        assert_eq!(config("a a --revision 3").expect("").scope.revision, Some(3));
        assert!(refused(&env("drift", &[("HELM_NAMESPACE", "Prod")]), "").contains("(HELM_NAMESPACE)"));
    }

    #[test]
    fn colour_is_for_terminals_unless_told_otherwise() {
        let (no, yes) = (("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"));
        for (variables, line, on_terminal, in_pipe) in [
            (&[][..], "", true, false),
            (&[], "--color always", true, true),
            (&[], "--color never", false, false),
            (&[no], "", false, false),
            (&[("NO_COLOR", "")], "", true, false),
            (&[no, yes], "", false, false),
            (&[no], "--color always", true, true),
            (&[no], "--color auto", false, false),
            (&[yes], "", true, true),
            (&[("CLICOLOR_FORCE", "0")], "", true, false),
            (&[("CLICOLOR", "0")], "", false, false),
            (&[("CLICOLOR", "0"), yes], "", true, true),
            (&[("HELM_COLOR", "always")], "", true, true),
            (&[("HELM_COLOR", "Never")], "", false, false),
            (&[("HELM_COLOR", "auto")], "", true, false),
            (&[("HELM_COLOR", "always"), no], "", false, false),
            (&[("HELM_COLOR", "never")], "--color always", true, true),
            (&[("TERM", "dumb")], "", false, false),
        ] {
            let mut env = env("drift", variables);
            assert_eq!(config_in(&env, line).expect(line).output.color, in_pipe, "pipe: {variables:?} {line}");
            env.stdout_is_terminal = true;
            assert_eq!(config_in(&env, line).expect(line).output.color, on_terminal, "terminal: {variables:?} {line}");
        }
    }

    #[test]
    fn progress_and_log_do_not_meet() {
        for (variables, line, verbosity, progress) in [
            (&[][..], "", Verbosity::Normal, true),
            (&[], "--no-progress", Verbosity::Normal, false),
            (&[], "-q", Verbosity::Quiet, false),
            (&[], "-v", Verbosity::Requests, false),
            (&[], "-vv", Verbosity::Everything, false),
            (&[], "-v -v", Verbosity::Everything, false),
            (&[], "-v=0", Verbosity::Normal, true),
            (&[], "-v=6", Verbosity::Everything, false),
            (&[], "--v=99", Verbosity::Everything, false),
            (&[], "--debug", Verbosity::Requests, false),
            (&[("HELM_DEBUG", "true")], "", Verbosity::Requests, false),
            (&[("HELM_DEBUG", "false")], "", Verbosity::Normal, true),
            (&[("HELM_DEBUG", "true")], "-q", Verbosity::Quiet, false),
        ] {
            let mut env = env("drift", variables);
            assert!(!config_in(&env, line).expect(line).output.progress, "no terminal: {line}");
            env.stderr_is_terminal = true;
            let config = config_in(&env, line).expect(line);
            assert_eq!((config.verbosity, config.output.progress), (verbosity, progress), "{variables:?} {line}");
        }
    }

    #[test]
    fn commands_carry_what_is_theirs() {
        let capture = config("capture web --to f --include-secrets").expect("");
        assert_eq!(capture.command, Command::Capture { to: "f".into(), include_secrets: true });
        let diff = config("diff web --from f --show-all").expect("");
        assert_eq!((diff.command, diff.output.format, diff.output.show_all), (Command::Diff, Format::Diff, true));
        assert_eq!(diff.from, Some("f".into()));
        assert_eq!(config("-o wide").expect("").output.format, Format::Wide);
        assert_eq!(config("completion fish").expect("").command, Command::Completion(Shell::Fish));
        for (line, filter) in [
            ("--status ready=false", StatusFilter::Ready(Condition::False)),
            ("--status Ready=Unknown", StatusFilter::Ready(Condition::Unknown)),
            ("--status stalled=true", StatusFilter::Stalled(Condition::True)),
        ] {
            assert_eq!(config(line).expect(line).output.status, Some(filter));
        }
    }

    /// A directory of this test alone.
    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("helm-drift-{name}-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("helm-drift")).unwrap();
        directory
    }

    #[test]
    fn the_configuration_file_is_the_named_one_else_the_default_one() {
        let directory = scratch("settings");
        let own = directory.join("own.yaml");
        std::fs::write(&own, "mode: disabled\n").unwrap();
        let mut env = env("drift", &[("HELM_CONFIG_HOME", "/elsewhere")]);
        let mode = |env: &Env, line: &str| config_in(env, line).map(|config| config.settings.mode);
        assert_eq!(mode(&env, ""), Ok(Mode::Warn), "no directory");
        env.config = Some(directory.clone());
        assert_eq!(mode(&env, ""), Ok(Mode::Warn), "no file");
        let named = format!("--config {}", own.display());
        std::fs::write(directory.join("helm-drift").join("config.yaml"), "mode: correct\n").unwrap();
        for line in ["", "diff", "capture --to f", "config check"] {
            assert_eq!(mode(&env, line), Ok(Mode::Correct), "{line}");
        }
        for line in [named.clone(), format!("diff {named}"), format!("config check {}", own.display())] {
            assert_eq!(mode(&env, &line), Ok(Mode::Disabled), "{line}");
        }
        std::fs::write(&own, "mode: disabled\nmodes: warn\n").unwrap();
        let wrong = refused(&env, &named);
        assert!(wrong.starts_with(&format!("{}:2:1: unknown key `modes`", own.display())), "{wrong}");
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(mode(&env, ""), Ok(Mode::Warn), "gone");
        for line in [named.clone(), format!("config check {}", own.display())] {
            assert!(refused(&env, &line).ends_with("own.yaml cannot be read: there is no such file"), "{line}");
        }
        // What asks no cluster needs no configuration.
        assert!(config_in(&env, "version").is_ok());
    }

    #[test]
    fn correction_is_a_command_and_no_mode_of_a_check() {
        assert_eq!(config("--mode disabled").unwrap().mode, Some(Mode::Disabled));
        assert_eq!(config("").unwrap().mode, None);
        for (program, line) in [
            ("drift", "--mode correct"),
            ("drift", "diff web --mode=correct"),
            ("drift", "capture --to f --mode correct"),
        ] {
            let text = refused(&env(program, &[]), line);
            assert_eq!(text, "--mode correct changes the cluster, and this command never does; use drift correct");
        }
        let text = refused(&env("kubectl-drift", &[]), "--mode correct");
        assert!(text.ends_with("use kubectl drift correct"), "{text}");
    }

    #[test]
    fn a_token_is_in_no_debug_text() {
        let config = config("--token hunter2").expect("");
        assert_eq!(config.target.token.as_deref(), Some("hunter2"));
        assert!(!format!("{config:?}").contains("hunter2"));
    }
    #[test]
    fn files_stand_in_for_releases() {
        let files = |line: &str| config(line).unwrap().files;
        let path = |text: &str| Source::Path(text.into());
        assert_eq!(files("nucleus"), None);
        assert_eq!(
            files("-f a.yaml --filename clusters/prod -f - -f a.yaml -R"),
            Some(Files { sources: vec![path("a.yaml"), path("clusters/prod"), Source::Stdin], recursive: true })
        );
        for line in ["diff -f a.yaml", "-f a.yaml diff", "check -f=a.yaml"] {
            assert_eq!(files(line), Some(Files { sources: vec![path("a.yaml")], recursive: false }), "{line}");
        }
        // Where Helm keeps its records does not matter to files.
        let sql = env("drift", &[("HELM_DRIVER", "sql"), HELM, ("HELM_NAMESPACE", "prod")]);
        let config = config_in(&sql, "-f a.yaml").unwrap();
        assert_eq!(config.scope.namespaces, Namespaces::One(Some("prod".into())));
        assert!(
            refused(&env("drift", &[]), "-f https://x/y.yaml").contains("curl -fsSL https://x/y.yaml | drift -f -")
        );
    }
}
