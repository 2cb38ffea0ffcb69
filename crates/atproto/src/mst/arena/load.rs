//! Turning stubs into nodes, and proving later that their keys belong where they stand.

use codec::Cid;

use super::{Arena, Entry, NodeId, RecordRef, State};
use crate::mst::node;
use crate::mst::{BlockSource, TreeError, TreeFault, key_height, key_heights};

/// The keys that a node must lie between; `None` is the edge of the tree.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::mst) struct Between {
    pub(super) before: Option<RecordRef>,
    pub(super) behind: Option<RecordRef>,
}

impl Between {
    /// Whether this is a root: any other node lies beside a key of its parent, since roots have keys.
    fn is_whole_tree(self) -> bool {
        self.before.is_none() && self.behind.is_none()
    }

    /// Where these are the bounds within a child, as far as they are known, in `slot` of the node: with
    /// what the node adds to them.
    #[inline]
    pub(super) fn widened(self, node: &super::Node, slot: usize) -> Self {
        let Self { before, behind } = Self::default().narrowed(node, slot);
        Self { before: self.before.or(before), behind: self.behind.or(behind) }
    }

    /// Whether there is a key on both sides.
    #[inline]
    pub(super) fn is_closed(self) -> bool {
        self.before.is_some() && self.behind.is_some()
    }

    /// The bounds of the child in `slot`, where these are the node's.
    #[inline]
    pub(in crate::mst) fn narrowed(self, node: &super::Node, slot: usize) -> Self {
        let before = slot
            .checked_sub(1)
            .map(|before| node.entries.get(before).expect("a slot of the node").record);
        let behind = node.entries.get(slot).map(|entry| entry.record);
        Self { before: before.or(self.before), behind: behind.or(self.behind) }
    }
}

/// What loaded nodes claim and nobody has proved: that their keys have the height of the layer in
/// which they stand.
#[derive(Clone, Debug, Default)]
pub(in crate::mst) struct Claims {
    keys: Vec<RecordRef>,
    loads: Vec<Load>,
}

/// A node that was loaded.
#[derive(Clone, Copy, Debug)]
struct Load {
    cid: Cid,
    id: NodeId,
    height: u8,
    /// How many of the keys are its own, following those of the load before.
    len: usize,
    /// The length of the arena's bytes before it.
    bytes_before: usize,
}

impl Claims {
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.loads.clear();
    }

    /// How many nodes were loaded.
    pub(in crate::mst) fn len(&self) -> usize {
        self.loads.len()
    }

    /// The loads that these heights of all claimed keys refute, by their index.
    pub(in crate::mst) fn refuted<'c>(
        &'c self,
        mut heights: &'c [u8],
    ) -> impl Iterator<Item = (usize, TreeError)> + 'c {
        self.loads.iter().enumerate().filter_map(move |(index, load)| {
            let own = heights.split_off(..load.len).expect("a height for each key");
            let fault = layer_fault(load.height, own)?;
            Some((index, TreeError::at(load.cid, 0, fault)))
        })
    }
}

/// What is wrong with a node of `layer` whose keys have these heights.
#[inline]
fn layer_fault(layer: u8, heights: &[u8]) -> Option<TreeFault> {
    if heights.iter().all(|height| *height == layer) {
        return None;
    }
    let is_low = heights.iter().all(|height| *height == heights[0] && *height < layer);
    Some(if is_low { TreeFault::SkippedLayer } else { TreeFault::Layer })
}

impl Arena {
    /// Loads the node if it is a stub. Its keys are then claimed to have its height.
    ///
    /// # Errors
    /// If the block is missing or no node, or its keys do not lie between the bounds.
    #[inline]
    pub(in crate::mst) fn load<'a>(
        &mut self,
        id: NodeId,
        between: Between,
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        if self.node(id).state != State::Stub {
            return Ok(());
        }
        let cid = self.cid(id);
        let Some(block) = source.block(&cid) else {
            return Err(TreeError::at(cid, 0, TreeFault::Missing));
        };
        let bytes_before = self.bytes.len();
        let place = self.read(id, block).and_then(|()| self.check_place(id, between));
        if let Err(error) = place {
            self.unload(id);
            self.bytes.truncate(bytes_before);
            return Err(error);
        }
        self.claim(id, bytes_before);
        self.skip_shared(id, between);
        self.node_mut(id).state = State::Known;
        Ok(())
    }

    /// Loads the root, whose height is that of its keys.
    ///
    /// # Errors
    /// If the block is missing or no node, or the node is no root.
    pub(in crate::mst) fn load_root<'a>(
        &mut self,
        id: NodeId,
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        let first_key = source.block(&self.cid(id)).and_then(node::first_key);
        self.load_root_at(id, first_key.map_or(0, key_height), source)
    }

    /// Loads the root, given the height of its first key.
    ///
    /// # Errors
    /// As [`Arena::load_root`].
    pub(in crate::mst) fn load_root_at<'a>(
        &mut self,
        id: NodeId,
        height: u8,
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        self.node_mut(id).height = height;
        self.load(id, Between::default(), source)
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

    fn claim(&mut self, id: NodeId, bytes_before: usize) {
        let Self { nodes, claims, cids, .. } = self;
        let node = &nodes[id.index()];
        claims.keys.extend(node.entries.iter().map(|entry| entry.record));
        let (cid, len) = (cids[id.index()], node.entries.len());
        claims.loads.push(Load { cid, id, height: node.height, len, bytes_before });
    }

    /// Makes the node a stub again, and gives its children back.
    #[cold]
    fn unload(&mut self, id: NodeId) {
        let node = self.node_mut(id);
        node.state = State::Stub;
        let mut children: Vec<NodeId> = node.entries.iter().filter_map(|e| e.right).collect();
        children.extend(node.entries.left());
        node.entries.clear();
        self.free.extend(children);
    }

    /// Proves that the keys of all nodes loaded since the last call have the heights of their layers.
    ///
    /// # Errors
    /// If one has not. All these nodes are then stubs again.
    #[inline]
    pub(in crate::mst) fn prove(&mut self) -> Result<(), TreeError> {
        let is_proved = self.claims.loads.is_empty() || self.proves_later;
        if is_proved { Ok(()) } else { self.prove_all() }
    }

    /// Proves the claims if there are enough of them to be worth the while.
    ///
    /// # Errors
    /// As [`Arena::prove`].
    #[inline]
    pub(in crate::mst) fn prove_if_many(&mut self, enough: usize) -> Result<(), TreeError> {
        if self.claims.keys.len() < enough { Ok(()) } else { self.prove() }
    }

    fn prove_all(&mut self) -> Result<(), TreeError> {
        let heights = self.claimed_heights();
        let refuted = self.claims.refuted(&heights).next().map(|(_, error)| error);
        if refuted.is_some() {
            self.unload_unproved();
        }
        self.claims.clear();
        refuted.map_or(Ok(()), Err)
    }

    /// The heights of all keys that nobody has proved, hashed together.
    pub(in crate::mst) fn claimed_heights(&self) -> Vec<u8> {
        let keys: Vec<&[u8]> = self.claims.keys.iter().map(|key| self.key(*key)).collect();
        key_heights(&keys)
    }

    #[cold]
    fn unload_unproved(&mut self) {
        // Children were loaded after their parents.
        while let Some(load) = self.claims.loads.pop() {
            self.unload(load.id);
            self.bytes.truncate(load.bytes_before);
        }
    }

    /// Whether a loaded node may stand between its neighbours.
    fn check_place(&self, id: NodeId, between: Between) -> Result<(), TreeError> {
        let node = self.node(id);
        let refuse = |fault| Err(TreeError::at(self.cid(id), 0, fault));
        let (Some(first), Some(last)) = (node.entries.first(), node.entries.last()) else {
            return match (between.is_whole_tree(), node.entries.left().is_some()) {
                (true, true) => refuse(TreeFault::Untrimmed),
                (false, false) => refuse(TreeFault::EmptyNode),
                (false, true) if node.height == 0 => refuse(TreeFault::Layer),
                _ => Ok(()),
            };
        };
        let has_child =
            node.entries.left().is_some() || node.entries.iter().any(|e| e.right.is_some());
        if node.height == 0 && has_child {
            return refuse(TreeFault::Layer);
        }
        let is_behind = |key| self.key(key) < self.key_of(&first);
        let is_before = |key| self.key_of(&last) < self.key(key);
        if between.before.is_none_or(is_behind) && between.behind.is_none_or(is_before) {
            return Ok(());
        }
        refuse(TreeFault::Order)
    }
}
