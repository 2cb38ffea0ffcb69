//! The blobs that the records of an account name.

use std::collections::BTreeMap;

use archive::{Archive, ArchiveError};
use atproto::blob::blobs_of_record;
use codec::Cid;

/// The first record that names each blob of an account, by the CID of the blob; `None` if the archive does not have the whole
/// repository of the account.
pub(super) async fn named_blobs(
    archive: &Archive,
    did: &str,
) -> Result<Option<BTreeMap<Cid, String>>, ArchiveError> {
    let Some(repository) = archive.newest_repository(did, []).await? else { return Ok(None) };
    let mut records = repository.blocks().await?;
    let mut named = BTreeMap::new();
    while let Some((path, record)) = records.next_record().await? {
        // A record that is not canonical is flagged where records are read; it names nothing.
        for blob in blobs_of_record(&record).unwrap_or_default() {
            named.entry(blob.cid).or_insert_with(|| path.clone());
        }
    }
    Ok(Some(named))
}
