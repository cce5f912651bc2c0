//! `docs/report.schema.json`, and whether a document follows it.

use jiff::Timestamp;
use serde_json::{Map, Value};

pub(crate) fn schema() -> Value {
    serde_json::from_str(include_str!("../../docs/report.schema.json")).unwrap()
}

/// Where a document leaves what the schema says of its `kind`.
pub(crate) fn errors(document: &Value) -> Vec<String> {
    let schema = schema();
    let kind = document["kind"].as_str().unwrap_or_default();
    let name = kind.strip_prefix("Drift").unwrap_or(kind).to_lowercase();
    let one = schema["anyOf"].as_array().unwrap().iter().find(|one| one["$ref"] == format!("#/$defs/{name}"));
    let mut errors = Vec::new();
    match one {
        Some(one) => check(&schema, one, document, "", &mut errors),
        None => errors.push(format!("no schema of kind {kind:?}")),
    }
    errors
}

/// Checks a value by the words of JSON Schema that our schema uses, and more strictly than it: unknown keys are errors, as are
/// words that this function does not know.
fn check(root: &Value, schema: &Value, value: &Value, place: &str, errors: &mut Vec<String>) {
    let Value::Object(words) = schema else { panic!("{place}: not a schema: {schema}") };
    let names = |word: &str| schema.get(word).and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    for (word, say) in words {
        let fits = match word.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let pointer = say.as_str().and_then(|name| name.strip_prefix('#')).unwrap();
                check(root, root.pointer(pointer).unwrap(), value, place, errors);
                true
            }
            "const" => value == say,
            "enum" => say.as_array().unwrap().contains(value),
            "type" => {
                let is = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "null" => value.is_null(),
                    other => panic!("{place}: type {other}"),
                };
                say.as_array().map_or_else(|| is(say), |any| any.iter().any(is))
            }
            "minimum" => value.as_i64() >= say.as_i64(),
            "format" => value.as_str().is_some_and(|text| text.parse::<Timestamp>().is_ok() && text.len() == 20),
            "anyOf" => say.as_array().unwrap().iter().any(|one| {
                let mut found = Vec::new();
                check(root, one, value, place, &mut found);
                found.is_empty()
            }),
            "required" => say.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, say, item, &format!("{place}/{index}"), errors);
                }
                true
            }
            "properties" => {
                let known = names("properties");
                for (name, field) in value.as_object().into_iter().flatten() {
                    match known.get(name) {
                        Some(schema) => check(root, schema, field, &format!("{place}/{name}"), errors),
                        None => errors.push(format!("{place}/{name}: not in the schema")),
                    }
                }
                true
            }
            other => panic!("{place}: the schema says {other}, which this check does not know"),
        };
        if !fits {
            errors.push(format!("{place}: {word} {say}: {value}"));
        }
    }
}
