//! Options and counters of a WebSocket server.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use net::http_server::AccessToken;

/// Options of a [`WebSocketServer`](super::WebSocketServer).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebSocketOptions {
    /// The token that clients must know; `None` lets every process that reaches the address connect. Default: none.
    pub token: Option<AccessToken>,
    /// Origins of web pages that may connect, such as `https://app.example`. Default: none.
    pub origins: Vec<String>,
    /// Maximum time until a request has arrived. Default: 10 seconds.
    pub handshake_timeout: Duration,
    /// Time for which a second connection of a consumer waits for the end of the first before it is refused.
    /// Default: 2 seconds.
    pub takeover_timeout: Duration,
    /// Number of connections that are not upgraded yet, at which no more are accepted. Default: 64.
    pub max_handshakes: usize,
    /// Number of unacknowledged messages at which no more are sent. Default: 1,024.
    pub max_in_flight: usize,
    /// Number of unacknowledged events at which no more are taken from the outbox. Default: 8,192.
    pub max_events: usize,
    /// Size of the messages of those events in bytes at which no more are taken; one batch of the outbox may exceed it.
    /// Default: 4 MiB.
    pub max_bytes: usize,
    /// Maximum size of a message of a client in bytes. Default: 64 KiB.
    pub max_message_bytes: usize,
    /// Time after which an unacknowledged message is sent again. Default: 60 seconds.
    pub ack_timeout: Duration,
    /// Maximum time without a byte from the client, and without one taken by it. Pings are sent three times as often.
    /// Default: 60 seconds.
    pub idle_timeout: Duration,
    /// Maximum time that a stop waits for acknowledgements. Default: 1 second.
    pub stop_timeout: Duration,
}

impl Default for WebSocketOptions {
    fn default() -> Self {
        Self {
            token: None,
            origins: Vec::new(),
            handshake_timeout: Duration::from_secs(10),
            takeover_timeout: Duration::from_secs(2),
            max_handshakes: 64,
            max_in_flight: 1024,
            max_events: 8192,
            max_bytes: 4 << 20,
            max_message_bytes: 64 << 10,
            ack_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(1),
        }
    }
}

/// Counters of a server.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct WebSocketMetrics {
    /// Upgraded connections.
    pub connections: AtomicU64,
    /// Refused requests.
    pub refused: AtomicU64,
    /// Connections that were ended as the client broke a rule or was silent.
    pub violations: AtomicU64,
    /// Messages sent, with repetitions.
    pub sent: AtomicU64,
    /// Messages repeated after a timeout.
    pub repeated: AtomicU64,
    /// Messages acknowledged.
    pub acknowledged: AtomicU64,
    /// Acknowledgements of events that are not in flight.
    pub ignored: AtomicU64,
}
