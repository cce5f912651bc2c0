//! Which values must not be shown. They are masked where a finding is made, once, so that no output can leak them.

use serde_json::Value;

use super::classify::Wanted;
use super::equal;
use super::finding::Shown;
use super::object::{FieldPath, Gvk, Segment};
use super::rules;

/// Annotations of Secrets that hold their values: what was sent by `kubectl apply`, and a token of OpenShift's.
const SECRET_ANNOTATIONS: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "openshift.io/token-secret.value"];

pub(crate) fn is_secret(gvk: &Gvk) -> bool {
    gvk.group.is_empty() && gvk.kind == "Secret"
}

/// A value as it may be shown: values of Secrets, what the configuration calls sensitive, and copies of both, are masked.
pub(crate) fn shown(wanted: Wanted<'_>, path: &FieldPath, value: Option<&Value>) -> Shown {
    let Some(value) = value else { return Shown::Absent };
    let hidden = is_secret(&wanted.object.gvk) && is_secret_value(path, value)
        || rules::hides(wanted.sensitive, wanted.object, path, value);
    if hidden { Shown::Masked { bytes: length(value) } } else { Shown::Plain(value.clone()) }
}

/// Whether a value of a Secret must not be shown. In clear is only what no value can hide in, so that a slip of the pen
/// (`dataString`) shows none.
fn is_secret_value(path: &FieldPath, value: &Value) -> bool {
    let names: Vec<&str> = path
        .0
        .iter()
        .map_while(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Item(_) | Segment::Member(_) | Segment::Index(_) => None,
        })
        .collect();
    let holds = |annotations: Option<&Value>| {
        annotations.is_some_and(|all| SECRET_ANNOTATIONS.iter().any(|name| all.get(name).is_some()))
    };
    match names.as_slice() {
        ["apiVersion" | "kind" | "type" | "immutable"] => false,
        ["metadata"] => holds(value.get("annotations")),
        ["metadata", "annotations"] => holds(Some(value)),
        ["metadata", "annotations", name, ..] => SECRET_ANNOTATIONS.contains(name),
        ["metadata", ..] => false,
        _ => true,
    }
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => equal::decoded(text).map_or(text.len(), |bytes| bytes.len()),
        Value::Object(map) => map.values().filter_map(Value::as_str).map(str::len).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => 0,
    }
}
