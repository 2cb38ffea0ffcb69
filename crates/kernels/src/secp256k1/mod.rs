//! Verification of many secp256k1 signatures, ECDSA and BIP-340, eight to a vector.
//!
//! Every signature asks whether u1·G + u2·Q is a certain point. Lanes of a vector that take the same
//! steps on different signatures need no communication, so a batch of n costs a fraction of n
//! verifications:
//!
//! ```text
//! per batch      parse r and s; 1/s of all with one inversion        ecdsa.rs, schnorr.rs, modular.rs
//!                u1, u2 → four multipliers of half length → digits   scalar.rs
//! per 16 lanes   y of each key; its odd multiples with one Z         lanes/table.rs
//!                the ladder: 125 doublings, 51 additions of the      lanes/ladder.rs, lanes/point.rs
//!                key's multiples and 20 of the generator's           generator.rs
//!                compare with r                                      lanes/mod.rs
//! ```
//!
//! The fixed steps have one gap: an addition of a point to itself, to its opposite or to infinity.
//! A signature that meets one (nobody does by accident, anybody can on purpose) comes back
//! [`Verdict::Undecided`], and the caller asks a library. Everything here is public data from
//! strangers: nothing is constant-time, nothing panics on any bytes.
//!
//! ```
//! use wireproof_kernels::secp256k1::{EcdsaItem, Key, Verdict, verify_ecdsa_many};
//!
//! let item = EcdsaItem { digest: &[7; 32], signature: &[1; 64], key: Key::Compressed(&[2; 33]) };
//! let mut verdicts = [Verdict::Undecided; 3];
//! verify_ecdsa_many(&[item; 3], &mut verdicts);
//! assert_eq!(verdicts, [Verdict::Invalid; 3]);
//! ```

mod ecdsa;
mod equation;
mod generator;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod modular;
mod portable;
mod scalar;
mod schnorr;
mod table;
#[cfg(test)]
mod tests;

pub use table::KeyTable;

use equation::{Equation, Rule};
use modular::Field;

/// What the kernel can say of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The signature is the key's.
    Valid,
    /// It is not, or signature or key are malformed.
    Invalid,
    /// An exceptional addition was met; a complete implementation has to decide.
    Undecided,
}

/// A public key, in one of the forms that a caller has it in.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a> {
    /// SEC 1 compressed: 2 or 3 for the parity of y, then x.
    Compressed(&'a [u8; 33]),
    /// BIP-340: x, standing for the point with even y.
    XOnly(&'a [u8; 32]),
    /// Checked before, and kept with its multiples.
    Cached(&'a KeyTable),
}

impl Key<'_> {
    /// The x of a key in bytes, and whether its y is odd; `None` if the bytes are no key at first
    /// sight. (There may still be no point with this x.) A cached key has nothing left to parse.
    fn parse(self) -> Option<(Field, bool)> {
        match self {
            Key::Compressed([prefix @ (2 | 3), x @ ..]) => {
                Some((Field::from_bytes(x)?, *prefix == 3))
            }
            Key::XOnly(x) => Some((Field::from_bytes(x)?, false)),
            Key::Compressed(_) | Key::Cached(_) => None,
        }
    }

    /// A copy of the table of a cached key.
    fn cached(self) -> Option<KeyTable> {
        match self {
            Key::Cached(table) => Some(table.clone()),
            Key::Compressed(_) | Key::XOnly(_) => None,
        }
    }
}

/// An ECDSA signature to be verified.
#[derive(Clone, Copy, Debug)]
pub struct EcdsaItem<'a> {
    /// The hash of the message; any 32 bytes, taken modulo the group order.
    pub digest: &'a [u8; 32],
    /// r and s, big-endian, each from 1 to n − 1. A high s is accepted here: see
    /// [`has_low_s`].
    pub signature: &'a [u8; 64],
    /// The signer's key.
    pub key: Key<'a>,
}

/// A BIP-340 signature to be verified.
#[derive(Clone, Copy, Debug)]
pub struct SchnorrItem<'a> {
    /// The tagged hash of r, key and message: the e of BIP-340, not yet reduced.
    pub challenge: &'a [u8; 32],
    /// r and s, big-endian.
    pub signature: &'a [u8; 64],
    /// The signer's key. Of keys in other forms than [`Key::XOnly`] only the x counts.
    pub key: Key<'a>,
}

/// Whether the lanes run on this machine. Where they do not, verification is still right, but an
/// optimised library is faster than the portable form.
pub fn is_available() -> bool {
    Backend::Ifma.is_available()
}

/// Writes the verdict on each ECDSA signature to the place of the same index.
///
/// One signature takes as long as eight, and longer than a library takes for it; two are faster
/// together. The first call makes the generator's tables (half a megabyte, three milliseconds).
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_ecdsa_many(items: &[EcdsaItem<'_>], verdicts: &mut [Verdict]) {
    Backend::best().verify_ecdsa(items, verdicts);
}

/// Writes the verdict on each BIP-340 signature to the place of the same index. What
/// [`verify_ecdsa_many`] says of small batches holds here too.
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_schnorr_many(items: &[SchnorrItem<'_>], verdicts: &mut [Verdict]) {
    Backend::best().verify_schnorr(items, verdicts);
}

/// Whether s ≤ n/2, which strict protocols ask of an ECDSA signature beside its being valid.
pub fn has_low_s(signature: &[u8; 64]) -> bool {
    let (_, s) = ecdsa::halves(signature);
    *s <= HALF_ORDER
}

/// A way to verify. All of them give the same answer; [`Backend::Portable`] defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Plain Rust, one signature at a time.
    Portable,
    /// AVX-512 IFMA, sixteen signatures at a time.
    Ifma,
}

impl Backend {
    /// Every back end, the portable one first.
    pub const ALL: [Self; 2] = [Self::Portable, Self::Ifma];

    /// The name that benchmark rows carry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Ifma => "avx512-ifma",
        }
    }

    /// Whether this machine has the instructions. Costs an atomic load or two.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Ifma => lanes::is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Ifma => false,
        }
    }

    /// The fastest back end here.
    pub fn best() -> Self {
        if Self::Ifma.is_available() { Self::Ifma } else { Self::Portable }
    }

    /// Writes the verdict on each ECDSA signature to the place of the same index.
    ///
    /// # Panics
    /// If the two slices differ in length, or the back end is not available on this machine.
    pub fn verify_ecdsa(self, items: &[EcdsaItem<'_>], verdicts: &mut [Verdict]) {
        self.assert_fit(items.len(), verdicts.len());
        ecdsa::verify_many(self, items, verdicts);
    }

    /// Writes the verdict on each BIP-340 signature to the place of the same index.
    ///
    /// # Panics
    /// If the two slices differ in length, or the back end is not available on this machine.
    pub fn verify_schnorr(self, items: &[SchnorrItem<'_>], verdicts: &mut [Verdict]) {
        self.assert_fit(items.len(), verdicts.len());
        schnorr::verify_many(self, items, verdicts);
    }

    fn assert_fit(self, items: usize, verdicts: usize) {
        assert_eq!(items, verdicts, "one place for each verdict");
        assert!(self.is_available(), "{} is not available on this machine", self.name());
    }

    /// Writes the verdict on each equation to the place that its index names.
    fn check(self, equations: &[Equation<'_>], rule: Rule, verdicts: &mut [Verdict]) {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Ifma {
            return lanes::check_many(equations, rule, verdicts);
        }
        for equation in equations {
            verdicts[equation.index] = portable::check(equation, rule);
        }
    }
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds { Self::Valid } else { Self::Invalid }
    }
}

/// How many signatures share an inversion. The inversion modulo n costs 7 µs: 27 ns for each.
const BATCH: usize = 256;

/// ⌊n/2⌋, big-endian.
const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x5d, 0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
];
