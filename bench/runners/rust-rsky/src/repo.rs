//! Verifies a repository by `verify_repo` of rsky-repo, after its CAR reader, which hashes no block and accepts a
//! truncated CAR.
//!
//! The stages inside `verify_repo` cannot be separated: the stage `signature` is the whole call, and `walk` reads
//! every record's block. (rsky's relay verifies commits with other code, which is not published.)

use ipld_core::cid::Cid;
use rsky_repo::block_map::BlockMap;
use rsky_repo::car::{CarWithRoot, read_stream_car_with_root};
use rsky_repo::sync::consumer::verify_repo;
use rsky_repo::types::VerifiedRepo;
use runner_shell::repo::{Owner, Peer, Sink, Stage};
use runner_shell::{BoxError, Variant, hostile, poll_once};
use serde::Deserialize;

pub(crate) struct Rsky(Owner);

impl Peer for Rsky {
    const VARIANTS: &'static [Variant] = &[Variant { name: "total", checks: CHECKS }];

    fn start(_: &str, owner: &Owner) -> Result<Self, BoxError> {
        Ok(Rsky(owner.clone()))
    }

    fn verify<S: Sink>(&mut self, car: &[u8], sink: &mut S) -> Result<(), BoxError> {
        let CarWithRoot { root, mut blocks } = poll_once(read_stream_car_with_root(car))??;
        sink.blocks(blocks.size());
        sink.ended(Stage::Parse);

        let verified = verified(&mut blocks, root, &self.0)?;
        sink.valid();
        sink.ended(Stage::Signature);

        for record in &verified.creates {
            sink.record(blocks.get(record.cid).ok_or("a record's block is in the CAR")?);
        }
        sink.root(&data(&blocks, root)?);
        sink.ended(Stage::Walk);
        Ok(())
    }
}

/// No `record-path`: a collection need not be an NSID. The tree is not checked: keys may be in any node.
const CHECKS: &[&str] = &["low-s", "complete"];

fn verified(blocks: &mut BlockMap, root: Cid, owner: &Owner) -> Result<VerifiedRepo, BoxError> {
    let (did, key) = (Some(&owner.did), Some(&owner.signing_key));
    Ok(poll_once(verify_repo(blocks, root, did, key, None))??)
}

/// The root of the tree, which `verify_repo` keeps to itself.
fn data(blocks: &BlockMap, root: Cid) -> Result<Cid, BoxError> {
    #[derive(Deserialize)]
    struct Commit {
        data: Cid,
    }
    let commit: Commit = serde_ipld_dagcbor::from_slice(
        blocks.get(root).ok_or("the commit's block is in the CAR")?,
    )?;
    Ok(commit.data)
}

impl hostile::Peer for Rsky {
    const VARIANTS: &'static [Variant] = &[Variant { name: "repo", checks: CHECKS }];

    fn verify(car: &[u8], owner: &Owner) -> Result<(), BoxError> {
        let CarWithRoot { root, mut blocks } = poll_once(read_stream_car_with_root(car))??;
        verified(&mut blocks, root, owner)?;
        Ok(())
    }
}
