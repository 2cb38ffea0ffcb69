//! Field elements modulo p = 2²⁵⁶ − 2³² − 977, one in each lane of a vector, in `G` vectors at once.
//!
//! ```text
//! value = l₀ + l₁·2⁵² + l₂·2¹⁰⁴ + l₃·2¹⁵⁶ + l₄·2²⁰⁸        one vector for each lᵢ
//! ```
//!
//! The multiplier ([`Vector::multiply`]) reads 52 bits of each factor, ignores the rest, and adds the low and high halves of
//! the product to two columns of 64 bits. Hence three types:
//!
//! * [`Loose`]: limbs may use their 64 bits. The result of multiplications, and the terms of sums.
//! * [`Factor`]: after [`Loose::carry`], the bits of a limb above bit 51 are in the next one as well. Can be
//!   multiplied, but not added. The top limb is below 2⁵², the value below 16·2²⁵⁶.
//! * [`Tight`]: a factor whose carried bits are cleared. Can be multiplied and added; costs four more
//!   instructions.
//!
//! Multiplication is schoolbook into ten columns, then 2²⁶⁰ ≡ [`FOLD_260`] brings the upper five
//! columns down, then 2²⁵⁶ ≡ [`FOLD_256`] brings down what is above bit 256. The carries between
//! the five remaining limbs are done by [`Loose::carry`], so that sums and differences of products cost one
//! carry chain, and sums of products one reduction ([`Wide`]).
//!
//! In debug builds every element carries the largest value its limbs could have ([`Bound`]), and
//! every operation asserts that nothing overflows. The comments in `point.rs` state the bounds as
//! magnitudes: an element of magnitude m has a top limb of about m·2⁴⁸ at most, a value of about
//! m·2²⁵⁶.
//!
//! `G` groups run through each operation one after the other, so that the processor finds
//! independent work while a group waits for its own carries.

use std::ops::Deref;

use super::bound::{Bound, WideBound};
use super::vector::{Vector, Work};

/// The limbs of a number in each lane, least significant first.
pub(super) type Limbs<V> = [V; 5];

/// Elements to multiply. Bits 52 and up of limbs 0 to 3 are not part of the value: they have been carried,
/// and the multiplier ignores them.
#[derive(Clone, Copy)]
pub(super) struct Factor<V, const G: usize> {
    limbs: [Limbs<V>; G],
    bound: Bound,
}

/// Elements whose limbs are all below 2⁵²: factors, and terms of sums as well.
#[derive(Clone, Copy)]
pub(super) struct Tight<V, const G: usize>(Factor<V, G>);

/// Elements whose limbs may exceed 52 bits.
#[derive(Clone, Copy)]
pub(super) struct Loose<V, const G: usize> {
    limbs: [Limbs<V>; G],
    bound: Bound,
}

/// Ten columns of unreduced products: the value is Σ columnᵢ · 2⁵²ⁱ.
#[derive(Clone, Copy)]
pub(super) struct Wide<V, const G: usize> {
    columns: [[V; 10]; G],
    bound: WideBound,
}

impl<V: Vector, const G: usize> Factor<V, G> {
    /// The product, unreduced.
    #[inline(always)]
    pub(super) fn wide_mul(&self, other: &Self) -> Wide<V, G> {
        let mut columns = [[self.zero(); 10]; G];
        for g in 0..G {
            columns[g] = product_columns(&self.limbs[g], &other.limbs[g]);
        }
        Wide { columns, bound: self.bound.times::<V>(other.bound) }
    }

    /// The square, unreduced.
    #[inline(always)]
    pub(super) fn wide_square(&self) -> Wide<V, G> {
        let mut columns = [[self.zero(); 10]; G];
        for g in 0..G {
            columns[g] = square_columns(&self.limbs[g]);
        }
        Wide { columns, bound: self.bound.times::<V>(self.bound) }
    }

    /// The product, of magnitude 1.
    #[inline(always)]
    pub(super) fn mul(&self, other: &Self) -> Loose<V, G> {
        let product = Product(self, other);
        if V::PRODUCT_APART { self.any_vector().apart(product) } else { product.run() }
    }

    /// The square, of magnitude 1.
    #[inline(always)]
    pub(super) fn square(&self) -> Loose<V, G> {
        let mut limbs = self.limbs;
        for g in 0..G {
            limbs[g] = fold(square_columns(&self.limbs[g]));
        }
        Loose { limbs, bound: self.bound.times::<V>(self.bound).folded() }
    }

    /// Squares `count` times.
    #[inline(always)]
    pub(super) fn square_times(&self, count: usize) -> Self {
        self.any_vector().apart(Squares(self, count))
    }

    /// The same element, usable in sums.
    #[inline(always)]
    pub(super) fn tighten(&self) -> Tight<V, G> {
        let mask = self.zero().splat(MASK_52);
        let mut out = *self;
        for group in &mut out.limbs {
            for limb in &mut group[..4] {
                *limb = limb.and(mask);
            }
        }
        Tight(out)
    }

    /// Checks in debug builds that the data is within the tracked bound.
    #[inline(always)]
    fn assert_bound(&self) {
        #[cfg(debug_assertions)]
        for group in &self.limbs {
            // Both are far below 2⁶³, so the difference of one below the bound has its top bit clear.
            let bound = self.zero().splat(self.bound.top);
            let above = bound.minus(group[4]).shr::<63>().nonzero_lanes();
            assert_eq!(above, 0, "the top limb is above its bound {:#x}", self.bound.top);
        }
    }

    /// One of the vectors, as the proof that there are any.
    #[inline(always)]
    pub(super) fn any_vector(&self) -> V {
        self.limbs[0][0]
    }

    /// Zero in each lane of a vector.
    #[inline(always)]
    fn zero(&self) -> V {
        self.any_vector().splat(0)
    }

    /// The number one in each lane.
    #[inline(always)]
    pub(super) fn one(&self) -> Tight<V, G> {
        self.splat([1, 0, 0, 0, 0])
    }

    /// The same constant in each lane.
    #[inline(always)]
    pub(super) fn splat(&self, limbs: [u64; 5]) -> Tight<V, G> {
        let mut out = self.limbs;
        for group in &mut out {
            for i in 0..5 {
                group[i] = group[i].splat(limbs[i]);
            }
        }
        Tight::from_limbs(out)
    }
}

/// A multiplication.
struct Product<'a, V, const G: usize>(&'a Factor<V, G>, &'a Factor<V, G>);

impl<V: Vector, const G: usize> Work for Product<'_, V, G> {
    type Output = Loose<V, G>;

    #[inline(always)]
    fn run(self) -> Loose<V, G> {
        let Self(a, b) = self;
        let mut limbs = a.limbs;
        for g in 0..G {
            limbs[g] = fold(product_columns(&a.limbs[g], &b.limbs[g]));
        }
        Loose { limbs, bound: a.bound.times::<V>(b.bound).folded() }
    }
}

/// Squarings, one after the other.
struct Squares<'a, V, const G: usize>(&'a Factor<V, G>, usize);

impl<V: Vector, const G: usize> Work for Squares<'_, V, G> {
    type Output = Factor<V, G>;

    #[inline(always)]
    fn run(self) -> Factor<V, G> {
        let Self(factor, count) = self;
        (0..count).fold(*factor, |power, _| power.square().carry())
    }
}

impl<V: Vector, const G: usize> Tight<V, G> {
    /// Takes limbs below 2⁵² whose value is below 2²⁵⁶.
    #[inline(always)]
    pub(super) fn from_limbs(limbs: [Limbs<V>; G]) -> Self {
        Self(Factor { limbs, bound: Bound::REDUCED })
    }

    /// The limbs of each group.
    #[inline(always)]
    pub(super) fn limbs(&self) -> &[Limbs<V>; G] {
        &self.0.limbs
    }

    /// One of the groups.
    #[inline(always)]
    pub(super) fn group(&self, g: usize) -> Tight<V, 1> {
        Tight(self.0.group(g))
    }

    /// The same element, as a term for sums.
    #[inline(always)]
    pub(super) fn loose(&self) -> Loose<V, G> {
        Loose { limbs: self.0.limbs, bound: self.0.bound }
    }
}

impl<V, const G: usize> Deref for Tight<V, G> {
    type Target = Factor<V, G>;

    fn deref(&self) -> &Factor<V, G> {
        &self.0
    }
}

impl<V: Vector, const G: usize> Loose<V, G> {
    /// The sum. Magnitudes add.
    #[inline(always)]
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut out = *self;
        out.bound = self.bound.plus(other.bound);
        for g in 0..G {
            for i in 0..5 {
                out.limbs[g][i] = self.limbs[g][i].plus(other.limbs[g][i]);
            }
        }
        out
    }

    /// `self − other + K·p`, for an `other` of magnitude at most K − 1. Adds K to the magnitude.
    #[inline(always)]
    pub(super) fn minus<const K: u64>(&self, other: &Self) -> Self {
        self.plus(&other.negate::<K>())
    }

    /// `K·p − self`, for a `self` of magnitude at most K − 1.
    #[inline(always)]
    pub(super) fn negate<const K: u64>(&self) -> Self {
        let offset = const { multiple_of_p(K) };
        let mut out = *self;
        out.bound = self.bound.taken_from(offset);
        for g in 0..G {
            for i in 0..5 {
                let limb = self.limbs[g][i];
                out.limbs[g][i] = limb.splat(offset[i]).minus(limb);
            }
        }
        out
    }

    /// `K·p − self`, or in the lanes of `mask` just `self`.
    #[inline(always)]
    pub(super) fn negate_unless<const K: u64>(&self, mask: [u8; G]) -> Self {
        let offset = const { multiple_of_p(K) };
        let mut out = *self;
        out.bound = self.bound.or(self.bound.taken_from(offset));
        for g in 0..G {
            for i in 0..5 {
                let limb = self.limbs[g][i];
                let negative = limb.splat(offset[i]).minus(limb);
                out.limbs[g][i] = negative.or_where(mask[g], limb);
            }
        }
        out
    }

    /// Twice the element. Doubles the magnitude.
    #[inline(always)]
    pub(super) fn twice(&self) -> Self {
        self.plus(self)
    }

    /// Carries between the limbs. The value stays.
    #[inline(always)]
    pub(super) fn carry(&self) -> Factor<V, G> {
        let mut limbs = self.limbs;
        for group in &mut limbs {
            *group = carry(*group);
        }
        let out = Factor { limbs, bound: self.bound.carried() };
        out.assert_bound();
        out
    }

    /// Carries between the limbs, so that each is below 2⁵².
    #[inline(always)]
    pub(super) fn tighten(&self) -> Tight<V, G> {
        self.carry().tighten()
    }
}

impl<V: Vector, const G: usize> Wide<V, G> {
    /// The sum of two sums of products.
    #[inline(always)]
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut out = *self;
        out.bound = self.bound.plus(other.bound);
        for g in 0..G {
            for i in 0..10 {
                out.columns[g][i] = self.columns[g][i].plus(other.columns[g][i]);
            }
        }
        out
    }

    /// Adds a product.
    #[inline(always)]
    pub(super) fn plus_product(&self, a: &Factor<V, G>, b: &Factor<V, G>) -> Self {
        let mut out = *self;
        out.bound = self.bound.plus(a.bound.times::<V>(b.bound));
        for g in 0..G {
            let columns = add_start(out.columns[g], Start::<V>::PRODUCT);
            out.columns[g] = add_product(columns, &a.limbs[g], &b.limbs[g]);
        }
        out
    }

    /// Twice the sum.
    #[inline(always)]
    pub(super) fn twice(&self) -> Self {
        self.plus(self)
    }

    /// Brings the ten columns down to five limbs and magnitude 1.
    #[inline(always)]
    pub(super) fn fold(&self) -> Loose<V, G> {
        let mut limbs = [[self.columns[0][0]; 5]; G];
        for g in 0..G {
            limbs[g] = fold(self.columns[g]);
        }
        Loose { limbs, bound: self.bound.folded() }
    }
}

// Rare operations: once or twice a signature, so plain rather than fast.

impl<V: Vector, const G: usize> Tight<V, G> {
    /// The same residue below 2²⁵⁶, of an element of magnitude 1.
    #[inline(always)]
    pub(super) fn below_2_256(&self) -> Self {
        // Below 2²⁵⁶ + 2²²⁸, so either bit 256 is clear, or what is below it is so small that the
        // fold cannot reach it again.
        #[cfg(debug_assertions)]
        assert!(self.bound.top < (1 << 48) + (1 << 20), "magnitude 1");
        Self::from_limbs(fold_top(self.0.limbs))
    }

    /// The representative below p.
    #[inline(always)]
    pub(super) fn normalise(&self) -> Self {
        // The first fold leaves less than 2²⁵⁶ + 2³⁷, the second less than 2²⁵⁶.
        let below_2_256 = fold_top(fold_top(self.0.limbs));
        Self::from_limbs(subtract_p_where_not_below(below_2_256))
    }

    /// The lanes that are zero modulo p.
    #[inline(always)]
    pub(super) fn zero_lanes(&self) -> [u8; G] {
        let normal = self.normalise();
        let mut mask = [0; G];
        for g in 0..G {
            let [l0, l1, l2, l3, l4] = normal.0.limbs[g];
            mask[g] = V::ALL & !l0.or(l1).or(l2).or(l3).or(l4).nonzero_lanes();
        }
        mask
    }

    /// The lanes whose representative below p is odd.
    #[inline(always)]
    pub(super) fn odd_lanes(&self) -> [u8; G] {
        let normal = self.normalise();
        let mut mask = [0; G];
        for g in 0..G {
            mask[g] = lanes_with(normal.0.limbs[g][0], 1);
        }
        mask
    }

    /// `other` in the lanes of `mask`, `self` elsewhere.
    #[inline(always)]
    pub(super) fn or_where(&self, mask: [u8; G], other: &Self) -> Self {
        Self(self.0.or_where(mask, &other.0))
    }

    /// Each lane's number from the lane at this distance (see [`Vector::exchange`]).
    #[inline(always)]
    pub(super) fn exchange(&self, distance: usize) -> Self {
        Self(self.0.exchange(distance))
    }
}

impl<V: Vector, const G: usize> Factor<V, G> {
    /// One of the groups.
    #[inline(always)]
    pub(super) fn group(&self, g: usize) -> Factor<V, 1> {
        Factor { limbs: [self.limbs[g]], bound: self.bound }
    }

    /// `other` in the lanes of `mask`, `self` elsewhere.
    #[inline(always)]
    pub(super) fn or_where(&self, mask: [u8; G], other: &Self) -> Self {
        let mut limbs = self.limbs;
        for g in 0..G {
            for i in 0..5 {
                limbs[g][i] = limbs[g][i].or_where(mask[g], other.limbs[g][i]);
            }
        }
        Self { limbs, bound: self.bound.or(other.bound) }
    }

    /// Each lane's number from the lane at this distance (see [`Vector::exchange`]).
    #[inline(always)]
    pub(super) fn exchange(&self, distance: usize) -> Self {
        let mut out = *self;
        for group in &mut out.limbs {
            for limb in group {
                *limb = limb.exchange(distance);
            }
        }
        out
    }

    /// The 1/x of each lane, and 0 of 0: x to the power p − 2.
    ///
    /// The addition chain is the one libsecp256k1 used in `secp256k1_fe_inv`: runs of ones of the
    /// lengths 2, 22 and 223 in p − 2, 255 squarings and 15 multiplications.
    #[inline(always)]
    pub(super) fn invert(&self) -> Self {
        let (x2, x22, x223) = self.runs_of_ones();
        let t = x223.square_times(23).mul(&x22).carry();
        let t = t.square_times(5).mul(self).carry();
        let t = t.square_times(3).mul(&x2).carry();
        t.square_times(2).mul(self).carry()
    }

    /// A root of each lane that has one: x to the power (p + 1)/4 (the chain of `secp256k1_fe_sqrt`, 253
    /// squarings and 13 multiplications). The caller checks whether its square is x.
    #[inline(always)]
    pub(super) fn root(&self) -> Self {
        let (x2, x22, x223) = self.runs_of_ones();
        let t = x223.square_times(23).mul(&x22).carry();
        let t = t.square_times(6).mul(&x2).carry();
        t.square_times(2)
    }

    /// x to the powers 2² − 1, 2²² − 1 and 2²²³ − 1.
    #[inline(always)]
    fn runs_of_ones(&self) -> (Self, Self, Self) {
        let x2 = self.square_times(1).mul(self).carry();
        let x3 = x2.square_times(1).mul(self).carry();
        let x6 = x3.square_times(3).mul(&x3).carry();
        let x9 = x6.square_times(3).mul(&x3).carry();
        let x11 = x9.square_times(2).mul(&x2).carry();
        let x22 = x11.square_times(11).mul(&x11).carry();
        let x44 = x22.square_times(22).mul(&x22).carry();
        let x88 = x44.square_times(44).mul(&x44).carry();
        let x176 = x88.square_times(88).mul(&x88).carry();
        let x220 = x176.square_times(44).mul(&x44).carry();
        let x223 = x220.square_times(3).mul(&x3).carry();
        (x2, x22, x223)
    }
}

#[cfg(test)]
impl<V: Vector, const G: usize> Factor<V, G> {
    /// Any limbs below 2⁵², the top one small enough for the widest product.
    #[inline(always)]
    pub(super) fn widest(limbs: [Limbs<V>; G]) -> Self {
        Self { limbs, bound: Bound::of(MASK_52, MASK_52 - 2 * V::SPARE) }
    }

    #[inline(always)]
    pub(super) fn limbs_as_they_are(&self) -> &[Limbs<V>; G] {
        &self.limbs
    }
}

#[cfg(test)]
impl<V: Vector, const G: usize> Loose<V, G> {
    /// Any limbs up to these: of limbs 0 to 3, of limb 4.
    #[inline(always)]
    pub(super) fn up_to(low: u64, top: u64, limbs: [Limbs<V>; G]) -> Self {
        Self { limbs, bound: Bound::of(low, top) }
    }

    #[inline(always)]
    pub(super) fn limbs_as_they_are(&self) -> &[Limbs<V>; G] {
        &self.limbs
    }
}

/// 25 multiplications. Column k holds the low halves of the lᵢ·mⱼ with i + j = k and the high
/// halves of those with i + j = k − 1: nine terms of 52 bits in the fullest.
#[inline(always)]
fn product_columns<V: Vector>(a: &Limbs<V>, b: &Limbs<V>) -> [V; 10] {
    add_product(add_start([a[0].splat(0); 10], Start::<V>::PRODUCT), a, b)
}

#[inline(always)]
fn factors<V: Vector>([l0, l1, l2, l3, l4]: &Limbs<V>) -> [V::Factor; 5] {
    [l0.factor(), l1.factor(), l2.factor(), l3.factor(), l4.factor()]
}

#[inline(always)]
fn add_product<V: Vector>(mut columns: [V; 10], a: &Limbs<V>, b: &Limbs<V>) -> [V; 10] {
    let (a, b) = (factors(a), factors(b));
    for i in 0..5 {
        V::multiply_row(&mut columns, i, a[i], &b);
    }
    columns
}

/// 15 multiplications: the products of different limbs once, doubled together, then the squares.
#[inline(always)]
fn square_columns<V: Vector>(a: &Limbs<V>) -> [V; 10] {
    let mut columns = [a[0].splat(0); 10];
    let a = factors(a);
    for i in 0..5 {
        for j in i + 1..5 {
            let (low, high) = V::multiply(columns[i + j], columns[i + j + 1], a[i], a[j]);
            (columns[i + j], columns[i + j + 1]) = (low, high);
        }
    }
    for column in &mut columns[1..9] {
        *column = column.plus(*column);
    }
    columns = add_start(columns, Start::<V>::PRODUCT);
    for i in 0..5 {
        let (low, high) = V::multiply(columns[2 * i], columns[2 * i + 1], a[i], a[i]);
        (columns[2 * i], columns[2 * i + 1]) = (low, high);
    }
    columns
}

#[inline(always)]
fn add_start<V: Vector, const N: usize>(mut columns: [V; N], start: [u64; N]) -> [V; N] {
    for i in 0..N {
        columns[i] = columns[i].plus(columns[i].splat(start[i]));
    }
    columns
}

/// Ten columns below 2⁶³ of a number below 2⁵²⁰, to five limbs with the same value modulo p, the
/// top one below 2⁴⁸. 6 multiplications.
#[inline(always)]
fn fold<V: Vector>(columns: [V; 10]) -> Limbs<V> {
    let [t0, t1, t2, t3, t4, t5, t6, t7, t8, t9] = columns;
    // The upper columns become factors: t9 ends below 2⁵² because the number is below 2⁵²⁰.
    let upper = carry([t5, t6, t7, t8, t9]);
    let r = t0.splat(FOLD_260).factor();
    let mut low = add_start([t0, t1, t2, t3, t4, t0.splat(0)], Start::<V>::FOLD);
    for i in 0..5 {
        (low[i], low[i + 1]) = V::multiply(low[i], low[i + 1], upper[i].factor(), r);
    }
    // What is above bit 256: the top of limb 4, and limb 5 (below 2³⁷), below 2⁴² together.
    let [l0, l1, l2, l3, l4, l5] = low;
    let above = l4.shr::<48>().plus(l5.shl::<4>());
    let (l0, l1) = V::multiply(l0, l1, above.factor(), t0.splat(FOLD_256).factor());
    [l0, l1, l2, l3, l4.and(l4.splat(MASK_48))]
}

/// What the columns of a product start with: a multiple of p, less what [`Vector::multiply`] adds too much.
struct Start<V>(V);

impl<V: Vector> Start<V> {
    /// Of a product.
    const PRODUCT: [u64; 10] = {
        let multiple = multiple_of_p_in_columns(V::SPARE);
        let mut start = [0_u64; 10];
        let mut k = 0;
        while k < 10 {
            let lows = if k < 5 { k + 1 } else { 9 - k } as u64;
            let highs = if k < 6 { k } else { 10 - k } as u64;
            let too_much =
                lows.wrapping_mul(V::LOW_EXCESS).wrapping_add(highs.wrapping_mul(V::HIGH_EXCESS));
            start[k] = multiple[k].wrapping_sub(too_much);
            k += 1;
        }
        start
    };

    /// Of a reduction: five products into columns 0 to 5, and one into 0 and 1.
    const FOLD: [u64; 6] = {
        let low = 0_u64.wrapping_sub(V::LOW_EXCESS);
        let high = 0_u64.wrapping_sub(V::HIGH_EXCESS);
        let both = low.wrapping_add(high);
        [low.wrapping_add(low), both.wrapping_add(high), both, both, both, high]
    };
}

/// Columns 0 to 8 of a multiple of p, each from `spare` − 1 to `spare` times 2⁵².
const fn multiple_of_p_in_columns(spare: u64) -> [u64; 10] {
    let column = spare << 52;
    // The number without the last digits, modulo p: 2²⁶⁰ ≡ FOLD_260 moves columns 5 to 8 to 0 to 3.
    let mut digits = [column as u128; 5];
    let mut k = 0;
    while k < 4 {
        digits[k] += column as u128 * FOLD_260 as u128;
        k += 1;
    }
    // What the last digit carries returns to the first; the third time it carries nothing.
    let mut round = 0;
    while round < 3 {
        let mut carry = 0;
        let mut k = 0;
        while k < 5 {
            let sum = digits[k] + carry;
            digits[k] = sum & MASK_52 as u128;
            carry = sum >> 52;
            k += 1;
        }
        digits[0] += carry * FOLD_260 as u128;
        round += 1;
    }
    let mut columns = [column; 10];
    columns[9] = 0;
    let mut k = 0;
    while k < 5 {
        columns[k] -= digits[k] as u64;
        k += 1;
    }
    columns
}

/// Adds the bits of limbs 0 to 3 above the 52nd to the next limb, without clearing them.
#[inline(always)]
fn carry<V: Vector>([l0, l1, l2, l3, l4]: Limbs<V>) -> Limbs<V> {
    let l1 = l1.plus(l0.shr::<52>());
    let l2 = l2.plus(l1.shr::<52>());
    let l3 = l3.plus(l2.shr::<52>());
    let l4 = l4.plus(l3.shr::<52>());
    [l0, l1, l2, l3, l4]
}

/// Carries, and clears what was carried.
#[inline(always)]
fn carry_and_mask<V: Vector>(limbs: Limbs<V>) -> Limbs<V> {
    let mask = limbs[0].splat(MASK_52);
    let mut out = carry(limbs);
    for limb in &mut out[..4] {
        *limb = limb.and(mask);
    }
    out
}

/// Of tight limbs: what is above bit 256 (at most four bits) replaced by its residue, and carried.
#[inline(always)]
fn fold_top<V: Vector, const G: usize>(mut limbs: [Limbs<V>; G]) -> [Limbs<V>; G] {
    for group in &mut limbs {
        let above = group[4].shr::<48>();
        // FOLD_256 = 2³² + 977
        let small = above.shl::<10>().minus(above.shl::<5>()).minus(above.shl::<4>()).plus(above);
        group[0] = group[0].plus(above.shl::<32>()).plus(small);
        group[4] = group[4].and(group[4].splat(MASK_48));
        *group = carry_and_mask(*group);
    }
    limbs
}

/// Of tight limbs with a value below 2²⁵⁶: the value minus p where that is not negative.
#[inline(always)]
fn subtract_p_where_not_below<V: Vector, const G: usize>(
    mut limbs: [Limbs<V>; G],
) -> [Limbs<V>; G] {
    for group in &mut limbs {
        // v ≥ p exactly if v + (2²⁵⁶ − p) reaches bit 256, and the rest of that sum is v − p.
        let mut sum = *group;
        sum[0] = sum[0].plus(sum[0].splat(FOLD_256));
        sum = carry_and_mask(sum);
        let reached = lanes_with(sum[4], 1 << 48);
        sum[4] = sum[4].and(sum[4].splat(MASK_48));
        for i in 0..5 {
            group[i] = group[i].or_where(reached, sum[i]);
        }
    }
    limbs
}

/// The lanes in which any of these bits is set.
#[inline(always)]
fn lanes_with<V: Vector>(limb: V, bits: u64) -> u8 {
    limb.and(limb.splat(bits)).nonzero_lanes()
}

/// The limbs of K·p, written so that each is at least [`LIFT`] · 2⁵² (limbs 0–3) or close to
/// K·2⁴⁸ (limb 4): a loose element can be taken from it limb by limb.
pub(super) const fn multiple_of_p(k: u64) -> [u64; 5] {
    let lift = LIFT << 52;
    [
        k * P[0] + lift,
        k * P[1] + lift - LIFT,
        k * P[2] + lift - LIFT,
        k * P[3] + lift - LIFT,
        k * P[4] - LIFT,
    ]
}

pub(super) const MASK_52: u64 = (1 << 52) - 1;
pub(super) const MASK_48: u64 = (1 << 48) - 1;

/// 2²⁵⁶ mod p.
const FOLD_256: u64 = 0x1_0000_03d1;

/// 2²⁶⁰ mod p.
const FOLD_260: u64 = FOLD_256 << 4;

/// The limbs of p.
const P: [u64; 5] = [MASK_52 + 1 - FOLD_256, MASK_52, MASK_52, MASK_52, MASK_48];

/// The part of each limb of a [`multiple_of_p`] that is borrowed from the next. Loose elements that are
/// subtracted have limbs below [`LIFT`] · 2⁵².
pub(super) const LIFT: u64 = 64;
