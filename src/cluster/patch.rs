//! The one file that changes objects of the cluster. Knows nothing of why, or whether somebody agreed to it.
//!
//! Everything sent is either bound to the state of the object that was judged (uid and resourceVersion), so that a newer one is a
//! conflict, or creates what is not there. A second time does no harm.

use serde_json::{Value, json};

use super::Cluster;
use super::client::{APPLY, JSON, JSON_PATCH, ReadError, Sending};
use super::path::{self, Query};
use crate::drift::live::Served;
use crate::drift::object::ObjectRef;
use crate::drift::repair;

/// The field manager of what is not written in Helm's name.
const MANAGER: &str = "helm-drift";

/// Why an object was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChangeError {
    /// It is not any more what it was when it was judged, or is there already, or is gone.
    #[error("it changed meanwhile: {0}")]
    Conflict(String),
    /// It, or what it lies in, is not there.
    #[error("{0}")]
    Absent(String),
    /// The server understood, and will not: an immutable field, a webhook, a quota.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Forbidden(String),
    /// Whether it was changed is not known.
    #[error("{0}")]
    Unanswered(String),
}

/// Whether it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The server says what would come of it, its webhooks too, and stores nothing.
    Rehearsal,
    Real,
}

impl Attempt {
    fn on(self, query: Query) -> Query {
        match self {
            Self::Rehearsal => query.with("dryRun", "All"),
            Self::Real => query,
        }
    }
}

/// A rehearsal is bound to the object, not to its version: a status that moves on is no answer to it.
impl Attempt {
    fn at_any_version(self, object: &Value) -> Value {
        let mut object = object.clone();
        if self == Self::Rehearsal
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("resourceVersion");
        }
        object
    }

    fn is_kept(self, operation: &Value) -> bool {
        self == Self::Real || operation.get("path") != Some(&"/metadata/resourceVersion".into())
    }
}

/// What becomes of what an object owns when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependents {
    Go,
    Stay,
}

impl Cluster {
    /// Applies a whole object server-side under Helm's name, forced, so that the next `helm upgrade` meets no conflict with us.
    ///
    /// `body`: from [`repair::bound`], or [`repair::anew`] to create it.
    pub(crate) async fn apply(
        &self,
        served: &Served,
        object: &ObjectRef,
        body: &Value,
        manager: &str,
        attempt: Attempt,
    ) -> Result<(), ChangeError> {
        let query = Query::new(&object_path(served, object)?)
            .with("fieldManager", manager)
            .with("force", "true")
            .with("fieldValidation", "Ignore");
        self.change(http::Method::PATCH, attempt.on(query), APPLY, &typed(served, &attempt.at_any_version(body))).await
    }

    /// Sends a JSON patch of [`repair::json_patch`].
    pub(crate) async fn patch(
        &self,
        served: &Served,
        object: &ObjectRef,
        operations: Vec<Value>,
        attempt: Attempt,
    ) -> Result<(), ChangeError> {
        let query = Query::new(&object_path(served, object)?).with("fieldManager", MANAGER);
        let operations: Vec<Value> = operations.into_iter().filter(|one| attempt.is_kept(one)).collect();
        self.change(http::Method::PATCH, attempt.on(query), JSON_PATCH, &Value::Array(operations)).await
    }

    /// Gives up what this program owns of an object after [`Cluster::patch`]: where that is nobody's, Helm meets no conflict. Best effort;
    /// what changes the object meanwhile is looked at again.
    pub(crate) async fn disown(&self, served: &Served, object: &ObjectRef) -> Result<(), ChangeError> {
        const TURNS: usize = 5;
        let mut problem = ChangeError::Conflict(String::new());
        for _ in 0..TURNS {
            let live = self.object(served, object).await.map_err(change_error)?;
            let Some(operations) = repair::disown(&live, MANAGER) else { return Ok(()) };
            match self.patch(served, object, operations, Attempt::Real).await {
                Err(error @ (ChangeError::Conflict(_) | ChangeError::Absent(_) | ChangeError::Unanswered(_))) => {
                    problem = error;
                }
                done => return done,
            }
        }
        Err(problem)
    }

    /// Creates an object as client-side Helm would; it must not be there.
    pub(crate) async fn create(
        &self,
        served: &Served,
        object: &ObjectRef,
        body: &Value,
        attempt: Attempt,
    ) -> Result<(), ChangeError> {
        object_path(served, object)?;
        let query = Query::new(&path::collection(served, object.namespace.as_deref()))
            .with("fieldManager", MANAGER)
            .with("fieldValidation", "Ignore");
        self.change(http::Method::POST, attempt.on(query), JSON, &typed(served, body)).await
    }

    /// Asks for the deletion of exactly this object, in this state; it may take its time.
    pub(crate) async fn delete(
        &self,
        served: &Served,
        object: &ObjectRef,
        live: &Value,
        dependents: Dependents,
        attempt: Attempt,
    ) -> Result<(), ChangeError> {
        let bound = attempt.at_any_version(&repair::bound(&json!({"metadata": {}}), live));
        let policy = match dependents {
            Dependents::Go => "Background",
            Dependents::Stay => "Orphan",
        };
        // With options in the body the server reads none from the query.
        let dry_run: &[&str] = if attempt == Attempt::Rehearsal { &["All"] } else { &[] };
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy, "preconditions": bound.get("metadata"),
            "dryRun": dry_run,
        });
        let query = Query::new(&object_path(served, object)?);
        self.change(http::Method::DELETE, query, JSON, &options).await
    }

    async fn change(
        &self,
        method: http::Method,
        query: Query,
        content_type: &'static str,
        body: &Value,
    ) -> Result<(), ChangeError> {
        let body = as_go_writes(&body.to_string()).into_bytes();
        let sending = Sending { method, path: query.path(), content_type, body };
        self.client.send(&sending).await.map(drop).map_err(change_error)
    }
}

fn object_path(served: &Served, object: &ObjectRef) -> Result<String, ChangeError> {
    let path = path::object(served, object.namespace.as_deref(), &object.name);
    path.ok_or_else(|| ChangeError::Refused(format!("no object can be called {:?}", object.name)))
}

/// The server compares a patch's `test` with the object byte by byte, as Go's encoder wrote it: these characters it escapes
/// (encoding/json `HTMLEscape`; evanphx/json-patch `lazyNode.equal`). In JSON they stand in strings alone.
fn as_go_writes(json: &str) -> String {
    const ESCAPED: [(char, &str); 5] =
        [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];
    ESCAPED.iter().fold(json.to_owned(), |text, (from, to)| text.replace(*from, to))
}

/// In the version that it is sent in.
fn typed(served: &Served, body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(map) = body.as_object_mut() {
        map.insert("apiVersion".to_owned(), served.gvk.api_version().into());
        map.insert("kind".to_owned(), served.gvk.kind.as_str().into());
    }
    body
}

fn change_error(error: ReadError) -> ChangeError {
    let text = error.to_string();
    match error {
        ReadError::Forbidden(_) | ReadError::Unauthorized(_) => ChangeError::Forbidden(text),
        ReadError::NotFound(_) | ReadError::Gone(_) => ChangeError::Absent(text),
        ReadError::NotServed(_) => ChangeError::Refused(text),
        ReadError::Status { status: 409, message } => ChangeError::Conflict(message),
        // Also a JSON patch whose test failed.
        ReadError::Status { status: 422, message } if message.contains("testing") => ChangeError::Conflict(message),
        // Not now, which is not never.
        ReadError::Status { status: 408 | 425 | 429, message } => ChangeError::Unanswered(message),
        ReadError::Status { status: 400..=499, message } => ChangeError::Refused(message),
        ReadError::Status { .. }
        | ReadError::Timeout(_)
        | ReadError::Unreachable(_)
        | ReadError::Malformed(_)
        | ReadError::NotCaptured(_) => ChangeError::Unanswered(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_real_change_is_bound_to_a_version() {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": "7"}});
        assert_eq!(Attempt::Real.at_any_version(&object), object);
        assert_eq!(Attempt::Rehearsal.at_any_version(&object), json!({"metadata": {"uid": "u"}}));
        let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"});
        let uid = json!({"op": "test", "path": "/metadata/uid", "value": "u"});
        assert!(Attempt::Real.is_kept(&version) && Attempt::Rehearsal.is_kept(&uid));
        assert!(!Attempt::Rehearsal.is_kept(&version));
    }

    #[test]
    fn a_patch_is_written_as_go_writes_the_object() {
        let value = json!({"a<b": "x & y > z\u{2028}\\u003c \"q\""});
        let text = as_go_writes(&value.to_string());
        assert_eq!(text, r#"{"a\u003cb":"x \u0026 y \u003e z\u2028\\u003c \"q\""}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
