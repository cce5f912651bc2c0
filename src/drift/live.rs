//! What is served and what is live: API table, live objects, and who owns which field. Knows nothing of what is desired.

use std::collections::BTreeMap;

use serde_json::Value;

use super::object::Gvk;

/// How one kind is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) gvk: Gvk,
    /// Resource name in URLs, e.g. `deployments`.
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// Whether the resource can be listed; some (e.g. `tokenreviews`) only created.
    pub(crate) listable: bool,
}

/// Answer of the [`ApiTable`] about a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lookup<'a> {
    Served(&'a Served),
    /// The kind is served, but in another version: objects are read in that one.
    OtherVersion(&'a Served),
    NotServed,
    /// Discovery of the group failed, so nothing can be said; the reason.
    Undiscovered(&'a str),
}

/// What the cluster serves. A group whose discovery failed is recorded, never dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApiTable {
    /// By (group, kind): the served versions, the group's preferred one first.
    kinds: BTreeMap<(String, String), Vec<Served>>,
    /// By group, or by `group/version`: why discovery failed.
    failed: BTreeMap<String, String>,
}

impl ApiTable {
    /// Add in the server's order of preference.
    pub(crate) fn add(&mut self, served: Served) {
        self.kinds.entry((served.gvk.group.clone(), served.gvk.kind.clone())).or_default().push(served);
    }

    /// `group_version` is `group/version`; a core failure is `/v1`.
    pub(crate) fn add_failure(&mut self, group_version: &str, reason: &str) {
        self.failed.insert(group_version.to_owned(), reason.to_owned());
    }

    pub(crate) fn lookup(&self, gvk: &Gvk) -> Lookup<'_> {
        let versions = self.kinds.get(&(gvk.group.clone(), gvk.kind.clone()));
        if let Some(served) = versions.and_then(|all| all.iter().find(|one| one.gvk.version == gvk.version)) {
            return Lookup::Served(served);
        }
        // A version whose discovery failed may hold the kind, whatever the others say.
        if let Some(reason) = self.failed.get(&format!("{}/{}", gvk.group, gvk.version)) {
            return Lookup::Undiscovered(reason);
        }
        match versions.and_then(|all| all.first()) {
            Some(served) => Lookup::OtherVersion(served),
            // Another version of the group may hold the kind.
            None => match self
                .failed
                .iter()
                .find(|(failed, _)| failed.rsplit_once('/').is_some_and(|(group, _)| group == gvk.group))
            {
                Some((_, reason)) => Lookup::Undiscovered(reason),
                None => Lookup::NotServed,
            },
        }
    }

    /// Every served kind, in order.
    pub(crate) fn served(&self) -> impl Iterator<Item = &Served> {
        self.kinds.values().flatten()
    }

    /// Every served kind once, in its group's preferred version.
    pub(crate) fn preferred(&self) -> impl Iterator<Item = &Served> {
        self.kinds.values().filter_map(|versions| versions.first())
    }

    /// Group versions whose discovery failed, with the reason.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.failed.iter().map(|(group_version, reason)| (group_version.as_str(), reason.as_str()))
    }
}

/// An object as the API server returned it: raw JSON, numbers exact, with `apiVersion` and `kind`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LiveObject {
    pub(crate) body: Value,
}

/// How a read of one object ended. Absence of evidence is not "in sync": what could not be read says so.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Observation {
    Found(LiveObject),
    Missing,
    /// The server does not serve the kind in this version any more, whatever the API table said; its words.
    NotServed(String),
    /// The reason, fit for a report: `services is forbidden: …`.
    Unreadable(String),
}
