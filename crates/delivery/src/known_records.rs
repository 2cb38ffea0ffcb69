//! The tables of the records that consumers have of accounts, and their rows as the writer of the outbox changes them.
//!
//! | table | row |
//! |---|---|
//! | `account` | an account whose history was asked for or has begun: whether it is complete (1, or 4 until consumers know that fewer collections are selected), was complete and is to be compared again (2, or 3 if only collections are missing), or neither (0), and whether its records are remembered |
//! | `record` | account, path, 16 bytes of the hash in the record's CID |
//! | `record_count` | one: the number of rows of `record` |
//! | `listing` | a list of accounts, and the cursor after the pages that were stored |
//! | `selection` | at most one: the source's selection when histories were last compared with it |
//!
//! At the limit of [`Options::max_records`](crate::Options::max_records) the account that exceeds it is no longer
//! remembered: its next repository is delivered as a whole.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::OutboxFault;
use crate::record_effects::{Hash, RecordEffects, Source};

/// The remembered records of all accounts, for the writer: the rows of the accounts that changed last are kept in memory, and
/// read again after another connection has written.
pub(crate) struct KnownRecords {
    accounts: HashMap<Box<str>, Option<AccountRow>>,
    /// Number of records, the number in the file, and the limit.
    records: u64,
    stored_records: u64,
    max_records: u64,
    /// SQLite's number of the file's content, as long as only this connection writes; `None` if nothing is known.
    version: Option<i64>,
}

/// A row of `account`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountRow {
    pub(crate) id: i64,
    pub(crate) is_complete: bool,
    /// Whether it is complete except for records that were selected since, or events that were lost.
    pub(crate) is_outdated: bool,
    /// Whether it is outdated only by collections that were selected since.
    pub(crate) is_widened: bool,
    /// Whether it is complete, and fewer collections are selected than consumers know.
    pub(crate) is_narrowed: bool,
    pub(crate) is_remembered: bool,
}

impl KnownRecords {
    pub(crate) fn new(max_records: u64) -> Self {
        let (accounts, version) = Default::default();
        Self { accounts, records: 0, stored_records: 0, max_records, version }
    }

    /// Begins a transaction, which must have the write lock.
    pub(crate) fn begin(&mut self, transaction: &Connection) -> Result<(), OutboxFault> {
        let mut select = transaction.prepare_cached("PRAGMA data_version")?;
        let version = select.query_row([], |row| row.get(0))?;
        if self.version != Some(version) {
            let count = "SELECT records FROM record_count";
            self.records =
                transaction.query_row(count, [], |row| row.get(0)).map(i64::cast_unsigned)?;
            self.stored_records = self.records;
            self.accounts.clear();
            self.version = Some(version);
        }
        if self.accounts.len() > MAX_KNOWN_ACCOUNTS {
            self.accounts.clear();
        }
        Ok(())
    }

    /// Ends a transaction, before it is committed.
    pub(crate) fn end(&mut self, transaction: &Connection) -> Result<(), OutboxFault> {
        if self.records != self.stored_records {
            let update = "UPDATE record_count SET records = ?1";
            transaction.prepare_cached(update)?.execute([self.records.cast_signed()])?;
            self.stored_records = self.records;
        }
        Ok(())
    }

    /// Forgets the content in memory, after a transaction that failed.
    pub(crate) fn forget(&mut self) {
        self.version = None;
    }

    /// Applies the effects of an event of this account.
    pub(crate) fn apply(
        &mut self,
        transaction: &Connection,
        did: &str,
        effects: &RecordEffects,
    ) -> Result<(), OutboxFault> {
        let Some(stored) = self.account(transaction, did, effects.source)? else { return Ok(()) };
        let mut account = stored.for_effects(effects.source);
        for (path, hash) in &effects.changes {
            if account.is_remembered {
                self.change(transaction, &mut account, path, hash.as_ref())?;
            }
        }
        if let Source::Repository { is_whole, is_last } = effects.source {
            account.is_complete = is_last || (account.is_complete && !is_whole);
            account.is_outdated &= !is_last;
            account.is_widened &= !is_last;
            account.is_narrowed &= !is_last;
        }
        if effects.source == Source::Deletion {
            self.delete_records(transaction, &account)?;
            (account.is_complete, account.is_outdated) = (false, false);
            (account.is_widened, account.is_narrowed) = (false, false);
            account.is_remembered = true;
        }
        if account != stored {
            let update = "UPDATE account SET complete = ?2, remembered = ?3 WHERE id = ?1";
            let row = params![account.id, account.completeness(), account.is_remembered];
            transaction.prepare_cached(update)?.execute(row)?;
            self.accounts.insert(did.into(), Some(account));
        }
        Ok(())
    }

    /// The row of an account, a new one where a repository brings its first records.
    fn account(
        &mut self,
        transaction: &Connection,
        did: &str,
        source: Source,
    ) -> Result<Option<AccountRow>, OutboxFault> {
        let known = match self.accounts.get(did) {
            Some(known) => *known,
            None => select_account(transaction, did)?,
        };
        let account = match source {
            Source::Repository { .. } if known.is_none() => {
                transaction.prepare_cached(INSERT_ACCOUNT)?.execute([did, ""])?;
                select_account(transaction, did)?
            }
            _ => known,
        };
        if account != known || !self.accounts.contains_key(did) {
            self.accounts.insert(did.into(), account);
        }
        Ok(account)
    }

    fn change(
        &mut self,
        transaction: &Connection,
        account: &mut AccountRow,
        path: &str,
        hash: Option<&Hash>,
    ) -> Result<(), OutboxFault> {
        let Some(hash) = hash else {
            let delete = "DELETE FROM record WHERE account = ?1 AND path = ?2";
            let deleted = transaction.prepare_cached(delete)?.execute((account.id, path))?;
            self.records -= deleted as u64;
            return Ok(());
        };
        let row = (account.id, path, hash);
        // Most are new: an update before would be a search for nothing.
        if self.records < self.max_records {
            let inserted = transaction.prepare_cached(INSERT_RECORD)?.execute(row)?;
            self.records += inserted as u64;
            if inserted > 0 {
                return Ok(());
            }
        }
        let update = "UPDATE record SET hash = ?3 WHERE account = ?1 AND path = ?2";
        match transaction.prepare_cached(update)?.execute(row)? {
            0 => self.forget_records(transaction, account),
            _ => Ok(()),
        }
    }

    fn forget_records(
        &mut self,
        transaction: &Connection,
        account: &mut AccountRow,
    ) -> Result<(), OutboxFault> {
        self.delete_records(transaction, account)?;
        account.is_remembered = false;
        Ok(())
    }

    fn delete_records(
        &mut self,
        transaction: &Connection,
        account: &AccountRow,
    ) -> Result<(), OutboxFault> {
        let delete = "DELETE FROM record WHERE account = ?1";
        let deleted = transaction.prepare_cached(delete)?.execute([account.id])?;
        self.records -= deleted as u64;
        Ok(())
    }
}

impl AccountRow {
    /// The row while effects are applied: a whole repository is remembered again.
    fn for_effects(self, source: Source) -> Self {
        let is_whole = matches!(source, Source::Repository { is_whole: true, .. });
        let is_remembered = self.is_remembered || (self.is_complete && is_whole);
        Self { is_remembered, ..self }
    }

    /// The value of the column `complete`.
    fn completeness(&self) -> i64 {
        match (self.is_complete, self.is_outdated) {
            (false, _) => 0,
            (true, false) if self.is_narrowed => NARROWED,
            (true, false) => COMPLETE,
            (true, true) if self.is_widened => WIDENED,
            (true, true) => OUTDATED,
        }
    }
}

pub(crate) fn select_account(
    connection: &Connection,
    did: &str,
) -> Result<Option<AccountRow>, OutboxFault> {
    let select = "SELECT id, complete, remembered FROM account WHERE did = ?1";
    let row = |row: &rusqlite::Row<'_>| {
        let completeness: i64 = row.get(1)?;
        Ok(AccountRow {
            id: row.get(0)?,
            is_complete: completeness != 0,
            is_outdated: matches!(completeness, OUTDATED | WIDENED),
            is_widened: completeness == WIDENED,
            is_narrowed: completeness == NARROWED,
            is_remembered: row.get(2)?,
        })
    };
    Ok(connection.prepare_cached(select)?.query_row([did], row).optional()?)
}

/// Whether there is an account.
pub(crate) fn has_accounts(connection: &Connection) -> Result<bool, OutboxFault> {
    Ok(connection.query_row("SELECT EXISTS (SELECT 1 FROM account)", [], |row| row.get(0))?)
}

/// The tables.
pub(crate) const SCHEMA: &str = "
CREATE TABLE account (
    id INTEGER PRIMARY KEY NOT NULL,
    did TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    complete INTEGER NOT NULL,
    remembered INTEGER NOT NULL
) STRICT;

CREATE TABLE record (
    account INTEGER NOT NULL,
    path TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (account, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE record_count (
    id INTEGER PRIMARY KEY NOT NULL,
    records INTEGER NOT NULL
) STRICT;

INSERT INTO record_count (id, records) VALUES (0, 0);

CREATE TABLE listing (
    source TEXT PRIMARY KEY NOT NULL,
    cursor TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE selection (
    id INTEGER PRIMARY KEY NOT NULL,
    selection TEXT NOT NULL
) STRICT;
";

/// Adds the selection to the tables of versions 2 to 4.
pub(crate) const ADD_SELECTION: &str = "
CREATE TABLE selection (
    id INTEGER PRIMARY KEY NOT NULL,
    selection TEXT NOT NULL
) STRICT;
";

/// Brings the tables of version 2, which has a number of records per account, to the tables of version 3.
pub(crate) const COUNT_TOGETHER: &str = "
CREATE TABLE record_count (
    id INTEGER PRIMARY KEY NOT NULL,
    records INTEGER NOT NULL
) STRICT;

INSERT INTO record_count (id, records) SELECT 0, coalesce(sum(records), 0) FROM account;

ALTER TABLE account DROP COLUMN records;
";

pub(crate) const INSERT_ACCOUNT: &str = "INSERT INTO account (did, source, complete, remembered) VALUES (?1, ?2, 0, 1) \
                              ON CONFLICT (did) DO NOTHING";

/// Values of the column `complete`, other than 0.
pub(crate) const COMPLETE: i64 = 1;
pub(crate) const OUTDATED: i64 = 2;
/// Outdated, but only by collections that were selected since.
pub(crate) const WIDENED: i64 = 3;
/// Complete, and consumers do not know yet that fewer collections are selected.
pub(crate) const NARROWED: i64 = 4;

const INSERT_RECORD: &str = "INSERT INTO record (account, path, hash) VALUES (?1, ?2, ?3) \
                             ON CONFLICT (account, path) DO NOTHING";

/// Accounts whose rows are kept in memory, about 150 bytes each.
const MAX_KNOWN_ACCOUNTS: usize = 16_384;
