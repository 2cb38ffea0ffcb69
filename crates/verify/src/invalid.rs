//! Signed records that are not records of the protocol: their bytes are not canonical DAG-CBOR, not a map, or
//! too many.
//!
//! The account signed such a record by its CID, and readers of the same bytes may not agree on its meaning. By
//! default the event or the repository around it is verified, and the record is delivered as invalid: by path,
//! CID and broken rule, with its bytes, and never with a value. A policy or options with `strict_records`
//! reject the whole instead.
//!
//! ```
//! use wireproof::verify::InvalidRecord;
//! use wireproof::verify::sync::Outcome;
//!
//! fn apply(outcome: &Outcome<'_>) {
//!     let Outcome::Commit(commit, _) = outcome else { return };
//!     for op in commit.ops {
//!         match (InvalidRecord::of_op(op), op.record) {
//!             (Some(invalid), _) => println!("{}: {invalid}", invalid.error.code()),
//!             (None, Some(block)) => println!("{} is {:?}", op.path, block.value),
//!             (None, None) => println!("{} is deleted", op.path),
//!         }
//!     }
//! }
//! ```

use std::fmt;

use atproto::event::{Block, Commit, RepoOp};
use atproto::repo::Record;
use codec::Cid;
use codec::cbor::{self, DecodeError, Reason};

/// A broken rule of records, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}, at byte {offset} of the record")]
pub struct RecordError {
    /// Bytes from the start of the record to the part that breaks the rule.
    pub offset: usize,
    /// The broken rule.
    pub fault: RecordFault,
}

/// A rule of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// The bytes are not canonical DAG-CBOR.
    #[error("record: {0}")]
    Cbor(Reason),
    /// The item is not a map.
    #[error("a record must be a map")]
    Shape,
    /// The record exceeds the size limit.
    #[error("record exceeds the limit of {0} bytes")]
    Size(usize),
}

/// An invalid record in a verified event or repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRecord {
    /// The path.
    pub path: Box<str>,
    /// The CID, which is the hash of the bytes.
    pub cid: Cid,
    /// The broken rule, and the place in the record.
    pub error: RecordError,
}

/// The number of invalid records, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvalidRecords {
    /// Number of such records.
    pub records: u64,
    /// The first, in the order of paths, or of operations.
    pub first: Option<InvalidRecord>,
}

impl RecordError {
    /// The stable code of the broken rule.
    pub fn code(&self) -> &'static str {
        self.fault.code()
    }
}

impl RecordFault {
    /// The stable code of the rule.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Cbor(_) => "record/cbor",
            Self::Shape => "record/shape",
            Self::Size(_) => "record/size",
        }
    }
}

impl InvalidRecord {
    /// The record that an operation writes, if it is invalid. Only a decoded event is judged here: the decoder
    /// has checked its size.
    pub fn of_op(op: &RepoOp<'_>) -> Option<Self> {
        let block = op.record.filter(|block| !is_valid(block))?;
        Self::find(op.path, block.cid.to_cid()?, block.data, usize::MAX)
    }

    /// A record of a repository, if it is invalid under this size limit in bytes.
    pub fn of_record(record: &Record<'_>, max_bytes: usize) -> Option<Self> {
        Self::find(&record.path, record.cid, record.block, max_bytes)
    }

    pub(crate) fn find(path: &str, cid: Cid, block: &[u8], max_bytes: usize) -> Option<Self> {
        let error = check_record(block, max_bytes).err()?;
        Some(Self { path: path.into(), cid, error })
    }
}

impl InvalidRecords {
    /// Counts the invalid records that an event creates or updates.
    pub fn of_commit(commit: &Commit<'_>) -> Self {
        let is_invalid = |op: &&RepoOp<'_>| op.record.is_some_and(|block| !is_valid(block));
        let mut invalid = commit.ops.iter().filter(is_invalid);
        // One block can be the record of many operations: only the first is read again.
        let first = invalid.next().and_then(InvalidRecord::of_op);
        Self { records: u64::from(first.is_some()) + invalid.count() as u64, first }
    }
}

/// Whether the block of an operation is a valid record, as the decoder found.
#[inline]
fn is_valid(block: &Block<'_>) -> bool {
    block.is_canonical && is_map(block.data)
}

/// Checks the bytes of one record.
#[inline]
pub(crate) fn check_record(block: &[u8], max_bytes: usize) -> Result<(), RecordError> {
    if block.len() > max_bytes {
        return fail(0, RecordFault::Size(max_bytes));
    }
    match cbor::validate(block) {
        Ok(()) if is_map(block) => Ok(()),
        Ok(()) => fail(0, RecordFault::Shape),
        Err(DecodeError { offset, reason }) => fail(offset, RecordFault::Cbor(reason)),
    }
}

/// Whether an item is a map, by the major type in the top three bits of its first byte.
#[inline]
fn is_map(item: &[u8]) -> bool {
    item.first().is_some_and(|head| head >> 5 == 5)
}

#[cold]
fn fail(offset: usize, fault: RecordFault) -> Result<(), RecordError> {
    Err(RecordError { offset, fault })
}

impl fmt::Display for InvalidRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.path, self.error)
    }
}

#[cfg(test)]
mod tests {
    use atproto::event::Action;
    use codec::car::HashProof;
    use codec::cid::Codec;

    use super::*;

    fn block<'a>(cid: &'a Cid, data: &'a [u8], is_canonical: bool) -> Block<'a> {
        Block { cid: cid.as_cid_ref(), data, value: None, is_canonical, proof: HashProof::Checked }
    }

    fn create<'a>(path: &'a str, record: &'a Block<'a>) -> RepoOp<'a> {
        let (cid, record) = (Some(record.cid), Some(record));
        RepoOp { action: Action::Create, path, cid, prev: None, record }
    }

    fn commit<'a>(commit: Cid, ops: &'a [RepoOp<'a>]) -> Commit<'a> {
        Commit {
            seq: 1,
            repo: "did:web:a.test",
            commit,
            rev: "3mptbypluud2a",
            since: None,
            car: b"",
            root: None,
            blocks: &[],
            ops,
            prev_data: None,
            time: "2026-07-04T14:38:07.517Z",
            blobs: None,
            rebase: None,
            too_big: None,
        }
    }

    #[test]
    fn invalid_records_of_a_commit_are_counted_for_each_operation() {
        let data: [&[u8]; 2] = [b"\xa0", b"\xa1\x61a\x18\x01"];
        let cids = data.map(|data| Cid::of(Codec::DagCbor, data));
        let (valid, wide) = (block(&cids[0], data[0], true), block(&cids[1], data[1], false));
        let ops = [create("a.b.c/1", &valid), create("a.b.c/2", &wide), create("a.b.c/3", &wide)];
        let found = InvalidRecords::of_commit(&commit(cids[0], &ops));
        let first = found.first.expect("an invalid record");
        assert_eq!((found.records, &*first.path, first.cid), (2, "a.b.c/2", cids[1]));
        assert_eq!((first.error.code(), first.error.offset), ("record/cbor", 3));
        assert_eq!(InvalidRecord::of_op(&ops[0]), None);
    }

    #[test]
    fn a_record_that_is_canonical_and_not_a_map_is_invalid() {
        let cid = Cid::of(Codec::DagCbor, b"\x80");
        let array = block(&cid, b"\x80", true);
        let invalid = InvalidRecord::of_op(&create("a.b.c/4", &array)).expect("an invalid record");
        let text = r#""a.b.c/4": a record must be a map, at byte 0 of the record"#;
        assert_eq!((invalid.error.code(), &*invalid.to_string()), ("record/shape", text));
    }

    #[test]
    fn a_delete_has_no_invalid_record() {
        let path = "a.b.c/1";
        let delete = RepoOp { action: Action::Delete, path, cid: None, prev: None, record: None };
        let ops = [delete];
        let commit = commit(Cid::of(Codec::DagCbor, b"\xa0"), &ops);
        assert_eq!(InvalidRecords::of_commit(&commit), InvalidRecords::default());
    }
}
