//! Changing trees: what is to be read is read first, then nothing can fail any more.

use codec::{AnyCid, CidRef};

use super::find::{Place, Shared, is_less, shared_len};
use super::load::Between;
use super::{Arena, Child, Entry, Node, NodeId, State};
use crate::mst::{BlockSource, Limit, MAX_NODE_ENTRIES, TreeError, TreeFault};

/// The way from a root to where a key stands or belongs.
#[derive(Clone, Debug, Default)]
pub(in crate::mst) struct Path {
    /// The nodes on the way, each but the last with the slot of the next.
    steps: Vec<(NodeId, usize)>,
    shared: Shared,
    /// Whether no key is behind the last one that was not found.
    is_last: bool,
}

impl Path {
    /// Whether the key that was looked for last is behind all others.
    #[inline]
    pub(in crate::mst) fn is_last(&self) -> bool {
        self.is_last
    }

    /// The last node, and where the key stands or belongs in it.
    pub(in crate::mst) fn end(&self) -> (NodeId, usize) {
        *self.steps.last().expect("a path starts with the root")
    }

    /// The child in a slot of the last node, and its bounds.
    pub(in crate::mst) fn below(&self, arena: &Arena, slot: usize) -> (Child, Between) {
        let (id, _) = self.end();
        let (_, above) = self.steps.split_last().expect("a path starts with the root");
        let between = between(arena, above).narrowed(arena.node(id), slot);
        (arena.child(id, slot), between)
    }

    /// The bounds of what comes next.
    #[inline]
    fn between(&self, arena: &Arena) -> Between {
        between(arena, &self.steps)
    }

    /// The nodes on the way, from the root.
    pub(in crate::mst) fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> {
        self.steps.iter().map(|(node, _)| *node)
    }
}

/// The bounds of what these steps lead to, from the nearest nodes that have keys on each side.
#[inline]
fn between(arena: &Arena, steps: &[(NodeId, usize)]) -> Between {
    let mut found = Between::default();
    for (id, slot) in steps.iter().rev() {
        found = found.widened(arena.node(*id), *slot);
        if found.is_closed() {
            break;
        }
    }
    found
}

impl Arena {
    /// Goes from the root towards `key`, as far down as `floor` or until a slot is empty.
    ///
    /// # Errors
    /// If a node on the way cannot be loaded.
    #[inline]
    pub(in crate::mst) fn descend<'a>(
        &mut self,
        root: NodeId,
        key: &[u8],
        floor: u8,
        source: &impl BlockSource<'a>,
        path: &mut Path,
    ) -> Result<Place, TreeError> {
        // Keys that come in order are behind all others: 50,000 ascending inserts with the root at the
        // end take 195 ns each instead of 245, on a Zen 5 core that others used too.
        let last_slot =
            |arena: &Self, id, _: &[u8], _: &mut Shared| Err(arena.node(id).entries.len());
        if path.is_last
            && let Ok(last) = self.descend_by(last_slot, root, key, floor, source, path)
            && self.is_last(key, path)
        {
            return Ok(last);
        }
        let place = self.descend_by(Self::find, root, key, floor, source, path)?;
        path.is_last = place.is_err() && path.shared.behind.is_none();
        Ok(place)
    }

    #[inline(always)]
    fn descend_by<'a>(
        &mut self,
        find: impl Fn(&Self, NodeId, &[u8], &mut Shared) -> Place,
        root: NodeId,
        key: &[u8],
        floor: u8,
        source: &impl BlockSource<'a>,
        path: &mut Path,
    ) -> Result<Place, TreeError> {
        path.steps.clear();
        path.shared = Shared::default();
        let mut id = root;
        loop {
            if self.node(id).state == State::Stub {
                self.load(id, path.between(self), source)?;
            }
            let place = find(self, id, key, &mut path.shared);
            let (Ok(slot) | Err(slot)) = place;
            path.steps.push((id, slot));
            match self.child(id, slot) {
                Some(next) if place.is_err() && self.node(id).height > floor => id = next,
                _ => return Ok(place),
            }
        }
    }

    /// Whether the last key of the tree, which the path leads behind, is less than `key`; notes what
    /// the two share.
    #[inline]
    fn is_last(&self, key: &[u8], path: &mut Path) -> bool {
        let Some(last) = path.between(self).before else { return false };
        let last = self.key(last);
        let shared = shared_len(last, key);
        path.shared.before = Some(shared);
        is_less(last, key, shared)
    }

    /// Puts `value` at `key`, whose height is given; answers the value before, if there was one.
    ///
    /// # Errors
    /// If a node that has to be read cannot be, or a bound is hit. The tree is then as before.
    #[inline]
    pub(in crate::mst) fn insert<'a>(
        &mut self,
        root: &mut NodeId,
        (key, height): (&[u8], u8),
        value: CidRef<'_>,
        source: &impl BlockSource<'a>,
        path: &mut Path,
    ) -> Result<Option<AnyCid>, TreeError> {
        if self.node(*root).is_bare() {
            self.touch(*root);
            self.node_mut(*root).height = height;
        }
        if self.node(*root).height < height {
            return self.insert_above(root, (key, height), value, source).map(|()| None);
        }
        let place = self.descend(*root, key, height, source, path);
        let ready = match place {
            Ok(Err(slot)) if self.child(path.end().0, slot).is_some() => {
                self.load_seam(path.below(self, slot), key, source)
            }
            _ => Ok(()),
        };
        self.prove()?;
        match (place?, ready?) {
            (Ok(index), ()) => self.put_value(path, index, value).map(Some),
            (Err(slot), ()) => self.insert_below(path, slot, (key, height), value).map(|()| None),
        }
    }

    /// Inserts a key that becomes the only one of a new root.
    #[cold]
    fn insert_above<'a>(
        &mut self,
        root: &mut NodeId,
        (key, height): (&[u8], u8),
        value: CidRef<'_>,
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        let ready = self.load_seam((Some(*root), Between::default()), key, source);
        self.prove()?;
        ready?;
        let entry = self.store(key, value)?;
        let below = self.node(*root).height;
        let (left, right) = self.split(Some(*root), key);
        let left = self.raise(left, below, height);
        let right = self.raise(right, below, height);
        *root = self.empty_node(height, left);
        self.put(*root, 0, Entry { right, ..entry }, Shared::default());
        Ok(())
    }

    /// Inserts a key into the last node of its path, or into a new one below.
    #[inline]
    fn insert_below(
        &mut self,
        path: &Path,
        slot: usize,
        (key, height): (&[u8], u8),
        value: CidRef<'_>,
    ) -> Result<(), TreeError> {
        let (id, _) = path.end();
        if self.node(id).entries.len() == MAX_NODE_ENTRIES {
            return Err(TreeError::of(TreeFault::Limit(Limit::NodeEntries)));
        }
        let entry = self.store(key, value)?;
        let layer = self.node(id).height;
        if layer > height {
            let leaf = self.empty_node(height, None);
            self.put(leaf, 0, entry, path.shared);
            let child = self.raise(Some(leaf), height, layer);
            self.set_child(id, slot, child);
        } else {
            let (left, right) = self.split(self.child(id, slot), key);
            self.set_child(id, slot, left);
            self.put(id, slot, Entry { right, ..entry }, path.shared);
        }
        path.nodes().for_each(|node| self.touch(node));
        Ok(())
    }

    /// Puts `value` at `key` if the key is in the tree; answers the value before.
    ///
    /// # Errors
    /// If a node that has to be read cannot be. The tree is then as before.
    pub(in crate::mst) fn replace<'a>(
        &mut self,
        root: NodeId,
        key: &[u8],
        value: CidRef<'_>,
        source: &impl BlockSource<'a>,
        path: &mut Path,
    ) -> Result<Option<AnyCid>, TreeError> {
        let place = self.descend(root, key, 0, source, path);
        self.prove()?;
        place?.ok().map(|index| self.put_value(path, index, value)).transpose()
    }

    /// Puts another value where the path ends.
    fn put_value(
        &mut self,
        path: &Path,
        index: usize,
        value: CidRef<'_>,
    ) -> Result<AnyCid, TreeError> {
        let (id, _) = path.end();
        let entry = self.node(id).entries.get(index).expect("the path ends at an entry");
        let before = AnyCid::from(self.value_of(&entry));
        if before.as_cid_ref() == value {
            return Ok(before);
        }
        let key = self.key_of(&entry).to_vec();
        let stored = self.store(&key, value)?;
        self.node_mut(id).entries.set_record(index, stored.record);
        path.nodes().for_each(|node| self.touch(node));
        Ok(before)
    }

    /// Takes away `key`; answers its value, if it was there.
    ///
    /// # Errors
    /// If a node that has to be read cannot be. The tree is then as before.
    #[inline]
    pub(in crate::mst) fn remove<'a>(
        &mut self,
        root: &mut NodeId,
        key: &[u8],
        source: &impl BlockSource<'a>,
        path: &mut Path,
    ) -> Result<Option<Entry>, TreeError> {
        let place = self.descend(*root, key, 0, source, path);
        let ready = match place {
            Ok(Ok(index)) => self.load_around(path, index, source),
            _ => Ok(()),
        };
        self.prove()?;
        let (Ok(index), ()) = (place?, ready?) else { return Ok(None) };
        let (id, _) = path.end();
        let (left, right) = (self.child(id, index), self.child(id, index + 1));
        let merged = self.merge(left, right);
        let entry = self.node_mut(id).entries.remove(index);
        self.set_child(id, index, merged);
        path.nodes().for_each(|node| self.touch(node));
        self.prune(path);
        self.trim(root);
        Ok(Some(entry))
    }

    /// Loads the nodes that a split at `key` cuts.
    fn load_seam<'a>(
        &mut self,
        (mut child, mut between): (Child, Between),
        key: &[u8],
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        while let Some(id) = child {
            self.load(id, between, source)?;
            let (Ok(slot) | Err(slot)) = self.find(id, key, &mut Shared::default());
            between = between.narrowed(self.node(id), slot);
            child = self.child(id, slot);
        }
        Ok(())
    }

    /// Loads the nodes that meet when the entry at the end of the path goes.
    fn load_around<'a>(
        &mut self,
        path: &Path,
        index: usize,
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        let (mut left, mut left_between) = path.below(self, index);
        let (mut right, mut right_between) = path.below(self, index + 1);
        while let (Some(l), Some(r)) = (left, right) {
            self.load(l, left_between, source)?;
            self.load(r, right_between, source)?;
            let len = self.node(l).entries.len();
            if len + self.node(r).entries.len() > MAX_NODE_ENTRIES {
                return Err(TreeError::of(TreeFault::Limit(Limit::NodeEntries)));
            }
            left_between = left_between.narrowed(self.node(l), len);
            right_between = right_between.narrowed(self.node(r), 0);
            (left, right) = (self.child(l, len), self.child(r, 0));
        }
        let is_root = path.steps.len() == 1 && self.node(path.end().0).entries.len() == 1;
        match (left, right) {
            (Some(only), None) if is_root => self.load_top(only, left_between, source),
            (None, Some(only)) if is_root => self.load_top(only, right_between, source),
            _ => Ok(()),
        }
    }

    /// Loads the subtree that may become the whole tree as far down as its first entry. If it is not
    /// at hand, its name will do.
    fn load_top<'a>(
        &mut self,
        mut id: NodeId,
        between: Between,
        source: &impl BlockSource<'a>,
    ) -> Result<(), TreeError> {
        loop {
            match self.load(id, between, source) {
                Err(TreeError { fault: TreeFault::Missing, .. }) => return Ok(()),
                loaded => loaded?,
            }
            match self.node(id) {
                Node { entries, .. } if entries.is_empty() => match entries.left() {
                    Some(left) => id = left,
                    None => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    /// Cuts a subtree in two: what is before `key` and what is behind it.
    fn split(&mut self, child: Child, key: &[u8]) -> (Child, Child) {
        let Some(id) = child else { return (None, None) };
        let (Ok(slot) | Err(slot)) = self.find(id, key, &mut Shared::default());
        let (before, behind) = self.split(self.child(id, slot), key);
        let len = self.node(id).entries.len();
        // All on one side: the node stays as it is.
        if slot == len && behind.is_none() {
            return (child, None);
        }
        if slot == 0 && before.is_none() {
            return (None, child);
        }
        self.touch(id);
        let Node { height, ref entries, .. } = *self.node(id);
        let skip = entries.skip;
        let right = self.empty_node(height, behind);
        let (from, to) = self.two_nodes(id, right);
        to.entries.skip = skip;
        from.entries.split_off(slot, &mut to.entries);
        self.set_child(id, slot, before);
        (Some(id), Some(right))
    }

    /// Joins two subtrees of one height that have become neighbours.
    fn merge(&mut self, left: Child, right: Child) -> Child {
        let (Some(l), Some(r)) = (left, right) else { return left.or(right) };
        let seam = self.node(l).entries.len();
        let inner = self.merge(self.child(l, seam), self.child(r, 0));
        self.set_child(l, seam, inner);
        self.touch(l);
        let (to, from) = self.two_nodes(l, r);
        to.entries.append(&mut from.entries);
        self.drop_node(r);
        self.skip_shared(l, Between::default());
        left
    }

    /// Puts empty nodes above a subtree, so that it can stand below a node of `height`.
    fn raise(&mut self, mut child: Child, from: u8, height: u8) -> Child {
        for layer in from + 1..height {
            child = child.map(|below| self.empty_node(layer, Some(below)));
        }
        child
    }

    /// Takes away the nodes at the end of the path that have become empty.
    fn prune(&mut self, path: &Path) {
        for pair in path.steps.windows(2).rev() {
            let [(parent, slot), (id, _)] = *pair else { unreachable!("windows of two") };
            if !self.node(id).is_bare() {
                return;
            }
            self.drop_node(id);
            self.set_child(parent, slot, None);
        }
    }

    /// Takes away the roots that have no entry, down to one that has.
    fn trim(&mut self, root: &mut NodeId) {
        while let Node { entries, state, .. } = self.node(*root)
            && let Some(left) = entries.left()
            && entries.is_empty()
            && *state != State::Stub
        {
            self.drop_node(*root);
            *root = left;
        }
        if self.node(*root).is_bare() {
            self.node_mut(*root).height = 0;
        }
    }

    fn two_nodes(&mut self, a: NodeId, b: NodeId) -> (&mut Node, &mut Node) {
        let [a, b] = self
            .nodes
            .get_disjoint_mut([a.index(), b.index()])
            .expect("two different nodes of the arena");
        (a, b)
    }
}
