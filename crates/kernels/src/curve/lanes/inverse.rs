//! Inverses of numbers in lanes, with one inversion by division steps for all of them (Montgomery's trick).

use super::super::modular::Field;
use super::super::table::Row;
use super::MOST_LANES;
use super::field::{Factor, Tight, limbs_of};
use super::rows::write_rows;
use super::vector::Vector;

impl<V: Vector, const G: usize> Factor<V, G> {
    /// The 1/x of every lane, and 0 of 0.
    #[inline(always)]
    pub(super) fn invert(&self) -> Self {
        let tight = self.tighten();
        let zero = tight.zero_lanes();
        let numbers = tight.or_where(zero, &self.one());
        let mut inverses = [*numbers.group(0).one(); G];
        let mut product = inverses[0];
        for g in 0..G {
            inverses[g] = product;
            product = product.mul(&numbers.group(g)).carry();
        }
        let mut inverse = inverse_of_lanes(&product);
        for g in (0..G).rev() {
            inverses[g] = inverse.mul(&inverses[g]).carry();
            inverse = inverse.mul(&numbers.group(g)).carry();
        }
        Self::of_groups(&inverses).or_where(zero, &self.splat([0; 5]))
    }
}

/// The inverse of every lane: the inverse of all lanes' product, times the product of the others. No lane
/// is zero.
#[inline(always)]
fn inverse_of_lanes<V: Vector>(number: &Factor<V, 1>) -> Factor<V, 1> {
    let (mut others, mut all) = (*number.one(), *number);
    let mut distance = V::LANES / 2;
    while distance > 0 {
        let exchanged = all.exchange(distance);
        others = others.mul(&exchanged).carry();
        all = all.mul(&exchanged).carry();
        distance /= 2;
    }
    others.mul(&inverse_of_first(&all)).carry()
}

/// The inverse of the first lane's number, in every lane.
#[inline(always)]
fn inverse_of_first<V: Vector>(number: &Factor<V, 1>) -> Tight<V, 1> {
    let mut rows = [Row::ZERO; MOST_LANES];
    write_rows(&number.tighten(), &number.one(), &mut rows[..V::LANES]);
    let first: Field<V::Curve> = rows[0].reduce::<V::Curve>().to_affine::<V::Curve>().x;
    number.splat(limbs_of(&first.invert().to_lanes()))
}
