//! Searching a key in a node, and in a loaded tree.
//!
//! Comparing two words decides nearly always, provided that the key shares the node's first `skip` bytes.
//! During a descent that costs nothing to know: keys between two keys share the prefix that the two share,
//! so a key shares with a node at least the bytes that it shares with the keys on both sides of the followed
//! child. Only where that is less, at the edges of the tree and in nodes that had narrower bounds when
//! they were made, bytes are compared.
//!
//! A lookup can omit that check ([`Arena::find_assuming_prefix`]): a key of the tree does share its node's
//! prefix, and the comparison with the key that is found shows whether it was one.
//!
//! In words, a key that ends is followed by zeros. This keeps the order, except that words may be equal
//! where keys are not; then bytes are compared.

use std::cmp::Ordering;

use kernels::prefetch;

use super::load::KeyBounds;
use super::{Arena, Entry, Node, NodeId, RecordRef, key_in};

/// The index of the entry that has a key, or else the slot that the key belongs to.
pub(in crate::mst) type KeyPosition = Result<usize, usize>;

/// Bytes that a key shares with its two neighbors in the tree; `None` where there is no neighbor.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::mst) struct SharedPrefix {
    pub(super) prev: Option<usize>,
    pub(super) next: Option<usize>,
}

/// The state of one of several interleaved lookups.
#[derive(Clone, Copy)]
enum Lookup {
    Descend(NodeId),
    /// At a node where some key has the same word.
    Compare(NodeId),
    Done(Option<RecordRef>),
}

impl SharedPrefix {
    /// Bytes that the key shares with all keys of the node that the search has reached.
    #[inline(always)]
    fn with_all(self) -> usize {
        self.prev.unwrap_or(0).min(self.next.unwrap_or(0))
    }

    /// The bytes to skip in a node that has only this key: an estimate of the prefix that later keys will share.
    fn hint(self) -> usize {
        self.prev.unwrap_or(usize::MAX).min(self.next.unwrap_or(usize::MAX))
    }
}

impl Arena {
    /// Searches `key` in a loaded node: `Ok` of the entry's index, or `Err` of the slot. `shared` comes from
    /// the parent and is updated for the child in that slot.
    #[inline]
    pub(in crate::mst) fn find(
        &self,
        id: NodeId,
        key: &[u8],
        shared: &mut SharedPrefix,
    ) -> KeyPosition {
        let node = self.node(id);
        let skip = usize::from(node.entries.skip);
        if skip > shared.with_all()
            && let Some(slot) = self.slot_outside_prefix(node, key, shared)
        {
            return Err(slot);
        }
        let position = self.find_assuming_prefix(id, key);
        if let Err(slot) = position {
            let word = word_at(key, skip);
            let shares = |other: Entry| {
                (skip + (word ^ other.word).leading_zeros() as usize / 8).min(key.len())
            };
            let prev = node.entries.get(slot.wrapping_sub(1)).map(shares);
            let next = node.entries.get(slot).map(shares);
            *shared = SharedPrefix { prev: prev.or(shared.prev), next: next.or(shared.next) };
        }
        position
    }

    /// As [`Arena::find`], provided that the key shares the bytes that all keys of the node share;
    /// otherwise `Err` of any slot.
    #[inline(always)]
    pub(in crate::mst) fn find_assuming_prefix(&self, id: NodeId, key: &[u8]) -> KeyPosition {
        let node = self.node(id);
        let word = word_at(key, usize::from(node.entries.skip));
        let mut at = node.entries.first_not_below(word);
        while !node.entries.has_other_word(at, word)
            && let Some(entry) = node.entries.get(at)
        {
            match self.key_of(&entry).cmp(key) {
                Ordering::Less => at += 1,
                Ordering::Equal => return Ok(at),
                Ordering::Greater => break,
            }
        }
        Err(at)
    }

    /// Looks up `key` among the loaded nodes. `None` proves nothing: edits leave nodes whose children do
    /// not share the bytes that their own keys share.
    #[inline]
    pub(in crate::mst) fn look_up(&self, root: NodeId, key: &[u8]) -> Option<RecordRef> {
        let mut id = root;
        // A stub has no entries and no children, so its state need not be checked.
        loop {
            match self.find_assuming_prefix(id, key) {
                Ok(index) => return Some(self.node(id).entries.get(index)?.record),
                Err(slot) => id = self.child(id, slot)?,
            }
            self.prefetch_node(id);
        }
    }

    /// Looks up `key` among the loaded nodes, even where a child does not share the bytes that the keys of
    /// its parent share.
    pub(in crate::mst) fn look_up_exactly(&self, root: NodeId, key: &[u8]) -> Option<RecordRef> {
        let mut shared = SharedPrefix::default();
        let mut id = root;
        loop {
            match self.find(id, key, &mut shared) {
                Ok(index) => return self.record(id, index),
                Err(slot) => id = self.child(id, slot)?,
            }
        }
    }

    /// As [`Arena::look_up`] for many keys, interleaved: while a lookup takes a step, the memory for the
    /// others' next steps is prefetched.
    pub(in crate::mst) fn look_up_many(
        &self,
        root: NodeId,
        keys: &[&[u8]],
        found: &mut Vec<Option<RecordRef>>,
    ) {
        let mut lookups = [Lookup::Done(None); INTERLEAVED];
        for keys in keys.chunks(INTERLEAVED) {
            let lookups = &mut lookups[..keys.len()];
            lookups.fill(Lookup::Descend(root));
            keys.iter().for_each(|key| prefetch::bytes(key));
            while lookups.iter().any(|lookup| !matches!(lookup, Lookup::Done(_))) {
                for (lookup, key) in lookups.iter_mut().zip(keys) {
                    *lookup = self.step(*lookup, key);
                }
            }
            found.extend(lookups.iter().map(|lookup| match lookup {
                Lookup::Done(record) => *record,
                Lookup::Descend(_) | Lookup::Compare(_) => {
                    unreachable!("the loop ends when all are done")
                }
            }));
        }
    }

    #[inline(always)]
    fn step(&self, lookup: Lookup, key: &[u8]) -> Lookup {
        let (id, position) = match lookup {
            Lookup::Done(_) => return lookup,
            Lookup::Compare(id) => (id, self.find_assuming_prefix(id, key)),
            Lookup::Descend(id) => {
                let entries = &self.node(id).entries;
                let word = word_at(key, usize::from(entries.skip));
                let slot = entries.first_not_below(word);
                let has_word = !entries.has_other_word(slot, word);
                match entries.get(slot).filter(|_| has_word) {
                    Some(candidate) => {
                        self.prefetch_key(candidate.record);
                        return Lookup::Compare(id);
                    }
                    None => (id, Err(slot)),
                }
            }
        };
        match position {
            Ok(index) => Lookup::Done(self.node(id).entries.get(index).map(|entry| entry.record)),
            Err(slot) => match self.child(id, slot) {
                Some(child) => {
                    prefetch::value(self.node(child));
                    Lookup::Descend(child)
                }
                None => Lookup::Done(None),
            },
        }
    }

    /// The outermost slot, if `key` does not share the bytes that all keys of the node share.
    fn slot_outside_prefix(
        &self,
        node: &Node,
        key: &[u8],
        shared: &mut SharedPrefix,
    ) -> Option<usize> {
        let common = &self.key_of(&node.entries.first()?)[..usize::from(node.entries.skip)];
        let len = shared_len(common, key);
        if len == common.len() {
            None
        } else if is_less(key, common, len) {
            shared.next = Some(len);
            Some(0)
        } else {
            shared.prev = Some(len);
            Some(node.entries.len())
        }
    }

    /// Inserts an entry in a slot, whose child stays before it. `shared` is the prefix that its key shares
    /// with its neighbors in the tree.
    #[inline]
    pub(super) fn put(&mut self, id: NodeId, slot: usize, entry: Entry, shared: SharedPrefix) {
        let node = self.node(id);
        let len = node.entries.len();
        // It shares at least as much with a neighbor in the node as with any other key there.
        let prev = shared.prev.filter(|_| slot > 0);
        let next = shared.next.filter(|_| slot < len);
        let with_neighbor = prev.max(next);
        let key_len = self.key_of(&entry).len();
        let skip = usize::from(node.entries.skip);
        let new_skip = match (len, with_neighbor) {
            (0, _) => shared.hint().min(key_len),
            (_, None) => 0,
            (_, Some(shared)) => skip.min(shared),
        };
        let word = word_at(self.key_of(&entry), skip);
        self.node_mut(id).entries.insert(slot, Entry { word, ..entry });
        if new_skip == skip {
            self.separate_words(id, slot);
        } else {
            self.set_skip(id, new_skip);
        }
    }

    /// Makes the node's words start where its keys begin to differ, if the words next to `at` are equal.
    #[inline]
    fn separate_words(&mut self, id: NodeId, at: usize) {
        let entries = &self.node(id).entries;
        let word = |index| entries.get(index).map(|entry| entry.word);
        let own = word(at);
        if own == word(at.wrapping_sub(1)) || own == word(at + 1) {
            self.reset_skip(id, KeyBounds::default());
        }
    }

    /// Makes the node's words start where its bounds begin to differ, or its own outermost keys where there
    /// is no bound: all keys below it, even before its first key, share as many bytes.
    #[inline]
    pub(super) fn reset_skip(&mut self, id: NodeId, bounds: KeyBounds) {
        let entries = &self.node(id).entries;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return };
        let first = bounds.prev.unwrap_or(first.record);
        let last = bounds.next.unwrap_or(last.record);
        let skip = shared_len(self.key(first), self.key(last));
        self.set_skip(id, skip);
    }

    /// Makes all words of the node start after `skip` bytes, which all its keys share.
    pub(super) fn set_skip(&mut self, id: NodeId, skip: usize) {
        let Self { nodes, bytes, .. } = self;
        let entries = &mut nodes[id.index()].entries;
        entries.set_words(|record| word_at(key_in(bytes, record), skip));
        entries.skip = skip as u16;
    }
}

/// The eight bytes of `key` after its first `skip`, as a big-endian number, so that the order is kept.
#[inline(always)]
pub(super) fn word_at(key: &[u8], skip: usize) -> u64 {
    // Near the end of a key its last eight bytes are read, and the extra ones shifted out: whether that is
    // so is unpredictable, so there is no branch.
    let Some(last) = key.len().checked_sub(8) else { return word_at_end(key, skip) };
    let at = skip.min(last);
    let word = key[at..].first_chunk().map_or(0, |word| u64::from_be_bytes(*word));
    u32::try_from(8 * (skip - at)).ok().and_then(|bits| word.checked_shl(bits)).unwrap_or(0)
}

#[cold]
fn word_at_end(key: &[u8], skip: usize) -> u64 {
    let mut word = [0; 8];
    let rest = key.get(skip..).unwrap_or(&[]);
    word[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(word)
}

/// The length of the common prefix of two keys.
#[inline]
pub(in crate::mst) fn shared_len(a: &[u8], b: &[u8]) -> usize {
    let (a_words, _) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    let mut len = 0;
    for (a, b) in a_words.iter().zip(b_words) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return len + differing.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + a[len..].iter().zip(&b[len..]).take_while(|(a, b)| a == b).count()
}

/// Whether `a` is less than `b`, given the length of their common prefix.
#[inline]
pub(in crate::mst) fn is_less(a: &[u8], b: &[u8], shared: usize) -> bool {
    a.get(shared) < b.get(shared)
}

/// Lookups that descend together: about as many as a core has cache misses in flight.
const INTERLEAVED: usize = 16;
