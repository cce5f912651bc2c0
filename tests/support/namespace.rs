//! A namespace of a test: its programs, its objects, its users. Knows nothing of `drift`.

use super::control_plane::{ControlPlane, Helm};
use super::process;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The longest that one call of kubectl or Helm may take.
const LIMIT: Duration = Duration::from_secs(180);

/// Gone from the cluster soon after the guard is gone.
pub(crate) struct Namespace<'a> {
    pub(crate) plane: &'a ControlPlane,
    pub(crate) name: String,
    kubeconfig: PathBuf,
}

impl Namespace<'_> {
    pub(super) fn create<'a>(plane: &'a ControlPlane, name: &str) -> Namespace<'a> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        plane.request("POST", "/api/v1/namespaces", &object).unwrap();
        Namespace { plane, name: name.to_owned(), kubeconfig: plane.kubeconfig_for(name, name, None) }
    }

    /// The administrator's kubeconfig with this namespace as its context's own.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }

    /// A program that finds this namespace in its kubeconfig and the given Helm as `helm` on PATH.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>, helm: Helm) -> Command {
        let mut command = self.plane.command(program, helm);
        command.env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// Runs kubectl; `input` is what `-f -` reads.
    pub(crate) fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let finished = process::run(self.command("kubectl", Helm::Four).args(arguments), input, LIMIT)?;
        finished.success().map_err(|problem| format!("kubectl {}: {problem}", arguments.join(" ")))
    }

    pub(crate) fn helm(&self, helm: Helm, arguments: &[&str]) -> Result<String, String> {
        let finished = process::run(self.command("helm", helm).args(arguments), "", LIMIT)?;
        finished.success().map_err(|problem| format!("helm {}: {problem}", arguments.join(" ")))
    }

    /// The kubeconfig of a new user with these rights and no others: a service account, a Role of `rules` (RBAC's own form) bound to it.
    pub(crate) fn user(&self, name: &str, rules: &Value) -> PathBuf {
        let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", self.name);
        let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", self.name);
        let metadata = json!({"name": name});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
        let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": self.name}]);
        let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let post = |path: &str, object: Value| self.plane.request("POST", path, &object).unwrap();
        post(&accounts, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}));
        post(&format!("{rbac}/roles"), json!({"metadata": metadata, "rules": rules}));
        post(&format!("{rbac}/rolebindings"), json!({"metadata": metadata, "roleRef": role, "subjects": subjects}));
        let answer = post(&format!("{accounts}/{name}/token"), token);
        self.plane.kubeconfig_for(&format!("{}-{name}", self.name), &self.name, answer["status"]["token"].as_str())
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        self.plane.send("DELETE", &format!("/api/v1/namespaces/{}", self.name));
    }
}
