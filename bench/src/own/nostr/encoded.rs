//! Where are the bytes of many events, one behind the other?

use wireproof::nostr::formats::Format;
use wireproof::nostr::{EncodeError, Event};

/// Events or batches as a format writes them.
#[derive(Default)]
pub(super) struct Encoded {
    bytes: Vec<u8>,
    // Where each item ends.
    ends: Vec<usize>,
}

impl Encoded {
    /// Each event by itself.
    pub(super) fn events(format: Format, events: &[Event<'_>]) -> Result<Self, String> {
        let mut encoded = Self::default();
        for event in events {
            encoded.push(|out| format.encode(event, out))?;
        }
        Ok(encoded)
    }

    /// Batches of `len` events, the last perhaps of fewer.
    pub(super) fn batches(
        format: Format,
        events: &[Event<'_>],
        len: usize,
    ) -> Result<Self, String> {
        let mut encoded = Self::default();
        for batch in events.chunks(len) {
            encoded.push(|out| format.encode_batch(batch, out))?;
        }
        Ok(encoded)
    }

    fn push(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), String> {
        let at = self.ends.len();
        write(&mut self.bytes).map_err(|error| format!("item {at}: {error}"))?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The items in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.range(0, self.len())
    }

    /// The items from `start` up to `end`.
    pub(super) fn range(&self, start: usize, end: usize) -> impl Iterator<Item = &[u8]> {
        let first = start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut from = first;
        self.ends[start..end]
            .iter()
            .map(move |to| &self.bytes[std::mem::replace(&mut from, *to)..*to])
    }
}
