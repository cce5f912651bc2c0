//! One line of output: pieces of text with their colours, padded, cut and wrapped by display width. Knows nothing of reports.
//! Everything for people is written through a [`Line`], which escapes what must not reach a terminal.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::escape::escape;

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const ALARM: Style = AnsiColor::Red.on_default().bold();

/// Blanks between two columns, as kubectl has them.
pub(crate) const GAP: usize = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    parts: Vec<(Style, String)>,
    width: usize,
    /// Blanks owed before the next piece; a line never ends in them.
    owed: usize,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn push(&mut self, style: Style, text: &str) -> &mut Self {
        if text.is_empty() {
            return self;
        }
        if self.owed > 0 {
            self.parts.push((PLAIN, " ".repeat(self.owed)));
            self.width += self.owed;
            self.owed = 0;
        }
        let text = escape(text).into_owned();
        self.width += text.width();
        self.parts.push((style, text));
        self
    }

    /// The next piece starts at this column, or [`GAP`] blanks further when the line is already there.
    pub(crate) fn pad_to(&mut self, column: usize) -> &mut Self {
        self.owed = if self.width == 0 { column } else { column.saturating_sub(self.width).max(GAP) };
        self
    }

    pub(crate) fn blanks(&mut self, count: usize) -> &mut Self {
        self.owed += count;
        self
    }

    /// Cuts what lies beyond `width`; the last column then shows `…`.
    pub(crate) fn cut(&mut self, width: usize) -> &mut Self {
        if self.width <= width {
            return self;
        }
        let mut left = width;
        let mut kept = Vec::new();
        for (style, text) in self.parts.drain(..) {
            let wide = text.width();
            // A piece that just fits still loses its end when more follows: the mark needs a column.
            if wide < left {
                left -= wide;
                kept.push((style, text));
            } else {
                kept.push((style, cut_end(&format!("{text}…"), left)));
                break;
            }
        }
        self.parts = kept;
        self.width = self.parts.iter().map(|(_, text)| text.width()).sum();
        self
    }

    /// With its newline.
    pub(crate) fn write(&self, out: &mut dyn Write, color: bool) -> io::Result<()> {
        for (style, text) in &self.parts {
            if color && *style != PLAIN {
                write!(out, "{}{text}{}", style.render(), style.render_reset())?;
            } else {
                out.write_all(text.as_bytes())?;
            }
        }
        out.write_all(b"\n")
    }
}

/// Columns that a text takes once it is escaped.
pub(crate) fn width(text: &str) -> usize {
    escape(text).width()
}

/// The beginning of an escaped text, with `…` where it was cut.
pub(crate) fn cut_end(text: &str, width: usize) -> String {
    let text = escape(text);
    if text.width() <= width {
        return text.into_owned();
    }
    fitting(text.chars(), width).into_iter().collect()
}

/// The end of an escaped text, with `…` where it was cut: of a path, the end says most.
pub(crate) fn cut_start(text: &str, width: usize) -> String {
    let text = escape(text);
    if text.width() <= width {
        return text.into_owned();
    }
    fitting(text.chars().rev(), width).into_iter().rev().collect()
}

/// The first of these characters, then `…`: together no wider than `width`.
fn fitting(chars: impl Iterator<Item = char>, width: usize) -> Vec<char> {
    let mut kept = Vec::new();
    let mut used = 1;
    for c in chars {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// Breaks an escaped text at blanks, into lines of at most `width` columns where words allow it. A command between
/// backticks stays in one piece, to be copied.
pub(crate) fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let text = escape(text);
    let Some(width) = width else { return vec![text.into_owned()] };
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut in_command = false;
    let words = text.split(|c| {
        in_command ^= c == '`';
        c == ' ' && !in_command
    });
    for word in words {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &Line, color: bool) -> String {
        let mut out = Vec::new();
        line.write(&mut out, color).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_padded_by_display_width_and_never_ends_in_blanks() {
        let mut line = Line::new();
        line.push(BOLD, "日本").pad_to(8).push(PLAIN, "x").pad_to(20).push(RED, "");
        assert_eq!(written(&line, false), "日本    x\n");
        assert_eq!(written(&line, true), "\u{1b}[1m日本\u{1b}[0m    x\n");
    }

    #[test]
    fn what_is_pushed_is_escaped() {
        let mut line = Line::new();
        line.push(PLAIN, "\u{1b}[2J\n\u{202e}");
        assert_eq!(written(&line, true), "\\x1b[2J\\n\\u{202e}\n");
        assert_eq!(line.width, 17);
    }

    #[test]
    fn cuts_mark_themselves() {
        assert_eq!(cut_end("abcdef", 6), "abcdef");
        assert_eq!(cut_end("abcdef", 4), "abc…");
        assert_eq!(cut_end("日本語", 4), "日…");
        assert_eq!(cut_end("abc", 0), "");
        assert_eq!(cut_start(".spec.template.spec", 8), "…te.spec");
        let mut line = Line::new();
        line.push(PLAIN, "abc").push(RED, "def").push(PLAIN, "ghi");
        assert_eq!(written(line.clone().cut(5), false), "abcd…\n");
        assert_eq!(written(line.clone().cut(6), false), "abcde…\n");
        assert_eq!(written(line.cut(9), false), "abcdefghi\n");
    }

    #[test]
    fn wrapping_keeps_every_word() {
        assert_eq!(wrap("one two three", Some(8)), ["one two", "three"]);
        assert_eq!(wrap("unbreakable word", Some(4)), ["unbreakable", "word"]);
        assert_eq!(wrap("one two three", None), ["one two three"]);
        assert_eq!(wrap("wait, or `helm rollback web 1` it", Some(16)), ["wait, or", "`helm rollback web 1`", "it"]);
    }
}
