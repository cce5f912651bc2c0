//! What differs, per object, as a unified diff of YAML that holds the differing fields and what is above them. Knows nothing of why.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::Value;
use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices_deadline};

use crate::drift::finding::{Change, Condition, Finding, Reason, ReleaseReport, Report, Shown, Verdict};
use crate::drift::object::{FieldPath, ObjectRef, Segment};

use super::group::{ByObject, in_order};
use super::line::{BOLD, CYAN, DIM, GREEN, Line, PLAIN, RED, YELLOW};
use super::words::{self, age, count, why};
use super::{Style, json, yaml};

/// Unchanged lines of a long value shown before and after a changed one. Those above a field are all shown: they say where it is.
const CONTEXT: usize = 3;
/// Two long values are compared no longer than this; what is not aligned by then is shown as removed and added.
const PATIENCE: Duration = Duration::from_millis(500);
const MASK: &str = "\"****\"";

/// Empty for releases in which nothing differs; a release that is not ready for another reason than its drift says so in a comment.
pub(crate) fn report(out: &mut dyn Write, style: &Style, report: &Report) -> io::Result<()> {
    for release in in_order(report) {
        if release.ready != Condition::True && !matches!(release.reason, Reason::Drifted | Reason::Disabled) {
            comment(&format!(
                "{}/{}: {}: {}",
                release.namespace,
                release.name,
                json::reason(release.reason),
                release.message
            ))
            .write(out, style.color)?;
        }
        let mut objects = ByObject::default();
        for finding in &release.findings {
            if style.show_all || matches!(finding.verdict, Verdict::Drift | Verdict::Unverified) {
                objects.entry(&finding.object, |object| (object, Vec::new())).1.push(finding);
            }
        }
        for (object, findings) in objects.in_order() {
            for line in object_lines(style, release, object, &findings) {
                line.write(out, style.color)?;
            }
        }
    }
    Ok(())
}

fn comment(text: &str) -> Line {
    let mut line = Line::new();
    line.push(YELLOW, &format!("# {text}"));
    line
}

fn object_lines(style: &Style, release: &ReleaseReport, object: &ObjectRef, findings: &[&Finding]) -> Vec<Line> {
    let mut heading = Line::new();
    heading.push(BOLD, &format!("diff {object}"));
    let namespace = object.namespace.as_deref().unwrap_or(&release.namespace);
    let place = if namespace == release.namespace { String::new() } else { format!(" in {namespace}") };
    let source = findings
        .iter()
        .find_map(|finding| finding.source.as_ref())
        .map(|source| format!(", {source}"))
        .unwrap_or_default();
    heading.push(PLAIN, &place).push(DIM, &format!(" (release {}/{}{source})", release.namespace, release.name));
    let mut lines = vec![heading];
    let managers = managers(style, findings);
    lines.extend(
        findings.iter().filter_map(|finding| remark(finding, managers.len() > 1)).map(|remark| comment(&remark)),
    );

    let mut differing = diff_lines(findings);
    if differing.is_empty() {
        return lines;
    }
    let whole = |change: Change| findings.iter().any(|finding| finding.path.is_none() && finding.change == change);
    let name = |side: &str, absent: bool| if absent { "/dev/null".to_owned() } else { format!("{side}/{object}") };
    let revision = release.judged_revision.map(|revision| format!("   revision {revision}")).unwrap_or_default();
    let managers = if managers.is_empty() { String::new() } else { format!("   {}", managers.join(", ")) };
    for (prefix, side, about) in [
        ("---", name("desired", whole(Change::Orphan)), revision),
        ("+++", name("live", whole(Change::Missing)), managers),
    ] {
        let mut line = Line::new();
        line.push(BOLD, &format!("{prefix} {side}")).push(DIM, &about);
        lines.push(line);
    }
    lines.extend(hunks(&mut differing));
    lines
}

/// What the diff itself cannot say about a finding; its writer where there are `several`.
fn remark(finding: &Finding, several: bool) -> Option<String> {
    let what = match (&finding.path, finding.change) {
        (Some(path), _) => path.to_string(),
        (None, Change::Missing) => "missing".to_owned(),
        (None, Change::Orphan) => "left over".to_owned(),
        (None, Change::Unreadable) => "not read".to_owned(),
        (None, change @ (Change::Changed | Change::Added | Change::Removed)) => json::change(change).to_owned(),
    };
    let writer = finding.manager.as_ref().filter(|_| several).map(words::manager).unwrap_or_default();
    let parts = [what, writer, why(finding), finding.note.clone().unwrap_or_default()];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    (parts.len() > 1 || finding.path.is_none()).then(|| parts.join(": "))
}

/// Each writer once, with its last activity: `kubectl-edit 2026-11-30T09:48:00Z (12m)`.
fn managers(style: &Style, findings: &[&Finding]) -> Vec<String> {
    let mut seen = Vec::new();
    for held in findings.iter().filter_map(|finding| finding.manager.as_ref()) {
        let time =
            held.time.map(|time| format!(" {} ({})", json::rfc3339(time), age(style.now, time))).unwrap_or_default();
        let text = format!("{}{time}", words::manager(held));
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}

/// One line of the two texts.
struct DiffLine {
    tag: ChangeTag,
    text: String,
    /// Far from any change, inside a long value: not shown.
    far: bool,
}

fn context(text: String) -> DiffLine {
    DiffLine { tag: ChangeTag::Equal, text, far: false }
}

/// The fields that differ, and what is above them.
#[derive(Default)]
struct Node<'a> {
    sides: Vec<(&'a Shown, &'a Shown)>,
    fields: BTreeMap<&'a str, Node<'a>>,
    items: Vec<(&'a Segment, Node<'a>)>,
}

impl<'a> Node<'a> {
    fn insert(&mut self, path: &'a [Segment], sides: (&'a Shown, &'a Shown)) {
        match path {
            [] => self.sides.push(sides),
            [Segment::Field(name), rest @ ..] => self.fields.entry(name).or_default().insert(rest, sides),
            [segment, rest @ ..] => {
                if let Some((_, node)) = self.items.iter_mut().find(|(known, _)| *known == segment) {
                    node.insert(rest, sides);
                } else {
                    let mut node = Node::default();
                    node.insert(rest, sides);
                    self.items.push((segment, node));
                }
            }
        }
    }

    fn inside(&self, indent: usize, items_indent: usize) -> Vec<DiffLine> {
        let mut lines = Vec::new();
        for (name, node) in &self.fields {
            lines.extend(node.sides.iter().flat_map(|(desired, live)| {
                leaf(
                    desired,
                    live,
                    &|value| yaml::entry(name, value, indent),
                    &format!("{}{}: ", " ".repeat(indent), yaml::string(name)),
                )
            }));
            if !node.fields.is_empty() || !node.items.is_empty() {
                lines.push(context(format!("{}{}:", " ".repeat(indent), yaml::string(name))));
                lines.extend(node.inside(indent + 2, indent));
            }
        }
        for (segment, node) in &self.items {
            lines.extend(node.sides.iter().flat_map(|(desired, live)| {
                leaf(
                    desired,
                    live,
                    &|value| yaml::item(value, items_indent),
                    &format!("{}- ", " ".repeat(items_indent)),
                )
            }));
            if !node.fields.is_empty() || !node.items.is_empty() {
                lines.extend(node.item(segment, items_indent));
            }
        }
        lines
    }

    /// An item that differs in part: its keys say which it is.
    fn item(&self, segment: &Segment, indent: usize) -> Vec<DiffLine> {
        let mut lines = Vec::new();
        match segment {
            Segment::Item(keys) => {
                let known = keys.iter().filter(|(key, _)| !self.fields.contains_key(key.as_str()));
                lines.extend(known.flat_map(|(key, value)| yaml::entry(key, value, indent + 2)).map(context));
            }
            Segment::Member(_) | Segment::Index(_) | Segment::Field(_) => {}
        }
        lines.extend(self.inside(indent + 2, indent + 2));
        // Each of the two texts needs the dash at its own first line.
        let (mut desired, mut live) = (false, false);
        for line in &mut lines {
            let first = match line.tag {
                ChangeTag::Equal => !desired && !live,
                ChangeTag::Delete => !desired,
                ChangeTag::Insert => !live,
            };
            desired |= line.tag != ChangeTag::Insert;
            live |= line.tag != ChangeTag::Delete;
            if first {
                line.text = yaml::dashed(&line.text, indent);
            }
            if desired && live {
                break;
            }
        }
        lines
    }
}

fn diff_lines(findings: &[&Finding]) -> Vec<DiffLine> {
    let mut root = Node::default();
    let mut lines = Vec::new();
    for finding in findings {
        match &finding.path {
            Some(FieldPath(path)) => root.insert(path, (&finding.desired, &finding.live)),
            // Masked as a whole, it has nothing to show.
            None => {
                let [desired, live] = [&finding.desired, &finding.live]
                    .map(|side| if matches!(side, Shown::Plain(_)) { side } else { &Shown::Absent });
                lines.extend(leaf(desired, live, &yaml::document, ""));
            }
        }
    }
    lines.extend(root.inside(0, 0));
    lines
}

/// The lines of one value on both sides, compared. `prefix` goes before a masked value.
fn leaf(desired: &Shown, live: &Shown, written: &dyn Fn(&Value) -> Vec<String>, prefix: &str) -> Vec<DiffLine> {
    let both_masked = matches!((desired, live), (Shown::Masked { .. }, Shown::Masked { .. }));
    let side = |side: &Shown, mark: &str| match side {
        Shown::Absent => Vec::new(),
        Shown::Plain(value) => written(value),
        Shown::Masked { bytes } => vec![format!("{prefix}{MASK}  # masked, {}{mark}", count(*bytes, "byte"))],
    };
    let old = side(desired, "");
    let new = side(live, if both_masked { " (changed)" } else { "" });
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Instant::now().checked_add(PATIENCE));
    let mut lines = Vec::new();
    let last = ops.len().saturating_sub(1);
    for (index, op) in ops.iter().enumerate() {
        if let DiffOp::Equal { len, .. } = op {
            for (place, text) in old.get(op.old_range()).unwrap_or_default().iter().enumerate() {
                // The first line of a value names its field.
                let near_before = index > 0 && place < CONTEXT;
                let near_after = index < last && place + CONTEXT >= *len;
                let names_field = index == 0 && place == 0;
                lines.push(DiffLine {
                    tag: ChangeTag::Equal,
                    text: text.clone(),
                    far: !(near_before || near_after || names_field),
                });
            }
        } else {
            for (tag, texts) in
                [(ChangeTag::Delete, old.get(op.old_range())), (ChangeTag::Insert, new.get(op.new_range()))]
            {
                lines.extend(texts.unwrap_or_default().iter().map(|text| DiffLine {
                    tag,
                    text: text.clone(),
                    far: false,
                }));
            }
        }
    }
    lines
}

/// Runs of lines that are shown, each with its place in both texts.
fn hunks(lines: &mut [DiffLine]) -> Vec<Line> {
    let mut out = Vec::new();
    let (mut old, mut new) = (0, 0);
    for run in lines.chunk_by(|a, b| a.far == b.far) {
        let of_old = run.iter().filter(|line| line.tag != ChangeTag::Insert).count();
        let of_new = run.iter().filter(|line| line.tag != ChangeTag::Delete).count();
        if run.iter().any(|line| !line.far) {
            let range = |before: usize, count: usize| match count {
                0 => format!("{before},0"),
                1 => format!("{}", before + 1),
                _ => format!("{},{count}", before + 1),
            };
            let mut header = Line::new();
            header.push(CYAN, &format!("@@ -{} +{} @@", range(old, of_old), range(new, of_new)));
            out.push(header);
            for block in run.chunk_by(|a, b| (a.tag == ChangeTag::Equal) == (b.tag == ChangeTag::Equal)) {
                out.extend(painted(block));
            }
        }
        old += of_old;
        new += of_new;
    }
    out
}

/// Lines of context, or lines that differ. A line replaced by another shows which part of it.
fn painted(block: &[DiffLine]) -> Vec<Line> {
    let mut out = Vec::new();
    // Removed lines and those that take their place.
    for replaced in block.chunk_by(|a, b| a.tag == b.tag || a.tag == ChangeTag::Delete) {
        for line in replaced {
            let (sign, color, opposite) = match line.tag {
                ChangeTag::Equal => (" ", PLAIN, None),
                ChangeTag::Delete => ("-", RED, Some(ChangeTag::Insert)),
                ChangeTag::Insert => ("+", GREEN, Some(ChangeTag::Delete)),
            };
            let first_with =
                |tag| replaced.iter().find(|one| Some(one.tag) == tag && is_same_field(&line.text, &one.text));
            let is_first = first_with(Some(line.tag)).is_some_and(|first| std::ptr::eq(first, line));
            let other = first_with(opposite).filter(|_| is_first);
            let (start, end) = other.map_or((0, line.text.len()), |other| differing_part(&line.text, &other.text));
            let part = |from: usize, to: usize| line.text.get(from..to).unwrap_or_default();
            let strong = if other.is_some() { color.invert() } else { color };
            let mut shown = Line::new();
            shown
                .push(color, sign)
                .push(color, part(0, start))
                .push(strong, part(start, end))
                .push(color, part(end, line.text.len()));
            out.push(shown);
        }
    }
    out
}

/// Whether two lines give the same key, on which their values can be compared.
fn is_same_field(one: &str, other: &str) -> bool {
    matches!((one.split_once(": "), other.split_once(": ")), (Some((a, _)), Some((b, _))) if a == b)
}

/// From where to where, in bytes, the first line differs from the second; whole words.
fn differing_part(one: &str, other: &str) -> (usize, usize) {
    let in_word = |c: char| c.is_alphanumeric();
    let same: usize = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let word = |text: &str| text.chars().take_while(|c| in_word(*c)).map(char::len_utf8).sum::<usize>();
    let reversed = |text: &str| text.chars().rev().take_while(|c| in_word(*c)).map(char::len_utf8).sum::<usize>();
    let start = same - reversed(one.get(..same).unwrap_or_default());
    let (rest, other_rest) = (one.get(start..).unwrap_or_default(), other.get(start..).unwrap_or_default());
    let tail: usize =
        rest.chars().rev().zip(other_rest.chars().rev()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let end = one.len() - tail;
    (start, end + word(one.get(end..).unwrap_or_default()))
}
