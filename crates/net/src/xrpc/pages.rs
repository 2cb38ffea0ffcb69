//! Pagination of lists.

use reqwest::Url;

use super::request::{Request, url};
use super::{Client, ListPage, XrpcError, XrpcFault};
use crate::http::Limits;

/// Where a list begins, and how much of it stands on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageOptions<'p> {
    /// How many a page; `None` as the host likes.
    pub limit: Option<u16>,
    /// Where to begin, as the same host said it on an earlier page; `None` for the beginning.
    pub cursor: Option<&'p str>,
}

/// A list that is asked for page by page. It may be as long as the host likes.
#[derive(Debug)]
pub struct Pages<'c, T> {
    client: &'c Client,
    method: &'static str,
    /// Without the cursor.
    url: Url,
    read: Read<T>,
    next: Next,
}

type Read<T> = fn(&[u8]) -> serde_json::Result<ListPage<T>>;

#[derive(Debug)]
enum Next {
    First,
    At(Box<str>),
    None,
}

impl<'c, T> Pages<'c, T> {
    pub(super) fn new(
        client: &'c Client,
        host: &Url,
        method: &'static str,
        parameters: &[(&str, &str)],
        paging: &PageOptions<'_>,
        read: Read<T>,
    ) -> Self {
        let limit = paging.limit.map(|limit| limit.to_string());
        let mut parameters = parameters.to_vec();
        parameters.extend(limit.as_deref().map(|limit| ("limit", limit)));
        let next = paging.cursor.map_or(Next::First, |cursor| Next::At(cursor.into()));
        Self { client, method, url: url(host, method, &parameters), read, next }
    }

    /// The next page; `None` behind the last one. After an error it can be asked for again.
    ///
    /// # Errors
    /// If the host does not give it, or gives what the method does not have, or the cursor of this
    /// page as that of the next.
    pub async fn next(&mut self) -> Result<Option<ListPage<T>>, XrpcError> {
        let mut url = self.url.clone();
        match &self.next {
            Next::First => {}
            Next::At(cursor) => drop(url.query_pairs_mut().append_pair("cursor", cursor)),
            Next::None => return Ok(None),
        }
        let request = Request { method: self.method, limits: &Limits::LIST };
        let answer = request.ask(self.client, url).await?;
        let host = answer.host.clone();
        let page = answer.json(&request, self.read).await?;
        self.next = match (&page.cursor, &self.next) {
            (Some(cursor), Next::At(last)) if cursor == last => {
                return Err(request.error(&host, XrpcFault::Cursor));
            }
            (Some(cursor), _) => Next::At(cursor.clone()),
            (None, _) => Next::None,
        };
        Ok(Some(page))
    }
}
