//! The SQLite file: its connections and schema, the rows of accounts, and the faults.
//!
//! | table | row |
//! |---|---|
//! | `cursor` | a stream and its last handled `seq` |
//! | `account` | a DID, its newest commit (`rev`, `data`, `commit`), its `SyncState`, whether it is active |
//! | `key` | a DID, its key as a `did:key`, when that was fetched, in microseconds since 1970, and the account's host |
//! | `printed` | a stream and a `seq` that no printed event of it exceeds |
//! | `recent` | a stream, and the hashes of the last printed events, which its cursor alone does not tell from others |
//! | `stream_checksum` | the one checksum of all rows of `cursor` and `printed` |
//!
//! A row of `account` or `key` has its own checksum. One without a checksum is damaged: a fault of the length of the
//! row's header moves its columns, and the last one is missing.
//!
//! Anyone can name accounts that do not exist. So an account without a commit has a row only while it is
//! desynchronized, and the number of these rows is bounded.
//!
//! The header has an application id and a schema version; both are read before anything is written. WAL
//! mode lets readers continue during writes, and every commit is synced: see
//! `docs/decisions/state-file.md`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use atproto::syntax::Tid;
use base::{LockError, LockFault, crash_point};
use codec::Cid;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};
use verify::sync::{AccountState, Head, SyncState};

use crate::checksum::Checksum;
use crate::keys;
use crate::sqlite_file::{self, FileFormat, MAX_CHECKED_BYTES};
use crate::streams::{self, Streams};

/// Opens the writing connection of a file that exists.
pub(crate) fn open_writer(path: &Path, max_bytes: Option<u64>) -> Result<Connection, StoreError> {
    let mut writer = sqlite_file::open_writer(path)?;
    let prepare = || {
        let version = FORMAT.version_of(&writer)?;
        let is_small = fs::metadata(path)?.len() <= MAX_CHECKED_BYTES;
        if is_small {
            sqlite_file::check_pages(&writer)?;
        }
        sqlite_file::sync_commits(&writer, max_bytes)?;
        if version < FORMAT.version {
            migrate(&mut writer, version)?;
        }
        Streams::read(&writer)?;
        if is_small {
            check_accounts(&writer)?;
        }
        sqlite_file::use_log(&writer)?;
        reset_interrupted_resyncs(&writer)?;
        Ok(writer)
    };
    prepare().map_err(|fault: StoreFault| StoreError::new(path, fault))
}

/// Checks that a file is one of the current version.
pub(crate) fn check_current(reader: &Connection) -> Result<(), StoreFault> {
    match FORMAT.version_of(reader)? {
        found if found < FORMAT.version => {
            Err(StoreFault::EarlierVersion { found, known: FORMAT.version })
        }
        _ => Ok(()),
    }
}

/// Creates the file if there is none.
pub(crate) fn create_if_missing(path: &Path) -> Result<(), StoreError> {
    if path.try_exists().map_err(StoreError::at(path))? {
        return Ok(());
    }
    let temporary = FORMAT.create_temporary(path, streams::seal)?;
    crash_point("state/created");
    fs::rename(&temporary, path).map_err(StoreError::at(path))?;
    crash_point("state/named");
    Ok(())
}

/// Checks every account, and their order: with a wrong name, others would not be found either.
fn check_accounts(connection: &Connection) -> Result<(), StoreFault> {
    let mut select = connection.prepare(SELECT_ACCOUNTS)?;
    let (mut rows, mut last) = (select.query([])?, None);
    while let Some(row) = rows.next()? {
        let did: String = row.get(6)?;
        AccountRow::of(row)?.into_state(&did)?;
        if last.as_ref().is_some_and(|last| *last >= did) {
            return Err(StoreFault::Damaged(format!("the order at {did}")));
        }
        last = Some(did);
    }
    Ok(())
}

/// Brings a file of an earlier version to the current one.
fn migrate(writer: &mut Connection, version: i64) -> Result<(), StoreFault> {
    let transaction = writer.transaction()?;
    if version == 1 {
        transaction.execute_batch(MIGRATION_FROM_1)?;
    }
    if version <= 2 {
        transaction.execute_batch(MIGRATION_FROM_2)?;
    }
    if version <= 3 {
        transaction.execute_batch(MIGRATION_FROM_3)?;
    }
    seal_accounts(&transaction)?;
    keys::seal(&transaction)?;
    streams::seal(&transaction)?;
    transaction.pragma_update(None, "user_version", FORMAT.version)?;
    crash_point("state/migrating");
    transaction.commit()?;
    crash_point("state/migrated");
    if sqlite_file::is_mostly_free(writer)? {
        // Best effort: without space for the copy, the free pages are reused.
        let _ = writer.execute_batch("VACUUM");
    }
    Ok(())
}

/// Stores the checksums of accounts that have none, some at a time.
fn seal_accounts(transaction: &Connection) -> Result<(), StoreFault> {
    let mut select = transaction.prepare(SELECT_WITHOUT_CHECKSUM)?;
    let mut update = transaction.prepare("UPDATE account SET checksum = ?2 WHERE did = ?1")?;
    let mut last = String::new();
    loop {
        let rows = select.query_map([&last], |row| Ok((row.get(6)?, AccountRow::of(row)?)))?;
        let rows = rows.collect::<Result<Vec<(String, AccountRow)>, _>>()?;
        let Some((newest, _)) = rows.last() else { return Ok(()) };
        last.clone_from(newest);
        for (did, row) in rows {
            let state = row.state().map_err(damaged(&did))?;
            update.execute(params![did, checksum(&did, &state)])?;
        }
    }
}

/// Marks accounts as desynchronized whose resync ended with the last process.
fn reset_interrupted_resyncs(writer: &Connection) -> Result<(), StoreFault> {
    let mut select = writer.prepare("SELECT did FROM account WHERE sync = 2")?;
    let dids = select.query_map([], |row| row.get(0))?;
    for did in dids.collect::<Result<Vec<String>, _>>()? {
        let account = read_account(writer, &did)?.unwrap_or_default();
        write_account(writer, &did, &AccountState { sync: SyncState::Desynchronized, ..account })?;
    }
    crash_point("state/opened");
    Ok(())
}

/// Reads the state of an account, if it has a row.
pub(crate) fn read_account(
    connection: &Connection,
    did: &str,
) -> Result<Option<AccountState>, StoreFault> {
    let mut select = connection.prepare_cached(SELECT_ACCOUNT)?;
    let row = select.query_row([did], AccountRow::of).optional()?;
    row.map(|row| row.into_state(did)).transpose()
}

/// Writes the states of accounts.
pub(crate) fn write_accounts(
    connection: &Connection,
    accounts: &[(Box<str>, AccountState)],
) -> Result<(), StoreFault> {
    accounts.iter().try_for_each(|(did, account)| write_account(connection, did, account))?;
    if accounts.iter().any(|(_, account)| account.head.is_none()) {
        prune_without_head(connection)
    } else {
        Ok(())
    }
}

fn write_account(
    connection: &Connection,
    did: &str,
    account: &AccountState,
) -> Result<(), StoreFault> {
    let AccountState { head, sync, is_active } = account;
    if head.is_none() && *sync == SyncState::Synchronized {
        connection.prepare_cached(DELETE_ACCOUNT)?.execute([did])?;
        return Ok(());
    }
    let rev = head.map(|head| head.rev.to_bytes());
    let rev = rev.as_ref().map(|rev| str::from_utf8(rev).expect("the alphabet is ASCII"));
    let data = head.as_ref().map(|head| head.data.as_bytes().as_slice());
    let commit = head.as_ref().map(|head| head.commit.as_bytes().as_slice());
    let mut upsert = connection.prepare_cached(UPSERT_ACCOUNT)?;
    let checksum = checksum(did, account);
    upsert.execute(params![did, rev, data, commit, *sync as u8, is_active, checksum])?;
    Ok(())
}

/// The checksum of the row of an account.
fn checksum(did: &str, account: &AccountState) -> i64 {
    let AccountState { head, sync, is_active } = account;
    let sum = Checksum::of("account").bytes(Some(did.as_bytes()));
    let sum = sum.number(*sync as u64).number(u64::from(*is_active));
    let sum = head.iter().fold(sum, |sum, Head { rev, data, commit }| {
        sum.bytes(Some(&rev.to_bytes())).bytes(Some(data.as_bytes())).bytes(Some(commit.as_bytes()))
    });
    sum.to_integer()
}

/// Number of accounts without a commit.
pub(crate) fn count_without_head(connection: &Connection) -> Result<u32, StoreFault> {
    let mut count = connection.prepare_cached(COUNT_WITHOUT_HEAD)?;
    Ok(count.query_row([], |row| row.get(0))?)
}

/// Deletes accounts without a commit if there are too many. Which ones is random: an order would let whoever
/// invents accounts choose.
fn prune_without_head(connection: &Connection) -> Result<(), StoreFault> {
    let count = count_without_head(connection)?;
    if count > MAX_WITHOUT_HEAD {
        let excess = count - MAX_WITHOUT_HEAD / 8 * 7;
        connection.prepare_cached(DELETE_WITHOUT_HEAD)?.execute([excess])?;
    }
    Ok(())
}

/// The columns of a row.
struct AccountRow {
    rev: Option<String>,
    data: Option<Vec<u8>>,
    commit: Option<Vec<u8>>,
    sync: u8,
    is_active: bool,
    checksum: Option<i64>,
}

impl AccountRow {
    fn of(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            rev: row.get(0)?,
            data: row.get(1)?,
            commit: row.get(2)?,
            sync: row.get(3)?,
            is_active: row.get(4)?,
            checksum: row.get(5)?,
        })
    }

    /// The state, if the checksum is the one of the row.
    fn into_state(self, did: &str) -> Result<AccountState, StoreFault> {
        let state = self.state().map_err(damaged(did))?;
        if self.checksum == Some(checksum(did, &state)) {
            Ok(state)
        } else {
            Err(damaged(did)("checksum"))
        }
    }

    /// The state, or the name of a column with an impossible value.
    fn state(&self) -> Result<AccountState, &'static str> {
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

/// The fault of an account's row with a damaged column.
fn damaged(did: &str) -> impl Fn(&str) -> StoreFault {
    move |column| StoreFault::Damaged(format!("{column} of {did}"))
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
    #[error(
        "another process uses this state file, and holds the lock file next to it: stop it, or choose another folder"
    )]
    InUse,
    /// Another program holds an SQLite lock on the file for longer than the timeout.
    #[error("another program keeps this file locked")]
    Locked,
    /// The disk, or the file's size limit, is full.
    #[error("the disk is full")]
    Full,
    /// The file is not a state file.
    #[error(
        "not a state file of wireproof, or one with a damaged header: choose another folder; or restore the file, \
         or delete it and start at the last cursor that was reported"
    )]
    NotOurs,
    /// A state file of another schema version.
    #[error(
        "state file of version {found}; this program reads versions up to {known}: use the program that wrote it, \
         or choose another folder"
    )]
    OtherVersion {
        /// The version in the file.
        found: i64,
        /// The version that this program writes.
        known: i64,
    },
    /// A state file of an earlier version, which can be read once it was opened for writing.
    #[error(
        "state file of version {found}: the next run of `wireproof follow` with this state brings it to version {known}, \
         which this command reads"
    )]
    EarlierVersion {
        /// The version in the file.
        found: i64,
        /// The version that this program writes.
        known: i64,
    },
    /// A mirror of an earlier version, which can be read once it was opened for writing.
    #[error(
        "mirror of version {found}: the next run of `wireproof plc mirror` with this file brings it to version {known}, \
         which this command reads"
    )]
    EarlierMirror {
        /// The version in the file.
        found: i64,
        /// The version that this program writes.
        known: i64,
    },
    /// The mirror is of another directory.
    #[error("the file is a mirror of {0}: choose another file, or that directory")]
    OtherDirectory(String),
    /// The file, or its lock file, was deleted or replaced while it was in use.
    #[error("the file was deleted or replaced while it was in use; its contents are lost")]
    Replaced,
    /// The file has 0 bytes.
    #[error(
        "the file is damaged: it has 0 bytes; restore it, or delete it and start at the last cursor \
         that was reported"
    )]
    Emptied,
    /// The file has impossible contents.
    #[error(
        "the file is damaged: {0}; restore it, or delete it and start at the last cursor that was reported"
    )]
    Damaged(String),
    /// The file, one of its logs or its folder cannot be written.
    #[error(
        "the file, or its lock file or log (.lock, -wal, -shm) cannot be written: check the permissions of all of them and of the \
         folder, or choose another folder ({0})"
    )]
    NotWritable(String),
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
    #[doc(hidden)]
    pub fn new(path: &Path, fault: impl Into<StoreFault>) -> Self {
        Self { path: path.to_owned(), fault: fault.into() }
    }

    /// [`new`](Self::new), for `map_err`.
    #[doc(hidden)]
    pub fn at<F: Into<StoreFault>>(path: &Path) -> impl Fn(F) -> Self {
        move |fault| Self::new(path, fault)
    }
}

impl From<LockError> for StoreError {
    fn from(error: LockError) -> Self {
        let fault = match error.fault {
            LockFault::InUse => StoreFault::InUse,
            LockFault::Replaced => StoreFault::Replaced,
            LockFault::Io(error) => error.into(),
        };
        Self { path: error.path, fault }
    }
}

impl From<io::Error> for StoreFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::IsADirectory => Self::NotWritable(error.to_string()),
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
                // Our statements are right for our schema.
                ErrorCode::DatabaseCorrupt | ErrorCode::Unknown => Self::Damaged(text),
                ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                    Self::NotWritable(text)
                }
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
    active INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX account_out_of_step ON account (sync) WHERE sync <> 0;

CREATE INDEX account_without_head ON account (did) WHERE rev IS NULL;

CREATE TABLE key (
    did TEXT PRIMARY KEY NOT NULL,
    key TEXT NOT NULL,
    fetched INTEGER NOT NULL,
    host TEXT,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE printed (
    stream TEXT PRIMARY KEY NOT NULL,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE stream_checksum (
    id INTEGER PRIMARY KEY NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE recent (
    stream TEXT PRIMARY KEY NOT NULL,
    hashes BLOB NOT NULL
) STRICT, WITHOUT ROWID;
"#;

/// In version 1 every account that an event named had a row, and keys had no host.
const MIGRATION_FROM_1: &str = "
DELETE FROM account WHERE rev IS NULL;
CREATE INDEX account_without_head ON account (did) WHERE rev IS NULL;
ALTER TABLE key ADD COLUMN host TEXT;
CREATE TABLE printed (stream TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";

/// Version 2 had no checksums.
const MIGRATION_FROM_2: &str = "
ALTER TABLE account ADD COLUMN checksum INTEGER;
ALTER TABLE key ADD COLUMN checksum INTEGER;
CREATE TABLE stream_checksum (id INTEGER PRIMARY KEY NOT NULL, checksum INTEGER NOT NULL) STRICT;
";

/// Version 3 had no hashes of printed events.
const MIGRATION_FROM_3: &str = "
CREATE TABLE recent (stream TEXT PRIMARY KEY NOT NULL, hashes BLOB NOT NULL) STRICT, WITHOUT ROWID;
";

/// Application id: `WPst`. Up to version 4, rows could be without a checksum.
const FORMAT: FileFormat = FileFormat { application_id: 0x5750_7374, version: 5, schema: SCHEMA };

/// Maximum number of accounts without a commit.
pub(crate) const MAX_WITHOUT_HEAD: u32 = 32_768;

const SYNC_STATES: [SyncState; 3] =
    [SyncState::Synchronized, SyncState::Desynchronized, SyncState::InProgress];

const SELECT_ACCOUNT: &str =
    r#"SELECT rev, data, "commit", sync, active, checksum FROM account WHERE did = ?1"#;

const SELECT_ACCOUNTS: &str =
    r#"SELECT rev, data, "commit", sync, active, checksum, did FROM account ORDER BY did"#;

const SELECT_WITHOUT_CHECKSUM: &str = r#"
SELECT rev, data, "commit", sync, active, checksum, did FROM account
WHERE did > ?1 AND checksum IS NULL ORDER BY did LIMIT 1000"#;

const UPSERT_ACCOUNT: &str = r#"
INSERT INTO account (did, rev, data, "commit", sync, active, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (did)
DO UPDATE SET rev = ?2, data = ?3, "commit" = ?4, sync = ?5, active = ?6, checksum = ?7
"#;

const DELETE_ACCOUNT: &str = "DELETE FROM account WHERE did = ?1";

const COUNT_WITHOUT_HEAD: &str = "SELECT count(*) FROM account WHERE rev IS NULL";

const DELETE_WITHOUT_HEAD: &str = "
DELETE FROM account WHERE did IN
(SELECT did FROM account WHERE rev IS NULL ORDER BY random() LIMIT ?1)";

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
            other.pragma_update(None, "application_id", FORMAT.application_id).unwrap();
            other.pragma_update(None, "user_version", 6).unwrap();
        });
        assert_eq!(fault, StoreFault::OtherVersion { found: 6, known: 5 });
    }

    #[test]
    fn a_file_that_is_not_a_database_is_rejected_and_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.sqlite");
        std::fs::write(&path, [b'x'; 8192]).unwrap();
        assert_eq!(open_writer(&path, None).unwrap_err().fault, StoreFault::NotOurs);
        assert_eq!(std::fs::read(&path).unwrap(), [b'x'; 8192]);
    }
}
