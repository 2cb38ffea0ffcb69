//! Trees that break a rule are rejected, with the node and the rule.

use codec::Cid;
use codec::cid::Codec;
use proptest::prelude::*;

use super::forger::{Forger, forged_keys};
use super::support::*;
use crate::mst::height::KEY_BATCH;
use crate::mst::inversion::InversionFault;
use crate::mst::*;

#[test]
fn an_error_names_the_node_the_byte_and_the_rule() {
    let cid = Cid::of(Codec::DagCbor, b"a node");
    let at = |offset| TreeError::at(cid, offset, TreeFault::Order).to_string();
    assert_eq!(at(0), format!("tree node {cid}: a key is out of order"));
    assert_eq!(at(1), format!("tree node {cid}, at byte 1: a key is out of order"));
    assert_eq!(TreeError::of(TreeFault::Missing).to_string(), "the node is missing");
    let below = TreeError::at(cid, 0, TreeFault::BelowLeaves).to_string();
    let rule = "a link leads below layer 0, where no node is allowed";
    assert_eq!(below, format!("tree node {cid}: {rule}"));
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

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
    // Between other keys, and before them.
    let [a, b, c] = forged_keys([0, 0, 0]);
    let below = forger.node(None, &[(&c, None)]);
    let root = forger.node(None, &[(&a, None), (&b, Some(below))]);
    assert_rejected(&forger, root, &a, TreeFault::BelowLeaves);
    let below = forger.node(None, &[(&a, None)]);
    let root = forger.node(Some(below), &[(&b, None), (&c, None)]);
    assert_rejected(&forger, root, &c, TreeFault::BelowLeaves);
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
fn a_subtree_on_the_wrong_side_of_a_key_farther_up_is_rejected() {
    let [c, d, m, z] = forged_keys([1, 0, 2, 0]);
    let mut forger = Forger::default();
    let leaf = forger.node(None, &[(&d, None), (&z, None)]);
    let left = forger.node(None, &[(&c, Some(leaf))]);
    let root = forger.node(Some(left), &[(&m, None)]);
    assert_rejected(&forger, root, &d, TreeFault::Order);
    let [a, m, n, p] = forged_keys([0, 2, 0, 1]);
    let leaf = forger.node(None, &[(&a, None), (&n, None)]);
    let right = forger.node(Some(leaf), &[(&p, None)]);
    let root = forger.node(None, &[(&m, Some(right))]);
    assert_rejected(&forger, root, &n, TreeFault::Order);
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
    // Every layer links twice to the one below: 2^30 paths from the root.
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
fn a_node_that_was_rejected_is_rejected_again() {
    let [a, b, c] = forged_keys([0, 1, 0]);
    let mut forger = Forger::default();
    let flat = forger.node(None, &[(&a, None), (&b, None), (&c, None)]);
    let wrong_side = forger.node(None, &[(&c, None)]);
    let swapped = forger.node(Some(wrong_side), &[(&b, None)]);
    let wrong_layer = forger.node(None, &[(&b, None)]);
    let [.., d] = forged_keys([0, 1, 0, 1]);
    let same_layer = forger.node(Some(wrong_layer), &[(&d, None)]);
    let source = forger.source();
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
    let source = forger.source();
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
        let source = forger.source();
        let error = Tree::load_canonical(root, &source, &TreeLimits::default()).unwrap_err();
        let expected = if wrong < missing {
            (Some(low[wrong]), TreeFault::Layer)
        } else {
            (Some(low[missing]), TreeFault::Missing)
        };
        assert_eq!((error.cid, error.fault), expected, "wrong {wrong}, missing {missing}");
    }
}
