//! Counts heap allocations.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering};

/// An allocator that counts its allocations.
pub(crate) struct Counted<A>(pub(crate) A);

/// The allocations and reallocations of `work`.
pub(crate) fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    work();
    ALLOCATIONS.load(Ordering::Relaxed).wrapping_sub(before)
}

// SAFETY: every call is forwarded unchanged to `A`, which upholds the contract.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the same contract.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the same contract.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the same contract.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the same contract.
        unsafe { self.0.realloc(pointer, layout, new_size) }
    }
}

/// A load and a store instead of an atomic addition, which would cost as much as a small allocation by mimalloc.
/// Allocations in several threads may be counted too low.
#[inline]
fn count() {
    ALLOCATIONS.store(ALLOCATIONS.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn each_allocation_is_counted_and_no_freeing() {
        // Other tests of this process allocate at the same time.
        let allocations = allocations_of(|| (0..100).for_each(|_| drop(black_box(Box::new(1)))));
        assert!(allocations >= 100, "{allocations}");
    }
}
