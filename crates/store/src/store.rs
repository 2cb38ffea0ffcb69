//! The front door: what can be kept and asked?

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row};
use verify::sync::AccountState;

use crate::accounts::StoreState;
use crate::database::{self, Lock};
use crate::error::{StoreError, StoreFault};
use crate::overlay::Overlay;
use crate::writer::{Change, Writer};

/// How a state file is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How many accounts are kept in memory beside those that are not in the file yet; one is about
    /// 200 bytes. 500,000.
    pub cached_accounts: usize,
    /// How long the file may become, its log aside. As long as the disk allows.
    pub max_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { cached_accounts: 500_000, max_bytes: None }
    }
}

/// The key of an account, as it was when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// The key, as a `did:key`. Kept as it was given.
    pub did_key: String,
    /// When it was asked for, in microseconds since 1970.
    pub fetched_micros: u64,
}

/// A state file. Clones share it; it is closed when the last of them and of its [`StoreState`] is
/// dropped.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    overlay: Arc<Overlay>,
    reader: Mutex<Connection>,
    writer: Writer,
    // The last one to be dropped: the next process waits until all is written.
    _lock: Lock,
}

impl Store {
    /// Opens the state file at `path`, or makes it, and its folder.
    ///
    /// # Errors
    /// If another process uses the file, if it is none of ours or of another version, or if it cannot
    /// be read or written.
    pub fn open(path: &Path, options: Options) -> Result<Self, StoreError> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(StoreError::at(dir))?;
        }
        let lock = Lock::take(path)?;
        let connection = database::open_writer(path, options.max_bytes)?;
        let reader = Mutex::new(database::open_reader(path)?);
        let overlay = Arc::new(Overlay::new(options.cached_accounts));
        let (path, writer) = (path.to_owned(), Writer::start(connection, path.to_owned())?);
        Ok(Self(Arc::new(Inner { path, overlay, reader, writer, _lock: lock })))
    }

    /// The accounts, for one more judge.
    ///
    /// # Errors
    /// If the file cannot be opened once more.
    pub fn chain_state(&self) -> Result<StoreState, StoreError> {
        let (overlay, path) = (Arc::clone(&self.0.overlay), self.0.path.clone());
        Ok(StoreState { overlay, reader: database::open_reader(&path)?, store: self.clone() })
    }

    /// Keeps how far streams were read and what is true of accounts there, all or nothing; on the disk
    /// when it comes back.
    ///
    /// # Errors
    /// If it cannot be written. The file is as it was, and the accounts are still in memory.
    pub fn checkpoint(
        &self,
        cursors: &[(impl AsRef<str>, u64)],
        accounts: &[(impl AsRef<str>, AccountState)],
    ) -> Result<(), StoreError> {
        let cursors = cursors.iter().map(|(stream, seq)| (stream.as_ref().to_owned(), *seq));
        let rows = accounts.iter().map(|(did, account)| (did.as_ref().into(), *account));
        let (cursors, rows) = (cursors.collect(), rows.collect());
        self.0.writer.write(Change::Checkpoint { cursors, accounts: rows })?;
        accounts.iter().for_each(|(did, account)| self.0.overlay.saved(did.as_ref(), account));
        Ok(())
    }

    /// How far a stream was read.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn cursor(&self, stream: &str) -> Result<Option<u64>, StoreError> {
        self.read(|reader| {
            let mut select = reader.prepare_cached("SELECT seq FROM cursor WHERE stream = ?1")?;
            let seq = select.query_row([stream], |row| row.get(0)).optional()?;
            Ok(seq.map(i64::cast_unsigned))
        })
    }

    /// How far each stream was read, in the order of their names.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn cursors(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let cursor = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()));
        self.read(|reader| {
            let mut select = reader.prepare("SELECT stream, seq FROM cursor ORDER BY stream")?;
            Ok(select.query_map([], cursor)?.collect::<Result<_, _>>()?)
        })
    }

    /// Forgets how far a stream was read: it starts anew.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn forget_cursor(&self, stream: &str) -> Result<(), StoreError> {
        self.0.writer.write(Change::ForgetCursor(stream.to_owned()))
    }

    /// Keeps the keys of accounts, and forgets those that are `None`; all or nothing.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn save_keys(&self, keys: Vec<(Box<str>, Option<StoredKey>)>) -> Result<(), StoreError> {
        self.0.writer.write(Change::Keys(keys))
    }

    /// The key that an account had.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn key(&self, did: &str) -> Result<Option<StoredKey>, StoreError> {
        let key = |row: &Row<'_>| {
            let (did_key, fetched) = (row.get(0)?, row.get::<_, i64>(1)?);
            Ok(StoredKey { did_key, fetched_micros: fetched.cast_unsigned() })
        };
        self.read(|reader| {
            let mut select =
                reader.prepare_cached("SELECT key, fetched FROM key WHERE did = ?1")?;
            Ok(select.query_row([did], key).optional()?)
        })
    }

    /// Up to `limit` accounts whose repository must be fetched anew.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn desynchronized(&self, limit: usize) -> Result<Vec<String>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(|reader| {
            let mut select = reader.prepare(OUT_OF_STEP)?;
            Ok(select.query_map([limit], |row| row.get(0))?.collect::<Result<_, _>>()?)
        })
    }

    /// How many accounts are in memory, and how many of them only there.
    pub fn in_memory(&self) -> (usize, usize) {
        (self.0.overlay.len(), self.0.overlay.unsaved())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    fn read<T>(
        &self,
        ask: impl FnOnce(&Connection) -> Result<T, StoreFault>,
    ) -> Result<T, StoreError> {
        let reader: MutexGuard<'_, Connection> =
            self.0.reader.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&reader).map_err(StoreError::at(&self.0.path))
    }
}

const OUT_OF_STEP: &str = "SELECT did FROM account WHERE sync <> 0 ORDER BY sync, did LIMIT ?1";
