//! How much may be under way at once? Who reads waits for room; who acknowledges makes it.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use tokio::sync::Notify;

/// InFlightLimit for so many events and bytes. One takes, many give back.
#[derive(Debug)]
pub(super) struct InFlightLimit {
    max_events: AtomicUsize,
    max_bytes: usize,
    events: AtomicUsize,
    bytes: AtomicUsize,
    more: Notify,
}

impl InFlightLimit {
    pub(super) fn new(max_events: usize, max_bytes: usize) -> Self {
        let (events, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let max_events = AtomicUsize::new(max_events);
        Self { max_events, max_bytes, events, bytes, more: Notify::new() }
    }

    /// Takes the room of one event, if there is some. An empty room has some for anything: what is
    /// longer than the room must pass too.
    pub(super) fn try_acquire(&self, bytes: usize) -> bool {
        // Who gave back has narrowed before.
        let events_now = self.events.load(Acquire);
        let has_place = events_now < self.max_events.load(Relaxed);
        let fits = events_now == 0 || self.bytes().saturating_add(bytes) <= self.max_bytes;
        if !has_place || !fits {
            return false;
        }
        self.events.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        true
    }

    /// Takes the room of one event, when there is some.
    pub(super) async fn acquire(&self, bytes: usize) {
        while !self.try_acquire(bytes) {
            // What was given back since is remembered by the bell.
            self.more.notified().await;
        }
    }

    /// So many events with so many bytes are no longer under way.
    pub(super) fn release(&self, events: usize, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
        self.events.fetch_sub(events, Release);
        self.more.notify_one();
    }

    /// So many places are gone for good when the events that have them are given back.
    pub(super) fn narrow(&self, places: usize) {
        self.max_events.fetch_sub(places, Relaxed);
    }

    /// How many events are under way.
    pub(super) fn events(&self) -> usize {
        self.events.load(Relaxed)
    }

    /// How many bytes are.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_events_and_bytes_and_no_more() {
        let room = InFlightLimit::new(3, 100);
        assert!(room.try_acquire(60) && room.try_acquire(40) && !room.try_acquire(1));
        room.release(1, 60);
        assert!(room.try_acquire(10) && room.try_acquire(10) && !room.try_acquire(0));
        assert_eq!((room.events(), room.bytes()), (3, 60));
    }

    #[test]
    fn what_is_longer_than_the_room_has_it_alone() {
        let room = InFlightLimit::new(3, 100);
        assert!(room.try_acquire(5_000) && !room.try_acquire(0));
        room.release(1, 5_000);
        assert!(room.try_acquire(0) && !room.try_acquire(5_000));
    }

    #[test]
    fn a_room_without_places_has_none_for_anything() {
        let room = InFlightLimit::new(2, 100);
        assert!(room.try_acquire(1) && room.try_acquire(1));
        room.narrow(1);
        room.release(1, 1);
        assert!(!room.try_acquire(1), "the place of the other one is the last");
        room.narrow(1);
        room.release(1, 1);
        assert_eq!((room.try_acquire(0), room.events()), (false, 0));
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_room_is_given_back() {
        let room = InFlightLimit::new(1, 100);
        room.acquire(1).await;
        let waits = async {
            room.acquire(2).await;
            room.bytes()
        };
        let gives = async {
            tokio::task::yield_now().await;
            room.release(1, 1);
        };
        assert_eq!(tokio::join!(waits, gives).0, 2);
    }
}
