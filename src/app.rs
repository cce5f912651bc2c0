//! The flow: connect, survey, print. Knows neither the command line nor the environment.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::cluster::bundle::{About, Bundle, Existing, Recorder};
use crate::cluster::client::Client;
use crate::complete::Question;
use crate::config::{Command, Config, Engine, Manual, Namespaces};
use crate::correct::correct;
use crate::drift::finding::Report;
use crate::drift::rules::Hit;
use crate::error::Error;
use crate::inspector::Inspector;
use crate::links::{self, Place};
use crate::man;
use crate::output::{Printer, Progress, Style, rules, text};
use crate::suggest::candidates;
use crate::survey::{history, survey};
use crate::sweep::sweep;

/// One check, diff, capture or check of the configuration; gives the exit code.
pub(crate) async fn run(config: &Config, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Error> {
    match &config.command {
        Command::Capture { to, include_secrets } => capture(config, to, *include_secrets, err).await,
        Command::Complete(question) => complete(config, question, out).await,
        Command::ConfigCheck { file, offline } => config_check(config, file, *offline, out, err).await,
        Command::History => past(config, out, err).await,
        Command::Correct(options) => correct(config, options, out, err).await,
        Command::Check
        | Command::Diff
        | Command::Completion(_)
        | Command::Manual(_)
        | Command::InstallKubectl(_)
        | Command::Version => check(config, out, err).await,
    }
}

async fn check(config: &Config, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Error> {
    let (client, now) = answers(config).await?;
    let (mut report, _) = survey_with(config, client, now).await;
    print(config, now, &mut report, out, err)
}

/// Where answers come from, and what time it is there.
async fn answers(config: &Config) -> Result<(Client, Timestamp), Error> {
    match &config.from {
        Some(file) => {
            let bundle = Bundle::open(file)?;
            let time = bundle.time();
            Ok((Client::replay(bundle), time))
        }
        None => Ok((Client::connect(&config.target).await?, Timestamp::now())),
    }
}

/// The revisions of one release beside the live state.
async fn past(config: &Config, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Error> {
    let (client, now) = answers(config).await?;
    let cluster = Cluster::new(client, config.target.cache.clone(), config.target.parallel);
    let progress = Progress::new(config.output.progress);
    let inspector = Inspector { cluster: &cluster, engine: Engine::Local, progress: &progress, keep: false };
    let mut report = history(&inspector, config, now).await;
    progress.finish();
    tracing::debug!(requests = cluster.client().requests(), "done");
    if cluster.client().is_live() {
        report.finished_at = Timestamp::now();
    }
    let mut printer = Printer::new(out, style(config, now));
    printer.history(&report).map_err(Error::Output)?;
    printer.troubles(err, config.output.color_stderr, &report.errors).map_err(Error::Output)?;
    Ok(report.exit_code())
}

/// The file is valid, or there were no configuration. 0 once it is known what its rules cover, however little that is.
async fn config_check(
    config: &Config,
    file: &Path,
    offline: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Error> {
    rules::valid(out, file, &config.settings).map_err(Error::Output)?;
    if offline || config.settings.rules.ignore.is_empty() {
        return Ok(0);
    }
    // Validity is known, whatever becomes of the rest.
    out.flush().map_err(Error::Output)?;
    let (client, now) = answers(config).await?;
    let (report, hits) = survey_with(config, client, now).await;
    rules::coverage(out, &config.settings.rules.ignore, &hits, now).map_err(Error::Output)?;
    text::troubles(err, config.output.color_stderr, &report.errors).map_err(Error::Output)?;
    let unread = report.releases.iter().filter(|release| release.exit == 2).count();
    if unread > 0 && !config.output.quiet {
        writeln!(err, "of {unread} releases not everything could be read").map_err(Error::Output)?;
    }
    Ok(if report.errors.is_empty() && unread == 0 { 0 } else { 2 })
}

/// The same check, with every answer kept. 0: the evidence is whole, whatever it shows.
async fn capture(config: &Config, to: &Path, include_secrets: bool, err: &mut dyn Write) -> Result<u8, Error> {
    let recorder = Recorder::new(include_secrets, &config.settings.rules.sensitive)?;
    let client = Client::connect(&config.target).await?.record(recorder.clone());
    let (now, namespace) = (Timestamp::now(), client.default_namespace().to_owned());
    let (report, _) = survey_with(config, client, now).await;
    text::troubles(err, config.output.color_stderr, &report.errors).map_err(Error::Output)?;
    if !report.errors.is_empty() {
        return Ok(2);
    }
    recorder.save(
        to,
        &About { program: env!("CARGO_PKG_VERSION").to_owned(), time: now, cluster: report.cluster, namespace },
        Existing::Replaced,
    )?;
    if !config.output.quiet {
        let count = report.releases.len();
        let what = if count == 1 { "release" } else { "releases" };
        writeln!(err, "captured {count} {what} in {}", to.display()).map_err(Error::Output)?;
    }
    Ok(0)
}

async fn survey_with(config: &Config, client: Client, now: Timestamp) -> (Report, Vec<Hit>) {
    let cluster = Cluster::new(client, config.target.cache.clone(), config.target.parallel);
    let progress = Progress::new(config.output.progress);
    let inspector = Inspector { cluster: &cluster, engine: config.engine, progress: &progress, keep: false };
    let (mut report, hits) = match &config.files {
        Some(files) => {
            let namespace = match &config.scope.namespaces {
                Namespaces::One(Some(namespace)) => namespace,
                Namespaces::One(None) | Namespaces::All => cluster.client().default_namespace(),
            };
            (sweep(&inspector, files, namespace, &config.settings.rules, now).await, Vec::new())
        }
        None => survey(&inspector, config, now).await,
    };
    progress.finish();
    tracing::debug!(requests = cluster.client().requests(), "done");
    if cluster.client().is_live() {
        report.finished_at = Timestamp::now();
    }
    (report, hits)
}

/// Prints what is asked for; the exit code follows what is shown.
fn print(
    config: &Config,
    now: Timestamp,
    report: &mut Report,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Error> {
    let hidden = match config.output.status {
        Some(status) => {
            let before = report.releases.len();
            report.releases.retain(|release| status.keeps(release));
            before - report.releases.len()
        }
        None => 0,
    };
    let mut printer = Printer::new(out, style(config, now));
    printer.report(report).map_err(Error::Output)?;
    printer.troubles(err, config.output.color_stderr, &report.errors).map_err(Error::Output)?;
    if report.releases.is_empty() && report.errors.is_empty() && !config.output.quiet {
        let line = match hidden {
            0 => "no releases found",
            _ => "no release has that status",
        };
        writeln!(err, "{line}").map_err(Error::Output)?;
    }
    Ok(report.exit_code())
}

fn style(config: &Config, now: Timestamp) -> Style {
    Style {
        format: config.output.format,
        show_all: config.output.show_all,
        color: config.output.color,
        width: config.output.width,
        now,
        all_namespaces: config.scope.namespaces == Namespaces::All,
        quiet: config.output.quiet,
    }
}

/// All that completion may take: a shell that hangs is worse than one that offers nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// Always 0, and silent: what cannot be asked is not offered.
async fn complete(config: &Config, question: &Question, out: &mut dyn Write) -> Result<u8, Error> {
    let asked = match &question.ask {
        Some(ask) => tokio::time::timeout(PATIENCE, candidates(config, ask)).await.ok().flatten(),
        None => None,
    };
    out.write_all(question.answer(asked.unwrap_or_default()).as_bytes()).map_err(Error::Output)?;
    Ok(0)
}

/// Prints one page of the manual, or writes all.
pub(crate) fn manual(manual: &Manual, out: &mut dyn Write) -> Result<u8, Error> {
    let pages = man::pages().map_err(Error::Output)?;
    match manual {
        Manual::Page(name) => {
            for page in pages.iter().filter(|page| page.name == *name) {
                out.write_all(&page.text).map_err(Error::Output)?;
            }
        }
        Manual::All(directory) => {
            let failed = |file: &Path| {
                let file = file.display().to_string();
                move |source| Error::Manual { file, source }
            };
            std::fs::create_dir_all(directory).map_err(failed(directory))?;
            for page in pages {
                let file = directory.join(page.file_name());
                std::fs::write(&file, &page.text).map_err(failed(&file))?;
                writeln!(out, "{}", file.display()).map_err(Error::Output)?;
            }
        }
    }
    Ok(0)
}

/// Makes the links by which kubectl finds this program.
pub(crate) fn install_kubectl(place: &Place, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Error> {
    let installed = links::install(place)?;
    for (link, target) in &installed.links {
        writeln!(out, "{} -> {}", link.display(), target.display()).map_err(Error::Output)?;
    }
    for warning in &installed.warnings {
        writeln!(err, "warning: {warning}").map_err(Error::Output)?;
    }
    Ok(0)
}
