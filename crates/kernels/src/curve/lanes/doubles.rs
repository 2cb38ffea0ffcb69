//! Products of integers by the fused multiply-add of double-precision numbers.
//!
//! A product of two integers below 2⁵², held as doubles, has 104 bits, and a double holds 53. Two instructions give it in
//! two exact parts, with the processor's usual rounding to nearest:
//!
//! ```text
//! high = a·b + 2¹⁰⁴                       rounded to a multiple of 2⁵²: the bits below the exponent are the high half
//! low  = a·b + (2¹⁰⁴ + 1.5·2⁵² − high)    exact: the bits below the exponent are the low half, plus 2⁵¹
//! ```
//!
//! The expression in parentheses is a third fused multiply-add, since no double has the value 2¹⁰⁴ + 1.5·2⁵², but it is the
//! product of two ([`START`]).
//!
//! A product with a constant c needs less: x + 2⁵² in place of x, which saves a subtraction, for 2¹⁰⁴ − 2⁵²·c in place of 2¹⁰⁴
//! ([`start_by`]). That plus 1.5·2⁵² is a double.
//!
//! The bits of both are added up as integers, exponents included; the sum of the exponents is known beforehand and subtracted
//! once a column. A low half lies between −2⁵¹ and 2⁵¹, because the high one was rounded and not cut off, so
//! every column starts with its share of a multiple of p that is larger than the low halves can take away.
//! (Emmart, "Faster Modular Exponentiation Using Double Precision Floating Point Arithmetic on the GPU", ARITH 2018,
//! §III has the two instructions, there with rounding towards zero.)

/// An integer below 2⁵² is the fraction of a number from this one on, less this one.
pub(super) const TWO_52: f64 = (1_u64 << 52) as f64;

/// The addend of the high half.
pub(super) const TWO_104: f64 = TWO_52 * TWO_52;

/// Two factors of 2¹⁰⁴ + 1.5·2⁵².
pub(super) const START: [f64; 2] = [5.0 * (1_u64 << 51) as f64, 1_801_439_850_948_199.0];

/// The addend that turns the high half of (2⁵² + x)·`number` into the high half of x·`number`.
pub(super) const fn start_by(number: u64) -> f64 {
    TWO_104 - TWO_52 * number as f64
}

/// The addend of the low half.
pub(super) const LOW_START: f64 = 1.5 * TWO_52;

/// The bits of a high half that is zero.
pub(super) const HIGH_EXCESS: u64 = TWO_104.to_bits();

/// The start that keeps a column positive, in units of 2⁵². Five low halves of a product and at most two of
/// a reduction are at most half a unit below zero; one unit makes the start a multiple of p.
pub(super) const SPARE: u64 = 5;
