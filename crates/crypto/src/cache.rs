//! A cache of public keys, bounded in bytes.
//!
//! The keys that a relay sees are chosen by untrusted peers. Therefore a key is cached only after it has
//! signed something, the number of keys is bounded, and hash positions depend on a secret seed. Eviction
//! is CLOCK: a key that was found again gets a second chance, a key that was not has none, so a flood of
//! new keys evicts other new keys first.
//!
//! A key's table is made after its second signature. It costs about 1 µs and saves some 0.3 µs each time
//! it is used (Zen 5, `--example verify`), so a key that appears once must not cost it.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hasher};

use kernels::secp256k1::{Key, KeyTable};

use crate::compressed::CompressedKey;
use crate::public_key::PublicKey;

/// Public keys of earlier batches, ready for use: their points, or their odd multiples where signatures
/// are verified in lanes. Used by [`verify_many_cached`](crate::verify_many_cached).
#[derive(Debug)]
pub struct KeyCache {
    /// Positions in `entries`.
    index: HashMap<CompressedKey, usize, SeededState>,
    // entries.len() <= capacity
    entries: Vec<Entry>,
    capacity: usize,
    /// The entry that CLOCK examines next.
    hand: usize,
    stats: CacheStats,
}

#[derive(Debug)]
struct Entry {
    key: CompressedKey,
    state: EntryState,
    /// Found since the clock hand last passed.
    is_recent: bool,
}

/// What is stored of a key.
#[derive(Debug)]
enum EntryState {
    /// The key signed something once.
    Seen,
    /// The point, for the libraries.
    Parsed(Box<PublicKey>),
    /// The table is being made.
    TablePending,
    /// The odd multiples, for the lanes.
    Table(Box<KeyTable>),
}

/// Lookups and evictions of a [`KeyCache`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Lookups that found the key ready.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Keys evicted for others.
    pub evictions: u64,
}

impl KeyCache {
    /// An empty cache of at most `budget_bytes`: one key for each [`ENTRY_BYTES`](Self::ENTRY_BYTES).
    /// Keep `seed` secret from peers that choose keys.
    pub fn new(budget_bytes: usize, seed: [u8; 16]) -> Self {
        Self {
            index: HashMap::with_hasher(SeededState::new(seed)),
            entries: Vec::new(),
            capacity: budget_bytes / Self::ENTRY_BYTES,
            hand: 0,
            stats: CacheStats::default(),
        }
    }

    /// Bytes charged for a key in any state: 1 KiB for its table, and alignment and index, which take
    /// some 300 bytes right after the index has doubled.
    pub const ENTRY_BYTES: usize = 1024 + 384;

    /// The maximum number of keys.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Lookups and evictions so far.
    pub fn stats(&self) -> CacheStats {
        self.stats
    }

    /// The parsed key, if present. Counts as a hit or a miss.
    pub(crate) fn get_key(&mut self, key: &CompressedKey) -> Option<&PublicKey> {
        let at = self.find(key, |state| matches!(state, EntryState::Parsed(_)))?;
        match &self.entries[at].state {
            EntryState::Parsed(key) => Some(key),
            _ => None,
        }
    }

    /// The index of the key's table, if present. Counts as a hit or a miss.
    pub(crate) fn find_table(&mut self, key: &CompressedKey) -> Option<usize> {
        self.find(key, |state| matches!(state, EntryState::Table(_)))
    }

    /// The table that [`find_table`](Self::find_table) found, if nothing was inserted since.
    ///
    /// # Panics
    /// If there is no table at `at`.
    pub(crate) fn table(&self, at: usize) -> &KeyTable {
        match &self.entries[at].state {
            EntryState::Table(table) => table,
            _ => panic!("an index that `find_table` returned"),
        }
    }

    fn find(&mut self, key: &CompressedKey, is_ready: fn(&EntryState) -> bool) -> Option<usize> {
        let at = self.index.get(key).copied();
        if let Some(at) = at {
            self.entries[at].is_recent = true;
        }
        let ready = at.filter(|at| is_ready(&self.entries[*at].state));
        *if ready.is_some() { &mut self.stats.hits } else { &mut self.stats.misses } += 1;
        ready
    }

    /// Inserts a parsed key, unless its table is present.
    pub(crate) fn insert_key(&mut self, key: PublicKey) {
        let Some(entry) = self.entry(*key.as_compressed()) else { return };
        if !matches!(entry.state, EntryState::Table(_)) {
            entry.state = EntryState::Parsed(Box::new(key));
        }
    }

    /// Records that each of these K-256 keys signed something in lanes, and makes the tables of those
    /// that had done so before.
    pub(crate) fn record_valid(&mut self, keys: &[CompressedKey]) {
        let due: Vec<CompressedKey> =
            keys.iter().copied().filter(|key| self.record(*key)).collect();
        for due in due.chunks(TABLE_CHUNK) {
            let keys: Vec<Key<'_>> =
                due.iter().map(|key| Key::Compressed(key.as_bytes())).collect();
            for (key, table) in due.iter().zip(KeyTable::new_many(&keys)) {
                let table = table.expect("a key with a valid signature is a point");
                // It may have been evicted by keys recorded after it.
                if let Some(at) = self.index.get(key) {
                    self.entries[*at].state = EntryState::Table(Box::new(table));
                }
            }
        }
    }

    /// Records that a key signed something. Returns whether to make its table now.
    fn record(&mut self, key: CompressedKey) -> bool {
        let is_known = self.index.contains_key(&key);
        let Some(entry) = self.entry(key) else { return false };
        let is_due = is_known && matches!(entry.state, EntryState::Seen | EntryState::Parsed(_));
        if is_due {
            entry.state = EntryState::TablePending;
        }
        is_due
    }

    /// The entry of a key, inserted if absent, which may evict another. `None` if the capacity is 0.
    fn entry(&mut self, key: CompressedKey) -> Option<&mut Entry> {
        if self.capacity == 0 {
            return None;
        }
        let at = match self.index.get(&key) {
            Some(at) => *at,
            None => self.insert(Entry { key, state: EntryState::Seen, is_recent: false }),
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

    /// Advances the clock hand past the first entry that was not found since the last pass. Terminates,
    /// because it clears the mark of each entry it passes.
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

/// Tables made per call of the kernel, which needs their memory twice.
const TABLE_CHUNK: usize = 256;

const _: () = assert!(size_of::<KeyTable>() <= 1024, "a key takes at most 1 KiB");

/// The standard library's hash with a secret prefix, supplied by the caller: for hash maps whose keys are
/// chosen by untrusted peers.
///
/// ```
/// use std::collections::HashMap;
/// use wireproof::crypto::SeededState;
/// let mut table = HashMap::with_hasher(SeededState::new([7; 16]));
/// table.insert("did:web:example.com", 1);
/// assert_eq!(table["did:web:example.com"], 1);
/// ```
#[derive(Clone)]
pub struct SeededState([u8; 16]);

impl SeededState {
    /// Hashes with this secret.
    pub fn new(seed: [u8; 16]) -> Self {
        Self(seed)
    }
}

impl BuildHasher for SeededState {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.0);
        hasher
    }
}

impl fmt::Debug for SeededState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeededState")
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
        cache.get_key(key(number).as_compressed()) == Some(&key(number))
    }

    #[test]
    fn an_inserted_key_is_found_and_counted() {
        let mut cache = cache_of(4);
        assert!(cache.is_empty() && !has(&mut cache, 0));
        cache.insert_key(key(0));
        cache.insert_key(key(1));
        assert!(has(&mut cache, 0) && has(&mut cache, 1) && !has(&mut cache, 2));
        assert_eq!(cache.stats(), CacheStats { hits: 2, misses: 2, evictions: 0 });
        assert_eq!((cache.len(), cache.is_empty(), cache.capacity()), (2, false, 4));
    }

    #[test]
    fn the_budget_is_never_exceeded_and_every_entry_can_be_found() {
        let mut cache = cache_of(5);
        for number in 0..40 {
            assert!(!has(&mut cache, number));
            cache.insert_key(key(number));
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
    fn a_key_in_use_survives_a_flood_of_keys_that_appear_once() {
        let mut cache = cache_of(4);
        cache.insert_key(key(0));
        for other in 1..100 {
            assert!(has(&mut cache, 0), "after {other} other keys");
            cache.insert_key(key(other));
        }
    }

    #[test]
    fn a_table_is_made_after_the_second_signature_and_stays() {
        let (mut cache, key) = (cache_of(2), key(0));
        let compressed = key.as_compressed();
        for expected in [None, None, Some(0), Some(0)] {
            assert_eq!(cache.find_table(compressed), expected);
            cache.record_valid(&[*compressed]);
        }
        let table = KeyTable::new(Key::Compressed(compressed.as_bytes())).unwrap();
        assert_eq!(cache.table(0), &table);
        assert_eq!(cache.get_key(compressed), None);
        cache.insert_key(key.clone());
        assert_eq!(cache.find_table(compressed), Some(0));
        assert_eq!(cache.stats(), CacheStats { hits: 3, misses: 3, evictions: 0 });
    }

    #[test]
    fn a_key_that_is_evicted_before_its_table_is_made_stays_evicted() {
        let mut cache = cache_of(1);
        let keys = [0, 0, 2, 0, 0, 2, 2].map(|number| *key(number).as_compressed());
        cache.record_valid(&keys);
        assert_eq!((cache.len(), cache.index.len()), (1, 1));
        assert_eq!(cache.find_table(&keys[0]), None);
        assert_eq!(cache.find_table(&keys[2]), Some(0));
        let table = KeyTable::new(Key::Compressed(keys[2].as_bytes())).unwrap();
        assert_eq!(cache.table(0), &table);
    }

    #[test]
    fn a_table_replaces_the_parsed_key() {
        let (mut cache, key) = (cache_of(2), key(0));
        cache.insert_key(key.clone());
        cache.record_valid(&[*key.as_compressed()]);
        assert_eq!(cache.find_table(key.as_compressed()), Some(0));
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn a_budget_below_one_key_caches_none() {
        let mut cache = KeyCache::new(KeyCache::ENTRY_BYTES - 1, [7; 16]);
        cache.insert_key(key(0));
        cache.record_valid(&[*key(0).as_compressed(); 3]);
        assert!(cache.is_empty() && !has(&mut cache, 0));
    }

    #[test]
    fn the_seed_is_not_printed() {
        assert!(!format!("{:?}", KeyCache::new(0, [77; 16])).contains("77"));
    }

    #[test]
    fn hashes_depend_on_the_seed_which_is_not_printed() {
        let hash = |seed| SeededState::new([seed; 16]).hash_one("a key");
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
        assert_eq!(format!("{:?}", SeededState::new([77; 16])), "SeededState");
    }
}
