//! What the help of each command ends with: lines to try, and exit codes.

/// Exit codes of what judges, of what corrects, and of what does something else.
const VERDICT: &str =
    "Exit code: 0 all ready, 1 something is not (drift, a failed or stuck release), 2 it could not be told.";
const CORRECTED: &str = "Exit code: 2 when something was refused or failed; else that of the last check, or of the first where nothing was to be done \
     (--dry-run, no consent).";
const DONE: &str = "Exit code: 0 done, 2 it could not be done.";

/// A line of the shell, `{}` in place of what was called, and what it is for.
type Example = (&'static str, &'static str);

/// For the help of the program itself.
const PROGRAM: &[Example] = &[
    ("{} nucleus -n prod", "is the release still what Helm says it is?"),
    ("{} -A", "all releases of the cluster"),
    ("{} -f clusters/prod -n prod", "plain manifests: is the cluster still as they say?"),
    ("{} diff nucleus -n prod", "what differs, line by line"),
    ("{} history nucleus -n prod", "which revision is it really? was it rolled back by hand?"),
    ("{} correct nucleus --dry-run", "how it would get back to what Helm says"),
    ("{} -A -o json", "for a program; -o name for xargs"),
    ("{} capture nucleus --to FILE", "keep the evidence; --from FILE judges it anywhere"),
];

/// For the help of each command.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "check",
        &[
            ("{} check nucleus -n prod", "one release; `check` may be left out"),
            ("{} check diff", "a release that is called as a command is"),
            ("{} check -A --status ready=false", "only what is not ready"),
            ("{} check nucleus --show-all", "with what is expected, and what was not compared"),
            ("{} check -A -o json", "for a program"),
        ],
    ),
    (
        "diff",
        &[
            ("{} diff nucleus -n prod", "one release"),
            ("{} diff -A", "all releases of the cluster"),
            ("{} diff -f app.yaml", "manifests instead of a release"),
            ("{} diff nucleus --color always | less -R", "page by page"),
        ],
    ),
    (
        "history",
        &[
            ("{} history nucleus -n prod", "revisions, and how far the cluster is from each"),
            ("{} history nucleus -o json", "for a program"),
        ],
    ),
    (
        "correct",
        &[
            ("{} correct nucleus -n prod --dry-run", "how it would get back to what Helm says"),
            ("{} correct nucleus -n prod", "the same, asked for consent, and done"),
            ("{} correct nucleus --method patch --yes", "finding by finding, without helm and without a question"),
        ],
    ),
    (
        "config check",
        &[
            ("{} config check drift.yaml", "is it valid, and what does each rule cover now?"),
            ("{} config check drift.yaml --offline", "is it valid? no cluster is asked"),
        ],
    ),
    (
        "capture",
        &[
            ("{} capture -A --to evidence.drift", "every answer the check reads; values of Secrets are tokens"),
            ("{} -A --from evidence.drift", "the same check on the same answers, anywhere"),
        ],
    ),
    (
        "completion",
        &[
            ("source <(drift completion bash)", "in ~/.bashrc"),
            ("drift completion zsh >\"${fpath[1]}/_drift\"", "once"),
            ("drift completion fish >~/.config/fish/completions/drift.fish", "once"),
            ("drift completion powershell | Out-String | Invoke-Expression", "in $PROFILE"),
        ],
    ),
    (
        "man",
        &[
            ("{} man | man -l -", "read the page of the program"),
            ("{} man diff | man -l -", "read the page of a command"),
            ("{} man --to ~/.local/share/man/man1", "install them all: man drift, man drift-diff"),
        ],
    ),
    (
        "install-kubectl",
        &[
            ("{} install-kubectl", "then: kubectl drift, with completion"),
            ("{} install-kubectl --to ~/bin", "into a directory of your choice"),
        ],
    ),
    ("version", &[("{} version", "as in: drift 1.2.3")]),
];

pub(super) fn of_program(called: &str) -> String {
    format!("{}\n\n{VERDICT}", examples(called, PROGRAM))
}

pub(super) fn add(mut command: clap::Command, called: &str) -> clap::Command {
    for (name, lines) in EXAMPLES {
        let mut help = examples(called, lines);
        let codes = match *name {
            "check" | "diff" => Some(VERDICT),
            "correct" => Some(CORRECTED),
            "history" | "capture" | "config check" => Some(DONE),
            _ => None,
        };
        help.extend(codes.map(|codes| format!("\n\n{codes}")));
        command = match name.split_once(' ') {
            None => command.mut_subcommand(*name, |verb| verb.after_help(help)),
            Some((name, verb)) => {
                command.mut_subcommand(name, |group| group.mut_subcommand(verb, |verb| verb.after_help(help)))
            }
        };
    }
    command
}

/// Lines and meanings, each in its column.
fn examples(called: &str, lines: &[Example]) -> String {
    let typed: Vec<String> = lines.iter().map(|(line, _)| line.replace("{}", called)).collect();
    let width = typed.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    let mut text = "Examples:".to_owned();
    for (line, (_, meaning)) in typed.iter().zip(lines) {
        text.push_str(&format!("\n  {line:width$}   {meaning}"));
    }
    text
}
