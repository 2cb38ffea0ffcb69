//! Computing the CIDs of changed nodes, layer by layer, the nodes of a layer hashed together.

use std::collections::HashSet;

use codec::Cid;
use codec::cid::Codec;
use kernels::prefetch;
use kernels::sha256::{self, Digest};

use super::{Arena, Node, NodeId, NodeState};
use crate::mst::node::Writer;

/// Memory for hashing nodes, kept between calls.
#[derive(Clone, Debug, Default)]
pub(super) struct HashScratch {
    /// The changed nodes by layer.
    layers: Vec<Vec<NodeId>>,
    /// The blocks of a batch of nodes, concatenated, and their ends.
    blocks: Vec<u8>,
    ends: Vec<usize>,
    digests: Vec<Digest>,
}

/// Where the nodes to be written are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nodes {
    /// In the cache: they have just been made.
    Cached,
    Anywhere,
}

impl Arena {
    /// Hashes all changed nodes at and below these roots.
    pub(in crate::mst) fn hash_dirty(&mut self, roots: impl IntoIterator<Item = NodeId>) {
        let mut scratch = std::mem::take(&mut self.hash_scratch);
        self.collect_changed(roots, &mut scratch.layers);
        for layer in 0..scratch.layers.len() {
            self.hash_layer(layer, &mut scratch, Nodes::Anywhere);
        }
        self.hash_scratch = scratch;
    }

    /// Queues a new, complete node for [`hash_closed`](Self::hash_closed); children come before parents.
    #[inline]
    pub(super) fn note_closed(&mut self, id: NodeId, height: u8) {
        push_in_layer(&mut self.hash_scratch.layers, height, id);
    }

    /// Hashes the queued nodes of the lowest layers, as far up as the layers have `min_nodes` of them.
    pub(in crate::mst) fn hash_closed(&mut self, min_nodes: usize) {
        let mut scratch = std::mem::take(&mut self.hash_scratch);
        for layer in 0..scratch.layers.len() {
            match scratch.layers[layer].len() {
                0 => {}
                // Nodes above may have one of these below them.
                few if few < min_nodes => break,
                _ => self.hash_layer(layer, &mut scratch, Nodes::Cached),
            }
        }
        self.hash_scratch = scratch;
    }

    /// Empties the queue; the next [`hash_dirty`](Self::hash_dirty) hashes its nodes.
    pub(in crate::mst) fn forget_closed(&mut self) {
        self.hash_scratch.layers.iter_mut().for_each(Vec::clear);
    }

    fn hash_layer(&mut self, layer: usize, scratch: &mut HashScratch, place: Nodes) {
        let mut nodes = std::mem::take(&mut scratch.layers[layer]);
        // Not all at once: blocks that were just written are hashed out of the cache.
        for batch in nodes.chunks(MAX_HASH_BATCH) {
            self.hash_batch(batch, scratch, place);
        }
        nodes.clear();
        scratch.layers[layer] = nodes;
    }

    /// Finds the changed nodes at and below these roots, from the highest layer down: a node that is found is prefetched,
    /// and read when all nodes of its layer are found.
    fn collect_changed(
        &self,
        roots: impl IntoIterator<Item = NodeId>,
        layers: &mut Vec<Vec<NodeId>>,
    ) {
        let is_changed = |id: &NodeId| self.state(*id) == NodeState::Dirty;
        for root in roots.into_iter().filter(is_changed) {
            push_in_layer(layers, self.node(root).height, root);
        }
        for layer in (1..layers.len()).rev() {
            let (below, above) = layers.split_at_mut(layer);
            for id in &above[0] {
                let entries = &self.node(*id).entries;
                let children = entries.iter().filter_map(|entry| entry.right);
                for child in entries.left().into_iter().chain(children).filter(is_changed) {
                    self.prefetch_node(child);
                    below[layer - 1].push(child);
                }
            }
        }
    }

    fn hash_batch(&mut self, nodes: &[NodeId], scratch: &mut HashScratch, place: Nodes) {
        let HashScratch { blocks, ends, digests, .. } = scratch;
        blocks.clear();
        ends.clear();
        for (at, id) in nodes.iter().enumerate() {
            if place == Nodes::Anywhere {
                self.prefetch_for_write(&nodes[at..]);
            }
            self.write(self.node(*id), blocks);
            ends.push(blocks.len());
        }
        let mut rest = &blocks[..];
        let mut start = 0;
        let messages: Vec<&[u8]> = ends
            .iter()
            .map(|end| {
                let (message, others) = rest.split_at(end - start);
                (rest, start) = (others, *end);
                message
            })
            .collect();
        digests.resize(nodes.len(), [0; 32]);
        sha256::digest_many_into(&messages, digests);
        for (id, digest) in nodes.iter().zip(digests) {
            self.cids[id.index()] = Cid::from_digest(Codec::DagCbor, digest);
            self.set_state(*id, NodeState::New);
        }
    }

    /// Prefetches the memory that writing the nodes after the first of these will read: their keys and the CIDs of their
    /// children are all over the memory of the tree.
    #[inline]
    fn prefetch_for_write(&self, nodes: &[NodeId]) {
        if let Some(id) = nodes.get(2 * PREFETCHED_NODES) {
            prefetch::value(self.node(*id));
        }
        if let Some(id) = nodes.get(PREFETCHED_NODES) {
            let entries = &self.node(*id).entries;
            for entry in entries.iter() {
                self.prefetch_key(entry.record);
                entry.right.iter().for_each(|child| prefetch::element(&self.cids, child.index()));
            }
            entries.left().iter().for_each(|child| prefetch::element(&self.cids, child.index()));
        }
    }

    /// The new nodes of a hashed tree, parents before children; from now on they are known.
    pub(in crate::mst) fn collect_new(&mut self, root: NodeId) -> Vec<(Cid, Vec<u8>)> {
        let stale: HashSet<Cid> = self.stale.drain(..).collect();
        let mut blocks = Vec::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if self.state(id) != NodeState::New {
                continue;
            }
            let node = self.node(id);
            if !stale.contains(&self.cid(id)) {
                blocks.push((self.cid(id), self.block(id)));
            }
            stack.extend(node.entries.iter().rev().filter_map(|entry| entry.right));
            stack.extend(node.entries.left());
            self.set_state(id, NodeState::Known);
        }
        blocks
    }

    /// The block of a node whose children have CIDs.
    pub(in crate::mst) fn block(&self, id: NodeId) -> Vec<u8> {
        let mut block = Vec::new();
        self.write(self.node(id), &mut block);
        block
    }

    /// Appends the block of a node whose children have CIDs.
    fn write(&self, node: &Node, out: &mut Vec<u8>) {
        let cid_of = |child: super::Child| {
            debug_assert!(child.is_none_or(|id| self.state(id) != NodeState::Dirty), "no CID yet");
            child.map(|id| &self.cids[id.index()])
        };
        let mut writer = Writer::new(out, node.entries.len());
        let mut prev: &[u8] = &[];
        let mut prev_word = 0;
        for (index, entry) in node.entries.iter().enumerate() {
            let key = self.key_of(&entry);
            let differing = prev_word ^ entry.word;
            let shared = if index == 0 {
                0
            } else if differing != 0 {
                // A key that has ended has zeros in its word, so the lengths count too.
                let shared =
                    usize::from(node.entries.skip) + differing.leading_zeros() as usize / 8;
                shared.min(prev.len()).min(key.len())
            } else {
                super::find::shared_len(prev, key)
            };
            let value = self.value_after(entry.record, key.len());
            writer.entry(shared, &key[shared..], value, cid_of(entry.right));
            (prev, prev_word) = (key, entry.word);
        }
        writer.finish(cid_of(node.entries.left()));
    }
}

#[inline]
fn push_in_layer(layers: &mut Vec<Vec<NodeId>>, height: u8, id: NodeId) {
    let layer = usize::from(height);
    if layers.len() <= layer {
        layers.resize_with(layer + 1, Vec::new);
    }
    layers[layer].push(id);
}

/// How far ahead of writing a node its keys are prefetched: half as far as the node itself.
const PREFETCHED_NODES: usize = 4;

/// Nodes that are written before they are hashed: enough to fill the hash lanes, few enough for the cache.
const MAX_HASH_BATCH: usize = 512;
