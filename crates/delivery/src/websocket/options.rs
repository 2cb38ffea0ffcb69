//! Options, token and counters of a WebSocket server.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use data_encoding::BASE64;
use kernels::sha256;

/// Options of a [`WebSocketServer`](super::WebSocketServer).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebSocketOptions {
    /// The token that clients must know; `None` lets every process that reaches the address connect. Default: none.
    pub token: Option<WebSocketToken>,
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
    /// Default: 16 MiB.
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
            max_bytes: 16 << 20,
            max_message_bytes: 64 << 10,
            ack_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(1),
        }
    }
}

/// The token of clients, as its hash. A client sends it as `Authorization: Bearer TOKEN`, or as the password of the user
/// `admin`, as clients of tap do.
#[derive(Clone, PartialEq, Eq)]
pub struct WebSocketToken([u8; 32]);

impl WebSocketToken {
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

    /// Whether the value of an `Authorization` header has the token. Hashes are compared, so the time depends on the
    /// length of the value only.
    pub(super) fn is_in(&self, authorization: &str) -> bool {
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

impl std::fmt::Debug for WebSocketToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebSocketToken(…)")
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
    /// Acknowledgements of what is not in flight.
    pub ignored: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_bearer_token_or_the_password_of_admin() {
        let token = WebSocketToken::new("0123456789abcdef").unwrap();
        let basic = |user: &str| format!("Basic {}", BASE64.encode(user.as_bytes()));
        for right in ["Bearer 0123456789abcdef", "bearer  0123456789abcdef"] {
            assert!(token.is_in(right), "{right}");
        }
        assert!(token.is_in(&basic("admin:0123456789abcdef")));
        for wrong in
            ["", "Bearer", "Bearer ", "Bearer 0123456789abcdeF", "0123456789abcdef", "Basic !"]
        {
            assert!(!token.is_in(wrong), "{wrong}");
        }
        for wrong in ["root:0123456789abcdef", "admin:", "0123456789abcdef"] {
            assert!(!token.is_in(&basic(wrong)), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "WebSocketToken(…)");
    }

    #[test]
    fn a_short_or_unprintable_token_is_refused() {
        assert_eq!(WebSocketToken::new("short"), Err(InvalidToken::Length(5)));
        assert_eq!(WebSocketToken::new(&"x".repeat(257)), Err(InvalidToken::Length(257)));
        assert_eq!(WebSocketToken::new("0123456789 abcdef"), Err(InvalidToken::NotPrintable));
    }
}
