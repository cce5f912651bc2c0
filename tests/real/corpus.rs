//! Public charts, freshly installed: nothing may differ. Then what writes in every cluster writes: still nothing may.

use crate::support::bystanders;
use crate::support::cases::say;
use crate::support::charts::{Checked, Corpus, Thing, check};
use crate::support::control_plane::Helm;
use crate::support::rewind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// `changed` and `removed` findings of a fresh install, whatever their verdict, with why they are right. Everything else would be an
/// excuse that hides a misreading of the manifest.
const REWRITTEN: &[(&str, &str, &str)] = &[];

#[test]
fn fresh_charts_with_helm_3_show_nothing() {
    show_nothing(Corpus::of(Helm::Three));
}

#[test]
fn fresh_charts_with_helm_4_show_nothing() {
    show_nothing(Corpus::of(Helm::Four));
}

fn show_nothing(corpus: &Corpus) {
    let fresh = &corpus.fresh;
    let releases = fresh.report["releases"].as_array().unwrap();
    let objects: usize = corpus.sites.iter().map(|site| site.things.len()).sum();
    say(&format!(
        "fresh with Helm {}: {} charts, {objects} objects, findings {:?}, checked in {:.1} s",
        corpus.helm.major(),
        releases.len(),
        tally(fresh),
        fresh.took.as_secs_f64()
    ));
    assert_eq!(fresh.report["errors"], serde_json::json!([]));
    let mut problems = Vec::new();
    for site in &corpus.sites {
        match releases.iter().find(|release| release["name"] == site.name.as_str()) {
            Some(release) => {
                let counts = &release["objects"];
                let total = site.things.len();
                if release["reason"] != "InSync" || counts["compared"] != total || counts["total"] != total {
                    let (reason, message) = (&release["reason"], &release["message"]);
                    problems.push(format!("{}: {reason} {message}, {counts}, the manifest has {total}", site.name));
                }
            }
            None => problems.push(format!("{}: not reported", site.name)),
        }
    }
    for finding in fresh.findings() {
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        let is_addition = text("change") == "added" && text("verdict") == "expected";
        let kind = finding["object"]["kind"].as_str().unwrap_or_default();
        let known = REWRITTEN.iter().any(|(of, path, _)| *of == kind && *path == text("path"));
        if !(is_addition || known && text("verdict") == "expected") {
            problems.push(finding.to_string());
        }
    }
    assert_eq!(fresh.code, Some(0));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn bystanders_that_write_to_charts_of_helm_3_are_no_drift() {
    let_bystanders_write(Corpus::of(Helm::Three));
}

#[test]
fn bystanders_that_write_to_charts_of_helm_4_are_no_drift() {
    let_bystanders_write(Corpus::of(Helm::Four));
}

fn let_bystanders_write(corpus: &Corpus) {
    let _turn = corpus.turn();
    let kubeconfig = std::fs::read_to_string(corpus.plane.kubeconfig()).unwrap();
    let kubeconfig: Value = serde_json::from_str(&kubeconfig).unwrap();
    let certificate = kubeconfig.pointer("/clusters/0/cluster/certificate-authority-data").unwrap().as_str().unwrap();
    let written: Mutex<Vec<(&Thing, Value, usize)>> = Mutex::default();
    let mut problems = corpus.for_each(|site| {
        bystanders::autoscalers(corpus.plane, site)?;
        for thing in &site.things {
            let saved = rewind::read(corpus.plane, thing)?.ok_or_else(|| format!("{} is not there", thing.url))?;
            let writes = bystanders::write(corpus.plane, site, thing, &saved, certificate)?;
            if writes > 0 {
                written.lock().unwrap().push((thing, saved, writes));
            }
        }
        Ok(())
    });
    let checked = check(corpus.plane, &["-A"]).unwrap();
    let written = written.into_inner().unwrap();
    for (thing, saved, _) in &written {
        problems.extend(bystanders::leave(corpus.plane, thing, saved).err());
    }
    let writes: usize = written.iter().map(|(_, _, writes)| writes).sum();
    say(&format!(
        "{writes} writes of bystanders to {} objects with Helm {}: findings {:?}",
        written.len(),
        corpus.helm.major(),
        tally(&checked)
    ));
    problems.extend(
        checked
            .findings()
            .filter(|finding| finding["verdict"] == "drift" || finding["verdict"] == "unverified")
            .map(ToString::to_string),
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(checked.code, Some(0), "{}", checked.report["errors"]);
    // What was written is seen, and put down to its writer.
    for cause in ["autoscaler", "bookkeeping", "controller", "injected", "restarted"] {
        assert!(checked.findings().any(|finding| finding["cause"] == cause), "nothing is put down to {cause}");
    }
    let after = check(corpus.plane, &["-A"]).unwrap();
    assert_eq!(tally(&after), tally(&corpus.fresh), "all is as it was");
}

/// How many findings there are, by verdict, change and cause.
fn tally(checked: &Checked) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for finding in checked.findings() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = format!("{} {} {}", text(&finding["verdict"]), text(&finding["change"]), text(&finding["cause"]));
        *tally.entry(key).or_default() += 1;
    }
    tally
}
