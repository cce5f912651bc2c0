//! What the tests share.

pub(crate) mod apiserver;
pub(crate) mod builder;
pub(crate) mod bystanders;
pub(crate) mod cases;
pub(crate) mod charts;
pub(crate) mod control_plane;
pub(crate) mod drift;
pub(crate) mod fixture;
pub(crate) mod kubelet;
pub(crate) mod mutations;
pub(crate) mod namespace;
pub(crate) mod oracle;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod record;
pub(crate) mod release;
pub(crate) mod rewind;
pub(crate) mod types;
pub(crate) mod web;
