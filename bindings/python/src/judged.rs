//! A judged frame: its bytes, its verdict, and the places of its parts, from which Python objects are made when they are
//! asked for.

use std::borrow::Cow;

use atproto::event::{Action, Commit, Event, RepoOp};
use atproto::repo::Record;
use bytes::Bytes;
use codec::CidRef;
use net::firehose::{DeliveredEvent, ResyncedRepo, Verdict};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use verify::sync::{Chain, Outcome, SyncEffect};

/// A frame and the findings about it. Objects of Python share it.
pub(crate) struct Judged {
    pub(crate) frame: FrameBytes,
    pub(crate) facts: Facts,
}

/// The bytes of a frame: from the caller, or from a connection.
pub(crate) enum FrameBytes {
    Python(Py<PyBytes>),
    Shared(Bytes),
}

impl FrameBytes {
    pub(crate) fn as_slice<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        match self {
            Self::Python(bytes) => bytes.as_bytes(py),
            Self::Shared(bytes) => bytes,
        }
    }

    /// The bytes as an object, which is made for every call if they are not Python's.
    pub(crate) fn to_object<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        match self {
            Self::Python(bytes) => bytes.bind(py).clone(),
            Self::Shared(bytes) => PyBytes::new(py, bytes),
        }
    }
}

/// The findings about a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) code: Name,
    pub(crate) verdict: Name,
    pub(crate) kind: Name,
    pub(crate) chain: Option<Name>,
    pub(crate) is_verified: bool,
    pub(crate) seq: Option<u64>,
    pub(crate) did: Option<Part>,
    pub(crate) rev: Option<Part>,
    pub(crate) time: Option<Part>,
    /// The operations of a verified commit.
    pub(crate) ops: Box<[OpFacts]>,
    pub(crate) message: Option<Box<str>>,
}

/// A name from a fixed list, or from a pickled object.
pub(crate) type Name = Cow<'static, str>;

/// An operation of a verified commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpFacts {
    pub(crate) action: Name,
    pub(crate) path: Part,
    pub(crate) cid: Option<Part>,
    pub(crate) record: Option<Part>,
}

/// A part of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Offset and length in bytes.
    Place(u32, u32),
    /// Bytes that are not in the frame.
    Own(Box<[u8]>),
}

impl Part {
    fn new(frame: &[u8], part: &[u8]) -> Self {
        let offset = part.as_ptr().addr().wrapping_sub(frame.as_ptr().addr());
        let is_inside = offset.checked_add(part.len()).is_some_and(|end| end <= frame.len());
        match (u32::try_from(offset), u32::try_from(part.len())) {
            (Ok(offset), Ok(len)) if is_inside => Self::Place(offset, len),
            _ => Self::Own(part.into()),
        }
    }

    fn text(frame: &[u8], text: &str) -> Option<Self> {
        Some(Self::new(frame, text.as_bytes()))
    }

    /// The bytes; none if a place is not in the frame.
    pub(crate) fn bytes<'a>(&'a self, frame: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Place(offset, len) => {
                let (offset, len) = (*offset as usize, *len as usize);
                frame.get(offset..offset + len).unwrap_or_default()
            }
            Self::Own(bytes) => bytes,
        }
    }

    /// The text; empty if the bytes are none.
    pub(crate) fn str<'a>(&'a self, frame: &'a [u8]) -> &'a str {
        str::from_utf8(self.bytes(frame)).unwrap_or_default()
    }
}

impl Facts {
    /// The facts about a frame with an outcome.
    pub(crate) fn of_outcome(
        frame: &[u8],
        event: Option<&Event<'_>>,
        outcome: &Outcome<'_>,
    ) -> Self {
        let mut facts = Self::of_kind(event.map_or("undecodable", Event::kind_name));
        facts.seq = event.and_then(Event::seq).and_then(|seq| u64::try_from(seq).ok());
        facts.set_claims(frame, event);
        facts.set_outcome(outcome);
        if let Outcome::Commit(commit, _) = outcome {
            facts.ops = ops(frame, commit, |_| true);
        }
        facts
    }

    /// The facts about an event of a stream, with the operations at the paths that `is_selected` admits.
    pub(crate) fn of_delivered(
        delivered: &DeliveredEvent<'_>,
        is_selected: impl Fn(&str) -> bool,
    ) -> Self {
        let frame = &delivered.frame[..];
        let mut facts = Self::of_kind(delivered.kind.name());
        facts.set_claims(frame, delivered.event);
        facts.did = delivered.did.and_then(|did| Part::text(frame, did));
        facts.seq = delivered.seq;
        match &delivered.verdict {
            Verdict::Judged(outcome) => {
                facts.set_outcome(outcome);
                if let Outcome::Commit(commit, _) = outcome {
                    facts.ops = ops(frame, commit, is_selected);
                }
            }
            Verdict::UnknownKey(why) => facts.set_message("unknown-key", why.to_string()),
            Verdict::Undecodable(why) => facts.set_message("refused", why.to_string()),
            Verdict::NotVerified => facts.verdict = "not-asked".into(),
        }
        facts.code = delivered.verdict.code().into();
        facts
    }

    /// The facts about a fetched and verified repository, without its records.
    pub(crate) fn of_resynced(resynced: &ResyncedRepo) -> Self {
        let own = |text: &str| Some(Part::Own(text.as_bytes().into()));
        let mut facts = Self::of_kind("resync");
        facts.set_verified("intact");
        facts.code = "verified".into();
        facts.did = own(&resynced.did);
        facts.rev = own(&resynced.head.rev.to_string());
        facts
    }

    /// No facts yet, of a message of this kind.
    pub(crate) fn of_kind(kind: &'static str) -> Self {
        Self {
            code: Name::default(),
            verdict: Name::default(),
            kind: kind.into(),
            chain: None,
            is_verified: false,
            seq: None,
            did: None,
            rev: None,
            time: None,
            ops: Box::default(),
            message: None,
        }
    }

    /// Whether it is a verified commit, which has operations.
    pub(crate) fn is_commit(&self) -> bool {
        self.is_verified && self.kind == "commit"
    }

    /// Sets the claims of the event, verified or not.
    fn set_claims(&mut self, frame: &[u8], event: Option<&Event<'_>>) {
        let (did, rev) = event.map_or((None, None), claims);
        let time = match event {
            Some(Event::Commit(commit)) => Some(commit.time),
            Some(Event::Sync(sync)) => Some(sync.time),
            Some(Event::Identity(identity)) => Some(identity.time),
            Some(Event::Account(account)) => Some(account.time),
            _ => None,
        };
        let part = |text: Option<&str>| text.and_then(|text| Part::text(frame, text));
        (self.did, self.rev, self.time) = (part(did), part(rev), part(time));
    }

    fn set_outcome(&mut self, outcome: &Outcome<'_>) {
        self.code = outcome.code().into();
        self.verdict = outcome.verdict().into();
        self.chain = chain(outcome).map(Name::from);
        self.is_verified = outcome.is_accepted();
        self.message = message(outcome).map(Into::into);
    }

    fn set_verified(&mut self, chain: &'static str) {
        self.verdict = "verified".into();
        self.chain = Some(chain.into());
        self.is_verified = true;
    }

    fn set_message(&mut self, verdict: &'static str, message: String) {
        self.verdict = verdict.into();
        self.message = Some(message.into());
    }
}

/// The operations of a resynced repository: every record is created.
pub(crate) fn created(archive: &[u8], record: &Record<'_>) -> OpFacts {
    OpFacts {
        action: Action::Create.as_str().into(),
        path: Part::Own(record.path.as_bytes().into()),
        cid: Some(Part::Own(record.cid.as_bytes().as_slice().into())),
        record: Some(Part::new(archive, record.block)),
    }
}

fn ops(frame: &[u8], commit: &Commit<'_>, is_selected: impl Fn(&str) -> bool) -> Box<[OpFacts]> {
    commit.ops.iter().filter(|op| is_selected(op.path)).map(|op| op_facts(frame, op)).collect()
}

fn op_facts(frame: &[u8], op: &RepoOp<'_>) -> OpFacts {
    let is_there = op.action != Action::Delete;
    let cid = op.cid.filter(|_| is_there);
    let block = op.record.filter(|_| is_there);
    OpFacts {
        action: op.action.as_str().into(),
        path: Part::new(frame, op.path.as_bytes()),
        cid: cid.map(|cid: CidRef<'_>| Part::new(frame, cid.as_bytes())),
        record: block.map(|block| Part::new(frame, block.data)),
    }
}

/// The account and the revision that an event claims, verified or not.
fn claims<'a>(event: &Event<'a>) -> (Option<&'a str>, Option<&'a str>) {
    match event {
        Event::Commit(commit) => (Some(commit.repo), Some(commit.rev)),
        Event::Sync(sync) => (Some(sync.did), Some(sync.rev)),
        Event::Identity(identity) => (Some(identity.did), None),
        Event::Account(account) => (Some(account.did), None),
        Event::Info(_) | Event::Error(_) | Event::Unknown(_) => (None, None),
    }
}

/// How a verified event continues the known chain of its account.
fn chain(outcome: &Outcome<'_>) -> Option<&'static str> {
    Some(match outcome {
        Outcome::Commit(_, Chain::Intact) | Outcome::Sync(_, SyncEffect::Unchanged) => "intact",
        Outcome::Commit(_, Chain::FirstSeen) | Outcome::Sync(_, SyncEffect::FirstSeen) => {
            "first-seen"
        }
        Outcome::Commit(_, Chain::Broken(_)) | Outcome::Sync(_, SyncEffect::Desynchronized) => {
            "broken"
        }
        Outcome::Commit(_, Chain::StillDesynchronized) => "still-desynchronized",
        Outcome::Commit(_, Chain::Unproved(_)) => "unproved",
        Outcome::Ignored(_) | Outcome::Rejected(_) | Outcome::Unjudged(_) => return None,
    })
}

/// The message of an outcome, beyond its code.
fn message(outcome: &Outcome<'_>) -> Option<String> {
    match outcome {
        Outcome::Commit(_, Chain::Broken(gap)) => Some(gap.to_string()),
        Outcome::Ignored(why) => Some(why.to_string()),
        Outcome::Rejected(why) => Some(why.to_string()),
        _ => None,
    }
}
