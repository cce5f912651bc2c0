//! What was corrected before, so that a fight is recognised: a file of JSON lines in the user's state directory. It holds names and
//! paths, never values. Without it nothing is lost but that memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::drift::object::ObjectKey;
use crate::drift::outcome::{StepOutcome, StepResult};
use crate::drift::release::ReleaseKey;

/// Lines that are kept.
const LONGEST: usize = 2000;

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    time: Timestamp,
    server: String,
    release: (String, String),
    group: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    path: Option<String>,
    /// Who was overruled; empty: nobody owned it.
    writer: String,
}

/// By object and path: who was overruled, and when last.
pub(super) type Before = BTreeMap<(ObjectKey, Option<String>), (String, Timestamp)>;

/// Corrections of one release.
pub(super) fn read(file: &Path, server: &str, release: &ReleaseKey) -> Before {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let own = lines
        .filter(|line| line.server == server && line.release.0 == release.namespace && line.release.1 == release.name);
    own.map(|line| {
        let key = ObjectKey { group: line.group, kind: line.kind, namespace: line.namespace, name: line.name };
        ((key, line.path), (line.writer, line.time))
    })
    .collect()
}

/// Adds what was done just now.
pub(super) fn add(file: &Path, server: &str, steps: &[StepOutcome], time: Timestamp) -> io::Result<()> {
    let mut lines: Vec<String> = Vec::new();
    for step in steps.iter().filter(|step| matches!(step.result, StepResult::Done(_))) {
        for finding in &step.findings {
            let key = finding.object.key();
            lines.push(serde_json::to_string(&Line {
                time,
                server: server.to_owned(),
                release: (step.release.namespace.clone(), step.release.name.clone()),
                group: key.group,
                kind: key.kind,
                namespace: key.namespace,
                name: key.name,
                path: finding.path.as_ref().map(ToString::to_string),
                writer: finding.manager.as_ref().map(|manager| manager.name.clone()).unwrap_or_default(),
            })?);
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    if let Some(directory) = file.parent() {
        super::private_directory(directory)?;
    }
    let before = fs::read_to_string(file).unwrap_or_default();
    let before: Vec<&str> = before.lines().collect();
    let kept = before.get(before.len().saturating_sub(LONGEST.saturating_sub(lines.len()))..).unwrap_or_default();
    let partial = file.with_extension(format!("{}.tmp", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut writer = options.open(&partial)?;
    for line in kept.iter().copied().chain(lines.iter().map(String::as_str)) {
        writeln!(writer, "{line}")?;
    }
    fs::rename(partial, file)
}
