//! A list that starts on the stack and moves to the arena: lists whose length the input does not state.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

/// A list of up to `N` items on the stack, in the arena once it is finished or longer.
pub(crate) struct ArenaList<'a, T: Copy, const N: usize> {
    arena: &'a Bump,
    // The first `len` items, unless `long` holds them.
    short: [T; N],
    len: usize,
    long: Option<BumpVec<'a, T>>,
}

impl<'a, T: Copy, const N: usize> ArenaList<'a, T, N> {
    /// An empty list; `filler` initializes the unused places and is never read.
    #[inline]
    pub(crate) fn new(arena: &'a Bump, filler: T) -> Self {
        Self { arena, short: [filler; N], len: 0, long: None }
    }

    /// Number of items.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        match (&mut self.long, self.short.get_mut(self.len)) {
            (None, Some(slot)) => *slot = item,
            _ => self.push_long(item),
        }
        self.len += 1;
    }

    #[cold]
    fn push_long(&mut self, item: T) {
        let start = || BumpVec::from_iter_in(self.short, self.arena);
        self.long.get_or_insert_with(start).push(item);
    }

    /// The list, in the arena.
    #[inline]
    pub(crate) fn finish(self) -> &'a [T] {
        match self.long {
            Some(long) => long.into_bump_slice(),
            None => self.arena.alloc_slice_copy(&self.short[..self.len]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_any_length_holds_what_was_pushed() {
        let arena = Bump::new();
        for len in 0..40 {
            let mut list = ArenaList::<_, 8>::new(&arena, usize::MAX);
            (0..len).for_each(|item| list.push(item));
            assert_eq!(list.len(), len);
            assert_eq!(list.finish(), (0..len).collect::<Vec<_>>());
        }
    }
}
