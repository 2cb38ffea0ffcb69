//! Records as columns, without an object of Python for any of them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::{io, thread};

use arrow_array::builder::{LargeBinaryBuilder, LargeStringBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use codec::{Cid, CidRef, json};
use kernels::{prefetch, utf8};
use pyo3::prelude::*;

use crate::arguments::check_columns;

/// Which columns of records are made, in which order.
pub(crate) struct RecordSelection(Vec<usize>);

impl RecordSelection {
    pub(crate) fn all() -> Self {
        Self((0..COLUMNS).collect())
    }

    /// The columns of these names in their order, or all.
    pub(crate) fn new(columns: Option<&[String]>) -> PyResult<Self> {
        let Some(columns) = columns else { return Ok(Self::all()) };
        let schema = Schema::new(record_fields(false).to_vec());
        check_columns("a record", &schema, columns)?;
        Ok(Self(columns.iter().filter_map(|name| schema.index_of(name).ok()).collect()))
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        let fields = record_fields(false);
        Arc::new(Schema::new(self.0.iter().map(|index| fields[*index].clone()).collect::<Vec<_>>()))
    }
}

/// A record of a repository.
pub(crate) struct RecordRow<'a> {
    pub(crate) path: &'a str,
    pub(crate) cid: CidRef<'a>,
    pub(crate) block: &'a [u8],
}

/// The records `0..count` in batches, which are made on up to `threads` threads. `row` gives the record of a number.
///
/// # Errors
/// If a thread cannot be started.
pub(crate) fn record_batches<'a>(
    count: usize,
    row: impl Fn(usize) -> RecordRow<'a> + Sync,
    selection: &RecordSelection,
    threads: NonZeroUsize,
) -> io::Result<Vec<RecordBatch>> {
    let batches = count.div_ceil(BATCH_RECORDS);
    let share = batches.div_ceil(threads.get()).max(1);
    let make = |first: usize| -> Vec<RecordBatch> {
        let own = first..batches.min(first + share);
        own.map(|number| batch(number * BATCH_RECORDS, count, &row, selection)).collect()
    };
    thread::scope(|scope| {
        let spawn = |first| thread::Builder::new().spawn_scoped(scope, move || make(first));
        let others = (share..batches).step_by(share).map(spawn).collect::<io::Result<Vec<_>>>()?;
        let mut all = make(0);
        for other in others {
            all.extend(other.join().expect("a thread that makes columns does not panic"));
        }
        Ok(all)
    })
}

/// The batch that begins with the record `first` of `count`.
fn batch<'a>(
    first: usize,
    count: usize,
    row: impl Fn(usize) -> RecordRow<'a>,
    selection: &RecordSelection,
) -> RecordBatch {
    let numbers = first..count.min(first + BATCH_RECORDS);
    let (mut path_bytes, mut record_bytes) = (0, 0);
    for RecordRow { path, block, .. } in numbers.clone().map(&row) {
        path_bytes += path.len();
        record_bytes += block.len();
    }
    let mut columns =
        RecordColumns::with_capacity(selection, numbers.len(), path_bytes, record_bytes);
    let reads_blocks = columns.record.is_some() || columns.json.is_some();
    for number in numbers {
        // Records are in memory in another order than their paths: waiting for one at a time takes 5 to 15 % longer.
        if reads_blocks && number + PREFETCH_DISTANCE < count {
            prefetch::bytes(row(number + PREFETCH_DISTANCE).block);
        }
        let RecordRow { path, cid, block } = row(number);
        columns.push(path, Some(cid), Some(block));
    }
    RecordBatch::try_new(selection.schema(), columns.finish()).expect("the columns of the schema")
}

/// The selected columns of `collection`, `rkey`, `cid`, `record` and `json`.
pub(crate) struct RecordColumns {
    order: Vec<usize>,
    collection: Option<StringBuilder>,
    rkey: Option<StringBuilder>,
    cid: Option<StringBuilder>,
    record: Option<LargeBinaryBuilder>,
    json: Option<LargeStringBuilder>,
    /// The JSON of a record.
    text: Vec<u8>,
}

impl RecordColumns {
    /// All columns.
    pub(crate) fn new() -> Self {
        Self::with_capacity(&RecordSelection::all(), 0, 0, 0)
    }

    /// Memory is reserved once: builders that grow copy their contents.
    fn with_capacity(
        RecordSelection(order): &RecordSelection,
        rows: usize,
        path_bytes: usize,
        record_bytes: usize,
    ) -> Self {
        let text = |column, bytes| {
            order.contains(&column).then(|| StringBuilder::with_capacity(rows, bytes))
        };
        Self {
            order: order.clone(),
            collection: text(COLLECTION, path_bytes),
            rkey: text(RKEY, path_bytes),
            cid: text(CID, rows * Cid::TEXT_LEN),
            record: order
                .contains(&RECORD)
                .then(|| LargeBinaryBuilder::with_capacity(rows, record_bytes)),
            // JSON is seldom half as long again as the bytes of a record.
            json: order
                .contains(&JSON)
                .then(|| LargeStringBuilder::with_capacity(rows, record_bytes * 3 / 2)),
            text: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, path: &str, cid: Option<CidRef<'_>>, block: Option<&[u8]>) {
        let (collection, rkey) = path.split_once('/').unwrap_or((path, ""));
        if let Some(column) = &mut self.collection {
            column.append_value(collection);
        }
        if let Some(column) = &mut self.rkey {
            column.append_value(rkey);
        }
        if let Some(column) = &mut self.cid {
            append_cid(column, cid);
        }
        if let Some(column) = &mut self.record {
            column.append_option(block);
        }
        if let Some(column) = &mut self.json {
            column.append_option(block.and_then(|block| json_of(block, &mut self.text)));
        }
    }

    pub(crate) fn finish(mut self) -> Vec<ArrayRef> {
        let mut made: [Option<ArrayRef>; COLUMNS] = [
            self.collection.as_mut().map(|column| Arc::new(column.finish()) as ArrayRef),
            self.rkey.as_mut().map(|column| Arc::new(column.finish()) as ArrayRef),
            self.cid.as_mut().map(|column| Arc::new(column.finish()) as ArrayRef),
            self.record.as_mut().map(|column| Arc::new(column.finish()) as ArrayRef),
            self.json.as_mut().map(|column| Arc::new(column.finish()) as ArrayRef),
        ];
        self.order.iter().filter_map(|column| made[*column].take()).collect()
    }
}

/// The JSON of a record, written to `text`. One that is not canonical has none, and is shown as its bytes.
fn json_of<'t>(block: &[u8], text: &'t mut Vec<u8>) -> Option<&'t str> {
    text.clear();
    json::append_item(text, block).ok()?;
    utf8::from_utf8(text)
}

/// Appends the text of a CID.
pub(crate) fn append_cid(column: &mut StringBuilder, cid: Option<CidRef<'_>>) {
    match cid {
        None => column.append_null(),
        Some(cid) => {
            cid.write_to(column).expect("memory is written");
            column.append_value("");
        }
    }
}

/// The columns of records; a deletion has neither CID nor record.
pub(crate) fn record_fields(has_deletions: bool) -> [Field; COLUMNS] {
    [
        Field::new("collection", DataType::Utf8, false),
        Field::new("rkey", DataType::Utf8, false),
        Field::new("cid", DataType::Utf8, has_deletions),
        Field::new("record", DataType::LargeBinary, has_deletions),
        Field::new("json", DataType::LargeUtf8, true),
    ]
}

/// The number of columns, and their indices.
const COLUMNS: usize = 5;
const COLLECTION: usize = 0;
const RKEY: usize = 1;
const CID: usize = 2;
const RECORD: usize = 3;
const JSON: usize = 4;

/// Records of a batch: enough that the work of a batch itself does not count, few enough for several threads.
const BATCH_RECORDS: usize = 1 << 14;

/// Number of records between prefetching one and reading it.
const PREFETCH_DISTANCE: usize = 8;
