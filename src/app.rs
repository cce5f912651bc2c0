//! The flow: connect, survey, print. Knows neither the command line nor the environment.

use std::io::Write;

use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::cluster::client::Client;
use crate::config::{Config, Namespaces};
use crate::drift::finding::Report;
use crate::error::Error;
use crate::output::{Printer, Progress, Style};
use crate::survey::survey;

/// One check, diff or capture; gives the exit code.
pub(crate) async fn run(config: &Config, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Error> {
    let now = Timestamp::now();
    let client = Client::connect(&config.target).await?;
    let cluster = Cluster::new(client, config.target.cache.clone(), config.target.parallel);
    let progress = Progress::new(config.output.progress);
    let mut report = survey(&cluster, &config.scope, config.output.show_all, now, &progress).await;
    progress.finish();
    tracing::debug!(requests = cluster.client().requests(), "done");
    report.finished_at = Timestamp::now();
    print(config, now, &mut report, out, err)
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
    let style = Style {
        format: config.output.format,
        show_all: config.output.show_all,
        color: config.output.color,
        width: config.output.width,
        now,
        all_namespaces: config.scope.namespaces == Namespaces::All,
        quiet: config.output.quiet,
    };
    let mut printer = Printer::new(out, style);
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
