//! Numbers modulo a field prime p or a group order n, one at a time.
//!
//! Four 64-bit words, always the representative below the modulus: the reference for the lanes, and fast enough for the few
//! scalars of a signature. How a product is reduced depends on the modulus: [`fold`] for those close to 2²⁵⁶,
//! [`montgomery`] for any other.

use std::fmt::Debug;
use std::marker::PhantomData;

use super::{Parameters, inverse};

/// A number below 2²⁵⁶, least significant word first.
pub(super) type Words = [u64; 4];

/// A modulus of [`Residue`], odd and above 2²⁵⁵.
pub(super) trait Modulus: Copy + Eq + Debug + 'static {
    /// The modulus.
    const VALUE: Words;

    /// The factor between a number and its representation in the lanes.
    const TO_LANES: Words = ONE;

    /// 1/[`TO_LANES`](Self::TO_LANES).
    const FROM_LANES: Words = ONE;

    /// The residue of a product.
    fn reduce(product: [u64; 8]) -> Words;
}

/// An integer modulo `M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Residue<M> {
    /// Below the modulus.
    words: Words,
    modulus: PhantomData<M>,
}

/// An element of the field of a curve's coordinates.
pub(super) type Field<C> = Residue<<C as Parameters>::P>;

/// A multiplier of a curve's points.
pub(super) type Scalar<C> = Residue<<C as Parameters>::N>;

impl<M: Modulus> Residue<M> {
    pub(super) const ZERO: Self = Self::new([0; 4]);
    pub(super) const ONE: Self = Self::new(ONE);

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

    pub(super) const fn words(self) -> Words {
        self.words
    }

    pub(super) fn is_zero(self) -> bool {
        self.words == [0; 4]
    }

    pub(super) fn is_odd(self) -> bool {
        self.words[0] & 1 == 1
    }

    pub(super) const fn plus(self, other: Self) -> Self {
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

    /// The product.
    pub(super) fn times(self, other: Self) -> Self {
        Self::new(M::reduce(product(&self.words, &other.words)))
    }

    /// A root of a square, for a prime modulus of which a quarter is three quarters: x to the power (p + 1)/4. Of any other
    /// number, nothing.
    pub(super) fn root(self) -> Option<Self> {
        let [w0, w1, w2, w3] = add(&M::VALUE, &[1, 0, 0, 0]).0;
        let quarter = [w0 >> 2 | w1 << 62, w1 >> 2 | w2 << 62, w2 >> 2 | w3 << 62, w3 >> 2];
        let root = self.power(&quarter);
        (root.square() == self).then_some(root)
    }

    /// The representation of this number in the lanes.
    pub(super) fn to_lanes(self) -> Words {
        self.scaled(&M::TO_LANES)
    }

    /// The number in whose place the lanes hold these words, which are below the modulus.
    pub(super) fn from_lanes(words: Words) -> Self {
        Self::new(Self::new(words).scaled(&M::FROM_LANES))
    }

    fn scaled(self, factor: &Words) -> Words {
        if *factor == ONE { self.words } else { M::reduce(product(&self.words, factor)) }
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

    /// Replaces all numbers by their inverses, with one inversion for all (Montgomery's trick).
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
    const fn reduce_once(words: Words, carry: u64) -> Self {
        Self::new(reduce_once::<M>(words, carry))
    }
}

/// The residue of a product, for a modulus that is 2²⁵⁶ minus a gap below 2¹³⁰: hi·2²⁵⁶ + lo ≡ hi·gap + lo, until nothing is
/// above bit 256.
pub(super) fn fold<M: Modulus>([w0, w1, w2, w3, hi @ ..]: [u64; 8]) -> Words {
    // 256-bit hi · 130-bit gap + lo is below 2³⁸⁷.
    let [w0, w1, w2, w3, h0, h1, h2] = fold_once::<M, 4, 7>([w0, w1, w2, w3], hi);
    // 131-bit hi · 130-bit gap + lo is below 2²⁶².
    let [w0, w1, w2, w3, h0, ..] = fold_once::<M, 3, 7>([w0, w1, w2, w3], [h0, h1, h2]);
    // Below 2¹³⁶ + 2²⁵⁶ at last.
    let [w0, w1, w2, w3, h0] = fold_once::<M, 1, 5>([w0, w1, w2, w3], [h0]);
    reduce_once::<M>([w0, w1, w2, w3], h0)
}

/// The residue of a product, for any modulus M: two of Montgomery's divisions by 2²⁵⁶, with a multiplication by
/// 2⁵¹² mod M between them.
///
/// `negative_inverse` is −1/M mod 2⁶⁴, `square` is 2⁵¹² mod M.
pub(super) fn montgomery<M: Modulus>(
    wide: [u64; 8],
    negative_inverse: u64,
    square: &Words,
) -> Words {
    let divided = divide::<M>(wide, negative_inverse);
    divide::<M>(product(&divided, square), negative_inverse)
}

/// A number below 2²⁵⁶·M, divided by 2²⁵⁶ modulo M: multiples of M clear the lower four words one after the other.
fn divide<M: Modulus>(mut wide: [u64; 8], negative_inverse: u64) -> Words {
    let mut above = 0;
    for i in 0..4 {
        let multiple = wide[i].wrapping_mul(negative_inverse);
        let mut carry = 0;
        for j in 0..4 {
            (wide[i + j], carry) = multiply_add(multiple, M::VALUE[j], wide[i + j], carry);
        }
        let sum = u128::from(wide[i + 4]) + u128::from(carry) + u128::from(above);
        (wide[i + 4], above) = (sum as u64, (sum >> 64) as u64);
    }
    let [_, _, _, _, w0, w1, w2, w3] = wide;
    reduce_once::<M>([w0, w1, w2, w3], above)
}

/// carry·2²⁵⁶ + words, which is below twice the modulus, less the modulus if that is not negative.
const fn reduce_once<M: Modulus>(words: Words, carry: u64) -> Words {
    let (less, reached) = add(&words, &gap::<M>());
    if carry + reached > 0 { less } else { words }
}

/// 2²⁵⁶ − modulus.
pub(super) const fn gap<M: Modulus>() -> Words {
    let [w0, w1, w2, w3] = M::VALUE;
    // The modulus is odd, so that nothing is carried from the lowest word.
    [w0.wrapping_neg(), !w1, !w2, !w3]
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
pub(super) const fn add(a: &Words, b: &Words) -> (Words, u64) {
    let mut sum = [0; 4];
    let mut carry = 0;
    let mut i = 0;
    while i < 4 {
        let total = a[i] as u128 + b[i] as u128 + carry as u128;
        sum[i] = total as u64;
        carry = (total >> 64) as u64;
        i += 1;
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

/// `high · gap + low`, in `K` words that hold it, for a gap of three words.
#[inline]
fn fold_once<M: Modulus, const H: usize, const K: usize>(low: Words, high: [u64; H]) -> [u64; K] {
    let gap = const { gap::<M>() };
    let mut out = [0; K];
    out[..4].copy_from_slice(&low);
    for i in 0..H {
        let mut carry = 0;
        for j in 0..3 {
            (out[i + j], carry) = multiply_add(high[i], gap[j], out[i + j], carry);
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

const ONE: Words = [1, 0, 0, 0];
