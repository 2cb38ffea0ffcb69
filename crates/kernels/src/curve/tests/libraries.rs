//! Points, signatures and verdicts of the curves from other libraries.

use aws_lc_rs::digest::{Digest, SHA256};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ParsedPublicKey};
use num_bigint::BigUint;

use super::{Claim, Curve, P256, Secp256k1, bytes_of};

/// A curve of which a library knows the points and decides signatures. Keys are compressed points.
pub(super) trait Library: Curve {
    /// a·P + b·G, unless P is not a key or the sum is infinity.
    fn combine(key: &[u8; 33], multipliers: [&BigUint; 2]) -> Option<[u8; 33]>;

    /// k·G, unless that is infinity.
    fn times_g(k: &BigUint) -> Option<[u8; 33]>;

    /// k·G, 3k·G, 5k·G, …
    fn odd_multiples(k: &BigUint, count: usize) -> Vec<[u8; 33]>;

    /// Whether the bytes are a point's.
    fn is_key(key: &[u8; 33]) -> bool;

    /// A signature by the secret key k.
    fn sign(k: &BigUint, digest: &[u8; 32]) -> [u8; 64];

    /// Whether the ECDSA signature, with any s, is valid.
    fn accepts(claim: &Claim) -> bool;
}

mod k256 {
    use ::secp256k1::{Message, PublicKey, Scalar, SecretKey, ecdsa};

    use super::*;

    impl Library for Secp256k1 {
        fn combine(key: &[u8; 33], [a, b]: [&BigUint; 2]) -> Option<[u8; 33]> {
            let [a, b] =
                [a, b].map(|number| Scalar::from_be_bytes(bytes_of(number)).expect("below n"));
            let product = PublicKey::from_slice(key).ok()?.mul_tweak(&a).ok()?;
            product.add_exp_tweak(&b).ok().map(|point| point.serialize())
        }

        fn times_g(k: &BigUint) -> Option<[u8; 33]> {
            let secret = SecretKey::from_secret_bytes(bytes_of(k)).ok()?;
            Some(PublicKey::from_secret_key(&secret).serialize())
        }

        fn odd_multiples(k: &BigUint, count: usize) -> Vec<[u8; 33]> {
            let point = |k: &BigUint| {
                PublicKey::from_slice(&Self::times_g(k).expect("not zero")).expect("a point")
            };
            let step = point(&(k * 2u8 % super::super::order::<Self>()));
            let next = |point: &PublicKey| point.combine(&step).ok();
            let multiples = std::iter::successors(Some(point(k)), next);
            multiples.take(count).map(|point| point.serialize()).collect()
        }

        fn is_key(key: &[u8; 33]) -> bool {
            PublicKey::from_slice(key).is_ok()
        }

        fn sign(k: &BigUint, digest: &[u8; 32]) -> [u8; 64] {
            let secret = SecretKey::from_secret_bytes(bytes_of(k)).expect("from 1 to n − 1");
            ecdsa::sign(Message::from_digest(*digest), &secret).serialize_compact()
        }

        /// libsecp256k1 rejects a high s, which the kernel leaves to callers.
        fn accepts(claim: &Claim) -> bool {
            let Ok(mut signature) = ecdsa::Signature::from_compact(&claim.signature) else {
                return false;
            };
            signature.normalize_s();
            let Ok(key) = PublicKey::from_slice(&claim.key) else { return false };
            ecdsa::verify(&signature, Message::from_digest(claim.hash), &key).is_ok()
        }
    }
}

mod p256 {
    use ::p256::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
    use ::p256::ecdsa::{Signature, SigningKey, VerifyingKey};
    use ::p256::elliptic_curve::sec1::ToSec1Point;
    use ::p256::elliptic_curve::{Group, PrimeField};
    use ::p256::{ProjectivePoint, PublicKey, Scalar};

    use super::*;

    fn scalar(number: &BigUint) -> Scalar {
        Scalar::from_repr(bytes_of(number).into()).unwrap()
    }

    fn compressed(point: ProjectivePoint) -> Option<[u8; 33]> {
        point.to_affine().to_sec1_point(true).as_bytes().try_into().ok()
    }

    impl Library for P256 {
        fn combine(key: &[u8; 33], [a, b]: [&BigUint; 2]) -> Option<[u8; 33]> {
            let point = PublicKey::from_sec1_bytes(key).ok()?.to_projective();
            compressed(point * scalar(a) + ProjectivePoint::GENERATOR * scalar(b))
        }

        fn times_g(k: &BigUint) -> Option<[u8; 33]> {
            compressed(ProjectivePoint::GENERATOR * scalar(k))
        }

        fn odd_multiples(k: &BigUint, count: usize) -> Vec<[u8; 33]> {
            let point = ProjectivePoint::GENERATOR * scalar(k);
            let step = point.double();
            let multiples = std::iter::successors(Some(point), |multiple| Some(*multiple + step));
            multiples.take(count).map(|point| compressed(point).expect("not infinity")).collect()
        }

        fn is_key(key: &[u8; 33]) -> bool {
            // The library reads another form of 33 bytes too.
            matches!(key[0], 2 | 3) && PublicKey::from_sec1_bytes(key).is_ok()
        }

        fn sign(k: &BigUint, digest: &[u8; 32]) -> [u8; 64] {
            let secret = SigningKey::from_slice(&bytes_of(k)).expect("from 1 to n − 1");
            let signature: Signature = secret.sign_prehash(digest).expect("a digest of 32 bytes");
            signature.to_bytes().into()
        }

        /// Both libraries, which agree.
        fn accepts(claim: &Claim) -> bool {
            let accepted = aws_lc_accepts(claim);
            assert_eq!(rust_crypto_accepts(claim), accepted, "{claim:x?}");
            accepted
        }
    }

    fn aws_lc_accepts(claim: &Claim) -> bool {
        let digest = Digest::import_less_safe(&claim.hash, &SHA256).expect("32 bytes");
        ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, claim.key)
            .is_ok_and(|key| key.verify_digest_sig(&digest, &claim.signature).is_ok())
    }

    fn rust_crypto_accepts(claim: &Claim) -> bool {
        let Ok(key) = VerifyingKey::from_sec1_bytes(&claim.key) else { return false };
        Signature::from_slice(&claim.signature)
            .is_ok_and(|signature| key.verify_prehash(&claim.hash, &signature).is_ok())
    }
}
