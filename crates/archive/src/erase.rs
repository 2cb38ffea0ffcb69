//! Erasure of accounts: their rows leave every table, and the files that held them are deleted.

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use futures_util::TryStreamExt;

use crate::archive::Archive;
use crate::delta::{Add, Change, Committed, Remove, Snapshot, now_ms};
use crate::error::{ArchiveError, ArchiveFault};
use crate::table::{DAY, Table};
use crate::table_file::TableFile;

/// What was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Number of rows, of all tables.
    pub rows: u64,
    /// Number of files that were written anew without them, and deleted.
    pub files: u64,
    /// Bytes that the archive is smaller by.
    pub bytes: u64,
}

/// The files of a table without an account.
#[derive(Default)]
struct Rewrite {
    add: Vec<Add>,
    remove: Vec<Remove>,
    rows: u64,
}

impl Archive {
    /// Erases an account: readers leave it out at once, its rows leave every table, and the files that held them are
    /// deleted. What remains is a keyed hash of the DID, the reason and the time. Events of the account that come again are
    /// dropped when they are sealed, until it is active again.
    ///
    /// Other programs that read one of the deleted files meanwhile fail. Events in a write-ahead log are dropped when it
    /// is sealed.
    ///
    /// # Errors
    /// If the archive cannot be written; then it is to be erased again.
    pub async fn erase(
        &self,
        did: &str,
        reason: &str,
        now_micros: i64,
    ) -> Result<Erased, ArchiveError> {
        self.mark_erased(did, reason, now_micros).await?;
        let mut erased = Erased::default();
        for table in Table::ALL {
            self.erase_from(table, did, &mut erased).await?;
        }
        Ok(erased)
    }

    async fn erase_from(
        &self,
        table: Table,
        did: &str,
        erased: &mut Erased,
    ) -> Result<(), ArchiveError> {
        for _ in 0..MAX_ATTEMPTS {
            let rewrite = self.rewrite_without(table, &self.snapshot(table).await?, did).await?;
            if rewrite.remove.is_empty() {
                return Ok(());
            }
            let removed: Vec<(String, u64)> = rewrite
                .remove
                .iter()
                .map(|file| (file.path.clone(), file.size.unwrap_or(0)))
                .collect();
            let added: u64 = rewrite.add.iter().map(|file| file.size).sum();
            let change = Change {
                operation: "DELETE",
                add: rewrite.add,
                remove: rewrite.remove,
                ..Change::default()
            };
            if self.commit(table, &change).await? == Committed::Superseded {
                // Another writer has changed one of the files.
                continue;
            }
            for (path, size) in &removed {
                self.storage().delete(&format!("{}/{path}", table.name())).await?;
                erased.bytes = erased.bytes.saturating_add(*size);
            }
            erased.bytes = erased.bytes.saturating_sub(added);
            erased.files += removed.len() as u64;
            erased.rows += rewrite.rows;
            return Ok(());
        }
        Err(ArchiveError::new(table.name(), ArchiveFault::Contention(MAX_ATTEMPTS)))
    }

    async fn rewrite_without(
        &self,
        table: Table,
        snapshot: &Snapshot,
        did: &str,
    ) -> Result<Rewrite, ArchiveError> {
        let mut rewrite = Rewrite::default();
        for add in snapshot.files.values().filter(|add| can_have(add, did)) {
            let day = add.partition_values.get(DAY).cloned().flatten().unwrap_or_default();
            let day = day.parse().unwrap_or_default();
            let (mut file, mut rows) = (TableFile::create(self.storage(), table, day)?, 0);
            let mut batches = self.batches(table, &add.path).await?;
            while let Some(batch) = batches.try_next().await? {
                let kept = without(&batch, did).map_err(ArchiveError::at(&add.path))?;
                rows += (batch.num_rows() - kept.num_rows()) as u64;
                file.write(&kept)?;
            }
            if rows > 0 {
                rewrite.rows += rows;
                rewrite.remove.push(remove(add));
                rewrite.add.extend(file.finish(self.storage()).await?);
            }
        }
        Ok(rewrite)
    }
}

/// Whether a file can have rows of an account, by the bounds that the log states.
fn can_have(add: &Add, did: &str) -> bool {
    let stats = add.stats();
    let bound = |values: &serde_json::Map<String, serde_json::Value>| {
        values.get("did").and_then(|value| value.as_str()).map(str::to_owned)
    };
    bound(&stats.min_values).is_none_or(|min| *min <= *did)
        && bound(&stats.max_values).is_none_or(|max| *did <= *max)
}

/// The rows of other accounts, and of none.
fn without(batch: &RecordBatch, did: &str) -> Result<RecordBatch, ArchiveFault> {
    let accounts =
        batch.column_by_name("did").expect("every table has accounts").as_string::<i32>();
    let is_kept = |row| accounts.is_null(row) || accounts.value(row) != did;
    let kept: BooleanArray = (0..batch.num_rows()).map(|row| Some(is_kept(row))).collect();
    Ok(filter_record_batch(batch, &kept)?)
}

fn remove(add: &Add) -> Remove {
    Remove {
        path: add.path.clone(),
        deletion_timestamp: Some(now_ms()),
        data_change: true,
        extended_file_metadata: Some(true),
        partition_values: Some(add.partition_values.clone()),
        size: Some(add.size),
    }
}

/// Attempts while other writers change the files.
const MAX_ATTEMPTS: u32 = 100;
