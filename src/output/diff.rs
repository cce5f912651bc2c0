//! What differs, per object, as a unified diff of YAML that holds the differing fields and what is above them. Knows nothing of why.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::Value;
use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices_deadline};

use crate::drift::finding::{Change, Condition, Finding, Reason, ReleaseReport, Report, Shown, Storage, Verdict};
use crate::drift::object::{FieldPath, ObjectRef, Segment};

use super::group::{ByObject, in_order};
use super::line::{BOLD, CYAN, DIM, GREEN, Line, PLAIN, RED, YELLOW};
use super::words::{self, age, why};
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
    let of = match release.storage {
        Storage::Files => release.name.clone(),
        Storage::Secret | Storage::ConfigMap | Storage::Sql => {
            format!("release {}/{}", release.namespace, release.name)
        }
    };
    heading.push(PLAIN, &place).push(DIM, &format!(" ({of}{source})"));
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
        Shown::Masked { .. } => vec![format!("{prefix}{MASK}  # masked{mark}")],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Format;
    use crate::drift::object::Segment;
    use crate::output::sample;
    use serde_json::json;

    fn printed(report: &Report, show_all: bool, color: bool) -> String {
        let style = Style { format: Format::Diff, show_all, color, ..sample::style(Some(40)) };
        let mut out = Vec::new();
        super::report(&mut out, &style, report).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn of(findings: Vec<Finding>) -> Report {
        sample::report_of(vec![ReleaseReport { findings, ..sample::release("nucleus", Reason::Drifted) }])
    }

    /// The hunks alone.
    fn body(findings: Vec<Finding>) -> Vec<String> {
        let text = printed(&of(findings), false, false);
        text.lines().skip_while(|line| !line.starts_with("@@")).map(str::to_owned).collect()
    }

    fn settings(desired: Value, live: Value) -> Finding {
        let path = FieldPath::of_fields(&["data", "app.conf"]);
        sample::finding(sample::object("v1", "ConfigMap", "settings"), Change::Changed, path, desired, live)
    }

    #[test]
    fn in_sync_prints_nothing() {
        let report =
            sample::report_of(vec![sample::release("quark", Reason::InSync), sample::release("lab", Reason::Disabled)]);
        assert_eq!(printed(&report, true, true), "");
    }

    #[test]
    fn a_release_that_is_not_ready_for_another_reason_says_so() {
        let message = "the upgrade was cut short: helm rollback queue 11".to_owned();
        let report =
            sample::report_of(vec![ReleaseReport { message, ..sample::release("queue", Reason::PendingUpgrade) }]);
        assert_eq!(
            printed(&report, false, false),
            "# prod/queue: PendingUpgrade: the upgrade was cut short: helm rollback queue 11\n"
        );
    }

    #[test]
    fn each_object_has_a_diff() {
        assert_eq!(printed(&sample::report_of(vec![sample::nucleus()]), true, false), ALL);
    }

    #[test]
    fn without_show_all_expected_and_ignored_are_left_out() {
        let text = printed(&sample::report_of(vec![sample::nucleus()]), false, false);
        assert!(!text.contains("StatefulSet") && !text.contains("revision: \"14\""));
        assert!(text.contains("Deployment/api") && text.contains("Role/api"));
    }

    #[test]
    fn colours_are_git_s_and_the_part_that_differs_stands_out() {
        let found = sample::finding(
            sample::object("apps/v1", "Deployment", "api"),
            Change::Changed,
            FieldPath::of_fields(&["spec", "image"]),
            json!("api:1.4.2"),
            json!("api:1.4.13"),
        );
        assert_eq!(printed(&of(vec![found]), false, true).replace('\u{1b}', "^"), COLOURED);
    }

    #[test]
    fn of_a_long_text_the_lines_around_a_change_are_shown() {
        let text = |changed: &[usize]| {
            let line =
                |n: usize| if changed.contains(&n) { format!("key{n}=changed\n") } else { format!("key{n}=x\n") };
            json!((1..=30).map(line).collect::<String>())
        };
        assert_eq!(
            body(vec![settings(text(&[]), text(&[12, 29]))]),
            [
                "@@ -1,2 +1,2 @@",
                " data:",
                "   app.conf: |",
                "@@ -11,7 +11,7 @@",
                "     key9=x",
                "     key10=x",
                "     key11=x",
                "-    key12=x",
                "+    key12=changed",
                "     key13=x",
                "     key14=x",
                "     key15=x",
                "@@ -28,5 +28,5 @@",
                "     key26=x",
                "     key27=x",
                "     key28=x",
                "-    key29=x",
                "+    key29=changed",
                "     key30=x",
            ]
        );
    }

    #[test]
    fn a_lost_final_newline_shows() {
        assert_eq!(
            body(vec![settings(json!("a\nb\n"), json!("a\nb"))]),
            ["@@ -1,4 +1,4 @@", " data:", "-  app.conf: |", "+  app.conf: |-", "     a", "     b"]
        );
    }

    #[test]
    fn an_item_whose_key_changed_has_its_dash_in_both_texts() {
        let item = FieldPath::of_fields(&["spec", "ports"])
            .child(Segment::Item(vec![("port".into(), json!(80)), ("protocol".into(), json!("TCP"))]));
        let service = || sample::object("v1", "Service", "api");
        let port = sample::finding(service(), Change::Changed, item.field("port"), json!(80), json!(81));
        let protocol = sample::finding(service(), Change::Changed, item.field("protocol"), json!("TCP"), json!("UDP"));
        assert_eq!(
            body(vec![port.clone()]),
            ["@@ -1,4 +1,4 @@", " spec:", "   ports:", "   - protocol: TCP", "-    port: 80", "+    port: 81"]
        );
        assert_eq!(
            body(vec![port, protocol]),
            [
                "@@ -1,4 +1,4 @@",
                " spec:",
                "   ports:",
                "-  - port: 80",
                "+  - port: 81",
                "-    protocol: TCP",
                "+    protocol: UDP",
            ]
        );
    }

    #[test]
    fn a_missing_object_is_shown_whole_where_it_is_known() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        let missing = Finding {
            desired: Shown::Plain(object),
            ..sample::whole(sample::object("v1", "ConfigMap", "settings"), Change::Missing, None)
        };
        assert_eq!(
            printed(&of(vec![missing]), false, false).lines().collect::<Vec<_>>(),
            [
                "diff ConfigMap/settings (release prod/nucleus)",
                "# missing",
                "--- desired/ConfigMap/settings   revision 12",
                "+++ /dev/null",
                "@@ -1,4 +0,0 @@",
                "-apiVersion: v1",
                "-data:",
                "-  a: b",
                "-kind: ConfigMap",
            ]
        );
    }

    #[test]
    fn a_masked_object_is_not_shown() {
        let secret = sample::object("v1", "Secret", "api-keys");
        let missing = Finding { desired: Shown::Masked { bytes: 40 }, ..sample::whole(secret, Change::Missing, None) };
        assert_eq!(
            printed(&of(vec![missing]), false, false),
            "diff Secret/api-keys (release prod/nucleus)\n# missing\n"
        );
    }

    #[test]
    fn a_list_that_differs_in_order_and_in_an_item_shows_both() {
        let list = FieldPath::of_fields(&["spec", "initContainers"]);
        let pod = || sample::object("v1", "Pod", "api");
        let order = sample::finding(
            pod(),
            Change::Changed,
            list.clone(),
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "b"}, {"name": "a"}]),
        );
        let item = list.child(Segment::Item(vec![("name".into(), json!("a"))])).field("image");
        let image = sample::finding(pod(), Change::Changed, item, json!("a:1"), json!("a:2"));
        assert_eq!(
            body(vec![order, image]),
            [
                "@@ -1,7 +1,7 @@",
                " spec:",
                "   initContainers:",
                "+  - name: b",
                "   - name: a",
                "-  - name: b",
                "   initContainers:",
                "   - name: a",
                "-    image: a:1",
                "+    image: a:2",
            ]
        );
    }

    const ALL: &str = r##"diff Deployment/api (release prod/nucleus, nucleus/templates/deployment.yaml)
# .metadata.annotations["deployment.kubernetes.io/revision"]: deployment-controller: expected: controller
# .spec.replicas: kubectl (scale)
# .spec.template.spec.containers[name="api"].image: kubectl-edit
# .spec.template.spec.containers[name="debug"]: kubectl-edit
--- desired/Deployment/api   revision 12
+++ live/Deployment/api   deployment-controller 2026-11-30T09:48:30Z (11m), kubectl (scale) 2026-11-30T09:55:00Z (5m), kubectl-edit 2026-11-30T09:48:00Z (12m)
@@ -1,10 +1,15 @@
 metadata:
   annotations:
+    deployment.kubernetes.io/revision: "14"
 spec:
-  minReadySeconds: 10
-  replicas: 3
+  replicas: 6
   template:
     spec:
       containers:
       - name: api
-        image: registry.example.com/nucleus/api:1.4.2
+        image: registry.example.com/nucleus/api:1.4.3
+      - name: debug
+        command:
+        - sleep
+        - infinity
+        image: busybox:1.36
diff ConfigMap/settings (release prod/nucleus, nucleus/templates/settings.yaml)
# missing
diff Secret/api-keys (release prod/nucleus, nucleus/templates/keys.yaml)
# .data.token: applied-differently
--- desired/Secret/api-keys   revision 12
+++ live/Secret/api-keys   Lens 2026-11-27T08:00:00Z (3d2h)
@@ -1,2 +1,2 @@
 data:
-  token: "****"  # masked
+  token: "****"  # masked (changed)
diff Certificate/web (release prod/nucleus)
# .spec.dnsNames[="old.example.com"]: left-behind
--- desired/Certificate/web   revision 12
+++ live/Certificate/web   kubectl-edit 2026-11-30T09:48:00Z (12m)
@@ -1,2 +1,3 @@
 spec:
   dnsNames:
+  - old.example.com
diff Service/old (release prod/nucleus)
# left over
diff ClusterRole/prod-viewer (release prod/nucleus)
# .rules: forged-name
--- desired/ClusterRole/prod-viewer   revision 12
+++ live/ClusterRole/prod-viewer   helm 2026-11-30T09:59:50Z (10s)
@@ -1 +1 @@
 rules:
@@ -5,3 +5,4 @@
   - pods
   verbs:
   - get
+  - delete
diff HorizontalPodAutoscaler/api (release prod/nucleus)
# .spec.behavior: unverified: unattributed: changed while reading
--- desired/HorizontalPodAutoscaler/api   revision 12
+++ live/HorizontalPodAutoscaler/api
@@ -1 +1,3 @@
 spec:
+  behavior:
+    scaleDown: {}
diff Role/api (release prod/nucleus)
# not read: roles.rbac.authorization.k8s.io is forbidden: User "viewer" cannot get resource "roles"
diff StatefulSet/db (release prod/nucleus)
# .spec.replicas: ignored: scaled by the platform team
--- desired/StatefulSet/db   revision 12
+++ live/StatefulSet/db   kubectl-edit 2026-11-30T09:48:00Z (12m)
@@ -1,2 +1,2 @@
 spec:
-  replicas: 1
+  replicas: 2
"##;
    const COLOURED: &str = r#"^[1mdiff Deployment/api^[0m^[2m (release prod/nucleus)^[0m
^[1m--- desired/Deployment/api^[0m^[2m   revision 12^[0m
^[1m+++ live/Deployment/api^[0m^[2m   kubectl-edit 2026-11-30T09:48:00Z (12m)^[0m
^[36m@@ -1,2 +1,2 @@^[0m
 spec:
^[31m-^[0m^[31m  image: api:1.4.^[0m^[7m^[31m2^[0m
^[32m+^[0m^[32m  image: api:1.4.^[0m^[7m^[32m13^[0m
"#;
}
