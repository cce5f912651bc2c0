//! What was found so far in one release, or in whatever else is compared as one. Knows nothing of what it was compared with.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::drift::finding::{Finding, Fix, Notice, NoticeReason, ObjectCounts, Verdict};
use crate::drift::manifest::Desired;
use crate::drift::object::ObjectKey;
use crate::drift::rules::Hit;
use crate::drift::stale::Sighting;
use crate::drift::tally::Tally;
use crate::task::{Outcome, OutcomeKind};

#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) counts: ObjectCounts,
    /// Some object was asked for in a version that the server serves no more.
    pub(crate) is_outdated: bool,
    /// With the object's place in the manifest.
    findings: Vec<(usize, Finding)>,
    notices: Vec<Notice>,
    /// Documents of the manifest that cannot be read.
    problems: Vec<String>,
    /// Differences of live to a pending or failed newest revision; `None`: not looked at.
    pub(crate) from_newest: Option<usize>,
    /// Rules that met a finding.
    pub(crate) hits: Vec<Hit>,
    /// What its live objects tell about pods that run with old configuration.
    pub(crate) sightings: Vec<Sighting>,
    /// Objects with findings as they were judged, where they are kept to be corrected.
    pub(crate) seen: Seen,
}

pub(crate) type Seen = BTreeMap<ObjectKey, Value>;

/// A ledger's end.
#[derive(Debug)]
pub(crate) struct Balance {
    pub(crate) counts: ObjectCounts,
    pub(crate) tally: Tally,
    /// In order of the manifest.
    pub(crate) findings: Vec<Finding>,
    pub(crate) notices: Vec<Notice>,
}

impl Ledger {
    /// What reading the manifest alone told; its objects are still to be compared.
    pub(crate) fn open(desired: &mut Desired) -> Self {
        let problems = std::mem::take(&mut desired.problems);
        let counts = ObjectCounts {
            total: desired.objects.len() + desired.untrackable + problems.len(),
            unreadable: problems.len(),
            untrackable: desired.untrackable,
            ..ObjectCounts::default()
        };
        Self { counts, notices: std::mem::take(&mut desired.notices), problems, ..Self::default() }
    }

    /// Takes in what became of the object at `place` in the manifest.
    pub(crate) fn add(&mut self, place: usize, outcome: Outcome, settled: Vec<Finding>) {
        match outcome.kind {
            OutcomeKind::Compared => self.counts.compared += 1,
            OutcomeKind::Missing => self.counts.missing += 1,
            OutcomeKind::Unreadable => self.counts.unreadable += 1,
            OutcomeKind::Outdated => {
                self.counts.unreadable += 1;
                self.is_outdated = true;
            }
        }
        self.notices.extend(outcome.notices);
        self.hits.extend(outcome.hits);
        self.sightings.extend(outcome.sighting);
        if let (Some(live), Some(first)) = (outcome.live, settled.first()) {
            self.seen.insert(first.object.key(), live);
        }
        self.findings.extend(settled.into_iter().map(|finding| (place, finding)));
        if let Some(count) = &mut self.from_newest {
            *count += outcome.from_newest;
        }
    }

    pub(crate) fn add_notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    pub(crate) fn has_drift(&self) -> bool {
        self.findings.iter().any(|(_, finding)| finding.verdict == Verdict::Drift)
    }

    /// The record moved each time it was looked at: nothing found is certain.
    pub(crate) fn unsettle(&mut self) {
        for (_, finding) in &mut self.findings {
            if finding.verdict == Verdict::Drift {
                finding.verdict = Verdict::Unverified;
                finding.class = None;
                finding.severity = None;
                finding.fix = Fix::None;
                finding.note = Some("changed while reading".to_owned());
            }
        }
    }

    pub(crate) fn close(mut self) -> Balance {
        self.findings.sort_by_key(|(place, _)| *place);
        let findings: Vec<Finding> = self.findings.into_iter().map(|(_, finding)| finding).collect();
        let mut tally = Tally::of(&findings, &self.counts);
        for problem in &self.problems {
            tally.add_unverified(problem);
        }
        tally.from_newest = self.from_newest;
        let problem = |message| Notice { object: None, reason: NoticeReason::NotCompared, message };
        let mut notices = self.notices;
        notices.extend(self.problems.into_iter().map(problem));
        Balance { counts: self.counts, tally, findings, notices }
    }
}
