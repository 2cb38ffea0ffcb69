//! Points in lanes: doubling, mixed addition, and the co-Z additions that tables are made with.
//!
//! Jacobian coordinates (x = X/Z², y = Y/Z³) on y² = x³ + a·x + b; no formula uses b, so for a = 0 they serve any
//! isomorphic curve as well. The signs are arranged so that most terms add: a sum costs one
//! instruction a limb, a difference two. Magnitudes (see `field.rs`) are written after the steps, where they differ first
//! for secp256k1, then for P-256.
//!
//! An exceptional addition (of the point itself, its opposite, infinity) yields Z = 0, which persists, since
//! every new Z is a multiple of the old one.

use super::super::Parameters;
use super::super::modular::Residue;
use super::field::{Factor, Loose, Tight};
use super::vector::{Vector, Work};

/// Points with x = X/Z² and y = Y/Z³. Magnitudes: X at most 5 or 1, Y at most 2, Z at most 2 or 3.
#[derive(Clone, Copy)]
pub(super) struct Jacobian<V, const G: usize> {
    pub(super) x: Tight<V, G>,
    pub(super) y: Tight<V, G>,
    pub(super) z: Factor<V, G>,
}

/// Points by two coordinates of magnitude 1, some of them to be negated.
#[derive(Clone, Copy)]
pub(super) struct Affine<V, const G: usize> {
    pub(super) x: Tight<V, G>,
    pub(super) y: Tight<V, G>,
    /// The lanes whose y is negated.
    pub(super) negate: [u8; G],
}

impl<V: Vector, const G: usize> Affine<V, G> {
    /// The y of the point, negated in those lanes.
    #[inline(always)]
    pub(super) fn signed_y(&self) -> Loose<V, G> {
        let mut keep = self.negate;
        for g in 0..G {
            keep[g] = !keep[g];
        }
        self.y.loose().negate_unless::<2>(keep) // 2
    }

    /// The same point with no y to be negated.
    #[inline(always)]
    pub(super) fn signed(&self) -> Self {
        Self { x: self.x, y: self.signed_y().tighten(), negate: [0; G] }
    }

    /// The same point with Z = 1.
    #[inline(always)]
    pub(super) fn with_z_one(&self) -> Jacobian<V, G> {
        Jacobian { x: self.x, y: self.signed_y().tighten(), z: *self.x.one() }
    }
}

impl<V: Vector, const G: usize> Jacobian<V, G> {
    /// −2 times the point: EFD `dbl-2009-l` with 4XY² as a product, for a = 0 3 multiplications and 4
    /// squarings, 6 reductions; for a = −3 one more multiplication and reduction. The opposite, because that needs no
    /// subtraction from Y; the number of doublings gives the sign.
    ///
    /// ```text
    /// E = 3X² + aZ⁴, B = −2Y², D = 2XB (= −4XY²)
    /// X' = E² + 2D, −Y' = E·(X' + D) + 2B², Z' = 2YZ
    /// ```
    #[inline(always)]
    pub(super) fn double_to_opposite(&mut self) {
        self.x.any_vector().apart(Double(self));
    }

    #[inline(always)]
    fn double_in_place(&mut self) {
        let e = slope(&self.x, &self.z); // 3 or 5
        let b = self.y.square().twice().negate::<3>().carry(); // 3
        let z = self.y.mul(&self.z).twice().carry(); // 2 or 3
        let d = self.x.mul(&b).twice(); // 2 or 3
        let x = e.square().plus(&d.twice()).settle(); // 1 + 4, or 1
        let t = x.plus(&d).carry(); // 5 + 2, or 1 + 3
        self.x = x.tighten();
        self.y = b.wide_square().twice().plus_product(&e, &t).fold().settle().tighten(); // 1
        self.z = z;
    }

    /// Adds a point: EFD `madd` in the plain form, 8 multiplications and 3 squarings, 10 reductions.
    ///
    /// ```text
    /// H = x·Z² − X, R = Y − y·Z³, N = −H², V = X·N, J = H·N
    /// X' = R² + J + 2V, Y' = R·(X' + V) + Y·J, Z' = Z·H
    /// ```
    #[inline(always)]
    pub(super) fn add(&mut self, other: &Affine<V, G>) {
        self.x.any_vector().apart(Add(self, other));
    }

    #[inline(always)]
    fn add_in_place(&mut self, other: &Affine<V, G>) {
        let zz = self.z.square().carry(); // 1
        let zzz = self.z.mul(&zz).carry(); // 1
        let u = other.x.mul(&zz); // 1
        let minus_s = other.y.mul(&zzz).negate_unless::<2>(other.negate); // 2
        self.add_over_z(&u, &minus_s);
    }

    /// Adds the point whose X and −Y over this point's Z are `u` and `minus_s`, of magnitudes 1 and 2.
    #[inline(always)]
    fn add_over_z(&mut self, u: &Loose<V, G>, minus_s: &Loose<V, G>) {
        let h = u.minus::<6>(&self.x.loose()).carry(); // 1 + 6
        let r = self.y.loose().plus(minus_s).carry(); // 2 + 2
        let n = h.square().negate::<5>().carry(); // 5
        self.z = self.z.mul(&h).carry(); // 1 or 2
        let v = self.x.mul(&n); // 1 or 2
        let j = h.mul(&n); // 1 or 4
        let x = r.square().plus(&j).plus(&v.twice()).settle(); // 4, or 1
        let t = x.plus(&v).carry(); // 5 or 3
        self.x = x.tighten();
        self.y = self.y.wide_mul(&j.carry()).plus_product(&r, &t).fold().tighten(); // 1 or 2
    }

    /// Adds a point that has a Z as well: both are brought to the product of their Z, 12 multiplications and 4 squarings.
    #[inline(always)]
    pub(super) fn add_jacobian(&mut self, other: &Self) {
        self.x.any_vector().apart(AddJacobian(self, other));
    }

    #[inline(always)]
    fn add_jacobian_in_place(&mut self, other: &Self) {
        let [zz, other_zz] = [self.z.square().carry(), other.z.square().carry()]; // 1
        let [zzz, other_zzz] = [self.z.mul(&zz).carry(), other.z.mul(&other_zz).carry()]; // 1
        let u = other.x.mul(&zz); // 1
        let minus_s = other.y.mul(&zzz).negate::<2>(); // 2
        self.x = self.x.mul(&other_zz).tighten(); // 1
        self.y = self.y.mul(&other_zzz).tighten(); // 1
        self.z = self.z.mul(&other.z).carry(); // 1
        self.add_over_z(&u, &minus_s);
    }

    /// One of the groups.
    #[inline(always)]
    pub(super) fn group(&self, g: usize) -> Jacobian<V, 1> {
        Jacobian { x: self.x.group(g), y: self.y.group(g), z: self.z.group(g) }
    }

    /// `other` in the lanes of `mask`, `self` elsewhere.
    #[inline(always)]
    pub(super) fn or_where(&self, mask: [u8; G], other: &Self) -> Self {
        Self {
            x: self.x.or_where(mask, &other.x),
            y: self.y.or_where(mask, &other.y),
            z: self.z.or_where(mask, &other.z),
        }
    }

    /// Every lane's point, from the lane at this distance (see [`Vector::exchange`]).
    #[inline(always)]
    pub(super) fn exchange(&self, distance: usize) -> Self {
        Self {
            x: self.x.exchange(distance),
            y: self.y.exchange(distance),
            z: self.z.exchange(distance),
        }
    }
}

/// The lanes in which (x, y) is a point: y² = x³ + a·x + b. Both are of magnitude 1.
#[inline(always)]
pub(super) fn on_curve_lanes<V: Vector, const G: usize>(
    x: &Tight<V, G>,
    y: &Tight<V, G>,
) -> [u8; G] {
    y.square().minus::<3>(&square_of_y(x).loose()).tighten().zero_lanes()
}

/// x³ + a·x + b, of magnitude 2.
#[inline(always)]
fn square_of_y<V: Vector, const G: usize>(x: &Tight<V, G>) -> Tight<V, G> {
    let mut factor = x.square();
    if V::Curve::A_IS_MINUS_3 {
        factor = factor.minus::<2>(&x.number(Residue::new([3, 0, 0, 0])).loose());
    }
    factor.carry().mul(x).plus(&x.number(V::Curve::B).loose()).tighten()
}

/// 3X² + aZ⁴, the slope of the tangent times 2YZ. For a = −3 that is 3·(X − Z²)·(X + Z²).
#[inline(always)]
fn slope<V: Vector, const G: usize>(x: &Tight<V, G>, z: &Factor<V, G>) -> Factor<V, G> {
    let third = if V::Curve::A_IS_MINUS_3 {
        let zz = z.square(); // 2
        let difference = x.loose().minus::<2>(&zz).carry(); // 1 + 2
        x.loose().plus(&zz).carry().mul(&difference) // 2
    } else {
        x.square()
    };
    third.twice().plus(&third).carry()
}

/// The y, odd in the lanes of `odd` and even elsewhere, that makes (x, y) a point, and the lanes in
/// which there is one: a root of x³ + 7. x is of magnitude 1, and y too.
#[inline(always)]
pub(super) fn y_of<V: Vector, const G: usize>(
    x: &Tight<V, G>,
    odd: [u8; G],
) -> (Tight<V, G>, [u8; G]) {
    let y = square_of_y(x).root().tighten(); // 1
    let on_curve = on_curve_lanes(x, &y);
    let mut flip = y.odd_lanes();
    for g in 0..G {
        flip[g] ^= odd[g];
    }
    (y.or_where(flip, &y.loose().negate::<2>().tighten()).normalise(), on_curve)
}

/// A pair of points that share their Z, which is not stored.
pub(super) struct CoZ<V, const G: usize> {
    /// 2Q, the step of the odd multiples. Magnitudes: at most 6 and 4.
    step: [Tight<V, G>; 2],
    /// The current multiple. Magnitudes: at most 4 and 3.
    pub(super) current: [Tight<V, G>; 2],
}

impl<V: Vector, const G: usize> CoZ<V, G> {
    /// 2Q and Q with the Z of 2Q, which is 2y: "DBLU" of Goundar, Joye, Miyaji, Rivain, Venelli,
    /// "Scalar Multiplication on Weierstraß Elliptic Curves from Co-Z Arithmetic" (2011).
    #[inline(always)]
    pub(super) fn start(x: &Tight<V, G>, y: &Tight<V, G>) -> Self {
        let e = slope(x, &x.one()); // 3 or 5
        let b = y.square().twice().carry(); // 2
        let s = x.mul(&b).twice().tighten(); // 2: 4xy²
        let l = b.square().twice().tighten(); // 2: 8y⁴
        let x2 = e.square().minus::<5>(&s.loose().twice()).settle().tighten(); // 1 + 5, or 1
        let t = s.loose().minus::<7>(&x2.loose()).carry(); // 2 + 7
        let y2 = e.mul(&t).minus::<3>(&l.loose()).settle().tighten(); // 1 + 3, or 1
        Self { step: [x2, y2], current: [s, l] }
    }

    /// current += 2Q, and 2Q again with the new Z, which is the old one times the returned factor:
    /// "ZADDU" of the same paper (Meloni's addition), 5 multiplications and 2 squarings.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Factor<V, G> {
        self.step[0].any_vector().apart(Advance(self))
    }

    #[inline(always)]
    fn advance_in_place(&mut self) -> Factor<V, G> {
        let ([x1, y1], [x2, y2]) = (&self.step, &self.current);
        let h = x1.loose().minus::<5>(&x2.loose()).carry(); // 6 + 5
        let r = y1.loose().minus::<4>(&y2.loose()).carry(); // 4 + 4
        let c = h.square().carry(); // 1
        let w1 = x1.mul(&c).tighten(); // 1
        let w2 = x2.mul(&c); // 1
        let w = w1.loose().minus::<2>(&w2).carry(); // 1 + 2
        let x = r.square().minus::<3>(&w1.loose().plus(&w2)).settle().tighten(); // 1 + 3, or 1
        let a = y1.mul(&w).tighten(); // 1
        let t = w1.loose().minus::<5>(&x.loose()).carry(); // 1 + 5
        let y = r.mul(&t).minus::<2>(&a.loose()).settle().tighten(); // 1 + 2, or 1
        self.step = [w1, a];
        self.current = [x, y];
        h
    }
}

/// A doubling.
struct Double<'a, V, const G: usize>(&'a mut Jacobian<V, G>);

impl<V: Vector, const G: usize> Work for Double<'_, V, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.double_in_place();
    }
}

/// An addition.
struct Add<'a, V, const G: usize>(&'a mut Jacobian<V, G>, &'a Affine<V, G>);

impl<V: Vector, const G: usize> Work for Add<'_, V, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(sum, other) = self;
        sum.add_in_place(other);
    }
}

/// An addition of a point with a Z.
struct AddJacobian<'a, V, const G: usize>(&'a mut Jacobian<V, G>, &'a Jacobian<V, G>);

impl<V: Vector, const G: usize> Work for AddJacobian<'_, V, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(sum, other) = self;
        sum.add_jacobian_in_place(other);
    }
}

/// A co-Z addition.
struct Advance<'a, V, const G: usize>(&'a mut CoZ<V, G>);

impl<V: Vector, const G: usize> Work for Advance<'_, V, G> {
    type Output = Factor<V, G>;

    #[inline(always)]
    fn run(self) -> Factor<V, G> {
        self.0.advance_in_place()
    }
}
