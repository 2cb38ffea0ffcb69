//! Is this export whole and its owner's, and how much is in it? The unit of the task `repo`.

use wireproof::atproto::repo::Repository;
use wireproof::crypto::{KeyError, PublicKey};
use wireproof::verify::repository::{self, Options, RepositoryRejection};

use super::beside::Owner;
use crate::counts::Counts;

/// What every peer must find in an export; of one that is refused, the rule that it breaks.
pub(crate) fn counts(car: &[u8], owner: &Owner) -> Result<Counts, KeyError> {
    let key = key(owner)?;
    let whole = repository::verify(car, Some(&owner.did), &key, &Options::default());
    Ok(whole.map_or_else(|rejection| refused(&rejection), |whole| content(&whole)))
}

/// The counts of an export that is refused.
pub(crate) fn refused(rejection: &RepositoryRejection) -> Counts {
    let counts = Counts::from_iter([("repositories", 1), ("valid", 0)]);
    counts.with("root", format!("{}: {rejection}", rejection.code()))
}

/// The key that is to have signed.
pub(crate) fn key(owner: &Owner) -> Result<PublicKey, KeyError> {
    PublicKey::from_did_key(&owner.signing_key)
}

/// What is in a repository that was proved.
pub(crate) fn content(repository: &Repository<'_>) -> Counts {
    let (mut records, mut record_bytes) = (0, 0);
    for record in repository.records().flatten() {
        records += 1;
        record_bytes += record.block.len() as u64;
    }
    let counts = [
        ("repositories", 1),
        ("blocks", repository.archive().block_count()),
        ("records", records),
        ("record_bytes", record_bytes),
        ("valid", 1),
    ];
    Counts::from_iter(counts).with("root", repository.commit().data.to_string())
}
