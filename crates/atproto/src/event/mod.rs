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
//! blocks are hashed against their CIDs unless the options trust the hashes. A block that is not canonical
//! DAG-CBOR is not a fault of its frame. The reader of the block decides: commits and tree nodes are
//! strict, and a block that nothing reads may be anything. [`peek`] reads the kind of a
//! frame without its payload. [`Event::to_frame`] writes.
//!
//! Fields that the protocol has deprecated (`rebase`, `tooBig`, `blobs`) may be absent, as may
//! `prevData`; unknown fields and message types are checked to be canonical and otherwise ignored.
//!
//! Source: the event stream and sync specifications, version `xrpc.v0.cbor`.
//!
//! ```
//! use wireproof::atproto::event::{Decoder, Event, Info, Options};
//! let frame = Event::Info(Info { name: "OutdatedCursor", message: None }).to_frame();
//! let mut decoder = Decoder::new(Options::default());
//! assert!(matches!(decoder.decode(&frame)?, Event::Info(info) if info.name == "OutdatedCursor"));
//! # Ok::<(), wireproof::atproto::event::FrameError>(())
//! ```

mod decoder;
mod encode;
mod error;
mod payload;
mod renumber;
#[cfg(test)]
mod tests;

use codec::car::{self, HashProof};
use codec::cbor::Value;
use codec::{Cid, CidRef};
use kernels::sha256;

pub use decoder::{Decoder, Frame, ParsedHeader, peek};
pub use error::{FrameError, FrameFault};
pub use renumber::renumbered;

/// Limits and trust for decoding frames. Start from the default and assign fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Skips hashing: a block is then whatever its CID claims. For frames that were checked before.
    pub trust_hashes: bool,
    /// The SHA-256 back end, for measurements; `None` selects the fastest for every batch. Decoding panics
    /// if this machine does not support the forced one.
    pub hash_backend: Option<sha256::Backend>,
    /// Whether blocks are decoded into values.
    pub values: Values,
    /// Maximum length of a frame in bytes. Default: 5,000,000.
    pub max_frame_bytes: usize,
    /// Maximum length of a CAR slice in bytes. Default: 2,000,000.
    pub max_blocks_bytes: usize,
    /// Maximum number of operations of a commit. Default: 200.
    pub max_ops: usize,
    /// Maximum length of a record in bytes. Default: 1,000,000.
    pub max_record_bytes: usize,
}

/// Whether blocks are decoded into values. Whether they are canonical is checked either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Every block of canonical DAG-CBOR gets a [`Block::value`].
    Build,
    /// No block does.
    ValidateOnly,
}

impl Default for Options {
    /// Hashes checked, values built, the limits of the sync specification.
    fn default() -> Self {
        Self {
            trust_hashes: false,
            hash_backend: None,
            values: Values::Build,
            max_frame_bytes: 5_000_000,
            max_blocks_bytes: 2_000_000,
            max_ops: 200,
            max_record_bytes: 1_000_000,
        }
    }
}

impl Options {
    fn car(&self) -> car::Options {
        let mut options = car::Options::default();
        options.max_total_bytes = self.max_blocks_bytes as u64;
        options
    }

    /// The proof of a block named `cid` once the decoder returns it.
    #[inline]
    fn proof_of(&self, cid: CidRef<'_>) -> HashProof {
        match cid.sha256() {
            _ if self.trust_hashes => HashProof::Trusted,
            None if cid.identity().is_none() => HashProof::UnknownHash,
            _ => HashProof::Checked,
        }
    }
}

/// The part of a frame before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The operation: 1 for a message, −1 for an error.
    pub op: i64,
    /// The type of message, such as `#commit`; `None` for an error.
    pub kind: Option<&'a str>,
}

impl Header<'_> {
    /// The operation of a message.
    pub const MESSAGE: i64 = 1;
    /// The operation of an error.
    pub const ERROR: i64 = -1;
}

/// The content of a frame.
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
    /// A notice from the server.
    Info(Info<'a>),
    /// The server ends the stream.
    Error(ErrorFrame<'a>),
    /// A type of message or operation that this version does not know.
    Unknown(Unknown<'a>),
}

/// `#commit`: a repository changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Commit<'a> {
    /// The event's sequence number.
    pub seq: i64,
    /// The account's DID.
    pub repo: &'a str,
    /// The commit object.
    pub commit: Cid,
    /// The commit's revision.
    pub rev: &'a str,
    /// The revision before; `None` for the first.
    pub since: Option<&'a str>,
    /// The CAR slice as received.
    pub car: &'a [u8],
    /// The first root of the CAR slice, if it names one.
    pub root: Option<CidRef<'a>>,
    /// The blocks of the CAR slice, in order.
    pub blocks: &'a [Block<'a>],
    /// The operations on records.
    pub ops: &'a [RepoOp<'a>],
    /// The tree's root before this commit.
    pub prev_data: Option<Cid>,
    /// When the event was created, as received.
    pub time: &'a str,
    /// Deprecated: blobs that the records link to. Anything but a list of links counts as absent.
    pub blobs: Option<&'a [CidRef<'a>]>,
    /// Deprecated.
    pub rebase: Option<bool>,
    /// Deprecated.
    pub too_big: Option<bool>,
}

/// `#sync`: a repository is now at this commit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sync<'a> {
    /// The event's sequence number.
    pub seq: i64,
    /// The account's DID.
    pub did: &'a str,
    /// The CAR slice as it came: the commit object alone.
    pub car: &'a [u8],
    /// The first root of the CAR slice, if it names one.
    pub root: Option<CidRef<'a>>,
    /// The blocks of the CAR slice, in order.
    pub blocks: &'a [Block<'a>],
    /// The commit's revision.
    pub rev: &'a str,
    /// When the event was created, as received.
    pub time: &'a str,
}

/// `#identity`: an account's DID document or handle may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The event's sequence number.
    pub seq: i64,
    /// The account's DID.
    pub did: &'a str,
    /// When the event was created, as received.
    pub time: &'a str,
    /// The handle known to the server, unverified.
    pub handle: Option<&'a str>,
}

/// `#account`: an account's hosting status changed, as seen by the sending server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account<'a> {
    /// The event's sequence number.
    pub seq: i64,
    /// The account's DID.
    pub did: &'a str,
    /// When the event was created, as received.
    pub time: &'a str,
    /// Whether the server hosts the account's content.
    pub active: bool,
    /// The reason, or another status: `takendown`, `suspended`, `deleted`, `deactivated`, …
    pub status: Option<&'a str>,
}

/// `#info`: a notice from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// The name of the notice, such as `OutdatedCursor`.
    pub name: &'a str,
    /// Text for a person.
    pub message: Option<&'a str>,
}

/// An error frame: the server closes the stream after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFrame<'a> {
    /// The error's name, such as `FutureCursor` or `ConsumerTooSlow`.
    pub error: &'a str,
    /// Text for a person.
    pub message: Option<&'a str>,
}

/// A frame of a kind that this version does not know; its payload is canonical DAG-CBOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown<'a> {
    /// The header.
    pub header: Header<'a>,
    /// The payload as received.
    pub payload: &'a [u8],
}

/// A block of a CAR slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block<'a> {
    /// The CID stored with the data.
    pub cid: CidRef<'a>,
    /// The data.
    pub data: &'a [u8],
    /// The decoded data, if it is canonical DAG-CBOR and the decoder builds values.
    pub value: Option<Value<'a>>,
    /// Whether the CID says DAG-CBOR, and the data is one canonical item of it.
    pub is_canonical: bool,
    /// Whether the data is proved to match `cid`.
    pub proof: HashProof,
}

/// The operation of a commit on one record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepoOp<'a> {
    /// The kind of operation.
    pub action: Action,
    /// The record's path, `collection/rkey`.
    pub path: &'a str,
    /// The record after the operation; `None` for a delete.
    pub cid: Option<CidRef<'a>>,
    /// The record before an update or a delete, where the sender states it.
    pub prev: Option<CidRef<'a>>,
    /// The block named by `cid`, if the CAR slice has it.
    pub record: Option<&'a Block<'a>>,
}

/// A kind of operation on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A new record.
    Create,
    /// New content for an existing record.
    Update,
    /// The removal of a record.
    Delete,
}

const _: () = assert!(size_of::<Block<'_>>() <= 64, "a block is a cache line");

impl Action {
    /// The protocol's name of the action.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// The action of this name in the protocol.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete]
            .into_iter()
            .find(|action| action.as_str() == name)
    }
}

/// The blocks of an event by CID, found at a cost that stays linear in the event, whatever its blocks.
#[derive(Clone, Debug)]
pub enum BlockIndex<'a, R = Vec<&'a Block<'a>>> {
    /// Few enough blocks to compare all.
    Unsorted(&'a [Block<'a>]),
    /// The blocks sorted by CID; of equal CIDs the first in the event comes first.
    Sorted(R),
}

impl<'a> BlockIndex<'a> {
    /// Indexes `blocks`.
    pub fn new(blocks: &'a [Block<'a>]) -> Self {
        if blocks.len() <= UNSORTED_BLOCKS {
            return Self::Unsorted(blocks);
        }
        let mut sorted: Vec<&Block<'_>> = blocks.iter().collect();
        sort_by_cid(&mut sorted);
        Self::Sorted(sorted)
    }
}

impl<'a, R: AsRef<[&'a Block<'a>]>> BlockIndex<'a, R> {
    /// The block named `cid`.
    #[inline]
    pub fn get(&self, cid: CidRef<'_>) -> Option<&'a Block<'a>> {
        match cid.to_cid() {
            Some(cid) => self.get_sha256(&cid),
            None => self.find(cid, |block| block.cid == cid),
        }
    }

    /// The block named `cid`, as [`get`](Self::get) without a call per comparison.
    #[inline]
    pub fn get_sha256(&self, cid: &Cid) -> Option<&'a Block<'a>> {
        // Arrays of a constant length are compared inline.
        let is_equal =
            |bytes: &[u8]| bytes.try_into().is_ok_and(|bytes: &[u8; 36]| bytes == cid.as_bytes());
        self.find(cid.as_cid_ref(), |block| is_equal(block.cid.as_bytes()))
    }

    #[inline]
    fn find(
        &self,
        cid: CidRef<'_>,
        is_named: impl Fn(&Block<'_>) -> bool,
    ) -> Option<&'a Block<'a>> {
        match self {
            Self::Unsorted(blocks) => blocks.iter().find(|block| is_named(block)),
            Self::Sorted(blocks) => {
                let blocks = blocks.as_ref();
                let at = blocks.partition_point(|block| block.cid < cid);
                blocks.get(at).copied().filter(|block| is_named(block))
            }
        }
    }
}

/// Sorts references to the blocks of one slice by CID, and equal CIDs in the order of the slice.
fn sort_by_cid(blocks: &mut [&Block<'_>]) {
    blocks.sort_unstable_by_key(|block| (block.cid, std::ptr::from_ref(*block).addr()));
}

/// Up to this many blocks, comparing all costs less than sorting them.
const UNSORTED_BLOCKS: usize = 64;

/// The index of the first item whose key an earlier item has: a commit may name a path only once.
pub fn first_duplicate<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> Option<usize> {
    if items.len() <= UNSORTED_ITEMS {
        let is_duplicate =
            |at: &usize| items[..*at].iter().any(|item| key(item) == key(&items[*at]));
        return (1..items.len()).find(is_duplicate);
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_unstable_by_key(|at| (key(&items[*at]), *at));
    let pairs = order.windows(2);
    let duplicates = pairs.filter(|pair| key(&items[pair[0]]) == key(&items[pair[1]]));
    duplicates.map(|pair| pair[1]).min()
}

/// Up to this many items, comparing all pairs costs less than sorting.
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

    /// The kind in one word: `commit`, `sync`, `identity`, `account`, `info`, `error` or `unknown`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Commit(_) => "commit",
            Self::Sync(_) => "sync",
            Self::Identity(_) => "identity",
            Self::Account(_) => "account",
            Self::Info(_) => "info",
            Self::Error(_) => "error",
            Self::Unknown(_) => "unknown",
        }
    }

    /// The event's sequence number, for the kinds that have one.
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
