//! Runs the helm binary, which changes the cluster: argv in, typed outcome out. Knows nothing of why.
//!
//! helm is told everything by its arguments, but for the token, which stands in its environment: anybody can read arguments. Values never
//! pass through here. It runs in a process group of its own: a Ctrl-C reaches it once, from us, and then it is waited for, as a helm that
//! is killed leaves a release that nobody can upgrade (helm/helm#8040).

mod chart_directory;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use tracing::{debug, warn};

use crate::config::{ChartSource, HelmPlaces, Target};
use crate::drift::finding::{ApplyMethod, Storage};
use crate::drift::plan::HelmVersion;
use crate::drift::release::ReleaseKey;
use crate::interrupt::{Interrupt, Interrupts};

pub(crate) use chart_directory::ChartDirectory;

/// The oldest Helm that can render an upgrade against the cluster without making one (`--dry-run=server`).
const OLDEST: HelmVersion = HelmVersion { major: 3, minor: 13, patch: 0 };
const NEWEST_MAJOR: u64 = 4;

/// Helm's variables that say where and as whom, or that it runs a plugin: none of them is meant for this run.
const FORGOTTEN: [&str; 13] = [
    "HELM_DEBUG",
    "HELM_KUBEAPISERVER",
    "HELM_KUBEASGROUPS",
    "HELM_KUBEASUSER",
    "HELM_KUBECAFILE",
    "HELM_KUBECONTEXT",
    "HELM_KUBEINSECURE_SKIP_TLS_VERIFY",
    "HELM_KUBETLS_SERVER_NAME",
    "HELM_KUBETOKEN",
    "HELM_NAMESPACE",
    "HELM_PLUGIN_DIR",
    "HELM_PLUGIN_NAME",
    "HELM_DRIVER",
];

/// Why there is no helm to run. Each names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HelmError {
    #[error("no helm is found: install it, or name it by HELM_BIN")]
    NotFound,
    #[error("{program} is no helm that runs ({why}): name another by HELM_BIN")]
    Unusable { program: String, why: String },
    #[error("{program} is Helm {version}; Helm 3.13 or newer is needed: name another by HELM_BIN")]
    TooOld { program: String, version: HelmVersion },
    #[error("{program} is Helm {version}, which this program does not know: name a Helm 3 or 4 by HELM_BIN")]
    Unknown { program: String, version: HelmVersion },
    #[error("helm takes no client certificate by its arguments: put it into a kubeconfig")]
    ClientCertificate,
}

/// How a run of helm ended.
#[derive(PartialEq, Eq)]
pub(crate) enum Ended {
    /// What it printed; of a dry run that is Secrets too.
    Done(Vec<u8>),
    /// What it complained of, in one line; what a chart says may hold secrets.
    Failed(String),
    /// By a signal that nobody can handle; the release is left as it was at that moment.
    Killed(i32),
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(printed) => f.debug_tuple("Done").field(&printed.len()).finish(),
            Self::Failed(said) => f.debug_tuple("Failed").field(said).finish(),
            Self::Killed(signal) => f.debug_tuple("Killed").field(signal).finish(),
        }
    }
}

/// A chart to upgrade to.
pub(crate) enum Chart<'a> {
    Named(&'a ChartSource),
    /// From the record, in a directory that goes with this.
    Rebuilt(ChartDirectory),
}

/// A helm that runs, and how it finds the cluster.
#[derive(Clone)]
pub(crate) struct Helm {
    program: PathBuf,
    pub(crate) version: HelmVersion,
    arguments: Vec<OsString>,
    /// Holds the token.
    environment: Vec<(&'static str, OsString)>,
}

impl Helm {
    /// Looks for a helm and asks it for its version. Blocks meanwhile.
    pub(crate) fn find(places: &HelmPlaces, target: &Target, storage: Storage) -> Result<Self, HelmError> {
        if target.client_certificate.is_some() || target.client_key.is_some() {
            return Err(HelmError::ClientCertificate);
        }
        let named = places.named.as_deref().and_then(|named| look_up(named, &places.path));
        let on_path = look_up(Path::new("helm"), &places.path);
        let mut problem = HelmError::NotFound;
        for program in named.into_iter().chain(on_path) {
            match version(&program) {
                Ok(version) => {
                    let (arguments, environment) = login(target, storage);
                    return Ok(Self { program, version, arguments, environment });
                }
                Err(error) if problem == HelmError::NotFound => problem = error,
                Err(_) => {}
            }
        }
        Err(problem)
    }

    /// Renders an upgrade without making one; what is printed is the release in JSON.
    pub(crate) async fn render(&self, release: &Upgrade<'_>, interrupts: &Interrupts) -> Ended {
        let mut words = self.upgrade_words(release);
        words.extend(["--dry-run=server", "--output=json"].map(OsString::from));
        self.run(words, release.key, true, interrupts).await
    }

    /// Upgrades atomically: as it was, should anything fail.
    pub(crate) async fn upgrade(&self, release: &Upgrade<'_>, interrupts: &Interrupts) -> Ended {
        let mut words = self.upgrade_words(release);
        words.extend(["--description", "drift correction"].map(OsString::from));
        if self.version.major == 3 {
            words.extend(["--atomic", "--wait"].map(OsString::from));
        } else {
            words.extend(["--rollback-on-failure", "--wait=legacy"].map(OsString::from));
        }
        self.run(words, release.key, false, interrupts).await
    }

    /// Rolls back to a revision, be it the current one.
    pub(crate) async fn rollback(
        &self,
        key: &ReleaseKey,
        revision: u64,
        apply_method: ApplyMethod,
        timeout: Duration,
        interrupts: &Interrupts,
    ) -> Ended {
        let mut words: Vec<OsString> =
            ["rollback".to_owned(), key.name.clone(), revision.to_string(), "--no-hooks".to_owned()]
                .map(OsString::from)
                .to_vec();
        words.push(timeout_flag(timeout));
        words.push(if self.version.major == 3 { "--wait" } else { "--wait=legacy" }.into());
        words.extend(self.apply_words(apply_method));
        self.run(words, key, false, interrupts).await
    }

    /// No values flag: helm then takes over the record's own values.
    fn upgrade_words(&self, release: &Upgrade<'_>) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["upgrade".into(), release.key.name.clone().into()];
        match release.chart {
            Chart::Named(source) => {
                words.push(source.reference.clone().into());
                if let Some(version) = &source.version {
                    words.extend(["--version".into(), version.into()]);
                }
            }
            Chart::Rebuilt(directory) => words.push(directory.path().into()),
        }
        if !release.run_hooks {
            words.push("--no-hooks".into());
        }
        words.push(timeout_flag(release.timeout));
        words.extend(self.apply_words(release.apply_method));
        words
    }

    /// As the release was applied. Said to the letter, since Helm's `auto` looks at another revision when it rolls back (helm.md §4.6).
    fn apply_words(&self, apply_method: ApplyMethod) -> Vec<OsString> {
        match (self.version.major, apply_method) {
            (3, _) => Vec::new(),
            (_, ApplyMethod::ServerSide) => vec!["--server-side=true".into(), "--force-conflicts".into()],
            (_, ApplyMethod::ClientSide) => vec!["--server-side=false".into()],
        }
    }

    async fn run(&self, words: Vec<OsString>, key: &ReleaseKey, reads: bool, interrupts: &Interrupts) -> Ended {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--namespace").arg(&key.namespace).args(&self.arguments);
        debug!(arguments = ?command.get_args().collect::<Vec<_>>(), "helm");
        forget(&mut command);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        // Notes may hold passwords; a rendering is read, the rest is for nobody.
        let stdout = if reads { Stdio::piped() } else { Stdio::null() };
        command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
        own_group(&mut command);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ended::Failed(format!("{} cannot be started: {error}", self.program.display())),
        };
        wait(child, interrupts.clone()).await
    }
}

/// What an upgrade needs to know.
pub(crate) struct Upgrade<'a> {
    pub(crate) key: &'a ReleaseKey,
    pub(crate) chart: &'a Chart<'a>,
    pub(crate) apply_method: ApplyMethod,
    pub(crate) run_hooks: bool,
    /// [`Duration::MAX`]: no limit.
    pub(crate) timeout: Duration,
}

/// Go's spelling; Helm knows no "no limit", a year is as good.
fn timeout_flag(timeout: Duration) -> OsString {
    const YEAR: u64 = 365 * 24 * 3600;
    let seconds = timeout.as_secs().clamp(1, YEAR);
    format!("--timeout={seconds}s").into()
}

/// A name without a directory is looked for on PATH, as the shell does; helm sets HELM_BIN to what it was called by.
fn look_up(program: &Path, path: &[PathBuf]) -> Option<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() {
        return Some(program.to_owned()).filter(|program| is_executable(program));
    }
    path.iter()
        .map(|directory| directory.join(program))
        .flat_map(|found| [found.with_extension(std::env::consts::EXE_EXTENSION), found])
        .find(|found| is_executable(found))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

fn forget(command: &mut Command) {
    for name in FORGOTTEN {
        command.env_remove(name);
    }
}

fn version(program: &Path) -> Result<HelmVersion, HelmError> {
    let shown = program.display().to_string();
    let unusable = |why: String| HelmError::Unusable { program: shown.clone(), why };
    let mut command = Command::new(program);
    forget(&mut command);
    let output = command
        .args(["version", "--template", "{{.Version}}"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| unusable(error.to_string()))?;
    if !output.status.success() {
        return Err(unusable(complaint(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = parse_version(&text).ok_or_else(|| unusable(format!("it calls its version {text:?}")))?;
    if version < OLDEST {
        return Err(HelmError::TooOld { program: shown, version });
    }
    if version.major > NEWEST_MAJOR {
        return Err(HelmError::Unknown { program: shown, version });
    }
    Ok(version)
}

/// `v3.22.0`, `v4.3.1+g1234567`, `v3.13.0-rc.1`.
fn parse_version(text: &str) -> Option<HelmVersion> {
    let core = text.trim_start_matches('v').split(['-', '+']).next()?;
    let mut numbers = core.split('.').map(|part| part.parse().ok());
    let version = HelmVersion { major: numbers.next()??, minor: numbers.next()??, patch: numbers.next()?? };
    numbers.next().is_none().then_some(version)
}

/// How helm finds the cluster: by the same flags that led us there.
fn login(target: &Target, storage: Storage) -> (Vec<OsString>, Vec<(&'static str, OsString)>) {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut flag = |name: &str, value: Option<&OsStr>| {
        arguments.extend(value.map(|value| [name.into(), value.to_owned()]).into_iter().flatten());
    };
    fn text(value: &Option<String>) -> Option<&OsStr> {
        value.as_deref().map(OsStr::new)
    }
    flag("--kube-context", text(&target.context));
    flag("--kube-apiserver", text(&target.server));
    flag("--kube-as-user", text(&target.as_user));
    target.as_groups.iter().for_each(|group| flag("--kube-as-group", Some(OsStr::new(group))));
    flag("--kube-ca-file", target.certificate_authority.as_deref().map(Path::as_os_str));
    flag("--kube-tls-server-name", text(&target.tls_server_name));
    if target.insecure_skip_tls_verify {
        arguments.push("--kube-insecure-skip-tls-verify".into());
    }
    let driver = if storage == Storage::ConfigMap { "configmap" } else { "secret" };
    let mut environment: Vec<(&'static str, OsString)> = vec![("HELM_DRIVER", driver.into())];
    environment.extend(target.token.as_ref().map(|token| ("HELM_KUBETOKEN", token.into())));
    if target.kubeconfig_named
        && let Ok(files) = std::env::join_paths(&target.kubeconfig)
    {
        environment.push(("KUBECONFIG", files));
    }
    (arguments, environment)
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_group(_: &mut Command) {}

/// Waits for helm to its end, whatever comes; interrupts are handed on to it.
async fn wait(child: Child, mut interrupts: Interrupts) -> Ended {
    let id = child.id();
    let mut waiting = tokio::task::spawn_blocking(move || child.wait_with_output());
    loop {
        tokio::select! {
            ended = &mut waiting => return match ended {
                Ok(Ok(output)) => ended_as(output),
                Ok(Err(error)) => Ended::Failed(format!("it cannot be waited for: {error}")),
                Err(_) => Ended::Failed("it cannot be waited for".to_owned()),
            },
            interrupt = interrupts.next() => {
                warn!("helm is told to stop, and is waited for: it puts back what it changed");
                send(id, interrupt);
            }
        }
    }
}

/// To helm alone: what it started is its own affair.
#[cfg(unix)]
fn send(id: u32, interrupt: Interrupt) {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match interrupt {
        Interrupt::Int => Signal::INT,
        Interrupt::Term => Signal::TERM,
    };
    if let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // It may have ended by itself in this very moment.
        let _ = kill_process(id, signal);
    }
}

#[cfg(not(unix))]
fn send(_: u32, _: Interrupt) {}

fn ended_as(output: Output) -> Ended {
    if output.status.success() {
        return Ended::Done(output.stdout);
    }
    match killed_by(output.status) {
        Some(signal) => Ended::Killed(signal),
        None => Ended::Failed(complaint(&output.stderr)),
    }
}

#[cfg(unix)]
fn killed_by(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn killed_by(_: ExitStatus) -> Option<i32> {
    None
}

/// From helm's last `Error:` on, in one line.
fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let from = lines.iter().rposition(|line| line.starts_with("Error: ")).unwrap_or(lines.len().saturating_sub(1));
    let said = lines.get(from..).unwrap_or_default().join(" ");
    let said = said.strip_prefix("Error: ").unwrap_or(&said);
    if said.is_empty() { "it says nothing".to_owned() } else { said.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_helm_prints_them() {
        for (text, version) in [
            ("v3.22.0", Some((3, 22, 0))),
            ("v4.3.1+g1234567", Some((4, 3, 1))),
            ("v3.13.0-rc.1", Some((3, 13, 0))),
            ("v3.13", None),
            ("", None),
            ("canary", None),
        ] {
            let version = version.map(|(major, minor, patch)| HelmVersion { major, minor, patch });
            assert_eq!(parse_version(text), version, "{text}");
        }
    }

    #[test]
    fn the_last_error_is_what_helm_complains_of() {
        let said = complaint(b"WARNING: x\nError: first\nlevel=WARN msg=y\nError: UPGRADE FAILED: a\n  b\n");
        assert_eq!(said, "UPGRADE FAILED: a b");
        assert_eq!(complaint(b"\n\n"), "it says nothing");
        assert_eq!(complaint(b"a\nb\n"), "b");
    }

    fn helm(major: u64) -> Helm {
        let target = Target {
            context: Some("prod".into()),
            token: Some("t0ken".into()),
            as_groups: vec!["a".into(), "b".into()],
            ..Target::default()
        };
        let (arguments, environment) = login(&target, Storage::ConfigMap);
        Helm { program: "helm".into(), version: HelmVersion { major, minor: 20, patch: 0 }, arguments, environment }
    }

    #[test]
    fn the_token_is_no_argument() {
        let helm = helm(3);
        assert_eq!(helm.arguments, ["--kube-context", "prod", "--kube-as-group", "a", "--kube-as-group", "b"]);
        assert_eq!(helm.environment, [("HELM_DRIVER", "configmap".into()), ("HELM_KUBETOKEN", "t0ken".into())]);
    }

    #[test]
    fn each_major_gets_the_flags_of_the_release() {
        let key = ReleaseKey { namespace: "prod".into(), name: "nucleus".into() };
        let source = ChartSource { reference: "repo/nucleus".into(), version: Some("1.2".into()) };
        for (major, apply_method, words) in [
            (3, ApplyMethod::ClientSide, "upgrade nucleus repo/nucleus --version 1.2 --no-hooks --timeout=300s"),
            (
                4,
                ApplyMethod::ClientSide,
                "upgrade nucleus repo/nucleus --version 1.2 --no-hooks --timeout=300s --server-side=false",
            ),
            (
                4,
                ApplyMethod::ServerSide,
                "upgrade nucleus repo/nucleus --version 1.2 --no-hooks --timeout=300s --server-side=true --force-conflicts",
            ),
        ] {
            let upgrade = Upgrade {
                key: &key,
                chart: &Chart::Named(&source),
                apply_method,
                run_hooks: false,
                timeout: Duration::from_secs(300),
            };
            let got = helm(major).upgrade_words(&upgrade);
            assert_eq!(got.join(OsStr::new(" ")), words);
        }
        assert_eq!(timeout_flag(Duration::MAX), "--timeout=31536000s");
    }
}
