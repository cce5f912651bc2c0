//! From a [`Target`] to an open [`Client`]: kubeconfig, overrides, TLS, proxy. Knows nothing of what is asked.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::client::{Client, Shared};
use crate::config::Target;

/// Why there is no way to the cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{0}")]
    Config(String),
}

pub(crate) async fn open(target: &Target) -> Result<Client, ConnectError> {
    let wrong = |error: &dyn std::fmt::Display| ConnectError::Config(error.to_string());
    let mut merged = kube::config::Kubeconfig::default();
    for file in &target.kubeconfig {
        let one = kube::config::Kubeconfig::read_from(file).map_err(|error| wrong(&error))?;
        merged = merged.merge(one).map_err(|error| wrong(&error))?;
    }
    let options = kube::config::KubeConfigOptions { context: target.context.clone(), cluster: None, user: None };
    let context = target.context.clone().or_else(|| merged.current_context.clone());
    let mut config = kube::Config::from_custom_kubeconfig(merged, &options).await.map_err(|error| wrong(&error))?;
    config.default_retry = false;
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let local = config.cluster_url.host().is_some_and(|host| host == "127.0.0.1" || host == "localhost");
    let default_namespace = config.default_namespace.clone();
    let http = kube::Client::try_from(config).map_err(|error| wrong(&error))?;
    let shared = Shared { http, context, server, default_namespace, local, sent: AtomicUsize::new(0) };
    Ok(Client { shared: Arc::new(shared) })
}
