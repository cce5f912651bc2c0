//! What the server fills in by itself: defaults, mirrors, allocations, bookkeeping; and which zeros it keeps.
//! Knows nothing of owners. Facts about built-in types, derived from the Kubernetes API types (`tables/`), and the
//! conditions that a table cannot say.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::equal::{is_zero, same_json, same_quantity};
use super::object::Gvk;

/// Why a zero stays in a stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Set to zero and absent differ.
    Pointer,
    /// Always written, so a live-only zero says nothing.
    Always,
}

/// What explains a value that only the live object has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// The known default: no difference whoever owns it.
    Default,
    /// Repeats another field, or was chosen by the server: no addition whoever owns it.
    Allocated,
    /// A node port: no addition while nobody, or Helm, owns it.
    NodePort,
}

/// One map on the way from the object's root to a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'v> {
    /// Its key in the map above; empty for the root and for list items.
    pub(crate) key: &'v str,
    pub(crate) definition: Option<&'v str>,
    pub(crate) custom: bool,
    pub(crate) desired: Option<&'v Value>,
    pub(crate) live: &'v Value,
}

impl<'v> Frame<'v> {
    /// The values of a sibling field on either side; either counts for a condition.
    fn either(&self, field: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
        let desired = self.desired.and_then(|map| map.get(field));
        let live = self.live.get(field);
        desired.into_iter().chain(live)
    }

    fn has(&self, field: &str) -> bool {
        self.either(field).any(|value| !value.is_null())
    }

    /// The map on either side; a default that follows from siblings may follow from either's.
    fn sides(&self) -> impl Iterator<Item = &'v Value> + use<'v> {
        self.desired.into_iter().chain([self.live])
    }

    fn is(&self, field: &str, text: &str) -> bool {
        self.either(field).any(|value| value.as_str() == Some(text))
    }
}

static KEPT: LazyLock<HashMap<(&str, &str), Kept>> = LazyLock::new(|| {
    rows(include_str!("tables/kept-zero-fields.tsv"))
        .filter_map(|row| match *row.as_slice() {
            [definition, field, "pointer", ..] => Some(((definition, field), Kept::Pointer)),
            [definition, field, "always", ..] => Some(((definition, field), Kept::Always)),
            _ => None,
        })
        .collect()
});

static DEFAULTS: LazyLock<HashMap<(&str, &str), Vec<Value>>> = LazyLock::new(|| {
    let mut defaults: HashMap<(&str, &str), Vec<Value>> = HashMap::new();
    for row in rows(include_str!("tables/defaults.tsv")) {
        if let [definition, field, text, ..] = *row.as_slice()
            && let Ok(value) = serde_json::from_str(text)
        {
            defaults.entry((definition, field)).or_default().push(value);
        }
    }
    defaults
});

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// Whether a field of a built-in type stays when it is zero; `None`: it is dropped.
pub(crate) fn kept(definition: &str, field: &str) -> Option<Kept> {
    KEPT.get(&(definition, field)).copied()
}

/// Whether the server stores `field` of the innermost frame for certain, as desired has it: who applied it then owns it no longer
/// because it was never stored, but because the server took it away beside somebody's change of a sibling, of which it takes no notice.
///
/// Source: kubernetes/kubernetes `pkg/registry/core/service/strategy.go` `dropTypeDependentFields`.
pub(crate) fn is_stored(frames: &[Frame<'_>], field: &str) -> bool {
    let is =
        |frame: &&Frame<'_>, name: &str| frame.definition.and_then(|name| name.strip_prefix(API_PREFIX)) == Some(name);
    let Some(spec) = frames.iter().rev().find(|frame| is(frame, "core.v1.ServiceSpec")) else { return false };
    let of_spec = frames.last().is_some_and(|frame| is(&frame, "core.v1.ServiceSpec"));
    let kind = spec.desired.and_then(|spec| spec.get("type")).and_then(Value::as_str).unwrap_or("ClusterIP");
    match field {
        "clusterIP" | "clusterIPs" | "ipFamilies" | "ipFamilyPolicy" if of_spec => kind != "ExternalName",
        "allocateLoadBalancerNodePorts" | "healthCheckNodePort" | "loadBalancerClass" if of_spec => {
            kind == "LoadBalancer"
        }
        "externalTrafficPolicy" if of_spec => matches!(kind, "LoadBalancer" | "NodePort"),
        "nodePort" => matches!(kind, "LoadBalancer" | "NodePort"),
        _ => false,
    }
}

/// What explains `value` at `field` of the innermost frame, which desired has not.
///
/// Shape: `frames` lead from the object to the map that holds the field; `kind` is the object's.
pub(crate) fn fill(kind: &Gvk, frames: &[Frame<'_>], field: &str, value: &Value) -> Option<Fill> {
    let parent = frames.last()?;
    if let Some(definition) = parent.definition
        && let Some(fill) = of_definition(definition, parent, frames, field, value)
    {
        return Some(fill);
    }
    of_resources(kind, frames, field, value).or_else(|| of_object(kind, frames, field, value))
}

/// Amounts that repeat a sibling's: all of them, or the entry of one resource.
fn of_resources(kind: &Gvk, frames: &[Frame<'_>], field: &str, value: &Value) -> Option<Fill> {
    let (parent, above) = frames.split_last()?;
    let holds = |owner: &Frame<'_>, list: &str, name: &str, amount: &Value| {
        let definition = owner.definition.and_then(|name| name.strip_prefix(API_PREFIX));
        match (definition, list) {
            // Of pods alone, not of templates (kubernetes/kubernetes `pkg/apis/core/v1/defaults.go` `SetDefaults_Pod`).
            (Some("core.v1.ResourceRequirements"), "requests") => {
                kind.group.is_empty() && kind.kind == "Pod" && repeats(owner, "limits", name, amount)
            }
            // A container's default limit is its maximum, its default request that limit, or else the minimum
            // (`SetDefaults_LimitRangeItem` there).
            (Some("core.v1.LimitRangeItem"), "default") => {
                owner.is("type", "Container") && repeats(owner, "max", name, amount)
            }
            (Some("core.v1.LimitRangeItem"), "defaultRequest") => {
                owner.is("type", "Container")
                    && ["default", "max", "min"].iter().any(|source| repeats(owner, source, name, amount))
            }
            _ => false,
        }
    };
    let whole = || {
        let amounts = value.as_object().filter(|amounts| !amounts.is_empty())?;
        amounts.iter().all(|(name, amount)| holds(parent, field, name, amount)).then_some(Fill::Default)
    };
    let entry = || holds(above.last()?, parent.key, field, value).then_some(Fill::Default);
    whole().or_else(entry)
}

/// Most facts are about these definitions; the names in `conditional` leave the prefix out.
const API_PREFIX: &str = "io.k8s.api.";

fn of_definition(
    definition: &str,
    parent: &Frame<'_>,
    frames: &[Frame<'_>],
    field: &str,
    value: &Value,
) -> Option<Fill> {
    let short = definition.strip_prefix(API_PREFIX).unwrap_or(definition);
    // Conditional first: where a condition is known, the table's value alone is no explanation.
    if let Some(verdict) = conditional(short, parent, frames, field, value) {
        return verdict;
    }
    if DEFAULTS.get(&(definition, field)).is_some_and(|values| values.iter().any(|default| same_json(default, value))) {
        return Some(Fill::Default);
    }
    (kept(definition, field) == Some(Kept::Always) && is_zero(value)).then_some(Fill::Default)
}

/// `Some(None)`: the condition is known and does not hold.
fn conditional(
    short: &str,
    parent: &Frame<'_>,
    frames: &[Frame<'_>],
    field: &str,
    value: &Value,
) -> Option<Option<Fill>> {
    let default_if = |holds: bool| Some(holds.then_some(Fill::Default));
    let allocated_if = |holds: bool| Some(holds.then_some(Fill::Allocated));
    let text = value.as_str().unwrap_or_default();
    match (short, field) {
        ("core.v1.Container" | "core.v1.EphemeralContainer", "imagePullPolicy") => {
            default_if(parent.either("image").filter_map(Value::as_str).any(|image| text == pull_policy(image)))
        }
        ("core.v1.ImageVolumeSource", "pullPolicy") => {
            default_if(parent.either("reference").filter_map(Value::as_str).any(|image| text == pull_policy(image)))
        }
        ("core.v1.ServicePort", "targetPort") => default_if(parent.either("port").any(|port| same_json(port, value))),
        ("core.v1.ServicePort", "nodePort") => Some(Some(Fill::NodePort)),
        ("core.v1.ServiceSpec", "clusterIP") => allocated_if(text != "None"),
        ("core.v1.ServiceSpec", "clusterIPs") => allocated_if(
            parent.either("clusterIP").any(|ip| value.get(0) == Some(ip)) || !same_json(value, &json!(["None"])),
        ),
        ("core.v1.ServiceSpec", "ipFamilies" | "healthCheckNodePort") => Some(Some(Fill::Allocated)),
        ("core.v1.ServiceSpec", "ipFamilyPolicy") => default_if(text == "SingleStack"),
        ("core.v1.ServiceSpec", "allocateLoadBalancerNodePorts") => {
            default_if(value == &json!(true) && parent.is("type", "LoadBalancer"))
        }
        ("core.v1.ServiceSpec", "externalTrafficPolicy") => default_if(
            text == "Cluster"
                && (parent.is("type", "LoadBalancer") || parent.is("type", "NodePort") || parent.has("externalIPs")),
        ),
        ("core.v1.ServiceSpec", "sessionAffinityConfig") => default_if(
            same_json(value, &json!({"clientIP": {"timeoutSeconds": 10800}}))
                && parent.is("sessionAffinity", "ClientIP"),
        ),
        ("core.v1.SessionAffinityConfig", "clientIP") => {
            default_if(same_json(value, &json!({"timeoutSeconds": 10800})))
        }
        ("core.v1.ClientIPConfig", "timeoutSeconds") => default_if(same_json(value, &json!(10800))),
        ("core.v1.PodSpec", "serviceAccount") => {
            allocated_if(parent.either("serviceAccountName").any(|name| name == value) || text == "default")
        }
        ("core.v1.PodSpec", "serviceAccountName") => allocated_if(
            parent
                .either("serviceAccount")
                .any(|name| name == value && parent.desired.is_some_and(|d| d.get("serviceAccount") == Some(name))),
        ),
        ("core.v1.ContainerPort", "hostPort") => allocated_if(
            parent.either("containerPort").any(|port| same_json(port, value))
                && frames.iter().rev().any(|frame| frame.either("hostNetwork").any(|on| on == &json!(true))),
        ),
        ("core.v1.PersistentVolumeClaimSpec", "dataSourceRef") => {
            allocated_if(parent.either("dataSource").any(|source| same_source(source, value)))
        }
        ("core.v1.PersistentVolumeClaimSpec", "dataSource") => {
            allocated_if(parent.either("dataSourceRef").any(|source| same_source(source, value)))
        }
        ("core.v1.PersistentVolumeClaimSpec", "volumeName" | "storageClassName") => {
            allocated_if(frames.len() == 2) // of the claim itself, not of a claim template
        }
        ("core.v1.PersistentVolumeSpec", "claimRef") => None,
        ("core.v1.Volume", "emptyDir") => default_if(
            same_json(value, &json!({}))
                && parent
                    .live
                    .as_object()
                    .is_some_and(|volume| volume.keys().all(|key| key == "name" || key == "emptyDir")),
        ),
        ("networking.v1.NetworkPolicySpec", "policyTypes") => default_if(parent.sides().any(|policy| {
            let egress = policy.get("egress").is_some_and(|rules| !is_zero(rules));
            same_json(value, &if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) })
        })),
        ("batch.v1.JobSpec", "completions") => default_if(
            same_json(value, &json!(1))
                && parent.desired.is_none_or(|spec| spec.get("parallelism").is_none_or(Value::is_null)),
        ),
        // Counted per index, failures in all have no limit.
        ("batch.v1.JobSpec", "backoffLimit") => default_if(
            parent
                .sides()
                .any(|job| same_json(value, &json!(if is_set(job, "backoffLimitPerIndex") { i32::MAX } else { 6 }))),
        ),
        ("batch.v1.JobSpec", "podReplacementPolicy") => default_if(
            parent
                .sides()
                .any(|job| text == if is_set(job, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" }),
        ),
        ("batch.v1.JobSpec", "selector") => {
            allocated_if(!parent.either("manualSelector").any(|manual| manual == &json!(true)))
        }
        ("autoscaling.v2.HorizontalPodAutoscalerSpec", "metrics") => default_if(same_json(
            value,
            &json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]),
        )),
        ("autoscaling.v2.HorizontalPodAutoscalerBehavior", "scaleUp") => default_if(same_json(value, &scale_up())),
        ("autoscaling.v2.HorizontalPodAutoscalerBehavior", "scaleDown") => default_if(same_json(value, &scale_down())),
        ("autoscaling.v2.HPAScalingRules", "policies") => default_if(match parent.key {
            "scaleUp" => scale_up().get("policies").is_some_and(|policies| same_json(policies, value)),
            _ => scale_down().get("policies").is_some_and(|policies| same_json(policies, value)),
        }),
        ("autoscaling.v2.HPAScalingRules", "stabilizationWindowSeconds") => {
            default_if(parent.key == "scaleUp" && same_json(value, &json!(0)))
        }
        (
            "apps.v1.DeploymentStrategy" | "apps.v1.DaemonSetUpdateStrategy" | "apps.v1.StatefulSetUpdateStrategy",
            "rollingUpdate",
        ) => {
            let rolling = parent.is("type", "RollingUpdate") || !parent.has("type");
            let default = match short {
                "apps.v1.DeploymentStrategy" => json!({"maxUnavailable": "25%", "maxSurge": "25%"}),
                "apps.v1.DaemonSetUpdateStrategy" => json!({"maxUnavailable": 1, "maxSurge": 0}),
                _ => json!({"partition": 0}),
            };
            default_if(rolling && same_json(value, &default))
        }
        ("rbac.v1.Subject", "apiGroup") => {
            default_if(text == if parent.is("kind", "ServiceAccount") { "" } else { "rbac.authorization.k8s.io" })
        }
        ("core.v1.PersistentVolumeClaim", "apiVersion") => default_if(text == "v1"),
        ("core.v1.PersistentVolumeClaim", "kind") => default_if(text == "PersistentVolumeClaim"),
        ("core.v1.PersistentVolumeClaim", "status") => Some(Some(Fill::Allocated)),
        _ => None,
    }
}

/// Whether a side has the field.
fn is_set(side: &Value, field: &str) -> bool {
    side.get(field).is_some_and(|value| !value.is_null())
}

/// Whether a sibling list of resources (`limits`, `max`) holds this amount.
fn repeats(parent: &Frame<'_>, sibling: &str, name: &str, amount: &Value) -> bool {
    parent.either(sibling).filter_map(|resources| resources.get(name)).any(|one| same_quantity(one, amount))
}

fn same_source(a: &Value, b: &Value) -> bool {
    ["apiGroup", "kind", "name"].iter().all(|key| {
        a.get(key).and_then(Value::as_str).unwrap_or_default() == b.get(key).and_then(Value::as_str).unwrap_or_default()
    })
}

fn scale_up() -> Value {
    json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]})
}

fn scale_down() -> Value {
    json!({"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]})
}

/// `Always` when the tag is `latest` or there is none and no digest.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') {
        return "IfNotPresent";
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.rsplit_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// What depends on the kind of the object and the path in it, not on a definition.
fn of_object(kind: &Gvk, frames: &[Frame<'_>], field: &str, value: &Value) -> Option<Fill> {
    let (root, parent) = (frames.first()?, frames.last()?);
    let keys: Vec<&str> = frames.iter().skip(1).map(|frame| frame.key).collect();
    let name = root.live.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let text = value.as_str().unwrap_or_default();
    let job = |field: &str| {
        matches!(
            field,
            "controller-uid" | "job-name" | "batch.kubernetes.io/controller-uid" | "batch.kubernetes.io/job-name"
        )
    };
    match (kind.group.as_str(), kind.kind.as_str(), keys.as_slice(), field) {
        // What admission plugins of the API server itself put into a pod, and let nobody choose otherwise.
        ("", "Pod", ["spec"], "priority" | "preemptionPolicy" | "overhead") => Some(Fill::Allocated),
        ("", "Pod", ["spec"], "serviceAccountName") if text == "default" => Some(Fill::Default),
        ("", "Pod", ["spec"], "tolerations") => {
            value.as_array().is_some_and(|all| all.iter().all(is_default_toleration)).then_some(Fill::Default)
        }
        ("", "ReplicationController", ["spec"], "selector") => {
            (root.live.pointer("/spec/template/metadata/labels") == Some(value)).then_some(Fill::Allocated)
        }
        ("", "Namespace", ["metadata", "labels"], "kubernetes.io/metadata.name") if text == name => {
            Some(Fill::Allocated)
        }
        ("", "Namespace", [], "spec") if same_json(value, &json!({"finalizers": ["kubernetes"]})) => {
            Some(Fill::Default)
        }
        ("", "Namespace", ["spec"], "finalizers") if same_json(value, &json!(["kubernetes"])) => Some(Fill::Default),
        // Bookkeeping whoever owns it: an editor becomes its owner (design.md §5.8).
        ("apps", "DaemonSet", ["metadata", "annotations"], "deprecated.daemonset.template.generation")
        | ("apps", "Deployment", ["metadata", "annotations"], "deployment.kubernetes.io/revision") => {
            Some(Fill::Allocated)
        }
        ("batch", "Job", ["spec", "template", "metadata", "labels"], label) if job(label) => Some(Fill::Allocated),
        ("batch", "Job", ["spec", "template", "metadata"], "labels") => {
            value.as_object().is_some_and(|labels| labels.keys().all(|label| job(label))).then_some(Fill::Allocated)
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition", ["spec", "names"], "listKind") => {
            let kind = parent.live.get("kind").and_then(Value::as_str).unwrap_or_default();
            (text == format!("{kind}List")).then_some(Fill::Default)
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition", ["spec", "names"], "singular") => {
            let kind = parent.live.get("kind").and_then(Value::as_str).unwrap_or_default();
            (text == kind.to_lowercase()).then_some(Fill::Default)
        }
        (group, kind, ["metadata"], "finalizers") => value
            .as_array()
            .is_some_and(|all| {
                !all.is_empty() && all.iter().all(|one| is_protection(group, kind, one.as_str().unwrap_or_default()))
            })
            .then_some(Fill::Allocated),
        _ => None,
    }
}

/// What every pod tolerates for five minutes.
///
/// Source: kubernetes/kubernetes `plugin/pkg/admission/defaulttolerationseconds`.
pub(crate) fn is_default_toleration(toleration: &Value) -> bool {
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].iter().any(|taint| {
        same_json(
            toleration,
            &json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
        )
    })
}

/// What explains a list item that only live has.
pub(crate) fn item_fill(kind: &Gvk, list: &str, item: &Value) -> Option<Fill> {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_token = match list {
        // kubernetes/kubernetes `plugin/pkg/admission/serviceaccount`.
        "volumes" => {
            text("/name").starts_with("kube-api-access-")
                && item.pointer("/projected/sources").and_then(Value::as_array).is_some_and(|sources| {
                    sources.iter().all(|source| {
                        source.get("serviceAccountToken").is_some_and(|token| token.get("audience").is_none())
                            || source.get("downwardAPI").is_some()
                            || source.pointer("/configMap/name").is_some_and(|name| name == "kube-root-ca.crt")
                    })
                })
        }
        "volumeMounts" => {
            text("/mountPath") == "/var/run/secrets/kubernetes.io/serviceaccount"
                && text("/name").starts_with("kube-api-access-")
        }
        _ => false,
    };
    (is_token && kind.group.is_empty() && kind.kind == "Pod").then_some(Fill::Allocated)
}

/// Finalizers that the API server itself puts on a kind's objects.
pub(crate) fn is_protection(group: &str, kind: &str, finalizer: &str) -> bool {
    matches!(
        (group, kind, finalizer),
        ("", "PersistentVolumeClaim", "kubernetes.io/pvc-protection")
            | ("", "PersistentVolume", "kubernetes.io/pv-protection")
            | ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcecleanup.apiextensions.k8s.io")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_whole() {
        assert!(KEPT.len() > 1500, "{}", KEPT.len());
        assert!(DEFAULTS.len() > 250, "{}", DEFAULTS.len());
        assert_eq!(kept("io.k8s.api.apps.v1.DeploymentSpec", "replicas"), Some(Kept::Pointer));
        assert_eq!(kept("io.k8s.api.apps.v1.DeploymentSpec", "paused"), None);
    }

    /// What explains `value` at `field`, the last of the maps on the way having this definition and these two sides.
    fn filled(definition: &str, desired: &Value, live: &Value, field: &str) -> Option<Fill> {
        let frame = Frame { key: "", definition: Some(definition), custom: false, desired: Some(desired), live };
        fill(&Gvk::new("v1", "Pod"), &[frame], field, live.get(field).unwrap())
    }

    #[test]
    fn a_default_that_depends_on_others_follows_from_either_side() {
        let policy = |desired: &str, live: &str, policy: &str| {
            let live = json!({"image": live, "imagePullPolicy": policy});
            filled("io.k8s.api.core.v1.Container", &json!({"image": desired}), &live, "imagePullPolicy")
        };
        assert_eq!(policy("nginx:latest", "nginx:1", "Always"), Some(Fill::Default), "of the image as installed");
        assert_eq!(policy("nginx:latest", "nginx:1", "IfNotPresent"), Some(Fill::Default), "of the image as it is");
        assert_eq!(policy("nginx:1", "nginx:2", "Always"), None);
        assert_eq!(
            policy("nginx:latest", "nginx", "IfNotPresent"),
            None,
            "the table has it, the condition does not hold"
        );
    }

    #[test]
    fn a_zero_that_is_always_written_says_nothing() {
        let ordinals = |start: i32| {
            filled("io.k8s.api.apps.v1.StatefulSetOrdinals", &json!({}), &json!({"start": start}), "start")
        };
        assert_eq!(ordinals(0), Some(Fill::Default));
        assert_eq!(ordinals(1), None);
    }

    #[test]
    fn an_address_is_allocated_and_having_none_is_chosen() {
        let address = |address: &str| {
            filled("io.k8s.api.core.v1.ServiceSpec", &json!({}), &json!({"clusterIP": address}), "clusterIP")
        };
        assert_eq!(address("10.0.0.7"), Some(Fill::Allocated));
        assert_eq!(address("None"), None);
        let port = filled("io.k8s.api.core.v1.ServicePort", &json!({}), &json!({"nodePort": 30007}), "nodePort");
        assert_eq!(port, Some(Fill::NodePort));
    }

    #[test]
    fn what_admission_puts_into_a_pod_is_known_by_its_value() {
        let toleration =
            |taint: &str| json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
        assert!(is_default_toleration(&toleration("node.kubernetes.io/not-ready")));
        assert!(!is_default_toleration(&toleration("example.com/gpu")));
        assert!(!is_default_toleration(&json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists"})));
        assert!(is_protection("", "PersistentVolumeClaim", "kubernetes.io/pvc-protection"));
        assert!(!is_protection("", "PersistentVolumeClaim", "example.com/hold"));
        assert!(!is_protection("", "ConfigMap", "kubernetes.io/pvc-protection"));

        let spec = |kind: &str, live: &Value, field: &str| {
            let root = Frame { key: "", definition: None, custom: false, desired: None, live };
            let spec = live.get("spec").unwrap();
            let frames = [root, Frame { key: "spec", live: spec, ..root }];
            fill(&Gvk::new("v1", kind), &frames, field, spec.get(field).unwrap())
        };
        let account = |name: &str| spec("Pod", &json!({"spec": {"serviceAccountName": name}}), "serviceAccountName");
        assert_eq!(account("default"), Some(Fill::Default));
        assert_eq!(account("admin"), None);
        let selector = |app: &str| {
            let live =
                json!({"spec": {"selector": {"app": app}, "template": {"metadata": {"labels": {"app": "web"}}}}});
            spec("ReplicationController", &live, "selector")
        };
        assert_eq!(selector("web"), Some(Fill::Allocated));
        assert_eq!(selector("other"), None);
    }

    #[test]
    fn the_pull_policy_follows_the_tag() {
        assert_eq!(pull_policy("nginx"), "Always");
        assert_eq!(pull_policy("r:5000/nginx"), "Always");
        assert_eq!(pull_policy("nginx:latest"), "Always");
        assert_eq!(pull_policy("nginx:1.27"), "IfNotPresent");
        assert_eq!(pull_policy("nginx@sha256:abc"), "IfNotPresent");
        assert_eq!(pull_policy("nginx:latest@sha256:abc"), "IfNotPresent");
    }
}
