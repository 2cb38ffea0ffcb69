//! Why an entry is no event, and why a file cannot be read further.

use std::io;

use codec::wrapping::Wrapping;
use kernels::hex;
use nostr::DecodeError;
use nostr_formats::container::{Damage, MAX_EVENT_BYTES};
#[cfg(feature = "nostr-lmdb")]
use nostr_lmdb::DatabaseError;

/// Why an entry is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryFault {
    /// Its bytes cannot be decoded.
    #[error(transparent)]
    Unreadable(#[from] DecodeError),
    /// A row of strfry's table `Event` with the summary of the event with this id, and no payload.
    #[error("table Event has the event {}, and EventPayload has no payload", hex::encode(.0))]
    NoPayload([u8; 32]),
    /// A payload in a database of strfry without a row in the table `Event`.
    #[error("table EventPayload has this event, and Event has no row")]
    NoRow,
    /// A row in the table `Event` that is no summary.
    #[error("the row in table Event is no summary of an event")]
    MalformedRow,
    /// The payload and the row in the table `Event` are of different events, by this field.
    #[error("the payload is of another event than the row in table Event, by its {0}")]
    OtherEvent(&'static str),
}

impl EntryFault {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unreadable(_) => "event/unreadable",
            Self::NoPayload(_) => "database/no-payload",
            Self::NoRow => "database/no-row",
            Self::MalformedRow => "database/malformed-row",
            Self::OtherEvent(_) => "database/other-event",
        }
    }
}

/// Why a file cannot be read further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// The system cannot read it.
    #[error("{0}")]
    Io(io::Error),
    /// It is not a complete compressed stream.
    #[error("after event {after}: not a complete {name} stream: {fault}")]
    Compressed {
        /// The compression: `gzip` or `Zstandard`.
        name: &'static str,
        /// Events read before.
        after: u64,
        /// The decompressor's error.
        fault: io::Error,
    },
    /// It ends inside an event.
    #[error("the file ends inside event {0}")]
    Truncated(u64),
    /// The length prefix of an event is not a minimal LEB128 number.
    #[error("event {0}: its length prefix is not a minimal LEB128 number")]
    Length(u64),
    /// An event exceeds the size limit.
    #[error(
        "event {0}: longer than {MAX_EVENT_BYTES} bytes; `jq -c .` puts events without line breaks on lines"
    )]
    TooLong(u64),
    /// An event is invalid.
    #[error("event {at}, {fault}")]
    Event {
        /// Its index.
        at: u64,
        /// The broken rule.
        fault: EntryFault,
    },
    /// The file is not a list of its format.
    #[error("{0}")]
    Batch(DecodeError),
    /// A part of a container is damaged.
    #[error("{0}")]
    Damaged(Damage),
    /// A byte order mark or compression before JSON.
    #[error("the file {0}")]
    Wrapped(Wrapping),
    /// A JSON array where one event a line is expected.
    #[error("a JSON array, not an event on each line: --from json reads it")]
    Array,
    /// Text in UTF-16.
    #[error("the file is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`")]
    Utf16,
    /// The file ends in NUL bytes, as after a power cut.
    #[error("after event {0}: the rest is NUL bytes")]
    Nul(u64),
    /// An LMDB database cannot be opened or read.
    #[cfg(feature = "nostr-lmdb")]
    #[error("{0}")]
    Database(DatabaseError),
    /// A database in a build without the feature `nostr-lmdb`.
    #[cfg(not(feature = "nostr-lmdb"))]
    #[error("an LMDB database needs the feature `nostr-lmdb`")]
    NoDatabases,
}

impl FileFault {
    /// The stable code of the fault that ends the reading of a database.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "nostr-lmdb")]
            Self::Database(fault) => fault.code(),
            _ => None,
        }
    }

    /// Whether the system failed rather than the input.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Io(_) => true,
            #[cfg(feature = "nostr-lmdb")]
            Self::Database(fault) => fault.is_local(),
            _ => false,
        }
    }
}
