//! Options of a client of a relay.

use std::sync::Arc;
use std::time::Duration;

use nostr::negentropy::Items;

use super::authenticator::Authenticator;
use net::hosts::BackoffOptions;
use net::websocket::SocketOptions;

/// Options of a client of a relay.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The time up to which events were received before, in seconds since 1970; `None` requests all stored events.
    pub resume: Option<u64>,
    /// How far before that time events are requested again, for events that reach the relay late. One minute.
    pub overlap: Duration,
    /// Known events that match the filter: only others are requested. `None` requests all.
    pub known: Option<Arc<Items>>,
    /// Whether the stored events are all that is wanted: no subscription brings new ones. False.
    pub stored_only: bool,
    /// The key that answers requests for authentication (NIP-42). `None` answers none.
    pub authenticator: Option<Authenticator>,
    /// Maximum time without a message while an answer of the relay is awaited. 30 seconds.
    pub answer_timeout: Duration,
    /// Maximum number of ids that a comparison finds missing. 1,000,000.
    pub max_missing: usize,
    /// Maximum number of messages of the relay in a comparison. 4,096.
    pub max_rounds: u32,
    /// Delays between connection attempts.
    pub backoff: BackoffOptions,
    /// Limits of the WebSocket. A message has at most 4 MiB.
    pub socket: SocketOptions<'static>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            resume: None,
            overlap: Duration::from_secs(60),
            known: None,
            stored_only: false,
            authenticator: None,
            answer_timeout: Duration::from_secs(30),
            max_missing: 1_000_000,
            max_rounds: 4096,
            backoff: BackoffOptions::default(),
            socket: SocketOptions { max_message_bytes: 4 << 20, ..SocketOptions::default() },
        }
    }
}
