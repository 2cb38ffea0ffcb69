//! Building trees from many records: all at once, or in ascending order through an append buffer.

use codec::{AnyCid, CidRef};

use super::arena::{Arena, Entry, NodeId, RecordRef, RightEdge, is_less, shared_len};
use super::height::KEY_BATCH;
use super::tree::check_key;
use super::{BlockSource, Tree, TreeError, TreeFault};

impl Tree {
    /// Builds the tree of `records`, which are sorted by key without duplicates. Keys and nodes are
    /// hashed many at once.
    ///
    /// # Errors
    /// If a key is not greater than the one before, empty or longer than
    /// [`MAX_KEY_BYTES`](super::MAX_KEY_BYTES), or the records are too many for memory.
    ///
    /// ```
    /// use wireproof::codec::cid::{Cid, Codec};
    /// use wireproof::atproto::mst::Tree;
    /// let record = Cid::of(Codec::DagCbor, b"\xa0");
    /// let mut tree = Tree::from_sorted([(b"a/1", record), (b"a/2", record)])?;
    /// assert_eq!(tree.get(b"a/2")?, Some(record.as_cid_ref()));
    /// assert!(Tree::from_sorted([(b"a/2", record), (b"a/1", record)]).is_err());
    /// # Ok::<(), wireproof::atproto::mst::TreeError>(())
    /// ```
    pub fn from_sorted<K: AsRef<[u8]>, V: Into<AnyCid>>(
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, TreeError> {
        let records = records.into_iter();
        let mut arena = Arena::default();
        arena.reserve(records.size_hint().0);
        let mut buffer = AppendBuffer::new(&arena, RightEdge::default());
        for (key, value) in records {
            let key = key.as_ref();
            check_key(key)?;
            if !buffer.is_after_last(&arena, key) {
                return Err(TreeError::of(TreeFault::Order));
            }
            buffer.push(&mut arena, key, value.into().as_cid_ref())?;
        }
        let root = buffer.finish(&mut arena);
        arena.hash_closed(1);
        Ok(Self::of(arena, root, ()))
    }

    /// Builds the tree of `records` in any order. If keys are equal, the last record counts, as if
    /// they were inserted one after the other.
    ///
    /// # Errors
    /// If a key is empty or longer than [`MAX_KEY_BYTES`](super::MAX_KEY_BYTES), or the records are
    /// too many for memory.
    pub fn from_unsorted<K: AsRef<[u8]>, V: Into<AnyCid>>(
        mut records: Vec<(K, V)>,
    ) -> Result<Self, TreeError> {
        // Reversed, because of equal neighbors the first is kept.
        records.reverse();
        records.sort_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref()));
        records.dedup_by(|(later, _), (kept, _)| later.as_ref() == kept.as_ref());
        Self::from_sorted(records)
    }
}

/// Builds or extends a tree from records whose keys mostly ascend: for importers, logs, and writers
/// whose keys are timestamps.
///
/// A record whose key is greater than all others waits in an append buffer. Every 512 such records are
/// added at the right edge of the tree together: without a search, and with their keys and the nodes
/// they complete hashed many at once. Any other record flushes the buffer and is inserted by
/// [`Tree::insert`]. The tree is the same either way.
///
/// The price is a flush: it closes one node a layer, and the append after it hashes the changed nodes
/// next to the right edge. With the root computed after every 100th append, an append takes 230 ns
/// instead of 370 for [`Tree::insert`]; with a lookup after every 20th, the flushes cost more than the
/// buffer saves (Zen 5). Records in no order, or read back after every few, belong in [`Tree::insert`];
/// records that are all in memory belong in [`Tree::from_sorted`].
///
/// ```
/// use wireproof::codec::cid::{Cid, Codec};
/// use wireproof::atproto::mst::{Builder, Tree};
/// let record = Cid::of(Codec::DagCbor, b"\xa0");
/// let mut builder = Builder::new();
/// for number in 0..1_000 {
///     builder.insert(format!("com.example.record/{number:04}").as_bytes(), record)?;
/// }
/// let mut tree = builder.finish();
/// assert_eq!(tree.iter().count(), 1_000);
/// # Ok::<(), wireproof::atproto::mst::TreeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder<S = ()> {
    tree: Tree<S>,
    /// Records that are not yet in the nodes of the tree, whose right edge is then open.
    append_buffer: Option<AppendBuffer>,
}

impl Builder {
    /// Starts with the empty tree.
    pub fn new() -> Self {
        Self::from(Tree::empty())
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> From<Tree<S>> for Builder<S> {
    /// Continues a tree, which may be partial: records are buffered once its right edge is loaded.
    fn from(tree: Tree<S>) -> Self {
        Self { tree, append_buffer: None }
    }
}

impl<'a, S: BlockSource<'a>> Builder<S> {
    /// Puts `value` at `key`; returns the value before, if there was one.
    ///
    /// # Errors
    /// As [`Tree::insert`]. The tree is then as it was.
    #[inline]
    pub fn insert(
        &mut self,
        key: &[u8],
        value: impl Into<AnyCid>,
    ) -> Result<Option<AnyCid>, TreeError> {
        check_key(key)?;
        let value = value.into();
        if self.append(key, value.as_cid_ref())? {
            return Ok(None);
        }
        self.tree().insert(key, value)
    }

    /// Buffers a record whose key is greater than all others; returns whether it did.
    #[inline]
    fn append(&mut self, key: &[u8], value: CidRef<'_>) -> Result<bool, TreeError> {
        if self.append_buffer.is_none() {
            let Tree { arena, root, .. } = &mut self.tree;
            self.append_buffer =
                arena.open_right_edge(*root, key).map(|edge| AppendBuffer::new(arena, edge));
        }
        let arena = &mut self.tree.arena;
        match &mut self.append_buffer {
            Some(buffer) if buffer.has_room() && buffer.is_after_last(arena, key) => {
                buffer.push(arena, key, value).map(|()| true)
            }
            _ => Ok(false),
        }
    }
}

impl<S> Builder<S> {
    /// Adds the buffered records to the tree.
    pub fn flush(&mut self) {
        if let Some(buffer) = self.append_buffer.take() {
            self.tree.root = buffer.finish(&mut self.tree.arena);
            self.tree.arena.forget_closed();
        }
    }

    /// Flushes, and lends the tree with all records inserted so far.
    pub fn tree(&mut self) -> &mut Tree<S> {
        self.flush();
        &mut self.tree
    }

    /// Flushes, and returns the tree.
    pub fn finish(mut self) -> Tree<S> {
        self.flush();
        self.tree
    }
}

/// Records that wait to be added at the right edge of a tree.
#[derive(Clone, Debug)]
struct AppendBuffer {
    edge: RightEdge,
    /// The greatest key, buffered ones included.
    last: Option<RecordRef>,
    entries: Vec<Entry>,
    /// Entries that every open node has room for.
    capacity: usize,
}

impl AppendBuffer {
    fn new(arena: &Arena, edge: RightEdge) -> Self {
        let capacity = arena.remaining_entries(&edge);
        Self { last: edge.last(), entries: Vec::with_capacity(KEY_BATCH), capacity, edge }
    }

    #[inline]
    fn is_after_last(&self, arena: &Arena, key: &[u8]) -> bool {
        self.last.is_none_or(|last| {
            let last = arena.key(last);
            is_less(last, key, shared_len(last, key))
        })
    }

    /// Whether one more entry fits, whichever node it belongs to.
    #[inline]
    fn has_room(&self) -> bool {
        self.entries.len() < self.capacity
    }

    #[inline]
    fn push(&mut self, arena: &mut Arena, key: &[u8], value: CidRef<'_>) -> Result<(), TreeError> {
        let entry = arena.store(key, value)?;
        self.entries.push(entry);
        self.last = Some(entry.record());
        if self.entries.len() == KEY_BATCH {
            arena.append_all(&mut self.edge, &mut self.entries);
            self.capacity = arena.remaining_entries(&self.edge);
        }
        Ok(())
    }

    /// Adds the buffered records and closes the right edge; returns the root.
    fn finish(mut self, arena: &mut Arena) -> NodeId {
        arena.append_all(&mut self.edge, &mut self.entries);
        arena.close_right_edge(self.edge)
    }
}

#[cfg(test)]
mod tests;
