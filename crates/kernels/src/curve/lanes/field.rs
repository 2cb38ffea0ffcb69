//! Field elements modulo a curve's prime, one per lane of a vector, in `G` vectors at once.
//!
//! ```text
//! value = l₀ + l₁·2⁵² + l₂·2¹⁰⁴ + l₃·2¹⁵⁶ + l₄·2²⁰⁸        one vector per lᵢ
//! ```
//!
//! The multiplier ([`Vector::multiply`]) reads 52 bits of both factors, ignores the rest, and adds the low and high halves
//! of the product to two columns of 64 bits. Hence three types:
//!
//! * [`Loose`]: limbs may use their 64 bits. The result of multiplications, and the terms of sums.
//! * [`Factor`]: after [`Loose::carry`], the bits of a limb above bit 51 are in the next one as well. Can be
//!   multiplied, but not added. The top limb is below 2⁵², the value below 16·2²⁵⁶.
//! * [`Tight`]: a factor whose carried bits are cleared. Can be multiplied and added; costs four more
//!   instructions.
//!
//! Multiplication is schoolbook into ten columns, which [`Prime::fold`] brings down to five. The carries between
//! the five limbs are done by [`Loose::carry`], so that sums and differences of products cost one
//! carry chain, and sums of products one reduction ([`Wide`]).
//!
//! In debug builds every element carries the largest value its limbs could have ([`Bound`]), and
//! every operation asserts that nothing overflows. The comments in `point.rs` state the bounds as
//! magnitudes: an element of magnitude m has a top limb of about m·2⁴⁸ at most, a value of about
//! m·2²⁵⁶.
//!
//! `G` groups run through every operation one after the other, so that the processor finds
//! independent work while a group waits for its own carries.

use std::ops::Deref;

use super::super::Parameters;
use super::super::modular::{Modulus, Residue, Words, gap};
use super::bound::{Bound, WideBound};
use super::vector::{Vector, Work};

/// Whether products and carries are functions of their own whatever the vectors. In debug builds, which check bounds at every step, this halves
/// the code and the time of its compilation.
const CALLS: bool = cfg!(debug_assertions);

/// The limbs of the lanes' numbers, least significant first.
pub(super) type Limbs<V> = [V; 5];

/// The prime of a vector's curve.
pub(super) type PrimeOf<V> = <<V as Vector>::Curve as Parameters>::P;

/// A prime modulo which lanes compute: how columns become limbs, and the chains of powers.
pub(in crate::curve) trait Prime: Modulus {
    /// [`fold_top`](Self::fold_top) leaves less than 2²⁵⁶ of an element whose top limb is below this.
    #[cfg(any(test, debug_assertions))]
    const FOLDABLE_TOP: u64;

    /// The amount that [`fold`](Self::fold) adds to the terms of a column.
    #[cfg(any(test, debug_assertions))]
    const FOLD_TERMS: u64;

    /// Whether a reduction is so long that products and squares are functions of their own with any vectors.
    const FOLD_IS_LONG: bool;

    /// Whether [`fold`](Self::fold) leaves a magnitude of 1 whatever is added to the lower five columns.
    const SHRINKS_SUMS: bool;

    /// Ten columns below 2⁶³, to five limbs of the same residue (for Montgomery's form, of its quotient by 2²⁶⁰).
    fn fold<V: Vector>(columns: [V; 10]) -> Limbs<V>;

    /// The largest top limb after folding a number below `value`·2⁴¹⁶.
    #[cfg(debug_assertions)]
    fn folded_top(value: u128) -> u64;

    /// The same residue, of magnitude 1, if a product may be of a larger one. The limbs have to be carried before
    /// anything but sums is made of them.
    fn settle<V: Vector>(limbs: Limbs<V>) -> Limbs<V>;

    /// The largest limbs (0 to 3, and 4) after settling limbs up to these.
    #[cfg(debug_assertions)]
    fn settled(limbs: [u64; 2]) -> [u64; 2];

    /// Replaces the bits of tight limbs above bit 256 (at most four) by their residue, and carries.
    fn fold_top<V: Vector>(limbs: Limbs<V>) -> Limbs<V>;

    /// The representation in lanes of a number below 2²⁵⁶.
    fn enter<V: Vector, const G: usize>(number: &Tight<V, G>) -> Tight<V, G>;

    /// The number in whose place lanes hold this.
    fn leave<V: Vector, const G: usize>(held: &Tight<V, G>) -> Tight<V, G>;

    /// A root in the lanes that have one: x to the power (p + 1)/4.
    fn root<V: Vector, const G: usize>(x: &Factor<V, G>) -> Factor<V, G>;
}

/// Elements to multiply. Bits 52 and up of limbs 0 to 3 are not part of the value: they have been carried,
/// and the multiplier ignores them.
#[derive(Clone, Copy)]
pub(in crate::curve) struct Factor<V, const G: usize> {
    limbs: [Limbs<V>; G],
    bound: Bound,
}

/// Elements whose limbs are all below 2⁵²: factors, and terms of sums as well.
#[derive(Clone, Copy)]
pub(in crate::curve) struct Tight<V, const G: usize>(Factor<V, G>);

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

    /// The product. Modulo the prime of secp256k1 it is of magnitude 1, in Montgomery's form of 1 and a sixteenth of the
    /// product of the magnitudes.
    #[inline(always)]
    pub(super) fn mul(&self, other: &Self) -> Loose<V, G> {
        let product = Product(self, other);
        let is_apart = CALLS || V::PRODUCT_APART || PrimeOf::<V>::FOLD_IS_LONG;
        if is_apart { self.any_vector().apart(product) } else { product.run() }
    }

    /// The square, of the magnitude of a product.
    #[inline(always)]
    pub(super) fn square(&self) -> Loose<V, G> {
        let square = Square(self);
        let is_apart = CALLS || V::SQUARE_APART || PrimeOf::<V>::FOLD_IS_LONG;
        if is_apart { self.any_vector().apart(square) } else { square.run() }
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

    /// Zero in every lane of a vector.
    #[inline(always)]
    fn zero(&self) -> V {
        self.any_vector().splat(0)
    }

    /// The number one in every lane.
    #[inline(always)]
    pub(super) fn one(&self) -> Tight<V, G> {
        self.splat(const { limbs_of(&PrimeOf::<V>::TO_LANES) })
    }

    /// The same number in every lane.
    #[inline(always)]
    pub(super) fn number(&self, number: Residue<PrimeOf<V>>) -> Tight<V, G> {
        self.splat(limbs_of(&number.words())).enter()
    }

    /// The same limbs in every lane.
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
            limbs[g] = PrimeOf::<V>::fold(product_columns(&a.limbs[g], &b.limbs[g]));
        }
        Loose { limbs, bound: a.bound.times::<V>(b.bound).folded::<V>() }
    }
}

/// A squaring.
struct Square<'a, V, const G: usize>(&'a Factor<V, G>);

impl<V: Vector, const G: usize> Work for Square<'_, V, G> {
    type Output = Loose<V, G>;

    #[inline(always)]
    fn run(self) -> Loose<V, G> {
        let mut limbs = self.0.limbs;
        for g in 0..G {
            limbs[g] = PrimeOf::<V>::fold(square_columns(&self.0.limbs[g]));
        }
        Loose { limbs, bound: self.0.bound.times::<V>(self.0.bound).folded::<V>() }
    }
}

/// Carries between limbs.
struct Carry<'a, V, const G: usize>(&'a Loose<V, G>);

impl<V: Vector, const G: usize> Work for Carry<'_, V, G> {
    type Output = Factor<V, G>;

    #[inline(always)]
    fn run(self) -> Factor<V, G> {
        let mut limbs = self.0.limbs;
        for group in &mut limbs {
            *group = carry(*group);
        }
        let out = Factor { limbs, bound: self.0.bound.carried() };
        out.assert_bound();
        out
    }
}

/// Squarings, one after the other.
struct Squares<'a, V, const G: usize>(&'a Factor<V, G>, usize);

impl<V: Vector, const G: usize> Work for Squares<'_, V, G> {
    type Output = Factor<V, G>;

    #[inline(always)]
    fn run(self) -> Factor<V, G> {
        let Self(factor, count) = self;
        (0..count).fold(*factor, |power, _| Square(&power).run().carry())
    }
}

impl<V: Vector, const G: usize> Tight<V, G> {
    /// Takes limbs below 2⁵² whose value is below 2²⁵⁶.
    #[inline(always)]
    pub(super) fn from_limbs(limbs: [Limbs<V>; G]) -> Self {
        Self(Factor { limbs, bound: Bound::REDUCED })
    }

    /// The limbs of all groups.
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
        let offset = const { multiple_of_p::<PrimeOf<V>>(K) };
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
        let offset = const { multiple_of_p::<PrimeOf<V>>(K) };
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

    /// The same element, of magnitude 1 where a product may be of a larger one. To be carried next, or added to others
    /// first.
    #[inline(always)]
    pub(super) fn settle(&self) -> Self {
        let mut out = *self;
        out.bound = self.bound.settled::<V>();
        for group in &mut out.limbs {
            *group = PrimeOf::<V>::settle(*group);
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
        let carries = Carry(self);
        if CALLS { self.limbs[0][0].apart(carries) } else { carries.run() }
    }

    /// Carries between the limbs, so that all are below 2⁵².
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

    /// The sum of the products and another element, of magnitude 1.
    #[inline(always)]
    pub(super) fn fold_with(&self, other: &Loose<V, G>) -> Loose<V, G> {
        if !PrimeOf::<V>::SHRINKS_SUMS {
            return self.fold().plus(other).settle();
        }
        let mut out = *self;
        out.bound = self.bound.with_low(other.bound);
        for g in 0..G {
            for i in 0..5 {
                out.columns[g][i] = self.columns[g][i].plus(other.limbs[g][i]);
            }
        }
        out.fold()
    }

    /// Brings the ten columns down to five limbs. The result has the magnitude of a product.
    #[inline(always)]
    pub(super) fn fold(&self) -> Loose<V, G> {
        let mut limbs = [[self.columns[0][0]; 5]; G];
        for g in 0..G {
            limbs[g] = PrimeOf::<V>::fold(self.columns[g]);
        }
        Loose { limbs, bound: self.bound.folded::<V>() }
    }
}

// Rare operations: once or twice a signature, so plain rather than fast.

impl<V: Vector, const G: usize> Tight<V, G> {
    /// The representation in lanes of the number, which is below 2²⁵⁶.
    #[inline(always)]
    pub(super) fn enter(&self) -> Self {
        PrimeOf::<V>::enter(self)
    }

    /// The same residue below 2²⁵⁶, of an element of magnitude 1.
    #[inline(always)]
    pub(super) fn below_2_256(&self) -> Self {
        #[cfg(debug_assertions)]
        assert!(self.bound.top < PrimeOf::<V>::FOLDABLE_TOP, "magnitude 1");
        Self::from_limbs(fold_top(self.0.limbs))
    }

    /// The representative below p.
    #[inline(always)]
    pub(super) fn normalise(&self) -> Self {
        // The first fold leaves less than 2²⁵⁶ + 2²²⁸, the second less than 2²⁵⁶.
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
        let normal = PrimeOf::<V>::leave(self).normalise();
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

    /// Every lane's number, from the lane at this distance (see [`Vector::exchange`]).
    #[inline(always)]
    pub(super) fn exchange(&self, distance: usize) -> Self {
        Self(self.0.exchange(distance))
    }
}

impl<V: Vector, const G: usize> Factor<V, G> {
    /// All groups together.
    #[inline(always)]
    pub(super) fn of_groups(groups: &[Factor<V, 1>; G]) -> Self {
        let (mut limbs, mut bound) = ([groups[0].limbs[0]; G], groups[0].bound);
        for g in 0..G {
            limbs[g] = groups[g].limbs[0];
            bound = bound.or(groups[g].bound);
        }
        Self { limbs, bound }
    }

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

    /// Every lane's number, from the lane at this distance (see [`Vector::exchange`]).
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

    /// A root in the lanes that have one. The caller checks whether its square is x.
    #[inline(always)]
    pub(super) fn root(&self) -> Self {
        PrimeOf::<V>::root(self)
    }
}

#[cfg(test)]
impl<V: Vector, const G: usize> Factor<V, G> {
    /// Any limbs below 2⁵², the top one small enough for the widest product.
    #[inline(always)]
    pub(super) fn widest(limbs: [Limbs<V>; G]) -> Self {
        Self { limbs, bound: Bound::of(MASK_52, widest_top::<V>()) }
    }

    #[inline(always)]
    pub(super) fn limbs_as_they_are(&self) -> &[Limbs<V>; G] {
        &self.limbs
    }
}

/// The largest top limb of two factors whose product can be a factor. The start of the columns leaves a little less than
/// 52 bits, and Montgomery's division adds a sixteenth.
#[cfg(test)]
pub(super) fn widest_top<V: Vector>() -> u64 {
    let widest = MASK_52 - 2 * V::SPARE;
    if PrimeOf::<V>::TO_LANES == [1, 0, 0, 0] { widest } else { widest / 16 * 15 }
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
pub(super) fn add_start<V: Vector, const N: usize>(mut columns: [V; N], start: [u64; N]) -> [V; N] {
    for i in 0..N {
        columns[i] = columns[i].plus(columns[i].splat(start[i]));
    }
    columns
}

/// The starts of columns.
struct Start<V>(V);

impl<V: Vector> Start<V> {
    /// The start of a product's columns: a multiple of p, less the excess of [`Vector::multiply`].
    const PRODUCT: [u64; 10] = {
        let multiple = multiple_of_p_in_columns::<PrimeOf<V>>(V::SPARE);
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
}

/// Columns 0 to 8 of a multiple of p, from `spare` − 1 to `spare` times 2⁵².
const fn multiple_of_p_in_columns<P: Prime>(spare: u64) -> [u64; 10] {
    // The number whose nine columns are `spare`·2⁵², modulo p.
    let mut residue = Residue::<P>::ZERO;
    let mut column = 0;
    while column < 9 {
        residue = residue.plus(Residue::new([spare, 0, 0, 0]));
        let mut bit = 0;
        while bit < 52 {
            residue = residue.plus(residue);
            bit += 1;
        }
        column += 1;
    }
    let digits = limbs_of(&residue.words());
    let mut columns = [spare << 52; 10];
    columns[9] = 0;
    let mut k = 0;
    while k < 5 {
        columns[k] -= digits[k];
        k += 1;
    }
    columns
}

/// Adds the bits of limbs 0 to 3 above the 52nd to the next limb, without clearing them.
#[inline(always)]
pub(super) fn carry<V: Vector>([l0, l1, l2, l3, l4]: Limbs<V>) -> Limbs<V> {
    let l1 = l1.plus(l0.shr::<52>());
    let l2 = l2.plus(l1.shr::<52>());
    let l3 = l3.plus(l2.shr::<52>());
    let l4 = l4.plus(l3.shr::<52>());
    [l0, l1, l2, l3, l4]
}

/// Carries, and clears the carried bits.
#[inline(always)]
pub(super) fn carry_and_mask<V: Vector>(limbs: Limbs<V>) -> Limbs<V> {
    let mask = limbs[0].splat(MASK_52);
    let mut out = carry(limbs);
    for limb in &mut out[..4] {
        *limb = limb.and(mask);
    }
    out
}

#[inline(always)]
fn fold_top<V: Vector, const G: usize>(mut limbs: [Limbs<V>; G]) -> [Limbs<V>; G] {
    for group in &mut limbs {
        *group = PrimeOf::<V>::fold_top(*group);
    }
    limbs
}

/// Of tight limbs with a value below 2²⁵⁶: the value minus p where that is not negative.
#[inline(always)]
fn subtract_p_where_not_below<V: Vector, const G: usize>(
    mut limbs: [Limbs<V>; G],
) -> [Limbs<V>; G] {
    let gap = const { limbs_of(&gap::<PrimeOf<V>>()) };
    for group in &mut limbs {
        // v ≥ p exactly if v + (2²⁵⁶ − p) reaches bit 256, and the rest of that sum is v − p.
        let mut sum = carry_and_mask(add_start(*group, gap));
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

/// The limbs of K·p, written so that all are at least [`LIFT`] · 2⁵² (limbs 0–3) or close to
/// K·2⁴⁸ (limb 4): a loose element can be taken from it limb by limb.
pub(super) const fn multiple_of_p<P: Prime>(k: u64) -> [u64; 5] {
    let lift = LIFT << 52;
    let p = limbs_of(&P::VALUE);
    [
        k * p[0] + lift,
        k * p[1] + lift - LIFT,
        k * p[2] + lift - LIFT,
        k * p[3] + lift - LIFT,
        k * p[4] - LIFT,
    ]
}

/// The limbs of a number.
pub(super) const fn limbs_of([w0, w1, w2, w3]: &Words) -> [u64; 5] {
    [
        *w0 & MASK_52,
        (*w0 >> 52 | *w1 << 12) & MASK_52,
        (*w1 >> 40 | *w2 << 24) & MASK_52,
        (*w2 >> 28 | *w3 << 36) & MASK_52,
        *w3 >> 16,
    ]
}

pub(super) const MASK_52: u64 = (1 << 52) - 1;
pub(super) const MASK_48: u64 = (1 << 48) - 1;

/// The part that every limb of a [`multiple_of_p`] borrows from the next one. Loose elements that are
/// subtracted have limbs below [`LIFT`] · 2⁵².
pub(super) const LIFT: u64 = 64;
