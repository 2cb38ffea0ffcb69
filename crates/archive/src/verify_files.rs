//! Compares every file of the tables with its name, names the writer of a file that does not match, and decides whether
//! its rows can be read, so that they are proved by their content.

use std::collections::BTreeSet;

use futures_util::TryStreamExt;
use parquet::arrow::ParquetRecordBatchStreamBuilder;

use crate::archive::Archive;
use crate::content_hash::{content_hash, hash_of};
use crate::decode_limits::has_dictionaries;
use crate::delta::{Add, Snapshot};
use crate::error::{ArchiveError, ArchiveFault};
use crate::event_rows::EventRow;
use crate::rule::Rule;
use crate::table::Table;
use crate::table_scan::Selection;
use crate::verification::{Finding, Verification};

/// The origin of a file, by its name and its bytes.
enum Content {
    /// A file that matches its name.
    AsNamed,
    /// Other than its name says.
    Changed(String),
    /// A file of another program, which names files differently.
    Foreign,
    /// It is not there.
    Missing,
}

impl Archive {
    /// Checks the files of all tables. Returns the paths of files whose rows cannot be read.
    pub(crate) async fn check_files(
        &self,
        selection: &Selection,
        verification: &mut Verification<'_>,
    ) -> Result<BTreeSet<String>, ArchiveError> {
        let mut without = BTreeSet::new();
        for table in Table::ALL {
            let snapshot = self.snapshot(table).await?;
            // The rows of `hidden` are sorted by time, and decide about every account.
            let is_selected = |add: &&Add| table == Table::Hidden || selection.has(add);
            for add in snapshot.files.values().filter(is_selected) {
                verification.report.files += 1;
                let file = format!("{}/{}", table.name(), add.path);
                if !self.check_file(table, add, &snapshot, verification).await? {
                    without.insert(file);
                }
            }
        }
        Ok(without)
    }

    /// Checks a file; whether its rows can be read.
    async fn check_file(
        &self,
        table: Table,
        add: &Add,
        snapshot: &Snapshot,
        verification: &mut Verification<'_>,
    ) -> Result<bool, ArchiveError> {
        let file = format!("{}/{}", table.name(), add.path);
        let refused = |message| {
            let row = None;
            let did = None;
            let code = Rule::File.code();
            Finding { file: file.clone(), row, did, code, message }
        };
        let content = self.content(add, &file).await?;
        let found = match content {
            Content::AsNamed => return self.check_end(table, add, &file, verification).await,
            Content::Missing => {
                verification.refuse(refused("the log names it, and it is not there".to_owned()));
                return Ok(false);
            }
            Content::Changed(found) => Some(found),
            Content::Foreign => None,
        };
        let writer = match snapshot.writers.get(&add.path) {
            Some(writer) => Some(writer.clone()),
            None => self.created_by(&file).await,
        };
        let writer = writer.unwrap_or_else(|| "a program that does not state its name".to_owned());
        let rows = self.count_rows(table, add).await;
        let stated = add.stats.is_some().then(|| add.stats().num_records);
        let fault = match (&found, &rows) {
            (_, Err(error)) if error.is_temporary() => return rows.map(|_| false),
            (_, Err(error)) => Some(format!("its rows cannot be read: {}", error.fault)),
            (None, Ok(rows)) if stated.is_some_and(|stated| stated != *rows) => {
                Some(format!("it has {rows} rows, and the log says {}", stated.unwrap_or_default()))
            }
            _ => None,
        };
        match (found, fault) {
            (None, None) => *verification.report.rewritten.entry(writer).or_default() += 1,
            (found, fault) => {
                let changed = found.map(|found| ArchiveFault::ChangedFile(found).to_string());
                let readable = "its rows are proved by their content, and nothing proves those without a signature";
                let what = fault.unwrap_or_else(|| readable.to_owned());
                let parts = changed.into_iter().chain([format!("{writer} wrote it"), what]);
                verification.refuse(refused(parts.collect::<Vec<_>>().join("; ")));
            }
        }
        Ok(rows.is_ok())
    }

    /// Checks that the rows of a file that matches its name can be decoded, by the sizes at its end.
    async fn check_end(
        &self,
        table: Table,
        add: &Add,
        file: &str,
        verification: &mut Verification<'_>,
    ) -> Result<bool, ArchiveError> {
        let opened = ParquetRecordBatchStreamBuilder::new(self.object_file(file)).await;
        // Only other programs write dictionaries there. Their decoded size shows at the end alone.
        let has_dictionaries =
            opened.as_ref().is_ok_and(|opened| has_dictionaries(opened.metadata()));
        let read = match (opened.map_err(ArchiveError::at(file)), has_dictionaries) {
            (Ok(_), true) => self.count_rows(table, add).await.map(drop),
            (opened, _) => opened.map(drop),
        };
        let error = match read {
            Ok(()) => return Ok(true),
            Err(error) if error.is_temporary() => return Err(error),
            Err(error) => error,
        };
        let code = error.fault.code().unwrap_or(Rule::File.code());
        let file = file.to_owned();
        let message = error.fault.to_string();
        verification.refuse(Finding { file, row: None, did: None, code, message });
        Ok(false)
    }

    async fn content(&self, add: &Add, file: &str) -> Result<Content, ArchiveError> {
        let hash = match content_hash(&add.path) {
            None => {
                match self.storage().read(file).try_for_each(|_| std::future::ready(Ok(()))).await {
                    Err(error) if error.is_missing_file() => return Ok(Content::Missing),
                    read => return read.map(|()| Content::Foreign),
                }
            }
            Some(hash) => hash,
        };
        match hash_of(self.storage(), file).await {
            Err(error) if error.is_missing_file() => Ok(Content::Missing),
            found => {
                let found = found?;
                let is_as_named = found == hash;
                Ok(if is_as_named { Content::AsNamed } else { Content::Changed(found) })
            }
        }
    }

    /// The program that a Parquet file states as its writer.
    async fn created_by(&self, file: &str) -> Option<String> {
        let builder = ParquetRecordBatchStreamBuilder::new(self.object_file(file)).await.ok()?;
        builder.metadata().file_metadata().created_by().map(str::to_owned)
    }

    /// Number of rows of a file, all of which are decoded.
    async fn count_rows(&self, table: Table, add: &Add) -> Result<u64, ArchiveError> {
        let mut batches = self.batches(table, &add.path).await?;
        let mut rows = 0;
        while let Some(batch) = batches.try_next().await? {
            rows += batch.num_rows() as u64;
        }
        Ok(rows)
    }

    /// Checks that files that are to be replaced match their names: a damaged file must not get a name that says
    /// otherwise.
    pub(crate) async fn check_content(
        &self,
        table: Table,
        files: &[Add],
    ) -> Result<(), ArchiveError> {
        for add in files {
            let file = format!("{}/{}", table.name(), add.path);
            let Some(hash) = content_hash(&add.path) else { continue };
            let found = hash_of(self.storage(), &file).await?;
            if found != hash {
                return Err(ArchiveError::new(file, ArchiveFault::ChangedFile(found)));
            }
        }
        Ok(())
    }
}

/// Finds events that a table has twice where another program wrote one of the files: with the same account, arrival, origin and
/// frame.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// The rows of the last account and arrival.
    rows: Vec<EventRow>,
}

impl Repeats {
    /// Refuses a row that repeats an earlier one; whether it does not.
    pub(crate) fn admit(&mut self, row: &EventRow, verification: &mut Verification<'_>) -> bool {
        let event = row.event();
        let is_at_place = |other: &EventRow| {
            let other = other.event();
            (other.did, other.arrival) == (event.did, event.arrival)
        };
        if self.rows.first().is_some_and(|first| !is_at_place(first)) {
            self.rows.clear();
        }
        let is_foreign = |row: &EventRow| {
            let path = row.place().0.split_once('/').map_or("", |(_, path)| path);
            content_hash(path).is_none()
        };
        let is_same = |other: &&EventRow| {
            let (one, other_event) = (event, other.event());
            (one.host, one.seq, one.received)
                == (other_event.host, other_event.seq, other_event.received)
                && one.frame == other_event.frame
                && (is_foreign(row) || is_foreign(other))
        };
        if let Some(other) = self.rows.iter().find(is_same) {
            let (file, number) = other.place();
            let message = format!("row {number} of {file} is the same event");
            verification.refuse(Finding::of(row, Rule::Repeated.code(), message));
            return false;
        }
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row.clone());
        }
        true
    }
}

/// Rows of one account and arrival that are compared.
const MAX_ROWS: usize = 64;
