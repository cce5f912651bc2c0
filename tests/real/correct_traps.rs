//! `drift correct` where the obvious thing would do harm.

use super::correct::{FLAVOURS, FOUR_CLIENT, FOUR_SERVER, Flavour, Stage, THREE, say};
use crate::support::control_plane::control_plane;
use crate::support::process::run;
use crate::support::record;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(240);

/// Installs, and waits until Helm's window is over.
fn installed(name: &str, flavour: Flavour, template: &str, arguments: &[&str]) -> Stage {
    let stage = Stage::install(name, flavour, template, arguments);
    std::thread::sleep(Duration::from_secs(2));
    stage
}

fn reason(outcome: &Value) -> &str {
    outcome["report"]["releases"][0]["reason"].as_str().unwrap_or_default()
}

fn actions(plan: &Value) -> Vec<&str> {
    plan["steps"].as_array().into_iter().flatten().map(|step| step["action"].as_str().unwrap()).collect()
}

/// A helm of the tests' own: `before` runs first when the words of a real upgrade are there.
fn wrapped(stage: &Stage, before: &str) -> PathBuf {
    let file = stage.state.join("helm-wrapper");
    let real = format!("helm{}", stage.flavour.helm.major());
    fs::write(&file, format!("#!/bin/sh\ncase \"$*\" in *--description*) {before} ;; esac\nexec {real} \"$@\"\n"))
        .unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

const DNS: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: dns}
spec:
  ports:
  - {name: tcp, port: 53, protocol: TCP, targetPort: 5300}
  - {name: udp, port: 53, protocol: UDP, targetPort: 5301}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {v: "{{ .Values.v }}"}
"#;

/// A strategic merge knows ports by their number alone (kubernetes/kubernetes#39188): it would put the UDP port's value into the TCP port.
#[test]
fn helm_is_not_let_near_items_that_its_merge_confuses() {
    for flavour in [THREE, FOUR_CLIENT] {
        let _slot = control_plane().slot();
        let stage = installed("dns", flavour, DNS, &[]);
        let drift = || {
            stage.edit("service/dns", &json!([{"op": "replace", "path": "/spec/ports/1/targetPort", "value": 9}]));
            stage.edit("configmap/settings", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
        };
        drift();
        let outcome = stage.corrected(&[]);
        assert_eq!(actions(&outcome["releases"][0]), ["patch", "upgrade"], "{outcome}");
        assert_eq!(reason(&outcome), "InSync", "{outcome}");
        let ports = &stage.get("service/dns")["spec"]["ports"];
        assert_eq!((&ports[0]["targetPort"], &ports[1]["targetPort"]), (&json!(5300), &json!(5301)), "{ports}");
        // With an item too many, that stays, Helm is left out.
        drift();
        stage.edit(
            "service/dns",
            &json!([{"op": "add", "path": "/spec/ports/-", "value": {"name": "sctp", "port": 53, "protocol": "SCTP"}}]),
        );
        let outcome = stage.corrected(&[]);
        assert_eq!(outcome["releases"][0]["method"], "patch", "{outcome}");
        let ports = &stage.get("service/dns")["spec"]["ports"];
        assert_eq!((&ports[0]["targetPort"], &ports[1]["targetPort"]), (&json!(5300), &json!(5301)), "{ports}");
        say(&format!("confused | {} | {ports}", flavour.name()));
    }
}

/// What Helm's own merge did wrong is drift, and nothing that admission did.
#[test]
fn what_helms_merge_confused_is_drift() {
    let _slot = control_plane().slot();
    let stage = installed("confused", THREE, DNS, &[]);
    stage.edit("service/dns", &json!([{"op": "replace", "path": "/spec/ports/1/targetPort", "value": 9}]));
    let chart = stage.chart.to_string_lossy().into_owned();
    stage.helm(&["upgrade", "demo", &chart]);
    let ports = stage.get("service/dns")["spec"]["ports"].clone();
    let planned = stage.planned(&[]);
    let drifted = ports[0]["targetPort"] != 5300 || ports[1]["targetPort"] != 5301;
    assert!(drifted, "Helm's merge is mended? {ports}");
    let paths: Vec<&str> = planned["releases"][0]["steps"][0]["findings"]
        .as_array()
        .unwrap_or_else(|| panic!("{planned}"))
        .iter()
        .map(|finding| finding["path"].as_str().unwrap())
        .collect();
    say(&format!("confused by helm | {ports} | {paths:?}"));
    assert!(paths.iter().all(|path| path.starts_with(".spec.ports[")), "{planned}");
    assert_eq!(actions(&planned["releases"][0]), ["patch"], "{planned}");
    assert_eq!(reason(&stage.corrected(&[])), "InSync");
}

const LOADED: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80, name: http}]}
"#;

/// An upgrade waits for a load balancer that never comes: what was added goes first.
#[test]
fn what_would_keep_helm_waiting_goes_first() {
    for flavour in FLAVOURS {
        let _slot = control_plane().slot();
        let stage = installed("lb", flavour, LOADED, &[]);
        stage.edit(
            "service/web",
            &json!([{"op": "replace", "path": "/spec/type", "value": "LoadBalancer"}, {"op": "replace", "path": "/spec/ports/0/name", "value": "x"}]),
        );
        let kept = stage.planned(&[]);
        assert_eq!(kept["releases"][0]["method"], "patch", "{kept}");
        assert!(kept["releases"][0]["because"].as_str().unwrap().contains("wait for an address"), "{kept}");
        let outcome = stage.corrected(&["--remove-added", "--timeout", "20s"]);
        assert_eq!(actions(&outcome["releases"][0]), ["remove-added", "upgrade"], "{outcome}");
        assert_eq!(reason(&outcome), "InSync", "{outcome}");
    }
}

const SETTINGS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {v: "{{ .Values.v }}", password: {{ .Values.password | default "x" | quote }}}
"#;

/// Whoever is faster than helm's own start is not overlooked.
#[test]
fn a_revision_that_somebody_made_meanwhile_is_told() {
    let _slot = control_plane().slot();
    let stage = installed("race", THREE, SETTINGS, &[]);
    stage.edit("configmap/settings", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
    let before = format!("helm3 upgrade demo {} --set v=2 >/dev/null", stage.chart.display());
    let mut command = stage.drift();
    command.env("HELM_BIN", wrapped(&stage, &before)).args(["correct", "demo", "-o", "json", "--yes"]);
    let finished = run(&mut command, "", LIMIT).unwrap();
    assert_eq!(finished.code, Some(2), "{}{}", finished.stdout, finished.stderr);
    let outcome: Value = serde_json::from_str(&finished.stdout).unwrap();
    let message = outcome["steps"][0]["message"].as_str().unwrap();
    say(&format!("race | {message}"));
    assert!(message.contains("somebody made revision 2") && message.contains("helm rollback demo 2"), "{message}");
}

/// What moves while the chart is rendered makes another plan.
#[test]
fn what_moves_while_the_chart_is_rendered_is_planned_for_anew() {
    let _slot = control_plane().slot();
    let stage = installed("moved", FOUR_SERVER, SETTINGS, &[]);
    stage.edit("configmap/settings", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
    let file = stage.state.join("helm-wrapper");
    let mark = stage.state.join("moved");
    let upgrade = format!("helm4 upgrade demo {} --set v=2 --force-conflicts >/dev/null", stage.chart.display());
    let script = format!(
        "#!/bin/sh\nhelm4 \"$@\" || exit\ncase \"$*\" in *--dry-run*) [ -e {mark} ] || {{ touch {mark}; {upgrade}; }} ;; esac\n",
        mark = mark.display()
    );
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = stage.drift();
    command.env("HELM_BIN", &file).args(["correct", "demo", "-o", "json", "--yes"]);
    let finished = run(&mut command, "", LIMIT).unwrap();
    // Somebody's upgrade has repaired it already, and nothing takes that back.
    assert_eq!(stage.get("configmap/settings")["data"]["v"], "2", "{}{}", finished.stdout, finished.stderr);
    assert_eq!(finished.code, Some(0), "{}{}", finished.stdout, finished.stderr);
    assert!(finished.stderr.contains("something moved"), "{}", finished.stderr);
    assert_eq!(stage.history(), "1 superseded, 2 deployed");
}

/// `kubectl apply --server-side` of the whole object makes kubectl an owner of Helm's annotations: it is not Helm for that.
#[test]
fn what_is_applied_in_helms_name_takes_nothing_from_others() {
    let _slot = control_plane().slot();
    let stage = installed("names", FOUR_SERVER, SETTINGS, &[]);
    let mut object = stage.get("configmap/settings");
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&key.as_str()));
    object["data"]["extra"] = json!("kept");
    object["data"]["v"] = json!("9");
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    stage.namespace.kubectl(&apply, &object.to_string()).unwrap();
    let outcome = stage.corrected(&["--method", "patch"]);
    let live = stage.get("configmap/settings");
    assert_eq!((&live["data"]["v"], &live["data"]["extra"]), (&json!("1"), &json!("kept")), "{outcome}");
    let managers: Vec<&Value> = live["metadata"]["managedFields"].as_array().unwrap().iter().collect();
    let owns = |name: &str, field: &str| {
        managers
            .iter()
            .any(|entry| entry["manager"] == name && !entry["fieldsV1"]["f:data"][format!("f:{field}")].is_null())
    };
    assert!(owns("helm", "v") && owns("kubectl", "extra") && !owns("helm", "extra"), "{managers:?}");
    assert_eq!(outcome["report"]["releases"][0]["message"], "1 added", "{outcome}");
}

/// A chart that quotes a secret value when it stops.
#[test]
fn no_secret_that_a_chart_quotes_is_printed() {
    for flavour in [THREE, FOUR_SERVER] {
        let _slot = control_plane().slot();
        let stage = installed("quotes", flavour, SETTINGS, &["--set", "password=geheimwort"]);
        stage.edit("configmap/settings", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
        let fails = "{{ fail (printf \"the password %s is too short\" .Values.password) }}";
        fs::write(stage.chart.join("templates/all.yaml"), fails).unwrap();
        let chart = stage.chart.to_string_lossy().into_owned();
        for format in ["table", "json"] {
            let mut command = stage.drift();
            command.args(["correct", "demo", "--yes", "--chart", &chart, "-v=9", "-o", format]);
            let finished = run(&mut command, "", LIMIT).unwrap();
            assert_eq!(finished.code, Some(2), "{}{}", finished.stdout, finished.stderr);
            assert!(finished.stdout.contains("is too short"), "{}", finished.stdout);
            let all = format!("{}{}", finished.stdout, finished.stderr);
            assert!(!all.contains("geheimwort"), "{all}");
        }
    }
}

/// Evidence of an earlier correction is not overwritten, and a device stays one.
#[test]
fn evidence_replaces_nothing() {
    let _slot = control_plane().slot();
    let stage = installed("kept", THREE, SETTINGS, &[]);
    stage.edit("configmap/settings", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
    let file = stage.state.join("evidence.drift");
    fs::write(&file, "what was").unwrap();
    for place in [file.to_str().unwrap(), "/dev/null"] {
        let finished = stage.correct(&["--yes", "--method", "patch", "--evidence", place]);
        assert_eq!(finished.code, Some(2), "{}", finished.stdout);
        assert!(
            finished.stderr.contains("nothing was changed") && finished.stderr.contains("exists already"),
            "{}",
            finished.stderr
        );
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "what was");
    assert_eq!(stage.get("configmap/settings")["data"]["v"], "9");
    let usage = stage.correct(&["--yes", "--evidence", "none", "--include-secrets"]);
    assert!(usage.code == Some(2) && usage.stderr.contains("--discard-secret-values"), "{}", usage.stderr);
}

const FROZEN: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
immutable: true
data: {v: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: dependent}
data: {v: "1"}
"#;

/// Of an object that was recreated with other data no field can be changed in place, and what hangs on it stays when it goes.
#[test]
fn what_is_frozen_is_recreated_and_takes_nothing_with_it() {
    for flavour in FLAVOURS {
        let _slot = control_plane().slot();
        let stage = installed("frozen", flavour, FROZEN, &[]);
        let mut object = stage.get("configmap/settings");
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .retain(|key, _| ["name", "labels", "annotations"].contains(&key.as_str()));
        object["data"] = json!({"v": "9", "more": "x"});
        stage.kubectl(&["delete", "configmap/settings"]);
        stage.namespace.kubectl(&["create", "-f", "-"], &object.to_string()).unwrap();
        let uid = stage.get("configmap/settings")["metadata"]["uid"].clone();
        let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": uid}]);
        stage.kubectl(&["create", "configmap", "hanging"]);
        let patch = json!([{"op": "add", "path": "/metadata/ownerReferences", "value": owner}]);
        stage.edit("configmap/hanging", &patch);

        let rehearsed = stage.planned(&["--recreate", "ConfigMap/settings"]);
        assert_eq!(actions(&rehearsed["releases"][0]), ["recreate"], "{rehearsed}");
        assert_eq!(stage.get("configmap/settings")["metadata"]["uid"], uid, "a plan changes nothing");
        let planned = stage.planned(&["--remove-added"]);
        let left = planned["releases"][0]["left"].as_array().unwrap();
        assert_eq!((left.len(), actions(&planned["releases"][0])), (2, vec![]), "{planned}");
        assert!(left[0]["needs"].as_str().unwrap().contains("--recreate ConfigMap/settings"), "{planned}");
        let outcome = stage.corrected(&["--recreate", "ConfigMap/settings"]);
        assert_eq!(reason(&outcome), "InSync", "{outcome}");
        assert_eq!(stage.get("configmap/settings")["data"], json!({"v": "1"}));
        std::thread::sleep(Duration::from_secs(3));
        assert!(!stage.get("configmap/hanging").is_null(), "{}: what hangs on it went with it", flavour.name());
        let deployed = record::read(&stage.namespace, "demo", 1);
        assert_eq!(deployed["info"]["status"], "deployed");
    }
}

const UNIONS: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: env}
spec:
  selector: {matchLabels: {app: env}}
  template:
    metadata: {labels: {app: env}}
    spec:
      containers:
      - name: web
        image: registry.example/web:1
        env: [{name: A, value: "1"}]
        livenessProbe: {httpGet: {path: /, port: 80}}
        volumeMounts: [{name: v, mountPath: /a}]
      volumes: [{name: v, emptyDir: {}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget}
spec: {minAvailable: 1, selector: {matchLabels: {app: env}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80, name: http}, {port: 81, name: https}]}
---
apiVersion: v1
kind: Service
metadata: {name: single}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {v: "{{ .Values.v }}"}
"#;

/// Of `value` and `valueFrom`, `minAvailable` and `maxUnavailable`, two ports of one name the server allows but one: Helm, which takes
/// nothing away that somebody added, would stop half-way and leave the release failed.
#[test]
fn what_shuts_another_out_goes_in_one_request() {
    std::thread::scope(|scope| {
        for flavour in FLAVOURS {
            for method in ["upgrade", "patch"] {
                scope.spawn(move || shut_out(flavour, method));
            }
        }
    });
}

fn shut_out(flavour: Flavour, method: &str) {
    let _slot = control_plane().slot();
    let stage = installed(&format!("unions-{method}"), flavour, UNIONS, &[]);
    let container = "/spec/template/spec/containers/0";
    stage.edit(
        "deployment/env",
        &json!([
            {"op": "replace", "path": format!("{container}/env/0"), "value": {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}},
            {"op": "replace", "path": format!("{container}/livenessProbe"), "value": {"exec": {"command": ["true"]}}},
            {"op": "replace", "path": format!("{container}/volumeMounts/0/mountPath"), "value": "/evil"},
            {"op": "replace", "path": "/spec/template/spec/volumes/0", "value": {"name": "v", "hostPath": {"path": "/x"}}},
        ]),
    );
    let budget = json!([{"op": "remove", "path": "/spec/minAvailable"}, {"op": "add", "path": "/spec/maxUnavailable", "value": 1}]);
    stage.edit("pdb/budget", &budget);
    stage.edit("service/web", &json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 82}]));
    stage.edit("service/single", &json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 81}]));
    stage.edit("configmap/settings", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));

    // Without the word for it, what is shut out stays, with its reason, and the rest is repaired.
    let outcome = stage.corrected(&["--method", method]);
    let plan = &outcome["releases"][0];
    let about = format!("{} {method}: {outcome}", flavour.name());
    assert!(outcome["steps"].as_array().unwrap().iter().all(|step| step["result"] == "done"), "{about}");
    let needs: Vec<&str> =
        plan["left"].as_array().unwrap().iter().map(|left| left["needs"].as_str().unwrap()).collect();
    assert!(needs.iter().all(|needs| needs.starts_with("--remove-added")), "{about}");
    assert!(needs.iter().any(|needs| needs.contains("the server refuses it beside what was added")), "{about}");
    assert_eq!(stage.get("configmap/settings")["data"]["v"], "1", "{about}");
    assert_eq!(stage.get("service/web")["spec"]["ports"][0]["port"], 80, "{about}");
    assert_eq!(stage.get("pdb/budget")["spec"]["maxUnavailable"], 1, "{about}");
    assert!(stage.history().ends_with("deployed"), "{about}");

    stage.edit("configmap/settings", &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
    let outcome = stage.corrected(&["--method", method, "--remove-added"]);
    let about = format!("{} {method}: {outcome}", flavour.name());
    say(&format!(
        "shut out | {} | {method} | {:?} | {}",
        flavour.name(),
        actions(&outcome["releases"][0]),
        reason(&outcome)
    ));
    assert_eq!(reason(&outcome), "InSync", "{about}");
    assert!(stage.history().ends_with("deployed"), "{about}");
    // Helm goes on from there.
    let chart = stage.chart.to_string_lossy().into_owned();
    let template = UNIONS.replace("mountPath: /a", "mountPath: /b").replace("minAvailable: 1", "minAvailable: 2");
    fs::write(stage.chart.join("templates/all.yaml"), template).unwrap();
    stage.helm(&["upgrade", "demo", &chart, "--set", "v=2"]);
    assert_eq!(stage.get("configmap/settings")["data"]["v"], "2");
    assert_eq!(stage.get("pdb/budget")["spec"]["minAvailable"], 2);
}

const STRATEGY: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
"#;

/// `rollingUpdate` is a default that came with the other type: nobody added it, and the server takes the type back only without it.
#[test]
fn a_default_of_another_choice_goes_with_it() {
    for flavour in FLAVOURS {
        for method in ["upgrade", "patch"] {
            let _slot = control_plane().slot();
            let stage = installed(&format!("strategy-{method}"), flavour, STRATEGY, &[]);
            let patch = json!([{"op": "replace", "path": "/spec/strategy", "value": {"type": "RollingUpdate"}}]);
            stage.edit("deployment/web", &patch);
            let outcome = stage.corrected(&["--method", method]);
            let about = format!("{} {method}: {outcome}", flavour.name());
            say(&format!("default | {} | {method} | {:?}", flavour.name(), actions(&outcome["releases"][0])));
            assert_eq!(reason(&outcome), "InSync", "{about}");
            assert!(stage.history().ends_with("deployed"), "{about}");
            assert_eq!(stage.get("deployment/web")["spec"]["strategy"], json!({"type": "Recreate"}), "{about}");
        }
    }
}

/// What the server escapes when it compares, on both sides, and in a key.
#[test]
fn no_character_keeps_a_value_from_being_put_back() {
    const TEXTS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: texts, annotations: {note: "a < b && c > d"}}
data: {html: "<p>one & two</p>", other: "1"}
"#;
    for flavour in FLAVOURS {
        for method in ["upgrade", "patch"] {
            let _slot = control_plane().slot();
            let stage = installed(&format!("texts-{method}"), flavour, TEXTS, &[]);
            let live = "<b>\u{2028}\u{8}\u{c}\u{1}\u{e9}\u{1f600} \\ \"q\" / &lt;\t\n";
            stage.edit(
                "configmap/texts",
                &json!([
                    {"op": "replace", "path": "/data/html", "value": live}, {"op": "replace", "path": "/data/other", "value": "2 > 1"},
                    {"op": "add", "path": "/data/added", "value": live}, {"op": "replace", "path": "/metadata/annotations/note", "value": "<&>"},
                ]),
            );
            let outcome = stage.corrected(&["--method", method, "--remove-added"]);
            assert_eq!(reason(&outcome), "InSync", "{} {method}: {outcome}", flavour.name());
        }
    }
}

const NODE_PORT: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, clusterIP: ADDRESS, ports: [{port: 80, nodePort: 30477}]}
"#;

/// Its own node port is allocated as long as a Service is there: that is nothing against creating it again.
#[test]
fn a_service_is_recreated_with_its_own_ports() {
    let _slot = control_plane().slot();
    let template = NODE_PORT.replace("ADDRESS", &free_address());
    let stage = installed("node-port", THREE, &template, &[]);
    let mut object = stage.get("service/web");
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .retain(|key, _| ["name", "labels", "annotations"].contains(&key.as_str()));
    for key in ["clusterIP", "clusterIPs"] {
        object["spec"].as_object_mut().unwrap().remove(key);
    }
    stage.kubectl(&["delete", "service/web"]);
    stage.namespace.kubectl(&["create", "-f", "-"], &object.to_string()).unwrap();
    let outcome = stage.corrected(&["--recreate", "Service/web"]);
    assert_eq!(actions(&outcome["releases"][0]), ["recreate"], "{outcome}");
    assert_eq!(reason(&outcome), "InSync", "{outcome}");
}

/// A free address of the cluster's own range.
fn free_address() -> String {
    let namespace = control_plane().namespace("correct-address");
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}});
    namespace.kubectl(&["create", "-f", "-"], &service.to_string()).unwrap();
    let address = namespace.kubectl(&["get", "service/x", "-o", "jsonpath={.spec.clusterIP}"], "").unwrap();
    namespace.kubectl(&["delete", "service/x"], "").unwrap();
    address
}

/// A deletion cannot be taken back: that the object may be created again is found out before.
#[test]
fn nothing_is_deleted_that_may_not_be_created_again() {
    let _slot = control_plane().slot();
    let binding = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: wanted}
subjects: [{kind: ServiceAccount, name: x, namespace: default}]
"#;
    let stage = installed("policy", THREE, binding, &[]);
    let mut object = stage.get("rolebinding/binding");
    object["roleRef"]["name"] = json!("other");
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .retain(|key, _| ["name", "labels", "annotations"].contains(&key.as_str()));
    stage.kubectl(&["delete", "rolebinding/binding"]);
    stage.namespace.kubectl(&["create", "-f", "-"], &object.to_string()).unwrap();
    let name = &stage.namespace.name;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["rbac.authorization.k8s.io"], "apiVersions": ["*"],
                "operations": ["CREATE"], "resources": ["rolebindings"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}},
            "validations": [{"expression": "false", "message": "no bindings after hours"}],
        },
    });
    let bound = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    for one in [&policy, &bound] {
        stage.namespace.kubectl(&["create", "-f", "-"], &one.to_string()).unwrap();
    }
    let uid = stage.get("rolebinding/binding")["metadata"]["uid"].clone();
    let mut object = object.clone();
    object["metadata"]["name"] = json!("probe");
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while stage.namespace.kubectl(&["create", "--dry-run=server", "-f", "-"], &object.to_string()).is_ok() {
        assert!(std::time::Instant::now() < deadline, "the policy is not in force");
    }
    let planned = stage.planned(&["--recreate", "RoleBinding/binding"]);
    let finished = stage.correct(&["--recreate", "RoleBinding/binding", "--yes"]);
    for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
        stage.kubectl(&["delete", kind, name]);
    }
    assert_eq!(stage.get("rolebinding/binding")["metadata"]["uid"], uid, "{}", finished.stdout);
    let left = &planned["releases"][0]["left"];
    assert!(left[0]["needs"].as_str().unwrap_or_default().contains("no bindings after hours"), "{planned}");
}

const EACH: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-settings"}
data: {v: "{{ .Values.v }}"}
"#;

/// One that is refused, in words that change while they are read, keeps no other from being corrected.
#[test]
fn one_refused_release_hinders_no_other() {
    let _slot = control_plane().slot();
    let stage = installed("several", THREE, EACH, &[]);
    let chart = stage.chart.to_string_lossy().into_owned();
    for name in ["other", "stuck"] {
        stage.helm(&["install", name, &chart]);
    }
    std::thread::sleep(Duration::from_secs(2));
    for name in ["demo", "other", "stuck"] {
        stage.edit(&format!("configmap/{name}-settings"), &json!([{"op": "replace", "path": "/data/v", "value": "9"}]));
    }
    record::set_status(&stage.namespace, "stuck", 1, "pending-upgrade");
    let mut command = stage.drift();
    command.args(["correct", "demo", "other", "stuck", "--yes", "-o", "json"]);
    let finished = run(&mut command, "", LIMIT).unwrap();
    assert_eq!(finished.code, Some(2), "{}{}", finished.stdout, finished.stderr);
    let values =
        ["demo", "other", "stuck"].map(|name| stage.get(&format!("configmap/{name}-settings"))["data"]["v"].clone());
    assert_eq!(values, [json!("1"), json!("1"), json!("9")], "{}{}", finished.stdout, finished.stderr);
}
