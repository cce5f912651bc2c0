//! The configuration on a real cluster: what rules cover, what they never cover, and what may not be looked up.

use crate::support::control_plane::{Helm, control_plane};
use crate::support::drift::{next_second, until};
use crate::support::namespace::Namespace;
use serde_json::{Value, json};

const TEMPLATE: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast, size: small}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{ports: [{port: 80}]}]
"#;

const RULES: &str = r#"ignore:
- {path: .data.mode, kinds: [ConfigMap], reason: switched by load}
- {path: .data.colour, namespaces: [$NS], reason: long gone}
- {path: ".spec.ingress[*].ports", namespaces: [$NS], reason: opened by hand}
- {path: .data.size, reason: old, expires: 2021-06-30}
- {path: .data.colour, namespaces: [elsewhere], reason: not looked at}
"#;

/// The release, with its mode, its size and the ports of its policy changed by hand.
fn edited<'a>(name: &str) -> Namespace<'a> {
    let namespace = control_plane().namespace(name);
    let chart = namespace.chart(TEMPLATE);
    namespace.helm(Helm::Four, &["install", "demo", &chart]).unwrap();
    next_second();
    let data = r#"{"data":{"mode":"slow","size":"big"}}"#;
    namespace.kubectl(&["patch", "configmap", "settings", "--type=merge", "-p", data], "").unwrap();
    let ports = r#"{"spec":{"ingress":[{"ports":[{"port":81}]}]}}"#;
    namespace.kubectl(&["patch", "networkpolicy", "web", "--type=merge", "-p", ports], "").unwrap();
    namespace
}

fn rules(namespace: &Namespace<'_>) -> String {
    let text = RULES.replace("$NS", &namespace.name);
    namespace.files("rules", &[("drift.yaml", &text)]).join("drift.yaml").to_string_lossy().into_owned()
}

#[test]
fn a_check_of_the_configuration_says_what_each_rule_covers() {
    let _slot = control_plane().slot();
    let namespace = edited("config-check");
    let file = rules(&namespace);
    let said = namespace.drift(&["config", "check", &file, "-n", &namespace.name], "");
    let want = format!(
        "{file} is valid: 5 ignore rules

line 2: .data.mode of ConfigMap (switched by load)
  {0}/demo   ConfigMap/settings   .data.mode

line 3: .data.colour (long gone)
  covers nothing now

line 4: .spec.ingress[*].ports (opened by hand)
  covers nothing now; reported as one, and the rule is inside it: {0}/demo   NetworkPolicy/web   .spec.ingress

line 5: .data.size (old)
  expired on 2021-06-30: it covers nothing any more

line 6: .data.colour (not looked at)
  covers nothing now
",
        namespace.name
    );
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, want.as_str(), ""));

    let nobody = namespace.plane.folder("configuration/nobody").join("kubeconfig");
    let server = "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n\
                  clusters: [{name: x, cluster: {server: \"http://127.0.0.1:1\"}}]\nusers: [{name: x, user: {}}]\n";
    std::fs::write(&nobody, server).unwrap();
    let alone = namespace.drift_as(Some(&nobody), &["config", "check", &file, "--offline"], "");
    assert_eq!((alone.code, alone.stdout.lines().count()), (0, 1), "{}", alone.stderr);
    let unasked = namespace.drift_as(Some(&nobody), &["config", "check", &file], "");
    assert!(unasked.code == 2 && unasked.stdout.contains("is valid") && unasked.stderr.starts_with("error: "));

    let wrong = namespace.files("wrong", &[("drift.yaml", "ignore:\n- path: .a\n  resaon: b\n")]).join("drift.yaml");
    let wrong = wrong.to_string_lossy();
    for line in
        [vec!["config", "check", &wrong, "--offline"], vec!["--config", &wrong], vec!["diff", "--config", &wrong]]
    {
        let said = namespace.drift_as(Some(&nobody), &line, "");
        let error = format!("error: {wrong}:3:3: unknown key `resaon`");
        assert!(said.code == 2 && said.stdout.is_empty() && said.stderr.starts_with(&error), "{}", said.stderr);
    }
}

#[test]
fn rules_of_no_use_are_told_when_all_they_concern_was_judged() {
    let _slot = control_plane().slot();
    let namespace = edited("rules-of-no-use");
    let file = rules(&namespace);
    let reasons = |arguments: &[&str]| -> Vec<String> {
        let said = namespace.drift(&[arguments, &["--config", &file, "-o", "json"]].concat(), "");
        let report = said.json();
        let notices = report["notices"].as_array().unwrap().iter();
        notices.map(|notice| format!("{} {}", notice["reason"].as_str().unwrap(), line(notice))).collect()
    };
    assert_eq!(reasons(&[]), ["RuleNeverMatches 3", "RuleNeverMatches 4", "RuleExpired 5"]);
    assert_eq!(reasons(&["demo"]), ["RuleExpired 5"], "one release is not all of the namespace");
    assert_eq!(reasons(&["-l", "name=demo"]), ["RuleExpired 5"]);
    let table = namespace.drift(&["--config", &file, "--show-all"], "").stdout;
    assert!(table.contains("* RuleExpired: ignore rule of line 5 (.data.size: old) expired on 2021-06-30"), "{table}");
    assert!(table.contains("ignored: switched by load"), "{table}");
}

/// The line that a rule's notice names.
fn line(notice: &Value) -> &str {
    let (_, rest) = notice["message"].as_str().unwrap().split_once("of line ").unwrap();
    rest.split(' ').next().unwrap()
}

const HELM_RELEASES: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: helmreleases.helm.toolkit.fluxcd.io}
spec:
  group: helm.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: HelmRelease, plural: helmreleases, singular: helmrelease, listKind: HelmReleaseList}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"#;

#[test]
fn helm_releases_that_may_not_be_listed_suspend_nothing_and_are_told() {
    let _slot = control_plane().slot();
    let namespace = edited("flux-forbidden");
    namespace.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"], HELM_RELEASES).unwrap();
    let suspended = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "demo"}, "spec": {"interval": "5m", "suspend": true},
    });
    until("HelmReleases are served", || namespace.kubectl(&["apply", "-f", "-"], &suspended.to_string()).is_ok());
    let verbs = json!(["get", "list"]);
    let all_but = json!([
        {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": verbs},
        {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": verbs},
    ]);
    let mut own_too = all_but.clone();
    own_too
        .as_array_mut()
        .unwrap()
        .push(json!({"apiGroups": ["helm.toolkit.fluxcd.io"], "resources": ["helmreleases"], "verbs": verbs}));
    for (user, rights, suspended, message) in [
        ("nothing", all_but, false, "which releases Flux manages cannot be told"),
        ("own", own_too, true, "which releases Flux manages from other namespaces cannot be told"),
    ] {
        let kubeconfig = namespace.user(user, &rights);
        let check = || namespace.drift_as(Some(&kubeconfig), &["demo", "-o", "json"], "");
        // The authorizer learns of a new role in a moment.
        until("the role counts", || check().json()["errors"] == json!([]));
        let said = check();
        let report = said.json();
        assert_eq!(report["releases"][0]["suspended"], json!(suspended), "{report:#}");
        assert_eq!(said.code, if suspended { 0 } else { 1 });
        let notices = report["notices"].as_array().unwrap();
        let told = notices.iter().find(|notice| notice["reason"] == "LookupForbidden").unwrap();
        assert!(told["message"].as_str().unwrap().starts_with(message), "{told}");
    }
}
