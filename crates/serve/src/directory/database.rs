//! The SQLite file of the directory.
//!
//! | table | row |
//! |---|---|
//! | `account` | a DID, the revision and the CID of its newest commit, whether it is active, its status |
//! | `collection` | the name of a collection, and a DID that wrote a record in it |
//! | `progress` | the arrival up to which events are applied |
//!
//! Commits are not synced: after a crash, the log has their events.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, params};

use super::AccountEntry;
use crate::content::Head;

/// Opens the file for writing, and creates it if it is missing.
pub(super) fn open_writer(folder: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open(folder.join(NAME))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

/// Opens the file for reading.
pub(super) fn open_reader(folder: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join(NAME), flags)?;
    connection.busy_timeout(Duration::from_secs(1))?;
    Ok(connection)
}

/// The arrival up to which events are applied.
pub(super) fn applied(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let applied = connection.query_row("SELECT arrival FROM progress", [], |row| row.get(0));
    Ok(applied.optional()?.unwrap_or(0))
}

pub(super) fn set_applied(
    transaction: &Transaction<'_>,
    arrival: i64,
) -> Result<(), rusqlite::Error> {
    let mut replace = transaction.prepare_cached(
        "INSERT INTO progress VALUES (1, ?1) ON CONFLICT DO UPDATE SET arrival = ?1",
    )?;
    replace.execute([arrival]).map(drop)
}

/// Records a commit, unless a later one is known.
pub(super) fn put_head(
    transaction: &Transaction<'_>,
    did: &str,
    head: &Head,
) -> Result<(), rusqlite::Error> {
    let mut upsert = transaction.prepare_cached(
        "INSERT INTO account (did, rev, head) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET rev = ?2, head = ?3 \
         WHERE rev IS NULL OR rev < ?2",
    )?;
    upsert.execute(params![did, head.rev, head.commit]).map(drop)
}

/// Records a status. A deleted account has no collections.
pub(super) fn put_status(
    transaction: &Transaction<'_>,
    did: &str,
    active: bool,
    status: Option<&str>,
) -> Result<(), rusqlite::Error> {
    let mut upsert = transaction.prepare_cached(
        "INSERT INTO account (did, active, status) VALUES (?1, ?2, ?3) \
         ON CONFLICT DO UPDATE SET active = ?2, status = ?3",
    )?;
    upsert.execute(params![did, active, status])?;
    if status == Some("deleted") {
        let mut delete = transaction.prepare_cached("DELETE FROM collection WHERE did = ?1")?;
        delete.execute([did])?;
    }
    Ok(())
}

/// Records that an account wrote a record in a collection.
pub(super) fn put_collection(
    transaction: &Transaction<'_>,
    name: &str,
    did: &str,
) -> Result<(), rusqlite::Error> {
    let mut insert =
        transaction.prepare_cached("INSERT OR IGNORE INTO collection VALUES (?1, ?2)")?;
    insert.execute([name, did]).map(drop)
}

pub(super) fn account(
    connection: &Connection,
    did: &str,
) -> Result<Option<AccountEntry>, rusqlite::Error> {
    let mut select = connection
        .prepare_cached("SELECT did, rev, head, active, status FROM account WHERE did = ?1")?;
    select.query_row([did], entry).optional()
}

pub(super) fn accounts_after(
    connection: &Connection,
    did: &str,
    max: usize,
) -> Result<Vec<AccountEntry>, rusqlite::Error> {
    let mut select = connection.prepare_cached(
        "SELECT did, rev, head, active, status FROM account WHERE did > ?1 AND rev IS NOT NULL ORDER BY did LIMIT ?2",
    )?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    select.query_map(params![did, max], entry)?.collect()
}

pub(super) fn accounts_in(
    connection: &Connection,
    collection: &str,
    did: &str,
    max: usize,
) -> Result<Vec<String>, rusqlite::Error> {
    let mut select = connection.prepare_cached(
        "SELECT did FROM collection WHERE name = ?1 AND did > ?2 ORDER BY did LIMIT ?3",
    )?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    select.query_map(params![collection, did, max], |row| row.get(0))?.collect()
}

pub(super) fn count(connection: &Connection) -> Result<u64, rusqlite::Error> {
    let count: i64 = connection.query_row("SELECT count(*) FROM account", [], |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or_default())
}

fn entry(row: &Row<'_>) -> Result<AccountEntry, rusqlite::Error> {
    let rev: Option<String> = row.get(1)?;
    let head: Option<String> = row.get(2)?;
    Ok(AccountEntry {
        did: row.get(0)?,
        head: rev.zip(head),
        active: row.get(3)?,
        status: row.get(4)?,
    })
}

const NAME: &str = "directory.sqlite";

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS account (
    did TEXT PRIMARY KEY, rev TEXT, head TEXT, active INTEGER NOT NULL DEFAULT 1, status TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS collection (
    name TEXT NOT NULL, did TEXT NOT NULL, PRIMARY KEY (name, did)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS collection_of_account ON collection (did);
CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY CHECK (id = 1), arrival INTEGER NOT NULL) STRICT;
";
