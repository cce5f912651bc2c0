//! One run of a program: its input, its time limit, what it said. Knows nothing of clusters.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How a program ended.
pub(crate) struct Finished {
    /// Exit code; `None` when a signal or the time limit ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// What it printed, or what it complained of (at most 600 characters).
    pub(crate) fn success(self) -> Result<String, String> {
        if self.code == Some(0) {
            return Ok(self.stdout);
        }
        let said = if self.stderr.trim().is_empty() { self.stdout } else { self.stderr };
        let code = self.code.map_or_else(|| "killed".to_owned(), |code| format!("exit {code}"));
        Err(format!("{code}: {}", said.trim().chars().take(600).collect::<String>()))
    }
}

/// Runs a program to its end, or kills it when `limit` is over. Children that it leaves behind with its streams are not waited for beyond that.
pub(crate) fn run(command: &mut Command, input: &str, limit: Duration) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program may end without reading its input: that is its affair.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    let code = loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("{name}: {error}"))? {
            break status.code();
        }
        if Instant::now() >= deadline {
            drop(child.kill());
            drop(child.wait());
            return Err(format!("{name}: not done after {} s", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    drop(writer.join());
    Ok(Finished { code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() })
}

fn collect(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
