//! What is worth keeping of keys that come again, in a bounded number of bytes.
//!
//! Strangers choose the keys that a relay meets. So a key is kept only once it has signed something,
//! the number of keys is bounded, and places in the index depend on a seed that strangers do not
//! know. The clock gives a key that was found again a second chance before it is dropped; one that
//! was not has none, so a flood of new keys takes the place of other new keys first.
//!
//! A key's table is made when it has signed a second time. It costs about 1 µs and saves some
//! 0.3 µs each time that it is used (Zen 5, `--example verify`), so a key that comes once must not
//! cost it.

use std::collections::HashMap;

use kernels::secp256k1::{Key, KeyTable};

use crate::compressed::CompressedKey;
use crate::public_key::PublicKey;
use crate::seeded::SeededState;

/// Keys that were met before, ready for use: their points, or their odd multiples where signatures
/// are verified in lanes. Made for [`verify_many_cached`](crate::verify_many_cached).
#[derive(Debug)]
pub struct KeyCache {
    /// Where in `entries` a key is.
    index: HashMap<CompressedKey, usize, SeededState>,
    // entries.len() <= capacity
    entries: Vec<Entry>,
    capacity: usize,
    /// The entry that the clock looks at next.
    hand: usize,
    stats: CacheStats,
}

#[derive(Debug)]
struct Entry {
    key: CompressedKey,
    kept: Kept,
    /// Found since the hand last passed.
    is_recent: bool,
}

/// What there is of a key.
#[derive(Debug)]
enum Kept {
    /// That it signed something, once.
    Name,
    /// What the libraries want.
    Parsed(Box<PublicKey>),
    /// That its table is being made.
    Promise,
    /// What the lanes want.
    Table(Box<KeyTable>),
}

/// What a [`KeyCache`] has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// How often a key was looked for and ready.
    pub hits: u64,
    /// How often a key was looked for and not ready.
    pub misses: u64,
    /// How many keys were dropped for others.
    pub evictions: u64,
}

impl KeyCache {
    /// An empty cache that will take up to `budget_bytes`, which is a key for each
    /// [`ENTRY_BYTES`](Self::ENTRY_BYTES). The seed should be a secret from those who choose keys.
    pub fn new(budget_bytes: usize, seed: [u8; 16]) -> Self {
        Self {
            index: HashMap::with_hasher(SeededState::new(seed)),
            entries: Vec::new(),
            capacity: budget_bytes / Self::ENTRY_BYTES,
            hand: 0,
            stats: CacheStats::default(),
        }
    }

    /// The bytes that a key is charged with, whatever is kept of it: 1 KiB, which a table fills, and
    /// what it takes to align it and to find it again, which is some 300 bytes when the index has
    /// just doubled.
    pub const ENTRY_BYTES: usize = 1024 + 384;

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

    /// The parsed key, if it is there. Counts as a hit or a miss.
    pub(crate) fn find_key(&mut self, key: &CompressedKey) -> Option<&PublicKey> {
        let at = self.find(key, |kept| matches!(kept, Kept::Parsed(_)))?;
        match &self.entries[at].kept {
            Kept::Parsed(key) => Some(key),
            _ => None,
        }
    }

    /// Where the table of the key is, if it is there. Counts as a hit or a miss.
    pub(crate) fn find_table(&mut self, key: &CompressedKey) -> Option<usize> {
        self.find(key, |kept| matches!(kept, Kept::Table(_)))
    }

    /// The table that [`find_table`](Self::find_table) found, while nothing was kept since.
    ///
    /// # Panics
    /// If it is not there.
    pub(crate) fn table(&self, at: usize) -> &KeyTable {
        match &self.entries[at].kept {
            Kept::Table(table) => table,
            _ => panic!("a place that `find_table` gave"),
        }
    }

    fn find(&mut self, key: &CompressedKey, is_ready: fn(&Kept) -> bool) -> Option<usize> {
        let at = self.index.get(key).copied();
        if let Some(at) = at {
            self.entries[at].is_recent = true;
        }
        let ready = at.filter(|at| is_ready(&self.entries[*at].kept));
        *if ready.is_some() { &mut self.stats.hits } else { &mut self.stats.misses } += 1;
        ready
    }

    /// Keeps a parsed key for the next time, unless its table is there already.
    pub(crate) fn keep_key(&mut self, key: PublicKey) {
        let Some(entry) = self.entry(*key.as_compressed()) else { return };
        if !matches!(entry.kept, Kept::Table(_)) {
            entry.kept = Kept::Parsed(Box::new(key));
        }
    }

    /// Notes that keys on K-256 have each signed something in lanes; a table is made of those that
    /// did so before.
    pub(crate) fn meet_many(&mut self, keys: &[CompressedKey]) {
        let wanted: Vec<CompressedKey> =
            keys.iter().copied().filter(|key| self.meet(*key)).collect();
        for wanted in wanted.chunks(TABLES_AT_ONCE) {
            let spelled: Vec<Key<'_>> =
                wanted.iter().map(|key| Key::Compressed(key.as_bytes())).collect();
            for (key, table) in wanted.iter().zip(KeyTable::new_many(&spelled)) {
                let table = table.expect("what signed something is a point");
                // It may be gone again, for keys that were met after it.
                if let Some(at) = self.index.get(key) {
                    self.entries[*at].kept = Kept::Table(Box::new(table));
                }
            }
        }
    }

    /// Notes that a key signed something, and answers whether it is time for its table.
    fn meet(&mut self, key: CompressedKey) -> bool {
        let is_known = self.index.contains_key(&key);
        let Some(entry) = self.entry(key) else { return false };
        let is_time = is_known && matches!(entry.kept, Kept::Name | Kept::Parsed(_));
        if is_time {
            entry.kept = Kept::Promise;
        }
        is_time
    }

    /// The entry of a key, made if it is not there, for which another may have to go. `None` if
    /// there is room for nothing.
    fn entry(&mut self, key: CompressedKey) -> Option<&mut Entry> {
        if self.capacity == 0 {
            return None;
        }
        let at = match self.index.get(&key) {
            Some(at) => *at,
            None => self.insert(Entry { key, kept: Kept::Name, is_recent: false }),
        };
        Some(&mut self.entries[at])
    }

    fn insert(&mut self, entry: Entry) -> usize {
        let key = entry.key;
        let at = if self.entries.len() < self.capacity {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let at = self.next_victim();
            self.index.remove(&self.entries[at].key);
            self.entries[at] = entry;
            self.stats.evictions += 1;
            at
        };
        self.index.insert(key, at);
        at
    }

    /// Moves the hand behind the first entry that was not found since it last came by. Ends,
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

/// How many tables are made in one go, which takes their memory twice.
const TABLES_AT_ONCE: usize = 256;

const _: () = assert!(size_of::<KeyTable>() <= 1024, "a key takes at most 1 KiB");

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
        cache.find_key(key(number).as_compressed()) == Some(&key(number))
    }

    #[test]
    fn a_kept_key_is_found_and_counted() {
        let mut cache = cache_of(4);
        assert!(cache.is_empty() && !has(&mut cache, 0));
        cache.keep_key(key(0));
        cache.keep_key(key(1));
        assert!(has(&mut cache, 0) && has(&mut cache, 1) && !has(&mut cache, 2));
        assert_eq!(cache.stats(), CacheStats { hits: 2, misses: 2, evictions: 0 });
        assert_eq!((cache.len(), cache.capacity()), (2, 4));
    }

    #[test]
    fn the_budget_is_never_exceeded_and_every_entry_can_be_found() {
        let mut cache = cache_of(5);
        for number in 0..40 {
            assert!(!has(&mut cache, number));
            cache.keep_key(key(number));
            assert!(has(&mut cache, number));
            assert_eq!(cache.len(), 5.min(usize::from(number) + 1));
            assert_eq!(cache.index.len(), cache.len());
        }
        assert_eq!(cache.stats().evictions, 35);
        for (key, at) in &cache.index {
            assert_eq!(&cache.entries[*at].key, key);
        }
    }

    #[test]
    fn a_key_in_use_outlives_a_flood_of_keys_that_come_once() {
        let mut cache = cache_of(4);
        cache.keep_key(key(0));
        for stranger in 1..100 {
            assert!(has(&mut cache, 0), "after {stranger} strangers");
            cache.keep_key(key(stranger));
        }
    }

    #[test]
    fn a_table_is_made_when_a_key_is_met_again_and_stays() {
        let (mut cache, key) = (cache_of(2), key(0));
        let spelled = key.as_compressed();
        for expected in [None, None, Some(0), Some(0)] {
            assert_eq!(cache.find_table(spelled), expected);
            cache.meet_many(&[*spelled]);
        }
        let table = KeyTable::new(Key::Compressed(spelled.as_bytes())).unwrap();
        assert_eq!(cache.table(0), &table);
        assert_eq!(cache.find_key(spelled), None);
        cache.keep_key(key.clone());
        assert_eq!(cache.find_table(spelled), Some(0));
        assert_eq!(cache.stats(), CacheStats { hits: 3, misses: 3, evictions: 0 });
    }

    #[test]
    fn a_key_that_is_dropped_before_its_table_is_made_stays_dropped() {
        let mut cache = cache_of(1);
        let keys = [0, 0, 2, 0, 0, 2, 2].map(|number| *key(number).as_compressed());
        cache.meet_many(&keys);
        assert_eq!((cache.len(), cache.index.len()), (1, 1));
        assert_eq!(cache.find_table(&keys[0]), None);
        assert_eq!(cache.find_table(&keys[2]), Some(0));
        let table = KeyTable::new(Key::Compressed(keys[2].as_bytes())).unwrap();
        assert_eq!(cache.table(0), &table);
    }

    #[test]
    fn a_parsed_key_gives_way_to_its_table() {
        let (mut cache, key) = (cache_of(2), key(0));
        cache.keep_key(key.clone());
        cache.meet_many(&[*key.as_compressed()]);
        assert_eq!(cache.find_table(key.as_compressed()), Some(0));
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn a_budget_below_one_key_keeps_none() {
        let mut cache = KeyCache::new(KeyCache::ENTRY_BYTES - 1, [7; 16]);
        cache.keep_key(key(0));
        cache.meet_many(&[*key(0).as_compressed(); 3]);
        assert!(cache.is_empty() && !has(&mut cache, 0));
    }

    #[test]
    fn the_seed_is_not_printed() {
        assert!(!format!("{:?}", KeyCache::new(0, [77; 16])).contains("77"));
    }
}
