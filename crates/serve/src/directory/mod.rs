//! The directory: every account that events named, with its newest commit, its status and its collections.
//!
//! It is made from the log alone: a change is stored with the arrival up to which events are applied, and after a crash
//! the events after it are applied again.

mod database;
mod update;

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

pub(crate) use update::keep_up;

/// The directory.
#[derive(Debug)]
pub(crate) struct Directory {
    reader: Mutex<Connection>,
    applied: AtomicI64,
}

/// An account of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountEntry {
    pub(crate) did: String,
    /// Revision and CID of its newest commit, if one was seen.
    pub(crate) head: Option<(String, String)>,
    pub(crate) active: bool,
    pub(crate) status: Option<String>,
}

impl Directory {
    /// Opens the directory in this folder, or begins it.
    pub(crate) fn open(folder: &Path) -> Result<Self, rusqlite::Error> {
        let writer = database::open_writer(folder)?;
        let applied = database::applied(&writer)?;
        let reader = Mutex::new(database::open_reader(folder)?);
        Ok(Self { reader, applied: AtomicI64::new(applied) })
    }

    /// The arrival up to which events are applied.
    pub(crate) fn applied(&self) -> i64 {
        self.applied.load(Relaxed)
    }

    /// An account.
    pub(crate) fn account(&self, did: &str) -> Result<Option<AccountEntry>, rusqlite::Error> {
        database::account(&self.lock(), did)
    }

    /// The accounts with a commit whose DIDs are after this one.
    pub(crate) fn accounts_after(
        &self,
        did: &str,
        max: usize,
    ) -> Result<Vec<AccountEntry>, rusqlite::Error> {
        database::accounts_after(&self.lock(), did, max)
    }

    /// The accounts with records in a collection whose DIDs are after this one.
    pub(crate) fn accounts_in(
        &self,
        collection: &str,
        did: &str,
        max: usize,
    ) -> Result<Vec<String>, rusqlite::Error> {
        database::accounts_in(&self.lock(), collection, did, max)
    }

    /// Number of accounts.
    pub(crate) fn count(&self) -> Result<u64, rusqlite::Error> {
        database::count(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
