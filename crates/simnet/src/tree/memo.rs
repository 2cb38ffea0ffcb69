//! The same tree between edits: only the nodes that an edit changes are made again.
//!
//! A node is known by its layer and the two keys it lies between, its bounds; everything in it
//! follows from the records between them. So after an edit at key K the only nodes that are out of
//! date are those with K between their bounds, or K for a bound: one or two in each layer. The rest
//! keep their bytes and names.
//!
//! The records are a sorted list, their heights a byte each beside it: finding the keys of a layer
//! between two bounds is a scan of bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use codec::Cid;

use super::height::{Layer, key_height};
use super::node::{self, NodeEntry};
use crate::block::Block;

/// A record of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path, `collection/rkey`.
    pub key: Arc<str>,
    /// The record's name.
    pub value: Cid,
}

/// A tree that changes.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Sorted by key, none twice.
    entries: Vec<Entry>,
    /// The height of each entry's key, by the same index.
    heights: Vec<Layer>,
    root: Cid,
    /// The nodes of each layer by their left bound; between them no two share a key.
    nodes: Vec<BTreeMap<Bound, MemoNode>>,
    /// Names of nodes that the edits since the last [`Tree::settle`] put out of date.
    stale: BTreeSet<Cid>,
}

/// A key that a node lies behind or before; `None` is the edge of the tree.
type Bound = Option<Arc<str>>;

#[derive(Clone, Debug)]
struct MemoNode {
    right: Bound,
    block: Arc<Block>,
}

/// What a tree became by the edits since it was last settled.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The root's name: what a commit calls `data`.
    pub root: Cid,
    /// The nodes that the tree did not have before, parents before children, left before right.
    pub new_nodes: Vec<Arc<Block>>,
}

impl Tree {
    /// The tree of these records.
    ///
    /// # Panics
    /// If they are not sorted by key, each key once.
    pub fn new(entries: Vec<Entry>) -> Self {
        let keys: Vec<&[u8]> = entries.iter().map(|entry| entry.key.as_bytes()).collect();
        let heights = super::key_heights(&keys);
        assert!(keys.is_sorted_by(|a, b| a < b), "records are sorted by key, each key once");
        let mut tree = Self {
            entries,
            heights,
            root: node::encode(None, &[]).cid,
            nodes: Vec::new(),
            stale: BTreeSet::new(),
        };
        tree.settle();
        tree
    }

    /// The records, sorted by key.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The height of each record's key, in the same order.
    pub fn heights(&self) -> &[Layer] {
        &self.heights
    }

    /// The root's name, as of the last [`Tree::settle`].
    pub fn root(&self) -> Cid {
        self.root
    }

    /// The layer of the root.
    pub fn root_height(&self) -> Layer {
        self.heights.iter().copied().max().unwrap_or(0)
    }

    /// The nodes, as of the last [`Tree::settle`], from the leaves' layer upward.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Block>> {
        self.nodes.iter().flatten().map(|(_, node)| &node.block)
    }

    /// The record at `key`.
    pub fn get(&self, key: &str) -> Option<Cid> {
        self.find(key).ok().map(|at| self.entries[at].value)
    }

    /// Puts `value` at `key`; gives what was there.
    pub fn insert(&mut self, key: &str, value: Cid) -> Option<Cid> {
        self.invalidate(key);
        match self.find(key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].value, value)),
            Err(at) => {
                self.entries.insert(at, Entry { key: key.into(), value });
                self.heights.insert(at, key_height(key));
                None
            }
        }
    }

    /// Takes away the record at `key`; gives what was there.
    pub fn remove(&mut self, key: &str) -> Option<Cid> {
        let at = self.find(key).ok()?;
        self.invalidate(key);
        self.heights.remove(at);
        Some(self.entries.remove(at).value)
    }

    /// Makes the nodes that the edits since the last call ask for.
    pub fn settle(&mut self) -> Settled {
        let root_height = self.root_height();
        let layers = usize::from(root_height) + 1;
        // A node above the root has no bounds and every edit drops it, so none is lost here.
        self.nodes.resize_with(layers, BTreeMap::new);
        let mut made = Vec::new();
        self.root = self.make(0..self.entries.len(), root_height, &mut made);
        made.reverse();
        let stale = std::mem::take(&mut self.stale);
        made.retain(|block| !stale.contains(&block.cid));
        Settled { root: self.root, new_nodes: made }
    }

    /// The nodes that prove what was done to `keys`, each created or deleted, in any order and each
    /// once; see [`super::reference`].
    ///
    /// # Panics
    /// If the tree was edited since it was last settled.
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
            self.path(key, &mut proof);
            for neighbour in [below, Some(above)].into_iter().flatten() {
                if let Some(entry) = self.entries.get(neighbour) {
                    self.path(&entry.key, &mut proof);
                }
            }
        }
        proof
    }

    /// Calls `visit` for the whole tree in streamable order: each node before what is below it, and
    /// its records and children from left to right.
    ///
    /// # Panics
    /// If the tree was edited since it was last settled.
    pub fn walk(&self, visit: &mut dyn FnMut(Visit<'_>)) {
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

    /// Drops the nodes that `key` lies in or at the edge of.
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

    /// Makes the node over `range` if it is not known, children first; gives its name.
    fn make(&mut self, range: Range<usize>, layer: Layer, made: &mut Vec<Arc<Block>>) -> Cid {
        let (left_bound, right) = self.bounds(&range);
        if let Some(known) = self.nodes[usize::from(layer)].get(&left_bound)
            && known.right == right
        {
            return known.block.cid;
        }
        let slots = self.slots(range, layer);
        // From the right, so that the list of what was made, read backwards, is in pre-order.
        let mut children = Vec::with_capacity(slots.len());
        for slot in slots.iter().rev() {
            let child = (!slot.is_empty()).then(|| self.make(slot.clone(), layer - 1, made));
            children.push(child);
        }
        children.reverse();
        let entries: Vec<NodeEntry<'_>> = slots[1..]
            .iter()
            .zip(&children[1..])
            .map(|(slot, child)| {
                let Entry { key, value } = &self.entries[slot.start - 1];
                NodeEntry { key, value, right: *child }
            })
            .collect();
        let block = Arc::new(node::encode(children[0], &entries));
        let cid = block.cid;
        made.push(block.clone());
        self.nodes[usize::from(layer)].insert(left_bound, MemoNode { right, block });
        cid
    }

    /// Where the children of the node over `range` lie: one before its first key and one behind
    /// each, some of them empty. Each but the first starts behind a key of the node.
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

    /// Adds the nodes met looking for `key`.
    fn path(&self, key: &str, met: &mut BTreeMap<Cid, Arc<Block>>) {
        let at = self.find(key);
        let (Ok(place) | Err(place)) = at;
        let mut range = 0..self.entries.len();
        let mut layer = self.root_height();
        loop {
            let block = self.known(&range, layer);
            met.insert(block.cid, block.clone());
            if at.is_ok_and(|at| self.heights[at] == layer) {
                return;
            }
            let is_here = |height: &Layer| *height == layer;
            let before = self.heights[range.start..place].iter().rposition(is_here);
            let behind = self.heights[place..range.end].iter().position(is_here);
            range = before.map_or(range.start, |at| range.start + at + 1)
                ..behind.map_or(range.end, |at| place + at);
            if range.is_empty() {
                return;
            }
            layer -= 1;
        }
    }

    fn known(&self, range: &Range<usize>, layer: Layer) -> &Arc<Block> {
        let (left, right) = self.bounds(range);
        let node = &self.nodes[usize::from(layer)].get(&left).expect("a settled tree");
        assert_eq!(node.right, right, "a settled tree");
        &node.block
    }

    fn walk_node(&self, range: Range<usize>, layer: Layer, visit: &mut dyn FnMut(Visit<'_>)) {
        visit(Visit::Node(self.known(&range, layer)));
        for (index, slot) in self.slots(range, layer).into_iter().enumerate() {
            if index > 0 {
                visit(Visit::Record(&self.entries[slot.start - 1]));
            }
            if !slot.is_empty() {
                self.walk_node(slot, layer - 1, visit);
            }
        }
    }
}

/// What a walk over a tree meets.
#[derive(Clone, Copy, Debug)]
pub enum Visit<'t> {
    /// A node.
    Node(&'t Arc<Block>),
    /// A record.
    Record(&'t Entry),
}
