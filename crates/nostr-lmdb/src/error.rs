//! Errors of a database.

use std::io::{self, ErrorKind};

use heed::MdbError;

/// Why a database cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// A file cannot be opened or read.
    #[error("{0}")]
    Io(io::Error),
    /// The system denies the access that reading needs.
    #[error("data.mdb cannot be read, or lock.mdb cannot be written: {0}")]
    Denied(io::Error),
    /// The file is of another version of LMDB, or a program with another version has it open.
    #[error(
        "a program with another version of LMDB has it open, or wrote it: stop the program, or read a copy of data.mdb \
         in a folder of its own"
    )]
    Version,
    /// LMDB cannot read or write the file.
    #[error("{0}")]
    Lmdb(String),
    /// The file ends before its last page.
    #[error("data.mdb ends at byte {len}, and its pages at byte {end}")]
    Truncated {
        /// Length of the file in bytes.
        len: u64,
        /// End of its last page in bytes.
        end: u64,
    },
    /// The tables belong to another program.
    #[error(
        "no tables of strfry (`rasgueadb_defaultDb__EventPayload`) or of nostrdb (`note`, `ndb_meta`)"
    )]
    Tables,
    /// A key of the table of events is no number.
    #[error("after key {after}: a key has {len} bytes, and not 8")]
    Key {
        /// The key before, 0 at the beginning.
        after: u64,
        /// Length of the key in bytes.
        len: usize,
    },
    /// The keys of the table of events do not ascend.
    #[error("after key {after}: the next key is not greater, so a page of data.mdb is damaged")]
    Order {
        /// The key before.
        after: u64,
    },
    /// Values share pages.
    #[error("after key {after}: the values have more bytes than data.mdb, so a page is damaged")]
    Shared {
        /// The last key.
        after: u64,
    },
    /// Indexes of strfry have other entries than the events.
    #[error("indexes do not agree with the events: {0}")]
    Indexes(String),
    /// The process that read the file ended before the file did.
    #[error(
        "{after}: {cause} ended the process that reads data.mdb, in LMDB, which trusts this file: it is damaged, or made to do \
         that"
    )]
    Crashed {
        /// The signal or exit code.
        cause: String,
        /// How far the file was read.
        after: String,
    },
    /// The process that reads the file made no progress, and was ended.
    #[error(
        "{after}: no progress for {seconds} seconds, so a page of data.mdb is damaged, or the disk does not answer"
    )]
    Stalled {
        /// How long it made none.
        seconds: u64,
        /// How far the file was read.
        after: String,
    },
    /// The process that reads the file cannot be started.
    #[error("the process that reads data.mdb cannot be started: {0}")]
    Start(io::Error),
    /// There is something at the path of a new database.
    #[error("the folder of a new database is not empty")]
    Exists,
}

impl DatabaseError {
    /// Whether the system failed rather than the input.
    pub fn is_local(&self) -> bool {
        self.code().is_none()
    }

    /// The stable code of the file's fault; `None` if the system failed.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Io(_) | Self::Denied(_) | Self::Start(_) | Self::Exists => None,
            Self::Version => Some("database/version"),
            Self::Tables => Some("database/tables"),
            Self::Lmdb(_)
            | Self::Truncated { .. }
            | Self::Key { .. }
            | Self::Order { .. }
            | Self::Shared { .. } => Some("database/file"),
            Self::Indexes(_) => Some("database/index"),
            Self::Crashed { .. } => Some("database/crash"),
            Self::Stalled { .. } => Some("database/stalled"),
        }
    }
}

impl From<heed::Error> for DatabaseError {
    fn from(error: heed::Error) -> Self {
        match error {
            heed::Error::Io(error) if error.kind() == ErrorKind::PermissionDenied => {
                Self::Denied(error)
            }
            // The head of the file states a size that cannot be mapped.
            heed::Error::Io(error) if is_of_mapping(&error) => {
                Self::Lmdb(format!("its head states a size that cannot be mapped: {error}"))
            }
            heed::Error::Io(error) => Self::Io(error),
            heed::Error::Mdb(MdbError::VersionMismatch) => Self::Version,
            error => Self::Lmdb(error.to_string()),
        }
    }
}

fn is_of_mapping(error: &io::Error) -> bool {
    use ErrorKind::{FileTooLarge, InvalidInput, OutOfMemory};
    matches!(error.kind(), OutOfMemory | InvalidInput | FileTooLarge)
}
