//! OpenAPI v3: the index, and the digests of the documents in use. Knows nothing of what the types mean.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tracing::debug;

use super::Cluster;
use super::bundle;
use super::cache::Cache;
use super::client::{Client, Get, JSON, ReadError};
use super::listing::malformed;
use crate::drift::object::Gvk;
use crate::drift::schema::{DIGEST_VERSION, Schema};

const INDEX: &str = "/openapi/v3";

/// Which documents there are. Their URLs carry a hash of what is in them, so an equal index means equal documents.
#[derive(Debug, PartialEq)]
pub(super) struct Index {
    /// `apis/apps/v1` to `/openapi/v3/apis/apps/v1?hash=…`.
    documents: BTreeMap<String, String>,
}

impl Index {
    pub(super) async fn read(client: &Client) -> Result<Self, ReadError> {
        let body = client.get(&Get { path: INDEX.to_owned(), accept: JSON, compress: !client.is_local() }).await?;
        Self::parse(&body)
    }

    fn parse(body: &[u8]) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Answer {
            paths: BTreeMap<String, Document>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Document {
            #[serde(rename = "serverRelativeURL")]
            server_relative_url: String,
        }
        let answer: Answer = serde_json::from_slice(body).map_err(|error| malformed(INDEX, &error))?;
        let documents = answer
            .paths
            .into_iter()
            // A proxy may put its own prefix in front, as the client does by itself (client-go `openapi/groupversion.go`).
            .filter_map(|(name, document)| {
                let url = document.server_relative_url;
                let start = url.find("/openapi/v3/")?;
                Some((name, url.get(start..)?.to_owned()))
            })
            .collect();
        Ok(Self { documents })
    }

    /// Equal for two indexes that list the same documents with the same hashes.
    pub(super) fn fingerprint(&self) -> String {
        self.documents.iter().map(|(name, url)| format!("{name} {url}\n")).collect()
    }

    fn url(&self, group: &str, version: &str) -> Option<&str> {
        let name = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        self.documents.get(&name).map(String::as_str)
    }
}

/// How often, and after how long, a kind without types is looked for again.
const LATE_LOOKS: usize = 4;
const LATE: Duration = Duration::from_millis(500);

/// Whether a kind can be a custom resource's: Kubernetes' own types are there from the start.
fn is_defined(kind: &Gvk) -> bool {
    kind.group.contains('.') && !kind.group.ends_with(".k8s.io")
}

/// `(group, version)`.
pub(crate) type GroupVersion = (String, String);

type Answer = Result<Arc<Schema>, String>;

/// Digests in memory, one cell per group version, so that no document is read twice at the same time.
#[derive(Default)]
pub(super) struct Digests(std::sync::Mutex<BTreeMap<GroupVersion, Arc<OnceCell<Answer>>>>);

impl Digests {
    fn cell(&self, group_version: &GroupVersion) -> Arc<OnceCell<Answer>> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cells.entry(group_version.clone()).or_default())
    }

    fn forget(&self, group_versions: &BTreeSet<GroupVersion>) {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cells.retain(|group_version, _| !group_versions.contains(group_version));
    }
}

/// Types of the group versions asked for, or why there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schemas(BTreeMap<GroupVersion, Answer>);

impl Schemas {
    /// The error is the reason why the types are missing.
    pub(crate) fn get(&self, group: &str, version: &str) -> Result<&Arc<Schema>, &str> {
        match self.0.get(&(group.to_owned(), version.to_owned())) {
            Some(answer) => answer.as_ref().map_err(String::as_str),
            None => Err("its types were not asked for"),
        }
    }

    fn describe(&self, kind: &Gvk) -> bool {
        self.get(&kind.group, &kind.version).is_ok_and(|schema| schema.has(kind))
    }

    /// Group versions without types, each with the reason.
    pub(crate) fn missing(&self) -> impl Iterator<Item = (&GroupVersion, &str)> {
        self.0.iter().filter_map(|(group_version, answer)| Some((group_version, answer.as_ref().err()?.as_str())))
    }
}

impl Cluster {
    /// Types of these kinds. A document that cannot be had is a reason, never an error.
    ///
    /// The server publishes the types of a new or changed definition a moment after it serves the kind, so a kind that its
    /// documents do not know yet is waited for, for two seconds at most.
    pub(crate) async fn schemas(&self, kinds: &BTreeSet<Gvk>) -> Schemas {
        let group_version = |kind: &Gvk| (kind.group.clone(), kind.version.clone());
        let mut schemas = Schemas::default();
        let mut wanted: BTreeSet<GroupVersion> = kinds.iter().map(group_version).collect();
        for patience in 0.. {
            schemas.0.extend(self.digests(&wanted).await.0);
            wanted =
                kinds.iter().filter(|kind| is_defined(kind) && !schemas.describe(kind)).map(group_version).collect();
            if wanted.is_empty() || patience == LATE_LOOKS || !self.client.is_live() {
                break;
            }
            tokio::time::sleep(LATE).await;
            self.digests.forget(&wanted);
            self.forget_index().await;
        }
        schemas
    }

    async fn digests(&self, group_versions: &BTreeSet<GroupVersion>) -> Schemas {
        if group_versions.is_empty() {
            return Schemas::default();
        }
        let index = self.index().await;
        let index = &index;
        let answers = stream::iter(group_versions.iter().cloned())
            .map(|group_version| async move {
                let cell = self.digests.cell(&group_version);
                let answer = cell.get_or_init(|| self.schema(index, &group_version)).await.clone();
                (group_version, answer)
            })
            .buffer_unordered(self.parallel)
            .collect()
            .await;
        Schemas(answers)
    }

    async fn schema(&self, index: &Result<Arc<Index>, ReadError>, (group, version): &GroupVersion) -> Answer {
        let index =
            index.as_ref().map_err(|error| format!("the server's OpenAPI documents cannot be read: {error}"))?;
        let Some(url) = index.url(group, version) else {
            return Err("the server has no OpenAPI document for it".to_owned());
        };
        // Without a hash nothing says whether a kept digest is still right.
        let kept =
            self.cache.clone().filter(|_| url.contains("hash=")).map(|cache| Kept { cache, url: url.to_owned() });
        let found = match kept.clone() {
            Some(kept) => off_thread(move || Ok(kept.read())).await?,
            None => None,
        };
        if let Some(schema) = found {
            return Ok(Arc::new(schema));
        }
        let get = Get { path: url.to_owned(), accept: JSON, compress: !self.client.is_local() };
        let body =
            self.client.get(&get).await.map_err(|error| format!("its OpenAPI document cannot be read: {error}"))?;
        off_thread(move || {
            let schema = bundle::schema(&body)?;
            if let Some(kept) = kept {
                kept.write(&schema);
            }
            Ok(Arc::new(schema))
        })
        .await
    }
}

/// A panic on the way (documents are the cluster's) ends as a reason.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    spawn_blocking(work).await.unwrap_or_else(|_| Err("internal error while its types were read".to_owned()))
}

/// Where the digest of one document is kept.
#[derive(Clone)]
struct Kept {
    cache: Cache,
    /// With the hash, so a changed document has another key.
    url: String,
}

impl Kept {
    fn name(&self) -> String {
        self.url.split('?').next().unwrap_or_default().trim_start_matches("/openapi/v3/").to_owned()
    }

    fn key(&self) -> String {
        format!("digest {DIGEST_VERSION} of {}", self.url)
    }

    fn read(&self) -> Option<Schema> {
        let body = self.cache.read(&self.name(), &self.key())?;
        serde_json::from_slice(&body).inspect_err(|error| debug!("cached digest of {}: {error}", self.url)).ok()
    }

    fn write(&self, schema: &Schema) {
        match serde_json::to_vec(schema) {
            Ok(body) => self.cache.write(&self.name(), &self.key(), &body),
            Err(error) => debug!("digest of {}: {error}", self.url),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::fake::{Fake, status};
    use super::*;
    use crate::drift::object::Gvk;

    const DOCUMENT: &str = r##"{"openapi": "3.0.0", "components": {"schemas": {"io.k8s.api.core.v1.Thing": {
        "type": "object", "properties": {"metadata": {"type": "object"}, "spec": {"type": "string"}},
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "Thing", "version": "v1"}]}}}}"##;

    fn index(hash: &str) -> String {
        serde_json::json!({"paths": {
            "api/v1": {"serverRelativeURL": format!("/prefix/openapi/v3/api/v1?hash={hash}")},
            "apis/x.io/v1": {"serverRelativeURL": "/openapi/v3/apis/x.io/v1"},
            "version": {"serverRelativeURL": "https://elsewhere.example/"},
        }})
        .to_string()
    }

    async fn read(fake: &Fake, cache: &Path) -> Schemas {
        let cluster = Cluster::new(fake.client().await, Some(cache.to_owned()), 4);
        let wanted =
            [("", "v1"), ("x.io", "v1"), ("y.io", "v1")].map(|(group, version)| (group.to_owned(), version.to_owned()));
        let first = cluster.digests(&wanted.clone().into()).await;
        cluster.digests(&wanted.into()).await;
        first
    }

    #[tokio::test]
    async fn a_document_is_read_once_for_its_hash() {
        let cache = std::env::temp_dir().join(format!("helm-drift-digests-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&cache);
        let hash = Arc::new(std::sync::Mutex::new("1"));
        let now = Arc::clone(&hash);
        let fake = Fake::start(move |asked| match asked.path.as_str() {
            "/openapi/v3" => (200, index(&now.lock().unwrap())),
            path if path.starts_with("/openapi/v3/api/v1?hash=") => (200, DOCUMENT.to_owned()),
            "/openapi/v3/apis/x.io/v1" => status(503, "aggregated API is down"),
            _ => status(404, "unexpected"),
        });
        let thing = Gvk::new("v1", "Thing");

        let cold = read(&fake, &cache).await;
        assert!(cold.get("", "v1").unwrap().has(&thing));
        assert!(cold.get("x.io", "v1").unwrap_err().contains("aggregated API is down"));
        assert!(cold.get("y.io", "v1").unwrap_err().contains("no OpenAPI document"));
        assert_eq!(cold.missing().count(), 2);
        assert!(fake.asked().contains(&"/openapi/v3/api/v1?hash=1".to_owned()));

        let warm = read(&fake, &cache).await;
        assert_eq!(warm.get("", "v1").unwrap(), cold.get("", "v1").unwrap());
        assert!(!fake.asked().iter().any(|path| path.contains("api/v1?")));

        // Damaged by whoever: read anew.
        let files = |cache: &Path| -> Vec<_> {
            std::fs::read_dir(cache)
                .unwrap()
                .flat_map(|cluster| std::fs::read_dir(cluster.unwrap().path()).unwrap())
                .map(|file| file.unwrap().path())
                .collect()
        };
        for file in files(&cache) {
            let kept = std::fs::read(&file).unwrap();
            std::fs::write(&file, &kept[..kept.len() / 2]).unwrap();
        }
        assert!(read(&fake, &cache).await.get("", "v1").unwrap().has(&thing));
        assert!(fake.asked().iter().any(|path| path.contains("api/v1?")));

        for next in ["2", "3", "4", "5", "6"] {
            *hash.lock().unwrap() = next;
            read(&fake, &cache).await;
            assert!(fake.asked().iter().any(|path| path.ends_with(next)));
        }
        assert_eq!(files(&cache).len(), 3, "old ones made room");
        std::fs::remove_dir_all(&cache).unwrap();
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_used_is_no_obstacle() {
        let fake = Fake::start(|asked| match asked.path.as_str() {
            "/openapi/v3" => (200, index("1")),
            path if path.starts_with("/openapi/v3/api/v1?hash=") => (200, DOCUMENT.to_owned()),
            _ => status(404, "unexpected"),
        });
        let schemas = read(&fake, Path::new("/dev/null/nowhere")).await;
        assert!(schemas.get("", "v1").unwrap().has(&Gvk::new("v1", "Thing")));
    }
}
