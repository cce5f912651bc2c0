//! The order in which things are printed: releases by name, what is said about them by object. Knows nothing of the formats.

use std::collections::BTreeMap;

use crate::drift::finding::{ReleaseReport, Report};
use crate::drift::object::{ObjectKey, ObjectRef};

/// By namespace, then name: the order of every format.
pub(crate) fn in_order(report: &Report) -> Vec<&ReleaseReport> {
    let mut releases: Vec<&ReleaseReport> = report.releases.iter().collect();
    releases.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    releases
}

/// Groups by object, in the order in which the objects first come up.
pub(crate) struct ByObject<T> {
    places: BTreeMap<ObjectKey, usize>,
    /// By place, as the map above hands them out.
    groups: BTreeMap<usize, T>,
}

impl<T> Default for ByObject<T> {
    fn default() -> Self {
        Self { places: BTreeMap::new(), groups: BTreeMap::new() }
    }
}

impl<T> ByObject<T> {
    pub(crate) fn entry<'a>(&mut self, object: &'a ObjectRef, new: impl FnOnce(&'a ObjectRef) -> T) -> &mut T {
        let next = self.places.len();
        let place = *self.places.entry(object.key()).or_insert(next);
        self.groups.entry(place).or_insert_with(|| new(object))
    }

    pub(crate) fn in_order(self) -> Vec<T> {
        self.groups.into_values().collect()
    }
}
