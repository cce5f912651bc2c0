//! Against a real API server, real controllers and a real Helm.

mod cases;
mod configuration;
mod corpus;
mod correct;
mod correct_failures;
mod correct_traps;
mod history;
mod install;
mod mutation;
mod plane;
mod recreated;
mod rights;
mod stale;
mod sweep;
mod transcripts;
