//! The common part of small HTTP servers: bounds of connections, responses, and the token of those who may use them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use data_encoding::BASE64;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use kernels::sha256;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

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

/// The connections of a server, of which a number may be open. When the last place is taken, the connection that has waited
/// longest without a request gives way, so that connections that send none keep nobody out.
#[derive(Debug)]
pub struct Connections {
    places: Arc<Semaphore>,
    /// The connections without a request, oldest first.
    idle: Mutex<VecDeque<Arc<Notify>>>,
}

/// A place among the connections of a server, until it is dropped.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    gives_way: Arc<Notify>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connections {
    /// Room for a number of connections, at least two.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { places: Arc::new(Semaphore::new(max.max(2))), idle: Mutex::default() })
    }

    /// Accepts a connection when there is a place for one more. An attempt that fails is repeated: it concerns one
    /// connection, or the number of open files, which may become less. Cancel-safe if `accept` is.
    pub async fn accept<S, F>(self: &Arc<Self>, accept: impl Fn() -> F) -> (S, Place)
    where
        F: Future<Output = io::Result<S>>,
    {
        // The semaphore is never closed.
        let permit = self.places.clone().acquire_owned().await.ok();
        loop {
            match accept().await {
                Ok(stream) => return (stream, self.place(permit)),
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn place(self: &Arc<Self>, permit: Option<OwnedSemaphorePermit>) -> Place {
        let gives_way = Arc::<Notify>::default();
        let mut idle = self.idle();
        if self.places.available_permits() == 0
            && let Some(oldest) = idle.pop_front()
        {
            oldest.notify_one();
        }
        idle.push_back(gives_way.clone());
        drop(idle);
        Place { connections: self.clone(), gives_way, _permit: permit }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Serves the request of the connection, which may be upgraded. A connection that fails, takes too long or gives way is closed.
    pub async fn serve<S, R, F>(&self, stream: S, limits: &ConnectionLimits, respond: R)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        R: Fn(Request<Incoming>) -> F,
        F: Future<Output = Response<Full<Bytes>>>,
    {
        let respond = |request| {
            self.leave_idle();
            respond(request)
        };
        tokio::select! {
            () = self.gives_way.notified() => {}
            () = serve_request(stream, limits, respond) => {}
        }
    }

    /// From now on the connection does not give way.
    fn leave_idle(&self) {
        self.connections.idle().retain(|idle| !Arc::ptr_eq(idle, &self.gives_way));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave_idle();
    }
}

/// Serves the request of a connection. A connection that fails or takes too long is closed.
async fn serve_request<S, R, F>(stream: S, limits: &ConnectionLimits, respond: R)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    R: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<Full<Bytes>>>,
{
    let service = service_fn(|request| {
        let response = respond(request);
        async { Ok::<_, Infallible>(response.await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(limits.header_timeout);
    server.max_buf_size(limits.max_header_bytes).max_headers(limits.max_headers);
    let connection = server.serve_connection(TokioIo::new(stream), service).with_upgrades();
    // What fails or is late needs no answer.
    let _ = timeout(limits.max_time, connection).await;
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

/// Whether a `Host` is an IP address or `localhost`, with a port or without one. At a server that only this machine reaches, any
/// other name is that of a page whose DNS answers with this machine.
pub fn is_local_host(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let Some(host) = host else { return false };
    let is_address = host.parse::<SocketAddr>().is_ok()
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    is_address || name == "localhost"
}

/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_without_a_request_give_way_to_one_that_has_one() {
        let (connect, accepted) = mpsc::unbounded_channel::<DuplexStream>();
        tokio::spawn(async move {
            let (connections, accepted) = (Connections::new(4), tokio::sync::Mutex::new(accepted));
            let accept = || async {
                let next = accepted.lock().await.recv().await;
                next.ok_or_else(|| io::Error::other("the end"))
            };
            loop {
                let (stream, place) = connections.accept(accept).await;
                tokio::spawn(async move {
                    let respond = async |_| text_response(StatusCode::OK, "ok");
                    place.serve(stream, &ConnectionLimits::default(), respond).await;
                });
            }
        });
        let (started, mut idle) = (Instant::now(), Vec::new());
        for _ in 0..100 {
            for _ in 0..20 {
                let (client, server) = duplex(1 << 16);
                connect.send(server).unwrap();
                idle.push(client);
            }
            let (mut client, server) = duplex(1 << 16);
            client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
            connect.send(server).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        assert_eq!(started.elapsed(), Duration::ZERO, "nobody waited");
    }

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
