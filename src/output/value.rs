//! Values in one line of a list: what is desired and what is live, short enough to be compared at a glance. Knows nothing of where they are.

use std::time::{Duration, Instant};

use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::drift::finding::Shown;

use super::line::{cut_end, width};

/// kubectl's word for what is not there.
pub(crate) const NONE: &str = "<none>";
pub(crate) const ARROW: &str = " → ";
const MASK: &str = "••••";

/// Two long texts are compared no longer than this; what is not aligned by then counts as different.
const PATIENCE: Duration = Duration::from_millis(200);

/// The two sides of a finding, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) desired: String,
    pub(crate) live: String,
    /// Where in a text of several lines: `line 12: `.
    pub(crate) place: String,
    /// What the two texts leave out: `masked`.
    pub(crate) hint: Option<String>,
}

impl Pair {
    pub(crate) fn new(desired: &Shown, live: &Shown) -> Self {
        match (desired, live) {
            (Shown::Plain(Value::String(desired)), Shown::Plain(Value::String(live)))
                if desired.contains('\n') || live.contains('\n') =>
            {
                Self::of_lines(desired, live)
            }
            _ => Self { desired: side(desired), live: side(live), place: String::new(), hint: hint(desired, live) },
        }
    }

    /// The first lines that differ, and how many do.
    fn of_lines(desired: &str, live: &str) -> Self {
        let old: Vec<&str> = desired.split_inclusive('\n').collect();
        let new: Vec<&str> = live.split_inclusive('\n').collect();
        let deadline = Instant::now().checked_add(PATIENCE);
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
        let differing = |op: &DiffOp| !matches!(op, DiffOp::Equal { .. });
        let total: usize =
            ops.iter().filter(|op| differing(op)).map(|op| op.old_range().len().max(op.new_range().len())).sum();
        let Some(first) = ops.iter().find(|op| differing(op)) else {
            return Self { desired: text(desired), live: text(live), ..Self::default() };
        };
        let (was, is) = (old.get(first.old_range().start), new.get(first.new_range().start));
        let (was, is) = (was.filter(|_| !first.old_range().is_empty()), is.filter(|_| !first.new_range().is_empty()));
        let same_but_newline =
            matches!((was, is), (Some(a), Some(b)) if a.trim_end_matches('\n') == b.trim_end_matches('\n'));
        let line = |line: Option<&&str>| match line {
            Some(line) if same_but_newline => text(line),
            Some(line) => text(line.trim_end_matches('\n')),
            None => NONE.to_owned(),
        };
        let number = if was.is_some() { first.old_range().start } else { first.new_range().start } + 1;
        Self { desired: line(was), live: line(is), place: format!("line {number}: "), hint: more_lines(total) }
    }

    pub(crate) fn width(&self) -> usize {
        width(&self.place) + width(&self.desired) + width(ARROW) + width(&self.live) + self.hint_width()
    }

    fn hint_width(&self) -> usize {
        self.hint.as_ref().map_or(0, |hint| width(hint) + 3)
    }

    /// In at most `room` columns: first goes what both sides begin with, then the hint, then the ends.
    pub(crate) fn fit(mut self, room: usize) -> Self {
        if self.width() <= room {
            return self;
        }
        self.drop_common_start();
        if self.width() <= room {
            return self;
        }
        let fixed = width(&self.place) + width(ARROW);
        if let Some(hint) = &self.hint {
            // That a value is masked is said while there is room for a word.
            self.hint =
                hint.split_once(',').map(|(word, _)| word.to_owned()).filter(|word| fixed + width(word) + 11 <= room);
        }
        let room = room.saturating_sub(fixed + self.hint_width());
        let (desired, live) = (width(&self.desired), width(&self.live));
        let half = room / 2;
        let (desired, live) = if desired <= half {
            (desired, room - desired)
        } else if live <= half {
            (room - live, live)
        } else {
            (half, room - half)
        };
        self.desired = cut_end(&self.desired, desired);
        self.live = cut_end(&self.live, live);
        self
    }

    /// `registry.example/team/api:1.4` and `…/api:1.5` say as `…api:1.4` and `…api:1.5` what differs.
    fn drop_common_start(&mut self) {
        if self.desired == NONE || self.live == NONE {
            return;
        }
        let mut kept_from = 0;
        for ((index, a), b) in self.desired.char_indices().zip(self.live.chars()) {
            if a != b {
                break;
            }
            // The word that differs stays whole.
            if matches!(a, '/' | ',' | ' ' | '=' | '{' | '[') {
                kept_from = index + a.len_utf8();
            }
        }
        let start = self.desired.get(..kept_from).unwrap_or_default();
        if width(start) > 2 {
            self.live = format!("…{}", self.live.get(kept_from..).unwrap_or_default());
            self.desired = format!("…{}", self.desired.get(kept_from..).unwrap_or_default());
        }
    }
}

fn side(side: &Shown) -> String {
    match side {
        Shown::Absent => NONE.to_owned(),
        Shown::Masked { .. } => MASK.to_owned(),
        Shown::Plain(Value::String(lines)) if lines.trim_end_matches('\n').contains('\n') => {
            text(lines.lines().next().unwrap_or_default())
        }
        Shown::Plain(value) => plain(value),
    }
}

fn hint(desired: &Shown, live: &Shown) -> Option<String> {
    match (desired, live) {
        // Without a length: that of a short secret tells too much, that of a captured one is its token's.
        (Shown::Masked { .. }, _) | (_, Shown::Masked { .. }) => Some("masked".to_owned()),
        (Shown::Plain(Value::String(lines)), _) | (_, Shown::Plain(Value::String(lines))) => {
            more_lines(lines.lines().count())
        }
        _ => None,
    }
}

fn more_lines(total: usize) -> Option<String> {
    match total {
        0 | 1 => None,
        2 => Some("and 1 more line".to_owned()),
        _ => Some(format!("and {} more lines", total - 1)),
    }
}

/// JSON on one line; strings bare when nobody could take them for something else.
fn plain(value: &Value) -> String {
    match value {
        Value::String(string) => text(string),
        _ => value.to_string(),
    }
}

fn text(string: &str) -> String {
    let misleading = string.is_empty()
        || string == NONE
        || string == MASK
        || string.starts_with(' ')
        || string.ends_with(' ')
        || string.starts_with(['"', '{', '[', '…'])
        || string.contains(ARROW)
        || string.chars().any(super::escape::is_hidden)
        || serde_json::from_str::<Value>(string).is_ok();
    if misleading { Value::from(string).to_string() } else { string.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(value: &Value) -> Shown {
        if value.is_null() { Shown::Absent } else { Shown::Plain(value.clone()) }
    }

    fn seen(desired: &Shown, live: &Shown) -> String {
        written(&Pair::new(desired, live))
    }

    fn written(pair: &Pair) -> String {
        let hint = pair.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}{}{ARROW}{}{hint}", pair.place, pair.desired, pair.live)
    }

    #[test]
    fn values_are_bare_unless_they_could_be_misread() {
        for (desired, live, want) in [
            (json!(3), json!(6), "3 → 6"),
            (json!("nginx:1.27"), json!("nginx:1.28"), "nginx:1.27 → nginx:1.28"),
            (json!("3"), json!(3), r#""3" → 3"#),
            (json!("true"), json!(true), r#""true" → true"#),
            (json!(""), json!(null), r#""" → <none>"#),
            (json!("<none>"), json!(null), r#""<none>" → <none>"#),
            (json!("a "), json!("a"), r#""a " → a"#),
            (
                json!(null),
                json!({"name": "debug", "image": "busybox"}),
                r#"<none> → {"image":"busybox","name":"debug"}"#,
            ),
            (json!(["a"]), json!(["a", "b"]), r#"["a"] → ["a","b"]"#),
        ] {
            assert_eq!(seen(&shown(&desired), &shown(&live)), want);
        }
    }

    #[test]
    fn of_texts_the_first_line_that_differs_is_shown() {
        for (desired, live, want) in [
            (json!("a=1\nb=2\nc=3\n"), json!("a=1\nb=9\nc=3\n"), "line 2: b=2 → b=9"),
            (json!("a=1\nb=2\nc=3\n"), json!("a=1\nb=9\nc=8\nd=1\n"), "line 2: b=2 → b=9 (and 2 more lines)"),
            (json!("a\nb\n"), json!("a\nb"), r#"line 2: "b\n" → b"#),
            (json!("a\nb\n"), json!("a\n"), "line 2: b → <none>"),
            (json!("a\n"), json!("a\n\nb\n"), r#"line 2: <none> → "" (and 1 more line)"#),
            (json!("a\nb\nc"), json!(null), "a → <none> (and 2 more lines)"),
            (json!(null), json!("one\n"), r#"<none> → "one\n""#),
        ] {
            assert_eq!(seen(&shown(&desired), &shown(&live)), want);
        }
    }

    #[test]
    fn masked_values_tell_their_length_alone() {
        assert_eq!(seen(&Shown::Masked { bytes: 12 }, &Shown::Masked { bytes: 13 }), "•••• → •••• (masked)");
        assert_eq!(seen(&Shown::Masked { bytes: 12 }, &Shown::Masked { bytes: 12 }), "•••• → •••• (masked)");
        assert_eq!(seen(&Shown::Absent, &Shown::Masked { bytes: 1 }), "<none> → •••• (masked)");
    }

    #[test]
    fn a_pair_that_does_not_fit_keeps_what_differs() {
        let image = |tag: &str| shown(&json!(format!("registry.example.com/platform/nucleus/api:{tag}")));
        let pair = Pair::new(&image("1.4.2"), &image("1.4.3"));
        assert_eq!(written(&pair.clone().fit(40)), "…api:1.4.2 → …api:1.4.3");
        assert_eq!(written(&pair.fit(20)), "…api:1.… → …api:1.4…");
        let long = Pair::new(
            &Shown::Absent,
            &shown(&json!({"image": "busybox", "name": "debug", "command": ["sleep", "infinity"]})),
        );
        assert_eq!(written(&long.fit(30)), r#"<none> → {"command":["sleep",…"#);
        for room in 0..60 {
            let pair = Pair::new(&image("1.4.2"), &image("2.0"));
            assert!(pair.fit(room).width() <= room.max(3), "{room}");
        }
    }
}
