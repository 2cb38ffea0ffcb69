//! Walking only the nodes that can have keys of some ranges, a layer at a time: the proof that a tree has these records in the ranges,
//! and no others.
//!
//! A child is needed if a key of a range can be between its neighbors in the parent. A [`RangeWalk`] names the needed nodes, takes their
//! blocks in any order, and learns from them which nodes it needs next. When it needs no more, the records are complete. Every node is
//! checked by all rules of canonical trees that it and its parents can show.
//!
//! ```
//! use std::collections::BTreeMap;
//! use wireproof::codec::cid::{Cid, Codec};
//! use wireproof::atproto::mst::Tree;
//! use wireproof::atproto::mst::canonical::{KeyRanges, RangeWalk};
//!
//! let record = Cid::of(Codec::DagCbor, b"\xa0");
//! let mut tree = Tree::from_sorted(["a/1", "b/1", "b/2", "c/1"].map(|key| (key, record)))?;
//! let root = tree.root();
//! let blocks: BTreeMap<Cid, Vec<u8>> = tree.collect_blocks().into_iter().collect();
//! let mut walk = RangeWalk::new(root, KeyRanges::of_prefixes(["b/"]), 1000);
//! loop {
//!     let Some(cid) = walk.needed().next() else { break };
//!     walk.supply(&cid, &blocks[&cid])?;
//! }
//! let records = walk.finish()?;
//! assert_eq!(records.keys().collect::<Vec<_>>(), [b"b/1", b"b/2"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};

use codec::{AnyCid, Cid};

use super::layers::{Layer, LayerChecks, fault_of_empty, key_offset, layer_of};
use crate::mst::node::{KeyBuffer, Node};
use crate::mst::{BlockSource, Limit, MAX_RANGE_KEY_BYTES, TreeError, TreeFault};
use crate::syntax::CollectionPatternBuf;

/// Ranges of keys, in order and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRanges(Vec<KeyRange>);

/// The keys from `start` on, before `end`; without an end if it is `None`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeyRange {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl KeyRanges {
    /// The keys that begin with one of these prefixes, such as `app.bsky.feed.post/`.
    pub fn of_prefixes(prefixes: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let range = |prefix: &[u8]| KeyRange { start: prefix.to_vec(), end: after(prefix) };
        let mut ranges: Vec<_> =
            prefixes.into_iter().map(|prefix| range(prefix.as_ref())).collect();
        ranges.sort();
        // Two prefixes have no key in common, or one begins with the other.
        ranges.dedup_by(|next, last| next.start.starts_with(&last.start));
        Self(ranges)
    }

    /// The keys of the records in these collections.
    pub fn of_collections<'c>(
        collections: impl IntoIterator<Item = &'c CollectionPatternBuf>,
    ) -> Self {
        let prefix = |pattern: &CollectionPatternBuf| pattern.as_pattern().key_prefix();
        Self::of_prefixes(collections.into_iter().map(prefix))
    }

    /// Whether a key is in one of the ranges.
    pub fn contains(&self, key: &[u8]) -> bool {
        let after = self.0.partition_point(|range| range.start.as_slice() <= key);
        after.checked_sub(1).is_some_and(|at| self.0[at].ends_after(key))
    }

    /// Whether all keys after `prev` and before `next` are in one range, where `None` is the end of the tree.
    fn cover(&self, prev: &[u8], next: Option<&[u8]>) -> bool {
        let after = self.0.partition_point(|range| range.start.as_slice() <= prev);
        after.checked_sub(1).is_some_and(|at| match (&self.0[at].end, next) {
            (None, _) => true,
            (Some(end), next) => next.is_some_and(|next| next <= end.as_slice()),
        })
    }

    /// Whether a key of a range can be after `prev` and before `next`, where `None` is the end of the tree.
    fn meet(&self, prev: &[u8], next: Option<&[u8]>) -> bool {
        let first = self.0.partition_point(|range| !range.ends_after(prev));
        self.0.get(first).is_some_and(|range| next.is_none_or(|next| range.start.as_slice() < next))
    }
}

impl KeyRange {
    fn ends_after(&self, key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| end.as_slice() > key)
    }
}

/// About how many keys are in and below a node of this layer: half as many at an end of the tree, where the first key of a layer above
/// may be as far outside.
fn expected_keys(layer: Layer, prev: &[u8], next: Option<&[u8]>) -> u64 {
    let is_at_end = prev.is_empty() || next.is_none();
    layer.expected_keys() >> u32::from(is_at_end)
}

/// The nodes of a layer that were read.
#[derive(Clone, Copy, Debug, Default)]
struct LayerWidth {
    nodes: u64,
    keys: u64,
    children: u64,
}

/// The keys of a tree by the means of its layers, the last of which is the root's. A layer of which no node was read is four times as
/// wide as the one below.
fn keys_by_width(widths: &[LayerWidth]) -> u64 {
    widths.iter().fold(1, |below, LayerWidth { nodes, keys, children }| match nodes {
        0 => below.saturating_mul(4),
        nodes => children.saturating_mul(below).saturating_add(*keys) / nodes,
    })
}

/// The least key after all keys with a prefix.
fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// A walk over the nodes that can have keys of some ranges. Its memory grows with the nodes that it has reached and the records in the
/// ranges, whose keys are limited by [`MAX_RANGE_KEY_BYTES`].
#[derive(Clone, Debug)]
pub struct RangeWalk {
    ranges: KeyRanges,
    /// Maximum number of nodes.
    max_nodes: u64,
    needed: BTreeMap<Cid, NeededNode>,
    /// All nodes that were needed so far.
    reached: BTreeSet<Cid>,
    records: BTreeMap<Vec<u8>, AnyCid>,
    /// Bytes of the keys of `needed` and `records`.
    key_bytes: usize,
    /// About how many keys are outside the ranges, in and below the supplied nodes.
    other_keys: u64,
    /// The supplied nodes by layer, from the leaves up.
    widths: Vec<LayerWidth>,
    /// The first broken rule, which ends the walk.
    fault: Option<TreeError>,
}

/// An estimate of the tree, from the nodes that a walk has read. A quarter of the keys of each layer and those above it are above it, so
/// a node and the nodes below it have `4^(layer + 1)` keys on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeOutlook {
    /// About how many keys the tree has, by the layers of its nodes.
    pub keys: u64,
    /// About how many keys it has if the other nodes of a layer are as wide as the ones that were read: too many where these are wide, and
    /// much fewer than `keys` in a tree that is high for its keys.
    pub keys_by_width: u64,
    /// About how many keys the ranges have at least: those in the supplied nodes, and those below nodes whose keys are all in a range.
    pub keys_in_ranges: u64,
    /// Number of layers of nodes that are still needed.
    pub layers: u64,
}

/// A node whose block the walk needs, and where the node is in the tree.
#[derive(Clone, Debug)]
struct NeededNode {
    /// Unknown for the root alone.
    layer: Layer,
    /// The key before the keys of the node; empty at the start of the tree.
    prev: Vec<u8>,
    /// The key after the keys of the node; `None` at the end of the tree.
    next: Option<Vec<u8>>,
}

impl NeededNode {
    fn key_bytes(&self) -> usize {
        self.prev.len() + self.next.as_ref().map_or(0, Vec::len)
    }
}

impl RangeWalk {
    /// A walk from `root`, which fails if it needs more than `max_nodes` nodes.
    pub fn new(root: Cid, ranges: KeyRanges, max_nodes: u64) -> Self {
        let node = NeededNode { layer: Layer::Unknown, prev: Vec::new(), next: None };
        let needed = if ranges.0.is_empty() { BTreeMap::new() } else { [(root, node)].into() };
        let reached = needed.keys().copied().collect();
        Self {
            ranges,
            max_nodes,
            needed,
            reached,
            records: BTreeMap::new(),
            key_bytes: 0,
            other_keys: 0,
            widths: Vec::new(),
            fault: None,
        }
    }

    /// The nodes whose blocks are needed, in the order of their CIDs. Several are of one layer, unless some blocks of the layer above
    /// were not supplied.
    pub fn needed(&self) -> impl Iterator<Item = Cid> {
        self.needed.keys().copied()
    }

    /// Number of nodes that were supplied.
    pub fn nodes(&self) -> u64 {
        (self.reached.len() - self.needed.len()) as u64
    }

    /// Estimates the tree and the rest of the walk from the nodes so far.
    pub fn outlook(&self) -> RangeOutlook {
        let found = self.records.len() as u64;
        let mut outlook = RangeOutlook {
            keys: self.other_keys + found,
            keys_by_width: keys_by_width(&self.widths),
            keys_in_ranges: found,
            layers: 0,
        };
        for NeededNode { layer, prev, next } in self.needed.values() {
            let keys = expected_keys(*layer, prev, next.as_deref());
            outlook.keys = outlook.keys.saturating_add(keys);
            if self.ranges.cover(prev, next.as_deref()) {
                outlook.keys_in_ranges = outlook.keys_in_ranges.saturating_add(keys);
            }
            outlook.layers = outlook.layers.max(layer.count_down());
        }
        outlook
    }

    /// Checks the block of a node, whose hash is in `cid`; returns whether it was needed.
    ///
    /// # Errors
    /// If the node breaks a rule. [`finish`](Self::finish) then returns the same error.
    pub fn supply(&mut self, cid: &Cid, block: &[u8]) -> Result<bool, TreeError> {
        let Some(place) = self.needed.remove(cid) else { return Ok(false) };
        self.key_bytes -= place.key_bytes();
        let supplied = self.enter(*cid, block, &place);
        if let Err(error) = supplied {
            self.fault.get_or_insert(error);
        }
        supplied.map(|()| true)
    }

    fn enter(&mut self, cid: Cid, block: &[u8], place: &NeededNode) -> Result<(), TreeError> {
        let node = Node::parse(block).map_err(|error| TreeError::node(cid, error))?;
        let is_root = place.layer == Layer::Unknown;
        if node.is_empty()
            && let Some(fault) = fault_of_empty(is_root, node.left())
        {
            return Err(TreeError::at(cid, 0, fault));
        }
        for (child, place) in self.read(cid, block, &node, place)? {
            self.need(child, place)?;
        }
        Ok(())
    }

    /// Reads the records of a node that are in the ranges, and returns the children that are needed.
    fn read(
        &mut self,
        cid: Cid,
        block: &[u8],
        node: &Node<'_>,
        place: &NeededNode,
    ) -> Result<Vec<(Cid, NeededNode)>, TreeError> {
        let layer = layer_of(place.layer, node);
        let mut layer_checks = LayerChecks::default();
        if let Layer::At(layer) = layer {
            layer_checks.begin(cid, block, layer);
        }
        let (mut records, mut children) = (Vec::new(), Vec::new());
        let (mut key_bytes, mut other_keys) = (self.key_bytes, 0u64);
        let mut add_child = |child: Option<Cid>, prev: &[u8], next: Option<&[u8]>| {
            let Some(cid) = child else { return 0 };
            let layer = layer.below();
            if !self.ranges.meet(prev, next) {
                other_keys = other_keys.saturating_add(expected_keys(layer, prev, next));
                return 0;
            }
            let (prev, next) = (prev.to_vec(), next.map(<[u8]>::to_vec));
            let place = NeededNode { layer, prev, next };
            let key_bytes = place.key_bytes();
            children.push((cid, place));
            key_bytes
        };
        let (mut key, mut child, mut prev) = (KeyBuffer::new(), node.left(), place.prev.clone());
        for entry in node.entries() {
            let key = key.advance(&entry);
            layer_checks.push(key);
            let is_beyond = place.next.as_ref().is_some_and(|next| key >= next.as_slice());
            if is_beyond || key <= prev.as_slice() {
                let offset = key_offset(block, entry.suffix);
                return Err(TreeError::at(cid, offset, TreeFault::Order));
            }
            key_bytes += add_child(child, &prev, Some(key));
            if self.ranges.contains(key) {
                key_bytes += key.len();
                records.push((key.to_vec(), entry.value.into()));
            }
            if key_bytes > MAX_RANGE_KEY_BYTES {
                return Err(TreeError::at(cid, 0, TreeFault::Limit(Limit::RangeKeys)));
            }
            prev.clear();
            prev.extend_from_slice(key);
            child = entry.right;
        }
        key_bytes += add_child(child, &prev, place.next.as_deref());
        if let Some(fault) = layer_checks.check().first() {
            return Err(fault.error);
        }
        let entries = node.entries().count();
        if let Layer::At(layer) = layer {
            let children = node.left().into_iter().chain(node.entries().filter_map(|e| e.right));
            self.add_width(layer, entries as u64, children.count() as u64);
        }
        other_keys = other_keys.saturating_add((entries - records.len()) as u64);
        self.other_keys = self.other_keys.saturating_add(other_keys);
        self.records.extend(records);
        self.key_bytes = key_bytes;
        Ok(children)
    }

    /// Counts a node of a layer.
    fn add_width(&mut self, layer: u8, keys: u64, children: u64) {
        let len = self.widths.len().max(usize::from(layer) + 1);
        self.widths.resize(len, LayerWidth::default());
        let width = &mut self.widths[usize::from(layer)];
        width.nodes += 1;
        width.keys += keys;
        width.children += children;
    }

    /// Adds a node that is needed.
    fn need(&mut self, cid: Cid, place: NeededNode) -> Result<(), TreeError> {
        let reject = |fault| Err(TreeError::at(cid, 0, fault));
        if place.layer == Layer::Below {
            return reject(TreeFault::BelowLeaves);
        }
        if self.reached.len() as u64 == self.max_nodes {
            return reject(TreeFault::Limit(Limit::Nodes));
        }
        if !self.reached.insert(cid) {
            return reject(TreeFault::Repeated);
        }
        self.needed.insert(cid, place);
        Ok(())
    }

    /// The CIDs of all records in the ranges, by key.
    ///
    /// # Errors
    /// If a node broke a rule, or is missing: the first in the order of the keys.
    pub fn finish(self) -> Result<BTreeMap<Vec<u8>, AnyCid>, TreeError> {
        if let Some(error) = self.fault {
            return Err(error);
        }
        match self.needed.into_iter().min_by(|(_, one), (_, other)| one.prev.cmp(&other.prev)) {
            None => Ok(self.records),
            Some((cid, _)) => Err(TreeError::at(cid, 0, TreeFault::Missing)),
        }
    }
}

/// The nodes that a walk over some ranges needs, in order of their layers, and the records in the ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeResult<'a> {
    /// The CIDs of the records, by key.
    pub records: BTreeMap<Vec<u8>, AnyCid>,
    /// The nodes and their blocks, a node before its children.
    pub nodes: Vec<(Cid, &'a [u8])>,
}

/// Walks the nodes that can have keys of the ranges, over blocks that are in memory.
///
/// # Errors
/// If a node is missing or breaks a rule, or there are more than `max_nodes`.
pub fn search_ranges<'a>(
    root: Cid,
    source: impl BlockSource<'a>,
    ranges: KeyRanges,
    max_nodes: u64,
) -> Result<RangeResult<'a>, TreeError> {
    let (mut walk, mut nodes) = (RangeWalk::new(root, ranges, max_nodes), Vec::new());
    loop {
        let layer: Vec<Cid> = walk.needed().collect();
        source.prefetch(&mut layer.iter().copied());
        let before = nodes.len();
        for cid in layer {
            if let Some(block) = source.block(&cid) {
                walk.supply(&cid, block)?;
                nodes.push((cid, block));
            }
        }
        if nodes.len() == before {
            return Ok(RangeResult { records: walk.finish()?, nodes });
        }
    }
}

#[cfg(test)]
mod tests {
    use codec::cid::Codec;
    use proptest::prelude::*;

    use super::*;
    use crate::mst::reference::{self, Built, encode_node};

    fn value() -> Cid {
        Cid::of(Codec::DagCbor, b"\xa0")
    }

    fn tree(keys: &BTreeSet<Vec<u8>>) -> Built {
        reference::build(&keys.iter().map(|key| (key, value())).collect::<Vec<_>>())
    }

    fn source(built: &Built) -> BTreeMap<Cid, &[u8]> {
        borrowed(built.nodes())
    }

    fn search<'a>(
        root: Cid,
        source: &BTreeMap<Cid, &'a [u8]>,
        prefixes: &[Vec<u8>],
    ) -> Result<RangeResult<'a>, TreeError> {
        search_ranges(root, source, KeyRanges::of_prefixes(prefixes), 1000)
    }

    /// Keys of few letters, so that prefixes are shared.
    fn keys() -> impl Strategy<Value = BTreeSet<Vec<u8>>> {
        prop::collection::btree_set("[abc]{1,3}/[a-d]{1,3}".prop_map(String::into_bytes), 0..120)
    }

    fn prefixes() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec("[abc]{0,2}/?".prop_map(String::into_bytes), 0..4)
    }

    proptest! {
        #[test]
        fn the_records_in_the_ranges_are_found_by_the_nodes_that_can_have_them(keys in keys(), prefixes in prefixes()) {
            let built = tree(&keys);
            let blocks = source(&built);
            let found = search(built.root(), &blocks, &prefixes).unwrap();
            let is_wanted = |key: &&Vec<u8>| prefixes.iter().any(|prefix| key.starts_with(prefix));
            let wanted: Vec<&Vec<u8>> = keys.iter().filter(is_wanted).collect();
            prop_assert_eq!(found.records.keys().collect::<Vec<_>>(), wanted);
            prop_assert!(found.records.values().all(|cid| cid.to_cid() == Some(value())));
            // A record in a range could be added below every one of them, or is in it.
            let nodes: BTreeSet<Cid> = found.nodes.iter().map(|(cid, _)| *cid).collect();
            prop_assert_eq!(nodes.len(), found.nodes.len());
            for removed in nodes {
                let mut fewer = blocks.clone();
                fewer.remove(&removed);
                let error = search(built.root(), &fewer, &prefixes).unwrap_err();
                prop_assert_eq!((error.cid, error.fault), (Some(removed), TreeFault::Missing));
            }
        }

        #[test]
        fn ranges_have_the_keys_of_their_prefixes(key in "[ab\u{7f}]{1,4}", prefixes in prop::collection::vec("[ab\u{7f}]{0,3}", 0..4)) {
            let ranges = KeyRanges::of_prefixes(&prefixes);
            let expected = prefixes.iter().any(|prefix| key.starts_with(prefix));
            prop_assert_eq!(ranges.contains(key.as_bytes()), expected);
        }
    }

    #[test]
    fn the_outlook_of_a_walk_comes_near_the_keys_of_the_tree_and_ends_with_those_in_the_ranges() {
        let keys = |of: &str, count: usize| {
            let of = of.to_owned();
            (0..count).map(move |number| format!("{of}/{number:05}").into_bytes())
        };
        let keys: BTreeSet<Vec<u8>> =
            keys("a", 3000).chain(keys("b", 100)).chain(keys("c", 6000)).collect();
        let built = tree(&keys);
        let blocks = source(&built);
        for (prefix, count) in [("a/", 3000), ("b/", 100), ("c/", 6000), ("d/", 0), ("", 9100)] {
            let ranges = KeyRanges::of_prefixes([prefix]);
            let mut walk = RangeWalk::new(built.root(), ranges, 10_000);
            let mut outlooks = Vec::new();
            loop {
                let layer: Vec<Cid> = walk.needed().collect();
                if layer.is_empty() {
                    break;
                }
                for cid in layer {
                    walk.supply(&cid, blocks[&cid]).unwrap();
                }
                outlooks.push(walk.outlook());
            }
            let last = *outlooks.last().unwrap();
            assert_eq!((last.keys_in_ranges, last.layers), (count, 0), "{prefix}");
            for outlook in &outlooks {
                // Few keys are in the top layers, so that three times too many or too few are no surprise.
                assert!((3_000..=27_300).contains(&outlook.keys), "{prefix}: {outlooks:?}");
                assert!(outlook.keys_in_ranges <= 2 * count, "{prefix}: {outlooks:?}");
            }
            // Wide nodes are met more often, so this estimate is too high rather than too low.
            assert!(last.keys_by_width >= 1_000, "{prefix}: {outlooks:?}");
        }
    }

    #[test]
    fn a_tree_that_is_high_for_its_keys_is_small_by_the_width_of_its_nodes() {
        // One key of layer 8 among forty.
        let mut keys: BTreeSet<Vec<u8>> = (0..40)
            .map(|number| format!("{}/{number:05}", ["a", "b"][number % 2]).into())
            .collect();
        keys.insert(b"app.bsky.feed.post/9adeb165882c".to_vec());
        let built = tree(&keys);
        let blocks = source(&built);
        let mut walk = RangeWalk::new(built.root(), KeyRanges::of_prefixes(["a/00020"]), 1000);
        loop {
            let Some(cid) = walk.needed().next() else { break };
            walk.supply(&cid, blocks[&cid]).unwrap();
        }
        let outlook = walk.outlook();
        assert!(outlook.keys > 10_000, "{outlook:?}");
        assert!((10..=200).contains(&outlook.keys_by_width), "{outlook:?}");
    }

    #[test]
    fn a_range_covers_the_keys_between_two_of_its_keys_and_its_ends() {
        let ranges = KeyRanges::of_prefixes(["b/", "c/"]);
        for (prev, next, covered) in [
            ("b/1", Some("b/2"), true),
            ("b/1", Some("b0"), true),
            ("b/", None, false),
            ("b/1", Some("c/1"), false),
            ("a/1", Some("b/1"), false),
            ("c/1", Some("d"), false),
        ] {
            assert_eq!(ranges.cover(prev.as_bytes(), next.map(str::as_bytes)), covered, "{prev}");
        }
        assert!(KeyRanges::of_prefixes([""]).cover(b"", None));
    }

    #[test]
    fn a_prefix_of_greatest_bytes_has_no_end() {
        let ranges = KeyRanges::of_prefixes([b"\xff\xff"]);
        assert!(ranges.contains(b"\xff\xff\xff") && !ranges.contains(b"\xff\xfe"));
        assert!(ranges.meet(b"a", None) && !ranges.meet(b"a", Some(b"b")));
    }

    #[test]
    fn nothing_is_needed_of_a_tree_without_ranges() {
        let keys = BTreeSet::from([b"a/1".to_vec()]);
        let found = search(tree(&keys).root(), &BTreeMap::new(), &[]).unwrap();
        assert_eq!((found.records.len(), found.nodes.len()), (0, 0));
    }

    /// A tree whose root has one key, and this child after it.
    fn with_child(key: &[u8], child: Cid, blocks: &mut BTreeMap<Cid, Vec<u8>>) -> Cid {
        let value = AnyCid::from(value());
        add(encode_node(None, &[(key, &value, Some(child))]), blocks)
    }

    fn leaf(keys: &[&[u8]], blocks: &mut BTreeMap<Cid, Vec<u8>>) -> Cid {
        let value = AnyCid::from(value());
        let entries: Vec<_> = keys.iter().map(|key| (*key, &value, None)).collect();
        add(encode_node(None, &entries), blocks)
    }

    fn add(block: Vec<u8>, blocks: &mut BTreeMap<Cid, Vec<u8>>) -> Cid {
        let cid = Cid::of(Codec::DagCbor, &block);
        blocks.insert(cid, block);
        cid
    }

    fn borrowed(blocks: &BTreeMap<Cid, Vec<u8>>) -> BTreeMap<Cid, &[u8]> {
        blocks.iter().map(|(cid, block)| (*cid, &block[..])).collect()
    }

    fn fault(
        root: Cid,
        blocks: &BTreeMap<Cid, Vec<u8>>,
        prefix: &[u8],
    ) -> (Option<Cid>, TreeFault) {
        let error = search(root, &borrowed(blocks), &[prefix.to_vec()]).unwrap_err();
        (error.cid, error.fault)
    }

    /// The first key `a/N` in a layer.
    fn key_in(layer: u8, first: usize) -> Vec<u8> {
        let mut keys = (first..).map(|number| format!("a/{number:04}").into_bytes());
        keys.find(|key| crate::mst::key_height(key) == layer).unwrap()
    }

    #[test]
    fn a_node_that_breaks_a_rule_is_refused() {
        let (top, low) = (key_in(1, 100), key_in(0, 0));
        let mut blocks = BTreeMap::new();
        let before = leaf(&[&low], &mut blocks);
        let root = with_child(&top, before, &mut blocks);
        assert!(low < top);
        assert_eq!(fault(root, &blocks, b"a/"), (Some(before), TreeFault::Order));

        let high = key_in(
            1,
            1 + top[2..].iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0')),
        );
        let misplaced = leaf(&[&high], &mut blocks);
        let root = with_child(&top, misplaced, &mut blocks);
        assert_eq!(fault(root, &blocks, b"a/"), (Some(misplaced), TreeFault::Layer));

        let empty = leaf(&[], &mut blocks);
        let root = with_child(&top, empty, &mut blocks);
        assert_eq!(fault(root, &blocks, b"a/"), (Some(empty), TreeFault::EmptyNode));
        let untrimmed = add(encode_node(Some(&before), &[]), &mut blocks);
        assert_eq!(fault(untrimmed, &blocks, b"a/"), (Some(untrimmed), TreeFault::Untrimmed));

        let root = with_child(&low, empty, &mut blocks);
        assert_eq!(fault(root, &blocks, b"a/"), (Some(empty), TreeFault::BelowLeaves));
        let no_node = add(b"\xa0".to_vec(), &mut blocks);
        let (cid, fault) = fault(no_node, &blocks, b"a/");
        assert_eq!((cid, fault.code()), (Some(no_node), "tree/shape"));
    }

    #[test]
    fn a_faulty_node_outside_the_ranges_is_not_read() {
        let top = key_in(1, 0);
        let mut blocks = BTreeMap::new();
        let root = with_child(&top, value(), &mut blocks);
        let found = search(root, &borrowed(&blocks), &[b"Z".to_vec()]);
        assert_eq!(found.unwrap().nodes.len(), 1);
    }

    #[test]
    fn the_keys_that_a_walk_keeps_are_counted_and_limited() {
        let keys: BTreeSet<Vec<u8>> =
            (0..200).map(|number| format!("a/{number:04}").into_bytes()).collect();
        let built = tree(&keys);
        let blocks = source(&built);
        let mut walk = RangeWalk::new(built.root(), KeyRanges::of_prefixes(["a/"]), 1000);
        loop {
            let Some(cid) = walk.needed().next() else { break };
            walk.supply(&cid, blocks[&cid]).unwrap();
            let needed: usize = walk.needed.values().map(NeededNode::key_bytes).sum();
            let records: usize = walk.records.keys().map(Vec::len).sum();
            assert_eq!(walk.key_bytes, needed + records);
        }
        let mut walk = RangeWalk::new(built.root(), KeyRanges::of_prefixes(["a/"]), 1000);
        walk.key_bytes = MAX_RANGE_KEY_BYTES;
        let error = walk.supply(&built.root(), blocks[&built.root()]).unwrap_err();
        assert_eq!(error.fault, TreeFault::Limit(Limit::RangeKeys));
    }

    #[test]
    fn a_walk_ends_with_its_first_fault_and_at_its_limit() {
        let keys: BTreeSet<Vec<u8>> =
            (0..500).map(|number| format!("a/{number:04}").into_bytes()).collect();
        let built = tree(&keys);
        let mut walk = RangeWalk::new(built.root(), KeyRanges::of_prefixes(["a/"]), 1000);
        assert_eq!(walk.supply(&value(), b""), Ok(false), "a block that is not needed");
        let error = walk.supply(&built.root(), b"\xa0").unwrap_err();
        assert_eq!(walk.finish(), Err(error));

        let blocks = source(&built);
        let nodes = built.nodes().len() as u64;
        let ranges = || KeyRanges::of_prefixes(["a/"]);
        assert!(search_ranges(built.root(), &blocks, ranges(), nodes).is_ok());
        let error = search_ranges(built.root(), &blocks, ranges(), nodes - 1).unwrap_err();
        assert_eq!(error.fault, TreeFault::Limit(Limit::Nodes));
    }
}
