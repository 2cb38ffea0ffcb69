//! Gathers the messages of a labeler that are judged together.

use std::time::Duration;

use atproto::event::FrameError;
use atproto::label::LabelMessage;
use net::websocket::DialError;
use tokio::time::{Instant, timeout_at};

use crate::client::{Client, ClientItem};

/// Items that were received together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<ClientItem>,
    bytes: usize,
    labels: usize,
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
        while batch.has_room() {
            match timeout_at(deadline, client.next()).await {
                Ok(Ok(item)) => batch.push(item),
                // The error is returned again.
                Ok(Err(_)) | Err(_) => break,
            }
        }
        Ok(batch)
    }

    fn has_room(&self) -> bool {
        self.items.len() < BATCH_ITEMS && self.bytes < BATCH_BYTES && self.labels < BATCH_LABELS
    }

    fn push(&mut self, item: ClientItem) {
        if let ClientItem::Message { bytes, labels } = &item {
            self.bytes += bytes.len();
            self.labels += labels;
        }
        self.items.push(item);
    }

    /// The messages of the items, decoded; of items that are none, `None`.
    pub(crate) fn decode(&self) -> Vec<Option<Result<LabelMessage<'_>, FrameError>>> {
        let decoded = self.items.iter().map(|item| match item {
            ClientItem::Message { bytes, .. } => Some(LabelMessage::decode(bytes)),
            ClientItem::Text | ClientItem::Notice(..) | ClientItem::Reset => None,
        });
        decoded.collect()
    }
}

const TICK: Duration = Duration::from_secs(1);

/// Maximum number of items that are judged together.
const BATCH_ITEMS: usize = 2048;

/// Size of the messages in bytes with which a batch is full.
const BATCH_BYTES: usize = 4 << 20;

/// Number of labels with which a batch is full: the last message may have more.
const BATCH_LABELS: usize = 16_384;
