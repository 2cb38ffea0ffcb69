//! The records of a tree in the order of their keys.

use std::ops::{Bound, RangeBounds};

use codec::{AnyCid, CidRef};

use super::arena::{Between, NodeId};
use super::{BlockSource, Tree, TreeError};

impl<'a, S: BlockSource<'a>> Tree<S> {
    /// All records, in the order of their keys. Nodes are loaded as they are reached.
    pub fn iter(&mut self) -> Range<'_, S> {
        self.range::<&[u8]>(..)
    }

    /// The records whose keys lie in a range, in order.
    ///
    /// ```
    /// use codec::cid::{Cid, Codec};
    /// use wireproof_atproto::mst::Tree;
    /// let record = Cid::of(Codec::DagCbor, b"\xa0");
    /// let mut tree = Tree::from_sorted(["a/1", "b/1", "b/2", "c/1"].map(|key| (key, record)))?;
    /// let keys: Result<Vec<_>, _> = tree.range("b/".."b0").map(|item| Ok(item?.0)).collect();
    /// assert_eq!(keys?, [b"b/1", b"b/2"]);
    /// # Ok::<(), wireproof_atproto::mst::TreeError>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(&mut self, range: impl RangeBounds<K>) -> Range<'_, S> {
        let start = range.start_bound().map(|key| key.as_ref().to_vec());
        let end = range.end_bound().map(|key| key.as_ref().to_vec());
        Range { tree: self, stack: Vec::new(), next: Next::Start(start), end }
    }
}

/// The records of a tree in the order of their keys, see [`Tree::range`]. It ends behind the first
/// error.
#[derive(Debug)]
pub struct Range<'t, S> {
    tree: &'t mut Tree<S>,
    /// The nodes that are begun: all children and entries before `slot` are done, and its child too
    /// unless `next` says otherwise.
    stack: Vec<Frame>,
    next: Next,
    end: Bound<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    id: NodeId,
    between: Between,
    slot: usize,
}

/// What is to be done before the next record.
#[derive(Clone, Debug)]
enum Next {
    /// Go down from the root to the first key of the range.
    Start(Bound<Vec<u8>>),
    /// Go down in the slot of the last node.
    Child,
    /// Nothing is left.
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

    /// Goes to the next record: the node, and the entry's index.
    fn advance(&mut self) -> Result<Option<(NodeId, usize)>, TreeError> {
        match std::mem::replace(&mut self.next, Next::End) {
            Next::Start(start) => self.go_to(start)?,
            Next::Child => self.go_down()?,
            Next::End => return Ok(None),
        }
        while let Some(Frame { id, slot, .. }) = self.stack.last_mut() {
            let (id, index) = (*id, *slot);
            if index < self.tree.arena.node(id).entries.len() {
                *slot += 1;
                if self.is_behind_end(id, index) {
                    return Ok(None);
                }
                self.next = Next::Child;
                return Ok(Some((id, index)));
            }
            self.stack.pop();
        }
        Ok(None)
    }

    fn is_behind_end(&self, id: NodeId, index: usize) -> bool {
        let arena = &self.tree.arena;
        let Some(entry) = arena.node(id).entries.get(index) else { return true };
        let key = arena.key_of(&entry);
        match &self.end {
            Bound::Included(end) => key > &end[..],
            Bound::Excluded(end) => key >= &end[..],
            Bound::Unbounded => false,
        }
    }

    /// Begins the nodes from the root down to where the range starts.
    fn go_to(&mut self, start: Bound<Vec<u8>>) -> Result<(), TreeError> {
        self.tree.load_root()?;
        self.stack.push(Frame { id: self.tree.root, between: Between::default(), slot: 0 });
        let (key, is_excluded) = match &start {
            Bound::Included(key) => (key, false),
            Bound::Excluded(key) => (key, true),
            Bound::Unbounded => return self.go_down(),
        };
        while let Some(frame) = self.stack.last_mut() {
            match self.tree.arena.find(frame.id, key, &mut Default::default()) {
                Ok(index) if is_excluded => {
                    frame.slot = index + 1;
                    return self.go_down();
                }
                Ok(index) => {
                    frame.slot = index;
                    return Ok(());
                }
                Err(slot) => frame.slot = slot,
            }
            if !self.begin_child()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Begins the nodes at the left edge of the slot.
    fn go_down(&mut self) -> Result<(), TreeError> {
        while self.begin_child()? {}
        Ok(())
    }

    /// Begins the child in the slot of the last node, if there is one.
    fn begin_child(&mut self) -> Result<bool, TreeError> {
        let Some(Frame { id, between, slot }) = self.stack.last().copied() else {
            return Ok(false);
        };
        let Tree { arena, source, .. } = &mut *self.tree;
        let Some(child) = arena.child(id, slot) else { return Ok(false) };
        let between = between.narrowed(arena.node(id), slot);
        let loaded = arena.load(child, between, source);
        arena.prove()?;
        loaded?;
        self.stack.push(Frame { id: child, between, slot: 0 });
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
