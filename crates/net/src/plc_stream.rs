//! The stream of a did:plc directory: the operations after a number, then new ones as the directory accepts them.
//!
//! `/export/stream?cursor=SEQ` is a WebSocket with a line of the export in every message. Its numbers must rise, by at most
//! [`MAX_STEP`]. Messages of another `type` than `sequenced_op` are skipped. The directory's claims about an operation are not
//! verified here, and neither is that no operation is left out: a number that is skipped may have none.

use std::time::Duration;

use atproto::plc::{ExportLine, OperationFault};
use reqwest::Url;
use serde::Deserialize;

use crate::http::Client;
use crate::plc_export::{MAX_LINE_BYTES, MAX_STEP};
use crate::websocket::{DialError, Dialer, Socket, SocketError, SocketMessage, SocketOptions};

/// Opens streams of a directory.
#[derive(Clone, Debug)]
pub struct PlcStream {
    dialer: Dialer,
    /// The URL without parameters.
    url: Url,
}

/// An open stream.
#[derive(Debug)]
pub struct OpenPlcStream {
    socket: Socket,
    /// The number of the last line.
    last: u64,
}

/// Why a stream ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlcStreamFault {
    /// The connection ended. A directory gives the reason `FutureCursor`, `OutdatedCursor` or `ConsumerTooSlow`.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// A message is not text.
    #[error("a message of bytes")]
    Binary,
    /// A message is not a line of an export.
    #[error("a message that is no line of an export: {0}")]
    Line(OperationFault),
    /// A number is not greater than the one before it.
    #[error("the number {seq} is not greater than {last}")]
    Order {
        /// The number.
        seq: u64,
        /// The number before.
        last: u64,
    },
    /// A number is more than [`MAX_STEP`] greater than the one before it.
    #[error("the number {seq} is more than {MAX_STEP} greater than {last}")]
    Step {
        /// The number.
        seq: u64,
        /// The number before.
        last: u64,
    },
}

impl PlcStreamFault {
    /// Whether the directory ended the stream with this reason.
    pub fn is_closed_with(&self, expected: &str) -> bool {
        matches!(self, Self::Socket(SocketError::Closed { reason, .. }) if reason == expected)
    }
}

impl PlcStream {
    /// The stream of the directory at this URL.
    pub fn new(http: Client, directory: Url) -> Self {
        let mut url = directory;
        url.set_path(&format!("{}/export/stream", url.path().trim_end_matches('/')));
        url.set_query(None);
        url.set_fragment(None);
        Self { dialer: Dialer::new(http), url }
    }

    /// Opens the stream after a number.
    ///
    /// # Errors
    /// If the directory does not respond, or refuses the upgrade.
    pub async fn open(&self, cursor: u64) -> Result<OpenPlcStream, DialError> {
        let mut url = self.url.clone();
        url.query_pairs_mut().append_pair("cursor", &cursor.to_string());
        let options =
            SocketOptions { max_message_bytes: MAX_LINE_BYTES, ..SocketOptions::default() };
        Ok(OpenPlcStream { socket: self.dialer.dial(&url, &options).await?, last: cursor })
    }
}

impl OpenPlcStream {
    /// Waits for the next line. Cancel-safe.
    ///
    /// # Errors
    /// If the stream ends, or breaks a rule.
    pub async fn next(&mut self) -> Result<ExportLine, PlcStreamFault> {
        loop {
            let message = self.socket.next().await?;
            if let Some(line) = self.line(message)? {
                return Ok(line);
            }
        }
    }

    /// The next line, if it has arrived.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_ready(&mut self) -> Option<Result<ExportLine, PlcStreamFault>> {
        loop {
            let message = match self.socket.next_ready()? {
                Ok(message) => message,
                Err(error) => return Some(Err(error.into())),
            };
            if let Some(line) = self.line(message).transpose() {
                return Some(line);
            }
        }
    }

    /// Closes the stream.
    pub async fn close(self) {
        self.socket.close().await;
    }

    /// The line of a message; `None` for a message of another type.
    fn line(&mut self, message: SocketMessage) -> Result<Option<ExportLine>, PlcStreamFault> {
        let SocketMessage::Text(text) = message else { return Err(PlcStreamFault::Binary) };
        if !is_operation(text.as_bytes()) {
            return Ok(None);
        }
        let line = ExportLine::parse(text.as_bytes()).map_err(PlcStreamFault::Line)?;
        let (seq, last) = (line.seq, self.last);
        if seq <= last {
            return Err(PlcStreamFault::Order { seq, last });
        }
        if seq - last > MAX_STEP {
            return Err(PlcStreamFault::Step { seq, last });
        }
        self.last = seq;
        Ok(Some(line))
    }
}

/// Whether a message has the type of operations, or none.
fn is_operation(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: Option<String>,
    }
    // A message that is malformed is reported by the parser of lines.
    serde_json::from_slice(json)
        .map_or(true, |Kind { kind }| kind.is_none_or(|kind| kind == "sequenced_op"))
}

/// Maximum time of the wait for a message after which a stream is compared with the export: a directory of the network
/// accepts several operations a second.
pub const QUIET_TIME: Duration = Duration::from_secs(60);
