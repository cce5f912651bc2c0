//! Paths of the API: where a kind, an object and a listing are read. Knows nothing of answers.

use std::fmt::Write as _;

use crate::drift::live::Served;

/// `/api/v1` for the core group, else `/apis/<group>/<version>`.
pub(super) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{}", segment(version))
    } else {
        format!("/apis/{}/{}", segment(group), segment(version))
    }
}

/// All objects of a kind: of one namespace, or, with `None`, of the cluster.
pub(super) fn collection(served: &Served, namespace: Option<&str>) -> String {
    let base = group_version(&served.gvk.group, &served.gvk.version);
    let plural = segment(&served.plural);
    match namespace {
        Some(namespace) if served.namespaced => format!("{base}/namespaces/{}/{plural}", segment(namespace)),
        _ => format!("{base}/{plural}"),
    }
}

/// One object; `None` when no object can have this name, so that it never ends as the path of something else.
pub(super) fn object(served: &Served, namespace: Option<&str>, name: &str) -> Option<String> {
    let placed = !served.namespaced || namespace.is_some_and(is_name);
    (placed && is_name(name)).then(|| format!("{}/{}", collection(served, namespace), segment(name)))
}

/// What the API server takes as a name at all (apimachinery `pkg/api/validation/path`, `IsValidPathSegmentName`).
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '%'])
}

/// A path with a query, e.g. `/api/v1/secrets?labelSelector=owner=helm&limit=500`.
#[derive(Clone, Debug)]
pub(super) struct Query {
    text: String,
    started: bool,
}

impl Query {
    pub(super) fn new(path: &str) -> Self {
        Self { text: path.to_owned(), started: false }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.text.push(if self.started { '&' } else { '?' });
        self.started = true;
        self.text.push_str(name);
        self.text.push('=');
        // Selectors stay legible: these characters mean nothing inside a query's value.
        encode(&mut self.text, value, b"/=,:!()");
        self
    }

    pub(super) fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(super) fn path(self) -> String {
        self.text
    }
}

/// One step of a path; names of RBAC objects hold colons.
fn segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    encode(&mut encoded, text, b":");
    encoded
}

fn encode(into: &mut String, text: &str, plain: &[u8]) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || plain.contains(&byte) {
            into.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::object::Gvk;

    fn served(api_version: &str, plural: &str, namespaced: bool) -> Served {
        Served { gvk: Gvk::new(api_version, "Any"), plural: plural.to_owned(), namespaced, listable: true }
    }

    #[test]
    fn paths_follow_group_scope_and_name() {
        let roles = served("rbac.authorization.k8s.io/v1", "roles", true);
        assert_eq!(collection(&roles, None), "/apis/rbac.authorization.k8s.io/v1/roles");
        assert_eq!(
            object(&roles, Some("prod"), "system:admin").as_deref(),
            Some("/apis/rbac.authorization.k8s.io/v1/namespaces/prod/roles/system:admin")
        );
        let nodes = served("v1", "nodes", false);
        assert_eq!(object(&nodes, Some("ignored"), "a b").as_deref(), Some("/api/v1/nodes/a%20b"));
    }

    #[test]
    fn a_name_never_leads_elsewhere() {
        let secrets = served("v1", "secrets", true);
        for name in ["", ".", "..", "../x", "a/b", "a%2fb"] {
            assert_eq!(object(&secrets, Some("prod"), name), None, "{name:?}");
            assert_eq!(object(&secrets, Some(name), "x"), None, "namespace {name:?}");
        }
        assert_eq!(object(&secrets, None, "x"), None);
        assert_eq!(
            object(&secrets, Some("prod"), "a?b#c").as_deref(),
            Some("/api/v1/namespaces/prod/secrets/a%3Fb%23c")
        );
    }

    #[test]
    fn queries_keep_selectors_legible() {
        let path = Query::new("/api/v1/secrets")
            .with("labelSelector", "owner=helm,name=a")
            .with_some("continue", Some("a+b&c"))
            .path();
        assert_eq!(path, "/api/v1/secrets?labelSelector=owner=helm,name=a&continue=a%2Bb%26c");
    }
}
