//! Public charts whose objects somebody deleted and created again from the manifest: who creates an object owns all its defaults, and
//! none of them may be taken for an addition. Then Helm upgrades over it, with the same silence.

use crate::support::cases::say;
use crate::support::charts::{Checked, Corpus, Thing, check};
use crate::support::control_plane::Helm;
use crate::support::rewind;
use serde_json::{Value, json};
use std::sync::Mutex;

/// Who creates the objects.
const MANAGER: &str = "kubectl-create";

/// Others' objects hang on these: resources on their definition, pods on claims.
const LEFT_ALONE: &[&str] = &["CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"];

#[test]
fn recreated_objects_of_helm_3_show_nothing() {
    recreate(Corpus::of(Helm::Three));
}

#[test]
fn recreated_objects_of_helm_4_show_nothing() {
    recreate(Corpus::of(Helm::Four));
}

fn recreate(corpus: &Corpus) {
    let _turn = corpus.turn();
    let saved: Mutex<Vec<(&Thing, Value)>> = Mutex::default();
    let mut problems = corpus.for_each(|site| {
        for thing in site.things.iter().rev().filter(|thing| is_recreated(thing)) {
            let before = rewind::read(corpus.plane, thing)?.ok_or_else(|| format!("{} is not there", thing.url))?;
            saved.lock().unwrap().push((thing, before));
            let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"});
            let answer = corpus.plane.request("DELETE", &thing.url, &body);
            answer.map_err(|error| format!("DELETE {}: {error}", thing.url))?;
            rewind::gone(corpus.plane, thing)?;
        }
        Ok(())
    });
    // Webhooks of one chart are in the way of another's objects.
    for webhooks in [false, true] {
        problems.extend(corpus.for_each(|site| {
            let mut things = site.things.iter().filter(|thing| is_recreated(thing) && is_webhook(thing) == webhooks);
            things.try_for_each(|thing| create(corpus, thing))
        }));
    }
    let saved = saved.into_inner().unwrap();
    let checked = check(corpus.plane, &["-A"]).unwrap();
    problems.extend(differences(&checked));
    say(&format!(
        "{} objects of Helm {} recreated, checked in {:.1} s",
        saved.len(),
        corpus.helm.major(),
        checked.took.as_secs_f64()
    ));
    problems.extend(corpus.for_each(|site| {
        let place = corpus.plane.folder(&format!("charts/{}", site.name));
        let place = place.to_string_lossy();
        let mut upgrade = vec!["upgrade", &site.name, &*place, "-n", &site.name];
        // Values in another spelling are conflicts to a server-side apply, equal as they are.
        upgrade.extend((corpus.helm == Helm::Four).then_some("--force-conflicts"));
        site.namespace.helm(corpus.helm, &upgrade).map(drop)
    }));
    let upgraded = check(corpus.plane, &["-A"]).unwrap();
    problems.extend(differences(&upgraded).into_iter().map(|finding| format!("after an upgrade: {finding}")));
    for (thing, before) in &saved {
        problems.extend(rewind::forget(corpus.plane, thing, before).err());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!((checked.code, upgraded.code), (Some(0), Some(0)), "{}", checked.report["errors"]);
}

fn is_recreated(thing: &Thing) -> bool {
    !LEFT_ALONE.contains(&thing.kind.as_str())
}

fn is_webhook(thing: &Thing) -> bool {
    thing.group() == "admissionregistration.k8s.io"
}

/// From the manifest, as a person would.
fn create(corpus: &Corpus, thing: &Thing) -> Result<(), String> {
    let mut body = thing.desired.clone();
    if let Some(namespace) = &thing.namespace {
        body["metadata"]["namespace"] = json!(namespace);
    }
    let url = format!("{}?fieldManager={MANAGER}", thing.collection);
    corpus.plane.request("POST", &url, &body).map(drop).map_err(|error| format!("POST {}: {error}", thing.url))
}

fn differences(checked: &Checked) -> Vec<String> {
    let counts = |finding: &&Value| {
        let is_addition = finding["change"] == "added" && finding["verdict"] == "expected";
        !is_addition
    };
    checked.findings().filter(counts).map(ToString::to_string).collect()
}
