//! Names of the namespaces of a cluster, for completion. Knows nothing of what is in them.

use serde::Deserialize;

use super::Cluster;
use super::client::{METADATA_LIST, ReadError};
use super::listing::{Listing, PAGE, PageMeta, malformed};
use super::path::Query;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

impl Cluster {
    /// In the server's order, which is that of the names.
    pub(crate) async fn namespaces(&self) -> Result<Vec<String>, ReadError> {
        let mut listing = Listing::new(&self.client, Query::new("/api/v1/namespaces"), PAGE, METADATA_LIST);
        let mut names = Vec::new();
        loop {
            let body = match listing.page().await {
                Err(ReadError::Gone(_)) if listing.restart() => {
                    names.clear();
                    continue;
                }
                answer => answer?,
            };
            let page: Page = serde_json::from_slice(&body).map_err(|error| malformed("the namespaces", &error))?;
            names.extend(page.items.unwrap_or_default().into_iter().map(|item| item.metadata.name));
            if !listing.advance(page.metadata.token)? {
                return Ok(names);
            }
        }
    }
}
