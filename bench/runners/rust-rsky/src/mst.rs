//! The trees of rsky-repo: `add` returns a new tree that shares unchanged nodes with the previous one. It has no call for
//! many records at once.

use std::sync::Arc;

use ipld_core::cid::Cid;
use rsky_repo::mst::MST;
use rsky_repo::storage::memory_blockstore::MemoryBlockstore;
use runner_shell::mst::{Peer, Seen, Step, VARIANTS};
use runner_shell::{BoxError, Variant, poll_once};
use tokio::sync::RwLock;

pub(crate) struct Rsky;

impl Peer for Rsky {
    type Cid = Cid;
    type Tree = MST;

    const VARIANTS: &'static [Variant] = &VARIANTS;

    fn start() -> Self {
        Rsky
    }

    fn cid(bytes: &[u8; 36]) -> Result<Cid, BoxError> {
        Ok(Cid::try_from(bytes.as_slice())?)
    }

    fn digest(cid: &Cid) -> &[u8] {
        cid.hash().digest()
    }

    fn insert(&self, records: &[(String, Cid)]) -> Result<MST, BoxError> {
        poll_once(async {
            let mut tree = empty().await?;
            for (key, cid) in records {
                tree = tree.add(key, *cid, None).await?;
            }
            Ok(tree)
        })?
    }

    fn root(&self, tree: &mut MST) -> Result<Cid, BoxError> {
        Ok(poll_once(tree.get_pointer())??)
    }

    fn get(&self, tree: &mut MST, key: &str) -> Result<Option<Cid>, BoxError> {
        Ok(poll_once(tree.get(&key.to_owned()))??)
    }

    fn run(&self, steps: &[Step<Cid>], mut seen: impl FnMut(Seen<Cid>)) -> Result<(), BoxError> {
        poll_once(async {
            let mut tree = empty().await?;
            for step in steps {
                match step {
                    Step::Insert(key, cid) => tree = tree.add(key, *cid, None).await?,
                    Step::Update(key, cid) => tree = tree.update(key, *cid).await?,
                    Step::Delete(key) => tree = tree.delete(key).await?,
                    Step::Lookup(key) => {
                        tree.get(key).await?.into_iter().for_each(|cid| seen(Seen::Record(cid)));
                    }
                    Step::Root => seen(Seen::Root(tree.get_pointer().await?)),
                }
            }
            Ok(())
        })?
    }
}

async fn empty() -> Result<MST, BoxError> {
    let store = Arc::new(RwLock::new(MemoryBlockstore::new(None).await?));
    Ok(MST::create(store, None, None).await?)
}
