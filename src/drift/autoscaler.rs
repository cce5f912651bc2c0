//! Which objects autoscalers target: HorizontalPodAutoscalers and KEDA's ScaledObjects name theirs in `spec.scaleTargetRef`.

use serde_json::Value;

use super::object::{Gvk, ObjectRef};

/// What the autoscalers of one namespace target, by group, kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Targets(Vec<(String, String, String)>);

impl Targets {
    /// Takes in one autoscaler.
    pub(crate) fn add(&mut self, autoscaler: &Value) {
        let Some(target) = autoscaler.pointer("/spec/scaleTargetRef") else { return };
        let text = |key: &str| target.get(key).and_then(Value::as_str);
        let Some(name) = text("name") else { return };
        // KEDA's defaults; an HPA always names both.
        let gvk = Gvk::new(text("apiVersion").unwrap_or("apps/v1"), text("kind").unwrap_or("Deployment"));
        self.0.push((gvk.group, gvk.kind, name.to_owned()));
    }

    pub(crate) fn include(&self, object: &ObjectRef) -> bool {
        self.0
            .iter()
            .any(|(group, kind, name)| *group == object.gvk.group && *kind == object.gvk.kind && *name == object.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_target_is_known_by_group_kind_and_name() {
        let mut targets = Targets::default();
        targets
            .add(&json!({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}}}));
        targets.add(&json!({"spec": {"scaleTargetRef": {"name": "web"}}}));
        targets.add(&json!({"spec": {}}));
        let object =
            |kind: &str, name: &str| ObjectRef { gvk: Gvk::new("apps/v1", kind), namespace: None, name: name.into() };
        assert!(targets.include(&object("StatefulSet", "db")) && targets.include(&object("Deployment", "web")));
        assert!(!targets.include(&object("Deployment", "db")));
    }
}
