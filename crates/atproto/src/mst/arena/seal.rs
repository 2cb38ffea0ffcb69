//! Giving changed nodes their names: layer by layer, the nodes of a layer hashed together.

use std::collections::HashSet;

use codec::Cid;
use codec::cid::Codec;
use kernels::sha256::{self, Digest};

use super::{Arena, Node, NodeId, State};
use crate::mst::node::Writer;

/// What sealing needs and keeps between calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// The changed nodes of each layer.
    layers: Vec<Vec<NodeId>>,
    stack: Vec<NodeId>,
    /// The blocks of some nodes, one behind the other, and where each ends.
    blocks: Vec<u8>,
    ends: Vec<usize>,
    digests: Vec<Digest>,
}

impl Arena {
    /// Names all changed nodes below and at these roots.
    pub(in crate::mst) fn seal(&mut self, roots: impl IntoIterator<Item = NodeId>) {
        let mut scratch = std::mem::take(&mut self.sealing);
        scratch.stack.extend(roots);
        self.collect_changed(&mut scratch);
        for layer in 0..scratch.layers.len() {
            self.seal_layer(layer, &mut scratch);
        }
        self.sealing = scratch;
    }

    /// Takes note of a new node that is complete, in the order of a tree that grows: children before
    /// parents.
    #[inline]
    pub(super) fn is_closed(&mut self, id: NodeId, height: u8) {
        let (layers, layer) = (&mut self.sealing.layers, usize::from(height));
        if layers.len() <= layer {
            layers.resize_with(layer + 1, Vec::new);
        }
        layers[layer].push(id);
    }

    /// Names the complete nodes of the lowest layers, as far up as there are `enough` of them in each.
    pub(in crate::mst) fn seal_closed(&mut self, enough: usize) {
        let mut scratch = std::mem::take(&mut self.sealing);
        for layer in 0..scratch.layers.len() {
            match scratch.layers[layer].len() {
                0 => {}
                // Those above may have one of these below them.
                few if few < enough => break,
                _ => self.seal_layer(layer, &mut scratch),
            }
        }
        self.sealing = scratch;
    }

    /// Leaves the complete nodes that have no name yet to whoever asks for it.
    pub(in crate::mst) fn forget_closed(&mut self) {
        self.sealing.layers.iter_mut().for_each(Vec::clear);
    }

    fn seal_layer(&mut self, layer: usize, scratch: &mut Scratch) {
        let mut nodes = std::mem::take(&mut scratch.layers[layer]);
        // Not all at once: blocks that were just written are hashed out of the cache.
        for some in nodes.chunks(HASHED_TOGETHER) {
            self.seal_some(some, scratch);
        }
        nodes.clear();
        scratch.layers[layer] = nodes;
    }

    fn collect_changed(&self, Scratch { layers, stack, .. }: &mut Scratch) {
        while let Some(id) = stack.pop() {
            let node = self.node(id);
            if node.state != State::Dirty {
                continue;
            }
            let layer = usize::from(node.height);
            if layers.len() <= layer {
                layers.resize_with(layer + 1, Vec::new);
            }
            layers[layer].push(id);
            if layer > 0 {
                stack.extend(node.entries.left());
                stack.extend(node.entries.iter().filter_map(|entry| entry.right));
            }
        }
    }

    fn seal_some(&mut self, nodes: &[NodeId], scratch: &mut Scratch) {
        let Scratch { blocks, ends, digests, .. } = scratch;
        blocks.clear();
        ends.clear();
        for id in nodes {
            self.write(self.node(*id), blocks);
            ends.push(blocks.len());
        }
        let mut rest = &blocks[..];
        let mut start = 0;
        let messages: Vec<&[u8]> = ends
            .iter()
            .map(|end| {
                let (message, behind) = rest.split_at(end - start);
                (rest, start) = (behind, *end);
                message
            })
            .collect();
        digests.resize(nodes.len(), [0; 32]);
        sha256::digest_many_into(&messages, digests);
        for (id, digest) in nodes.iter().zip(digests) {
            self.cids[id.index()] = Cid::from_digest(Codec::DagCbor, digest);
            self.node_mut(*id).state = State::New;
        }
    }

    /// The new nodes of a sealed tree, parents before children; from now on they are known.
    pub(in crate::mst) fn collect_new(&mut self, root: NodeId) -> Vec<(Cid, Vec<u8>)> {
        let stale: HashSet<Cid> = self.stale.drain(..).collect();
        let mut made = Vec::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            let node = self.node(id);
            if node.state != State::New {
                continue;
            }
            if !stale.contains(&self.cid(id)) {
                made.push((self.cid(id), self.block(id)));
            }
            stack.extend(node.entries.iter().rev().filter_map(|entry| entry.right));
            stack.extend(node.entries.left());
            self.node_mut(id).state = State::Known;
        }
        made
    }

    /// The block of a node whose children have names.
    pub(in crate::mst) fn block(&self, id: NodeId) -> Vec<u8> {
        let mut block = Vec::new();
        self.write(self.node(id), &mut block);
        block
    }

    /// Appends the block of a node whose children have names.
    fn write(&self, node: &Node, out: &mut Vec<u8>) {
        let cid_of = |child: super::Child| {
            debug_assert!(
                child.is_none_or(|id| self.node(id).state != State::Dirty),
                "no name yet"
            );
            child.map(|id| &self.cids[id.index()])
        };
        let mut writer = Writer::new(out, node.entries.len());
        let mut before: &[u8] = &[];
        let mut word_before = 0;
        for (index, entry) in node.entries.iter().enumerate() {
            let key = self.key_of(&entry);
            let differing = word_before ^ entry.word;
            let shared = if index == 0 {
                0
            } else if differing != 0 {
                // A key that has ended is zeros in its word, so the lengths count too.
                let shared =
                    usize::from(node.entries.skip) + differing.leading_zeros() as usize / 8;
                shared.min(before.len()).min(key.len())
            } else {
                super::find::shared_len(before, key)
            };
            let value = self.value_behind(entry.record, key.len());
            writer.entry(shared, &key[shared..], value, cid_of(entry.right));
            (before, word_before) = (key, entry.word);
        }
        writer.finish(cid_of(node.entries.left()));
    }
}

/// How many nodes are written before they are hashed. Many fill the lanes, few fit the cache.
const HASHED_TOGETHER: usize = 512;
