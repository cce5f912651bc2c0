//! Lists that a strategic merge patch knows items of by fewer keys than the API does (kubernetes/kubernetes#39188, #105610): with a TCP
//! and a UDP port 53, client-side Helm and `kubectl apply` put the value of one into the other. Knows nothing of who patches.

use serde_json::Value;

use super::in_place::is_built_in;
use super::object::{FieldPath, Gvk, Segment};

/// List and merge key, of built-in types: `patchMergeKey` in kubernetes/api `core/v1/types.go`. Names of other lists with such items
/// are either atomic (NetworkPolicy ports) or elsewhere.
const MERGED: [(&str, &str); 8] = [
    ("ports", "port"),
    ("ports", "containerPort"),
    ("env", "name"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("volumes", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("hostAliases", "ip"),
];

/// Kinds whose `ports` are one value: nothing is merged there.
const ATOMIC: [&str; 3] = ["NetworkPolicy", "Endpoints", "EndpointSlice"];

/// Whether some list of an object has two items with one merge key.
pub(crate) fn confuses(gvk: &Gvk, object: &Value) -> bool {
    merges(gvk) && any(object, None)
}

/// Whether a list on the way of a path has.
pub(crate) fn confuses_at(gvk: &Gvk, object: &Value, path: &FieldPath) -> bool {
    let mut value = object;
    let mut name = None;
    for segment in &path.0 {
        let next = match segment {
            Segment::Field(field) => {
                name = Some(field.as_str());
                value.get(field)
            }
            Segment::Item(keys) => {
                if name.is_some_and(|name| repeats(name, value)) {
                    return merges(gvk);
                }
                let fits = |item: &&Value| keys.iter().all(|(key, own)| item.get(key).is_none_or(|other| other == own));
                value.as_array().and_then(|items| items.iter().find(fits))
            }
            Segment::Index(index) => value.get(index),
            Segment::Member(_) => None,
        };
        let Some(next) = next else { return false };
        value = next;
    }
    false
}

fn merges(gvk: &Gvk) -> bool {
    is_built_in(gvk) && !ATOMIC.contains(&gvk.kind.as_str())
}

fn any(value: &Value, name: Option<&str>) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(field, value)| any(value, Some(field))),
        Value::Array(items) => {
            name.is_some_and(|name| repeats(name, value)) || items.iter().any(|item| any(item, None))
        }
        _ => false,
    }
}

fn repeats(list: &str, items: &Value) -> bool {
    let Some(items) = items.as_array() else { return false };
    MERGED.iter().filter(|(name, _)| *name == list).any(|(_, key)| {
        items.iter().enumerate().any(|(place, item)| {
            let own = item.get(key).filter(|own| !own.is_null());
            own.is_some() && items.get(..place).unwrap_or_default().iter().any(|other| other.get(key) == own)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service() -> Gvk {
        Gvk::new("v1", "Service")
    }

    #[test]
    fn two_ports_of_one_number_are_one_to_a_merge() {
        let dns = json!({"spec": {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}});
        let web = json!({"spec": {"ports": [{"port": 80}, {"port": 81}, {"name": "x"}, {"name": "y"}]}});
        assert!(confuses(&service(), &dns));
        assert!(!confuses(&service(), &web));
        assert!(!confuses(&Gvk::new("networking.k8s.io/v1", "NetworkPolicy"), &dns));
        assert!(!confuses(&Gvk::new("example.com/v1", "Service"), &dns));
        let item = |port: u64, protocol: &str| {
            Segment::Item(vec![("port".into(), port.into()), ("protocol".into(), protocol.into())])
        };
        let path = FieldPath::of_fields(&["spec", "ports"]).child(item(53, "UDP")).field("targetPort");
        assert!(confuses_at(&service(), &dns, &path));
        assert!(!confuses_at(&service(), &dns, &FieldPath::of_fields(&["spec", "type"])));
        assert!(!confuses_at(
            &service(),
            &web,
            &FieldPath::of_fields(&["spec", "ports"]).child(item(80, "TCP")).field("targetPort")
        ));
    }

    #[test]
    fn lists_are_found_at_any_depth() {
        let body = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"name": "X"}, {"name": "Y"}, {"name": "X"}]}]}}}});
        let deployment = Gvk::new("apps/v1", "Deployment");
        assert!(confuses(&deployment, &body));
        let container = FieldPath::of_fields(&["spec", "template", "spec", "containers"])
            .child(Segment::Item(vec![("name".into(), json!("a"))]));
        assert!(!confuses_at(&deployment, &body, &container.field("image")));
        let env = container.field("env").child(Segment::Item(vec![("name".into(), json!("X"))]));
        assert!(confuses_at(&deployment, &body, &env.field("value")));
    }
}
