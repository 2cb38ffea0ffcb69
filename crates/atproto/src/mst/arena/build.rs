//! Building a tree from increasing keys: each node is written once, when it is complete, and named soon
//! after ([`Arena::seal_closed`]), while its keys are in the cache.
//!
//! ```text
//! open nodes by layer   2  [ m          what comes next goes to the right of all this:
//!                       1      [ p      a key of layer 1 closes the node of layer 0 and makes it
//!                       0        [ q r  the child before itself
//! ```
//!
//! A tree that is there already goes on growing from the nodes at its right edge.

use kernels::sha256::{self, Digest};

use super::load::Between;
use super::{Arena, Entry, NodeId, RecordRef, State};
use crate::mst::MAX_NODE_ENTRIES;
use crate::mst::height::height_of;

/// A tree that grows to the right.
#[derive(Clone, Debug, Default)]
pub(in crate::mst) struct Growth {
    /// By layer, up to the highest key.
    layers: Vec<Layer>,
    last: Option<RecordRef>,
    /// Memory for the hashes of keys.
    digests: Vec<Digest>,
}

/// A layer, and its node that is not yet complete, if there is one. Words of such a node are not set.
#[derive(Clone, Copy, Debug, Default)]
struct Layer {
    open: Option<NodeId>,
    /// The key before all in the node and below it.
    before: Option<RecordRef>,
}

/// A complete node that waits for its parent.
#[derive(Clone, Copy)]
struct Closed {
    id: NodeId,
    /// The key before all in the node and below it.
    before: Option<RecordRef>,
}

impl Growth {
    /// The last key.
    #[inline]
    pub(in crate::mst) fn last(&self) -> Option<RecordRef> {
        self.last
    }
}

impl Arena {
    /// Goes on with a tree that is there. `None` if not all of its right edge is.
    pub(in crate::mst) fn regrow(&mut self, root: NodeId) -> Option<Growth> {
        let edge = self.right_edge(root)?;
        self.seal_beside(&edge);
        let layers = vec![Layer::default(); usize::from(self.node(root).height) + 1];
        let mut growth = Growth { layers, ..Growth::default() };
        for id in edge {
            self.touch(id);
            let node = self.node_mut(id);
            node.entries.set_child(node.entries.len(), None);
            growth.layers[usize::from(node.height)] = Layer { open: Some(id), before: growth.last };
            growth.last = node.entries.last().map(|entry| entry.record).or(growth.last);
        }
        Some(growth)
    }

    /// The last node of each layer, from the root. `None` if not all of them are at hand.
    fn right_edge(&self, root: NodeId) -> Option<Vec<NodeId>> {
        let mut edge = Vec::new();
        let mut next = Some(root);
        while let Some(id) = next {
            let node = self.node(id);
            if node.state == State::Stub {
                return None;
            }
            edge.push(id);
            next = node.child(node.entries.len());
        }
        Some(edge)
    }

    /// Names all changed nodes below these that are not among them. Nodes that close are named without
    /// a look at those below, which must have their names by then: the ones that closed before have,
    /// and these would not.
    fn seal_beside(&mut self, edge: &[NodeId]) {
        let children = |id: &NodeId| {
            let entries = &self.node(*id).entries;
            (0..entries.len()).filter_map(|slot| entries.child(slot)).collect::<Vec<_>>()
        };
        let beside: Vec<NodeId> = edge.iter().flat_map(children).collect();
        self.seal(beside);
    }

    /// How many entries every open node has room for.
    pub(in crate::mst) fn room(&self, growth: &Growth) -> usize {
        let open = growth.layers.iter().filter_map(|layer| layer.open);
        let most = open.map(|id| self.node(id).entries.len()).max().unwrap_or(0);
        MAX_NODE_ENTRIES.saturating_sub(most)
    }

    /// Adds the waiting entries, whose keys are increasing and greater than all so far, and are hashed
    /// together.
    pub(in crate::mst) fn grow_by(&mut self, growth: &mut Growth, waiting: &mut Vec<Entry>) {
        let keys: Vec<&[u8]> = waiting.iter().map(|entry| self.key_of(entry)).collect();
        let mut digests = std::mem::take(&mut growth.digests);
        digests.resize(keys.len().max(digests.len()), [0; 32]);
        sha256::digest_many_into(&keys, &mut digests[..keys.len()]);
        for (entry, digest) in waiting.drain(..).zip(&digests) {
            self.grow(growth, entry, height_of(digest));
        }
        growth.digests = digests;
        self.seal_closed(NAMED_TOGETHER);
    }

    /// Adds an entry of a key that is greater than all so far.
    #[inline]
    fn grow(&mut self, growth: &mut Growth, entry: Entry, height: u8) {
        let layer = usize::from(height);
        if growth.layers.len() <= layer {
            growth.layers.resize(layer + 1, Layer::default());
        }
        let mut below = None;
        for (height, layer) in (0..).zip(&mut growth.layers[..layer]) {
            below = self.close(height, layer, below, Some(entry.record));
        }
        let layer = &mut growth.layers[layer];
        if let Some(below) = below {
            self.attach(height, layer, below);
        }
        let id = self.open(height, layer, growth.last);
        self.node_mut(id).entries.push(entry);
        growth.last = Some(entry.record);
    }

    /// Completes the tree; answers its root.
    pub(in crate::mst) fn finish(&mut self, growth: Growth) -> NodeId {
        let mut below = None;
        for (height, mut layer) in (0..).zip(growth.layers) {
            below = self.close(height, &mut layer, below, None);
        }
        below.map_or_else(|| self.empty_node(0, None), |root| root.id)
    }

    /// Completes the open node of a layer, with the node below as its last child. If none is open,
    /// the node below gets an empty one above it.
    #[inline]
    fn close(
        &mut self,
        height: u8,
        layer: &mut Layer,
        below: Option<Closed>,
        behind: Option<RecordRef>,
    ) -> Option<Closed> {
        if let Some(below) = below {
            self.attach(height, layer, below);
        }
        let id = layer.open.take()?;
        self.skip_shared(id, Between { before: layer.before, behind });
        self.is_closed(id, height);
        Some(Closed { id, before: layer.before })
    }

    /// The open node of the layer, made if there is none: then `before` is the key before it.
    #[inline]
    fn open(&mut self, height: u8, layer: &mut Layer, before: Option<RecordRef>) -> NodeId {
        if let Some(id) = layer.open {
            return id;
        }
        let id = self.empty_node(height, None);
        *layer = Layer { open: Some(id), before };
        id
    }

    /// Puts a child behind the last key.
    #[inline]
    fn attach(&mut self, height: u8, layer: &mut Layer, child: Closed) {
        let id = self.open(height, layer, child.before);
        let entries = &mut self.node_mut(id).entries;
        entries.set_child(entries.len(), Some(child.id));
    }
}

/// How many nodes of a layer are named at a time, at least: enough to fill the lanes. Tests of small
/// trees must get there too.
const NAMED_TOGETHER: usize = if cfg!(test) { 4 } else { 256 };
