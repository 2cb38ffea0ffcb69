//! The state file and its lock file: the exclusive lock, and whether both are still the files that were opened.
//!
//! A process that deletes or replaces an open file does not disturb processes that have it open: they would go on
//! writing to a file without a name. So the identity of both files is compared before every write.

use std::fs;
use std::path::Path;

use base::{Lock, OpenFile};

use crate::database::{StoreError, StoreFault};

/// The open files of a store. The system releases the lock when the process ends, even by a crash.
#[derive(Debug)]
pub struct StateFiles {
    state: OpenFile,
    lock: Lock,
}

impl StateFiles {
    /// The state file at `path`, which is open, and its lock.
    pub fn new(path: &Path, lock: Lock) -> Result<Self, StoreError> {
        let metadata = fs::metadata(path).map_err(StoreError::at(path))?;
        Ok(Self { state: OpenFile::new(path, &metadata), lock })
    }

    /// The path of the state file.
    pub fn path(&self) -> &Path {
        self.state.path()
    }

    /// Checks that both paths still name the files that were opened, and that the state file is not empty.
    pub fn check(&self) -> Result<(), StoreError> {
        self.state.check()?;
        self.lock.check()?;
        check_not_empty(self.state.path())
    }
}

/// Rejects a state file of 0 bytes: SQLite would treat it as a new one.
pub fn check_not_empty(path: &Path) -> Result<(), StoreError> {
    let metadata = fs::metadata(path).map_err(StoreError::at(path))?;
    if metadata.len() == 0 { Err(StoreError::new(path, StoreFault::Emptied)) } else { Ok(()) }
}
