//! Merkle search trees.
//!
//! A tree is a function of its records: a key's height comes from its hash, every key is in the
//! layer of its height, a child is one layer below its parent, and the records between two neighbouring
//! keys of a node, or before its first, form the child there.
//!
//! ```text
//! layer 2             [ m ]
//!                    /     \
//! layer 1      [ d   h ]   [ ]            an empty node above a deeper key
//!             /    |    \     \
//! layer 0  [a b] [e g] [k l]  [q]
//! ```
//!
//! [`mod@reference`] is a direct transcription of that definition, the reference for every other
//! implementation. [`Tree`] builds the same nodes and keeps them between edits: an edit invalidates only the
//! nodes it changes. A node is identified by its layer and its bounds, the two adjacent keys; its
//! contents are a function of the records between them. An edit at key K therefore invalidates only nodes
//! with K between their bounds or as a bound: one or two per layer.
//!
//! Records are a sorted list with a parallel list of heights, one byte per record: finding the keys of a
//! layer between two bounds is a scan of bytes. The bytes of a node are:
//!
//! ```text
//! node  := {"e": [entry, …], "l": link or null}
//! entry := {"k": rest of the key, "p": bytes shared with the previous key, "t": link or null, "v": link}
//! ```
//!
//! Source: the repository specification, "MST Structure".

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

pub use atproto::mst::reference;
use codec::Cid;
use kernels::sha256::{self, Digest};

use crate::block::{Block, BlockWriter};

#[cfg(test)]
mod tests;

/// A record of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path, `collection/rkey`.
    pub key: Arc<str>,
    /// The CID of the record.
    pub value: Cid,
}

/// A tree that can be edited.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Sorted by key, none twice.
    entries: Vec<TreeEntry>,
    /// The heights of the entries' keys, by the same index.
    heights: Vec<Layer>,
    root: Cid,
    /// The nodes by layer and left bound; between them no two share a key.
    nodes: Vec<BTreeMap<Bound, CachedNode>>,
    /// CIDs of nodes invalidated since the last [`Tree::rehash`].
    stale: BTreeSet<Cid>,
}

/// A key before or after a node; `None` is the edge of the tree.
type Bound = Option<Arc<str>>;

#[derive(Clone, Debug)]
struct CachedNode {
    right: Bound,
    block: Arc<Block>,
}

/// The result of [`Tree::rehash`].
#[derive(Clone, Debug)]
pub struct RehashedTree {
    /// The CID of the root: the field `data` of a commit.
    pub root: Cid,
    /// The nodes that the tree did not have before, parents before children, left before right.
    pub new_nodes: Vec<Arc<Block>>,
}

impl Tree {
    /// The tree of these records.
    ///
    /// # Panics
    /// If they are not sorted by key without duplicates.
    pub fn new(entries: Vec<TreeEntry>) -> Self {
        let keys: Vec<&[u8]> = entries.iter().map(|entry| entry.key.as_bytes()).collect();
        let heights = key_heights(&keys);
        assert!(keys.is_sorted_by(|a, b| a < b), "records are sorted by key, each key once");
        let mut tree = Self {
            entries,
            heights,
            root: encode_node(None, &[]).cid,
            nodes: Vec::new(),
            stale: BTreeSet::new(),
        };
        tree.rehash();
        tree
    }

    /// The records, sorted by key.
    pub fn entries(&self) -> &[TreeEntry] {
        &self.entries
    }

    /// The heights of the records' keys, in the same order.
    pub fn heights(&self) -> &[Layer] {
        &self.heights
    }

    /// The CID of the root, as of the last [`Tree::rehash`].
    pub fn root(&self) -> Cid {
        self.root
    }

    /// The layer of the root.
    pub fn root_height(&self) -> Layer {
        self.heights.iter().copied().max().unwrap_or(0)
    }

    /// The nodes, as of the last [`Tree::rehash`], from the leaves' layer upward.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Block>> {
        self.nodes.iter().flatten().map(|(_, node)| &node.block)
    }

    /// The record at `key`.
    pub fn get(&self, key: &str) -> Option<Cid> {
        self.find(key).ok().map(|at| self.entries[at].value)
    }

    /// Sets the record at `key`; returns the previous one.
    pub fn insert(&mut self, key: &str, value: Cid) -> Option<Cid> {
        self.invalidate(key);
        match self.find(key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].value, value)),
            Err(at) => {
                self.entries.insert(at, TreeEntry { key: key.into(), value });
                self.heights.insert(at, key_height(key));
                None
            }
        }
    }

    /// Removes the record at `key`; returns it.
    pub fn remove(&mut self, key: &str) -> Option<Cid> {
        let at = self.find(key).ok()?;
        self.invalidate(key);
        self.heights.remove(at);
        Some(self.entries.remove(at).value)
    }

    /// Encodes and hashes the nodes invalidated since the last call.
    pub fn rehash(&mut self) -> RehashedTree {
        let root_height = self.root_height();
        let layers = usize::from(root_height) + 1;
        // A node above the root has no bounds and every edit drops it, so no valid node is lost here.
        self.nodes.resize_with(layers, BTreeMap::new);
        let mut built = Vec::new();
        self.root = self.build(0..self.entries.len(), root_height, &mut built);
        built.reverse();
        let stale = std::mem::take(&mut self.stale);
        built.retain(|block| !stale.contains(&block.cid));
        RehashedTree { root: self.root, new_nodes: built }
    }

    /// The covering proof of `keys`, all created or deleted, without duplicate nodes; see
    /// `atproto::mst::reference`.
    ///
    /// # Panics
    /// If the tree was edited since the last [`Tree::rehash`].
    pub fn covering_proof<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k str>,
    ) -> BTreeMap<Cid, Arc<Block>> {
        let mut proof = BTreeMap::new();
        for key in keys {
            let (below, above) = match self.find(key) {
                Ok(at) => (at.checked_sub(1), at + 1),
                Err(at) => (at.checked_sub(1), at),
            };
            let mut add = |block: &Arc<Block>| drop(proof.insert(block.cid, block.clone()));
            self.path(key, &mut add);
            for neighbour in [below, Some(above)].into_iter().flatten() {
                if let Some(entry) = self.entries.get(neighbour) {
                    self.path(&entry.key, &mut add);
                }
            }
        }
        proof
    }

    /// The nodes on the search path of `key`, from the root down.
    ///
    /// # Panics
    /// If the tree was edited since the last [`Tree::rehash`].
    pub fn search_path(&self, key: &str) -> Vec<Arc<Block>> {
        let mut path = Vec::new();
        self.path(key, &mut |block| path.push(block.clone()));
        path
    }

    /// Calls `visit` for the whole tree in streamable order: every node before its records and children,
    /// which follow from left to right.
    ///
    /// # Panics
    /// If the tree was edited since the last [`Tree::rehash`].
    pub fn walk(&self, visit: &mut dyn FnMut(TreeItem<'_>)) {
        self.walk_node(0..self.entries.len(), self.root_height(), visit);
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| (*entry.key).cmp(key))
    }

    /// The bounds of the node that holds exactly the entries of `range`.
    fn bounds(&self, range: &Range<usize>) -> (Bound, Bound) {
        let left = range.start.checked_sub(1).map(|at| self.entries[at].key.clone());
        let right = self.entries.get(range.end).map(|entry| entry.key.clone());
        (left, right)
    }

    /// Drops the nodes whose bounds include `key`.
    fn invalidate(&mut self, key: &str) {
        for layer in &mut self.nodes {
            let key: Bound = Some(key.into());
            let before = layer.range(..key.clone()).next_back();
            let before = before.filter(|(_, node)| node.right.is_none() || node.right >= key);
            let before = before.map(|(left, _)| left.clone());
            for left in [before, Some(key)].into_iter().flatten() {
                self.stale.extend(layer.remove(&left).map(|node| node.block.cid));
            }
        }
    }

    /// Builds the node over `range` unless it is cached, children first; returns its CID.
    fn build(&mut self, range: Range<usize>, layer: Layer, built: &mut Vec<Arc<Block>>) -> Cid {
        let (left_bound, right) = self.bounds(&range);
        if let Some(known) = self.nodes[usize::from(layer)].get(&left_bound)
            && known.right == right
        {
            return known.block.cid;
        }
        let slots = self.slots(range, layer);
        // From the right, so that `built` reversed is in pre-order.
        let mut children = Vec::with_capacity(slots.len());
        for slot in slots.iter().rev() {
            let child = (!slot.is_empty()).then(|| self.build(slot.clone(), layer - 1, built));
            children.push(child);
        }
        children.reverse();
        let entries: Vec<NodeEntry<'_>> = slots[1..]
            .iter()
            .zip(&children[1..])
            .map(|(slot, child)| {
                let TreeEntry { key, value } = &self.entries[slot.start - 1];
                NodeEntry { key, value, right: *child }
            })
            .collect();
        let block = Arc::new(encode_node(children[0], &entries));
        let cid = block.cid;
        built.push(block.clone());
        self.nodes[usize::from(layer)].insert(left_bound, CachedNode { right, block });
        cid
    }

    /// The ranges of the children of the node over `range`: one before its first key and one after every
    /// key; some are empty.
    fn slots(&self, range: Range<usize>, layer: Layer) -> Vec<Range<usize>> {
        let mut slots = Vec::new();
        let mut start = range.start;
        for at in range.clone() {
            if self.heights[at] == layer {
                slots.push(start..at);
                start = at + 1;
            }
        }
        slots.push(start..range.end);
        slots
    }

    /// Calls `visit` for the nodes on the search path of `key`, from the root down.
    fn path(&self, key: &str, visit: &mut impl FnMut(&Arc<Block>)) {
        let at = self.find(key);
        let (Ok(split) | Err(split)) = at;
        let mut range = 0..self.entries.len();
        let mut layer = self.root_height();
        loop {
            visit(self.known(&range, layer));
            if at.is_ok_and(|at| self.heights[at] == layer) {
                return;
            }
            let is_here = |height: &Layer| *height == layer;
            let before = self.heights[range.start..split].iter().rposition(is_here);
            let after = self.heights[split..range.end].iter().position(is_here);
            range = before.map_or(range.start, |at| range.start + at + 1)
                ..after.map_or(range.end, |at| split + at);
            if range.is_empty() {
                return;
            }
            layer -= 1;
        }
    }

    fn known(&self, range: &Range<usize>, layer: Layer) -> &Arc<Block> {
        let (left, right) = self.bounds(range);
        let node = &self.nodes[usize::from(layer)].get(&left).expect("a rehashed tree");
        assert_eq!(node.right, right, "a rehashed tree");
        &node.block
    }

    fn walk_node(&self, range: Range<usize>, layer: Layer, visit: &mut dyn FnMut(TreeItem<'_>)) {
        visit(TreeItem::Node(self.known(&range, layer)));
        for (index, slot) in self.slots(range, layer).into_iter().enumerate() {
            if index > 0 {
                visit(TreeItem::Record(&self.entries[slot.start - 1]));
            }
            if !slot.is_empty() {
                self.walk_node(slot, layer - 1, visit);
            }
        }
    }
}

/// A node or record visited by [`Tree::walk`].
#[derive(Clone, Copy, Debug)]
pub enum TreeItem<'t> {
    /// A node.
    Node(&'t Arc<Block>),
    /// A record.
    Record(&'t TreeEntry),
}

/// A layer of a tree; the leaves are in layer 0.
pub type Layer = u8;

/// The layer of `key`: half of the leading zero bits of its SHA-256, rounded down.
///
/// ```
/// assert_eq!(wireproof_simnet::tree::key_height("2653ae71"), 0);
/// assert_eq!(wireproof_simnet::tree::key_height("app.bsky.feed.post/9adeb165882c"), 8);
/// ```
pub fn key_height(key: &str) -> Layer {
    height_of(&sha256::digest(key.as_bytes()))
}

/// The layers of the keys, which are hashed in one batch.
pub fn key_heights(keys: &[&[u8]]) -> Vec<Layer> {
    sha256::digest_many(keys).iter().map(height_of).collect()
}

fn height_of(digest: &Digest) -> Layer {
    let leading_zeros = digest
        .iter()
        .position(|byte| *byte != 0)
        .map_or(256, |at| 8 * at as u32 + digest[at].leading_zeros());
    (leading_zeros / 2) as Layer
}

/// A key of a node with its record and the child to its right.
#[derive(Clone, Copy, Debug)]
struct NodeEntry<'a> {
    key: &'a str,
    value: &'a Cid,
    right: Option<Cid>,
}

/// Encodes the node with this child before its first key.
fn encode_node(left: Option<Cid>, entries: &[NodeEntry<'_>]) -> Block {
    let mut out = BlockWriter::new();
    out.map(2).text("e").array(entries.len());
    let mut previous = "";
    for entry in entries {
        let shared = shared_prefix_len(previous, entry.key);
        out.map(4).text("k").bytes(&entry.key.as_bytes()[shared..]);
        out.text("p").integer(shared as i64);
        out.text("t").link_or_null(entry.right.as_ref());
        out.text("v").link(entry.value.as_cid_ref());
        previous = entry.key;
    }
    out.text("l").link_or_null(left.as_ref());
    out.into_block()
}

/// The length of the common prefix of two keys in bytes.
pub(crate) fn shared_prefix_len(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}
