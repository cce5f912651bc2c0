//! The pure core: no async, no I/O, no environment, clock, log or randomness.

pub(crate) mod equal;
pub(crate) mod finding;
pub(crate) mod live;
pub(crate) mod object;
pub(crate) mod release;
pub(crate) mod schema;
pub(crate) mod selector;
