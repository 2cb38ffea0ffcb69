//! Judges `#commit` and `#sync` events: signature, operations, and continuity with the stored state.
//!
//! [`Judge`] takes frames of `com.atproto.sync.subscribeRepos`, one or a batch at a time, with a
//! [`KeySource`], a [`ChainState`], the time and a [`Policy`], and returns an [`Outcome`] per frame.
//!
//! ```
//! use wireproof::verify::sync::{Chain, Judge, MemoryState, Outcome};
//!
//! let (mut judge, mut state) = (Judge::default(), MemoryState::default());
//! // From the account's DID document; without a key its events are rejected as `NoKey`.
//! let key_of = |_did: &str| None;
//!
//! let frames: [&[u8]; 1] = [b"\xa1\x62op\x20\xa1\x65error\x6cFutureCursor"];
//! for judged in judge.judge_batch(&frames, &key_of, &mut state, 1_782_864_000_000_000)? {
//!     match judged.outcome {
//!         Outcome::Commit(commit, Chain::Broken(gap)) => println!("fetch {}: {gap}", commit.repo),
//!         Outcome::Commit(commit, _) => println!("{} changed {:?}", commit.repo, commit.ops),
//!         Outcome::Sync(sync, effect) => println!("{}: {effect:?}", sync.did),
//!         Outcome::Ignored(why) => println!("ignored: {why}"),
//!         Outcome::Rejected(why) => println!("{}: {why}", why.code()),
//!         Outcome::Unjudged(event) => assert_eq!(event.kind(), None),
//!     }
//! }
//! # Ok::<(), std::convert::Infallible>(())
//! ```
//!
//! # The table of checks
//!
//! In the order in which they are made; the numbers come from [`SyncRejection::row`]. The checks
//! before the signature can only drop an event. Later checks may also change the account's state,
//! and only there is anything changed.
//!
//! | row | check | if it fails |
//! |---|---|---|
//! | 1 | the frame is a message with its fields, canonical, and nothing else | rejected |
//! | 3 | frame, CAR slice, records and number of operations are within limits | rejected |
//! | 8 | the CAR slice is an archive, its blocks have their hashes | rejected |
//! | 2 | the account is a DID in its normal form | rejected |
//! | 6 | `rev` and `since` are TIDs | rejected |
//! | 18 | `time` is a datetime | rejected |
//! | 19 | `seq` is in 1 … 2⁵³ − 1 | rejected |
//! | 20 | the `handle` of an `#identity` is a handle | rejected |
//! | 4 | the account is hosted by the sender, if the caller asks for it | rejected |
//! | 5 | the account is active | ignored |
//! | 6 | `rev` is later than the stored one | ignored |
//! | 7 | `rev` is not further ahead of the clock than the window | rejected |
//! | 8 | the CAR slice has a root, and its block | rejected |
//! | 9 | the root is the event's `commit` | rejected |
//! | 10 | it is a commit object of version 3, of this account and `rev` | rejected |
//! | 12 | neither `tooBig` nor `rebase` is set | rejected |
//! | 16 | operations: paths, none twice, CIDs as the action demands, records present; valid, if the policy is strict about them | rejected |
//! | 11 | the account's key signed the commit object, with a low s | rejected |
//! | 13 | `prevData` is there, except in the first commit of all | rejected |
//! | 16 | the signed tree holds the outcome of every operation at its path | rejected |
//! | 17 | undoing the operations leads back to `prevData` | rejected |
//! | 14 | `since` is the stored revision | accepted, chain broken |
//! | 15 | `prevData` is the stored tree | accepted, chain broken |
//!
//! Rows 1 to 11, 18 and 19 apply to a `#sync`, whose tree then becomes the account's. An `#identity` and an
//! `#account` contain no proof: only the syntax of their fields is checked (rows 1 to 3, 18 to 20). A valid event with a broken
//! chain is still valid: relays forward it, and consumers fetch the repository again.
//!
//! [`Policy::accept_unproved_operations`] leaves out the second row 16, and row 17: any operation of a signed commit is
//! accepted then.
//!
//! A stored head that is further ahead of the clock than the window is void ([`AccountState::within`]): the
//! account is judged as one without a head, and as desynchronized.
//!
//! # Accepted although odd
//!
//! A record may hold values that the data model forbids (floats, integers beyond 64 bits, links under other
//! hash functions) or break its schema; that concerns its readers, and costs neither the event nor
//! the account. [`Flagged`](crate::Flagged) finds such records. Readers of a record that is not canonical
//! DAG-CBOR, or not a map, would not agree on its meaning: it is accepted with its event and delivered as an
//! [invalid record](crate::InvalidRecord), unless [`Policy::strict_records`] rejects the event.
//!
//! Commit objects and tree nodes are always read strictly. Other blocks of the CAR slice, which are neither read
//! nor proved, may be anything whose hash is right.
//!
//! Source: the sync specification, version 1.1, and the practice of deployed relays.

mod accounts;
mod checks;
mod judge;
mod outcome;
mod policy;
mod proof;
mod rejection;
mod state;
#[cfg(test)]
mod tests;

pub use accounts::{AccountKey, KeySource};
pub use judge::{Judge, JudgeBuilder};
pub use outcome::{Chain, ChainBreak, Ignored, Judged, Leniency, Outcome, SyncEffect};
pub use policy::{FutureWindow, Policy};
pub use rejection::{OpFault, SyncRejection};
pub use state::{AccountState, ChainState, Head, MemoryState, SyncState};
