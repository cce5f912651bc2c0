//! Against a real API server, real controllers and a real Helm.

mod cases;
mod configuration;
mod corpus;
mod history;
mod mutation;
mod plane;
mod stale;
mod sweep;
