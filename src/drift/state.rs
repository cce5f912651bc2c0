//! The state of a release (design.md §6) by what its records say, before anything is compared. Knows nothing of objects.

use jiff::{SignedDuration, Timestamp};

use super::classify::Hand;
use super::finding::{ApplyMethod, Mode, Reason, Storage};
use super::payload::DecodeError;
use super::release::{History, RecordMeta, RecordOwner, Release, ReleaseKey, Status};
use super::writers::is_persons_tool;

/// How long a pending revision may still be at work.
pub(crate) const PENDING_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

/// What is asked of a release, apart from what is in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) now: Timestamp,
    pub(crate) pending_timeout: SignedDuration,
    pub(crate) mode: Mode,
    pub(crate) suspended: bool,
    /// On the command line.
    pub(crate) named: bool,
    /// The configuration says that the release must exist.
    pub(crate) expected: bool,
    pub(crate) expected_revision: Option<u64>,
    /// `--revision` was given.
    pub(crate) revision_named: bool,
    /// More names under which Helm writes objects.
    pub(crate) helm_managers: Vec<String>,
}

/// What the records hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) history: &'a History,
    pub(crate) storage: Storage,
    pub(crate) newest: Result<&'a Release, &'a DecodeError>,
    /// The record whose manifest is compared, by [`History::judged`]; the newest itself when that cannot be read.
    pub(crate) judged: &'a RecordMeta,
    pub(crate) judged_release: Result<&'a Release, &'a DecodeError>,
}

/// What is to be compared with the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// Nothing: there is no manifest to go by, or no answer would mean anything.
    Nothing,
    /// The judged manifest.
    Manifest,
    /// Whether objects of the judged manifest are still there: each that is, but for a keep policy, is an `orphan`.
    Leftovers,
}

/// Why the records contradict themselves or what is expected, and what mends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) pair: String,
    pub(super) remedy: String,
}

/// A release before its objects are compared.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(super) key: ReleaseKey,
    pub(super) storage: Storage,
    pub(super) asked: Asked,
    pub(super) newest: u64,
    pub(super) judged: u64,
    /// What to roll back to.
    pub(super) rollback: Option<u64>,
    pub(super) apply_method: ApplyMethod,
    /// What holds already, in order of precedence.
    pub(super) grounds: Vec<Ground>,
    pub(super) comparison: Comparison,
    /// The status is none of Helm's: nobody will move the release on.
    pub(super) unheard: bool,
    hand: Hand,
    /// Why the record does not tell Helm's own hand, if it does not.
    pub(super) rewritten: Option<String>,
}

/// One reason that holds, with what its message needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ground {
    /// The record's object, and why it cannot be read.
    Corrupt {
        object: String,
        revision: u64,
        why: String,
    },
    Disabled,
    Pending {
        reason: Reason,
        status: String,
        age: Option<String>,
        stuck: bool,
    },
    Failed {
        description: String,
    },
    Uninstalling {
        age: Option<String>,
    },
    Uninstalled {
        age: Option<String>,
    },
    Superseded,
    Mismatch(Vec<Mismatch>),
    /// Something keeps the answer from being certain, whatever is found.
    Unsure(String),
}

impl Ground {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Corrupt { .. } => Reason::Corrupt,
            Self::Disabled => Reason::Disabled,
            Self::Pending { reason, .. } => *reason,
            Self::Failed { .. } => Reason::Failed,
            Self::Uninstalling { .. } => Reason::Uninstalling,
            Self::Uninstalled { .. } => Reason::Uninstalled,
            Self::Superseded => Reason::Superseded,
            Self::Mismatch(_) => Reason::RevisionMismatch,
            Self::Unsure(_) => Reason::Unverified,
        }
    }
}

impl State {
    pub(crate) fn new(facts: &Facts<'_>, asked: Asked) -> Self {
        let newest = facts.history.newest();
        let status = facts.newest.map(Release::status);
        let mut state = Self {
            key: facts.history.key.clone(),
            storage: facts.storage,
            newest: newest.revision,
            judged: facts.judged.revision,
            rollback: facts.history.rollback_target(),
            apply_method: facts.newest.map(|release| release.apply_method).unwrap_or_default(),
            grounds: Vec::new(),
            comparison: Comparison::Manifest,
            unheard: false,
            hand: Hand::default(),
            rewritten: rewritten(newest, facts.storage),
            asked,
        };
        state.look_at_payloads(facts);
        if let (Ok(status), Ok(release)) = (status, facts.newest) {
            state.look_at_status(status, release, newest);
        }
        state.look_for_mismatches(facts);
        if state.asked.mode == Mode::Disabled {
            state.grounds.push(Ground::Disabled);
            state.comparison = Comparison::Nothing;
        }
        state.hand = state.helms_hand(newest);
        state.grounds.sort_by_key(Ground::reason);
        state
    }

    /// Records that contradict each other, or a payload that does not fit its labels: also what a release looks like that moves while
    /// it is read.
    pub(crate) fn is_contradictory(&self) -> bool {
        self.grounds.iter().any(|ground| matches!(ground, Ground::Mismatch(_)))
    }

    pub(crate) fn comparison(&self) -> Comparison {
        self.comparison
    }

    /// What tells Helm's own writes from others' (design.md §5.5).
    pub(crate) fn hand(&self) -> &Hand {
        &self.hand
    }

    /// By the newest record: Helm writes that last, after the objects and after all other records.
    fn helms_hand(&self, newest: &RecordMeta) -> Hand {
        let owner = if self.rewritten.is_none() { writer(newest) } else { None };
        let superseded = self.grounds.iter().any(|ground| matches!(ground, Ground::Superseded));
        let older = self.asked.revision_named && self.judged != self.newest;
        Hand {
            managers: self.asked.helm_managers.clone(),
            record_owner: owner.map(|owner| owner.manager.clone()),
            window_end: owner.and_then(|owner| owner.time),
            rewritten: self.rewritten.is_some(),
            admission_excuse: self.rewritten.is_none() && !superseded && !older,
            applier: false,
        }
    }

    /// Whether a difference that equals the newest revision's manifest is `expected (upgrade)`: that revision is under way or
    /// failed half-way, and an older one is judged.
    pub(crate) fn is_between_revisions(&self) -> bool {
        let unfinished =
            self.grounds.iter().any(|ground| matches!(ground, Ground::Pending { .. } | Ground::Failed { .. }));
        unfinished && self.judged != self.newest && self.comparison == Comparison::Manifest
    }

    fn look_at_payloads(&mut self, facts: &Facts<'_>) {
        let newest = facts.history.newest();
        let judges_newest = facts.judged.object_name == newest.object_name;
        if let Err(error) = facts.newest {
            self.grounds.push(corrupt(newest, error));
        }
        if let Err(error) = facts.judged_release {
            self.comparison = Comparison::Nothing;
            // Asked for by number it is the one that counts; else the newest, which can be read, names the reason.
            if !judges_newest && facts.newest.is_ok() {
                self.grounds.push(match self.asked.revision_named {
                    true => corrupt(facts.judged, error),
                    false => Ground::Unsure(format!(
                        "revision {} is what runs, and its record {} cannot be read: {error}",
                        facts.judged.revision, facts.judged.object_name
                    )),
                });
            }
        }
    }

    fn look_at_status(&mut self, status: Status, release: &Release, newest: &RecordMeta) {
        let pending = |state: &Self, reason| {
            // Time comes from the payload; the record's last write stands in for one that Helm did not write.
            let since = release.last_deployed.or_else(|| writer(newest)?.time);
            let age = since.map(|since| state.asked.now.duration_since(since));
            Ground::Pending {
                reason,
                status: release.status.clone(),
                age: age.map(in_words),
                stuck: age.is_none_or(|age| age > state.asked.pending_timeout),
            }
        };
        let age = |state: &Self| release.deleted.map(|since| in_words(state.asked.now.duration_since(since)));
        let ground = match status {
            Status::Deployed => return,
            Status::PendingInstall => pending(self, Reason::PendingInstall),
            Status::PendingUpgrade => pending(self, Reason::PendingUpgrade),
            Status::PendingRollback => pending(self, Reason::PendingRollback),
            Status::Failed => Ground::Failed { description: one_line(&release.description) },
            Status::Uninstalling => Ground::Uninstalling { age: age(self) },
            Status::Uninstalled => Ground::Uninstalled { age: age(self) },
            Status::Superseded => Ground::Superseded,
            Status::Unknown => {
                self.unheard = true;
                Ground::Unsure(self.about_unknown_status(&release.status, newest))
            }
        };
        match ground {
            Ground::Uninstalling { .. } => self.comparison = Comparison::Nothing,
            Ground::Uninstalled { .. } if self.comparison == Comparison::Manifest => {
                self.comparison = Comparison::Leftovers
            }
            _ => {}
        }
        self.grounds.push(ground);
    }

    fn about_unknown_status(&self, status: &str, newest: &RecordMeta) -> String {
        let target = self.rollback.unwrap_or(self.newest);
        let says = if status == "unknown" {
            "Helm itself calls its status unknown".to_owned()
        } else {
            format!("its status {status:?} is none of Helm's")
        };
        format!(
            "what became of revision {} cannot be told, {says}: `{}`",
            newest.revision,
            self.helm(&format!("rollback {} {target}", self.key.name))
        )
    }

    fn look_for_mismatches(&mut self, facts: &Facts<'_>) {
        let newest = facts.history.newest();
        let mut found = Vec::new();
        if let Some(expected) = self.asked.expected_revision.filter(|expected| *expected != newest.revision) {
            found.push(Mismatch {
                pair: format!("the newest revision is {}, expected is {expected}", newest.revision),
                remedy: "upgrade or roll back to the revision that is wanted, or change what is expected".to_owned(),
            });
        }
        found.extend(self.two_deployed(facts.history));
        if let Ok(release) = facts.newest {
            found.extend(self.contradictions(newest, release));
        }
        if facts.judged.object_name != newest.object_name
            && let Ok(release) = facts.judged_release
        {
            found.extend(self.contradictions(facts.judged, release));
        }
        if !found.is_empty() {
            self.grounds.push(Ground::Mismatch(found));
        }
    }

    fn two_deployed(&self, history: &History) -> Option<Mismatch> {
        let deployed: Vec<String> = history.deployed().map(|record| record.revision.to_string()).collect();
        match deployed.as_slice() {
            [] | [_] => None,
            [highest, ..] => Some(Mismatch {
                pair: format!("revisions {} are all labelled deployed", deployed.join(", ")),
                remedy: format!("`{}` leaves one", self.helm(&format!("rollback {} {highest}", self.key.name))),
            }),
        }
    }

    /// Where one record's name, labels and payload disagree. Helm goes by the labels in one place and by the payload in another.
    fn contradictions(&self, record: &RecordMeta, release: &Release) -> Vec<Mismatch> {
        let own = self.key.name.clone();
        let revision = record.revision.to_string();
        let told = [
            ("name", Some(own.as_str()), release.name.as_str()),
            ("version", Some(revision.as_str()), &release.revision.to_string()),
            ("status", None, release.status.as_str()),
        ];
        let mut found = Vec::new();
        for (label, by_name, payload) in told {
            if by_name.is_some_and(|by_name| by_name != payload) {
                found.push(Mismatch {
                    pair: format!(
                        "{} says {label} {} and its payload {payload}",
                        record.object_name,
                        by_name.unwrap_or_default()
                    ),
                    remedy: "restore that record from a backup".to_owned(),
                });
                continue;
            }
            let labelled = record.labels.get(label);
            if labelled.is_none_or(|labelled| labelled != payload) {
                let labelled = labelled
                    .map_or_else(|| format!("no label {label}"), |labelled| format!("label {label}={labelled}"));
                found.push(Mismatch {
                    pair: format!("{} has {labelled} and payload {label} {payload}", record.object_name),
                    remedy: self.label_command(record, label, payload),
                });
            }
        }
        let moved = !release.namespace.is_empty() && release.namespace != self.key.namespace;
        // Flux stores records where `spec.storageNamespace` says.
        let by_design = record.owners.iter().any(|owner| owner.manager == "helm-controller");
        if moved && !by_design {
            found.push(Mismatch {
                pair: format!(
                    "{} is stored in namespace {} and its payload says {}",
                    record.object_name, self.key.namespace, release.namespace
                ),
                remedy: "restore it into the namespace that it names".to_owned(),
            });
        }
        found
    }

    /// The label follows the payload, but only where the value can be a label's.
    fn label_command(&self, record: &RecordMeta, label: &str, value: &str) -> String {
        if self.storage == Storage::Sql || Status::of(value) == Status::Unknown && label == "status" {
            return "restore that record from a backup".to_owned();
        }
        format!(
            "`kubectl label --overwrite {} {} {label}={value} -n {}`",
            self.object_kind(),
            record.object_name,
            self.key.namespace
        )
    }

    pub(super) fn helm(&self, words: &str) -> String {
        format!("helm {words} -n {}", self.key.namespace)
    }

    pub(super) fn object_kind(&self) -> &'static str {
        match self.storage {
            Storage::ConfigMap => "configmap",
            Storage::Secret | Storage::Sql | Storage::Files => "secret",
        }
    }
}

/// The newest owner of the record's payload that is not a person's tool.
fn writer(record: &RecordMeta) -> Option<&RecordOwner> {
    record.owners.iter().filter(|owner| !is_persons_tool(&owner.manager)).max_by_key(|owner| owner.time)
}

/// Why nothing can be told from who wrote the record and when.
fn rewritten(record: &RecordMeta, storage: Storage) -> Option<String> {
    match (storage, writer(record), record.owners.first()) {
        (Storage::Sql, _, _) => Some("records in SQL do not say who wrote them and when".to_owned()),
        (_, Some(_), _) => None,
        (_, None, Some(person)) => {
            Some(format!("{} was last written by {}, not by Helm", record.object_name, person.manager))
        }
        (_, None, None) => {
            Some(format!("{} does not say who wrote it: its managedFields were cleared", record.object_name))
        }
    }
}

fn corrupt(record: &RecordMeta, error: &DecodeError) -> Ground {
    Ground::Corrupt { object: record.object_name.clone(), revision: record.revision, why: format!("({error})") }
}

/// On one line and at most 200 characters; what else there is of control characters is for the output to escape.
pub(super) fn one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut line = String::new();
    for (index, word) in text.split(['\n', '\r']).map(str::trim).filter(|part| !part.is_empty()).enumerate() {
        if index > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// `45s`, `12m`, `3h12m`, `2d3h`, `90d`: as kubectl shows ages (k8s.io/apimachinery `duration.HumanDuration`), less its finer steps.
fn in_words(age: SignedDuration) -> String {
    let seconds = age.as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with_rest = |whole: i64, unit: char, rest: i64, part: char| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{part}"),
    };
    match (minutes, hours, days) {
        (..2, ..) => format!("{seconds}s"),
        (..180, ..) => format!("{minutes}m"),
        (_, ..48, _) => with_rest(hours, 'h', minutes % 60, 'm'),
        (_, _, ..8) => with_rest(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::release::tests::history;
    use super::super::settle::Settled;
    use super::super::tally::Tally;
    use super::*;

    pub(crate) fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    pub(crate) fn release(revision: u64, status: &str) -> Release {
        Release {
            name: "nucleus".into(),
            namespace: "prod".into(),
            revision,
            status: status.into(),
            description: "Upgrade \"nucleus\" failed:\n  timed out".into(),
            last_deployed: Some(at("2026-11-30T10:00:00Z")),
            deleted: matches!(Status::of(status), Status::Uninstalling | Status::Uninstalled)
                .then(|| at("2026-11-30T07:00:00Z")),
            chart_name: Some("nucleus".into()),
            chart_version: Some("1.4.2".into()),
            app_version: None,
            has_subcharts: false,
            apply_method: ApplyMethod::ClientSide,
            manifest: String::new(),
            hooks: 0,
            crds: 0,
        }
    }

    /// One situation: records by label, what differs from the ordinary, and what was found.
    pub(crate) struct Given {
        pub(crate) history: History,
        pub(crate) storage: Storage,
        pub(crate) newest: Result<Release, DecodeError>,
        /// Of the judged record, where that is not the newest.
        pub(crate) judged: Result<(), DecodeError>,
        pub(crate) revision: Option<u64>,
        pub(crate) asked: Asked,
        pub(crate) tally: Tally,
    }

    pub(crate) fn given(records: &str) -> Given {
        let history = history(records);
        let newest = history.newest();
        let newest = Ok(release(newest.revision, newest.labels.get("status").unwrap()));
        Given {
            history,
            storage: Storage::Secret,
            newest,
            judged: Ok(()),
            revision: None,
            asked: Asked {
                now: at("2026-11-30T10:05:00Z"),
                pending_timeout: PENDING_TIMEOUT,
                mode: Mode::Warn,
                suspended: false,
                named: false,
                expected: false,
                expected_revision: None,
                revision_named: false,
                helm_managers: Vec::new(),
            },
            tally: Tally { objects: 34, ..Tally::default() },
        }
    }

    impl Given {
        pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
            change(&mut self);
            self
        }

        /// The same change on every record.
        pub(crate) fn change_records(&mut self, change: impl Fn(&mut RecordMeta)) {
            let mut records: Vec<RecordMeta> = self.history.records().cloned().collect();
            records.iter_mut().for_each(change);
            self.history = History::group(records).remove(0);
        }

        pub(crate) fn found(self, change: impl FnOnce(&mut Tally)) -> Self {
            self.with(|given| change(&mut given.tally))
        }

        pub(crate) fn state(&self) -> State {
            let status = self.newest.as_ref().map_or(Status::Unknown, Release::status);
            let judged = self.history.judged(status, self.revision).unwrap();
            let old = release(judged.revision, judged.labels.get("status").unwrap());
            let judged_release = match (&self.newest, &self.judged) {
                (newest, _) if judged.revision == self.history.newest().revision => newest.as_ref(),
                (_, Ok(())) => Ok(&old),
                (_, Err(error)) => Err(error),
            };
            let asked = Asked { revision_named: self.revision.is_some(), ..self.asked.clone() };
            let facts = Facts {
                history: &self.history,
                storage: self.storage,
                newest: self.newest.as_ref(),
                judged,
                judged_release,
            };
            State::new(&facts, asked)
        }

        pub(crate) fn settled(&self) -> Settled {
            self.state().settle(&self.tally)
        }
    }

    pub(crate) fn old(given: Given) -> Given {
        given.with(|given| given.asked.now = at("2026-11-30T13:12:00Z"))
    }

    pub(crate) fn server_side(given: &mut Given) {
        if let Ok(release) = &mut given.newest {
            release.apply_method = ApplyMethod::ServerSide;
        }
    }

    #[test]
    fn what_is_compared_follows_from_the_state() {
        for (records, comparison, between) in [
            ("12=deployed", Comparison::Manifest, false),
            ("11=deployed 12=pending-upgrade", Comparison::Manifest, true),
            ("11=deployed 12=failed", Comparison::Manifest, true),
            ("1=failed", Comparison::Manifest, false),
            ("1=superseded", Comparison::Manifest, false),
            ("1=paused", Comparison::Manifest, false),
            ("12=uninstalling", Comparison::Nothing, false),
            ("12=uninstalled", Comparison::Leftovers, false),
        ] {
            let state = given(records).state();
            assert_eq!((state.comparison(), state.is_between_revisions()), (comparison, between), "{records}");
        }
        let corrupt = |given: &mut Given| given.newest = Err(DecodeError::Empty);
        assert_eq!(given("12=deployed").with(corrupt).state().comparison(), Comparison::Nothing);
        let older = given("11=superseded 12=deployed").with(corrupt).with(|given| given.revision = Some(11));
        assert_eq!(older.state().comparison(), Comparison::Manifest, "asked for by number, it is compared");
        assert_eq!(older.settled().reason, Reason::Corrupt);
        let disabled = given("12=deployed").with(|given| given.asked.mode = Mode::Disabled);
        assert_eq!(disabled.state().comparison(), Comparison::Nothing);
    }

    #[test]
    fn helms_hand_is_known_by_the_newest_record() {
        let owner = |manager: &str, time: Option<&str>| RecordOwner { manager: manager.into(), time: time.map(at) };
        let state = |owners: &[RecordOwner], storage| {
            given("1=deployed")
                .with(|given| {
                    given.change_records(|record| record.owners = owners.to_vec());
                    given.storage = storage;
                })
                .state()
        };
        let (early, late) = (Some("2026-11-30T10:00:00Z"), Some("2026-11-30T11:00:00Z"));
        for (owners, record_owner, window) in [
            (vec![owner("Helm", early)], "Helm", early),
            (vec![owner("velero-server", late)], "velero-server", late),
            (vec![owner("Helm", early), owner("kubectl", late)], "Helm", early),
            (vec![owner("Helm", early), owner("helm-controller", late)], "helm-controller", late),
        ] {
            let state = state(&owners, Storage::Secret);
            let hand = state.hand();
            assert_eq!((hand.record_owner.as_deref(), hand.window_end), (Some(record_owner), window.map(at)));
            assert_eq!((hand.rewritten, hand.admission_excuse, state.rewritten.as_deref()), (false, true, None));
        }
        for (owners, storage, why) in [
            (
                vec![owner("kubectl-client-side-apply", late)],
                Storage::ConfigMap,
                "was last written by kubectl-client-side-apply, not by Helm",
            ),
            (vec![], Storage::Secret, "its managedFields were cleared"),
            (vec![owner("Helm", early)], Storage::Sql, "SQL"),
        ] {
            let state = state(&owners, storage);
            let hand = state.hand();
            assert_eq!((hand.record_owner.as_deref(), hand.window_end), (None, None));
            assert_eq!((hand.rewritten, hand.admission_excuse), (true, false));
            assert!(state.rewritten.as_ref().is_some_and(|text| text.contains(why)), "{:?}", state.rewritten);
        }
    }

    #[test]
    fn the_admission_excuse_needs_the_newest_revision() {
        assert!(given("12=deployed").state().hand().admission_excuse);
        assert!(given("11=deployed 12=failed").state().hand().admission_excuse);
        assert!(!given("12=superseded").state().hand().admission_excuse);
        let older = given("11=superseded 12=deployed");
        assert!(!older.with(|given| given.revision = Some(11)).state().hand().admission_excuse);
        let newest = given("11=superseded 12=deployed");
        assert!(newest.with(|given| given.revision = Some(12)).state().hand().admission_excuse);
    }

    #[test]
    fn ages_and_texts_are_short() {
        for (seconds, words) in
            [(-5, "0s"), (45, "45s"), (119, "119s"), (120, "2m"), (3600, "60m"), (11_520, "3h12m"), (10_800, "3h")]
        {
            assert_eq!(in_words(SignedDuration::from_secs(seconds)), words);
        }
        assert_eq!(in_words(SignedDuration::from_hours(51)), "2d3h");
        assert_eq!(in_words(SignedDuration::from_hours(24 * 90)), "90d");
        assert_eq!(one_line("a\r\n\n  b\n"), "a b");
        assert_eq!(one_line("tab\tstays\u{1b}"), "tab\tstays\u{1b}");
        let long = one_line(&"ü".repeat(300));
        assert_eq!((long.chars().count(), long.ends_with('…')), (201, true));
    }
}
