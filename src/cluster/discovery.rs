//! Discovery: what the server serves, as an [`ApiTable`]. A group that fails is recorded, never dropped.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tracing::debug;

use super::client::{Client, DISCOVERY, Get, JSON, ReadError};
use super::listing::malformed;
use super::openapi::Index;
use super::{Cluster, ClusterError, path};
use crate::drift::finding::ClusterInfo;
use crate::drift::live::{ApiTable, Served};
use crate::drift::object::Gvk;

/// What has been learnt of a cluster so far.
#[derive(Default)]
pub(super) struct Known {
    index: Option<Result<Arc<Index>, ReadError>>,
    apis: Option<Arc<ApiTable>>,
    version: Option<String>,
    /// Whether the table was kept by an earlier run.
    from_disk: bool,
}

/// Name of the kept table in the cache, and the form of what is in it.
const KEPT: &str = "discovery";
const KEPT_FORM: u32 = 1;

impl Cluster {
    /// What the server serves. A table kept by an earlier run counts while the OpenAPI index, one request, is unchanged.
    pub(crate) async fn apis(&self) -> Result<Arc<ApiTable>, ClusterError> {
        let mut known = self.known.lock().await;
        if let Some(apis) = &known.apis {
            return Ok(Arc::clone(apis));
        }
        if let Some(key) = self.table_key(&mut known).await?
            && let Some(kept) = self.kept_table(key).await
        {
            let (version, apis) = kept.table();
            let apis = Arc::new(apis);
            known.version = version;
            known.apis = Some(Arc::clone(&apis));
            known.from_disk = true;
            return Ok(apis);
        }
        self.discover_into(&mut known).await
    }

    /// The same, asked of the server in this run: so that a kind defined a second ago is never called "not served".
    /// Sends nothing when [`Self::apis`] had to ask already.
    pub(crate) async fn apis_fresh(&self) -> Result<Arc<ApiTable>, ClusterError> {
        let mut known = self.known.lock().await;
        match &known.apis {
            Some(apis) if !known.from_disk => Ok(Arc::clone(apis)),
            _ => {
                known.index = None;
                self.discover_into(&mut known).await
            }
        }
    }

    /// Which cluster this is; its version is known once [`Self::apis`] has answered.
    pub(crate) async fn info(&self) -> ClusterInfo {
        ClusterInfo {
            context: self.client.context().map(str::to_owned),
            server: Some(self.client.server().to_owned()).filter(|server| !server.is_empty()),
            version: self.known.lock().await.version.clone(),
        }
    }

    pub(super) async fn index(&self) -> Result<Arc<Index>, ReadError> {
        self.known_index(&mut *self.known.lock().await).await
    }

    /// The next [`Self::index`] asks the server again.
    pub(super) async fn forget_index(&self) {
        self.known.lock().await.index = None;
    }

    async fn known_index(&self, known: &mut Known) -> Result<Arc<Index>, ReadError> {
        if let Some(index) = &known.index {
            return index.clone();
        }
        let index = Index::read(&self.client).await.map(Arc::new);
        known.index = Some(index.clone());
        index
    }

    /// Under which key the table is kept; `None`: nowhere. An index that cannot be read is no obstacle, a server that cannot be is.
    async fn table_key(&self, known: &mut Known) -> Result<Option<String>, ClusterError> {
        if self.cache.is_none() {
            return Ok(None);
        }
        match self.known_index(known).await {
            Ok(index) => Ok(Some(format!("{KEPT} {KEPT_FORM}\n{}", index.fingerprint()))),
            Err(error) if of_one_group(&error) => Ok(None),
            Err(error) => Err(ClusterError::Discovery(error)),
        }
    }

    async fn kept_table(&self, key: String) -> Option<KeptTable> {
        let cache = self.cache.clone()?;
        let read = spawn_blocking(move || {
            let body = cache.read(KEPT, &key)?;
            serde_json::from_slice(&body).inspect_err(|error| debug!("cached discovery: {error}")).ok()
        });
        read.await.ok().flatten()
    }

    async fn discover_into(&self, known: &mut Known) -> Result<Arc<ApiTable>, ClusterError> {
        // The index comes first: should a kind be defined in between, the table is newer than its key, never older.
        let key = self.table_key(known).await?;
        let (apis, version) = futures::join!(discover(&self.client, self.parallel), version(&self.client));
        let apis = Arc::new(apis.map_err(ClusterError::Discovery)?);
        known.version = version.inspect_err(|error| debug!("the server's version: {error}")).ok();
        known.apis = Some(Arc::clone(&apis));
        known.from_disk = false;
        if let (Some(cache), Some(key), Some(kept)) =
            (self.cache.clone(), key, KeptTable::of(&apis, known.version.clone()))
        {
            let write = spawn_blocking(move || match serde_json::to_vec(&kept) {
                Ok(body) => cache.write(KEPT, &key, &body),
                Err(error) => debug!("discovery to be cached: {error}"),
            });
            // Awaited, so that the process does not end in the middle of it; how it went is in the log.
            let _ = write.await;
        }
        Ok(apis)
    }
}

/// Aggregated discovery: two requests. A server that does not know it (before 1.26) is asked group by group.
async fn discover(client: &Client, parallel: usize) -> Result<ApiTable, ReadError> {
    let (core, groups) = futures::join!(root(client, "/api"), root(client, "/apis"));
    // Without the list of groups nothing can be said of any of them.
    let groups = groups?;
    let mut apis = ApiTable::default();
    match core {
        Ok(core) => add_root(client, parallel, &mut apis, core).await?,
        Err(error) if of_one_group(&error) => apis.add_failure("/v1", &error.to_string()),
        Err(error) => return Err(error),
    }
    add_root(client, parallel, &mut apis, groups).await?;
    Ok(apis)
}

/// The server's version, e.g. `v1.36.3`.
async fn version(client: &Client) -> Result<String, ReadError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        git_version: String,
    }
    let body = get(client, "/version", JSON).await?;
    let version: Version = parse("/version", &body)?;
    Ok(version.git_version)
}

/// Answers of `/api` and `/apis`: aggregated, or the older lists of what to ask next.
enum Root {
    Aggregated(Vec<GroupDiscovery>),
    /// Group versions, each group's preferred one first.
    Legacy(Vec<(String, String)>),
}

async fn root(client: &Client, path: &'static str) -> Result<Root, ReadError> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let body = match get(client, path, DISCOVERY).await {
        // 406: none of the forms asked for is known.
        Err(ReadError::Status { status: 406, .. }) => get(client, path, JSON).await?,
        answer => answer?,
    };
    let kind: Kind = parse(path, &body)?;
    match kind.kind.as_str() {
        "APIGroupDiscoveryList" => {
            Ok(Root::Aggregated(parse::<Items<GroupDiscovery>>(path, &body)?.items.unwrap_or_default()))
        }
        "APIVersions" => {
            let versions: CoreVersions = parse(path, &body)?;
            Ok(Root::Legacy(versions.versions.into_iter().map(|version| (String::new(), version)).collect()))
        }
        "APIGroupList" => {
            let groups: GroupList = parse(path, &body)?;
            Ok(Root::Legacy(groups.groups.into_iter().flat_map(Group::versions).collect()))
        }
        _ => Err(ReadError::Malformed(format!(
            "the answer for {path} is not discovery: is the server a Kubernetes API server?"
        ))),
    }
}

async fn add_root(client: &Client, parallel: usize, apis: &mut ApiTable, root: Root) -> Result<(), ReadError> {
    let versions = match root {
        Root::Aggregated(groups) => {
            groups.into_iter().for_each(|group| add_group(apis, group));
            return Ok(());
        }
        Root::Legacy(versions) => versions,
    };
    let mut answers = stream::iter(versions)
        .map(|(group, version)| async move {
            let resources = resources(client, &group, &version).await;
            (group, version, resources)
        })
        .buffered(parallel.max(1));
    while let Some((group, version, resources)) = answers.next().await {
        match resources {
            Ok(resources) => add_version(apis, &group, &version, resources),
            Err(error) if of_one_group(&error) => apis.add_failure(&format!("{group}/{version}"), &error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn resources(client: &Client, group: &str, version: &str) -> Result<Vec<Resource>, ReadError> {
    let path = path::group_version(group, version);
    let body = get(client, &path, JSON).await?;
    let list: ResourceList = parse(&path, &body)?;
    Ok(list.resources.into_iter().filter_map(LegacyResource::resource).collect())
}

fn add_group(apis: &mut ApiTable, group: GroupDiscovery) {
    let name = group.metadata.name.unwrap_or_default();
    for version in group.versions {
        // What a stale answer lists was served when it was last heard of: reading it will tell.
        if version.freshness.as_deref() == Some("Stale") {
            let named = format!("{name}/{}", version.version);
            apis.add_failure(&named, &format!("discovery of {named} is stale: its API service does not answer"));
        }
        let resources = version.resources.into_iter().filter_map(ResourceDiscovery::resource).collect();
        add_version(apis, &name, &version.version, resources);
    }
}

fn add_version(apis: &mut ApiTable, group: &str, version: &str, mut resources: Vec<Resource>) {
    // One kind under two resource names (e.g. a request-only one): the table's first is the one that can be read.
    resources.sort_by_key(|resource| !resource.gettable);
    for resource in resources {
        apis.add(Served {
            gvk: Gvk { group: group.to_owned(), version: version.to_owned(), kind: resource.kind },
            plural: resource.plural,
            namespaced: resource.namespaced,
            listable: resource.listable,
        });
    }
}

/// Whether the failure says something of this group only; else the rest of the server will not answer either.
fn of_one_group(error: &ReadError) -> bool {
    !matches!(error, ReadError::Unauthorized(_) | ReadError::Unreachable(_))
}

async fn get(client: &Client, path: &str, accept: &'static str) -> Result<Vec<u8>, ReadError> {
    client.get(&Get { path: path.to_owned(), accept, compress: !client.is_local() }).await
}

fn parse<'a, T: Deserialize<'a>>(path: &str, body: &'a [u8]) -> Result<T, ReadError> {
    serde_json::from_slice(body).map_err(|error| malformed(path, &error))
}

/// One resource that is no subresource.
struct Resource {
    plural: String,
    kind: String,
    namespaced: bool,
    gettable: bool,
    listable: bool,
}

// Aggregated discovery: k8s.io/api/apidiscovery/v2.

#[derive(Deserialize)]
struct Items<T> {
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
struct GroupDiscovery {
    metadata: GroupName,
    #[serde(default)]
    versions: Vec<VersionDiscovery>,
}

#[derive(Deserialize)]
struct GroupName {
    /// Absent for the core group.
    name: Option<String>,
}

#[derive(Deserialize)]
struct VersionDiscovery {
    version: String,
    #[serde(default)]
    resources: Vec<ResourceDiscovery>,
    freshness: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

impl ResourceDiscovery {
    /// `None` for an entry that only carries subresources.
    fn resource(self) -> Option<Resource> {
        let kind = self.response_kind.map(|kind| kind.kind).filter(|kind| !kind.is_empty())?;
        let has = |verb: &str| self.verbs.iter().any(|one| one == verb);
        Some(Resource {
            kind,
            namespaced: self.scope == "Namespaced",
            gettable: has("get"),
            listable: has("list"),
            plural: self.resource,
        })
    }
}

// Discovery of old: k8s.io/apimachinery/pkg/apis/meta/v1.

#[derive(Deserialize)]
struct CoreVersions {
    #[serde(default)]
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct GroupList {
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    name: String,
    #[serde(default)]
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    #[serde(default)]
    version: String,
}

impl Group {
    fn versions(self) -> Vec<(String, String)> {
        let preferred = self.preferred_version.map(|one| one.version).unwrap_or_default();
        let mut versions: Vec<String> = self.versions.into_iter().map(|one| one.version).collect();
        versions.sort_by_key(|version| *version != preferred);
        versions.into_iter().map(|version| (self.name.clone(), version)).collect()
    }
}

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<LegacyResource>,
}

#[derive(Deserialize)]
struct LegacyResource {
    name: String,
    kind: String,
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

impl LegacyResource {
    /// `None` for a subresource.
    fn resource(self) -> Option<Resource> {
        let has = |verb: &str| self.verbs.iter().any(|one| one == verb);
        let (gettable, listable) = (has("get"), has("list"));
        (!self.name.contains('/')).then_some(Resource {
            plural: self.name,
            kind: self.kind,
            namespaced: self.namespaced,
            gettable,
            listable,
        })
    }
}

/// A table without failures, as the cache keeps it.
#[derive(Debug, Deserialize, Serialize)]
struct KeptTable {
    version: Option<String>,
    /// Group, version, kind, plural, namespaced, listable; in the table's order.
    kinds: Vec<(String, String, String, String, bool, bool)>,
}

impl KeptTable {
    /// `None` when a group failed: what is kept must be whole.
    fn of(apis: &ApiTable, version: Option<String>) -> Option<Self> {
        if apis.failures().next().is_some() {
            return None;
        }
        let kinds = apis
            .served()
            .map(|served| {
                let gvk = served.gvk.clone();
                (gvk.group, gvk.version, gvk.kind, served.plural.clone(), served.namespaced, served.listable)
            })
            .collect();
        Some(Self { version, kinds })
    }

    fn table(self) -> (Option<String>, ApiTable) {
        let mut apis = ApiTable::default();
        for (group, version, kind, plural, namespaced, listable) in self.kinds {
            apis.add(Served { gvk: Gvk { group, version, kind }, plural, namespaced, listable });
        }
        (self.version, apis)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::{Value, json};

    use super::super::fake::{Answer, Asked, Fake, status};
    use super::*;
    use crate::drift::live::Lookup;

    fn resource(plural: &str, kind: &str) -> Value {
        json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": "Namespaced",
               "verbs": ["get", "list"], "subresources": [{"subresource": "status"}]})
    }

    fn aggregated(groups: &Value) -> Answer {
        (
            200,
            json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": groups})
                .to_string(),
        )
    }

    fn core() -> Answer {
        aggregated(
            &json!([{"metadata": {}, "versions": [{"version": "v1", "resources": [resource("services", "Service")]}]}]),
        )
    }

    /// `widgets`: whether that custom resource is served.
    fn modern(asked: &Asked, index: &str, widgets: bool) -> Answer {
        match asked.path.as_str() {
            "/openapi/v3" => (200, index.to_owned()),
            "/version" => (200, json!({"gitVersion": "v1.36.3"}).to_string()),
            "/api" => core(),
            "/apis" => {
                let mut groups = json!([
                    {"metadata": {"name": "autoscaling"}, "versions": [
                        {"version": "v2", "resources": [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler")], "freshness": "Current"},
                        {"version": "v1", "resources": [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler")], "freshness": "Current"}]},
                ]);
                if widgets {
                    let group = json!({"metadata": {"name": "x.io"}, "versions": [{"version": "v1", "resources": [resource("widgets", "Widget")]}]});
                    groups.as_array_mut().unwrap().push(group);
                }
                aggregated(&groups)
            }
            _ => status(404, "unexpected"),
        }
    }

    const INDEX_A: &str = r#"{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=A"}}}"#;
    const INDEX_B: &str = r#"{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=B"}}}"#;

    /// A directory of its own for one test.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("helm-drift-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[tokio::test]
    async fn two_requests_tell_what_is_served() {
        let fake = Fake::start(|asked| modern(asked, INDEX_A, false));
        let cluster = Cluster::new(fake.client().await, None, 4);
        let apis = cluster.apis().await.unwrap();
        let Lookup::Served(service) = apis.lookup(&Gvk::new("v1", "Service")) else { panic!("{apis:?}") };
        assert_eq!((service.plural.as_str(), service.namespaced, service.listable), ("services", true, true));
        let Lookup::OtherVersion(hpa) = apis.lookup(&Gvk::new("autoscaling/v2beta2", "HorizontalPodAutoscaler")) else {
            panic!()
        };
        assert_eq!(hpa.gvk.version, "v2", "the server's preferred version");
        assert_eq!(apis.lookup(&Gvk::new("x.io/v1", "Widget")), Lookup::NotServed);
        assert_eq!(cluster.info().await.version.as_deref(), Some("v1.36.3"));
        cluster.apis_fresh().await.unwrap();
        assert_eq!(fake.asked(), ["/api", "/apis", "/version"]);
    }

    #[tokio::test]
    async fn a_kept_table_costs_one_request_while_the_index_is_the_same() {
        let directory = Directory::new("discovery");
        let cluster = async |fake: &Fake| Cluster::new(fake.client().await, Some(directory.0.clone()), 4);
        let state = Arc::new(std::sync::Mutex::new((INDEX_A, false)));
        let now = Arc::clone(&state);
        let fake = Fake::start(move |asked| {
            let (index, widgets) = *now.lock().unwrap();
            modern(asked, index, widgets)
        });
        let widget = Gvk::new("x.io/v1", "Widget");

        let cold = cluster(&fake).await.apis().await.unwrap();
        assert_eq!(fake.asked().len(), 4);
        let warm = cluster(&fake).await;
        assert_eq!(warm.apis().await.unwrap(), cold);
        assert_eq!(fake.asked(), ["/openapi/v3"]);
        assert_eq!(warm.info().await.version.as_deref(), Some("v1.36.3"));

        // A kind was defined, and the index does not show it yet.
        *state.lock().unwrap() = (INDEX_A, true);
        assert_eq!(warm.apis().await.unwrap().lookup(&widget), Lookup::NotServed);
        assert!(matches!(warm.apis_fresh().await.unwrap().lookup(&widget), Lookup::Served(_)));
        assert!(matches!(warm.apis().await.unwrap().lookup(&widget), Lookup::Served(_)));
        assert_eq!(fake.asked().len(), 4);
        assert!(matches!(cluster(&fake).await.apis().await.unwrap().lookup(&widget), Lookup::Served(_)), "kept again");
        assert_eq!(fake.asked(), ["/openapi/v3"]);

        *state.lock().unwrap() = (INDEX_B, false);
        assert_eq!(cluster(&fake).await.apis().await.unwrap().lookup(&widget), Lookup::NotServed);
        assert_eq!(fake.asked().len(), 4);
    }

    #[tokio::test]
    async fn what_is_stale_is_a_failure_and_is_not_kept() {
        let directory = Directory::new("stale");
        let fake = Fake::start(|asked| match asked.path.as_str() {
            "/apis" => aggregated(
                &json!([{"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]}]),
            ),
            _ => modern(asked, INDEX_A, false),
        });
        for _ in 0..2 {
            let cluster = Cluster::new(fake.client().await, Some(directory.0.clone()), 4);
            let apis = cluster.apis().await.unwrap();
            let Lookup::Undiscovered(reason) = apis.lookup(&Gvk::new("metrics.k8s.io/v1beta1", "PodMetrics")) else {
                panic!("{apis:?}")
            };
            assert!(reason.contains("stale"), "{reason}");
            assert_eq!(fake.asked().len(), 4, "asked again");
        }
    }

    #[tokio::test]
    async fn older_servers_are_asked_group_by_group() {
        let fake = Fake::start(|asked| {
            let answer = match asked.path.as_str() {
                "/api" if asked.accept == JSON => json!({"kind": "APIVersions", "versions": ["v1"]}),
                "/api" => return status(406, "only application/json"),
                "/apis" => json!({"kind": "APIGroupList", "groups": [
                    {"name": "batch", "versions": [{"groupVersion": "batch/v1beta1", "version": "v1beta1"}, {"groupVersion": "batch/v1", "version": "v1"}],
                     "preferredVersion": {"version": "v1"}},
                    {"name": "metrics.k8s.io", "versions": [{"version": "v1beta1"}]}]}),
                "/api/v1" => json!({"kind": "APIResourceList", "resources": [
                    {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["get", "list"]},
                    {"name": "pods/eviction", "kind": "Eviction", "namespaced": true, "verbs": ["create"]}]}),
                "/apis/batch/v1" | "/apis/batch/v1beta1" => json!({"kind": "APIResourceList", "resources": [
                    {"name": "cronjobs", "kind": "CronJob", "namespaced": true, "verbs": ["get", "list"]}]}),
                _ => return status(503, "the server is currently unable to handle the request"),
            };
            (200, answer.to_string())
        });
        let cluster = Cluster::new(fake.client().await, None, 4);
        let apis = cluster.apis().await.unwrap();
        assert!(matches!(apis.lookup(&Gvk::new("v1", "Pod")), Lookup::Served(_)));
        assert_eq!(apis.lookup(&Gvk::new("v1", "Eviction")), Lookup::NotServed);
        let Lookup::OtherVersion(cron) = apis.lookup(&Gvk::new("batch/v2", "CronJob")) else { panic!() };
        assert_eq!(cron.gvk.version, "v1", "the preferred version comes first");
        let Lookup::Undiscovered(reason) = apis.lookup(&Gvk::new("metrics.k8s.io/v1beta1", "PodMetrics")) else {
            panic!()
        };
        assert!(reason.contains("unable to handle"), "{reason}");
        assert_eq!(cluster.info().await.version, None);
    }

    #[tokio::test]
    async fn no_index_is_no_obstacle() {
        let directory = Directory::new("no-index");
        let fake = Fake::start(|asked| match asked.path.as_str() {
            "/openapi/v3" => status(403, "forbidden"),
            _ => modern(asked, "", false),
        });
        let cluster = Cluster::new(fake.client().await, Some(directory.0.clone()), 4);
        cluster.apis().await.unwrap();
        assert!(!directory.0.exists());
        let types = cluster.schemas(&[Gvk::new("v1", "ConfigMap")].into()).await;
        assert!(types.get("", "v1").unwrap_err().contains("forbidden"));
        assert_eq!(fake.asked().len(), 4);
    }

    #[tokio::test]
    async fn what_is_no_api_server_is_said_so() {
        let fake = Fake::start(|_: &Asked| (200, r#"{"kind": "Something"}"#.to_owned()));
        let error = Cluster::new(fake.client().await, None, 4).apis().await.unwrap_err().to_string();
        assert!(error.contains("is the server a Kubernetes API server?"), "{error}");
    }
}
