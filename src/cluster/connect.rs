//! From a [`Target`] to a connection: kubeconfig files, the pod's service account, what flags override, proxy. Knows nothing of what is asked.
//!
//! Precedence and merging are kubectl's (client-go `tools/clientcmd`): flags, then the kubeconfig, then the service account.
//! kube's own loader is not used past the parsing of a file: it reads `HTTPS_PROXY` and `NO_PROXY` itself, and matches the latter
//! against the proxy instead of the server.

use std::path::{Path, PathBuf};

use http::Uri;
use kube::config::{AuthInfo, Cluster, InClusterError, Kubeconfig, KubeconfigError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::proxy;
use crate::config::Target;

/// Why there is no way to the cluster. Each names the thing, the reason and the remedy; none holds a credential.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(
        "no kubeconfig, and not in a cluster: name a kubeconfig with --kubeconfig or KUBECONFIG, or a server with --server"
    )]
    NoCluster,
    #[error("kubeconfig {0} does not exist: see --kubeconfig and KUBECONFIG")]
    KubeconfigMissing(String),
    #[error("kubeconfig {file} cannot be read: {reason}")]
    KubeconfigUnreadable { file: String, reason: String },
    #[error("kubeconfig {file} is not valid: {reason}")]
    KubeconfigInvalid { file: String, reason: String },
    #[error("kubeconfig {file} does not go with the files before it: {reason}")]
    KubeconfigMismatch { file: String, reason: String },
    #[error("no context is current in the kubeconfig: choose one with --context{}", listed(.0))]
    NoCurrentContext(Vec<String>),
    #[error("no context {name:?} in the kubeconfig{}", listed(.known))]
    UnknownContext { name: String, known: Vec<String> },
    #[error(
        "context {context:?} names the cluster {cluster:?}, which the kubeconfig does not have: correct the context, or name a server with --server"
    )]
    UnknownCluster { context: String, cluster: String },
    #[error(
        "context {context:?} names the user {user:?}, which the kubeconfig does not have: correct the context, or give a --token"
    )]
    UnknownUser { context: String, user: String },
    #[error("cluster {0:?} of the kubeconfig has no server: add its URL, or name one with --server")]
    NoServer(String),
    #[error("{server:?} is not the URL of a server: {reason}")]
    BadServer { server: String, reason: String },
    #[error("the certificate authority ({from}) is of no use: {reason}; see --certificate-authority")]
    BadAuthority { from: String, reason: String },
    #[error("the client certificate is of no use: {0}; see --client-certificate and --client-key")]
    BadClientCertificate(String),
    #[error("the TLS server name {name:?} is not valid: {reason}; see --tls-server-name")]
    BadServerName { name: String, reason: String },
    #[error("the token file {file} cannot be read: {reason}")]
    TokenFile { file: String, reason: String },
    #[error("--as-group needs --as: groups are impersonated together with a user")]
    GroupsWithoutUser,
    #[error("{0} has characters that no HTTP header may have")]
    BadHeader(&'static str),
    #[error("the proxy of {from} is of no use: {reason}")]
    BadProxy { from: &'static str, reason: String },
    #[error("the kubeconfig logs in with {command:?}, which is not installed{}", hint(.install))]
    ExecMissing { command: String, install: Option<String> },
    #[error("{command:?}, with which the kubeconfig logs in, failed: {reason}")]
    ExecFailed { command: String, reason: String },
    #[error("no login: {0}")]
    Login(String),
    #[error("the pod's service account cannot be used: {0}")]
    ServiceAccount(String),
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 10;
    match names {
        [] => "; it has none".to_owned(),
        names if names.len() > SHOWN => {
            format!(
                "; it has {}, … ({} more)",
                names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", "),
                names.len() - SHOWN
            )
        }
        names => format!("; it has {}", names.join(", ")),
    }
}

/// An `installHint` is several lines as a rule; kubectl prints it, kube does not.
fn hint(install: &Option<String>) -> String {
    match install {
        Some(text) if !text.trim().is_empty() => format!(": {}", text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Some(_) | None => ": install it, or use a context that logs in another way".to_owned(),
    }
}

/// Everything that decides how a request is sent.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) config: kube::Config,
    pub(super) context: Option<String>,
    /// For messages and reports: the server's URL without credentials or a final slash.
    pub(super) server: String,
}

/// Settles what `target` leaves to files. Sends nothing and runs no plugin.
pub(super) fn connection(target: &Target) -> Result<Connection, ConnectError> {
    let (mut config, context, proxy_url) = match chosen(target)? {
        Chosen::Kubeconfig(context) => from_context(target, context)?,
        Chosen::Server(server) => (kube::Config::new(server_url(server)?), None, None),
        Chosen::Pod => (pod_config()?, None, None),
    };
    override_cluster(&mut config, target)?;
    override_user(&mut config, target)?;
    settle_token_file(&mut config.auth_info)?;
    config.proxy_url =
        proxy::choose(&config.cluster_url, proxy_url.as_deref(), target.https_proxy.as_deref(), &target.no_proxy)?;
    config.default_retry = false; // 15 times, up to minutes, and not on a cut connection: client.rs has its own
    config.disable_compression = true; // client.rs unzips, per request
    let server = shown(&config.cluster_url);
    Ok(Connection { config, context, server })
}

/// Where the cluster's address comes from.
enum Chosen<'a> {
    Kubeconfig(Box<Context>),
    /// `--server` without any context, as kubectl and helm allow.
    Server(&'a str),
    Pod,
}

struct Context {
    name: String,
    namespace: Option<String>,
    cluster: Cluster,
    cluster_name: String,
    user: AuthInfo,
}

fn chosen(target: &Target) -> Result<Chosen<'_>, ConnectError> {
    let merged = read_kubeconfig(target)?;
    let name = named(target.context.clone()).or_else(|| named(merged.current_context.clone()));
    if let Some(name) = name {
        return Ok(Chosen::Kubeconfig(Box::new(context(&merged, name, target)?)));
    }
    if let Some(server) = &target.server {
        return Ok(Chosen::Server(server));
    }
    if !merged.contexts.is_empty() || target.kubeconfig_named {
        return Err(ConnectError::NoCurrentContext(context_names(&merged)));
    }
    Ok(Chosen::Pod)
}

/// The files of `target` as one. A file of a list may be absent, all of them only when nobody named them.
fn read_kubeconfig(target: &Target) -> Result<Kubeconfig, ConnectError> {
    let mut merged = Kubeconfig::default();
    let mut missing = Vec::new();
    for file in &target.kubeconfig {
        let shown = file.display().to_string();
        match Kubeconfig::read_from(file) {
            Ok(one) => {
                merged = merged
                    .merge(one)
                    .map_err(|error| ConnectError::KubeconfigMismatch { file: shown, reason: error.to_string() })?
            }
            Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == std::io::ErrorKind::NotFound => {
                missing.push(shown)
            }
            Err(KubeconfigError::ReadConfig(error, _)) => {
                return Err(ConnectError::KubeconfigUnreadable { file: shown, reason: plain_io(&error) });
            }
            Err(KubeconfigError::Parse(error)) => {
                return Err(ConnectError::KubeconfigInvalid {
                    file: shown,
                    reason: without_values(&error.without_snippet().to_string()),
                });
            }
            Err(error) => {
                return Err(ConnectError::KubeconfigInvalid {
                    file: shown,
                    reason: without_values(&error.to_string()),
                });
            }
        }
    }
    if target.kubeconfig_named && !target.kubeconfig.is_empty() && missing.len() == target.kubeconfig.len() {
        return Err(ConnectError::KubeconfigMissing(missing.join(", ")));
    }
    Ok(merged)
}

/// A parser's message may quote what it stumbled over, which may be a token: quoted parts longer than a keyword are dropped.
fn without_values(message: &str) -> String {
    const KEYWORD: usize = 24;
    let first = message.lines().next().unwrap_or_default();
    let mut kept = String::new();
    for (index, part) in first.split(['"', '`']).enumerate() {
        let quoted = index % 2 == 1;
        if quoted {
            let is_key = part.len() <= KEYWORD && part.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
            let follows_key = kept.trim_end().ends_with("field") || kept.trim_end().ends_with("key");
            kept.push_str(if is_key && follows_key { part } else { "…" });
        } else {
            kept.push_str(part);
        }
    }
    kept
}

fn plain_io(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// The empty text counts as absent everywhere in a kubeconfig.
fn named(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// The contexts that `--context` may name, sorted.
pub(crate) fn contexts(target: &Target) -> Result<Vec<String>, ConnectError> {
    read_kubeconfig(target).map(|kubeconfig| context_names(&kubeconfig))
}

fn context_names(kubeconfig: &Kubeconfig) -> Vec<String> {
    let mut names: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    names.sort();
    names
}

fn context(kubeconfig: &Kubeconfig, name: String, target: &Target) -> Result<Context, ConnectError> {
    let Some(context) = kubeconfig.contexts.iter().find(|one| one.name == name).and_then(|one| one.context.clone())
    else {
        return Err(ConnectError::UnknownContext { name, known: context_names(kubeconfig) });
    };
    let cluster =
        kubeconfig.clusters.iter().find(|one| one.name == context.cluster).and_then(|one| one.cluster.clone());
    let cluster = match cluster {
        Some(cluster) => cluster,
        None if target.server.is_some() => Cluster::default(),
        None => return Err(ConnectError::UnknownCluster { context: name, cluster: context.cluster }),
    };
    let user = match named(context.user) {
        None => AuthInfo::default(),
        Some(user) => match kubeconfig.auth_infos.iter().find(|one| one.name == user) {
            Some(found) => found.auth_info.clone().unwrap_or_default(),
            None if target.token.is_some() => AuthInfo::default(),
            None => return Err(ConnectError::UnknownUser { context: name, user }),
        },
    };
    Ok(Context { name, namespace: named(context.namespace), cluster, cluster_name: context.cluster, user })
}

type Base = (kube::Config, Option<String>, Option<String>);

fn from_context(target: &Target, context: Box<Context>) -> Result<Base, ConnectError> {
    let Context { name, namespace, cluster, cluster_name, mut user } = *context;
    let server =
        target.server.clone().or_else(|| named(cluster.server.clone())).ok_or(ConnectError::NoServer(cluster_name))?;
    let mut config = kube::Config::new(server_url(&server)?);
    config.default_namespace = namespace.unwrap_or(config.default_namespace);
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.tls_server_name = named(cluster.tls_server_name.clone());
    let overridden = target.insecure_skip_tls_verify || target.certificate_authority.is_some();
    if !overridden && !config.accept_invalid_certs {
        config.root_cert = kubeconfig_authority(&cluster)?;
    }
    for text in [
        &mut user.client_certificate,
        &mut user.client_certificate_data,
        &mut user.client_key,
        &mut user.token_file,
        &mut user.impersonate,
    ] {
        *text = named(text.take());
    }
    if let Some(exec) = &mut user.exec
        && exec.provide_cluster_info
    {
        exec.cluster = (&cluster).try_into().ok();
    }
    config.auth_info = user;
    Ok((config, Some(name), named(cluster.proxy_url)))
}

fn kubeconfig_authority(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>, ConnectError> {
    use base64::Engine as _;
    if let Some(data) = named(cluster.certificate_authority_data.clone()) {
        let from = "certificate-authority-data of the kubeconfig".to_owned();
        let packed: String = data.split_whitespace().collect();
        let pem = base64::engine::general_purpose::STANDARD
            .decode(packed)
            .map_err(|error| ConnectError::BadAuthority { from: from.clone(), reason: error.to_string() })?;
        return certificates(&pem, from).map(Some);
    }
    named(cluster.certificate_authority.clone()).map(|file| authority_file(Path::new(&file))).transpose()
}

fn authority_file(file: &Path) -> Result<Vec<Vec<u8>>, ConnectError> {
    let from = file.display().to_string();
    let pem = std::fs::read(file)
        .map_err(|error| ConnectError::BadAuthority { from: from.clone(), reason: plain_io(&error) })?;
    certificates(&pem, from)
}

/// DER of each certificate in a PEM text; none at all is an error, as it would trust nobody.
fn certificates(pem: &[u8], from: String) -> Result<Vec<Vec<u8>>, ConnectError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).map(|one| one.map(|der| der.to_vec())).collect();
    match found {
        Ok(ders) if ders.is_empty() => {
            Err(ConnectError::BadAuthority { from, reason: "it holds no PEM certificate".to_owned() })
        }
        Ok(ders) => Ok(ders),
        Err(error) => Err(ConnectError::BadAuthority { from, reason: format!("{error:?}") }),
    }
}

fn pod_config() -> Result<kube::Config, ConnectError> {
    kube::Config::incluster().map_err(|error| match error {
        InClusterError::ReadEnvironmentVariable(_) => ConnectError::NoCluster,
        InClusterError::ReadDefaultNamespace(error) | InClusterError::ReadCertificateBundle(error)
            if error.kind() == std::io::ErrorKind::NotFound =>
        {
            ConnectError::ServiceAccount("its files are not mounted (automountServiceAccountToken)".to_owned())
        }
        other => ConnectError::ServiceAccount(other.to_string()),
    })
}

/// What `--server`, the CA and the TLS flags say instead (client-go `client_config.go`, `getCluster`).
fn override_cluster(config: &mut kube::Config, target: &Target) -> Result<(), ConnectError> {
    if let Some(server) = &target.server {
        config.cluster_url = server_url(server)?;
    }
    if target.insecure_skip_tls_verify || target.certificate_authority.is_some() {
        config.accept_invalid_certs = target.insecure_skip_tls_verify;
        config.root_cert_file = None;
        config.root_cert = match &target.certificate_authority {
            Some(file) if !target.insecure_skip_tls_verify => Some(authority_file(file)?),
            Some(_) | None => None,
        };
    }
    // A server named by hand is not the one that the kubeconfig's TLS name is for.
    if target.tls_server_name.is_some() || target.server.is_some() {
        config.tls_server_name.clone_from(&target.tls_server_name);
    }
    Ok(())
}

/// What the flags say about who asks. A token given by hand stands alone: a client certificate beside it would win at the server.
fn override_user(config: &mut kube::Config, target: &Target) -> Result<(), ConnectError> {
    let path = |file: &PathBuf| file.display().to_string();
    if let Some(token) = &target.token {
        let AuthInfo { impersonate, impersonate_uid, impersonate_groups, impersonate_user_extra, .. } =
            std::mem::take(&mut config.auth_info);
        config.auth_info = AuthInfo {
            impersonate,
            impersonate_uid,
            impersonate_groups,
            impersonate_user_extra,
            ..AuthInfo::default()
        };
        config.auth_info.token = Some(token.clone().into());
    }
    let user = &mut config.auth_info;
    if let Some(file) = &target.client_certificate {
        user.client_certificate = Some(path(file));
        user.client_certificate_data = None;
    }
    if let Some(file) = &target.client_key {
        user.client_key = Some(path(file));
        user.client_key_data = None;
    }
    if target.as_user.is_some() {
        user.impersonate.clone_from(&target.as_user);
    }
    if !target.as_groups.is_empty() {
        user.impersonate_groups = Some(target.as_groups.clone());
    }
    if user.impersonate.is_none() && user.impersonate_groups.as_ref().is_some_and(|groups| !groups.is_empty()) {
        return Err(ConnectError::GroupsWithoutUser);
    }
    Ok(())
}

/// A token file wins over a token beside it, and its final newline is no part of the token: client-go does so, kube does neither.
fn settle_token_file(user: &mut AuthInfo) -> Result<(), ConnectError> {
    let Some(file) = user.token_file.clone() else { return Ok(()) };
    let text =
        std::fs::read_to_string(&file).map_err(|error| ConnectError::TokenFile { file, reason: plain_io(&error) })?;
    let token = text.trim();
    user.token = None;
    if token.len() != text.len() {
        user.token = Some(token.to_owned().into());
        user.token_file = None;
    }
    Ok(())
}

/// The URL of a server as kubectl reads it: `http` where no scheme is given.
fn server_url(server: &str) -> Result<Uri, ConnectError> {
    let bad = |reason: &str| ConnectError::BadServer { server: without_credentials(server), reason: reason.to_owned() };
    let text = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
    let url: Uri = text.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
    match url.scheme_str() {
        Some("https" | "http") => {}
        Some(_) | None => return Err(bad("it must begin with https://")),
    }
    if url.host().is_none_or(str::is_empty) {
        return Err(bad("it names no host"));
    }
    if url.query().is_some() {
        return Err(bad("it has a query"));
    }
    Ok(url)
}

fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

/// A URL for messages: without credentials and without a final slash.
pub(super) fn shown(url: &Uri) -> String {
    without_credentials(url.to_string().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own for one test's files, removed at the end.
    struct Files(PathBuf);

    impl Files {
        fn new(name: &str) -> Self {
            let directory = std::env::temp_dir().join(format!("helm-drift-connect-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&directory).unwrap();
            Self(directory)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let file = self.0.join(name);
            std::fs::write(&file, text).unwrap();
            file
        }
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const TWO: &str = "
apiVersion: v1
kind: Config
current-context: prod
contexts:
- {name: prod, context: {cluster: prod, user: jane, namespace: shop}}
- {name: lab, context: {cluster: lab, user: jane}}
- {name: no-cluster, context: {cluster: gone, user: jane}}
- {name: no-user, context: {cluster: prod, user: gone}}
- {name: no-server, context: {cluster: empty, user: jane}}
clusters:
- {name: prod, cluster: {server: 'https://prod.example.com:6443/', tls-server-name: inner, proxy-url: 'http://u:p@proxy:3128'}}
- {name: lab, cluster: {server: 'https://127.0.0.1:6443', insecure-skip-tls-verify: true}}
- {name: empty, cluster: {}}
users:
- {name: jane, user: {token: s3cret, client-certificate-data: '', as: someone}}
";

    fn target(file: PathBuf) -> Target {
        Target { kubeconfig: vec![file], kubeconfig_named: true, ..Target::default() }
    }

    fn failure(target: &Target) -> String {
        connection(target).unwrap_err().to_string()
    }

    #[test]
    fn the_current_context_leads_to_its_cluster() {
        let files = Files::new("current");
        let found = connection(&target(files.write("config", TWO))).unwrap();
        assert_eq!((found.context.as_deref(), found.server.as_str()), (Some("prod"), "https://prod.example.com:6443"));
        assert_eq!(found.config.default_namespace, "shop");
        assert_eq!(found.config.tls_server_name.as_deref(), Some("inner"));
        assert_eq!(found.config.proxy_url.as_ref().map(shown).as_deref(), Some("http://proxy:3128"));
        assert_eq!(found.config.auth_info.impersonate.as_deref(), Some("someone"));
        assert!(!found.config.default_retry && found.config.disable_compression);
        let lab = connection(&Target { context: Some("lab".into()), ..target(files.write("config", TWO)) }).unwrap();
        assert!(lab.config.accept_invalid_certs && lab.config.proxy_url.is_none());
        assert_eq!(lab.config.default_namespace, "default");
    }

    #[test]
    fn flags_override_the_kubeconfig() {
        let files = Files::new("flags");
        let given = Target {
            server: Some("https://other:1".into()),
            token: Some("by-hand".into()),
            as_user: Some("jane".into()),
            as_groups: vec!["dev".into()],
            insecure_skip_tls_verify: true,
            ..target(files.write("config", TWO))
        };
        let found = connection(&given).unwrap();
        assert_eq!((found.context.as_deref(), found.server.as_str()), (Some("prod"), "https://other:1"));
        assert_eq!(found.config.tls_server_name, None, "the kubeconfig's name is for the kubeconfig's server");
        assert!(found.config.accept_invalid_certs);
        let user = &found.config.auth_info;
        assert_eq!(
            (user.impersonate.as_deref(), user.impersonate_groups.as_deref()),
            (Some("jane"), Some(&["dev".to_owned()][..]))
        );
        assert_eq!(serde_json::to_value(user).unwrap()["token"], "by-hand");
    }

    #[test]
    fn a_server_alone_is_enough() {
        let found =
            connection(&Target { server: Some("localhost:8080".into()), token: Some("t".into()), ..Target::default() })
                .unwrap();
        assert_eq!((found.context, found.server.as_str()), (None, "http://localhost:8080"));
    }

    #[test]
    fn files_of_a_list_are_merged_and_some_may_be_absent() {
        let files = Files::new("merge");
        let first = files
            .write("first", "current-context: lab\nclusters:\n- {name: lab, cluster: {server: 'https://first:1'}}\n");
        let list = vec![files.0.join("absent"), first, files.write("second", TWO)];
        let found = connection(&Target { kubeconfig: list, kubeconfig_named: true, ..Target::default() }).unwrap();
        assert_eq!((found.context.as_deref(), found.server.as_str()), (Some("lab"), "https://first:1"));
    }

    #[test]
    fn a_token_file_loses_its_final_newline_and_wins_over_a_token() {
        let files = Files::new("token");
        files.write("token", "from-file\n");
        let config = TWO.replace("token: s3cret", "token: s3cret, tokenFile: token");
        let found = connection(&target(files.write("config", &config))).unwrap();
        assert_eq!(serde_json::to_value(&found.config.auth_info).unwrap()["token"], "from-file");
        let absent = TWO.replace("token: s3cret", "tokenFile: nowhere");
        assert_eq!(
            failure(&target(files.write("config", &absent))),
            format!("the token file {} cannot be read: no such file", files.0.join("nowhere").display())
        );
    }

    #[test]
    fn each_fault_names_the_thing_and_the_remedy() {
        let files = Files::new("faults");
        let config = files.write("config", TWO);
        let in_context = |name: &str| Target { context: Some(name.into()), ..target(config.clone()) };
        let broken = files.write("broken", "users:\n- {name: jane, user: [unclosed\n");
        let odd = files.write("odd", "users:\n- {name: jane, user: \"my-s3cret-value-of-some-length\"}\n");
        let none = files.write("none", "kind: Config\n");
        let not_pem = files.write("ca.pem", "hello");
        let absent = files.0.join("absent");
        for (target, message) in [
            (target(absent.clone()), format!("kubeconfig {} does not exist: see --kubeconfig and KUBECONFIG", absent.display())),
            (target(files.0.clone()), format!("kubeconfig {} cannot be read: it is a directory", files.0.display())),
            (target(none), "no context is current in the kubeconfig: choose one with --context; it has none".to_owned()),
            (
                target(files.write("unset", &TWO.replace("current-context: prod", ""))),
                "no context is current in the kubeconfig: choose one with --context; it has lab, no-cluster, no-server, no-user, prod".to_owned(),
            ),
            (in_context("prd"), "no context \"prd\" in the kubeconfig; it has lab, no-cluster, no-server, no-user, prod".to_owned()),
            (
                in_context("no-cluster"),
                "context \"no-cluster\" names the cluster \"gone\", which the kubeconfig does not have: correct the context, or name a server with --server"
                    .to_owned(),
            ),
            (
                in_context("no-user"),
                "context \"no-user\" names the user \"gone\", which the kubeconfig does not have: correct the context, or give a --token".to_owned(),
            ),
            (in_context("no-server"), "cluster \"empty\" of the kubeconfig has no server: add its URL, or name one with --server".to_owned()),
            (
                Target { server: Some("ftp://u:p@host".into()), ..in_context("prod") },
                "\"ftp://host\" is not the URL of a server: it must begin with https://".to_owned(),
            ),
            (
                Target { certificate_authority: Some(not_pem.clone()), ..in_context("prod") },
                format!("the certificate authority ({}) is of no use: it holds no PEM certificate; see --certificate-authority", not_pem.display()),
            ),
            (
                Target { certificate_authority: Some(absent.clone()), ..in_context("prod") },
                format!("the certificate authority ({}) is of no use: no such file; see --certificate-authority", absent.display()),
            ),
            (
                target(files.write("groups", &TWO.replace("as: someone", "as-groups: [a]"))),
                "--as-group needs --as: groups are impersonated together with a user".to_owned(),
            ),
        ] {
            assert_eq!(failure(&target), message);
        }
        let message = failure(&target(broken.clone()));
        assert!(
            message.starts_with(&format!("kubeconfig {} is not valid: ", broken.display())) && message.contains("line"),
            "{message}"
        );
        let message = failure(&target(odd));
        assert!(message.contains("is not valid: ") && !message.contains("s3cret"), "{message}");
    }

    #[test]
    fn nothing_at_all_is_said_so() {
        let nowhere = Target { kubeconfig: vec![PathBuf::from("/nonexistent/config")], ..Target::default() };
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
            assert_eq!(connection(&nowhere).unwrap_err(), ConnectError::NoCluster);
        }
    }

    #[test]
    fn a_missing_login_plugin_shows_its_install_hint() {
        let files = Files::new("exec");
        let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin-here, interactiveMode: Never, installHint: \"get it\\n  at example.com\"}";
        let config = files.write("config", &TWO.replace("token: s3cret", exec));
        let found = connection(&target(config)).unwrap();
        let error = super::super::transport::open(&found, 1).map(drop).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the kubeconfig logs in with \"no-such-plugin-here\", which is not installed: get it at example.com"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_failing_login_plugin_is_quoted_from_stderr_alone() {
        let files = Files::new("exec-fails");
        let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, args: ['-c', 'echo t0ken; echo >&2 no session; exit 3']}";
        let config = files.write("config", &TWO.replace("token: s3cret", exec));
        let found = connection(&target(config)).unwrap();
        let error = super::super::transport::open(&found, 1).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("\"sh\", with which the kubeconfig logs in, failed: exit status: 3"), "{error}");
        assert!(!error.contains("t0ken"), "{error}");
    }
}
