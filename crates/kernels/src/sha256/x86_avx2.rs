//! SHA-256 of eight messages in the lanes of AVX2 vectors, for processors without SHA extensions.
//!
//! Vector `i` of the state holds word `i` of eight states. The eight blocks arrive as rows and are turned into columns
//! (word `t` of all messages in one vector) by two 8 × 8 transposes. A round is the plain round on vectors; a rotation is
//! two shifts.

use std::arch::x86_64::*;

use super::ROUND;
use super::lanes::Engine;
use super::portable::Block;
use crate::cpu::Level;

pub(super) fn is_available() -> bool {
    Level::Avx2.is_allowed() && is_x86_feature_detected!("avx2")
}

/// Eight states, word by word. Made only where [`is_available`] holds.
pub(super) struct Lanes {
    /// `words[i][lane]` is word `i` of the state of `lane`.
    words: [[u32; 8]; 8],
}

impl Engine<8> for Lanes {
    fn new() -> Self {
        assert!(is_available(), "the dispatcher checked before");
        Self { words: [[0; 8]; 8] }
    }

    #[inline]
    fn set(&mut self, lane: usize, state: &[u32; 8]) {
        for (words, word) in self.words.iter_mut().zip(state) {
            words[lane] = *word;
        }
    }

    #[inline]
    fn get(&self, lane: usize) -> [u32; 8] {
        self.words.map(|words| words[lane])
    }

    #[inline]
    fn compress(&mut self, blocks: &[&Block; 8]) {
        // SAFETY: `new` saw the instructions on this CPU, and no `Lanes` comes from elsewhere.
        unsafe { compress(&mut self.words, blocks) }
    }
}

#[target_feature(enable = "avx2")]
fn compress(words: &mut [[u32; 8]; 8], blocks: &[&Block; 8]) {
    let mut before = [_mm256_setzero_si256(); 8];
    for (vector, words) in before.iter_mut().zip(&*words) {
        *vector = load(words);
    }
    let after = fold(before, columns(blocks));
    for (words, after) in words.iter_mut().zip(after) {
        store(words, after);
    }
}

/// The states after a block, given as its words.
#[inline]
#[target_feature(enable = "avx2")]
fn fold(before: [__m256i; 8], mut ring: [__m256i; 16]) -> [__m256i; 8] {
    let mut state = before;
    let (last, others) = ROUND.as_chunks::<16>().0.split_last().expect("64 is 4 times 16");
    for constants in others {
        for (t, constant) in constants.iter().enumerate() {
            state = round(state, ring[t], *constant);
            ring[t] = next_word(&ring, t);
        }
    }
    for (word, constant) in ring.iter().zip(last) {
        state = round(state, *word, *constant);
    }
    for (after, before) in state.iter_mut().zip(before) {
        *after = _mm256_add_epi32(*after, before);
    }
    state
}

/// One round (FIPS 180-4 §6.2.2, step 3).
#[inline]
#[target_feature(enable = "avx2")]
fn round([a, b, c, d, e, f, g, h]: [__m256i; 8], word: __m256i, constant: u32) -> [__m256i; 8] {
    let keyed = _mm256_add_epi32(word, _mm256_set1_epi32(constant as i32));
    let sigma1 = xor3(rotated::<6, 26>(e), rotated::<11, 21>(e), rotated::<25, 7>(e));
    // g ⊕ (e ∧ (f ⊕ g)) takes f where e is set.
    let choice = _mm256_xor_si256(g, _mm256_and_si256(e, _mm256_xor_si256(f, g)));
    let t1 = _mm256_add_epi32(_mm256_add_epi32(h, keyed), _mm256_add_epi32(sigma1, choice));
    let sigma0 = xor3(rotated::<2, 30>(a), rotated::<13, 19>(a), rotated::<22, 10>(a));
    // b ⊕ ((a ⊕ b) ∧ (b ⊕ c)) takes c where a and b differ.
    let differ = _mm256_and_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(b, c));
    let t2 = _mm256_add_epi32(sigma0, _mm256_xor_si256(b, differ));
    [_mm256_add_epi32(t1, t2), a, b, c, _mm256_add_epi32(d, t1), e, f, g]
}

/// The schedule word sixteen after word `t` of the ring (step 1).
#[inline]
#[target_feature(enable = "avx2")]
fn next_word(ring: &[__m256i; 16], t: usize) -> __m256i {
    let (w15, w2) = (ring[(t + 1) % 16], ring[(t + 14) % 16]);
    let s0 = xor3(rotated::<7, 25>(w15), rotated::<18, 14>(w15), _mm256_srli_epi32::<3>(w15));
    let s1 = xor3(rotated::<17, 15>(w2), rotated::<19, 13>(w2), _mm256_srli_epi32::<10>(w2));
    let sum = _mm256_add_epi32(ring[t], ring[(t + 9) % 16]);
    _mm256_add_epi32(sum, _mm256_add_epi32(s0, s1))
}

/// Rotated to the right by `RIGHT`; `LEFT` is 32 less that.
#[inline]
#[target_feature(enable = "avx2")]
fn rotated<const RIGHT: i32, const LEFT: i32>(words: __m256i) -> __m256i {
    const { assert!(RIGHT + LEFT == 32) };
    _mm256_or_si256(_mm256_srli_epi32::<RIGHT>(words), _mm256_slli_epi32::<LEFT>(words))
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor3(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    _mm256_xor_si256(a, _mm256_xor_si256(b, c))
}

/// The words of eight blocks, one vector per word.
#[inline]
#[target_feature(enable = "avx2")]
fn columns(blocks: &[&Block; 8]) -> [__m256i; 16] {
    let mut columns = [_mm256_setzero_si256(); 16];
    for half in 0..2 {
        let mut rows = [_mm256_setzero_si256(); 8];
        for (row, block) in rows.iter_mut().zip(blocks) {
            *row = swap_bytes(load_half(&block.as_chunks().0[half]));
        }
        columns[8 * half..][..8].copy_from_slice(&transpose(rows));
    }
    columns
}

/// Turns eight vectors of eight words about the diagonal.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose([r0, r1, r2, r3, r4, r5, r6, r7]: [__m256i; 8]) -> [__m256i; 8] {
    let [a0, a1, a2, a3] = transpose_groups([r0, r1, r2, r3]);
    let [b0, b1, b2, b3] = transpose_groups([r4, r5, r6, r7]);
    [
        _mm256_permute2x128_si256::<0x20>(a0, b0),
        _mm256_permute2x128_si256::<0x20>(a1, b1),
        _mm256_permute2x128_si256::<0x20>(a2, b2),
        _mm256_permute2x128_si256::<0x20>(a3, b3),
        _mm256_permute2x128_si256::<0x31>(a0, b0),
        _mm256_permute2x128_si256::<0x31>(a1, b1),
        _mm256_permute2x128_si256::<0x31>(a2, b2),
        _mm256_permute2x128_si256::<0x31>(a3, b3),
    ]
}

/// A 4 × 4 transpose of the words in every 128-bit group of four vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_groups([r0, r1, r2, r3]: [__m256i; 4]) -> [__m256i; 4] {
    let (lo01, hi01) = (_mm256_unpacklo_epi32(r0, r1), _mm256_unpackhi_epi32(r0, r1));
    let (lo23, hi23) = (_mm256_unpacklo_epi32(r2, r3), _mm256_unpackhi_epi32(r2, r3));
    [
        _mm256_unpacklo_epi64(lo01, lo23),
        _mm256_unpackhi_epi64(lo01, lo23),
        _mm256_unpacklo_epi64(hi01, hi23),
        _mm256_unpackhi_epi64(hi01, hi23),
    ]
}

/// Turns big-endian words into numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn swap_bytes(words: __m256i) -> __m256i {
    let swap = _mm_set_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(swap))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_half(half: &[u8; 32]) -> __m256i {
    // SAFETY: `half` is 32 readable bytes, and the load requires no alignment.
    unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &[u32; 8]) -> __m256i {
    // SAFETY: `words` is 32 readable bytes, and the load requires no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(words: &mut [u32; 8], value: __m256i) {
    // SAFETY: `words` is 32 writable bytes, and the store requires no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), value) }
}
