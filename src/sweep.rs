//! The check of plain manifests (`-f`): files, desired objects, live objects, findings, one entry of the report for each argument.
//! Knows nothing of releases.

use std::sync::Arc;

use jiff::Timestamp;

use crate::config::{Files, Source};
use crate::drift::classify::Hand;
use crate::drift::coverage::{self, Looked};
use crate::drift::finding::{ApplyMethod, Mode, ReleaseReport, Report, Storage, Trouble, TroubleReason};
use crate::drift::live::ApiTable;
use crate::drift::manifest::{self, Desired};
use crate::drift::release::ReleaseKey;
use crate::drift::rules::{Rules, Rulings};
use crate::drift::settle;
use crate::drift::state::Comparison;
use crate::files::{self, Reading};
use crate::inspector::Inspector;
use crate::ledger::{Balance, Ledger};
use crate::survey::trouble;
use crate::task::{Task, Terms};

/// Compares what the files want with what is live.
///
/// `namespace`: of namespaced objects that name none. What cannot be read is an entry of `errors`, and keeps its argument from
/// being called in sync; the rest is judged all the same.
pub(crate) async fn sweep(
    inspector: &Inspector<'_>,
    files: &Files,
    namespace: &str,
    rules: &Arc<Rules>,
    now: Timestamp,
) -> Report {
    let rulings = Rulings {
        rules: Arc::clone(rules),
        // Rules for certain releases are not for files.
        release: ReleaseKey { namespace: namespace.to_owned(), name: String::new() },
        now,
        flux: Vec::new(),
    };
    let mut sweep = Sweep { inspector, namespace, rulings, releases: Vec::new(), errors: Vec::new() };
    sweep.run(files).await;
    // Files are never all that a rule may be for: none is said to cover nothing.
    let looked = Looked { namespace: None, names: &[], whole: false, releases: &[] };
    Report {
        cluster: inspector.cluster.info().await,
        started_at: now,
        finished_at: now,
        releases: sweep.releases,
        notices: coverage::notices(&rules.ignore, &[], now, looked),
        errors: sweep.errors,
    }
}

struct Sweep<'a> {
    inspector: &'a Inspector<'a>,
    namespace: &'a str,
    rulings: Rulings,
    releases: Vec<ReleaseReport>,
    errors: Vec<Trouble>,
}

/// One `-f` argument whose files were read.
struct Argument {
    name: String,
    reading: Reading,
}

impl Sweep<'_> {
    async fn run(&mut self, files: &Files) {
        self.inspector.progress.stage("reading files");
        let arguments = self.read(files).await;
        if arguments.is_empty() {
            return;
        }
        let apis = match self.inspector.cluster.apis().await {
            Ok(apis) => apis,
            Err(error) => return self.errors.push(trouble(&error, None)),
        };
        let inspector = self.inspector;
        let apis = inspector.apis_for(arguments.iter().map(|argument| self.desired(argument, &apis)), &apis).await;
        let (mut names, mut ledgers, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
        let terms = Arc::new(Terms {
            hand: Hand { applier: true, ..Hand::default() },
            apply_method: ApplyMethod::ClientSide,
            has_subcharts: false,
            comparison: Comparison::Manifest,
            release: (String::new(), String::new()),
            rulings: self.rulings.clone(),
        });
        for argument in arguments {
            let mut desired = self.desired(&argument, &apis);
            self.errors.extend(desired.problems.iter().map(|problem| Trouble {
                reason: TroubleReason::Internal,
                message: problem.clone(),
                namespace: None,
            }));
            // Told already, each with its own reason.
            desired.problems.extend(argument.reading.troubles.into_iter().map(|trouble| trouble.message));
            if desired.objects.is_empty() && desired.problems.is_empty() && desired.untrackable == 0 {
                self.errors.push(nothing_found(&argument.name, &desired));
                continue;
            }
            let ledger = Ledger::open(&mut desired);
            tasks.extend(desired.objects.into_iter().map(|object| Task::new(ledgers.len(), &terms, object)));
            names.push(argument.name);
            ledgers.push(ledger);
        }
        let mut open: Vec<&mut Ledger> = ledgers.iter_mut().collect();
        inspector.compare(&mut open, tasks, &apis).await;
        inspector.look_for_stale_pods(&mut open, &apis).await;
        self.releases =
            names.into_iter().zip(ledgers).map(|(name, ledger)| entry(name, self.namespace, ledger)).collect();
    }

    /// What the arguments hold. Arguments of which nothing was read leave their troubles only.
    async fn read(&mut self, files: &Files) -> Vec<Argument> {
        let mut arguments = Vec::new();
        for source in &files.sources {
            let (own, recursive) = (source.clone(), files.recursive);
            let name = source.to_string();
            let Ok(reading) = tokio::task::spawn_blocking(move || files::read(&own, recursive)).await else {
                let message = format!("{name}: internal error while it was read");
                self.errors.push(Trouble { reason: TroubleReason::Internal, message, namespace: None });
                continue;
            };
            self.errors.extend(reading.troubles.iter().cloned());
            if !reading.files.is_empty() {
                arguments.push(Argument { name, reading });
            }
        }
        arguments
    }

    fn desired(&self, argument: &Argument, apis: &ApiTable) -> Desired {
        manifest::objects_of_files(&argument.reading.files, self.namespace, apis)
    }
}

fn nothing_found(name: &str, desired: &Desired) -> Trouble {
    let message = match desired.notices.first() {
        Some(notice) => notice.message.clone(),
        None if name == Source::Stdin.to_string() => "standard input: there is no object in it".to_owned(),
        None => format!("{name}: there is no object in it"),
    };
    Trouble { reason: TroubleReason::NothingFound, message, namespace: None }
}

fn entry(name: String, namespace: &str, ledger: Ledger) -> ReleaseReport {
    let Balance { counts, tally, findings, mut notices } = ledger.close();
    let settled = settle::files(&tally);
    notices.extend(settled.notices);
    ReleaseReport {
        name,
        namespace: namespace.to_owned(),
        revision: None,
        judged_revision: None,
        status: None,
        chart: None,
        app_version: None,
        last_deployed: None,
        storage: Storage::Files,
        apply_method: None,
        ready: settled.ready,
        stalled: settled.stalled,
        reason: settled.reason,
        message: settled.message,
        mode: Mode::Warn,
        suspended: false,
        exit: settled.exit,
        objects: counts,
        findings,
        notices,
    }
}
