//! Reads the rows of a table as Arrow batches, file by file: chosen columns, of one account, of a span of time, and nothing
//! that is hidden.

use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::vec;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, LargeBinaryArray, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::nullif::nullif;
use futures_util::{Stream, TryStreamExt};
use jiff::tz::TimeZone;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, RowFilter,
};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::errors::ParquetError;

use crate::archive::Archive;
use crate::delta::Add;
use crate::error::ArchiveError;
use crate::file_batches::{batch_rows, check_columns};
use crate::frame_records::{FrameRecords, OpPlace};
use crate::hidden::HideList;
use crate::row_groups::groups_of;
use crate::table::{DAY, Table};
use crate::table_scan::can_have;

/// The rows and columns of a table that are read: all by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSelection {
    /// The columns, in the order in which they are returned; `None` reads the columns of [`Table::schema`].
    pub columns: Option<Vec<String>>,
    /// The account; of `labels`, the rows about it and the rows of which it is the source.
    pub did: Option<String>,
    /// The first time, in microseconds since 1970: of `received` in `events` and `labels`, `arrival` in `ops`, `fetched` in `snapshots`,
    /// `plc_ops` and `blobs`, `at` in `hidden`, and `fetched` of the snapshot in `records`.
    pub since: Option<i64>,
    /// The end of the times, in microseconds since 1970: the first one that is not read.
    pub until: Option<i64>,
    /// The files, by path within the table's folder, in this order; `None` reads all.
    pub files: Option<Vec<String>>,
}

/// The rows of a table that are not hidden, as of when the scan was opened.
///
/// The rows of a file are in the order of the table; files follow each other in the order of their days. Memory holds the
/// compressed columns of one row group, and a batch.
pub struct RowScan {
    archive: Archive,
    table: Table,
    /// The columns of the batches.
    schema: SchemaRef,
    filter: Arc<Filter>,
    files: vec::IntoIter<String>,
    /// The file that is being read, and its rows.
    current: Option<(String, Batches)>,
    /// For the records of operations whose event is stored in full form.
    records: Option<FrameRecords>,
}

type Batches = Pin<Box<dyn Stream<Item = Result<RecordBatch, ParquetError>> + Send>>;

impl Archive {
    /// Scans a table. Binary columns are `LargeBinary`, so that a reader can join batches of more than 2 GiB. `frame` is null
    /// where an operation of the frame is on a hidden record, and `record` of `ops` is read from the frame where it is not
    /// stored apart.
    ///
    /// # Errors
    /// If the archive cannot be read, or the table has no such column or no longer such a file.
    pub async fn rows(
        &self,
        table: Table,
        selection: &RowSelection,
    ) -> Result<RowScan, ArchiveError> {
        let schema = selected_schema(table, selection).map_err(ArchiveError::at(table.name()))?;
        let filter = Arc::new(self.filter(table, selection).await?);
        let files = self.selected_files(table, selection).await?;
        let selected = files.into_iter().filter(|add| filter.has(add)).map(|add| add.path);
        let files = selected.collect::<Vec<_>>().into_iter();
        let is_ops_with_records = table == Table::Ops && has_column(&schema, "record");
        let records = if is_ops_with_records { Some(self.frame_records().await?) } else { None };
        Ok(RowScan { archive: self.clone(), table, schema, filter, files, current: None, records })
    }

    async fn selected_files(
        &self,
        table: Table,
        selection: &RowSelection,
    ) -> Result<Vec<Add>, ArchiveError> {
        let snapshot = self.snapshot(table).await?;
        let files = &snapshot.files;
        let Some(paths) = &selection.files else { return Ok(files.values().cloned().collect()) };
        let missing = |path: &String| {
            let message = "the table has the file no longer: `archive compact` replaces files";
            let fault = io::Error::new(io::ErrorKind::NotFound, message);
            ArchiveError::new(format!("{}/{path}", table.name()), fault)
        };
        let selected =
            paths.iter().map(|path| files.get(path).cloned().ok_or_else(|| missing(path)));
        selected.collect()
    }

    async fn filter(&self, table: Table, selection: &RowSelection) -> Result<Filter, ArchiveError> {
        let RowSelection { did, since, until, .. } = selection.clone();
        let has_time = since.is_some() || until.is_some();
        let fetched = match table {
            Table::Records if has_time => Some(self.fetched(Table::Snapshots, selection).await?),
            Table::PartRecords if has_time => Some(self.fetched(Table::Parts, selection).await?),
            _ => None,
        };
        let hidden =
            if table == Table::Hidden { HideList::default() } else { self.hide_list().await? };
        Ok(Filter { table, did, since, until, fetched, hidden })
    }

    /// The snapshots, or the parts, that were fetched in the selected time.
    async fn fetched(
        &self,
        table: Table,
        selection: &RowSelection,
    ) -> Result<FetchedPlaces, ArchiveError> {
        let mut places = HashSet::new();
        let selection = RowSelection { files: None, ..selection.clone() };
        let mut add = |place: &[&str]| {
            places.insert(place.iter().map(|text| (*text).to_owned()).collect());
        };
        self.visit(table, table.sorting(), &selection, &mut add).await?;
        Ok(FetchedPlaces { columns: table.sorting(), places })
    }

    /// Visits the account and the revision of every selected snapshot that is not hidden.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn visit_revisions(
        &self,
        selection: &RowSelection,
        visit: &mut (dyn FnMut(&str, &str) + Send),
    ) -> Result<(), ArchiveError> {
        let mut visit = |texts: &[&str]| visit(texts[0], texts[1]);
        self.visit(Table::Snapshots, Table::Snapshots.sorting(), selection, &mut visit).await
    }

    /// Visits the account, the revision and the [collections](crate::Collections) of every selected part that is not hidden.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn visit_parts(
        &self,
        selection: &RowSelection,
        visit: &mut (dyn FnMut(&str, &str, &str) + Send),
    ) -> Result<(), ArchiveError> {
        let mut visit = |texts: &[&str]| visit(texts[0], texts[1], texts[2]);
        self.visit(Table::Parts, Table::Parts.sorting(), selection, &mut visit).await
    }

    /// Visits these columns, which are text, of the selected rows of a table.
    async fn visit(
        &self,
        table: Table,
        columns: &[&str],
        selection: &RowSelection,
        visit: &mut (dyn FnMut(&[&str]) + Send),
    ) -> Result<(), ArchiveError> {
        let columns = Some(columns.iter().map(|name| (*name).to_owned()).collect());
        let selection = RowSelection { columns, ..selection.clone() };
        let mut scan = Box::pin(self.rows(table, &selection)).await?;
        while let Some(rows) = Box::pin(scan.next()).await? {
            let columns: Vec<&StringArray> =
                rows.columns().iter().map(|column| column.as_string()).collect();
            for row in 0..rows.num_rows() {
                let texts: Vec<&str> = columns.iter().map(|column| column.value(row)).collect();
                visit(&texts);
            }
        }
        Ok(())
    }
}

impl RowScan {
    /// The columns of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next rows: at most 8,192, or 1,024 and some 8 MiB with `frame`, `record`, `op`, `proof` or `label`; `None` at the end.
    ///
    /// # Errors
    /// If a file cannot be read, or is there no longer: it can be replaced while the table is scanned.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, ArchiveError> {
        loop {
            if self.current.is_none() {
                let Some(path) = self.files.next() else { return Ok(None) };
                let path = format!("{}/{path}", self.table.name());
                let batches = self.open(&path).await?;
                self.current = Some((path, batches));
            }
            let Some((path, batches)) = &mut self.current else { continue };
            let path = path.clone();
            match batches.try_next().await.map_err(ArchiveError::at(&path))? {
                None => self.current = None,
                Some(rows) if rows.num_rows() == 0 => {}
                Some(rows) => return self.shown(rows, &path).await.map(Some),
            }
        }
    }

    async fn open(&self, path: &str) -> Result<Batches, ArchiveError> {
        let mut file = self.archive.object_file(path);
        let stored = ArrowReaderMetadata::load_async(&mut file, ArrowReaderOptions::new()).await;
        let stored = stored.map_err(ArchiveError::at(path))?;
        check_columns(stored.schema(), &self.table.schema()).map_err(ArchiveError::at(path))?;
        let options = ArrowReaderOptions::new().with_schema(large(stored.schema()));
        let end = ArrowReaderMetadata::try_new(stored.metadata().clone(), options);
        let end = end.map_err(ArchiveError::at(path))?;
        let columns =
            |names: &[&str]| ProjectionMask::columns(end.parquet_schema(), names.iter().copied());
        let projection = columns(&self.stored_columns());
        let filtered = self.filter.columns();
        let condition = (!filtered.is_empty()).then(|| columns(&filtered));
        let groups_of = |did: &String| groups_of(end.metadata(), self.table, did, did).collect();
        let groups = self.filter.did.as_ref().map(groups_of);
        let has_payload = PAYLOADS.iter().any(|name| has_column(&self.schema, name));
        let rows = if has_payload { batch_rows(end.metadata(), PAYLOAD_ROWS) } else { BATCH_ROWS };
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(file, end)
            .with_batch_size(rows)
            .with_projection(projection);
        if let Some(groups) = groups {
            builder = builder.with_row_groups(groups);
        }
        if let Some(columns) = condition {
            let filter = self.filter.clone();
            let is_selected = ArrowPredicateFn::new(columns, move |rows| filter.select(&rows));
            builder = builder.with_row_filter(RowFilter::new(vec![Box::new(is_selected)]));
        }
        Ok(Box::pin(builder.build().map_err(ArchiveError::at(path))?))
    }

    /// The columns that are read: the columns of the batches, and their sources.
    fn stored_columns(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.schema.fields().iter().map(|field| &**field.name()).collect();
        if self.hides_frames() {
            names.push("did");
        }
        if self.records.is_some() {
            names.extend(["did", "arrival", "action", "collection", "rkey", "cid"]);
        }
        names
    }

    fn hides_frames(&self) -> bool {
        self.table == Table::Events
            && has_column(&self.schema, "frame")
            && self.filter.hidden.has_records()
    }

    /// The selected columns of rows that were read.
    async fn shown(&self, rows: RecordBatch, path: &str) -> Result<RecordBatch, ArchiveError> {
        let failed = || ArchiveError::at::<ArrowError>(path);
        let replaced = if self.hides_frames() {
            Some(("frame", self.shown_frames(&rows).map_err(failed())?))
        } else if let Some(records) = &self.records {
            Some(("record", with_frame_records(&rows, records).await?))
        } else {
            None
        };
        let columns = self.schema.fields().iter().map(|field| match &replaced {
            Some((name, column)) if name == field.name() => Ok(column.clone()),
            _ => column(&rows, field.name()).cloned(),
        });
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(failed())?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(failed())
    }

    /// The frames that have no operation on a hidden record.
    fn shown_frames(&self, rows: &RecordBatch) -> Result<ArrayRef, ArrowError> {
        let dids = texts(rows, "did")?;
        let frames = column(rows, "frame")?;
        let bytes = frames.as_binary::<i64>();
        let is_hidden = |row: usize| {
            dids.is_valid(row)
                && bytes.is_valid(row)
                && self.filter.hidden.hides_frame(dids.value(row), bytes.value(row))
        };
        let hidden: BooleanArray = (0..rows.num_rows()).map(|row| Some(is_hidden(row))).collect();
        nullif(frames, &hidden)
    }
}

/// The records of operations, from frames where they are not stored apart.
async fn with_frame_records(
    rows: &RecordBatch,
    records: &FrameRecords,
) -> Result<ArrayRef, ArchiveError> {
    let ops = OpColumns::of(rows).map_err(ArchiveError::at(Table::Ops.name()))?;
    let wanted: Vec<usize> = (0..rows.num_rows()).filter(|row| ops.is_in_frame(*row)).collect();
    if wanted.is_empty() {
        return Ok(Arc::new(ops.record.clone()));
    }
    let places: Vec<OpPlace<'_>> = wanted.iter().map(|row| ops.place(*row)).collect();
    let found = records.find(&places).await?;
    let mut found = wanted.into_iter().zip(found).peekable();
    let mut column = LargeBinaryBuilder::new();
    for row in 0..rows.num_rows() {
        match found.next_if(|(place, _)| *place == row) {
            Some((_, record)) => column.append_option(record),
            None => column.append_option(ops.record.is_valid(row).then(|| ops.record.value(row))),
        }
    }
    Ok(Arc::new(column.finish()))
}

/// The columns of `ops` that say which record an operation has.
struct OpColumns<'r> {
    did: &'r StringArray,
    arrival: &'r Int64Array,
    action: &'r StringArray,
    collection: &'r StringArray,
    rkey: &'r StringArray,
    cid: &'r LargeBinaryArray,
    record: &'r LargeBinaryArray,
}

impl<'r> OpColumns<'r> {
    fn of(rows: &'r RecordBatch) -> Result<Self, ArrowError> {
        Ok(Self {
            did: texts(rows, "did")?,
            arrival: column(rows, "arrival")?.as_primitive::<Int64Type>(),
            action: texts(rows, "action")?,
            collection: texts(rows, "collection")?,
            rkey: texts(rows, "rkey")?,
            cid: column(rows, "cid")?.as_binary::<i64>(),
            record: column(rows, "record")?.as_binary::<i64>(),
        })
    }

    fn is_in_frame(&self, row: usize) -> bool {
        self.record.is_null(row) && self.cid.is_null(row) && self.action.value(row) != "delete"
    }

    fn place(&self, row: usize) -> OpPlace<'r> {
        OpPlace {
            did: self.did.value(row),
            arrival: self.arrival.value(row),
            collection: self.collection.value(row),
            rkey: self.rkey.value(row),
        }
    }
}

/// The snapshots, or the parts, that were fetched in a time.
struct FetchedPlaces {
    columns: &'static [&'static str],
    /// The values of these columns.
    places: HashSet<Vec<String>>,
}

/// The condition on the rows that are read.
struct Filter {
    table: Table,
    did: Option<String>,
    since: Option<i64>,
    until: Option<i64>,
    /// The snapshots, or the parts, whose records are read.
    fetched: Option<FetchedPlaces>,
    hidden: HideList,
}

impl Filter {
    /// Whether a file can have such rows, by the statistics in the log.
    fn has(&self, add: &Add) -> bool {
        let has_account = self.did.as_ref().is_none_or(|did| can_have(add, did));
        has_account && self.has_time(add)
    }

    fn has_time(&self, add: &Add) -> bool {
        if self.table == Table::Ops {
            // Its day comes from `received`, and `arrival` can be later.
            let stats = add.stats();
            let bound = |values: &serde_json::Map<_, serde_json::Value>| {
                values.get("arrival").and_then(serde_json::Value::as_i64)
            };
            let first = bound(&stats.min_values).unwrap_or(i64::MIN);
            let last = bound(&stats.max_values).unwrap_or(i64::MAX);
            return self.since.is_none_or(|since| since <= last)
                && self.until.is_none_or(|until| first < until);
        }
        let Some(Some(day)) = add.partition_values.get(DAY) else { return true };
        let first = self.since.and_then(day_text);
        let last = self.until.and_then(|until| day_text(until.saturating_sub(1)));
        first.is_none_or(|first| first <= *day) && last.is_none_or(|last| *day <= last)
    }

    /// The columns that decide.
    fn columns(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if let Some(fetched) = &self.fetched {
            names.extend(fetched.columns);
        } else if self.did.is_some() || !self.hidden.is_empty() {
            names.extend(self.table.account_columns());
        }
        if let Some(time) = self.time_column() {
            names.push(time);
        }
        if self.has_paths() {
            names.extend(["collection", "rkey"]);
        }
        names
    }

    /// The column of the time that is selected by.
    fn time_column(&self) -> Option<&'static str> {
        self.since.or(self.until)?;
        match self.table {
            Table::Events | Table::Labels => Some("received"),
            Table::Ops => Some("arrival"),
            Table::Snapshots | Table::Parts | Table::PlcOps | Table::Blobs => Some("fetched"),
            Table::Hidden => Some("at"),
            Table::Records | Table::PartRecords => None,
        }
    }

    /// Whether rows are left out by the path of their record.
    fn has_paths(&self) -> bool {
        let has_paths = matches!(self.table, Table::Ops | Table::Records | Table::PartRecords);
        has_paths && self.hidden.has_records()
    }

    /// The rows that are read.
    fn select(&self, rows: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let mut selected = vec![true; rows.num_rows()];
        let mut keep = |is_kept: &dyn Fn(usize) -> bool| {
            for (row, selected) in selected.iter_mut().enumerate() {
                *selected = *selected && is_kept(row);
            }
        };
        if let Some(did) = &self.did {
            let accounts = self.accounts(rows)?;
            let is_its = |dids: &&StringArray, row| dids.is_valid(row) && dids.value(row) == did;
            keep(&|row| accounts.iter().any(|dids| is_its(dids, row)));
        }
        if let Some(name) = self.time_column() {
            let times = column(rows, name)?;
            let times = match times.data_type() {
                DataType::Int64 => times.as_primitive::<Int64Type>().values(),
                _ => times.as_primitive::<TimestampMicrosecondType>().values(),
            };
            keep(&|row| self.since.is_none_or(|since| since <= times[row]));
            keep(&|row| self.until.is_none_or(|until| times[row] < until));
        }
        if let Some(FetchedPlaces { columns, places }) = &self.fetched {
            let columns: Result<Vec<&StringArray>, _> =
                columns.iter().map(|name| texts(rows, name)).collect();
            let columns = columns?;
            let place = |row| columns.iter().map(|column| column.value(row).to_owned()).collect();
            keep(&|row| places.contains::<Vec<String>>(&place(row)));
        }
        if !self.hidden.is_empty() {
            for dids in self.accounts(rows)? {
                let shown = self.shown_accounts(dids);
                keep(&|row| shown[row]);
            }
        }
        if self.has_paths() {
            let dids = texts(rows, "did")?;
            let (collections, rkeys) = (texts(rows, "collection")?, texts(rows, "rkey")?);
            keep(&|row| {
                let path = (collections.value(row), rkeys.value(row));
                !self.hidden.names_record(dids.value(row), path.0, path.1)
            });
        }
        Ok(selected.into())
    }

    /// The columns with the rows' accounts.
    fn accounts<'r>(&self, rows: &'r RecordBatch) -> Result<Vec<&'r StringArray>, ArrowError> {
        self.table.account_columns().iter().map(|name| texts(rows, name)).collect()
    }

    /// Whether the rows' accounts are shown. Rows of an account follow each other, so it is looked up once.
    fn shown_accounts(&self, dids: &StringArray) -> Vec<bool> {
        let mut last = (None, true);
        let is_shown = |did| {
            if last.0 != did {
                last = (did, did.is_none_or(|did| !self.hidden.has_account(did)));
            }
            last.1
        };
        dids.iter().map(is_shown).collect()
    }
}

/// The day of a time, as the log states days; `None` for times that no calendar has.
fn day_text(micros: i64) -> Option<String> {
    let time = jiff::Timestamp::from_microsecond(micros).ok()?;
    Some(TimeZone::UTC.to_datetime(time).date().to_string())
}

/// The selected columns of a table.
fn selected_schema(table: Table, selection: &RowSelection) -> Result<SchemaRef, ArrowError> {
    let schema = large(&table.schema());
    let Some(columns) = &selection.columns else { return Ok(schema) };
    let fields = columns.iter().map(|name| schema.field_with_name(name).cloned());
    Ok(Arc::new(Schema::new(fields.collect::<Result<Vec<_>, _>>()?)))
}

/// The columns of a schema, binary ones with offsets of 64 bits.
fn large(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Binary => Field::new(field.name(), DataType::LargeBinary, field.is_nullable()),
        other => Field::new(field.name(), other.clone(), field.is_nullable()),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn has_column(schema: &Schema, name: &str) -> bool {
    schema.index_of(name).is_ok()
}

fn texts<'r>(rows: &'r RecordBatch, name: &str) -> Result<&'r StringArray, ArrowError> {
    Ok(column(rows, name)?.as_string::<i32>())
}

fn column<'r>(rows: &'r RecordBatch, name: &str) -> Result<&'r ArrayRef, ArrowError> {
    let missing = || ArrowError::SchemaError(format!("column {name} is missing"));
    rows.column_by_name(name).ok_or_else(missing)
}

/// Columns with up to 5 MB in a row.
const PAYLOADS: [&str; 5] = ["frame", "record", "op", "proof", "label"];

/// Rows of a batch with payloads: frames of some 5 kB.
const PAYLOAD_ROWS: usize = 1024;

/// Rows of other batches.
const BATCH_ROWS: usize = 8192;
