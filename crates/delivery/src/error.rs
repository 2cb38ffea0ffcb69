//! Errors of an outbox.

use std::path::{Path, PathBuf};

use store::{StoreError, StoreFault};

/// An error of an outbox. The file is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct OutboxError {
    /// The file.
    pub path: PathBuf,
    /// The fault.
    pub fault: OutboxFault,
}

/// A fault of an outbox.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxFault {
    /// Another process uses the file.
    #[error(
        "another process uses this outbox, and holds the lock file next to it: stop it, or choose another folder"
    )]
    InUse,
    /// The file is not an outbox.
    #[error(
        "not an outbox of wireproof, or one with a damaged header: choose another folder; or restore the file, or \
         delete it and start the source at the last event that every consumer has"
    )]
    NotOurs,
    /// An outbox of another schema version.
    #[error(
        "outbox of version {found}; this program reads versions up to {known}: use the program that wrote it until \
         its consumers have everything, or choose another folder"
    )]
    OtherVersion {
        /// The version in the file.
        found: i64,
        /// The version that this program writes.
        known: i64,
    },
    /// The file has impossible contents.
    #[error(
        "the outbox is damaged: {0}; restore it, or delete it and start the source at the last event that every \
         consumer has"
    )]
    Damaged(String),
    /// The file, or its disk, cannot be read or written.
    #[error(transparent)]
    File(StoreFault),
    /// Events without a consumer would be stored for ever, or lost.
    #[error("the outbox has no consumer: register one before events are stored")]
    NoConsumer,
    /// No consumer is registered by this name.
    #[error("the outbox has no consumer `{0}`: register it first")]
    UnknownConsumer(String),
    /// The consumer is in use, by another task of this process.
    #[error("consumer `{0}` is in use: one task at a time receives its events")]
    ConsumerInUse(String),
    /// The name of a consumer is empty, too long or has other characters.
    #[error("`{0}` is not a valid name of a consumer: use 1 to 64 of a-z, 0-9, `.`, `_` and `-`")]
    ConsumerName(String),
    /// There are as many consumers as are allowed.
    #[error("the outbox has {0} consumers, which is the maximum: remove one")]
    TooManyConsumers(usize),
    /// An acknowledgement of an event that was not delivered.
    #[error("position {0} was acknowledged, but not delivered before")]
    NotDelivered(u64),
    /// The sink has stored a later position than the outbox.
    #[error(
        "the sink has stored position {stored}, but the last event of the outbox is {last}: an older copy of the \
         outbox was restored; delete the cursor in the sink, or restore both together"
    )]
    SinkAhead {
        /// The position in the sink.
        stored: u64,
        /// The position of the last event.
        last: u64,
    },
    /// The sink has stored an earlier position than it acknowledged.
    #[error(
        "the sink has stored position {stored}, but position {cursor} was acknowledged: an older copy of its data was \
         restored, and the events between are gone; restore the newer copy, or begin with an empty sink and the \
         history of the accounts"
    )]
    SinkBehind {
        /// The position in the sink.
        stored: u64,
        /// The position up to which every event was acknowledged.
        cursor: u64,
    },
    /// The outbox stores no further events, as it is closing.
    #[error("the outbox was closed")]
    Closed,
}

impl OutboxError {
    pub(crate) fn new(path: &Path, fault: impl Into<OutboxFault>) -> Self {
        Self { path: path.to_owned(), fault: fault.into() }
    }

    /// [`new`](Self::new), for `map_err`.
    pub(crate) fn at<F: Into<OutboxFault>>(path: &Path) -> impl Fn(F) -> Self {
        move |fault| Self::new(path, fault)
    }
}

impl From<StoreError> for OutboxError {
    fn from(error: StoreError) -> Self {
        Self { path: error.path, fault: error.fault.into() }
    }
}

impl From<StoreFault> for OutboxFault {
    fn from(fault: StoreFault) -> Self {
        match fault {
            StoreFault::InUse => Self::InUse,
            StoreFault::NotOurs => Self::NotOurs,
            StoreFault::OtherVersion { found, known } => Self::OtherVersion { found, known },
            StoreFault::Damaged(what) => Self::Damaged(what),
            StoreFault::Emptied => Self::Damaged("it has 0 bytes".to_owned()),
            StoreFault::Closed => Self::Closed,
            other => Self::File(other),
        }
    }
}

impl From<rusqlite::Error> for OutboxFault {
    fn from(error: rusqlite::Error) -> Self {
        StoreFault::from(error).into()
    }
}

impl From<std::io::Error> for OutboxFault {
    fn from(error: std::io::Error) -> Self {
        StoreFault::from(error).into()
    }
}
