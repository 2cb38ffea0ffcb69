//! The rows of `snapshots` and `records`.

use arrow_array::{BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};

use crate::signed_commit::StoredCommit;
use crate::table::Table;
use crate::table_rows::{
    Columns, Key, Row, RowRange, bytes, integers, optional_bytes, place, text, times,
};

/// The columns of `snapshots`.
#[derive(Debug)]
pub(crate) struct SnapshotColumns {
    pub(crate) did: StringArray,
    pub(crate) fetched: TimestampMicrosecondArray,
    pub(crate) rev: StringArray,
    sig: BinaryArray,
    pub(crate) data: BinaryArray,
    commit_block: BinaryArray,
    pub(crate) records: Int64Array,
    key: StringArray,
}

impl Columns for SnapshotColumns {
    const TABLE: Table = Table::Snapshots;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
            fetched: times(rows, "fetched"),
            rev: text(rows, "rev"),
            sig: bytes(rows, "sig"),
            data: bytes(rows, "data"),
            commit_block: bytes(rows, "commit_block"),
            records: integers(rows, "records"),
            key: text(rows, "key"),
        }
    }

    fn key(&self, row: usize) -> Key {
        place(self.did.value(row), self.rev.value(row))
    }

    fn is_one_place(&self, a: usize, b: usize) -> bool {
        self.rev.value(a) == self.rev.value(b) && self.did.value(a) == self.did.value(b)
    }
}

impl Row<SnapshotColumns> {
    /// The account and the revision.
    pub(crate) fn revision(&self) -> (&str, &str) {
        (self.columns().did.value(self.index()), self.columns().rev.value(self.index()))
    }

    /// The account's key.
    pub(crate) fn key(&self) -> &str {
        self.columns().key.value(self.index())
    }

    /// The commit.
    pub(crate) fn commit(&self) -> StoredCommit<'_> {
        let (columns, index) = (self.columns(), self.index());
        StoredCommit {
            did: columns.did.value(index),
            rev: columns.rev.value(index),
            sig: columns.sig.value(index),
            block: optional_bytes(&columns.commit_block, index),
        }
    }

    /// Number of records.
    pub(crate) fn records(&self) -> i64 {
        self.columns().records.value(self.index())
    }
}

/// The columns of `records`.
#[derive(Debug)]
pub(crate) struct RecordColumns {
    pub(crate) did: StringArray,
    pub(crate) rev: StringArray,
    pub(crate) collection: StringArray,
    pub(crate) rkey: StringArray,
    pub(crate) cid: BinaryArray,
    pub(crate) record: BinaryArray,
}

impl Columns for RecordColumns {
    const TABLE: Table = Table::Records;
    const IS_ONE_RUN: bool = true;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
            rev: text(rows, "rev"),
            collection: text(rows, "collection"),
            rkey: text(rows, "rkey"),
            cid: bytes(rows, "cid"),
            record: bytes(rows, "record"),
        }
    }

    fn key(&self, row: usize) -> Key {
        place(self.did.value(row), self.rev.value(row))
    }

    fn is_one_place(&self, a: usize, b: usize) -> bool {
        self.rev.value(a) == self.rev.value(b) && self.did.value(a) == self.did.value(b)
    }
}

impl RowRange<RecordColumns> {
    /// The account and the revision of the first row.
    pub(crate) fn revision(&self) -> Option<(&str, &str)> {
        let (columns, index) = (self.columns(), self.range().next()?);
        Some((columns.did.value(index), columns.rev.value(index)))
    }
}

impl Row<RecordColumns> {
    /// The account and the revision.
    pub(crate) fn revision(&self) -> (&str, &str) {
        (self.columns().did.value(self.index()), self.columns().rev.value(self.index()))
    }

    /// The collection and the record key.
    pub(crate) fn path(&self) -> (&str, &str) {
        let (columns, index) = (self.columns(), self.index());
        (columns.collection.value(index), columns.rkey.value(index))
    }

    /// The bytes of the record.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.columns().record.value(self.index())
    }
}
