//! Options of a Jetstream client.

use std::time::Duration;

use super::dictionary::Compression;
use super::request::Version;
use crate::firehose::StartFrom;
use crate::hosts::BackoffOptions;
use crate::websocket::SocketOptions;

/// How Jetstreams are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which version is spoken.
    pub version: Version,
    /// Where a host is begun with while nothing is known of any.
    pub start: StartFrom,
    /// How messages come.
    pub compression: Compression,
    /// How far behind what came last from another host a host is begun with.
    pub rewind: Duration,
    /// How many events are remembered, so as to hand none over twice.
    pub dedup_capacity: usize,
    /// The longest time without a message, pings not counted; without, there is none.
    pub message_timeout: Option<Duration>,
    /// How long it is waited between attempts.
    pub backoff: BackoffOptions,
    /// What a WebSocket must bear; a message's length counts both before and after it is unpacked.
    pub socket: SocketOptions<'static>,
}

impl Default for Options {
    /// Version 2, live, as text; half a minute behind another host, and 65,536 events remembered; ten
    /// minutes without a message; a WebSocket as by default.
    fn default() -> Self {
        Self {
            version: Version::V2,
            start: StartFrom::Live,
            compression: Compression::None,
            rewind: Duration::from_secs(30),
            dedup_capacity: 64 << 10,
            message_timeout: Some(Duration::from_secs(600)),
            backoff: BackoffOptions::default(),
            socket: SocketOptions::default(),
        }
    }
}
