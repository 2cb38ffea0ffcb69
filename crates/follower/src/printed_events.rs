//! The last printed events of a Jetstream, by a hash of their content: several can share the time that is the cursor.
//!
//! A host is asked again for the events at the cursor, and printed ones are skipped, whatever their number. Events with
//! the same hash have the same account, revision, path and content.

use std::collections::{HashSet, VecDeque};

use kernels::sha256;
use net::jetstream::Event;

/// The start of the hash of an event.
pub(super) type EventHash = [u8; 16];

/// The hash of an event.
pub(super) fn hash(event: &Event) -> EventHash {
    let digest = sha256::digest(event.identity().as_bytes());
    digest.first_chunk().copied().expect("a hash has 32 bytes")
}

/// The printed events of a host that it may send again after the cursor is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrintedEvents {
    /// Events of earlier runs.
    earlier: HashSet<EventHash>,
    /// Events at the cursor, and events of earlier runs until there is a later one, with their cursors.
    at_cursor: VecDeque<(u64, EventHash)>,
    /// Whether they were changed since they were stored.
    is_changed: bool,
}

impl PrintedEvents {
    /// Events that an earlier run has stored with this cursor.
    pub(super) fn new(cursor: Option<u64>, hashes: Vec<EventHash>) -> Self {
        let at_cursor = hashes.iter().map(|hash| (cursor.unwrap_or_default(), *hash)).collect();
        Self { earlier: hashes.into_iter().collect(), at_cursor, is_changed: false }
    }

    /// Whether no event of an earlier run is left.
    pub(super) fn is_empty(&self) -> bool {
        self.earlier.is_empty()
    }

    /// Whether an earlier run has printed an event.
    pub(super) fn was_printed_before(&self, hash: &EventHash) -> bool {
        self.earlier.contains(hash)
    }

    /// Records a printed event, whose cursor becomes the cursor of the host.
    pub(super) fn printed(&mut self, cursor: u64, hash: EventHash) {
        // The host is asked for the events after the previous microsecond.
        self.at_cursor.retain(|(of, _)| of.saturating_add(1) >= cursor);
        if self.at_cursor.len() == MAX_EVENTS {
            self.at_cursor.pop_front();
        }
        self.at_cursor.push_back((cursor, hash));
        self.is_changed = true;
    }

    /// The content to store with the cursor, if it has changed.
    pub(super) fn take_changed(&mut self) -> Option<Vec<EventHash>> {
        std::mem::take(&mut self.is_changed)
            .then(|| self.at_cursor.iter().map(|(_, hash)| *hash).collect())
    }
}

/// Maximum number of events at a cursor that are remembered, 16 bytes each; further ones are printed again.
const MAX_EVENTS: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(number: u8) -> EventHash {
        [number; 16]
    }

    #[test]
    fn events_at_the_cursor_are_stored_until_it_moves_on_by_more_than_a_microsecond() {
        let mut events = PrintedEvents::default();
        assert!(events.is_empty() && events.take_changed().is_none());
        for (cursor, number) in [(10, 1), (10, 2), (11, 3)] {
            events.printed(cursor, of(number));
        }
        assert_eq!(events.take_changed().unwrap(), [of(1), of(2), of(3)]);
        assert!(events.take_changed().is_none());
        events.printed(12, of(4));
        assert_eq!(events.take_changed().unwrap(), [of(3), of(4)]);
        assert!(
            !events.was_printed_before(&of(4)),
            "in this run, where the client finds repetitions"
        );
    }

    #[test]
    fn a_run_that_prints_nothing_more_at_the_cursor_keeps_those_of_the_run_before() {
        let mut events = PrintedEvents::new(Some(10), vec![of(1), of(2)]);
        assert!(events.was_printed_before(&of(1)) && !events.was_printed_before(&of(3)));
        events.printed(10, of(3));
        assert_eq!(events.take_changed().unwrap(), [of(1), of(2), of(3)]);
        events.printed(100, of(4));
        assert_eq!(events.take_changed().unwrap(), [of(4)]);
        assert!(events.was_printed_before(&of(1)), "it may still come again");
    }

    #[test]
    fn the_number_of_events_at_a_cursor_is_bounded() {
        let mut events = PrintedEvents::default();
        (0..=MAX_EVENTS).for_each(|_| events.printed(10, of(1)));
        assert_eq!(events.take_changed().unwrap().len(), MAX_EVENTS);
    }
}
