//! The simulated network serves what it states, and fails as its faults say.
//!
//! | module | what it tests |
//! |---|---|
//! | `repositories` | the sync endpoints of PDSs and relays; documents, logs and handles |
//! | `streams` | `subscribeRepos`: cursors, order, events of every kind, each judged |
//! | `jetstreams` | both versions of Jetstream |
//! | `faults` | every fault, and that it is counted |
//!
//! The clients are plain ones of other people; what they get is judged by ours.

#![forbid(unsafe_code)]

mod client;

mod faults;
mod jetstreams;
mod repositories;
mod streams;
