//! `drift correct` with a real API server and real Helms: what the plan says will be in sync is in sync afterwards, and Helm goes on
//! working with the release.

use crate::support::control_plane::{Helm, control_plane};
use crate::support::kubelet;
use crate::support::namespace::Namespace;
use crate::support::process::{Finished, run};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// The longest that one run of `drift correct` may take.
const LIMIT: Duration = Duration::from_secs(240);

/// A Helm, and how it applies the release.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Flavour {
    pub(super) helm: Helm,
    server_side: bool,
}

pub(super) const THREE: Flavour = Flavour { helm: Helm::Three, server_side: false };
pub(super) const FOUR_CLIENT: Flavour = Flavour { helm: Helm::Four, server_side: false };
pub(super) const FOUR_SERVER: Flavour = Flavour { helm: Helm::Four, server_side: true };
pub(super) const FLAVOURS: [Flavour; 3] = [THREE, FOUR_CLIENT, FOUR_SERVER];

impl Flavour {
    pub(super) fn name(self) -> &'static str {
        match (self.helm, self.server_side) {
            (Helm::Three, _) => "helm-3",
            (Helm::Four, false) => "helm-4-client",
            (Helm::Four, true) => "helm-4-server",
        }
    }
}

/// One release in a namespace of its own.
pub(super) struct Stage {
    pub(super) namespace: Namespace<'static>,
    pub(super) flavour: Flavour,
    pub(super) chart: PathBuf,
    /// State directory of the runs of drift.
    pub(super) state: PathBuf,
}

impl Stage {
    /// Installs a chart of one template, `demo`.
    pub(super) fn install(name: &str, flavour: Flavour, template: &str, arguments: &[&str]) -> Stage {
        let namespace = control_plane().namespace(&format!("correct-{name}-{}", flavour.name()));
        let chart = control_plane().folder(&format!("charts/{}", namespace.name));
        fs::create_dir_all(chart.join("templates")).unwrap();
        fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: demo\nversion: 1.0.0\n").unwrap();
        fs::write(chart.join("values.yaml"), "v: 1\n").unwrap();
        fs::write(chart.join("templates/all.yaml"), template).unwrap();
        let state = control_plane().folder(&format!("state/{}", namespace.name));
        let stage = Stage { namespace, flavour, chart, state };
        let chart = stage.chart.to_string_lossy().into_owned();
        let mut words = vec!["install", "demo", &chart];
        words.extend(arguments);
        if flavour == FOUR_CLIENT {
            words.push("--server-side=false");
        }
        stage.helm(&words);
        stage
    }

    pub(super) fn helm(&self, words: &[&str]) -> String {
        self.namespace.helm(self.flavour.helm, words).unwrap()
    }

    pub(super) fn kubectl(&self, words: &[&str]) -> String {
        self.namespace.kubectl(words, "").unwrap()
    }

    /// One object, `kind/name`; null when it is not there.
    pub(super) fn get(&self, object: &str) -> Value {
        let text = self.kubectl(&["get", object, "-o", "json", "--ignore-not-found", "--show-managed-fields"]);
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Changes an object as a person with an editor would.
    pub(super) fn edit(&self, object: &str, patch: &Value) {
        let patch = patch.to_string();
        self.kubectl(&["patch", object, "--type=json", "--field-manager=kubectl-edit", "-p", &patch]);
    }

    pub(super) fn drift(&self) -> Command {
        let program = std::env::var("DRIFT_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_drift").to_owned());
        let mut command = self.namespace.command(program, self.flavour.helm);
        command.env("XDG_STATE_HOME", &self.state);
        command
    }

    pub(super) fn correct(&self, words: &[&str]) -> Finished {
        run(self.drift().args(["correct", "demo", "-o", "json"]).args(words), "", LIMIT).unwrap()
    }

    /// A correction that succeeds, or at least has an outcome.
    pub(super) fn corrected(&self, words: &[&str]) -> Value {
        let mut all = vec!["--yes"];
        all.extend(words);
        let finished = self.correct(&all);
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}{}", finished.stdout, finished.stderr))
    }

    pub(super) fn planned(&self, words: &[&str]) -> Value {
        let mut all = vec!["--dry-run"];
        all.extend(words);
        let finished = self.correct(&all);
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}{}", finished.stdout, finished.stderr))
    }

    /// Revisions by Helm's word for their status, `1 superseded, 2 deployed`.
    pub(super) fn history(&self) -> String {
        let listed: Value = serde_json::from_str(&self.helm(&["history", "demo", "-o", "json"])).unwrap();
        let revisions: Vec<String> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|one| format!("{} {}", one["revision"], one["status"].as_str().unwrap()))
            .collect();
        revisions.join(", ")
    }

    /// Files of evidence, oldest first.
    pub(super) fn evidence(&self) -> Vec<PathBuf> {
        let folder = self.state.join("helm-drift/evidence");
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

/// Past the test harness, which keeps what a test prints until it fails.
pub(super) fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// A kind of the tests' own, in the whole cluster.
pub(super) fn widgets() {
    static DEFINED: Mutex<bool> = Mutex::new(false);
    let mut defined = DEFINED.lock().unwrap();
    if *defined {
        return;
    }
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.correct.example"},
        "spec": {
            "group": "correct.example", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer"}, "color": {"type": "string"}, "extra": {"type": "string"},
                }}},
            }}}],
        },
    });
    let namespace = control_plane().namespace("correct-widgets");
    namespace.kubectl(&["apply", "--server-side", "-f", "-"], &definition.to_string()).unwrap();
    namespace
        .kubectl(&["wait", "--for=condition=Established", "crd/widgets.correct.example", "--timeout=30s"], "")
        .unwrap();
    *defined = true;
}

/// One object for each row of the matrix, so that each is judged by itself. Everything follows the value `v`.
const TEMPLATE: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: changed}
spec:
  selector: {matchLabels: {app: changed}}
  template:
    metadata: {labels: {app: changed}}
    spec: {containers: [{name: web, image: "registry.example/web:{{ .Values.v }}"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: removed}
data: {kept: "1", removed: "{{ .Values.v }}"}
---
apiVersion: correct.example/v1
kind: Widget
metadata: {name: changed}
spec: {size: {{ .Values.v }}, color: red}
---
apiVersion: correct.example/v1
kind: Widget
metadata: {name: removed}
spec: {size: {{ .Values.v }}, color: red}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: added}
data: {kept: "{{ .Values.v }}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: item}
spec:
  selector: {matchLabels: {app: item}}
  template:
    metadata: {labels: {app: item}}
    spec: {containers: [{name: web, image: "registry.example/web:1", env: [{name: V, value: "{{ .Values.v }}"}]}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: missing}
data: {v: "{{ .Values.v }}"}
---
apiVersion: correct.example/v1
kind: Widget
metadata: {name: missing}
spec: {size: {{ .Values.v }}}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {password: "desired-{{ .Values.v }}"}
"#;

/// What was done to one object, what must be there after it is repaired, and after a plain upgrade to `v: 2`.
struct Row {
    what: &'static str,
    object: &'static str,
    /// A pointer into the live object.
    pointer: &'static str,
    /// JSON patch; null deletes the object.
    edit: fn() -> Value,
    desired: fn(u8) -> Value,
    /// What the plan does about it, by method: of client-side releases, and of server-side ones.
    steps: fn(&str, bool) -> &'static str,
}

/// The method itself, or `patch` where Helm cannot.
fn by_helm(method: &str, _: bool) -> &'static str {
    match method {
        "upgrade" => "upgrade",
        "reapply" => "reapply",
        _ => "patch",
    }
}

fn custom(method: &str, server_side: bool) -> &'static str {
    if server_side { by_helm(method, true) } else { "patch" }
}

fn missing(method: &str, server_side: bool) -> &'static str {
    match by_helm(method, server_side) {
        "patch" => "create",
        other => other,
    }
}

fn added(_: &str, _: bool) -> &'static str {
    "left"
}

const ROWS: &[Row] = &[
    Row {
        what: "changed field, built-in",
        object: "deployment/changed",
        pointer: "/spec/template/spec/containers/0/image",
        edit: || json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/web:9"}]),
        desired: |v| json!(format!("registry.example/web:{v}")),
        steps: by_helm,
    },
    Row {
        what: "removed field, built-in",
        object: "configmap/removed",
        pointer: "/data/removed",
        edit: || json!([{"op": "remove", "path": "/data/removed"}]),
        desired: |v| json!(v.to_string()),
        steps: by_helm,
    },
    Row {
        what: "changed field, custom",
        object: "widget/changed",
        pointer: "/spec/size",
        edit: || json!([{"op": "replace", "path": "/spec/size", "value": 9}]),
        desired: |v| json!(v),
        steps: custom,
    },
    Row {
        what: "removed field, custom",
        object: "widget/removed",
        pointer: "/spec/size",
        edit: || json!([{"op": "remove", "path": "/spec/size"}]),
        desired: |v| json!(v),
        steps: custom,
    },
    Row {
        what: "added field",
        object: "configmap/added",
        pointer: "/data/added",
        edit: || json!([{"op": "add", "path": "/data/added", "value": "x"}]),
        desired: |_| Value::Null,
        steps: added,
    },
    Row {
        what: "added list item",
        object: "deployment/item",
        pointer: "/spec/template/spec/containers/0/env/1",
        edit: || json!([{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "TRACE", "value": "1"}}]),
        desired: |_| Value::Null,
        steps: added,
    },
    Row {
        what: "missing object, built-in",
        object: "configmap/missing",
        pointer: "/data/v",
        edit: || Value::Null,
        desired: |v| json!(v.to_string()),
        steps: missing,
    },
    Row {
        what: "missing object, custom",
        object: "widget/missing",
        pointer: "/spec/size",
        edit: || Value::Null,
        desired: |v| json!(v),
        steps: missing,
    },
    Row {
        what: "Secret value",
        object: "secret/secret",
        pointer: "/data/password",
        edit: || json!([{"op": "replace", "path": "/data/password", "value": "bGl2ZQ=="}]),
        desired: |v| json!(if v == 1 { "ZGVzaXJlZC0x" } else { "ZGVzaXJlZC0y" }),
        steps: by_helm,
    },
];

/// `kind/name` of a finding's or step's object, as the rows have it.
fn named(object: &Value) -> String {
    format!(
        "{}/{}",
        object["kind"].as_str().unwrap_or_default().to_lowercase(),
        object["name"].as_str().unwrap_or_default()
    )
}

/// Under which step the plan has the findings of an object: its action, or `left`.
fn planned_for(plan: &Value, object: &str) -> String {
    let about = |finding: &Value| named(&finding["object"]) == object;
    let step = plan["steps"].as_array().into_iter().flatten();
    let mut step = step.filter(|step| step["findings"].as_array().unwrap().iter().any(about));
    if let Some(step) = step.next() {
        return step["action"].as_str().unwrap().to_owned();
    }
    let mut left = plan["left"].as_array().into_iter().flatten();
    if left.any(|left| about(&left["finding"])) { "left".to_owned() } else { "nothing".to_owned() }
}

#[test]
fn what_the_plan_says_will_be_in_sync_is_in_sync() {
    widgets();
    let problems = Mutex::new(Vec::new());
    say("row | helm | method | before | plan | after");
    std::thread::scope(|scope| {
        for flavour in FLAVOURS {
            for method in ["upgrade", "reapply", "patch"] {
                let problems = &problems;
                scope.spawn(move || {
                    let found = cells(flavour, method);
                    problems.lock().unwrap().extend(found);
                });
            }
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// All rows of one flavour and one method.
fn cells(flavour: Flavour, method: &str) -> Vec<String> {
    let _slot = control_plane().slot();
    let stage = Stage::install(method, flavour, TEMPLATE, &[]);
    std::thread::sleep(Duration::from_secs(2)); // Helm's window ends two seconds after it wrote the record
    for row in ROWS {
        match (row.edit)() {
            Value::Null => drop(stage.kubectl(&["delete", row.object])),
            patch => stage.edit(row.object, &patch),
        }
    }
    let before: Vec<Value> = ROWS.iter().map(|row| stage.get(row.object)).collect();
    let outcome = stage.corrected(&["--method", method, "--include-secrets"]);
    let plan = &outcome["releases"][0];
    let mut problems = Vec::new();
    let left = outcome["report"]["releases"][0]["findings"].as_array().unwrap();
    for (row, before) in ROWS.iter().zip(&before) {
        let live = stage.get(row.object);
        let (was, is) =
            (before.pointer(row.pointer).unwrap_or(&Value::Null), live.pointer(row.pointer).unwrap_or(&Value::Null));
        let planned = planned_for(plan, row.object);
        let reported =
            left.iter().any(|finding| named(&finding["object"]) == row.object && finding["verdict"] == "drift");
        let in_sync = *is == (row.desired)(1);
        say(&format!(
            "{} | {} | {method} | {was} | {planned} | {} {is}",
            row.what,
            flavour.name(),
            if in_sync { "in sync" } else { "as it was" }
        ));
        let wanted = (row.steps)(method, flavour.server_side);
        if planned != wanted {
            problems.push(format!("{} {} {method}: the plan says {planned}, not {wanted}", row.what, flavour.name()));
        }
        if in_sync == (wanted == "left") || reported != (wanted == "left") {
            problems.push(format!("{} {} {method}: {is} afterwards, reported: {reported}", row.what, flavour.name()));
        }
    }
    let failed: Vec<&Value> =
        outcome["steps"].as_array().unwrap().iter().filter(|step| step["result"] != "done").collect();
    if !failed.is_empty() {
        problems.push(format!("{} {method}: {failed:?}", flavour.name()));
    }
    // What was added goes when it is asked for.
    let outcome = stage.corrected(&["--method", method, "--remove-added"]);
    let reason = outcome["report"]["releases"][0]["reason"].as_str().unwrap_or_default();
    if reason != "InSync" {
        problems.push(format!(
            "{} {method}: {reason} after --remove-added: {}",
            flavour.name(),
            outcome["report"]["releases"][0]["findings"]
        ));
    }
    // Helm goes on working with the same fields.
    let chart = stage.chart.to_string_lossy().into_owned();
    if let Err(problem) = stage.namespace.helm(flavour.helm, &["upgrade", "demo", &chart, "--set", "v=2"]) {
        problems.push(format!("{} {method}: {problem}", flavour.name()));
    }
    for row in ROWS {
        let live = stage.get(row.object);
        let is = live.pointer(row.pointer).unwrap_or(&Value::Null);
        // A client-side Helm patches a custom resource from old manifest to new: that works from what it finds.
        if *is != (row.desired)(2) {
            problems.push(format!("{} {} {method}: {is} after the upgrade", row.what, flavour.name()));
        }
    }
    let history = stage.history();
    if !history.ends_with("deployed") {
        problems.push(format!("{} {method}: {history}", flavour.name()));
    }
    say(&format!("{} {method}: history {history}", flavour.name()));
    problems
}

/// A field that cannot be changed in place.
const BINDING: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "wanted-{{ .Values.v }}"}
subjects: [{kind: ServiceAccount, name: x, namespace: default}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {v: "{{ .Values.v }}"}
"#;

#[test]
fn an_immutable_field_needs_recreate() {
    std::thread::scope(|scope| {
        for flavour in FLAVOURS {
            for method in ["upgrade", "reapply", "patch"] {
                scope.spawn(move || immutable(flavour, method));
            }
        }
    });
}

fn immutable(flavour: Flavour, method: &str) {
    let _slot = control_plane().slot();
    let stage = Stage::install(&format!("immutable-{method}"), flavour, BINDING, &[]);
    std::thread::sleep(Duration::from_secs(2));
    let mut binding = stage.get("rolebinding/binding");
    binding["roleRef"]["name"] = json!("other");
    for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        binding["metadata"].as_object_mut().unwrap().remove(key);
    }
    stage.kubectl(&["delete", "rolebinding/binding"]);
    stage.namespace.kubectl(&["create", "-f", "-"], &binding.to_string()).unwrap();
    stage.edit("configmap/other", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));

    // Without it, Helm is left out and the rest is repaired.
    let outcome = stage.corrected(&["--method", method]);
    let plan = &outcome["releases"][0];
    let about = format!("{} {method}: {plan}", flavour.name());
    assert_eq!(plan["method"], "patch", "{about}");
    assert_eq!(planned_for(plan, "rolebinding/binding"), "left", "{about}");
    assert!(plan["left"][0]["needs"].as_str().unwrap().contains("--recreate RoleBinding/binding"), "{about}");
    assert_eq!(stage.get("configmap/other")["data"]["v"], "1", "{about}");
    assert_eq!(stage.get("rolebinding/binding")["roleRef"]["name"], "other", "{about}");

    stage.edit("configmap/other", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
    let outcome = stage.corrected(&["--method", method, "--recreate", "rolebinding/binding"]);
    let about = format!("{} {method}: {outcome}", flavour.name());
    assert_eq!(planned_for(&outcome["releases"][0], "rolebinding/binding"), "recreate", "{about}");
    assert_eq!(outcome["report"]["releases"][0]["reason"], "InSync", "{about}");
    assert_eq!(stage.get("rolebinding/binding")["roleRef"]["name"], "wanted-1", "{about}");
    say(&format!(
        "immutable field | {} | {method} | other | left, then recreate | in sync {}",
        flavour.name(),
        stage.get("rolebinding/binding")["roleRef"]["name"]
    ));
    let chart = stage.chart.to_string_lossy().into_owned();
    // The same field cannot be changed by Helm either; the object beside it can.
    fs::write(stage.chart.join("templates/all.yaml"), BINDING.replace("wanted-{{ .Values.v }}", "wanted-1")).unwrap();
    stage.helm(&["upgrade", "demo", &chart, "--set", "v=2"]);
    assert_eq!(stage.get("configmap/other")["data"]["v"], "2");
    assert!(stage.history().ends_with("deployed"), "{}", stage.history());
}

const SCALED: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:{{ .Values.v }}"}]}
"#;

#[test]
fn an_autoscaler_keeps_its_replicas_while_the_image_is_repaired() {
    std::thread::scope(|scope| {
        for flavour in FLAVOURS {
            scope.spawn(move || {
                let _slot = control_plane().slot();
                let stage = Stage::install("hpa", flavour, SCALED, &[]);
                let autoscaler = json!({
                    "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
                    "spec": {"minReplicas": 12, "maxReplicas": 20, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
                });
                stage.namespace.kubectl(&["create", "-f", "-"], &autoscaler.to_string()).unwrap();
                stage.kubectl(&["wait", "deployment/web", "--for=jsonpath={.spec.replicas}=12", "--timeout=60s"]);
                stage.edit(
                    "deployment/web",
                    &json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/web:9"}]),
                );
                let resets = stage.planned(&["--reset-ignored"]);
                assert_eq!(resets["releases"][0]["method"], "upgrade", "{resets}");
                assert_eq!(resets["releases"][0]["resetsCollateral"], true, "{resets}");
                assert_eq!(resets["releases"][0]["collateral"][0]["path"], ".spec.replicas", "{resets}");
                let outcome = stage.corrected(&[]);
                let plan = &outcome["releases"][0];
                assert_eq!(plan["method"], "patch", "{plan}");
                assert!(plan["because"].as_str().unwrap().contains("Deployment/web .spec.replicas"), "{plan}");
                let live = stage.get("deployment/web");
                assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example/web:1", "{outcome}");
                assert_eq!(live["spec"]["replicas"], 12);
                assert_eq!(outcome["report"]["releases"][0]["reason"], "InSync", "{outcome}");
                say(&format!("HPA | {} | image {} | replicas {} stay", flavour.name(), live["spec"]["template"]["spec"]["containers"][0]["image"], live["spec"]["replicas"]));
            });
        }
    });
}

#[test]
fn hooks_run_only_when_asked_for() {
    let hook = format!(
        r#"
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings}}
data: {{v: "{{{{ .Values.v }}}}"}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {{helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: before-hook-creation}}
spec:
  template:
    metadata: {{annotations: {{{}: Succeeded}}}}
    spec: {{restartPolicy: Never, containers: [{{name: migrate, image: "registry.example/migrate:1"}}]}}
"#,
        kubelet::PHASE
    );
    for flavour in FLAVOURS {
        let _slot = control_plane().slot();
        let stage = Stage::install("hooks", flavour, &hook, &[]);
        // Runs are counted by the API server: a Job that ran was created.
        let runs = |stage: &Stage| stage.get("job/migrate")["metadata"]["uid"].as_str().map(str::to_owned);
        for (method, flag) in [("upgrade", None), ("reapply", None), ("patch", None), ("upgrade", Some("--run-hooks"))]
        {
            std::thread::sleep(Duration::from_secs(2));
            stage.edit("configmap/settings", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
            let mut words = vec!["--method", method];
            words.extend(flag);
            let outcome = stage.corrected(&words);
            assert_eq!(outcome["report"]["releases"][0]["reason"], "InSync", "{outcome}");
            assert!(outcome["releases"][0]["hooks"][0].as_str().unwrap().contains("Job/migrate"), "{outcome}");
            assert_eq!(runs(&stage).is_some(), flag.is_some(), "{} {method} {flag:?}", flavour.name());
            say(&format!(
                "hook | {} | {method} {} | ran: {}",
                flavour.name(),
                flag.unwrap_or_default(),
                runs(&stage).is_some()
            ));
        }
    }
}

#[test]
fn what_is_expected_stays_and_secrets_are_kept_in_the_evidence() {
    let _slot = control_plane().slot();
    let stage = Stage::install("secrets", FOUR_SERVER, TEMPLATE_SECRET, &[]);
    std::thread::sleep(Duration::from_secs(2));
    stage.edit("secret/login", &json!([{"op": "replace", "path": "/data/password", "value": "bGl2ZS1wYXNzd29yZA=="}]));
    let refused = stage.planned(&[]);
    assert_eq!(refused["releases"][0]["refusal"]["reason"], "SecretValues", "{refused}");
    assert!(stage.evidence().is_empty());
    let finished = stage.correct(&["--yes", "--include-secrets"]);
    assert_eq!(finished.code, Some(0), "{}{}", finished.stdout, finished.stderr);
    assert!(
        !finished.stdout.contains("live-password") && !finished.stdout.contains("bGl2ZS1wYXNzd29yZA"),
        "{}",
        finished.stdout
    );
    let evidence = stage.evidence();
    let kept = unpacked(&evidence[0]);
    assert!(kept.contains("bGl2ZS1wYXNzd29yZA=="), "the evidence lacks the old value");
    assert_eq!(permissions(&evidence[0]), 0o600);
    // What the evidence holds is a capture: the same report, without a cluster.
    let replay = run(stage.drift().args(["demo", "-o", "json", "--from"]).arg(&evidence[0]), "", LIMIT).unwrap();
    assert_eq!(replay.code, Some(1), "{}", replay.stderr);
    let report: Value = serde_json::from_str(&replay.stdout).unwrap();
    assert_eq!(report["releases"][0]["findings"][0]["path"], ".data.password");
}

const TEMPLATE_SECRET: &str = r#"
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: desired}
"#;

pub(super) fn unpacked(file: &Path) -> String {
    let output = Command::new("gzip").args(["-dc"]).arg(file).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn permissions(file: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}
