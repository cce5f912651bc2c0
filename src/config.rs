//! What the command line and the environment say, as a checked, plain [`Config`]. Read once, under `main`.

use std::path::PathBuf;
use std::time::Duration;

/// Which cluster, and how to get there. Precedence (flag, then `HELM_*`, then kubeconfig, then in-cluster) is settled already
/// for what flags and environment say; the kubeconfig itself is read by `cluster/connect.rs`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    /// Files to merge: `--kubeconfig`, else `KUBECONFIG` (a list), else `~/.kube/config`.
    pub(crate) kubeconfig: Vec<PathBuf>,
    /// Named by flag or `KUBECONFIG`: its absence is an error, never a reason to go in-cluster.
    pub(crate) kubeconfig_named: bool,
    pub(crate) context: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) as_user: Option<String>,
    pub(crate) as_groups: Vec<String>,
    pub(crate) certificate_authority: Option<PathBuf>,
    pub(crate) client_certificate: Option<PathBuf>,
    pub(crate) client_key: Option<PathBuf>,
    pub(crate) insecure_skip_tls_verify: bool,
    pub(crate) tls_server_name: Option<String>,
    /// `HTTPS_PROXY`/`https_proxy`, and the hosts of `NO_PROXY`/`no_proxy`.
    pub(crate) https_proxy: Option<String>,
    pub(crate) no_proxy: Vec<String>,
    /// Of one request, from sending it to its last byte.
    pub(crate) request_timeout: Duration,
    /// Requests in flight at most.
    pub(crate) parallel: usize,
    /// Where digests of OpenAPI documents and discovery are kept; `None`: nowhere (`--no-cache`, or no such directory).
    pub(crate) cache: Option<PathBuf>,
}
