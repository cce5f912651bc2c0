//! One desired object to be compared with the live one, and what became of it. Pure: what was read comes in, nothing is asked for.

use std::sync::Arc;

use serde_json::Value;

use crate::drift::classify::{self, Candidate, Circumstances, Hand, Judgement, Wanted};
use crate::drift::finding::{ApplyMethod, Cause, Change, Notice, NoticeReason, Verdict};
use crate::drift::live::Observation;
use crate::drift::manifest::{Access, DesiredObject};
use crate::drift::object::ObjectRef;
use crate::drift::rules::{self, Hit, Rulings};
use crate::drift::schema::Schema;
use crate::drift::stale::{self, Sighting};
use crate::drift::state::Comparison;

/// One object to compare, with all that its judgement needs.
pub(crate) struct Task {
    /// Place of its ledger: of the release, or of whatever else wants the object.
    pub(crate) ledger: usize,
    pub(crate) desired: DesiredObject,
    /// In the version that it is read in.
    pub(crate) object: ObjectRef,
    terms: Arc<Terms>,
    upgrade: Option<Option<Value>>,
    failed: Vec<Value>,
}

/// What the tasks of one release share.
pub(crate) struct Terms {
    pub(crate) hand: Hand,
    pub(crate) apply_method: ApplyMethod,
    pub(crate) has_subcharts: bool,
    pub(crate) comparison: Comparison,
    /// Name and namespace, as the ownership annotations have them.
    pub(crate) release: (String, String),
    pub(crate) rulings: Rulings,
}

/// What became of one object.
pub(crate) struct Outcome {
    candidates: Vec<Candidate>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) kind: OutcomeKind,
    /// Differences to the pending or failed newest revision.
    pub(crate) from_newest: usize,
    /// Rules that met a finding.
    pub(crate) hits: Vec<Hit>,
    /// What the live object tells about pods that run with old configuration.
    pub(crate) sighting: Option<Sighting>,
    /// The object that was judged, where it is kept to be corrected.
    pub(crate) live: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutcomeKind {
    Compared,
    Missing,
    Unreadable,
    /// Unreadable, as the API table is older than what the server serves.
    Outdated,
}

impl Task {
    pub(crate) fn new(ledger: usize, terms: &Arc<Terms>, desired: DesiredObject) -> Self {
        let object = desired.as_served().map_or_else(|| desired.object.clone(), |(object, _)| object);
        Self { ledger, object, desired, terms: Arc::clone(terms), upgrade: None, failed: Vec::new() }
    }

    /// The same object as a pending or failed newest revision wants it; `None`: that revision has it no more.
    pub(crate) fn with_upgrade(self, body: Option<Value>) -> Self {
        Self { upgrade: Some(body), ..self }
    }

    /// The same object as failed revisions wanted it that are still stored, while the newest is deployed.
    pub(crate) fn with_failed(self, failed: Vec<Value>) -> Self {
        Self { failed, ..self }
    }

    /// Whether the object should carry Helm's label: not what files want.
    pub(crate) fn is_labelled(&self) -> bool {
        !self.terms.hand.applier
    }

    /// The object in the version that it is read in.
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            object: &self.object,
            source: self.desired.source.as_deref(),
            body: &self.desired.body,
            sensitive: &self.terms.rulings.rules.sensitive,
        }
    }

    /// Judges what was read. Runs off the async threads.
    pub(crate) fn judge(&self, observation: Observation, schema: Option<&Schema>) -> Outcome {
        let outcome = match observation {
            Observation::Found(live) if self.terms.comparison == Comparison::Leftovers => self.left_over(&live.body),
            Observation::Found(live) => self.found(&live.body, schema),
            Observation::Missing => self.missing(None),
            Observation::NotServed(reason) => Outcome { kind: OutcomeKind::Outdated, ..self.unreadable(reason) },
            Observation::Unreadable(reason) => self.unreadable(reason),
        };
        self.marked(outcome)
    }

    /// With what the rules cover marked. It asks and tells nothing any more.
    fn marked(&self, mut outcome: Outcome) -> Outcome {
        for candidate in &mut outcome.candidates {
            outcome.hits.extend(self.terms.rulings.mark(&mut candidate.finding, Some(&self.desired.body)));
            let notice = candidate.notice.take();
            if candidate.finding.verdict == Verdict::Ignored {
                candidate.question = None;
            } else {
                outcome.notices.extend(notice);
            }
        }
        let wrong = rules::given_away(&self.desired.body).into_iter().filter_map(Result::err);
        outcome.notices.extend(wrong.map(|error| Notice {
            object: Some(self.object.clone()),
            reason: NoticeReason::RuleNeverMatches,
            message: format!("its annotation {} covers less than it says: {error}", rules::ANNOTATION),
        }));
        outcome
    }

    fn counts_as_drift(&self, mut candidate: Candidate) -> bool {
        self.terms.rulings.mark(&mut candidate.finding, Some(&self.desired.body));
        candidate.finding.verdict == Verdict::Drift
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
                judged.candidates.into_iter().filter(|one| self.counts_as_drift(one.clone())).count()
            }
            Some(None) => 1,
            None => 0,
        };
        let sighting = stale::sighting(&self.object, live);
        Outcome {
            candidates,
            notices,
            kind: OutcomeKind::Compared,
            from_newest,
            hits: Vec::new(),
            sighting,
            live: None,
        }
    }

    fn circumstances<'a>(&'a self, upgrade: Option<Option<&'a Value>>, failed: &'a [&'a Value]) -> Circumstances<'a> {
        Circumstances {
            hand: &self.terms.hand,
            apply_method: self.terms.apply_method,
            has_subcharts: self.terms.has_subcharts,
            upgrade,
            failed,
            writers: &self.terms.rulings.rules.writers,
        }
    }

    /// Whether the server does not serve the kind, as far as the API table tells.
    pub(crate) fn is_unserved(&self) -> bool {
        !matches!(self.desired.access, Access::Served(_))
    }

    /// What is known without reading: the object cannot exist, or nothing can be said. `None`: it must be read.
    pub(crate) fn unasked(&self) -> Option<Outcome> {
        let outcome = match &self.desired.access {
            Access::Served(_) => return None,
            Access::NotServed(reason) => self.missing(Some(reason.clone())),
            Access::Undiscovered(reason) => self.unreadable(reason.clone()),
        };
        Some(self.marked(outcome))
    }

    fn missing(&self, why: Option<String>) -> Outcome {
        if self.terms.comparison == Comparison::Leftovers {
            return Outcome {
                candidates: Vec::new(),
                notices: Vec::new(),
                kind: OutcomeKind::Compared,
                from_newest: 0,
                hits: Vec::new(),
                sighting: None,
                live: None,
            };
        }
        let upgrade = self.upgrade.as_ref().map(Option::as_ref);
        let finding = classify::missing(self.wanted(), self.circumstances(upgrade, &[]), why);
        let from_newest = usize::from(matches!(self.upgrade, Some(Some(_))));
        Outcome {
            candidates: vec![Candidate::settled(finding)],
            notices: Vec::new(),
            kind: OutcomeKind::Missing,
            from_newest,
            hits: Vec::new(),
            sighting: None,
            live: None,
        }
    }

    fn unreadable(&self, reason: String) -> Outcome {
        let finding = classify::whole(self.wanted(), Change::Unreadable, Verdict::Unverified, None, Some(reason));
        Outcome {
            candidates: vec![Candidate::settled(finding)],
            notices: Vec::new(),
            kind: OutcomeKind::Unreadable,
            from_newest: 0,
            hits: Vec::new(),
            sighting: None,
            live: None,
        }
    }

    /// An object of an uninstalled release: a leftover when it still names the release and was not to be kept.
    fn left_over(&self, live: &Value) -> Outcome {
        let annotation =
            |name: &str| live.pointer("/metadata/annotations").and_then(|all| all.get(name)).and_then(Value::as_str);
        let (name, namespace) = &self.terms.release;
        let ours = annotation("meta.helm.sh/release-name") == Some(name)
            && annotation("meta.helm.sh/release-namespace") == Some(namespace);
        let candidates = if ours && !self.desired.kept {
            let finding = classify::whole(self.wanted(), Change::Orphan, Verdict::Drift, Some(Cause::Orphan), None);
            vec![Candidate::settled(finding)]
        } else {
            Vec::new()
        };
        Outcome {
            candidates,
            notices: Vec::new(),
            kind: OutcomeKind::Compared,
            from_newest: 0,
            hits: Vec::new(),
            sighting: None,
            live: None,
        }
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
