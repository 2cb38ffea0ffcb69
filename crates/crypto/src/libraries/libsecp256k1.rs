//! K-256 and BIP-340 by libsecp256k1, a C library.
//!
//! It verifies on the thread's own context and rejects a high s by itself.

use kernels::sha256::Digest;
use secp256k1::{Message, XOnlyPublicKey, ecdsa, schnorr};

/// A point of the curve, not at infinity.
#[derive(Clone, Copy)]
pub(crate) struct Point(secp256k1::PublicKey);

impl Point {
    /// The point of a compressed key. `None` if the curve has none with this x.
    pub(crate) fn from_compressed(bytes: &[u8; 33]) -> Option<Self> {
        secp256k1::PublicKey::from_byte_array_compressed(*bytes).ok().map(Self)
    }

    /// The point of an uncompressed key whose first byte was checked to be 4.
    pub(crate) fn from_uncompressed(bytes: &[u8; 65]) -> Option<Self> {
        secp256k1::PublicKey::from_byte_array_uncompressed(*bytes).ok().map(Self)
    }

    #[cfg(feature = "signing")]
    pub(crate) fn to_compressed(self) -> [u8; 33] {
        self.0.serialize()
    }

    pub(crate) fn to_uncompressed(self) -> [u8; 65] {
        self.0.serialize_uncompressed()
    }

    /// Whether a signature, whose s was checked to be low, is this key's.
    pub(crate) fn verifies(&self, digest: &Digest, signature: &[u8; 64]) -> bool {
        ecdsa::Signature::from_compact(signature)
            .is_ok_and(|signature| self.accepts(digest, &signature))
    }

    /// Whether a signature with any s is this key's.
    pub(crate) fn verifies_allowing_high_s(&self, digest: &Digest, signature: &[u8; 64]) -> bool {
        ecdsa::Signature::from_compact(signature).is_ok_and(|mut signature| {
            signature.normalize_s();
            self.accepts(digest, &signature)
        })
    }

    fn accepts(&self, digest: &Digest, signature: &ecdsa::Signature) -> bool {
        ecdsa::verify(signature, Message::from_digest(*digest), &self.0).is_ok()
    }
}

/// The x of a point, which stands for the one of its two points with even y.
#[derive(Clone, Copy)]
pub(crate) struct XOnlyPoint(XOnlyPublicKey);

impl XOnlyPoint {
    /// `None` if the curve has no point with this x.
    pub(crate) fn from_bytes(x: &[u8; 32]) -> Option<Self> {
        XOnlyPublicKey::from_byte_array(*x).ok().map(Self)
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        schnorr::verify(&schnorr::Signature::from_byte_array(*signature), message, &self.0).is_ok()
    }
}

#[cfg(feature = "signing")]
mod secret {
    use secp256k1::Keypair;

    use super::*;

    /// A secret key, wiped on drop as well as safe Rust can.
    #[derive(Clone)]
    pub(crate) struct Secret(secp256k1::SecretKey);

    impl Secret {
        /// `None` if the bytes are zero or not below the order.
        pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
            secp256k1::SecretKey::from_secret_bytes(*bytes).ok().map(Self)
        }

        pub(crate) fn point(&self) -> Point {
            Point(self.0.public_key())
        }

        /// Signs with the nonce of RFC 6979 and a low s.
        pub(crate) fn sign(&self, digest: &Digest) -> [u8; 64] {
            ecdsa::sign(Message::from_digest(*digest), &self.0).serialize_compact()
        }
    }

    impl Drop for Secret {
        fn drop(&mut self) {
            self.0.non_secure_erase();
        }
    }

    /// A secret key for BIP-340 with its public key, wiped like [`Secret`].
    #[derive(Clone)]
    pub(crate) struct SchnorrSecret(Keypair);

    impl SchnorrSecret {
        /// `None` if the bytes are zero or not below the order.
        pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
            Keypair::from_secret_bytes(*bytes).ok().map(Self)
        }

        pub(crate) fn x_only(&self) -> [u8; 32] {
            self.0.x_only_public_key().0.to_byte_array()
        }

        pub(crate) fn sign(&self, message: &[u8], aux: &[u8; 32]) -> [u8; 64] {
            schnorr::sign_with_aux_rand(message, &self.0, aux).to_byte_array()
        }
    }

    impl Drop for SchnorrSecret {
        fn drop(&mut self) {
            self.0.non_secure_erase();
        }
    }
}

#[cfg(feature = "signing")]
pub(crate) use secret::{SchnorrSecret, Secret};
