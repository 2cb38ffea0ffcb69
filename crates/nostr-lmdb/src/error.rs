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
    /// The system denies what reading needs.
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
    Lmdb(heed::Error),
    /// The file ends before its last page.
    #[error("data.mdb ends at byte {len}, and its pages at byte {end}")]
    Truncated {
        /// Length of the file in bytes.
        len: u64,
        /// End of its last page in bytes.
        end: u64,
    },
    /// The tables are those of another program.
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
    /// There is something at the path of a new database.
    #[error("the folder of a new database is not empty")]
    Exists,
}

impl DatabaseError {
    /// Whether the system failed rather than the input.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Io(_) | Self::Denied(_) | Self::Exists)
    }
}

impl From<heed::Error> for DatabaseError {
    fn from(error: heed::Error) -> Self {
        match error {
            heed::Error::Io(error) if error.kind() == ErrorKind::PermissionDenied => {
                Self::Denied(error)
            }
            heed::Error::Io(error) => Self::Io(error),
            heed::Error::Mdb(MdbError::VersionMismatch) => Self::Version,
            error => Self::Lmdb(error),
        }
    }
}
