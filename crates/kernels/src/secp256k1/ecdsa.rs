//! ECDSA (SEC 1 §4.1.4): from digest, signature and key to an [`Equation`].
//!
//! ```text
//! u1 = z/s, u2 = r/s (mod n)        valid if 1 ≤ r, s < n and x(u1·G + u2·Q) ≡ r (mod n)
//! ```

use super::equation::{Equation, Rule};
use super::modular::Scalar;
use super::{BATCH, Backend, EcdsaItem, Verdict};

/// Judges the items, a batch at a time: one inversion serves all s of a batch.
pub(super) fn verify_many(backend: Backend, items: &[EcdsaItem<'_>], verdicts: &mut [Verdict]) {
    verdicts.fill(Verdict::Invalid);
    for (items, verdicts) in items.chunks(BATCH).zip(verdicts.chunks_mut(BATCH)) {
        backend.check(&equations(items), Rule::XModuloOrder, verdicts);
    }
}

/// The equations of the items that are well formed.
fn equations<'a>(items: &[EcdsaItem<'a>]) -> Vec<Equation<'a>> {
    let parsed: Vec<Parsed> = items.iter().enumerate().filter_map(Parsed::new).collect();
    let mut inverses: Vec<Scalar> = parsed.iter().map(|parsed| parsed.s).collect();
    Scalar::invert_all(&mut inverses);
    let equation = |(parsed, inverse): (&Parsed, Scalar)| {
        let item = &items[parsed.index];
        let z = Scalar::from_bytes_reduced(item.digest);
        let multipliers = [z.times(inverse), parsed.r.times(inverse)];
        Equation::new(parsed.index, item.key, multipliers, parsed.r.words())
    };
    parsed.iter().zip(inverses).filter_map(equation).collect()
}

/// The numbers of a signature, both in 1..n.
struct Parsed {
    index: usize,
    r: Scalar,
    s: Scalar,
}

impl Parsed {
    fn new((index, item): (usize, &EcdsaItem<'_>)) -> Option<Self> {
        let (r, s) = halves(item.signature);
        let (r, s) = (Scalar::from_bytes(r)?, Scalar::from_bytes(s)?);
        (!r.is_zero() && !s.is_zero()).then_some(Self { index, r, s })
    }
}

/// The two numbers of a signature.
pub(super) fn halves(signature: &[u8; 64]) -> (&[u8; 32], &[u8; 32]) {
    let (halves, _) = signature.as_chunks::<32>();
    (&halves[0], &halves[1])
}
