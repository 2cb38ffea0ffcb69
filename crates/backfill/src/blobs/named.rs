//! The blobs that the records of an account name.

use std::collections::BTreeMap;
use std::sync::Arc;

use archive::{Archive, ArchiveError};
use atproto::blob::blobs_of_record;
use codec::Cid;

/// The blobs that the records of an account name.
#[derive(Debug, Default)]
pub(super) struct NamedBlobs {
    /// The path of the first record that names each blob, by the CID of the blob.
    pub(super) records: BTreeMap<Cid, Arc<str>>,
    /// Whether there are more than [`MAX_NAMED`], which are left out.
    pub(super) has_more: bool,
}

/// The blobs of an account; `None` if the archive does not have its whole repository.
pub(super) async fn named_blobs(
    archive: &Archive,
    did: &str,
) -> Result<Option<NamedBlobs>, ArchiveError> {
    let Some(repository) = archive.newest_repository(did, []).await? else { return Ok(None) };
    let mut records = repository.blocks().await?;
    let mut named = NamedBlobs::default();
    while let Some((path, record)) = records.next_record().await? {
        let path: Arc<str> = path.into();
        // A record that is not canonical is flagged where records are read; it names nothing.
        for blob in blobs_of_record(&record).unwrap_or_default() {
            if named.records.len() == MAX_NAMED && !named.records.contains_key(&blob.cid) {
                named.has_more = true;
                return Ok(Some(named));
            }
            named.records.entry(blob.cid).or_insert_with(|| path.clone());
        }
    }
    Ok(Some(named))
}

/// Number of blobs of an account that are considered.
pub(super) const MAX_NAMED: usize = 1_000_000;
