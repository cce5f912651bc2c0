//! The configuration file: YAML in, checked [`Settings`] out, errors with line and column. Knows neither where the file is kept
//! nor what flags and environment say.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_saphyr::{Location, MessageFormatter, Spanned, UserMessageFormatter};

use crate::cli::go_duration;
use crate::drift::finding::{Mode, Severity};
use crate::drift::name;
use crate::drift::pattern::{Pattern, PatternError};
use crate::drift::policy::Expected;
use crate::drift::release::ReleaseKey;
use crate::drift::rules::{Expiry, Kinds, ReleaseGlob, Rule, Rules, Sensitive, Writer};
use crate::drift::selector::SelectorError;
use crate::drift::state::PENDING_TIMEOUT;
use crate::drift::writers;

/// What the configuration file says, with the defaults of what it leaves out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    /// Of correction by `watch`.
    pub(crate) method: Method,
    /// Between two full checks of `watch`.
    pub(crate) interval: Duration,
    pub(crate) pending_timeout: SignedDuration,
    /// More names under which Helm writes objects, globs.
    pub(crate) helm_managers: Vec<String>,
    /// Whether a label on the record may turn correction on.
    pub(crate) correct_by_label: bool,
    /// Shared by all that is judged.
    pub(crate) rules: Arc<Rules>,
    /// Each release once.
    pub(crate) releases: Vec<Expected>,
    pub(crate) webhook: Option<Webhook>,
}

/// How `watch` corrects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Patch,
    Upgrade,
    Reapply,
}

/// Whom `watch` tells.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Webhook {
    /// `http` or `https`.
    pub(crate) url: String,
    /// Handlebars over the report; `None`: the report as JSON.
    pub(crate) template: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// Nothing below it is told.
    pub(crate) min_severity: Severity,
}

/// Without address and headers: both may hold a token.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("min_severity", &self.min_severity).finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Warn,
            method: Method::Patch,
            interval: Duration::from_secs(300),
            pending_timeout: PENDING_TIMEOUT,
            helm_managers: Vec::new(),
            correct_by_label: false,
            rules: Arc::default(),
            releases: Vec::new(),
            webhook: None,
        }
    }
}

/// What is wrong, and where: both count from 1, in characters; 0 where the file as a whole is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub(crate) struct SettingsError {
    pub(crate) line: u64,
    pub(crate) column: u64,
    pub(crate) problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// No YAML, an unknown key, or a value of the wrong type.
    #[error("{0}")]
    Yaml(String),
    #[error("{what} is \"{found}\"; there are {known}")]
    Word { what: &'static str, found: String, known: &'static str },
    #[error("{what} is \"{found}\"; give a time such as 5m or 1h30m")]
    Time { what: &'static str, found: String },
    #[error("{what} needs {key}")]
    Lacks { what: &'static str, key: &'static str },
    #[error("{0}")]
    Path(PatternError),
    #[error("labels are \"{text}\": {error}")]
    Labels { text: String, error: SelectorError },
    #[error(
        "expires is \"{0}\"; give a day such as 2027-01-31 (it ends as that day begins, UTC) or a time with its zone"
    )]
    Expires(String),
    #[error("a kind is \"{0}\"; kinds are written as Deployment or Deployment.apps, without a version")]
    Kind(String),
    #[error("a release is \"{0}\"; releases are written as namespace/name, each may hold *")]
    Release(String),
    #[error("{what} is empty")]
    Blank { what: &'static str },
    #[error("a release's {what} is \"{found}\", which Kubernetes and Helm allow for none")]
    Name { what: &'static str, found: String },
    #[error("revisions count from 1")]
    Revision,
    #[error("release {0} is here twice")]
    Twice(String),
    #[error("\"{0}\" also fits the names of people's tools: what they change would be taken for Helm's own")]
    Person(String),
    #[error("the webhook's url begins with neither http:// nor https://")]
    Url,
}

/// The file as written. Texts that are checked here keep their place.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct File {
    mode: Option<Spanned<String>>,
    method: Option<Spanned<String>>,
    interval: Option<Spanned<String>>,
    pending_timeout: Option<Spanned<String>>,
    helm_managers: Option<Vec<Spanned<String>>>,
    sensitive: Option<Vec<Spanned<SensitiveEntry>>>,
    allow_labels: Option<Vec<Spanned<String>>>,
    ignore: Option<Vec<Spanned<RuleEntry>>>,
    writers: Option<Vec<Spanned<WriterEntry>>>,
    releases: Option<Vec<Spanned<ReleaseEntry>>>,
    notify: Option<Notify>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SensitiveEntry {
    path: Option<Spanned<String>>,
    kinds: Option<Vec<Spanned<String>>>,
    names: Option<Vec<Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    path: Option<Spanned<String>>,
    kinds: Option<Vec<Spanned<String>>>,
    names: Option<Vec<Spanned<String>>>,
    namespaces: Option<Vec<Spanned<String>>>,
    releases: Option<Vec<Spanned<String>>>,
    managers: Option<Vec<Spanned<String>>>,
    labels: Option<Spanned<String>>,
    reason: Option<Spanned<String>>,
    expires: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriterEntry {
    manager: Option<Spanned<String>>,
    paths: Option<Vec<Spanned<String>>>,
    kinds: Option<Vec<Spanned<String>>>,
    reason: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseEntry {
    namespace: Option<Spanned<String>>,
    name: Option<Spanned<String>>,
    revision: Option<Spanned<u64>>,
    mode: Option<Spanned<String>>,
    suspended: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Notify {
    webhook: Option<Spanned<WebhookEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WebhookEntry {
    url: Option<Spanned<String>>,
    template: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    min_severity: Option<Spanned<String>>,
}

impl Settings {
    /// Reads and checks a file's text. An empty one is a file without keys.
    pub(crate) fn parse(text: &str) -> Result<Self, SettingsError> {
        let file = serde_saphyr::from_str::<Option<File>>(text).map_err(|error| of_yaml(&error))?.unwrap_or_default();
        let usual = Self::default();
        Ok(Self {
            mode: some(file.mode, |one| mode("mode", one))?.unwrap_or(usual.mode),
            method: some(file.method, method)?.unwrap_or(usual.method),
            interval: some(file.interval, |one| time("interval", one))?.unwrap_or(usual.interval),
            pending_timeout: some(file.pending_timeout, |one| time("pendingTimeout", one))?
                .and_then(|time| SignedDuration::try_from(time).ok())
                .unwrap_or(usual.pending_timeout),
            helm_managers: each(file.helm_managers, helm_manager)?,
            correct_by_label: !each(file.allow_labels, allowed_label)?.is_empty(),
            rules: Arc::new(Rules {
                ignore: each(file.ignore, rule)?,
                writers: each(file.writers, writer)?,
                sensitive: each(file.sensitive, sensitive)?,
            }),
            releases: releases(file.releases)?,
            webhook: some(file.notify.unwrap_or_default().webhook, webhook)?,
        })
    }

    /// What it says about one release by name.
    pub(crate) fn expected(&self, key: &ReleaseKey) -> Option<&Expected> {
        self.releases.iter().find(|one| one.key == *key)
    }
}

fn of_yaml(error: &serde_saphyr::Error) -> SettingsError {
    let location = error.location().unwrap_or(Location::UNKNOWN);
    let text = UserMessageFormatter.format_message(error.without_snippet()).into_owned();
    at(location, Problem::Yaml(in_yaml_words(&text)))
}

/// The parser's words are those of its own inner life.
fn in_yaml_words(text: &str) -> String {
    [
        ("expected sequence start", "a list is expected here"),
        ("expected mapping start", "keys with values are expected here"),
        ("only single YAML document expected but multiple found", "a second document begins here; one is expected"),
        ("unknown field", "unknown key"),
        ("expected one of", "there are"),
        ("invalid u64", "a whole number is expected here"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
}

fn at(location: Location, problem: Problem) -> SettingsError {
    SettingsError { line: location.line(), column: location.column(), problem }
}

fn some<T, U>(
    value: Option<Spanned<T>>,
    read: impl FnOnce(Spanned<T>) -> Result<U, SettingsError>,
) -> Result<Option<U>, SettingsError> {
    value.map(read).transpose()
}

fn each<T, U>(
    values: Option<Vec<Spanned<T>>>,
    read: impl FnMut(Spanned<T>) -> Result<U, SettingsError>,
) -> Result<Vec<U>, SettingsError> {
    values.unwrap_or_default().into_iter().map(read).collect()
}

/// A required value of the map that begins at `location`.
fn needed<T>(value: Option<T>, location: Location, what: &'static str, key: &'static str) -> Result<T, SettingsError> {
    value.ok_or_else(|| at(location, Problem::Lacks { what, key }))
}

fn filled(what: &'static str) -> impl Fn(Spanned<String>) -> Result<String, SettingsError> {
    move |text| {
        if text.value.trim().is_empty() {
            return Err(at(text.referenced, Problem::Blank { what }));
        }
        Ok(text.value)
    }
}

fn word(text: Spanned<String>, what: &'static str, known: &'static str) -> SettingsError {
    at(text.referenced, Problem::Word { what, found: text.value, known })
}

fn mode(what: &'static str, text: Spanned<String>) -> Result<Mode, SettingsError> {
    match text.value.as_str() {
        "warn" => Ok(Mode::Warn),
        "correct" => Ok(Mode::Correct),
        "disabled" => Ok(Mode::Disabled),
        _ => Err(word(text, what, "warn, correct and disabled")),
    }
}

fn method(text: Spanned<String>) -> Result<Method, SettingsError> {
    match text.value.as_str() {
        "patch" => Ok(Method::Patch),
        "upgrade" => Ok(Method::Upgrade),
        "reapply" => Ok(Method::Reapply),
        _ => Err(word(text, "method", "patch, upgrade and reapply")),
    }
}

fn time(what: &'static str, text: Spanned<String>) -> Result<Duration, SettingsError> {
    let seconds = go_duration(text.value.trim()).filter(|seconds| *seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| SignedDuration::try_from(*time).is_ok())
        .ok_or_else(|| at(text.referenced, Problem::Time { what, found: text.value }))
}

fn helm_manager(text: Spanned<String>) -> Result<String, SettingsError> {
    let location = text.referenced;
    let name = filled("a name in helmManagers")(text)?;
    if writers::may_be_persons_tool(&name) {
        return Err(at(location, Problem::Person(name)));
    }
    Ok(name)
}

fn allowed_label(text: Spanned<String>) -> Result<(), SettingsError> {
    if text.value == "correct" { Ok(()) } else { Err(word(text, "an allowed label", "correct")) }
}

fn path(text: Spanned<String>) -> Result<Pattern, SettingsError> {
    text.value.parse().map_err(|error| at(text.referenced, Problem::Path(error)))
}

fn kinds(texts: Option<Vec<Spanned<String>>>) -> Result<Kinds, SettingsError> {
    let kind = |text: Spanned<String>| {
        let location = text.referenced;
        let kind = filled("a kind")(text)?;
        if kind.contains(['/', ' ', ',']) { Err(at(location, Problem::Kind(kind))) } else { Ok(kind) }
    };
    Ok(Kinds::new(each(texts, kind)?))
}

fn rule(entry: Spanned<RuleEntry>) -> Result<Rule, SettingsError> {
    let Spanned { value: entry, referenced: location, .. } = entry;
    let reason = needed(entry.reason, location, "an ignore rule", "a reason")?;
    Ok(Rule {
        line: location.line(),
        path: some(entry.path, path)?,
        kinds: kinds(entry.kinds)?,
        names: each(entry.names, filled("a name"))?,
        namespaces: each(entry.namespaces, filled("a namespace"))?,
        releases: each(entry.releases, release_glob)?,
        managers: each(entry.managers, filled("a manager"))?,
        labels: some(entry.labels, |text| {
            text.value.parse().map_err(|error| at(text.referenced, Problem::Labels { text: text.value.clone(), error }))
        })?,
        reason: filled("a reason")(reason)?,
        expires: some(entry.expires, expiry)?,
    })
}

fn release_glob(text: Spanned<String>) -> Result<ReleaseGlob, SettingsError> {
    match text.value.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(ReleaseGlob { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err(at(text.referenced, Problem::Release(text.value))),
    }
}

/// A day ends a rule as it begins, in UTC: a rule hides nothing longer than it says.
fn expiry(text: Spanned<String>) -> Result<Expiry, SettingsError> {
    let day = || text.value.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp());
    match text.value.parse::<Timestamp>().ok().or_else(day) {
        Some(at) => Ok(Expiry { at, text: text.value }),
        None => Err(at(text.referenced, Problem::Expires(text.value))),
    }
}

fn writer(entry: Spanned<WriterEntry>) -> Result<Writer, SettingsError> {
    let Spanned { value: entry, referenced: location, .. } = entry;
    let manager = needed(entry.manager, location, "a writer", "a manager")?;
    let paths = entry.paths.filter(|paths| !paths.is_empty());
    Ok(Writer {
        manager: filled("a manager")(manager)?,
        paths: each(Some(needed(paths, location, "a writer", "paths")?), path)?,
        kinds: kinds(entry.kinds)?,
        reason: some(entry.reason, filled("a reason"))?,
    })
}

fn sensitive(entry: Spanned<SensitiveEntry>) -> Result<Sensitive, SettingsError> {
    let Spanned { value: entry, referenced: location, .. } = entry;
    Ok(Sensitive {
        path: path(needed(entry.path, location, "a sensitive value", "a path")?)?,
        kinds: kinds(entry.kinds)?,
        names: each(entry.names, filled("a name"))?,
    })
}

fn releases(entries: Option<Vec<Spanned<ReleaseEntry>>>) -> Result<Vec<Expected>, SettingsError> {
    let mut releases: Vec<Expected> = Vec::new();
    for Spanned { value: entry, referenced: location, .. } in entries.unwrap_or_default() {
        let namespace = needed(entry.namespace, location, "an expected release", "a namespace")?;
        let own_name = needed(entry.name, location, "an expected release", "a name")?;
        let key = ReleaseKey {
            namespace: dns_name("namespace", namespace, name::LONGEST_NAMESPACE)?,
            name: dns_name("name", own_name, name::LONGEST_RELEASE)?,
        };
        if releases.iter().any(|one| one.key == key) {
            return Err(at(location, Problem::Twice(format!("{}/{}", key.namespace, key.name))));
        }
        let revision = some(entry.revision, |one| {
            if one.value == 0 { Err(at(one.referenced, Problem::Revision)) } else { Ok(one.value) }
        })?;
        let mode = some(entry.mode, |one| mode("mode", one))?;
        releases.push(Expected { key, revision, mode, suspended: entry.suspended });
    }
    Ok(releases)
}

fn dns_name(what: &'static str, text: Spanned<String>, longest: usize) -> Result<String, SettingsError> {
    if text.value.len() > longest || !text.value.split('.').all(name::is_dns_label) {
        return Err(at(text.referenced, Problem::Name { what, found: text.value }));
    }
    Ok(text.value)
}

fn webhook(entry: Spanned<WebhookEntry>) -> Result<Webhook, SettingsError> {
    let Spanned { value: entry, referenced: location, .. } = entry;
    let url = needed(entry.url, location, "a webhook", "an url")?;
    if !url.value.starts_with("https://") && !url.value.starts_with("http://") {
        return Err(at(url.referenced, Problem::Url));
    }
    let severity = some(entry.min_severity, |text| match text.value.as_str() {
        "P1" => Ok(Severity::P1),
        "P2" => Ok(Severity::P2),
        "P3" => Ok(Severity::P3),
        _ => Err(word(text, "minSeverity", "P1, P2 and P3")),
    })?;
    Ok(Webhook {
        url: url.value,
        template: entry.template,
        headers: entry.headers.unwrap_or_default(),
        min_severity: severity.unwrap_or(Severity::P2),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_file_says_nothing() {
        for text in ["", "# nothing yet\n", "---\n", "{}", "ignore:\nreleases: []\nnotify:\n"] {
            assert_eq!(Settings::parse(text), Ok(Settings::default()), "{text:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_line_and_column() {
        for (text, error) in [
            ("mode: warm", "1:7: mode is \"warm\"; there are warn, correct and disabled"),
            ("mode: warn\nmethods: patch", "2:1: unknown key `methods`, there are mode, method"),
            ("mode: warn\nmode: warn", "2:1: duplicate mapping key `mode`"),
            ("method: helm", "1:9: method is \"helm\"; there are patch, upgrade and reapply"),
            ("interval: 5", "1:11: interval is \"5\"; give a time such as 5m or 1h30m"),
            ("interval: 0s", "1:11: interval is \"0s\""),
            ("pendingTimeout: soon", "1:17: pendingTimeout is \"soon\""),
            ("helmManagers: [\"*\"]", "1:16: \"*\" also fits the names of people's tools"),
            ("helmManagers: [helm-*, kubectl*]", "1:24: \"kubectl*\" also fits"),
            ("allowLabels: [warn]", "1:15: an allowed label is \"warn\"; there are correct"),
            ("ignore:\n- path: .spec.replicas", "2:3: an ignore rule needs a reason"),
            (
                "ignore:\n- path: spec.replicas\n  reason: x",
                "2:9: \"spec.replicas\" begins with no dot; did you mean \".spec.replicas\"?",
            ),
            ("ignore:\n- reason: x\n  kind: Deployment", "3:3: unknown key `kind`, there are path, kinds"),
            ("ignore:\n- reason: x\n  kinds: [apps/v1/Deployment]", "3:11: a kind is \"apps/v1/Deployment\""),
            ("ignore:\n- reason: x\n  releases: [nucleus]", "3:14: a release is \"nucleus\""),
            ("ignore:\n- reason: x\n  labels: \"a in b\"", "3:11: labels are \"a in b\": "),
            ("ignore:\n- reason: x\n  expires: next year", "3:12: expires is \"next year\""),
            ("ignore:\n- reason: \"\"", "2:11: a reason is empty"),
            ("ignore:\n- reason: x\n  names: web", "3:10: a list is expected here"),
            ("ignore: 3", "1:9: "),
            ("writers:\n- paths: [.a]", "2:3: a writer needs a manager"),
            ("writers:\n- manager: x", "2:3: a writer needs paths"),
            ("sensitive:\n- kinds: [ConfigMap]", "2:3: a sensitive value needs a path"),
            ("releases:\n- name: x", "2:3: an expected release needs a namespace"),
            ("releases:\n- {namespace: prod, name: Web}", "2:27: a release's name is \"Web\""),
            ("releases:\n- {namespace: p, name: x, revision: 0}", "2:37: revisions count from 1"),
            ("releases:\n- {namespace: p, name: x, revision: last}", "2:37: a whole number is expected here"),
            ("releases:\n- {namespace: p, name: x}\n- {namespace: p, name: x}", "3:3: release p/x is here twice"),
            ("notify: {webhook: {url: \"ftp://x\"}}", "1:25: the webhook's url begins with"),
            ("notify: {webhook: {url: \"http://x\", minSeverity: high}}", "1:50: minSeverity is \"high\""),
            ("a: [", "1:"),
            ("- a", "1:1: keys with values are expected here"),
            ("mode: warn\n---\nmode: warn", "3:1: a second document begins here"),
        ] {
            let found = Settings::parse(text).map(|_| ()).expect_err(text).to_string();
            assert!(found.starts_with(error), "{text:?}\n  {found}\n  {error}");
            assert!(!found.contains('\n') && !found.contains(" at line"), "{found}");
        }
    }

    #[test]
    fn a_day_ends_a_rule_as_it_begins() {
        for (text, at) in [
            ("2027-01-01", "2027-01-01T00:00:00Z"),
            ("\"2027-01-01\"", "2027-01-01T00:00:00Z"),
            ("2027-01-01T12:00:00+02:00", "2027-01-01T10:00:00Z"),
        ] {
            let settings = Settings::parse(&format!("ignore: [{{reason: x, expires: {text}}}]")).unwrap();
            assert_eq!(settings.rules.ignore[0].expires.as_ref().unwrap().at, at.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn a_rule_knows_its_line() {
        let settings = Settings::parse("mode: warn\nignore:\n\n- reason: a\n- path: .x\n  reason: b\n").unwrap();
        assert_eq!(settings.rules.ignore.iter().map(|rule| rule.line).collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn nothing_of_a_webhook_reaches_a_log() {
        let text = "notify: {webhook: {url: \"https://x/secret\", headers: {Authorization: secret}}}";
        let settings = Settings::parse(text).unwrap();
        assert!(settings.webhook.is_some() && !format!("{settings:?}").contains("secret"));
    }

    /// The documentation's example is a file that is obeyed, and names every key.
    #[test]
    fn the_documented_example_has_every_key() {
        let page = include_str!("../docs/configuration.md");
        let example = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        let settings = Settings::parse(example).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((settings.mode, settings.method), (Mode::Warn, Method::Patch));
        assert_eq!(settings.helm_managers, ["helm-operator*"]);
        assert!(settings.correct_by_label && settings.webhook.is_some());
        let rules = &settings.rules;
        assert_eq!(
            (rules.ignore.len(), rules.writers.len(), rules.sensitive.len(), settings.releases.len()),
            (2, 1, 1, 1)
        );
        let rule = rules.ignore.first().unwrap();
        assert!(rule.path.is_some() && rule.labels.is_some() && rule.expires.is_some() && !rule.managers.is_empty());
        let nonsense = Settings::parse("nonsense: 1").unwrap_err().to_string();
        let (_, keys) = nonsense.split_once("there are ").unwrap();
        for key in keys.split(", ") {
            assert!(example.contains(&format!("\n{key}:")) || example.starts_with(&format!("{key}:")), "{key}");
            assert!(page.contains(&format!("| `{key}` |")), "{key} is in no table");
        }
    }

    #[test]
    fn the_usage_page_s_example_is_obeyed() {
        let section = include_str!("../docs/usage.md").split("\n## Configuration\n").nth(1).unwrap();
        let example = section.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        let settings = Settings::parse(example).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((settings.rules.ignore.len(), settings.releases.len()), (1, 1));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,60}") {
            let _ = Settings::parse(&text);
            let _ = Settings::parse(&format!("ignore:\n- path: {text}\n  reason: x\n"));
        }
    }
}
