//! Signing keys and public keys of both curves, and their `did:key` text.
//!
//! Signatures are ECDSA over SHA-256, 64 bytes `r‖s`, with s in the lower half of the order and the
//! nonce of RFC 6979, so that a key and a message have one signature. On secp256k1 libsecp256k1 signs: a network of 100,000 accounts
//! has as many keys and signatures when it starts, and with `k256` that took twice as long (38 s of processor time in a test build, AMD
//! EPYC Zen 4).

use k256::ecdsa::signature::{Signer, Verifier};
use kernels::sha256;
use secp256k1::{Message, ecdsa};

use crate::random::Random;

/// A private key on one of the two curves of the protocol.
#[derive(Clone, Debug)]
pub enum SigningKey {
    /// secp256k1, `ES256K`.
    K256(secp256k1::SecretKey),
    /// NIST P-256, `ES256`.
    P256(Box<p256::ecdsa::SigningKey>),
}

/// The two curves of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// secp256k1.
    K256,
    /// NIST P-256.
    P256,
}

impl Curve {
    /// The order of the curve's group, n, big-endian.
    pub fn order(self) -> [u8; 32] {
        let (high, low): (u128, u128) = match self {
            Self::K256 => (
                0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe,
                0xbaae_dce6_af48_a03b_bfd2_5e8c_d036_4141,
            ),
            Self::P256 => (
                0xffff_ffff_0000_0000_ffff_ffff_ffff_ffff,
                0xbce6_faad_a717_9e84_f3b9_cac2_fc63_2551,
            ),
        };
        let mut order = [0; 32];
        order[..16].copy_from_slice(&high.to_be_bytes());
        order[16..].copy_from_slice(&low.to_be_bytes());
        order
    }
}

impl SigningKey {
    /// Draws a key on `curve`.
    pub fn generate(curve: Curve, random: &mut Random) -> Self {
        // One draw in 2³² (P-256) or 2¹²⁷ (K-256) is out of range.
        loop {
            if let Some(key) = Self::from_bytes(curve, &random.bytes32()) {
                return key;
            }
        }
    }

    /// The key of these bytes. `None` if they are 0 or not below the order of the curve.
    pub fn from_bytes(curve: Curve, bytes: &[u8; 32]) -> Option<Self> {
        match curve {
            Curve::K256 => secp256k1::SecretKey::from_secret_bytes(*bytes).ok().map(Self::K256),
            Curve::P256 => {
                let key = p256::ecdsa::SigningKey::from_slice(bytes).ok()?;
                Some(Self::P256(Box::new(key)))
            }
        }
    }

    /// The curve.
    pub fn curve(&self) -> Curve {
        match self {
            Self::K256(_) => Curve::K256,
            Self::P256(_) => Curve::P256,
        }
    }

    /// Signs `message`, low-S.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        match self {
            Self::K256(key) => {
                let digest = Message::from_digest(sha256::digest(message));
                ecdsa::sign(digest, key).serialize_compact()
            }
            Self::P256(key) => {
                let signature: p256::ecdsa::Signature = key.sign(message);
                signature.normalize_s().to_bytes().into()
            }
        }
    }

    /// The public key as a `did:key`.
    pub fn did_key(&self) -> String {
        match self.curve() {
            Curve::K256 => did_key_text(&K256_PREFIX, &self.public_point()),
            Curve::P256 => did_key_text(&P256_PREFIX, &self.public_point()),
        }
    }

    /// The public key as a compressed point: the parity of y as 2 or 3, then x.
    pub fn public_point(&self) -> [u8; POINT_LEN] {
        match self {
            Self::K256(key) => key.public_key().serialize(),
            Self::P256(key) => compressed(key.verifying_key().to_sec1_point(true).as_bytes()),
        }
    }
}

/// A public key.
#[derive(Clone, Debug)]
pub enum PublicKey {
    /// On secp256k1.
    K256(Box<k256::ecdsa::VerifyingKey>),
    /// On NIST P-256.
    P256(Box<p256::ecdsa::VerifyingKey>),
}

impl PublicKey {
    /// Parses a `did:key`. `None` if it is not a key on a curve of the protocol.
    pub fn from_did_key(text: &str) -> Option<Self> {
        let bytes = bs58::decode(text.strip_prefix("did:key:z")?).into_vec().ok()?;
        match bytes.split_first_chunk()? {
            (&K256_PREFIX, point) => Self::from_point(Curve::K256, point),
            (&P256_PREFIX, point) => Self::from_point(Curve::P256, point),
            _ => None,
        }
    }

    /// Parses a point in SEC1 form. `None` if it is not on `curve`.
    pub fn from_point(curve: Curve, point: &[u8]) -> Option<Self> {
        match curve {
            Curve::K256 => {
                let key = k256::ecdsa::VerifyingKey::from_sec1_bytes(point).ok()?;
                Some(Self::K256(Box::new(key)))
            }
            Curve::P256 => {
                let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(point).ok()?;
                Some(Self::P256(Box::new(key)))
            }
        }
    }

    /// Whether `signature` is a low-S signature by this key over `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        match self {
            Self::K256(key) => k256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|s| s.normalize_s() == s && key.verify(message, &s).is_ok()),
            Self::P256(key) => p256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|s| s.normalize_s() == s && key.verify(message, &s).is_ok()),
        }
    }
}

/// The same signature with n − s for s: anyone can compute it, and a lenient verifier accepts it.
pub fn with_high_s(curve: Curve, signature: &[u8; 64]) -> [u8; 64] {
    let mut high = *signature;
    let mut borrow = 0;
    for (digit, order) in high[32..].iter_mut().zip(curve.order()).rev() {
        let difference = i16::from(order) - i16::from(*digit) - borrow;
        borrow = i16::from(difference < 0);
        *digit = difference as u8;
    }
    high
}

fn did_key_text(prefix: &[u8; 2], point: &[u8]) -> String {
    let body = bs58::encode([prefix.as_slice(), point].concat()).into_string();
    format!("did:key:z{body}")
}

fn compressed(point: &[u8]) -> [u8; POINT_LEN] {
    point.try_into().expect("a compressed point has 33 bytes")
}

/// The length of a compressed point in bytes.
pub const POINT_LEN: usize = 33;

/// The multicodec of a K-256 public key, as a varint.
const K256_PREFIX: [u8; 2] = [0xe7, 0x01];

/// The multicodec of a P-256 public key, as a varint.
const P256_PREFIX: [u8; 2] = [0x80, 0x24];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;

    #[test]
    fn a_key_has_one_signature_for_a_message_and_its_did_key_verifies_it() {
        for curve in [Curve::K256, Curve::P256] {
            let key = SigningKey::generate(curve, &mut Seed::new(1, "keys").stream(0));
            let public = PublicKey::from_did_key(&key.did_key()).expect("a key of the protocol");
            for message in [b"hello".as_slice(), b"", &[7; 300]] {
                let signature = key.sign(message);
                assert_eq!(signature, key.sign(message));
                assert!(public.verifies(message, &signature));
                assert!(!public.verifies(b"another", &signature));
            }
        }
    }

    #[test]
    fn the_signatures_of_libsecp256k1_are_those_of_another_library() {
        let mut random = Seed::new(3, "keys").stream(0);
        for _ in 0..100 {
            let (bytes, message) = (random.bytes32(), random.bytes32());
            let key = SigningKey::from_bytes(Curve::K256, &bytes).expect("in range");
            let other = k256::ecdsa::SigningKey::from_slice(&bytes).expect("in range");
            let signature: k256::ecdsa::Signature = other.sign(&message);
            assert_eq!(key.sign(&message)[..], signature.normalize_s().to_bytes()[..]);
            assert_eq!(
                key.public_point()[..],
                other.verifying_key().to_sec1_point(true).as_bytes()[..]
            );
        }
    }

    #[test]
    fn a_high_s_is_rejected_on_both_curves() {
        for curve in [Curve::K256, Curve::P256] {
            let key = SigningKey::generate(curve, &mut Seed::new(2, "keys").stream(0));
            let public = PublicKey::from_did_key(&key.did_key()).expect("a key of the protocol");
            let signature = with_high_s(curve, &key.sign(b"hello"));
            assert_ne!(signature, key.sign(b"hello"));
            assert!(!public.verifies(b"hello", &signature), "{curve:?}");
            assert_eq!(with_high_s(curve, &signature), key.sign(b"hello"));
        }
    }

    #[test]
    fn the_did_key_of_a_known_private_key_is_the_known_one() {
        let bytes: [u8; 32] = std::array::from_fn(|at| u8::from(at == 31));
        let key = SigningKey::from_bytes(Curve::K256, &bytes).expect("1 is in range");
        assert_eq!(key.did_key(), "did:key:zQ3shVc2UkAfJCdc1TR8E66J85h48P43r93q8jGPkPpjF9Ef9");
    }

    #[test]
    fn zero_is_not_a_key() {
        assert!(SigningKey::from_bytes(Curve::K256, &[0; 32]).is_none());
        assert!(SigningKey::from_bytes(Curve::P256, &[0; 32]).is_none());
    }
}
