//! Verification of many secp256k1 signatures, ECDSA and BIP-340, in vector lanes.
//!
//! A signature that leads to an exceptional addition (never by accident, easily on purpose) gets
//! [`Verdict::Undecided`], and the caller uses a library. All input is public and untrusted: nothing is
//! constant-time, and no input panics.
//!
//! ```
//! use wireproof::kernels::secp256k1::{EcdsaItem, Key, Verdict, verify_ecdsa_many};
//!
//! let item = EcdsaItem { digest: &[7; 32], signature: &[1; 64], key: Key::Compressed(&[2; 33]) };
//! let mut verdicts = [Verdict::Undecided; 3];
//! verify_ecdsa_many(&[item; 3], &mut verdicts);
//! assert_eq!(verdicts, [Verdict::Invalid; 3]);
//! ```

pub use crate::curve::{
    Backend, SchnorrItem, TableSize, Verdict, verify_ecdsa_many, verify_schnorr_many,
};

use crate::curve::{self, Secp256k1};

/// A public key in one of four forms.
pub type Key<'a> = curve::Key<'a, Secp256k1>;

/// A checked public key with the multiples that a verification needs.
pub type KeyTable = curve::KeyTable<Secp256k1>;

/// An ECDSA signature to verify.
pub type EcdsaItem<'a> = curve::EcdsaItem<'a, Secp256k1>;
