//! Pieces of up to sixty-four bytes in one step, by a mask.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::STEP;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("bmi2")
}

/// Writes `bytes` to the front of `room`.
///
/// # Panics
/// If there are more than a step.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(super) fn copy(bytes: &[u8], room: &mut [MaybeUninit<u8>; STEP]) {
    store(load(bytes), room);
}

/// Writes two digits for each byte to the front of `room`.
///
/// # Panics
/// If there are more than half a step.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(super) fn write_hex(bytes: &[u8], room: &mut [MaybeUninit<u8>; STEP]) {
    assert!(bytes.len() <= STEP / 2);
    let wide = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(load(bytes)));
    let low = _mm512_and_si512(_mm512_slli_epi16(wide, 8), _mm512_set1_epi16(0x0f00));
    let halves = _mm512_or_si512(_mm512_srli_epi16(wide, 4), low);
    let digits = _mm_setr_epi8(48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102);
    store(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(digits), halves), room);
}

/// Writes `text` in quotes to the front of `room`, and answers whether all of it stands in JSON as it
/// is.
///
/// # Panics
/// If it is longer than a step.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(super) fn write_quoted(text: &[u8], room: &mut [MaybeUninit<u8>; STEP + 2]) -> bool {
    let bytes = load(text);
    room[0].write(b'"');
    store(bytes, room[1..].first_chunk_mut().expect("a step and a quote"));
    room[1 + text.len()].write(b'"');
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
    let space = _mm512_set1_epi8(b' ' as i8);
    let is_below_space = _mm512_mask_cmplt_epu8_mask(first(text.len()), bytes, space);
    is_below_space | is(b'"') | is(b'\\') == 0
}

/// The bytes, and zeros behind them.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn load(bytes: &[u8]) -> __m512i {
    assert!(bytes.len() <= STEP);
    let there = first(bytes.len());
    // SAFETY: the mask names the bytes there are, and no others are touched.
    unsafe { _mm512_maskz_loadu_epi8(there, bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn store(bytes: __m512i, room: &mut [MaybeUninit<u8>; STEP]) {
    // SAFETY: `room` is 64 writable bytes, and the store asks for no alignment.
    unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), bytes) };
}

/// A mask of the lowest `len` bits.
#[inline]
#[target_feature(enable = "bmi2")]
fn first(len: usize) -> __mmask64 {
    _bzhi_u64(u64::MAX, len as u32)
}
