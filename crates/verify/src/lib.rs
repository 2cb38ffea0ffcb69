//! Every verdict: what comes in are bytes from strangers, what goes out is [`Verified`] or a reason.
//!
//! | module | question it answers |
//! |---|---|
//! | [`account_keys`] | which key has each account, according to a file? |
//! | [`commit`] | did this account sign this commit object? |
//! | [`identity`] | which key does this DID document give its account? |
//! | [`plc`] | do these operations of `did:plc` make this account, and what is true of it now? |
//! | [`record`] | does this slice of a repository prove a record, or that there is none? |
//! | [`repository`] | is this export the whole repository that its account signed? |
//! | [`sync`] | is this event what its account said, and does it continue what is known? |
//!
//! What is proved may hold records that the data model does not allow: [`Flagged`] counts them.
//!
//! Every reason has a `code()`, such as `signature/high-s`: the stable name of the rule that was
//! broken, for programs; its `Display` is for people.
//!
//! ```
//! use atproto::commit::UnsignedCommit;
//! use codec::cid::{Cid, Codec};
//! use crypto::{Curve, SecretKey};
//! use wireproof_verify::{Verified, commit};
//!
//! let key = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
//! let data = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
//! let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
//! let unsigned = UnsignedCommit { did, rev, data, prev: None };
//! let block = unsigned.with_signature(&key.sign(&unsigned.to_bytes()));
//!
//! // Only this crate can make one of these.
//! let commit: Verified<_> = commit::verify(&block, &key.public_key()).map_err(|why| why.code())?;
//! assert_eq!(commit.did, did);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No clock, no socket, no file: what time it is, which key an account has and what was known of it
//! before are arguments.

#![forbid(unsafe_code)]

pub mod account_keys;
pub mod commit;
mod flagged;
pub mod identity;
pub mod plc;
pub mod record;
pub mod repository;
pub mod sync;
mod verified;

pub use flagged::{Flagged, FlaggedRecord};
pub use verified::Verified;
