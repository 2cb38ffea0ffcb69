//! Reads a table in its order: a merge of files that are sorted so.
//!
//! A file is opened when the merge gets to its first account, by what the log states, and closed at its end. Files that another
//! program wrote need not be sorted, and more files can overlap than should be open: [`runs`](crate::runs) sorts and merges these first.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, BinaryArray, BooleanArray, Int16Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{ArrowError, Schema};
use futures_util::{Stream, StreamExt, TryStreamExt};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::errors::ParquetError;

use crate::archive::Archive;
use crate::decode_limits::{check_decoded, has_dictionaries, max_decoded};
use crate::delta::Add;
use crate::error::{ArchiveError, ArchiveFault};
use crate::event::ArchivedEvent;
use crate::hidden::HideList;
use crate::object_file::ObjectFile;
use crate::row_groups::{groups_of, rows_before};
use crate::runs::{self, Origin};
use crate::signed_commit::StoredCommit;
use crate::table::{DAY, Table};
use crate::uploads::content_hash;

/// The columns of a few rows of a table.
pub(crate) trait Columns: Sized + Send + Sync + 'static {
    const TABLE: Table;

    /// Whether all rows of a place are in one file, and those of another file repeat them.
    const IS_ONE_RUN: bool = false;

    /// The columns of rows that have the table's schema.
    fn new(rows: &RecordBatch) -> Self;

    /// The place of a row in the table's order.
    fn key(&self, row: usize) -> Key;
}

/// The rows that are read: all by default. Files without any of them are not opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The account; rows of others can come too.
    pub(crate) did: Option<String>,
    /// The day of the files, as the log states it.
    pub(crate) day: Option<String>,
    /// Files that are left out, by path within the archive.
    pub(crate) without: Arc<BTreeSet<String>>,
}

impl Selection {
    /// Whether a file can have such rows, by what the log states.
    pub(crate) fn has(&self, add: &Add) -> bool {
        let day = || add.partition_values.get(DAY).cloned().flatten();
        self.did.as_ref().is_none_or(|did| can_have(add, did))
            && (self.day.is_none() || self.day == day())
    }
}

/// Whether a file can have rows of an account, by the bounds that the log states.
pub(crate) fn can_have(add: &Add, did: &str) -> bool {
    // What another program states of its file is not relied upon: an account that is to be erased may be in it.
    content_hash(&add.path).is_none()
        || add.stats().dids().is_none_or(|(first, last)| first <= did && did <= last)
}

/// The place of a row in the order of its table; rows of the same place stay in the order of their files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) did: Option<Box<str>>,
    pub(crate) number: i64,
    pub(crate) text: Option<Box<str>>,
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

    /// The rows that were read together with this one.
    pub(crate) fn batch(&self) -> &RecordBatch {
        &self.rows.batch
    }

    /// Whether both have one place in the table's order.
    pub(crate) fn is_at_place_of(&self, other: &Self) -> bool
    where
        C: Columns,
    {
        self.columns().key(self.index) == other.columns().key(other.index)
    }

    /// Whether both were read together.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows)
    }

    /// The path of the file within the archive, and the row in it from 0.
    pub(crate) fn place(&self) -> (&str, u64) {
        match &self.rows.origin {
            Some(origin) => origin.place(self.index),
            None => (&self.rows.file, self.rows.first + self.index as u64),
        }
    }
}

/// Rows that were read together.
#[derive(Debug)]
struct FileRows<C> {
    file: Arc<str>,
    /// The row of the file with which they begin.
    first: u64,
    batch: RecordBatch,
    columns: C,
    /// Where the rows are from, if those of several files were merged before.
    origin: Option<Origin>,
}

/// The rows of a table in its order.
pub(crate) struct Scan<C> {
    archive: Archive,
    /// The account; rows of others can come too.
    did: Option<String>,
    /// The files that are yet to be opened; the next one is the last.
    pending: Vec<PendingFile>,
    /// The open files, by their number.
    files: HashMap<usize, ScannedFile<C>>,
    /// The files that have a row, by its place.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
}

/// A file that a scan is to read.
#[derive(Debug)]
pub(crate) struct PendingFile {
    /// Decides which of several rows of one place is first.
    pub(crate) number: usize,
    pub(crate) source: Source,
    /// Size in bytes; 0 of a temporary file, of which little is held at a time.
    pub(crate) bytes: u64,
    /// A place that is not after the first row.
    pub(crate) first: Key,
    /// The greatest account; `None` if it is not known.
    pub(crate) last: Option<Box<str>>,
}

/// Where the rows of a scanned file are.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file of the table, by its path in the table's folder.
    Stored(String),
    /// A temporary file of [`runs`](crate::runs).
    Run(File),
}

impl Archive {
    /// Scans a table, as of now.
    pub(crate) async fn scan<C: Columns>(
        &self,
        selection: &Selection,
    ) -> Result<Scan<C>, ArchiveError> {
        let snapshot = self.snapshot(C::TABLE).await?;
        let is_left_out = |add: &Add| {
            !selection.without.is_empty()
                && selection.without.contains(&format!("{}/{}", C::TABLE.name(), add.path))
        };
        let files = snapshot.files.values();
        let selected: Vec<&Add> =
            files.filter(|add| selection.has(add) && !is_left_out(add)).collect();
        let pending = self.pending::<C>(selected).await?;
        // Of one account, little of each file is read.
        let pending = match selection.did {
            Some(_) => pending,
            None => self.with_few_open::<C>(pending).await?,
        };
        Ok(Scan { did: selection.did.clone(), ..Scan::new(self, pending) })
    }

    /// Scans files of a table.
    pub(crate) async fn scan_files<'a, C: Columns>(
        &self,
        files: impl IntoIterator<Item = &'a Add>,
    ) -> Result<Scan<C>, ArchiveError> {
        let pending = self.pending::<C>(files).await?;
        Ok(Scan::new(self, self.with_few_open::<C>(pending).await?))
    }

    /// Files that are to be scanned, in their order. Those that another program did not sort are sorted.
    async fn pending<'a, C: Columns>(
        &self,
        files: impl IntoIterator<Item = &'a Add>,
    ) -> Result<Vec<PendingFile>, ArchiveError> {
        let mut pending = Vec::new();
        for add in files {
            let runs = match content_hash(&add.path) {
                Some(_) => None,
                None => self.sorted_runs::<C>(&add.path).await?,
            };
            let (first, last) = bounds::<C>(add);
            let (sources, bytes) = match runs {
                None => (vec![Source::Stored(add.path.clone())], add.size),
                Some(runs) => (runs.into_iter().map(Source::Run).collect(), 0),
            };
            for source in sources {
                let (number, first, last) = (pending.len(), first.clone(), last.clone());
                pending.push(PendingFile { number, source, bytes, first, last });
            }
        }
        Ok(pending)
    }

    /// Scans a file of a table, by its path in the table's folder, in the order of the file.
    pub(crate) async fn scan_file<C: Columns>(&self, path: &str) -> Result<Scan<C>, ArchiveError> {
        let first = Key { did: None, number: i64::MIN, text: None };
        let source = Source::Stored(path.to_owned());
        Ok(Scan::new(self, vec![PendingFile { number: 0, source, bytes: 0, first, last: None }]))
    }

    /// The rows of a file of a table, by its path in the table's folder, with the columns of the table in their order.
    pub(crate) async fn batches(
        &self,
        table: Table,
        path: &str,
    ) -> Result<impl Stream<Item = Result<RecordBatch, ArchiveError>> + use<>, ArchiveError> {
        let path = format!("{}/{path}", table.name());
        let (_, batches) = open(self, table, &path, None).await?;
        Ok(batches.map(move |batch| batch.map_err(ArchiveError::at(&path))))
    }

    /// A file, by its path within the archive, for the Parquet reader.
    pub(crate) fn object_file(&self, path: &str) -> ObjectFile {
        let storage = self.storage();
        ObjectFile::new(storage.objects().clone(), storage.object(path))
    }

    /// The events that are not hidden, account by account, those of an account in order of arrival.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn events(&self) -> Result<EventScan, ArchiveError> {
        let scan = self.scan(&Selection::default()).await?;
        Ok(EventScan { hidden: self.hide_list().await?, scan })
    }
}

impl<C: Columns> Scan<C> {
    /// A scan of these files.
    pub(crate) fn new(archive: &Archive, mut pending: Vec<PendingFile>) -> Self {
        pending.sort_by(|a, b| (&b.first, b.number).cmp(&(&a.first, a.number)));
        let (files, heads) = (HashMap::new(), BinaryHeap::new());
        Self { archive: archive.clone(), did: None, pending, files, heads }
    }

    /// The next row; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Row<C>>, ArchiveError> {
        self.open_due(None).await?;
        let Some(Reverse((_, file))) = self.heads.pop() else { return Ok(None) };
        let open = self.files.get_mut(&file).expect("the heap has open files");
        let row = open.head.pop_front().expect("the heap has files with a row");
        self.push_head(file).await?;
        Ok(Some(row))
    }

    /// Skips the rows before a place.
    pub(crate) async fn skip_to(&mut self, place: &Key) -> Result<(), ArchiveError> {
        loop {
            self.open_due(Some(place)).await?;
            match self.heads.peek() {
                Some(Reverse((key, _))) if key < place => {}
                _ => return Ok(()),
            }
            let Some(Reverse((_, file))) = self.heads.pop() else { return Ok(()) };
            let open = self.files.get_mut(&file).expect("the heap has open files");
            open.skip_to(place).await?;
            self.push_head(file).await?;
        }
    }

    /// The next row, if it is before a place; it stays the next one if it is not.
    pub(crate) async fn next_before(
        &mut self,
        place: &Key,
    ) -> Result<Option<Row<C>>, ArchiveError> {
        self.open_due(None).await?;
        match self.heads.peek() {
            Some(Reverse((key, _))) if key < place => self.next().await,
            _ => Ok(None),
        }
    }

    /// Opens the files that can have the next row. Those that end before a place to which is skipped are left out.
    async fn open_due(&mut self, skip_to: Option<&Key>) -> Result<(), ArchiveError> {
        let is_due = |pending: &PendingFile, heads: &BinaryHeap<Reverse<(Key, usize)>>| {
            heads.peek().is_none_or(|Reverse((key, _))| pending.first <= *key)
        };
        while self.pending.last().is_some_and(|pending| is_due(pending, &self.heads)) {
            let Some(pending) = self.pending.pop() else { break };
            let is_before = |place: &Key| pending.last.is_some() && pending.last < place.did;
            if !skip_to.is_some_and(is_before) {
                let file = ScannedFile::open(&self.archive, pending.source, self.did.as_deref());
                let file = file.await?;
                self.files.insert(pending.number, file);
                self.push_head(pending.number).await?;
            }
        }
        Ok(())
    }

    async fn push_head(&mut self, file: usize) -> Result<(), ArchiveError> {
        let Some(open) = self.files.get_mut(&file) else { return Ok(()) };
        match open.fill().await? {
            Some(row) => {
                let key = row.columns().key(row.index());
                self.heads.push(Reverse((key, file)));
            }
            None => drop(self.files.remove(&file)),
        }
        Ok(())
    }
}

/// A place that is not after the first row of a file, and its greatest account, by what the log states. Accounts that are null
/// have no bounds, and what another program states of its file is not relied upon.
fn bounds<C: Columns>(add: &Add) -> (Key, Option<Box<str>>) {
    let (stats, start) = (add.stats(), Key { did: None, number: i64::MIN, text: None });
    let has_nulls =
        C::TABLE == Table::Events && stats.null_count.get("did").is_none_or(|count| *count != 0);
    match stats.dids().filter(|_| content_hash(&add.path).is_some()) {
        Some((first, last)) if !has_nulls => {
            (Key { did: Some(first.into()), ..start }, Some(last.into()))
        }
        Some((_, last)) => (start, Some(last.into())),
        None => (start, None),
    }
}

pub(crate) type Batches = Pin<Box<dyn Stream<Item = Result<RecordBatch, ParquetError>> + Send>>;

/// A file that is being read.
struct ScannedFile<C> {
    path: Arc<str>,
    batches: Batches,
    /// Rows so far.
    rows: u64,
    head: VecDeque<Row<C>>,
}

impl<C: Columns> ScannedFile<C> {
    async fn open(
        archive: &Archive,
        source: Source,
        did: Option<&str>,
    ) -> Result<Self, ArchiveError> {
        let (path, rows, batches) = match source {
            Source::Stored(path) => {
                // Only the files of this program are sorted, and say what they hold.
                let did = did.filter(|_| content_hash(&path).is_some());
                let path = format!("{}/{path}", C::TABLE.name());
                let (rows, batches) = open(archive, C::TABLE, &path, did).await?;
                (path, rows, batches)
            }
            Source::Run(file) => (C::TABLE.name().to_owned(), 0, runs::read(file, BATCH_ROWS)?),
        };
        Ok(Self { path: path.into(), batches, rows, head: VecDeque::new() })
    }

    /// The next row, which stays the next one.
    async fn fill(&mut self) -> Result<Option<&Row<C>>, ArchiveError> {
        while self.head.is_empty() {
            let batch = self.batches.try_next().await.map_err(ArchiveError::at(&self.path))?;
            let Some(batch) = batch else { return Ok(None) };
            let (batch, origin) = Origin::split(batch, &C::TABLE.schema());
            let count = batch.num_rows();
            let (file, columns) = (self.path.clone(), C::new(&batch));
            let rows = Arc::new(FileRows { file, first: self.rows, batch, columns, origin });
            self.rows += count as u64;
            self.head.extend((0..count).map(|index| Row { rows: rows.clone(), index }));
        }
        Ok(self.head.front())
    }

    /// Drops the rows before a place.
    async fn skip_to(&mut self, place: &Key) -> Result<(), ArchiveError> {
        while self.fill().await?.is_some() {
            let before = self.head.partition_point(|row| row.columns().key(row.index()) < *place);
            self.head.drain(..before);
            if !self.head.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// Opens a file of a table, by its path within the archive, at the first row group that can have rows of an account. Returns
/// the number of rows before it, and the rows with the columns of the table in their order.
async fn open(
    archive: &Archive,
    table: Table,
    path: &str,
    did: Option<&str>,
) -> Result<(u64, Batches), ArchiveError> {
    // The types of Arrow that another program has noted are those of its own reader.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let file = archive.object_file(path);
    let builder = ParquetRecordBatchStreamBuilder::new_with_options(file, options).await;
    let mut builder = builder.map_err(ArchiveError::at(path))?.with_batch_size(BATCH_ROWS);
    check_columns(builder.schema(), &table.schema()).map_err(ArchiveError::at(path))?;
    let mut max = u64::MAX;
    if has_dictionaries(builder.metadata()) {
        builder = builder.with_batch_size(DICTIONARY_ROWS);
        max = max_decoded(builder.metadata());
    }
    let mut rows = 0;
    if let Some(did) = did {
        let groups = groups_of(builder.metadata(), did, did);
        rows = rows_before(builder.metadata(), groups.start);
        builder = builder.with_row_groups(groups.collect());
    }
    let stream = builder.build().map_err(ArchiveError::at(path))?;
    let (schema, mut decoded) = (table.schema(), 0_u64);
    let batches = stream.map(move |batch| {
        let batch = batch?;
        decoded = decoded.saturating_add(batch.get_array_memory_size() as u64);
        check_decoded(decoded, max).map_err(|limit| ParquetError::External(Box::new(limit)))?;
        let fields = schema.fields().iter();
        let columns = fields.map(|field| column(&batch, field.name()).clone()).collect();
        Ok(RecordBatch::try_new(schema.clone(), columns)?)
    });
    Ok((rows, Box::pin(batches)))
}

/// Checks that a file has the columns of its table with their types, whoever wrote it.
pub(crate) fn check_columns(found: &Schema, table: &Schema) -> Result<(), ArchiveFault> {
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

    /// The revision, as the event states it.
    pub(crate) fn rev(&self) -> Option<&str> {
        optional(&self.0.columns().rev, self.0.index())
    }

    /// The revision before, as the event states it.
    pub(crate) fn since(&self) -> Option<&str> {
        optional(&self.0.columns().since, self.0.index())
    }

    /// What is derived from the frame, beside the revisions.
    pub(crate) fn derived(&self) -> Derived<'_> {
        let (columns, index) = (self.0.columns(), self.0.index());
        let cids = [&columns.commit, &columns.data, &columns.prev_data];
        Derived {
            time: optional(&columns.time, index),
            has_cids: cids.iter().any(|column| column.is_valid(index)),
        }
    }

    /// A commit in compact form; `None` without an account or a revision.
    pub(crate) fn commit(&self) -> Option<StoredCommit<'_>> {
        let (columns, index) = (self.0.columns(), self.0.index());
        Some(StoredCommit {
            did: optional(&columns.did, index)?,
            rev: optional(&columns.rev, index)?,
            sig: columns.sig.value(index),
            block: optional_bytes(&columns.commit_block, index),
        })
    }
}

/// Columns of an event that its frame gives.
pub(crate) struct Derived<'a> {
    /// The time, as the event states it.
    pub(crate) time: Option<&'a str>,
    /// Whether there are CIDs, which a frame holds.
    pub(crate) has_cids: bool,
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
    time: StringArray,
    rev: StringArray,
    since: StringArray,
    commit: BinaryArray,
    data: BinaryArray,
    prev_data: BinaryArray,
    verdict: StringArray,
    key: StringArray,
    judge: StringArray,
    form: StringArray,
    frame: BinaryArray,
    sig: BinaryArray,
    commit_block: BinaryArray,
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
            time: text(rows, "time"),
            rev: text(rows, "rev"),
            since: text(rows, "since"),
            commit: bytes(rows, "commit"),
            data: bytes(rows, "data"),
            prev_data: bytes(rows, "prev_data"),
            verdict: text(rows, "verdict"),
            key: text(rows, "key"),
            judge: text(rows, "judge"),
            form: text(rows, "form"),
            frame: bytes(rows, "frame"),
            sig: bytes(rows, "sig"),
            commit_block: bytes(rows, "commit_block"),
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
    pub(crate) key: StringArray,
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
}

impl Row<SnapshotColumns> {
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

/// The columns of `hidden` by which it is sorted.
#[derive(Debug)]
pub(crate) struct HiddenColumns {
    at: TimestampMicrosecondArray,
}

impl Columns for HiddenColumns {
    const TABLE: Table = Table::Hidden;

    fn new(rows: &RecordBatch) -> Self {
        Self { at: times(rows, "at") }
    }

    fn key(&self, row: usize) -> Key {
        Key { did: None, number: self.at.value(row), text: None }
    }
}

/// The place of what belongs to a revision of an account.
pub(crate) fn place(did: &str, rev: &str) -> Key {
    Key { did: Some(did.into()), number: 0, text: Some(rev.into()) }
}

fn optional(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}

fn optional_bytes(column: &BinaryArray, row: usize) -> Option<&[u8]> {
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

/// Rows that are decoded at once where each can name one large value: 16 MiB at most.
pub(crate) const DICTIONARY_ROWS: usize = 16;

/// Rows that are decompressed at once: frames of some 5 kB.
const BATCH_ROWS: usize = 256;
