//! What is security-relevant, and how grave a finding is (design.md §7.1). Knows nothing of how differences are found.

use serde_json::Value;

use super::finding::{Change, Class, Severity};
use super::object::{FieldPath, Gvk, Segment};

/// Two grades of security relevance: the first counts when nobody can be asked, the second always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relevance {
    None,
    /// (a): what runs and how it is reached.
    Workload,
    /// (b): rights, admission, isolation.
    Boundary,
}

/// Relevance of a difference at `path` with these values on either side.
pub(crate) fn relevance(gvk: &Gvk, path: &FieldPath, values: [Option<&Value>; 2]) -> Relevance {
    let keys: Vec<&str> = path
        .0
        .iter()
        .map(|segment| match segment {
            Segment::Field(key) => key.as_str(),
            Segment::Item(_) | Segment::Member(_) | Segment::Index(_) => "*",
        })
        .collect();
    let (group, kind) = (gvk.group.as_str(), gvk.kind.as_str());
    let metadata = keys.first() == Some(&"metadata");
    let of_kind = match (group, kind) {
        _ if metadata => Relevance::None,
        ("rbac.authorization.k8s.io", _)
        | ("admissionregistration.k8s.io", _)
        | ("networking.k8s.io", "NetworkPolicy") => Relevance::Boundary,
        ("", "Service") if matches!(keys.as_slice(), ["spec"] | ["spec", "type" | "ports", ..]) => Relevance::Workload,
        ("networking.k8s.io", "Ingress") if matches!(keys.as_slice(), ["spec"] | ["spec", "rules" | "tls", ..]) => {
            Relevance::Workload
        }
        ("", "ServiceAccount") if keys.first() == Some(&"automountServiceAccountToken") => Relevance::Workload,
        ("gateway.networking.k8s.io", _)
            if keys.iter().any(|key| matches!(*key, "hostnames" | "hostname" | "tls" | "listeners")) =>
        {
            Relevance::Workload
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") if keys.get(1) == Some(&"conversion") => {
            Relevance::Workload
        }
        _ => Relevance::None,
    };
    let in_pod = pod_spec(group, kind).and_then(|prefix| keys.strip_prefix(prefix));
    let of_pod = in_pod.map_or(Relevance::None, |below| {
        values.into_iter().flatten().map(|value| in_pod_spec(below, value)).max().unwrap_or(Relevance::None)
    });
    of_kind.max(of_pod)
}

fn pod_spec(group: &str, kind: &str) -> Option<&'static [&'static str]> {
    match (group, kind) {
        ("", "Pod") => Some(&["spec"]),
        ("", "ReplicationController") | ("apps", _) | ("batch", "Job") => Some(&["spec", "template", "spec"]),
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template", "spec"]),
        _ => None,
    }
}

/// Relevance of a value at `below` a pod's spec; a whole container or volume counts by what is in it.
fn in_pod_spec(below: &[&str], value: &Value) -> Relevance {
    let here = match below {
        ["hostNetwork" | "hostPID" | "hostIPC" | "hostUsers", ..] => Relevance::Boundary,
        ["serviceAccount" | "serviceAccountName" | "automountServiceAccountToken", ..] => Relevance::Workload,
        ["containers" | "initContainers" | "ephemeralContainers", "*", rest @ ..] => match rest {
            ["securityContext", "privileged" | "allowPrivilegeEscalation", ..]
                if value == &Value::Bool(true) || value.is_object() =>
            {
                Relevance::Boundary
            }
            ["securityContext", "privileged" | "allowPrivilegeEscalation", ..] => Relevance::Boundary,
            ["image" | "command" | "args" | "envFrom" | "ports" | "securityContext", ..] => Relevance::Workload,
            ["env", "*", "valueFrom", "secretKeyRef", ..] => Relevance::Workload,
            _ => Relevance::None,
        },
        ["securityContext", ..] => Relevance::Workload,
        ["volumes", "*", "hostPath" | "secret" | "projected", ..] => Relevance::Workload,
        _ => Relevance::None,
    };
    let inside = match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| in_pod_spec(&[below, &[key.as_str()]].concat(), value)).max()
        }
        Value::Array(items) => items.iter().map(|item| in_pod_spec(&[below, &["*"]].concat(), item)).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    here.max(inside.unwrap_or(Relevance::None))
}

/// Severity of drift; what is expected or ignored is P3 elsewhere.
pub(crate) fn severity(
    gvk: &Gvk,
    change: Change,
    path: Option<&FieldPath>,
    values: [Option<&Value>; 2],
    class: Class,
) -> Severity {
    if class == Class::A {
        return Severity::P3;
    }
    let Some(path) = path else {
        let grave = change == Change::Missing && (is_workload(gvk) || is_boundary(gvk));
        return if grave { Severity::P1 } else { Severity::P2 };
    };
    let to_zero =
        path.to_string() == ".spec.replicas" && values.get(1).copied().flatten().and_then(Value::as_f64) == Some(0.0);
    match relevance(gvk, path, values) {
        _ if to_zero => Severity::P1,
        Relevance::Boundary => Severity::P1,
        Relevance::Workload if class == Class::C => Severity::P1,
        Relevance::Workload | Relevance::None => Severity::P2,
    }
}

/// Kinds whose absence is an outage.
fn is_workload(gvk: &Gvk) -> bool {
    matches!(
        (gvk.group.as_str(), gvk.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job" | "CronJob")
            | ("", "Pod" | "Service")
            | ("networking.k8s.io", "Ingress")
    )
}

/// Kinds that are a boundary as a whole.
fn is_boundary(gvk: &Gvk) -> bool {
    matches!(
        (gvk.group.as_str(), gvk.kind.as_str()),
        ("rbac.authorization.k8s.io" | "admissionregistration.k8s.io", _) | ("networking.k8s.io", "NetworkPolicy")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn severity_follows_what_was_touched_and_by_whom() {
        let deployment = Gvk::new("apps/v1", "Deployment");
        let container = FieldPath::of_fields(&["spec", "template", "spec", "containers"])
            .child(Segment::Item(vec![("name".into(), json!("web"))]));
        let image = container.field("image");
        let grade = |gvk: &Gvk, path: &FieldPath, live: Value, class| {
            severity(gvk, Change::Changed, Some(path), [None, Some(&live)], class)
        };
        assert_eq!(grade(&deployment, &image, json!("x"), Class::B), Severity::P2);
        assert_eq!(grade(&deployment, &image, json!("x"), Class::C), Severity::P1);
        assert_eq!(grade(&deployment, &container.field("workingDir"), json!("/x"), Class::C), Severity::P2);
        assert_eq!(
            grade(&deployment, &container, json!({"name": "web", "securityContext": {"privileged": true}}), Class::B),
            Severity::P1
        );
        assert_eq!(grade(&deployment, &FieldPath::of_fields(&["spec", "replicas"]), json!(0), Class::B), Severity::P1);
        assert_eq!(grade(&deployment, &FieldPath::of_fields(&["spec", "replicas"]), json!(6), Class::B), Severity::P2);
        let role = Gvk::new("rbac.authorization.k8s.io/v1", "Role");
        assert_eq!(grade(&role, &FieldPath::of_fields(&["rules"]), json!([]), Class::B), Severity::P1);
        assert_eq!(
            grade(&role, &FieldPath::of_fields(&["metadata", "labels", "team"]), json!("x"), Class::B),
            Severity::P2
        );
        assert_eq!(severity(&deployment, Change::Missing, None, [None, None], Class::C), Severity::P1);
        assert_eq!(severity(&Gvk::new("v1", "ConfigMap"), Change::Missing, None, [None, None], Class::C), Severity::P2);
    }
}
