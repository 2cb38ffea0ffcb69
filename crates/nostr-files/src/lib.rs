//! Files of Nostr events: reading and writing them.
//!
//! | item | purpose |
//! |---|---|
//! | [`Layout`] | the layout of events in a file |
//! | [`Input`] | the events of files, folders and databases |
//! | [`ReaderProcess`] | the process that reads a database |
//! | [`Reader`] | the events of one file |
//! | [`Group`], [`RawGroup`], [`Entry`] | entries that were read together, decoded or not |
//! | [`Output`] | writing a file of events |
//! | [`InputError`], [`FileFault`], [`EntryFault`] | why an input, a file or an entry cannot be read |
//!
//! Files are read in groups, so that a file of any length takes little memory. Compressed files are decompressed on the
//! way. LMDB databases need the feature `nostr-lmdb`.
//!
//! ```
//! use wireproof::nostr::{Arena, Limits, formats::Format};
//! use wireproof::nostr_files::{Layout, Reader};
//! # let json = wireproof::nostr::example::JSON;
//!
//! let arena = Arena::new();
//! let event = Format::Json.decode(json.as_bytes(), &arena, &Limits::default())?;
//! let file = Layout::CONTAINER.write(&[event], Vec::new())?;
//! let mut reader = Reader::new(Layout::CONTAINER, &file[..]);
//! assert_eq!(reader.group(&arena, u64::MAX)?, [Ok(event)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg_attr(not(feature = "nostr-lmdb"), path = "no_database.rs")]
mod database;
mod fault;
mod group;
mod gzip;
mod input;
mod layout;
mod message;
mod reader;
mod stream;
#[cfg(test)]
mod tests;

pub use fault::{EntryFault, FileFault};
pub use group::{Entry, RawGroup};
pub use input::{Group, Input, InputError, ReaderProcess};
pub use layout::{Layout, Output, OutputError, Records};
pub use reader::Reader;
