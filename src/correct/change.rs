//! What is sent to the server to repair one object, in earnest or to see what it would say. Knows nothing of steps, and tries once.

use crate::cluster::Cluster;
use crate::cluster::patch::{Attempt, ChangeError, Dependents};
use crate::drift::finding::{ApplyMethod, Cause, Change, Finding, Verdict};
use crate::drift::in_place::is_built_in;
use crate::drift::object::{Gvk, ObjectRef};
use crate::drift::outcome::is_same;
use crate::drift::plan::Action;
use crate::drift::repair;

use super::ground::Subject;

/// Sends what repairs `findings` of one object. `Err`: it cannot even be put together.
///
/// What the server refuses field by field is sent once more with the maps around the fields as a whole: a default of another choice
/// (`rollingUpdate` of a strategy) goes with it, unless somebody's own addition would.
pub(super) async fn send(
    cluster: &Cluster,
    apply_method: ApplyMethod,
    action: &Action,
    subject: &Subject,
    findings: &[Finding],
    attempt: Attempt,
) -> Result<Result<(), ChangeError>, String> {
    let sent = send_fields(cluster, apply_method, action, subject, findings, attempt).await?;
    let (Err(ChangeError::Refused(_)), Action::Patch(object)) = (&sent, action) else { return Ok(sent) };
    match send_maps(cluster, apply_method, object, subject, findings, attempt).await {
        Some(Ok(())) => Ok(Ok(())),
        Some(Err(_)) | None => Ok(sent),
    }
}

/// `None`: there is no such way.
pub(super) async fn send_maps(
    cluster: &Cluster,
    apply_method: ApplyMethod,
    object: &ObjectRef,
    subject: &Subject,
    findings: &[Finding],
    attempt: Attempt,
) -> Option<Result<(), ChangeError>> {
    let (desired, live) = subject.desired.get(&object.key()).zip(subject.seen.get(&object.key()))?;
    let (read_as, served) = desired.as_served()?;
    let repaired: Vec<&Finding> = findings.iter().collect();
    let kept = kept(subject, object, &repaired);
    let wanted = repair::overlay(&desired.body, live, &kept, None).ok()?;
    let operations = repair::maps_patch(&wanted, live, &repaired, &kept)?;
    let patched = cluster.patch(served, &read_as, operations, attempt).await;
    if apply_method == ApplyMethod::ServerSide && patched.is_ok() && attempt == Attempt::Real {
        return Some(cluster.disown(served, &read_as).await);
    }
    Some(patched)
}

/// Field by field.
pub(super) async fn send_fields(
    cluster: &Cluster,
    apply_method: ApplyMethod,
    action: &Action,
    subject: &Subject,
    findings: &[Finding],
    attempt: Attempt,
) -> Result<Result<(), ChangeError>, String> {
    let object = action.object().ok_or("it is about no object")?;
    let desired = subject.desired.get(&object.key()).ok_or("the manifest does not hold it any more")?;
    let (read_as, served) = desired.as_served().ok_or("the cluster does not serve its kind")?;
    let server_side = apply_method == ApplyMethod::ServerSide;
    if let Action::Create(_) = action {
        let body = repair::anew(&desired.body);
        return Ok(if server_side {
            cluster.apply(served, &read_as, &body, repair::HELM, attempt).await
        } else {
            cluster.create(served, &read_as, &body, attempt).await
        });
    }
    let live = subject.seen.get(&object.key()).ok_or("it is not there any more")?;
    let repaired: Vec<&Finding> = findings.iter().collect();
    let kept = kept(subject, object, &repaired);
    let repairs = matches!(action, Action::Patch(_));
    if server_side && repairs && findings.iter().all(can_be_applied) {
        // To apply it once more would end the excuse of what admission rewrote while Helm wrote it (design.md §5.5).
        let is_excused = |finding: &&Finding| {
            finding.cause == Some(Cause::Admission) && repair::is_applied_by(finding, repair::HELM)
        };
        if !kept.iter().any(is_excused) {
            let wanted =
                repair::overlay(&desired.body, live, &kept, Some(repair::HELM)).map_err(|error| error.to_string())?;
            return Ok(cluster.apply(served, &read_as, &repair::bound(&wanted, live), repair::HELM, attempt).await);
        }
    }
    let wanted = repair::overlay(&desired.body, live, &kept, None).map_err(|error| error.to_string())?;
    let operations = repair::json_patch(&wanted, live, &repaired).map_err(|error| error.to_string())?;
    let mut patched = cluster.patch(served, &read_as, operations.clone(), attempt).await;
    if matches!(&patched, Err(ChangeError::Refused(why)) if why.contains(repair::UNEXPLAINED)) {
        patched = cluster.patch(served, &read_as, repair::without_tests(operations), attempt).await;
    }
    if server_side && patched.is_ok() && repairs && attempt == Attempt::Real {
        return Ok(cluster.disown(served, &read_as).await);
    }
    Ok(patched)
}

/// An apply takes nothing away, and knows a list's item by its key: with another key it would be one more item.
fn can_be_applied(finding: &Finding) -> bool {
    let is_key = finding.path.as_ref().is_some_and(repair::is_item_key);
    matches!(finding.change, Change::Changed | Change::Removed) && !is_key
}

/// An object as it is created again: what is to stay of it as it was.
pub(super) fn anew(subject: &Subject, object: &ObjectRef) -> Result<serde_json::Value, String> {
    let both = subject.desired.get(&object.key()).zip(subject.seen.get(&object.key()));
    let (desired, live) = both.ok_or("it is not there any more")?;
    let own: Vec<&Finding> = findings_of(subject, object).filter(|finding| finding.verdict == Verdict::Drift).collect();
    let kept = kept(subject, object, &own);
    let wanted = repair::overlay(&desired.body, live, &kept, None).map_err(|error| error.to_string())?;
    Ok(repair::anew(&wanted))
}

/// What goes with it when a kind is deleted: only what it makes anew. What anybody else hung on an object by an owner reference
/// stays, a StatefulSet's pods too.
pub(super) fn dependents(gvk: &Gvk) -> Dependents {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "StatefulSet") => Dependents::Stay,
        ("apps" | "batch", _) | ("", "Service" | "ReplicationController") => Dependents::Go,
        _ if is_built_in(gvk) => Dependents::Stay,
        _ => Dependents::Go,
    }
}

fn findings_of<'a>(subject: &'a Subject, object: &ObjectRef) -> impl Iterator<Item = &'a Finding> {
    let key = object.key();
    subject.report.findings.iter().filter(move |finding| finding.object.key() == key)
}

/// What must stay as it is, when these findings of an object are repaired: every other one.
fn kept<'a>(subject: &'a Subject, object: &ObjectRef, repaired: &[&Finding]) -> Vec<&'a Finding> {
    findings_of(subject, object)
        .filter(|finding| finding.change != Change::Missing && !repaired.iter().any(|one| is_same(one, finding)))
        .collect()
}
