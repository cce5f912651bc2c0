//! JSON values as YAML lines that can be compared one by one. Knows nothing of differences.

use serde_json::Value;

use super::escape::is_hidden;

/// `key: value` at `indent` columns, lists not indented, as Helm and kubectl write them.
pub(crate) fn entry(key: &str, value: &Value, indent: usize) -> Vec<String> {
    let key = format!("{}{}:", " ".repeat(indent), string(key));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let mut lines = vec![key];
            lines.extend(fields.iter().flat_map(|(name, field)| entry(name, field, indent + 2)));
            lines
        }
        Value::Array(items) if !items.is_empty() => {
            let mut lines = vec![key];
            lines.extend(items.iter().flat_map(|one| item(one, indent)));
            lines
        }
        Value::String(text) if is_block(text) => {
            let mut lines = vec![format!("{key} |{}", chomping(text))];
            lines.extend(block(text, indent + 2));
            lines
        }
        _ => vec![format!("{key} {}", scalar(value))],
    }
}

/// `- value` at `indent` columns; the name comes first, as people write it.
pub(crate) fn item(value: &Value, indent: usize) -> Vec<String> {
    let mut lines = match value {
        Value::Object(fields) if !fields.is_empty() => {
            let (first, rest): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| *name == "name");
            first.into_iter().chain(rest).flat_map(|(name, field)| entry(name, field, indent + 2)).collect()
        }
        Value::Array(items) if !items.is_empty() => items.iter().flat_map(|one| item(one, indent + 2)).collect(),
        Value::String(text) if is_block(text) => {
            let mut lines = vec![format!("{}|{}", " ".repeat(indent + 2), chomping(text))];
            lines.extend(block(text, indent + 2));
            lines
        }
        _ => vec![format!("{}{}", " ".repeat(indent + 2), scalar(value))],
    };
    if let Some(first) = lines.first_mut() {
        *first = dashed(first, indent);
    }
    lines
}

/// The line of an item's inside that comes first, with the item's dash.
pub(crate) fn dashed(line: &str, indent: usize) -> String {
    format!("{}- {}", " ".repeat(indent), line.get(indent + 2..).unwrap_or_default())
}

/// A whole document.
pub(crate) fn document(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().flat_map(|(name, field)| entry(name, field, 0)).collect()
        }
        Value::Array(items) if !items.is_empty() => items.iter().flat_map(|one| item(one, 0)).collect(),
        _ => vec![scalar(value)],
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        _ => value.to_string(),
    }
}

/// Quoted where a YAML 1.1 reader would otherwise read something else.
pub(crate) fn string(text: &str) -> String {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false, yaml_12: false };
    match serde_saphyr::to_string_with_options(&text, options) {
        Ok(yaml) if !text.chars().any(is_hidden) => yaml.trim_end_matches('\n').to_owned(),
        Ok(_) | Err(_) => Value::from(text).to_string(),
    }
}

/// Whether a text is readable as it stands, line by line.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with(['\n', ' ', '\t'])
        && text.chars().all(|c| matches!(c, '\n' | '\t') || !is_hidden(c))
}

fn chomping(text: &str) -> &'static str {
    if text.ends_with("\n\n") {
        "+"
    } else if text.ends_with('\n') {
        ""
    } else {
        "-"
    }
}

fn block(text: &str, indent: usize) -> impl Iterator<Item = String> {
    text.lines().map(move |line| if line.is_empty() { String::new() } else { format!("{}{line}", " ".repeat(indent)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_reads_back() {
        let values = json!({
            "n": 1, "f": 1.5, "t": true, "none": null, "empty": {}, "nothing": [], "": "",
            "words": ["yes", "no", "on", "y", "0644", "1e3", "1_000", "<<", "=", "~", "null", "2026-11-30", "a: b", "a #b", " a", "b ", "'", "\"", "*", "&a", "- a", "%", "@", "{", "1:30"],
            "text": "a\n\n  b\nc\n", "open": "a\nb", "kept": "a\n\n\n", "odd": "\na\n", "spaces": "  a\nb\n", "tab": "a\tb\n",
            "hidden": "a\u{1b}b\u{202e}",
            "deep": [{"name": "a", "list": [[1, 2], ["x\ny\n"], {"k": ["v"]}]}, "plain", "two\nlines\n", []],
            "yes": {"a.b/c": "d", "a: b": 1, "- x": 2},
        });
        let text = document(&values).join("\n") + "\n";
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), values, "{text}");
    }

    #[test]
    fn lists_are_written_as_helm_writes_them() {
        let value = json!([{"name": "web", "ports": [80]}, "x"]);
        assert_eq!(
            entry("containers", &value, 2),
            ["  containers:", "  - name: web", "    ports:", "    - 80", "  - x"]
        );
    }
}
