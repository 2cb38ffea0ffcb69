//! The rows of `parts` and `part_records`.

use arrow_array::{BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};

use crate::table::Table;
use crate::table_rows::{Columns, Key, Row, bytes, integers, optional_bytes, text, times};

/// The account, the revision and the collections of a part.
pub(crate) type PartPlace<'a> = [&'a str; 3];

/// The columns that say which part a row is of.
#[derive(Debug)]
pub(crate) struct PlaceColumns {
    did: StringArray,
    rev: StringArray,
    collections: StringArray,
}

impl PlaceColumns {
    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
            rev: text(rows, "rev"),
            collections: text(rows, "collections"),
        }
    }

    fn at(&self, row: usize) -> PartPlace<'_> {
        [&self.did, &self.rev, &self.collections].map(|column| column.value(row))
    }
}

/// The columns of `parts`.
#[derive(Debug)]
pub(crate) struct PartColumns {
    place: PlaceColumns,
    pub(crate) fetched: TimestampMicrosecondArray,
    proof: BinaryArray,
    pub(crate) records: Int64Array,
    pub(crate) key: StringArray,
}

impl Columns for PartColumns {
    const TABLE: Table = Table::Parts;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            place: PlaceColumns::new(rows),
            fetched: times(rows, "fetched"),
            proof: bytes(rows, "proof"),
            records: integers(rows, "records"),
            key: text(rows, "key"),
        }
    }

    fn key(&self, row: usize) -> Key {
        part_key(self.place.at(row))
    }
}

impl Row<PartColumns> {
    /// The account, the revision and the collections.
    pub(crate) fn part(&self) -> PartPlace<'_> {
        self.columns().place.at(self.index())
    }

    /// The commit and the nodes, as a CAR.
    pub(crate) fn proof(&self) -> &[u8] {
        self.columns().proof.value(self.index())
    }
}

/// The columns of `part_records`.
#[derive(Debug)]
pub(crate) struct PartRecordColumns {
    place: PlaceColumns,
    collection: StringArray,
    rkey: StringArray,
    cid: BinaryArray,
    record: BinaryArray,
}

impl Columns for PartRecordColumns {
    const TABLE: Table = Table::PartRecords;
    const IS_ONE_RUN: bool = true;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            place: PlaceColumns::new(rows),
            collection: text(rows, "collection"),
            rkey: text(rows, "rkey"),
            cid: bytes(rows, "cid"),
            record: bytes(rows, "record"),
        }
    }

    fn key(&self, row: usize) -> Key {
        part_key(self.place.at(row))
    }
}

impl Row<PartRecordColumns> {
    /// The account, the revision and the collections of the part.
    pub(crate) fn part(&self) -> PartPlace<'_> {
        self.columns().place.at(self.index())
    }

    /// The collection and the record key.
    pub(crate) fn path(&self) -> (&str, &str) {
        let (columns, index) = (self.columns(), self.index());
        (columns.collection.value(index), columns.rkey.value(index))
    }

    /// The CID, if it is stored.
    pub(crate) fn cid(&self) -> Option<&[u8]> {
        optional_bytes(&self.columns().cid, self.index())
    }

    /// The bytes of the record.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.columns().record.value(self.index())
    }
}

/// The place of a part, or of its records, in the order of its table.
pub(crate) fn part_key([did, rev, collections]: PartPlace<'_>) -> Key {
    // Before all characters of a revision, so that the order is the one of the two columns.
    let text = format!("{rev}\0{collections}");
    Key { did: Some(did.into()), number: 0, text: Some(text.into()) }
}
