//! Events of the network: firehose frames without sequence numbers, and the Jetstream events made of them.

use std::sync::OnceLock;

use atproto::event::{Decoder, Event, Options, RepoOp};
use codec::{cbor, json};
use serde_json::Value;

/// An event, which every server sends with its own sequence number.
#[derive(Debug)]
pub(super) struct NetworkEvent {
    /// The subject.
    pub(super) subject: EventSubject,
    /// The time of sending in microseconds since 1970, by the clock of this machine.
    pub(super) micros: u64,
    /// The frame without its sequence number.
    frame: Box<[u8]>,
    /// The offset of the sequence number; `None` for a hostile frame without one.
    seq_at: Option<usize>,
    /// Its Jetstream events, once they are requested.
    jetstream_events: OnceLock<Box<[JetstreamEvent]>>,
}

/// The subject of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSubject {
    /// The DID of the account.
    pub did: String,
    /// The kind of the event.
    pub kind: EventKind,
    /// The revision of a commit or sync; empty for other kinds.
    pub rev: String,
    /// The number of its Jetstream events: one per operation of a commit, none for a hostile frame.
    pub jetstream_events: u32,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// `#commit`.
    Commit,
    /// `#sync`.
    Sync,
    /// `#identity`.
    Identity,
    /// `#account`.
    Account,
    /// A frame of the hostile set.
    Hostile,
}

impl NetworkEvent {
    /// An event by its frame as a function of the sequence number.
    pub(super) fn new(
        subject: EventSubject,
        micros: u64,
        to_frame: impl Fn(i64) -> Vec<u8>,
    ) -> Self {
        let (zero, one) = (to_frame(0), to_frame(1));
        // Both sequence numbers are encoded in one byte, which is the only difference.
        let seq_at = zero.iter().zip(&one).position(|(a, b)| a != b).expect("seq is in the frame");
        let frame = [&zero[..seq_at], &zero[seq_at + 1..]].concat().into();
        Self { subject, micros, frame, seq_at: Some(seq_at), jetstream_events: OnceLock::new() }
    }

    /// An event by the bytes of its frame. A sequence number of nine bytes in it is replaced.
    pub(super) fn from_bytes(subject: EventSubject, micros: u64, bytes: &[u8]) -> Self {
        let found = bytes.windows(SEQ.len()).position(|window| window == SEQ);
        let seq_at = found.map(|at| at + SEQ.len() - 1).filter(|at| at + 9 <= bytes.len());
        let frame = match seq_at {
            Some(at) => [&bytes[..at], &bytes[at + 9..]].concat().into(),
            None => bytes.into(),
        };
        Self { subject, micros, frame, seq_at, jetstream_events: OnceLock::new() }
    }

    /// The frame with this sequence number.
    pub(super) fn to_frame(&self, seq: i64) -> Vec<u8> {
        let Some(at) = self.seq_at else { return self.frame.to_vec() };
        let mut frame = Vec::with_capacity(self.frame.len() + 9);
        frame.extend_from_slice(&self.frame[..at]);
        write_integer(&mut frame, seq.unsigned_abs());
        frame.extend_from_slice(&self.frame[at..]);
        frame
    }

    /// Its Jetstream events, [`EventSubject::jetstream_events`] of them.
    pub(super) fn jetstream_events(&self) -> &[JetstreamEvent] {
        self.jetstream_events.get_or_init(|| jetstream_events(self).into())
    }
}

/// Appends a non-negative CBOR integer in its shortest form.
fn write_integer(out: &mut Vec<u8>, integer: u64) {
    match integer {
        0..24 => out.push(integer as u8),
        24..0x100 => out.extend([0x18, integer as u8]),
        0x100..0x1_0000 => {
            out.push(0x19);
            out.extend((integer as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(0x1a);
            out.extend((integer as u32).to_be_bytes());
        }
        _ => {
            out.push(0x1b);
            out.extend(integer.to_be_bytes());
        }
    }
}

/// The key `seq`, and the head of an integer of eight bytes.
const SEQ: [u8; 5] = [0x63, b's', b'e', b'q', 0x1b];

/// A Jetstream event without its sequence number and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JetstreamEvent {
    pub(super) kind: &'static str,
    /// The collection of an operation; `None` for other kinds.
    pub(super) collection: Option<String>,
    /// The JSON fields of `commit`, or of the upstream event.
    pub(super) body: String,
}

/// One Jetstream event per operation of a commit, or for an event of another kind.
fn jetstream_events(event: &NetworkEvent) -> Vec<JetstreamEvent> {
    let frame = event.to_frame(event.micros as i64);
    let mut options = Options::default();
    options.trust_hashes = true;
    let mut decoder = Decoder::new(options);
    match decoder.decode(&frame) {
        Ok(Event::Commit(commit)) => {
            commit.ops.iter().filter_map(|op| of_operation(commit.rev, op)).collect()
        }
        Ok(Event::Sync(sync)) => {
            let fields = [("did", sync.did), ("rev", sync.rev), ("time", sync.time)];
            let blocks = json::encode(&cbor::Value::Bytes(sync.car)).expect("bytes have JSON");
            vec![other("sync", format!("{},\"blocks\":{blocks}", text_fields(&fields)), None)]
        }
        Ok(Event::Identity(identity)) => {
            let mut fields = vec![("did", identity.did), ("time", identity.time)];
            fields.extend(identity.handle.map(|handle| ("handle", handle)));
            vec![other("identity", text_fields(&fields), None)]
        }
        Ok(Event::Account(account)) => {
            let mut fields = vec![("did", account.did), ("time", account.time)];
            fields.extend(account.status.map(|status| ("status", status)));
            vec![other("account", text_fields(&fields), Some(account.active))]
        }
        _ => Vec::new(),
    }
}

fn other(kind: &'static str, mut body: String, active: Option<bool>) -> JetstreamEvent {
    if let Some(active) = active {
        body.push_str(&format!(",\"active\":{active}"));
    }
    JetstreamEvent { kind, collection: None, body }
}

fn of_operation(rev: &str, op: &RepoOp<'_>) -> Option<JetstreamEvent> {
    let (collection, rkey) = op.path.split_once('/')?;
    let operation = op.action.as_str();
    let fields =
        [("rev", rev), ("operation", operation), ("collection", collection), ("rkey", rkey)];
    let mut body = text_fields(&fields);
    if let Some((cid, value)) = op.cid.zip(op.record.and_then(|block| block.value)) {
        body.push_str(",\"record\":");
        body.push_str(&json::encode(&value).ok()?);
        body.push_str(&format!(",\"cid\":\"{cid}\""));
    }
    Some(JetstreamEvent { kind: "commit", collection: Some(collection.to_owned()), body })
}

fn text_fields(fields: &[(&str, &str)]) -> String {
    let field = |(name, text): &(&str, &str)| format!("\"{name}\":{}", Value::from(*text));
    fields.iter().map(field).collect::<Vec<_>>().join(",")
}
