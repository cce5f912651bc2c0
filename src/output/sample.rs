//! Reports to test printing with: every change, verdict, cause and reason once at least.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::config::Format;
use crate::drift;
use crate::drift::finding::{
    ApplyMethod, Cause, Change, Class, ClusterInfo, Condition, Finding, Fix, Manager, Mode, Notice, NoticeReason,
    ObjectCounts, Reason, ReleaseReport, Report, Severity, Shown, Storage, Trouble, TroubleReason, Verdict,
};
use crate::drift::object::{FieldPath, ObjectRef, Segment};
use crate::drift::outcome::{Back, Decision, Outcome, Planned, StepOutcome, StepResult};
use crate::drift::plan::{Action, Fight, Left, Method, Plan, Step};
use crate::drift::refusal::Refusal;
use crate::drift::release::ReleaseKey;
pub(crate) use crate::drift::sample::object;

use super::Style;

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn now() -> Timestamp {
    time("2026-11-30T10:00:00Z")
}

/// A table as a pipe gets it, or a terminal of this width.
pub(crate) fn style(width: Option<usize>) -> Style {
    Style {
        format: Format::Table,
        show_all: false,
        color: false,
        width,
        now: now(),
        all_namespaces: false,
        quiet: false,
    }
}

pub(crate) fn manager(name: &str, time: &str) -> Manager {
    Manager { name: name.into(), operation: "Update".into(), subresource: None, time: Some(self::time(time)) }
}

/// A drift of class B; tests change what they are about.
pub(crate) fn finding(object: ObjectRef, change: Change, path: FieldPath, desired: Value, live: Value) -> Finding {
    let shown = |value: Value| if value.is_null() { Shown::Absent } else { Shown::Plain(value) };
    Finding {
        change,
        pointer: Some("/spec".into()),
        desired: shown(desired),
        live: shown(live),
        manager: Some(manager("kubectl-edit", "2026-11-30T09:48:00Z")),
        ..drift::sample::finding(object, path)
    }
}

/// A finding about the whole object.
pub(crate) fn whole(object: ObjectRef, change: Change, cause: Option<Cause>) -> Finding {
    let found = finding(object, change, FieldPath::default(), Value::Null, Value::Null);
    Finding {
        path: None,
        pointer: None,
        manager: None,
        cause,
        class: Some(Class::C),
        severity: Some(Severity::P1),
        ..found
    }
}

pub(crate) fn release(name: &str, reason: Reason) -> ReleaseReport {
    let (ready, exit) = match reason {
        Reason::InSync => (Condition::True, 0),
        Reason::Disabled => (Condition::Unknown, 0),
        Reason::Corrupt | Reason::Unverified => (Condition::Unknown, 2),
        _ => (Condition::False, 1),
    };
    let known = reason != Reason::Corrupt;
    ReleaseReport {
        name: name.into(),
        namespace: "prod".into(),
        revision: Some(12),
        judged_revision: known.then_some(12),
        status: known.then(|| "deployed".into()),
        chart: known.then(|| "nucleus-1.4.2".into()),
        app_version: known.then(|| "1.4".into()),
        last_deployed: known.then(|| time("2026-11-28T07:30:12.345678901+02:00")),
        storage: Storage::Secret,
        apply_method: known.then_some(ApplyMethod::ClientSide),
        ready,
        stalled: if ready == Condition::False { Condition::True } else { Condition::False },
        reason,
        message: String::new(),
        mode: Mode::Warn,
        suspended: false,
        exit,
        objects: ObjectCounts { total: 34, compared: 34, ..ObjectCounts::default() },
        findings: Vec::new(),
        notices: Vec::new(),
    }
}

pub(crate) fn containers(name: &str) -> FieldPath {
    FieldPath::of_fields(&["spec", "template", "spec", "containers"])
        .child(Segment::Item(vec![("name".into(), json!(name))]))
}

fn with_source(source: &str, findings: Vec<Finding>) -> Vec<Finding> {
    findings.into_iter().map(|finding| Finding { source: Some(source.into()), ..finding }).collect()
}

/// Findings of every change and verdict.
pub(crate) fn nucleus() -> ReleaseReport {
    let api = || object("apps/v1", "Deployment", "api");
    let scaled = Manager { subresource: Some("scale".into()), ..manager("kubectl", "2026-11-30T09:55:00Z") };
    let spec = |names: &[&str]| FieldPath::of_fields(names);
    let mut findings = with_source(
        "nucleus/templates/deployment.yaml",
        vec![
            Finding {
                manager: Some(manager("deployment-controller", "2026-11-30T09:48:30Z")),
                verdict: Verdict::Expected,
                cause: Some(Cause::Controller),
                class: Some(Class::A),
                severity: Some(Severity::P3),
                fix: Fix::None,
                ..finding(
                    api(),
                    Change::Added,
                    spec(&["metadata", "annotations", "deployment.kubernetes.io/revision"]),
                    Value::Null,
                    json!("14"),
                )
            },
            Finding {
                manager: None,
                cause: Some(Cause::Removed),
                class: Some(Class::C),
                ..finding(api(), Change::Removed, spec(&["spec", "minReadySeconds"]), json!(10), Value::Null)
            },
            Finding {
                manager: Some(scaled),
                managers: vec![manager("k9s", "2026-11-02T10:00:00Z")],
                ..finding(api(), Change::Changed, spec(&["spec", "replicas"]), json!(3), json!(6))
            },
            Finding {
                severity: Some(Severity::P1),
                ..finding(
                    api(),
                    Change::Changed,
                    containers("api").field("image"),
                    json!("registry.example.com/nucleus/api:1.4.2"),
                    json!("registry.example.com/nucleus/api:1.4.3"),
                )
            },
            Finding {
                cause: Some(Cause::Added),
                fix: Fix::RemoveAdded,
                severity: Some(Severity::P1),
                ..finding(
                    api(),
                    Change::Added,
                    containers("debug"),
                    Value::Null,
                    json!({"name": "debug", "image": "busybox:1.36", "command": ["sleep", "infinity"]}),
                )
            },
        ],
    );
    findings.extend(with_source(
        "nucleus/templates/settings.yaml",
        vec![Finding {
            fix: Fix::Create,
            ..whole(object("v1", "ConfigMap", "settings"), Change::Missing, Some(Cause::Missing))
        }],
    ));
    findings.extend(with_source(
        "nucleus/templates/keys.yaml",
        vec![Finding {
            desired: Shown::Masked { bytes: 12 },
            live: Shown::Masked { bytes: 13 },
            manager: Some(manager("Lens", "2026-11-27T08:00:00Z")),
            cause: Some(Cause::AppliedDifferently),
            ..finding(
                object("v1", "Secret", "api-keys"),
                Change::Changed,
                spec(&["data", "token"]),
                Value::Null,
                Value::Null,
            )
        }],
    ));
    findings.push(Finding {
        cause: Some(Cause::LeftBehind),
        fix: Fix::Patch,
        ..finding(
            object("cert-manager.io/v1", "Certificate", "web"),
            Change::Added,
            spec(&["spec", "dnsNames"]).child(Segment::Member(json!("old.example.com"))),
            Value::Null,
            json!("old.example.com"),
        )
    });
    findings
        .push(Finding { fix: Fix::None, ..whole(object("v1", "Service", "old"), Change::Orphan, Some(Cause::Orphan)) });
    findings.push(Finding {
        manager: Some(manager("helm", "2026-11-30T09:59:50Z")),
        cause: Some(Cause::ForgedName),
        class: Some(Class::C),
        severity: Some(Severity::P1),
        ..finding(
            ObjectRef { namespace: None, ..object("rbac.authorization.k8s.io/v1", "ClusterRole", "prod-viewer") },
            Change::Changed,
            spec(&["rules"]),
            json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete"]}]),
        )
    });
    findings.push(Finding {
        verdict: Verdict::Unverified,
        cause: Some(Cause::Unattributed),
        class: None,
        severity: None,
        manager: None,
        note: Some("changed while reading".into()),
        fix: Fix::None,
        ..finding(
            object("autoscaling/v2", "HorizontalPodAutoscaler", "api"),
            Change::Added,
            spec(&["spec", "behavior"]),
            Value::Null,
            json!({"scaleDown": {}}),
        )
    });
    findings.push(Finding {
        verdict: Verdict::Unverified,
        class: None,
        severity: None,
        note: Some(
            "roles.rbac.authorization.k8s.io is forbidden: User \"viewer\" cannot get resource \"roles\"".into(),
        ),
        fix: Fix::None,
        ..whole(object("rbac.authorization.k8s.io/v1", "Role", "api"), Change::Unreadable, None)
    });
    findings.push(Finding {
        verdict: Verdict::Ignored,
        cause: Some(Cause::Rule),
        class: Some(Class::A),
        severity: Some(Severity::P3),
        rule: Some("scaled by the platform team".into()),
        fix: Fix::None,
        ..finding(
            object("apps/v1", "StatefulSet", "db"),
            Change::Changed,
            spec(&["spec", "replicas"]),
            json!(1),
            json!(2),
        )
    });
    ReleaseReport {
        message: "3 changed, 2 added, 1 removed, 1 missing, 1 left over (1 expected), 2 unverified".into(),
        exit: 2,
        objects: ObjectCounts { total: 34, compared: 32, missing: 1, unreadable: 1, hooks: 2, crds: 3, untrackable: 1 },
        findings,
        notices: vec![
            Notice {
                object: Some(object("v1", "Pod", "shell")),
                reason: NoticeReason::UnattributedAddition,
                message: "volume \"root\" (hostPath) was set at admission, or its trace was wiped".into(),
            },
            Notice {
                object: None,
                reason: NoticeReason::RecordRewritten,
                message: "the release record was last written by kubectl-edit".into(),
            },
            Notice {
                object: Some(api()),
                reason: NoticeReason::DuplicateKey,
                message: "env \"A\" is given twice; the last one counts".into(),
            },
        ],
        ..release("nucleus", Reason::Drifted)
    }
}

pub(crate) fn report_of(releases: Vec<ReleaseReport>) -> Report {
    Report {
        cluster: ClusterInfo {
            context: Some("prod".into()),
            server: Some("https://10.0.0.1:6443".into()),
            version: Some("v1.36.3".into()),
        },
        started_at: now(),
        finished_at: time("2026-11-30T10:00:01.9Z"),
        releases,
        notices: Vec::new(),
        errors: Vec::new(),
    }
}

/// Releases in every reason, two with drift.
pub(crate) fn report() -> Report {
    let mut releases = vec![nucleus()];
    releases.push(ReleaseReport {
        message: "upgrade \"worker\" failed: timed out; the live state fits revision 11: helm rollback worker 11"
            .into(),
        status: Some("failed".into()),
        judged_revision: Some(11),
        apply_method: Some(ApplyMethod::ServerSide),
        findings: vec![Finding {
            verdict: Verdict::Drift,
            ..finding(
                object("apps/v1", "Deployment", "worker"),
                Change::Changed,
                FieldPath::of_fields(&["spec", "paused"]),
                json!(false),
                json!(true),
            )
        }],
        ..release("worker", Reason::Failed)
    });
    for (name, reason, message) in [
        ("archive", Reason::Uninstalled, "uninstalled 3d ago, history kept"),
        (
            "broken",
            Reason::Corrupt,
            "sh.helm.release.v1.broken.v12: not gzip after base64: restore the Secret from a backup",
        ),
        ("cache", Reason::PendingInstall, "the install began 2m ago"),
        ("going", Reason::Uninstalling, "being uninstalled"),
        ("lab", Reason::Disabled, "not judged: mode is disabled"),
        ("moved", Reason::RevisionMismatch, "revision 12, but 13 is expected"),
        ("older", Reason::Superseded, "no revision is deployed: helm rollback older 11"),
        ("quark", Reason::InSync, "34 objects as in revision 12"),
        ("queue", Reason::PendingUpgrade, "the upgrade to revision 12 was cut short 3h ago: helm rollback queue 11"),
        (
            "rolling",
            Reason::PendingRollback,
            "the rollback to revision 11 was cut short 3h ago: helm rollback rolling 11",
        ),
        ("unread", Reason::Unverified, "1 of 34 objects could not be read"),
        ("wiped", Reason::Deleted, "no record, but 3 objects name it"),
    ] {
        releases.push(ReleaseReport { message: message.into(), suspended: name == "going", ..release(name, reason) });
    }
    Report {
        notices: vec![Notice {
            object: None,
            reason: NoticeReason::RuleExpired,
            message: "\"scaled by the platform team\" expired 2026-11-01".into(),
        }],
        errors: vec![
            Trouble {
                reason: TroubleReason::Forbidden,
                message: "secrets is forbidden: User \"viewer\" cannot list resource \"secrets\"".into(),
                namespace: Some("dev".into()),
            },
            Trouble {
                reason: TroubleReason::NotFound,
                message: "release \"nucleu\" not found; similar: nucleus".into(),
                namespace: None,
            },
        ],
        ..report_of(releases)
    }
}

/// A plan with each kind of step, and what it leaves; one refused, one with nothing to do.
pub(crate) fn planned() -> Vec<Planned> {
    let key = |name: &str| ReleaseKey { namespace: "prod".into(), name: name.into() };
    let deployment = || object("apps/v1", "Deployment", "api");
    let binding = object("rbac.authorization.k8s.io/v1", "RoleBinding", "api");
    let image =
        finding(deployment(), Change::Changed, containers("api").field("image"), json!("api:1"), json!("api:2"));
    let added =
        finding(deployment(), Change::Added, FieldPath::of_fields(&["spec", "paused"]), Value::Null, json!(true));
    let missing = whole(object("v1", "ConfigMap", "features"), Change::Missing, Some(Cause::Missing));
    let scaled = Finding {
        verdict: Verdict::Expected,
        cause: Some(Cause::Autoscaler),
        ..finding(deployment(), Change::Changed, FieldPath::of_fields(&["spec", "replicas"]), json!(3), json!(12))
    };
    let role = finding(
        binding.clone(),
        Change::Changed,
        FieldPath::of_fields(&["roleRef", "name"]),
        json!("viewer"),
        json!("admin"),
    );
    let depth = finding(
        object("example.com/v1", "Queue", "orders"),
        Change::Changed,
        FieldPath::of_fields(&["spec", "depth"]),
        json!(100),
        json!(500),
    );
    let label = finding(
        object("v1", "Service", "api"),
        Change::Added,
        FieldPath::of_fields(&["metadata", "labels", "team"]),
        Value::Null,
        json!("x"),
    );
    let step = |action, findings| Step { action, findings };
    let plan = Plan {
        release: key("nucleus"),
        revision: 12,
        judged: 12,
        apply_method: ApplyMethod::ClientSide,
        method: Method::Upgrade,
        because: None,
        steps: vec![
            step(Action::Recreate { object: binding, lost: "its rights for a moment" }, vec![role]),
            step(Action::Upgrade, vec![image, missing]),
            step(Action::Patch(depth.object.clone()), vec![depth.clone()]),
            step(Action::RemoveAdded(label.object.clone()), vec![label]),
        ],
        left: vec![Left { finding: added, needs: "--remove-added".into(), is_removable: true, is_refused: false }],
        collateral: vec![scaled],
        resets: true,
        hooks: vec!["pre-upgrade Job/migrate".into()],
        runs_hooks: false,
        fights: vec![Fight {
            object: depth.object,
            path: Some(".spec.depth".into()),
            writer: Some("queue-tuner".into()),
            corrected: now(),
        }],
        notes: vec!["a re-apply is not atomic".into()],
    };
    vec![
        Planned { release: key("nucleus"), decision: Decision::Correct(Box::new(plan)) },
        Planned { release: key("worker"), decision: Decision::Refuse(Refusal::Suspended) },
        Planned { release: key("quiet"), decision: Decision::Leave },
    ]
}

/// What came of [`planned`]: one step was done, one failed, the others were not begun.
pub(crate) fn outcome() -> Outcome {
    let planned = planned();
    let plan = planned.iter().find_map(Planned::plan).unwrap();
    let results = [
        StepResult::Done(None),
        StepResult::Failed("no revision was made, revision 12 is still deployed".into()),
        StepResult::Skipped("helm did not succeed".into()),
        StepResult::Skipped("helm did not succeed".into()),
    ];
    let steps: Vec<StepOutcome> = plan
        .steps
        .iter()
        .zip(results)
        .map(|(step, result)| StepOutcome {
            release: plan.release.clone(),
            action: step.action.clone(),
            result,
            findings: step.findings.clone(),
        })
        .collect();
    let back = Back {
        release: plan.release.clone(),
        object: object("rbac.authorization.k8s.io/v1", "RoleBinding", "api"),
        path: Some(".roleRef.name".into()),
        writer: Some("role-keeper".into()),
    };
    Outcome {
        evidence: Some("evidence/nucleus.drift".into()),
        steps,
        back: vec![back],
        report: report_of(vec![release("nucleus", Reason::InSync)]),
        planned,
    }
}
