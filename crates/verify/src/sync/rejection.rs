//! Why an event is refused: one variant for each row of the table of checks, or for each of the
//! questions that a row asks.

use atproto::commit::CommitError;
use atproto::event::{FrameError, FrameFault};
use atproto::mst::{TreeError, TreeFault};
use atproto::syntax::{SyntaxError, Tid};
use codec::Cid;
use codec::cbor::Reason;
use crypto::SignatureFault;

use crate::commit::{object_code, signature_code};

/// Why an event is refused. Texts are borrowed from the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyncRejection<'a> {
    /// The frame is not a message (row 1).
    #[error("{0}")]
    Frame(FrameError),
    /// The account is not a DID, or not in its normal form (row 2).
    #[error("the account {0:?} is not a DID in its normal form")]
    Did(&'a str),
    /// Something is over its bound (row 3).
    #[error("{0}")]
    Limit(FrameError),
    /// The CAR slice of a `#sync` is over its bound (row 3).
    #[error("a CAR slice of {len} bytes, over the limit of {limit} bytes for #sync")]
    SyncLimit {
        /// Its length, in bytes.
        len: usize,
        /// The bound, in bytes.
        limit: usize,
    },
    /// The account is hosted elsewhere (row 4).
    #[error("the account is not hosted by the server that sends this")]
    Host,
    /// A revision is not a TID (row 6).
    #[error("the field `{field}`: {error}")]
    RevSyntax {
        /// `rev` or `since`.
        field: &'static str,
        /// What is wrong with it.
        error: SyntaxError,
    },
    /// The revision lies too far ahead (row 7).
    #[error("revision {rev} lies more than {window_micros} µs after {now_micros} µs since 1970")]
    FutureRev {
        /// The revision.
        rev: Tid,
        /// What time it was, in microseconds since 1970.
        now_micros: u64,
        /// What was allowed, in microseconds.
        window_micros: u64,
    },
    /// The CAR slice is not an archive of canonical blocks under their hashes (row 8).
    #[error("{0}")]
    Archive(FrameError),
    /// The CAR slice names no root, or none that can be a commit (row 8).
    #[error("the CAR slice has no root that names a commit")]
    Root,
    /// The CAR slice lacks the block of its root (row 8).
    #[error("the CAR slice lacks the block of the commit {0}")]
    CommitMissing(Cid),
    /// The event and its CAR slice name different commits (row 9).
    #[error("the event is about the commit {claimed}, its CAR slice about {root}")]
    CommitCid {
        /// The event's.
        claimed: Cid,
        /// The CAR slice's.
        root: Cid,
    },
    /// The block of the commit is not a commit object of version 3 (row 10).
    #[error("commit object: {0}")]
    Commit(CommitError),
    /// The commit is another account's (row 10).
    #[error("the commit object is of the account {0:?}, the event of another")]
    DidMismatch(&'a str),
    /// The commit has another revision (row 10).
    #[error("the commit object has the revision {0:?}, the event another")]
    RevMismatch(&'a str),
    /// The signature is malformed, malleable, or not of the account's key (row 11).
    #[error("the commit's signature: {0}")]
    Signature(SignatureFault),
    /// The account's key is not known, so the signature could not be checked (row 11).
    #[error("the account's key is not known")]
    NoKey,
    /// The event says that it leaves out what is too big (row 12).
    #[error("the event says that it is too big and left something out")]
    TooBig,
    /// The event says that the repository was rebased (row 12).
    #[error("the event says that the repository was rebased")]
    Rebase,
    /// The event does not say from which tree it starts (row 13).
    #[error("the event lacks `prevData`")]
    PrevDataMissing,
    /// An operation's path is no collection and record key (row 16).
    #[error("the operation on {path:?}: {error}")]
    Path {
        /// The path.
        path: &'a str,
        /// What is wrong with it.
        error: SyntaxError,
    },
    /// Two operations are on the same path (row 16).
    #[error("two operations are on {0:?}")]
    DuplicatePath(&'a str),
    /// An operation has a CID that its action forbids, or lacks one that it needs (row 16).
    #[error("the operation on {path:?}: {fault}")]
    Op {
        /// The operation's path.
        path: &'a str,
        /// What is wrong with it.
        fault: OpFault,
    },
    /// The record of a create or an update is not in the CAR slice (row 16).
    #[error("the record at {0:?} is not in the CAR slice")]
    RecordMissing(&'a str),
    /// The record's CID is not one of DAG-CBOR under SHA-256, so that nothing is proved (row 16).
    #[error("the CID of the record at {0:?} is not of DAG-CBOR under SHA-256")]
    RecordCid(&'a str),
    /// A node of the tree that has to be read is not in the CAR slice (row 16).
    #[error("the tree node {0} is not in the CAR slice")]
    PartialTree(Cid),
    /// A node of the tree is none, or breaks a rule of trees (row 16).
    #[error("{0}")]
    Tree(TreeError),
    /// Undoing the operations leads to another tree: they are not all that happened (row 17).
    #[error("without its operations the tree is {found}, not `prevData` {prev_data}")]
    Inversion {
        /// The tree that the event says it starts from.
        prev_data: Cid,
        /// The tree that it must have started from.
        found: Cid,
    },
    /// The event's time is not a datetime (row 18).
    #[error("the time {0:?} is not a datetime")]
    Time(&'a str),
}

/// What is wrong with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpFault {
    /// A create or an update without `cid`.
    #[error("what it wrote is not told")]
    CidMissing,
    /// A delete with `cid`.
    #[error("a delete has no new record")]
    CidForbidden,
    /// An update or a delete without `prev`.
    #[error("what was there before is not told")]
    PrevMissing,
    /// A create with `prev`.
    #[error("a create has no record before")]
    PrevForbidden,
    /// The signed tree holds nothing where something was written.
    #[error("the signed tree holds no record there")]
    NotInTree,
    /// The signed tree holds something else than was written.
    #[error("the signed tree holds another record there")]
    OtherInTree,
    /// The signed tree still holds a record that was deleted.
    #[error("the signed tree still holds a record there")]
    StillInTree,
}

impl SyncRejection<'_> {
    /// The stable name of the rule that was broken.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Frame(error) | Self::Limit(error) | Self::Archive(error) => frame_code(error),
            Self::Did(_) => "event/did",
            Self::SyncLimit { .. } => "event/limit",
            Self::Host => "event/host",
            Self::RevSyntax { .. } => "event/rev-syntax",
            Self::FutureRev { .. } => "event/future-rev",
            Self::Root => "event/root",
            Self::CommitMissing(_) => "commit/missing-block",
            Self::CommitCid { .. } => "event/commit-cid",
            Self::Commit(error) => object_code(error),
            Self::DidMismatch(_) => "event/did-mismatch",
            Self::RevMismatch(_) => "event/rev-mismatch",
            Self::Signature(fault) => signature_code(*fault),
            Self::NoKey => "signature/no-key",
            Self::TooBig => "event/too-big",
            Self::Rebase => "event/rebase",
            Self::PrevDataMissing => "event/prev-data-missing",
            Self::Path { .. } => "event/path",
            Self::DuplicatePath(_) => "event/duplicate-path",
            Self::Op { .. } => "event/op",
            Self::RecordMissing(_) => "event/record-missing",
            Self::RecordCid(_) => "record/link",
            Self::PartialTree(_) => "event/partial-tree",
            Self::Tree(error) => error.fault.code(),
            Self::Inversion { .. } => "event/inversion",
            Self::Time(_) => "event/time",
        }
    }

    /// The row of the [table of checks](super#the-table-of-checks) that it stands for.
    pub fn row(&self) -> u8 {
        match self {
            Self::Frame(_) => 1,
            Self::Did(_) => 2,
            Self::Limit(_) | Self::SyncLimit { .. } => 3,
            Self::Host => 4,
            Self::RevSyntax { .. } => 6,
            Self::FutureRev { .. } => 7,
            Self::Archive(_) | Self::Root | Self::CommitMissing(_) => 8,
            Self::CommitCid { .. } => 9,
            Self::Commit(_) | Self::DidMismatch(_) | Self::RevMismatch(_) => 10,
            Self::Signature(_) | Self::NoKey => 11,
            Self::TooBig | Self::Rebase => 12,
            Self::PrevDataMissing => 13,
            Self::Path { .. }
            | Self::DuplicatePath(_)
            | Self::Op { .. }
            | Self::RecordMissing(_)
            | Self::RecordCid(_)
            | Self::PartialTree(_)
            | Self::Tree(_) => 16,
            Self::Inversion { .. } => 17,
            Self::Time(_) => 18,
        }
    }

    /// Whether a fresh look at the account's DID document may change the verdict: its key may be new.
    /// Worth one look, and judging the frame once more.
    pub fn may_be_stale_key(&self) -> bool {
        matches!(self, Self::NoKey | Self::Host)
            || matches!(self, Self::Signature(SignatureFault::Mismatch | SignatureFault::Key))
    }
}

impl From<TreeError> for SyncRejection<'_> {
    #[cold]
    fn from(error: TreeError) -> Self {
        match (error.cid, error.fault) {
            (Some(cid), TreeFault::Missing) => Self::PartialTree(cid),
            _ => Self::Tree(error),
        }
    }
}

impl From<FrameError> for SyncRejection<'_> {
    /// The row that a frame's fault belongs to.
    #[cold]
    fn from(error: FrameError) -> Self {
        match error.fault {
            FrameFault::FrameLimit(_)
            | FrameFault::BlocksLimit(_)
            | FrameFault::OpsLimit(_)
            | FrameFault::RecordLimit(_) => Self::Limit(error),
            FrameFault::Car(_) | FrameFault::Block(_) => Self::Archive(error),
            _ => Self::Frame(error),
        }
    }
}

/// The stable name of what is wrong with a frame.
fn frame_code(error: &FrameError) -> &'static str {
    match error.fault {
        FrameFault::Cbor(Reason::Expected(_)) | FrameFault::Missing(_) | FrameFault::Field(_) => {
            "frame/field"
        }
        FrameFault::FrameLimit(_) => "frame/limit",
        FrameFault::BlocksLimit(_) | FrameFault::OpsLimit(_) => "event/limit",
        FrameFault::RecordLimit(_) => "record/size",
        FrameFault::Car(fault) => fault.code(),
        FrameFault::Block(_) => "frame/block",
        _ => "frame/cbor",
    }
}
