//! The SQLite file: its lock, connections and schema, the rows of accounts, and what can go wrong.
//!
//! | table | row |
//! |---|---|
//! | `cursor` | a stream and its last handled `seq` |
//! | `account` | a DID, its newest commit (`rev`, `data`, `commit`), its `SyncState`, whether it is active |
//! | `key` | a DID, its key as a `did:key`, and when that was fetched, in microseconds since 1970 |
//!
//! The header has an application id and a schema version; both are read before anything is written. WAL
//! mode lets readers continue during writes, and every commit is synced: see
//! `docs/decisions/state-file.md`.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use atproto::syntax::Tid;
use codec::Cid;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};
use verify::sync::{AccountState, Head, SyncState};

/// The exclusive lock of a state file. The system releases it when the process ends, even by a crash.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Takes the lock of the state file at `path`: a lock file beside it, because the locks on the file
    /// itself are SQLite's.
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let lock_path = lock_path(path);
        let file = File::create(&lock_path).map_err(StoreError::at(&lock_path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(StoreError::new(path, StoreFault::InUse)),
            Err(TryLockError::Error(error)) => Err(StoreError::new(&lock_path, error)),
        }
    }
}

/// Opens the writing connection, and creates the file if there is none.
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
        // Before the switch to WAL, which writes the header: a file without our application id would
        // be rejected at the next start.
        if is_new {
            create(&mut writer)?;
        }
        writer.pragma_update(None, "journal_mode", "WAL")?;
        writer.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
        reset_interrupted_resyncs(&writer)?;
        Ok(writer)
    };
    open().map_err(|fault: StoreFault| StoreError::new(path, fault))
}

/// Opens a read-only connection.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    connect(path, flags).map_err(StoreError::at(path))
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Whether the file is empty. Otherwise it must have our application id and version.
fn is_new(connection: &Connection) -> Result<bool, StoreFault> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    match (pragma("page_count")?, pragma("application_id")?, pragma("user_version")?) {
        (0, ..) => Ok(true),
        (_, APPLICATION_ID, VERSION) => Ok(false),
        (_, APPLICATION_ID, found) => Err(StoreFault::OtherVersion { found, known: VERSION }),
        _ => Err(StoreFault::NotOurs),
    }
}

fn create(writer: &mut Connection) -> Result<(), StoreFault> {
    let transaction = writer.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}

/// Marks accounts as desynchronized whose resync ended with the last process.
fn reset_interrupted_resyncs(writer: &Connection) -> Result<(), StoreFault> {
    writer.execute("UPDATE account SET sync = 1 WHERE sync = 2", [])?;
    Ok(())
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// The key of an account when it was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// The key as a `did:key`, stored verbatim.
    pub did_key: String,
    /// When it was fetched, in microseconds since 1970.
    pub fetched_micros: u64,
}

/// Reads the state of an account, if it has a row.
pub(crate) fn read_account(
    connection: &Connection,
    did: &str,
) -> Result<Option<AccountState>, StoreFault> {
    let mut select = connection.prepare_cached(SELECT_ACCOUNT)?;
    let row = select.query_row([did], AccountRow::of).optional()?;
    let account = row.map(|row| row.into_state()).transpose();
    account.map_err(|column| StoreFault::Damaged(format!("{column} of {did}")))
}

/// Writes the state of an account.
pub(crate) fn write_account(
    connection: &Connection,
    did: &str,
    account: &AccountState,
) -> Result<(), StoreFault> {
    let AccountState { head, sync, is_active } = account;
    let rev = head.map(|head| head.rev.to_bytes());
    let rev = rev.as_ref().map(|rev| str::from_utf8(rev).expect("the alphabet is ASCII"));
    let data = head.as_ref().map(|head| head.data.as_bytes().as_slice());
    let commit = head.as_ref().map(|head| head.commit.as_bytes().as_slice());
    let mut upsert = connection.prepare_cached(UPSERT_ACCOUNT)?;
    upsert.execute(params![did, rev, data, commit, *sync as u8, is_active])?;
    Ok(())
}

/// The columns of a row.
struct AccountRow {
    rev: Option<String>,
    data: Option<Vec<u8>>,
    commit: Option<Vec<u8>>,
    sync: u8,
    is_active: bool,
}

impl AccountRow {
    fn of(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            rev: row.get(0)?,
            data: row.get(1)?,
            commit: row.get(2)?,
            sync: row.get(3)?,
            is_active: row.get(4)?,
        })
    }

    /// The state, or the name of a column with an impossible value.
    fn into_state(self) -> Result<AccountState, &'static str> {
        let head = match (&self.rev, &self.data, &self.commit) {
            (None, None, None) => None,
            (Some(rev), Some(data), Some(commit)) => Some(Head {
                rev: Tid::parse(rev).map_err(|_| "rev")?,
                data: Cid::from_bytes(data).ok_or("data")?,
                commit: Cid::from_bytes(commit).ok_or("commit")?,
            }),
            _ => return Err("head"),
        };
        let sync = SYNC_STATES.into_iter().find(|state| *state as u8 == self.sync).ok_or("sync")?;
        Ok(AccountState { head, sync, is_active: self.is_active })
    }
}

/// An error of a state file. The file is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// The fault.
    pub fault: StoreFault,
}

/// A fault of a state file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreFault {
    /// Another process uses the file.
    #[error("another process uses this state file: stop it, or choose another folder")]
    InUse,
    /// Another program holds an SQLite lock on the file for longer than the timeout.
    #[error("another program keeps this file locked")]
    Locked,
    /// The disk, or the file's size limit, is full.
    #[error("the disk is full")]
    Full,
    /// The file is not a state file.
    #[error("not a state file of wireproof")]
    NotOurs,
    /// A state file of another schema version.
    #[error("state file of version {found}; this program reads version {known}")]
    OtherVersion {
        /// The version in the file.
        found: i64,
        /// The version that this program reads and writes.
        known: i64,
    },
    /// The file has impossible contents.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// The writer thread has ended.
    #[error("the state file was closed")]
    Closed,
    /// An error of the file system.
    #[error("{1}")]
    Io(io::ErrorKind, String),
    /// An error of SQLite, with its extended code.
    #[error("{1} (SQLite code {0})")]
    Sqlite(i32, String),
}

impl StoreError {
    /// An error with the file at `path`.
    pub(crate) fn new(path: &Path, fault: impl Into<StoreFault>) -> Self {
        Self { path: path.to_owned(), fault: fault.into() }
    }

    /// [`new`](Self::new), for `map_err`.
    pub(crate) fn at<F: Into<StoreFault>>(path: &Path) -> impl Fn(F) -> Self {
        move |fault| Self::new(path, fault)
    }
}

impl From<io::Error> for StoreFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            kind => Self::Io(kind, error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreFault {
    #[cold]
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error() {
            // A column of another type than the one that was written there.
            None => Self::Damaged(text),
            Some(sqlite) => match sqlite.code {
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked,
                ErrorCode::DiskFull => Self::Full,
                ErrorCode::NotADatabase => Self::NotOurs,
                ErrorCode::DatabaseCorrupt => Self::Damaged(text),
                _ => Self::Sqlite(sqlite.extended_code, text),
            },
        }
    }
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

/// Application id in the header of the file: `WPst`.
const APPLICATION_ID: i64 = 0x5750_7374;

/// Version of the schema above.
const VERSION: i64 = 1;

/// How long to wait for another program's lock on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Size in bytes to which the write-ahead log is truncated.
const LOG_BYTES: i64 = 64 << 20;

/// Page size of SQLite in bytes.
const PAGE_BYTES: u64 = 4096;

const SYNC_STATES: [SyncState; 3] =
    [SyncState::Synchronized, SyncState::Desynchronized, SyncState::InProgress];

const SELECT_ACCOUNT: &str =
    r#"SELECT rev, data, "commit", sync, active FROM account WHERE did = ?1"#;

const UPSERT_ACCOUNT: &str = r#"
INSERT INTO account (did, rev, data, "commit", sync, active) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (did) DO UPDATE SET rev = ?2, data = ?3, "commit" = ?4, sync = ?5, active = ?6
"#;

#[cfg(test)]
mod tests {
    use super::*;

    /// The fault of opening a file that another program made.
    fn fault_of_opening(make: impl FnOnce(&Connection)) -> StoreFault {
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
    fn another_programs_database_is_rejected_and_unchanged() {
        assert_eq!(
            fault_of_opening(|other| other.execute_batch(SCHEMA).unwrap()),
            StoreFault::NotOurs
        );
    }

    #[test]
    fn a_file_of_another_version_is_rejected_and_unchanged() {
        let fault = fault_of_opening(|other| {
            other.execute_batch(SCHEMA).unwrap();
            other.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
            other.pragma_update(None, "user_version", 2).unwrap();
        });
        assert_eq!(fault, StoreFault::OtherVersion { found: 2, known: 1 });
    }

    #[test]
    fn a_file_that_is_not_a_database_is_rejected_and_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.sqlite");
        std::fs::write(&path, [b'x'; 8192]).unwrap();
        assert_eq!(open_writer(&path, None).unwrap_err().fault, StoreFault::NotOurs);
        assert_eq!(std::fs::read(&path).unwrap(), [b'x'; 8192]);
    }

    #[test]
    fn a_lock_is_exclusive_and_released_on_drop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.sqlite");
        let lock = Lock::take(&path).unwrap();
        assert_eq!(Lock::take(&path).unwrap_err().fault, StoreFault::InUse);
        drop(lock);
        Lock::take(&path).unwrap();
    }
}
