//! The ladder that computes u1·G + u2·Q in lanes: its steps and their order.
//!
//! ```text
//! for each digit that a window serves, from the highest:
//!     double five times                       (not before the first digit)
//!     for each window of the key's table:     add the digit's multiple of its point
//!                                             (with an endomorphism k1's, and k2's of λ times it)
//! for each digit of u1:                       add its multiple of the generator
//! ```
//!
//! **One Z for a table made on the way.** The multiples of Q share a Z, call it S, so their X and Y are
//! affine coordinates on the isomorphic curve y² = x³ + a·S⁴·x + b·S⁶, and for a = 0 the first part of the ladder runs on
//! that one ("effective affine", as in libsecp256k1). The result returns to
//! the curve by one multiplication of its Z by S, before the generator's multiples are added.

use super::super::Parameters;
use super::super::digits::{Digits, KEY_WINDOW, digits_a_part, index_of_digit, parts};
use super::super::table::{GeneratorTable, KEY_ROWS, Row, Window, digits_a_window};
use super::MOST_LANES;
use super::field::{Factor, Tight};
use super::point::{Affine, Jacobian};
use super::table::read_rows;
use super::vector::{Engine, Vector, Work};
use crate::prefetch;

/// The table and the digits of each lane.
pub(super) struct Ladder<'a, E: Engine, const G: usize> {
    pub(super) engine: E,
    /// The windows of each lane's key, X and Y over the Z in `shared_z`. Equally many in each lane.
    pub(super) key: &'a [&'a [Window]; MOST_LANES],
    pub(super) shared_z: Factor<E::Vector, G>,
    pub(super) generator: &'a [GeneratorTable],
    pub(super) digits: &'a [&'a Digits; MOST_LANES],
}

impl<E: Engine, const G: usize> Ladder<'_, E, G> {
    /// u1·G + u2·Q of each lane; Z = 0 in lanes with an exceptional addition.
    #[inline(always)]
    pub(super) fn run(&self) -> Jacobian<E::Vector, G> {
        let windows = self.key[0].len();
        let each = digits_a_window::<E::Curve>(windows);
        let mut sum = self.key_multiple(0, each - 1, 0).with_z_one();
        for part in 1..parts::<E::Curve>() {
            sum.add(&self.key_multiple(0, each - 1, part));
        }
        for digit in (0..each).rev() {
            if digit < each - 1 {
                for _ in 0..KEY_WINDOW {
                    sum.double_to_opposite();
                }
            }
            let first = usize::from(digit == each - 1);
            for window in first..windows {
                let at = digit + window * each;
                if at < digits_a_part::<E::Curve>() {
                    self.prefetch_key(window + 1, at + each);
                    for part in 0..parts::<E::Curve>() {
                        sum.add(&self.key_multiple(window, at, part));
                    }
                }
            }
        }
        sum.z = sum.z.mul(&self.shared_z).carry();
        for digit in 0..self.generator.len() {
            self.prefetch_generator(digit + 1);
            sum.add(&self.generator_multiple(digit));
        }
        sum
    }

    /// Asks for the rows of a digit of each part of u2, so that they are there after the next additions.
    #[inline(always)]
    fn prefetch_key(&self, window: usize, at: usize) {
        if at >= digits_a_part::<E::Curve>() {
            return;
        }
        for (windows, digits) in self.key.iter().zip(self.digits).take(G * E::Vector::LANES) {
            for part in digits.key.chunks(digits_a_part::<E::Curve>()) {
                let (index, _) = index_of_digit(part[at], KEY_ROWS as u16);
                prefetch::value(&windows[window][index % KEY_ROWS]);
            }
        }
    }

    /// Asks for the rows of a digit of u1, so that they are there after the next addition.
    #[inline(always)]
    fn prefetch_generator(&self, digit: usize) {
        let Some(table) = self.generator.get(digit) else { return };
        for digits in &self.digits[..G * E::Vector::LANES] {
            let (index, _) = index_of_digit(digits.generator[digit], table.len() as u16);
            prefetch::value(&table[index % table.len()]);
        }
    }

    /// The multiple that a digit of a part of u2 selects.
    #[inline(always)]
    fn key_multiple(&self, window: usize, digit: usize, part: usize) -> Affine<E::Vector, G> {
        let mut multiple = self.engine.run(KeyMultiple { ladder: self, window, digit, part });
        if part == 1 {
            multiple.x = times_beta(&multiple.x);
        }
        multiple
    }

    #[inline(always)]
    fn generator_multiple(&self, digit: usize) -> Affine<E::Vector, G> {
        self.engine.run(GeneratorMultiple { ladder: self, digit })
    }

    /// The multiples that digits select from windows of `ROWS`, all negative where `sign` says so.
    #[inline(always)]
    fn multiple<'t, const ROWS: usize>(
        &self,
        sign: u8,
        select: impl Fn(usize) -> (u16, &'t [Row; ROWS]),
    ) -> Affine<E::Vector, G> {
        let mut negate = [sign & E::Vector::ALL; G];
        let mut rows = [&Row::ZERO; MOST_LANES];
        let lanes = E::Vector::LANES;
        for g in 0..G {
            for lane in 0..lanes {
                let (digit, table) = select(g * lanes + lane);
                let (index, negative) = index_of_digit(digit, ROWS as u16);
                rows[g * lanes + lane] = &table[index % ROWS];
                negate[g] ^= u8::from(negative) << lane;
            }
        }
        let [x, y] = read_rows(self.engine, &rows);
        Affine { x, y, negate }
    }
}

/// The look-up of a digit of k1 or k2.
struct KeyMultiple<'l, 'a, E: Engine, const G: usize> {
    ladder: &'l Ladder<'a, E, G>,
    window: usize,
    digit: usize,
    part: usize,
}

impl<E: Engine, const G: usize> Work for KeyMultiple<'_, '_, E, G> {
    type Output = Affine<E::Vector, G>;

    #[inline(always)]
    fn run(self) -> Affine<E::Vector, G> {
        let Self { ladder, window, digit, part } = self;
        // Every doubling leaves the opposite point, and those that follow are five a digit.
        let doublings = KEY_WINDOW * (digit % digits_a_window::<E::Curve>(ladder.key[0].len()));
        let sign = if doublings % 2 == 1 { !0 } else { 0 };
        let digit = part * digits_a_part::<E::Curve>() + digit;
        ladder.multiple(sign, |lane| (ladder.digits[lane].key[digit], &ladder.key[lane][window]))
    }
}

/// The look-up of a digit of u1.
struct GeneratorMultiple<'l, 'a, E: Engine, const G: usize> {
    ladder: &'l Ladder<'a, E, G>,
    digit: usize,
}

impl<E: Engine, const G: usize> Work for GeneratorMultiple<'_, '_, E, G> {
    type Output = Affine<E::Vector, G>;

    #[inline(always)]
    fn run(self) -> Affine<E::Vector, G> {
        let Self { ladder, digit } = self;
        let table = &*ladder.generator[digit];
        ladder.multiple(0, |lane| (ladder.digits[lane].generator[digit], table))
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
