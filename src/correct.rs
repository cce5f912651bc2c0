//! The flow of a correction: check, plan, consent, a second look, evidence, act, check again (design.md §11). Nothing is changed before
//! somebody agreed to the plan, and what was there before is kept.

mod act;
mod change;
mod ground;
mod journal;
mod rehearsal;
mod run;

use std::fs;
use std::io::{self, BufRead as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::cluster::bundle::{About, CaptureError, Existing, Recorder};
use crate::cluster::client::Client;
use crate::config::{Config, Consent, Correct, Evidence, PlanFormat};
use crate::drift::finding::{Fix, NoticeReason, Report};
use crate::drift::outcome::{self, Outcome, Planned};
use crate::drift::plan::Named;
use crate::error::Error;
use crate::interrupt::Interrupts;
use crate::output::{Paper, Progress};

use run::{Prepared, Run};

/// How often a plan is made anew because the release moved under it, before that is given up.
const PLANS: usize = 3;

/// A controller that wants something else sets it back at once: the last check comes after that.
const SETTLING: Duration = Duration::from_secs(1);

/// Corrects releases; gives the exit code.
pub(crate) async fn correct(
    config: &Config,
    options: &Correct,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Error> {
    if let Evidence::File(file) = &options.evidence
        && file.exists()
    {
        let reason = "it exists already".to_owned();
        return Err(Error::Evidence(CaptureError::Write { file: file.display().to_string(), reason }));
    }
    let mut interrupts = Interrupts::listen().map_err(Error::Threads)?;
    let client = Client::connect(&config.target).await?;
    let progress = Progress::new(config.output.progress);
    let cluster = Cluster::new(client.clone(), config.target.cache.clone(), config.target.parallel);
    let run = Run::new(config, options, &progress, interrupts.clone()).await;
    let prepared = tokio::select! {
        prepared = prepare(&run, &cluster, &client, out, err) => prepared?,
        _ = interrupts.next() => return Err(Error::Interrupted),
    };
    let Ready { prepared, evidence } = match prepared {
        Preparation::Ready(ready) => *ready,
        Preparation::Ended(code) => return Ok(code),
    };
    let planned = prepared.planned.clone();
    let steps = run.carry_out(&cluster, prepared).await;
    tokio::time::sleep(SETTLING).await;
    let report = run.look_patiently(&cluster, config).await.report;
    progress.finish();
    if let Some(file) = &options.journal
        && let Err(error) = journal::add(file, cluster.client().server(), &steps, Timestamp::now())
    {
        tracing::warn!(file = %file.display(), %error, "what was corrected cannot be remembered");
    }
    let outcome = Outcome {
        planned,
        evidence: evidence.map(|file| file.display().to_string()),
        back: outcome::back(&steps, &report),
        steps,
        report,
    };
    run.paper(out, config.output.color).outcome(&outcome).map_err(Error::Output)?;
    run.paper(err, config.output.color_stderr).troubles(&outcome.report.errors).map_err(Error::Output)?;
    Ok(outcome.exit_code())
}

enum Preparation {
    Ready(Box<Ready>),
    /// There is nothing to do, or nothing may be done; the exit code.
    Ended(u8),
}

/// Agreed to, looked at twice, and what was there before is kept.
struct Ready {
    prepared: Prepared,
    evidence: Option<PathBuf>,
}

/// Everything before the first change. Changes nothing itself.
async fn prepare(
    run: &Run<'_>,
    cluster: &Cluster,
    client: &Client,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Preparation, Error> {
    let mut prepared = run.prepare(cluster, None).await;
    run.progress.finish();
    if let Some(code) = cannot_begin(run, &prepared, err)? {
        return Ok(Preparation::Ended(code));
    }
    // Whether Flux runs a release is a reason to leave it alone.
    for notice in prepared.report.notices.iter().filter(|notice| notice.reason == NoticeReason::LookupForbidden) {
        say(err, &format!("note: {}", notice.message))?;
    }
    for _ in 0..PLANS {
        let refused = prepared.planned.iter().any(Planned::is_refused);
        let verdict = if refused { 2 } else { prepared.report.exit_code() };
        let has_steps = prepared.planned.iter().filter_map(Planned::plan).any(|plan| !plan.steps.is_empty());
        let mut place = evidence_place(run.options, &prepared).filter(|_| has_steps);
        // A document of the plan ends the run, where nothing is done.
        let shows_end = matches!(run.options.consent, Consent::DryRun | Consent::Missing) || !has_steps;
        run.show_plan(&prepared, place.as_deref(), shows_end, out, err)?;
        match run.options.consent {
            _ if !has_steps => return Ok(Preparation::Ended(verdict)),
            Consent::DryRun => return Ok(Preparation::Ended(verdict)),
            Consent::Missing => {
                say(err, "nothing was changed: --yes agrees to the plan where there is no terminal to ask on")?;
                return Ok(Preparation::Ended(verdict));
            }
            Consent::Ask if !ask(err).await? => {
                say(err, "nothing was changed")?;
                if run.options.format != PlanFormat::Table {
                    run.show_plan(&prepared, place.as_deref(), true, out, err)?;
                }
                return Ok(Preparation::Ended(verdict));
            }
            Consent::Ask | Consent::Given => {}
        }
        if run.options.evidence == Evidence::Nowhere {
            return Err(Error::NoEvidencePlace);
        }
        // The second look is what is kept as evidence: the state right before anything changes.
        let recorder = Recorder::new(run.options.include_secrets, &run.config.settings.rules.sensitive)?;
        let recorded = Cluster::new(client.clone().record(recorder.clone()), None, run.config.target.parallel);
        let again = run.prepare(&recorded, Some(&prepared)).await;
        run.progress.finish();
        if let Some(code) = cannot_begin(run, &again, err)? {
            return Ok(Preparation::Ended(code));
        }
        let is_as = |(one, again): (&Planned, &Planned)| one.is_as(again);
        if again.planned.len() == prepared.planned.len() && again.planned.iter().zip(&prepared.planned).all(is_as) {
            if let Some(file) = &place {
                let about = About {
                    program: env!("CARGO_PKG_VERSION").to_owned(),
                    time: Timestamp::now(),
                    cluster: again.report.cluster.clone(),
                    namespace: recorded.client().default_namespace().to_owned(),
                };
                place = Some(run.keep(&recorder, file, &about)?);
            }
            return Ok(Preparation::Ready(Box::new(Ready { prepared: again, evidence: place })));
        }
        say(err, "something moved meanwhile; the plan is now:")?;
        prepared = again;
    }
    Err(Error::KeepsMoving)
}

/// Trouble that leaves no verdict, or nothing that could be corrected.
fn cannot_begin(run: &Run<'_>, prepared: &Prepared, err: &mut dyn Write) -> Result<Option<u8>, Error> {
    if !prepared.report.errors.is_empty() {
        run.paper(err, run.config.output.color_stderr).troubles(&prepared.report.errors).map_err(Error::Output)?;
        return Ok(Some(2));
    }
    if prepared.planned.is_empty() {
        let line = if prepared.report.releases.is_empty() {
            "no releases found"
        } else {
            "no release is set to mode correct: name the one to correct"
        };
        say(err, line)?;
        return Ok(Some(prepared.report.exit_code()));
    }
    if let Some(named) = unused(&run.options.wishes.recreate, prepared) {
        return Err(Error::NothingToRecreate(named.to_string()));
    }
    Ok(None)
}

/// An object that was to be recreated and has nothing that needs it.
fn unused<'n>(recreate: &'n [Named], prepared: &Prepared) -> Option<&'n Named> {
    let plans = || prepared.planned.iter().filter_map(Planned::plan);
    let planned = || plans().flat_map(|plan| &plan.steps).flat_map(|step| &step.findings);
    let left = || plans().flat_map(|plan| &plan.left).map(|left| &left.finding);
    let refused = prepared.planned.iter().any(Planned::is_refused);
    let needs = |named: &Named| {
        planned().chain(left()).any(|finding| finding.fix == Fix::Recreate && named.names(&finding.object))
    };
    recreate.iter().find(|named| !refused && !needs(named))
}

fn say(err: &mut dyn Write, line: &str) -> Result<(), Error> {
    writeln!(err, "{line}").map_err(Error::Output)
}

async fn ask(err: &mut dyn Write) -> Result<bool, Error> {
    write!(err, "Carry this out? [y/N] ").and_then(|()| err.flush()).map_err(Error::Output)?;
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let answer = answer.await.ok().and_then(Result::ok).unwrap_or_default();
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The file that will hold what was there before.
fn evidence_place(options: &Correct, prepared: &Prepared) -> Option<PathBuf> {
    match &options.evidence {
        Evidence::None | Evidence::Nowhere => None,
        Evidence::File(file) => Some(file.clone()),
        Evidence::Directory(directory) => {
            let time = prepared.report.started_at.strftime("%Y%m%dT%H%M%SZ");
            let corrected: Vec<&Planned> = prepared.planned.iter().filter(|one| one.plan().is_some()).collect();
            let what = match corrected.as_slice() {
                [one] => format!("{}-{}", one.release.namespace, one.release.name),
                several => format!("{}-releases", several.len()),
            };
            Some(directory.join(format!("{time}-{what}.drift")))
        }
    }
}

/// `x.drift`, `x-2.drift`, `x-3.drift`.
fn numbered(file: &Path, number: usize) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    if number == 1 { file.to_owned() } else { file.with_file_name(format!("{stem}-{number}.drift")) }
}

/// With its parents, for its owner alone.
fn private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

impl Run<'_> {
    /// Writes the evidence, and gives the file that it is in: evidence never replaces anything.
    fn keep(&self, recorder: &Recorder, file: &Path, about: &About) -> Result<PathBuf, Error> {
        let unwritable = |file: &Path, error: io::Error| {
            Error::Evidence(CaptureError::Write { file: file.display().to_string(), reason: error.to_string() })
        };
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists());
        if let Some(directory) = parent {
            private_directory(directory).map_err(|error| unwritable(file, error))?;
        }
        // Of two runs in one second each gets its own.
        let own = match &self.options.evidence {
            Evidence::Directory(_) => (1..).map(|number| numbered(file, number)).find(|file| !file.exists()),
            Evidence::File(_) | Evidence::None | Evidence::Nowhere => None,
        };
        let file = own.unwrap_or_else(|| file.to_owned());
        recorder.save(&file, about, Existing::Kept).map_err(Error::Evidence)?;
        Ok(file)
    }

    fn paper<'a>(&self, to: &'a mut dyn Write, color: bool) -> Paper<'a> {
        Paper::new(to, self.options.format, self.style(color))
    }

    /// The plan goes to stdout, unless that is for one document at the end.
    fn show_plan(
        &self,
        prepared: &Prepared,
        evidence: Option<&Path>,
        is_all: bool,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(), Error> {
        let evidence = evidence.map(|file| file.display().to_string());
        let report: &Report = &prepared.report;
        let evidence = evidence.as_deref();
        let shown = match self.options.format {
            PlanFormat::Table => self.paper(out, self.config.output.color).plan(report, &prepared.planned, evidence),
            _ if is_all => self.paper(out, false).plan(report, &prepared.planned, evidence),
            _ if self.config.output.quiet => Ok(()),
            _ => Paper::new(err, PlanFormat::Table, self.style(self.config.output.color_stderr)).plan(
                report,
                &prepared.planned,
                evidence,
            ),
        };
        shown.map_err(Error::Output)
    }
}
