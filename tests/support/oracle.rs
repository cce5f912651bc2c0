//! What the check must say of a release after one of its objects was changed: worked out from the raw object before and after, the
//! manifest as kubectl reads it, and the keys of `types.rs`. The rules are design §2 (change, path), §5.3 and §5.4, told anew and as
//! plainly as can be; nothing here calls the code that is judged.

use super::charts::Thing;
use super::types::{Shape, Step, Types, text};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const LAST_APPLIED: &str = r#".metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#;

/// What is left of the author in managedFields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traces {
    Kept,
    /// The author's entry was taken out.
    Trimmed,
    /// All entries were.
    Wiped,
}

/// Who changed the object.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    /// Field manager.
    pub(crate) name: &'static str,
    /// A name that only software bears: no person's tool, no client library's own name.
    pub(crate) is_software: bool,
    /// The API server forgets who scaled to zero (kubernetes/kubernetes `ScaleHandler` drops the zero from managedFields).
    pub(crate) leaves_no_trace: bool,
    pub(crate) traces: Traces,
}

/// One finding that must be reported.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expected {
    pub(crate) change: &'static str,
    pub(crate) path: Option<String>,
    pub(crate) desired: Value,
    pub(crate) live: Value,
    pub(crate) manager: Option<&'static str>,
    pub(crate) verdict: &'static str,
    pub(crate) masked: bool,
}

/// What the API server and the controllers write for themselves, taken out of an object.
pub(crate) fn pruned(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in [
            "managedFields",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "uid",
            "selfLink",
            "deletionTimestamp",
        ] {
            metadata.remove(key);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("deployment.kubernetes.io/revision");
            annotations.remove("deprecated.daemonset.template.generation");
        }
    }
    object
}

/// The findings about one object.
///
/// Shape: `before` and `after` as read from the API, `before` in sync with the manifest; `after` is `None` when it was deleted.
pub(crate) fn expected(
    types: &Types,
    thing: &Thing,
    before: &Value,
    after: Option<&Value>,
    author: &Author,
) -> Vec<Expected> {
    let mut oracle = Oracle { types, thing, author, found: Vec::new() };
    match after {
        None => oracle.found.push(Expected {
            change: "missing",
            path: None,
            desired: Value::Null,
            live: Value::Null,
            manager: None,
            verdict: "drift",
            masked: thing.kind == "Secret",
        }),
        Some(after) => {
            let (before, after) = (pruned(before), pruned(after));
            oracle.walk(&mut Vec::new(), Some(&pruned(&thing.desired)), Some(&before), Some(&after));
        }
    }
    oracle.found
}

struct Oracle<'a> {
    types: &'a Types,
    thing: &'a Thing,
    author: &'a Author,
    found: Vec<Expected>,
}

fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

impl Oracle<'_> {
    fn walk(&mut self, path: &mut Vec<Step>, desired: Option<&Value>, before: Option<&Value>, after: Option<&Value>) {
        let (desired, before, after) = (present(desired), present(before), present(after));
        if before == after {
            return;
        }
        match (desired, after) {
            // Somebody took away what only live had.
            (None, None) => {}
            (None, Some(after)) => {
                if !self.is_filled_in(path, before, after) && !before.is_some_and(|before| is_part_of(after, before)) {
                    self.say("added", path, None, Some(after));
                }
            }
            (Some(desired), None) => self.say("removed", path, Some(desired), None),
            (Some(desired), Some(after)) => self.both(path, desired, before, after),
        }
    }

    fn both(&mut self, path: &mut Vec<Step>, desired: &Value, before: Option<&Value>, after: &Value) {
        match (desired, after) {
            (Value::Object(d), Value::Object(a)) if self.types.shape(self.thing, path, after) == Shape::Map => {
                let none = Map::new();
                let b = before.and_then(Value::as_object).unwrap_or(&none);
                let mut keys: Vec<&String> = d.keys().chain(b.keys()).chain(a.keys()).collect();
                keys.sort();
                keys.dedup();
                for key in keys {
                    path.push(Step::Field(key.clone()));
                    self.walk(path, d.get(key), b.get(key), a.get(key));
                    path.pop();
                }
            }
            (Value::Array(d), Value::Array(a)) => {
                let none = Vec::new();
                let b = before.and_then(Value::as_array).unwrap_or(&none);
                match self.types.shape(self.thing, path, after) {
                    Shape::Keyed(keys) => self.keyed(path, &keys, (desired, d), b, (after, a)),
                    Shape::Set => self.set(path, d, b, a),
                    Shape::Map | Shape::Atomic => self.atomic(path, desired, before, after),
                }
            }
            _ => self.atomic(path, desired, before, after),
        }
    }

    /// One value: any difference is a difference of the whole. What only live had and somebody took away is none; what only live has
    /// and nobody owns was set at admission, if it was not somebody who wiped the traces.
    fn atomic(&mut self, path: &[Step], desired: &Value, before: Option<&Value>, after: &Value) {
        if before.is_some_and(|before| only_extras_differ(desired, before, after, false)) {
            return;
        }
        let is_extra = before.is_some_and(|before| only_extras_differ(desired, before, after, true));
        match self.author.traces {
            Traces::Trimmed if is_extra => {}
            Traces::Wiped if is_extra => self.say_as("unverified", "changed", path, Some(desired), Some(after)),
            Traces::Kept | Traces::Trimmed | Traces::Wiped => self.say("changed", path, Some(desired), Some(after)),
        }
    }

    fn set(&mut self, path: &mut Vec<Step>, desired: &[Value], before: &[Value], after: &[Value]) {
        for member in desired.iter().filter(|member| !after.contains(member)) {
            path.push(Step::Member(member.clone()));
            self.say("removed", path, Some(member), None);
            path.pop();
        }
        for member in after.iter().filter(|member| !desired.contains(member) && !before.contains(member)) {
            path.push(Step::Member(member.clone()));
            self.say("added", path, None, Some(member));
            path.pop();
        }
    }

    fn keyed(
        &mut self,
        path: &mut Vec<Step>,
        keys: &[String],
        (desired_list, desired): (&Value, &[Value]),
        before: &[Value],
        (after_list, after): (&Value, &[Value]),
    ) {
        let index = |list: &'_ [Value]| -> BTreeMap<String, (usize, Step, Value)> {
            let keyed = list.iter().enumerate().map(|(place, item)| {
                let keys = keys.iter().filter_map(|key| {
                    let value = item.get(key).cloned().or_else(|| self.types.key_default(self.thing, path, key))?;
                    Some((key.clone(), value))
                });
                let step = Step::Item(keys.collect());
                (text(std::slice::from_ref(&step)), (place, step, item.clone()))
            });
            keyed.collect()
        };
        let (d, b, a) = (index(desired), index(before), index(after));
        let name = |item: &Value| item.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let only = |list: &[Value], wanted: &str| list.iter().filter(|item| name(item) == wanted).count() == 1;
        let mut joined: Vec<String> = Vec::new();
        let mut order: Vec<(usize, usize)> = Vec::new();
        for (key, (place, step, item)) in &d {
            let mut now = a.get(key);
            if now.is_none() {
                // Another key under the same name, which no other item has: one item whose key was changed.
                let wanted = name(item);
                let other = a.iter().find(|(other, (_, _, item))| {
                    !d.contains_key(*other) && !joined.contains(other) && !wanted.is_empty() && name(item) == wanted
                });
                if let Some((other, found)) = other.filter(|_| only(desired, &wanted) && only(after, &wanted)) {
                    joined.push(other.clone());
                    now = Some(found);
                }
            }
            order.extend(now.map(|(now, _, _)| (*place, *now)));
            path.push(step.clone());
            self.walk(path, Some(item), b.get(key).map(|(_, _, item)| item), now.map(|(_, _, item)| item));
            path.pop();
        }
        for (key, (_, step, item)) in a.iter().filter(|(key, _)| !d.contains_key(*key) && !joined.contains(key)) {
            path.push(step.clone());
            self.walk(path, None, b.get(key).map(|(_, _, item)| item), Some(item));
            path.pop();
        }
        order.sort_unstable();
        let moved = order.windows(2).any(|pair| pair[0].1 > pair[1].1);
        let refers =
            |list: &[Value]| list.iter().any(|item| item["value"].as_str().is_some_and(|text| text.contains("$(")));
        let matters = match path.last() {
            Some(Step::Field(field)) if field == "initContainers" => true,
            Some(Step::Field(field)) if field == "env" => refers(desired),
            _ => false,
        };
        if moved && matters {
            self.say("changed", path, Some(desired_list), Some(after_list));
        }
    }

    /// What the API server fills in beside a change, by hand: the field and its value there.
    fn is_filled_in(&self, path: &[Step], before: Option<&Value>, value: &Value) -> bool {
        let Some(Step::Field(field)) = path.last() else { return false };
        match field.as_str() {
            "sessionAffinityConfig" => *value == json!({"clientIP": {"timeoutSeconds": 10800}}),
            "externalTrafficPolicy" => *value == json!("Cluster"),
            "allocateLoadBalancerNodePorts" => *value == json!(true),
            "ipFamilyPolicy" => *value == json!("SingleStack"),
            "healthCheckNodePort" | "clusterIP" | "clusterIPs" | "ipFamilies" => true,
            // The old name of serviceAccountName, which the server keeps equal.
            "serviceAccount" => true,
            // Allocated after the owners were worked out, so nobody owns it; one that was there and is another now was chosen.
            "nodePort" => before.is_none(),
            "rollingUpdate" => {
                *value == json!({"maxSurge": "25%", "maxUnavailable": "25%"})
                    || *value == json!({"partition": 0})
                    || *value == json!({"maxSurge": 0, "maxUnavailable": 1})
            }
            _ => false,
        }
    }

    fn say(&mut self, change: &'static str, path: &[Step], desired: Option<&Value>, live: Option<&Value>) {
        let at = text(path);
        // Scaling through the scale subresource can leave no owner, so replicas are never put down to admission.
        let is_scaled = at == ".spec.replicas" && live != Some(&json!(1));
        let verdict = match self.author.traces {
            Traces::Wiped if change == "added" => "unverified",
            Traces::Trimmed if change == "added" && !is_scaled => "expected",
            _ if change != "removed" && self.is_expected(&at) => "expected",
            _ => "drift",
        };
        self.say_as(verdict, change, path, desired, live);
    }

    fn say_as(
        &mut self,
        verdict: &'static str,
        change: &'static str,
        path: &[Step],
        desired: Option<&Value>,
        live: Option<&Value>,
    ) {
        let at = text(path);
        let of_data = at == ".data" || at.starts_with(".data.") || at.starts_with(".data[");
        // kubectl's copy of what it applied has the data in it.
        let masked = self.thing.kind == "Secret" && (of_data || at == LAST_APPLIED);
        let shown = |value: Option<&Value>| if masked { Value::Null } else { value.cloned().unwrap_or_default() };
        let nobody = change == "removed" || self.author.leaves_no_trace || self.author.traces != Traces::Kept;
        self.found.push(Expected {
            change,
            desired: shown(desired),
            live: shown(live),
            path: Some(at),
            manager: (!nobody).then_some(self.author.name),
            verdict,
            masked,
        });
    }

    /// Writers that may write there (design §7.2), as far as mutations stumble on them.
    fn is_expected(&self, path: &str) -> bool {
        let bundle = match self.thing.kind.as_str() {
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                path.starts_with(".webhooks[") && path.ends_with("].clientConfig.caBundle")
            }
            "CustomResourceDefinition" => path == ".spec.conversion.webhook.clientConfig.caBundle",
            "APIService" => path == ".spec.caBundle",
            _ => false,
        };
        let empty = |key: &str| {
            let data = self.thing.desired.get(key).and_then(Value::as_object);
            data.is_none_or(|data| data.values().all(|value| value.as_str().is_none_or(str::is_empty)))
        };
        let filled = match self.thing.kind.as_str() {
            "Secret" | "ConfigMap" => {
                (path.starts_with(".data") || path.starts_with(".binaryData")) && empty("data") && empty("binaryData")
            }
            _ => false,
        };
        let is_told = self.author.traces == Traces::Kept;
        path == LAST_APPLIED || is_told && self.author.is_software && (bundle || filled)
    }
}

/// Whether everything in `part` is in `whole` too: only something went.
fn is_part_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|whole| is_part_of(value, whole)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_part_of(part, whole))
        }
        _ => part == whole,
    }
}

/// Whether before and after differ in what desired does not have alone: parts that went and, with `more`, parts that came or changed.
fn only_extras_differ(desired: &Value, before: &Value, after: &Value, more: bool) -> bool {
    match (before, after) {
        _ if before == after => true,
        (Value::Object(before), Value::Object(after)) => {
            let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
            keys.dedup();
            keys.into_iter().all(|key| {
                match (present(desired.get(key)), present(before.get(key)), present(after.get(key))) {
                    (None, _, None) => true,
                    (None, Some(before), Some(after)) => more || is_part_of(after, before),
                    (None, None, Some(_)) => more,
                    (Some(desired), Some(before), Some(after)) => only_extras_differ(desired, before, after, more),
                    (Some(_), None, None) => true,
                    (Some(_), _, _) => false,
                }
            })
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).enumerate().all(|(place, (before, after))| {
                    desired.get(place).is_some_and(|desired| only_extras_differ(desired, before, after, more))
                })
        }
        _ => false,
    }
}

/// Equal, a number whatever the form it is written in.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}
