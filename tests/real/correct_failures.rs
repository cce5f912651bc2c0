//! `drift correct` where it must not act, and where acting goes wrong: the remedy is named, what was done and what is left is told, and
//! the evidence is intact.

use super::correct::{FLAVOURS, FOUR_SERVER, Flavour, Stage, THREE, say, unpacked};
use crate::support::control_plane::{Helm, control_plane};
use crate::support::kubelet;
use crate::support::process::run;
use crate::support::proxy::Proxy;
use crate::support::record;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(240);

const SETTINGS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {v: "{{ .Values.v }}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {v: "{{ .Values.v }}"}
"#;

fn drifted(name: &str, flavour: Flavour, template: &str) -> Stage {
    let stage = Stage::install(name, flavour, template, &[]);
    std::thread::sleep(Duration::from_secs(2));
    drift(&stage);
    stage
}

fn drift(stage: &Stage) {
    stage.edit("configmap/settings", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
}

fn settings(stage: &Stage) -> String {
    stage.get("configmap/settings")["data"]["v"].as_str().unwrap_or_default().to_owned()
}

/// Reason and message of the refusal, which changed nothing and is trouble.
fn refused(stage: &Stage, command: &mut Command, words: &[&str]) -> (String, String) {
    let finished = run(command.args(["correct", "demo", "-o", "json", "--yes"]).args(words), "", LIMIT).unwrap();
    assert_eq!(finished.code, Some(2), "{}{}", finished.stdout, finished.stderr);
    let plan: Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|_| panic!("{words:?}: {}{}", finished.stdout, finished.stderr));
    let refusal = &plan["releases"][0]["refusal"];
    assert!(stage.evidence().is_empty(), "{plan}");
    let text = |key: &str| refusal[key].as_str().unwrap_or_else(|| panic!("{plan}")).to_owned();
    let (reason, message) = (text("reason"), text("message"));
    say(&format!("refused | {reason} | {message}"));
    (reason, message)
}

/// A helm that says it is of this version.
fn fake_helm(stage: &Stage, version: &str) -> std::path::PathBuf {
    let file = stage.state.join(format!("helm-{version}"));
    fs::write(&file, format!("#!/bin/sh\necho {version}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

#[test]
fn each_refusal_by_state_names_the_remedy_and_changes_nothing() {
    let _slot = control_plane().slot();
    let stage = drifted("states", THREE, SETTINGS);
    for (status, reason, remedy) in [
        ("pending-install", "PendingInstall", "helm uninstall demo"),
        ("pending-upgrade", "PendingUpgrade", "helm "),
        ("pending-rollback", "PendingRollback", "helm "),
        ("uninstalling", "Uninstalling", "helm uninstall demo"),
        ("uninstalled", "Uninstalled", "helm rollback demo 1"),
        ("superseded", "Superseded", "helm rollback demo 1"),
        ("paused", "Unverified", "helm rollback demo 1"),
    ] {
        record::set_status(&stage.namespace, "demo", 1, status);
        let (told, message) = refused(&stage, &mut stage.drift(), &[]);
        assert_eq!(told, reason, "{status}");
        assert!(message.contains(remedy), "{status}: {message}");
    }
    record::set_status(&stage.namespace, "demo", 1, "deployed");
    let name = record::name("demo", 1);
    stage.kubectl(&["label", "--overwrite", "--field-manager=helm", "secret", &name, "status=failed"]);
    let (reason, message) = refused(&stage, &mut stage.drift(), &[]);
    assert_eq!(reason, "RevisionMismatch");
    assert!(message.contains("kubectl label"), "{message}");
    stage.kubectl(&["label", "--overwrite", "--field-manager=helm", "secret", &name, "status=deployed"]);

    let whole = record::read(&stage.namespace, "demo", 1);
    for (manager, remedy) in [
        ("helm-controller", "flux reconcile helmrelease demo"),
        ("terraform-provider-helm_v3", "terraform apply"),
        ("kubectl-edit", "helm rollback demo 1"),
    ] {
        // Another content makes another owner.
        let mut changed = whole.clone();
        changed["info"]["description"] = json!(manager);
        record::write(&stage.namespace, "demo", 1, &changed, manager);
        let (reason, message) = refused(&stage, &mut stage.drift(), &[]);
        assert_eq!(reason, "OtherController");
        assert!(message.contains(remedy), "{message}");
    }
    record::write(&stage.namespace, "demo", 1, &whole, "helm");
    stage.kubectl(&[
        "patch",
        "secret",
        &name,
        "--field-manager=helm",
        "--type=merge",
        "-p",
        r#"{"data":{"release":"AAAA"}}"#,
    ]);
    let (reason, message) = refused(&stage, &mut stage.drift(), &[]);
    assert_eq!(reason, "Corrupt");
    assert!(message.contains("restore it from a backup"), "{message}");
    assert_eq!(settings(&stage), "9");
}

#[test]
fn each_refusal_by_means_names_the_remedy_and_changes_nothing() {
    let _slot = control_plane().slot();
    let stage = drifted("means", THREE, SETTINGS);
    let nowhere = control_plane().folder("nowhere");
    let (reason, message) = refused(&stage, stage.drift().env("PATH", &nowhere), &[]);
    assert_eq!(reason, "NoHelm");
    assert!(message.contains("HELM_BIN") && message.contains("--method patch"), "{message}");
    for (version, said) in [("v5.0.0", "does not know"), ("v3.12.3", "3.13 or newer"), ("canary", "no helm that runs")]
    {
        let mut command = stage.drift();
        command.env("PATH", &nowhere).env("HELM_BIN", fake_helm(&stage, version));
        let (reason, message) = refused(&stage, &mut command, &[]);
        assert_eq!(reason, "NoHelm");
        assert!(message.contains(said) && message.contains("HELM_BIN"), "{message}");
    }
    let chart = stage.chart.to_string_lossy().into_owned();
    stage.helm(&["upgrade", "demo", &chart, "--set", "v=2"]);
    std::thread::sleep(Duration::from_secs(2));
    drift(&stage);
    let (reason, message) = refused(&stage, stage.drift().env("HELM_MAX_HISTORY", "2"), &[]);
    assert_eq!(reason, "Prunes");
    assert!(message.contains("revision 1") && message.contains("--method patch"), "{message}");
    // An unusable HELM_BIN is no reason to stop: there is one on PATH.
    let planned =
        run(stage.drift().env("HELM_BIN", nowhere.join("helm")).args(["correct", "demo", "--dry-run"]), "", LIMIT);
    assert_eq!(planned.unwrap().code, Some(1));
    let sql = run(stage.drift().env("HELM_DRIVER", "sql").args(["correct", "demo", "--yes"]), "", LIMIT).unwrap();
    assert_eq!(sql.code, Some(2));
    assert!(sql.stderr.contains("not supported"), "{}", sql.stderr);
    // No terminal and no --yes: nothing is done, and the verdict is the first check's.
    let silent = stage.correct(&[]);
    assert_eq!(silent.code, Some(1), "{}", silent.stderr);
    assert!(silent.stdout.contains("\"kind\": \"DriftPlan\""), "{}", silent.stdout);
    assert!(silent.stderr.contains("--yes"), "{}", silent.stderr);
    assert_eq!(settings(&stage), "9");
    assert!(stage.evidence().is_empty());
}

#[test]
fn each_refusal_by_chart_names_the_remedy_and_changes_nothing() {
    let random = format!(
        "{SETTINGS}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: random}}\ndata: {{r: {{{{ randAlphaNum 8 | quote }}}}}}\n"
    );
    let _slot = control_plane().slot();
    let stage = drifted("random", THREE, &random);
    let (reason, message) = refused(&stage, &mut stage.drift(), &[]);
    assert_eq!(reason, "RendersOtherwise");
    assert!(message.contains("ConfigMap/random") && message.contains("--method reapply"), "{message}");
    let outcome = stage.corrected(&["--method", "reapply"]);
    assert_eq!(outcome["report"]["releases"][0]["reason"], "InSync", "{outcome}");

    // A server-side release is none for Helm 3.
    let stage = drifted("major", FOUR_SERVER, SETTINGS);
    let mut command = stage.namespace.command(env!("CARGO_BIN_EXE_drift"), Helm::Three);
    let (reason, message) = refused(&stage, command.env("XDG_STATE_HOME", &stage.state), &[]);
    assert_eq!(reason, "OtherMajor");
    assert!(message.contains("Helm 4"), "{message}");

    // With subcharts the record does not hold the chart.
    let stage = Stage::install("subcharts", THREE, SETTINGS, &[]);
    let sub = stage.chart.join("charts/sub");
    fs::create_dir_all(sub.join("templates")).unwrap();
    fs::write(sub.join("Chart.yaml"), "apiVersion: v2\nname: sub\nversion: 1.0.0\n").unwrap();
    fs::write(sub.join("templates/s.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sub}\n").unwrap();
    let chart = stage.chart.to_string_lossy().into_owned();
    stage.helm(&["upgrade", "demo", &chart]);
    std::thread::sleep(Duration::from_secs(2));
    drift(&stage);
    let (reason, message) = refused(&stage, &mut stage.drift(), &[]);
    assert_eq!(reason, "NoChart");
    assert!(message.contains("--chart") && message.contains("--method reapply"), "{message}");
    let outcome = stage.corrected(&["--chart", &chart]);
    assert_eq!(outcome["report"]["releases"][0]["reason"], "InSync", "{outcome}");
    // Another chart does not pass the gate.
    fs::write(stage.chart.join("values.yaml"), "v: 3\n").unwrap();
    drift(&stage);
    let finished = stage.correct(&["--yes", "--chart", &chart]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stdout.contains("RendersOtherwise"), "{}", finished.stdout);
    assert_eq!(settings(&stage), "9");
}

#[test]
fn what_could_not_be_told_is_left_alone() {
    let _slot = control_plane().slot();
    let stage = drifted("partial", THREE, SETTINGS);
    let extra = json!([{"op": "add", "path": "/data/extra", "value": "x"}]);
    stage.edit("configmap/other", &extra);
    stage.kubectl(&["patch", "configmap/other", "--type=merge", "-p", r#"{"metadata":{"managedFields":[{}]}}"#]);
    let (reason, message) = refused(&stage, &mut stage.drift(), &[]);
    assert_eq!(reason, "Unverified");
    assert!(message.contains("ConfigMap/other") && message.contains("--partial"), "{message}");
    let outcome = stage.corrected(&["--partial"]);
    assert_eq!(outcome["releases"][0]["method"], "patch", "{outcome}");
    assert_eq!(settings(&stage), "1");
    assert_eq!(stage.get("configmap/other")["data"]["extra"], "x");
    assert_eq!(outcome["report"]["releases"][0]["reason"], "Unverified");
}

#[test]
fn nothing_is_corrected_from_masked_values_nor_recreated_that_holds_data() {
    let _slot = control_plane().slot();
    let masked = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: masked-0123456789abcdef0123456789abcdef}\n";
    let stage = Stage::install("masked", THREE, masked, &[]);
    std::thread::sleep(Duration::from_secs(2));
    stage.edit("secret/login", &json!([{"op": "replace", "path": "/data/password", "value": "bGl2ZQ=="}]));
    let (reason, message) = refused(&stage, &mut stage.drift(), &["--discard-secret-values"]);
    assert_eq!(reason, "Masked");
    assert!(message.contains("backup"), "{message}");
    assert_eq!(stage.get("secret/login")["data"]["password"], "bGl2ZQ==");

    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: wanted, resources: {requests: {storage: 1Gi}}}\n";
    let stage = Stage::install("claim", THREE, claim, &[]);
    let mut live = stage.get("pvc/data");
    live["spec"]["storageClassName"] = json!("other");
    for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "finalizers"] {
        live["metadata"].as_object_mut().unwrap().remove(key);
    }
    stage.kubectl(&["delete", "pvc/data"]);
    stage.namespace.kubectl(&["create", "-f", "-"], &live.to_string()).unwrap();
    let (reason, message) = refused(&stage, &mut stage.drift(), &["--recreate", "PersistentVolumeClaim/data"]);
    assert_eq!(reason, "NeverRecreated");
    assert!(message.contains("data would go"), "{message}");
    assert_eq!(stage.get("pvc/data")["spec"]["storageClassName"], "other");
}

/// A Deployment whose pods never get ready, so that helm waits.
fn waiting() -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}, annotations: {{{}: Pending}}}}
    spec: {{containers: [{{name: web, image: "registry.example/web:1"}}]}}
---
{SETTINGS}
"#,
        kubelet::PHASE
    )
}

/// The last check, the step's message, and the evidence that is there whatever happened.
fn failed(stage: &Stage, finished: &crate::support::process::Finished) -> (Value, String) {
    assert_eq!(finished.code, Some(2), "{}{}", finished.stdout, finished.stderr);
    let outcome: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}{}", finished.stdout, finished.stderr));
    let step = &outcome["steps"][0];
    assert_eq!(step["result"], "failed", "{outcome}");
    let evidence = stage.evidence();
    assert_eq!(outcome["evidence"].as_str(), evidence.last().and_then(|file| file.to_str()), "{outcome}");
    assert!(unpacked(evidence.last().unwrap()).contains("\"9\""), "the evidence lacks what was there before");
    let message = step["message"].as_str().unwrap().to_owned();
    say(&format!(
        "failed | {} | {message} | then {}",
        stage.flavour.name(),
        outcome["report"]["releases"][0]["message"]
    ));
    (outcome, message)
}

#[test]
fn an_upgrade_whose_hook_fails_is_rolled_back_and_told_so() {
    let hook = format!(
        "{SETTINGS}---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {{helm.sh/hook: pre-upgrade}}\nspec:\n  backoffLimit: 0\n  template:\n    metadata: {{annotations: {{{}: Failed}}}}\n    spec: {{restartPolicy: Never, containers: [{{name: m, image: \"registry.example/m:1\"}}]}}\n",
        kubelet::PHASE
    );
    std::thread::scope(|scope| {
        for flavour in FLAVOURS {
            let hook = &hook;
            scope.spawn(move || {
                let _slot = control_plane().slot();
                let stage = drifted("atomic", flavour, hook);
                let finished = stage.correct(&["--yes", "--run-hooks", "--timeout", "30s"]);
                let (outcome, message) = failed(&stage, &finished);
                assert!(
                    message.contains("hooks failed") && message.contains("helm rolled back: revision 3 is deployed"),
                    "{message}"
                );
                assert_eq!(stage.history(), "1 superseded, 2 failed, 3 deployed");
                assert_eq!(outcome["report"]["releases"][0]["reason"], "InSync", "{outcome}");
            });
        }
    });
}

#[test]
fn a_helm_that_is_killed_half_way_is_told_with_the_way_out() {
    std::thread::scope(|scope| {
        for flavour in FLAVOURS {
            scope.spawn(move || {
                let _slot = control_plane().slot();
                let stage = drifted("killed", flavour, &waiting());
                // A helm that does not survive its own upgrade.
                let wrapper = stage.state.join("helm");
                let real = format!("helm{}", flavour.helm.major());
                fs::write(
                    &wrapper,
                    format!("#!/bin/sh\ncase \"$*\" in *--description*) {real} \"$@\" & sleep 6; kill -9 $!; kill -9 $$;; *) exec {real} \"$@\";; esac\n"),
                )
                .unwrap();
                fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
                let mut command = stage.drift();
                command.env("HELM_BIN", &wrapper).args(["correct", "demo", "-o", "json", "--yes"]);
                let finished = run(&mut command, "", LIMIT).unwrap();
                let (outcome, message) = failed(&stage, &finished);
                assert!(message.contains("killed half-way (signal 9)") && message.contains("pending-upgrade"), "{message}");
                let release = &outcome["report"]["releases"][0];
                assert_eq!(release["reason"], "PendingUpgrade", "{outcome}");
                assert!(release["message"].as_str().unwrap().contains("helm rollback demo 1"), "{release}");
                // The remedy it names works.
                stage.helm(&["rollback", "demo", "1"]);
                assert!(stage.history().ends_with("3 deployed"), "{}", stage.history());
            });
        }
    });
}

#[test]
fn a_signal_reaches_helm_and_is_waited_for() {
    for signal in ["TERM", "INT"] {
        let _slot = control_plane().slot();
        let stage = drifted(&format!("signal-{}", signal.to_lowercase()), THREE, &waiting());
        let mut command = stage.drift();
        command.args(["correct", "demo", "-o", "json", "--yes", "--timeout", "20s"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while stage.get(&format!("secret/{}", record::name("demo", 2))).is_null() {
            assert!(Instant::now() < deadline, "helm did not begin");
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_secs(1));
        let killed = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        let finished = crate::support::process::Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        let (_, message) = failed(&stage, &finished);
        assert!(message.contains("interrupted"), "{message}");
        // Helm was waited for: no revision is pending.
        assert!(!stage.history().contains("pending"), "{}", stage.history());
        assert!(finished.stderr.contains("helm is told to stop"), "{}", finished.stderr);
    }
}

#[test]
fn an_api_server_that_is_gone_for_ten_seconds_is_waited_for() {
    std::thread::scope(|scope| {
        for flavour in FLAVOURS {
            for method in ["upgrade", "patch"] {
                scope.spawn(move || cut_off(flavour, method));
            }
        }
    });
}

fn cut_off(flavour: Flavour, method: &str) {
    let _slot = control_plane().slot();
    let stage = drifted(&format!("cut-{method}"), flavour, &waiting());
    let proxy = Proxy::start(&stage.namespace.kubeconfig(), stage.state.join("kubeconfig"));
    let mut command = stage.drift();
    command.env("KUBECONFIG", proxy.kubeconfig());
    command.args(["correct", "demo", "-o", "json", "--yes", "--timeout", "40s", "--method", method]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let begun = || match method {
        "upgrade" => !stage.get(&format!("secret/{}", record::name("demo", 2))).is_null(),
        _ => !stage.evidence().is_empty(),
    };
    while !begun() {
        assert!(Instant::now() < deadline, "it did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    proxy.cut();
    std::thread::sleep(Duration::from_secs(10));
    proxy.mend();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let outcome: Value =
        serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{}", String::from_utf8_lossy(&output.stderr)));
    let release = &outcome["report"]["releases"][0];
    say(&format!(
        "cut off | {} | {method} | {} {} | then {} {}",
        flavour.name(),
        outcome["steps"][0]["result"],
        outcome["steps"][0]["message"],
        release["reason"],
        release["message"]
    ));
    // What is told is what is there.
    let live = settings(&stage);
    let reported = release["findings"].as_array().unwrap().iter().any(|finding| finding["path"] == ".data.v");
    assert_eq!(live != "1", reported, "{outcome}");
    assert_eq!(outcome["steps"][0]["result"] == "done", output.status.code() != Some(2), "{outcome}");
    assert!(unpacked(&stage.evidence()[0]).contains("\"9\""));
    if method == "patch" {
        assert_eq!(live, "1", "{outcome}");
    }
}

#[test]
fn without_room_for_the_evidence_nothing_is_changed() {
    let _slot = control_plane().slot();
    let stage = drifted("full", THREE, SETTINGS);
    // A file system without room: no file may have more than one block of 1024 bytes.
    let drift =
        format!("trap '' XFSZ; ulimit -f 1; exec {} correct demo --yes --method patch", env!("CARGO_BIN_EXE_drift"));
    let mut command = stage.namespace.command("bash", THREE.helm);
    command.env("XDG_STATE_HOME", &stage.state).args(["-c", &drift]);
    let finished = run(&mut command, "", LIMIT).unwrap();
    assert_eq!(finished.code, Some(2), "{}{}", finished.stdout, finished.stderr);
    assert!(
        finished.stderr.contains("nothing was changed") && finished.stderr.contains("no space is left"),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("--evidence"), "{}", finished.stderr);
    assert_eq!(settings(&stage), "9");
    assert!(stage.evidence().is_empty());
    // A place that is none.
    let finished = stage.correct(&["--yes", "--evidence", "/proc/nowhere/x"]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("nothing was changed"), "{}", finished.stderr);
    assert_eq!(settings(&stage), "9");
    let outcome = stage.corrected(&["--method", "patch", "--evidence", "none"]);
    assert_eq!(outcome["evidence"], Value::Null);
    assert_eq!(settings(&stage), "1");
}

#[test]
fn a_patch_that_is_forbidden_is_told_and_the_others_are_made() {
    for flavour in FLAVOURS {
        let _slot = control_plane().slot();
        let stage = drifted("forbidden", flavour, SETTINGS);
        stage.edit("configmap/other", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
        let rules = json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["other"], "verbs": ["patch", "update"]},
        ]);
        let kubeconfig = stage.namespace.user("limited", &rules);
        let allowed = |kubeconfig: &Path| {
            let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
            stage.namespace.kubectl(&["auth", "can-i", "patch", "configmap/other", &kubeconfig], "").is_ok()
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while !allowed(&kubeconfig) {
            assert!(Instant::now() < deadline);
        }
        let mut command = stage.drift();
        command.env("KUBECONFIG", &kubeconfig).args(["correct", "demo", "-o", "json", "--yes", "--method", "patch"]);
        let finished = run(&mut command, "", LIMIT).unwrap();
        assert_eq!(finished.code, Some(2), "{}{}", finished.stdout, finished.stderr);
        let outcome: Value = serde_json::from_str(&finished.stdout).unwrap();
        let left = outcome["releases"][0]["left"][0]["needs"].as_str().unwrap_or_default();
        say(&format!("forbidden | {} | {left}", flavour.name()));
        assert!(left.starts_with("the right to change it (") && left.contains("forbidden"), "{outcome}");
        assert_eq!(outcome["steps"].as_array().map(Vec::len), Some(1), "{outcome}");
        assert_eq!(outcome["steps"][0]["result"], "done", "{outcome}");
        assert_eq!((settings(&stage).as_str(), stage.get("configmap/other")["data"]["v"].as_str()), ("9", Some("1")));
        assert_eq!(outcome["report"]["releases"][0]["findings"].as_array().unwrap().len(), 1, "{outcome}");
    }
}

#[test]
fn a_fight_is_named_and_no_loop_begins() {
    let _slot = control_plane().slot();
    let stage = drifted("fight", FOUR_SERVER, SETTINGS);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A controller answers a change at once; a kubectl takes its time to start, so there are several.
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let patch = r#"{"data":{"v":"8"}}"#;
                    drop(stage.namespace.kubectl(
                        &["patch", "configmap/settings", "--type=merge", "--field-manager=hotfixer", "-p", patch],
                        "",
                    ));
                }
            });
        }
        // Also when an assertion fails: else the writer is waited for, for ever.
        let _stop = Stop(&stop);
        let deadline = Instant::now() + Duration::from_secs(30);
        while !stage.get("configmap/settings").to_string().contains("hotfixer") {
            assert!(Instant::now() < deadline);
        }
        let outcome = stage.corrected(&["--method", "patch"]);
        say(&format!("fight | {}", outcome["fights"]));
        assert_eq!(outcome["steps"][0]["result"], "done", "{outcome}");
        assert_eq!(outcome["fights"][0]["writer"], "hotfixer", "{outcome}");
        assert_eq!(outcome["fights"][0]["path"], ".data.v", "{outcome}");
        let again = stage.planned(&["--method", "patch"]);
        assert_eq!(again["releases"][0]["fights"][0]["writer"], "hotfixer", "{again}");
        let text = run(stage.drift().args(["correct", "demo", "--dry-run", "--method", "patch"]), "", LIMIT).unwrap();
        assert!(text.stdout.contains("a fight: hotfixer has set ConfigMap/settings .data.v again"), "{}", text.stdout);
    });
}

/// Told to stop when it goes out of scope.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn helm_is_told_no_token_and_no_value_by_its_arguments() {
    let _slot = control_plane().slot();
    let secret = format!(
        "{SETTINGS}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{p: {{{{ .Values.password | default \"x\" | quote }}}}}}\n"
    );
    let stage = Stage::install("argv", FOUR_SERVER, &secret, &["--set", "password=geheimwort"]);
    std::thread::sleep(Duration::from_secs(2));
    drift(&stage);
    let log = stage.state.join("helm.log");
    let wrapper = stage.state.join("helm");
    fs::write(
        &wrapper,
        format!("#!/bin/sh\n{{ echo \"ARGV $*\"; env | sed 's/^/ENV /'; }} >>{}\nexec helm4 \"$@\"\n", log.display()),
    )
    .unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = stage.drift();
    command.env("HELM_BIN", &wrapper).env("HELM_KUBECONTEXT", "test").env("HELM_PLUGIN_NAME", "drift");
    command.args(["correct", "demo", "-v=6", "--yes", "--token", "admin"]);
    let finished = run(&mut command, "", LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}{}", finished.stdout, finished.stderr);
    let log = fs::read_to_string(log).unwrap();
    let argv: Vec<&str> = log.lines().filter(|line| line.starts_with("ARGV")).collect();
    assert!(argv.iter().any(|line| line.contains("--rollback-on-failure --wait=legacy")), "{argv:?}");
    assert!(
        argv.iter().all(|line| !line.contains("admin") && !line.contains("geheimwort") && !line.contains("--set")),
        "{argv:?}"
    );
    assert!(log.contains("ENV HELM_KUBETOKEN=admin") && !log.contains("ENV HELM_PLUGIN_NAME"), "{log}");
    assert!(!finished.stderr.contains("geheimwort") && !finished.stdout.contains("geheimwort"));
    // The rebuilt chart is gone again.
    let left: Vec<_> = fs::read_dir(control_plane().folder("tmp"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("helm-drift-chart-"))
        .collect();
    assert!(left.len() < 8, "{left:?}"); // others may be at work
    assert_eq!(stage.history(), "1 superseded, 2 deployed");
}
