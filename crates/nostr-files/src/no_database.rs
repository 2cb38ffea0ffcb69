//! The reader of LMDB databases of a build without them.

use std::path::Path;

use nostr::Event;

use crate::fault::{EntryFault, FileFault};
use crate::group::RawGroup;
use crate::input::ReaderProcess;

/// No database can be opened.
pub(crate) enum DatabaseReader {}

impl DatabaseReader {
    pub(crate) fn open(_: &Path, _: Option<&ReaderProcess>) -> Result<Self, FileFault> {
        Err(FileFault::NoDatabases)
    }

    pub(crate) fn taken(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn next_group(&mut self, _: u64) -> Result<Option<RawGroup>, FileFault> {
        match *self {}
    }
}

/// No event has a row.
pub(crate) fn difference(_: &Event<'_>, _: &[u8]) -> Option<EntryFault> {
    None
}
