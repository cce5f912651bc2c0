//! Release records and live objects as Helm and its successors leave them, for the API server of `apiserver.rs`. Knows nothing of `drift`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use std::io::Write;

/// When Helm wrote everything, unless a test says otherwise.
pub(crate) const INSTALLED: &str = "2024-05-01T10:00:00Z";
/// When somebody changed something.
pub(crate) const CHANGED: &str = "2024-05-01T11:30:00Z";

/// A release record in the making: Secret `sh.helm.release.v1.<name>.v<revision>`.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) revision: u64,
    pub(crate) status: String,
    pub(crate) manifest: String,
    pub(crate) resource_version: String,
}

impl Record {
    pub(crate) fn new(name: &str, revision: u64, manifest: &str) -> Self {
        Self {
            name: name.to_owned(),
            namespace: "shop".to_owned(),
            revision,
            status: "deployed".to_owned(),
            manifest: manifest.to_owned(),
            resource_version: "100".to_owned(),
        }
    }

    pub(crate) fn in_namespace(self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self }
    }

    pub(crate) fn status(self, status: &str) -> Self {
        Self { status: status.to_owned(), ..self }
    }

    /// What Helm packs into it.
    pub(crate) fn release(&self) -> Value {
        json!({
            "name": self.name, "namespace": self.namespace, "version": self.revision, "manifest": self.manifest, "hooks": [],
            "info": {
                "status": self.status, "first_deployed": INSTALLED, "last_deployed": INSTALLED, "deleted": "",
                "description": "Upgrade complete",
            },
            "chart": {
                "metadata": {"name": self.name, "version": "1.4.2", "appVersion": "1.4", "apiVersion": "v2"}, "lock": null,
                "templates": [], "values": {}, "schema": null, "files": null,
            },
            "config": {},
        })
    }

    pub(crate) fn object(&self) -> Value {
        self.with_payload(&packed(self.release().to_string().as_bytes()))
    }

    /// The same Secret with another `data.release`: Helm's base64 text.
    pub(crate) fn with_payload(&self, payload: &str) -> Value {
        self.with_data(&json!({"release": STANDARD.encode(payload)}))
    }

    pub(crate) fn with_data(&self, data: &Value) -> Value {
        let labels = json!({
            "owner": "helm", "name": self.name, "status": self.status, "version": self.revision.to_string(), "modifiedAt": "1",
        });
        let fields = json!({"f:data": {"f:release": {}}, "f:metadata": {"f:labels": {"f:status": {}}}, "f:type": {}});
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": data,
            "metadata": {
                "name": format!("sh.helm.release.v1.{}.v{}", self.name, self.revision), "namespace": self.namespace,
                "labels": labels, "resourceVersion": self.resource_version, "uid": "1",
                "managedFields": [entry("Helm", INSTALLED, fields)],
            },
        })
    }
}

/// Helm's own packing: base64 of gzip.
pub(crate) fn packed(bytes: &[u8]) -> String {
    STANDARD.encode(zipped(bytes))
}

pub(crate) fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// The objects of a manifest as they are right after Helm wrote them, in the namespace of the release when they name none.
pub(crate) fn as_installed(release: &str, namespace: &str, manifest: &str) -> Vec<Value> {
    manifest
        .split("\n---\n")
        .filter(|document| document.contains("kind"))
        .map(|document| live(release, namespace, serde_saphyr::from_str(document).unwrap()))
        .collect()
}

fn live(release: &str, namespace: &str, mut object: Value) -> Value {
    merge(
        &mut object,
        &json!({"metadata": {
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace},
        }}),
    );
    if object["kind"] == "Secret" {
        let texts = object.as_object_mut().unwrap().remove("stringData").unwrap_or(json!({}));
        for (key, text) in texts.as_object().unwrap() {
            object["data"][key] = json!(STANDARD.encode(text.as_str().unwrap()));
        }
    }
    let fields = fields_of(&object);
    let own = object["metadata"]["namespace"].as_str().unwrap_or(namespace).to_owned();
    let metadata = &mut object["metadata"];
    if own != NO_NAMESPACE {
        metadata["namespace"] = json!(own);
    }
    metadata["uid"] = json!("0b5e1f0c-0000-4000-8000-000000000001");
    metadata["resourceVersion"] = json!("50");
    metadata["creationTimestamp"] = json!(INSTALLED);
    metadata["managedFields"] = json!([entry("helm", INSTALLED, fields)]);
    object
}

/// Stands for the namespace of objects that have none.
pub(crate) const NO_NAMESPACE: &str = "-";

/// Somebody sets these fields, by `Update` in the form of a strategic merge: list items are matched by name.
pub(crate) fn edit(object: &mut Value, manager: &str, fields: &str) {
    let patch: Value = serde_saphyr::from_str(fields).unwrap();
    let theirs = fields_of(&patch);
    merge(object, &patch);
    let entries = object["metadata"]["managedFields"].as_array_mut().unwrap();
    for entry in entries.iter_mut() {
        take_away(&mut entry["fieldsV1"], &theirs);
    }
    entries.push(entry(manager, CHANGED, theirs));
}

/// Somebody removes the field at this RFC 6901 pointer, whose `managedFields` path is given too.
pub(crate) fn remove(object: &mut Value, pointer: &str, owned: &[&str]) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key).unwrap();
    let mut fields = json!({});
    for step in owned.iter().rev() {
        fields = json!({ *step: fields });
    }
    for entry in object["metadata"]["managedFields"].as_array_mut().unwrap() {
        take_away(&mut entry["fieldsV1"], &fields);
    }
}

fn entry(manager: &str, time: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields})
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(patch)) if patch.iter().all(|item| item["name"].is_string()) => {
            for item in patch {
                match into.iter_mut().find(|one| one["name"] == item["name"]) {
                    Some(one) => merge(one, item),
                    None => into.push(item.clone()),
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

/// `fieldsV1` of everything in an object. Lists whose items have a name are keyed by it, Service ports by port and protocol; others
/// are one value.
fn fields_of(object: &Value) -> Value {
    let mut fields = Map::new();
    for (key, value) in object.as_object().unwrap() {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                let shown =
                    value.as_object().unwrap().iter().filter(|(key, _)| *key == "labels" || *key == "annotations");
                let inner: Map<String, Value> = shown.map(|(key, value)| (format!("f:{key}"), tree(value))).collect();
                if !inner.is_empty() {
                    fields.insert("f:metadata".to_owned(), Value::Object(inner));
                }
            }
            _ => {
                fields.insert(format!("f:{key}"), tree(value));
            }
        }
    }
    Value::Object(fields)
}

fn tree(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let inner: Map<String, Value> = map
                .iter()
                .filter(|(key, _)| *key != "name")
                .map(|(key, value)| (format!("f:{key}"), tree(value)))
                .collect();
            Value::Object(inner)
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(|item| key_of(item).is_some()) => {
            let inner: Map<String, Value> = items
                .iter()
                .map(|item| {
                    let mut fields = tree(item);
                    fields["."] = json!({});
                    (format!("k:{}", key_of(item).unwrap()), fields)
                })
                .collect();
            Value::Object(inner)
        }
        _ => json!({}),
    }
}

fn key_of(item: &Value) -> Option<Value> {
    if item["port"].is_number() {
        return Some(json!({"port": item["port"], "protocol": item["protocol"].as_str().unwrap_or("TCP")}));
    }
    item["name"].is_string().then(|| json!({"name": item["name"]}))
}

/// Owners lose what somebody else took; the key of a list item stays theirs as well.
fn take_away(fields: &mut Value, taken: &Value) {
    let (Some(fields), Some(taken)) = (fields.as_object_mut(), taken.as_object()) else { return };
    for (key, inner) in taken {
        if key == "." {
            continue;
        }
        let leaf = inner.as_object().is_none_or(Map::is_empty);
        if leaf {
            fields.remove(key);
        } else if let Some(own) = fields.get_mut(key) {
            take_away(own, inner);
            if own.as_object().is_some_and(Map::is_empty) {
                fields.remove(key);
            }
        }
    }
}
