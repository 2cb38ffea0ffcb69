//! Commit objects, version 3: who says which tree is theirs, and which bytes they signed.
//!
//! | key | value |
//! |---|---|
//! | `did` | text: the account |
//! | `rev` | text: the revision |
//! | `sig` | 64 bytes: the signature of the object without this entry |
//! | `data` | link: the root of the tree |
//! | `prev` | link or null: the commit before; present, and null nearly always |
//! | `version` | 3 |
//!
//! Unknown entries are passed by, and are among what was signed. That is why
//! [`SigningBytes`] are cut from the bytes that came and not written anew.
//!
//! Source: the repository specification, version 3.
//!
//! ```
//! use wireproof_atproto::commit::{Commit, UnsignedCommit};
//! use codec::cid::{Cid, Codec};
//!
//! let data = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
//! let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
//! let unsigned = UnsignedCommit { did, rev, data, prev: None };
//!
//! let block = unsigned.with_signature(&[1; 64]);
//! let commit = Commit::parse(&block)?;
//! assert_eq!((commit.rev, commit.sig), (rev, &[1; 64]));
//! assert_eq!(commit.signing_bytes().to_vec(), unsigned.to_bytes());
//! # Ok::<(), wireproof_atproto::commit::CommitError>(())
//! ```

mod encode;
mod error;
mod parse;
mod signing;
#[cfg(test)]
mod tests;

use codec::Cid;

pub use encode::UnsignedCommit;
pub use error::{CommitError, CommitFault};
pub use signing::{SigningBytes, digest_many};

/// A commit object, as it stands in its block. Whether the signature is the account's is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit<'a> {
    /// The account's DID, as it stands.
    pub did: &'a str,
    /// The revision, as it stands.
    pub rev: &'a str,
    /// The signature: r and s, if it is one.
    pub sig: &'a [u8; 64],
    /// The root of the tree.
    pub data: Cid,
    /// The commit before, where the account still tells.
    pub prev: Option<Cid>,
    signing_bytes: SigningBytes<'a>,
}

impl<'a> Commit<'a> {
    /// Reads the block of a commit.
    ///
    /// # Errors
    /// If the bytes are not canonical DAG-CBOR, or not a commit of version 3.
    pub fn parse(block: &'a [u8]) -> Result<Self, CommitError> {
        parse::parse(block)
    }

    /// What was signed: the block without the entry `sig`.
    pub fn signing_bytes(&self) -> SigningBytes<'a> {
        self.signing_bytes
    }
}
