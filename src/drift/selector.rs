//! Label selectors as kubectl takes them with `-l`. Knows nothing of whose labels they are.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// All of its requirements must hold; without any it selects everything.
///
/// Source: kubernetes/apimachinery `pkg/labels/selector.go`, but for `>` and `<`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Absent(String),
    In(String, BTreeSet<String>),
    /// Holds for an absent key too.
    NotIn(String, BTreeSet<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectorError {
    #[error("{wanted} is missing at the end")]
    End { wanted: &'static str },
    #[error("\"{found}\" stands where {wanted} should")]
    Unexpected { found: String, wanted: &'static str },
    #[error("\"{0}\" is not a label key")]
    Key(String),
    #[error("\"{0}\" is not a label value")]
    Value(String),
}

impl Selector {
    pub(crate) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::Absent(key) => !labels.contains_key(key),
            Requirement::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
        })
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut tokens = Tokens(text);
        let mut requirements = Vec::new();
        if tokens.peek().is_none() {
            return Ok(Self::default());
        }
        loop {
            requirements.push(tokens.requirement()?);
            match tokens.take() {
                None => return Ok(Self(requirements)),
                Some(",") => {}
                Some(found) => return Err(unexpected(found, "a comma")),
            }
        }
    }
}

/// The rest of the text; a token is a mark or a word.
struct Tokens<'a>(&'a str);

const MARKS: [&str; 7] = ["==", "!=", "=", "!", ",", "(", ")"];

impl<'a> Tokens<'a> {
    fn peek(&self) -> Option<&'a str> {
        let rest = self.0.trim_start();
        if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            return rest.get(..mark.len());
        }
        let end = rest.find(|c: char| c.is_whitespace() || "=!,()".contains(c)).unwrap_or(rest.len());
        rest.get(..end).filter(|word| !word.is_empty())
    }

    fn take(&mut self) -> Option<&'a str> {
        let token = self.peek()?;
        self.0 = self.0.trim_start().get(token.len()..).unwrap_or_default();
        Some(token)
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.peek() == Some("!") {
            self.take();
            return Ok(Requirement::Absent(self.key()?));
        }
        let key = self.key()?;
        match self.peek() {
            None | Some(",") => Ok(Requirement::Exists(key)),
            Some("=" | "==") => {
                self.take();
                Ok(Requirement::In(key, BTreeSet::from([self.value()?])))
            }
            Some("!=") => {
                self.take();
                Ok(Requirement::NotIn(key, BTreeSet::from([self.value()?])))
            }
            Some("in") => {
                self.take();
                Ok(Requirement::In(key, self.values()?))
            }
            Some("notin") => {
                self.take();
                Ok(Requirement::NotIn(key, self.values()?))
            }
            Some(found) => Err(unexpected(found, "=, ==, !=, in, notin or a comma")),
        }
    }

    fn key(&mut self) -> Result<String, SelectorError> {
        match self.take() {
            None => Err(SelectorError::End { wanted: "a label key" }),
            Some(mark) if MARKS.contains(&mark) => Err(unexpected(mark, "a label key")),
            Some(key) if is_key(key) => Ok(key.to_owned()),
            Some(key) => Err(SelectorError::Key(key.to_owned())),
        }
    }

    /// Nothing, before a comma or a parenthesis or the end, is the empty value.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            None | Some("," | ")") => Ok(String::new()),
            Some(mark) if MARKS.contains(&mark) => Err(unexpected(mark, "a label value")),
            Some(value) => {
                self.take();
                if is_value(value) { Ok(value.to_owned()) } else { Err(SelectorError::Value(value.to_owned())) }
            }
        }
    }

    /// `(a,b)`.
    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        self.mark("(")?;
        let mut values = BTreeSet::new();
        if self.peek() == Some(")") {
            return Err(unexpected(")", "a label value"));
        }
        loop {
            values.insert(self.value()?);
            match self.take() {
                Some(")") => return Ok(values),
                Some(",") => {}
                Some(found) => return Err(unexpected(found, "a comma or )")),
                None => return Err(SelectorError::End { wanted: ")" }),
            }
        }
    }

    fn mark(&mut self, mark: &'static str) -> Result<(), SelectorError> {
        match self.take() {
            Some(found) if found == mark => Ok(()),
            Some(found) => Err(unexpected(found, mark)),
            None => Err(SelectorError::End { wanted: mark }),
        }
    }
}

fn unexpected(found: &str, wanted: &'static str) -> SelectorError {
    SelectorError::Unexpected { found: found.to_owned(), wanted }
}

/// `name` or `dns.prefix/name`.
fn is_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_prefix = |prefix: &str| {
        prefix.len() <= 253
            && prefix.split('.').all(|part| {
                let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
                part.bytes().all(|byte| inside(byte) || byte == b'-')
                    && part.bytes().next().is_some_and(inside)
                    && part.bytes().last().is_some_and(inside)
            })
    };
    !name.is_empty() && is_value(name) && prefix.is_none_or(is_prefix)
}

fn is_value(value: &str) -> bool {
    let ends_well = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    value.len() <= 63
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && ends_well(value.bytes().next())
        && ends_well(value.bytes().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> BTreeMap<String, String> {
        text.split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn selects_as_kubectl_does() {
        let web = labels("app=web tier=front team.io/owner=x empty=");
        for (selector, selected) in [
            ("", true),
            ("  ", true),
            ("app", true),
            ("app=web", true),
            ("app==web", true),
            (" app = web ", true),
            ("app=db", false),
            ("app!=db", true),
            ("other!=db", true),
            ("other=", false),
            ("empty=", true),
            ("empty", true),
            ("!app", false),
            ("! other", true),
            ("app in (db, web)", true),
            ("app in (db)", false),
            ("app notin (db)", true),
            ("app notin (web,db)", false),
            ("other notin (web)", true),
            ("other in (web)", false),
            ("empty in (,x)", true),
            ("app=web,tier=front,team.io/owner", true),
            ("app=web,tier=back", false),
            ("app in (web),!other", true),
            ("in", false),
            ("in in (in)", false),
        ] {
            let parsed: Selector = selector.parse().unwrap_or_else(|error| panic!("{selector}: {error}"));
            assert_eq!(parsed.matches(&web), selected, "{selector}");
        }
    }

    #[test]
    fn refuses_what_kubectl_refuses() {
        for (selector, message) in [
            ("app=web,", "a label key is missing at the end"),
            (",app", "\",\" stands where a label key should"),
            ("app in", "( is missing at the end"),
            ("app in web", "\"web\" stands where ( should"),
            ("app in ()", "\")\" stands where a label value should"),
            ("app in (a", ") is missing at the end"),
            ("app web", "\"web\" stands where =, ==, !=, in, notin or a comma should"),
            ("app=a b", "\"b\" stands where a comma should"),
            ("app=a=b", "\"=\" stands where a comma should"),
            ("!app=web", "\"=\" stands where a comma should"),
            ("-app", "\"-app\" is not a label key"),
            ("Team.io/x", "\"Team.io/x\" is not a label key"),
            ("a/b/c", "\"a/b/c\" is not a label key"),
            ("app=we b", "\"b\" stands where a comma should"),
            ("app=web.", "\"web.\" is not a label value"),
            ("app>1", "\"app>1\" is not a label key"),
        ] {
            assert_eq!(
                selector.parse::<Selector>().map_err(|error| error.to_string()),
                Err(message.to_owned()),
                "{selector}"
            );
        }
    }
}
