//! The tests' control plane around a command, for scripts and for trying things out:
//!
//!     cargo test --test with-cluster -- bash
//!
//! The command finds the cluster in KUBECONFIG, `kubectl`, `helm3`, `helm4` and `helm` (4) on PATH, and in DRIFT the program
//! as it is now. Its exit code is handed on; the cluster ends with it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    dead_code,
    unused_imports,
    unused_macros,
    reason = "shares the tests' support and uses a part of it"
)]

mod support;

use std::process::ExitCode;
use support::control_plane::{ControlPlane, Helm};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, arguments)) = words.split_first() else {
        eprintln!("usage: cargo test --test with-cluster -- COMMAND [ARGUMENT]...");
        return ExitCode::from(2);
    };
    let plane = match ControlPlane::start() {
        Ok(plane) => plane,
        Err(problem) => {
            eprintln!("no control plane: {problem}");
            return ExitCode::FAILURE;
        }
    };
    // The caller's environment, but for what would leave the cluster's traces in the caller's home.
    let home = plane.folder("home");
    let status = plane
        .in_environment(&mut std::process::Command::new(program), Helm::Four)
        .args(arguments)
        .env("KUBECACHEDIR", home.join(".kube/cache"))
        .env("HELM_CACHE_HOME", home.join("helm/cache"))
        .env("HELM_CONFIG_HOME", home.join("helm/config"))
        .env("HELM_DATA_HOME", home.join("helm/data"))
        .env("DRIFT", env!("CARGO_BIN_EXE_drift"))
        .status();
    match status {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::from(127)
        }
    }
}
