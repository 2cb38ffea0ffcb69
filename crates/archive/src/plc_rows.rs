//! The rows of `plc_ops`.

use arrow_array::cast::AsArray;
use arrow_array::{
    BinaryArray, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};

use crate::file_batches::column;
use crate::table::Table;
use crate::table_rows::{Columns, Key, Row, bytes, integers, text, times};

/// The columns of `plc_ops`.
#[derive(Debug)]
pub(crate) struct PlcColumns {
    did: StringArray,
    fetched: TimestampMicrosecondArray,
    seq: Int64Array,
    cid: BinaryArray,
    created: TimestampMicrosecondArray,
    nullified: BooleanArray,
    op: BinaryArray,
}

impl Columns for PlcColumns {
    const TABLE: Table = Table::PlcOps;
    const IS_ONE_RUN: bool = true;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
            fetched: times(rows, "fetched"),
            seq: integers(rows, "seq"),
            cid: bytes(rows, "cid"),
            created: times(rows, "created"),
            nullified: column(rows, "nullified").as_boolean().clone(),
            op: bytes(rows, "op"),
        }
    }

    fn key(&self, row: usize) -> Key {
        let did = Some(self.did.value(row).into());
        Key { did, number: self.fetched.value(row), text: None }
    }
}

impl Row<PlcColumns> {
    pub(crate) fn did(&self) -> &str {
        self.columns().did.value(self.index())
    }

    /// When the history was fetched, in microseconds since 1970.
    pub(crate) fn fetched(&self) -> i64 {
        self.columns().fetched.value(self.index())
    }

    /// The place of the operation in the history.
    pub(crate) fn seq(&self) -> i64 {
        self.columns().seq.value(self.index())
    }

    /// The bytes of the CID.
    pub(crate) fn cid(&self) -> &[u8] {
        self.columns().cid.value(self.index())
    }

    /// When the directory accepted the operation, in microseconds since 1970.
    pub(crate) fn created(&self) -> i64 {
        self.columns().created.value(self.index())
    }

    /// Whether a later operation nullified it.
    pub(crate) fn is_nullified(&self) -> bool {
        self.columns().nullified.value(self.index())
    }

    /// The signed operation, DAG-CBOR.
    pub(crate) fn op(&self) -> &[u8] {
        self.columns().op.value(self.index())
    }
}
