//! Verifies a commit as shrike does: decodes it strictly into a struct, encodes that without the signature, and
//! verifies with the key: libsecp256k1 for K-256, by its feature `secp256k1`, and p256.

use runner_shell::sigs::{Curve, Peer, PublicKey, variants};
use runner_shell::{BoxError, Variant};
use shrike::crypto::{K256VerifyingKey, P256VerifyingKey, Signature, VerifyingKey};
use shrike::repo::Commit;

pub(crate) struct Shrike;

impl Peer for Shrike {
    type Key = Box<dyn VerifyingKey>;

    const VARIANTS: &'static [Variant] = &variants(&["low-s", "strict-cbor"], &["low-s"]);

    /// The steps of `parse_did_key` after decoding the base58.
    fn parse_key(key: &PublicKey) -> Result<Self::Key, BoxError> {
        Ok(match key.curve {
            Curve::K256 => Box::new(K256VerifyingKey::from_bytes(&key.point)?),
            Curve::P256 => Box::new(P256VerifyingKey::from_bytes(&key.point)?),
        })
    }

    fn verify(message: &[u8], signature: &[u8; 64], key: &Self::Key) -> Result<bool, BoxError> {
        Ok(key.verify(message, &Signature::from_bytes(*signature)).is_ok())
    }

    fn verify_commit(commit: &[u8], key: &PublicKey) -> Result<bool, BoxError> {
        let key = Self::parse_key(key)?;
        Ok(Commit::from_cbor(commit)?.verify(&*key).is_ok())
    }
}
