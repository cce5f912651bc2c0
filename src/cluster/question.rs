//! What a path asks for: a resource, a namespace, a name, selectors. Knows nothing of answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::transport::percent_decoded;

/// A path and query, taken apart. How it was paged makes no difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// Path and the rest of the query, in one order: equal for questions that mean the same.
    pub(super) key: String,
    /// `None` for what is neither a listing nor an object: discovery, OpenAPI, `/version`, subresources.
    pub(super) place: Option<Place>,
    pub(super) labels: BTreeSet<String>,
    pub(super) fields: BTreeSet<String>,
    /// Parameters beside selectors and paging, e.g. `resourceVersion`.
    pub(super) others: bool,
    /// The token of a later page.
    pub(super) page: Option<String>,
}

/// Where objects are, with each step decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// `/api/v1` or `/apis/<group>/<version>`.
    pub(super) base: String,
    pub(super) plural: String,
    pub(super) namespace: Option<String>,
    /// `None`: a listing.
    pub(super) name: Option<String>,
}

impl Question {
    pub(super) fn parse(path_and_query: &str) -> Self {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let mut parameters: BTreeMap<String, String> = query
            .split('&')
            .filter(|parameter| !parameter.is_empty())
            .map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
            .map(|(name, value)| (percent_decoded(name), percent_decoded(&value.replace('+', " "))))
            .collect();
        let page = parameters.remove("continue").filter(|token| !token.is_empty());
        parameters.remove("limit");
        let labels = requirements(&parameters.remove("labelSelector").unwrap_or_default());
        let fields = requirements(&parameters.remove("fieldSelector").unwrap_or_default());
        let mut key = path.to_owned();
        for (name, value) in &parameters {
            key.push_str(&format!("?{name}={value}"));
        }
        for requirement in &labels {
            key.push_str(&format!("?label {requirement}"));
        }
        for requirement in &fields {
            key.push_str(&format!("?field {requirement}"));
        }
        Self { key, place: place(path), labels, fields, others: !parameters.is_empty(), page }
    }
}

/// Requirements of a selector; the commas of `in (a,b)` part nothing.
fn requirements(selector: &str) -> BTreeSet<String> {
    let mut depth = 0_i32;
    let parts = selector.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    });
    parts.map(|part| part.trim().replace("==", "=")).filter(|part| !part.is_empty()).collect()
}

fn place(path: &str) -> Option<Place> {
    let segments: Vec<String> = path.strip_prefix('/')?.split('/').map(percent_decoded).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (base, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => (format!("/api/{version}"), rest),
        ["apis", group, version, rest @ ..] => (format!("/apis/{group}/{version}"), rest),
        _ => return None,
    };
    let (plural, namespace, name) = match rest {
        [plural] => (*plural, None, None),
        ["namespaces", namespace, plural] => (*plural, Some(*namespace), None),
        ["namespaces", namespace, plural, name] => (*plural, Some(*namespace), Some(*name)),
        [plural, name] => (*plural, None, Some(*name)),
        _ => return None,
    };
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Some(Place { base, plural: plural.to_owned(), namespace: owned(namespace), name: owned(name) })
}

impl Place {
    /// `deployments.apps`, as the server's own messages say.
    pub(super) fn resource(&self) -> String {
        match self.base.strip_prefix("/apis/").and_then(|rest| rest.split_once('/')) {
            Some((group, _)) => format!("{}.{group}", self.plural),
            None => self.plural.clone(),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            None => f.write_str(self.key.split('?').next().unwrap_or_default()),
            Some(Place { name: Some(name), namespace: Some(namespace), .. }) => {
                write!(f, "{} {name:?} in namespace {namespace:?}", self.resource())
            }
            Some(Place { name: Some(name), namespace: None, .. }) => write!(f, "{} {name:?}", self.resource()),
            Some(Place { name: None, namespace: Some(namespace), .. }) => {
                write!(f, "the listing of {} in namespace {namespace:?}", self.resource())
            }
            Some(Place { name: None, namespace: None, .. }) => {
                write!(f, "the listing of {} in all namespaces", self.resource())
            }
        }
    }
}

impl Question {
    fn resource(&self) -> String {
        self.place.as_ref().map(Place::resource).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paging_and_spelling_make_no_difference() {
        let plain = Question::parse("/api/v1/namespaces/prod/secrets?labelSelector=owner=helm,name=x&limit=500");
        let other = Question::parse(
            "/api/v1/namespaces/prod/secrets?limit=10&continue=ab%3D%3D&labelSelector=name%3D%3Dx%2Cowner%3Dhelm",
        );
        assert_eq!((plain.key.as_str(), plain.page.as_deref()), (other.key.as_str(), None));
        assert_eq!(other.page.as_deref(), Some("ab=="));
        assert_eq!(plain.labels, BTreeSet::from(["name=x".to_owned(), "owner=helm".to_owned()]));
        assert_ne!(Question::parse("/api/v1/secrets").key, Question::parse("/api/v1/secrets?resourceVersion=0").key);
    }

    #[test]
    fn places_are_told_from_paths() {
        let spoken = |path: &str| Question::parse(path).to_string();
        for (path, words) in [
            ("/apis/apps/v1/deployments?limit=1", "the listing of deployments.apps in all namespaces"),
            ("/apis/apps/v1/namespaces/prod/deployments", "the listing of deployments.apps in namespace \"prod\""),
            ("/api/v1/namespaces/prod/services/a%20b", "services \"a b\" in namespace \"prod\""),
            ("/api/v1/namespaces", "the listing of namespaces in all namespaces"),
            ("/api/v1/namespaces/prod", "namespaces \"prod\""),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:x",
                "clusterroles.rbac.authorization.k8s.io \"system:x\"",
            ),
            ("/apis/apps/v1/namespaces/prod/deployments/x/scale", "/apis/apps/v1/namespaces/prod/deployments/x/scale"),
            ("/openapi/v3/apis/apps/v1?hash=AB", "/openapi/v3/apis/apps/v1"),
            ("/apis", "/apis"),
            ("/api/v1", "/api/v1"),
        ] {
            assert_eq!(spoken(path), words);
        }
    }

    #[test]
    fn commas_in_parentheses_part_nothing() {
        assert_eq!(requirements("a in (b,c), !d"), BTreeSet::from(["!d".to_owned(), "a in (b,c)".to_owned()]));
    }
}
