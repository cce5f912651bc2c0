//! A plan and what came of it, for a person who is asked to agree. Knows nothing of how a step is carried out.

use std::io::{self, Write};

use crate::config::PlanFormat;
use crate::drift::finding::{Condition, Finding, Report, Trouble};
use crate::drift::object::ObjectRef;
use crate::drift::outcome::{Decision, Outcome, Planned, StepOutcome, StepResult};
use crate::drift::plan::{Action, Method, Plan};
use crate::drift::release::ReleaseKey;

use super::json;
use super::line::{ALARM, BOLD, CYAN, DIM, GAP, GREEN, Line, PLAIN, RED, YELLOW, width, wrap};
use super::value::{ARROW, Pair};
use super::words::{count, mark, whole, why};
use super::{Style, plan_json, text};

/// Writes plans and outcomes to `to`.
pub(crate) struct Paper<'a> {
    to: &'a mut dyn Write,
    format: PlanFormat,
    style: Style,
}

impl<'a> Paper<'a> {
    pub(crate) fn new(to: &'a mut dyn Write, format: PlanFormat, style: Style) -> Self {
        Self { to, format, style }
    }

    /// `evidence`: the file that will hold what was there before.
    pub(crate) fn plan(&mut self, report: &Report, planned: &[Planned], evidence: Option<&str>) -> io::Result<()> {
        match self.format {
            PlanFormat::Table => {
                let lines = Writer { style: &self.style, report }.plans(planned, evidence);
                lines.iter().try_for_each(|line| line.write(self.to, self.style.color))?;
            }
            PlanFormat::Json => plan_json::plan(self.to, report, planned, evidence)?,
            PlanFormat::Yaml => plan_json::plan_yaml(self.to, report, planned, evidence)?,
        }
        self.to.flush()
    }

    pub(crate) fn outcome(&mut self, outcome: &Outcome) -> io::Result<()> {
        match self.format {
            PlanFormat::Table => {
                let lines = Writer { style: &self.style, report: &outcome.report }.outcome(outcome);
                lines.iter().try_for_each(|line| line.write(self.to, self.style.color))?;
                text::report(self.to, &self.style, &outcome.report)?;
            }
            PlanFormat::Json => plan_json::outcome(self.to, outcome)?,
            PlanFormat::Yaml => plan_json::outcome_yaml(self.to, outcome)?,
        }
        self.to.flush()
    }

    /// As lines, whatever the format.
    pub(crate) fn troubles(&mut self, troubles: &[Trouble]) -> io::Result<()> {
        text::troubles(self.to, self.style.color, troubles)?;
        self.to.flush()
    }
}

/// What becomes of a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Becomes {
    /// What is there is shown, and what comes in its place; `bare`: the object is named above.
    Desired { bare: bool },
    /// What is there stays.
    Kept,
}

struct Writer<'a> {
    style: &'a Style,
    report: &'a Report,
}

impl Writer<'_> {
    fn plans(&self, planned: &[Planned], evidence: Option<&str>) -> Vec<Line> {
        let mut lines = Vec::new();
        for one in planned {
            if !lines.is_empty() {
                lines.push(Line::new());
            }
            match &one.decision {
                Decision::Leave => {
                    let mut line = self.title(&one.release);
                    line.push(PLAIN, ": ").push(GREEN, "nothing to correct");
                    lines.push(line);
                    let release =
                        self.report.releases.iter().find(|release| {
                            release.name == one.release.name && release.namespace == one.release.namespace
                        });
                    if let Some(release) = release.filter(|release| release.ready != Condition::True) {
                        lines.extend(self.indented(2, &release.message));
                    }
                }
                Decision::Refuse(refusal) => {
                    let mut line = self.title(&one.release);
                    line.push(PLAIN, ": ").push(ALARM, "not corrected");
                    lines.push(line);
                    lines.extend(self.indented(2, &refusal.to_string()));
                }
                Decision::Correct(plan) => lines.extend(self.plan(plan)),
            }
        }
        let changes = planned.iter().filter_map(Planned::plan).any(|plan| !plan.steps.is_empty());
        if changes {
            lines.push(Line::new());
            let mut line = Line::new();
            match evidence {
                Some(file) => line.push(DIM, "evidence goes to ").push(PLAIN, file),
                None => line.push(DIM, "no evidence is kept"),
            };
            lines.push(line);
        }
        lines
    }

    fn title(&self, release: &ReleaseKey) -> Line {
        let mut line = Line::new();
        line.push(BOLD, &format!("{}/{}", release.namespace, release.name));
        line
    }

    fn plan(&self, plan: &Plan) -> Vec<Line> {
        let mut title = self.title(&plan.release);
        title.push(PLAIN, &format!(", back to revision {}", plan.judged));
        if let Some(server) = &self.report.cluster.server {
            title.push(PLAIN, &format!(", on {server}"));
        }
        if let Some(context) = &self.report.cluster.context {
            title.push(PLAIN, &format!(" (context {context})"));
        }
        let mut lines = vec![title];
        if let Some(because) = &plan.because {
            lines.extend(self.indented(2, &format!("each finding by itself: {because}")));
        }
        for fight in &plan.fights {
            let path = fight.path.as_deref().map(|path| format!(" {path}")).unwrap_or_default();
            let (object, corrected) = (&fight.object, json::rfc3339(fight.corrected));
            let what = match &fight.writer {
                Some(writer) => {
                    format!(
                        "{writer} has set {object}{path} again since it was corrected at {corrected}; stop that first"
                    )
                }
                None => format!(
                    "{object}{path} is as it was before it was corrected at {corrected}, and nobody owns it; find out what does that"
                ),
            };
            lines.extend(self.alarming(2, &what));
        }
        for step in &plan.steps {
            lines.push(self.step_title(plan, &step.action));
            let findings = step.findings.iter().map(|finding| (finding, None));
            lines.extend(self.findings(&plan.release, findings, Becomes::Desired { bare: !step.action.is_helm() }));
        }
        if plan.steps.is_empty() {
            let mut line = Line::new();
            line.blanks(2).push(YELLOW, "nothing of it can be corrected like this");
            lines.push(line);
        }
        if !plan.left.is_empty() {
            let mut line = Line::new();
            line.blanks(2).push(YELLOW, "stays as it is");
            lines.push(line);
            let left = plan.left.iter().map(|left| (&left.finding, Some(format!("needs {}", left.needs))));
            lines.extend(self.findings(&plan.release, left, Becomes::Kept));
        }
        if !plan.collateral.is_empty() {
            let mut line = Line::new();
            let (color, words) =
                if plan.resets { (ALARM, "is reset with it, though expected or ignored") } else { (DIM, "is kept") };
            line.blanks(2).push(color, words);
            lines.push(line);
            let collateral = plan.collateral.iter().map(|finding| (finding, Some(why(finding))));
            let becomes = if plan.resets { Becomes::Desired { bare: false } } else { Becomes::Kept };
            lines.extend(self.findings(&plan.release, collateral, becomes));
        }
        lines.extend(plan.notes.iter().flat_map(|note| self.indented(2, note)));
        lines
    }

    fn step_title(&self, plan: &Plan, action: &Action) -> Line {
        let mut line = Line::new();
        line.blanks(2).push(CYAN, action.word());
        let about = match action {
            Action::Upgrade => {
                format!(": an atomic helm upgrade to the manifest of revision {}{}", plan.judged, hooks(plan))
            }
            Action::Reapply => format!(": helm rollback to revision {}{}", plan.judged, hooks(plan)),
            Action::Recreate { object, lost } => {
                format!(" {}: deleted and created again; what is lost: {lost}", named(&plan.release, object))
            }
            Action::Patch(object) | Action::Create(object) | Action::RemoveAdded(object) => {
                format!(" {}", named(&plan.release, object))
            }
        };
        line.push(PLAIN, &about);
        line
    }

    /// One line each.
    fn findings<'f>(
        &self,
        release: &ReleaseKey,
        findings: impl Iterator<Item = (&'f Finding, Option<String>)>,
        becomes: Becomes,
    ) -> Vec<Line> {
        let bare = becomes == (Becomes::Desired { bare: true });
        let rows: Vec<(&Finding, Option<String>)> = findings.collect();
        let place = |finding: &Finding| {
            let path = finding.path.as_ref().map(ToString::to_string);
            match (bare, path) {
                (true, Some(path)) => path,
                (true, None) => whole(finding.change).to_owned(),
                (false, Some(path)) => format!("{} {path}", named(release, &finding.object)),
                (false, None) => format!("{} {}", named(release, &finding.object), whole(finding.change)),
            }
        };
        const ALIGNED: usize = 80;
        let column = rows.iter().map(|(finding, _)| width(&place(finding))).filter(|wide| *wide <= ALIGNED).max();
        let column = 6 + column.unwrap_or(0) + GAP;
        let mut lines = Vec::new();
        for (finding, about) in rows {
            let (mark, color) = mark(finding.change);
            let mut line = Line::new();
            line.blanks(4).push(color, mark).push(PLAIN, " ").push(PLAIN, &place(finding));
            if finding.path.is_some() {
                let room = self.style.width.map_or(usize::MAX, |terminal| terminal.saturating_sub(column).max(20));
                let pair = Pair::new(&finding.live, &finding.desired).fit(room);
                line.pad_to(column).push(DIM, &pair.place).push(PLAIN, &pair.desired);
                if becomes != Becomes::Kept {
                    line.push(DIM, ARROW).push(BOLD, &pair.live);
                }
                if let Some(hint) = &pair.hint {
                    line.push(DIM, &format!(" ({hint})"));
                }
            }
            lines.push(line);
            lines.extend(about.iter().filter(|about| !about.is_empty()).flat_map(|about| self.indented(6, about)));
        }
        lines
    }

    fn indented(&self, indent: usize, text: &str) -> Vec<Line> {
        text::indented(self.style, indent, PLAIN, text)
    }

    fn alarming(&self, indent: usize, what: &str) -> Vec<Line> {
        const FIGHT: &str = "a fight: ";
        let room = self.style.width.map(|terminal| terminal.saturating_sub(indent));
        let lines = wrap(&format!("{FIGHT}{what}"), room).into_iter().enumerate().map(|(number, text)| {
            let mut line = Line::new();
            line.blanks(indent);
            match text.strip_prefix(FIGHT).filter(|_| number == 0) {
                Some(rest) => line.push(ALARM, FIGHT).push(PLAIN, rest),
                None => line.push(PLAIN, &text),
            };
            line
        });
        lines.collect()
    }

    fn outcome(&self, outcome: &Outcome) -> Vec<Line> {
        let mut lines = vec![Line::new()];
        for step in &outcome.steps {
            lines.push(self.step(step, outcome.steps.iter().any(|other| other.release != step.release)));
            if let StepResult::Failed(why) | StepResult::Skipped(why) = &step.result {
                lines.extend(self.indented(4, why));
            }
        }
        for back in &outcome.back {
            let path = back.path.as_deref().map(|path| format!(" {path}")).unwrap_or_default();
            let what = match &back.writer {
                Some(writer) => format!("{writer} has set {}{path} again already; stop that first", back.object),
                None => {
                    format!("{}{path} is not what it was set to: something changes it while it is written", back.object)
                }
            };
            lines.extend(self.alarming(0, &what));
        }
        lines.push(Line::new());
        lines
    }

    fn step(&self, step: &StepOutcome, several: bool) -> Line {
        let (color, word, about) = match &step.result {
            StepResult::Done(about) => (GREEN, "done   ", about.as_deref().unwrap_or_default()),
            StepResult::Failed(_) => (RED, "failed ", ""),
            StepResult::Skipped(_) => (YELLOW, "skipped", ""),
        };
        let mut line = Line::new();
        line.push(color, word).push(PLAIN, " ").push(PLAIN, step.action.word());
        if let Some(object) = step.action.object() {
            line.push(PLAIN, &format!(" {}", named(&step.release, object)));
        }
        if several {
            line.push(PLAIN, &format!(" of {}/{}", step.release.namespace, step.release.name));
        }
        line.push(DIM, &format!(" ({})", count(step.findings.len(), "finding")));
        if !about.is_empty() {
            line.push(PLAIN, &format!(": {about}"));
        }
        line
    }
}

fn hooks(plan: &Plan) -> String {
    if plan.hooks.is_empty() {
        return String::new();
    }
    let runs = plan.runs_hooks && plan.method == Method::Upgrade;
    format!("; hooks are {}run: {}", if runs { "" } else { "not " }, plan.hooks.join(", "))
}

/// With the namespace, where it is not the release's.
fn named(release: &ReleaseKey, object: &ObjectRef) -> String {
    match object.namespace.as_deref().filter(|namespace| *namespace != release.namespace) {
        Some(namespace) => format!("{object} in {namespace}"),
        None => object.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample::{self, style};

    fn plan(width: Option<usize>) -> String {
        let mut out = Vec::new();
        let report = sample::outcome().report;
        Paper::new(&mut out, PlanFormat::Table, style(width))
            .plan(&report, &sample::planned(), Some("x.drift"))
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_plan_says_what_becomes_of_everything() {
        let expected = "\
prod/nucleus, back to revision 12, on https://10.0.0.1:6443 (context prod)
  a fight: queue-tuner has set Queue/orders .spec.depth again since it was corrected at 2026-11-30T10:00:00Z; stop that first
  recreate RoleBinding/api: deleted and created again; what is lost: its rights for a moment
    ~ .roleRef.name   admin → viewer
  upgrade: an atomic helm upgrade to the manifest of revision 12; hooks are not run: pre-upgrade Job/migrate
    ~ Deployment/api .spec.template.spec.containers[name=\"api\"].image   api:2 → api:1
    ! ConfigMap/features missing
  patch Queue/orders
    ~ .spec.depth   500 → 100
  remove-added Service/api
    + .metadata.labels.team   x → <none>
  stays as it is
    + Deployment/api .spec.paused   true
      needs --remove-added
  is reset with it, though expected or ignored
    ~ Deployment/api .spec.replicas   12 → 3
      expected: autoscaler
  a re-apply is not atomic

prod/worker: not corrected
  it is suspended: take the label helm-drift/suspend off the release, or `suspended: true` out of the configuration

prod/quiet: nothing to correct

evidence goes to x.drift
";
        assert_eq!(plan(None), expected);
    }

    #[test]
    fn an_outcome_says_what_was_done_and_what_was_not() {
        let mut out = Vec::new();
        Paper::new(&mut out, PlanFormat::Table, style(None)).outcome(&sample::outcome()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "
done    recreate RoleBinding/api (1 finding)
failed  upgrade (2 findings)
    no revision was made, revision 12 is still deployed
skipped patch Queue/orders (1 finding)
    helm did not succeed
skipped remove-added Service/api (1 finding)
    helm did not succeed
a fight: role-keeper has set RoleBinding/api .roleRef.name again already; stop that first

NAME ";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_narrow_terminal_is_not_overrun_by_sentences() {
        let text = plan(Some(60));
        assert!(
            text.contains("\n  it is suspended: take the label helm-drift/suspend off the\n  release, or"),
            "{text}"
        );
    }
}
