//! The program as a process: streams, exit codes, the name it is called by. What a command line means is tested in
//! `src/cli.rs` and `src/config.rs`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at what it did not expect")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const DRIFT: &str = env!("CARGO_BIN_EXE_drift");

/// The program, with no environment but a kubeconfig that does not exist: no cluster is ever met.
fn drift() -> Command {
    alone(PathBuf::from(DRIFT))
}

/// The same file under kubectl's name, as krew and `ln` make it.
fn kubectl_drift() -> Command {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join(format!("kubectl-drift{}", std::env::consts::EXE_SUFFIX));
    // Another test may have been faster.
    let _ = std::fs::hard_link(DRIFT, &path);
    alone(path)
}

fn alone(path: PathBuf) -> Command {
    let mut command = Command::new(path);
    command.env_clear().env("KUBECONFIG", "/nowhere/kubeconfig").stdin(Stdio::null());
    command
}

/// Exit code, stdout, stderr.
fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    (status.code().expect("no signal"), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn usage_errors_are_two_lines_on_stderr_and_exit_2() {
    for line in [
        "--namspace x",
        "-o jso",
        "capture",
        "Nucleus",
        "--revision 3",
        "prod/nucleus",
        "-l a=b=c",
        "-n Prod",
        "--storage-driver sql",
        "--storage-driver memory",
    ] {
        let (code, stdout, stderr) = run(drift().args(line.split(' ')));
        assert_eq!((code, stdout.as_str()), (2, ""), "{line}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.ends_with('\n'), "{line}: {stderr}");
        assert!(stderr.lines().count() <= 2, "{line}: {stderr}");
    }
}

#[test]
fn help_and_version_are_results() {
    for (mut program, plugin, called) in
        [(drift(), "", "drift"), (drift(), "drift", "helm drift"), (kubectl_drift(), "drift", "kubectl drift")]
    {
        let (code, stdout, stderr) = run(program.env("HELM_PLUGIN_NAME", plugin).arg("--help"));
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert!(stdout.contains(&format!("Usage: {called} [RELEASE]...")), "{stdout}");
        assert!(!stdout.contains('\u{1b}'), "no colour in a pipe");
    }
    let version = format!("drift {}\n", env!("CARGO_PKG_VERSION"));
    for line in ["version", "--version", "-V"] {
        assert_eq!(run(drift().arg(line).env("HELM_DRIVER", "memory")), (0, version.clone(), String::new()), "{line}");
    }
}

#[test]
fn helms_variables_do_not_count_under_kubectl() {
    for (mut program, counts) in [(drift(), true), (kubectl_drift(), false)] {
        let (code, stdout, stderr) = run(program.env("HELM_NAMESPACE", "Prod"));
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert_eq!(stderr.contains("HELM_NAMESPACE"), counts, "{stderr}");
    }
}

#[test]
fn without_a_cluster_there_is_no_verdict() {
    for line in ["", "nucleus", "-A -o json", "diff nucleus", "capture --to unwritten"] {
        let (code, stdout, stderr) = run(drift().args(line.split_whitespace()).args(["--token", "hunter2"]));
        assert_eq!((code, stdout.as_str()), (2, ""), "{line}: {stderr}");
        assert!(stderr.starts_with("error: ") && !stderr.contains("hunter2"), "{line}: {stderr}");
    }
}

#[test]
fn completions_are_for_the_name_called() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        for (mut program, name) in [(drift(), "drift"), (kubectl_drift(), "kubectl-drift")] {
            let (code, stdout, stderr) = run(program.args(["completion", shell]));
            assert_eq!((code, stderr.as_str()), (0, ""));
            assert!(stdout.contains(name) && stdout.contains("all-namespaces"), "{shell}");
        }
    }
}

#[test]
fn a_reader_that_leaves_changes_no_exit_code() {
    let mut child = drift().args(["completion", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert_eq!((status.code(), stderr), (Some(0), Vec::new()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_trouble() {
    for line in ["version", "--help", "completion bash"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = drift().args(line.split(' ')).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.starts_with("error: the result cannot be written: "), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}
