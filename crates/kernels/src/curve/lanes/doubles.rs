//! Products of integers by the fused multiply-add of double-precision numbers.
//!
//! A product of two integers below 2⁵², held as doubles, has 104 bits, and a double holds 53. Two instructions give it in
//! two exact parts, with the processor's usual rounding to nearest:
//!
//! ```text
//! high = a·b + 2¹⁰⁴                       rounded to a multiple of 2⁵²: the bits below the exponent are the high half
//! low  = a·b + (2¹⁰⁴ − high) + 1.5·2⁵²    exact: the bits below the exponent are the low half, plus 2⁵¹
//! ```
//!
//! The bits of both are added up as integers, exponents included; what the exponents add is known beforehand and
//! subtracted once a column. A low half lies between −2⁵¹ and 2⁵¹, because the high one was rounded and not cut off, so
//! each column starts with its share of a multiple of p that is larger than what the low halves can take away.
//! (Emmart, "Faster Modular Exponentiation Using Double Precision Floating Point Arithmetic on the GPU", ARITH 2018,
//! §III has the two instructions, there with rounding towards zero.)

/// An integer below 2⁵² is the fraction of a number from this one on, less this one.
pub(super) const TWO_52: f64 = (1_u64 << 52) as f64;

/// What the high half is added to.
pub(super) const TWO_104: f64 = TWO_52 * TWO_52;

/// What the low half is added to.
pub(super) const LOW_START: f64 = 1.5 * TWO_52;

/// The bits of a low half that is zero.
pub(super) const LOW_EXCESS: u64 = LOW_START.to_bits();

/// The bits of a high half that is zero.
pub(super) const HIGH_EXCESS: u64 = TWO_104.to_bits();

/// What a column needs at its start to stay positive, in units of 2⁵². Five low halves of a product and at most two of
/// a reduction are each at most half a unit below zero; one unit makes the start a multiple of p.
pub(super) const SPARE: u64 = 5;
