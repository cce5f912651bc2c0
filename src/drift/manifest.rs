//! Manifests -> the objects that are wanted (design.md §5.1): a release's, as Helm wants them, or those of files. Knows nothing of
//! what is live, nor of how files are found.
//!
//! Reading is Helm's own when it builds objects from a stored manifest (helm.md 2.2: helm/helm `pkg/kube/client.go` `Build`), not the
//! one by which it split templates.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use super::finding::{Notice, NoticeReason};
use super::live::{ApiTable, Lookup, Served};
use super::object::{Gvk, ObjectKey, ObjectRef};
use super::release::Release;
use super::yaml::{self, Document};

/// How an object can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// In this version, which need not be the manifest's.
    Served(Served),
    /// The object cannot exist; the reason.
    NotServed(String),
    /// Nothing can be said; the reason.
    Undiscovered(String),
}

/// One object as Helm, or a file, wants it.
#[derive(Clone, PartialEq)]
pub(crate) struct DesiredObject {
    /// As the manifest has it, with the namespace that its scope gives it.
    pub(crate) object: ObjectRef,
    pub(crate) access: Access,
    /// The chart's template, or the file.
    pub(crate) source: Option<String>,
    /// With Helm's ownership keys (not of a file), without what only the server writes; nulls and zeros are the comparison's business.
    pub(crate) body: Value,
    /// `helm uninstall` leaves it in place.
    pub(crate) kept: bool,
}

impl DesiredObject {
    /// The object as it is read: in the served version.
    pub(crate) fn as_served(&self) -> Option<(ObjectRef, &Served)> {
        match &self.access {
            Access::Served(served) => Some((ObjectRef { gvk: served.gvk.clone(), ..self.object.clone() }, served)),
            Access::NotServed(_) | Access::Undiscovered(_) => None,
        }
    }
}

/// Without the body, which may be a Secret's.
impl fmt::Debug for DesiredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DesiredObject")
            .field("object", &self.object)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

/// What a manifest asks for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Desired {
    /// In order of the manifest; no object twice.
    pub(crate) objects: Vec<DesiredObject>,
    /// Objects that get their name from the server: which they became is nowhere recorded.
    pub(crate) untrackable: usize,
    pub(crate) notices: Vec<Notice>,
    /// Documents that cannot be read, so that nothing about their objects can be told.
    pub(crate) problems: Vec<String>,
}

/// The objects of a release.
///
/// `storage_namespace`: where the record is kept; counts where the payload names no namespace.
pub(crate) fn desired_objects(release: &Release, storage_namespace: &str, apis: &ApiTable) -> Desired {
    let namespace = release.target_namespace(storage_namespace);
    let mut builder = Builder::new(Some(&release.name), namespace, apis);
    for document in yaml::documents(&release.manifest) {
        match document {
            Ok(document) => builder.document(document, None),
            Err(error) => builder.desired.problems.push(error.to_string()),
        }
    }
    builder.done()
}

/// One file of manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestFile {
    /// For messages, and the source of its objects where no `# Source:` comment names one; `None`: standard input.
    pub(crate) path: Option<String>,
    /// One of several: where a template came from says less than which file it is in.
    pub(crate) is_one_of_many: bool,
    pub(crate) text: String,
}

/// The objects of files, taken together. Helm has no part in them: nothing is added, and no document is a hook.
///
/// `namespace`: of namespaced objects that name none.
pub(crate) fn objects_of_files<'f>(
    files: impl IntoIterator<Item = &'f ManifestFile>,
    namespace: &str,
    apis: &ApiTable,
) -> Desired {
    let mut builder = Builder::new(None, namespace, apis);
    for file in files {
        let path = file.path.as_deref().unwrap_or(STDIN);
        for document in yaml::documents(&file.text) {
            match document {
                Ok(document) => builder.document(document, Some(file)),
                Err(error) => builder.desired.problems.push(format!("{path}: {}", error.error)),
            }
        }
    }
    builder.done()
}

const STDIN: &str = "standard input";

struct Builder<'a> {
    /// The release; `None`: the objects are files'.
    release: Option<&'a str>,
    namespace: &'a str,
    apis: &'a ApiTable,
    /// `None`: a later object took the place.
    slots: Vec<Option<DesiredObject>>,
    places: BTreeMap<ObjectKey, usize>,
    desired: Desired,
}

/// Where an object stands, for messages: `nucleus/templates/web.yaml: line 12`.
struct Place<'a> {
    /// As messages have it.
    at: Option<&'a str>,
    line: usize,
    source: Option<&'a str>,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "{at}: line {}", self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

impl<'a> Builder<'a> {
    fn new(release: Option<&'a str>, namespace: &'a str, apis: &'a ApiTable) -> Self {
        let (slots, places) = (Vec::new(), BTreeMap::new());
        Self { release, namespace, apis, slots, places, desired: Desired::default() }
    }

    fn done(mut self) -> Desired {
        self.desired.objects = self.slots.into_iter().flatten().collect();
        self.desired
    }

    /// `file`: where it is, unless it is a release's.
    fn document(&mut self, document: Document, file: Option<&ManifestFile>) {
        let comment = document.source.as_deref();
        let place = match file {
            None => Place { at: comment, line: document.line, source: comment },
            Some(file) => {
                let path = file.path.as_deref();
                let source = if file.is_one_of_many { path } else { comment.or(path) };
                Place { at: Some(path.unwrap_or(STDIN)), line: document.line, source }
            }
        };
        if file.is_some()
            && let Some(what) = no_manifest(&document.value, place.at.unwrap_or_default())
        {
            match what {
                NoManifest::Kustomization => self.desired.notices.push(Notice {
                    object: None,
                    reason: NoticeReason::NotCompared,
                    message: format!("{place}: for kustomize; to compare what it builds: kubectl kustomize DIR | drift -f -"),
                }),
                NoManifest::Chart => self.desired.problems.push(format!(
                    "{place}: it describes a chart; to compare what the chart renders: helm template NAME DIR | drift -f -"
                )),
                NoManifest::Values => {
                    self.desired.problems.push(format!("{place}: -f takes manifests; values are not needed"))
                }
            }
            return;
        }
        let before = self.slots.len();
        match flatten(document.value) {
            Ok(objects) => {
                for object in objects {
                    if let Err(problem) = self.object(object, &place) {
                        self.desired.problems.push(format!("{place}: {problem}"));
                    }
                }
            }
            Err(problem) => self.desired.problems.push(format!("{place}: {problem}")),
        }
        if !document.duplicate_keys.is_empty() {
            let keys = document.duplicate_keys.join(", ");
            let only = if self.slots.len() == before + 1 { self.slots.last().and_then(Option::as_ref) } else { None };
            self.desired.notices.push(Notice {
                object: only.map(|one| one.object.clone()),
                reason: NoticeReason::DuplicateKey,
                message: format!("{place}: given more than once, the last counts: {keys}"),
            });
        }
    }

    /// Takes in one object; the error says why it is none.
    fn object(&mut self, mut body: Map<String, Value>, place: &Place<'_>) -> Result<(), &'static str> {
        let gvk = Gvk::new(
            text(&body, "apiVersion")?.ok_or("it has no apiVersion")?,
            text(&body, "kind")?.ok_or("it has no kind")?,
        );
        let metadata = match body.get("metadata") {
            Some(Value::Object(metadata)) => metadata,
            None | Some(Value::Null) => return Err("it has no metadata.name"),
            Some(_) => return Err("its metadata is no map"),
        };
        let given = text(metadata, "namespace")?;
        let (access, namespace) = self.reach(&gvk, given);
        let Some(name) = text(metadata, "name")? else {
            let prefix = text(metadata, "generateName")?.ok_or("it has no metadata.name")?;
            let message = format!(
                "{place}: the server named this {}, {prefix}…, and which object that is, is nowhere recorded",
                gvk.kind
            );
            self.desired.untrackable += 1;
            self.desired.notices.push(Notice { object: None, reason: NoticeReason::NotCompared, message });
            return Ok(());
        };
        let object = ObjectRef { gvk, namespace, name: name.to_owned() };
        if let Access::Served(served) = &access
            && served.gvk != object.gvk
        {
            let message = format!(
                "{} is not served any more; compared as {}",
                object.gvk.api_version(),
                served.gvk.api_version()
            );
            self.desired.notices.push(Notice {
                object: Some(object.clone()),
                reason: NoticeReason::VersionNotServed,
                message,
            });
        }
        prepare(&mut body, &object)?;
        if let Some(release) = self.release {
            own(&mut body, release, self.namespace)?;
        }
        let kept = annotation(&body, "helm.sh/resource-policy").is_some();
        self.keep(DesiredObject {
            object,
            access,
            source: place.source.map(str::to_owned),
            body: Value::Object(body),
            kept,
        });
        Ok(())
    }

    /// How the kind is served, and the namespace which that gives an object: Helm defaults it by scope, and drops it from a
    /// cluster-scoped object. Where the scope is not known, Helm would not get so far; the namespace is then taken for real.
    fn reach(&self, gvk: &Gvk, given: Option<&str>) -> (Access, Option<String>) {
        let namespace = Some(given.unwrap_or(self.namespace).to_owned());
        match self.apis.lookup(gvk) {
            Lookup::Served(served) | Lookup::OtherVersion(served) => {
                (Access::Served(served.clone()), if served.namespaced { namespace } else { None })
            }
            Lookup::NotServed => {
                let reason =
                    format!("the cluster serves no kind {} of {}, so it cannot exist", gvk.kind, gvk.api_version());
                (Access::NotServed(reason), namespace)
            }
            Lookup::Undiscovered(reason) => {
                (Access::Undiscovered(format!("what {} serves is not known: {reason}", gvk.api_version())), namespace)
            }
        }
    }

    /// Nothing in Helm keeps a chart from rendering an object twice; they are applied in turn, so the later one is what is wanted.
    fn keep(&mut self, desired: DesiredObject) {
        if let Some(earlier) = self.places.insert(desired.object.key(), self.slots.len()) {
            if let Some(slot) = self.slots.get_mut(earlier) {
                *slot = None;
            }
            let again = desired.source.as_deref().map(|source| format!(" (in {source})")).unwrap_or_default();
            let message = match self.release {
                Some(_) => "the manifest holds this object more than once, the last counts".to_owned(),
                None => format!("the files hold this object more than once, the last counts{again}"),
            };
            self.desired.notices.push(Notice {
                object: Some(desired.object.clone()),
                reason: NoticeReason::DuplicateKey,
                message,
            });
        }
        self.slots.push(Some(desired));
    }
}

/// The keys by which Helm knows its objects, forced over the chart's own; labels and annotations without a value become empty
/// text on the way (helm/helm `pkg/action/validate.go` `setMetadataVisitor`).
fn own(body: &mut Map<String, Value>, release: &str, namespace: &str) -> Result<(), &'static str> {
    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut).ok_or("its metadata is no map")?;
    set(metadata, "labels", &[("app.kubernetes.io/managed-by", "Helm")])?;
    let annotations = [("meta.helm.sh/release-name", release), ("meta.helm.sh/release-namespace", namespace)];
    set(metadata, "annotations", &annotations)
}

/// What lies among manifests and is none.
enum NoManifest {
    Kustomization,
    Chart,
    Values,
}

/// `at`: the file. A document that is a manifest gone wrong is not meant; that is told where it is read.
fn no_manifest(document: &Value, at: &str) -> Option<NoManifest> {
    let Value::Object(map) = document else { return None };
    let says = |key: &str| map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let name = at.rsplit(['/', '\\']).next().unwrap_or(at);
    match (says("apiVersion"), says("kind")) {
        (Some(group), Some(_)) if group.starts_with("kustomize.config.k8s.io/") => Some(NoManifest::Kustomization),
        // kustomize asks for neither key in a file of its own name.
        (_, None) if matches!(name, "kustomization.yaml" | "kustomization.yml") => Some(NoManifest::Kustomization),
        (_, None) if name == "Chart.yaml" => Some(NoManifest::Chart),
        (None, None) => Some(NoManifest::Values),
        _ => None,
    }
}

/// The objects of one document: itself, or, whatever its kind, its top-level `items` (apimachinery `unstructured/unstructured.go`
/// `decodeToList`). Nested lists follow after their siblings.
fn flatten(document: Value) -> Result<Vec<Map<String, Value>>, &'static str> {
    let mut objects = Vec::new();
    let mut waiting = VecDeque::from([document]);
    while let Some(value) = waiting.pop_front() {
        let Value::Object(mut object) = value else { return Err("it is no map") };
        match object.remove("items") {
            None => objects.push(object),
            Some(Value::Null) => {}
            Some(Value::Array(items)) => {
                let item = Gvk::new(
                    text(&object, "apiVersion")?.unwrap_or_default(),
                    text(&object, "kind")?.ok_or("it has no kind")?,
                );
                waiting.extend(items.into_iter().map(|value| with_kind_of(&item, value)));
            }
            Some(_) => return Err("its items are no list"),
        }
    }
    Ok(objects)
}

/// Items that say neither what they are nor in which version are of the list's kind, less `List`.
fn with_kind_of(list: &Gvk, mut item: Value) -> Value {
    if let Value::Object(object) = &mut item
        && is_absent(object.get("kind"))
        && is_absent(object.get("apiVersion"))
    {
        let kind = list.kind.strip_suffix("List").unwrap_or(&list.kind);
        object.insert("kind".to_owned(), kind.into());
        object.insert("apiVersion".to_owned(), list.api_version().into());
    }
    item
}

fn is_absent(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(value) => value.as_str() == Some(""),
    }
}

/// A key that must be text where it is given; empty is absent, as in Go.
fn text<'a>(object: &'a Map<String, Value>, key: &'static str) -> Result<Option<&'a str>, &'static str> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(match key {
            "kind" => "its kind is not text",
            "apiVersion" => "its apiVersion is not text",
            "name" => "its metadata.name is not text",
            "namespace" => "its metadata.namespace is not text",
            _ => "its metadata.generateName is not text",
        }),
    }
}

fn annotation<'a>(body: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    body.get("metadata")?.get("annotations")?.get(key)
}

/// Takes off what only the server writes, and writes what is left as it would be stored.
pub(super) fn prepare(body: &mut Map<String, Value>, object: &ObjectRef) -> Result<(), &'static str> {
    const SERVER_OWNED: [&str; 6] =
        ["creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink"];
    body.remove("status");
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        metadata.retain(|key, _| !SERVER_OWNED.contains(&key.as_str()));
        match &object.namespace {
            Some(namespace) => metadata.insert("namespace".to_owned(), namespace.as_str().into()),
            None => metadata.remove("namespace"),
        };
    }
    if object.gvk.group.is_empty() && object.gvk.kind == "Secret" {
        return fold_string_data(body);
    }
    Ok(())
}

/// `stringData` is `data` in plain text, and wins over it.
fn fold_string_data(secret: &mut Map<String, Value>) -> Result<(), &'static str> {
    let plain = match secret.remove("stringData") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(plain)) => plain,
        Some(_) => return Err("its stringData is no map"),
    };
    let data = secret.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    let data = data.as_object_mut().ok_or("its data is no map")?;
    for (key, value) in plain {
        let value = match value {
            Value::Null => String::new(),
            Value::String(text) => text,
            _ => return Err("a value of its stringData is not text"),
        };
        data.insert(key, BASE64_STANDARD.encode(value).into());
    }
    Ok(())
}

fn set(metadata: &mut Map<String, Value>, map: &str, forced: &[(&str, &str)]) -> Result<(), &'static str> {
    let values = metadata.entry(map).or_insert(Value::Null);
    if values.is_null() {
        *values = Value::Object(Map::new());
    }
    let values = values.as_object_mut().ok_or("its labels or annotations are no map")?;
    for value in values.values_mut().filter(|value| value.is_null()) {
        *value = Value::String(String::new());
    }
    for (key, value) in forced {
        values.insert((*key).to_owned(), (*value).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::finding::ApplyMethod;
    use super::*;
    use serde_json::json;

    fn apis() -> ApiTable {
        let mut apis = ApiTable::default();
        for (api_version, kind, plural, namespaced) in [
            ("v1", "ConfigMap", "configmaps", true),
            ("v1", "Secret", "secrets", true),
            ("v1", "Service", "services", true),
            ("apps/v1", "Deployment", "deployments", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false),
            ("vault.example/v1", "Secret", "secrets", true),
        ] {
            let gvk = Gvk::new(api_version, kind);
            apis.add(Served { gvk, plural: plural.into(), namespaced, listable: true });
        }
        apis.add_failure("metrics.example/v1", "503");
        apis
    }

    fn desired(manifest: &str) -> Desired {
        let release = Release {
            name: "nucleus".into(),
            namespace: "prod".into(),
            revision: 1,
            status: "deployed".into(),
            description: String::new(),
            last_deployed: None,
            deleted: None,
            chart_name: None,
            chart_version: None,
            app_version: None,
            has_subcharts: false,
            apply_method: ApplyMethod::ClientSide,
            manifest: manifest.into(),
            hooks: 0,
            crds: 0,
        };
        desired_objects(&release, "storage", &apis())
    }

    /// `v1/ConfigMap prod/settings`, one a line.
    fn names(desired: &Desired) -> Vec<String> {
        let name = |one: &DesiredObject| {
            let object = &one.object;
            let namespace = object.namespace.as_deref().unwrap_or("-");
            format!("{}/{} {namespace}/{}", object.gvk.api_version(), object.gvk.kind, object.name)
        };
        desired.objects.iter().map(name).collect()
    }

    fn body(manifest: &str) -> Value {
        let desired = desired(manifest);
        assert_eq!(desired.problems, Vec::<String>::new());
        desired.objects.first().unwrap().body.clone()
    }

    #[test]
    fn a_document_becomes_an_object_that_helm_owns() {
        let desired = desired(
            "---\n# Source: nucleus/templates/settings.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {mode: fast}\n",
        );
        let one = desired.objects.first().unwrap();
        assert_eq!(one.source.as_deref(), Some("nucleus/templates/settings.yaml"));
        assert_eq!(
            one.body,
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "fast"},
                "metadata": {
                    "name": "settings", "namespace": "prod", "labels": {"app.kubernetes.io/managed-by": "Helm"},
                    "annotations": {"meta.helm.sh/release-name": "nucleus", "meta.helm.sh/release-namespace": "prod"}
                }
            })
        );
        assert_eq!((one.kept, &desired.notices, &desired.problems), (false, &vec![], &vec![]));
        assert_eq!(one.as_served().map(|(_, served)| served.plural.as_str()), Some("configmaps"));
    }

    #[test]
    fn ownership_is_forced_over_the_charts_own() {
        let body = body(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {app.kubernetes.io/managed-by: Tiller, tier: , zone: b}\n  annotations: {meta.helm.sh/release-name: other, on: x}\n",
        );
        // Helm 3.22.0 and 4.3.1 store labels and annotations without a value as empty text.
        assert_eq!(
            body["metadata"]["labels"],
            json!({"app.kubernetes.io/managed-by": "Helm", "tier": "", "zone": "b"})
        );
        let annotations =
            json!({"meta.helm.sh/release-name": "nucleus", "meta.helm.sh/release-namespace": "prod", "true": "x"});
        assert_eq!(body["metadata"]["annotations"], annotations);
    }

    #[test]
    fn namespaces_follow_the_scope() {
        let manifest = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader, namespace: prod}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: ''}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: dev}
---
apiVersion: gone.example/v1
kind: Lamp
metadata: {name: desk}
---
apiVersion: metrics.example/v1
kind: Gauge
metadata: {name: load, namespace: dev}
";
        let desired = desired(manifest);
        assert_eq!(
            names(&desired),
            [
                "rbac.authorization.k8s.io/v1/ClusterRole -/reader",
                "v1/ConfigMap prod/a",
                "v1/ConfigMap dev/a",
                "gone.example/v1/Lamp prod/desk",
                "metrics.example/v1/Gauge dev/load",
            ]
        );
        let accesses: Vec<&Access> = desired.objects.iter().map(|one| &one.access).collect();
        assert!(matches!(accesses[0], Access::Served(_)));
        assert_eq!(
            accesses[3],
            &Access::NotServed("the cluster serves no kind Lamp of gone.example/v1, so it cannot exist".into())
        );
        assert_eq!(accesses[4], &Access::Undiscovered("what metrics.example/v1 serves is not known: 503".into()));
        assert_eq!(desired.objects[0].body["metadata"]["namespace"], Value::Null);
        assert_eq!(desired.objects[3].as_served(), None);
    }

    #[test]
    fn without_a_namespace_of_its_own_a_release_lives_where_it_is_stored() {
        let mut release = Release { namespace: String::new(), ..super::super::state::tests::release(1, "deployed") };
        release.manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".into();
        let desired = desired_objects(&release, "storage", &apis());
        assert_eq!(names(&desired), ["v1/ConfigMap storage/a"]);
        assert_eq!(desired.objects[0].body["metadata"]["annotations"]["meta.helm.sh/release-namespace"], "storage");
    }

    #[test]
    fn an_object_of_a_version_that_is_gone_is_read_in_the_served_one() {
        let desired = desired("apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: web}\n");
        let (object, served) = desired.objects[0].as_served().unwrap();
        assert_eq!((desired.objects[0].object.gvk.version.as_str(), object.gvk.version.as_str()), ("v1beta1", "v1"));
        assert_eq!(served.plural, "deployments");
        assert_eq!(desired.notices[0].reason, NoticeReason::VersionNotServed);
        assert_eq!(desired.notices[0].message, "apps/v1beta1 is not served any more; compared as apps/v1");
    }

    #[test]
    fn whatever_holds_items_is_a_list() {
        let manifest = "
apiVersion: v1
kind: List
metadata: {name: ignored}
items:
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: inner}}
- {apiVersion: v1, kind: Service, metadata: {name: web}}
---
apiVersion: v1
kind: ConfigMapList
items:
- {metadata: {name: one}}
- {kind: '', apiVersion: null, metadata: {name: two}}
---
apiVersion: apps/v1
kind: DeploymentList
items: []
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nothing}
items:
";
        let desired = desired(manifest);
        assert_eq!(
            names(&desired),
            ["v1/Service prod/web", "v1/ConfigMap prod/inner", "v1/ConfigMap prod/one", "v1/ConfigMap prod/two"]
        );
        assert_eq!(desired.problems, Vec::<String>::new());
    }

    #[test]
    fn of_an_object_given_twice_the_last_counts() {
        let manifest = "
apiVersion: apps/v1beta1
kind: Deployment
metadata: {name: web}
spec: {replicas: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod}
spec: {replicas: 2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: dev}
";
        let desired = desired(manifest);
        assert_eq!(names(&desired), ["v1/ConfigMap prod/web", "apps/v1/Deployment prod/web", "v1/ConfigMap dev/web"]);
        assert_eq!(desired.objects[1].body["spec"]["replicas"], 2);
        let twice = desired.notices.iter().filter(|notice| notice.reason == NoticeReason::DuplicateKey).count();
        assert_eq!(twice, 1);
    }

    #[test]
    fn keys_given_twice_are_told() {
        let desired = desired(
            "# Source: nucleus/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  mode: fast\n  mode: slow\n",
        );
        assert_eq!(desired.objects[0].body["data"]["mode"], "slow");
        let notice = &desired.notices[0];
        assert_eq!(
            (notice.reason, notice.object.as_ref().map(ToString::to_string).as_deref()),
            (NoticeReason::DuplicateKey, Some("ConfigMap/a"))
        );
        assert!(
            notice.message.starts_with("nucleus/templates/a.yaml: line 2: given more than once, the last counts: "),
            "{}",
            notice.message
        );
        assert!(notice.message.ends_with("data.mode"), "{}", notice.message);
    }

    #[test]
    fn objects_named_by_the_server_cannot_be_found_again() {
        let desired = desired(
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"generateName\":\"scratch-\"}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {generateName: x-, name: a}}\n",
        );
        assert_eq!((desired.untrackable, names(&desired)), (1, vec!["v1/ConfigMap prod/a".to_owned()]));
        assert_eq!(desired.notices[0].reason, NoticeReason::NotCompared);
        assert_eq!(
            desired.notices[0].message,
            "line 1: the server named this ConfigMap, scratch-…, and which object that is, is nowhere recorded"
        );
    }

    #[test]
    fn what_is_no_object_is_said_and_hides_no_other() {
        for (document, problem) in [
            ("kind: ConfigMap\nmetadata: {name: x}", "it has no apiVersion"),
            ("apiVersion: v1\nmetadata: {name: x}", "it has no kind"),
            ("apiVersion: v1\nkind: true\nmetadata: {name: x}", "its kind is not text"),
            ("apiVersion: 1\nkind: ConfigMap\nmetadata: {name: x}", "its apiVersion is not text"),
            ("apiVersion: v1\nkind: ConfigMap", "it has no metadata.name"),
            ("apiVersion: v1\nkind: ConfigMap\nmetadata: x", "its metadata is no map"),
            ("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "it has no metadata.name"),
            ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 12}", "its metadata.name is not text"),
            (
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: on}",
                "its metadata.namespace is not text",
            ),
            (
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: [a]}",
                "its labels or annotations are no map",
            ),
            ("apiVersion: v1\nkind: ConfigMap\nitems: {}", "its items are no list"),
            ("apiVersion: v1\nitems: []", "it has no kind"),
            ("apiVersion: v1\nkind: ConfigMapList\nitems: [x]", "it is no map"),
            ("apiVersion: v1\nkind: List\nitems: [{metadata: {name: x}}]", "it has no kind"),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {port: 80}",
                "a value of its stringData is not text",
            ),
        ] {
            let manifest = format!(
                "{document}\n---\n# Source: a/templates/b.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: other}}\n"
            );
            let desired = desired(&manifest);
            assert_eq!(desired.problems, [format!("line 1: {problem}")], "{document}");
            assert_eq!(names(&desired), ["v1/ConfigMap prod/other"], "{document}");
        }
        let desired = desired(
            "# Source: a/templates/b.yaml\na: [\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
        );
        assert_eq!((desired.problems.len(), names(&desired).len()), (1, 1));
        assert!(desired.problems[0].starts_with("a/templates/b.yaml: line "), "{}", desired.problems[0]);
    }

    #[test]
    fn string_data_becomes_data_in_core_secrets_only() {
        let core = body(
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {user: b2xk, other: eA==}\nstringData: {user: new, empty: '', none: }\n",
        );
        assert_eq!(core["data"], json!({"user": "bmV3", "other": "eA==", "empty": "", "none": ""}));
        assert_eq!(core.get("stringData"), None);
        let alone = body("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: null\nstringData: {user: new}\n");
        assert_eq!(alone["data"], json!({"user": "bmV3"}));
        let custom = body("apiVersion: vault.example/v1\nkind: Secret\nmetadata: {name: a}\nstringData: {user: new}\n");
        assert_eq!((custom["stringData"].clone(), custom.get("data")), (json!({"user": "new"}), None));
    }

    #[test]
    fn what_only_the_server_writes_is_dropped_at_the_top_only() {
        let body = body(
            "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, creationTimestamp: null, uid: x, resourceVersion: '7', generation: 3, selfLink: /x, managedFields: [], finalizers: [a/b]}
spec:
  template:
    metadata: {creationTimestamp: null, labels: {app: web}}
    spec: {paused: , replicas: 0}
status: {replicas: 1}
",
        );
        assert_eq!(body.get("status"), None);
        let keys: Vec<&str> = body["metadata"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["annotations", "finalizers", "labels", "name", "namespace"]);
        let template = json!({"metadata": {"creationTimestamp": null, "labels": {"app": "web"}}, "spec": {"paused": null, "replicas": 0}});
        assert_eq!(body["spec"]["template"], template);
    }

    #[test]
    fn helm_leaves_objects_with_any_resource_policy_at_uninstall() {
        for (policy, kept) in [
            ("helm.sh/resource-policy: keep", true),
            ("helm.sh/resource-policy: ' KEEP '", true),
            ("helm.sh/resource-policy: other", true),
            ("other: keep", false),
        ] {
            let desired = desired(&format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, annotations: {{{policy}}}}}\n"
            ));
            assert_eq!(desired.objects[0].kept, kept, "{policy}");
        }
    }

    #[test]
    fn a_hook_that_is_in_the_manifest_is_an_object_like_any_other() {
        let desired =
            desired("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {helm.sh/hook: pre-install}}\n");
        assert_eq!(names(&desired), ["v1/ConfigMap prod/a"]);
    }

    #[test]
    fn bodies_do_not_show_in_debug_text() {
        let desired = desired("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: hunter2}\n");
        let text = format!("{desired:?}");
        assert!(text.contains("Secret") && !text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    }
    fn file(path: &str, text: &str) -> ManifestFile {
        ManifestFile { path: Some(path.into()), is_one_of_many: true, text: text.into() }
    }

    #[test]
    fn files_are_taken_as_they_are() {
        let files = [
            file(
                "prod/a.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: other}}\n",
            ),
            file(
                "prod/role.json",
                r#"{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader", "namespace": "x"}}"#,
            ),
            ManifestFile {
                path: None,
                is_one_of_many: false,
                text: "# Source: shop/templates/c.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n".into(),
            },
        ];
        let desired = objects_of_files(&files, "prod", &apis());
        assert_eq!(
            names(&desired),
            [
                "v1/ConfigMap prod/a",
                "v1/ConfigMap other/b",
                "rbac.authorization.k8s.io/v1/ClusterRole -/reader",
                "v1/ConfigMap prod/c"
            ]
        );
        let sources: Vec<_> = desired.objects.iter().map(|one| one.source.as_deref().unwrap()).collect();
        assert_eq!(sources, ["prod/a.yaml", "prod/a.yaml", "prod/role.json", "shop/templates/c.yaml"]);
        let first = &desired.objects.first().unwrap().body;
        assert_eq!(first["metadata"], json!({"name": "a", "namespace": "prod"}), "no ownership keys");
        assert_eq!((&desired.problems, &desired.notices), (&vec![], &vec![]));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told_with_file_and_line() {
        let files = [
            file(
                "a.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\na: [\n---\napiVersion: v1\nkind: ConfigMap\n",
            ),
            file("values.yaml", "# values\nimage: nginx\nitems: []\n"),
            file("shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
            file("list.yaml", "- a\n"),
            file("half.yaml", "kind: ConfigMap\nmetadata: {name: a}\n"),
        ];
        let desired = objects_of_files(&files, "prod", &apis());
        assert_eq!(names(&desired), ["v1/ConfigMap prod/a"], "the rest is still judged");
        let problems: Vec<&str> = desired.problems.iter().map(String::as_str).collect();
        assert_eq!(
            problems,
            [
                "a.yaml: line 6: did not find expected node content",
                "a.yaml: line 7: it has no metadata.name",
                "values.yaml: line 2: -f takes manifests; values are not needed",
                "shop/Chart.yaml: line 1: it describes a chart; to compare what the chart renders: helm template NAME DIR | drift -f -",
                "list.yaml: line 1: it is no map",
                "half.yaml: line 1: it has no apiVersion",
            ]
        );
    }

    #[test]
    fn a_kustomization_is_no_object_and_no_problem() {
        for text in ["resources: [a.yaml]\n", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"] {
            let desired = objects_of_files(&[file("prod/kustomization.yaml", text)], "prod", &apis());
            assert_eq!((desired.objects.len(), desired.problems.len()), (0, 0));
            assert!(desired.notices[0].message.starts_with("prod/kustomization.yaml: line 1: for kustomize"));
        }
        // Flux's is an object like any other.
        let flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\n";
        assert_eq!(objects_of_files(&[file("flux.yaml", flux)], "prod", &apis()).objects.len(), 1);
    }

    #[test]
    fn an_object_in_two_files_counts_once() {
        let text =
            |mode: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{mode: {mode}}}\n");
        let desired =
            objects_of_files(&[file("a.yaml", &text("fast")), file("b.yaml", &text("slow"))], "prod", &apis());
        assert_eq!(desired.objects.len(), 1);
        assert_eq!(desired.objects[0].body["data"]["mode"], "slow");
        assert_eq!(
            desired.notices[0].message,
            "the files hold this object more than once, the last counts (in b.yaml)"
        );
    }
}
