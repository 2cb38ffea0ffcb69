//! The rows of `ops`.

use arrow_array::cast::AsArray;
use arrow_array::types::Int16Type;
use arrow_array::{Array, BinaryArray, Int16Array, Int64Array, RecordBatch, StringArray};

use crate::file_batches::column;
use crate::table::Table;
use crate::table_rows::{Columns, Key, Row, bytes, integers, optional_bytes, text};

/// The columns of `ops`.
#[derive(Debug)]
pub(crate) struct OpColumns {
    did: StringArray,
    arrival: Int64Array,
    idx: Int16Array,
    prev: BinaryArray,
    action: StringArray,
    collection: StringArray,
    rkey: StringArray,
    cid: BinaryArray,
    record: BinaryArray,
}

impl Columns for OpColumns {
    const TABLE: Table = Table::Ops;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
            arrival: integers(rows, "arrival"),
            idx: column(rows, "idx").as_primitive::<Int16Type>().clone(),
            prev: bytes(rows, "prev"),
            action: text(rows, "action"),
            collection: text(rows, "collection"),
            rkey: text(rows, "rkey"),
            cid: bytes(rows, "cid"),
            record: bytes(rows, "record"),
        }
    }

    fn key(&self, row: usize) -> Key {
        Key { did: Some(self.did.value(row).into()), number: self.arrival.value(row), text: None }
    }

    fn is_one_place(&self, a: usize, b: usize) -> bool {
        self.arrival.value(a) == self.arrival.value(b) && self.did.value(a) == self.did.value(b)
    }
}

impl Row<OpColumns> {
    pub(crate) fn did(&self) -> &str {
        self.columns().did.value(self.index())
    }

    /// The place among the operations of the commit.
    pub(crate) fn idx(&self) -> i16 {
        self.columns().idx.value(self.index())
    }

    /// Whether it names the record before.
    pub(crate) fn has_prev(&self) -> bool {
        self.columns().prev.is_valid(self.index())
    }

    pub(crate) fn arrival(&self) -> i64 {
        self.columns().arrival.value(self.index())
    }

    pub(crate) fn action(&self) -> &str {
        self.columns().action.value(self.index())
    }

    /// The collection and the record key.
    pub(crate) fn path(&self) -> (&str, &str) {
        let (columns, index) = (self.columns(), self.index());
        (columns.collection.value(index), columns.rkey.value(index))
    }

    /// The CID of the record, if it is stored, and its bytes, if they are.
    pub(crate) fn record(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        let (columns, index) = (self.columns(), self.index());
        (optional_bytes(&columns.cid, index), optional_bytes(&columns.record, index))
    }
}
