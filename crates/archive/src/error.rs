//! Errors of an archive: the file and its fault.

use std::io;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

use crate::decode_limits::DecodeLimit;
use crate::store_fault::{StoreFault, StoreProblem};

/// An error of an archive, and the file that it is about.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {fault}")]
pub struct ArchiveError {
    /// The file's path within the archive, or the archive's address.
    pub file: String,
    /// The fault.
    pub fault: ArchiveFault,
}

/// A fault of an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveFault {
    /// The address is not one of an archive.
    #[error(
        "not the address of an archive: use a folder, file://, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or \
         az://CONTAINER/PREFIX"
    )]
    Address,
    /// The program has no object stores.
    #[error(
        "the feature `object-stores` of this program is off: build it with it, or use a folder"
    )]
    NoObjectStores,
    /// The environment has no settings of an object store, or has unusable ones.
    #[error("the settings of the object store: {0}")]
    Settings(String),
    /// There is no archive at the address.
    #[error("no archive: `archive follow` and `archive import` create one")]
    NoArchive,
    /// A file of a local archive cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// A file of a local archive cannot be read.
    #[error(transparent)]
    Object(object_store::Error),
    /// A request to an object store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// Bytes are not a Parquet file, or rows cannot be written to one.
    #[error(transparent)]
    Parquet(ParquetError),
    /// Columns have other types than the table.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// An entry of the log violates the Delta protocol.
    #[error("line {line} is not an action of a Delta log: {reason}")]
    LogLine {
        /// The line, from 1.
        line: usize,
        /// The fault.
        reason: String,
    },
    /// An entry, a checkpoint or the log as a whole violates the Delta protocol.
    #[error("{0}; restore the log from a copy")]
    Log(String),
    /// An entry or a checkpoint of the log has another hash than it states.
    #[error("the entry was changed: its hash differs from the stated one; restore it from a copy")]
    ChangedEntry,
    /// The log skips a version: it has later ones, or a checkpoint that is not there was made of them.
    #[error(
        "version {0} of the log is missing, and the log continues after it: nothing is read or written; restore the log from a \
         copy"
    )]
    MissingVersion(u64),
    /// The log has fewer versions than it had.
    #[error(
        "the log has {found} versions and had {known}: nothing is read or written; restore the log from a copy, or delete \
         `_heads/` of the table if you have put back an older copy of the archive on purpose"
    )]
    ShorterLog {
        /// Number of versions that are there.
        found: u64,
        /// Number of versions that were there.
        known: u64,
    },
    /// The log is another one than it was: a version that was there has other content.
    #[error(
        "version {0} is not the committed one: the log was recreated; restore it from a copy, or delete `_heads/` of \
         the table if you have put another archive here on purpose"
    )]
    OtherLog(u64),
    /// The table demands a newer reader or writer.
    #[error(
        "the table demands {demanded} of the Delta protocol, which this program does not support: nothing is read or written"
    )]
    Protocol {
        /// The version or the feature that the table demands.
        demanded: String,
    },
    /// The table forbids the operation.
    #[error(
        "the table has `delta.appendOnly=true`, so that no row of it may be deleted: unset it first"
    )]
    AppendOnly,
    /// A file would decode to more than is read.
    #[error("{0}: it is not decoded")]
    DecodedSize(#[from] DecodeLimit),
    /// A part of a path is a symbolic link.
    #[error(
        "a symbolic link: an archive is listed, written and deleted without following links; replace it with its target, or \
         remove it"
    )]
    Link,
    /// The name of a ledger has characters that it cannot have.
    #[error(
        "a name has 1 to 64 letters, digits, dots, hyphens and underscores, and does not begin with a dot"
    )]
    LedgerName,
    /// An object of a ledger is not its row.
    #[error("not a row of a ledger: {0}; restore it from a copy")]
    LedgerRow(String),
    /// Other writers were faster every time.
    #[error("other writers committed first {0} times in a row")]
    Contention(u32),
    /// Another process stores labels of the same service.
    #[error("another process has stored labels of {0}: stop one of the two")]
    LabelsElsewhere(String),
    /// Another process writes to the archive.
    #[error(
        "another process holds the write-ahead log: stop it, or give this one a folder of its own"
    )]
    InUse,
    /// A record of the write-ahead log is damaged, and others follow it.
    #[error("at byte {offset}: {reason}")]
    DamagedLog {
        /// Bytes from the start of the file to the record.
        offset: u64,
        /// The fault.
        reason: &'static str,
    },
    /// A file does not have the bytes that its name says.
    #[error("the bytes have the SHA-256 {0}: the file was changed")]
    ChangedFile(String),
    /// An account is to be erased, and there is no secret to hash its DID with.
    #[error(
        "no erasure key: the DID of an erased account is kept as a hash under a secret that is not in the archive"
    )]
    NoErasureKey,
    /// Accounts were erased under another secret: their events would not be recognized.
    #[error(
        "accounts were erased under the erasure key {0}, which is not here: without it they would be stored again"
    )]
    OtherErasureKey(String),
    /// The stored repository of an account is damaged.
    #[error("the stored repository is damaged: {0}")]
    Repository(String),
    /// A row has a value that no row can have.
    #[error("row {row}: {reason}")]
    Row {
        /// The row, from 0.
        row: u64,
        /// The fault.
        reason: &'static str,
    },
}

impl From<object_store::Error> for ArchiveFault {
    fn from(error: object_store::Error) -> Self {
        match StoreFault::of(&error) {
            Some(fault) => Self::Store(fault),
            None => Self::Object(error),
        }
    }
}

impl From<ParquetError> for ArchiveFault {
    /// The error of the file's object, if it is one.
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(error) => match error.downcast::<object_store::Error>() {
                Ok(error) => Self::from(*error),
                Err(error) => match error.downcast::<DecodeLimit>() {
                    Ok(limit) => Self::DecodedSize(*limit),
                    Err(error) => match error.downcast::<ArchiveError>() {
                        Ok(error) => error.fault,
                        Err(error) => Self::Parquet(ParquetError::External(error)),
                    },
                },
            },
            error => Self::Parquet(error),
        }
    }
}

impl ArchiveFault {
    /// The stable code of a broken rule of archives; `None` for a fault of the program's surroundings.
    pub fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::LogLine { .. } | Self::Log(_) | Self::ChangedEntry => "archive/log",
            Self::MissingVersion(_) => "archive/log-gap",
            Self::ShorterLog { .. } | Self::OtherLog(_) => "archive/log-shorter",
            Self::Protocol { .. } | Self::AppendOnly => "archive/protocol",
            Self::Link => "archive/link",
            Self::ChangedFile(_) => "archive/file",
            Self::DecodedSize(_) => "archive/decoded-size",
            _ => return None,
        })
    }
}

impl ArchiveError {
    /// Whether the same may succeed later: an object store does not answer, or not in time.
    pub fn is_temporary(&self) -> bool {
        matches!(&self.fault, ArchiveFault::Store(fault) if fault.is_temporary())
    }

    /// Whether a file that was asked for does not exist.
    pub(crate) fn is_missing_file(&self) -> bool {
        match &self.fault {
            ArchiveFault::File(error) => error.kind() == std::io::ErrorKind::NotFound,
            ArchiveFault::Object(error) => matches!(error, object_store::Error::NotFound { .. }),
            ArchiveFault::Store(fault) => fault.problem == StoreProblem::NoObject,
            _ => false,
        }
    }

    pub(crate) fn new(file: impl Into<String>, fault: impl Into<ArchiveFault>) -> Self {
        Self { file: file.into(), fault: fault.into() }
    }

    /// For `map_err`: the error of this file.
    pub(crate) fn at<F: Into<ArchiveFault>>(file: &str) -> impl FnOnce(F) -> Self + '_ {
        move |fault| Self::new(file, fault)
    }
}
