//! The memory of trees: nodes that refer to each other by index.
//!
//! A node is a stub (only its CID is known), loaded or changed. CIDs are computed on demand
//! ([`Arena::hash_dirty`]), for all changed nodes of a layer together. The contents of a node:
//!
//! ```text
//! bytes    … 32 app.bsky.feed.post/3l6oveex3ii2l 36 ‹CID› 32 app.bsky.feed.post/3l6oveex3kk2m …
//! entry    word: the eight bytes of the key after the node's first `skip`, which all its keys share
//! ```
//!
//! so that nearly every comparison is one of two adjacent words. Edits do not hash keys: heights are given,
//! or implied by the layer of a loaded node and checked together ([`Arena::check_heights`]) before a result
//! that depends on them is returned.

mod append;
mod edit;
mod entries;
mod find;
mod hash;
mod load;

use std::num::NonZeroU32;

use codec::cid::Codec;
use codec::{Cid, CidRef};
use kernels::prefetch;

use super::node::KeyBuffer;
use super::{Limit, TreeError, TreeFault};

pub(super) use append::RightEdge;
pub(super) use edit::Path;
pub(super) use entries::{Entries, Entry};
pub(super) use find::{KeyPosition, is_less, shared_len};
pub(super) use load::{HeightChecks, KeyBounds};

/// The index of a node, plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(NonZeroU32);

impl NodeId {
    fn new(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("memory ends prev 2^32 nodes of 128 bytes"))
    }

    #[inline(always)]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The node between two neighboring keys, if there are keys between them.
pub(super) type Child = Option<NodeId>;

/// The offset of a record in the arena's bytes: see [`Arena::store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordRef(u32);

impl RecordRef {
    /// Fills unused slots of tables that have another mark for them.
    pub(super) const NONE: Self = Self(0);
}

/// The known state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeState {
    /// Only its CID.
    Stub,
    /// Its CID and content; it was loaded, or returned by [`Arena::collect_new`].
    Known,
    /// Its CID and content; it was not returned yet.
    New,
    /// Its content; its CID is out of date.
    Dirty,
}

/// A node, in two cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Node {
    /// None in a stub.
    pub(super) entries: Entries,
    pub(super) height: u8,
}

const _: () = assert!(size_of::<Node>() == 128);

impl Node {
    /// The child in a slot: slot 0 is before the first key, slot `i` after key `i - 1`.
    #[inline(always)]
    pub(super) fn child(&self, slot: usize) -> Child {
        self.entries.child(slot)
    }
}

/// The memory of one tree, or of many.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena {
    /// The first `used` are in use or `free`; the others keep their memory for reuse.
    nodes: Vec<Node>,
    used: usize,
    free: Vec<NodeId>,
    /// The nodes' states, by the same index: many states fill a cache line, and finding changed nodes reads no other
    /// memory.
    states: Vec<NodeState>,
    /// The nodes' CIDs, by the same index.
    cids: Vec<Cid>,
    /// Keys, followed by the CIDs of their records.
    bytes: Vec<u8>,
    /// CIDs of nodes that were known and then changed or dropped.
    stale: Vec<Cid>,
    /// Reused by every load.
    key: Option<Box<KeyBuffer>>,
    height_checks: HeightChecks,
    /// Whether the owner of the arena checks the heights.
    defers_checks: bool,
    hash_scratch: hash::HashScratch,
}

impl Arena {
    /// An arena whose owner checks heights itself, for all its trees together.
    pub(super) fn deferring_checks() -> Self {
        Self { defers_checks: true, ..Self::default() }
    }

    /// The loaded nodes whose keys are not yet checked.
    pub(super) fn height_checks(&self) -> &HeightChecks {
        &self.height_checks
    }

    /// Reserves memory for a tree of this many records of average length.
    pub(super) fn reserve(&mut self, records: usize) {
        let records = records.min(MAX_RESERVED);
        self.nodes.reserve(records / 3);
        self.states.reserve(records / 3);
        self.cids.reserve(records / 3);
        self.bytes.reserve(records * 80);
    }

    /// The size of keys and values in bytes.
    pub(super) fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all trees and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.free.clear();
        self.bytes.clear();
        self.stale.clear();
        self.height_checks.clear();
    }

    #[inline(always)]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    #[inline(always)]
    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// The known state of the node.
    #[inline(always)]
    pub(super) fn state(&self, id: NodeId) -> NodeState {
        self.states[id.index()]
    }

    #[inline(always)]
    fn set_state(&mut self, id: NodeId, state: NodeState) {
        self.states[id.index()] = state;
    }

    /// Whether the node has neither an entry nor a child, as only the root of an empty tree may.
    #[inline]
    pub(super) fn is_bare(&self, id: NodeId) -> bool {
        let Node { entries, .. } = self.node(id);
        entries.is_empty() && entries.left().is_none() && self.state(id) != NodeState::Stub
    }

    /// The node's CID, as of its last hash.
    #[inline]
    pub(super) fn cid(&self, id: NodeId) -> Cid {
        self.cids[id.index()]
    }

    /// The record's key.
    #[inline(always)]
    pub(super) fn key(&self, record: RecordRef) -> &[u8] {
        key_in(&self.bytes, record)
    }

    /// Prefetches both cache lines of a node: which part of the second is read shows only after a search of the first.
    #[inline(always)]
    fn prefetch_node(&self, id: NodeId) {
        prefetch::value(self.node(id));
    }

    /// Prefetches the record's key.
    #[inline(always)]
    pub(super) fn prefetch_key(&self, record: RecordRef) {
        prefetch::element(&self.bytes, record.0 as usize);
        prefetch::element(&self.bytes, record.0 as usize + prefetch::LINE_BYTES);
    }

    #[inline]
    pub(super) fn key_of(&self, entry: &Entry) -> &[u8] {
        self.key(entry.record)
    }

    #[inline]
    pub(super) fn value_of(&self, entry: &Entry) -> CidRef<'_> {
        self.value_after(entry.record, self.key_of(entry).len())
    }

    /// The CID of the record whose key has this length.
    #[inline(always)]
    pub(super) fn value_after(&self, record: RecordRef, key_len: usize) -> CidRef<'_> {
        // Without reading the key, which may still be in flight from memory.
        let (len, value) =
            self.bytes[record.0 as usize + 2 + key_len..].split_first().expect("was stored");
        CidRef::from_bytes(&value[..usize::from(*len)]).expect("a CID was stored")
    }

    /// The record that was stored last, whose key and value have these lengths.
    #[inline]
    pub(super) fn last_record(&self, key_len: usize, value_len: usize) -> RecordRef {
        RecordRef((self.bytes.len() - (2 + key_len + 1 + value_len)) as u32)
    }

    /// A reference to the record at an index of a node.
    #[inline]
    pub(super) fn record(&self, id: NodeId, index: usize) -> Option<RecordRef> {
        Some(self.node(id).entries.get(index)?.record)
    }

    /// The record at an index of a node.
    #[inline]
    pub(super) fn value(&self, id: NodeId, index: usize) -> Option<CidRef<'_>> {
        self.node(id).entries.get(index).map(|entry| self.value_of(&entry))
    }

    /// The child in a slot.
    #[inline(always)]
    pub(super) fn child(&self, id: NodeId, slot: usize) -> Child {
        self.node(id).child(slot)
    }

    #[inline]
    fn set_child(&mut self, id: NodeId, slot: usize, child: Child) {
        self.node_mut(id).entries.set_child(slot, child);
    }

    /// A node of which only the CID is known.
    #[inline]
    pub(super) fn stub(&mut self, cid: Cid, height: u8) -> NodeId {
        self.add(NodeState::Stub, height, cid)
    }

    /// Whether only the CID of a node is known.
    pub(super) fn is_stub(&self, id: NodeId) -> bool {
        self.state(id) == NodeState::Stub
    }

    /// A changed node without entries.
    #[inline]
    pub(super) fn empty_node(&mut self, height: u8, left: Child) -> NodeId {
        let id = self.add(NodeState::Dirty, height, Cid::from_digest(Codec::DagCbor, &[0; 32]));
        self.node_mut(id).entries.set_child(0, left);
        id
    }

    #[inline]
    fn add(&mut self, state: NodeState, height: u8, cid: Cid) -> NodeId {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.used += 1;
                NodeId::new(self.used - 1)
            }
        };
        if id.index() == self.nodes.len() {
            self.nodes.push(Node { entries: Entries::new(), height });
            self.states.push(state);
            self.cids.push(cid);
        } else {
            let node = &mut self.nodes[id.index()];
            node.entries.clear();
            (node.entries.skip, node.height) = (0, height);
            self.states[id.index()] = state;
            self.cids[id.index()] = cid;
        }
        id
    }

    /// Frees a node's index and memory; its children are unaffected.
    fn drop_node(&mut self, id: NodeId) {
        self.mark_stale(id);
        self.free.push(id);
    }

    /// Marks a node as changed, so that its CID is recomputed.
    #[inline]
    pub(super) fn mark_dirty(&mut self, id: NodeId) {
        self.mark_stale(id);
        self.set_state(id, NodeState::Dirty);
    }

    /// Records the CID of a known node that changes, so that it does not count as new.
    #[inline]
    fn mark_stale(&mut self, id: NodeId) {
        if matches!(self.state(id), NodeState::Known | NodeState::Stub) {
            self.stale.push(self.cid(id));
        }
    }

    /// Stores a key and its record:
    ///
    /// | key length | key | length of the record's CID | CID |
    /// |---|---|---|---|
    /// | 2 bytes | | 1 byte | |
    #[inline]
    pub(super) fn store(&mut self, key: &[u8], value: CidRef<'_>) -> Result<Entry, TreeError> {
        let value = value.as_bytes();
        let Ok(at) = u32::try_from(self.bytes.len()) else {
            return Err(TreeError::of(TreeFault::Limit(Limit::Bytes)));
        };
        self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.push(value.len() as u8);
        self.bytes.extend_from_slice(value);
        Ok(Entry { word: 0, record: RecordRef(at), right: None })
    }

    /// Stores another CID for the key of a record: in its place, or with the key again if it has another length.
    fn store_value(
        &mut self,
        record: RecordRef,
        value: CidRef<'_>,
    ) -> Result<RecordRef, TreeError> {
        let len_at = record.0 as usize + 2 + self.key(record).len();
        let new = value.as_bytes();
        if usize::from(self.bytes[len_at]) != new.len() {
            let key = self.key(record).to_vec();
            return Ok(self.store(&key, value)?.record);
        }
        self.bytes[len_at + 1..][..new.len()].copy_from_slice(new);
        Ok(record)
    }
}

/// The record's key in the bytes of an arena.
#[inline(always)]
fn key_in(bytes: &[u8], record: RecordRef) -> &[u8] {
    let (len, key) = bytes[record.0 as usize..].split_first_chunk().expect("was stored");
    &key[..usize::from(u16::from_le_bytes(*len))]
}

/// The most records that memory is reserved for on the word of a size hint.
const MAX_RESERVED: usize = 1 << 20;
