//! Stale pods on a real API server with the real controllers; the pods' starts are the kubelet stub's.

use crate::support::control_plane::{Helm, control_plane};
use crate::support::drift::{next_second, until};
use crate::support::namespace::Namespace;
use crate::support::web::web;
use serde_json::json;

const TEMPLATE: &str = concat!(
    r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: {{ .Values.mode }}}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {key: one}
---
"#,
    web!(
        replicas: 2,
        r#"[{name: web, image: "registry.example/web:1", envFrom: [{configMapRef: {name: settings}}]}]"#
    ),
    r#"---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: db, image: "registry.example/db:1", volumeMounts: [{name: key, mountPath: /key, subPath: key}]}
      volumes: [{name: key, secret: {secretName: key}}]
"#
);

fn installed(helm: Helm) -> Namespace<'static> {
    let namespace = control_plane().namespace("stale");
    let chart = namespace.chart(TEMPLATE);
    namespace.helm(helm, &["install", "demo", &chart, "--set", "mode=fast", "--wait", "--timeout=60s"]).unwrap();
    next_second();
    namespace
}

#[test]
fn pods_older_than_their_configuration_are_told() {
    for helm in [Helm::Three, Helm::Four] {
        let _slot = control_plane().slot();
        let namespace = installed(helm);
        let fresh = namespace.drift(&["demo", "-o", "json", "-v"], "");
        assert_eq!((fresh.code, fresh.notices("StalePods")), (0, vec![]));
        assert!(!fresh.stderr.contains("/pods"), "no pods are asked about: {}", fresh.stderr);

        // Nothing but the upgrade of a ConfigMap: no diff shows that the pods still run with the old one.
        let chart = namespace.chart(TEMPLATE);
        namespace.helm(helm, &["upgrade", "demo", &chart, "--set", "mode=slow"]).unwrap();
        let upgraded = namespace.drift(&["demo", "-o", "json"], "");
        let told = upgraded.notices("StalePods");
        assert_eq!((upgraded.code, told.len()), (0, 1), "{told:?}");
        assert!(
            told[0].starts_with("2 of 2 pods started before ConfigMap/settings was last written (helm at "),
            "{told:?}"
        );
        assert!(told[0].contains("container web reads it as environment"), "{told:?}");

        namespace.kubectl(&["patch", "secret", "key", "-p", r#"{"stringData":{"key":"two"}}"#], "").unwrap();
        let edited = namespace.drift(&["demo", "-o", "json", "-v"], "");
        let told = edited.notices("StalePods");
        assert_eq!((edited.code, told.len()), (1, 2), "{told:?}");
        assert!(told.iter().any(|one| one.contains("Secret/key") && one.contains("mounts a part of it")), "{told:?}");
        assert!(!edited.stdout.contains("dHdv"), "no Secret value");

        next_second();
        namespace.kubectl(&["rollout", "restart", "deployment/web", "statefulset/db"], "").unwrap();
        namespace.kubectl(&["rollout", "status", "deployment/web", "--timeout=30s"], "").unwrap();
        namespace.kubectl(&["rollout", "status", "statefulset/db", "--timeout=30s"], "").unwrap();
        until("no pod is stale", || namespace.drift(&["demo", "-o", "json"], "").notices("StalePods").is_empty());
    }
}

#[test]
fn pods_that_may_not_be_listed_are_no_trouble() {
    let _slot = control_plane().slot();
    let namespace = installed(Helm::Four);
    namespace.kubectl(&["patch", "configmap", "settings", "-p", r#"{"data":{"mode":"slow"}}"#], "").unwrap();
    let verbs = json!(["get", "list"]);
    let user = namespace.user(
        "reader",
        &json!([
            {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": verbs},
            {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": verbs}]),
    );
    until("the user may read", || namespace.drift_as(Some(&user), &["demo"], "").code == 1);
    let said = namespace.drift_as(Some(&user), &["demo", "-o", "json"], "");
    assert_eq!((said.code, said.notices("StalePods")), (1, vec![]));
    let told = said.notices("LookupForbidden");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("whether its pods started before ConfigMap/settings was last written"), "{told:?}");
}

#[test]
fn files_tell_of_stale_pods_too() {
    let _slot = control_plane().slot();
    let namespace = control_plane().namespace("stale");
    let file = TEMPLATE.replace("{{ .Values.mode }}", "fast");
    namespace.kubectl(&["apply", "-f", "-"], &file).unwrap();
    namespace.kubectl(&["rollout", "status", "deployment/web", "--timeout=30s"], "").unwrap();
    next_second();
    let file = file.replace("fast", "slow");
    namespace.kubectl(&["apply", "-f", "-"], &file).unwrap();
    let said = namespace.drift(&["-f", "-", "-o", "json"], &file);
    assert_eq!((said.code, said.notices("StalePods").len()), (0, 1), "{}", said.stdout);
}
