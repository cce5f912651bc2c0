//! What the tests share.

pub(crate) mod apiserver;
pub(crate) mod builder;
pub(crate) mod cases;
pub(crate) mod control_plane;
pub(crate) mod fixture;
pub(crate) mod kubelet;
pub(crate) mod namespace;
pub(crate) mod process;
