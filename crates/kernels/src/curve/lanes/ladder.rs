//! The ladder that computes u1·G + u2·Q in lanes: its steps and their order.
//!
//! ```text
//! for each digit that a window serves, from the highest:
//!     double five times                       (not before the first digit)
//!     for each window of the key's table:     add the k1 and k2 digits' multiples of its point and λ times it
//! for each digit of u1:                       add its multiple of the generator
//! ```
//!
//! **One Z for a table made on the way.** The multiples of Q share a Z, call it S, so their X and Y are
//! affine coordinates on the isomorphic curve y² = x³ + 7·S⁶, and the first part of the ladder runs on that one
//! ("effective affine", as in libsecp256k1). The result returns to
//! the curve by one multiplication of its Z by S, before the generator's multiples are added.

use super::super::scalar::{Digits, KEY_WINDOW, KEY_WINDOWS, index_of_digit};
use super::super::table::{GeneratorTable, KEY_ROWS, Row, Window, digits_a_window};
use super::MOST_LANES;
use super::field::Factor;
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
        let each = digits_a_window(windows);
        let mut sum = self.key_multiple(0, each - 1, 0).with_z_one();
        self.add_second(&mut sum, 0, each - 1);
        for digit in (0..each).rev() {
            if digit < each - 1 {
                for _ in 0..KEY_WINDOW {
                    sum.double_to_opposite();
                }
            }
            let first = usize::from(digit == each - 1);
            for window in first..windows {
                let at = digit + window * each;
                if at < KEY_WINDOWS {
                    self.prefetch_key(window + 1, at + each);
                    sum.add(&self.key_multiple(window, at, 0));
                    self.add_second(&mut sum, window, at);
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

    /// Asks for the rows of a digit of k1 and of k2, so that they are there after the next two additions.
    #[inline(always)]
    fn prefetch_key(&self, window: usize, at: usize) {
        if at >= KEY_WINDOWS {
            return;
        }
        for (windows, digits) in self.key.iter().zip(self.digits).take(G * E::Vector::LANES) {
            for half in &digits.key {
                let (index, _) = index_of_digit(half[at], KEY_ROWS as u16);
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

    /// Adds the k2 digit's multiple of λ times the window's point (x, y), which is (β·x, y).
    #[inline(always)]
    fn add_second(&self, sum: &mut Jacobian<E::Vector, G>, window: usize, digit: usize) {
        let mut second = self.key_multiple(window, digit, 1);
        second.x = second.x.mul(&second.x.splat(BETA)).tighten();
        sum.add(&second);
    }

    #[inline(always)]
    fn key_multiple(&self, window: usize, digit: usize, half: usize) -> Affine<E::Vector, G> {
        self.engine.run(KeyMultiple { ladder: self, window, digit, half })
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
    half: usize,
}

impl<E: Engine, const G: usize> Work for KeyMultiple<'_, '_, E, G> {
    type Output = Affine<E::Vector, G>;

    #[inline(always)]
    fn run(self) -> Affine<E::Vector, G> {
        let Self { ladder, window, digit, half } = self;
        // Every doubling leaves the opposite point, and those that follow are five a digit.
        let doublings = KEY_WINDOW * (digit % digits_a_window(ladder.key[0].len()));
        let sign = if doublings % 2 == 1 { !0 } else { 0 };
        ladder.multiple(sign, |lane| {
            (ladder.digits[lane].key[half][digit], &ladder.key[lane][window])
        })
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

/// The limbs of β: (β·x, y) is λ·(x, y).
pub(super) const BETA: [u64; 5] = [
    0x9_6c28_7195_01ee,
    0x7_512f_5899_5c13,
    0xc_3434_e99c_f049,
    0x7106_e644_79ea,
    0x7ae9_6a2b_657c,
];
