//! The check of all releases in scope: records, payloads, desired objects, live objects, findings, report.
//! Joins the Kubernetes edge and the core; knows nothing of how a report is shown.

mod absent;
mod helm_releases;
mod history;

use std::cell::OnceCell;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;

pub(crate) use self::history::history;

use self::absent::Listed;
use crate::case::{Case, Loaded, Orders, bodies};
use crate::cluster::storage::Records;
use crate::cluster::{Cluster, ClusterError};
use crate::config::{Config, Namespaces, Scope};
use crate::drift::coverage::{self, Looked};
use crate::drift::finding::{
    Condition, Mode, Notice, NoticeReason, ObjectCounts, Reason, ReleaseReport, Report, Storage, Trouble, TroubleReason,
};
use crate::drift::flux::HelmRelease;
use crate::drift::live::ApiTable;
use crate::drift::payload::{self, DecodeError, Limits};
use crate::drift::policy::{self, Policy, Wishes};
use crate::drift::release::{History, RecordMeta, Release, ReleaseKey, Status};
use crate::drift::rules::{Hit, Rules, Rulings};
use crate::drift::state::Asked;
use crate::inspector::Inspector;
use crate::ledger::{Ledger, Seen};
use crate::settings::Settings;
use crate::task::Task;

/// How often a release that moves while it is read is judged again before its findings are called unverified (design.md §4).
const SECOND_LOOKS: usize = 2;

/// Up to this many releases are looked at again one by one; more by one listing of all.
const FEW: usize = 3;

/// Checks every release in scope.
///
/// A release whose reading fails becomes a line of the report, never an abort of the others; trouble that leaves no verdict at all
/// becomes an entry of `errors`. Beside the report: which ignore rules met which findings.
pub(crate) async fn survey(inspector: &Inspector<'_>, config: &Config, now: Timestamp) -> (Report, Vec<Hit>) {
    let Look { report, hits, .. } = look(inspector, config, now).await;
    (report, hits)
}

/// A check, with what a correction needs beside the report.
pub(crate) struct Look {
    pub(crate) report: Report,
    hits: Vec<Hit>,
    /// Releases that were judged; only where the inspector keeps what it saw.
    pub(crate) examined: Vec<Examined>,
}

/// What was read of one release.
pub(crate) struct Examined {
    pub(crate) loaded: Loaded,
    /// Its objects with findings, as they were judged.
    pub(crate) seen: Seen,
}

/// The same check, with what was seen where the inspector keeps it.
pub(crate) async fn look(inspector: &Inspector<'_>, config: &Config, now: Timestamp) -> Look {
    let found = Survey::new(inspector, config, now).run().await;
    let report = Report {
        cluster: inspector.cluster.info().await,
        started_at: now,
        finished_at: now,
        releases: found.releases,
        notices: found.notices,
        errors: found.errors,
    };
    Look { report, hits: found.hits, examined: found.examined }
}

struct Survey<'a> {
    inspector: &'a Inspector<'a>,
    cluster: &'a Cluster,
    scope: &'a Scope,
    settings: &'a Settings,
    /// `--mode`
    mode: Option<Mode>,
    show_all: bool,
    now: Timestamp,
}

#[derive(Default)]
struct Found {
    releases: Vec<ReleaseReport>,
    notices: Vec<Notice>,
    errors: Vec<Trouble>,
    examined: Vec<Examined>,
    /// Ignore rules that met a finding.
    hits: Vec<Hit>,
}

/// What is known of the cluster before any release is judged.
struct Surroundings {
    apis: Arc<ApiTable>,
    flux: Vec<HelmRelease>,
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

impl<'a> Survey<'a> {
    fn new(inspector: &'a Inspector<'a>, config: &'a Config, now: Timestamp) -> Self {
        Self {
            inspector,
            cluster: inspector.cluster,
            scope: &config.scope,
            settings: &config.settings,
            mode: config.mode,
            show_all: config.output.show_all,
            now,
        }
    }

    async fn run(&self) -> Found {
        self.inspector.progress.stage("reading release records");
        let mut found = Found::default();
        let namespace = self.namespace();
        let (histories, apis) = futures::join!(self.histories(namespace.as_deref(), &mut found), self.cluster.apis());
        let (histories, listed) = match histories {
            Ok(histories) => histories,
            Err(error) => {
                found.errors.push(trouble(&error, namespace.as_deref()));
                return found;
            }
        };
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
        let around = Surroundings { flux: self.helm_releases(&apis, &mut found).await, apis };
        self.report_absent(&listed, &around, &mut found).await;
        if !histories.is_empty() {
            self.report_all(histories, &around, &mut found).await;
        }
        found.releases.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let looked = Looked {
            namespace: namespace.as_deref(),
            names: &self.scope.releases,
            whole: self.scope.selector.is_none() && self.scope.revision.is_none() && found.errors.is_empty(),
            releases: &found.releases,
        };
        found.notices.extend(coverage::notices(&self.settings.rules.ignore, &found.hits, self.now, looked));
        found
    }

    /// Judges releases, and again those that change while they are read.
    async fn report_all(&self, histories: Vec<History>, around: &Surroundings, found: &mut Found) {
        let (mut cases, closed) = self.judge(histories, around).await;
        for look in 0.. {
            let Moved { anew, gone } = self.moved(&cases).await;
            cases.retain(|case| !gone.contains(&case.loaded.history.key));
            found.errors.extend(gone.iter().filter(|key| self.is_wanted(key)).map(gone_meanwhile));
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
            let (again, closed) = self.judge(anew, around).await;
            cases.extend(again);
            found.releases.extend(closed);
        }
        found.releases.extend(closed);
        for mut case in cases {
            found.hits.append(&mut case.ledger.hits);
            if self.inspector.keep {
                let seen = std::mem::take(&mut case.ledger.seen);
                found.examined.push(Examined { loaded: case.loaded.clone(), seen });
            }
            found.releases.extend(case.report(self.scope.storage, self.show_all));
        }
    }

    fn namespace(&self) -> Option<String> {
        match &self.scope.namespaces {
            Namespaces::All => None,
            Namespaces::One(namespace) => {
                Some(namespace.clone().unwrap_or_else(|| self.cluster.client().default_namespace().to_owned()))
            }
        }
    }

    /// The releases in scope that have a record, and what is known of the others.
    async fn histories(
        &self,
        namespace: Option<&str>,
        found: &mut Found,
    ) -> Result<(Vec<History>, Listed), ClusterError> {
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
        let mut missing =
            Listed { existing: histories.iter().map(|one| one.key.clone()).collect(), ..Listed::default() };
        if !self.scope.releases.is_empty() {
            self.look_for_named(&mut histories, namespace, &mut missing).await;
        }
        if let Some(selector) = &self.scope.selector {
            histories.retain(|history| selector.matches(&history.newest().labels));
            if histories.is_empty() && missing.missing.is_empty() {
                found.errors.push(Trouble {
                    reason: TroubleReason::NothingFound,
                    message: "no release matches the selector".to_owned(),
                    namespace: namespace.map(str::to_owned),
                });
            }
        }
        Ok((histories, missing))
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

    /// Keeps the named releases, and notes which are not there, and what might have been meant.
    async fn look_for_named(&self, histories: &mut Vec<History>, namespace: Option<&str>, listed: &mut Listed) {
        let names = &self.scope.releases;
        let has_record = |name: &&String| histories.iter().any(|history| history.key.name == **name);
        listed.missing = names.iter().filter(|name| !has_record(name)).cloned().collect();
        listed.known = histories.iter().map(|history| history.key.name.clone()).collect();
        histories.retain(|history| names.contains(&history.key.name));
        if !listed.missing.is_empty()
            && names.len() == 1
            && let Ok(all) = self.cluster.records(self.scope.storage, namespace, None).await
        {
            listed.known = all.records.into_iter().map(|record| record.key.name).collect();
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
    async fn judge(&self, histories: Vec<History>, around: &Surroundings) -> (Vec<Case>, Vec<ReleaseReport>) {
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
        let mut apis = Arc::clone(&around.apis);
        let (mut cases, mut tasks) = self.open(loaded, &around.flux, &apis);
        if tasks.iter().any(Task::is_unserved) {
            // A kind that a table from disk does not know may have been defined since.
            let fresh = self.cluster.apis_fresh().await.unwrap_or_else(|_| Arc::clone(&apis));
            if !Arc::ptr_eq(&fresh, &apis) {
                (cases, tasks) = self.open(cases.into_iter().map(|case| case.loaded).collect(), &around.flux, &fresh);
                apis = fresh;
            }
        }
        self.compare(&mut cases, tasks, &apis).await;
        if cases.iter().any(|case| case.ledger.is_outdated)
            && let Ok(fresh) = self.cluster.apis_fresh().await
            && !Arc::ptr_eq(&fresh, &apis)
        {
            // The table from disk was older than what is served.
            (cases, tasks) = self.open(cases.into_iter().map(|case| case.loaded).collect(), &around.flux, &fresh);
            self.compare(&mut cases, tasks, &fresh).await;
        }
        (cases, closed)
    }

    async fn compare(&self, cases: &mut [Case], tasks: Vec<Task>, apis: &ApiTable) {
        let mut ledgers: Vec<&mut Ledger> = cases.iter_mut().map(|case| &mut case.ledger).collect();
        self.inspector.compare(&mut ledgers, tasks, apis).await;
        self.inspector.look_for_stale_pods(&mut ledgers, apis).await;
    }

    fn open(&self, loaded: Vec<Loaded>, flux: &[HelmRelease], apis: &ApiTable) -> (Vec<Case>, Vec<Task>) {
        let (mut cases, mut tasks) = (Vec::new(), Vec::new());
        for one in loaded {
            let orders = self.orders(&one, flux, apis);
            let (case, own) = Case::open(one, cases.len(), self.scope.storage, orders, apis);
            cases.push(case);
            tasks.extend(own);
        }
        (cases, tasks)
    }

    fn orders(&self, one: &Loaded, flux: &[HelmRelease], apis: &ApiTable) -> Orders {
        let key = &one.history.key;
        let record = one.history.newest();
        let expected = self.settings.expected(key);
        let claims = flux.iter().filter(|claim| claim.release == *key);
        let objects = OnceCell::new();
        let labelled = |claim: &HelmRelease| {
            let bodies = objects.get_or_init(|| {
                one.judged_release().map(|release| bodies(release, &key.namespace, apis)).unwrap_or_default()
            });
            bodies.values().any(|body| claim.is_named_by(body))
        };
        let (flux, strangers): (Vec<&HelmRelease>, Vec<&HelmRelease>) =
            claims.partition(|claim| claim.is_manager_by(record) || labelled(claim));
        let Policy { mode, suspended, mut notices } =
            policy::policy(Some(record), Wishes { expected, flux: &flux, ..self.wishes() });
        notices.extend(strangers.into_iter().map(policy::about_stranger));
        let asked = Asked {
            now: self.now,
            pending_timeout: self.settings.pending_timeout,
            mode,
            suspended,
            named: self.is_named(&key.name),
            expected: expected.is_some() || !flux.is_empty(),
            expected_revision: expected.and_then(|expected| expected.revision),
            revision_named: self.scope.revision.is_some(),
            helm_managers: self.settings.helm_managers.clone(),
        };
        let rulings = Rulings {
            rules: self.rules(),
            release: key.clone(),
            now: self.now,
            flux: flux.iter().flat_map(|one| one.ignores.clone()).collect(),
        };
        Orders { asked, rulings, notices }
    }

    fn wishes(&self) -> Wishes<'_> {
        Wishes {
            flag: self.mode,
            mode: self.settings.mode,
            correct_by_label: self.settings.correct_by_label,
            ..Wishes::default()
        }
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.settings.rules)
    }

    fn is_named(&self, name: &str) -> bool {
        self.scope.releases.iter().any(|named| named == name)
    }

    /// Whether its absence is trouble.
    fn is_wanted(&self, key: &ReleaseKey) -> bool {
        self.is_named(&key.name) || self.settings.expected(key).is_some()
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
        let expected = self.settings.expected(&history.key);
        let Policy { mode, suspended, notices } =
            policy::policy(Some(history.newest()), Wishes { expected, ..self.wishes() });
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
            reason: if mode == Mode::Disabled { Reason::Disabled } else { Reason::Unverified },
            message,
            mode,
            suspended,
            exit: if suspended || mode == Mode::Disabled { 0 } else { 2 },
            objects: ObjectCounts::default(),
            findings: Vec::new(),
            notices,
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
