//! Iterating the records of a tree in the order of their keys.

use std::ops::{Bound, RangeBounds};

use codec::{AnyCid, CidRef};

use super::arena::{KeyBounds, NodeId};
use super::{BlockSource, Tree, TreeError};

impl<'a, S: BlockSource<'a>> Tree<S> {
    /// All records, in the order of their keys. Nodes are loaded as they are reached.
    pub fn iter(&mut self) -> Range<'_, S> {
        self.range::<&[u8]>(..)
    }

    /// The records whose keys lie in a range, in order.
    ///
    /// ```
    /// use wireproof::codec::cid::{Cid, Codec};
    /// use wireproof::atproto::mst::Tree;
    /// let record = Cid::of(Codec::DagCbor, b"\xa0");
    /// let mut tree = Tree::from_sorted(["a/1", "b/1", "b/2", "c/1"].map(|key| (key, record)))?;
    /// let keys: Result<Vec<_>, _> = tree.range("b/".."b0").map(|item| Ok(item?.0)).collect();
    /// assert_eq!(keys?, [b"b/1", b"b/2"]);
    /// # Ok::<(), wireproof::atproto::mst::TreeError>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(&mut self, range: impl RangeBounds<K>) -> Range<'_, S> {
        let start = range.start_bound().map(|key| key.as_ref().to_vec());
        let end = range.end_bound().map(|key| key.as_ref().to_vec());
        Range { tree: self, stack: Vec::new(), next: Next::Start(start), end }
    }
}

/// An iterator over the records of a tree in the order of their keys, see [`Tree::range`]. It ends after
/// the first error.
#[derive(Debug)]
pub struct Range<'t, S> {
    tree: &'t mut Tree<S>,
    /// The entered nodes: all children and entries before `slot` are done, and its child too unless `next`
    /// is [`Next::Child`].
    stack: Vec<Frame>,
    next: Next,
    end: Bound<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    id: NodeId,
    bounds: KeyBounds,
    slot: usize,
}

/// The step to take before the next record.
#[derive(Clone, Debug)]
enum Next {
    /// Descend from the root to the first key of the range.
    Start(Bound<Vec<u8>>),
    /// Descend in the slot of the last node.
    Child,
    /// None: the range is exhausted.
    End,
}

impl<'a, S: BlockSource<'a>> Range<'_, S> {
    /// The next record, borrowed from the tree.
    pub fn next_borrowed(&mut self) -> Option<Result<(&[u8], CidRef<'_>), TreeError>> {
        match self.advance() {
            Ok(Some((id, index))) => {
                let arena = &self.tree.arena;
                let entry = arena.node(id).entries.get(index)?;
                Some(Ok((arena.key_of(&entry), arena.value_of(&entry))))
            }
            Ok(None) => None,
            Err(error) => {
                self.next = Next::End;
                Some(Err(error))
            }
        }
    }

    /// Advances to the next record: the node, and the entry's index.
    fn advance(&mut self) -> Result<Option<(NodeId, usize)>, TreeError> {
        match std::mem::replace(&mut self.next, Next::End) {
            Next::Start(start) => self.descend_to(start)?,
            Next::Child => self.descend()?,
            Next::End => return Ok(None),
        }
        while let Some(Frame { id, slot, .. }) = self.stack.last_mut() {
            let (id, index) = (*id, *slot);
            if index < self.tree.arena.node(id).entries.len() {
                *slot += 1;
                if self.is_after_end(id, index) {
                    return Ok(None);
                }
                self.next = Next::Child;
                return Ok(Some((id, index)));
            }
            self.stack.pop();
        }
        Ok(None)
    }

    fn is_after_end(&self, id: NodeId, index: usize) -> bool {
        let arena = &self.tree.arena;
        let Some(entry) = arena.node(id).entries.get(index) else { return true };
        let key = arena.key_of(&entry);
        match &self.end {
            Bound::Included(end) => key > &end[..],
            Bound::Excluded(end) => key >= &end[..],
            Bound::Unbounded => false,
        }
    }

    /// Enters the nodes from the root down to where the range starts.
    fn descend_to(&mut self, start: Bound<Vec<u8>>) -> Result<(), TreeError> {
        self.tree.load_root()?;
        self.stack.push(Frame { id: self.tree.root, bounds: KeyBounds::default(), slot: 0 });
        let (key, is_excluded) = match &start {
            Bound::Included(key) => (key, false),
            Bound::Excluded(key) => (key, true),
            Bound::Unbounded => return self.descend(),
        };
        while let Some(frame) = self.stack.last_mut() {
            match self.tree.arena.find(frame.id, key, &mut Default::default()) {
                Ok(index) if is_excluded => {
                    frame.slot = index + 1;
                    return self.descend();
                }
                Ok(index) => {
                    frame.slot = index;
                    return Ok(());
                }
                Err(slot) => frame.slot = slot,
            }
            if !self.enter_child()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Enters the nodes at the left edge of the slot.
    fn descend(&mut self) -> Result<(), TreeError> {
        while self.enter_child()? {}
        Ok(())
    }

    /// Enters the child in the slot of the last node, if there is one.
    fn enter_child(&mut self) -> Result<bool, TreeError> {
        let Some(Frame { id, bounds, slot }) = self.stack.last().copied() else {
            return Ok(false);
        };
        let Tree { arena, source, .. } = &mut *self.tree;
        let Some(child) = arena.child(id, slot) else { return Ok(false) };
        let bounds = bounds.narrowed(arena.node(id), slot);
        let loaded = arena.load(child, bounds, source);
        arena.check_heights()?;
        loaded?;
        self.stack.push(Frame { id: child, bounds, slot: 0 });
        Ok(true)
    }
}

impl<'a, S: BlockSource<'a>> Iterator for Range<'_, S> {
    type Item = Result<(Vec<u8>, AnyCid), TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.next_borrowed()?;
        Some(item.map(|(key, value)| (key.to_vec(), value.into())))
    }
}
