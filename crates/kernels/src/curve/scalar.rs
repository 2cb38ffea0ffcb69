//! The two multipliers of a verification, split into the signed digits that the ladder uses.
//!
//! A verification computes u1·G + u2·Q. The generator has a table for every digit of u1. u2 is split into two multipliers
//! of half its length, which share the doublings:
//!
//! ```text
//! u2 = k1 + k2·λ  (mod n)      k1·Q + k2·(λ·Q)          λ·(x, y) = (β·x, y)
//! ```
//!
//! This is the endomorphism of Gallant, Lambert and Vanstone (CRYPTO 2001), with the
//! lattice constants that libsecp256k1 publishes in `scalar_impl.h`.
//!
//! **Every multiplier is made odd**, because an odd k with |k| < 2ᵗ is a sum of t signed bits,
//!
//! ```text
//! k = Σ ±2ⁱ, i < t      the sign of 2ⁱ is + where bit i of (k + 2ᵗ − 1)/2 is set
//! ```
//!
//! and w such bits together are a digit from ±1, ±3, … ±(2ʷ − 1), never zero: all lanes take the
//! same steps, and no bit pattern is special. An even k becomes odd without an extra addition of
//! points: u1 may be replaced by u1 + n, and the pair (k1, k2) may
//! move by lattice vectors, which are multiples of zero: (a1, b1) is odd in both places, (a2, b2) in
//! the second only.

use super::modular::{Modulus, N, Scalar, Words, add, borrowing_sub, carrying_add, product};

/// Bits of a digit of k1 and k2. A key's table has half of 2ʷ rows.
pub(super) const KEY_WINDOW: usize = 5;

/// Digits of k1 and k2. Together they hold [`KEY_BITS`] bits.
pub(super) const KEY_WINDOWS: usize = 26;

/// Bits of a digit of u1. Each of the generator's tables has half of 2ʷ rows: with ten bits all of them fit into a second-level
/// cache of a megabyte, with twelve they would need three.
pub(super) const GENERATOR_WINDOW: usize = 10;

/// Digits of u1. Together they hold 260 bits.
pub(super) const GENERATOR_WINDOWS: usize = 26;

/// The digits of one verification, each as the w bits above: digit value 2·bits − (2ʷ − 1).
#[derive(Clone, Debug)]
pub(super) struct Digits {
    /// Of u1, least significant first.
    pub(super) generator: [u16; GENERATOR_WINDOWS],
    /// Of k1 and k2, least significant first.
    pub(super) key: [[u16; KEY_WINDOWS]; 2],
}

impl Digits {
    /// The digits of u1·G + u2·Q.
    pub(super) fn of(u1: Scalar, u2: Scalar) -> Self {
        let [k1, k2] = split_for_key(u2).map(signed_digits::<KEY_WINDOW, KEY_WINDOWS, 3>);
        let generator =
            signed_digits::<GENERATOR_WINDOW, GENERATOR_WINDOWS, 5>(odd_for_generator(u1));
        Self { generator, key: [k1, k2] }
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

/// A signed integer of up to 191 bits, two's complement, least significant word first.
pub(super) type Signed = [u64; 3];

/// u1 or u1 + n, whichever is odd.
pub(super) fn odd_for_generator(u1: Scalar) -> [u64; 5] {
    let (words, carry) = if u1.is_odd() { (u1.words(), 0) } else { add(&u1.words(), &N::VALUE) };
    let [w0, w1, w2, w3] = words;
    [w0, w1, w2, w3, carry]
}

/// Odd k1 and k2 with k1 + k2·λ ≡ u2 (mod n), both below 2¹²⁹ in magnitude.
pub(super) fn split_for_key(u2: Scalar) -> [Signed; 2] {
    let words = u2.words();
    let c1 = rounded_high_part(&words, &G1);
    let c2 = rounded_high_part(&words, &G2);
    // (k1, k2) = (u2, 0) − c1·(a1, b1) − c2·(a2, b2); 192 bits hold every step's low part.
    let k1 = [words[0], words[1], words[2]];
    let mut k1 = minus(minus(k1, times(c1, A1)), times(c2, A2));
    let mut k2 = minus(times(c1, MINUS_B1), times(c2, B2));
    if k1[0] & 1 == 0 {
        k1 = minus(k1, A1);
        k2 = plus(k2, MINUS_B1);
    }
    if k2[0] & 1 == 0 {
        k1 = minus(k1, A2);
        k2 = minus(k2, B2);
    }
    [k1, k2]
}

/// The digits of an odd k with |k| < 2^(W·COUNT), as bits (see the top of this file). k is in two's complement.
fn signed_digits<const W: usize, const COUNT: usize, const WORDS: usize>(
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

/// ⌊(k·g)/2³⁸⁴ + ½⌋, below 2¹²⁸.
fn rounded_high_part(k: &Words, g: &Words) -> Signed {
    let wide = product(k, g);
    let rounded = (u128::from(wide[7]) << 64 | u128::from(wide[6])) + u128::from(wide[5] >> 63);
    [rounded as u64, (rounded >> 64) as u64, 0]
}

fn plus(a: Signed, b: Signed) -> Signed {
    let (w0, carry) = carrying_add(a[0], b[0], false);
    let (w1, carry) = carrying_add(a[1], b[1], carry);
    [w0, w1, carrying_add(a[2], b[2], carry).0]
}

fn minus(a: Signed, b: Signed) -> Signed {
    let (w0, borrow) = borrowing_sub(a[0], b[0], false);
    let (w1, borrow) = borrowing_sub(a[1], b[1], borrow);
    [w0, w1, borrowing_sub(a[2], b[2], borrow).0]
}

/// The low 192 bits of the product of two non-negative numbers.
fn times(a: Signed, b: Signed) -> Signed {
    let low = u128::from(a[0]) * u128::from(b[0]);
    let cross1 = u128::from(a[0]) * u128::from(b[1]);
    let cross2 = u128::from(a[1]) * u128::from(b[0]);
    let middle = (low >> 64) + u128::from(cross1 as u64) + u128::from(cross2 as u64);
    let high = (middle >> 64) as u64;
    let high = high.wrapping_add((cross1 >> 64) as u64).wrapping_add((cross2 >> 64) as u64);
    let high = high.wrapping_add(a[1].wrapping_mul(b[1]));
    let high = high.wrapping_add(a[0].wrapping_mul(b[2])).wrapping_add(a[2].wrapping_mul(b[0]));
    [low as u64, middle as u64, high]
}

/// 2³⁸⁴·b2/n and 2³⁸⁴·(−b1)/n, rounded.
const G1: Words =
    [0xe893_209a_45db_b031, 0x3daa_8a14_71e8_ca7f, 0xe86c_90e4_9284_eb15, 0x3086_d221_a7d4_6bcd];
const G2: Words =
    [0x1571_b4ae_8ac4_7f71, 0x2212_08ac_9df5_06c6, 0x6f54_7fa9_0abf_e4c4, 0xe443_7ed6_010e_8828];

/// The lattice vectors (a1, b1) and (a2, b2): a + b·λ ≡ 0 (mod n).
const A1: Signed = [0xe86c_90e4_9284_eb15, 0x3086_d221_a7d4_6bcd, 0];
const MINUS_B1: Signed = [0x6f54_7fa9_0abf_e4c3, 0xe443_7ed6_010e_8828, 0];
const A2: Signed = [0x57c1_108d_9d44_cfd8, 0x14ca_50f7_a8e2_f3f6, 1];
const B2: Signed = A1;

/// The λ of the endomorphism, a cube root of one modulo n.
#[cfg(test)]
pub(super) const LAMBDA: Scalar = Scalar::new([
    0xdf02_967c_1b23_bd72,
    0x122e_22ea_2081_6678,
    0xa526_1c02_8812_645a,
    0x5363_ad4c_c05c_30e0,
]);
