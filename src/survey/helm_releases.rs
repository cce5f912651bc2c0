//! Flux HelmReleases of the cluster, where it has any: looked up once per check.

use serde_json::Value;

use super::{Found, Survey};
use crate::cluster::client::ReadError;
use crate::drift::finding::{Notice, NoticeReason};
use crate::drift::flux::{self, HelmRelease};
use crate::drift::live::{ApiTable, Lookup};
use crate::drift::object::Gvk;

impl Survey<'_> {
    /// HelmReleases of any namespace, as each may manage releases of another. Where they may not be listed, those of the
    /// namespace in scope; what could not be looked up is a notice and proves nothing.
    pub(super) async fn helm_releases(&self, apis: &ApiTable, found: &mut Found) -> Vec<HelmRelease> {
        let served = match apis.lookup(&Gvk::new(flux::API_VERSION, flux::KIND)) {
            Lookup::Served(served) | Lookup::OtherVersion(served) => served,
            Lookup::NotServed => return Vec::new(),
            Lookup::Undiscovered(reason) => {
                found.notices.push(notice("which releases Flux manages", reason));
                return Vec::new();
            }
        };
        let objects = match (self.cluster.list(served, None, None).await, self.namespace()) {
            (Ok(objects), _) => objects,
            (Err(error @ ReadError::Forbidden(_)), Some(namespace)) => {
                match self.cluster.list(served, Some(&namespace), None).await {
                    Ok(objects) => {
                        let what = "which releases Flux manages from other namespaces";
                        found.notices.push(notice(what, &error.to_string()));
                        objects
                    }
                    Err(error) => {
                        found.notices.push(notice("which releases Flux manages", &error.to_string()));
                        Vec::new()
                    }
                }
            }
            (Err(error), _) => {
                found.notices.push(notice("which releases Flux manages", &error.to_string()));
                Vec::new()
            }
        };
        objects.iter().filter_map(|object: &Value| HelmRelease::of(object)).collect()
    }
}

fn notice(what: &str, reason: &str) -> Notice {
    Notice {
        object: None,
        reason: NoticeReason::LookupForbidden,
        message: format!("{what} cannot be told, so their suspensions and ignore rules are not known: {reason}"),
    }
}
