//! One way to ask the API server: a GET of a path. Live, recorded or replayed; nothing else in the program reads from a cluster. And one
//! way to send it something, for `patch.rs` and the dry run alone.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::BodyExt as _;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tracing::debug;

use super::bundle::{Bundle, Recorder};
use super::connect::{self, ConnectError, Connection};
use super::proxy;
use super::transport::{self, Fault, Place};
use crate::config::Target;

/// A GET: path and query as they stand after the server's address, e.g. `/api/v1/secrets?limit=500`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Get {
    pub(crate) path: String,
    /// `Accept` header, e.g. [`JSON`] or [`METADATA_LIST`].
    pub(crate) accept: &'static str,
    /// Whether to ask for gzip: saves 4x on a link, not on loopback; never for release payloads (design.md §16).
    pub(crate) compress: bool,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
pub(crate) const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Why a read gave no answer. The text is the server's own `message` where it gave one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{0}")]
    NotFound(String),
    /// 404 for the resource itself, not for one object of it: the kind, or the version, is not served.
    #[error("{0}")]
    NotServed(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    Unauthorized(String),
    /// 410: the continue token or resource version is too old; start the listing again.
    #[error("{0}")]
    Gone(String),
    /// Any other status, after the retries.
    #[error("the server answered {status}: {message}")]
    Status { status: u16, message: String },
    #[error("no answer within {0}")]
    Timeout(String),
    #[error("{0}")]
    Unreachable(String),
    /// The answer is not what was asked for, e.g. not JSON.
    #[error("{0}")]
    Malformed(String),
    /// Replay: the capture does not hold the answer.
    #[error("{0} is not in the capture: ask for the releases and the namespace that it was made of")]
    NotCaptured(String),
}

/// Sendings of one request at most: the first and its repetitions.
const TRIES: u32 = 4;
/// Before the first repetition; doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// `Retry-After` is honoured up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Of one answer, unpacked. The API server's largest pages are far below.
const LARGEST_ANSWER: u64 = 1 << 30;

/// What is sent to the server: a request with a body.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Sending {
    pub(super) method: http::Method,
    /// As in [`Get`].
    pub(super) path: String,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

/// Without the body, which may be a Secret's.
impl std::fmt::Debug for Sending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sending").field("method", &self.method).field("path", &self.path).finish_non_exhaustive()
    }
}

pub(super) const APPLY: &str = "application/apply-patch+yaml";
pub(super) const JSON_PATCH: &str = "application/json-patch+json";

enum Request<'a> {
    Read(&'a Get),
    Send(&'a Sending),
}

impl Request<'_> {
    fn path(&self) -> &str {
        match self {
            Self::Read(get) => &get.path,
            Self::Send(sending) => &sending.path,
        }
    }

    fn method(&self) -> http::Method {
        match self {
            Self::Read(_) => http::Method::GET,
            Self::Send(sending) => sending.method.clone(),
        }
    }
}

/// The way to one cluster; cheap to clone. Answers are whole bodies, already unzipped.
#[derive(Clone)]
pub(crate) struct Client {
    source: Source,
    recorder: Option<Recorder>,
}

/// Where answers come from.
#[derive(Clone)]
enum Source {
    Live(Arc<Live>),
    Replay(Arc<Bundle>),
}

/// An answer of a server, whatever it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Client {
    /// Reads the kubeconfig (or the service account's files), runs the login plugin it names, and readies connections; sends nothing yet.
    pub(crate) async fn connect(target: &Target) -> Result<Self, ConnectError> {
        let target = target.clone();
        // Files are read and plugins run: neither may hold up the runtime.
        let opened = tokio::task::spawn_blocking(move || Live::open(&target)).await;
        let live = opened.map_err(|_| ConnectError::Login("the login broke down".to_owned()))??;
        Ok(Self { source: Source::Live(Arc::new(live)), recorder: None })
    }

    /// Answers come from a capture, and no request is sent.
    pub(crate) fn replay(bundle: Bundle) -> Self {
        Self { source: Source::Replay(Arc::new(bundle)), recorder: None }
    }

    /// Every answer from now on is kept by the recorder, refusals too.
    pub(crate) fn record(self, recorder: Recorder) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    /// The server's answer to a successful read. Bounded in time, and tried again where that may help.
    pub(crate) async fn get(&self, get: &Get) -> Result<Vec<u8>, ReadError> {
        let answer = match &self.source {
            Source::Live(live) => live.ask(&Request::Read(get)).await?,
            Source::Replay(bundle) => bundle.answer(get)?,
        };
        if let Some(recorder) = &self.recorder {
            recorder.note(get, &answer).await;
        }
        answer.read(&get.path)
    }

    /// Sends what is no GET: the server's answer, whatever it stores. Tried again like a read, so it must be such that a second time
    /// does no harm: bound to a state of the object, or an apply.
    ///
    /// Not recorded: a capture holds what was read.
    pub(super) async fn send(&self, sending: &Sending) -> Result<Vec<u8>, ReadError> {
        let Source::Live(live) = &self.source else {
            return Err(ReadError::NotCaptured(format!("an answer to {}", sending.method)));
        };
        live.ask(&Request::Send(sending)).await?.read(&sending.path)
    }

    /// Name of the kubeconfig context; `None` in-cluster and with a server alone.
    pub(crate) fn context(&self) -> Option<&str> {
        match &self.source {
            Source::Live(live) => live.place.context.as_deref(),
            Source::Replay(bundle) => bundle.context(),
        }
    }

    /// The API server's URL, without credentials.
    pub(crate) fn server(&self) -> &str {
        match &self.source {
            Source::Live(live) => &live.place.server,
            Source::Replay(bundle) => bundle.server(),
        }
    }

    /// Tells this cluster from others at the same address: the server's URL and what it is trusted by.
    pub(crate) fn identity(&self) -> String {
        match &self.source {
            Source::Live(live) => format!("{} {}", live.place.server, live.trust),
            Source::Replay(bundle) => bundle.server().to_owned(),
        }
    }

    /// Of the context, or of the service account; `default` when they name none.
    pub(crate) fn default_namespace(&self) -> &str {
        match &self.source {
            Source::Live(live) => &live.default_namespace,
            Source::Replay(bundle) => bundle.namespace(),
        }
    }

    /// Whether answers come from this machine, so that gzip costs more than it saves.
    pub(crate) fn is_local(&self) -> bool {
        match &self.source {
            Source::Live(live) => live.local,
            Source::Replay(_) => true,
        }
    }

    /// Whether a server answers, now.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.source, Source::Live(_))
    }

    /// Whether digests kept on disk may stand in for answers: not while a capture is made or replayed, which must hold everything itself.
    pub(crate) fn may_cache(&self) -> bool {
        self.recorder.is_none() && self.is_live()
    }

    /// Requests sent so far, repetitions included.
    pub(crate) fn requests(&self) -> usize {
        match &self.source {
            Source::Live(live) => live.sent.load(Ordering::Relaxed),
            Source::Replay(_) => 0,
        }
    }
}

/// A connection to a real server.
struct Live {
    http: kube::Client,
    place: Place,
    trust: String,
    default_namespace: String,
    local: bool,
    /// Zero and [`Duration::MAX`]: no limit.
    timeout: Duration,
    /// Requests in flight.
    slots: Semaphore,
    sent: AtomicUsize,
}

/// What makes the server trusted, in a word or as a digest.
fn trust(config: &kube::Config) -> String {
    if config.accept_invalid_certs {
        return "unverified".to_owned();
    }
    let authorities = match (&config.root_cert, &config.root_cert_file) {
        (Some(authorities), _) => authorities.concat(),
        (None, Some(file)) => std::fs::read(file).unwrap_or_default(),
        (None, None) => return "system".to_owned(),
    };
    let digest = ring::digest::digest(&ring::digest::SHA256, &authorities);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Live {
    fn open(target: &Target) -> Result<Self, ConnectError> {
        let connection: Connection = connect::connection(target)?;
        let parallel = target.parallel.max(1);
        let http = transport::open(&connection, parallel)?;
        Ok(Self {
            http,
            place: Place::new(&connection),
            trust: trust(&connection.config),
            local: connection.config.proxy_url.is_none() && proxy::is_loopback(&connection.config.cluster_url),
            default_namespace: connection.config.default_namespace,
            timeout: target.request_timeout,
            slots: Semaphore::new(parallel),
            sent: AtomicUsize::new(0),
        })
    }

    /// Asks until there is an answer worth having: a server that is busy or just restarting is asked again, `TRIES` times in all.
    async fn ask(&self, request: &Request<'_>) -> Result<Answer, ReadError> {
        let mut wait = FIRST_WAIT;
        let mut tries = 1;
        loop {
            let reply = self.once(request).await;
            let pause = match &reply {
                Ok(Reply { answer, retry_after }) if is_passing(answer.status) => retry_after.unwrap_or(wait),
                Err(Fault::Cut(_)) => wait,
                Ok(_) | Err(Fault::Final(_)) => Duration::ZERO,
            };
            if pause.is_zero() || tries == TRIES {
                return match reply {
                    Ok(reply) => Ok(reply.answer),
                    Err(Fault::Final(error)) => Err(error),
                    Err(Fault::Cut(reason)) => Err(ReadError::Unreachable(reason)),
                };
            }
            debug!(path = request.path(), tries, pause = ?pause, "asking again");
            tokio::time::sleep(pause).await;
            wait *= 2;
            tries += 1;
        }
    }

    async fn once(&self, request: &Request<'_>) -> Result<Reply, Fault> {
        let Ok(_slot) = self.slots.acquire().await else {
            return Err(Fault::Final(ReadError::Unreachable("the client is closed".to_owned())));
        };
        self.sent.fetch_add(1, Ordering::Relaxed);
        let started = std::time::Instant::now();
        let exchange = self.exchange(request);
        let (method, path) = (request.method(), request.path());
        let reply = if self.timeout.is_zero() || self.timeout == Duration::MAX {
            exchange.await
        } else {
            // One bound for the whole exchange: a server that accepts and never answers, or stalls in the middle of its answer.
            tokio::time::timeout(self.timeout, exchange).await.unwrap_or_else(|_| Err(Fault::Final(self.timed_out())))
        };
        let elapsed = started.elapsed();
        match &reply {
            Ok(reply) => {
                debug!(path, status = reply.answer.status, bytes = reply.answer.body.len(), ?elapsed, "{method}")
            }
            Err(fault) => debug!(path, ?fault, ?elapsed, "{method} failed"),
        }
        reply
    }

    fn timed_out(&self) -> ReadError {
        let limit = jiff::SignedDuration::try_from(self.timeout)
            .map_or_else(|_| format!("{:?}", self.timeout), |limit| format!("{limit:#}"));
        ReadError::Timeout(format!("{limit} from {}: is it overloaded? (see --request-timeout)", self.place.server))
    }

    async fn exchange(&self, request: &Request<'_>) -> Result<Reply, Fault> {
        let path = request.path();
        let builder = http::Request::builder().method(request.method()).uri(path);
        let (builder, body) = match request {
            Request::Read(get) => {
                let builder = builder.header(http::header::ACCEPT, get.accept);
                let packed = get.compress.then_some("gzip");
                let builder = packed
                    .into_iter()
                    .fold(builder, |builder, gzip| builder.header(http::header::ACCEPT_ENCODING, gzip));
                (builder, kube::client::Body::empty())
            }
            Request::Send(sending) => {
                let builder =
                    builder.header(http::header::ACCEPT, JSON).header(http::header::CONTENT_TYPE, sending.content_type);
                (builder, sending.body.clone().into())
            }
        };
        let request = builder.body(body).map_err(|error| malformed(path, &error))?;
        let answer = self.http.send(request).await.map_err(|error| self.place.explain(&error))?;
        let (parts, body) = answer.into_parts();
        let status = parts.status.as_u16();
        let header = |name| {
            parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase()
        };
        let packed = header(http::header::CONTENT_ENCODING) == "gzip";
        let page = header(http::header::CONTENT_TYPE).starts_with("text/html");
        let retry_after = header(http::header::RETRY_AFTER)
            .parse()
            .ok()
            .map(|seconds| Duration::from_secs(seconds).clamp(FIRST_WAIT, LONGEST_WAIT));
        let body = self.body(body).await?;
        let body = if packed { unzip(&body).map_err(|error| malformed(path, &error))? } else { body };
        if page && status < 400 {
            return Err(Fault::Final(ReadError::Malformed(format!(
                "{} answers with a web page: is it an API server?",
                self.place.server
            ))));
        }
        Ok(Reply { answer: Answer { status, body }, retry_after })
    }

    async fn body(&self, mut body: kube::client::Body) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.place.explain(&error))?;
            if let Ok(data) = frame.into_data() {
                bytes.extend_from_slice(&data);
            }
            if bytes.len() as u64 > LARGEST_ANSWER {
                return Err(Fault::Final(ReadError::Malformed(format!(
                    "{} sends more than {LARGEST_ANSWER} bytes",
                    self.place.server
                ))));
            }
        }
        Ok(bytes)
    }
}

struct Reply {
    answer: Answer,
    retry_after: Option<Duration>,
}

fn malformed(path: &str, error: &dyn std::fmt::Display) -> Fault {
    Fault::Final(ReadError::Malformed(format!("{path}: {error}")))
}

/// Statuses that may be another the next time: overload, restart, an etcd leader being elected.
fn is_passing(status: u16) -> bool {
    matches!(status, 429 | 500 | 502 | 503 | 504)
}

fn unzip(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(packed.len().saturating_mul(4));
    flate2::read::MultiGzDecoder::new(packed).take(LARGEST_ANSWER).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the API server says of a failure (`metav1.Status`).
#[derive(Deserialize)]
struct Status {
    kind: Option<String>,
    message: Option<String>,
}

impl Answer {
    /// The body of a success, or the reason for there being none.
    pub(super) fn read(self, path: &str) -> Result<Vec<u8>, ReadError> {
        let status = self.status;
        if (200..300).contains(&status) {
            return Ok(self.body);
        }
        let said: Option<Status> = serde_json::from_slice(&self.body).ok();
        let by_kubernetes = said.as_ref().is_some_and(|status| status.kind.as_deref() == Some("Status"));
        let message = said
            .and_then(|status| status.message)
            .filter(|text| !text.trim().is_empty())
            .unwrap_or_else(|| first_line(&self.body));
        Err(match status {
            401 => ReadError::Unauthorized(format!(
                "the server does not accept this login ({}): it is wrong or has expired; log in again, or see --token and --context",
                if message.is_empty() { "401" } else { &message }
            )),
            403 => ReadError::Forbidden(message),
            // Only an API server's own word that a thing is not there counts: any web server may say 404.
            404 if by_kubernetes && message == "the server could not find the requested resource" => {
                ReadError::NotServed(format!("the server does not serve {}", path.split('?').next().unwrap_or(path)))
            }
            404 if by_kubernetes => ReadError::NotFound(message),
            404 if message == "404 page not found" => {
                ReadError::NotServed(format!("the server does not serve {}", path.split('?').next().unwrap_or(path)))
            }
            410 => ReadError::Gone(message),
            400 if message.contains("HTTP request to an HTTPS server") => {
                ReadError::Unreachable("the server speaks TLS: its URL must begin with https://".to_owned())
            }
            status => ReadError::Status {
                status,
                message: if message.is_empty() { "no reason given".to_owned() } else { message },
            },
        })
    }
}

/// For answers that are not Kubernetes': one short line.
fn first_line(body: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(body.get(..body.len().min(4 * SHOWN)).unwrap_or_default());
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;

    use super::*;

    /// What the server of a test does with the next request.
    enum Turn {
        /// The bytes, then the connection stays open for the next request.
        Say(Vec<u8>),
        /// The bytes, then the connection ends.
        SayAndClose(Vec<u8>),
        /// The bytes, then nothing ever again.
        SayAndStall(Vec<u8>),
        /// The bytes, once told to.
        SayWhen(Arc<Notify>, Vec<u8>),
    }

    fn says(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let mut bytes = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
        bytes.extend_from_slice(body);
        bytes
    }

    /// Serves the turns in order, whatever the connection; gives the target that leads there and the log of requests.
    async fn server(turns: Vec<Turn>) -> (Target, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let turns = Arc::new(Mutex::new(VecDeque::from(turns)));
        let requests = log.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (turns, requests) = (turns.clone(), requests.clone());
                tokio::spawn(async move {
                    let mut buffer = vec![0; 16 << 10];
                    loop {
                        let read = stream.read(&mut buffer).await.unwrap_or(0);
                        if read == 0 {
                            return;
                        }
                        requests.lock().unwrap().push(String::from_utf8_lossy(&buffer[..read]).into_owned());
                        let turn = turns.lock().unwrap().pop_front().expect("one request too many");
                        match turn {
                            Turn::Say(bytes) => stream.write_all(&bytes).await.unwrap(),
                            Turn::SayAndClose(bytes) => {
                                stream.write_all(&bytes).await.unwrap();
                                return;
                            }
                            Turn::SayWhen(gate, bytes) => {
                                gate.notified().await;
                                stream.write_all(&bytes).await.unwrap();
                            }
                            Turn::SayAndStall(bytes) => {
                                stream.write_all(&bytes).await.unwrap();
                                std::future::pending::<()>().await;
                            }
                        }
                    }
                });
            }
        });
        let target = Target {
            server: Some(format!("http://{address}")),
            request_timeout: Duration::from_secs(10),
            parallel: 4,
            ..Target::default()
        };
        (target, log)
    }

    fn get(path: &str) -> Get {
        Get { path: path.to_owned(), accept: JSON, compress: false }
    }

    async fn asked(turns: Vec<Turn>) -> (Result<Vec<u8>, ReadError>, Vec<String>) {
        let (target, log) = server(turns).await;
        let client = Client::connect(&target).await.unwrap();
        let answer = client.get(&get("/api/v1/pods?limit=1")).await;
        let log = log.lock().unwrap().clone();
        assert_eq!(client.requests(), log.len());
        (answer, log)
    }

    #[tokio::test]
    async fn a_request_says_what_it_accepts_and_asks_for_gzip_only_when_told() {
        let packed = {
            use std::io::Write as _;
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(b"{\"zipped\":true}").unwrap();
            gz.finish().unwrap()
        };
        let turns = vec![
            Turn::Say(says("200 OK", "", b"{}")),
            Turn::Say(says("200 OK", "Content-Encoding: gzip\r\n", &packed)),
        ];
        let (target, log) = server(turns).await;
        let client = Client::connect(&Target {
            token: Some("t0ken".into()),
            as_user: Some("jane".into()),
            as_groups: vec!["a".into(), "b".into()],
            ..target
        })
        .await
        .unwrap();
        assert_eq!(client.get(&get("/api/v1/pods?limit=1")).await.unwrap(), b"{}");
        assert_eq!(client.get(&Get { compress: true, ..get("/version") }).await.unwrap(), b"{\"zipped\":true}");
        let log = log.lock().unwrap();
        assert!(log[0].starts_with("GET /api/v1/pods?limit=1 HTTP/1.1\r\n"), "{}", log[0]);
        for header in [
            "accept: application/json\r\n",
            "authorization: Bearer t0ken\r\n",
            "impersonate-user: jane\r\n",
            "impersonate-group: a\r\n",
            "impersonate-group: b\r\n",
        ] {
            assert!(log[0].contains(header), "{header} in {}", log[0]);
        }
        assert!(!log[0].contains("accept-encoding"));
        assert!(log[1].contains("accept-encoding: gzip\r\n"));
        assert!(client.is_local());
        assert_eq!((client.context(), client.default_namespace()), (None, "default"));
    }

    #[tokio::test]
    async fn a_busy_or_cut_off_server_is_asked_again() {
        let ok = || Turn::Say(says("200 OK", "", b"{}"));
        for first in [
            Turn::Say(says("429 Too Many Requests", "Retry-After: 0\r\n", b"")),
            Turn::Say(says("500 Internal Server Error", "", b"")),
            Turn::Say(says("503 Service Unavailable", "", b"")),
            Turn::SayAndClose(Vec::new()),
            Turn::SayAndClose(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half".to_vec()),
        ] {
            let (answer, log) = asked(vec![first, ok()]).await;
            assert_eq!(answer.unwrap(), b"{}");
            assert_eq!(log.len(), 2);
        }
    }

    #[tokio::test]
    async fn patience_ends_after_four_tries() {
        let busy = || {
            Turn::Say(says(
                "503 Service Unavailable",
                "",
                b"{\"kind\":\"Status\",\"message\":\"the server is currently unable\"}",
            ))
        };
        let (answer, log) = asked((0..4).map(|_| busy()).collect()).await;
        assert_eq!(answer.unwrap_err().to_string(), "the server answered 503: the server is currently unable");
        assert_eq!(log.len(), 4);
        let (answer, log) = asked((0..4).map(|_| Turn::SayAndClose(Vec::new())).collect()).await;
        let error = answer.unwrap_err().to_string();
        assert!(error.starts_with("http://127.0.0.1:") && error.contains(" broke off its answer ("), "{error}");
        assert_eq!(log.len(), 4);
    }

    #[tokio::test]
    async fn a_server_that_stops_answering_is_given_up() {
        for stalled in [
            Turn::SayAndStall(Vec::new()),
            Turn::SayAndStall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half".to_vec()),
        ] {
            let (target, log) = server(vec![stalled]).await;
            let client =
                Client::connect(&Target { request_timeout: Duration::from_millis(150), ..target }).await.unwrap();
            let error = client.get(&get("/version")).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("no answer within 150ms from {}: is it overloaded? (see --request-timeout)", client.server())
            );
            assert!(matches!(error, ReadError::Timeout(_)));
            assert!(log.lock().unwrap().len() <= 1, "a server that is overloaded is not asked again");
            assert_eq!(client.requests(), 1);
        }
    }

    #[tokio::test]
    async fn refusals_are_told_apart() {
        let status = |code: &str, message: &str| {
            Turn::Say(says(
                code,
                "Content-Type: application/json\r\n",
                format!("{{\"kind\":\"Status\",\"message\":\"{message}\"}}").as_bytes(),
            ))
        };
        let table = [
            (status("403 Forbidden", "secrets is forbidden"), ReadError::Forbidden("secrets is forbidden".into())),
            (status("404 Not Found", "pods x not found"), ReadError::NotFound("pods x not found".into())),
            (Turn::Say(says("404 Not Found", "", b"404 page not found\n")), ReadError::NotServed("the server does not serve /api/v1/pods".into())),
            (
                Turn::Say(says("404 Not Found", "Content-Type: text/html\r\n", b"<html>\n nothing here")),
                ReadError::Status { status: 404, message: "<html>".into() },
            ),
            (status("410 Gone", "too old"), ReadError::Gone("too old".into())),
            (status("405 Method Not Allowed", "no"), ReadError::Status { status: 405, message: "no".into() }),
            (Turn::Say(says("418 Teapot", "", b"")), ReadError::Status { status: 418, message: "no reason given".into() }),
            (
                status("401 Unauthorized", "Unauthorized"),
                ReadError::Unauthorized(
                    "the server does not accept this login (Unauthorized): it is wrong or has expired; log in again, or see --token and --context".into(),
                ),
            ),
            (
                Turn::Say(says("400 Bad Request", "", b"Client sent an HTTP request to an HTTPS server.\n")),
                ReadError::Unreachable("the server speaks TLS: its URL must begin with https://".into()),
            ),
        ];
        for (turn, expected) in table {
            assert_eq!(asked(vec![turn]).await.0.unwrap_err(), expected);
        }
        let (answer, _) =
            asked(vec![Turn::Say(says("200 OK", "Content-Type: text/html; charset=utf-8\r\n", b"<html>log in"))]).await;
        let error = answer.unwrap_err().to_string();
        assert!(error.ends_with("answers with a web page: is it an API server?"), "{error}");
    }

    #[tokio::test]
    async fn an_absent_server_is_named_with_the_remedy() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let target = Target {
            server: Some(format!("https://{free}")),
            request_timeout: Duration::from_secs(10),
            parallel: 1,
            ..Target::default()
        };
        let client = Client::connect(&target).await.unwrap();
        let error = client.get(&get("/version")).await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!("connection refused at https://{free}: is the cluster running, and is this the right address?")
        );
        assert_eq!(client.requests(), 1);
    }

    #[tokio::test]
    async fn tls_to_a_server_without_it_is_explained() {
        let (target, _) =
            server(vec![Turn::SayAndClose(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec())]).await;
        let address = target.server.clone().unwrap().replace("http://", "https://");
        let client = Client::connect(&Target { server: Some(address.clone()), ..target }).await.unwrap();
        let error = client.get(&get("/version")).await.unwrap_err().to_string();
        assert_eq!(error, format!("{address} does not speak TLS: should its URL begin with http://?"));
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_is_named_without_its_password() {
        let refusal = Turn::SayAndClose(b"HTTP/1.1 403 Forbidden\r\n\r\n".to_vec());
        let (target, log) = server(vec![refusal]).await;
        let proxy = target.server.clone().unwrap();
        let through = Target {
            server: Some("https://api.example.com:6443".into()),
            https_proxy: Some(proxy.replace("http://", "http://jane:s3cret%40@")),
            no_proxy: vec!["example.org".into(), String::new()],
            ..target
        };
        let client = Client::connect(&through).await.unwrap();
        let error = client.get(&get("/version")).await.unwrap_err().to_string();
        let expected = format!(
            "proxy {proxy} does not lead to https://api.example.com:6443 (tunnel error: unsuccessful): is it the right proxy? (HTTPS_PROXY, NO_PROXY, proxy-url of the kubeconfig)"
        );
        assert_eq!(error, expected);
        let log = log.lock().unwrap();
        assert!(log[0].starts_with("CONNECT api.example.com:6443 HTTP/1.1\r\n"), "{}", log[0]);
        assert!(log[0].contains("Proxy-Authorization: Basic amFuZTpzM2NyZXRA\r\n"), "{}", log[0]);
        assert!(!client.is_local());
    }

    #[tokio::test]
    async fn requests_in_flight_are_bounded() {
        let gate = Arc::new(Notify::new());
        let (target, log) =
            server((0..3).map(|_| Turn::SayWhen(gate.clone(), says("200 OK", "", b"{}"))).collect()).await;
        let client = Client::connect(&Target { parallel: 2, ..target }).await.unwrap();
        let requests: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.get(&get("/version")).await })
            })
            .collect();
        let sent = || log.lock().unwrap().len();
        for expected in [2, 3] {
            while sent() < expected {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(sent(), expected);
            gate.notify_one();
        }
        gate.notify_one();
        for request in requests {
            assert_eq!(request.await.unwrap().unwrap(), b"{}");
        }
    }
}
