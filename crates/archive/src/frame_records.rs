//! The records of operations whose event is stored in full form: they are in its frame.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BinaryArray, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::ArrowError;
use atproto::event::{Commit, Decoder, Event, Options, RepoOp};
use futures_util::TryStreamExt;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, RowFilter,
};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::file::metadata::PageIndexPolicy;

use crate::archive::Archive;
use crate::delta::Add;
use crate::error::ArchiveError;
use crate::file_batches::{batch_rows, check_columns};
use crate::row_groups::groups_of;
use crate::table::Table;

/// An operation whose record is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpPlace<'a> {
    /// The account.
    pub did: &'a str,
    /// The archive's number of the event.
    pub arrival: i64,
    /// The collection.
    pub collection: &'a str,
    /// The record key.
    pub rkey: &'a str,
}

/// Reads records from the frames of an archive, as of when it was opened.
#[derive(Debug)]
pub struct FrameRecords {
    archive: Archive,
    files: Vec<Add>,
    /// The ends of files that were read, by path.
    ends: Mutex<HashMap<String, ArrowReaderMetadata>>,
}

impl Archive {
    /// A reader of the records of frames.
    ///
    /// # Errors
    /// If the log of the table `events` cannot be read.
    pub async fn frame_records(&self) -> Result<FrameRecords, ArchiveError> {
        let files = self.snapshot(Table::Events).await?.files.values().cloned().collect();
        Ok(FrameRecords { archive: self.clone(), files, ends: Mutex::default() })
    }
}

/// The operations to find, by event.
type Wanted<'a> = HashMap<(&'a str, i64), Vec<usize>>;

impl FrameRecords {
    /// The bytes of the records of these operations, in their order; `None` for one that no stored frame has. The bytes read
    /// grow with the distance between the accounts, so operations of one account, or of neighbors in the table's
    /// order, belong together.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub async fn find(&self, ops: &[OpPlace<'_>]) -> Result<Vec<Option<Vec<u8>>>, ArchiveError> {
        let mut found = vec![None; ops.len()];
        let mut wanted = Wanted::new();
        for (index, op) in ops.iter().enumerate() {
            wanted.entry((op.did, op.arrival)).or_default().push(index);
        }
        let dids = || ops.iter().map(|op| op.did);
        let (Some(first), Some(last)) = (dids().min(), dids().max()) else { return Ok(found) };
        for add in &self.files {
            let bounds = add.stats();
            if bounds.dids().is_none_or(|(min, max)| min <= last && first <= max) {
                let path = format!("{}/{}", Table::Events.name(), add.path);
                self.read(&path, first..=last, ops, &wanted, &mut found).await?;
            }
        }
        Ok(found)
    }

    /// Looks for operations in a file.
    async fn read(
        &self,
        path: &str,
        dids: RangeInclusive<&str>,
        ops: &[OpPlace<'_>],
        wanted: &Wanted<'_>,
        found: &mut [Option<Vec<u8>>],
    ) -> Result<(), ArchiveError> {
        let end = self.end(path).await?;
        let groups = groups_of(end.metadata(), Table::Events, dids.start(), dids.end());
        if groups.is_empty() {
            return Ok(());
        }
        let columns =
            |names: &[&str]| ProjectionMask::columns(end.parquet_schema(), names.iter().copied());
        let places: Arc<HashMap<String, Vec<i64>>> = Arc::new(places(wanted));
        let is_wanted =
            ArrowPredicateFn::new(columns(&["did", "arrival"]), move |rows| select(&rows, &places));
        let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(
            self.archive.object_file(path).with_metadata(end.metadata()),
            end.clone(),
        );
        let rows = batch_rows(end.metadata(), BATCH_FRAMES);
        let stream = builder
            .with_row_groups(groups.collect())
            .with_row_filter(RowFilter::new(vec![Box::new(is_wanted)]))
            .with_projection(columns(&["did", "arrival", "frame"]))
            .with_batch_size(rows)
            .build();
        let mut stream = stream.map_err(ArchiveError::at(path))?;
        let mut decoder = Decoder::new(Options::default());
        while let Some(rows) = stream.try_next().await.map_err(ArchiveError::at(path))? {
            let (dids, arrivals, frames) = columns_of(&rows).map_err(ArchiveError::at(path))?;
            for row in 0..rows.num_rows() {
                let Some(indices) = wanted.get(&(dids.value(row), arrivals.value(row))) else {
                    continue;
                };
                // Frames that cannot be decoded have no operations in the table.
                let Ok(Event::Commit(commit)) = decoder.decode(frames.value(row)) else { continue };
                for &index in indices {
                    found[index] = record_of(&commit, &ops[index]);
                }
            }
        }
        Ok(())
    }

    /// The end of a file: its row groups and pages.
    async fn end(&self, path: &str) -> Result<ArrowReaderMetadata, ArchiveError> {
        let known = self.ends.lock().expect("no holder panics").get(path).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let mut file = self.archive.object_file(path);
        let end = ArrowReaderMetadata::load_async(&mut file, options).await;
        let end = end.map_err(ArchiveError::at(path))?;
        check_columns(end.schema(), &Table::Events.schema()).map_err(ArchiveError::at(path))?;
        let mut ends = self.ends.lock().expect("no holder panics");
        if ends.len() >= MAX_ENDS {
            ends.clear();
        }
        ends.insert(path.to_owned(), end.clone());
        Ok(end)
    }
}

/// The events that are looked for, without borrows.
fn places(wanted: &Wanted<'_>) -> HashMap<String, Vec<i64>> {
    let mut places: HashMap<String, Vec<i64>> = HashMap::new();
    for (did, arrival) in wanted.keys() {
        places.entry((*did).to_owned()).or_default().push(*arrival);
    }
    places.values_mut().for_each(|arrivals| arrivals.sort_unstable());
    places
}

/// The rows of events that are looked for.
fn select(
    rows: &RecordBatch,
    places: &HashMap<String, Vec<i64>>,
) -> Result<BooleanArray, ArrowError> {
    let dids = column(rows, "did")?.as_string::<i32>();
    let arrivals = column(rows, "arrival")?.as_primitive::<Int64Type>();
    let has = |row: usize| {
        dids.is_valid(row)
            && places
                .get(dids.value(row))
                .is_some_and(|found| found.binary_search(&arrivals.value(row)).is_ok())
    };
    Ok((0..rows.num_rows()).map(|row| Some(has(row))).collect())
}

fn columns_of(rows: &RecordBatch) -> Result<(&StringArray, &Int64Array, &BinaryArray), ArrowError> {
    Ok((
        column(rows, "did")?.as_string::<i32>(),
        column(rows, "arrival")?.as_primitive::<Int64Type>(),
        column(rows, "frame")?.as_binary::<i32>(),
    ))
}

fn column<'r>(rows: &'r RecordBatch, name: &str) -> Result<&'r Arc<dyn Array>, ArrowError> {
    let missing = || ArrowError::SchemaError(format!("column {name} is missing"));
    rows.column_by_name(name).ok_or_else(missing)
}

/// The record of an operation in its frame.
fn record_of(commit: &Commit<'_>, place: &OpPlace<'_>) -> Option<Vec<u8>> {
    let path = |op: &&RepoOp<'_>| op.path.split_once('/') == Some((place.collection, place.rkey));
    let op = commit.ops.iter().find(path)?;
    op.record.map(|block| block.data.to_vec())
}

/// Frames that are held at once.
const BATCH_FRAMES: usize = 64;

/// Ends of files that are kept: some hundred kilobytes each.
const MAX_ENDS: usize = 64;
