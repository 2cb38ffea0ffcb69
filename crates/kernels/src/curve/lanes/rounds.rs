//! Sums of multiples by rounds of affine additions that share an inversion (see `plan.rs`).
//!
//! ```text
//! slope = (y₂ − y₁)/(x₂ − x₁), x₃ = slope² − x₁ − x₂, y₃ = slope·(x₁ − x₃) − y₁
//! ```
//!
//! That is 2 multiplications and a squaring, and the inverse of x₂ − x₁ takes 3 multiplications: one to multiply all differences of
//! the round up, two to divide the inverse of the product into the inverses of its factors (Montgomery's trick). The
//! chain of products runs through all additions of all groups, in every lane by itself; then one inversion serves all lanes
//! (`inverse.rs`).
//!
//! **Exceptions.** Equal or opposite points have a difference of zero, which would spoil the inverses of all others. The product
//! is zero then. Only in that case the differences are examined one by one: the zeros are replaced by one, and
//! their lanes are marked, so that no other signature is affected.

use super::super::plan::{Addition, Plan, Source};
use super::field::{Factor, Loose, Tight};
use super::point::Affine;
use super::terms::Terms;
use super::vector::{Engine, Vector, Work};

/// The rounds of several groups of signatures.
pub(super) struct Rounds<'a, V, const G: usize> {
    pub(super) plan: &'a Plan,
    pub(super) sums: &'a mut Sums<V, G>,
    /// The product of the differences of the round that has begun.
    product: Factor<V, G>,
}

/// The sums of several groups.
pub(super) struct Sums<V, const G: usize> {
    /// The sums of the first group, then of the second, and so on.
    points: Vec<Affine<V, G>>,
    /// The lanes of every group that met an exceptional addition. Their sums are meaningless.
    exceptional: Vec<[u8; G]>,
    /// The additions of a round.
    steps: Vec<Step<V, G>>,
}

impl<V, const G: usize> Default for Sums<V, G> {
    fn default() -> Self {
        Self { points: Vec::new(), exceptional: Vec::new(), steps: Vec::new() }
    }
}

impl<V, const G: usize> Sums<V, G> {
    /// The sums of a group.
    pub(super) fn of_group(&self, group: usize) -> &[Affine<V, G>] {
        let count = self.points.len() / self.exceptional.len();
        &self.points[group * count..][..count]
    }

    /// The lanes of a group that met an exceptional addition.
    pub(super) fn exceptional_lanes(&self, group: usize) -> [u8; G] {
        self.exceptional[group]
    }
}

impl<'a, V: Vector, const G: usize> Rounds<'a, V, G> {
    /// The rounds of a number of groups, all of which have to [`Start`].
    #[inline(always)]
    pub(super) fn of<E: Engine<Vector = V>>(
        engine: E,
        plan: &'a Plan,
        groups: usize,
        sums: &'a mut Sums<V, G>,
    ) -> Self {
        let zero = Tight::from_limbs([[engine.splat(0); 5]; G]);
        let most = plan.rounds.iter().map(Vec::len).max().unwrap_or(0);
        sums.points.resize(groups * plan.sums.len(), Affine { x: zero, y: zero, negate: [0; G] });
        let step = Step { difference: zero, y: zero.loose(), before: *zero };
        sums.steps.resize(groups * most, step);
        sums.exceptional.clear();
        sums.exceptional.resize(groups, [0; G]);
        Self { plan, sums, product: *zero.one() }
    }

    /// Begins the additions of a round of a group, and requests the rows that another group will need for the same.
    #[inline(always)]
    fn begin<E: Engine<Vector = V>>(
        &mut self,
        round: usize,
        group: usize,
        terms: &Terms<'_, E, G>,
        next: Option<&Terms<'_, E, G>>,
    ) {
        let (additions, count) = (&self.plan.rounds[round], self.plan.sums.len());
        for (i, Addition { sum, operand }) in additions.iter().enumerate() {
            if let (Source::Term(term), Some(next)) = (operand.source, next) {
                next.prefetch(term);
            }
            let sums = &self.sums.points[group * count..][..count];
            let point = terms.point(*operand, sums);
            let step = &mut self.sums.steps[group * additions.len() + i];
            step.begin(&sums[*sum], &point, &mut self.product);
        }
    }

    /// Finishes the additions of a round.
    #[inline(always)]
    fn finish(&mut self, round: usize) {
        let (additions, count) = (&self.plan.rounds[round], self.plan.sums.len());
        let groups = self.sums.exceptional.len();
        let steps = &mut self.sums.steps[..groups * additions.len()];
        if self.product.tighten().zero_lanes() != [0; G] {
            self.product = replace_zeros(steps, additions.len(), &mut self.sums.exceptional);
        }
        let mut inverse = self.product.invert();
        for group in (0..groups).rev() {
            let sums = &mut self.sums.points[group * count..][..count];
            for (i, addition) in additions.iter().enumerate().rev() {
                steps[group * additions.len() + i].finish(&mut sums[addition.sum], &mut inverse);
            }
        }
        self.product = *inverse.one();
    }
}

/// The first half of the first round of a group. With windows made on the way, most is read of them while they are in the processor's
/// first-level cache.
pub(super) struct Start<'s, 'a, E: Engine, const G: usize> {
    pub(super) rounds: &'s mut Rounds<'a, E::Vector, G>,
    pub(super) group: usize,
    pub(super) terms: &'s Terms<'s, E, G>,
    /// The terms of the group that starts next.
    pub(super) next: Option<&'s Terms<'s, E, G>>,
}

impl<E: Engine, const G: usize> Work for Start<'_, '_, E, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rounds, group, terms, next } = self;
        let count = rounds.plan.sums.len();
        for (i, term) in rounds.plan.sums.iter().enumerate() {
            if let Some(next) = next {
                next.prefetch(*term);
            }
            rounds.sums.points[group * count + i] = terms.load(*term).signed();
        }
        rounds.begin(0, group, terms, next);
    }
}

/// The rest of the rounds, after all groups have started.
pub(super) struct Rest<'s, 'a, E: Engine, const G: usize> {
    pub(super) rounds: Rounds<'a, E::Vector, G>,
    pub(super) groups: &'s [Terms<'s, E, G>],
}

impl<E: Engine, const G: usize> Work for Rest<'_, '_, E, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut rounds, groups } = self;
        rounds.finish(0);
        for round in 1..rounds.plan.rounds.len() {
            for (i, terms) in groups.iter().enumerate() {
                rounds.begin(round, i, terms, groups.get(i + 1));
            }
            rounds.finish(round);
        }
    }
}

/// An addition of which the difference is part of the product, and its inverse is not known yet.
#[derive(Clone, Copy)]
struct Step<V, const G: usize> {
    /// x₂ − x₁.
    difference: Tight<V, G>,
    /// y₂.
    y: Loose<V, G>,
    /// The product of the differences before this one.
    before: Factor<V, G>,
}

impl<V: Vector, const G: usize> Step<V, G> {
    /// Begins the addition of a point to a sum.
    #[inline(always)]
    fn begin(&mut self, sum: &Affine<V, G>, point: &Affine<V, G>, product: &mut Factor<V, G>) {
        sum.x.any_vector().apart(Begin { step: self, sum, point, product });
    }

    #[inline(always)]
    fn begin_in_place(
        &mut self,
        sum: &Affine<V, G>,
        point: &Affine<V, G>,
        product: &mut Factor<V, G>,
    ) {
        self.difference = point.x.loose().minus::<2>(&sum.x.loose()).tighten(); // 1 + 2
        self.y = point.signed_y(); // 2
        self.before = *product;
        *product = product.mul(&self.difference).carry(); // 1 or 2
    }

    /// Finishes it. `inverse` is the inverse of the product before the step after this one.
    #[inline(always)]
    fn finish(&self, sum: &mut Affine<V, G>, inverse: &mut Factor<V, G>) {
        sum.x.any_vector().apart(Finish { step: self, sum, inverse });
    }

    #[inline(always)]
    fn finish_in_place(&self, sum: &mut Affine<V, G>, inverse: &mut Factor<V, G>) {
        let of_difference = inverse.mul(&self.before).carry(); // 1 or 2
        *inverse = inverse.mul(&self.difference).carry(); // 1 or 2
        let rise = self.y.minus::<3>(&sum.y.loose()).carry(); // 2 + 3
        let slope = rise.mul(&of_difference).carry(); // 1 or 2
        let both_x = sum.x.loose().twice().plus(&self.difference.loose()); // 2 + 3
        let x = slope.wide_square().fold_with(&both_x.negate::<6>()).tighten(); // 1
        let t = sum.x.loose().minus::<2>(&x.loose()).carry(); // 1 + 2
        sum.y = slope.wide_mul(&t).fold_with(&sum.y.loose().negate::<3>()).tighten(); // 1
        sum.x = x;
    }
}

/// The first half of a step.
struct Begin<'a, V, const G: usize> {
    step: &'a mut Step<V, G>,
    sum: &'a Affine<V, G>,
    point: &'a Affine<V, G>,
    product: &'a mut Factor<V, G>,
}

impl<V: Vector, const G: usize> Work for Begin<'_, V, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.step.begin_in_place(self.sum, self.point, self.product);
    }
}

/// The second half of a step.
struct Finish<'a, V, const G: usize> {
    step: &'a Step<V, G>,
    sum: &'a mut Affine<V, G>,
    inverse: &'a mut Factor<V, G>,
}

impl<V: Vector, const G: usize> Work for Finish<'_, V, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.step.finish_in_place(self.sum, self.inverse);
    }
}

/// Replaces differences of zero by one and marks their lanes, in groups of `additions` steps. Returns the product of the
/// differences.
#[inline(always)]
fn replace_zeros<V: Vector, const G: usize>(
    steps: &mut [Step<V, G>],
    additions: usize,
    exceptional: &mut [[u8; G]],
) -> Factor<V, G> {
    let mut product = *steps[0].difference.one();
    for i in 0..steps.len() {
        let step = &mut steps[i];
        let zero = step.difference.zero_lanes();
        step.difference = step.difference.or_where(zero, &step.difference.one());
        for g in 0..G {
            exceptional[i / additions][g] |= zero[g];
        }
        step.before = product;
        product = product.mul(&step.difference).carry();
    }
    product
}
