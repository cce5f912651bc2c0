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

#[cfg(test)]
mod tests {
    use super::super::object::ObjectRef;
    use super::*;
    use serde_json::json;

    fn is_masked(api_version: &str, kind: &str, path: &[&str], value: &Value) -> bool {
        let object = ObjectRef { gvk: Gvk::new(api_version, kind), namespace: Some("shop".into()), name: "web".into() };
        let wanted = Wanted { object: &object, source: None, body: &Value::Null, sensitive: &[] };
        matches!(shown(wanted, &FieldPath::of_fields(path), Some(value)), Shown::Masked { .. })
    }

    #[test]
    fn of_a_secret_only_what_holds_no_value_is_shown() {
        let text = json!("aHVudGVyMg==");
        let masked = |path: &[&str], value: &Value| is_masked("v1", "Secret", path, value);
        for path in
            [["data"].as_slice(), &["data", "password"], &["stringData", "password"], &["dataString"], &["spec", "x"]]
        {
            assert!(masked(path, &text), "{path:?}");
        }
        for path in
            [["type"].as_slice(), &["immutable"], &["metadata", "labels", "a"], &["metadata", "annotations", "a"]]
        {
            assert!(!masked(path, &text), "{path:?}");
        }
        assert!(!is_masked("v1", "ConfigMap", &["data", "mode"], &text));
        assert!(!is_masked("example.com/v1", "Secret", &["data", "mode"], &text), "of another group");
    }

    #[test]
    fn copies_of_a_secrets_values_are_hidden_wherever_they_are_part_of() {
        for name in SECRET_ANNOTATIONS {
            let annotations = json!({name: "aHVudGVyMg=="});
            let masked = |path: &[&str], value: &Value| is_masked("v1", "Secret", path, value);
            assert!(masked(&["metadata", "annotations", name], &json!("aHVudGVyMg==")), "{name}");
            assert!(masked(&["metadata", "annotations"], &annotations), "{name}");
            assert!(masked(&["metadata"], &json!({"annotations": annotations})), "{name}");
        }
        assert!(!is_masked("v1", "Secret", &["metadata", "annotations"], &json!({"a": "b"})));
    }

    #[test]
    fn what_is_called_sensitive_is_hidden_in_any_kind() {
        let object = ObjectRef { gvk: Gvk::new("v1", "ConfigMap"), namespace: Some("shop".into()), name: "web".into() };
        let sensitive = [rules::Sensitive {
            path: ".data.password".parse().unwrap(),
            kinds: rules::Kinds::default(),
            names: Vec::new(),
        }];
        let wanted = Wanted { object: &object, source: None, body: &Value::Null, sensitive: &sensitive };
        let shown = |key: &str| shown(wanted, &FieldPath::of_fields(&["data", key]), Some(&json!("hunter2")));
        assert_eq!(shown("password"), Shown::Masked { bytes: 7 });
        assert_eq!(shown("mode"), Shown::Plain(json!("hunter2")));
    }
}
