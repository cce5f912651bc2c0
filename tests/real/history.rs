//! `drift history` with real Helm: a roll-back by hand shows as another revision that the live state is like.

use crate::support::control_plane::{Helm, control_plane};
use crate::support::web::web;
use serde_json::{Value, json};

const TEMPLATE: &str = concat!(
    web!(r#"[{name: web, image: "registry.example/web:{{ .Values.tag }}"}]"#),
    r#"---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: {{ .Values.mode }}}
{{- if eq .Values.mode "slow" }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: extra}
{{- end }}
"#
);

fn differences(history: &Value) -> Vec<Value> {
    history["revisions"].as_array().unwrap().iter().map(|one| one["differences"].clone()).collect()
}

#[test]
fn a_roll_back_by_hand_is_visible() {
    for helm in [Helm::Three, Helm::Four] {
        let _slot = control_plane().slot();
        let namespace = control_plane().namespace("history");
        let chart = namespace.chart(TEMPLATE);
        namespace.helm(helm, &["install", "demo", &chart, "--set", "tag=1,mode=fast"]).unwrap();
        namespace.helm(helm, &["upgrade", "demo", &chart, "--set", "tag=2,mode=fast"]).unwrap();
        namespace.helm(helm, &["upgrade", "demo", &chart, "--set", "tag=3,mode=slow"]).unwrap();
        let before = namespace.drift(&["history", "demo", "-o", "json"], "");
        // Image, mode, and an object that the other revisions do not have.
        assert_eq!((before.code, differences(&before.json())), (0, vec![json!(3), json!(3), json!(0)]));

        namespace.kubectl(&["set", "image", "deployment/web", "web=registry.example/web:2"], "").unwrap();
        namespace.kubectl(&["patch", "configmap", "settings", "-p", r#"{"data":{"mode":"fast"}}"#], "").unwrap();
        let half = namespace.drift(&["history", "demo", "-o", "json"], "");
        assert_eq!(differences(&half.json()), [json!(2), json!(1), json!(2)]);
        namespace.kubectl(&["delete", "configmap", "extra"], "").unwrap();
        let after = namespace.drift(&["history", "demo", "-o", "json"], "");
        let history = after.json();
        assert_eq!((after.code, differences(&history)), (0, vec![json!(1), json!(0), json!(3)]));
        assert_eq!(
            (&history["kind"], &history["current"], &history["fitting"]),
            (&json!("DriftHistory"), &json!(3), &json!([2]))
        );
        assert_eq!(
            history["message"],
            json!("the live state is as in revision 2, but revision 3 is current: rolled back by hand?")
        );

        let table = namespace.drift(&["history", "demo"], "").stdout;
        let told: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(told[0], ["REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION", "DESCRIPTION", "DIFFERENCES"]);
        let cells = |row: usize| [told[row][0], told[row][2], told[row][3], told[row][4], told[row][5], told[row][6]];
        assert_eq!(cells(1), ["1", "superseded", "demo-1.0.0", "1.4", "Install complete", "1"]);
        assert_eq!(cells(3), ["3", "deployed", "demo-1.0.0", "1.4", "Upgrade complete", "3"]);
    }
}

#[test]
fn what_cannot_be_told_is_trouble() {
    let _slot = control_plane().slot();
    let namespace = control_plane().namespace("history");
    let chart = namespace.chart(TEMPLATE);
    namespace.helm(Helm::Four, &["install", "demo", &chart, "--set", "tag=1,mode=fast"]).unwrap();
    namespace.helm(Helm::Four, &["upgrade", "demo", &chart, "--set", "tag=2,mode=fast"]).unwrap();
    let absent = namespace.drift(&["history", "dem"], "");
    assert_eq!((absent.code, absent.stdout.as_str()), (2, ""));
    assert!(absent.stderr.contains("\"dem\" not found"), "{}", absent.stderr);

    let payload = r#"{"data":{"release":"bm90IGEgcmVsZWFzZQ=="}}"#;
    namespace.kubectl(&["patch", "secret", "sh.helm.release.v1.demo.v1", "-p", payload], "").unwrap();
    let corrupt = namespace.drift(&["history", "demo", "-o", "json"], "");
    assert_eq!((corrupt.code, differences(&corrupt.json())), (2, vec![Value::Null, json!(0)]));
    assert!(corrupt.stderr.contains("sh.helm.release.v1.demo.v1"), "{}", corrupt.stderr);
}
