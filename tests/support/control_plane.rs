//! A real Kubernetes API server with its controllers and a stub kubelet, for one test run: etcd, kube-apiserver and
//! kube-controller-manager on the loopback and free ports, with kubectl, Helm 3 and Helm 4 beside them. It ends with the process that
//! started it, however that ends. Knows nothing of `drift`.

use super::kubelet;
use super::namespace::Namespace;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::Client;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex};
use std::time::{Duration, Instant};

/// The administrator's bearer token. It opens this one throw-away API server on the loopback and nothing else.
const ADMIN_TOKEN: &str = "admin";

/// How many namespaces are worked in at a time: more only makes Helm's and the controllers' own time-outs fail.
const SLOTS: usize = 8;

/// Helm 3 or Helm 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helm {
    Three,
    Four,
}

impl Helm {
    pub(crate) fn major(self) -> u8 {
        match self {
            Helm::Three => 3,
            Helm::Four => 4,
        }
    }
}

/// The control plane of this test run, started at first use.
///
/// Panics with what is missing when its programs are not there: a test that could not run is no pass.
pub(crate) fn control_plane() -> &'static ControlPlane {
    static SHARED: LazyLock<Result<ControlPlane, String>> = LazyLock::new(ControlPlane::start);
    match &*SHARED {
        Ok(plane) => plane,
        Err(problem) => panic!("no control plane: {problem}"),
    }
}

pub(crate) struct ControlPlane {
    directory: PathBuf,
    programs: PathBuf,
    server: String,
    certificate: Vec<u8>,
    client: Client,
    runtime: tokio::runtime::Runtime,
    slots: Slots,
    namespaces: AtomicUsize,
    _warden: Warden,
}

impl ControlPlane {
    /// A control plane of one's own, for a test that looks at all namespaces. The others share [`control_plane`].
    ///
    /// Takes 2 to 5 seconds. A port that somebody else took in between means another try.
    pub(crate) fn start() -> Result<ControlPlane, String> {
        let programs = programs()?;
        let mut problem = String::new();
        for _ in 0..3 {
            match ControlPlane::start_once(&programs) {
                Ok(plane) => return Ok(plane),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    fn start_once(programs: &Path) -> Result<ControlPlane, String> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let directory = std::env::temp_dir().join(format!(
            "helm-drift-{}-{}",
            std::process::id(),
            STARTED.fetch_add(1, Ordering::Relaxed)
        ));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut warden = Warden::new(&directory).map_err(|error| format!("sh: {error}"))?;
        layout(&directory, programs).map_err(|error| format!("{}: {error}", directory.display()))?;

        let [etcd_port, peer_port, api_port, controllers_port] =
            free_ports().map_err(|error| format!("free ports: {error}"))?;
        let server = format!("https://127.0.0.1:{api_port}");
        let (etcd_url, peer_url) = (format!("http://127.0.0.1:{etcd_port}"), format!("http://127.0.0.1:{peer_port}"));
        let mut starting = Starting { directory: &directory, programs, warden: &mut warden, children: Vec::new() };
        starting.spawn(
            "etcd",
            &[
                "--data-dir=etcd",
                &format!("--listen-client-urls={etcd_url}"),
                &format!("--advertise-client-urls={etcd_url}"),
                &format!("--listen-peer-urls={peer_url}"),
                &format!("--initial-advertise-peer-urls={peer_url}"),
                &format!("--initial-cluster=default={peer_url}"),
                "--unsafe-no-fsync",
                "--log-level=warn",
            ],
        )?;
        starting.spawn(
            "kube-apiserver",
            &[
                &format!("--etcd-servers={etcd_url}"),
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                &format!("--secure-port={api_port}"),
                "--cert-dir=certs",
                "--service-account-key-file=sa.pub",
                "--service-account-signing-key-file=sa.key",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--token-auth-file=tokens.csv",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/16",
                "--disable-admission-plugins=ServiceAccount",
                "--allow-privileged=true",
                "--endpoint-reconciler-type=none",
            ],
        )?;

        // The server writes its own certificate, followed by the authority that signed it.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let deadline = Instant::now() + Duration::from_secs(60);
        let (client, certificate) = loop {
            starting.all_alive()?;
            let certificate = fs::read(directory.join("certs/apiserver.crt")).unwrap_or_default();
            let config = kubeconfig(&server, &certificate, "default", ADMIN_TOKEN);
            match runtime.block_on(ready(config)) {
                Ok(client) => break (client, certificate),
                Err(problem) if Instant::now() > deadline => {
                    return Err(format!("not ready after a minute: {problem}\n{}", starting.log("kube-apiserver")));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        let config = kubeconfig(&server, &certificate, "default", ADMIN_TOKEN);
        fs::write(directory.join("kubeconfig"), config.to_string()).map_err(|error| format!("kubeconfig: {error}"))?;
        starting.spawn(
            "kube-controller-manager",
            &[
                "--kubeconfig=kubeconfig",
                "--service-account-private-key-file=sa.key",
                "--root-ca-file=certs/apiserver.crt",
                "--use-service-account-credentials=false",
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                &format!("--secure-port={controllers_port}"),
                "--cert-dir=certs",
                "--controllers=*,-nodeipam,-nodelifecycle,-cloud-node-lifecycle,-service-lb-controller,-route",
                // Eight namespaces at a time are more than the defaults foresee.
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                "--horizontal-pod-autoscaler-sync-period=1s",
            ],
        )?;
        // The first thing that the controllers write.
        let root_ca = || http::Request::get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt").body(Vec::new());
        while runtime.block_on(client.request_text(root_ca().map_err(|error| error.to_string())?)).is_err() {
            starting.all_alive()?;
            if Instant::now() > deadline {
                return Err(format!("no controllers after a minute\n{}", starting.log("kube-controller-manager")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        runtime.spawn(kubelet::serve(client.clone()));
        Ok(ControlPlane {
            programs: programs.to_owned(),
            server,
            certificate,
            client,
            runtime,
            slots: Slots { free: Mutex::new(SLOTS), changed: Condvar::new() },
            namespaces: AtomicUsize::new(0),
            _warden: warden,
            directory,
        })
    }

    /// The administrator's kubeconfig; its namespace is `default`.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// `https://127.0.0.1:PORT`.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Writes a kubeconfig into the control plane's directory: who (a bearer token) and where (the context's namespace).
    pub(crate) fn kubeconfig_for(&self, name: &str, namespace: &str, token: Option<&str>) -> PathBuf {
        let path = self.directory.join(format!("{name}.kubeconfig"));
        let config = kubeconfig(&self.server, &self.certificate, namespace, token.unwrap_or(ADMIN_TOKEN));
        fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// A folder of one's own inside the control plane's directory.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.directory.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// A program in an environment of its own: nothing of the caller's but PATH, a home that only this control plane uses,
    /// and what [`ControlPlane::in_environment`] adds.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, helm: Helm) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.directory.join("home"))
            .env("TMPDIR", self.directory.join("tmp"))
            .env("LANG", "C.UTF-8");
        self.in_environment(&mut command, helm);
        command
    }

    /// Leads a program to this control plane: the administrator's kubeconfig, and `kubectl`, `helm3`, `helm4` and, of the
    /// given major, `helm` first on PATH.
    pub(crate) fn in_environment<'a>(&self, command: &'a mut Command, helm: Helm) -> &'a mut Command {
        let mut places = vec![self.directory.join(format!("helm-{}", helm.major())), self.programs.clone()];
        places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        command.env("PATH", std::env::join_paths(places).unwrap()).env("KUBECONFIG", self.kubeconfig())
    }

    /// Asks the API server as its administrator. The error is the server's own status, or what went wrong on the way.
    pub(crate) fn request(&self, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
        self.request_as(method, path, "application/json", body)
    }

    /// Like [`ControlPlane::request`], with a body of another type: a patch has four.
    pub(crate) fn request_as(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request =
            http::Request::builder().method(method).uri(path).header("Content-Type", content_type).body(body).unwrap();
        let text = self.runtime.block_on(self.client.request_text(request))?;
        Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Like [`ControlPlane::request`], without waiting for the answer or looking at it.
    pub(crate) fn send(&self, method: &str, path: &str) {
        let request = http::Request::builder().method(method).uri(path).body(Vec::new()).unwrap();
        let client = self.client.clone();
        self.runtime.spawn(async move { drop(client.request_text(request).await) });
    }

    /// A new namespace, deleted (without waiting) when the guard goes. Its name is `name` (at most 57 characters) and a number.
    pub(crate) fn namespace(&self, name: &str) -> Namespace<'_> {
        Namespace::create(self, &format!("{name}-{}", self.namespaces.fetch_add(1, Ordering::Relaxed)))
    }

    /// A new namespace of exactly this name, with the same guard; for what carries the name of its namespace in it.
    pub(crate) fn namespace_called(&self, name: &str) -> Namespace<'_> {
        Namespace::create(self, name)
    }

    /// Waits until fewer than eight are at work in this control plane.
    pub(crate) fn slot(&self) -> Slot<'_> {
        let mut free = self.slots.free.lock().unwrap();
        while *free == 0 {
            free = self.slots.changed.wait(free).unwrap();
        }
        *free -= 1;
        Slot(&self.slots)
    }
}

struct Slots {
    free: Mutex<usize>,
    changed: Condvar,
}

/// The right to work in the control plane, given back when it goes.
pub(crate) struct Slot<'a>(&'a Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap() += 1;
        self.0.changed.notify_one();
    }
}

/// Ends the started programs and removes the directory as soon as this process is gone, be it killed: a shell that reads their process
/// ids from a pipe and acts at its end, which the kernel brings about. (PR_SET_PDEATHSIG would do, with unsafe code and on Linux alone.)
struct Warden {
    ids: Option<ChildStdin>,
    shell: Child,
}

impl Warden {
    // A program of a test that outlives it for a moment may make the directory again.
    const SCRIPT: &str = r#"trap '' INT TERM HUP; while read -r id; do ids="$ids $id"; done
        [ -z "$ids" ] || kill -KILL $ids; rm -rf -- "$1"; sleep 1; rm -rf -- "$1""#;

    fn new(directory: &Path) -> std::io::Result<Warden> {
        let mut shell = Command::new("sh")
            .args(["-c", Warden::SCRIPT, "sh"])
            .arg(directory)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0) // Ctrl-C ends the tests, and they end this one
            .spawn()?;
        Ok(Warden { ids: shell.stdin.take(), shell })
    }

    fn guard(&mut self, child: &Child) -> std::io::Result<()> {
        self.ids.as_mut().map_or(Ok(()), |ids| writeln!(ids, "{}", child.id()))
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        self.ids.take(); // the end of the pipe, which the shell waits for
        drop(self.shell.wait());
    }
}

/// The programs while they come up.
struct Starting<'a> {
    directory: &'a Path,
    programs: &'a Path,
    warden: &'a mut Warden,
    children: Vec<(&'static str, Child)>,
}

impl Starting<'_> {
    fn spawn(&mut self, name: &'static str, arguments: &[&str]) -> Result<(), String> {
        let log =
            File::create(self.directory.join(format!("{name}.log"))).map_err(|error| format!("{name}.log: {error}"))?;
        let child = Command::new(self.programs.join(name))
            .args(arguments)
            .current_dir(self.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(|error| format!("{name}.log: {error}"))?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        self.warden.guard(&child).map_err(|error| format!("{name}: {error}"))?;
        self.children.push((name, child));
        Ok(())
    }

    fn all_alive(&mut self) -> Result<(), String> {
        for (name, child) in &mut self.children {
            if let Ok(Some(status)) = child.try_wait() {
                let name = *name;
                return Err(format!("{name} ended ({status})\n{}", self.log(name)));
            }
        }
        Ok(())
    }

    fn log(&self, name: &str) -> String {
        let text = fs::read_to_string(self.directory.join(format!("{name}.log"))).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

/// Where the programs are, as `tests/control-plane/build.sh` knows it; else what it says is missing.
fn programs() -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane/build.sh");
    let output = Command::new("bash").arg(script).arg("--find").output().map_err(|error| format!("bash: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Keys, tokens, homes and the `helm` of each major.
fn layout(directory: &Path, programs: &Path) -> std::io::Result<()> {
    for folder in ["home", "tmp", "helm-3", "helm-4"] {
        fs::create_dir(directory.join(folder))?;
    }
    symlink(programs.join("helm3"), directory.join("helm-3/helm"))?;
    symlink(programs.join("helm4"), directory.join("helm-4/helm"))?;
    fs::write(directory.join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,system:masters\n"))?;
    let (private, public) = service_account_key();
    fs::write(directory.join("sa.key"), private)?;
    fs::write(directory.join("sa.pub"), public)
}

/// A fresh key, as PEM, private (PKCS 8) and public (SubjectPublicKeyInfo).
fn service_account_key() -> (String, String) {
    /// What stands before the point of a P-256 key (RFC 5480).
    const PREFIX: &[u8] = &[
        0x30, 0x59, 0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7,
        3, 0x42, 0,
    ];
    let random = SystemRandom::new();
    let private = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, private.as_ref(), &random).unwrap();
    let pem = |label: &str, bytes: &[u8]| {
        format!("-----BEGIN {label} KEY-----\n{}\n-----END {label} KEY-----\n", BASE64.encode(bytes))
    };
    (pem("PRIVATE", private.as_ref()), pem("PUBLIC", &[PREFIX, pair.public_key().as_ref()].concat()))
}

fn free_ports() -> std::io::Result<[u16; 4]> {
    let mut listeners = Vec::new();
    let mut ports = [0; 4];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

fn kubeconfig(server: &str, certificate: &[u8], namespace: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": BASE64.encode(certificate)}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user", "namespace": namespace}}],
    })
}

/// A client of a server that says it is ready.
async fn ready(kubeconfig: Value) -> Result<Client, String> {
    let kubeconfig = serde_json::from_value(kubeconfig).map_err(|error| error.to_string())?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await;
    let mut config = config.map_err(|error| error.to_string())?;
    config.proxy_url = None; // a proxy of the environment does not serve this loopback
    config.read_timeout = Some(Duration::from_secs(30));
    let client = Client::try_from(config).map_err(|error| error.to_string())?;
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| error.to_string())?;
    client.request_text(request).await.map_err(|error| format!("{error:?}"))?;
    Ok(client)
}
