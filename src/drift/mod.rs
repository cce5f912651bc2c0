//! The pure core: no async, no I/O, no environment, clock, log or randomness.

pub(crate) mod applier;
pub(crate) mod autoscaler;
pub(crate) mod classify;
pub(crate) mod compare;
pub(crate) mod defaults;
pub(crate) mod equal;
pub(crate) mod finding;
pub(crate) mod live;
pub(crate) mod manifest;
pub(crate) mod object;
pub(crate) mod opinion;
pub(crate) mod owners;
pub(crate) mod payload;
pub(crate) mod release;
pub(crate) mod schema;
pub(crate) mod security;
pub(crate) mod selector;
pub(crate) mod settle;
pub(crate) mod similar;
pub(crate) mod state;
pub(crate) mod tally;
pub(crate) mod writers;
pub(crate) mod yaml;
