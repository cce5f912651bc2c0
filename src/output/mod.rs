//! What people and pipes see: a report on stdout in the format asked for, trouble and progress on stderr.

#[cfg(test)]
mod contract;
mod diff;
mod escape;
mod group;
mod history;
mod json;
mod line;
mod name;
mod plan;
mod plan_json;
mod progress;
pub(crate) mod rules;
#[cfg(test)]
mod sample;
pub(crate) mod text;
mod value;
mod words;
mod yaml;

use std::io::{self, Write};

use jiff::Timestamp;

use crate::config::Format;
use crate::drift::distance::HistoryReport;
use crate::drift::finding::{Report, Trouble};

pub(crate) use plan::Paper;
pub(crate) use progress::Progress;

/// How to print; settled by the caller, who alone knows flags, environment and terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) format: Format,
    /// Also expected and ignored findings, all notices, and what was not compared. JSON and YAML hold all findings and notices anyway.
    pub(crate) show_all: bool,
    pub(crate) color: bool,
    /// Columns of the terminal; `None` when stdout is none: then nothing is cut.
    pub(crate) width: Option<usize>,
    /// What ages are counted from: the clock, or the time of a capture.
    pub(crate) now: Timestamp,
    pub(crate) all_namespaces: bool,
    /// The table without the counts below it.
    pub(crate) quiet: bool,
}

/// Writes results to `out`. An error is the writer's own; whether a broken pipe is one is for the caller to say.
pub(crate) struct Printer<'a> {
    out: &'a mut dyn Write,
    style: Style,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, style: Style) -> Self {
        Self { out, style }
    }

    /// The whole report, flushed; `errors` are in it for JSON and YAML only, see [`Printer::troubles`].
    pub(crate) fn report(&mut self, report: &Report) -> io::Result<()> {
        let out = &mut *self.out;
        match self.style.format {
            Format::Table | Format::Wide => text::report(out, &self.style, report)?,
            Format::Diff => diff::report(out, &self.style, report)?,
            Format::Json => json::report(out, report)?,
            Format::Yaml => json::report_yaml(out, report)?,
            Format::Name => name::report(out, report)?,
        }
        out.flush()
    }

    /// The revisions of a release, flushed; as a table where the format is neither JSON nor YAML.
    pub(crate) fn history(&mut self, report: &HistoryReport) -> io::Result<()> {
        history::history(&mut *self.out, &self.style, report)?;
        self.out.flush()
    }

    /// One line for each thing that could not be told, on stderr whatever the format; `color` as stderr bears it.
    pub(crate) fn troubles(&self, err: &mut dyn Write, color: bool, troubles: &[Trouble]) -> io::Result<()> {
        text::troubles(err, color, troubles)?;
        err.flush()
    }
}
