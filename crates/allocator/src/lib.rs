//! The allocator of the command, and when it returns memory to the system.
//!
//! A crate of its own, because the setting needs `unsafe` and the crates that use it forbid that.
//!
//! ```
//! use wireproof_allocator::Allocator;
//!
//! #[global_allocator]
//! static ALLOCATOR: Allocator = Allocator;
//!
//! wireproof_allocator::return_memory_at_once();
//! ```

use libmimalloc_sys::{mi_option_set_default, mi_option_t};
pub use mimalloc::MiMalloc as Allocator;

/// Returns free memory to the system at once instead of a second later, unless `MIMALLOC_PURGE_DELAY` says otherwise.
///
/// For a process that lives long: a burst of short-lived buffers does not stay in its resident memory.
#[expect(unsafe_code, reason = "the allocator's options are set through its C interface")]
pub fn return_memory_at_once() {
    // SAFETY: the call stores an integer in the allocator's table of options, which any thread may do at any time, and
    // ignores a number that is not in the table.
    unsafe { mi_option_set_default(PURGE_DELAY, 0) }
}

/// `mi_option_purge_delay` of `mimalloc.h`, in milliseconds.
const PURGE_DELAY: mi_option_t = 15;

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "the allocator's options are read through its C interface")]
    fn free_memory_is_kept_for_a_second_unless_it_is_returned_at_once() {
        // SAFETY: the call reads an integer of the allocator's table of options.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1_000);
        return_memory_at_once();
        assert_eq!(delay(), 0);
    }
}
