//! The command line as typed: commands, flags, help, completions. Knows neither the environment nor what the words are used for.

mod correct;
mod examples;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, StyledStr};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint, value_parser};

pub(crate) use correct::{CorrectArgs, Correction, CorrectionMethod, PlanFormat};

/// The command that helm and kubectl ask for completions.
pub(crate) const COMPLETE: &str = "__complete";

/// What was typed. Without a command it is the check.
#[derive(Parser)]
#[command(name = "drift", version, about, max_term_width = 110, args_override_self = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Compare releases with the cluster (the default)
    #[command(args_override_self = true)]
    Check(Box<CheckArgs>),
    /// The check, as a diff from what Helm wants to what is there
    #[command(args_override_self = true)]
    Diff(Box<DiffArgs>),
    /// Show a release's revisions, and how far the cluster is from each
    #[command(args_override_self = true)]
    History(Box<HistoryArgs>),
    /// Keep what a check reads in one file, to be judged anywhere by --from
    #[command(args_override_self = true)]
    Capture(Box<CaptureArgs>),
    /// Check a configuration file
    Config(ConfigArgs),
    /// Bring releases back to what Helm says: plan, consent, evidence, correction, check
    #[command(alias = "reconcile", args_override_self = true)]
    Correct(Box<CorrectArgs>),
    /// Print the completion script for a shell
    Completion {
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual, a page for each command
    Man(ManArgs),
    /// Make `kubectl drift` work, with completion, by two links on PATH
    InstallKubectl(InstallArgs),
    /// Print the version
    Version,
    /// What may stand in the place of the last word: asked by helm and kubectl, answered in cobra's lines
    #[command(name = COMPLETE, hide = true)]
    Complete {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) manifests: Manifests,
    #[command(flatten)]
    pub(crate) told: Told,
    #[command(flatten)]
    pub(crate) replay: Replay,
    /// Form of the report
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table", hide_default_value = true, help_heading = OUTPUT)]
    pub(crate) output: Format,
    #[command(flatten)]
    pub(crate) shown: Shown,
    #[command(flatten)]
    pub(crate) screen: Screen,
    #[command(flatten)]
    pub(crate) target: Where,
}

#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) manifests: Manifests,
    #[command(flatten)]
    pub(crate) told: Told,
    #[command(flatten)]
    pub(crate) replay: Replay,
    #[command(flatten)]
    pub(crate) shown: Shown,
    #[command(flatten)]
    pub(crate) screen: Screen,
    #[command(flatten)]
    pub(crate) target: Where,
}

#[derive(clap::Args)]
pub(crate) struct HistoryArgs {
    /// Release by name
    #[arg(value_name = "RELEASE")]
    pub(crate) release: String,
    /// Namespace of the release; else HELM_NAMESPACE, the context's, default
    #[arg(short, long, value_name = "NAME", help_heading = RELEASES)]
    pub(crate) namespace: Option<String>,
    /// Where Helm keeps its records: secret or configmap; else HELM_DRIVER, secret
    #[arg(long, value_name = "DRIVER", help_heading = RELEASES)]
    pub(crate) storage_driver: Option<String>,
    #[command(flatten)]
    pub(crate) replay: Replay,
    /// Form of the history
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table", hide_default_value = true, help_heading = OUTPUT)]
    pub(crate) output: HistoryFormat,
    #[command(flatten)]
    pub(crate) told: Told,
    #[command(flatten)]
    pub(crate) screen: Screen,
    #[command(flatten)]
    pub(crate) target: Where,
}

#[derive(clap::Args)]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) told: Told,
    /// File to write, readable by its owner only
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub(crate) to: PathBuf,
    /// Keep the values of Secrets; without it tokens stand in their place
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) include_secrets: bool,
    #[command(flatten)]
    pub(crate) screen: Screen,
    #[command(flatten)]
    pub(crate) target: Where,
}

#[derive(clap::Args)]
#[command(arg_required_else_help = false)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) verb: ConfigVerb,
}

#[derive(Subcommand)]
pub(crate) enum ConfigVerb {
    /// Say what is wrong with a file, and what each of its rules covers now
    #[command(args_override_self = true)]
    Check(Box<ConfigCheckArgs>),
}

#[derive(clap::Args)]
pub(crate) struct ConfigCheckArgs {
    /// The file; else the one that a check would read
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Look at the file alone, at no cluster
    #[arg(long, help_heading = READING, conflicts_with_all = CONNECTION)]
    pub(crate) offline: bool,
    /// Try the rules on the releases of this namespace, not of all
    #[arg(short, long, value_name = "NAME", help_heading = RELEASES)]
    pub(crate) namespace: Option<String>,
    /// Where Helm keeps its records: secret or configmap; else HELM_DRIVER, secret
    #[arg(long, value_name = "DRIVER", help_heading = RELEASES)]
    pub(crate) storage_driver: Option<String>,
    #[command(flatten)]
    pub(crate) replay: Replay,
    #[command(flatten)]
    pub(crate) screen: Screen,
    #[command(flatten)]
    pub(crate) target: Where,
}

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The command to print the page of; none: the page of the program
    pub(crate) command: Option<String>,
    /// Write all pages into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
    pub(crate) to: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct InstallArgs {
    /// Directory to put the links into; else one on PATH: where the program is, ~/.local/bin, ~/bin, /usr/local/bin
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) to: Option<PathBuf>,
}

const RELEASES: &str = "Which releases";
const OUTPUT: &str = "Output";
const CLUSTER: &str = "Which cluster";
const READING: &str = "Reading";
const RULES: &str = "Rules";

#[derive(clap::Args)]
pub(crate) struct Which {
    /// Releases by name; none: all of the namespace
    #[arg(value_name = "RELEASE")]
    pub(crate) releases: Vec<String>,
    /// Namespace of the releases; else HELM_NAMESPACE, the context's, default
    #[arg(short, long, value_name = "NAME", help_heading = RELEASES)]
    pub(crate) namespace: Option<String>,
    /// Releases of all namespaces, whatever --namespace says
    #[arg(short = 'A', long, alias = "all", help_heading = RELEASES)]
    pub(crate) all_namespaces: bool,
    /// Only releases whose newest record has these labels, e.g. team=web,tier!=db
    #[arg(short = 'l', long, help_heading = RELEASES)]
    pub(crate) selector: Option<String>,
    /// Compare with this revision of the one named release, not with its current one
    #[arg(long, value_name = "N", value_parser = revision, help_heading = RELEASES)]
    pub(crate) revision: Option<u64>,
    /// Where Helm keeps its records: secret or configmap; else HELM_DRIVER, secret
    #[arg(long, value_name = "DRIVER", help_heading = RELEASES)]
    pub(crate) storage_driver: Option<String>,
}

/// Desired state from files. What says which releases has no meaning beside it.
#[derive(clap::Args)]
pub(crate) struct Manifests {
    /// Compare these manifests, not releases: a file, a directory's *.yaml, *.yml and *.json, or - for standard input; may be repeated
    #[arg(short, long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath, help_heading = RELEASES,
          conflicts_with_all = ["releases", "selector", "revision", "all_namespaces", "storage_driver", "mode", "from"])]
    pub(crate) filename: Vec<PathBuf>,
    /// Read also the folders in a directory that -f names
    #[arg(short = 'R', long, requires = "filename", help_heading = RELEASES)]
    pub(crate) recursive: bool,
}

#[derive(clap::Args)]
pub(crate) struct Told {
    /// Configuration file; else helm-drift/config.yaml in the user's configuration directory
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RULES)]
    pub(crate) config: Option<PathBuf>,
    /// Whether releases are judged, whatever the configuration and labels say
    #[arg(long, value_enum, value_name = "MODE", help_heading = RULES)]
    pub(crate) mode: Option<Mode>,
}

#[derive(clap::Args)]
pub(crate) struct Replay {
    /// Take the cluster's answers from this file, which `drift capture` wrote
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RELEASES,
          conflicts_with_all = CONNECTION)]
    pub(crate) from: Option<PathBuf>,
}

/// What says which cluster has no meaning where a capture answers.
const CONNECTION: [&str; 11] = [
    "context",
    "kubeconfig",
    "server",
    "token",
    "as_user",
    "as_group",
    "certificate_authority",
    "insecure_skip_tls_verify",
    "tls_server_name",
    "client_certificate",
    "client_key",
];

#[derive(clap::Args)]
pub(crate) struct Shown {
    /// Who has the last word on a changed or removed field
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t, help_heading = READING)]
    pub(crate) engine: Engine,
    /// Show only releases of this state; the exit code follows what is shown
    #[arg(long, value_name = "CONDITION=VALUE", value_parser = PossibleValuesParser::new(STATUS), ignore_case = true, help_heading = OUTPUT)]
    pub(crate) status: Option<String>,
    /// Show also what is expected or ignored, and what was not compared
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) show_all: bool,
}

pub(crate) const STATUS: [&str; 5] = ["ready=true", "ready=false", "ready=unknown", "stalled=true", "stalled=false"];

#[derive(clap::Args)]
pub(crate) struct Screen {
    /// When to colour
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto", hide_default_value = true, help_heading = OUTPUT)]
    pub(crate) color: Color,
    /// Say less: of a report the table of releases alone; no progress
    #[arg(short, long, conflicts_with = "verbose", help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// Say on stderr what is asked of the cluster; twice: more
    #[arg(short, long, alias = "v", value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          action = ArgAction::Append, help_heading = OUTPUT)]
    pub(crate) verbose: Vec<u8>,
    /// Helm's word for --verbose; `helm` keeps it to itself and sets HELM_DEBUG
    #[arg(long, hide = true)]
    pub(crate) debug: bool,
    /// Never show progress
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) no_progress: bool,
}

#[derive(clap::Args)]
pub(crate) struct Where {
    /// Context of the kubeconfig
    #[arg(long, visible_alias = "kube-context", value_name = "NAME", help_heading = CLUSTER)]
    pub(crate) context: Option<String>,
    /// Kubeconfig file; else KUBECONFIG, ~/.kube/config, the pod's service account
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = CLUSTER)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Address of the API server
    #[arg(short, long, visible_alias = "kube-apiserver", value_name = "URL", value_hint = ValueHint::Url, help_heading = CLUSTER)]
    pub(crate) server: Option<String>,
    /// Bearer token
    #[arg(long, visible_alias = "kube-token", help_heading = CLUSTER)]
    pub(crate) token: Option<String>,
    /// User to impersonate
    #[arg(id = "as_user", long = "as", visible_alias = "kube-as-user", value_name = "USER", help_heading = CLUSTER)]
    pub(crate) as_user: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long, visible_alias = "kube-as-group", value_name = "GROUP", help_heading = CLUSTER)]
    pub(crate) as_group: Vec<String>,
    /// File with the certificate authority of the API server
    #[arg(long, visible_alias = "kube-ca-file", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = CLUSTER)]
    pub(crate) certificate_authority: Option<PathBuf>,
    /// Do not verify the API server's certificate: anybody can then pose as the cluster
    #[arg(long, visible_alias = "kube-insecure-skip-tls-verify", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", hide_possible_values = true, help_heading = CLUSTER)]
    pub(crate) insecure_skip_tls_verify: Option<bool>,
    /// Name that the API server's certificate is verified against
    #[arg(long, visible_alias = "kube-tls-server-name", value_name = "NAME", help_heading = CLUSTER)]
    pub(crate) tls_server_name: Option<String>,
    /// Client certificate file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = CLUSTER)]
    pub(crate) client_certificate: Option<PathBuf>,
    /// Key file of the client certificate
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = CLUSTER)]
    pub(crate) client_key: Option<PathBuf>,
    /// Requests in flight at most
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u16).range(1..=256), help_heading = READING)]
    pub(crate) parallel: u16,
    /// Time for one request, such as 30, 30s, 1m; 0: no limit
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = request_timeout, help_heading = READING)]
    pub(crate) request_timeout: Duration,
    /// Neither read nor keep the cluster's API documents on disk
    #[arg(long, help_heading = READING)]
    pub(crate) no_cache: bool,
}

/// Who judges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The comparison made here: read rights are enough
    #[default]
    Local,
    /// Also the API server, asked by a dry run of server-side apply; needs the verb patch
    Server,
}

/// How releases are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// They are, and drift counts
    Warn,
    /// They are listed, and no more
    Disabled,
    /// Told apart from a word that is no mode, as it is a command
    #[value(hide = true)]
    Correct,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line per release, and below what is wrong with each
    #[default]
    Table,
    /// The same, with revision, chart, time, and a class per finding
    Wide,
    /// What differs, per object
    Diff,
    /// The whole report
    Json,
    /// The whole report
    Yaml,
    /// An object with drift per line, as KIND.GROUP/NAME, for xargs
    Name,
}

/// How a history is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    Table,
    Json,
    Yaml,
}

/// Exactly Helm 4's words: `helm` reads a plugin's `--color` itself and stops at any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

/// Why there are no [`Args`].
#[derive(Debug)]
pub(crate) enum NotParsed {
    /// `--help` or `--version`: this is the answer, for stdout.
    Help(StyledStr),
    /// What is wrong, and what may have been meant or where help is: two lines, for stderr.
    Wrong(String),
}

/// Reads a command line. `called` is what the user typed to get here: `drift`, `helm drift`, `kubectl drift`.
pub(crate) fn parse(argv: Vec<OsString>, called: &str) -> Result<Args, NotParsed> {
    let mut command = definition(called);
    let argv = arranged(argv, &command);
    let verb = argv.get(1).and_then(|word| word.to_str()).filter(|word| *word != "check" && is_verb(&command, word));
    let helpful = verb.map_or_else(|| called.to_owned(), |verb| format!("{called} {verb}"));
    let matches = command.try_get_matches_from_mut(argv);
    matches.and_then(|mut matches| Args::from_arg_matches_mut(&mut matches)).map_err(|error| {
        if error.use_stderr() {
            NotParsed::Wrong(in_two_lines(&error, &helpful))
        } else {
            NotParsed::Help(error.render())
        }
    })
}

/// The completion script for `program`, as the shell sources it.
pub(crate) fn completion(shell: Shell, program: &str) -> Vec<u8> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
        Shell::Powershell => clap_complete::Shell::PowerShell,
    };
    let mut script = Vec::new();
    // Into memory first: clap_complete panics where it cannot write, e.g. into a closed pipe.
    clap_complete::generate(shell, &mut definition(program), program, &mut script);
    script
}

fn in_two_lines(error: &clap::Error, helpful: &str) -> String {
    let text = error.to_string();
    let what = text.split("\n\n").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let meant = [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand];
    let meant = meant.into_iter().find_map(|kind| error.get(kind)).and_then(|value| match value {
        ContextValue::String(one) => Some(one.as_str()),
        ContextValue::Strings(several) => several.first().map(String::as_str),
        _ => None,
    });
    match meant {
        Some(meant) => format!("{what}\n  did you mean {meant}?\n"),
        None => format!("{what}\n  see {helpful} --help\n"),
    }
}

/// The command line with its help, for whoever calls it so.
pub(crate) fn definition(called: &str) -> clap::Command {
    let command = Args::command()
        .bin_name(called)
        .override_usage(format!("{called} [RELEASE]... [OPTIONS]\n       {called} COMMAND [RELEASE]... [OPTIONS]"))
        .after_help(examples::of_program(called));
    // To an older revision leads helm, as the error says.
    let command = command.mut_subcommand("correct", |correct| correct.mut_arg("revision", |flag| flag.hide(true)));
    examples::add(command, called)
}

/// Puts the command before its flags, so that `drift -n prod diff nucleus` is `drift diff -n prod nucleus`, and names the check
/// where the first word is a release: after it no word is a command (`drift nucleus diff` are two releases).
fn arranged(argv: Vec<OsString>, command: &clap::Command) -> Vec<OsString> {
    if argv.get(1).is_some_and(|word| word == COMPLETE) {
        // `--` keeps clap from reading what is to be completed.
        let mut words = argv;
        words.insert(2, "--".into());
        return words;
    }
    let mut argv = plain_booleans(argv, command);
    let Some(at) = first_word(&argv, command) else { return argv };
    let word = argv.get(at).and_then(|word| word.to_str());
    if word.is_some_and(|word| is_verb(command, word)) {
        let verb = argv.remove(at);
        let nested = verb.to_str().and_then(|verb| command.find_subcommand(verb));
        // The command's own command too: `drift -n prod config check`.
        let own = first_word(&argv, command);
        if let (Some(nested), Some(at)) = (nested, own)
            && argv.get(at).and_then(|word| word.to_str()).is_some_and(|word| nested.find_subcommand(word).is_some())
        {
            let word = argv.remove(at);
            argv.insert(1, word);
        }
        argv.insert(1, verb);
    } else {
        argv.insert(1, "check".into());
    }
    argv
}

pub(crate) fn is_verb(command: &clap::Command, word: &str) -> bool {
    word == "help" || command.find_subcommand(word).is_some()
}

/// Where the first word is that is neither a flag nor a flag's value; `--` counts as one.
pub(crate) fn first_word(argv: &[OsString], command: &clap::Command) -> Option<usize> {
    let mut is_value = false;
    for (index, word) in argv.iter().enumerate().skip(1) {
        if std::mem::take(&mut is_value) {
            continue;
        }
        // What is not text can only be a value or a word.
        let Some(text) = word.to_str() else { return Some(index) };
        if let Some(long) = text.strip_prefix("--").filter(|long| !long.is_empty()) {
            is_value = !long.contains('=') && flag(command, |arg| has_long(arg, long)).is_some_and(wants_next_word);
        } else if let Some(shorts) = text.strip_prefix('-').filter(|shorts| !shorts.is_empty() && *shorts != "-") {
            let with_value = shorts
                .char_indices()
                .find(|(_, short)| flag(command, |arg| arg.get_short() == Some(*short)).is_some_and(wants_next_word));
            is_value = with_value.is_some_and(|(start, short)| start + short.len_utf8() == shorts.len());
        } else {
            return Some(index);
        }
    }
    None
}

/// Kubernetes' tools take `--flag=true` and `--flag=false` for every switch; clap takes the switch alone.
fn plain_booleans(argv: Vec<OsString>, command: &clap::Command) -> Vec<OsString> {
    let mut plain = Vec::with_capacity(argv.len());
    let mut words = argv.into_iter();
    for word in words.by_ref() {
        let is_last = word == "--";
        match word.to_str().and_then(|text| text.split_once('=')) {
            Some((switch, "true")) if is_switch(switch, command) => plain.push(switch.into()),
            Some((switch, "false")) if is_switch(switch, command) => {}
            _ => plain.push(word),
        }
        if is_last {
            break;
        }
    }
    plain.extend(words);
    plain
}

/// `-A` or `--show-all`, but no flag that takes a value.
fn is_switch(text: &str, command: &clap::Command) -> bool {
    let arg = match text.strip_prefix("--") {
        Some(long) => flag(command, |arg| has_long(arg, long)),
        None => flag(command, |arg| {
            arg.get_short().is_some_and(|short| text.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])))
        }),
    };
    arg.is_some_and(|arg| matches!(arg.get_action(), ArgAction::SetTrue))
}

/// The flag of any command for which `is_it` holds; the same name means the same in all of them.
pub(crate) fn flag(command: &clap::Command, is_it: impl Fn(&Arg) -> bool) -> Option<&Arg> {
    std::iter::once(command)
        .chain(command.get_subcommands())
        .chain(command.get_subcommands().flat_map(clap::Command::get_subcommands))
        .flat_map(clap::Command::get_arguments)
        .find(|arg| is_it(arg))
}

pub(crate) fn has_long(arg: &Arg, long: &str) -> bool {
    arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
}

pub(crate) fn wants_next_word(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

fn revision(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|revision| *revision > 0).ok_or_else(|| "give a whole number from 1".to_owned())
}

/// kubectl's forms: plain seconds, or numbers with Go's units (`1m30s`); `0` is [`Duration::MAX`].
fn request_timeout(text: &str) -> Result<Duration, String> {
    let bad = || "give seconds or a time such as 30s, 1m30s; 0 for no limit".to_owned();
    let seconds = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse::<f64>().map_err(|_| bad())?
    } else {
        go_duration(text).ok_or_else(bad)?
    };
    if seconds == 0.0 {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| bad())
}

/// Seconds of a text such as `1h2m3.5s`.
pub(crate) fn go_duration(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(unit_at)?;
        let number: f64 = number.parse().ok()?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, next) = tail.split_at_checked(unit_end)?;
        seconds += number
            * match unit {
                "ns" => 1e-9,
                "us" | "µs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = next;
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Args, NotParsed> {
        parse(std::iter::once("drift").chain(line.split_whitespace()).map(OsString::from).collect(), "drift")
    }

    fn wrong(line: &str) -> String {
        match parsed(line) {
            Ok(_) => panic!("{line}: parsed"),
            Err(NotParsed::Help(_)) => panic!("{line}: help"),
            Err(NotParsed::Wrong(text)) => text,
        }
    }

    /// The command, its releases, and its namespace, as one text.
    fn summary(line: &str) -> String {
        let args = parsed(line).unwrap_or_else(|error| panic!("{line}: {error:?}"));
        let (verb, which) = match args.verb {
            None => ("(check)", args.check.which),
            Some(Verb::Check(check)) => ("check", check.which),
            Some(Verb::Diff(diff)) => ("diff", diff.which),
            Some(Verb::History(history)) => {
                return format!("history {} @{}", history.release, history.namespace.unwrap_or_default());
            }
            Some(Verb::Correct(correct)) => ("correct", correct.which),
            Some(Verb::Capture(capture)) => ("capture", capture.which),
            Some(Verb::Config(config)) => {
                let ConfigVerb::Check(check) = config.verb;
                let file = check.file.unwrap_or_default();
                return format!("config check {} @{}", file.display(), check.namespace.unwrap_or_default());
            }
            Some(Verb::Completion { .. }) => return "completion".to_owned(),
            Some(Verb::Version) => return "version".to_owned(),
            Some(Verb::Man(man)) => return format!("man {}", man.command.unwrap_or_default()),
            Some(Verb::InstallKubectl(_)) => return "install-kubectl".to_owned(),
            Some(Verb::Complete { words }) => return format!("complete {words:?}"),
        };
        let all = if which.all_namespaces { "*" } else { "" };
        format!("{verb} {} @{}{all}", which.releases.join("+"), which.namespace.unwrap_or_default())
    }

    #[test]
    fn the_definition_holds_together() {
        definition("drift").debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        let definition = definition("helm drift");
        let mut commands: Vec<&clap::Command> =
            definition.get_subcommands().filter(|command| !command.is_hide_set()).collect();
        while let Some(command) = commands.pop() {
            if command.has_subcommands() {
                commands.extend(command.get_subcommands());
                continue;
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Examples:\n  "), "{}: name it in EXAMPLES", command.get_name());
        }
    }

    #[test]
    fn commands_and_releases_are_told_apart() {
        for (line, is) in [
            ("", "(check)  @"),
            ("-A", "(check)  @*"),
            ("--all", "(check)  @*"),
            ("-A=true", "(check)  @*"),
            ("--all-namespaces=true", "(check)  @*"),
            ("--all-namespaces=false", "(check)  @"),
            ("nucleus", "check nucleus @"),
            ("nucleus -n prod", "check nucleus @prod"),
            ("-n prod nucleus", "check nucleus @prod"),
            ("-nprod nucleus", "check nucleus @prod"),
            ("-n=prod nucleus", "check nucleus @prod"),
            ("-qAn prod nucleus", "check nucleus @prod*"),
            ("--namespace prod nucleus web", "check nucleus+web @prod"),
            ("nucleus --namespace=prod web", "check nucleus+web @prod"),
            ("check diff", "check diff @"),
            ("-n prod history nucleus", "history nucleus @prod"),
            ("check history", "check history @"),
            ("-f - -n prod", "(check)  @prod"),
            ("-Rf dir diff", "diff  @"),
            ("diff nucleus", "diff nucleus @"),
            ("-n prod diff nucleus", "diff nucleus @prod"),
            ("-n diff nucleus", "check nucleus @diff"),
            ("-v diff nucleus -n prod", "diff nucleus @prod"),
            ("-v=6 diff", "diff  @"),
            ("diff -A", "diff  @*"),
            ("diff diff", "diff diff @"),
            ("nucleus diff", "check nucleus+diff @"),
            ("nucleus -A diff", "check nucleus+diff @*"),
            ("-- diff", "check diff @"),
            ("-n prod -n dev nucleus", "check nucleus @dev"),
            ("-A --to f capture web", "capture web @*"),
            ("config check f", "config check f @"),
            ("-n prod config check f --offline=true", "config check f @prod"),
            ("check config", "check config @"),
            ("version", "version"),
            ("completion zsh", "completion"),
            ("man diff", "man diff"),
            ("install-kubectl --to d", "install-kubectl"),
            ("__complete diff -A=true -n --x", r#"complete ["diff", "-A=true", "-n", "--x"]"#),
            ("__complete -- diff -", r#"complete ["--", "diff", "-"]"#),
            ("nucleus --insecure-skip-tls-verify web", "check nucleus+web @"),
        ] {
            assert_eq!(summary(line), is, "{line}");
        }
    }

    #[test]
    fn wrong_lines_are_explained_in_two() {
        for (line, text) in [
            ("--namspace x", "unexpected argument '--namspace' found\n  did you mean --namespace?"),
            (
                "--mode wrn",
                "invalid value 'wrn' for '--mode <MODE>' [possible values: warn, disabled]\n  did you mean warn?",
            ),
            (
                "config",
                "'drift config' requires a subcommand but one was not provided [subcommands: check, help]\n  see drift config --help",
            ),
            (
                "-o jso",
                "invalid value 'jso' for '--output <FORMAT>' [possible values: table, wide, diff, json, yaml, name]\n  did you mean json?",
            ),
            ("-A version", "unexpected argument '-A' found\n  see drift version --help"),
            ("diff -o json", "unexpected argument '-o' found\n  see drift diff --help"),
            (
                "nucleus -f a.yaml",
                "the argument '[RELEASE]...' cannot be used with '--filename <FILE|DIR>'\n  see drift --help",
            ),
            (
                "-f a.yaml -A",
                "the argument '--filename <FILE|DIR>' cannot be used with '--all-namespaces'\n  see drift --help",
            ),
            (
                "diff -f a.yaml --from b",
                "the argument '--filename <FILE|DIR>' cannot be used with '--from <FILE>'\n  see drift diff --help",
            ),
            ("-R", "the following required arguments were not provided: --filename <FILE|DIR>\n  see drift --help"),
            ("history", "the following required arguments were not provided: <RELEASE>\n  see drift history --help"),
            (
                "capture web",
                "the following required arguments were not provided: --to <FILE>\n  see drift capture --help",
            ),
            (
                "--from f --context c",
                "the argument '--from <FILE>' cannot be used with '--context <NAME>'\n  see drift --help",
            ),
            ("--from f --as me", "the argument '--from <FILE>' cannot be used with '--as <USER>'\n  see drift --help"),
            (
                "web --revision 0",
                "invalid value '0' for '--revision <N>': give a whole number from 1\n  see drift --help",
            ),
            ("--parallel 257", "invalid value '257' for '--parallel <N>': 257 is not in 1..=256\n  see drift --help"),
            (
                "--color on",
                "invalid value 'on' for '--color <WHEN>' [possible values: auto, always, never]\n  see drift --help",
            ),
            (
                "completion",
                "the following required arguments were not provided: <SHELL>\n  see drift completion --help",
            ),
            ("-n", "a value is required for '--namespace <NAME>' but none was supplied\n  see drift --help"),
            (
                "--request-timeout soon",
                "invalid value 'soon' for '--request-timeout <TIME>': give seconds or a time such as 30s, 1m30s; 0 for no limit\n  see drift --help",
            ),
        ] {
            assert_eq!(wrong(line), format!("error: {text}\n"), "{line}");
        }
    }

    #[test]
    fn both_spellings_say_where() {
        for line in [
            "--context c --server s --token t --as u --as-group g --as-group h --certificate-authority ca --insecure-skip-tls-verify --tls-server-name n",
            "--kube-context c --kube-apiserver s --kube-token t --kube-as-user u --kube-as-group g --kube-as-group h --kube-ca-file ca \
             --kube-insecure-skip-tls-verify --kube-tls-server-name n",
        ] {
            let target = parsed(line).unwrap_or_else(|error| panic!("{error:?}")).check.target;
            let texts = [target.context, target.server, target.token, target.as_user, target.tls_server_name]
                .map(Option::unwrap_or_default);
            assert_eq!(texts, ["c", "s", "t", "u", "n"]);
            assert_eq!(target.as_group, ["g", "h"]);
            assert_eq!(target.certificate_authority, Some("ca".into()));
            assert_eq!(target.insecure_skip_tls_verify, Some(true));
        }
        let off = parsed("--insecure-skip-tls-verify=false").map(|args| args.check.target.insecure_skip_tls_verify);
        assert_eq!(off.ok(), Some(Some(false)));
    }

    #[test]
    fn times_are_kubectls() {
        for (text, milliseconds) in [
            ("30", Some(30_000)),
            ("30s", Some(30_000)),
            ("1m", Some(60_000)),
            ("1m30s", Some(90_000)),
            ("1.5h", Some(5_400_000)),
            ("250ms", Some(250)),
            ("s", None),
            ("1", Some(1_000)),
            ("1 s", None),
            ("-1s", None),
            ("1d", None),
            ("1.2.3s", None),
            ("", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(request_timeout(text).ok(), milliseconds.map(Duration::from_millis), "{text}");
        }
        for text in ["0", "0s", "0m0s"] {
            assert_eq!(request_timeout(text), Ok(Duration::MAX), "{text}");
        }
    }

    #[test]
    fn help_speaks_as_it_was_called() {
        for (called, line, usage) in [
            ("helm drift", "--help", "Usage: helm drift [RELEASE]... [OPTIONS]"),
            ("kubectl drift", "-h", "Usage: kubectl drift [RELEASE]... [OPTIONS]"),
            ("helm drift", "diff -h", "Usage: helm drift diff [OPTIONS] [RELEASE]..."),
            ("drift", "help capture", "Usage: drift capture [OPTIONS] --to <FILE> [RELEASE]..."),
            ("drift", "nucleus --help", "Usage: drift check [OPTIONS] [RELEASE]..."),
            ("drift", "--version", "drift "),
        ] {
            let argv = std::iter::once("drift").chain(line.split_whitespace()).map(OsString::from).collect();
            let Err(NotParsed::Help(text)) = parse(argv, called) else { panic!("{line}: no help") };
            assert!(text.to_string().contains(usage), "{line}: {text}");
        }
    }

    #[test]
    fn every_shell_has_a_script() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(completion(*shell, "drift")).unwrap_or_default();
            assert!(script.contains("include-secrets") && script.contains("drift"), "{shell:?}");
        }
    }
}
