//! Field elements modulo p = 2²⁵⁶ − 2³² − 977, eight lanes to a vector, in `G` vectors at once.
//!
//! ```text
//! value = l₀ + l₁·2⁵² + l₂·2¹⁰⁴ + l₃·2¹⁵⁶ + l₄·2²⁰⁸        one vector of eight lanes for each lᵢ
//! ```
//!
//! The multiplier (`vpmadd52luq`, `vpmadd52huq`) reads 52 bits of each factor, ignores the rest, and adds
//! the low or high 52 bits of the product to 64 bits. Hence three types:
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

use std::arch::x86_64::*;
use std::ops::Deref;

use super::bound::{Bound, WideBound};

/// The limbs of eight numbers, least significant first.
pub(super) type Limbs = [__m512i; 5];

/// Elements to multiply. Bits 52 and up of limbs 0 to 3 are not part of the value: they have been carried,
/// and the multiplier ignores them.
#[derive(Clone, Copy)]
pub(super) struct Factor<const G: usize> {
    limbs: [Limbs; G],
    bound: Bound,
}

/// Elements whose limbs are all below 2⁵²: factors, and terms of sums as well.
#[derive(Clone, Copy)]
pub(super) struct Tight<const G: usize>(Factor<G>);

/// Elements whose limbs may exceed 52 bits.
#[derive(Clone, Copy)]
pub(super) struct Loose<const G: usize> {
    limbs: [Limbs; G],
    bound: Bound,
}

/// Ten columns of unreduced products: the value is Σ columnᵢ · 2⁵²ⁱ.
#[derive(Clone, Copy)]
pub(super) struct Wide<const G: usize> {
    columns: [[__m512i; 10]; G],
    bound: WideBound,
}

impl<const G: usize> Factor<G> {
    /// The product, unreduced.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn wide_mul(&self, other: &Self) -> Wide<G> {
        let mut columns = [[_mm512_setzero_si512(); 10]; G];
        for g in 0..G {
            columns[g] = product_columns(&self.limbs[g], &other.limbs[g]);
        }
        Wide { columns, bound: self.bound.times(other.bound) }
    }

    /// The square, unreduced.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn wide_square(&self) -> Wide<G> {
        let mut columns = [[_mm512_setzero_si512(); 10]; G];
        for g in 0..G {
            columns[g] = square_columns(&self.limbs[g]);
        }
        Wide { columns, bound: self.bound.times(self.bound) }
    }

    /// The product, of magnitude 1.
    ///
    /// Not inlined, as a barrier to the compiler: inlined, the products of an addition are reordered into
    /// one stretch that takes 1.2 times as long (measured on Zen 5; squares do not mind).
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn mul(&self, other: &Self) -> Loose<G> {
        let mut limbs = [[_mm512_setzero_si512(); 5]; G];
        for g in 0..G {
            limbs[g] = fold(product_columns(&self.limbs[g], &other.limbs[g]));
        }
        Loose { limbs, bound: self.bound.times(other.bound).folded() }
    }

    /// The square, of magnitude 1.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn square(&self) -> Loose<G> {
        let mut limbs = [[_mm512_setzero_si512(); 5]; G];
        for g in 0..G {
            limbs[g] = fold(square_columns(&self.limbs[g]));
        }
        Loose { limbs, bound: self.bound.times(self.bound).folded() }
    }

    /// Squares `count` times.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn square_times(&self, count: usize) -> Self {
        let mut out = *self;
        for _ in 0..count {
            out = out.square().carry();
        }
        out
    }

    /// The same element, usable in sums.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn tighten(&self) -> Tight<G> {
        let mask = _mm512_set1_epi64(MASK_52 as i64);
        let mut out = *self;
        for group in &mut out.limbs {
            for limb in &mut group[..4] {
                *limb = _mm512_and_si512(*limb, mask);
            }
        }
        Tight(out)
    }

    /// Checks in debug builds that the data is within the tracked bound.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn assert_bound(&self) {
        #[cfg(debug_assertions)]
        for group in &self.limbs {
            let above = _mm512_cmpgt_epu64_mask(group[4], _mm512_set1_epi64(self.bound.top as i64));
            assert_eq!(above, 0, "the top limb is above its bound {:#x}", self.bound.top);
        }
    }
}

impl<const G: usize> Tight<G> {
    /// Takes limbs below 2⁵² whose value is below 2²⁵⁶.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn from_limbs(limbs: [Limbs; G]) -> Self {
        Self(Factor { limbs, bound: Bound::REDUCED })
    }

    /// The same constant in each lane.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn splat(limbs: [u64; 5]) -> Self {
        let mut out = [[_mm512_setzero_si512(); 5]; G];
        for group in &mut out {
            for i in 0..5 {
                group[i] = _mm512_set1_epi64(limbs[i] as i64);
            }
        }
        Self::from_limbs(out)
    }

    /// The number one in each lane.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn one() -> Self {
        Self::splat([1, 0, 0, 0, 0])
    }

    /// The limbs of each group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn limbs(&self) -> &[Limbs; G] {
        &self.0.limbs
    }

    /// One of the groups.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn group(&self, g: usize) -> Tight<1> {
        Tight(Factor { limbs: [self.0.limbs[g]], bound: self.0.bound })
    }

    /// The same element, as a term for sums.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn loose(&self) -> Loose<G> {
        Loose { limbs: self.0.limbs, bound: self.0.bound }
    }
}

impl<const G: usize> Deref for Tight<G> {
    type Target = Factor<G>;

    fn deref(&self) -> &Factor<G> {
        &self.0
    }
}

impl<const G: usize> Loose<G> {
    /// The sum. Magnitudes add.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut out = *self;
        out.bound = self.bound.plus(other.bound);
        for g in 0..G {
            for i in 0..5 {
                out.limbs[g][i] = _mm512_add_epi64(self.limbs[g][i], other.limbs[g][i]);
            }
        }
        out
    }

    /// `self − other + K·p`, for an `other` of magnitude at most K − 1. Adds K to the magnitude.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn minus<const K: u64>(&self, other: &Self) -> Self {
        self.plus(&other.negate::<K>())
    }

    /// `K·p − self`, for a `self` of magnitude at most K − 1.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn negate<const K: u64>(&self) -> Self {
        let offset = const { multiple_of_p(K) };
        let mut out = *self;
        out.bound = self.bound.taken_from(offset);
        for g in 0..G {
            for i in 0..5 {
                let from = _mm512_set1_epi64(offset[i] as i64);
                out.limbs[g][i] = _mm512_sub_epi64(from, self.limbs[g][i]);
            }
        }
        out
    }

    /// `K·p − self`, or in the lanes of `mask` just `self`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn negate_unless<const K: u64>(&self, mask: [__mmask8; G]) -> Self {
        let offset = const { multiple_of_p(K) };
        let mut out = *self;
        out.bound = self.bound.or(self.bound.taken_from(offset));
        for g in 0..G {
            for i in 0..5 {
                let (from, limb) = (_mm512_set1_epi64(offset[i] as i64), self.limbs[g][i]);
                out.limbs[g][i] = _mm512_mask_sub_epi64(limb, !mask[g], from, limb);
            }
        }
        out
    }

    /// Twice the element. Doubles the magnitude.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn twice(&self) -> Self {
        self.plus(self)
    }

    /// Carries between the limbs. The value stays.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn carry(&self) -> Factor<G> {
        let mut limbs = self.limbs;
        for group in &mut limbs {
            *group = carry(*group);
        }
        let out = Factor { limbs, bound: self.bound.carried() };
        out.assert_bound();
        out
    }

    /// Carries between the limbs, so that each is below 2⁵².
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn tighten(&self) -> Tight<G> {
        self.carry().tighten()
    }
}

impl<const G: usize> Wide<G> {
    /// The sum of two sums of products.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut out = *self;
        out.bound = self.bound.plus(other.bound);
        for g in 0..G {
            for i in 0..10 {
                out.columns[g][i] = _mm512_add_epi64(self.columns[g][i], other.columns[g][i]);
            }
        }
        out
    }

    /// Adds a product.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn plus_product(&self, a: &Factor<G>, b: &Factor<G>) -> Self {
        let mut out = *self;
        out.bound = self.bound.plus(a.bound.times(b.bound));
        for g in 0..G {
            out.columns[g] = add_product(out.columns[g], &a.limbs[g], &b.limbs[g]);
        }
        out
    }

    /// Twice the sum.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn twice(&self) -> Self {
        self.plus(self)
    }

    /// Brings the ten columns down to five limbs and magnitude 1.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn fold(&self) -> Loose<G> {
        let mut limbs = [[_mm512_setzero_si512(); 5]; G];
        for g in 0..G {
            limbs[g] = fold(self.columns[g]);
        }
        Loose { limbs, bound: self.bound.folded() }
    }
}

// Rare operations: once or twice a signature, so plain rather than fast.

impl<const G: usize> Tight<G> {
    /// The same residue below 2²⁵⁶, of an element of magnitude 1.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn below_2_256(&self) -> Self {
        // Below 2²⁵⁶ + 2²²⁸, so either bit 256 is clear, or what is below it is so small that the
        // fold cannot reach it again.
        #[cfg(debug_assertions)]
        assert!(self.bound.top < (1 << 48) + (1 << 20), "magnitude 1");
        Self::from_limbs(fold_top(self.0.limbs))
    }

    /// The representative below p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn normalise(&self) -> Self {
        // The first fold leaves less than 2²⁵⁶ + 2³⁷, the second less than 2²⁵⁶.
        let below_2_256 = fold_top(fold_top(self.0.limbs));
        Self::from_limbs(subtract_p_where_not_below(below_2_256))
    }

    /// The lanes that are zero modulo p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn zero_lanes(&self) -> [__mmask8; G] {
        let normal = self.normalise();
        let mut mask = [0; G];
        for g in 0..G {
            let [l0, l1, l2, l3, l4] = normal.0.limbs[g];
            let any = or3(or3(l0, l1, l2), l3, l4);
            mask[g] = _mm512_testn_epi64_mask(any, any);
        }
        mask
    }

    /// The lanes whose representative below p is odd.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn odd_lanes(&self) -> [__mmask8; G] {
        let normal = self.normalise();
        let mut mask = [0; G];
        for g in 0..G {
            mask[g] = _mm512_test_epi64_mask(normal.0.limbs[g][0], _mm512_set1_epi64(1));
        }
        mask
    }

    /// `other` in the lanes of `mask`, `self` elsewhere.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn or_where(&self, mask: [__mmask8; G], other: &Self) -> Self {
        let mut limbs = self.0.limbs;
        for g in 0..G {
            for i in 0..5 {
                limbs[g][i] = _mm512_mask_mov_epi64(limbs[g][i], mask[g], other.0.limbs[g][i]);
            }
        }
        Self(Factor { limbs, bound: self.0.bound.or(other.0.bound) })
    }
}

impl<const G: usize> Factor<G> {
    /// The 1/x of each lane, and 0 of 0: x to the power p − 2.
    ///
    /// The addition chain is the one libsecp256k1 used in `secp256k1_fe_inv`: runs of ones of the
    /// lengths 2, 22 and 223 in p − 2, 255 squarings and 15 multiplications.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn invert(&self) -> Self {
        let (x2, x22, x223) = self.runs_of_ones();
        let t = x223.square_times(23).mul(&x22).carry();
        let t = t.square_times(5).mul(self).carry();
        let t = t.square_times(3).mul(&x2).carry();
        t.square_times(2).mul(self).carry()
    }

    /// A root of each lane that has one: x to the power (p + 1)/4 (the chain of `secp256k1_fe_sqrt`, 253
    /// squarings and 13 multiplications). The caller checks whether its square is x.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn root(&self) -> Self {
        let (x2, x22, x223) = self.runs_of_ones();
        let t = x223.square_times(23).mul(&x22).carry();
        let t = t.square_times(6).mul(&x2).carry();
        t.square_times(2)
    }

    /// x to the powers 2² − 1, 2²² − 1 and 2²²³ − 1.
    #[target_feature(enable = "avx512f,avx512ifma")]
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
impl<const G: usize> Factor<G> {
    /// Any limbs below 2⁵², the largest of a factor.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn widest(limbs: [Limbs; G]) -> Self {
        Self { limbs, bound: Bound::of(MASK_52, MASK_52) }
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn limbs_as_they_are(&self) -> &[Limbs; G] {
        &self.limbs
    }
}

#[cfg(test)]
impl<const G: usize> Loose<G> {
    /// Any limbs up to these: of limbs 0 to 3, of limb 4.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn up_to(low: u64, top: u64, limbs: [Limbs; G]) -> Self {
        Self { limbs, bound: Bound::of(low, top) }
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn limbs_as_they_are(&self) -> &[Limbs; G] {
        &self.limbs
    }
}

/// 50 multiplier steps. Column k holds the low halves of the lᵢ·mⱼ with i + j = k and the high
/// halves of those with i + j = k − 1: nine terms of 52 bits in the fullest.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn product_columns(a: &Limbs, b: &Limbs) -> [__m512i; 10] {
    add_product([_mm512_setzero_si512(); 10], a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn add_product(mut columns: [__m512i; 10], a: &Limbs, b: &Limbs) -> [__m512i; 10] {
    for i in 0..5 {
        for j in 0..5 {
            columns[i + j] = _mm512_madd52lo_epu64(columns[i + j], a[i], b[j]);
        }
        for j in 0..5 {
            columns[i + j + 1] = _mm512_madd52hi_epu64(columns[i + j + 1], a[i], b[j]);
        }
    }
    columns
}

/// 30 multiplier steps: the products of different limbs once, doubled together, then the squares.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn square_columns(a: &Limbs) -> [__m512i; 10] {
    let mut columns = [_mm512_setzero_si512(); 10];
    for i in 0..5 {
        for j in i + 1..5 {
            columns[i + j] = _mm512_madd52lo_epu64(columns[i + j], a[i], a[j]);
            columns[i + j + 1] = _mm512_madd52hi_epu64(columns[i + j + 1], a[i], a[j]);
        }
    }
    for column in &mut columns[1..9] {
        *column = _mm512_add_epi64(*column, *column);
    }
    for i in 0..5 {
        columns[2 * i] = _mm512_madd52lo_epu64(columns[2 * i], a[i], a[i]);
        columns[2 * i + 1] = _mm512_madd52hi_epu64(columns[2 * i + 1], a[i], a[i]);
    }
    columns
}

/// Ten columns below 2⁶³ of a number below 2⁵²⁰, to five limbs with the same value modulo p, the
/// top one below 2⁴⁸. 12 multiplier steps.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn fold(columns: [__m512i; 10]) -> Limbs {
    let [t0, t1, t2, t3, t4, t5, t6, t7, t8, t9] = columns;
    // The upper columns become factors: t9 ends below 2⁵² because the number is below 2⁵²⁰.
    let [t5, t6, t7, t8, t9] = carry([t5, t6, t7, t8, t9]);
    let r = _mm512_set1_epi64(FOLD_260 as i64);
    let mut low = [t0, t1, t2, t3, t4, _mm512_setzero_si512()];
    for (i, t) in [t5, t6, t7, t8, t9].into_iter().enumerate() {
        low[i] = _mm512_madd52lo_epu64(low[i], t, r);
        low[i + 1] = _mm512_madd52hi_epu64(low[i + 1], t, r);
    }
    // What is above bit 256: the top of limb 4, and limb 5 (below 2³⁷), below 2⁴² together.
    let [l0, l1, l2, l3, l4, l5] = low;
    let above = _mm512_add_epi64(_mm512_srli_epi64::<48>(l4), _mm512_slli_epi64::<4>(l5));
    let c = _mm512_set1_epi64(FOLD_256 as i64);
    [
        _mm512_madd52lo_epu64(l0, above, c),
        _mm512_madd52hi_epu64(l1, above, c),
        l2,
        l3,
        _mm512_and_si512(l4, _mm512_set1_epi64(MASK_48 as i64)),
    ]
}

/// Adds the bits of limbs 0 to 3 above the 52nd to the next limb, without clearing them.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn carry([l0, l1, l2, l3, l4]: Limbs) -> Limbs {
    let l1 = _mm512_add_epi64(l1, _mm512_srli_epi64::<52>(l0));
    let l2 = _mm512_add_epi64(l2, _mm512_srli_epi64::<52>(l1));
    let l3 = _mm512_add_epi64(l3, _mm512_srli_epi64::<52>(l2));
    let l4 = _mm512_add_epi64(l4, _mm512_srli_epi64::<52>(l3));
    [l0, l1, l2, l3, l4]
}

/// Carries, and clears what was carried.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn carry_and_mask(limbs: Limbs) -> Limbs {
    let mask = _mm512_set1_epi64(MASK_52 as i64);
    let mut out = carry(limbs);
    for limb in &mut out[..4] {
        *limb = _mm512_and_si512(*limb, mask);
    }
    out
}

/// Of tight limbs: what is above bit 256 replaced by its residue, and carried.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn fold_top<const G: usize>(mut limbs: [Limbs; G]) -> [Limbs; G] {
    for group in &mut limbs {
        let above = _mm512_srli_epi64::<48>(group[4]);
        let c = _mm512_set1_epi64(FOLD_256 as i64);
        group[0] = _mm512_madd52lo_epu64(group[0], above, c);
        group[4] = _mm512_and_si512(group[4], _mm512_set1_epi64(MASK_48 as i64));
        *group = carry_and_mask(*group);
    }
    limbs
}

/// Of tight limbs with a value below 2²⁵⁶: the value minus p where that is not negative.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn subtract_p_where_not_below<const G: usize>(mut limbs: [Limbs; G]) -> [Limbs; G] {
    for group in &mut limbs {
        // v ≥ p exactly if v + (2²⁵⁶ − p) reaches bit 256, and the rest of that sum is v − p.
        let mut sum = *group;
        sum[0] = _mm512_add_epi64(sum[0], _mm512_set1_epi64(FOLD_256 as i64));
        sum = carry_and_mask(sum);
        let reached = _mm512_test_epi64_mask(sum[4], _mm512_set1_epi64(1 << 48));
        sum[4] = _mm512_and_si512(sum[4], _mm512_set1_epi64(MASK_48 as i64));
        for i in 0..5 {
            group[i] = _mm512_mask_mov_epi64(group[i], reached, sum[i]);
        }
    }
    limbs
}

#[inline]
#[target_feature(enable = "avx512f")]
fn or3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0xfe>(a, b, c)
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
