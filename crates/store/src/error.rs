//! Why can a state file not be opened, read or written?

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// What went wrong, and with which file. Whatever it is, the file is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub fault: StoreFault,
}

/// What is wrong with a state file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreFault {
    /// Another process follows with this file. End it, or give this one another folder.
    #[error("another process uses this state file")]
    InUse,
    /// Another program holds a lock on the file, and did not let go of it in time.
    #[error("another program keeps this file locked")]
    Locked,
    /// There is no room for what is to be written.
    #[error("the disk is full")]
    Full,
    /// A file, but not one of ours.
    #[error("not a state file of wireproof")]
    NotOurs,
    /// A state file of another version of this program.
    #[error("a state file of version {found}; this program knows version {known}")]
    OtherVersion {
        /// The version of the file.
        found: i64,
        /// The one that this program reads and writes.
        known: i64,
    },
    /// What the file holds cannot be.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// The thread that writes has ended.
    #[error("the state file was closed")]
    Closed,
    /// The file system refuses.
    #[error("{1}")]
    Io(io::ErrorKind, String),
    /// SQLite refuses, with its extended code.
    #[error("{1} (SQLite code {0})")]
    Sqlite(i32, String),
}

impl StoreError {
    /// An error with the file at `path`.
    pub(crate) fn new(path: &Path, fault: impl Into<StoreFault>) -> Self {
        Self { path: path.to_owned(), fault: fault.into() }
    }

    /// The same, for `map_err`.
    pub(crate) fn at<F: Into<StoreFault>>(path: &Path) -> impl Fn(F) -> Self {
        move |fault| Self::new(path, fault)
    }
}

impl From<io::Error> for StoreFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            kind => Self::Io(kind, error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreFault {
    #[cold]
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error() {
            // A column of another type than the one that was written there.
            None => Self::Damaged(text),
            Some(sqlite) => match sqlite.code {
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked,
                ErrorCode::DiskFull => Self::Full,
                ErrorCode::NotADatabase => Self::NotOurs,
                ErrorCode::DatabaseCorrupt => Self::Damaged(text),
                _ => Self::Sqlite(sqlite.extended_code, text),
            },
        }
    }
}
