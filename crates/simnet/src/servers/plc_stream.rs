//! `/export/stream` of the PLC directory: the lines of the export in messages, from a cursor or from now on.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::http::{HttpRequest, QueryParams, XrpcError, error};
use super::network::NetworkState;
use super::plc_export::{lines_after, stream_range};
use super::spec::Server;
use super::streamer::{Encoding, FaultInjector, Outcome, Socket};

/// A stream to a reader.
pub(super) struct ExportStream {
    network: Arc<NetworkState>,
    cursor: Option<u64>,
}

impl ExportStream {
    /// The stream of a request.
    pub(super) fn of(
        network: &Arc<NetworkState>,
        request: &HttpRequest,
    ) -> Result<Self, XrpcError> {
        let query = QueryParams::of(request);
        let cursor = query.get("cursor").map(str::parse::<u64>).transpose();
        let invalid = |_| error(400, "InvalidRequest", "Invalid cursor parameter");
        Ok(Self { network: network.clone(), cursor: cursor.map_err(invalid)? })
    }

    /// Streams until either end closes the connection.
    pub(super) async fn run(self, socket: &mut Socket) {
        let (oldest, newest) = stream_range(&self.network);
        let mut seq = match self.cursor {
            Some(cursor) if cursor > newest => return close(socket, "FutureCursor").await,
            Some(cursor) if cursor < oldest => return close(socket, "OutdatedCursor").await,
            cursor => cursor.unwrap_or(newest),
        };
        let mut injector = FaultInjector::new(&self.network, Server::Plc, false);
        loop {
            for (of, line) in lines_after(&self.network, seq, BATCH_LEN) {
                seq = of;
                let mut messages = vec![Message::text(line)];
                let outcome = injector.inject(&Lines, &mut messages);
                for message in messages {
                    if socket.send(message).await.is_err() {
                        return;
                    }
                }
                match outcome {
                    Outcome::Continue => {}
                    Outcome::Close => return close(socket, "").await,
                    Outcome::Stall => return std::future::pending().await,
                }
            }
            tokio::select! {
                () = sleep(POLL_INTERVAL) => {}
                message = socket.next() => match message {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(_)) => {}
                }
            }
        }
    }
}

async fn close(socket: &mut Socket, reason: &'static str) {
    let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static(reason) };
    let _ = socket.close(Some(frame)).await;
    let _ =
        tokio::time::timeout(CLOSE_TIMEOUT, async { while socket.next().await.is_some() {} }).await;
}

/// One message, one line.
struct Lines;

impl Encoding for Lines {
    fn encode(&mut self, _: &super::event_log::LogEntry, _: &mut Vec<Message>) {}

    fn error_message(&self, name: &str, _: &str) -> Message {
        let reason = Utf8Bytes::from(name.to_owned());
        Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason }))
    }

    fn unknown_message(&self, _: bool) -> Message {
        Message::text(r#"{"type":"weather","sky":"clear"}"#)
    }

    fn raw_message(&self, bytes: Vec<u8>) -> Message {
        Message::text(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Number of lines that are read at a time.
const BATCH_LEN: usize = 500;

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The time in which a reader must answer a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
