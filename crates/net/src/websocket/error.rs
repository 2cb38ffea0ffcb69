//! Why a WebSocket could not be opened, and why it ended.

use std::time::Duration;

use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;

use crate::http::{HttpError, HttpFault};

/// Why there is no WebSocket to a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {fault}")]
pub struct DialError {
    /// The host.
    pub host: String,
    /// What went wrong.
    pub fault: DialFault,
}

/// What can go wrong with an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialFault {
    /// The host answers, and does not upgrade.
    #[error("{0}")]
    Refused(Refusal),
    /// There is no answer.
    #[error(transparent)]
    Http(HttpFault),
    /// The host upgrades to something else.
    #[error("not the WebSocket that was asked for: {0}")]
    Handshake(&'static str),
}

/// What a host says that does not upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status code.
    pub status: u16,
    /// The name of the error, if the answer has one.
    pub name: Option<String>,
    /// What it says besides; empty if nothing.
    pub message: String,
    /// For how long it wants to be left alone.
    pub retry_after: Option<Duration>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused with status {}", self.status)?;
        let parts = [self.name.as_deref(), Some(self.message.as_str())];
        for part in parts.into_iter().flatten().filter(|part| !part.is_empty()) {
            write!(f, ": {part}")?;
        }
        Ok(())
    }
}

impl DialError {
    pub(super) fn new(host: &str, fault: DialFault) -> Self {
        Self { host: host.to_owned(), fault }
    }

    /// Whether another attempt may go better: the host may recover, the network may, but what is
    /// forbidden stays so, and what the host calls our mistake is one.
    pub fn is_retryable(&self) -> bool {
        match &self.fault {
            DialFault::Refused(refusal) => match refusal.status {
                408 | 425 | 429 => true,
                status => !(400..500).contains(&status),
            },
            DialFault::Http(fault) => !matches!(fault, HttpFault::Egress(_)),
            DialFault::Handshake(_) => true,
        }
    }

    /// For how long the host wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.fault {
            DialFault::Refused(refusal) => refusal.retry_after,
            _ => None,
        }
    }

    /// The name of the error by which the host refused.
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
    /// No byte came for this time.
    #[error("no byte for {0:?}")]
    Idle(Duration),
    /// Only pings came for this time.
    #[error("no message for {0:?}")]
    NoMessage(Duration),
    /// The stream ended with an error of this name.
    #[error("the stream ended with {0}")]
    Ended(String),
    /// A message is longer than this many bytes.
    #[error("a message of more than {0} bytes")]
    TooLarge(usize),
    /// The other side closed it.
    #[error("closed by the server with {code}{}{reason}", if reason.is_empty() { "" } else { ": " })]
    Closed {
        /// Its code; 1005 if it gave none.
        code: u16,
        /// Its reason; empty if it gave none.
        reason: String,
    },
    /// The other side breaks the protocol.
    #[error("against the protocol: {0}")]
    Protocol(String),
    /// The connection broke.
    #[error("the connection broke: {0}")]
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
                Self::Broken("it ended without a close".to_owned())
            }
            Error::Protocol(error) => Self::Protocol(error.to_string()),
            Error::Utf8(error) => Self::Protocol(error),
            Error::Io(error) => Self::Broken(error.to_string()),
            other => Self::Broken(other.to_string()),
        }
    }
}

/// The code of a close without one, by RFC 6455.
pub(super) const NO_CODE: u16 = 1005;
