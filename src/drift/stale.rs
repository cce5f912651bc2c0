//! Pods that run with old configuration: a ConfigMap or Secret that a workload mounts or reads by env was written after its pods
//! started (design.md §5.7). No diff shows it. Knows nothing of how objects and pods are read.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::finding::{Notice, NoticeReason};
use super::object::ObjectRef;
use super::owners::{OwnerNode, Owners};
use super::selector::Selector;

/// What one live object tells about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sighting {
    Data(Data),
    Workload(Workload),
}

/// A ConfigMap or Secret.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Data {
    object: ObjectRef,
    /// The newest write by a manager that holds any of its data.
    written: Timestamp,
    manager: String,
}

/// A workload that reads ConfigMaps or Secrets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Workload {
    object: ObjectRef,
    /// Its pods are no younger than this by its own doing: what was written before is no suspect.
    rolled_out: Timestamp,
    /// As a query has it.
    selector: String,
    uses: Vec<Use>,
}

/// How one container comes to some data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    kind: &'static str,
    name: String,
    container: String,
    /// It ran when the pod started, and not since.
    init: bool,
    way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Env,
    SubPath,
    Mount,
}

/// Data that may be newer than the pods that read it; the pods will tell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Suspect {
    workload: Workload,
    data: Data,
}

/// What an object tells, if its kind is one that matters here.
pub(crate) fn sighting(object: &ObjectRef, live: &Value) -> Option<Sighting> {
    match (object.gvk.group.as_str(), object.gvk.kind.as_str()) {
        ("", "ConfigMap" | "Secret") => data(object, live).map(Sighting::Data),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet") => workload(object, live).map(Sighting::Workload),
        _ => None,
    }
}

fn data(object: &ObjectRef, live: &Value) -> Option<Data> {
    let owners = Owners::of(live);
    let fields = ["data", "binaryData"].into_iter().filter_map(|name| owners.root.field(name));
    let newest =
        fields.flat_map(OwnerNode::holders).filter_map(|id| owners.entries.get(id)).map(|entry| &entry.manager);
    let newest = newest.max_by_key(|manager| manager.time)?;
    Some(Data { object: object.clone(), written: newest.time?, manager: newest.name.clone() })
}

fn workload(object: &ObjectRef, live: &Value) -> Option<Workload> {
    let uses = uses(live.pointer("/spec/template/spec")?);
    if uses.is_empty() {
        return None;
    }
    Some(Workload {
        object: object.clone(),
        rolled_out: rolled_out(live)?,
        selector: selector(live.pointer("/spec/selector")?)?,
        uses,
    })
}

/// The last write to its pod template, or, where the deployment controller says so, the end of its last roll-out, whichever was
/// first: a write to the template may have changed nothing, and a roll-out may have been a scaling.
fn rolled_out(live: &Value) -> Option<Timestamp> {
    let owners = Owners::of(live);
    let template = owners.root.field("spec").and_then(|node| node.field("template")).map(OwnerNode::holders);
    let written = template.unwrap_or_default().into_iter().filter_map(|id| owners.entries.get(id)?.manager.time).max();
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let rolled = conditions
        .filter(|one| is(one, "type", "Progressing") && is(one, "reason", "NewReplicaSetAvailable"))
        .find_map(|one| time(one.get("lastUpdateTime")));
    [written, rolled].into_iter().flatten().min().or_else(|| time(live.pointer("/metadata/creationTimestamp")))
}

fn is(value: &Value, key: &str, text: &str) -> bool {
    value.get(key).and_then(Value::as_str) == Some(text)
}

fn time(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

/// A label selector as a query has it; `None`: it selects no pods, or is none.
fn selector(selector: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut parts = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        parts.push(format!("{key}={}", text(value)?));
    }
    for one in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = text(one.get("key")?)?;
        let values: Option<Vec<String>> =
            one.get("values").and_then(Value::as_array).into_iter().flatten().map(text).collect();
        let values = values?.join(",");
        parts.push(match one.get("operator")?.as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key,
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    (!parts.is_empty()).then(|| parts.join(","))
}

/// What the containers of a pod template read, each use once.
fn uses(pod: &Value) -> Vec<Use> {
    let mut uses = BTreeSet::new();
    let volumes = volumes(pod);
    for (field, init) in [("containers", false), ("initContainers", true)] {
        for container in list(pod, field) {
            let Some(name) = container.get("name").and_then(Value::as_str) else { continue };
            // A sidecar is an init container that goes on running.
            let init = init && !is(container, "restartPolicy", "Always");
            let mut add = |kind: &'static str, of: &Value, key: &str, way: Way| {
                if let Some(source) = of.get(key).and_then(Value::as_str) {
                    uses.insert(Use { kind, name: source.to_owned(), container: name.to_owned(), init, way });
                }
            };
            for from in list(container, "envFrom") {
                add("ConfigMap", &from["configMapRef"], "name", Way::Env);
                add("Secret", &from["secretRef"], "name", Way::Env);
            }
            for from in list(container, "env").filter_map(|env| env.get("valueFrom")) {
                add("ConfigMap", &from["configMapKeyRef"], "name", Way::Env);
                add("Secret", &from["secretKeyRef"], "name", Way::Env);
            }
            for mount in list(container, "volumeMounts") {
                let part = ["subPath", "subPathExpr"]
                    .iter()
                    .any(|key| mount.get(*key).and_then(Value::as_str).is_some_and(|path| !path.is_empty()));
                let way = if part { Way::SubPath } else { Way::Mount };
                let volume = mount.get("name").and_then(Value::as_str).and_then(|volume| volumes.get(volume));
                for (kind, source) in volume.into_iter().flatten() {
                    uses.insert(Use { kind, name: (*source).to_owned(), container: name.to_owned(), init, way });
                }
            }
        }
    }
    uses.into_iter().collect()
}

/// By volume: the ConfigMaps and Secrets in it.
fn volumes(pod: &Value) -> BTreeMap<&str, Vec<(&'static str, &str)>> {
    let named = list(pod, "volumes").filter_map(|volume| {
        let name = volume.get("name")?.as_str()?;
        let projected = volume.get("projected").map(|projected| list(projected, "sources")).into_iter().flatten();
        let sources =
            [("ConfigMap", volume.pointer("/configMap/name")), ("Secret", volume.pointer("/secret/secretName"))]
                .into_iter()
                .chain(projected.flat_map(|source| {
                    [("ConfigMap", source.pointer("/configMap/name")), ("Secret", source.pointer("/secret/name"))]
                }));
        Some((name, sources.filter_map(|(kind, source)| Some((kind, source?.as_str()?))).collect()))
    });
    named.collect()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Data that was written after the workloads that read it were rolled out.
pub(crate) fn suspects(sightings: &[Sighting]) -> Vec<Suspect> {
    let workloads = sightings.iter().filter_map(|one| match one {
        Sighting::Workload(workload) => Some(workload),
        Sighting::Data(_) => None,
    });
    let data: Vec<&Data> = sightings
        .iter()
        .filter_map(|one| match one {
            Sighting::Data(data) => Some(data),
            Sighting::Workload(_) => None,
        })
        .collect();
    let suspects = workloads.flat_map(|workload| {
        let read = data.iter().filter(|data| {
            data.object.namespace == workload.object.namespace
                && data.written > workload.rolled_out
                && workload.uses.iter().any(|one| one.reads(data))
        });
        read.map(|data| Suspect { workload: workload.clone(), data: (*data).clone() }).collect::<Vec<_>>()
    });
    suspects.collect()
}

impl Use {
    fn reads(&self, data: &Data) -> bool {
        self.kind == data.object.gvk.kind && self.name == data.object.name
    }
}

impl Suspect {
    pub(crate) fn namespace(&self) -> &str {
        self.workload.object.namespace.as_deref().unwrap_or_default()
    }

    /// Of its pods, as a query has it.
    pub(crate) fn selector(&self) -> &str {
        &self.workload.selector
    }

    /// What the pods of its namespace say: a notice when one of them runs with data older than this.
    pub(crate) fn among(&self, pods: &[Value]) -> Option<Notice> {
        let selector: Selector = self.workload.selector.parse().ok()?;
        let uses: Vec<&Use> = self.workload.uses.iter().filter(|one| one.reads(&self.data)).collect();
        let own: Vec<&Value> = pods.iter().filter(|pod| is_running(pod) && selector.matches(&labels(pod))).collect();
        let old = |pod: &&&Value, one: &Use| started(pod, one).is_some_and(|started| started < self.data.written);
        let stale = own.iter().filter(|pod| uses.iter().any(|one| old(pod, one))).count();
        if stale == 0 {
            return None;
        }
        // The way that is the hardest to explain away first.
        let worst = uses.iter().filter(|one| own.iter().any(|pod| old(&pod, one))).min_by_key(|one| one.way)?;
        let how = match worst.way {
            Way::Env => "reads it as environment",
            Way::SubPath => "mounts a part of it, which is never renewed",
            Way::Mount => "mounts it: its files are renewed, but a program may have read them at its start",
        };
        let (data, workload) = (&self.data, &self.workload.object);
        Some(self.notice(
            NoticeReason::StalePods,
            format!(
                "{stale} of {} pods started before {data} was last written ({} at {}); container {} {how}; \
                 `kubectl rollout restart {}/{} -n {}` renews them",
                own.len(),
                data.manager,
                data.written,
                worst.container,
                workload.gvk.kind.to_lowercase(),
                workload.name,
                self.namespace(),
                data = data.object,
            ),
        ))
    }

    /// The pods could not be read.
    pub(crate) fn untold(&self, reason: &str) -> Notice {
        let message =
            format!("whether its pods started before {} was last written cannot be told: {reason}", self.data.object);
        self.notice(NoticeReason::LookupForbidden, message)
    }

    fn notice(&self, reason: NoticeReason, message: String) -> Notice {
        Notice { object: Some(self.workload.object.clone()), reason, message }
    }
}

/// What has ended, or is about to, runs with nothing for long.
fn is_running(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    !matches!(phase, Some("Succeeded" | "Failed")) && pod.pointer("/metadata/deletionTimestamp").is_none()
}

fn labels(pod: &Value) -> BTreeMap<String, String> {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// When the container came to the data that it has: with its own last start, where that is told, else with the pod's.
fn started(pod: &Value, one: &Use) -> Option<Timestamp> {
    let own = || {
        let mut statuses =
            list(&pod["status"], "containerStatuses").chain(list(&pod["status"], "initContainerStatuses"));
        let status = statuses.find(|status| is(status, "name", &one.container))?;
        time(status.pointer("/state/running/startedAt"))
    };
    let own = if one.init { None } else { own() };
    own.or_else(|| time(pod.pointer("/status/startTime"))).or_else(|| time(pod.pointer("/metadata/creationTimestamp")))
}

#[cfg(test)]
mod tests {
    use super::super::object::Gvk;
    use super::*;
    use serde_json::json;

    const INSTALL: &str = "2026-01-01T00:00:00Z";
    const EDIT: &str = "2026-01-02T00:00:00Z";
    const RESTART: &str = "2026-01-03T00:00:00Z";

    fn object(api_version: &str, kind: &str, name: &str) -> ObjectRef {
        ObjectRef { gvk: Gvk::new(api_version, kind), namespace: Some("prod".into()), name: name.into() }
    }

    fn data(kind: &str, name: &str, written: &str) -> Option<Sighting> {
        let live = json!({"metadata": {"managedFields": [
            {"manager": "helm", "operation": "Update", "time": INSTALL, "fieldsV1": {"f:data": {".": {}}, "f:metadata": {"f:labels": {"f:a": {}}}}},
            {"manager": "kubectl-edit", "operation": "Update", "time": written, "fieldsV1": {"f:data": {"f:mode": {}}}},
            {"manager": "labeller", "operation": "Update", "time": RESTART, "fieldsV1": {"f:metadata": {"f:labels": {"f:b": {}}}}}]}});
        sighting(&object("v1", kind, name), &live)
    }

    fn deployment(pod: Value, written: &str) -> Option<Sighting> {
        let live = json!({
            "metadata": {"managedFields": [{"manager": "helm", "operation": "Update", "time": written, "fieldsV1": {"f:spec": {"f:template": {"f:spec": {}}}}}]},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": pod}}});
        sighting(&object("apps/v1", "Deployment", "web"), &live)
    }

    fn by_env() -> Value {
        json!({"containers": [{"name": "web", "envFrom": [{"configMapRef": {"name": "settings"}}]}]})
    }

    fn pod(started: &str) -> Value {
        json!({"metadata": {"name": "web-1", "labels": {"app": "web", "hash": "1"}, "creationTimestamp": INSTALL},
            "status": {"phase": "Running", "startTime": started}})
    }

    fn suspects_of(sightings: [Option<Sighting>; 2]) -> Vec<Suspect> {
        suspects(&sightings.into_iter().flatten().collect::<Vec<_>>())
    }

    fn told(suspects: &[Suspect], pods: &[Value]) -> Vec<String> {
        suspects.iter().filter_map(|suspect| suspect.among(pods)).map(|notice| notice.message).collect()
    }

    #[test]
    fn pods_older_than_what_they_read_are_stale() {
        let suspects = suspects_of([data("ConfigMap", "settings", EDIT), deployment(by_env(), INSTALL)]);
        assert_eq!((suspects.len(), suspects[0].namespace(), suspects[0].selector()), (1, "prod", "app=web"));
        let mut other = pod(INSTALL);
        other["metadata"]["labels"]["app"] = json!("db");
        let mut done = pod(INSTALL);
        done["status"]["phase"] = json!("Succeeded");
        let pods = [pod(INSTALL), pod(RESTART), other, done];
        assert_eq!(
            told(&suspects, &pods),
            [
                "1 of 2 pods started before ConfigMap/settings was last written (kubectl-edit at 2026-01-02T00:00:00Z); container web \
              reads it as environment; `kubectl rollout restart deployment/web -n prod` renews them"
            ]
        );
        assert_eq!(told(&suspects, &[pod(RESTART)]), [""; 0]);
    }

    #[test]
    fn a_container_that_started_anew_has_read_it_anew() {
        let suspects = suspects_of([data("ConfigMap", "settings", EDIT), deployment(by_env(), INSTALL)]);
        let mut restarted = pod(INSTALL);
        restarted["status"]["containerStatuses"] =
            json!([{"name": "web", "state": {"running": {"startedAt": RESTART}}}]);
        assert_eq!(told(&suspects, &[restarted.clone()]), [""; 0]);
        restarted["status"]["containerStatuses"][0]["name"] = json!("sidecar");
        assert_eq!(told(&suspects, &[restarted]).len(), 1);
    }

    #[test]
    fn no_pods_are_asked_about_without_a_reason() {
        for (sightings, why) in [
            ([data("ConfigMap", "settings", INSTALL), deployment(by_env(), INSTALL)], "written with the workload"),
            ([data("ConfigMap", "settings", EDIT), deployment(by_env(), RESTART)], "rolled out since"),
            ([data("ConfigMap", "others", EDIT), deployment(by_env(), INSTALL)], "another one"),
            ([data("Secret", "settings", EDIT), deployment(by_env(), INSTALL)], "another kind"),
            (
                [data("ConfigMap", "settings", EDIT), deployment(json!({"containers": [{"name": "web"}]}), INSTALL)],
                "not read",
            ),
        ] {
            assert_eq!(suspects_of(sightings), [], "{why}");
        }
    }

    #[test]
    fn a_roll_out_is_dated_by_the_earlier_of_two_signs() {
        let live = |written: &str, rolled: &str| {
            let live = json!({
                "metadata": {"managedFields": [{"manager": "helm", "operation": "Update", "time": written, "fieldsV1": {"f:spec": {"f:template": {"f:spec": {}}}}}]},
                "status": {"conditions": [{"type": "Available", "lastUpdateTime": INSTALL}, {"type": "Progressing", "reason": "NewReplicaSetAvailable", "lastUpdateTime": rolled}]}});
            rolled_out(&live).unwrap().to_string()
        };
        assert_eq!(live(RESTART, INSTALL), INSTALL, "an upgrade that left the template as it was");
        assert_eq!(live(INSTALL, RESTART), INSTALL, "a scaling");
    }

    #[test]
    fn every_way_to_read_is_known() {
        let pod = json!({
            "volumes": [
                {"name": "whole", "configMap": {"name": "a"}},
                {"name": "secret", "secret": {"secretName": "b"}},
                {"name": "mixed", "projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "d"}}, {"serviceAccountToken": {}}]}},
                {"name": "unused", "configMap": {"name": "e"}},
                {"name": "scratch", "emptyDir": {}}],
            "initContainers": [
                {"name": "init", "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "f", "key": "k"}}}]},
                {"name": "sidecar", "restartPolicy": "Always", "envFrom": [{"secretRef": {"name": "f"}}]}],
            "containers": [{"name": "web",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "g", "key": "k"}}}],
                "volumeMounts": [{"name": "whole", "subPath": "x"}, {"name": "secret"}, {"name": "mixed"}, {"name": "scratch"}]}]});
        let found: Vec<String> = uses(&pod)
            .iter()
            .map(|one| format!("{} {} {} {:?} {}", one.kind, one.name, one.container, one.way, one.init))
            .collect();
        assert_eq!(
            found,
            [
                "ConfigMap a web SubPath false",
                "ConfigMap c web Mount false",
                "ConfigMap g web Env false",
                "Secret b web Mount false",
                "Secret d web Mount false",
                "Secret f init Env true",
                "Secret f sidecar Env false",
            ]
        );
    }

    #[test]
    fn selectors_are_written_as_queries() {
        let text = selector(&json!({"matchLabels": {"a": "1"}, "matchExpressions": [
            {"key": "b", "operator": "In", "values": ["x", "y"]}, {"key": "c", "operator": "DoesNotExist"}]}));
        assert_eq!(text.as_deref(), Some("a=1,b in (x,y),!c"));
        assert!(text.unwrap().parse::<Selector>().is_ok());
        assert_eq!(selector(&json!({})), None, "all pods of the namespace are nobody's");
    }
}
