//! What ECDSA and BIP-340 both come down to: does u1·G + u2·Q have the x-coordinate that the
//! signature promised?

use super::Key;
use super::modular::{Field, Scalar, Words};
use super::scalar::Digits;

/// One question to a back end.
pub(super) struct Equation<'a> {
    /// Which place the verdict goes to.
    pub(super) index: usize,
    pub(super) key: Key<'a>,
    /// Of keys that are not cached: x, which is a field element but perhaps of no point.
    pub(super) key_x: Field,
    /// Of keys that are not cached: which of the two points with this x.
    pub(super) key_is_odd: bool,
    /// The digits of u1 and u2.
    pub(super) digits: Digits,
    /// The signature's r, below p or n.
    pub(super) target: Words,
}

/// What of the sum is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// ECDSA: x mod n is r.
    XModuloOrder,
    /// BIP-340: x is r, and y is even.
    XWithEvenY,
}

impl<'a> Equation<'a> {
    /// The equation of u1·G + u2·Q, unless the key is no key at first sight.
    pub(super) fn new(
        index: usize,
        key: Key<'a>,
        [u1, u2]: [Scalar; 2],
        target: Words,
    ) -> Option<Self> {
        let (key_x, key_is_odd) = match key {
            Key::Cached(_) => (Field::ZERO, false),
            Key::Compressed(_) | Key::XOnly(_) => key.parse()?,
        };
        Some(Self { index, key, key_x, key_is_odd, digits: Digits::of(u1, u2), target })
    }
}
