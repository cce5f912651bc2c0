//! Whole runs of the check against an API server of the test's own: what is told of a cluster that answers everything.

use crate::support::apiserver::{Act, TABLES, path};
use crate::support::builder::{Test, files};
use crate::support::fixture::{Record, as_installed, edit, remove};
use crate::support::web::web;
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;

/// A small release: its Secret is in clear here and nowhere else.
pub(crate) const SHOP: &str = concat!(
    r#"---
# Source: shop/templates/settings.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast, color: blue}
---
# Source: shop/templates/login.yaml
apiVersion: v1
kind: Secret
metadata: {name: login}
type: Opaque
stringData: {password: hunter2-and-more, pin: "4711-0815"}
---
# Source: shop/templates/web.yaml
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{name: http, port: 80, protocol: TCP}], selector: {app: web}}
---
# Source: shop/templates/web.yaml
"#,
    web!(replicas: 2, r#"[{name: web, image: "registry.example/web:1.4", env: [{name: LOG, value: info}]}]"#)
);

#[test]
fn a_fresh_release_is_in_sync() {
    let test = Test::new().installed("shop", 3, SHOP);
    test.run("").exit(0).stdout(
        "NAME   READY   REASON   MESSAGE                      DRIFT DETECTION MODE   SUSPENDED\n\
         shop   True    InSync   4 objects as in revision 3   warn                   False\n",
    );
}

/// One of each kind of drift: edited, added, removed, missing; in clear objects and in the Secret.
fn drifted() -> Test {
    Test::new().installed("shop", 3, SHOP).change(|objects| {
        edit(objects.get("Deployment", "web"), "kubectl-edit", "spec: {replicas: 6}");
        edit(
            objects.get("Deployment", "web"),
            "debugger",
            "spec: {template: {spec: {containers: [{name: shell, image: 'registry.example/shell:1'}]}}}",
        );
        remove(objects.get("ConfigMap", "settings"), "/data/color", &["f:data", "f:color"]);
        // c3dvcmRmaXNoLTQy: another password. YWRkZWQtYnktaGFuZA==: a key nobody asked for.
        edit(
            objects.get("Secret", "login"),
            "kubectl-edit",
            "data: {password: c3dvcmRmaXNoLTQy, extra: YWRkZWQtYnktaGFuZA==}",
        );
        objects.remove("Service", "web");
    })
}

#[test]
fn drift_is_told_with_path_and_manager() {
    let test = drifted();
    let mut ran = test.run("shop -o json").exit(1).errors(&[]).findings(
        "shop",
        &[
            "removed drift removed ConfigMap/settings .data.color",
            "added drift added Secret/login .data.extra",
            "changed drift edited Secret/login .data.password",
            "missing drift missing Service/web -",
            "changed drift edited Deployment/web .spec.replicas",
            "added drift added Deployment/web .spec.template.spec.containers[name=\"shell\"]",
        ],
    );
    let release = ran.release("shop");
    let findings = release["findings"].as_array().unwrap();
    let told = |place: usize, keys: &[&str]| keys.iter().map(|key| findings[place][key].clone()).collect::<Vec<_>>();
    assert_eq!(
        told(4, &["desired", "live", "pointer", "masked"]),
        [json!(2), json!(6), json!("/spec/replicas"), json!(false)]
    );
    assert_eq!(findings[4]["manager"]["name"], "kubectl-edit");
    assert_eq!(findings[5]["manager"]["name"], "debugger");
    assert_eq!(findings[0]["manager"], Value::Null);
    for secret in [1, 2] {
        assert_eq!(told(secret, &["desired", "live", "masked"]), [Value::Null, Value::Null, json!(true)]);
    }
    assert_eq!(release["message"], "2 changed, 1 removed, 1 missing, 2 added");
    assert_eq!(release["objects"]["missing"], 1);
}

#[test]
fn what_people_read_names_object_path_values_and_manager() {
    let test = drifted();
    test.run("").exit(1).stdout_has(&[
        "\nshop   False   Drifted   2 changed, 1 removed, 1 missing, 2 added   warn ",
        "ConfigMap/settings",
        ".data.color",
        ".spec.replicas",
        "2 → 6",
        "kubectl-edit",
        "Service/web",
        "missing",
    ]);
    test.run("diff").exit(1).stdout_has(&["-  replicas: 2\n", "+  replicas: 6\n", "-  color: blue\n", "(changed)"]);
    test.run("-o name").exit(1).stdout("configmap/settings\nsecret/login\nservice/web\ndeployment.apps/web\n");
}

#[test]
fn yaml_says_what_json_says() {
    let test = drifted();
    let json = test.run("-o json").exit(1).json();
    let mut ran = test.run("-o yaml").exit(1);
    let yaml = ran.yaml();
    let without_times = |mut report: Value| {
        report["startedAt"] = Value::Null;
        report["finishedAt"] = Value::Null;
        report
    };
    assert_eq!(without_times(json), without_times(yaml));
}

/// The builder looks for every Secret's values in both streams; here are all the doors they could leave by.
#[test]
fn no_value_of_a_secret_leaves_by_any_door() {
    let test = drifted();
    for format in ["table", "wide", "json", "yaml", "name", "diff"] {
        test.run(&format!("-o {format} --show-all -v=6")).exit(1).stdout_has(&[]).stderr_has(&["GET"]);
    }
    let gone = drifted().change(|objects| objects.remove("Secret", "login"));
    for format in ["table", "wide", "json", "yaml", "name", "diff"] {
        let ran = gone.run(&format!("-o {format} --show-all -v=6")).exit(1).stdout_has(&["login"]).stderr_has(&["GET"]);
        for clear in ["hunter2", "4711-0815", "aHVudGVyMi"] {
            assert!(!ran.shows(clear), "{clear} by {format}");
        }
    }
    for file in files(&gone.folder).iter().chain(&files(&test.folder)) {
        let text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMi"), "{} holds a secret", file.display());
    }
}

/// Values of a Secret stand elsewhere too: in what kubectl and others noted, in fields with a slip of the pen, in shapes that no Secret has.
#[test]
fn no_value_of_a_secret_leaves_from_an_odd_place() {
    let noted = r#"{"kind":"Secret","stringData":{"password":"hunter2-and-more"}}"#;
    let annotations = json!({"metadata": {"annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": noted, "openshift.io/token-secret.value": "hunter2-and-more",
    }}});
    let test = Test::new().installed("shop", 3, SHOP).change(|objects| {
        edit(objects.get("Secret", "login"), "kubectl-client-side-apply", &annotations.to_string());
    });
    let slips = SHOP.replace("stringData:", "strigData:") + "immutable: true\n";
    let shapes =
        SHOP.replace("stringData: {password: hunter2-and-more, pin: \"4711-0815\"}", "data: [hunter2-and-more]");
    let nested =
        SHOP.replace("stringData: {password: hunter2-and-more", "stringData: {password: {a: hunter2-and-more}");
    let tests = [slips, shapes, nested].map(|manifest| {
        let test = Test::new().installed("shop", 3, SHOP);
        let record = Record::new("shop", 3, &manifest);
        test.holds(record.object()).when(path("/openapi/v3"), Act::Forbid)
    });
    // The same objects wanted by a file that says nothing of annotations.
    std::fs::write(test.folder.join("files.yaml"), SHOP).unwrap();
    let runs = [(&test, ""), (&test, "-f files.yaml"), (&tests[0], ""), (&tests[1], ""), (&tests[2], "")];
    for (test, arguments) in runs {
        for format in ["table", "wide", "json", "yaml", "name", "diff"] {
            let command = if format == "diff" { "diff".to_owned() } else { format!("-o {format}") };
            let ran = test.run(&format!("{command} {arguments} --show-all -v=6")).stdout_has(&[]).stderr_has(&["GET"]);
            let code = ran.code();
            let ran = ran.exit(code);
            for clear in ["hunter2", "4711-0815", "aHVudGVyMi"] {
                assert!(!ran.shows(clear), "{clear} by {command} {arguments}");
            }
        }
        test.run("capture --to odd.drift").exit(0).stderr("captured 1 release in odd.drift\n");
        let captured = unpacked(&test.folder.join("odd.drift"));
        assert!(!captured.contains("hunter2") && !captured.contains("aHVudGVyMi"), "a value is in the capture");
    }
}

/// The text of a capture.
fn unpacked(file: &std::path::Path) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(&std::fs::read(file).unwrap()[..]).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_capture_holds_no_value_of_a_secret_and_replays_to_the_same_report() {
    let test = drifted();
    test.run("capture --to evidence.drift").exit(0).stderr("captured 1 release in evidence.drift\n");
    let text = unpacked(&test.folder.join("evidence.drift"));
    // In clear, as stored in a Secret, and as the beginning of what Helm packs.
    for secret in ["hunter2", "4711-0815", "aHVudGVyMi", "c3dvcmRmaXNoLTQy", "swordfish", "token-nobody-may-see"] {
        assert!(!text.contains(secret), "{secret} is in the capture");
    }
    let shown = |line: &str| {
        let report = test.run(line).exit(1).json();
        let findings = report["releases"][0]["findings"].as_array().unwrap().iter();
        findings
            .map(|finding| [&finding["change"], &finding["path"], &finding["manager"]].map(Value::clone))
            .collect::<Vec<_>>()
    };
    assert_eq!(shown("-o json --from evidence.drift"), shown("-o json"));
    let replayed = test.run("-o name --from evidence.drift").exit(1).stdout_has(&["secret/login"]);
    assert_eq!(replayed.requests().len(), 0);
}

#[test]
fn all_namespaces_are_one_report_in_order() {
    let test = Test::new()
        .installed_record(&Record::new("shop", 3, SHOP))
        .installed_record(&Record::new("shop", 1, SHOP).in_namespace("backup"))
        .installed_record(&Record::new("bakery", 2, SHOP).in_namespace("other"))
        .change(|objects| objects.remove_in("other", "Service", "web"));
    let table = "NAMESPACE   NAME     READY   REASON    MESSAGE                      DRIFT DETECTION MODE   SUSPENDED\n\
                 backup      shop     True    InSync    4 objects as in revision 1   warn                   False\n\
                 other       bakery   False   Drifted   1 missing                    warn                   False\n\
                 shop        shop     True    InSync    4 objects as in revision 3   warn                   False\n";
    test.run("-A").exit(1).stdout_has(&[table, "Service/web", "3 releases: 2 ready, 1 drifted"]);
    test.run("-n backup").exit(0).stdout_has(&["shop"]);
    let summary = test.run("-A -o json").exit(1).json()["summary"].clone();
    assert_eq!([&summary["releases"], &summary["ready"], &summary["drifted"]], [3, 2, 1]);
}

#[test]
fn an_empty_scope_is_its_own_answer() {
    let test = Test::new().installed("shop", 3, SHOP);
    test.run("-n empty").exit(0).stderr("no releases found\n");
    test.run("-n empty -o json").exit(0).stderr("no releases found\n").errors(&[]);
    test.run("shopp").exit(2).one_error(&["shopp", "shop"]);
    test.run("shopp -o json").exit(2).one_error(&["shopp"]).errors(&["NotFound"]);
    test.run("-l tier=none").exit(2).one_error(&["no release matches the selector"]);
    // The one that is there is judged all the same.
    test.run("shop shopp -o json").exit(2).one_error(&["shopp"]).reason("shop", "InSync", &[]);
}

/// A release of ten objects of a few kinds.
fn ten_objects() -> String {
    let mut manifest = SHOP.to_owned();
    for name in ["one", "two", "three"] {
        manifest += &format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n");
        manifest += &format!("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}}}\n");
    }
    manifest
}

#[test]
fn a_release_of_ten_objects_takes_at_most_eight_requests() {
    let test = Test::new().installed("shop", 3, &ten_objects());
    let cold = test.run("shop").exit(0).stdout_has(&["10 objects as in revision 3"]);
    let warm = test.run("shop").exit(0).stdout_has(&["10 objects as in revision 3"]);
    let expected = [
        "/api/v1/namespaces/shop/configmaps",
        "/api/v1/namespaces/shop/secrets",
        "/api/v1/namespaces/shop/secrets/login",
        "/api/v1/namespaces/shop/secrets/sh.helm.release.v1.shop.v3",
        "/api/v1/namespaces/shop/serviceaccounts",
        "/api/v1/namespaces/shop/services/web",
        "/apis/apps/v1/namespaces/shop/deployments/web",
        "/openapi/v3",
    ];
    println!("requests for ten objects: {} cold, {} warm", cold.requests().len(), warm.requests().len());
    assert_eq!(warm.paths(), expected);
    assert_eq!(cold.requests().len(), expected.len() + 5, "discovery, version, two documents");
}

#[test]
fn drift_costs_one_more_look_at_the_record() {
    let test = Test::new()
        .installed("shop", 3, &ten_objects())
        .change(|objects| edit(objects.get("Deployment", "web"), "kubectl-edit", "spec: {replicas: 6}"));
    test.run("shop").exit(1).stdout_has(&[".spec.replicas"]);
    // Unowned replicas would ask for autoscalers; these are a person's.
    let warm = test.run("shop").exit(1).stdout_has(&[".spec.replicas"]).asked("/api/v1/namespaces/shop/secrets", 2);
    assert_eq!(warm.requests().len(), 9, "{:?}", warm.paths());
}

#[test]
fn many_drifted_releases_are_looked_at_again_by_one_listing() {
    let change = |test: Test, at: usize| {
        let name = format!("r{at}");
        let map = format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n");
        let test = test.installed(&name, 1, &map);
        test.change(|objects| edit(objects.get("ConfigMap", &name), "kubectl-edit", "data: {a: c}"))
    };
    let test = (0..9).fold(Test::new(), change);
    test.run("-o name").exit(1).stdout_has(&["configmap/r8"]).asked("/api/v1/namespaces/shop/secrets", 2);
}

#[test]
fn requests_grow_with_kinds_and_not_with_objects() {
    let manifest = |count: usize| -> String {
        let one =
            |at: usize| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{at}}}\ndata: {{a: b}}\n");
        (0..count).map(one).collect()
    };
    let count = |objects: usize| {
        let namespaces = ["a", "b", "c", "d", "e"];
        let records = namespaces.map(|namespace| Record::new("shop", 1, &manifest(objects)).in_namespace(namespace));
        let test = records.iter().fold(Test::new(), Test::installed_record);
        test.run("-A").exit(0).stdout_has(&["5 releases: 5 ready"]).requests().len()
    };
    assert_eq!(count(3), count(40));
}

#[test]
fn nothing_is_asked_of_a_cluster_before_the_command_line_is_right() {
    let test = Test::new().installed("shop", 3, SHOP);
    for line in ["-o nonsense", "--revision x shop", "Shop", "--parallel 0"] {
        let ran = test.run(line).exit(2).stderr_has(&["error: "]);
        assert_eq!(ran.requests().len(), 0, "{line}");
    }
}

#[test]
fn an_older_revision_is_judged_when_it_is_asked_for() {
    let older = SHOP.replace("fast", "slow");
    let test =
        Test::new().holds(Record::new("shop", 2, &older).status("superseded").object()).installed("shop", 3, SHOP);
    test.run("shop -o json").exit(0).reason("shop", "InSync", &["revision 3"]);
    test.run("shop --revision 2 -o json")
        .exit(1)
        .findings("shop", &["changed drift edited ConfigMap/settings .data.mode"])
        .reason("shop", "Drifted", &["1 changed"]);
    test.run("shop --revision 7 -o json").exit(2).reason(
        "shop",
        "Unverified",
        &["revision 7 is not kept; there are 3, 2"],
    );
}

#[test]
fn records_of_another_driver_are_found_when_it_is_named() {
    let mut record = Record::new("shop", 3, SHOP).object();
    let payload = crate::support::fixture::packed(Record::new("shop", 3, SHOP).release().to_string().as_bytes());
    record["kind"] = json!("ConfigMap");
    record["data"]["release"] = json!(payload);
    let test = as_installed("shop", "shop", SHOP).into_iter().fold(Test::new().holds(record), Test::holds);
    test.run("--storage-driver configmap -o json").exit(0).reason("shop", "InSync", &["4 objects"]);
    test.run("shop -o json").exit(2).one_error(&["add --storage-driver configmap"]).errors(&["OtherDriver"]);
    test.run("").exit(0).stderr("no releases found\n");
}

#[test]
fn revision_ten_is_newer_than_nine() {
    let record = |revision: u64, status: &str| {
        Record::new("shop", revision, &SHOP.replace("fast", "slow")).status(status).object()
    };
    let test = Test::new().holds(record(9, "superseded")).holds(record(2, "superseded")).installed("shop", 10, SHOP);
    test.run("-o json").exit(0).reason("shop", "InSync", &["revision 10"]);
}

#[test]
fn an_upgrade_that_hangs_says_how_to_unlock_it() {
    let test = Test::new()
        .installed("shop", 3, SHOP)
        .holds(Record::new("shop", 4, &SHOP.replace("fast", "slow")).status("pending-upgrade").object());
    let ran = test.run("-o json").exit(1).reason("shop", "PendingUpgrade", &["`helm rollback shop 3 -n shop`"]);
    assert_eq!(ran.findings("shop", &[]).release("shop")["judgedRevision"], 3);
}

/// A table of kinds kept by an earlier run must not make a new one "not served".
#[test]
fn a_kind_defined_since_the_last_run_is_found() {
    let oven = "---\napiVersion: shop.example/v1\nkind: Oven\nmetadata: {name: big}\nspec: {heat: 220}\n";
    let table = oven.replace("Oven", "Table").replace("heat: 220", "seats: 4");
    let test = Test::new().installed("shop", 1, oven);
    test.run("").exit(0).stdout_has(&["1 object as in revision 1"]);
    test.server.serve_kind(TABLES);
    let superseded = Record::new("shop", 1, oven).status("superseded");
    let test = test.holds(superseded.object()).installed("shop", 2, &table);
    test.run("").exit(0).stdout_has(&["1 object as in revision 2"]);
}

#[test]
fn a_kind_that_is_not_served_is_missing_and_says_why() {
    let table = "---\napiVersion: shop.example/v1\nkind: Table\nmetadata: {name: round}\nspec: {seats: 4}\n";
    let test = Test::new().holds(Record::new("shop", 1, &(SHOP.to_owned() + table)).object());
    let test = as_installed("shop", "shop", SHOP).into_iter().fold(test, Test::holds);
    let mut ran = test.run("-o json").exit(1).findings("shop", &["missing drift missing Table/round -"]);
    let note = ran.release("shop")["findings"][0]["note"].as_str().unwrap().to_owned();
    assert!(note.contains("shop.example/v1") && note.contains("Table"), "{note}");
}

/// JSON without a character that YAML does not take.
fn ascii(value: &Value) -> String {
    let escape = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) };
    value.to_string().chars().map(escape).collect()
}

/// Everything that a tenant chooses freely, and that could drive or deceive a terminal. The builder looks for it in both streams.
#[test]
fn hostile_text_never_reaches_a_terminal_as_it_is() {
    const EVIL: &str = "a\u{1b}[2J\u{1b}]0;owned\u{7}b\u{202e}cod\u{200b}e\u{9b}31m\r\u{8}";
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "annotations": {EVIL: EVIL}},
        "data": {"plain": EVIL, EVIL: "x"},
    });
    let odd = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": EVIL}});
    let strange = json!({"apiVersion": EVIL, "kind": EVIL, "metadata": {"name": "strange"}});
    // YAML takes no control characters as they are, but takes them escaped; a document that has one raw is told of as well.
    let manifest = format!(
        "---\n# Source: sh\u{202e}op\n{}\n---\n# Source: shop\n{}\n---\n{}\n---\n# Source: {EVIL}\nkind: {EVIL}\n",
        ascii(&settings),
        ascii(&odd),
        ascii(&strange)
    );
    let record = Record::new("shop", 1, &manifest).status(EVIL);
    let mut live = as_installed("shop", "shop", &ascii(&settings)).remove(0);
    live["data"]["plain"] = json!(format!("{EVIL}{EVIL}"));
    live["metadata"]["managedFields"][0]["manager"] = json!(EVIL);
    let stray = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": "stray", "namespace": "shop", "labels": {"owner": "helm", "name": EVIL, "version": "x"}},
    });
    let failing = Record::new("other", 1, "").status("failed");
    let mut release = failing.release();
    release["info"]["description"] = json!(EVIL);
    release["chart"]["metadata"]["name"] = json!(EVIL);
    let payload = crate::support::fixture::packed(release.to_string().as_bytes());
    let test = Test::new().holds(record.object()).holds(live).holds(stray).holds(failing.with_payload(&payload));
    for format in ["table", "wide", "diff", "name", "yaml", "json"] {
        let shown: &[&str] = if format == "name" { &["configmap/settings"] } else { &["owned"] };
        test.run(&format!("-o {format} --show-all")).exit(2).stdout_has(shown);
        test.run(&format!("-o {format} -v=6")).exit(2).stdout_has(&[]).stderr_has(&["GET"]);
    }
    // JSON keeps what it is, by escapes.
    let report = test.run("-o json").exit(2).json();
    assert!(report.to_string().contains("owned"));
}

/// Kubeconfigs and captures come from others as well.
#[test]
fn hostile_files_never_reach_a_terminal_as_they_are() {
    const EVIL: &str = "a\u{1b}[2J\u{202e}\n\u{9b}b";
    let test = Test::new();
    let write = |name: &str, value: &Value| std::fs::write(test.folder.join(name), ascii(value) + "\n").unwrap();
    write("contexts", &json!({"contexts": [{"name": EVIL, "context": {"cluster": EVIL, "user": EVIL}}]}));
    test.run("--kubeconfig contexts --context x").exit(2).one_error(&["no context \"x\" in the kubeconfig; it has a"]);
    write(
        "cluster",
        &json!({"current-context": EVIL, "contexts": [{"name": EVIL, "context": {"cluster": EVIL, "user": EVIL}}]}),
    );
    test.run("--kubeconfig cluster").exit(2).one_error(&["names the cluster"]);
    let header = json!({
        "apiVersion": "helm-drift/v1", "kind": "DriftCapture", "program": EVIL, "time": "2026-11-30T10:00:00Z",
        "cluster": {"context": EVIL, "server": EVIL, "version": EVIL, "namespace": EVIL}, "masked": true,
    });
    write("capture", &header);
    test.run("--from capture").exit(2).one_error(&["is not in the capture"]);
    test.run("--from capture -o json").exit(2).one_error(&["is not in the capture"]).errors(&["NotFound"]);
    write("other", &json!({"apiVersion": EVIL}));
    test.run("--from other").exit(2).one_error(&["has the form"]);
    write("kind", &json!({"apiVersion": "helm-drift/v1", "kind": EVIL}));
    test.run("--from kind").exit(2).one_error(&["is not a capture"]);
}

#[test]
fn a_reader_that_leaves_changes_no_exit_code() {
    let many: String = (0..400)
        .map(|at| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{at}}}\ndata: {{a: b}}\n"))
        .collect();
    // All missing: more than a pipe holds.
    let test = Test::new().holds(Record::new("shop", 1, &many).object());
    for line in ["", "-o json", "diff", "-o name"] {
        let mut child = test.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(1), ""), "{line}");
    }
    let mut child = test.command("-v=6").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(test.server.log());
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_is_trouble() {
    let test = Test::new().installed("shop", 3, SHOP);
    for line in ["", "-o json"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output =
            test.command(line).stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stderr.starts_with(b"error: the result cannot be written: "));
    }
    drop(test.server.log());
}

#[test]
fn two_releases_that_want_one_object_are_both_judged() {
    let settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {mode: fast}\n";
    let test = Test::new().installed("first", 1, settings).installed("second", 1, &settings.replace("fast", "slow"));
    let ran = test.run("-o json").exit(1).reason("second", "InSync", &[]).reason("first", "Drifted", &["2 changed"]);
    let paths: BTreeMap<String, usize> = ran.paths().into_iter().fold(BTreeMap::new(), |mut counts, path| {
        *counts.entry(path).or_default() += 1;
        counts
    });
    assert_eq!(paths["/api/v1/namespaces/shop/configmaps/settings"], 1);
}
