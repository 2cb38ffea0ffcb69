//! How hosts are followed, and why that ends.

use std::time::Duration;

use crate::cursors::stream_name;
use crate::hosts::BackoffOptions;
use crate::http::Url;
use crate::websocket::{DialError, SocketOptions};

/// A host to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The host; a path other than the method's stays as it is given.
    pub url: Url,
    /// The cursor of an earlier run: what up to there has been acknowledged.
    pub cursor: Option<u64>,
}

impl Upstream {
    /// A host without a cursor.
    pub fn new(url: Url) -> Self {
        Self { url, cursor: None }
    }

    /// What the stream is called: cursors are kept under this name.
    pub fn stream(&self) -> String {
        stream_name(&endpoint(&self.url))
    }
}

/// Where a stream begins of which there is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartFrom {
    /// With what happens from now on.
    Live,
    /// With the oldest event that the host has kept.
    Oldest,
}

/// How hosts are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where the first host is begun with.
    pub start: StartFrom,
    /// Where another host is begun with when the one before had told something or had a cursor: what
    /// happened since then would be lost [`StartFrom::Live`].
    pub start_after_switch: StartFrom,
    /// Where a host is begun with anew that counts anew; without, that is an error.
    pub start_after_reset: Option<StartFrom>,
    /// The longest time without a message, pings not counted; without, there is none.
    pub message_timeout: Option<Duration>,
    /// How long it is waited between attempts.
    pub backoff: BackoffOptions,
    /// What a WebSocket must bear.
    pub socket: SocketOptions<'static>,
}

impl Default for Options {
    /// The first host live, another one with the oldest event, one that counts anew live; ten minutes
    /// without a message; a WebSocket as by default.
    fn default() -> Self {
        Self {
            start: StartFrom::Live,
            start_after_switch: StartFrom::Oldest,
            start_after_reset: Some(StartFrom::Live),
            message_timeout: Some(Duration::from_secs(600)),
            backoff: BackoffOptions::default(),
            socket: SocketOptions::default(),
        }
    }
}

/// Why nothing more can come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// No host is left that would have us.
    #[error("no host is left: {0}")]
    NoHostLeft(DialError),
    /// The cursor is ahead of the host's stream, and that was to be an error.
    #[error("{host}: the cursor {cursor} is ahead of the stream")]
    FutureCursor {
        /// The host.
        host: String,
        /// The cursor.
        cursor: u64,
    },
}

/// The URL of the method at a host that is given without a path.
pub(super) fn endpoint(host: &Url) -> Url {
    let mut url = host.clone();
    if url.path() == "/" {
        url.set_path(METHOD);
    }
    url
}

const METHOD: &str = "/xrpc/com.atproto.sync.subscribeRepos";
