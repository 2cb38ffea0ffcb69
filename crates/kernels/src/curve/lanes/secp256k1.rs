//! The field of secp256k1 in lanes: p = 2²⁵⁶ − 2³² − 977.
//!
//! 2²⁶⁰ ≡ [`FOLD_260`] brings the upper five columns of a product down, then 2²⁵⁶ ≡ [`FOLD_256`] the bits above 256.

use super::super::secp256k1::P;
use super::field::{Factor, Limbs, MASK_48, Prime, Tight, add_start, carry, carry_and_mask};
use super::vector::Vector;

impl Prime for P {
    #[cfg(any(test, debug_assertions))]
    const FOLDABLE_TOP: u64 = (1 << 48) + (1 << 20);

    /// The low and high halves of the products with [`FOLD_260`], and one of that with [`FOLD_256`].
    #[cfg(any(test, debug_assertions))]
    const FOLD_TERMS: u64 = 3;

    const FOLD_IS_LONG: bool = false;

    const SHRINKS_SUMS: bool = true;

    /// Of a number below 2⁵²⁰. 6 multiplications.
    #[inline(always)]
    fn fold<V: Vector>(columns: [V; 10]) -> Limbs<V> {
        let [t0, t1, t2, t3, t4, t5, t6, t7, t8, t9] = columns;
        // The upper columns become factors: t9 ends below 2⁵² because the number is below 2⁵²⁰.
        let upper = carry([t5, t6, t7, t8, t9]);
        let mut low = add_start([t0, t1, t2, t3, t4, t0.splat(0)], Start::<V>::FOLD);
        for i in 0..5 {
            (low[i], low[i + 1]) = V::multiply_by::<FOLD_260>(low[i], low[i + 1], upper[i]);
        }
        // The bits above 256: the top of limb 4, and limb 5 (below 2³⁷), below 2⁴² together.
        let [l0, l1, l2, l3, l4, l5] = low;
        let above = l4.shr::<48>().plus(l5.shl::<4>());
        let (l0, l1) = V::multiply_by::<FOLD_256>(l0, l1, above);
        [l0, l1, l2, l3, l4.and(l4.splat(MASK_48))]
    }

    #[cfg(debug_assertions)]
    fn folded_top(value: u128) -> u64 {
        assert!(value <= 1 << 104, "the last column becomes a factor, of 52 bits");
        MASK_48
    }

    #[inline(always)]
    fn settle<V: Vector>(limbs: Limbs<V>) -> Limbs<V> {
        limbs
    }

    #[cfg(debug_assertions)]
    fn settled(limbs: [u64; 2]) -> [u64; 2] {
        limbs
    }

    #[inline(always)]
    fn fold_top<V: Vector>([l0, l1, l2, l3, l4]: Limbs<V>) -> Limbs<V> {
        let above = l4.shr::<48>();
        // FOLD_256 = 2³² + 977
        let small = above.shl::<10>().minus(above.shl::<5>()).minus(above.shl::<4>()).plus(above);
        let l0 = l0.plus(above.shl::<32>()).plus(small);
        carry_and_mask([l0, l1, l2, l3, l4.and(l4.splat(MASK_48))])
    }

    #[inline(always)]
    fn enter<V: Vector, const G: usize>(number: &Tight<V, G>) -> Tight<V, G> {
        *number
    }

    #[inline(always)]
    fn leave<V: Vector, const G: usize>(held: &Tight<V, G>) -> Tight<V, G> {
        *held
    }

    /// The addition chain is taken from `secp256k1_fe_sqrt` in libsecp256k1: runs of ones of the lengths 2, 22 and 223 in
    /// (p + 1)/4, 253 squarings and 13 multiplications.
    #[inline(always)]
    fn root<V: Vector, const G: usize>(x: &Factor<V, G>) -> Factor<V, G> {
        let (x2, x22, x223) = runs_of_ones(x);
        let t = x223.square_times(23).mul(&x22).carry();
        let t = t.square_times(6).mul(&x2).carry();
        t.square_times(2)
    }
}

/// x to the powers 2² − 1, 2²² − 1 and 2²²³ − 1.
#[inline(always)]
fn runs_of_ones<V: Vector, const G: usize>(
    x: &Factor<V, G>,
) -> (Factor<V, G>, Factor<V, G>, Factor<V, G>) {
    let x2 = x.square_times(1).mul(x).carry();
    let x3 = x2.square_times(1).mul(x).carry();
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

/// The starts of columns.
struct Start<V>(V);

impl<V: Vector> Start<V> {
    /// The start of a reduction's columns, less the excess of [`Vector::multiply`]: five products into columns 0 to
    /// 5, and one into 0 and 1.
    const FOLD: [u64; 6] = {
        let low = 0_u64.wrapping_sub(V::LOW_EXCESS);
        let high = 0_u64.wrapping_sub(V::HIGH_EXCESS);
        let both = low.wrapping_add(high);
        [low.wrapping_add(low), both.wrapping_add(high), both, both, both, high]
    };
}

/// 2²⁵⁶ mod p.
const FOLD_256: u64 = 0x1_0000_03d1;

/// 2²⁶⁰ mod p.
const FOLD_260: u64 = FOLD_256 << 4;
