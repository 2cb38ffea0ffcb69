//! A tree to read and to change.

use codec::{AnyCid, Cid, CidRef};

use super::arena::{Arena, Index, NodeId, Path, RecordRef, State};
use super::tail::{InOrder, Tail};
use super::{BlockSource, Limit, MAX_KEY_BYTES, TreeError, TreeFault, key_height};

/// A tree of records. What is loaded is loaded when it is needed, from a [`BlockSource`]; what has
/// changed is hashed when its name is asked for.
///
/// A tree may be partial. Whatever would have to read a node that the source lacks is refused with
/// [`TreeFault::Missing`] and the node's name, and leaves the tree as it was.
///
/// ```
/// use codec::cid::{Cid, Codec};
/// use wireproof_atproto::mst::Tree;
/// let record = Cid::of(Codec::DagCbor, b"\xa0");
/// let mut tree = Tree::empty();
/// tree.insert(b"com.example.record/3jqfcqzm3fo2j", record)?;
/// assert_eq!(tree.get(b"com.example.record/3jqfcqzm3fo2j")?, Some(record.as_cid_ref()));
///
/// let root = tree.root();
/// let blocks = tree.collect_blocks();
/// assert_eq!(blocks[0].0, root);
/// # Ok::<(), wireproof_atproto::mst::TreeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tree<S = ()> {
    pub(super) arena: Arena,
    pub(super) root: NodeId,
    pub(super) source: S,
    pub(super) path: Path,
    /// Of records as they are now.
    pub(super) index: Index,
    /// Inserts behind all others, one after the other.
    pub(super) in_order: InOrder,
    /// Records that are not yet in the nodes, and where they will be.
    pub(super) tail: Option<Tail>,
}

impl Tree {
    /// The tree of no records.
    pub fn empty() -> Self {
        let mut arena = Arena::default();
        let root = arena.empty_node(0, None);
        Self::of(arena, root, ())
    }
}

impl<S> Tree<S> {
    /// The tree called `root`, of which perhaps not all nodes are at hand. Nothing is read yet.
    ///
    /// What is read later is held against every rule that can be seen there: each node's own, that its
    /// keys lie between those of its parent, and that each has the height of its layer.
    pub fn load_partial(root: Cid, source: S) -> Self {
        let mut arena = Arena::default();
        let root = arena.stub(root, 0);
        Self::of(arena, root, source)
    }

    pub(super) fn of(arena: Arena, root: NodeId, source: S) -> Self {
        Self {
            arena,
            root,
            source,
            path: Path::default(),
            index: Index::default(),
            in_order: InOrder::default(),
            tail: None,
        }
    }

    /// The root's name: what a commit calls `data`.
    pub fn root(&mut self) -> Cid {
        self.settle();
        self.arena.seal([self.root]);
        self.arena.cid(self.root)
    }

    /// The nodes that the tree has now and had not when it was loaded, or when this was called last:
    /// parents before children.
    pub fn collect_blocks(&mut self) -> Vec<(Cid, Vec<u8>)> {
        self.settle();
        self.arena.seal([self.root]);
        self.arena.collect_new(self.root)
    }
}

impl<'a, S: BlockSource<'a>> Tree<S> {
    /// The record at `key`. A tree that is asked often makes an index of its records, of 16 to 32 bytes
    /// each, which the next change drops.
    ///
    /// # Errors
    /// If a node on the way is missing or breaks a rule.
    #[inline]
    pub fn get(&mut self, key: &[u8]) -> Result<Option<CidRef<'_>>, TreeError> {
        let record = match self.index.find(&self.arena, key) {
            Some(record) => Some(record),
            None => self.go_and_find(key)?,
        };
        Ok(record.map(|record| self.arena.value_behind(record, key.len())))
    }

    /// The records at `keys`, in their order: as [`Tree::get`], with many keys looked up side by side.
    ///
    /// # Errors
    /// If a node on the way to one of them is missing or breaks a rule.
    pub fn get_many(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<CidRef<'_>>>, TreeError> {
        let mut records = Vec::with_capacity(keys.len());
        self.settle();
        if self.index.is_empty() {
            self.arena.look_up_many(self.root, keys, &mut records);
            let found = records.iter().flatten().count();
            self.index.was_missed(&self.arena, self.root, found);
        } else {
            self.index.find_many(&self.arena, keys, &mut records);
        }
        for (record, key) in records.iter_mut().zip(keys).filter(|(record, _)| record.is_none()) {
            *record = self.go_and_find(key)?;
        }
        let value = |(record, key): (Option<_>, &&[u8])| {
            record.map(|record| self.arena.value_behind(record, key.len()))
        };
        Ok(records.into_iter().zip(keys).map(value).collect())
    }

    /// Goes down the tree.
    #[inline]
    fn go_and_find(&mut self, key: &[u8]) -> Result<Option<RecordRef>, TreeError> {
        self.settle();
        let found = self.arena.look_up(self.root, key);
        let found = if found.is_some() { found } else { self.load_and_find(key)? };
        if found.is_some() {
            self.index.was_missed(&self.arena, self.root, 1);
        }
        Ok(found)
    }

    #[cold]
    fn load_and_find(&mut self, key: &[u8]) -> Result<Option<RecordRef>, TreeError> {
        self.load_root()?;
        let Self { arena, root, source, path, .. } = self;
        let place = arena.descend(*root, key, 0, source, path);
        arena.prove()?;
        let Ok(index) = place? else { return Ok(None) };
        let (id, _) = path.end();
        Ok(arena.record(id, index))
    }

    /// Puts `value` at `key`; gives what was there.
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
        self.index.forget();
        if self.append(key, value.as_cid_ref())? {
            return Ok(None);
        }
        self.load_root()?;
        let keyed = (key, key_height(key));
        let Self { arena, root, source, path, .. } = self;
        let before = arena.insert(root, keyed, value.as_cid_ref(), source, path)?;
        self.in_order.note(path.is_last());
        Ok(before)
    }

    /// Takes away the record at `key`; gives what was there.
    ///
    /// # Errors
    /// If a node that has to be read is missing or breaks a rule. The tree is then as it was.
    pub fn remove(&mut self, key: &[u8]) -> Result<Option<AnyCid>, TreeError> {
        self.load_root()?;
        self.index.forget();
        let Self { arena, root, source, path, .. } = self;
        let removed = arena.remove(root, key, source, path)?;
        Ok(removed.map(|entry| arena.value_of(&entry).into()))
    }

    #[inline]
    pub(super) fn load_root(&mut self) -> Result<(), TreeError> {
        self.settle();
        if self.arena.node(self.root).state != State::Stub {
            return Ok(());
        }
        self.arena.load_root(self.root, &self.source)?;
        self.arena.prove()
    }
}

/// Whether a key may stand in a tree.
#[inline]
pub(super) fn check_key(key: &[u8]) -> Result<(), TreeError> {
    match key.len() {
        1..=MAX_KEY_BYTES => Ok(()),
        0 => Err(TreeError::of(TreeFault::Node(super::node::NodeFault::EmptyKey))),
        _ => Err(TreeError::of(TreeFault::Limit(Limit::KeyBytes))),
    }
}
