//! BIP-340: from signature, challenge and key to an [`Equation`].
//!
//! ```text
//! R = s·G − e·P, P the point with the key's x and even y
//! valid if r < p, s < n, R is not at infinity, x(R) = r and y(R) is even
//! ```

use super::ecdsa::halves;
use super::equation::{Equation, Rule};
use super::modular::{Field, Scalar};
use super::{BATCH, Backend, Key, SchnorrItem, Verdict};

/// Judges the items, a batch at a time: one inversion serves all R of a batch.
pub(super) fn verify_many(backend: Backend, items: &[SchnorrItem<'_>], verdicts: &mut [Verdict]) {
    verdicts.fill(Verdict::Invalid);
    for (items, verdicts) in items.chunks(BATCH).zip(verdicts.chunks_mut(BATCH)) {
        let equations: Vec<_> = items.iter().enumerate().filter_map(equation).collect();
        backend.check(&equations, Rule::XWithEvenY, verdicts);
    }
}

fn equation<'a>((index, item): (usize, &SchnorrItem<'a>)) -> Option<Equation<'a>> {
    let (r, s) = halves(item.signature);
    let (r, s) = (Field::from_bytes(r)?, Scalar::from_bytes(s)?);
    let e = Scalar::from_bytes_reduced(item.challenge);
    // Only x counts: a key given with its odd y stands for the point's opposite.
    let (key, is_opposite) = match item.key {
        Key::Compressed([2 | 3, x @ ..]) => (Key::XOnly(x), false),
        Key::Cached(table) => (item.key, table.is_odd()),
        Key::Compressed(_) | Key::XOnly(_) => (item.key, false),
    };
    let u2 = if is_opposite { e } else { e.negate() };
    Equation::new(index, key, [s, u2], r.words())
}
