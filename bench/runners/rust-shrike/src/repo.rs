//! Verifies a repository as `Repo::load_car` does, over the same public parts: the CAR is split and its blocks
//! hashed, the commit decoded and its signature verified, and the tree walked with every record looked up.
//!
//! `load_car`, the call of its documentation, does all but the signature in one call and copies the blocks that it
//! needs into a store; on one core of an EPYC that makes it half as long again. So the row `total` goes without,
//! and `total/load-car` shows the call.

use std::collections::HashMap;
use std::fmt::Display;

use runner_shell::repo::{Owner, Peer, Sink, Stage};
use runner_shell::{BoxError, Variant, hostile};
use shrike::car::SliceReader;
use shrike::cbor::Cid;
use shrike::crypto::{VerifyingKey, parse_did_key};
use shrike::mst::{DetachedTree, MstError};
use shrike::repo::{Commit, Repo};

pub(crate) struct Shrike {
    did: String,
    key: Box<dyn VerifyingKey>,
    method: Method,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Parts,
    Rebuild,
    LoadCar,
}

impl Peer for Shrike {
    const VARIANTS: &'static [Variant] = &[
        Variant { name: "total", checks: CHECKS },
        Variant { name: "total/rebuild", checks: CHECKS },
        Variant { name: "total/load-car", checks: CHECKS },
    ];

    fn start(variant: &str, owner: &Owner) -> Result<Self, BoxError> {
        let key = parse_did_key(&owner.signing_key)?;
        let method = match variant {
            "total/rebuild" => Method::Rebuild,
            "total/load-car" => Method::LoadCar,
            _ => Method::Parts,
        };
        Ok(Shrike { did: owner.did.clone(), key, method })
    }

    fn verify<S: Sink>(&mut self, car: &[u8], sink: &mut S) -> Result<(), BoxError> {
        if self.method == Method::LoadCar {
            return self.load(car, sink);
        }
        let (root, blocks) = parse(car, sink)?;
        sink.ended(Stage::Parse);

        let block = blocks.get(&root).ok_or("the commit's block is in the CAR")?;
        let commit = Commit::from_cbor(block)?;
        authenticate(&commit, &self.did, &*self.key)?;
        sink.valid();
        sink.ended(Stage::Signature);

        let mut records = Vec::new();
        DetachedTree::load(commit.data).walk(&blocks, |key, cid| {
            sink.record(blocks.get(&cid).ok_or_else(|| absent(cid))?);
            if self.method == Method::Rebuild {
                records.push((key.to_owned(), cid));
            }
            Ok(())
        })?;
        sink.root(&commit.data);
        sink.ended(Stage::Walk);

        if self.method == Method::Rebuild {
            rebuild(&records, &commit, sink)?;
        }
        Ok(())
    }
}

impl Shrike {
    /// By the documented call, which cannot be divided: the stage `parse` includes the walk.
    fn load(&self, car: &[u8], sink: &mut impl Sink) -> Result<(), BoxError> {
        let repo = Repo::load_car(car)?;
        sink.ended(Stage::Parse);
        let commit = repo.head().ok_or("a repository has a commit")?;
        authenticate(commit, &self.did, &*self.key)?;
        sink.valid();
        sink.root(&commit.data);
        sink.ended(Stage::Signature);
        if sink.is_counting() {
            let (_, blocks) = parse(car, sink)?;
            DetachedTree::load(commit.data).walk(&blocks, |_, cid| {
                sink.record(blocks.get(&cid).ok_or_else(|| absent(cid))?);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// No `mst-layer`, `mst-prefix` or `mst-shape`: a node is accepted if its keys increase
/// and are between the adjacent keys. No `record-path`: a collection need not be an NSID.
const CHECKS: &[&str] = &[
    "cid-sha256",
    "key-order",
    "duplicate-keys",
    "minimal-heads",
    "utf8",
    "indefinite-lengths",
    "only-tag-42",
    "link-shape",
    "trailing-bytes",
    "depth-bound",
    "low-s",
    "mst-order",
    "mst-once",
    "complete",
];

type Blocks<'a> = HashMap<Cid, &'a [u8], foldhash::fast::RandomState>;

fn parse<'a>(car: &'a [u8], sink: &mut impl Sink) -> Result<(Cid, Blocks<'a>), BoxError> {
    let reader = SliceReader::new(car)?;
    let [root] = *reader.roots() else { return Err("a repository has one root".into()) };
    let (mut blocks, mut count) = (Blocks::default(), 0);
    for block in reader {
        let block = block?;
        if Cid::compute(block.cid.codec(), block.data) != block.cid {
            return Err("a block hashes to its CID".into());
        }
        blocks.insert(block.cid, block.data);
        count += 1;
    }
    sink.blocks(count);
    Ok((root, blocks))
}

fn authenticate(commit: &Commit, did: &str, key: &dyn VerifyingKey) -> Result<(), BoxError> {
    if commit.did.as_str() != did {
        return Err(format!("the commit is that of {}", commit.did.as_str()).into());
    }
    Ok(commit.verify(key)?)
}

#[cold]
fn absent(cid: impl Display) -> MstError {
    MstError::BlockNotFound(cid.to_string())
}

fn rebuild(
    records: &[(String, Cid)],
    commit: &Commit,
    sink: &mut impl Sink,
) -> Result<(), BoxError> {
    let root = crate::mst::insert(records)?.flush()?.root;
    if root != commit.data {
        return Err("the tree that was built anew has another root".into());
    }
    sink.rebuilt_root(&root);
    sink.ended(Stage::Rebuild);
    Ok(())
}

/// The calls that the documentation of `Repo::load_car` shows.
pub(crate) struct Import;

impl hostile::Peer for Import {
    const VARIANTS: &'static [Variant] = &[
        Variant { name: "repo", checks: CHECKS },
        Variant { name: "frames", checks: crate::commit::BY_DEFAULT },
    ];

    fn verify(car: &[u8], owner: &Owner) -> Result<(), BoxError> {
        let repo = Repo::load_car(car)?;
        let commit = repo.head().ok_or("a repository has a commit")?;
        authenticate(commit, &owner.did, &*parse_did_key(&owner.signing_key)?)
    }
}
