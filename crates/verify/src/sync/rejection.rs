//! The reasons for rejecting an event: one variant per row of the table of checks, or per rule within
//! a row.

use atproto::commit::CommitError;
use atproto::event::{FrameError, FrameFault};
use atproto::mst::{TreeError, TreeFault};
use atproto::syntax::{DatetimeBuf, SyntaxError, Tid};
use codec::Cid;
use codec::cbor::Reason;
use crypto::SignatureFault;

use crate::RecordError;
use crate::commit::{object_code, signature_code};

/// Why an event is rejected. Texts are borrowed from the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyncRejection<'a> {
    /// The frame is not a message (row 1).
    #[error("{0}")]
    Frame(FrameError),
    /// The account is not a DID, or not in its normal form (row 2).
    #[error("the account {0:?} is not a DID in its normal form")]
    Did(&'a str),
    /// A part of the frame exceeds its limit (row 3).
    #[error("{0}")]
    Limit(FrameError),
    /// The CAR slice of a `#sync` exceeds its limit (row 3).
    #[error("CAR slice of {len} bytes exceeds the limit of {limit} bytes for #sync")]
    SyncLimit {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The account is hosted by another server (row 4).
    #[error("the account is not hosted by the server that sent the event")]
    Host,
    /// A revision is not a TID (row 6).
    #[error("field `{field}`: {error}")]
    RevSyntax {
        /// The field: `rev` or `since`.
        field: &'static str,
        /// The syntax error.
        error: SyntaxError,
    },
    /// The revision is too far in the future (row 7).
    #[error(
        "revision {rev} is of {}, more than {} s later than now, {}",
        time(rev.micros()),
        window_micros / 1_000_000,
        time(*now_micros)
    )]
    FutureRev {
        /// The revision.
        rev: Tid,
        /// The time of the judgement in microseconds since 1970.
        now_micros: u64,
        /// The window of the policy in microseconds.
        window_micros: u64,
    },
    /// The CAR slice is not an archive of blocks with correct hashes (row 8).
    #[error("{0}")]
    Archive(FrameError),
    /// The CAR slice has no root, or one that cannot be a commit (row 8).
    #[error("the CAR slice has no root that names a commit")]
    Root,
    /// The CAR slice lacks the block of its root (row 8).
    #[error("the CAR slice lacks the block of the commit {0}")]
    CommitMissing(Cid),
    /// The event and its CAR slice name different commits (row 9).
    #[error("the event names the commit {claimed}, its CAR slice has the root {root}")]
    CommitCid {
        /// The commit that the event names.
        claimed: Cid,
        /// The root of the CAR slice.
        root: Cid,
    },
    /// The block of the commit is not a commit object of version 3 (row 10).
    #[error("commit object: {0}")]
    Commit(CommitError),
    /// The commit object names another account (row 10).
    #[error("the commit object is of the account {0:?}, the event is of another")]
    DidMismatch(&'a str),
    /// The commit object has another revision (row 10).
    #[error("the commit object has the revision {0:?}, the event has another")]
    RevMismatch(&'a str),
    /// The signature is malformed, malleable, or not of the account's key (row 11).
    #[error("commit signature: {0}")]
    Signature(SignatureFault),
    /// The account's key is not known, so the signature could not be checked (row 11).
    #[error("the account's key is not known")]
    NoKey,
    /// The event is marked `tooBig`: its contents are incomplete (row 12).
    #[error("the event is marked `tooBig`, its contents are incomplete")]
    TooBig,
    /// The event is marked `rebase` (row 12).
    #[error("the event is marked `rebase`")]
    Rebase,
    /// The event does not name the tree it starts from (row 13).
    #[error("the event lacks `prevData`")]
    PrevDataMissing,
    /// An operation's path is not a collection and a record key (row 16).
    #[error("operation on {path:?}: {error}")]
    Path {
        /// The operation's path.
        path: &'a str,
        /// The syntax error.
        error: SyntaxError,
    },
    /// Two operations have the same path (row 16).
    #[error("two operations have the path {0:?}")]
    DuplicatePath(&'a str),
    /// An operation has a CID that its action forbids, or lacks one that it needs (row 16).
    #[error("operation on {path:?}: {fault}")]
    Op {
        /// The operation's path.
        path: &'a str,
        /// The broken rule.
        fault: OpFault,
    },
    /// The record of a create or an update is not in the CAR slice (row 16).
    #[error("the record at {0:?} is not in the CAR slice")]
    RecordMissing(&'a str),
    /// The record's CID is not of DAG-CBOR under SHA-256, so that nothing is proved (row 16).
    #[error("the CID of the record at {0:?} is not of DAG-CBOR under SHA-256")]
    RecordCid(&'a str),
    /// A record is invalid, and the policy is strict about records (row 16).
    #[error("operation on {path:?}: {error}")]
    Record {
        /// The operation's path.
        path: &'a str,
        /// The broken rule, and the place in the record.
        error: RecordError,
    },
    /// A required tree node is not in the CAR slice (row 16).
    #[error("the tree node {0} is not in the CAR slice")]
    PartialTree(Cid),
    /// A tree node is malformed, or breaks a rule of trees (row 16).
    #[error("{0}")]
    Tree(TreeError),
    /// Undoing the operations leads to another tree: they are not the whole change (row 17).
    #[error("undoing the operations leads to the tree {found}, not to `prevData` {prev_data}")]
    Inversion {
        /// The tree that the event names as its start.
        prev_data: Cid,
        /// The tree found by undoing the operations.
        found: Cid,
    },
    /// The event's time is not a datetime (row 18).
    #[error("`time` {0:?} is not a datetime")]
    Time(&'a str),
    /// The event's sequence number is not in 1 … 2⁵³ − 1 (row 19).
    #[error("`seq` {0} is not in 1 … 2^53 - 1")]
    Seq(i64),
    /// The handle of an `#identity` is not a handle (row 20).
    #[error("`handle` {text:?}: {error}")]
    Handle {
        /// The handle of the event.
        text: &'a str,
        /// The syntax error.
        error: SyntaxError,
    },
}

/// The rule that an operation breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpFault {
    /// A create or an update without `cid`.
    #[error("a create or update requires `cid`")]
    CidMissing,
    /// A delete with `cid`.
    #[error("a delete forbids `cid`")]
    CidForbidden,
    /// An update or a delete without `prev`.
    #[error("an update or delete requires `prev`")]
    PrevMissing,
    /// A create with `prev`.
    #[error("a create forbids `prev`")]
    PrevForbidden,
    /// The signed tree has no record where the operation wrote one.
    #[error("the signed tree has no record at this path")]
    NotInTree,
    /// The signed tree has another record than the operation wrote.
    #[error("the signed tree has another record at this path")]
    OtherInTree,
    /// The signed tree still has the record that the operation deleted.
    #[error("the signed tree still has a record at this path")]
    StillInTree,
}

impl SyncRejection<'_> {
    /// The stable code of the broken rule.
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
            Self::Record { error, .. } => error.code(),
            Self::PartialTree(_) => "event/partial-tree",
            Self::Tree(error) => error.fault.code(),
            Self::Inversion { .. } => "event/inversion",
            Self::Time(_) => "event/time",
            Self::Seq(_) => "event/seq",
            Self::Handle { .. } => "event/handle",
        }
    }

    /// The row of the [table of checks](super#the-table-of-checks).
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
            | Self::Record { .. }
            | Self::PartialTree(_)
            | Self::Tree(_) => 16,
            Self::Inversion { .. } => 17,
            Self::Time(_) => 18,
            Self::Seq(_) => 19,
            Self::Handle { .. } => 20,
        }
    }

    /// Whether the verdict may change with a fresh DID document, because the key or host that was used
    /// may be outdated. Worth one lookup, and judging the frame once more.
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
    /// The rejection of the row that a frame's fault belongs to.
    #[cold]
    fn from(error: FrameError) -> Self {
        match error.fault {
            FrameFault::FrameLimit(_)
            | FrameFault::BlocksLimit(_)
            | FrameFault::OpsLimit(_)
            | FrameFault::LabelsLimit(_)
            | FrameFault::RecordLimit(_) => Self::Limit(error),
            FrameFault::Car(_) => Self::Archive(error),
            _ => Self::Frame(error),
        }
    }
}

/// The stable code of a frame's fault.
fn frame_code(error: &FrameError) -> &'static str {
    match error.fault {
        FrameFault::Cbor(Reason::Expected(_)) | FrameFault::Missing(_) | FrameFault::Field(_) => {
            "frame/field"
        }
        FrameFault::FrameLimit(_) => "frame/limit",
        FrameFault::BlocksLimit(_) | FrameFault::OpsLimit(_) | FrameFault::LabelsLimit(_) => {
            "event/limit"
        }
        FrameFault::RecordLimit(_) => "record/size",
        FrameFault::Car(fault) => fault.code(),
        _ => "frame/cbor",
    }
}

/// A moment in microseconds since 1970 as a datetime; after the year 9999 as the number.
fn time(micros: u64) -> String {
    let datetime = i64::try_from(micros).ok().and_then(DatetimeBuf::from_unix_micros);
    datetime.map_or_else(|| format!("{micros} µs since 1970"), |datetime| datetime.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_in_the_future_is_reported_with_readable_times() {
        let rev = Tid::new(1_782_864_600_000_000, 0);
        let (now_micros, window_micros) = (1_782_864_000_000_000, 300_000_000);
        let text = SyncRejection::FutureRev { rev, now_micros, window_micros }.to_string();
        let expected = format!(
            "revision {rev} is of 2026-07-01T00:10:00.000Z, more than 300 s later than now, \
             2026-07-01T00:00:00.000Z"
        );
        assert_eq!(text, expected);
    }
}
