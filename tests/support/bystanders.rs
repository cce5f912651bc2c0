//! What writes to a release's objects in a cluster of its own accord, and is not run by the tests' control plane: injectors, operators,
//! cloud controllers, autoscalers. Each as it is known to write (field manager, operation, path); none of it is drift.
//! Knows nothing of `drift`.

use super::charts::{Site, Thing};
use super::control_plane::ControlPlane;
use super::rewind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// One writer's request.
struct Write {
    manager: &'static str,
    /// Below the object; empty for itself.
    subresource: &'static str,
    content_type: &'static str,
    body: Value,
}

/// Under what name a chart's own operator writes; operators that chose none write under their program's.
fn operator(chart: &str) -> &'static str {
    match chart {
        "bitnami-metallb" => "controller",
        "cert-manager" => "cert-manager-webhook",
        "keda" => "keda-operator",
        "kube-prometheus-stack" => "kube-webhook-certgen",
        "rollout-operator" => "rollout-operator",
        _ => "manager",
    }
}

/// Lets everybody write who would to one object. `certificate` is one that the API server takes, PEM in base64.
///
/// Returns how many wrote; the caller has the object as it was.
pub(crate) fn write(
    plane: &ControlPlane,
    site: &Site,
    thing: &Thing,
    live: &Value,
    certificate: &str,
) -> Result<usize, String> {
    let writes = writes(site, thing, live, certificate);
    for write in &writes {
        let force = if write.content_type == APPLY { "&force=true" } else { "" };
        let url = format!("{}{}?fieldManager={}{force}", thing.url, write.subresource, write.manager);
        plane
            .request_as("PATCH", &url, write.content_type, &write.body)
            .map_err(|error| format!("{} {}: {error}", write.manager, thing.says()))?;
    }
    if thing.kind == "PersistentVolumeClaim" {
        bind(plane, thing, live)?;
    }
    Ok(writes.len() + usize::from(thing.kind == "PersistentVolumeClaim"))
}

fn writes(site: &Site, thing: &Thing, live: &Value, certificate: &str) -> Vec<Write> {
    let own = operator(&site.name);
    let on = |subresource, manager, content_type, body| Write { manager, subresource, content_type, body };
    let merge = |manager, body| on("", manager, MERGE_PATCH, body);
    let metadata = |manager, key: &str, value: Value| merge(manager, json!({"metadata": {key: value}}));
    let is_empty = |key: &str| {
        let data = thing.desired.get(key).and_then(Value::as_object);
        data.is_none_or(|data| data.values().all(|value| value.as_str().is_none_or(str::is_empty)))
    };
    match thing.kind.as_str() {
        // keda, metallb and others leave a Secret empty for the certificates that their operator makes.
        "Secret" if is_empty("data") => {
            let secret = BASE64.encode("made by the operator");
            vec![merge(own, json!({"data": {"ca.crt": certificate, "tls.crt": certificate, "tls.key": secret}}))]
        }
        "ConfigMap" if is_empty("data") && is_empty("binaryData") => vec![merge(own, json!({"data": {"state": "{}"}}))],
        "ConfigMap" => vec![metadata("velero-server", "labels", json!({"velero.io/restore-name": "last-night"}))],
        "ValidatingWebhookConfiguration" => {
            let webhooks = live["webhooks"].as_array().into_iter().flatten().enumerate();
            let add = webhooks.map(|(place, _)| {
                json!({"op": "add", "path": format!("/webhooks/{place}/clientConfig/caBundle"), "value": certificate})
            });
            vec![on("", own, JSON_PATCH, add.collect())]
        }
        "MutatingWebhookConfiguration" => {
            let webhooks = live["webhooks"].as_array().into_iter().flatten();
            let named =
                webhooks.map(|webhook| json!({"name": webhook["name"], "clientConfig": {"caBundle": certificate}}));
            let body = json!({
                "apiVersion": thing.api_version, "kind": thing.kind, "metadata": {"name": thing.name},
                "webhooks": named.collect::<Vec<_>>(),
            });
            vec![on("", "cert-manager-cainjector", APPLY, body)]
        }
        "CustomResourceDefinition" if live["spec"]["conversion"]["webhook"].is_object() => {
            let bundle = json!({"clientConfig": {"caBundle": certificate}});
            vec![merge("cert-manager-cainjector", json!({"spec": {"conversion": {"webhook": bundle}}}))]
        }
        "APIService" if live["spec"]["insecureSkipTLSVerify"] != true => {
            vec![merge("cert-manager-cainjector", json!({"spec": {"caBundle": certificate}}))]
        }
        // Before Kubernetes 1.24 each account got a token; OpenShift's controller adds pull secrets.
        "ServiceAccount" => {
            let name = |what: &str| format!("{}-{what}-x7k2p", thing.name);
            let pull = json!([{"name": name("dockercfg")}]);
            let note = json!({"openshift.io/internal-registry-pull-secret-ref": name("dockercfg")});
            vec![
                merge("kube-controller-manager", json!({"secrets": [{"name": name("token")}]})),
                merge("openshift-controller-manager", json!({"imagePullSecrets": pull})),
                metadata("openshift-controller-manager", "annotations", note),
            ]
        }
        "Service" if live["spec"]["type"] == "LoadBalancer" => vec![
            metadata("cloud-controller-manager", "finalizers", json!(["service.kubernetes.io/load-balancer-cleanup"])),
            metadata("glbc", "annotations", json!({"cloud.google.com/neg-status": "{}"})),
            on(
                "/status",
                "cloud-controller-manager",
                MERGE_PATCH,
                json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.10"}]}}}),
            ),
        ],
        "Deployment" | "StatefulSet" => {
            vec![restart(), on("/scale", "kube-controller-manager", MERGE_PATCH, json!({"spec": {"replicas": 3}}))]
        }
        "DaemonSet" => vec![restart()],
        "Role" => vec![metadata(
            "kubectl-client-side-apply",
            "annotations",
            json!({"kubectl.kubernetes.io/last-applied-configuration": thing.desired.to_string()}),
        )],
        _ => Vec::new(),
    }
}

fn restart() -> Write {
    let annotations = json!({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"});
    Write {
        manager: "kubectl-rollout",
        subresource: "",
        content_type: "application/strategic-merge-patch+json",
        body: json!({"spec": {"template": {"metadata": {"annotations": annotations}}}}),
    }
}

/// Autoscalers for all that is scaled: without one, other replicas are drift.
pub(crate) fn autoscalers(plane: &ControlPlane, site: &Site) -> Result<(), String> {
    for thing in site.things.iter().filter(|thing| matches!(thing.kind.as_str(), "Deployment" | "StatefulSet")) {
        let place = thing.namespace.as_deref().unwrap_or_default();
        let target = json!({"apiVersion": thing.api_version, "kind": thing.kind, "name": thing.name});
        let object = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": scaler(thing)},
            "spec": {"maxReplicas": 9, "scaleTargetRef": target},
        });
        plane
            .request("POST", &format!("/apis/autoscaling/v2/namespaces/{place}/horizontalpodautoscalers"), &object)
            .map_err(|error| format!("autoscaler of {}: {error}", thing.says()))?;
    }
    Ok(())
}

fn scaler(thing: &Thing) -> String {
    format!("{}-{}", thing.kind.to_lowercase(), thing.name)
}

/// A volume that the volume controller binds to the claim, which is then bound for good.
fn bind(plane: &ControlPlane, thing: &Thing, live: &Value) -> Result<(), String> {
    let name = volume(thing);
    let reference =
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": thing.namespace, "name": thing.name});
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "accessModes": live["spec"]["accessModes"], "capacity": live["spec"]["resources"]["requests"],
            "claimRef": reference, "hostPath": {"path": "/nowhere"}, "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": live["spec"]["storageClassName"].as_str().unwrap_or_default(),
        },
    });
    plane.request("POST", "/api/v1/persistentvolumes", &object).map_err(|error| format!("volume {name}: {error}"))?;
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let claim = rewind::read(plane, thing)?.ok_or("the claim is gone")?;
        if claim["status"]["phase"] == "Bound" {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{} is not bound after a minute: {}", thing.says(), claim["status"]));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn volume(thing: &Thing) -> String {
    format!("{}-{}", thing.namespace.as_deref().unwrap_or_default(), thing.name)
}

/// Takes all of it back, down to the traces.
pub(crate) fn leave(plane: &ControlPlane, thing: &Thing, saved: &Value) -> Result<(), String> {
    if thing.kind == "PersistentVolumeClaim" {
        // No claim is ever unbound.
        plane.request("DELETE", &thing.url, &Value::Null).map_err(|error| format!("{}: {error}", thing.url))?;
        rewind::gone(plane, thing)?;
        let url = format!("/api/v1/persistentvolumes/{}", volume(thing));
        plane.request("DELETE", &url, &Value::Null).map_err(|error| format!("{url}: {error}"))?;
    }
    if matches!(thing.kind.as_str(), "Deployment" | "StatefulSet") {
        let place = thing.namespace.as_deref().unwrap_or_default();
        let url = format!("/apis/autoscaling/v2/namespaces/{place}/horizontalpodautoscalers/{}", scaler(thing));
        plane.request("DELETE", &url, &Value::Null).map_err(|error| format!("{url}: {error}"))?;
    }
    rewind::undo(plane, thing, saved, "rewind")?;
    rewind::forget(plane, thing, saved)
}
