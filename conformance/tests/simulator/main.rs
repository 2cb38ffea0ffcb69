//! Does the simulated network serve what it says, and fail as it is told?
//!
//! | module | what it asks |
//! |---|---|
//! | `identity` | documents, logs and handles |
//! | `repositories` | the sync endpoints of PDSs and relays |
//! | `streams` | `subscribeRepos`: cursors, order, events of every kind, each judged |
//! | `jetstreams` | both versions of Jetstream |
//! | `faults` | every fault, and that it is counted |
//!
//! The clients are plain ones of other people; what they get is judged by ours.

#![forbid(unsafe_code)]

mod client;

mod identity;

mod faults;
mod jetstreams;
mod repositories;
mod streams;
