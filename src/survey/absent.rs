//! Releases of which there is no record: expected by the configuration, wanted by a Flux HelmRelease, or named while live objects
//! still name them (design.md §6, Deleted).

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::{Found, Surroundings, Survey};
use crate::cluster::owned::Owned;
use crate::drift::classify::{self, Wanted};
use crate::drift::finding::{
    Cause, Change, Finding, Notice, NoticeReason, ObjectCounts, ReleaseReport, Trouble, TroubleReason, Verdict,
};
use crate::drift::flux::HelmRelease;
use crate::drift::live::{ApiTable, Served};
use crate::drift::policy::{self, Expected, Policy, Wishes};
use crate::drift::release::ReleaseKey;
use crate::drift::rules::Rulings;
use crate::drift::{settle, similar};

/// Events live for an hour and belong to no release; there may be a great many.
const EVENTS: &str = "Event";

/// What the listing of records left open.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Every release that has a record, whatever else narrows the scope.
    pub(super) existing: Vec<ReleaseKey>,
    /// Names on the command line that no record has.
    pub(super) missing: Vec<String>,
    /// Names that could have been meant.
    pub(super) known: BTreeSet<String>,
}

/// A release without a record.
struct Absent<'a> {
    key: ReleaseKey,
    /// Where its objects are.
    target_namespace: String,
    expected: Option<&'a Expected>,
    flux: Vec<&'a HelmRelease>,
}

/// Live objects that name a release, and which kinds could not be looked through.
#[derive(Default)]
struct Search {
    owned: Vec<Owned>,
    failures: Vec<String>,
}

impl Survey<'_> {
    /// Reports what should be there and is not.
    pub(super) async fn report_absent(&self, listed: &Listed, around: &Surroundings, found: &mut Found) {
        let mut absent = self.expected(listed, around);
        let mut bare: Vec<&String> =
            listed.missing.iter().filter(|name| !absent.iter().any(|one| one.key.name == **name)).collect();
        if absent.is_empty() && bare.is_empty() {
            return;
        }
        self.inspector.progress.stage("looking for what is not there");
        let namespace = self.namespace();
        let mut stored = Vec::new();
        for (namespace, name) in absent
            .iter()
            .map(|one| (Some(one.key.namespace.clone()), &one.key.name))
            .chain(bare.iter().map(|name| (namespace.clone(), *name)))
        {
            if let Some(driver) = self.stored_elsewhere(namespace.as_deref(), name).await {
                found.errors.push(Trouble {
                    reason: TroubleReason::OtherDriver,
                    message: format!(
                        "release {name:?} is stored by another driver: add --storage-driver {driver}, or set HELM_DRIVER={driver}"
                    ),
                    namespace: namespace.clone(),
                });
                stored.push((namespace, name.clone()));
            }
        }
        absent.retain(|one| !stored.contains(&(Some(one.key.namespace.clone()), one.key.name.clone())));
        bare.retain(|name| !stored.contains(&(namespace.clone(), (*name).clone())));
        let search = self.search(&absent, !bare.is_empty(), &around.apis).await;
        for name in bare {
            let places = search.owned.iter().filter(|one| one.release.name == *name).map(|one| &one.release);
            let places: BTreeSet<&ReleaseKey> =
                places.filter(|key| namespace.as_ref().is_none_or(|one| *one == key.namespace)).collect();
            if places.is_empty() {
                found.errors.push(Trouble {
                    reason: TroubleReason::NotFound,
                    message: similar::not_found(name, namespace.as_deref(), &listed.known),
                    namespace: namespace.clone(),
                });
            }
            absent.extend(places.into_iter().map(|key| Absent {
                key: key.clone(),
                target_namespace: key.namespace.clone(),
                expected: None,
                flux: Vec::new(),
            }));
        }
        for one in &absent {
            let report = self.report(one, &search, found);
            found.releases.push(report);
        }
    }

    /// What the configuration and HelmReleases expect in scope and no record is there of. A selector selects by the labels of
    /// records, so it selects none of them.
    fn expected<'a>(&'a self, listed: &Listed, around: &'a Surroundings) -> Vec<Absent<'a>> {
        if self.scope.selector.is_some() {
            return Vec::new();
        }
        let namespace = self.namespace();
        let names = &self.scope.releases;
        let is_absent = |key: &ReleaseKey| {
            namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
                && (names.is_empty() || names.contains(&key.name))
                && !listed.existing.contains(key)
        };
        let mut absent: BTreeMap<&ReleaseKey, Absent<'a>> = BTreeMap::new();
        let entry = |key: &ReleaseKey, target_namespace: &str| Absent {
            key: key.clone(),
            target_namespace: target_namespace.to_owned(),
            expected: self.settings.expected(key),
            flux: Vec::new(),
        };
        for one in self.settings.releases.iter().filter(|one| is_absent(&one.key)) {
            absent.insert(&one.key, entry(&one.key, &one.key.namespace));
        }
        for one in around.flux.iter().filter(|one| is_absent(&one.release)) {
            let absent = absent.entry(&one.release).or_insert_with(|| entry(&one.release, &one.target_namespace));
            absent.target_namespace.clone_from(&one.target_namespace);
            absent.flux.push(one);
        }
        absent.into_values().collect()
    }

    /// Objects of all namespaced kinds that name some release.
    ///
    /// `named`: also those of the whole scope, since a name alone does not say where its objects are.
    async fn search(&self, absent: &[Absent<'_>], named: bool, apis: &ApiTable) -> Search {
        let mut namespaces: BTreeSet<Option<String>> =
            absent.iter().map(|one| Some(one.target_namespace.clone())).collect();
        if named {
            namespaces.insert(self.namespace());
        }
        if namespaces.contains(&None) {
            namespaces = BTreeSet::from([None]);
        }
        let kinds = apis.preferred().filter(|kind| kind.namespaced && kind.listable && kind.gvk.kind != EVENTS);
        let asked: Vec<(&Served, &Option<String>)> =
            kinds.flat_map(|kind| namespaces.iter().map(move |namespace| (kind, namespace))).collect();
        let answers = stream::iter(asked)
            .map(|(kind, namespace)| self.cluster.owned(kind, namespace.as_deref()))
            .buffered(self.cluster.parallel())
            .collect::<Vec<_>>()
            .await;
        let mut search = Search::default();
        for answer in answers {
            match answer {
                Ok(owned) => search.owned.extend(owned),
                Err(error) => search.failures.push(error.to_string()),
            }
        }
        search
    }

    fn report(&self, absent: &Absent<'_>, search: &Search, found: &mut Found) -> ReleaseReport {
        let key = &absent.key;
        // Its own namespace's HelmRelease alone may call it suspended: there is no record that could show who manages it.
        let flux: Vec<&HelmRelease> =
            absent.flux.iter().copied().filter(|one| one.namespace == key.namespace).collect();
        let wishes = Wishes { expected: absent.expected, flux: &flux, ..self.wishes() };
        let Policy { mode, suspended, mut notices } = policy::policy(None, wishes);
        let rulings = Rulings {
            rules: self.rules(),
            release: key.clone(),
            now: self.now,
            flux: flux.iter().flat_map(|one| one.ignores.clone()).collect(),
        };
        let mut findings: Vec<Finding> = search
            .owned
            .iter()
            .filter(|one| one.release.name == key.name && one.release.namespace == absent.target_namespace)
            .map(|one| {
                let wanted = Wanted { object: &one.object, source: None, body: &Value::Null, sensitive: &[] };
                classify::whole(wanted, Change::Orphan, Verdict::Drift, Some(Cause::Orphan), None)
            })
            .collect();
        findings.sort_by(|a, b| a.object.cmp(&b.object));
        for finding in &mut findings {
            found.hits.extend(rulings.mark(finding, None));
        }
        if let Some(first) = search.failures.first() {
            let more = match search.failures.len() {
                1 => String::new(),
                many => format!(" (and {} more kinds)", many - 1),
            };
            notices.push(Notice {
                object: None,
                reason: NoticeReason::NotCompared,
                message: format!("whether more objects name the release cannot be told: {first}{more}"),
            });
        }
        let by = absent.flux.first().map(|one| (one.namespace.as_str(), one.name.as_str()));
        let settled = settle::deleted(key, findings.len(), by, mode, suspended);
        ReleaseReport {
            name: key.name.clone(),
            namespace: key.namespace.clone(),
            revision: None,
            judged_revision: None,
            status: None,
            chart: None,
            app_version: None,
            last_deployed: None,
            storage: self.scope.storage,
            apply_method: None,
            ready: settled.ready,
            stalled: settled.stalled,
            reason: settled.reason,
            message: settled.message,
            mode,
            suspended,
            exit: settled.exit,
            objects: ObjectCounts::default(),
            findings,
            notices,
        }
    }
}
