//! What a correction stands on: the record as it is stored, the objects it wants, and what speaks against writing it once more. Reads,
//! and runs `helm` only to render.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::spawn_blocking;

use super::journal;
use super::rehearsal::rehearse;
use super::run::Run;
use crate::case::Loaded;
use crate::cluster::Cluster;
use crate::drift::chart;
use crate::drift::finding::{ApplyMethod, ReleaseReport};
use crate::drift::hush::Secrets;
use crate::drift::manifest::{self, Access, DesiredObject};
use crate::drift::mask::is_secret;
use crate::drift::object::ObjectKey;
use crate::drift::outcome::{Decision, Planned};
use crate::drift::payload::{self, Limits};
use crate::drift::plan::{Action, Ground, Plan};
use crate::drift::planner;
use crate::drift::refusal::Refusal;
use crate::drift::release::{RecordMeta, Release, ReleaseKey};
use crate::drift::rendering::Rendering;
use crate::drift::repair;
use crate::drift::strategic;
use crate::helm::{Chart, ChartDirectory, Ended, Upgrade};
use crate::ledger::Seen;
use crate::survey::Examined;

/// One release, ready to be corrected.
pub(super) struct Subject {
    pub(super) report: ReleaseReport,
    /// Objects with findings as they were judged.
    pub(super) seen: Seen,
    pub(super) desired: BTreeMap<ObjectKey, DesiredObject>,
    /// The judged revision as it is stored, in JSON.
    pub(super) record: Arc<Value>,
    pub(super) loaded: Loaded,
}

impl Subject {
    /// Whether the release has the same revisions, and the judged one holds the same.
    fn is_as(&self, other: &Self) -> bool {
        self.newest() == other.newest() && self.record == other.record
    }

    /// What helm says of it, fit to be shown: in one line of bounded length, without the secrets that a chart quotes.
    pub(super) fn quote(&self, said: &str) -> String {
        const LONGEST: usize = 600;
        let secrets = self.desired.values().filter(|object| is_secret(&object.object.gvk)).map(|object| &object.body);
        let live =
            self.seen.iter().filter(|(key, _)| key.group.is_empty() && key.kind == "Secret").map(|(_, live)| live);
        Secrets::of(&self.record, secrets.chain(live)).hide(said).chars().take(LONGEST).collect()
    }

    pub(super) fn newest(&self) -> u64 {
        self.loaded.history.newest().revision
    }
}

impl Run<'_> {
    /// Gathers what a plan needs to know, and plans. `before`: the same release as the gate let it pass a moment ago.
    pub(super) async fn plan(
        &self,
        cluster: &Cluster,
        report: ReleaseReport,
        examined: Option<Examined>,
        before: Option<&Subject>,
    ) -> (Planned, Option<Subject>) {
        let release = ReleaseKey { namespace: report.namespace.clone(), name: report.name.clone() };
        let decided = |decision| Planned { release: release.clone(), decision };
        let subject = match examined {
            Some(examined) => self.subject(cluster, report.clone(), examined).await,
            None => None,
        };
        let Some((subject, mut ground)) = subject else {
            // What cannot be read is refused for its state, whatever else there is.
            let refusal = planner::plan(&report, &self.blank(), &self.options.wishes)
                .err()
                .unwrap_or(Refusal::State { reason: "Unverified", message: report.message.clone() });
            return (decided(Decision::Refuse(refusal)), None);
        };
        let wishes = &self.options.wishes;
        let mut planned = planner::plan(&report, &ground, wishes);
        if let Ok(Some(plan)) = &planned {
            ground.refused = rehearse(cluster, plan, &subject).await;
            if !ground.refused.is_empty() {
                planned = planner::plan(&report, &ground, wishes);
            }
        }
        let planned = match planned {
            Ok(None) => Decision::Leave,
            Err(refusal) => Decision::Refuse(refusal),
            Ok(Some(plan)) => match self.gate(&plan, &subject, before).await {
                Ok(()) => Decision::Correct(Box::new(plan)),
                Err(refusal) => Decision::Refuse(refusal),
            },
        };
        (decided(planned), Some(subject))
    }

    fn blank(&self) -> Ground {
        Ground::blank(self.helm.as_ref().map(|helm| helm.version).map_err(ToString::to_string))
    }

    /// `None`: the record cannot be read.
    pub(super) async fn subject(
        &self,
        cluster: &Cluster,
        report: ReleaseReport,
        examined: Examined,
    ) -> Option<(Subject, Ground)> {
        let Examined { loaded, seen } = examined;
        let judged = loaded.judged_release().ok()?.clone();
        let apis = cluster.apis().await.ok()?;
        let (record, judged_bytes) = self.record(cluster, &loaded.judged).await?;
        let newest = loaded.history.newest();
        let record_bytes = if newest.object_name == loaded.judged.object_name {
            judged_bytes
        } else {
            self.record(cluster, newest).await.map_or(0, |(_, bytes)| bytes)
        };
        let rendering = Rendering::of(&record);
        let wanted = manifest::desired_objects(&judged, &loaded.history.key.namespace, &apis);
        let unbuildable = wanted.problems.first().cloned().or_else(|| wanted.objects.iter().find_map(unbuildable));
        let unserved = wanted
            .objects
            .iter()
            .filter(|object| !matches!(object.access, Access::Served(_)))
            .map(|object| object.object.key())
            .collect();
        let masked = wanted
            .objects
            .iter()
            .find(|object| is_secret(&object.object.gvk) && repair::holds_token(&object.body))
            .map(|object| object.object.clone());
        let client_side = report.apply_method != Some(ApplyMethod::ServerSide);
        let confused = wanted.objects.iter().filter(|object| {
            let gvk = &object.object.gvk;
            let live = seen.get(&object.object.key());
            strategic::confuses(gvk, &object.body) || live.is_some_and(|live| strategic::confuses(gvk, live))
        });
        let confused = confused.filter(|_| client_side).map(|object| object.object.key()).collect();
        let finalizers = |live: &Value| -> Vec<String> {
            let list = live.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let is_ending = |live: &Value| live.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string);
        let ending = seen.iter().filter(|(_, live)| is_ending(live)).map(|(key, _)| key.clone()).collect();
        let held = seen.iter().map(|(key, live)| (key.clone(), finalizers(live)));
        let held = held.filter(|(_, finalizers)| !finalizers.is_empty()).collect();
        let before = match &self.options.journal {
            Some(file) => journal::read(file, cluster.client().server(), &loaded.history.key),
            None => BTreeMap::new(),
        };
        let ground = Ground {
            record_writers: newest.owners.iter().map(|owner| owner.manager.clone()).collect(),
            has_subcharts: judged.has_subcharts,
            hooks: rendering.hooks(),
            record_bytes,
            prunes: self.prunes(cluster, &loaded, &rendering).await,
            moved_versions: loaded.newest.as_ref().is_ok_and(|newest| moved_versions(newest, &judged, &loaded, &apis)),
            unbuildable,
            unserved,
            confused,
            ending,
            held,
            masked,
            before,
            ..self.blank()
        };
        let desired = wanted.objects.into_iter().map(|object| (object.object.key(), object)).collect();
        Some((Subject { report, seen, desired, record: Arc::new(record), loaded }, ground))
    }

    /// A record in JSON, and how many bytes it takes as stored.
    async fn record(&self, cluster: &Cluster, record: &RecordMeta) -> Option<(Value, usize)> {
        let payload = cluster.payload(self.config.scope.storage, record).await.ok()?;
        let decoded = spawn_blocking(move || {
            let json = payload::json(&payload, Limits::default()).ok()?;
            Some((serde_json::from_str(&json).ok()?, payload.len()))
        });
        decoded.await.ok().flatten()
    }

    /// The revision that another one would prune though no other with another manifest would be left (helm/helm `storage.go`
    /// `removeLeastRecent`). Read only where something would be pruned.
    async fn prunes(&self, cluster: &Cluster, loaded: &Loaded, judged: &Rendering) -> Option<u64> {
        let max = self.options.max_history;
        let records: Vec<&RecordMeta> = loaded.history.records().collect();
        if max == 0 || records.len() < max {
            return None;
        }
        let (kept, pruned) = records.split_at_checked(max - 1)?;
        for record in kept {
            let (stored, _) = self.record(cluster, record).await?;
            if !judged.same_manifest(&Rendering::of(&stored)) {
                return None;
            }
        }
        for record in pruned {
            let (stored, _) = self.record(cluster, record).await?;
            if !judged.same_manifest(&Rendering::of(&stored)) {
                return Some(record.revision);
            }
        }
        None
    }

    /// An upgrade must render what is stored: it goes back to that, and changes nothing else.
    ///
    /// What passed is not rendered again while the record is the same: that takes seconds, in which anybody may do anything.
    async fn gate(&self, plan: &Plan, subject: &Subject, before: Option<&Subject>) -> Result<(), Refusal> {
        if !plan.steps.iter().any(|step| step.action == Action::Upgrade) || before.is_some_and(|one| one.is_as(subject))
        {
            return Ok(());
        }
        let Ok(helm) = &self.helm else { return Ok(()) };
        let chart = self.chart(subject)?;
        let ended = helm.render(&self.upgrade(plan, &chart), &self.interrupts()).await;
        let printed = match ended {
            Ended::Done(printed) => printed,
            Ended::Failed(said) => return Err(Refusal::NotRendered(subject.quote(&said))),
            Ended::Killed(signal) => return Err(Refusal::NotRendered(format!("helm was ended by signal {signal}"))),
        };
        let rendered: Value = serde_json::from_slice(&printed)
            .map_err(|_| Refusal::NotRendered("what helm prints is no JSON".to_owned()))?;
        let differences = Rendering::of(&subject.record).differences(&Rendering::of(&rendered));
        match differences.as_slice() {
            [] => Ok(()),
            names => Err(Refusal::RendersOtherwise(in_short(names))),
        }
    }

    /// The chart that was named, or the record's own, on disk.
    pub(super) fn chart(&self, subject: &Subject) -> Result<Chart<'_>, Refusal> {
        if let Some(source) = &self.options.chart {
            return Ok(Chart::Named(source));
        }
        let files = chart::files(&subject.record).map_err(|error| Refusal::BadChart(error.to_string()))?;
        let written = ChartDirectory::write(&self.options.temporary, &files);
        written.map(Chart::Rebuilt).map_err(|error| Refusal::BadChart(format!("it cannot be written: {error}")))
    }

    pub(super) fn upgrade<'a>(&'a self, plan: &'a Plan, chart: &'a Chart<'a>) -> Upgrade<'a> {
        Upgrade {
            key: &plan.release,
            chart,
            apply_method: plan.apply_method,
            run_hooks: plan.runs_hooks,
            timeout: self.options.timeout,
        }
    }
}

/// Helm builds the stored manifest by the versions that it names.
fn unbuildable(desired: &DesiredObject) -> Option<String> {
    match &desired.access {
        Access::Served(served) if served.gvk == desired.object.gvk => None,
        Access::Served(_) => Some(format!(
            "{} is not served any more for {} (the plugin helm mapkubeapis mends the record)",
            desired.object.gvk.api_version(),
            desired.object
        )),
        Access::NotServed(reason) | Access::Undiscovered(reason) => Some(format!("{}: {reason}", desired.object)),
    }
}

/// Whether some object's apiVersion differs between the manifest that Helm starts from and the one that it goes to.
fn moved_versions(newest: &Release, judged: &Release, loaded: &Loaded, apis: &crate::drift::live::ApiTable) -> bool {
    if newest.revision == judged.revision {
        return false;
    }
    let namespace = &loaded.history.key.namespace;
    let versions = |release: &Release| -> BTreeMap<ObjectKey, String> {
        let desired = manifest::desired_objects(release, namespace, apis);
        desired.objects.into_iter().map(|object| (object.object.key(), object.object.gvk.version)).collect()
    };
    let to = versions(judged);
    versions(newest).iter().any(|(key, version)| to.get(key).is_some_and(|other| other != version))
}

/// At most five names.
fn in_short(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
