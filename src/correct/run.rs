//! What one run of `correct` carries along, and how it looks at releases. Changes nothing.

use std::time::Duration;

use jiff::Timestamp;

use super::ground::Subject;
use crate::cluster::Cluster;
use crate::config::{Config, Correct, Engine, Format, Namespaces, Scope};
use crate::drift::finding::{Mode, Report, TroubleReason};
use crate::drift::outcome::Planned;
use crate::drift::plan::{Action, Method};
use crate::drift::release::ReleaseKey;
use crate::helm::{Helm, HelmError};
use crate::inspector::Inspector;
use crate::interrupt::Interrupts;
use crate::output::{Progress, Style};
use crate::survey::{Look, look};

/// How long a server that went away is waited for once something was changed: what was done must be told.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Run<'a> {
    pub(super) config: &'a Config,
    pub(super) options: &'a Correct,
    pub(super) progress: &'a Progress,
    pub(super) helm: Result<Helm, HelmError>,
    interrupts: Interrupts,
}

/// Releases looked at, and what is to be done about each.
pub(super) struct Prepared {
    pub(super) report: Report,
    pub(super) planned: Vec<Planned>,
    /// In the order of `planned`; of releases with a plan only.
    pub(super) subjects: Vec<(ReleaseKey, Subject)>,
}

impl Prepared {
    /// A release that the gate let pass.
    fn passed(&self, release: &ReleaseKey) -> Option<&Subject> {
        let plan = self.planned.iter().filter_map(Planned::plan).find(|plan| plan.release == *release)?;
        plan.steps.iter().find(|step| step.action == Action::Upgrade)?;
        self.subjects.iter().find(|(key, _)| key == release).map(|(_, subject)| subject)
    }
}

impl<'a> Run<'a> {
    pub(super) async fn new(
        config: &'a Config,
        options: &'a Correct,
        progress: &'a Progress,
        interrupts: Interrupts,
    ) -> Self {
        let helm = if options.wishes.method == Some(Method::Patch) {
            Err(HelmError::NotFound)
        } else {
            let (places, target, storage) = (options.helm.clone(), config.target.clone(), config.scope.storage);
            let found = tokio::task::spawn_blocking(move || Helm::find(&places, &target, storage)).await;
            found.unwrap_or(Err(HelmError::NotFound))
        };
        Self { config, options, progress, helm, interrupts }
    }

    /// For one more to wait on.
    pub(super) fn interrupts(&self) -> Interrupts {
        self.interrupts.clone()
    }

    pub(super) fn style(&self, color: bool) -> Style {
        Style {
            format: Format::Table,
            show_all: false,
            color,
            width: self.config.output.width,
            now: Timestamp::now(),
            all_namespaces: self.config.scope.namespaces == Namespaces::All,
            quiet: self.config.output.quiet,
        }
    }

    async fn look(&self, cluster: &Cluster, config: &Config) -> Look {
        let inspector = Inspector { cluster, engine: Engine::Local, progress: self.progress, keep: true };
        look(&inspector, config, Timestamp::now()).await
    }

    /// Looks until the server answers, within a minute; whoever wants to stop is not kept for that.
    pub(super) async fn look_patiently(&self, cluster: &Cluster, config: &Config) -> Look {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let look = self.look(cluster, config).await;
            let silent = |reason: TroubleReason| matches!(reason, TroubleReason::Unreachable | TroubleReason::Timeout);
            let is_silent = look.report.errors.iter().any(|error| silent(error.reason));
            if !is_silent || self.interrupts.any() || tokio::time::Instant::now() > deadline {
                return look;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// One release, as it is now; `None`: it cannot be read.
    pub(super) async fn look_at(&self, cluster: &Cluster, release: &ReleaseKey) -> Option<Subject> {
        let scope = Scope {
            namespaces: Namespaces::One(Some(release.namespace.clone())),
            releases: vec![release.name.clone()],
            selector: None,
            ..self.config.scope.clone()
        };
        let config = Config { scope, ..self.config.clone() };
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let Look { report, examined, .. } = self.look_patiently(cluster, &config).await;
            let is_gone = report.errors.iter().any(|error| error.reason == TroubleReason::NotFound);
            if let Some((report, examined)) = report.releases.into_iter().next().zip(examined.into_iter().next())
                && let Some((subject, _)) = self.subject(cluster, report, examined).await
            {
                return Some(subject);
            }
            // A server that goes away in the middle of a look leaves half of one.
            if is_gone || self.interrupts.any() || tokio::time::Instant::now() > deadline {
                return None;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Looks at all releases in scope and plans for those that are to be corrected: the named ones, else those whose mode says so.
    /// `before`: what the last look found.
    pub(super) async fn prepare(&self, cluster: &Cluster, before: Option<&Prepared>) -> Prepared {
        let Look { report, mut examined, .. } = self.look(cluster, self.config).await;
        let named = !self.config.scope.releases.is_empty();
        let mut prepared = Prepared { planned: Vec::new(), subjects: Vec::new(), report };
        for release in &prepared.report.releases {
            if !named && release.mode != Mode::Correct {
                continue;
            }
            let key = ReleaseKey { namespace: release.namespace.clone(), name: release.name.clone() };
            let place = examined.iter().position(|one| one.loaded.history.key == key);
            let own = place.map(|place| examined.swap_remove(place));
            let before = before.and_then(|before| before.passed(&key));
            let (planned, subject) = self.plan(cluster, release.clone(), own, before).await;
            if planned.plan().is_some() {
                prepared.subjects.extend(subject.map(|subject| (key, subject)));
            }
            prepared.planned.push(planned);
        }
        prepared
    }
}
