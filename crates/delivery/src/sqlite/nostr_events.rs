//! The table of Nostr events: a row an event.

use events::NostrEvent;
use rusqlite::{Connection, params};
use store::StoreFault;
use store::sqlite_file::FileFormat;

/// Inserts the events that the table has not.
pub(super) fn apply(
    transaction: &Connection,
    events: &[NostrEvent<'_>],
) -> Result<u64, StoreFault> {
    let (mut insert, mut rows) = (transaction.prepare_cached(INSERT)?, 0);
    for event in events {
        rows += insert.execute(params![
            &*event.id,
            &*event.pubkey,
            event.created_at,
            event.kind,
            event.tags.get(),
            &*event.content,
            &*event.sig
        ])? as u64;
    }
    Ok(rows)
}

const INSERT: &str = "
INSERT INTO event (id, pubkey, created_at, kind, tags, content, sig) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (id) DO NOTHING";

const SCHEMA: &str = "
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    pubkey TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    tags TEXT NOT NULL,
    content TEXT NOT NULL,
    sig TEXT NOT NULL
) STRICT;

CREATE TABLE cursor (
    outbox TEXT PRIMARY KEY NOT NULL,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Application id: `WPne`.
pub(super) const FORMAT: FileFormat =
    FileFormat { application_id: 0x5750_6e65, version: 1, schema: SCHEMA };
