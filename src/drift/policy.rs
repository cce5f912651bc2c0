//! How a release is to be treated: mode and suspension, by flag, configuration, labels on its record and Flux (design.md §6, §10).
//! Knows nothing of what its objects look like.

use super::finding::{Mode, Notice, NoticeReason};
use super::flux::{self, HelmRelease};
use super::release::{RecordMeta, ReleaseKey};
use super::writers::is_persons_tool;

const MODE: &str = "helm-drift/mode";
const SUSPEND: &str = "helm-drift/suspend";

/// What the configuration says about one release by name. What is `None` is left to the labels and the file's own mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) key: ReleaseKey,
    pub(crate) revision: Option<u64>,
    pub(crate) mode: Option<Mode>,
    pub(crate) suspended: Option<bool>,
}

/// Everything that has a say, but for the record's labels.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes<'a> {
    /// `--mode`
    pub(crate) flag: Option<Mode>,
    /// The file's.
    pub(crate) mode: Mode,
    pub(crate) expected: Option<&'a Expected>,
    /// Whether a label may turn correction on.
    pub(crate) correct_by_label: bool,
    /// HelmReleases that manage the release.
    pub(crate) flux: &'a [&'a HelmRelease],
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Policy {
    pub(crate) mode: Mode,
    pub(crate) suspended: bool,
    pub(crate) notices: Vec<Notice>,
}

/// The flag outranks the configuration's entry of the release, that the labels, those the file's own mode. Correction is never
/// for a release that Flux manages: two that put things right would fight.
pub(crate) fn policy(record: Option<&RecordMeta>, wishes: Wishes<'_>) -> Policy {
    let mut notices = Vec::new();
    let (label_mode, label_suspend) = record.map(|record| by_label(record, wishes, &mut notices)).unwrap_or_default();
    let entry = wishes.expected;
    let mut mode = wishes.flag.or(entry.and_then(|entry| entry.mode)).or(label_mode).unwrap_or(wishes.mode);
    if !wishes.flux.is_empty() && mode == Mode::Correct {
        mode = Mode::Warn;
    }
    let by_flux = wishes.flux.iter().any(|one| one.suspended);
    notices.extend(wishes.flux.iter().flat_map(|one| about_flux(one)));
    Policy {
        mode,
        suspended: entry.and_then(|entry| entry.suspended).or(label_suspend).unwrap_or(false) || by_flux,
        notices,
    }
}

fn by_label(record: &RecordMeta, wishes: Wishes<'_>, notices: &mut Vec<Notice>) -> (Option<Mode>, Option<bool>) {
    let mut told = |label: &str, why: String| {
        let message = format!("label {label} of {} does not count: {why}", record.object_name);
        notices.push(Notice { object: None, reason: NoticeReason::ForeignLabel, message });
    };
    let mut own = |label: &str| {
        let value = record.labels.get(label)?;
        match foreign(record, label) {
            None => Some(value.as_str()),
            Some(who) => {
                told(label, format!("Helm did not set it, {who} did; use helm upgrade --labels {label}={value}"));
                None
            }
        }
    };
    let (mode, suspend) = (own(MODE), own(SUSPEND));
    let mode = match mode {
        None => None,
        Some("warn") => Some(Mode::Warn),
        Some("disabled") => Some(Mode::Disabled),
        Some("correct") if wishes.correct_by_label => Some(Mode::Correct),
        Some("correct") => {
            told(MODE, "correct by label needs allowLabels: [correct] in the configuration".to_owned());
            None
        }
        Some(other) => {
            told(MODE, format!("{other:?} is no mode; there are warn, correct and disabled"));
            None
        }
    };
    let suspend = match suspend {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(other) => {
            told(SUSPEND, format!("{other:?} is neither true nor false"));
            None
        }
    };
    (mode, suspend)
}

/// Who set the label, unless it was the manager that writes the record's payload, which is Helm.
fn foreign(record: &RecordMeta, label: &str) -> Option<String> {
    let owners = record.label_owners.get(label).map(Vec::as_slice).unwrap_or_default();
    let is_helm = |name: &String| !is_persons_tool(name) && record.owners.iter().any(|owner| owner.manager == *name);
    if owners.iter().any(is_helm) {
        return None;
    }
    Some(if owners.is_empty() { "somebody unknown".to_owned() } else { owners.join(" and ") })
}

/// Namespace and name of the HelmRelease that runs a release, as its notices say ([`about_flux`]); a stranger's does not.
pub(crate) fn managing(notices: &[Notice]) -> Option<(&str, &str)> {
    notices.iter().filter(|notice| notice.reason == NoticeReason::FluxMode).find_map(|notice| {
        let who = notice.message.split_once(MANAGES)?.0.trim_end();
        who.rsplit(' ').next()?.split_once('/')
    })
}

const MANAGES: &str = "manages the release";

/// A HelmRelease of another namespace that names the release and has nothing to show for it.
pub(crate) fn about_stranger(one: &HelmRelease) -> Notice {
    Notice {
        object: None,
        reason: NoticeReason::FluxMode,
        message: format!(
            "{} {}/{} names the release but does not count: neither the record nor its objects come from it",
            flux::KIND,
            one.namespace,
            one.name
        ),
    }
}

fn about_flux(one: &HelmRelease) -> Vec<Notice> {
    let who = format!("{} {}/{}", flux::KIND, one.namespace, one.name);
    let mode = Notice {
        object: None,
        reason: NoticeReason::FluxMode,
        message: format!(
            "{who} {MANAGES}; its own drift detection is {}{}",
            one.mode,
            if one.suspended { ", and it is suspended" } else { "" }
        ),
    };
    let problem = |problem: &String| Notice {
        object: None,
        reason: NoticeReason::RuleNeverMatches,
        message: format!("an ignore rule of {who} covers nothing: {problem}"),
    };
    std::iter::once(mode).chain(one.problems.iter().map(problem)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::release::tests::record;
    use super::*;

    fn labelled(labels: &[(&str, &str)], owner: &str) -> RecordMeta {
        let mut record = record(3, "deployed");
        for (label, value) in labels {
            record.labels.insert((*label).to_owned(), (*value).to_owned());
            record.label_owners.insert((*label).to_owned(), vec![owner.to_owned()]);
        }
        record
    }

    fn expected(mode: Option<Mode>, suspended: Option<bool>) -> Expected {
        Expected { key: record(1, "deployed").key, revision: None, mode, suspended }
    }

    fn flux(spec: &serde_json::Value) -> HelmRelease {
        HelmRelease::of(&json!({"metadata": {"namespace": "prod", "name": "nucleus"}, "spec": spec})).unwrap()
    }

    #[test]
    fn the_flag_outranks_the_entry_that_the_label_that_the_file() {
        use Mode::{Correct, Disabled, Warn};
        let label = |mode| labelled(&[(MODE, mode)], "Helm");
        let none = record(1, "deployed");
        for (flag, entry, record, file, mode) in [
            (None, None, &none, Warn, Warn),
            (None, None, &none, Correct, Correct),
            (None, None, &label("disabled"), Correct, Disabled),
            (None, Some(Warn), &label("disabled"), Correct, Warn),
            (Some(Disabled), Some(Warn), &label("correct"), Correct, Disabled),
        ] {
            let entry = expected(entry, None);
            let wishes = Wishes { flag, mode: file, expected: Some(&entry), ..Wishes::default() };
            assert_eq!(policy(Some(record), wishes).mode, mode, "{flag:?} {entry:?} {file:?}");
        }
    }

    #[test]
    fn a_label_counts_only_where_helm_set_it() {
        let both = [(MODE, "disabled"), (SUSPEND, "true")];
        let own = policy(Some(&labelled(&both, "Helm")), Wishes::default());
        assert_eq!((own.mode, own.suspended, own.notices), (Mode::Disabled, true, Vec::new()));
        // `helm` is not the manager that wrote this record, and a person's tool is never Helm.
        for stranger in ["kubectl-label", "helm"] {
            let foreign = policy(Some(&labelled(&both, stranger)), Wishes::default());
            assert_eq!((foreign.mode, foreign.suspended, foreign.notices.len()), (Mode::Warn, false, 2), "{stranger}");
            assert!(foreign.notices.iter().all(|notice| notice.reason == NoticeReason::ForeignLabel));
        }
        let mut wiped = labelled(&both, "Helm");
        wiped.label_owners.clear();
        assert!(!policy(Some(&wiped), Wishes::default()).suspended);
        let mut restored = labelled(&both, "kubectl-client-side-apply");
        restored.owners[0].manager = "kubectl-client-side-apply".to_owned();
        assert!(!policy(Some(&restored), Wishes::default()).suspended);
    }

    #[test]
    fn correction_by_label_must_be_allowed() {
        let record = labelled(&[(MODE, "correct")], "Helm");
        let refused = policy(Some(&record), Wishes::default());
        assert_eq!((refused.mode, refused.notices.len()), (Mode::Warn, 1));
        let allowed = policy(Some(&record), Wishes { correct_by_label: true, ..Wishes::default() });
        assert_eq!((allowed.mode, allowed.notices.len()), (Mode::Correct, 0));
    }

    #[test]
    fn a_label_of_no_meaning_is_told() {
        let record = labelled(&[(MODE, "off"), (SUSPEND, "yes")], "Helm");
        let policy = policy(Some(&record), Wishes::default());
        assert_eq!((policy.mode, policy.suspended, policy.notices.len()), (Mode::Warn, false, 2));
    }

    #[test]
    fn suspension_comes_from_the_entry_the_label_or_flux() {
        let suspended = flux(&json!({"suspend": true}));
        let running = flux(&json!({}));
        for (entry, label, flux, is) in [
            (None, None, None, false),
            (Some(true), None, None, true),
            (None, Some("true"), None, true),
            (Some(false), Some("true"), None, false),
            (None, None, Some(&suspended), true),
            (Some(false), None, Some(&suspended), true),
            (None, None, Some(&running), false),
        ] {
            let record = label.map_or_else(|| record(1, "deployed"), |value| labelled(&[(SUSPEND, value)], "Helm"));
            let entry = expected(None, entry);
            let flux: Vec<&HelmRelease> = flux.into_iter().collect();
            let wishes = Wishes { expected: Some(&entry), flux: &flux, ..Wishes::default() };
            assert_eq!(policy(Some(&record), wishes).suspended, is, "{entry:?} {label:?}");
        }
    }

    #[test]
    fn what_flux_manages_is_judged_and_never_corrected() {
        let disabled = flux(&json!({}));
        let wishes = Wishes { mode: Mode::Correct, flux: &[&disabled], ..Wishes::default() };
        let policy = policy(Some(&record(1, "deployed")), wishes);
        assert_eq!(policy.mode, Mode::Warn);
        assert_eq!(policy.notices[0].reason, NoticeReason::FluxMode);
        assert_eq!(
            policy.notices[0].message,
            "HelmRelease prod/nucleus manages the release; its own drift detection is disabled"
        );
    }
}
