//! Names of the namespaces of a cluster, for completion. Knows nothing of what is in them.

use serde::Deserialize;

use super::Cluster;
use super::client::{METADATA_LIST, ReadError};
use super::listing::{Item, Listing, PAGE};
use super::path::Query;

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

impl Cluster {
    /// In the server's order, which is that of the names.
    pub(crate) async fn namespaces(&self) -> Result<Vec<String>, ReadError> {
        let listing = Listing::new(&self.client, Query::new("/api/v1/namespaces"), PAGE, METADATA_LIST);
        listing.all("the namespaces", |item: Item<Metadata>| Some(item.metadata.name)).await
    }
}
