//! Items of a feed: received frames, with the fields needed for routing, and notices about connections.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use atproto::event::{Frame, Header, ParsedHeader};
use bytes::Bytes;
use codec::cbor::{DecodeError, KeyOrder, Reader};

use super::more_hosts::AddedHost;
use crate::hosts::HostId;
use crate::websocket::{DialError, SocketError};

/// The next item of a [`Feed`](super::Feed).
#[derive(Clone, Debug)]
pub enum FeedItem {
    /// A frame.
    Frame(ReceivedFrame),
    /// A change of the connection, or a message about the stream.
    Notice(Notice),
}

/// A received frame. Clones share the bytes.
///
/// Only the header and the fields that route the frame have been read: decoding may still reject it.
#[derive(Clone, Debug)]
pub struct ReceivedFrame {
    /// The host that sent it.
    pub host: HostId,
    /// The kind of message.
    pub kind: FrameKind,
    /// The sequence number, if the message has one.
    pub seq: Option<u64>,
    /// The bytes of the frame.
    pub frame: Bytes,
    /// The time of arrival.
    pub received: SystemTime,
    /// The header, if it is canonical: the decoder does not read it again.
    header: Option<ParsedHeader>,
    /// The position of the account's DID in the frame; empty if there is none.
    // A range of UTF-8 within the frame.
    did: Range<usize>,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// `#commit`.
    Commit,
    /// `#sync`.
    Sync,
    /// `#identity`.
    Identity,
    /// `#account`.
    Account,
    /// `#info`.
    Info,
    /// An error, which ends the stream.
    Error,
    /// An unknown message type or operation.
    Unknown,
    /// Bytes that are not a frame, or a known message without account or sequence number.
    Undecodable,
}

impl FrameKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Commit,
        Self::Sync,
        Self::Identity,
        Self::Account,
        Self::Info,
        Self::Error,
        Self::Unknown,
        Self::Undecodable,
    ];

    /// The name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Sync => "sync",
            Self::Identity => "identity",
            Self::Account => "account",
            Self::Info => "info",
            Self::Error => "error",
            Self::Unknown => "unknown",
            Self::Undecodable => "undecodable",
        }
    }

    fn of(header: &Header<'_>) -> Self {
        match (header.op, header.kind) {
            (Header::ERROR, _) => Self::Error,
            (Header::MESSAGE, Some("#commit")) => Self::Commit,
            (Header::MESSAGE, Some("#sync")) => Self::Sync,
            (Header::MESSAGE, Some("#identity")) => Self::Identity,
            (Header::MESSAGE, Some("#account")) => Self::Account,
            (Header::MESSAGE, Some("#info")) => Self::Info,
            _ => Self::Unknown,
        }
    }

    /// Whether every message of this kind has an account and a sequence number.
    fn has_account(self) -> bool {
        matches!(self, Self::Commit | Self::Sync | Self::Identity | Self::Account)
    }
}

impl FeedItem {
    /// The same item of the host with this number.
    pub(super) fn of_host(mut self, host: HostId) -> Self {
        match &mut self {
            Self::Frame(frame) => frame.host = host,
            Self::Notice(notice) => notice.set_host(host),
        }
        self
    }
}

impl ReceivedFrame {
    /// Reads the header and the routing fields of a frame that `host` sent.
    pub fn new(host: HostId, frame: Bytes, received: SystemTime) -> Self {
        let (mut kind, mut fields) = (FrameKind::Undecodable, RoutingFields::default());
        let header = ParsedHeader::read(&frame).ok();
        if let Some(header) = header {
            let stated = FrameKind::of(&header.header(&frame));
            let is_complete = fields.read(&frame, header.payload_offset(), stated).is_ok()
                && fields.seq.is_some()
                && fields.did.is_some();
            if is_complete || !stated.has_account() {
                kind = stated;
            }
        }
        let RoutingFields { seq, did } = fields;
        Self { host, kind, seq, frame, received, header, did: did.unwrap_or(0..0) }
    }

    /// The frame for the decoder, with its header as read.
    pub fn as_frame(&self) -> Frame<'_> {
        Frame::new(&self.frame, self.header)
    }

    /// The account that the message is about, unvalidated: it may not be a DID.
    pub fn did(&self) -> Option<&str> {
        let bytes = self.frame.get(self.did.clone()).filter(|bytes| !bytes.is_empty())?;
        std::str::from_utf8(bytes).ok()
    }
}

/// The fields of a payload that decide where a frame goes.
#[derive(Debug, Default)]
struct RoutingFields {
    seq: Option<u64>,
    did: Option<Range<usize>>,
}

impl RoutingFields {
    /// Reads the payload up to the second of the two fields. A commit names its account in `repo`, even if
    /// it has a field `did`: routing must use the account that verification uses, or two workers could
    /// verify events of one account.
    fn read(&mut self, frame: &[u8], at: usize, kind: FrameKind) -> Result<(), DecodeError> {
        let account = if kind == FrameKind::Commit { "repo" } else { "did" };
        let mut reader = Reader::new(&frame[at..]);
        let mut keys = KeyOrder::new();
        for _ in 0..reader.map()? {
            match reader.key(&mut keys)? {
                "seq" => self.seq = u64::try_from(reader.integer()?).ok(),
                key if key == account => {
                    let len = reader.text()?.len();
                    let end = at + reader.offset();
                    self.did = Some(end - len..end);
                }
                _ => reader.skip()?,
            }
            if self.seq.is_some() && self.did.is_some() {
                break;
            }
        }
        Ok(())
    }
}

/// A change of a connection, or a message about the stream itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A connection was opened.
    Connected {
        /// The host.
        host: HostId,
        /// The cursor of the request; `None` starts with live events.
        cursor: Option<u64>,
    },
    /// A connection ended.
    Disconnected {
        /// The host.
        host: HostId,
        /// The reason.
        reason: SocketError,
    },
    /// A connection attempt failed.
    ConnectFailed {
        /// The host.
        host: HostId,
        /// The reason.
        error: DialError,
    },
    /// The next connection attempt follows after a delay.
    RetryScheduled {
        /// The host.
        host: HostId,
        /// The delay.
        time: Duration,
    },
    /// The feed switched to another host.
    Rotated {
        /// The previous host.
        from: HostId,
        /// The current host.
        to: HostId,
    },
    /// A host was excluded for good: it can never be followed.
    HostExcluded {
        /// The host.
        host: HostId,
        /// The reason.
        error: DialError,
    },
    /// A host is followed at the same time as the others: see [`MoreHosts`](super::MoreHosts).
    HostAdded {
        /// The host.
        host: HostId,
        /// Its URL and role.
        added: AddedHost,
        /// The cursor of an earlier run.
        cursor: Option<u64>,
    },
    /// The host skipped sequence numbers, in one connection or between two: see
    /// [`skipped_seqs`](Self::skipped_seqs). Relays skip the numbers of events that they do not forward; lost
    /// events look the same.
    Gap {
        /// The host.
        host: HostId,
        /// The sequence number before the gap.
        after: u64,
        /// The sequence number after the gap.
        seq: u64,
    },
    /// An event was received again; it is not delivered again.
    Repeated {
        /// The host.
        host: HostId,
        /// The sequence number.
        seq: u64,
    },
    /// A sequence number was received again with other bytes; the event is delivered.
    Reused {
        /// The host.
        host: HostId,
        /// The sequence number.
        seq: u64,
    },
    /// A sequence number is lower than the one before, which had skipped it; the event is delivered.
    Regressed {
        /// The host.
        host: HostId,
        /// The sequence number before.
        after: u64,
        /// The current sequence number.
        seq: u64,
    },
    /// The cursor is older than the oldest event of the host: events may be missing.
    OutdatedCursor {
        /// The host.
        host: HostId,
        /// The cursor of the request.
        cursor: Option<u64>,
        /// The host's message.
        message: String,
    },
    /// The cursor is ahead of the host's stream: the host has reset its sequence, and the cursor is void.
    /// Events that it sent since the reset may be missing.
    FutureCursor {
        /// The host.
        host: HostId,
        /// The cursor of the request.
        cursor: Option<u64>,
        /// The host's message.
        message: String,
    },
    /// A sequence number does not continue the one before: the host has reset its sequence without a word, and the cursor
    /// is void. The stream is read again from [`FeedOptions::start_after_reset`](super::FeedOptions); events that it sent
    /// before may be missing.
    SequenceReset {
        /// The host.
        host: HostId,
        /// The sequence number before, or the cursor.
        after: u64,
        /// The current sequence number.
        seq: u64,
    },
    /// The host disconnected because we read too slowly; the next connection resumes after the last event.
    ConsumerTooSlow {
        /// The host.
        host: HostId,
        /// The host's message.
        message: String,
    },
    /// The host ended the stream with another error.
    ServerError {
        /// The host.
        host: HostId,
        /// The name of the error.
        name: String,
        /// The host's message.
        message: String,
    },
    /// The host sent an `#info` message.
    ServerInfo {
        /// The host.
        host: HostId,
        /// The name of the message.
        name: String,
        /// The host's message.
        message: String,
    },
}

impl Notice {
    /// The name of the event, in lower case.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connected { .. } => "connected",
            Self::Disconnected { .. } => "disconnected",
            Self::ConnectFailed { .. } => "connect-failed",
            Self::RetryScheduled { .. } => "retry-scheduled",
            Self::Rotated { .. } => "rotated",
            Self::HostExcluded { .. } => "host-excluded",
            Self::HostAdded { .. } => "host-added",
            Self::Gap { .. } => "gap",
            Self::Repeated { .. } => "repeated",
            Self::Reused { .. } => "reused",
            Self::Regressed { .. } => "regressed",
            Self::OutdatedCursor { .. } => "outdated-cursor",
            Self::FutureCursor { .. } => "future-cursor",
            Self::SequenceReset { .. } => "sequence-reset",
            Self::ConsumerTooSlow { .. } => "consumer-too-slow",
            Self::ServerError { .. } => "server-error",
            Self::ServerInfo { .. } => "server-info",
        }
    }

    /// Number of skipped sequence numbers: 0 unless this is a [`Gap`](Self::Gap).
    pub fn skipped_seqs(&self) -> u64 {
        match self {
            Self::Gap { after, seq, .. } => seq.saturating_sub(*after).saturating_sub(1),
            _ => 0,
        }
    }

    /// Whether events may be missing that the cursor of the connection promised: the host has reset its sequence, or no
    /// longer keeps them.
    pub fn loses_events(&self) -> bool {
        match self {
            Self::FutureCursor { cursor, .. } | Self::OutdatedCursor { cursor, .. } => {
                cursor.is_some_and(|cursor| cursor > 0)
            }
            Self::SequenceReset { .. } => true,
            _ => false,
        }
    }

    /// Whether the host has reset its sequence.
    pub fn is_reset(&self) -> bool {
        matches!(self, Self::FutureCursor { .. } | Self::SequenceReset { .. })
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
            | Self::HostAdded { host, .. }
            | Self::Gap { host, .. }
            | Self::Repeated { host, .. }
            | Self::Reused { host, .. }
            | Self::Regressed { host, .. }
            | Self::OutdatedCursor { host, .. }
            | Self::FutureCursor { host, .. }
            | Self::SequenceReset { host, .. }
            | Self::ConsumerTooSlow { host, .. }
            | Self::ServerError { host, .. }
            | Self::ServerInfo { host, .. } => *host,
        }
    }

    /// Sets the host of a notice of a feed with one host.
    fn set_host(&mut self, number: HostId) {
        match self {
            Self::Rotated { from, to } => (*from, *to) = (number, number),
            Self::Connected { host, .. }
            | Self::Disconnected { host, .. }
            | Self::ConnectFailed { host, .. }
            | Self::RetryScheduled { host, .. }
            | Self::HostExcluded { host, .. }
            | Self::HostAdded { host, .. }
            | Self::Gap { host, .. }
            | Self::Repeated { host, .. }
            | Self::Reused { host, .. }
            | Self::Regressed { host, .. }
            | Self::OutdatedCursor { host, .. }
            | Self::FutureCursor { host, .. }
            | Self::SequenceReset { host, .. }
            | Self::ConsumerTooSlow { host, .. }
            | Self::ServerError { host, .. }
            | Self::ServerInfo { host, .. } => *host = number,
        }
    }
}

#[cfg(test)]
mod tests {
    use atproto::event::{ErrorFrame, Event, Identity, Info, Unknown};

    use super::*;

    fn received(frame: impl Into<Bytes>) -> ReceivedFrame {
        ReceivedFrame::new(HostId(0), frame.into(), SystemTime::UNIX_EPOCH)
    }

    fn identity() -> Vec<u8> {
        let event = Event::Identity(Identity {
            seq: 26_650_000_001,
            did: "did:plc:ewvi7nxzyoun6zhxrhs64oiz",
            time: "2026-07-01T00:00:00Z",
            handle: None,
        });
        event.to_frame()
    }

    #[test]
    fn kind_number_and_account_of_an_event_are_read() {
        let frame = received(identity());
        assert_eq!((frame.kind, frame.seq), (FrameKind::Identity, Some(26_650_000_001)));
        assert_eq!(frame.did(), Some("did:plc:ewvi7nxzyoun6zhxrhs64oiz"));
    }

    #[test]
    fn a_frame_cut_anywhere_is_undecodable_or_has_its_true_number() {
        let whole = identity();
        for len in 0..whole.len() {
            let cut = received(whole[..len].to_vec());
            match cut.kind {
                FrameKind::Undecodable => {}
                FrameKind::Identity => assert_eq!(cut.seq, Some(26_650_000_001), "{len}"),
                other => panic!("{len}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_account_of_a_commit_is_in_repo_even_if_it_has_a_did() {
        let header = Header { op: Header::MESSAGE, kind: Some("#commit") };
        // {"did": "did:x:b", "seq": 5, "repo": "did:x:a"}
        let payload = b"\xa3\x63did\x67did:x:b\x63seq\x05\x64repo\x67did:x:a";
        let frame = received(Event::Unknown(Unknown { header, payload }).to_frame());
        assert_eq!((frame.kind, frame.did()), (FrameKind::Commit, Some("did:x:a")));
    }

    #[test]
    fn infos_errors_and_unknown_messages_need_no_account() {
        let info = Event::Info(Info { name: "OutdatedCursor", message: None });
        let error = Event::Error(ErrorFrame { error: "FutureCursor", message: None });
        let header = Header { op: Header::MESSAGE, kind: Some("#tombstone") };
        // {"did": "did:x:y", "seq": 5}
        let payload = b"\xa2\x63did\x67did:x:y\x63seq\x05";
        let unknown = Event::Unknown(Unknown { header, payload });
        let of = |event: Event<'_>| received(event.to_frame());
        assert_eq!((of(info).kind, of(error).kind), (FrameKind::Info, FrameKind::Error));
        let unknown = of(unknown);
        assert_eq!((unknown.kind, unknown.seq), (FrameKind::Unknown, Some(5)));
        assert_eq!(unknown.did(), Some("did:x:y"));
    }

    #[test]
    fn a_kind_is_named_as_in_its_header() {
        // {"did": "did:x:y", "seq": 5}
        let payload = b"\xa2\x63did\x67did:x:y\x63seq\x05";
        for (kind, name) in [
            ("#sync", "sync"),
            ("#identity", "identity"),
            ("#account", "account"),
            ("#info", "info"),
            ("#tombstone", "unknown"),
        ] {
            let header = Header { op: Header::MESSAGE, kind: Some(kind) };
            let frame = received(Event::Unknown(Unknown { header, payload }).to_frame());
            assert_eq!(frame.kind.name(), name);
        }
        assert_eq!(received(b"garbage".to_vec()).kind.name(), "undecodable");
    }

    #[test]
    fn a_known_kind_without_number_or_account_is_undecodable() {
        let header = Header { op: Header::MESSAGE, kind: Some("#commit") };
        for payload in [&b"\xa0"[..], b"\xa1\x63seq\x05", b"\xa1\x64repo\x61d", b"\xa1\x63seq\x20"]
        {
            let frame = Event::Unknown(Unknown { header, payload }).to_frame();
            assert_eq!(received(frame).kind, FrameKind::Undecodable, "{payload:?}");
        }
    }
}
