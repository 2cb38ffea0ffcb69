//! The client of one labeler: its messages in order, from a cursor, over connections that come and go.

use atproto::label::LabelMessage;
use bytes::Bytes;
use net::hosts::{Backoff, BackoffOptions, Jitter};
use net::http::Url;
use net::reconnecting_socket::{Dial, ReconnectingSocket, SocketEvent};
use net::websocket::{DialError, Dialer, SocketMessage, SocketOptions};

/// Receives the messages of a labeler. Reads only while [`next`](Self::next) is called.
pub(crate) struct Client {
    dialer: Dialer,
    url: Url,
    socket_options: SocketOptions<'static>,
    socket: ReconnectingSocket,
    /// The cursor of the next connection.
    cursor: Option<u64>,
}

/// A message of a labeler, or about it.
#[derive(Debug)]
pub(crate) enum ClientItem {
    /// A binary message, and its number of labels.
    Message {
        /// The message.
        bytes: Bytes,
        /// Number of its labels; 0 if it cannot be decoded.
        labels: usize,
    },
    /// A text, which labelers do not send.
    Text,
    /// What happened to the connection.
    Notice(&'static str, String),
    /// The cursor was after the last message of the service, whose numbers have begun again: it begins with its oldest message.
    Reset,
}

impl Client {
    /// A client of the stream at `url`.
    pub(crate) fn new(
        dialer: Dialer,
        url: Url,
        cursor: Option<u64>,
        socket: SocketOptions<'static>,
        backoff: BackoffOptions,
    ) -> Self {
        let backoff = Backoff::new(backoff, Jitter::new());
        Self {
            dialer,
            url,
            socket_options: socket,
            socket: ReconnectingSocket::new(1, backoff, None, &[FUTURE_CURSOR]),
            cursor,
        }
    }

    /// Waits for the next item. Cancel-safe.
    ///
    /// # Errors
    /// If the service can never be followed.
    pub(crate) async fn next(&mut self) -> Result<ClientItem, DialError> {
        loop {
            let Self { dialer, url, socket_options, socket, cursor } = self;
            let dial = |_| {
                let (dialer, socket) = (dialer.clone(), *socket_options);
                let mut url = url.clone();
                if let Some(cursor) = cursor {
                    url.query_pairs_mut().append_pair("cursor", &cursor.to_string());
                }
                Box::pin(async move { dialer.dial(&url, &socket).await }) as Dial
            };
            let (_, event) = socket.next(dial).await?;
            if let Some(item) = self.item(event) {
                return Ok(item);
            }
        }
    }

    fn item(&mut self, event: SocketEvent) -> Option<ClientItem> {
        let notice = |name, text| Some(ClientItem::Notice(name, text));
        match event {
            SocketEvent::Message(SocketMessage::Binary(bytes)) => Some(self.receive(bytes)),
            SocketEvent::Message(SocketMessage::Text(_)) => Some(ClientItem::Text),
            SocketEvent::Connected => {
                let after = self.cursor.map(|cursor| format!(", after {cursor}"));
                notice("connected", format!("connected{}", after.unwrap_or_default()))
            }
            SocketEvent::Lost(reason) => notice("disconnected", reason.to_string()),
            SocketEvent::ConnectFailed(error) if error.name() == Some(FUTURE_CURSOR) => {
                Some(self.reset())
            }
            SocketEvent::ConnectFailed(error) => notice("connect-failed", error.fault.to_string()),
            SocketEvent::RetryScheduled(delay) => {
                notice("retry", format!("retrying in {}", net::DurationText(delay)))
            }
            // Its error is returned next; there is no other host.
            SocketEvent::HostExcluded(_) | SocketEvent::Rotated { .. } => None,
        }
    }

    fn receive(&mut self, bytes: Bytes) -> ClientItem {
        let labels = match LabelMessage::decode(&bytes) {
            Ok(LabelMessage::Error(error)) if error.error == FUTURE_CURSOR => return self.reset(),
            Ok(LabelMessage::Labels(labels)) => {
                self.socket.record_progress();
                self.cursor = u64::try_from(labels.seq).ok();
                labels.labels.len()
            }
            _ => 0,
        };
        ClientItem::Message { bytes, labels }
    }

    fn reset(&mut self) -> ClientItem {
        self.cursor = Some(0);
        ClientItem::Reset
    }

    /// Closes the connection with a close frame.
    pub(crate) async fn close(self) {
        self.socket.close().await;
    }
}

/// The name of the error of a cursor after the last message.
const FUTURE_CURSOR: &str = "FutureCursor";
