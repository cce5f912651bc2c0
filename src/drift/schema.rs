//! Types of fields as the cluster's own OpenAPI documents tell them. Knows nothing of values.

use serde::{Deserialize, Serialize};

use super::object::Gvk;

/// What the comparison needs of one group version's OpenAPI v3 document; small enough to keep on disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Schema {}

/// Changes whenever the digest's form changes, so that an older program's cache is not read.
pub(crate) const DIGEST_VERSION: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("the OpenAPI document is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Schema {
    /// `document`: the body of `/openapi/v3/apis/<group>/<version>`.
    pub(crate) fn from_openapi(document: &[u8]) -> Result<Self, SchemaError> {
        let _: serde_json::Value = serde_json::from_slice(document)?;
        Ok(Self {})
    }

    /// Whether the document describes the kind.
    pub(crate) fn has(&self, _gvk: &Gvk) -> bool {
        false
    }
}
