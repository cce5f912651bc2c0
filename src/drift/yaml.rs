//! YAML text -> values exactly as Helm reads them: the stream's documents, and one document by itself.
//!
//! Knows nothing of Kubernetes objects: what a document means, or if it is an object at all, is the caller's
//! business. "YAML 1.1" or "1.2" is no description of what Helm takes, so the rules are Go's own: the line reader of
//! k8s.io/apimachinery `pkg/util/yaml`, sigs.k8s.io/yaml and go.yaml.in/yaml/v2, down to `1e3` being an integer.
//!
//! The text is the tenant's. Depth, aliases and the parser's own panics are bounded here, and no error repeats what
//! the text says, as it may be a Secret's.

mod build;
mod events;
mod scalar;

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use thiserror::Error;

use build::{Built, Limits, build};
use events::Source;

/// One document of a manifest stream that holds something (empty, comment-only and null documents are skipped).
#[derive(Clone, PartialEq)]
pub(crate) struct Document {
    /// Numbers are `i64` where Helm sends an integer, else `f64`.
    pub(crate) value: Value,
    /// The template, from the last `# Source: ` comment at the beginning of a line.
    pub(crate) source: Option<String>,
    /// Keys given more than once, of which the last counts: `.spec.containers[0].env`. Each path once, and only the
    /// first hundred or so.
    pub(crate) duplicate_keys: Vec<String>,
    /// Where the value begins in the stream, 1-based.
    pub(crate) line: usize,
}

/// Without the value, which may be a Secret.
impl fmt::Debug for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Document")
            .field("source", &self.source)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// A document that Helm could not read either. The others of the stream are not affected, though Helm stops here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentError {
    /// Where reading failed in the stream, 1-based, as `error` has it.
    pub(crate) line: usize,
    /// As `Document::source`.
    pub(crate) source: Option<String>,
    pub(crate) error: YamlError,
}

// By hand: thiserror takes a field named `source` for the cause.
impl std::error::Error for DocumentError {}

impl fmt::Display for DocumentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(formatter, "{source}: {}", self.error),
            None => self.error.fmt(formatter),
        }
    }
}

/// Why a text is not read, and where in it (1-based).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("line {line}: {fault}")]
pub(crate) struct YamlError {
    pub(crate) line: usize,
    pub(crate) fault: Fault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Fault {
    /// In libyaml's words, which quote nothing.
    #[error("{0}")]
    Syntax(&'static str),
    /// Helm takes a stream that began with two JSON objects for JSON to its end.
    #[error("neither a JSON object nor the end of the JSON stream")]
    Json,
    #[error("only blanks or a comment may follow the document separator `---`")]
    Separator,
    #[error("found incompatible YAML document: Helm takes %YAML 1.1 only")]
    Version,
    #[error("value does not fit its tag {0}")]
    Tag(&'static str),
    #[error("!!binary value contains invalid base64 data")]
    Binary,
    #[error("number is infinite or not a number")]
    NotFinite,
    #[error("a map key must be a string, a boolean or a number of at most 64 bits")]
    Key,
    #[error("map merge requires map or sequence of maps as the value")]
    Merge,
    #[error("unknown anchor referenced")]
    UnknownAnchor,
    #[error("anchor value contains itself")]
    Cycle,
    #[error("document contains excessive aliasing")]
    Aliases,
    #[error("nested too deeply")]
    Depth,
    /// A defect of the YAML library, contained.
    #[error("the YAML parser broke off")]
    Parser,
}

/// Splits a stream as Helm's reader does and reads each document. One bad document never hides the others.
///
/// Shape: in the order of the stream. A separator with text behind it is an error of its own; the lines after it
/// are the next document.
/// Source: k8s.io/apimachinery `pkg/util/yaml/decoder.go`. One defect of it is left out: there a last line without
/// a line break vanishes when its length is a multiple of 4096 (helm/helm#32506).
pub(crate) fn documents(text: &str) -> Vec<Result<Document, DocumentError>> {
    let mut reader = Reader { results: Vec::new(), limits: Limits::default() };
    let content = text.trim_start();
    // Helm looks no further than this for the brace.
    let json = content.starts_with('{') && text.len() - content.len() < 4096;
    let rest = if json { reader.json(text) } else { Some((text, 0)) };
    if let Some((rest, lines)) = rest {
        reader.stream(rest, lines);
    }
    reader.results
}

/// One document, as sigs.k8s.io/yaml's `YAMLToJSON` and apimachinery's int64/float64 pass make it. What follows the
/// first document is not read; no document is `Null`.
#[cfg(test)]
pub(crate) fn value(text: &str) -> Result<Value, YamlError> {
    read(text, &mut Limits::default()).map(|built| built.value)
}

fn read(text: &str, limits: &mut Limits) -> Result<Built, YamlError> {
    // libyaml-safer 0.3.0 panics on a few malformed texts (its issues 6 and 7). Nothing outlives the closure but the
    // limits, two numbers.
    catch_unwind(AssertUnwindSafe(|| {
        let mut source = Source::new(text);
        let granted = *limits;
        loop {
            *limits = granted;
            let mut events = source.events();
            let result = build(&mut events, limits);
            let stopped = events.stopped.take();
            drop(events);
            if result.is_ok() || !source.repair(stopped) {
                return result;
            }
        }
    }))
    .unwrap_or(Err(YamlError { line: 1, fault: Fault::Parser }))
}

/// Keys given twice, as far as they are worth listing: paths are long and such keys may be many.
#[derive(Debug, Default)]
struct Duplicates {
    paths: Vec<String>,
    bytes: usize,
    found: usize,
}

impl Duplicates {
    fn wanted(&self) -> bool {
        self.paths.len() < 100 && self.bytes < 16 << 10 && self.found < 1000
    }

    fn add(&mut self, path: String) {
        self.found += 1;
        if !self.paths.contains(&path) {
            self.bytes += path.len();
            self.paths.push(path);
        }
    }
}

struct Reader {
    results: Vec<Result<Document, DocumentError>>,
    /// For the whole stream, as many small documents copy as much as a large one.
    limits: Limits,
}

impl Reader {
    /// `before`: lines of the stream before `text`.
    fn stream(&mut self, text: &str, before: usize) {
        let mut begin = 0;
        let mut begin_line = before;
        let mut end = 0;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let line_begin = end;
            end += line.len();
            let Some(rest) = line.strip_prefix("---") else { continue };
            let rest = rest.trim();
            let valid = rest.is_empty() || rest.starts_with('#');
            // The first separator stays in its document, as the reader's buffer is empty; it matters for directives.
            if valid && begin == line_begin {
                continue;
            }
            self.chunk(text.get(begin..line_begin).unwrap_or_default(), begin_line);
            if !valid {
                self.fail(before + number + 1, Fault::Separator);
            }
            begin = end;
            begin_line = before + number + 1;
        }
        self.chunk(text.get(begin..).unwrap_or_default(), begin_line);
    }

    /// One document. `before`: lines of the stream before it.
    fn chunk(&mut self, chunk: &str, before: usize) {
        let mut text = match chunk.contains('\r') {
            true => Cow::Owned(chunk.replace("\r\n", "\n")),
            false => Cow::Borrowed(chunk),
        };
        if !text.ends_with('\n') {
            text.to_mut().push('\n');
        }
        let source = || {
            let mut comments = text.lines().filter_map(|line| line.strip_prefix("# Source: "));
            comments.next_back().map(|source| source.trim().to_owned())
        };
        match read(&text, &mut self.limits) {
            Ok(Built { value: Value::Null, .. }) => {}
            Ok(Built { value, duplicates, line }) => self.results.push(Ok(Document {
                value,
                source: source(),
                duplicate_keys: duplicates.paths,
                line: before + line,
            })),
            Err(YamlError { line, fault }) => {
                let error = YamlError { line: before + line, fault };
                self.results.push(Err(DocumentError { line: error.line, source: source(), error }));
            }
        }
    }

    /// Reads JSON values until one fails. The rest is YAML, with the lines before it: at most one value was read and
    /// the stream may still be either, or Helm gives up here and we go on at the next separator.
    fn json<'t>(&mut self, text: &'t str) -> Option<(&'t str, usize)> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let (mut rest, mut lines, mut count) = (text, 0, 0);
        while let Ok(value) = values.next()? {
            let (json, after) = rest.split_at_checked(values.byte_offset() - (text.len() - rest.len()))?;
            let line = lines + 1 + line_breaks(json.strip_suffix(json.trim_start()).unwrap_or_default());
            match integers(value) {
                Ok(Value::Null) => {}
                Ok(value) => {
                    // Read once more for its keys: serde_json keeps the last of equal ones, as Go does, but silently.
                    let duplicates = read(json, &mut self.limits).map(|built| built.duplicates).unwrap_or_default();
                    let duplicate_keys = duplicates.paths;
                    self.results.push(Ok(Document { value, source: None, duplicate_keys, line }));
                }
                Err(fault) => self.fail(line, fault),
            }
            (rest, lines, count) = (after, lines + line_breaks(json), count + 1);
        }
        if count > 1 {
            self.fail(lines + 1, Fault::Json);
            let separator = rest.find("\n---")? + 1;
            lines += line_breaks(rest.get(..separator)?);
            rest = rest.get(separator..)?;
        } else if let Some((_, after)) = rest.split_once('\n').filter(|(blank, _)| blank.trim().is_empty()) {
            (rest, lines) = (after, lines + 1);
        }
        Some((rest, lines))
    }

    fn fail(&mut self, line: usize, fault: Fault) {
        self.results.push(Err(DocumentError { line, source: None, error: YamlError { line, fault } }));
    }
}

fn line_breaks(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// JSON's numbers as the API server gets them from Helm. No deeper than serde_json reads.
fn integers(value: Value) -> Result<Value, Fault> {
    Ok(match value {
        Value::Number(number) if !number.is_i64() => scalar::float_value(number.as_f64().unwrap_or(f64::NAN))?,
        Value::Array(items) => Value::Array(items.into_iter().map(integers).collect::<Result<_, _>>()?),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| Ok((key, integers(value)?))).collect::<Result<_, _>>()?)
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SCALARS: &str = include_str!("../../tests/data/yaml/scalars.tsv");
    const DOCUMENTS: &str = include_str!("../../tests/data/yaml/documents.tsv");

    /// A row's input with `\n`, `\t` and `\\` written out; other backslashes are the input's own.
    fn unescape(text: &str) -> String {
        let mut chars = text.chars().peekable();
        let mut written = String::new();
        while let Some(char) = chars.next() {
            let meant = match (char, chars.peek()) {
                ('\\', Some('n')) => '\n',
                ('\\', Some('t')) => '\t',
                ('\\', Some('\\')) => '\\',
                _ => {
                    written.push(char);
                    continue;
                }
            };
            written.push(meant);
            chars.next();
        }
        written
    }

    /// Rows of documents.tsv that are text: (line number, input, answer). Line 138 is UTF-16 and line 148 no UTF-8:
    /// there the table shows kubectl's file reader, while a manifest reaches us, and Helm, as a JSON string.
    fn document_rows() -> impl Iterator<Item = (usize, String, &'static str)> {
        DOCUMENTS.lines().zip(1..).filter_map(|(row, number)| {
            let (input, answer) = row.split_once('\t')?;
            let text = String::from_utf8(STANDARD.decode(input).ok()?).ok()?;
            Some((number, text, answer))
        })
    }

    fn values(text: &str) -> Vec<Result<Value, Fault>> {
        let values = documents(text).into_iter();
        values.map(|document| document.map(|document| document.value).map_err(|error| error.error.fault)).collect()
    }

    fn fault(text: &str) -> Option<Fault> {
        value(text).err().map(|error| error.fault)
    }

    #[test]
    fn every_scalar_of_the_table_is_what_helm_sends() {
        let mut rows = 0;
        for row in SCALARS.lines() {
            let mut columns = row.split('\t');
            let (input, json) = (unescape(columns.next().unwrap()), columns.next().unwrap());
            let read = value(&input);
            if json.starts_with("ERROR") {
                assert!(read.is_err(), "{input:?}: {read:?}, but Helm says {json}");
            } else {
                let sent = integers(serde_json::from_str(columns.next().unwrap()).unwrap()).unwrap();
                assert_eq!(read, Ok(sent), "{input:?}");
            }
            rows += 1;
        }
        assert_eq!(rows, 329);
    }

    #[test]
    fn every_stream_of_the_table_is_read_as_helm_does() {
        let mut rows = 0;
        for (number, text, answer) in document_rows() {
            let (objects, rest): (Vec<_>, Vec<_>) =
                documents(&text).into_iter().partition(|read| matches!(read, Ok(read) if read.value["kind"] == "Foo"));
            let specs: Vec<_> = objects.into_iter().map(|read| read.unwrap().value["spec"].clone()).collect();
            rows += 1;
            let Ok(answer) = serde_json::from_str::<Value>(answer) else {
                // Deeper than serde_json reads.
                assert_eq!(json!({ "ok": Value::Array(specs) }).to_string(), answer.replace(' ', ""), "row {number}");
                continue;
            };
            // What has no kind, kubectl refuses only after reading it.
            assert_eq!(!rest.is_empty(), answer.get("err").is_some(), "row {number}: {text:?}: {rest:?}");
            if let Some(ok) = answer.get("ok") {
                assert_eq!(Value::Array(specs), integers(ok.clone()).unwrap(), "row {number}: {text:?}");
            }
        }
        assert_eq!(rows, 196);
    }

    #[test]
    fn integers_stay_exact_and_larger_numbers_become_floats() {
        let numbers = "[9007199254740993, 9223372036854775807, 9223372036854775808, 1e3, 1.0, -0.0, 1e21, 2e18]";
        let read =
            json!([9007199254740993_i64, i64::MAX, 9223372036854775808.0, 1000, 1, 0, 1e21, 2000000000000000000_i64]);
        assert_eq!(value(numbers), Ok(read.clone()));
        let Value::Array(read) = read else { panic!("a list") };
        assert_eq!(read.iter().filter(|number| number.is_f64()).count(), 2);
        // The shortest digits, as Go writes them, not the float's exact 4611686018427387904.
        assert_eq!(value("4611686018427387904.0"), Ok(json!(4611686018427388000_i64)));
    }

    #[test]
    fn keys_become_text_as_sigs_yaml_writes_them() {
        let keys = "{1: a, 010: b, 1.50: c, yes: d, off: e, 3.14159265358979: f, 1234567.0: g, 0.00001: h, -.inf: i, -317204.63: j}";
        assert_eq!(
            value(keys),
            Ok(
                json!({"1": "a", "8": "b", "1.5": "c", "true": "d", "false": "e", "3.1415927": "f", "1.234567e+06": "g",
                "1e-05": "h", "-.inf": "i", "-317204.62": "j"})
            )
        );
        for key in ["~", "18446744073709551615", "[a]", "{a: b}"] {
            assert_eq!(fault(&format!("? {key}\n: 1")), Some(Fault::Key), "{key}");
        }
    }

    #[test]
    fn the_last_of_equal_keys_wins_whole_and_is_listed_once() {
        let text = "data: {a: 1, b: 2}\nspec:\n  - x: {k: 1}\n    x: {l: 2}\n    x: {m: 3}\ndata: {c: 3}\n";
        let read = documents(text).remove(0).unwrap();
        assert_eq!(read.value, json!({"data": {"c": 3}, "spec": [{"x": {"m": 3}}]}));
        assert_eq!(read.duplicate_keys, [".spec[0].x", ".data"]);
    }

    #[test]
    fn keys_that_are_equal_only_as_text_are_listed_too() {
        let read = documents("1: a\n\"1\": b\ny: c\n\"true\": d\n").remove(0).unwrap();
        assert_eq!(read.value, json!({"1": "b", "true": "d"}));
        assert_eq!(read.duplicate_keys, [".1", ".true"]);
    }

    #[test]
    fn merge_keys_apply_in_place_and_are_no_duplicates() {
        let text = "b: &b {x: 1, z: 2}\nbefore: {x: 9, <<: *b}\nafter: {<<: *b, x: 9}\n\
                    list: {<<: [{x: 3}, *b]}\nquoted: {\"<<\": *b}\n";
        let read = documents(text).remove(0).unwrap();
        assert_eq!(read.duplicate_keys, [""; 0]);
        assert_eq!(
            read.value,
            json!({"b": {"x": 1, "z": 2}, "before": {"x": 1, "z": 2}, "after": {"x": 9, "z": 2},
                "list": {"x": 3, "z": 2}, "quoted": {"<<": {"x": 1, "z": 2}}})
        );
        for merged in ["5", "", "[1]", "*s", "[[]]"] {
            assert_eq!(fault(&format!("s: &s [1]\nm: {{<<: {merged} }}\n")), Some(Fault::Merge), "{merged}");
        }
    }

    #[test]
    fn aliases_stand_for_the_last_anchor_before_them_within_one_document() {
        assert_eq!(value("a: &a 1\nb: *a\nc: &a [2]\nd: *a\n"), Ok(json!({"a": 1, "b": 1, "c": [2], "d": [2]})));
        assert_eq!(fault("a: &a {b: *a }"), Some(Fault::Cycle));
        assert_eq!(values("a: &a 1\n---\nb: *a\n"), [Ok(json!({"a": 1})), Err(Fault::UnknownAnchor)]);
    }

    #[test]
    fn alias_bombs_are_refused_before_they_fill_memory() {
        let level = |n: usize| format!("a{n}: &a{n} [{}]\n", format!("*a{} ,", n - 1).repeat(9));
        let bomb: String = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned() + &(1..40).map(level).collect::<String>();
        assert_eq!(fault(&bomb), Some(Fault::Aliases));
        let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a ,".repeat(1000));
        assert_eq!(fault(&text), Some(Fault::Aliases));
        let mended =
            format!("a: &a [{}]\nb: [{}\"it\\'s\", \"isn\\'t\", \"won\\'t\"]\n", "x,".repeat(50), "*a ,".repeat(5000));
        assert!(value(&mended).is_ok(), "reading again costs nothing");
        // Many small documents add up.
        let small = format!("a: &a [{}]\nb: [{}]\n---\n", "x,".repeat(1500), "*a ,".repeat(90)).repeat(50);
        assert!(documents(&small).iter().any(Result::is_err));
    }

    #[test]
    fn nesting_is_bounded_aliases_included() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(value(&nested(512)).is_ok());
        assert_eq!(fault(&nested(513)), Some(Fault::Depth));
        assert_eq!(fault(&"{a: ".repeat(100_000)), Some(Fault::Depth));
        assert_eq!(
            fault(&format!("- &a {}\n- {}*a {}", nested(400), "[".repeat(200), "]".repeat(200))),
            Some(Fault::Depth)
        );
        let wide = format!("{}{}{}", "[".repeat(100), "a,".repeat(300_000), "]".repeat(100));
        assert_eq!(fault(&wide), Some(Fault::Depth));
    }

    #[test]
    fn a_bad_document_hides_no_other() {
        let text = "---\na: [\n---\nb: 1\n---\nc: *x\n---\nd: 2\n";
        let read = documents(text);
        let errors: Vec<_> = read.iter().filter_map(|read| read.as_ref().err()).map(ToString::to_string).collect();
        assert_eq!(errors, ["line 3: did not find expected node content", "line 6: unknown anchor referenced"]);
        let lines: Vec<_> = read.iter().flatten().map(|read| (read.line, &read.value)).collect();
        assert_eq!(lines, [(4, &json!({"b": 1})), (8, &json!({"d": 2}))]);
    }

    #[test]
    fn a_bad_separator_is_an_error_of_its_own() {
        let separators = values("a: 1\n---x\nb: 2\n--- # fine\nc: 3\n----\n---\t\nd: |\n  ---\n  e\n");
        assert_eq!(
            separators,
            [
                Ok(json!({"a": 1})),
                Err(Fault::Separator),
                Ok(json!({"b": 2})),
                Ok(json!({"c": 3})),
                Err(Fault::Separator),
                Ok(json!({"d": "---\ne\n"})),
            ]
        );
    }

    #[test]
    fn documents_that_hold_nothing_are_skipped() {
        assert_eq!(values("---\n---\n# Source: a.yaml\n---\n\n---\n~\n---\nnull\n---\n\n"), []);
        assert_eq!(values(""), []);
        assert_eq!(values("---\n---\n''\n"), [Ok(json!(""))]);
    }

    #[test]
    fn the_template_is_the_last_source_comment_of_the_document() {
        let text = "---\n# Source: c/templates/empty.yaml\n# Source: c/templates/a.yaml\na: |\n  # Source: text\n---\nb: 1\n\
                    ---\n# Source: c/templates/bad.yaml\n}\n";
        let read = documents(text);
        let sources: Vec<_> = read
            .iter()
            .map(|read| match read {
                Ok(read) => read.source.as_deref(),
                Err(error) => error.source.as_deref(),
            })
            .collect();
        assert_eq!(sources, [Some("c/templates/a.yaml"), None, Some("c/templates/bad.yaml")]);
        let error = read[2].as_ref().unwrap_err();
        assert_eq!(error.to_string(), "c/templates/bad.yaml: line 10: did not find expected node content");
    }

    #[test]
    fn text_after_the_end_of_a_document_is_dropped() {
        assert_eq!(values("a: 1\n...\n}}: [\n---\nb: 2\n"), [Ok(json!({"a": 1})), Ok(json!({"b": 2}))]);
    }

    #[test]
    fn a_directive_before_the_separator_is_a_document_without_content() {
        assert_eq!(values("%YAML 1.1\n---\na: y\n").len(), 2);
        assert!(values("%YAML 1.1\n---\na: y\n")[0].is_err());
        assert_eq!(fault("%YAML 1.2\n---\na: y\n"), Some(Fault::Version));
    }

    #[test]
    fn each_line_gets_its_break_in_a_stream_only() {
        assert_eq!(values("a: |\n  x"), [Ok(json!({"a": "x\n"}))]);
        assert_eq!(value("a: |\n  x"), Ok(json!({"a": "x"})));
        assert_eq!(value("a: |\n  x\n# end"), Ok(json!({"a": "x\n"})));
        assert_eq!(values("a: \"x\\"), [Err(Fault::Syntax("found unexpected end of stream"))]);
    }

    #[test]
    fn line_breaks_of_any_system_are_read() {
        assert_eq!(
            values("a: |\r\n  x\r\n  y\r\n---\r\nb: yes\r\n"),
            [Ok(json!({"a": "x\ny\n"})), Ok(json!({"b": true}))]
        );
        assert_eq!(values("a: 1\rb: 2\r"), [Ok(json!({"a": 1, "b": 2}))]);
    }

    #[test]
    fn byte_order_marks_begin_a_document_or_are_text() {
        assert_eq!(values("\u{feff}a: 1\n---\n\u{feff}b: 2\n"), [Ok(json!({"a": 1})), Ok(json!({"b": 2}))]);
        assert_eq!(
            value("a: 1\n\u{feff}b: \u{feff}\u{e000}2\n"),
            Ok(json!({"a": 1, "\u{feff}b": "\u{feff}\u{e000}2"}))
        );
        assert_eq!(value("\u{ff01}: 1\n"), Ok(json!({"\u{ff01}": 1})));
    }

    #[test]
    fn escapes_are_those_of_go() {
        assert_eq!(value(r#"["it\'s \\\' \"\'", '\', \', x\/y]"#), Ok(json!(["it's \\' \"'", "\\", "\\'", "x\\/y"])));
        assert_eq!(value(r#"["a\\/b", 'a\/b']"#), Ok(json!(["a\\/b", "a\\/b"])));
        assert_eq!(value(r#"["\uE000\U0000e001", \/]"#), Ok(json!(["\u{e000}\u{e001}", "\\/"])));
        assert_eq!(fault(r#"a: "x\/y""#), Some(Fault::Syntax("found unknown escape character")));
        assert_eq!(fault(r#"["it\'s", "\q"]"#), Some(Fault::Syntax("found unknown escape character")));
    }

    #[test]
    fn colons_and_question_marks_in_flow_collections_are_those_of_go() {
        assert_eq!(value("[a:, b:c, {d:}]"), Ok(json!(["a:", "b:c", {"d:": null}])));
        assert_eq!(fault("[a?b]"), Some(Fault::Syntax("did not find expected ',' or ']'")));
        assert_eq!(value("- a?b"), Ok(json!(["a?b"])));
    }

    #[test]
    fn binary_is_decoded_as_go_writes_it() {
        assert_eq!(
            value("[!!binary aGk=, !!binary \"a G\", !!binary 'aGk=\n  ']").map_err(|error| error.fault),
            Err(Fault::Binary)
        );
        assert_eq!(
            value("[!!binary aGk=, !!binary \"aGk=\\n\", !!binary /////w==, !!binary '']"),
            Ok(json!(["hi", "hi", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}", ""]))
        );
    }

    #[test]
    fn timestamps_have_to_be_dates() {
        for good in [
            "2001-12-14",
            "2001-1-1",
            "2000-02-29",
            "2001-12-14t21:59:43.10-05:00",
            "2001-12-14T1:2:3Z",
            "2001-12-14 21:59:43.10",
        ] {
            assert_eq!(value(&format!("!!timestamp {good}")), Ok(json!(good)));
        }
        for bad in ["01-02-03", "2001-12", "2001-12-14 noon", "2001-12-x", "x", "\"\""] {
            assert_eq!(fault(&format!("!!timestamp {bad}")), Some(Fault::Tag("!!timestamp")), "{bad}");
        }
    }

    #[test]
    fn a_stream_that_begins_with_a_brace_is_json_first() {
        let text = "\n{\"a\": 1e3, \"b\": \"\\/\",\n \"a\": 18446744073709551615}\n{\"c\": 2}\n";
        let read = documents(text);
        let read: Vec<_> = read.iter().flatten().map(|read| (read.line, &read.value, &read.duplicate_keys)).collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].0, 2);
        assert_eq!(*read[0].1, json!({"a": 18446744073709552000.0, "b": "/"}));
        assert_eq!((read[1].0, read[1].1), (4, &json!({"c": 2})));
        let twice = documents("{\"a\": 1, \"b\": {\"c\": 1.0, \"c\": 2.0}}").remove(0).unwrap();
        assert_eq!((twice.value, twice.duplicate_keys), (json!({"a": 1, "b": {"c": 2}}), vec![".b.c".to_owned()]));
    }

    #[test]
    fn a_stream_turns_to_yaml_after_one_json_object_at_most() {
        assert_eq!(values("{a: yes}\n---\nb: 1\n"), [Ok(json!({"a": true})), Ok(json!({"b": 1}))]);
        assert_eq!(values("{\"a\": 1}\n---\nb: no\n"), [Ok(json!({"a": 1})), Ok(json!({"b": false}))]);
        assert_eq!(
            values("{\"a\": 1}\n{\"b\": 2}\nc: 3\n---\nd: 4\n"),
            [Ok(json!({"a": 1})), Ok(json!({"b": 2})), Err(Fault::Json), Ok(json!({"d": 4}))]
        );
    }

    #[test]
    fn a_panic_of_the_parser_is_an_error_of_its_document() {
        assert_eq!(
            values("a: 1\n---\n[!, x]\n---\nb: 2\n"),
            [Ok(json!({"a": 1})), Err(Fault::Parser), Ok(json!({"b": 2}))]
        );
    }

    #[test]
    fn errors_quote_nothing_of_the_text() {
        for text in [
            "p: *hunter2",
            "---hunter2",
            "p: !!int hunter2",
            "p: @hunter2",
            "? [hunter2]\n: 1",
            "p: \"\\hunter2\"",
            "p: hunter2\u{1}",
        ] {
            let error = documents(text).into_iter().find_map(Result::err).unwrap();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_is_listed_of_duplicates_is_bounded() {
        let many: String = (0..5000).map(|number| format!("k{number}: 1\nk{number}: 2\n")).collect();
        assert_eq!(documents(&many).remove(0).unwrap().duplicate_keys.len(), 100);
        let long = format!("? {}\n: 1\n", "k".repeat(100_000)).repeat(50);
        assert_eq!(documents(&long).remove(0).unwrap().duplicate_keys.len(), 1);
    }

    #[test]
    fn control_characters_are_found_by_line() {
        assert_eq!(
            documents("a: 1\n---\nb: 2\nc: \u{7}\n")[1],
            Err(DocumentError {
                line: 4,
                source: None,
                error: YamlError { line: 4, fault: Fault::Syntax("control characters are not allowed") },
            })
        );
    }

    /// What charts write, and what breaks parsers.
    fn fragment() -> impl Strategy<Value = String> {
        let marks = [
            "\n",
            "---\n",
            "...\n",
            "- ",
            ": ",
            "? ",
            "[",
            "]",
            "{",
            "}",
            ",",
            "#",
            "&a ",
            "*a ",
            "<<: *a",
            "!",
            "!!int ",
            "!!binary ",
            "|\n",
            ">+2\n",
            "'",
            "\"",
            "\\",
            "\\'",
            "\\/",
            "%YAML 1.1\n",
            "\t",
            "\r\n",
            "\u{feff}",
            "\u{85}",
            "\u{2028}",
            "\0",
            "  ",
            "1e3",
            ".inf",
            "0x",
            "\u{e000}",
            "😀",
            "# Source: x\n",
        ];
        prop_oneof![prop::sample::select(marks.to_vec()).prop_map(str::to_owned), any::<String>(), "[ -~\n]{0,8}"]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn mutated_documents_never_panic(
            row in 0..196_usize,
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0..6_usize, fragment()), 0..6),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut chars: Vec<char> = document_rows().nth(row).map(|(_, text, _)| text.chars().collect()).unwrap_or_default();
            for (at, removed, inserted) in edits {
                let at = at.index(chars.len() + 1);
                let end = (at + removed).min(chars.len());
                chars.splice(at..end, inserted.chars());
            }
            if let Some(cut) = cut {
                chars.truncate(cut.index(chars.len() + 1));
            }
            let text: String = chars.into_iter().collect();
            let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
            for read in documents(&text) {
                let line = match read {
                    Ok(document) => document.line,
                    Err(error) => error.line,
                };
                prop_assert!((1..=lines).contains(&line), "line {} of {}", line, lines);
            }
            let _ = value(&text);
        }
    }
}
