//! Characters that must not reach a terminal as they are: controls, which could drive it, and invisible ones, which could
//! deceive its reader. Knows nothing of what the text says.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character is a control or cannot be seen: C0, DEL, C1, line separators, directional marks and overrides
/// (<https://trojansource.codes>), zero-width and no-break spaces, tag characters.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// For people: hidden characters as text, `\n`, `\x1b` or `\u{202e}`.
///
/// Backslashes stay as they are, so escaping twice changes nothing.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    replace(text, |c, out| {
        let _ = match c {
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            _ if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
            _ => write!(out, "\\u{{{:x}}}", u32::from(c)),
        };
    })
}

/// For JSON text as it stands: newlines between its tokens stay, and hidden characters, which are inside its strings, become `\u202e`.
/// serde_json itself escapes C0 alone.
pub(crate) fn escape_json(text: &str) -> Cow<'_, str> {
    replace_unless_newline(text, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// As [`escape_json`], for JSON text that will be read as YAML, where surrogates are an error and `\U000e0001` is right.
pub(crate) fn escape_yaml(text: &str) -> Cow<'_, str> {
    replace_unless_newline(text, |c, out| {
        let code = u32::from(c);
        let _ = if code <= 0xffff { write!(out, "\\u{code:04x}") } else { write!(out, "\\U{code:08x}") };
    })
}

fn replace_unless_newline(text: &str, each: impl Fn(char, &mut String)) -> Cow<'_, str> {
    replace(text, |c, out| if c == '\n' { out.push(c) } else { each(c, out) })
}

fn replace(text: &str, each: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            each(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_drive_a_terminal_or_deceive_a_reader_is_written_out() {
        for (text, seen) in [
            ("plain ünïcode → ✓ 日本", "plain ünïcode → ✓ 日本"),
            ("\u{1b}[31mred\u{7}", r"\x1b[31mred\x07"),
            ("a\nb\tc\r", r"a\nb\tc\r"),
            ("\u{7f}\u{9b}31m", r"\x7f\x9b31m"),
            ("nginx\u{202e}42.1\u{2066}", r"nginx\u{202e}42.1\u{2066}"),
            ("zero\u{200b}width\u{feff} no\u{a0}break", r"zero\u{200b}width\u{feff} no\xa0break"),
            ("line\u{2028}para\u{2029}", r"line\u{2028}para\u{2029}"),
            ("tag\u{e0041}", r"tag\u{e0041}"),
        ] {
            assert_eq!(escape(text), seen);
            assert_eq!(escape(seen), seen, "twice is once");
        }
    }

    #[test]
    fn escaped_json_means_the_same() {
        let text = "a\u{9b}b\u{202e}c\u{e0041}d\u{1b}\n";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let escaped = escape_json(&json);
        assert!(escaped.chars().all(|c| c == '\n' || !is_hidden(c)), "{escaped}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&escaped).unwrap(), [text]);
        let yaml = escape_yaml(&json);
        assert!(yaml.chars().all(|c| c == '\n' || !is_hidden(c)), "{yaml}");
        assert_eq!(serde_saphyr::from_str::<Vec<String>>(&yaml).unwrap(), [text]);
    }
}
