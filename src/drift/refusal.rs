//! Why a release is not corrected, and what to do instead (design.md §11). Each is one line that names the remedy.

use super::object::ObjectRef;
use super::plan::HelmVersion;

/// Reads well after `not corrected:`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Pending, uninstalling, superseded, corrupt, …: the report's own message, which names the remedy.
    #[error("{reason}: {message}")]
    State { reason: &'static str, message: String },
    #[error(
        "it is suspended: take the label helm-drift/suspend off the release, or `suspended: true` out of the configuration"
    )]
    Suspended,
    #[error("{count} could not be told ({first}): mend that, or correct the rest by --partial")]
    Unverified { count: usize, first: String },
    #[error("{0}")]
    OtherController(String),
    #[error(
        "its record does not say who wrote it, so whose release it is cannot be told: let helm write it once (`helm rollback {name} {revision} -n {namespace}`)"
    )]
    NobodysRecord { name: String, namespace: String, revision: u64 },
    #[error(
        "its record has {bytes} of at most 1048576 bytes, so Helm could not store another revision: --method patch makes none"
    )]
    LargeRecord { bytes: usize },
    #[error(
        "another revision would prune revision {revision}, the last one with another manifest to roll back to: --method patch makes none, HELM_MAX_HISTORY keeps more"
    )]
    Prunes { revision: u64 },
    #[error("{0}; --method patch needs no helm")]
    NoHelm(String),
    #[error(
        "Helm {version} deletes objects whose apiVersion differs between two revisions (helm/helm#31768), as here: use Helm 4.1.1 or newer, or --method patch"
    )]
    DeletesMoved { version: HelmVersion },
    #[error(
        "it was applied server-side by Helm 4, which Helm {version} would undo: name a Helm 4 by HELM_BIN, or --method patch"
    )]
    OtherMajor { version: HelmVersion },
    #[error(
        "its chart had subcharts, which the record does not hold: name the chart by --chart (and --version), or --method reapply, which needs none but is not atomic"
    )]
    NoChart,
    #[error("its chart cannot be rebuilt from the record ({0}): name it by --chart, or --method reapply")]
    BadChart(String),
    #[error(
        "the chart does not render what is stored ({0}), so an upgrade would change more than what drifted: --method reapply goes back to the stored manifest"
    )]
    RendersOtherwise(String),
    #[error("whether the chart renders what is stored cannot be told: {0}")]
    NotRendered(String),
    #[error(
        "{object} holds secret values that would be lost: keep them in the evidence by --include-secrets, or give them up by --discard-secret-values"
    )]
    SecretValues { object: Box<ObjectRef> },
    #[error(
        "the record's value of {object} is the token of a masked capture, not the value: restore the record from a backup that was not masked"
    )]
    Masked { object: Box<ObjectRef> },
    #[error("{object} is never recreated: {why}")]
    NeverRecreated { object: Box<ObjectRef>, why: &'static str },
}

impl Refusal {
    /// The word for it in JSON; a closed list.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::State { reason, .. } => reason,
            Self::Suspended => "Suspended",
            Self::Unverified { .. } => "Unverified",
            Self::OtherController(_) => "OtherController",
            Self::NobodysRecord { .. } => "RecordRewritten",
            Self::LargeRecord { .. } => "LargeRecord",
            Self::Prunes { .. } => "Prunes",
            Self::NoHelm(_) => "NoHelm",
            Self::DeletesMoved { .. } => "DeletesMoved",
            Self::OtherMajor { .. } => "OtherMajor",
            Self::NoChart => "NoChart",
            Self::BadChart(_) => "BadChart",
            Self::RendersOtherwise(_) => "RendersOtherwise",
            Self::NotRendered(_) => "NotRendered",
            Self::SecretValues { .. } => "SecretValues",
            Self::Masked { .. } => "Masked",
            Self::NeverRecreated { .. } => "NeverRecreated",
        }
    }
}
