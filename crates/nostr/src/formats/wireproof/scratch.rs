//! Where are canonical forms and texts put together, when the arena is not to grow by them?
//!
//! In memory that each thread keeps, as long as it is not large.

use std::cell::Cell;
use std::ops::Range;

/// Memory for one piece of work after the other.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) bytes: Vec<u8>,
    /// Where runs of digits are in `bytes`.
    pub(super) runs: Vec<Range<usize>>,
}

/// Works with the memory of this thread.
pub(super) fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch = SCRATCH.take();
    let answer = work(&mut scratch);
    if scratch.bytes.capacity() <= MAX_KEPT_BYTES && scratch.runs.capacity() <= MAX_KEPT_RUNS {
        SCRATCH.set(scratch);
    }
    answer
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// The canonical form of every real event known is shorter.
const MAX_KEPT_BYTES: usize = 2 << 20;
const MAX_KEPT_RUNS: usize = 64 << 10;
