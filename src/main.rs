//! `drift`: arguments and environment in, one run, an exit code out.

mod cluster;
mod config;
mod drift;

fn main() {}
