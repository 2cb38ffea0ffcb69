//! The common part of small HTTP servers: bounds of a connection, responses, and access tokens.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use data_encoding::BASE64;
use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use kernels::sha256;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Bounds of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// Maximum time until the headers of the request have arrived. Default: 3 seconds.
    pub header_timeout: Duration,
    /// Maximum time of the connection, or until it is upgraded. Default: 10 seconds.
    pub max_time: Duration,
    /// Maximum size of the headers in bytes. Default: 16 KiB.
    pub max_header_bytes: usize,
    /// Maximum number of headers. Default: 64.
    pub max_headers: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        let [header_timeout, max_time] = [3, 10].map(Duration::from_secs);
        Self { header_timeout, max_time, max_header_bytes: 16 << 10, max_headers: 64 }
    }
}

/// More time for a connection whose response takes long to write: an extension of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoreTime(pub Duration);

/// Serves the request of a connection. A connection that fails or takes too long is closed.
pub(crate) async fn serve_request<S, R, F, B>(stream: S, limits: &ConnectionLimits, respond: R)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    R: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
{
    let (extend, mut end) = watch::channel(Instant::now() + limits.max_time);
    let service = service_fn(|request| {
        let response = respond(request);
        let extend = &extend;
        async move {
            let response = response.await;
            if let Some(MoreTime(time)) = response.extensions().get() {
                extend.send_replace(Instant::now() + *time);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(limits.header_timeout);
    server.max_buf_size(limits.max_header_bytes).max_headers(limits.max_headers);
    let connection = server.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let late = async {
        while Instant::now() < *end.borrow_and_update() {
            let until = *end.borrow();
            let _ = timeout_at(until, end.changed()).await;
        }
    };
    // Connections that fail or are late need no answer.
    tokio::select! {
        _ = connection => {}
        () = late => {}
    }
}

/// A response with a body of this type, after which the connection is closed.
pub fn response(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A response of one line of text.
pub fn text_response(status: StatusCode, line: &str) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", format!("{line}\n"))
}

/// A token that clients must know, as its hash. A client sends it as `Authorization: Bearer TOKEN`, or as the password
/// of the user `admin`, as clients of tap do.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken([u8; 32]);

impl AccessToken {
    /// A token.
    ///
    /// # Errors
    /// If it has fewer than 16 or more than 256 bytes, or not only printable ASCII.
    pub fn new(text: &str) -> Result<Self, InvalidToken> {
        match text.len() {
            16..=256 if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Self::of(text)),
            16..=256 => Err(InvalidToken::NotPrintable),
            len => Err(InvalidToken::Length(len)),
        }
    }

    fn of(text: &str) -> Self {
        Self(sha256::digest(text.as_bytes()))
    }

    /// Whether the headers of a request have the token. Hashes are compared, so the time depends on the length of the
    /// value only.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        self.is_value(value.unwrap_or_default())
    }

    fn is_value(&self, authorization: &str) -> bool {
        let Some((scheme, value)) = authorization.split_once(' ') else { return false };
        let value = value.trim_start();
        match () {
            () if scheme.eq_ignore_ascii_case("bearer") => *self == Self::of(value),
            () if scheme.eq_ignore_ascii_case("basic") => {
                let decoded = BASE64.decode(value.as_bytes()).unwrap_or_default();
                let user = str::from_utf8(&decoded).unwrap_or_default();
                user.strip_prefix("admin:").is_some_and(|password| *self == Self::of(password))
            }
            () => false,
        }
    }
}

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

/// Why a text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidToken {
    /// It is too short or too long.
    #[error("a token of {0} bytes: use 16 to 256")]
    Length(usize),
    /// It has other characters.
    #[error("a token has only printable ASCII characters, without spaces")]
    NotPrintable,
}

/// Whether a `Host` is an IP address or `localhost`, with a port or without one. At a server that only this machine
/// reaches, any other name belongs to a page whose DNS answers with this machine.
pub fn is_local_host(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let Some(host) = host else { return false };
    let is_address = host.parse::<SocketAddr>().is_ok()
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    is_address || name == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_somebody_else_is_no_local_host() {
        let of = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            is_local_host(&headers)
        };
        assert!(
            ["127.0.0.1", "127.0.0.1:80", "[::1]:80", "::1", "localhost:1"].into_iter().all(of)
        );
        assert!(!["evil.test", "evil.test:80", "localhost.evil.test", ""].into_iter().any(of));
        assert!(!is_local_host(&HeaderMap::new()));
    }

    #[test]
    fn a_token_is_a_bearer_token_or_the_password_of_admin() {
        let token = AccessToken::new("0123456789abcdef").unwrap();
        let basic = |user: &str| format!("Basic {}", BASE64.encode(user.as_bytes()));
        for right in ["Bearer 0123456789abcdef", "bearer  0123456789abcdef"] {
            assert!(token.is_value(right), "{right}");
        }
        assert!(token.is_value(&basic("admin:0123456789abcdef")));
        for wrong in
            ["", "Bearer", "Bearer ", "Bearer 0123456789abcdeF", "0123456789abcdef", "Basic !"]
        {
            assert!(!token.is_value(wrong), "{wrong}");
        }
        for wrong in ["root:0123456789abcdef", "admin:", "0123456789abcdef"] {
            assert!(!token.is_value(&basic(wrong)), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "AccessToken(…)");
    }

    #[test]
    fn a_short_or_unprintable_token_is_refused() {
        assert_eq!(AccessToken::new("short"), Err(InvalidToken::Length(5)));
        assert_eq!(AccessToken::new(&"x".repeat(257)), Err(InvalidToken::Length(257)));
        assert_eq!(AccessToken::new("0123456789 abcdef"), Err(InvalidToken::NotPrintable));
    }
}
