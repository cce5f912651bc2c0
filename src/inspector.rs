//! Reads the live objects of any number of tasks, has each judged, and looks up what a judgement asks for. Knows nothing of where
//! the desired objects come from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde_json::Value;

use crate::cluster::openapi::Schemas;
use crate::cluster::{Cluster, observe};
use crate::config::Engine;
use crate::drift::autoscaler::Targets;
use crate::drift::classify::{self, Question};
use crate::drift::finding::{Finding, Notice, NoticeReason};
use crate::drift::live::{ApiTable, Lookup, Observation};
use crate::drift::manifest::{Access, Desired};
use crate::drift::object::Gvk;
use crate::drift::opinion;
use crate::drift::stale::{self, Suspect};
use crate::ledger::Ledger;
use crate::output::Progress;
use crate::task::{Outcome, Task};

pub(crate) struct Inspector<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) engine: Engine,
    pub(crate) progress: &'a Progress,
    /// Keep the objects that have findings, to correct them.
    pub(crate) keep: bool,
}

impl Inspector<'_> {
    /// A kind that a table from disk does not know may have been defined since: it is asked for anew before it is called not served.
    pub(crate) async fn apis_for(
        &self,
        mut wanted: impl Iterator<Item = Desired>,
        apis: &Arc<ApiTable>,
    ) -> Arc<ApiTable> {
        let unknown =
            wanted.any(|desired| desired.objects.iter().any(|object| !matches!(object.access, Access::Served(_))));
        if unknown { self.cluster.apis_fresh().await.unwrap_or_else(|_| Arc::clone(apis)) } else { Arc::clone(apis) }
    }

    /// Reads the objects of all tasks and enters what became of each in its task's ledger.
    pub(crate) async fn compare(&self, ledgers: &mut [&mut Ledger], tasks: Vec<Task>, apis: &ApiTable) {
        self.progress.stage(&format!("comparing {} objects", tasks.len()));
        let mut outcomes: Vec<(usize, Outcome)> = Vec::new();
        let (mut places, mut wanted, mut kinds) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (place, task) in tasks.iter().enumerate() {
            match (task.unasked(), task.desired.as_served()) {
                (None, Some((object, served))) => {
                    places.push(place);
                    kinds.insert(served.gvk.clone());
                    wanted.push(observe::Wanted { object, served: served.clone(), labelled: task.is_labelled() });
                }
                (outcome, _) => outcomes.extend(outcome.map(|outcome| (place, outcome))),
            }
        }
        let schemas = self.cluster.schemas(&kinds).await;
        let tasks = Arc::new(tasks);
        let read = {
            let (tasks, places, schemas, keep) = (Arc::clone(&tasks), places.clone(), schemas.clone(), self.keep);
            let judge: observe::Judge<Option<Outcome>> = Arc::new(move |index, object, observation| {
                let task = places.get(index).and_then(|place| tasks.get(*place))?;
                let schema = schemas.get(&object.gvk.group, &object.gvk.version).ok();
                let live = match &observation {
                    Observation::Found(live) if keep => Some(live.body.clone()),
                    Observation::Found(_)
                    | Observation::Missing
                    | Observation::NotServed(_)
                    | Observation::Unreadable(_) => None,
                };
                let mut outcome = task.judge(observation, schema.map(Arc::as_ref));
                outcome.live = live;
                Some(outcome)
            });
            self.cluster.observe(wanted, judge).await
        };
        outcomes.extend(places.into_iter().zip(read).filter_map(|(place, outcome)| Some((place, outcome?))));
        outcomes.sort_by_key(|(place, _)| *place);

        if self.engine == Engine::Server {
            self.second_opinion(&mut outcomes, &tasks, &schemas).await;
        }
        let targets = self.autoscaled(&outcomes, &tasks, apis).await;
        for (place, mut outcome) in outcomes {
            let Some(task) = tasks.get(place) else { continue };
            let Some(ledger) = ledgers.get_mut(task.ledger) else { continue };
            let findings = outcome.take_candidates().into_iter().map(|candidate| {
                let mut finding = candidate.finding;
                if candidate.question == Some(Question::Autoscaled) {
                    settle(ledger, &mut finding, &targets);
                }
                finding
            });
            let findings: Vec<Finding> = findings.collect();
            ledger.add(place, outcome, findings);
        }
    }

    /// Asks the server about what was found changed or removed, object by object (design.md §5.6).
    async fn second_opinion(&self, outcomes: &mut [(usize, Outcome)], tasks: &[Task], schemas: &Schemas) {
        let asked = outcomes
            .iter_mut()
            .filter(|(_, outcome)| outcome.candidates().iter().any(|one| opinion::is_asked(&one.finding)));
        let asking = asked.map(|(place, outcome)| async move {
            let Some(task) = tasks.get(*place) else { return };
            let Some((object, served)) = task.desired.as_served() else { return };
            let stored = self.cluster.dry_run(served, &object, &task.desired.body).await;
            let live = self.cluster.object(served, &object).await;
            let schema = schemas.get(&served.gvk.group, &served.gvk.version).ok().map(Arc::as_ref);
            match (stored, live) {
                (Ok(stored), Ok(live)) => opinion::weigh(outcome.candidates_mut(), &object.gvk, &stored, &live, schema),
                (Err(error), _) | (_, Err(error)) => opinion::refused(outcome.candidates_mut(), &error.to_string()),
            }
        });
        stream::iter(asking).buffer_unordered(self.cluster.parallel()).collect::<Vec<()>>().await;
    }

    /// What autoscalers target, by namespace; looked up only where a difference asks for it. A kind that is not served has no objects.
    async fn autoscaled(
        &self,
        outcomes: &[(usize, Outcome)],
        tasks: &[Task],
        apis: &ApiTable,
    ) -> BTreeMap<String, Result<Targets, String>> {
        let asking = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.candidates().iter().any(|one| one.question == Some(Question::Autoscaled)));
        let namespaces: BTreeSet<String> = asking
            .filter_map(|(place, _)| tasks.get(*place))
            .filter_map(|task| task.desired.object.namespace.clone())
            .collect();
        let kinds =
            [Gvk::new("autoscaling/v2", "HorizontalPodAutoscaler"), Gvk::new("keda.sh/v1alpha1", "ScaledObject")];
        let mut targets = BTreeMap::new();
        for namespace in namespaces {
            let mut found = Ok(Targets::default());
            for kind in &kinds {
                let served = match apis.lookup(kind) {
                    Lookup::Served(served) | Lookup::OtherVersion(served) => served,
                    Lookup::NotServed => continue,
                    Lookup::Undiscovered(reason) => {
                        found = Err(reason.to_owned());
                        break;
                    }
                };
                match (self.cluster.list(served, Some(&namespace), None).await, &mut found) {
                    (Ok(objects), Ok(targets)) => objects.iter().for_each(|object: &Value| targets.add(object)),
                    (Err(error), _) => {
                        found = Err(error.to_string());
                        break;
                    }
                    (Ok(_), Err(_)) => {}
                }
            }
            targets.insert(namespace, found);
        }
        targets
    }

    /// Has pods looked at that may run with old configuration: one listing of a namespace, where what its workloads read was written
    /// after they were rolled out, and none elsewhere.
    pub(crate) async fn look_for_stale_pods(&self, ledgers: &mut [&mut Ledger], apis: &ApiTable) {
        let mut suspects: BTreeMap<String, Vec<(usize, Suspect)>> = BTreeMap::new();
        for (place, ledger) in ledgers.iter().enumerate() {
            for suspect in stale::suspects(&ledger.sightings) {
                suspects.entry(suspect.namespace().to_owned()).or_default().push((place, suspect));
            }
        }
        let (Lookup::Served(pod), false) = (apis.lookup(&Gvk::new("v1", "Pod")), suspects.is_empty()) else { return };
        self.progress.stage("looking at pods that may be stale");
        for (namespace, suspects) in suspects {
            let selectors: BTreeSet<&str> = suspects.iter().map(|(_, suspect)| suspect.selector()).collect();
            let selector = selectors.first().copied().filter(|_| selectors.len() == 1);
            let pods = self.cluster.list(pod, Some(&namespace), selector).await.map_err(|error| error.to_string());
            for (place, suspect) in &suspects {
                let notice = match &pods {
                    Ok(pods) => suspect.among(pods),
                    Err(reason) => Some(suspect.untold(reason)),
                };
                if let (Some(ledger), Some(notice)) = (ledgers.get_mut(*place), notice) {
                    ledger.add_notice(notice);
                }
            }
        }
    }
}

fn settle(ledger: &mut Ledger, finding: &mut Finding, targets: &BTreeMap<String, Result<Targets, String>>) {
    let namespace = finding.object.namespace.clone().unwrap_or_default();
    match targets.get(&namespace) {
        Some(Ok(targets)) if targets.include(&finding.object) => classify::autoscaled(finding),
        Some(Err(reason)) => ledger.add_notice(Notice {
            object: Some(finding.object.clone()),
            reason: NoticeReason::LookupForbidden,
            message: format!("whether an autoscaler targets it cannot be told: {reason}"),
        }),
        Some(Ok(_)) | None => {}
    }
}
