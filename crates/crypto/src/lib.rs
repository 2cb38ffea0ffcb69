//! Keys and signatures: K-256 and P-256 as the AT Protocol uses them, BIP-340 as Nostr does; one and
//! many at a time.
//!
//! | item | question it answers |
//! |---|---|
//! | [`PublicKey`] | is this text or these bytes a key, and is this signature the key's? |
//! | [`CompressedKey`] | which key does this text spell, before anyone asks whether it is a point? |
//! | [`SecretKey`] | what is the signature of this message? |
//! | [`verify_many`] | which of these many signatures are their keys'? |
//! | [`KeyCache`] | what is worth keeping of keys that come again? |
//! | [`schnorr`] | the same questions of BIP-340 |
//!
//! Verification is strict unless its name says otherwise: 64 bytes `r‖s`, both from 1 to n − 1, s at
//! most n/2 on either curve. A refusal is a [`SignatureFault`] that names the rule. Which library
//! computes what is this crate's own affair: no type of another crate shows.
//!
//! Nothing here draws random bytes. The nonce of a signature is that of RFC 6979, secret keys are
//! made of bytes that the caller brings, and so is the auxiliary randomness of BIP-340.
//!
//! ```
//! use wireproof_crypto::{Curve, PublicKey, SecretKey, SignatureFault};
//!
//! let secret = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
//! let signature = secret.sign(b"hello");
//!
//! let key = PublicKey::from_did_key(&secret.public_key().to_did_key())?;
//! assert_eq!(key.verify(b"hello", &signature), Ok(()));
//! assert_eq!(key.verify(b"goodbye", &signature), Err(SignatureFault::Mismatch));
//! # Ok::<(), wireproof_crypto::KeyError>(())
//! ```

#![forbid(unsafe_code)]

mod aws_lc;
mod base58;
mod cache;
mod compressed;
mod curve;
mod error;
mod lanes;
mod libsecp256k1;
mod many;
mod public_key;
pub mod schnorr;
mod secret_key;
mod seeded;
mod signature;
#[cfg(test)]
mod tests;

pub use cache::{CacheStats, KeyCache};
pub use compressed::CompressedKey;
pub use curve::Curve;
pub use error::{KeyError, SignatureFault};
pub use kernels::sha256::Digest;
pub use many::{
    KeyRef, SignatureCheck, SignatureVerdict, SignedData, verify_many, verify_many_cached,
    verify_many_into,
};
pub use public_key::PublicKey;
pub use secret_key::SecretKey;
pub use seeded::SeededState;
