//! Numbers modulo the field prime p and the group order n, one at a time.
//!
//! Both moduli are 2²⁵⁶ minus something small, so 2²⁵⁶ may be replaced by that [`Modulus::GAP`]
//! until the number fits. Four 64-bit words, always the representative below the modulus: the reference
//! for the lanes, and fast enough for the few scalars of a signature.

use std::marker::PhantomData;

use super::inverse;

/// A number below 2²⁵⁶, least significant word first.
pub(super) type Words = [u64; 4];

/// A modulus of [`Residue`].
pub(super) trait Modulus: Copy {
    /// The modulus.
    const VALUE: Words;
    /// 2²⁵⁶ − modulus, below 2¹³⁰.
    const GAP: [u64; 3];
}

/// The field prime, 2²⁵⁶ − 2³² − 977.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct P;

/// The number of points on the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct N;

/// An integer modulo `M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Residue<M> {
    /// Below the modulus.
    words: Words,
    modulus: PhantomData<M>,
}

/// An element of the field of the curve's coordinates.
pub(super) type Field = Residue<P>;

/// A multiplier of points.
pub(super) type Scalar = Residue<N>;

impl<M: Modulus> Residue<M> {
    pub(super) const ZERO: Self = Self::new([0; 4]);
    pub(super) const ONE: Self = Self::new([1, 0, 0, 0]);

    /// Wraps words that are below the modulus.
    pub(super) const fn new(words: Words) -> Self {
        Self { words, modulus: PhantomData }
    }

    /// Reads a big-endian number below the modulus.
    pub(super) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let words = words_of(bytes);
        is_below(&words, &M::VALUE).then_some(Self::new(words))
    }

    /// Reads any big-endian number of 32 bytes and reduces it.
    pub(super) fn from_bytes_reduced(bytes: &[u8; 32]) -> Self {
        Self::from_words_reduced(words_of(bytes))
    }

    /// Reduces any number below 2²⁵⁶.
    pub(super) fn from_words_reduced(words: Words) -> Self {
        Self::reduce_once(words, 0)
    }

    pub(super) fn words(self) -> Words {
        self.words
    }

    pub(super) fn is_zero(self) -> bool {
        self.words == [0; 4]
    }

    pub(super) fn is_odd(self) -> bool {
        self.words[0] & 1 == 1
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let (sum, carry) = add(&self.words, &other.words);
        Self::reduce_once(sum, carry)
    }

    pub(super) fn negate(self) -> Self {
        if self.is_zero() { self } else { Self::new(subtract(&M::VALUE, &self.words)) }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.plus(other.negate())
    }

    pub(super) fn twice(self) -> Self {
        self.plus(self)
    }

    pub(super) fn square(self) -> Self {
        self.times(self)
    }

    /// The product: hi·2²⁵⁶ + lo ≡ hi·gap + lo, until nothing is above bit 256.
    pub(super) fn times(self, other: Self) -> Self {
        let [w0, w1, w2, w3, hi @ ..] = product(&self.words, &other.words);
        // 256-bit hi · 130-bit gap + lo is below 2³⁸⁷.
        let [w0, w1, w2, w3, h0, h1, h2] = fold::<M, 4, 7>([w0, w1, w2, w3], hi);
        // 131-bit hi · 130-bit gap + lo is below 2²⁶².
        let [w0, w1, w2, w3, h0, ..] = fold::<M, 3, 7>([w0, w1, w2, w3], [h0, h1, h2]);
        // Below 2¹³⁶ + 2²⁵⁶ at last.
        let [w0, w1, w2, w3, h0] = fold::<M, 1, 5>([w0, w1, w2, w3], [h0]);
        Self::reduce_once([w0, w1, w2, w3], h0)
    }

    /// The power, four bits of the exponent at a time.
    pub(super) fn power(self, exponent: &Words) -> Self {
        let mut powers = [Self::ONE; 16];
        for i in 1..16 {
            powers[i] = powers[i - 1].times(self);
        }
        let nibbles = exponent.iter().rev().flat_map(|w| (0..16).rev().map(move |i| w >> (4 * i)));
        nibbles.fold(Self::ONE, |power, nibble| {
            power.square().square().square().square().times(powers[(nibble & 15) as usize])
        })
    }

    /// 1/x, and 0 of 0.
    pub(super) fn invert(self) -> Self {
        Self::new(inverse::invert(&self.words, &M::VALUE))
    }

    /// Replaces each number by its inverse, with one inversion for all (Montgomery's trick).
    ///
    /// ```text
    /// products:  1, x₀, x₀x₁, …       then from the end:  1/xᵢ = (1/x₀…xᵢ) · (x₀…xᵢ₋₁)
    /// ```
    ///
    /// None of the numbers is zero.
    pub(super) fn invert_all(numbers: &mut [Self]) {
        let mut before = Vec::with_capacity(numbers.len());
        let mut product = Self::ONE;
        for number in numbers.iter() {
            debug_assert!(!number.is_zero(), "zero has no inverse and would make all others wrong");
            before.push(product);
            product = product.times(*number);
        }
        let mut inverse = product.invert();
        for (number, before) in numbers.iter_mut().zip(before).rev() {
            let inverted = inverse.times(before);
            inverse = inverse.times(*number);
            *number = inverted;
        }
    }

    /// carry·2²⁵⁶ + words, which is below twice the modulus, as a residue.
    fn reduce_once(words: Words, carry: u64) -> Self {
        let (less, reached) = add(&words, &[M::GAP[0], M::GAP[1], M::GAP[2], 0]);
        Self::new(if carry + reached > 0 { less } else { words })
    }
}

impl Field {
    /// A root of a square: x to the power (p + 1)/4. Of any other number, nothing.
    pub(super) fn root(self) -> Option<Self> {
        let root = self.power(&ROOT_EXPONENT);
        (root.square() == self).then_some(root)
    }
}

impl Modulus for P {
    const VALUE: Words = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];
    const GAP: [u64; 3] = [0x1_0000_03d1, 0, 0];
}

impl Modulus for N {
    const VALUE: Words =
        [0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, u64::MAX];
    const GAP: [u64; 3] = [0x402d_a173_2fc9_bebf, 0x4551_2319_50b7_5fc4, 1];
}

/// Reads 32 big-endian bytes.
pub(super) fn words_of(bytes: &[u8; 32]) -> Words {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().rev().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    words
}

pub(super) fn is_below(a: &Words, b: &Words) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

/// The sum's 256 bits, and its carry.
pub(super) fn add(a: &Words, b: &Words) -> (Words, u64) {
    let mut sum = [0; 4];
    let mut carry = 0;
    for i in 0..4 {
        let total = u128::from(a[i]) + u128::from(b[i]) + u128::from(carry);
        sum[i] = total as u64;
        carry = (total >> 64) as u64;
    }
    (sum, carry)
}

/// `a + b + carry`, and the carry out.
#[inline(always)]
pub(super) fn carrying_add(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (sum, overflow) = a.overflowing_add(b);
    let (sum, carried) = sum.overflowing_add(u64::from(carry));
    (sum, overflow | carried)
}

/// `a − b − borrow`, and the borrow out.
#[inline(always)]
pub(super) fn borrowing_sub(a: u64, b: u64, borrow: bool) -> (u64, bool) {
    let (difference, overflow) = a.overflowing_sub(b);
    let (difference, borrowed) = difference.overflowing_sub(u64::from(borrow));
    (difference, overflow | borrowed)
}

/// `a − b` for `b ≤ a`.
fn subtract(a: &Words, b: &Words) -> Words {
    let mut difference = [0; 4];
    let mut borrow = false;
    for i in 0..4 {
        (difference[i], borrow) = borrowing_sub(a[i], b[i], borrow);
    }
    difference
}

/// The 512 bits of a product.
pub(super) fn product(a: &Words, b: &Words) -> [u64; 8] {
    let mut out = [0; 8];
    for i in 0..4 {
        let mut carry = 0;
        for j in 0..4 {
            (out[i + j], carry) = multiply_add(a[i], b[j], out[i + j], carry);
        }
        out[i + 4] = carry;
    }
    out
}

/// `high · gap + low`, in `K` words that hold it.
#[inline]
fn fold<M: Modulus, const H: usize, const K: usize>(low: Words, high: [u64; H]) -> [u64; K] {
    let mut out = [0; K];
    out[..4].copy_from_slice(&low);
    for i in 0..H {
        let mut carry = 0;
        for j in 0..3 {
            (out[i + j], carry) = multiply_add(high[i], M::GAP[j], out[i + j], carry);
        }
        for word in &mut out[i + 3..] {
            let (sum, over) = word.overflowing_add(carry);
            (*word, carry) = (sum, u64::from(over));
        }
        debug_assert_eq!(carry, 0, "the caller chose enough words");
    }
    out
}

/// `a · b + c + d`, which 128 bits always hold: low and high word.
fn multiply_add(a: u64, b: u64, c: u64, d: u64) -> (u64, u64) {
    let total = u128::from(a) * u128::from(b) + u128::from(c) + u128::from(d);
    (total as u64, (total >> 64) as u64)
}

/// (p + 1)/4.
const ROOT_EXPONENT: Words = [0xffff_ffff_bfff_ff0c, u64::MAX, u64::MAX, 0x3fff_ffff_ffff_ffff];
