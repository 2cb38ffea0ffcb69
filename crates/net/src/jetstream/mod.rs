//! What does a Jetstream tell, in either version, without a loss and once?
//!
//! | type | question it answers |
//! |---|---|
//! | [`Client`] | what do one of several hosts' connections bring, one thing after the other? |
//! | [`Event`] | what happened, to whom, when? |
//! | [`Filter`] | what is to be told? |
//! | [`Compression`] | how does it come? |
//!
//! A Jetstream tells events as JSON and without proofs: whoever reads it trusts its operator. Version 1
//! is `/subscribe`, with times for cursors; version 2 is `network.bsky.jetstream.subscribeEvents`, with numbers
//! of one host, and times where another host is asked.
//!
//! What has been handled is followed by a [`Watermark`] for each host, from [`Event::cursor`] to the cursor
//! that may be kept under the name of its [`stream_name`]; after [`Notice::FutureCursor`] it has to forget.

mod call;
mod client;
mod dictionary;
mod event;
mod followed;
mod item;
mod options;
mod reading;
mod request;
mod seen;
mod wanted;

pub use crate::firehose::{Notice, StartFrom, Upstream};
pub use client::Client;
pub use dictionary::Compression;
pub use event::{Account, Commit, Event, EventBody, Identity, Operation, Sync};
pub use item::{JetstreamError, JetstreamItem, Unrecognized};
pub use options::Options;
pub use request::{Version, stream_name};
pub use wanted::{EventKind, Filter, FilterError};

/// From this number on a cursor is a time, in microseconds since 1970; below, it is a number of version 2.
pub const MIN_TIME_CURSOR: u64 = 1_000_000_000_000_000;
