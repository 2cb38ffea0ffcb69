//! Trees of whole sets of records: their roots, lookups and ranges.

use std::collections::HashMap;

use codec::{AnyCid, Cid, CidRef};
use proptest::prelude::*;

use super::support::*;
use crate::mst::reference::{KNOWN_ROOTS, KNOWN_VALUE};
use crate::mst::*;

#[test]
fn known_sets_of_records_have_their_known_roots() {
    let value: Cid = KNOWN_VALUE.parse().unwrap();
    for (rkeys, root) in KNOWN_ROOTS {
        let path = |short| format!("com.example.record/3jqfcqzm{short}2j").into_bytes();
        let records: Records =
            rkeys.split_whitespace().map(|short| (path(short), value.into())).collect();
        assert_eq!(build(&records).root().to_string(), root, "{rkeys}");
        assert_eq!(inserted(records.iter()).root().to_string(), root, "{rkeys}");
        assert_eq!(inserted(records.iter().rev()).root().to_string(), root, "{rkeys}");
    }
}

/// Several layers of many nodes, with keys of several lengths.
#[test]
fn fifty_thousand_records_make_one_tree_in_order_out_of_order_and_at_once() {
    let value: Cid = KNOWN_VALUE.parse().unwrap();
    let collection = ["app.bsky.feed.like", "app.bsky.feed.post", "app.bsky.graph.follow"];
    let path = |at: u64| format!("{}/3k{:011x}", collection[(at % 3) as usize], at * at * 7);
    let records: Records = (0..50_000).map(|at| (path(at).into_bytes(), value.into())).collect();
    let root = build(&records).root();
    assert_eq!(inserted(records.iter()).root(), root);
    assert_eq!(inserted(records.iter().rev()).root(), root);
    let mut builder = Builder::new();
    for (key, value) in &records {
        assert_eq!(builder.insert(key, value.clone()), Ok(None));
    }
    assert_eq!(builder.finish().root(), root);
    assert_eq!(Tree::from_sorted(records).unwrap().root(), root);
}

#[test]
fn get_many_finds_what_get_finds_in_whole_and_partial_trees() {
    let key = |number: u64| match number % 3 {
        0 => format!("a/{number}"),
        1 => format!("com.example.like/3jqfcqzm{number:05}"),
        _ => format!("com.example.post/3jqfcqzm{number:05}"),
    };
    let records: Records =
        (0..900).step_by(2).map(|number| (key(number).into_bytes(), value(number))).collect();
    let keys: Vec<String> = (0..900).chain([5, 5, 0, 0]).map(key).chain(["".to_owned()]).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let built = build(&records);
    let sorted = || Tree::from_sorted(records.iter().map(|(k, v)| (k, v.clone()))).unwrap();
    let alone = |mut tree: Tree<_>| -> Vec<Option<AnyCid>> {
        keys.iter().map(|key| tree.get(key).unwrap().map(AnyCid::from)).collect()
    };
    let expected = alone(sorted());
    assert_eq!(expected.iter().flatten().count(), 452);
    let mut whole = sorted();
    let mut grown = inserted(records.iter());
    let mut partial = loaded(&built);
    for count in [0, 1, 15, 16, 17, keys.len()] {
        let owned = |found: Vec<Option<CidRef<'_>>>| -> Vec<Option<AnyCid>> {
            found.into_iter().map(|cid| cid.map(AnyCid::from)).collect()
        };
        let keys = &keys[..count];
        assert_eq!(owned(whole.get_many(keys).unwrap()), expected[..count], "{count}");
        assert_eq!(owned(grown.get_many(keys).unwrap()), expected[..count], "{count}");
        assert_eq!(owned(partial.get_many(keys).unwrap()), expected[..count], "{count}");
    }
}

#[test]
fn records_out_of_order_or_with_invalid_keys_are_rejected() {
    let sorted = |keys: &[&[u8]]| {
        let records: Vec<_> = keys.iter().map(|key| (*key, value(0))).collect();
        Tree::from_sorted(records).map(|_| ()).map_err(|error| error.fault)
    };
    let empty_key = TreeFault::Node(node::NodeFault::EmptyKey);
    assert_eq!(sorted(&[b"a", b"b"]), Ok(()));
    assert_eq!(sorted(&[b"b", b"a"]), Err(TreeFault::Order));
    assert_eq!(sorted(&[b"a", b"a"]), Err(TreeFault::Order));
    assert_eq!(sorted(&[b""]), Err(empty_key));
    assert_eq!(sorted(&[&[b'a'; MAX_KEY_BYTES]]), Ok(()));
    let long = [b'a'; MAX_KEY_BYTES + 1];
    assert_eq!(sorted(&[&long]), Err(TreeFault::Limit(Limit::KeyBytes)));
    let mut tree = Tree::empty();
    assert_eq!(tree.insert(&long, value(0)).unwrap_err().fault, TreeFault::Limit(Limit::KeyBytes));
    assert_eq!(tree.insert(b"", value(0)).unwrap_err().fault, empty_key);
    assert_eq!(tree.root(), build(&Records::new()).root());
}

#[test]
fn a_hash_map_is_a_source_of_blocks() {
    let records: Records = [(b"a/1".to_vec(), value(1))].into();
    let built = build(&records);
    let source: HashMap<Cid, &[u8]> = blocks_of(&built).into_iter().collect();
    let mut tree = Tree::load_partial(built.root(), source);
    assert_eq!(tree.get(b"a/1"), Ok(Some(value(1).as_cid_ref())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn from_unsorted_and_from_sorted_build_the_tree_of_single_inserts(
        records in proptest::collection::vec((any_key(), (0..10u64).prop_map(value)), 0..120),
        more in any_records(),
    ) {
        let sorted: Records = records.iter().cloned().collect();
        let root = build(&sorted).root();
        prop_assert_eq!(Tree::from_unsorted(records).unwrap().root(), root);
        let mut tree = Tree::from_sorted(sorted.clone()).unwrap();
        prop_assert_eq!(tree.root(), root);
        // It can be edited as any other tree.
        let all: Records = sorted.iter().chain(&more).map(|(k, v)| (k.clone(), v.clone())).collect();
        for (key, value) in &more {
            tree.insert(key, value.clone()).unwrap();
        }
        prop_assert_eq!(tree.root(), build(&all).root());
        for key in sorted.keys() {
            tree.remove(key).unwrap();
        }
        let left = more.into_iter().filter(|(key, _)| !sorted.contains_key(key)).collect();
        prop_assert_eq!(tree.root(), build(&left).root());
    }

    #[test]
    fn a_range_has_the_records_between_its_ends(
        records in any_records(),
        (a, b) in (any_key(), any_key()),
        inclusive in any::<(bool, bool)>(),
    ) {
        use std::ops::Bound::{Excluded, Included};
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        prop_assume!(a != b);
        let start = if inclusive.0 { Included(&a) } else { Excluded(&a) };
        let end = if inclusive.1 { Included(&b) } else { Excluded(&b) };
        let built = build(&records);
        let mut tree = loaded(&built);
        let walked: Result<Vec<_>, _> = tree.range::<Vec<u8>>((start, end)).collect();
        let expected: Vec<_> =
            records.range::<Vec<u8>, _>((start, end)).map(|(k, v)| (k.clone(), v.clone())).collect();
        prop_assert_eq!(walked.unwrap(), expected);
        prop_assert_eq!(tree.iter().collect::<Result<Records, _>>().unwrap(), records);
    }
}
