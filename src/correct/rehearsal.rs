//! What the server says to a plan before anything is changed: every change is tried as a dry run, Helm's too, as far as it can be known.
//! Knows nothing of what becomes of the plan then.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::cluster::patch::{Attempt, ChangeError};
use crate::drift::finding::{ApplyMethod, Change, Finding};
use crate::drift::in_place::retains_keys;
use crate::drift::object::{ObjectKey, ObjectRef};
use crate::drift::plan::{Action, Answer, Obstruction, Plan};

use super::change::{anew, dependents, send, send_fields, send_maps};
use super::ground::Subject;

/// Objects that the server would not let be repaired as planned. A webhook that takes no dry run, or a namespace that is yet to be
/// created, is no reason.
pub(super) async fn rehearse(cluster: &Cluster, plan: &Plan, subject: &Subject) -> BTreeMap<ObjectKey, Obstruction> {
    let mut found = BTreeMap::new();
    for Rehearsed { action, findings, by_helm } in changes(plan) {
        let Some(object) = action.object() else { continue };
        let method = plan.apply_method;
        let said = match &action {
            Action::Recreate { .. } => recreate(cluster, subject, object).await,
            Action::Patch(_) if by_helm => as_helm(cluster, method, &action, subject, &findings).await,
            _ => said(send(cluster, method, &action, subject, &findings, Attempt::Rehearsal).await),
        };
        let Some((why, answer)) = said else { continue };
        let try_patch = async |findings: &[Finding]| {
            let joined = Action::Patch(object.clone());
            matches!(send(cluster, method, &joined, subject, findings, Attempt::Rehearsal).await, Ok(Ok(())))
        };
        let is_patch = matches!(action, Action::Patch(_) | Action::RemoveAdded(_)) && answer == Answer::Refused;
        let alone = is_patch && by_helm && try_patch(&findings).await;
        // An object may have two steps: what is refused of one is tried with the other.
        let mut all: Vec<Finding> = Vec::new();
        for finding in findings.into_iter().chain(repairs(plan, object)).chain(additions(plan, object)) {
            if !all.contains(&finding) {
                all.push(finding);
            }
        }
        let with_removal =
            is_patch && !alone && all.iter().any(|finding| finding.change == Change::Added) && try_patch(&all).await;
        let obstruction = Obstruction { why: subject.quote(&why), answer, alone, with_removal };
        found.entry(object.key()).or_insert(obstruction);
    }
    found
}

/// What Helm would be told: server-side it applies; client-side its merge goes field by field, and where the type says so (`retainKeys`
/// of a strategy and of volumes) map by map.
async fn as_helm(
    cluster: &Cluster,
    method: ApplyMethod,
    action: &Action,
    subject: &Subject,
    findings: &[Finding],
) -> Option<(String, Answer)> {
    let refused = said(send_fields(cluster, method, action, subject, findings, Attempt::Rehearsal).await)?;
    let retains = |finding: &Finding| {
        let above = finding.path.as_ref().and_then(|path| path.0.split_last()).map(|(_, above)| above);
        above.is_some_and(retains_keys)
    };
    let object = action.object()?;
    if method == ApplyMethod::ClientSide
        && findings.iter().any(retains)
        && matches!(send_maps(cluster, method, object, subject, findings, Attempt::Rehearsal).await, Some(Ok(())))
    {
        return None;
    }
    Some(refused)
}

struct Rehearsed {
    action: Action,
    findings: Vec<Finding>,
    by_helm: bool,
}

/// What is sent, or what stands for what Helm sends: it goes to the same state by another way.
fn changes(plan: &Plan) -> Vec<Rehearsed> {
    let mut changes: Vec<Rehearsed> = Vec::new();
    for step in &plan.steps {
        if !step.action.is_helm() {
            let (action, findings) = (step.action.clone(), step.findings.clone());
            changes.push(Rehearsed { action, findings, by_helm: false });
            continue;
        }
        for finding in &step.findings {
            let object = finding.object.clone();
            let action = if finding.change == Change::Missing { Action::Create(object) } else { Action::Patch(object) };
            match changes.iter_mut().find(|other| other.by_helm && other.action == action) {
                Some(other) => other.findings.push(finding.clone()),
                None => changes.push(Rehearsed { action, findings: vec![finding.clone()], by_helm: true }),
            }
        }
    }
    changes
}

/// Changed and removed fields of the object that the plan would put back.
fn repairs(plan: &Plan, object: &ObjectRef) -> Vec<Finding> {
    let all = plan.steps.iter().flat_map(|step| &step.findings);
    let own = all.filter(|finding| finding.object.key() == object.key());
    own.filter(|finding| matches!(finding.change, Change::Changed | Change::Removed)).cloned().collect()
}

/// What somebody added to the object, be it to be removed or not.
fn additions(plan: &Plan, object: &ObjectRef) -> Vec<Finding> {
    let left = plan.left.iter().filter(|left| left.is_removable).map(|left| &left.finding);
    let removed = plan.steps.iter().filter(|step| matches!(step.action, Action::RemoveAdded(_)));
    let all = left.chain(removed.flat_map(|step| &step.findings));
    all.filter(|finding| finding.change == Change::Added && finding.object.key() == object.key()).cloned().collect()
}

/// Deleting and creating. That there is one already, and holds its own addresses and ports, is all that may be said against a creation.
async fn recreate(cluster: &Cluster, subject: &Subject, object: &ObjectRef) -> Option<(String, Answer)> {
    let (read_as, served) = subject.desired.get(&object.key())?.as_served()?;
    let live = subject.seen.get(&object.key())?;
    let body = match anew(subject, object) {
        Ok(body) => body,
        Err(why) => return Some((why, Answer::Refused)),
    };
    let deleted = cluster.delete(served, &read_as, live, dependents(&object.gvk), Attempt::Rehearsal).await;
    let own = |why: &str| why.contains("already allocated");
    match said(Ok(deleted)) {
        Some(refused) => Some(refused),
        None => match cluster.create(served, &read_as, &body, Attempt::Rehearsal).await {
            Err(ChangeError::Conflict(_)) => None,
            created => said(Ok(created)).filter(|(why, _)| !own(why)),
        },
    }
}

/// Why it would not be done; `None`: it would.
fn said(sent: Result<Result<(), ChangeError>, String>) -> Option<(String, Answer)> {
    // kubernetes/apiserver `pkg/admission/plugin/webhook/errors/statuserror.go`
    const NOT_ASKED: &str = "does not support dry run";
    match sent {
        Ok(Ok(()) | Err(ChangeError::Absent(_))) => None,
        Ok(Err(ChangeError::Refused(why))) if why.contains(NOT_ASKED) => None,
        Ok(Err(ChangeError::Refused(why))) | Err(why) => Some((why, Answer::Refused)),
        Ok(Err(ChangeError::Forbidden(why))) => Some((why, Answer::Forbidden)),
        Ok(Err(error @ (ChangeError::Conflict(_) | ChangeError::Unanswered(_)))) => {
            Some((error.to_string(), Answer::Uncertain))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_told_apart() {
        let answer = |sent| said(sent).map(|(_, answer)| answer);
        let text = || "why".to_owned();
        assert_eq!(answer(Ok(Ok(()))), None);
        assert_eq!(answer(Ok(Err(ChangeError::Absent(text())))), None);
        let not_asked = "admission webhook \"x\" does not support dry run".to_owned();
        assert_eq!(answer(Ok(Err(ChangeError::Refused(not_asked)))), None);
        assert_eq!(answer(Ok(Err(ChangeError::Refused("no dry run for you".to_owned())))), Some(Answer::Refused));
        assert_eq!(answer(Ok(Err(ChangeError::Forbidden(text())))), Some(Answer::Forbidden));
        assert_eq!(answer(Ok(Err(ChangeError::Unanswered(text())))), Some(Answer::Uncertain));
        assert_eq!(answer(Ok(Err(ChangeError::Conflict(text())))), Some(Answer::Uncertain));
        assert_eq!(answer(Err(text())), Some(Answer::Refused));
    }
}
