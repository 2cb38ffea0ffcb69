//! Follows labelers: every label judged against the key of its source, printed, delivered to destinations, stored, or handed to a
//! function.
//!
//! ```text
//! labeler ── Client ── gather ── keys of the sources ── LabelJudge ── lines ──┬── a function, or lines to standard output
//!    ▲                              ▲        │                                ├── Outbox ── destination, for each of `to`
//!    │                              │        │                                └── LabelStore, which has the cursors
//!    │                  DID document└────────┘ a signature is wrong: looked up again
//!    └── a task a labeler, which reads no more until its lines are passed on      Checkpoints <── taken, or stored in the outbox
//! ```
//!
//! A label of the labeler itself is refused for its signature only by a DID document that was looked up after the label was
//! received.

#![forbid(unsafe_code)]

mod checkpoints;
mod client;
mod counts;
mod deliver;
mod follower;
mod gather;
mod judge;
mod key_table;
mod labeler;
mod lines;
mod options;
mod query;
mod recipient;
mod run;
mod store;

pub use counts::Counts;
pub use follower::{LabelFollower, LabelFollowerBuilder};
pub use labeler::{Labeler, find};
pub use lines::label_line;
pub use options::{LabelFollowOptions, Start};
pub use query::{Query, QueryEnd};
pub use store::{FollowedLabel, LabelStore};
