//! managedFields: who owns which field of a live object. Knows nothing of what is desired, and never fails: what it
//! cannot read owns nothing.
//!
//! Source: structured-merge-diff `fieldpath/serialize.go`, `fieldpath/element.go`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::finding::Manager;

/// Index of an [`Entry`].
pub(crate) type EntryId = usize;

/// One managedFields entry: one manager, operation, API version and subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) manager: Manager,
}

impl Entry {
    pub(crate) fn is_apply(&self) -> bool {
        self.manager.operation == "Apply"
    }

    /// Stand-ins for owners that the server forgot or never knew.
    pub(crate) fn is_trace(&self) -> bool {
        matches!(self.manager.name.as_str(), "before-first-apply" | "ancient-changes")
    }
}

/// Who owns what below one field.
#[derive(Debug, Default)]
pub(crate) struct OwnerNode {
    /// Entries that hold `f:x: {}`: x itself, or x whose children are all gone.
    whole: Vec<EntryId>,
    /// Entries that hold `.`: the container.
    container: Vec<EntryId>,
    fields: BTreeMap<String, OwnerNode>,
    /// By canonical JSON of the item's keys.
    items: BTreeMap<String, OwnerNode>,
    /// By canonical JSON of the value.
    members: BTreeMap<String, OwnerNode>,
}

#[derive(Debug, Default)]
pub(crate) struct Owners {
    pub(crate) entries: Vec<Entry>,
    pub(crate) root: OwnerNode,
    /// The object has no managedFields at all.
    pub(crate) absent: bool,
}

/// Deep enough for every real object; deeper nests own nothing.
const MAX_DEPTH: usize = 256;

impl Owners {
    /// Reads `metadata.managedFields` of a live object.
    pub(crate) fn of(object: &Value) -> Self {
        let listed = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        let mut owners = Self { absent: listed.is_none_or(Vec::is_empty), ..Self::default() };
        for raw in listed.into_iter().flatten() {
            let text = |key: &str| raw.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            let id = owners.entries.len();
            owners.entries.push(Entry {
                manager: Manager {
                    name: text("manager").unwrap_or_default().to_owned(),
                    operation: text("operation").unwrap_or("Update").to_owned(),
                    subresource: text("subresource").map(str::to_owned),
                    time: text("time").and_then(|time| time.parse().ok()),
                },
            });
            if let Some(fields) = raw.get("fieldsV1").and_then(Value::as_object) {
                owners.root.add(fields, id, 0);
            }
        }
        owners
    }

    /// The newest of some entries (ties by name), and the others, as a report names them.
    pub(crate) fn named(&self, ids: &[EntryId]) -> (Option<Manager>, Vec<Manager>) {
        let mut managers: Vec<Manager> =
            ids.iter().filter_map(|id| self.entries.get(*id)).map(|entry| entry.manager.clone()).collect();
        managers.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        let mut managers = managers.into_iter();
        (managers.next(), managers.collect())
    }
}

impl OwnerNode {
    fn add(&mut self, fields: &serde_json::Map<String, Value>, id: EntryId, depth: usize) {
        for (key, below) in fields {
            if key == "." {
                self.container.push(id);
                continue;
            }
            let Some((kind, rest)) = key.split_once(':') else { continue };
            let node = match kind {
                "f" => self.fields.entry(rest.to_owned()).or_default(),
                "k" => self.items.entry(canonical(rest)).or_default(),
                "v" => self.members.entry(canonical(rest)).or_default(),
                // `i:` is a place in a list; no list that we compare is owned by place.
                _ => continue,
            };
            match below.as_object() {
                Some(map) if !map.is_empty() && depth < MAX_DEPTH => node.add(map, id, depth + 1),
                _ => node.whole.push(id),
            }
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&OwnerNode> {
        self.fields.get(name)
    }

    /// The item with these keys. An entry may leave out a key that has its default.
    pub(crate) fn item(&self, keys: &[(&str, &Value)]) -> Option<&OwnerNode> {
        let wanted: serde_json::Map<String, Value> =
            keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).clone())).collect();
        if let Some(node) = self.items.get(&Value::Object(wanted.clone()).to_string()) {
            return Some(node);
        }
        self.items.iter().find_map(|(text, node)| {
            let owned: Value = serde_json::from_str(text).ok()?;
            let owned = owned.as_object()?;
            let fits = !owned.is_empty() && owned.iter().all(|(key, value)| wanted.get(key) == Some(value));
            fits.then_some(node)
        })
    }

    pub(crate) fn member(&self, value: &Value) -> Option<&OwnerNode> {
        self.members.get(&value.to_string())
    }

    /// Names of the list keys that entries here use; for lists whose type nobody tells.
    pub(crate) fn item_keys(&self) -> Option<Vec<String>> {
        let first: Value = serde_json::from_str(self.items.keys().next()?).ok()?;
        Some(first.as_object()?.keys().cloned().collect())
    }

    /// Entries that hold this very field or item.
    pub(crate) fn whole(&self) -> &[EntryId] {
        &self.whole
    }

    /// Entries that hold the container: the map or item, apart from what is in it.
    pub(crate) fn container(&self) -> &[EntryId] {
        &self.container
    }

    /// Whether anything below is owned on its own.
    pub(crate) fn has_children(&self) -> bool {
        !self.fields.is_empty() || !self.items.is_empty() || !self.members.is_empty()
    }

    /// Entries that hold the field or anything below it, each once.
    pub(crate) fn holders(&self) -> Vec<EntryId> {
        let mut ids = Vec::new();
        self.collect(&mut ids);
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn collect(&self, ids: &mut Vec<EntryId>) {
        ids.extend(&self.whole);
        ids.extend(&self.container);
        for node in self.fields.values().chain(self.items.values()).chain(self.members.values()) {
            node.collect(ids);
        }
    }
}

/// JSON text with sorted keys and no spaces, so that keys are matched as JSON, not as text.
fn canonical(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(entries: Value) -> Value {
        json!({"metadata": {"managedFields": entries}})
    }

    #[test]
    fn every_shape_of_managed_fields_is_read() {
        let owners = Owners::of(&object(json!([
            {"manager": "helm", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {
                "f:spec": {"f:ports": {".": {}, "k:{\"protocol\":\"TCP\",\"port\":80}": {".": {}, "f:name": {}}}}}},
            {"manager": "kubectl", "operation": "Update", "subresource": "scale", "fieldsV1": {
                "f:spec": {"f:replicas": {}, "f:zones": {"v:\"x\"": {}}, "i:3": {}}, "odd": {}, "f:deep": null}},
            {"manager": "lost"},
            "not an entry",
        ])));
        assert_eq!(owners.entries.len(), 4);
        let spec = owners.root.field("spec").unwrap();
        let port = spec.field("ports").unwrap().item(&[("port", &json!(80)), ("protocol", &json!("TCP"))]).unwrap();
        assert_eq!(port.holders(), [0]);
        assert_eq!(spec.field("ports").unwrap().item_keys().unwrap(), ["port", "protocol"]);
        assert_eq!(spec.field("zones").unwrap().member(&json!("x")).unwrap().holders(), [1]);
        assert_eq!(owners.root.field("deep").unwrap().whole(), [1]);
        assert_eq!(spec.holders(), [0, 1]);
        assert_eq!(owners.named(&[1, 0]).0.unwrap().name, "helm");
    }

    #[test]
    fn an_entry_without_the_defaulted_key_still_owns_the_item() {
        let owners =
            Owners::of(&object(json!([{"manager": "old", "fieldsV1": {"f:ports": {"k:{\"containerPort\":80}": {}}}}])));
        let ports = owners.root.field("ports").unwrap();
        assert!(ports.item(&[("containerPort", &json!(80)), ("protocol", &json!("TCP"))]).is_some());
        assert!(ports.item(&[("containerPort", &json!(81)), ("protocol", &json!("TCP"))]).is_none());
    }

    #[test]
    fn the_container_is_owned_apart_from_what_is_in_it() {
        let owners = Owners::of(&object(json!([
            {"manager": "one", "fieldsV1": {"f:data": {".": {}}}},
            {"manager": "two", "fieldsV1": {"f:data": {"f:x": {}}}},
        ])));
        let data = owners.root.field("data").unwrap();
        assert_eq!((data.whole(), data.container()), ([].as_slice(), [0].as_slice()));
        assert_eq!(data.holders(), [0, 1]);
        assert_eq!(data.field("x").unwrap().whole(), [1]);
    }

    #[test]
    fn keys_are_matched_as_json_whatever_go_escapes() {
        let fields = json!({"f:set": {r#"v:"a\u0026b""#: {}}, "f:list": {r#"k:{"name": "a\u003cb"}"#: {}}});
        let owners = Owners::of(&object(json!([{"manager": "go", "fieldsV1": fields}])));
        assert_eq!(owners.root.field("set").unwrap().member(&json!("a&b")).unwrap().holders(), [0]);
        assert_eq!(owners.root.field("list").unwrap().item(&[("name", &json!("a<b"))]).unwrap().holders(), [0]);
    }

    #[test]
    fn no_managed_fields_is_known_as_such() {
        assert!(Owners::of(&json!({"metadata": {}})).absent);
        assert!(Owners::of(&object(json!([]))).absent);
        assert!(!Owners::of(&object(json!([{"manager": "x"}]))).absent);
    }
}
