//! Verifies a commit like rsky's relay: decodes it into a struct, encodes that again without the signature, and lets
//! k256 or p256 hash and verify the result.

use ipld_core::cid::Cid;
use k256::ecdsa::signature::Verifier;
use runner_shell::sigs::{Curve, Peer, PublicKey, variants};
use runner_shell::{BoxError, Variant};
use serde::{Deserialize, Serialize};
use serde_ipld_dagcbor::{from_slice, to_vec};

pub(crate) struct Rsky;

pub(crate) enum Key {
    K256(k256::ecdsa::VerifyingKey),
    P256(p256::ecdsa::VerifyingKey),
}

impl Peer for Rsky {
    type Key = Key;

    /// No `low-s`: k256 refuses a high s by itself, p256 does not, and the relay does not check.
    const VARIANTS: &'static [Variant] = &variants(&[], &[]);

    fn parse_key(key: &PublicKey) -> Result<Key, BoxError> {
        Ok(match key.curve {
            Curve::K256 => Key::K256(k256::ecdsa::VerifyingKey::from_sec1_bytes(&key.point)?),
            Curve::P256 => Key::P256(p256::ecdsa::VerifyingKey::from_sec1_bytes(&key.point)?),
        })
    }

    fn verify(message: &[u8], signature: &[u8; 64], key: &Key) -> Result<bool, BoxError> {
        verify(message, signature, key)
    }

    fn verify_commit(commit: &[u8], key: &PublicKey) -> Result<bool, BoxError> {
        let commit: Commit<'_> = from_slice(commit)?;
        verify(&to_vec(&commit)?, commit.sig, &Self::parse_key(key)?)
    }
}

fn verify(message: &[u8], signature: &[u8], key: &Key) -> Result<bool, BoxError> {
    Ok(match key {
        Key::K256(key) => {
            key.verify(message, &k256::ecdsa::Signature::from_slice(signature)?).is_ok()
        }
        Key::P256(key) => {
            key.verify(message, &p256::ecdsa::Signature::from_slice(signature)?).is_ok()
        }
    })
}

/// The struct of the relay, but with borrowed fields where the relay copies.
#[derive(Deserialize, Serialize)]
struct Commit<'a> {
    did: &'a str,
    rev: &'a str,
    #[serde(skip_serializing)]
    sig: &'a [u8],
    data: Cid,
    prev: Option<Cid>,
    version: u8,
}
