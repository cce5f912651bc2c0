//! A history of revisions, as `helm history` prints it with one column more, and as JSON and YAML. Knows nothing of reports.

use std::io::{self, Write};

use serde::Serialize;

use crate::config::Format;
use crate::drift::distance::{HistoryReport, Revision};

use super::json::{self, JsonCluster, JsonError, JsonNotice};
use super::line::{CYAN, GREEN, Line, PLAIN, YELLOW};
use super::text::{Cell, Table};
use super::value::NONE;
use super::{Style, words};

pub(crate) fn history(out: &mut dyn Write, style: &Style, report: &HistoryReport) -> io::Result<()> {
    match style.format {
        Format::Json => json::write(out, &DriftHistory::new(report)),
        Format::Yaml => json::write_yaml(out, &DriftHistory::new(report)),
        Format::Table | Format::Wide | Format::Diff | Format::Name => table(out, style, report),
    }
}

const DESCRIPTION: &str = "DESCRIPTION";

fn table(out: &mut dyn Write, style: &Style, report: &HistoryReport) -> io::Result<()> {
    let rows = report.revisions.iter().map(cells).collect();
    for line in Table::of(style, rows, DESCRIPTION).lines {
        line.write(out, style.color)?;
    }
    if let Some(message) = report.message().filter(|_| !style.quiet) {
        out.write_all(b"\n")?;
        Line::new().push(PLAIN, &message).write(out, style.color)?;
    }
    Ok(())
}

fn cells(revision: &Revision) -> Vec<Cell> {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| NONE.to_owned());
    let (differences, color) = match (revision.differences, revision.unverified) {
        (Some(0), 0) => ("0".to_owned(), GREEN),
        (Some(count), 0) => (count.to_string(), if revision.current { YELLOW } else { PLAIN }),
        (Some(count), unread) => (format!("{count}, {} not told", words::count(unread, "object")), CYAN),
        (None, _) => ("not told".to_owned(), CYAN),
    };
    let cell = |header, text, color| Cell { header, text, color };
    vec![
        cell("REVISION", revision.revision.to_string(), PLAIN),
        cell("UPDATED", revision.updated.map_or_else(|| NONE.to_owned(), json::rfc3339), PLAIN),
        cell("STATUS", text(&revision.status), PLAIN),
        cell("CHART", text(&revision.chart), PLAIN),
        cell("APP VERSION", text(&revision.app_version), PLAIN),
        cell(DESCRIPTION, text(&revision.description), PLAIN),
        cell("DIFFERENCES", differences, color),
    ]
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DriftHistory<'a> {
    api_version: &'static str,
    kind: &'static str,
    program: &'static str,
    cluster: JsonCluster<'a>,
    started_at: String,
    finished_at: String,
    name: &'a str,
    namespace: &'a str,
    storage: &'static str,
    /// The revision that a check judges.
    current: Option<u64>,
    /// Revisions that the live state is exactly like.
    fitting: Vec<u64>,
    message: Option<String>,
    revisions: Vec<JsonRevision<'a>>,
    notices: Vec<JsonNotice<'a>>,
    errors: Vec<JsonError<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRevision<'a> {
    revision: u64,
    updated: Option<String>,
    status: Option<&'a str>,
    chart: Option<&'a str>,
    app_version: Option<&'a str>,
    description: Option<&'a str>,
    current: bool,
    differences: Option<usize>,
    unverified: usize,
}

impl<'a> DriftHistory<'a> {
    fn new(report: &'a HistoryReport) -> Self {
        Self {
            api_version: json::API_VERSION,
            kind: "DriftHistory",
            program: env!("CARGO_PKG_VERSION"),
            cluster: JsonCluster::new(&report.cluster),
            started_at: json::rfc3339(report.started_at),
            finished_at: json::rfc3339(report.finished_at),
            name: &report.release.name,
            namespace: &report.release.namespace,
            storage: json::storage(report.storage),
            current: report.revisions.iter().find(|one| one.current).map(|one| one.revision),
            fitting: report.fitting(),
            message: report.message(),
            revisions: report.revisions.iter().map(JsonRevision::new).collect(),
            notices: report.notices.iter().map(JsonNotice::new).collect(),
            errors: report.errors.iter().map(JsonError::new).collect(),
        }
    }
}

impl<'a> JsonRevision<'a> {
    fn new(revision: &'a Revision) -> Self {
        Self {
            revision: revision.revision,
            updated: revision.updated.map(json::rfc3339),
            status: revision.status.as_deref(),
            chart: revision.chart.as_deref(),
            app_version: revision.app_version.as_deref(),
            description: revision.description.as_deref(),
            current: revision.current,
            differences: revision.differences,
            unverified: revision.unverified,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{contract, sample};
    use super::*;
    use crate::drift::distance::tests::report;
    use serde_json::Value;

    fn printed(format: Format, width: Option<usize>, report: &HistoryReport) -> String {
        let style = Style { format, ..sample::style(width) };
        let mut out = Vec::new();
        history(&mut out, &style, report).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_history_is_helms_with_one_column_more() {
        let mut history = report("9=? 10=2 11=0 12=1*");
        history.revisions[1].unverified = 1;
        assert_eq!(
            printed(Format::Table, None, &history),
            "\
REVISION   UPDATED                STATUS       CHART           APP VERSION   DESCRIPTION        DIFFERENCES
9          2026-11-30T10:00:00Z   superseded   nucleus-1.4.2   <none>        Upgrade complete   not told
10         2026-11-30T10:00:00Z   superseded   nucleus-1.4.2   <none>        Upgrade complete   2, 1 object not told
11         2026-11-30T10:00:00Z   superseded   nucleus-1.4.2   <none>        Upgrade complete   0
12         2026-11-30T10:00:00Z   deployed     nucleus-1.4.2   <none>        Upgrade complete   1

the live state is as in revision 11, but revision 12 is current: rolled back by hand?
"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_description() {
        let mut history = report("1=0*");
        history.revisions[0].description = Some("a very long description that says what happened".into());
        let text = printed(Format::Table, Some(110), &history);
        assert!(text.lines().take(2).all(|line| line.chars().count() <= 110), "{text}");
        assert!(text.contains("a very long d"), "{text}");
    }

    #[test]
    fn json_and_yaml_say_the_same() {
        let mut history = report("11=0 12=1*");
        history.revisions[0].description = Some("\u{1b}[2J".into());
        let json: Value = serde_json::from_str(&printed(Format::Json, None, &history)).unwrap();
        let yaml: Value = serde_saphyr::from_str(&printed(Format::Yaml, None, &history)).unwrap();
        assert_eq!(json, yaml);
        assert_eq!(contract::errors(&json), [""; 0]);
        assert!(!printed(Format::Yaml, None, &history).contains('\u{1b}'));
        assert_eq!(
            (&json["kind"], &json["current"], &json["fitting"], &json["revisions"][1]["differences"]),
            (&"DriftHistory".into(), &12.into(), &vec![11].into(), &1.into())
        );
    }
}
