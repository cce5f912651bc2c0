//! Helm's records in the cluster: metadata of all of them, the payload of one. Knows nothing of what a payload holds.

use std::collections::{BTreeMap, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::task::spawn_blocking;

use super::client::{Get, JSON, METADATA_LIST, ReadError};
use super::listing::{Item, Listing, PAGE, malformed};
use super::path::{self, Query};
use super::{Cluster, ClusterError};
use crate::drift::finding::Storage;
use crate::drift::live::Served;
use crate::drift::object::Gvk;
use crate::drift::release::{RecordMeta, RecordOwner, ReleaseKey};

/// One record's metadata; a server that does not know the form answers with the whole object.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Prefix of a record's name: `sh.helm.release.v1.<release>.v<revision>` (helm/helm `pkg/storage/storage.go`).
const PREFIX: &str = "sh.helm.release.v1.";
/// The same in any version of the storage form.
const FAMILY: &str = "sh.helm.release.v";

/// What a listing of records found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Records {
    /// By namespace, release, revision.
    pub(crate) records: Vec<RecordMeta>,
    /// What carries Helm's label but cannot be placed; nothing is dropped in silence.
    pub(crate) oddities: Vec<Oddity>,
}

/// An object among the records that is none, as far as can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Oddity {
    pub(crate) namespace: String,
    pub(crate) object_name: String,
    pub(crate) reason: String,
}

impl Cluster {
    /// Metadata of the records: of one namespace or of all, of one release or of all.
    pub(crate) async fn records(
        &self,
        storage: Storage,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<Records, ClusterError> {
        let served = served(storage)?;
        let failed = |error| ClusterError::Records { storage, namespace: namespace.map(str::to_owned), error };
        let owner = match name {
            Some(name) => format!("owner=helm,name={name}"),
            None => "owner=helm".to_owned(),
        };
        let mut query = Query::new(&path::collection(&served, namespace)).with("labelSelector", &owner);
        if storage == Storage::Secret {
            query = query.with("fieldSelector", "type=helm.sh/release.v1");
        }
        let listing = Listing::new(&self.client, query, PAGE, METADATA_LIST);
        let pick = |item: Item<Metadata>| Some(record(item.metadata));
        let mut found = Records::default();
        for answer in listing.all("the records", pick).await.map_err(failed)? {
            match answer {
                Ok(record) => found.records.push(record),
                Err(oddity) => found.oddities.push(oddity),
            }
        }
        // The server lists by text: v1, v10, v2.
        found.records.sort_by(|a, b| (&a.key, a.revision, &a.object_name).cmp(&(&b.key, b.revision, &b.object_name)));
        Ok(found)
    }

    /// Metadata of one revision's record, for whoever may `get` but not `list`; `None`: there is no such record.
    pub(crate) async fn record(
        &self,
        storage: Storage,
        key: &ReleaseKey,
        revision: u64,
    ) -> Result<Option<RecordMeta>, ClusterError> {
        let served = served(storage)?;
        let object_name = format!("{PREFIX}{}.v{revision}", key.name);
        let failed = |error| ClusterError::Record {
            storage,
            namespace: key.namespace.clone(),
            object_name: object_name.clone(),
            error,
        };
        let Some(path) = path::object(&served, Some(&key.namespace), &object_name) else { return Ok(None) };
        let body = match self.client.get(&Get { path, accept: METADATA, compress: !self.client.is_local() }).await {
            Err(ReadError::NotFound(_)) => return Ok(None),
            answer => answer.map_err(failed)?,
        };
        let item: Item<Metadata> =
            serde_json::from_slice(&body).map_err(|error| failed(malformed(&object_name, &error)))?;
        record(item.metadata).map(Some).map_err(|oddity| failed(ReadError::Malformed(oddity.reason)))
    }

    /// `data.release` of a record without the API's own encoding: Helm's base64 text. Empty when the key is missing.
    pub(crate) async fn payload(&self, storage: Storage, record: &RecordMeta) -> Result<Vec<u8>, ReadError> {
        let nowhere = || ReadError::NotFound(format!("record {:?} is not kept in the cluster", record.object_name));
        let served = served(storage).map_err(|_| nowhere())?;
        let path = path::object(&served, Some(&record.key.namespace), &record.object_name).ok_or_else(nowhere)?;
        // gzip would save a quarter and cost more than that: the payload is compressed already.
        let body = self.client.get(&Get { path, accept: JSON, compress: false }).await?;
        let name = record.object_name.clone();
        let parsed = spawn_blocking(move || payload(storage, &name, &body));
        parsed.await.unwrap_or_else(|_| Err(ReadError::Malformed("internal error while a record was read".to_owned())))
    }
}

/// The kind that holds the records.
fn served(storage: Storage) -> Result<Served, ClusterError> {
    let (kind, plural) = match storage {
        Storage::Secret => ("Secret", "secrets"),
        Storage::ConfigMap => ("ConfigMap", "configmaps"),
        Storage::Sql | Storage::Files => return Err(ClusterError::NotInCluster(storage)),
    };
    Ok(Served { gvk: Gvk::new("v1", kind), plural: plural.to_owned(), namespaced: true, listable: true })
}

fn payload(storage: Storage, name: &str, body: &[u8]) -> Result<Vec<u8>, ReadError> {
    #[derive(Deserialize)]
    struct Object {
        data: Option<Data>,
    }
    #[derive(Deserialize)]
    struct Data {
        release: Option<String>,
    }
    let object: Object = serde_json::from_slice(body).map_err(|error| malformed(name, &error))?;
    let text = object.data.and_then(|data| data.release).unwrap_or_default();
    if storage == Storage::ConfigMap {
        return Ok(text.into_bytes());
    }
    STANDARD.decode(&text).map_err(|_| ReadError::Malformed(format!("data of Secret {name:?} is not base64")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    resource_version: String,
    managed_fields: Option<Vec<Managed>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Managed {
    #[serde(default)]
    manager: String,
    time: Option<String>,
    fields_v1: Option<Fields>,
}

/// As much of `fieldsV1` as is read here.
#[derive(Deserialize)]
struct Fields {
    #[serde(rename = "f:data")]
    data: Option<HashMap<String, IgnoredAny>>,
    #[serde(rename = "f:metadata")]
    metadata: Option<MetadataFields>,
}

#[derive(Deserialize)]
struct MetadataFields {
    #[serde(rename = "f:labels")]
    labels: Option<HashMap<String, IgnoredAny>>,
}

fn record(metadata: Metadata) -> Result<RecordMeta, Oddity> {
    let Metadata { name: object_name, namespace, labels, resource_version, managed_fields } = metadata;
    let labels = labels.unwrap_or_default();
    let oddity = |reason: &str| Oddity {
        namespace: namespace.clone(),
        object_name: object_name.clone(),
        reason: reason.to_owned(),
    };
    if object_name.starts_with(FAMILY) && !object_name.starts_with(PREFIX) {
        return Err(oddity("is stored in a newer form than this program knows"));
    }
    let Some((name, revision)) = named(&object_name).or_else(|| labelled(&labels)) else {
        return Err(oddity(
            "carries the label owner=helm, but neither its name nor its labels tell release and revision",
        ));
    };
    let managed = managed_fields.unwrap_or_default();
    Ok(RecordMeta {
        owners: owners(&managed),
        label_owners: label_owners(&managed),
        key: ReleaseKey { namespace, name },
        object_name,
        revision,
        labels,
        resource_version,
    })
}

/// Release and revision of a record's name. Releases may hold dots, even end in `.v2`: the last `.v<digits>` counts.
fn named(object_name: &str) -> Option<(String, u64)> {
    let (name, revision) = object_name.strip_prefix(PREFIX)?.rsplit_once(".v")?;
    Some((name.to_owned(), digits(revision)?)).filter(|(name, _)| !name.is_empty())
}

fn labelled(labels: &BTreeMap<String, String>) -> Option<(String, u64)> {
    let name = labels.get("name").filter(|name| !name.is_empty())?;
    Some((name.clone(), digits(labels.get("version")?)?))
}

fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn owners(managed: &[Managed]) -> Vec<RecordOwner> {
    managed
        .iter()
        .filter(|entry| {
            entry
                .fields_v1
                .as_ref()
                .and_then(|fields| fields.data.as_ref())
                .is_some_and(|data| data.contains_key("f:release"))
        })
        .map(|entry| RecordOwner {
            manager: entry.manager.clone(),
            time: entry.time.as_deref().and_then(|time| time.parse::<Timestamp>().ok()),
        })
        .collect()
}

/// Of the labels that helm-drift reads: its own, and `status`.
fn label_owners(managed: &[Managed]) -> BTreeMap<String, Vec<String>> {
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in managed {
        let labels = entry
            .fields_v1
            .as_ref()
            .and_then(|fields| fields.metadata.as_ref())
            .and_then(|metadata| metadata.labels.as_ref());
        for label in labels.into_iter().flat_map(HashMap::keys).filter_map(|label| label.strip_prefix("f:")) {
            if label == "status" || label.starts_with("helm-drift/") {
                owners.entry(label.to_owned()).or_default().push(entry.manager.clone());
            }
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::{Value, json};

    use super::super::fake::{Asked, Fake, status};
    use super::*;
    use crate::drift::finding::TroubleReason;

    fn item(name: &str, labels: &Value) -> Value {
        json!({"metadata": {"name": name, "namespace": "prod", "resourceVersion": "7", "labels": labels}})
    }

    fn meta(value: Value) -> Metadata {
        serde_json::from_value::<Item<Metadata>>(value).unwrap().metadata
    }

    #[test]
    fn revision_comes_from_the_last_v_of_the_name() {
        let rows = [
            ("sh.helm.release.v1.nucleus.v12", Some(("nucleus", 12))),
            ("sh.helm.release.v1.shop.v2.v1", Some(("shop.v2", 1))),
            ("sh.helm.release.v1.shop.v2", Some(("shop", 2))),
            ("sh.helm.release.v1.a.b.v3", Some(("a.b", 3))),
            ("sh.helm.release.v1.shop", None),
            ("sh.helm.release.v1.shop.v", None),
            ("sh.helm.release.v1.shop.vx", None),
            ("sh.helm.release.v1.shop.v-1", None),
            ("sh.helm.release.v1..v1", None),
            ("shop.v1", None),
        ];
        for (name, expected) in rows {
            assert_eq!(named(name), expected.map(|(name, revision)| (name.to_owned(), revision)), "{name}");
        }
    }

    #[test]
    fn a_name_that_tells_nothing_leaves_the_labels_and_else_is_said() {
        let record = super::record(meta(item("odd", &json!({"name": "shop", "version": "4"})))).unwrap();
        assert_eq!((record.key.name.as_str(), record.revision, record.object_name.as_str()), ("shop", 4, "odd"));
        let oddity = super::record(meta(item("odd", &json!({"owner": "helm"})))).unwrap_err();
        assert!(oddity.reason.contains("owner=helm"), "{oddity:?}");
        let labels = json!({"name": "shop", "version": "4"});
        let oddity = super::record(meta(item("sh.helm.release.v2.shop.v4", &labels))).unwrap_err();
        assert!(oddity.reason.contains("newer"), "{oddity:?}");
    }

    #[test]
    fn owners_of_payload_and_labels_are_told() {
        let labels = json!({"f:labels": {".": {}, "f:status": {}, "f:owner": {}, "f:helm-drift/mode": {}}});
        let mut value = item("sh.helm.release.v1.shop.v1", &json!({}));
        value["metadata"]["managedFields"] = json!([
            {"manager": "Helm", "operation": "Update", "time": "2026-11-30T10:00:00Z",
             "fieldsV1": {"f:data": {".": {}, "f:release": {}}, "f:metadata": labels, "f:type": {}}},
            {"manager": "kubectl-label", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:helm-drift/suspend": {}}}}},
            {"manager": "wiped"},
        ]);
        let record = super::record(meta(value)).unwrap();
        let time = "2026-11-30T10:00:00Z".parse().ok();
        assert_eq!(record.owners, [RecordOwner { manager: "Helm".to_owned(), time }]);
        let owners: Vec<_> =
            record.label_owners.iter().map(|(label, managers)| (label.as_str(), managers.join(","))).collect();
        let expected = [("helm-drift/mode", "Helm"), ("helm-drift/suspend", "kubectl-label"), ("status", "Helm")];
        assert_eq!(owners, expected.map(|(label, manager)| (label, manager.to_owned())));
    }

    #[test]
    fn payload_loses_the_apis_own_base64_only() {
        let secret = json!({"data": {"release": "SDRzSUFBQUE="}}).to_string();
        assert_eq!(payload(Storage::Secret, "x", secret.as_bytes()).unwrap(), b"H4sIAAAA");
        let map = json!({"data": {"release": "H4sIAAAA"}}).to_string();
        assert_eq!(payload(Storage::ConfigMap, "x", map.as_bytes()).unwrap(), b"H4sIAAAA");
        for missing in [json!({}), json!({"data": null}), json!({"data": {}}), json!({"data": {"release": ""}})] {
            assert_eq!(payload(Storage::Secret, "x", missing.to_string().as_bytes()).unwrap(), b"", "{missing}");
        }
        let error = payload(Storage::Secret, "x", br#"{"data": "hunter2"}"#).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[tokio::test]
    async fn records_are_listed_by_metadata_page_by_page_in_integer_order() {
        let expired = AtomicUsize::new(0);
        let fake = Fake::start(move |asked| {
            assert_eq!(asked.accept, METADATA_LIST);
            let record =
                |n: u64| item(&format!("sh.helm.release.v1.shop.v{n}"), &json!({"name": "shop", "owner": "helm"}));
            let (items, token) = match (asked.path.ends_with("continue=next"), expired.fetch_add(1, Ordering::Relaxed))
            {
                (true, 1) => return status(410, "too old"),
                (true, _) => (vec![record(2), item("stranger", &json!({"owner": "helm"}))], ""),
                (false, _) => (vec![record(1), record(10)], "next"),
            };
            (200, json!({"kind": "SecretList", "metadata": {"continue": token}, "items": items}).to_string())
        });
        let cluster = Cluster::new(fake.client().await, None, 4);
        let found = cluster.records(Storage::Secret, Some("prod"), Some("shop")).await.unwrap();
        assert_eq!(found.records.iter().map(|record| record.revision).collect::<Vec<_>>(), [1, 2, 10]);
        assert_eq!(found.oddities.len(), 1);
        let asked = fake.asked();
        assert_eq!(asked.len(), 4);
        let expected = "/api/v1/namespaces/prod/secrets?labelSelector=owner=helm,name=shop&fieldSelector=type=helm.sh/release.v1&limit=500";
        assert_eq!(asked[0], expected);
    }

    #[tokio::test]
    async fn what_is_forbidden_names_the_remedy() {
        let fake = Fake::start(|_: &Asked| {
            status(403, "secrets is forbidden: User \"limited\" cannot list resource \"secrets\"")
        });
        let cluster = Cluster::new(fake.client().await, None, 4);
        let error = cluster.records(Storage::Secret, None, None).await.unwrap_err();
        assert_eq!(error.reason(), TroubleReason::Forbidden);
        let text = error.to_string();
        assert!(
            text.starts_with("secrets is forbidden: User \"limited\" cannot list") && text.contains("with -n"),
            "{text}"
        );
        let key = ReleaseKey { namespace: "prod".to_owned(), name: "shop".to_owned() };
        let text = cluster.record(Storage::Secret, &key, 3).await.unwrap_err().to_string();
        assert!(text.ends_with("the verb get on secrets is needed"), "{text}");
        assert_eq!(
            fake.asked()[1],
            "/api/v1/secrets?labelSelector=owner=helm&fieldSelector=type=helm.sh/release.v1&limit=500"
        );
        let error = cluster.records(Storage::Sql, None, None).await.unwrap_err();
        assert_eq!(error.reason(), TroubleReason::OtherDriver);
    }
}
