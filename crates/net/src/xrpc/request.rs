//! Requests of a method: retries after rate limits, redirects, and parsing of errors.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use super::client::Client;
use super::error::cut;
use super::{NamedError, XrpcError, XrpcFault};
use crate::http::{HttpError, HttpFault, Limits, MAX_REDIRECTS, ResponseBody, authority};

/// A request that is the same whoever is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'q> {
    pub(super) method: &'static str,
    pub(super) limits: &'q Limits,
}

/// A result on its way, and who gives it.
pub(super) struct Response {
    pub(super) host: Box<str>,
    /// Scheme, host and port.
    pub(super) origin: Box<str>,
    pub(super) body: ResponseBody,
}

/// The URL of a method, with its parameters, at `host`.
pub(super) fn url(host: &Url, method: &str, parameters: &[(&str, &str)]) -> Url {
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
    /// The whole body.
    pub(super) async fn whole(mut self, request: &Request<'_>) -> Result<Bytes, XrpcError> {
        let whole = self.body.read_to_end().await;
        whole.map_err(|error| request.http(&self.host, error))
    }

    /// What `read` makes of the whole body.
    pub(super) async fn json<T>(
        self,
        request: &Request<'_>,
        read: impl FnOnce(&[u8]) -> serde_json::Result<T>,
    ) -> Result<T, XrpcError> {
        let host = self.host.clone();
        read(&self.whole(request).await?).map_err(|error| {
            let reason = cut(&error.to_string(), MAX_REASON_CHARS);
            request.error(&host, XrpcFault::Schema(reason))
        })
    }
}

impl Request<'_> {
    /// Asks at `url`, and again where a host asks for a short patience.
    pub(super) async fn ask(&self, client: &Client, url: Url) -> Result<Response, XrpcError> {
        let mut attempt = 1;
        loop {
            match self.follow(client, url.clone()).await {
                Err(error) if attempt < client.attempts && is_refusal(&error) => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    /// Asks at `url`, and where that sends us. Each host is asked only when it wants to be.
    async fn follow(&self, client: &Client, mut url: Url) -> Result<Response, XrpcError> {
        let mut limits = *self.limits;
        for _ in 0..=MAX_REDIRECTS {
            let host = authority(&url);
            let body = self.step(client, &host, &url, &mut limits).await?;
            let status = body.status();
            match status {
                200 => return self.result(&url, body),
                301 | 302 | 303 | 307 | 308 => url = self.next(&host, &url, &body)?,
                _ => return Err(self.error(&host, refusal(body).await)),
            }
        }
        let fault = HttpFault::Redirects(MAX_REDIRECTS);
        Err(self.error(&authority(&url), XrpcFault::Http(fault)))
    }

    /// Asks one host, when it wants to be asked, in the time that the ones before it left.
    async fn step(
        &self,
        client: &Client,
        host: &str,
        url: &Url,
        limits: &mut Limits,
    ) -> Result<ResponseBody, XrpcError> {
        let entered = client.gate.until_ready(host).await;
        entered.map_err(|early| self.error(host, XrpcFault::RateLimited(early)))?;
        let since = Instant::now();
        let body = client.http.open_direct(url, limits).await;
        let body = body.map_err(|error| self.http(host, error))?;
        limits.max_time = limits.max_time.saturating_sub(since.elapsed());
        client.gate.record_response(host, body.status(), body.headers());
        Ok(body)
    }

    fn next(&self, host: &str, url: &Url, body: &ResponseBody) -> Result<Url, XrpcError> {
        let location = body.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let next = location.and_then(|location| url.join(location).ok());
        next.ok_or_else(|| self.error(host, XrpcFault::Location(body.status())))
    }

    /// A body that says that it is a page for people is none of a method, whatever its status.
    fn result(&self, url: &Url, body: ResponseBody) -> Result<Response, XrpcError> {
        let host: Box<str> = authority(url).into();
        let stated = body.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match stated.filter(|stated| stated.starts_with("text/")) {
            Some(page) => Err(self.error(&host, XrpcFault::ContentType(cut(page, MAX_TYPE_CHARS)))),
            None => {
                let origin = url.origin().ascii_serialization().into();
                Ok(Response { host, origin, body })
            }
        }
    }

    #[cold]
    pub(super) fn http(&self, host: &str, error: HttpError) -> XrpcError {
        self.error(host, XrpcFault::Http(error.fault))
    }

    #[cold]
    pub(super) fn error(&self, host: &str, fault: XrpcFault) -> XrpcError {
        XrpcError { host: host.into(), method: self.method, fault }
    }
}

/// Whether a host has just asked for patience; then the gate knows for how long.
fn is_refusal(error: &XrpcError) -> bool {
    match &error.fault {
        XrpcFault::Named(NamedError { status, .. }) | XrpcFault::Status(status) => {
            matches!(status, 429 | 503)
        }
        _ => false,
    }
}

/// What the body of an answer says that is no result. It is short, whatever the limits of the result
/// are, and if it does not come the status says enough.
async fn refusal(mut body: ResponseBody) -> XrpcFault {
    let status = body.status();
    let said = timeout(ERROR_TIME, body.read_at_most(MAX_ERROR_BYTES)).await;
    let said = said.ok().and_then(Result::ok);
    match said.and_then(|said| serde_json::from_slice::<Said>(&said).ok()) {
        Some(Said { error, message }) => {
            let message = message.unwrap_or_default();
            XrpcFault::Named(NamedError::new(&error, &message, status))
        }
        None => XrpcFault::Status(status),
    }
}

/// The body of an error.
#[derive(Deserialize)]
struct Said {
    error: Box<str>,
    message: Option<Box<str>>,
}

const MAX_ERROR_BYTES: u64 = 64 << 10;
const ERROR_TIME: Duration = Duration::from_secs(10);
const MAX_TYPE_CHARS: usize = 64;
const MAX_REASON_CHARS: usize = 300;
