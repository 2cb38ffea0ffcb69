//! Gathers the messages of a labeler that are judged together.

use std::time::Duration;

use atproto::label::LabelMessage;
use bytes::Bytes;
use net::websocket::DialError;
use tokio::time::{Instant, timeout_at};

use crate::client::{Client, ClientItem};

/// Items that were received together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<ClientItem>,
    bytes: usize,
}

impl Batch {
    /// Waits for an item, and for those that follow within `max_gather`. Empty if none comes for a second.
    ///
    /// # Errors
    /// If the labeler can never be followed.
    pub(crate) async fn gather(
        client: &mut Client,
        max_gather: Duration,
    ) -> Result<Self, DialError> {
        let mut batch = Self::default();
        let Ok(first) = timeout_at(Instant::now() + TICK, client.next()).await else {
            return Ok(batch);
        };
        batch.push(first?);
        let deadline = Instant::now() + max_gather;
        while batch.bytes < BATCH_BYTES && batch.items.len() < BATCH_ITEMS {
            match timeout_at(deadline, client.next()).await {
                Ok(Ok(item)) => batch.push(item),
                // The error is returned again.
                Ok(Err(_)) | Err(_) => break,
            }
        }
        Ok(batch)
    }

    fn push(&mut self, item: ClientItem) {
        if let ClientItem::Message(bytes) = &item {
            self.bytes += bytes.len();
        }
        self.items.push(item);
    }

    /// The messages that can be decoded.
    pub(crate) fn messages(&self) -> impl Iterator<Item = LabelMessage<'_>> {
        let bytes = self.items.iter().filter_map(|item| match item {
            ClientItem::Message(bytes) => Some(bytes),
            _ => None,
        });
        bytes.filter_map(|bytes: &Bytes| LabelMessage::decode(bytes).ok())
    }
}

const TICK: Duration = Duration::from_secs(1);

/// Maximum number of items that are judged together.
const BATCH_ITEMS: usize = 2048;

/// Size of the messages in bytes with which a batch is full.
const BATCH_BYTES: usize = 4 << 20;
