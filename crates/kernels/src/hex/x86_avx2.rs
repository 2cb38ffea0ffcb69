//! Hexadecimal, sixteen bytes or thirty-two digits a step.
//!
//! A digit becomes its value by one subtraction, of `'0'` or of `'a' - 10`; pairs of values become
//! bytes by one multiplication and addition. Bytes become digits by one look-up in a table of sixteen.

use std::arch::x86_64::*;

use super::portable;
use crate::cpu::Level;

/// Bytes a step.
pub(super) const STEP: usize = 16;

pub(super) fn is_available() -> bool {
    Level::Avx2.is_allowed() && is_x86_feature_detected!("avx2")
}

/// # Panics
/// If this machine has no AVX2.
pub(super) fn encode_into(bytes: &[u8], out: &mut Vec<u8>) {
    assert!(is_available(), "the dispatcher checked before");
    // SAFETY: the line above saw AVX2 on this CPU.
    unsafe { encode_steps(bytes, out) }
}

/// # Panics
/// If this machine has no AVX2.
pub(super) fn is_lower(digits: &[u8]) -> bool {
    assert!(is_available(), "the dispatcher checked before");
    // SAFETY: the line above saw AVX2 on this CPU.
    unsafe { are_lower(digits) }
}

/// # Panics
/// If this machine has no AVX2.
pub(super) fn decode(digits: &[u8], bytes: &mut [u8]) -> bool {
    assert!(is_available(), "the dispatcher checked before");
    // SAFETY: the line above saw AVX2 on this CPU.
    unsafe { decode_steps(digits, bytes) }
}

#[target_feature(enable = "avx2")]
fn encode_steps(bytes: &[u8], out: &mut Vec<u8>) {
    let (steps, tail) = bytes.as_chunks::<STEP>();
    out.reserve(2 * bytes.len());
    for step in steps {
        out.extend_from_slice(&digits_of(step));
    }
    portable::encode_into(tail, out);
}

#[inline]
#[target_feature(enable = "avx2")]
fn digits_of(bytes: &[u8; STEP]) -> [u8; 2 * STEP] {
    // SAFETY: `bytes` is 16 readable bytes, and the load requires no alignment.
    let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    let wide = _mm256_cvtepu8_epi16(bytes);
    let low = _mm256_and_si256(_mm256_slli_epi16(wide, 8), _mm256_set1_epi16(0x0f00));
    let halves = _mm256_or_si256(_mm256_srli_epi16(wide, 4), low);
    let table = _mm_setr_epi8(48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102);
    let digits = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), halves);
    let mut out = [0; 2 * STEP];
    // SAFETY: `out` is 32 writable bytes, and the store requires no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), digits) };
    out
}

#[target_feature(enable = "avx2")]
fn are_lower(digits: &[u8]) -> bool {
    let (steps, tail) = digits.as_chunks();
    let mut seen = _mm256_setzero_si256();
    for step in steps {
        seen = _mm256_or_si256(seen, values_of(load(step)).1);
    }
    _mm256_testz_si256(seen, seen) == 1 && portable::is_lower(tail)
}

#[target_feature(enable = "avx2")]
fn decode_steps(digits: &[u8], bytes: &mut [u8]) -> bool {
    if digits.len() != 2 * bytes.len() {
        return false;
    }
    let (steps, digits_tail) = digits.as_chunks();
    let (targets, bytes_tail) = bytes.as_chunks_mut();
    let mut seen = _mm256_setzero_si256();
    for (step, target) in steps.iter().zip(targets) {
        let (values, faults) = values_of(load(step));
        seen = _mm256_or_si256(seen, faults);
        *target = pairs_of(values);
    }
    _mm256_testz_si256(seen, seen) == 1 && portable::decode(digits_tail, bytes_tail)
}

/// The values of digits, and non-zero bytes where there is no digit.
#[inline]
#[target_feature(enable = "avx2")]
fn values_of(digits: __m256i) -> (__m256i, __m256i) {
    let from_0 = _mm256_sub_epi8(digits, _mm256_set1_epi8(b'0' as i8));
    let from_a = _mm256_sub_epi8(digits, _mm256_set1_epi8(b'a' as i8));
    let is_figure = is_at_most(from_0, 9);
    let is_letter = is_at_most(from_a, 5);
    let letter_value = _mm256_add_epi8(from_a, _mm256_set1_epi8(10));
    let values = _mm256_blendv_epi8(letter_value, from_0, is_figure);
    let is_digit = _mm256_or_si256(is_figure, is_letter);
    (values, _mm256_xor_si256(is_digit, _mm256_set1_epi8(-1)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn is_at_most(values: __m256i, most: i8) -> __m256i {
    _mm256_cmpeq_epi8(_mm256_min_epu8(values, _mm256_set1_epi8(most)), values)
}

/// Sixteen bytes of thirty-two values.
#[inline]
#[target_feature(enable = "avx2")]
fn pairs_of(values: __m256i) -> [u8; STEP] {
    let wide = _mm256_maddubs_epi16(values, _mm256_set1_epi16(0x0110));
    let packed = _mm256_packus_epi16(wide, wide);
    // The halves were packed separately: the first and the third quarter are the bytes.
    let bytes = _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0b1000));
    let mut out = [0; STEP];
    // SAFETY: `out` is 16 writable bytes, and the store requires no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) };
    out
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(digits: &[u8; 2 * STEP]) -> __m256i {
    // SAFETY: `digits` is 32 readable bytes, and the load requires no alignment.
    unsafe { _mm256_loadu_si256(digits.as_ptr().cast()) }
}
