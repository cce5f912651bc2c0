//! The control plane of the tests itself: what the other tests lean on.

use crate::support::control_plane::{Helm, control_plane};
use crate::support::kubelet;
use crate::support::web::web;
use serde_json::json;
use std::time::{Duration, Instant};

const CHART: &str = web!(replicas: 2, r#"[{name: web, image: "registry.example/web:1"}]"#);

#[test]
fn helm_waits_for_pods_that_the_stub_makes_ready() {
    for helm in [Helm::Three, Helm::Four] {
        let _slot = control_plane().slot();
        let namespace = control_plane().namespace("wait");
        let chart = namespace.chart(CHART);
        let started = Instant::now();
        namespace.helm(helm, &["install", "demo", &chart, "--wait", "--timeout=60s"]).unwrap();
        let seconds = started.elapsed().as_secs_f64();
        let ready =
            namespace.kubectl(&["get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"], "").unwrap();
        assert_eq!(ready, "2", "Helm {} waited {seconds:.1} s", helm.major());
    }
}

#[test]
fn each_helm_is_the_version_it_says() {
    let namespace = control_plane().namespace("version");
    for (helm, version) in [(Helm::Three, "v3."), (Helm::Four, "v4.")] {
        let told = namespace.helm(helm, &["version", "--template", "{{.Version}}"]).unwrap();
        assert!(told.starts_with(version), "{told}");
    }
}

#[test]
fn a_job_ends_as_its_pod_template_says() {
    let _slot = control_plane().slot();
    let namespace = control_plane().namespace("job");
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"},
        "spec": {"template": {
            "metadata": {"annotations": {kubelet::PHASE: "Succeeded"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "migrate", "image": "registry.example/migrate:1"}]},
        }},
    });
    namespace.kubectl(&["apply", "-f", "-"], &job.to_string()).unwrap();
    namespace.kubectl(&["wait", "--for=condition=Complete", "job/migrate", "--timeout=30s"], "").unwrap();
}

#[test]
fn a_bound_pod_that_is_deleted_goes() {
    let _slot = control_plane().slot();
    let namespace = control_plane().namespace("bound");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"nodeName": "nowhere", "containers": [{"name": "web", "image": "registry.example/web:1"}]},
    });
    namespace.kubectl(&["apply", "-f", "-"], &pod.to_string()).unwrap();
    namespace.kubectl(&["delete", "pod", "web", "--timeout=20s"], "").unwrap();
}

#[test]
fn a_user_has_the_rights_it_was_given_and_no_others() {
    let namespace = control_plane().namespace("user");
    let limited =
        namespace.user("limited", &json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]));
    let kubeconfig = format!("--kubeconfig={}", limited.display());
    let allowed = |what: &str| namespace.kubectl(&["auth", "can-i", "list", what, &kubeconfig], "").is_ok();
    let deadline = Instant::now() + Duration::from_secs(10); // the authorizer learns of a new role in a moment
    while !allowed("configmaps") {
        assert!(Instant::now() < deadline, "configmaps are not allowed");
    }
    assert!(!allowed("secrets"));
}
