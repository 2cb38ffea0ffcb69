//! Keys that are inserted in their order, each behind all others.
//!
//! An import, a log, a writer whose keys are times: after some such inserts the next ones wait, and go
//! into the tree many at once, as in [`Tree::from_sorted`], whose hashes are made side by side. Whatever
//! else is asked of the tree comes after they are in it ([`Tree::settle`]), so nobody sees a difference. An
//! insert waits only if nothing can be wrong with it: its key is greater than the last, the nodes at the
//! right edge are at hand, and each of them has room. Who asks after every few inserts gains nothing by
//! this, so there the next ones wait more and more seldom.

use codec::CidRef;

use super::arena::{Arena, Entry, Growth, is_less, shared_len};
use super::{Tree, TreeError};

/// Inserts behind all others, one after the other, and how many make it likely that more will come.
#[derive(Clone, Copy, Debug)]
pub(super) struct InOrder {
    inserts: u32,
    enough: u32,
}

impl Default for InOrder {
    fn default() -> Self {
        Self { inserts: 0, enough: ENOUGH_IN_ORDER }
    }
}

impl InOrder {
    /// Notes that a record was inserted, and whether behind all others.
    #[inline]
    pub(super) fn note(&mut self, is_last: bool) {
        self.inserts = if is_last { self.inserts.saturating_add(1) } else { 0 };
    }

    /// Begins anew after so many inserts that waited: more carefully, if they were not worth the while.
    fn begin_anew(&mut self, waited: usize) {
        let more = (self.enough * 2).min(MOST_IN_ORDER);
        let enough = if waited < WORTH_WAITING { more } else { ENOUGH_IN_ORDER };
        *self = Self { inserts: 0, enough };
    }
}

/// What goes to the right end of a tree.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    growth: Growth,
    waiting: Vec<Entry>,
    /// How many have waited, those that wait among them.
    waited: usize,
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
        if self.in_order.inserts < self.in_order.enough {
            return Ok(false);
        }
        self.begin_tail();
        let Self { arena, tail, .. } = self;
        let Some(tail) = tail.as_mut().filter(|tail| tail.may_take(arena, key)) else {
            self.settle();
            return Ok(false);
        };
        tail.waiting.push(arena.store(key, value)?);
        tail.waited += 1;
        if tail.waiting.len() == HASHED_TOGETHER {
            arena.grow_by(&mut tail.growth, &mut tail.waiting);
            tail.room = arena.room(&tail.growth);
        }
        Ok(true)
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
                waited: 0,
                growth,
            });
        }
    }

    #[cold]
    fn end_tail(&mut self) {
        if let Some(mut tail) = self.tail.take() {
            self.in_order.begin_anew(tail.waited);
            self.arena.grow_by(&mut tail.growth, &mut tail.waiting);
            self.root = self.arena.finish(tail.growth);
            self.arena.forget_closed();
        }
    }
}

/// So many inserts behind all others in a row, and the next one waits.
const ENOUGH_IN_ORDER: u32 = 8;

/// So many at most, where what waited was asked for too soon again and again: 50,000 ascending inserts,
/// each with a look-up behind it, take 570 ns each instead of 840, and 480 if none ever waits, which leaves
/// the nodes without names (Zen 5, time of the processor). In tests few, so that it is tried often.
const MOST_IN_ORDER: u32 = if cfg!(test) { 16 } else { 1_024 };

/// So many inserts that wait are worth beginning and ending a tail: with a look-up behind every 20th it
/// costs more than it gains, with the root behind every 100th an insert takes 230 ns instead of 370.
const WORTH_WAITING: usize = 64;

/// How many keys are hashed at a time: enough to fill the lanes, few enough to stay in the cache. Tests
/// of small trees must get there too.
pub(super) const HASHED_TOGETHER: usize = if cfg!(test) { 24 } else { 512 };

#[cfg(test)]
mod tests;
