//! Client of a hosted archive: plans of segments, and the segments and blocks themselves.
//!
//! A plan names the sealed segments, or blocks of them, that may have events of the requested kinds, accounts and collections. It is a
//! claim of the server, as are the segments: nothing in them is signed.
//!
//! Requests go to the named host alone: a redirect is an error, so that no other host receives the token.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

use atproto::syntax::DidBuf;
use bytes::Bytes;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::EventKind;
use crate::http::{self, Limits, ResponseBody, authority};
use crate::rate_limit::RateLimiter;
use crate::remote_text::sanitize;
use crate::xrpc::{FetchError, XrpcError, XrpcFault, read_error};

/// Requests plans, segments and blocks of one host. Clones share connections and rate limits.
#[derive(Clone, Debug)]
pub struct ArchiveClient {
    http: http::Client,
    host: Url,
    rate_limiter: RateLimiter,
    authorization: Option<HeaderValue>,
}

/// The events that a plan is asked for. Collections select operations only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanRequest {
    /// Kinds; all if there is none.
    #[serde(serialize_with = "kind_names")]
    pub kinds: Vec<EventKind>,
    /// Accounts; all if there is none, at most 10,000.
    pub dids: Vec<DidBuf>,
    /// Names such as `app.bsky.feed.post`, or `app.bsky.feed.*`; all if there is none, at most 100.
    pub collections: Vec<String>,
    /// The sequence number after which events are asked for.
    pub after_seq: u64,
    /// The last sequence number that is asked for; `None` for the end of the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_seq: Option<u64>,
}

/// A page of a plan, as the server states it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanPage {
    /// The last sequence number that the page covers.
    pub planned_through_seq: u64,
    /// The last sequence number of the archive, or of the request.
    pub sealed_tip_seq: u64,
    /// The segments, in order.
    pub segments: Vec<PlannedSegment>,
}

/// A segment of a plan, as the server states it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedSegment {
    /// The name of the file.
    pub name: Box<str>,
    /// The number of the segment.
    pub index: u64,
    /// The checksum of header and footer, in hexadecimal.
    pub checksum: Box<str>,
    /// The first sequence number.
    pub min_seq: u64,
    /// The last sequence number.
    pub max_seq: u64,
    /// `segment` for the whole file, `blocks` for ranges of blocks.
    pub mode: Box<str>,
    /// The ranges of blocks.
    #[serde(default)]
    pub blocks: Vec<PlannedBlocks>,
}

/// A range of blocks of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct PlannedBlocks {
    /// The first block.
    pub first: u32,
    /// The last block.
    pub last: u32,
}

/// A token for a hosted archive, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(HeaderValue);

/// A token that cannot be a part of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is 1 to {MAX_TOKEN_LEN} visible ASCII characters")]
pub struct InvalidToken;

impl Token {
    /// The token of this text; white space around it is dropped.
    ///
    /// # Errors
    /// If it cannot be a part of a header.
    pub fn new(text: &str) -> Result<Self, InvalidToken> {
        let text = text.trim();
        let is_valid = (1..=MAX_TOKEN_LEN).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        let value = is_valid.then(|| HeaderValue::try_from(format!("Bearer {text}")).ok());
        let mut value = value.flatten().ok_or(InvalidToken)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl ArchiveClient {
    /// A client of the archive at `host`.
    pub fn new(http: http::Client, host: Url, token: Option<Token>) -> Self {
        let rate_limiter = RateLimiter::new(MAX_WAIT);
        Self { http, host, rate_limiter, authorization: token.map(|token| token.0) }
    }

    /// The host.
    pub fn host(&self) -> &Url {
        &self.host
    }

    /// A page of a plan.
    ///
    /// # Errors
    /// If the request fails, or the response is no plan.
    pub async fn plan(&self, request: &PlanRequest) -> Result<PlanPage, XrpcError> {
        let method = "planSnapshot";
        let body = serde_json::to_vec(request).expect("names, numbers and lists").into();
        let response = self.send(method, &[], Some(body), &Limits::EXPORT).await?;
        let body = self.read(method, response).await?;
        serde_json::from_slice(&body).map_err(|error| {
            self.error(method, XrpcFault::Schema(sanitize(&error.to_string(), 200).into()))
        })
    }

    /// Writes a whole segment to `file`; returns its length.
    ///
    /// # Errors
    /// If the request fails, the response is incomplete or over a limit, or writing fails.
    pub async fn fetch_segment(
        &self,
        name: &str,
        file: &File,
        limits: &Limits,
    ) -> Result<u64, FetchError> {
        let method = "getSegment";
        let mut body = self.send(method, &[("name", name)], None, limits).await?;
        let mut out = BufWriter::new(file);
        let mut len = 0;
        while let Some(chunk) =
            body.next().await.map_err(|error| self.error(method, XrpcFault::Http(error.fault)))?
        {
            out.write_all(&chunk)?;
            len += chunk.len() as u64;
        }
        out.flush()?;
        Ok(len)
    }

    /// A compressed block; `None` if the server says that the block is of another segment than the one with this `checksum`: the
    /// segment was replaced since it was planned.
    ///
    /// # Errors
    /// If the request fails, or the response is incomplete or over a limit.
    pub async fn fetch_block(
        &self,
        segment: &str,
        checksum: &str,
        number: u32,
        limits: &Limits,
    ) -> Result<Option<Bytes>, XrpcError> {
        let method = "getBlock";
        let number = number.to_string();
        let parameters = [("segment", segment), ("blockIndex", &*number)];
        let response = self.send(method, &parameters, None, limits).await?;
        let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        if tag.is_some_and(|tag| !tag.contains(checksum)) {
            return Ok(None);
        }
        self.read(method, response).await.map(Some)
    }

    /// Sends a request, again after rate limits.
    async fn send(
        &self,
        method: &'static str,
        parameters: &[(&str, &str)],
        body: Option<Bytes>,
        limits: &Limits,
    ) -> Result<ResponseBody, XrpcError> {
        let mut url = self.host.clone();
        url.set_path(&format!("/xrpc/network.bsky.jetstream.{method}"));
        url.set_query(None);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        let mut attempt = 1;
        loop {
            match self.send_once(method, &url, body.clone(), limits).await {
                Err(error) if attempt < ATTEMPTS && error.is_rate_limit() => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn send_once(
        &self,
        method: &'static str,
        url: &Url,
        body: Option<Bytes>,
        limits: &Limits,
    ) -> Result<ResponseBody, XrpcError> {
        let host = authority(url);
        let ready = self.rate_limiter.until_ready(&host).await;
        ready.map_err(|limited| self.error(method, XrpcFault::RateLimited(limited)))?;
        let mut headers = HeaderMap::new();
        headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let started = Instant::now();
        let response = self.http.open_with(url, headers, body, limits).await;
        let response =
            response.map_err(|error| self.error(method, XrpcFault::Http(error.fault)))?;
        let (status, took) = (response.status(), started.elapsed());
        tracing::debug!(target: "wireproof::net::jetstream", host, method, status, ?took, "answer");
        self.rate_limiter.record_response(&host, status, response.headers());
        match status {
            200 => Ok(response),
            301 | 302 | 303 | 307 | 308 => Err(self.error(method, XrpcFault::Location(status))),
            _ => Err(self.error(method, read_error(response).await)),
        }
    }

    async fn read(&self, method: &'static str, mut body: ResponseBody) -> Result<Bytes, XrpcError> {
        let bytes = body.read_to_end().await;
        bytes.map_err(|error| self.error(method, XrpcFault::Http(error.fault)))
    }

    #[cold]
    fn error(&self, method: &'static str, fault: XrpcFault) -> XrpcError {
        XrpcError::new(&authority(&self.host), method, fault)
    }
}

fn kind_names<S: serde::Serializer>(kinds: &[EventKind], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(kinds.iter().map(|kind| kind.name()))
}

/// Attempts of a request, including retries after rate limits.
const ATTEMPTS: u32 = 16;

/// The longest delay that a host may request.
const MAX_WAIT: Duration = Duration::from_secs(300);

const MAX_TOKEN_LEN: usize = 4096;
