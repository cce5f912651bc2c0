//! What can be changed in place: by the server's rules, and by Helm's means. Knows nothing of how a change is made.

use serde_json::Value;

use super::object::{FieldPath, Gvk, Segment};

/// Groups whose types Helm has compiled in; of others it patches old manifest to new, which repairs nothing (helm.md §4.2).
pub(crate) fn is_built_in(gvk: &Gvk) -> bool {
    matches!(gvk.group.as_str(), "" | "apps" | "batch" | "autoscaling" | "policy" | "extensions") || {
        let of_kubernetes = [
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "authentication.k8s.io",
            "authorization.k8s.io",
            "certificates.k8s.io",
            "coordination.k8s.io",
            "discovery.k8s.io",
            "events.k8s.io",
            "flowcontrol.apiserver.k8s.io",
            "networking.k8s.io",
            "node.k8s.io",
            "rbac.authorization.k8s.io",
            "resource.k8s.io",
            "scheduling.k8s.io",
            "storage.k8s.io",
        ];
        of_kubernetes.contains(&gvk.group.as_str())
    }
}

/// Fields that the server refuses to change in place.
pub(crate) fn is_immutable(gvk: &Gvk, live: &Value, path: &FieldPath) -> bool {
    let at = path.to_string();
    let below = |prefixes: &[&str]| prefixes.iter().any(|prefix| at.starts_with(prefix));
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "Deployment" | "DaemonSet" | "ReplicaSet") => below(&[".spec.selector"]),
        ("apps", "StatefulSet") => {
            at.starts_with(".spec.")
                && !below(&[
                    ".spec.replicas",
                    ".spec.ordinals",
                    ".spec.template",
                    ".spec.updateStrategy",
                    ".spec.revisionHistoryLimit",
                    ".spec.persistentVolumeClaimRetentionPolicy",
                    ".spec.minReadySeconds",
                ])
        }
        ("batch", "Job") => below(&[
            ".spec.template",
            ".spec.selector",
            ".spec.completions",
            ".spec.completionMode",
            ".spec.podFailurePolicy",
            ".spec.successPolicy",
            ".spec.backoffLimitPerIndex",
            ".spec.managedBy",
        ]),
        ("", "Pod") => at.starts_with(".spec.") && !at.ends_with(".image") && !below(&[".spec.activeDeadlineSeconds"]),
        ("", "ConfigMap" | "Secret") if is_frozen(live) => {
            below(&[".data", ".binaryData", ".stringData", ".immutable", ".type"])
        }
        ("", "Secret") => below(&[".type"]),
        ("", "ResourceQuota") => below(&[".spec.scopes", ".spec.scopeSelector"]),
        ("scheduling.k8s.io", "PriorityClass") => below(&[".value", ".preemptionPolicy"]),
        ("node.k8s.io", "RuntimeClass") => below(&[".handler"]),
        ("networking.k8s.io", "IngressClass") => below(&[".spec.controller"]),
        ("discovery.k8s.io", "EndpointSlice") => below(&[".addressType"]),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => below(&[".spec.scope", ".spec.group"]),
        ("", "PersistentVolumeClaim") => {
            at.starts_with(".spec.") && !below(&[".spec.resources.requests", ".spec.volumeAttributesClassName"])
        }
        ("", "Service") => below(&[".spec.clusterIP"]),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => below(&[".roleRef"]),
        ("storage.k8s.io", "StorageClass") => {
            below(&[".provisioner", ".parameters", ".reclaimPolicy", ".volumeBindingMode"])
        }
        _ => false,
    }
}

/// Whether a client-side merge keeps only the keys that it sends of the map at this path (`patchStrategy: retainKeys` in kubernetes/api).
pub(crate) fn retains_keys(path: &[Segment]) -> bool {
    let names = |segment: Option<&Segment>, name: &str| matches!(segment, Some(Segment::Field(field)) if field == name);
    names(path.last(), "strategy")
        || (matches!(path.last(), Some(Segment::Item(_))) && names(path.iter().rev().nth(1), "volumes"))
}

/// `immutable: true` of a ConfigMap or Secret, which cannot be taken back either.
fn is_frozen(object: &Value) -> bool {
    object.get("immutable") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_frozen_is_immutable_and_only_that() {
        let map = Gvk::new("v1", "ConfigMap");
        let data = FieldPath::of_fields(&["data", "a"]);
        assert!(is_immutable(&map, &json!({"immutable": true}), &data));
        assert!(!is_immutable(&map, &json!({"immutable": false}), &data));
        assert!(!is_immutable(&map, &json!({"immutable": true}), &FieldPath::of_fields(&["metadata", "labels", "a"])));
        assert!(!is_immutable(&Gvk::new("example.com/v1", "ConfigMap"), &json!({"immutable": true}), &data));
    }

    #[test]
    fn each_kind_has_its_own() {
        for (api_version, kind, path, immutable) in [
            ("apps/v1", "Deployment", ".spec.selector.matchLabels.a", true),
            ("apps/v1", "Deployment", ".spec.template.metadata.labels.a", false),
            ("apps/v1", "StatefulSet", ".spec.serviceName", true),
            ("apps/v1", "StatefulSet", ".spec.replicas", false),
            ("batch/v1", "Job", ".spec.template.spec.restartPolicy", true),
            ("batch/v1", "Job", ".spec.parallelism", false),
            ("v1", "Secret", ".type", true),
            ("v1", "Secret", ".data.a", false),
            ("v1", "PersistentVolumeClaim", ".spec.storageClassName", true),
            ("v1", "PersistentVolumeClaim", ".spec.resources.requests.storage", false),
            ("rbac.authorization.k8s.io/v1", "RoleBinding", ".roleRef.name", true),
            ("scheduling.k8s.io/v1", "PriorityClass", ".value", true),
            ("example.com/v1", "Deployment", ".spec.selector.a", false),
        ] {
            let fields: Vec<&str> = path.split('.').skip(1).collect();
            let path = FieldPath::of_fields(&fields);
            assert_eq!(is_immutable(&Gvk::new(api_version, kind), &json!({}), &path), immutable, "{kind} {path}");
        }
    }
}
