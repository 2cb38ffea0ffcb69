//! The accounts of a mirror, as a source of keys and hosts for other commands.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use atproto::syntax::Did;
use store::{PlcMirrorReader, StoreError};
use verify::Verified;
use verify::plc::History;

/// A mirror that threads share.
pub struct MirroredAccounts(Mutex<PlcMirrorReader>);

impl MirroredAccounts {
    /// Opens a mirror.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        PlcMirrorReader::open(path).map(Mutex::new).map(Self)
    }

    /// The history of an account; `None` if the mirror has no operation of it.
    ///
    /// # Errors
    /// If the mirror cannot be read, or the log of the account is not valid.
    pub fn history(&self, did: Did<'_>) -> Result<Option<Verified<History>>, StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).history(did)
    }
}
