use std::collections::BTreeMap;

use codec::cid::Codec;
use codec::{AnyCid, Cid, CidRef};
use proptest::prelude::*;

use super::inversion::{InversionFault, RecordOp, invert};
use super::reference::{self, Built, encode_node};
use super::tree::KEY_BATCH;
use super::*;
use crate::event::Action;

pub(super) type Records = BTreeMap<Vec<u8>, AnyCid>;

pub(super) fn build(records: &Records) -> Built {
    reference::build(&Vec::from_iter(records.iter().map(|(key, value)| (key, value.clone()))))
}

/// The value of all records in the specification's examples.
const VALUE: &str = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454";

/// Record keys, in the short form `3fo` for `3jqfcqzm3fo2j`, and the root of their tree.
const KNOWN_ROOTS: [(&str, &str); 11] = [
    ("", "bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm"),
    ("3fo", "bafyreibj4lsc3aqnrvphp5xmrnfoorvru4wynt6lwidqbm2623a6tatzdu"),
    ("3fx", "bafyreih7wfei65pxzhauoibu3ls7jgmkju4bspy4t2ha2qdjnzqvoy33ai"),
    ("3fp 3fr 3fs 3ft 4fc", "bafyreicmahysq4n6wfuxo522m6dpiy7z7qzym3dzs756t5n7nfdgccwq7m"),
    ("3fn 3fo 3fp 3fs 3ft 3fu", "bafyreifnqrwbk6ffmyaz5qtujqrzf5qmxf7cbxvgzktl4e3gabuxbtatv4"),
    ("3fn 3fo 3fp 3ft 3fu", "bafyreie4kjuxbwkhzg2i5dljaswcroeih4dgiqq6pazcmunwt2byd725vi"),
    (
        "3fo 3fp 3fr 3fs 3ft 3fz 4fc 4fd 4ff 4fg 4fh",
        "bafyreiettyludka6fpgp33stwxfuwhkzlur6chs4d2v4nkmq2j3ogpdjem",
    ),
    (
        "3fo 3fp 3fr 3fs 3ft 3fx 3fz 4fc 4fd 4ff 4fg 4fh",
        "bafyreid2x5eqs4w4qxvc5jiwda4cien3gw2q6cshofxwnvv7iucrmfohpm",
    ),
    ("3ft 3fz", "bafyreidfcktqnfmykz2ps3dbul35pepleq7kvv526g47xahuz3rqtptmky"),
    ("3ft 3fx 3fz", "bafyreiavxaxdz7o7rbvr3zg2liox2yww46t7g6hkehx4i4h3lwudly7dhy"),
    ("3ft 3fx 3fz 4fd", "bafyreig4jv3vuajbsybhyvb7gggvpwh2zszwfyttjrj6qwvcsp24h6popu"),
];

#[test]
fn known_sets_of_records_have_their_known_roots() {
    let value: Cid = VALUE.parse().unwrap();
    for (rkeys, root) in KNOWN_ROOTS {
        let path = |short| format!("com.example.record/3jqfcqzm{short}2j").into_bytes();
        let records: Records =
            rkeys.split_whitespace().map(|short| (path(short), value.into())).collect();
        assert_eq!(build(&records).root().to_string(), root, "{rkeys}");
        assert_eq!(inserted(records.iter()).root().to_string(), root, "{rkeys}");
        assert_eq!(inserted(records.iter().rev()).root().to_string(), root, "{rkeys}");
    }
}

/// Several layers of many nodes each, with keys of several lengths.
#[test]
fn fifty_thousand_records_make_one_tree_in_order_out_of_order_and_at_once() {
    let value: Cid = VALUE.parse().unwrap();
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
    let (mut whole, mut grown, mut partial) = (sorted(), inserted(records.iter()), loaded(&built));
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

fn value(seed: u64) -> AnyCid {
    Cid::of(Codec::DagCbor, &seed.to_be_bytes()).into()
}

fn inserted<'r>(records: impl Iterator<Item = (&'r Vec<u8>, &'r AnyCid)>) -> Tree {
    let mut tree = Tree::empty();
    for (key, value) in records {
        assert_eq!(tree.insert(key, value.clone()), Ok(None));
    }
    tree
}

/// Ascending keys of these heights.
fn keys_of_heights(heights: &[u8]) -> Vec<Vec<u8>> {
    let mut number = 0u64;
    let mut next = |height| {
        loop {
            number += 1;
            let key = format!("k/{number:06}").into_bytes();
            if key_height(&key) == height {
                return key;
            }
        }
    };
    heights.iter().map(|height| next(*height)).collect()
}

fn subset(keys: &[Vec<u8>], bits: usize) -> Records {
    let chosen = keys.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
    chosen.map(|(index, key)| (key.clone(), value(index as u64))).collect()
}

/// Sets of six heights: flat, steep, with gaps between layers, tall in the middle and at the edges.
const HEIGHTS: [[u8; 6]; 8] = [
    [0, 0, 0, 0, 0, 0],
    [0, 1, 0, 1, 0, 1],
    [0, 1, 2, 3, 2, 0],
    [0, 3, 0, 0, 3, 0],
    [3, 0, 1, 1, 0, 3],
    [0, 0, 3, 0, 0, 0],
    [2, 0, 2, 0, 0, 2],
    [0, 2, 0, 1, 3, 0],
];

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

/// Keys with many prefixes in common, some that are prefixes of others, and zero bytes.
fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0..400u32).prop_map(|n| format!("app.bsky.feed.post/{n}").into_bytes()),
        2 => (0..60u32).prop_map(|n| format!("app.bsky.feed.post/3jqfcqzm{n}").into_bytes()),
        2 => proptest::collection::vec(0..2u8, 1..14),
        1 => (1..40usize).prop_map(|n| vec![b'a'; n]),
        1 => (1..30usize).prop_map(|n| [b"zz".as_slice(), &vec![0; n]].concat()),
    ]
}

fn blocks_of(built: &Built) -> BTreeMap<Cid, &[u8]> {
    built.nodes().iter().map(|(cid, block)| (*cid, &block[..])).collect()
}

fn new_blocks_of(tree: &mut Tree<impl Sized>) -> BTreeMap<Cid, Vec<u8>> {
    tree.collect_blocks().into_iter().collect()
}

fn created(after: &Built, before: &Built) -> BTreeMap<Cid, Vec<u8>> {
    let is_new = |(cid, _): &(&Cid, _)| !before.nodes().contains_key(*cid);
    after.nodes().iter().filter(is_new).map(|(cid, block)| (*cid, block.clone())).collect()
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
                let before = records.insert(key.clone(), value(*what));
                prop_assert_eq!(tree.insert(key, value(*what)).unwrap(), before);
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
                let before = records.insert(key.clone(), value(*what));
                prop_assert_eq!(tree.insert(key, value(*what)).unwrap(), before);
            }
        }
        let after = build(&records);
        prop_assert_eq!(tree.root(), after.root());
        prop_assert_eq!(new_blocks_of(&mut tree), created(&after, &before));
        prop_assert!(tree.collect_blocks().is_empty());
    }

    #[test]
    fn a_commit_is_inverted_with_its_covering_proof_alone(
        records in any_records(),
        edits in proptest::collection::btree_map(any_key(), 0..10u64, 1..8),
        order in any::<u64>(),
    ) {
        let before: Records = records;
        let mut after = before.clone();
        let mut ops = Vec::new();
        for (key, what) in edits {
            let prev = after.remove(&key);
            let cid = (what > 4 || prev.is_none()).then(|| value(100 + what));
            after.extend(cid.clone().map(|cid| (key.clone(), cid)));
            ops.push((key, cid, prev));
        }
        let rotation = order as usize % ops.len();
        ops.rotate_left(rotation);
        let (before, built) = (build(&before), build(&after));
        let keys: Vec<&[u8]> = ops.iter().map(|(key, ..)| &key[..]).collect();
        let proof = built.covering_proof(&keys);
        let source: BTreeMap<Cid, &[u8]> =
            proof.iter().map(|cid| (*cid, &built.nodes()[cid][..])).collect();
        let ops: Vec<RecordOp<'_>> = ops.iter().map(|(key, cid, prev)| undo(key, cid, prev)).collect();
        prop_assert_eq!(invert(built.root(), &source, &ops), Ok(before.root()));
        for missing in &proof {
            let mut less = source.clone();
            less.remove(missing);
            // Without a node the result is right, the CID of that node, or an error.
            match invert(built.root(), &less, &ops) {
                Ok(root) => prop_assert!([before.root(), *missing].contains(&root)),
                Err(error) => {
                    let fault = TreeFault::Missing;
                    let missing = TreeError { cid: Some(*missing), offset: 0, fault };
                    prop_assert_eq!(error.fault, InversionFault::Tree(missing));
                }
            }
        }
    }
}

fn any_records() -> impl Strategy<Value = Records> {
    proptest::collection::btree_map(any_key(), (0..10u64).prop_map(value), 0..120)
}

fn loaded(built: &Built) -> Tree<BTreeMap<Cid, &[u8]>> {
    Tree::load_partial(built.root(), blocks_of(built))
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

    #[test]
    fn proofs_have_exactly_the_nodes_of_the_definition(
        records in any_records(),
        keys in proptest::collection::vec(any_key(), 1..6),
    ) {
        let built = build(&records);
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let covering = built.covering_proof(&keys);
        let mut made = inserted(records.iter());
        prop_assert_eq!(loaded(&built).covering_proof(keys.iter().copied()).unwrap(), covering.clone());
        prop_assert_eq!(made.covering_proof(keys.iter().copied()).unwrap(), covering);
        for key in keys {
            let proof = made.record_proof(key).unwrap();
            prop_assert_eq!(&proof, &loaded(&built).record_proof(key).unwrap());
            prop_assert!(proof.iter().map(|(cid, _)| *cid).eq(built.path(key)));
            let source: BTreeMap<Cid, &[u8]> =
                proof.iter().map(|(cid, block)| (*cid, &block[..])).collect();
            let mut partial = Tree::load_partial(built.root(), source);
            prop_assert_eq!(
                partial.get(key).unwrap(),
                records.get(key).map(AnyCid::as_cid_ref)
            );
        }
    }

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

    #[test]
    fn load_canonical_accepts_a_canonical_tree_and_rejects_one_that_lacks_a_node(records in any_records()) {
        let built = build(&records);
        let blocks = blocks_of(&built);
        let bounds = TreeLimits::default();
        let mut tree = Tree::load_canonical(built.root(), &blocks, &bounds).unwrap();
        prop_assert_eq!(tree.iter().collect::<Result<Records, _>>().unwrap(), records.clone());
        for missing in blocks.keys() {
            let mut less = blocks.clone();
            less.remove(missing);
            let error = Tree::load_canonical(built.root(), &less, &bounds).unwrap_err();
            let fault = TreeFault::Missing;
            prop_assert_eq!(error, TreeError { cid: Some(*missing), offset: 0, fault });
        }
        let few = |max_nodes, max_records| {
            let few = TreeLimits { max_nodes, max_records };
            Tree::load_canonical(built.root(), &blocks, &few).map(|_| ()).map_err(|e| e.fault)
        };
        let (nodes, entries) = (blocks.len() as u64, records.len() as u64);
        prop_assert_eq!(few(nodes, entries), Ok(()));
        if nodes > 1 {
            prop_assert_eq!(few(nodes - 1, entries), Err(TreeFault::Limit(Limit::Nodes)));
        }
        if entries > 0 {
            prop_assert_eq!(few(nodes, entries - 1), Err(TreeFault::Limit(Limit::Records)));
        }
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
        let source: BTreeMap<Cid, &[u8]> = forger.0.iter().map(|(c, b)| (*c, &b[..])).collect();
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
fn a_node_that_was_rejected_is_rejected_again() {
    let [a, b, c] = forged_keys([0, 1, 0]);
    let mut forger = Forger::default();
    let flat = forger.node(None, &[(&a, None), (&b, None), (&c, None)]);
    let wrong_side = forger.node(None, &[(&c, None)]);
    let swapped = forger.node(Some(wrong_side), &[(&b, None)]);
    let wrong_layer = forger.node(None, &[(&b, None)]);
    let [.., d] = forged_keys([0, 1, 0, 1]);
    let same_layer = forger.node(Some(wrong_layer), &[(&d, None)]);
    let source: BTreeMap<Cid, &[u8]> = forger.0.iter().map(|(c, b)| (*c, &b[..])).collect();
    for root in [flat, swapped, same_layer] {
        let mut tree = Tree::load_partial(root, &source);
        let first = tree.get(&a).map(|_| ()).unwrap_err();
        for _ in 0..3 {
            assert_eq!(tree.get(&a).map(|_| ()), Err(first));
        }
        assert_eq!(tree.remove(&a), Err(first));
    }
}

#[test]
fn the_first_of_two_faults_is_reported_whichever_is_found_first() {
    let [low, high] = forged_keys([0, 2]);
    let mut forger = Forger::default();
    let skipped = forger.node(None, &[(&low, None)]);
    let missing = Cid::of(Codec::DagCbor, b"no node");
    let root = forger.node(Some(skipped), &[(&high, Some(missing))]);
    let source: BTreeMap<Cid, &[u8]> = forger.0.iter().map(|(c, b)| (*c, &b[..])).collect();
    let error = Tree::load_canonical(root, &source, &TreeLimits::default()).unwrap_err();
    assert_eq!((error.cid, error.fault), (Some(skipped), TreeFault::SkippedLayer));
}

/// Heights of keys are checked in batches, and every other rule at once.
#[test]
fn the_first_of_two_faults_is_reported_in_a_tree_of_many_batches_of_keys() {
    const GROUPS: usize = 40;
    let mut heights = [vec![0; KEY_BATCH / 8], vec![1]].concat().repeat(GROUPS);
    let group_len = heights.len() / GROUPS;
    for (wrong, missing) in [(0, 1), (1, 0), (3, 39), (20, 9), (38, 39), (39, 38)] {
        heights[wrong * group_len + 5] = 1;
        let keys = keys_of_heights(&heights);
        heights[wrong * group_len + 5] = 0;
        let mut forger = Forger::default();
        let (mut entries, mut low) = (Vec::new(), Vec::new());
        for group in keys.chunks(group_len) {
            let (high, below) = group.split_last().unwrap();
            let below: Vec<(&[u8], _)> = below.iter().map(|key| (&key[..], None)).collect();
            low.push(forger.node(None, &below));
            entries.push((&high[..], None));
        }
        for (entry, child) in entries.iter_mut().zip(&low[1..]) {
            entry.1 = Some(*child);
        }
        let root = forger.node(Some(low[0]), &entries);
        forger.0.remove(&low[missing]);
        let source: BTreeMap<Cid, &[u8]> = forger.0.iter().map(|(c, b)| (*c, &b[..])).collect();
        let error = Tree::load_canonical(root, &source, &TreeLimits::default()).unwrap_err();
        let expected = match wrong < missing {
            true => (Some(low[wrong]), TreeFault::Layer),
            false => (Some(low[missing]), TreeFault::Missing),
        };
        assert_eq!((error.cid, error.fault), expected, "wrong {wrong}, missing {missing}");
    }
}

#[test]
fn a_hash_map_is_a_source_of_blocks() {
    let records: Records = [(b"a/1".to_vec(), value(1))].into();
    let built = build(&records);
    let source: HashMap<Cid, &[u8]> = blocks_of(&built).into_iter().collect();
    let mut tree = Tree::load_partial(built.root(), source);
    assert_eq!(tree.get(b"a/1"), Ok(Some(value(1).as_cid_ref())));
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

#[test]
fn an_error_names_the_node_the_byte_and_the_rule() {
    let cid = Cid::of(Codec::DagCbor, b"a node");
    let at = |offset| TreeError::at(cid, offset, TreeFault::Order).to_string();
    assert_eq!(at(0), format!("tree node {cid}: a key is out of order"));
    assert_eq!(at(1), format!("tree node {cid}, at byte 1: a key is out of order"));
    assert_eq!(TreeError::of(TreeFault::Missing).to_string(), "the node is missing");
    let of_op = |op| inversion::InversionError { op, fault: InversionFault::Absent }.to_string();
    assert_eq!(of_op(Some(3)), format!("operation 3: {}", of_op(None)));
    assert_eq!(of_op(None), InversionFault::Absent.to_string());
}

#[test]
fn each_rule_has_its_code() {
    let codes = [
        (TreeFault::Node(node::NodeFault::EmptyKey), "tree/empty-key"),
        (TreeFault::Node(node::NodeFault::Shape), "tree/shape"),
        (TreeFault::Node(node::NodeFault::Link), "tree/link"),
        (TreeFault::Node(node::NodeFault::Prefix), "tree/prefix"),
        (TreeFault::Missing, "tree/missing-node"),
        (TreeFault::Order, "tree/order"),
        (TreeFault::Layer, "tree/layer"),
        (TreeFault::BelowLeaves, "tree/layer"),
        (TreeFault::SkippedLayer, "tree/skipped-layer"),
        (TreeFault::EmptyNode, "tree/empty-node"),
        (TreeFault::Untrimmed, "tree/untrimmed-root"),
        (TreeFault::Repeated, "tree/repeated-node"),
        (TreeFault::Limit(Limit::Nodes), "tree/limit"),
    ];
    for (fault, code) in codes {
        assert_eq!(fault.code(), code, "{fault}");
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

/// Forged nodes: hashes are right, the rest need not be.
#[derive(Default)]
struct Forger(BTreeMap<Cid, Vec<u8>>);

impl Forger {
    fn node(&mut self, left: Option<Cid>, entries: &[(&[u8], Option<Cid>)]) -> Cid {
        let value = value(0);
        let entries: Vec<_> = entries.iter().map(|(key, right)| (*key, &value, *right)).collect();
        let block = encode_node(left.as_ref(), &entries);
        let cid = Cid::of(Codec::DagCbor, &block);
        self.0.insert(cid, block);
        cid
    }

    /// The faults found by a canonical load, an iteration and the inversion of a create at `key`.
    fn faults(&self, root: Cid, key: &[u8]) -> [Option<TreeFault>; 3] {
        let source: BTreeMap<Cid, &[u8]> = self.0.iter().map(|(c, b)| (*c, &b[..])).collect();
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

fn undo<'a>(key: &'a [u8], cid: &'a Option<AnyCid>, prev: &'a Option<AnyCid>) -> RecordOp<'a> {
    let action = match (cid, prev) {
        (Some(_), None) => Action::Create,
        (Some(_), Some(_)) => Action::Update,
        _ => Action::Delete,
    };
    let borrowed = |cid: &'a Option<AnyCid>| cid.as_ref().map(AnyCid::as_cid_ref);
    RecordOp { action, key, cid: borrowed(cid), prev: borrowed(prev) }
}

/// Ascending keys of these heights, for forged trees.
fn forged_keys<const N: usize>(heights: [u8; N]) -> [Vec<u8>; N] {
    keys_of_heights(&heights).try_into().expect("as many keys as heights")
}

#[track_caller]
fn assert_rejected(forger: &Forger, root: Cid, touched: &[u8], fault: TreeFault) {
    assert_eq!(forger.faults(root, touched), [Some(fault); 3]);
}

#[test]
fn a_sound_forged_tree_is_accepted() {
    let [a, b, c] = forged_keys([0, 1, 0]);
    let mut forger = Forger::default();
    let left = forger.node(None, &[(&a, None)]);
    let right = forger.node(None, &[(&c, None)]);
    let root = forger.node(Some(left), &[(&b, Some(right))]);
    assert_eq!(forger.faults(root, &a), [None; 3]);
}

#[test]
fn a_key_in_the_wrong_layer_is_rejected() {
    let [a, b, c] = forged_keys([0, 1, 0]);
    let mut forger = Forger::default();
    let flat = forger.node(None, &[(&a, None), (&b, None), (&c, None)]);
    assert_rejected(&forger, flat, &a, TreeFault::Layer);
    // A key too high and too low for a child, alone and among others.
    let [a, b, c, d] = forged_keys([1, 2, 2, 0]);
    let child = forger.node(None, &[(&a, None)]);
    let root = forger.node(Some(child), &[(&b, None)]);
    assert_eq!(forger.faults(root, &a), [None; 3]);
    let child = forger.node(None, &[(&c, None)]);
    let root = forger.node(None, &[(&b, Some(child))]);
    assert_rejected(&forger, root, &c, TreeFault::Layer);
    let child = forger.node(None, &[(&d, None)]);
    let root = forger.node(None, &[(&b, Some(child))]);
    assert_rejected(&forger, root, &d, TreeFault::SkippedLayer);
}

#[test]
fn a_child_below_the_leaves_is_rejected() {
    let [a, b] = forged_keys([0, 0]);
    let mut forger = Forger::default();
    let below = forger.node(None, &[(&b, None)]);
    let root = forger.node(None, &[(&a, Some(below))]);
    assert_rejected(&forger, root, &a, TreeFault::BelowLeaves);
    // An empty node there is below layer 0 first of all.
    let empty = forger.node(None, &[]);
    let root = forger.node(None, &[(&a, Some(empty))]);
    assert_rejected(&forger, root, &b, TreeFault::BelowLeaves);
    // Below nodes without keys, too.
    let [top, leaf] = forged_keys([1, 0]);
    let below = forger.node(None, &[(&leaf, None)]);
    let no_keys = forger.node(Some(below), &[]);
    let root = forger.node(None, &[(&top, Some(no_keys))]);
    assert_rejected(&forger, root, &leaf, TreeFault::BelowLeaves);
}

#[test]
fn a_subtree_on_the_wrong_side_is_rejected() {
    let [a, b, c] = forged_keys([0, 1, 0]);
    let mut forger = Forger::default();
    let low = forger.node(None, &[(&a, None)]);
    let high = forger.node(None, &[(&c, None)]);
    let swapped = forger.node(Some(high), &[(&b, Some(low))]);
    assert_rejected(&forger, swapped, &a, TreeFault::Order);
    assert_rejected(&forger, swapped, &c, TreeFault::Order);
    let again = forger.node(None, &[(&a, None), (&c, None)]);
    let overlapping = forger.node(Some(again), &[(&b, None)]);
    assert_rejected(&forger, overlapping, &a, TreeFault::Order);
}

#[test]
fn a_child_that_repeats_a_key_beside_it_is_rejected() {
    let [a, b, c] = forged_keys([0, 1, 0]);
    let mut forger = Forger::default();
    let before = forger.node(None, &[(&a, None), (&b, None)]);
    let root = forger.node(Some(before), &[(&b, None)]);
    assert_rejected(&forger, root, &a, TreeFault::Order);
    let after = forger.node(None, &[(&b, None), (&c, None)]);
    let root = forger.node(None, &[(&b, Some(after))]);
    assert_rejected(&forger, root, &c, TreeFault::Order);
}

#[test]
fn an_empty_node_and_a_root_without_keys_are_rejected() {
    let [a, b] = forged_keys([0, 1]);
    let mut forger = Forger::default();
    let nothing = forger.node(None, &[]);
    let root = forger.node(Some(nothing), &[(&b, None)]);
    assert_rejected(&forger, root, &a, TreeFault::EmptyNode);
    let leaf = forger.node(None, &[(&a, None)]);
    let untrimmed = forger.node(Some(leaf), &[]);
    assert_rejected(&forger, untrimmed, &a, TreeFault::Untrimmed);
}

#[test]
fn shared_subtrees_are_rejected_before_they_multiply() {
    // Each layer links twice to the one below: 2^30 paths from the root.
    let keys = keys_of_heights(&(1..8).flat_map(|height| [height, height]).collect::<Vec<_>>());
    let mut forger = Forger::default();
    let [leaf] = forged_keys([0]);
    let mut below = forger.node(None, &[(&leaf, None)]);
    for _ in 0..3 {
        for pair in keys.chunks(2) {
            below = forger.node(Some(below), &[(&pair[0], Some(below)), (&pair[1], Some(below))]);
        }
    }
    let [canonical, walked, _] = forger.faults(below, &leaf);
    assert_eq!(canonical, Some(TreeFault::Repeated));
    assert!(walked.is_some());
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

#[test]
fn operations_that_disagree_with_the_tree_are_rejected_by_their_index() {
    let keys = keys_of_heights(&[0, 1, 0]);
    let records: Records = keys[..2].iter().map(|key| (key.clone(), value(0))).collect();
    let built = build(&records);
    let source = blocks_of(&built);
    let (record, other) = (Some(value(0)), Some(value(1)));
    let fault = |ops: &[RecordOp<'_>]| {
        let error = invert(built.root(), &source, ops).unwrap_err();
        (error.op.unwrap(), error.fault)
    };
    let sound = undo(&keys[0], &record, &None);
    let absent = undo(&keys[2], &record, &None);
    let elsewhere = undo(&keys[1], &other, &record);
    let present = undo(&keys[1], &None, &record);
    assert_eq!(fault(&[sound, absent]), (1, InversionFault::Absent));
    assert_eq!(fault(&[sound, elsewhere]), (1, InversionFault::OtherRecord));
    assert_eq!(fault(&[present, sound]), (0, InversionFault::Present));
    assert_eq!(fault(&[sound, sound]), (1, InversionFault::DuplicatePath));
    let no_record = RecordOp { cid: None, ..sound };
    assert_eq!(fault(&[no_record]), (0, InversionFault::Record));
    let a_record = RecordOp { cid: record.as_ref().map(AnyCid::as_cid_ref), ..present };
    assert_eq!(fault(&[a_record]), (0, InversionFault::Record));
    let no_previous = RecordOp { prev: None, ..present };
    assert_eq!(fault(&[no_previous]), (0, InversionFault::Previous));
    let a_previous = RecordOp { prev: a_record.cid, ..sound };
    assert_eq!(fault(&[a_previous]), (0, InversionFault::Previous));
    assert_eq!(invert(built.root(), (), &[]), Ok(built.root()));
}

#[test]
fn a_batch_beyond_the_memory_limit_is_processed_in_parts() {
    // Without shared prefixes the keys of each commit take 9 MB; two reach the limit.
    let mut keys: Vec<Vec<u8>> = (0u32..)
        .map(|number| [vec![b'k'; MAX_KEY_BYTES - 8], format!("{number:08}").into_bytes()].concat())
        .filter(|key| key_height(key) == 0)
        .take(9_000)
        .collect();
    let mut forger = Forger::default();
    let entries: Vec<(&[u8], Option<Cid>)> = keys.iter().map(|key| (&key[..], None)).collect();
    let root = forger.node(None, &entries);
    let before = forger.node(None, &entries[1..]);
    let source: BTreeMap<Cid, &[u8]> = forger.0.iter().map(|(c, b)| (*c, &b[..])).collect();
    let record = Some(value(0));
    let first = keys.swap_remove(0);
    let ops = [undo(&first, &record, &None)];
    let none = [undo(b"absent", &record, &None)];
    let commit = |index| {
        let ops = if index % 3 == 1 { &none } else { &ops };
        inversion::Inversion { root, source: &source, ops }
    };
    let commits: Vec<_> = (0..7).map(commit).collect();
    let results = inversion::Inverter::new().invert_batch(&commits);
    assert_eq!(results.len(), commits.len());
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(root) => assert_eq!((root, index % 3 == 1), (before, false)),
            Err(error) => assert_eq!((error.fault, index % 3), (InversionFault::Absent, 1)),
        }
    }
}

#[test]
fn of_a_batch_only_the_commit_with_a_key_in_the_wrong_layer_is_rejected() {
    let keys = || (0u32..).map(|number| format!("k{number:04}").into_bytes());
    let low: Vec<Vec<u8>> = keys().filter(|key| key_height(key) == 0).take(2).collect();
    let high = keys().find(|key| *key > low[1] && key_height(key) > 0).unwrap();
    let mut forger = Forger::default();
    let before = forger.node(None, &[(&low[1], None)]);
    let sound = forger.node(None, &[(&low[0], None), (&low[1], None)]);
    let wrong = forger.node(None, &[(&low[0], None), (&low[1], None), (&high, None)]);
    let source: BTreeMap<Cid, &[u8]> = forger.0.iter().map(|(c, b)| (*c, &b[..])).collect();
    let record = Some(value(0));
    let ops = [undo(&low[0], &record, &None)];
    for wrong_at in 0..3 {
        let roots = (0..3).map(|index| if index == wrong_at { wrong } else { sound });
        let commits: Vec<_> =
            roots.map(|root| inversion::Inversion { root, source: &source, ops: &ops }).collect();
        for (index, result) in
            inversion::Inverter::new().invert_batch(&commits).into_iter().enumerate()
        {
            match result {
                Ok(root) => assert_eq!((root, index == wrong_at), (before, false)),
                Err(error) => {
                    assert_eq!((error.op, index), (None, wrong_at));
                    assert!(matches!(error.fault, InversionFault::Tree(_)), "{error}");
                }
            }
        }
    }
}
