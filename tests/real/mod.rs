//! Against a real API server, real controllers and a real Helm.

mod cases;
mod corpus;
mod mutation;
mod plane;
