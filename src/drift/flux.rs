//! Flux HelmReleases: which Helm release one manages, and what it says about differences (fluxcd/helm-controller `api/v2`).
//! Knows nothing of how they were looked up.

use regex::Regex;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::finding::Finding;
use super::object::ObjectRef;
use super::release::{RecordMeta, ReleaseKey};
use super::rules::{labels, texts};
use super::selector::Selector;

/// Group and kind; any served version will do.
pub(crate) const API_VERSION: &str = "helm.toolkit.fluxcd.io/v2";
pub(crate) const KIND: &str = "HelmRelease";

/// Labels that helm-controller puts on every object it renders, hooks aside.
const NAME_LABEL: &str = "helm.toolkit.fluxcd.io/name";
const NAMESPACE_LABEL: &str = "helm.toolkit.fluxcd.io/namespace";

/// The field manager of helm-controller, of objects and of records.
const MANAGER: &str = "helm-controller";

#[derive(Clone, Debug)]
pub(crate) struct HelmRelease {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The release that it manages: where its records are, and its name.
    pub(crate) release: ReleaseKey,
    /// Where Helm puts the release's objects.
    pub(crate) target_namespace: String,
    pub(crate) suspended: bool,
    /// `spec.driftDetection.mode`: Flux's own word, `disabled` when it says nothing.
    pub(crate) mode: String,
    pub(crate) ignores: Vec<Ignore>,
    /// Ignore rules that cannot be read, and why.
    pub(crate) problems: Vec<String>,
}

/// One rule of `spec.driftDetection.ignore`.
#[derive(Clone, Debug)]
pub(crate) struct Ignore {
    /// RFC 6901, as decoded tokens; without any it is the whole object.
    pointers: Vec<Vec<String>>,
    target: Target,
    /// `HelmRelease flux-system/nucleus`
    pub(crate) reason: String,
}

/// Which objects; what is absent restricts nothing. The texts are anchored regular expressions.
#[derive(Clone, Debug, Default)]
struct Target {
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
    labels: Option<Selector>,
    annotations: Option<Selector>,
}

impl HelmRelease {
    /// `None`: it manages nothing here, since it is being deleted or its release is in another cluster.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let own = |key: &str| metadata.get(key).and_then(Value::as_str);
        let (namespace, name) = (own("namespace")?, own("name")?);
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let elsewhere = spec.get("kubeConfig").is_some_and(|remote| !remote.is_null());
        if own("deletionTimestamp").is_some() || elsewhere {
            return None;
        }
        let text = |key: &str| spec.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let target_namespace = text("targetNamespace");
        let release_name = match (text("releaseName"), target_namespace) {
            (Some(name), _) => name.to_owned(),
            (None, Some(target)) => format!("{target}-{name}"),
            (None, None) => name.to_owned(),
        };
        let detection = spec.get("driftDetection").unwrap_or(&Value::Null);
        let mode = detection.get("mode").and_then(Value::as_str).filter(|mode| !mode.is_empty());
        let (mut ignores, mut problems) = (Vec::new(), Vec::new());
        for rule in detection.get("ignore").and_then(Value::as_array).into_iter().flatten() {
            match Ignore::of(rule, format!("{KIND} {namespace}/{name}")) {
                Ok(rule) => ignores.push(rule),
                Err(problem) => problems.push(problem),
            }
        }
        Some(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            release: ReleaseKey {
                namespace: text("storageNamespace").unwrap_or(namespace).to_owned(),
                name: shortened(release_name),
            },
            target_namespace: target_namespace.unwrap_or(namespace).to_owned(),
            suspended: spec.get("suspend") == Some(&Value::Bool(true)),
            mode: mode.unwrap_or("disabled").to_owned(),
            ignores,
            problems,
        })
    }

    /// Whether there is more to show for it than its own word that it manages the release. One of another namespace needs that:
    /// who may make HelmReleases of their own could else silence the releases of everybody.
    pub(crate) fn is_manager_by(&self, record: &RecordMeta) -> bool {
        self.namespace == self.release.namespace || record.owners.iter().any(|owner| owner.manager == MANAGER)
    }

    /// Whether an object of the manifest says that this HelmRelease rendered it.
    pub(crate) fn is_named_by(&self, body: &Value) -> bool {
        let label = |key| body.pointer("/metadata/labels").and_then(|all| all.get(key)).and_then(Value::as_str);
        label(NAME_LABEL) == Some(&self.name) && label(NAMESPACE_LABEL) == Some(&self.namespace)
    }
}

/// Flux cuts names that are too long for Helm, and tells them apart by a hash (`internal/release/name.go`).
fn shortened(name: String) -> String {
    const LONGEST: usize = 53;
    const HASH: usize = 12;
    if name.len() <= LONGEST {
        return name;
    }
    let hash = digest(&SHA256, name.as_bytes());
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = name.get(..LONGEST - HASH - 1).unwrap_or_default();
    format!("{kept}-{}", hex.get(..HASH).unwrap_or_default())
}

impl Ignore {
    fn of(rule: &Value, reason: String) -> Result<Self, String> {
        let paths = rule.get("paths").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let target = rule.get("target").unwrap_or(&Value::Null);
        let text = |key: &str| target.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let expression = |key: &str| match text(key) {
            None => Ok(None),
            Some(text) => Regex::new(&format!("^(?:{text})$"))
                .map(Some)
                .map_err(|_| format!("{key} {text:?} is no regular expression")),
        };
        let selector = |key: &str| match text(key) {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|error| format!("{key} {text:?}: {error}")),
        };
        Ok(Self {
            pointers: paths.map(tokens).collect(),
            target: Target {
                group: expression("group")?,
                version: expression("version")?,
                kind: expression("kind")?,
                name: expression("name")?,
                namespace: expression("namespace")?,
                labels: selector("labelSelector")?,
                annotations: selector("annotationSelector")?,
            },
            reason,
        })
    }

    /// At a pointer or below it. Like a rule of our own, one that points inside what is reported as one does not cover it.
    pub(crate) fn covers(&self, finding: &Finding, desired: Option<&Value>) -> bool {
        let at = finding.pointer.as_deref().map(tokens).unwrap_or_default();
        self.pointers.iter().any(|pointer| at.starts_with(pointer)) && self.target.includes(&finding.object, desired)
    }
}

impl Target {
    fn includes(&self, object: &ObjectRef, desired: Option<&Value>) -> bool {
        let is = |wanted: &Option<Regex>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted.is_match(text));
        is(&self.group, &object.gvk.group)
            && is(&self.version, &object.gvk.version)
            && is(&self.kind, &object.gvk.kind)
            && is(&self.name, &object.name)
            && is(&self.namespace, object.namespace.as_deref().unwrap_or_default())
            && self.labels.as_ref().is_none_or(|wanted| desired.is_some_and(|body| wanted.matches(&labels(body))))
            && self.annotations.as_ref().is_none_or(|wanted| {
                desired.is_some_and(|body| wanted.matches(&texts(body.pointer("/metadata/annotations"))))
            })
    }
}

fn tokens(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::object::FieldPath;
    use super::super::release::RecordOwner;
    use super::super::release::tests::record;
    use super::super::rules::tests::finding;
    use super::*;

    fn helm_release(spec: &Value) -> HelmRelease {
        HelmRelease::of(&json!({"metadata": {"namespace": "flux", "name": "web"}, "spec": spec})).unwrap()
    }

    #[test]
    fn the_release_is_named_as_flux_names_it() {
        let long = "a-very-long-name-for-a-helm-release-that-helm-would-refuse";
        for (spec, storage, name, target) in [
            (json!({}), "flux", "web", "flux"),
            (json!({"releaseName": "nucleus"}), "flux", "nucleus", "flux"),
            (json!({"targetNamespace": "prod"}), "flux", "prod-web", "prod"),
            (json!({"targetNamespace": "prod", "releaseName": "nucleus"}), "flux", "nucleus", "prod"),
            (json!({"targetNamespace": "prod", "storageNamespace": "prod"}), "prod", "prod-web", "prod"),
            // sha256 of the name begins with these digits.
            (json!({"releaseName": long}), "flux", "a-very-long-name-for-a-helm-release-that-34edff139173", "flux"),
        ] {
            let one = helm_release(&spec);
            assert_eq!(
                (one.release.namespace.as_str(), one.release.name.as_str(), one.target_namespace.as_str()),
                (storage, name, target),
                "{spec}"
            );
        }
    }

    #[test]
    fn what_manages_nothing_here_is_left_out() {
        for object in [
            json!({"metadata": {"namespace": "flux", "name": "web", "deletionTimestamp": "2026-11-30T10:00:00Z"}}),
            json!({"metadata": {"namespace": "flux", "name": "web"}, "spec": {"kubeConfig": {"secretRef": {"name": "x"}}}}),
            json!({"spec": {}}),
        ] {
            assert!(HelmRelease::of(&object).is_none(), "{object}");
        }
    }

    #[test]
    fn suspension_mode_and_rules_are_read() {
        let one = helm_release(&json!({"suspend": true, "driftDetection": {"mode": "enabled", "ignore": [
            {"paths": ["/spec/replicas"], "target": {"kind": "Deployment|StatefulSet"}},
            {"paths": [""], "target": {"name": "("}},
            {"paths": [""], "target": {"labelSelector": "a in b"}},
        ]}}));
        assert!(one.suspended);
        assert_eq!((one.mode.as_str(), one.ignores.len(), one.problems.len()), ("enabled", 1, 2), "{:?}", one.problems);
        let silent = helm_release(&json!({}));
        assert!(!silent.suspended && silent.mode == "disabled");
    }

    #[test]
    fn a_rule_covers_its_pointers_and_what_lies_below() {
        let desired = json!({"metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}}});
        let mut found = finding(&FieldPath::of_fields(&["metadata", "annotations", "a/b"]));
        found.pointer = Some("/metadata/annotations/a~1b".to_owned());
        for (rule, covers) in [
            (json!({"paths": ["/metadata/annotations/a~1b"]}), true),
            (json!({"paths": ["/spec", "/metadata"]}), true),
            (json!({"paths": [""]}), true),
            (json!({"paths": ["/metadata/annotations/a~1b/c"]}), false),
            (json!({"paths": ["/metadata/annotation"]}), false),
            (json!({"paths": []}), false),
            (
                json!({"paths": [""], "target": {"kind": "Deployment", "group": "apps", "version": "v1", "name": "web-.*", "namespace": "prod"}}),
                true,
            ),
            (json!({"paths": [""], "target": {"kind": "Deploy"}}), false),
            (json!({"paths": [""], "target": {"group": "batch"}}), false),
            (json!({"paths": [""], "target": {"name": "web"}}), false),
            (json!({"paths": [""], "target": {"namespace": "dev"}}), false),
            (json!({"paths": [""], "target": {"labelSelector": "app=web", "annotationSelector": "a=b"}}), true),
            (json!({"paths": [""], "target": {"labelSelector": "app=db"}}), false),
            (json!({"paths": [""], "target": {"annotationSelector": "!a"}}), false),
        ] {
            let one = helm_release(&json!({"driftDetection": {"ignore": [rule.clone()]}}));
            assert_eq!(one.ignores[0].covers(&found, Some(&desired)), covers, "{rule}");
        }
    }

    #[test]
    fn a_helm_release_of_another_namespace_needs_more_than_its_word() {
        let record = record(1, "deployed");
        assert!(helm_release(&json!({})).is_manager_by(&record));
        let other = helm_release(&json!({"storageNamespace": "prod"}));
        assert!(!other.is_manager_by(&record));
        let mut by_flux = record.clone();
        by_flux.owners = vec![RecordOwner { manager: MANAGER.into(), time: None }];
        assert!(other.is_manager_by(&by_flux));
        for (namespace, named) in [("flux", true), ("elsewhere", false)] {
            let body = json!({"metadata": {"labels": {NAME_LABEL: "web", NAMESPACE_LABEL: namespace}}});
            assert_eq!(other.is_named_by(&body), named);
        }
    }
}
