//! Options of a Jetstream client: protocol version, compression, start, and limits.

use std::sync::Arc;
use std::time::Duration;

use crate::firehose::StartFrom;
use crate::hosts::BackoffOptions;
use crate::websocket::SocketOptions;

/// Options of a Jetstream client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The version of the protocol. Version 2.
    pub version: Version,
    /// Where to start when there is no cursor. Live.
    pub start: StartFrom,
    /// The compression of messages. None.
    pub compression: Compression,
    /// Overlap after a change of hosts: how far before the latest event the next host starts. 30 seconds.
    pub rewind: Duration,
    /// Number of recent events that are remembered to drop duplicates. 65,536.
    pub dedup_capacity: usize,
    /// Maximum time without a message, not counting pings; `None` for no limit. 10 minutes.
    pub message_timeout: Option<Duration>,
    /// Delays between connection attempts.
    pub backoff: BackoffOptions,
    /// Limits of the WebSocket. The message size applies both before and after decompression.
    pub socket: SocketOptions<'static>,
}

impl Default for Options {
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

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `/subscribe`.
    V1,
    /// `network.bsky.jetstream.subscribeEvents`.
    V2,
}

/// The compression of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Text without compression.
    #[default]
    None,
    /// Compression with this Zstandard dictionary.
    Given(Arc<[u8]>),
    /// Compression with a dictionary that the host serves: the one of this id, or its current one. It is
    /// requested before every connection.
    Served(Option<u32>),
}
