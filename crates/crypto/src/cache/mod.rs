//! A cache of public keys, bounded in bytes.
//!
//! The keys that a relay sees are chosen by untrusted peers. Therefore a key is cached only after it has
//! signed something, the number of keys is bounded, and hash positions depend on a secret seed. Eviction
//! is CLOCK: a key that was found again gets a second chance, a key that was not has none, so a flood of
//! new keys evicts other new keys first.
//!
//! The stored data of a key grows with its valid signatures: nothing or its point, then a small table of multiples, then a
//! larger table ([`enlarged`]). A small table costs as much time as it saves in some dozens of signatures of a batch, so a key
//! gets one after [`SMALL_USES`].

mod enlarged;
mod seeded;
mod table;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use kernels::curve::{KeyTable, TableSize};

use crate::compressed::CompressedKey;
use crate::lanes;
use crate::public_key::PublicKey;
use enlarged::{Enlarged, Place};
pub use seeded::SeededState;
pub(crate) use table::StoredCurve;
use table::Table;

/// Public keys of earlier batches, ready for use: their points, or multiples of them where signatures
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
    /// The entries with larger tables.
    enlarged: Enlarged,
    /// Valid signatures of all keys.
    uses: u64,
    stats: CacheStats,
}

#[derive(Debug)]
struct Entry {
    key: CompressedKey,
    state: EntryState,
    /// Found since the clock hand last passed.
    is_recent: bool,
    /// Valid signatures since the key was inserted or its table shrunk.
    uses: u32,
    /// The cache's number of uses at the last one of these.
    last_use: u64,
    /// The place among the entries with larger tables.
    enlarged: Option<Place>,
}

/// The stored data of a key.
#[derive(Debug)]
enum EntryState {
    /// The key has signed something.
    Seen,
    /// The point, for the libraries.
    Parsed(Box<PublicKey>),
    /// The table is being made.
    TablePending,
    /// The odd multiples, for the lanes.
    Table(Table),
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
    /// An empty cache of at most `budget_bytes`: three quarters are for keys, one per [`ENTRY_BYTES`](Self::ENTRY_BYTES),
    /// and a quarter for the larger tables of the busiest. Keep `seed` secret from peers that choose keys.
    pub fn new(budget_bytes: usize, seed: [u8; 16]) -> Self {
        let for_tables = budget_bytes / 4;
        Self {
            index: HashMap::with_hasher(SeededState::new(seed)),
            entries: Vec::new(),
            capacity: (budget_bytes - for_tables) / Self::ENTRY_BYTES,
            hand: 0,
            enlarged: Enlarged::new(for_tables),
            uses: 0,
            stats: CacheStats::default(),
        }
    }

    /// Bytes charged for a key in any state: 1 KiB for a small table, and alignment and index, which take
    /// some 300 bytes right after the index has doubled. A larger table is charged in addition.
    pub const ENTRY_BYTES: usize = TableSize::Small.bytes() + 384;

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
    /// If there is no table of the curve at `at`.
    pub(crate) fn table<C: StoredCurve>(&self, at: usize) -> &KeyTable<C> {
        C::of(self.stored(at)).expect("a key's table is of its curve")
    }

    fn stored(&self, at: usize) -> &Table {
        match &self.entries[at].state {
            EntryState::Table(table) => table,
            _ => panic!("an index that `find_table` returned"),
        }
    }

    /// The size of the key's table, if it has one. Counts as no lookup.
    pub(crate) fn table_size(&self, key: &CompressedKey) -> Option<TableSize> {
        match &self.entries[*self.index.get(key)?].state {
            EntryState::Table(table) => Some(table.size()),
            _ => None,
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

    /// Inserts the parsed key of a valid signature, unless its table is present.
    pub(crate) fn insert_key(&mut self, key: PublicKey) {
        let Some(at) = self.entry(*key.as_compressed()) else { return };
        let entry = &mut self.entries[at];
        if !matches!(entry.state, EntryState::Table(_)) {
            entry.state = EntryState::Parsed(Box::new(key));
        }
        self.count_use(at);
    }

    /// Counts a valid signature that was verified alone with the parsed key. Makes the key's table in time.
    pub(crate) fn record_alone(&mut self, key: &CompressedKey) {
        let Some(at) = self.index.get(key).copied() else { return };
        self.count_use(at);
    }

    /// Counts valid signatures under tables that [`find_table`](Self::find_table) found, if nothing was inserted since.
    pub(crate) fn record_found(&mut self, found: impl Iterator<Item = usize>) {
        found.for_each(|at| self.count_use(at));
    }

    /// Counts a valid signature, and enlarges the table of a key that has become busy.
    fn count_use(&mut self, at: usize) {
        let size = enlarged::size_after(self.add_use(at));
        if let Some(size) = size.filter(|_| lanes::MAY_HAVE_LANES) {
            self.enlarge(at, size);
        }
    }

    /// Counts a use. Returns how many the entry has.
    fn add_use(&mut self, at: usize) -> u32 {
        self.uses += 1;
        let entry = &mut self.entries[at];
        entry.last_use = self.uses;
        entry.uses = entry.uses.saturating_add(1);
        entry.uses
    }

    /// Records that the keys without a table signed something in lanes. Keys that have done so often get their tables.
    pub(crate) fn record_valid(&mut self, keys: &[CompressedKey]) {
        let due: Vec<CompressedKey> =
            keys.iter().copied().filter(|key| self.record(*key)).collect();
        for due in due.chunks(TABLE_CHUNK) {
            for (key, table) in Table::new_many(due) {
                // It may have been evicted by keys recorded after it.
                if let Some(at) = self.index.get(&key) {
                    self.entries[*at].state = EntryState::Table(table);
                }
            }
        }
    }

    /// Records that a key signed something. Returns whether to make its table now.
    fn record(&mut self, key: CompressedKey) -> bool {
        let Some(at) = self.entry(key) else { return false };
        let is_busy = self.add_use(at) >= SMALL_USES;
        let entry = &mut self.entries[at];
        let is_due = is_busy && matches!(entry.state, EntryState::Seen | EntryState::Parsed(_));
        if is_due {
            entry.state = EntryState::TablePending;
        }
        is_due
    }

    /// The index of a key's entry, inserted if absent, which may evict another. `None` if the capacity is 0.
    fn entry(&mut self, key: CompressedKey) -> Option<usize> {
        if self.capacity == 0 {
            return None;
        }
        Some(match self.index.get(&key) {
            Some(at) => *at,
            None => self.insert(Entry::of(key)),
        })
    }

    fn insert(&mut self, entry: Entry) -> usize {
        let key = entry.key;
        let at = if self.entries.len() < self.capacity {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let at = self.next_victim();
            self.index.remove(&self.entries[at].key);
            self.forget_enlarged(at);
            self.entries[at] = entry;
            self.stats.evictions += 1;
            at
        };
        self.index.insert(key, at);
        at
    }

    /// Advances the clock hand past the first entry that was not found since the last pass. Terminates,
    /// because it clears the mark of every entry it passes.
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

impl Entry {
    fn of(key: CompressedKey) -> Self {
        Self {
            key,
            state: EntryState::Seen,
            is_recent: false,
            uses: 0,
            last_use: 0,
            enlarged: None,
        }
    }
}

/// Valid signatures in lanes after which a key gets a small table, which takes 1 KiB of memory.
const SMALL_USES: u32 = 8;

/// Tables made per call of the kernel, which needs their memory twice.
const TABLE_CHUNK: usize = 256;
