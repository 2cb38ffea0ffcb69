//! The reference: the same verification, one signature at a time, in plain Rust.
//!
//! Formulas from the Explicit-Formulas Database, short Weierstraß curves with a = 0, Jacobian
//! coordinates (x = X/Z², y = Y/Z³): doubling `dbl-2009-l`, mixed addition `madd` in the plain form
//! with 8 multiplications and 3 squarings. Neither treats its exceptions: an addition of equal or
//! opposite points, or to the point at infinity, yields Z = 0, and every later step keeps Z = 0. One
//! check of Z at the end therefore detects all exceptions.

use super::equation::{Equation, Rule};
use super::modular::{Field, Modulus, N, P, Words, add, is_below};
use super::scalar::{Digits, KEY_WINDOW, KEY_WINDOWS, index_of_digit};
use super::table::{KeyTable, Row, Window, digits_a_window, generator_tables};
use super::{Key, Verdict};

/// A point by its two coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Affine {
    pub(super) x: Field,
    pub(super) y: Field,
}

/// A point with x = X/Z² and y = Y/Z³; at infinity if Z = 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jacobian {
    pub(super) x: Field,
    pub(super) y: Field,
    pub(super) z: Field,
}

/// Whether the equation holds.
pub(super) fn check(equation: &Equation<'_>, rule: Rule) -> Verdict {
    let table;
    let windows = match equation.key {
        Key::Cached(cached) => cached.windows(),
        _ => {
            let Some(point) = equation.coordinates.to_point() else { return Verdict::Invalid };
            table = KeyTable::of_point(point);
            table.windows()
        }
    };
    let sum = sum_of_multiples(windows, &equation.digits);
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

/// u1·G + u2·Q for the digits of u1 and u2 and the windows of Q.
fn sum_of_multiples(windows: &[Window], digits: &Digits) -> Jacobian {
    let mut sum: Option<Jacobian> = None;
    let each = digits_a_window(windows.len());
    for position in (0..each).rev() {
        for _ in 0..KEY_WINDOW {
            sum = sum.map(Jacobian::double);
        }
        let digits_here = (position..KEY_WINDOWS).step_by(each);
        for (window, at) in windows.iter().zip(digits_here) {
            let [k1, k2] = digits.key.map(|digits| digits[at]);
            let (first, second) = (pick(window, k1), pick(window, k2).times_lambda());
            sum = Some(sum.map_or(first.into(), |sum| sum.add(first)).add(second));
        }
    }
    let sum = sum.expect("there is at least one window");
    let generator = generator_tables().iter().zip(&digits.generator);
    generator.fold(sum, |sum, (table, digit)| sum.add(pick(table.as_slice(), *digit)))
}

/// The odd multiple that the digit selects.
fn pick(table: &[Row], digit: u16) -> Affine {
    let (index, negative) = index_of_digit(digit, table.len() as u16);
    let point = table[index].to_affine();
    if negative { point.negate() } else { point }
}

impl Affine {
    /// The point with this x and the given parity of y, if there is one.
    pub(super) fn on_curve(x: Field, odd: bool) -> Option<Self> {
        let y = x.square().times(x).plus(SEVEN).root()?;
        Some(Self { x, y: if y.is_odd() == odd { y } else { y.negate() } })
    }

    pub(super) fn negate(self) -> Self {
        Self { y: self.y.negate(), ..self }
    }

    fn times_lambda(self) -> Self {
        Self { x: self.x.times(BETA), ..self }
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
pub(super) fn to_affine_all(points: &[Jacobian]) -> Vec<Affine> {
    let mut inverses: Vec<Field> = points.iter().map(|point| point.z).collect();
    Field::invert_all(&mut inverses);
    points.iter().zip(inverses).map(|(point, inverse)| point.scale(inverse)).collect()
}

impl From<Affine> for Jacobian {
    fn from(point: Affine) -> Self {
        Self { x: point.x, y: point.y, z: Field::ONE }
    }
}

impl Jacobian {
    /// EFD `dbl-2009-l`.
    pub(super) fn double(self) -> Self {
        let a = self.x.square();
        let b = self.y.square();
        let c = b.square();
        let d = self.x.times(b).twice().twice();
        let e = a.twice().plus(a);
        let x = e.square().minus(d.twice());
        let y = e.times(d.minus(x)).minus(c.twice().twice().twice());
        let z = self.y.times(self.z).twice();
        Self { x, y, z }
    }

    /// 2^`count` · P.
    pub(super) fn double_times(self, count: usize) -> Self {
        (0..count).fold(self, |point, _| point.double())
    }

    /// Mixed addition: U2 = x·Z², S2 = y·Z³, H = U2 − X, R = S2 − Y.
    pub(super) fn add(self, other: Affine) -> Self {
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

    /// The coordinates of a point that is not at infinity.
    pub(super) fn to_affine(self) -> Affine {
        self.scale(self.z.invert())
    }

    fn scale(&self, z_inverse: Field) -> Affine {
        let zz = z_inverse.square();
        Affine { x: self.x.times(zz), y: self.y.times(zz).times(z_inverse) }
    }

    /// ECDSA's condition x mod n = r without leaving projective coordinates: X = r·Z², or
    /// X = (r + n)·Z² where r + n is a field element too.
    fn x_matches_modulo_order(&self, r: Words) -> bool {
        let zz = self.z.square();
        let also = plus_order(&r);
        self.x == Field::new(r).times(zz)
            || also.is_some_and(|words| self.x == Field::new(words).times(zz))
    }
}

/// r + n, if that is below p.
pub(super) fn plus_order(r: &Words) -> Option<Words> {
    let (sum, carry) = add(r, &N::VALUE);
    (carry == 0 && is_below(&sum, &P::VALUE)).then_some(sum)
}

/// A cube root of one modulo p: (β·x, y) is λ·(x, y).
pub(super) const BETA: Field = Field::new([
    0xc139_6c28_7195_01ee,
    0x9cf0_4975_12f5_8995,
    0x6e64_479e_ac34_34e9,
    0x7ae9_6a2b_657c_0710,
]);

/// The generator (SEC 2 §2.4.1).
pub(super) const G: Affine = Affine {
    x: Field::new([
        0x59f2_815b_16f8_1798,
        0x029b_fcdb_2dce_28d9,
        0x55a0_6295_ce87_0b07,
        0x79be_667e_f9dc_bbac,
    ]),
    y: Field::new([
        0x9c47_d08f_fb10_d4b8,
        0xfd17_b448_a685_5419,
        0x5da4_fbfc_0e11_08a8,
        0x483a_da77_26a3_c465,
    ]),
};

/// The curve is y² = x³ + 7.
const SEVEN: Field = Field::new([7, 0, 0, 0]);
