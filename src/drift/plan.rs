//! What is to be done about a release, and what that follows from: wishes, ground, steps. Shapes alone; `planner` makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use super::finding::{ApplyMethod, Finding};
use super::object::{ObjectKey, ObjectRef};
use super::release::ReleaseKey;

/// How a release is corrected (design.md §11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// An atomic `helm upgrade` to the very manifest that is stored.
    Upgrade,
    /// `helm rollback` to the current revision: needs no chart, and is not atomic.
    Reapply,
    /// Finding by finding, through the API.
    Patch,
}

impl Method {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade",
            Self::Reapply => "reapply",
            Self::Patch => "patch",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HelmVersion {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
}

impl fmt::Display for HelmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// `Kind/name` or `Kind.group/name`, as typed after `--recreate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) kind: String,
    pub(crate) group: Option<String>,
    pub(crate) name: String,
}

impl Named {
    pub(crate) fn names(&self, object: &ObjectRef) -> bool {
        self.kind.eq_ignore_ascii_case(&object.gvk.kind)
            && self.group.as_ref().is_none_or(|group| *group == object.gvk.group)
            && self.name == object.name
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) => write!(f, "{}.{group}/{}", self.kind, self.name),
            None => write!(f, "{}/{}", self.kind, self.name),
        }
    }
}

/// What becomes of secret values that a correction overwrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldSecrets {
    /// The evidence holds them.
    Kept,
    /// The user gave them up.
    GivenUp,
    Lost,
}

/// What the user wants and allows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wishes {
    /// `None`: [`Method::Upgrade`].
    pub(crate) method: Option<Method>,
    pub(crate) chart_given: bool,
    pub(crate) run_hooks: bool,
    /// Upgrade or re-apply even where that resets what is expected or ignored.
    pub(crate) reset_ignored: bool,
    pub(crate) remove_added: bool,
    pub(crate) recreate: Vec<Named>,
    pub(crate) partial: bool,
    pub(crate) old_secrets: OldSecrets,
}

/// What is known of a release beside its report.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// Managers that wrote the newest record's payload.
    pub(crate) record_writers: Vec<String>,
    pub(crate) has_subcharts: bool,
    /// Of the judged revision: `pre-upgrade Job/migrate`.
    pub(crate) hooks: Vec<String>,
    /// Of the newest record's payload, as stored.
    pub(crate) record_bytes: usize,
    /// A revision that another one would prune, though it is the last whose manifest differs.
    pub(crate) prunes: Option<u64>,
    /// Some object's apiVersion differs between Helm's base and the judged revision.
    pub(crate) moved_versions: bool,
    /// The helm that would be run, or why there is none.
    pub(crate) helm: Result<HelmVersion, String>,
    /// Objects of kinds that the cluster does not serve, or not in the manifest's version: Helm stops at these.
    pub(crate) unbuildable: Option<String>,
    pub(crate) unserved: BTreeSet<ObjectKey>,
    /// Objects in which client-side Helm's merge takes one list item for another, as they are wanted or as they are.
    pub(crate) confused: BTreeSet<ObjectKey>,
    /// Objects that the server would not let be repaired as planned.
    pub(crate) refused: BTreeMap<ObjectKey, Obstruction>,
    /// Objects that are being deleted.
    pub(crate) ending: BTreeSet<ObjectKey>,
    /// Live finalizers by object: they may hold up its deletion.
    pub(crate) held: BTreeMap<ObjectKey, Vec<String>>,
    /// An object whose desired values are tokens of a masked capture.
    pub(crate) masked: Option<ObjectRef>,
    /// What was corrected before, by object and path, with the writer that was overruled and when.
    pub(crate) before: BTreeMap<(ObjectKey, Option<String>), (String, Timestamp)>,
}

impl Ground {
    /// Nothing is known that speaks for or against it, but which helm there is.
    pub(crate) fn blank(helm: Result<HelmVersion, String>) -> Self {
        Self {
            record_writers: Vec::new(),
            has_subcharts: false,
            hooks: Vec::new(),
            record_bytes: 0,
            prunes: None,
            moved_versions: false,
            helm,
            unbuildable: None,
            unserved: BTreeSet::new(),
            confused: BTreeSet::new(),
            refused: BTreeMap::new(),
            ending: BTreeSet::new(),
            held: BTreeMap::new(),
            masked: None,
            before: BTreeMap::new(),
        }
    }
}

/// One thing to do. Every finding in it is in sync once it is done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Deleted and created again: what is lost by that, in words.
    Recreate {
        object: ObjectRef,
        lost: &'static str,
    },
    Upgrade,
    Reapply,
    Create(ObjectRef),
    Patch(ObjectRef),
    RemoveAdded(ObjectRef),
}

impl Action {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Recreate { .. } => "recreate",
            Self::Upgrade => "upgrade",
            Self::Reapply => "reapply",
            Self::Create(_) => "create",
            Self::Patch(_) => "patch",
            Self::RemoveAdded(_) => "remove-added",
        }
    }

    /// `None`: it is about the release as a whole.
    pub(crate) fn object(&self) -> Option<&ObjectRef> {
        match self {
            Self::Recreate { object, .. } | Self::Create(object) | Self::Patch(object) | Self::RemoveAdded(object) => {
                Some(object)
            }
            Self::Upgrade | Self::Reapply => None,
        }
    }

    pub(crate) fn is_helm(&self) -> bool {
        matches!(self, Self::Upgrade | Self::Reapply)
    }
}

/// Drift that the plan leaves, and what it would take.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Left {
    pub(crate) finding: Finding,
    pub(crate) needs: String,
    /// `--remove-added` would take it away.
    pub(crate) is_removable: bool,
    /// The server would not have it otherwise.
    pub(crate) is_refused: bool,
}

/// What the server said when an object's repair was rehearsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstruction {
    pub(crate) why: String,
    pub(crate) answer: Answer,
    /// It is taken when it is not Helm that sends it.
    pub(crate) alone: bool,
    /// It is taken when what somebody added goes in the same request.
    pub(crate) with_removal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Never like this.
    Refused,
    /// Not by this user, or not here: rights, a quota, a policy.
    Forbidden,
    /// None that tells: a webhook that is down, a time-out. A patch may be tried, Helm is not.
    Uncertain,
}

/// The same field back after it was corrected before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fight {
    pub(crate) object: ObjectRef,
    pub(crate) path: Option<String>,
    /// Who sets it; `None`: nobody owns it.
    pub(crate) writer: Option<String>,
    /// When it was corrected before.
    pub(crate) corrected: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) release: ReleaseKey,
    pub(crate) revision: u64,
    /// The revision that is gone back to.
    pub(crate) judged: u64,
    pub(crate) apply_method: ApplyMethod,
    pub(crate) method: Method,
    /// Why it is not the method that was asked for.
    pub(crate) because: Option<String>,
    /// In the order in which they are done. Empty: there is nothing that could be.
    pub(crate) steps: Vec<Step>,
    pub(crate) left: Vec<Left>,
    /// Expected and ignored findings that an upgrade resets: with `resets` they are reset, without they stay.
    pub(crate) collateral: Vec<Finding>,
    pub(crate) resets: bool,
    pub(crate) hooks: Vec<String>,
    pub(crate) runs_hooks: bool,
    pub(crate) fights: Vec<Fight>,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    pub(crate) fn uses_helm(&self) -> bool {
        self.steps.iter().any(|step| step.action.is_helm())
    }
}
