//! The revisions of one release, each compared with the live state. Joins the records and the inspector; knows nothing of how a
//! history is shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use serde_json::Value;

use super::{Found, Surroundings, Survey, Unread, trouble};
use crate::case::bodies;
use crate::config::Config;
use crate::drift::distance::{HistoryReport, Revision};
use crate::drift::finding::{ClusterInfo, Mode, NoticeReason, Trouble, TroubleReason};
use crate::drift::live::ApiTable;
use crate::drift::manifest::{self, DesiredObject};
use crate::drift::object::ObjectKey;
use crate::drift::payload::DecodeError;
use crate::drift::release::{History, RecordMeta, Release, ReleaseKey, Status};
use crate::drift::rules::Rulings;
use crate::drift::state::{Asked, Comparison, Facts, State};
use crate::inspector::Inspector;
use crate::ledger::Ledger;
use crate::task::{Task, Terms};

/// Compares every kept revision of the one named release with what is live.
pub(crate) async fn history(inspector: &Inspector<'_>, config: &Config, now: Timestamp) -> HistoryReport {
    let survey = Survey::new(inspector, config, now);
    let mut report = HistoryReport {
        cluster: ClusterInfo::default(),
        started_at: now,
        finished_at: now,
        release: ReleaseKey {
            namespace: survey.namespace().unwrap_or_default(),
            name: survey.scope.releases.first().cloned().unwrap_or_default(),
        },
        storage: survey.scope.storage,
        revisions: Vec::new(),
        notices: Vec::new(),
        errors: Vec::new(),
    };
    Walk { survey: &survey, report: &mut report }.run().await;
    report.cluster = inspector.cluster.info().await;
    report
}

struct Walk<'a> {
    survey: &'a Survey<'a>,
    report: &'a mut HistoryReport,
}

/// One record, and what it holds.
struct Kept {
    record: RecordMeta,
    release: Result<Release, DecodeError>,
}

impl Walk<'_> {
    async fn run(&mut self) {
        let apis = match self.survey.cluster.apis().await {
            Ok(apis) => apis,
            Err(error) => return self.report.errors.push(trouble(&error, None)),
        };
        let Some(history) = self.records(&apis).await else { return };
        self.survey.inspector.progress.stage(&format!("reading {} revisions", history.records().count()));
        let kept = self.kept(&history).await;
        let newest = kept.last().and_then(|one| one.release.as_ref().ok());
        let status = newest.map_or(Status::Unknown, Release::status);
        let current = history.judged(status, None).map(|record| record.revision);
        self.report.revisions = kept.iter().map(|one| revision(one, current)).collect();
        let inspector = self.survey.inspector;
        let namespace = history.key.namespace.as_str();
        let wanted = kept.iter().filter_map(|one| one.release.as_ref().ok());
        let wanted = wanted.map(|release| manifest::desired_objects(release, namespace, &apis));
        let apis = inspector.apis_for(wanted, &apis).await;
        let (mut ledgers, tasks) = self.tasks(&history, &kept, &apis);
        let mut open: Vec<&mut Ledger> = ledgers.iter_mut().collect();
        inspector.compare(&mut open, tasks, &apis).await;
        for ((revision, kept), ledger) in self.report.revisions.iter_mut().zip(&kept).zip(ledgers) {
            let balance = ledger.close();
            if kept.release.is_ok() {
                revision.differences = Some(balance.tally.drift());
                revision.unverified = balance.tally.unverified;
            }
            let said = balance.notices.into_iter().filter(|notice| notice.reason == NoticeReason::LookupForbidden);
            for notice in said {
                if !self.report.notices.contains(&notice) {
                    self.report.notices.push(notice);
                }
            }
        }
    }

    /// The release's records. Where there are none, what else is known of it is said as in a check.
    async fn records(&mut self, apis: &Arc<ApiTable>) -> Option<History> {
        let namespace = self.survey.namespace();
        let mut found = Found::default();
        let histories = match self.survey.histories(namespace.as_deref(), &mut found).await {
            Ok((histories, listed)) => {
                let around = Surroundings { apis: Arc::clone(apis), flux: Vec::new() };
                self.survey.report_absent(&listed, &around, &mut found).await;
                histories
            }
            Err(error) => {
                found.errors.push(trouble(&error, namespace.as_deref()));
                Vec::new()
            }
        };
        self.report.notices.append(&mut found.notices);
        self.report.errors.append(&mut found.errors);
        self.report.errors.extend(found.releases.into_iter().map(|absent| Trouble {
            reason: TroubleReason::NotFound,
            message: format!("release {:?}: {}", absent.name, absent.message),
            namespace: Some(absent.namespace),
        }));
        histories.into_iter().next()
    }

    /// Every record, oldest first; what cannot be read goes to the report's errors, and stays.
    async fn kept(&mut self, history: &History) -> Vec<Kept> {
        let mut records: Vec<RecordMeta> = history.records().cloned().collect();
        records.reverse();
        let survey = self.survey;
        let read = stream::iter(records).map(|record| async move { (survey.release(&record).await, record) });
        let read: Vec<(Result<Release, Unread>, RecordMeta)> = read.buffered(survey.cluster.parallel()).collect().await;
        let mut kept = Vec::new();
        for (release, record) in read {
            let release = match release {
                Ok(release) => Ok(release),
                Err(unread) => {
                    let (message, error) = match unread {
                        Unread::Corrupt(error) => {
                            (format!("record {} cannot be read: {error}", record.object_name), error)
                        }
                        // Nothing asks further what kind of record it is.
                        Unread::Unreadable(message) => (message, DecodeError::Empty),
                    };
                    let namespace = Some(record.key.namespace.clone());
                    self.report.errors.push(Trouble { reason: TroubleReason::Internal, message, namespace });
                    Err(error)
                }
            };
            kept.push(Kept { record, release });
        }
        kept
    }

    /// A ledger for each revision, and its objects; in addition those of the other revisions, which it wants gone.
    fn tasks(&self, history: &History, kept: &[Kept], apis: &ApiTable) -> (Vec<Ledger>, Vec<Task>) {
        let namespace = history.key.namespace.as_str();
        let failed: Vec<BTreeMap<ObjectKey, Value>> = kept
            .iter()
            .filter(|one| one.record.status() == Status::Failed)
            .filter_map(|one| Some(bodies(one.release.as_ref().ok()?, namespace, apis)))
            .collect();
        let mut all: BTreeMap<ObjectKey, DesiredObject> = BTreeMap::new();
        for release in kept.iter().filter_map(|one| one.release.as_ref().ok()) {
            let desired = manifest::desired_objects(release, namespace, apis);
            all.extend(desired.objects.into_iter().map(|object| (object.object.key(), object)));
        }
        let (mut ledgers, mut tasks) = (Vec::new(), Vec::new());
        let newest = kept.last().map(|one| &one.release);
        for one in kept {
            let (Ok(release), Some(newest)) = (&one.release, newest) else {
                ledgers.push(Ledger::default());
                continue;
            };
            let is_newest = one.record.object_name == history.newest().object_name;
            // Whose hand wrote what is all that is asked of the state.
            let asked = Asked {
                now: self.survey.now,
                pending_timeout: self.survey.settings.pending_timeout,
                mode: Mode::Warn,
                suspended: false,
                named: true,
                expected: false,
                expected_revision: None,
                revision_named: true,
                helm_managers: self.survey.settings.helm_managers.clone(),
            };
            let facts = Facts {
                history,
                storage: self.report.storage,
                newest: newest.as_ref(),
                judged: &one.record,
                judged_release: Ok(release),
            };
            let hand = State::new(&facts, asked).hand().clone();
            let terms = |comparison| {
                Arc::new(Terms {
                    hand: hand.clone(),
                    apply_method: release.apply_method,
                    has_subcharts: release.has_subcharts,
                    comparison,
                    release: (release.name.clone(), release.target_namespace(namespace).to_owned()),
                    rulings: Rulings {
                        rules: self.survey.rules(),
                        release: history.key.clone(),
                        now: self.survey.now,
                        flux: Vec::new(),
                    },
                })
            };
            let mut desired = manifest::desired_objects(release, namespace, apis);
            let index = ledgers.len();
            ledgers.push(Ledger::open(&mut desired));
            let own: Vec<ObjectKey> = desired.objects.iter().map(|object| object.object.key()).collect();
            let wanted = terms(Comparison::Manifest);
            for object in desired.objects {
                let key = object.object.key();
                // What a failed revision left behind counts while the newest is deployed, as in a check.
                let left: Vec<Value> = match is_newest && release.status() == Status::Deployed {
                    true => failed.iter().filter_map(|bodies| bodies.get(&key).cloned()).collect(),
                    false => Vec::new(),
                };
                tasks.push(Task::new(index, &wanted, object).with_failed(left));
            }
            let gone = terms(Comparison::Leftovers);
            let others = all.iter().filter(|(key, _)| !own.contains(key));
            tasks.extend(others.map(|(_, object)| Task::new(index, &gone, object.clone())));
        }
        (ledgers, tasks)
    }
}

fn revision(kept: &Kept, current: Option<u64>) -> Revision {
    let release = kept.release.as_ref().ok();
    Revision {
        revision: kept.record.revision,
        updated: release.and_then(|release| release.last_deployed),
        status: release.map(|release| release.status.clone()).or_else(|| kept.record.labels.get("status").cloned()),
        chart: release.and_then(Release::chart),
        app_version: release.and_then(|release| release.app_version.clone()),
        description: release.map(|release| release.description.clone()),
        current: current == Some(kept.record.revision),
        differences: None,
        unverified: 0,
    }
}
