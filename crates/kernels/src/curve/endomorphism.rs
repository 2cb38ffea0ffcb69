//! The split of a multiplier of secp256k1 into two of half its length, which share the doublings.
//!
//! ```text
//! u2 = k1 + k2·λ  (mod n)      k1·Q + k2·(λ·Q)          λ·(x, y) = (β·x, y)
//! ```
//!
//! This is the endomorphism of Gallant, Lambert and Vanstone (CRYPTO 2001), with the
//! lattice constants that libsecp256k1 publishes in `scalar_impl.h`. The pair (k1, k2) may move by lattice vectors, which
//! are multiples of zero, and so becomes odd: (a1, b1) is odd in both places, (a2, b2) in the second only.

use super::modular::{Scalar, Words, borrowing_sub, carrying_add, product};
use super::secp256k1::Secp256k1;

/// A signed integer of up to 191 bits, two's complement, least significant word first.
pub(super) type Signed = [u64; 3];

/// Odd k1 and k2 with k1 + k2·λ ≡ u2 (mod n), both below 2¹²⁹ in magnitude.
pub(super) fn split(u2: Scalar<Secp256k1>) -> [Signed; 2] {
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
pub(super) const LAMBDA: Scalar<Secp256k1> = Scalar::<Secp256k1>::new([
    0xdf02_967c_1b23_bd72,
    0x122e_22ea_2081_6678,
    0xa526_1c02_8812_645a,
    0x5363_ad4c_c05c_30e0,
]);
