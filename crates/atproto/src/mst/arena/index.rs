//! Where is the record of a key, without going down the tree?
//!
//! A look-up that goes down waits for one node after the other, and the processor cannot begin the next
//! one meanwhile, because nobody can predict where a search ends. A tree that is asked often and not
//! changed therefore writes down where its records are, by a hash of their keys:
//!
//! ```text
//! line (64 bytes)   tags    31 bits of the hash each ×8    the other bits choose the line
//!                   records places in the arena      ×8
//! ```
//!
//! A line that is full takes no more, and nothing is ever looked for in a second one. So an entry may be
//! missing, and the tree is then asked as if there were no index: fewer than one in a hundred, or all of them
//! where someone chose keys that have the same hash. What is found counts only if its key is the one that
//! was asked for.

use kernels::prefetch;

use super::{Arena, NodeId, RecordRef};

/// The records of a tree by a hash of their keys, or nothing yet.
#[derive(Clone, Debug, Default)]
pub(in crate::mst) struct Index {
    /// None, or a power of two.
    lines: Vec<Line>,
    /// Look-ups that found their record without the help of the index.
    without: usize,
}

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Line {
    /// Where there is no record, 0.
    tags: [u32; PLACES],
    records: [RecordRef; PLACES],
}

impl Arena {
    /// The records of all loaded nodes at and below `root`.
    fn records_below(&self, root: NodeId) -> Vec<RecordRef> {
        let mut records = Vec::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            // A stub has no entries and no children.
            let entries = &self.node(id).entries;
            records.extend(entries.iter().map(|entry| entry.record));
            stack.extend(entries.left());
            stack.extend(entries.iter().filter_map(|entry| entry.right));
        }
        records
    }
}

impl Index {
    /// The record at `key`, if the index has it.
    #[inline]
    pub(in crate::mst) fn find(&self, arena: &Arena, key: &[u8]) -> Option<RecordRef> {
        if self.lines.is_empty() {
            return None;
        }
        let record = self.candidate(hash(key))?;
        is_same(arena.key(record), key).then_some(record)
    }

    /// As [`Index::find`] for each of these keys, side by side.
    pub(in crate::mst) fn find_many(
        &self,
        arena: &Arena,
        keys: &[&[u8]],
        found: &mut Vec<Option<RecordRef>>,
    ) {
        let mut hashes = [0; SIDE_BY_SIDE];
        for keys in keys.chunks(SIDE_BY_SIDE) {
            keys.iter().for_each(|key| prefetch::bytes(key));
            for (place, key) in hashes.iter_mut().zip(keys) {
                *place = hash(key);
                prefetch::element(&self.lines, self.line_of(*place));
            }
            let from = found.len();
            for hash in &hashes[..keys.len()] {
                let record = self.candidate(*hash);
                record.into_iter().for_each(|record| arena.ask_for(record));
                found.push(record);
            }
            for (record, key) in found[from..].iter_mut().zip(keys) {
                *record = record.filter(|record| is_same(arena.key(*record), key));
            }
        }
    }

    /// Whether nothing was written down.
    #[inline]
    pub(in crate::mst) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Forgets all, because the tree changes.
    #[inline]
    pub(in crate::mst) fn forget(&mut self) {
        if !self.lines.is_empty() || self.without > 0 {
            *self = Self::default();
        }
    }

    /// Notes that so many records were found in the tree below `root`, and not here. When there were
    /// many, all that is loaded of the tree is written down, which takes less time than they took.
    #[inline]
    pub(in crate::mst) fn was_missed(&mut self, arena: &Arena, root: NodeId, times: usize) {
        self.without += times;
        if self.without > arena.bytes_len() / BYTES_PER_LOOK_UP + FEW {
            self.write_down(arena, root);
        }
    }

    #[cold]
    fn write_down(&mut self, arena: &Arena, root: NodeId) {
        let records = arena.records_below(root);
        let empty = Line { tags: [0; PLACES], records: [RecordRef(0); PLACES] };
        self.without = 0;
        self.lines.clear();
        self.lines.resize(records.len().div_ceil(PLACES / 2).next_power_of_two(), empty);
        for record in records {
            self.insert(hash(arena.key(record)), record);
        }
    }

    fn insert(&mut self, hash: u64, record: RecordRef) {
        let at = self.line_of(hash);
        let Line { tags, records } = &mut self.lines[at];
        if let Some(free) = tags.iter().position(|tag| *tag == 0) {
            (tags[free], records[free]) = (tag_of(hash), record);
        }
    }

    #[inline(always)]
    fn line_of(&self, hash: u64) -> usize {
        // lines.len() is a power of two
        hash as usize & (self.lines.len() - 1)
    }

    /// The first record whose tag is that of the hash.
    #[inline(always)]
    fn candidate(&self, hash: u64) -> Option<RecordRef> {
        let line = &self.lines[self.line_of(hash)];
        let tag = tag_of(hash);
        // All of them, without a branch.
        let same = |place: usize| u32::from(line.tags[place] == tag) << place;
        let found = (0..PLACES).fold(0, |found, place| found | same(place));
        line.records.get(found.trailing_zeros() as usize).copied()
    }
}

#[inline(always)]
fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

/// Whether two keys are equal. Those of a repository are compared in one piece from both sides, without a
/// branch that depends on their length, which differs from key to key.
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

/// A hash of the last 24 bytes of a key and of its length: in a repository these tell the keys apart.
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

/// Both halves of a product.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Digits of π.
const SEEDS: [u64; 4] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

/// How much of a key is hashed.
const END: usize = 24;

/// Records in a line of the cache.
const PLACES: usize = 8;

/// An index is made after one look-up for so many bytes of keys and records: there are some 75 to each, so
/// that is after a third or a fourth as many look-ups as there are records.
const BYTES_PER_LOOK_UP: usize = 256;

/// Look-ups that are worth no index.
const FEW: usize = 64;

/// Look-ups whose memory is asked for together: about as many as a core has misses in flight.
const SIDE_BY_SIDE: usize = 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use codec::Cid;
    use codec::cid::Codec;

    use super::*;
    use crate::mst::Tree;

    fn value(number: usize) -> Cid {
        Cid::of(Codec::DagCbor, &number.to_be_bytes())
    }

    /// Keys of all lengths that matter, and many whose hashes are the same.
    fn key(number: usize) -> Vec<u8> {
        match number % 4 {
            0 => format!("com.example.post/3jqfcqzm{number:05}"),
            1 => format!("a/{number}"),
            2 => format!("{number:05}.the.same.and.the.same/self"),
            _ => format!("{number:05}/{}", "k".repeat(number % 70)),
        }
        .into_bytes()
    }

    fn ask_all(tree: &mut Tree, records: &BTreeMap<Vec<u8>, Cid>, keys: &[Vec<u8>]) {
        let expected = |key: &Vec<u8>| records.get(key).map(|cid| cid.as_cid_ref());
        for key in keys {
            assert_eq!(tree.get(key).unwrap(), expected(key));
        }
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let found = tree.get_many(&keys).unwrap();
        assert!(found.into_iter().eq(keys.iter().map(|key| expected(&key.to_vec()))));
    }

    #[test]
    fn a_tree_that_is_asked_often_answers_as_before_and_after_each_change() {
        let keys: Vec<Vec<u8>> = (0..2_000).map(key).collect();
        let mut records: BTreeMap<Vec<u8>, Cid> =
            (0..2_000).step_by(3).map(|number| (key(number), value(number))).collect();
        let mut tree = Tree::from_sorted(records.iter().map(|(k, v)| (k, *v))).unwrap();
        for number in [0, 1, 2, 3, 6, 9, 1_998] {
            ask_all(&mut tree, &records, &keys);
            assert!(!tree.index.is_empty());
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
            assert!(tree.index.is_empty());
            tree.insert(&key(12), value(number)).unwrap();
            records.insert(key(12), value(number));
        }
        ask_all(&mut tree, &records, &keys);
    }

    #[test]
    fn a_full_line_takes_no_more_and_loses_no_record() {
        let keys: Vec<Vec<u8>> = (0..1_000)
            .map(|number| format!("{number:04}.the.same.and.the.same/self").into_bytes())
            .collect();
        assert!(keys.iter().all(|key| hash(key) == hash(&keys[0])));
        let records: BTreeMap<Vec<u8>, Cid> = keys.iter().cloned().zip((0..).map(value)).collect();
        let mut tree = Tree::from_sorted(records.iter().map(|(k, v)| (k, *v))).unwrap();
        (0..5).for_each(|_| ask_all(&mut tree, &records, &keys));
        let in_index = |key: &&Vec<u8>| tree.index.find(&tree.arena, key).is_some();
        assert!(!tree.index.is_empty() && keys.iter().filter(in_index).count() <= PLACES);
    }

    #[test]
    fn what_is_loaded_later_is_found_and_written_down_in_the_end() {
        let records: Vec<(Vec<u8>, Cid)> =
            BTreeMap::from_iter((0..1_000).map(|number| (key(number), value(number))))
                .into_iter()
                .collect();
        let mut whole = Tree::from_sorted(records.iter().map(|(k, v)| (k, *v))).unwrap();
        let root = whole.root();
        let blocks = whole.collect_blocks();
        let source: BTreeMap<Cid, &[u8]> =
            blocks.iter().map(|(cid, block)| (*cid, &block[..])).collect();
        let mut tree = Tree::load_partial(root, source);
        for (key, value) in records[..100].iter().cycle().take(1_000).chain(&records) {
            assert_eq!(tree.get(key).unwrap(), Some(value.as_cid_ref()));
        }
        let in_index = |tree: &Tree<_>| {
            let is_found = |(key, _): &&(Vec<u8>, Cid)| tree.index.find(&tree.arena, key).is_some();
            records.iter().filter(is_found).count()
        };
        let before = in_index(&tree);
        assert!((100..1_000).contains(&before));
        for (key, value) in records.iter().cycle().take(10_000) {
            assert_eq!(tree.get(key).unwrap(), Some(value.as_cid_ref()));
        }
        assert!(in_index(&tree) > 450, "those that are alike fill few lines");
    }
}
