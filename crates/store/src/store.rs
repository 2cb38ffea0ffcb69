//! The state file, and the view that a judge has of it.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Lock;
use rusqlite::Connection;
use verify::sync::{AccountState, ChainState};

use crate::database::{self, StoreError, StoreFault};
use crate::files::StateFiles;
use crate::keys::{self, StoredKey};
use crate::overlay::Overlay;
use crate::sqlite_file;
use crate::streams::{self, Seqs, Streams};
use crate::writer::{Change, Writer};

/// Limits of a state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Maximum number of accounts in memory, in addition to accounts that are not in the file yet; one takes about 200
    /// bytes. Default: 500,000.
    pub cached_accounts: usize,
    /// Maximum file size in bytes, without its log. Default: the disk.
    pub max_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { cached_accounts: 500_000, max_bytes: None }
    }
}

/// A state file. Clones share it; it is closed when the last clone and the last [`StoreState`] are
/// dropped.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    overlay: Arc<Overlay>,
    reader: Mutex<Connection>,
    writer: Writer,
    // Dropped last, with the lock: the next process waits until all is written.
    files: Arc<StateFiles>,
}

impl Store {
    /// Opens the state file at `path`, and creates it and its folder if missing.
    ///
    /// # Errors
    /// If another process uses the file, if it is damaged or not a state file of this or an earlier version, or
    /// if it cannot be read or written.
    pub fn open(path: &Path, options: Options) -> Result<Self, StoreError> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(StoreError::at(dir))?;
        }
        let lock = Lock::take(path)?;
        database::create_if_missing(path)?;
        let connection = database::open_writer(path, options.max_bytes)?;
        let reader = Mutex::new(sqlite_file::open_reader(path)?);
        let files = Arc::new(StateFiles::new(path, lock)?);
        let overlay = Arc::new(Overlay::new(options.cached_accounts));
        let writer = Writer::start(connection, files.clone())?;
        Ok(Self(Arc::new(Inner { overlay, reader, writer, files })))
    }

    /// A view of the account states for one more judge.
    ///
    /// # Errors
    /// If the file cannot be opened for reading.
    pub fn chain_state(&self) -> Result<StoreState, StoreError> {
        let (overlay, reader) =
            (Arc::clone(&self.0.overlay), sqlite_file::open_reader(self.path())?);
        Ok(StoreState { overlay, reader, store: self.clone() })
    }

    /// Writes cursors and the states of accounts at them, all or nothing, and returns when they are on
    /// disk. Without any, the file is only checked.
    ///
    /// An account without a commit is stored only while it is desynchronized, and only some 30,000 of
    /// them are: anyone can invent accounts.
    ///
    /// # Errors
    /// If they cannot be written, or the file or its lock file was deleted, replaced or emptied since it
    /// was opened. The file is unchanged, and the accounts are still in memory.
    pub fn checkpoint(
        &self,
        cursors: &[(impl AsRef<str>, u64)],
        accounts: &[(impl AsRef<str>, AccountState)],
    ) -> Result<(), StoreError> {
        let cursors = cursors.iter().map(|(stream, seq)| (stream.as_ref().to_owned(), *seq));
        let rows = accounts.iter().map(|(did, account)| (did.as_ref().into(), *account));
        let (cursors, mut rows): (_, Vec<(Box<str>, AccountState)>) =
            (cursors.collect(), rows.collect());
        // In table order, a page is read and changed only once.
        rows.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        tracing::trace!(target: "wireproof::store", accounts = rows.len(), "checkpoint");
        self.0.writer.write(Change::Checkpoint { cursors, accounts: rows })?;
        accounts.iter().for_each(|(did, account)| self.0.overlay.mark_saved(did.as_ref(), account));
        Ok(())
    }

    /// The cursor of a stream.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn cursor(&self, stream: &str) -> Result<Option<u64>, StoreError> {
        Ok(seq_of(stream, self.streams()?.cursors))
    }

    /// The cursors of all streams, in the order of their names.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn cursors(&self) -> Result<Vec<(String, u64)>, StoreError> {
        Ok(self.streams()?.cursors)
    }

    /// Deletes the cursor of a stream.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn forget_cursor(&self, stream: &str) -> Result<(), StoreError> {
        self.0.writer.write(Change::ForgetCursor(stream.to_owned()))
    }

    /// The sequence number that no printed event of a stream exceeds, if one is stored.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn printed(&self, stream: &str) -> Result<Option<u64>, StoreError> {
        Ok(seq_of(stream, self.streams()?.printed))
    }

    /// Stores the sequence number that no printed event of a stream exceeds.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn set_printed(&self, stream: &str, seq: u64) -> Result<(), StoreError> {
        self.0.writer.write(Change::Printed(stream.to_owned(), seq))
    }

    /// The hashes of the last printed events of a stream, as they were stored.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn recent(&self, stream: &str) -> Result<Vec<[u8; 16]>, StoreError> {
        self.read(|reader| streams::recent(reader, stream))
    }

    /// Stores the hashes of the last printed events of a stream whose cursor does not tell them from others.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn set_recent(&self, stream: &str, hashes: Vec<[u8; 16]>) -> Result<(), StoreError> {
        self.0.writer.write(Change::Recent(stream.to_owned(), hashes))
    }

    /// Stores the keys of accounts, and deletes keys that are `None`; all or nothing.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn save_keys(&self, keys: Vec<(Box<str>, Option<StoredKey>)>) -> Result<(), StoreError> {
        self.0.writer.write(Change::Keys(keys))
    }

    /// The stored key of an account; `None` if it is unknown or its row is damaged.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn key(&self, did: &str) -> Result<Option<StoredKey>, StoreError> {
        self.read(|reader| keys::read(reader, did))
    }

    /// Up to `limit` accounts whose repository must be fetched again.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn desynchronized(&self, limit: usize) -> Result<Vec<String>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(|reader| {
            let mut select = reader.prepare(DESYNCHRONIZED)?;
            Ok(select.query_map([limit], |row| row.get(0))?.collect::<Result<_, _>>()?)
        })
    }

    /// Up to `limit` accounts after this one in order, including accounts that are not in the file yet.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn accounts_after(&self, did: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let mut dids: Vec<String> = self.read(|reader| {
            let mut select = reader.prepare(ACCOUNTS_AFTER)?;
            let rows = select
                .query_map((did, i64::try_from(limit).unwrap_or(i64::MAX)), |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        dids.extend(
            self.0.overlay.unsaved_dids().into_iter().filter(|unsaved| unsaved.as_str() > did),
        );
        dids.sort_unstable();
        dids.dedup();
        dids.truncate(limit);
        Ok(dids)
    }

    /// Number of accounts in memory, and how many of them are not in the file yet.
    pub fn in_memory(&self) -> (usize, usize) {
        (self.0.overlay.len(), self.0.overlay.unsaved())
    }

    /// Number of stored accounts without a commit, and the limit on it.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn without_head(&self) -> Result<(u32, u32), StoreError> {
        Ok((self.read(database::count_without_head)?, database::MAX_WITHOUT_HEAD))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.0.files.path()
    }

    /// The cursors and printed bounds of all streams, which are as they were stored.
    fn streams(&self) -> Result<Streams, StoreError> {
        self.read(|reader| Streams::read(&*reader.unchecked_transaction()?))
    }

    fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreFault>,
    ) -> Result<T, StoreError> {
        let reader: MutexGuard<'_, Connection> =
            self.0.reader.lock().unwrap_or_else(PoisonError::into_inner);
        query(&reader).map_err(|fault| self.error(fault))
    }

    /// An error of reading: if the file is not the one that was opened, the error says why.
    #[cold]
    fn error(&self, fault: StoreFault) -> StoreError {
        let replaced = self.0.files.check().err();
        replaced.unwrap_or_else(|| StoreError::new(self.path(), fault))
    }
}

/// The [`ChainState`] of a [`Store`]. Every judge has its own; all see the same states.
///
/// States stored here are only in memory until [`Store::checkpoint`] writes them.
#[derive(Debug)]
pub struct StoreState {
    overlay: Arc<Overlay>,
    reader: Connection,
    // Keeps the file open.
    store: Store,
}

impl ChainState for StoreState {
    type Error = StoreError;

    fn load_many(
        &mut self,
        dids: &[&str],
        accounts: &mut [AccountState],
    ) -> Result<(), StoreError> {
        let mut missing = Vec::new();
        for (at, did) in dids.iter().enumerate() {
            match self.overlay.get(did) {
                Some(known) => accounts[at] = known,
                None => missing.push(at),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.read(&missing, dids, accounts).map_err(|fault| self.store.error(fault))
    }

    fn store_many(&mut self, changed: &[(&str, AccountState)]) -> Result<(), StoreError> {
        changed.iter().for_each(|(did, account)| self.overlay.set_unsaved(did, *account));
        Ok(())
    }
}

impl StoreState {
    /// Reads the accounts at these indices in one transaction.
    fn read(
        &self,
        missing: &[usize],
        dids: &[&str],
        accounts: &mut [AccountState],
    ) -> Result<(), StoreFault> {
        let reading = self.reader.unchecked_transaction()?;
        for &at in missing {
            let stored = database::read_account(&reading, dids[at])?;
            // Accounts that are not in the file are not cached: anyone can invent them.
            if let Some(account) = stored {
                self.overlay.cache(dids[at], account);
            }
            accounts[at] = stored.unwrap_or_default();
        }
        Ok(reading.commit()?)
    }
}

fn seq_of(stream: &str, seqs: Seqs) -> Option<u64> {
    seqs.into_iter().find_map(|(name, seq)| (name == stream).then_some(seq))
}

const ACCOUNTS_AFTER: &str = "SELECT did FROM account WHERE did > ?1 ORDER BY did LIMIT ?2";

const DESYNCHRONIZED: &str = "SELECT did FROM account WHERE sync <> 0 ORDER BY sync, did LIMIT ?1";
