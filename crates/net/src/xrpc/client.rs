//! The XRPC client, with a function per method.

use std::io::Write;

use atproto::syntax::{Did, DidBuf, Nsid, RecordKey, Tid};
use bytes::Bytes;
use codec::Cid;
use reqwest::Url;
use serde::de::DeserializeOwned;

use super::error::{XrpcError, XrpcFault};
use super::request::{GET_BLOB, Request, Response, Transport, method_url};
use super::response::{
    DidsResponse, FetchError, FetchedRepo, HostsResponse, LatestCommit, ListPage, ListResponse,
    ListedHost, ListedRepo, PageOptions, Pages, RepoStatus, RepoStream, ReposResponse,
};
use crate::http::{self, Coding, Limits};
use crate::rate_limit::RateLimiter;

/// Requests repositories, records and lists. Clones share connections and rate limits.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
}

impl Client {
    /// A client that sends requests through `http`, with its egress policy.
    pub fn new(http: http::Client) -> Self {
        let (rate_limiter, repo_coding) = (RateLimiter::default(), Coding::Identity);
        Self { transport: Transport { http, rate_limiter, attempts: 3, repo_coding } }
    }

    /// Sets the rate limiter, which other clients may share.
    #[must_use]
    pub fn with_rate_limiter(mut self, rate_limiter: RateLimiter) -> Self {
        self.transport.rate_limiter = rate_limiter;
        self
    }

    /// The rate limiter.
    pub fn rate_limiter(&self) -> &RateLimiter {
        &self.transport.rate_limiter
    }

    /// Sets the maximum number of attempts per request: a request with status 429 or 503 is retried after
    /// the delay that the host requests. At least 1; the default is 3.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.transport.attempts = attempts;
        self
    }

    /// Sets the coding in which repositories are asked for; the default is none.
    #[must_use]
    pub fn with_repo_coding(mut self, coding: Coding) -> Self {
        self.transport.repo_coding = coding;
        self
    }

    /// `getRepo`: the repository of `did`, or its changes after the revision `since`, as a stream that fails
    /// when it exceeds one of the `limits`.
    ///
    /// # Errors
    /// If the request fails.
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
        let request = Request { method: "getRepo", limits, coding: self.transport.repo_coding };
        let response = self.send(&request, host, &parameters).await?;
        Ok(RepoStream::new(request.method, response))
    }

    /// `getRepo`, written to `writer` as it is received.
    ///
    /// # Errors
    /// If the request fails, the response is incomplete, or writing fails; `writer` may then have received a
    /// part of it.
    pub async fn fetch_repo(
        &self,
        host: &Url,
        did: Did<'_>,
        writer: &mut (impl Write + ?Sized),
        limits: &Limits,
    ) -> Result<FetchedRepo, FetchError> {
        self.get_repo(host, did, None, limits).await?.write_to(writer).await
    }

    /// `getBlob`: the blob of this CID, written to `writer` as it is received. The bytes are not verified.
    ///
    /// # Errors
    /// As [`fetch_repo`](Self::fetch_repo).
    pub async fn fetch_blob(
        &self,
        host: &Url,
        did: Did<'_>,
        cid: &Cid,
        writer: &mut (impl Write + ?Sized),
        limits: &Limits,
    ) -> Result<FetchedRepo, FetchError> {
        let request = Request { method: GET_BLOB, limits, coding: Coding::Identity };
        let cid = cid.to_string();
        let parameters = [("did", did.as_str()), ("cid", &*cid)];
        let response = self.send(&request, host, &parameters).await?;
        RepoStream::new(request.method, response).write_to(writer).await
    }

    /// `getRecord`: an archive that proves a record, or its absence.
    ///
    /// # Errors
    /// If the request fails.
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
    /// If the request fails.
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

    /// `getLatestCommit`: the current commit of the repository of `did`.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn get_latest_commit(
        &self,
        host: &Url,
        did: Did<'_>,
    ) -> Result<LatestCommit, XrpcError> {
        self.json(host, "getLatestCommit", &[("did", did.as_str())]).await
    }

    /// `getRepoStatus`: the status of `did` on the host.
    ///
    /// # Errors
    /// If the request fails, or the response is for another account, or does not say whether this one is active.
    pub async fn get_repo_status(&self, host: &Url, did: Did<'_>) -> Result<RepoStatus, XrpcError> {
        let method = "getRepoStatus";
        let status: RepoStatus = self.json(host, method, &[("did", did.as_str())]).await?;
        if status.did.as_deref().is_none_or(|of| of == did.as_str()) {
            Ok(status)
        } else {
            let fault = XrpcFault::Schema("another account".into());
            Err(XrpcError::new(&http::authority(host), method, fault))
        }
    }

    /// `listRepos`: all accounts of a host, page by page.
    pub fn list_repos(&self, host: &Url, options: &PageOptions<'_>) -> Pages<'_, ListedRepo> {
        Pages::new(&self.transport, host, "listRepos", &[], options, parse_page::<ReposResponse>)
    }

    /// `listReposByCollection`: the accounts that have records of a collection, page by page.
    pub fn list_repos_by_collection(
        &self,
        host: &Url,
        collection: Nsid<'_>,
        options: &PageOptions<'_>,
    ) -> Pages<'_, DidBuf> {
        let parameters = [("collection", collection.as_str())];
        Pages::new(
            &self.transport,
            host,
            "listReposByCollection",
            &parameters,
            options,
            parse_page::<DidsResponse>,
        )
    }

    /// `listHosts`: the servers that a relay subscribes to, page by page.
    pub fn list_hosts(&self, host: &Url, options: &PageOptions<'_>) -> Pages<'_, ListedHost> {
        Pages::new(&self.transport, host, "listHosts", &[], options, parse_page::<HostsResponse>)
    }

    /// `getHostStatus`: the claims of a relay about a server that it subscribes to.
    ///
    /// # Errors
    /// If the request fails, or the relay does not know the server.
    pub async fn get_host_status(
        &self,
        relay: &Url,
        hostname: &str,
    ) -> Result<ListedHost, XrpcError> {
        self.json(relay, "getHostStatus", &[("hostname", hostname)]).await
    }

    async fn bytes(
        &self,
        host: &Url,
        method: &'static str,
        parameters: &[(&str, &str)],
    ) -> Result<Bytes, XrpcError> {
        let request = Request { method, limits: &Limits::SLICE, coding: Coding::Identity };
        self.send(&request, host, parameters).await?.bytes(&request).await
    }

    async fn json<T: DeserializeOwned>(
        &self,
        host: &Url,
        method: &'static str,
        parameters: &[(&str, &str)],
    ) -> Result<T, XrpcError> {
        let request = Request { method, limits: &Limits::DOCUMENT, coding: Coding::Identity };
        let response = self.send(&request, host, parameters).await?;
        response.json(&request, |body| serde_json::from_slice(body)).await
    }

    async fn send(
        &self,
        request: &Request<'_>,
        host: &Url,
        parameters: &[(&str, &str)],
    ) -> Result<Response, XrpcError> {
        self.transport.send(request, method_url(host, request.method, parameters)).await
    }
}

/// The page in a body. Text that is not UTF-8 is replaced, so that it costs the entry that it is in.
fn parse_page<R: ListResponse>(body: &[u8]) -> serde_json::Result<ListPage<R::Item>> {
    serde_json::from_str(&String::from_utf8_lossy(body)).map(R::into_page)
}
