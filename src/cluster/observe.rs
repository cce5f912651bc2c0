//! Live objects, read with few requests: a listing per kind, single reads for the rest. Knows nothing of what is desired or how it is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt as _, stream};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;

use super::Cluster;
use super::client::{Client, Get, JSON, ReadError};
use super::listing::{Item, Listing, PAGE, Page, malformed, off_thread};
use super::path::{self, Query};
use crate::drift::live::{LiveObject, Observation, Served};
use crate::drift::object::ObjectRef;

/// Every object that Helm writes carries this label (helm/helm `pkg/action/validate.go`).
pub(super) const MANAGED_BY_HELM: &str = "app.kubernetes.io/managed-by=Helm";

/// Objects of kinds whose single objects may be 1 MiB: a page must fit in memory.
const PAGE_OF_LARGE: usize = 250;
/// A kind wanted in more namespaces than this is listed in all of them at once.
const NAMESPACES_APART: usize = 3;
/// When a listing goes on, but no more than this is still wanted of it, the rest is read one by one.
const NOT_WORTH_A_PAGE: usize = 3;
/// Without the label a listing returns what nobody asked for: worth it from this many objects of one namespace, or of many, on.
const WORTH_LISTING_ALL: usize = 10;
const WORTH_LISTING_ALL_NAMESPACES: usize = 50;
/// Reads of one kind, and kinds, without any answer in a row before the kind, and the server, is taken for dead.
const SILENT_READS: usize = 2;
const SILENT_KINDS: usize = 4;

/// An object to read.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// As it is served: its version is the one that is read.
    pub(crate) object: ObjectRef,
    pub(crate) served: Served,
    /// Whether it should carry Helm's label; not so with `-f`.
    pub(crate) labelled: bool,
}

/// Called once for every object wanted, off the async threads, with its place in the list; owns what was read.
pub(crate) type Judge<T> = Arc<dyn Fn(usize, &ObjectRef, Observation) -> T + Send + Sync>;

impl Cluster {
    /// Reads the objects and hands each to `judge` as soon as it is there; the results stand in the order of `wanted`.
    ///
    /// Memory holds a page or two per kind, not the cluster. What a listing did not return is read by itself before it is
    /// called missing; where listing is forbidden, everything is. A failure is that object's alone.
    pub(crate) async fn observe<T: Send + 'static>(&self, wanted: Vec<Wanted>, judge: Judge<T>) -> Vec<T> {
        let run = Run {
            client: self.client.clone(),
            work: Arc::new(Work { wanted, judge }),
            parallel: self.parallel,
            silence: Mutex::default(),
        };
        let mut reads =
            stream::iter(tasks(&run.work.wanted)).map(|task| run.task(task)).buffer_unordered(self.parallel);
        let mut judged: BTreeMap<usize, T> = BTreeMap::new();
        while let Some(some) = reads.next().await {
            judged.extend(some);
        }
        // Each place has been judged; should a bug ever lose one, it is unreadable, never in sync.
        for place in 0..run.work.wanted.len() {
            if !judged.contains_key(&place) {
                let reason = "internal error while it was read".to_owned();
                judged.extend(run.work.judge(&[place], Observation::Unreadable(reason)));
            }
        }
        judged.into_values().collect()
    }

    /// Every object of a kind, in one namespace or all, that a label selector picks; with `apiVersion` and `kind`.
    pub(crate) async fn list(
        &self,
        served: &Served,
        namespace: Option<&str>,
        selector: Option<&str>,
    ) -> Result<Vec<Value>, ReadError> {
        let query = Query::new(&path::collection(served, namespace)).with_some("labelSelector", selector);
        let listing = Listing::new(&self.client, query, page_size(served), JSON);
        let kind = served.clone();
        listing.all(&served.plural, move |object| Some(typed(object, &kind))).await
    }
}

/// Which places of the list want an object of a kind: by namespace and name. The same object may be wanted twice.
type Places = BTreeMap<(Option<String>, String), Vec<usize>>;

/// What to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    /// Each by itself.
    Single { served: Served, places: Places },
    /// By a listing of one namespace, or of all.
    Listed { served: Served, namespace: Option<String>, labelled: bool, places: Places },
}

/// Few requests for what is wanted: by kind, then by namespace.
fn tasks(wanted: &[Wanted]) -> Vec<Task> {
    let mut kinds: BTreeMap<(KindName, bool), (Served, Places)> = BTreeMap::new();
    for (place, one) in wanted.iter().enumerate() {
        let kind = (kind_name(&one.served), one.labelled);
        let namespace = one.object.namespace.clone().filter(|_| one.served.namespaced);
        let (_, places) = kinds.entry(kind).or_insert_with(|| (one.served.clone(), Places::new()));
        places.entry((namespace, one.object.name.clone())).or_default().push(place);
    }
    let tasks = kinds.into_iter().flat_map(|((_, labelled), (served, places))| {
        let apart = by_namespace(&places);
        // All namespaces at once also return other people's objects; without the label that is a bargain for many only.
        let enough = labelled || places.len() >= WORTH_LISTING_ALL_NAMESPACES;
        if enough && served.listable && served.namespaced && apart.len() > NAMESPACES_APART {
            return vec![Task::Listed { served, namespace: None, labelled, places }];
        }
        apart.into_iter().map(|(namespace, places)| in_namespace(&served, namespace, labelled, places)).collect()
    });
    tasks.collect()
}

fn by_namespace(places: &Places) -> BTreeMap<Option<String>, Places> {
    let mut apart: BTreeMap<Option<String>, Places> = BTreeMap::new();
    for (key, value) in places {
        apart.entry(key.0.clone()).or_default().insert(key.clone(), value.clone());
    }
    apart
}

fn in_namespace(served: &Served, namespace: Option<String>, labelled: bool, places: Places) -> Task {
    let enough = if labelled { 2 } else { WORTH_LISTING_ALL };
    // A namespaced object without a namespace is no reason to list all namespaces.
    let placed = namespace.is_some() || !served.namespaced;
    if served.listable && placed && places.len() >= enough {
        Task::Listed { served: served.clone(), namespace, labelled, places }
    } else {
        Task::Single { served: served.clone(), places }
    }
}

/// What every part of one run of [`Cluster::observe`] needs.
struct Run<T> {
    client: Client,
    work: Arc<Work<T>>,
    parallel: usize,
    silence: Mutex<Silence>,
}

/// Who did not answer.
#[derive(Default)]
struct Silence {
    /// Reads in a row, by kind.
    reads: BTreeMap<KindName, usize>,
    /// Kinds since the last answer of any.
    kinds: BTreeSet<KindName>,
}

/// Group, version, plural.
type KindName = (String, String, String);

fn kind_name(served: &Served) -> KindName {
    (served.gvk.group.clone(), served.gvk.version.clone(), served.plural.clone())
}

struct Work<T> {
    wanted: Vec<Wanted>,
    judge: Judge<T>,
}

impl<T> Work<T> {
    /// The same observation for each place that wants the object.
    fn judge(&self, places: &[usize], observation: Observation) -> Vec<(usize, T)> {
        let Some((last, others)) = places.split_last() else { return Vec::new() };
        let mut judged: Vec<(usize, T)> =
            others.iter().filter_map(|place| self.judge_one(*place, observation.clone())).collect();
        judged.extend(self.judge_one(*last, observation));
        judged
    }

    /// A panic in the judge is contained: the object is then one that could not be told.
    fn judge_one(&self, place: usize, observation: Observation) -> Option<(usize, T)> {
        let object = &self.wanted.get(place)?.object;
        let judged = catch_unwind(AssertUnwindSafe(|| (self.judge)(place, object, observation)));
        let judged = judged.unwrap_or_else(|_| {
            let reason = "internal error while it was compared".to_owned();
            (self.judge)(place, object, Observation::Unreadable(reason))
        });
        Some((place, judged))
    }
}

/// What a listing left: what it did not return, and why it ended early.
struct Rest<T> {
    judged: Vec<(usize, T)>,
    places: Places,
    failure: Option<ReadError>,
}

impl<T: Send + 'static> Run<T> {
    async fn task(&self, task: Task) -> Vec<(usize, T)> {
        match task {
            Task::Single { served, places } => self.singles(&served, places, None).await,
            Task::Listed { served, namespace, labelled, places } => {
                let rest = self.listed(&served, namespace.as_deref(), labelled, places).await;
                let mut judged = rest.judged;
                let narrower =
                    namespace.is_none() && served.namespaced && rest.failure.as_ref().is_some_and(is_refusal);
                if narrower {
                    // Not allowed for all namespaces; perhaps in each.
                    let tasks = by_namespace(&rest.places)
                        .into_iter()
                        .map(|(namespace, places)| in_namespace(&served, namespace, labelled, places));
                    let tasks: Vec<Task> = tasks.collect();
                    let mut reads =
                        stream::iter(tasks).map(|task| Box::pin(self.task(task))).buffer_unordered(self.parallel);
                    while let Some(some) = reads.next().await {
                        judged.extend(some);
                    }
                } else {
                    judged.extend(self.singles(&served, rest.places, rest.failure).await);
                }
                judged
            }
        }
    }

    /// Page by page; the next page is on its way while one is judged.
    async fn listed(&self, served: &Served, namespace: Option<&str>, labelled: bool, mut places: Places) -> Rest<T> {
        let mut judged = Vec::new();
        if let Some(reason) = self.given_up(served) {
            judged.extend(self.unreadable(places, &reason).await);
            return Rest { judged, places: Places::new(), failure: None };
        }
        let selector = labelled.then_some(MANAGED_BY_HELM);
        let mut query = Query::new(&path::collection(served, namespace)).with_some("labelSelector", selector);
        if !labelled && served.gvk.group.is_empty() && served.plural == "secrets" {
            // Release records are large, and never part of a manifest.
            query = query.with("fieldSelector", "type!=helm.sh/release.v1");
        }
        let mut listing = Listing::new(&self.client, query, page_size(served), JSON);
        let mut answer = listing.page().await;
        loop {
            let body = match answer {
                Ok(body) => body,
                Err(ReadError::Gone(_)) if listing.restart() => {
                    answer = listing.page().await;
                    continue;
                }
                Err(error) => return Rest { judged, places, failure: Some(error) },
            };
            self.heard(served, true);
            let kind = served.clone();
            let page = off_thread(move || Ok(take(&kind, &body, places))).await;
            let Ok(page) = page else {
                return Rest { judged, places: Places::new(), failure: None };
            };
            let judging = self.judge_found(served, page.found);
            places = page.places;
            let more = match page.token.and_then(|token| listing.advance(token)) {
                Ok(more) => more && places.len() > NOT_WORTH_A_PAGE,
                Err(error) => {
                    judged.extend(judging.await);
                    return Rest { judged, places, failure: Some(error) };
                }
            };
            if !more {
                judged.extend(judging.await);
                return Rest { judged, places, failure: None };
            }
            let (next, some) = futures::join!(listing.page(), judging);
            answer = next;
            judged.extend(some);
        }
    }

    async fn judge_found(&self, served: &Served, found: Vec<Found>) -> Vec<(usize, T)> {
        if found.is_empty() {
            return Vec::new();
        }
        let (work, served) = (Arc::clone(&self.work), served.clone());
        let judged = spawn_blocking(move || {
            let judge = |one: Found| {
                let observation = match serde_json::from_str(one.object.get()) {
                    Ok(body) => Observation::Found(LiveObject { body: typed(body, &served) }),
                    Err(error) => Observation::Unreadable(malformed(&one.name, &error).to_string()),
                };
                work.judge(&one.places, observation)
            };
            found.into_iter().flat_map(judge).collect()
        });
        finished(judged.await)
    }

    /// Each by itself. `failure`: why the listing failed; where that bodes ill for them all, one or two are tried before the others.
    async fn singles(&self, served: &Served, mut places: Places, failure: Option<ReadError>) -> Vec<(usize, T)> {
        let mut judged = Vec::new();
        let trials = match &failure {
            Some(error) if is_silence(error) => 1,
            // One object that cannot be converted fails a whole listing, and may be the first.
            Some(error) if is_unanswered(error) => SILENT_READS,
            _ => 0,
        };
        for trial in 1..=trials {
            let Some((key, first)) = places.pop_first() else { break };
            let answer = self.read(served, &key).await;
            let unanswered = answer.as_ref().err().filter(|error| is_unanswered(error)).map(ToString::to_string);
            judged.extend(self.judge_answer(served, &key.1, first, answer).await);
            match unanswered {
                None => break,
                Some(reason) if trial == trials => {
                    judged.extend(self.unreadable(places, &reason).await);
                    return judged;
                }
                Some(_) => {}
            }
        }
        let reads = stream::iter(places).map(|(key, places)| async move {
            let answer = self.read(served, &key).await;
            self.judge_answer(served, &key.1, places, answer).await
        });
        let mut reads = reads.buffer_unordered(self.parallel);
        while let Some(some) = reads.next().await {
            judged.extend(some);
        }
        judged
    }

    async fn read(&self, served: &Served, (namespace, name): &(Option<String>, String)) -> Result<Vec<u8>, ReadError> {
        if let Some(reason) = self.given_up(served) {
            return Err(ReadError::Unreachable(reason));
        }
        let path = path::object(served, namespace.as_deref(), name).ok_or_else(|| {
            ReadError::Malformed(format!(
                "no {} can be called {name:?} in namespace {:?}",
                served.gvk.kind,
                namespace.as_deref().unwrap_or_default()
            ))
        })?;
        let answer = self.client.get(&Get { path, accept: JSON, compress: !self.client.is_local() }).await;
        self.heard(served, !answer.as_ref().is_err_and(is_unanswered));
        answer
    }

    async fn judge_answer(
        &self,
        served: &Served,
        name: &str,
        places: Vec<usize>,
        answer: Result<Vec<u8>, ReadError>,
    ) -> Vec<(usize, T)> {
        let (work, served, name) = (Arc::clone(&self.work), served.clone(), name.to_owned());
        let judged = spawn_blocking(move || {
            let observation = match answer.and_then(|body| parse_object(&served, &name, &body)) {
                Ok(body) => Observation::Found(LiveObject { body }),
                Err(ReadError::NotFound(_)) => Observation::Missing,
                Err(ReadError::NotServed(reason)) => Observation::NotServed(reason),
                Err(error) => Observation::Unreadable(error.to_string()),
            };
            work.judge(&places, observation)
        });
        finished(judged.await)
    }

    async fn unreadable(&self, places: Places, reason: &str) -> Vec<(usize, T)> {
        let (work, reason) = (Arc::clone(&self.work), reason.to_owned());
        let judge = move |places: Vec<usize>| work.judge(&places, Observation::Unreadable(reason.clone()));
        finished(spawn_blocking(move || places.into_values().flat_map(judge).collect()).await)
    }

    fn heard(&self, served: &Served, answered: bool) {
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = kind_name(served);
        if answered {
            silence.kinds.clear();
            silence.reads.remove(&kind);
        } else {
            silence.kinds.insert(kind.clone());
            *silence.reads.entry(kind).or_default() += 1;
        }
    }

    /// Once a kind or the server does not answer, waiting for each of a thousand objects helps nobody.
    fn given_up(&self, served: &Served) -> Option<String> {
        let silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        let dead = silence.kinds.len() >= SILENT_KINDS
            || silence.reads.get(&kind_name(served)).is_some_and(|reads| *reads >= SILENT_READS);
        dead.then(|| "not asked for: the server did not answer what was asked before".to_owned())
    }
}

/// What a page holds of what is wanted.
struct Taken {
    found: Vec<Found>,
    /// Still wanted.
    places: Places,
    token: Result<Option<String>, ReadError>,
}

struct Found {
    name: String,
    places: Vec<usize>,
    object: Box<RawValue>,
}

/// Picks the wanted objects of a page without building the others. A page that does not parse ends the listing as its token.
fn take(served: &Served, body: &[u8], mut places: Places) -> Taken {
    let page: Page<&RawValue> = match serde_json::from_slice(body) {
        Ok(page) => page,
        Err(error) => return Taken { found: Vec::new(), places, token: Err(malformed(&served.plural, &error)) },
    };
    let mut found = Vec::new();
    for item in page.items.unwrap_or_default() {
        let Ok(Item { metadata }) = serde_json::from_str::<Item<Metadata>>(item.get()) else { continue };
        let key = (metadata.namespace.filter(|_| served.namespaced), metadata.name);
        if let Some(wanted) = places.remove(&key) {
            found.push(Found { name: key.1, places: wanted, object: item.to_owned() });
        }
    }
    Taken { found, places, token: Ok(page.metadata.token) }
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: Option<String>,
}

fn parse_object(served: &Served, name: &str, body: &[u8]) -> Result<Value, ReadError> {
    let object: Value = serde_json::from_slice(body).map_err(|error| malformed(name, &error))?;
    // Whatever stands between us and the server, another object is no answer.
    if object.pointer("/metadata/name").and_then(Value::as_str) != Some(name) {
        return Err(ReadError::Malformed(format!("the answer for {}/{name} is another object", served.gvk.kind)));
    }
    Ok(typed(object, served))
}

/// Items of a typed listing lack what the list says for all of them.
fn typed(mut object: Value, served: &Served) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.entry("apiVersion").or_insert_with(|| Value::from(served.gvk.api_version()));
        fields.entry("kind").or_insert_with(|| Value::from(served.gvk.kind.as_str()));
    }
    object
}

fn page_size(served: &Served) -> usize {
    let large = served.gvk.group.is_empty() && matches!(served.plural.as_str(), "secrets" | "configmaps");
    if large { PAGE_OF_LARGE } else { PAGE }
}

/// Listing is not allowed, or not offered; single reads may be.
fn is_refusal(error: &ReadError) -> bool {
    matches!(error, ReadError::Forbidden(_) | ReadError::Status { status: 405, .. })
}

/// No answer came: the next question may get none either.
fn is_silence(error: &ReadError) -> bool {
    matches!(error, ReadError::Timeout(_) | ReadError::Unreachable(_) | ReadError::Unauthorized(_))
}

/// Silence, or a fault that outlasted the retries: a kind whose server or conversion is broken has it for every object.
fn is_unanswered(error: &ReadError) -> bool {
    is_silence(error) || matches!(error, ReadError::Status { status: 500.., .. })
}

/// A judge that panics twice is a bug: it goes on to whoever contains the run.
fn finished<R>(joined: Result<R, tokio::task::JoinError>) -> R {
    match joined {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Blocking work is never cancelled while its runtime lives.
            Err(error) => std::panic::resume_unwind(Box::new(error.to_string())),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::super::fake::{Answer, Asked, Fake, status};
    use super::*;
    use crate::drift::object::Gvk;

    fn served(api_version: &str, kind: &str, plural: &str) -> Served {
        Served { gvk: Gvk::new(api_version, kind), plural: plural.to_owned(), namespaced: true, listable: true }
    }

    fn services() -> Served {
        served("v1", "Service", "services")
    }

    fn wanted(served: &Served, namespace: &str, name: &str) -> Wanted {
        let object =
            ObjectRef { gvk: served.gvk.clone(), namespace: Some(namespace.to_owned()), name: name.to_owned() };
        Wanted { object, served: served.clone(), labelled: true }
    }

    fn item(namespace: &str, name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"from": "list"}})
    }

    fn list(items: &[Value], token: &str) -> Answer {
        (
            200,
            json!({"kind": "ServiceList", "apiVersion": "v1", "metadata": {"continue": token}, "items": items})
                .to_string(),
        )
    }

    fn one(namespace: &str, name: &str) -> Answer {
        (200, json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace}, "spec": {"from": "get"}}).to_string())
    }

    /// The outcomes in one word each.
    async fn observed(fake: &Fake, wanted: Vec<Wanted>) -> Vec<String> {
        let cluster = Arc::new(Cluster::new(fake.client().await, None, 4));
        let judge: Judge<String> = Arc::new(|_, object, observation| match observation {
            Observation::Found(live) => {
                assert_eq!(live.body["metadata"]["name"], object.name.as_str());
                assert_eq!(live.body["kind"], object.gvk.kind.as_str());
                assert_eq!(live.body["apiVersion"], object.gvk.api_version());
                live.body["spec"]["from"].as_str().unwrap_or_default().to_owned()
            }
            Observation::Missing => "missing".to_owned(),
            Observation::NotServed(reason) | Observation::Unreadable(reason) => reason,
        });
        // Spawned, as the program does it.
        tokio::spawn(async move { cluster.observe(wanted, judge).await }).await.unwrap()
    }

    const LABELLED: &str = "labelSelector=app.kubernetes.io/managed-by=Helm&limit=500";

    #[tokio::test]
    async fn a_listing_first_then_what_it_did_not_return() {
        let fake = Fake::start(|asked| match asked.path.as_str() {
            "/api/v1/namespaces/a/services/unlabelled" => one("a", "unlabelled"),
            path if path.starts_with("/api/v1/namespaces/a/services?") => {
                list(&[item("a", "x"), item("a", "other"), item("a", "y")], "")
            }
            _ => status(404, "services not found"),
        });
        let services = services();
        let wanted = ["y", "unlabelled", "gone", "x", "y"].map(|name| wanted(&services, "a", name)).to_vec();
        assert_eq!(observed(&fake, wanted).await, ["list", "get", "missing", "list", "list"]);
        assert_eq!(
            fake.asked(),
            [
                "/api/v1/namespaces/a/services/gone".to_owned(),
                "/api/v1/namespaces/a/services/unlabelled".to_owned(),
                format!("/api/v1/namespaces/a/services?{LABELLED}"),
            ]
        );
    }

    #[tokio::test]
    async fn one_object_is_got_and_many_namespaces_are_listed_at_once() {
        let fake = Fake::start(|asked| match asked.path.as_str() {
            "/api/v1/namespaces/a/services/x" => one("a", "x"),
            path if path.starts_with("/apis/apps/v1/deployments?") => {
                list(&["a", "b", "c", "d"].map(|namespace| item(namespace, "x")), "")
            }
            _ => status(500, "unexpected"),
        });
        let deployments = served("apps/v1", "Deployment", "deployments");
        let mut all = vec![wanted(&services(), "a", "x")];
        all.extend(["a", "b", "c", "d"].map(|namespace| wanted(&deployments, namespace, "x")));
        assert_eq!(observed(&fake, all).await, ["get", "list", "list", "list", "list"]);
        assert_eq!(
            fake.asked(),
            ["/api/v1/namespaces/a/services/x".to_owned(), format!("/apis/apps/v1/deployments?{LABELLED}")]
        );
    }

    #[tokio::test]
    async fn forbidden_everywhere_is_tried_in_each_namespace_then_by_name() {
        let fake = Fake::start(|asked| {
            let path = asked.path.as_str();
            match path {
                _ if path.starts_with("/api/v1/services?") => status(403, "cannot list at the cluster scope"),
                _ if path.starts_with("/api/v1/namespaces/a/services?") => list(&[item("a", "x"), item("a", "y")], ""),
                _ if path.starts_with("/api/v1/namespaces/b/services?") => status(403, "cannot list in b"),
                "/api/v1/namespaces/b/services/x" => one("b", "x"),
                "/api/v1/namespaces/b/services/y" => status(403, "services \"y\" is forbidden"),
                "/api/v1/namespaces/c/services/x" => one("c", "x"),
                "/api/v1/namespaces/d/services/x" => status(404, "no"),
                _ => status(500, "unexpected"),
            }
        });
        let services = services();
        let all = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "x"), ("d", "x")];
        let all = all.map(|(namespace, name)| wanted(&services, namespace, name)).to_vec();
        assert_eq!(
            observed(&fake, all).await,
            ["list", "list", "get", "services \"y\" is forbidden", "get", "missing"]
        );
    }

    #[tokio::test]
    async fn a_listing_that_expires_is_started_again_and_nothing_is_judged_twice() {
        let expired = AtomicUsize::new(0);
        let fake = Fake::start(move |asked| {
            let names =
                |range: std::ops::Range<usize>| range.map(|n| item("a", &format!("s{n:02}"))).collect::<Vec<_>>();
            if asked.path.ends_with("continue=two") {
                if expired.fetch_add(1, Ordering::Relaxed) == 0 {
                    status(410, "too old")
                } else {
                    list(&names(10..20), "")
                }
            } else {
                list(&names(0..10), "two")
            }
        });
        let services = services();
        let all: Vec<Wanted> = (0..20).map(|n| wanted(&services, "a", &format!("s{n:02}"))).collect();
        let cluster = Cluster::new(fake.client().await, None, 4);
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        let judge: Judge<usize> = Arc::new(move |place, _, observation| {
            assert!(matches!(observation, Observation::Found(_)));
            counter.fetch_add(1, Ordering::Relaxed);
            place
        });
        assert_eq!(cluster.observe(all, judge).await, (0..20).collect::<Vec<_>>());
        assert_eq!(calls.load(Ordering::Relaxed), 20);
        assert_eq!(fake.asked().len(), 4);
    }

    #[tokio::test]
    async fn a_listing_stops_when_little_is_wanted_of_the_rest() {
        let fake = Fake::start(|asked| match asked.path.as_str() {
            path if path.contains('?') => list(&[item("a", "x"), item("a", "y")], "more"),
            "/api/v1/namespaces/a/services/z" => one("a", "z"),
            _ => status(500, "unexpected"),
        });
        let services = services();
        let all = ["x", "y", "z"].map(|name| wanted(&services, "a", name)).to_vec();
        assert_eq!(observed(&fake, all).await, ["list", "list", "get"]);
        assert_eq!(fake.asked().len(), 2);
    }

    #[tokio::test]
    async fn a_listing_that_fails_leaves_single_reads() {
        let fake = Fake::start(|asked| match asked.path.as_str() {
            path if path.contains('?') => status(500, "conversion webhook failed"),
            "/api/v1/namespaces/a/services/x" => one("a", "x"),
            _ => status(500, "conversion webhook failed"),
        });
        let services = services();
        let all = ["x", "y"].map(|name| wanted(&services, "a", name)).to_vec();
        assert_eq!(observed(&fake, all).await, ["get", "the server answered 500: conversion webhook failed"]);
    }

    #[tokio::test]
    async fn a_server_that_cuts_every_connection_is_not_asked_for_each_object() {
        let fake = Fake::start(|_: &Asked| (0, String::new()));
        let services = services();
        let all: Vec<Wanted> = (0..100).map(|n| wanted(&services, "a", &format!("s{n}"))).collect();
        let answers = observed(&fake, all).await;
        assert_eq!(answers.len(), 100);
        assert!(answers.iter().all(|answer| answer != "missing" && answer != "list"), "{answers:?}");
        assert!(fake.asked().len() < 20, "a try or four for the listing and one object");
    }

    #[tokio::test]
    async fn what_is_not_the_object_is_unreadable() {
        let fake = Fake::start(|asked| match asked.path.as_str() {
            "/api/v1/namespaces/a/services/x" => one("a", "another"),
            "/apis/apps/v1/namespaces/a/deployments/x" => (200, "<html>password</html>".to_owned()),
            _ => status(500, "unexpected"),
        });
        let deployments = served("apps/v1", "Deployment", "deployments");
        let answers = observed(
            &fake,
            vec![wanted(&services(), "a", "x"), wanted(&deployments, "a", "x"), wanted(&services(), "b", "../x")],
        )
        .await;
        assert!(answers[0].contains("another object"), "{answers:?}");
        assert!(answers[1].contains("not the JSON") && !answers[1].contains("password"), "{answers:?}");
        assert!(answers[2].contains("can be called"), "{answers:?}");
    }

    #[tokio::test]
    async fn a_judge_that_panics_makes_one_object_unreadable() {
        let fake = Fake::start(|_: &Asked| list(&[item("a", "x"), item("a", "y")], ""));
        let cluster = Cluster::new(fake.client().await, None, 4);
        let services = services();
        let judge: Judge<bool> = Arc::new(|place, _, observation| match observation {
            Observation::Found(_) => {
                assert!(place > 0, "a hostile object");
                true
            }
            _ => false,
        });
        let all = ["x", "y"].map(|name| wanted(&services, "a", name)).to_vec();
        assert_eq!(cluster.observe(all, judge).await, [false, true]);
    }

    #[tokio::test]
    async fn look_ups_list_all_pages_with_their_kind() {
        let fake = Fake::start(|asked| {
            if asked.path.ends_with("continue=b") { list(&[item("a", "y")], "") } else { list(&[item("a", "x")], "b") }
        });
        let cluster = Cluster::new(fake.client().await, None, 4);
        let found = cluster.list(&services(), Some("a"), Some("app=x")).await.unwrap();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|one| one["kind"] == "Service"));
        assert_eq!(fake.asked()[0], "/api/v1/namespaces/a/services?labelSelector=app=x&limit=500");
    }
}
