//! Verifies a repository with several calls of jacquard, which has no single call: `parse_car_bytes`, which never
//! hashes a block, `Commit::verify`, and the tree, whose leaves are listed in tree order.

use std::sync::Arc;

use ipld_core::cid::Cid;
use jacquard_common::types::crypto::PublicKey;
use jacquard_repo::car::parse_car_bytes;
use jacquard_repo::{BlockStore, MemoryBlockStore, Repository};
use runner_shell::repo::{Owner, Peer, Sink, Stage};
use runner_shell::{BoxError, Variant, hostile};

use crate::shared::{Runtime, parse_key};

pub(crate) struct Jacquard {
    runtime: Runtime,
    did: String,
    key: PublicKey<'static>,
    rebuild: bool,
}

impl Peer for Jacquard {
    const VARIANTS: &'static [Variant] = &[
        Variant { name: "total", checks: CHECKS },
        Variant { name: "total/rebuild", checks: REBUILD_CHECKS },
    ];

    fn start(variant: &str, owner: &Owner) -> Result<Self, BoxError> {
        let (did, key) = (owner.did.clone(), parse_key(&owner.signing_key)?);
        let rebuild = variant == "total/rebuild";
        Ok(Jacquard { runtime: Runtime::start(), did, key, rebuild })
    }

    fn verify<S: Sink>(&mut self, car: &[u8], sink: &mut S) -> Result<(), BoxError> {
        self.runtime.run(async {
            let (store, root) = parse(car).await?;
            sink.blocks(store.len());
            sink.ended(Stage::Parse);

            let repository = authentic(&store, &root, &self.did, &self.key).await?;
            sink.valid();
            sink.ended(Stage::Signature);

            let records = repository.mst().leaves_sequential().await?;
            for (_, cid) in &records {
                sink.record(&store.get(cid).await?.ok_or("a record's block is in the CAR")?);
            }
            let data = repository.current_commit().data();
            sink.root(data);
            sink.ended(Stage::Walk);

            if self.rebuild {
                let records = records.iter().map(|(key, cid)| (&**key, *cid));
                rebuild(records, data, sink).await?;
            }
            Ok(())
        })
    }
}

/// No `low-s`: k256 refuses a high s by itself, p256 does not. No `indefinite-lengths`: the suffix of a key
/// may have one. No `duplicate-keys`, `utf8` and `only-tag-42`: fields of nodes that it does not know are skipped. The tree is
/// not checked: keys may be in any node.
const CHECKS: &[&str] = &["trailing-bytes", "depth-bound", "complete"];

/// A tree that is built again has other nodes than one with unknown fields.
const REBUILD_CHECKS: &[&str] =
    &["duplicate-keys", "utf8", "only-tag-42", "trailing-bytes", "depth-bound", "complete"];

type Store = Arc<MemoryBlockStore>;

async fn parse(car: &[u8]) -> Result<(Store, Cid), BoxError> {
    let parsed = parse_car_bytes(car).await?;
    Ok((Arc::new(MemoryBlockStore::new_from_blocks(parsed.blocks)), parsed.root))
}

type Loaded = Repository<String, MemoryBlockStore>;

async fn authentic(
    store: &Store,
    root: &Cid,
    did: &str,
    key: &PublicKey<'_>,
) -> Result<Loaded, BoxError> {
    let repository = Repository::<String, _>::from_commit(Arc::clone(store), root).await?;
    if repository.did().as_ref() != did {
        return Err(format!("the commit is that of {}", repository.did()).into());
    }
    repository.current_commit().verify(key)?;
    Ok(repository)
}

async fn rebuild<'a>(
    records: impl Iterator<Item = (&'a str, Cid)>,
    data: &Cid,
    sink: &mut impl Sink,
) -> Result<(), BoxError> {
    let root = crate::mst::insert(records).await?.root().await?;
    if root != *data {
        return Err("the tree that was built anew has another root".into());
    }
    sink.rebuilt_root(&root);
    sink.ended(Stage::Rebuild);
    Ok(())
}

/// The same, up to the list of all records, without reading their blocks.
pub(crate) struct Listing;

impl hostile::Peer for Listing {
    const VARIANTS: &'static [Variant] = &[
        Variant { name: "repo", checks: CHECKS.split_last().unwrap().1 },
        Variant { name: "frames", checks: crate::commit::CHECKS },
    ];

    fn verify(car: &[u8], owner: &Owner) -> Result<(), BoxError> {
        let key = parse_key(&owner.signing_key)?;
        Runtime::start().run(async {
            let (store, root) = parse(car).await?;
            let repository = authentic(&store, &root, &owner.did, &key).await?;
            std::hint::black_box(repository.mst().leaves().await?);
            Ok(())
        })
    }
}
