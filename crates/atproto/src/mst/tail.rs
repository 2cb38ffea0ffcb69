//! Keys that are inserted in their order, each behind all others.
//!
//! An import, a log, a writer whose keys are times: after some such inserts the next ones wait, and go
//! into the tree many at once, as in [`Tree::from_sorted`], whose hashes are made side by side. Whatever
//! else is asked of the tree comes after they are in it ([`Tree::settle`]), so nobody sees a difference. An
//! insert waits only if nothing can be wrong with it: its key is greater than the last, the nodes at the
//! right edge are at hand, and each of them has room.

use codec::CidRef;

use super::arena::{Arena, Entry, Growth, is_less, shared_len};
use super::{Tree, TreeError};

/// What goes to the right end of a tree.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    growth: Growth,
    waiting: Vec<Entry>,
    /// How many may wait, whichever node they will go to.
    room: usize,
}

impl Tail {
    /// The last key of the tree, with those that wait.
    #[inline]
    fn last<'t>(&self, arena: &'t Arena) -> Option<&'t [u8]> {
        let last = self.waiting.last().map(Entry::record).or(self.growth.last());
        last.map(|last| arena.key(last))
    }

    #[inline]
    fn may_take(&self, arena: &Arena, key: &[u8]) -> bool {
        let is_behind = |last| is_less(last, key, shared_len(last, key));
        self.waiting.len() < self.room && self.last(arena).is_some_and(is_behind)
    }
}

impl<S> Tree<S> {
    /// Lets a record wait for those after it, if it is one behind all others. Answers whether it was.
    ///
    /// # Errors
    /// If there is no memory for it.
    #[inline]
    pub(super) fn append(&mut self, key: &[u8], value: CidRef<'_>) -> Result<bool, TreeError> {
        if self.in_order < ENOUGH_IN_ORDER {
            return Ok(false);
        }
        self.begin_tail();
        let Self { arena, tail, .. } = self;
        let Some(tail) = tail.as_mut().filter(|tail| tail.may_take(arena, key)) else {
            self.settle();
            return Ok(false);
        };
        tail.waiting.push(arena.store(key, value)?);
        if tail.waiting.len() == HASHED_TOGETHER {
            arena.grow_by(&mut tail.growth, &mut tail.waiting);
            tail.room = arena.room(&tail.growth);
        }
        Ok(true)
    }

    /// Notes that a record was inserted, and whether behind all others.
    #[inline]
    pub(super) fn was_inserted(&mut self, is_last: bool) {
        self.in_order = if is_last { self.in_order.saturating_add(1) } else { 0 };
    }

    /// Puts what waits into the tree.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.tail.is_some() {
            self.end_tail();
        }
    }

    #[inline]
    fn begin_tail(&mut self) {
        if self.tail.is_none() {
            self.tail = self.arena.regrow(self.root).map(|growth| Tail {
                room: self.arena.room(&growth),
                waiting: Vec::with_capacity(HASHED_TOGETHER),
                growth,
            });
        }
    }

    #[cold]
    fn end_tail(&mut self) {
        self.in_order = 0;
        if let Some(mut tail) = self.tail.take() {
            self.arena.grow_by(&mut tail.growth, &mut tail.waiting);
            self.root = self.arena.finish(tail.growth);
            self.arena.forget_closed();
        }
    }
}

/// So many inserts behind all others in a row, and the next one waits.
const ENOUGH_IN_ORDER: u32 = 8;

/// How many keys are hashed at a time: enough to fill the lanes, few enough to stay in the cache.
pub(super) const HASHED_TOGETHER: usize = 512;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use codec::cid::Codec;
    use codec::{AnyCid, Cid};

    use crate::mst::reference::{Records, build};
    use crate::mst::{Limit, MAX_NODE_ENTRIES, Tree, TreeFault, key_height};

    fn key(number: u64) -> Vec<u8> {
        format!("com.example.post/{number:09}").into_bytes()
    }

    fn value(number: u64) -> Cid {
        Cid::of(Codec::DagCbor, &number.to_be_bytes())
    }

    /// What may be done between two inserts.
    const STEPS: [fn(&mut Tree, &mut Records, u64); 9] = [
        |_, _, _| (),
        |tree, records, _| assert_eq!(tree.root(), build(records).root()),
        |tree, records, at| {
            let found = tree.get(&key(at)).unwrap().map(AnyCid::from);
            assert_eq!(found.as_ref(), records.get(&key(at)));
            assert_eq!(tree.get(&key(at + 1)), Ok(None));
        },
        |tree, records, at| {
            let (there, not) = (key(at), key(at + 1));
            let found = tree.get_many(&[&there[..], &not[..]]).unwrap();
            assert_eq!(found[0].map(AnyCid::from).as_ref(), records.get(&there));
            assert_eq!(found[1], None);
        },
        |tree, records, at| {
            let removed = tree.remove(&key(at)).unwrap();
            assert_eq!(removed, records.remove(&key(at)));
        },
        |tree, records, at| {
            let before = tree.insert(&key(at / 2), value(at + 1)).unwrap();
            assert_eq!(before, records.insert(key(at / 2), value(at + 1).into()));
        },
        |tree, records, at| {
            let before = tree.insert(&key(at), value(at + 1)).unwrap();
            assert_eq!(before, records.insert(key(at), value(at + 1).into()));
        },
        |tree, records, _| {
            let walked = tree.iter().map(|record| record.unwrap());
            assert!(walked.eq(records.iter().map(|(key, value)| (key.clone(), value.clone()))));
        },
        |tree, records, at| {
            let proof = tree.record_proof(&key(at)).unwrap();
            let source: BTreeMap<Cid, &[u8]> =
                proof.iter().map(|(cid, block)| (*cid, &block[..])).collect();
            let mut partial = Tree::load_partial(tree.root(), source);
            let found = partial.get(&key(at)).unwrap().map(AnyCid::from);
            assert_eq!(found.as_ref(), records.get(&key(at)));
        },
    ];

    #[test]
    fn keys_in_order_make_the_tree_of_their_records_whatever_happens_between() {
        for (number, step) in STEPS.iter().enumerate() {
            let (mut tree, mut records) = (Tree::empty(), Records::new());
            let mut waited = 0;
            for at in (0..2_400).step_by(2) {
                assert_eq!(tree.insert(&key(at), value(at)), Ok(None));
                records.insert(key(at), value(at).into());
                waited += usize::from(tree.tail.is_some());
                // More and more seldom, so that the tail begins anew at many places.
                if at.is_power_of_two() || at % 100 == 96 || at % 700 < 40 {
                    step(&mut tree, &mut records, at);
                }
            }
            assert!(waited > 100, "step {number}: {waited} inserts waited");
            assert_eq!(tree.clone().root(), build(&records).root(), "step {number}");
            let mut walked = tree.iter().map(|record| record.unwrap());
            assert!(walked.by_ref().eq(records.into_iter()), "step {number}");
        }
    }

    #[test]
    fn a_loaded_tree_goes_on_at_its_end_and_hands_out_what_is_new() {
        let records: Records = (0..500).map(|at| (key(at), value(at).into())).collect();
        let before = build(&records);
        let mut blocks = before.blocks.clone();
        let source = blocks.clone();
        let source: BTreeMap<Cid, &[u8]> = source.iter().map(|(c, b)| (*c, &b[..])).collect();
        let mut tree = Tree::load_partial(before.root(), &source);
        for at in 500..3_000 {
            assert_eq!(tree.insert(&key(at), value(at)), Ok(None));
        }
        assert!(tree.tail.is_some());
        let new = tree.collect_blocks();
        assert!(new.iter().all(|(cid, _)| !source.contains_key(cid)));
        blocks.extend(new);
        let records: Records = (0..3_000).map(|at| (key(at), value(at).into())).collect();
        assert_eq!(tree.root(), build(&records).root());
        let whole: BTreeMap<Cid, &[u8]> = blocks.iter().map(|(c, b)| (*c, &b[..])).collect();
        let mut loaded = Tree::load_canonical(tree.root(), &whole, &Default::default()).unwrap();
        assert_eq!(loaded.iter().count(), 3_000);
    }

    #[test]
    fn a_node_that_is_full_refuses_what_comes_behind_and_keeps_what_it_has() {
        let mut low = (0..).map(key).filter(|key| key_height(key) == 0);
        let mut tree = Tree::empty();
        for key in low.by_ref().take(MAX_NODE_ENTRIES) {
            assert_eq!(tree.insert(&key, value(0)), Ok(None));
        }
        let before = tree.root();
        for key in low.by_ref().take(20) {
            let fault = tree.insert(&key, value(0)).unwrap_err().fault;
            assert_eq!(fault, TreeFault::Limit(Limit::NodeEntries));
        }
        assert_eq!(tree.root(), before);
        assert_eq!(tree.iter().count(), MAX_NODE_ENTRIES);
    }
}
