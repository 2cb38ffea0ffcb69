//! The stages of a repository's proof.

use wireproof::verify::Verified;
use wireproof::verify::repository::{self, Options, RepositoryRejection, WholeRepository, parse};

use super::signer::{NoKey, Signer};
use crate::stage::{Stage, Stages, Watch};

/// Why there is no proof.
pub(super) enum Stop {
    Refused(RepositoryRejection),
    /// No key of this account was given.
    NoKey(String),
}

impl From<RepositoryRejection> for Stop {
    fn from(rejection: RepositoryRejection) -> Self {
        Self::Refused(rejection)
    }
}

/// Goes through the stages and notes how long each takes, up to the first that fails.
pub(super) fn prove<'a>(
    archive: &'a [u8],
    signer: &Signer,
    rebuild: bool,
    stages: &mut Stages,
) -> Result<Verified<WholeRepository<'a>>, Stop> {
    let mut watch = Watch::start(stages);
    let parsed = parse(archive, &Options::default())?;
    watch.ended(Stage::Parse);
    let did = parsed.repository().commit().did;
    let signed = match signer.key_of(did).map_err(|NoKey| Stop::NoKey(did.to_owned()))? {
        Some(key) => parsed.verify_signature(signer.did(), &key)?,
        None => parsed.without_signature(),
    };
    watch.ended(Stage::Signature);
    let walked = signed.walk()?;
    watch.ended(Stage::Tree);
    if rebuild {
        walked.rebuild()?;
        watch.ended(Stage::Rebuild);
    }
    let whole = walked.verify_records()?;
    watch.ended(Stage::Records);
    Ok(whole)
}

/// The faults to tell: `first`, or all of which it is one.
pub(super) fn faults(
    archive: &[u8],
    signer: &Signer,
    first: RepositoryRejection,
    all: bool,
) -> Vec<RepositoryRejection> {
    if !all {
        return vec![first];
    }
    let options = Options::default();
    let parsed = parse(archive, &options).ok();
    let key =
        parsed.and_then(|parsed| signer.key_of(parsed.repository().commit().did).ok().flatten());
    let found =
        repository::collect_rejections(archive, signer.did(), key.as_ref(), &options, MAX_FAULTS);
    if found.is_empty() { vec![first] } else { found }
}

/// Faults beyond which more would not help anybody.
const MAX_FAULTS: usize = 10_000;
