//! A stand-in for the kubelet (and, as there are no nodes, for the scheduler): new pods run and are ready at once, deleted ones go.
//! It starts nothing and knows nothing of the tests; what it does to a pod is all in the pod.

use kube::Client;
use serde_json::{Value, json};
use std::time::Duration;

/// On a pod: how it ends. `Succeeded` and `Failed` end it at once, `Pending` leaves it alone; without it the pod runs and is ready.
pub(crate) const PHASE: &str = "helm-drift.test/phase";

/// Serves all pods of the cluster until the task is dropped.
///
/// Both lists come out of the API server's watch cache and are as good as empty while nothing happens.
pub(crate) async fn serve(client: Client) {
    loop {
        for pod in pods(&client, "status.phase=Pending").await {
            if let Some(status) = status(&pod) {
                let patch = json!({"status": status}).to_string().into_bytes();
                let path = format!("{}/status?fieldManager=kubelet", path(&pod));
                request(&client, "PATCH", &path, patch).await;
            }
        }
        // A pod that was never bound to a node is removed by the API server itself.
        for pod in pods(&client, "spec.nodeName!=").await {
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                request(&client, "DELETE", &format!("{}?gracePeriodSeconds=0", path(&pod)), Vec::new()).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn pods(client: &Client, selector: &str) -> Vec<Value> {
    let path =
        format!("/api/v1/pods?resourceVersion=0&fieldSelector={}", selector.replace('=', "%3D").replace('!', "%21"));
    let list = request(client, "GET", &path, Vec::new()).await;
    list["items"].as_array().cloned().unwrap_or_default()
}

fn path(pod: &Value) -> String {
    let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default().to_owned();
    format!("/api/v1/namespaces/{}/pods/{}", text("namespace"), text("name"))
}

/// The status to write, or nothing for a pod that asks to be left alone.
fn status(pod: &Value) -> Option<Value> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let asked = pod["metadata"]["annotations"][PHASE].as_str().unwrap_or("Running");
    if asked == "Pending" {
        return None;
    }
    let running = asked == "Running";
    let state = if running {
        json!({"running": {"startedAt": now}})
    } else {
        let code = i32::from(asked != "Succeeded");
        json!({"terminated": {"exitCode": code, "reason": "Completed", "startedAt": now, "finishedAt": now}})
    };
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(|kind| {
        let holds = running || matches!(kind, "PodScheduled" | "Initialized");
        json!({"type": kind, "status": if holds { "True" } else { "False" }, "lastTransitionTime": now})
    });
    let containers: Vec<Value> = pod["spec"]["containers"].as_array().into_iter().flatten().map(|container| {
        json!({"name": container["name"], "image": container["image"], "imageID": container["image"], "restartCount": 0, "ready": running, "started": running, "state": state})
    }).collect();
    Some(json!({"phase": asked, "startTime": now, "conditions": conditions, "containerStatuses": containers}))
}

/// An answer, or null for whatever went wrong: the next turn sees the pod again.
async fn request(client: &Client, method: &str, path: &str, body: Vec<u8>) -> Value {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", "application/merge-patch+json")
        .body(body);
    match client.request_text(request.unwrap()).await {
        Ok(text) => serde_json::from_str(&text).unwrap_or_default(),
        Err(_) => Value::Null,
    }
}
