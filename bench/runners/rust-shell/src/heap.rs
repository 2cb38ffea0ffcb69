//! How often does a work ask the heap for memory?

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering};

/// An allocator that counts what it is asked for.
pub(crate) struct Counted<A>(pub(crate) A);

/// How often `work` asks for memory, or for more of it.
pub(crate) fn asked_by(work: impl FnOnce()) -> u64 {
    let before = ASKED.load(Ordering::Relaxed);
    work();
    ASKED.load(Ordering::Relaxed).wrapping_sub(before)
}

// SAFETY: all that is promised of the memory, `A` promises, which gets every call as it came.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the same contract.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the same contract.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the same contract.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the same contract.
        unsafe { self.0.realloc(pointer, layout, new_size) }
    }
}

/// A load and a store, and no locked addition, which would cost as much as mimalloc takes for a
/// small allocation. Who allocates in threads may be counted too low.
#[inline]
fn count() {
    ASKED.store(ASKED.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

static ASKED: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn each_piece_of_memory_is_counted_and_no_freeing() {
        // Other tests of this process allocate beside this one.
        let asked = asked_by(|| (0..100).for_each(|_| drop(black_box(Box::new(1)))));
        assert!(asked >= 100, "{asked}");
    }
}
