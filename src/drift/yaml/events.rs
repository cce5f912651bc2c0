//! YAML text -> the parser's events, as Go's libyaml gives them. The only file that knows which parser is used.
//!
//! Knows nothing of values. libyaml-safer is a port of the C library, Go's reader a port of an older one; where the
//! two differ on text that charts may hold, the text is handed over with stand-ins and read back without them.
//!
//! Differences left: Go takes `,`, `[` and `]` into a tag inside a flow collection; it counts a key's limit of 1024
//! in characters, not bytes; it takes no version number longer than two digits; and it reads on only as far as it
//! needs, so a control character far behind `...` is no error there.

use std::borrow::Cow;
use std::collections::BTreeSet;

use libyaml_safer::{Encoding, EventData, MappingStyle, Parser, ScalarStyle, SequenceStyle};

use super::{Fault, YamlError};

/// What a document is made of. Anchors are names; tags have their long form.
pub(super) enum Event {
    Scalar { anchor: Option<String>, tag: Option<String>, plain: bool, text: String },
    Alias(String),
    Sequence { anchor: Option<String> },
    SequenceEnd,
    Mapping { anchor: Option<String> },
    MappingEnd,
}

/// One document's events in order, with 1-based lines. Another parser takes its place behind this.
pub(super) trait Events {
    /// `None` at the end of the first document: what follows is not read.
    fn next(&mut self) -> Result<Option<(Event, usize)>, YamlError>;
}

/// Characters that stand for others while the parser reads: (stand-in, meant).
type StandIns = Vec<(char, char)>;

/// The text as the parser gets it: ends in a line break, has no byte order mark.
pub(super) struct Source<'t> {
    text: Cow<'t, str>,
    stand_ins: StandIns,
    /// The last line had no break in the original.
    unterminated: bool,
    /// Bytes that may still be read again because of a repair.
    allowance: usize,
}

const REREAD_BYTES: usize = 64 << 20;
const BYTE_ORDER_MARK: char = '\u{feff}';

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str) -> Source<'t> {
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let unterminated = !text.ends_with('\n');
        // Without the break libyaml-safer panics inside block scalars.
        let text = if unterminated { Cow::Owned(format!("{text}\n")) } else { Cow::Borrowed(text) };
        let mut source = Source { text, stand_ins: Vec::new(), unterminated, allowance: REREAD_BYTES };
        if source.text.contains(BYTE_ORDER_MARK) {
            // Go keeps the mark as text; libyaml drops it at the beginning of a line.
            let stand_in = source.stand_in(BYTE_ORDER_MARK);
            source.text = Cow::Owned(source.text.replace(BYTE_ORDER_MARK, &stand_in.to_string()));
        }
        if source.text.contains("\\/") {
            // An unknown escape for Go, and plain text outside double quotes.
            let stand_in = source.stand_in('/');
            source.text = Cow::Owned(source.text.replace("\\/", &format!("\\{stand_in}")));
        }
        source
    }

    pub(super) fn events(&self) -> Libyaml<'_> {
        let mut parser = Parser::new();
        parser.set_encoding(Encoding::Utf8);
        parser.set_input(self.text.as_bytes());
        Libyaml { parser, source: self, flow: 0, stopped: None }
    }

    /// Rewrites what libyaml refused and Go takes. False when there is nothing of the kind: the error stands.
    pub(super) fn repair(&mut self, stopped: Option<Stopped>) -> bool {
        let Some(Stopped { problem, offset }) = stopped else { return false };
        let Some((before, after)) = self.text.split_at_checked(offset) else { return false };
        let Some(allowance) = self.allowance.checked_sub(self.text.len()) else { return false };
        let (meant, length) = match problem {
            // `"it\'s"`
            "found unknown escape character" if after.starts_with("\\'") => ('\'', quoted_length(after)),
            // `[a:, b]`
            "found unexpected ':'" if after.starts_with(':') => (':', 1),
            _ => return false,
        };
        let (broken, rest) = after.split_at_checked(length).unwrap_or((after, ""));
        let (before, broken, rest) = (before.to_owned(), broken.to_owned(), rest.to_owned());
        let stand_in = self.stand_in(meant);
        let mended = if meant == ':' { stand_in.to_string() } else { replace_quotes(&broken, stand_in) };
        self.text = Cow::Owned(before + &mended + &rest);
        self.allowance = allowance;
        true
    }

    /// A character that the text does not hold, nor escapes, one for each meaning.
    fn stand_in(&mut self, meant: char) -> char {
        if let Some((stand_in, _)) = self.stand_ins.iter().find(|(_, known)| *known == meant) {
            return *stand_in;
        }
        let private = '\u{e000}'..='\u{f8ff}';
        let mut taken: BTreeSet<char> = self.text.chars().filter(|char| private.contains(char)).collect();
        for (escape, digits) in [("\\u", 4), ("\\U", 8)] {
            let codes =
                self.text.split(escape).skip(1).filter_map(|text| u32::from_str_radix(text.get(..digits)?, 16).ok());
            taken.extend(codes.filter_map(char::from_u32));
        }
        taken.extend(self.stand_ins.iter().map(|(stand_in, _)| *stand_in));
        let stand_in = private.into_iter().find(|char| !taken.contains(char)).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.stand_ins.push((stand_in, meant));
        stand_in
    }
}

/// Bytes up to the end of a double-quoted scalar, from inside it.
fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// `\'` -> the stand-in, inside double quotes.
fn replace_quotes(quoted: &str, stand_in: char) -> String {
    let mut text = String::with_capacity(quoted.len());
    let mut chars = quoted.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some('\'')) => {
                chars.next();
                text.push(stand_in);
            }
            ('\\', Some(escaped)) => {
                text.extend([char, *escaped]);
                chars.next();
            }
            _ => text.push(char),
        }
    }
    text
}

/// Where the parser gave up: its own words and the byte.
pub(super) struct Stopped {
    problem: &'static str,
    offset: usize,
}

pub(super) struct Libyaml<'s> {
    parser: Parser<&'s [u8]>,
    source: &'s Source<'s>,
    /// Open flow collections. Block collections cannot open inside one.
    flow: usize,
    pub(super) stopped: Option<Stopped>,
}

impl Events for Libyaml<'_> {
    fn next(&mut self) -> Result<Option<(Event, usize)>, YamlError> {
        loop {
            let event = self.parser.parse().map_err(|error| self.error(&error))?;
            let line = line(event.start_mark.line);
            let next = match event.data {
                EventData::StreamStart { .. } => continue,
                EventData::DocumentStart { version_directive, .. } => {
                    if version_directive.is_some_and(|version| version.minor != 1) {
                        return Err(YamlError { line, fault: Fault::Version });
                    }
                    continue;
                }
                EventData::DocumentEnd { .. } | EventData::StreamEnd => return Ok(None),
                EventData::Alias { anchor } => Event::Alias(anchor),
                EventData::Scalar { anchor, tag, value, plain_implicit, style, .. } => {
                    // Go ends a plain scalar here and then misses the comma.
                    if self.flow > 0 && style == ScalarStyle::Plain && value.contains('?') {
                        return Err(YamlError { line, fault: Fault::Syntax("did not find expected ',' or ']'") });
                    }
                    let text = self.text(value, style, event.end_mark.index);
                    Event::Scalar { anchor, tag, plain: plain_implicit, text }
                }
                EventData::SequenceStart { anchor, style, .. } => {
                    self.flow += usize::from(style == SequenceStyle::Flow);
                    Event::Sequence { anchor }
                }
                EventData::MappingStart { anchor, style, .. } => {
                    self.flow += usize::from(style == MappingStyle::Flow);
                    Event::Mapping { anchor }
                }
                EventData::SequenceEnd => {
                    self.flow = self.flow.saturating_sub(1);
                    Event::SequenceEnd
                }
                EventData::MappingEnd => {
                    self.flow = self.flow.saturating_sub(1);
                    Event::MappingEnd
                }
            };
            return Ok(Some((next, line)));
        }
    }
}

impl Libyaml<'_> {
    /// The scalar as written: without stand-ins, and without the line break we added.
    fn text(&self, mut text: String, style: ScalarStyle, end: u64) -> String {
        let source = self.source;
        for (stand_in, meant) in &source.stand_ins {
            if text.contains(*stand_in) {
                text = text.replace(*stand_in, meant.encode_utf8(&mut [0; 4]));
            }
        }
        // A last line of nothing but blanks is left alone: mostly it belongs to no scalar. Streams never get here.
        let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if block && source.unterminated && end >= source.text.len() as u64 {
            let last = source.text.trim_end_matches('\n').rsplit('\n').next();
            if last.is_some_and(|last| !last.trim_matches(' ').is_empty()) && text.ends_with('\n') {
                text.pop();
            }
        }
        text
    }

    fn error(&mut self, error: &libyaml_safer::Error) -> YamlError {
        let fault = Fault::Syntax(error.problem());
        let Some(mark) = error.problem_mark() else {
            // The reader names no line. It stops at characters YAML does not allow.
            let before = self.source.text.split(|char: char| !is_allowed(char)).next().unwrap_or_default();
            return YamlError { line: before.matches('\n').count() + 1, fault };
        };
        self.stopped = usize::try_from(mark.index).ok().map(|offset| Stopped { problem: error.problem(), offset });
        YamlError { line: line(mark.line), fault }
    }
}

fn line(mark: u64) -> usize {
    usize::try_from(mark).unwrap_or(usize::MAX).saturating_add(1)
}

fn is_allowed(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}
