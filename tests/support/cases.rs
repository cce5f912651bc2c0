//! Runs the drift cases of `tests/data/cases` (their README has the format): installs what the case renders with a real
//! Helm, does what the case says happened, runs `drift` once and compares the report with what the case expects. What is
//! expected is written down in the case; nothing here calls the code that is judged.

use super::control_plane::{ControlPlane, Helm, control_plane};
use super::namespace::Namespace;
use super::process::{Finished, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Helper functions for a case's steps. They write as field manager `helm`, so that the records stay Helm's own by their
/// managedFields.
const SHELL: &str = r#"
set -euo pipefail
# record_json REVISION: the decoded release record
record_json() { kubectl get secret "sh.helm.release.v1.$RELEASE.v$1" -o jsonpath='{.data.release}' | base64 -d | base64 -d | gunzip; }
# write_record REVISION < JSON: puts a record's payload back, labels untouched
write_record() { local p; p=$(gzip -c | base64 -w0 | base64 -w0); kubectl patch secret "sh.helm.release.v1.$RELEASE.v$1" --field-manager=helm --type=merge --patch-file /dev/stdin >/dev/null <<<"{\"data\":{\"release\":\"$p\"}}"; }
# set_status REVISION STATUS: payload and label, as Helm writes them
set_status() { record_json "$1" | jq --arg s "$2" '.info.status=$s' | write_record "$1"; kubectl label --overwrite --field-manager=helm secret "sh.helm.release.v1.$RELEASE.v$1" "status=$2" >/dev/null; }
# copy_record FROM TO: a new revision record that is a copy of another
copy_record() {
  local p; p=$(record_json "$1" | jq --argjson v "$2" '.version=$v' | gzip -c | base64 -w0 | base64 -w0)
  kubectl get secret "sh.helm.release.v1.$RELEASE.v$1" -o json | jq --arg p "$p" --arg v "$2" --arg n "sh.helm.release.v1.$RELEASE.v$2" \
    'del(.metadata.uid,.metadata.resourceVersion,.metadata.creationTimestamp,.metadata.managedFields) | .metadata.name=$n | .metadata.labels.version=$v | .data.release=$p' | kubectl create --field-manager=helm -f - >/dev/null
}
"#;

/// How many cases are worked on at a time by one test; the control plane bounds all of them together.
const WORKERS: usize = 8;

/// One file of `tests/data/cases`.
pub(crate) struct Case {
    /// The file's name without its ending.
    pub(crate) id: String,
    pub(crate) body: Value,
}

impl Case {
    /// All cases, by name.
    pub(crate) fn all() -> Vec<Case> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
        let mut cases: Vec<Case> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
            .map(|path| {
                let text = fs::read_to_string(&path).unwrap();
                let body = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                Case { id: path.file_stem().unwrap().to_string_lossy().into_owned(), body }
            })
            .collect();
        cases.sort_by(|one, other| one.id.cmp(&other.id));
        cases
    }

    /// A text of the case, empty when it has none.
    fn text(&self, key: &str) -> &str {
        self.body[key].as_str().unwrap_or_default()
    }

    /// A list of words of the case.
    fn words(&self, key: &str) -> Option<Vec<&str>> {
        Some(self.body[key].as_array()?.iter().filter_map(Value::as_str).collect())
    }

    fn runs_with(&self, helm: Helm) -> bool {
        self.body["helm"].as_array().is_none_or(|majors| majors.contains(&json!(helm.major())))
    }
}

/// Runs every case that names this Helm. Prints a line for each on stderr and panics with all problems. `DRIFT_CASES` (a glob) takes a part of them,
/// `DRIFT_BIN` another program.
pub(crate) fn run_all(helm: Helm) {
    let wanted = std::env::var("DRIFT_CASES").unwrap_or_else(|_| "*".to_owned());
    let cases: Vec<Case> =
        Case::all().into_iter().filter(|case| case.runs_with(helm) && matches(&wanted, &case.id)).collect();
    let plane = control_plane();
    let queue = Mutex::new(cases.iter());
    let results: Mutex<BTreeMap<&str, Vec<String>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(case) = queue.lock().unwrap().next() else { break };
                    let started = Instant::now();
                    let problems = run_case(plane, case, helm).unwrap_or_else(|problem| vec![problem]);
                    let verdict = if problems.is_empty() { "ok   " } else { "FAIL " };
                    let seconds = started.elapsed().as_secs_f64();
                    let lines: String = problems.iter().map(|problem| format!("\n      {problem}")).collect();
                    say(&format!("{verdict} {} helm {} ({seconds:.1} s){lines}", case.id, helm.major()));
                    results.lock().unwrap().insert(&case.id, problems);
                }
            });
        }
    });
    let results = results.into_inner().unwrap();
    let failed: Vec<String> = results
        .iter()
        .filter(|(_, problems)| !problems.is_empty())
        .map(|(id, problems)| format!("{id} helm {}\n    {}", helm.major(), problems.join("\n    ")))
        .collect();
    say(&format!("{} passed, {} failed with Helm {}", results.len() - failed.len(), failed.len(), helm.major()));
    assert!(!results.is_empty() || wanted != "*", "no case was run");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Past the test harness, which keeps what a test prints until it fails: this is progress, and takes minutes.
pub(crate) fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// The problems of one case, none when all is as expected; an error when the case itself could not be carried out.
fn run_case(plane: &ControlPlane, case: &Case, helm: Helm) -> Result<Vec<String>, String> {
    // A case's own definitions are one for the whole cluster: Helm 3 and Helm 4 take turns.
    let lock = case.body["crds"].is_string().then(|| turn(&case.id));
    let _turn = lock.as_ref().map(|lock| lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    let _slot = plane.slot();
    let slug: String = case.id.chars().take(48).collect();
    let namespace = plane.namespace(&format!("case-{}-{}", slug.trim_end_matches('-'), helm.major()));
    let stage = Stage { case, helm, namespace, release: case.body["release"].as_str().unwrap_or("demo") };
    stage.set().map_err(|problem| format!("case broken: {problem}"))?;
    let finished = stage.check()?;
    let report: Option<Value> = serde_json::from_str(&finished.stdout).ok();
    let expect = stage.expand_all(&case.body["expect"]);
    Ok(match report {
        report if expect["stderr"].is_string() => refused(&expect, report.as_ref(), &finished),
        None => vec![format!("exit {:?}, no JSON: {}", finished.code, head(&finished.stderr, 300))],
        Some(report) => compare(&expect, &report, finished.code),
    })
}

fn turn(id: &str) -> std::sync::Arc<Mutex<()>> {
    static TURNS: LazyLock<Mutex<BTreeMap<String, std::sync::Arc<Mutex<()>>>>> = LazyLock::new(Mutex::default);
    TURNS.lock().unwrap().entry(id.to_owned()).or_default().clone()
}

/// One case in its namespace.
struct Stage<'a> {
    case: &'a Case,
    helm: Helm,
    namespace: Namespace<'a>,
    release: &'a str,
}

impl Stage<'_> {
    fn expand(&self, text: &str) -> String {
        text.replace("$NS", &self.namespace.name)
    }

    fn expand_all(&self, value: &Value) -> Value {
        serde_json::from_str(&self.expand(&value.to_string())).unwrap()
    }

    fn chart(&self) -> PathBuf {
        self.namespace.plane.folder(&format!("charts/{}", self.namespace.name))
    }

    /// Everything up to the check: definitions, what was there before, the release, what then happened.
    fn set(&self) -> Result<(), String> {
        let (case, namespace) = (self.case, &self.namespace);
        if case.body["crds"].is_string() {
            let text = self.expand(case.text("crds"));
            let apply = ["apply", "--server-side", "--force-conflicts", "-o", "json", "-f", "-"];
            let applied = namespace.kubectl(&apply, &text)?;
            self.served(&serde_json::from_str(&applied).map_err(|error| format!("crds: {error}"))?)?;
        }
        if case.body["prepare"].is_string() {
            namespace.kubectl(&["apply", "--field-manager=prepare", "-f", "-"], &self.expand(case.text("prepare")))?;
        }
        let chart = self.chart();
        let name = case.body["chart"].as_str().unwrap_or("demo");
        self.write("Chart.yaml", &format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"))?;
        self.write("manifest.yaml", &self.expand(case.text("manifest")))?;
        self.write("templates/all.yaml", r#"{{ .Files.Get "manifest.yaml" }}"#)?;
        for (name, text) in case.body["files"].as_object().into_iter().flatten() {
            self.write(name, &self.expand(text.as_str().unwrap_or_default()))?;
        }
        if case.body["install"].as_bool().unwrap_or(true) {
            let chart = chart.to_string_lossy();
            let mut arguments = vec!["install", self.release, &chart, "-n", &namespace.name];
            arguments.extend(case.words("installArgs").unwrap_or_default());
            namespace.helm(self.helm, &arguments)?;
        }
        if case.body["steps"].is_string() {
            std::thread::sleep(Duration::from_millis(1100)); // managedFields times have one-second steps
            let script = format!("{SHELL}{}", self.expand(case.text("steps")));
            let mut bash = self.command("bash");
            run(bash.args(["-c", &script]), "", Duration::from_secs(180))?
                .success()
                .map_err(|problem| format!("steps: {problem}"))?;
        }
        Ok(())
    }

    /// Waits until the kinds of these definitions are established, discovered and described.
    fn served(&self, applied: &Value) -> Result<(), String> {
        let definitions: Vec<&Value> = match applied["items"].as_array() {
            Some(items) => items.iter().collect(),
            None => vec![applied],
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        for definition in definitions {
            let (group, plural) = (&definition["spec"]["group"], &definition["spec"]["names"]["plural"]);
            for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
                let version =
                    format!("{}/{}", group.as_str().unwrap_or_default(), version["name"].as_str().unwrap_or_default());
                let seen = |path: String, text: &str| {
                    self.namespace
                        .plane
                        .request("GET", &path, &Value::Null)
                        .is_ok_and(|answer| answer.to_string().contains(text))
                };
                while !(seen(format!("/apis/{version}"), &plural.to_string())
                    && seen(format!("/openapi/v3/apis/{version}"), &plural.to_string().replace('"', "/")))
                {
                    if Instant::now() > deadline {
                        return Err(format!("{version} {plural} is not served"));
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.chart().join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// A program with what the steps and the check may use.
    fn command(&self, program: &str) -> std::process::Command {
        let mut command = self.namespace.command(program, self.helm);
        command
            .env("NS", &self.namespace.name)
            .env("RELEASE", self.release)
            .env("CHART", self.chart())
            .env("HELM_MAJOR", self.helm.major().to_string());
        command
    }

    /// Runs the program under test.
    fn check(&self) -> Result<Finished, String> {
        let program = std::env::var("DRIFT_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_drift").to_owned());
        let mut command = self.command(&program);
        if self.case.body["config"].is_string() {
            let file =
                self.namespace.plane.folder(&format!("configuration/{}", self.namespace.name)).join("drift.yaml");
            fs::write(&file, self.expand(self.case.text("config"))).map_err(|error| format!("drift.yaml: {error}"))?;
            command.arg("--config").arg(file);
        }
        let chart = self.chart();
        let mut words = self.case.words("args").unwrap_or_else(|| vec![self.release, "-n", "$NS"]);
        words.extend(["-o", "json"]);
        words.extend(self.case.words("extraArgs").unwrap_or_default());
        for word in words {
            command.arg(self.expand(word).replace("$CHART", &chart.to_string_lossy()));
        }
        run(&mut command, "", Duration::from_secs(120))
    }
}

/// What the report says otherwise than the case expects.
fn compare(expect: &Value, report: &Value, code: Option<i32>) -> Vec<String> {
    let mut problems = Vec::new();
    if !expect["exit"].is_null() && code.map(i64::from) != expect["exit"].as_i64() {
        problems.push(format!("exit {code:?}, expected {}", expect["exit"]));
    }
    if expect["releases"].is_array() {
        let pairs = |value: &Value| {
            let mut pairs: Vec<String> =
                list(&value["releases"]).map(|release| format!("{} {}", release["name"], release["reason"])).collect();
            pairs.sort();
            pairs
        };
        let (want, got) = (pairs(expect), pairs(report));
        if want != got {
            problems.push(format!("releases {got:?}, expected {want:?}"));
        }
    }
    let Some(release) = list(&report["releases"]).next() else {
        if expect["releases"].is_null() {
            problems.push(format!("no release in the report, errors {}", report["errors"]));
        }
        return problems;
    };
    for key in ["ready", "stalled", "reason", "revision", "mode", "suspended"] {
        if !expect[key].is_null() && !same(&release[key], &expect[key]) {
            problems.push(format!("{key} {}, expected {} ({})", release[key], expect[key], release["message"]));
        }
    }
    if let Some(part) = expect["message"].as_str()
        && !release["message"].as_str().unwrap_or_default().contains(part)
    {
        problems.push(format!("message {} lacks {part:?}", release["message"]));
    }
    for (key, count) in expect["objects"].as_object().into_iter().flatten() {
        if !same(&release["objects"][key], count) {
            problems.push(format!("objects.{key} {}, expected {count}", release["objects"][key]));
        }
    }
    for reason in list(&expect["notices"]) {
        if !list(&release["notices"]).any(|notice| notice["reason"] == *reason) {
            problems.push(format!("no notice {reason}"));
        }
    }
    if expect["findings"].is_array() {
        compare_findings(expect, release, &mut problems);
    }
    problems
}

fn compare_findings(expect: &Value, release: &Value, problems: &mut Vec<String>) {
    let mut left: Vec<&Value> = list(&release["findings"]).collect();
    for want in list(&expect["findings"]) {
        let verdict = want["verdict"].as_str().unwrap_or("drift");
        let is_it = |finding: &&Value| {
            let object = &finding["object"];
            let name = format!("{}/{}", object["kind"].as_str().unwrap_or("?"), object["name"].as_str().unwrap_or("?"));
            name == want["object"].as_str().unwrap_or_default()
                && finding["change"] == want["change"]
                && finding["path"].as_str().unwrap_or_default() == want["path"].as_str().unwrap_or_default()
                && finding["verdict"] == verdict
        };
        let Some(place) = left.iter().position(is_it) else {
            let path = want["path"].as_str().unwrap_or_default();
            problems.push(format!("not reported: {verdict} {} {} {path}", want["object"], want["change"]));
            continue;
        };
        let hit = left.remove(place);
        for key in ["desired", "live", "cause", "class", "severity", "masked"] {
            if want.get(key).is_some() && !same(&hit[key], &want[key]) {
                problems.push(format!("{}: {key} {}, expected {}", describe(hit), hit[key], want[key]));
            }
        }
        if want.get("manager").is_some() && hit["manager"]["name"] != want["manager"] {
            problems.push(format!("{}: manager {}, expected {}", describe(hit), hit["manager"], want["manager"]));
        }
    }
    for finding in left {
        let (verdict, change) = (&finding["verdict"], &finding["change"]);
        if verdict == "drift"
            || verdict == "unverified"
            || verdict == "expected" && (change == "changed" || change == "removed")
        {
            problems.push(format!("reported but not expected: {verdict} {}", describe(finding)));
        }
    }
}

/// For cases with `stderr`: trouble, said aloud (on stderr or in the report's `errors`), and nothing called ready.
fn refused(expect: &Value, report: Option<&Value>, finished: &Finished) -> Vec<String> {
    let mut problems = Vec::new();
    let report = report.unwrap_or(&Value::Null);
    let mut said = finished.stderr.clone();
    for error in list(&report["errors"]) {
        said.push('\n');
        said.push_str(error["message"].as_str().unwrap_or_default());
    }
    if finished.code.map(i64::from) != expect["exit"].as_i64() {
        problems.push(format!("exit {:?}, expected {}", finished.code, expect["exit"]));
    }
    if !said.contains(expect["stderr"].as_str().unwrap_or_default()) {
        problems.push(format!("error {:?} lacks {}", head(said.trim(), 300), expect["stderr"]));
    }
    for release in list(&report["releases"]).filter(|release| release["ready"] == "True") {
        problems.push(format!("called ready: {}", release["name"]));
    }
    problems
}

fn describe(finding: &Value) -> String {
    let object = &finding["object"];
    format!("{} {} {} {}", object["kind"], object["name"], finding["change"], finding["path"]).replace('"', "")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn head(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Equal, a number whatever the form it is written in.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.is_f64() != other.is_f64() && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

/// Whether a name fits a glob of which `*` is the only wildcard.
fn matches(glob: &str, name: &str) -> bool {
    match glob.split_once('*') {
        None => glob == name,
        Some((start, rest)) => name
            .strip_prefix(start)
            .is_some_and(|tail| (0..=tail.len()).any(|cut| tail.is_char_boundary(cut) && matches(rest, &tail[cut..]))),
    }
}

/// The report that a case expects, to the letter.
fn expected_report(expect: &Value) -> Value {
    let mut release =
        json!({"notices": list(&expect["notices"]).map(|reason| json!({"reason": reason})).collect::<Vec<_>>()});
    for key in ["ready", "stalled", "reason", "revision", "mode", "suspended", "message", "objects"] {
        release[key] = expect[key].clone();
    }
    let findings = list(&expect["findings"]).map(|want| {
        let (kind, name) = want["object"].as_str().unwrap().split_once('/').unwrap();
        let mut finding = want.clone();
        finding["object"] = json!({"kind": kind, "name": name});
        finding["manager"] = json!({"name": want["manager"]});
        finding["verdict"] = json!(want["verdict"].as_str().unwrap_or("drift"));
        finding
    });
    release["findings"] = findings.collect();
    let mut releases = vec![release];
    for other in list(&expect["releases"]).skip(1) {
        releases.push(other.clone());
    }
    if let Some(first) = list(&expect["releases"]).next() {
        releases[0]["name"] = first["name"].clone();
        releases[0]["reason"] = first["reason"].clone();
    }
    json!({"releases": releases, "errors": []})
}

#[test]
fn a_report_as_the_case_expects_it_passes_and_any_other_does_not() {
    for case in Case::all() {
        let expect = &case.body["expect"];
        if expect["stderr"].is_string() {
            continue;
        }
        let (report, code) =
            (expected_report(expect), expect["exit"].as_i64().map(|code| i32::try_from(code).unwrap()));
        let problems = |report: &Value, code| compare(expect, report, code);
        assert_eq!(problems(&report, code), Vec::<String>::new(), "{}", case.id);
        let spoiled = |what: &str, spoil: &dyn Fn(&mut Value)| {
            let mut other = report.clone();
            spoil(&mut other);
            assert!(!problems(&other, code).is_empty(), "{}: {what} is not noticed", case.id);
        };
        assert!(!problems(&report, Some(99)).is_empty(), "{}: another exit code is not noticed", case.id);
        spoiled("no release", &|report| report["releases"] = json!([]));
        for key in ["ready", "stalled", "reason", "revision", "mode", "suspended", "message"] {
            if !expect[key].is_null() {
                spoiled(key, &|report| report["releases"][0][key] = json!("other"));
            }
        }
        for (place, want) in list(&expect["findings"]).enumerate() {
            spoiled("a lost finding", &|report| {
                drop(report["releases"][0]["findings"].as_array_mut().unwrap().remove(place))
            });
            for (key, _) in want.as_object().unwrap() {
                spoiled(key, &|report| report["releases"][0]["findings"][place][key] = json!({"name": "other"}));
            }
        }
        if expect["findings"].is_array() {
            let object = json!({"kind": "Pod", "name": "other"});
            let more = json!({"object": object, "change": "added", "path": ".spec", "verdict": "drift"});
            spoiled("one finding more", &|report| {
                report["releases"][0]["findings"].as_array_mut().unwrap().push(more.clone())
            });
        }
    }
}

#[test]
fn a_refusal_is_said_aloud_and_calls_nothing_ready() {
    let expect = json!({"exit": 2, "stderr": "secrets"});
    let finished = |code, stderr: &str| Finished { code: Some(code), stdout: String::new(), stderr: stderr.to_owned() };
    let told = json!({"releases": [], "errors": [{"message": "secrets is forbidden"}]});
    let ready =
        json!({"releases": [{"name": "demo", "ready": "True"}], "errors": [{"message": "secrets is forbidden"}]});
    assert_eq!(refused(&expect, None, &finished(2, "error: secrets is forbidden")), Vec::<String>::new());
    assert_eq!(refused(&expect, Some(&told), &finished(2, "")), Vec::<String>::new());
    assert_eq!(refused(&expect, None, &finished(0, "")).len(), 2);
    assert_eq!(refused(&expect, Some(&ready), &finished(2, "")).len(), 1);
}

#[test]
fn a_glob_takes_a_part_of_the_cases() {
    assert!(matches("*", "state-in-sync") && matches("state-*", "state-in-sync") && matches("*-sync", "state-in-sync"));
    assert!(
        matches("s*in*c", "state-in-sync") && !matches("state", "state-in-sync") && !matches("*-in", "state-in-sync")
    );
}
