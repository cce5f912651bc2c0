//! The check of all releases in scope: records, payloads, desired objects, live objects, findings, report.
//! Joins the Kubernetes edge and the core; knows nothing of how a report is shown.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;

use crate::case::{Case, Loaded};
use crate::cluster::storage::Records;
use crate::cluster::{Cluster, ClusterError};
use crate::config::{Namespaces, Scope};
use crate::drift::finding::{
    Condition, Mode, Notice, NoticeReason, ObjectCounts, Reason, ReleaseReport, Report, Storage, Trouble, TroubleReason,
};
use crate::drift::live::ApiTable;
use crate::drift::payload::{self, DecodeError, Limits};
use crate::drift::release::{History, RecordMeta, Release, ReleaseKey, Status};
use crate::drift::similar;
use crate::drift::state::{Asked, PENDING_TIMEOUT};
use crate::inspector::Inspector;
use crate::ledger::Ledger;
use crate::task::Task;

/// How often a release that moves while it is read is judged again before its findings are called unverified (design.md §4).
const SECOND_LOOKS: usize = 2;

/// Up to this many releases are looked at again one by one; more by one listing of all.
const FEW: usize = 3;

/// Checks every release in scope.
///
/// A release whose reading fails becomes a line of the report, never an abort of the others; trouble that leaves no verdict at all
/// becomes an entry of `errors`.
pub(crate) async fn survey(inspector: &Inspector<'_>, scope: &Scope, show_all: bool, now: Timestamp) -> Report {
    let found = Survey { inspector, cluster: inspector.cluster, scope, show_all, now }.run().await;
    Report {
        cluster: inspector.cluster.info().await,
        started_at: now,
        finished_at: now,
        releases: found.releases,
        notices: found.notices,
        errors: found.errors,
    }
}

struct Survey<'a> {
    inspector: &'a Inspector<'a>,
    cluster: &'a Cluster,
    scope: &'a Scope,
    show_all: bool,
    now: Timestamp,
}

#[derive(Default)]
struct Found {
    releases: Vec<ReleaseReport>,
    notices: Vec<Notice>,
    errors: Vec<Trouble>,
}

/// What reading one release came to.
enum Load {
    Open(Box<Loaded>),
    /// Its record could not be read: nothing more can be said.
    Closed(Box<ReleaseReport>),
}

/// Why a payload says nothing.
enum Unread {
    Corrupt(DecodeError),
    /// The record, and the reason.
    Unreadable(String),
}

impl Survey<'_> {
    async fn run(&self) -> Found {
        self.inspector.progress.stage("reading release records");
        let mut found = Found::default();
        let namespace = self.namespace();
        let (histories, apis) = futures::join!(self.histories(namespace.as_deref(), &mut found), self.cluster.apis());
        let histories = match histories {
            Ok(histories) => histories,
            Err(error) => {
                found.errors.push(trouble(&error, namespace.as_deref()));
                return found;
            }
        };
        if histories.is_empty() {
            return found;
        }
        let apis = match apis {
            Ok(apis) => apis,
            Err(error) => {
                found.errors.push(trouble(&error, None));
                return found;
            }
        };
        found.notices.extend(apis.failures().map(|(_, reason)| Notice {
            object: None,
            reason: NoticeReason::DiscoveryFailed,
            message: reason.to_owned(),
        }));
        let (mut cases, closed) = self.judge(histories, &apis).await;
        for look in 0.. {
            let Moved { anew, gone } = self.moved(&cases).await;
            cases.retain(|case| !gone.contains(&case.loaded.history.key));
            found.errors.extend(gone.iter().filter(|key| self.is_named(&key.name)).map(gone_meanwhile));
            if anew.is_empty() {
                break;
            }
            let keys: Vec<ReleaseKey> = anew.iter().map(|history| history.key.clone()).collect();
            if look == SECOND_LOOKS {
                cases
                    .iter_mut()
                    .filter(|case| keys.contains(&case.loaded.history.key))
                    .for_each(|case| case.ledger.unsettle());
                break;
            }
            self.inspector.progress.stage("checking again what changed while it was read");
            cases.retain(|case| !keys.contains(&case.loaded.history.key));
            let (again, closed) = self.judge(anew, &apis).await;
            cases.extend(again);
            found.releases.extend(closed);
        }
        found.releases.extend(closed);
        found.releases.extend(cases.into_iter().filter_map(|case| case.report(self.scope.storage, self.show_all)));
        found.releases.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        found
    }

    fn namespace(&self) -> Option<String> {
        match &self.scope.namespaces {
            Namespaces::All => None,
            Namespaces::One(namespace) => {
                Some(namespace.clone().unwrap_or_else(|| self.cluster.client().default_namespace().to_owned()))
            }
        }
    }

    /// The releases in scope; what is named and not there goes to `found.errors`.
    async fn histories(&self, namespace: Option<&str>, found: &mut Found) -> Result<Vec<History>, ClusterError> {
        let only = match self.scope.releases.as_slice() {
            [one] => Some(one.as_str()),
            _ => None,
        };
        let listed = self.records(namespace, only).await?;
        found.notices.extend(listed.oddities.iter().map(|odd| Notice {
            object: None,
            reason: NoticeReason::NotCompared,
            message: format!("{} in namespace {} is no release record: {}", odd.object_name, odd.namespace, odd.reason),
        }));
        let mut histories = History::group(listed.records);
        if !self.scope.releases.is_empty() {
            self.look_for_named(&mut histories, namespace, found).await;
        }
        if let Some(selector) = &self.scope.selector {
            histories.retain(|history| selector.matches(&history.newest().labels));
            if histories.is_empty() && found.errors.is_empty() {
                found.errors.push(Trouble {
                    reason: TroubleReason::NothingFound,
                    message: "no release matches the selector".to_owned(),
                    namespace: namespace.map(str::to_owned),
                });
            }
        }
        Ok(histories)
    }

    /// The records in scope. Where they may not be listed, a named revision can still be read by its own name.
    async fn records(&self, namespace: Option<&str>, only: Option<&str>) -> Result<Records, ClusterError> {
        let listed = self.cluster.records(self.scope.storage, namespace, only).await;
        match (&listed, namespace, only, self.scope.revision) {
            (Err(error), Some(namespace), Some(name), Some(revision)) if error.reason() == TroubleReason::Forbidden => {
                let key = ReleaseKey { namespace: namespace.to_owned(), name: name.to_owned() };
                let record = self.cluster.record(self.scope.storage, &key, revision).await?;
                Ok(Records { records: record.into_iter().collect(), oddities: Vec::new() })
            }
            _ => listed,
        }
    }

    /// Keeps the named releases, and says which are not there, and what might have been meant.
    async fn look_for_named(&self, histories: &mut Vec<History>, namespace: Option<&str>, found: &mut Found) {
        let names = &self.scope.releases;
        let absent: Vec<&String> =
            names.iter().filter(|name| !histories.iter().any(|history| &history.key.name == *name)).collect();
        let mut known: BTreeSet<String> = histories.iter().map(|history| history.key.name.clone()).collect();
        histories.retain(|history| names.contains(&history.key.name));
        if !absent.is_empty()
            && names.len() == 1
            && let Ok(all) = self.cluster.records(self.scope.storage, namespace, None).await
        {
            known = all.records.into_iter().map(|record| record.key.name).collect();
        }
        for name in absent {
            let elsewhere = self.stored_elsewhere(namespace, name).await;
            let (reason, message) = match elsewhere {
                Some(driver) => (
                    TroubleReason::OtherDriver,
                    format!(
                        "release {name:?} is stored by another driver: add --storage-driver {driver}, or set HELM_DRIVER={driver}"
                    ),
                ),
                None => (TroubleReason::NotFound, similar::not_found(name, namespace, &known)),
            };
            found.errors.push(Trouble { reason, message, namespace: namespace.map(str::to_owned) });
        }
    }

    async fn stored_elsewhere(&self, namespace: Option<&str>, name: &str) -> Option<&'static str> {
        let (other, word) = match self.scope.storage {
            Storage::Secret => (Storage::ConfigMap, "configmap"),
            Storage::ConfigMap => (Storage::Secret, "secret"),
            Storage::Sql | Storage::Files => return None,
        };
        let found = self.cluster.records(other, namespace, Some(name)).await.ok()?;
        (!found.records.is_empty()).then_some(word)
    }

    /// Reads and judges releases, from payload to findings.
    async fn judge(&self, histories: Vec<History>, apis: &Arc<ApiTable>) -> (Vec<Case>, Vec<ReleaseReport>) {
        self.inspector.progress.stage(&format!("reading {} releases", histories.len()));
        let loads: Vec<Load> =
            stream::iter(histories).map(|history| self.load(history)).buffered(self.cluster.parallel()).collect().await;
        let (mut loaded, mut closed) = (Vec::new(), Vec::new());
        for load in loads {
            match load {
                Load::Open(one) => loaded.push(*one),
                Load::Closed(report) => closed.push(*report),
            }
        }
        let (mut cases, mut tasks) = self.open(loaded, apis);
        let mut apis = Arc::clone(apis);
        if tasks.iter().any(Task::is_unserved) {
            // A kind that a table from disk does not know may have been defined since.
            let fresh = self.cluster.apis_fresh().await.unwrap_or_else(|_| Arc::clone(&apis));
            if !Arc::ptr_eq(&fresh, &apis) {
                (cases, tasks) = self.open(cases.into_iter().map(|case| case.loaded).collect(), &fresh);
                apis = fresh;
            }
        }
        let mut ledgers: Vec<&mut Ledger> = cases.iter_mut().map(|case| &mut case.ledger).collect();
        self.inspector.compare(&mut ledgers, tasks, &apis).await;
        (cases, closed)
    }

    fn open(&self, loaded: Vec<Loaded>, apis: &ApiTable) -> (Vec<Case>, Vec<Task>) {
        let (mut cases, mut tasks) = (Vec::new(), Vec::new());
        for one in loaded {
            let asked = self.asked(&one.history.key.name);
            let (case, own) = Case::open(one, cases.len(), self.scope.storage, asked, apis);
            cases.push(case);
            tasks.extend(own);
        }
        (cases, tasks)
    }

    fn asked(&self, name: &str) -> Asked {
        Asked {
            now: self.now,
            pending_timeout: PENDING_TIMEOUT,
            mode: Mode::Warn,
            suspended: false,
            named: self.is_named(name),
            expected: false,
            expected_revision: None,
            revision_named: self.scope.revision.is_some(),
            helm_managers: Vec::new(),
        }
    }

    fn is_named(&self, name: &str) -> bool {
        self.scope.releases.iter().any(|named| named == name)
    }

    async fn load(&self, history: History) -> Load {
        let newest = match self.release(history.newest()).await {
            Ok(release) => Ok(release),
            Err(Unread::Corrupt(error)) => Err(error),
            Err(Unread::Unreadable(reason)) => return self.closed(&history, reason),
        };
        let status = newest.as_ref().map_or(Status::Unknown, Release::status);
        let Some(judged) = history.judged(status, self.scope.revision).cloned() else {
            let kept: Vec<String> = history.records().map(|record| record.revision.to_string()).collect();
            let wanted = self.scope.revision.unwrap_or_default();
            return self.closed(&history, format!("revision {wanted} is not kept; there are {}", kept.join(", ")));
        };
        let other = if judged.object_name == history.newest().object_name {
            None
        } else {
            match self.release(&judged).await {
                Ok(release) => Some(Ok(release)),
                Err(Unread::Corrupt(error)) => Some(Err(error)),
                Err(Unread::Unreadable(reason)) => return self.closed(&history, reason),
            }
        };
        let mut failed = Vec::new();
        if status == Status::Deployed && other.is_none() {
            for record in history.failed() {
                failed.extend(self.release(record).await.ok());
            }
        }
        Load::Open(Box::new(Loaded { history, newest, judged, other, failed }))
    }

    async fn release(&self, record: &RecordMeta) -> Result<Release, Unread> {
        let unreadable = |why: &dyn std::fmt::Display| {
            Unread::Unreadable(format!("record {} cannot be read: {why}", record.object_name))
        };
        let payload = self.cluster.payload(self.scope.storage, record).await.map_err(|error| unreadable(&error))?;
        match tokio::task::spawn_blocking(move || payload::decode(&payload, Limits::default())).await {
            Ok(decoded) => decoded.map_err(Unread::Corrupt),
            Err(_) => Err(unreadable(&"internal error")),
        }
    }

    /// A release of which nothing can be told.
    fn closed(&self, history: &History, message: String) -> Load {
        Load::Closed(Box::new(ReleaseReport {
            name: history.key.name.clone(),
            namespace: history.key.namespace.clone(),
            revision: Some(history.newest().revision),
            judged_revision: None,
            status: history.newest().labels.get("status").cloned(),
            chart: None,
            app_version: None,
            last_deployed: None,
            storage: self.scope.storage,
            apply_method: None,
            ready: Condition::Unknown,
            stalled: Condition::False,
            reason: Reason::Unverified,
            message,
            mode: Mode::Warn,
            suspended: false,
            exit: 2,
            objects: ObjectCounts::default(),
            findings: Vec::new(),
            notices: Vec::new(),
        }))
    }

    /// Releases with drift whose newest record is not the one that was judged any more (design.md §4).
    async fn moved(&self, cases: &[Case]) -> Moved {
        let drifted: Vec<&History> =
            cases.iter().filter(|case| case.needs_second_look()).map(|case| &case.loaded.history).collect();
        // A listing that fails now says nothing against what was found.
        let mut looked_at: Vec<ReleaseKey> = Vec::new();
        let mut now: Vec<History> = Vec::new();
        if drifted.len() > FEW {
            if let Ok(listed) = self.records(self.namespace().as_deref(), None).await {
                looked_at.extend(drifted.iter().map(|history| history.key.clone()));
                now = History::group(listed.records);
            }
        } else {
            for history in &drifted {
                let ReleaseKey { namespace, name } = &history.key;
                if let Ok(listed) = self.records(Some(namespace), Some(name)).await {
                    looked_at.push(history.key.clone());
                    now.extend(History::group(listed.records));
                }
            }
        }
        let gone = looked_at.into_iter().filter(|key| !now.iter().any(|history| history.key == *key)).collect();
        let moved = |history: &History| {
            drifted.iter().any(|before| {
                let (then, newest) = (before.newest(), history.newest());
                before.key == history.key
                    && (then.object_name != newest.object_name || then.resource_version != newest.resource_version)
            })
        };
        now.retain(moved);
        Moved { anew: now, gone }
    }
}

/// What became of releases while they were read.
struct Moved {
    /// Their records as they are now.
    anew: Vec<History>,
    /// No record is left: what was missing of them is no drift.
    gone: Vec<ReleaseKey>,
}

fn gone_meanwhile(key: &ReleaseKey) -> Trouble {
    Trouble {
        reason: TroubleReason::NotFound,
        message: format!("release {:?} was uninstalled while it was read", key.name),
        namespace: Some(key.namespace.clone()),
    }
}

pub(crate) fn trouble(error: &ClusterError, namespace: Option<&str>) -> Trouble {
    Trouble { reason: error.reason(), message: error.to_string(), namespace: namespace.map(str::to_owned) }
}
