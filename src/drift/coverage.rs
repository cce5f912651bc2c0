//! Which ignore rules are of no use: expired, or without anything to cover although everything they concern was judged
//! (design.md §7.3). Knows nothing of how rules are matched.

use jiff::Timestamp;

use super::finding::{Notice, NoticeReason, Reason, ReleaseReport, Verdict};
use super::release::ReleaseKey;
use super::rules::{Hit, Rule};

/// What a check looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked<'a> {
    /// `None`: all namespaces.
    pub(crate) namespace: Option<&'a str>,
    /// Named releases; none: all.
    pub(crate) names: &'a [String],
    /// Nothing else narrowed it, and nothing went wrong.
    pub(crate) whole: bool,
    pub(crate) releases: &'a [ReleaseReport],
}

/// A notice for each rule that is of no use, in order.
pub(crate) fn notices(rules: &[Rule], hits: &[Hit], now: Timestamp, looked: Looked<'_>) -> Vec<Notice> {
    let notice = |(place, rule): (usize, &Rule)| {
        let who = format!("ignore rule of line {} ({}: {})", rule.line, rule.title(), rule.reason);
        let mut own = hits.iter().filter(|hit| hit.rule == place);
        let (reason, message) = match &rule.expires {
            Some(expiry) if !rule.is_alive(now) => {
                (NoticeReason::RuleExpired, format!("{who} expired on {} and covers nothing any more", expiry.text))
            }
            _ if hits.iter().any(|hit| hit.rule == place && hit.covers) || !looked.covers(rule) => return None,
            _ => (NoticeReason::RuleNeverMatches, format!("{who} covers nothing{}", hint(own.next()))),
        };
        Some(Notice { object: None, reason, message })
    };
    rules.iter().enumerate().filter_map(notice).collect()
}

fn hint(inside: Option<&Hit>) -> String {
    let Some((hit, path)) = inside.and_then(|hit| Some((hit, hit.path.as_ref()?))) else { return String::new() };
    format!("; {path} of {} is reported as one: name that, not a part of it", hit.object)
}

impl Looked<'_> {
    /// Everything that the rule concerns was in scope, and all of it was judged.
    fn covers(&self, rule: &Rule) -> bool {
        let namespace = |wanted: &str| self.namespace.is_none_or(|namespace| namespace == wanted);
        let in_scope = if rule.releases.is_empty() {
            self.names.is_empty()
                && (self.namespace.is_none()
                    || !rule.namespaces.is_empty() && rule.namespaces.iter().all(|one| namespace(one)))
        } else {
            let named = |name: &str| self.names.is_empty() || self.names.iter().any(|one| one == name);
            rule.releases.iter().all(|one| namespace(&one.namespace) && named(&one.name))
        };
        let mut concerned = self.releases.iter().filter(|release| {
            rule.concerns(&ReleaseKey { namespace: release.namespace.clone(), name: release.name.clone() })
        });
        self.whole && in_scope && concerned.all(is_judged)
    }
}

/// Whether all objects of a release were compared.
fn is_judged(release: &ReleaseReport) -> bool {
    let compared = match release.reason {
        Reason::Corrupt | Reason::Disabled | Reason::Uninstalling | Reason::Uninstalled | Reason::Deleted => false,
        Reason::PendingInstall
        | Reason::PendingUpgrade
        | Reason::PendingRollback
        | Reason::Failed
        | Reason::Superseded
        | Reason::RevisionMismatch
        | Reason::Drifted
        | Reason::Unverified
        | Reason::InSync => release.judged_revision.is_some(),
    };
    compared
        && release.objects.unreadable == 0
        && release.findings.iter().all(|finding| finding.verdict != Verdict::Unverified)
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Change, Condition, Mode, ObjectCounts, Storage};
    use super::super::object::{FieldPath, Gvk, ObjectRef};
    use super::super::rules::tests::rule;
    use super::super::rules::{Expiry, ReleaseGlob};
    use super::*;

    fn release(namespace: &str, reason: Reason) -> ReleaseReport {
        ReleaseReport {
            name: "nucleus".into(),
            namespace: namespace.into(),
            revision: Some(1),
            judged_revision: Some(1),
            status: None,
            chart: None,
            app_version: None,
            last_deployed: None,
            storage: Storage::Secret,
            apply_method: None,
            ready: Condition::True,
            stalled: Condition::False,
            reason,
            message: String::new(),
            mode: Mode::Warn,
            suspended: false,
            exit: 0,
            objects: ObjectCounts::default(),
            findings: Vec::new(),
            notices: Vec::new(),
        }
    }

    fn hit(covers: bool) -> Hit {
        Hit {
            rule: 0,
            covers,
            release: ReleaseKey { namespace: "prod".into(), name: "nucleus".into() },
            object: ObjectRef {
                gvk: Gvk::new("apps/v1", "Deployment"),
                namespace: Some("prod".into()),
                name: "web".into(),
            },
            path: Some(FieldPath::of_fields(&["spec", "args"])),
            change: Change::Changed,
        }
    }

    fn told(rule: &Rule, hits: &[Hit], looked: Looked<'_>) -> Vec<(NoticeReason, String)> {
        let now = "2026-11-30T10:00:00Z".parse().unwrap();
        let notices = notices(std::slice::from_ref(rule), hits, now, looked);
        notices.into_iter().map(|notice| (notice.reason, notice.message)).collect()
    }

    const ALL: Looked<'_> = Looked { namespace: None, names: &[], whole: true, releases: &[] };

    #[test]
    fn a_rule_that_covers_nothing_is_told() {
        let message = "ignore rule of line 1 (.spec.replicas: scaled by others) covers nothing";
        assert_eq!(told(&rule(), &[], ALL), [(NoticeReason::RuleNeverMatches, message.to_owned())]);
        assert_eq!(told(&rule(), &[hit(true)], ALL), []);
        let inside = format!("{message}; .spec.args of Deployment/web is reported as one: name that, not a part of it");
        assert_eq!(told(&rule(), &[hit(false)], ALL), [(NoticeReason::RuleNeverMatches, inside)]);
    }

    #[test]
    fn an_expired_rule_is_told_whatever_was_looked_at() {
        let expired = Rule {
            expires: Some(Expiry { at: "2021-06-30T00:00:00Z".parse().unwrap(), text: "2021-06-30".into() }),
            ..rule()
        };
        let message = "ignore rule of line 1 (.spec.replicas: scaled by others) expired on 2021-06-30 and covers nothing any more";
        for looked in [ALL, Looked { whole: false, ..ALL }] {
            assert_eq!(told(&expired, &[], looked), [(NoticeReason::RuleExpired, message.to_owned())]);
        }
    }

    #[test]
    fn nothing_is_said_of_a_rule_whose_objects_were_not_all_judged() {
        let glob = |namespace: &str, name: &str| Rule {
            releases: vec![ReleaseGlob { namespace: namespace.into(), name: name.into() }],
            ..rule()
        };
        let of_namespace = |namespace: &str| Rule { namespaces: vec![namespace.into()], ..rule() };
        let nucleus = ["nucleus".to_owned()];
        let prod = Looked { namespace: Some("prod"), ..ALL };
        let named = Looked { names: &nucleus, ..prod };
        for (what, rule, looked, is) in [
            ("all, in one namespace", rule(), prod, false),
            ("all, by name", rule(), Looked { names: &nucleus, ..ALL }, false),
            ("all, narrowed", rule(), Looked { whole: false, ..ALL }, false),
            ("the namespace", of_namespace("prod"), prod, true),
            ("the namespace, by name", of_namespace("prod"), named, false),
            ("another namespace", of_namespace("dev"), prod, false),
            ("namespaces", of_namespace("pro*"), prod, false),
            ("the release", glob("prod", "nucleus"), named, true),
            ("releases of the namespace", glob("prod", "*"), prod, true),
            ("releases of the namespace, one named", glob("prod", "*"), named, false),
            ("another release", glob("prod", "web"), named, false),
            ("releases", glob("*", "nucleus"), named, false),
        ] {
            assert_eq!(told(&rule, &[], looked).len() == 1, is, "{what}");
        }
        let mut unreadable = release("prod", Reason::Unverified);
        unreadable.objects.unreadable = 1;
        for (what, of, releases, is) in [
            ("in sync", rule(), vec![release("prod", Reason::InSync)], true),
            ("failed", rule(), vec![release("prod", Reason::Failed)], true),
            ("disabled", rule(), vec![release("prod", Reason::Disabled)], false),
            ("corrupt", rule(), vec![release("prod", Reason::Corrupt)], false),
            ("unreadable", rule(), vec![unreadable], false),
            ("another is disabled", glob("dev", "*"), vec![release("prod", Reason::Disabled)], true),
        ] {
            assert_eq!(told(&of, &[], Looked { releases: &releases, ..ALL }).len() == 1, is, "{what}");
        }
    }
}
