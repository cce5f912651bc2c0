//! A listing, page by page. Knows nothing of what is in the pages.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

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

/// Objects of the type `T`, whole or as much of each as is wanted.
#[derive(Deserialize)]
pub(super) struct Page<T> {
    #[serde(default)]
    pub(super) metadata: PageMeta,
    pub(super) items: Option<Vec<T>>,
}

/// An object of which only the metadata is looked at, whatever else the server sends; `M` is as much of it as is wanted.
#[derive(Deserialize)]
pub(super) struct Item<M> {
    pub(super) metadata: M,
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

    /// What `pick` makes of the objects of all pages, in the server's order; `what` names them in an error.
    ///
    /// Pages are read off the async threads, and only what is picked of one outlives it. After `410 Gone` everything
    /// is read anew, so that nothing is told twice.
    pub(super) async fn all<T, R>(
        mut self,
        what: &str,
        pick: impl Fn(T) -> Option<R> + Send + Sync + 'static,
    ) -> Result<Vec<R>, ReadError>
    where
        T: DeserializeOwned,
        R: Send + 'static,
    {
        let pick = Arc::new(pick);
        let mut found = Vec::new();
        loop {
            let body = match self.page().await {
                Err(ReadError::Gone(_)) if self.restart() => {
                    found.clear();
                    continue;
                }
                answer => answer?,
            };
            let (what, pick) = (what.to_owned(), Arc::clone(&pick));
            let (picked, token) = off_thread(move || {
                let page: Page<T> = serde_json::from_slice(&body).map_err(|error| malformed(&what, &error))?;
                let picked: Vec<R> = page.items.unwrap_or_default().into_iter().filter_map(&*pick).collect();
                Ok((picked, page.metadata.token))
            })
            .await?;
            found.extend(picked);
            if !self.advance(token)? {
                return Ok(found);
            }
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

/// Work that takes a while, such as parsing a page; a panic in it is an answer that cannot be read.
pub(super) async fn off_thread<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, ReadError> + Send + 'static,
) -> Result<R, ReadError> {
    let internal = |_| Err(ReadError::Malformed("internal error while an answer was read".to_owned()));
    spawn_blocking(work).await.unwrap_or_else(internal)
}

/// An answer that does not parse. serde's own text is left out: it quotes values, and those may be a Secret's.
pub(super) fn malformed(what: &str, error: &serde_json::Error) -> ReadError {
    ReadError::Malformed(format!(
        "the answer for {what} is not the JSON it should be (line {}, column {})",
        error.line(),
        error.column()
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::super::client::METADATA_LIST;
    use super::super::fake::{Answer, Fake, status};
    use super::*;

    #[derive(Deserialize)]
    struct Name {
        name: String,
    }

    fn page(names: &[&str], token: &str) -> Answer {
        let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}, "data": {"a": "b"}})).collect();
        (200, json!({"metadata": {"continue": token}, "items": items}).to_string())
    }

    async fn names(fake: &Fake) -> Result<Vec<String>, ReadError> {
        let listing = Listing::new(&fake.client().await, Query::new("/api/v1/configmaps"), 2, METADATA_LIST);
        let pick = |item: Item<Name>| Some(item.metadata.name).filter(|name| name != "other");
        listing.all("the configmaps", pick).await
    }

    #[tokio::test]
    async fn all_pages_are_read_in_order() {
        let fake = Fake::start(|asked| {
            assert_eq!(asked.accept, METADATA_LIST);
            match asked.path.as_str() {
                "/api/v1/configmaps?limit=2" => page(&["b", "other"], "two"),
                "/api/v1/configmaps?limit=2&continue=two" => {
                    (200, json!({"metadata": {"continue": "three"}}).to_string())
                }
                "/api/v1/configmaps?limit=2&continue=three" => {
                    (200, json!({"items": [{"metadata": {"name": "a"}}]}).to_string())
                }
                _ => status(500, "unexpected"),
            }
        });
        assert_eq!(names(&fake).await.unwrap(), ["b", "a"]);
        assert_eq!(fake.asked().len(), 3);
    }

    #[tokio::test]
    async fn a_listing_that_expires_is_started_again_once_and_tells_nothing_twice() {
        for times in [1, 2] {
            let expired = AtomicUsize::new(0);
            let fake = Fake::start(move |asked| match asked.path.ends_with("continue=two") {
                true if expired.fetch_add(1, Ordering::Relaxed) < times => status(410, "too old"),
                true => page(&["b"], ""),
                false => page(&["a"], "two"),
            });
            let answer = names(&fake).await;
            if times == 1 {
                assert_eq!(answer.unwrap(), ["a", "b"]);
            } else {
                assert!(matches!(answer, Err(ReadError::Gone(_))), "{answer:?}");
            }
            assert_eq!(fake.asked().len(), 4);
        }
    }

    #[tokio::test]
    async fn a_page_that_leads_to_itself_or_does_not_parse_ends_the_listing() {
        let circle = Fake::start(|_| page(&["a"], "two"));
        assert!(names(&circle).await.unwrap_err().to_string().contains("where it just was"));
        let garbage = Fake::start(|_| (200, r#"{"items": [{"metadata": "hunter2"}]}"#.to_owned()));
        let error = names(&garbage).await.unwrap_err().to_string();
        assert!(error.contains("the configmaps") && !error.contains("hunter2"), "{error}");
    }

    #[tokio::test]
    async fn a_pick_that_panics_is_an_error() {
        let fake = Fake::start(|_| page(&["a"], ""));
        let listing = Listing::new(&fake.client().await, Query::new("/api/v1/configmaps"), 2, METADATA_LIST);
        let pick = |item: Item<Name>| -> Option<()> { panic!("a hostile {}", item.metadata.name) };
        let error = listing.all("the configmaps", pick).await.unwrap_err();
        assert!(error.to_string().contains("internal error"), "{error}");
    }
}
