//! Secret keys and signing, by libraries whose arithmetic is constant-time.

use std::fmt;

use kernels::sha256::{self, Digest};

use crate::compressed::{CompressedKey, KeyError};
use crate::curve::Curve;
use crate::libraries::{P256Secret, on_k256};
use crate::public_key::PublicKey;

/// A secret key on K-256 or P-256.
///
/// Signing is deterministic: the nonce follows RFC 6979, and s is low.
#[derive(Clone)]
pub struct SecretKey(Secret);

#[derive(Clone)]
enum Secret {
    K256(on_k256::Secret),
    P256(Box<P256Secret>),
}

impl SecretKey {
    /// The key of these bytes, big-endian. 32 random bytes are a key except in one of 2³² (P-256) or
    /// 2¹²⁷ (K-256) draws.
    ///
    /// # Errors
    /// If the number is zero or not below the order of the curve.
    pub fn from_bytes(curve: Curve, bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let secret = match curve {
            Curve::K256 => on_k256::Secret::from_bytes(bytes).map(Secret::K256),
            Curve::P256 => P256Secret::from_bytes(bytes).map(Box::new).map(Secret::P256),
        };
        secret.map(Self).ok_or(KeyError::SecretRange)
    }

    /// The curve.
    pub fn curve(&self) -> Curve {
        match self.0 {
            Secret::K256(_) => Curve::K256,
            Secret::P256(_) => Curve::P256,
        }
    }

    /// The public key.
    pub fn public_key(&self) -> PublicKey {
        match &self.0 {
            Secret::K256(secret) => PublicKey::of_k256(secret.point()),
            Secret::P256(secret) => CompressedKey::from_bytes(Curve::P256, &secret.to_compressed())
                .and_then(PublicKey::try_from)
                .expect("the point of a secret key is on the curve"),
        }
    }

    /// Signs the SHA-256 of `message`: r and s, 32 bytes each, big-endian.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.sign_digest(&sha256::digest(message))
    }

    /// Like [`sign`](Self::sign), for a message whose SHA-256 is known.
    pub fn sign_digest(&self, digest: &Digest) -> [u8; 64] {
        match &self.0 {
            Secret::K256(secret) => secret.sign(digest),
            Secret::P256(secret) => secret.sign(digest),
        }
    }
}

impl fmt::Debug for SecretKey {
    /// Shows the public key only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public_key())
    }
}
