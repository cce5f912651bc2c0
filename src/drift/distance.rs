//! How far the live state is from each revision of a release (`drift history`). Knows nothing of how that was found out.

use jiff::Timestamp;

use super::finding::{ClusterInfo, Notice, Storage, Trouble};
use super::release::ReleaseKey;

/// One revision whose record is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revision {
    pub(crate) revision: u64,
    pub(crate) updated: Option<Timestamp>,
    /// Helm's own word, verbatim.
    pub(crate) status: Option<String>,
    /// `name-version`.
    pub(crate) chart: Option<String>,
    pub(crate) app_version: Option<String>,
    pub(crate) description: Option<String>,
    /// The revision that a check judges.
    pub(crate) current: bool,
    /// Between its manifest and the live state; `None`: its record cannot be read.
    pub(crate) differences: Option<usize>,
    /// Beside them, what could not be told.
    pub(crate) unverified: usize,
}

impl Revision {
    /// All was compared.
    fn told(&self) -> Option<usize> {
        self.differences.filter(|_| self.unverified == 0)
    }
}

/// The revisions of one release.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HistoryReport {
    pub(crate) cluster: ClusterInfo,
    pub(crate) started_at: Timestamp,
    pub(crate) finished_at: Timestamp,
    pub(crate) release: ReleaseKey,
    pub(crate) storage: Storage,
    /// Oldest first; none where there is no such release.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) errors: Vec<Trouble>,
}

impl HistoryReport {
    /// 0 done, 2 something could not be told. Drift is no trouble here.
    pub(crate) fn exit_code(&self) -> u8 {
        let told = self.revisions.iter().all(|one| one.told().is_some());
        if told && self.errors.is_empty() { 0 } else { 2 }
    }

    /// Revisions that the live state is exactly like.
    pub(crate) fn fitting(&self) -> Vec<u64> {
        self.revisions.iter().filter(|one| one.told() == Some(0)).map(|one| one.revision).collect()
    }

    /// Where the live state stands, on one line; `None`: that cannot be told.
    pub(crate) fn message(&self) -> Option<String> {
        let current = self.revisions.iter().find(|one| one.current)?;
        let own = current.told()?;
        if current.status.as_deref() == Some("uninstalled") {
            return Some(match own {
                0 => format!("the release is uninstalled, but everything is as in revision {}", current.revision),
                _ => "the release is uninstalled; differences are what each revision would bring back".to_owned(),
            });
        }
        if own == 0 {
            return Some(format!("the live state is as in revision {}, the current one", current.revision));
        }
        let fitting = self.fitting();
        if let Some(last) = fitting.last() {
            let others = match fitting.len() {
                1 => String::new(),
                _ => {
                    let names: Vec<String> = fitting.iter().rev().skip(1).map(u64::to_string).collect();
                    format!(" (and {})", names.join(", "))
                }
            };
            let status = self.revisions.iter().find(|one| one.revision == *last).and_then(|one| one.status.as_deref());
            let pending = status.filter(|status| status.starts_with("pending-"));
            let current = current.revision;
            return Some(match pending {
                Some(status) => format!(
                    "the live state is as in revision {last}{others}, which is {status}; revision {current} is the last one that was deployed"
                ),
                None => format!(
                    "the live state is as in revision {last}{others}, but revision {current} is current: rolled back by hand?"
                ),
            });
        }
        // Of equally near ones the current, then the newest.
        let nearest = self
            .revisions
            .iter()
            .filter_map(|one| Some((one.told()?, one)))
            .min_by_key(|(differences, one)| (*differences, !one.current, std::cmp::Reverse(one.revision)))?;
        let (differences, nearest) = nearest;
        let count = if differences == 1 { "1 difference".to_owned() } else { format!("{differences} differences") };
        Some(if nearest.current {
            format!(
                "the live state is like no revision; nearest is revision {}, the current one ({count})",
                nearest.revision
            )
        } else {
            format!(
                "the live state is like no revision; nearest is revision {} ({count}), but revision {} is current ({own})",
                nearest.revision, current.revision
            )
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `1=2 2=0 3=1*`: revisions and their differences, `*` the current one, `?` what cannot be read.
    pub(crate) fn report(revisions: &str) -> HistoryReport {
        let revision = |text: &str| {
            let (revision, differences) = text.split_once('=').unwrap();
            Revision {
                revision: revision.parse().unwrap(),
                updated: Some("2026-11-30T10:00:00Z".parse().unwrap()),
                status: Some(if text.ends_with('*') { "deployed" } else { "superseded" }.into()),
                chart: Some("nucleus-1.4.2".into()),
                app_version: None,
                description: Some("Upgrade complete".into()),
                current: text.ends_with('*'),
                differences: differences.trim_end_matches('*').parse().ok(),
                unverified: 0,
            }
        };
        HistoryReport {
            cluster: ClusterInfo::default(),
            started_at: "2026-11-30T10:00:00Z".parse().unwrap(),
            finished_at: "2026-11-30T10:00:01Z".parse().unwrap(),
            release: ReleaseKey { namespace: "prod".into(), name: "nucleus".into() },
            storage: Storage::Secret,
            revisions: revisions.split_whitespace().map(revision).collect(),
            notices: Vec::new(),
            errors: Vec::new(),
        }
    }

    #[test]
    fn an_upgrade_that_hangs_is_no_rollback() {
        let mut history = report("1=1* 2=0");
        history.revisions[1].status = Some("pending-upgrade".into());
        assert_eq!(
            history.message().as_deref(),
            Some(
                "the live state is as in revision 2, which is pending-upgrade; revision 1 is the last one that was deployed"
            )
        );
    }

    #[test]
    fn a_roll_back_by_hand_is_told() {
        for (revisions, message, exit) in [
            ("1=2 2=0*", Some("the live state is as in revision 2, the current one"), 0),
            (
                "1=2 2=0 3=1*",
                Some("the live state is as in revision 2, but revision 3 is current: rolled back by hand?"),
                0,
            ),
            (
                "1=0 2=0 3=1*",
                Some("the live state is as in revision 2 (and 1), but revision 3 is current: rolled back by hand?"),
                0,
            ),
            (
                "1=4 2=3*",
                Some("the live state is like no revision; nearest is revision 2, the current one (3 differences)"),
                0,
            ),
            (
                "1=3 2=3*",
                Some("the live state is like no revision; nearest is revision 2, the current one (3 differences)"),
                0,
            ),
            (
                "1=1 2=3*",
                Some(
                    "the live state is like no revision; nearest is revision 1 (1 difference), but revision 2 is current (3)",
                ),
                0,
            ),
            ("1=? 2=0*", Some("the live state is as in revision 2, the current one"), 2),
            ("1=0 2=?*", None, 2),
            ("", None, 0),
        ] {
            let report = report(revisions);
            assert_eq!((report.message().as_deref(), report.exit_code()), (message, exit), "{revisions}");
        }
    }

    #[test]
    fn an_uninstalled_release_is_called_so() {
        let mut report = report("1=2 2=3*");
        report.revisions[1].status = Some("uninstalled".into());
        let message = "the release is uninstalled; differences are what each revision would bring back";
        assert_eq!(report.message().as_deref(), Some(message));
    }

    #[test]
    fn what_could_not_be_told_fits_nothing() {
        let mut report = report("1=0 2=1*");
        report.revisions[0].unverified = 1;
        assert_eq!((report.fitting(), report.exit_code()), (vec![], 2));
    }
}
