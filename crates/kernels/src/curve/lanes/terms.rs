//! The multiples of a key and of the generator that digits select, loaded into lanes.

use super::super::Key;
use super::super::Parameters;
use super::super::digits::{Digits, KEY_WINDOW, digits_a_part, index_of_digit};
use super::super::equation::Equation;
use super::super::plan::{Operand, Source, Term};
use super::super::table::{GeneratorTable, Row, Window, digits_a_window, generator_tables};
use super::MOST_LANES;
use super::field::Tight;
use super::point::Affine;
use super::rows::read_rows;
use super::vector::{Engine, Vector, Work};
use crate::prefetch;

/// The tables and the digits of all lanes.
pub(super) struct Terms<'a, E: Engine, const G: usize> {
    engine: E,
    /// The windows of the lanes' keys, the same number in every lane.
    key: [&'a [Window]; MOST_LANES],
    /// Whether the windows were made just before, and are still in the processor's cache.
    is_made: bool,
    generator: &'a [GeneratorTable],
    digits: [&'a Digits; MOST_LANES],
}

impl<'a, E: Engine, const G: usize> Terms<'a, E, G> {
    /// The terms of an equation in every lane. Cached tables are read in place, the windows of other keys are in
    /// `made`.
    pub(super) fn of(
        engine: E,
        equations: &[&'a Equation<'a, E::Curve>; MOST_LANES],
        made: &'a [Window],
    ) -> Self {
        let windows = |lane: usize| match equations[lane].key {
            Key::Cached(table) => table.windows(),
            _ => made.get(lane).map_or(&[][..], std::slice::from_ref),
        };
        Self {
            engine,
            key: std::array::from_fn(windows),
            is_made: !matches!(equations[0].key, Key::Cached(_)),
            generator: generator_tables::<E::Curve>(),
            digits: equations.map(|equation| &equation.digits),
        }
    }

    /// The multiples that the digits of a term select.
    #[inline(always)]
    pub(super) fn load(&self, term: Term) -> Affine<E::Vector, G> {
        match term {
            Term::Generator { digit } => self.engine.run(GeneratorMultiple { terms: self, digit }),
            Term::Key { window, part, digit } => {
                self.engine.run(KeyMultiple { terms: self, window, part, digit })
            }
        }
    }

    /// The point to add, of sums that were made before.
    #[inline(always)]
    pub(super) fn point(
        &self,
        operand: Operand,
        sums: &[Affine<E::Vector, G>],
    ) -> Affine<E::Vector, G> {
        let mut point = match operand.source {
            Source::Term(term) => self.load(term),
            Source::Sum(index) => sums[index],
        };
        if operand.times_lambda {
            point.x = times_beta(&point.x);
        }
        point
    }

    /// Requests the rows of a term, so that they are there when it is loaded.
    #[inline(always)]
    pub(super) fn prefetch(&self, term: Term) {
        for lane in 0..G * E::Vector::LANES {
            match term {
                Term::Key { .. } if self.is_made => return,
                Term::Key { window, part, digit } => {
                    prefetch::value(self.key_row(lane, window, part, digit).0);
                }
                Term::Generator { digit } => prefetch::value(self.generator_row(lane, digit).0),
            }
        }
    }

    /// The row of a digit of u1, and whether the digit is negative.
    #[inline(always)]
    fn generator_row(&self, lane: usize, digit: usize) -> (&'a Row, bool) {
        select(&self.generator[digit], self.digits[lane].generator[digit])
    }

    /// The row of a digit of a part of u2, and whether the digit is negative.
    #[inline(always)]
    fn key_row(&self, lane: usize, window: usize, part: usize, digit: usize) -> (&'a Row, bool) {
        let digit = self.digits[lane].key[part * digits_a_part::<E::Curve>() + digit];
        select(&self.key[lane][window], digit)
    }

    /// Loads a row per lane, all of them negative where `sign` says so.
    #[inline(always)]
    fn read(&self, sign: u8, row: impl Fn(usize) -> (&'a Row, bool)) -> Affine<E::Vector, G> {
        let mut negate = [sign & E::Vector::ALL; G];
        let mut rows = [&Row::ZERO; MOST_LANES];
        let lanes = E::Vector::LANES;
        for g in 0..G {
            for lane in 0..lanes {
                let (row, is_negative) = row(g * lanes + lane);
                rows[g * lanes + lane] = row;
                negate[g] ^= u8::from(is_negative) << lane;
            }
        }
        let [x, y] = read_rows(self.engine, &rows);
        Affine { x, y, negate }
    }
}

/// The row that a digit selects, and whether the digit is negative.
#[inline(always)]
fn select<const ROWS: usize>(table: &[Row; ROWS], digit: u16) -> (&Row, bool) {
    let (index, is_negative) = index_of_digit(digit, ROWS as u16);
    (&table[index % ROWS], is_negative)
}

/// The look-up of a digit of a part of u2.
struct KeyMultiple<'t, 'a, E: Engine, const G: usize> {
    terms: &'t Terms<'a, E, G>,
    window: usize,
    part: usize,
    digit: usize,
}

impl<E: Engine, const G: usize> Work for KeyMultiple<'_, '_, E, G> {
    type Output = Affine<E::Vector, G>;

    #[inline(always)]
    fn run(self) -> Affine<E::Vector, G> {
        let Self { terms, window, part, digit } = self;
        // Every doubling leaves the opposite point, and the later doublings are five a digit.
        let doublings = KEY_WINDOW * (digit % digits_a_window::<E::Curve>(terms.key[0].len()));
        let sign = if doublings % 2 == 1 { !0 } else { 0 };
        terms.read(sign, |lane| terms.key_row(lane, window, part, digit))
    }
}

/// The look-up of a digit of u1.
struct GeneratorMultiple<'t, 'a, E: Engine, const G: usize> {
    terms: &'t Terms<'a, E, G>,
    digit: usize,
}

impl<E: Engine, const G: usize> Work for GeneratorMultiple<'_, '_, E, G> {
    type Output = Affine<E::Vector, G>;

    #[inline(always)]
    fn run(self) -> Affine<E::Vector, G> {
        let Self { terms, digit } = self;
        terms.read(0, |lane| terms.generator_row(lane, digit))
    }
}

/// β·x, the x of λ times the point, on a curve with an endomorphism.
#[inline(always)]
pub(super) fn times_beta<V: Vector, const G: usize>(x: &Tight<V, G>) -> Tight<V, G> {
    match V::Curve::BETA {
        Some(beta) => x.mul(&x.number(beta)).tighten(),
        None => *x,
    }
}
