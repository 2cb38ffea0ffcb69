//! The sum of one signature over eight lanes.
//!
//! With several windows of the key most additions of a signature do not depend on each other. So every lane adds up a
//! share of the multiples, and in the end the lanes are added up.
//!
//! ```text
//! for each digit that a window serves, from the highest:
//!     double five times                    (not before the first digit)
//!     add the multiples that the windows have for it, eight at a time; after the last digit the generator's
//! for the distances 4, 2, 1: add to each lane the one at this distance
//! ```

use super::super::digits::{Digits, KEY_WINDOW, digits_a_part, index_of_digit, parts};
use super::super::table::{Row, Window, digits_a_window, generator_tables};
use super::point::{Affine, Jacobian};
use super::rows::read_rows;
use super::terms::times_beta;
use super::vector::{Engine, Vector};

/// The windows and the digits of a signature.
pub(super) struct Single<'a, E> {
    pub(super) engine: E,
    /// Of the key, four at least.
    pub(super) windows: &'a [Window],
    pub(super) digits: &'a Digits,
}

/// A multiple to add.
struct Selected<'a> {
    row: &'a Row,
    is_negative: bool,
    /// Whether the row stands for λ times its point.
    by_lambda: bool,
}

/// The sums of the lanes so far.
struct Shares<V, const G: usize> {
    sum: Jacobian<V, G>,
    /// The lanes that have added anything. The others hold any point.
    started: [u8; G],
}

impl<'a, E: Engine> Single<'a, E> {
    /// u1·G + u2·Q in every lane; Z = 0 after an exceptional addition.
    #[inline(always)]
    pub(super) fn sum<const G: usize>(&self) -> Jacobian<E::Vector, 1> {
        let each = digits_a_window::<E::Curve>(self.windows.len());
        let highest = self.terms(each - 1);
        let (first, rest) = highest.split_at(highest.len().min(LANES));
        let (point, started) = self.load::<G>(first);
        let mut shares = Shares { sum: point.with_z_one(), started };
        self.add(&mut shares, rest);
        for digit in (0..each - 1).rev() {
            for _ in 0..KEY_WINDOW {
                shares.sum.double_to_opposite();
            }
            self.add(&mut shares, &self.terms(digit));
        }
        shares.merge()
    }

    /// The multiples to add at this digit of every window.
    fn terms(&self, digit: usize) -> Vec<Selected<'a>> {
        // Every doubling leaves the opposite point, and the later doublings are five a digit.
        let is_opposite = KEY_WINDOW * digit % 2 == 1;
        let each = digits_a_window::<E::Curve>(self.windows.len());
        let mut terms = Vec::with_capacity(2 * self.windows.len() + self.digits.generator.len());
        let a_part = digits_a_part::<E::Curve>();
        for (window, at) in self.windows.iter().zip((digit..a_part).step_by(each)) {
            for part in 0..parts::<E::Curve>() {
                let term = Selected::of(window, self.digits.key[part * a_part + at]);
                let is_negative = term.is_negative != is_opposite;
                terms.push(Selected { is_negative, by_lambda: part == 1, ..term });
            }
        }
        if digit == 0 {
            let generator = generator_tables::<E::Curve>().iter().zip(&self.digits.generator);
            terms.extend(generator.map(|(table, digit)| Selected::of(table.as_slice(), *digit)));
        }
        terms
    }

    #[inline(always)]
    fn add<const G: usize>(&self, shares: &mut Shares<E::Vector, G>, terms: &[Selected<'_>]) {
        for terms in terms.chunks(LANES) {
            let (point, present) = self.load(terms);
            shares.add(&point, present);
        }
    }

    /// Up to eight multiples, and the lanes that have one.
    #[inline(always)]
    fn load<const G: usize>(&self, terms: &[Selected<'_>]) -> (Affine<E::Vector, G>, [u8; G]) {
        let mut rows = [terms[0].row; LANES];
        let [mut negate, mut by_lambda, mut present] = [[0; G]; 3];
        for (i, term) in terms.iter().enumerate() {
            let (g, lane) = (i / E::Vector::LANES, i % E::Vector::LANES);
            rows[i] = term.row;
            negate[g] |= u8::from(term.is_negative) << lane;
            by_lambda[g] |= u8::from(term.by_lambda) << lane;
            present[g] |= 1 << lane;
        }
        let [x, y] = read_rows(self.engine, &rows);
        let x = x.or_where(by_lambda, &times_beta(&x));
        (Affine { x, y, negate }, present)
    }
}

impl<'a> Selected<'a> {
    /// The multiple that the digit selects.
    fn of(rows: &'a [Row], digit: u16) -> Self {
        let (index, is_negative) = index_of_digit(digit, rows.len() as u16);
        Self { row: &rows[index], is_negative, by_lambda: false }
    }
}

impl<V: Vector, const G: usize> Shares<V, G> {
    /// Adds a point to the lanes that have one.
    #[inline(always)]
    fn add(&mut self, point: &Affine<V, G>, present: [u8; G]) {
        let mut sum = self.sum;
        sum.add(point);
        let mut first = present;
        for g in 0..G {
            first[g] &= !self.started[g];
            self.started[g] |= present[g];
        }
        self.sum = self.sum.or_where(present, &sum).or_where(first, &point.with_z_one());
    }

    /// The sum of all lanes, in every lane.
    #[inline(always)]
    fn merge(&self) -> Jacobian<V, 1> {
        let mut sum = self.sum.group(0);
        for g in 1..G {
            sum.add_jacobian(&self.sum.group(g));
        }
        let mut distance = V::LANES / 2;
        while distance > 0 {
            sum.add_jacobian(&sum.exchange(distance));
            distance /= 2;
        }
        sum
    }
}

/// The lanes, in one vector or in several.
const LANES: usize = 8;
