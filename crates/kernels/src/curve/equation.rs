//! From a signature, ECDSA or BIP-340, to the equation that makes it valid.
//!
//! ```text
//! ECDSA (SEC 1 §4.1.4)   u1 = z/s, u2 = r/s (mod n), 1 ≤ r, s < n
//!                        valid if x(u1·G + u2·Q) ≡ r (mod n)
//! BIP-340                R = s·G − e·P, P the point with the key's x and even y, r < p, s < n
//!                        valid if R is not at infinity, x(R) = r and y(R) is even
//! ```

use super::coordinates::Coordinates;
use super::modular::{Field, Scalar, Words};
use super::scalar::Digits;
use super::{BATCH, Backend, EcdsaItem, Key, SchnorrItem, Verdict};

/// The equation u1·G + u2·Q = (target, …) of one signature.
pub(super) struct Equation<'a> {
    /// The index of the verdict.
    pub(super) index: usize,
    pub(super) key: Key<'a>,
    /// Of a key that is not cached.
    pub(super) coordinates: Coordinates,
    /// The digits of u1 and u2.
    pub(super) digits: Digits,
    /// The signature's r, below p or n.
    pub(super) target: Words,
}

/// The comparison of the sum with the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// ECDSA: x mod n is r.
    XModuloOrder,
    /// BIP-340: x is r, and y is even.
    XWithEvenY,
}

impl<'a> Equation<'a> {
    /// The equation of u1·G + u2·Q, unless the key is malformed.
    pub(super) fn new(
        index: usize,
        key: Key<'a>,
        [u1, u2]: [Scalar; 2],
        target: Words,
    ) -> Option<Self> {
        let coordinates = match key {
            Key::Cached(_) => Coordinates::NONE,
            _ => key.parse()?,
        };
        Some(Self { index, key, coordinates, digits: Digits::of(u1, u2), target })
    }
}

/// Verifies the items, a batch at a time: one inversion serves all s of a batch.
pub(super) fn verify_ecdsa(backend: Backend, items: &[EcdsaItem<'_>], verdicts: &mut [Verdict]) {
    verdicts.fill(Verdict::Invalid);
    for (items, verdicts) in items.chunks(BATCH).zip(verdicts.chunks_mut(BATCH)) {
        backend.check(&ecdsa_equations(items), Rule::XModuloOrder, verdicts);
    }
}

/// The equations of the items that are well formed.
fn ecdsa_equations<'a>(items: &[EcdsaItem<'a>]) -> Vec<Equation<'a>> {
    let parsed: Vec<EcdsaNumbers> =
        items.iter().enumerate().filter_map(EcdsaNumbers::parse).collect();
    let mut inverses: Vec<Scalar> = parsed.iter().map(|parsed| parsed.s).collect();
    Scalar::invert_all(&mut inverses);
    let equation = |(parsed, inverse): (&EcdsaNumbers, Scalar)| {
        let item = &items[parsed.index];
        let z = Scalar::from_bytes_reduced(item.digest);
        let multipliers = [z.times(inverse), parsed.r.times(inverse)];
        Equation::new(parsed.index, item.key, multipliers, parsed.r.words())
    };
    parsed.iter().zip(inverses).filter_map(equation).collect()
}

/// The numbers of an ECDSA signature, both in 1..n.
struct EcdsaNumbers {
    index: usize,
    r: Scalar,
    s: Scalar,
}

impl EcdsaNumbers {
    fn parse((index, item): (usize, &EcdsaItem<'_>)) -> Option<Self> {
        let (r, s) = halves(item.signature);
        let (r, s) = (Scalar::from_bytes(r)?, Scalar::from_bytes(s)?);
        (!r.is_zero() && !s.is_zero()).then_some(Self { index, r, s })
    }
}

/// Verifies the items, a batch at a time: one inversion serves all R of a batch.
pub(super) fn verify_schnorr(
    backend: Backend,
    items: &[SchnorrItem<'_>],
    verdicts: &mut [Verdict],
) {
    verdicts.fill(Verdict::Invalid);
    for (items, verdicts) in items.chunks(BATCH).zip(verdicts.chunks_mut(BATCH)) {
        let equations: Vec<_> = items.iter().enumerate().filter_map(schnorr_equation).collect();
        backend.check(&equations, Rule::XWithEvenY, verdicts);
    }
}

fn schnorr_equation<'a>((index, item): (usize, &SchnorrItem<'a>)) -> Option<Equation<'a>> {
    let (r, s) = halves(item.signature);
    let (r, s) = (Field::from_bytes(r)?, Scalar::from_bytes(s)?);
    let e = Scalar::from_bytes_reduced(item.challenge);
    // Only x is used: a key given with its odd y stands for the point's opposite.
    let (key, is_opposite) = match item.key {
        Key::Compressed([2 | 3, x @ ..]) => (Key::XOnly(x), false),
        Key::Point { y, .. } => (item.key, y[31] & 1 == 1),
        Key::Cached(table) => (item.key, table.is_odd()),
        Key::Compressed(_) | Key::XOnly(_) => (item.key, false),
    };
    let u2 = if is_opposite { e } else { e.negate() };
    Equation::new(index, key, [s, u2], r.words())
}

/// The two numbers of a signature.
fn halves(signature: &[u8; 64]) -> (&[u8; 32], &[u8; 32]) {
    let (halves, _) = signature.as_chunks::<32>();
    (&halves[0], &halves[1])
}
