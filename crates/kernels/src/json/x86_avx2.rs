//! The plain prefix of text, thirty-two bytes a step.

use std::arch::x86_64::*;

use super::portable;

/// Bytes a step.
pub(super) const STEP: usize = 32;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
}

/// # Panics
/// If this machine has no AVX2.
pub(super) fn plain_len(text: &[u8]) -> usize {
    assert!(is_available(), "the dispatcher asked before");
    // SAFETY: the line above saw AVX2 on this CPU.
    unsafe { plain_steps(text) }
}

#[target_feature(enable = "avx2")]
fn plain_steps(text: &[u8]) -> usize {
    let (steps, tail) = text.as_chunks();
    for (at, step) in steps.iter().enumerate() {
        let special = specials(step);
        if special != 0 {
            return STEP * at + special.trailing_zeros() as usize;
        }
    }
    STEP * steps.len() + portable::plain_len(tail)
}

/// A bit for each byte that does not stand in JSON as it is.
#[inline]
#[target_feature(enable = "avx2")]
fn specials(step: &[u8; STEP]) -> u32 {
    // SAFETY: `step` is 32 readable bytes, and the load asks for no alignment.
    let bytes = unsafe { _mm256_loadu_si256(step.as_ptr().cast()) };
    let is = |byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8));
    let below_space = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
    let special = _mm256_or_si256(below_space, _mm256_or_si256(is(b'"'), is(b'\\')));
    _mm256_movemask_epi8(special) as u32
}
