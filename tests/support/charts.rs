//! The charts of `tests/data/charts` (its README says what they are), installed by a real Helm: release NAME in namespace NAME, as
//! cluster-scoped names and cross references carry both. Those names are why each Helm has a control plane of its own. What a release
//! wants is told by kubectl, never by the program under test.

use super::cases::say;
use super::control_plane::{ControlPlane, Helm};
use super::namespace::Namespace;
use super::process::{Finished, run};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Quick to install, and together of nearly every kind that charts have. `DRIFT_LONG` takes all.
const ORDINARY: &[&str] = &[
    "argo-rollouts",
    "bitnami-jenkins",
    "bitnami-metallb",
    "bitnami-redis",
    "cert-manager",
    "keda",
    "kube-prometheus-stack",
    "metrics-server",
    "podinfo",
    "prometheus-adapter",
    "rollout-operator",
];

/// How many releases are worked on at a time.
const WORKERS: usize = 8;

/// How many charts are installed at a time.
const INSTALLERS: usize = 4;

/// One folder of `tests/data/charts`.
pub(crate) struct Chart {
    pub(crate) name: String,
    manifest: String,
    /// Its `crds/`, which are applied first.
    definitions: Option<String>,
}

impl Chart {
    /// The charts of this run, by name: all with `DRIFT_LONG`, else the ordinary ones; `DRIFT_CHARTS` (names, by comma) takes others.
    pub(crate) fn of_this_run() -> Vec<Chart> {
        let named = std::env::var("DRIFT_CHARTS").unwrap_or_default();
        let named: Vec<&str> = named.split(',').filter(|name| !name.is_empty()).collect();
        let wanted = |name: &str| {
            if named.is_empty() { is_long() || ORDINARY.contains(&name) } else { named.contains(&name) }
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/charts");
        let mut names: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .filter(|name| folder.join(name).is_dir() && wanted(name))
            .collect();
        names.sort();
        let read = |name: &str, file: &str| {
            let bytes = fs::read(folder.join(name).join(file)).ok()?;
            let mut text = String::new();
            flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
            Some(text)
        };
        let chart = |name: String| Chart {
            manifest: read(&name, "manifest.yaml.gz").unwrap_or_else(|| panic!("{name} has no manifest")),
            definitions: read(&name, "crds.yaml.gz"),
            name,
        };
        names.into_iter().map(chart).collect()
    }
}

/// Whether everything is asked for: all charts and 2,000 mutations.
pub(crate) fn is_long() -> bool {
    std::env::var("DRIFT_LONG").is_ok_and(|value| value == "1")
}

/// All charts of this run as one Helm installed them.
pub(crate) struct Corpus {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) helm: Helm,
    pub(crate) sites: Vec<Site>,
    /// What the program said of all of them right after, and how long it took.
    pub(crate) fresh: Checked,
    turn: Mutex<()>,
}

impl Corpus {
    /// Installed at first use.
    ///
    /// Panics with what went wrong: a test that could not run is no pass.
    pub(crate) fn of(helm: Helm) -> &'static Corpus {
        static THREE: LazyLock<Result<Corpus, String>> = LazyLock::new(|| Corpus::install(Helm::Three));
        static FOUR: LazyLock<Result<Corpus, String>> = LazyLock::new(|| Corpus::install(Helm::Four));
        let corpus = match helm {
            Helm::Three => &*THREE,
            Helm::Four => &*FOUR,
        };
        corpus.as_ref().unwrap_or_else(|problem| panic!("no corpus: {problem}"))
    }

    /// The right to change the corpus. Who has it leaves everything as it was.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Runs something for each release, several at a time; the problems of all.
    pub(crate) fn for_each<'a>(&'a self, run: impl Fn(&'a Site) -> Result<(), String> + Sync) -> Vec<String> {
        let queue = Mutex::new(self.sites.iter());
        let problems: Mutex<Vec<String>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    loop {
                        let Some(site) = queue.lock().unwrap().next() else { break };
                        let problem = run(site).err().map(|problem| format!("{}: {problem}", site.name));
                        problems.lock().unwrap().extend(problem);
                    }
                });
            }
        });
        problems.into_inner().unwrap()
    }

    fn install(helm: Helm) -> Result<Corpus, String> {
        static PLANES: [LazyLock<Result<ControlPlane, String>>; 2] =
            [LazyLock::new(ControlPlane::start), LazyLock::new(ControlPlane::start)];
        let plane = PLANES[usize::from(helm == Helm::Four)].as_ref().map_err(Clone::clone)?;
        let started = Instant::now();
        let queue = Mutex::new(Chart::of_this_run().into_iter());
        let sites: Mutex<Vec<Result<Site, String>>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..INSTALLERS {
                scope.spawn(|| {
                    loop {
                        let Some(chart) = queue.lock().unwrap().next() else { break };
                        let site = Site::install(plane, helm, &chart);
                        sites.lock().unwrap().push(site.map_err(|problem| format!("{}: {problem}", chart.name)));
                    }
                });
            }
        });
        let mut sites = sites.into_inner().unwrap().into_iter().collect::<Result<Vec<Site>, String>>()?;
        sites.sort_by(|one, other| one.name.cmp(&other.name));
        let took = started.elapsed();
        let objects: usize = sites.iter().map(|site| site.things.len()).sum();
        say(&format!(
            "{} charts with {objects} objects installed with Helm {} in {:.0} s",
            sites.len(),
            helm.major(),
            took.as_secs_f64()
        ));
        let fresh = check(plane, &["-A"])?;
        Ok(Corpus { plane, helm, sites, fresh, turn: Mutex::new(()) })
    }
}

/// One installed chart.
pub(crate) struct Site {
    pub(crate) name: String,
    pub(crate) namespace: Namespace<'static>,
    /// In manifest order.
    pub(crate) things: Vec<Thing>,
}

/// One object of a release.
pub(crate) struct Thing {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    /// Where the API serves it.
    pub(crate) url: String,
    /// Where the API serves its kind, in its namespace.
    pub(crate) collection: String,
    /// The manifest's object as kubectl reads it, with Helm's own three keys.
    pub(crate) desired: Value,
}

impl Thing {
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    pub(crate) fn says(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

impl Site {
    fn install(plane: &'static ControlPlane, helm: Helm, chart: &Chart) -> Result<Site, String> {
        let namespace = plane.namespace_called(&chart.name);
        let folder = plane.folder(&format!("charts/{}", chart.name));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).and_then(|()| fs::write(&path, text)).map(|()| path)
        };
        let written = || {
            write("Chart.yaml", &format!("apiVersion: v2\nname: {}\nversion: 1.0.0\n", chart.name))?;
            write("templates/all.yaml", r#"{{ .Files.Get "manifest.yaml" }}"#)?;
            write("manifest.yaml", &chart.manifest)
        };
        written().map_err(|error| format!("{}: {error}", folder.display()))?;
        if let Some(definitions) = &chart.definitions {
            namespace.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"], definitions)?;
            established(plane)?;
        }
        let place = folder.to_string_lossy();
        namespace.helm(helm, &["install", &chart.name, &place, "-n", &chart.name])?;
        let things = things(&namespace, helm, &chart.name)?;
        Ok(Site { name: chart.name.clone(), namespace, things })
    }

    /// The program's word on this release alone.
    pub(crate) fn check(&self) -> Result<Checked, String> {
        check(self.namespace.plane, &[&self.name, "-n", &self.namespace.name])
    }
}

impl Site {
    /// The same, with the server's second opinion.
    pub(crate) fn check_with_server(&self) -> Result<Checked, String> {
        check(self.namespace.plane, &[&self.name, "-n", &self.namespace.name, "--engine", "server"])
    }
}

/// Waits until every definition is served. (`kubectl wait` gives up on one that has no condition yet.)
fn established(plane: &ControlPlane) -> Result<(), String> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let list = plane.request("GET", path, &Value::Null).map_err(|error| format!("{path}: {error}"))?;
        let is_established = |definition: &Value| {
            let conditions = definition["status"]["conditions"].as_array();
            conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Established" && one["status"] == "True"))
        };
        if list["items"].as_array().into_iter().flatten().all(is_established) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err("definitions are not established after a minute".to_owned());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A report, and what came with it.
pub(crate) struct Checked {
    pub(crate) code: Option<i32>,
    pub(crate) report: Value,
    pub(crate) took: Duration,
}

impl Checked {
    /// All findings of all releases.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &Value> {
        let releases = self.report["releases"].as_array().into_iter().flatten();
        releases.flat_map(|release| release["findings"].as_array().into_iter().flatten())
    }
}

/// Runs the program under test (`DRIFT_BIN`: another) and reads its JSON report.
pub(crate) fn check(plane: &ControlPlane, arguments: &[&str]) -> Result<Checked, String> {
    let program = std::env::var("DRIFT_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_drift").to_owned());
    let mut command = plane.command(&program, Helm::Four);
    let started = Instant::now();
    let Finished { code, stdout, stderr } =
        run(command.args(arguments).args(["-o", "json"]), "", Duration::from_secs(180))?;
    let report = serde_json::from_str(&stdout).map_err(|error| {
        format!("exit {code:?}, no JSON ({error}): {}", stderr.chars().take(400).collect::<String>())
    })?;
    Ok(Checked { code, report, took: started.elapsed() })
}

/// The objects of a release. kubectl reads the manifest that Helm gives back: an independent reader of YAML, written in Go as Helm's is.
fn things(namespace: &Namespace<'static>, helm: Helm, release: &str) -> Result<Vec<Thing>, String> {
    let manifest = namespace.helm(helm, &["get", "manifest", release])?;
    let read =
        namespace.kubectl(&["create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-"], &manifest)?;
    let mut objects = Vec::new();
    for document in serde_json::Deserializer::from_str(&read).into_iter::<Value>() {
        let document = document.map_err(|error| format!("kubectl create --dry-run: {error}"))?;
        match document["items"].as_array() {
            Some(items) if document["kind"] == "List" => objects.extend(items.iter().cloned()),
            _ => objects.push(document),
        }
    }
    let mut resources: BTreeMap<String, Value> = BTreeMap::new();
    let mut things = Vec::new();
    for mut object in objects {
        own(&mut object, release, &namespace.name);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let root =
            if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") };
        if !resources.contains_key(&api_version) {
            let list =
                namespace.plane.request("GET", &root, &Value::Null).map_err(|error| format!("{root}: {error}"))?;
            resources.insert(api_version.clone(), list);
        }
        let served = resources[&api_version]["resources"].as_array().into_iter().flatten();
        let resource = served
            .filter(|resource| !resource["name"].as_str().unwrap_or_default().contains('/'))
            .find(|resource| resource["kind"] == kind.as_str())
            .ok_or_else(|| format!("{api_version} {kind} is not served"))?;
        let plural = resource["name"].as_str().unwrap_or_default();
        let place = (resource["namespaced"] == true).then(|| match text("/metadata/namespace").as_str() {
            "" => namespace.name.clone(),
            named => named.to_owned(),
        });
        let collection = match &place {
            Some(place) => format!("{root}/namespaces/{place}/{plural}"),
            None => format!("{root}/{plural}"),
        };
        let url = format!("{collection}/{}", name.replace(':', "%3A"));
        things.push(Thing { api_version, kind, name, namespace: place, url, collection, desired: object });
    }
    Ok(things)
}

/// What Helm makes of every object of a chart, and the API server of every Secret.
fn own(object: &mut Value, release: &str, namespace: &str) {
    object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("Helm");
    object["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!(release);
    object["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = json!(namespace);
    if object["kind"] == "Secret"
        && let Some(Value::Object(texts)) = object.as_object_mut().and_then(|object| object.remove("stringData"))
    {
        for (key, text) in texts {
            object["data"][key] = json!(BASE64.encode(text.as_str().unwrap_or_default()));
        }
    }
}
