//! Checkpoints of did:plc directories: a signed and dated root over the histories of all accounts, and proofs of single ones.
//!
//! | document | states |
//! |---|---|
//! | [`Checkpoint`] | an operator's key says: up to this number, the directory had these accounts with these histories |
//! | [`Proof`] | a history is the one of the checkpoint, or the checkpoint has none of the account |
//!
//! The accounts are sorted by DID in a Merkle tree ([`MerkleTree`]). So two checkpoints with one root are of equal directories, a
//! history that was rewritten or withheld changes the root, and a proof needs a hash for each level of the tree.
//!
//! A proof convinces only together with a verified history ([`crate::plc`]). A checkpoint does not say that the directory had no
//! other operations; it fixes what its operator saw.
//!
//! ```
//! use wireproof::crypto::{Curve, SecretKey};
//! use wireproof::verify::checkpoint::{Expected, MerkleTree, UnsignedCheckpoint};
//!
//! let key = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
//! let (root, _) = MerkleTree::new().finish();
//! let unsigned = UnsignedCheckpoint {
//!     directory: "https://plc.directory".to_owned(),
//!     created_at: "2026-11-30T12:00:00.000Z".parse()?,
//!     cursor: 0,
//!     accounts: 0,
//!     operations: 0,
//!     root,
//!     key: key.public_key().to_did_key(),
//! };
//! let sig = key.sign(&unsigned.to_bytes());
//! let json = unsigned.with_signature(sig).to_json();
//!
//! let now = 1_796_040_000_000_000;
//! let checkpoint = wireproof::verify::checkpoint::verify(json.as_bytes(), &Expected::at(now)).map_err(|why| why.code())?;
//! assert_eq!(checkpoint.accounts(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod history;
mod merkle;
mod proof;
mod rejection;
#[cfg(test)]
mod tests;

use atproto::syntax::DatetimeBuf;
use codec::cbor::Encoder;
use crypto::PublicKey;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use kernels::sha256::Digest;
use serde::{Deserialize, Serialize};

pub use history::{entry, hash_of_history, history_hash};
pub use merkle::{InclusionProof, MerkleTree};
pub use proof::{Neighbour, Proof, ProofSubject, verify_proof};
pub use rejection::CheckpointRejection;

use crate::Verified;

/// A checkpoint without its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsignedCheckpoint {
    /// The origin of the directory.
    pub directory: String,
    /// When the checkpoint was made.
    pub created_at: DatetimeBuf,
    /// The number of the last operation that was read.
    pub cursor: u64,
    /// Number of accounts.
    pub accounts: u64,
    /// Number of operations, nullified ones included.
    pub operations: u64,
    /// The root of the tree of the accounts.
    pub root: Digest,
    /// The operator's key, a did:key.
    pub key: String,
}

/// A signed checkpoint. Its signature is verified by [`verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    unsigned: UnsignedCheckpoint,
    sig: [u8; 64],
}

/// The expectations of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expected {
    /// The time, in microseconds since 1970. A checkpoint may be dated up to five minutes later.
    pub now_micros: i64,
    /// The key of the operator. Default: the one that the checkpoint states, so anybody's.
    pub key: Option<PublicKey>,
    /// Maximum age in microseconds. Default: any.
    pub max_age_micros: Option<i64>,
}

impl Expected {
    /// A checkpoint of any key and age, at this time.
    pub fn at(now_micros: i64) -> Self {
        Self { now_micros, key: None, max_age_micros: None }
    }
}

/// Verifies a checkpoint: its form, its signature, and its date.
///
/// # Errors
/// The first broken rule.
pub fn verify(
    json: &[u8],
    expected: &Expected,
) -> Result<Verified<Checkpoint>, CheckpointRejection> {
    let checkpoint = Checkpoint::parse(json)?;
    let UnsignedCheckpoint { key, created_at, .. } = &checkpoint.unsigned;
    let of_checkpoint =
        PublicKey::from_did_key(key).map_err(|_| CheckpointRejection::Field("key"))?;
    if expected.key.as_ref().is_some_and(|expected| *expected != of_checkpoint) {
        return Err(CheckpointRejection::Key(key.clone()));
    }
    let bytes = checkpoint.unsigned.to_bytes();
    of_checkpoint.verify(&bytes, &checkpoint.sig).map_err(CheckpointRejection::Signature)?;
    let age = expected.now_micros.saturating_sub(created_at.as_datetime().unix_micros());
    if age < -CLOCK_DRIFT_MICROS {
        return Err(CheckpointRejection::Future);
    }
    if expected.max_age_micros.is_some_and(|max| age > max) {
        return Err(CheckpointRejection::Old);
    }
    Ok(Verified::vouch(checkpoint))
}

/// The JSON of a checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fields {
    #[serde(rename = "type")]
    kind: String,
    directory: String,
    created_at: String,
    cursor: u64,
    accounts: u64,
    operations: u64,
    root: String,
    key: String,
    sig: String,
}

impl UnsignedCheckpoint {
    /// The bytes to sign: canonical DAG-CBOR of all fields but the signature, with the root as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.map(8);
        out.text("key").text(&self.key);
        out.text("root").bytes(&self.root);
        out.text("type").text(KIND);
        out.text("cursor").integer(signed(self.cursor));
        out.text("accounts").integer(signed(self.accounts));
        out.text("createdAt").text(self.created_at.as_str());
        out.text("directory").text(&self.directory);
        out.text("operations").integer(signed(self.operations));
        out.into_bytes()
    }

    /// The checkpoint with this signature of the SHA-256 of [`to_bytes`](Self::to_bytes).
    pub fn with_signature(self, sig: [u8; 64]) -> Checkpoint {
        Checkpoint { unsigned: self, sig }
    }
}

/// A number as a signed integer: parsed ones are not greater than its maximum.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Checkpoint {
    /// Reads a checkpoint from its JSON. Its signature is not verified.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(json: &[u8]) -> Result<Self, CheckpointRejection> {
        if json.len() > MAX_BYTES {
            return Err(CheckpointRejection::Length(MAX_BYTES));
        }
        let fields: Fields = serde_json::from_slice(json)
            .map_err(|error| CheckpointRejection::json("a checkpoint", &error))?;
        let bad = CheckpointRejection::Field;
        let is_number = |number: u64| i64::try_from(number).is_ok();
        if fields.kind != KIND {
            return Err(bad("type"));
        }
        let numbers = [
            (fields.cursor, "cursor"),
            (fields.accounts, "accounts"),
            (fields.operations, "operations"),
        ];
        if let Some((_, name)) = numbers.into_iter().find(|(number, _)| !is_number(*number)) {
            return Err(bad(name));
        }
        let sig = BASE64URL_NOPAD.decode(fields.sig.as_bytes()).map_err(|_| bad("sig"))?;
        let sig = sig.try_into().map_err(|_| bad("sig"))?;
        let unsigned = UnsignedCheckpoint {
            directory: fields.directory,
            created_at: fields.created_at.parse().map_err(|_| bad("createdAt"))?,
            cursor: fields.cursor,
            accounts: fields.accounts,
            operations: fields.operations,
            root: digest(&fields.root).ok_or(bad("root"))?,
            key: fields.key,
        };
        Ok(Self { unsigned, sig })
    }

    /// The JSON, on one line.
    pub fn to_json(&self) -> String {
        let UnsignedCheckpoint { directory, created_at, cursor, accounts, operations, root, key } =
            self.unsigned.clone();
        let fields = Fields {
            kind: KIND.to_owned(),
            directory,
            created_at: created_at.as_str().to_owned(),
            cursor,
            accounts,
            operations,
            root: HEXLOWER.encode(&root),
            key,
            sig: BASE64URL_NOPAD.encode(&self.sig),
        };
        serde_json::to_string(&fields).expect("text and numbers have JSON")
    }

    /// The content.
    pub fn content(&self) -> &UnsignedCheckpoint {
        &self.unsigned
    }

    /// Number of accounts.
    pub fn accounts(&self) -> u64 {
        self.unsigned.accounts
    }
}

/// The digest of a text in lower-case hexadecimal.
fn digest(text: &str) -> Option<Digest> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

const KIND: &str = "wireproof.plc.checkpoint.1";

/// Maximum length of a checkpoint in bytes.
const MAX_BYTES: usize = 4 << 10;

/// How far clocks may differ.
const CLOCK_DRIFT_MICROS: i64 = 5 * 60 * 1_000_000;
