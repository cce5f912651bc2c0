//! Who applied a file, by managedFields and kubectl's own copy of it, and what was sent (design.md §5.5, `-f`). No opinion about
//! differences.

use std::collections::BTreeMap;

use serde_json::Value;

use super::manifest;
use super::object::{FieldPath, ObjectRef, Segment};
use super::owners::{EntryId, OwnerNode, Owners};
use super::writers;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// kubectl's name when it applies files from the client's side.
const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// Tools that a person drives, and that write whole files all the same.
const FILE_TOOLS: &[&str] = &["kubectl", CLIENT_SIDE_APPLY, "kubectl-create", "kubectl-replace"];

/// The manager that stands behind a file.
#[derive(Debug)]
pub(super) struct Applier {
    name: String,
    /// Its entries; one for each API version that it wrote in.
    entries: Vec<EntryId>,
    /// By server-side apply: what it owns it sent.
    by_server: bool,
    /// kubectl's copy of what it sent, as it would be stored.
    last_applied: Option<Value>,
}

impl Applier {
    /// The manager that owns the most of the file's fields, among those that show signs of applying files: server-side apply,
    /// kubectl's name for it, or its copy of the file; without any such sign, among all. Tools for a change by hand are none of them:
    /// an editor may write the copy too.
    pub(super) fn find(owners: &Owners, object: &ObjectRef, desired: &Value, live: &Value) -> Option<Self> {
        let mut fields: BTreeMap<EntryId, usize> = BTreeMap::new();
        count(&owners.root, desired, &mut fields);
        let copied = owners.root.field("metadata").and_then(|node| node.field("annotations"));
        let copied = copied.and_then(|node| node.field(LAST_APPLIED)).map(OwnerNode::holders).unwrap_or_default();
        let copies = |ids: &[EntryId]| ids.iter().any(|id| copied.contains(id));

        let mut groups: BTreeMap<(&str, bool), Vec<EntryId>> = BTreeMap::new();
        for (id, entry) in owners.entries.iter().enumerate() {
            let name = entry.manager.name.as_str();
            let by_hand = writers::is_persons_tool(name) && !FILE_TOOLS.contains(&name) && !entry.is_apply();
            if entry.manager.subresource.is_none() && !entry.is_trace() && !by_hand {
                groups.entry((name, entry.is_apply())).or_default().push(id);
            }
        }
        let shows = |name: &str, applies: bool, ids: &[EntryId]| applies || name == CLIENT_SIDE_APPLY || copies(ids);
        if groups.iter().any(|((name, applies), ids)| shows(name, *applies, ids)) {
            groups.retain(|(name, applies), ids| shows(name, *applies, ids));
        }
        let held = |ids: &[EntryId]| ids.iter().filter_map(|id| fields.get(id)).sum::<usize>();
        // Of equal ones the one that kept a copy of the file.
        let ((name, by_server), entries) = groups.into_iter().max_by_key(|(_, ids)| (held(ids), copies(ids)))?;
        let last_applied = if copies(&entries) { last_applied(live, object) } else { None };
        Some(Self { name: name.to_owned(), entries, by_server, last_applied })
    }

    pub(super) fn is(&self, id: EntryId) -> bool {
        self.entries.contains(&id)
    }

    pub(super) fn last_applied(&self) -> Option<&Value> {
        self.last_applied.as_ref()
    }

    /// Whether a field that it owns was in what it sent, and is no default that the server filled in for it.
    pub(super) fn sent(&self, path: &FieldPath) -> bool {
        self.by_server || self.last_applied.as_ref().is_some_and(|body| at(body, path).is_some())
    }

    /// Its own notes on an object: kubectl's copy of the file, Helm's ownership keys.
    pub(super) fn is_bookkeeping(&self, path: &FieldPath) -> bool {
        let [Segment::Field(metadata), Segment::Field(map), Segment::Field(key)] = path.0.as_slice() else {
            return false;
        };
        if metadata != "metadata" {
            return false;
        }
        match map.as_str() {
            "annotations" if key == LAST_APPLIED => true,
            "annotations" => self.is_helm() && key.starts_with("meta.helm.sh/"),
            "labels" => self.is_helm() && key == "app.kubernetes.io/managed-by",
            _ => false,
        }
    }

    fn is_helm(&self) -> bool {
        super::classify::HELM_MANAGERS.iter().any(|pattern| writers::glob(pattern, &self.name))
    }
}

/// How many of the file's fields each entry owns.
fn count(node: &OwnerNode, desired: &Value, fields: &mut BTreeMap<EntryId, usize>) {
    for id in node.whole().iter().chain(node.container()) {
        *fields.entry(*id).or_default() += 1;
    }
    match desired {
        Value::Object(map) => {
            for (key, value) in map {
                if let Some(below) = node.field(key) {
                    count(below, value, fields);
                }
            }
        }
        Value::Array(items) => {
            let keys = node.item_keys().unwrap_or_default();
            for item in items {
                let own: Vec<(&str, &Value)> =
                    keys.iter().filter_map(|key| Some((key.as_str(), item.get(key)?))).collect();
                let below = if own.is_empty() { node.member(item) } else { node.item(&own) };
                if let Some(below) = below {
                    count(below, item, fields);
                }
            }
        }
        _ => {}
    }
}

fn last_applied(live: &Value, object: &ObjectRef) -> Option<Value> {
    let text = live.pointer("/metadata/annotations")?.get(LAST_APPLIED)?.as_str()?;
    let Value::Object(mut body) = serde_json::from_str(text).ok()? else { return None };
    manifest::prepare(&mut body, object).ok()?;
    Some(Value::Object(body))
}

/// The value at a path; a null is none.
fn at<'a>(body: &'a Value, path: &FieldPath) -> Option<&'a Value> {
    let found = path.0.iter().try_fold(body, |value, segment| match segment {
        Segment::Field(key) => value.get(key),
        // A key that has its default need not be in the file.
        Segment::Item(keys) => value.as_array()?.iter().find(|item| {
            keys.iter().any(|(key, value)| item.get(key) == Some(value))
                && keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value))
        }),
        Segment::Member(member) => value.as_array()?.iter().find(|one| *one == member),
        Segment::Index(index) => value.as_array()?.get(*index),
    })?;
    (!found.is_null()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::super::object::Gvk;
    use super::*;
    use serde_json::json;

    fn applier(desired: &Value, last_applied: Option<&Value>, entries: Value) -> Option<Applier> {
        let mut live = json!({"metadata": {"managedFields": entries}});
        if let Some(body) = last_applied {
            live["metadata"]["annotations"] = json!({LAST_APPLIED: body.to_string()});
        }
        let kind = desired["kind"].as_str().unwrap_or("ConfigMap");
        let object = ObjectRef { gvk: Gvk::new("v1", kind), namespace: Some("prod".into()), name: "web".into() };
        Applier::find(&Owners::of(&live), &object, desired, &live)
    }

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    }

    /// kubectl's own entry of a client-side apply.
    fn kubectl(mut fields: Value) -> Value {
        fields["f:metadata"] = json!({"f:annotations": {".": {}, format!("f:{LAST_APPLIED}"): {}}});
        entry("kubectl-client-side-apply", "Update", fields)
    }

    #[test]
    fn the_applier_is_who_owns_the_most_of_the_file() {
        let file = json!({"data": {"a": "1", "b": "2"}});
        let both = || json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}});
        let name =
            |entries: Value, copy: bool| applier(&file, copy.then_some(&file), entries).map(|applier| applier.name);
        let edit = entry("kubectl-edit", "Update", both());
        for (entries, copy, expected) in [
            (
                json!([entry("flux", "Apply", both()), entry("label-bot", "Apply", json!({"f:data": {"f:a": {}}}))]),
                false,
                Some("flux"),
            ),
            (json!([kubectl(both()), edit]), true, Some("kubectl-client-side-apply")),
            // An edit of all that the file has leaves the applier the container, and its copy of the file.
            (json!([edit, kubectl(json!({"f:data": {".": {}}}))]), true, Some("kubectl-client-side-apply")),
            (json!([entry("argocd-controller", "Update", both()), edit]), false, Some("argocd-controller")),
            (json!([entry("kubectl-create", "Update", both())]), false, Some("kubectl-create")),
            (json!([edit]), false, None),
            (json!([]), false, None),
        ] {
            assert_eq!(name(entries.clone(), copy).as_deref(), expected, "{entries}");
        }
        let scaled = json!([{"manager": "kubectl", "operation": "Update", "subresource": "scale", "fieldsV1": both()}]);
        assert_eq!(name(scaled, false), None, "a subresource is no file");
    }

    #[test]
    fn what_was_sent_is_told_by_the_copy_or_by_server_side_apply() {
        let file = json!({"data": {"a": "1"}});
        let copy = json!({"data": {"a": "1", "b": "2"}, "ports": [{"port": 80}], "set": ["x"], "none": null});
        let own = json!([kubectl(json!({"f:data": {"f:a": {}}}))]);
        let by_kubectl = applier(&file, Some(&copy), own).unwrap();
        let path = |names: &[&str]| FieldPath::of_fields(names);
        assert!(by_kubectl.sent(&path(&["data", "b"])) && !by_kubectl.sent(&path(&["data", "c"])));
        assert!(!by_kubectl.sent(&path(&["none"])));
        let port = |port: u64| {
            let keys = vec![("port".to_owned(), json!(port)), ("protocol".to_owned(), json!("TCP"))];
            path(&["ports"]).child(Segment::Item(keys))
        };
        assert!(by_kubectl.sent(&port(80)) && !by_kubectl.sent(&port(81)));
        assert!(by_kubectl.sent(&path(&["set"]).child(Segment::Member(json!("x")))));
        let by_server = applier(&file, None, json!([entry("flux", "Apply", json!({"f:data": {"f:a": {}}}))])).unwrap();
        assert!(by_server.sent(&path(&["data", "anything"])));
    }

    #[test]
    fn a_copy_that_somebody_else_wrote_is_no_evidence() {
        let file = json!({"data": {"a": "1"}});
        let own = json!([entry("flux", "Apply", json!({"f:data": {"f:a": {}}}))]);
        assert_eq!(applier(&file, Some(&file), own).unwrap().last_applied, None);
    }

    #[test]
    fn a_secrets_copy_is_read_as_it_would_be_stored() {
        let file = json!({"kind": "Secret", "data": {"a": "eA=="}});
        let copy = json!({"kind": "Secret", "metadata": {"name": "web"}, "stringData": {"a": "x"}});
        let applier = applier(&file, Some(&copy), json!([kubectl(json!({"f:data": {"f:a": {}}}))])).unwrap();
        assert_eq!(applier.last_applied.unwrap()["data"], json!({"a": "eA=="}));
    }

    #[test]
    fn notes_are_bookkeeping() {
        let file = json!({"data": {"a": "1"}});
        let of = |manager: &str| {
            applier(&file, None, json!([entry(manager, "Apply", json!({"f:data": {"f:a": {}}}))])).unwrap()
        };
        let note = |map: &str, key: &str| FieldPath::of_fields(&["metadata", map, key]);
        assert!(of("flux").is_bookkeeping(&note("annotations", LAST_APPLIED)));
        assert!(!of("flux").is_bookkeeping(&note("annotations", "meta.helm.sh/release-name")));
        assert!(of("helm").is_bookkeeping(&note("annotations", "meta.helm.sh/release-name")));
        assert!(of("helm").is_bookkeeping(&note("labels", "app.kubernetes.io/managed-by")));
        assert!(!of("helm").is_bookkeeping(&note("labels", "tier")));
    }
}
