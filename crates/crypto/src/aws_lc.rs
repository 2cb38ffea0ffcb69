//! P-256: verification by AWS-LC, signing by RustCrypto's `p256`. The only file that names the two.
//!
//! AWS-LC verifies four times as fast as `p256`, but draws the nonce of a signature at random. The
//! nonce of RFC 6979, and with it a signature that is the same on every run, comes from `p256`,
//! whose arithmetic is constant-time.

use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ParsedPublicKey};
use kernels::sha256::Digest;
use p256::ecdsa::signature::hazmat::PrehashSigner;

/// A point of the curve, not at infinity.
#[derive(Clone)]
pub(crate) struct Point(ParsedPublicKey);

impl Point {
    /// The point of a SEC 1 form whose length and first byte were seen to belong together.
    pub(crate) fn from_sec1(bytes: &[u8]) -> Option<Self> {
        ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, bytes).ok().map(Self)
    }

    /// Whether a signature with any s is this key's: AWS-LC does not look at its half.
    pub(crate) fn verifies_allowing_high_s(&self, digest: &Digest, signature: &[u8; 64]) -> bool {
        let digest = digest::Digest::import_less_safe(digest, &SHA256).expect("32 bytes");
        self.0.verify_digest_sig(&digest, signature).is_ok()
    }
}

/// The uncompressed form of a point that is known to be on the curve.
pub(crate) fn uncompress(compressed: &[u8; 33]) -> [u8; 65] {
    let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(compressed).expect("a point of the curve");
    key.to_sec1_point(false).as_bytes().try_into().expect("an uncompressed point")
}

/// A secret key. `p256` wipes it when it is dropped.
#[derive(Clone)]
pub(crate) struct Secret(p256::ecdsa::SigningKey);

impl Secret {
    /// `None` if the bytes are zero or not below the order.
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        p256::ecdsa::SigningKey::from_slice(bytes).ok().map(Self)
    }

    /// The public key, compressed.
    pub(crate) fn to_compressed(&self) -> [u8; 33] {
        let point = self.0.verifying_key().to_sec1_point(true);
        point.as_bytes().try_into().expect("a compressed point")
    }

    pub(crate) fn sign(&self, digest: &Digest) -> [u8; 64] {
        let signature: p256::ecdsa::Signature =
            self.0.sign_prehash(digest).expect("a digest of 32 bytes is long enough");
        signature.normalize_s().to_bytes().into()
    }
}
