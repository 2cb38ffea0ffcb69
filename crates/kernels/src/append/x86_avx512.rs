//! Pieces of up to 64 bytes in one masked load and store.

use std::arch::x86_64::*;

use crate::cpu::Level;
use std::mem::MaybeUninit;

use super::STEP;

pub(super) fn is_available() -> bool {
    Level::Avx512.is_allowed()
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("bmi2")
}

/// Writes `bytes` to the start of `spare`.
///
/// # Panics
/// If they are longer than a step.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(super) fn copy(bytes: &[u8], spare: &mut [MaybeUninit<u8>; STEP]) {
    store(load(bytes), spare);
}

/// Writes two digits per byte to the start of `spare`.
///
/// # Panics
/// If the bytes are longer than half a step.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(super) fn write_hex(bytes: &[u8], spare: &mut [MaybeUninit<u8>; STEP]) {
    assert!(bytes.len() <= STEP / 2);
    let wide = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(load(bytes)));
    let low = _mm512_and_si512(_mm512_slli_epi16(wide, 8), _mm512_set1_epi16(0x0f00));
    let halves = _mm512_or_si512(_mm512_srli_epi16(wide, 4), low);
    let digits = _mm_setr_epi8(48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102);
    store(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(digits), halves), spare);
}

/// Writes `text` in quotes to the start of `spare`, and returns whether JSON needs no escape for it.
///
/// # Panics
/// If it is longer than a step.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(super) fn write_quoted(text: &[u8], spare: &mut [MaybeUninit<u8>; STEP + 2]) -> bool {
    let bytes = load(text);
    spare[0].write(b'"');
    store(bytes, spare[1..].first_chunk_mut().expect("a step and a quote"));
    spare[1 + text.len()].write(b'"');
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
    let space = _mm512_set1_epi8(b' ' as i8);
    let is_below_space = _mm512_mask_cmplt_epu8_mask(first(text.len()), bytes, space);
    is_below_space | is(b'"') | is(b'\\') == 0
}

/// The bytes, then zeros.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn load(bytes: &[u8]) -> __m512i {
    assert!(bytes.len() <= STEP);
    let mask = first(bytes.len());
    // SAFETY: the mask selects exactly the bytes of the slice; a masked load reads no others.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn store(bytes: __m512i, spare: &mut [MaybeUninit<u8>; STEP]) {
    // SAFETY: `spare` is 64 writable bytes, and the store requires no alignment.
    unsafe { _mm512_storeu_si512(spare.as_mut_ptr().cast(), bytes) };
}

/// A mask of the lowest `len` bits.
#[inline]
#[target_feature(enable = "bmi2")]
fn first(len: usize) -> __mmask64 {
    _bzhi_u64(u64::MAX, len as u32)
}
