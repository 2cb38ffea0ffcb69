//! Which bytes will be read soon? Who knows can tell the memory before, and does other work meanwhile.
//!
//! Nothing depends on it: bytes that were not asked for are read as well, and later. Where there is no
//! such instruction, or none that is stable in Rust, asking does nothing.

/// Asks for the lines of the cache that hold these bytes, without waiting for them.
#[inline(always)]
pub fn ask_for(bytes: &[u8]) {
    for at in (0..bytes.len()).step_by(LINE_BYTES) {
        ask_for_item(bytes, at);
    }
}

/// Asks for the line of the cache where an item begins; one beyond the last may be asked for too.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub fn ask_for_item<T>(items: &[T], index: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let item = items.as_ptr().wrapping_add(index);
    // SAFETY: SSE is part of x86-64, and no address is a wrong one to ask for.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(item.cast()) };
}

/// Asks for the line of the cache where an item begins; one beyond the last may be asked for too.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub fn ask_for_item<T>(_items: &[T], _index: usize) {}

/// The length of a line of the cache. Longer ones are asked for twice.
pub const LINE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_may_be_asked_for_and_stay_what_they_are() {
        let bytes: Vec<u8> = (0..=255).collect();
        for start in 0..=bytes.len() {
            for end in start..=bytes.len() {
                ask_for(&bytes[start..end]);
                ask_for_item(&bytes[start..], end);
            }
        }
        assert!(bytes.iter().copied().eq(0..=255));
        ask_for(&[]);
        ask_for_item::<u64>(&[], usize::MAX);
    }
}
