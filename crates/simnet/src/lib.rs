//! A seeded, deterministic network for tests and benchmarks: accounts with real keys, repositories with
//! real trees, signed commits and their firehose frames, and signed Nostr events.
//!
//! The same seed gives the same bytes on every machine: only the servers read a clock or the system's
//! random bytes, only [`corpus`] writes files, no float takes part in a result, and no result depends
//! on the order of a hash map or of threads.
//!
//! | module | contents |
//! |---|---|
//! | [`corpus`] | manifests of generated files, and their writer |
//! | [`firehose`] | the calibrated stream of `#commit` frames |
//! | [`signed_commits`] | signed commit objects and their keys |
//! | [`repository_corpus`] | a whole repository in one archive |
//! | [`blob_account`] | an account with any number of blobs of one size |
//! | [`sampled_repositories`] | repositories of many sizes and shapes, one at a time |
//! | [`tree_records`] | records to insert into a tree and to look up |
//! | [`hostile`] | malformed inputs, and unusual valid ones |
//! | [`schnorr_events`] | Nostr events for the verification of signatures |
//! | [`nostr_events`] | Nostr events as a relay receives them |
//! | [`unsigned_commits`] | unsigned commits of many operations, for tables of operations |
//! | `hostile_labels` | malformed labels, and unusual valid ones (feature `servers`) |
//! | `labeler` | a labeler on loopback (feature `servers`) |
//! | `nostr_relay` | a Nostr relay on loopback (feature `servers`) |
//! | `jetstream_segment` | segments of hosted Jetstream archives (feature `jetstream`) |
//! | [`nostr_sampling`] | classes and samples of Nostr events |
//! | `servers` | a running network on loopback (features `servers`, `jetstream`) |
//! | [`account`] | accounts: DID, key, initial records |
//! | [`repository`] | repositories: commits, operations, covering proofs |
//! | [`tree`] | Merkle search trees, with a reference implementation |
//! | [`record`] | records: collections, paths, bytes |
//! | [`block`] | DAG-CBOR blocks with counts of their items |
//! | [`keys`] | signing keys, public keys and `did:key` |
//! | [`time`] | instants as TIDs and datetimes |
//! | [`random`] | the seeded generator |
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
//! Nothing here verifies data.

#![forbid(unsafe_code)]

pub mod account;
pub mod blob_account;
pub mod block;
pub mod corpus;
pub mod firehose;
mod history;
pub mod hostile;
#[cfg(feature = "servers")]
pub mod hostile_labels;
#[cfg(feature = "jetstream")]
pub mod jetstream_segment;
pub mod keys;
#[cfg(feature = "servers")]
pub mod labeler;
pub mod nostr_events;
#[cfg(feature = "servers")]
pub mod nostr_relay;
pub mod nostr_sampling;
pub mod random;
pub mod record;
pub mod repository;
pub mod repository_corpus;
pub mod sampled_repositories;
pub mod schnorr_events;
#[cfg(feature = "servers")]
pub mod servers;
pub mod signed_commits;
mod text;
pub mod time;
pub mod tree;
pub mod tree_records;
pub mod unsigned_commits;
