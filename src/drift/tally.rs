//! How much was found in one release, by what it means. Knows nothing of the release's state.

use super::finding::{Cause, Change, Finding, ObjectCounts, Verdict};

/// How much was found, by what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Findings of verdict drift, by change.
    pub(crate) changed: usize,
    pub(crate) removed: usize,
    pub(crate) missing: usize,
    pub(crate) added: usize,
    pub(crate) orphans: usize,
    pub(crate) expected: usize,
    /// Of the expected: what the pending or failed revision explains.
    pub(crate) upgrade: usize,
    pub(crate) ignored: usize,
    /// What could not be told, and the first of it in words.
    pub(crate) unverified: usize,
    pub(crate) first_unverified: Option<String>,
    /// How many differences there are from the pending or failed revision's manifest; `None`: not looked at.
    pub(crate) from_newest: Option<usize>,
    /// Desired objects, and those among them that cannot be found again.
    pub(crate) objects: usize,
    pub(crate) untrackable: usize,
}

impl Tally {
    pub(crate) fn of(findings: &[Finding], objects: &ObjectCounts) -> Self {
        let mut tally = Self { objects: objects.total, untrackable: objects.untrackable, ..Self::default() };
        for finding in findings {
            tally.count(finding);
        }
        tally
    }

    fn count(&mut self, finding: &Finding) {
        match finding.verdict {
            Verdict::Expected => {
                self.expected += 1;
                self.upgrade += usize::from(finding.cause == Some(Cause::Upgrade));
            }
            Verdict::Ignored => self.ignored += 1,
            Verdict::Unverified => {
                let note = finding.note.as_deref().unwrap_or("cannot be told");
                self.add_unverified(&format!("{}: {note}", finding.object));
            }
            Verdict::Drift => {
                let count = match finding.change {
                    Change::Changed | Change::Unreadable => &mut self.changed,
                    Change::Removed => &mut self.removed,
                    Change::Added => &mut self.added,
                    Change::Missing => &mut self.missing,
                    Change::Orphan => &mut self.orphans,
                };
                *count += 1;
            }
        }
    }

    /// Something beside the findings that could not be told, e.g. a document that cannot be read.
    pub(crate) fn add_unverified(&mut self, what: &str) {
        self.unverified += 1;
        self.first_unverified.get_or_insert_with(|| what.to_owned());
    }

    pub(crate) fn drift(&self) -> usize {
        self.changed + self.removed + self.missing + self.added + self.orphans
    }

    /// `3 changed, 1 missing, 1 added (2 expected)`
    pub(super) fn in_words(&self) -> String {
        let parts = [
            (self.changed, "changed"),
            (self.removed, "removed"),
            (self.missing, "missing"),
            (self.added, "added"),
            (self.orphans, "left over"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        format!("{}{}", parts.join(", "), self.beside())
    }

    /// ` (2 expected, 1 ignored)`, or nothing.
    pub(super) fn beside(&self) -> String {
        let parts = [(self.expected, "expected"), (self.ignored, "ignored"), (self.untrackable, "untrackable")];
        let parts: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }
}
