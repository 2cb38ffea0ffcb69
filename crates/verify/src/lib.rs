//! Verification: untrusted bytes in, [`Verified`] values or a reason for rejection out.
//!
//! | module | verifies |
//! |---|---|
//! | [`checkpoint`] | a signed root over all histories of a did:plc directory, and proofs of single ones |
//! | [`collections`] | a slice of a repository that proves all records of some collections |
//! | [`commit`] | a commit object against the key of its account |
//! | [`identity`] | nothing by itself: the signing keys of accounts, from DID documents and key files |
//! | [`labels`] | labels against the keys of their sources |
//! | [`plc`] | a log of `did:plc` operations, and the account's data that it states now |
//! | [`record`] | a slice of a repository that proves a record or its absence |
//! | [`repository`] | an export: the whole repository that its account signed |
//! | [`sync`] | the events of a firehose against their accounts' keys and stored states |
//!
//! Verified repositories may hold records whose bytes no reader can trust, as they are not canonical:
//! [`InvalidRecord`] names them. Others are records that the data model forbids: [`Flagged`] counts them.
//!
//! Every reason (`…Rejection`) has a `code()` for programs, such as `signature/high-s`, which stays the
//! same across versions; its `Display` is for people.
//!
//! ```
//! use wireproof::atproto::commit::UnsignedCommit;
//! use wireproof::codec::cid::{Cid, Codec};
//! use wireproof::crypto::{Curve, SecretKey};
//! use wireproof::verify::{Verified, commit};
//!
//! let key = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
//! let data = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
//! let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
//! let unsigned = UnsignedCommit { did, rev, data, prev: None };
//! let block = unsigned.with_signature(&key.sign(&unsigned.to_bytes()));
//!
//! // Only this crate can construct a `Verified`.
//! let commit: Verified<_> = commit::verify(&block, &key.public_key()).map_err(|why| why.code())?;
//! assert_eq!(commit.did, did);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No clock, socket, file or environment is read: time, keys and stored states are arguments. The one
//! random input is a default seed for hash tables, which no verdict depends on.

#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod collections;
pub mod commit;
mod flagged;
pub mod identity;
mod invalid;
pub mod labels;
pub mod plc;
pub mod record;
pub mod repository;
pub mod sync;

use std::ops::Deref;

pub use flagged::{Flagged, FlaggedRecord, RecordFlag};
pub use invalid::{InvalidRecord, InvalidRecords, RecordError, RecordFault};

/// A value that this crate has verified. Only this crate can construct one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// Wraps a value after every check that the calling function promises.
    pub(crate) fn vouch(value: T) -> Self {
        Self(value)
    }

    /// The value without the wrapper.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Every error type of this crate can be boxed, sent to another thread and returned from `main`.
#[cfg(test)]
const _: fn() = || {
    fn is_error<E: std::error::Error + Send + Sync + 'static>() {}
    is_error::<commit::CommitRejection<'static>>();
    is_error::<RecordError>();
    is_error::<identity::AccountKeysError>();
    is_error::<labels::LabelRejection<'static>>();
    is_error::<labels::SetFull>();
    is_error::<plc::PlcFault>();
    is_error::<plc::PlcRejection>();
    is_error::<repository::RepositoryFault>();
    is_error::<repository::RepositoryRejection>();
    is_error::<sync::ChainBreak>();
    is_error::<sync::Ignored>();
    is_error::<sync::OpFault>();
    is_error::<sync::SyncRejection<'static>>();
};
