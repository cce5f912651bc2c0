//! Helm's release records: metadata, which revision counts, and the decoded payload. Knows nothing of the cluster that keeps them.

use jiff::Timestamp;
use std::collections::BTreeMap;

use super::finding::ApplyMethod;

/// Release identity: the namespace its records are stored in, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ReleaseKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Who wrote `.data.release` of a record, by its managedFields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordOwner {
    pub(crate) manager: String,
    pub(crate) time: Option<Timestamp>,
}

/// One release record without its payload: what a metadata-only listing tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordMeta {
    pub(crate) key: ReleaseKey,
    /// Name of the Secret or ConfigMap.
    pub(crate) object_name: String,
    /// From the name's suffix `.v<digits>`; the label when the name has none.
    pub(crate) revision: u64,
    /// Labels of the object: `name`, `owner`, `status`, `version`, and the user's own.
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) resource_version: String,
    /// Owners of `.data.release`; more than one only after a shared apply.
    pub(crate) owners: Vec<RecordOwner>,
    /// Owners of each label (label name -> managers), for the labels that helm-drift reads.
    pub(crate) label_owners: BTreeMap<String, Vec<String>>,
}

/// A decoded release record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Release {
    pub(crate) name: String,
    /// Empty in odd records; then the storage namespace counts.
    pub(crate) namespace: String,
    pub(crate) revision: u64,
    /// Verbatim: `deployed`, `failed`, …, or what no Helm writes.
    pub(crate) status: String,
    pub(crate) description: String,
    pub(crate) last_deployed: Option<Timestamp>,
    pub(crate) chart_name: Option<String>,
    pub(crate) chart_version: Option<String>,
    pub(crate) app_version: Option<String>,
    /// Whether the chart had dependencies: subcharts are not in the record (helm/helm#8501).
    pub(crate) has_subcharts: bool,
    pub(crate) apply_method: ApplyMethod,
    pub(crate) manifest: String,
    /// Hooks, and files below `crds/`, are counted, never compared.
    pub(crate) hooks: usize,
    pub(crate) crds: usize,
}
