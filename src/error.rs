//! What leaves no verdict, and its exit code. What goes wrong with one release or object is no [`Error`] but a line of the report.

use std::io;

use crate::cluster::bundle::{BundleError, CaptureError};
use crate::cluster::connect::ConnectError;
use crate::config::ConfigError;
use crate::links::LinkError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("{file} cannot be written")]
    Manual { file: String, source: io::Error },
    /// Nothing was changed: without evidence nothing is.
    #[error("nothing was changed: {0}; name another place by --evidence FILE, or go without by --evidence none")]
    Evidence(CaptureError),
    #[error(
        "nothing was changed: there is no directory for the evidence; name a file by --evidence FILE, or go without by --evidence none"
    )]
    NoEvidencePlace,
    #[error("nothing was changed: the releases move faster than they can be planned for; try again later")]
    KeepsMoving,
    #[error("nothing was changed: {0} has no difference that needs --recreate")]
    NothingToRecreate(String),
    #[error("interrupted; nothing was changed")]
    Interrupted,
    #[error("the result cannot be written")]
    Output(#[source] io::Error),
    #[error("the program cannot start its threads")]
    Threads(#[source] io::Error),
    /// Without the panic's message, which may hold what must not be seen.
    #[error("internal error: this is a bug in drift; -v says where")]
    Panic,
}

impl Error {
    /// 2, trouble, for each: none of them is a verdict (design.md §3).
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_)
            | Self::Connect(_)
            | Self::Bundle(_)
            | Self::Capture(_)
            | Self::Link(_)
            | Self::Manual { .. }
            | Self::Evidence(_)
            | Self::NoEvidencePlace
            | Self::KeepsMoving
            | Self::NothingToRecreate(_)
            | Self::Interrupted
            | Self::Output(_)
            | Self::Threads(_)
            | Self::Panic => 2,
        }
    }
}

/// One line without control characters: what a cluster says must not drive the terminal (design.md §15).
pub(crate) fn printable(text: &str) -> String {
    let drives_terminal = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => line.push(' '),
            c if drives_terminal(c) => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    line
}
