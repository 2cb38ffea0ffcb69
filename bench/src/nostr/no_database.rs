//! The reader of LMDB databases of a build without them.

use std::path::Path;

use nostr::Event;

use super::input::ReaderProcess;
use super::reader::{EntryFault, FileFault, RawGroup};

/// No database can be opened.
pub(super) enum DatabaseReader {}

impl DatabaseReader {
    pub(super) fn open(_: &Path, _: Option<&ReaderProcess>) -> Result<Self, FileFault> {
        Err(FileFault::NoDatabases)
    }

    pub(super) fn taken(&self) -> u64 {
        match *self {}
    }

    pub(super) fn next_group(&mut self, _: u64) -> Result<Option<RawGroup>, FileFault> {
        match *self {}
    }
}

/// No event has a row.
pub(super) fn difference(_: &Event<'_>, _: &[u8]) -> Option<EntryFault> {
    None
}
