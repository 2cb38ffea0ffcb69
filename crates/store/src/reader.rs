//! Reading a state file that another process may use.

use std::path::Path;

use rusqlite::Connection;
use verify::sync::AccountState;

use crate::database::{self, StoreError, StoreFault};
use crate::files;
use crate::keys::{self, StoredKey};
use crate::sqlite_file;
use crate::streams::Streams;

/// A state file that is read while another process writes it. It has the checkpointed content of that process.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("state.sqlite");
/// use wireproof::store::{Options, StateReader, Store};
/// use wireproof::verify::sync::AccountState;
///
/// let store = Store::open(&path, Options::default())?;
/// store.checkpoint(&[("wss://relay.example.com", 4711)], &[] as &[(&str, AccountState)])?;
///
/// let reader = StateReader::open(&path)?;
/// assert_eq!(reader.cursors()?, [("wss://relay.example.com".to_owned(), 4711)]);
/// assert_eq!(reader.account("did:web:example.com")?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StateReader {
    path: Box<Path>,
    connection: Connection,
}

impl StateReader {
    /// Opens the state file at `path`, which must exist.
    ///
    /// # Errors
    /// If it is not a state file of this version, or cannot be read. A file of an earlier version is brought to this
    /// one by [`Store::open`](crate::Store::open).
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        files::check_not_empty(path)?;
        let connection = sqlite_file::open_reader(path)?;
        database::check_current(&connection).map_err(StoreError::at(path))?;
        Ok(Self { path: path.into(), connection })
    }

    /// The checkpointed state of an account, if there is one.
    ///
    /// # Errors
    /// If the file cannot be read, or the account's row is damaged.
    pub fn account(&self, did: &str) -> Result<Option<AccountState>, StoreError> {
        self.read(|connection| database::read_account(connection, did))
    }

    /// The stored key of an account; `None` if it is unknown or its row is damaged.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn key(&self, did: &str) -> Result<Option<StoredKey>, StoreError> {
        self.read(|connection| keys::read(connection, did))
    }

    /// The cursors of all streams, in the order of their names.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn cursors(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.read(|connection| Ok(Streams::read(&*connection.unchecked_transaction()?)?.cursors))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreFault>,
    ) -> Result<T, StoreError> {
        query(&self.connection).map_err(StoreError::at(&self.path))
    }
}
