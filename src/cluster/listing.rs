//! A listing, page by page. Knows nothing of what is in the pages.

use serde::Deserialize;

use super::client::{Client, Get, ReadError};
use super::path::Query;

/// Objects asked for at once. Metadata and most kinds are small.
pub(super) const PAGE: usize = 500;

/// One listing in progress: pages in order, each asked for with the token of the one before.
pub(super) struct Listing {
    client: Client,
    query: Query,
    accept: &'static str,
    compress: bool,
    token: Option<String>,
    restarted: bool,
}

/// What every page says about the listing.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PageMeta {
    #[serde(default, rename = "continue")]
    pub(super) token: Option<String>,
}

impl Listing {
    /// No `resourceVersion` is sent: with `0` the answer may be stale, and ignores the page size.
    pub(super) fn new(client: &Client, query: Query, limit: usize, accept: &'static str) -> Self {
        Self {
            client: client.clone(),
            query: query.with("limit", &limit.to_string()),
            accept,
            compress: !client.is_local(),
            token: None,
            restarted: false,
        }
    }

    /// The page at hand, as often as asked.
    pub(super) async fn page(&self) -> Result<Vec<u8>, ReadError> {
        let path = self.query.clone().with_some("continue", self.token.as_deref()).path();
        self.client.get(&Get { path, accept: self.accept, compress: self.compress }).await
    }

    /// Goes on to the next page; false when there is none.
    pub(super) fn advance(&mut self, token: Option<String>) -> Result<bool, ReadError> {
        let token = token.filter(|token| !token.is_empty());
        if token.is_some() && token == self.token {
            return Err(ReadError::Malformed("the server continues a listing where it just was".to_owned()));
        }
        self.token = token;
        Ok(self.token.is_some())
    }

    /// Back to the first page after `410 Gone`: once, since a server that always forgets would keep us here.
    pub(super) fn restart(&mut self) -> bool {
        let first = !self.restarted;
        self.restarted = true;
        self.token = None;
        first
    }
}

/// An answer that does not parse. serde's own text is left out: it quotes values, and those may be a Secret's.
pub(super) fn malformed(what: &str, error: &serde_json::Error) -> ReadError {
    ReadError::Malformed(format!(
        "the answer for {what} is not the JSON it should be (line {}, column {})",
        error.line(),
        error.column()
    ))
}
