//! The repository keeps its own word: imports point down, the core is pure, versions agree, transcripts are real.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The code of a file, without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned()
}

/// The top-level modules that a file names by `crate::`.
fn imports(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = text
        .split("crate::")
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn imports_point_down() {
    // What the files of a layer may name, lowest layer first (CONTRIBUTING.md, "How the code reads").
    let may: &[(&str, &[&str])] = &[
        ("src/drift/", &["drift"]),
        ("src/cluster/", &["cluster", "config", "drift", "env"]),
        ("src/output/", &["config", "drift", "output", "settings"]),
        ("src/cli.rs", &["cli", "drift"]),
        ("src/helm.rs", &["config", "drift", "interrupt"]),
        ("src/interrupt.rs", &[]),
        ("src/env.rs", &[]),
        ("src/files.rs", &["config", "drift"]),
        ("src/settings.rs", &["cli", "drift"]),
        ("src/config.rs", &["cli", "complete", "drift", "env", "links", "settings"]),
        ("src/complete.rs", &["cli"]),
        ("src/links.rs", &[]),
        ("src/man.rs", &["cli"]),
        ("src/task.rs", &["drift"]),
        ("src/ledger.rs", &["drift", "task"]),
        ("src/case.rs", &["drift", "ledger", "task"]),
    ];
    for path in sources(&root().join("src")) {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let text = code(&path);
        for (_, allowed) in may.iter().filter(|(prefix, _)| name.starts_with(prefix)) {
            for import in imports(&text) {
                assert!(allowed.contains(&import), "{name} names crate::{import}, which lies above it or beside it");
            }
        }
    }
}

#[test]
fn the_core_is_pure() {
    let impure = [
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::io",
        "tokio",
        "kube::",
        "SystemTime",
        "Instant::now",
        "Timestamp::now",
        "tracing",
        "println!",
        "async fn",
    ];
    for path in sources(&root().join("src/drift")) {
        let text = code(&path);
        let code_lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code_lines {
            for word in impure {
                let reads_memory = word == "std::io" && path.ends_with("payload.rs"); // unpacking reads from a slice
                assert!(reads_memory || !line.contains(word), "{}: {line}", path.display());
            }
        }
    }
}

#[test]
fn the_version_stands_in_one_place() {
    let output = Command::new(env!("CARGO_BIN_EXE_drift")).arg("version").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("drift {}\n", env!("CARGO_PKG_VERSION")));
    // Helm wants SemVer without `v` in plugin.yaml, krew with it.
    let version = env!("CARGO_PKG_VERSION");
    let plugin = fs::read_to_string(root().join("plugin.yaml")).unwrap();
    assert!(plugin.contains(&format!("\nversion: \"{version}\"\n")), "plugin.yaml: {plugin}");
    let manifest = fs::read_to_string(root().join("krew/drift.yaml")).unwrap();
    assert!(manifest.contains(&format!("\n  version: v{version}\n")), "krew/drift.yaml: {manifest}");
    for line in manifest.lines().filter(|line| line.trim_start().starts_with("uri: ")) {
        assert!(line.contains(&format!("/v{version}/drift-{version}-")), "krew/drift.yaml: {line}");
    }
}

/// Helm 3 loads no plugin at all while one has a field that it does not know (helm/helm `pkg/plugin/plugin.go`, 3.0).
#[test]
fn every_helm_reads_plugin_yaml() {
    let text = fs::read_to_string(root().join("plugin.yaml")).unwrap();
    let keys: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with([' ', '#']) && line.contains(':'))
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(keys, ["name", "version", "usage", "description", "command", "hooks"]);
}

/// Under `<!-- transcript -->` the block's lines after `$ ` are commands, and what is below each is what it prints on a terminal
/// of 112 columns. `DRIFT_WRITE_TRANSCRIPTS=1` writes them anew.
#[test]
fn transcripts_are_what_the_program_prints() {
    const OPENS: &str = "<!-- transcript -->\n```console\n";
    const CLOSES: &str = "```\n";
    let write = std::env::var_os("DRIFT_WRITE_TRANSCRIPTS").is_some();
    let program = Path::new(env!("CARGO_BIN_EXE_drift")).parent().unwrap().display();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let mut seen = 0;
    for document in ["README.md", "docs/comparison.md", "docs/sweep.md"] {
        let file = root().join(document);
        let text = fs::read_to_string(&file).unwrap();
        let mut pieces = text.split(OPENS);
        let mut anew = pieces.next().unwrap().to_owned();
        for piece in pieces {
            let (block, after) = piece.split_once(CLOSES).unwrap();
            let mut printed = String::new();
            for line in block.lines().filter(|line| line.starts_with("$ ")) {
                let command = line.trim_start_matches("$ ");
                let mut shell = Command::new("bash");
                shell.args(["-c", command]).env_clear().env("PATH", &path).env("COLUMNS", "112").current_dir(root());
                let output = shell.output().unwrap();
                assert!(output.stderr.is_empty(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
                printed.push_str(&format!("{line}\n{}", String::from_utf8(output.stdout).unwrap()));
            }
            if !write {
                assert!(block == printed, "{document} differs from what is printed:\n{printed}");
            }
            anew.push_str(&format!("{OPENS}{printed}{CLOSES}{after}"));
            seen += 1;
        }
        if write {
            fs::write(&file, anew).unwrap();
        }
    }
    assert!(seen > 0, "no document has a transcript");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    documents.extend(fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if file.contains(':') {
                continue;
            }
            let to = if file.is_empty() { document.clone() } else { document.with_file_name("").join(file) };
            assert!(to.exists(), "{}: {link}", document.display());
            let there = heading.is_empty() || headings(&fs::read_to_string(&to).unwrap()).any(|name| name == heading);
            assert!(there, "{}: no heading for {link}", document.display());
        }
    }
}

/// The names that GitHub gives to headings.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        words.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
    })
}
