//! A WebSocket that is read and written by one task, with what is known of its peer's silence.

use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use net::counted_io::CountedIo;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// An open WebSocket of a client.
pub(super) struct Socket {
    stream: WebSocketStream<CountedIo<TokioIo<Upgraded>>>,
    /// Whether messages are not yet handed to the operating system.
    is_unflushed: bool,
    heard: Progress,
    taken: Progress,
}

/// What [`Socket::wait`] waited for.
pub(super) enum Readiness {
    /// A message of the client.
    Received(Utf8Bytes),
    /// A message may be sent.
    Writable,
}

/// Why a WebSocket ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SocketEnd {
    /// The client closed it, or the connection failed.
    #[error("closed")]
    Closed,
    /// The client broke a rule.
    #[error("{0}")]
    Violation(&'static str),
}

/// A count of bytes and when it last changed.
struct Progress {
    bytes: u64,
    at: Instant,
}

impl Socket {
    pub(super) async fn new(upgraded: Upgraded, max_message_bytes: usize) -> Self {
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

    /// Waits for a message or, if `wants_to_send`, until one can be sent; what was sent is flushed meanwhile.
    /// Cancel-safe.
    pub(super) async fn wait(&mut self, wants_to_send: bool) -> Result<Readiness, SocketEnd> {
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

    /// The next message, if it has arrived.
    pub(super) fn next_ready(&mut self) -> Option<Result<Utf8Bytes, SocketEnd>> {
        loop {
            let received = self.stream.next().now_or_never()?;
            if let Some(text) = message(received).transpose() {
                return Some(text);
            }
        }
    }

    /// Sends messages while `next` has some and the client takes them.
    pub(super) fn send(
        &mut self,
        mut next: impl FnMut() -> Option<Utf8Bytes>,
    ) -> Result<(), SocketEnd> {
        self.send_each(|| next().map(Message::Text))
    }

    fn send_each(&mut self, mut next: impl FnMut() -> Option<Message>) -> Result<(), SocketEnd> {
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
    pub(super) fn ping(&mut self) -> Result<(), SocketEnd> {
        let mut ping = Some(Message::Ping(Bytes::new()));
        self.send_each(|| ping.take())
    }

    /// Whether the client took no byte of what is being sent for `limit`, or sent none while nothing was.
    pub(super) fn is_dead(&mut self, now: Instant, limit: Duration) -> bool {
        let io = self.stream.get_ref();
        let (silence, stall) =
            (self.heard.since(io.read(), now), self.taken.since(io.written(), now));
        if !self.is_unflushed {
            self.taken.at = now;
        }
        let quiet = if self.is_unflushed { stall } else { silence };
        quiet >= limit
    }

    /// Closes the connection with a close frame, for at most a second.
    pub(super) async fn close(mut self, code: CloseCode, reason: &'static str) {
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

const READ_BUFFER_BYTES: usize = 32 << 10;
const WRITE_BUFFER_BYTES: usize = 64 << 10;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
