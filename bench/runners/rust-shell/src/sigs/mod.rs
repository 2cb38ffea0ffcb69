//! The task `sigs`: a unit is a signed commit of a repository.

mod corpus;
#[cfg(feature = "experiments")]
pub mod experiments;
mod work;

pub use corpus::{Curve, PublicKey};

use crate::{Refusal, Task, Variant};

/// A stack of libraries that can verify signed commits.
pub trait Peer: 'static {
    /// A public key as the libraries hold it.
    type Key;

    /// Made by [`variants`].
    const VARIANTS: &'static [Variant];

    /// Parses a compressed point.
    ///
    /// # Errors
    ///
    /// When there is no such point.
    fn parse_key(key: &PublicKey) -> Result<Self::Key, Refusal>;

    /// Whether `signature`, 64 bytes `r‖s`, is `key`'s over the SHA-256 of `message`.
    ///
    /// # Errors
    ///
    /// When it cannot be a signature.
    fn verify(message: &[u8], signature: &[u8; 64], key: &Self::Key) -> Result<bool, Refusal>;

    /// Decodes a commit and says whether its signature is that of `key`.
    ///
    /// # Errors
    ///
    /// When the commit or the key cannot be read.
    fn verify_commit(commit: &[u8], key: &PublicKey) -> Result<bool, Refusal>;
}

/// The variants, for a peer whose measured path makes these checks where it has to decode, and those
/// where it does not.
pub const fn variants(full: Checks, decoded: Checks) -> [Variant; 3] {
    [
        Variant { name: "full", checks: full },
        Variant { name: "crypto", checks: decoded },
        Variant { name: "preparsed", checks: decoded },
    ]
}

type Checks = &'static [&'static str];

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "sigs", variants: P::VARIANTS, load: work::load::<P> }
}
