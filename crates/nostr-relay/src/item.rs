//! The items that a client returns: events, and notices about the relay.

use std::ops::Range;
use std::time::Duration;

use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::message::Reason;
use super::walk::Gap;
use net::websocket::{DialError, SocketError};

/// An event, or a notice about the relay.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RelayItem {
    /// An event of one of our subscriptions.
    Event(RelayEvent),
    /// A notice.
    Notice(RelayNotice),
}

/// An event of one of our subscriptions, unverified.
#[derive(Clone, Debug)]
pub struct RelayEvent {
    /// The JSON of the event.
    pub text: EventText,
    /// The time up to which events are received with this one, in seconds since 1970: the last event's by the clocks of authors,
    /// and no later than now. `None` until all stored events are, and on a connection on which something was missing or could not be read.
    pub resume: Option<u64>,
}

/// The object of an event in a message.
#[derive(Clone, Debug)]
pub struct EventText {
    message: Utf8Bytes,
    object: Range<usize>,
}

impl EventText {
    pub(super) fn new(message: Utf8Bytes, object: Range<usize>) -> Self {
        Self { message, object }
    }

    /// The object as it was received. It is not parsed.
    pub fn as_str(&self) -> &str {
        &self.message.as_str()[self.object.clone()]
    }
}

/// A statement of the relay, or a change of the connection. Texts are bounded, on one line and printable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelayNotice {
    /// A connection is open, and events are requested.
    Connected {
        /// Earliest creation time of the requested events.
        since: Option<i64>,
    },
    /// The connection is lost.
    Disconnected(SocketError),
    /// A connection attempt failed.
    ConnectFailed(DialError),
    /// The next attempt follows after this delay.
    RetryScheduled(Duration),
    /// The requests for stored events are answered, and new ones follow.
    EndOfStored {
        /// The time up to which events are received, as in [`RelayEvent::resume`].
        resume: Option<u64>,
        /// Why stored events may be missing. `None` if all are received.
        gap: Option<Gap>,
    },
    /// Ids were compared (NIP-77).
    Compared {
        /// Messages of the relay.
        rounds: u32,
        /// Ids that the relay has and we have not.
        missing: usize,
    },
    /// The missing events are received.
    Fetched {
        /// Events that the relay named, and did not send.
        withheld: usize,
    },
    /// The relay ended a subscription.
    Closed(Reason),
    /// A text for a person.
    Message(String),
    /// A request for authentication, which is answered once it is the reason for a refusal, with [`Options::authenticator`].
    ///
    /// [`Options::authenticator`]: super::Options::authenticator
    AuthRequested {
        /// The challenge.
        challenge: String,
    },
    /// The relay has accepted the answer to its request for authentication.
    Authenticated,
    /// An event or another message of a subscription that is not ours; it is dropped.
    UnknownSubscription,
    /// An event that was not requested by its id, or beyond the limit of the filter; it is dropped.
    Unrequested,
    /// A message that no relay may send; it is dropped.
    Unrecognized(&'static str),
}

impl RelayNotice {
    /// The name in output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connected { .. } => "connected",
            Self::Disconnected(_) => "disconnected",
            Self::ConnectFailed(_) => "connect-failed",
            Self::RetryScheduled(_) => "retry",
            Self::EndOfStored { .. } => "end-of-stored",
            Self::Compared { .. } => "compared",
            Self::Fetched { .. } => "fetched",
            Self::Closed(_) => "closed",
            Self::Message(_) => "notice",
            Self::AuthRequested { .. } => "auth",
            Self::Authenticated => "authenticated",
            Self::UnknownSubscription => "unknown-subscription",
            Self::Unrequested => "unrequested",
            Self::Unrecognized(_) => "unrecognized",
        }
    }
}

/// Why a client ended: the relay cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The policy denies the address, or the request is wrong.
    #[error(transparent)]
    Excluded(DialError),
    /// The relay refuses the subscription for good.
    #[error("the relay refuses the request: {0}")]
    Refused(Reason),
    /// The relay cannot compare ids, or will not.
    #[error("the relay does not compare ids (NIP-77): {0}")]
    NotCompared(String),
}

/// Bytes of messages, without the WebSocket's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}
