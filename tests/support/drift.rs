//! One run of `drift` in a namespace of the control plane, and what it said; a folder of files and a chart for it. Judges nothing.

use super::control_plane::Helm;
use super::namespace::Namespace;
use super::process;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest that one check may take.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// The report of `-o json`.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    /// Of the first release: `verdict change Kind/name path cause manager`, a line each.
    pub(crate) fn findings(&self) -> Vec<String> {
        let report = self.json();
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let line = |finding: &Value| {
            let object = &finding["object"];
            format!(
                "{} {} {}/{} {} {} {}",
                text(&finding["verdict"]),
                text(&finding["change"]),
                text(&object["kind"]),
                text(&object["name"]),
                text(&finding["path"]),
                text(&finding["cause"]),
                text(&finding["manager"]["name"])
            )
        };
        report["releases"][0]["findings"].as_array().into_iter().flatten().map(line).collect()
    }

    /// Messages of the first release's notices that have this reason.
    pub(crate) fn notices(&self, reason: &str) -> Vec<String> {
        let report = self.json();
        let notices = report["releases"][0]["notices"].as_array().into_iter().flatten();
        notices
            .filter(|notice| notice["reason"] == reason)
            .map(|notice| notice["message"].as_str().unwrap().to_owned())
            .collect()
    }

    /// How often the cluster was asked, by the log of `-v`.
    pub(crate) fn requests(&self) -> usize {
        let number = self.stderr.split("requests=").nth(1).unwrap_or_else(|| panic!("no count: {}", self.stderr));
        number.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    }
}

impl Namespace<'_> {
    /// Runs the program as it is now; `input` is its standard input.
    pub(crate) fn drift(&self, arguments: &[&str], input: &str) -> Said {
        self.drift_as(None, arguments, input)
    }

    /// The same with another kubeconfig.
    pub(crate) fn drift_as(&self, kubeconfig: Option<&PathBuf>, arguments: &[&str], input: &str) -> Said {
        let mut command = self.command(env!("CARGO_BIN_EXE_drift"), Helm::Four);
        command.args(arguments);
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let finished = process::run(&mut command, input, LIMIT).unwrap();
        let code = finished.code.unwrap_or_else(|| panic!("ended by a signal: {}", finished.stderr));
        Said { code, stdout: finished.stdout, stderr: finished.stderr }
    }

    /// A folder of these files, by name; gone with the control plane.
    pub(crate) fn files(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = self.plane.folder(&format!("files/{}/{name}", self.name));
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// A chart with this one template.
    pub(crate) fn chart(&self, template: &str) -> String {
        let chart = "apiVersion: v2\nname: demo\nversion: 1.0.0\nappVersion: \"1.4\"\n";
        let folder = self.files("chart", &[("Chart.yaml", chart), ("templates/all.yaml", template)]);
        folder.to_string_lossy().into_owned()
    }
}

/// Waits until something is so, at most 20 seconds: what controllers do takes a moment.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "not so after 20 s: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// managedFields times have one-second steps.
pub(crate) fn next_second() {
    std::thread::sleep(Duration::from_millis(1100));
}
