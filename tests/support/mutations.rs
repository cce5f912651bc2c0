//! Random changes to the objects of a release, made through the API as a person, a tool or a controller would: what is changed, and
//! by which kind of request. Knows nothing of what the check must say of them.

use super::charts::Thing;
use super::oracle::{Author, Traces};
use super::types::{Shape, Step, Types};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

/// SplitMix64: small, and the same everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64, name: &str) -> Dice {
        let mut dice = Dice(seed);
        for byte in name.bytes() {
            dice.0 ^= u64::from(byte);
            dice.next();
        }
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        if list.is_empty() { None } else { list.get(self.below(list.len())) }
    }
}

/// One change of an object's JSON, at a place whose parent exists. Tokens are those of an RFC 6901 pointer, not escaped.
#[derive(Clone, Debug, PartialEq)]
enum Edit {
    /// Sets a key of a map, or an item of a list.
    Put(Vec<String>, Value),
    /// Puts an item into a list, at its place.
    Insert(Vec<String>, Value),
    Remove(Vec<String>),
}

/// How it gets to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Edit,
    Patch,
    Replace,
    Label,
    Annotate,
    Set,
    Scale,
    /// `kubectl apply`: the change, and kubectl's own annotation.
    Apply,
    /// `apply --server-side --force-conflicts` by another manager.
    Pipeline,
    Operator,
    /// A script that did not choose a name.
    Script,
    /// Under Helm's own name, long after Helm wrote the release.
    Forged,
    Delete,
}

impl Verb {
    pub(crate) fn manager(self) -> &'static str {
        match self {
            Verb::Edit => "kubectl-edit",
            Verb::Patch => "kubectl-patch",
            Verb::Replace => "kubectl-replace",
            Verb::Label => "kubectl-label",
            Verb::Annotate => "kubectl-annotate",
            Verb::Set => "kubectl-set",
            Verb::Scale => "kubectl",
            Verb::Apply => "kubectl-client-side-apply",
            Verb::Pipeline => "pipeline",
            Verb::Operator => "some-operator",
            Verb::Script => "python-requests",
            Verb::Forged => "helm",
            Verb::Delete => "kubectl-create",
        }
    }
}

/// A request to the API server.
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: Value,
}

pub(crate) struct Mutation {
    pub(crate) verb: Verb,
    pub(crate) author: Author,
    pub(crate) request: Request,
    /// In words, for whoever reads of a failure.
    pub(crate) told: String,
}

/// What is never touched: what the server or its controllers write back, and what would stand in the way of the other mutations.
fn is_off_limits(thing: &Thing, object: &Value, tokens: &[String]) -> bool {
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let webhook = thing.kind.ends_with("WebhookConfiguration");
    match tokens.as_slice() {
        ["apiVersion" | "kind" | "status" | "immutable", ..] => true,
        ["metadata", key, ..] if !matches!(*key, "labels" | "annotations" | "finalizers") => true,
        ["metadata", "annotations", key, ..] => matches!(
            *key,
            "deployment.kubernetes.io/revision"
                | "deprecated.daemonset.template.generation"
                | "kubectl.kubernetes.io/last-applied-configuration"
        ),
        // A webhook that selects more than it should is in everybody's way.
        ["webhooks", _, "namespaceSelector" | "objectSelector", ..] if webhook => true,
        ["rules", ..] if object.get("aggregationRule").is_some() => true,
        ["spec", ..] if thing.kind == "Namespace" => true,
        _ => false,
    }
}

/// A mutation of one object, or nothing when the dice showed none that makes sense.
pub(crate) fn draw(dice: &mut Dice, types: &Types, thing: &Thing, live: &Value) -> Option<Mutation> {
    if dice.percent(4) {
        return delete(thing);
    }
    if matches!(thing.kind.as_str(), "Deployment" | "StatefulSet") && dice.percent(8) {
        return Some(scale(dice, thing));
    }
    let mut object = live.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    let edit = edit(dice, types, thing, &object)?;
    let after = edit.applied(&object)?;
    let verbs = verbs(types, thing, &object, &edit);
    let verb = *dice.pick(&verbs)?;
    let request = request(types, thing, &object, &after, &edit, verb)?;
    let told = format!("{} ({verb:?}): {edit:?}", verb.manager());
    let author = Author {
        name: verb.manager(),
        is_software: matches!(verb, Verb::Operator | Verb::Pipeline | Verb::Forged),
        leaves_no_trace: false,
        traces: match dice.below(100) {
            _ if !matches!(verb, Verb::Edit | Verb::Patch | Verb::Operator) => Traces::Kept,
            0..10 => Traces::Trimmed,
            10..20 => Traces::Wiped,
            _ => Traces::Kept,
        },
    };
    let told = format!("{told}, traces {:?}", author.traces);
    Some(Mutation { verb, author, request, told })
}

fn delete(thing: &Thing) -> Option<Mutation> {
    if thing.kind == "Namespace" {
        return None;
    }
    let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"});
    let request = Request { method: "DELETE", url: thing.url.clone(), content_type: "application/json", body };
    let author =
        Author { name: Verb::Delete.manager(), is_software: false, leaves_no_trace: false, traces: Traces::Kept };
    Some(Mutation { verb: Verb::Delete, author, request, told: "kubectl delete".to_owned() })
}

fn scale(dice: &mut Dice, thing: &Thing) -> Mutation {
    let replicas = dice.below(4);
    let body = json!({"spec": {"replicas": replicas}});
    let url = format!("{}/scale?fieldManager=kubectl", thing.url);
    let request = Request { method: "PATCH", url, content_type: "application/merge-patch+json", body };
    let author = Author {
        name: Verb::Scale.manager(),
        is_software: false,
        leaves_no_trace: replicas == 0,
        traces: Traces::Kept,
    };
    Mutation { verb: Verb::Scale, author, request, told: format!("kubectl scale --replicas={replicas}") }
}

/// The requests that could bring an edit about, the likelier ones more than once.
fn verbs(types: &Types, thing: &Thing, object: &Value, edit: &Edit) -> Vec<Verb> {
    let tokens = edit.tokens();
    let mut verbs = vec![Verb::Edit, Verb::Edit, Verb::Patch, Verb::Patch, Verb::Replace, Verb::Replace];
    verbs.extend([Verb::Operator, Verb::Operator, Verb::Script, Verb::Apply, Verb::Forged]);
    match tokens.first().map(String::as_str).zip(tokens.get(1).map(String::as_str)) {
        Some(("metadata", "labels")) if tokens.len() == 3 => verbs.extend([Verb::Label; 4]),
        Some(("metadata", "annotations")) if tokens.len() == 3 => verbs.extend([Verb::Annotate; 4]),
        _ if tokens.iter().any(|token| token == "image" || token == "env") => verbs.extend([Verb::Set; 2]),
        _ => {}
    }
    if !matches!(edit, Edit::Remove(_)) && partial(types, thing, object, tokens).is_some() {
        verbs.extend([Verb::Pipeline; 4]);
    }
    verbs
}

fn request(types: &Types, thing: &Thing, before: &Value, after: &Value, edit: &Edit, verb: Verb) -> Option<Request> {
    let manager = verb.manager();
    let url = format!("{}?fieldManager={manager}", thing.url);
    let patch = |content_type, body| Some(Request { method: "PATCH", url: url.clone(), content_type, body });
    match verb {
        Verb::Replace => Some(Request { method: "PUT", url, content_type: "application/json", body: after.clone() }),
        Verb::Pipeline => Some(Request {
            method: "PATCH",
            url: format!("{url}&force=true"),
            content_type: "application/apply-patch+yaml",
            body: partial(types, thing, after, edit.tokens())?,
        }),
        Verb::Apply => {
            let key = "kubectl.kubernetes.io/last-applied-configuration";
            let pointer = format!("/metadata/annotations/{}", key.replace('/', "~1"));
            let annotation = json!({"op": "add", "path": pointer, "value": thing.desired.to_string()});
            patch("application/json-patch+json", json!([annotation, edit.operation(before)]))
        }
        Verb::Patch | Verb::Label | Verb::Annotate if edit.merge(before).is_some() => {
            patch("application/merge-patch+json", edit.merge(before)?)
        }
        Verb::Scale | Verb::Delete => None,
        _ => patch("application/json-patch+json", json!([edit.operation(before)])),
    }
}

impl Edit {
    fn tokens(&self) -> &[String] {
        match self {
            Edit::Put(tokens, _) | Edit::Insert(tokens, _) | Edit::Remove(tokens) => tokens,
        }
    }

    /// The object after the edit.
    fn applied(&self, object: &Value) -> Option<Value> {
        let mut object = object.clone();
        let (last, way) = self.tokens().split_last()?;
        let mut parent = &mut object;
        for token in way {
            parent = match parent {
                Value::Array(list) => list.get_mut(token.parse::<usize>().ok()?)?,
                other => other.get_mut(token)?,
            };
        }
        match (parent, self) {
            (Value::Object(map), Edit::Put(_, value)) => drop(map.insert(last.clone(), value.clone())),
            (Value::Object(map), Edit::Remove(_)) => drop(map.remove(last)),
            (Value::Array(list), Edit::Put(_, value)) => *list.get_mut(last.parse::<usize>().ok()?)? = value.clone(),
            (Value::Array(list), Edit::Insert(_, value)) => {
                list.insert(last.parse::<usize>().ok()?.min(list.len()), value.clone());
            }
            (Value::Array(list), Edit::Remove(_)) => drop(list.remove(last.parse().ok()?)),
            _ => return None,
        }
        Some(object)
    }

    /// As an operation of a JSON patch.
    fn operation(&self, object: &Value) -> Value {
        let pointer: String =
            self.tokens().iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect();
        match self {
            Edit::Put(_, value) => {
                let word = if object.pointer(&pointer).is_some() { "replace" } else { "add" };
                json!({"op": word, "path": pointer, "value": value})
            }
            Edit::Insert(_, value) => json!({"op": "add", "path": pointer, "value": value}),
            Edit::Remove(_) => json!({"op": "remove", "path": pointer}),
        }
    }

    /// As a merge patch, where one says the same.
    fn merge(&self, object: &Value) -> Option<Value> {
        let value = match self {
            Edit::Put(_, value) if !value.is_object() => value.clone(),
            Edit::Remove(_) => Value::Null,
            _ => return None,
        };
        let mut at = object;
        for token in self.tokens() {
            at = if at.is_array() { return None } else { at.get(token).unwrap_or(&Value::Null) };
        }
        Some(self.tokens().iter().rev().fold(value, |value, token| json!({token: value})))
    }
}

/// What a server-side apply has to say to set the place: the way to it, with the keys of the list items on it; the whole of the
/// first atomic value on the way.
fn partial(types: &Types, thing: &Thing, object: &Value, tokens: &[String]) -> Option<Value> {
    fn descend(types: &Types, thing: &Thing, path: &mut Vec<Step>, at: &Value, tokens: &[String]) -> Option<Value> {
        let Some((token, rest)) = tokens.split_first() else { return Some(at.clone()) };
        match (at, types.shape(thing, path, at)) {
            (Value::Object(map), Shape::Map) => {
                path.push(Step::Field(token.clone()));
                let below = map.get(token).map_or(Some(Value::Null), |at| descend(types, thing, path, at, rest))?;
                path.pop();
                Some(json!({token: below}))
            }
            (Value::Array(list), Shape::Keyed(keys)) => {
                let item = list.get(token.parse::<usize>().ok()?)?;
                let mut named = Map::new();
                for key in &keys {
                    named.extend(item.get(key).map(|value| (key.clone(), value.clone())));
                }
                path.push(Step::Item(Vec::new()));
                let below = descend(types, thing, path, item, rest)?;
                path.pop();
                for (key, value) in below.as_object()? {
                    named.insert(key.clone(), value.clone());
                }
                Some(json!([named]))
            }
            (Value::Array(_), Shape::Set) => None,
            _ => Some(at.clone()),
        }
    }
    let mut body = descend(types, thing, &mut Vec::new(), object, tokens)?;
    body["apiVersion"] = json!(thing.api_version);
    body["kind"] = json!(thing.kind);
    body["metadata"]["name"] = json!(thing.name);
    if let Some(namespace) = &thing.namespace {
        body["metadata"]["namespace"] = json!(namespace);
    }
    Some(body)
}

/// Walks down the object by chance and says what to do where it stops.
fn edit(dice: &mut Dice, types: &Types, thing: &Thing, object: &Value) -> Option<Edit> {
    let mut tokens: Vec<String> = Vec::new();
    let mut path: Vec<Step> = Vec::new();
    let mut at = object;
    if dice.percent(5) {
        return add_field(dice, types, thing, &path, &tokens, at);
    }
    let metadata = dice.percent(15);
    loop {
        let stops = match tokens.len() {
            0 => false,
            1 => dice.percent(3) && tokens[0] != "metadata",
            _ if at.is_array() => dice.percent(35),
            _ => dice.percent(22),
        };
        let token = match at {
            _ if stops => break,
            Value::Object(map) => {
                let keys: Vec<&String> = map
                    .keys()
                    .filter(|key| !tokens.is_empty() || map.len() == 3 || (*key == "metadata") == metadata)
                    .filter(|key| !is_off_limits(thing, object, &[tokens.as_slice(), &[(*key).clone()]].concat()))
                    .collect();
                let Some(key) = dice.pick(&keys) else { break };
                (*key).clone()
            }
            Value::Array(list) if !list.is_empty() => dice.below(list.len()).to_string(),
            _ => break,
        };
        at = match at {
            Value::Array(list) => {
                path.push(Step::Item(Vec::new()));
                list.get(token.parse::<usize>().ok()?)?
            }
            other => {
                path.push(Step::Field(token.clone()));
                other.get(&token)?
            }
        };
        tokens.push(token);
    }
    if tokens.is_empty() {
        return None;
    }
    let choice = dice.below(100);
    match at {
        Value::Object(map) => match choice {
            0..50 => add_field(dice, types, thing, &path, &tokens, at),
            50..90 => Some(Edit::Remove(tokens)),
            _ if !map.is_empty() => Some(Edit::Put(tokens, json!({}))),
            _ => None,
        },
        Value::Array(list) => match choice {
            0..50 => {
                let item = another_item(dice, types, thing, &path, list)?;
                let place = if dice.percent(50) { list.len() } else { dice.below(list.len() + 1) };
                tokens.push(place.to_string());
                Some(Edit::Insert(tokens, item))
            }
            50..65 => Some(Edit::Remove(tokens)),
            65..80 if !list.is_empty() => {
                tokens.push(dice.below(list.len()).to_string());
                Some(Edit::Remove(tokens))
            }
            80..92 if list.len() > 1 => {
                let mut list = list.clone();
                list.reverse();
                Some(Edit::Put(tokens, json!(list)))
            }
            _ if !list.is_empty() => Some(Edit::Put(tokens, json!([]))),
            _ => None,
        },
        scalar => {
            if choice < 70 {
                let other = another_value(dice, thing, &tokens, scalar)?;
                Some(Edit::Put(tokens, other))
            } else if thing.kind == "ServiceAccount" && tokens.last().is_some_and(|last| last == "name") {
                // A reference without its key is taken, but the server then drops all of the object's owners.
                None
            } else {
                Some(Edit::Remove(tokens))
            }
        }
    }
}

/// Values of fields that take few: another of its row is a good change.
const WORDS: &[&[&str]] = &[
    &["Always", "IfNotPresent", "Never"],
    &["TCP", "UDP", "SCTP"],
    &["HTTP", "HTTPS"],
    &["ClusterIP", "NodePort", "LoadBalancer"],
    &["None", "ClientIP"],
    &["Cluster", "Local"],
    &["File", "FallbackToLogsOnError"],
    &["ClusterFirst", "Default", "ClusterFirstWithHostNet"],
    &["RollingUpdate", "OnDelete", "Recreate"],
    &["Fail", "Ignore"],
    &["Exact", "Equivalent"],
    &["None", "NoneOnDryRun"],
    &["Namespaced", "Cluster", "*"],
    &["NoSchedule", "PreferNoSchedule", "NoExecute"],
    &["Exists", "Equal"],
    &["In", "NotIn"],
    &["CREATE", "UPDATE", "DELETE", "CONNECT"],
    &["Retain", "Delete"],
    &["Parallel", "OrderedReady"],
    &["default-scheduler", "other-scheduler"],
    &["OnRootMismatch", "Always"],
    &["RuntimeDefault", "Unconfined"],
    &["SingleStack", "PreferDualStack"],
    &["ReadWriteOnce", "ReadOnlyMany"],
    &["AlwaysAllow", "IfHealthyBudget"],
];

/// Another value of the same kind, of another meaning.
fn another_value(dice: &mut Dice, thing: &Thing, tokens: &[String], value: &Value) -> Option<Value> {
    let field = tokens.last()?.as_str();
    match value {
        Value::Bool(value) => Some(json!(!value)),
        Value::Number(number) => {
            let value = number.as_i64()?;
            let changed = match dice.below(5) {
                0 => 0,
                1 if value > 1 => value - 1,
                2 => value + 7,
                _ => value + 1,
            };
            Some(json!(changed))
        }
        Value::String(value) => {
            let rows: Vec<&&[&str]> = WORDS.iter().filter(|row| row.contains(&value.as_str())).collect();
            if let Some(row) = dice.pick(&rows) {
                let others: Vec<&&str> = row.iter().filter(|word| *word != value).collect();
                return dice.pick(&others).map(|word| json!(word));
            }
            let of_data = thing.kind == "Secret" && tokens.first().is_some_and(|first| first == "data");
            if of_data || tokens.first().is_some_and(|first| first == "binaryData") || field == "caBundle" {
                return Some(json!(BASE64.encode(format!("changed {}", dice.below(1000)))));
            }
            let digits = value.find(|one: char| one.is_ascii_digit());
            match digits {
                Some(start) if dice.percent(70) => {
                    let end =
                        value[start..].find(|one: char| !one.is_ascii_digit()).map_or(value.len(), |end| start + end);
                    let number: u64 = value[start..end].parse().ok()?;
                    Some(json!(format!("{}{}{}", &value[..start], number + 1, &value[end..])))
                }
                _ if dice.percent(5) => Some(json!("")),
                _ => Some(json!(format!("{value}x"))),
            }
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// One more item for a list: like one of it, but with keys of its own.
fn another_item(dice: &mut Dice, types: &Types, thing: &Thing, path: &[Step], list: &[Value]) -> Option<Value> {
    let field = match path.last() {
        Some(Step::Field(field)) => field.as_str(),
        _ => "",
    };
    if field == "finalizers" {
        return Some(json!("example.com/hold"));
    }
    let mut item = dice.pick(list)?.clone();
    match &mut item {
        Value::String(text) => {
            *text = another_value(dice, thing, &["item".to_owned()], &json!(text))?.as_str()?.to_owned()
        }
        Value::Object(map) => {
            let keys = match types.shape(thing, path, &json!(list)) {
                Shape::Keyed(keys) => keys,
                Shape::Map | Shape::Set | Shape::Atomic => vec!["name".to_owned()],
            };
            for key in keys.iter().map(String::as_str).chain(["name"]) {
                match map.get_mut(key) {
                    Some(Value::String(text)) if key == "ip" => *text = "192.0.2.7".to_owned(),
                    Some(Value::String(text)) if key == "mountPath" => text.push_str("-added"),
                    Some(Value::String(text)) if !matches!(key, "protocol" | "whenUnsatisfiable") => text.push('x'),
                    Some(Value::Number(number)) => *number = (number.as_i64()? + 1).into(),
                    _ => {}
                }
            }
        }
        Value::Number(number) => *number = (number.as_i64()? + 1).into(),
        Value::Null | Value::Bool(_) | Value::Array(_) => return None,
    }
    Some(item)
}

/// One more field of a map: an entry of a free one, else one that the kind knows and the object does not have.
fn add_field(
    dice: &mut Dice,
    types: &Types,
    thing: &Thing,
    path: &[Step],
    tokens: &[String],
    at: &Value,
) -> Option<Edit> {
    let map = at.as_object()?;
    let name = path.iter().rev().find_map(|step| match step {
        Step::Field(field) => Some(field.as_str()),
        _ => None,
    });
    let is_item = matches!(path.last(), Some(Step::Item(_)));
    let offered: Vec<(String, Value)> = match (name.unwrap_or_default(), is_item) {
        ("labels" | "annotations" | "matchLabels" | "nodeSelector", false) => {
            let keys = ["added", "example.com/added", "app.kubernetes.io/added-by-hand"];
            keys.iter().map(|key| ((*key).to_owned(), json!("by-hand"))).collect()
        }
        ("data", false) if thing.kind == "Secret" => vec![("added".to_owned(), json!(BASE64.encode("by hand")))],
        ("binaryData", false) => vec![("added.bin".to_owned(), json!(BASE64.encode("by hand")))],
        ("data", false) => ["added", "added.yaml"].iter().map(|key| ((*key).to_owned(), json!("by: hand\n"))).collect(),
        ("limits" | "requests", false) => vec![("ephemeral-storage".to_owned(), json!("1Gi"))],
        _ if types.is_custom(thing) && path.len() > 1 => custom_fields(types.schema(thing, path)),
        _ => known_fields(thing, path)
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    };
    let absent: Vec<&(String, Value)> = offered
        .iter()
        .filter(|(key, _)| {
            !map.contains_key(key) && !is_off_limits(thing, at, &[tokens, std::slice::from_ref(key)].concat())
        })
        .collect();
    let (key, value) = dice.pick(&absent)?;
    Some(Edit::Put([tokens, std::slice::from_ref(key)].concat(), value.clone()))
}

/// Fields of plain types that a definition declares.
fn custom_fields(schema: &Value) -> Vec<(String, Value)> {
    let value = |schema: &Value| match schema["type"].as_str()? {
        "string" => Some(schema["enum"].get(0).cloned().unwrap_or_else(|| json!("added"))),
        "integer" => Some(json!(7)),
        "boolean" => Some(json!(true)),
        "array" if schema["items"]["type"] == "string" => Some(json!(["added"])),
        "object" if schema["additionalProperties"]["type"] == "string" => Some(json!({"added": "by-hand"})),
        _ => None,
    };
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields.filter_map(|(key, schema)| Some((key.clone(), value(schema)?))).collect()
}

/// Fields that built-in kinds know and charts seldom set, with a value that is no default.
fn known_fields(thing: &Thing, path: &[Step]) -> Value {
    let fields: Vec<&str> = path
        .iter()
        .map(|step| match step {
            Step::Field(key) => key.as_str(),
            Step::Item(_) | Step::Member(_) => "*",
        })
        .collect();
    match (thing.kind.as_str(), fields.as_slice()) {
        (_, ["metadata"]) => json!({"finalizers": ["example.com/hold"]}),
        ("ServiceAccount", []) => json!({
            "automountServiceAccountToken": true, "imagePullSecrets": [{"name": "added"}], "secrets": [{"name": "added"}],
        }),
        ("ConfigMap", []) => json!({"data": {"added": "by hand"}, "binaryData": {"added.bin": "AAEC"}}),
        ("Secret", []) => json!({"data": {"added": "YnkgaGFuZA=="}}),
        ("Deployment", ["spec"]) => json!({"paused": true, "minReadySeconds": 7}),
        ("StatefulSet", ["spec"]) => json!({
            "minReadySeconds": 7, "ordinals": {"start": 1},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
        }),
        ("DaemonSet", ["spec"]) => json!({"minReadySeconds": 7}),
        ("Service", ["spec"]) => json!({
            "externalIPs": ["192.0.2.1"], "publishNotReadyAddresses": true, "trafficDistribution": "PreferClose",
            "loadBalancerClass": "example.com/added", "selector": {"app": "added"},
        }),
        ("Service", ["spec", "ports", "*"]) => json!({"appProtocol": "http", "name": "added"}),
        ("PodDisruptionBudget", ["spec"]) => json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"}),
        ("NetworkPolicy", ["spec"]) => json!({"egress": [{}], "ingress": [{"ports": [{"port": 81}]}]}),
        ("ClusterRole" | "Role", ["rules", "*"]) => json!({"resourceNames": ["added"]}),
        ("PersistentVolumeClaim", ["spec"]) => json!({"volumeAttributesClassName": "added"}),
        ("ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration", ["webhooks", "*"]) => json!({
            "matchConditions": [{"name": "added", "expression": "true"}],
        }),
        ("CustomResourceDefinition", ["spec", "names"]) => json!({"categories": ["added"], "shortNames": ["added"]}),
        ("APIService", ["spec"]) => json!({"caBundle": "YnkgaGFuZA=="}),
        (_, [.., "template", "spec"]) => json!({
            "hostNetwork": true, "hostPID": true, "shareProcessNamespace": true, "hostname": "added", "subdomain": "added",
            "nodeSelector": {"pool": "added"}, "tolerations": [{"key": "added", "operator": "Exists"}],
            "hostAliases": [{"ip": "192.0.2.9", "hostnames": ["added.example"]}], "enableServiceLinks": false,
            "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]}, "runtimeClassName": "added",
            "priorityClassName": "added", "imagePullSecrets": [{"name": "added"}], "activeDeadlineSeconds": 70,
            "initContainers": [{"name": "added", "image": "registry.example/added:1"}],
            "volumes": [{"name": "added", "emptyDir": {}}], "automountServiceAccountToken": false,
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
                [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}}]}},
        }),
        (_, [.., "containers" | "initContainers", "*"]) => json!({
            "tty": true, "stdin": true, "workingDir": "/added", "command": ["added"], "args": ["--added"],
            "env": [{"name": "ADDED", "value": "by hand"}], "envFrom": [{"configMapRef": {"name": "added"}}],
            "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}}, "startupProbe": {"tcpSocket": {"port": 81}},
            "livenessProbe": {"httpGet": {"port": 81}}, "readinessProbe": {"exec": {"command": ["true"]}},
            "securityContext": {"privileged": true}, "ports": [{"containerPort": 8181}],
            "volumeMounts": [{"name": "added", "mountPath": "/added"}], "terminationMessagePath": "/added",
        }),
        (_, [.., "containers" | "initContainers", "*", "resources"]) => json!({
            "limits": {"ephemeral-storage": "2Gi"}, "requests": {"cpu": "1m"},
        }),
        (_, [.., "containers" | "initContainers", "*", "securityContext"]) => json!({
            "privileged": true, "runAsUser": 1007, "runAsGroup": 1007, "readOnlyRootFilesystem": true, "procMount": "Unmasked",
            "capabilities": {"add": ["NET_ADMIN"]}, "seccompProfile": {"type": "Unconfined"},
        }),
        (_, [.., "template", "spec", "securityContext"]) => json!({
            "fsGroup": 1007, "runAsUser": 1007, "supplementalGroups": [7], "sysctls": [{"name": "net.core.somaxconn", "value": "7"}],
            "fsGroupChangePolicy": "Always",
        }),
        (_, [.., "livenessProbe" | "readinessProbe" | "startupProbe"]) => json!({"initialDelaySeconds": 70}),
        (_, [.., "httpGet"]) => json!({"host": "added.example", "httpHeaders": [{"name": "added", "value": "x"}]}),
        (_, [.., "containers" | "initContainers", "*", "ports", "*"]) => {
            json!({"hostIP": "127.0.0.1", "hostPort": 8181})
        }
        (_, [.., "volumeMounts", "*"]) => json!({"readOnly": true, "subPath": "added"}),
        (_, [.., "emptyDir"]) => json!({"sizeLimit": "1Gi", "medium": "Memory"}),
        (_, [.., "template"]) => json!({"metadata": {"annotations": {"added": "by-hand"}}}),
        (_, [.., "template", "metadata"]) => json!({"annotations": {"added": "by-hand"}}),
        _ => json!({}),
    }
}
