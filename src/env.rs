//! What surrounds the process: its name, environment variables, directories, terminals. Captured once, and nothing else reads
//! them. Knows nothing of flags, nor which of several sources wins.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

/// The variables that count; no other is looked at.
const VARIABLES: [&str; 27] = [
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "HELM_BIN",
    "HELM_CACHE_HOME",
    "HELM_COLOR",
    "HELM_DEBUG",
    "HELM_DRIVER",
    "HELM_KUBEAPISERVER",
    "HELM_KUBEASGROUPS",
    "HELM_KUBEASUSER",
    "HELM_KUBECAFILE",
    "HELM_KUBECONTEXT",
    "HELM_KUBEINSECURE_SKIP_TLS_VERIFY",
    "HELM_KUBETLS_SERVER_NAME",
    "HELM_KUBETOKEN",
    "HELM_MAX_HISTORY",
    "HELM_NAMESPACE",
    "HELM_PLUGIN_NAME",
    "HTTPS_PROXY",
    "KUBECONFIG",
    "NO_COLOR",
    "NO_PROXY",
    "PATH",
    "TERM",
    "https_proxy",
    "no_proxy",
];

/// What the names of programs that complete for kubectl begin with (kubernetes/kubectl `pkg/cmd/plugin_completion.go`).
const COMPLETES: &str = "kubectl_complete-";

/// Tests build one by hand. No `Debug`: `HELM_KUBETOKEN` is a secret.
#[derive(Clone, Default)]
pub(crate) struct Env {
    /// `argv[0]` without directory and extension.
    pub(crate) program: String,
    /// As set; empty ones included.
    pub(crate) variables: BTreeMap<&'static str, OsString>,
    /// This program's own file, links resolved.
    pub(crate) file: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    /// The user's cache directory by the rules of the operating system.
    pub(crate) cache: Option<PathBuf>,
    /// The user's configuration directory by the same rules.
    pub(crate) config: Option<PathBuf>,
    /// The user's directory for what a program keeps from run to run.
    pub(crate) state: Option<PathBuf>,
    /// For files that are gone when the program ends.
    pub(crate) temporary: PathBuf,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    /// Columns of the terminal that stdout is.
    pub(crate) width: Option<usize>,
}

/// Who started the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Shell,
    /// As the plugin of this name.
    Helm(String),
    /// As the plugin of this name, `drift` for the file `kubectl-drift`.
    Kubectl(String),
}

impl Env {
    pub(crate) fn capture(program: Option<&OsStr>) -> Self {
        let program = program.map(Path::new).and_then(Path::file_stem).unwrap_or_default();
        Self {
            program: program.to_string_lossy().into_owned(),
            variables: VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))).collect(),
            file: std::env::current_exe().and_then(|file| file.canonicalize()).ok(),
            home: dirs::home_dir(),
            cache: dirs::cache_dir(),
            config: dirs::config_dir(),
            // Only Linux has a directory of its own for that.
            state: dirs::state_dir().or_else(dirs::data_local_dir),
            temporary: std::env::temp_dir(),
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            width: terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0)),
        }
    }

    /// A variable's value; empty text is as good as unset (helm.md §5.3).
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// kubectl executes plugins by file name and says nothing else; helm sets variables (helm.md §5.3, §5.5).
    pub(crate) fn host(&self) -> Host {
        // kubectl and krew write the dashes of a plugin's name as underscores.
        if let Some(plugin) = self.program.strip_prefix("kubectl-").or(self.program.strip_prefix(COMPLETES)) {
            return Host::Kubectl(plugin.replace('_', "-"));
        }
        match self.get("HELM_PLUGIN_NAME") {
            Some(plugin) => Host::Helm(plugin.to_string_lossy().into_owned()),
            None => Host::Shell,
        }
    }

    /// Whether kubectl asks for completions: it runs a file of that name, and says nothing else.
    pub(crate) fn completes(&self) -> bool {
        self.program.starts_with(COMPLETES)
    }

    /// What the user typed to get here, for help and messages: `drift`, `helm drift`, `kubectl drift`.
    pub(crate) fn called(&self) -> String {
        match self.host() {
            Host::Shell => "drift".to_owned(),
            Host::Helm(plugin) => format!("helm {plugin}"),
            Host::Kubectl(plugin) => format!("kubectl {plugin}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_names_what_the_user_typed() {
        for (program, helm, called) in [
            ("drift", None, "drift"),
            ("/home/me/plugins/drift/bin/drift", Some("drift"), "helm drift"),
            ("/usr/local/bin/kubectl-drift", None, "kubectl drift"),
            ("kubectl-drift.exe", Some("drift"), "kubectl drift"),
            ("kubectl-helm_drift", None, "kubectl helm-drift"),
            ("kubectl_complete-drift", None, "kubectl drift"),
            ("drift", Some(""), "drift"),
        ] {
            let mut env = Env::capture(Some(OsStr::new(program)));
            env.variables = helm.map(|name| ("HELM_PLUGIN_NAME", name.into())).into_iter().collect();
            assert_eq!(env.called(), called, "{program} {helm:?}");
        }
    }
}
