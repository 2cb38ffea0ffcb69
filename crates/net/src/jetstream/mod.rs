//! Jetstream client, for both versions of the protocol: every event once.
//!
//! | type | contents |
//! |---|---|
//! | [`Client`] | receives events of one of several hosts |
//! | [`Event`] | an event |
//! | [`Filter`] | the requested kinds, collections and accounts |
//! | [`Compression`] | the compression of messages |
//! | [`ArchiveClient`] | requests plans, segments and blocks of a hosted archive |
//!
//! A Jetstream sends events as JSON without signatures: a client must trust its operator. Version 1 is
//! `/subscribe`, whose cursors are times; version 2 is `network.bsky.jetstream.subscribeEvents`, whose cursors
//! are sequence numbers of one host, or times after a change of hosts.
//!
//! The cursor to store under the [`stream_name`] is [`Event::cursor`] of the last event before which every
//! event is handled; after [`Notice::FutureCursor`] and [`Notice::SequenceReset`] it is invalid.

mod archive;
mod client;
mod dictionary;
mod event;
mod message;
mod options;
mod request;

pub use crate::firehose::{Notice, StartFrom, Upstream};
pub use archive::{
    ArchiveClient, InvalidToken, PlanPage, PlanRequest, PlannedBlocks, PlannedSegment, Token,
};
pub use client::{Client, JetstreamError, live_cursor};
pub use event::{
    Account, Commit, Event, EventBody, EventKind, Filter, FilterError, Identity, JetstreamItem,
    Operation, Sync, Unrecognized,
};
pub use options::{Compression, Options, Version};
pub use request::{MIN_TIME_CURSOR, stream_name};
