//! The Kubernetes edge: everything that is asked of an API server.

pub(crate) mod client;
pub(crate) mod connect;
mod proxy;
mod transport;
