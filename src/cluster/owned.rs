//! Live objects that name a Helm release as theirs, by their metadata alone. Knows nothing of whether that release exists.

use std::collections::HashMap;

use serde::Deserialize;

use super::Cluster;
use super::client::{METADATA_LIST, ReadError};
use super::listing::{Item, Listing, PAGE};
use super::observe::MANAGED_BY_HELM;
use super::path::{self, Query};
use crate::drift::live::Served;
use crate::drift::object::ObjectRef;
use crate::drift::release::ReleaseKey;

/// An object, and the release that its annotations name: the namespace is the one that Helm puts objects in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) object: ObjectRef,
    pub(crate) release: ReleaseKey,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: Option<String>,
    annotations: Option<HashMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

#[derive(Deserialize)]
struct OwnerReference {
    #[serde(default)]
    controller: bool,
}

impl Cluster {
    /// Those of one kind, in one namespace or all.
    pub(crate) async fn owned(&self, served: &Served, namespace: Option<&str>) -> Result<Vec<Owned>, ReadError> {
        let query = Query::new(&path::collection(served, namespace)).with("labelSelector", MANAGED_BY_HELM);
        let listing = Listing::new(self.client(), query, PAGE, METADATA_LIST);
        let kind = served.clone();
        listing.all(&served.plural, move |item: Item<Metadata>| owned(item.metadata, &kind)).await
    }
}

/// What a controller made from an object of Helm's may carry a copy of its annotations, as ReplicaSets do; it is not Helm's.
fn owned(metadata: Metadata, kind: &Served) -> Option<Owned> {
    if metadata.owner_references.unwrap_or_default().iter().any(|owner| owner.controller) {
        return None;
    }
    let annotations = metadata.annotations.unwrap_or_default();
    let release = ReleaseKey {
        namespace: annotations.get("meta.helm.sh/release-namespace")?.clone(),
        name: annotations.get("meta.helm.sh/release-name")?.clone(),
    };
    let object = ObjectRef { gvk: kind.gvk.clone(), namespace: metadata.namespace, name: metadata.name };
    Some(Owned { object, release })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake::Fake;
    use super::*;
    use crate::drift::object::Gvk;

    #[tokio::test]
    async fn objects_that_name_a_release_are_found_by_their_metadata() {
        let named = |name: &str, more: serde_json::Value| {
            let mut metadata = json!({"name": name, "namespace": "prod",
                "annotations": {"meta.helm.sh/release-name": "nucleus", "meta.helm.sh/release-namespace": "prod"}});
            metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"metadata": metadata})
        };
        let items = json!([
            named("web", json!({})),
            named("web-5d8", json!({"ownerReferences": [{"kind": "Deployment", "controller": true}]})),
            named("db", json!({"ownerReferences": [{"kind": "Team"}]})),
            named("stray", json!({"annotations": {"meta.helm.sh/release-name": "nucleus"}})),
            {"metadata": {"name": "other"}},
        ]);
        let fake = Fake::start(move |asked| {
            assert!(asked.accept.contains("PartialObjectMetadataList"));
            (200, json!({"metadata": {}, "items": items}).to_string())
        });
        let cluster = Cluster::new(fake.client().await, None, 2);
        let served = Served {
            gvk: Gvk::new("apps/v1", "ReplicaSet"),
            plural: "replicasets".into(),
            namespaced: true,
            listable: true,
        };
        let owned = cluster.owned(&served, Some("prod")).await.unwrap();
        let names: Vec<&str> = owned.iter().map(|one| one.object.name.as_str()).collect();
        assert_eq!(names, ["web", "db"]);
        assert_eq!(owned[0].release, ReleaseKey { namespace: "prod".into(), name: "nucleus".into() });
        assert_eq!(
            fake.asked(),
            ["/apis/apps/v1/namespaces/prod/replicasets?labelSelector=app.kubernetes.io/managed-by=Helm&limit=500"]
        );
    }
}
