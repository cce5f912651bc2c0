//! What the server says to a plan before anything is changed: every change is tried as a dry run, Helm's too, as far as it can be known.
//! Knows nothing of what becomes of the plan then.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::cluster::patch::{Attempt, ChangeError};
use crate::drift::finding::{Change, Finding};
use crate::drift::object::{ObjectKey, ObjectRef};
use crate::drift::plan::{Action, Obstruction, Plan};

use super::change::{anew, dependents, send};
use super::ground::Subject;

/// Objects that the server would not let be repaired. What cannot be told (a webhook that takes no dry run, a namespace that is yet to
/// be created) is not among them.
pub(super) async fn rehearse(cluster: &Cluster, plan: &Plan, subject: &Subject) -> BTreeMap<ObjectKey, Obstruction> {
    let mut found = BTreeMap::new();
    for (action, findings) in changes(plan) {
        let Some(object) = action.object() else { continue };
        let method = plan.apply_method;
        let said = match &action {
            Action::Recreate { .. } => recreate(cluster, subject, object).await,
            _ => refusal(send(cluster, method, &action, subject, &findings, Attempt::Rehearsal).await),
        };
        let Some((why, is_forbidden)) = said else { continue };
        let mut all = findings;
        all.extend(additions(plan, object));
        let joined = Action::Patch(object.clone());
        let together = send(cluster, method, &joined, subject, &all, Attempt::Rehearsal);
        let with_removal = matches!(action, Action::Patch(_) | Action::RemoveAdded(_))
            && !is_forbidden
            && all.iter().any(|finding| finding.change == Change::Added)
            && matches!(together.await, Ok(Ok(())));
        found.insert(object.key(), Obstruction { why: subject.quote(&why), is_forbidden, with_removal });
    }
    found
}

/// What is sent, or what stands for what Helm sends: it goes to the same state by another way.
fn changes(plan: &Plan) -> Vec<(Action, Vec<Finding>)> {
    let mut changes: Vec<(Action, Vec<Finding>)> = Vec::new();
    for step in &plan.steps {
        if !step.action.is_helm() {
            changes.push((step.action.clone(), step.findings.clone()));
            continue;
        }
        for finding in &step.findings {
            let object = finding.object.clone();
            let action = if finding.change == Change::Missing { Action::Create(object) } else { Action::Patch(object) };
            match changes.iter_mut().find(|(other, _)| *other == action) {
                Some((_, findings)) => findings.push(finding.clone()),
                None => changes.push((action, vec![finding.clone()])),
            }
        }
    }
    changes
}

/// What somebody added to the object, be it to be removed or not.
fn additions(plan: &Plan, object: &ObjectRef) -> Vec<Finding> {
    let left = plan.left.iter().filter(|left| left.is_removable).map(|left| &left.finding);
    let removed = plan.steps.iter().filter(|step| matches!(step.action, Action::RemoveAdded(_)));
    let all = left.chain(removed.flat_map(|step| &step.findings));
    all.filter(|finding| finding.change == Change::Added && finding.object.key() == object.key()).cloned().collect()
}

/// Deleting and creating; that there is one of the name already is all that may be said against a creation.
async fn recreate(cluster: &Cluster, subject: &Subject, object: &ObjectRef) -> Option<(String, bool)> {
    let (read_as, served) = subject.desired.get(&object.key())?.as_served()?;
    let live = subject.seen.get(&object.key())?;
    let body = match anew(subject, object) {
        Ok(body) => body,
        Err(why) => return Some((why, false)),
    };
    let deleted = cluster.delete(served, &read_as, live, dependents(&object.gvk), Attempt::Rehearsal).await;
    if let Some(said) = refusal(Ok(deleted)) {
        return Some(said);
    }
    refusal(Ok(cluster.create(served, &read_as, &body, Attempt::Rehearsal).await))
}

/// Why it would not be done, and whether it is for a lack of rights.
fn refusal(said: Result<Result<(), ChangeError>, String>) -> Option<(String, bool)> {
    match said {
        Ok(Err(ChangeError::Refused(why))) if !why.contains("dry run") => Some((why, false)),
        Ok(Err(ChangeError::Forbidden(why))) => Some((why, true)),
        Err(why) => Some((why, false)),
        Ok(Ok(()) | Err(ChangeError::Refused(_) | ChangeError::Conflict(_) | ChangeError::Unanswered(_))) => None,
    }
}
