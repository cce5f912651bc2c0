//! From a [`Connection`] to a service that sends requests, and from its failures to words. Knows nothing of Kubernetes' answers.
//!
//! kube's parts are put together here rather than by `kube::Client::try_from`, which leaves Nagle's algorithm on (stalls of 40 ms,
//! kube-rs/kube#2056), runs an exec plugin three times, and logs whole bodies.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioExecutor;
use kube::client::{AuthError, Body, ConfigExt as _};
use kube::config::KubeconfigError;
use tower::{BoxError, Layer as _, ServiceExt as _};

use super::client::ReadError;
use super::connect::{ConnectError, Connection, shown};

/// To open one TCP connection; the whole request has a bound of its own.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Readies connections for `connection`, running the exec plugin that the kubeconfig names. Blocks while it runs.
pub(super) fn open(connection: &Connection, parallel: usize) -> Result<kube::Client, ConnectError> {
    let config = &connection.config;
    let mut direct = HttpConnector::new();
    direct.enforce_http(false);
    direct.set_nodelay(true);
    direct.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let Some(proxy) = config.proxy_url.clone() else {
        return service(direct, config, parallel);
    };
    let tunnel_auth = proxy_login(&proxy);
    match proxy.scheme_str() {
        Some("socks5") => {
            let connector = SocksV5::new(proxy.clone(), direct);
            match proxy_user(&proxy) {
                Some((user, password)) => service(connector.with_auth(user, password), config, parallel),
                None => service(connector, config, parallel),
            }
        }
        Some("https") => {
            let secure =
                config.rustls_https_connector_with_connector(direct).map_err(|error| unusable(config, error))?;
            service(with_login(Tunnel::new(proxy, secure), tunnel_auth), config, parallel)
        }
        Some(_) | None => service(with_login(Tunnel::new(proxy, direct), tunnel_auth), config, parallel),
    }
}

fn with_login<C>(tunnel: Tunnel<C>, login: Option<HeaderValue>) -> Tunnel<C> {
    match login {
        Some(login) => tunnel.with_auth(login),
        None => tunnel,
    }
}

fn proxy_user(proxy: &Uri) -> Option<(String, String)> {
    let (login, _) = proxy.authority()?.as_str().rsplit_once('@')?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    Some((percent_decoded(user), percent_decoded(password)))
}

fn proxy_login(proxy: &Uri) -> Option<HeaderValue> {
    use base64::Engine as _;
    let (user, password) = proxy_user(proxy)?;
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    HeaderValue::try_from(format!("Basic {text}")).ok()
}

/// Text with `%XX` replaced by its byte; anything else, a broken escape too, stays as it is.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|hex| first == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        let decoded =
            hex.and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match decoded {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn service<C>(connector: C, config: &kube::Config, parallel: usize) -> Result<kube::Client, ConnectError>
where
    C: tower::Service<Uri> + Clone + Send + Sync + 'static,
    C::Response:
        hyper_util::client::legacy::connect::Connection + hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let auth = config.auth_layer().map_err(|error| unusable(config, error))?;
    let mut tls = config.clone();
    if auth.is_some() {
        tls.auth_info.exec = None; // it gave a token, so it has no certificate: do not run it again to see
    }
    let connector = tls.rustls_https_connector_with_connector(connector).map_err(|error| unusable(config, error))?;
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(parallel)
        .build::<_, Body>(connector);
    let headers =
        config.extra_headers_layer().map_err(|_| ConnectError::BadHeader("the user or group to impersonate"))?;
    let http = headers.layer(http.map_err(BoxError::from));
    let http = tower::util::option_layer(auth).layer(http);
    let http = config.base_uri_layer().layer(http);
    Ok(kube::client::ClientBuilder::new(http, config.default_namespace.clone()).build())
}

/// Why the connection cannot be made ready, without what a plugin printed on stdout: that is the token.
fn unusable(config: &kube::Config, error: kube::Error) -> ConnectError {
    let command = || config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone()).unwrap_or_default();
    let install = || config.auth_info.exec.as_ref().and_then(|exec| exec.install_hint.clone());
    match error {
        kube::Error::Auth(AuthError::AuthExecStart(error)) if error.kind() == io::ErrorKind::NotFound => {
            ConnectError::ExecMissing { command: command(), install: install() }
        }
        kube::Error::Auth(AuthError::AuthExecStart(error)) => {
            ConnectError::ExecFailed { command: command(), reason: error.to_string() }
        }
        kube::Error::Auth(error) if config.auth_info.exec.is_some() => {
            ConnectError::ExecFailed { command: command(), reason: login_failure(&error) }
        }
        kube::Error::Auth(error) => ConnectError::Login(login_failure(&error)),
        kube::Error::InferKubeconfig(KubeconfigError::LoadClientCertificate(error)) => {
            ConnectError::BadClientCertificate(error.to_string())
        }
        kube::Error::InferKubeconfig(KubeconfigError::LoadClientKey(error)) => {
            ConnectError::BadClientCertificate(format!("its key: {error}"))
        }
        kube::Error::RustlsTls(kube::client::RustlsTlsError::InvalidServerName(error)) => ConnectError::BadServerName {
            name: config.tls_server_name.clone().unwrap_or_default(),
            reason: error.to_string(),
        },
        kube::Error::RustlsTls(kube::client::RustlsTlsError::AddRootCertificate(error)) => ConnectError::BadAuthority {
            from: "of the cluster, or of this machine".to_owned(),
            reason: error.to_string(),
        },
        kube::Error::RustlsTls(error) => ConnectError::BadClientCertificate(error.to_string()),
        other => ConnectError::Login(other.to_string()),
    }
}

/// One line for a failed login. A plugin's stdout is never shown, and its stderr only when kube caught it.
fn login_failure(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("see its message above");
            format!("{}: {said}", out.status)
        }
        AuthError::AuthExecParse(_) => "its answer is not an ExecCredential".to_owned(),
        AuthError::ExecPluginFailed => "its answer holds no status".to_owned(),
        AuthError::InvalidBearerToken(_) => "the token has characters that no HTTP header may have".to_owned(),
        AuthError::InvalidBasicAuth(_) => "the user or password has characters that no HTTP header may have".to_owned(),
        other => other.to_string(),
    }
}

/// How sending a request, or reading its answer, failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Cut off by the other side; a read may be sent again.
    Cut(String),
    Final(ReadError),
}

/// What failures are explained with.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) server: String,
    pub(super) context: Option<String>,
    pub(super) proxy: Option<String>,
}

impl Place {
    pub(super) fn new(connection: &Connection) -> Self {
        Self {
            server: connection.server.clone(),
            context: connection.context.clone(),
            proxy: connection.config.proxy_url.as_ref().map(shown),
        }
    }

    fn right_one(&self) -> String {
        match (&self.proxy, &self.context) {
            (Some(_), _) => "is it the right proxy? (HTTPS_PROXY, NO_PROXY, proxy-url of the kubeconfig)".to_owned(),
            (None, Some(context)) => format!("is the cluster running, and is the context {context:?} the right one?"),
            (None, None) => "is the cluster running, and is this the right address?".to_owned(),
        }
    }

    /// Whom we speak to first.
    fn first_hop(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("proxy {proxy}"),
            None => self.server.clone(),
        }
    }

    pub(super) fn explain(&self, error: &(dyn StdError + 'static)) -> Fault {
        let causes = causes(error);
        if let Some(login) = causes.iter().find_map(|cause| cause.downcast_ref::<AuthError>()) {
            return Fault::Final(ReadError::Unauthorized(format!("no login: {}", login_failure(login))));
        }
        if let Some(tls) = causes.iter().find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
            return Fault::Final(ReadError::Unreachable(self.explain_tls(tls)));
        }
        let connecting = causes
            .iter()
            .filter_map(|cause| cause.downcast_ref::<hyper_util::client::legacy::Error>())
            .any(|error| error.is_connect());
        let kind = causes
            .iter()
            .filter_map(|cause| cause.downcast_ref::<io::Error>())
            .map(io::Error::kind)
            .find(|kind| *kind != io::ErrorKind::Other);
        let deepest = causes.last().map(ToString::to_string).unwrap_or_default();
        if !connecting {
            return Fault::Cut(format!("{} broke off its answer ({deepest})", self.server));
        }
        let unreachable = |text: String| Fault::Final(ReadError::Unreachable(text));
        match kind {
            Some(io::ErrorKind::ConnectionRefused) => {
                unreachable(format!("connection refused at {}: {}", self.first_hop(), self.right_one()))
            }
            Some(io::ErrorKind::TimedOut) => unreachable(format!(
                "no connection to {} within {}s: is the network or VPN up?",
                self.first_hop(),
                CONNECT_TIMEOUT.as_secs()
            )),
            Some(
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof,
            ) => Fault::Cut(format!("{} broke off the connection ({deepest})", self.first_hop())),
            _ if causes.iter().any(|cause| cause.to_string().starts_with("tunnel error")) => unreachable(format!(
                "{} does not lead to {} ({deepest}): {}",
                self.first_hop(),
                self.server,
                self.right_one()
            )),
            _ if causes.iter().any(|cause| cause.to_string() == "dns error") => unreachable(format!(
                "no address is known for {}: is the name right, and is the VPN up? ({deepest})",
                self.first_hop()
            )),
            _ => unreachable(format!("no connection to {}: {deepest}", self.first_hop())),
        }
    }

    fn explain_tls(&self, error: &rustls::Error) -> String {
        use rustls::{AlertDescription, CertificateError, Error};
        let server = &self.server;
        match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                format!(
                    "the certificate of {server} is signed by an unknown authority: give its CA with --certificate-authority (or, unsafe, --insecure-skip-tls-verify)"
                )
            }
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => {
                format!(
                    "the certificate of {server} is for another name: give that with --tls-server-name, or correct the server's URL"
                )
            }
            Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
                format!("the certificate of {server} has expired: renew it (or, unsafe, --insecure-skip-tls-verify)")
            }
            Error::InvalidCertificate(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) => {
                format!("the certificate of {server} is not valid yet: is the clock right?")
            }
            Error::InvalidCertificate(other) => {
                // Go accepts a self-signed CA certificate as a server's own, rustls does not (CaUsedAsEndEntity).
                let why = if format!("{other:?}").contains("CaUsedAsEndEntity") {
                    "it is a CA's certificate, not a server's".to_owned()
                } else {
                    other.to_string()
                };
                format!(
                    "the certificate of {server} is not accepted: {why}; see --certificate-authority (or, unsafe, --insecure-skip-tls-verify)"
                )
            }
            Error::InvalidMessage(_) => format!("{server} does not speak TLS: should its URL begin with http://?"),
            Error::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::UnknownCA,
            ) => {
                format!(
                    "{server} does not accept our client certificate ({error}): log in again, or see --client-certificate"
                )
            }
            other => format!("no TLS connection to {server}: {other}"),
        }
    }
}

/// The error and all it stems from, outermost first. An `io::Error` hides what it wraps from `source()`, so it is opened by hand.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> Vec<&'a (dyn StdError + 'static)> {
    const DEEPEST: usize = 32;
    let mut found: Vec<&(dyn StdError + 'static)> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next.filter(|_| found.len() < DEEPEST) {
        found.push(error);
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .map(|inner| inner as &(dyn StdError + 'static));
        next = wrapped.or_else(|| error.source());
    }
    found
}
