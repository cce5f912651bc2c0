//! Secret values that a foreign text may quote: a chart's `fail`, a schema that is not met, a server's refusal. Knows nothing of who says it.

use serde_json::Value;

use super::equal;

/// Words in the names of values that are secret wherever they end up.
const NAMES: [&str; 9] = ["pass", "secret", "token", "key", "cred", "auth", "private", "cert", "dsn"];

/// Shorter ones are in any sentence.
const SHORTEST: usize = 4;

/// No `Debug`: it is all secrets.
#[derive(Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Of a release: what its Secrets hold, and what its values hold under a telling name.
    ///
    /// Shape: `record` as it is stored (`config`, `chart.values`); `secrets`: bodies of Secrets, `data` in base64.
    pub(crate) fn of<'v>(record: &Value, secrets: impl Iterator<Item = &'v Value>) -> Self {
        let mut found = Vec::new();
        for secret in secrets {
            for value in secret.get("data").and_then(Value::as_object).into_iter().flat_map(|data| data.values()) {
                let Some(text) = value.as_str() else { continue };
                found.push(text.to_owned());
                found.extend(equal::decoded(text).and_then(|bytes| String::from_utf8(bytes.to_vec()).ok()));
            }
        }
        for values in [record.get("config"), record.pointer("/chart/values")].into_iter().flatten() {
            gather(values, false, &mut found);
        }
        // A value is often one line of a longer one.
        let mut lines: Vec<String> =
            found.iter().flat_map(|text| text.lines()).map(|line| line.trim().to_owned()).collect();
        lines.retain(|line| line.len() >= SHORTEST);
        lines.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        lines.dedup();
        Self(lines)
    }

    /// The text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "••••"))
    }
}

fn gather(value: &Value, is_secret: bool, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let lower = name.to_lowercase();
                gather(value, is_secret || NAMES.iter().any(|word| lower.contains(word)), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, is_secret, found)),
        Value::String(text) if is_secret => found.push(text.clone()),
        Value::Number(number) if is_secret => found.push(number.to_string()),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_chart_quotes_is_hidden() {
        let record = json!({
            "config": {"db": {"adminPassword": "geheim-1", "host": "db.example"}, "pin": {"secret": [12345]}},
            "chart": {"values": {"apiToken": "t0ken-default", "replicas": 3}},
        });
        let secret = json!({"data": {"a": "aHVudGVyMg==", "lines": "Zmlyc3QgbGluZQpzZWNvbmQgbGluZQ=="}});
        let secrets = Secrets::of(&record, [&secret].into_iter());
        let said = "at db.example: geheim-1, hunter2 (aHVudGVyMg==), second line, t0ken-default, 12345, 3";
        assert_eq!(secrets.hide(said), "at db.example: ••••, •••• (••••), ••••, ••••, ••••, 3");
        assert_eq!(Secrets::default().hide("as it is"), "as it is");
    }
}
