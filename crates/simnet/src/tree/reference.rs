//! The tree of a set of records, as plainly as the specification says it.
//!
//! ```text
//! build(items, layer):
//!     left, entries = [], []
//!     for (key, value) in items:
//!         if height(key) == layer: entries.append([key, value, []])
//!         else: append to the last entry's right list, or to left if there is none
//!     child(list) = build(list, layer - 1), or null if the list is empty
//!     node = {e: [{k: …, p: …, t: child(right), v: value} …], l: child(left)}
//!
//! proof(keys) = the union over each key K that was created or deleted, in the tree after, of
//!     the nodes met looking for K,
//!     the nodes met looking for the greatest key below K, and
//!     the nodes met looking for the least key above K
//! ```

use std::collections::{BTreeMap, BTreeSet};

use codec::Cid;

use super::height::{Layer, key_height};
use super::node::{self, NodeEntry};
use crate::block::Block;

/// A whole tree, with nothing kept but what it is made of.
#[derive(Clone, Debug)]
pub struct Built {
    root: Node,
}

#[derive(Clone, Debug)]
struct Node {
    block: Block,
    left: Option<Box<Node>>,
    /// Each key with the child to the right of it.
    entries: Vec<(String, Option<Box<Node>>)>,
}

type Item<'i> = (&'i str, Cid);

/// Builds the tree of `records`, which are sorted by key, none twice.
pub fn build(records: &[(&str, Cid)]) -> Built {
    let root_layer = records.iter().map(|(key, _)| key_height(key)).max().unwrap_or(0);
    Built { root: build_node(records, root_layer) }
}

fn build_node(items: &[Item<'_>], layer: Layer) -> Node {
    let is_here = |(key, _): &Item<'_>| key_height(key) == layer;
    let left_len = items.iter().position(is_here).unwrap_or(items.len());
    let left = build_child(&items[..left_len], layer);
    let mut here: Vec<(Item<'_>, Option<Box<Node>>)> = Vec::new();
    for group in items[left_len..].chunk_by(|_, next| !is_here(next)) {
        here.push((group[0], build_child(&group[1..], layer)));
    }
    let encoded: Vec<NodeEntry<'_>> = here
        .iter()
        .map(|((key, value), right)| NodeEntry { key, value, right: cid_of(right.as_deref()) })
        .collect();
    let block = node::encode(cid_of(left.as_deref()), &encoded);
    let entries = here.into_iter().map(|((key, _), right)| (key.to_owned(), right)).collect();
    Node { block, left, entries }
}

fn build_child(items: &[Item<'_>], layer: Layer) -> Option<Box<Node>> {
    if items.is_empty() {
        return None;
    }
    Some(Box::new(build_node(items, layer - 1)))
}

fn cid_of(node: Option<&Node>) -> Option<Cid> {
    node.map(|node| node.block.cid)
}

impl Built {
    /// The root's name: what a commit calls `data`.
    pub fn root(&self) -> Cid {
        self.root.block.cid
    }

    /// All nodes by name.
    pub fn nodes(&self) -> BTreeMap<Cid, &Block> {
        let mut nodes = BTreeMap::new();
        self.root.collect(&mut nodes);
        nodes
    }

    /// The names of the nodes that prove what was done to `keys`, each created or deleted, where
    /// this is the tree after.
    pub fn covering_proof<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> BTreeSet<Cid> {
        let all = self.root.keys();
        let mut proof = BTreeSet::new();
        for key in keys {
            let below = all.iter().rfind(|other| **other < key);
            let above = all.iter().find(|other| **other > key);
            for target in [Some(&key), below, above].into_iter().flatten() {
                self.root.path(target, &mut proof);
            }
        }
        proof
    }
}

impl Node {
    fn collect<'n>(&'n self, nodes: &mut BTreeMap<Cid, &'n Block>) {
        nodes.insert(self.block.cid, &self.block);
        let rights = self.entries.iter().map(|(_, right)| right);
        rights.chain([&self.left]).flatten().for_each(|child| child.collect(nodes));
    }

    fn keys(&self) -> Vec<&str> {
        let mut keys = self.left.as_ref().map_or(Vec::new(), |left| left.keys());
        for (key, right) in &self.entries {
            keys.push(key);
            keys.extend(right.iter().flat_map(|right| right.keys()));
        }
        keys
    }

    /// Adds the nodes met looking for `key` to `met`.
    fn path(&self, key: &str, met: &mut BTreeSet<Cid>) {
        met.insert(self.block.cid);
        let child = match self.entries.iter().rfind(|(other, _)| other.as_str() <= key) {
            Some((other, _)) if other == key => return,
            Some((_, right)) => right,
            None => &self.left,
        };
        if let Some(child) = child {
            child.path(key, met);
        }
    }
}
