//! Verification of many signatures on a curve y² = x³ + a·x + b in lanes, several to a vector.
//!
//! Verification compares u1·G + u2·Q with a point. The lanes of a vector take the same steps on
//! different signatures without communication, so a batch of n costs a fraction of n verifications:
//!
//! ```text
//! per batch        parse r and s; 1/s of all with one inversion        equation.rs, schnorr.rs, modular.rs, inverse.rs
//!                  u1, u2 → odd multipliers → digits                   digits.rs, endomorphism.rs
//!                  sums of multiples of key and generator, in rounds   plan.rs, table.rs, lanes/rounds.rs
//! per group        y of each key; its odd multiples                    coordinates.rs, lanes/table.rs
//!                  the ladder: doublings, additions of the sums        lanes/ladder.rs, lanes/point.rs
//!                  compare with r                                      lanes/verify.rs
//! ```
//!
//! `secp256k1.rs` and `p256.rs` are the curves, `lanes/secp256k1.rs` and `lanes/p256.rs` their fields in lanes.
//!
//! The fixed steps do not cover one case: the addition of a point to itself, to its opposite or to
//! infinity. A signature that leads to one (never by accident, easily on purpose) gets
//! [`Verdict::Undecided`], and the caller uses a library. All input is public and untrusted: nothing is
//! constant-time, and no input panics.

mod coordinates;
mod digits;
mod endomorphism;
mod equation;
mod inverse;
mod lanes;
mod modular;
mod p256;
mod plan;
mod portable;
mod schnorr;
mod secp256k1;
mod table;
#[cfg(test)]
mod tests;

pub use p256::P256;
pub use schnorr::{SchnorrItem, verify_schnorr_many};
pub use secp256k1::Secp256k1;
pub use table::{KeyTable, TableSize};

use std::fmt::Debug;
use std::sync::OnceLock;

use coordinates::{Coordinates, Y};
use digits::KEY_DIGITS;
use equation::{Equation, Rule};
use lanes::{InLanes, Prime};
use modular::{Field, Modulus, Scalar};
use plan::{Order, Plans};
use portable::Affine;
use table::GeneratorTables;

/// A curve y² = x³ + a·x + b with a prime number of points, over a prime field with p ≡ 3 (mod 4). Sealed.
#[expect(private_bounds, reason = "sealed: only this module can name these traits")]
pub trait Curve: Parameters + InLanes {}

/// The parameters of a curve that the arithmetic needs.
trait Parameters: Copy + Eq + Debug + 'static {
    /// The prime of the field.
    type P: Prime;

    /// The number of points.
    type N: Modulus;

    /// Whether a is −3; otherwise it is 0.
    const A_IS_MINUS_3: bool;

    /// The b of the equation.
    const B: Field<Self>;

    /// The generator G.
    const GENERATOR: Affine<Self>;

    /// The β of an endomorphism (β·x, y) = λ·(x, y), if u2 is split by one.
    const BETA: Option<Field<Self>>;

    /// The digits of u2.
    fn key_digits(u2: Scalar<Self>) -> [u16; KEY_DIGITS];

    /// Where the generator's tables are kept.
    fn generator_tables() -> &'static OnceLock<GeneratorTables>;

    /// Where the plans of its verifications are kept.
    fn plans() -> &'static OnceLock<Plans>;
}

/// The kernel's verdict on a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The signature is valid.
    Valid,
    /// The signature is invalid, or signature or key are malformed.
    Invalid,
    /// An exceptional addition occurred; a complete implementation has to decide.
    Undecided,
}

/// A public key in one of four forms.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a, C: Curve> {
    /// SEC 1 compressed: 2 or 3 for the parity of y, then x.
    Compressed(&'a [u8; 33]),
    /// BIP-340: x, standing for the point with even y.
    XOnly(&'a [u8; 32]),
    /// Both coordinates. Checked to be a point of the curve, which is less work than to compute y.
    Point {
        /// Big-endian, below p.
        x: &'a [u8; 32],
        /// Big-endian, below p.
        y: &'a [u8; 32],
    },
    /// A checked key with its multiples.
    Cached(&'a KeyTable<C>),
}

impl<C: Curve> Key<'_, C> {
    /// The coordinates of a key in bytes; `None` if the bytes are malformed. `None` for a cached key, which needs no
    /// parsing.
    fn parse(self) -> Option<Coordinates<C>> {
        let (x, y) = match self {
            Key::Compressed([2, x @ ..]) | Key::XOnly(x) => (x, Y::Even),
            Key::Compressed([3, x @ ..]) => (x, Y::Odd),
            Key::Point { x, y } => (x, Y::Given(Field::<C>::from_bytes(y)?)),
            Key::Compressed(_) | Key::Cached(_) => return None,
        };
        Some(Coordinates { x: Field::<C>::from_bytes(x)?, y })
    }

    /// A copy of the table of a cached key.
    fn cached(self) -> Option<KeyTable<C>> {
        match self {
            Key::Cached(table) => Some(table.clone()),
            _ => None,
        }
    }
}

/// An ECDSA signature to verify.
#[derive(Clone, Copy, Debug)]
pub struct EcdsaItem<'a, C: Curve> {
    /// The hash of the message; any 32 bytes, taken modulo the group order.
    pub digest: &'a [u8; 32],
    /// r and s, big-endian, both from 1 to n − 1. A high s is accepted.
    pub signature: &'a [u8; 64],
    /// The signer's key.
    pub key: Key<'a, C>,
}

/// Writes the verdict on every ECDSA signature to `verdicts` at the same index.
///
/// From [`Backend::faster_from`] signatures on this is faster than a library, and for one signature if its key has a table of
/// [`ALONE_FROM`] or larger. The first call for a curve makes its generator's tables (0.8 megabytes).
///
/// # Panics
/// If the two slices differ in length.
pub fn verify_ecdsa_many<C: Curve>(items: &[EcdsaItem<'_, C>], verdicts: &mut [Verdict]) {
    Backend::for_keys(items.iter().map(|item| item.key)).verify_ecdsa(items, verdicts);
}

/// An implementation of verification. All give the same result; [`Backend::Portable`] defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Plain Rust, one signature at a time.
    Portable,
    /// The 64-bit multiplier of any processor, one signature at a time, in the form of the lanes.
    Words,
    /// The double-precision multiplier of AVX2 and FMA, four signatures at a time.
    Fma,
    /// AVX-512 IFMA, sixteen signatures at a time.
    Ifma,
    /// The double-precision multiplier of ARMv8, four signatures at a time.
    Neon,
}

impl Backend {
    /// Every back end, the portable one first.
    pub const ALL: [Self; 5] = [Self::Portable, Self::Words, Self::Neon, Self::Fma, Self::Ifma];

    /// The name in benchmark rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Words => "words",
            Self::Fma => "avx2-fma",
            Self::Ifma => "avx512-ifma",
            Self::Neon => "neon-fma",
        }
    }

    /// Whether this machine has the instructions. Costs an atomic load or two.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Words | Self::Neon | Self::Fma | Self::Ifma => lanes::is_available(self),
        }
    }

    /// The fastest back end here for signatures under these keys. Fewer than [`faster_from`](Self::faster_from) leave
    /// lanes of doubles without work, except one that its large table spreads over all of them.
    fn for_keys<'a, C: Curve>(mut keys: impl ExactSizeIterator<Item = Key<'a, C>>) -> Self {
        let best = Self::best();
        let has_large = |key| matches!(key, Key::Cached(table) if table.size() == TableSize::Large);
        match best {
            Self::Fma if keys.len() < best.faster_from() && !keys.all(has_large) => Self::Words,
            Self::Neon if keys.len() < best.faster_from() => Self::Words,
            _ => best,
        }
    }

    /// The fastest back end here for many signatures.
    pub fn best() -> Self {
        let mut fastest_first = Self::ALL.into_iter().rev();
        fastest_first.find(|backend| backend.is_available()).unwrap_or(Self::Portable)
    }

    /// From how many signatures on, each under a key of its own, the lanes are faster than libsecp256k1 and AWS-LC; measured by the
    /// examples `signatures` and `signatures_p256`.
    pub fn faster_from(self) -> usize {
        match self {
            Self::Portable | Self::Words => usize::MAX,
            Self::Neon | Self::Fma => 3,
            Self::Ifma => 2,
        }
    }

    /// Writes the verdict on every ECDSA signature to `verdicts` at the same index.
    ///
    /// # Panics
    /// If the two slices differ in length, or the back end is not available on this machine.
    pub fn verify_ecdsa<C: Curve>(self, items: &[EcdsaItem<'_, C>], verdicts: &mut [Verdict]) {
        self.assert_fit(items.len(), verdicts.len());
        equation::verify_ecdsa(self, items, verdicts);
    }

    fn assert_fit(self, items: usize, verdicts: usize) {
        assert_eq!(items, verdicts, "one verdict for each signature");
        assert!(self.is_available(), "{} is not available on this machine", self.name());
    }

    /// Writes the verdict on every equation to `verdicts` at the equation's index.
    fn check<C: Curve>(self, equations: &[Equation<'_, C>], rule: Rule, verdicts: &mut [Verdict]) {
        if C::check_many(self, equations, rule, verdicts) {
            return;
        }
        let order = if equations.len() > 1 { Order::Rounds } else { Order::Sequence };
        for equation in equations {
            verdicts[equation.index] = portable::check(equation, rule, order);
        }
    }
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds { Self::Valid } else { Self::Invalid }
    }
}

/// The smallest table of a key with which a signature alone is verified faster than by libsecp256k1 or AWS-LC, on any back
/// end but the portable one; measured by the examples `signatures` and `signatures_p256`.
pub const ALONE_FROM: TableSize = TableSize::Medium;

/// Signatures that share an inversion modulo n.
const BATCH: usize = 256;
