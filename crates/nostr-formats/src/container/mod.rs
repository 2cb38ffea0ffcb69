//! Containers: files of events in any format, in blocks that are checked one by one and found again after damage.
//!
//! ```text
//! header ─ block ─ block ─ … ─ block ─ index
//! ```
//!
//! | item | purpose |
//! |---|---|
//! | [`Writer`] | writes events into blocks, and the index at the end |
//! | [`StreamReader`] | reads every intact block of a stream, and names the damage between them |
//! | [`IndexedReader`] | reads one event by its number |
//!
//! Memory holds one block, and an index of at most 16,384 entries, whatever the number of events. All integers are
//! little-endian, and checksums are CRC-32C. A checksum finds damage, not forgery: ids and signatures prove the claims of
//! the events.
//!
//! | bytes of the header | |
//! |---|---|
//! | 8 | `89 4e 53 54 52 0d 0a 1a` |
//! | 4 | version: 1 |
//! | 4 | number of the format |
//! | 8 | salt |
//! | 4 | checksum of the 24 bytes before |
//!
//! | bytes of a block | |
//! |---|---|
//! | 8 | `c1 ff 4e 42 4c 4b ff c1` |
//! | 8 | salt |
//! | 8 | number of the first event |
//! | 4 | number of events: 1 to 65,536 |
//! | 4 | length of the body: up to 17 MiB |
//! | 4 | number of the format |
//! | 4 | checksum of the body |
//! | 4 | checksum of the 40 bytes before |
//! | … | body: per event 4 bytes, its end in the bytes of all events; the bytes of all events |
//!
//! | bytes of the index | |
//! |---|---|
//! | 8 | `c1 ff 4e 49 44 58 ff c1` |
//! | 8 | salt |
//! | 8, 8, 4 | number of events, of blocks and of entries |
//! | 4 | checksum of the 36 bytes before |
//! | 16 each | entries: offset of a block, number of its first event |
//! | 8 | offset of the index |
//! | 4 | checksum of the entries and this offset |
//! | 8 | `c1 ff 4e 45 4e 44 ff c1` |
//!
//! The salt is the start of the SHA-256 of the first body, of no bytes in a container without events. The author of an event
//! does not know it, so no event has bytes within it that are taken for a block.

mod index;
mod indexed;
mod parts;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

pub use indexed::{IndexedReader, LookupError, StoredEvent};
pub use stream::{Block, Item, StreamReader};
pub use writer::{WriteError, Writer};

use std::fmt;

use crate::Format;

/// A part of a container that cannot be read or contradicts the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Bytes from the start of the container to the part.
    pub offset: u64,
    /// Length of the part in bytes; 0 if the bytes at the offset contradict the rest.
    pub len: u64,
    /// Number of the first event that is missing, or would be.
    pub event: u64,
    /// Number of missing events, if the next part tells.
    pub missing: Option<u64>,
    /// The broken rule.
    pub fault: Fault,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, len, event, missing, fault } = self;
        write!(f, "at byte {offset}, {len} bytes: {fault}")?;
        match missing {
            None | Some(0) => Ok(()),
            Some(1) => write!(f, "; event {event} is missing"),
            Some(count) => write!(f, "; {count} events are missing, from event {event} on"),
        }
    }
}

/// A broken rule of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The start is no header, or its checksum is wrong.
    #[error("no header of a container")]
    Header,
    /// The header is of another version.
    #[error("unsupported version {0}")]
    Version(u32),
    /// A number of a format that is unknown, not part of this build, or not the header's.
    #[error("format {0} is unknown, or not the one of the container")]
    Format(u32),
    /// Neither a block nor the index begins where one should, or the checksum of its head is wrong.
    #[error("no block and no index begins here")]
    Head,
    /// The checksum of the body of a block is wrong.
    #[error("the body of a block has another checksum")]
    Checksum,
    /// The events of a block do not fill its body.
    #[error("the lengths of the events contradict the length of the body")]
    Lengths,
    /// A block or an index has the salt of another container.
    #[error("a part of another container")]
    Salt,
    /// A block begins with another event than the next one.
    #[error("the next event is {found}")]
    Order {
        /// Number of the event that follows.
        found: u64,
    },
    /// The container ends before its index does.
    #[error("the container ends before its index does")]
    Truncated,
    /// The index contradicts the blocks, or its checksum is wrong.
    #[error("the index is not that of the blocks")]
    Index,
    /// Bytes follow the index.
    #[error("bytes after the index")]
    Trailing,
    /// A count or a length over its limit.
    #[error("a count or a length is over its limit")]
    Limit,
    /// A block was not read, because too many bodies before it had wrong checksums.
    #[error("too many wrong checksums to look further")]
    WorkLimit,
}

impl Fault {
    /// The stable name of the rule.
    pub fn code(self) -> &'static str {
        match self {
            Self::Header => "container/header",
            Self::Version(_) => "container/version",
            Self::Format(_) => "container/format",
            Self::Head => "container/head",
            Self::Checksum => "container/checksum",
            Self::Lengths => "container/lengths",
            Self::Salt => "container/salt",
            Self::Order { .. } => "container/order",
            Self::Truncated => "container/truncated",
            Self::Index => "container/index",
            Self::Trailing => "container/trailing",
            Self::Limit | Self::WorkLimit => "container/limit",
        }
    }
}

/// Whether bytes begin like a container.
pub fn is_container(bytes: &[u8]) -> bool {
    bytes.starts_with(&parts::MAGIC)
}

/// The number of a format in headers and blocks.
fn number_of(format: Format) -> u32 {
    let position = FORMATS.iter().position(|name| *name == format.name());
    position.expect("every format has a number") as u32
}

/// The format of a number, if this build has it.
fn format_of(number: u32) -> Result<Format, Fault> {
    let name = FORMATS.get(number as usize);
    name.and_then(|name| Format::from_name(name)).ok_or(Fault::Format(number))
}

/// The names of formats, by number. A number never changes its meaning.
const FORMATS: [&str; 17] = [
    "json",
    "cbor-schemaless",
    "cbor-packed",
    "cbor-intkey",
    "msgpack",
    "dannypack",
    "notepack",
    "proto-string",
    "proto-binary",
    "proto-binary-hex",
    "capnp",
    "capnp-packed",
    "capnp-schema",
    "capnp-schema-packed",
    "flatbuffers",
    "ndb-note",
    "wireproof",
];

/// Maximum size of an event in bytes: more than a decoder's default limits allow in JSON.
pub const MAX_EVENT_BYTES: usize = 16 << 20;
