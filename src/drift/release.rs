//! Helm's release records: metadata, which revision counts, and what a payload says. Knows nothing of the cluster that keeps them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

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

impl RecordMeta {
    /// By the label, which is what Helm itself goes by when it looks for the deployed revision.
    pub(crate) fn status(&self) -> Status {
        self.labels.get("status").map_or(Status::Unknown, |status| Status::of(status))
    }
}

/// A decoded release record.
#[derive(Clone, PartialEq)]
pub(crate) struct Release {
    pub(crate) name: String,
    /// Empty in odd records; then the storage namespace counts.
    pub(crate) namespace: String,
    pub(crate) revision: u64,
    /// Verbatim: `deployed`, `failed`, …, or what no Helm writes.
    pub(crate) status: String,
    pub(crate) description: String,
    pub(crate) last_deployed: Option<Timestamp>,
    /// When an uninstall began.
    pub(crate) deleted: Option<Timestamp>,
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

impl Release {
    pub(crate) fn status(&self) -> Status {
        Status::of(&self.status)
    }

    /// Where Helm puts objects that name no namespace: the release's own, which Flux lets differ from the storage namespace.
    pub(crate) fn target_namespace<'a>(&'a self, storage_namespace: &'a str) -> &'a str {
        if self.namespace.is_empty() { storage_namespace } else { &self.namespace }
    }

    /// `name-version`, as `helm list` shows it.
    pub(crate) fn chart(&self) -> Option<String> {
        match (&self.chart_name, &self.chart_version) {
            (Some(name), Some(version)) => Some(format!("{name}-{version}")),
            (name, version) => name.clone().or_else(|| version.clone()),
        }
    }
}

/// Without the manifest and the description: a manifest holds Secrets, and no payload reaches a log.
impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Release")
            .field("name", &self.name)
            .field("namespace", &self.namespace)
            .field("revision", &self.revision)
            .field("status", &self.status)
            .field("manifest_bytes", &self.manifest.len())
            .finish_non_exhaustive()
    }
}

/// `info.status` of a record (helm/helm `pkg/release/common/status.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Deployed,
    Uninstalled,
    Superseded,
    Failed,
    Uninstalling,
    PendingInstall,
    PendingUpgrade,
    PendingRollback,
    /// `unknown`, or a word that no Helm writes.
    Unknown,
}

impl Status {
    pub(crate) fn of(text: &str) -> Self {
        match text {
            "deployed" => Self::Deployed,
            "uninstalled" => Self::Uninstalled,
            "superseded" => Self::Superseded,
            "failed" => Self::Failed,
            "uninstalling" => Self::Uninstalling,
            "pending-install" => Self::PendingInstall,
            "pending-upgrade" => Self::PendingUpgrade,
            "pending-rollback" => Self::PendingRollback,
            _ => Self::Unknown,
        }
    }

    /// Helm's lock. `uninstalling` is none (helm/helm `IsPending`).
    pub(crate) fn is_pending(self) -> bool {
        matches!(self, Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback)
    }
}

/// The records of one release. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) key: ReleaseKey,
    newest: RecordMeta,
    /// Highest revision first.
    older: Vec<RecordMeta>,
}

impl History {
    /// Groups records by release, in order of the key. Revisions are ordered as integers: the API's own order is that of text.
    pub(crate) fn group(records: Vec<RecordMeta>) -> Vec<Self> {
        let mut releases: BTreeMap<ReleaseKey, Vec<RecordMeta>> = BTreeMap::new();
        for record in records {
            releases.entry(record.key.clone()).or_default().push(record);
        }
        let grouped = releases.into_iter().filter_map(|(key, mut records)| {
            records.sort_by(|a, b| (a.revision, &a.object_name).cmp(&(b.revision, &b.object_name)));
            let newest = records.pop()?;
            records.reverse();
            Some(Self { key, newest, older: records })
        });
        grouped.collect()
    }

    /// The highest revision, whatever its status: Helm's `Last`.
    pub(crate) fn newest(&self) -> &RecordMeta {
        &self.newest
    }

    /// All records, highest revision first.
    pub(crate) fn records(&self) -> impl Iterator<Item = &RecordMeta> {
        std::iter::once(&self.newest).chain(&self.older)
    }

    /// Records labelled deployed, highest revision first. More than one is a contradiction.
    pub(crate) fn deployed(&self) -> impl Iterator<Item = &RecordMeta> {
        self.records().filter(|record| record.status() == Status::Deployed)
    }

    /// Failed revisions before the newest, highest first: what they set may have stayed behind (design.md §5.4).
    pub(crate) fn failed(&self) -> impl Iterator<Item = &RecordMeta> {
        self.older.iter().filter(|record| record.status() == Status::Failed)
    }

    pub(crate) fn revision(&self, revision: u64) -> Option<&RecordMeta> {
        self.records().find(|record| record.revision == revision)
    }

    /// The record whose manifest is compared: with `wanted` that one (`None`: it is not kept), else the highest deployed one
    /// when the newest is pending or failed, since that is what Helm's next upgrade starts from, else the newest.
    ///
    /// `newest_status` is the payload's, as a label can be rewritten by hand.
    pub(crate) fn judged(&self, newest_status: Status, wanted: Option<u64>) -> Option<&RecordMeta> {
        if let Some(wanted) = wanted {
            return self.revision(wanted);
        }
        let unfinished = newest_status.is_pending() || newest_status == Status::Failed;
        let deployed = if unfinished { self.older_with(Status::Deployed) } else { None };
        Some(deployed.unwrap_or(&self.newest))
    }

    /// What to roll back to when the newest revision is no good: the highest older deployed one, else superseded one,
    /// as `helm upgrade --atomic` chooses.
    pub(crate) fn rollback_target(&self) -> Option<u64> {
        self.older_with(Status::Deployed).or_else(|| self.older_with(Status::Superseded)).map(|record| record.revision)
    }

    fn older_with(&self, status: Status) -> Option<&RecordMeta> {
        self.older.iter().find(|record| record.status() == status)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record of release `nucleus` in `prod` as Helm leaves it, with a consistent set of labels.
    pub(crate) fn record(revision: u64, status: &str) -> RecordMeta {
        let labels = [("name", "nucleus"), ("owner", "helm"), ("status", status)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut labels = BTreeMap::from(labels);
        labels.insert("version".to_owned(), revision.to_string());
        RecordMeta {
            key: ReleaseKey { namespace: "prod".into(), name: "nucleus".into() },
            object_name: format!("sh.helm.release.v1.nucleus.v{revision}"),
            revision,
            labels,
            resource_version: revision.to_string(),
            owners: vec![RecordOwner { manager: "Helm".into(), time: Some("2026-11-30T10:00:00Z".parse().unwrap()) }],
            label_owners: BTreeMap::new(),
        }
    }

    /// `11=deployed 12=failed`
    pub(crate) fn history(records: &str) -> History {
        let records = records.split(' ').map(|one| {
            let (revision, status) = one.split_once('=').unwrap();
            record(revision.parse().unwrap(), status)
        });
        History::group(records.collect()).remove(0)
    }

    #[test]
    fn revisions_are_ordered_as_integers() {
        let history = history("1=superseded 10=deployed 2=superseded 9=failed");
        let order: Vec<u64> = history.records().map(|record| record.revision).collect();
        assert_eq!(order, [10, 9, 2, 1]);
        assert_eq!(history.newest().revision, 10);
        assert_eq!(history.failed().map(|record| record.revision).collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn releases_are_told_apart_by_namespace_and_name() {
        let mut other = record(3, "deployed");
        other.key.namespace = "dev".into();
        let mut dotted = record(1, "deployed");
        dotted.key.name = "nucleus.v2".into();
        let groups = History::group(vec![record(1, "superseded"), other, dotted, record(2, "deployed")]);
        let named: Vec<_> = groups
            .iter()
            .map(|one| (one.key.namespace.as_str(), one.key.name.as_str(), one.newest().revision))
            .collect();
        assert_eq!(named, [("dev", "nucleus", 3), ("prod", "nucleus", 2), ("prod", "nucleus.v2", 1)]);
    }

    #[test]
    fn the_judged_revision_is_the_deployed_one_only_while_the_newest_is_unfinished() {
        for (records, wanted, judged, rollback) in [
            ("1=deployed", None, Some(1), None),
            ("11=superseded 12=deployed", None, Some(12), Some(11)),
            ("11=deployed 12=failed", None, Some(11), Some(11)),
            ("10=deployed 11=failed 12=failed", None, Some(10), Some(10)),
            ("11=deployed 12=pending-upgrade", None, Some(11), Some(11)),
            ("11=deployed 12=pending-rollback", None, Some(11), Some(11)),
            ("1=pending-install", None, Some(1), None),
            ("1=failed", None, Some(1), None),
            ("1=failed 2=pending-upgrade", None, Some(2), None),
            ("9=superseded 10=superseded 11=failed 12=failed", None, Some(12), Some(10)),
            ("11=deployed 12=superseded", None, Some(12), Some(11)),
            ("11=deployed 12=uninstalling", None, Some(12), Some(11)),
            ("11=deployed 12=paused", None, Some(12), Some(11)),
            ("11=superseded 12=deployed", Some(11), Some(11), Some(11)),
            ("11=superseded 12=deployed", Some(7), None, Some(11)),
        ] {
            let history = history(records);
            let status = history.newest().status();
            assert_eq!(history.judged(status, wanted).map(|record| record.revision), judged, "{records}");
            assert_eq!(history.rollback_target(), rollback, "{records}");
        }
    }

    #[test]
    fn the_payload_outranks_the_label_about_the_newest_status() {
        let history = history("11=deployed 12=failed");
        assert_eq!(history.judged(Status::Deployed, None).map(|record| record.revision), Some(12));
    }
}
