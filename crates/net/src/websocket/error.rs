//! Errors of WebSockets: at the upgrade and after it.

use std::time::Duration;

use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;

use super::StreamKind;
use crate::DurationText;
use crate::http::{HttpError, HttpFault};

/// Why a WebSocket could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {fault}")]
pub struct DialError {
    /// The host.
    pub host: String,
    /// The reason.
    pub fault: DialFault,
}

/// A fault of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialFault {
    /// The host rejected the upgrade.
    #[error("{0}")]
    Refused(RejectedUpgrade),
    /// There is no response.
    #[error(transparent)]
    Http(HttpFault),
    /// The handshake is invalid.
    #[error("invalid WebSocket handshake: {0}")]
    Handshake(&'static str),
}

/// The response of a host that rejects the upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedUpgrade {
    /// The status code.
    pub status: u16,
    /// The name of the error, if the response has one.
    pub name: Option<String>,
    /// The message; empty if there is none.
    pub message: String,
    /// The delay that it requests.
    pub retry_after: Option<Duration>,
    /// The kind of stream that the host has instead, if it has another one.
    pub other_stream: Option<StreamKind>,
}

impl RejectedUpgrade {
    /// Whether the host says that it has no such stream: status 404 or 501.
    pub fn is_no_stream(&self) -> bool {
        matches!(self.status, 404 | 501)
    }
}

impl std::fmt::Display for RejectedUpgrade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rejected with status {}", self.status)?;
        let parts = [self.name.as_deref(), Some(self.message.as_str())];
        for part in parts.into_iter().flatten().filter(|part| !part.is_empty()) {
            write!(f, ": {part}")?;
        }
        match self.other_stream {
            Some(StreamKind::Firehose) => f.write_str("; the host is a relay or a PDS"),
            Some(StreamKind::Jetstream) => f.write_str("; the host is a Jetstream"),
            None => Ok(()),
        }
    }
}

impl DialError {
    pub(super) fn new(host: &str, fault: DialFault) -> Self {
        Self { host: host.to_owned(), fault }
    }

    /// Whether a retry may succeed: not for an address that the policy denies, nor for a request that the
    /// host names wrong (status 400 with the name of an error).
    pub fn is_retryable(&self) -> bool {
        match &self.fault {
            DialFault::Refused(refusal) => refusal.status != 400 || refusal.name.is_none(),
            DialFault::Http(fault) => !matches!(fault, HttpFault::Egress(_)),
            DialFault::Handshake(_) => true,
        }
    }

    /// Whether the host, or a proxy before it, refused the request by a client error such as 403 or 404, or by 501,
    /// which seldom changes within a minute: retries should be rarer than after other failures.
    pub fn is_refusal(&self) -> bool {
        match &self.fault {
            DialFault::Refused(refusal) => match refusal.status {
                408 | 425 | 429 => false,
                status => (400..500).contains(&status) || status == 501,
            },
            _ => false,
        }
    }

    /// The delay that the host requests.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.fault {
            DialFault::Refused(refusal) => refusal.retry_after,
            _ => None,
        }
    }

    /// The name of the error in the response of the host.
    pub fn name(&self) -> Option<&str> {
        match &self.fault {
            DialFault::Refused(refusal) => refusal.name.as_deref(),
            _ => None,
        }
    }
}

impl From<HttpError> for DialError {
    fn from(error: HttpError) -> Self {
        Self { host: error.host, fault: DialFault::Http(error.fault) }
    }
}

/// Why a WebSocket ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// No byte was received for this time.
    #[error("no byte for {text}", text = DurationText(*.0))]
    Idle(Duration),
    /// No message was received for this time, only pings.
    #[error("no message for {text}", text = DurationText(*.0))]
    NoMessage(Duration),
    /// The stream ended with an error of this name.
    #[error("the stream ended with {0}")]
    Ended(String),
    /// A message is longer than this many bytes.
    #[error("a message of more than {0} bytes")]
    TooLarge(usize),
    /// The peer closed the connection.
    #[error("closed by the server with {code}{}{reason}", if reason.is_empty() { "" } else { ": " })]
    Closed {
        /// The close code; 1005 if there is none.
        code: u16,
        /// The close reason; empty if there is none.
        reason: String,
    },
    /// The peer violated the protocol.
    #[error("protocol violation: {0}")]
    Protocol(String),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Broken(String),
}

impl SocketError {
    pub(super) fn of(error: Error, max_message_bytes: usize) -> Self {
        match error {
            Error::Capacity(_) => Self::TooLarge(max_message_bytes),
            Error::ConnectionClosed | Error::AlreadyClosed => {
                Self::Closed { code: NO_CODE, reason: String::new() }
            }
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                Self::Broken("closed without a close frame".to_owned())
            }
            Error::Protocol(error) => Self::Protocol(error.to_string()),
            Error::Utf8(error) => Self::Protocol(error),
            Error::Io(error) => Self::Broken(error.to_string()),
            other => Self::Broken(other.to_string()),
        }
    }
}

/// The close code that stands for none, by RFC 6455.
pub(super) const NO_CODE: u16 = 1005;
