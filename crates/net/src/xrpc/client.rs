//! The XRPC client, with a function per method.

use std::io::Write;

use atproto::syntax::{Did, DidBuf, Nsid, RecordKey, Tid};
use bytes::Bytes;
use codec::Cid;
use reqwest::Url;
use serde::de::DeserializeOwned;

use super::answers::{Dids, Hosts, Paged, Repos};
use super::request::{Request, url};
use super::{
    FetchError, FetchedRepo, LatestCommit, ListPage, ListedHost, ListedRepo, PageOptions, Pages,
    RepoStatus, RepoStream, XrpcError, XrpcFault,
};
use crate::http::{self, Limits};
use crate::rate_limit::RateLimiter;

/// Asks servers for repositories and lists. Clones share connections and what hosts have asked for.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) http: http::Client,
    pub(super) gate: RateLimiter,
    /// How often a host is asked that wants to be left alone for a short time.
    pub(super) attempts: u32,
}

impl Client {
    /// A client that connects where `http` does.
    pub fn new(http: http::Client) -> Self {
        Self { http, gate: RateLimiter::default(), attempts: 3 }
    }

    /// The same, asking hosts through `gate`, which others may use too.
    pub fn with_rate_limiter(self, gate: RateLimiter) -> Self {
        Self { gate, ..self }
    }

    /// The same, asking so often in all where a host is busy (status 429 or 503), each time when it
    /// said; at least once. Three times.
    pub fn with_attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// `getRepo`: the repository of `did`, or what is newer in it than the revision `since`, as a
    /// stream that ends with an error if it breaks one of the `limits`.
    ///
    /// # Errors
    /// If the host does not give it.
    pub async fn get_repo(
        &self,
        host: &Url,
        did: Did<'_>,
        since: Option<Tid>,
        limits: &Limits,
    ) -> Result<RepoStream, XrpcError> {
        let since = since.map(|rev| rev.to_string());
        let mut parameters = vec![("did", did.as_str())];
        parameters.extend(since.as_deref().map(|rev| ("since", rev)));
        let request = Request { method: "getRepo", limits };
        let answer = request.ask(self, url(host, request.method, &parameters)).await?;
        Ok(RepoStream::new(request.method, answer))
    }

    /// `getRepo`, written to a file as it comes.
    ///
    /// # Errors
    /// If the host does not give it, or not whole, or it cannot be written; `into` may then hold the
    /// beginning of it.
    pub async fn fetch_repo(
        &self,
        host: &Url,
        did: Did<'_>,
        into: &mut (impl Write + ?Sized),
        limits: &Limits,
    ) -> Result<FetchedRepo, FetchError> {
        self.get_repo(host, did, None, limits).await?.write_to(into).await
    }

    /// `getRecord`: the slice of a repository that proves what is at a path of it.
    ///
    /// # Errors
    /// If the host does not give it.
    pub async fn get_record(
        &self,
        host: &Url,
        did: Did<'_>,
        collection: Nsid<'_>,
        rkey: RecordKey<'_>,
    ) -> Result<Bytes, XrpcError> {
        let parameters =
            [("did", did.as_str()), ("collection", collection.as_str()), ("rkey", rkey.as_str())];
        self.bytes(host, "getRecord", &parameters).await
    }

    /// `getBlocks`: an archive of these blocks.
    ///
    /// # Errors
    /// If the host does not give it.
    pub async fn get_blocks(
        &self,
        host: &Url,
        did: Did<'_>,
        cids: &[Cid],
    ) -> Result<Bytes, XrpcError> {
        let cids: Vec<String> = cids.iter().map(Cid::to_string).collect();
        let mut parameters = vec![("did", did.as_str())];
        parameters.extend(cids.iter().map(|cid| ("cids", &**cid)));
        self.bytes(host, "getBlocks", &parameters).await
    }

    /// `getLatestCommit`: where the repository of `did` is.
    ///
    /// # Errors
    /// If the host does not say.
    pub async fn get_latest_commit(
        &self,
        host: &Url,
        did: Did<'_>,
    ) -> Result<LatestCommit, XrpcError> {
        self.json(host, "getLatestCommit", &[("did", did.as_str())]).await
    }

    /// `getRepoStatus`: how the host stands to `did`.
    ///
    /// # Errors
    /// If the host does not say, or speaks of another account.
    pub async fn get_repo_status(&self, host: &Url, did: Did<'_>) -> Result<RepoStatus, XrpcError> {
        let method = "getRepoStatus";
        let status: RepoStatus = self.json(host, method, &[("did", did.as_str())]).await?;
        match status.did.as_did() == did {
            true => Ok(status),
            false => {
                let fault = XrpcFault::Schema("of another account".into());
                Err(XrpcError::new(&http::authority(host), method, fault))
            }
        }
    }

    /// `listRepos`: all accounts of a host, page by page.
    pub fn list_repos(&self, host: &Url, paging: &PageOptions<'_>) -> Pages<'_, ListedRepo> {
        Pages::new(self, host, "listRepos", &[], paging, read::<Repos>)
    }

    /// `listReposByCollection`: the accounts that have records of a collection, page by page.
    pub fn list_repos_by_collection(
        &self,
        host: &Url,
        collection: Nsid<'_>,
        paging: &PageOptions<'_>,
    ) -> Pages<'_, DidBuf> {
        let parameters = [("collection", collection.as_str())];
        Pages::new(self, host, "listReposByCollection", &parameters, paging, read::<Dids>)
    }

    /// `listHosts`: the servers that a relay reads, page by page.
    pub fn list_hosts(&self, host: &Url, paging: &PageOptions<'_>) -> Pages<'_, ListedHost> {
        Pages::new(self, host, "listHosts", &[], paging, read::<Hosts>)
    }

    async fn bytes(
        &self,
        host: &Url,
        method: &'static str,
        parameters: &[(&str, &str)],
    ) -> Result<Bytes, XrpcError> {
        let request = Request { method, limits: &Limits::SLICE };
        request.ask(self, url(host, method, parameters)).await?.whole(&request).await
    }

    async fn json<T: DeserializeOwned>(
        &self,
        host: &Url,
        method: &'static str,
        parameters: &[(&str, &str)],
    ) -> Result<T, XrpcError> {
        let request = Request { method, limits: &Limits::DOCUMENT };
        let answer = request.ask(self, url(host, method, parameters)).await?;
        answer.json(&request, |body| serde_json::from_slice(body)).await
    }
}

fn read<A: Paged>(body: &[u8]) -> serde_json::Result<ListPage<A::Item>> {
    serde_json::from_slice(body).map(A::into_page)
}
