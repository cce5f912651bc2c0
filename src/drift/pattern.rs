//! Path patterns: parse and match. A pattern names a field of an object and everything below it. Knows nothing of rules.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::object::{FieldPath, Segment};
use super::writers::glob;

/// A path as findings show it, with wildcards: `.*` is one key, `[*]` one list item, `**` any depth, and `*` within a key or a
/// text stands for any text.
#[derive(Clone, PartialEq)]
pub(crate) struct Pattern {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.key`, `["key"]`; a glob.
    Key(String),
    /// `[*]`
    AnyItem,
    /// `[name="web"]`: these keys of the item have these values; others may be anything.
    Item(Vec<(String, Want)>),
    /// `[="x"]`
    Member(Want),
    /// `[0]`
    Index(usize),
    /// `**`
    Deep,
}

/// A value in brackets.
#[derive(Clone, Debug, PartialEq)]
enum Want {
    /// A glob.
    Text(String),
    Exactly(Value),
}

/// Why a text is no pattern; places are counted in characters, from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("a path is empty; leave it out for the whole object")]
    Empty,
    #[error("\"{0}\" is a JSON pointer; paths are written as .spec.replicas")]
    Pointer(String),
    #[error("\"{0}\" begins with no dot; did you mean \".{0}\"?")]
    NoDot(String),
    #[error("\"{text}\" has no key at character {at}")]
    NoKey { text: String, at: usize },
    #[error("\"{text}\" has a bracket at character {at} that is not closed")]
    Open { text: String, at: usize },
    #[error(
        "\"{text}\": what stands in the bracket at character {at} is no key in quotes, no name=value, no number and no *"
    )]
    Bracket { text: String, at: usize },
    #[error("\"{text}\": {found:?} at character {at} begins no key; a dot or a bracket does")]
    Stray { text: String, found: char, at: usize },
}

impl Pattern {
    /// Whether it names the path itself or something that the path lies below.
    pub(crate) fn covers(&self, path: &FieldPath) -> bool {
        self.walk(path).is_none()
    }

    /// Whether it can only name something deeper than the path.
    pub(crate) fn reaches_into(&self, path: &FieldPath) -> bool {
        self.walk(path).is_some_and(|places| !places.is_empty())
    }

    /// Whether it names the path, something above it, or something that this value holds.
    pub(crate) fn meets(&self, path: &FieldPath, value: &Value) -> bool {
        self.walk(path).is_none_or(|places| self.is_inside(&places, value))
    }

    /// Changes every value that it names; says whether there was any.
    pub(crate) fn each(&self, object: &mut Value, change: &dyn Fn(&mut Value)) -> bool {
        self.each_below(self.rest(vec![0]), object, change)
    }

    fn each_below(&self, places: Option<Vec<usize>>, value: &mut Value, change: &dyn Fn(&mut Value)) -> bool {
        let Some(places) = places else {
            change(value);
            return true;
        };
        let mut any = false;
        match value {
            _ if places.is_empty() => {}
            Value::Object(map) => {
                for (key, value) in map {
                    let next = self.advance(&places, |step| matches!(step, Step::Key(wanted) if glob(wanted, key)));
                    any |= self.each_below(next, value, change);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let next = self.advance(&places, |step| step.is_item(index, item));
                    any |= self.each_below(next, item, change);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        any
    }

    fn is_inside(&self, places: &[usize], value: &Value) -> bool {
        if places.is_empty() {
            return false;
        }
        let goes_on = |inner: Option<Vec<usize>>, value: &Value| match inner {
            None => true,
            Some(places) => self.is_inside(&places, value),
        };
        match value {
            Value::Object(map) => map.iter().any(|(key, value)| {
                goes_on(self.advance(places, |step| matches!(step, Step::Key(wanted) if glob(wanted, key))), value)
            }),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .any(|(index, item)| goes_on(self.advance(places, |step| step.is_item(index, item)), item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    /// Where in the pattern one may stand after this path; `None`: at its end, now or on the way.
    fn walk(&self, path: &FieldPath) -> Option<Vec<usize>> {
        let mut places = self.rest(vec![0])?;
        for segment in &path.0 {
            places = self.advance(&places, |step| step.is(segment))?;
        }
        Some(places)
    }

    /// The places after one more step into the object.
    fn advance(&self, places: &[usize], here: impl Fn(&Step) -> bool) -> Option<Vec<usize>> {
        let mut next = Vec::new();
        for &place in places {
            match self.steps.get(place) {
                Some(Step::Deep) => next.push(place),
                Some(step) if here(step) => next.push(place + 1),
                Some(_) | None => {}
            }
        }
        self.rest(next)
    }

    /// `**` may stand for nothing: its places, and those after it.
    fn rest(&self, mut places: Vec<usize>) -> Option<Vec<usize>> {
        let mut index = 0;
        while let Some(&place) = places.get(index) {
            if self.steps.get(place) == Some(&Step::Deep) && !places.contains(&(place + 1)) {
                places.push(place + 1);
            }
            index += 1;
        }
        if places.contains(&self.steps.len()) { None } else { Some(places) }
    }
}

impl Step {
    fn is_item(&self, index: usize, item: &Value) -> bool {
        match self {
            Self::AnyItem => true,
            Self::Index(wanted) => *wanted == index,
            Self::Member(want) => want.is(item),
            Self::Item(keys) => keys.iter().all(|(key, want)| item.get(key).is_some_and(|it| want.is(it))),
            Self::Key(_) | Self::Deep => false,
        }
    }

    fn is(&self, segment: &Segment) -> bool {
        match (self, segment) {
            (Self::Key(wanted), Segment::Field(key)) => glob(wanted, key),
            (Self::AnyItem, Segment::Item(_) | Segment::Member(_) | Segment::Index(_)) => true,
            (Self::Item(wanted), Segment::Item(keys)) => {
                wanted.iter().all(|(name, want)| keys.iter().any(|(key, value)| key == name && want.is(value)))
            }
            (Self::Member(want), Segment::Member(value)) => want.is(value),
            (Self::Index(wanted), Segment::Index(index)) => wanted == index,
            _ => false,
        }
    }
}

impl Want {
    fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text(wanted), Value::String(text)) => glob(wanted, text),
            (Self::Text(_), _) => false,
            (Self::Exactly(wanted), value) => wanted == value,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let text = text.trim();
        if text.is_empty() || text == "." {
            return Err(PatternError::Empty);
        }
        if text.starts_with('/') {
            return Err(PatternError::Pointer(text.to_owned()));
        }
        if !text.starts_with(['.', '[']) && !text.starts_with("**") {
            return Err(PatternError::NoDot(text.to_owned()));
        }
        let steps = Reader { text, at: 0 }.steps()?;
        Ok(Self { text: text.to_owned(), steps })
    }
}

/// `at`: bytes read so far.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn steps(mut self) -> Result<Vec<Step>, PatternError> {
        let mut steps = Vec::new();
        while let Some(next) = self.rest().chars().next() {
            let step = match next {
                '[' => self.bracket()?,
                '.' => {
                    self.at += 1;
                    self.key()?
                }
                '*' if steps.is_empty() && self.rest().starts_with("**") => self.key()?,
                found => return Err(PatternError::Stray { text: self.text.to_owned(), found, at: self.place() }),
            };
            steps.push(step);
        }
        Ok(steps)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// In characters, from 1.
    fn place(&self) -> usize {
        self.text.get(..self.at).unwrap_or_default().chars().count() + 1
    }

    fn key(&mut self) -> Result<Step, PatternError> {
        let rest = self.rest();
        let end = rest.find(|c: char| ".[]\"'".contains(c) || c.is_whitespace()).unwrap_or(rest.len());
        match rest.get(..end).unwrap_or_default() {
            "" => Err(PatternError::NoKey { text: self.text.to_owned(), at: self.place() }),
            key => {
                self.at += end;
                Ok(if key == "**" { Step::Deep } else { Step::Key(key.to_owned()) })
            }
        }
    }

    fn bracket(&mut self) -> Result<Step, PatternError> {
        let start = self.place();
        let bad = || PatternError::Bracket { text: self.text.to_owned(), at: start };
        let inner = self.rest().get(1..).unwrap_or_default();
        let Some(end) = closing(inner) else {
            return Err(PatternError::Open { text: self.text.to_owned(), at: start });
        };
        let inner = inner.get(..end).unwrap_or_default().trim();
        let step = match inner.chars().next() {
            None => return Err(bad()),
            Some('*') if inner == "*" => Step::AnyItem,
            Some('"' | '\'') => Step::Key(quoted(inner).ok_or_else(bad)?),
            Some('=') => Step::Member(want(inner.get(1..).unwrap_or_default()).ok_or_else(bad)?),
            Some('0'..='9') if !inner.contains('=') => Step::Index(inner.parse().map_err(|_| bad())?),
            Some(_) => {
                let pairs = split(inner, ',').into_iter().map(|pair| {
                    let (key, value) = pair.split_once('=')?;
                    let key = key.trim();
                    Some((key.to_owned(), want(value)?)).filter(|_| !key.is_empty() && !key.contains('"'))
                });
                Step::Item(pairs.collect::<Option<Vec<_>>>().ok_or_else(bad)?)
            }
        };
        self.at += end + 2;
        Ok(step)
    }
}

/// Where the bracket ends, in bytes.
fn closing(inner: &str) -> Option<usize> {
    outside_quotes(inner).find(|(_, c)| *c == ']').map(|(index, _)| index)
}

/// Characters that do not stand in quotes.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut quote = None;
    let mut escaped = false;
    text.char_indices().filter(move |(_, c)| match quote {
        None => {
            quote = Some(*c).filter(|c| matches!(c, '"' | '\''));
            quote.is_none()
        }
        Some(_) if escaped => {
            escaped = false;
            false
        }
        Some('"') if *c == '\\' => {
            escaped = true;
            false
        }
        Some(mark) => {
            if *c == mark {
                quote = None;
            }
            false
        }
    })
}

/// Split at a mark that stands outside quotes.
fn split(text: &str, mark: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (index, _) in outside_quotes(text).filter(|(_, c)| *c == mark) {
        parts.push(text.get(start..index).unwrap_or_default());
        start = index + mark.len_utf8();
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

/// A text in double quotes with JSON's escapes, or in single ones without any.
fn quoted(text: &str) -> Option<String> {
    match text.strip_prefix('\'') {
        Some(rest) => rest.strip_suffix('\'').filter(|inner| !inner.contains('\'')).map(str::to_owned),
        None => serde_json::from_str(text).ok(),
    }
}

/// A JSON value, or plain text.
fn want(text: &str) -> Option<Want> {
    let text = text.trim();
    match text.chars().next()? {
        '"' | '\'' => quoted(text).map(Want::Text),
        _ if text.contains(['"', '\'', '[', ']', '{', '}', '=']) => None,
        _ => Some(serde_json::from_str(text).map_or_else(|_| Want::Text(text.to_owned()), Want::Exactly)),
    }
}

/// Patterns of a comma-separated list; commas in brackets divide nothing.
pub(crate) fn list(text: &str) -> Vec<Result<Pattern, PatternError>> {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut parts = Vec::new();
    for (index, c) in outside_quotes(text) {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text.get(start..index).unwrap_or_default());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn container(name: &str) -> FieldPath {
        FieldPath::of_fields(&["spec", "template", "spec", "containers"])
            .child(Segment::Item(vec![("name".into(), json!(name))]))
    }

    fn port(number: u64, protocol: &str) -> FieldPath {
        let keys = vec![("port".into(), json!(number)), ("protocol".into(), json!(protocol))];
        FieldPath::of_fields(&["spec", "ports"]).child(Segment::Item(keys))
    }

    #[test]
    fn a_pattern_covers_its_field_and_what_lies_below() {
        let annotation = FieldPath::of_fields(&["metadata", "annotations", "a.b/c"]);
        let member = FieldPath::of_fields(&["zones"]).child(Segment::Member(json!("x")));
        for (text, path, covers) in [
            (".spec.replicas", FieldPath::of_fields(&["spec", "replicas"]), true),
            (".spec", FieldPath::of_fields(&["spec", "replicas"]), true),
            (".spec.replicas.more", FieldPath::of_fields(&["spec", "replicas"]), false),
            (".spec.replica", FieldPath::of_fields(&["spec", "replicas"]), false),
            (".*.replicas", FieldPath::of_fields(&["spec", "replicas"]), true),
            (".*", FieldPath::of_fields(&["spec", "replicas"]), true),
            (".spec.template.spec.containers[*].image", container("web").field("image"), true),
            (".spec.template.spec.containers[*].image", container("web").field("workingDir"), false),
            // Deeper than the finding: a sidecar is not ignored because its image is.
            (".spec.template.spec.containers[*].image", container("web"), false),
            (".spec.template.spec.containers[*]", container("web"), true),
            (".spec.template.spec.containers.*", container("web"), false),
            (r#".spec.template.spec.containers[name="web"]"#, container("web").field("image"), true),
            (".spec.template.spec.containers[name=web].image", container("web").field("image"), true),
            (r#".spec.template.spec.containers[name="w*"]"#, container("web"), true),
            (r#".spec.template.spec.containers[name="db"]"#, container("web"), false),
            (r#".spec.ports[protocol="TCP",port=80].name"#, port(80, "TCP").field("name"), true),
            (".spec.ports[port=80]", port(80, "UDP"), true),
            (r#".spec.ports[port="80"]"#, port(80, "TCP"), false),
            (".spec.ports[port=81]", port(80, "TCP"), false),
            (r#".metadata.annotations["a.b/c"]"#, annotation.clone(), true),
            (".metadata.annotations['a.b/c']", annotation.clone(), true),
            (r#".metadata.annotations["a.b/*"]"#, annotation.clone(), true),
            (".metadata.annotations.*", annotation.clone(), true),
            (r#".metadata.annotations["a.b/d"]"#, annotation, false),
            (r#".zones[="x"]"#, member.clone(), true),
            (".zones[=x]", member.clone(), true),
            (".zones[*]", member.clone(), true),
            (r#".zones[="y"]"#, member, false),
            ("**.image", container("web").field("image"), true),
            (".spec.**.image", container("web").field("image"), true),
            (".spec.**[*].image", container("web").field("image"), true),
            (".spec.**.spec.**.image", container("web").field("image"), true),
            (".spec.**", FieldPath::of_fields(&["spec"]), true),
            (".status.**", FieldPath::of_fields(&["spec"]), false),
            ("**", container("web"), true),
            ("**.image", container("web"), false),
        ] {
            assert_eq!(pattern(text).covers(&path), covers, "{text} {path}");
        }
    }

    #[test]
    fn a_pattern_may_reach_into_what_is_reported_as_one() {
        for (text, path, reaches) in [
            (".spec.template.spec.containers[*].image", container("web"), true),
            (".spec.rules[*].host", FieldPath::of_fields(&["spec", "rules"]), true),
            (".spec.rules[*].host", FieldPath::of_fields(&["spec", "other"]), false),
            (".spec", FieldPath::of_fields(&["spec", "rules"]), false),
            ("**.host", FieldPath::of_fields(&["spec", "rules"]), true),
        ] {
            assert_eq!(pattern(text).reaches_into(&path), reaches, "{text} {path}");
        }
    }

    #[test]
    fn a_pattern_meets_what_a_value_holds() {
        let data = FieldPath::of_fields(&["data"]);
        let spec = FieldPath::of_fields(&["spec"]);
        let ports = json!({"ports": [{"port": 80, "name": "a"}, {"port": 81}], "zones": ["x"]});
        for (text, path, value, meets) in [
            (".data.password", &data, json!({"password": "x"}), true),
            (".data.password", &data, json!({"user": "x"}), false),
            (".data.password", &data.field("password"), json!("x"), true),
            (".data.password", &data.field("user"), json!("x"), false),
            (".data", &data.field("user"), json!("x"), true),
            ("**.password", &spec, json!({"a": {"b": {"password": "x"}}}), true),
            ("**.password", &spec, json!({"a": {"b": ["password"]}}), false),
            (".spec.ports[port=80].name", &spec, ports.clone(), true),
            (".spec.ports[port=81].name", &spec, ports.clone(), false),
            (".spec.ports[1].port", &spec, ports.clone(), true),
            (".spec.zones[=x]", &spec, ports.clone(), true),
            (".spec.zones[=y]", &spec, ports, false),
        ] {
            assert_eq!(pattern(text).meets(path, &value), meets, "{text} {path} {value}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, error) in [
            ("", "a path is empty; leave it out for the whole object"),
            (" . ", "a path is empty; leave it out for the whole object"),
            ("/spec/replicas", "\"/spec/replicas\" is a JSON pointer; paths are written as .spec.replicas"),
            ("spec.replicas", "\"spec.replicas\" begins with no dot; did you mean \".spec.replicas\"?"),
            (".spec..replicas", "\".spec..replicas\" has no key at character 7"),
            (".spec.", "\".spec.\" has no key at character 7"),
            (".spec[name=\"a]", "\".spec[name=\"a]\" has a bracket at character 6 that is not closed"),
            (".spec[", "\".spec[\" has a bracket at character 6 that is not closed"),
            (
                ".spec[]",
                "\".spec[]\": what stands in the bracket at character 6 is no key in quotes, no name=value, no number and no *",
            ),
            (
                ".spec[web]",
                "\".spec[web]\": what stands in the bracket at character 6 is no key in quotes, no name=value, no number and no *",
            ),
            (".spec[*]x", "\".spec[*]x\": 'x' at character 9 begins no key; a dot or a bracket does"),
            (".spec rep", "\".spec rep\": ' ' at character 6 begins no key; a dot or a bracket does"),
            (".a]", "\".a]\": ']' at character 3 begins no key; a dot or a bracket does"),
        ] {
            assert_eq!(text.parse::<Pattern>().unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn a_list_is_divided_outside_brackets() {
        let texts: Vec<String> =
            list(r#" .data.mode, .spec.ports[port=80,protocol="TCP"] ,.metadata.annotations["a,b"],"#)
                .into_iter()
                .map(|one| one.unwrap().to_string())
                .collect();
        assert_eq!(texts, [".data.mode", r#".spec.ports[port=80,protocol="TCP"]"#, r#".metadata.annotations["a,b"]"#]);
        assert!(list("").is_empty());
        assert!(list(".a, b").iter().any(Result::is_err));
    }

    /// Every path that a finding shows is a pattern of itself.
    #[test]
    fn a_shown_path_covers_itself() {
        for path in [
            container("web").field("image"),
            port(80, "TCP").field("name"),
            FieldPath::of_fields(&["metadata", "annotations", "a.b/c"]),
            FieldPath::of_fields(&["data", "we\"ird\\key]"]),
            FieldPath::of_fields(&["zones"]).child(Segment::Member(json!({"a": 1}))),
        ] {
            match path.to_string().parse::<Pattern>() {
                Ok(pattern) => assert!(pattern.covers(&path), "{path}"),
                Err(error) => assert!(path.to_string().contains('{'), "{error}"),
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,40}") {
            let _ = text.parse::<Pattern>();
            let _ = list(&text);
        }

        #[test]
        fn nor_does_one_of_its_own_letters(text in "[.\\[\\]\"'*=,a0\\\\ ]{0,24}") {
            if let Ok(pattern) = text.parse::<Pattern>() {
                let _ = pattern.covers(&container("web"));
                let _ = pattern.meets(&container("web"), &json!({"a": [{"a": 0}]}));
            }
            let _ = list(&text);
        }
    }
}
