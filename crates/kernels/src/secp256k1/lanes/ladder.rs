//! The ladder that computes u1·G + u2·Q in lanes: its steps and their order.
//!
//! ```text
//! for each bit, from the highest:
//!     double                                          (not before the first digit)
//!     at every 5th bit:   add the k1 and k2 digits' multiples of Q and λ·Q
//!     at every 13th bit:  add the a and b digits' multiples of G and 2¹²⁸·G
//! ```
//!
//! **One Z for the key's table.** The multiples of Q share a Z, call it S, so their X and Y are
//! affine coordinates on the isomorphic curve y² = x³ + 7·S⁶, and the whole ladder runs on that one
//! ("effective affine", as in libsecp256k1). A multiple of the generator, affine on the curve itself,
//! has the coordinates (x·S², y·S³) there; the addition scales it by taking Z·S for Z. The result returns to
//! the curve by one multiplication of its Z by S.

use std::arch::x86_64::__mmask8;

use super::super::scalar::{
    Digits, GENERATOR_WINDOW, GENERATOR_WINDOWS, KEY_WINDOW, KEY_WINDOWS, index_of_digit,
};
use super::super::table::{GENERATOR_ROWS, GeneratorTable, KEY_ROWS, Row};
use super::field::{Factor, Tight};
use super::point::{Affine, Jacobian};
use super::table::read_rows;

/// The table and the digits of each lane.
pub(super) struct Ladder<'a, const G: usize> {
    /// The odd multiples of each lane's key, X and Y over the Z in `shared_z`.
    pub(super) key: [[&'a [Row; KEY_ROWS]; 8]; G],
    pub(super) shared_z: Factor<G>,
    pub(super) generator: &'a [GeneratorTable; 2],
    pub(super) digits: [[&'a Digits; 8]; G],
}

impl<const G: usize> Ladder<'_, G> {
    /// u1·G + u2·Q of each lane; Z = 0 in lanes with an exceptional addition.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn run(&self) -> Jacobian<G> {
        let mut sum = self.key_multiple(TOP_BIT, 0).with_z_one();
        self.add_second(&mut sum, TOP_BIT);
        for bit in (0..TOP_BIT).rev() {
            sum.double_to_opposite();
            if bit % KEY_WINDOW == 0 {
                let first = self.key_multiple(bit, 0);
                let z = sum.z;
                sum.add(&first, &z);
                self.add_second(&mut sum, bit);
            }
            if bit % GENERATOR_WINDOW == 0 {
                self.add_generator(&mut sum, bit, 0);
                self.add_generator(&mut sum, bit, 1);
            }
        }
        sum.z = sum.z.mul(&self.shared_z).carry();
        sum
    }

    /// Adds the k2 digit's multiple of λ·Q = (β·x, y).
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_second(&self, sum: &mut Jacobian<G>, bit: usize) {
        let mut second = self.key_multiple(bit, 1);
        second.x = second.x.mul(&Tight::splat(BETA)).tighten();
        let z = sum.z;
        sum.add(&second, &z);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_generator(&self, sum: &mut Jacobian<G>, bit: usize, half: usize) {
        let multiple = self.generator_multiple(bit, half);
        let z = sum.z.mul(&self.shared_z).carry();
        sum.add(&multiple, &z);
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn key_multiple(&self, bit: usize, half: usize) -> Affine<G> {
        let mut negate = [sign_at(bit); G];
        let mut rows = [[&Row::ZERO; 8]; G];
        for g in 0..G {
            for lane in 0..8 {
                let digit = self.digits[g][lane].key[half][bit / KEY_WINDOW];
                let (index, negative) = index_of_digit(digit, KEY_ROWS as u16);
                rows[g][lane] = &self.key[g][lane][index % KEY_ROWS];
                negate[g] ^= __mmask8::from(negative) << lane;
            }
        }
        let [x, y] = read_rows(&rows);
        Affine { x, y, negate }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn generator_multiple(&self, bit: usize, half: usize) -> Affine<G> {
        let mut negate = [sign_at(bit); G];
        let mut rows = [[&Row::ZERO; 8]; G];
        for g in 0..G {
            for lane in 0..8 {
                let digit = self.digits[g][lane].generator[half][bit / GENERATOR_WINDOW];
                let (index, negative) = index_of_digit(digit, GENERATOR_ROWS as u16);
                rows[g][lane] = &self.generator[half][index % GENERATOR_ROWS];
                negate[g] ^= __mmask8::from(negative) << lane;
            }
        }
        let [x, y] = read_rows(&rows);
        Affine { x, y, negate }
    }
}

/// Every doubling leaves the opposite point, so the sum is negative at odd bits, in all lanes.
fn sign_at(bit: usize) -> __mmask8 {
    if bit % 2 == 1 { !0 } else { 0 }
}

/// Where the highest digit of the key starts.
const TOP_BIT: usize = KEY_WINDOW * (KEY_WINDOWS - 1);

/// The ladder starts with a digit of the key, so the generator's first digit must not be earlier.
const _: () = assert!(GENERATOR_WINDOW * (GENERATOR_WINDOWS - 1) < TOP_BIT);

/// The limbs of β: (β·x, y) is λ·(x, y).
const BETA: [u64; 5] = [
    0x9_6c28_7195_01ee,
    0x7_512f_5899_5c13,
    0xc_3434_e99c_f049,
    0x7106_e644_79ea,
    0x7ae9_6a2b_657c,
];
