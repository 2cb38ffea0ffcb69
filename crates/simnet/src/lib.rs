//! A seeded, deterministic network: accounts with real keys, repositories with real trees, signed
//! commits, the firehose frames that tell of them, and signed events of another network.
//!
//! The same seed gives the same bytes on every machine: nothing but the servers reads a clock, a file or the
//! system's random bytes, no float takes part in a result, and no result depends on the order in
//! which a hash map or a thread happens to run.
//!
//! | module | question it answers |
//! |---|---|
//! | [`firehose`] | which frames does the calibrated stream hold, and what is in them? |
//! | [`signed_commits`] | which signatures does a verifier of repositories see? |
//! | [`schnorr_events`] | which signatures does a verifier of Nostr events see? |
//! | [`nostr_events`] | which events does a relay of Nostr see? |
//! | [`nostr_sampling`] | which of many events are measured, and how are they written down? |
//! | [`repository_corpus`] | which repository does one read as a whole? |
//! | [`tree_records`] | which records does one put into a tree to see how fast it is? |
//! | [`hostile`] | what may somebody send who means harm, and what is odd but right? |
//! | `servers` | how does all of this look from the network? (with the feature `servers`) |
//! | [`account`] | who is this account, and what is in its repository in the end? |
//! | [`repository`] | what does this write make of that repository, and what proves it? |
//! | [`tree`] | which Merkle search tree do these records have? |
//! | [`record`] | what is in the record at this path? |
//! | [`keys`] | who signed that, and how is the key spelled? |
//! | [`tid`] | which identifier, and which date, has this instant? |
//! | [`random`] | what does the seed say next? |
//!
//! ```
//! use wireproof_simnet::firehose::{Corpus, Spec};
//!
//! let spec = Spec { frames: 8, ..Spec::quick() };
//! let stream = Corpus::generate(&spec, &mut |_done, _of| {});
//! assert_eq!(stream.frames().len(), 8);
//! assert_eq!(stream.to_file(), Corpus::generate(&spec, &mut |_, _| {}).to_file());
//! ```
//!
//! What it leaves to others: files (the caller writes the bytes), and every verdict about the bytes
//! of somebody else.

#![forbid(unsafe_code)]

pub mod account;
pub mod block;
pub mod firehose;
mod hex;
mod history;
pub mod hostile;
pub mod keys;
pub mod nostr_events;
pub mod nostr_sampling;
pub mod random;
pub mod record;
pub mod repository;
pub mod repository_corpus;
pub mod schnorr_events;
#[cfg(feature = "servers")]
pub mod servers;
pub mod signed_commits;
mod text;
pub mod tid;
pub mod tree;
pub mod tree_records;
