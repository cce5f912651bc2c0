//! Whole runs of the check against an API server that refuses, breaks off, lies or never answers: what could not be read is never
//! called in sync, one release's trouble hides no other, and every error is one line with the remedy.

use crate::report::SHOP;
use crate::support::apiserver::{Act, Discovery, HELM_RELEASES, Objects, PODS, get, list, path};
use crate::support::builder::{Test, files};
use crate::support::fixture::{Record, edit, packed, zipped};
use crate::support::process::Finished;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

/// Several objects of each of two kinds, so that they are listed.
const STALL: &str = r"---
apiVersion: v1
kind: ConfigMap
metadata: {name: bread}
data: {flour: rye}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cake}
data: {flour: wheat}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: baker}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: seller}
";

/// Config maps `m0`, `m1`, …
fn maps(count: usize, value: &str) -> String {
    (0..count).fold(String::new(), |mut manifest, at| {
        writeln!(manifest, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{at}}}\ndata: {{a: {value}}}")
            .unwrap();
        manifest
    })
}

fn stall() -> Test {
    Test::new().installed("stall", 2, STALL)
}

/// Somebody changed the flour of the bread.
fn changed_bread() -> Test {
    stall().change(|objects| edit(objects.get("ConfigMap", "bread"), "kubectl-edit", "data: {flour: spelt}"))
}

const CHANGED_BREAD: &str = "changed drift edited ConfigMap/bread .data.flour";

// Rights.

#[test]
fn secrets_that_may_not_be_listed_anywhere_are_one_error_with_the_remedy() {
    let test = stall().when(list("secrets").cluster_wide(), Act::Forbid);
    let said = [
        "secrets is forbidden: User \"limited\" cannot list resource \"secrets\" in API group \"\" at the cluster scope",
        "name a namespace with -n",
    ];
    test.run("-A").exit(2).one_error(&said);
    test.run("-A -o json").exit(2).one_error(&said).errors(&["Forbidden"]);
    test.run("-n shop -o json").exit(0).reason("stall", "InSync", &[]);
}

#[test]
fn secrets_that_may_not_be_listed_in_the_namespace_are_read_one_by_one_where_the_revision_is_named() {
    let test = stall().when(list("secrets"), Act::Forbid);
    test.run("").exit(2).one_error(&["in the namespace \"shop\"", "or get alone with a release's name and --revision"]);
    test.run("stall -o json").exit(2).one_error(&["forbidden"]).errors(&["Forbidden"]);
    test.run("stall --revision 2 -o json").exit(0).reason("stall", "InSync", &["4 objects as in revision 2"]);
    let test = changed_bread().when(list("secrets"), Act::Forbid);
    test.run("stall --revision 2 -o json").exit(1).findings("stall", &[CHANGED_BREAD]);
    let test = test.when(get("secrets"), Act::Forbid);
    test.run("stall --revision 2 -o json").exit(2).one_error(&["forbidden"]).errors(&["Forbidden"]);
}

#[test]
fn a_payload_that_may_not_be_read_hides_no_other_release() {
    let test =
        stall().installed("shop", 3, SHOP).when(get("secrets").named("sh.helm.release.v1.stall.v2"), Act::Forbid);
    test.run("-o json")
        .exit(2)
        .reason("stall", "Unverified", &["sh.helm.release.v1.stall.v2 cannot be read", "forbidden"])
        .reason("shop", "InSync", &[]);
}

#[test]
fn a_kind_that_may_not_be_listed_is_read_object_by_object() {
    let test = changed_bread().when(list("configmaps"), Act::Forbid);
    test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]).asked("/api/v1/namespaces/shop/configmaps/cake", 1);
}

#[test]
fn a_kind_that_may_not_be_listed_in_all_namespaces_is_listed_in_each() {
    let namespaces = ["a", "b", "c", "d"];
    let records = namespaces.map(|namespace| Record::new("stall", 1, STALL).in_namespace(namespace));
    let test = records.iter().fold(Test::new(), Test::installed_record);
    let test = test.when(list("configmaps").cluster_wide(), Act::Forbid);
    let ran = test.run("-A -o json").exit(0).asked("/api/v1/configmaps", 1);
    namespaces.iter().fold(ran, |ran, one| ran.asked(&format!("/api/v1/namespaces/{one}/configmaps"), 1)).errors(&[]);
    // One at a time is slower, and no dead end.
    test.run("-A -o json --parallel 1").exit(0).errors(&[]);
}

#[test]
fn a_kind_that_may_not_be_read_at_all_is_unverified() {
    let test = stall().when(list("configmaps"), Act::Forbid).when(get("configmaps"), Act::Forbid);
    test.run("-o json")
        .exit(2)
        .reason("stall", "Unverified", &["2 could not be told", "configmaps \"bread\" is forbidden"])
        .findings("stall", &["unreadable unverified - ConfigMap/bread -", "unreadable unverified - ConfigMap/cake -"]);
    test.run("").exit(2).stdout_has(&["stall   Unknown   Unverified", "ConfigMap/bread", "forbidden"]);
    test.run("diff").exit(2).stdout_has(&["forbidden"]);
}

#[test]
fn drift_beside_what_may_not_be_read_is_told_and_exits_2() {
    let test = changed_bread()
        .when(list("serviceaccounts"), Act::Forbid)
        .when(get("serviceaccounts").named("baker"), Act::Forbid);
    test.run("-o json")
        .exit(2)
        .reason("stall", "Drifted", &["1 changed", "1 could not be told"])
        .findings("stall", &[CHANGED_BREAD, "unreadable unverified - ServiceAccount/baker -"]);
}

#[test]
fn an_autoscaler_that_may_not_be_looked_up_excuses_nothing() {
    let test = Test::new().installed("shop", 3, SHOP).change(|objects| {
        edit(objects.get("Deployment", "web"), "kube-controller-manager", "spec: {replicas: 6}");
    });
    let test = test.when(list("horizontalpodautoscalers"), Act::Forbid);
    let mut ran = test.run("-o json").exit(1).findings("shop", &["changed drift edited Deployment/web .spec.replicas"]);
    assert_eq!(ran.release("shop")["notices"][0]["reason"], "LookupForbidden");
}

#[test]
fn flux_that_may_not_be_asked_changes_no_verdict_and_is_told() {
    for act in [
        Act::Forbid,
        Act::Fail(500, "no HelmReleases today"),
        Act::Say("{\"items\": [{}, {\"spec\": 3}, 7]}"),
        Act::Raw(200, "garbage"),
    ] {
        let quiet = matches!(act, Act::Say(_));
        let test = changed_bread().when(list("helmreleases"), act);
        test.server.serve_kind(HELM_RELEASES);
        let mut ran = test.run("-o json").exit(1).errors(&[]).findings("stall", &[CHANGED_BREAD]);
        let notices = ran.json()["notices"].to_string();
        assert!(
            quiet || notices.contains("LookupForbidden") && notices.contains("which releases Flux manages"),
            "{notices}"
        );
    }
}

#[test]
fn pods_that_may_not_be_listed_change_no_verdict_and_are_told() {
    let reading = SHOP.replace("env: [{name: LOG, value: info}]", "envFrom: [{configMapRef: {name: settings}}]");
    let test = Test::new().installed("shop", 3, &reading).change(|objects| {
        edit(objects.get("ConfigMap", "settings"), "kubectl-edit", "data: {color: red}");
    });
    test.server.serve_kind(PODS);
    let test = test.when(list("pods"), Act::Forbid);
    let mut ran =
        test.run("-o json").exit(1).findings("shop", &["changed drift edited ConfigMap/settings .data.color"]);
    let notices = ran.release("shop")["notices"].to_string();
    assert!(notices.contains("LookupForbidden") && notices.contains("pods is forbidden"), "{notices}");
}

#[test]
fn files_whose_objects_may_not_be_read_are_unverified() {
    let test = stall().when(list("configmaps"), Act::Forbid).when(get("configmaps"), Act::Forbid);
    fs::write(test.folder.join("stall.yaml"), STALL).unwrap();
    test.run("-f stall.yaml -o json").exit(2).reason("stall.yaml", "Unverified", &["2 could not be told", "forbidden"]);
    let test = stall().when(path("/"), Act::Fail(401, "Unauthorized"));
    fs::write(test.folder.join("stall.yaml"), STALL).unwrap();
    test.run("-f stall.yaml -o json").exit(2).one_error(&["log in again"]).errors(&["Unauthorized"]);
}

#[test]
fn an_expired_login_says_what_to_do() {
    let test = stall().when(path("/"), Act::Fail(401, "Unauthorized"));
    let said = ["does not accept this login (Unauthorized)", "log in again", "--token"];
    test.run("").exit(2).one_error(&said);
    test.run("-A -o json").exit(2).one_error(&said).errors(&["Unauthorized"]);
    test.run("stall --token another-token -o json").exit(2).one_error(&said).errors(&["Unauthorized"]);
}

#[test]
fn a_login_that_expires_in_the_middle_leaves_no_verdict() {
    let test = stall().when(path("/api/v1/namespaces/shop/configmaps"), Act::Fail(401, "Unauthorized"));
    test.run("-o json").exit(2).reason("stall", "Unverified", &["log in again"]);
    let test = stall().when(path("/api/v1/namespaces/shop/secrets/"), Act::Fail(401, "Unauthorized"));
    test.run("-o json").exit(2).reason("stall", "Unverified", &["log in again"]);
    let test = stall().when(path("/apis"), Act::Fail(401, "Unauthorized"));
    test.run("-o json").exit(2).one_error(&["log in again"]).errors(&["Unauthorized"]);
}

/// What a server says is a tenant's as well: webhooks and aggregated APIs put their words into it.
#[test]
fn a_servers_words_do_not_drive_the_terminal() {
    let said = "\u{1b}[2Jowned\u{202e}\r\n\u{9b}31m second line";
    for on in [list("secrets"), path("/apis"), path("/api/v1/namespaces/shop/configmaps"), path("/openapi/v3")] {
        for status in [401, 403, 418] {
            let test = stall().when(on.clone(), Act::Fail(status, said));
            for line in ["", "-o json", "-o yaml", "-o wide --show-all", "diff", "-v=6"] {
                let ran = test.run(line).stdout_has(&[]).stderr_has(&[]);
                let errors = ran.lines_of_stderr("error: ");
                let ran = ran.exit(if matches!(on.prefix(), Some("/openapi/v3")) && status != 401 { 0 } else { 2 });
                assert!(errors <= 1 && (line == "-v=6" || ran.lines_of_stderr("") == errors), "{line}: {errors}");
            }
        }
    }
}

// Answers that are none.

#[test]
fn only_an_api_servers_word_makes_an_object_missing() {
    let test = stall().change(|objects| objects.remove("ConfigMap", "cake"));
    test.run("-o json").exit(1).findings("stall", &["missing drift missing ConfigMap/cake -"]);
    let test = stall().when(path("/api/v1/namespaces/shop/configmaps"), Act::Raw(404, "<html>no such page</html>"));
    test.run("-o json").exit(2).reason("stall", "Unverified", &["the server answered 404: <html>no such page</html>"]);
    // An object that a listing left out is read before it is called missing.
    let test = stall().change(|objects| {
        edit(
            objects.get("ConfigMap", "cake"),
            "kubectl-label",
            "metadata: {labels: {app.kubernetes.io/managed-by: me}}",
        );
    });
    test.run("-o json").exit(1).reason("stall", "Drifted", &["1 changed"]);
}

#[test]
fn a_listing_that_ran_out_in_the_middle_begins_again_and_counts_nothing_twice() {
    let manifest = maps(12, "b");
    let test = Test::new().installed("many", 1, &manifest).change(|objects| {
        edit(objects.get("ConfigMap", "m3"), "kubectl-edit", "data: {a: c}");
    });
    test.server.page(3);
    let test =
        test.when(list("configmaps").later_page().after(1).times(1), Act::Fail(410, "the continue token is too old"));
    let mut ran = test.run("-o json").exit(1).findings("many", &["changed drift edited ConfigMap/m3 .data.a"]);
    assert_eq!(ran.release("many")["objects"]["compared"], 12);
    // A server that always forgets: object by object.
    test.server.no_more_faults();
    let test = test.when(list("configmaps").later_page(), Act::Fail(410, "the continue token is too old"));
    let mut ran = test.run("-o json").exit(1).findings("many", &["changed drift edited ConfigMap/m3 .data.a"]);
    assert_eq!(ran.release("many")["objects"]["compared"], 12);
}

#[test]
fn a_listing_of_records_that_ran_out_in_the_middle_begins_again() {
    let test = (1..=7).fold(Test::new(), |test, at| test.installed(&format!("r{at}"), 1, ""));
    test.server.page(2);
    let test = test.when(list("secrets").later_page().times(1), Act::Fail(410, "the continue token is too old"));
    let report = test.run("-o json").exit(0).json();
    assert_eq!(report["releases"].as_array().unwrap().len(), 7);
    test.server.no_more_faults();
    let test = test.when(list("secrets").later_page(), Act::Fail(410, "the continue token is too old"));
    test.run("-o json").exit(2).one_error(&["the continue token is too old"]).errors(&["Internal"]);
}

#[test]
fn a_listing_that_goes_round_in_circles_ends() {
    let test = Test::new().installed("many", 1, &maps(12, "b"));
    test.server.page(3);
    let circle = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":"from-3"},"items":null}"#;
    let test = test.when(list("configmaps").later_page(), Act::Say(circle));
    test.run("-o json").exit(0).reason("many", "InSync", &["12 objects"]);
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    let test = stall().when(path("/api/v1/namespaces/shop/secrets").times(1), Act::Later(429, 1));
    test.run("-o json").exit(0).reason("stall", "InSync", &[]).asked("/api/v1/namespaces/shop/secrets", 2);
}

/// Side by side, since most of the time is spent waiting before the program asks again.
fn at_once<T: Send>(cases: Vec<T>, check: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let check = &check;
            scope.spawn(move || check(case));
        }
    });
}

#[test]
fn a_passing_fault_is_passed_over() {
    let faults = vec![
        Act::Fail(500, "etcd"),
        Act::Fail(503, "apiserver not ready"),
        Act::Raw(502, "bad gateway"),
        Act::HangUp,
        Act::Cut,
    ];
    at_once(faults, |act| {
        let test = changed_bread().when(list("configmaps").times(3), act);
        test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]).asked("/api/v1/namespaces/shop/configmaps", 4);
    });
    at_once(vec![Act::Fail(500, "etcd"), Act::HangUp, Act::Cut], |act| {
        let test = changed_bread().when(path("/").times(3), act);
        test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]);
    });
}

#[test]
fn a_lasting_fault_of_the_records_is_one_error() {
    let faults = vec![
        (Act::Fail(500, "etcd is gone"), "the server answered 500: etcd is gone", "Unreachable"),
        (Act::Raw(504, ""), "the server answered 504: no reason given", "Unreachable"),
        (Act::HangUp, "broke off", "Unreachable"),
        (Act::Cut, "broke off", "Unreachable"),
        (Act::Raw(200, "<html>Welcome</html>"), "is not the JSON it should be", "Internal"),
        (Act::Say("{\"items\": 3}"), "is not the JSON it should be", "Internal"),
        (Act::Raw(302, ""), "302", "Unreachable"),
    ];
    at_once(faults, |(act, said, reason)| {
        let test = stall().when(list("secrets"), act);
        test.run("-o json").exit(2).one_error(&[said]).errors(&[reason]);
    });
}

#[test]
fn a_lasting_fault_of_one_kind_leaves_that_kind_unverified() {
    let faults = vec![
        (Act::Fail(500, "the conversion webhook failed"), "the server answered 500: the conversion webhook failed"),
        (Act::Cut, "broke off"),
        (Act::HangUp, "broke off"),
        (Act::Raw(200, "not JSON"), "is not the JSON it should be"),
    ];
    at_once(faults, |(act, said)| {
        let test = stall().when(path("/api/v1/namespaces/shop/configmaps"), act);
        test.run("-o json").exit(2).reason("stall", "Unverified", &["2 could not be told", said]);
    });
}

/// As when one of many custom resources cannot be converted: the listing fails as a whole, and so does that one alone.
#[test]
fn one_object_that_the_server_cannot_give_fails_alone() {
    let test = Test::new()
        .installed("many", 1, &maps(6, "b"))
        .change(|objects| edit(objects.get("ConfigMap", "m3"), "kubectl-edit", "data: {a: c}"))
        .when(list("configmaps"), Act::Fail(500, "conversion failed"))
        .when(get("configmaps").named("m0"), Act::Fail(500, "conversion failed"));
    test.run("-o json")
        .exit(2)
        .findings("many", &["unreadable unverified - ConfigMap/m0 -", "changed drift edited ConfigMap/m3 .data.a"]);
}

#[test]
fn a_kind_that_always_fails_is_not_asked_for_object_by_object() {
    let test = Test::new()
        .installed("many", 1, &maps(60, "b"))
        .when(path("/api/v1/namespaces/shop/configmaps"), Act::Fail(503, "nobody at home"));
    let ran = test.run("-o json").exit(2).reason("many", "Unverified", &["60 could not be told", "nobody at home"]);
    let requests = ran.requests().len();
    assert!(requests < 60, "{requests} requests");
}

/// Long enough for all that is answered, on a machine that has much else to do.
const PATIENCE: &str = "--request-timeout 4s";

#[test]
fn a_server_that_accepts_and_never_answers_is_given_up() {
    let silent = vec![(list("secrets"), Act::Silence), (list("secrets"), Act::Stall), (path("/apis"), Act::Silence)];
    at_once(silent, |(on, act)| {
        let test = stall().when(on, act);
        let said = ["no answer within 4s from http://127.0.0.1:", "--request-timeout"];
        test.run(&format!("{PATIENCE} -o json")).exit(2).one_error(&said).errors(&["Timeout"]);
    });
}

#[test]
fn a_kind_that_never_answers_is_unverified_and_waited_for_only_twice() {
    let silent = path("/api/v1/namespaces/shop/configmaps");
    let test = Test::new().installed("many", 1, &maps(60, "b")).when(silent, Act::Silence);
    let ran = test.run(&format!("{PATIENCE} -o json")).exit(2);
    let ran = ran.reason("many", "Unverified", &["60 could not be told", "no answer within 4s"]);
    assert_eq!(ran.paths().iter().filter(|path| path.contains("configmaps")).count(), 2);
}

#[test]
fn slow_and_broken_up_answers_are_answers() {
    let test = changed_bread().when(path("/"), Act::Drip);
    test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]);
}

#[test]
fn a_huge_page_is_read() {
    let test = Test::new().installed("many", 1, &maps(100, "b")).change(|objects| {
        objects.remove("ConfigMap", "m70");
        // Other people's, in the same listing: 6 MB.
        let label = json!({"app.kubernetes.io/managed-by": "Helm"});
        let text = "x".repeat(3_000);
        for at in 0..2_000 {
            let metadata = json!({"name": format!("other-{at}"), "namespace": "shop", "labels": label});
            objects
                .0
                .push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}));
        }
    });
    test.server.page(1_000_000);
    let ran = test.run("-o json").exit(1).findings("many", &["missing drift missing ConfigMap/m70 -"]);
    drop(ran.asked("/api/v1/namespaces/shop/configmaps", 1));
}

#[test]
fn a_far_cluster_sends_gzip_for_all_but_payloads() {
    let test = changed_bread().far_away();
    let ran = test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]);
    let plain: Vec<&str> =
        ran.requests().iter().filter(|(asked, _)| !asked.takes_gzip).map(|(asked, _)| asked.path.as_str()).collect();
    assert_eq!(plain, ["/api/v1/namespaces/shop/secrets/sh.helm.release.v1.stall.v2"]);
    let test = test.when(list("configmaps"), Act::Cut).when(get("configmaps"), Act::Cut);
    test.run("-o json").exit(2).reason("stall", "Unverified", &["2 could not be told"]);
}

#[test]
fn a_near_cluster_is_not_asked_for_gzip() {
    let ran = stall().run("-o json").exit(0).errors(&[]);
    assert!(ran.requests().iter().all(|(asked, _)| !asked.takes_gzip));
}

// Discovery and types.

#[test]
fn a_group_whose_server_is_away_is_unreadable_and_the_rest_is_judged() {
    let oven = "---\napiVersion: shop.example/v1\nkind: Oven\nmetadata: {name: big}\nspec: {heat: 220}\n";
    let manifest = STALL.to_owned() + oven;
    for discovery in [Discovery::Aggregated, Discovery::ByGroup] {
        let test = Test::new().installed("stall", 2, &manifest).change(|objects| {
            edit(objects.get("ConfigMap", "bread"), "kubectl-edit", "data: {flour: spelt}");
        });
        test.server.discovery(discovery);
        test.server.stale("shop.example");
        let test = test
            .when(path("/apis/shop.example/"), Act::Fail(503, "the server is currently unable to handle the request"));
        test.run("-o json")
            .exit(2)
            .errors(&[])
            .findings("stall", &[CHANGED_BREAD, "unreadable unverified - Oven/big -"])
            .reason("stall", "Drifted", &["1 changed", "1 could not be told", "shop.example"]);
        // Nothing of it is kept: the next run must see the group again.
        test.server.no_more_faults();
        test.server.fresh();
        test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]);
    }
}

#[test]
fn an_old_server_without_aggregated_discovery_is_read_group_by_group() {
    let test = changed_bread();
    test.server.discovery(Discovery::ByGroup);
    test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]).asked("/apis/apps/v1", 1);
    let test = test.when(path("/openapi/v3"), Act::Raw(404, "404 page not found\n"));
    test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]);
}

#[test]
fn a_server_that_serves_nothing_readable_is_one_error() {
    for (act, reason) in [
        (Act::Raw(200, "<html>Welcome</html>"), "Internal"),
        (Act::Say("{\"kind\": \"Pod\"}"), "Internal"),
        (Act::Forbid, "Forbidden"),
    ] {
        let test = stall().when(path("/api?"), Act::Drip).when(path("/apis"), act);
        test.run("-o json").exit(2).one_error(&["/apis"]).errors(&[reason]);
    }
}

#[test]
fn without_types_list_keys_come_from_managed_fields_and_the_report_says_so() {
    // The items stand in another order, which is a difference for a list whose keys nobody knows.
    let shuffled = |objects: &mut Objects| {
        let ports = &mut objects.get("Service", "web")["spec"]["ports"];
        *ports =
            json!([{"name": "admin", "port": 81, "protocol": "TCP"}, {"name": "http", "port": 80, "protocol": "TCP"}]);
    };
    let manifest = SHOP.replace(
        "ports: [{name: http, port: 80, protocol: TCP}]",
        "ports: [{name: http, port: 80, protocol: TCP}, {name: admin, port: 81, protocol: TCP}]",
    );
    for act in [
        Act::Raw(404, "404 page not found\n"),
        Act::Forbid,
        Act::Raw(200, "garbage"),
        Act::Say("{\"paths\": {}}"),
        Act::Say("{\"paths\": 7}"),
        Act::Fail(500, "no types today"),
    ] {
        let test = Test::new().installed("shop", 3, &manifest).change(shuffled).change(|objects| {
            edit(objects.get("Deployment", "web"), "kubectl-edit", "spec: {replicas: 6}");
        });
        let test = test.when(path("/openapi/v3"), act);
        let mut ran =
            test.run("-o json").exit(1).findings("shop", &["changed drift edited Deployment/web .spec.replicas"]);
        let notices = ran.release("shop")["notices"].as_array().unwrap().clone();
        assert!(notices.iter().any(|notice| notice["reason"] == "TypesMissing"), "{notices:?}");
    }
}

#[test]
fn one_document_of_types_that_cannot_be_had_costs_only_its_types() {
    for act in [Act::Raw(200, "garbage"), Act::Forbid, Act::Cut, Act::Say("{}")] {
        let test = changed_bread().when(path("/openapi/v3/api/v1"), act);
        test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]);
    }
}

#[test]
fn the_servers_version_is_no_condition() {
    let test = stall().when(path("/version"), Act::Forbid);
    let report = test.run("-o json").exit(0).json();
    assert!(report["cluster"]["version"].is_null());
}

// Payloads.

/// Every way in which a record can be broken, and the words for it.
fn broken() -> Vec<(&'static str, serde_json::Value, &'static str)> {
    let record = |name: &str| Record::new(name, 1, STALL);
    let whole = packed(record("any").release().to_string().as_bytes());
    let half = zipped(record("any").release().to_string().as_bytes());
    let half = STANDARD.encode(&half[..half.len() / 2]);
    // 272 MiB of nothing in 272 KiB.
    let bomb = STANDARD.encode(zipped(&vec![b' '; 1 << 20]).repeat(272));
    let deep = packed(format!("{{\"name\":{}1{}}}", "[".repeat(200_000), "]".repeat(200_000)).as_bytes());
    let ignored = record("any").release().to_string().replacen(
        '{',
        &format!("{{\"junk\":{}{},", "[".repeat(200_000), "]".repeat(200_000)),
        1,
    );
    let lacking = |key: &str| {
        let mut release = record("any").release();
        release.as_object_mut().unwrap().remove(key);
        packed(release.to_string().as_bytes())
    };
    vec![
        ("no-data", record("no-data").with_data(&serde_json::Value::Null), "its key `release` is missing or empty"),
        ("no-key", record("no-key").with_data(&json!({"else": "eA=="})), "its key `release` is missing or empty"),
        ("empty", record("empty").with_payload(""), "its key `release` is missing or empty"),
        ("half-base64", record("half-base64").with_payload(&whole[..101]), "not base64 text"),
        ("no-base64", record("no-base64").with_payload("*** hunter2 ***"), "not base64 text"),
        ("cut-gzip", record("cut-gzip").with_payload(&half), "does not unpack"),
        ("bomb", record("bomb").with_payload(&bomb), "unpacks to more than 268435456 bytes"),
        ("null", record("null").with_payload(&packed(b"null")), "holds JSON null"),
        ("no-json", record("no-json").with_payload(&packed(b"hunter2: {")), "not a release in JSON"),
        ("list", record("list").with_payload(&packed(b"[1, 2]")), "not a release in JSON"),
        ("deep", record("deep").with_payload(&deep), "not a release in JSON"),
        ("no-info", record("no-info").with_payload(&lacking("info")), "has no `info`"),
        ("no-name", record("no-name").with_payload(&lacking("name")), "has no `name`"),
        ("no-version", record("no-version").with_payload(&lacking("version")), "has no `version`"),
        // Not broken for Helm, nor for us: what is not read may be as deep as it likes; another release's payload.
        (
            "deep-junk",
            record("deep-junk").with_payload(&packed(ignored.as_bytes())),
            "says name deep-junk and its payload any",
        ),
    ]
}

#[test]
fn one_broken_record_hides_no_other() {
    let broken = broken();
    let test = broken.iter().fold(changed_bread(), |test, (_, object, _)| test.holds(object.clone()));
    let mut ran = test.run("-o json").exit(2).errors(&[]).reason("stall", "Drifted", &["1 changed"]);
    for (name, _, said) in &broken {
        let reason = if *name == "deep-junk" { "RevisionMismatch" } else { "Corrupt" };
        ran = ran.reason(name, reason, &[*said]);
    }
    assert!(!ran.shows("hunter2"), "an error quotes a payload");
}

#[test]
fn a_broken_newest_record_is_never_replaced_by_an_older_one() {
    let test = stall().holds(Record::new("stall", 3, "").with_payload("***"));
    test.run("-o json").exit(2).reason(
        "stall",
        "Corrupt",
        &["sh.helm.release.v1.stall.v3", "not base64 text", "kubectl delete secret sh.helm.release.v1.stall.v3"],
    );
    // Asked for by number, the older one is judged.
    test.run("stall --revision 2 -o json").exit(2).reason("stall", "Corrupt", &[]);
}

#[test]
fn a_broken_revision_hides_no_other_in_a_history() {
    let test = stall().holds(Record::new("stall", 1, STALL).status("superseded").with_payload("***"));
    let test = test.holds(Record::new("stall", 3, STALL).status("failed").with_payload(&packed(b"null")));
    test.run("history stall").exit(2).stdout_has(&["deployed"]).stderr_has(&["not base64 text", "holds JSON null"]);
    let mut ran = test.run("history stall -o json").exit(2).stderr_has(&["error: "]);
    let revisions = ran.json()["revisions"].as_array().unwrap().clone();
    assert_eq!(
        revisions.iter().map(|one| one["differences"].clone()).collect::<Vec<_>>(),
        [json!(null), json!(0), json!(null)]
    );
}

#[test]
fn data_that_is_not_base64_is_that_releases_trouble_alone() {
    let test = changed_bread().holds(Record::new("odd", 1, "").with_data(&json!({"release": "%%%"})));
    let ran = test.run("-o json").exit(2).reason("stall", "Drifted", &[]);
    drop(ran.reason("odd", "Unverified", &["is not base64"]));
}

#[test]
fn a_manifest_out_to_kill_the_parser_is_that_releases_trouble_alone() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
    let deep = format!("kind: ConfigMap\ndata: {}x{}\n", "[".repeat(20_000), "]".repeat(20_000));
    let block: String = (0..1_500).fold(String::new(), |mut text, level| {
        writeln!(text, "{}a:", " ".repeat(level)).unwrap();
        text
    });
    let half = format!("{STALL}---\nkind: [hunter2\n");
    let cases = [
        ("bomb", bomb.to_owned(), "excessive aliasing"),
        ("deep", deep, ""),
        ("block", block, ""),
        ("no-yaml", "\u{0}hunter2\n".to_owned(), "control characters"),
        ("half", half, "line "),
        ("text", "hunter2\n".to_owned(), ""),
        ("loop", "a: &a [*a]\n".to_owned(), "contains itself"),
    ];
    let test = cases
        .iter()
        .fold(changed_bread(), |test, (name, manifest, _)| test.holds(Record::new(name, 1, manifest).object()));
    let mut ran = test.run("-o json").exit(2).errors(&[]).reason("stall", "Drifted", &["1 changed"]);
    for (name, _, said) in cases {
        ran = ran.reason(name, if name == "half" { "Drifted" } else { "Unverified" }, &[said]);
    }
    assert!(!ran.shows("hunter2"), "an error quotes a manifest");
}

#[test]
fn a_live_object_of_nonsense_is_that_objects_trouble_alone() {
    let test = changed_bread().change(|objects| {
        let cake = objects.get("ConfigMap", "cake");
        let mut deep = json!("x");
        for _ in 0..400 {
            deep = json!([deep]);
        }
        cake["data"]["deep"] = deep;
        let seller = objects.get("ServiceAccount", "seller");
        seller["metadata"]["managedFields"] = json!([7, {"manager": 1, "fieldsV1": {"f:data": 3, "k:{": {}}}]);
    });
    let ran = test.run("-o json");
    drop(ran.exit(2).reason("stall", "Drifted", &["1 changed", "ConfigMap/cake"]));
}

// What changes meanwhile.

/// The record's next revision, with its objects as it wants them.
fn upgraded(objects: &mut Objects) {
    objects.put(Record::new("stall", 2, STALL).status("superseded").object());
    let mut next = Record::new("stall", 3, &STALL.replace("rye", "spelt"));
    next.resource_version = "200".to_owned();
    objects.put(next.object());
}

#[test]
fn a_release_upgraded_while_it_is_read_is_checked_again() {
    // Its bread is read as the new revision has it, while the old record is at hand.
    let test = changed_bread().when(list("secrets").after(1).times(1), Act::Change(upgraded));
    let mut ran = test.run("-o json").exit(0).findings("stall", &[]).reason("stall", "InSync", &["revision 3"]);
    assert_eq!(ran.release("stall")["revision"], 3);
}

#[test]
fn a_release_that_always_moves_is_unverified() {
    fn touch(objects: &mut Objects) {
        let record = objects.get("Secret", "sh.helm.release.v1.stall.v2");
        let version: u64 = record["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        record["metadata"]["resourceVersion"] = json!((version + 1).to_string());
    }
    let test = changed_bread().when(list("secrets"), Act::Change(touch));
    let mut ran = test
        .run("-o json")
        .exit(2)
        .reason("stall", "Unverified", &["1 could not be told", "changed while reading"])
        .findings("stall", &["changed unverified edited ConfigMap/bread .data.flour"])
        // Once to begin with, and after each of three judgements.
        .asked("/api/v1/namespaces/shop/secrets", 4);
    let finding = ran.release("stall")["findings"][0].clone();
    assert_eq!(
        [&finding["note"], &finding["class"], &finding["severity"]],
        [&json!("changed while reading"), &json!(null), &json!(null)]
    );
}

#[test]
fn a_release_uninstalled_while_it_is_read_is_no_drift() {
    fn uninstall(objects: &mut Objects) {
        objects.remove("Secret", "sh.helm.release.v1.stall.v2");
    }
    let test = stall().installed("shop", 3, SHOP).change(|objects| objects.remove("ConfigMap", "cake"));
    let test = test.when(list("secrets").after(1), Act::Change(uninstall));
    let report = test.run("-o json").exit(0).json();
    assert_eq!(report["releases"].as_array().unwrap().len(), 1);
    let test = stall().change(|objects| objects.remove("ConfigMap", "cake"));
    let test = test.when(list("secrets").after(1).times(1), Act::Change(uninstall));
    test.run("stall -o json").exit(2).one_error(&["\"stall\" was uninstalled while it was read"]).errors(&["NotFound"]);
}

#[test]
fn an_expected_release_uninstalled_while_it_is_read_is_not_passed_over() {
    fn uninstall(objects: &mut Objects) {
        objects.remove("Secret", "sh.helm.release.v1.stall.v2");
    }
    let test = stall().change(|objects| objects.remove("ConfigMap", "cake"));
    fs::write(test.folder.join("config.yaml"), "releases: [{namespace: shop, name: stall}]\n").unwrap();
    let test = test.when(list("secrets").after(1).times(1), Act::Change(uninstall));
    let said = "\"stall\" was uninstalled while it was read";
    test.run("--config config.yaml -o json").exit(2).one_error(&[said]).errors(&["NotFound"]);
}

#[test]
fn a_payload_that_is_gone_when_it_is_read_is_not_called_in_sync() {
    let test = stall().when(get("secrets"), Act::Fail(404, "secrets \"x\" not found"));
    test.run("-o json").exit(2).reason("stall", "Unverified", &["cannot be read"]);
}

// The machine.

#[cfg(unix)]
#[test]
fn a_signal_ends_it_without_half_a_report() {
    for signal in ["TERM", "INT"] {
        let test = changed_bread().when(list("configmaps"), Act::Silence);
        let mut command = test.command("-o json");
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        test.server.await_request("/api/v1/namespaces/shop/configmaps");
        let killed = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let finished =
            Finished { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        drop(test.ran(&format!("-o json, SIG{signal}"), finished).killed());
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_gone_without() {
    let test = changed_bread();
    fs::write(test.folder.join("cache"), "a file where the directory should be").unwrap();
    for _ in 0..2 {
        test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]).asked("/apis", 1);
    }
}

/// As a full disk: files can be made, but nothing can be written into them.
#[cfg(target_os = "linux")]
#[test]
fn a_cache_on_a_full_disk_is_gone_without() {
    let test = changed_bread();
    let drift = test.command("");
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" -o json"]).arg(drift.get_program());
    command
        .env_clear()
        .envs(drift.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", "/usr/bin:/bin");
    for _ in 0..2 {
        test.run_command(&mut command).exit(1).findings("stall", &[CHANGED_BREAD]).asked("/apis", 1);
    }
    assert_eq!(files(&test.cache()), Vec::<std::path::PathBuf>::new(), "half a file is left");
}

#[test]
fn damaged_cache_files_are_gone_without_and_made_anew() {
    let test = changed_bread();
    let cold = test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]).requests().len();
    let kept = files(&test.cache());
    assert!(kept.len() >= 2, "{kept:?}");
    let warm = test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]).requests().len();
    assert!(warm < cold);
    // The first line of each says whose it is.
    let head = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    type Damage = fn(Vec<u8>, usize) -> Vec<u8>;
    let damages: [Damage; 5] = [
        |_, _| Vec::new(),
        |bytes, head| bytes[..head].to_vec(),
        |bytes, head| bytes[..head + (bytes.len() - head) / 2].to_vec(),
        |bytes, head| [&bytes[..head], b"[[[[\"garbage\xff"].concat(),
        |bytes, _| bytes.iter().map(|byte| byte.wrapping_add(1)).collect(),
    ];
    for damage in damages {
        for file in &kept {
            let bytes = fs::read(file).unwrap();
            let head = head(&bytes);
            fs::write(file, damage(bytes, head)).unwrap();
        }
        test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]);
        let again = test.run("-o json").exit(1).findings("stall", &[CHANGED_BREAD]).requests().len();
        assert_eq!(again, warm, "the cache was not made anew");
    }
}

#[cfg(unix)]
#[test]
fn the_cache_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let test = stall();
    drop(test.run("-o json").exit(0).errors(&[]));
    for file in files(&test.cache()) {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0, "{}", file.display());
    }
}

#[test]
fn several_runs_at_once_share_one_cache() {
    let test = changed_bread();
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..4)
                .map(|_| {
                    let mut command = test.command("-o json");
                    scope.spawn(move || command.stdin(Stdio::null()).output().unwrap())
                })
                .collect();
            for run in runs {
                let output = run.join().unwrap();
                let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
                let finished =
                    Finished { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
                drop(test.ran("-o json", finished).exit(1).findings("stall", &[CHANGED_BREAD]));
            }
        });
    }
    assert!(files(&test.cache()).iter().all(|file| !file.to_string_lossy().contains(".writing-")));
}

// No way to the cluster.

#[test]
fn without_a_cluster_there_is_one_line_and_exit_2() {
    let test = stall();
    let refused = |line: &str, said: &[&str]| {
        for format in ["", " -o json"] {
            let ran = test.run(&format!("{line}{format}")).exit(2).one_error(said);
            assert_eq!(ran.requests().len(), 0);
        }
    };
    refused("--context other", &["no context \"other\" in the kubeconfig; it has test"]);
    refused("--kubeconfig nowhere", &["kubeconfig nowhere does not exist", "--kubeconfig", "KUBECONFIG"]);
    let kubeconfig = |text: &str| fs::write(test.folder.join("other"), text).unwrap();
    for (text, said) in [
        ("", "no context is current"),
        ("clusters: [", "kubeconfig other is not valid"),
        ("users: [{name: x, user: {token: [hunter2]}}]", "kubeconfig other is not valid"),
        ("\u{0}\u{1}hunter2", "kubeconfig other is not valid"),
        ("current-context: a", "no context \"a\" in the kubeconfig; it has none"),
        (
            "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]",
            "names the cluster \"b\", which the kubeconfig does not have",
        ),
        (
            "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\nclusters: [{name: b, cluster: {server: 'http://127.0.0.1:1'}}]",
            "names the user \"c\", which the kubeconfig does not have",
        ),
    ] {
        kubeconfig(text);
        refused("--kubeconfig other", &[said]);
    }
    refused("--kubeconfig .", &["kubeconfig . cannot be read"]);
    let mut command = test.command("-o json");
    command.env_remove("KUBECONFIG");
    drop(test.run_command(&mut command).exit(2).one_error(&["no kubeconfig, and not in a cluster"]));
}

#[test]
fn a_cluster_that_is_not_there_is_one_line_and_exit_2() {
    let test = stall();
    // Port 1 is nobody's.
    let said = ["connection refused at http://127.0.0.1:1: is the cluster running"];
    test.run("--server http://127.0.0.1:1").exit(2).one_error(&said);
    test.run("--server http://127.0.0.1:1 -o json").exit(2).one_error(&said).errors(&["Unreachable"]);
    let address = test.server.address();
    test.run(&format!("--server https://{address}")).exit(2).one_error(&["does not speak TLS"]);
    test.run("--server nonsense://x").exit(2).one_error(&["\"nonsense://x\" is not the URL of a server"]);
}

// Captures.

#[test]
fn a_capture_that_is_none_is_one_error_that_names_the_file() {
    let test = stall();
    test.run("capture --to whole.drift").exit(0).stderr("captured 1 release in whole.drift\n");
    let whole = fs::read(test.folder.join("whole.drift")).unwrap();
    let middle = whole.len() / 2;
    let mut flipped = whole.clone();
    flipped[middle] ^= 0x55;
    let header = json!({
        "apiVersion": "helm-drift/v1", "kind": "DriftCapture", "program": "0", "time": "2026-11-30T10:00:00Z",
        "cluster": {"context": null, "server": null, "version": null}, "masked": true,
    });
    let newer = header.to_string().replace("helm-drift/v1", "helm-drift/v9");
    for (name, bytes, said) in [
        ("empty", Vec::new(), "it is empty"),
        ("text", b"hello\n".to_vec(), "its first line is no header"),
        ("half", whole[..middle].to_vec(), "cut off or damaged after line"),
        ("short", whole[..5].to_vec(), "cut off or damaged after line 0"),
        ("flipped", flipped, "cut off or damaged after line"),
        ("newer", format!("{newer}\n").into_bytes(), "\"helm-drift/v9\", this program reads \"helm-drift/v1\""),
        ("kind", header.to_string().replace("DriftCapture", "DriftReport").into_bytes(), "cut off or damaged"),
        (
            "report",
            format!("{}\n", header.to_string().replace("DriftCapture", "DriftReport")).into_bytes(),
            "it is a DriftReport",
        ),
        (
            "bad-line",
            format!("{header}\n{{\"path\": hunter2\n").into_bytes(),
            "line 2 of the capture bad-line is not an answer",
        ),
        (
            "bad-answer",
            format!("{header}\n{{\"path\": 3}}\n").into_bytes(),
            "line 2 of the capture bad-answer is not an answer",
        ),
        (
            "page",
            format!("{header}\n{{\"path\":\"/api/v1/secrets\",\"status\":200,\"body\":[3]}}\n").into_bytes(),
            "line 2 of the capture page",
        ),
    ] {
        fs::write(test.folder.join(name), bytes).unwrap();
        for format in ["", " -o json"] {
            let ran = test.run(&format!("--from {name}{format}")).exit(2).one_error(&[said, name]);
            assert_eq!(ran.requests().len(), 0);
            assert!(!ran.shows("hunter2"));
        }
    }
    test.run("--from nowhere").exit(2).one_error(&["the capture nowhere cannot be read: no such file"]);
    test.run("--from .").exit(2).one_error(&["the capture . cannot be read"]);
}

#[test]
fn what_was_not_captured_is_unreadable_and_never_in_sync() {
    let test = stall().installed("shop", 3, SHOP);
    test.run("capture stall --to part.drift").exit(0).stderr("captured 1 release in part.drift\n");
    test.run("stall --from part.drift -o json").exit(0).reason("stall", "InSync", &[]);
    test.run("shop --from part.drift -o json").exit(2).one_error(&["is not in the capture"]).errors(&["NotFound"]);
    test.run("-A --from part.drift").exit(2).one_error(&["is not in the capture"]);
    // A capture of what could not be read is one of what could not be read.
    let test = test.when(path("/api/v1/namespaces/shop/configmaps"), Act::Forbid);
    test.run("capture stall --to less.drift").exit(0).stderr("captured 1 release in less.drift\n");
    test.run("stall --from less.drift -o json").exit(2).reason("stall", "Unverified", &["2 could not be told"]);
}

#[test]
fn a_capture_that_cannot_be_written_or_made_is_one_error() {
    let test = stall();
    test.run("capture --to nowhere/x")
        .exit(2)
        .one_error(&["the capture nowhere/x cannot be written: its directory does not exist"]);
    test.run("capture --to .").exit(2).one_error(&["cannot be written"]);
    let test = test.when(list("secrets"), Act::Forbid);
    test.run("capture --to x").exit(2).one_error(&["forbidden"]);
    assert!(!test.folder.join("x").exists());
}
