//! What the user says about differences: ignore rules, more known writers, values that must not be shown. A rule marks a finding
//! and never touches an object. Knows nothing of the file that the rules stand in, nor of how a finding was made.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::finding::{Cause, Change, Class, Finding, Fix, Manager, Severity, Verdict};
use super::flux;
use super::object::{FieldPath, Gvk, ObjectRef};
use super::pattern::{self, Pattern, PatternError};
use super::release::ReleaseKey;
use super::selector::Selector;
use super::writers::glob;

/// Annotation by which a chart gives fields of its own object away. Only the manifest's counts, so that nobody hides a change
/// by annotating what they changed.
pub(crate) const ANNOTATION: &str = "helm-drift/ignore";

/// Everything that the configuration says about differences.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rules {
    pub(crate) ignore: Vec<Rule>,
    pub(crate) writers: Vec<Writer>,
    pub(crate) sensitive: Vec<Sensitive>,
}

/// One ignore rule; what is empty or absent restricts nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// Where it begins in its file, from 1.
    pub(crate) line: u64,
    /// `None`: the whole object, a missing one included.
    pub(crate) path: Option<Pattern>,
    pub(crate) kinds: Kinds,
    /// Globs, as the next three.
    pub(crate) names: Vec<String>,
    /// Of the object; of its release for one without a namespace.
    pub(crate) namespaces: Vec<String>,
    pub(crate) releases: Vec<ReleaseGlob>,
    /// All that hold the finding's path.
    pub(crate) managers: Vec<String>,
    /// On the desired object's labels.
    pub(crate) labels: Option<Selector>,
    pub(crate) reason: String,
    pub(crate) expires: Option<Expiry>,
}

/// When a rule ends, and the text that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    pub(crate) at: Timestamp,
    pub(crate) text: String,
}

/// `namespace/name`, each a glob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReleaseGlob {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ReleaseGlob {
    fn matches(&self, key: &ReleaseKey) -> bool {
        glob(&self.namespace, &key.namespace) && glob(&self.name, &key.name)
    }
}

/// `Kind` in any group, or `Kind.group`; globs, whatever the case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(Vec<String>);

impl Kinds {
    pub(crate) fn new(kinds: impl IntoIterator<Item = String>) -> Self {
        Self(kinds.into_iter().collect())
    }

    fn include(&self, gvk: &Gvk) -> bool {
        self.0.is_empty()
            || self.0.iter().any(|pattern| {
                let name = if pattern.contains('.') { format!("{}.{}", gvk.kind, gvk.group) } else { gvk.kind.clone() };
                glob(&pattern.to_lowercase(), &name.to_lowercase())
            })
    }
}

/// Who may change what, beside the table of known writers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Writer {
    /// A glob.
    pub(crate) manager: String,
    pub(crate) paths: Vec<Pattern>,
    pub(crate) kinds: Kinds,
    pub(crate) reason: Option<String>,
}

impl Writer {
    /// Whether all of these managers are this writer, and it may write there.
    pub(crate) fn explains(&self, gvk: &Gvk, path: &FieldPath, managers: &[&Manager]) -> bool {
        !managers.is_empty()
            && managers.iter().all(|manager| glob(&self.manager, &manager.name))
            && self.kinds.include(gvk)
            && self.paths.iter().any(|pattern| pattern.covers(path))
    }
}

/// What must not be shown, beside the values of Secrets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sensitive {
    pub(crate) path: Pattern,
    pub(crate) kinds: Kinds,
    pub(crate) names: Vec<String>,
}

/// Where kubectl keeps a copy of what it applied, the sensitive value included.
const LAST_APPLIED: &str = r#".metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#;

/// Whether the value at this path of an object is, lies in, or holds one that must not be shown.
pub(crate) fn hides(sensitive: &[Sensitive], object: &ObjectRef, path: &FieldPath, value: &Value) -> bool {
    let mut here = sensitive
        .iter()
        .filter(|one| one.kinds.include(&object.gvk) && any_glob(&one.names, &object.name))
        .map(|one| &one.path)
        .peekable();
    let copied = here.peek().is_some() && is_met(LAST_APPLIED, path, value);
    copied || here.any(|pattern| pattern.meets(path, value))
}

/// Changes every value of an object that must not be shown; says whether there was any.
pub(crate) fn each_hidden(sensitive: &[Sensitive], gvk: &Gvk, object: &mut Value, change: &dyn Fn(&mut Value)) -> bool {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut here = sensitive
        .iter()
        .filter(|one| one.kinds.include(gvk) && any_glob(&one.names, &name))
        .map(|one| &one.path)
        .peekable();
    let copy = LAST_APPLIED.parse::<Pattern>().ok().filter(|_| here.peek().is_some());
    here.chain(&copy).fold(false, |any, pattern| pattern.each(object, change) | any)
}

fn is_met(pattern: &str, path: &FieldPath, value: &Value) -> bool {
    pattern.parse::<Pattern>().is_ok_and(|pattern| pattern.meets(path, value))
}

/// What a rule is to a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Covers,
    /// It names something inside what is reported as one, so it does not cover it.
    Inside,
    Apart,
}

impl Rule {
    /// In effect at this time.
    pub(crate) fn is_alive(&self, now: Timestamp) -> bool {
        self.expires.as_ref().is_none_or(|expiry| now < expiry.at)
    }

    /// Whether objects of this release may be meant.
    pub(crate) fn concerns(&self, release: &ReleaseKey) -> bool {
        self.releases.is_empty() || self.releases.iter().any(|one| one.matches(release))
    }

    fn standing(&self, finding: &Finding, release: &ReleaseKey, desired: Option<&Value>) -> Standing {
        let object = &finding.object;
        let namespace = object.namespace.as_ref().unwrap_or(&release.namespace);
        let selected = self.concerns(release)
            && self.kinds.include(&object.gvk)
            && any_glob(&self.names, &object.name)
            && any_glob(&self.namespaces, namespace)
            && (self.managers.is_empty() || self.is_held(finding))
            && self.labels.as_ref().is_none_or(|selector| desired.is_some_and(|body| selector.matches(&labels(body))));
        match (&self.path, &finding.path) {
            _ if !selected => Standing::Apart,
            (None, _) => Standing::Covers,
            (Some(pattern), Some(path)) if pattern.covers(path) => Standing::Covers,
            (Some(pattern), Some(path)) if pattern.reaches_into(path) => Standing::Inside,
            (Some(_), _) => Standing::Apart,
        }
    }

    /// Somebody holds it, and everybody who does is among the rule's managers: a second hand is not hidden behind the first.
    fn is_held(&self, finding: &Finding) -> bool {
        let mut holders = finding.manager.iter().chain(&finding.managers).peekable();
        holders.peek().is_some() && holders.all(|holder| any_glob(&self.managers, &holder.name))
    }

    /// `.spec.replicas of Deployment.apps`
    pub(crate) fn title(&self) -> String {
        let what = self.path.as_ref().map_or_else(|| "whole objects".to_owned(), Pattern::to_string);
        if self.kinds.0.is_empty() { what } else { format!("{what} of {}", self.kinds.0.join(", ")) }
    }
}

/// Any of them; none: all.
fn any_glob(patterns: &[String], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| glob(pattern, text))
}

pub(super) fn labels(body: &Value) -> BTreeMap<String, String> {
    texts(body.pointer("/metadata/labels"))
}

pub(super) fn texts(map: Option<&Value>) -> BTreeMap<String, String> {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A rule of the configuration met a finding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hit {
    /// Place among the ignore rules.
    pub(crate) rule: usize,
    /// Or reaches inside it.
    pub(crate) covers: bool,
    pub(crate) release: ReleaseKey,
    pub(crate) object: ObjectRef,
    pub(crate) path: Option<FieldPath>,
    pub(crate) change: Change,
}

/// The rules as they apply to one release at one time.
#[derive(Clone, Debug)]
pub(crate) struct Rulings {
    pub(crate) rules: Arc<Rules>,
    pub(crate) release: ReleaseKey,
    pub(crate) now: Timestamp,
    /// What Flux HelmReleases of this release ignore.
    pub(crate) flux: Vec<flux::Ignore>,
}

impl Rulings {
    /// Marks a finding that a rule covers. All rules that cover it, or reach inside it, are told; the first one is its reason.
    ///
    /// `desired`: the manifest's object, if there is one.
    pub(crate) fn mark(&self, finding: &mut Finding, desired: Option<&Value>) -> Vec<Hit> {
        let alive = self.rules.ignore.iter().enumerate().filter(|(_, rule)| rule.is_alive(self.now));
        let hits: Vec<Hit> = alive
            .filter_map(|(place, rule)| {
                let standing = rule.standing(finding, &self.release, desired);
                (standing != Standing::Apart).then(|| Hit {
                    rule: place,
                    covers: standing == Standing::Covers,
                    release: self.release.clone(),
                    object: finding.object.clone(),
                    path: finding.path.clone(),
                    change: finding.change,
                })
            })
            .collect();
        let own = hits.iter().find(|hit| hit.covers).and_then(|hit| self.rules.ignore.get(hit.rule));
        if let Some(rule) = own {
            ignore(finding, &rule.reason);
        } else if desired.is_some_and(|body| is_given_away(body, finding)) {
            ignore(finding, "chart");
        } else if let Some(rule) = self.flux.iter().find(|rule| rule.covers(finding, desired)) {
            ignore(finding, &rule.reason);
        }
        hits
    }
}

fn ignore(finding: &mut Finding, reason: &str) {
    finding.verdict = Verdict::Ignored;
    finding.cause = Some(Cause::Rule);
    finding.class = Some(Class::A);
    finding.severity = Some(Severity::P3);
    finding.fix = Fix::None;
    finding.rule = Some(reason.to_owned());
}

fn is_given_away(desired: &Value, finding: &Finding) -> bool {
    let Some(path) = &finding.path else { return false };
    given_away(desired).into_iter().flatten().any(|pattern| pattern.covers(path))
}

/// The paths that a manifest's object gives away, and what is no path.
pub(crate) fn given_away(desired: &Value) -> Vec<Result<Pattern, PatternError>> {
    let annotation = desired.pointer("/metadata/annotations").and_then(|all| all.get(ANNOTATION));
    annotation.and_then(Value::as_str).map(pattern::list).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::super::object::Segment;
    use super::super::sample;
    use super::*;

    /// A change of a Deployment's field, made by `kubectl-edit`.
    pub(crate) fn finding(path: &FieldPath) -> Finding {
        sample::finding(sample::object("apps/v1", "Deployment", "web-1"), path.clone())
    }

    fn key() -> ReleaseKey {
        ReleaseKey { namespace: "prod".into(), name: "nucleus".into() }
    }

    /// A rule for replicas, without restriction.
    pub(crate) fn rule() -> Rule {
        Rule {
            line: 1,
            path: Some(".spec.replicas".parse().unwrap()),
            kinds: Kinds::default(),
            names: Vec::new(),
            namespaces: Vec::new(),
            releases: Vec::new(),
            managers: Vec::new(),
            labels: None,
            reason: "scaled by others".into(),
            expires: None,
        }
    }

    fn replicas() -> FieldPath {
        FieldPath::of_fields(&["spec", "replicas"])
    }

    const NOW: &str = "2026-11-30T10:00:00Z";

    fn mark(rules: Vec<Rule>, finding: &mut Finding, desired: Option<&Value>) -> Vec<Hit> {
        let rules = Arc::new(Rules { ignore: rules, ..Rules::default() });
        Rulings { rules, release: key(), now: NOW.parse().unwrap(), flux: Vec::new() }.mark(finding, desired)
    }

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn a_covered_finding_is_marked() {
        let mut found = finding(&replicas());
        let hits = mark(vec![rule()], &mut found, None);
        assert_eq!(hits.len(), 1);
        assert_eq!(
            (found.verdict, found.cause, found.class, found.severity, found.fix, found.rule.as_deref()),
            (
                Verdict::Ignored,
                Some(Cause::Rule),
                Some(Class::A),
                Some(Severity::P3),
                Fix::None,
                Some("scaled by others")
            )
        );
        // What it was about stays.
        assert_eq!(found.manager.map(|manager| manager.name).as_deref(), Some("kubectl-edit"));
    }

    #[test]
    fn every_restriction_must_hold() {
        let desired = json!({"metadata": {"labels": {"tier": "web"}}});
        type Change = fn(&mut Rule);
        let rows: Vec<(&str, Change, bool)> = vec![
            ("none", |_| {}, true),
            ("kind", |rule| rule.kinds = Kinds::new(texts(&["Deployment"])), true),
            ("kind and group", |rule| rule.kinds = Kinds::new(texts(&["StatefulSet.apps", "deployment.apps"])), true),
            ("group glob", |rule| rule.kinds = Kinds::new(texts(&["*.apps"])), true),
            ("any kind", |rule| rule.kinds = Kinds::new(texts(&["*"])), true),
            ("other kind", |rule| rule.kinds = Kinds::new(texts(&["StatefulSet"])), false),
            ("other group", |rule| rule.kinds = Kinds::new(texts(&["Deployment.extensions"])), false),
            ("name", |rule| rule.names = texts(&["db", "web-*"]), true),
            ("other name", |rule| rule.names = texts(&["db"]), false),
            ("namespace", |rule| rule.namespaces = texts(&["pr*"]), true),
            ("other namespace", |rule| rule.namespaces = texts(&["dev"]), false),
            ("release", |rule| rule.releases = releases("*/nuc*"), true),
            ("other release", |rule| rule.releases = releases("prod/web"), false),
            ("release elsewhere", |rule| rule.releases = releases("dev/nucleus"), false),
            ("manager", |rule| rule.managers = texts(&["kubectl-*"]), true),
            ("other manager", |rule| rule.managers = texts(&["helm"]), false),
            ("labels", |rule| rule.labels = "tier in (web,db)".parse().ok(), true),
            ("other labels", |rule| rule.labels = "tier=db".parse().ok(), false),
            ("later", |rule| rule.expires = expiry("2026-11-30T10:00:01Z"), true),
            ("expired", |rule| rule.expires = expiry(NOW), false),
            ("whole object", |rule| rule.path = None, true),
            ("other path", |rule| rule.path = ".spec.paused".parse().ok(), false),
        ];
        for (what, change, covers) in rows {
            let mut one = rule();
            change(&mut one);
            let mut found = finding(&replicas());
            let hits = mark(vec![one], &mut found, Some(&desired));
            assert_eq!((hits.len() == 1, found.verdict == Verdict::Ignored), (covers, covers), "{what}");
        }
    }

    fn releases(text: &str) -> Vec<ReleaseGlob> {
        let (namespace, name) = text.split_once('/').unwrap();
        vec![ReleaseGlob { namespace: namespace.into(), name: name.into() }]
    }

    fn expiry(text: &str) -> Option<Expiry> {
        Some(Expiry { at: text.parse().unwrap(), text: text.to_owned() })
    }

    #[test]
    fn a_second_hand_is_not_hidden_behind_the_first() {
        let by_kubectl = Rule { managers: texts(&["kubectl-*"]), ..rule() };
        let mut found = finding(&replicas());
        found.managers.push(Manager { name: "evil".into(), operation: "Update".into(), subresource: None, time: None });
        mark(vec![by_kubectl.clone()], &mut found, None);
        assert_eq!(found.verdict, Verdict::Drift);
        let mut unheld = finding(&replicas());
        unheld.manager = None;
        mark(vec![by_kubectl], &mut unheld, None);
        assert_eq!(unheld.verdict, Verdict::Drift);
    }

    #[test]
    fn a_rule_inside_what_is_one_is_told_and_covers_nothing() {
        let inside = Rule { path: ".spec.replicas.deeper".parse().ok(), ..rule() };
        let mut found = finding(&replicas());
        let hits = mark(vec![inside, rule()], &mut found, None);
        assert_eq!(hits.iter().map(|hit| (hit.rule, hit.covers)).collect::<Vec<_>>(), [(0, false), (1, true)]);
        assert_eq!(found.rule.as_deref(), Some("scaled by others"));
    }

    #[test]
    fn a_missing_object_is_covered_by_a_rule_without_path_only() {
        let missing = Finding { path: None, change: Change::Missing, manager: None, ..finding(&replicas()) };
        for (path, covers) in [(None, true), (Some("**"), false)] {
            let mut found = missing.clone();
            mark(
                vec![Rule { path: path.map(|path| path.parse().unwrap()), ..rule() }],
                &mut found,
                Some(&json!({"metadata": {"annotations": {ANNOTATION: "**"}}})),
            );
            assert_eq!(found.verdict == Verdict::Ignored, covers, "{path:?}");
        }
    }

    #[test]
    fn the_chart_gives_fields_of_its_own_object_away() {
        let desired = json!({"metadata": {"annotations": {ANNOTATION: ".spec.paused, .spec.replicas, nonsense"}}});
        let mut found = finding(&replicas());
        mark(Vec::new(), &mut found, Some(&desired));
        assert_eq!((found.verdict, found.rule.as_deref()), (Verdict::Ignored, Some("chart")));
        let mut other = finding(&FieldPath::of_fields(&["spec", "selector"]));
        mark(Vec::new(), &mut other, Some(&desired));
        assert_eq!(other.verdict, Verdict::Drift);
    }

    #[test]
    fn a_configured_writer_needs_path_kind_and_every_manager() {
        let image = FieldPath::of_fields(&["spec", "template", "spec", "containers"])
            .child(Segment::Item(vec![("name".into(), json!("web"))]))
            .field("image");
        let writer = Writer {
            manager: "image-*".into(),
            paths: vec![".spec.template.spec.containers[*].image".parse().unwrap()],
            kinds: Kinds::new(texts(&["Deployment.apps"])),
            reason: None,
        };
        let manager = |name: &str| Manager { name: name.into(), ..finding(&replicas()).manager.unwrap() };
        let (updater, other) = (manager("image-updater"), manager("kubectl-edit"));
        let deployment = Gvk::new("apps/v1", "Deployment");
        assert!(writer.explains(&deployment, &image, &[&updater]));
        assert!(!writer.explains(&deployment, &image, &[&updater, &other]));
        assert!(!writer.explains(&deployment, &image, &[]));
        assert!(!writer.explains(&deployment, &replicas(), &[&updater]));
        assert!(!writer.explains(&Gvk::new("apps/v1", "DaemonSet"), &image, &[&updater]));
    }

    #[test]
    fn a_sensitive_value_is_hidden_wherever_it_shows() {
        let sensitive = [Sensitive {
            path: ".data.password".parse().unwrap(),
            kinds: Kinds::new(texts(&["ConfigMap"])),
            names: texts(&["db*"]),
        }];
        let object = |kind: &str, name: &str| ObjectRef {
            gvk: Gvk::new("v1", kind),
            namespace: Some("prod".into()),
            name: name.into(),
        };
        let data = FieldPath::of_fields(&["data"]);
        let applied =
            FieldPath::of_fields(&["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"]);
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": "x"});
        let whole = json!({"kind": "ConfigMap", "data": {"password": "x"}});
        for (object, path, value, hidden) in [
            (object("ConfigMap", "db"), data.field("password"), json!("x"), true),
            (object("ConfigMap", "db"), data.field("user"), json!("x"), false),
            (object("ConfigMap", "db"), data.clone(), json!({"password": "x"}), true),
            (object("ConfigMap", "db"), FieldPath::default(), whole, true),
            (object("ConfigMap", "db"), applied.clone(), json!("x"), true),
            (object("ConfigMap", "db"), FieldPath::of_fields(&["metadata", "annotations"]), annotations.clone(), true),
            (object("ConfigMap", "web"), applied, json!("x"), false),
            (object("ConfigMap", "web"), data.field("password"), json!("x"), false),
            (object("Widget", "db"), data.field("password"), json!("x"), false),
        ] {
            assert_eq!(hides(&sensitive, &object, &path, &value), hidden, "{object} {path} {value}");
        }
    }
}
