//! The tables of a [`SqliteSink`](super::SqliteSink), and what a line changes in them.

use rusqlite::{Connection, OptionalExtension, Params, params};
use store::StoreFault;
use store::sqlite_file::FileFormat;

use super::line::{Line, Op};
use crate::database::OutboxIdentity;
use crate::event::Event;

/// The position of the last event of an outbox in these tables.
pub(super) fn position(
    connection: &Connection,
    outbox: OutboxIdentity,
) -> Result<Option<u64>, StoreFault> {
    let mut select = connection.prepare_cached("SELECT position FROM cursor WHERE outbox = ?1")?;
    let found: Option<i64> = select.query_row([outbox.to_string()], |row| row.get(0)).optional()?;
    Ok(found.map(i64::cast_unsigned))
}

/// Stores the position of the last event of an outbox.
pub(super) fn set_position(
    transaction: &Connection,
    outbox: OutboxIdentity,
    position: u64,
) -> Result<(), StoreFault> {
    let row = params![outbox.to_string(), position.cast_signed()];
    execute(
        transaction,
        "INSERT INTO cursor (outbox, position) VALUES (?1, ?2)
         ON CONFLICT (outbox) DO UPDATE SET position = ?2",
        row,
    )
}

/// Deletes all but the last `max` rows of `event`.
pub(super) fn delete_old_events(transaction: &Connection, max: u64) -> Result<(), StoreFault> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    execute(
        transaction,
        "DELETE FROM event WHERE number <= (SELECT seq FROM sqlite_sequence WHERE name = 'event') - ?1",
        [max],
    )
}

/// Applies an event.
pub(super) fn apply(transaction: &Connection, event: &Event) -> Result<(), StoreFault> {
    let line = Line::parse(event.payload());
    insert_event(transaction, event, &line)?;
    match &*line.kind {
        "commit" if line.is_verified() => apply_commit(transaction, &line),
        "sync" if line.is_verified() => apply_sync(transaction, &line),
        "resync" if line.is_verified() => apply_piece(transaction, &line),
        "identity" if line.is_claim() => execute(
            transaction,
            "UPDATE account SET claimed_handle = ?2 WHERE did = ?1",
            params![line.did, line.handle],
        ),
        "account" if line.is_claim() => execute(
            transaction,
            "UPDATE account SET active = ?2, status = ?3 WHERE did = ?1",
            params![line.did, line.active.unwrap_or(true), line.status],
        ),
        "status" if line.code == "status/confirmed" => apply_status(transaction, &line),
        _ => Ok(()),
    }
}

fn insert_event(
    transaction: &Connection,
    event: &Event,
    line: &Line<'_>,
) -> Result<(), StoreFault> {
    // The records of a repository are in `record`, and may be many.
    let text = (line.kind != "resync").then(|| String::from_utf8_lossy(event.payload()));
    execute(
        transaction,
        "INSERT INTO event (id, did, kind, rev, verdict, code, live, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            event.id(),
            line.did,
            line.kind,
            line.rev,
            line.verdict,
            line.code,
            line.live,
            text
        ],
    )
}

/// What the tables know of an account.
struct Known {
    rev: Option<String>,
    /// Number of repositories of the account that have begun.
    generation: i64,
    /// The number of the next piece of its repository, while one arrives without a gap.
    next_piece: Option<i64>,
}

fn known(transaction: &Connection, did: &str) -> Result<Option<Known>, StoreFault> {
    let mut select = transaction
        .prepare_cached("SELECT rev, generation, next_piece FROM account WHERE did = ?1")?;
    let row = |row: &rusqlite::Row<'_>| {
        Ok(Known { rev: row.get(0)?, generation: row.get(1)?, next_piece: row.get(2)? })
    };
    Ok(select.query_row([did], row).optional()?)
}

/// Applies the operations of a commit, unless the tables have it or a later one: a stream that is read again from an
/// older cursor must not bring back what was deleted since.
fn apply_commit(transaction: &Connection, line: &Line<'_>) -> Result<(), StoreFault> {
    let known = known(transaction, &line.did)?;
    let (rev, generation) = known.map_or((None, 0), |known| (known.rev, known.generation));
    if rev.is_some() && rev.as_deref() >= line.rev.as_deref() {
        return Ok(());
    }
    line.ops.iter().try_for_each(|op| apply_op(transaction, line, op, generation))?;
    // After a gap, or before the repository was fetched, records are missing.
    let is_continued = line.code == "verified";
    execute(
        transaction,
        "INSERT INTO account (did, rev) VALUES (?1, ?2)
         ON CONFLICT (did) DO UPDATE SET rev = ?2, active = 1, status = NULL, complete = complete AND ?3",
        params![line.did, line.rev, is_continued],
    )
}

fn apply_sync(transaction: &Connection, line: &Line<'_>) -> Result<(), StoreFault> {
    match &*line.code {
        "verified/broken" => execute(
            transaction,
            "UPDATE account SET complete = 0 WHERE did = ?1",
            params![line.did],
        ),
        _ => Ok(()),
    }
}

/// Applies a status that the account's own server has confirmed, unless the account has become active since. The records
/// of a deleted account are deleted.
fn apply_status(transaction: &Connection, line: &Line<'_>) -> Result<(), StoreFault> {
    let is_deleted = line.status.as_deref() == Some("deleted");
    if is_deleted {
        execute(transaction, DELETE_RECORDS_OF_INACTIVE, params![line.did])?;
    }
    execute(
        transaction,
        "UPDATE account SET status = ?2, complete = complete AND NOT ?3 WHERE did = ?1 AND NOT active",
        params![line.did, line.status, is_deleted],
    )
}

/// Applies a piece of a repository. With the last one of an unbroken row of pieces, the records that were in none of
/// them are deleted.
fn apply_piece(transaction: &Connection, line: &Line<'_>) -> Result<(), StoreFault> {
    if line.piece == Some(0) {
        execute(transaction, BEGIN_REPOSITORY, params![line.did])?;
    }
    let Some(known) = known(transaction, &line.did)? else { return Ok(()) };
    let is_next = line.piece.is_some() && known.next_piece == line.piece;
    let next_piece = if is_next { line.piece.map(|piece| piece + 1) } else { None };
    execute(
        transaction,
        "UPDATE account SET next_piece = ?2 WHERE did = ?1",
        params![line.did, next_piece],
    )?;
    line.ops.iter().try_for_each(|op| apply_op(transaction, line, op, known.generation))?;
    match line.last && is_next {
        true => end_repository(transaction, line, known.generation),
        false => Ok(()),
    }
}

fn end_repository(
    transaction: &Connection,
    line: &Line<'_>,
    generation: i64,
) -> Result<(), StoreFault> {
    execute(
        transaction,
        "DELETE FROM record WHERE did = ?1 AND generation <> ?2",
        params![line.did, generation],
    )?;
    execute(
        transaction,
        "UPDATE account SET rev = ?2, complete = 1, next_piece = NULL WHERE did = ?1",
        params![line.did, line.rev],
    )
}

fn apply_op(
    transaction: &Connection,
    line: &Line<'_>,
    op: &Op<'_>,
    generation: i64,
) -> Result<(), StoreFault> {
    if op.action == "delete" {
        return execute(
            transaction,
            "DELETE FROM record WHERE did = ?1 AND collection = ?2 AND rkey = ?3",
            params![line.did, op.collection, op.rkey],
        );
    }
    let (record, invalid) =
        (op.record.map(|record| record.get()), op.invalid.map(|invalid| invalid.get()));
    execute(
        transaction,
        UPSERT_RECORD,
        params![
            line.did,
            op.collection,
            op.rkey,
            op.cid,
            line.rev.as_deref().unwrap_or_default(),
            line.live,
            record,
            invalid,
            generation
        ],
    )
}

fn execute(
    transaction: &Connection,
    statement: &str,
    values: impl Params,
) -> Result<(), StoreFault> {
    transaction.prepare_cached(statement)?.execute(values)?;
    Ok(())
}

const DELETE_RECORDS_OF_INACTIVE: &str = "
DELETE FROM record WHERE did = ?1 AND EXISTS (SELECT 1 FROM account WHERE did = ?1 AND NOT active)";

/// A repository begins: until its last piece, the account is not complete.
const BEGIN_REPOSITORY: &str = "
INSERT INTO account (did, generation, next_piece) VALUES (?1, 1, 0)
ON CONFLICT (did) DO UPDATE SET
    active = 1, status = NULL, complete = 0, generation = generation + 1, next_piece = 0";

/// A record that has not changed keeps the revision that brought it.
const UPSERT_RECORD: &str = "
INSERT INTO record (did, collection, rkey, cid, rev, live, record, invalid, generation)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (did, collection, rkey) DO UPDATE SET
    rev = iif(cid IS ?4, rev, ?5), live = iif(cid IS ?4, live, ?6),
    cid = ?4, record = ?7, invalid = ?8, generation = ?9";

const SCHEMA: &str = "
CREATE TABLE record (
    did TEXT NOT NULL,
    collection TEXT NOT NULL,
    rkey TEXT NOT NULL,
    cid TEXT,
    rev TEXT NOT NULL,
    live INTEGER NOT NULL,
    record TEXT,
    invalid TEXT,
    generation INTEGER NOT NULL,
    PRIMARY KEY (did, collection, rkey)
) STRICT, WITHOUT ROWID;

CREATE TABLE account (
    did TEXT PRIMARY KEY NOT NULL,
    rev TEXT,
    claimed_handle TEXT,
    active INTEGER NOT NULL DEFAULT 1,
    status TEXT,
    complete INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    next_piece INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    did TEXT NOT NULL,
    kind TEXT NOT NULL,
    rev TEXT,
    verdict TEXT NOT NULL,
    code TEXT NOT NULL,
    live INTEGER NOT NULL,
    line TEXT
) STRICT;

CREATE TABLE cursor (
    outbox TEXT PRIMARY KEY NOT NULL,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW active_record AS
SELECT did, collection, rkey, cid, record.rev AS rev, live, record, invalid
FROM record JOIN account USING (did) WHERE active;
";

/// Application id: `WPtb`.
pub(super) const FORMAT: FileFormat =
    FileFormat { application_id: 0x5750_7462, version: 1, schema: SCHEMA };
