//! The tables of a [`SqliteSink`](super::SqliteSink): their rows in SQL.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Params, TransactionBehavior, params};
use store::StoreFault;
use store::sqlite_file::FileFormat;

use crate::database::OutboxIdentity;
use crate::tables::{
    self, Account, Changes, ParsedEvent, RecordChange, RecordPath, RecordRow, Step,
};

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

/// Notes that an account lacks something, if the tables have it.
pub(super) fn mark_incomplete(transaction: &Connection, did: &str) -> Result<(), StoreFault> {
    execute(
        transaction,
        "UPDATE account SET complete = 0, complete_in = '[]' WHERE did = ?1",
        [did],
    )
}

/// Applies events.
pub(super) fn apply(
    transaction: &Connection,
    events: &[ParsedEvent<'_>],
) -> Result<u64, StoreFault> {
    let mut changes = Changes::new(accounts(transaction, tables::dids(events))?);
    for event in events {
        insert_event(transaction, event)?;
        changes.apply(&event.line);
    }
    changes.accounts().try_for_each(|(did, account)| put_account(transaction, did, account))?;
    changes.steps().iter().try_for_each(|step| apply_step(transaction, step))?;
    Ok(changes.rows())
}

fn insert_event(transaction: &Connection, parsed: &ParsedEvent<'_>) -> Result<(), StoreFault> {
    let line = &parsed.line;
    execute(
        transaction,
        "INSERT INTO event (id, did, kind, rev, verdict, code, live, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            parsed.event.id(),
            line.did(),
            line.kind().as_str(),
            line.rev(),
            line.verdict.as_str(),
            line.code.as_str(),
            line.is_live(),
            parsed.text()
        ],
    )
}

/// The rows of those accounts that have one.
fn accounts<'l>(
    transaction: &Connection,
    dids: Vec<&'l str>,
) -> Result<HashMap<&'l str, Account>, StoreFault> {
    let mut select = transaction.prepare_cached(
        "SELECT rev, claimed_handle, active, status, complete, complete_in, generation, next_piece FROM account WHERE did = ?1",
    )?;
    let mut found = HashMap::with_capacity(dids.len());
    for did in dids {
        let account = |row: &rusqlite::Row<'_>| {
            Ok(Account {
                rev: row.get(0)?,
                claimed_handle: row.get(1)?,
                active: row.get(2)?,
                status: row.get(3)?,
                complete: row.get(4)?,
                complete_in: row.get::<_, Option<String>>(5)?.map(|names| read_names(&names)),
                generation: row.get(6)?,
                next_piece: row.get(7)?,
            })
        };
        if let Some(account) = select.query_row([did], account).optional()? {
            found.insert(did, account);
        }
    }
    Ok(found)
}

/// The names in the column `complete_in`; none in a text that is not of ours.
fn read_names(names: &str) -> Vec<String> {
    serde_json::from_str(names).unwrap_or_default()
}

/// Brings tables of version 1, which name no collections, to the current version: they name some after the next repository.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreFault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch("ALTER TABLE account ADD COLUMN complete_in TEXT DEFAULT '[]'")?;
    transaction.pragma_update(None, "user_version", FORMAT.version)?;
    Ok(transaction.commit()?)
}

fn put_account(transaction: &Connection, did: &str, account: &Account) -> Result<(), StoreFault> {
    execute(
        transaction,
        "INSERT OR REPLACE INTO account (did, rev, claimed_handle, active, status, complete, complete_in, generation, next_piece)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            did,
            account.rev,
            account.claimed_handle,
            account.active,
            account.status,
            account.complete,
            account.complete_in.as_ref().map(|names| serde_json::json!(names).to_string()),
            account.generation,
            account.next_piece
        ],
    )
}

fn apply_step(transaction: &Connection, step: &Step<'_>) -> Result<(), StoreFault> {
    for ((did, collection, rkey), change) in &step.records {
        match change {
            RecordChange::Put(row) => put_record(transaction, (did, collection, rkey), row)?,
            RecordChange::Delete => execute(
                transaction,
                "DELETE FROM record WHERE did = ?1 AND collection = ?2 AND rkey = ?3",
                params![did, collection, rkey],
            )?,
        }
    }
    step.outdated.iter().try_for_each(|(did, generation)| {
        execute(
            transaction,
            "DELETE FROM record WHERE did = ?1 AND generation < ?2",
            params![did, generation],
        )
    })
}

fn put_record(
    transaction: &Connection,
    (did, collection, rkey): RecordPath<'_>,
    row: &RecordRow<'_>,
) -> Result<(), StoreFault> {
    execute(
        transaction,
        PUT_RECORD,
        params![
            did,
            collection,
            rkey,
            row.cid,
            row.rev,
            row.live,
            row.record,
            row.invalid,
            row.generation,
            row.is_replaced
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

/// A record that has not changed keeps the revision that brought it.
const PUT_RECORD: &str = "
INSERT INTO record (did, collection, rkey, cid, rev, live, record, invalid, generation)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (did, collection, rkey) DO UPDATE SET
    rev = iif(cid IS ?4 AND NOT ?10, rev, ?5), live = iif(cid IS ?4 AND NOT ?10, live, ?6),
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
    complete_in TEXT DEFAULT '[]',
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
    FileFormat { application_id: 0x5750_7462, version: 2, schema: SCHEMA };
