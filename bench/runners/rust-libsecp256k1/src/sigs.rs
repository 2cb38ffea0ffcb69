//! Verifies ECDSA signatures of commits.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ParsedPublicKey};
use runner_shell::sigs::{Curve, Peer, PublicKey, variants};
use runner_shell::{BoxError, Variant};
use secp256k1::{Message, ecdsa};
use sha2::{Digest, Sha256};

use crate::commit::Commit;

pub(crate) struct Libsecp256k1;

pub(crate) enum Key {
    K256(secp256k1::PublicKey),
    P256(ParsedPublicKey),
}

impl Peer for Libsecp256k1 {
    type Key = Key;

    const VARIANTS: &'static [Variant] = &variants(&["low-s", "raw-bytes"], &["low-s"]);

    fn parse_key(key: &PublicKey) -> Result<Key, BoxError> {
        Ok(match key.curve {
            Curve::K256 => Key::K256(secp256k1::PublicKey::from_byte_array_compressed(key.point)?),
            Curve::P256 => Key::P256(ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.point)?),
        })
    }

    fn verify(message: &[u8], signature: &[u8; 64], key: &Key) -> Result<bool, BoxError> {
        match key {
            Key::K256(key) => {
                // libsecp256k1 refuses a high s.
                let digest = Message::from_digest(Sha256::digest(message).into());
                Ok(ecdsa::verify(&ecdsa::Signature::from_compact(signature)?, digest, key).is_ok())
            }
            // AWS-LC does not, and hashes by itself.
            Key::P256(key) => {
                Ok(is_low_p256(signature) && key.verify_sig(message, signature).is_ok())
            }
        }
    }

    fn verify_commit(commit: &[u8], key: &PublicKey) -> Result<bool, BoxError> {
        let commit = Commit::decode(commit)?;
        Self::verify(&commit.to_message(), commit.sig, &Self::parse_key(key)?)
    }
}

/// Whether s is in the lower half of the order: numbers in big-endian bytes compare as bytes do.
fn is_low_p256(signature: &[u8; 64]) -> bool {
    signature[32..] <= *P256_HALF_ORDER.as_slice()
}

#[rustfmt::skip]
const P256_HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0x80, 0x00, 0x00, 0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xde, 0x73, 0x7d, 0x56, 0xd3, 0x8b, 0xcf, 0x42, 0x79, 0xdc, 0xe5, 0x61, 0x7e, 0x31, 0x92, 0xa8,
];
