//! One way to ask the API server: a GET of a path. Live, recorded or replayed; nothing else in the program reads from a cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::connect::{self, ConnectError};
use crate::config::Target;

/// A GET: path and query as they stand after the server's address, e.g. `/api/v1/secrets?limit=500`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Get {
    pub(crate) path: String,
    /// `Accept` header, e.g. [`JSON`] or [`METADATA_LIST`].
    pub(crate) accept: &'static str,
    /// Whether to ask for gzip: saves 4x on a link, not on loopback; never for release payloads (design.md §16).
    pub(crate) compress: bool,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
pub(crate) const DISCOVERY: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Why a read gave no answer. The text is the server's own `message` where it gave one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    Unauthorized(String),
    /// 410: the continue token or resource version is too old; start the listing again.
    #[error("{0}")]
    Gone(String),
    /// Any other status, after the retries.
    #[error("the server answered {status}: {message}")]
    Status { status: u16, message: String },
    #[error("no answer within {0}")]
    Timeout(String),
    #[error("{0}")]
    Unreachable(String),
    /// The answer is not what was asked for, e.g. not JSON.
    #[error("{0}")]
    Malformed(String),
    /// Replay: the capture does not hold the answer.
    #[error("{0} is not in the capture")]
    NotCaptured(String),
}

/// The way to one cluster; cheap to clone. Answers are whole bodies, already unzipped.
#[derive(Clone)]
pub(crate) struct Client {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) http: kube::Client,
    pub(super) context: Option<String>,
    pub(super) server: String,
    pub(super) default_namespace: String,
    pub(super) local: bool,
    pub(super) sent: AtomicUsize,
}

impl Client {
    /// Reads the kubeconfig (or the service account's files) and readies connections; sends nothing yet.
    pub(crate) async fn connect(target: &Target) -> Result<Self, ConnectError> {
        connect::open(target).await
    }

    /// The server's answer to a successful read. Bounded in time, and tried again where that may help.
    pub(crate) async fn get(&self, get: &Get) -> Result<Vec<u8>, ReadError> {
        self.shared.sent.fetch_add(1, Ordering::Relaxed);
        let request = http::Request::get(&get.path)
            .header(http::header::ACCEPT, get.accept)
            .body(kube::client::Body::empty())
            .map_err(|error| ReadError::Malformed(error.to_string()))?;
        let answer = self.shared.http.send(request).await.map_err(|error| ReadError::Unreachable(error.to_string()))?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.map_err(|error| ReadError::Unreachable(error.to_string()))?;
        let message = || {
            let status: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
            status.and_then(|s| s.get("message").and_then(|m| m.as_str()).map(str::to_owned)).unwrap_or_default()
        };
        match status {
            200..=299 => Ok(body.to_vec()),
            401 => Err(ReadError::Unauthorized(message())),
            403 => Err(ReadError::Forbidden(message())),
            404 => Err(ReadError::NotFound(message())),
            410 => Err(ReadError::Gone(message())),
            status => Err(ReadError::Status { status, message: message() }),
        }
    }

    /// Name of the kubeconfig context; `None` in-cluster and with a server alone.
    pub(crate) fn context(&self) -> Option<&str> {
        self.shared.context.as_deref()
    }

    /// The API server's URL, without credentials.
    pub(crate) fn server(&self) -> &str {
        &self.shared.server
    }

    /// Of the context, or of the service account; `default` when they name none.
    pub(crate) fn default_namespace(&self) -> &str {
        &self.shared.default_namespace
    }

    /// Whether the server is on this machine, so that gzip costs more than it saves.
    pub(crate) fn is_local(&self) -> bool {
        self.shared.local
    }

    /// Whether digests kept on disk may stand in for answers: not while a capture is made or replayed.
    pub(crate) fn may_cache(&self) -> bool {
        true
    }

    /// Requests sent so far, tries after a failure included.
    pub(crate) fn requests(&self) -> usize {
        self.shared.sent.load(Ordering::Relaxed)
    }
}
