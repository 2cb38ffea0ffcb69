//! The memory of trees: nodes that know each other by number.
//!
//! A node is a stub (only its name is known), loaded or changed. Names are computed when someone asks
//! ([`Arena::seal`]), for all changed nodes of a layer together. What is inside a node:
//!
//! ```text
//! bytes    … 32 app.bsky.feed.post/3l6oveex3ii2l 36 ‹CID› 32 app.bsky.feed.post/3l6oveex3kk2m …
//! entry    word: the eight bytes of the key behind the node's first `skip`, which all its keys share
//! ```
//!
//! so that nearly every comparison is one of two words that lie beside each other. Nothing here hashes
//! a key: heights are given, or claimed by the place of a loaded node and proved together
//! ([`Arena::prove`]) before anyone is told what follows from them.

mod build;
mod edit;
mod entries;
mod find;
mod index;
mod load;
mod seal;

use std::num::NonZeroU32;

use codec::cid::Codec;
use codec::{Cid, CidRef};
use kernels::prefetch;

use super::node::KeyBuffer;
use super::{Limit, TreeError, TreeFault};

pub(super) use build::Growth;
pub(super) use edit::Path;
pub(super) use entries::{Entries, Entry};
pub(super) use find::{Place, is_less, shared_len};
pub(super) use index::Index;
pub(super) use load::{Between, Claims};

/// A node's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(NonZeroU32);

impl NodeId {
    fn new(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("memory ends before 2^32 nodes of 128 bytes"))
    }

    #[inline(always)]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The node between two neighbouring keys, if there are keys between them.
pub(super) type Child = Option<NodeId>;

/// Where a record stands in the arena's bytes: see [`Arena::store`].
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordRef(u32);

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its name.
    Stub,
    /// Its name and content, and others know it too: it was loaded or handed out.
    Known,
    /// Its name and content; nobody was told yet.
    New,
    /// Its content; its name is out of date.
    Dirty,
}

/// A node, in two lines of the cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Node {
    /// In a stub there are none.
    pub(super) entries: Entries,
    pub(super) height: u8,
    pub(super) state: State,
}

const _: () = assert!(size_of::<Node>() == 128);

impl Node {
    /// The child in a slot: slot 0 is before the first key, slot `i` behind key `i - 1`.
    #[inline(always)]
    pub(super) fn child(&self, slot: usize) -> Child {
        self.entries.child(slot)
    }

    /// Whether the node has neither an entry nor a child: only the root of an empty tree may be so.
    #[inline]
    pub(super) fn is_bare(&self) -> bool {
        self.entries.is_empty() && self.entries.left().is_none() && self.state != State::Stub
    }
}

/// The memory of one tree, or of many.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena {
    /// The first `used` are in use, or `free`; those behind wait with their memory to be used again.
    nodes: Vec<Node>,
    used: usize,
    free: Vec<NodeId>,
    /// The name of each node, by the same index.
    cids: Vec<Cid>,
    /// Keys, each followed by the CID of its record.
    bytes: Vec<u8>,
    /// Names of nodes that were known and then changed or dropped.
    stale: Vec<Cid>,
    /// Lent to whoever reads a node.
    key: Option<Box<KeyBuffer>>,
    claims: Claims,
    /// Whether the claims are left to be proved by who holds the arena.
    proves_later: bool,
    sealing: seal::Scratch,
}

impl Arena {
    /// An arena whose claims are proved by who holds it, for all its trees together.
    pub(super) fn proving_later() -> Self {
        Self { proves_later: true, ..Self::default() }
    }

    /// What loaded nodes claim and nobody has proved.
    pub(super) fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Makes room for a tree of so many records, as they are on average.
    pub(super) fn reserve(&mut self, records: usize) {
        let records = records.min(MAX_RESERVED);
        self.nodes.reserve(records / 3);
        self.cids.reserve(records / 3);
        self.bytes.reserve(records * 80);
    }

    /// How many bytes keys and values take.
    pub(super) fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets all trees and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.free.clear();
        self.bytes.clear();
        self.stale.clear();
        self.claims.clear();
    }

    #[inline(always)]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    #[inline(always)]
    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// The node's name, as of its last seal.
    #[inline]
    pub(super) fn cid(&self, id: NodeId) -> Cid {
        self.cids[id.index()]
    }

    /// The record's key.
    #[inline(always)]
    pub(super) fn key(&self, record: RecordRef) -> &[u8] {
        key_in(&self.bytes, record)
    }

    /// Asks for the memory of the record's key.
    #[inline(always)]
    fn ask_for(&self, record: RecordRef) {
        prefetch::element(&self.bytes, record.0 as usize);
        prefetch::element(&self.bytes, record.0 as usize + prefetch::LINE_BYTES);
    }

    #[inline]
    pub(super) fn key_of(&self, entry: &Entry) -> &[u8] {
        self.key(entry.record)
    }

    #[inline]
    pub(super) fn value_of(&self, entry: &Entry) -> CidRef<'_> {
        self.value_behind(entry.record, self.key_of(entry).len())
    }

    /// The CID of the record whose key has this length.
    #[inline(always)]
    pub(super) fn value_behind(&self, record: RecordRef, key_len: usize) -> CidRef<'_> {
        // Found without reading the key again, which may still be on its way.
        let (len, value) =
            self.bytes[record.0 as usize + 2 + key_len..].split_first().expect("was stored");
        CidRef::from_bytes(&value[..usize::from(*len)]).expect("a CID was stored")
    }

    /// Where the record at an index of a node stands.
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

    /// A node that only has a name.
    #[inline]
    pub(super) fn stub(&mut self, cid: Cid, height: u8) -> NodeId {
        self.add(State::Stub, height, cid)
    }

    /// A changed node without entries.
    #[inline]
    pub(super) fn empty_node(&mut self, height: u8, left: Child) -> NodeId {
        let id = self.add(State::Dirty, height, Cid::from_digest(Codec::DagCbor, &[0; 32]));
        self.node_mut(id).entries.set_child(0, left);
        id
    }

    #[inline]
    fn add(&mut self, state: State, height: u8, cid: Cid) -> NodeId {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.used += 1;
                NodeId::new(self.used - 1)
            }
        };
        if id.index() == self.nodes.len() {
            self.nodes.push(Node { entries: Entries::new(), height, state });
            self.cids.push(cid);
        } else {
            let node = &mut self.nodes[id.index()];
            node.entries.clear();
            (node.entries.skip, node.height, node.state) = (0, height, state);
            self.cids[id.index()] = cid;
        }
        id
    }

    /// Gives a node's number and memory back. Its children are not touched.
    fn drop_node(&mut self, id: NodeId) {
        self.outdate(id);
        self.free.push(id);
    }

    /// Marks a node as changed.
    #[inline]
    pub(super) fn touch(&mut self, id: NodeId) {
        self.outdate(id);
        self.node_mut(id).state = State::Dirty;
    }

    /// Notes that others know the node as it was.
    #[inline]
    fn outdate(&mut self, id: NodeId) {
        if matches!(self.node(id).state, State::Known | State::Stub) {
            self.stale.push(self.cid(id));
        }
    }

    /// Keeps a key and its record:
    ///
    /// | key length | key | length of the record's CID | CID |
    /// |---|---|---|---|
    /// | 2 bytes | | 1 byte | |
    ///
    /// # Errors
    /// If that would take more than 4 GiB in all.
    #[inline]
    pub(super) fn store(&mut self, key: &[u8], value: CidRef<'_>) -> Result<Entry, TreeError> {
        let value = value.as_bytes();
        let at = self.bytes.len();
        if at + 2 + key.len() + 1 + value.len() > u32::MAX as usize {
            return Err(TreeError::of(TreeFault::Limit(Limit::Bytes)));
        }
        self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.push(value.len() as u8);
        self.bytes.extend_from_slice(value);
        Ok(Entry { word: 0, record: RecordRef(at as u32), right: None })
    }
}

/// The record's key in the bytes of an arena.
#[inline(always)]
fn key_in(bytes: &[u8], record: RecordRef) -> &[u8] {
    let (len, key) = bytes[record.0 as usize..].split_first_chunk().expect("was stored");
    &key[..usize::from(u16::from_le_bytes(*len))]
}

/// For how many records room is made at most because someone says that they will come.
const MAX_RESERVED: usize = 1 << 20;
