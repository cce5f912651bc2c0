//! Arguments of `drift correct`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ValueEnum, ValueHint};

use super::{OUTPUT, RULES, Screen, Where, Which, request_timeout};
use crate::drift::plan::Named;

const CORRECTION: &str = "Correction";

#[derive(clap::Args)]
pub(crate) struct CorrectArgs {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) correction: Correction,
    /// Configuration file; else helm-drift/config.yaml in the user's configuration directory
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RULES)]
    pub(crate) config: Option<PathBuf>,
    /// Form of the plan and of what came of it
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table", hide_default_value = true, help_heading = OUTPUT)]
    pub(crate) output: PlanFormat,
    #[command(flatten)]
    pub(crate) screen: Screen,
    #[command(flatten)]
    pub(crate) target: Where,
}

/// How to correct, and what is allowed.
#[derive(clap::Args)]
pub(crate) struct Correction {
    /// How: an atomic helm upgrade (the default), helm's rollback to the current revision, or finding by finding
    #[arg(long, value_enum, help_heading = CORRECTION)]
    pub(crate) method: Option<CorrectionMethod>,
    /// Chart of the release: directory, archive, repository or OCI reference; else it is rebuilt from the record
    #[arg(long, value_name = "CHART", help_heading = CORRECTION)]
    pub(crate) chart: Option<String>,
    /// Version of the chart that --chart names
    #[arg(id = "chart_version", long = "version", value_name = "VERSION", requires = "chart", help_heading = CORRECTION)]
    pub(crate) chart_version: Option<String>,
    /// Run the chart's upgrade hooks
    #[arg(long, help_heading = CORRECTION)]
    pub(crate) run_hooks: bool,
    /// Let helm reset also what is expected or ignored, such as an autoscaler's replicas
    #[arg(long, help_heading = CORRECTION)]
    pub(crate) reset_ignored: bool,
    /// Take away fields, items and keys that somebody added
    #[arg(long, help_heading = CORRECTION)]
    pub(crate) remove_added: bool,
    /// Delete and create again an object with a field that cannot be changed in place; may be repeated
    #[arg(long, value_name = "KIND/NAME", value_parser = named, help_heading = CORRECTION)]
    pub(crate) recreate: Vec<Named>,
    /// Correct also where something could not be told, and leave that alone
    #[arg(long, help_heading = CORRECTION)]
    pub(crate) partial: bool,
    /// Where to keep what was there before: a file, or none; else a file in the user's state directory
    #[arg(long, value_name = "FILE|none", value_hint = ValueHint::FilePath, help_heading = CORRECTION)]
    pub(crate) evidence: Option<PathBuf>,
    /// Keep the values of Secrets in the evidence
    #[arg(long, help_heading = CORRECTION)]
    pub(crate) include_secrets: bool,
    /// Give up values of Secrets that the correction overwrites
    #[arg(long, conflicts_with = "include_secrets", help_heading = CORRECTION)]
    pub(crate) discard_secret_values: bool,
    /// Time for helm, as its own --timeout, and for an object to go
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = request_timeout, help_heading = CORRECTION)]
    pub(crate) timeout: Duration,
    /// Print the plan and change nothing
    #[arg(long, conflicts_with = "yes", help_heading = CORRECTION)]
    pub(crate) dry_run: bool,
    /// Agree to the plan beforehand
    #[arg(short, long, help_heading = CORRECTION)]
    pub(crate) yes: bool,
}

/// As `drift::plan::Method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CorrectionMethod {
    /// An atomic upgrade to the very manifest that is stored, proven by a dry run first
    Upgrade,
    /// helm rollback to the current revision: needs no chart, and is not atomic
    Reapply,
    /// Each finding by itself, through the API; makes no revision
    Patch,
}

/// How a plan and its outcome are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    #[default]
    Table,
    Json,
    Yaml,
}

/// `Deployment/api`, `Queue.example.com/orders`.
fn named(text: &str) -> Result<Named, String> {
    let (kind, name) = text.split_once('/').ok_or("give KIND/NAME, as in Deployment/api")?;
    let (kind, group) = match kind.split_once('.') {
        Some((kind, group)) => (kind, Some(group.to_owned())),
        None => (kind, None),
    };
    let given = !kind.is_empty() && !name.is_empty() && !name.contains('/');
    if given {
        Ok(Named { kind: kind.to_owned(), group, name: name.to_owned() })
    } else {
        Err("give KIND/NAME, as in Deployment/api".to_owned())
    }
}
