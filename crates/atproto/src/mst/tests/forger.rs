//! Trees that break a rule, with right hashes.

use std::collections::BTreeMap;

use codec::Cid;
use codec::cid::Codec;

use super::support::*;
use crate::mst::inversion::{InversionFault, invert};
use crate::mst::reference::encode_node;
use crate::mst::*;

/// Forged nodes: hashes are right, the rest need not be.
#[derive(Default)]
pub(super) struct Forger(pub(super) BTreeMap<Cid, Vec<u8>>);

impl Forger {
    pub(super) fn node(&mut self, left: Option<Cid>, entries: &[(&[u8], Option<Cid>)]) -> Cid {
        let value = value(0);
        let entries: Vec<_> = entries.iter().map(|(key, right)| (*key, &value, *right)).collect();
        let block = encode_node(left.as_ref(), &entries);
        let cid = Cid::of(Codec::DagCbor, &block);
        self.0.insert(cid, block);
        cid
    }

    pub(super) fn source(&self) -> BTreeMap<Cid, &[u8]> {
        self.0.iter().map(|(cid, block)| (*cid, &block[..])).collect()
    }

    /// The faults found by a canonical load, an iteration and the inversion of a create at `key`.
    pub(super) fn faults(&self, root: Cid, key: &[u8]) -> [Option<TreeFault>; 3] {
        let source = self.source();
        let canonical = Tree::load_canonical(root, &source, &TreeLimits::default());
        let walked = Tree::load_partial(root, &source).iter().find_map(Result::err);
        let record = Some(value(0));
        let inverted = invert(root, &source, &[undo(key, &record, &None)]).err().map(|error| {
            match error.fault {
                InversionFault::Tree(error) => error.fault,
                other => panic!("{other}"),
            }
        });
        [canonical.err().map(|e| e.fault), walked.map(|e| e.fault), inverted]
    }
}

/// Ascending keys of these heights, for forged trees.
pub(super) fn forged_keys<const N: usize>(heights: [u8; N]) -> [Vec<u8>; N] {
    keys_of_heights(&heights).try_into().expect("as many keys as heights")
}
