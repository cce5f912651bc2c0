//! One release on its way from its records to its line in the report. Pure but for the types it is fed with: what was read
//! comes in, nothing is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::drift::finding::{Mode, Notice, ReleaseReport, Storage};
use crate::drift::live::ApiTable;
use crate::drift::manifest;
use crate::drift::object::ObjectKey;
use crate::drift::payload::DecodeError;
use crate::drift::release::{History, RecordMeta, Release};
use crate::drift::rules::Rulings;
use crate::drift::state::{Asked, Comparison, Facts, State};
use crate::ledger::{Balance, Ledger};
use crate::task::{Task, Terms};

/// What was read of one release.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) history: History,
    pub(crate) newest: Result<Release, DecodeError>,
    /// The record that is compared.
    pub(crate) judged: RecordMeta,
    /// Its release, when it is not the newest record.
    pub(crate) other: Option<Result<Release, DecodeError>>,
    /// Failed revisions that are still stored, while the newest is deployed.
    pub(crate) failed: Vec<Release>,
}

impl Loaded {
    /// The release whose manifest is compared.
    pub(crate) fn judged_release(&self) -> Result<&Release, &DecodeError> {
        self.other.as_ref().unwrap_or(&self.newest).as_ref()
    }
}

/// A release whose objects are being compared.
pub(crate) struct Case {
    pub(crate) loaded: Loaded,
    pub(crate) ledger: Ledger,
    state: State,
    mode: Mode,
    suspended: bool,
    /// How these two came about.
    notices: Vec<Notice>,
}

/// What is asked of one release, and what its objects are held to.
pub(crate) struct Orders {
    pub(crate) asked: Asked,
    pub(crate) rulings: Rulings,
    /// How the mode and the suspension came about.
    pub(crate) notices: Vec<Notice>,
}

impl Case {
    /// Works out the desired objects and what has to be read for them.
    pub(crate) fn open(
        loaded: Loaded,
        index: usize,
        storage: Storage,
        orders: Orders,
        apis: &ApiTable,
    ) -> (Self, Vec<Task>) {
        let facts = Facts {
            history: &loaded.history,
            storage,
            newest: loaded.newest.as_ref(),
            judged: &loaded.judged,
            judged_release: loaded.judged_release(),
        };
        let Orders { asked, rulings, notices } = orders;
        let (mode, suspended) = (asked.mode, asked.suspended);
        let state = State::new(&facts, asked);
        let mut case = Self { state, ledger: Ledger::default(), mode, suspended, notices, loaded };
        let Ok(release) = case.loaded.judged_release() else { return (case, Vec::new()) };
        let comparison = case.state.comparison();
        if comparison == Comparison::Nothing {
            (case.ledger.counts.hooks, case.ledger.counts.crds) = (release.hooks, release.crds);
            return (case, Vec::new());
        }
        let namespace = case.loaded.history.key.namespace.as_str();
        let bodies = |release: &Release| bodies(release, namespace, apis);
        let upgrade =
            if case.state.is_between_revisions() { case.loaded.newest.as_ref().ok().map(bodies) } else { None };
        let failed: Vec<BTreeMap<ObjectKey, Value>> = case.loaded.failed.iter().map(bodies).collect();
        let mut desired = manifest::desired_objects(release, namespace, apis);
        let mut ledger = Ledger::open(&mut desired);
        (ledger.counts.hooks, ledger.counts.crds) = (release.hooks, release.crds);
        ledger.from_newest = upgrade.as_ref().map(|_| 0);
        let terms = Arc::new(Terms {
            hand: case.state.hand().clone(),
            apply_method: release.apply_method,
            has_subcharts: release.has_subcharts,
            comparison,
            release: (release.name.clone(), release.target_namespace(namespace).to_owned()),
            rulings,
        });
        let task = |desired: manifest::DesiredObject| {
            let key = desired.object.key();
            let of_failed = failed.iter().filter_map(|bodies| bodies.get(&key).cloned()).collect();
            let task = Task::new(index, &terms, desired).with_failed(of_failed);
            match &upgrade {
                Some(bodies) => task.with_upgrade(bodies.get(&key).cloned()),
                None => task,
            }
        };
        let tasks = desired.objects.into_iter().map(task).collect();
        case.ledger = ledger;
        (case, tasks)
    }

    /// Whether what was found could come from a release that moved while it was read.
    pub(crate) fn needs_second_look(&self) -> bool {
        self.state.is_contradictory() || self.ledger.has_drift()
    }

    /// The release's line; `None` when it is shown with `--show-all` only and that was not asked for.
    pub(crate) fn report(self, storage: Storage, show_all: bool) -> Option<ReleaseReport> {
        let Balance { counts, tally, findings, notices: told } = self.ledger.close();
        let settled = self.state.settle(&tally);
        if !settled.shown && !show_all {
            return None;
        }
        let mut notices = self.notices;
        notices.extend(told);
        notices.extend(settled.notices);
        let newest = self.loaded.newest.as_ref().ok();
        let judged = self.loaded.judged_release().ok();
        let label = |name: &str| self.loaded.history.newest().labels.get(name).cloned();
        Some(ReleaseReport {
            name: self.loaded.history.key.name.clone(),
            namespace: self.loaded.history.key.namespace.clone(),
            revision: Some(self.loaded.history.newest().revision),
            judged_revision: judged.map(|_| self.loaded.judged.revision),
            status: newest.map(|release| release.status.clone()).or_else(|| label("status")),
            chart: judged.and_then(Release::chart),
            app_version: judged.and_then(|release| release.app_version.clone()),
            last_deployed: newest.and_then(|release| release.last_deployed),
            storage,
            apply_method: judged.map(|release| release.apply_method),
            ready: settled.ready,
            stalled: settled.stalled,
            reason: settled.reason,
            message: settled.message,
            mode: self.mode,
            suspended: self.suspended,
            exit: settled.exit,
            objects: counts,
            findings,
            notices,
        })
    }
}

/// The objects that one revision wants.
pub(crate) fn bodies(release: &Release, storage_namespace: &str, apis: &ApiTable) -> BTreeMap<ObjectKey, Value> {
    let desired = manifest::desired_objects(release, storage_namespace, apis);
    desired.objects.into_iter().map(|object| (object.object.key(), object.body)).collect()
}
