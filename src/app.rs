//! The flow. Knows neither the command line nor the environment.

use std::io::Write;

use crate::config::Config;
use crate::error::Error;

/// One check, diff or capture; gives the exit code.
pub(crate) async fn run(_config: &Config, _out: &mut dyn Write, _err: &mut dyn Write) -> Result<u8, Error> {
    Err(Error::Panic)
}
