//! Responses of methods: JSON documents, lists page by page, and repository archives as streams.
//!
//! Nothing signs these documents. Only the requested fields are required: an optional field whose value is unusable
//! counts as absent.

use std::io::{self, Write};

use atproto::syntax::{DidBuf, Tid};
use bytes::Bytes;
use codec::Cid;
use reqwest::Url;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::error::{XrpcError, XrpcFault};
use super::request::{Request, Response, Transport, method_url};
use super::unsigned::{Entries, MAX_CURSOR_BYTES, OddEntries, usable};
use crate::http::{Coding, HttpError, Limits, ResponseBody};

/// `getLatestCommit`: the current commit of a repository, as claimed by the host; not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct LatestCommit {
    /// The commit.
    #[serde(deserialize_with = "cid")]
    pub cid: Cid,
    /// Its revision.
    pub rev: Tid,
}

/// `getRepoStatus`: the status of an account on a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RepoStatus {
    /// The account; `None` if the response does not say.
    #[serde(default, deserialize_with = "usable")]
    pub did: Option<Box<str>>,
    /// Whether the host serves its repository.
    pub active: bool,
    /// The reason if it does not, such as `takendown`.
    #[serde(default, deserialize_with = "usable")]
    pub status: Option<Box<str>>,
    /// The revision of an active account.
    #[serde(default, deserialize_with = "usable")]
    pub rev: Option<Tid>,
}

/// An account in a response of `listRepos`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListedRepo {
    /// The account.
    pub did: DidBuf,
    /// Its current commit; `None` if the response does not say.
    #[serde(default, deserialize_with = "usable_cid")]
    pub head: Option<Cid>,
    /// The revision of that commit; `None` if the response does not say.
    #[serde(default, deserialize_with = "usable")]
    pub rev: Option<Tid>,
    /// Whether the host serves its repository; `None` if the response does not say.
    #[serde(default, deserialize_with = "usable")]
    pub active: Option<bool>,
    /// The reason if it does not.
    #[serde(default, deserialize_with = "usable")]
    pub status: Option<Box<str>>,
}

/// A server in a response of `listHosts`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedHost {
    /// Its name, with a port unless it is the default. Untrusted: anyone can submit a name to a relay.
    pub hostname: Box<str>,
    /// The sequence number of the latest event that the relay received from it.
    #[serde(default, deserialize_with = "usable")]
    pub seq: Option<i64>,
    /// Number of its accounts that the relay knows.
    #[serde(default, deserialize_with = "usable")]
    pub account_count: Option<i64>,
    /// Its status, such as `active`, `idle`, `offline`, `throttled` or `banned`.
    #[serde(default, deserialize_with = "usable")]
    pub status: Option<Box<str>>,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage<T> {
    /// The items.
    pub items: Vec<T>,
    /// The entries that are none, which are left out.
    pub odd: OddEntries,
    /// The server's cursor of the next page; `None` after the last page.
    pub cursor: Option<Box<str>>,
}

/// A response that is a page of a list.
pub(super) trait ListResponse: for<'de> Deserialize<'de> {
    type Item;

    fn into_page(self) -> ListPage<Self::Item>;
}

/// `listRepos`.
#[derive(Deserialize)]
pub(super) struct ReposResponse {
    repos: Entries<ListedRepo>,
    cursor: Option<Box<str>>,
}

/// `listReposByCollection`.
#[derive(Deserialize)]
pub(super) struct DidsResponse {
    repos: Entries<ListedDid>,
    cursor: Option<Box<str>>,
}

#[derive(Deserialize)]
struct ListedDid {
    did: DidBuf,
}

/// `listHosts`.
#[derive(Deserialize)]
pub(super) struct HostsResponse {
    hosts: Entries<ListedHost>,
    cursor: Option<Box<str>>,
}

impl ListResponse for ReposResponse {
    type Item = ListedRepo;

    fn into_page(self) -> ListPage<ListedRepo> {
        ListPage::new(self.repos, self.cursor)
    }
}

impl ListResponse for DidsResponse {
    type Item = DidBuf;

    fn into_page(self) -> ListPage<DidBuf> {
        let Entries { items, odd } = self.repos;
        let items = items.into_iter().map(|listed| listed.did).collect();
        ListPage::new(Entries { items, odd }, self.cursor)
    }
}

impl ListResponse for HostsResponse {
    type Item = ListedHost;

    fn into_page(self) -> ListPage<ListedHost> {
        ListPage::new(self.hosts, self.cursor)
    }
}

impl<T> ListPage<T> {
    /// An empty cursor counts as none: no place of a list has it.
    fn new(Entries { items, odd }: Entries<T>, cursor: Option<Box<str>>) -> Self {
        Self { items, odd, cursor: cursor.filter(|cursor| !cursor.is_empty()) }
    }
}

fn cid<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cid, D::Error> {
    let text = <Box<str>>::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom("not a CID of AT Protocol"))
}

fn usable_cid<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cid>, D::Error> {
    let text: Option<Box<str>> = usable(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// Start and page size of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageOptions<'p> {
    /// Maximum number of items per page; `None` for the default of the host.
    pub limit: Option<u16>,
    /// A cursor from an earlier page of the same host; `None` for the first page.
    pub cursor: Option<&'p str>,
}

/// A list, requested page by page. The number of pages is not limited.
#[derive(Debug)]
pub struct Pages<'c, T> {
    transport: &'c Transport,
    method: &'static str,
    /// The URL without a cursor.
    url: Url,
    parse: ParsePage<T>,
    next: NextPage,
}

type ParsePage<T> = fn(&[u8]) -> serde_json::Result<ListPage<T>>;

#[derive(Debug)]
enum NextPage {
    First,
    At(Box<str>),
    None,
}

impl<'c, T> Pages<'c, T> {
    pub(super) fn new(
        transport: &'c Transport,
        host: &Url,
        method: &'static str,
        parameters: &[(&str, &str)],
        options: &PageOptions<'_>,
        parse: ParsePage<T>,
    ) -> Self {
        let limit = options.limit.map(|limit| limit.to_string());
        let mut parameters = parameters.to_vec();
        parameters.extend(limit.as_deref().map(|limit| ("limit", limit)));
        let next = options.cursor.map_or(NextPage::First, |cursor| NextPage::At(cursor.into()));
        Self { transport, method, url: method_url(host, method, &parameters), parse, next }
    }

    /// The method.
    pub(super) fn method(&self) -> &'static str {
        self.method
    }

    /// The next page; `None` after the last. After an error, the call can be repeated.
    ///
    /// # Errors
    /// If the request fails, the response is no page of the list, or its cursor repeats or is longer than
    /// [`MAX_CURSOR_BYTES`].
    pub async fn next(&mut self) -> Result<Option<ListPage<T>>, XrpcError> {
        let mut url = self.url.clone();
        match &self.next {
            NextPage::First => {}
            NextPage::At(cursor) => drop(url.query_pairs_mut().append_pair("cursor", cursor)),
            NextPage::None => return Ok(None),
        }
        let (limits, coding) = (&Limits::LIST, Coding::Identity);
        let request = Request { method: self.method, limits, coding };
        let response = self.transport.send(&request, url).await?;
        let host = response.host.clone();
        let page = response.json(&request, self.parse).await?;
        self.next = match (&page.cursor, &self.next) {
            (Some(cursor), NextPage::At(last)) if cursor == last => {
                return Err(request.error(&host, XrpcFault::Cursor));
            }
            (Some(cursor), _) if cursor.len() > MAX_CURSOR_BYTES => {
                return Err(request.error(&host, XrpcFault::LongCursor(cursor.len())));
            }
            (Some(cursor), _) => NextPage::At(cursor.clone()),
            (None, _) => NextPage::None,
        };
        Ok(Some(page))
    }
}

/// A repository archive, received in chunks; not verified.
#[derive(Debug)]
pub struct RepoStream {
    method: &'static str,
    host: Box<str>,
    origin: Box<str>,
    body: ResponseBody,
}

/// A transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedRepo {
    /// The origin of the host that sent it: scheme, host and port. After a redirect, of its target.
    pub host: Box<str>,
    /// Number of bytes, decoded.
    pub bytes: u64,
    /// Number of bytes as they were received: fewer if the host has compressed them.
    pub wire_bytes: u64,
}

/// Why an archive could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The request failed, or the response is incomplete.
    #[error(transparent)]
    Remote(#[from] XrpcError),
    /// Writing failed.
    #[error("cannot write the archive: {0}")]
    Local(#[from] io::Error),
}

impl RepoStream {
    pub(super) fn new(method: &'static str, response: Response) -> Self {
        let Response { host, origin, body } = response;
        Self { method, host, origin, body }
    }

    /// The host that sends it; after a redirect, its target.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The origin of that host: scheme, host and port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Its length in bytes, if the server states it and does not compress it.
    pub fn stated_bytes(&self) -> Option<u64> {
        self.body.stated_bytes()
    }

    /// Number of received bytes, decoded.
    pub fn received(&self) -> u64 {
        self.body.received()
    }

    /// Number of bytes as they were received.
    pub fn wire_bytes(&self) -> u64 {
        self.body.wire_bytes()
    }

    /// The bytes that were received so far.
    pub fn fetched(&self) -> FetchedRepo {
        FetchedRepo {
            host: self.origin().into(),
            bytes: self.received(),
            wire_bytes: self.wire_bytes(),
        }
    }

    /// The next chunk, decoded; `None` at the end.
    ///
    /// # Errors
    /// If the connection fails, a limit is exceeded, or a compressed archive is damaged.
    pub async fn next(&mut self) -> Result<Option<Bytes>, XrpcError> {
        let chunk = self.body.next().await;
        chunk.map_err(|error| self.error(error))
    }

    /// The rest of it.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn read_to_end(&mut self) -> Result<Bytes, XrpcError> {
        let rest = self.body.read_to_end().await;
        rest.map_err(|error| self.error(error))
    }

    /// Writes the rest of it in chunks as they are received.
    ///
    /// # Errors
    /// As [`next`](Self::next), or if writing fails.
    pub async fn write_to(
        &mut self,
        writer: &mut (impl Write + ?Sized),
    ) -> Result<FetchedRepo, FetchError> {
        let before = self.fetched();
        while let Some(chunk) = self.next().await? {
            writer.write_all(&chunk)?;
        }
        writer.flush()?;
        let FetchedRepo { host, bytes, wire_bytes } = self.fetched();
        let (bytes, wire_bytes) = (bytes - before.bytes, wire_bytes - before.wire_bytes);
        Ok(FetchedRepo { host, bytes, wire_bytes })
    }

    #[cold]
    fn error(&self, error: HttpError) -> XrpcError {
        XrpcError::new(&self.host, self.method, XrpcFault::Http(error.fault))
    }
}
