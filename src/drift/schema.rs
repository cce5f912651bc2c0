//! Types of fields as the cluster's own OpenAPI documents tell them. Knows nothing of values or owners.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::object::Gvk;

/// Changes whenever the digest's form changes, so that an older program's cache is not read.
pub(crate) const DIGEST_VERSION: u32 = 2;

/// Place of a [`Type`] in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TypeId(u32);

/// What the comparison needs of one group version's OpenAPI v3 document; small enough to keep on disk.
///
/// Each group version has its own: definitions of one name differ between versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Schema {
    types: Vec<Type>,
    /// By kind, with the group version it was declared for.
    kinds: BTreeMap<String, TypeId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Type {
    /// Name of the OpenAPI definition, the key of the fact tables; inline types have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<String>,
    /// Belongs to a custom resource, where the server stores zeros as they were sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) custom: bool,
    pub(crate) shape: Shape,
}

/// A field of a [`Map`], or the value of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub(crate) ty: TypeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Shape {
    Map(Map),
    List {
        items: TypeId,
        kind: ListKind,
    },
    Quantity,
    IntOrString,
    Time,
    Duration,
    Bytes,
    /// `type: number`: the server keeps it as a 64-bit float.
    Number,
    Integer,
    Text,
    Bool,
    /// No type: maps are granular, lists atomic, as structured-merge-diff deduces them.
    Any,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Map {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) fields: BTreeMap<String, Field>,
    /// `additionalProperties`: the entries of a free map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) entries: Option<Field>,
    /// Unknown fields are kept (`x-kubernetes-preserve-unknown-fields`), not pruned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) open: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) atomic: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    /// The keys, sorted by name.
    Map(Vec<String>),
}

/// What stands at a key of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot<'s> {
    /// A declared field.
    Field(&'s Type, Option<&'s Value>),
    /// An entry of a free map (labels, ConfigMap data): never dropped when zero.
    Entry(&'s Type, Option<&'s Value>),
    /// Not declared, but kept.
    Open,
    /// Not declared: the server prunes it.
    Unknown,
}

/// The type of what no schema describes.
pub(crate) static ANY: Type = Type { definition: None, custom: true, shape: Shape::Any };

#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("the OpenAPI document is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the OpenAPI document has no components.schemas")]
    NoSchemas,
}

impl Schema {
    /// Digests one document.
    ///
    /// Shape: `document` is the body of `/openapi/v3/apis/<group>/<version>` (or `/openapi/v3/api/v1`).
    /// Source: kubernetes/kube-openapi `pkg/common`, structured-merge-diff `schema`.
    pub(crate) fn from_openapi(document: &[u8]) -> Result<Self, SchemaError> {
        let document: Value = serde_json::from_slice(document)?;
        let definitions =
            document.pointer("/components/schemas").and_then(Value::as_object).ok_or(SchemaError::NoSchemas)?;
        let mut builder = Builder { definitions, types: Vec::new(), known: BTreeMap::new() };
        let mut kinds = BTreeMap::new();
        for (name, node) in definitions {
            // Only objects have metadata; DeleteOptions and WatchEvent name every kind as theirs.
            if node.pointer("/properties/metadata").is_none() || node.pointer("/properties/items/items").is_some() {
                continue;
            }
            for gvk in node.get("x-kubernetes-group-version-kind").and_then(Value::as_array).into_iter().flatten() {
                let text = |key| gvk.get(key).and_then(Value::as_str).unwrap_or_default();
                let key = kind_key(text("group"), text("version"), text("kind"));
                let id = builder.definition(name);
                kinds.insert(key, id);
            }
        }
        Ok(Self { types: builder.types, kinds })
    }

    /// Whether the document describes the kind.
    pub(crate) fn has(&self, gvk: &Gvk) -> bool {
        self.root(gvk).is_some()
    }

    /// The type of a kind's objects.
    pub(crate) fn root(&self, gvk: &Gvk) -> Option<&Type> {
        self.kinds.get(&kind_key(&gvk.group, &gvk.version, &gvk.kind)).map(|id| self.get(*id))
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        usize::try_from(id.0).ok().and_then(|index| self.types.get(index)).unwrap_or(&ANY)
    }

    /// What stands at `key` of a map of type `ty`.
    pub(crate) fn slot<'s>(&'s self, ty: &'s Type, key: &str) -> Slot<'s> {
        match &ty.shape {
            Shape::Map(map) => match (map.fields.get(key), &map.entries) {
                (Some(field), _) => Slot::Field(self.get(field.ty), field.default.as_ref()),
                (None, Some(entry)) => Slot::Entry(self.get(entry.ty), entry.default.as_ref()),
                (None, None) if map.open => Slot::Open,
                (None, None) => Slot::Unknown,
            },
            _ => Slot::Open,
        }
    }

    /// The type of a list's items; [`ANY`] for what is no list.
    pub(crate) fn items<'s>(&'s self, ty: &'s Type) -> &'s Type {
        match &ty.shape {
            Shape::List { items, .. } => self.get(*items),
            // JSONSchemaPropsOrArray: one schema or a list of them.
            Shape::Map(_) => ty,
            _ => &ANY,
        }
    }

    /// The default of a list key (`protocol: TCP`).
    pub(crate) fn key_default<'s>(&'s self, items: &'s Type, key: &str) -> Option<&'s Value> {
        match self.slot(items, key) {
            Slot::Field(_, default) => default,
            _ => None,
        }
    }
}

fn kind_key(group: &str, version: &str, kind: &str) -> String {
    format!("{group}/{version}/{kind}")
}

/// Kubernetes' own definitions; every other one is a custom resource's or an aggregated API's.
fn is_built_in(definition: &str) -> bool {
    ["io.k8s.api.", "io.k8s.apimachinery.", "io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator."]
        .iter()
        .any(|prefix| definition.starts_with(prefix))
}

/// The pattern that controller-gen gives `resource.Quantity` in a custom resource's schema.
const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

struct Builder<'d> {
    definitions: &'d serde_json::Map<String, Value>,
    types: Vec<Type>,
    known: BTreeMap<String, TypeId>,
}

impl<'d> Builder<'d> {
    fn reserve(&mut self, definition: Option<&str>, custom: bool) -> TypeId {
        let id = TypeId(u32::try_from(self.types.len()).unwrap_or(u32::MAX));
        self.types.push(Type { definition: definition.map(str::to_owned), custom, shape: Shape::Any });
        id
    }

    fn settle(&mut self, id: TypeId, shape: Shape) {
        if let Some(ty) = usize::try_from(id.0).ok().and_then(|index| self.types.get_mut(index)) {
            ty.shape = shape;
        }
    }

    fn definition(&mut self, name: &str) -> TypeId {
        // OpenAPI leaves these three untyped; each holds a schema (or a list of them, a bool, a list of names).
        let name = match name.strip_prefix("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOr")
        {
            Some(_) => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
            None => name,
        };
        if let Some(id) = self.known.get(name) {
            return *id;
        }
        let custom = !is_built_in(name);
        let id = self.reserve(Some(name), custom);
        self.known.insert(name.to_owned(), id);
        let shape = match name {
            "io.k8s.apimachinery.pkg.api.resource.Quantity" => Shape::Quantity,
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Shape::IntOrString,
            "io.k8s.apimachinery.pkg.apis.meta.v1.Duration" => Shape::Duration,
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time" | "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" => {
                Shape::Time
            }
            _ => match self.definitions.get(name) {
                Some(node) => self.shape(node, custom),
                None => Shape::Any,
            },
        };
        // Free-form JSON is stored as it was sent.
        if matches!(shape, Shape::Any)
            && let Some(ty) = usize::try_from(id.0).ok().and_then(|index| self.types.get_mut(index))
        {
            ty.custom = true;
        }
        self.settle(id, shape);
        id
    }

    fn resolve(&mut self, node: &'d Value, custom: bool) -> TypeId {
        let reference =
            node.get("$ref").or_else(|| match node.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
                Some([only]) => only.get("$ref"),
                _ => None,
            });
        if let Some(name) =
            reference.and_then(Value::as_str).and_then(|text| text.strip_prefix("#/components/schemas/"))
        {
            return self.definition(name);
        }
        let id = self.reserve(None, custom);
        let shape = self.shape(node, custom);
        self.settle(id, shape);
        id
    }

    fn field(&mut self, node: &'d Value, custom: bool) -> Field {
        Field { ty: self.resolve(node, custom), default: node.get("default").cloned() }
    }

    fn shape(&mut self, node: &'d Value, custom: bool) -> Shape {
        let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or_default();
        let flag = |key: &str| node.get(key).and_then(Value::as_bool).unwrap_or_default();
        if flag("x-kubernetes-int-or-string") || text("format") == "int-or-string" {
            return if text("pattern") == QUANTITY_PATTERN { Shape::Quantity } else { Shape::IntOrString };
        }
        let properties = node.get("properties").and_then(Value::as_object);
        let additional = node.get("additionalProperties").filter(|value| value.is_object());
        match text("type") {
            "array" => Shape::List {
                items: match node.get("items") {
                    Some(items) => self.resolve(items, custom),
                    None => self.reserve(None, custom),
                },
                kind: list_kind(node),
            },
            "string" => match text("format") {
                "byte" => Shape::Bytes,
                "date-time" => Shape::Time,
                "duration" => Shape::Duration,
                _ => Shape::Text,
            },
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "boolean" => Shape::Bool,
            "object" => self.map(node, properties, additional, custom),
            _ if properties.is_some() || additional.is_some() => self.map(node, properties, additional, custom),
            _ => Shape::Any,
        }
    }

    fn map(
        &mut self,
        node: &'d Value,
        properties: Option<&'d serde_json::Map<String, Value>>,
        additional: Option<&'d Value>,
        custom: bool,
    ) -> Shape {
        let preserved = node.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool).unwrap_or_default();
        let free_form = properties.is_none() && additional.is_none() && !custom;
        Shape::Map(Map {
            fields: properties
                .into_iter()
                .flatten()
                .map(|(name, field)| (name.clone(), self.field(field, custom)))
                .collect(),
            entries: additional.map(|entry| self.field(entry, custom)),
            open: preserved || free_form || node.get("additionalProperties") == Some(&Value::Bool(true)),
            atomic: node.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
        })
    }
}

fn list_kind(node: &Value) -> ListKind {
    let keys = || -> Vec<String> {
        let mut keys: Vec<String> = match node.get("x-kubernetes-list-map-keys").and_then(Value::as_array) {
            Some(keys) => keys.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            // Servers before list types said so by the merge key of strategic merge patch alone.
            None => node
                .get("x-kubernetes-patch-merge-key")
                .and_then(Value::as_str)
                .map(str::to_owned)
                .into_iter()
                .collect(),
        };
        keys.sort();
        keys
    };
    let keyed = |keys: Vec<String>| if keys.is_empty() { ListKind::Atomic } else { ListKind::Map(keys) };
    match node.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("map") => keyed(keys()),
        Some("set") => ListKind::Set,
        Some(_) => ListKind::Atomic,
        None => keyed(keys()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        let document = json!({"components": {"schemas": {
            "io.k8s.api.core.v1.Service": {
                "type": "object",
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Service"}],
                "properties": {
                    "metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}], "default": {}},
                    "spec": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.ServiceSpec"}], "default": {}},
                },
            },
            "io.k8s.api.core.v1.ServiceSpec": {"type": "object", "properties": {
                "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["protocol", "port"],
                    "items": {"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}, "port": {"type": "integer"}}}},
            }},
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
            "com.example.v1.Worker": {
                "type": "object",
                "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Worker"}],
                "properties": {
                    "metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
                    "spec": {"type": "object", "properties": {
                        "cpu": {"x-kubernetes-int-or-string": true, "pattern": QUANTITY_PATTERN},
                        "port": {"x-kubernetes-int-or-string": true},
                        "closed": {"type": "object"},
                    }},
                },
            },
        }}});
        Schema::from_openapi(document.to_string().as_bytes()).unwrap()
    }

    fn field<'s>(schema: &'s Schema, ty: &'s Type, key: &str) -> &'s Type {
        match schema.slot(ty, key) {
            Slot::Field(ty, _) | Slot::Entry(ty, _) => ty,
            Slot::Open | Slot::Unknown => panic!("{key} is not declared"),
        }
    }

    #[test]
    fn list_keys_are_sorted_and_have_their_defaults() {
        let schema = schema();
        let service = schema.root(&Gvk::new("v1", "Service")).unwrap();
        assert!(!service.custom);
        let ports = field(&schema, field(&schema, service, "spec"), "ports");
        assert!(matches!(&ports.shape, Shape::List { kind: ListKind::Map(keys), .. } if keys == &["port", "protocol"]));
        assert_eq!(schema.key_default(schema.items(ports), "protocol"), Some(&json!("TCP")));
    }

    #[test]
    fn custom_resources_are_custom_but_for_their_metadata() {
        let schema = schema();
        let worker = schema.root(&Gvk::new("example.com/v1", "Worker")).unwrap();
        let spec = field(&schema, worker, "spec");
        assert!(worker.custom && spec.custom && !field(&schema, worker, "metadata").custom);
        assert_eq!(field(&schema, spec, "cpu").shape, Shape::Quantity);
        assert_eq!(field(&schema, spec, "port").shape, Shape::IntOrString);
        assert!(matches!(schema.slot(field(&schema, spec, "closed"), "x"), Slot::Unknown));
    }

    #[test]
    fn a_digest_survives_the_disk() {
        let schema = schema();
        let text = serde_json::to_vec(&schema).unwrap();
        assert_eq!(serde_json::from_slice::<Schema>(&text).unwrap(), schema);
    }
}
