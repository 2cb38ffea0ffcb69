//! Trees of records: looking up, inserting, removing, loading and hashing.

use std::collections::HashSet;

use codec::{AnyCid, Cid, CidRef};

use super::arena::{Arena, KeyBounds, NodeId, NodeState, Path, RecordRef};
use super::{
    BlockSource, Limit, MAX_KEY_BYTES, TreeError, TreeFault, TreeLimits, height::KEY_BATCH,
    key_height, node::NodeFault,
};

/// A tree of records. Nodes are loaded on demand from a [`BlockSource`]; changed nodes are hashed when
/// the root's CID is asked for.
///
/// A tree may be partial. An operation that has to read a node the source lacks fails with
/// [`TreeFault::Missing`] and the node's CID, and leaves the tree as it was.
///
/// Lookups search and inserts take effect at once. For many lookups see
/// [`IndexedTree`](super::IndexedTree), for many records in ascending order [`Builder`](super::Builder).
///
/// ```
/// use wireproof::codec::cid::{Cid, Codec};
/// use wireproof::atproto::mst::Tree;
/// let record = Cid::of(Codec::DagCbor, b"\xa0");
/// let mut tree = Tree::empty();
/// tree.insert(b"com.example.record/3jqfcqzm3fo2j", record)?;
/// assert_eq!(tree.get(b"com.example.record/3jqfcqzm3fo2j")?, Some(record.as_cid_ref()));
///
/// let root = tree.root();
/// let blocks = tree.collect_blocks();
/// assert_eq!(blocks[0].0, root);
/// # Ok::<(), wireproof::atproto::mst::TreeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tree<S = ()> {
    pub(super) arena: Arena,
    pub(super) root: NodeId,
    pub(super) source: S,
    pub(super) path: Path,
}

impl Tree {
    /// The tree without records.
    pub fn empty() -> Self {
        let mut arena = Arena::default();
        let root = arena.empty_node(0, None);
        Self::of(arena, root, ())
    }
}

impl<S> Tree<S> {
    /// The tree with this root, of which the source may lack nodes. Nothing is read yet.
    ///
    /// Nodes that are read later are checked against every rule that they can show: the rules of one node,
    /// that its keys lie between its parent's keys, and that they have the height of its layer.
    pub fn load_partial(root: Cid, source: S) -> Self {
        let mut arena = Arena::default();
        let root = arena.stub(root, 0);
        Self::of(arena, root, source)
    }

    pub(super) fn of(arena: Arena, root: NodeId, source: S) -> Self {
        Self { arena, root, source, path: Path::default() }
    }

    /// The CID of the root: `data` in a commit.
    pub fn root(&mut self) -> Cid {
        self.arena.hash_dirty([self.root]);
        self.arena.cid(self.root)
    }

    /// The nodes that are new since the tree was loaded, or since the last call: parents before children.
    pub fn collect_blocks(&mut self) -> Vec<(Cid, Vec<u8>)> {
        self.arena.hash_dirty([self.root]);
        self.arena.collect_new(self.root)
    }
}

impl<'a, S: BlockSource<'a>> Tree<S> {
    /// The record at `key`.
    ///
    /// # Errors
    /// If a node on the path is missing or breaks a rule.
    #[inline]
    pub fn get(&mut self, key: &[u8]) -> Result<Option<CidRef<'_>>, TreeError> {
        let record = match self.arena.look_up(self.root, key) {
            Some(record) => Some(record),
            None => self.load_and_find(key)?,
        };
        Ok(record.map(|record| self.arena.value_after(record, key.len())))
    }

    /// The records at `keys`, in their order: as [`Tree::get`], with the memory accesses of many lookups
    /// interleaved.
    ///
    /// # Errors
    /// If a node on the path to one of them is missing or breaks a rule.
    pub fn get_many(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<CidRef<'_>>>, TreeError> {
        let mut records = Vec::with_capacity(keys.len());
        self.arena.look_up_many(self.root, keys, &mut records);
        for (record, key) in records.iter_mut().zip(keys).filter(|(record, _)| record.is_none()) {
            *record = self.load_and_find(key)?;
        }
        let value = |(record, key): (Option<_>, &&[u8])| {
            record.map(|record| self.arena.value_after(record, key.len()))
        };
        Ok(records.into_iter().zip(keys).map(value).collect())
    }

    #[cold]
    fn load_and_find(&mut self, key: &[u8]) -> Result<Option<RecordRef>, TreeError> {
        self.load_root()?;
        let Self { arena, root, source, path, .. } = self;
        let position = arena.descend(*root, key, 0, source, path);
        arena.check_heights()?;
        let Ok(index) = position? else { return Ok(None) };
        let (id, _) = path.end();
        Ok(arena.record(id, index))
    }

    /// Puts `value` at `key`; returns the value before, if there was one.
    ///
    /// # Errors
    /// If a node that has to be read is missing or breaks a rule, if the key is empty or longer than
    /// [`MAX_KEY_BYTES`], or a node or the tree would become too large. The tree is then as it was.
    #[inline]
    pub fn insert(
        &mut self,
        key: &[u8],
        value: impl Into<AnyCid>,
    ) -> Result<Option<AnyCid>, TreeError> {
        check_key(key)?;
        let value = value.into();
        self.load_root()?;
        let keyed = (key, key_height(key));
        let Self { arena, root, source, path } = self;
        arena.insert(root, keyed, value.as_cid_ref(), source, path)
    }

    /// Removes the record at `key`; returns it, if it was there.
    ///
    /// # Errors
    /// If a node that has to be read is missing or breaks a rule. The tree is then as it was.
    pub fn remove(&mut self, key: &[u8]) -> Result<Option<AnyCid>, TreeError> {
        self.load_root()?;
        let Self { arena, root, source, path } = self;
        let removed = arena.remove(root, key, source, path)?;
        Ok(removed.map(|entry| arena.value_of(&entry).into()))
    }

    #[inline]
    pub(super) fn load_root(&mut self) -> Result<(), TreeError> {
        if self.arena.state(self.root) != NodeState::Stub {
            return Ok(());
        }
        self.arena.load_root(self.root, &self.source)?;
        self.arena.check_heights()
    }

    /// Loads every node that is not loaded, in key order, and calls `visit` with every node.
    pub(super) fn load_all(
        &mut self,
        mut visit: impl FnMut(&Arena, NodeId) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        self.load_root()?;
        let mut stack = vec![(self.root, KeyBounds::default())];
        while let Some((id, bounds)) = stack.pop() {
            let loaded = self.arena.load(id, bounds, &self.source);
            if loaded.is_err() {
                self.arena.check_heights()?;
            }
            loaded?;
            visit(&self.arena, id)?;
            let node = self.arena.node(id);
            for slot in (0..=node.entries.len()).rev() {
                stack.extend(node.child(slot).map(|child| (child, bounds.narrowed(node, slot))));
            }
            self.arena.check_heights_if_many(KEY_BATCH)?;
        }
        self.arena.check_heights()
    }

    /// Loads the whole tree with this root and checks it against all rules: every node is there, parses, is
    /// reached once, and is where its keys belong, so that the tree is the one that its records have.
    ///
    /// # Errors
    /// The first broken rule, in the order of keys.
    pub fn load_canonical(root: Cid, source: S, limits: &TreeLimits) -> Result<Self, TreeError> {
        let mut tree = Self::load_partial(root, source);
        let mut reached = HashSet::from([root]);
        let mut records = 0;
        tree.load_all(|arena, id| {
            let node = arena.node(id);
            records += node.entries.len() as u64;
            if records > limits.max_records {
                return Err(TreeError::of(TreeFault::Limit(Limit::Records)));
            }
            for child in (0..=node.entries.len()).rev().filter_map(|slot| node.child(slot)) {
                let cid = arena.cid(child);
                if !reached.insert(cid) {
                    return Err(TreeError::at(cid, 0, TreeFault::Repeated));
                }
            }
            if reached.len() as u64 > limits.max_nodes {
                return Err(TreeError::of(TreeFault::Limit(Limit::Nodes)));
            }
            Ok(())
        })?;
        Ok(tree)
    }
}

/// Checks the length of a key.
#[inline]
pub(super) fn check_key(key: &[u8]) -> Result<(), TreeError> {
    match key.len() {
        1..=MAX_KEY_BYTES => Ok(()),
        0 => Err(TreeError::of(TreeFault::Node(NodeFault::EmptyKey))),
        _ => Err(TreeError::of(TreeFault::Limit(Limit::KeyBytes))),
    }
}
