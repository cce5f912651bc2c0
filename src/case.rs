//! One release on its way from its records to its line in the report. Pure but for the types it is fed with: what was read
//! comes in, nothing is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::drift::classify::{self, Candidate, Circumstances, Judgement, Wanted};
use crate::drift::finding::{
    Cause, Change, Finding, Mode, Notice, NoticeReason, ObjectCounts, ReleaseReport, Storage, Verdict,
};
use crate::drift::live::{ApiTable, Observation};
use crate::drift::manifest::{self, Access, Desired, DesiredObject};
use crate::drift::object::{ObjectKey, ObjectRef};
use crate::drift::payload::DecodeError;
use crate::drift::release::{History, RecordMeta, Release};
use crate::drift::schema::Schema;
use crate::drift::state::{Asked, Comparison, Facts, State};
use crate::drift::tally::Tally;

/// What was read of one release.
#[derive(Debug)]
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
    state: State,
    counts: ObjectCounts,
    findings: Vec<(usize, Finding)>,
    notices: Vec<Notice>,
    /// Documents of the manifest that cannot be read.
    problems: Vec<String>,
    /// Differences of live to a pending or failed newest revision.
    from_newest: Option<usize>,
}

/// One object to compare, with all that its judgement needs.
pub(crate) struct Task {
    /// Place of the release among the cases.
    pub(crate) case: usize,
    pub(crate) desired: DesiredObject,
    /// In the version that it is read in.
    pub(crate) object: ObjectRef,
    state: Arc<TaskState>,
    upgrade: Option<Option<Value>>,
    failed: Vec<Value>,
}

/// What the tasks of one release share.
struct TaskState {
    hand: classify::Hand,
    apply_method: crate::drift::finding::ApplyMethod,
    has_subcharts: bool,
    comparison: Comparison,
    release: (String, String),
}

/// What became of one object.
pub(crate) struct Outcome {
    candidates: Vec<Candidate>,
    notices: Vec<Notice>,
    kind: OutcomeKind,
    /// Differences to the pending or failed newest revision.
    from_newest: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutcomeKind {
    Compared,
    Missing,
    Unreadable,
}

impl Case {
    /// Works out the desired objects and what has to be read for them.
    pub(crate) fn open(
        loaded: Loaded,
        index: usize,
        storage: Storage,
        asked: Asked,
        apis: &ApiTable,
    ) -> (Self, Vec<Task>) {
        let facts = Facts {
            history: &loaded.history,
            storage,
            newest: loaded.newest.as_ref(),
            judged: &loaded.judged,
            judged_release: loaded.judged_release(),
        };
        let state = State::new(&facts, asked);
        let mut case = Self {
            state,
            counts: ObjectCounts::default(),
            findings: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
            from_newest: None,
            loaded,
        };
        let Ok(release) = case.loaded.judged_release() else { return (case, Vec::new()) };
        case.counts.hooks = release.hooks;
        case.counts.crds = release.crds;
        let comparison = case.state.comparison();
        if comparison == Comparison::Nothing {
            return (case, Vec::new());
        }
        let namespace = case.loaded.history.key.namespace.as_str();
        let bodies = |release: &Release| -> BTreeMap<ObjectKey, Value> {
            let desired = manifest::desired_objects(release, namespace, apis);
            desired.objects.into_iter().map(|object| (object.object.key(), object.body)).collect()
        };
        let upgrade =
            if case.state.is_between_revisions() { case.loaded.newest.as_ref().ok().map(bodies) } else { None };
        let failed: Vec<BTreeMap<ObjectKey, Value>> = case.loaded.failed.iter().map(bodies).collect();
        let Desired { objects, untrackable, notices, problems } = manifest::desired_objects(release, namespace, apis);
        case.counts.total = objects.len() + untrackable + problems.len();
        case.counts.untrackable = untrackable;
        case.counts.unreadable = problems.len();
        case.from_newest = upgrade.as_ref().map(|_| 0);
        let shared = Arc::new(TaskState {
            hand: case.state.hand().clone(),
            apply_method: release.apply_method,
            has_subcharts: release.has_subcharts,
            comparison,
            release: (release.name.clone(), release.target_namespace(namespace).to_owned()),
        });
        case.notices = notices;
        case.problems = problems;
        let task = |desired: DesiredObject| {
            let key = desired.object.key();
            Task {
                case: index,
                state: Arc::clone(&shared),
                upgrade: upgrade.as_ref().map(|bodies| bodies.get(&key).cloned()),
                failed: failed.iter().filter_map(|bodies| bodies.get(&key).cloned()).collect(),
                object: desired.as_served().map_or_else(|| desired.object.clone(), |(object, _)| object),
                desired,
            }
        };
        let tasks = objects.into_iter().map(task).collect();
        (case, tasks)
    }

    /// Takes in what became of the object at `place` in the manifest.
    pub(crate) fn add(&mut self, place: usize, outcome: Outcome, settled: Vec<Finding>) {
        match outcome.kind {
            OutcomeKind::Compared => self.counts.compared += 1,
            OutcomeKind::Missing => self.counts.missing += 1,
            OutcomeKind::Unreadable => self.counts.unreadable += 1,
        }
        self.notices.extend(outcome.notices);
        self.findings.extend(settled.into_iter().map(|finding| (place, finding)));
        if let Some(count) = &mut self.from_newest {
            *count += outcome.from_newest;
        }
    }

    pub(crate) fn add_notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// Whether what was found could come from a release that moved while it was read.
    pub(crate) fn needs_second_look(&self) -> bool {
        self.state.is_contradictory() || self.findings.iter().any(|(_, finding)| finding.verdict == Verdict::Drift)
    }

    /// The record moved each time it was looked at: nothing found is certain.
    pub(crate) fn unsettle(&mut self) {
        for (_, finding) in &mut self.findings {
            if finding.verdict == Verdict::Drift {
                finding.verdict = Verdict::Unverified;
                finding.class = None;
                finding.severity = None;
                finding.fix = crate::drift::finding::Fix::None;
                finding.note = Some("changed while reading".to_owned());
            }
        }
    }

    /// The release's line; `None` when it is shown with `--show-all` only and that was not asked for.
    pub(crate) fn report(mut self, storage: Storage, show_all: bool) -> Option<ReleaseReport> {
        self.findings.sort_by_key(|(place, _)| *place);
        let findings: Vec<Finding> = self.findings.into_iter().map(|(_, finding)| finding).collect();
        let mut tally = Tally::of(&findings, &self.counts);
        for problem in &self.problems {
            tally.add_unverified(problem);
        }
        tally.from_newest = self.from_newest;
        let settled = self.state.settle(&tally);
        if !settled.shown && !show_all {
            return None;
        }
        let mut notices = self.notices;
        let problem = |message| Notice { object: None, reason: NoticeReason::NotCompared, message };
        notices.extend(self.problems.into_iter().map(problem));
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
            mode: Mode::Warn,
            suspended: false,
            exit: settled.exit,
            objects: self.counts,
            findings,
            notices,
        })
    }
}

impl Task {
    /// The object in the version that it is read in.
    fn wanted(&self) -> Wanted<'_> {
        Wanted { object: &self.object, source: self.desired.source.as_deref(), body: &self.desired.body }
    }

    /// Judges what was read. Runs off the async threads.
    pub(crate) fn judge(&self, observation: Observation, schema: Option<&Schema>) -> Outcome {
        match observation {
            Observation::Found(live) if self.state.comparison == Comparison::Leftovers => self.left_over(&live.body),
            Observation::Found(live) => self.found(&live.body, schema),
            Observation::Missing => self.missing(None),
            Observation::Unreadable(reason) => self.unreadable(reason),
        }
    }

    fn found(&self, live: &Value, schema: Option<&Schema>) -> Outcome {
        let failed: Vec<&Value> = self.failed.iter().collect();
        let upgrade = self.upgrade.as_ref().map(Option::as_ref);
        let circumstances = self.circumstances(upgrade, &failed);
        let Judgement { candidates, notices } = classify::judge(self.wanted(), live, schema, circumstances);
        let from_newest = match &self.upgrade {
            Some(Some(body)) => {
                let newest = Wanted { body, ..self.wanted() };
                let judged = classify::judge(newest, live, schema, self.circumstances(None, &[]));
                judged.candidates.iter().filter(|one| one.finding.verdict == Verdict::Drift).count()
            }
            Some(None) => 1,
            None => 0,
        };
        Outcome { candidates, notices, kind: OutcomeKind::Compared, from_newest }
    }

    fn circumstances<'a>(&'a self, upgrade: Option<Option<&'a Value>>, failed: &'a [&'a Value]) -> Circumstances<'a> {
        Circumstances {
            hand: &self.state.hand,
            apply_method: self.state.apply_method,
            has_subcharts: self.state.has_subcharts,
            upgrade,
            failed,
        }
    }

    /// What is known without reading: the object cannot exist, or nothing can be said. `None`: it must be read.
    pub(crate) fn unasked(&self) -> Option<Outcome> {
        match &self.desired.access {
            Access::Served(_) => None,
            Access::NotServed(reason) => Some(self.missing(Some(reason.clone()))),
            Access::Undiscovered(reason) => Some(self.unreadable(reason.clone())),
        }
    }

    fn missing(&self, why: Option<String>) -> Outcome {
        if self.state.comparison == Comparison::Leftovers {
            return Outcome {
                candidates: Vec::new(),
                notices: Vec::new(),
                kind: OutcomeKind::Compared,
                from_newest: 0,
            };
        }
        let upgrade = self.upgrade.as_ref().map(Option::as_ref);
        let finding = classify::missing(self.wanted(), self.circumstances(upgrade, &[]), why);
        let from_newest = usize::from(matches!(self.upgrade, Some(Some(_))));
        Outcome {
            candidates: vec![Candidate { finding, question: None }],
            notices: Vec::new(),
            kind: OutcomeKind::Missing,
            from_newest,
        }
    }

    fn unreadable(&self, reason: String) -> Outcome {
        let finding = classify::whole(self.wanted(), Change::Unreadable, Verdict::Unverified, None, Some(reason));
        Outcome {
            candidates: vec![Candidate { finding, question: None }],
            notices: Vec::new(),
            kind: OutcomeKind::Unreadable,
            from_newest: 0,
        }
    }

    /// An object of an uninstalled release: a leftover when it still names the release and was not to be kept.
    fn left_over(&self, live: &Value) -> Outcome {
        let annotation =
            |name: &str| live.pointer("/metadata/annotations").and_then(|all| all.get(name)).and_then(Value::as_str);
        let (name, namespace) = &self.state.release;
        let ours = annotation("meta.helm.sh/release-name") == Some(name)
            && annotation("meta.helm.sh/release-namespace") == Some(namespace);
        let candidates = if ours && !self.desired.kept {
            let finding = classify::whole(self.wanted(), Change::Orphan, Verdict::Drift, Some(Cause::Orphan), None);
            vec![Candidate { finding, question: None }]
        } else {
            Vec::new()
        };
        Outcome { candidates, notices: Vec::new(), kind: OutcomeKind::Compared, from_newest: 0 }
    }
}

impl Outcome {
    /// The findings, with those that a look-up has to settle.
    pub(crate) fn take_candidates(&mut self) -> Vec<Candidate> {
        std::mem::take(&mut self.candidates)
    }

    pub(crate) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    pub(crate) fn candidates_mut(&mut self) -> &mut [Candidate] {
        &mut self.candidates
    }
}
