//! Loading stubs, and checking later, many at once, that their keys have the height of their layer.

use codec::Cid;

use super::{Arena, Entry, NodeId, NodeState, RecordRef};
use crate::mst::node;
use crate::mst::{BlockSource, TreeError, TreeFault, key_height, key_heights};

/// The keys between which the keys of a node must lie; `None` at the edge of the tree.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::mst) struct KeyBounds {
    pub(super) prev: Option<RecordRef>,
    pub(super) next: Option<RecordRef>,
}

impl KeyBounds {
    /// Whether these are the bounds of a root: any other node is next to a key, since roots have keys.
    fn is_root(self) -> bool {
        self.prev.is_none() && self.next.is_none()
    }

    /// These bounds, with missing ones taken from `slot` of a node farther up.
    #[inline]
    pub(super) fn or_from(self, node: &super::Node, slot: usize) -> Self {
        let Self { prev, next } = Self::default().narrowed(node, slot);
        Self { prev: self.prev.or(prev), next: self.next.or(next) }
    }

    /// Whether there is a key on both sides.
    #[inline]
    pub(super) fn is_complete(self) -> bool {
        self.prev.is_some() && self.next.is_some()
    }

    /// The bounds of the child in `slot`, where these are the node's.
    #[inline]
    pub(in crate::mst) fn narrowed(self, node: &super::Node, slot: usize) -> Self {
        let prev = slot
            .checked_sub(1)
            .map(|index| node.entries.get(index).expect("a slot of the node").record);
        let next = node.entries.get(slot).map(|entry| entry.record);
        Self { prev: prev.or(self.prev), next: next.or(self.next) }
    }
}

/// Keys of loaded nodes that are not yet checked to have the height of their layer.
#[derive(Clone, Debug, Default)]
pub(in crate::mst) struct HeightChecks {
    keys: Vec<RecordRef>,
    nodes: Vec<PendingNode>,
}

/// A loaded node whose keys are not yet checked.
#[derive(Clone, Copy, Debug)]
struct PendingNode {
    cid: Cid,
    id: NodeId,
    height: u8,
    /// The number of its keys, which follow the keys of the node loaded before.
    len: usize,
    /// The length of the arena's bytes before it was loaded.
    bytes_before: usize,
}

impl HeightChecks {
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.nodes.clear();
    }

    /// The number of nodes.
    pub(in crate::mst) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes with a key in the wrong layer, by their index, given the heights of all keys.
    pub(in crate::mst) fn mismatches<'c>(
        &'c self,
        mut heights: &'c [u8],
    ) -> impl Iterator<Item = (usize, TreeError)> + 'c {
        self.nodes.iter().enumerate().filter_map(move |(index, node)| {
            let own = heights.split_off(..node.len).expect("a height for each key");
            let fault = layer_fault(node.height, own)?;
            Some((index, TreeError::at(node.cid, 0, fault)))
        })
    }
}

/// The fault of a node of `layer` whose keys have these heights.
#[inline]
fn layer_fault(layer: u8, heights: &[u8]) -> Option<TreeFault> {
    if heights.iter().all(|height| *height == layer) {
        return None;
    }
    let is_low = heights.iter().all(|height| *height == heights[0] && *height < layer);
    Some(if is_low { TreeFault::SkippedLayer } else { TreeFault::Layer })
}

impl Arena {
    /// Loads the node if it is a stub, and checks all but the heights of its keys.
    #[inline]
    pub(in crate::mst) fn load<'a>(
        &mut self,
        id: NodeId,
        bounds: KeyBounds,
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        if self.state(id) != NodeState::Stub {
            return Ok(());
        }
        let cid = self.cid(id);
        let Some(block) = source.block(&cid) else {
            return Err(TreeError::at(cid, 0, TreeFault::Missing));
        };
        let bytes_before = self.bytes.len();
        let read = self.read(id, block).and_then(|()| self.check_position(id, bounds));
        if let Err(error) = read {
            self.unload(id);
            self.bytes.truncate(bytes_before);
            return Err(error);
        }
        self.defer_height_check(id, bytes_before);
        self.reset_skip(id, bounds);
        self.set_state(id, NodeState::Known);
        Ok(())
    }

    /// Loads the root, whose height is its keys' height.
    pub(in crate::mst) fn load_root<'a>(
        &mut self,
        id: NodeId,
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        let first_key = source.block(&self.cid(id)).and_then(node::first_key);
        self.load_root_at(id, first_key.map_or(0, key_height), source)
    }

    /// Loads the root, given the height of its first key.
    pub(in crate::mst) fn load_root_at<'a>(
        &mut self,
        id: NodeId,
        height: u8,
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        self.node_mut(id).height = height;
        self.load(id, KeyBounds::default(), source)
    }

    /// Reads the block into the stub.
    fn read(&mut self, id: NodeId, block: &[u8]) -> Result<(), TreeError> {
        let (cid, height) = (self.cid(id), self.node(id).height);
        let mut key = self.key.take().unwrap_or_default();
        let mut full = None;
        let parsed = node::scan(block, &mut key, |key, entry| {
            let right = entry.right.map(|cid| self.stub(cid, height.wrapping_sub(1)));
            match self.store(key.as_bytes(), entry.value) {
                Ok(stored) => self.node_mut(id).entries.push(Entry { right, ..stored }),
                Err(error) => full = Some(error),
            }
        });
        self.key = Some(key);
        let parsed = parsed.map_err(|error| TreeError::node(cid, error));
        let left = parsed.map(|node| node.left().map(|cid| self.stub(cid, height.wrapping_sub(1))));
        match (left, full) {
            (Ok(left), None) => self.node_mut(id).entries.set_child(0, left),
            (Ok(_), Some(error)) | (Err(error), _) => return Err(error),
        }
        Ok(())
    }

    fn defer_height_check(&mut self, id: NodeId, bytes_before: usize) {
        let Self { nodes, height_checks, cids, .. } = self;
        let node = &nodes[id.index()];
        height_checks.keys.extend(node.entries.iter().map(|entry| entry.record));
        let (cid, len) = (cids[id.index()], node.entries.len());
        height_checks.nodes.push(PendingNode { cid, id, height: node.height, len, bytes_before });
    }

    /// Makes the node a stub again, and frees its children.
    #[cold]
    fn unload(&mut self, id: NodeId) {
        self.set_state(id, NodeState::Stub);
        let node = self.node_mut(id);
        let mut children: Vec<NodeId> = node.entries.iter().filter_map(|e| e.right).collect();
        children.extend(node.entries.left());
        node.entries.clear();
        self.free.extend(children);
    }

    /// Checks that the keys of all nodes loaded since the last call have the heights of their layers. After
    /// an error all these nodes are stubs again.
    #[inline]
    pub(in crate::mst) fn check_heights(&mut self) -> Result<(), TreeError> {
        let is_done = self.height_checks.nodes.is_empty() || self.defers_checks;
        if is_done { Ok(()) } else { self.check_all_heights() }
    }

    /// Checks the heights if there are enough keys to hash them together.
    #[inline]
    pub(in crate::mst) fn check_heights_if_many(
        &mut self,
        min_keys: usize,
    ) -> Result<(), TreeError> {
        if self.height_checks.keys.len() < min_keys { Ok(()) } else { self.check_heights() }
    }

    fn check_all_heights(&mut self) -> Result<(), TreeError> {
        let heights = self.pending_heights();
        let first = self.height_checks.mismatches(&heights).next().map(|(_, error)| error);
        if first.is_some() {
            self.unload_pending();
        }
        self.height_checks.clear();
        first.map_or(Ok(()), Err)
    }

    /// The heights of all keys that are not yet checked, hashed together.
    pub(in crate::mst) fn pending_heights(&self) -> Vec<u8> {
        let keys: Vec<&[u8]> = self.height_checks.keys.iter().map(|key| self.key(*key)).collect();
        key_heights(&keys)
    }

    #[cold]
    fn unload_pending(&mut self) {
        // Children were loaded after their parents.
        while let Some(node) = self.height_checks.nodes.pop() {
            self.unload(node.id);
            self.bytes.truncate(node.bytes_before);
        }
    }

    /// Checks that a loaded node is allowed at its position in the tree, given its bounds.
    fn check_position(&self, id: NodeId, bounds: KeyBounds) -> Result<(), TreeError> {
        let node = self.node(id);
        let reject = |fault| Err(TreeError::at(self.cid(id), 0, fault));
        let (Some(first), Some(last)) = (node.entries.first(), node.entries.last()) else {
            return match (bounds.is_root(), node.entries.left().is_some()) {
                (true, true) => reject(TreeFault::Untrimmed),
                (false, false) => reject(TreeFault::EmptyNode),
                (false, true) if node.height == 0 => reject(TreeFault::BelowLeaves),
                _ => Ok(()),
            };
        };
        let has_child =
            node.entries.left().is_some() || node.entries.iter().any(|e| e.right.is_some());
        if node.height == 0 && has_child {
            return reject(TreeFault::BelowLeaves);
        }
        let is_before = |prev| self.key(prev) < self.key_of(&first);
        let is_after = |next| self.key_of(&last) < self.key(next);
        if bounds.prev.is_none_or(is_before) && bounds.next.is_none_or(is_after) {
            return Ok(());
        }
        reject(TreeFault::Order)
    }
}
