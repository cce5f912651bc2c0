//! Known writers: who may change what without it being drift (design.md §7.2). One table; path *and* owner are the evidence,
//! since a path alone could have been set by anybody.

use super::finding::{Cause, Manager};
use super::object::{FieldPath, Gvk, Segment};

/// Tools that a person drives by hand. The name can be forged; it says "hotfix", not "harmless".
const PERSONS_TOOLS: &[&str] = &[
    "kubectl",
    "kubectl-*",
    "k9s",
    "Lens",
    "lens",
    "OpenLens",
    "Freelens",
    "freelens",
    "Headlamp",
    "headlamp",
    "headlamp-server",
    "dashboard",
    "dashboard-api",
    "kubernetes-dashboard",
    "octant",
    "rancher",
    "node-fetch",
    "OpenAPI-Generator",
    "Mozilla",
    "aptakube",
    "oc",
    "oc-*",
];

/// Names that a client library gives itself when nobody chose one: no evidence of anything.
const GENERIC_CLIENTS: &[&str] = &[
    "Go-http-client",
    "curl",
    "Wget",
    "wget",
    "python-requests",
    "python-urllib3",
    "Python-urllib",
    "okhttp",
    "axios",
    "unknown",
    "",
    "kube-rs",
];

pub(crate) fn is_persons_tool(manager: &str) -> bool {
    PERSONS_TOOLS.iter().any(|pattern| glob(pattern, manager))
}

/// Whether a pattern of names takes in a person's tool.
pub(crate) fn may_be_persons_tool(pattern: &str) -> bool {
    PERSONS_TOOLS.iter().any(|tool| glob(pattern, tool.trim_end_matches('*')))
}

fn is_generic(manager: &str) -> bool {
    GENERIC_CLIENTS.contains(&manager) || matches!(manager, "before-first-apply" | "ancient-changes")
}

/// Each `*` of the pattern stands for any text, none included.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        // The first place leaves the most to match the rest with.
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(end)
}

/// Which managers a row trusts.
#[derive(Clone, Copy, Debug)]
enum Who {
    /// By name, globs.
    Named(&'static [&'static str]),
    /// Software of its own name: neither a person's tool nor a generic client.
    Software,
    Anyone,
}

/// A condition on the object beside path and owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum If {
    Always,
    /// The manifest leaves the data map absent or empty.
    DataLeftEmpty,
    /// The manifest has an `aggregationRule`.
    Aggregates,
    /// A Secret of type `kubernetes.io/service-account-token`.
    TokenSecret,
}

struct Row {
    /// `Kind.group`, or `*`.
    kinds: &'static [&'static str],
    /// Leading segments of the path; `*` is any one key or item, a key may be a glob.
    path: &'static [&'static str],
    who: Who,
    when: If,
    cause: Cause,
}

const CONTROLLER_MANAGER: &[&str] = &["kube-controller-manager"];
const BINDERS: &[&str] = &["kube-controller-manager", "kube-scheduler", "*csi*", "*provisioner*"];
const CLOUD: &[&str] = &[
    "kube-controller-manager",
    "*cloud-controller*",
    "*cloud-provider*",
    "service-controller",
    "aws-load-balancer-controller",
    "alb-ingress-controller",
    "controller",
    "glbc",
    "ingress-gce",
    "neg-controller",
    "gke-l7*",
    "azure-*",
    "*metallb*",
    "speaker",
    "load-balancer-controller",
];
const OPENSHIFT: &[&str] = &[
    "kube-controller-manager",
    "openshift-controller-manager",
    "cluster-policy-controller",
    "cluster-kube-controller-manager-operator",
];
const LABEL_SYNC: &[&str] = &[
    "pod-security-admission-label-synchronization-controller",
    "cluster-policy-controller",
    "kube-controller-manager",
];

#[rustfmt::skip]
const TABLE: &[Row] = &[
    // The deployment controller's own notes.
    Row { kinds: &["Deployment.apps", "ReplicaSet.apps"], path: &["metadata", "annotations", "deployment.kubernetes.io/*"], who: Who::Named(CONTROLLER_MANAGER), when: If::Always, cause: Cause::Bookkeeping },
    // kubectl's copy of what it applied; inert, whoever wrote it.
    Row { kinds: &["*"], path: &["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"], who: Who::Anyone, when: If::Always, cause: Cause::Bookkeeping },
    // `kubectl rollout restart`, and the same button elsewhere (fluxcd/flux2#2526).
    Row { kinds: &["Deployment.apps", "StatefulSet.apps", "DaemonSet.apps"], path: &["spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"], who: Who::Anyone, when: If::Always, cause: Cause::Restarted },
    // Binding of claims and volumes.
    Row { kinds: &["PersistentVolumeClaim."], path: &["metadata", "annotations", "pv.kubernetes.io/*"], who: Who::Named(BINDERS), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["PersistentVolumeClaim."], path: &["metadata", "annotations", "volume.kubernetes.io/*"], who: Who::Named(BINDERS), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["PersistentVolumeClaim."], path: &["metadata", "annotations", "volume.beta.kubernetes.io/*"], who: Who::Named(BINDERS), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["PersistentVolume."], path: &["metadata", "annotations", "pv.kubernetes.io/*"], who: Who::Named(BINDERS), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["PersistentVolume."], path: &["metadata", "finalizers"], who: Who::Named(BINDERS), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["PersistentVolume."], path: &["spec", "claimRef"], who: Who::Named(BINDERS), when: If::Always, cause: Cause::Controller },
    // Injectors of CA bundles: cert-manager's, certgen jobs, OpenShift's service-ca, operators themselves.
    Row { kinds: &["ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io"], path: &["webhooks", "*", "clientConfig", "caBundle"], who: Who::Software, when: If::Always, cause: Cause::Injected },
    Row { kinds: &["CustomResourceDefinition.apiextensions.k8s.io"], path: &["spec", "conversion", "webhook", "clientConfig", "caBundle"], who: Who::Software, when: If::Always, cause: Cause::Injected },
    Row { kinds: &["APIService.apiregistration.k8s.io"], path: &["spec", "caBundle"], who: Who::Software, when: If::Always, cause: Cause::Injected },
    Row { kinds: &["ConfigMap."], path: &["data", "service-ca.crt"], who: Who::Named(&["service-ca*"]), when: If::Always, cause: Cause::Injected },
    // Istio (istio/istio#44285) and certgen jobs turn their own webhook on; AKS and knative narrow it.
    Row { kinds: &["ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io"], path: &["webhooks", "*", "failurePolicy"], who: Who::Named(&["pilot-discovery", "kube-webhook-certgen"]), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io"], path: &["webhooks", "*", "namespaceSelector"], who: Who::Named(&["admissionsenforcer"]), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io"], path: &["webhooks", "*", "rules"], who: Who::Named(&["webhook", "knative*"]), when: If::Always, cause: Cause::Controller },
    // Aggregated roles (fluxcd/helm-controller#1419).
    Row { kinds: &["ClusterRole.rbac.authorization.k8s.io"], path: &["rules"], who: Who::Named(&["clusterrole-aggregation-controller"]), when: If::Aggregates, cause: Cause::Aggregation },
    // Cloud load balancers.
    Row { kinds: &["Service."], path: &["metadata", "finalizers"], who: Who::Named(CLOUD), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["Service."], path: &["metadata", "annotations", "cloud.google.com/neg-status"], who: Who::Named(CLOUD), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["Service."], path: &["metadata", "annotations", "service.k8s.alibaba/*"], who: Who::Named(CLOUD), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["Service."], path: &["metadata", "labels", "service.k8s.alibaba/*"], who: Who::Named(CLOUD), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["Service."], path: &["metadata", "annotations", "metallb*"], who: Who::Named(CLOUD), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["Ingress.networking.k8s.io"], path: &["metadata", "finalizers"], who: Who::Named(CLOUD), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["Ingress.networking.k8s.io"], path: &["metadata", "annotations", "ingress.kubernetes.io/*"], who: Who::Named(CLOUD), when: If::Always, cause: Cause::Controller },
    // The autoscaler's notes, where an older API version keeps fields in annotations.
    Row { kinds: &["HorizontalPodAutoscaler.autoscaling"], path: &["metadata", "annotations", "autoscaling.alpha.kubernetes.io/*"], who: Who::Named(CONTROLLER_MANAGER), when: If::Always, cause: Cause::Bookkeeping },
    // Operators fill what their chart leaves empty for them.
    Row { kinds: &["ConfigMap.", "Secret."], path: &["data"], who: Who::Software, when: If::DataLeftEmpty, cause: Cause::Injected },
    Row { kinds: &["ConfigMap."], path: &["binaryData"], who: Who::Software, when: If::DataLeftEmpty, cause: Cause::Injected },
    // Service account tokens.
    Row { kinds: &["Secret."], path: &["data"], who: Who::Named(CONTROLLER_MANAGER), when: If::TokenSecret, cause: Cause::Controller },
    Row { kinds: &["Secret."], path: &["metadata", "annotations", "kubernetes.io/service-account.uid"], who: Who::Named(CONTROLLER_MANAGER), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["Secret."], path: &["metadata", "labels", "kubernetes.io/legacy-token-last-used"], who: Who::Named(&["kube-apiserver", "kube-controller-manager"]), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["ServiceAccount."], path: &["secrets"], who: Who::Named(OPENSHIFT), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["ServiceAccount."], path: &["imagePullSecrets"], who: Who::Named(OPENSHIFT), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["ServiceAccount."], path: &["metadata", "annotations", "openshift.io/*"], who: Who::Named(OPENSHIFT), when: If::Always, cause: Cause::Controller },
    // Namespaces on OpenShift.
    Row { kinds: &["Namespace."], path: &["metadata", "labels", "pod-security.kubernetes.io/*"], who: Who::Named(LABEL_SYNC), when: If::Always, cause: Cause::Controller },
    Row { kinds: &["Namespace."], path: &["metadata", "annotations", "openshift.io/sa.scc.*"], who: Who::Named(LABEL_SYNC), when: If::Always, cause: Cause::Controller },
    // Scheduling of a bare pod.
    Row { kinds: &["Pod."], path: &["spec", "nodeName"], who: Who::Named(&["kube-scheduler"]), when: If::Always, cause: Cause::Controller },
    // Velero's marks on what it restored.
    Row { kinds: &["*"], path: &["metadata", "labels", "velero.io/*"], who: Who::Named(&["velero*"]), when: If::Always, cause: Cause::Bookkeeping },
];

/// The object that a difference was found in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) gvk: &'a Gvk,
    pub(crate) desired: &'a serde_json::Value,
}

/// Why a difference is expected: every manager that holds it is one that may write there.
pub(crate) fn known(subject: Subject<'_>, path: &FieldPath, managers: &[&Manager]) -> Option<Cause> {
    if managers.is_empty() {
        return None;
    }
    let kind = format!("{}.{}", subject.gvk.kind, subject.gvk.group);
    TABLE
        .iter()
        .find(|row| {
            row.kinds.iter().any(|one| *one == "*" || *one == kind)
                && leads(row.path, path)
                && managers.iter().all(|manager| trusts(row.who, &manager.name))
                && holds(row.when, subject)
        })
        .map(|row| row.cause)
}

fn leads(pattern: &[&str], path: &FieldPath) -> bool {
    path.0.len() >= pattern.len()
        && pattern.iter().zip(&path.0).all(|(wanted, segment)| match segment {
            Segment::Field(key) => glob(wanted, key),
            Segment::Item(_) | Segment::Member(_) | Segment::Index(_) => *wanted == "*",
        })
}

fn trusts(who: Who, manager: &str) -> bool {
    match who {
        Who::Named(names) => names.iter().any(|name| glob(name, manager)),
        Who::Software => !is_persons_tool(manager) && !is_generic(manager),
        Who::Anyone => true,
    }
}

fn holds(when: If, subject: Subject<'_>) -> bool {
    let empty = |key: &str| {
        subject.desired.get(key).is_none_or(|data| match data.as_object() {
            Some(map) => map.values().all(|value| value.as_str().is_none_or(str::is_empty)),
            None => data.is_null(),
        })
    };
    match when {
        If::Always => true,
        If::DataLeftEmpty => empty("data") && empty("binaryData"),
        If::Aggregates => subject.desired.get("aggregationRule").is_some_and(|rule| !rule.is_null()),
        If::TokenSecret => {
            subject.desired.get("type").and_then(serde_json::Value::as_str)
                == Some("kubernetes.io/service-account-token")
        }
    }
}

/// Writers of `.spec.replicas` that act for an autoscaler; whether one targets the object is looked up.
pub(crate) fn may_scale(manager: &str) -> bool {
    ["kube-controller-manager", "horizontal-pod-autoscaler", "keda", "keda-*", "vpa-*"]
        .iter()
        .any(|name| glob(name, manager))
}

/// A finished Job with a TTL is deleted by the TTL controller.
pub(crate) fn may_vanish(subject: Subject<'_>) -> bool {
    subject.gvk.group == "batch"
        && subject.gvk.kind == "Job"
        && subject.desired.pointer("/spec/ttlSecondsAfterFinished").is_some_and(serde_json::Value::is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manager(name: &str) -> Manager {
        Manager { name: name.to_owned(), operation: "Update".into(), subresource: None, time: None }
    }

    fn cause(kind: (&str, &str), path: &FieldPath, name: &str, desired: &serde_json::Value) -> Option<Cause> {
        known(Subject { gvk: &Gvk::new(kind.0, kind.1), desired }, path, &[&manager(name)])
    }

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, matches) in [
            ("web", "web", true),
            ("web", "web-1", false),
            ("web*", "web", true),
            ("*web", "my-web", true),
            ("*web*", "my-web-1", true),
            ("*", "", true),
            ("**", "x", true),
            ("web-*-db", "web-1-db", true),
            ("web-*-db", "web-db", false),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
        }
    }

    /// Every row: its writer is known at its path, and nowhere else; a person's tool, a generic client and a stranger are not, but
    /// where anyone may write.
    #[test]
    fn each_row_of_the_table_needs_its_path_its_owner_and_its_condition() {
        let plain = |glob: &str| glob.replace('*', "x");
        for row in TABLE {
            let kind = row.kinds.first().map(|kind| if *kind == "*" { "Deployment.apps" } else { kind }).unwrap();
            let (kind, group) = kind.split_once('.').unwrap();
            let gvk = Gvk { group: group.into(), version: "v1".into(), kind: kind.into() };
            let segment = |key: &&str| match *key {
                "*" => Segment::Item(vec![("name".into(), json!("x"))]),
                key => Segment::Field(plain(key)),
            };
            let path = FieldPath(row.path.iter().map(segment).collect());
            let desired = match row.when {
                If::Always | If::DataLeftEmpty => json!({}),
                If::Aggregates => json!({"aggregationRule": {}}),
                If::TokenSecret => json!({"type": "kubernetes.io/service-account-token", "data": {"x": "eA=="}}),
            };
            let at = |path: &FieldPath, name: &str, desired: &serde_json::Value| {
                known(Subject { gvk: &gvk, desired }, path, &[&manager(name)])
            };
            let writer = match row.who {
                Who::Named(names) => plain(names.first().unwrap()),
                Who::Software | Who::Anyone => "some-operator".to_owned(),
            };
            assert_eq!(at(&path, &writer, &desired), Some(row.cause), "{kind} {path} {writer}");
            assert_eq!(at(&path.field("below"), &writer, &desired), Some(row.cause), "{kind} below {path}");
            assert_eq!(at(&FieldPath::of_fields(&["spec", "elsewhere"]), &writer, &desired), None, "{kind} {writer}");
            for stranger in ["kubectl-edit", "Go-http-client", "before-first-apply"] {
                let expected = matches!(row.who, Who::Anyone).then_some(row.cause);
                assert_eq!(at(&path, stranger, &desired), expected, "{kind} {path} {stranger}");
            }
            let unmet = json!({"data": {"x": "eA=="}});
            if row.when != If::Always {
                assert_eq!(at(&path, &writer, &unmet), None, "{kind} {path} without its condition");
            }
        }
    }

    #[test]
    fn path_and_owner_are_both_needed() {
        let bundle = FieldPath::of_fields(&["webhooks"])
            .child(Segment::Item(vec![("name".into(), json!("a"))]))
            .field("clientConfig")
            .field("caBundle");
        let webhook = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
        let none = json!({});
        assert_eq!(cause(webhook, &bundle, "cert-manager-cainjector", &none), Some(Cause::Injected));
        assert_eq!(cause(webhook, &bundle, "kubectl-edit", &none), None);
        assert_eq!(cause(webhook, &bundle, "Go-http-client", &none), None);
        let data = FieldPath::of_fields(&["data"]);
        assert_eq!(cause(("v1", "Secret"), &data, "keda-operator", &none), Some(Cause::Injected));
        assert_eq!(cause(("v1", "Secret"), &data, "keda-operator", &json!({"data": {"a": "eA=="}})), None);
        let rules = FieldPath::of_fields(&["rules"]);
        let role = ("rbac.authorization.k8s.io/v1", "ClusterRole");
        assert_eq!(cause(role, &rules, "clusterrole-aggregation-controller", &none), None);
        assert_eq!(
            cause(role, &rules, "clusterrole-aggregation-controller", &json!({"aggregationRule": {}})),
            Some(Cause::Aggregation)
        );
    }
}
