//! The README's ClusterRole, given to a service account that has nothing else, is enough for everything that reads.

use crate::support::control_plane::{Helm, control_plane};
use crate::support::drift::until;
use crate::support::web::web;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// One object of each sort that is read in a way of its own: scaled, mounted, namespaced or not, built in or not.
const TEMPLATE: &str = concat!(
    web!(
        "
      - name: web
        image: registry.example/web:1
        resources: {requests: {cpu: 10m}}
        envFrom: [{secretRef: {name: login}}]"
    ),
    r#"---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 5
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: hunter2}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: {{ .Release.Namespace }}-reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {}}
"#
);

/// The block of the README that holds the role.
fn role_of_the_readme() -> Value {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let blocks = readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks
        .into_iter()
        .find(|block| block.contains("kind: ClusterRole"))
        .unwrap_or_else(|| panic!("README.md has no ClusterRole"));
    serde_saphyr::from_str(block).unwrap()
}

/// The kubeconfig of a service account with this ClusterRole and nothing else.
fn account(namespace: &str, mut role: Value) -> PathBuf {
    let plane = control_plane();
    let post = |path: &str, object: Value| plane.request("POST", path, &object).unwrap();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    role["metadata"]["name"] = json!(namespace);
    post(&format!("{rbac}/clusterroles"), role);
    post(&accounts, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}));
    post(
        &format!("{rbac}/clusterrolebindings"),
        json!({
            "metadata": {"name": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        }),
    );
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = post(&format!("{accounts}/reader/token"), request);
    plane.kubeconfig_for(&format!("{namespace}-reader"), namespace, answer["status"]["token"].as_str())
}

/// Removes what outlives the namespace.
struct Cleanup(String);

impl Drop for Cleanup {
    fn drop(&mut self) {
        for kind in ["clusterroles", "clusterrolebindings"] {
            control_plane().send("DELETE", &format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{}", self.0));
        }
        control_plane().send("DELETE", &format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{}-reader", self.0));
    }
}

#[test]
fn the_readmes_role_is_enough_for_everything_that_reads() {
    let _slot = control_plane().slot();
    let namespace = control_plane().namespace("rights");
    let _cleanup = Cleanup(namespace.name.clone());
    let chart = namespace.chart(TEMPLATE);
    namespace.helm(Helm::Four, &["install", "nucleus", &chart]).unwrap();
    namespace.kubectl(&["set", "image", "deployment/web", "web=registry.example/web:2"], "").unwrap();
    namespace.kubectl(&["scale", "deployment/web", "--replicas=2"], "").unwrap();

    let role = role_of_the_readme();
    let verbs: Vec<&str> = role["rules"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|rule| rule["verbs"].as_array().unwrap())
        .map(|verb| verb.as_str().unwrap())
        .collect();
    assert!(verbs.iter().all(|verb| matches!(*verb, "get" | "list")), "reading alone: {verbs:?}");
    let reader = account(&namespace.name, role);
    let kubeconfig = format!("--kubeconfig={}", reader.display());
    let may = |verb: &str, what: &str| namespace.kubectl(&["auth", "can-i", verb, what, "-A", &kubeconfig], "").is_ok();
    until("the authorizer knows the role", || may("list", "secrets"));
    for verb in ["create", "patch", "update", "delete"] {
        assert!(!may(verb, "configmaps") && !may(verb, "secrets") && !may(verb, "deployments.apps"), "{verb}");
    }

    let manifest = namespace
        .files("manifests", &[("policy.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: not-there}\n")]);
    let bundle = namespace.files("evidence", &[]).join("evidence.drift");
    let (manifest, bundle) = (manifest.to_str().unwrap(), bundle.to_str().unwrap());
    for (line, code) in [
        (["nucleus"].as_slice(), 1),
        (&["nucleus", "-o", "wide", "--show-all"], 1),
        (&["diff", "nucleus"], 1),
        (&["history", "nucleus"], 0),
        (&["capture", "nucleus", "--to", bundle], 0),
        (&["nucleus", "--from", bundle], 1),
        (&["-f", manifest], 1),
        (&["nucleus", "--storage-driver", "configmap"], 2), // stored by another driver
    ] {
        let said = namespace.drift_as(Some(&reader).filter(|_| !line.contains(&"--from")), line, "");
        assert_eq!(said.code, code, "{}: {}{}", line.join(" "), said.stdout, said.stderr);
        let text = format!("{}{}", said.stdout, said.stderr).to_lowercase();
        assert!(!text.contains("forbidden") && !text.contains("unreadable"), "{}: {text}", line.join(" "));
    }

    // The same report as the administrator's, and no more requests refused than for them.
    let report = |kubeconfig: Option<&PathBuf>| {
        let mut report = namespace.drift_as(kubeconfig, &["nucleus", "-o", "json", "--show-all"], "").json();
        for key in ["startedAt", "finishedAt", "cluster"] {
            report[key] = Value::Null;
        }
        report
    };
    assert_eq!(report(Some(&reader)), report(None));
    // Other tests' releases come and go meanwhile: what matters is that nothing is forbidden.
    let all = namespace.drift_as(Some(&reader), &["-A", "-o", "json"], "");
    let everything = all.json();
    let trouble = everything["errors"].as_array().unwrap().iter().any(|error| error["reason"] == "Forbidden");
    assert!(!trouble && !all.stdout.to_lowercase().contains("forbidden"), "{}", all.stderr);
    let ours = everything["releases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|release| release["namespace"] == namespace.name.as_str());
    assert_eq!(ours.unwrap()["reason"], "Drifted");
}
