//! An API server of a test's own, in this process and on loopback: it holds objects, answers as Kubernetes does, fails where it is told
//! to, and remembers what it was asked. It knows nothing of Helm or `drift`; where it and a real API server disagree, it is wrong.

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A kind that is served.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
}

const fn kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> Kind {
    Kind { group, version, kind, plural, namespaced }
}

/// What is served unless a test says otherwise.
const KINDS: &[Kind] = &[
    kind("", "v1", "ConfigMap", "configmaps", true),
    kind("", "v1", "Secret", "secrets", true),
    kind("", "v1", "Service", "services", true),
    kind("", "v1", "ServiceAccount", "serviceaccounts", true),
    kind("apps", "v1", "Deployment", "deployments", true),
    kind("apps", "v1", "StatefulSet", "statefulsets", true),
    kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
    kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false),
    kind("shop.example", "v1", "Oven", "ovens", true),
];

/// A custom resource that no test serves unless it says so.
pub(crate) const TABLES: Kind = kind("shop.example", "v1", "Table", "tables", true);

/// Flux's, for clusters where it is installed.
pub(crate) const HELM_RELEASES: Kind = kind("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases", true);
pub(crate) const PODS: Kind = kind("", "v1", "Pod", "pods", true);

impl Kind {
    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `api/v1` or `apis/apps/v1`.
    fn base(&self) -> String {
        format!("{}/{}", if self.group.is_empty() { "api" } else { "apis" }, self.api_version())
    }

    /// `deployments.apps`, as the server's messages have it.
    fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// A request, as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// With the query.
    pub(crate) path: String,
    accept: String,
    pub(crate) takes_gzip: bool,
    token: String,
}

impl Asked {
    fn bare(&self) -> &str {
        self.path.split('?').next().unwrap()
    }

    fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.path.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).map(decoded)
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// Where a path leads.
struct Place {
    kind: Kind,
    namespace: Option<String>,
    name: Option<String>,
}

/// Which requests a fault is for; what is left open matches all.
#[derive(Clone, Default)]
pub(crate) struct On {
    verb: Option<&'static str>,
    resource: Option<&'static str>,
    prefix: Option<&'static str>,
    cluster_wide: bool,
    name: Option<&'static str>,
    later_page: bool,
    skip: usize,
    times: Option<usize>,
}

/// Listings of a resource.
pub(crate) fn list(resource: &'static str) -> On {
    On { verb: Some("list"), resource: Some(resource), ..On::default() }
}

/// Reads of single objects.
pub(crate) fn get(resource: &'static str) -> On {
    On { verb: Some("get"), resource: Some(resource), ..On::default() }
}

/// Whatever begins with this path.
pub(crate) fn path(prefix: &'static str) -> On {
    On { prefix: Some(prefix), ..On::default() }
}

impl On {
    pub(crate) fn cluster_wide(self) -> Self {
        Self { cluster_wide: true, ..self }
    }

    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Second and later pages of a listing.
    pub(crate) fn later_page(self) -> Self {
        Self { later_page: true, ..self }
    }

    /// Not the first `count` of them.
    pub(crate) fn after(self, count: usize) -> Self {
        Self { skip: count, ..self }
    }

    pub(crate) fn times(self, count: usize) -> Self {
        Self { times: Some(count), ..self }
    }

    pub(crate) fn prefix(&self) -> Option<&'static str> {
        self.prefix
    }

    fn matches(&self, asked: &Asked, place: Option<&Place>) -> bool {
        let verb = place.map(|place| if place.name.is_some() { "get" } else { "list" });
        self.prefix.is_none_or(|prefix| asked.path.starts_with(prefix))
            && self.verb.is_none_or(|wanted| verb == Some(wanted))
            && self.resource.is_none_or(|wanted| place.is_some_and(|place| place.kind.plural == wanted))
            && (!self.cluster_wide || place.is_some_and(|place| place.namespace.is_none()))
            && self.name.is_none_or(|wanted| place.is_some_and(|place| place.name.as_deref() == Some(wanted)))
            && (!self.later_page || asked.query("continue").is_some())
    }
}

/// What happens instead of an answer, or before it.
pub(crate) enum Act {
    /// 403, in the API server's words.
    Forbid,
    /// This status, in a `Status` object with this message.
    Fail(u16, &'static str),
    /// 429 or 503 with `Retry-After` in seconds.
    Later(u16, u32),
    /// 200 with this body.
    Say(&'static str),
    /// This status with this body, which is no `Status` object.
    Raw(u16, &'static str),
    /// The connection ends without an answer.
    HangUp,
    /// Half of the answer, then the connection ends.
    Cut,
    /// No answer, ever.
    Silence,
    /// Half of the answer, and then no more.
    Stall,
    /// The answer in pieces.
    Drip,
    /// The objects become others, then the answer is given.
    Change(fn(&mut Objects)),
}

struct Fault {
    on: On,
    act: Act,
    seen: usize,
}

/// In the order in which they were made; with `apiVersion` and `kind`.
#[derive(Default)]
pub(crate) struct Objects(pub(crate) Vec<Value>);

impl Objects {
    /// Replaces the object of the same kind, namespace and name.
    pub(crate) fn put(&mut self, object: Value) {
        let place = self.0.iter().position(|one| identity(one) == identity(&object));
        match place {
            Some(place) => self.0[place] = object,
            None => self.0.push(object),
        }
    }

    /// The one object of this kind and name.
    pub(crate) fn get(&mut self, kind: &str, name: &str) -> &mut Value {
        let found = self.0.iter_mut().find(|one| one["kind"] == kind && one["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("the API server holds no {kind} {name}"))
    }

    pub(crate) fn remove_in(&mut self, namespace: &str, kind: &str, name: &str) {
        let before = self.0.len();
        self.0.retain(|one| {
            let metadata = &one["metadata"];
            one["kind"] != kind || metadata["name"] != name || metadata["namespace"] != namespace
        });
        assert_eq!(self.0.len() + 1, before, "the API server holds no {kind} {namespace}/{name}");
    }

    pub(crate) fn remove(&mut self, kind: &str, name: &str) {
        self.get(kind, name);
        self.0.retain(|one| one["kind"] != kind || one["metadata"]["name"] != name);
    }
}

fn identity(object: &Value) -> [&Value; 4] {
    let metadata = &object["metadata"];
    [&object["apiVersion"], &object["kind"], &metadata["namespace"], &metadata["name"]]
}

/// How discovery is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// Two requests for all groups.
    Aggregated,
    /// A request for each group, as before Kubernetes 1.26.
    ByGroup,
}

struct Shared {
    objects: Mutex<Objects>,
    kinds: Mutex<Vec<Kind>>,
    stale: Mutex<BTreeSet<&'static str>>,
    discovery: Mutex<Discovery>,
    faults: Mutex<Vec<Fault>>,
    log: Mutex<Vec<(Asked, u16)>>,
    logged: Condvar,
    unprepared: Mutex<Vec<String>>,
    /// Objects to a page at most, whatever the request says.
    page: Mutex<Option<usize>>,
    token: String,
}

/// Ends with the guard, and its connections with their clients.
pub(crate) struct ApiServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    closing: Arc<Mutex<bool>>,
}

impl ApiServer {
    /// Lets in whoever brings this token.
    pub(crate) fn start(token: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            objects: Mutex::default(),
            kinds: Mutex::new(KINDS.to_vec()),
            stale: Mutex::default(),
            discovery: Mutex::new(Discovery::Aggregated),
            faults: Mutex::default(),
            log: Mutex::default(),
            logged: Condvar::new(),
            unprepared: Mutex::default(),
            page: Mutex::default(),
            token: token.to_owned(),
        });
        let closing = Arc::new(Mutex::new(false));
        let (for_all, end) = (Arc::clone(&shared), Arc::clone(&closing));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if *end.lock().unwrap() {
                    return;
                }
                let shared = Arc::clone(&for_all);
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        Self { address, shared, closing }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Objects)) {
        change(&mut self.shared.objects.lock().unwrap());
    }

    pub(crate) fn fault(&self, on: On, act: Act) {
        self.shared.faults.lock().unwrap().push(Fault { on, act, seen: 0 });
    }

    pub(crate) fn no_more_faults(&self) {
        self.shared.faults.lock().unwrap().clear();
    }

    pub(crate) fn serve_kind(&self, kind: Kind) {
        self.shared.kinds.lock().unwrap().push(kind);
    }

    /// The group is known, but the server behind it does not answer.
    pub(crate) fn stale(&self, group: &'static str) {
        self.shared.stale.lock().unwrap().insert(group);
    }

    /// The server behind each group answers again.
    pub(crate) fn fresh(&self) {
        self.shared.stale.lock().unwrap().clear();
    }

    /// Returns once this path was asked for.
    pub(crate) fn await_request(&self, path: &str) {
        let log = self.shared.log.lock().unwrap();
        let asked = |log: &mut Vec<(Asked, u16)>| !log.iter().any(|(asked, _)| asked.bare() == path);
        let waited = self.shared.logged.wait_timeout_while(log, Duration::from_secs(60), asked).unwrap().1;
        assert!(!waited.timed_out(), "{path} was not asked for");
    }

    pub(crate) fn discovery(&self, discovery: Discovery) {
        *self.shared.discovery.lock().unwrap() = discovery;
    }

    pub(crate) fn page(&self, objects: usize) {
        *self.shared.page.lock().unwrap() = Some(objects);
    }

    /// What was asked since the last call, with the status of each answer (0: none).
    pub(crate) fn log(&self) -> Vec<(Asked, u16)> {
        std::mem::take(&mut *self.shared.log.lock().unwrap())
    }

    /// Requests for what this server cannot know anything of.
    pub(crate) fn unprepared(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.unprepared.lock().unwrap())
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        *self.closing.lock().unwrap() = true;
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
    }
}

/// Status, further headers, body.
struct Answer {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(body: &Value) -> Self {
        Self { status: 200, headers: String::new(), body: body.to_string().into_bytes() }
    }

    fn failure(status: u16, reason: &str, message: &str) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
            "code": status,
        });
        Self { status, ..Self::json(&body) }
    }
}

/// How an answer is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Whole,
    Nothing,
    HalfAndEnd,
    HalfAndStall,
    Pieces,
}

impl Shared {
    fn serve(&self, stream: &TcpStream) {
        drop(stream.set_nodelay(true));
        let mut reader = BufReader::new(stream);
        while let Some(asked) = read_request(&mut reader) {
            if asked.method == "CONNECT" {
                // A proxy too: whatever the address, this server is behind it.
                let mut to = stream;
                if to.write_all(b"HTTP/1.1 200 OK\r\n\r\n").is_err() {
                    return;
                }
                continue;
            }
            let (answer, manner) = self.answer(&asked);
            let silent = matches!(manner, Manner::Nothing) || answer.is_none();
            self.log.lock().unwrap().push((asked.clone(), if silent { 0 } else { answer.as_ref().unwrap().status }));
            self.logged.notify_all();
            let sent = answer.is_some_and(|answer| send(stream, &asked, &answer, manner));
            if manner == Manner::Nothing || manner == Manner::HalfAndStall {
                // Until the client has had enough.
                drop(reader.read_to_end(&mut Vec::new()));
            }
            if !sent || manner != Manner::Whole && manner != Manner::Pieces {
                drop(stream.shutdown(Shutdown::Both));
                return;
            }
        }
    }

    /// `None`: the connection ends.
    fn answer(&self, asked: &Asked) -> (Option<Answer>, Manner) {
        let place = self.place(asked.bare());
        let mut manner = Manner::Whole;
        let mut faults = self.faults.lock().unwrap();
        let due = faults.iter_mut().filter(|fault| fault.on.matches(asked, place.as_ref())).find_map(|fault| {
            fault.seen += 1;
            let past = fault.seen.checked_sub(fault.on.skip + 1)?;
            fault.on.times.is_none_or(|times| past < times).then_some(&fault.act)
        });
        if let Some(act) = due {
            let instead = match act {
                Act::Forbid => Some(forbidden(asked, place.as_ref())),
                Act::Fail(status, message) => Some(Answer::failure(*status, "Fault", message)),
                Act::Later(status, seconds) => {
                    let failure = Answer::failure(*status, "TooManyRequests", "the server is busy");
                    Some(Answer { headers: format!("Retry-After: {seconds}\r\n"), ..failure })
                }
                Act::Say(body) => Some(Answer { status: 200, headers: String::new(), body: body.as_bytes().to_vec() }),
                Act::Raw(status, body) => {
                    Some(Answer { status: *status, headers: String::new(), body: body.as_bytes().to_vec() })
                }
                Act::HangUp => return (None, Manner::HalfAndEnd),
                Act::Silence => return (None, Manner::Nothing),
                Act::Cut => {
                    manner = Manner::HalfAndEnd;
                    None
                }
                Act::Stall => {
                    manner = Manner::HalfAndStall;
                    None
                }
                Act::Drip => {
                    manner = Manner::Pieces;
                    None
                }
                Act::Change(change) => {
                    change(&mut self.objects.lock().unwrap());
                    None
                }
            };
            if instead.is_some() {
                return (instead, manner);
            }
        }
        drop(faults);
        if asked.token != self.token {
            return (Some(Answer::failure(401, "Unauthorized", "Unauthorized")), manner);
        }
        let answer = match &place {
            Some(Place { kind, namespace, name: Some(name) }) => self.one(asked, kind, namespace.as_deref(), name),
            Some(Place { kind, namespace, name: None }) => self.listing(asked, kind, namespace.as_deref()),
            None => self.other(asked),
        };
        (Some(answer), manner)
    }

    fn place(&self, path: &str) -> Option<Place> {
        let kinds = self.kinds.lock().unwrap();
        kinds.iter().find_map(|kind| {
            let rest = path.strip_prefix('/')?.strip_prefix(&kind.base())?.strip_prefix('/')?;
            let steps: Vec<String> = rest.split('/').map(decoded).collect();
            let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
            let (namespace, rest) = match steps.as_slice() {
                ["namespaces", namespace, rest @ ..] if kind.namespaced => (Some((*namespace).to_owned()), rest),
                rest => (None, rest),
            };
            let name = match rest {
                [plural] if *plural == kind.plural => None,
                [plural, name] if *plural == kind.plural => Some((*name).to_owned()),
                _ => return None,
            };
            Some(Place { kind: kind.clone(), namespace, name })
        })
    }

    fn one(&self, asked: &Asked, kind: &Kind, namespace: Option<&str>, name: &str) -> Answer {
        let objects = self.objects.lock().unwrap();
        let found = objects.0.iter().find(|object| is(object, kind, namespace) && object["metadata"]["name"] == name);
        match found {
            Some(object) if asked.accept.contains("as=PartialObjectMetadata;") => Answer::json(&metadata_of(object)),
            Some(object) => Answer::json(object),
            None => Answer::failure(404, "NotFound", &format!("{} {name:?} not found", kind.resource())),
        }
    }

    fn listing(&self, asked: &Asked, kind: &Kind, namespace: Option<&str>) -> Answer {
        let objects = self.objects.lock().unwrap();
        let labels = asked.query("labelSelector").unwrap_or_default();
        let fields = asked.query("fieldSelector").unwrap_or_default();
        let mut found: Vec<&Value> = objects
            .0
            .iter()
            .filter(|object| is(object, kind, namespace))
            .filter(|object| holds(&labels, |label| object["metadata"]["labels"][label].as_str()))
            .filter(|object| holds(&fields, |field| object[field].as_str()))
            .collect();
        found.sort_by_key(|object| {
            let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
            (text("namespace"), text("name"))
        });
        let start: usize =
            asked.query("continue").map_or(0, |token| token.trim_start_matches("from-").parse().unwrap());
        let limit = asked.query("limit").map_or(usize::MAX, |limit| limit.parse().unwrap());
        let limit = self.page.lock().unwrap().unwrap_or(limit);
        let left = found.len().saturating_sub(start).saturating_sub(limit);
        let page = found.into_iter().skip(start).take(limit);
        let mut metadata = json!({"resourceVersion": "1000"});
        if left > 0 {
            metadata["continue"] = json!(format!("from-{}", start + limit));
            metadata["remainingItemCount"] = json!(left);
        }
        if asked.accept.contains("as=PartialObjectMetadataList") {
            let items: Vec<Value> = page.map(metadata_of).collect();
            return Answer::json(
                &json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items}),
            );
        }
        // The items of a typed list have neither.
        let typed = !kind.group.contains('.') || kind.group.ends_with(".k8s.io");
        let items: Vec<Value> = page
            .map(|object| {
                let mut item = object.clone();
                if typed {
                    item.as_object_mut().unwrap().retain(|key, _| key != "apiVersion" && key != "kind");
                }
                item
            })
            .collect();
        let name = format!("{}List", kind.kind);
        Answer::json(&json!({"kind": name, "apiVersion": kind.api_version(), "metadata": metadata, "items": items}))
    }

    fn other(&self, asked: &Asked) -> Answer {
        let aggregated = *self.discovery.lock().unwrap() == Discovery::Aggregated
            && asked.accept.contains("g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
        match asked.bare() {
            "/version" => Answer::json(&json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})),
            "/api" if aggregated => Answer::json(&self.groups(true)),
            "/apis" if aggregated => Answer::json(&self.groups(false)),
            "/api" => Answer::json(&json!({"kind": "APIVersions", "versions": ["v1"]})),
            "/apis" => Answer::json(&self.group_list()),
            "/openapi/v3" => Answer::json(&self.index()),
            path => self.document(path).or_else(|| self.resource_list(path)).unwrap_or_else(|| self.unknown(asked)),
        }
    }

    fn unknown(&self, asked: &Asked) -> Answer {
        self.unprepared.lock().unwrap().push(format!("{} {}", asked.method, asked.path));
        Answer { status: 404, headers: String::new(), body: b"404 page not found\n".to_vec() }
    }

    fn by_group(&self) -> BTreeMap<(&'static str, &'static str), Vec<Kind>> {
        let mut groups: BTreeMap<_, Vec<Kind>> = BTreeMap::new();
        for kind in self.kinds.lock().unwrap().iter() {
            groups.entry((kind.group, kind.version)).or_default().push(kind.clone());
        }
        groups
    }

    /// Aggregated discovery of the core group, or of all others.
    fn groups(&self, core: bool) -> Value {
        let stale = self.stale.lock().unwrap();
        let item = |((group, version), kinds): ((&str, &str), Vec<Kind>)| {
            let is_stale = stale.contains(group);
            let resources: Vec<Value> = if is_stale { Vec::new() } else { kinds.iter().map(discovered).collect() };
            let freshness = if is_stale { "Stale" } else { "Current" };
            json!({"metadata": {"name": group}, "versions": [{"version": version, "resources": resources, "freshness": freshness}]})
        };
        let items: Vec<Value> =
            self.by_group().into_iter().filter(|((group, _), _)| group.is_empty() == core).map(item).collect();
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
    }

    fn group_list(&self) -> Value {
        let item = |(group, version): (&str, &str)| {
            let named = json!({"groupVersion": format!("{group}/{version}"), "version": version});
            json!({"name": group, "versions": [named], "preferredVersion": named})
        };
        let groups: Vec<Value> = self.by_group().into_keys().filter(|(group, _)| !group.is_empty()).map(item).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    fn resource_list(&self, path: &str) -> Option<Answer> {
        let kinds = self.kinds.lock().unwrap();
        let of: Vec<&Kind> = kinds.iter().filter(|kind| path.strip_prefix('/') == Some(kind.base().as_str())).collect();
        let first = of.first()?;
        let resource = |kind: &&Kind| json!({"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced, "verbs": ["get", "list"]});
        let resources: Vec<Value> = of.iter().map(resource).collect();
        Some(Answer::json(
            &json!({"kind": "APIResourceList", "groupVersion": first.api_version(), "resources": resources}),
        ))
    }

    /// The index of OpenAPI documents, each with a hash of what is in it.
    fn index(&self) -> Value {
        let mut paths = serde_json::Map::new();
        for kinds in self.by_group().into_values() {
            let base = kinds[0].base();
            let names: Vec<&str> = kinds.iter().map(|kind| kind.kind).collect();
            let url = format!("/openapi/v3/{base}?hash={}", names.join(""));
            paths.insert(base, json!({"serverRelativeURL": url}));
        }
        json!({ "paths": paths })
    }

    fn document(&self, path: &str) -> Option<Answer> {
        let base = path.strip_prefix("/openapi/v3/")?;
        let body = match base {
            "api/v1" => include_bytes!("../data/openapi/core-v1.json").to_vec(),
            "apis/apps/v1" => include_bytes!("../data/openapi/apps-v1.json").to_vec(),
            _ => {
                let kinds = self.kinds.lock().unwrap();
                let of: Vec<&Kind> = kinds.iter().filter(|kind| kind.base() == base).collect();
                of.first()?;
                loose(&of).to_string().into_bytes()
            }
        };
        Some(Answer { status: 200, headers: String::new(), body })
    }
}

/// An OpenAPI document whose kinds take any field.
fn loose(kinds: &[&Kind]) -> Value {
    let schema = |kind: &&Kind| {
        let name = format!("{}.{}.{}", kind.group, kind.version, kind.kind);
        let gvk = json!([{"group": kind.group, "version": kind.version, "kind": kind.kind}]);
        (
            name,
            json!({
                "type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-group-version-kind": gvk,
                "properties": {"metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }),
        )
    };
    let schemas: serde_json::Map<String, Value> = kinds.iter().map(schema).collect();
    json!({"openapi": "3.0.0", "components": {"schemas": schemas}})
}

fn discovered(kind: &Kind) -> Value {
    json!({
        "resource": kind.plural, "scope": if kind.namespaced { "Namespaced" } else { "Cluster" }, "verbs": ["get", "list"],
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
    })
}

fn metadata_of(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn is(object: &Value, kind: &Kind, namespace: Option<&str>) -> bool {
    object["kind"] == kind.kind
        && object["apiVersion"] == kind.api_version()
        && namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace)
}

/// A selector of `name=value` and `name!=value`.
fn holds<'a>(selector: &str, value: impl Fn(&str) -> Option<&'a str>) -> bool {
    selector.split(',').filter(|one| !one.is_empty()).all(|one| match one.split_once("!=") {
        Some((name, unwanted)) => value(name) != Some(unwanted),
        None => {
            let (name, wanted) = one.split_once('=').unwrap();
            value(name) == Some(wanted)
        }
    })
}

fn forbidden(asked: &Asked, place: Option<&Place>) -> Answer {
    let Some(Place { kind, namespace, name }) = place else {
        let message = format!("forbidden: User \"limited\" cannot get path {:?}", asked.bare());
        return Answer::failure(403, "Forbidden", &message);
    };
    let (verb, named) = match name {
        Some(name) => ("get", format!(" {name:?}")),
        None => ("list", String::new()),
    };
    let scope = match namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let message = format!(
        "{}{named} is forbidden: User \"limited\" cannot {verb} resource {:?} in API group {:?} {scope}",
        kind.resource(),
        kind.plural,
        kind.group
    );
    Answer::failure(403, "Forbidden", &message)
}

/// `None` when the client is done.
fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() {
        // TLS, for one; a server that speaks HTTP says so.
        let mut to = *reader.get_ref();
        drop(to.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
        return None;
    }
    if line.is_empty() {
        return None;
    }
    let mut words = line.split(' ').map(str::to_owned);
    let mut asked = Asked {
        method: words.next()?,
        path: words.next()?,
        accept: String::new(),
        takes_gzip: false,
        token: String::new(),
    };
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).ok()? == 0 {
            return None;
        }
        let Some((name, value)) = header.trim_end().split_once(':') else { return Some(asked) };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "accept" => asked.accept = value.to_owned(),
            "accept-encoding" => asked.takes_gzip = value.contains("gzip"),
            "authorization" => asked.token = value.trim_start_matches("Bearer ").to_owned(),
            "content-length" => {
                let mut body = vec![0; value.parse().unwrap()];
                reader.read_exact(&mut body).ok()?;
            }
            _ => {}
        }
    }
}

/// False when the client is gone.
fn send(mut to: &TcpStream, asked: &Asked, answer: &Answer, manner: Manner) -> bool {
    let kubernetes = matches!(answer.body.first(), Some(b'{'));
    let mut headers = answer.headers.clone();
    headers += if kubernetes { "Content-Type: application/json\r\n" } else { "Content-Type: text/plain\r\n" };
    let body = if asked.takes_gzip {
        headers += "Content-Encoding: gzip\r\n";
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&answer.body).unwrap();
        packer.finish().unwrap()
    } else {
        answer.body.clone()
    };
    let head = format!("HTTP/1.1 {} Answer\r\n{headers}Content-Length: {}\r\n\r\n", answer.status, body.len());
    let half = &body[..body.len() / 2];
    let mut put = |bytes: &[u8]| to.write_all(bytes).is_ok();
    put(head.as_bytes())
        && match manner {
            Manner::Whole => put(&body),
            Manner::Nothing => true,
            Manner::HalfAndEnd | Manner::HalfAndStall => put(half),
            Manner::Pieces => body.chunks((body.len() / 4).max(1)).all(|piece| {
                std::thread::sleep(Duration::from_millis(10));
                put(piece)
            }),
        }
}
