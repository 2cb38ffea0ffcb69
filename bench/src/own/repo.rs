//! How do we prove a whole repository when measured? Through the stages that any caller has, each
//! timed.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use wireproof::crypto::PublicKey;
use wireproof::verify::Verified;
use wireproof::verify::repository::{self, Options, RepositoryRejection, WholeRepository};

use super::Work;
use crate::corpora::Owner;
use crate::corpora::repositories;
use crate::counts::Counts;
use crate::protocol::Loaded;

/// The variants by name, each with the checks that its measured path makes.
pub(super) fn variants() -> impl Iterator<Item = (String, &'static [&'static str])> {
    ["total", "total/rebuild"].into_iter().map(|name| (name.to_owned(), CHECKS))
}

/// Makes ready for `variant`; `None` if there is no such one.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, String> {
    let [car, owner] = files else { return Err("not an export and its owner".to_owned()) };
    let owner: Owner = serde_json::from_slice(owner).map_err(|error| error.to_string())?;
    let is_rebuilt = match variant {
        "total" => false,
        "total/rebuild" => true,
        _ => return Ok(None),
    };
    let key = repositories::key(&owner).map_err(|error| error.to_string())?;
    Ok(Some(Box::new(Export { car, owner, key, is_rebuilt, stages_ns: BTreeMap::new() })))
}

struct Export<'f> {
    car: &'f [u8],
    owner: Owner,
    key: PublicKey,
    is_rebuilt: bool,
    /// Of the last pass.
    stages_ns: BTreeMap<String, u64>,
}

impl<'f> Export<'f> {
    /// All stages. Records are read while they are hashed, so their time is in the parse; what that left in
    /// doubt is read again, which is counted with the walk.
    fn prove_whole(&mut self) -> Result<Verified<WholeRepository<'f>>, RepositoryRejection> {
        let mut clock = Clock::start(&mut self.stages_ns);
        let parsed = repository::parse(self.car, &Options::default())?;
        clock.lap("parse");
        let signed = parsed.verify_signature(Some(&self.owner.did), &self.key)?;
        clock.lap("signature");
        let walked = signed.walk()?;
        clock.lap("walk");
        if self.is_rebuilt {
            walked.rebuild()?;
            clock.lap("rebuild");
        }
        let whole = walked.verify_records()?;
        clock.lap("walk");
        Ok(whole)
    }
}

impl Work for Export<'_> {
    fn loaded(&self) -> Loaded {
        Loaded { units: 1, bytes: self.car.len() as u64 }
    }

    fn prove(&mut self) -> Counts {
        match self.prove_whole() {
            Err(rejection) => repositories::refused(&rejection),
            Ok(whole) if !self.is_rebuilt => repositories::content(&whole),
            Ok(whole) => {
                // It was compared with what the commit says.
                let root = whole.commit().data.to_string();
                repositories::content(&whole).with("rebuilt_root", root)
            }
        }
    }

    fn pass(&mut self) {
        let _ = black_box(self.prove_whole());
    }

    fn stages_ns(&self) -> BTreeMap<String, u64> {
        self.stages_ns.clone()
    }
}

/// Notes how long each stage took.
struct Clock<'s> {
    since: Instant,
    stages_ns: &'s mut BTreeMap<String, u64>,
}

impl<'s> Clock<'s> {
    fn start(stages_ns: &'s mut BTreeMap<String, u64>) -> Self {
        stages_ns.clear();
        Self { since: Instant::now(), stages_ns }
    }

    /// What lies behind was part of the stage `name`.
    fn lap(&mut self, name: &str) {
        let now = Instant::now();
        let ns = (now - self.since).as_nanos() as u64;
        *self.stages_ns.entry(name.to_owned()).or_default() += ns;
        self.since = now;
    }
}

pub(super) const CHECKS: &[&str] = &[
    "cid-sha256",
    "key-order",
    "duplicate-keys",
    "minimal-heads",
    "utf8",
    "indefinite-lengths",
    "float-canonical",
    "only-tag-42",
    "link-shape",
    "trailing-bytes",
    "depth-bound",
    "low-s",
    "mst-order",
    "mst-layer",
    "mst-prefix",
    "mst-shape",
    "mst-once",
    "complete",
    "record-path",
    "record-cbor",
];
