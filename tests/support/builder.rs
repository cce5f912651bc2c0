//! One test of the program against an API server of its own: what the cluster holds, what goes wrong, a run, and what is expected of
//! it. What a test does not name is expected to be empty. After each run it is asserted that only GETs were sent, that nothing
//! was asked that the server is not made for, and that neither stream shows a Secret's value, a token or a control character.

use super::apiserver::{Act, ApiServer, Asked, Objects, On};
use super::fixture::{Record, as_installed};
use super::process::{self, Finished};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const TOKEN: &str = "token-nobody-may-see";

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Test {
    pub(crate) server: ApiServer,
    /// The test's own, gone with it: kubeconfig, cache, whatever else.
    pub(crate) folder: PathBuf,
}

impl Test {
    /// A cluster that holds nothing; the kubeconfig's namespace is `shop`.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("fake-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        let test = Self { server: ApiServer::start(TOKEN), folder };
        test.write_kubeconfig(&json!({"server": format!("http://{}", test.server.address())}));
        test
    }

    /// `cluster`: what the kubeconfig says of the cluster.
    fn write_kubeconfig(&self, cluster: &Value) {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "fake", "cluster": cluster}],
            "users": [{"name": "limited", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "fake", "user": "limited", "namespace": "shop"}}],
        });
        fs::write(self.kubeconfig(), kubeconfig.to_string()).unwrap();
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// The cluster is far away, and this server is the proxy that leads there.
    pub(crate) fn far_away(self) -> Self {
        let proxy = format!("http://{}", self.server.address());
        self.write_kubeconfig(&json!({"server": "http://cluster.example:8080", "proxy-url": proxy}));
        self
    }

    /// A deployed revision in namespace `shop`, and all its objects as Helm wrote them.
    pub(crate) fn installed(self, name: &str, revision: u64, manifest: &str) -> Self {
        self.installed_record(&Record::new(name, revision, manifest))
    }

    /// The record, and all its objects as Helm wrote them.
    pub(crate) fn installed_record(self, record: &Record) -> Self {
        let objects = as_installed(&record.name, &record.namespace, &record.manifest);
        let test = self.holds(record.object());
        objects.into_iter().fold(test, Self::holds)
    }

    pub(crate) fn holds(self, object: Value) -> Self {
        self.server.change(|objects| objects.put(object));
        self
    }

    pub(crate) fn change(self, change: impl FnOnce(&mut Objects)) -> Self {
        self.server.change(change);
        self
    }

    pub(crate) fn when(self, on: On, act: Act) -> Self {
        self.server.fault(on, act);
        self
    }

    /// The program with this command line, the test's kubeconfig and cache, and no other environment.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drift"));
        command
            .args(line.split_whitespace())
            .env_clear()
            .env("HOME", &self.folder)
            .env("XDG_CACHE_HOME", self.folder.join("cache"))
            .env("KUBECONFIG", self.kubeconfig())
            .current_dir(&self.folder);
        command
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> Ran {
        self.run_command(&mut self.command(line))
    }

    #[track_caller]
    pub(crate) fn run_command(&self, command: &mut Command) -> Ran {
        let finished = process::run(command, "", LIMIT);
        let line: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        self.ran(
            &line.join(" "),
            finished.unwrap_or_else(|problem| panic!("{problem}\n{}", listed(&self.server.log()))),
        )
    }

    /// Looks at how a run ended.
    #[track_caller]
    pub(crate) fn ran(&self, line: &str, finished: Finished) -> Ran {
        let Finished { code, stdout, stderr } = finished;
        let ran = Ran {
            line: line.to_owned(),
            code,
            stdout,
            stderr,
            requests: self.server.log(),
            stdout_named: false,
            stderr_named: false,
            code_named: false,
        };
        let methods: BTreeSet<&str> = ran.requests.iter().map(|(asked, _)| asked.method.as_str()).collect();
        ran.check(methods.iter().all(|method| *method == "GET"), "something else than a GET was sent");
        let unprepared = self.server.unprepared();
        ran.check(unprepared.is_empty(), &format!("nobody prepared for {unprepared:?}"));
        for secret in self.secrets() {
            ran.check(!ran.stdout.contains(&secret) && !ran.stderr.contains(&secret), &format!("{secret:?} was shown"));
        }
        for text in [&ran.stdout, &ran.stderr] {
            let raw = text.chars().find(|c| drives_terminal(*c));
            ran.check(raw.is_none(), &format!("{raw:?} was written as it is"));
        }
        ran
    }

    /// What nobody may see: the token, and every value of a Secret there is, as it is stored and in clear.
    fn secrets(&self) -> BTreeSet<String> {
        let mut secrets = BTreeSet::from([TOKEN.to_owned()]);
        self.server.change(|objects| {
            for object in objects.0.iter().filter(|object| object["kind"] == "Secret") {
                for value in object["data"].as_object().into_iter().flat_map(serde_json::Map::values) {
                    let stored = value.as_str().unwrap_or_default();
                    // A part of a long one is as bad as the whole.
                    secrets.insert(stored.chars().take(48).collect());
                    let clear = STANDARD.decode(stored).unwrap_or_default();
                    secrets.insert(String::from_utf8_lossy(&clear).chars().take(48).collect());
                }
            }
        });
        secrets.retain(|secret| secret.len() > 3);
        secrets
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn drives_terminal(c: char) -> bool {
    c != '\n' && c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Files below a folder, in their order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

fn listed(requests: &[(Asked, u16)]) -> String {
    let line = |(asked, status): &(Asked, u16)| format!("  {} {} -> {status}\n", asked.method, asked.path);
    requests.iter().map(line).collect()
}

/// How a run ended. Its exit code has to be named, and what is not named of its streams has to be empty.
pub(crate) struct Ran {
    line: String,
    code: Option<i32>,
    stdout: String,
    stderr: String,
    requests: Vec<(Asked, u16)>,
    stdout_named: bool,
    stderr_named: bool,
    code_named: bool,
}

impl Ran {
    #[track_caller]
    pub(crate) fn exit(mut self, code: i32) -> Self {
        self.code_named = true;
        self.check(self.code == Some(code), &format!("the exit code is not {code}"));
        self
    }

    pub(crate) fn code(&self) -> i32 {
        self.code.unwrap_or(-1)
    }

    /// A signal ended it.
    #[track_caller]
    pub(crate) fn killed(mut self) -> Self {
        self.code_named = true;
        self.check(self.code.is_none(), "no signal ended it");
        self
    }

    #[track_caller]
    pub(crate) fn stdout(mut self, text: &str) -> Self {
        self.stdout_named = true;
        self.check(self.stdout == text, &format!("stdout is not\n{text}"));
        self
    }

    #[track_caller]
    pub(crate) fn stdout_has(mut self, parts: &[&str]) -> Self {
        self.stdout_named = true;
        for part in parts {
            self.check(self.stdout.contains(part), &format!("stdout lacks {part:?}"));
        }
        self
    }

    /// All of stderr: one line, which has these parts.
    #[track_caller]
    pub(crate) fn one_error(mut self, parts: &[&str]) -> Self {
        self.stderr_named = true;
        self.check(
            self.stderr.starts_with("error: ") && self.stderr.lines().count() == 1,
            "stderr is not one error line",
        );
        for part in parts {
            self.check(self.stderr.contains(part), &format!("stderr lacks {part:?}"));
        }
        self
    }

    #[track_caller]
    pub(crate) fn stderr(mut self, text: &str) -> Self {
        self.stderr_named = true;
        self.check(self.stderr == text, &format!("stderr is not\n{text}"));
        self
    }

    #[track_caller]
    pub(crate) fn stderr_has(mut self, parts: &[&str]) -> Self {
        self.stderr_named = true;
        for part in parts {
            self.check(self.stderr.contains(part), &format!("stderr lacks {part:?}"));
        }
        self
    }

    /// The report of `-o json`.
    #[track_caller]
    pub(crate) fn json(&mut self) -> Value {
        self.stdout_named = true;
        let report = serde_json::from_str(&self.stdout);
        self.check(report.is_ok(), "stdout is not JSON");
        report.unwrap()
    }

    /// The report of `-o yaml`.
    #[track_caller]
    pub(crate) fn yaml(&mut self) -> Value {
        self.stdout_named = true;
        let report = serde_saphyr::from_str(&self.stdout);
        self.check(report.is_ok(), "stdout is not YAML");
        report.unwrap()
    }

    /// Lines of stderr that begin so.
    pub(crate) fn lines_of_stderr(&self, beginning: &str) -> usize {
        self.stderr.lines().filter(|line| line.starts_with(beginning)).count()
    }

    /// Whether a text is in one of the streams.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.stdout.contains(text) || self.stderr.contains(text)
    }

    /// What `-o json` says of a release: its reason and all else.
    #[track_caller]
    pub(crate) fn release(&mut self, name: &str) -> Value {
        let report = self.json();
        let found = report["releases"].as_array().unwrap().iter().find(|release| release["name"] == name).cloned();
        self.check(found.is_some(), &format!("no release {name} is reported"));
        found.unwrap()
    }

    /// `-o json` gives this release this reason, and a message with these parts.
    #[track_caller]
    pub(crate) fn reason(mut self, name: &str, reason: &str, message: &[&str]) -> Self {
        let release = self.release(name);
        self.check(release["reason"] == reason, &format!("the reason of {name} is not {reason}"));
        for part in message {
            let has = release["message"].as_str().unwrap().contains(part);
            self.check(has, &format!("the message of {name} lacks {part:?}"));
        }
        self
    }

    /// `-o json` has exactly these findings of a release, each as `change verdict cause Kind/name path`.
    #[track_caller]
    pub(crate) fn findings(mut self, name: &str, expected: &[&str]) -> Self {
        let release = self.release(name);
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let line = |finding: &Value| {
            let object = format!("{}/{}", text(&finding["object"]["kind"]), text(&finding["object"]["name"]));
            let words = [&finding["change"], &finding["verdict"], &finding["cause"]].map(text).join(" ");
            format!("{words} {object} {}", text(&finding["path"]))
        };
        let found: Vec<String> = release["findings"].as_array().unwrap().iter().map(line).collect();
        self.check(found == expected, &format!("the findings of {name} are {found:#?}"));
        self
    }

    /// `-o json` has exactly these entries in `errors`, each as its reason.
    #[track_caller]
    pub(crate) fn errors(mut self, expected: &[&str]) -> Self {
        let report = self.json();
        let found: Vec<&str> =
            report["errors"].as_array().unwrap().iter().map(|error| error["reason"].as_str().unwrap()).collect();
        self.check(found == expected, &format!("the errors are {found:?}"));
        self
    }

    /// Paths asked for, without queries, sorted: the order of parallel reads is nobody's.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.requests.iter().map(|(asked, _)| bare(&asked.path)).collect();
        paths.sort();
        paths
    }

    pub(crate) fn requests(&self) -> &[(Asked, u16)] {
        &self.requests
    }

    /// How often a path was asked for, whatever the query.
    #[track_caller]
    pub(crate) fn asked(self, path: &str, times: usize) -> Self {
        let count = self.requests.iter().filter(|(asked, _)| bare(&asked.path) == path).count();
        self.check(count == times, &format!("{path} was asked for {count} times, not {times}"));
        self
    }

    #[track_caller]
    fn check(&self, holds: bool, problem: &str) {
        assert!(
            holds,
            "{problem}\n$ drift {}\nexit code: {:?}\nstdout:\n{}\nstderr:\n{}\nrequests:\n{}",
            self.line,
            self.code,
            self.stdout,
            self.stderr,
            listed(&self.requests)
        );
    }
}

fn bare(path: &str) -> String {
    path.split('?').next().unwrap().to_owned()
}

impl Drop for Ran {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.check(self.code_named, "the test names no exit code");
        self.check(self.stdout_named || self.stdout.is_empty(), "stdout is not empty");
        self.check(self.stderr_named || self.stderr.is_empty(), "stderr is not empty");
    }
}
