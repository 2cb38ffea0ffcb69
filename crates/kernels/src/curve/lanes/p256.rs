//! The field of P-256 in lanes: p = 2²⁵⁶ − 2²²⁴ + 2¹⁹² + 2⁹⁶ − 1, in Montgomery's form with 2²⁶⁰.
//!
//! The last limb of p is 2⁵² − 1, so a column's own lowest 52 bits q are the multiple of p that clears them, and
//!
//! ```text
//! q·p + q = q·2⁴⁴·2⁵² + q·2³⁶·2¹⁵⁶ + q·(2⁴⁸ − 2¹⁶)·2²⁰⁸
//! ```
//!
//! Five such steps leave the upper five columns. A product of elements of the magnitudes a and b is of magnitude
//! 1 + a·b/16.

use super::super::p256::P;
use super::field::{Factor, Limbs, MASK_48, Prime, Tight, add_start, carry_and_mask};
use super::vector::Vector;

impl Prime for P {
    #[cfg(any(test, debug_assertions))]
    const FOLDABLE_TOP: u64 = (2 << 48) - (1 << 20);

    /// At most two halves of every one of the three products, and a carry.
    #[cfg(any(test, debug_assertions))]
    const FOLD_TERMS: u64 = 7;

    /// Inlined, it takes the registers of its surroundings: on doubles 37 µs a signature instead of 29.
    const FOLD_IS_LONG: bool = true;

    const SHRINKS_SUMS: bool = false;

    #[inline(always)]
    fn fold<V: Vector>(columns: [V; 10]) -> Limbs<V> {
        let mut t = add_start(columns, Start::<V>::FOLD);
        for i in 0..5 {
            let q = t[i];
            (t[i + 1], t[i + 2]) = V::add_shifted::<44, 8>(t[i + 1], t[i + 2], q);
            t[i + 1] = t[i + 1].plus(q.shr::<52>());
            (t[i + 3], t[i + 4]) = V::add_shifted::<36, 16>(t[i + 3], t[i + 4], q);
            (t[i + 4], t[i + 5]) = V::multiply_by::<TOP>(t[i + 4], t[i + 5], q);
        }
        let [_, _, _, _, _, l0, l1, l2, l3, l4] = t;
        [l0, l1, l2, l3, l4]
    }

    /// The quotient by 2²⁶⁰ and less than p more.
    #[cfg(debug_assertions)]
    fn folded_top(value: u128) -> u64 {
        u64::try_from(value >> 52).expect("columns hold 63 bits") + (1 << 48)
    }

    /// h·p is subtracted for the h above bit 256, with 2⁵² borrowed from limb to limb. Limb 4 may be −1 until it is carried
    /// to, but only where h is 0, and then limb 3 carries.
    #[inline(always)]
    fn settle<V: Vector>([l0, l1, l2, l3, l4]: Limbs<V>) -> Limbs<V> {
        let above = l4.shr::<48>();
        let below = [l0, l1, l2, l3, l4.and(l4.splat(MASK_48))];
        let [l0, l1, l2, l3, l4] = add_start(below, BORROWED);
        [
            l0.plus(above),
            l1.minus(above.shl::<44>()),
            l2,
            l3.minus(above.shl::<36>()),
            l4.plus(above.shl::<16>()),
        ]
    }

    #[cfg(debug_assertions)]
    fn settled([low, top]: [u64; 2]) -> [u64; 2] {
        [low + (1 << 52), MASK_48 + ((top >> 48) << 16)]
    }

    #[inline(always)]
    fn fold_top<V: Vector>(limbs: Limbs<V>) -> Limbs<V> {
        carry_and_mask(Self::settle(limbs))
    }

    #[inline(always)]
    fn enter<V: Vector, const G: usize>(number: &Tight<V, G>) -> Tight<V, G> {
        number.wide_mul(&number.splat(SQUARE)).fold().tighten()
    }

    #[inline(always)]
    fn leave<V: Vector, const G: usize>(held: &Tight<V, G>) -> Tight<V, G> {
        held.wide_mul(&held.splat([1, 0, 0, 0, 0])).fold().tighten()
    }

    /// 253 squarings and 7 multiplications.
    #[inline(always)]
    fn root<V: Vector, const G: usize>(x: &Factor<V, G>) -> Factor<V, G> {
        let x32 = run_of_ones(x);
        let t = x32.square_times(32).mul(x).carry();
        let t = t.square_times(96).mul(x).carry();
        t.square_times(94)
    }
}

/// x to the power 2³² − 1.
#[inline(always)]
fn run_of_ones<V: Vector, const G: usize>(x: &Factor<V, G>) -> Factor<V, G> {
    let x2 = x.square_times(1).mul(x).carry();
    let x4 = x2.square_times(2).mul(&x2).carry();
    let x8 = x4.square_times(4).mul(&x4).carry();
    let x16 = x8.square_times(8).mul(&x8).carry();
    x16.square_times(16).mul(&x16).carry()
}

/// The starts of columns.
struct Start<V>(V);

impl<V: Vector> Start<V> {
    /// The start of a reduction's columns, less the excess of [`Vector::multiply`]: five products into columns 4 to 9.
    const FOLD: [u64; 10] = {
        let low = 0_u64.wrapping_sub(V::LOW_EXCESS);
        let high = 0_u64.wrapping_sub(V::HIGH_EXCESS);
        let both = low.wrapping_add(high);
        [0, 0, 0, 0, low, both, both, both, both, high]
    };
}

/// The highest limb of p.
const TOP: u64 = (1 << 48) - (1 << 16);

/// The parts that limbs borrow from the next: zero together.
const BORROWED: [u64; 5] = [0, 1 << 52, (1 << 52) - 1, (1 << 52) - 1, u64::MAX];

/// The limbs of 2⁵²⁰ mod p.
const SQUARE: [u64; 5] =
    [0x300, 0xf_ffff_fff0_0000, 0xf_fffe_ffff_fffb, 0xf_dfff_ffff_ffff, 0x4ff_ffff];
