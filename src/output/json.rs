//! The JSON contract (design.md §8), as structs of its own: the core's types may change, this only gains fields.
//! `docs/report.schema.json` describes it. Knows nothing of how a finding was made.

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;

use crate::drift::finding::{
    ApplyMethod, Cause, Change, Class, ClusterInfo, Condition, Finding, Fix, Manager, Mode, Notice, NoticeReason,
    ObjectCounts, Reason, ReleaseReport, Report, Severity, Shown, Storage, Trouble, TroubleReason, Verdict,
};
use crate::drift::object::ObjectRef;

use super::escape::{escape_json, escape_yaml, is_hidden};
use super::group::in_order;

/// Changes only when a field changes its meaning or goes, never when one is added.
pub(super) const API_VERSION: &str = "helm-drift/v1";

/// Errors: the writer's own.
pub(crate) fn report(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    write(out, &DriftReport::new(report))
}

/// The same as YAML.
pub(crate) fn report_yaml(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    write_yaml(out, &DriftReport::new(report))
}

pub(super) fn write(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    writeln!(out, "{}", escape_json(&text))
}

/// As YAML that YAML 1.1 readers, Go's among them, read back as it was.
///
/// What has hidden characters, which YAML may hold bare, is written in YAML's JSON form instead, where they are escaped.
pub(super) fn write_yaml(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    // Lines are not folded: a long message stays one line for grep.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX, yaml_12: false };
    let yaml = serde_saphyr::to_string_with_options(document, options).map_err(io::Error::other)?;
    if !yaml.chars().any(|c| c != '\n' && is_hidden(c)) {
        return out.write_all(yaml.as_bytes());
    }
    let text = serde_json::to_string_pretty(document)?;
    writeln!(out, "{}", escape_yaml(&text))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DriftReport<'a> {
    api_version: &'static str,
    kind: &'static str,
    program: &'static str,
    cluster: JsonCluster<'a>,
    started_at: String,
    finished_at: String,
    summary: Summary,
    releases: Vec<JsonRelease<'a>>,
    notices: Vec<JsonNotice<'a>>,
    errors: Vec<JsonError<'a>>,
}

#[derive(Serialize)]
pub(super) struct JsonCluster<'a> {
    context: Option<&'a str>,
    server: Option<&'a str>,
    version: Option<&'a str>,
}

/// Releases first, then findings by verdict.
#[derive(Default, Serialize)]
struct Summary {
    releases: usize,
    ready: usize,
    /// Releases with drift, also those whose reason is another.
    drifted: usize,
    stalled: usize,
    /// `ready` is Unknown, but for the disabled, which nobody wanted to know.
    unknown: usize,
    suspended: usize,
    disabled: usize,
    drift: usize,
    expected: usize,
    ignored: usize,
    unverified: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRelease<'a> {
    name: &'a str,
    namespace: &'a str,
    revision: Option<u64>,
    judged_revision: Option<u64>,
    status: Option<&'a str>,
    chart: Option<&'a str>,
    app_version: Option<&'a str>,
    last_deployed: Option<String>,
    storage: &'static str,
    apply_method: Option<&'static str>,
    ready: &'static str,
    stalled: &'static str,
    reason: &'static str,
    message: &'a str,
    mode: &'static str,
    suspended: bool,
    objects: JsonCounts,
    findings: Vec<JsonFinding<'a>>,
    notices: Vec<JsonNotice<'a>>,
}

#[derive(Serialize)]
struct JsonCounts {
    total: usize,
    compared: usize,
    missing: usize,
    unreadable: usize,
    hooks: usize,
    crds: usize,
    untrackable: usize,
}

#[derive(Serialize)]
pub(super) struct JsonObject<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
}

#[derive(Serialize)]
struct JsonManager<'a> {
    name: &'a str,
    operation: &'a str,
    subresource: Option<&'a str>,
    time: Option<String>,
}

#[derive(Serialize)]
pub(super) struct JsonFinding<'a> {
    object: JsonObject<'a>,
    source: Option<&'a str>,
    change: &'static str,
    path: Option<String>,
    pointer: Option<&'a str>,
    desired: Option<&'a Value>,
    live: Option<&'a Value>,
    masked: bool,
    manager: Option<JsonManager<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    managers: Vec<JsonManager<'a>>,
    verdict: &'static str,
    cause: Option<&'static str>,
    class: Option<&'static str>,
    severity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    fix: &'static str,
}

#[derive(Serialize)]
pub(super) struct JsonNotice<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<JsonObject<'a>>,
    reason: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
pub(super) struct JsonError<'a> {
    reason: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
}

impl<'a> DriftReport<'a> {
    pub(super) fn new(report: &'a Report) -> Self {
        Self {
            api_version: API_VERSION,
            kind: "DriftReport",
            program: env!("CARGO_PKG_VERSION"),
            cluster: JsonCluster::new(&report.cluster),
            started_at: rfc3339(report.started_at),
            finished_at: rfc3339(report.finished_at),
            summary: Summary::of(report),
            releases: in_order(report).into_iter().map(JsonRelease::new).collect(),
            notices: report.notices.iter().map(JsonNotice::new).collect(),
            errors: report.errors.iter().map(JsonError::new).collect(),
        }
    }
}

impl<'a> JsonCluster<'a> {
    pub(super) fn new(cluster: &'a ClusterInfo) -> Self {
        Self {
            context: cluster.context.as_deref(),
            server: cluster.server.as_deref(),
            version: cluster.version.as_deref(),
        }
    }
}

impl Summary {
    fn of(report: &Report) -> Self {
        let mut summary = Self::default();
        for release in &report.releases {
            let disabled = release.reason == Reason::Disabled;
            let mut drifted = false;
            for finding in &release.findings {
                match finding.verdict {
                    Verdict::Drift => {
                        drifted = true;
                        summary.drift += 1;
                    }
                    Verdict::Expected => summary.expected += 1,
                    Verdict::Ignored => summary.ignored += 1,
                    Verdict::Unverified => summary.unverified += 1,
                }
            }
            summary.releases += 1;
            summary.ready += usize::from(release.ready == Condition::True);
            summary.drifted += usize::from(drifted);
            summary.stalled += usize::from(release.stalled == Condition::True);
            summary.unknown += usize::from(release.ready == Condition::Unknown && !disabled);
            summary.suspended += usize::from(release.suspended);
            summary.disabled += usize::from(disabled);
        }
        summary
    }
}

impl<'a> JsonRelease<'a> {
    fn new(release: &'a ReleaseReport) -> Self {
        Self {
            name: &release.name,
            namespace: &release.namespace,
            revision: release.revision,
            judged_revision: release.judged_revision,
            status: release.status.as_deref(),
            chart: release.chart.as_deref(),
            app_version: release.app_version.as_deref(),
            last_deployed: release.last_deployed.map(rfc3339),
            storage: storage(release.storage),
            apply_method: release.apply_method.map(apply_method),
            ready: condition(release.ready),
            stalled: condition(release.stalled),
            reason: reason(release.reason),
            message: &release.message,
            mode: mode(release.mode),
            suspended: release.suspended,
            objects: JsonCounts::new(&release.objects),
            findings: release.findings.iter().map(JsonFinding::new).collect(),
            notices: release.notices.iter().map(JsonNotice::new).collect(),
        }
    }
}

impl JsonCounts {
    fn new(counts: &ObjectCounts) -> Self {
        let ObjectCounts { total, compared, missing, unreadable, hooks, crds, untrackable } = *counts;
        Self { total, compared, missing, unreadable, hooks, crds, untrackable }
    }
}

impl<'a> JsonObject<'a> {
    pub(super) fn new(object: &'a ObjectRef) -> Self {
        Self {
            group: &object.gvk.group,
            version: &object.gvk.version,
            kind: &object.gvk.kind,
            namespace: object.namespace.as_deref(),
            name: &object.name,
        }
    }
}

impl<'a> JsonManager<'a> {
    fn new(manager: &'a Manager) -> Self {
        Self {
            name: &manager.name,
            operation: &manager.operation,
            subresource: manager.subresource.as_deref(),
            time: manager.time.map(rfc3339),
        }
    }
}

impl<'a> JsonFinding<'a> {
    pub(super) fn new(finding: &'a Finding) -> Self {
        let masked = [&finding.desired, &finding.live].iter().any(|side| matches!(side, Shown::Masked { .. }));
        // Masked is a matter of the finding: where one side is masked, neither is shown.
        let value = |side: &'a Shown| match side {
            Shown::Plain(value) if !masked => Some(value),
            Shown::Plain(_) | Shown::Absent | Shown::Masked { .. } => None,
        };
        Self {
            object: JsonObject::new(&finding.object),
            source: finding.source.as_deref(),
            change: change(finding.change),
            path: finding.path.as_ref().map(ToString::to_string),
            pointer: finding.pointer.as_deref(),
            desired: value(&finding.desired),
            live: value(&finding.live),
            masked,
            manager: finding.manager.as_ref().map(JsonManager::new),
            managers: finding.managers.iter().map(JsonManager::new).collect(),
            verdict: verdict(finding.verdict),
            cause: finding.cause.map(cause),
            class: finding.class.map(class),
            severity: finding.severity.map(severity),
            rule: finding.rule.as_deref(),
            note: finding.note.as_deref(),
            fix: fix(finding.fix),
        }
    }
}

impl<'a> JsonNotice<'a> {
    pub(super) fn new(notice: &'a Notice) -> Self {
        Self {
            object: notice.object.as_ref().map(JsonObject::new),
            reason: notice_reason(notice.reason),
            message: &notice.message,
        }
    }
}

impl<'a> JsonError<'a> {
    pub(super) fn new(trouble: &'a Trouble) -> Self {
        Self {
            reason: trouble_reason(trouble.reason),
            message: &trouble.message,
            namespace: trouble.namespace.as_deref(),
        }
    }
}

/// UTC, whole seconds: `2026-11-30T10:00:00Z`.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) fn change(change: Change) -> &'static str {
    match change {
        Change::Changed => "changed",
        Change::Removed => "removed",
        Change::Added => "added",
        Change::Missing => "missing",
        Change::Unreadable => "unreadable",
        Change::Orphan => "orphan",
    }
}

pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Drift => "drift",
        Verdict::Expected => "expected",
        Verdict::Ignored => "ignored",
        Verdict::Unverified => "unverified",
    }
}

pub(crate) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::ForgedName => "forged-name",
        Cause::AppliedDifferently => "applied-differently",
        Cause::LeftBehind => "left-behind",
        Cause::Edited => "edited",
        Cause::Unattributed => "unattributed",
        Cause::Added => "added",
        Cause::Removed => "removed",
        Cause::Missing => "missing",
        Cause::Orphan => "orphan",
        Cause::Autoscaler => "autoscaler",
        Cause::Controller => "controller",
        Cause::Admission => "admission",
        Cause::Aggregation => "aggregation",
        Cause::Injected => "injected",
        Cause::Restarted => "restarted",
        Cause::Upgrade => "upgrade",
        Cause::Bookkeeping => "bookkeeping",
        Cause::Rule => "rule",
    }
}

pub(crate) fn class(class: Class) -> &'static str {
    match class {
        Class::A => "A",
        Class::B => "B",
        Class::C => "C",
    }
}

pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::P1 => "P1",
        Severity::P2 => "P2",
        Severity::P3 => "P3",
    }
}

fn fix(fix: Fix) -> &'static str {
    match fix {
        Fix::Upgrade => "upgrade",
        Fix::Reapply => "reapply",
        Fix::Patch => "patch",
        Fix::Create => "create",
        Fix::RemoveAdded => "remove-added",
        Fix::Recreate => "recreate",
        Fix::None => "none",
    }
}

pub(crate) fn condition(condition: Condition) -> &'static str {
    match condition {
        Condition::True => "True",
        Condition::False => "False",
        Condition::Unknown => "Unknown",
    }
}

pub(crate) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Corrupt => "Corrupt",
        Reason::Disabled => "Disabled",
        Reason::PendingInstall => "PendingInstall",
        Reason::PendingUpgrade => "PendingUpgrade",
        Reason::PendingRollback => "PendingRollback",
        Reason::Failed => "Failed",
        Reason::Uninstalling => "Uninstalling",
        Reason::Uninstalled => "Uninstalled",
        Reason::Superseded => "Superseded",
        Reason::RevisionMismatch => "RevisionMismatch",
        Reason::Deleted => "Deleted",
        Reason::Drifted => "Drifted",
        Reason::Unverified => "Unverified",
        Reason::InSync => "InSync",
    }
}

pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Warn => "warn",
        Mode::Correct => "correct",
        Mode::Disabled => "disabled",
    }
}

pub(super) fn storage(storage: Storage) -> &'static str {
    match storage {
        Storage::Secret => "secret",
        Storage::ConfigMap => "configmap",
        Storage::Sql => "sql",
        Storage::Files => "files",
    }
}

fn apply_method(method: ApplyMethod) -> &'static str {
    match method {
        ApplyMethod::ClientSide => "csa",
        ApplyMethod::ServerSide => "ssa",
    }
}

pub(crate) fn notice_reason(reason: NoticeReason) -> &'static str {
    match reason {
        NoticeReason::DuplicateKey => "DuplicateKey",
        NoticeReason::Pruned => "Pruned",
        NoticeReason::VersionNotServed => "VersionNotServed",
        NoticeReason::NoManagedFields => "NoManagedFields",
        NoticeReason::TypesMissing => "TypesMissing",
        NoticeReason::DiscoveryFailed => "DiscoveryFailed",
        NoticeReason::RecordRewritten => "RecordRewritten",
        NoticeReason::ForeignLabel => "ForeignLabel",
        NoticeReason::UnattributedAddition => "UnattributedAddition",
        NoticeReason::RuleExpired => "RuleExpired",
        NoticeReason::RuleNeverMatches => "RuleNeverMatches",
        NoticeReason::LookupForbidden => "LookupForbidden",
        NoticeReason::FluxMode => "FluxMode",
        NoticeReason::StalePods => "StalePods",
        NoticeReason::NotCompared => "NotCompared",
        NoticeReason::AlsoTrue => "AlsoTrue",
    }
}

fn trouble_reason(reason: TroubleReason) -> &'static str {
    match reason {
        TroubleReason::NotFound => "NotFound",
        TroubleReason::Forbidden => "Forbidden",
        TroubleReason::Unauthorized => "Unauthorized",
        TroubleReason::Unreachable => "Unreachable",
        TroubleReason::Timeout => "Timeout",
        TroubleReason::OtherDriver => "OtherDriver",
        TroubleReason::NothingFound => "NothingFound",
        TroubleReason::Internal => "Internal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::object::FieldPath;
    use crate::output::{contract, sample};
    use serde_json::json;

    fn printed(report: &Report) -> String {
        let mut out = Vec::new();
        super::report(&mut out, report).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn printed_yaml(report: &Report) -> String {
        let mut out = Vec::new();
        report_yaml(&mut out, report).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn with_every_finding(each: impl Fn(&mut Finding)) -> Report {
        let mut report = sample::report();
        report.releases.iter_mut().flat_map(|release| &mut release.findings).for_each(each);
        report
    }

    #[test]
    fn reports_follow_the_schema() {
        let bare = sample::report_of(Vec::new());
        let nothing_known = with_every_finding(|finding| {
            finding.manager =
                Some(Manager { name: String::new(), operation: String::new(), subresource: None, time: None });
            (finding.source, finding.pointer, finding.cause, finding.class, finding.severity) =
                (None, None, None, None, None);
        });
        for report in [sample::report(), bare, nothing_known] {
            let value: Value = serde_json::from_str(&printed(&report)).unwrap();
            assert_eq!(contract::errors(&value), [""; 0]);
        }
    }

    #[test]
    fn the_schema_refuses_what_is_not_the_contract() {
        let good: Value = serde_json::from_str(&printed(&sample::report())).unwrap();
        for (pointer, bad) in [
            ("/apiVersion", json!("helm-drift/v2")),
            ("/startedAt", json!("today")),
            ("/summary/ready", json!(-1)),
            ("/releases/0/reason", json!("Fine")),
            ("/releases/6/findings/0/cause", json!("forgedName")),
            ("/releases/6/findings/0/object", json!({})),
            ("/errors/0/reason", json!("Odd")),
        ] {
            let mut value = good.clone();
            *value.pointer_mut(pointer).unwrap() = bad;
            assert!(!contract::errors(&value).is_empty(), "{pointer}");
        }
    }

    #[test]
    fn closed_lists_are_those_of_the_schema() {
        let schema = contract::schema();
        let list = |pointer: &str| -> Vec<String> {
            let list = schema.pointer(&format!("/$defs/{pointer}/enum")).and_then(Value::as_array).unwrap();
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        use Cause::*;
        let causes = [
            ForgedName,
            AppliedDifferently,
            LeftBehind,
            Edited,
            Unattributed,
            Added,
            Removed,
            Missing,
            Orphan,
            Autoscaler,
            Controller,
            Admission,
            Aggregation,
            Injected,
            Restarted,
            Upgrade,
            Bookkeeping,
            Rule,
        ];
        assert_eq!(causes.map(cause).to_vec(), list("finding/properties/cause"));
        let changes =
            [Change::Changed, Change::Removed, Change::Added, Change::Missing, Change::Unreadable, Change::Orphan];
        assert_eq!(changes.map(change).to_vec(), list("finding/properties/change"));
        let verdicts = [Verdict::Drift, Verdict::Expected, Verdict::Ignored, Verdict::Unverified];
        assert_eq!(verdicts.map(verdict).to_vec(), list("finding/properties/verdict"));
        let fixes = [Fix::Upgrade, Fix::Reapply, Fix::Patch, Fix::Create, Fix::RemoveAdded, Fix::Recreate, Fix::None];
        assert_eq!(fixes.map(fix).to_vec(), list("finding/properties/fix"));
        assert_eq!([Class::A, Class::B, Class::C].map(class).to_vec(), list("finding/properties/class"));
        assert_eq!(
            [Severity::P1, Severity::P2, Severity::P3].map(severity).to_vec(),
            list("finding/properties/severity")
        );
        let reasons = [
            Reason::Corrupt,
            Reason::Disabled,
            Reason::PendingInstall,
            Reason::PendingUpgrade,
            Reason::PendingRollback,
            Reason::Failed,
            Reason::Uninstalling,
            Reason::Uninstalled,
            Reason::Superseded,
            Reason::RevisionMismatch,
            Reason::Deleted,
            Reason::Drifted,
            Reason::Unverified,
            Reason::InSync,
        ];
        assert_eq!(reasons.map(reason).to_vec(), list("release/properties/reason"));
        assert_eq!([Mode::Warn, Mode::Correct, Mode::Disabled].map(mode).to_vec(), list("release/properties/mode"));
        let storages = [Storage::Secret, Storage::ConfigMap, Storage::Sql, Storage::Files];
        assert_eq!(storages.map(storage).to_vec(), list("release/properties/storage"));
        let methods = [ApplyMethod::ClientSide, ApplyMethod::ServerSide];
        assert_eq!(methods.map(apply_method).to_vec(), list("release/properties/applyMethod"));
        assert_eq!([Condition::True, Condition::False, Condition::Unknown].map(condition).to_vec(), list("condition"));
        let notices = [
            NoticeReason::DuplicateKey,
            NoticeReason::Pruned,
            NoticeReason::VersionNotServed,
            NoticeReason::NoManagedFields,
            NoticeReason::TypesMissing,
            NoticeReason::DiscoveryFailed,
            NoticeReason::RecordRewritten,
            NoticeReason::ForeignLabel,
            NoticeReason::UnattributedAddition,
            NoticeReason::RuleExpired,
            NoticeReason::RuleNeverMatches,
            NoticeReason::LookupForbidden,
            NoticeReason::FluxMode,
            NoticeReason::StalePods,
            NoticeReason::NotCompared,
            NoticeReason::AlsoTrue,
        ];
        assert_eq!(notices.map(notice_reason).to_vec(), list("notice/properties/reason"));
        let troubles = [
            TroubleReason::NotFound,
            TroubleReason::Forbidden,
            TroubleReason::Unauthorized,
            TroubleReason::Unreachable,
            TroubleReason::Timeout,
            TroubleReason::OtherDriver,
            TroubleReason::NothingFound,
            TroubleReason::Internal,
        ];
        assert_eq!(troubles.map(trouble_reason).to_vec(), list("error/properties/reason"));
    }

    #[test]
    fn a_report_is_printed_as_the_contract_shows_it() {
        let mut release = sample::release("nucleus", Reason::Drifted);
        release.message = "1 changed".into();
        let path = FieldPath::of_fields(&["spec", "replicas"]);
        release.findings = vec![Finding {
            source: Some("nucleus/templates/deployment.yaml".into()),
            pointer: Some("/spec/replicas".into()),
            managers: vec![sample::manager("k9s", "2026-11-02T10:00:00Z")],
            rule: Some("r".into()),
            note: Some("n".into()),
            ..sample::finding(sample::object("apps/v1", "Deployment", "api"), Change::Changed, path, json!(3), json!(6))
        }];
        let expected = format!(
            r#"{{
  "apiVersion": "helm-drift/v1",
  "kind": "DriftReport",
  "program": "{}",
  "cluster": {{
    "context": "prod",
    "server": "https://10.0.0.1:6443",
    "version": "v1.36.3"
  }},
  "startedAt": "2026-11-30T10:00:00Z",
  "finishedAt": "2026-11-30T10:00:01Z",
  "summary": {{
    "releases": 1,
    "ready": 0,
    "drifted": 1,
    "stalled": 1,
    "unknown": 0,
    "suspended": 0,
    "disabled": 0,
    "drift": 1,
    "expected": 0,
    "ignored": 0,
    "unverified": 0
  }},
  "releases": [
    {{
      "name": "nucleus",
      "namespace": "prod",
      "revision": 12,
      "judgedRevision": 12,
      "status": "deployed",
      "chart": "nucleus-1.4.2",
      "appVersion": "1.4",
      "lastDeployed": "2026-11-28T05:30:12Z",
      "storage": "secret",
      "applyMethod": "csa",
      "ready": "False",
      "stalled": "True",
      "reason": "Drifted",
      "message": "1 changed",
      "mode": "warn",
      "suspended": false,
      "objects": {{
        "total": 34,
        "compared": 34,
        "missing": 0,
        "unreadable": 0,
        "hooks": 0,
        "crds": 0,
        "untrackable": 0
      }},
      "findings": [
        {{
          "object": {{
            "group": "apps",
            "version": "v1",
            "kind": "Deployment",
            "namespace": "prod",
            "name": "api"
          }},
          "source": "nucleus/templates/deployment.yaml",
          "change": "changed",
          "path": ".spec.replicas",
          "pointer": "/spec/replicas",
          "desired": 3,
          "live": 6,
          "masked": false,
          "manager": {{
            "name": "kubectl-edit",
            "operation": "Update",
            "subresource": null,
            "time": "2026-11-30T09:48:00Z"
          }},
          "managers": [
            {{
              "name": "k9s",
              "operation": "Update",
              "subresource": null,
              "time": "2026-11-02T10:00:00Z"
            }}
          ],
          "verdict": "drift",
          "cause": "edited",
          "class": "B",
          "severity": "P2",
          "rule": "r",
          "note": "n",
          "fix": "upgrade"
        }}
      ],
      "notices": []
    }}
  ],
  "notices": [],
  "errors": []
}}
"#,
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(printed(&sample::report_of(vec![release])), expected);
    }

    #[test]
    fn releases_are_in_order_and_counted() {
        let value: Value = serde_json::from_str(&printed(&sample::report())).unwrap();
        let names: Vec<&str> =
            value["releases"].as_array().unwrap().iter().map(|release| release["name"].as_str().unwrap()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(names, sorted);
        assert_eq!(
            value["summary"],
            json!({"releases": 14, "ready": 1, "drifted": 2, "stalled": 10, "unknown": 2, "suspended": 1, "disabled": 1,
                   "drift": 10, "expected": 1, "ignored": 1, "unverified": 2})
        );
    }

    #[test]
    fn masked_values_are_null_on_both_sides() {
        for (desired, live) in [
            (Shown::Masked { bytes: 3 }, Shown::Masked { bytes: 4 }),
            (Shown::Absent, Shown::Masked { bytes: 4 }),
            (Shown::Plain(json!("seen")), Shown::Masked { bytes: 4 }),
        ] {
            let report =
                with_every_finding(|finding| (finding.desired, finding.live) = (desired.clone(), live.clone()));
            let value: Value = serde_json::from_str(&printed(&report)).unwrap();
            let finding = &value["releases"][6]["findings"][0];
            assert_eq!(
                (&finding["desired"], &finding["live"], &finding["masked"]),
                (&Value::Null, &Value::Null, &json!(true))
            );
        }
    }

    #[test]
    fn yaml_says_the_same_as_json() {
        let hidden = with_every_finding(|finding| finding.live = Shown::Plain(json!("a\u{202e}b\u{9b}\u{e0041}")));
        let strings = with_every_finding(|finding| {
            finding.desired = Shown::Plain(json!(["yes", "0644", "1_000", "<<", "a: b", "# c", "one\ntwo\n", ""]));
            finding.live =
                Shown::Plain(json!({"y": "no", "1e3": "2026-11-30", "k": 9_007_199_254_740_993_u64, "f": 1.5}));
            finding.note = Some("word ".repeat(60));
        });
        for report in [sample::report(), hidden, strings] {
            let yaml = printed_yaml(&report);
            assert!(yaml.chars().all(|c| c == '\n' || !is_hidden(c)));
            let read: Value = serde_saphyr::from_str(&yaml).unwrap();
            assert_eq!(read, serde_json::from_str::<Value>(&printed(&report)).unwrap());
        }
    }

    #[test]
    fn yaml_keeps_the_order_of_json_and_one_line_a_message() {
        let yaml = printed_yaml(&sample::report());
        assert!(yaml.starts_with("apiVersion: helm-drift/v1\nkind: DriftReport\n"), "{yaml}");
        assert!(yaml.contains("the live state fits revision 11: helm rollback worker 11\"\n"), "{yaml}");
        assert!(yaml.contains("\n    path: .spec.template.spec.containers[name=\"api\"].image\n"), "{yaml}");
    }

    #[test]
    fn json_holds_no_character_that_drives_a_terminal() {
        let report = with_every_finding(|finding| finding.note = Some("\u{1b}[2J\u{9b}31m\u{202e}".into()));
        let text = printed(&report);
        assert!(text.chars().all(|c| c == '\n' || !is_hidden(c)));
        assert!(text.contains(r"\u001b[2J\u009b31m\u202e"));
    }
}
