//! What does a Jetstream tell, in either version, without a loss and once?
//!
//! | type | question it answers |
//! |---|---|
//! | [`Client`] | what do one of several hosts' connections bring, one thing after the other? |
//! | [`Event`] | what happened, to whom, when? |
//! | [`Wanted`] | what is to be told? |
//! | [`Compression`] | how does it come? |
//!
//! A Jetstream tells events as JSON and without proofs: whoever reads it trusts its operator. Version 1
//! is `/subscribe`, with times for cursors; version 2 is `network.bsky.jetstream.subscribeEvents`, with numbers
//! of one host, and times where another host is asked.

mod client;
mod dictionary;
mod event;
mod reading;
mod request;
mod seen;
mod wanted;

pub use crate::firehose::{Begin, Notice, Origin};
pub use client::{Client, ClientError, Item, Options, Strange};
pub use dictionary::Compression;
pub use event::{Account, Body, Commit, Event, Identity, Operation, Sync};
pub use request::{Version, stream};
pub use wanted::{Kind, Wanted, WantedError};

/// From this number on a cursor is a time, in microseconds since 1970; below, it is a number of version 2.
pub const LEAST_TIME: u64 = 1_000_000_000_000_000;
