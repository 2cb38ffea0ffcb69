//! Is this our file, and how is it opened?
//!
//! | table | row |
//! |---|---|
//! | `cursor` | a stream and the last `seq` that was handled |
//! | `account` | a DID, its newest commit (`rev`, `data`, `commit`), whether it is in step, whether it is active |
//! | `key` | a DID, its key as a `did:key`, and when that was fetched, in microseconds since 1970 |
//!
//! The file says in its header that it is ours and of which version; both are read before anything is
//! written. It is written in WAL mode, so that readers go on meanwhile, and every commit is synced: see
//! `docs/decisions/state-file.md`.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::{StoreError, StoreFault};

/// What nobody else may hold while the file is used. Given back by the system when the process ends,
/// however it does.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Takes the lock of the state file at `path`. It is a file beside it: the locks on the file itself
    /// are SQLite's.
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let beside = beside(path, "lock");
        let file = File::create(&beside).map_err(StoreError::at(&beside))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(StoreError::new(path, StoreFault::InUse)),
            Err(TryLockError::Error(error)) => Err(StoreError::new(&beside, error)),
        }
    }
}

/// The connection that writes. Makes the file if there is none.
pub(crate) fn open_writer(path: &Path, max_bytes: Option<u64>) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let mut writer = connect(path, flags)?;
        let is_new = is_new(&writer)?;
        writer.pragma_update(None, "synchronous", "FULL")?;
        if let Some(bytes) = max_bytes {
            let pages = (bytes / PAGE_BYTES).max(1);
            writer.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        }
        // Before the change to WAL, which writes the header: one that does not say yet whose it is
        // would be refused the next time.
        if is_new {
            create(&mut writer)?;
        }
        writer.pragma_update(None, "journal_mode", "WAL")?;
        writer.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
        nobody_mends(&writer)?;
        Ok(writer)
    };
    open().map_err(|fault: StoreFault| StoreError::new(path, fault))
}

/// A connection that only reads.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    connect(path, flags).map_err(StoreError::at(path))
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// Whether nothing was written yet. What was written must be ours, and of our version.
fn is_new(connection: &Connection) -> Result<bool, StoreFault> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    match (pragma("page_count")?, pragma("application_id")?, pragma("user_version")?) {
        (0, ..) => Ok(true),
        (_, APPLICATION, VERSION) => Ok(false),
        (_, APPLICATION, found) => Err(StoreFault::OtherVersion { found, known: VERSION }),
        _ => Err(StoreFault::NotOurs),
    }
}

fn create(writer: &mut Connection) -> Result<(), StoreFault> {
    let transaction = writer.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}

/// Who was mending an account has ended with its process: the account is just out of step.
fn nobody_mends(writer: &Connection) -> Result<(), StoreFault> {
    writer.execute("UPDATE account SET sync = 1 WHERE sync = 2", [])?;
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

const SCHEMA: &str = r#"
CREATE TABLE cursor (
    stream TEXT PRIMARY KEY NOT NULL,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE account (
    did TEXT PRIMARY KEY NOT NULL,
    rev TEXT,
    data BLOB,
    "commit" BLOB,
    sync INTEGER NOT NULL,
    active INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX account_out_of_step ON account (sync) WHERE sync <> 0;

CREATE TABLE key (
    did TEXT PRIMARY KEY NOT NULL,
    key TEXT NOT NULL,
    fetched INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"#;

/// `WPst`, in the header of the file.
const APPLICATION: i64 = 0x5750_7374;

/// The version of the tables above.
const VERSION: i64 = 1;

/// How long another program that reads or copies the file is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the log of writes is cut back to, in bytes.
const LOG_BYTES: i64 = 64 << 20;

/// SQLite's own page.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a file that another program made and tells what was said of it.
    fn opened(make: impl FnOnce(&Connection)) -> StoreFault {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.sqlite");
        let other = Connection::open(&path).unwrap();
        make(&other);
        other.close().unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = open_writer(&path, None).unwrap_err();
        assert_eq!((std::fs::read(&path).unwrap(), error.path), (before, path));
        error.fault
    }

    #[test]
    fn another_programs_database_is_refused_and_left_alone() {
        assert_eq!(opened(|other| other.execute_batch(SCHEMA).unwrap()), StoreFault::NotOurs);
    }

    #[test]
    fn a_file_of_another_version_is_refused_and_left_alone() {
        let fault = opened(|other| {
            other.execute_batch(SCHEMA).unwrap();
            other.pragma_update(None, "application_id", APPLICATION).unwrap();
            other.pragma_update(None, "user_version", 2).unwrap();
        });
        assert_eq!(fault, StoreFault::OtherVersion { found: 2, known: 1 });
    }

    #[test]
    fn a_file_that_is_no_database_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.sqlite");
        std::fs::write(&path, [b'x'; 8192]).unwrap();
        assert_eq!(open_writer(&path, None).unwrap_err().fault, StoreFault::NotOurs);
        assert_eq!(std::fs::read(&path).unwrap(), [b'x'; 8192]);
    }

    #[test]
    fn a_lock_is_held_once_and_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.sqlite");
        let lock = Lock::take(&path).unwrap();
        assert_eq!(Lock::take(&path).unwrap_err().fault, StoreFault::InUse);
        drop(lock);
        Lock::take(&path).unwrap();
    }
}
