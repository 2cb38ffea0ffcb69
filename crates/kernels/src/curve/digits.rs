//! The two multipliers of a verification as the signed digits that the ladder uses.
//!
//! A verification computes u1·G + u2·Q. The generator has a table for every digit of u1. u2 is one multiplier, or, where the
//! curve has an endomorphism, two of half its length (`endomorphism.rs`).
//!
//! **Every multiplier is made odd**, because an odd k with |k| < 2ᵗ is a sum of t signed bits,
//!
//! ```text
//! k = Σ ±2ⁱ, i < t      the sign of 2ⁱ is + where bit i of (k + 2ᵗ − 1)/2 is set
//! ```
//!
//! and w such bits together are a digit from ±1, ±3, … ±(2ʷ − 1), never zero: all lanes take the
//! same steps, and no bit pattern is special. An even k becomes odd without an extra addition of
//! points: k + n stands for the same multiple.

use super::Curve;
use super::modular::{Modulus, Residue, Scalar, add, carrying_add};

/// Bits of a digit of u2. A key's table has half of 2ʷ rows.
pub(super) const KEY_WINDOW: usize = 5;

/// Digits of u2: 52 for 257 bits, or 26 per half, of 129 bits.
pub(super) const KEY_DIGITS: usize = 52;

/// Bits of a digit of u1. The generator's tables have half of 2ʷ rows each: with ten bits all of them fit into a second-level
/// cache of a megabyte, with twelve they would need three.
pub(super) const GENERATOR_WINDOW: usize = 10;

/// Digits of u1. Together they hold 260 bits.
pub(super) const GENERATOR_WINDOWS: usize = 26;

/// The parts of u2 that share the doublings: halves by an endomorphism, or the whole.
pub(super) const fn parts<C: Curve>() -> usize {
    if C::BETA.is_some() { 2 } else { 1 }
}

/// Digits per part of u2.
pub(super) const fn digits_a_part<C: Curve>() -> usize {
    KEY_DIGITS / parts::<C>()
}

/// The digits of one verification, stored as the w bits above: digit value 2·bits − (2ʷ − 1).
#[derive(Clone, Debug)]
pub(super) struct Digits {
    /// Of u1, least significant first.
    pub(super) generator: [u16; GENERATOR_WINDOWS],
    /// Of u2, least significant first, one part after the other.
    pub(super) key: [u16; KEY_DIGITS],
}

impl Digits {
    /// The digits of u1·G + u2·Q.
    pub(super) fn of<C: Curve>([u1, u2]: [Scalar<C>; 2]) -> Self {
        let generator = signed_digits::<GENERATOR_WINDOW, GENERATOR_WINDOWS, 5>(odd(u1));
        Self { generator, key: C::key_digits(u2) }
    }
}

/// The index of the digit with these bits in a table of `half` = 2ʷ⁻¹ odd multiples, and whether the
/// digit is negative.
pub(super) fn index_of_digit(bits: u16, half: u16) -> (usize, bool) {
    if bits < half {
        (usize::from(half - 1 - bits), true)
    } else {
        (usize::from(bits - half), false)
    }
}

/// u or u + n, whichever is odd.
pub(super) fn odd<M: Modulus>(u: Residue<M>) -> [u64; 5] {
    let (words, carry) = if u.is_odd() { (u.words(), 0) } else { add(&u.words(), &M::VALUE) };
    let [w0, w1, w2, w3] = words;
    [w0, w1, w2, w3, carry]
}

/// The digits of an odd k with |k| < 2^(W·COUNT), as bits (see the top of this file). k is in two's complement.
pub(super) fn signed_digits<const W: usize, const COUNT: usize, const WORDS: usize>(
    k: [u64; WORDS],
) -> [u16; COUNT] {
    debug_assert!(k[0] & 1 == 1, "only odd numbers have digits without zero");
    // (k + 2ᵗ − 1)/2 is k + 2ᵗ without its lowest bit.
    let (top, mut sum) = (W * COUNT, k);
    let mut carry;
    (sum[top / 64], carry) = carrying_add(sum[top / 64], 1 << (top % 64), false);
    for word in &mut sum[top / 64 + 1..] {
        (*word, carry) = carrying_add(*word, 0, carry);
    }
    let word = |i: usize| u128::from(sum.get(i).copied().unwrap_or(0));
    std::array::from_fn(|i| {
        let start = W * i + 1;
        let pair = word(start / 64) | word(start / 64 + 1) << 64;
        (pair >> (start % 64)) as u16 & ((1 << W) - 1)
    })
}
