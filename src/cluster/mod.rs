//! The Kubernetes edge: everything that is asked of an API server.

pub(crate) mod bundle;
mod cache;
pub(crate) mod client;
pub(crate) mod connect;
mod discovery;
pub(crate) mod dry_run;
#[cfg(test)]
mod fake;
mod listing;
mod mask;
mod namespaces;
pub(crate) mod observe;
pub(crate) mod openapi;
pub(crate) mod owned;
pub(crate) mod patch;
mod path;
mod proxy;
mod question;
pub(crate) mod storage;
mod transport;

use std::path::PathBuf;

use tokio::sync::Mutex;

use self::cache::Cache;
use self::client::{Client, ReadError};
use self::discovery::Known;
use self::openapi::Digests;
use crate::drift::finding::{Storage, TroubleReason};

/// One cluster, and what has been learnt of it so far. What is asked of it is in the files below, by topic.
pub(crate) struct Cluster {
    client: Client,
    cache: Option<Cache>,
    /// Things read at a time, at least 1.
    parallel: usize,
    known: Mutex<Known>,
    digests: Digests,
}

impl Cluster {
    /// `cache`: where digests are kept from run to run; `parallel`: things read at a time. Sends nothing yet.
    pub(crate) fn new(client: Client, cache: Option<PathBuf>, parallel: usize) -> Self {
        let cache = cache.filter(|_| client.may_cache()).map(|root| Cache::new(&root, &client.identity()));
        Self { client, cache, parallel: parallel.max(1), known: Mutex::default(), digests: Digests::default() }
    }

    /// Things to read at a time.
    pub(crate) fn parallel(&self) -> usize {
        self.parallel
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

/// What could not be read, where nothing can be said without it. What concerns one object is an `Observation` instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClusterError {
    /// What the server serves.
    #[error("{}", sentence("what the server serves cannot be read", .0, "the ClusterRole system:discovery gives the right to it"))]
    Discovery(ReadError),
    /// The listing of release records; `namespace: None` is all namespaces.
    #[error("{}", listing_failed(.storage, .namespace.as_deref(), .error))]
    Records { storage: Storage, namespace: Option<String>, error: ReadError },
    /// One release record.
    #[error("{}", record_failed(.storage, .namespace, .object_name, .error))]
    Record { storage: Storage, namespace: String, object_name: String, error: ReadError },
    /// This storage driver keeps nothing in the cluster.
    #[error("releases of the storage driver {} are not kept in the cluster", plural(.0))]
    NotInCluster(Storage),
}

impl ClusterError {
    pub(crate) fn reason(&self) -> TroubleReason {
        match self {
            Self::Discovery(error) | Self::Records { error, .. } | Self::Record { error, .. } => trouble_reason(error),
            Self::NotInCluster(_) => TroubleReason::OtherDriver,
        }
    }
}

/// What kind of trouble a failed read is.
pub(crate) fn trouble_reason(error: &ReadError) -> TroubleReason {
    match error {
        ReadError::NotFound(_) | ReadError::NotServed(_) | ReadError::NotCaptured(_) => TroubleReason::NotFound,
        ReadError::Forbidden(_) => TroubleReason::Forbidden,
        ReadError::Unauthorized(_) => TroubleReason::Unauthorized,
        ReadError::Timeout(_) => TroubleReason::Timeout,
        ReadError::Unreachable(_) | ReadError::Status { .. } => TroubleReason::Unreachable,
        ReadError::Gone(_) | ReadError::Malformed(_) => TroubleReason::Internal,
    }
}

/// One line: the server's own words where they say what was asked, and the remedy where it is ours to name.
fn sentence(failed: &str, error: &ReadError, remedy: &str) -> String {
    match error {
        ReadError::Forbidden(_) => format!("{error}: {remedy}"),
        // These name server, cause and remedy already.
        ReadError::Unauthorized(_) | ReadError::Unreachable(_) => error.to_string(),
        _ => format!("{failed}: {error}"),
    }
}

fn listing_failed(storage: &Storage, namespace: Option<&str>, error: &ReadError) -> String {
    let plural = plural(storage);
    let (where_, remedy) = match namespace {
        Some(namespace) => (
            format!("in namespace {namespace:?}"),
            format!("the verbs list and get on {plural} are needed, or get alone with a release's name and --revision"),
        ),
        None => (
            "of all namespaces".to_owned(),
            format!("name a namespace with -n, or have the verbs list and get on {plural} granted in all namespaces"),
        ),
    };
    sentence(&format!("{plural} {where_} cannot be listed"), error, &remedy)
}

fn record_failed(storage: &Storage, namespace: &str, object_name: &str, error: &ReadError) -> String {
    let failed = format!("record {object_name:?} in namespace {namespace:?} cannot be read");
    sentence(&failed, error, &format!("the verb get on {} is needed", plural(storage)))
}

fn plural(storage: &Storage) -> &'static str {
    match storage {
        Storage::Secret => "secrets",
        Storage::ConfigMap => "configmaps",
        Storage::Sql => "sql",
        Storage::Files => "files",
    }
}
