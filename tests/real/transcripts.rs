//! Transcripts of a real cluster in the documents: what they show is what is printed.
//!
//! Under `<!-- transcript on NAMESPACE -->` the block's lines after `$ ` are commands, run in order on a release `web` of `tests/data/web` by
//! Helm 4, and what is below each is what it prints on a terminal of 112 columns. `DRIFT_WRITE_TRANSCRIPTS=1` writes them anew.

use crate::support::control_plane::{Helm, control_plane};
use crate::support::namespace::Namespace;
use crate::support::process::run;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const OPENS: &str = "<!-- transcript on ";
const FENCE: &str = " -->\n```console\n";
const CLOSES: &str = "```\n";

#[test]
fn transcripts_are_what_happens() {
    let write = std::env::var_os("DRIFT_WRITE_TRANSCRIPTS").is_some();
    let mut stages = BTreeMap::new();
    for document in ["README.md", "docs/correct.md"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
        let text = std::fs::read_to_string(&file).unwrap();
        let mut pieces = text.split(OPENS);
        let mut anew = pieces.next().unwrap().to_owned();
        let before = stages.len();
        for piece in pieces {
            let (name, rest) = piece.split_once(FENCE).unwrap();
            let (block, after) = rest.split_once(CLOSES).unwrap();
            let stage = stages.entry(name.to_owned()).or_insert_with(|| Stage::install(name));
            let commands = block.lines().filter(|line| line.starts_with("$ "));
            let printed: String = commands.map(|line| format!("{line}\n{}", stage.say(&line[2..]))).collect();
            assert!(write || block == printed, "{document} differs from what happens:\n{printed}");
            anew.push_str(&format!("{OPENS}{name}{FENCE}{printed}{CLOSES}{after}"));
        }
        assert!(stages.len() > before, "{document} has no transcript");
        if write {
            std::fs::write(&file, anew).unwrap();
        }
    }
}

struct Stage {
    namespace: Namespace<'static>,
}

impl Stage {
    fn install(name: &str) -> Self {
        let namespace = control_plane().namespace_called(name);
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/web");
        namespace.helm(Helm::Four, &["install", "web", chart, "--wait=legacy"]).unwrap();
        std::thread::sleep(Duration::from_secs(2)); // Helm's window ends two seconds after it wrote the record
        Self { namespace }
    }

    /// What a shell prints, with what differs from run to run as in the documents.
    fn say(&self, line: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_drift")).parent().unwrap().display();
        let mut shell = self.namespace.command("bash", Helm::Four);
        shell.env("COLUMNS", "112").args(["-c", &format!("PATH={program}:$PATH; {{ {line}\n}} 2>&1")]);
        let printed = run(&mut shell, "", Duration::from_secs(180)).unwrap().stdout;
        let home = control_plane().folder("home").display().to_string();
        printed.split_inclusive('\n').map(|line| self.timeless(&line.replace(&home, "~"))).collect()
    }

    fn timeless(&self, line: &str) -> String {
        let server = control_plane().server();
        let line = line.replace(server, "https://k8s.example:6443").replace("(context test)", "(context prod)");
        if let Some((path, name)) = line.split_once("/evidence/") {
            let what = name.split_once('-').unwrap().1;
            return format!("{path}/evidence/20261130T030000Z-{what}");
        }
        // The age of a finding.
        match line.trim_end().rsplit_once(' ') {
            Some((rest, age)) if age.ends_with('s') && age[..age.len() - 1].parse::<u32>().is_ok() => {
                format!("{rest} 20s\n")
            }
            _ => line,
        }
    }
}
