//! The signature libraries and their tasks.
//!
//! | feature | K-256 and BIP-340 | P-256 verification | P-256 signing |
//! |---|---|---|---|
//! | `secp256k1` | libsecp256k1 | | |
//! | `aws-lc` | | AWS-LC | |
//! | `pure-rust` | `k256`, unless `secp256k1` is on | `p256`, unless `aws-lc` is on | |
//! | `signing` | the library of the curve | | `p256` |
//!
//! The libraries give the same verdicts, so a feature changes speed and dependencies only. P-256 is
//! signed by `p256` in every configuration: AWS-LC draws the nonce of a signature at random, `p256`
//! derives it by RFC 6979. No other file of this crate names one of the libraries.

#[cfg(feature = "aws-lc")]
pub(crate) mod aws_lc;
#[cfg(any(all(feature = "pure-rust", not(feature = "secp256k1")), test))]
pub(crate) mod k256;
#[cfg(feature = "secp256k1")]
pub(crate) mod libsecp256k1;
#[cfg(any(all(feature = "pure-rust", not(feature = "aws-lc")), feature = "signing", test))]
pub(crate) mod p256;

#[cfg(all(feature = "pure-rust", not(feature = "secp256k1")))]
pub(crate) use self::k256 as on_k256;
#[cfg(feature = "secp256k1")]
pub(crate) use libsecp256k1 as on_k256;

#[cfg(all(feature = "pure-rust", not(feature = "aws-lc")))]
pub(crate) use self::p256 as on_p256;
#[cfg(feature = "signing")]
pub(crate) use self::p256::Secret as P256Secret;
#[cfg(feature = "aws-lc")]
pub(crate) use aws_lc as on_p256;

#[cfg(not(any(feature = "secp256k1", feature = "pure-rust")))]
compile_error!("wireproof-crypto needs a library for K-256: enable `secp256k1` or `pure-rust`");
#[cfg(not(any(feature = "aws-lc", feature = "pure-rust")))]
compile_error!("wireproof-crypto needs a library for P-256: enable `aws-lc` or `pure-rust`");

#[cfg(all(test, feature = "signing"))]
mod tests {
    use super::{k256, on_k256, on_p256, p256};
    use crate::tests::Triple;
    use crate::{Curve, signature};

    /// Asserts that the library in use and the pure Rust one agree on a well-formed signature.
    fn assert_same_verdict(triple: &Triple) {
        let curve = triple.key.curve();
        let Ok(signature) = signature::allowing_high_s(curve, &triple.signature) else { return };
        let (key, digest) = (triple.key.as_compressed().as_bytes(), &triple.digest);
        match curve {
            Curve::K256 => {
                let (used, pure) = (
                    on_k256::Point::from_compressed(key).expect("a point"),
                    k256::Point::from_compressed(key).expect("a point"),
                );
                assert_eq!(used.to_uncompressed(), pure.to_uncompressed());
                let uncompressed = pure.to_uncompressed();
                assert!(k256::Point::from_uncompressed(&uncompressed).is_some());
                assert_eq!(
                    used.verifies_allowing_high_s(digest, signature),
                    pure.verifies_allowing_high_s(digest, signature),
                );
                if signature::strict(curve, signature).is_ok() {
                    assert_eq!(used.verifies(digest, signature), pure.verifies(digest, signature));
                }
            }
            Curve::P256 => {
                let (used, pure) = (
                    on_p256::Point::from_sec1(key).expect("a point"),
                    p256::Point::from_sec1(key).expect("a point"),
                );
                assert_eq!(used.to_uncompressed(), pure.to_uncompressed());
                assert_eq!(
                    used.verifies_allowing_high_s(digest, signature),
                    pure.verifies_allowing_high_s(digest, signature),
                );
            }
        }
    }

    #[test]
    fn every_library_gives_the_same_verdict() {
        for seed in 0..2_000 {
            assert_same_verdict(&Triple::random(seed));
        }
    }

    #[test]
    fn every_library_signs_alike_and_reads_the_same_x_only_keys() {
        for number in 1..=60_u8 {
            let (bytes, digest) = ([number; 32], [!number; 32]);
            let (used, pure) = (
                on_k256::Secret::from_bytes(&bytes).expect("in range"),
                k256::Secret::from_bytes(&bytes).expect("in range"),
            );
            assert_eq!(used.point().to_compressed(), pure.point().to_compressed());
            assert_eq!(used.sign(&digest), pure.sign(&digest));
            let (used, pure) = (
                on_k256::SchnorrSecret::from_bytes(&bytes).expect("in range"),
                k256::SchnorrSecret::from_bytes(&bytes).expect("in range"),
            );
            assert_eq!(used.x_only(), pure.x_only());
            let signature = used.sign(b"message", &digest);
            assert_eq!(signature, pure.sign(b"message", &digest));
            let key = pure.x_only();
            let (used, pure) = (
                on_k256::XOnlyPoint::from_bytes(&key).expect("a key"),
                k256::XOnlyPoint::from_bytes(&key).expect("a key"),
            );
            assert!(used.verifies(b"message", &signature) && pure.verifies(b"message", &signature));
            assert!(!used.verifies(b"other", &signature) && !pure.verifies(b"other", &signature));
            let is_key = |x: &[u8; 32]| on_k256::XOnlyPoint::from_bytes(x).is_some();
            assert_eq!(is_key(&digest), k256::XOnlyPoint::from_bytes(&digest).is_some());
        }
    }
}
