//! Merges the files of past days: the hourly files become a few files in which an account's rows are next to each
//! other.

use std::collections::{BTreeSet, HashSet};

use arrow_array::RecordBatch;
use jiff::civil::Date;

use crate::archive::Archive;
use crate::blob_rows::BlobColumns;
use crate::delta::Add;
use crate::error::{ArchiveError, ArchiveFault};
use crate::hidden::HiddenColumns;
use crate::label_rows::LabelColumns;
use crate::merge::{MAX_FILE_BYTES, MergedFiles};
use crate::plc_rows::PlcColumns;
use crate::replace::{Replacement, bytes, files_of_day};
use crate::repository_rows::{RecordColumns, SnapshotColumns};
use crate::scan::Scan;
use crate::table::{DAY, Table, day_of};
use crate::table_rows::{Columns, Row};
use crate::thin::Plan;

/// The merged files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Number of files that were merged.
    pub files: u64,
    /// Number of files in their place.
    pub files_after: u64,
    /// Size of the files in bytes.
    pub bytes_before: u64,
    /// Size of the files in their place in bytes.
    pub bytes_after: u64,
}

impl Archive {
    /// Merges the files of the days that ended before a time, in microseconds since 1970. Rows stay as they are.
    ///
    /// # Errors
    /// If the archive cannot be written. Files that were merged until then stay merged.
    pub async fn compact(&self, before: i64) -> Result<Compacted, ArchiveError> {
        self.check_logs().await?;
        let mut compacted = Compacted::default();
        let last = day_of(before);
        for day in self.days(&[Table::Events, Table::Ops], last).await? {
            let is_due =
                self.is_due(Table::Events, day).await? || self.is_due(Table::Ops, day).await?;
            if is_due {
                let before = self.files(&[Table::Events, Table::Ops], day).await?;
                self.rewrite_day(day, &Plan::empty(), &HashSet::new()).await?;
                compacted.add(&before, &self.files(&[Table::Events, Table::Ops], day).await?);
            }
        }
        self.merge_days::<SnapshotColumns>(last, &mut compacted).await?;
        self.merge_days::<RecordColumns>(last, &mut compacted).await?;
        self.merge_days::<HiddenColumns>(last, &mut compacted).await?;
        self.merge_days::<PlcColumns>(last, &mut compacted).await?;
        self.merge_days::<BlobColumns>(last, &mut compacted).await?;
        self.merge_days::<LabelColumns>(last, &mut compacted).await?;
        self.sweep().await?;
        Ok(compacted)
    }

    /// The days of tables before a day.
    async fn days(&self, tables: &[Table], last: Date) -> Result<BTreeSet<Date>, ArchiveError> {
        let mut days = BTreeSet::new();
        for table in tables {
            let snapshot = self.snapshot(*table).await?;
            let day = |add: &Add| add.partition_values.get(DAY)?.as_ref()?.parse::<Date>().ok();
            days.extend(snapshot.files.values().filter_map(day).filter(|day| *day < last));
        }
        Ok(days)
    }

    async fn files(&self, tables: &[Table], day: Date) -> Result<Vec<Add>, ArchiveError> {
        let mut files = Vec::new();
        for table in tables {
            files.extend(files_of_day(&*self.snapshot(*table).await?, day));
        }
        Ok(files)
    }

    async fn is_due(&self, table: Table, day: Date) -> Result<bool, ArchiveError> {
        Ok(!is_merged(&files_of_day(&*self.snapshot(table).await?, day)))
    }

    async fn merge_days<C: Columns>(
        &self,
        last: Date,
        compacted: &mut Compacted,
    ) -> Result<(), ArchiveError> {
        for day in self.days(&[C::TABLE], last).await? {
            for attempt in 0.. {
                let old = files_of_day(&*self.snapshot(C::TABLE).await?, day);
                if is_merged(&old) {
                    break;
                }
                self.check_content(C::TABLE, &old).await?;
                let new = self.merge::<C>(day, &old).await?;
                let files = Replacement { old, new, changes_data: false };
                if self.replace(C::TABLE, &files).await? {
                    compacted.add(&files.old, &files.new);
                    break;
                }
                // Another writer has changed one of the files.
                if attempt == MAX_ATTEMPTS {
                    return Err(ArchiveError::new(
                        C::TABLE.name(),
                        ArchiveFault::Contention(attempt),
                    ));
                }
            }
        }
        Ok(())
    }

    async fn merge<C: Columns>(&self, day: Date, old: &[Add]) -> Result<Vec<Add>, ArchiveError> {
        let mut scan: Scan<C> = self.scan_files(old).await?;
        let mut files = MergedFiles::<C>::create(self, day)?;
        let none = || RecordBatch::new_empty(C::TABLE.schema());
        let mut first: Option<Row<C>> = None;
        while let Some(row) = scan.next().await? {
            let is_new = first.as_ref().is_none_or(|first| !first.is_at_place_of(&row));
            if is_new {
                first = Some(row.clone());
                if files.is_full() {
                    files.write(none())?;
                    files.next_file().await?;
                }
            }
            // A repository that two files have is one.
            let is_repeated = C::IS_ONE_RUN
                && first.as_ref().is_some_and(|first| first.place().0 != row.place().0);
            if !is_repeated {
                files.rows().keep(&row);
            }
            if files.rows().is_full() {
                files.write(none())?;
            }
        }
        files.write(none())?;
        files.next_file().await?;
        Ok(files.added)
    }
}

impl Compacted {
    fn add(&mut self, old: &[Add], new: &[Add]) {
        self.files += old.len() as u64;
        self.files_after += new.len() as u64;
        self.bytes_before += bytes(old);
        self.bytes_after += bytes(new);
    }
}

/// Whether files are as few as their size asks for.
fn is_merged(files: &[Add]) -> bool {
    files.len() as u64 <= bytes(files) / MAX_FILE_BYTES as u64 + 1
}

/// Attempts while other writers change the files.
const MAX_ATTEMPTS: u32 = 100;
