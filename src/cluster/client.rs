//! One way to ask the API server: a GET of a path. Live, recorded or replayed; nothing else in the program reads from a cluster.

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
