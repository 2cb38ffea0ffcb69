//! The rows of `blobs`.

use arrow_array::{BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use codec::Cid;

use crate::table::Table;
use crate::table_rows::{Columns, Key, Row, bytes, integers, text, times};

/// The columns of `blobs`.
#[derive(Debug)]
pub(crate) struct BlobColumns {
    did: StringArray,
    fetched: TimestampMicrosecondArray,
    cid: BinaryArray,
    size: Int64Array,
}

impl Columns for BlobColumns {
    const TABLE: Table = Table::Blobs;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
            fetched: times(rows, "fetched"),
            cid: bytes(rows, "cid"),
            size: integers(rows, "size"),
        }
    }

    fn key(&self, row: usize) -> Key {
        let did = Some(self.did.value(row).into());
        Key { did, number: self.fetched.value(row), text: None }
    }
}

impl Row<BlobColumns> {
    pub(crate) fn did(&self) -> &str {
        self.columns().did.value(self.index())
    }

    /// When the blob was fetched, in microseconds since 1970.
    pub(crate) fn fetched(&self) -> i64 {
        self.columns().fetched.value(self.index())
    }

    /// The CID; `None` if it is none of the protocol.
    pub(crate) fn cid(&self) -> Option<Cid> {
        Cid::from_bytes(self.columns().cid.value(self.index()))
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> i64 {
        self.columns().size.value(self.index())
    }
}
