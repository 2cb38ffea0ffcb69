//! Sending of requests: retries after rate limits, redirects, and parsing of errors.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use super::error::{NamedError, XrpcError, XrpcFault};
use super::unsigned::usable;
use crate::http::{
    Client, Coding, HttpError, HttpFault, Limits, MAX_REDIRECTS, ResponseBody, authority,
};
use crate::rate_limit::RateLimiter;
use crate::remote_text::sanitize;

/// The HTTP client with rate limits and retries.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    pub(super) http: Client,
    pub(super) rate_limiter: RateLimiter,
    /// Maximum number of attempts per request, including retries after rate limits.
    pub(super) attempts: u32,
    /// The coding in which repositories are asked for.
    pub(super) repo_coding: Coding,
}

/// The part of a request that does not depend on the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'r> {
    pub(super) method: &'static str,
    pub(super) limits: &'r Limits,
    /// The coding of the body that is asked for.
    pub(super) coding: Coding,
}

/// A successful response whose body is not yet received.
pub(super) struct Response {
    pub(super) host: Box<str>,
    /// Scheme, host and port.
    pub(super) origin: Box<str>,
    pub(super) body: ResponseBody,
}

/// The URL of a method, with its parameters, at `host`.
pub(super) fn method_url(host: &Url, method: &str, parameters: &[(&str, &str)]) -> Url {
    let mut url = host.clone();
    url.set_path(&format!("/xrpc/com.atproto.sync.{method}"));
    url.set_fragment(None);
    url.set_query(None);
    if !parameters.is_empty() {
        url.query_pairs_mut().extend_pairs(parameters);
    }
    url
}

impl Response {
    /// Reads the whole body.
    pub(super) async fn bytes(mut self, request: &Request<'_>) -> Result<Bytes, XrpcError> {
        let body = self.body.read_to_end().await;
        body.map_err(|error| request.http_error(&self.host, error))
    }

    /// Reads the whole body and parses it with `parse`.
    pub(super) async fn json<T>(
        self,
        request: &Request<'_>,
        parse: impl FnOnce(&[u8]) -> serde_json::Result<T>,
    ) -> Result<T, XrpcError> {
        let host = self.host.clone();
        parse(&self.bytes(request).await?).map_err(|error| {
            let reason = sanitize(&error.to_string(), MAX_REASON_CHARS).into();
            request.error(&host, XrpcFault::Schema(reason))
        })
    }
}

impl Transport {
    /// Sends a request to `url`, again after rate limits with short delays.
    pub(super) async fn send(
        &self,
        request: &Request<'_>,
        url: Url,
    ) -> Result<Response, XrpcError> {
        let mut attempt = 1;
        loop {
            match self.send_once(request, url.clone()).await {
                Err(error) if attempt < self.attempts && error.is_rate_limit() => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    /// Sends a request to `url` and follows redirects.
    async fn send_once(&self, request: &Request<'_>, mut url: Url) -> Result<Response, XrpcError> {
        let mut limits = *request.limits;
        for _ in 0..=MAX_REDIRECTS {
            let host = authority(&url);
            let body = self.open(request, &host, &url, &mut limits).await?;
            let status = body.status();
            match status {
                200 => return request.response(&url, body).await,
                301 | 302 | 303 | 307 | 308 => url = request.redirect(&host, &url, &body)?,
                _ => return Err(request.error(&host, read_error(body).await)),
            }
        }
        let fault = HttpFault::Redirects(MAX_REDIRECTS);
        Err(request.error(&authority(&url), XrpcFault::Http(fault)))
    }

    /// Sends a request to one host, when its rate limit allows it, and subtracts the time from `limits`.
    async fn open(
        &self,
        request: &Request<'_>,
        host: &str,
        url: &Url,
        limits: &mut Limits,
    ) -> Result<ResponseBody, XrpcError> {
        let ready = self.rate_limiter.until_ready(host).await;
        ready.map_err(|limited| request.error(host, XrpcFault::RateLimited(limited)))?;
        let start = Instant::now();
        let body = self.http.open_coded(url, limits, request.coding).await;
        let body = body.map_err(|error| request.http_error(host, error))?;
        limits.max_time = limits.max_time.saturating_sub(start.elapsed());
        self.rate_limiter.record_response(host, body.status(), body.headers());
        Ok(body)
    }
}

impl Request<'_> {
    /// The target of a redirect.
    fn redirect(&self, host: &str, url: &Url, body: &ResponseBody) -> Result<Url, XrpcError> {
        let location = body.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let target = location.and_then(|location| url.join(location).ok());
        target.ok_or_else(|| self.error(host, XrpcFault::Location(body.status())))
    }

    /// The response of a method. A `text/` body, such as an HTML page, is rejected, unless it is an archive, as some servers state the
    /// wrong type, or a blob, which can be of every type.
    async fn response(&self, url: &Url, mut body: ResponseBody) -> Result<Response, XrpcError> {
        let host: Box<str> = authority(url).into();
        let stated = body.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_refused = |stated: &&str| self.method != GET_BLOB && stated.starts_with("text/");
        if let Some(stated) = stated.filter(is_refused) {
            let content_type = sanitize(stated, MAX_TYPE_CHARS).into();
            let start = body.peek(ARCHIVE_START).await;
            if !is_archive(start.map_err(|error| self.http_error(&host, error))?) {
                return Err(self.error(&host, XrpcFault::ContentType(content_type)));
            }
        }
        let origin = url.origin().ascii_serialization().into();
        Ok(Response { host, origin, body })
    }

    #[cold]
    fn http_error(&self, host: &str, error: HttpError) -> XrpcError {
        self.error(host, XrpcFault::Http(error.fault))
    }

    #[cold]
    pub(super) fn error(&self, host: &str, fault: XrpcFault) -> XrpcError {
        XrpcError::new(host, self.method, fault)
    }
}

/// Whether a body begins like an archive: the length of its header, and the map that is the header. In UTF-8 no such byte follows one of
/// ASCII.
fn is_archive(start: &[u8]) -> bool {
    let last_of_length = start.iter().take(ARCHIVE_START - 1).position(|byte| *byte < 0x80);
    let map = last_of_length.and_then(|at| start.get(at + 1));
    map.is_some_and(|byte| (0xa0..0xc0).contains(byte))
}

/// Reads the body of an error response, within limits of its own. Without a valid body, the fault is the
/// status.
pub(crate) async fn read_error(mut body: ResponseBody) -> XrpcFault {
    let status = body.status();
    let body = timeout(ERROR_TIMEOUT, body.read_at_most(MAX_ERROR_BYTES)).await;
    let body = body.ok().and_then(Result::ok);
    match body.and_then(|body| serde_json::from_slice::<ErrorBody>(&body).ok()) {
        Some(ErrorBody { error, message }) => {
            let message = message.unwrap_or_default();
            XrpcFault::Named(NamedError::new(&error, &message, status))
        }
        None => XrpcFault::Status(status),
    }
}

/// The body of an error response.
#[derive(Deserialize)]
struct ErrorBody {
    error: Box<str>,
    #[serde(default, deserialize_with = "usable")]
    message: Option<Box<str>>,
}

/// The method whose answer is a blob.
pub(super) const GET_BLOB: &str = "getBlob";

/// Bytes of an archive that have the length of its header and the beginning of the header.
const ARCHIVE_START: usize = 4;
const MAX_ERROR_BYTES: u64 = 64 << 10;
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TYPE_CHARS: usize = 64;
const MAX_REASON_CHARS: usize = 300;
