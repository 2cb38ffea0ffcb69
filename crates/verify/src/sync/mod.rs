//! Is this `#commit` or `#sync` what its account said, and does it continue what is known?
//!
//! [`Judge`] takes frames of `com.atproto.sync.subscribeRepos`, one or a batch at a time, with a
//! [`KeySource`], a [`ChainState`], the time and a [`Policy`], and gives an [`Outcome`] for each.
//!
//! # The table of checks
//!
//! In the order in which they are made; the numbers are those of [`SyncRejection::row`]. What comes
//! before the signature can only drop an event. What comes after it may also change the account's
//! state, and only there is anything changed.
//!
//! | row | what is asked | if not |
//! |---|---|---|
//! | 1 | the frame is a message with its fields, canonical, and nothing else | refused |
//! | 3 | frame, CAR slice, records and number of operations are within bounds | refused |
//! | 8 | the CAR slice is one, its blocks are canonical and have their hashes | refused |
//! | 2 | the account is a DID in its normal form | refused |
//! | 6 | `rev` and `since` are TIDs | refused |
//! | 18 | `time` is a datetime | refused |
//! | 4 | the account is hosted by the sender, if the caller cares | refused |
//! | 5 | the account is active | ignored |
//! | 6 | `rev` is later than the stored one | ignored |
//! | 7 | `rev` is not further ahead of the clock than the window | refused |
//! | 8 | the CAR slice has a root, and its block | refused |
//! | 9 | the root is the event's `commit` | refused |
//! | 10 | it is a commit object of version 3, of this account and `rev` | refused |
//! | 12 | neither `tooBig` nor `rebase` is set | refused |
//! | 16 | operations: paths, none twice, CIDs as the action demands, records present | refused |
//! | 11 | the account's key signed the commit object, with a low s | refused |
//! | 13 | `prevData` is there, but for the first commit of all | refused |
//! | 16 | each operation's outcome is what the signed tree holds at its path | refused |
//! | 17 | undoing the operations leads back to `prevData` | refused |
//! | 14 | `since` is the stored revision | accepted, chain broken |
//! | 15 | `prevData` is the stored tree | accepted, chain broken |
//!
//! A `#sync` has rows 1 to 11; its tree is then taken for the account's. A valid event whose chain is
//! broken is still valid: relays pass it on, and consumers fetch the repository anew.
//!
//! # What is not refused
//!
//! A record may hold what the data model forbids (floats, integers beyond 64 bits, links under other
//! hash functions) or break its schema; that is its reader's affair, and costs neither the event nor
//! the account; [`Flagged`](crate::Flagged) tells of them. But a block that is no canonical DAG-CBOR although its CID says so is refused with its
//! frame, a record's too: readers would not agree on what it says.
//!
//! Source: the sync specification, version 1.1, and what relays do in practice.
//!
//! ```
//! use crypto::KeyCache;
//! use wireproof_verify::sync::{Chain, Judge, MemoryState, Outcome, Policy};
//!
//! // The seeds should be secrets from those who choose keys and DIDs.
//! let mut judge = Judge::new(Policy::default(), KeyCache::new(64 << 20, [7; 16]));
//! let mut state = MemoryState::new([8; 16]);
//! let key_of = |_did: &str| None;
//!
//! let frames: [&[u8]; 1] = [b"\xa1\x62op\x20\xa1\x65error\x6cFutureCursor"];
//! for judged in judge.judge_batch(&frames, &key_of, &mut state, 1_782_864_000_000_000)? {
//!     match judged.outcome {
//!         Outcome::Commit(commit, Chain::Broken(gap)) => println!("fetch {}: {gap}", commit.repo),
//!         Outcome::Commit(commit, _) => println!("{} changed {:?}", commit.repo, commit.ops),
//!         Outcome::Sync(sync, effect) => println!("{}: {effect:?}", sync.did),
//!         Outcome::Ignored(why) => println!("nothing new: {why}"),
//!         Outcome::Rejected(why) => println!("{}: {why}", why.code()),
//!         Outcome::Unjudged(event) => assert_eq!(event.kind(), None),
//!     }
//! }
//! # Ok::<(), std::convert::Infallible>(())
//! ```

mod accounts;
mod admission;
mod batch;
mod chain;
mod claim;
mod evidence;
mod judge;
mod keys;
mod memory;
mod outcome;
mod policy;
mod proof;
mod rejection;
mod road;
mod state;

pub use judge::Judge;
pub use keys::{AccountKey, KeySource};
pub use memory::MemoryState;
pub use outcome::{Chain, ChainBreak, Ignored, Judged, Leniency, Outcome, SyncEffect};
pub use policy::Policy;
pub use rejection::{OpFault, SyncRejection};
pub use state::{AccountState, ChainState, Head, SyncState};
