//! Erasure of accounts: their rows leave every table, and the files that held them are deleted.

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch, StringArray};
use arrow_select::filter::filter_record_batch;
use futures_util::TryStreamExt;

use crate::archive::Archive;
use crate::delta::Snapshot;
use crate::erase_ledgers::erase_from_ledgers;
use crate::error::{ArchiveError, ArchiveFault};
use crate::file_batches::column;
use crate::replace::{Replacement, bytes};
use crate::table::{DAY, Table};
use crate::table_file::TableFile;
use crate::table_scan::can_have;

/// The result of an erasure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Number of rows, of all tables.
    pub rows: u64,
    /// Number of files that were rewritten without them, and deleted.
    pub files: u64,
    /// Number of rows of ledgers of backfills that named the account, and were rewritten without it.
    pub ledger_rows: u64,
    /// Number of blobs that no other account has, which were deleted.
    pub blobs: u64,
    /// Bytes that the archive is smaller by.
    pub bytes: u64,
    /// Number of files in the tables' folders that no log names: from a writer that is at work or has ended, or put
    /// there by someone else. Files of a writer are gone when the account is erased again a day later. The others stay,
    /// with the account's rows in them.
    pub uncommitted_files: u64,
}

/// The files of a table that have an account, and the files without it.
struct Rewrite {
    files: Replacement,
    rows: u64,
}

impl Archive {
    /// Erases an account: readers leave it out at once, its rows and the labels about it leave every table and every ledger, and the files that
    /// held them are deleted. Only a hash of the DID under a secret that is not in the archive, the reason and the time
    /// remain. Events of the account that come again are dropped when they are sealed, until its own server confirms
    /// that it is active again.
    ///
    /// Other programs that read one of the deleted files meanwhile fail. Events in a write-ahead log are dropped when it
    /// is sealed.
    ///
    /// # Errors
    /// If the archive was opened without an [erasure key](Archive::with_erasure_key), or cannot be written; then it is to be erased
    /// again.
    pub async fn erase(
        &self,
        did: &str,
        reason: &str,
        now_micros: i64,
    ) -> Result<Erased, ArchiveError> {
        self.check_logs().await?;
        self.mark_erased(did, reason, now_micros).await?;
        let mut erased = Erased::default();
        self.erase_blobs(did, &mut erased).await?;
        for table in Table::ALL {
            self.erase_from(table, did, &mut erased).await?;
        }
        erased.ledger_rows = erase_from_ledgers(self.storage(), did).await?;
        erased.uncommitted_files = self.sweep().await?;
        Ok(erased)
    }

    async fn erase_from(
        &self,
        table: Table,
        did: &str,
        erased: &mut Erased,
    ) -> Result<(), ArchiveError> {
        for _ in 0..MAX_ATTEMPTS {
            let rewrite = self.rewrite_without(table, &*self.snapshot(table).await?, did).await?;
            // Another writer may have changed one of the files.
            if self.replace(table, &rewrite.files).await? {
                let Replacement { old, new, .. } = &rewrite.files;
                erased.rows += rewrite.rows;
                erased.files += old.len() as u64;
                erased.bytes = erased.bytes.saturating_add(bytes(old).saturating_sub(bytes(new)));
                return Ok(());
            }
        }
        Err(ArchiveError::new(table.name(), ArchiveFault::Contention(MAX_ATTEMPTS)))
    }

    async fn rewrite_without(
        &self,
        table: Table,
        snapshot: &Snapshot,
        did: &str,
    ) -> Result<Rewrite, ArchiveError> {
        let files = Replacement { old: Vec::new(), new: Vec::new(), changes_data: true };
        let mut rewrite = Rewrite { files, rows: 0 };
        for add in snapshot.files.values().filter(|add| can_have(add, did)) {
            let day = add.partition_values.get(DAY).cloned().flatten().unwrap_or_default();
            let day = day.parse().unwrap_or_default();
            let mut file = TableFile::create(self.storage(), table, day)?;
            let mut rows = 0;
            let mut batches = self.ordered_batches(table, add).await?;
            while let Some(batch) = batches.try_next().await.map_err(ArchiveError::at(&add.path))? {
                let kept = without(table, &batch, did).map_err(ArchiveError::at(&add.path))?;
                rows += (batch.num_rows() - kept.num_rows()) as u64;
                file.write(&kept)?;
            }
            if rows > 0 {
                rewrite.rows += rows;
                rewrite.files.old.push(add.clone());
                rewrite.files.new.extend(file.finish(self.storage()).await?);
            }
        }
        Ok(rewrite)
    }
}

/// The rows of other accounts, and of none.
fn without(table: Table, batch: &RecordBatch, did: &str) -> Result<RecordBatch, ArchiveFault> {
    let names = table.account_columns().iter();
    let accounts: Vec<&StringArray> =
        names.map(|name| column(batch, name).as_string::<i32>()).collect();
    let is_its = |dids: &&StringArray, row| dids.is_valid(row) && dids.value(row) == did;
    let is_kept = |row| !accounts.iter().any(|dids| is_its(dids, row));
    let kept: BooleanArray = (0..batch.num_rows()).map(|row| Some(is_kept(row))).collect();
    Ok(filter_record_batch(batch, &kept)?)
}

/// Attempts while other writers change the files.
const MAX_ATTEMPTS: u32 = 100;
