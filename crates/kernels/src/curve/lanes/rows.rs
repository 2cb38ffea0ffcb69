//! The conversion between rows and lanes.
//!
//! A lane reads its own row of its own table: a load of a cache line per lane, then a transpose, which
//! is a third of the instructions of the gathers that would do the same.

use super::super::table::Row;
use super::field::{Limbs, MASK_52, Tight};
use super::vector::{Engine, Vector};

/// The two numbers of every lane's row.
#[inline(always)]
pub(super) fn read_rows<E: Engine, const G: usize>(
    engine: E,
    rows: &[&Row],
) -> [Tight<E::Vector, G>; 2] {
    let zero = engine.splat(0);
    let mut first = [[zero; 5]; G];
    let mut second = first;
    let lanes = E::Vector::LANES;
    for g in 0..G {
        let words = engine.read_rows(&rows[g * lanes..][..lanes]);
        let [x0, x1, x2, x3, y0, y1, y2, y3] = words;
        first[g] = unpack([x0, x1, x2, x3]);
        second[g] = unpack([y0, y1, y2, y3]);
    }
    [Tight::from_limbs(first), Tight::from_limbs(second)]
}

/// Writes a row per lane, of two numbers of magnitude 1.
#[inline(always)]
pub(super) fn write_rows<V: Vector, const G: usize>(
    first: &Tight<V, G>,
    second: &Tight<V, G>,
    rows: &mut [Row],
) {
    let (first, second) = (first.below_2_256(), second.below_2_256());
    for g in 0..G {
        let [x0, x1, x2, x3] = pack(first.limbs()[g]);
        let [y0, y1, y2, y3] = pack(second.limbs()[g]);
        let rows = &mut rows[g * V::LANES..][..V::LANES];
        V::write_rows([x0, x1, x2, x3, y0, y1, y2, y3], rows);
    }
}

/// Five 52-bit limbs of four 64-bit words.
#[inline(always)]
fn unpack<V: Vector>([w0, w1, w2, w3]: [V; 4]) -> Limbs<V> {
    let mask = w0.splat(MASK_52);
    [
        w0.and(mask),
        w0.shr::<52>().or(w1.shl::<12>()).and(mask),
        w1.shr::<40>().or(w2.shl::<24>()).and(mask),
        w2.shr::<28>().or(w3.shl::<36>()).and(mask),
        w3.shr::<16>(),
    ]
}

/// Four 64-bit words of five 52-bit limbs whose value is below 2²⁵⁶.
#[inline(always)]
fn pack<V: Vector>([l0, l1, l2, l3, l4]: Limbs<V>) -> [V; 4] {
    [
        l0.or(l1.shl::<52>()),
        l1.shr::<12>().or(l2.shl::<40>()),
        l2.shr::<24>().or(l3.shl::<28>()),
        l3.shr::<36>().or(l4.shl::<16>()),
    ]
}
