//! Verifies a whole repository by the stages that any caller has, all timed.

use std::hint::black_box;

use atproto::repo::Repository;
use crypto::{KeyError, PublicKey};
use protocol::{BoxError, Counts, Loaded, Owner, Parts, Proof, StageClock, Work, checks};
use verify::Verified;
use verify::repository::{self, Options, RepositoryRejection, WholeRepository};

use super::Variants;

pub(super) fn variants() -> Variants {
    ["total", "total/rebuild"].map(|name| (name.to_owned(), check_names())).into()
}

pub(super) fn check_names() -> Vec<&'static str> {
    checks::names(&checks::of_task("repo"))
}

/// Loads `variant`; `None` if it is unknown.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, BoxError> {
    let [car, owner] = files else { return Err("not a CAR and its owner".into()) };
    let owner: Owner = serde_json::from_slice(owner)?;
    let has_rebuild = match variant {
        "total" => false,
        "total/rebuild" => true,
        _ => return Ok(None),
    };
    let key = key(&owner)?;
    Ok(Some(Box::new(Export { car, owner, key, has_rebuild })))
}

/// The reference counts of an archive; of one that is rejected, the rule that it breaks.
pub(crate) fn counts(car: &[u8], owner: &Owner) -> Result<Counts, KeyError> {
    let key = key(owner)?;
    let whole = repository::verify(car, Some(&owner.did), &key, &Options::default());
    Ok(whole.map_or_else(|rejection| rejected(&rejection), |whole| content(&whole)))
}

/// The owner's signing key.
pub(super) fn key(owner: &Owner) -> Result<PublicKey, KeyError> {
    PublicKey::from_did_key(&owner.signing_key)
}

fn rejected(rejection: &RepositoryRejection) -> Counts {
    let counts = Counts::from_iter([("repositories", 1), ("valid", 0)]);
    counts.with("root", format!("{}: {rejection}", rejection.code()))
}

fn content(repository: &Repository<'_>) -> Counts {
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

struct Export<'f> {
    car: &'f [u8],
    owner: Owner,
    key: PublicKey,
    has_rebuild: bool,
}

impl<'f> Export<'f> {
    /// All stages. Records are validated while they are hashed, so their time is in `parse`, and so is the
    /// walk of an archive in streamable order; records that this left undecided are read again, which counts as `walk`.
    fn verify(
        &self,
        clock: &mut StageClock,
    ) -> Result<Verified<WholeRepository<'f>>, RepositoryRejection> {
        let parsed = repository::parse(self.car, &Options::default())?;
        clock.lap("parse");
        let signed = parsed.verify_signature(Some(&self.owner.did), &self.key)?;
        clock.lap("signature");
        let walked = signed.walk()?;
        clock.lap("walk");
        if self.has_rebuild {
            walked.rebuild()?;
            clock.lap("rebuild");
        }
        let whole = walked.verify_records()?;
        clock.lap("walk");
        Ok(whole)
    }
}

impl Export<'_> {
    /// The counts of a verified repository; records that break a rule of their own are counted separately.
    fn content(&self, whole: &WholeRepository<'_>) -> Counts {
        let mut counts = content(whole);
        if self.has_rebuild {
            // The rebuilt root was compared with the commit's.
            counts = counts.with("rebuilt_root", whole.commit().data.to_string());
        }
        match whole.invalid_records().records {
            0 => counts,
            invalid => counts.with("invalid_records", invalid),
        }
    }
}

impl Work for Export<'_> {
    fn loaded(&self) -> Loaded {
        Loaded::of([self.car.len()])
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let counts = match self.verify(&mut StageClock::start()) {
            Err(rejection) => rejected(&rejection),
            Ok(whole) => self.content(&whole),
        };
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let mut clock = StageClock::start();
        let _ = black_box(self.verify(&mut clock));
        Ok(clock.into_parts())
    }
}
