//! Readers of a mirror that requests share: one is used by one request at a time.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use store::{PlcMirrorReader, StoreError};

/// Open readers of a mirror.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<PlcMirrorReader>>,
}

impl Readers {
    /// Opens the first reader of the mirror at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let first = PlcMirrorReader::open(path)?;
        Ok(Self { path: path.to_owned(), idle: Mutex::new(vec![first]) })
    }

    /// Calls `read` with a reader, which is opened if all others are in use. After an error it is closed.
    pub(crate) fn with<T>(
        &self,
        read: impl FnOnce(&PlcMirrorReader) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.lock().pop();
        let reader = match idle {
            Some(reader) => reader,
            None => PlcMirrorReader::open(&self.path)?,
        };
        let found = read(&reader)?;
        self.lock().push(reader);
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<PlcMirrorReader>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
