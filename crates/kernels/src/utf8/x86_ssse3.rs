//! Whether bytes are UTF-8, sixteen at a time.
//!
//! Source: Keiser and Lemire, *Validating UTF-8 In Less Than One Instruction Per Byte* (2020). Every
//! fault of two neighbouring bytes shows in three half bytes: the high and the low half of the first,
//! and the high half of the second. Three table look-ups give, for each half byte, the set of faults
//! that it could be part of; a fault that is in all three sets has occurred. A pair does not show whether
//! the third and fourth byte of a sequence are continuations: the bytes two and three before do.

use std::arch::x86_64::*;

use crate::cpu::Level;

pub(super) fn is_available() -> bool {
    Level::Avx2.is_allowed() && is_x86_feature_detected!("ssse3")
}

/// Whether `bytes` are UTF-8.
///
/// # Panics
/// If this machine has no SSSE3.
pub(super) fn is_utf8(bytes: &[u8]) -> bool {
    assert!(is_available(), "the dispatcher checked before");
    // SAFETY: the line above saw SSSE3 on this CPU.
    unsafe { is_utf8_by_blocks(bytes) }
}

#[target_feature(enable = "ssse3")]
fn is_utf8_by_blocks(bytes: &[u8]) -> bool {
    let (chunks, tail) = bytes.as_chunks::<16>();
    let mut faults = _mm_setzero_si128();
    let mut before = _mm_setzero_si128();
    for chunk in chunks {
        let block = load(chunk);
        faults = _mm_or_si128(faults, faults_in(block, before));
        before = block;
    }
    // The zeros after the tail are characters of one byte: a sequence that they cut is too short.
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    faults = _mm_or_si128(faults, faults_in(load(&last), before));
    _mm_movemask_epi8(_mm_cmpeq_epi8(faults, _mm_setzero_si128())) == 0xffff
}

/// Non-zero where a fault becomes visible in `block`, which follows `before`. The tail block is never
/// full, so no sequence is open after the last one.
#[inline]
#[target_feature(enable = "ssse3")]
fn faults_in(block: __m128i, before: __m128i) -> __m128i {
    let one_back = _mm_alignr_epi8(block, before, 15);
    let two_back = _mm_alignr_epi8(block, before, 14);
    let three_back = _mm_alignr_epi8(block, before, 13);
    let of_pair = _mm_and_si128(
        _mm_and_si128(
            _mm_shuffle_epi8(table(&FIRST_HIGH), high_half(one_back)),
            _mm_shuffle_epi8(table(&FIRST_LOW), _mm_and_si128(one_back, _mm_set1_epi8(0x0f))),
        ),
        _mm_shuffle_epi8(table(&SECOND_HIGH), high_half(block)),
    );
    // The top bit is set where a third or a fourth byte must be. There, and only there, two
    // continuations in a row are no fault.
    let is_third = _mm_subs_epu8(two_back, _mm_set1_epi8(0xe0u8.wrapping_sub(0x80) as i8));
    let is_fourth = _mm_subs_epu8(three_back, _mm_set1_epi8(0xf0u8.wrapping_sub(0x80) as i8));
    let must_continue =
        _mm_and_si128(_mm_or_si128(is_third, is_fourth), _mm_set1_epi8(TWO_CONTINUATIONS as i8));
    _mm_xor_si128(must_continue, of_pair)
}

#[inline]
#[target_feature(enable = "ssse3")]
fn high_half(bytes: __m128i) -> __m128i {
    _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(0x0f))
}

#[inline]
#[target_feature(enable = "ssse3")]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: `bytes` is 16 readable bytes, and the load requires no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "ssse3")]
fn table(faults: &[u8; 16]) -> __m128i {
    load(faults)
}

// The faults of a pair, one bit each, with the paper's names.
/// A leading byte, and no continuation after it.
const TOO_SHORT: u8 = 1 << 0;
/// A character of one byte, and a continuation after it.
const TOO_LONG: u8 = 1 << 1;
/// `e0` and a second byte below `a0`.
const OVERLONG_3: u8 = 1 << 2;
/// `f4` and a second byte above `8f`, or a greater leading byte.
const TOO_LARGE: u8 = 1 << 3;
/// `ed` and a second byte above `9f`.
const SURROGATE: u8 = 1 << 4;
/// `c0` or `c1`.
const OVERLONG_2: u8 = 1 << 5;
/// A leading byte above `f4`, and a second byte below `90`.
const TOO_LARGE_1000: u8 = 1 << 6;
/// `f0` and a second byte below `90`. Shares a bit with the one above: their first bytes differ.
const OVERLONG_4: u8 = 1 << 6;
/// Two continuations: a fault unless a longer sequence requires it.
const TWO_CONTINUATIONS: u8 = 1 << 7;
/// Faults that do not depend on the low half of the first byte.
const CARRY: u8 = TOO_SHORT | TOO_LONG | TWO_CONTINUATIONS;

/// The faults that a first byte can be part of, by its high half.
const FIRST_HIGH: [u8; 16] = {
    let mut table = [TOO_LONG; 16];
    table[0x8] = TWO_CONTINUATIONS;
    table[0x9] = TWO_CONTINUATIONS;
    table[0xa] = TWO_CONTINUATIONS;
    table[0xb] = TWO_CONTINUATIONS;
    table[0xc] = TOO_SHORT | OVERLONG_2;
    table[0xd] = TOO_SHORT;
    table[0xe] = TOO_SHORT | OVERLONG_3 | SURROGATE;
    table[0xf] = TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4;
    table
};

/// The faults that a first byte can be part of, by its low half.
const FIRST_LOW: [u8; 16] = {
    let mut table = [CARRY | TOO_LARGE | TOO_LARGE_1000; 16];
    table[0x0] = CARRY | OVERLONG_2 | OVERLONG_3 | OVERLONG_4;
    table[0x1] = CARRY | OVERLONG_2;
    table[0x2] = CARRY;
    table[0x3] = CARRY;
    table[0x4] = CARRY | TOO_LARGE;
    table[0xd] = CARRY | TOO_LARGE | TOO_LARGE_1000 | SURROGATE;
    table
};

/// The faults that a second byte can be part of, by its high half.
const SECOND_HIGH: [u8; 16] = {
    const CONTINUATION: u8 = TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS;
    let mut table = [TOO_SHORT; 16];
    table[0x8] = CONTINUATION | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4;
    table[0x9] = CONTINUATION | OVERLONG_3 | TOO_LARGE;
    table[0xa] = CONTINUATION | SURROGATE | TOO_LARGE;
    table[0xb] = CONTINUATION | SURROGATE | TOO_LARGE;
    table
};
