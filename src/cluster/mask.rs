//! Secret values -> tokens, in whatever an API server answers. Knows nothing of how a capture is written.
//!
//! A token is a keyed hash under a random key that is thrown away: equal values have equal tokens, so a replay still finds that a
//! Secret drifted, but no list of likely passwords leads back. A plain hash would, for a short secret.
//! A masked object stays what it was: base64 where there was base64, a release record that decodes, and one that does not.

use std::collections::BTreeMap;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::rand::SystemRandom;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::question::Place;
use crate::drift::mask::is_secret;
use crate::drift::object::Gvk;
use crate::drift::payload::{self, DecodeError, Limits};
use crate::drift::rules::{self, Sensitive};
use crate::drift::yaml;

const RECORD_NAME: &str = "sh.helm.release.v1.";
const RECORD_TYPE: &str = "helm.sh/release.v1";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Annotations of Secrets that hold a secret value (the other is `LAST_APPLIED`).
const SECRET_ANNOTATIONS: [&str; 1] = ["openshift.io/token-secret.value"];

/// One random key; dropped with the capture it was made for.
pub(super) struct Masker {
    key: hmac::Key,
    /// What must not be shown beside Secrets.
    sensitive: Vec<Sensitive>,
}

/// The system has no randomness to give.
#[derive(Debug, thiserror::Error)]
#[error("this machine gives no random numbers to mask Secrets with")]
pub(crate) struct NoRandomness;

/// What an object is masked as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Secret,
    ConfigMap,
}

impl Masker {
    pub(super) fn new(sensitive: Vec<Sensitive>) -> Result<Self, NoRandomness> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| NoRandomness)?;
        Ok(Self { key, sensitive })
    }

    /// Whether an answer from this place can hold what is masked; everything else is stored as it is.
    pub(super) fn concerns(&self, place: &Place) -> bool {
        !self.sensitive.is_empty()
            || place.base == "/api/v1" && matches!(place.plural.as_str(), "secrets" | "configmaps")
    }

    /// Masks an object or a listing from `place`, metadata-only ones too.
    pub(super) fn answer(&self, place: &Place, body: &mut Value) {
        let holder = match (place.base.as_str(), place.plural.as_str()) {
            ("/api/v1", "secrets") => Some(Holder::Secret),
            ("/api/v1", "configmaps") => Some(Holder::ConfigMap),
            _ => None,
        };
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind");
        let gvk = Gvk::new(text("apiVersion"), kind.strip_suffix("List").unwrap_or(kind));
        let mask = |object: &mut Value| {
            // First: a copy of the whole object becomes one token, or a masked copy.
            self.marked(&gvk, object);
            if let Some(holder) = holder {
                self.object(holder, object);
            }
        };
        match body.get_mut("items").and_then(Value::as_array_mut) {
            Some(items) => items.iter_mut().for_each(mask),
            None => mask(body),
        }
    }

    /// Masks what is sensitive by the configuration; says whether there was any. Values of Secrets are masked anyway.
    fn marked(&self, gvk: &Gvk, object: &mut Value) -> bool {
        !is_secret(gvk) && rules::each_hidden(&self.sensitive, gvk, object, &|value| self.plain(value))
    }

    fn object(&self, holder: Holder, object: &mut Value) {
        match holder {
            Holder::Secret => self.secret(object),
            Holder::ConfigMap => self.config_map(object),
        }
    }

    fn secret(&self, secret: &mut Value) {
        let record = secret.get("type").and_then(Value::as_str) == Some(RECORD_TYPE) || is_record_name(secret);
        for (key, value) in secret.as_object_mut().into_iter().flatten() {
            match (key.as_str(), value) {
                ("apiVersion" | "kind" | "metadata" | "type" | "immutable", _) => {}
                ("data", Value::Object(data)) => {
                    for (key, value) in data {
                        match value.as_str() {
                            Some(text) if record && key == "release" => {
                                *value = Value::from(self.wrapped_payload(text))
                            }
                            _ => self.encoded(value),
                        }
                    }
                }
                // Also what a slip of the pen put beside the two fields that hold values.
                (_, value) => self.plain(value),
            }
        }
        self.annotations(Holder::Secret, secret);
    }

    /// A ConfigMap holds no secrets, unless it is a release record.
    fn config_map(&self, config_map: &mut Value) {
        if !is_record_name(config_map) {
            return;
        }
        if let Some(value) = config_map.pointer_mut("/data/release")
            && let Some(text) = value.as_str()
        {
            *value = Value::from(self.payload(text));
        }
        self.annotations(Holder::ConfigMap, config_map);
    }

    /// What `kubectl apply` left of the object as it was sent, values and all.
    fn annotations(&self, holder: Holder, object: &mut Value) {
        let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
            return;
        };
        for (key, value) in annotations.iter_mut() {
            if key == LAST_APPLIED {
                let sent =
                    value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()).filter(Value::is_object);
                *value = match sent {
                    Some(mut sent) => {
                        self.object(holder, &mut sent);
                        Value::from(sent.to_string())
                    }
                    None => Value::from(self.token(value.to_string().as_bytes())),
                };
            } else if holder == Holder::Secret && SECRET_ANNOTATIONS.contains(&key.as_str()) {
                self.plain(value);
            }
        }
    }

    fn token(&self, value: &[u8]) -> String {
        const SHOWN: usize = 16;
        let tag = hmac::sign(&self.key, value);
        let hex: String = tag.as_ref().iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
        format!("masked-{hex}")
    }

    /// A value of `stringData`, or of Helm values. Absent and empty stay so: they are no secrets, and mean something.
    fn plain(&self, value: &mut Value) {
        match value {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => *value = Value::from(self.token(text.as_bytes())),
            Value::Bool(_) | Value::Number(_) => *value = Value::from(self.token(value.to_string().as_bytes())),
            Value::Array(items) => items.iter_mut().for_each(|item| self.plain(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.plain(field)),
        }
    }

    /// A value of `data`: the token is of the decoded bytes, so that it equals that of the same text in `stringData`.
    fn encoded(&self, value: &mut Value) {
        match value {
            Value::String(text) if !text.is_empty() => {
                let bytes = decoded(text).unwrap_or_else(|| text.as_bytes().to_vec());
                if !bytes.is_empty() {
                    *value = Value::from(STANDARD.encode(self.token(&bytes)));
                }
            }
            Value::String(_) | Value::Null => {}
            // No Secret that any server took has such a value; its kind is kept, as it decides how it fails.
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => self.plain(value),
        }
    }

    /// `data.release` of a Secret: the payload in the API's own base64.
    fn wrapped_payload(&self, text: &str) -> String {
        match decoded(text).map(String::from_utf8) {
            Some(Ok(payload)) => STANDARD.encode(self.payload(&payload)),
            Some(Err(_)) | None => STANDARD.encode(NOT_BASE64),
        }
    }

    /// Helm's text of a release: base64 of gzip of JSON, masked and packed again. What fails at a step fails at the same step after.
    fn payload(&self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        match payload::json(text.as_bytes(), Limits::default()) {
            Ok(json) => packed(&self.release(&json)),
            Err(DecodeError::Gzip(_) | DecodeError::TooLarge { .. }) => STANDARD.encode(NOT_GZIP),
            Err(_) => NOT_BASE64.to_owned(),
        }
    }

    /// By what is kept, not by what is hidden: a field that some later Helm adds is left out until it is known to be harmless.
    fn release(&self, json: &str) -> String {
        let fields = match serde_json::from_str::<Fields>(json) {
            Ok(Some(fields)) => fields,
            Ok(None) => return "null".to_owned(),
            Err(_) => return "{".to_owned(),
        };
        let mut kept = Map::new();
        for (key, raw) in fields {
            let value = match key.to_ascii_lowercase().as_str() {
                "name" | "version" | "namespace" | "apply_method" => scalar(&raw),
                "info" => self.info(&raw),
                "chart" => self.chart(&raw),
                "config" => self.values(&raw),
                "manifest" => match serde_json::from_str::<Value>(raw.get()) {
                    Ok(Value::String(text)) => Value::from(self.manifest(&text)),
                    Ok(Value::Null) => Value::Null,
                    Ok(_) | Err(_) => ODD,
                },
                "hooks" => list(
                    &raw,
                    &["name", "kind", "path", "events", "weight", "delete_policies", "output_log_policies", "last_run"],
                ),
                _ => continue,
            };
            kept.insert(key, value);
        }
        Value::Object(kept).to_string()
    }

    fn info(&self, raw: &RawValue) -> Value {
        // Notes are rendered from values, passwords among them as a rule.
        let kept = ["first_deployed", "last_deployed", "deleted", "description", "status", "rollback_revision"];
        object(raw, |key, raw| kept.contains(&key).then(|| scalar(raw)))
    }

    fn chart(&self, raw: &RawValue) -> Value {
        object(raw, |key, raw| match key {
            "metadata" | "lock" => Some(serde_json::from_str(raw.get()).unwrap_or(ODD)),
            "values" => Some(self.values(raw)),
            "templates" | "files" => Some(list(raw, &["name"])),
            _ => None,
        })
    }

    fn values(&self, raw: &RawValue) -> Value {
        // Values nested too deep for the parser are left out.
        let mut values: Value = serde_json::from_str(raw.get()).unwrap_or_else(|_| Value::Object(Map::new()));
        self.plain(&mut values);
        values
    }

    /// Helm's manifest with its Secrets masked. JSON is YAML, so a masked document reads as before; all others stay as they are.
    fn manifest(&self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        for chunk in chunks(text) {
            let (separator, content) = match chunk.strip_prefix("---") {
                Some(rest) => {
                    let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
                    let (line, content) = rest.split_at(end);
                    let plain = line.trim().is_empty() || line.trim_start().starts_with('#');
                    // A separator with text behind it is an error of the manifest, whatever the text.
                    (if plain { "---\n" } else { "---unreadable\n" }, content)
                }
                None => ("", chunk),
            };
            masked.push_str(separator);
            self.documents(content, &mut masked);
        }
        masked
    }

    fn documents(&self, content: &str, into: &mut String) {
        let mut documents = yaml::documents(content);
        let secret = documents
            .iter_mut()
            .flatten()
            .fold(false, |any, document| self.manifest_object(&mut document.value, None) | any);
        let unread = documents.is_empty()
            || documents.iter().any(Result::is_err)
            || content.lines().any(|line| line.starts_with("..."));
        if !secret && !unread {
            into.push_str(content);
            return;
        }
        if documents.is_empty() {
            // Comments alone: a template that was commented out, perhaps with a password in it.
            content.lines().filter(|line| line.starts_with(SOURCE)).for_each(|line| push_line(into, line));
        }
        for (index, document) in documents.iter().enumerate() {
            if index > 0 {
                into.push_str("---\n");
            }
            let (source, text) = match document {
                Ok(document) => (&document.source, document.value.to_string()),
                Err(error) => (&error.source, "{unreadable: [".to_owned()),
            };
            if let Some(source) = source {
                push_line(into, &format!("{SOURCE}{source}"));
            }
            push_line(into, &text);
        }
    }

    /// Masks the Secrets and what else is sensitive in an object of a manifest, also in lists; says whether there were any. Items of a typed list may leave their
    /// kind to it (`inherited`).
    fn manifest_object(&self, object: &mut Value, inherited: Option<&str>) -> bool {
        let kind = object.get("kind").and_then(Value::as_str).or(inherited).unwrap_or_default().to_owned();
        if let Some(items) = object.get_mut("items").and_then(Value::as_array_mut) {
            let of = kind.strip_suffix("List").filter(|of| !of.is_empty());
            return items.iter_mut().fold(false, |any, item| self.manifest_object(item, of) | any);
        }
        if kind == "Secret" {
            self.secret(object);
        }
        let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or("v1").to_owned();
        self.marked(&Gvk::new(&api_version, &kind), object) || kind == "Secret"
    }
}

/// Fields of a JSON object, read without building what is in them: depth is no matter.
type Fields = Option<BTreeMap<String, Box<RawValue>>>;

/// Stand-ins for what does not decode: each fails at the step at which the original did.
const NOT_BASE64: &str = "%";
const NOT_GZIP: &[u8] = b"\x1f\x8b\x08 unreadable";
/// In place of a value of the wrong type: wrong as well, whatever is wanted.
const ODD: Value = Value::Bool(false);
const SOURCE: &str = "# Source: ";

fn is_record_name(object: &Value) -> bool {
    object.pointer("/metadata/name").and_then(Value::as_str).is_some_and(|name| name.starts_with(RECORD_NAME))
}

/// As Go decodes it.
fn decoded(text: &str) -> Option<Vec<u8>> {
    payload::from_base64(text.as_bytes()).ok()
}

fn packed(json: &str) -> String {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    // Writing into memory cannot fail; if it ever did, the result would not decode, and say so.
    let bytes = gz.write_all(json.as_bytes()).and_then(|()| gz.finish()).unwrap_or_default();
    STANDARD.encode(bytes)
}

/// A value that is no object and no list, else `ODD`.
fn scalar(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).ok().filter(|value: &Value| !value.is_object() && !value.is_array()).unwrap_or(ODD)
}

/// An object with the fields that `keep` gives a value for; names are matched in any case, as Go does.
fn object(raw: &RawValue, keep: impl Fn(&str, &RawValue) -> Option<Value>) -> Value {
    match serde_json::from_str::<Fields>(raw.get()) {
        Ok(Some(fields)) => fields
            .into_iter()
            .filter_map(|(key, raw)| Some((key.clone(), keep(&key.to_ascii_lowercase(), &raw)?)))
            .collect(),
        Ok(None) => Value::Null,
        Err(_) => ODD,
    }
}

/// A list of objects with the named fields alone.
fn list(raw: &RawValue, kept: &[&str]) -> Value {
    match serde_json::from_str::<Option<Vec<Box<RawValue>>>>(raw.get()) {
        Ok(Some(items)) => {
            let keep =
                |key: &str, raw: &RawValue| kept.contains(&key).then(|| serde_json::from_str(raw.get()).unwrap_or(ODD));
            items.iter().map(|item| object(item, keep)).collect()
        }
        Ok(None) => Value::Null,
        Err(_) => ODD,
    }
}

/// The text cut before each line that begins with `---`; put together again it is the text.
fn chunks(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.match_indices("\n---").next().map_or(rest.len(), |(at, _)| at + 1);
        let (chunk, after) = rest.split_at(end);
        found.push(chunk);
        rest = after;
    }
    found
}

fn push_line(into: &mut String, line: &str) {
    into.push_str(line);
    into.push('\n');
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::drift::rules::Kinds;
    use serde_json::json;

    fn masker() -> Masker {
        Masker::new(Vec::new()).unwrap()
    }

    fn secrets() -> Place {
        Place { base: "/api/v1".into(), plural: "secrets".into(), namespace: Some("prod".into()), name: None }
    }

    fn text(base64: &Value) -> String {
        String::from_utf8(decoded(base64.as_str().unwrap()).unwrap()).unwrap()
    }

    /// A record as Helm stores it in a Secret.
    fn wrapped(release: &Value) -> Value {
        json!({
            "metadata": {"name": "sh.helm.release.v1.x.v1"}, "type": "helm.sh/release.v1",
            "data": {"release": STANDARD.encode(packed(&release.to_string()))},
        })
    }

    fn unwrapped(secret: &Value) -> Value {
        let bytes = decoded(&text(&secret["data"]["release"])).unwrap();
        let mut json = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut json).unwrap();
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn what_the_configuration_calls_sensitive_is_masked_alike_in_cluster_and_manifest() {
        let sensitive = |path: &str, kind: &str| Sensitive {
            path: path.parse().unwrap(),
            kinds: Kinds::new([kind.to_owned()]),
            names: vec!["login*".to_owned()],
        };
        let masker = Masker::new(vec![
            sensitive(".data.password", "ConfigMap"),
            sensitive(".spec.containers[name=\"web\"].env[*].value", "Widget.example.com"),
        ])
        .unwrap();
        let place = |base: &str, plural: &str| Place {
            base: base.into(),
            plural: plural.into(),
            namespace: Some("prod".into()),
            name: None,
        };
        let applied = json!({"data": {"password": "hunter2"}}).to_string();
        let mut maps = json!({"kind": "ConfigMapList", "apiVersion": "v1", "items": [
            {"metadata": {"name": "login", "annotations": {LAST_APPLIED: applied}}, "data": {"password": "hunter2", "user": "ada"}},
            {"metadata": {"name": "other"}, "data": {"password": "hunter2"}},
        ]});
        masker.answer(&place("/api/v1", "configmaps"), &mut maps);
        let token = maps["items"][0]["data"]["password"].as_str().unwrap().to_owned();
        assert!(token.starts_with("masked-"), "{maps}");
        assert_eq!(maps["items"][0]["data"]["user"], "ada");
        assert_eq!(maps["items"][1]["data"]["password"], "hunter2");
        assert!(!maps["items"][0]["metadata"].to_string().contains("hunter2"), "{maps}");
        let env = json!([{"name": "A", "value": "hunter2"}]);
        let mut widget = json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "login-x"},
            "spec": {"containers": [{"name": "web", "env": env}, {"name": "tap", "env": env}]}});
        masker.answer(&place("/apis/example.com/v1", "widgets"), &mut widget);
        assert_eq!(widget["spec"]["containers"][0]["env"][0]["value"], token.as_str());
        assert_eq!(widget["spec"]["containers"][1]["env"][0]["value"], "hunter2");
        let manifest = "---\n# Source: x/templates/a.yaml\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: login}\ndata: {password: hunter2, user: ada}\n";
        let masked = masker.manifest(manifest);
        assert!(masked.contains(&token) && masked.contains("ada") && !masked.contains("hunter2"), "{masked}");
    }

    #[test]
    fn equal_values_have_equal_tokens_whatever_holds_them() {
        let masker = masker();
        let applied =
            json!({"kind": "Secret", "stringData": {"a": "hunter2"}, "data": {"b": "aHVudGVyMg=="}}).to_string();
        let mut list = json!({"kind": "SecretList", "items": [
            {"data": {"a": "aHVudGVyMg==", "b": "aHVudGVyMg==\n", "c": "b3RoZXI=", "empty": "", "none": null}, "metadata": {"name": "x",
              "annotations": {LAST_APPLIED: applied, "meta.helm.sh/release-name": "x", "openshift.io/token-secret.value": "eyJ"}}},
        ]});
        masker.answer(&secrets(), &mut list);
        let secret = &list["items"][0];
        let token = text(&secret["data"]["a"]);
        assert!(token.starts_with("masked-") && token.len() == 39, "{token}");
        assert_eq!(text(&secret["data"]["b"]), token);
        assert_ne!(text(&secret["data"]["c"]), token);
        assert_eq!((&secret["data"]["empty"], &secret["data"]["none"]), (&json!(""), &Value::Null));
        let applied: Value =
            serde_json::from_str(secret["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap()).unwrap();
        assert_eq!(applied["stringData"]["a"], token.as_str());
        assert_eq!(text(&applied["data"]["b"]), token);
        assert_eq!(secret["metadata"]["annotations"]["meta.helm.sh/release-name"], "x");
        let all = list.to_string();
        assert!(!all.contains("hunter2") && !all.contains("aHVudGVy") && !all.contains("eyJ"), "{all}");
        assert_ne!(Masker::new(Vec::new()).unwrap().token(b"hunter2"), token, "each capture has its own key");
    }

    #[test]
    fn a_record_keeps_what_the_check_reads_and_nothing_secret() {
        let manifest = [
            "---\n# Source: x/templates/secret.yaml\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
            "stringData: {a: hunter2}\n",
            "---\n# Source: x/templates/cm.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c # kept\n",
            "data:\n  a: |+\n    x\n\n",
            "---\n# Source: x/templates/off.yaml\n# password: hunter2\n",
            "---\napiVersion: v1\nkind: List\nitems:\n",
            "- {apiVersion: v1, kind: Secret, metadata: {name: l}, data: {b: aHVudGVyMg==}}\n",
        ]
        .concat();
        let release = json!({
            "name": "x", "version": 3, "namespace": "prod", "apply_method": "ssa", "unknown": "hunter2",
            "info": {"status": "deployed", "description": "Install complete", "notes": "hunter2", "last_deployed": "2026-11-30T10:00:00Z", "deleted": ""},
            "chart": {"metadata": {"name": "x", "version": "1"}, "lock": null, "values": {"p": "hunter2", "n": 5, "l": [true, null]}, "schema": "hunter2",
                "templates": [{"name": "templates/a.yaml", "data": "hunter2"}], "files": [{"name": "crds/c.yaml", "data": "hunter2"}]},
            "config": {"password": "hunter2"}, "manifest": manifest,
            "hooks": [{"name": "h", "path": "x/charts/y/templates/h.yaml", "manifest": "hunter2", "events": ["test"], "weight": 1}],
        });
        let masker = masker();
        let mut secret = wrapped(&release);
        masker.answer(&secrets(), &mut secret);
        let masked = unwrapped(&secret);
        assert!(!masked.to_string().contains("hunter2") && !masked.to_string().contains("aHVudGVy"), "{masked}");
        let token = masker.token(b"hunter2");
        assert_eq!(masked["config"], json!({"password": token}));
        assert_eq!(
            masked["chart"]["values"],
            json!({"p": token, "n": masker.token(b"5"), "l": [masker.token(b"true"), null]})
        );
        assert_eq!(masked["chart"]["files"], json!([{"name": "crds/c.yaml"}]));
        assert_eq!(
            masked["hooks"],
            json!([{"name": "h", "path": "x/charts/y/templates/h.yaml", "events": ["test"], "weight": 1}])
        );
        assert_eq!(
            masked["info"],
            json!({"status": "deployed", "description": "Install complete", "last_deployed": "2026-11-30T10:00:00Z", "deleted": ""})
        );
        for key in ["name", "version", "namespace", "apply_method"] {
            assert_eq!(masked[key], release[key]);
        }
        let stored = masked["manifest"].as_str().unwrap();
        assert!(stored.contains("  name: c # kept\ndata:\n  a: |+\n    x\n\n---\n"), "{stored}");
        let before = yaml::documents(&manifest);
        let after = yaml::documents(stored);
        assert_eq!(after.len(), before.len());
        for (before, after) in before.iter().zip(&after) {
            let (before, after) = (before.as_ref().unwrap(), after.as_ref().unwrap());
            assert_eq!((&after.source, &after.value["metadata"]), (&before.source, &before.value["metadata"]));
        }
        assert_eq!(after[0].as_ref().unwrap().value["stringData"]["a"], token.as_str());
        assert_eq!(text(&after[2].as_ref().unwrap().value["items"][0]["data"]["b"]), token);
    }

    #[test]
    fn a_record_in_a_config_map_is_masked_and_other_config_maps_are_not() {
        let place = Place { plural: "configmaps".into(), ..secrets() };
        let masker = masker();
        let release = packed(&json!({"name": "x", "config": {"p": "hunter2"}}).to_string());
        let mut record = json!({"metadata": {"name": "sh.helm.release.v1.x.v1"}, "data": {"release": release}});
        let mut other = json!({"metadata": {"name": "x"}, "data": {"release": "plain"}});
        masker.answer(&place, &mut record);
        masker.answer(&place, &mut other);
        assert_eq!(other["data"]["release"], "plain");
        let stored = decoded(record["data"]["release"].as_str().unwrap()).unwrap();
        let mut json = String::new();
        flate2::read::GzDecoder::new(stored.as_slice()).read_to_string(&mut json).unwrap();
        assert!(json.contains("masked-") && !json.contains("hunter2"), "{json}");
    }

    #[test]
    fn what_does_not_decode_fails_at_the_same_step_after() {
        let masker = masker();
        let gz = |bytes: &[u8]| {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(bytes).unwrap();
            gz.finish().unwrap()
        };
        assert_eq!(masker.payload(""), "");
        assert_eq!(masker.payload("hunter2 is no base64"), NOT_BASE64);
        let cut = gz(b"{\"name\":\"hunter2 and much more text that does not end\"}");
        assert_eq!(masker.payload(&STANDARD.encode(&cut[..20])), STANDARD.encode(NOT_GZIP));
        for (json, kept) in [
            ("{\"name\": hunter2", "{"),
            ("null", "null"),
            ("[\"hunter2\"]", "{"),
            ("{\"name\":[1]}", "{\"name\":false}"),
        ] {
            assert_eq!(masker.release(json), kept);
            assert_eq!(masker.payload(&STANDARD.encode(gz(json.as_bytes()))), packed(kept));
            assert_eq!(masker.payload(&STANDARD.encode(json)), packed(kept));
        }
        let deep = format!("{{\"config\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(masker.release(&deep), "{\"config\":{}}");
    }

    #[test]
    fn unreadable_documents_stay_unreadable_and_say_nothing() {
        let masked = masker().manifest("# Source: a/templates/x.yaml\nkind: Secret\nstringData: {a: hunter2\n---oops hunter2\nkind: A\n...\nkind: Secret\nstringData: {b: hunter2}\n");
        assert!(!masked.contains("hunter2"), "{masked}");
        let after = yaml::documents(&masked);
        assert!(after[0].is_err() && after[0].as_ref().unwrap_err().source.as_deref() == Some("a/templates/x.yaml"));
        assert!(after.iter().flatten().any(|document| document.value == json!({"kind": "A"})), "{masked}");
    }

    #[test]
    fn chunks_put_together_are_the_text() {
        for text in ["", "---\na\n---\nb", "a\n----\n--- # c\r\nb\n---", "\n---", "a\n\n"] {
            assert_eq!(chunks(text).concat(), text);
        }
        assert_eq!(chunks("a\n---\nb\n---\n"), ["a\n", "---\nb\n", "---\n"]);
    }
}
