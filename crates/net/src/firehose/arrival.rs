//! A frame as it came, and what can be said of it without reading it whole.

use std::ops::Range;
use std::time::SystemTime;

use atproto::event::{self, Header};
use bytes::Bytes;
use codec::cbor::{DecodeError, KeyOrder, Reader};

use crate::hosts::HostId;

/// A frame as it came. A clone shares the bytes.
///
/// What it says of itself was only peeked at: a whole reading may yet refuse the frame.
#[derive(Clone, Debug)]
pub struct ReceivedFrame {
    /// Who sent it.
    pub host: HostId,
    /// What it is.
    pub kind: FrameKind,
    /// Its sequence number, if it has one.
    pub seq: Option<u64>,
    /// The bytes.
    pub frame: Bytes,
    /// When it came.
    pub received: SystemTime,
    /// Where in the frame the account is named.
    // A range of UTF-8 within the frame.
    did: Range<usize>,
}

/// What a frame is.
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
    /// An error, after which the stream ends.
    Error,
    /// A message or an operation that nobody knows here.
    Unknown,
    /// Bytes that are no frame, or a frame of a known kind without account or sequence number.
    Undecodable,
}

impl FrameKind {
    /// All of them.
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

    /// Whether every one of them is of an account and has a sequence number.
    fn is_of_an_account(self) -> bool {
        matches!(self, Self::Commit | Self::Sync | Self::Identity | Self::Account)
    }
}

impl ReceivedFrame {
    /// Peeks at a frame that `host` sent.
    pub fn new(host: HostId, frame: Bytes, received: SystemTime) -> Self {
        let Peeked { kind, seq, did } = peek(&frame);
        Self { host, kind, seq, frame, received, did: did.unwrap_or(0..0) }
    }

    /// What a frame is.
    pub(super) fn kind_of(frame: &[u8]) -> FrameKind {
        peek(frame).kind
    }

    /// The account that it is about, as it stands; it may not even be a DID.
    pub fn did(&self) -> Option<&str> {
        let bytes = self.frame.get(self.did.clone()).filter(|bytes| !bytes.is_empty())?;
        std::str::from_utf8(bytes).ok()
    }
}

#[derive(Debug)]
struct Peeked {
    kind: FrameKind,
    seq: Option<u64>,
    did: Option<Range<usize>>,
}

fn peek(frame: &[u8]) -> Peeked {
    let mut peeked = Peeked { kind: FrameKind::Undecodable, seq: None, did: None };
    let Ok((header, payload_at)) = event::peek(frame) else { return peeked };
    let kind = kind_of(&header);
    let is_whole = read_fields(frame, payload_at, kind, &mut peeked).is_ok()
        && peeked.seq.is_some()
        && peeked.did.is_some();
    if is_whole || !kind.is_of_an_account() {
        peeked.kind = kind;
    }
    peeked
}

fn kind_of(header: &Header<'_>) -> FrameKind {
    match (header.op, header.kind) {
        (Header::ERROR, _) => FrameKind::Error,
        (Header::MESSAGE, Some("#commit")) => FrameKind::Commit,
        (Header::MESSAGE, Some("#sync")) => FrameKind::Sync,
        (Header::MESSAGE, Some("#identity")) => FrameKind::Identity,
        (Header::MESSAGE, Some("#account")) => FrameKind::Account,
        (Header::MESSAGE, Some("#info")) => FrameKind::Info,
        _ => FrameKind::Unknown,
    }
}

/// Reads the payload as far as both fields. A commit names its account `repo`, whatever else it names
/// `did`: what is taken here for the account must be what is judged as such, or strangers could have one
/// account judged in two places.
fn read_fields(
    frame: &[u8],
    at: usize,
    kind: FrameKind,
    found: &mut Peeked,
) -> Result<(), DecodeError> {
    let account = if kind == FrameKind::Commit { "repo" } else { "did" };
    let mut reader = Reader::new(&frame[at..]);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "seq" => found.seq = u64::try_from(reader.integer()?).ok(),
            key if key == account => {
                let len = reader.text()?.len();
                let end = at + reader.offset();
                found.did = Some(end - len..end);
            }
            _ => reader.skip()?,
        }
        if found.seq.is_some() && found.did.is_some() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use atproto::event::{ErrorFrame, Event, Identity, Info, Unknown};

    use super::*;

    fn arrival(frame: impl Into<Bytes>) -> ReceivedFrame {
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
    fn an_event_tells_its_kind_its_number_and_its_account() {
        let arrival = arrival(identity());
        assert_eq!((arrival.kind, arrival.seq), (FrameKind::Identity, Some(26_650_000_001)));
        assert_eq!(arrival.did(), Some("did:plc:ewvi7nxzyoun6zhxrhs64oiz"));
    }

    #[test]
    fn a_frame_cut_anywhere_is_undecodable_or_still_tells_the_truth() {
        let whole = identity();
        for len in 0..whole.len() {
            let cut = arrival(whole[..len].to_vec());
            match cut.kind {
                FrameKind::Undecodable => {}
                FrameKind::Identity => assert_eq!(cut.seq, Some(26_650_000_001), "{len}"),
                other => panic!("{len}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_commit_is_of_the_account_in_repo_whatever_else_it_names() {
        let header = Header { op: Header::MESSAGE, kind: Some("#commit") };
        // {"did": "did:x:b", "seq": 5, "repo": "did:x:a"}
        let payload = b"\xa3\x63did\x67did:x:b\x63seq\x05\x64repo\x67did:x:a";
        let arrival = arrival(Event::Unknown(Unknown { header, payload }).to_frame());
        assert_eq!((arrival.kind, arrival.did()), (FrameKind::Commit, Some("did:x:a")));
    }

    #[test]
    fn infos_errors_and_strangers_need_no_account() {
        let info = Event::Info(Info { name: "OutdatedCursor", message: None });
        let error = Event::Error(ErrorFrame { error: "FutureCursor", message: None });
        let header = Header { op: Header::MESSAGE, kind: Some("#tombstone") };
        // {"did": "did:x:y", "seq": 5}
        let payload = b"\xa2\x63did\x67did:x:y\x63seq\x05";
        let strange = Event::Unknown(Unknown { header, payload });
        let of = |event: Event<'_>| arrival(event.to_frame());
        assert_eq!((of(info).kind, of(error).kind), (FrameKind::Info, FrameKind::Error));
        let strange = of(strange);
        assert_eq!((strange.kind, strange.seq), (FrameKind::Unknown, Some(5)));
        assert_eq!(strange.did(), Some("did:x:y"));
    }

    #[test]
    fn a_known_kind_without_number_or_account_is_undecodable() {
        let header = Header { op: Header::MESSAGE, kind: Some("#commit") };
        for payload in [&b"\xa0"[..], b"\xa1\x63seq\x05", b"\xa1\x64repo\x61d", b"\xa1\x63seq\x20"]
        {
            let frame = Event::Unknown(Unknown { header, payload }).to_frame();
            let arrival = arrival(frame);
            assert_eq!(arrival.kind, FrameKind::Undecodable, "{payload:?}");
        }
    }
}
