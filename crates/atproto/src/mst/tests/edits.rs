//! Inserts and removals, in trees that were built and in trees that were loaded.

use codec::{AnyCid, Cid};
use proptest::prelude::*;

use super::forger::Forger;
use super::support::*;
use crate::mst::reference::Built;
use crate::mst::*;

#[test]
fn every_tree_over_six_keys_is_built_in_any_order_and_changed_by_any_edit() {
    for heights in HEIGHTS {
        let keys = keys_of_heights(&heights);
        let built: Vec<Built> = (0..64).map(|bits| build(&subset(&keys, bits))).collect();
        for bits in 0..64 {
            let records = subset(&keys, bits);
            let whole = inserted(records.iter());
            for (index, key) in keys.iter().enumerate() {
                let mut tree = whole.clone();
                let bit = 1 << index;
                if bits & bit == 0 {
                    assert_eq!(tree.get(key), Ok(None));
                    assert_eq!(tree.remove(key), Ok(None));
                    assert_eq!(tree.root(), built[bits].root(), "{heights:?} {bits:b}");
                    assert_eq!(tree.insert(key, value(index as u64)), Ok(None));
                } else {
                    let stored = value(index as u64);
                    assert_eq!(tree.get(key), Ok(Some(stored.as_cid_ref())));
                    assert_eq!(tree.insert(key, stored.clone()), Ok(Some(stored.clone())));
                    assert_eq!(tree.root(), built[bits].root(), "{heights:?} {bits:b}");
                    assert_eq!(tree.remove(key), Ok(Some(stored)));
                }
                assert_eq!(tree.root(), built[bits ^ bit].root(), "{heights:?} {bits:b} {index}");
            }
        }
        each_order(&mut (0..6).collect(), 0, &mut |order| {
            let mut tree = Tree::empty();
            let mut bits = 0;
            for index in order {
                tree.insert(&keys[*index], value(*index as u64)).unwrap();
                bits |= 1 << index;
                assert_eq!(tree.root(), built[bits].root(), "{heights:?} {order:?}");
            }
            for index in order {
                tree.remove(&keys[*index]).unwrap();
                bits ^= 1 << index;
                assert_eq!(tree.root(), built[bits].root(), "{heights:?} {order:?}");
            }
        });
    }
}

fn each_order(items: &mut Vec<usize>, fixed: usize, visit: &mut impl FnMut(&[usize])) {
    if fixed == items.len() {
        return visit(items);
    }
    for next in fixed..items.len() {
        items.swap(fixed, next);
        each_order(items, fixed + 1, visit);
        items.swap(fixed, next);
    }
}

#[test]
fn a_loaded_tree_of_six_keys_is_changed_by_any_removal_and_made_whole_again() {
    for heights in HEIGHTS {
        let keys = keys_of_heights(&heights);
        let built: Vec<Built> = (0..64).map(|bits| build(&subset(&keys, bits))).collect();
        for bits in 0..64 {
            for (index, key) in keys.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1)
            {
                let mut tree = loaded(&built[bits]);
                let stored = value(index as u64);
                assert_eq!(tree.remove(key), Ok(Some(stored.clone())));
                assert_eq!(tree.root(), built[bits ^ 1 << index].root(), "{heights:?} {bits:b}");
                assert_eq!(tree.insert(key, stored), Ok(None));
                assert_eq!(tree.root(), built[bits].root(), "{heights:?} {bits:b}");
                assert_eq!(tree.collect_blocks(), [], "no node is new");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_any_edits_a_tree_equals_the_reference(
        edits in proptest::collection::vec((any_key(), 0..10u64), 1..250),
        every in 1..20usize,
    ) {
        let mut records = Records::new();
        let mut tree = Tree::empty();
        let mut before = Built::default();
        for (step, (key, what)) in edits.iter().enumerate() {
            if *what < 4 {
                prop_assert_eq!(tree.remove(key).unwrap(), records.remove(key));
            } else {
                let value = value_of_any_length(*what);
                let before = records.insert(key.clone(), value.clone());
                prop_assert_eq!(tree.insert(key, value).unwrap(), before);
            }
            if step % every == 0 {
                let after = build(&records);
                prop_assert_eq!(tree.root(), after.root());
                prop_assert_eq!(new_blocks_of(&mut tree), created(&after, &before));
                before = after;
            }
        }
        for (key, value) in &records {
            prop_assert_eq!(tree.get(key).unwrap(), Some(value.as_cid_ref()));
        }
        for key in records.keys() {
            prop_assert!(tree.remove(key).unwrap().is_some());
        }
        prop_assert_eq!(tree.root(), build(&Records::new()).root());
    }

    #[test]
    fn a_loaded_tree_is_edited_as_one_that_was_built(
        records in any_records(),
        edits in proptest::collection::vec((any_key(), 0..10u64), 1..40),
    ) {
        let mut records: Records = records;
        let before = build(&records);
        let mut tree = Tree::load_partial(before.root(), blocks_of(&before));
        prop_assert_eq!(tree.root(), before.root());
        for (key, what) in &edits {
            let known = records.get(key).map(AnyCid::as_cid_ref);
            prop_assert_eq!(tree.get(key).unwrap(), known);
            if *what < 5 {
                prop_assert_eq!(tree.remove(key).unwrap(), records.remove(key));
            } else {
                let value = value_of_any_length(*what);
                let before = records.insert(key.clone(), value.clone());
                prop_assert_eq!(tree.insert(key, value).unwrap(), before);
            }
        }
        let after = build(&records);
        prop_assert_eq!(tree.root(), after.root());
        prop_assert_eq!(new_blocks_of(&mut tree), created(&after, &before));
        prop_assert!(tree.collect_blocks().is_empty());
    }
}

#[test]
fn two_nodes_are_merged_up_to_the_limit_of_entries() {
    let heights: Vec<u8> = (0..=MAX_NODE_ENTRIES).map(|at| u8::from(at == 5_000)).collect();
    let keys = keys_of_heights(&heights);
    let leaf = |keys: &[Vec<u8>], forger: &mut Forger| {
        let entries: Vec<(&[u8], Option<Cid>)> = keys.iter().map(|key| (&key[..], None)).collect();
        forger.node(None, &entries)
    };
    let (left, rest) = keys.split_at(5_000);
    let (middle, right) = rest.split_first().unwrap();
    for (left, is_too_many) in [(left, false), (&[&[b"a".to_vec()], left].concat()[..], true)] {
        let mut forger = Forger::default();
        let (left, right) = (leaf(left, &mut forger), leaf(right, &mut forger));
        let root = forger.node(Some(left), &[(middle, Some(right))]);
        let source = forger.source();
        let removed = Tree::load_partial(root, &source).remove(middle);
        match removed {
            Ok(removed) => assert_eq!((removed, is_too_many), (Some(value(0)), false)),
            Err(error) => {
                let limit = TreeFault::Limit(Limit::NodeEntries);
                assert_eq!((error.fault, is_too_many), (limit, true));
            }
        }
    }
}

#[test]
fn a_failed_remove_leaves_the_tree_as_it_was() {
    let keys = keys_of_heights(&[0, 1, 0, 2, 0, 1, 0]);
    let records: Records = keys.iter().map(|key| (key.clone(), value(0))).collect();
    let built = build(&records);
    for missing in built.nodes().keys().filter(|cid| **cid != built.root()) {
        let mut source = blocks_of(&built);
        source.remove(missing);
        let mut tree = Tree::load_partial(built.root(), &source);
        let mut failed = 0;
        for key in &keys {
            let is_missing = |error: TreeError| {
                assert_eq!((error.fault, error.cid), (TreeFault::Missing, Some(*missing)));
            };
            match tree.clone().remove(key) {
                Ok(removed) => assert_eq!(removed, Some(value(0))),
                Err(error) => {
                    is_missing(error);
                    is_missing(tree.remove(key).unwrap_err());
                    failed += 1;
                }
            }
            assert_eq!(tree.root(), built.root());
            assert!(tree.collect_blocks().is_empty());
        }
        assert!(failed > 0);
    }
}
