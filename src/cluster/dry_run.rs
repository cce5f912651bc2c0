//! The second opinion: what the server would store if an object were applied. The one question that is no GET, asked with
//! `--engine server` only; the server stores nothing for it.

use serde_json::Value;

use super::Cluster;
use super::client::{APPLY, Get, JSON, ReadError, Sending};
use super::listing::malformed;
use super::path::{self, Query};
use crate::drift::live::Served;
use crate::drift::object::ObjectRef;

/// The field manager of a dry run. It owns nothing afterwards, as nothing is stored.
const MANAGER: &str = "helm-drift";

impl Cluster {
    /// Applies `body` as a server-side dry run, forced, unknown fields ignored; gives the object as it would be stored.
    ///
    /// Needs the verb patch. Refusals (immutable fields, webhooks without dry run, rights) are the server's own words.
    pub(crate) async fn dry_run(&self, served: &Served, object: &ObjectRef, body: &Value) -> Result<Value, ReadError> {
        let Some(path) = path::object(served, object.namespace.as_deref(), &object.name) else {
            return Err(ReadError::NotFound(format!("no object can be called {:?}", object.name)));
        };
        let query = Query::new(&path)
            .with("dryRun", "All")
            .with("fieldManager", MANAGER)
            .with("force", "true")
            .with("fieldValidation", "Ignore");
        let mut manifest = body.clone();
        if let Some(map) = manifest.as_object_mut() {
            map.insert("apiVersion".to_owned(), served.gvk.api_version().into());
            map.insert("kind".to_owned(), served.gvk.kind.as_str().into());
        }
        let body = manifest.to_string().into_bytes();
        let sending = Sending { method: http::Method::PATCH, path: query.path(), content_type: APPLY, body };
        let answer = self.client.send(&sending).await?;
        serde_json::from_slice(&answer).map_err(|error| malformed(&served.plural, &error))
    }

    /// The object as it is now, beside what the server would store.
    pub(crate) async fn object(&self, served: &Served, object: &ObjectRef) -> Result<Value, ReadError> {
        let Some(path) = path::object(served, object.namespace.as_deref(), &object.name) else {
            return Err(ReadError::NotFound(format!("no object can be called {:?}", object.name)));
        };
        let answer = self.client.get(&Get { path, accept: JSON, compress: !self.client.is_local() }).await?;
        serde_json::from_slice(&answer).map_err(|error| malformed(&served.plural, &error))
    }
}
