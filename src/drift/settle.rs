//! The answer about a release once its objects were compared: readiness, reason, one line that names the remedy, exit code.
//! Knows of objects only how many differ.

use super::finding::{ApplyMethod, Condition, Mode, Notice, NoticeReason, Reason, Storage};
use super::release::ReleaseKey;
use super::state::{Comparison, Ground, State, one_line};
use super::tally::Tally;

const ABOUT_DISABLED: &str = "drift detection is disabled for this release; mode warn turns it on";

/// The answer about one release.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settled {
    pub(crate) ready: Condition,
    pub(crate) stalled: Condition,
    pub(crate) reason: Reason,
    /// One line; names the remedy.
    pub(crate) message: String,
    /// What this release makes of the exit code: 0, 1 or 2.
    pub(crate) exit: u8,
    /// `false`: shown with `--show-all` only (an uninstalled release that nobody asked for and that left nothing behind).
    pub(crate) shown: bool,
    /// What also holds.
    pub(crate) notices: Vec<Notice>,
}

impl State {
    /// The answer, once the objects were compared (or were not, by [`State::comparison`]).
    pub(crate) fn settle(&self, tally: &Tally) -> Settled {
        let mut holding: Vec<(Reason, String)> =
            self.grounds.iter().map(|ground| (ground.reason(), self.about(ground, tally))).collect();
        let leftovers = self.comparison == Comparison::Leftovers;
        if tally.drift() > 0 && !leftovers {
            holding.push((Reason::Drifted, tally.in_words()));
        }
        if tally.unverified > 0 {
            holding.push((Reason::Unverified, about_unverified(tally)));
        }
        if holding.is_empty() {
            holding.push((Reason::InSync, self.about_in_sync(tally)));
        }
        holding.sort_by_key(|(reason, _)| *reason);
        let reason = holding.first().map_or(Reason::Unverified, |(reason, _)| *reason);
        let uncertain = holding.iter().any(|(reason, _)| matches!(reason, Reason::Unverified | Reason::Corrupt));
        let message = holding.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; ");
        let also = holding.iter().filter(|(other, _)| *other != reason).map(|(other, text)| Notice {
            object: None,
            reason: NoticeReason::AlsoTrue,
            message: format!("{other:?}: {text}"),
        });
        let shown = self.is_shown(reason, tally);
        let counts = shown && !self.asked.suspended && self.asked.mode != Mode::Disabled;
        Settled {
            ready: ready(reason),
            stalled: self.is_stalled(reason),
            reason,
            message,
            exit: if counts { exit(reason, uncertain) } else { 0 },
            shown,
            notices: also.chain(self.about_rewritten()).collect(),
        }
    }

    /// Said whatever else is: without a window a forged name cannot be told.
    fn about_rewritten(&self) -> Option<Notice> {
        let message = self.rewritten.clone()?;
        Some(Notice { object: None, reason: NoticeReason::RecordRewritten, message })
    }

    /// An uninstalled release is worth a line when it was asked for, is expected, or left something behind.
    fn is_shown(&self, reason: Reason, tally: &Tally) -> bool {
        reason != Reason::Uninstalled
            || self.asked.named
            || self.asked.expected
            || tally.drift() > 0
            || tally.unverified > 0
            || self.grounds.len() > 1
    }

    fn is_stalled(&self, reason: Reason) -> Condition {
        let stuck = self.grounds.iter().any(|ground| matches!(ground, Ground::Pending { stuck: true, .. }));
        let stalled = match reason {
            Reason::InSync | Reason::Disabled => false,
            Reason::PendingInstall | Reason::PendingUpgrade | Reason::PendingRollback => stuck,
            Reason::Unverified => self.unheard,
            Reason::Corrupt
            | Reason::Failed
            | Reason::Uninstalling
            | Reason::Uninstalled
            | Reason::Superseded
            | Reason::RevisionMismatch
            | Reason::Deleted
            | Reason::Drifted => true,
        };
        if stalled { Condition::True } else { Condition::False }
    }

    fn about(&self, ground: &Ground, tally: &Tally) -> String {
        let name = &self.key.name;
        match ground {
            Ground::Corrupt { object, revision, why } => self.about_corrupt(object, *revision, why),
            Ground::Disabled => ABOUT_DISABLED.to_owned(),
            Ground::Pending { status, age, stuck, .. } => self.about_pending(status, age.as_deref(), *stuck, tally),
            Ground::Failed { description } => self.about_failed(description, tally),
            Ground::Uninstalling { age } => {
                let age = age.as_ref().map(|age| format!(" for {age}")).unwrap_or_default();
                format!(
                    "revision {} has been uninstalling{age}: `{}` finishes it",
                    self.newest,
                    self.helm(&format!("uninstall {name}"))
                )
            }
            Ground::Uninstalled { age } => self.about_uninstalled(age.as_deref(), tally),
            Ground::Superseded => format!(
                "revision {} is superseded, so a newer record is gone: restore that from a backup, or make this one current by `{}`",
                self.newest,
                self.rollback_command(self.newest, tally)
            ),
            Ground::Mismatch(found) => {
                let pairs: Vec<&str> = found.iter().map(|mismatch| mismatch.pair.as_str()).collect();
                let remedy = found.first().map(|mismatch| mismatch.remedy.as_str()).unwrap_or_default();
                format!("{}: {remedy}", pairs.join("; "))
            }
            Ground::Unsure(text) => text.clone(),
        }
    }

    /// Helm skips a record that it cannot read, and then stumbles over its name: it has to go before anything works again.
    fn about_corrupt(&self, object: &str, revision: u64, why: &str) -> String {
        let unreadable = format!("revision {revision} cannot be read: {object} {why}");
        if revision != self.newest {
            return format!("{unreadable}; restore it from a backup, or judge another revision");
        }
        if self.storage == Storage::Sql {
            return format!("{unreadable}; restore its row from a backup");
        }
        let name = &self.key.name;
        let then = match self.rollback {
            Some(target) => self.helm(&format!("rollback {name} {target}")),
            None => self.helm(&format!("upgrade --install {name} CHART")),
        };
        format!(
            "{unreadable}; restore it from a backup, or save it aside, `kubectl delete {} {object} -n {}`, then `{then}`",
            self.object_kind(),
            self.key.namespace
        )
    }

    fn about_pending(&self, status: &str, age: Option<&str>, stuck: bool, tally: &Tally) -> String {
        let revision = self.newest;
        let age = age.map(|age| format!(" for {age}")).unwrap_or_default();
        let fits = self.fits(tally);
        let remedy = self.way_back(tally);
        if stuck {
            format!("revision {revision} has been {status}{age} and blocks every upgrade{fits}; `{remedy}` unlocks it")
        } else {
            format!(
                "revision {revision} has been {status}{age}{fits}; wait, or, if no helm is at work on it, `{remedy}`"
            )
        }
    }

    fn about_failed(&self, description: &str, tally: &Tally) -> String {
        let description = if description.is_empty() { String::new() } else { format!(" ({description})") };
        // Without a revision that ever worked there is nothing to go back to, and an uninstall only fits a first install.
        let back = match self.rollback {
            Some(target) => format!(", or `{}`", self.rollback_command(target, tally)),
            None if self.newest == 1 => format!(", or `{}`", self.helm(&format!("uninstall {}", self.key.name))),
            None => String::new(),
        };
        let fits = self.fits(tally);
        format!("revision {} failed{description}{fits}; mend the cause and upgrade again{back}", self.newest)
    }

    fn about_uninstalled(&self, age: Option<&str>, tally: &Tally) -> String {
        let age = age.map(|age| format!(" {age} ago")).unwrap_or_default();
        let back = self.helm(&format!("rollback {} {}", self.key.name, self.newest));
        match tally.orphans {
            0 => format!(
                "uninstalled{age}, its history kept: `{back}` brings it back, `{}` forgets it",
                self.helm(&format!("uninstall {}", self.key.name))
            ),
            1 => {
                format!("uninstalled{age}, but 1 object is left over: delete it, or bring the release back by `{back}`")
            }
            many => format!(
                "uninstalled{age}, but {many} objects are left over: delete them, or bring the release back by `{back}`"
            ),
        }
    }

    fn about_in_sync(&self, tally: &Tally) -> String {
        format!("{} as in revision {}{}", objects(tally.objects), self.judged, tally.beside())
    }

    /// Which of the two revisions the live state fits; with a leading separator, empty where it cannot be said.
    fn fits(&self, tally: &Tally) -> String {
        let (judged, newest) = (self.judged, self.newest);
        if self.comparison != Comparison::Manifest || tally.unverified > 0 || tally.objects <= tally.untrackable {
            return String::new();
        }
        let fits = match (judged == newest, tally.drift(), tally.upgrade, tally.from_newest) {
            (true, 0, _, _) => "fits it".to_owned(),
            (true, _, _, _) => return String::new(),
            (false, 0, 0, Some(0)) => format!("fits revisions {judged} and {newest} alike"),
            (false, 0, 0, _) => format!("fits revision {judged}"),
            (false, 0, _, Some(0)) => format!("fits revision {newest}"),
            (false, 0, _, Some(_)) => format!("lies between revisions {judged} and {newest}"),
            (false, 0, _, None) => format!("has parts of revision {newest}"),
            (false, _, _, _) => format!("fits neither revision {judged} nor {newest}"),
        };
        format!("; the live state {fits}")
    }

    /// Out of a pending revision: back to one that worked, away with an install that never did, or once more the same.
    fn way_back(&self, tally: &Tally) -> String {
        match self.rollback {
            Some(target) => self.rollback_command(target, tally),
            None if self.newest == 1 || self.is_first_install() => self.helm(&format!("uninstall {}", self.key.name)),
            None => self.rollback_command(self.newest, tally),
        }
    }

    fn is_first_install(&self) -> bool {
        self.grounds.iter().any(|ground| ground.reason() == Reason::PendingInstall)
    }

    /// A server-side rollback stops at the first field that somebody else owns, and then no revision is deployed any more.
    fn rollback_command(&self, target: u64, tally: &Tally) -> String {
        let others_own_fields = tally.drift() + tally.expected > tally.upgrade;
        let force = self.apply_method == ApplyMethod::ServerSide && others_own_fields;
        self.helm(&format!("rollback {} {target}{}", self.key.name, if force { " --force-conflicts" } else { "" }))
    }
}

/// A release that should exist, or that live objects name, and of which no record is left.
///
/// `flux`: namespace and name of the HelmRelease that wants it.
pub(crate) fn deleted(
    key: &ReleaseKey,
    leftovers: usize,
    flux: Option<(&str, &str)>,
    mode: Mode,
    suspended: bool,
) -> Settled {
    let objects = match leftovers {
        0 => String::new(),
        1 => ", but 1 object still names it".to_owned(),
        many => format!(", but {many} objects still name it"),
    };
    let remedy = match flux {
        Some((namespace, name)) => format!("flux reconcile helmrelease {name} -n {namespace} --force"),
        None => format!("helm upgrade --install {} CHART -n {}", key.name, key.namespace),
    };
    let gone = format!("no record is left in namespace {}{objects}", key.namespace);
    let disabled = mode == Mode::Disabled;
    Settled {
        ready: if disabled { Condition::Unknown } else { Condition::False },
        stalled: if disabled { Condition::False } else { Condition::True },
        reason: if disabled { Reason::Disabled } else { Reason::Deleted },
        message: if disabled {
            format!("{ABOUT_DISABLED}; {gone}")
        } else {
            format!("{gone}: restore the records from a backup, or `{remedy}`")
        },
        exit: if suspended || disabled { 0 } else { 1 },
        shown: true,
        notices: Vec::new(),
    }
}

/// What files want: there is no release that could be in a state of its own.
pub(crate) fn files(tally: &Tally) -> Settled {
    let mut holding = Vec::new();
    if tally.drift() > 0 {
        holding.push((Reason::Drifted, tally.in_words()));
    }
    if tally.unverified > 0 {
        holding.push((Reason::Unverified, about_unverified(tally)));
    }
    if holding.is_empty() {
        holding.push((Reason::InSync, format!("{} as in the files{}", objects(tally.objects), tally.beside())));
    }
    let reason = holding.first().map_or(Reason::Unverified, |(reason, _)| *reason);
    let message = holding.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; ");
    let also = holding.iter().skip(1).map(|(other, text)| Notice {
        object: None,
        reason: NoticeReason::AlsoTrue,
        message: format!("{other:?}: {text}"),
    });
    Settled {
        ready: ready(reason),
        stalled: if reason == Reason::Drifted { Condition::True } else { Condition::False },
        reason,
        message,
        exit: exit(reason, tally.unverified > 0),
        shown: true,
        notices: also.collect(),
    }
}

fn objects(count: usize) -> String {
    match count {
        0 => "no objects".to_owned(),
        1 => "1 object".to_owned(),
        many => format!("{many} objects"),
    }
}

fn about_unverified(tally: &Tally) -> String {
    let first = tally.first_unverified.as_deref().map(one_line).unwrap_or_default();
    match tally.unverified {
        1 => format!("1 could not be told: {first}"),
        many => format!("{many} could not be told, first {first}"),
    }
}

fn ready(reason: Reason) -> Condition {
    match reason {
        Reason::InSync => Condition::True,
        Reason::Corrupt | Reason::Disabled | Reason::Unverified => Condition::Unknown,
        Reason::PendingInstall
        | Reason::PendingUpgrade
        | Reason::PendingRollback
        | Reason::Failed
        | Reason::Uninstalling
        | Reason::Uninstalled
        | Reason::Superseded
        | Reason::RevisionMismatch
        | Reason::Deleted
        | Reason::Drifted => Condition::False,
    }
}

/// `uncertain`: something could not be told, which outranks what was.
fn exit(reason: Reason, uncertain: bool) -> u8 {
    match reason {
        _ if uncertain => 2,
        Reason::InSync | Reason::Disabled => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::payload::DecodeError;
    use super::super::release::{History, RecordOwner};
    use super::super::state::tests::{Given, given, old, release, server_side};
    use super::*;

    #[test]
    fn files_are_in_sync_drifted_or_not_told() {
        let told = |tally: Tally| {
            let settled = files(&tally);
            (settled.reason, settled.exit, settled.message)
        };
        let tally = Tally { objects: 3, expected: 1, ..Tally::default() };
        assert_eq!(told(tally.clone()), (Reason::InSync, 0, "3 objects as in the files (1 expected)".into()));
        let mut tally = Tally { missing: 1, expected: 0, ..tally };
        assert_eq!(told(tally.clone()), (Reason::Drifted, 1, "1 missing".into()));
        tally.add_unverified("a.yaml: line 3: it has no kind");
        let both = "1 missing; 1 could not be told: a.yaml: line 3: it has no kind";
        assert_eq!(told(tally.clone()), (Reason::Drifted, 2, both.into()));
        tally.missing = 0;
        assert_eq!(
            (files(&tally).reason, files(&tally).ready, files(&tally).exit),
            (Reason::Unverified, Condition::Unknown, 2)
        );
    }

    /// Every row of the table in design.md §6, and the ways in which they meet.
    #[test]
    fn the_table_of_states() {
        use Condition::{False, True, Unknown};
        let drift = |tally: &mut Tally| (tally.changed, tally.missing, tally.added, tally.expected) = (3, 1, 1, 2);
        let unread = |tally: &mut Tally| tally.add_unverified("Service/web: services is forbidden");
        #[rustfmt::skip]
        let rows: Vec<(Given, Condition, Condition, Reason, u8, &str)> = vec![
            (given("11=superseded 12=deployed"), True, False, Reason::InSync, 0, "34 objects as in revision 12"),
            (given("1=deployed").found(|tally| (tally.objects, tally.expected, tally.ignored, tally.untrackable) = (1, 2, 1, 1)),
                True, False, Reason::InSync, 0, "1 object as in revision 1 (2 expected, 1 ignored, 1 untrackable)"),
            (given("1=deployed").found(|tally| tally.objects = 0), True, False, Reason::InSync, 0, "no objects as in revision 1"),
            (given("12=deployed").found(drift), False, True, Reason::Drifted, 1, "3 changed, 1 missing, 1 added (2 expected)"),
            (given("12=deployed").found(|tally| (tally.removed, tally.orphans) = (1, 2)),
                False, True, Reason::Drifted, 1, "1 removed, 2 left over"),
            (given("12=deployed").found(drift).found(unread), False, True, Reason::Drifted, 2,
                "3 changed, 1 missing, 1 added (2 expected); 1 could not be told: Service/web: services is forbidden"),

            (given("11=deployed 12=pending-upgrade"), False, False, Reason::PendingUpgrade, 1,
                "revision 12 has been pending-upgrade for 5m; the live state fits revision 11; wait, or, if no helm is at work on it, `helm rollback nucleus 11 -n prod`"),
            (old(given("11=deployed 12=pending-upgrade").found(|tally| (tally.expected, tally.upgrade, tally.from_newest) = (2, 2, Some(0)))),
                False, True, Reason::PendingUpgrade, 1,
                "revision 12 has been pending-upgrade for 3h12m and blocks every upgrade; the live state fits revision 12; `helm rollback nucleus 11 -n prod` unlocks it"),
            (old(given("10=superseded 11=deployed 12=pending-rollback").found(|tally| (tally.expected, tally.upgrade, tally.from_newest) = (1, 1, Some(3)))),
                False, True, Reason::PendingRollback, 1,
                "revision 12 has been pending-rollback for 3h12m and blocks every upgrade; the live state lies between revisions 11 and 12; `helm rollback nucleus 11 -n prod` unlocks it"),
            (old(given("1=pending-install")), False, True, Reason::PendingInstall, 1,
                "revision 1 has been pending-install for 3h12m and blocks every upgrade; the live state fits it; `helm uninstall nucleus -n prod` unlocks it"),
            (old(given("1=failed 2=pending-upgrade").found(|tally| tally.missing = 1)), False, True, Reason::PendingUpgrade, 1,
                "revision 2 has been pending-upgrade for 3h12m and blocks every upgrade; `helm rollback nucleus 2 -n prod` unlocks it; 1 missing"),
            (given("11=deployed 12=pending-upgrade").with(|given| {
                    given.newest.as_mut().unwrap().last_deployed = None;
                    given.change_records(|record| record.owners.clear());
                }), False, True, Reason::PendingUpgrade, 1,
                "revision 12 has been pending-upgrade and blocks every upgrade; the live state fits revision 11; `helm rollback nucleus 11 -n prod` unlocks it"),

            (given("11=deployed 12=failed").found(|tally| (tally.changed, tally.from_newest) = (1, Some(2))), False, True, Reason::Failed, 1,
                "revision 12 failed (Upgrade \"nucleus\" failed: timed out); the live state fits neither revision 11 nor 12; mend the cause and upgrade again, or `helm rollback nucleus 11 -n prod`; 1 changed"),
            (given("11=deployed 12=failed").with(server_side).found(|tally| (tally.expected, tally.from_newest) = (1, Some(2))), False, True, Reason::Failed, 1,
                "revision 12 failed (Upgrade \"nucleus\" failed: timed out); the live state fits revision 11; mend the cause and upgrade again, or `helm rollback nucleus 11 --force-conflicts -n prod`"),
            (given("11=deployed 12=pending-upgrade").with(server_side).found(|tally| (tally.expected, tally.upgrade, tally.from_newest) = (1, 1, Some(0))),
                False, False, Reason::PendingUpgrade, 1,
                "revision 12 has been pending-upgrade for 5m; the live state fits revision 12; wait, or, if no helm is at work on it, `helm rollback nucleus 11 -n prod`"),
            (given("11=deployed 12=failed").with(server_side).found(|tally| tally.from_newest = Some(0)), False, True, Reason::Failed, 1,
                "revision 12 failed (Upgrade \"nucleus\" failed: timed out); the live state fits revisions 11 and 12 alike; mend the cause and upgrade again, or `helm rollback nucleus 11 -n prod`"),
            (given("1=failed").found(unread), False, True, Reason::Failed, 2,
                "revision 1 failed (Upgrade \"nucleus\" failed: timed out); mend the cause and upgrade again, or `helm uninstall nucleus -n prod`; 1 could not be told: Service/web: services is forbidden"),
            (given("1=failed 2=failed").found(|tally| tally.missing = 1), False, True, Reason::Failed, 1,
                "revision 2 failed (Upgrade \"nucleus\" failed: timed out); mend the cause and upgrade again; 1 missing"),
            (given("11=deployed 12=failed").with(|given| given.judged = Err(DecodeError::Base64)), False, True, Reason::Failed, 2,
                "revision 12 failed (Upgrade \"nucleus\" failed: timed out); mend the cause and upgrade again, or `helm rollback nucleus 11 -n prod`; revision 11 is what runs, and its record sh.helm.release.v1.nucleus.v11 cannot be read: not base64 text"),

            (given("11=superseded 12=uninstalling"), False, True, Reason::Uninstalling, 1,
                "revision 12 has been uninstalling for 3h5m: `helm uninstall nucleus -n prod` finishes it"),
            (given("12=uninstalled").with(|given| given.asked.named = true), False, True, Reason::Uninstalled, 1,
                "uninstalled 3h5m ago, its history kept: `helm rollback nucleus 12 -n prod` brings it back, `helm uninstall nucleus -n prod` forgets it"),
            (given("12=uninstalled").found(|tally| tally.orphans = 2), False, True, Reason::Uninstalled, 1,
                "uninstalled 3h5m ago, but 2 objects are left over: delete them, or bring the release back by `helm rollback nucleus 12 -n prod`"),
            (given("12=uninstalled").found(unread), False, True, Reason::Uninstalled, 2,
                "uninstalled 3h5m ago, its history kept: `helm rollback nucleus 12 -n prod` brings it back, `helm uninstall nucleus -n prod` forgets it; 1 could not be told: Service/web: services is forbidden"),
            (given("1=superseded").found(|tally| tally.changed = 1), False, True, Reason::Superseded, 1,
                "revision 1 is superseded, so a newer record is gone: restore that from a backup, or make this one current by `helm rollback nucleus 1 -n prod`; 1 changed"),

            (given("1=deployed 2=deployed"), False, True, Reason::RevisionMismatch, 1,
                "revisions 2, 1 are all labelled deployed: `helm rollback nucleus 2 -n prod` leaves one"),
            (given("1=failed").with(|given| given.newest = Ok(release(1, "deployed"))), False, True, Reason::RevisionMismatch, 1,
                "sh.helm.release.v1.nucleus.v1 has label status=failed and payload status deployed: `kubectl label --overwrite secret sh.helm.release.v1.nucleus.v1 status=deployed -n prod`"),
            (given("2=deployed").with(|given| given.asked.expected_revision = Some(3)), False, True, Reason::RevisionMismatch, 1,
                "the newest revision is 2, expected is 3: upgrade or roll back to the revision that is wanted, or change what is expected"),
            (given("2=deployed").with(|given| given.newest.as_mut().unwrap().namespace = "shop".into()), False, True, Reason::RevisionMismatch, 1,
                "sh.helm.release.v1.nucleus.v2 is stored in namespace prod and its payload says shop: restore it into the namespace that it names"),
            (given("2=deployed").with(|given| given.newest.as_mut().unwrap().name = "atom".into()), False, True, Reason::RevisionMismatch, 1,
                "sh.helm.release.v1.nucleus.v2 says name nucleus and its payload atom: restore that record from a backup"),
            (given("2=deployed").with(|given| given.newest.as_mut().unwrap().revision = 7).found(|tally| tally.changed = 1), False, True, Reason::RevisionMismatch, 1,
                "sh.helm.release.v1.nucleus.v2 says version 2 and its payload 7: restore that record from a backup; 1 changed"),
            (given("2=deployed").with(|given| { given.storage = Storage::ConfigMap; relabel(given, "version", Some("1")); relabel(given, "name", None); }),
                False, True, Reason::RevisionMismatch, 1,
                "sh.helm.release.v1.nucleus.v2 has no label name and payload name nucleus; sh.helm.release.v1.nucleus.v2 has label version=1 and payload version 2: `kubectl label --overwrite configmap sh.helm.release.v1.nucleus.v2 name=nucleus -n prod`"),

            (given("11=superseded 12=deployed").with(|given| given.newest = Err(DecodeError::Base64)), Unknown, True, Reason::Corrupt, 2,
                "revision 12 cannot be read: sh.helm.release.v1.nucleus.v12 (not base64 text); restore it from a backup, or save it aside, `kubectl delete secret sh.helm.release.v1.nucleus.v12 -n prod`, then `helm rollback nucleus 11 -n prod`"),
            (given("1=deployed").with(|given| given.newest = Err(DecodeError::Null)), Unknown, True, Reason::Corrupt, 2,
                "revision 1 cannot be read: sh.helm.release.v1.nucleus.v1 (holds JSON null); restore it from a backup, or save it aside, `kubectl delete secret sh.helm.release.v1.nucleus.v1 -n prod`, then `helm upgrade --install nucleus CHART -n prod`"),
            (given("11=superseded 12=deployed").with(|given| { given.revision = Some(11); given.judged = Err(DecodeError::Null); }), Unknown, True, Reason::Corrupt, 2,
                "revision 11 cannot be read: sh.helm.release.v1.nucleus.v11 (holds JSON null); restore it from a backup, or judge another revision"),
            (given("12=deployed").found(unread).found(unread), Unknown, False, Reason::Unverified, 2,
                "2 could not be told, first Service/web: services is forbidden"),
            (given("1=superseded 2=paused"), Unknown, True, Reason::Unverified, 2,
                "what became of revision 2 cannot be told, its status \"paused\" is none of Helm's: `helm rollback nucleus 1 -n prod`"),
            (given("2=unknown").found(|tally| tally.changed = 1), False, True, Reason::Drifted, 2,
                "1 changed; what became of revision 2 cannot be told, Helm itself calls its status unknown: `helm rollback nucleus 2 -n prod`"),
            (given("12=deployed").with(|given| given.asked.mode = Mode::Disabled), Unknown, False, Reason::Disabled, 0,
                "drift detection is disabled for this release; mode warn turns it on"),

            (given("11=superseded 12=deployed").with(|given| given.revision = Some(11)), True, False, Reason::InSync, 0, "34 objects as in revision 11"),
            (given("12=deployed").found(drift).with(|given| given.asked.suspended = true), False, True, Reason::Drifted, 0,
                "3 changed, 1 missing, 1 added (2 expected)"),
        ];
        for (given, ready, stalled, reason, exit, message) in rows {
            let settled = given.settled();
            assert_eq!(settled.message, message);
            assert_eq!(
                (settled.ready, settled.stalled, settled.reason, settled.exit),
                (ready, stalled, reason, exit),
                "{message}"
            );
            assert!(settled.shown, "{message}");
        }
    }

    /// Puts another label on the newest record, or none.
    fn relabel(given: &mut Given, label: &str, value: Option<&str>) {
        let mut records: Vec<_> = given.history.records().cloned().collect();
        let newest = &mut records[0];
        match value {
            Some(value) => newest.labels.insert(label.into(), value.into()),
            None => newest.labels.remove(label),
        };
        given.history = History::group(records).remove(0);
    }

    #[test]
    fn the_first_reason_of_the_list_wins_and_the_others_are_said() {
        let settled = given("10=deployed 11=deployed 12=failed").found(|tally| tally.changed = 1).settled();
        assert_eq!(settled.reason, Reason::Failed);
        let also: Vec<_> = settled.notices.iter().map(|notice| (notice.reason, notice.message.as_str())).collect();
        assert_eq!(
            also,
            [
                (
                    NoticeReason::AlsoTrue,
                    "RevisionMismatch: revisions 11, 10 are all labelled deployed: `helm rollback nucleus 11 -n prod` leaves one"
                ),
                (NoticeReason::AlsoTrue, "Drifted: 1 changed"),
            ]
        );
        let disabled = |given: Given| given.with(|given| given.asked.mode = Mode::Disabled);
        assert_eq!(disabled(given("1=failed")).settled().reason, Reason::Disabled);
        let corrupt = disabled(given("1=failed").with(|given| given.newest = Err(DecodeError::Empty))).settled();
        assert_eq!((corrupt.reason, corrupt.exit), (Reason::Corrupt, 0));
        let superseded = given("1=superseded").with(|given| given.asked.expected_revision = Some(2));
        assert_eq!(superseded.settled().reason, Reason::Superseded);
        let unheard = given("2=paused").found(|tally| tally.changed = 1);
        assert_eq!(unheard.settled().reason, Reason::Drifted, "drift outranks an unknown status");
    }

    #[test]
    fn an_uninstalled_release_that_nobody_asked_for_and_that_left_nothing_does_not_count() {
        let settled = given("12=uninstalled").settled();
        assert_eq!((settled.reason, settled.shown, settled.exit), (Reason::Uninstalled, false, 0));
        for asked in [
            |given: &mut Given| given.asked.named = true,
            |given: &mut Given| given.asked.expected = true,
            |given: &mut Given| given.tally.orphans = 1,
        ] {
            let settled = given("12=uninstalled").with(asked).settled();
            assert_eq!((settled.shown, settled.exit), (true, 1));
        }
    }

    #[test]
    fn a_record_stored_elsewhere_by_flux_is_no_mismatch() {
        let flux = given("2=deployed").with(|given| {
            given.newest.as_mut().unwrap().namespace = "apps".into();
            given.change_records(|record| {
                record.owners = vec![RecordOwner { manager: "helm-controller".into(), time: None }];
            });
        });
        assert_eq!(flux.settled().reason, Reason::InSync);
        let nowhere = given("2=deployed").with(|given| given.newest.as_mut().unwrap().namespace = String::new());
        assert_eq!(nowhere.settled().reason, Reason::InSync);
    }

    #[test]
    fn a_release_without_records_is_deleted() {
        let key = ReleaseKey { namespace: "prod".into(), name: "nucleus".into() };
        let settled = deleted(&key, 4, None, Mode::Warn, false);
        assert_eq!((settled.ready, settled.stalled, settled.exit), (Condition::False, Condition::True, 1));
        assert_eq!(
            settled.message,
            "no record is left in namespace prod, but 4 objects still name it: restore the records from a backup, or `helm upgrade --install nucleus CHART -n prod`"
        );
    }
}
