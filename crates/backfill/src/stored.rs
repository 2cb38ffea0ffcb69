//! The newest revision of every account of which the archive has the wanted records: the whole repository, or the selected collections.
//! An account takes 40 bytes, and the overhead of the map.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use archive::{Archive, ArchiveError, Collections, RowSelection};
use atproto::syntax::Tid;
use kernels::sha256;

/// Revisions by the first half of the SHA-256 of the DID; `None` for an account of which only other collections are stored.
#[derive(Debug, Default)]
pub(crate) struct StoredRevisions(Mutex<HashMap<[u8; 16], Option<Tid>>>);

impl StoredRevisions {
    /// Adds the repositories of an archive that are not hidden, and the parts, which are enough if they have the wanted collections.
    pub(crate) async fn read(
        &self,
        archive: &Archive,
        wanted: Option<&Collections>,
    ) -> Result<(), ArchiveError> {
        let mut add = |did: &str, rev: &str| {
            if let Ok(rev) = Tid::parse(rev) {
                self.add(did, Some(rev));
            }
        };
        archive.visit_revisions(&RowSelection::default(), &mut add).await?;
        let is_enough = |stored: &str| {
            wanted.is_some_and(|wanted| {
                stored.parse().is_ok_and(|stored: Collections| stored.include(wanted))
            })
        };
        let mut add = |did: &str, rev: &str, collections: &str| {
            if let Ok(rev) = Tid::parse(rev) {
                self.add(did, is_enough(collections).then_some(rev));
            }
        };
        archive.visit_parts(&RowSelection::default(), &mut add).await
    }

    /// Adds a stored revision of an account, unless a newer one is there; `None` if it is not enough.
    pub(crate) fn add(&self, did: &str, rev: Option<Tid>) {
        let mut revisions = self.lock();
        let newest = revisions.entry(key(did)).or_insert(rev);
        *newest = rev.max(*newest);
    }

    /// Whether anything of an account is stored.
    pub(crate) fn has(&self, did: &str) -> bool {
        self.lock().contains_key(&key(did))
    }

    /// The newest stored revision of an account that is enough.
    pub(crate) fn get(&self, did: &str) -> Option<Tid> {
        self.lock().get(&key(did)).copied().flatten()
    }

    /// Removes an account that is hidden now.
    pub(crate) fn remove(&self, did: &str) {
        self.lock().remove(&key(did));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], Option<Tid>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of an account in tables of accounts.
pub(crate) fn key(did: &str) -> [u8; 16] {
    let digest = sha256::digest(did.as_bytes());
    std::array::from_fn(|at| digest[at])
}
