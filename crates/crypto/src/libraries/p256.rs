//! P-256 by RustCrypto's `p256`, which is Rust throughout: signing in every configuration,
//! verification under `pure-rust`.

#[cfg(feature = "signing")]
pub(crate) use signing::Secret;
#[cfg(any(all(feature = "pure-rust", not(feature = "aws-lc")), test))]
pub(crate) use verifying::Point;

#[cfg(any(all(feature = "pure-rust", not(feature = "aws-lc")), test))]
mod verifying {
    use ::p256::ecdsa::signature::hazmat::PrehashVerifier;
    use ::p256::ecdsa::{Signature, VerifyingKey};
    use kernels::sha256::Digest;

    /// A point of the curve, not at infinity.
    #[derive(Clone)]
    pub(crate) struct Point(VerifyingKey);

    impl Point {
        /// The point of a SEC 1 form whose length and first byte were checked to belong together.
        pub(crate) fn from_sec1(bytes: &[u8]) -> Option<Self> {
            VerifyingKey::from_sec1_bytes(bytes).ok().map(Self)
        }

        pub(crate) fn to_uncompressed(&self) -> [u8; 65] {
            let point = self.0.to_sec1_point(false);
            point.as_bytes().try_into().expect("an uncompressed point")
        }

        /// Whether a signature with any s is this key's.
        pub(crate) fn verifies_allowing_high_s(
            &self,
            digest: &Digest,
            signature: &[u8; 64],
        ) -> bool {
            Signature::from_slice(signature)
                .is_ok_and(|signature| self.0.verify_prehash(digest, &signature).is_ok())
        }
    }
}

#[cfg(feature = "signing")]
mod signing {
    use ::p256::ecdsa::signature::hazmat::PrehashSigner;
    use ::p256::ecdsa::{Signature, SigningKey};
    use kernels::sha256::Digest;

    /// A secret key. `p256` wipes it on drop, and its arithmetic is constant-time.
    #[derive(Clone)]
    pub(crate) struct Secret(SigningKey);

    impl Secret {
        /// `None` if the bytes are zero or not below the order.
        pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
            SigningKey::from_slice(bytes).ok().map(Self)
        }

        /// The public key, compressed.
        pub(crate) fn to_compressed(&self) -> [u8; 33] {
            let point = self.0.verifying_key().to_sec1_point(true);
            point.as_bytes().try_into().expect("a compressed point")
        }

        /// Signs with the nonce of RFC 6979 and a low s.
        pub(crate) fn sign(&self, digest: &Digest) -> [u8; 64] {
            let signature: Signature = self.0.sign_prehash(digest).expect("a digest of 32 bytes");
            signature.normalize_s().to_bytes().into()
        }
    }
}
