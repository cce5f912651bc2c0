//! What a chart rendered, to be compared with what is stored: manifest and hooks in YAML's normal form. Knows nothing of who rendered it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::yaml;

/// Manifest and hooks of a release: of a record, or as `helm upgrade --dry-run -o json` prints them.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Rendering {
    /// Name, version and application's version.
    chart: [String; 3],
    manifest: String,
    hooks: Vec<Hook>,
}

#[derive(Clone, Debug, PartialEq)]
struct Hook {
    kind: String,
    name: String,
    path: String,
    events: Vec<String>,
    /// Weight and delete policies.
    rest: [Value; 2],
    manifest: String,
}

/// What one thing is called and what it is: `Deployment/web`, its values.
type Parts = BTreeMap<String, Vec<Value>>;

impl Rendering {
    /// Of a release in JSON, as Helm stores and prints it.
    pub(crate) fn of(release: &Value) -> Self {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let hooks = release.get("hooks").and_then(Value::as_array).into_iter().flatten().map(|hook| {
            let events = hook.get("events").and_then(Value::as_array).into_iter().flatten();
            let mut events: Vec<String> = events.filter_map(Value::as_str).map(str::to_owned).collect();
            events.sort();
            let other = |key: &str, zero: Value| match hook.get(key) {
                None | Some(Value::Null) => zero,
                Some(value) => value.clone(),
            };
            Hook {
                kind: text(hook, "kind"),
                name: text(hook, "name"),
                path: text(hook, "path"),
                events,
                rest: [other("weight", 0.into()), other("delete_policies", Value::Array(Vec::new()))],
                manifest: text(hook, "manifest"),
            }
        });
        let metadata = release.pointer("/chart/metadata").unwrap_or(&Value::Null);
        let chart = ["name", "version", "appVersion"].map(|key| text(metadata, key));
        Self { chart, manifest: text(release, "manifest"), hooks: hooks.collect() }
    }

    /// `pre-upgrade Job/migrate`, in the record's order; tests are left out.
    pub(crate) fn hooks(&self) -> Vec<String> {
        let hooks = self.hooks.iter().map(|hook| {
            let events: Vec<&str> =
                hook.events.iter().map(String::as_str).filter(|event| !event.starts_with("test")).collect();
            (!events.is_empty()).then(|| format!("{} {}/{}", events.join(","), hook.kind, hook.name))
        });
        hooks.flatten().collect()
    }

    /// Names of the objects and hooks in which two renderings differ, in order, after the other chart; empty: they mean the same.
    ///
    /// The order of documents and of keys, comments and spelling mean nothing. What cannot be read must be the same text.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let (ours, theirs) = (self.parts(), other.parts());
        let mut names: Vec<String> = ours
            .iter()
            .filter(|(name, values)| theirs.get(*name) != Some(values))
            .map(|(name, _)| name.clone())
            .collect();
        names.extend(theirs.keys().filter(|name| !ours.contains_key(*name)).cloned());
        names.sort();
        if self.chart != other.chart {
            let [name, version, app] = &other.chart;
            let app = if app.is_empty() { String::new() } else { format!(" with app version {app}") };
            names.insert(0, format!("chart {name}-{version}{app}"));
        }
        names
    }

    fn parts(&self) -> Parts {
        let mut parts = Parts::new();
        documents(&mut parts, "", &self.manifest);
        for hook in &self.hooks {
            let prefix = format!("hook {}/{}", hook.kind, hook.name);
            let about = serde_json::json!([hook.path, hook.events, hook.rest[0], hook.rest[1]]);
            parts.entry(prefix.clone()).or_default().push(about);
            documents(&mut parts, &format!("{prefix}: "), &hook.manifest);
        }
        parts
    }

    /// Apart from hooks.
    pub(crate) fn same_manifest(&self, other: &Self) -> bool {
        let (mut ours, mut theirs) = (Parts::new(), Parts::new());
        documents(&mut ours, "", &self.manifest);
        documents(&mut theirs, "", &other.manifest);
        ours == theirs
    }
}

fn documents(parts: &mut Parts, prefix: &str, text: &str) {
    for (index, document) in yaml::documents(text).into_iter().enumerate() {
        let (name, value) = match document {
            Ok(document) => {
                let at =
                    |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned();
                let namespace = document.value.pointer("/metadata/namespace").and_then(Value::as_str);
                let within = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
                (format!("{}/{}{within}", at("/kind"), at("/metadata/name")), document.value)
            }
            // Helm would stop here; the text around it says whether it is the same.
            Err(_) => (format!("document {}", index + 1), Value::from(text)),
        };
        parts.entry(format!("{prefix}{name}")).or_default().push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendering(manifest: &str, hook: &str) -> Rendering {
        Rendering::of(&json!({"manifest": manifest, "hooks": [
            {"kind": "Job", "name": "migrate", "path": "a/templates/j.yaml", "manifest": hook, "events": ["pre-upgrade", "pre-install"], "weight": 1},
            {"kind": "Pod", "name": "try", "manifest": "", "events": ["test"]},
        ]}))
    }

    const A: &str = "kind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1', y: 'no'}\n";
    const B: &str = "kind: ConfigMap\nmetadata: {name: b}\n";

    #[test]
    fn order_comments_and_spelling_mean_nothing() {
        let one = rendering(&format!("---\n# Source: x\n{A}---\n{B}"), "kind: Job\n");
        let two = rendering(
            &format!("{B}---\ndata:\n  y: \"no\"\n  x: \"1\" # one\nmetadata:\n  name: a\nkind: ConfigMap\n"),
            "# again\nkind: Job\n",
        );
        assert_eq!(one.differences(&two), [""; 0]);
        assert!(one.same_manifest(&two));
    }

    #[test]
    fn what_differs_is_named() {
        let one = rendering(&format!("{A}---\n{B}"), "kind: Job\n");
        assert_eq!(one.differences(&rendering(A, "kind: Job\n")), ["ConfigMap/b"]);
        assert_eq!(rendering(A, "").differences(&rendering(&A.replace("'1'", "'2'"), "")), ["ConfigMap/a"]);
        assert_eq!(
            rendering(A, "kind: Job\n").differences(&rendering(A, "kind: CronJob\n")),
            ["hook Job/migrate: CronJob/?", "hook Job/migrate: Job/?"]
        );
        let mut weighed = rendering(A, "");
        weighed.hooks[0].rest[0] = 5.into();
        assert_eq!(rendering(A, "").differences(&weighed), ["hook Job/migrate"]);
        assert_eq!(one.hooks(), ["pre-install,pre-upgrade Job/migrate"]);
        let chart = |version: &str| {
            Rendering::of(&json!({"manifest": A, "chart": {"metadata": {"name": "web", "version": version}}}))
        };
        assert_eq!(chart("1.0.0").differences(&chart("1.0.1")), ["chart web-1.0.1"]);
        assert_eq!(chart("1.0.0").differences(&chart("1.0.0")), [""; 0]);
    }
}
