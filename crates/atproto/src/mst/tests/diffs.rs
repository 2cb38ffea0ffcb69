//! The records and nodes that differ between two trees.

use std::collections::BTreeMap;

use codec::Cid;
use proptest::prelude::*;

use super::support::*;
use crate::mst::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_diff_turns_the_old_records_into_the_new(
        common in any_records(),
        only_old in proptest::collection::btree_map(any_key(), (10..12u64).prop_map(value), 0..6),
        only_new in proptest::collection::btree_map(any_key(), (12..14u64).prop_map(value), 0..6),
    ) {
        let with = |more: Records| common.clone().into_iter().chain(more).collect::<Records>();
        let (old, new) = (with(only_old), with(only_new));
        let (built_old, built_new) = (build(&old), build(&new));
        let found = diff(&mut loaded(&built_old), &mut inserted(new.iter())).unwrap();
        let mut patched = old;
        for Change { key, old, new } in &found.changes {
            prop_assert_ne!(old, new);
            prop_assert_eq!(&patched.remove(key), old);
            patched.extend(new.clone().map(|new| (key.clone(), new)));
        }
        prop_assert_eq!(patched, new);
        prop_assert!(found.changes.is_sorted_by(|a, b| a.key < b.key));
        prop_assert!(found.created_nodes.iter().eq(created(&built_new, &built_old).keys()));
        prop_assert!(found.deleted_nodes.iter().eq(created(&built_old, &built_new).keys()));
    }
}

#[test]
fn a_diff_reads_nothing_below_a_node_that_both_trees_have() {
    let keys = keys_of_heights(&[0, 1, 0, 2]);
    let (old, new) = (build(&subset(&keys, 0b0111)), build(&subset(&keys, 0b1111)));
    let root_alone = |root: Cid, mut blocks: BTreeMap<Cid, _>| {
        blocks.retain(|cid, _| *cid == root);
        Tree::load_partial(root, blocks)
    };
    let mut before = root_alone(old.root(), blocks_of(&old));
    let mut after = root_alone(new.root(), blocks_of(&new));
    let found = diff(&mut before, &mut after).unwrap();
    assert_eq!(found.changes.len(), 1);
    assert_eq!(found.changes[0].key, keys[3]);
    assert_eq!(found.created_nodes, [new.root()].into());
    assert!(found.deleted_nodes.is_empty());
}
