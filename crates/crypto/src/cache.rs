//! What is worth keeping of keys that come again, in a bounded number of bytes.
//!
//! Strangers choose the keys that a relay meets. So a key is kept only once it has signed something,
//! the number of keys is bounded, and places in the index depend on a seed that strangers do not
//! know. The clock gives each key that was met again a second chance before it is dropped; one that
//! was met once has none, so a flood of new keys takes the place of other new keys first.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hasher};

use crate::compressed::CompressedKey;
use crate::public_key::PublicKey;

/// Keys that were met before, ready for use. Made for [`verify_many_cached`](crate::verify_many_cached).
#[derive(Debug)]
pub struct KeyCache {
    /// Where in `entries` a key is.
    index: HashMap<CompressedKey, usize, Seeded>,
    // entries.len() <= capacity
    entries: Vec<Entry>,
    capacity: usize,
    /// The entry that the clock looks at next.
    hand: usize,
    stats: CacheStats,
}

#[derive(Debug)]
struct Entry {
    key: PublicKey,
    /// Asked for since the hand last passed.
    is_recent: bool,
}

/// What a [`KeyCache`] has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Keys that were asked for and there.
    pub hits: u64,
    /// Keys that were asked for and not there.
    pub misses: u64,
    /// Keys that were dropped for others.
    pub evictions: u64,
}

impl KeyCache {
    /// An empty cache that will take up to `budget_bytes`, which holds a key for each
    /// [`ENTRY_BYTES`](Self::ENTRY_BYTES). The seed should be a secret from those who choose keys.
    pub fn new(budget_bytes: usize, seed: [u8; 16]) -> Self {
        Self {
            index: HashMap::with_hasher(Seeded(seed)),
            entries: Vec::new(),
            capacity: budget_bytes / Self::ENTRY_BYTES,
            hand: 0,
            stats: CacheStats::default(),
        }
    }

    /// The bytes that a key is charged with, whatever its curve.
    pub const ENTRY_BYTES: usize = 1024;

    /// How many keys there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What happened so far.
    pub fn stats(&self) -> CacheStats {
        self.stats
    }

    /// The key, if it is there; counts as a hit or a miss.
    pub(crate) fn get(&mut self, key: &CompressedKey) -> Option<&PublicKey> {
        let Some(at) = self.index.get(key) else {
            self.stats.misses += 1;
            return None;
        };
        self.stats.hits += 1;
        let entry = &mut self.entries[*at];
        entry.is_recent = true;
        Some(&entry.key)
    }

    /// Keeps a key that is not there, and drops another if there is no room.
    pub(crate) fn keep(&mut self, key: PublicKey) {
        if self.capacity == 0 {
            return;
        }
        let compressed = *key.as_compressed();
        let entry = Entry { key, is_recent: false };
        if self.entries.len() < self.capacity {
            self.index.insert(compressed, self.entries.len());
            self.entries.push(entry);
            return;
        }
        let at = self.next_victim();
        self.index.remove(self.entries[at].key.as_compressed());
        self.index.insert(compressed, at);
        self.entries[at] = entry;
        self.stats.evictions += 1;
    }

    /// Moves the hand behind the first entry that was not asked for since it last came by. Ends,
    /// because it takes the mark from those it passes.
    fn next_victim(&mut self) -> usize {
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.entries.len();
            if !std::mem::take(&mut self.entries[at].is_recent) {
                return at;
            }
        }
    }
}

/// The standard library's hash with a secret in front of each key.
#[derive(Clone)]
struct Seeded([u8; 16]);

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.0);
        hasher
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Curve, SecretKey};

    fn key(number: u8) -> PublicKey {
        let curve = Curve::ALL[usize::from(number % 2)];
        SecretKey::from_bytes(curve, &[number + 1; 32]).unwrap().public_key()
    }

    fn cache_of(capacity: usize) -> KeyCache {
        KeyCache::new(capacity * KeyCache::ENTRY_BYTES, [7; 16])
    }

    fn has(cache: &mut KeyCache, number: u8) -> bool {
        cache.get(key(number).as_compressed()) == Some(&key(number))
    }

    #[test]
    fn a_kept_key_is_found_and_counted() {
        let mut cache = cache_of(4);
        assert!(cache.is_empty() && !has(&mut cache, 0));
        cache.keep(key(0));
        cache.keep(key(1));
        assert!(has(&mut cache, 0) && has(&mut cache, 1) && !has(&mut cache, 2));
        assert_eq!(cache.stats(), CacheStats { hits: 2, misses: 2, evictions: 0 });
        assert_eq!((cache.len(), cache.capacity()), (2, 4));
    }

    #[test]
    fn the_budget_is_never_exceeded_and_every_entry_can_be_found() {
        let mut cache = cache_of(5);
        for number in 0..40 {
            assert!(!has(&mut cache, number));
            cache.keep(key(number));
            assert!(has(&mut cache, number));
            assert_eq!(cache.len(), 5.min(usize::from(number) + 1));
            assert_eq!(cache.index.len(), cache.len());
        }
        assert_eq!(cache.stats().evictions, 35);
        for (key, at) in &cache.index {
            assert_eq!(cache.entries[*at].key.as_compressed(), key);
        }
    }

    #[test]
    fn a_key_in_use_outlives_a_flood_of_keys_that_come_once() {
        let mut cache = cache_of(4);
        cache.keep(key(0));
        for stranger in 1..100 {
            assert!(has(&mut cache, 0), "after {stranger} strangers");
            cache.keep(key(stranger));
        }
    }

    #[test]
    fn a_budget_below_one_key_keeps_none() {
        let mut cache = KeyCache::new(KeyCache::ENTRY_BYTES - 1, [7; 16]);
        cache.keep(key(0));
        assert!(cache.is_empty() && !has(&mut cache, 0));
    }

    #[test]
    fn the_seed_is_not_printed() {
        assert!(!format!("{:?}", KeyCache::new(0, [77; 16])).contains("77"));
    }
}
