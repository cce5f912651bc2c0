//! What names a thing: group-version-kind, object, field path. Knows nothing of releases or differences.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// Group, version and kind, as in `apiVersion` and `kind`; the core group is the empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Gvk {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl Gvk {
    /// `api_version` is `v1` or `group/version`.
    pub(crate) fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// As `apiVersion` spells it.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// One object as a manifest or the API names it. `namespace` is `None` for a cluster-scoped object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectRef {
    pub(crate) gvk: Gvk,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl ObjectRef {
    /// Identity without the version: Helm matches old and new objects the same way
    /// (helm/helm `pkg/kube/resource.go`, `isMatchingInfo`, since v3.18).
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey {
            group: self.gvk.group.clone(),
            kind: self.gvk.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// `Deployment/api`, with the namespace left to the context.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.gvk.kind, self.name)
    }
}

/// Identity of an object whatever the version it is read in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Segment {
    /// A key of a map.
    Field(String),
    /// An item of a list that is a map: its keys, sorted by name.
    Item(Vec<(String, Value)>),
    /// A member of a list that is a set.
    Member(Value),
    /// A place in an atomic list; inside one only, so never in a reported path.
    Index(usize),
}

/// Where in an object: `.spec.ports[port=80,protocol="TCP"].name`, as the API server writes paths in
/// apply conflicts (structured-merge-diff `fieldpath/element.go`), but with unusual keys quoted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldPath(pub(crate) Vec<Segment>);

impl FieldPath {
    #[cfg(test)]
    pub(crate) fn child(&self, segment: Segment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend_from_slice(&self.0);
        segments.push(segment);
        Self(segments)
    }

    #[cfg(test)]
    pub(crate) fn field(&self, name: &str) -> Self {
        self.child(Segment::Field(name.to_owned()))
    }

    /// The path of plain map keys.
    pub(crate) fn of_fields(names: &[&str]) -> Self {
        Self(names.iter().map(|name| Segment::Field((*name).to_owned())).collect())
    }

    /// The last map key, if the path ends in one.
    pub(crate) fn last_field(&self) -> Option<&str> {
        match self.0.last() {
            Some(Segment::Field(name)) => Some(name),
            _ => None,
        }
    }

    /// Whether this path is `ancestor` or lies below it.
    pub(crate) fn starts_with(&self, ancestor: &FieldPath) -> bool {
        self.0.starts_with(&ancestor.0)
    }
}

fn is_plain_key(key: &str) -> bool {
    let mut bytes = key.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(key) if is_plain_key(key) => write!(f, ".{key}"),
            Self::Field(key) => write!(f, "[{}]", Value::from(key.as_str())),
            Self::Item(keys) => {
                f.write_char('[')?;
                for (index, (key, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        f.write_char(',')?;
                    }
                    write!(f, "{key}={value}")?;
                }
                f.write_char(']')
            }
            Self::Member(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| segment.fmt(f))
    }
}

/// One reference token of an RFC 6901 pointer.
pub(crate) fn pointer_token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_written_as_the_server_writes_them() {
        let path = FieldPath::of_fields(&["spec", "ports"])
            .child(Segment::Item(vec![("port".into(), json!(80)), ("protocol".into(), json!("TCP"))]))
            .field("name");
        assert_eq!(path.to_string(), r#".spec.ports[port=80,protocol="TCP"].name"#);
        assert_eq!(
            FieldPath::of_fields(&["metadata", "annotations", "a.b/c"]).to_string(),
            r#".metadata.annotations["a.b/c"]"#
        );
        assert_eq!(FieldPath::of_fields(&["zones"]).child(Segment::Member(json!("x"))).to_string(), r#".zones[="x"]"#);
        assert_eq!(FieldPath::of_fields(&["data", "api-key"]).to_string(), ".data.api-key");
        assert_eq!(FieldPath::of_fields(&["data", "0"]).to_string(), r#".data["0"]"#);
    }
}
