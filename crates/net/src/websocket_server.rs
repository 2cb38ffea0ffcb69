//! The common part of WebSocket servers: the answer to a handshake, and a socket that is read and written by one task, with the
//! time of its peer's silence.

use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt};
use http_body_util::Full;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::counted_io::CountedIo;

/// The key of a request for a WebSocket by RFC 6455, section 4.2.1; `None` for any other request.
pub fn upgrade_key<B>(request: &Request<B>) -> Option<Vec<u8>> {
    let headers = request.headers();
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let has = |name, token: &str| {
        let value = text(name).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token))
    };
    let is_upgrade = *request.method() == Method::GET
        && has(CONNECTION, "upgrade")
        && has(UPGRADE, "websocket")
        && text(SEC_WEBSOCKET_VERSION) == Some("13");
    is_upgrade.then(|| headers.get(SEC_WEBSOCKET_KEY).map(|key| key.as_bytes().to_vec())).flatten()
}

/// The answer to a request with this key: a WebSocket follows.
pub fn switching(key: &[u8]) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key)) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

/// An open WebSocket of a client.
#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<CountedIo<TokioIo<Upgraded>>>,
    /// Whether messages are not yet handed to the operating system.
    is_unflushed: bool,
    heard: Progress,
    taken: Progress,
}

/// The event that [`Socket::wait`] waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// A message of the client.
    Received(Utf8Bytes),
    /// A message may be sent.
    Writable,
}

/// Why a WebSocket ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketEnd {
    /// The client closed it, or the connection failed.
    #[error("closed")]
    Closed,
    /// The client broke a rule.
    #[error("{0}")]
    Violation(&'static str),
}

/// A count of bytes and when it last changed.
#[derive(Debug)]
struct Progress {
    bytes: u64,
    at: Instant,
}

impl Socket {
    /// The socket of an upgraded connection, with the maximum size of a message of the client in bytes.
    pub async fn new(upgraded: Upgraded, max_message_bytes: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(WRITE_BUFFER_BYTES)
            .max_message_size(Some(max_message_bytes))
            .max_frame_size(Some(max_message_bytes));
        let io = CountedIo::new(TokioIo::new(upgraded));
        let stream = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        let progress = || Progress { bytes: 0, at: Instant::now() };
        Self { stream, is_unflushed: false, heard: progress(), taken: progress() }
    }

    /// Waits for a message or, if `wants_to_send`, until one can be sent; sent messages are flushed meanwhile.
    /// Cancel-safe.
    ///
    /// # Errors
    /// If the socket ends.
    pub async fn wait(&mut self, wants_to_send: bool) -> Result<Readiness, SocketEnd> {
        loop {
            let received = std::future::poll_fn(|cx| {
                if let Poll::Ready(received) = self.stream.poll_next_unpin(cx) {
                    return Poll::Ready(Ok(Some(received)));
                }
                if wants_to_send {
                    return self.stream.poll_ready_unpin(cx).map_ok(|()| None);
                }
                if self.is_unflushed {
                    self.is_unflushed = self.stream.poll_flush_unpin(cx)?.is_pending();
                }
                Poll::Pending
            });
            match received.await.map_err(end)? {
                None => return Ok(Readiness::Writable),
                Some(received) => {
                    if let Some(text) = message(received)? {
                        return Ok(Readiness::Received(text));
                    }
                }
            }
        }
    }

    /// The next message, if it has arrived; an error if the socket ends.
    pub fn next_ready(&mut self) -> Option<Result<Utf8Bytes, SocketEnd>> {
        loop {
            let received = self.stream.next().now_or_never()?;
            if let Some(text) = message(received).transpose() {
                return Some(text);
            }
        }
    }

    /// Sends messages while `next` has some and the client takes them.
    ///
    /// # Errors
    /// If the socket ends.
    pub fn send(&mut self, mut next: impl FnMut() -> Option<Message>) -> Result<(), SocketEnd> {
        let is_ready = |stream: &mut WebSocketStream<CountedIo<TokioIo<Upgraded>>>| {
            let ready = std::future::poll_fn(|cx| stream.poll_ready_unpin(cx)).now_or_never();
            ready.transpose().map(|ready| ready.is_some())
        };
        while is_ready(&mut self.stream).map_err(end)?
            && let Some(message) = next()
        {
            self.is_unflushed = true;
            self.stream.start_send_unpin(message).map_err(end)?;
        }
        Ok(())
    }

    /// Sends a ping, unless messages wait for the client to take them.
    ///
    /// # Errors
    /// If the socket ends.
    pub fn ping(&mut self) -> Result<(), SocketEnd> {
        let mut ping = Some(Message::Ping(Bytes::new()));
        self.send(|| ping.take())
    }

    /// Whether the client took no byte of the data being sent for `limit`, or sent none while nothing was.
    pub fn is_dead(&mut self, now: Instant, limit: Duration) -> bool {
        let io = self.stream.get_ref();
        let (silence, stall) =
            (self.heard.since(io.read(), now), self.taken.since(io.written(), now));
        if !self.is_unflushed {
            self.taken.at = now;
        }
        let quiet = if self.is_unflushed { stall } else { silence };
        quiet >= limit
    }

    /// Sends a close frame after all messages, and waits until the client has answered it, up to `limit` without a byte taken;
    /// whether it has.
    pub async fn finish(&mut self, code: CloseCode, reason: &'static str, limit: Duration) -> bool {
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        self.taken.at = Instant::now();
        self.is_unflushed = true;
        let mut close = Some(Message::Close(Some(frame)));
        loop {
            let ended = timeout(CLOSE_TIMEOUT.min(limit), async {
                if close.is_some() {
                    std::future::poll_fn(|cx| self.stream.poll_ready_unpin(cx)).await?;
                    close
                        .take()
                        .into_iter()
                        .try_for_each(|close| self.stream.start_send_unpin(close))?;
                }
                self.stream.flush().await?;
                while let Some(message) = self.stream.next().await {
                    message?;
                }
                Ok::<(), Error>(())
            });
            match ended.await {
                Ok(Ok(()) | Err(Error::ConnectionClosed)) => return true,
                Ok(Err(_)) => return false,
                Err(_) if self.is_dead(Instant::now(), limit) => return false,
                Err(_) => {}
            }
        }
    }

    /// Closes the connection with a close frame, for at most a second.
    pub async fn close(mut self, code: CloseCode, reason: &'static str) {
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let _ = timeout(CLOSE_TIMEOUT, self.stream.close(Some(frame))).await;
    }
}

impl Progress {
    fn since(&mut self, bytes: u64, now: Instant) -> Duration {
        if bytes != self.bytes {
            *self = Self { bytes, at: now };
        }
        now.saturating_duration_since(self.at)
    }
}

/// The text of a message, unless it is one of the protocol.
fn message(received: Option<Result<Message, Error>>) -> Result<Option<Utf8Bytes>, SocketEnd> {
    match received {
        Some(Ok(Message::Text(text))) => Ok(Some(text)),
        Some(Ok(Message::Binary(_))) => Err(SocketEnd::Violation("a binary message")),
        Some(Ok(Message::Close(_))) | None => Err(SocketEnd::Closed),
        Some(Ok(_)) => Ok(None),
        Some(Err(error)) => Err(end(error)),
    }
}

fn end(error: Error) -> SocketEnd {
    match error {
        Error::Capacity(_) => SocketEnd::Violation("a message that is too long"),
        Error::Utf8(_) => SocketEnd::Violation("a text that is not UTF-8"),
        _ => SocketEnd::Closed,
    }
}

const READ_BUFFER_BYTES: usize = 4 << 10;
const WRITE_BUFFER_BYTES: usize = 64 << 10;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
