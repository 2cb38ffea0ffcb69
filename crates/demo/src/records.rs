//! The SQLite file of records that the stream fills.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use atproto::event::{Action, Commit};
use codec::json;
use rusqlite::{Connection, params};

use crate::Failure;

/// A table with the newest version of every record.
#[derive(Debug)]
pub(crate) struct Records(Connection);

impl Records {
    /// Creates the file, in place of an earlier one.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        if path.exists() {
            fs::remove_file(path)?;
        }
        let connection = Connection::open(path)?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self(connection))
    }

    /// Applies the operations of a verified commit, in a transaction that [`commit`](Self::commit) ends.
    pub(crate) fn apply(&self, commit: &Commit<'_>) -> rusqlite::Result<()> {
        if self.0.is_autocommit() {
            self.0.execute_batch("BEGIN")?;
        }
        let mut put = self.0.prepare_cached(PUT)?;
        let mut delete = self.0.prepare_cached(DELETE)?;
        for op in commit.ops {
            match (op.action, op.cid) {
                (Action::Create | Action::Update, Some(cid)) => {
                    let value = op.record.and_then(|block| block.value);
                    let text = value.as_ref().and_then(|value| json::encode(value).ok());
                    put.execute(params![commit.repo, op.path, cid.to_string(), text])?;
                }
                _ => drop(delete.execute(params![commit.repo, op.path])?),
            }
        }
        Ok(())
    }

    /// Ends the transaction, if one is open.
    pub(crate) fn commit(&self) -> rusqlite::Result<()> {
        if self.0.is_autocommit() { Ok(()) } else { self.0.execute_batch("COMMIT") }
    }

    /// The CID of every record, by account and path.
    pub(crate) fn cids(&self) -> rusqlite::Result<BTreeMap<(String, String), String>> {
        let mut rows = self.0.prepare("SELECT did, path, cid FROM record")?;
        let rows = rows.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
        rows.collect()
    }
}

const SCHEMA: &str = "\
CREATE TABLE record (
    did TEXT NOT NULL,
    path TEXT NOT NULL,
    cid TEXT NOT NULL,
    json TEXT,
    PRIMARY KEY (did, path)
) WITHOUT ROWID;";

const PUT: &str = "INSERT OR REPLACE INTO record (did, path, cid, json) VALUES (?1, ?2, ?3, ?4)";
const DELETE: &str = "DELETE FROM record WHERE did = ?1 AND path = ?2";
