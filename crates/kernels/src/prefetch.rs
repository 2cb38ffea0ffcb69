//! Prefetch hints: cache lines requested before they are read, so that the loads overlap.
//!
//! A hint never changes a result. On targets without a stable prefetch intrinsic it compiles to
//! nothing.

/// Requests the cache lines that hold `bytes`.
#[inline(always)]
pub fn bytes(bytes: &[u8]) {
    for at in (0..bytes.len()).step_by(LINE_BYTES) {
        element(bytes, at);
    }
}

/// Requests the cache lines that hold `value`.
#[inline(always)]
pub fn value<T>(value: &T) {
    for line in 0..size_of::<T>().div_ceil(LINE_BYTES) {
        line_at(std::ptr::from_ref(value).wrapping_byte_add(line * LINE_BYTES));
    }
}

/// Requests the cache line in which the element at `index` begins. An index out of bounds is allowed.
#[inline(always)]
pub fn element<T>(elements: &[T], index: usize) {
    line_at(elements.as_ptr().wrapping_add(index));
}

#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn line_at<T>(address: *const T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE is part of x86-64, and a prefetch of an invalid address does nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
fn line_at<T>(_address: *const T) {}

/// Length of a cache line in bytes. A longer line is requested more than once.
pub const LINE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_may_be_prefetched_and_stay_unchanged() {
        let alphabet: Vec<u8> = (0..=255).collect();
        for start in 0..=alphabet.len() {
            for end in start..=alphabet.len() {
                bytes(&alphabet[start..end]);
                element(&alphabet[start..], end);
            }
        }
        assert!(alphabet.iter().copied().eq(0..=255));
        bytes(&[]);
        element::<u64>(&[], usize::MAX);
        value(&[0; 100]);
        value(&());
    }
}
