//! What may stand in the place of a command line's last word, as helm and kubectl ask it of a plugin. Knows the command line's
//! definition; what only a cluster or a kubeconfig can tell is left as an [`Ask`].
//!
//! Source: helm/helm `pkg/cmd/load_plugins.go`, kubernetes/kubectl `pkg/cmd/plugin_completion.go`; both read cobra's lines
//! (spf13/cobra `completions.go`).

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, ValueHint};

use crate::cli;

/// What can be answered without a cluster, and what is still to be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Question {
    /// The unfinished word; a candidate begins with it.
    pub(crate) word: String,
    pub(crate) known: Vec<Candidate>,
    pub(crate) ask: Option<Ask>,
    pub(crate) rest: Rest,
    /// What of the line says where to ask, as arguments of the check.
    pub(crate) place: Vec<OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Names of releases, but for those that stand there already.
    Releases(Vec<String>),
    /// Revisions of this release.
    Revisions(String),
    Namespaces,
    Contexts,
}

/// What the shell may offer beside the candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rest {
    #[default]
    Nothing,
    Files,
    Directories,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) value: String,
    /// One line; may be empty.
    pub(crate) help: String,
}

impl Candidate {
    pub(crate) fn new(value: impl Into<String>, help: impl Into<String>) -> Self {
        Self { value: value.into(), help: help.into() }
    }
}

impl Question {
    /// `words`: all after the plugin's name, the unfinished one last.
    pub(crate) fn new(words: &[OsString]) -> Self {
        let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let Some((word, given)) = texts.split_last() else { return Self::default() };
        let definition = cli::definition("drift");
        let line = Line::read(given, &definition);
        let mut question = Self { word: word.clone(), place: line.place.clone(), ..Self::default() };
        if let Some(arg) = line.waiting {
            question.values_of(arg, &line);
        } else if let Some((name, value)) = word.split_once('=').filter(|(name, _)| name.starts_with('-'))
            && !line.only_words
        {
            // The shell keeps `--flag=` and puts the candidate after it.
            question.word = value.to_owned();
            if let Some(arg) = line.command.get_arguments().find(|arg| is_called(arg, name)) {
                question.values_of(arg, &line);
            }
        } else if word.starts_with('-') && !line.only_words {
            question.known = flags(line.command, word, &line);
        } else {
            question.words_of(&line, &definition);
        }
        question
    }

    fn values_of(&mut self, arg: &Arg, line: &Line<'_>) {
        match arg.get_id().as_str() {
            "namespace" => self.ask = Some(Ask::Namespaces),
            "context" => self.ask = Some(Ask::Contexts),
            "revision" => self.ask = line.words.first().cloned().map(Ask::Revisions),
            "storage_driver" => {
                self.known = vec![Candidate::new("secret", "Helm's default"), Candidate::new("configmap", "")];
            }
            _ => {
                self.known = possible(arg);
                self.rest = rest(arg);
            }
        }
    }

    fn words_of(&mut self, line: &Line<'_>, definition: &Command) {
        if line.words.is_empty() && !line.only_words {
            let group = if line.verb.is_none() { definition } else { line.command };
            let verbs = group.get_subcommands().filter(|verb| !verb.is_hide_set());
            self.known = verbs.map(|verb| Candidate::new(verb.get_name(), first_line(verb.get_about()))).collect();
        }
        let Some(arg) = line.command.get_positionals().next() else { return };
        let takes_more = line.words.is_empty() || matches!(arg.get_action(), ArgAction::Append);
        match arg.get_id().as_str() {
            "releases" => self.ask = Some(Ask::Releases(line.words.clone())),
            "release" if takes_more => self.ask = Some(Ask::Releases(Vec::new())),
            "command" if takes_more => {
                let verbs = definition.get_subcommands().filter(|verb| !verb.is_hide_set());
                self.known = verbs.map(|verb| Candidate::new(verb.get_name(), "")).collect();
            }
            _ if takes_more => {
                self.known.extend(possible(arg));
                self.rest = rest(arg);
            }
            _ => {}
        }
    }

    /// Cobra's lines: candidates that begin with the unfinished word, then what the shell is to do.
    pub(crate) fn answer(&self, asked: Vec<Candidate>) -> String {
        // cobra's ShellCompDirective: 4 no files, 16 directories only, 32 keep this order
        let keeps_order = matches!(self.ask, Some(Ask::Revisions(_)));
        let directive = match self.rest {
            Rest::Nothing => 4,
            Rest::Files => 0,
            Rest::Directories => 16,
        } + if keeps_order { 32 } else { 0 };
        let mut text = String::new();
        for Candidate { value, help } in self.known.iter().chain(&asked) {
            if !value.starts_with(&self.word) || value.contains(|c: char| c.is_control() || c.is_whitespace()) {
                continue;
            }
            text.push_str(value);
            let help: String = help.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            if !help.is_empty() {
                text.push('\t');
                text.push_str(&help);
            }
            text.push('\n');
        }
        text.push_str(&format!(":{directive}\n"));
        text
    }
}

/// A command line up to the unfinished word.
struct Line<'a> {
    verb: Option<&'a str>,
    /// The verb's definition, or the check's.
    command: &'a Command,
    /// Words that are neither the verb, flags nor their values.
    words: Vec<String>,
    /// The flag whose value is to come.
    waiting: Option<&'a Arg>,
    given: Vec<&'a Arg>,
    /// After `--` there are no flags.
    only_words: bool,
    place: Vec<OsString>,
}

/// Flags that say where releases are looked for.
const PLACE: [&str; 15] = [
    "namespace",
    "all_namespaces",
    "storage_driver",
    "from",
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

impl<'a> Line<'a> {
    fn read(given: &[String], definition: &'a Command) -> Self {
        let check = definition.find_subcommand("check").unwrap_or(definition);
        let mut line = Self {
            verb: None,
            command: check,
            words: Vec::new(),
            waiting: None,
            given: Vec::new(),
            only_words: false,
            place: Vec::new(),
        };
        for word in given {
            if let Some(arg) = line.waiting.take() {
                line.place(arg, word);
            } else if line.only_words || word == "-" || !word.starts_with('-') {
                line.word(word, definition);
            } else if word == "--" {
                line.only_words = true;
            } else {
                line.flag(word, definition);
            }
        }
        line
    }

    fn word(&mut self, word: &str, definition: &'a Command) {
        let verbs = if self.verb.is_none() { definition } else { self.command };
        match verbs.find_subcommand(word).filter(|_| self.words.is_empty() && !self.only_words) {
            Some(verb) => {
                self.verb = Some(verb.get_name());
                self.command = verb;
            }
            None => self.words.push(word.to_owned()),
        }
    }

    fn flag(&mut self, word: &str, definition: &'a Command) {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if let Some(arg) = self.known(definition, |arg| cli::has_long(arg, name)) {
                self.note(arg, value);
            }
            return;
        }
        let mut shorts = word.strip_prefix('-').unwrap_or_default().chars();
        while let Some(short) = shorts.next() {
            let Some(arg) = self.known(definition, |arg| arg.get_short() == Some(short)) else { return };
            let rest = shorts.as_str();
            if cli::wants_next_word(arg) {
                let value = rest.strip_prefix('=').unwrap_or(rest);
                return self.note(arg, (!rest.is_empty()).then_some(value));
            }
            self.note(arg, None);
        }
    }

    /// The command's own flag; else another's, as the command may be yet to come.
    fn known(&self, definition: &'a Command, is_it: impl Fn(&Arg) -> bool) -> Option<&'a Arg> {
        let own = self.command.get_arguments().find(|arg| is_it(arg));
        own.or_else(|| cli::flag(definition, is_it))
    }

    fn note(&mut self, arg: &'a Arg, value: Option<&str>) {
        self.given.push(arg);
        match value {
            Some(value) => self.place(arg, value),
            None if cli::wants_next_word(arg) => self.waiting = Some(arg),
            None => self.place(arg, "true"),
        }
    }

    fn place(&mut self, arg: &Arg, value: &str) {
        if let (true, Some(long)) = (PLACE.contains(&arg.get_id().as_str()), arg.get_long()) {
            self.place.push(format!("--{long}={value}").into());
        }
    }
}

fn is_called(arg: &Arg, name: &str) -> bool {
    match name.strip_prefix("--") {
        Some(long) => cli::has_long(arg, long),
        None => arg.get_short().is_some_and(|short| name.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4]))),
    }
}

/// The flags of a command that are not there yet, or may be there again.
fn flags(command: &Command, word: &str, line: &Line<'_>) -> Vec<Candidate> {
    let is_there = |arg: &Arg| {
        !matches!(arg.get_action(), ArgAction::Append | ArgAction::Count)
            && line.given.iter().any(|given| given.get_id() == arg.get_id())
    };
    let mut found = Vec::new();
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && !is_there(arg)) {
        let help = first_line(arg.get_help());
        if let Some(short) = arg.get_short().filter(|_| word == "-") {
            found.push(Candidate::new(format!("-{short}"), help.clone()));
        }
        if let Some(long) = arg.get_long() {
            found.push(Candidate::new(format!("--{long}"), help.clone()));
        }
        // The other tool's spelling once it is being typed.
        let others = arg.get_visible_aliases().unwrap_or_default();
        found.extend(
            others
                .iter()
                .filter(|_| word.starts_with("--kube-"))
                .map(|long| Candidate::new(format!("--{long}"), help.clone())),
        );
    }
    found.push(Candidate::new("--help", "Print help"));
    found
}

fn possible(arg: &Arg) -> Vec<Candidate> {
    let values = arg.get_possible_values();
    // A switch has true and false, which nobody needs to type.
    if matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse) {
        return Vec::new();
    }
    values
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| Candidate::new(value.get_name(), first_line(value.get_help())))
        .collect()
}

fn rest(arg: &Arg) -> Rest {
    match arg.get_value_hint() {
        ValueHint::FilePath | ValueHint::AnyPath | ValueHint::ExecutablePath => Rest::Files,
        ValueHint::DirPath => Rest::Directories,
        _ => Rest::Nothing,
    }
}

fn first_line(help: Option<&clap::builder::StyledStr>) -> String {
    help.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(line: &str) -> Question {
        Question::new(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    /// The candidates alone, and the directive.
    fn offered(line: &str) -> String {
        let answer = question(line).answer(Vec::new());
        answer.lines().map(|line| line.split('\t').next().unwrap_or_default()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_the_definition_knows_is_offered() {
        for (line, is) in [
            ("di", "diff :4"),
            ("nucleus di", ":4"),
            ("-n prod di", "diff :4"),
            ("--out", "--output :4"),
            ("-o j", "json :4"),
            ("-o=j", "json :4"),
            ("--output=y", "yaml :4"),
            ("nucleus -qo n", "name :4"),
            ("diff --out", ":4"),
            ("capture --include", "--include-secrets :4"),
            ("capture --include-secrets --include", ":4"),
            ("--color a", "auto always :4"),
            ("--storage-driver ", "secret configmap :4"),
            ("--status ready=", "ready=true ready=false ready=unknown :4"),
            ("--kube-con", "--kube-context :4"),
            ("--cont", "--context :4"),
            ("--from ", ":0"),
            ("-f ", ":0"),
            ("install-kubectl --to ", ":16"),
            ("completion ", "bash zsh fish powershell :4"),
            ("completion bash ", ":4"),
            ("man dif", "diff :4"),
            ("version ", ":4"),
            ("config c", "check :4"),
            ("config check ", ":0"),
            ("config check f --off", "--offline :4"),
            ("-- di", ":4"),
            ("--all-namespaces=", ":4"),
            ("--nonsense ", "check diff capture completion man install-kubectl version :4"),
        ] {
            let found = offered(line);
            // Commands to come may stand between these.
            let expected: Vec<&str> = is.split(' ').collect();
            let all_there = expected.iter().all(|word| found.split(' ').any(|one| one == *word));
            assert!(found == is || (line == "--nonsense " && all_there), "{line}: {found}");
        }
        assert!(offered("-").starts_with("-n --namespace -A "), "{}", offered("-"));
        assert_eq!(Question::new(&[]).answer(Vec::new()), ":4\n");
    }

    #[test]
    fn what_a_cluster_knows_is_asked() {
        let names = |words: &[&str]| Some(Ask::Releases(words.iter().map(|&word| word.to_owned()).collect()));
        for (line, ask) in [
            ("", names(&[])),
            ("nuc", names(&[])),
            ("nucleus ", names(&["nucleus"])),
            ("diff nucleus w", names(&["nucleus"])),
            ("-A diff ", names(&[])),
            ("capture --to f ", names(&[])),
            ("-- ", names(&[])),
            ("history ", names(&[])),
            ("history nucleus ", None),
            ("-n ", Some(Ask::Namespaces)),
            ("--namespace=k", Some(Ask::Namespaces)),
            ("diff --context ", Some(Ask::Contexts)),
            ("--kube-context=", Some(Ask::Contexts)),
            ("nucleus --revision ", Some(Ask::Revisions("nucleus".to_owned()))),
            ("--revision ", None),
            ("version ", None),
            ("-o ", None),
        ] {
            assert_eq!(question(line).ask, ask, "{line}");
        }
    }

    #[test]
    fn where_to_ask_is_kept_from_the_line() {
        let question = question("diff -n prod --kube-context=c --show-all -o json --token t -A web ");
        let place: Vec<_> = question.place.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(place, ["--namespace=prod", "--context=c", "--token=t", "--all-namespaces=true"]);
    }

    #[test]
    fn what_would_break_the_lines_is_not_offered() {
        let asked =
            vec![Candidate::new("web", "deployed\tin\nprod"), Candidate::new("w b", ""), Candidate::new("w\nb", "")];
        assert_eq!(question("w").answer(asked), "web\tdeployed in prod\n:4\n");
        let question = question("nucleus --revision ");
        assert_eq!(question.answer(vec![Candidate::new("12", ""), Candidate::new("11", "")]), "12\n11\n:36\n");
    }
}
