//! The records and nodes that differ between two trees. Subtrees that both have are skipped.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use codec::{AnyCid, Cid};

use super::arena::{Entry, KeyBounds, NodeId};
use super::{BlockSource, Tree, TreeError};

/// The difference between two trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Changed records, in the order of their keys.
    pub changes: Vec<Change>,
    /// Nodes that only the new tree has.
    pub created_nodes: BTreeSet<Cid>,
    /// Nodes that only the old tree has.
    pub deleted_nodes: BTreeSet<Cid>,
}

/// A created, updated or deleted record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The record's path.
    pub key: Vec<u8>,
    /// The record before; `None` if it was created.
    pub old: Option<AnyCid>,
    /// The record now; `None` if it was deleted.
    pub new: Option<AnyCid>,
}

/// Compares `old` with `new`. Only nodes that differ, and nodes at the edges of differing ranges, are loaded.
///
/// # Errors
/// If a node that has to be read is missing or breaks a rule.
///
/// ```
/// use wireproof::codec::cid::{Cid, Codec};
/// use wireproof::atproto::mst::{Tree, diff};
/// let record = Cid::of(Codec::DagCbor, b"\xa0");
/// let mut old = Tree::from_sorted([("a/1", record)])?;
/// let mut new = Tree::from_sorted([("a/1", record), ("a/2", record)])?;
/// let changes = diff(&mut old, &mut new)?.changes;
/// assert_eq!((&changes[0].key[..], &changes[0].old), (b"a/2".as_slice(), &None));
/// # Ok::<(), wireproof::atproto::mst::TreeError>(())
/// ```
pub fn diff<'a, 'b, A: BlockSource<'a>, B: BlockSource<'b>>(
    old: &mut Tree<A>,
    new: &mut Tree<B>,
) -> Result<Diff, TreeError> {
    let mut changes = Vec::new();
    if old.root() == new.root() {
        return Ok(Diff::default());
    }
    let (mut old, mut new) = (Side::of(old)?, Side::of(new)?);
    loop {
        match (old.pieces.last(), new.pieces.last()) {
            (None, None) => break,
            (Some(Piece::Node(a, _)), Some(Piece::Node(b, _))) => {
                let (height_a, height_b) = (old.height(*a), new.height(*b));
                if old.cid(*a) == new.cid(*b) {
                    old.pieces.pop();
                    new.pieces.pop();
                    continue;
                }
                // The higher one first: below it may be the other.
                if height_a >= height_b {
                    old.open()?;
                }
                if height_b >= height_a {
                    new.open()?;
                }
            }
            (Some(Piece::Node(..)), _) => old.open()?,
            (_, Some(Piece::Node(..))) => new.open()?,
            (Some(Piece::Entry(_)), None) => changes.push(deleted(old.take())),
            (None, Some(Piece::Entry(_))) => changes.push(created(new.take())),
            (Some(Piece::Entry(a)), Some(Piece::Entry(b))) => match old.key(a).cmp(new.key(b)) {
                Ordering::Less => changes.push(deleted(old.take())),
                Ordering::Greater => changes.push(created(new.take())),
                Ordering::Equal => changes.extend(updated(old.take(), new.take())),
            },
        }
    }
    Ok(Diff {
        changes,
        created_nodes: new.opened.difference(&old.opened).copied().collect(),
        deleted_nodes: old.opened.difference(&new.opened).copied().collect(),
    })
}

type Record = (Vec<u8>, AnyCid);

fn deleted((key, old): Record) -> Change {
    Change { key, old: Some(old), new: None }
}

fn created((key, new): Record) -> Change {
    Change { key, old: None, new: Some(new) }
}

fn updated((key, old): Record, (_, new): Record) -> Option<Change> {
    (old != new).then_some(Change { key, old: Some(old), new: Some(new) })
}

/// The part of one tree that is not yet compared.
struct Side<'t, S> {
    tree: &'t mut Tree<S>,
    /// The remaining pieces, the next one last.
    pieces: Vec<Piece>,
    /// The nodes that were opened.
    opened: BTreeSet<Cid>,
}

enum Piece {
    Node(NodeId, KeyBounds),
    Entry(Entry),
}

impl<'t, 'a, S: BlockSource<'a>> Side<'t, S> {
    fn of(tree: &'t mut Tree<S>) -> Result<Self, TreeError> {
        tree.load_root()?;
        let pieces = vec![Piece::Node(tree.root, KeyBounds::default())];
        Ok(Self { tree, pieces, opened: BTreeSet::new() })
    }

    fn cid(&self, id: NodeId) -> Cid {
        self.tree.arena.cid(id)
    }

    fn height(&self, id: NodeId) -> u8 {
        self.tree.arena.node(id).height
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        self.tree.arena.key_of(entry)
    }

    /// Replaces the next piece, a node, by its children and entries.
    fn open(&mut self) -> Result<(), TreeError> {
        let Some(Piece::Node(id, bounds)) = self.pieces.pop() else { return Ok(()) };
        let Tree { arena, source, .. } = &mut *self.tree;
        let loaded = arena.load(id, bounds, source);
        arena.check_heights()?;
        loaded?;
        self.opened.insert(arena.cid(id));
        let node = arena.node(id);
        for slot in (0..=node.entries.len()).rev() {
            let child = arena.child(id, slot);
            self.pieces.extend(node.entries.get(slot).map(Piece::Entry));
            self.pieces.extend(child.map(|child| Piece::Node(child, bounds.narrowed(node, slot))));
        }
        Ok(())
    }

    /// Takes the next piece, an entry.
    fn take(&mut self) -> Record {
        let Some(Piece::Entry(entry)) = self.pieces.pop() else {
            unreachable!("the caller has seen an entry");
        };
        let arena = &self.tree.arena;
        (arena.key_of(&entry).to_vec(), arena.value_of(&entry).into())
    }
}
