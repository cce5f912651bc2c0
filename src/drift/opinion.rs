//! The server's second opinion on what was found changed or removed (design.md §5.6): it confirms, or explains. Never a finding of
//! its own, never silence.

use serde_json::Value;

use super::classify::{Candidate, touches};
use super::compare::compare;
use super::finding::{Cause, Change, Class, Finding, Fix, Severity, Verdict};
use super::object::Gvk;
use super::owners::Owners;
use super::schema::Schema;

/// Whether the server is asked about a finding.
pub(crate) fn is_asked(finding: &Finding) -> bool {
    finding.verdict == Verdict::Drift
        && matches!(finding.change, Change::Changed | Change::Removed)
        && finding.path.is_some()
}

/// Weighs the findings of one object.
///
/// Shape: `stored` is what the server would store if the manifest's object were applied to `live`. Where both hold the same, applying
/// changes nothing: the server itself makes the difference.
pub(crate) fn weigh(candidates: &mut [Candidate], gvk: &Gvk, stored: &Value, live: &Value, schema: Option<&Schema>) {
    let differences = compare(gvk, stored, live, schema, &Owners::default()).differences;
    for finding in candidates.iter_mut().map(|candidate| &mut candidate.finding).filter(|finding| is_asked(finding)) {
        let confirmed = finding.path.as_ref().is_none_or(|path| touches(&differences, path));
        if !confirmed {
            finding.verdict = Verdict::Expected;
            finding.cause = Some(Cause::Admission);
            finding.class = Some(Class::A);
            finding.severity = Some(Severity::P3);
            finding.fix = Fix::None;
            finding.note = Some("the server would store it so".to_owned());
        }
    }
}

/// The server would not say: the findings stand, with its reason.
pub(crate) fn refused(candidates: &mut [Candidate], reason: &str) {
    for finding in candidates.iter_mut().map(|candidate| &mut candidate.finding).filter(|finding| is_asked(finding)) {
        finding.note = Some(format!("the server refuses the dry run: {reason}"));
    }
}
