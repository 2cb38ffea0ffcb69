//! The state file and its lock file: the exclusive lock, and whether both are still the files that were opened.
//!
//! A process that deletes or replaces an open file does not disturb those that have it open: they would go on
//! writing to a file without a name. So the identity of both files is compared before every write.

use std::fs::{self, File, Metadata, TryLockError};
use std::path::{Path, PathBuf};

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
        &self.state.path
    }

    /// Checks that both paths still name the files that were opened, and that the state file is not empty.
    pub fn check(&self) -> Result<(), StoreError> {
        self.state.check()?;
        self.lock.file.check()?;
        check_not_empty(&self.state.path)
    }
}

/// An exclusive lock of a state file.
#[derive(Debug)]
pub struct Lock {
    file: OpenFile,
    _locked: File,
}

impl Lock {
    /// Takes the lock of the state file at `path`: a lock file beside it, because the locks on the file
    /// itself are SQLite's.
    pub fn take(path: &Path) -> Result<Self, StoreError> {
        let lock_path = with_suffix(path, ".lock");
        let locked = File::create(&lock_path).map_err(StoreError::at(&lock_path))?;
        match locked.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::new(path, StoreFault::InUse)),
            Err(TryLockError::Error(error)) => return Err(StoreError::new(&lock_path, error)),
        }
        let metadata = locked.metadata().map_err(StoreError::at(&lock_path))?;
        Ok(Self { file: OpenFile::new(&lock_path, &metadata), _locked: locked })
    }
}

/// Rejects a state file of 0 bytes: SQLite would treat it as a new one.
pub fn check_not_empty(path: &Path) -> Result<(), StoreError> {
    let metadata = fs::metadata(path).map_err(StoreError::at(path))?;
    if metadata.len() == 0 { Err(StoreError::new(path, StoreFault::Emptied)) } else { Ok(()) }
}

/// The path with a suffix after its extension.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// An open file by its path, and what distinguishes it from a file that takes its place.
#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    identity: Identity,
}

impl OpenFile {
    fn new(path: &Path, metadata: &Metadata) -> Self {
        Self { path: path.to_owned(), identity: identity(metadata) }
    }

    fn check(&self) -> Result<(), StoreError> {
        match fs::metadata(&self.path) {
            Ok(metadata) if identity(&metadata) == self.identity => Ok(()),
            _ => Err(StoreError::new(&self.path, StoreFault::Replaced)),
        }
    }
}

#[cfg(unix)]
type Identity = (u64, u64);

/// The device and inode.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
type Identity = Option<std::time::SystemTime>;

/// The time of creation: other systems have no inode, and most forbid to delete open files.
#[cfg(not(unix))]
fn identity(metadata: &Metadata) -> Identity {
    metadata.created().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_and_released_on_drop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.sqlite");
        let lock = Lock::take(&path).unwrap();
        assert_eq!(Lock::take(&path).unwrap_err().fault, StoreFault::InUse);
        drop(lock);
        Lock::take(&path).unwrap();
    }
}
