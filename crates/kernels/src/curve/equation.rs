//! From an ECDSA signature to the equation that makes it valid (SEC 1 §4.1.4).
//!
//! ```text
//! u1 = z/s, u2 = r/s (mod n), 1 ≤ r, s < n      valid if x(u1·G + u2·Q) ≡ r (mod n)
//! ```

use super::coordinates::Coordinates;
use super::digits::Digits;
use super::modular::{Residue, Scalar, Words};
use super::{BATCH, Backend, Curve, EcdsaItem, Key, Verdict};

/// The equation u1·G + u2·Q = (target, …) of one signature.
pub(super) struct Equation<'a, C: Curve> {
    /// The index of the verdict.
    pub(super) index: usize,
    pub(super) key: Key<'a, C>,
    /// Of a key that is not cached.
    pub(super) coordinates: Coordinates<C>,
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

impl<'a, C: Curve> Equation<'a, C> {
    /// The equation of u1·G + u2·Q, unless the key is malformed.
    pub(super) fn new(
        index: usize,
        key: Key<'a, C>,
        multipliers: [Scalar<C>; 2],
        target: Words,
    ) -> Option<Self> {
        let coordinates = match key {
            Key::Cached(_) => Coordinates::NONE,
            _ => key.parse()?,
        };
        Some(Self { index, key, coordinates, digits: Digits::of::<C>(multipliers), target })
    }
}

/// Verifies the items, a batch at a time: one inversion serves all s of a batch.
pub(super) fn verify_ecdsa<C: Curve>(
    backend: Backend,
    items: &[EcdsaItem<'_, C>],
    verdicts: &mut [Verdict],
) {
    verdicts.fill(Verdict::Invalid);
    for (items, verdicts) in items.chunks(BATCH).zip(verdicts.chunks_mut(BATCH)) {
        backend.check(&ecdsa_equations(items), Rule::XModuloOrder, verdicts);
    }
}

/// The equations of the items that are well formed.
fn ecdsa_equations<'a, C: Curve>(items: &[EcdsaItem<'a, C>]) -> Vec<Equation<'a, C>> {
    let parsed: Vec<EcdsaNumbers<C>> =
        items.iter().enumerate().filter_map(EcdsaNumbers::parse).collect();
    let mut inverses: Vec<Scalar<C>> = parsed.iter().map(|parsed| parsed.s).collect();
    Residue::invert_all(&mut inverses);
    let equation = |(parsed, inverse): (&EcdsaNumbers<C>, Scalar<C>)| {
        let item = &items[parsed.index];
        let z = Scalar::<C>::from_bytes_reduced(item.digest);
        let multipliers = [z.times(inverse), parsed.r.times(inverse)];
        Equation::new(parsed.index, item.key, multipliers, parsed.r.words())
    };
    parsed.iter().zip(inverses).filter_map(equation).collect()
}

/// The numbers of an ECDSA signature, both in 1..n.
struct EcdsaNumbers<C: Curve> {
    index: usize,
    r: Scalar<C>,
    s: Scalar<C>,
}

impl<C: Curve> EcdsaNumbers<C> {
    fn parse((index, item): (usize, &EcdsaItem<'_, C>)) -> Option<Self> {
        let (r, s) = halves(item.signature);
        let (r, s) = (Scalar::<C>::from_bytes(r)?, Scalar::<C>::from_bytes(s)?);
        (!r.is_zero() && !s.is_zero()).then_some(Self { index, r, s })
    }
}

/// The two numbers of a signature.
pub(super) fn halves(signature: &[u8; 64]) -> (&[u8; 32], &[u8; 32]) {
    let (halves, _) = signature.as_chunks::<32>();
    (&halves[0], &halves[1])
}
