//! What is sent to repair one object: the object as it is wanted with what must stay put in, and a JSON patch (RFC 6902) that undoes
//! findings. Knows nothing of how it is sent. Values come from the manifest and from the live object, never from a finding, whose
//! values may be masked.

use serde_json::{Map, Value, json};

use super::finding::{Change, Finding};
use super::object::{FieldPath, Segment};

/// A finding whose place could not be found again: nothing is guessed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot be found again in the object")]
pub(crate) struct NoPlace(String);

/// `desired` with the live value at every path that must stay as it is (`kept`: the other findings of this object).
///
/// `applier`: who is going to apply the result. What somebody else holds it then leaves out: an apply does not touch what its manager
/// never owned, and must not begin to own it. What live has in addition is left out in any case.
pub(crate) fn overlay(
    desired: &Value,
    live: &Value,
    kept: &[&Finding],
    applier: Option<&str>,
) -> Result<Value, NoPlace> {
    let mut wanted = desired.clone();
    for finding in kept {
        let Some(path) = &finding.path else { continue };
        let foreign = applier.is_some_and(|applier| !is_applied_by(finding, applier)) && !is_item_key(path);
        match finding.change {
            Change::Changed if foreign => remove(&mut wanted, &path.0).ok_or_else(|| lost(path))?,
            Change::Changed => {
                let pointer = finding.pointer.as_deref();
                let value = pointer.and_then(|pointer| live.pointer(pointer)).ok_or_else(|| lost(path))?;
                *slot(&mut wanted, &path.0).ok_or_else(|| lost(path))? = value.clone();
            }
            Change::Removed => remove(&mut wanted, &path.0).ok_or_else(|| lost(path))?,
            Change::Added | Change::Missing | Change::Unreadable | Change::Orphan => {}
        }
    }
    Ok(wanted)
}

/// Whether a manager's apply holds what a finding is about.
pub(crate) fn is_applied_by(finding: &Finding, applier: &str) -> bool {
    let mut holders = finding.manager.iter().chain(&finding.managers);
    holders.any(|holder| holder.name == applier && holder.operation == "Apply")
}

/// A key by which a list knows its item: that cannot be left out.
pub(crate) fn is_item_key(path: &FieldPath) -> bool {
    match path.0.as_slice() {
        [.., Segment::Item(keys), Segment::Field(name)] => keys.iter().any(|(key, _)| key == name),
        _ => false,
    }
}

/// Operations that undo findings of one object: tests of what is there, what is put back, what is taken away.
///
/// Shape: `wanted` from [`overlay`]; pointers of the findings lead into `live`, whose `resourceVersion` the server is held to.
pub(crate) fn json_patch(wanted: &Value, live: &Value, findings: &[&Finding]) -> Result<Vec<Value>, NoPlace> {
    let (mut tests, mut put, mut inserted, mut removed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for finding in findings {
        let (Some(path), Some(pointer)) = (&finding.path, finding.pointer.as_deref()) else { continue };
        let there = || live.pointer(pointer).ok_or_else(|| lost(path));
        let value = || find(wanted, &path.0).ok_or_else(|| lost(path));
        match finding.change {
            Change::Changed => {
                tests.push(json!({"op": "test", "path": pointer, "value": there()?}));
                put.push(json!({"op": "replace", "path": pointer, "value": value()?}));
            }
            Change::Removed => match place_of(wanted, live, path, pointer) {
                Some(place) => inserted.push((place, value()?)),
                None => put.push(json!({"op": "add", "path": pointer, "value": value()?})),
            },
            Change::Added => {
                tests.push(json!({"op": "test", "path": pointer, "value": there()?}));
                removed.push(tokens(pointer));
            }
            Change::Missing | Change::Unreadable | Change::Orphan => {}
        }
    }
    // What is put back into its place, or appended, moves no other item. Then goes what goes, the last place first; and what is
    // inserted comes last, where that has left it.
    removed.sort_by(|a, b| b.cmp(a));
    inserted.sort_by(|(a, _), (b, _)| b.cmp(a));
    let mut operations = version_test(live);
    operations.extend(tests);
    operations.extend(put);
    operations.extend(removed.iter().map(|place| json!({"op": "remove", "path": pointer_of(place)})));
    operations.extend(
        inserted.iter().map(
            |(place, value)| json!({"op": "add", "path": pointer_of(&shifted(&place.at, &removed)), "value": value}),
        ),
    );
    Ok(operations)
}

/// What an API server says of a patch that it does not explain: that of a failed `test`, for one, which compares a value's spelling.
pub(crate) const UNEXPLAINED: &str = "the server rejected our request due to an error in our request";

/// The same patch, bound to the object by its version alone.
pub(crate) fn without_tests(operations: Vec<Value>) -> Vec<Value> {
    let is_test = |operation: &Value| operation.get("op") == Some(&"test".into());
    let on_uid = |operation: &Value| operation.get("path") == Some(&"/metadata/uid".into());
    operations.into_iter().filter(|operation| !is_test(operation) || on_uid(operation)).collect()
}

/// Like [`json_patch`], but each field goes with the map that it stands in, as a whole. `None`: not all of them have one that may be
/// replaced, deep enough in the object and without what is to stay (`kept`).
pub(crate) fn maps_patch(wanted: &Value, live: &Value, findings: &[&Finding], kept: &[&Finding]) -> Option<Vec<Value>> {
    const SHALLOWEST: usize = 2;
    let mut operations = version_test(live);
    let mut done: Vec<&str> = Vec::new();
    for finding in findings {
        let (path, pointer) = (finding.path.as_ref()?, finding.pointer.as_deref()?);
        let (_, above) = path.0.split_last()?;
        let (map, _) = pointer.rsplit_once('/')?;
        let stays = |one: &&Finding| {
            one.change == Change::Added && one.path.as_ref().is_some_and(|own| own.0.starts_with(above))
        };
        if above.len() < SHALLOWEST || kept.iter().any(stays) {
            return None;
        }
        if done.contains(&map) {
            continue;
        }
        let (new, old) = (find(wanted, above)?, live.pointer(map)?);
        if !new.is_object() || !old.is_object() {
            return None;
        }
        operations.push(json!({"op": "test", "path": map, "value": old}));
        operations.push(json!({"op": "replace", "path": map, "value": new}));
        done.push(map);
    }
    (!done.is_empty()).then_some(operations)
}

/// Another object of the name, or a newer state of this one, is a conflict.
fn version_test(live: &Value) -> Vec<Value> {
    let metadata =
        |key: &str| live.get("metadata").and_then(|metadata| metadata.get(key)).filter(|value| value.is_string());
    let uid = metadata("uid").map(|uid| json!({"op": "test", "path": "/metadata/uid", "value": uid}));
    let version = metadata("resourceVersion")
        .map(|version| json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}));
    uid.into_iter().chain(version).collect()
}

/// Where in a list an item goes back to whose order means something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: Vec<Token>,
    /// Its place in the manifest: of several that go to one place, the last is inserted first.
    order: usize,
}

/// In `env` and `initContainers`: right after the item that stands before it in the manifest. `None`: at the end.
fn place_of(wanted: &Value, live: &Value, path: &FieldPath, pointer: &str) -> Option<Place> {
    let (item, list) = path.0.split_last()?;
    let ordered = matches!(list.last(), Some(Segment::Field(name)) if name == "env" || name == "initContainers");
    let list_pointer = pointer.strip_suffix("/-").filter(|_| ordered)?;
    let items = find(wanted, list)?.as_array()?;
    let order = position(items, item)?;
    let there = live.pointer(list_pointer)?.as_array()?;
    let mut before = items.get(..order)?.iter().rev();
    let after = before.find_map(|one| there.iter().position(|live| live.get("name") == one.get("name")));
    let index = after.map_or(0, |index| index + 1);
    let mut at = tokens(list_pointer);
    at.push(Token::Index(index));
    (index < there.len()).then_some(Place { at, order })
}

/// One step of a pointer; places in lists as numbers, so that they sort by place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    Index(usize),
    /// As the pointer spells it.
    Key(String),
}

fn tokens(pointer: &str) -> Vec<Token> {
    // `007` is a key: no place in a list is written so.
    let index = |text: &str| text.parse().ok().filter(|index: &usize| index.to_string() == text);
    let token = |text: &str| index(text).map_or_else(|| Token::Key(text.to_owned()), Token::Index);
    pointer.split('/').skip(1).map(token).collect()
}

fn pointer_of(tokens: &[Token]) -> String {
    let text = |token: &Token| match token {
        Token::Index(index) => format!("/{index}"),
        Token::Key(key) => format!("/{key}"),
    };
    tokens.iter().map(text).collect()
}

/// A place once the `removed` ones are gone: items behind them have moved up.
fn shifted(place: &[Token], removed: &[Vec<Token>]) -> Vec<Token> {
    let moved = |(depth, token): (usize, &Token)| {
        let Token::Index(index) = token else { return token.clone() };
        let above = place.get(..depth).unwrap_or_default();
        let gone = removed.iter().filter(
            |one| matches!(one.split_last(), Some((Token::Index(other), list)) if list == above && other < index),
        );
        Token::Index(index - gone.count())
    };
    place.iter().enumerate().map(moved).collect()
}

fn lost(path: &FieldPath) -> NoPlace {
    NoPlace(path.to_string())
}

/// The value at a path of the manifest's object.
fn find<'v>(value: &'v Value, path: &[Segment]) -> Option<&'v Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value) };
    let below = match first {
        Segment::Field(name) => value.get(name)?,
        Segment::Index(index) => value.get(index)?,
        Segment::Item(_) | Segment::Member(_) => {
            let items = value.as_array()?;
            items.get(position(items, first)?)?
        }
    };
    find(below, rest)
}

/// The place to put a value in; the way to it must be there.
fn slot<'v>(value: &'v mut Value, path: &[Segment]) -> Option<&'v mut Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value) };
    let below = match first {
        Segment::Field(name) => value.as_object_mut()?.get_mut(name)?,
        Segment::Index(index) => value.get_mut(index)?,
        Segment::Item(_) | Segment::Member(_) => {
            let items = value.as_array_mut()?;
            let at = position(items, first)?;
            items.get_mut(at)?
        }
    };
    slot(below, rest)
}

fn remove(value: &mut Value, path: &[Segment]) -> Option<()> {
    let (last, above) = path.split_last()?;
    let parent = slot(value, above)?;
    match last {
        Segment::Field(name) => parent.as_object_mut()?.remove(name).map(drop),
        Segment::Index(_) => None,
        Segment::Item(_) | Segment::Member(_) => {
            let items = parent.as_array_mut()?;
            let at = position(items, last)?;
            items.remove(at);
            Some(())
        }
    }
}

/// Of several items with one key the last counts, as in the comparison.
fn position(items: &[Value], segment: &Segment) -> Option<usize> {
    items.iter().rposition(|item| fits(item, segment))
}

/// A key that the item leaves out has its default, which the path spells out; one key at least must be there.
fn fits(item: &Value, segment: &Segment) -> bool {
    match segment {
        Segment::Item(keys) => {
            let there =
                keys.iter().filter_map(|(key, value)| Some((item.get(key).filter(|own| !own.is_null())?, value)));
            let mut any = false;
            there.fold(true, |fits, (own, value)| {
                any = true;
                fits && own == value
            }) && any
        }
        Segment::Member(value) => item == value,
        Segment::Field(_) | Segment::Index(_) => false,
    }
}

/// The object to create: as wanted, nothing of an earlier one.
pub(crate) fn anew(wanted: &Value) -> Value {
    let mut object = wanted.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["uid", "resourceVersion"] {
            metadata.remove(key);
        }
    }
    object
}

/// The same object, bound to the state that was judged: the server answers with a conflict when there is a newer one.
pub(crate) fn bound(wanted: &Value, live: &Value) -> Value {
    let mut object = wanted.clone();
    let from = live.get("metadata").and_then(Value::as_object);
    if let (Some(metadata), Some(from)) = (object.get_mut("metadata").and_then(Value::as_object_mut), from) {
        for key in ["uid", "resourceVersion"] {
            if let Some(value) = from.get(key) {
                metadata.insert(key.to_owned(), value.clone());
            }
        }
    }
    object
}

/// The manager under which every Helm applies objects (helm/helm `cmd/helm/helm.go`). Who else holds Helm's annotations, a
/// `kubectl apply` of the whole object for one, is not Helm: under another's name an apply takes away what that one set.
pub(crate) const HELM: &str = "helm";

/// Operations that give up what a manager owns of an object, so that nobody meets a conflict with it; `None`: it owns nothing.
pub(crate) fn disown(live: &Value, manager: &str) -> Option<Vec<Value>> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let own = |entry: &Value| entry.get("manager").and_then(Value::as_str) == Some(manager);
    let places: Vec<usize> =
        entries.iter().enumerate().filter(|(_, entry)| own(entry)).map(|(place, _)| place).collect();
    let remove = |place: &usize| json!({"op": "remove", "path": format!("/metadata/managedFields/{place}")});
    let mut operations = version_test(live);
    operations.extend(places.iter().rev().map(remove));
    (!places.is_empty()).then_some(operations)
}

/// Whether a Secret's desired value is the token of a masked capture.
pub(crate) fn is_token(text: &str) -> bool {
    text.strip_prefix("masked-").is_some_and(|hex| hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether any value of a Secret's data is such a token.
pub(crate) fn holds_token(secret: &Value) -> bool {
    let data = secret.get("data").and_then(Value::as_object).map(Map::values);
    data.into_iter().flatten().filter_map(Value::as_str).any(|value| {
        let plain = super::equal::decoded(value).unwrap_or_default();
        is_token(value) || std::str::from_utf8(&plain).is_ok_and(is_token)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::sample;

    fn finding(change: Change, path: FieldPath, pointer: &str) -> Finding {
        let object = sample::object("apps/v1", "Deployment", "api");
        Finding { change, pointer: Some(pointer.into()), ..sample::finding(object, path) }
    }

    fn item(name: &str) -> Segment {
        Segment::Item(vec![("name".into(), json!(name))])
    }

    fn names(list: &[&str]) -> Value {
        list.iter().map(|name| json!({"name": name, "value": "v"})).collect()
    }

    #[test]
    fn what_must_stay_is_put_into_what_is_wanted() {
        let desired =
            json!({"spec": {"replicas": 3, "paused": true, "ports": [{"port": 80}, {"port": 81, "protocol": "UDP"}]}});
        let live = json!({"spec": {"replicas": 12, "ports": [{"port": 80, "protocol": "TCP", "nodePort": 4}, {"port": 82, "protocol": "UDP"}]}});
        let port = FieldPath::of_fields(&["spec", "ports"])
            .child(Segment::Item(vec![("port".into(), json!(81)), ("protocol".into(), json!("UDP"))]))
            .field("port");
        let kept = [
            finding(Change::Changed, FieldPath::of_fields(&["spec", "replicas"]), "/spec/replicas"),
            finding(Change::Removed, FieldPath::of_fields(&["spec", "paused"]), "/spec/paused"),
            finding(Change::Changed, port, "/spec/ports/1/port"),
            finding(Change::Added, FieldPath::of_fields(&["spec", "extra"]), "/spec/extra"),
        ];
        let kept: Vec<&Finding> = kept.iter().collect();
        assert_eq!(
            overlay(&desired, &live, &kept, None).unwrap(),
            json!({"spec": {"replicas": 12, "ports": [{"port": 80}, {"port": 82, "protocol": "UDP"}]}})
        );
        // Whoever applies it owns none of that: replicas and the item's key are somebody else's.
        assert_eq!(
            overlay(&desired, &live, &kept, Some("helm")).unwrap(),
            json!({"spec": {"ports": [{"port": 80}, {"port": 82, "protocol": "UDP"}]}})
        );
        let elsewhere = finding(Change::Changed, FieldPath::of_fields(&["spec", "none"]), "/spec/replicas");
        assert_eq!(overlay(&desired, &live, &[&elsewhere], None), Err(NoPlace(".spec.none".into())));
    }

    #[test]
    fn a_patch_tests_what_is_there_and_takes_the_last_place_first() {
        let env = FieldPath::of_fields(&["env"]);
        let wanted = json!({"image": "a:1", "env": names(&["A", "B", "C", "D"]), "metadata": {}});
        let live = json!({"image": "a:2", "env": names(&["X", "A", "Y", "D"]), "metadata": {"uid": "u", "resourceVersion": "7"}});
        let findings = [
            finding(Change::Added, env.child(item("X")), "/env/0"),
            finding(Change::Removed, env.child(item("B")), "/env/-"),
            finding(Change::Removed, env.child(item("C")), "/env/-"),
            finding(Change::Added, env.child(item("Y")), "/env/2"),
            finding(Change::Changed, FieldPath::of_fields(&["image"]), "/image"),
        ];
        let findings: Vec<&Finding> = findings.iter().collect();
        let b = json!({"name": "B", "value": "v"});
        let c = json!({"name": "C", "value": "v"});
        assert_eq!(
            json_patch(&wanted, &live, &findings).unwrap(),
            [
                json!({"op": "test", "path": "/metadata/uid", "value": "u"}),
                json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}),
                json!({"op": "test", "path": "/env/0", "value": {"name": "X", "value": "v"}}),
                json!({"op": "test", "path": "/env/2", "value": {"name": "Y", "value": "v"}}),
                json!({"op": "test", "path": "/image", "value": "a:2"}),
                json!({"op": "replace", "path": "/image", "value": "a:1"}),
                json!({"op": "remove", "path": "/env/2"}),
                json!({"op": "remove", "path": "/env/0"}),
                json!({"op": "add", "path": "/env/1", "value": c}),
                json!({"op": "add", "path": "/env/1", "value": b}),
            ]
        );
    }

    #[test]
    fn a_patch_without_tests_is_bound_to_its_object_still() {
        let live = json!({"a": 1.0, "metadata": {"uid": "u", "resourceVersion": "7"}});
        let changed = finding(Change::Changed, FieldPath::of_fields(&["a"]), "/a");
        let operations = json_patch(&json!({"a": 2}), &live, &[&changed]).unwrap();
        assert_eq!(
            without_tests(operations),
            [
                json!({"op": "test", "path": "/metadata/uid", "value": "u"}),
                json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}),
                json!({"op": "replace", "path": "/a", "value": 2}),
            ]
        );
    }

    #[test]
    fn a_map_is_put_back_as_a_whole_unless_something_in_it_stays() {
        let strategy = |field: &str| FieldPath::of_fields(&["spec", "strategy", field]);
        let wanted = json!({"spec": {"strategy": {"type": "Recreate"}}});
        let live = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let changed = finding(Change::Changed, strategy("type"), "/spec/strategy/type");
        assert_eq!(
            maps_patch(&wanted, &live, &[&changed], &[]).unwrap(),
            [
                json!({"op": "test", "path": "/spec/strategy", "value": live["spec"]["strategy"]}),
                json!({"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}}),
            ]
        );
        let added = finding(Change::Added, strategy("rollingUpdate"), "/spec/strategy/rollingUpdate");
        assert_eq!(maps_patch(&wanted, &live, &[&changed], &[&added]), None);
        assert!(maps_patch(&wanted, &live, &[&changed, &added], &[]).is_some());
        let shallow = finding(Change::Changed, FieldPath::of_fields(&["spec", "paused"]), "/spec/paused");
        assert_eq!(maps_patch(&wanted, &live, &[&shallow], &[]), None);
    }

    #[test]
    fn an_item_whose_order_means_nothing_is_appended() {
        let ports = FieldPath::of_fields(&["ports"]);
        let wanted = json!({"ports": names(&["a", "b"])});
        let live = json!({"ports": names(&["b"])});
        let findings = [finding(Change::Removed, ports.child(item("a")), "/ports/-")];
        assert_eq!(
            json_patch(&wanted, &live, &[&findings[0]]).unwrap(),
            [json!({"op": "add", "path": "/ports/-", "value": {"name": "a", "value": "v"}})]
        );
    }

    #[test]
    fn tokens_of_a_masked_capture_are_known() {
        let token = "masked-0123456789abcdef0123456789abcdef";
        use base64::Engine as _;
        let encoded = base64::prelude::BASE64_STANDARD.encode(token);
        assert!(holds_token(&json!({"data": {"a": encoded}})));
        assert!(!holds_token(&json!({"data": {"a": "aGk=", "b": null}})));
    }
}
