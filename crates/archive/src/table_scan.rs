//! Reads a table, or a selection of it, in its order.
//!
//! Files that another program wrote need not be sorted, and more files can overlap than should be open: [`runs`](crate::runs) sorts
//! and merges these first.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::TryStreamExt;
use parquet::errors::ParquetError;

use crate::archive::Archive;
use crate::blob_rows::BlobColumns;
use crate::content_hash::content_hash;
use crate::delta::Add;
use crate::error::ArchiveError;
use crate::event_rows::{EventColumns, EventRow};
use crate::file_batches::Batches;
use crate::hidden::{HiddenColumns, HideList};
use crate::label_rows::LabelColumns;
use crate::op_rows::OpColumns;
use crate::part_rows::{PartColumns, PartRecordColumns};
use crate::plc_rows::PlcColumns;
use crate::repository_rows::{RecordColumns, SnapshotColumns};
use crate::run_file::{self, Origin};
use crate::runs::{GROUP_ROWS, write_run};
use crate::scan::{PendingFile, Scan, Source};
use crate::table::{DAY, Table};
use crate::table_rows::{Columns, Key};

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
    /// Whether a file can have such rows, by the statistics in the log.
    pub(crate) fn has(&self, add: &Add) -> bool {
        let day = || add.partition_values.get(DAY).cloned().flatten();
        self.did.as_ref().is_none_or(|did| can_have(add, did))
            && (self.day.is_none() || self.day == day())
    }
}

/// Whether a file can have rows of an account, by the bounds that the log states.
pub(crate) fn can_have(add: &Add, did: &str) -> bool {
    let stats = add.stats();
    let is_within = |(first, last): (&str, &str)| first <= did && did <= last;
    // Statistics of another program are not trusted: an account that is to be erased may be in the file.
    content_hash(&add.path).is_none()
        || stats.dids().is_none_or(is_within)
        || stats.texts("src").is_some_and(is_within)
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
        // For one account, little of a file is read.
        let pending = match selection.did {
            Some(_) => pending,
            None => self.with_few_open::<C>(pending).await?,
        };
        Ok(Scan::new(self, pending).of_account(selection.did.clone()))
    }

    /// Scans files of a table.
    pub(crate) async fn scan_files<'a, C: Columns>(
        &self,
        files: impl IntoIterator<Item = &'a Add>,
    ) -> Result<Scan<C>, ArchiveError> {
        let pending = self.pending::<C>(files).await?;
        Ok(Scan::new(self, self.with_few_open::<C>(pending).await?))
    }

    /// Files that are to be scanned, in their order. Files that another program left unsorted are sorted.
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
                let number = pending.len();
                let (first, last) = (first.clone(), last.clone());
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

    /// The events that are not hidden, account by account, in order of arrival within an account.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn events(&self) -> Result<EventScan, ArchiveError> {
        let scan = self.scan(&Selection::default()).await?;
        Ok(EventScan { hidden: self.hide_list().await?, scan })
    }

    /// The rows of a file of a table in the table's order, even if another program wrote it.
    pub(crate) async fn ordered_batches(
        &self,
        table: Table,
        add: &Add,
    ) -> Result<Batches, ArchiveError> {
        if content_hash(&add.path).is_some() {
            let batches = self.batches(table, &add.path).await?;
            return Ok(Box::pin(batches.map_err(|error| ParquetError::External(Box::new(error)))));
        }
        match table {
            Table::Events => self.reordered::<EventColumns>(add).await,
            Table::Ops => self.reordered::<OpColumns>(add).await,
            Table::Snapshots => self.reordered::<SnapshotColumns>(add).await,
            Table::Records => self.reordered::<RecordColumns>(add).await,
            Table::Parts => self.reordered::<PartColumns>(add).await,
            Table::PartRecords => self.reordered::<PartRecordColumns>(add).await,
            Table::Hidden => self.reordered::<HiddenColumns>(add).await,
            Table::PlcOps => self.reordered::<PlcColumns>(add).await,
            Table::Blobs => self.reordered::<BlobColumns>(add).await,
            Table::Labels => self.reordered::<LabelColumns>(add).await,
        }
    }

    async fn reordered<C: Columns>(&self, add: &Add) -> Result<Batches, ArchiveError> {
        let run = write_run(&mut self.scan_files::<C>([add]).await?).await?;
        let batches = run_file::read(run, GROUP_ROWS)?;
        Ok(Box::pin(batches.map_ok(|batch| Origin::split(batch, &C::TABLE.schema()).0)))
    }
}

/// A place that is not after the first row of a file, and its greatest account, by the statistics in the log. Accounts
/// that are null have no bounds, and statistics of another program are not trusted.
fn bounds<C: Columns>(add: &Add) -> (Key, Option<Box<str>>) {
    let stats = add.stats();
    let start = Key { did: None, number: i64::MIN, text: None };
    let has_nulls = matches!(C::TABLE, Table::Events | Table::Labels)
        && stats.null_count.get("did").is_none_or(|count| *count != 0);
    match stats.dids().filter(|_| content_hash(&add.path).is_some()) {
        Some((first, last)) if !has_nulls => {
            (Key { did: Some(first.into()), ..start }, Some(last.into()))
        }
        Some((_, last)) => (start, Some(last.into())),
        None => (start, None),
    }
}

/// The events of an archive that are not hidden, account by account, in order of arrival within an account.
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
