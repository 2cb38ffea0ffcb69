//! jacquard's trees: `add` returns a new tree that shares unchanged nodes with the previous one; `batch` calls it
//! for every operation, after looking the key up.

use std::sync::Arc;

use ipld_core::cid::Cid;
use jacquard_repo::{MemoryBlockStore, Mst};
use runner_shell::mst::{Peer, Seen, Step, VARIANTS};
use runner_shell::{BoxError, Variant, poll_once};

use crate::shared::Runtime;

pub(crate) struct Jacquard(Runtime);

pub(crate) type Tree = Mst<MemoryBlockStore>;

impl Peer for Jacquard {
    type Cid = Cid;
    type Tree = Tree;

    const VARIANTS: &'static [Variant] = &VARIANTS;

    fn start() -> Self {
        Jacquard(Runtime::start())
    }

    fn cid(bytes: &[u8; 36]) -> Result<Cid, BoxError> {
        Ok(Cid::try_from(bytes.as_slice())?)
    }

    fn digest(cid: &Cid) -> &[u8] {
        cid.hash().digest()
    }

    fn insert(&self, records: &[(String, Cid)]) -> Result<Tree, BoxError> {
        self.0.run(insert(records.iter().map(|(key, cid)| (key.as_str(), *cid))))
    }

    fn root(&self, tree: &mut Tree) -> Result<Cid, BoxError> {
        Ok(self.0.run(tree.root())?)
    }

    fn get(&self, tree: &mut Tree, key: &str) -> Result<Option<Cid>, BoxError> {
        Ok(poll_once(tree.get(key))??)
    }

    fn run(&self, steps: &[Step<Cid>], mut seen: impl FnMut(Seen<Cid>)) -> Result<(), BoxError> {
        self.0.run(async {
            let mut tree = Mst::new(Arc::new(MemoryBlockStore::new()));
            for step in steps {
                match step {
                    Step::Insert(key, cid) => tree = tree.add(key, *cid).await?,
                    Step::Update(key, cid) => tree = tree.update(key, *cid).await?,
                    Step::Delete(key) => tree = tree.delete(key).await?,
                    Step::Lookup(key) => {
                        tree.get(key).await?.into_iter().for_each(|cid| seen(Seen::Record(cid)));
                    }
                    Step::Root => seen(Seen::Root(tree.root().await?)),
                }
            }
            Ok(())
        })
    }
}

pub(crate) async fn insert<'a>(
    records: impl Iterator<Item = (&'a str, Cid)>,
) -> Result<Tree, BoxError> {
    let mut tree = Mst::new(Arc::new(MemoryBlockStore::new()));
    for (key, cid) in records {
        tree = tree.add(key, cid).await?;
    }
    Ok(tree)
}
