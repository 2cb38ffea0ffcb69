//! An open WebSocket.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt};
use reqwest::Upgraded;
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message as Raw, Utf8Bytes};

use super::SocketOptions;
use super::error::{NO_CODE, SocketError};
use crate::counted_io::CountedIo;
use crate::remote_text::{MAX_MESSAGE_CHARS, sanitize};

/// An open WebSocket. Dropping it ends the connection without a close frame.
#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<CountedIo<Upgraded>>,
    max_message_bytes: usize,
    ping_interval: Duration,
    idle_timeout: Duration,
    /// Time of the last byte, or start of the wait for one.
    last_byte: Instant,
    /// Whether the caller is not waiting for a message.
    is_paused: bool,
    /// Time of the last ping.
    last_ping: Instant,
    /// Number of bytes received at `last_byte`.
    bytes: u64,
}

/// A message of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketMessage {
    /// Bytes, in a buffer of their own.
    Binary(Bytes),
    /// Text.
    Text(Utf8Bytes),
}

impl Socket {
    pub(super) async fn new(upgraded: Upgraded, options: &SocketOptions<'_>) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(options.read_buffer_bytes)
            .max_message_size(Some(options.max_message_bytes))
            .max_frame_size(Some(options.max_message_bytes));
        let counting = CountedIo::new(upgraded);
        let now = Instant::now();
        Self {
            stream: WebSocketStream::from_raw_socket(counting, Role::Client, Some(config)).await,
            max_message_bytes: options.max_message_bytes,
            ping_interval: options.ping_interval,
            idle_timeout: options.idle_timeout,
            last_byte: now,
            is_paused: true,
            last_ping: now,
            bytes: 0,
        }
    }

    /// Waits for the next message; sends and answers pings meanwhile. Cancel-safe.
    ///
    /// Reads only while it is called: otherwise the peer has to wait, and the idle timeout is suspended.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn next(&mut self) -> Result<SocketMessage, SocketError> {
        if std::mem::take(&mut self.is_paused) {
            self.last_byte = Instant::now();
        }
        let message = self.wait().await?;
        self.is_paused = true;
        Ok(message)
    }

    /// The next message, if one is ready: then no timer is needed.
    ///
    /// # Errors
    /// If the connection has ended.
    pub(crate) fn next_ready(&mut self) -> Option<Result<SocketMessage, SocketError>> {
        loop {
            let received = self.stream.next().now_or_never()?;
            if let Some(message) = self.message(received).transpose() {
                self.is_paused = true;
                return Some(message);
            }
        }
    }

    async fn wait(&mut self) -> Result<SocketMessage, SocketError> {
        loop {
            let wake =
                (self.last_byte + self.idle_timeout).min(self.last_ping + self.ping_interval);
            let received = tokio::select! {
                biased;
                received = self.stream.next() => received,
                () = sleep_until(wake) => {
                    self.handle_timer().await?;
                    continue;
                }
            };
            self.record_bytes();
            if let Some(message) = self.message(received)? {
                return Ok(message);
            }
        }
    }

    /// The message, unless it is one of the protocol.
    fn message(
        &self,
        received: Option<Result<Raw, Error>>,
    ) -> Result<Option<SocketMessage>, SocketError> {
        match received {
            // Copied, as a slice would keep the whole read buffer allocated.
            Some(Ok(Raw::Binary(bytes))) => {
                Ok(Some(SocketMessage::Binary(Bytes::copy_from_slice(&bytes))))
            }
            Some(Ok(Raw::Text(text))) => Ok(Some(SocketMessage::Text(text))),
            Some(Ok(Raw::Close(frame))) => Err(closed(frame)),
            Some(Ok(_)) => Ok(None),
            Some(Err(error)) => Err(SocketError::of(error, self.max_message_bytes)),
            None => Err(closed(None)),
        }
    }

    /// Sends a text.
    ///
    /// # Errors
    /// If the connection has ended, or the peer does not accept the text within the idle timeout.
    pub async fn send_text(&mut self, text: String) -> Result<(), SocketError> {
        self.send(Raw::text(text)).await
    }

    /// Closes the connection with a close frame, within a second.
    pub async fn close(mut self) {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.stream.close(None)).await;
    }

    /// Handles a timer: fails if idle, or pings.
    async fn handle_timer(&mut self) -> Result<(), SocketError> {
        self.record_bytes();
        let now = Instant::now();
        if now >= self.last_byte + self.idle_timeout {
            return Err(SocketError::Idle(self.idle_timeout));
        }
        if now >= self.last_ping + self.ping_interval {
            self.last_ping = now;
            self.send(Raw::Ping(Bytes::new())).await?;
        }
        Ok(())
    }

    fn record_bytes(&mut self) {
        let bytes = self.stream.get_ref().read();
        if bytes != self.bytes {
            (self.bytes, self.last_byte) = (bytes, Instant::now());
        }
    }

    async fn send(&mut self, message: Raw) -> Result<(), SocketError> {
        let sent = tokio::time::timeout(self.idle_timeout, self.stream.send(message)).await;
        let sent = sent.map_err(|_| SocketError::Idle(self.idle_timeout))?;
        sent.map_err(|error| SocketError::of(error, self.max_message_bytes))
    }
}

fn closed(frame: Option<CloseFrame>) -> SocketError {
    match frame {
        Some(frame) => SocketError::Closed {
            code: frame.code.into(),
            reason: sanitize(frame.reason.as_str(), MAX_MESSAGE_CHARS),
        },
        None => SocketError::Closed { code: NO_CODE, reason: String::new() },
    }
}

const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
