//! From differences to findings: who did it, why, and whether it counts (design.md §5.4, §5.5, §7). Knows nothing of how
//! objects were read. What only a look-up can settle (is there an autoscaler?) is returned as a question.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::applier::Applier;
use super::compare::{Comparison, Difference, Nature, Remark, compare};
use super::defaults::Fill;
use super::finding::{
    ApplyMethod, Cause, Change, Class, Finding, Fix, Manager, Notice, NoticeReason, Severity, Shown, Verdict,
};
use super::in_place::{is_built_in, is_immutable};
use super::mask::{is_secret, shown};
use super::object::{FieldPath, Gvk, ObjectRef};
use super::owners::{Entry, EntryId, OwnerNode, Owners};
use super::rules::{Sensitive, Writer};
use super::schema::Schema;
use super::security::{self, Relevance};
use super::strategic;
use super::writers::{self, Subject};

/// Helm's own hand in one release: under which names it writes objects, and until when it did (design.md §5.5).
#[derive(Clone, Debug, Default)]
pub(crate) struct Hand {
    /// More names under which Helm writes, globs; beside the well-known ones.
    pub(crate) managers: Vec<String>,
    /// The manager that owns the record's payload, when that is not a person's tool.
    pub(crate) record_owner: Option<String>,
    /// When that manager last wrote the record. Without it every write of Helm's managers counts as its own.
    pub(crate) window_end: Option<Timestamp>,
    /// The record was moved or rewritten by a person's tool: Helm's managers are the owners of each object's ownership annotations.
    pub(crate) rewritten: bool,
    /// A value that Helm's manager alone holds may have been rewritten at admission.
    pub(crate) admission_excuse: bool,
    /// The desired state is a file's: in Helm's place stands whoever applied that, to be found out for each object. Nothing else counts then.
    pub(crate) applier: bool,
}

/// Names under which Helm and its controllers write objects.
pub(super) const HELM_MANAGERS: &[&str] = &["helm", "helm3", "helm-controller", "terraform-provider-helm*"];

/// managedFields times have one-second steps, and the record is written before the last objects settle.
const SLACK: SignedDuration = SignedDuration::from_secs(2);

/// What else the judgement of one object needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    pub(crate) hand: &'a Hand,
    pub(crate) apply_method: ApplyMethod,
    /// The record has subcharts, so an upgrade needs a chart that it does not hold.
    pub(crate) has_subcharts: bool,
    /// The same object as a pending or failed newest revision wants it; `Some(None)`: that revision has it no more.
    pub(crate) upgrade: Option<Option<&'a Value>>,
    /// The same object as failed revisions that are still stored wanted it, while the newest is deployed.
    pub(crate) failed: &'a [&'a Value],
    /// More known writers.
    pub(crate) writers: &'a [Writer],
}

/// What must be looked up before a finding is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Does an autoscaler target this object?
    Autoscaled,
}

/// A finding, and the question whose "yes" makes it expected.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) finding: Finding,
    pub(crate) question: Option<Question>,
    /// To be told unless a rule covers the finding.
    pub(crate) notice: Option<Notice>,
}

impl Candidate {
    /// With nothing left to ask or to tell.
    pub(crate) fn settled(finding: Finding) -> Self {
        Self { finding, question: None, notice: None }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) notices: Vec<Notice>,
}

/// The desired side of one comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) object: &'a ObjectRef,
    pub(crate) source: Option<&'a str>,
    pub(crate) body: &'a Value,
    /// What must not be shown of it, beside a Secret's values.
    pub(crate) sensitive: &'a [Sensitive],
}

/// Judges one object that was found.
pub(crate) fn judge<'a>(
    wanted: Wanted<'a>,
    live: &'a Value,
    schema: Option<&Schema>,
    circumstances: Circumstances<'a>,
) -> Judgement {
    let owners = Owners::of(live);
    let gvk = &wanted.object.gvk;
    let Comparison { differences, remarks } = compare(gvk, wanted.body, live, schema, &owners);
    let against = |body: &Value| compare(gvk, body, live, schema, &owners).differences;
    let applied = if circumstances.hand.applier {
        Applier::find(&owners, wanted.object, wanted.body, live).map(|applier| {
            let copy = applier.last_applied().filter(|_| !differences.is_empty());
            let otherwise = copy.map(|copy| compare(gvk, wanted.body, copy, schema, &owners).differences);
            Applied { otherwise: otherwise.unwrap_or_default(), applier }
        })
    } else {
        None
    };
    let mut judge = Judge {
        wanted,
        live,
        circumstances,
        upgrade: circumstances.upgrade.map(|body| body.map(against)),
        failed: if differences.is_empty() {
            Vec::new()
        } else {
            circumstances.failed.iter().map(|body| against(body)).collect()
        },
        roles: roles_here(&owners, circumstances.hand, applied.as_ref(), wanted.body, live),
        applied,
        owners,
        judgement: Judgement::default(),
    };
    for difference in &differences {
        judge.difference(difference);
    }
    judge.remarks(remarks, schema.is_some_and(|schema| schema.has(gvk)));
    judge.judgement
}

/// Who applied the file.
struct Applied {
    applier: Applier,
    /// Differences of kubectl's copy of what was applied to the file.
    otherwise: Vec<Difference>,
}

/// The roles, and none of Helm's where it wrote the object last for another release: whatever it did then is no excuse for this
/// one, however near their times are.
fn roles_here(owners: &Owners, hand: &Hand, applied: Option<&Applied>, desired: &Value, live: &Value) -> Vec<Role> {
    let mut roles = roles(owners, hand, applied);
    let annotations = owners.root.field("metadata").and_then(|node| node.field("annotations"));
    let taken_over = ["meta.helm.sh/release-name", "meta.helm.sh/release-namespace"].iter().any(|name| {
        let value = |object: &'_ Value| object.pointer("/metadata/annotations").and_then(|all| all.get(name)).cloned();
        let differs = matches!((value(desired), value(live)), (Some(ours), Some(theirs)) if ours != theirs);
        let holders = annotations.and_then(|node| node.field(name)).map(OwnerNode::holders).unwrap_or_default();
        differs && holders.iter().any(|id| roles.get(*id) == Some(&Role::Helm))
    });
    if taken_over {
        roles.iter_mut().filter(|role| **role == Role::Helm).for_each(|role| *role = Role::Other);
    }
    roles
}

/// What an entry is to the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Helm, within its window; the applier of a file.
    Helm,
    /// Helm's name, after its window.
    Late,
    /// A stand-in for owners nobody knows.
    Trace,
    Other,
}

fn roles(owners: &Owners, hand: &Hand, applied: Option<&Applied>) -> Vec<Role> {
    if hand.applier {
        let role = |id: EntryId, entry: &Entry| match applied {
            _ if entry.is_trace() => Role::Trace,
            Some(applied) if applied.applier.is(id) => Role::Helm,
            _ => Role::Other,
        };
        return owners.entries.iter().enumerate().map(|(id, entry)| role(id, entry)).collect();
    }
    let annotators: Vec<&str> = if hand.rewritten {
        let node = owners
            .root
            .field("metadata")
            .and_then(|node| node.field("annotations"))
            .and_then(|node| node.field("meta.helm.sh/release-name"));
        node.map(|node| node.holders())
            .unwrap_or_default()
            .iter()
            .filter_map(|id| owners.entries.get(*id))
            .map(|entry| entry.manager.name.as_str())
            .collect()
    } else {
        Vec::new()
    };
    owners
        .entries
        .iter()
        .map(|entry| {
            let name = entry.manager.name.as_str();
            let is_helm = HELM_MANAGERS.iter().any(|pattern| writers::glob(pattern, name))
                || hand.managers.iter().any(|pattern| writers::glob(pattern, name))
                || hand.record_owner.as_deref() == Some(name)
                || (annotators.contains(&name) && !writers::is_persons_tool(name));
            match hand.window_end {
                _ if entry.is_trace() => Role::Trace,
                _ if !is_helm => Role::Other,
                Some(end) if entry.manager.time.is_none_or(|time| time > end + SLACK) => Role::Late,
                _ => Role::Helm,
            }
        })
        .collect()
}

/// Why what a known writer did is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known<'a> {
    cause: Cause,
    /// The reason that the configuration gives.
    note: Option<&'a str>,
}

impl From<Cause> for Known<'_> {
    fn from(cause: Cause) -> Self {
        Self { cause, note: None }
    }
}

/// What one part of a live-only value turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    /// No difference: a default, an allocation, or Helm's own.
    Nothing,
    /// Nobody holds it: set at admission.
    Unowned,
    /// The applier holds it and did not send it: filled in by the server, or set at admission.
    Filled,
    /// The applier's notes on the object.
    Notes,
    /// Its owner's traces were wiped.
    Untraceable,
    Known(Known<'a>),
    Drift(Cause),
}

/// The verdict on a live-only value as a whole.
#[derive(Debug, Default)]
struct Sum<'a> {
    unowned: bool,
    filled: bool,
    notes: bool,
    untraceable: bool,
    known: Option<Known<'a>>,
    drift: Option<Cause>,
    /// Holders of the parts that decide.
    drifted_by: Vec<EntryId>,
    known_by: Vec<EntryId>,
}

struct Judge<'a> {
    wanted: Wanted<'a>,
    live: &'a Value,
    circumstances: Circumstances<'a>,
    /// Differences of live to the pending or failed revision's object.
    upgrade: Option<Option<Vec<Difference>>>,
    failed: Vec<Vec<Difference>>,
    applied: Option<Applied>,
    roles: Vec<Role>,
    owners: Owners,
    judgement: Judgement,
}

impl<'a> Judge<'a> {
    fn difference(&mut self, difference: &Difference) {
        if self.fits_upgrade(difference) {
            return self.expected(difference, Cause::Upgrade.into(), &difference.holders);
        }
        match (difference.change, difference.nature) {
            (Change::Added, _) => self.added(difference),
            (Change::Removed, _) => self.removed(difference),
            (_, Nature::DroppedZero) => self.dropped_zero(difference),
            (_, Nature::ExtraInside) => self.extra_inside(difference),
            (_, Nature::Reordered) => self.expected(difference, Cause::Bookkeeping.into(), &difference.holders),
            (_, Nature::Order) => self.order(difference),
            (_, Nature::Plain | Nature::NotStored) => self.changed(difference),
        }
    }

    /// Who put items in another order is known only when somebody but Helm holds some of them.
    fn order(&mut self, difference: &Difference) {
        if self.all(&difference.holders, Role::Helm) {
            return self.push(difference, Verdict::Drift, Some(Cause::Unattributed), None, &[], None);
        }
        self.changed(difference);
    }

    /// Live holds what the pending or failed revision wants here (design.md §6).
    fn fits_upgrade(&self, difference: &Difference) -> bool {
        matches!(&self.upgrade, Some(Some(differences)) if !touches(differences, &difference.path))
    }

    fn role(&self, id: EntryId) -> Role {
        self.roles.get(id).copied().unwrap_or(Role::Other)
    }

    fn all(&self, holders: &[EntryId], role: Role) -> bool {
        !holders.is_empty() && holders.iter().all(|id| self.role(*id) == role)
    }

    fn any(&self, holders: &[EntryId], role: Role) -> bool {
        holders.iter().any(|id| self.role(*id) == role)
    }

    fn managers(&self, holders: &[EntryId]) -> Vec<&Manager> {
        holders.iter().filter_map(|id| self.owners.entries.get(*id)).map(|entry| &entry.manager).collect()
    }

    fn known(&self, path: &FieldPath, holders: &[EntryId]) -> Option<Known<'a>> {
        // What Helm wrote itself beside a controller is no evidence against the controller.
        let others: Vec<EntryId> = holders.iter().copied().filter(|id| self.role(*id) != Role::Helm).collect();
        let managers = self.managers(&others);
        let gvk = &self.wanted.object.gvk;
        let subject = Subject { gvk, desired: self.wanted.body };
        let by_table = writers::known(subject, path, &managers).map(|cause| Known { cause, note: None });
        by_table.or_else(|| {
            let writer = self.circumstances.writers.iter().find(|one| one.explains(gvk, path, &managers))?;
            Some(Known { cause: Cause::Controller, note: writer.reason.as_deref() })
        })
    }

    /// A value that live has in addition, apart from what it is made of.
    fn part(&self, difference: &Difference) -> Part<'a> {
        let holders = &difference.holders;
        match difference.fill {
            Some(Fill::Default | Fill::Allocated) => return Part::Nothing,
            _ if self.was_applied(difference) => return Part::Drift(Cause::AppliedDifferently),
            Some(Fill::NodePort) if holders.iter().all(|id| self.role(*id) == Role::Helm) => return Part::Nothing,
            Some(Fill::NodePort) | None => {}
        }
        if self.owners.absent || self.all(holders, Role::Trace) {
            return Part::Untraceable;
        }
        if holders.is_empty() {
            return if self.may_be_scaled_unseen(difference) {
                Part::Drift(Cause::Unattributed)
            } else {
                Part::Unowned
            };
        }
        if let Some(applied) = self.applied.as_ref().filter(|_| self.any(holders, Role::Helm)) {
            return if applied.applier.is_bookkeeping(&difference.path) { Part::Notes } else { Part::Filled };
        }
        if self.any(holders, Role::Helm) {
            return if self.left_behind(&difference.path) { Part::Drift(Cause::LeftBehind) } else { Part::Nothing };
        }
        if let Some(known) = self.known(&difference.path, holders) {
            return Part::Known(known);
        }
        Part::Drift(if self.any(holders, Role::Late) { Cause::ForgedName } else { Cause::Added })
    }

    /// The applier sent a value that the file does not have: another version of it was applied.
    fn was_applied(&self, difference: &Difference) -> bool {
        self.applied.as_ref().is_some_and(|Applied { applier, .. }| {
            self.any(&difference.holders, Role::Helm)
                && applier.sent(&difference.path)
                && !applier.is_bookkeeping(&difference.path)
        })
    }

    /// Scaling through the scale subresource can leave no owner; one replica is the default and proves nothing.
    fn may_be_scaled_unseen(&self, difference: &Difference) -> bool {
        is_replicas(&difference.path) && difference.live.as_ref().and_then(Value::as_f64) != Some(1.0)
    }

    /// A failed revision wanted it, the current one does not: left behind by the failure.
    fn left_behind(&self, path: &FieldPath) -> bool {
        self.failed.iter().any(|differences| !touches(differences, path))
    }

    fn sum(&self, difference: &Difference, sum: &mut Sum<'a>) {
        if difference.fill.is_some_and(|fill| fill != Fill::NodePort) {
            return;
        }
        if !difference.parts.is_empty() {
            return difference.parts.iter().for_each(|part| self.sum(part, sum));
        }
        match self.part(difference) {
            Part::Nothing => {}
            Part::Unowned => sum.unowned = true,
            Part::Filled => sum.filled = true,
            Part::Notes => sum.notes = true,
            Part::Untraceable => sum.untraceable = true,
            Part::Known(known) => {
                sum.known = sum.known.or(Some(known));
                sum.known_by.extend(&difference.holders);
            }
            Part::Drift(cause) => {
                sum.drift = Some(sum.drift.map_or(cause, |before| before.min(cause)));
                sum.drifted_by.extend(&difference.holders);
            }
        }
    }

    fn added(&mut self, difference: &Difference) {
        let mut sum = Sum::default();
        self.sum(difference, &mut sum);
        let is_item = difference.path.last_field().is_none();
        let calm = sum.known.is_some() || sum.notes;
        if (sum.drift.is_some() || sum.untraceable) && calm && !difference.parts.is_empty() && !is_item {
            // Expected and unexpected parts under one root are told apart.
            return difference.parts.iter().for_each(|part| self.added(part));
        }
        if let Some(cause) = sum.drift {
            let question =
                (is_replicas(&difference.path) && self.may_be_scaled(&sum.drifted_by)).then_some(Question::Autoscaled);
            self.push(difference, Verdict::Drift, Some(cause), None, &distinct(sum.drifted_by), question);
        } else if sum.untraceable {
            self.untraceable(difference);
        } else if let Some(known) = sum.known {
            self.expected(difference, known, &distinct(sum.known_by));
        } else if sum.unowned {
            self.unowned(difference);
        } else if sum.filled {
            self.filled(difference);
        }
    }

    fn unowned(&mut self, difference: &Difference) {
        let why = "nobody owns it: set at admission, or its owner's managedFields entry was removed";
        self.set_at_admission(difference, "held by nobody: set at admission", why, &[]);
    }

    /// A client-side apply owns what the server filled in for it. Its name is anybody's to use, so what matters is said.
    fn filled(&mut self, difference: &Difference) {
        let why = "its applier owns it and did not send it: filled in for it, or written by somebody under its name";
        let note = "not sent by its applier: filled in, or set at admission";
        self.set_at_admission(difference, note, why, &difference.holders);
    }

    fn set_at_admission(&mut self, difference: &Difference, note: &str, why: &str, holders: &[EntryId]) {
        let notice = (self.relevance(difference) != Relevance::None).then(|| Notice {
            object: Some(self.wanted.object.clone()),
            reason: NoticeReason::UnattributedAddition,
            message: format!("{} was added and {why}", difference.path),
        });
        self.push(difference, Verdict::Expected, Some(Cause::Admission), Some(note), holders, None);
        if let Some(candidate) = self.judgement.candidates.last_mut() {
            candidate.notice = notice;
        }
    }

    fn relevance(&self, difference: &Difference) -> Relevance {
        security::relevance(
            &self.wanted.object.gvk,
            &difference.path,
            [difference.desired.as_ref(), difference.live.as_ref()],
        )
    }

    fn removed(&mut self, difference: &Difference) {
        if difference.nature == Nature::NotStored && self.any(&difference.holders, Role::Helm) {
            return;
        }
        let otherwise = self.applied.as_ref().is_some_and(|applied| touches(&applied.otherwise, &difference.path));
        let cause = if otherwise { Cause::AppliedDifferently } else { Cause::Removed };
        self.push(difference, Verdict::Drift, Some(cause), None, &[], None);
    }

    /// Desired is a zero that the server does not store: judged as if desired were absent, reported as changed.
    fn dropped_zero(&mut self, difference: &Difference) {
        match self.part(difference) {
            Part::Nothing | Part::Unowned | Part::Filled | Part::Notes => {}
            Part::Known(known) => self.expected(difference, known, &difference.holders),
            Part::Untraceable | Part::Drift(_) => self.changed(difference),
        }
    }

    fn extra_inside(&mut self, difference: &Difference) {
        let holders = &difference.holders;
        let explained = difference.parts.iter().all(|part| matches!(part.fill, Some(Fill::Default | Fill::Allocated)));
        if explained {
            return;
        }
        match &self.applied {
            Some(_) if !self.any(holders, Role::Helm) || self.applied_inside(difference) => {}
            Some(_) => return self.filled(difference),
            None if self.any(holders, Role::Helm) => return,
            None => {}
        }
        if self.owners.absent || self.all(holders, Role::Trace) {
            return self.untraceable(difference);
        }
        if !holders.is_empty() {
            self.changed(difference);
        }
    }

    /// What an atomic value has in addition was sent by the applier: by its copy of the file, or by a server-side apply, which owns
    /// such a value as a whole.
    fn applied_inside(&self, difference: &Difference) -> bool {
        self.applied.as_ref().is_some_and(|applied| match applied.applier.last_applied() {
            Some(_) => touches(&applied.otherwise, &difference.path),
            None => applied.applier.sent(&difference.path),
        })
    }

    fn untraceable(&mut self, difference: &Difference) {
        let note = "no managedFields entry tells who set it: someone may have wiped the traces";
        self.push(difference, Verdict::Unverified, Some(Cause::Unattributed), Some(note), &[], None);
    }

    fn changed(&mut self, difference: &Difference) {
        let holders = &difference.holders;
        if let Some(known) = self.known(&difference.path, holders) {
            return self.expected(difference, known, holders);
        }
        let is_own = self.all(holders, Role::Helm);
        if is_own && self.is_confused(&difference.path) {
            let note =
                "Helm's own merge took one list item for another with the same key (kubernetes/kubernetes#39188)";
            let cause = Some(Cause::AppliedDifferently);
            return self.push(difference, Verdict::Drift, cause, Some(note), holders, None);
        }
        if self.circumstances.hand.admission_excuse && is_own {
            let note = "rewritten while Helm wrote it";
            return self.push(difference, Verdict::Expected, Some(Cause::Admission), Some(note), holders, None);
        }
        if self.was_rewritten(difference) {
            let note = "rewritten while it was applied: kubectl's copy of what was applied holds the file's value";
            return self.push(difference, Verdict::Expected, Some(Cause::Admission), Some(note), holders, None);
        }
        let cause = if self.is_of_another_version(difference) {
            Cause::AppliedDifferently
        } else if holders.is_empty() {
            Cause::Unattributed
        } else if self.any(holders, Role::Late)
            && holders.iter().all(|id| matches!(self.role(*id), Role::Late | Role::Helm))
        {
            Cause::ForgedName
        } else {
            Cause::Edited
        };
        let question = (is_replicas(&difference.path) && self.may_be_scaled(holders)).then_some(Question::Autoscaled);
        self.push(difference, Verdict::Drift, Some(cause), None, holders, question);
    }

    /// A client-side Helm wrote it into the wrong item: no admission did.
    fn is_confused(&self, path: &FieldPath) -> bool {
        let Circumstances { hand, apply_method, .. } = self.circumstances;
        let client_side = apply_method == ApplyMethod::ClientSide && !hand.applier;
        client_side && strategic::confuses_at(&self.wanted.object.gvk, self.wanted.body, path)
    }

    /// Under the applier's own name, though it sent the file's value.
    fn was_rewritten(&self, difference: &Difference) -> bool {
        self.applied.as_ref().is_some_and(|applied| {
            applied.applier.last_applied().is_some()
                && self.all(&difference.holders, Role::Helm)
                && !touches(&applied.otherwise, &difference.path)
        })
    }

    /// The applier sent another value than the file's: its copy of the file says so, or, where it kept none, that it holds the value.
    fn is_of_another_version(&self, difference: &Difference) -> bool {
        self.applied.as_ref().is_some_and(|applied| match applied.applier.last_applied() {
            Some(_) => touches(&applied.otherwise, &difference.path),
            None => self.all(&difference.holders, Role::Helm),
        })
    }

    /// Nobody, or somebody who scales for autoscalers, holds the replicas.
    fn may_be_scaled(&self, holders: &[EntryId]) -> bool {
        self.managers(holders).iter().all(|manager| writers::may_scale(&manager.name))
    }

    fn expected(&mut self, difference: &Difference, known: Known<'_>, holders: &[EntryId]) {
        self.push(difference, Verdict::Expected, Some(known.cause), known.note, holders, None);
    }

    fn notice(&mut self, reason: NoticeReason, message: String) {
        self.judgement.notices.push(Notice { object: Some(self.wanted.object.clone()), reason, message });
    }

    fn push(
        &mut self,
        difference: &Difference,
        verdict: Verdict,
        cause: Option<Cause>,
        note: Option<&str>,
        holders: &[EntryId],
        question: Option<Question>,
    ) {
        let gvk = &self.wanted.object.gvk;
        let (manager, managers) =
            if difference.change == Change::Removed { (None, Vec::new()) } else { self.owners.named(holders) };
        let class = class(verdict, cause, manager.as_ref());
        let severity = class.map(|class| {
            security::severity(
                gvk,
                difference.change,
                Some(&difference.path),
                [difference.desired.as_ref(), difference.live.as_ref()],
                class,
            )
        });
        self.judgement.candidates.push(Candidate {
            finding: Finding {
                object: self.wanted.object.clone(),
                source: self.wanted.source.map(str::to_owned),
                change: difference.change,
                desired: shown(self.wanted, &difference.path, difference.desired.as_ref()),
                live: shown(self.wanted, &difference.path, difference.live.as_ref()),
                path: Some(difference.path.clone()),
                pointer: Some(difference.pointer.clone()),
                manager,
                managers,
                verdict,
                cause,
                class,
                severity,
                rule: None,
                note: note.map(str::to_owned),
                fix: fix(
                    verdict,
                    difference.change,
                    gvk,
                    is_immutable(gvk, self.live, &difference.path),
                    self.circumstances,
                ),
            },
            question,
            notice: None,
        });
    }

    fn remarks(&mut self, remarks: Vec<Remark>, typed: bool) {
        for remark in remarks {
            match remark {
                Remark::Pruned(path) => self.notice(
                    NoticeReason::Pruned,
                    format!("{path} is unknown to the schema: the server does not store it"),
                ),
                Remark::DuplicateItem(path) => {
                    self.notice(NoticeReason::DuplicateKey, format!("{path} is in the manifest more than once"))
                }
            }
        }
        if self.owners.absent {
            self.notice(
                NoticeReason::NoManagedFields,
                "the object has no managedFields: who changed it cannot be told".to_owned(),
            );
        }
        if !typed {
            let kind = &self.wanted.object.gvk;
            self.notice(
                NoticeReason::TypesMissing,
                format!(
                    "the cluster gives no types for {} {}: list keys are taken from managedFields",
                    kind.api_version(),
                    kind.kind
                ),
            );
        }
    }
}

/// Settles a finding whose question was answered with yes.
pub(crate) fn autoscaled(finding: &mut Finding) {
    finding.verdict = Verdict::Expected;
    finding.cause = Some(Cause::Autoscaler);
    finding.class = Some(Class::A);
    finding.severity = Some(Severity::P3);
    finding.fix = Fix::None;
}

/// A finding about an object as a whole.
pub(crate) fn whole(
    wanted: Wanted<'_>,
    change: Change,
    verdict: Verdict,
    cause: Option<Cause>,
    note: Option<String>,
) -> Finding {
    let gvk = &wanted.object.gvk;
    let class = class(verdict, cause, None);
    let body = match change {
        // Not a Secret's data alone: a document whose data is elsewhere than it should be is no reason to show it.
        Change::Missing if is_secret(gvk) => Shown::Masked { bytes: 0 },
        Change::Missing => shown(wanted, &FieldPath::default(), Some(wanted.body)),
        _ => Shown::Absent,
    };
    Finding {
        object: wanted.object.clone(),
        source: wanted.source.map(str::to_owned),
        change,
        path: None,
        pointer: None,
        desired: body,
        live: Shown::Absent,
        manager: None,
        managers: Vec::new(),
        verdict,
        cause,
        class,
        severity: class.map(|class| security::severity(gvk, change, None, [None, None], class)),
        rule: None,
        note,
        fix: if verdict == Verdict::Drift && change == Change::Missing { Fix::Upgrade } else { Fix::None },
    }
}

/// The object is not there.
pub(crate) fn missing(wanted: Wanted<'_>, circumstances: Circumstances<'_>, note: Option<String>) -> Finding {
    if circumstances.upgrade == Some(None) {
        return whole(wanted, Change::Missing, Verdict::Expected, Some(Cause::Upgrade), note);
    }
    if writers::may_vanish(Subject { gvk: &wanted.object.gvk, desired: wanted.body }) {
        let note = Some("a finished Job with a TTL is deleted by its controller".to_owned());
        return whole(wanted, Change::Missing, Verdict::Expected, Some(Cause::Controller), note);
    }
    let mut finding = whole(wanted, Change::Missing, Verdict::Drift, Some(Cause::Missing), note);
    if circumstances.hand.applier {
        finding.fix = Fix::Create;
    } else if circumstances.has_subcharts {
        finding.fix = Fix::Reapply;
    }
    finding
}

fn class(verdict: Verdict, cause: Option<Cause>, manager: Option<&Manager>) -> Option<Class> {
    match verdict {
        Verdict::Expected | Verdict::Ignored => Some(Class::A),
        Verdict::Unverified => None,
        Verdict::Drift if cause == Some(Cause::ForgedName) => Some(Class::C),
        Verdict::Drift if manager.is_some_and(|manager| writers::is_persons_tool(&manager.name)) => Some(Class::B),
        Verdict::Drift => Some(Class::C),
    }
}

fn is_replicas(path: &FieldPath) -> bool {
    path == &FieldPath::of_fields(&["spec", "replicas"])
}

/// Whether some difference lies at the path, above or below it.
pub(crate) fn touches(differences: &[Difference], path: &FieldPath) -> bool {
    differences.iter().any(|one| one.path.starts_with(path) || path.starts_with(&one.path))
}

fn distinct(mut ids: Vec<EntryId>) -> Vec<EntryId> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The first method that repairs it (design.md §11, table).
fn fix(verdict: Verdict, change: Change, gvk: &Gvk, is_immutable: bool, circumstances: Circumstances<'_>) -> Fix {
    if verdict != Verdict::Drift {
        return Fix::None;
    }
    let upgrade = if circumstances.has_subcharts { Fix::Reapply } else { Fix::Upgrade };
    match change {
        Change::Orphan => Fix::RemoveAdded,
        _ if is_immutable => Fix::Recreate,
        Change::Added => Fix::RemoveAdded,
        // No Helm has a hand in files.
        _ if circumstances.hand.applier => Fix::Patch,
        _ if circumstances.apply_method == ApplyMethod::ClientSide && !is_built_in(gvk) => Fix::Patch,
        _ => upgrade,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WINDOW_END: &str = "2026-01-01T00:00:10Z";
    const DURING: &str = "2026-01-01T00:00:05Z";
    const LATER: &str = "2026-01-01T01:00:00Z";

    /// One object as a chart renders it and as it is stored, with its writers.
    struct Trial {
        desired: Value,
        live: Value,
        hand: Hand,
        failed: Vec<Value>,
        upgrade: Option<Option<Value>>,
        writers: Vec<Writer>,
        sensitive: Vec<Sensitive>,
    }

    fn trial(desired: Value, live: Value) -> Trial {
        let hand = Hand {
            managers: Vec::new(),
            record_owner: Some("Helm".into()),
            window_end: WINDOW_END.parse().ok(),
            rewritten: false,
            admission_excuse: true,
            applier: false,
        };
        Trial { desired, live, hand, failed: Vec::new(), upgrade: None, writers: Vec::new(), sensitive: Vec::new() }
    }

    impl Trial {
        /// `fields` is fieldsV1 of one more entry.
        fn by(mut self, manager: &str, operation: &str, time: &str, fields: Value) -> Self {
            let entry = json!({"manager": manager, "operation": operation, "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields});
            match self.live.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
                Some(entries) => entries.push(entry),
                None => self.live["metadata"]["managedFields"] = json!([entry]),
            }
            self
        }

        fn helm(self, fields: Value) -> Self {
            self.by("helm", "Update", DURING, fields)
        }

        fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
            change(&mut self);
            self
        }

        fn judge(&self) -> Judgement {
            let gvk = Gvk::new(self.desired["apiVersion"].as_str().unwrap(), self.desired["kind"].as_str().unwrap());
            let document: &[u8] = match gvk.group.as_str() {
                "apps" => include_bytes!("../../tests/data/openapi/apps-v1.json"),
                _ => include_bytes!("../../tests/data/openapi/core-v1.json"),
            };
            let schema = Schema::from_openapi(document).unwrap();
            assert!(schema.has(&gvk), "{gvk:?}");
            let object = ObjectRef { gvk, namespace: Some("shop".into()), name: "web".into() };
            let failed: Vec<&Value> = self.failed.iter().collect();
            let circumstances = Circumstances {
                hand: &self.hand,
                apply_method: ApplyMethod::ClientSide,
                has_subcharts: false,
                upgrade: self.upgrade.as_ref().map(Option::as_ref),
                failed: &failed,
                writers: &self.writers,
            };
            judge(
                Wanted { object: &object, source: None, body: &self.desired, sensitive: &self.sensitive },
                &self.live,
                Some(&schema),
                circumstances,
            )
        }

        /// `verdict change path cause manager`, a line each.
        fn findings(&self) -> Vec<String> {
            let line = |candidate: &Candidate| {
                let finding = &candidate.finding;
                let manager = finding.manager.as_ref().map_or("-", |manager| &manager.name);
                let path = finding.path.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{:?} {:?} {path} {:?} {manager}", finding.verdict, finding.change, finding.cause.unwrap())
            };
            self.judge().candidates.iter().map(line).collect()
        }
    }

    fn config_map(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": data})
    }

    fn deployment(spec: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    }

    fn pod(container: Value) -> Value {
        json!({"template": {"spec": {"containers": [container]}}})
    }

    #[test]
    fn who_holds_a_changed_value_decides() {
        let changed = || trial(config_map(json!({"mode": "fast"})), config_map(json!({"mode": "slow"})));
        let mode = || json!({"f:data": {"f:mode": {}}});
        assert_eq!(changed().helm(mode()).findings(), ["Expected Changed .data.mode Admission helm"]);
        assert_eq!(
            changed().by("helm", "Update", LATER, mode()).findings(),
            ["Drift Changed .data.mode ForgedName helm"]
        );
        assert_eq!(
            changed().by("kubectl-edit", "Update", LATER, mode()).findings(),
            ["Drift Changed .data.mode Edited kubectl-edit"]
        );
        assert_eq!(changed().findings(), ["Drift Changed .data.mode Unattributed -"]);
        let shared = changed().helm(mode()).by("pipeline", "Apply", LATER, mode());
        assert_eq!(shared.findings(), ["Drift Changed .data.mode Edited pipeline"]);
        let no_excuse = changed().helm(mode()).with(|trial| trial.hand.admission_excuse = false);
        assert_eq!(no_excuse.findings(), ["Drift Changed .data.mode Edited helm"]);
    }

    #[test]
    fn who_holds_an_added_value_decides() {
        let added = || trial(config_map(json!({"mode": "fast"})), config_map(json!({"mode": "fast", "x": "1"})));
        let x = || json!({"f:data": {"f:x": {}}});
        assert_eq!(added().helm(x()).findings(), Vec::<String>::new());
        assert_eq!(added().by("helm", "Update", LATER, x()).findings(), ["Drift Added .data.x ForgedName helm"]);
        assert_eq!(added().by("k9s", "Update", LATER, x()).findings(), ["Drift Added .data.x Added k9s"]);
        let nobody = added().helm(json!({"f:data": {"f:mode": {}}}));
        assert_eq!(nobody.findings(), ["Expected Added .data.x Admission -"]);
        assert_eq!(added().findings(), ["Unverified Added .data.x Unattributed -"], "wiped traces");
        let forgotten = added().by("before-first-apply", "Update", LATER, x());
        assert_eq!(forgotten.findings(), ["Unverified Added .data.x Unattributed -"]);
        let failed = added().helm(x()).with(|trial| trial.failed.push(config_map(json!({"mode": "fast", "x": "1"}))));
        assert_eq!(failed.findings(), ["Drift Added .data.x LeftBehind helm"]);
    }

    #[test]
    fn a_default_is_no_difference_whoever_owns_it() {
        let container = json!({"name": "web", "image": "nginx:1.27"});
        let full = json!({"name": "web", "image": "nginx:1.27", "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"});
        let mut live = pod(full);
        live["strategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
        live["replicas"] = json!(1);
        live["template"]["spec"]["securityContext"] = json!({});
        let all = json!({"f:spec": {"f:strategy": {"f:type": {}, "f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}}, "f:replicas": {}}});
        let recreated = trial(deployment(pod(container.clone())), deployment(live.clone())).by(
            "kubectl-create",
            "Update",
            LATER,
            all,
        );
        assert_eq!(recreated.findings(), Vec::<String>::new());

        live["template"]["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
        live["strategy"]["rollingUpdate"]["maxSurge"] = json!(5);
        let owned = json!({"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}},
            "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:imagePullPolicy": {}}}}}}});
        let edited = trial(deployment(pod(container)), deployment(live)).by("kubectl-edit", "Update", LATER, owned);
        assert_eq!(
            edited.findings(),
            [
                "Drift Added .spec.strategy Added kubectl-edit",
                r#"Drift Added .spec.template.spec.containers[name="web"].imagePullPolicy Added kubectl-edit"#
            ]
        );
    }

    #[test]
    fn zeros_that_the_server_drops_are_absent() {
        let desired = deployment(json!({"paused": false, "minReadySeconds": 0, "template": {"spec": {
            "hostNetwork": false, "tolerations": [], "nodeSelector": {}, "affinity": null, "containers": [
                {"name": "web", "tty": false, "env": [{"name": "EMPTY", "value": ""}], "resources": {"limits": {}}}]}}}));
        let live = deployment(pod(json!({"name": "web", "env": [{"name": "EMPTY"}]})));
        assert_eq!(trial(desired, live).helm(json!({})).findings(), Vec::<String>::new());

        let pointer = json!({"automountServiceAccountToken": false, "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}});
        let bare = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}});
        assert_eq!(
            trial(pointer, bare).helm(json!({})).findings(),
            ["Drift Removed .automountServiceAccountToken Removed -"]
        );
        let entry = trial(config_map(json!({"proxy": "", "a": "b"})), config_map(json!({"a": "b"}))).helm(json!({}));
        assert_eq!(entry.findings(), ["Drift Removed .data.proxy Removed -"]);
    }

    #[test]
    fn an_amount_of_a_resource_is_rounded_up_to_thousandths() {
        let with = |cpu: &str, size: &str| {
            let mut spec = pod(json!({"name": "web", "resources": {"limits": {"cpu": cpu}}}));
            spec["template"]["spec"]["volumes"] = json!([{"name": "scratch", "emptyDir": {"sizeLimit": size}}]);
            deployment(spec)
        };
        let judged = |desired, live| trial(desired, live).helm(json!({"f:spec": {}})).findings();
        assert_eq!(judged(with("1500u", "0.3333Gi"), with("2m", "357878149939200u")), Vec::<String>::new());
        assert_eq!(
            judged(with("1500u", "1500u"), with("1m", "2m")),
            [
                r#"Drift Changed .spec.template.spec.containers[name="web"].resources.limits.cpu Unattributed -"#,
                r#"Drift Changed .spec.template.spec.volumes[name="scratch"].emptyDir.sizeLimit Unattributed -"#
            ]
        );
    }

    #[test]
    fn a_zero_that_another_manager_applied_is_no_proof_that_the_server_drops_the_value() {
        let seconds = || trial(deployment(json!({"minReadySeconds": 10})), deployment(json!({})));
        let field = || json!({"f:spec": {"f:minReadySeconds": {}}});
        let zero = seconds().helm(json!({"f:spec": {}})).by("pipeline", "Apply", LATER, field());
        assert_eq!(zero.findings(), ["Drift Removed .spec.minReadySeconds Removed -"]);
        // What Helm applied and still owns, the server does not store.
        let not_stored = seconds().by("helm", "Apply", DURING, field()).by("pipeline", "Apply", LATER, field());
        assert_eq!(not_stored.findings(), Vec::<String>::new());
        let late = seconds().by("helm", "Apply", LATER, field());
        assert_eq!(late.findings(), ["Drift Removed .spec.minReadySeconds Removed -"]);
    }

    #[test]
    fn a_sidecar_is_one_finding_and_its_defaults_are_none() {
        let web = json!({"name": "web", "image": "nginx:1.27"});
        let mut live = pod(web.clone());
        let sidecar =
            json!({"name": "agent", "image": "busybox:1.37", "imagePullPolicy": "IfNotPresent", "resources": {}});
        live["template"]["spec"]["containers"] = json!([sidecar, web]);
        let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"agent\"}": {".": {}, "f:name": {}, "f:image": {}}}}}}});
        let added = || trial(deployment(pod(web.clone())), deployment(live.clone()));
        let path = r#".spec.template.spec.containers[name="agent"]"#;
        assert_eq!(
            added().by("kubectl-edit", "Update", LATER, fields).findings(),
            [format!("Drift Added {path} Added kubectl-edit")]
        );
        let trimmed = added().helm(json!({"f:spec": {}})).judge();
        assert_eq!(trimmed.candidates[0].finding.verdict, Verdict::Expected);
        let notice = trimmed.candidates[0].notice.as_ref().map(|notice| notice.reason);
        assert_eq!(notice, Some(NoticeReason::UnattributedAddition));
    }

    #[test]
    fn list_keys_names_and_order() {
        let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": ports}});
        let renumbered = trial(
            service(json!([{"name": "http", "port": 80, "targetPort": 8080}])),
            service(json!([{"name": "http", "port": 81, "targetPort": 8080, "protocol": "TCP", "nodePort": 30001}])),
        )
        .by(
            "kubectl-edit",
            "Update",
            LATER,
            json!({"f:spec": {"f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {"f:port": {}, "f:nodePort": {}}}}}),
        );
        assert_eq!(
            renumbered.findings(),
            [r#"Drift Changed .spec.ports[port=80,protocol="TCP"].port Edited kubectl-edit"#]
        );

        let env = |values: &[(&str, &str)]| {
            let env: Vec<Value> = values.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
            deployment(pod(json!({"name": "web", "env": env})))
        };
        let plain = trial(env(&[("A", "1"), ("B", "2")]), env(&[("B", "2"), ("A", "1")])).helm(json!({}));
        assert_eq!(plain.findings(), Vec::<String>::new());
        let used = trial(env(&[("A", "1"), ("B", "$(A)")]), env(&[("B", "$(A)"), ("A", "1")])).helm(json!({}));
        assert_eq!(used.findings(), [r#"Drift Changed .spec.template.spec.containers[name="web"].env Unattributed -"#]);
    }

    #[test]
    fn helms_window_ends_two_seconds_after_its_last_write_of_the_record() {
        let changed = || trial(config_map(json!({"mode": "fast"})), config_map(json!({"mode": "slow"})));
        let at = |time: &str| changed().by("helm", "Update", time, json!({"f:data": {"f:mode": {}}})).findings();
        assert_eq!(at("2026-01-01T00:00:12Z"), ["Expected Changed .data.mode Admission helm"]);
        assert_eq!(at("2026-01-01T00:00:13Z"), ["Drift Changed .data.mode ForgedName helm"]);
        assert_eq!(at(""), ["Drift Changed .data.mode ForgedName helm"], "at no time is not in time");
    }

    #[test]
    fn helm_that_wrote_for_another_release_is_no_excuse() {
        let of = |release: &str, mode: &str| {
            let mut object = config_map(json!({"mode": mode}));
            object["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": release});
            object
        };
        let all =
            json!({"f:data": {"f:mode": {}}, "f:metadata": {"f:annotations": {"f:meta.helm.sh/release-name": {}}}});
        let taken = trial(of("web", "fast"), of("other", "slow")).helm(all);
        let path = r#".metadata.annotations["meta.helm.sh/release-name"]"#;
        assert_eq!(
            taken.findings(),
            ["Drift Changed .data.mode Edited helm".to_owned(), format!("Drift Changed {path} Edited helm")]
        );
    }

    #[test]
    fn a_rewritten_record_leaves_helms_part_to_who_owns_its_annotations_but_to_no_persons_tool() {
        let mut live = config_map(json!({"mode": "fast", "x": "1"}));
        live["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "web"});
        let mut desired = config_map(json!({"mode": "fast"}));
        desired["metadata"]["annotations"] = live["metadata"]["annotations"].clone();
        let by = |name: &str| {
            let all =
                json!({"f:data": {"f:x": {}}, "f:metadata": {"f:annotations": {"f:meta.helm.sh/release-name": {}}}});
            let hand = Hand { rewritten: true, ..Hand::default() };
            trial(desired.clone(), live.clone())
                .by(name, "Update", LATER, all)
                .with(|trial| trial.hand = hand)
                .findings()
        };
        assert_eq!(by("my-helm"), Vec::<String>::new());
        assert_eq!(by("kubectl-create"), ["Drift Added .data.x Added kubectl-create"]);
    }

    #[test]
    fn replicas_that_nobody_owns_were_scaled_by_somebody() {
        let scaled = |replicas: u32| {
            let live = deployment(json!({"replicas": replicas}));
            trial(deployment(json!({})), live).helm(json!({"f:spec": {}})).findings()
        };
        assert_eq!(scaled(1), Vec::<String>::new());
        assert_eq!(scaled(0), ["Drift Added .spec.replicas Unattributed -"]);
        assert_eq!(scaled(5), ["Drift Added .spec.replicas Unattributed -"]);
    }

    #[test]
    fn a_zero_that_was_changed_is_judged_by_who_changed_it() {
        let paused = || trial(deployment(json!({"paused": false})), deployment(json!({"paused": true})));
        let fields = || json!({"f:spec": {"f:paused": {}}});
        assert_eq!(
            paused().by("kubectl-edit", "Update", LATER, fields()).findings(),
            ["Drift Changed .spec.paused Edited kubectl-edit"]
        );
        assert_eq!(paused().helm(fields()).findings(), Vec::<String>::new());
    }

    #[test]
    fn a_known_writer_is_known_beside_helm_and_apart_from_others() {
        let noted = |count: &str| {
            let mut object = deployment(json!({}));
            object["metadata"]["annotations"] = json!({"deployment.kubernetes.io/desired-replicas": count});
            object
        };
        let path = r#".metadata.annotations["deployment.kubernetes.io/desired-replicas"]"#;
        let fields = || json!({"f:metadata": {"f:annotations": {"f:deployment.kubernetes.io/desired-replicas": {}}}});
        let both =
            || trial(noted("1"), noted("2")).helm(fields()).by("kube-controller-manager", "Update", LATER, fields());
        assert_eq!(both().findings(), [format!("Expected Changed {path} Bookkeeping kube-controller-manager")]);
        let third = both().by("kubectl-edit", "Update", "2026-01-01T02:00:00Z", fields());
        assert_eq!(third.findings(), [format!("Drift Changed {path} Edited kubectl-edit")]);

        // Expected and unexpected parts of one addition.
        let mut live = pod(json!({"name": "web"}));
        live["template"]["metadata"] =
            json!({"annotations": {"kubectl.kubernetes.io/restartedAt": "now", "evil": "yes"}});
        let at = |key: &str| json!({"f:spec": {"f:template": {"f:metadata": {"f:annotations": {key: {}}}}}});
        let restarted = trial(deployment(pod(json!({"name": "web"}))), deployment(live))
            .by("kubectl-rollout", "Update", LATER, at("f:kubectl.kubernetes.io/restartedAt"))
            .by("k9s", "Update", LATER, at("f:evil"));
        let annotations = ".spec.template.metadata.annotations";
        assert_eq!(
            restarted.findings(),
            [
                format!("Drift Added {annotations}.evil Added k9s"),
                format!(
                    r#"Expected Added {annotations}["kubectl.kubernetes.io/restartedAt"] Restarted kubectl-rollout"#
                )
            ]
        );
    }

    #[test]
    fn a_node_port_is_an_addition_of_whoever_chose_it() {
        let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": ports}});
        let opened = || {
            trial(service(json!([{"port": 80}])), service(json!([{"port": 80, "protocol": "TCP", "nodePort": 30001}])))
        };
        let fields = || json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}}});
        assert_eq!(opened().helm(json!({"f:spec": {}})).findings(), Vec::<String>::new(), "allocated");
        assert_eq!(opened().helm(fields()).findings(), Vec::<String>::new());
        assert_eq!(
            opened().by("kubectl-edit", "Update", LATER, fields()).findings(),
            [r#"Drift Added .spec.ports[port=80,protocol="TCP"].nodePort Added kubectl-edit"#]
        );
    }

    #[test]
    fn who_owns_an_item_as_a_whole_owns_what_is_in_it() {
        let live = deployment(
            json!({"template": {"spec": {"containers": [{"name": "web"}, {"name": "agent", "image": "busybox:1"}]}}}),
        );
        let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"agent\"}": {}}}}}});
        let added = trial(deployment(pod(json!({"name": "web"}))), live).by("k9s", "Update", LATER, fields);
        assert_eq!(added.findings(), [r#"Drift Added .spec.template.spec.containers[name="agent"] Added k9s"#]);
        let forgotten = |name: &str| {
            let more = trial(config_map(json!({})), config_map(json!({"x": "1"})));
            more.by(name, "Update", LATER, json!({"f:data": {"f:x": {}}})).findings()
        };
        for name in ["before-first-apply", "ancient-changes"] {
            assert_eq!(forgotten(name), ["Unverified Added .data.x Unattributed -"], "{name}");
        }
    }

    #[test]
    fn an_order_that_helm_owns_was_changed_by_somebody_who_left_no_trace() {
        let env = |values: &[(&str, &str)]| {
            let env: Vec<Value> = values.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
            deployment(pod(json!({"name": "web", "env": env})))
        };
        let item = || json!({".": {}, "f:name": {}, "f:value": {}});
        let all = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:env": {
            "k:{\"name\":\"A\"}": item(), "k:{\"name\":\"B\"}": item()}}}}}}});
        let turned = trial(env(&[("A", "1"), ("B", "$(A)")]), env(&[("B", "$(A)"), ("A", "1")])).helm(all);
        assert_eq!(
            turned.findings(),
            [r#"Drift Changed .spec.template.spec.containers[name="web"].env Unattributed -"#]
        );
    }

    #[test]
    fn a_secret_shows_no_value() {
        let secret =
            |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "data": data});
        let trial =
            trial(secret(json!({"password": "Zmlyc3Q="})), secret(json!({"password": "c2Vjb25k"}))).helm(json!({}));
        let judgement = trial.judge();
        assert_eq!(judgement.candidates[0].finding.desired, Shown::Masked { bytes: 5 });
        assert_eq!(judgement.candidates[0].finding.live, Shown::Masked { bytes: 6 });
        assert!(!format!("{judgement:?}").contains("Zmlyc3Q"), "no secret in any part of the judgement");
    }

    #[test]
    fn what_the_unfinished_revision_wants_is_expected() {
        let half =
            trial(config_map(json!({"mode": "fast", "size": "1"})), config_map(json!({"mode": "slow", "size": "9"})))
                .helm(json!({"f:data": {"f:mode": {}}}))
                .by("kubectl-edit", "Update", LATER, json!({"f:data": {"f:size": {}}}))
                .with(|trial| trial.upgrade = Some(Some(config_map(json!({"mode": "slow", "size": "1"})))));
        assert_eq!(
            half.findings(),
            ["Expected Changed .data.mode Upgrade helm", "Drift Changed .data.size Edited kubectl-edit"]
        );
    }
    const KUBECTL: &str = "kubectl-client-side-apply";

    /// A file, what is live, and what kubectl's copy says was applied.
    fn file(desired: Value, live: Value, copy: Option<&Value>) -> Trial {
        let mut live = live;
        if let Some(copy) = copy {
            live["metadata"]["annotations"] =
                json!({"kubectl.kubernetes.io/last-applied-configuration": copy.to_string()});
        }
        trial(desired, live).with(|trial| trial.hand = Hand { applier: true, ..Hand::default() })
    }

    /// With the entry of a client-side apply.
    fn applied(trial: Trial, fields: Value) -> Trial {
        let mut fields = fields;
        fields["f:metadata"] =
            json!({"f:annotations": {".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}}});
        trial.by(KUBECTL, "Update", DURING, fields)
    }

    #[test]
    fn a_file_is_judged_by_who_applied_it() {
        let (fast, slow) = (config_map(json!({"mode": "fast"})), config_map(json!({"mode": "slow"})));
        let mode = || json!({"f:data": {".": {}, "f:mode": {}}});
        let container = || json!({"f:data": {".": {}}});
        let client = |live: &Value, copy: &Value| file(fast.clone(), live.clone(), Some(copy));

        assert_eq!(applied(client(&fast, &fast), mode()).findings(), Vec::<String>::new(), "as applied");
        let edited = applied(client(&slow, &fast), container()).by("kubectl-edit", "Update", LATER, mode());
        assert_eq!(edited.findings(), ["Drift Changed .data.mode Edited kubectl-edit"]);
        let another = applied(client(&slow, &slow), mode());
        assert_eq!(another.findings(), [format!("Drift Changed .data.mode AppliedDifferently {KUBECTL}")]);
        let rewritten = applied(client(&slow, &fast), mode());
        assert_eq!(rewritten.findings(), [format!("Expected Changed .data.mode Admission {KUBECTL}")]);
        let gone = applied(client(&config_map(json!({})), &config_map(json!({}))), container());
        assert_eq!(gone.findings(), ["Drift Removed .data.mode AppliedDifferently -"]);
        let taken = applied(client(&config_map(json!({})), &fast), container());
        assert_eq!(taken.findings(), ["Drift Removed .data.mode Removed -"]);

        let server = |live: &Value| file(fast.clone(), live.clone(), None).by("flux", "Apply", DURING, mode());
        assert_eq!(server(&fast).findings(), Vec::<String>::new());
        assert_eq!(server(&slow).findings(), ["Drift Changed .data.mode AppliedDifferently flux"]);
        let created = file(fast.clone(), slow, None).by("kubectl-create", "Update", DURING, mode());
        assert_eq!(created.findings(), ["Drift Changed .data.mode AppliedDifferently kubectl-create"]);
    }

    #[test]
    fn what_a_file_does_not_have_is_drift_when_it_was_sent() {
        let fast = config_map(json!({"mode": "fast"}));
        let more = config_map(json!({"mode": "fast", "x": "1"}));
        let (mode, both) =
            (|| json!({"f:data": {".": {}, "f:mode": {}}}), || json!({"f:data": {".": {}, "f:mode": {}, "f:x": {}}}));
        let client = |copy: &Value| file(fast.clone(), more.clone(), Some(copy));
        assert_eq!(
            applied(client(&more), both()).findings(),
            [format!("Drift Added .data.x AppliedDifferently {KUBECTL}")]
        );
        assert_eq!(
            applied(client(&fast), both()).findings(),
            [format!("Expected Added .data.x Admission {KUBECTL}")],
            "filled in for it"
        );
        let edited = applied(client(&fast), mode()).by("k9s", "Update", LATER, json!({"f:data": {"f:x": {}}}));
        assert_eq!(edited.findings(), ["Drift Added .data.x Added k9s"]);
        let server = file(fast.clone(), more.clone(), None).by("flux", "Apply", DURING, both());
        assert_eq!(server.findings(), ["Drift Added .data.x AppliedDifferently flux"]);
        let nobody = applied(client(&fast), mode());
        assert_eq!(nobody.findings(), ["Expected Added .data.x Admission -"], "held by nobody");
        let wiped = file(fast, more, None);
        assert_eq!(wiped.findings(), ["Unverified Added .data.x Unattributed -"]);
    }

    #[test]
    fn another_version_of_an_atomic_list_is_one_change() {
        let with = |args: Value| deployment(pod(json!({"name": "web", "args": args})));
        let fields = || json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:args": {}}}}}}});
        let (one, two) = (with(json!(["a"])), with(json!(["a", "b"])));
        let path = r#".spec.template.spec.containers[name="web"].args"#;
        let client = applied(file(one.clone(), two.clone(), Some(&two)), fields());
        assert_eq!(client.findings(), [format!("Drift Changed {path} AppliedDifferently {KUBECTL}")]);
        let server = file(one, two, None).by("flux", "Apply", DURING, fields());
        assert_eq!(server.findings(), [format!("Drift Changed {path} AppliedDifferently flux")]);
    }

    #[test]
    fn no_helm_repairs_a_file() {
        let (fast, slow) = (config_map(json!({"mode": "fast"})), config_map(json!({"mode": "slow"})));
        let trial = applied(file(fast.clone(), slow.clone(), Some(&slow)), json!({"f:data": {"f:mode": {}}}));
        assert_eq!(trial.judge().candidates[0].finding.fix, Fix::Patch);
        let object = ObjectRef { gvk: Gvk::new("v1", "ConfigMap"), namespace: Some("shop".into()), name: "web".into() };
        let circumstances = Circumstances {
            hand: &trial.hand,
            apply_method: ApplyMethod::ClientSide,
            has_subcharts: false,
            upgrade: None,
            failed: &[],
            writers: &[],
        };
        let gone = missing(Wanted { object: &object, source: None, body: &fast, sensitive: &[] }, circumstances, None);
        assert_eq!(gone.fix, Fix::Create);
    }
    #[test]
    fn an_edit_hides_neither_behind_the_copy_nor_behind_the_appliers_name() {
        let web = json!({"name": "web", "image": "nginx:1.27"});
        let evil = json!({"name": "evil", "image": "evil:1", "securityContext": {"privileged": true}});
        let desired = deployment(pod(web.clone()));
        let mut live = deployment(json!({"template": {"spec": {"containers": [web, evil]}}}));
        live["metadata"]["annotations"] = json!({});
        let own = || json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {".": {}, "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}}}}}}});
        let sidecar = || json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"evil\"}": {".": {}, "f:name": {}, "f:image": {}, "f:securityContext": {"f:privileged": {}}}}}}}});
        let path = r#".spec.template.spec.containers[name="evil"]"#;
        // Whoever writes kubectl's copy too is no applier for that.
        for name in ["kubectl-edit", "hotfix"] {
            let mut fields = sidecar();
            fields["f:metadata"] = json!({"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}});
            let trial = file(desired.clone(), live.clone(), Some(&desired));
            let trial = trial.by(KUBECTL, "Update", DURING, own()).by(name, "Update", LATER, fields);
            let note = format!("Expected Added .metadata.annotations Bookkeeping {name}");
            assert_eq!(trial.findings(), [note, format!("Drift Added {path} Added {name}")]);
        }
        // Under the applier's own name it cannot be told from what the server fills in, so it is said.
        let mut both = own();
        both["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"evil\"}"] =
            sidecar()["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"evil\"}"].clone();
        let trial = applied(file(desired.clone(), live, Some(&desired)), both);
        assert_eq!(trial.findings(), [format!("Expected Added {path} Admission {KUBECTL}")]);
        let notice = trial.judge().candidates[0].notice.clone().unwrap();
        assert_eq!(notice.reason, NoticeReason::UnattributedAddition);
    }
}
