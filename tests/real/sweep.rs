//! `-f` on a real API server: what is as applied has no drift, whoever applied it and how; what is not is told by who did it.

use crate::support::charts::Corpus;
use crate::support::control_plane::{Helm, control_plane};
use crate::support::drift::{next_second, until};
use crate::support::web::web;
use serde_json::json;

/// Objects whose stored form differs from what a file says about them.
const FILE: &str = concat!(
    web!(
        replicas: 2,
        r#"
      - name: web
        image: registry.example/web:1
        args: [--port, "80"]
        ports: [{containerPort: 80}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}}
        readinessProbe: {httpGet: {path: /, port: 80}}"#
    ),
    r#"---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {key: hunter2}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {}, ingress: [{ports: [{port: 80}]}]}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings, annotations: {note: ""}}
  data: {mode: fast, level: info}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}
    maxReplicas: 3
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
"#
);

#[test]
fn what_is_as_applied_has_no_drift_whoever_applied_it() {
    for how in [
        &["apply", "-f", "-"][..],
        &["apply", "--server-side", "-f", "-"],
        &["apply", "--server-side", "--field-manager=flux", "-f", "-"],
        &["create", "-f", "-"],
        &["apply", "--field-manager=argocd-controller", "-f", "-"],
    ] {
        let _slot = control_plane().slot();
        let namespace = control_plane().namespace("sweep");
        namespace.kubectl(how, FILE).unwrap();
        let said = namespace.drift(&["-f", "-", "-o", "json"], FILE);
        let all = said.findings().into_iter();
        let told: Vec<String> = all.filter(|line| !line.contains(".metadata.annotations bookkeeping ")).collect();
        assert_eq!((said.code, told), (0, vec![]), "{how:?}: {}", said.stdout);
        let entry = &said.json()["releases"][0];
        assert_eq!(
            (&entry["name"], &entry["namespace"], &entry["storage"], &entry["reason"], &entry["objects"]["compared"]),
            (&json!("-"), &json!(namespace.name), &json!("files"), &json!("InSync"), &json!(6))
        );
        for key in ["revision", "judgedRevision", "status", "chart", "appVersion", "applyMethod"] {
            assert!(entry[key].is_null(), "{key}");
        }
    }
}

#[test]
fn what_helm_renders_is_what_helm_installed() {
    for helm in [Helm::Three, Helm::Four] {
        let _slot = control_plane().slot();
        let namespace = control_plane().namespace("sweep");
        let chart = namespace.chart(FILE);
        namespace.helm(helm, &["install", "demo", &chart]).unwrap();
        let rendered = namespace.helm(helm, &["template", "demo", &chart]).unwrap();
        let said = namespace.drift(&["-f", "-", "-o", "json"], &rendered);
        assert_eq!(said.code, 0, "Helm {}: {}", helm.major(), said.stdout);
        next_second();
        namespace.kubectl(&["patch", "configmap", "settings", "-p", r#"{"data":{"mode":"slow"}}"#], "").unwrap();
        let said = namespace.drift(&["-f", "-", "-o", "json"], &rendered);
        let drift: Vec<String> = said.findings().into_iter().filter(|line| line.starts_with("drift")).collect();
        assert_eq!(drift, ["drift changed ConfigMap/settings .data.mode edited kubectl-patch"]);
    }
}

/// The whole corpus once more, as if its manifests lay in a repository.
fn manifests_of_charts_show_nothing(helm: Helm) {
    let corpus = Corpus::of(helm);
    let _turn = corpus.turn();
    let mut problems = Vec::new();
    for site in &corpus.sites {
        let manifest = site.namespace.helm(helm, &["get", "manifest", &site.name, "-n", &site.name]).unwrap();
        let said = site.namespace.drift(&["-f", "-", "-n", &site.name, "-o", "json"], &manifest);
        let compared = &said.json()["releases"][0]["objects"]["compared"];
        let findings = said.findings();
        let noise: Vec<&String> = findings.iter().filter(|line| !line.starts_with("expected added")).collect();
        let told = said.notices("UnattributedAddition");
        if said.code != 0 || !noise.is_empty() || !told.is_empty() || *compared != site.things.len() {
            problems.push(format!("{}: exit {}, {compared} compared, {noise:?} {told:?}", site.name, said.code));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn manifests_of_charts_that_helm_3_installed_show_nothing() {
    manifests_of_charts_show_nothing(Helm::Three);
}

#[test]
fn manifests_of_charts_that_helm_4_installed_show_nothing() {
    manifests_of_charts_show_nothing(Helm::Four);
}

#[test]
fn another_version_is_told_from_an_edit() {
    let other = FILE
        .replace("web:1", "web:2")
        .replace("level: info", "level: info, extra: x")
        .replace("[--port, \"80\"]", "[--port, \"80\", --debug]");
    for (apply, applier) in [
        (&["apply", "-f", "-"][..], "kubectl-client-side-apply"),
        (&["apply", "--server-side", "--field-manager=flux", "-f", "-"], "flux"),
    ] {
        let _slot = control_plane().slot();
        let namespace = control_plane().namespace("sweep");
        namespace.kubectl(apply, &other).unwrap();
        next_second();
        namespace
            .kubectl(&["patch", "configmap", "settings", "-p", r#"{"data":{"mode":"slow","by-hand":"1"}}"#], "")
            .unwrap();
        namespace.kubectl(&["delete", "networkpolicy", "web"], "").unwrap();
        let said = namespace.drift(&["-f", "-", "-o", "json"], FILE);
        let found: Vec<String> = said.findings().into_iter().filter(|line| line.starts_with("drift")).collect();
        let container = r#".spec.template.spec.containers[name="web"]"#;
        assert_eq!(
            found,
            [
                format!("drift changed Deployment/web {container}.args applied-differently {applier}"),
                format!("drift changed Deployment/web {container}.image applied-differently {applier}"),
                "drift missing NetworkPolicy/web - missing -".to_owned(),
                "drift added ConfigMap/settings .data.by-hand added kubectl-patch".to_owned(),
                format!("drift added ConfigMap/settings .data.extra applied-differently {applier}"),
                "drift changed ConfigMap/settings .data.mode edited kubectl-patch".to_owned(),
            ]
        );
        assert_eq!(said.code, 1);
        assert!(!said.stdout.contains("hunter2"));
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_judged() {
    let _slot = control_plane().slot();
    let namespace = control_plane().namespace("sweep");
    let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\ndata: {a: b}\n";
    namespace.kubectl(&["apply", "-f", "-"], good).unwrap();
    let folder = namespace.files(
        "mixed",
        &[
            ("bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad\n"),
            ("good.yaml", good),
            ("values.yaml", "image:\n  tag: 1\n"),
            ("deep/gone.yml", &good.replace("good", "gone")),
        ],
    );
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let flat = namespace.drift(&["-f", &folder.to_string_lossy(), "-f", &path("nowhere"), "-o", "json"], "");
    assert_eq!(flat.code, 2);
    let report = flat.json();
    assert_eq!(report["releases"].as_array().map(Vec::len), Some(1));
    let entry = &report["releases"][0];
    assert_eq!((&entry["ready"], &entry["reason"]), (&json!("Unknown"), &json!("Unverified")));
    assert_eq!((&entry["objects"]["compared"], &entry["objects"]["unreadable"]), (&json!(1), &json!(2)));
    for line in [
        format!("{}: there is no such file or directory", path("nowhere")),
        format!("{}: line 4: ", path("bad.yaml")),
        format!("{}: line 1: -f takes manifests; values are not needed", path("values.yaml")),
    ] {
        assert!(flat.stderr.contains(&format!("error: {line}")), "{line}: {}", flat.stderr);
    }
    let deep = namespace.drift(&["-R", "-f", &folder.to_string_lossy(), "-o", "json"], "");
    assert_eq!((deep.code, deep.findings()), (2, vec!["drift missing ConfigMap/gone - missing -".to_owned()]));
    assert_eq!(deep.json()["releases"][0]["findings"][0]["source"], json!(path("deep/gone.yml")));

    let empty = namespace.files("empty", &[("notes.md", "")]);
    let nothing = namespace.drift(&["-f", &empty.to_string_lossy()], "");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""));
    assert!(nothing.stderr.contains("no *.yaml, *.yml or *.json in it; -R"), "{}", nothing.stderr);
    let nothing = namespace.drift(&["-f", "-", "-o", "json"], "# nothing\n");
    assert_eq!((nothing.code, &nothing.json()["errors"][0]["reason"]), (2, &json!("NothingFound")));
}

#[test]
fn many_files_are_few_requests() {
    let _slot = control_plane().slot();
    let namespace = control_plane().namespace("sweep");
    let one =
        |kind: &str, n: usize| format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: n{n}}}\ndata: {{a: YQ==}}\n");
    let mut files: Vec<(String, String)> = Vec::new();
    for n in 0..125 {
        files.push((format!("configmap-{n}.yaml"), one("ConfigMap", n)));
        files.push((format!("secret-{n}.yaml"), one("Secret", n)));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let folder = namespace.files("many", &files);
    let folder = folder.to_string_lossy();
    let all: Vec<&str> = files.iter().map(|(_, text)| *text).collect();
    namespace.kubectl(&["create", "-f", "-"], &all.join("---\n")).unwrap();
    let cold = namespace.drift(&["-f", &folder, "-v"], "");
    let warm = namespace.drift(&["-f", &folder, "-v"], "");
    assert_eq!((cold.code, warm.code), (0, 0), "{}{}", warm.stdout, warm.stderr);
    // Two listings; discovery, its two aggregated documents, and the version.
    assert!(warm.requests() <= 8, "{} requests: {}", warm.requests(), warm.stderr);
}

#[test]
fn without_the_right_to_list_each_object_is_read_by_itself() {
    let _slot = control_plane().slot();
    let namespace = control_plane().namespace("sweep");
    let one = |n: usize| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: n{n}}}\ndata: {{a: b}}\n");
    let all: Vec<String> = (0..12).map(one).collect();
    let all = all.join("---\n");
    namespace.kubectl(&["apply", "-f", "-"], &all).unwrap();
    let user = namespace.user("getter", &json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]));
    until("the user may get", || namespace.drift_as(Some(&user), &["-f", "-"], &all).code == 0);
    let with_secret = format!("{all}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: key}}\n");
    let said = namespace.drift_as(Some(&user), &["-f", "-", "-o", "json"], &with_secret);
    assert_eq!((said.code, said.findings().len()), (2, 1));
    let entry = &said.json()["releases"][0];
    assert_eq!((&entry["reason"], &entry["objects"]["compared"]), (&json!("Unverified"), &json!(12)));
}
