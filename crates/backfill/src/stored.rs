//! The newest revision of every repository in the archive, by account: 32 bytes per account, and the overhead of
//! the map.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use archive::{Archive, ArchiveError, RowSelection};
use atproto::syntax::Tid;
use kernels::sha256;

/// Revisions by the first half of the SHA-256 of the DID.
#[derive(Debug, Default)]
pub(crate) struct StoredRevisions(Mutex<HashMap<[u8; 16], Tid>>);

impl StoredRevisions {
    /// Adds the repositories of an archive that are not hidden.
    pub(crate) async fn read(&self, archive: &Archive) -> Result<(), ArchiveError> {
        let mut add = |did: &str, rev: &str| {
            if let Ok(rev) = Tid::parse(rev) {
                self.add(did, rev);
            }
        };
        archive.visit_revisions(&RowSelection::default(), &mut add).await
    }

    /// Adds a repository, unless a newer one is there.
    pub(crate) fn add(&self, did: &str, rev: Tid) {
        let mut revisions = self.lock();
        let newest = revisions.entry(key(did)).or_insert(rev);
        *newest = rev.max(*newest);
    }

    pub(crate) fn get(&self, did: &str) -> Option<Tid> {
        self.lock().get(&key(did)).copied()
    }

    /// Removes an account that is hidden now.
    pub(crate) fn remove(&self, did: &str) {
        self.lock().remove(&key(did));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], Tid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of an account in tables of accounts.
pub(crate) fn key(did: &str) -> [u8; 16] {
    let digest = sha256::digest(did.as_bytes());
    std::array::from_fn(|at| digest[at])
}
