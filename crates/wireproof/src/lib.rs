//! Proof at wire speed for signed, content-addressed social data.
//!
//! This crate is the front door: it re-exports the libraries, lowest first, each of which answers
//! for one step of *bytes → values → structures → verdicts*.
//!
//! | crate | what it answers |
//! |---|---|
//! | [`kernels`] | SHA-256 of one and of many, UTF-8, base32, varint |
//! | [`codec`] | CID, DAG-CBOR and CAR: canonical or refused |
//! | [`crypto`] | keys and signatures: K-256, P-256, BIP-340 |
//! | [`atproto`] | what a firehose frame, a commit, a tree, a repository or a DID document says |
//! | [`verify`] | every verdict: commits, repositories, record proofs, chains of events, identities |
//! | `net`, with the feature of that name | who is that account, what does its server hold, what happens now |
//! | `store`, with the feature of that name | how far was a stream read, and what is known of its accounts |
//!
//! Start with a frame:
//!
//! ```
//! use wireproof::atproto::event::{Decoder, Event, Options};
//!
//! let frame = b"\xa1\x62op\x20\xa1\x65error\x6cFutureCursor";
//! let mut decoder = Decoder::new(Options::default());
//! match decoder.decode(frame)? {
//!     Event::Commit(commit) => println!("{} changed {} records", commit.repo, commit.ops.len()),
//!     Event::Error(error) => println!("the server ends the stream: {}", error.error),
//!     other => println!("{:?}", other.kind()),
//! }
//! # Ok::<(), wireproof::atproto::event::FrameError>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(feature = "net")]
pub use net;
#[cfg(feature = "store")]
pub use store;
pub use {atproto, codec, crypto, kernels, nostr, verify};
