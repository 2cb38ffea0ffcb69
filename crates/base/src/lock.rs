//! An exclusive lock next to a file, and whether a path still names the file that was opened.
//!
//! A process that deletes or replaces an open file does not disturb the processes that have it open: they would go
//! on writing to a file without a name. So the identity of a file is compared before every write.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Why a file cannot be locked, or is no longer the one that was opened.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct LockError {
    /// The file.
    pub path: PathBuf,
    /// The fault of the file.
    #[source]
    pub fault: LockFault,
}

/// A fault of a locked file.
#[derive(Debug, thiserror::Error)]
pub enum LockFault {
    /// Another process has the lock.
    #[error("another process uses this file")]
    InUse,
    /// The file was deleted or replaced while it was in use.
    #[error("the file was deleted or replaced while it was in use")]
    Replaced,
    /// The file cannot be opened, created or locked.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An exclusive lock. The system releases it when the process ends, even by a crash.
#[derive(Debug)]
pub struct Lock {
    file: OpenFile,
    _locked: File,
}

impl Lock {
    /// Takes the lock of the file at `path`: a lock file next to it, as a library that writes the file may use locks
    /// on the file itself.
    ///
    /// # Errors
    /// If another process has the lock, or the lock file cannot be created.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let lock_path = with_suffix(path, ".lock");
        let failed = |error| LockError::new(&lock_path, LockFault::Io(error));
        let locked = File::create(&lock_path).map_err(failed)?;
        match locked.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::new(path, LockFault::InUse)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let metadata = locked.metadata().map_err(failed)?;
        Ok(Self { file: OpenFile::new(&lock_path, &metadata), _locked: locked })
    }

    /// Checks that the lock file is still the one that was locked.
    ///
    /// # Errors
    /// If it was deleted or replaced.
    pub fn check(&self) -> Result<(), LockError> {
        self.file.check()
    }
}

impl LockError {
    fn new(path: &Path, fault: LockFault) -> Self {
        Self { path: path.to_owned(), fault }
    }
}

/// The path with a suffix after its extension.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// An open file by its path and its identity, which differs from a file in its place.
#[derive(Debug)]
pub struct OpenFile {
    path: PathBuf,
    identity: Identity,
}

impl OpenFile {
    /// The file at `path`, which has this metadata.
    pub fn new(path: &Path, metadata: &Metadata) -> Self {
        Self { path: path.to_owned(), identity: identity(metadata) }
    }

    /// The path at which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the path still names this file.
    ///
    /// # Errors
    /// If the file was deleted or replaced.
    pub fn check(&self) -> Result<(), LockError> {
        match fs::metadata(&self.path) {
            Ok(metadata) if identity(&metadata) == self.identity => Ok(()),
            _ => Err(LockError::new(&self.path, LockFault::Replaced)),
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
        assert!(matches!(Lock::take(&path).unwrap_err().fault, LockFault::InUse));
        drop(lock);
        Lock::take(&path).unwrap();
    }

    #[test]
    fn a_lock_file_that_is_deleted_or_replaced_is_told_from_the_locked_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.sqlite");
        let lock = Lock::take(&path).unwrap();
        lock.check().unwrap();
        let lock_path = with_suffix(&path, ".lock");
        fs::rename(&lock_path, dir.path().join("kept")).unwrap();
        assert!(matches!(lock.check().unwrap_err().fault, LockFault::Replaced));
        fs::write(&lock_path, "").unwrap();
        assert!(matches!(lock.check().unwrap_err().fault, LockFault::Replaced));
    }

    #[test]
    fn a_lock_in_a_folder_that_is_missing_is_no_lock_of_another_process() {
        let dir = tempfile::tempdir().unwrap();
        let error = Lock::take(&dir.path().join("missing/state.sqlite")).unwrap_err();
        assert!(
            matches!(&error.fault, LockFault::Io(error) if error.kind() == io::ErrorKind::NotFound)
        );
    }
}
