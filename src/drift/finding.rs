//! What is reported: findings, notices, releases and their readiness. Knows nothing of how they were found or are printed.

use jiff::Timestamp;
use serde_json::Value;

use super::object::{FieldPath, ObjectRef};

/// How desired and live differ (design.md §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Changed,
    Removed,
    Added,
    Missing,
    Unreadable,
    Orphan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Drift,
    Expected,
    Ignored,
    Unverified,
}

/// Why a finding has its verdict (design.md §8, closed list).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
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
}

/// The triage of design.md §7.1: A benign, B hotfix, C unexplained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    A,
    B,
    C,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    P1,
    P2,
    P3,
}

/// The first method that repairs a finding (design.md §11, table).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fix {
    Upgrade,
    Reapply,
    Patch,
    Create,
    RemoveAdded,
    Recreate,
    None,
}

/// One managedFields entry that holds a field.
///
/// `time` is this manager's last activity in its entry, an upper bound on when the field was set; never "the moment of the change".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: String,
    pub(crate) subresource: Option<String>,
    pub(crate) time: Option<Timestamp>,
}

/// A value as it may be shown. Secret values are masked when a finding is made, so that no output can leak them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown {
    /// The field is not there on this side.
    Absent,
    Plain(Value),
    /// `bytes`: length of the decoded value.
    Masked {
        bytes: usize,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) object: ObjectRef,
    /// The chart's template, from Helm's `# Source:` comment.
    pub(crate) source: Option<String>,
    pub(crate) change: Change,
    /// `None` when the finding is about the whole object.
    pub(crate) path: Option<FieldPath>,
    /// RFC 6901, into the live object.
    pub(crate) pointer: Option<String>,
    pub(crate) desired: Shown,
    pub(crate) live: Shown,
    /// The newest entry that holds the path; `None`: nobody.
    pub(crate) manager: Option<Manager>,
    /// The other holders.
    pub(crate) managers: Vec<Manager>,
    pub(crate) verdict: Verdict,
    pub(crate) cause: Option<Cause>,
    pub(crate) class: Option<Class>,
    pub(crate) severity: Option<Severity>,
    pub(crate) rule: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) fix: Fix,
}

/// Why a notice was made (design.md §8, closed list).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NoticeReason {
    DuplicateKey,
    Pruned,
    VersionNotServed,
    NoManagedFields,
    TypesMissing,
    DiscoveryFailed,
    RecordRewritten,
    ForeignLabel,
    UnattributedAddition,
    RuleExpired,
    RuleNeverMatches,
    LookupForbidden,
    FluxMode,
    StalePods,
    NotCompared,
    AlsoTrue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Notice {
    pub(crate) object: Option<ObjectRef>,
    pub(crate) reason: NoticeReason,
    pub(crate) message: String,
}

/// Why something could not be told at all (design.md §8, closed list).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TroubleReason {
    NotFound,
    Forbidden,
    Unauthorized,
    Unreachable,
    Timeout,
    OtherDriver,
    NothingFound,
    Internal,
}

/// An entry of the report's `errors`: it makes the exit code 2.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trouble {
    pub(crate) reason: TroubleReason,
    pub(crate) message: String,
    pub(crate) namespace: Option<String>,
}

/// A condition's status, as Kubernetes spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    True,
    False,
    Unknown,
}

/// State of a release (design.md §6); listed in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Corrupt,
    Disabled,
    PendingInstall,
    PendingUpgrade,
    PendingRollback,
    Failed,
    Uninstalling,
    Uninstalled,
    Superseded,
    RevisionMismatch,
    Deleted,
    Drifted,
    Unverified,
    InSync,
}

/// Drift detection mode of a release (design.md §10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Warn,
    Correct,
    Disabled,
}

/// How Helm writes the release's objects: `csa` (client-side) or `ssa` (server-side apply).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ApplyMethod {
    #[default]
    ClientSide,
    ServerSide,
}

/// How many objects there are, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectCounts {
    pub(crate) total: usize,
    pub(crate) compared: usize,
    pub(crate) missing: usize,
    pub(crate) unreadable: usize,
    pub(crate) hooks: usize,
    pub(crate) crds: usize,
    pub(crate) untrackable: usize,
}

/// Where the desired state came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Secret,
    ConfigMap,
    Sql,
    Files,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReleaseReport {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The newest revision; `None` where there is no record.
    pub(crate) revision: Option<u64>,
    /// The revision whose manifest was compared.
    pub(crate) judged_revision: Option<u64>,
    /// Helm's own word for the newest revision, verbatim.
    pub(crate) status: Option<String>,
    /// `name-version`.
    pub(crate) chart: Option<String>,
    pub(crate) app_version: Option<String>,
    pub(crate) last_deployed: Option<Timestamp>,
    pub(crate) storage: Storage,
    pub(crate) apply_method: Option<ApplyMethod>,
    pub(crate) ready: Condition,
    pub(crate) stalled: Condition,
    pub(crate) reason: Reason,
    /// One line; names the remedy.
    pub(crate) message: String,
    pub(crate) mode: Mode,
    pub(crate) suspended: bool,
    /// Whether this release decides about the exit code, and with what (design.md §3, §6): 0, 1 or 2.
    pub(crate) exit: u8,
    pub(crate) objects: ObjectCounts,
    pub(crate) findings: Vec<Finding>,
    pub(crate) notices: Vec<Notice>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterInfo {
    pub(crate) context: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) version: Option<String>,
}

/// Everything a check has to say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) cluster: ClusterInfo,
    pub(crate) started_at: Timestamp,
    pub(crate) finished_at: Timestamp,
    /// By namespace, then name.
    pub(crate) releases: Vec<ReleaseReport>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) errors: Vec<Trouble>,
}

impl Report {
    /// 0 everything shown is ready, 1 something is not, 2 it could not be told; 2 outranks 1.
    pub(crate) fn exit_code(&self) -> u8 {
        let errors = if self.errors.is_empty() { 0 } else { 2 };
        self.releases.iter().map(|release| release.exit).max().unwrap_or(0).max(errors)
    }
}
