//! Keys and signatures of the AT Protocol (ECDSA on K-256 and P-256) and of Nostr (BIP-340), one at a
//! time and in batches.
//!
//! | item | purpose |
//! |---|---|
//! | [`PublicKey`] | a checked key: reads and writes its text forms, verifies signatures |
//! | [`CompressedKey`] | a key's 33 bytes, read from text without computing the point |
//! | `SecretKey` | signs messages (feature `signing`) |
//! | [`verify_many`] | verifies a batch of ECDSA signatures |
//! | [`KeyCache`] | keys of earlier batches, ready for use |
//! | [`schnorr`] | the same for BIP-340 |
//!
//! Verification is strict unless its name says otherwise: 64 bytes `r‖s`, both from 1 to n − 1, s at
//! most n/2 on either curve. A rejected signature comes with the [`SignatureFault`] that names the rule.
//!
//! # Features
//!
//! | feature | effect |
//! |---|---|
//! | `secp256k1` (default) | K-256 and BIP-340 by libsecp256k1, a C library |
//! | `aws-lc` (default) | P-256 verification by AWS-LC, a C and assembly library |
//! | `pure-rust` | the crates `k256` and `p256` for curves without an enabled C library |
//! | `signing` | secret keys; P-256 is signed by `p256` in every configuration |
//!
//! A feature never changes a verdict. No type of another crate is part of this interface.
//!
//! Nothing here draws random bytes. The nonce of a signature follows RFC 6979; the caller supplies the
//! bytes of secret keys and the auxiliary randomness of BIP-340.
//!
//! ```
//! use wireproof::crypto::{Curve, PublicKey, SecretKey, SignatureFault};
//!
//! let secret = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
//! let signature = secret.sign(b"hello");
//!
//! let key = PublicKey::from_did_key(&secret.public_key().to_did_key())?;
//! assert_eq!(key.verify(b"hello", &signature), Ok(()));
//! assert_eq!(key.verify(b"goodbye", &signature), Err(SignatureFault::Mismatch));
//! # Ok::<(), wireproof::crypto::KeyError>(())
//! ```

#![forbid(unsafe_code)]

mod base58;
mod batch;
mod cache;
mod compressed;
mod curve;
mod lanes;
mod libraries;
mod public_key;
pub mod schnorr;
#[cfg(feature = "signing")]
mod secret_key;
mod signature;
#[cfg(test)]
mod tests;

pub use batch::{
    KeyRef, SignatureCheck, SignedData, verify_many, verify_many_cached, verify_many_into,
};
pub use cache::{CacheStats, KeyCache, SeededState};
pub use compressed::{CompressedKey, KeyError};
pub use curve::Curve;
pub use kernels::sha256::Digest;
pub use public_key::PublicKey;
#[cfg(feature = "signing")]
pub use secret_key::SecretKey;
pub use signature::{SignatureFault, SignatureVerdict};

/// Errors can be boxed, sent to other threads, and kept.
#[cfg(test)]
const _: () = {
    const fn assert_error<E: std::error::Error + Send + Sync + 'static>() {}
    assert_error::<KeyError>();
    assert_error::<SignatureFault>();
};
