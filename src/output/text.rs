//! The table of releases and, below it, what differs: for a person who has just been woken up. Knows nothing of why.

use std::io::{self, Write};

use anstyle::Style as Color;

use crate::config::Format;
use crate::drift::finding::{
    Change, Condition, Finding, Notice, NoticeReason, ObjectCounts, Reason, ReleaseReport, Report, Severity, Trouble,
    Verdict,
};
use crate::drift::object::ObjectRef;

use super::group::{ByObject, in_order};
use super::line::{ALARM, BOLD, CYAN, DIM, GAP, GREEN, Line, PLAIN, RED, YELLOW, cut_end, cut_start, width, wrap};
use super::value::{ARROW, NONE, Pair};
use super::words::{self, age, count, why};
use super::{Style, json};

/// Without a terminal nothing is cut, but longer cells do not push the columns of all others away.
const ALIGNED_PATH: usize = 80;
const ALIGNED_VALUE: usize = 60;
/// A message is cut no shorter, even if the row is then wider than the terminal.
const SHORTEST_MESSAGE: usize = 12;

pub(crate) fn report(out: &mut dyn Write, style: &Style, report: &Report) -> io::Result<()> {
    let releases = in_order(report);
    let table = Table::new(style, &releases);
    for line in &table.lines {
        line.write(out, style.color)?;
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
    if releases.len() > 1 && !style.quiet {
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
struct Table {
    lines: Vec<Line>,
    message_width: Option<usize>,
}

impl Table {
    fn new(style: &Style, releases: &[&ReleaseReport]) -> Self {
        let rows: Vec<Vec<Cell>> = releases.iter().map(|release| cells(style, release)).collect();
        let Some(first) = rows.first() else { return Self { lines: Vec::new(), message_width: None } };
        let mut widths: Vec<usize> = first.iter().map(|cell| width(cell.header)).collect();
        for row in &rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(width(&cell.text));
            }
        }
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let message = first.iter().position(|cell| cell.header == MESSAGE).and_then(|index| widths.get_mut(index));
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
                line.pad_to(column).push(cell.color, &cut_end(&cell.text, *width));
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

struct Cell {
    header: &'static str,
    text: String,
    color: Color,
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
        let (mark, by_change) = match finding.change {
            Change::Changed => ("~", YELLOW),
            Change::Added => ("+", YELLOW),
            Change::Removed => ("-", YELLOW),
            Change::Missing => ("!", ALARM),
            Change::Orphan => ("+", YELLOW),
            Change::Unreadable => ("?", CYAN),
        };
        let color = match (finding.verdict, finding.severity) {
            (Verdict::Expected | Verdict::Ignored, _) => DIM,
            (Verdict::Unverified, _) => CYAN,
            (Verdict::Drift, Some(Severity::P1)) => ALARM,
            (Verdict::Drift, Some(Severity::P2)) => YELLOW,
            (Verdict::Drift, Some(Severity::P3)) => PLAIN,
            (Verdict::Drift, None) => by_change,
        };
        let whole = match finding.change {
            Change::Missing => "missing",
            Change::Orphan => "left over",
            Change::Unreadable => "not read",
            Change::Changed | Change::Added | Change::Removed => json::change(finding.change),
        };
        let pair = finding.path.as_ref().map(|_| Pair::new(&finding.desired, &finding.live));
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
            path: finding.path.as_ref().map_or_else(|| whole.to_owned(), ToString::to_string),
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
        let aligned = |most: usize| move |wide: usize| if style.width.is_none() && wide > most { 0 } else { wide };
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
fn indented(style: &Style, indent: usize, color: Color, text: &str) -> Vec<Line> {
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
