//! `DriftPlan` and `DriftOutcome`, as structs of their own beside the report's (design.md §8): only fields are ever added.

use std::io::{self, Write};

use serde::Serialize;

use crate::drift::finding::{Finding, Report};
use crate::drift::outcome::{Decision, Outcome, Planned, StepResult};
use crate::drift::plan::{Action, Plan};
use crate::drift::release::ReleaseKey;

use super::json::{self, API_VERSION, DriftReport, JsonCluster, JsonFinding, JsonObject};

pub(crate) fn plan(
    out: &mut dyn Write,
    report: &Report,
    planned: &[Planned],
    evidence: Option<&str>,
) -> io::Result<()> {
    json::write(out, &DriftPlan::new(report, planned, evidence))
}

pub(crate) fn plan_yaml(
    out: &mut dyn Write,
    report: &Report,
    planned: &[Planned],
    evidence: Option<&str>,
) -> io::Result<()> {
    json::write_yaml(out, &DriftPlan::new(report, planned, evidence))
}

pub(crate) fn outcome(out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
    json::write(out, &DriftOutcome::new(outcome))
}

pub(crate) fn outcome_yaml(out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
    json::write_yaml(out, &DriftOutcome::new(outcome))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DriftPlan<'a> {
    api_version: &'static str,
    kind: &'static str,
    program: &'static str,
    cluster: JsonCluster<'a>,
    /// Where what was there before will be kept.
    evidence: Option<&'a str>,
    releases: Vec<JsonPlan<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DriftOutcome<'a> {
    api_version: &'static str,
    kind: &'static str,
    program: &'static str,
    cluster: JsonCluster<'a>,
    evidence: Option<&'a str>,
    /// What was planned.
    releases: Vec<JsonPlan<'a>>,
    steps: Vec<JsonDone<'a>>,
    fights: Vec<JsonFight<'a>>,
    /// The check afterwards.
    report: DriftReport<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonPlan<'a> {
    name: &'a str,
    namespace: &'a str,
    /// correct, leave or refuse.
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<JsonRefusal>,
    #[serde(flatten)]
    plan: Option<JsonSteps<'a>>,
}

#[derive(Serialize)]
struct JsonRefusal {
    reason: &'static str,
    message: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSteps<'a> {
    revision: u64,
    /// The revision that is gone back to.
    judged_revision: u64,
    method: &'static str,
    /// Why it is not the method that was asked for.
    because: Option<&'a str>,
    steps: Vec<JsonStep<'a>>,
    left: Vec<JsonLeft<'a>>,
    collateral: Vec<JsonFinding<'a>>,
    /// Whether the collateral is reset; else it is kept.
    resets_collateral: bool,
    hooks: &'a [String],
    runs_hooks: bool,
    fights: Vec<JsonFight<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct JsonStep<'a> {
    action: &'static str,
    object: Option<JsonObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<&'static str>,
    findings: Vec<JsonFinding<'a>>,
}

#[derive(Serialize)]
struct JsonLeft<'a> {
    finding: JsonFinding<'a>,
    needs: &'a str,
}

#[derive(Serialize)]
struct JsonFight<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    object: JsonObject<'a>,
    path: Option<&'a str>,
    writer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    corrected: Option<String>,
}

#[derive(Serialize)]
struct JsonDone<'a> {
    name: &'a str,
    namespace: &'a str,
    action: &'static str,
    object: Option<JsonObject<'a>>,
    /// done, failed or skipped.
    result: &'static str,
    message: Option<&'a str>,
    findings: Vec<JsonFinding<'a>>,
}

impl<'a> DriftPlan<'a> {
    fn new(report: &'a Report, planned: &'a [Planned], evidence: Option<&'a str>) -> Self {
        Self {
            api_version: API_VERSION,
            kind: "DriftPlan",
            program: env!("CARGO_PKG_VERSION"),
            cluster: JsonCluster::new(&report.cluster),
            evidence,
            releases: planned.iter().map(JsonPlan::new).collect(),
        }
    }
}

impl<'a> DriftOutcome<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        let steps = outcome.steps.iter().map(|step| {
            let (result, message) = match &step.result {
                StepResult::Done(about) => ("done", about.as_deref()),
                StepResult::Failed(why) => ("failed", Some(why.as_str())),
                StepResult::Skipped(why) => ("skipped", Some(why.as_str())),
            };
            JsonDone {
                name: &step.release.name,
                namespace: &step.release.namespace,
                action: step.action.word(),
                object: step.action.object().map(JsonObject::new),
                result,
                message,
                findings: findings(&step.findings),
            }
        });
        let fights = outcome.back.iter().map(|back| JsonFight {
            name: Some(&back.release.name),
            namespace: Some(&back.release.namespace),
            object: JsonObject::new(&back.object),
            path: back.path.as_deref(),
            writer: back.writer.as_deref(),
            corrected: None,
        });
        Self {
            api_version: API_VERSION,
            kind: "DriftOutcome",
            program: env!("CARGO_PKG_VERSION"),
            cluster: JsonCluster::new(&outcome.report.cluster),
            evidence: outcome.evidence.as_deref(),
            releases: outcome.planned.iter().map(JsonPlan::new).collect(),
            steps: steps.collect(),
            fights: fights.collect(),
            report: DriftReport::new(&outcome.report),
        }
    }
}

impl<'a> JsonPlan<'a> {
    fn new(planned: &'a Planned) -> Self {
        let ReleaseKey { namespace, name } = &planned.release;
        let (decision, refusal, plan) = match &planned.decision {
            Decision::Leave => ("leave", None, None),
            Decision::Refuse(refusal) => {
                ("refuse", Some(JsonRefusal { reason: refusal.word(), message: refusal.to_string() }), None)
            }
            Decision::Correct(plan) => ("correct", None, Some(JsonSteps::new(plan))),
        };
        Self { name, namespace, decision, refusal, plan }
    }
}

impl<'a> JsonSteps<'a> {
    fn new(plan: &'a Plan) -> Self {
        let steps = plan.steps.iter().map(|step| JsonStep {
            action: step.action.word(),
            object: step.action.object().map(JsonObject::new),
            lost: match &step.action {
                Action::Recreate { lost, .. } => Some(lost),
                _ => None,
            },
            findings: findings(&step.findings),
        });
        let left =
            plan.left.iter().map(|left| JsonLeft { finding: JsonFinding::new(&left.finding), needs: &left.needs });
        let fights = plan.fights.iter().map(|fight| JsonFight {
            name: None,
            namespace: None,
            object: JsonObject::new(&fight.object),
            path: fight.path.as_deref(),
            writer: fight.writer.as_deref(),
            corrected: Some(json::rfc3339(fight.corrected)),
        });
        Self {
            revision: plan.revision,
            judged_revision: plan.judged,
            method: plan.method.word(),
            because: plan.because.as_deref(),
            steps: steps.collect(),
            left: left.collect(),
            collateral: findings(&plan.collateral),
            resets_collateral: plan.resets,
            hooks: &plan.hooks,
            runs_hooks: plan.runs_hooks,
            fights: fights.collect(),
            notes: &plan.notes,
        }
    }
}

fn findings(findings: &[Finding]) -> Vec<JsonFinding<'_>> {
    findings.iter().map(JsonFinding::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{contract, sample};
    use serde_json::Value;

    fn json(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> Value {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn plans_and_outcomes_follow_the_schema() {
        let (planned, done) = (sample::planned(), sample::outcome());
        let plan = json(|out| super::plan(out, &done.report, &planned, Some("evidence/nucleus.drift")));
        let outcome = json(|out| super::outcome(out, &done));
        for document in [&plan, &outcome] {
            assert_eq!(contract::errors(document), [""; 0]);
        }
        assert_eq!((&plan["kind"], &outcome["kind"]), (&"DriftPlan".into(), &"DriftOutcome".into()));
        assert_eq!(plan["releases"], outcome["releases"]);
        let yaml = |write: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| -> Value {
            let mut out = Vec::new();
            write(&mut out).unwrap();
            serde_saphyr::from_slice(&out).unwrap()
        };
        assert_eq!(yaml(&|out| plan_yaml(out, &done.report, &planned, Some("evidence/nucleus.drift"))), plan);
        assert_eq!(yaml(&|out| outcome_yaml(out, &done)), outcome);
    }

    /// Whoever adds a refusal adds it to the schema.
    #[test]
    fn refusals_are_those_of_the_schema() {
        let schema = contract::schema();
        let words = schema.pointer("/$defs/planned/properties/refusal/properties/reason/enum").unwrap();
        let text = include_str!("../drift/refusal.rs").split_once("fn word").unwrap().1;
        let own: Vec<&str> = text.lines().filter_map(|line| line.split('"').nth(1)).collect();
        assert!(own.len() > 10, "{own:?}");
        for word in own {
            assert!(words.as_array().unwrap().iter().any(|one| one == word), "{word}");
        }
    }
}
