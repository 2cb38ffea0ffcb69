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

/// Asks for the lines of the cache that hold a value.
#[inline(always)]
pub fn ask_for_value<T>(value: &T) {
    for line in 0..size_of::<T>().div_ceil(LINE_BYTES) {
        ask_for_address(std::ptr::from_ref(value).wrapping_byte_add(line * LINE_BYTES));
    }
}

/// Asks for the line of the cache where an item begins; one beyond the last may be asked for too.
#[inline(always)]
pub fn ask_for_item<T>(items: &[T], index: usize) {
    ask_for_address(items.as_ptr().wrapping_add(index));
}

#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn ask_for_address<T>(address: *const T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE is part of x86-64, and no address is a wrong one to ask for.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
fn ask_for_address<T>(_address: *const T) {}

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
        ask_for_value(&[0; 100]);
        ask_for_value(&());
    }
}
