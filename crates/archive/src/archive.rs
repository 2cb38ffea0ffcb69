//! An archive: its tables and their logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

use crate::delta::{Change, Committed, Format, Log, MetaData, Snapshot, now_ms, schema_string};
use crate::erasures::ErasureKey;
use crate::error::{ArchiveError, ArchiveFault};
use crate::ids::uuid;
use crate::sealed::WorkId;
use crate::spilled_file::SpilledFiles;
use crate::storage::Storage;
use crate::table::{DAY, Table};
use crate::uploads;

/// An archive in a folder or an object store. Clones share it.
#[derive(Clone, Debug)]
pub struct Archive {
    storage: Storage,
    /// The tables as of their last use here, by [`Table`].
    snapshots: Arc<[Mutex<Arc<Snapshot>>; Table::ALL.len()]>,
    spilled: Arc<SpilledFiles>,
    /// The secret under which the DIDs of erased accounts are hashed.
    erasure_key: Option<ErasureKey>,
}

/// The size of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Number of versions of its log.
    pub versions: u64,
    /// Number of files.
    pub files: u64,
    /// Number of rows.
    pub rows: u64,
    /// Size of the files in bytes.
    pub bytes: u64,
    /// The first day of its rows.
    pub first_day: Option<String>,
    /// The last day of its rows.
    pub last_day: Option<String>,
}

impl Archive {
    /// The archive at this address; one that is empty gets its tables with the first rows.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn open(address: &str) -> Result<Self, ArchiveError> {
        Storage::open(address).map(Self::new)
    }

    /// The archive at this address, which must have a table.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if there is no archive.
    pub async fn open_existing(address: &str) -> Result<Self, ArchiveError> {
        let is_missing = || ArchiveError::new(address, ArchiveFault::NoArchive);
        let is_folder = |path: &str| std::fs::exists(path).unwrap_or(true);
        let path = address.strip_prefix("file://").unwrap_or(address);
        if !path.contains("://") && !is_folder(path) {
            return Err(is_missing());
        }
        let archive = Self::open(address)?;
        if archive.check_logs().await? {
            return Ok(archive);
        }
        Err(is_missing())
    }

    /// Reads the logs of all tables; whether one of them has a version. An archive of which one log is damaged is neither read nor
    /// written.
    ///
    /// # Errors
    /// If a log cannot be read whole, or is shorter than it was.
    pub async fn check_logs(&self) -> Result<bool, ArchiveError> {
        let tables = Table::ALL.map(|table| self.snapshot(table));
        let snapshots = futures_util::future::try_join_all(tables).await?;
        Ok(snapshots.iter().any(|snapshot| snapshot.next_version > 0))
    }

    /// The archive in this storage.
    pub fn new(storage: Storage) -> Self {
        Self { storage, snapshots: Arc::default(), spilled: Arc::default(), erasure_key: None }
    }

    /// The archive with the secret of its erasures, if there is one. Without it no account can be erased, and nothing can be stored
    /// once one was: it would not be recognized.
    #[must_use]
    pub fn with_erasure_key(self, erasure_key: Option<ErasureKey>) -> Self {
        Self { erasure_key, ..self }
    }

    pub(crate) fn erasure_key(&self) -> Option<&ErasureKey> {
        self.erasure_key.as_ref()
    }

    /// The files of the archive.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The size of a table as of now.
    ///
    /// # Errors
    /// If its log cannot be read.
    pub async fn table_stats(&self, table: Table) -> Result<TableStats, ArchiveError> {
        let snapshot = self.snapshot(table).await?;
        let mut stats = TableStats { versions: snapshot.next_version, ..TableStats::default() };
        for add in snapshot.files.values() {
            let day = add.partition_values.get(DAY).cloned().flatten();
            stats.files += 1;
            stats.rows += add.stats().num_records;
            stats.bytes += add.size;
            stats.first_day = stats.first_day.into_iter().chain(day.clone()).min();
            stats.last_day = stats.last_day.max(day);
        }
        Ok(stats)
    }

    /// The files of events that are read in order of arrival.
    pub(crate) fn spilled(&self) -> &SpilledFiles {
        &self.spilled
    }

    /// Number of entries of the log of a table as of now.
    pub(crate) async fn version(&self, table: Table) -> Result<u64, ArchiveError> {
        Ok(self.updated(table).await?.next_version)
    }

    /// A table as of now.
    pub(crate) async fn snapshot(&self, table: Table) -> Result<Arc<Snapshot>, ArchiveError> {
        Ok(self.updated(table).await?.clone())
    }

    /// Whether work is in a table already.
    pub(crate) async fn has_committed(
        &self,
        table: Table,
        work: &WorkId,
    ) -> Result<bool, ArchiveError> {
        let snapshot = self.updated(table).await?;
        Ok(snapshot.txns.get(&work.writer).is_some_and(|last| *last >= work.number))
    }

    /// The locked state of a table, with the new entries of its log.
    async fn updated(&self, table: Table) -> Result<MutexGuard<'_, Arc<Snapshot>>, ArchiveError> {
        let mut snapshot = self.snapshots[table as usize].lock().await;
        self.log(table).update(&mut snapshot).await?;
        Ok(snapshot)
    }

    pub(crate) async fn commit(
        &self,
        table: Table,
        change: &Change,
    ) -> Result<Committed, ArchiveError> {
        let mut snapshot = self.snapshots[table as usize].lock().await;
        let committed = self.log(table).commit(&mut snapshot, change, || metadata(table)).await?;
        for add in change.add.iter().filter(|add| snapshot.files.contains_key(&add.path)) {
            uploads::settle(&self.storage, table, &add.path).await?;
        }
        Ok(committed)
    }

    pub(crate) fn log(&self, table: Table) -> Log {
        Log::new(self.storage.clone(), table.name())
    }
}

fn metadata(table: Table) -> MetaData {
    MetaData {
        id: uuid(),
        name: Some(table.name().to_owned()),
        description: None,
        format: Format { provider: "parquet".to_owned(), options: BTreeMap::new() },
        schema_string: schema_string(&table.schema(), &[DAY]),
        partition_columns: vec![DAY.to_owned()],
        configuration: BTreeMap::new(),
        created_time: Some(now_ms()),
    }
}
