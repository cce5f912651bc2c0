//! A finding to test with; tests change what they are about.

use super::finding::{Cause, Change, Class, Finding, Fix, Manager, Severity, Shown, Verdict};
use super::object::{FieldPath, Gvk, ObjectRef};

/// In the namespace `prod`.
pub(crate) fn object(api_version: &str, kind: &str, name: &str) -> ObjectRef {
    ObjectRef { gvk: Gvk::new(api_version, kind), namespace: Some("prod".into()), name: name.into() }
}

/// Drift of one field, changed by `kubectl-edit` at a time not told.
pub(crate) fn finding(object: ObjectRef, path: FieldPath) -> Finding {
    Finding {
        object,
        source: None,
        change: Change::Changed,
        path: Some(path),
        pointer: None,
        desired: Shown::Absent,
        live: Shown::Absent,
        manager: Some(Manager {
            name: "kubectl-edit".into(),
            operation: "Update".into(),
            subresource: None,
            time: None,
        }),
        managers: Vec::new(),
        verdict: Verdict::Drift,
        cause: Some(Cause::Edited),
        class: Some(Class::B),
        severity: Some(Severity::P2),
        rule: None,
        note: None,
        fix: Fix::Upgrade,
    }
}
