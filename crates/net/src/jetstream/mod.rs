//! Jetstream client, for both versions of the protocol: each event once.
//!
//! | type | contents |
//! |---|---|
//! | [`Client`] | follows one of several hosts |
//! | [`Event`] | an event |
//! | [`Filter`] | the requested kinds, collections and accounts |
//! | [`Compression`] | the compression of messages |
//!
//! A Jetstream sends events as JSON without signatures: a client must trust its operator. Version 1 is
//! `/subscribe`, whose cursors are times; version 2 is `network.bsky.jetstream.subscribeEvents`, whose cursors
//! are sequence numbers of one host, or times when another host is asked.
//!
//! The cursor to store under the [`stream_name`] is [`Event::cursor`] of the last event before which every
//! event is handled; after [`Notice::FutureCursor`] it is void.

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
