//! Deduplication of events from several hosts.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

use super::event::Event;

/// The latest events, by 64 bits each, under a key that nobody else knows: who writes events cannot make
/// two of them look the same.
#[derive(Debug)]
pub(super) struct Seen {
    marks: HashSet<u64>,
    /// The same, the oldest first.
    order: VecDeque<u64>,
    most: usize,
    state: RandomState,
}

impl Seen {
    /// Remembers so many events.
    pub(super) fn new(most: usize) -> Self {
        let state = RandomState::new();
        Self { marks: HashSet::new(), order: VecDeque::new(), most: most.max(1), state }
    }

    /// Whether this one is new.
    pub(super) fn is_new(&mut self, event: &Event) -> bool {
        let mut hasher = self.state.build_hasher();
        event.hash_identity(&mut hasher);
        self.insert(std::hash::Hasher::finish(&hasher))
    }

    fn insert(&mut self, mark: u64) -> bool {
        if !self.marks.insert(mark) {
            return false;
        }
        if self.order.len() == self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.marks.remove(&oldest);
        }
        self.order.push_back(mark);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_and_no_more() {
        let mut seen = Seen::new(3);
        assert!([1, 2, 3].into_iter().all(|mark| seen.insert(mark)));
        assert!(![1, 2, 3].into_iter().any(|mark| seen.insert(mark)));
        assert!(seen.insert(4) && seen.insert(1));
        assert!(!seen.insert(3) && !seen.insert(4));
        assert_eq!((seen.marks.len(), seen.order.len()), (3, 3));
    }
}
