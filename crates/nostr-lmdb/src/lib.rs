//! The LMDB databases of strfry and nostrdb: their events are read, and databases of strfry are written.
//!
//! | item | purpose |
//! |---|---|
//! | [`Reader`] | the events of a database, in the order of their keys, with the faults of its tables |
//! | [`IsolatedReader`], [`serve`] | the same, read by a process of its own with limits |
//! | [`StrfryWriter`] | a new database of strfry with all its indexes |
//! | [`DatabaseError`] | why a database cannot be opened, read or written |
//!
//! | program | table | key | value |
//! |---|---|---|---|
//! | strfry | `rasgueadb_defaultDb__EventPayload` | number of the event in 8 bytes | 0 and the JSON of the event; or 1, the number of a dictionary in 4 bytes, and the JSON in Zstandard |
//! | | `rasgueadb_defaultDb__CompressionDictionary` | number of the dictionary in 8 bytes | a table of FlatBuffers whose first field is the dictionary |
//! | nostrdb | `note` | number of the note in 8 bytes | a [note](nostr_formats::ndb_note) |
//!
//! Integers have the byte order of the machine. LMDB trusts its file: a stranger's file can end the process that reads it by a
//! signal, so it is read by an [`IsolatedReader`]. The values in it are untrusted too: they have limits, and nothing is allocated or
//! decompressed beyond them.

#![forbid(unsafe_code)]

mod error;
mod flat;
mod indexes;
mod isolated;
mod messages;
mod payload;
mod reader;
mod record;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

pub use error::DatabaseError;
pub use isolated::{IsolatedReader, serve};
pub use reader::{Program, Reader, is_database};
pub use record::{Record, RecordFault, difference};
pub use writer::{Counts, Outcome, StrfryWriter};
