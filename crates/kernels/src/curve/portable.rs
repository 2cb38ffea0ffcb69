//! The reference: the same verification, one signature at a time, in plain Rust.
//!
//! Formulas from the Explicit-Formulas Database, short Weierstraß curves, Jacobian
//! coordinates (x = X/Z², y = Y/Z³): doubling `dbl-2009-l`, with a·Z⁴ in the slope of the tangent, and additions `madd` and `add`
//! in the plain form. None treats its exceptions: an addition of equal or
//! opposite points, or to the point at infinity, yields Z = 0, and every later step keeps Z = 0. One
//! check of Z at the end therefore detects all exceptions.

use super::digits::{Digits, KEY_WINDOW, digits_a_part, index_of_digit};
use super::equation::{Equation, Rule};
use super::modular::{Field, Modulus, Residue, Words, add, is_below};
use super::plan::{Operand, Order, Plan, Source, Term};
use super::table::{KeyTable, Row, generator_tables};
use super::{Curve, Key, Parameters, Verdict};

/// A point by its two coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Affine<C: Parameters> {
    pub(super) x: Field<C>,
    pub(super) y: Field<C>,
}

/// A point with x = X/Z² and y = Y/Z³; at infinity if Z = 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jacobian<C: Curve> {
    pub(super) x: Field<C>,
    pub(super) y: Field<C>,
    pub(super) z: Field<C>,
}

/// Whether the equation holds, by additions in this order.
pub(super) fn check<C: Curve>(equation: &Equation<'_, C>, rule: Rule, order: Order) -> Verdict {
    let table;
    let table = match equation.key {
        Key::Cached(cached) => cached,
        _ => {
            let Some(point) = equation.coordinates.to_point() else { return Verdict::Invalid };
            table = KeyTable::of_point(point);
            &table
        }
    };
    let plan = Plan::of::<C>(table.size(), order);
    let sum = SumOfMultiples { plan, table, digits: &equation.digits }.run();
    if sum.z.is_zero() {
        return Verdict::Undecided;
    }
    Verdict::of(match rule {
        Rule::XModuloOrder => sum.x_matches_modulo_order(equation.target),
        Rule::XWithEvenY => {
            let point = sum.to_affine();
            point.x.words() == equation.target && !point.y.is_odd()
        }
    })
}

/// u1·G + u2·Q for the digits of u1 and u2 and the table of Q.
pub(super) struct SumOfMultiples<'a, C: Curve> {
    pub(super) plan: &'a Plan,
    pub(super) table: &'a KeyTable<C>,
    pub(super) digits: &'a Digits,
}

impl<C: Curve> SumOfMultiples<'_, C> {
    fn run(&self) -> Jacobian<C> {
        let sums = self.after_rounds(self.plan.rounds.len());
        let (highest, lower) = self.plan.key.split_last().expect("a window serves a digit or more");
        let add = |sum: Jacobian<C>, operand: &Operand| sum.add_any(self.point(*operand, &sums));
        let first = self.point(highest[0], &sums);
        let mut sum = highest[1..].iter().fold(first, add);
        for operands in lower.iter().rev() {
            sum = operands.iter().fold(sum.double_times(KEY_WINDOW), add);
        }
        self.plan.generator.iter().fold(sum, add)
    }

    /// The sums of the plan after some of its rounds.
    pub(super) fn after_rounds(&self, rounds: usize) -> Vec<Jacobian<C>> {
        let mut sums: Vec<Jacobian<C>> =
            self.plan.sums.iter().map(|term| self.multiple(*term).into()).collect();
        for addition in self.plan.rounds[..rounds].iter().flatten() {
            let point = self.point(addition.operand, &sums);
            sums[addition.sum] = sums[addition.sum].add_any(point);
        }
        sums
    }

    fn point(&self, operand: Operand, sums: &[Jacobian<C>]) -> Jacobian<C> {
        let point = match operand.source {
            Source::Term(term) => self.multiple(term).into(),
            Source::Sum(index) => sums[index],
        };
        if operand.times_lambda { point.times_lambda() } else { point }
    }

    pub(super) fn multiple(&self, term: Term) -> Affine<C> {
        match term {
            Term::Generator { digit } => {
                pick(generator_tables::<C>()[digit].as_slice(), self.digits.generator[digit])
            }
            Term::Key { window, part, digit } => {
                let digit = self.digits.key[part * digits_a_part::<C>() + digit];
                pick(&self.table.windows()[window], digit)
            }
        }
    }
}

/// The odd multiple that the digit selects.
fn pick<C: Curve>(table: &[Row], digit: u16) -> Affine<C> {
    let (index, negative) = index_of_digit(digit, table.len() as u16);
    let point = table[index].to_affine();
    if negative { point.negate() } else { point }
}

impl<C: Curve> Affine<C> {
    /// The point with this x and the given parity of y, if there is one.
    pub(super) fn on_curve(x: Field<C>, odd: bool) -> Option<Self> {
        let slope =
            if C::A_IS_MINUS_3 { x.square().minus(Residue::new([3, 0, 0, 0])) } else { x.square() };
        let y = slope.times(x).plus(C::B).root()?;
        Some(Self { x, y: if y.is_odd() == odd { y } else { y.negate() } })
    }

    pub(super) fn negate(self) -> Self {
        Self { y: self.y.negate(), ..self }
    }

    /// P, 3P, 5P, …
    pub(super) fn odd_multiples(self, count: usize) -> Vec<Self> {
        let twice = Jacobian::from(self).double().to_affine();
        let mut multiples = vec![Jacobian::from(self)];
        while multiples.len() < count {
            multiples.push(multiples[multiples.len() - 1].add(twice));
        }
        to_affine_all(&multiples)
    }
}

/// The coordinates of points that are not at infinity, with one inversion.
pub(super) fn to_affine_all<C: Curve>(points: &[Jacobian<C>]) -> Vec<Affine<C>> {
    let mut inverses: Vec<Field<C>> = points.iter().map(|point| point.z).collect();
    Residue::invert_all(&mut inverses);
    points.iter().zip(inverses).map(|(point, inverse)| point.scale(inverse)).collect()
}

impl<C: Curve> From<Affine<C>> for Jacobian<C> {
    fn from(point: Affine<C>) -> Self {
        Self { x: point.x, y: point.y, z: Residue::ONE }
    }
}

impl<C: Curve> Jacobian<C> {
    /// EFD `dbl-2009-l`, with the slope E = 3X² + a·Z⁴.
    pub(super) fn double(self) -> Self {
        let b = self.y.square();
        let c = b.square();
        let d = self.x.times(b).twice().twice();
        let squares = self.x.square().minus(self.minus_a_third());
        let e = squares.twice().plus(squares);
        let x = e.square().minus(d.twice());
        let y = e.times(d.minus(x)).minus(c.twice().twice().twice());
        let z = self.y.times(self.z).twice();
        Self { x, y, z }
    }

    /// λ times the point, on a curve with an endomorphism.
    pub(super) fn times_lambda(self) -> Self {
        Self { x: C::BETA.map_or(self.x, |beta| self.x.times(beta)), ..self }
    }

    /// −a·Z⁴/3.
    fn minus_a_third(self) -> Field<C> {
        if C::A_IS_MINUS_3 { self.z.square().square() } else { Residue::ZERO }
    }

    /// 2^`count` · P.
    pub(super) fn double_times(self, count: usize) -> Self {
        (0..count).fold(self, |point, _| point.double())
    }

    /// Mixed addition: U2 = x·Z², S2 = y·Z³, H = U2 − X, R = S2 − Y.
    pub(super) fn add(self, other: Affine<C>) -> Self {
        let zz = self.z.square();
        let h = other.x.times(zz).minus(self.x);
        let r = other.y.times(zz).times(self.z).minus(self.y);
        let hh = h.square();
        let hhh = h.times(hh);
        let v = self.x.times(hh);
        let x = r.square().minus(hhh).minus(v.twice());
        let y = r.times(v.minus(x)).minus(self.y.times(hhh));
        Self { x, y, z: self.z.times(h) }
    }

    /// Addition of a point with a Z: `add` after bringing both to the product of their Z.
    pub(super) fn add_any(self, other: Self) -> Self {
        let (zz, other_zz) = (self.z.square(), other.z.square());
        let u = self.x.times(other_zz);
        let s = self.y.times(other_zz).times(other.z);
        let h = other.x.times(zz).minus(u);
        let r = other.y.times(zz).times(self.z).minus(s);
        let hh = h.square();
        let (hhh, v) = (h.times(hh), u.times(hh));
        let x = r.square().minus(hhh).minus(v.twice());
        let y = r.times(v.minus(x)).minus(s.times(hhh));
        Self { x, y, z: self.z.times(other.z).times(h) }
    }

    /// The coordinates of a point that is not at infinity.
    pub(super) fn to_affine(self) -> Affine<C> {
        self.scale(self.z.invert())
    }

    fn scale(&self, z_inverse: Field<C>) -> Affine<C> {
        let zz = z_inverse.square();
        Affine { x: self.x.times(zz), y: self.y.times(zz).times(z_inverse) }
    }

    /// ECDSA's condition x mod n = r without leaving projective coordinates: X = r·Z², or
    /// X = (r + n)·Z² where r + n is a field element too.
    fn x_matches_modulo_order(&self, r: Words) -> bool {
        let zz = self.z.square();
        let also = plus_order::<C>(&r);
        self.x == Residue::new(r).times(zz)
            || also.is_some_and(|words| self.x == Residue::new(words).times(zz))
    }
}

/// r + n, if that is below p.
pub(super) fn plus_order<C: Curve>(r: &Words) -> Option<Words> {
    let (sum, carry) = add(r, &C::N::VALUE);
    (carry == 0 && is_below(&sum, &C::P::VALUE)).then_some(sum)
}
