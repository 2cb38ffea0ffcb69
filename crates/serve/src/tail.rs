//! The newest events, in memory: clients that keep up read no file.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use crate::event::ServedEvent;

/// The newest events of the log, up to a size.
#[derive(Debug)]
pub(crate) struct Tail {
    max_bytes: usize,
    events: RwLock<Events>,
}

#[derive(Debug)]
struct Events {
    events: VecDeque<Arc<ServedEvent>>,
    bytes: usize,
    /// Number of events so far.
    count: u64,
    /// The last arrival before these events.
    before: i64,
}

/// The events after an arrival.
#[derive(Debug)]
pub(crate) enum TailRead {
    /// The next ones.
    Events(Vec<Arc<ServedEvent>>),
    /// None has arrived since.
    UpToDate,
    /// The next ones are older than the events in memory.
    Earlier,
}

impl Tail {
    /// No events yet, after this arrival.
    pub(crate) fn new(max_bytes: usize, before: i64) -> Self {
        let events = Events { events: VecDeque::new(), bytes: 0, count: 0, before };
        Self { max_bytes, events: RwLock::new(events) }
    }

    /// Adds the next event.
    pub(crate) fn push(&self, event: ServedEvent) {
        let mut state = self.events.write().unwrap_or_else(PoisonError::into_inner);
        state.bytes += event.len();
        state.count += 1;
        state.events.push_back(Arc::new(event));
        while state.bytes > self.max_bytes && state.events.len() > 1 {
            if let Some(oldest) = state.events.pop_front() {
                state.bytes -= oldest.len();
                state.before = oldest.arrival;
            }
        }
    }

    /// Up to `max` events after an arrival.
    pub(crate) fn read(&self, after: i64, max: usize) -> TailRead {
        let state = self.events.read().unwrap_or_else(PoisonError::into_inner);
        if after < state.before {
            return TailRead::Earlier;
        }
        let start = state.events.partition_point(|event| event.arrival <= after);
        match state.events.range(start..).take(max).cloned().collect::<Vec<_>>() {
            events if events.is_empty() => TailRead::UpToDate,
            events => TailRead::Events(events),
        }
    }

    /// Number of events that were added.
    pub(crate) fn count(&self) -> u64 {
        self.events.read().unwrap_or_else(PoisonError::into_inner).count
    }

    /// The last arrival before the events in memory.
    pub(crate) fn before(&self) -> i64 {
        self.events.read().unwrap_or_else(PoisonError::into_inner).before
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use net::jetstream::EventKind;

    use super::*;

    fn arrivals(tail: &Tail, after: i64, max: usize) -> Option<Vec<i64>> {
        match tail.read(after, max) {
            TailRead::Events(events) => Some(events.iter().map(|event| event.arrival).collect()),
            TailRead::UpToDate => Some(Vec::new()),
            TailRead::Earlier => None,
        }
    }

    #[test]
    fn events_stay_up_to_the_limit_and_a_reader_before_them_is_sent_to_the_log() {
        let tail = Tail::new(100, 5);
        assert_eq!(arrivals(&tail, 5, 9), Some(vec![]));
        assert_eq!(arrivals(&tail, 4, 9), None);
        for arrival in [10, 20, 30, 40] {
            let frame = Bytes::from(vec![0; 30]);
            tail.push(ServedEvent::new(arrival, EventKind::Commit, "did:web:a.test", frame));
        }
        assert_eq!(tail.before(), 10);
        assert_eq!(arrivals(&tail, 9, 9), None);
        assert_eq!(arrivals(&tail, 10, 2), Some(vec![20, 30]));
        assert_eq!(arrivals(&tail, 25, 9), Some(vec![30, 40]));
        assert_eq!(arrivals(&tail, 40, 9), Some(vec![]));
        // An event that is larger than the limit is there until the next one.
        let large = Bytes::from(vec![0; 300]);
        tail.push(ServedEvent::new(50, EventKind::Commit, "did:web:a.test", large));
        assert_eq!(arrivals(&tail, 40, 9), Some(vec![50]));
    }
}
