//! How does a list come into the arena whose length nobody stated before?

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

/// A list that grows on the stack and moves to the arena when it is whole, or too long for the stack.
pub(crate) struct Gather<'a, T: Copy, const N: usize> {
    arena: &'a Bump,
    // The first `len` are of the list, unless `long` holds it.
    short: [T; N],
    len: usize,
    long: Option<BumpVec<'a, T>>,
}

impl<'a, T: Copy, const N: usize> Gather<'a, T, N> {
    /// An empty list; `filler` is never seen.
    #[inline]
    pub(crate) fn new(arena: &'a Bump, filler: T) -> Self {
        Self { arena, short: [filler; N], len: 0, long: None }
    }

    /// Items so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        match (&mut self.long, self.short.get_mut(self.len)) {
            (None, Some(place)) => *place = item,
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
    fn a_list_of_any_length_comes_out_as_it_went_in() {
        let arena = Bump::new();
        for len in 0..40 {
            let mut list = Gather::<_, 8>::new(&arena, usize::MAX);
            (0..len).for_each(|item| list.push(item));
            assert_eq!(list.len(), len);
            assert_eq!(list.finish(), (0..len).collect::<Vec<_>>());
        }
    }
}
