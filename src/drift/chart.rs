//! The chart that a release record holds -> its files, as `helm` reads a chart from a directory. Knows nothing of where they are written.
//!
//! A record holds the chart without its subcharts (helm/helm#8501), so a chart that had some cannot be rebuilt. Records are written by
//! tenants: a file's name must not lead out of the directory.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Path below the chart's directory, with `/`, and content.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Why there is no chart. Quotes no content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChartError {
    #[error("it holds no chart")]
    None,
    #[error("its file {0:?} is not base64")]
    Base64(String),
    #[error("its file {0:?} would lie outside of the chart")]
    Outside(String),
}

/// The files of the chart in a decoded record.
///
/// Shape: `record` is the record's JSON; `Chart.yaml` and `values.yaml` are written as JSON, which is YAML.
/// Source: helm/helm `pkg/chart/v2/chart.go`, `pkg/chart/v2/loader/load.go`.
pub(crate) fn files(record: &Value) -> Result<Files, ChartError> {
    let chart = record.get("chart").filter(|chart| chart.is_object()).ok_or(ChartError::None)?;
    let metadata = chart.get("metadata").filter(|metadata| metadata.is_object()).ok_or(ChartError::None)?;
    let mut files = Files::new();
    for list in ["templates", "files"] {
        for file in chart.get(list).and_then(Value::as_array).into_iter().flatten() {
            let name = file.get("name").and_then(Value::as_str).unwrap_or_default();
            // Signatures of subcharts that are not there.
            if name.starts_with("charts/") {
                continue;
            }
            if !is_inside(name) {
                return Err(ChartError::Outside(name.to_owned()));
            }
            let text = file.get("data").and_then(Value::as_str).unwrap_or_default();
            let data = STANDARD.decode(text).map_err(|_| ChartError::Base64(name.to_owned()))?;
            files.insert(name.to_owned(), data);
        }
    }
    if let Some(schema) = chart.get("schema").and_then(Value::as_str) {
        let data = STANDARD.decode(schema).map_err(|_| ChartError::Base64("values.schema.json".to_owned()))?;
        files.insert("values.schema.json".to_owned(), data);
    }
    files.insert("Chart.yaml".to_owned(), metadata.to_string().into_bytes());
    if let Some(values) = chart.get("values").filter(|values| values.is_object()) {
        files.insert("values.yaml".to_owned(), values.to_string().into_bytes());
    }
    Ok(files)
}

fn is_inside(name: &str) -> bool {
    let plain = |step: &str| !matches!(step, "" | "." | "..") && !step.contains(['\\', ':', '\0']);
    !name.is_empty() && name.split('/').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(name: &str, text: &str) -> Value {
        json!({"name": name, "data": STANDARD.encode(text)})
    }

    #[test]
    fn a_chart_is_rebuilt_from_its_record() {
        let record = json!({"chart": {
            "metadata": {"name": "nucleus", "version": "1.0.0", "apiVersion": "v2"}, "lock": null,
            "templates": [file("templates/web.yaml", "kind: X\n")], "values": {"replicas": 3},
            "schema": STANDARD.encode("{}"), "files": [file("files/a.txt", "a"), file("charts/x.tgz.prov", "sig")],
        }});
        let files = files(&record).unwrap();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["Chart.yaml", "files/a.txt", "templates/web.yaml", "values.schema.json", "values.yaml"]);
        assert_eq!(files["templates/web.yaml"], b"kind: X\n");
        assert_eq!(files["values.yaml"], br#"{"replicas":3}"#);
    }

    #[test]
    fn no_file_leads_out_of_the_chart() {
        for name in ["../x", "/etc/x", "a/../../x", "a//b", "", "a/./b", "c:\\x", "a\\b"] {
            let record = json!({"chart": {"metadata": {}, "files": [file(name, "x")]}});
            assert_eq!(files(&record), Err(ChartError::Outside(name.into())), "{name}");
        }
        assert_eq!(files(&json!({"chart": null})), Err(ChartError::None));
        let broken = json!({"chart": {"metadata": {}, "templates": [{"name": "templates/a", "data": "%"}]}});
        assert_eq!(files(&broken), Err(ChartError::Base64("templates/a".into())));
    }
}
