//! The table of labels: a row for every source, subject and value.

use rusqlite::{Connection, params};
use store::StoreFault;
use store::sqlite_file::FileFormat;

use crate::label_rows::LabelRow;

/// Applies labels: of those about the same, the one that was created last remains.
pub(super) fn apply(transaction: &Connection, rows: &[&LabelRow<'_>]) -> Result<u64, StoreFault> {
    let (mut upsert, mut count) = (transaction.prepare_cached(UPSERT)?, 0);
    for row in rows {
        let line = &row.line;
        count += upsert.execute(params![
            LabelRow::text(&line.src),
            LabelRow::text(&line.uri),
            LabelRow::text(&line.val),
            line.cid.as_deref(),
            line.neg,
            LabelRow::text(&line.cts),
            line.exp.as_deref(),
            row.created,
            row.expires,
            LabelRow::text(&line.service),
            row.seq,
            LabelRow::text(&line.sig),
            LabelRow::text(&line.key),
        ])? as u64;
    }
    Ok(count)
}

const UPSERT: &str = "
INSERT INTO label_state (src, uri, val, cid, neg, cts, exp, created, expires, service, seq, sig, key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (src, uri, val) DO UPDATE SET
    cid = excluded.cid, neg = excluded.neg, cts = excluded.cts, exp = excluded.exp, created = excluded.created,
    expires = excluded.expires, service = excluded.service, seq = excluded.seq, sig = excluded.sig, key = excluded.key
WHERE (excluded.created, excluded.seq) >= (label_state.created, label_state.seq)";

const SCHEMA: &str = "
CREATE TABLE label_state (
    src TEXT NOT NULL,
    uri TEXT NOT NULL,
    val TEXT NOT NULL,
    cid TEXT,
    neg INTEGER,
    cts TEXT NOT NULL,
    exp TEXT,
    created INTEGER NOT NULL,
    expires INTEGER,
    service TEXT NOT NULL,
    seq INTEGER NOT NULL,
    sig TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (src, uri, val)
) STRICT, WITHOUT ROWID;

CREATE INDEX label_of_subject ON label_state (uri);

CREATE VIEW label AS SELECT src, uri, val, cid, cts, exp FROM label_state
WHERE neg IS NOT 1 AND (expires IS NULL OR expires > CAST(strftime('%s', 'now') AS INTEGER) * 1000000);

CREATE TABLE cursor (
    outbox TEXT PRIMARY KEY NOT NULL,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Application id: `WPla`.
pub(super) const FORMAT: FileFormat =
    FileFormat { application_id: 0x5750_6c61, version: 1, schema: SCHEMA };
