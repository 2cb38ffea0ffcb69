//! K-256 and BIP-340 by RustCrypto's `k256`, which is Rust throughout.

use ::k256::ecdsa::signature::hazmat::PrehashVerifier;
use ::k256::ecdsa::{Signature, VerifyingKey};
use ::k256::schnorr;
use kernels::sha256::Digest;

/// A point of the curve, not at infinity.
#[derive(Clone, Copy)]
pub(crate) struct Point(VerifyingKey);

impl Point {
    /// The point of a compressed key. `None` if the curve has none with this x.
    pub(crate) fn from_compressed(bytes: &[u8; 33]) -> Option<Self> {
        VerifyingKey::from_sec1_bytes(bytes).ok().map(Self)
    }

    /// The point of an uncompressed key whose first byte was checked to be 4.
    pub(crate) fn from_uncompressed(bytes: &[u8; 65]) -> Option<Self> {
        VerifyingKey::from_sec1_bytes(bytes).ok().map(Self)
    }

    #[cfg(any(feature = "signing", test))]
    pub(crate) fn to_compressed(self) -> [u8; 33] {
        let point = self.0.to_sec1_point(true);
        point.as_bytes().try_into().expect("a compressed point")
    }

    pub(crate) fn to_uncompressed(self) -> [u8; 65] {
        let point = self.0.to_sec1_point(false);
        point.as_bytes().try_into().expect("an uncompressed point")
    }

    /// Whether a signature, whose s was checked to be low, is this key's.
    pub(crate) fn verifies(&self, digest: &Digest, signature: &[u8; 64]) -> bool {
        self.verifies_allowing_high_s(digest, signature)
    }

    /// Whether a signature with any s is this key's.
    pub(crate) fn verifies_allowing_high_s(&self, digest: &Digest, signature: &[u8; 64]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.0.verify_prehash(digest, &signature.normalize_s()).is_ok())
    }
}

/// The x of a point, which stands for the one of its two points with even y.
#[derive(Clone, Copy)]
pub(crate) struct XOnlyPoint(schnorr::VerifyingKey);

impl XOnlyPoint {
    /// `None` if the curve has no point with this x.
    pub(crate) fn from_bytes(x: &[u8; 32]) -> Option<Self> {
        schnorr::VerifyingKey::from_slice(x).ok().map(Self)
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        schnorr::Signature::try_from(signature.as_slice())
            .is_ok_and(|signature| self.0.verify_raw(message, &signature).is_ok())
    }
}

#[cfg(any(feature = "signing", test))]
mod secret {
    use ::k256::ecdsa::SigningKey;
    use ::k256::ecdsa::signature::hazmat::PrehashSigner;

    use super::*;

    /// A secret key. `k256` wipes it on drop.
    #[derive(Clone)]
    pub(crate) struct Secret(SigningKey);

    impl Secret {
        /// `None` if the bytes are zero or not below the order.
        pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
            SigningKey::from_slice(bytes).ok().map(Self)
        }

        pub(crate) fn point(&self) -> Point {
            Point(*self.0.verifying_key())
        }

        /// Signs with the nonce of RFC 6979 and a low s.
        pub(crate) fn sign(&self, digest: &Digest) -> [u8; 64] {
            let signature: Signature = self.0.sign_prehash(digest).expect("a digest of 32 bytes");
            signature.normalize_s().to_bytes().into()
        }
    }

    /// A secret key for BIP-340. `k256` wipes it on drop.
    #[derive(Clone)]
    pub(crate) struct SchnorrSecret(schnorr::SigningKey);

    impl SchnorrSecret {
        /// `None` if the bytes are zero or not below the order.
        pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
            schnorr::SigningKey::from_slice(bytes).ok().map(Self)
        }

        pub(crate) fn x_only(&self) -> [u8; 32] {
            self.0.verifying_key().to_bytes().into()
        }

        pub(crate) fn sign(&self, message: &[u8], aux: &[u8; 32]) -> [u8; 64] {
            self.0.sign_raw(message, aux).expect("BIP-340 fails for no message").to_bytes()
        }
    }
}

#[cfg(any(feature = "signing", test))]
pub(crate) use secret::{SchnorrSecret, Secret};
