//! The table of releases and, below it, what differs: for a person who has just been woken up. Knows nothing of why.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style as Color;
use serde_json::{Map, Value};

use crate::config::Format;
use crate::drift::finding::{
    Condition, Finding, Notice, NoticeReason, ObjectCounts, Reason, ReleaseReport, Report, Severity, Shown, Trouble,
    Verdict,
};
use crate::drift::object::{FieldPath, ObjectRef, Segment};

use super::group::{ByObject, in_order};
use super::line::{ALARM, BOLD, CYAN, DIM, GAP, GREEN, Line, PLAIN, RED, YELLOW, cut_end, cut_start, width, wrap};
use super::value::{ARROW, NONE, Pair};
use super::words::{self, age, count, why};
use super::{Style, json};

/// Without a terminal nothing is cut, but longer cells do not push the columns of all others away.
const ALIGNED_PATH: usize = 80;
const ALIGNED_VALUE: usize = 60;
const ALIGNED_MESSAGE: usize = 100;
/// A message is cut no shorter, even if the row is then wider than the terminal.
const SHORTEST_MESSAGE: usize = 12;

pub(crate) fn report(out: &mut dyn Write, style: &Style, report: &Report) -> io::Result<()> {
    let releases = in_order(report);
    let table = Table::new(style, &releases);
    for line in &table.lines {
        line.write(out, style.color)?;
    }
    if style.quiet {
        return Ok(());
    }
    for release in &releases {
        let block = block(style, release, table.cuts_message_of(release));
        if !block.is_empty() {
            out.write_all(b"\n")?;
            block.iter().try_for_each(|line| line.write(out, style.color))?;
        }
    }
    if style.show_all && !report.notices.is_empty() {
        out.write_all(b"\n")?;
        report
            .notices
            .iter()
            .flat_map(|notice| notice_lines(style, 0, notice))
            .try_for_each(|line| line.write(out, style.color))?;
    }
    if releases.len() > 1 {
        out.write_all(b"\n")?;
        counts(&releases).write(out, style.color)?;
    }
    Ok(())
}

/// `error: …` lines; a namespace is named when the message does not.
pub(crate) fn troubles(err: &mut dyn Write, color: bool, troubles: &[Trouble]) -> io::Result<()> {
    for trouble in troubles {
        let mut line = Line::new();
        line.push(ALARM, "error:").push(PLAIN, " ").push(PLAIN, &trouble.message);
        if let Some(namespace) =
            trouble.namespace.as_ref().filter(|namespace| !trouble.message.contains(namespace.as_str()))
        {
            line.push(PLAIN, &format!(" (namespace {namespace})"));
        }
        line.write(err, color)?;
    }
    Ok(())
}

/// The table itself; the width of its message column tells which messages were cut.
pub(super) struct Table {
    pub(super) lines: Vec<Line>,
    message_width: Option<usize>,
}

impl Table {
    fn new(style: &Style, releases: &[&ReleaseReport]) -> Self {
        Self::of(style, releases.iter().map(|release| cells(style, release)).collect(), MESSAGE)
    }

    /// `elastic`: the header of the column that is cut where the terminal is too narrow.
    pub(super) fn of(style: &Style, rows: Vec<Vec<Cell>>, elastic: &str) -> Self {
        let Some(first) = rows.first() else { return Self { lines: Vec::new(), message_width: None } };
        let mut widths: Vec<usize> = first.iter().map(|cell| width(cell.header)).collect();
        for row in &rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                let wide = width(&cell.text);
                if cell.header != MESSAGE || style.width.is_some() || wide <= ALIGNED_MESSAGE {
                    *widest = (*widest).max(wide);
                }
            }
        }
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let message = first.iter().position(|cell| cell.header == elastic).and_then(|index| widths.get_mut(index));
        let mut message_width = None;
        if let (Some(message), Some(terminal)) = (message, style.width) {
            let without = total - *message;
            *message = (*message).min(terminal.saturating_sub(without).max(SHORTEST_MESSAGE));
            message_width = Some(*message);
        }
        let mut header = Line::new();
        let mut column = 0;
        for (cell, width) in first.iter().zip(&widths) {
            header.pad_to(column).push(BOLD, cell.header);
            column += width + GAP;
        }
        let mut lines = vec![header];
        for row in &rows {
            let mut line = Line::new();
            let mut column = 0;
            for (cell, width) in row.iter().zip(&widths) {
                let text = if message_width.is_some() { cut_end(&cell.text, *width) } else { cell.text.clone() };
                line.pad_to(column).push(cell.color, &text);
                column += width + GAP;
            }
            lines.push(line);
        }
        Self { lines, message_width }
    }

    fn cuts_message_of(&self, release: &ReleaseReport) -> bool {
        self.message_width.is_some_and(|wide| width(&release.message) > wide)
    }
}

const MESSAGE: &str = "MESSAGE";

pub(super) struct Cell {
    pub(super) header: &'static str,
    pub(super) text: String,
    pub(super) color: Color,
}

fn cells(style: &Style, release: &ReleaseReport) -> Vec<Cell> {
    let state = state_color(release);
    let mut cells = Vec::new();
    let mut cell = |header, text: &str, color| cells.push(Cell { header, text: text.to_owned(), color });
    if style.all_namespaces {
        cell("NAMESPACE", &release.namespace, PLAIN);
    }
    cell("NAME", &release.name, PLAIN);
    cell("READY", json::condition(release.ready), state);
    cell("REASON", json::reason(release.reason), state);
    cell(MESSAGE, &release.message, PLAIN);
    cell("DRIFT DETECTION MODE", json::mode(release.mode), PLAIN);
    cell("SUSPENDED", if release.suspended { "True" } else { "False" }, if release.suspended { YELLOW } else { PLAIN });
    if style.format == Format::Wide {
        cell("REVISION", &release.revision.map_or_else(|| NONE.to_owned(), |revision| revision.to_string()), PLAIN);
        cell("CHART", release.chart.as_deref().unwrap_or(NONE), PLAIN);
        cell("UPDATED", &release.last_deployed.map_or_else(|| NONE.to_owned(), json::rfc3339), PLAIN);
    }
    cells
}

fn state_color(release: &ReleaseReport) -> Color {
    match (release.ready, release.reason) {
        (Condition::True, _) => GREEN,
        (_, Reason::Disabled) => DIM,
        (Condition::False, _) => RED,
        (Condition::Unknown, _) => YELLOW,
    }
}

/// Whether a notice is worth a look without being asked for.
fn is_urgent(notice: &Notice) -> bool {
    matches!(
        notice.reason,
        NoticeReason::UnattributedAddition | NoticeReason::RecordRewritten | NoticeReason::ForeignLabel
    )
}

/// What there is to say about one release below the table: findings and notices by object. Empty when there is nothing.
fn block(style: &Style, release: &ReleaseReport, message_was_cut: bool) -> Vec<Line> {
    let not_ready = release.ready != Condition::True;
    let findings: Vec<&Finding> = release
        .findings
        .iter()
        .filter(|finding| {
            style.show_all || not_ready && matches!(finding.verdict, Verdict::Drift | Verdict::Unverified)
        })
        .collect();
    let notices: Vec<&Notice> = release.notices.iter().filter(|notice| style.show_all || is_urgent(notice)).collect();
    let uncompared = if style.show_all { not_compared(&release.objects) } else { None };
    let message_was_cut = message_was_cut && not_ready;
    if findings.is_empty() && notices.is_empty() && uncompared.is_none() && !message_was_cut {
        return Vec::new();
    }

    let mut groups = ByObject::default();
    for finding in findings {
        groups.entry(&finding.object, Group::new).findings.push(Row::new(style, finding));
    }
    let mut of_release = Vec::new();
    for notice in notices {
        match &notice.object {
            Some(object) => groups.entry(object, Group::new).notices.push(notice),
            None => of_release.push(notice),
        }
    }
    let groups = groups.in_order();

    let title =
        if style.all_namespaces { format!("{}/{}", release.namespace, release.name) } else { release.name.clone() };
    let columns = Columns::new(style, width(&title), groups.iter().flat_map(|group| &group.findings));
    let mut lines = vec![columns.heading(style, &title)];
    if message_was_cut {
        lines.extend(indented(style, 2, PLAIN, &release.message));
    }
    for group in groups {
        lines.push(group.heading(style, &release.namespace));
        for row in &group.findings {
            lines.push(columns.row(style, row));
            // Without a column of its own, the cause is told below.
            let why = if columns.why == 0 { row.why.as_str() } else { "" };
            let below: Vec<&str> =
                [why, row.note.unwrap_or_default()].into_iter().filter(|text| !text.is_empty()).collect();
            if !below.is_empty() {
                lines.extend(indented(style, INDENT, if row.calm { DIM } else { PLAIN }, &below.join(": ")));
            }
        }
        lines.extend(group.notices.iter().flat_map(|notice| notice_lines(style, 4, notice)));
    }
    lines.extend(of_release.into_iter().flat_map(|notice| notice_lines(style, 2, notice)));
    lines.extend(uncompared.iter().flat_map(|text| indented(style, 2, DIM, text)));
    lines
}

/// One object's findings and notices, in the order of the report.
struct Group<'a> {
    object: &'a ObjectRef,
    findings: Vec<Row<'a>>,
    notices: Vec<&'a Notice>,
}

impl<'a> Group<'a> {
    fn new(object: &'a ObjectRef) -> Self {
        Self { object, findings: Vec::new(), notices: Vec::new() }
    }

    fn heading(&self, style: &Style, release_namespace: &str) -> Line {
        let mut line = Line::new();
        line.blanks(2).push(BOLD, &self.object.to_string());
        if let Some(namespace) = self.object.namespace.as_deref().filter(|namespace| *namespace != release_namespace) {
            line.push(PLAIN, &format!(" in {namespace}"));
        }
        if let Some(source) = self.findings.iter().find_map(|row| row.source) {
            line.blanks(GAP).push(DIM, source);
        }
        fitted(style, line)
    }
}

/// One finding, as text.
struct Row<'a> {
    mark: &'static str,
    color: Color,
    /// Neither drift nor unverified: there because all was asked for.
    calm: bool,
    path: String,
    pair: Option<Pair>,
    manager: String,
    age: String,
    class: String,
    why: String,
    note: Option<&'a str>,
    source: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn new(style: &Style, finding: &'a Finding) -> Self {
        let calm = matches!(finding.verdict, Verdict::Expected | Verdict::Ignored);
        let (mark, by_change) = words::mark(finding.change);
        let color = match (finding.verdict, finding.severity) {
            (Verdict::Expected | Verdict::Ignored, _) => DIM,
            (Verdict::Unverified, _) => CYAN,
            (Verdict::Drift, Some(Severity::P1)) => ALARM,
            (Verdict::Drift, Some(Severity::P2)) => YELLOW,
            (Verdict::Drift, Some(Severity::P3)) => PLAIN,
            (Verdict::Drift, None) => by_change,
        };
        let pair = finding
            .path
            .as_ref()
            .map(|path| Pair::new(&without_keys(&finding.desired, path), &without_keys(&finding.live, path)));
        let manager = finding.manager.as_ref().map(|held| match finding.managers.len() {
            others if others > 0 && style.format == Format::Wide => format!("{} +{others}", words::manager(held)),
            _ => words::manager(held),
        });
        let class = [finding.class.map(json::class), finding.severity.map(json::severity)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>();
        Self {
            mark,
            color,
            calm,
            path: finding.path.as_ref().map_or_else(|| words::whole(finding.change).to_owned(), ToString::to_string),
            // Nobody holds what is gone, and nobody needs to be told so of a whole object.
            manager: manager.unwrap_or_else(|| if pair.is_some() { NONE.to_owned() } else { String::new() }),
            pair,
            age: finding
                .manager
                .as_ref()
                .and_then(|manager| manager.time)
                .map_or_else(String::new, |time| age(style.now, time)),
            class: if style.format == Format::Wide { class.join(" ") } else { String::new() },
            why: why(finding),
            note: finding.note.as_deref(),
            source: finding.source.as_deref(),
        }
    }
}

/// An item without the keys by which its path names it: what is left is news.
fn without_keys<'a>(side: &'a Shown, path: &FieldPath) -> Cow<'a, Shown> {
    let (Shown::Plain(Value::Object(fields)), Some(Segment::Item(keys))) = (side, path.0.last()) else {
        return Cow::Borrowed(side);
    };
    let told = |name: &String, value: &Value| keys.iter().any(|(key, known)| key == name && known == value);
    let rest: Map<String, Value> = fields
        .iter()
        .filter(|(name, value)| !told(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if rest.is_empty() { Cow::Borrowed(side) } else { Cow::Owned(Shown::Plain(Value::Object(rest))) }
}

/// How wide the columns of one release's list are; 0: not there. One list is read at a time, so each has its own.
struct Columns {
    path: usize,
    value: usize,
    manager: usize,
    age: usize,
    class: usize,
    why: usize,
}

/// Two blanks for the object, two more for its findings, a mark and a blank.
const INDENT: usize = 6;

impl Columns {
    fn new<'a>(style: &Style, title: usize, rows: impl Iterator<Item = &'a Row<'a>> + Clone) -> Self {
        let widest = |of: &dyn Fn(&Row) -> usize| rows.clone().map(of).max().unwrap_or(0);
        // What nothing is aligned to is there all the same.
        let aligned = |most: usize| move |wide: usize| if style.width.is_none() && wide > most { 1 } else { wide };
        let header = |text: &str, wide: usize| if wide == 0 { 0 } else { wide.max(width(text)) };
        let path = widest(&|row| aligned(ALIGNED_PATH)(width(&row.path))).max(title.saturating_sub(INDENT));
        let mut columns = Self {
            path,
            value: header(VALUE, widest(&|row| aligned(ALIGNED_VALUE)(row.pair.as_ref().map_or(0, Pair::width)))),
            manager: header(MANAGER, widest(&|row| width(&row.manager))),
            age: header(AGE, widest(&|row| width(&row.age))),
            class: header(CLASS, widest(&|row| width(&row.class))),
            why: header(WHY, widest(&|row| width(&row.why))),
        };
        if let Some(terminal) = style.width {
            columns.fit(terminal);
        }
        columns
    }

    /// Gives up the causes' column first, then shares what is left for path and value: half each, unless one needs less.
    fn fit(&mut self, terminal: usize) {
        if self.path + self.value > self.room(terminal) {
            self.why = 0;
        }
        let room = self.room(terminal);
        if self.path + self.value <= room {
            return;
        }
        let half = room / 2;
        (self.path, self.value) = if self.path <= half {
            (self.path, room - self.path)
        } else if self.value <= half {
            (room - self.value, self.value)
        } else {
            (half, room - half)
        };
        // A terminal too narrow for both: the line is cut at its end instead.
        self.path = self.path.max(16);
        self.value = self.value.max(if self.value > 0 { 16 } else { 0 });
    }

    /// What a terminal leaves for path and value.
    fn room(&self, terminal: usize) -> usize {
        let others =
            [self.manager, self.age, self.class, self.why].into_iter().filter(|wide| *wide > 0).map(|wide| wide + GAP);
        terminal.saturating_sub(INDENT + others.sum::<usize>() + if self.value > 0 { GAP } else { 0 })
    }

    fn heading(&self, style: &Style, title: &str) -> Line {
        let mut line = Line::new();
        line.push(BOLD, title);
        let mut column = INDENT + self.path + GAP;
        for (name, wide) in
            [(VALUE, self.value), (MANAGER, self.manager), (AGE, self.age), (CLASS, self.class), (WHY, self.why)]
        {
            if wide > 0 {
                line.pad_to(column).push(DIM, name);
                column += wide + GAP;
            }
        }
        fitted(style, line)
    }

    fn row(&self, style: &Style, row: &Row) -> Line {
        let text = if row.calm { DIM } else { PLAIN };
        let cuts = style.width.is_some();
        let mut line = Line::new();
        line.blanks(4).push(row.color, row.mark).push(PLAIN, " ");
        line.push(row.color, &if cuts { cut_start(&row.path, self.path) } else { row.path.clone() });
        let mut column = INDENT + self.path + GAP;
        if self.value > 0 {
            if let Some(pair) = &row.pair {
                let pair = if cuts { pair.clone().fit(self.value) } else { pair.clone() };
                line.pad_to(column).push(DIM, &pair.place).push(text, &pair.desired).push(DIM, ARROW);
                line.push(if row.calm { DIM } else { BOLD }, &pair.live);
                if let Some(hint) = &pair.hint {
                    line.push(DIM, &format!(" ({hint})"));
                }
            }
            column += self.value + GAP;
        }
        for (cell, wide, color) in [
            (&row.manager, self.manager, text),
            (&row.age, self.age, DIM),
            (&row.class, self.class, text),
            (&row.why, self.why, if row.calm { DIM } else { row.color }),
        ] {
            if wide > 0 {
                if !cell.is_empty() {
                    line.pad_to(column).push(color, cell);
                }
                column += wide + GAP;
            }
        }
        fitted(style, line)
    }
}

const VALUE: &str = "DESIRED → LIVE";
const MANAGER: &str = "MANAGER";
const AGE: &str = "AGE";
const CLASS: &str = "CLASS";
const WHY: &str = "WHY";

fn fitted(style: &Style, mut line: Line) -> Line {
    if let Some(terminal) = style.width {
        line.cut(terminal);
    }
    line
}

/// Text that is wrapped rather than cut: what it says may be in its last word.
pub(super) fn indented(style: &Style, indent: usize, color: Color, text: &str) -> Vec<Line> {
    let lines = wrap(text, style.width.map(|terminal| terminal.saturating_sub(indent)));
    lines
        .iter()
        .map(|text| {
            let mut line = Line::new();
            line.blanks(indent).push(color, text);
            line
        })
        .collect()
}

fn notice_lines(style: &Style, indent: usize, notice: &Notice) -> Vec<Line> {
    let color = if is_urgent(notice) { YELLOW } else { DIM };
    indented(style, indent, color, &format!("* {}: {}", json::notice_reason(notice.reason), notice.message))
}

fn not_compared(objects: &ObjectCounts) -> Option<String> {
    let parts: Vec<String> = [
        (objects.hooks, "hook"),
        (objects.crds, "object of crds/"),
        (objects.untrackable, "object without a fixed name"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, word)| match word.split_once(' ') {
        Some((object, rest)) => format!("{} {rest}", count(number, object)),
        None => count(number, word),
    })
    .collect();
    (!parts.is_empty()).then(|| format!("not compared: {}", parts.join(", ")))
}

/// `3 releases: 1 ready, 1 drifted, 1 pending (3 drift, 1 expected)`
fn counts(releases: &[&ReleaseReport]) -> Line {
    const WORDS: [&str; 12] = [
        "ready",
        "drifted",
        "unverified",
        "pending",
        "failed",
        "uninstalling",
        "uninstalled",
        "superseded",
        "mismatched",
        "deleted",
        "corrupt",
        "disabled",
    ];
    let word = |release: &ReleaseReport| match release.reason {
        Reason::InSync => "ready",
        Reason::Drifted => "drifted",
        Reason::Unverified => "unverified",
        Reason::PendingInstall | Reason::PendingUpgrade | Reason::PendingRollback => "pending",
        Reason::Failed => "failed",
        Reason::Uninstalling => "uninstalling",
        Reason::Uninstalled => "uninstalled",
        Reason::Superseded => "superseded",
        Reason::RevisionMismatch => "mismatched",
        Reason::Deleted => "deleted",
        Reason::Corrupt => "corrupt",
        Reason::Disabled => "disabled",
    };
    let mut line = Line::new();
    line.push(PLAIN, &format!("{}: ", count(releases.len(), "release")));
    let mut separator = "";
    for one in WORDS {
        let number = releases.iter().filter(|release| word(release) == one).count();
        if let Some(release) = releases.iter().find(|release| word(release) == one) {
            line.push(PLAIN, separator).push(state_color(release), &format!("{number} {one}"));
            separator = ", ";
        }
    }
    let suspended = releases.iter().filter(|release| release.suspended).count();
    if suspended > 0 {
        line.push(PLAIN, &format!("{separator}{suspended} suspended"));
    }
    let by_verdict: Vec<String> = [Verdict::Drift, Verdict::Expected, Verdict::Ignored, Verdict::Unverified]
        .into_iter()
        .filter_map(|verdict| {
            let number = releases
                .iter()
                .flat_map(|release| &release.findings)
                .filter(|finding| finding.verdict == verdict)
                .count();
            (number > 0).then(|| format!("{number} {}", json::verdict(verdict)))
        })
        .collect();
    if !by_verdict.is_empty() {
        line.push(DIM, &format!(" ({})", by_verdict.join(", ")));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::finding::{Cause, Change, Manager, TroubleReason};
    use crate::drift::object::FieldPath;
    use crate::output::{Printer, escape::is_hidden, sample, sample::style};
    use serde_json::json;

    fn printed(style: Style, report: &Report) -> String {
        let mut out = Vec::new();
        Printer::new(&mut out, style).report(report).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn quark() -> ReleaseReport {
        ReleaseReport { message: "34 objects as in revision 12".into(), ..sample::release("quark", Reason::InSync) }
    }

    fn two() -> Report {
        sample::report_of(vec![quark(), sample::nucleus()])
    }

    #[test]
    fn in_sync_is_one_line() {
        let report = sample::report_of(vec![quark()]);
        assert_eq!(printed(style(None), &report), IN_SYNC);
        assert_eq!(printed(style(None), &sample::report_of(Vec::new())), "");
    }

    #[test]
    fn findings_are_listed_below_the_table() {
        assert_eq!(printed(style(None), &two()), PIPE);
    }

    #[test]
    fn a_terminal_is_not_exceeded() {
        assert_eq!(printed(style(Some(100)), &two()), TERMINAL);
    }

    #[test]
    fn wide_and_show_all_add_columns_findings_and_notices() {
        let style = Style { format: Format::Wide, show_all: true, all_namespaces: true, ..style(None) };
        let report = Report { notices: sample::report().notices, ..sample::report_of(vec![sample::nucleus()]) };
        assert_eq!(printed(style, &report), WIDE);
    }

    #[test]
    fn severity_has_a_colour() {
        let release = ReleaseReport {
            message: "2 changed".into(),
            findings: [Severity::P1, Severity::P2]
                .map(|severity| Finding { severity: Some(severity), ..image() })
                .to_vec(),
            ..sample::release("nucleus", Reason::Drifted)
        };
        let printed = printed(Style { color: true, ..style(None) }, &sample::report_of(vec![release]));
        assert_eq!(printed.replace('\u{1b}', "^"), COLOURED);
    }

    fn image() -> Finding {
        let path = sample::containers("api").field("image");
        sample::finding(
            sample::object("apps/v1", "Deployment", "api"),
            Change::Changed,
            path,
            json!("a:1"),
            json!("a:2"),
        )
    }

    #[test]
    fn every_reason_is_counted_once() {
        let printed = printed(style(None), &sample::report());
        assert_eq!(
            printed.lines().last().unwrap(),
            "14 releases: 1 ready, 1 drifted, 1 unverified, 3 pending, 1 failed, 1 uninstalling, 1 uninstalled, 1 superseded, \
             1 mismatched, 1 deleted, 1 corrupt, 1 disabled, 1 suspended (10 drift, 1 expected, 1 ignored, 2 unverified)"
        );
        let quiet = Style { quiet: true, ..style(None) };
        assert!(!super::tests::printed(quiet, &sample::report()).contains("14 releases"));
    }

    #[test]
    fn urgent_notices_are_shown_of_a_ready_release_too() {
        let notices = sample::nucleus().notices;
        let report = sample::report_of(vec![ReleaseReport { notices, ..quark() }]);
        let below: Vec<String> = printed(style(None), &report).lines().skip(2).map(str::to_owned).collect();
        assert_eq!(
            below,
            [
                "",
                "quark",
                "  Pod/shell",
                "    * UnattributedAddition: volume \"root\" (hostPath) was set at admission, or its trace was wiped",
                "  * RecordRewritten: the release record was last written by kubectl-edit",
            ]
        );
    }

    #[test]
    fn expected_findings_of_a_ready_release_are_shown_when_all_are_asked_for() {
        let expected = Finding { verdict: Verdict::Expected, cause: Some(Cause::Autoscaler), ..image() };
        let report = sample::report_of(vec![ReleaseReport { findings: vec![expected], ..quark() }]);
        assert!(!printed(style(None), &report).contains("Deployment"));
        let all = printed(Style { show_all: true, ..style(None) }, &report);
        assert!(all.contains("a:1 → a:2        kubectl-edit   12m   expected: autoscaler\n"), "{all}");
    }

    #[test]
    fn a_message_that_was_cut_is_told_below() {
        let message = "the upgrade to revision 12 was cut short 3h ago: helm rollback queue 11";
        let release = ReleaseReport { message: message.into(), ..sample::release("queue", Reason::PendingUpgrade) };
        let report = sample::report_of(vec![release]);
        let narrow = printed(style(Some(80)), &report);
        assert!(narrow.contains("the upgrade…") && narrow.ends_with(&format!("\n\nqueue\n  {message}\n")), "{narrow}");
        assert_eq!(printed(style(Some(200)), &report).lines().count(), 2);
    }

    #[test]
    fn a_long_message_in_a_pipe_is_whole_and_moves_only_its_own_row() {
        let message = "word ".repeat(40).trim_end().to_owned();
        let long = ReleaseReport { message: message.clone(), ..sample::release("failed", Reason::Failed) };
        let text = printed(style(None), &sample::report_of(vec![long, quark()]));
        assert!(text.contains(&format!("Failed   {message}   warn   ")), "{text}");
        assert!(text.contains("34 objects as in revision 12   warn"), "{text}");
    }

    #[test]
    fn values_in_a_pipe_are_whole_however_long_all_of_them_are() {
        let (desired, live) = ("d".repeat(300), "l".repeat(300));
        let path = FieldPath::of_fields(&["spec", &"p".repeat(200)]);
        let object = sample::object("networking.k8s.io/v1", "NetworkPolicy", "web");
        let found = sample::finding(object, Change::Changed, path, json!(desired), json!(live));
        let release = ReleaseReport { findings: vec![found], ..sample::release("nucleus", Reason::Drifted) };
        let text = printed(style(None), &sample::report_of(vec![release]));
        assert!(
            text.contains("DESIRED → LIVE") && text.contains(&format!("{desired} → {live}   kubectl-edit")),
            "{text}"
        );
    }

    #[test]
    fn an_item_s_keys_are_not_told_twice() {
        let row = |value: Value| {
            let found = sample::finding(
                sample::object("v1", "Pod", "api"),
                Change::Added,
                sample::containers("tap"),
                Value::Null,
                value,
            );
            Row::new(&style(None), &found).pair.unwrap().live
        };
        assert_eq!(row(json!({"name": "tap", "image": "tap:1"})), r#"{"image":"tap:1"}"#);
        assert_eq!(row(json!({"name": "tap"})), r#"{"name":"tap"}"#);
        assert_eq!(row(json!({"name": "other", "image": "tap:1"})), r#"{"image":"tap:1","name":"other"}"#);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_or_ends_in_a_blank() {
        for terminal in 40..220 {
            let text = printed(Style { show_all: true, format: Format::Wide, ..style(Some(terminal)) }, &two());
            for line in text.lines().skip(3).filter(|line| !line.contains("releases:")) {
                assert!(width(line) <= terminal, "{terminal}: {line}");
                assert_eq!(line.trim_end(), line);
            }
        }
    }

    #[test]
    fn trouble_is_one_line_each() {
        let mut troubles = sample::report().errors;
        troubles.push(Trouble {
            reason: TroubleReason::Timeout,
            message: "no answer from dev\u{1b}[2J".into(),
            namespace: Some("dev".into()),
        });
        let told = |color: bool| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            Printer::new(&mut out, style(None)).troubles(&mut err, color, &troubles).unwrap();
            assert!(out.is_empty());
            String::from_utf8(err).unwrap()
        };
        assert_eq!(
            told(false),
            "error: secrets is forbidden: User \"viewer\" cannot list resource \"secrets\" (namespace dev)\n\
             error: release \"nucleu\" not found; similar: nucleus\n\
             error: no answer from dev\\x1b[2J\n"
        );
        assert!(told(true).starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m secrets"));
    }

    /// Nothing that comes from the cluster reaches a terminal as it is.
    #[test]
    fn hostile_texts_are_escaped_in_every_format() {
        let bad = "x\u{1b}]0;owned\u{7}\u{9b}2J\r\n\u{202e}\u{200b}";
        let text = || Some(bad.to_owned());
        let mut report = sample::report();
        let manager =
            || Manager { name: bad.into(), operation: bad.into(), subresource: text(), time: Some(sample::now()) };
        let values = [json!(bad), json!({bad: [bad]}), Value::Null];
        for release in &mut report.releases {
            (release.name, release.namespace, release.message) = (bad.into(), bad.into(), bad.into());
            (release.status, release.chart, release.app_version) = (text(), text(), text());
            for (index, finding) in release.findings.iter_mut().enumerate() {
                finding.object.name = format!("{bad}{index}");
                finding.object.gvk.kind = bad.into();
                (finding.source, finding.rule, finding.note) = (text(), text(), text());
                finding.path = Some(FieldPath::of_fields(&["spec", bad]));
                finding.manager = Some(manager());
                finding.desired = Shown::Plain(values[index % 3].clone());
                finding.live = Shown::Plain(values[(index + 1) % 3].clone());
            }
            release.notices.iter_mut().for_each(|notice| notice.message = bad.into());
        }
        report.notices.iter_mut().for_each(|notice| notice.message = bad.into());
        for format in [Format::Table, Format::Wide, Format::Diff, Format::Json, Format::Yaml, Format::Name] {
            for terminal in [None, Some(60), Some(200)] {
                let style = Style { format, show_all: true, all_namespaces: true, ..style(terminal) };
                let text = printed(style, &report);
                let hidden = text.chars().find(|c| *c != '\n' && is_hidden(*c));
                assert_eq!(hidden, None, "{format:?}: {text}");
                assert!(text.contains("owned"));
            }
        }
    }

    const IN_SYNC: &str = "NAME    READY   REASON   MESSAGE                        DRIFT DETECTION MODE   SUSPENDED\nquark   True    InSync   34 objects as in revision 12   warn                   False\n";
    const PIPE: &str = r#"NAME      READY   REASON    MESSAGE                                                                            DRIFT DETECTION MODE   SUSPENDED
nucleus   False   Drifted   3 changed, 2 added, 1 removed, 1 missing, 1 left over (1 expected), 2 unverified   warn                   False
quark     True    InSync    34 objects as in revision 12                                                       warn                   False

nucleus                                                  DESIRED → LIVE              MANAGER           AGE    WHY
  Deployment/api   nucleus/templates/deployment.yaml
    - .spec.minReadySeconds                              10 → <none>                 <none>
    ~ .spec.replicas                                     3 → 6                       kubectl (scale)   5m
    ~ .spec.template.spec.containers[name="api"].image   registry.example.com/nucleus/api:1.4.2 → registry.example.com/nucleus/api:1.4.3   kubectl-edit   12m
    + .spec.template.spec.containers[name="debug"]       <none> → {"command":["sleep","infinity"],"image":"busybox:1.36"}   kubectl-edit   12m
  ConfigMap/settings   nucleus/templates/settings.yaml
    ! missing
  Secret/api-keys   nucleus/templates/keys.yaml
    ~ .data.token                                        •••• → •••• (masked)        Lens              3d2h   applied-differently
  Certificate/web
    + .spec.dnsNames[="old.example.com"]                 <none> → old.example.com    kubectl-edit      12m    left-behind
  Service/old
    + left over
  ClusterRole/prod-viewer
    ~ .rules                                             [{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}] → [{"apiGroups":[""],"resources":["pods"],"verbs":["get","delete"]}]   helm   10s   forged-name
  HorizontalPodAutoscaler/api
    + .spec.behavior                                     <none> → {"scaleDown":{}}   <none>                   unverified: unattributed
      changed while reading
  Role/api
    ? not read
      roles.rbac.authorization.k8s.io is forbidden: User "viewer" cannot get resource "roles"
  Pod/shell
    * UnattributedAddition: volume "root" (hostPath) was set at admission, or its trace was wiped
  * RecordRewritten: the release record was last written by kubectl-edit

2 releases: 1 ready, 1 drifted (9 drift, 1 expected, 1 ignored, 2 unverified)
"#;
    const TERMINAL: &str = r#"NAME      READY   REASON    MESSAGE                                 DRIFT DETECTION MODE   SUSPENDED
nucleus   False   Drifted   3 changed, 2 added, 1 removed, 1 mis…   warn                   False
quark     True    InSync    34 objects as in revision 12            warn                   False

nucleus                                   DESIRED → LIVE                      MANAGER           AGE
  3 changed, 2 added, 1 removed, 1 missing, 1 left over (1 expected), 2 unverified
  Deployment/api   nucleus/templates/deployment.yaml
    - .spec.minReadySeconds               10 → <none>                         <none>
    ~ .spec.replicas                      3 → 6                               kubectl (scale)   5m
    ~ …pec.containers[name="api"].image   …api:1.4.2 → …api:1.4.3             kubectl-edit      12m
    + …te.spec.containers[name="debug"]   <none> → {"command":["sleep","in…   kubectl-edit      12m
  ConfigMap/settings   nucleus/templates/settings.yaml
    ! missing
  Secret/api-keys   nucleus/templates/keys.yaml
    ~ .data.token                         •••• → •••• (masked)                Lens              3d2h
      applied-differently
  Certificate/web
    + …pec.dnsNames[="old.example.com"]   <none> → old.example.com            kubectl-edit      12m
      left-behind
  Service/old
    + left over
  ClusterRole/prod-viewer
    ~ .rules                              …"get"]}] → …"get","delete"]}]      helm              10s
      forged-name
  HorizontalPodAutoscaler/api
    + .spec.behavior                      <none> → {"scaleDown":{}}           <none>
      unverified: unattributed: changed while reading
  Role/api
    ? not read
      roles.rbac.authorization.k8s.io is forbidden: User "viewer" cannot get resource "roles"
  Pod/shell
    * UnattributedAddition: volume "root" (hostPath) was set at admission, or its trace was wiped
  * RecordRewritten: the release record was last written by kubectl-edit

2 releases: 1 ready, 1 drifted (9 drift, 1 expected, 1 ignored, 2 unverified)
"#;
    const WIDE: &str = r#"NAMESPACE   NAME      READY   REASON    MESSAGE                                                                            DRIFT DETECTION MODE   SUSPENDED   REVISION   CHART           UPDATED
prod        nucleus   False   Drifted   3 changed, 2 added, 1 removed, 1 missing, 1 left over (1 expected), 2 unverified   warn                   False       12         nucleus-1.4.2   2026-11-28T05:30:12Z

prod/nucleus                                                       DESIRED → LIVE              MANAGER                 AGE    CLASS   WHY
  Deployment/api   nucleus/templates/deployment.yaml
    + .metadata.annotations["deployment.kubernetes.io/revision"]   <none> → "14"               deployment-controller   11m    A P3    expected: controller
    - .spec.minReadySeconds                                        10 → <none>                 <none>                         C P2
    ~ .spec.replicas                                               3 → 6                       kubectl (scale) +1      5m     B P2
    ~ .spec.template.spec.containers[name="api"].image             registry.example.com/nucleus/api:1.4.2 → registry.example.com/nucleus/api:1.4.3   kubectl-edit   12m   B P1
    + .spec.template.spec.containers[name="debug"]                 <none> → {"command":["sleep","infinity"],"image":"busybox:1.36"}   kubectl-edit   12m   B P1
    * DuplicateKey: env "A" is given twice; the last one counts
  ConfigMap/settings   nucleus/templates/settings.yaml
    ! missing                                                                                                                 C P1
  Secret/api-keys   nucleus/templates/keys.yaml
    ~ .data.token                                                  •••• → •••• (masked)        Lens                    3d2h   B P2    applied-differently
  Certificate/web
    + .spec.dnsNames[="old.example.com"]                           <none> → old.example.com    kubectl-edit            12m    B P2    left-behind
  Service/old
    + left over                                                                                                               C P1
  ClusterRole/prod-viewer
    ~ .rules                                                       [{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}] → [{"apiGroups":[""],"resources":["pods"],"verbs":["get","delete"]}]   helm   10s   C P1   forged-name
  HorizontalPodAutoscaler/api
    + .spec.behavior                                               <none> → {"scaleDown":{}}   <none>                                 unverified: unattributed
      changed while reading
  Role/api
    ? not read
      roles.rbac.authorization.k8s.io is forbidden: User "viewer" cannot get resource "roles"
  StatefulSet/db
    ~ .spec.replicas                                               1 → 2                       kubectl-edit            12m    A P3    ignored: scaled by the platform team
  Pod/shell
    * UnattributedAddition: volume "root" (hostPath) was set at admission, or its trace was wiped
  * RecordRewritten: the release record was last written by kubectl-edit
  not compared: 2 hooks, 3 objects of crds/, 1 object without a fixed name

* RuleExpired: "scaled by the platform team" expired 2026-11-01
"#;
    const COLOURED: &str = r#"^[1mNAME^[0m      ^[1mREADY^[0m   ^[1mREASON^[0m    ^[1mMESSAGE^[0m     ^[1mDRIFT DETECTION MODE^[0m   ^[1mSUSPENDED^[0m
nucleus   ^[31mFalse^[0m   ^[31mDrifted^[0m   2 changed   warn                   False

^[1mnucleus^[0m                                                  ^[2mDESIRED → LIVE^[0m   ^[2mMANAGER^[0m        ^[2mAGE^[0m
  ^[1mDeployment/api^[0m
    ^[1m^[31m~^[0m ^[1m^[31m.spec.template.spec.containers[name="api"].image^[0m   a:1^[2m → ^[0m^[1ma:2^[0m        kubectl-edit   ^[2m12m^[0m
    ^[33m~^[0m ^[33m.spec.template.spec.containers[name="api"].image^[0m   a:1^[2m → ^[0m^[1ma:2^[0m        kubectl-edit   ^[2m12m^[0m
"#;
}
