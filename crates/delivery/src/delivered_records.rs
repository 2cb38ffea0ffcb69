//! The records that consumers have of an account, as far as events have brought them: their paths, and the start of
//! their hashes.
//!
//! A repository that is fetched again is compared with them, so that consumers receive the difference. They change in
//! the transaction that stores the event, so they include the effects of all stored events.

use std::collections::VecDeque;

use kernels::sha256::Digest;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use store::sqlite_file;

use crate::error::{OutboxError, OutboxFault};
use crate::event::bounded;
use crate::known_records::{COMPLETE, INSERT_ACCOUNT, NARROWED, OUTDATED, WIDENED, select_account};
use crate::outbox::Outbox;
use crate::record_effects::{Hash, start_of};

/// The records that consumers have of an account, in the order of their paths.
#[derive(Debug)]
pub struct DeliveredRecords {
    outbox: Outbox,
    connection: Connection,
    account: Option<i64>,
    is_complete: bool,
    is_widened: bool,
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

    /// Whether only collections are missing that were [selected](Outbox::select) since.
    pub fn is_widened(&self) -> bool {
        self.is_widened
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
        let select = "SELECT count(*) FILTER (WHERE complete IN (1, 4)), count(*) FILTER (WHERE complete IN (2, 3)), \
                      count(*) FILTER (WHERE complete = 0) FROM account";
        let counts = self.connection.query_row(select, [], |row| {
            let count = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
            Ok(HistoryCounts { complete: count(0)?, outdated: count(1)?, awaited: count(2)? })
        });
        counts.map_err(OutboxError::at(self.outbox.path()))
    }

    /// Whether the history of an account lacks only collections that were [selected](Outbox::select) since.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn is_widened(&self, did: &str) -> Result<bool, OutboxError> {
        let account = select_account(&self.connection, &bounded(did));
        let account = account.map_err(OutboxError::at(self.outbox.path()))?;
        Ok(account.is_some_and(|account| account.is_widened))
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
            let select = "SELECT did, source, complete, remembered FROM account WHERE complete NOT IN (?1, ?2) ORDER BY id";
            let awaited = |row: &rusqlite::Row<'_>| {
                let text = |at| row.get::<_, String>(at).map(String::into_boxed_str);
                let completeness = row.get::<_, i64>(2)?;
                Ok(AwaitedHistory {
                    did: text(0)?,
                    source: text(1)?,
                    is_outdated: completeness != 0,
                    is_widened: completeness == WIDENED && row.get(3)?,
                })
            };
            let mut select = self.connection.prepare(select)?;
            Ok(select.query_map([COMPLETE, NARROWED], awaited)?.collect::<Result<_, _>>()?)
        };
        read().map_err(OutboxError::at(self.outbox.path()))
    }

    /// The accounts with complete histories whose consumers do not know that [fewer collections](Selected::FewerCollections) are selected.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn narrowed(&self) -> Result<Vec<Box<str>>, OutboxError> {
        let read = || -> Result<_, OutboxFault> {
            let select = "SELECT did FROM account WHERE complete = ?1 ORDER BY id";
            let mut select = self.connection.prepare(select)?;
            let did = |row: &rusqlite::Row<'_>| row.get::<_, String>(0).map(String::into_boxed_str);
            Ok(select.query_map([NARROWED], did)?.collect::<Result<_, _>>()?)
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
    /// Whether it was complete, and has to be [compared again](Outbox::outdate_histories).
    pub is_outdated: bool,
    /// Whether only collections are missing that were [selected](Outbox::select) since, and the records of the others are known.
    pub is_widened: bool,
}

/// How a new selection goes beyond the one before, for which histories are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// Nothing more.
    NoMore,
    /// Fewer collections, and nothing more.
    FewerCollections,
    /// More collections.
    MoreCollections,
    /// More records, of any collection.
    More,
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
            is_widened: account.as_ref().is_some_and(|of| of.is_widened),
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

    /// Notes accounts that will get their history: until then they are incomplete, and the content of commits is
    /// remembered, so that the history can delete it.
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
    /// the cursor of the page before, where the list can be continued later. Returns the number of new accounts.
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

    /// Forgets an account whose history is awaited no longer, and the records that consumers have of it.
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

    /// Makes every history incomplete: a new consumer has none of them. The records that consumers have stay known, so
    /// that the next histories delete records that are gone.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn restart_histories(&self) -> Result<(), OutboxError> {
        self.write_histories(|transaction| {
            transaction.execute("UPDATE account SET complete = 0", []).map(drop)
        })
    }

    /// Makes every complete history outdated, as when more records are selected: it is awaited until the account's next
    /// repository, of which consumers get the missing records.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn outdate_histories(&self) -> Result<(), OutboxError> {
        let update = "UPDATE account SET complete = ?1 WHERE complete <> 0";
        self.write_histories(|transaction| transaction.execute(update, [OUTDATED]).map(drop))
    }

    /// Notes that events tell consumers of these accounts that [fewer collections](Selected::FewerCollections) are selected, if `selection`
    /// is still the stored one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn narrowed_are_told<'d>(
        &self,
        dids: impl IntoIterator<Item = &'d str>,
        selection: &str,
    ) -> Result<(), OutboxError> {
        self.write_histories(|transaction| {
            let update = "UPDATE account SET complete = ?2 WHERE did = ?1 AND complete = ?3 \
                          AND EXISTS (SELECT 1 FROM selection WHERE id = 0 AND selection = ?4)";
            let mut update = transaction.prepare(update)?;
            let note = |did| update.execute(params![&*bounded(did), COMPLETE, NARROWED, selection]);
            dids.into_iter().map(note).try_for_each(|updated| updated.map(drop))
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
            let mut update = transaction.prepare(UPDATE_ONE)?;
            let outdate = |did| update.execute(params![&*bounded(did), OUTDATED]);
            dids.into_iter().map(outdate).try_for_each(|updated| updated.map(drop))
        })
    }

    /// The selection of the source, as it was [stored](Self::select).
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn selection(&self) -> Result<Option<String>, OutboxError> {
        let select = "SELECT selection FROM selection WHERE id = 0";
        let connection = sqlite_file::open_reader(self.path())?;
        let selection = connection.query_row(select, [], |row| row.get(0)).optional();
        selection.map_err(OutboxError::at(self.path()))
    }

    /// Whether histories lack only collections that were [selected](Self::select) since.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn has_widened_histories(&self) -> Result<bool, OutboxError> {
        let select = "SELECT EXISTS (SELECT 1 FROM account WHERE complete = ?1)";
        let connection = sqlite_file::open_reader(self.path())?;
        let has_widened = connection.query_row(select, [WIDENED], |row| row.get(0));
        has_widened.map_err(OutboxError::at(self.path()))
    }

    /// Stores the selection of the source, and makes complete histories [outdated](Self::outdate_histories) in the same
    /// transaction: all of them if more is selected than before, else histories of accounts that are not selected, as
    /// their events do not reach consumers. Outdated histories that lack [collections](Selected::MoreCollections) alone are told apart, and so
    /// are complete ones of [fewer collections](Selected::FewerCollections).
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn select(
        &self,
        selection: &str,
        selected: Selected,
        has_account: impl Fn(&str) -> bool,
    ) -> Result<(), OutboxError> {
        self.write_histories(|transaction| {
            let select = "SELECT did, complete FROM account WHERE complete IN (?1, ?2, ?3)";
            let mut select = transaction.prepare(select)?;
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let accounts = select.query_map([COMPLETE, WIDENED, NARROWED], row)?;
            let accounts: Vec<(String, i64)> = accounts.collect::<Result<_, _>>()?;
            let mut update = transaction.prepare(UPDATE_ONE)?;
            for (did, before) in &accounts {
                let now = match selected {
                    _ if !has_account(did) => OUTDATED,
                    Selected::FewerCollections if *before == COMPLETE => NARROWED,
                    Selected::NoMore | Selected::FewerCollections => *before,
                    Selected::MoreCollections => WIDENED,
                    Selected::More => OUTDATED,
                };
                if now != *before {
                    update.execute(params![did, now])?;
                }
            }
            let replace = "INSERT OR REPLACE INTO selection (id, selection) VALUES (0, ?1)";
            transaction.execute(replace, [selection]).map(drop)
        })
    }

    /// Writes in a transaction of its own, between the writer's transactions.
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

const UPDATE_ONE: &str = "UPDATE account SET complete = ?2 WHERE did = ?1 AND complete <> 0";

/// Number of records that are read at once.
const PAGE_RECORDS: i64 = 512;

#[cfg(test)]
mod tests;
