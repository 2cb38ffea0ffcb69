//! Frames of `com.atproto.sync.subscribeRepos`: one binary message, one event.
//!
//! ```text
//! frame    := header payload            two DAG-CBOR items, nothing else
//! header   := {"t": "#commit", "op": 1} | {"op": -1}
//! payload  := the fields of the message named by t, or of an error
//! #commit  carries a CAR slice: the commit, tree nodes, and the records it created or updated
//! ```
//!
//! [`Decoder`] reads frames, one or a batch at a time, into memory that it keeps between calls;
//! blocks are hashed against their CIDs unless the options say that hashes are trusted. [`peek`]
//! tells the kind of a frame without reading its payload. [`Event::to_frame`] writes.
//!
//! Fields that the protocol has deprecated (`rebase`, `tooBig`, `blobs`) may be absent, as may
//! `prevData`; fields and message types that are unknown are checked to be canonical and passed by.
//!
//! Source: the event stream and sync specifications, version `xrpc.v0.cbor`.
//!
//! ```
//! use wireproof_atproto::event::{Decoder, Event, Info, Options};
//! let frame = Event::Info(Info { name: "OutdatedCursor", message: None }).to_frame();
//! let mut decoder = Decoder::new(Options::default());
//! assert!(matches!(decoder.decode(&frame)?, Event::Info(info) if info.name == "OutdatedCursor"));
//! # Ok::<(), wireproof_atproto::event::FrameError>(())
//! ```

mod blocks;
mod decoder;
mod encode;
mod error;
mod header;
mod payload;
#[cfg(test)]
mod tests;

use codec::car::HashProof;
use codec::cbor::Value;
use codec::{Cid, CidRef};

pub use decoder::{Decoder, Options, Values};
pub use error::{FrameError, FrameFault};
pub use header::{Header, peek};

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// A repository changed.
    Commit(Commit<'a>),
    /// A repository is now at this commit, whatever was known of it.
    Sync(Sync<'a>),
    /// An account's identity may have changed.
    Identity(Identity<'a>),
    /// An account's hosting status changed.
    Account(Account<'a>),
    /// A remark of the server.
    Info(Info<'a>),
    /// The server ends the stream.
    Error(ErrorFrame<'a>),
    /// A type of message or operation that this version does not know.
    Unknown(Unknown<'a>),
}

/// `#commit`: a repository changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Commit<'a> {
    /// The event's place in the stream.
    pub seq: i64,
    /// The account's DID, as it stands.
    pub repo: &'a str,
    /// The commit object.
    pub commit: Cid,
    /// The commit's revision, as it stands.
    pub rev: &'a str,
    /// The revision before, as it stands; `None` for the first.
    pub since: Option<&'a str>,
    /// The CAR slice as it came.
    pub car: &'a [u8],
    /// The first root of the CAR slice, if it names one.
    pub root: Option<CidRef<'a>>,
    /// The blocks of the CAR slice, in order.
    pub blocks: &'a [Block<'a>],
    /// What was done to which records.
    pub ops: &'a [RepoOp<'a>],
    /// The tree's root before this commit.
    pub prev_data: Option<Cid>,
    /// When the event was made, as it stands.
    pub time: &'a str,
    /// Deprecated: blobs that the records link to.
    pub blobs: Option<&'a [CidRef<'a>]>,
    /// Deprecated.
    pub rebase: Option<bool>,
    /// Deprecated.
    pub too_big: Option<bool>,
}

/// `#sync`: a repository is now at this commit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sync<'a> {
    /// The event's place in the stream.
    pub seq: i64,
    /// The account's DID, as it stands.
    pub did: &'a str,
    /// The CAR slice as it came: the commit object alone.
    pub car: &'a [u8],
    /// The first root of the CAR slice, if it names one.
    pub root: Option<CidRef<'a>>,
    /// The blocks of the CAR slice, in order.
    pub blocks: &'a [Block<'a>],
    /// The commit's revision, as it stands.
    pub rev: &'a str,
    /// When the event was made, as it stands.
    pub time: &'a str,
}

/// `#identity`: an account's DID document or handle may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The event's place in the stream.
    pub seq: i64,
    /// The account's DID, as it stands.
    pub did: &'a str,
    /// When the event was made, as it stands.
    pub time: &'a str,
    /// The handle that the server knows, unproved.
    pub handle: Option<&'a str>,
}

/// `#account`: an account's hosting status changed, as seen by the sending server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account<'a> {
    /// The event's place in the stream.
    pub seq: i64,
    /// The account's DID, as it stands.
    pub did: &'a str,
    /// When the event was made, as it stands.
    pub time: &'a str,
    /// Whether the server hosts the account's content.
    pub active: bool,
    /// Why not, or what else: `takendown`, `suspended`, `deleted`, `deactivated`, …
    pub status: Option<&'a str>,
}

/// `#info`: a remark of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// What it is about; `OutdatedCursor` is the known one.
    pub name: &'a str,
    /// Text for a person.
    pub message: Option<&'a str>,
}

/// The server's last word before it closes the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFrame<'a> {
    /// The error's name; `FutureCursor` and `ConsumerTooSlow` are known.
    pub error: &'a str,
    /// Text for a person.
    pub message: Option<&'a str>,
}

/// A frame of a kind that this version does not know; its payload is canonical DAG-CBOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown<'a> {
    /// The header.
    pub header: Header<'a>,
    /// The payload as it came.
    pub payload: &'a [u8],
}

/// A block of a CAR slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block<'a> {
    /// The identifier that stands beside the data.
    pub cid: CidRef<'a>,
    /// The data.
    pub data: &'a [u8],
    /// What the data says, if it is DAG-CBOR and the decoder builds values.
    pub value: Option<Value<'a>>,
    /// What is known of the data being what `cid` names.
    pub proof: HashProof,
}

/// What a commit did to one record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepoOp<'a> {
    /// What was done.
    pub action: Action,
    /// The record's path, `collection/rkey`, as it stands.
    pub path: &'a str,
    /// The record now; `None` after a delete.
    pub cid: Option<CidRef<'a>>,
    /// The record before an update or a delete, where the sender tells.
    pub prev: Option<CidRef<'a>>,
    /// The block named by `cid`, where the CAR slice has it.
    pub record: Option<&'a Block<'a>>,
}

/// What can be done to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A record that was not there.
    Create,
    /// A record that was there, with new content.
    Update,
    /// A record that is gone.
    Delete,
}

impl Action {
    /// The word that the protocol uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// The index of the first item whose key an earlier item has: a commit may name each path once.
pub fn first_duplicate<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> Option<usize> {
    if items.len() <= UNSORTED_ITEMS {
        let is_duplicate =
            |at: &usize| items[..*at].iter().any(|item| key(item) == key(&items[*at]));
        return (1..items.len()).find(is_duplicate);
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_unstable_by_key(|at| (key(&items[*at]), *at));
    let duplicates = order.array_windows().filter(|[a, b]| key(&items[*a]) == key(&items[*b]));
    duplicates.map(|[_, later]| *later).min()
}

/// Up to this many items, comparing each with all others costs less than sorting.
const UNSORTED_ITEMS: usize = 8;

impl<'a> Event<'a> {
    /// The type in the header, such as `#commit`; `None` for an error frame.
    pub fn kind(&self) -> Option<&'a str> {
        match self {
            Self::Commit(_) => Some("#commit"),
            Self::Sync(_) => Some("#sync"),
            Self::Identity(_) => Some("#identity"),
            Self::Account(_) => Some("#account"),
            Self::Info(_) => Some("#info"),
            Self::Error(_) => None,
            Self::Unknown(unknown) => unknown.header.kind,
        }
    }

    /// The event's place in the stream, for the kinds that have one.
    pub fn seq(&self) -> Option<i64> {
        match self {
            Self::Commit(commit) => Some(commit.seq),
            Self::Sync(sync) => Some(sync.seq),
            Self::Identity(identity) => Some(identity.seq),
            Self::Account(account) => Some(account.seq),
            Self::Info(_) | Self::Error(_) | Self::Unknown(_) => None,
        }
    }

    /// The blocks that the event carries.
    pub fn blocks(&self) -> &'a [Block<'a>] {
        match self {
            Self::Commit(commit) => commit.blocks,
            Self::Sync(sync) => sync.blocks,
            _ => &[],
        }
    }
}
