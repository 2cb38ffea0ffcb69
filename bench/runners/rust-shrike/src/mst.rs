//! shrike's trees: `DetachedTree`, which returns its new blocks; `Tree` is the same around a store, into which it
//! copies them.
//!
//! It has no call for many records at once. A tree owns the text of its keys and takes it as a `String`, so a copy
//! of every key is made in the measured time.

use runner_shell::mst::{Peer, Seen, Step, VARIANTS};
use runner_shell::{BoxError, Variant};
use shrike::cbor::Cid;
use shrike::mst::{DetachedTree, NoBlocks};

pub(crate) struct Shrike;

impl Peer for Shrike {
    type Cid = Cid;
    type Tree = DetachedTree;

    const VARIANTS: &'static [Variant] = &VARIANTS;

    fn start() -> Self {
        Shrike
    }

    fn cid(bytes: &[u8; 36]) -> Result<Cid, BoxError> {
        Ok(Cid::from_bytes(bytes)?)
    }

    fn digest(cid: &Cid) -> &[u8] {
        cid.hash()
    }

    fn insert(&self, records: &[(String, Cid)]) -> Result<DetachedTree, BoxError> {
        insert(records)
    }

    fn root(&self, tree: &mut DetachedTree) -> Result<Cid, BoxError> {
        Ok(tree.flush()?.root)
    }

    fn get(&self, tree: &mut DetachedTree, key: &str) -> Result<Option<Cid>, BoxError> {
        Ok(tree.get(&NoBlocks, key)?)
    }

    fn run(&self, steps: &[Step<Cid>], mut seen: impl FnMut(Seen<Cid>)) -> Result<(), BoxError> {
        let mut tree = DetachedTree::new();
        for step in steps {
            match step {
                Step::Insert(key, cid) | Step::Update(key, cid) => {
                    tree.insert(&NoBlocks, key.clone(), *cid)?;
                }
                Step::Delete(key) => {
                    tree.remove(&NoBlocks, key)?;
                }
                Step::Lookup(key) => {
                    tree.get(&NoBlocks, key)?.into_iter().for_each(|cid| seen(Seen::Record(cid)));
                }
                Step::Root => seen(Seen::Root(tree.flush()?.root)),
            }
        }
        Ok(())
    }
}

pub(crate) fn insert(records: &[(String, Cid)]) -> Result<DetachedTree, BoxError> {
    let mut tree = DetachedTree::new();
    for (key, cid) in records {
        tree.insert(&NoBlocks, key.clone(), *cid)?;
    }
    Ok(tree)
}
