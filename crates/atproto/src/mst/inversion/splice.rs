//! Undoing operations in the bytes of the nodes, for the commits that are usual.
//!
//! The nodes on the paths of the operations are copied. In the copies entries are cut out and put in, values
//! and digests are overwritten, and two nodes that become neighbors are joined; entries that do not change are
//! not written anew. Then all keys are hashed together, to check their layers, and the changed nodes layer by
//! layer.
//!
//! A commit is usual if its nodes have the [usual shape](crate::node_shape) and the edits need neither a split, nor a
//! new node, nor another root. This file gives no result for other commits, and for commits with a fault: the arena
//! inverts them, and defines the result of all. Operations are checked and undone in the same order as there, and
//! read the same nodes.

use std::cmp::Reverse;

use codec::Cid;
use kernels::sha256::{self, Digest};

use super::nodes::{Child, NO_LINK, NodeId, Nodes};
use super::{Inversion, RecordOp, check_ops, push_known_keys};
use crate::event::Action;
use crate::mst::{BlockSource, key_heights};

/// Inverts usual commits, in memory that is kept between calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Splicer {
    nodes: Nodes,
    /// The changed nodes by layer.
    layers: Vec<Vec<NodeId>>,
    digests: Vec<Digest>,
}

/// A node, and the index of the entry that has a key there, or the slot that it belongs to.
type Place = (NodeId, Result<usize, usize>);

/// A commit whose operations are undone, with its nodes and keys.
struct Undone {
    root: NodeId,
    nodes: std::ops::Range<usize>,
    keys: std::ops::Range<usize>,
}

impl Splicer {
    /// The roots of the trees before these commits, in order; `None` for commits that the arena has to invert.
    pub(super) fn invert_batch<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[Inversion<'_, '_, S>],
    ) -> Vec<Option<Cid>> {
        self.nodes.clear();
        let undone = self.undo_all(commits);
        let in_layer = self.nodes.keys_in_layer();
        let is_sound = |undone: &Undone| in_layer[undone.keys.clone()].iter().all(|key| *key);
        let sound: Vec<Option<Undone>> =
            undone.into_iter().map(|undone| undone.filter(is_sound)).collect();
        self.hash_changed(&sound);
        let root = |(undone, commit): (Option<Undone>, &Inversion<'_, '_, S>)| {
            let root = undone?.root;
            Some(if self.nodes.is_changed(root) { self.nodes.cid(root) } else { commit.root })
        };
        sound.into_iter().zip(commits).map(root).collect()
    }

    fn undo_all<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[Inversion<'_, '_, S>],
    ) -> Vec<Option<Undone>> {
        let mut keys = Vec::with_capacity(commits.len());
        let ends: Vec<usize> = commits
            .iter()
            .map(|commit| {
                push_known_keys(commit, &mut keys);
                keys.len()
            })
            .collect();
        let heights = key_heights(&keys);
        let mut start = 0;
        let undo = |(commit, end): (&Inversion<'_, '_, S>, usize)| {
            let heights = &heights[std::mem::replace(&mut start, end)..end];
            self.undo(commit, heights)
        };
        commits.iter().zip(ends).map(undo).collect()
    }

    /// Undoes the operations of a commit, or leaves nothing of it.
    fn undo<'a, S: BlockSource<'a>>(
        &mut self,
        commit: &Inversion<'_, '_, S>,
        heights: &[u8],
    ) -> Option<Undone> {
        if commit.ops.is_empty() || check_ops(commit.ops).is_err() {
            return None;
        }
        let from = self.nodes.mark();
        let Some(root) = self.try_undo(commit, heights) else {
            self.nodes.truncate(from);
            return None;
        };
        let to = self.nodes.mark();
        Some(Undone { root, nodes: from.nodes..to.nodes, keys: from.keys..to.keys })
    }

    fn try_undo<'a, S: BlockSource<'a>>(
        &mut self,
        Inversion { root, source, ops }: &Inversion<'_, '_, S>,
        heights: &[u8],
    ) -> Option<NodeId> {
        let (root_height, mut heights) = heights.split_first()?;
        let root = self.nodes.read(source.block(root)?, *root_height, None)?;
        if let [op] = *ops {
            // Where the key is or belongs: at its height, or the insertion fails anyway.
            let place = self.check(root, op, source)?;
            self.undo_op(op, place, heights.first(), source)?;
            return Some(root);
        }
        for op in *ops {
            let _ = self.check(root, op, source)?;
        }
        for op in ops.iter().filter(|op| op.is_delete()) {
            let height = heights.split_off_first()?;
            let place = self.descend(root, op.key, *height, source)?;
            self.undo_op(op, place, Some(height), source)?;
        }
        for op in ops.iter().filter(|op| !op.is_delete()) {
            let place = self.descend(root, op.key, 0, source)?;
            self.undo_op(op, place, None, source)?;
        }
        Some(root)
    }

    /// Checks that the tree after the commit agrees with the operation; returns the place of its key.
    fn check<'a>(
        &mut self,
        root: NodeId,
        op: &RecordOp<'_>,
        source: &impl BlockSource<'a>,
    ) -> Option<Place> {
        let (id, position) = self.descend(root, op.key, 0, source)?;
        let agrees = match (position, op.cid) {
            (Ok(index), Some(cid)) => self.nodes.value(id, index) == cid.as_bytes(),
            (Err(_), None) => true,
            _ => false,
        };
        agrees.then_some((id, position))
    }

    /// Undoes an operation at the place of its key; `height` is the height of a deleted key.
    fn undo_op<'a>(
        &mut self,
        op: &RecordOp<'_>,
        (id, position): Place,
        height: Option<&u8>,
        source: &impl BlockSource<'a>,
    ) -> Option<()> {
        match (op.action, position) {
            (Action::Update, Ok(index)) => self.replace(op, id, index),
            (Action::Create, Ok(index)) => self.remove(id, index, source),
            (Action::Delete, Err(slot)) => self.insert(op, *height?, id, slot),
            _ => None,
        }
    }

    /// Puts the record back that an update replaced.
    fn replace(&mut self, op: &RecordOp<'_>, id: NodeId, index: usize) -> Option<()> {
        let value: &[u8; Cid::LEN] = op.prev?.as_bytes().try_into().ok()?;
        if self.nodes.value(id, index) != value {
            self.nodes.set_value(id, index, value);
            self.nodes.mark_changed(id);
        }
        Some(())
    }

    /// Puts a deleted record back, into a node that exists and between keys without a child.
    fn insert(&mut self, op: &RecordOp<'_>, height: u8, id: NodeId, slot: usize) -> Option<()> {
        let value: &[u8; Cid::LEN] = op.prev?.as_bytes().try_into().ok()?;
        if self.nodes.layer(id) != height || self.nodes.child(id, slot) != Child::None {
            return None;
        }
        self.nodes.insert_entry(id, slot, op.key, value)?;
        self.nodes.mark_changed(id);
        Some(())
    }

    /// Removes a created record. The children on both sides of it become one; a node without entries and children
    /// is dropped. The root keeps an entry.
    fn remove<'a>(
        &mut self,
        id: NodeId,
        index: usize,
        source: &impl BlockSource<'a>,
    ) -> Option<()> {
        let is_root = self.nodes.parent(id).is_none();
        if is_root && self.nodes.len(id) == 1 {
            return None;
        }
        self.merge_children((id, index), (id, index + 1), source)?;
        self.nodes.remove_entry(id, index);
        self.nodes.mark_changed(id);
        self.drop_bare_nodes(id);
        Some(())
    }

    /// Moves the subtree of slot `from` into slot `to`, between whose keys and its own no key remains.
    fn merge_children<'a>(
        &mut self,
        (left, to): (NodeId, usize),
        (right, from): (NodeId, usize),
        source: &impl BlockSource<'a>,
    ) -> Option<()> {
        match (self.nodes.child(left, to), self.nodes.child(right, from)) {
            (_, Child::None) => Some(()),
            (Child::None, child) => {
                let link = self.nodes.link(right, from);
                self.nodes.set_link(left, to, &link, child);
                Some(())
            }
            _ => {
                let (l, r) = (self.load(left, to, source)?, self.load(right, from, source)?);
                let last = (l, self.nodes.len(l));
                self.merge_children(last, (r, 0), source)?;
                self.nodes.append(l, r)?;
                self.nodes.mark_changed(l);
                self.nodes.drop_node(r);
                Some(())
            }
        }
    }

    /// Drops a node that has neither an entry nor a child, and the nodes above it that then have none.
    fn drop_bare_nodes(&mut self, mut id: NodeId) {
        while self.nodes.len(id) == 0
            && self.nodes.child(id, 0) == Child::None
            && let Some(parent) = self.nodes.parent(id)
            && let Some(slot) = self.nodes.slot_of(parent, id)
        {
            self.nodes.set_link(parent, slot, &NO_LINK, Child::None);
            self.nodes.drop_node(id);
            id = parent;
        }
    }

    /// Searches `key` from the root, as far down as `min_layer` or until a slot is empty.
    fn descend<'a>(
        &mut self,
        root: NodeId,
        key: &[u8],
        min_layer: u8,
        source: &impl BlockSource<'a>,
    ) -> Option<Place> {
        let mut id = root;
        loop {
            match self.nodes.find(id, key) {
                Err(slot)
                    if self.nodes.layer(id) > min_layer
                        && self.nodes.child(id, slot) != Child::None =>
                {
                    id = self.load(id, slot, source)?;
                }
                position => return Some((id, position)),
            }
        }
    }

    /// The child in a slot that has one, read if it was not.
    fn load<'a>(
        &mut self,
        id: NodeId,
        slot: usize,
        source: &impl BlockSource<'a>,
    ) -> Option<NodeId> {
        if let Child::Node(child) = self.nodes.child(id, slot) {
            return Some(child);
        }
        if self.nodes.bytes_len() > MAX_BYTES {
            return None;
        }
        let block = source.block(&self.nodes.link_cid(id, slot)?)?;
        self.nodes.read(block, self.nodes.layer(id).checked_sub(1)?, Some((id, slot)))
    }

    /// Hashes the changed nodes of these commits, one layer at a time.
    fn hash_changed(&mut self, commits: &[Option<Undone>]) {
        let Self { nodes, layers, digests } = self;
        layers.iter_mut().for_each(Vec::clear);
        let all = commits.iter().flatten().flat_map(|undone| undone.nodes.clone());
        for id in all.filter(|id| nodes.is_changed(*id)) {
            let layer = usize::from(nodes.layer(id));
            if layers.len() <= layer {
                layers.resize_with(layer + 1, Vec::new);
            }
            layers[layer].push(id);
        }
        for layer in layers {
            layer.iter().for_each(|id| nodes.update_links(*id));
            // The longest first: otherwise the last ones keep a few hash lanes busy alone.
            layer.sort_by_cached_key(|id| Reverse(nodes.block(*id).len()));
            let blocks: Vec<&[u8]> = layer.iter().map(|id| nodes.block(*id)).collect();
            digests.resize(layer.len(), [0; 32]);
            sha256::digest_many_into(&blocks, digests);
            layer.iter().zip(&*digests).for_each(|(id, digest)| nodes.set_digest(*id, digest));
        }
    }
}

/// Bytes of blocks and keys in memory after which the arena inverts: blocks are copied with every edit, and without
/// shared prefixes the keys of a hostile node can be twenty times as long as its block.
const MAX_BYTES: usize = 16 << 20;
