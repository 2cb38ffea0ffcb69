//! The records that consumers have of an account, as far as events have brought them: their paths, and the start of the
//! hash of each.
//!
//! A repository that is fetched again is compared with them, so that consumers receive the difference. They change in the
//! transaction that stores the event, so they are those that all stored events bring.
//!
//! | table | row |
//! |---|---|
//! | `account` | an account whose history was asked for or has begun: whether it is complete (1), was complete and is to be compared again (2), or neither (0), and whether its records are remembered |
//! | `record` | account, path, 16 bytes of the hash in the record's CID |
//! | `record_count` | one: the number of rows of `record` |
//! | `listing` | a list of accounts, and the cursor after the pages that were stored |
//! | `selection` | at most one: what the source selects, as it was when histories were last compared with it |
//!
//! At the limit of [`Options::max_records`](crate::Options::max_records) the account that exceeds it is no longer
//! remembered: its next repository is delivered as a whole.

use std::collections::{HashMap, VecDeque};

use kernels::sha256::Digest;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use store::sqlite_file;

use crate::error::{OutboxError, OutboxFault};
use crate::event::bounded;
use crate::outbox::Outbox;

/// What an event changes in the records that consumers have of its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordEffects {
    source: Source,
    changes: Vec<(Box<str>, Option<Hash>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Commit,
    Repository { is_whole: bool, is_last: bool },
    Deletion,
}

/// The start of the hash of a record.
type Hash = [u8; 16];

impl RecordEffects {
    /// The effects of a commit. They are remembered from the first history of the account on, or from
    /// [`Outbox::await_histories`].
    pub fn of_commit() -> Self {
        Self { source: Source::Commit, changes: Vec::new() }
    }

    /// The effects of a part of a repository: of the whole, or of its difference to the records before.
    pub fn of_repository(is_whole: bool) -> Self {
        let source = Source::Repository { is_whole, is_last: false };
        Self { source, changes: Vec::new() }
    }

    /// The effects of a deletion of the account that its own server has confirmed: consumers delete all of its records, so
    /// that they have none of them, and its next repository is delivered as a whole.
    pub fn of_deletion() -> Self {
        Self { source: Source::Deletion, changes: Vec::new() }
    }

    /// Marks the last part of a repository: consumers have all of it then.
    pub fn complete(&mut self) {
        if let Source::Repository { is_last, .. } = &mut self.source {
            *is_last = true;
        }
    }

    /// Adds a record that is created or updated, with the hash in its CID.
    pub fn put(&mut self, path: &str, hash: &Digest) {
        self.changes.push((path.into(), Some(start_of(hash))));
    }

    /// Adds a record that is deleted.
    pub fn delete(&mut self, path: &str) {
        self.changes.push((path.into(), None));
    }
}

fn start_of(hash: &Digest) -> Hash {
    hash.first_chunk().copied().expect("a hash has 32 bytes")
}

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
struct AccountRow {
    id: i64,
    is_complete: bool,
    /// Whether it is complete but for what is selected since.
    is_outdated: bool,
    is_remembered: bool,
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

    /// Forgets what is in memory, after a transaction that failed.
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
        }
        if effects.source == Source::Deletion {
            self.delete_records(transaction, &account)?;
            (account.is_complete, account.is_outdated) = (false, false);
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
            (true, false) => COMPLETE,
            (true, true) => OUTDATED,
        }
    }
}

fn select_account(connection: &Connection, did: &str) -> Result<Option<AccountRow>, OutboxFault> {
    let select = "SELECT id, complete, remembered FROM account WHERE did = ?1";
    let row = |row: &rusqlite::Row<'_>| {
        let completeness: i64 = row.get(1)?;
        Ok(AccountRow {
            id: row.get(0)?,
            is_complete: completeness != 0,
            is_outdated: completeness == OUTDATED,
            is_remembered: row.get(2)?,
        })
    };
    Ok(connection.prepare_cached(select)?.query_row([did], row).optional()?)
}

/// Whether there is an account.
pub(crate) fn has_accounts(connection: &Connection) -> Result<bool, OutboxFault> {
    Ok(connection.query_row("SELECT EXISTS (SELECT 1 FROM account)", [], |row| row.get(0))?)
}

/// The records that consumers have of an account, in the order of their paths.
#[derive(Debug)]
pub struct DeliveredRecords {
    outbox: Outbox,
    connection: Connection,
    account: Option<i64>,
    is_complete: bool,
    page: VecDeque<DeliveredRecord>,
    /// The path after which the next page begins.
    after: Box<str>,
    is_at_end: bool,
}

/// A record that consumers have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredRecord {
    /// The path of the record: collection, slash, record key.
    pub path: Box<str>,
    hash: Hash,
}

impl DeliveredRecord {
    /// Whether this is the hash of the record.
    pub fn has_hash(&self, hash: &Digest) -> bool {
        self.hash == start_of(hash)
    }
}

impl DeliveredRecords {
    /// Whether events have brought the whole repository, and all changes since: only then its difference to a later one
    /// suffices.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The next record. Events that are stored meanwhile must not change records that were not returned yet.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next_record(&mut self) -> Result<Option<DeliveredRecord>, OutboxError> {
        if self.page.is_empty() && !self.is_at_end {
            self.page = self.read_page().map_err(OutboxError::at(self.outbox.path()))?;
            self.is_at_end = self.page.is_empty();
            if let Some(last) = self.page.back() {
                self.after.clone_from(&last.path);
            }
        }
        Ok(self.page.pop_front())
    }

    /// Pages, instead of one long statement, let the file shrink its log meanwhile.
    fn read_page(&self) -> Result<VecDeque<DeliveredRecord>, OutboxFault> {
        let select =
            "SELECT path, hash FROM record WHERE account = ?1 AND path > ?2 ORDER BY path LIMIT ?3";
        let row = |row: &rusqlite::Row<'_>| {
            Ok(DeliveredRecord { path: row.get::<_, String>(0)?.into(), hash: row.get(1)? })
        };
        let mut select = self.connection.prepare_cached(select)?;
        let rows = select.query_map(params![self.account, &*self.after, PAGE_RECORDS], row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// The accounts whose histories are complete.
#[derive(Debug)]
pub struct Histories {
    outbox: Outbox,
    connection: Connection,
}

impl Histories {
    /// Whether events have brought the whole repository of an account, and all changes since, and it is not
    /// [outdated](Outbox::outdate_histories).
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn is_complete(&self, did: &str) -> Result<bool, OutboxError> {
        let account = select_account(&self.connection, &bounded(did));
        let account = account.map_err(OutboxError::at(self.outbox.path()))?;
        Ok(account.is_some_and(|account| account.is_complete && !account.is_outdated))
    }

    /// Whether events have brought the whole repository of an account, outdated or not.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn was_complete(&self, did: &str) -> Result<bool, OutboxError> {
        let account = select_account(&self.connection, &bounded(did));
        let account = account.map_err(OutboxError::at(self.outbox.path()))?;
        Ok(account.is_some_and(|account| account.is_complete))
    }

    /// Number of accounts by the state of their history: complete, outdated, and not delivered yet.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn counts(&self) -> Result<HistoryCounts, OutboxError> {
        let select = "SELECT count(*) FILTER (WHERE complete = 1), count(*) FILTER (WHERE complete = 2), \
                      count(*) FILTER (WHERE complete = 0) FROM account";
        let counts = self.connection.query_row(select, [], |row| {
            let count = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
            Ok(HistoryCounts { complete: count(0)?, outdated: count(1)?, awaited: count(2)? })
        });
        counts.map_err(OutboxError::at(self.outbox.path()))
    }

    /// Whether an account was noted, and its history is not complete.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn is_awaited(&self, did: &str) -> Result<bool, OutboxError> {
        let account = select_account(&self.connection, &bounded(did));
        let account = account.map_err(OutboxError::at(self.outbox.path()))?;
        Ok(account.is_some_and(|account| !account.is_complete || account.is_outdated))
    }

    /// The accounts whose histories are not complete, in the order in which they were noted.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn awaited(&self) -> Result<Vec<AwaitedHistory>, OutboxError> {
        let read = || -> Result<_, OutboxFault> {
            let select =
                "SELECT did, source, complete FROM account WHERE complete <> ?1 ORDER BY id";
            let awaited = |row: &rusqlite::Row<'_>| {
                let text = |at| row.get::<_, String>(at).map(String::into_boxed_str);
                let is_outdated = row.get::<_, i64>(2)? == OUTDATED;
                Ok(AwaitedHistory { did: text(0)?, source: text(1)?, is_outdated })
            };
            let mut select = self.connection.prepare(select)?;
            Ok(select.query_map([COMPLETE], awaited)?.collect::<Result<_, _>>()?)
        };
        read().map_err(OutboxError::at(self.outbox.path()))
    }

    /// The cursor of the next page of a list; `None` before the first page.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn cursor(&self, source: &str) -> Result<Option<String>, OutboxError> {
        let select = "SELECT cursor FROM listing WHERE source = ?1";
        let cursor = self.connection.query_row(select, [source], |row| row.get(0)).optional();
        cursor.map_err(OutboxError::at(self.outbox.path()))
    }
}

/// Number of accounts by the state of their history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryCounts {
    /// All that is selected was delivered.
    pub complete: u64,
    /// It was, and is compared again.
    pub outdated: u64,
    /// Not delivered yet.
    pub awaited: u64,
}

/// An account whose history is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedHistory {
    /// The account.
    pub did: Box<str>,
    /// The list that it came from; empty for others.
    pub source: Box<str>,
    /// Whether it was complete, and is to be [compared again](Outbox::outdate_histories).
    pub is_outdated: bool,
}

impl Outbox {
    /// The records that consumers have of an account by all events that were appended before.
    ///
    /// # Errors
    /// If the file cannot be read, or an event cannot be written.
    pub fn delivered_records(&self, did: &str) -> Result<DeliveredRecords, OutboxError> {
        let did = bounded(did);
        self.0.shared.flush_account(&did)?;
        let connection = sqlite_file::open_reader(self.path())?;
        let account = select_account(&connection, &did);
        let account = account.map_err(OutboxError::at(self.path()))?;
        Ok(DeliveredRecords {
            outbox: self.clone(),
            connection,
            is_complete: account.as_ref().is_some_and(|of| of.is_complete && of.is_remembered),
            account: account.map(|account| account.id),
            page: VecDeque::new(),
            after: "".into(),
            is_at_end: false,
        })
    }

    /// The accounts whose histories are complete.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn histories(&self) -> Result<Histories, OutboxError> {
        Ok(Histories { outbox: self.clone(), connection: sqlite_file::open_reader(self.path())? })
    }

    /// Notes accounts that will get their history: until then they are incomplete, and what commits bring is remembered,
    /// so that the history can delete it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn await_histories<'d>(
        &self,
        dids: impl IntoIterator<Item = &'d str>,
    ) -> Result<(), OutboxError> {
        let dids: Vec<&str> = dids.into_iter().collect();
        self.write_histories(|transaction| {
            let mut insert = transaction.prepare(INSERT_ACCOUNT)?;
            dids.iter().try_for_each(|did| insert.execute([&*bounded(did), ""]).map(drop))
        })?;
        self.set_has_histories(!dids.is_empty());
        Ok(())
    }

    /// Notes accounts of a page of the list `source`, and the cursor of its next page; `None` after the last one keeps
    /// that of the page before, where the list can be continued later. Returns the number of new accounts.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn await_listed(
        &self,
        source: &str,
        dids: &[&str],
        cursor: Option<&str>,
    ) -> Result<usize, OutboxError> {
        let mut new = 0;
        self.write_histories(|transaction| {
            let mut insert = transaction.prepare(INSERT_ACCOUNT)?;
            for did in dids {
                new += insert.execute([&*bounded(did), source])?;
            }
            let replace = "INSERT OR REPLACE INTO listing (source, cursor) VALUES (?1, ?2)";
            cursor.map_or(Ok(()), |cursor| transaction.execute(replace, [source, cursor]).map(drop))
        })?;
        self.set_has_histories(!dids.is_empty());
        Ok(new)
    }

    /// Forgets an account whose history is awaited no longer, and what consumers have of it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget_history(&self, did: &str) -> Result<(), OutboxError> {
        let did = bounded(did);
        self.write_histories(|transaction| {
            let of_account = "(SELECT id FROM account WHERE did = ?1)";
            let delete = format!("DELETE FROM record WHERE account = {of_account}");
            transaction.execute(&delete, [&*did])?;
            transaction.execute("UPDATE record_count SET records = records - changes()", [])?;
            transaction.execute("DELETE FROM account WHERE did = ?1", [&*did]).map(drop)
        })
    }

    /// Makes every history incomplete: a new consumer has none of them. What consumers have stays known, so that the next
    /// histories delete what is gone.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn restart_histories(&self) -> Result<(), OutboxError> {
        self.write_histories(|transaction| {
            transaction.execute("UPDATE account SET complete = 0", []).map(drop)
        })
    }

    /// Makes every complete history outdated, as when more records are selected: it is awaited until the account's next
    /// repository, of which consumers get what they have not.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn outdate_histories(&self) -> Result<(), OutboxError> {
        let update = "UPDATE account SET complete = ?2 WHERE complete = ?1";
        self.write_histories(|transaction| {
            transaction.execute(update, [COMPLETE, OUTDATED]).map(drop)
        })
    }

    /// Makes the complete histories of these accounts [outdated](Self::outdate_histories).
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn outdate_histories_of<'d>(
        &self,
        dids: impl IntoIterator<Item = &'d str>,
    ) -> Result<(), OutboxError> {
        self.write_histories(|transaction| {
            let mut update = transaction.prepare(OUTDATE_ONE)?;
            let outdate = |did| update.execute(params![&*bounded(did), COMPLETE, OUTDATED]);
            dids.into_iter().map(outdate).try_for_each(|updated| updated.map(drop))
        })
    }

    /// What the source selects, as it was [stored](Self::select).
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn selection(&self) -> Result<Option<String>, OutboxError> {
        let select = "SELECT selection FROM selection WHERE id = 0";
        let connection = sqlite_file::open_reader(self.path())?;
        let selection = connection.query_row(select, [], |row| row.get(0)).optional();
        selection.map_err(OutboxError::at(self.path()))
    }

    /// Stores what the source selects, and makes complete histories [outdated](Self::outdate_histories) in the same
    /// transaction: all of them if more is selected than before, else those of accounts that are not selected, as their
    /// events do not reach consumers.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn select(
        &self,
        selection: &str,
        selects_more: bool,
        has_account: impl Fn(&str) -> bool,
    ) -> Result<(), OutboxError> {
        self.write_histories(|transaction| {
            let mut select = transaction.prepare("SELECT did FROM account WHERE complete = ?1")?;
            let dids = select.query_map([COMPLETE], |row| row.get::<_, String>(0))?;
            let dids: Vec<String> = dids.collect::<Result<_, _>>()?;
            let mut update = transaction.prepare(OUTDATE_ONE)?;
            for did in dids.iter().filter(|did| selects_more || !has_account(did)) {
                update.execute(params![did, COMPLETE, OUTDATED])?;
            }
            let replace = "INSERT OR REPLACE INTO selection (id, selection) VALUES (0, ?1)";
            transaction.execute(replace, [selection]).map(drop)
        })
    }

    /// Writes in a transaction of its own, between those of the writer.
    fn write_histories(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), OutboxError> {
        self.flush()?;
        let mut writer = sqlite_file::open_writer(self.path())?;
        let write_all = || -> Result<(), OutboxFault> {
            sqlite_file::sync_commits(&writer, None)?;
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            write(&transaction)?;
            Ok(transaction.commit()?)
        };
        write_all().map_err(OutboxError::at(self.path()))
    }
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

/// Brings the tables of version 2, which has a number of records in each account, to those of version 3.
pub(crate) const COUNT_TOGETHER: &str = "
CREATE TABLE record_count (
    id INTEGER PRIMARY KEY NOT NULL,
    records INTEGER NOT NULL
) STRICT;

INSERT INTO record_count (id, records) SELECT 0, coalesce(sum(records), 0) FROM account;

ALTER TABLE account DROP COLUMN records;
";

const INSERT_ACCOUNT: &str = "INSERT INTO account (did, source, complete, remembered) VALUES (?1, ?2, 0, 1) \
                              ON CONFLICT (did) DO NOTHING";

const OUTDATE_ONE: &str = "UPDATE account SET complete = ?3 WHERE did = ?1 AND complete = ?2";

/// Values of the column `complete`, besides 0.
const COMPLETE: i64 = 1;
const OUTDATED: i64 = 2;

const INSERT_RECORD: &str = "INSERT INTO record (account, path, hash) VALUES (?1, ?2, ?3) \
                             ON CONFLICT (account, path) DO NOTHING";

/// Accounts whose rows are kept in memory, about 150 bytes each.
const MAX_KNOWN_ACCOUNTS: usize = 16_384;

/// Number of records that are read at once.
const PAGE_RECORDS: i64 = 512;

#[cfg(test)]
mod tests;
