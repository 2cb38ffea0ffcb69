//! The ladder that computes u1·G + u2·Q in lanes: its steps and their order.
//!
//! ```text
//! for each digit that a window serves, from the highest:
//!     double five times                       (not before the first digit)
//!     add what the plan has for the digit:    multiples of the key, with an endomorphism k1's and k2's of λ times it,
//!                                             or sums of them (rounds.rs)
//! add what the plan has for u1
//! ```
//!
//! **One Z for a table made on the way.** The multiples of Q share a Z, call it S, so their X and Y are
//! affine coordinates on the isomorphic curve y² = x³ + a·S⁴·x + b·S⁶, and for a = 0 the first part of the ladder runs on
//! that one ("effective affine", as in libsecp256k1). The result returns to
//! the curve by one multiplication of its Z by S, before the generator's multiples are added.

use super::super::digits::KEY_WINDOW;
use super::super::plan::{Operand, Plan, Source};
use super::field::Factor;
use super::point::{Affine, Jacobian};
use super::terms::Terms;
use super::vector::Engine;

/// The terms that the ladder adds.
pub(super) struct Ladder<'a, E: Engine, const G: usize> {
    pub(super) plan: &'a Plan,
    pub(super) terms: &'a Terms<'a, E, G>,
    /// The sums of the plan.
    pub(super) sums: &'a [Affine<E::Vector, G>],
    /// The Z of the key's rows.
    pub(super) shared_z: Factor<E::Vector, G>,
}

impl<E: Engine, const G: usize> Ladder<'_, E, G> {
    /// u1·G + u2·Q of every lane; Z = 0 in lanes with an exceptional addition.
    #[inline(always)]
    pub(super) fn run(&self) -> Jacobian<E::Vector, G> {
        let highest = self.plan.key.len() - 1;
        let first = self.terms.point(self.plan.key[highest][0], self.sums);
        let mut sum = first.with_z_one();
        self.add(&mut sum, &self.plan.key[highest][1..]);
        for digit in (0..highest).rev() {
            for _ in 0..KEY_WINDOW {
                sum.double_to_opposite();
            }
            self.add(&mut sum, &self.plan.key[digit]);
        }
        sum.z = sum.z.mul(&self.shared_z).carry();
        self.add(&mut sum, &self.plan.generator);
        sum
    }

    #[inline(always)]
    fn add(&self, sum: &mut Jacobian<E::Vector, G>, operands: &[Operand]) {
        for i in 0..operands.len() {
            if let Some(Operand { source: Source::Term(term), .. }) = operands.get(i + PREFETCHED) {
                self.terms.prefetch(*term);
            }
            sum.add(&self.terms.point(operands[i], self.sums));
        }
    }
}

/// How many additions before its own the rows of a multiple are requested.
const PREFETCHED: usize = 2;
