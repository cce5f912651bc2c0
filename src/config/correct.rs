//! What `drift correct` was asked to do, and what it may do.

use std::path::PathBuf;
use std::time::Duration;

use super::{
    Command, Config, ConfigError, Engine, Format, Output, Scope, Target, Verbosity, settings, some_path, text,
};
use crate::cli::{CorrectArgs, Correction, CorrectionMethod, PlanFormat};
use crate::drift::finding::Mode;
use crate::drift::plan::{Method, OldSecrets, Wishes};
use crate::env::Env;

/// Revisions that Helm keeps unless told otherwise (helm/helm `pkg/cli/environment.go`).
const HELMS_HISTORY: usize = 10;

/// What `correct` was asked to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Correct {
    pub(crate) wishes: Wishes,
    pub(crate) chart: Option<ChartSource>,
    pub(crate) evidence: Evidence,
    /// The evidence holds values of Secrets.
    pub(crate) include_secrets: bool,
    /// For helm, and for an object to go; [`Duration::MAX`]: no limit.
    pub(crate) timeout: Duration,
    pub(crate) consent: Consent,
    pub(crate) format: PlanFormat,
    pub(crate) helm: HelmPlaces,
    /// What was corrected before is remembered here; `None`: nowhere.
    pub(crate) journal: Option<PathBuf>,
    /// For a chart that is rebuilt.
    pub(crate) temporary: PathBuf,
    /// Revisions that helm keeps (`HELM_MAX_HISTORY`); 0: all.
    pub(crate) max_history: usize,
}

/// What `--chart` and `--version` name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChartSource {
    pub(crate) reference: String,
    pub(crate) version: Option<String>,
}

/// Where what was there before is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The user wants none.
    None,
    File(PathBuf),
    /// A file of its own in this directory.
    Directory(PathBuf),
    /// No file was named, and the user has no directory for it.
    Nowhere,
}

/// Whether the plan is agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Only the plan is wanted.
    DryRun,
    /// Beforehand.
    Given,
    /// There is a terminal to ask on.
    Ask,
    /// Nobody can be asked.
    Missing,
}

/// Where a helm binary may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HelmPlaces {
    /// `HELM_BIN`, as helm sets it for its plugins, or the user.
    pub(crate) named: Option<PathBuf>,
    /// `PATH`.
    pub(crate) path: Vec<PathBuf>,
}

impl Config {
    pub(super) fn of_correct(args: CorrectArgs, env: &Env) -> Result<Self, ConfigError> {
        if args.which.revision.is_some() {
            return Err(ConfigError::CorrectToRevision);
        }
        if let Some(chart) = args.correction.chart.as_ref().filter(|chart| chart.is_empty() || chart.starts_with('-')) {
            return Err(ConfigError::Chart(chart.clone()));
        }
        let Correction { evidence, include_secrets, discard_secret_values, timeout, dry_run, yes, .. } =
            &args.correction;
        let state = env.state.as_deref().map(|directory| directory.join("helm-drift"));
        let evidence = match (some_path(evidence.clone()), &state) {
            (Some(none), _) if none.as_os_str() == "none" => Evidence::None,
            (Some(file), _) => Evidence::File(file),
            (None, Some(state)) => Evidence::Directory(state.join("evidence")),
            (None, None) => Evidence::Nowhere,
        };
        if *include_secrets && evidence == Evidence::None {
            return Err(ConfigError::NoEvidenceForSecrets);
        }
        let consent = match (dry_run, yes) {
            (true, _) => Consent::DryRun,
            (false, true) => Consent::Given,
            (false, false) if env.stdin_is_terminal && env.stderr_is_terminal => Consent::Ask,
            (false, false) => Consent::Missing,
        };
        let old_secrets = match evidence {
            Evidence::File(_) | Evidence::Directory(_) if *include_secrets => OldSecrets::Kept,
            _ if *discard_secret_values => OldSecrets::GivenUp,
            _ => OldSecrets::Lost,
        };
        let correct = Correct {
            include_secrets: *include_secrets,
            timeout: *timeout,
            wishes: wishes(&args.correction, old_secrets),
            chart: args
                .correction
                .chart
                .map(|reference| ChartSource { reference, version: args.correction.chart_version }),
            evidence,
            consent,
            format: args.output,
            helm: HelmPlaces {
                named: env.get("HELM_BIN").map(PathBuf::from),
                path: env.get("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default(),
            },
            journal: state.map(|state| state.join("corrections.jsonl")),
            temporary: env.temporary.clone(),
            max_history: text(env, "HELM_MAX_HISTORY")?.and_then(|text| text.parse().ok()).unwrap_or(HELMS_HISTORY),
        };
        let scope = Scope::new(args.which, env)?;
        // What is named is judged and corrected whatever its mode (design.md §3).
        let mode = (!scope.releases.is_empty()).then_some(Mode::Correct);
        let settings = settings(args.config, env)?;
        Ok(Self {
            command: Command::Correct(Box::new(correct)),
            scope,
            files: None,
            target: Target::new(args.target, env)?,
            output: Output::new(Format::Table, None, &args.screen, env),
            engine: Engine::Local,
            mode,
            settings,
            from: None,
            verbosity: Verbosity::new(&args.screen, env),
        })
    }
}

fn wishes(correction: &Correction, old_secrets: OldSecrets) -> Wishes {
    Wishes {
        method: correction.method.map(|method| match method {
            CorrectionMethod::Upgrade => Method::Upgrade,
            CorrectionMethod::Reapply => Method::Reapply,
            CorrectionMethod::Patch => Method::Patch,
        }),
        chart_given: correction.chart.is_some(),
        run_hooks: correction.run_hooks,
        reset_ignored: correction.reset_ignored,
        remove_added: correction.remove_added,
        recreate: correction.recreate.clone(),
        partial: correction.partial,
        old_secrets,
    }
}
