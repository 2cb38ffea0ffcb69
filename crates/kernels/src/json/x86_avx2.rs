//! The plain prefix of text, thirty-two bytes a step.

use std::arch::x86_64::*;

use crate::cpu::Level;
use std::mem::MaybeUninit;

use super::portable;

/// Bytes a step.
pub(super) const STEP: usize = 32;

pub(super) fn is_available() -> bool {
    Level::Avx2.is_allowed() && is_x86_feature_detected!("avx2")
}

/// # Panics
/// If this machine has no AVX2.
pub(super) fn plain_len(text: &[u8]) -> usize {
    assert!(is_available(), "the dispatcher checked before");
    // SAFETY: the line above saw AVX2 on this CPU.
    unsafe { plain_steps(text) }
}

/// # Panics
/// If this machine has no AVX2.
pub(super) fn append_plain(text: &[u8], out: &mut Vec<u8>) -> usize {
    assert!(is_available(), "the dispatcher checked before");
    // SAFETY: the line above saw AVX2 on this CPU.
    unsafe { append_steps(text, out) }
}

/// Copies whole steps while it examines them. Bytes copied past the plain prefix stay outside the length.
#[target_feature(enable = "avx2")]
fn append_steps(text: &[u8], out: &mut Vec<u8>) -> usize {
    let Some(last) = text.last_chunk::<STEP>() else { return append_short(text, out) };
    out.reserve(text.len());
    let spare = &mut out.spare_capacity_mut()[..text.len()];
    let (steps, _) = text.as_chunks::<STEP>();
    let mut plain = text.len();
    for (at, step) in steps.iter().enumerate() {
        let special = copy_step(step, &mut spare[STEP * at..]);
        if special != 0 {
            plain = STEP * at + special.trailing_zeros() as usize;
            break;
        }
    }
    if plain == text.len() {
        // The last step overlaps the one before, which has no special byte.
        let start = text.len() - STEP;
        let special = copy_step(last, &mut spare[start..]);
        if special != 0 {
            plain = start + special.trailing_zeros() as usize;
        }
    }
    let len = out.len() + plain;
    // SAFETY: the steps up to the one that `plain` lies in were written, all within the capacity.
    unsafe { out.set_len(len) };
    plain
}

/// The same for text shorter than a step: words, the last of which overlaps the one before.
#[inline]
fn append_short(text: &[u8], out: &mut Vec<u8>) -> usize {
    let plain = match text.last_chunk() {
        Some(last) => {
            let (words, _) = text.as_chunks();
            let in_words = words.iter().enumerate().find_map(|(at, word)| {
                let len = portable::plain_in_word(u64::from_le_bytes(*word));
                (len < 8).then_some(8 * at + len)
            });
            let in_last = portable::plain_in_word(u64::from_le_bytes(*last));
            in_words.unwrap_or(text.len() - 8 + in_last)
        }
        None => portable::plain_len(text),
    };
    out.extend_from_slice(&text[..plain]);
    plain
}

/// Copies a step to the start of `spare`, and returns a bit for every byte that JSON must escape.
///
/// # Panics
/// If `spare` is shorter than a step.
#[inline]
#[target_feature(enable = "avx2")]
fn copy_step(step: &[u8; STEP], spare: &mut [MaybeUninit<u8>]) -> u32 {
    let spare: &mut [MaybeUninit<u8>; STEP] = spare.first_chunk_mut().expect("space for a step");
    let bytes = load(step);
    // SAFETY: `spare` is 32 writable bytes, and the store requires no alignment.
    unsafe { _mm256_storeu_si256(spare.as_mut_ptr().cast(), bytes) };
    specials_in(bytes)
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

/// A bit for every byte that JSON must escape.
#[inline]
#[target_feature(enable = "avx2")]
fn specials(step: &[u8; STEP]) -> u32 {
    specials_in(load(step))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(step: &[u8; STEP]) -> __m256i {
    // SAFETY: `step` is 32 readable bytes, and the load requires no alignment.
    unsafe { _mm256_loadu_si256(step.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn specials_in(bytes: __m256i) -> u32 {
    let is = |byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8));
    let below_space = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
    let special = _mm256_or_si256(below_space, _mm256_or_si256(is(b'"'), is(b'\\')));
    _mm256_movemask_epi8(special) as u32
}
