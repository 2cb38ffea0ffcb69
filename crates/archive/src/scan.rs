//! Reads a table in its order: a merge of files that are sorted so.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{ArrowError, Schema};
use futures_util::{Stream, StreamExt, TryStreamExt};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::errors::ParquetError;

use crate::archive::Archive;
use crate::error::{ArchiveError, ArchiveFault};
use crate::event::ArchivedEvent;
use crate::hidden::HideList;
use crate::object_file::ObjectFile;
use crate::table::Table;

/// The columns of a few rows of a table.
pub(crate) trait Columns: Sized + Send + Sync + 'static {
    const TABLE: Table;

    /// The columns of rows that have the table's schema.
    fn new(rows: &RecordBatch) -> Self;

    /// The place of a row in the table's order.
    fn key(&self, row: usize) -> Key;
}

/// The place of a row in the order of its table; rows of the same place stay in the order of their files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    did: Option<Box<str>>,
    number: i64,
    text: Option<Box<str>>,
}

/// A row. Clones share the bytes.
#[derive(Debug)]
pub(crate) struct Row<C> {
    rows: Arc<FileRows<C>>,
    index: usize,
}

impl<C> Clone for Row<C> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), index: self.index }
    }
}

impl<C> Row<C> {
    pub(crate) fn columns(&self) -> &C {
        &self.rows.columns
    }

    /// The index in the columns.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The path of the file within the archive, and the row in it from 0.
    pub(crate) fn place(&self) -> (&str, u64) {
        (&self.rows.file, self.rows.first + self.index as u64)
    }
}

/// Rows that were read together.
#[derive(Debug)]
struct FileRows<C> {
    file: Arc<str>,
    /// The row of the file with which they begin.
    first: u64,
    columns: C,
}

/// The rows of a table in its order.
pub(crate) struct Scan<C> {
    files: Vec<ScannedFile<C>>,
    /// The files that have a row, by its place.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
}

impl Archive {
    /// Scans a table, as of now.
    pub(crate) async fn scan<C: Columns>(&self) -> Result<Scan<C>, ArchiveError> {
        let snapshot = self.snapshot(C::TABLE).await?;
        self.scan_files(snapshot.files.into_keys()).await
    }

    /// Scans files of a table, by their paths in its folder.
    pub(crate) async fn scan_files<C: Columns>(
        &self,
        paths: impl IntoIterator<Item = String>,
    ) -> Result<Scan<C>, ArchiveError> {
        let mut scan = Scan { files: Vec::new(), heads: BinaryHeap::new() };
        for path in paths {
            scan.files.push(ScannedFile::open(self, format!("{}/{path}", C::TABLE.name())).await?);
            scan.push_head(scan.files.len() - 1).await?;
        }
        Ok(scan)
    }

    /// The rows of a file of a table, by its path in the table's folder, with the columns of the table in their order.
    pub(crate) async fn batches(
        &self,
        table: Table,
        path: &str,
    ) -> Result<impl Stream<Item = Result<RecordBatch, ArchiveError>> + use<>, ArchiveError> {
        let path = format!("{}/{path}", table.name());
        let names: Vec<String> =
            table.schema().fields().iter().map(|field| field.name().clone()).collect();
        let batches = open(self, table, &path).await?;
        Ok(batches.map(move |batch| {
            let batch = batch.map_err(ArchiveError::at(&path))?;
            let columns = names.iter().map(|name| column(&batch, name).clone()).collect();
            RecordBatch::try_new(table.schema(), columns).map_err(ArchiveError::at(&path))
        }))
    }

    /// The events that are not hidden, account by account, those of an account in order of arrival.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn events(&self) -> Result<EventScan, ArchiveError> {
        Ok(EventScan { hidden: self.hide_list().await?, scan: self.scan().await? })
    }
}

impl<C: Columns> Scan<C> {
    /// The next row; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Row<C>>, ArchiveError> {
        let Some(Reverse((_, file))) = self.heads.pop() else { return Ok(None) };
        let row = self.files[file].head.pop_front().expect("the heap has files with a row");
        self.push_head(file).await?;
        Ok(Some(row))
    }

    async fn push_head(&mut self, file: usize) -> Result<(), ArchiveError> {
        if let Some(row) = self.files[file].fill().await? {
            let key = row.columns().key(row.index());
            self.heads.push(Reverse((key, file)));
        }
        Ok(())
    }
}

type Batches = Pin<Box<dyn Stream<Item = Result<RecordBatch, ParquetError>> + Send>>;

/// A file that is being read.
struct ScannedFile<C> {
    path: Arc<str>,
    batches: Batches,
    /// Rows so far.
    rows: u64,
    head: VecDeque<Row<C>>,
}

impl<C: Columns> ScannedFile<C> {
    async fn open(archive: &Archive, path: String) -> Result<Self, ArchiveError> {
        let batches = open(archive, C::TABLE, &path).await?;
        Ok(Self { path: path.into(), batches, rows: 0, head: VecDeque::new() })
    }

    /// The next row, which stays the next one.
    async fn fill(&mut self) -> Result<Option<&Row<C>>, ArchiveError> {
        while self.head.is_empty() {
            let batch = self.batches.try_next().await.map_err(ArchiveError::at(&self.path))?;
            let Some(batch) = batch else { return Ok(None) };
            let count = batch.num_rows();
            let rows =
                FileRows { file: self.path.clone(), first: self.rows, columns: C::new(&batch) };
            let rows = Arc::new(rows);
            self.rows += count as u64;
            self.head.extend((0..count).map(|index| Row { rows: rows.clone(), index }));
        }
        Ok(self.head.front())
    }
}

/// Opens a file of a table, by its path within the archive.
async fn open(archive: &Archive, table: Table, path: &str) -> Result<Batches, ArchiveError> {
    let storage = archive.storage();
    let object = ObjectFile { objects: storage.objects().clone(), path: storage.object(path) };
    let builder = ParquetRecordBatchStreamBuilder::new(object).await;
    let builder = builder.map_err(ArchiveError::at(path))?;
    check_columns(builder.schema(), &table.schema()).map_err(ArchiveError::at(path))?;
    let stream = builder.with_batch_size(BATCH_ROWS).build();
    Ok(Box::pin(stream.map_err(ArchiveError::at(path))?))
}

/// Checks that a file has the columns of its table with their types, whoever wrote it.
fn check_columns(found: &Schema, table: &Schema) -> Result<(), ArchiveFault> {
    for column in table.fields() {
        let (name, other) = (column.name(), found.field_with_name(column.name())?);
        if other.data_type() != column.data_type() {
            let (stored, stated) = (other.data_type(), column.data_type());
            let reason = format!("column {name} has the type {stored} instead of {stated}");
            return Err(ArrowError::SchemaError(reason).into());
        }
    }
    Ok(())
}

/// The events of an archive that are not hidden, account by account, those of an account in order of arrival.
pub struct EventScan {
    pub(crate) scan: Scan<EventColumns>,
    pub(crate) hidden: HideList,
}

impl EventScan {
    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub async fn next(&mut self) -> Result<Option<EventRow>, ArchiveError> {
        while let Some(row) = self.scan.next().await? {
            let row = EventRow(row);
            if !self.hidden.hides(&row.event()) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

/// A row of `events`. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct EventRow(pub(crate) Row<EventColumns>);

impl EventRow {
    /// The event. A row without a frame has an empty one.
    pub fn event(&self) -> ArchivedEvent<'_> {
        self.0.columns().event(self.0.index())
    }

    /// The form in which the event is stored: `full`, `compact` or `erased`.
    pub fn form(&self) -> &str {
        self.0.columns().form.value(self.0.index())
    }

    /// The path of its file within the archive, and the row in it from 0.
    pub fn place(&self) -> (&str, u64) {
        self.0.place()
    }
}

/// The columns of `events`.
#[derive(Debug)]
pub(crate) struct EventColumns {
    did: StringArray,
    arrival: Int64Array,
    host: StringArray,
    seq: Int64Array,
    kind: StringArray,
    received: TimestampMicrosecondArray,
    verdict: StringArray,
    key: StringArray,
    judge: StringArray,
    form: StringArray,
    frame: BinaryArray,
}

impl Columns for EventColumns {
    const TABLE: Table = Table::Events;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
            arrival: integers(rows, "arrival"),
            host: text(rows, "host"),
            seq: integers(rows, "seq"),
            kind: text(rows, "kind"),
            received: times(rows, "received"),
            verdict: text(rows, "verdict"),
            key: text(rows, "key"),
            judge: text(rows, "judge"),
            form: text(rows, "form"),
            frame: bytes(rows, "frame"),
        }
    }

    fn key(&self, row: usize) -> Key {
        Key {
            did: optional(&self.did, row).map(Box::from),
            number: self.arrival.value(row),
            text: None,
        }
    }
}

impl EventColumns {
    fn event(&self, row: usize) -> ArchivedEvent<'_> {
        ArchivedEvent {
            did: optional(&self.did, row),
            arrival: self.arrival.value(row),
            host: self.host.value(row),
            seq: self.seq.is_valid(row).then(|| self.seq.value(row)),
            kind: self.kind.value(row),
            received: self.received.value(row),
            verdict: self.verdict.value(row),
            key: optional(&self.key, row),
            judge: self.judge.value(row),
            frame: self.frame.value(row),
        }
    }
}

/// The columns of `snapshots`.
#[derive(Debug)]
pub(crate) struct SnapshotColumns {
    pub(crate) did: StringArray,
    pub(crate) rev: StringArray,
    pub(crate) sig: BinaryArray,
    pub(crate) data: BinaryArray,
    pub(crate) commit_block: BinaryArray,
    pub(crate) records: Int64Array,
    pub(crate) key: StringArray,
}

impl Columns for SnapshotColumns {
    const TABLE: Table = Table::Snapshots;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
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
}

/// The place of what belongs to a revision of an account.
fn place(did: &str, rev: &str) -> Key {
    Key { did: Some(did.into()), number: 0, text: Some(rev.into()) }
}

fn optional(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}

fn text(rows: &RecordBatch, name: &str) -> StringArray {
    column(rows, name).as_string::<i32>().clone()
}

fn integers(rows: &RecordBatch, name: &str) -> Int64Array {
    column(rows, name).as_primitive::<Int64Type>().clone()
}

fn times(rows: &RecordBatch, name: &str) -> TimestampMicrosecondArray {
    column(rows, name).as_primitive::<TimestampMicrosecondType>().clone()
}

fn bytes(rows: &RecordBatch, name: &str) -> BinaryArray {
    column(rows, name).as_binary::<i32>().clone()
}

fn column<'r>(rows: &'r RecordBatch, name: &str) -> &'r Arc<dyn Array> {
    rows.column_by_name(name).expect("the file has the columns of its table")
}

/// Rows that are decompressed at once: frames of some 5 kB.
const BATCH_ROWS: usize = 256;
