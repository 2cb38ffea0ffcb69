//! How Jetstreams are followed.

use std::time::Duration;

use super::dictionary::Compression;
use super::request::Version;
use crate::firehose::Begin;
use crate::hosts::Pace;
use crate::websocket::SocketOptions;

/// How Jetstreams are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which version is spoken.
    pub version: Version,
    /// Where a host is begun with while nothing is known of any.
    pub first: Begin,
    /// How messages come.
    pub compression: Compression,
    /// How far behind what came last from another host a host is begun with.
    pub rewind: Duration,
    /// How many events are remembered, so as to hand none over twice.
    pub max_seen: usize,
    /// The longest time without a message, pings not counted; without, there is none.
    pub max_quiet: Option<Duration>,
    /// How long it is waited between attempts.
    pub pace: Pace,
    /// What a WebSocket must bear; a message's length counts both before and after it is unpacked.
    pub socket: SocketOptions<'static>,
}

impl Default for Options {
    /// Version 2, live, as text; half a minute behind another host, and 65,536 events remembered; ten
    /// minutes without a message; a WebSocket as by default.
    fn default() -> Self {
        Self {
            version: Version::V2,
            first: Begin::Live,
            compression: Compression::None,
            rewind: Duration::from_secs(30),
            max_seen: 64 << 10,
            max_quiet: Some(Duration::from_secs(600)),
            pace: Pace::default(),
            socket: SocketOptions::default(),
        }
    }
}
