//! Whole trees at once: from records, and from all the nodes of one.

use std::collections::HashSet;

use codec::{AnyCid, Cid};

use super::arena::{Arena, Between, Entry, Growth, is_less, shared_len};
use super::tail::HASHED_TOGETHER;
use super::tree::check_key;
use super::{BlockSource, Limit, Tree, TreeError, TreeFault};

/// How large a tree may be that is read whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// The most nodes.
    pub max_nodes: u64,
    /// The most records.
    pub max_records: u64,
}

impl Default for TreeLimits {
    /// As many as an archive may have blocks: 50 million of each.
    fn default() -> Self {
        Self { max_nodes: 50_000_000, max_records: 50_000_000 }
    }
}

impl Tree {
    /// The tree of records that come in the order of their keys, each key once. Heights and nodes are
    /// hashed many at once.
    ///
    /// # Errors
    /// If a key is not greater than the one before, empty or longer than
    /// [`MAX_KEY_BYTES`](super::MAX_KEY_BYTES), or the records are too many for memory.
    ///
    /// ```
    /// use codec::cid::{Cid, Codec};
    /// use wireproof_atproto::mst::Tree;
    /// let record = Cid::of(Codec::DagCbor, b"\xa0");
    /// let mut tree = Tree::from_sorted([(b"a/1", record), (b"a/2", record)])?;
    /// assert_eq!(tree.get(b"a/2")?, Some(record.as_cid_ref()));
    /// assert!(Tree::from_sorted([(b"a/2", record), (b"a/1", record)]).is_err());
    /// # Ok::<(), wireproof_atproto::mst::TreeError>(())
    /// ```
    pub fn from_sorted<K: AsRef<[u8]>, V: Into<AnyCid>>(
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, TreeError> {
        let records = records.into_iter();
        let mut arena = Arena::default();
        arena.reserve(records.size_hint().0);
        let mut growth = Growth::default();
        let mut waiting = Vec::with_capacity(HASHED_TOGETHER);
        let mut last: Option<Entry> = None;
        for (key, value) in records {
            let key = key.as_ref();
            check_key(key)?;
            let is_behind = |last: Entry| {
                let last = arena.key_of(&last);
                is_less(last, key, shared_len(last, key))
            };
            if !last.is_none_or(is_behind) {
                return Err(TreeError::of(TreeFault::Order));
            }
            let entry = arena.store(key, value.into().as_cid_ref())?;
            waiting.push(entry);
            last = Some(entry);
            if waiting.len() == HASHED_TOGETHER {
                arena.grow_by(&mut growth, &mut waiting);
            }
        }
        arena.grow_by(&mut growth, &mut waiting);
        let root = arena.finish(growth);
        arena.seal_closed(1);
        Ok(Self::of(arena, root, ()))
    }

    /// The tree of records in any order. Of those with the same key the last one counts, as if they
    /// were inserted one after the other.
    ///
    /// # Errors
    /// If a key is empty or longer than [`MAX_KEY_BYTES`](super::MAX_KEY_BYTES), or the records are
    /// too many for memory.
    pub fn from_unsorted<K: AsRef<[u8]>, V: Into<AnyCid>>(
        mut records: Vec<(K, V)>,
    ) -> Result<Self, TreeError> {
        // The later one first, because of equal neighbours the first is kept.
        records.reverse();
        records.sort_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref()));
        records.dedup_by(|(later, _), (kept, _)| later.as_ref() == kept.as_ref());
        Self::from_sorted(records)
    }
}

impl<'a, S: BlockSource<'a>> Tree<S> {
    /// The tree called `root`, read whole and held against all rules: every node is at hand, parses,
    /// is reached once, and stands where its keys belong, so that the tree is the one that its records
    /// have.
    ///
    /// # Errors
    /// The first broken rule, in the order of keys.
    pub fn load_canonical(root: Cid, source: S, bounds: &TreeLimits) -> Result<Self, TreeError> {
        let mut tree = Self::load_partial(root, source);
        tree.load_root()?;
        let mut reached = HashSet::from([root]);
        let mut records = 0;
        let mut stack = vec![(tree.root, Between::default())];
        while let Some((id, between)) = stack.pop() {
            tree.arena.load(id, between, &tree.source)?;
            let node = tree.arena.node(id);
            records += node.entries.len() as u64;
            if records > bounds.max_records {
                return Err(TreeError::of(TreeFault::Limit(Limit::Records)));
            }
            for slot in (0..=node.entries.len()).rev() {
                let Some(child) = tree.arena.child(id, slot) else { continue };
                let cid = tree.arena.cid(child);
                if !reached.insert(cid) {
                    return Err(TreeError::at(cid, 0, TreeFault::Repeated));
                }
                stack.push((child, between.narrowed(node, slot)));
            }
            if reached.len() as u64 > bounds.max_nodes {
                return Err(TreeError::of(TreeFault::Limit(Limit::Nodes)));
            }
            tree.arena.prove_if_many(HASHED_TOGETHER)?;
        }
        tree.arena.prove()?;
        Ok(tree)
    }
}
