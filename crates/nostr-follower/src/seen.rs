//! The ids of events that came before, within a bound.

use std::collections::HashSet;

/// Remembers different ids: the last half of the maximum at least, and no more than the maximum.
#[derive(Debug)]
pub struct SeenIds {
    recent: HashSet<[u8; 32]>,
    older: HashSet<[u8; 32]>,
    max: usize,
}

impl SeenIds {
    /// No ids, and this maximum.
    pub fn new(max: usize) -> Self {
        Self { recent: HashSet::new(), older: HashSet::new(), max }
    }

    /// Whether an id is remembered.
    pub fn contains(&self, id: &[u8; 32]) -> bool {
        self.older.contains(id) || self.recent.contains(id)
    }

    /// Remembers an id; whether it is new.
    pub fn insert(&mut self, id: [u8; 32]) -> bool {
        if self.contains(&id) {
            return false;
        }
        if self.recent.len() >= self.max / 2 {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(id)
    }
}

/// Maximum number of ids that are remembered: two tables with 2^20 places of 33 bytes.
pub const MAX_IDS: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_maximum_is_remembered_and_no_more_than_it() {
        let id = |number: u64| {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&number.to_le_bytes());
            id
        };
        let mut seen = SeenIds::new(100);
        for number in 0..1_000 {
            assert!(seen.insert(id(number)));
            assert!(!seen.insert(id(number)));
            assert!(!seen.insert(id(number.saturating_sub(49))));
            assert!(seen.recent.len() + seen.older.len() <= 100);
        }
        assert!(seen.insert(id(0)));
    }
}
