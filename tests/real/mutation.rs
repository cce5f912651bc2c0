//! Random changes to installed charts: the check must report each, exactly, and nothing else; undone, it must be silent again.
//!
//! `DRIFT_SEED` (a number), `DRIFT_MUTATIONS` (how many with each Helm), `DRIFT_CHARTS` (names, by comma) and `DRIFT_LONG=1` choose
//! what is run; without them the same mutations come every time.

use crate::support::cases::say;
use crate::support::charts::{Checked, Corpus, Site, Thing, is_long};
use crate::support::control_plane::Helm;
use crate::support::mutations::{Dice, Mutation, Verb, draw};
use crate::support::oracle::{Expected, Traces, expected, pruned, same};
use crate::support::rewind;
use crate::support::types::Types;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SEED: u64 = 1;

/// How many releases are worked on at a time.
const WORKERS: usize = 8;

/// Draws until a mutation comes that the server takes and that changes something.
const DRAWS: usize = 300;

/// After so many failures of one release the others are more of the same.
const ENOUGH: usize = 12;

#[test]
fn mutations_with_helm_3() {
    mutate(Helm::Three);
}

#[test]
fn mutations_with_helm_4() {
    mutate(Helm::Four);
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[derive(Default)]
struct Tally {
    passed: usize,
    /// By change and verdict.
    reported: BTreeMap<String, usize>,
    /// By the manager that made them.
    verbs: BTreeMap<&'static str, usize>,
    refused: usize,
    failures: Vec<String>,
}

fn mutate(helm: Helm) {
    let corpus = Corpus::of(helm);
    let _turn = corpus.turn();
    let seed = number("DRIFT_SEED").unwrap_or(SEED);
    let wanted = number("DRIFT_MUTATIONS").unwrap_or(if is_long() { 1000 } else { 100 });
    let types = Types::read(corpus.plane).unwrap();
    let started = Instant::now();
    let tally = Mutex::new(Tally::default());
    let queue = Mutex::new(shares(&corpus.sites, usize::try_from(wanted).unwrap()).into_iter());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some((site, share)) = queue.lock().unwrap().next() else { break };
                    let run = Run { helm, seed, types: &types, site, tally: &tally };
                    if let Err(problem) = run.mutations(share) {
                        let problem = format!("seed {seed} Helm {} {}: {problem}", helm.major(), site.name);
                        say(&problem);
                        tally.lock().unwrap().failures.push(problem);
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    say(&format!(
        "{} of {wanted} mutations passed with Helm {}, seed {seed}, on {} charts in {:.0} s ({} refused by the server); reported {:?}; by {:?}",
        tally.passed,
        helm.major(),
        corpus.sites.len(),
        started.elapsed().as_secs_f64(),
        tally.refused,
        tally.reported,
        tally.verbs,
    ));
    assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n"));
    assert_eq!(u64::try_from(tally.passed).unwrap(), wanted);
}

/// How many mutations each release gets: more where there is more to change. Most first, as they take longest.
fn shares(sites: &[Site], wanted: usize) -> Vec<(&Site, usize)> {
    let weight = |site: &Site| site.things.len().isqrt().max(1);
    let all: usize = sites.iter().map(weight).sum();
    let mut shares: Vec<(&Site, usize)> = sites.iter().map(|site| (site, wanted * weight(site) / all.max(1))).collect();
    let given: usize = shares.iter().map(|(_, share)| share).sum();
    let count = shares.len();
    for place in 0..wanted - given {
        shares[place % count].1 += 1;
    }
    shares.sort_by_key(|(_, share)| std::cmp::Reverse(*share));
    shares
}

struct Run<'a> {
    helm: Helm,
    seed: u64,
    types: &'a Types,
    site: &'a Site,
    tally: &'a Mutex<Tally>,
}

/// A mutation that was made.
struct Made<'a> {
    thing: &'a Thing,
    mutation: Mutation,
    before: Value,
    after: Option<Value>,
}

impl Run<'_> {
    fn mutations(&self, share: usize) -> Result<(), String> {
        let mut dice = Dice::new(self.seed, &format!("{} {}", self.site.name, self.helm.major()));
        let baseline = self.site.check()?;
        let mut failed = 0;
        for place in 0..share {
            let made = self.make(&mut dice)?;
            let problems = self.one(&made, &baseline);
            // Whatever was found, the next mutation starts from the beginning.
            rewind::undo(self.site.namespace.plane, made.thing, &made.before, made.mutation.verb.manager())?;
            rewind::forget(self.site.namespace.plane, made.thing, &made.before)?;
            let problems = problems?;
            let mut tally = self.tally.lock().unwrap();
            if problems.is_empty() {
                tally.passed += 1;
                *tally.verbs.entry(made.mutation.verb.manager()).or_default() += 1;
                continue;
            }
            failed += 1;
            let failure = format!(
                "seed {} Helm {} {} mutation {place}: {} {}\n    {}",
                self.seed,
                self.helm.major(),
                self.site.name,
                made.thing.says(),
                short(&made.mutation.told, 600),
                problems.join("\n    ")
            );
            say(&format!("FAIL {failure}"));
            tally.failures.push(failure);
            if failed >= ENOUGH {
                return Err("too many failures".to_owned());
            }
        }
        Ok(())
    }

    /// Draws a mutation that the server takes and that changes what is stored.
    fn make(&self, dice: &mut Dice) -> Result<Made<'_>, String> {
        let plane = self.site.namespace.plane;
        let mut kinds: Vec<&str> = self.site.things.iter().map(|thing| thing.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut last = String::new();
        for _ in 0..DRAWS {
            // By kind first, or a chart's many rules and dashboards would leave no room for the rest.
            let kind = *dice.pick(&kinds).ok_or("no objects")?;
            let things: Vec<&Thing> = self.site.things.iter().filter(|thing| thing.kind == kind).collect();
            let thing = *dice.pick(&things).ok_or("no objects")?;
            let before = rewind::read(plane, thing)?.ok_or_else(|| format!("{} is not there", thing.url))?;
            let Some(mutation) = draw(dice, self.types, thing, &before) else { continue };
            let request = &mutation.request;
            if let Err(error) = plane.request_as(request.method, &request.url, request.content_type, &request.body) {
                last = format!("{}: {error}", mutation.told);
                self.tally.lock().unwrap().refused += 1;
                continue;
            }
            if mutation.verb == Verb::Delete {
                rewind::gone(plane, thing)?;
                return Ok(Made { thing, mutation, before, after: None });
            }
            let mut after = rewind::read(plane, thing)?;
            if mutation.author.traces != Traces::Kept
                && after.as_ref().is_some_and(|after| pruned(after) != pruned(&before))
            {
                rewind::cover(plane, thing, &mutation.author)?;
                after = rewind::read(plane, thing)?;
            }
            if mutation.author.traces == Traces::Kept
                && is_tracked(&before)
                && after.as_ref().is_some_and(|after| !is_tracked(after))
            {
                // An item without its key: the server gives up tracking owners, so who did it can no longer be expected.
                rewind::undo(plane, thing, &before, mutation.verb.manager())?;
                continue;
            }
            if after.as_ref().is_some_and(|after| pruned(after) != pruned(&before)) {
                return Ok(Made { thing, mutation, before, after });
            }
            // Nothing came of it but perhaps an owner.
            rewind::forget(plane, thing, &before)?;
        }
        Err(format!("no mutation in {DRAWS} draws; the last refusal: {last}"))
    }

    /// The problems with one mutation: what is reported of it, and what after somebody took it back.
    fn one(&self, made: &Made<'_>, baseline: &Checked) -> Result<Vec<String>, String> {
        let plane = self.site.namespace.plane;
        let mut after = made.after.clone();
        let mut problems = Vec::new();
        for _ in 0..3 {
            let checked = self.site.check()?;
            let expected = expected(self.types, made.thing, &made.before, after.as_ref(), &made.mutation.author);
            problems = compare(made, after.as_ref(), &expected, &checked, baseline);
            let now = rewind::read(plane, made.thing)?;
            if problems.is_empty() {
                let mut tally = self.tally.lock().unwrap();
                for one in &expected {
                    *tally.reported.entry(format!("{} {}", one.change, one.verdict)).or_default() += 1;
                }
                if expected.is_empty() {
                    *tally.reported.entry("nothing".to_owned()).or_default() += 1;
                }
                break;
            }
            if now.as_ref().map(pruned) == after.as_ref().map(pruned) {
                break;
            }
            // A controller wrote in between: what counts is what is there now.
            after = now;
        }
        if !problems.is_empty() {
            return Ok(problems);
        }
        rewind::undo(plane, made.thing, &made.before, made.mutation.verb.manager())?;
        let checked = self.site.check()?;
        for finding in news(&checked, baseline) {
            problems.push(format!("still reported after it was undone: {}", brief(finding)));
        }
        Ok(problems)
    }
}

/// Whether the server keeps a record of who owns what in the object.
fn is_tracked(object: &Value) -> bool {
    object["metadata"]["managedFields"].as_array().is_some_and(|entries| !entries.is_empty())
}

/// What is reported otherwise than it should be.
fn compare(
    made: &Made<'_>,
    after: Option<&Value>,
    expected: &[Expected],
    checked: &Checked,
    baseline: &Checked,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut left: Vec<&Value> = checked.findings().filter(|finding| !is_in(finding, baseline)).collect();
    for want in expected {
        let is_it = |finding: &&Value| {
            is_about(finding, made.thing)
                && finding["change"] == want.change
                && finding["path"] == json!(want.path)
                && finding["verdict"] == want.verdict
        };
        let Some(place) = left.iter().position(is_it) else {
            let path = want.path.as_deref().unwrap_or_default();
            let (desired, live) = (short(&want.desired.to_string(), 300), short(&want.live.to_string(), 300));
            problems.push(format!("not reported: {} {} {path} {desired} -> {live}", want.verdict, want.change));
            continue;
        };
        let hit = left.remove(place);
        if hit["manager"]["name"] != json!(want.manager) {
            problems.push(format!("manager {}, expected {:?}: {}", hit["manager"], want.manager, brief(hit)));
        }
        if want.change == "missing" {
            continue;
        }
        if hit["masked"] != want.masked {
            problems.push(format!("masked {}, expected {}: {}", hit["masked"], want.masked, brief(hit)));
        }
        for (key, value) in [("desired", &want.desired), ("live", &want.live)] {
            if !same(&hit[key], value) {
                let (is, wanted) = (short(&hit[key].to_string(), 300), short(&value.to_string(), 300));
                problems.push(format!("{key} {is}, expected {wanted}: {}", brief(hit)));
            }
        }
        let pointed = hit["pointer"].as_str().and_then(|pointer| after?.pointer(pointer));
        if !want.masked && want.change != "removed" && !pointed.is_some_and(|value| same(value, &want.live)) {
            problems.push(format!("pointer {} does not lead to the live value: {}", hit["pointer"], brief(hit)));
        }
    }
    // What is expected of a known writer may come along; drift and what could not be told may not.
    for finding in left.iter().filter(|finding| finding["verdict"] == "drift" || finding["verdict"] == "unverified") {
        problems.push(format!("reported but not expected: {}", brief(finding)));
    }
    for finding in left.iter().filter(|finding| finding["verdict"] == "expected" && finding["change"] != "added") {
        problems.push(format!("expected by no rule: {}", brief(finding)));
    }
    let any = |verdict: &str| expected.iter().any(|one| one.verdict == verdict);
    let code = match (any("unverified"), any("drift")) {
        (true, _) => Some(2),
        (false, true) => Some(1),
        (false, false) => baseline.code,
    };
    if checked.code != code {
        problems
            .push(format!("exit {:?}, expected {code:?}: {}", checked.code, checked.report["releases"][0]["message"]));
    }
    problems
}

/// Drift, and what could not be told, that was not there before.
fn news<'a>(checked: &'a Checked, baseline: &'a Checked) -> impl Iterator<Item = &'a Value> {
    checked
        .findings()
        .filter(|finding| finding["verdict"] == "drift" || finding["verdict"] == "unverified")
        .filter(|finding| !is_in(finding, baseline))
}

fn is_in(finding: &Value, baseline: &Checked) -> bool {
    let key = |finding: &Value| json!([finding["object"], finding["change"], finding["path"], finding["verdict"]]);
    baseline.findings().any(|other| key(other) == key(finding))
}

fn is_about(finding: &Value, thing: &Thing) -> bool {
    let object = &finding["object"];
    object["kind"] == thing.kind.as_str()
        && object["name"] == thing.name.as_str()
        && object["group"] == thing.group()
        && object["namespace"] == json!(thing.namespace)
}

fn brief(finding: &Value) -> String {
    let text = |key: &str| finding[key].as_str().unwrap_or_default();
    format!(
        "{} {} {}/{} {} {} -> {} (cause {}, manager {})",
        text("verdict"),
        text("change"),
        finding["object"]["kind"].as_str().unwrap_or_default(),
        finding["object"]["name"].as_str().unwrap_or_default(),
        text("path"),
        short(&finding["desired"].to_string(), 200),
        short(&finding["live"].to_string(), 200),
        text("cause"),
        finding["manager"]["name"],
    )
}

fn short(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(characters).collect::<String>())
}

#[test]
fn every_release_gets_its_share() {
    let _ = Duration::ZERO;
    assert!(shares(&[], 0).is_empty());
}
