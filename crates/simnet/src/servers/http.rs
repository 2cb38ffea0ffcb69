//! HTTP requests and responses of the servers.

use std::io;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, DATE, HeaderName, HeaderValue, LOCATION};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::request_limits::AnnouncedLimit;

/// A request.
pub(super) type HttpRequest = Request<Incoming>;

/// A response.
pub(super) type HttpResponse = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// A response with these bytes as its body.
pub(super) fn bytes(status: u16, content_type: &str, bytes: impl Into<Bytes>) -> HttpResponse {
    let body = Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync();
    response(status, content_type, body)
}

/// A response whose body is a stream.
pub(super) fn streamed<S>(content_type: &str, pieces: S) -> HttpResponse
where
    S: futures_util::Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    use futures_util::StreamExt;
    let frames = pieces.map(|piece| piece.map(Frame::data));
    response(200, content_type, StreamBody::new(frames).boxed_unsync())
}

fn response(
    status: u16,
    content_type: &str,
    body: UnsyncBoxBody<Bytes, io::Error>,
) -> HttpResponse {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("a valid status");
    with_header(response, CONTENT_TYPE, content_type)
}

/// A response with a JSON body.
pub(super) fn json(status: u16, value: &Value) -> HttpResponse {
    bytes(status, "application/json; charset=utf-8", value.to_string())
}

/// A response with a text body.
pub(super) fn text(status: u16, text: &str) -> HttpResponse {
    bytes(status, "text/plain; charset=utf-8", text.to_owned())
}

/// An XRPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct XrpcError {
    status: u16,
    name: &'static str,
    message: String,
}

/// Creates an XRPC error.
#[cold]
pub(super) fn error(status: u16, name: &'static str, message: &str) -> XrpcError {
    XrpcError { status, name, message: message.to_owned() }
}

impl XrpcError {
    /// The response that reports the error.
    pub(super) fn into_response(self) -> HttpResponse {
        json(self.status, &json!({ "error": self.name, "message": self.message }))
    }
}

/// A redirect to `location`.
pub(super) fn redirect(location: &str) -> HttpResponse {
    with_header(text(302, ""), LOCATION, location)
}

/// The response with this header.
pub(super) fn with_header(
    mut response: HttpResponse,
    name: HeaderName,
    value: &str,
) -> HttpResponse {
    let value = HeaderValue::from_str(value).expect("visible ASCII");
    response.headers_mut().insert(name, value);
    response
}

/// The response with the time of the server, in microseconds since 1970.
pub(super) fn dated(response: HttpResponse, micros: u64) -> HttpResponse {
    let time = UNIX_EPOCH + Duration::from_micros(micros);
    with_header(response, DATE, &httpdate::fmt_http_date(time))
}

/// A 429 response with the rate limit headers that live servers send.
pub(super) fn too_many_requests(retry_after_s: u64, now_s: u64) -> HttpResponse {
    let response = error(429, "RateLimitExceeded", "Rate Limit Exceeded").into_response();
    let response = with_named(response, "retry-after", &retry_after_s.to_string());
    with_rate_headers(response, 3000, 0, now_s + retry_after_s, "3000;w=300")
}

/// A response that says how many requests a limit leaves, as the reference PDS does: the time is in whole seconds, rounded down.
pub(super) fn with_limit(
    response: HttpResponse,
    announced: &AnnouncedLimit,
    now_micros: u64,
) -> HttpResponse {
    let AnnouncedLimit { limit, left, time } = announced;
    let reset_s = (now_micros + time.as_micros() as u64) / 1_000_000;
    let policy = format!("{};w={}", limit.requests, limit.window.as_secs());
    with_rate_headers(response, limit.requests, *left, reset_s, &policy)
}

fn with_rate_headers(
    response: HttpResponse,
    limit: u32,
    left: u32,
    reset_s: u64,
    policy: &str,
) -> HttpResponse {
    let headers = [
        ("ratelimit-limit", limit.to_string()),
        ("ratelimit-remaining", left.to_string()),
        ("ratelimit-reset", reset_s.to_string()),
        ("ratelimit-policy", policy.to_owned()),
    ];
    let named = headers.iter();
    named.fold(response, |response, (name, value)| with_named(response, name, value))
}

fn with_named(response: HttpResponse, name: &'static str, value: &str) -> HttpResponse {
    with_header(response, HeaderName::from_static(name), value)
}

/// The query parameters of a request.
#[derive(Clone, Debug)]
pub(super) struct QueryParams(Vec<(String, String)>);

impl QueryParams {
    pub(super) fn of(request: &HttpRequest) -> Self {
        Self::of_query(request.uri().query())
    }

    /// The parameters of the query of a URL.
    pub(super) fn of_query(query: Option<&str>) -> Self {
        let query = query.unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The first parameter of this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All parameters of this name.
    pub(super) fn all<'q>(&'q self, name: &str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The names of all parameters.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// A required parameter.
    pub(super) fn required(&self, name: &str) -> Result<&str, XrpcError> {
        let missing = || {
            error(
                400,
                "InvalidRequest",
                &format!("Error: Params must have the property \"{name}\""),
            )
        };
        self.get(name).ok_or_else(missing)
    }

    /// The parameter `limit`, between 1 and `max`.
    pub(super) fn limit(&self, default: usize, max: usize) -> Result<usize, XrpcError> {
        let Some(text) = self.get("limit") else { return Ok(default) };
        let limit = text.parse().ok().filter(|limit| (1..=max).contains(limit));
        let invalid = || format!("Error: limit must be an integer between 1 and {max}");
        limit.ok_or_else(|| error(400, "InvalidRequest", &invalid()))
    }

    /// The parameter `cursor`: an opaque offset into a list.
    pub(super) fn offset(&self) -> Result<usize, XrpcError> {
        let Some(text) = self.get("cursor") else { return Ok(0) };
        text.parse().map_err(|_| error(400, "InvalidRequest", "Malformed cursor"))
    }
}

/// The response of a result.
pub(super) fn into_response(result: Result<HttpResponse, XrpcError>) -> HttpResponse {
    result.unwrap_or_else(XrpcError::into_response)
}
