//! The common parts of our SQLite files: an application id, a schema version, a complete first transaction, WAL mode
//! with synced commits, and a check of its pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::with_suffix;
use rusqlite::{Connection, OpenFlags};

use crate::database::{StoreError, StoreFault};
use crate::files;

/// A kind of SQLite file.
#[derive(Clone, Copy, Debug)]
pub struct FileFormat {
    /// Application id in the header of the file.
    pub application_id: i64,
    /// Version of the schema that this program writes. Earlier ones start at 1.
    pub version: i64,
    /// Statements that create the tables.
    pub schema: &'static str,
}

impl FileFormat {
    /// Creates a complete file under a temporary name, so that a file of 0 bytes is always a damaged one, and returns
    /// that name. `fill` adds the first rows.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create_temporary(
        &self,
        path: &Path,
        fill: impl FnOnce(&Connection) -> Result<(), StoreFault>,
    ) -> Result<PathBuf, StoreError> {
        let temporary = with_suffix(path, ".new");
        // Logs of a deleted file would be replayed into this one.
        let logs = ["-wal", "-shm", "-journal"].map(|suffix| with_suffix(path, suffix));
        for leftover in logs.iter().chain([&temporary]).filter(|path| path.exists()) {
            fs::remove_file(leftover).map_err(StoreError::at(leftover))?;
        }
        self.create(&temporary, fill).map_err(StoreError::at(path))?;
        Ok(temporary)
    }

    fn create(
        &self,
        path: &Path,
        fill: impl FnOnce(&Connection) -> Result<(), StoreFault>,
    ) -> Result<(), StoreFault> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut writer = connect(path, flags)?;
        let transaction = writer.transaction()?;
        transaction.execute_batch(self.schema)?;
        fill(&transaction)?;
        transaction.pragma_update(None, "application_id", self.application_id)?;
        transaction.pragma_update(None, "user_version", self.version)?;
        Ok(transaction.commit()?)
    }

    /// The schema version of the file, which must have our application id: 1 to the current one.
    ///
    /// # Errors
    /// If the file is of another kind or a later version.
    pub fn version_of(&self, connection: &Connection) -> Result<i64, StoreFault> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let (application_id, found) = (pragma("application_id")?, pragma("user_version")?);
        match (1..=self.version).contains(&found) {
            _ if application_id != self.application_id => Err(StoreFault::NotOurs),
            true => Ok(found),
            false => Err(StoreFault::OtherVersion { found, known: self.version }),
        }
    }
}

/// Opens a connection to a file that exists, to read and write.
///
/// # Errors
/// If the file has 0 bytes or cannot be opened.
pub fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    files::check_not_empty(path)?;
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(StoreError::at(path))
}

/// Opens a connection to a file that exists, to read.
///
/// # Errors
/// If the file cannot be opened.
pub fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(StoreError::at(path))
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

/// Checks that every page is where it belongs.
///
/// # Errors
/// If one is not.
pub fn check_pages(connection: &Connection) -> Result<(), StoreFault> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(StoreFault::Damaged(found)) }
}

/// Syncs every commit of this connection, and limits the file to `max_bytes`.
///
/// # Errors
/// If SQLite fails.
pub fn sync_commits(writer: &Connection, max_bytes: Option<u64>) -> Result<(), StoreFault> {
    writer.pragma_update(None, "synchronous", "FULL")?;
    if let Some(bytes) = max_bytes {
        let pages = (bytes / PAGE_BYTES).max(1);
        writer.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(())
}

/// Lets readers continue during writes: the file gets a log, which is truncated after it was long.
///
/// # Errors
/// If the file cannot be written.
pub fn use_log(writer: &Connection) -> Result<(), StoreFault> {
    writer.pragma_update(None, "journal_mode", "WAL")?;
    writer.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    Ok(())
}

/// Whether more than half of the pages are free, so that rewriting the file pays.
///
/// # Errors
/// If SQLite fails.
pub fn is_mostly_free(connection: &Connection) -> Result<bool, StoreFault> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(pragma("freelist_count")? > pragma("page_count")? / 2)
}

/// Size in bytes of the largest file that is read as a whole at the start.
pub const MAX_CHECKED_BYTES: u64 = 64 << 20;

/// How long to wait for another program's lock on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Size in bytes to which the write-ahead log is truncated.
const LOG_BYTES: i64 = 64 << 20;

/// Page size of SQLite in bytes.
const PAGE_BYTES: u64 = 4096;
