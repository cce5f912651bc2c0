//! How lists and maps of an object are keyed: a table written by hand for built-in kinds, the raw definition for custom ones.
//! The program under test asks the server's OpenAPI documents instead; neither knows of the other.

use super::charts::Thing;
use super::control_plane::ControlPlane;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One step of a path into an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Field(String),
    /// An item of a keyed list: its keys, sorted by name.
    Item(Vec<(String, Value)>),
    Member(Value),
}

/// A path as the reports write it: `.spec.ports[port=80,protocol="TCP"].name`.
pub(crate) fn text(path: &[Step]) -> String {
    let plain = |key: &str| {
        key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && key.chars().all(|one| one.is_ascii_alphanumeric() || one == '_' || one == '-')
    };
    path.iter()
        .map(|step| match step {
            Step::Field(key) if plain(key) => format!(".{key}"),
            Step::Field(key) => format!("[{}]", json!(key)),
            Step::Item(keys) => {
                let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("[{}]", keys.join(","))
            }
            Step::Member(value) => format!("[={value}]"),
        })
        .collect()
}

/// What a map or list is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// Each key for itself.
    Map,
    /// Each item for itself, told apart by these keys, which are sorted.
    Keyed(Vec<String>),
    Set,
    /// One value.
    Atomic,
}

/// The definitions of custom resources, as the API server stores them.
pub(crate) struct Types {
    /// By group, kind and version: `openAPIV3Schema`.
    schemas: BTreeMap<(String, String, String), Value>,
}

impl Types {
    pub(crate) fn read(plane: &ControlPlane) -> Result<Types, String> {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let list = plane.request("GET", path, &Value::Null).map_err(|error| format!("{path}: {error}"))?;
        let mut schemas = BTreeMap::new();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for definition in list["items"].as_array().into_iter().flatten() {
            let spec = &definition["spec"];
            for version in spec["versions"].as_array().into_iter().flatten() {
                let key = (text(&spec["group"]), text(&spec["names"]["kind"]), text(&version["name"]));
                schemas.insert(key, version["schema"]["openAPIV3Schema"].clone());
            }
        }
        Ok(Types { schemas })
    }

    fn definition(&self, thing: &Thing) -> Option<&Value> {
        let (group, version) = thing.api_version.split_once('/')?;
        self.schemas.get(&(group.to_owned(), thing.kind.clone(), version.to_owned()))
    }

    pub(crate) fn is_custom(&self, thing: &Thing) -> bool {
        self.definition(thing).is_some()
    }

    /// The raw schema at a path of a custom resource's object; null where there is none.
    pub(crate) fn schema(&self, thing: &Thing, path: &[Step]) -> &Value {
        let mut at = self.definition(thing).unwrap_or(&Value::Null);
        for step in path {
            at = match step {
                Step::Field(key) if at["properties"].get(key).is_some() => &at["properties"][key],
                Step::Field(_) => &at["additionalProperties"],
                Step::Item(_) | Step::Member(_) => &at["items"],
            };
        }
        at
    }

    /// What the value at a path is, that being a map or a list.
    pub(crate) fn shape(&self, thing: &Thing, path: &[Step], value: &Value) -> Shape {
        let of_metadata = matches!(path.first(), Some(Step::Field(first)) if first == "metadata");
        if of_metadata || !self.is_custom(thing) {
            return built_in(thing, path, value);
        }
        let schema = self.schema(thing, path);
        if value.is_object() {
            return if schema["x-kubernetes-map-type"] == "atomic" { Shape::Atomic } else { Shape::Map };
        }
        match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => Shape::Set,
            Some("map") => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
                let mut keys: Vec<String> = keys.filter_map(Value::as_str).map(str::to_owned).collect();
                keys.sort();
                Shape::Keyed(keys)
            }
            _ => Shape::Atomic,
        }
    }

    /// What a list key is when an item leaves it out.
    pub(crate) fn key_default(&self, thing: &Thing, list: &[Step], key: &str) -> Option<Value> {
        if self.is_custom(thing) {
            return self.schema(thing, list)["items"]["properties"][key].get("default").cloned();
        }
        (key == "protocol").then(|| json!("TCP"))
    }
}

/// Structs that are written as a whole, wherever they stand in a built-in kind (`+structType=atomic` in the Kubernetes API types).
const ATOMIC_STRUCTS: &[&str] = &[
    "configMapKeyRef",
    "dataSource",
    "fieldRef",
    "fileKeyRef",
    "labelSelector",
    "matchLabelKeys",
    "namespaceSelector",
    "nodeSelector",
    "objectSelector",
    "podSelector",
    "resourceFieldRef",
    "roleRef",
    "scaleTargetRef",
    "secretKeyRef",
    "selector",
];

fn built_in(thing: &Thing, path: &[Step], value: &Value) -> Shape {
    let fields: Vec<&str> = path
        .iter()
        .map(|step| match step {
            Step::Field(key) => key.as_str(),
            Step::Item(_) | Step::Member(_) => "*",
        })
        .collect();
    let last = fields.last().copied().unwrap_or_default();
    let keyed = |keys: &[&str]| Shape::Keyed(keys.iter().map(|key| (*key).to_owned()).collect());
    let free = matches!(
        fields.as_slice(),
        [.., "labels" | "annotations" | "matchLabels" | "data" | "binaryData" | "limits" | "requests", _]
    );
    if value.is_object() {
        let node_affinity = fields.ends_with(&["nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"]);
        return if !free && (ATOMIC_STRUCTS.contains(&last) || node_affinity) { Shape::Atomic } else { Shape::Map };
    }
    match (thing.kind.as_str(), fields.as_slice()) {
        (_, ["metadata", "finalizers"] | [.., "template", "metadata", "finalizers"]) => Shape::Set,
        (_, ["metadata", "ownerReferences"]) => keyed(&["uid"]),
        ("Service", ["spec", "ports"]) => keyed(&["port", "protocol"]),
        ("ServiceAccount", ["secrets"]) => keyed(&["name"]),
        ("ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration", ["webhooks"]) => keyed(&["name"]),
        ("ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration", ["webhooks", "*", "matchConditions"]) => {
            keyed(&["name"])
        }
        ("NetworkPolicy" | "CustomResourceDefinition" | "Role" | "ClusterRole" | "Ingress", _) => Shape::Atomic,
        (_, [.., "spec", "containers" | "initContainers" | "ephemeralContainers" | "volumes"]) => keyed(&["name"]),
        (_, [.., "spec", "imagePullSecrets" | "resourceClaims" | "schedulingGates"]) => keyed(&["name"]),
        (_, [.., "spec", "hostAliases"]) => keyed(&["ip"]),
        (_, [.., "spec", "topologySpreadConstraints"]) => keyed(&["topologyKey", "whenUnsatisfiable"]),
        (_, [.., "containers" | "initContainers", "*", "env"]) => keyed(&["name"]),
        (_, [.., "containers" | "initContainers", "*", "ports"]) => keyed(&["containerPort", "protocol"]),
        (_, [.., "containers" | "initContainers", "*", "volumeMounts"]) => keyed(&["mountPath"]),
        (_, [.., "containers" | "initContainers", "*", "volumeDevices"]) => keyed(&["devicePath"]),
        (_, [.., "containers" | "initContainers", "*", "resources", "claims"]) => keyed(&["name"]),
        _ => Shape::Atomic,
    }
}
