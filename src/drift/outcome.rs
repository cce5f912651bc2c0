//! What came of a correction: each step's result, and what came back at once. Data alone.

use super::finding::{Finding, Report, Verdict};
use super::object::{ObjectKey, ObjectRef};
use super::plan::{Action, Plan};
use super::refusal::Refusal;
use super::release::ReleaseKey;

/// What is to be done about one release.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Planned {
    pub(crate) release: ReleaseKey,
    pub(crate) decision: Decision,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    Correct(Box<Plan>),
    /// Nothing drifted.
    Leave,
    Refuse(Refusal),
}

impl Planned {
    pub(crate) fn plan(&self) -> Option<&Plan> {
        match &self.decision {
            Decision::Correct(plan) => Some(plan),
            Decision::Leave | Decision::Refuse(_) => None,
        }
    }

    /// By us as a whole, or by the server in part.
    pub(crate) fn is_refused(&self) -> bool {
        match &self.decision {
            Decision::Refuse(_) => true,
            Decision::Correct(plan) => plan.left.iter().any(|left| left.is_refused),
            Decision::Leave => false,
        }
    }

    /// Whether the same would be done for the same reasons. The words that a server found for them may hold times and numbers.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        match (&self.decision, &other.decision) {
            (Decision::Correct(plan), Decision::Correct(again)) => {
                self.release == other.release && wordless(plan) == wordless(again)
            }
            // Of a refusal, which may tell how long it has been so.
            (Decision::Refuse(one), Decision::Refuse(again)) => {
                self.release == other.release && one.word() == again.word()
            }
            (one, again) => self.release == other.release && one == again,
        }
    }
}

fn wordless(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.because = plan.because.map(|_| String::new());
    plan.left.iter_mut().for_each(|left| left.needs.clear());
    plan
}

/// One step, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepOutcome {
    pub(crate) release: ReleaseKey,
    pub(crate) action: Action,
    pub(crate) result: StepResult,
    /// What it was to repair.
    pub(crate) findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepResult {
    /// With what there is to say about it, often nothing.
    Done(Option<String>),
    /// Why, and what state that leaves.
    Failed(String),
    /// It was not begun; why.
    Skipped(String),
}

/// A field that is not what it was set to a moment ago.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Back {
    pub(crate) release: ReleaseKey,
    pub(crate) object: ObjectRef,
    pub(crate) path: Option<String>,
    /// Who holds it now; `None`: nobody.
    pub(crate) writer: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) planned: Vec<Planned>,
    /// The file that holds what was there before.
    pub(crate) evidence: Option<String>,
    pub(crate) steps: Vec<StepOutcome>,
    pub(crate) back: Vec<Back>,
    /// The check afterwards.
    pub(crate) report: Report,
}

impl Outcome {
    /// 2 when something was refused or failed, else the verdict of the last check.
    pub(crate) fn exit_code(&self) -> u8 {
        let incomplete = self.planned.iter().any(Planned::is_refused)
            || self.steps.iter().any(|step| !matches!(step.result, StepResult::Done(_)));
        if incomplete { 2 } else { self.report.exit_code() }
    }
}

/// What the last check finds where a step was done.
pub(crate) fn back(steps: &[StepOutcome], report: &Report) -> Vec<Back> {
    let done = steps.iter().filter(|step| matches!(step.result, StepResult::Done(_)));
    let mut back = Vec::new();
    for step in done {
        let now = report
            .releases
            .iter()
            .filter(|release| release.name == step.release.name && release.namespace == step.release.namespace)
            .flat_map(|release| &release.findings)
            .filter(|finding| finding.verdict == Verdict::Drift);
        for finding in now {
            if step.findings.iter().any(|repaired| is_same(repaired, finding)) {
                back.push(Back {
                    release: step.release.clone(),
                    object: finding.object.clone(),
                    path: finding.path.as_ref().map(ToString::to_string),
                    writer: finding.manager.as_ref().map(|manager| manager.name.clone()),
                });
            }
        }
    }
    back
}

/// The same place of the same object, whatever is there now.
pub(crate) fn is_same(a: &Finding, b: &Finding) -> bool {
    let key = |finding: &Finding| -> ObjectKey { finding.object.key() };
    key(a) == key(b) && a.path == b.path
}

#[cfg(test)]
mod tests {
    use super::super::finding::ApplyMethod;
    use super::super::object::FieldPath;
    use super::super::plan::{Left, Method};
    use super::super::sample;
    use super::*;

    fn plan() -> Plan {
        let finding = sample::finding(sample::object("v1", "ConfigMap", "x"), FieldPath::default());
        let left = Left { finding, needs: "request 16 was refused".into(), is_removable: false, is_refused: false };
        Plan {
            release: ReleaseKey { namespace: "prod".into(), name: "nucleus".into() },
            revision: 12,
            judged: 12,
            apply_method: ApplyMethod::ClientSide,
            method: Method::Patch,
            because: Some("request 16".into()),
            steps: Vec::new(),
            left: vec![left],
            collateral: Vec::new(),
            resets: false,
            hooks: Vec::new(),
            runs_hooks: false,
            fights: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn planned(change: impl Fn(&mut Plan)) -> Planned {
        let mut plan = plan();
        change(&mut plan);
        Planned { release: plan.release.clone(), decision: Decision::Correct(Box::new(plan)) }
    }

    #[test]
    fn a_plan_is_the_same_whatever_words_its_reasons_have() {
        let before = planned(|_| ());
        let reworded = planned(|plan| {
            plan.left[0].needs = "request 17 was refused".into();
            plan.because = Some("request 17".into());
        });
        assert!(before.is_as(&reworded));
        assert!(!before.is_as(&planned(|plan| plan.left.clear())));
        assert!(!before.is_as(&planned(|plan| plan.because = None)));
        assert!(!before.is_as(&planned(|plan| plan.revision += 1)));
        let refused = |message: &str| Planned {
            release: before.release.clone(),
            decision: Decision::Refuse(Refusal::State { reason: "PendingUpgrade", message: message.into() }),
        };
        assert!(refused("for 12s").is_as(&refused("for 13s")));
        assert!(!refused("for 12s").is_as(&before));
    }

    #[test]
    fn what_the_server_refuses_in_part_is_a_refusal() {
        assert!(!planned(|_| ()).is_refused());
        assert!(planned(|plan| plan.left[0].is_refused = true).is_refused());
    }
}
