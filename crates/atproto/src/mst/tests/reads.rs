//! Which nodes an operation reads: a partial tree needs no others.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use codec::Cid;

use super::support::*;
use crate::mst::reference::Built;
use crate::mst::*;

/// A source that records the reads.
struct Recording<'b> {
    blocks: BTreeMap<Cid, &'b [u8]>,
    read: RefCell<BTreeSet<Cid>>,
}

impl<'b> Recording<'b> {
    fn of(built: &'b Built) -> Self {
        Self { blocks: blocks_of(built), read: RefCell::default() }
    }
}

impl<'b> BlockSource<'b> for Recording<'b> {
    fn block(&self, cid: &Cid) -> Option<&'b [u8]> {
        self.read.borrow_mut().insert(*cid);
        self.blocks.block(cid)
    }
}

fn records_of(keys: &[Vec<u8>]) -> Records {
    keys.iter().map(|key| (key.clone(), value(0))).collect()
}

#[test]
fn a_lookup_reads_the_nodes_on_its_path_whatever_was_looked_up_before() {
    let keys = keys_of_heights(&[0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0]);
    let (there, absent): (Vec<_>, Vec<_>) =
        keys.iter().cloned().enumerate().partition(|(at, _)| at % 4 != 2);
    let keys_of = |numbered: Vec<(usize, Vec<u8>)>| -> Vec<Vec<u8>> {
        numbered.into_iter().map(|(_, key)| key).collect()
    };
    let built = build(&records_of(&keys_of(there)));
    let absent = keys_of(absent);
    for first in &absent {
        for second in &keys {
            let source = Recording::of(&built);
            let mut tree = Tree::load_partial(built.root(), &source);
            assert_eq!(tree.get(first), Ok(None));
            assert_eq!(tree.get(second).unwrap().is_none(), absent.contains(second));
            let paths = [first, second].into_iter().flat_map(|key| built.path(key));
            assert_eq!(*source.read.borrow(), paths.collect());
        }
    }
}

#[test]
fn a_removal_does_not_read_a_subtree_that_stays_as_it_is() {
    // The heights of the keys, the removed one, and the number of nodes that are read.
    for (heights, removed, nodes) in [
        // The only child next to the key moves to the other side of it.
        (&[0, 1, 1][..], 1, 1),
        (&[1, 1, 0], 1, 1),
        (&[2, 0, 1], 2, 2),
        // It becomes the root; its own children stay.
        (&[0, 1, 2], 2, 2),
        (&[2, 1, 0], 0, 2),
        // Of two children, the ones that become neighbors are merged.
        (&[2, 0, 1, 2, 1, 0], 3, 3),
        (&[2, 1, 0, 2, 0, 1], 3, 5),
    ] {
        let keys = keys_of_heights(heights);
        let built = build(&records_of(&keys));
        let source = Recording::of(&built);
        let mut tree = Tree::load_partial(built.root(), &source);
        assert_eq!(tree.remove(&keys[removed]), Ok(Some(value(0))));
        assert_eq!(source.read.borrow().len(), nodes, "{heights:?} without {removed}");
    }
}
