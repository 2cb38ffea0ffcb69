//! Adding entries at the right edge of a tree, in ascending order of their keys. A node is written
//! once, when it is complete, and hashed soon after ([`Arena::hash_closed`]), while its keys are cached.
//!
//! ```text
//! open nodes by layer   2  [ m          the next key goes to the right of all of these:
//!                       1      [ p      a key of layer 1 closes the node of layer 0, which becomes
//!                       0        [ q r  the child before that key
//! ```
//!
//! An existing tree is continued by opening the nodes at its right edge.

use kernels::sha256::{self, Digest};

use super::load::KeyBounds;
use super::{Arena, Entry, NodeId, NodeState, RecordRef};
use crate::mst::MAX_NODE_ENTRIES;
use crate::mst::height::height_of;

/// The right edge of a tree under construction.
#[derive(Clone, Debug, Default)]
pub(in crate::mst) struct RightEdge {
    /// By layer, up to the highest key.
    layers: Vec<OpenLayer>,
    /// The greatest key.
    last: Option<RecordRef>,
    /// Reused memory for the hashes of keys.
    digests: Vec<Digest>,
}

/// A layer, and its incomplete node, if there is one. The words of such a node are not set.
#[derive(Clone, Copy, Debug, Default)]
struct OpenLayer {
    node: Option<NodeId>,
    /// The key before all keys in the node and below it.
    prev: Option<RecordRef>,
}

/// A complete node that is not yet attached to its parent.
#[derive(Clone, Copy)]
struct ClosedNode {
    id: NodeId,
    /// The key before all keys in the node and below it.
    prev: Option<RecordRef>,
}

impl RightEdge {
    /// The greatest key.
    #[inline]
    pub(in crate::mst) fn last(&self) -> Option<RecordRef> {
        self.last
    }
}

impl Arena {
    /// Opens the right edge of a tree for keys from `key` on. `None` if `key` is not greater than all
    /// keys, or a node of the edge is not loaded.
    pub(in crate::mst) fn open_right_edge(
        &mut self,
        root: NodeId,
        key: &[u8],
    ) -> Option<RightEdge> {
        if self.is_bare(root) {
            self.drop_node(root);
            return Some(RightEdge::default());
        }
        let nodes = self.right_edge_nodes(root)?;
        let last = nodes.iter().rev().find_map(|id| self.node(*id).entries.last());
        if last.is_some_and(|last| self.key_of(&last) >= key) {
            return None;
        }
        self.hash_beside(&nodes);
        let layers = vec![OpenLayer::default(); usize::from(self.node(root).height) + 1];
        let mut edge = RightEdge { layers, ..RightEdge::default() };
        for id in nodes {
            self.mark_dirty(id);
            let node = self.node_mut(id);
            node.entries.set_child(node.entries.len(), None);
            edge.layers[usize::from(node.height)] = OpenLayer { node: Some(id), prev: edge.last };
            edge.last = node.entries.last().map(|entry| entry.record).or(edge.last);
        }
        Some(edge)
    }

    /// The last nodes of the layers, from the root down. `None` if one is not loaded.
    fn right_edge_nodes(&self, root: NodeId) -> Option<Vec<NodeId>> {
        let mut nodes = Vec::new();
        let mut next = Some(root);
        while let Some(id) = next {
            if self.state(id) == NodeState::Stub {
                return None;
            }
            let node = self.node(id);
            nodes.push(id);
            next = node.child(node.entries.len());
        }
        Some(nodes)
    }

    /// Hashes all changed nodes below the right edge's nodes that are not on the edge. A closing node is
    /// hashed without visiting its children, which must have their CIDs by then: children that closed
    /// before it have them, these would not.
    fn hash_beside(&mut self, edge: &[NodeId]) {
        let children = |id: &NodeId| {
            let entries = &self.node(*id).entries;
            (0..entries.len()).filter_map(|slot| entries.child(slot)).collect::<Vec<_>>()
        };
        let beside: Vec<NodeId> = edge.iter().flat_map(children).collect();
        self.hash_dirty(beside);
    }

    /// The number of entries that every open node has room for.
    pub(in crate::mst) fn remaining_entries(&self, edge: &RightEdge) -> usize {
        let open = edge.layers.iter().filter_map(|layer| layer.node);
        let most = open.map(|id| self.node(id).entries.len()).max().unwrap_or(0);
        MAX_NODE_ENTRIES.saturating_sub(most)
    }

    /// Adds and drains `entries`, whose keys ascend and are greater than all in the tree. Their keys are
    /// hashed together.
    pub(in crate::mst) fn append_all(&mut self, edge: &mut RightEdge, entries: &mut Vec<Entry>) {
        let keys: Vec<&[u8]> = entries.iter().map(|entry| self.key_of(entry)).collect();
        let mut digests = std::mem::take(&mut edge.digests);
        digests.resize(keys.len().max(digests.len()), [0; 32]);
        sha256::digest_many_into(&keys, &mut digests[..keys.len()]);
        for (entry, digest) in entries.drain(..).zip(&digests) {
            self.append(edge, entry, height_of(digest));
        }
        edge.digests = digests;
        self.hash_closed(MIN_HASH_BATCH);
    }

    /// Adds an entry whose key is greater than all in the tree.
    #[inline]
    fn append(&mut self, edge: &mut RightEdge, entry: Entry, height: u8) {
        let layer = usize::from(height);
        if edge.layers.len() <= layer {
            edge.layers.resize(layer + 1, OpenLayer::default());
        }
        let mut below = None;
        for (height, layer) in (0..).zip(&mut edge.layers[..layer]) {
            below = self.close(height, layer, below, Some(entry.record));
        }
        let layer = &mut edge.layers[layer];
        if let Some(below) = below {
            self.attach(height, layer, below);
        }
        let id = self.open(height, layer, edge.last);
        self.node_mut(id).entries.push(entry);
        edge.last = Some(entry.record);
    }

    /// Closes all open nodes; returns the root.
    pub(in crate::mst) fn close_right_edge(&mut self, edge: RightEdge) -> NodeId {
        let mut below = None;
        for (height, mut layer) in (0..).zip(edge.layers) {
            below = self.close(height, &mut layer, below, None);
        }
        below.map_or_else(|| self.empty_node(0, None), |root| root.id)
    }

    /// Closes the open node of a layer, with the node below as its last child. If none is open, the
    /// node below gets an empty one above it.
    #[inline]
    fn close(
        &mut self,
        height: u8,
        layer: &mut OpenLayer,
        below: Option<ClosedNode>,
        next: Option<RecordRef>,
    ) -> Option<ClosedNode> {
        if let Some(below) = below {
            self.attach(height, layer, below);
        }
        let id = layer.node.take()?;
        self.reset_skip(id, KeyBounds { prev: layer.prev, next });
        self.note_closed(id, height);
        Some(ClosedNode { id, prev: layer.prev })
    }

    /// The open node of the layer, created if there is none: `prev` is then the key before it.
    #[inline]
    fn open(&mut self, height: u8, layer: &mut OpenLayer, prev: Option<RecordRef>) -> NodeId {
        if let Some(id) = layer.node {
            return id;
        }
        let id = self.empty_node(height, None);
        *layer = OpenLayer { node: Some(id), prev };
        id
    }

    /// Makes `child` the last child of the open node.
    #[inline]
    fn attach(&mut self, height: u8, layer: &mut OpenLayer, child: ClosedNode) {
        let id = self.open(height, layer, child.prev);
        let entries = &mut self.node_mut(id).entries;
        entries.set_child(entries.len(), Some(child.id));
    }
}

/// The fewest nodes of a layer that are hashed together: enough to fill the hash lanes.
const MIN_HASH_BATCH: usize = 256;
