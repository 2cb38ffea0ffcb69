//! A hash index over all records of a tree, for many lookups while the tree does not change.
//!
//! A lookup in a [`Tree`] waits for one node after the other, and the processor cannot start the next
//! lookup meanwhile, because where a search ends cannot be predicted. The index finds a record in one
//! cache line, chosen by a hash of its key:
//!
//! ```text
//! bucket (64 bytes)   tags     31 bits of the hash each   × 8    other bits choose the bucket
//!                     records  offsets in the arena       × 8
//! ```
//!
//! A full bucket takes no more records, and no second bucket is searched. A record that is left out
//! (fewer than one in a hundred, or nearly all where the keys were chosen to have equal hashes) is looked up
//! in the tree. A record counts as found only if its key is the one that was looked up.

use codec::CidRef;
use kernels::prefetch;

use super::arena::{Arena, NodeId, RecordRef};
use super::{BlockSource, Tree, TreeError};

impl<'a, S: BlockSource<'a>> Tree<S> {
    /// Loads the whole tree and indexes its records: see [`Snapshot`].
    ///
    /// # Errors
    /// If a node is missing or breaks a rule.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>, TreeError> {
        let mut records = Vec::new();
        self.load_all(|arena, id| {
            records.extend(arena.node(id).entries.iter().map(|entry| entry.record()));
            Ok(())
        })?;
        let Self { arena, root, .. } = &*self;
        Ok(Snapshot { arena, root: *root, index: Index::new(arena, &records) })
    }
}

/// An index of an unchanging tree, for readers that look up many records: servers of record reads,
/// joins of one repository against another.
///
/// The price is paid in [`Tree::snapshot`]: every node that is not loaded is loaded, every node is
/// visited and every key hashed once, which takes about as long as looking up a quarter of the records
/// in the tree does; and 16 to 32 bytes a record of memory. Fewer lookups than that belong in
/// [`Tree::get`]. The tree cannot be changed while a snapshot borrows it; a snapshot can be shared
/// between threads.
///
/// ```
/// use wireproof::codec::cid::{Cid, Codec};
/// use wireproof::atproto::mst::Tree;
/// let record = Cid::of(Codec::DagCbor, b"\xa0");
/// let mut tree = Tree::from_sorted([("a/1", record), ("a/2", record)])?;
/// let snapshot = tree.snapshot()?;
/// assert_eq!(snapshot.get(b"a/2"), Some(record.as_cid_ref()));
/// assert_eq!(snapshot.get(b"a/3"), None);
/// # Ok::<(), wireproof::atproto::mst::TreeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot<'t> {
    arena: &'t Arena,
    root: NodeId,
    index: Index,
}

impl<'t> Snapshot<'t> {
    /// The record at `key`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<CidRef<'t>> {
        let record = match self.index.find(self.arena, key) {
            Some(record) => record,
            None => self.arena.look_up_exactly(self.root, key)?,
        };
        Some(self.arena.value_after(record, key.len()))
    }

    /// The records at `keys`, in their order: as [`get`](Self::get), with the memory accesses of many
    /// lookups interleaved.
    pub fn get_many(&self, keys: &[&[u8]]) -> Vec<Option<CidRef<'t>>> {
        let mut records = Vec::with_capacity(keys.len());
        self.index.find_many(self.arena, keys, &mut records);
        let value = |(record, key): (Option<RecordRef>, &&[u8])| {
            let record = record.or_else(|| self.arena.look_up_exactly(self.root, key))?;
            Some(self.arena.value_after(record, key.len()))
        };
        records.into_iter().zip(keys).map(value).collect()
    }
}

/// The records of a tree by a hash of their keys.
#[derive(Clone, Debug)]
struct Index {
    // buckets.len() is a power of two
    buckets: Vec<Bucket>,
}

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Bucket {
    /// 0 where there is no record.
    tags: [u32; BUCKET_RECORDS],
    records: [RecordRef; BUCKET_RECORDS],
}

impl Index {
    fn new(arena: &Arena, records: &[RecordRef]) -> Self {
        let empty =
            Bucket { tags: [0; BUCKET_RECORDS], records: [RecordRef::NONE; BUCKET_RECORDS] };
        let count = records.len().div_ceil(BUCKET_RECORDS / 2).next_power_of_two();
        let mut index = Self { buckets: vec![empty; count] };
        for record in records {
            index.insert(hash(arena.key(*record)), *record);
        }
        index
    }

    fn insert(&mut self, hash: u64, record: RecordRef) {
        let at = self.bucket_of(hash);
        let Bucket { tags, records } = &mut self.buckets[at];
        if let Some(free) = tags.iter().position(|tag| *tag == 0) {
            (tags[free], records[free]) = (tag_of(hash), record);
        }
    }

    /// The record at `key`, if the index has it.
    #[inline]
    fn find(&self, arena: &Arena, key: &[u8]) -> Option<RecordRef> {
        let record = self.candidate(hash(key))?;
        is_same(arena.key(record), key).then_some(record)
    }

    /// As [`Index::find`] for each of these keys, interleaved.
    fn find_many(&self, arena: &Arena, keys: &[&[u8]], found: &mut Vec<Option<RecordRef>>) {
        let mut hashes = [0; INTERLEAVED];
        for keys in keys.chunks(INTERLEAVED) {
            keys.iter().for_each(|key| prefetch::bytes(key));
            for (slot, key) in hashes.iter_mut().zip(keys) {
                *slot = hash(key);
                prefetch::element(&self.buckets, self.bucket_of(*slot));
            }
            let from = found.len();
            for hash in &hashes[..keys.len()] {
                let record = self.candidate(*hash);
                record.into_iter().for_each(|record| arena.prefetch_key(record));
                found.push(record);
            }
            for (record, key) in found[from..].iter_mut().zip(keys) {
                *record = record.filter(|record| is_same(arena.key(*record), key));
            }
        }
    }

    #[inline(always)]
    fn bucket_of(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// The first record whose tag is that of the hash.
    #[inline(always)]
    fn candidate(&self, hash: u64) -> Option<RecordRef> {
        let bucket = &self.buckets[self.bucket_of(hash)];
        let tag = tag_of(hash);
        // All of them, without a branch.
        let same = |at: usize| u32::from(bucket.tags[at] == tag) << at;
        let found = (0..BUCKET_RECORDS).fold(0, |found, at| found | same(at));
        bucket.records.get(found.trailing_zeros() as usize).copied()
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
fn hash(key: &[u8]) -> u64 {
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
const END: usize = 24;

/// Records in a bucket, which is one cache line.
const BUCKET_RECORDS: usize = 8;

/// Lookups whose memory is prefetched together: about as many as a core has cache misses in flight.
const INTERLEAVED: usize = 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use codec::Cid;
    use codec::cid::Codec;

    use super::*;
    use crate::mst::{Tree, TreeFault};

    fn value(number: usize) -> Cid {
        Cid::of(Codec::DagCbor, &number.to_be_bytes())
    }

    /// Keys of all lengths that matter, and many whose hashes are equal.
    fn key(number: usize) -> Vec<u8> {
        match number % 4 {
            0 => format!("com.example.post/3jqfcqzm{number:05}"),
            1 => format!("a/{number}"),
            2 => format!("{number:05}.the.same.and.the.same/self"),
            _ => format!("{number:05}/{}", "k".repeat(number % 70)),
        }
        .into_bytes()
    }

    type Records = BTreeMap<Vec<u8>, Cid>;

    fn tree_of(records: &Records) -> Tree {
        Tree::from_sorted(records.iter().map(|(key, value)| (key, *value))).unwrap()
    }

    /// Looks up `keys` in the tree and in a snapshot of it, alone and together; returns how many the
    /// index has.
    fn check_lookups<'a>(
        tree: &mut Tree<impl BlockSource<'a>>,
        records: &Records,
        keys: &[Vec<u8>],
    ) -> usize {
        let expected = |key: &Vec<u8>| records.get(key).map(|cid| cid.as_cid_ref());
        for key in keys {
            assert_eq!(tree.get(key).unwrap(), expected(key));
        }
        let snapshot = tree.snapshot().unwrap();
        for key in keys {
            assert_eq!(snapshot.get(key), expected(key));
        }
        let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        assert!(snapshot.get_many(&borrowed).into_iter().eq(keys.iter().map(expected)));
        let is_indexed = |key: &&Vec<u8>| snapshot.index.find(snapshot.arena, key).is_some();
        keys.iter().filter(is_indexed).count()
    }

    #[test]
    fn long_keys_that_differ_in_their_middle_are_not_the_same() {
        let key =
            |middle: char| [&"a".repeat(END), &*middle.to_string(), &"z".repeat(END)].concat();
        let records = Records::from([(key('m').into_bytes(), value(1))]);
        let keys = ['m', 'n'].map(|middle| key(middle).into_bytes());
        assert_eq!(check_lookups(&mut tree_of(&records), &records, &keys), 1);
    }

    #[test]
    fn a_snapshot_finds_what_the_tree_has_before_and_after_each_change() {
        let keys: Vec<Vec<u8>> = (0..2_000).map(key).collect();
        let mut records: Records =
            (0..2_000).step_by(3).map(|number| (key(number), value(number))).collect();
        let mut tree = tree_of(&records);
        for number in [0, 1, 2, 3, 6, 9, 1_998] {
            assert!(check_lookups(&mut tree, &records, &keys) > 0);
            match number % 3 {
                0 => {
                    tree.remove(&key(number)).unwrap();
                    records.remove(&key(number));
                }
                _ => {
                    tree.insert(&key(number), value(number)).unwrap();
                    records.insert(key(number), value(number));
                }
            }
            tree.insert(&key(12), value(number)).unwrap();
            records.insert(key(12), value(number));
        }
        check_lookups(&mut tree, &records, &keys);
        check_lookups(&mut Tree::empty(), &Records::new(), &keys);
    }

    #[test]
    fn a_full_bucket_takes_no_more_and_loses_no_record() {
        let keys: Vec<Vec<u8>> = (0..1_000)
            .map(|number| format!("{number:04}.the.same.and.the.same/self").into_bytes())
            .collect();
        assert!(keys.iter().all(|key| hash(key) == hash(&keys[0])));
        let records: Records = keys.iter().cloned().zip((0..).map(value)).collect();
        let indexed = check_lookups(&mut tree_of(&records), &records, &keys);
        assert!((1..=BUCKET_RECORDS).contains(&indexed));
    }

    #[test]
    fn a_snapshot_of_a_partial_tree_loads_what_is_not_loaded_and_fails_at_a_missing_node() {
        let records: Records = (0..1_000).map(|number| (key(number), value(number))).collect();
        let keys: Vec<Vec<u8>> = records.keys().cloned().collect();
        let mut whole = tree_of(&records);
        let (root, blocks) = (whole.root(), whole.collect_blocks());
        let source: BTreeMap<Cid, &[u8]> =
            blocks.iter().map(|(cid, block)| (*cid, &block[..])).collect();
        let mut tree = Tree::load_partial(root, &source);
        assert!(keys[..100].iter().all(|key| tree.get(key).unwrap().is_some()));
        let indexed = check_lookups(&mut tree, &records, &keys);
        assert!(indexed > 450, "those with equal hashes share few buckets: {indexed}");
        for missing in source.keys().step_by(7) {
            let mut less = source.clone();
            less.remove(missing);
            let mut tree = Tree::load_partial(root, &less);
            let error = tree.snapshot().map(drop).unwrap_err();
            assert_eq!((error.cid, error.fault), (Some(*missing), TreeFault::Missing));
            assert!(tree.root() == root && tree.collect_blocks().is_empty());
        }
    }
}
