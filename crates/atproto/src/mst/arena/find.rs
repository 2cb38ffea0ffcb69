//! Where does a key stand among the entries of a node?
//!
//! A compare of two words decides nearly always. That it may, the key must share the node's first
//! `skip` bytes. On the way down that is known for free: what lies between two keys shares all that the
//! two share, so a key shares with a node at least what it shares with the keys on both sides of the
//! child it came by. Only where that is less, at the edges of the tree and in nodes that were made
//! with narrower bounds than they have now, bytes are compared.
//!
//! Who only wants to know where a key is that is probably there can do without ([`Arena::guess`]): a
//! key of the tree does share what its node shares, and the end shows whether it was one.
//!
//! In words, a key that ends is followed by zeros. This keeps the order, except that words may be equal
//! where keys are not, and then bytes are compared.

use std::cmp::Ordering;

use kernels::prefetch;

use super::load::Between;
use super::{Arena, Entry, Node, NodeId, RecordRef, key_in};

/// The slot that a key belongs to, or the index of the entry that has it.
pub(in crate::mst) type Place = Result<usize, usize>;

/// What a key shares with the ones beside it, in bytes; `None` if there is no such one in the tree.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::mst) struct Shared {
    pub(super) before: Option<usize>,
    pub(super) behind: Option<usize>,
}

/// How far a look-up has come among others.
#[derive(Clone, Copy)]
enum Way {
    To(NodeId),
    /// At a node that may have the key: some key has its word.
    Compare(NodeId),
    Ended(Option<RecordRef>),
}

impl Shared {
    /// What the key shares with all keys of the node that it came to.
    #[inline(always)]
    fn with_all(self) -> usize {
        self.before.unwrap_or(0).min(self.behind.unwrap_or(0))
    }

    /// How many bytes to skip in a node that has only this key: what later keys will share, it is
    /// hoped.
    fn hint(self) -> usize {
        self.before.unwrap_or(usize::MAX).min(self.behind.unwrap_or(usize::MAX))
    }
}

impl Arena {
    /// Looks for `key` in a loaded node: `Ok` of the entry's index, or `Err` of the slot. `shared` is
    /// brought from the parent and made ready for the child in that slot.
    #[inline]
    pub(in crate::mst) fn find(&self, id: NodeId, key: &[u8], shared: &mut Shared) -> Place {
        let node = self.node(id);
        let skip = usize::from(node.entries.skip);
        if skip > shared.with_all()
            && let Some(slot) = self.outside(node, key, shared)
        {
            return Err(slot);
        }
        let place = self.guess(id, key);
        if let Err(slot) = place {
            let word = word_at(key, skip);
            let shares = |other: Entry| {
                (skip + (word ^ other.word).leading_zeros() as usize / 8).min(key.len())
            };
            let before = node.entries.get(slot.wrapping_sub(1)).map(shares);
            let behind = node.entries.get(slot).map(shares);
            *shared = Shared { before: before.or(shared.before), behind: behind.or(shared.behind) };
        }
        place
    }

    /// As [`Arena::find`], if the key shares what all keys of the node share. Else `Err` of any slot.
    #[inline(always)]
    pub(in crate::mst) fn guess(&self, id: NodeId, key: &[u8]) -> Place {
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

    /// Looks for `key` where nothing has to be loaded; `None` if it is not found so.
    #[inline]
    pub(in crate::mst) fn look_up(&self, root: NodeId, key: &[u8]) -> Option<RecordRef> {
        let mut id = root;
        // A stub has no entries and no children, so its state need not be looked at.
        loop {
            match self.guess(id, key) {
                Ok(index) => return Some(self.node(id).entries.get(index)?.record),
                Err(slot) => id = self.child(id, slot)?,
            }
        }
    }

    /// As [`Arena::look_up`], for many keys: they go down the tree side by side, and what the next step
    /// of each will read is on its way while the others take theirs.
    pub(in crate::mst) fn look_up_many(
        &self,
        root: NodeId,
        keys: &[&[u8]],
        found: &mut Vec<Option<RecordRef>>,
    ) {
        let mut ways = [Way::Ended(None); SIDE_BY_SIDE];
        for keys in keys.chunks(SIDE_BY_SIDE) {
            let ways = &mut ways[..keys.len()];
            ways.fill(Way::To(root));
            keys.iter().for_each(|key| prefetch::bytes(key));
            while ways.iter().any(|way| !matches!(way, Way::Ended(_))) {
                for (way, key) in ways.iter_mut().zip(keys) {
                    *way = self.step(*way, key);
                }
            }
            found.extend(ways.iter().map(|way| match way {
                Way::Ended(record) => *record,
                Way::To(_) | Way::Compare(_) => unreachable!("the loop ends when all have"),
            }));
        }
    }

    #[inline(always)]
    fn step(&self, way: Way, key: &[u8]) -> Way {
        let (id, place) = match way {
            Way::Ended(_) => return way,
            Way::Compare(id) => (id, self.guess(id, key)),
            Way::To(id) => {
                let entries = &self.node(id).entries;
                let word = word_at(key, usize::from(entries.skip));
                let slot = entries.first_not_below(word);
                let has_word = !entries.has_other_word(slot, word);
                match entries.get(slot).filter(|_| has_word) {
                    Some(alike) => {
                        self.ask_for(alike.record);
                        return Way::Compare(id);
                    }
                    None => (id, Err(slot)),
                }
            }
        };
        match place {
            Ok(index) => Way::Ended(self.node(id).entries.get(index).map(|entry| entry.record)),
            Err(slot) => match self.child(id, slot) {
                Some(child) => {
                    prefetch::value(self.node(child));
                    Way::To(child)
                }
                None => Way::Ended(None),
            },
        }
    }

    /// The outermost slot, if `key` does not share the bytes that all keys of the node share.
    fn outside(&self, node: &Node, key: &[u8], shared: &mut Shared) -> Option<usize> {
        let common = &self.key_of(&node.entries.first()?)[..usize::from(node.entries.skip)];
        let len = shared_len(common, key);
        if len == common.len() {
            None
        } else if is_less(key, common, len) {
            shared.behind = Some(len);
            Some(0)
        } else {
            shared.before = Some(len);
            Some(node.entries.len())
        }
    }

    /// Puts an entry into a slot, whose child stays before it. `shared` is what its key shares with
    /// the keys beside it in the tree.
    #[inline]
    pub(super) fn put(&mut self, id: NodeId, slot: usize, entry: Entry, shared: Shared) {
        let node = self.node(id);
        let len = node.entries.len();
        // With a neighbour in the node it shares no less than with any other key there.
        let before = shared.before.filter(|_| slot > 0);
        let behind = shared.behind.filter(|_| slot < len);
        let with_neighbour = before.max(behind);
        let key_len = self.key_of(&entry).len();
        let skip = usize::from(node.entries.skip);
        let new_skip = match (len, with_neighbour) {
            (0, _) => shared.hint().min(key_len),
            (_, None) => 0,
            (_, Some(shared)) => skip.min(shared),
        };
        let word = word_at(self.key_of(&entry), skip);
        self.node_mut(id).entries.insert(slot, Entry { word, ..entry });
        if new_skip == skip {
            self.tell_apart(id, slot);
        } else {
            self.set_skip(id, new_skip);
        }
    }

    /// Lets the node's words start where its keys begin to differ, if those beside `at` do not.
    #[inline]
    fn tell_apart(&mut self, id: NodeId, at: usize) {
        let entries = &self.node(id).entries;
        let word = |index| entries.get(index).map(|entry| entry.word);
        let own = word(at);
        if own == word(at.wrapping_sub(1)) || own == word(at + 1) {
            self.skip_shared(id, Between::default());
        }
    }

    /// Makes the words of the node start where the keys between which it stands begin to differ, or its
    /// own where there are none: what lies below it, also before its first key, then shares as much.
    #[inline]
    pub(super) fn skip_shared(&mut self, id: NodeId, between: Between) {
        let entries = &self.node(id).entries;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return };
        let first = between.before.unwrap_or(first.record);
        let last = between.behind.unwrap_or(last.record);
        let skip = shared_len(self.key(first), self.key(last));
        self.set_skip(id, skip);
    }

    /// Makes all words of the node start behind `skip` bytes, which all its keys share.
    pub(super) fn set_skip(&mut self, id: NodeId, skip: usize) {
        let Self { nodes, bytes, .. } = self;
        let entries = &mut nodes[id.index()].entries;
        entries.set_words(|record| word_at(key_in(bytes, record), skip));
        entries.skip = skip as u16;
    }
}

/// The eight bytes of `key` behind its first `skip`, in an order that numbers have too.
#[inline(always)]
pub(super) fn word_at(key: &[u8], skip: usize) -> u64 {
    // Near the end of a key its last eight bytes are read, and those before moved out: whether that is
    // so cannot be predicted, so there is no branch.
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

/// How many bytes two keys share.
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

/// Whether `a` is less than `b`, given what they share.
#[inline]
pub(in crate::mst) fn is_less(a: &[u8], b: &[u8], shared: usize) -> bool {
    a.get(shared) < b.get(shared)
}

/// Look-ups that go down together: about as many as a core has misses in flight.
const SIDE_BY_SIDE: usize = 16;
