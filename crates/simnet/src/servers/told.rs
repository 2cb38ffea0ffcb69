//! One event, as every server tells it: the same but for its sequence number.

use std::sync::OnceLock;

use super::posting::{self, Posting};

/// An event.
#[derive(Debug)]
pub(super) struct Told {
    /// What it is about.
    pub(super) subject: EventSubject,
    /// When it was told, in microseconds since 1970 by the clock of this machine.
    pub(super) micros: u64,
    /// The frame without its sequence number, and where that belongs. A frame of which somebody else
    /// wrote every byte has no such place.
    frame: Box<[u8]>,
    seq_at: Option<usize>,
    /// What a Jetstream makes of it, once one is asked.
    postings: OnceLock<Box<[Posting]>>,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSubject {
    /// The account.
    pub did: String,
    /// Which kind of event it is.
    pub kind: EventKind,
    /// The revision of what was committed, as it stands; empty for other kinds.
    pub rev: String,
    /// How many events a Jetstream makes of it: one for each operation of a commit, none for a kind
    /// that it cannot read.
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
    /// A frame of the hostile set, whatever it says.
    Hostile,
}

impl Told {
    /// An event, by what its frame is with a given sequence number.
    pub(super) fn new(
        subject: EventSubject,
        micros: u64,
        to_frame: impl Fn(i64) -> Vec<u8>,
    ) -> Self {
        let (zero, one) = (to_frame(0), to_frame(1));
        // A number below 24 is one byte, and nothing else differs.
        let seq_at = zero.iter().zip(&one).position(|(a, b)| a != b).expect("seq is in the frame");
        let frame = [&zero[..seq_at], &zero[seq_at + 1..]].concat().into();
        Self { subject, micros, frame, seq_at: Some(seq_at), postings: OnceLock::new() }
    }

    /// An event by the bytes of its frame. The sequence number in it, if there is one of nine bytes,
    /// is replaced like any other.
    pub(super) fn from_bytes(subject: EventSubject, micros: u64, bytes: &[u8]) -> Self {
        let found = bytes.windows(SEQ.len()).position(|window| window == SEQ);
        let seq_at = found.map(|at| at + SEQ.len() - 1).filter(|at| at + 9 <= bytes.len());
        let frame = match seq_at {
            Some(at) => [&bytes[..at], &bytes[at + 9..]].concat().into(),
            None => bytes.into(),
        };
        Self { subject, micros, frame, seq_at, postings: OnceLock::new() }
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

    /// What a Jetstream makes of it, with [`EventSubject::postings`] entries.
    pub(super) fn postings(&self) -> &[Posting] {
        self.postings.get_or_init(|| posting::postings(self).into())
    }
}

/// A CBOR integer that is not negative, in its shortest form.
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
