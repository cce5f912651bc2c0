//! `drift`: arguments and environment in, one run, an exit code out.

mod app;
mod case;
mod cli;
mod cluster;
mod complete;
mod config;
mod correct;
mod drift;
mod env;
mod error;
mod files;
mod helm;
mod inspector;
mod interrupt;
mod ledger;
mod links;
mod man;
mod output;
mod pipe;
mod settings;
mod suggest;
mod survey;
mod sweep;
mod task;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use cli::NotParsed;
use config::{Command, Config, Verbosity};
use env::Env;
use error::Error;
use pipe::Pipe;

fn main() -> ExitCode {
    // A panic's message may hold a piece of a Secret, and a panic that is contained is no news: only its place is told, in the log.
    panic::set_hook(Box::new(|info| tracing::debug!(place = info.location().map(tracing::field::display), "panic")));
    let argv: Vec<OsString> = std::env::args_os().collect();
    let env = Env::capture(argv.first().map(OsString::as_os_str));
    let mut out = BufWriter::new(Pipe::new(io::stdout().lock()));
    let mut err = Pipe::new(io::stderr());

    let result =
        panic::catch_unwind(AssertUnwindSafe(|| drive(argv, &env, &mut out, &mut err))).unwrap_or(Err(Error::Panic));
    let result = result.and_then(|code| out.flush().map(|()| code).map_err(Error::Output));
    ExitCode::from(result.unwrap_or_else(|error| {
        let code = error.exit_code();
        // Where stderr cannot be written either, the exit code alone says it.
        let _ = writeln!(err, "error: {}", error::printable(&format!("{:#}", anyhow::Error::new(error))));
        code
    }))
}

/// One run; what it gives is the exit code.
fn drive(argv: Vec<OsString>, env: &Env, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Error> {
    let called = env.called();
    let mut argv = argv;
    if env.completes() {
        argv.insert(argv.len().min(1), cli::COMPLETE.into());
    }
    let args = match cli::parse(argv, &called) {
        Ok(args) => args,
        Err(NotParsed::Wrong(lines)) => return err.write_all(lines.as_bytes()).map(|()| 2).map_err(Error::Output),
        Err(NotParsed::Help(text)) => {
            let text = if config::colors_help(env) { text.ansi().to_string() } else { text.to_string() };
            return out.write_all(text.as_bytes()).map(|()| 0).map_err(Error::Output);
        }
    };
    let config = Config::new(args, env)?;
    start_log(config.verbosity);
    match config.command {
        Command::Version => writeln!(out, "drift {}", env!("CARGO_PKG_VERSION")).map(|()| 0).map_err(Error::Output),
        Command::Completion(shell) => {
            out.write_all(&cli::completion(shell, &env.program)).map(|()| 0).map_err(Error::Output)
        }
        Command::Manual(ref manual) => app::manual(manual, out),
        Command::InstallKubectl(ref place) => app::install_kubectl(place, out, err),
        Command::Check
        | Command::Diff
        | Command::History
        | Command::Capture { .. }
        | Command::ConfigCheck { .. }
        | Command::Correct(_)
        | Command::Complete(_) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Threads)?;
            let result = runtime.block_on(app::run(&config, out, err));
            // The verdict is there: no read that still hangs keeps the user waiting.
            runtime.shutdown_background();
            result
        }
    }
}

/// The log, on stderr. Of this program only: kube_client, for one, logs whole bodies, Secrets among them (crates.md §1.1).
fn start_log(verbosity: Verbosity) {
    let level = match verbosity {
        Verbosity::Quiet => LevelFilter::ERROR,
        Verbosity::Normal => LevelFilter::WARN,
        Verbosity::Requests => LevelFilter::DEBUG,
        Verbosity::Everything => LevelFilter::TRACE,
    };
    let ours = Targets::new().with_target("drift", level).with_target("kube_client", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).without_time().with_target(false);
    tracing_subscriber::registry().with(lines).with(ours).init();
}
