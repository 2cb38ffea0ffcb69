//! The simulated network serves its documented endpoints and injects its faults.
//!
//! | module | tests |
//! |---|---|
//! | `repositories` | the sync endpoints of PDSs and relays; documents, logs and handles |
//! | `streams` | `subscribeRepos`: cursors, order, events of every kind, all verified |
//! | `jetstreams` | both versions of Jetstream |
//! | `faults` | every fault occurs and is counted |
//!
//! The clients are third-party libraries; their responses are verified by ours.

#![forbid(unsafe_code)]

mod client;

mod faults;
mod jetstreams;
mod repositories;
mod streams;
