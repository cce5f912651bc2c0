//! How a release gets back to what Helm says: a report and what the user allows -> a [`Plan`] of steps, or a [`Refusal`]. Nothing here
//! knows how a step is carried out.

use std::collections::BTreeMap;

use serde_json::Value;

use super::equal;
use super::finding::{
    ApplyMethod, Cause, Change, Finding, Fix, Mode, NoticeReason, Reason, ReleaseReport, Shown, Verdict,
};
use super::in_place::{is_built_in, retains_keys};
use super::mask;
use super::object::{FieldPath, Gvk, ObjectKey, ObjectRef, Segment};
use super::plan::{Action, Answer, Fight, Ground, Left, Method, Obstruction, OldSecrets, Plan, Step, Wishes};
use super::policy;
use super::refusal::Refusal;
use super::release::ReleaseKey;
use super::repair::is_item_key;
use super::writers::is_persons_tool;

/// Of a record, whose payload a Secret can hold 1 MiB of: beyond this another revision may not fit.
const LARGE: usize = 1_000_000;

/// Plans the correction of one release. `None`: nothing drifted.
pub(crate) fn plan(report: &ReleaseReport, ground: &Ground, wishes: &Wishes) -> Result<Option<Plan>, Refusal> {
    refuse_state(report)?;
    let drift: Vec<&Finding> = with_verdict(report, Verdict::Drift).collect();
    if drift.is_empty() && with_verdict(report, Verdict::Unverified).next().is_none() {
        return Ok(None);
    }
    refuse_owner(report, ground)?;
    refuse_unverified(report, wishes)?;
    if let Some(object) = &ground.masked {
        return Err(Refusal::Masked { object: Box::new(object.clone()) });
    }
    let wanted = wishes.method.unwrap_or(Method::Upgrade);
    let collateral: Vec<Finding> =
        report.findings.iter().filter(|finding| is_collateral(finding, report.apply_method)).cloned().collect();
    let (method, because) = match wanted {
        Method::Patch => (Method::Patch, None),
        Method::Upgrade | Method::Reapply => match against_helm(report, ground, wishes, &collateral) {
            Some(because) => (Method::Patch, Some(because)),
            None => (wanted, None),
        },
    };
    let mut plan = Plan {
        release: ReleaseKey { namespace: report.namespace.clone(), name: report.name.clone() },
        revision: report.revision.unwrap_or_default(),
        judged: report.judged_revision.or(report.revision).unwrap_or_default(),
        apply_method: report.apply_method.unwrap_or_default(),
        method,
        because,
        steps: Vec::new(),
        left: Vec::new(),
        collateral,
        resets: method != Method::Patch && wishes.reset_ignored,
        hooks: ground.hooks.clone(),
        runs_hooks: wishes.run_hooks && method == Method::Upgrade,
        fights: fights(&drift, ground),
        notes: Vec::new(),
    };
    sort_out(&mut plan, &drift, ground, wishes)?;
    refuse_helm(&plan, ground, wishes)?;
    refuse_secret_loss(&plan, wishes)?;
    add_notes(&mut plan, report, ground, wishes);
    Ok(Some(plan))
}

fn with_verdict(report: &ReleaseReport, verdict: Verdict) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(move |finding| finding.verdict == verdict)
}

fn refuse_state(report: &ReleaseReport) -> Result<(), Refusal> {
    let word = match report.reason {
        Reason::Drifted | Reason::InSync | Reason::Failed => "",
        // Drift of a release that nothing was told about but a status that no Helm writes.
        Reason::Unverified if report.findings.is_empty() => "Unverified",
        Reason::Unverified => "",
        Reason::Corrupt => "Corrupt",
        Reason::Disabled => "Disabled",
        Reason::PendingInstall => "PendingInstall",
        Reason::PendingUpgrade => "PendingUpgrade",
        Reason::PendingRollback => "PendingRollback",
        Reason::Uninstalling => "Uninstalling",
        Reason::Uninstalled => "Uninstalled",
        Reason::Superseded => "Superseded",
        Reason::RevisionMismatch => "RevisionMismatch",
        Reason::Deleted => "Deleted",
    };
    if !word.is_empty() {
        return Err(Refusal::State { reason: word, message: report.message.clone() });
    }
    // A status that Helm does not have stalls even a release of which nothing else could be told.
    let unheard = report.status.as_deref().is_some_and(|status| !matches!(status, "deployed" | "failed"));
    if unheard {
        return Err(Refusal::State { reason: "Unverified", message: report.message.clone() });
    }
    let mismatch = report
        .notices
        .iter()
        .find(|notice| notice.reason == NoticeReason::AlsoTrue && notice.message.starts_with("RevisionMismatch"));
    if let Some(notice) = mismatch {
        return Err(Refusal::State { reason: "RevisionMismatch", message: notice.message.clone() });
    }
    // What Flux runs is refused for that, with Flux's own way to resume.
    if report.suspended && policy::managing(&report.notices).is_none() {
        return Err(Refusal::Suspended);
    }
    if report.mode == Mode::Disabled {
        return Err(Refusal::State { reason: "Disabled", message: report.message.clone() });
    }
    Ok(())
}

/// The helm command writes records under these names, by its user agent or its file's name.
const HELMS: [&str; 4] = ["Helm", "helm", "helm3", "helm4"];

fn refuse_owner(report: &ReleaseReport, ground: &Ground) -> Result<(), Refusal> {
    let (name, namespace) = (&report.name, &report.namespace);
    if let Some((namespace, name)) = policy::managing(&report.notices) {
        let resume = if report.suspended {
            format!("`flux resume helmrelease {name} -n {namespace}`, then ")
        } else {
            String::new()
        };
        return Err(Refusal::OtherController(format!(
            "Flux runs this release, and would not know of a correction: {resume}`flux reconcile helmrelease {name} -n {namespace} --force`"
        )));
    }
    let Some(other) = ground.record_writers.iter().find(|writer| !HELMS.contains(&writer.as_str())) else {
        return match ground.record_writers.is_empty() {
            true => Err(Refusal::NobodysRecord {
                name: name.clone(),
                namespace: namespace.clone(),
                revision: report.judged_revision.or(report.revision).unwrap_or_default(),
            }),
            false => Ok(()),
        };
    };
    Err(Refusal::OtherController(match other.as_str() {
        "helm-controller" => format!(
            "Flux wrote its record, and would not know of a correction: `flux reconcile helmrelease {name} -n {namespace} --force`"
        ),
        other if other.starts_with("terraform") => {
            "Terraform wrote its record, and would not know of a correction: `terraform apply` there".to_owned()
        }
        other => format!(
            "{other} wrote its record, not the helm command: correct it through that, or let helm write it (`helm rollback {name} {} -n {namespace}`)",
            report.judged_revision.or(report.revision).unwrap_or_default()
        ),
    }))
}

fn refuse_unverified(report: &ReleaseReport, wishes: &Wishes) -> Result<(), Refusal> {
    let mut unverified = with_verdict(report, Verdict::Unverified);
    let Some(first) = unverified.next() else { return Ok(()) };
    if wishes.partial {
        return Ok(());
    }
    let first = format!("{}: {}", first.object, first.note.as_deref().unwrap_or("cannot be told"));
    Err(Refusal::Unverified { count: 1 + unverified.count(), first })
}

/// Whether Helm, when it writes the release once more, would reset what is expected or ignored. What was rewritten at admission is
/// rewritten again, and an order that means nothing changes nothing.
fn is_collateral(finding: &Finding, apply_method: Option<ApplyMethod>) -> bool {
    let harmless = matches!(finding.cause, Some(Cause::Admission | Cause::Bookkeeping));
    let is_reset = match finding.change {
        Change::Missing => true,
        Change::Changed | Change::Removed => {
            apply_method == Some(ApplyMethod::ServerSide) || is_built_in(&finding.object.gvk)
        }
        Change::Added | Change::Unreadable | Change::Orphan => false,
    };
    matches!(finding.verdict, Verdict::Expected | Verdict::Ignored) && is_reset && !harmless
}

/// Why Helm is left out of it, so that each finding is repaired by itself.
fn against_helm(report: &ReleaseReport, ground: &Ground, wishes: &Wishes, collateral: &[Finding]) -> Option<String> {
    if let Some(first) = collateral.first().filter(|_| !wishes.reset_ignored) {
        let others = match collateral.len() {
            1 => String::new(),
            many => format!(" and {} more", many - 1),
        };
        return Some(format!(
            "Helm would also reset {}{others}, which {} expected or ignored (--reset-ignored allows it)",
            spot(first),
            if collateral.len() == 1 { "is" } else { "are" }
        ));
    }
    if with_verdict(report, Verdict::Unverified).next().is_some() {
        return Some("Helm would also write what could not be told".to_owned());
    }
    if let Some(what) = &ground.unbuildable {
        return Some(format!("Helm cannot apply this manifest any more: {what}"));
    }
    let confused = report.findings.iter().find(|finding| {
        let stays = match finding.change {
            Change::Added => finding.verdict == Verdict::Drift && !wishes.remove_added,
            Change::Changed | Change::Removed => finding.verdict != Verdict::Drift,
            Change::Missing | Change::Unreadable | Change::Orphan => false,
        };
        stays && ground.confused.contains(&finding.object.key())
    });
    if let Some(finding) = confused {
        return Some(format!("Helm's merge would take one list item of {} for another", finding.object));
    }
    let waits = with_verdict(report, Verdict::Drift).find(|finding| !wishes.remove_added && waits_for_address(finding));
    if let Some(finding) = waits {
        return Some(format!(
            "Helm would wait for an address of {}, which somebody made a load balancer",
            finding.object
        ));
    }
    let stuck = with_verdict(report, Verdict::Drift).find(|finding| {
        matches!(obstacle(finding), Some(Obstacle::Immutable | Obstacle::Shrinks))
            && !wishes.recreate.iter().any(|named| named.names(&finding.object))
    });
    if let Some(finding) = stuck {
        return Some(format!("Helm would stop at {}, which the server lets nobody change in place", spot(finding)));
    }
    let is_stopped_at = |finding: &&Finding| {
        let refused = ground.refused.get(&finding.object.key());
        let mends = |refused: &Obstruction| refused.alone || (refused.with_removal && wishes.remove_added);
        (is_repair(finding) || finding.change == Change::Missing) && refused.is_some_and(|refused| !mends(refused))
    };
    let refused = with_verdict(report, Verdict::Drift).find(is_stopped_at)?;
    let why = ground.refused.get(&refused.object.key()).map(|refused| refused.why.as_str()).unwrap_or_default();
    Some(format!("Helm would stop at {}: {why}", refused.object))
}

/// An added `type: LoadBalancer`: Helm leaves it, and is not done before it has an address (helm/helm `pkg/kube/ready.go`).
fn waits_for_address(finding: &Finding) -> bool {
    finding.change == Change::Added
        && finding.object.gvk.group.is_empty()
        && finding.object.gvk.kind == "Service"
        && finding.path == Some(FieldPath::of_fields(&["spec", "type"]))
        && finding.live == Shown::Plain("LoadBalancer".into())
}

/// `Deployment/api .spec.replicas`
pub(crate) fn spot(finding: &Finding) -> String {
    match &finding.path {
        Some(path) => format!("{} {path}", finding.object),
        None => finding.object.to_string(),
    }
}

/// Why a finding is not simply overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    Immutable,
    /// A claim cannot ask for less than it has.
    Shrinks,
}

fn obstacle(finding: &Finding) -> Option<Obstacle> {
    if is_claim(finding) && finding.change == Change::Changed && in_requests(finding) {
        let larger = match (&finding.desired, &finding.live) {
            (Shown::Plain(desired), Shown::Plain(live)) => equal::is_less(desired, live).unwrap_or(true),
            _ => true,
        };
        return larger.then_some(Obstacle::Shrinks);
    }
    (finding.fix == Fix::Recreate).then_some(Obstacle::Immutable)
}

fn is_claim(finding: &Finding) -> bool {
    finding.object.gvk.group.is_empty() && finding.object.gvk.kind == "PersistentVolumeClaim"
}

fn in_requests(finding: &Finding) -> bool {
    finding
        .path
        .as_ref()
        .is_some_and(|path| path.starts_with(&FieldPath::of_fields(&["spec", "resources", "requests"])))
}

/// The steps by the time when they are done.
#[derive(Default)]
struct Steps {
    recreated: Vec<Step>,
    /// Before Helm's turn: what it would confuse or stop at, and what would keep it waiting.
    first: Vec<Step>,
    by_helm: Vec<Finding>,
    patched: Vec<Step>,
    removed: Vec<Step>,
}

/// Puts each finding into a step, or among what is left.
fn sort_out(plan: &mut Plan, drift: &[&Finding], ground: &Ground, wishes: &Wishes) -> Result<(), Refusal> {
    let mut steps = Steps::default();
    let mut objects: Vec<(&ObjectRef, Vec<&Finding>)> = Vec::new();
    for finding in drift {
        match objects.iter_mut().find(|(object, _)| object.key() == finding.object.key()) {
            Some((_, findings)) => findings.push(finding),
            None => objects.push((&finding.object, vec![finding])),
        }
    }
    for (object, findings) in objects {
        let is_named = wishes.recreate.iter().any(|named| named.names(object));
        let refused = ground.refused.get(&object.key());
        if ground.unserved.contains(&object.key()) {
            let needs = "its kind, which the cluster does not serve";
            plan.left.extend(findings.iter().map(|finding| left(finding, needs.to_owned())));
        } else if is_named && findings.iter().any(|finding| obstacle(finding) == Some(Obstacle::Immutable)) {
            let lost =
                lost(&object.gvk).map_err(|why| Refusal::NeverRecreated { object: Box::new(object.clone()), why })?;
            match refused.filter(|refused| refused.answer != Answer::Uncertain) {
                Some(refused) => {
                    let needs =
                        format!("a change by hand: it would not be deleted and created again ({})", refused.why);
                    plan.left.extend(findings.iter().map(|finding| left_refused(finding, needs.clone())));
                }
                None => {
                    for finding in findings {
                        add(&mut steps.recreated, Action::Recreate { object: object.clone(), lost }, finding);
                    }
                }
            }
        } else {
            sort_out_object(plan, &mut steps, object, &findings, ground, wishes);
        }
    }
    plan.steps.extend(steps.recreated);
    plan.steps.extend(steps.first);
    if !steps.by_helm.is_empty() {
        plan.steps.append(&mut steps.removed);
        let action = if plan.method == Method::Reapply { Action::Reapply } else { Action::Upgrade };
        plan.steps.push(Step { action, findings: steps.by_helm });
    }
    plan.steps.extend(steps.patched);
    plan.steps.extend(steps.removed);
    Ok(())
}

/// Of an object that is not recreated.
fn sort_out_object(
    plan: &mut Plan,
    steps: &mut Steps,
    object: &ObjectRef,
    findings: &[&Finding],
    ground: &Ground,
    wishes: &Wishes,
) {
    let (removable, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| is_removable(finding));
    let with_helm = plan.method != Method::Patch;
    let refused = ground.refused.get(&object.key()).filter(|refused| refused.answer != Answer::Uncertain);
    // Helm is not to send it, or nobody.
    let by_patch = refused.is_some_and(|refused| refused.alone);
    let refused = refused.filter(|refused| !refused.alone);
    // What the server refuses by itself goes in one request with what was added.
    let is_one = refused.is_some()
        || by_patch
        || others.iter().any(|finding| is_repair(finding) && removable.iter().any(|added| takes_along(finding, added)));
    let mut is_patched = false;
    for finding in others {
        let needs = match (obstacle(finding), finding.change, refused) {
            (Some(Obstacle::Immutable), ..) => match lost(&object.gvk) {
                Ok(_) => format!("--recreate {object}: the server lets nobody change it in place"),
                Err(why) => format!("a change by hand: the server lets nobody change it in place, and {why}"),
            },
            (Some(Obstacle::Shrinks), ..) => "a larger request in the chart: a claim cannot shrink".to_owned(),
            (None, Change::Added, _) => match never_removed(finding) {
                Some(why) => format!("a change by hand: {why}"),
                None => "a change by hand".to_owned(),
            },
            (None, Change::Orphan, _) => format!("`kubectl delete` of {object}: it is in no manifest"),
            (None, Change::Unreadable, _) => "the right to read it".to_owned(),
            (None, _, Some(refused)) if !refused.with_removal => {
                let needs = match refused.answer {
                    Answer::Forbidden => format!("the right to change it ({})", refused.why),
                    Answer::Refused | Answer::Uncertain => {
                        format!("a change by hand: the server refuses it ({})", refused.why)
                    }
                };
                plan.left.push(left_refused(finding, needs));
                continue;
            }
            (None, _, Some(refused)) if !wishes.remove_added => {
                format!("--remove-added: the server refuses it beside what was added ({})", refused.why)
            }
            (None, Change::Missing, _) if with_helm => {
                steps.by_helm.push(finding.clone());
                continue;
            }
            (None, Change::Missing, _) => {
                add(&mut steps.patched, Action::Create(object.clone()), finding);
                continue;
            }
            (None, Change::Changed | Change::Removed, _) => {
                let before_helm = is_one || ground.confused.contains(&object.key()) || is_key(finding);
                if with_helm && before_helm {
                    add(&mut steps.first, Action::Patch(object.clone()), finding);
                } else if with_helm && helm_reaches(finding, plan.apply_method) {
                    steps.by_helm.push(finding.clone());
                } else {
                    add(&mut steps.patched, Action::Patch(object.clone()), finding);
                }
                is_patched = true;
                continue;
            }
        };
        plan.left.push(left(finding, needs));
    }
    for finding in removable {
        match refused {
            _ if !wishes.remove_added => {
                plan.left.push(Left { is_removable: true, ..left(finding, "--remove-added".to_owned()) });
            }
            Some(refused) if !refused.with_removal => {
                let needs = format!("a change by hand: the server refuses to go without it ({})", refused.why);
                plan.left.push(left_refused(finding, needs));
            }
            _ if is_one && is_patched => {
                let at = if with_helm { &mut steps.first } else { &mut steps.patched };
                add(at, Action::Patch(object.clone()), finding);
            }
            _ => add(&mut steps.removed, Action::RemoveAdded(object.clone()), finding),
        }
    }
}

fn is_removable(finding: &Finding) -> bool {
    finding.change == Change::Added && obstacle(finding).is_none() && never_removed(finding).is_none()
}

fn is_repair(finding: &Finding) -> bool {
    matches!(finding.change, Change::Changed | Change::Removed)
}

/// Whether client-side Helm, which keeps only the keys that it sends of such a map (`retainKeys`: a strategy, a volume), would take
/// away what somebody added beside the field.
fn takes_along(finding: &Finding, added: &Finding) -> bool {
    let above = |finding: &Finding| -> Option<Vec<Segment>> {
        finding.path.as_ref().and_then(|path| path.0.split_last()).map(|(_, above)| above.to_vec())
    };
    let (Some(one), Some(other)) = (above(finding), above(added)) else { return false };
    one == other && is_built_in(&finding.object.gvk) && retains_keys(&one)
}

/// A list's item with another key: Helm would add one more.
fn is_key(finding: &Finding) -> bool {
    finding.path.as_ref().is_some_and(is_item_key)
}

fn left_refused(finding: &Finding, needs: String) -> Left {
    Left { is_refused: true, ..left(finding, needs) }
}

fn left(finding: &Finding, needs: String) -> Left {
    Left { finding: finding.clone(), needs, is_removable: false, is_refused: false }
}

fn add(steps: &mut Vec<Step>, action: Action, finding: &Finding) {
    match steps.iter_mut().find(|step| step.action == action) {
        Some(step) => step.findings.push(finding.clone()),
        None => steps.push(Step { action, findings: vec![finding.clone()] }),
    }
}

/// Whether Helm, writing the same manifest once more, repairs a changed or removed field (design.md §11, table).
fn helm_reaches(finding: &Finding, apply_method: ApplyMethod) -> bool {
    if finding.fix == Fix::Patch {
        return false;
    }
    // Client-side Helm merges maps whatever the schema calls atomic: keys that somebody added would stay.
    let extra = match (&finding.desired, &finding.live) {
        (Shown::Plain(Value::Object(desired)), Shown::Plain(Value::Object(live))) => {
            live.keys().any(|key| !desired.contains_key(key))
        }
        _ => false,
    };
    apply_method == ApplyMethod::ServerSide || !extra
}

/// What goes with an object that is deleted and created again; the error says why that is never done.
fn lost(gvk: &Gvk) -> Result<&'static str, &'static str> {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "PersistentVolumeClaim" | "PersistentVolume") => Err("data would go with it"),
        ("", "Namespace") => Err("everything in it would go"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Err("every object of its kind would go"),
        ("apps", "StatefulSet") => Ok("its revisions; pods and claims stay and are adopted again"),
        ("apps", "Deployment") => Ok("its pods are replaced at once, not in turn; revisions for kubectl rollout undo"),
        ("apps", "DaemonSet" | "ReplicaSet") => Ok("its pods are replaced at once, not in turn"),
        ("batch", "Job") => Ok("its pods and what it did; it runs again"),
        ("batch", "CronJob") => Ok("its jobs and their history"),
        ("", "Pod") => Ok("the running pod"),
        ("", "Service") => Ok("its cluster IP, node ports and load balancer address"),
        ("", "Secret") => Ok("nothing for pods that run; it is gone for a moment"),
        ("rbac.authorization.k8s.io", _) => Ok("its rights for a moment"),
        _ => Ok("what its controller keeps in it or makes for it; it is gone for a moment"),
    }
}

/// Live-only fields that nobody but their owner may take away.
fn never_removed(finding: &Finding) -> Option<&'static str> {
    let path = finding.path.as_ref()?;
    let below = |names: &[&str]| path.starts_with(&FieldPath::of_fields(names));
    if below(&["metadata", "finalizers"]) {
        return Some("a finalizer stands for work that is not done yet");
    }
    if below(&["metadata", "ownerReferences"]) {
        return Some("an owner reference decides when the object is deleted");
    }
    if is_claim(finding) && in_requests(finding) {
        return Some("a claim cannot shrink");
    }
    const ALLOCATED: [&str; 7] =
        ["clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort", "volumeName", "ipFamilies", "ipFamilyPolicy"];
    let allocated = matches!(path.0.last(), Some(Segment::Field(field)) if ALLOCATED.contains(&field.as_str()));
    (allocated && finding.object.gvk.group.is_empty()).then_some("the server allocates it")
}

fn refuse_helm(plan: &Plan, ground: &Ground, wishes: &Wishes) -> Result<(), Refusal> {
    if !plan.uses_helm() {
        return Ok(());
    }
    let version = *ground.helm.as_ref().map_err(|why| Refusal::NoHelm(why.clone()))?;
    if plan.apply_method == ApplyMethod::ServerSide && version.major < 4 {
        return Err(Refusal::OtherMajor { version });
    }
    let deletes_moved = version.major == 4 && (version.minor == 0 || (version.minor == 1 && version.patch == 0));
    if ground.moved_versions && deletes_moved {
        return Err(Refusal::DeletesMoved { version });
    }
    if ground.record_bytes > LARGE {
        return Err(Refusal::LargeRecord { bytes: ground.record_bytes });
    }
    if let Some(revision) = ground.prunes {
        return Err(Refusal::Prunes { revision });
    }
    if plan.method == Method::Upgrade && ground.has_subcharts && !wishes.chart_given {
        return Err(Refusal::NoChart);
    }
    Ok(())
}

/// A value that is masked is one that nobody could put back from the report.
fn refuse_secret_loss(plan: &Plan, wishes: &Wishes) -> Result<(), Refusal> {
    if wishes.old_secrets != OldSecrets::Lost {
        return Ok(());
    }
    let reset = if plan.resets { plan.collateral.as_slice() } else { &[] };
    let mut overwritten = plan.steps.iter().flat_map(|step| &step.findings).chain(reset);
    let loses = |finding: &&Finding| matches!(finding.live, Shown::Masked { .. });
    let recreated = plan.steps.iter().find_map(|step| match &step.action {
        Action::Recreate { object, .. } if mask::is_secret(&object.gvk) => Some(object),
        _ => None,
    });
    let object = overwritten.find(loses).map(|finding| &finding.object).or(recreated);
    object.map_or(Ok(()), |object| Err(Refusal::SecretValues { object: Box::new(object.clone()) }))
}

fn fights(drift: &[&Finding], ground: &Ground) -> Vec<Fight> {
    let again = drift.iter().filter_map(|finding| {
        let path = finding.path.as_ref().map(ToString::to_string);
        let (writer, corrected) = ground.before.get(&(finding.object.key(), path.clone()))?;
        let now = finding.manager.as_ref().map(|manager| manager.name.clone());
        // Who edits by hand twice is no controller, and what is gone is nobody's.
        let is_controller = now.as_deref().is_some_and(|now| now == writer && !is_persons_tool(now));
        is_controller.then(|| Fight { object: finding.object.clone(), path, writer: now, corrected: *corrected })
    });
    again.collect()
}

fn add_notes(plan: &mut Plan, report: &ReleaseReport, ground: &Ground, wishes: &Wishes) {
    if report.reason == Reason::Failed {
        plan.notes.push(if plan.revision == plan.judged {
            format!("revision {} failed: it is completed", plan.revision)
        } else {
            format!("revision {} failed: what is gone back to is revision {}", plan.revision, plan.judged)
        });
    }
    if plan.steps.iter().any(|step| step.action == Action::Reapply) {
        plan.notes.push(format!(
            "a re-apply is not atomic: should it fail half-way, no revision is deployed any more until `helm rollback {} {} -n {}` succeeds",
            plan.release.name, plan.judged, plan.release.namespace
        ));
    }
    let objects: BTreeMap<ObjectKey, &ObjectRef> = plan
        .steps
        .iter()
        .flat_map(|step| &step.findings)
        .map(|finding| (finding.object.key(), &finding.object))
        .collect();
    for (_, object) in objects.into_iter().filter(|(key, _)| ground.ending.contains(key)) {
        plan.notes.push(format!(
            "{object} is being deleted: what is put back goes with it; correct it again once it is gone"
        ));
    }
    for step in &plan.steps {
        let Action::Recreate { object, .. } = &step.action else { continue };
        if let Some(finalizers) = ground.held.get(&object.key()) {
            let finalizers = finalizers.join(", ");
            plan.notes.push(format!("{object} is gone only when its finalizers are worked off: {finalizers}"));
        }
    }
    if wishes.run_hooks && !plan.runs_hooks {
        plan.notes.push("hooks run with an upgrade only: they will not be run".to_owned());
    }
    if with_verdict(report, Verdict::Unverified).next().is_some() {
        plan.notes.push("what could not be told is left alone".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::finding::{Condition, Notice, ObjectCounts, Storage};
    use crate::drift::plan::{HelmVersion, Named};
    use crate::drift::sample;
    use jiff::Timestamp;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn object(api_version: &str, kind: &str) -> ObjectRef {
        sample::object(api_version, kind, "x")
    }

    fn finding(object: ObjectRef, change: Change, path: &[&str], fix: Fix) -> Finding {
        Finding {
            change,
            path: (!path.is_empty()).then(|| FieldPath::of_fields(path)),
            pointer: Some(format!("/{}", path.join("/"))),
            desired: Shown::Plain(json!("a")),
            live: Shown::Plain(json!("b")),
            fix,
            ..sample::finding(object, FieldPath::default())
        }
    }

    fn image() -> Finding {
        finding(object("apps/v1", "Deployment"), Change::Changed, &["spec", "image"], Fix::Upgrade)
    }

    fn queue() -> Finding {
        finding(object("example.com/v1", "Queue"), Change::Changed, &["spec", "depth"], Fix::Patch)
    }

    fn scaled() -> Finding {
        Finding {
            verdict: Verdict::Expected,
            cause: Some(Cause::Autoscaler),
            fix: Fix::None,
            ..finding(object("apps/v1", "Deployment"), Change::Changed, &["spec", "replicas"], Fix::None)
        }
    }

    fn report(findings: Vec<Finding>) -> ReleaseReport {
        ReleaseReport {
            name: "nucleus".into(),
            namespace: "prod".into(),
            revision: Some(12),
            judged_revision: Some(12),
            status: Some("deployed".into()),
            chart: None,
            app_version: None,
            last_deployed: None,
            storage: Storage::Secret,
            apply_method: Some(ApplyMethod::ClientSide),
            ready: Condition::False,
            stalled: Condition::True,
            reason: Reason::Drifted,
            message: "1 changed".into(),
            mode: Mode::Correct,
            suspended: false,
            exit: 1,
            objects: ObjectCounts::default(),
            findings,
            notices: Vec::new(),
        }
    }

    fn ground() -> Ground {
        let helm = Ok(HelmVersion { major: 3, minor: 22, patch: 0 });
        Ground { record_writers: vec!["Helm".into()], record_bytes: 1000, ..Ground::blank(helm) }
    }

    fn wishes() -> Wishes {
        Wishes {
            method: None,
            chart_given: false,
            run_hooks: false,
            reset_ignored: false,
            remove_added: false,
            recreate: Vec::new(),
            partial: false,
            old_secrets: OldSecrets::Lost,
        }
    }

    fn planned(findings: Vec<Finding>, ground: &Ground, wishes: &Wishes) -> Plan {
        plan(&report(findings), ground, wishes).unwrap().unwrap()
    }

    fn actions(plan: &Plan) -> Vec<&'static str> {
        plan.steps.iter().map(|step| step.action.word()).collect()
    }

    #[test]
    fn helm_repairs_what_it_can_and_the_rest_is_patched() {
        let plan = planned(vec![image(), queue()], &ground(), &wishes());
        assert_eq!((plan.method, actions(&plan)), (Method::Upgrade, vec!["upgrade", "patch"]));
        // Where Helm has nothing to do it is not run, and none is needed.
        let without = Ground { helm: Err("no helm".into()), ..ground() };
        assert_eq!(actions(&planned(vec![queue()], &without, &wishes())), ["patch"]);
        assert_eq!(plan_error(vec![image()], &without, &wishes()), "NoHelm");
    }

    fn plan_error(findings: Vec<Finding>, ground: &Ground, wishes: &Wishes) -> &'static str {
        plan(&report(findings), ground, wishes).unwrap_err().word()
    }

    #[test]
    fn what_is_expected_makes_each_finding_be_repaired_by_itself() {
        let plan = planned(vec![image(), scaled()], &ground(), &wishes());
        assert_eq!((plan.method, actions(&plan), plan.resets), (Method::Patch, vec!["patch"], false));
        assert_eq!(plan.collateral.len(), 1);
        let reset = Wishes { reset_ignored: true, ..wishes() };
        let plan = planned(vec![image(), scaled()], &ground(), &reset);
        assert_eq!((plan.method, actions(&plan), plan.resets), (Method::Upgrade, vec!["upgrade"], true));
        // What admission rewrites is rewritten again, and a client-side Helm does not touch a custom resource.
        let rewritten = Finding { cause: Some(Cause::Admission), ..scaled() };
        let custom = Finding { object: object("example.com/v1", "Queue"), ..scaled() };
        assert_eq!(planned(vec![image(), rewritten, custom], &ground(), &wishes()).method, Method::Upgrade);
    }

    #[test]
    fn additions_and_immutable_fields_need_a_word_of_the_user() {
        let added = finding(object("v1", "ConfigMap"), Change::Added, &["data", "x"], Fix::RemoveAdded);
        let fixed = finding(object("apps/v1", "StatefulSet"), Change::Changed, &["spec", "serviceName"], Fix::Recreate);
        let plan = planned(vec![added.clone(), fixed.clone(), image()], &ground(), &wishes());
        let needs: Vec<&str> = plan.left.iter().map(|left| left.needs.as_str()).collect();
        assert_eq!(needs, ["--remove-added", "--recreate StatefulSet/x: the server lets nobody change it in place"]);
        // Helm would stop at it.
        assert_eq!((plan.method, actions(&plan)), (Method::Patch, vec!["patch"]));
        let allowed = Wishes {
            remove_added: true,
            recreate: vec![Named { kind: "statefulset".into(), group: None, name: "x".into() }],
            ..wishes()
        };
        let plan = planned(vec![added, fixed, image()], &ground(), &allowed);
        assert_eq!(actions(&plan), ["recreate", "remove-added", "upgrade"]);
        assert!(plan.left.is_empty());
    }

    #[test]
    fn some_things_are_never_taken_away_or_recreated() {
        let allowed = Wishes { remove_added: true, ..wishes() };
        for (kind, path) in [
            ("ConfigMap", &["metadata", "finalizers"][..]),
            ("ConfigMap", &["metadata", "ownerReferences"]),
            ("PersistentVolumeClaim", &["spec", "resources", "requests", "storage"]),
            ("Service", &["spec", "clusterIP"]),
        ] {
            let added = finding(object("v1", kind), Change::Added, path, Fix::RemoveAdded);
            let plan = planned(vec![added], &ground(), &allowed);
            assert!(plan.steps.is_empty() && plan.left[0].needs.starts_with("a change by hand"), "{path:?}");
        }
        let named = Wishes {
            recreate: vec![Named { kind: "PersistentVolumeClaim".into(), group: None, name: "x".into() }],
            ..wishes()
        };
        let claim = finding(
            object("v1", "PersistentVolumeClaim"),
            Change::Changed,
            &["spec", "storageClassName"],
            Fix::Recreate,
        );
        assert_eq!(plan_error(vec![claim], &ground(), &named), "NeverRecreated");
        // A claim may grow, never shrink.
        let mut request = finding(
            object("v1", "PersistentVolumeClaim"),
            Change::Changed,
            &["spec", "resources", "requests", "storage"],
            Fix::Upgrade,
        );
        (request.desired, request.live) = (Shown::Plain(json!("2Gi")), Shown::Plain(json!("1Gi")));
        assert_eq!(actions(&planned(vec![request.clone()], &ground(), &wishes())), ["upgrade"]);
        (request.desired, request.live) = (Shown::Plain(json!("1Gi")), Shown::Plain(json!("2Gi")));
        assert!(planned(vec![request], &ground(), &wishes()).steps.is_empty());
    }

    #[test]
    fn secret_values_are_not_lost_unasked() {
        let mut secret = finding(object("v1", "Secret"), Change::Changed, &["data", "password"], Fix::Upgrade);
        (secret.desired, secret.live) = (Shown::Masked { bytes: 1 }, Shown::Masked { bytes: 1 });
        assert_eq!(plan_error(vec![secret.clone()], &ground(), &wishes()), "SecretValues");
        for old_secrets in [OldSecrets::Kept, OldSecrets::GivenUp] {
            assert_eq!(
                actions(&planned(vec![secret.clone()], &ground(), &Wishes { old_secrets, ..wishes() })),
                ["upgrade"]
            );
        }
        // A value that is gone is not lost by being put back.
        secret.change = Change::Removed;
        secret.live = Shown::Absent;
        assert_eq!(actions(&planned(vec![secret], &ground(), &wishes())), ["upgrade"]);
    }

    #[test]
    fn each_refusal_has_its_ground() {
        let four = |minor, patch| Ok(HelmVersion { major: 4, minor, patch });
        for (ground, word) in [
            (Ground { record_bytes: 1_040_000, ..ground() }, "LargeRecord"),
            (Ground { prunes: Some(3), ..ground() }, "Prunes"),
            (Ground { has_subcharts: true, ..ground() }, "NoChart"),
            (Ground { moved_versions: true, helm: four(1, 0), ..ground() }, "DeletesMoved"),
            (Ground { record_writers: vec!["helm-controller".into()], ..ground() }, "OtherController"),
            (Ground { record_writers: Vec::new(), ..ground() }, "RecordRewritten"),
            (Ground { masked: Some(object("v1", "Secret")), ..ground() }, "Masked"),
        ] {
            assert_eq!(plan_error(vec![image()], &ground, &wishes()), word);
        }
        for helm in [four(1, 1), four(3, 1)] {
            let newer = Ground { moved_versions: true, helm, ..ground() };
            assert_eq!(actions(&planned(vec![image()], &newer, &wishes())), ["upgrade"]);
        }
        let mut server_side = report(vec![image()]);
        server_side.apply_method = Some(ApplyMethod::ServerSide);
        assert_eq!(plan(&server_side, &ground(), &wishes()).unwrap_err().word(), "OtherMajor");
        let mut suspended = report(vec![image()]);
        suspended.suspended = true;
        assert_eq!(plan(&suspended, &ground(), &wishes()).unwrap_err().word(), "Suspended");
        let unverified = Finding { verdict: Verdict::Unverified, ..image() };
        assert_eq!(plan_error(vec![image(), unverified.clone()], &ground(), &wishes()), "Unverified");
        let partial = Wishes { partial: true, ..wishes() };
        assert_eq!(actions(&planned(vec![queue(), unverified], &ground(), &partial)), ["patch"]);
        let mut flux = report(vec![image()]);
        flux.notices.push(Notice {
            object: None,
            reason: NoticeReason::FluxMode,
            message: "HelmRelease flux/web manages the release; its own drift detection is warn".into(),
        });
        for suspended in [false, true] {
            flux.suspended = suspended;
            let refusal = plan(&flux, &ground(), &wishes()).unwrap_err();
            let words = refusal.to_string();
            assert!(
                refusal.word() == "OtherController" && words.contains("reconcile helmrelease web -n flux --force"),
                "{words}"
            );
            assert_eq!(words.contains("flux resume helmrelease web -n flux"), suspended, "{words}");
        }
        assert_eq!(plan(&report(Vec::new()), &ground(), &wishes()), Ok(None));
    }

    #[test]
    fn what_is_being_deleted_is_told() {
        let ending = Ground { ending: BTreeSet::from([image().object.key()]), ..ground() };
        let notes = planned(vec![image(), queue()], &ending, &wishes()).notes;
        assert_eq!(
            notes,
            ["Deployment/x is being deleted: what is put back goes with it; correct it again once it is gone"]
        );
    }

    /// `.spec.value` gone, `.spec.valueFrom` there in its place.
    fn union() -> [Finding; 2] {
        let widget = || object("apps/v1", "StatefulSet");
        [
            finding(widget(), Change::Removed, &["spec", "value"], Fix::Upgrade),
            finding(widget(), Change::Added, &["spec", "valueFrom"], Fix::RemoveAdded),
        ]
    }

    fn needs(plan: &Plan) -> Vec<&str> {
        plan.left.iter().map(|left| left.needs.as_str()).collect()
    }

    #[test]
    fn what_helm_would_take_along_is_patched_before_it_runs() {
        let strategy =
            |change, field, fix| finding(object("apps/v1", "StatefulSet"), change, &["spec", "strategy", field], fix);
        let changed = || strategy(Change::Changed, "type", Fix::Upgrade);
        let added = || strategy(Change::Added, "rollingUpdate", Fix::RemoveAdded);
        let plan = planned(vec![changed(), added(), image()], &ground(), &wishes());
        assert_eq!((actions(&plan), needs(&plan)), (vec!["patch", "upgrade"], vec!["--remove-added"]));
        let allowed = Wishes { remove_added: true, ..wishes() };
        let plan = planned(vec![changed(), added(), image()], &ground(), &allowed);
        assert_eq!((actions(&plan), plan.steps[0].findings.len()), (vec!["patch", "upgrade"], 2));
        // Elsewhere what was added stands beside it, unless the server says otherwise.
        let [gone, beside] = union();
        assert_eq!(actions(&planned(vec![gone, beside], &ground(), &allowed)), ["remove-added", "upgrade"]);
    }

    #[test]
    fn what_the_server_refuses_is_no_step_and_keeps_helm_away() {
        let refusing = |with_removal| Ground {
            refused: BTreeMap::from([(
                union()[0].object.key(),
                Obstruction { why: "not both".into(), answer: Answer::Refused, alone: false, with_removal },
            )]),
            ..ground()
        };
        let findings = || union().into_iter().chain([image()]).collect::<Vec<_>>();
        let plan = planned(findings(), &refusing(true), &wishes());
        assert_eq!((plan.method, actions(&plan)), (Method::Patch, vec!["patch"]));
        assert!(plan.because.as_ref().unwrap().contains("not both"), "{plan:?}");
        assert_eq!(
            needs(&plan),
            ["--remove-added: the server refuses it beside what was added (not both)", "--remove-added"]
        );
        let allowed = Wishes { remove_added: true, ..wishes() };
        let plan = planned(findings(), &refusing(true), &allowed);
        assert_eq!((plan.method, actions(&plan), needs(&plan)), (Method::Upgrade, vec!["patch", "upgrade"], vec![]));
        let plan = planned(findings(), &refusing(false), &allowed);
        assert_eq!((plan.method, actions(&plan), plan.left.len()), (Method::Patch, vec!["patch"], 2));
        assert!(plan.left.iter().all(|left| left.is_refused));
        // What Helm cannot send is sent before it runs.
        let mut alone = refusing(false);
        alone.refused.values_mut().for_each(|one| one.alone = true);
        let plan = planned(findings(), &alone, &wishes());
        assert_eq!((plan.method, actions(&plan)), (Method::Upgrade, vec!["patch", "upgrade"]));
        // Without an answer a patch is tried, and told; Helm is not.
        let mut uncertain = refusing(false);
        uncertain.refused.values_mut().for_each(|one| one.answer = Answer::Uncertain);
        let plan = planned(findings(), &uncertain, &allowed);
        assert_eq!((plan.method, actions(&plan)), (Method::Patch, vec!["patch", "patch", "remove-added"]));
    }

    #[test]
    fn what_a_merge_confuses_or_adds_anew_is_patched_before_helm_runs() {
        let confusing = Ground { confused: BTreeSet::from([image().object.key()]), ..ground() };
        assert_eq!(actions(&planned(vec![image()], &confusing, &wishes())), ["patch"]);
        let rewritten = Finding { verdict: Verdict::Expected, cause: Some(Cause::Admission), ..image() };
        let other = finding(object("v1", "ConfigMap"), Change::Changed, &["data", "a"], Fix::Upgrade);
        assert_eq!(planned(vec![rewritten, other.clone()], &confusing, &wishes()).method, Method::Patch);
        let item = Segment::Item(vec![("port".into(), json!(80))]);
        let path = FieldPath::of_fields(&["spec", "ports"]).child(item).field("port");
        let renumbered =
            Finding { path: Some(path), ..finding(object("v1", "Service"), Change::Changed, &[], Fix::Upgrade) };
        assert_eq!(actions(&planned(vec![renumbered, other], &ground(), &wishes())), ["patch", "upgrade"]);
    }

    #[test]
    fn a_field_that_its_writer_sets_again_is_a_fight() {
        let when: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let key = (image().object.key(), Some(".spec.image".to_owned()));
        let again =
            |writer: &str| Ground { before: BTreeMap::from([(key.clone(), (writer.to_owned(), when))]), ..ground() };
        let mut by_controller = image();
        by_controller.manager.iter_mut().for_each(|manager| manager.name = "hotfixer".into());
        assert_eq!(planned(vec![by_controller.clone()], &again("hotfixer"), &wishes()).fights.len(), 1);
        assert!(planned(vec![by_controller], &again("other"), &wishes()).fights.is_empty());
        assert!(planned(vec![image()], &again("kubectl-edit"), &wishes()).fights.is_empty());
    }
}
