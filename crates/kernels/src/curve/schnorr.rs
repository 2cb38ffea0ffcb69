//! From a BIP-340 signature to the equation that makes it valid.
//!
//! ```text
//! R = s·G − e·P, P the point with the key's x and even y, r < p, s < n
//! valid if R is not at infinity, x(R) = r and y(R) is even
//! ```

use super::equation::{Equation, Rule, halves};
use super::modular::{Field, Scalar};
use super::secp256k1::Secp256k1;
use super::{BATCH, Backend, Key, Verdict};

/// A BIP-340 signature to verify.
#[derive(Clone, Copy, Debug)]
pub struct SchnorrItem<'a> {
    /// The tagged hash of r, key and message: the e of BIP-340, not yet reduced.
    pub challenge: &'a [u8; 32],
    /// r and s, big-endian.
    pub signature: &'a [u8; 64],
    /// The signer's key. Only the x of other forms than [`Key::XOnly`] is used.
    pub key: Key<'a, Secp256k1>,
}

/// Writes the verdict on every BIP-340 signature to `verdicts` at the same index. The note on small
/// batches at [`verify_ecdsa_many`](super::verify_ecdsa_many) applies.
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_schnorr_many(items: &[SchnorrItem<'_>], verdicts: &mut [Verdict]) {
    Backend::for_keys(items.iter().map(|item| item.key)).verify_schnorr(items, verdicts);
}

impl Backend {
    /// Writes the verdict on every BIP-340 signature to `verdicts` at the same index.
    ///
    /// # Panics
    /// If the two slices differ in length, or the back end is not available on this machine.
    pub fn verify_schnorr(self, items: &[SchnorrItem<'_>], verdicts: &mut [Verdict]) {
        self.assert_fit(items.len(), verdicts.len());
        verdicts.fill(Verdict::Invalid);
        for (items, verdicts) in items.chunks(BATCH).zip(verdicts.chunks_mut(BATCH)) {
            let equations: Vec<_> = items.iter().enumerate().filter_map(equation).collect();
            self.check(&equations, Rule::XWithEvenY, verdicts);
        }
    }
}

fn equation<'a>((index, item): (usize, &SchnorrItem<'a>)) -> Option<Equation<'a, Secp256k1>> {
    let (r, s) = halves(item.signature);
    let (r, s) = (Field::<Secp256k1>::from_bytes(r)?, Scalar::<Secp256k1>::from_bytes(s)?);
    let e = Scalar::<Secp256k1>::from_bytes_reduced(item.challenge);
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
