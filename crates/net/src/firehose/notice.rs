//! What happened to a connection, besides the events that came over it.

use std::time::Duration;

use crate::hosts::HostId;
use crate::websocket::{DialError, SocketError};

/// Something that whoever follows a stream should see.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A connection is open.
    Connected {
        /// Here and below: the host.
        host: HostId,
        /// The cursor that was given; without one, the stream begins now.
        cursor: Option<u64>,
    },
    /// A connection has ended.
    Disconnected {
        /// The host.
        host: HostId,
        /// Why.
        reason: SocketError,
    },
    /// A connection could not be opened.
    ConnectFailed {
        /// The host.
        host: HostId,
        /// Why.
        error: DialError,
    },
    /// The next attempt is made after this time.
    RetryScheduled {
        /// The host.
        host: HostId,
        /// How long.
        time: Duration,
    },
    /// From now on another host is asked.
    Rotated {
        /// The one before.
        from: HostId,
        /// The one now.
        to: HostId,
    },
    /// A host is asked no more: what it refuses us for does not pass.
    HostExcluded {
        /// The host.
        host: HostId,
        /// Why.
        error: DialError,
    },
    /// Numbers were left out between two events. Relays leave out what they do not pass on; but it is
    /// also what a loss looks like.
    Gap {
        /// The host.
        host: HostId,
        /// The number before.
        after: u64,
        /// The number now.
        seq: u64,
    },
    /// An event came again; it is not handed over again.
    Repeated {
        /// The host.
        host: HostId,
        /// Its number.
        seq: u64,
    },
    /// A number came again with other bytes; the event is handed over.
    Reused {
        /// The host.
        host: HostId,
        /// The number.
        seq: u64,
    },
    /// A number is lower than the one before it; the event is handed over.
    Regressed {
        /// The host.
        host: HostId,
        /// The number before.
        after: u64,
        /// The number now.
        seq: u64,
    },
    /// The cursor is older than what the host has kept: events may be missing.
    OutdatedCursor {
        /// The host.
        host: HostId,
        /// The cursor that was given.
        cursor: Option<u64>,
        /// What the host says.
        message: String,
    },
    /// The cursor is ahead of the host's stream: it counts anew, and what it has told since it began to
    /// is unknown. The cursor is void.
    FutureCursor {
        /// The host.
        host: HostId,
        /// The cursor that was given.
        cursor: Option<u64>,
        /// What the host says.
        message: String,
    },
    /// The host had enough of waiting for us; the next connection goes on behind what came.
    ConsumerTooSlow {
        /// The host.
        host: HostId,
        /// What the host says.
        message: String,
    },
    /// The host ends the stream with another error.
    ServerError {
        /// The host.
        host: HostId,
        /// The name of the error.
        name: String,
        /// What the host says.
        message: String,
    },
    /// The host has something else to say.
    ServerInfo {
        /// The host.
        host: HostId,
        /// Its name.
        name: String,
        /// What the host says.
        message: String,
    },
}

impl Notice {
    /// The name of what happened, in lower case.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connected { .. } => "connected",
            Self::Disconnected { .. } => "disconnected",
            Self::ConnectFailed { .. } => "connect-failed",
            Self::RetryScheduled { .. } => "retry-scheduled",
            Self::Rotated { .. } => "rotated",
            Self::HostExcluded { .. } => "host-excluded",
            Self::Gap { .. } => "gap",
            Self::Repeated { .. } => "repeated",
            Self::Reused { .. } => "reused",
            Self::Regressed { .. } => "regressed",
            Self::OutdatedCursor { .. } => "outdated-cursor",
            Self::FutureCursor { .. } => "future-cursor",
            Self::ConsumerTooSlow { .. } => "consumer-too-slow",
            Self::ServerError { .. } => "server-error",
            Self::ServerInfo { .. } => "server-info",
        }
    }

    /// The host that it is about; of a rotation, the new one.
    pub fn host(&self) -> HostId {
        match self {
            Self::Connected { host, .. }
            | Self::Disconnected { host, .. }
            | Self::ConnectFailed { host, .. }
            | Self::RetryScheduled { host, .. }
            | Self::Rotated { to: host, .. }
            | Self::HostExcluded { host, .. }
            | Self::Gap { host, .. }
            | Self::Repeated { host, .. }
            | Self::Reused { host, .. }
            | Self::Regressed { host, .. }
            | Self::OutdatedCursor { host, .. }
            | Self::FutureCursor { host, .. }
            | Self::ConsumerTooSlow { host, .. }
            | Self::ServerError { host, .. }
            | Self::ServerInfo { host, .. } => *host,
        }
    }
}
