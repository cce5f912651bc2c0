//! Carries out a plan step by step. What fails is told with the state that it leaves; what does not depend on it goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use super::change::{anew, dependents, send};
use super::ground::Subject;
use super::run::{Prepared, Run};
use crate::cluster::Cluster;
use crate::cluster::client::ReadError;
use crate::cluster::patch::{Attempt, ChangeError};
use crate::drift::finding::{ApplyMethod, Finding, Verdict};
use crate::drift::live::Served;
use crate::drift::object::ObjectRef;
use crate::drift::outcome::{Planned, StepOutcome, StepResult, is_same};
use crate::drift::plan::{Action, Plan, Step};
use crate::drift::planner::spot;
use crate::drift::release::{ReleaseKey, Status};
use crate::drift::rendering::Rendering;
use crate::drift::repair;
use crate::helm::Ended;
use crate::ledger::Seen;

/// How often an object that moves under a patch is looked at again.
const LOOKS: usize = 5;
const PAUSE: Duration = Duration::from_millis(500);

/// What the last look before the first change found.
struct Before {
    findings: Vec<Finding>,
    seen: Seen,
}

/// Why the steps after one are not begun.
enum Stop {
    No,
    /// Of this release.
    Here(&'static str),
}

impl Run<'_> {
    pub(super) async fn carry_out(&self, cluster: &Cluster, prepared: Prepared) -> Vec<StepOutcome> {
        let mut subjects: BTreeMap<ReleaseKey, Subject> = prepared.subjects.into_iter().collect();
        let mut outcomes = Vec::new();
        for plan in prepared.planned.iter().filter_map(Planned::plan) {
            match subjects.remove(&plan.release) {
                Some(subject) => outcomes.extend(self.correct_release(cluster, plan, subject).await),
                None => outcomes.extend(
                    plan.steps
                        .iter()
                        .map(|step| outcome(plan, step, StepResult::Skipped("it could not be looked at".to_owned()))),
                ),
            }
        }
        outcomes
    }

    async fn correct_release(&self, cluster: &Cluster, plan: &Plan, subject: Subject) -> Vec<StepOutcome> {
        let mut outcomes: Vec<StepOutcome> = Vec::new();
        let before = Before { findings: subject.report.findings.clone(), seen: subject.seen.clone() };
        let mut subject = Some(subject);
        let mut stop = Stop::No;
        for step in &plan.steps {
            if self.interrupts().any() {
                stop = Stop::Here("interrupted");
            }
            if step.action.is_helm() && outcomes.iter().any(|one| !matches!(one.result, StepResult::Done(_))) {
                stop = Stop::Here("what had to be done before it was not");
            }
            if let Stop::Here(why) = stop {
                outcomes.push(outcome(plan, step, StepResult::Skipped(why.to_owned())));
                continue;
            }
            // After a step that changed more than one object, or a release, what was seen before is old.
            let now = match subject.take() {
                Some(subject) => Some(subject),
                None => self.look_at(cluster, &plan.release).await,
            };
            let Some(now) = now else {
                outcomes.push(outcome(
                    plan,
                    step,
                    StepResult::Skipped("the release cannot be read any more".to_owned()),
                ));
                continue;
            };
            self.progress.stage(&format!("{} {}", step.action.word(), plan.release.name));
            let result = match &step.action {
                Action::Upgrade | Action::Reapply => {
                    let result = self.run_helm(cluster, plan, step, now, &before).await;
                    if !matches!(result, StepResult::Done(_)) {
                        stop = Stop::Here("helm did not succeed");
                    }
                    result
                }
                Action::Recreate { object, .. } => {
                    let result = self.recreate(cluster, plan, object, now).await;
                    if !matches!(result, StepResult::Done(_)) {
                        stop = Stop::Here("an object that was to be recreated was not");
                    }
                    result
                }
                Action::Create(object) | Action::Patch(object) | Action::RemoveAdded(object) => {
                    let (result, left) = self.repair(cluster, plan, step, object, now).await;
                    // Other objects are as they were.
                    subject = left;
                    result
                }
            };
            outcomes.push(outcome(plan, step, result));
        }
        outcomes
    }

    async fn run_helm(
        &self,
        cluster: &Cluster,
        plan: &Plan,
        step: &Step,
        subject: Subject,
        before: &Before,
    ) -> StepResult {
        let Ok(helm) = &self.helm else { return StepResult::Failed("no helm is found any more".to_owned()) };
        let chart = match step.action {
            Action::Upgrade => match self.chart(&subject) {
                Ok(chart) => Some(chart),
                Err(refusal) => return StepResult::Failed(format!("helm was not run: {refusal}")),
            },
            _ => None,
        };
        // Between this look and what helm does lies only helm's own start.
        let Some(now) = self.look_at(cluster, &plan.release).await else {
            return StepResult::Failed("the release cannot be read any more; helm was not run".to_owned());
        };
        if let Some(moved) = moved(plan, &now, before) {
            return StepResult::Failed(format!("{moved} since it was looked at last; helm was not run: try again"));
        }
        let interrupts = self.interrupts();
        let ended = match &chart {
            Some(chart) => helm.upgrade(&self.upgrade(plan, chart), &interrupts).await,
            None => {
                helm.rollback(&plan.release, plan.judged, plan.apply_method, self.options.timeout, &interrupts).await
            }
        };
        let after = self.look_at(cluster, &plan.release).await;
        let interrupted = if self.interrupts().any() { "interrupted; " } else { "" };
        match ended {
            Ended::Failed(said) if is_busy(&said) => StepResult::Failed(format!(
                "{interrupted}another helm is at work on the release, try again later ({})",
                now.quote(&said)
            )),
            Ended::Failed(said) => {
                StepResult::Failed(format!("{interrupted}{}; {}", now.quote(&said), state(after.as_ref(), plan)))
            }
            Ended::Killed(signal) => StepResult::Failed(format!(
                "helm was killed half-way (signal {signal}); {}",
                state(after.as_ref(), plan)
            )),
            Ended::Done(_) => made_revision(&now, after.as_ref(), plan),
        }
    }

    /// Repairs one object by what it looks like now; what moved meanwhile is looked at again. Also gives what was seen, when it still holds
    /// for other objects.
    async fn repair(
        &self,
        cluster: &Cluster,
        plan: &Plan,
        step: &Step,
        object: &ObjectRef,
        subject: Subject,
    ) -> (StepResult, Option<Subject>) {
        let mut now = subject;
        let mut problem = String::new();
        for turn in 0..LOOKS {
            if turn > 0 {
                match self.look_at(cluster, &plan.release).await {
                    Some(subject) => now = subject,
                    None => {
                        return (StepResult::Failed(format!("{problem}; the release cannot be read any more")), None);
                    }
                }
            }
            let left: Vec<Finding> = planned_findings(&now, step).cloned().collect();
            if left.is_empty() {
                let note = if turn > 0 { "it is as it should be, though: " } else { "it was as it should be already" };
                return (StepResult::Done(Some(format!("{note}{problem}"))), Some(now));
            }
            let sent = match send(cluster, plan.apply_method, &step.action, &now, &left, Attempt::Real).await {
                Ok(sent) => sent,
                Err(why) => return (StepResult::Failed(why), Some(now)),
            };
            match sent {
                Ok(()) => return (StepResult::Done(None), self.without(now, object, plan)),
                Err(error @ (ChangeError::Conflict(_) | ChangeError::Absent(_) | ChangeError::Unanswered(_))) => {
                    problem = error.to_string();
                }
                Err(error @ (ChangeError::Refused(_) | ChangeError::Forbidden(_))) => {
                    return (StepResult::Failed(now.quote(&error.to_string())), Some(now));
                }
            }
        }
        (StepResult::Failed(problem), None)
    }

    /// What was seen, unless there is another step for this object: that needs its new state.
    fn without(&self, subject: Subject, object: &ObjectRef, plan: &Plan) -> Option<Subject> {
        let steps =
            plan.steps.iter().filter(|step| step.action.object().is_some_and(|other| other.key() == object.key()));
        (steps.count() <= 1).then_some(subject)
    }

    /// Deletes an object and creates it again. Once it is deleted nothing but its creation ends this.
    async fn recreate(&self, cluster: &Cluster, plan: &Plan, object: &ObjectRef, subject: Subject) -> StepResult {
        let Some((desired, live)) = subject.desired.get(&object.key()).zip(subject.seen.get(&object.key())) else {
            return StepResult::Failed("it is not there any more".to_owned());
        };
        let Some((read_as, served)) = desired.as_served() else {
            return StepResult::Failed("the cluster does not serve its kind".to_owned());
        };
        let body = match anew(&subject, object) {
            Ok(body) => body,
            Err(why) => return StepResult::Failed(why),
        };
        match cluster.delete(served, &read_as, live, dependents(&object.gvk), Attempt::Real).await {
            Ok(()) => {}
            Err(ChangeError::Unanswered(why)) => {
                // Deleted or not: that is looked at next.
                tracing::warn!(%object, why, "no answer to its deletion");
            }
            Err(error) => {
                return StepResult::Failed(format!("it was not deleted: {}", subject.quote(&error.to_string())));
            }
        }
        if let Err(why) = self.wait_until_gone(cluster, served, &read_as, live).await {
            return StepResult::Failed(why);
        }
        let mut problem = String::new();
        for turn in 0..LOOKS {
            if turn > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            let created = match plan.apply_method {
                ApplyMethod::ServerSide => cluster.apply(served, &read_as, &body, repair::HELM, Attempt::Real).await,
                ApplyMethod::ClientSide => cluster.create(served, &read_as, &body, Attempt::Real).await,
            };
            match created {
                Ok(()) => return StepResult::Done(None),
                // A creation whose answer was lost.
                Err(ChangeError::Conflict(_)) if turn > 0 => {
                    return StepResult::Done(Some(format!(
                        "it is there; the answer to its creation was lost: {problem}"
                    )));
                }
                Err(error) => problem = subject.quote(&error.to_string()),
            }
        }
        StepResult::Failed(format!(
            "it is deleted and was not created again: {problem}; `drift correct {} -n {}` creates it",
            plan.release.name, plan.release.namespace
        ))
    }

    async fn wait_until_gone(
        &self,
        cluster: &Cluster,
        served: &Served,
        object: &ObjectRef,
        before: &serde_json::Value,
    ) -> Result<(), String> {
        let limit = tokio::time::Instant::now().checked_add(self.options.timeout);
        let uid = |value: &serde_json::Value| value.pointer("/metadata/uid").cloned();
        loop {
            let why = match cluster.object(served, object).await {
                Err(ReadError::NotFound(_)) => return Ok(()),
                Ok(now) if uid(&now) != uid(before) => return Err("somebody else created it anew meanwhile".to_owned()),
                Ok(now) if now.pointer("/metadata/deletionTimestamp").is_none() => {
                    return Err("it was not deleted: the server did not answer".to_owned());
                }
                Ok(now) => {
                    let held = now.pointer("/metadata/finalizers").map(ToString::to_string).unwrap_or_default();
                    format!(
                        "it is being deleted, which its finalizers {held} hold up, and was not created again: mend what they wait for, then `drift correct` creates it"
                    )
                }
                Err(error) => format!("whether it is deleted cannot be told: {error}"),
            };
            if limit.is_some_and(|limit| tokio::time::Instant::now() > limit) {
                return Err(why);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn outcome(plan: &Plan, step: &Step, result: StepResult) -> StepOutcome {
    StepOutcome { release: plan.release.clone(), action: step.action.clone(), result, findings: step.findings.clone() }
}

/// What is still to be repaired of what was planned, as it is now.
fn planned_findings<'a>(subject: &'a Subject, step: &'a Step) -> impl Iterator<Item = &'a Finding> {
    subject.report.findings.iter().filter(|finding| {
        finding.verdict == Verdict::Drift
            && step.findings.iter().any(|planned| is_same(planned, finding) && planned.change == finding.change)
    })
}

/// What somebody did meanwhile, of what Helm would undo.
fn moved(plan: &Plan, now: &Subject, before: &Before) -> Option<String> {
    let newest = now.newest();
    if newest != plan.revision {
        return Some(format!("somebody made revision {newest}"));
    }
    let known = |finding: &Finding| {
        let is_old = |old: &&Finding| is_same(old, finding) && old.change == finding.change && old.live == finding.live;
        before.findings.iter().any(|old| is_old(&old)) && value(&before.seen, finding) == value(&now.seen, finding)
    };
    let counts = |finding: &&Finding| matches!(finding.verdict, Verdict::Drift | Verdict::Unverified);
    let new = now.report.findings.iter().filter(counts).find(|finding| !known(finding))?;
    Some(format!("somebody changed {}", spot(new)))
}

/// What is there, though it may be masked in the finding.
fn value<'a>(seen: &'a Seen, finding: &Finding) -> Option<&'a serde_json::Value> {
    seen.get(&finding.object.key())?.pointer(finding.pointer.as_deref()?)
}

fn is_busy(said: &str) -> bool {
    said.contains("another operation (install/upgrade/rollback) is in progress")
        || said.contains("release: already exists")
}

/// What Helm left behind, in words.
fn state(after: Option<&Subject>, plan: &Plan) -> String {
    let Some(after) = after else { return "what became of the release cannot be read now".to_owned() };
    let history = &after.loaded.history;
    let newest = history.newest();
    let status = after.report.status.as_deref().unwrap_or("of unknown status");
    let deployed: Vec<String> = history.deployed().map(|record| format!("revision {}", record.revision)).collect();
    if newest.revision == plan.revision && newest.status() == Status::Deployed {
        return format!("no revision was made, revision {} is still deployed", plan.revision);
    }
    match deployed.as_slice() {
        [] => format!(
            "revision {} is {status} and no revision is deployed any more: `helm rollback {} {} -n {}`",
            newest.revision, plan.release.name, plan.judged, plan.release.namespace
        ),
        [one, ..] if newest.status() == Status::Deployed => {
            format!("helm rolled back: {one} is deployed")
        }
        [one, ..] => format!("revision {} is {status}, {one} is deployed", newest.revision),
    }
}

/// Helm says it succeeded: the record must say so too, and hold what was there before.
fn made_revision(before: &Subject, after: Option<&Subject>, plan: &Plan) -> StepResult {
    let Some(after) = after else {
        return StepResult::Done(Some("the new revision could not be read".to_owned()));
    };
    let newest = after.loaded.history.newest();
    if newest.revision > plan.revision + 1 && newest.status() == Status::Deployed {
        let (name, namespace) = (&plan.release.name, &plan.release.namespace);
        return StepResult::Failed(format!(
            "somebody made revision {other} in the very moment that helm began, and revision {newest} took its place: see both, and `helm rollback {name} {other} -n {namespace}` to go on from theirs",
            other = newest.revision - 1,
            newest = newest.revision,
        ));
    }
    if newest.revision != plan.revision + 1 || newest.status() != Status::Deployed {
        return StepResult::Failed(format!("helm says it succeeded, but {}", state(Some(after), plan)));
    }
    if !Rendering::of(&before.record).same_manifest(&Rendering::of(&after.record)) {
        return StepResult::Failed(format!(
            "revision {} holds another manifest than revision {}: the chart rendered something else than it did a moment ago",
            newest.revision, plan.judged
        ));
    }
    StepResult::Done(Some(format!("revision {}", newest.revision)))
}
