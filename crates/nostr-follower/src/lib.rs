//! Follows Nostr relays: every valid event once, printed, delivered to destinations or handed to a function.
//!
//! ```text
//! relays ── Client, a task each ── gather ── judge, on all cores ── Taker ──┬── a function, or lines to standard output
//!    ▲                │ permits for bytes in flight │                      └── Outbox ── destination, for each of `to`
//!    └── the relay waits at the limit ──────────────┘       Checkpoints <── taken by the reader, or stored in the outbox
//! ```

#![forbid(unsafe_code)]

mod checkpoints;
mod deliver;
mod follower;
mod judge;
mod options;
mod receive;
mod recipient;
mod refusal;
mod run;
mod seen;
mod taker;

pub use follower::{NostrFollower, NostrFollowerBuilder};
pub use options::{LineForm, NostrFollowOptions, relay_name};
pub use refusal::EventRefusal;
pub use seen::{MAX_IDS, SeenIds};
pub use taker::Counts;
