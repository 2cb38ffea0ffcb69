//! A hash index of the records of a tree, which follows its edits.
//!
//! A search of the tree waits for one node after the other, and the processor cannot start the next search
//! meanwhile, because where a search ends cannot be predicted. The index finds a record in one cache line,
//! chosen by a hash of its key:
//!
//! ```text
//! bucket (64 bytes)   tags     31 bits of the hash each   × 8    other bits choose the bucket
//!                     records  offsets in the arena       × 8
//! ```
//!
//! A full bucket takes no more records, and no second bucket is searched. A record that is left out (fewer
//! than one in fifty, or nearly all where the keys were chosen to have equal hashes) is looked up in the tree. A
//! record counts as found only if its key is the one that was looked up, and as absent only if its bucket had
//! room for every record.

use kernels::prefetch;

use super::arena::{Arena, RecordRef};

/// All records of a tree by a hash of their keys.
#[derive(Clone, Debug)]
pub(super) struct Index {
    // buckets.len() is a power of two
    buckets: Vec<Bucket>,
    /// The number of records, including omitted records.
    len: usize,
}

/// The answer of an index about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The record at the key.
    Record(RecordRef),
    /// There is no record at the key.
    Absent,
    /// Only a search of the tree can tell.
    Unknown,
}

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Bucket {
    tags: [u32; BUCKET_RECORDS],
    records: [RecordRef; BUCKET_RECORDS],
}

impl Index {
    /// Indexes all records of a tree.
    pub(super) fn new(arena: &Arena, records: &[RecordRef]) -> Self {
        let empty =
            Bucket { tags: [FREE; BUCKET_RECORDS], records: [RecordRef::NONE; BUCKET_RECORDS] };
        let count = records.len().div_ceil(BUCKET_RECORDS / 2).next_power_of_two();
        let mut index = Self { buckets: vec![empty; count], len: 0 };
        for record in records {
            index.insert(arena.key(*record), *record);
        }
        index
    }

    /// Whether there are more than [`CROWDED`] records a bucket, so that full buckets are frequent.
    pub(super) fn is_crowded(&self) -> bool {
        self.len > self.buckets.len() * CROWDED
    }

    /// Adds a record whose key is not in the tree.
    pub(super) fn insert(&mut self, key: &[u8], record: RecordRef) {
        let hash = hash(key);
        let at = self.bucket_of(hash);
        let Bucket { tags, records } = &mut self.buckets[at];
        self.len += 1;
        match tags.iter().position(|tag| *tag == FREE) {
            Some(free) => (tags[free], records[free]) = (tag_of(hash), record),
            None => tags[BUCKET_RECORDS - 1] = LEFT_OUT,
        }
    }

    /// Replaces the record at a key.
    pub(super) fn replace(&mut self, arena: &Arena, key: &[u8], record: RecordRef) {
        if let Some((bucket, at)) = self.slot_of(arena, key) {
            bucket.records[at] = record;
        }
    }

    /// Removes the record at a key.
    pub(super) fn remove(&mut self, arena: &Arena, key: &[u8]) {
        self.len = self.len.saturating_sub(1);
        if let Some((bucket, at)) = self.slot_of(arena, key) {
            bucket.tags[at] = FREE;
        }
    }

    fn slot_of(&mut self, arena: &Arena, key: &[u8]) -> Option<(&mut Bucket, usize)> {
        let hash = hash(key);
        let at = self.bucket_of(hash);
        let bucket = &mut self.buckets[at];
        let is_at = |at: &usize| {
            bucket.tags[*at] == tag_of(hash) && is_same(arena.key(bucket.records[*at]), key)
        };
        let at = (0..BUCKET_RECORDS).find(is_at)?;
        Some((bucket, at))
    }

    /// The record at `key`.
    #[inline]
    pub(super) fn find(&self, arena: &Arena, key: &[u8]) -> Found {
        checked(self.candidate(hash(key)), arena, key)
    }

    /// As [`Index::find`] for these keys, interleaved.
    pub(super) fn find_many(&self, arena: &Arena, keys: &[&[u8]], found: &mut Vec<Found>) {
        let mut hashes = [0; INTERLEAVED];
        for keys in keys.chunks(INTERLEAVED) {
            keys.iter().for_each(|key| prefetch::bytes(key));
            for (slot, key) in hashes.iter_mut().zip(keys) {
                *slot = hash(key);
                prefetch::element(&self.buckets, self.bucket_of(*slot));
            }
            let from = found.len();
            for hash in &hashes[..keys.len()] {
                let candidate = self.candidate(*hash);
                if let Found::Record(record) = candidate {
                    arena.prefetch_key(record);
                }
                found.push(candidate);
            }
            for (candidate, key) in found[from..].iter_mut().zip(keys) {
                *candidate = checked(*candidate, arena, key);
            }
        }
    }

    #[inline(always)]
    fn bucket_of(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// The first record whose tag equals the hash's.
    #[inline(always)]
    fn candidate(&self, hash: u64) -> Found {
        let bucket = &self.buckets[self.bucket_of(hash)];
        // All of them, without a branch.
        let with = |tag| {
            let same = |at: usize| u32::from(bucket.tags[at] == tag) << at;
            (0..BUCKET_RECORDS).fold(0, |found, at| found | same(at))
        };
        match bucket.records.get(with(tag_of(hash)).trailing_zeros() as usize) {
            Some(record) => Found::Record(*record),
            None if bucket.tags[BUCKET_RECORDS - 1] == LEFT_OUT => Found::Unknown,
            None => Found::Absent,
        }
    }
}

/// A candidate, if its key is the one that was looked up.
#[inline(always)]
fn checked(candidate: Found, arena: &Arena, key: &[u8]) -> Found {
    match candidate {
        Found::Record(record) if !is_same(arena.key(record), key) => Found::Unknown,
        other => other,
    }
}

#[inline(always)]
fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

/// Whether two keys are equal. Keys of the usual lengths are compared in two fixed-size parts, without
/// a branch that depends on the length, which differs from key to key.
#[inline(always)]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let (Some(a_start), Some(a_end)) = (a.first_chunk::<END>(), a.last_chunk::<END>()) else {
        return a == b;
    };
    let (Some(b_start), Some(b_end)) = (b.first_chunk::<END>(), b.last_chunk::<END>()) else {
        return false;
    };
    let is_same = (a.len() == b.len()) & (a_start == b_start) & (a_end == b_end);
    is_same && (a.len() <= 2 * END || a == b)
}

/// A hash of the last 24 bytes of a key and of its length, in which the keys of a repository differ.
#[inline(always)]
pub(super) fn hash(key: &[u8]) -> u64 {
    let Some(end) = key.last_chunk() else { return hash_of_short(key) };
    hash_of_end(end, key.len())
}

#[cold]
fn hash_of_short(key: &[u8]) -> u64 {
    let mut end = [0; END];
    end[END - key.len()..].copy_from_slice(key);
    hash_of_end(&end, key.len())
}

#[inline(always)]
fn hash_of_end(end: &[u8; END], len: usize) -> u64 {
    let (words, _) = end.as_chunks::<8>();
    let [a, b, c] = [0, 1, 2].map(|at| u64::from_le_bytes(words[at]));
    let first = fold(a ^ SEEDS[0] ^ len as u64, b ^ SEEDS[1]);
    fold(first ^ SEEDS[2], c ^ SEEDS[3])
}

/// The two halves of the 128-bit product, combined by XOR.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Digits of π.
const SEEDS: [u64; 4] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

/// Bytes at the end of a key that are hashed.
pub(super) const END: usize = 24;

/// Records in a bucket, which is one cache line.
pub(super) const BUCKET_RECORDS: usize = 8;

/// The average number of records in a bucket from which an index is crowded: one in twenty has no room then.
const CROWDED: usize = 6;

/// The tag of an unused place. The tags of records are odd.
const FREE: u32 = 0;

/// The tag in the last place of a bucket that had no room for a record.
const LEFT_OUT: u32 = 2;

/// Lookups whose memory is prefetched together: about as many as a core has cache misses in flight.
const INTERLEAVED: usize = 16;
