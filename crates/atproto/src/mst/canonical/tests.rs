//! Tests that sound trees are walked in key order, and that every broken rule is reported with its node and offset.

use std::collections::{BTreeMap, BTreeSet};

use codec::cid::Codec;
use codec::{AnyCid, Cid};
use proptest::prelude::*;

use super::*;
use crate::mst::node::NodeFault;
use crate::mst::reference::{self, encode_node};
use crate::mst::{MAX_NODE_ENTRIES, key_height};

/// Blocks of a test.
#[derive(Clone, Default)]
struct Blocks(BTreeMap<Cid, Vec<u8>>);

impl<'a> BlockSource<'a> for &'a Blocks {
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.0.get(cid).map(Vec::as_slice)
    }
}

impl Blocks {
    fn add(&mut self, block: Vec<u8>) -> Cid {
        let cid = Cid::of(Codec::DagCbor, &block);
        self.0.insert(cid, block);
        cid
    }

    /// A well-encoded node of any ascending keys.
    fn node(&mut self, left: Option<Cid>, entries: &[(&str, Option<Cid>)]) -> Cid {
        let value = AnyCid::from(value());
        let entries: Vec<_> =
            entries.iter().map(|(key, right)| (key.as_bytes(), &value, *right)).collect();
        self.add(encode_node(left.as_ref(), &entries))
    }

    /// The tree of these keys, by the reference.
    fn tree(&mut self, keys: &[&str]) -> Cid {
        let records: Vec<(&str, Cid)> = keys.iter().map(|key| (*key, value())).collect();
        let built = reference::build(&records);
        self.0.extend(built.nodes().clone());
        built.root()
    }

    fn faults(&self, root: Cid) -> Vec<(Option<Cid>, TreeFault)> {
        let faults = faults(root, self, &TreeLimits::default(), 1000);
        let first = check(root, self, &TreeLimits::default()).err();
        assert_eq!(faults.first().copied(), first, "the first fault ends a check");
        faults.into_iter().map(|error| (error.cid, error.fault)).collect()
    }

    fn only_fault(&self, root: Cid) -> (Option<Cid>, TreeFault) {
        let faults = self.faults(root);
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults[0]
    }

    fn records(&self, root: Cid) -> Vec<String> {
        let mut keys = Vec::new();
        let mut walk = Walk::new(root, self, &TreeLimits::default());
        while let Some(step) = walk.next() {
            if let Step::Record { key, .. } = step.expect("a sound tree") {
                keys.push(String::from_utf8(key.to_vec()).unwrap());
            }
        }
        keys
    }
}

fn value() -> Cid {
    Cid::of(Codec::DagCbor, b"a record")
}

/// Ascending keys, one per height.
fn keys<const N: usize>(heights: [u8; N]) -> [String; N] {
    let mut numbers = 0..;
    heights.map(|height| {
        let mut keys = numbers.by_ref().map(|number| format!("c/{number:07}"));
        keys.find(|key| key_height(key.as_bytes()) == height).expect("numbers enough")
    })
}

#[test]
fn an_empty_tree_is_one_empty_node() {
    let mut blocks = Blocks::default();
    let root = blocks.tree(&[]);
    let summary = check(root, &blocks, &TreeLimits::default()).unwrap();
    assert_eq!(summary, Summary { nodes: 1, records: 0, height: None });
}

#[test]
fn an_empty_node_between_a_key_and_a_deeper_one_is_sound() {
    let mut blocks = Blocks::default();
    let [low, high] = keys([0, 3]);
    let root = blocks.tree(&[&low, &high]);
    let summary = check(root, &blocks, &TreeLimits::default()).unwrap();
    assert_eq!(summary, Summary { nodes: 4, records: 2, height: Some(3) });
    assert_eq!(blocks.records(root), [low, high]);
}

proptest! {
    #[test]
    fn a_tree_is_walked_in_key_order(numbers in proptest::collection::btree_set(0u32..100_000, 0..300)) {
        let keys: Vec<String> = numbers.iter().map(|n| format!("app.test/{n:06}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut blocks = Blocks::default();
        let root = blocks.tree(&keys);
        prop_assert_eq!(blocks.records(root), keys);
        let summary = check(root, &blocks, &TreeLimits::default()).unwrap();
        prop_assert_eq!(summary.nodes, blocks.0.len() as u64);
    }

    #[test]
    fn a_search_proves_presence_and_absence_by_the_nodes_that_it_returns(
        numbers in proptest::collection::btree_set(0u32..3_000, 0..200),
        target in 0u32..3_000,
    ) {
        let keys: Vec<String> = numbers.iter().map(|n| format!("app.test/{n:06}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut blocks = Blocks::default();
        let root = blocks.tree(&keys);
        for target in numbers.iter().copied().take(3).chain([target]) {
            let key = format!("app.test/{target:06}");
            let found = search(root, &blocks, key.as_bytes()).unwrap();
            prop_assert_eq!(found.value.is_some(), numbers.contains(&target));
            let only: BTreeMap<Cid, &[u8]> = found.nodes.iter().copied().collect();
            prop_assert_eq!(&search(root, &only, key.as_bytes()).unwrap(), &found);
            for gone in only.keys() {
                let mut fewer = only.clone();
                fewer.remove(gone);
                let error = search(root, &fewer, key.as_bytes()).unwrap_err();
                prop_assert_eq!((error.cid, error.fault), (Some(*gone), TreeFault::Missing));
            }
        }
    }

    #[test]
    fn a_missing_node_is_the_only_fault_wherever_it_is(numbers in proptest::collection::btree_set(0u32..100_000, 20..60), pick: prop::sample::Index) {
        let keys: Vec<String> = numbers.iter().map(|n| format!("app.test/{n:06}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut blocks = Blocks::default();
        let root = blocks.tree(&keys);
        let gone = *pick.get(&blocks.0.keys().copied().collect::<Vec<_>>());
        blocks.0.remove(&gone);
        prop_assert_eq!(blocks.only_fault(root), (Some(gone), TreeFault::Missing));
    }

    #[test]
    fn a_walk_over_random_bytes_ends(blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..5)) {
        let mut made = Blocks::default();
        let cids: Vec<Cid> = blocks.into_iter().map(|block| made.add(block)).collect();
        let root = made.node(Some(cids[0]), &[("c/0000001", cids.get(1).copied())]);
        let _ = made.faults(root);
    }
}

#[test]
fn keys_in_another_layer_than_their_hash_are_rejected_once_a_node() {
    let mut blocks = Blocks::default();
    let [a, b, c, d] = keys([1, 0, 2, 1]);
    let root = blocks.node(None, &[(&a, None), (&b, None), (&c, None), (&d, None)]);
    assert_eq!(blocks.only_fault(root), (Some(root), TreeFault::Layer));
    let error = check(root, &blocks, &TreeLimits::default()).unwrap_err();
    let block = &blocks.0[&root];
    assert_eq!(key_of(block, error.offset).as_deref(), Some(b.as_bytes()));
}

#[test]
fn a_child_that_skips_a_layer_is_rejected() {
    let mut blocks = Blocks::default();
    let [low, high] = keys([0, 2]);
    let child = blocks.node(None, &[(&low, None)]);
    let root = blocks.node(Some(child), &[(&high, None)]);
    assert_eq!(blocks.only_fault(root), (Some(child), TreeFault::SkippedLayer));
}

#[test]
fn a_child_as_high_as_its_parent_is_rejected() {
    let mut blocks = Blocks::default();
    let [a, b] = keys([2, 2]);
    let child = blocks.node(None, &[(&a, None)]);
    let root = blocks.node(Some(child), &[(&b, None)]);
    assert_eq!(blocks.only_fault(root), (Some(child), TreeFault::Layer));
}

#[test]
fn a_child_of_a_leaf_is_rejected() {
    let mut blocks = Blocks::default();
    let [a, b] = keys([0, 0]);
    let child = blocks.node(None, &[(&a, None)]);
    let root = blocks.node(Some(child), &[(&b, None)]);
    assert_eq!(blocks.only_fault(root), (Some(child), TreeFault::BelowLeaves));
}

#[test]
fn a_subtree_on_the_wrong_side_of_its_neighbor_is_rejected() {
    let [a, b, c] = keys([0, 1, 0]);
    let mut blocks = Blocks::default();
    let too_great = blocks.node(None, &[(&c, None)]);
    let left = blocks.node(Some(too_great), &[(&b, None)]);
    assert_eq!(blocks.only_fault(left), (Some(left), TreeFault::Order));
    let too_small = blocks.node(None, &[(&a, None)]);
    let right = blocks.node(None, &[(&b, Some(too_small))]);
    assert_eq!(blocks.only_fault(right), (Some(too_small), TreeFault::Order));
}

#[test]
fn a_key_after_a_child_is_compared_with_the_last_key_below_it() {
    let [mid, top, last] = keys([1, 2, 0]);
    let mut blocks = Blocks::default();
    let leaf = blocks.node(None, &[(&last, None)]);
    let child = blocks.node(None, &[(&mid, Some(leaf))]);
    let root = blocks.node(Some(child), &[(&top, None)]);
    assert_eq!(blocks.only_fault(root), (Some(root), TreeFault::Order));
}

#[test]
fn an_empty_node_below_the_root_and_an_untrimmed_root_are_rejected() {
    let [a, b] = keys([0, 1]);
    let mut blocks = Blocks::default();
    let empty = blocks.node(None, &[]);
    let root = blocks.node(Some(empty), &[(&b, None)]);
    assert_eq!(blocks.only_fault(root), (Some(empty), TreeFault::EmptyNode));
    let leaf = blocks.node(None, &[(&a, None)]);
    let untrimmed = blocks.node(Some(leaf), &[]);
    assert_eq!(blocks.only_fault(untrimmed), (Some(untrimmed), TreeFault::Untrimmed));
}

#[test]
fn a_malformed_node_costs_only_its_own_subtree() {
    let [a, b, c, d, e] = keys([0, 1, 0, 1, 0]);
    let mut blocks = Blocks::default();
    let left = blocks.add(b"\xa1\x61e\x80".to_vec());
    let mid = blocks.node(None, &[(&a, None), (&c, None)]);
    let right = blocks.node(None, &[(&e, None)]);
    let root = blocks.node(Some(left), &[(&b, Some(mid)), (&d, Some(right))]);
    let faults = blocks.faults(root);
    let shape = TreeFault::Node(NodeFault::Shape);
    assert_eq!(faults, [(Some(left), shape), (Some(mid), TreeFault::Order)]);
}

/// The block of a node whose last byte, the end of field `l`, is another.
fn malformed(block: &[u8]) -> Vec<u8> {
    let (_, rest) = block.split_last().expect("a block");
    [rest, b"\xf5"].concat()
}

#[test]
fn a_malformed_node_has_no_fault_but_that_however_many_keys_are_read_before_it() {
    for count in [1, 2, 255, 256, 257, 600] {
        let mut blocks = Blocks::default();
        // In layer 1, where most of them do not belong.
        let keys: Vec<String> = (0..count).map(|number| format!("b/{number:07}")).collect();
        let entries: Vec<(&str, Option<Cid>)> = keys.iter().map(|key| (&key[..], None)).collect();
        let whole = blocks.node(None, &entries);
        let child = blocks.add(malformed(&blocks.0[&whole].clone()));
        let [top] = self::keys([2]);
        let root = blocks.node(Some(child), &[(&top, None)]);
        let (cid, fault) = blocks.only_fault(root);
        assert_eq!(cid, Some(child), "{count}");
        assert!(matches!(fault, TreeFault::Node(_)), "{count}: {fault}");
    }
}

#[test]
fn no_more_faults_are_collected_than_asked_for() {
    let [a, b, c] = keys([1, 0, 2]);
    let mut blocks = Blocks::default();
    let left = blocks.node(None, &[]);
    let right = blocks.node(None, &[]);
    let root = blocks.node(Some(left), &[(&a, None), (&b, None), (&c, Some(right))]);
    let count = |max| faults(root, &blocks, &TreeLimits::default(), max).len();
    let all = count(usize::MAX);
    assert!(all >= 2);
    assert_eq!(
        (0..=all + 1).map(count).collect::<Vec<_>>(),
        (0..=all).chain([all]).collect::<Vec<_>>()
    );
}

#[test]
fn the_fault_of_a_key_is_at_its_field_whatever_the_length_of_the_key() {
    let [low] = keys([0]);
    for len in [11, 23, 24, 25, 255, 256, 1000] {
        let key = (0..).map(|number| format!("d{number:0>width$}", width = len - 1));
        let key = key.clone().find(|key| key_height(key.as_bytes()) == 1).unwrap();
        let mut blocks = Blocks::default();
        let root = blocks.node(None, &[(&low, None), (&key, None)]);
        let error = check(root, &blocks, &TreeLimits::default()).unwrap_err();
        assert_eq!(error.fault, TreeFault::Layer);
        let (before, at) = blocks.0[&root].split_at(error.offset);
        let head = match len as u16 {
            len @ 0..24 => vec![0x40 | len as u8],
            len @ 24..256 => vec![0x58, len as u8],
            len => [&[0x59][..], &len.to_be_bytes()].concat(),
        };
        assert!(before.ends_with(b"\x61k") && at.starts_with(&head), "{len}");
        assert!(at[head.len()..].starts_with(key.as_bytes()), "{len}");
    }
}

#[test]
fn a_child_that_repeats_a_key_beside_it_is_out_of_order() {
    let [a, b, c] = keys([0, 1, 0]);
    let mut blocks = Blocks::default();
    let before = blocks.node(None, &[(&a, None), (&b, None)]);
    let after = blocks.node(None, &[(&b, None), (&c, None)]);
    let left = blocks.node(Some(before), &[(&b, None)]);
    let right = blocks.node(None, &[(&b, Some(after))]);
    for (root, child, key) in [(left, before, &a), (right, after, &c)] {
        let error = search(root, &blocks, key.as_bytes()).unwrap_err();
        assert_eq!((error.cid, error.fault), (Some(child), TreeFault::Order));
    }
    // The key also has another layer than one of the two nodes.
    let [in_child, out_of_order] = [TreeFault::Layer, TreeFault::Order];
    assert_eq!(blocks.faults(left), [(Some(before), in_child), (Some(left), out_of_order)]);
}

#[test]
fn a_search_rejects_the_faults_that_its_nodes_show() {
    let [a, b, c, d] = keys([0, 1, 0, 1]);
    let mut blocks = Blocks::default();
    let fault = |blocks: &Blocks, root, key: &str| {
        let error = search(root, blocks, key.as_bytes()).unwrap_err();
        (error.cid.unwrap(), error.fault)
    };
    let leaf = blocks.node(None, &[(&c, None)]);
    let wrong_side = blocks.node(Some(leaf), &[(&b, None)]);
    assert_eq!(fault(&blocks, wrong_side, &a), (leaf, TreeFault::Order));
    let other_side = blocks.node(None, &[(&b, None), (&d, Some(leaf))]);
    assert_eq!(fault(&blocks, other_side, "e"), (leaf, TreeFault::Order));
    let mixed = blocks.node(None, &[(&b, None), (&c, None)]);
    assert_eq!(fault(&blocks, mixed, &b), (mixed, TreeFault::Layer));
    let empty = blocks.node(None, &[]);
    let above_empty = blocks.node(Some(empty), &[(&b, None)]);
    assert_eq!(fault(&blocks, above_empty, &a), (empty, TreeFault::EmptyNode));
    let untrimmed = blocks.node(Some(leaf), &[]);
    assert_eq!(fault(&blocks, untrimmed, &c), (untrimmed, TreeFault::Untrimmed));
    let below = blocks.node(None, &[(&a, Some(leaf))]);
    assert_eq!(fault(&blocks, below, &c), (leaf, TreeFault::BelowLeaves));
    let [low, high] = keys([0, 2]);
    let leaf = blocks.node(None, &[(&low, None)]);
    let skipped = blocks.node(Some(leaf), &[(&high, None)]);
    assert_eq!(fault(&blocks, skipped, &low), (leaf, TreeFault::SkippedLayer));
}

#[test]
fn graphs_of_exponential_size_end_at_the_repeated_node() {
    let [low, ..] = keys([0]);
    let mut blocks = Blocks::default();
    let mut node = blocks.node(None, &[(&low, None)]);
    for layer in 1..=10 {
        let [key] = keys([layer]);
        node = blocks.node(Some(node), &[(&key, Some(node))]);
    }
    let mut walk = Walk::new(node, &blocks, &TreeLimits::default());
    let mut steps = 0;
    let mut repeated = BTreeSet::new();
    while let Some(step) = walk.next() {
        steps += 1;
        if let Err(TreeError { cid, fault: TreeFault::Repeated, .. }) = step {
            repeated.insert(cid);
        }
    }
    assert_eq!(repeated.len(), 10);
    assert!(steps < 50, "{steps} steps for eleven nodes");
}

#[test]
fn a_cyclic_source_is_walked_to_an_end() {
    struct Cycle(Vec<u8>);
    impl<'a> BlockSource<'a> for &'a Cycle {
        fn block(&self, _: &Cid) -> Option<&'a [u8]> {
            Some(&self.0)
        }
    }
    let mut blocks = Blocks::default();
    let [key] = keys([1]);
    let cid = blocks.node(Some(value()), &[(&key, Some(value()))]);
    let cycle = Cycle(blocks.0[&cid].clone());
    let found = faults(cid, &cycle, &TreeLimits::default(), 1000);
    let fault = TreeError { cid: Some(value()), offset: 0, fault: TreeFault::Repeated };
    assert_eq!(found, [fault, fault]);
}

#[test]
fn limits_end_the_walk() {
    let [a, b, c] = keys([0, 1, 0]);
    let mut blocks = Blocks::default();
    let root = blocks.tree(&[&a, &b, &c]);
    let limit = |options| check(root, &blocks, &options).unwrap_err().fault;
    let options = TreeLimits::default();
    let nodes = limit(TreeLimits { max_nodes: 2, ..options });
    assert_eq!(nodes, TreeFault::Limit(Limit::Nodes));
    let records = limit(TreeLimits { max_records: 2, ..options });
    assert_eq!(records, TreeFault::Limit(Limit::Records));
    assert!(check(root, &blocks, &TreeLimits { max_nodes: 3, max_records: 3 }).is_ok());
    // Not one fault per record, or node, beyond the limit.
    for few in [TreeLimits { max_records: 1, ..options }, TreeLimits { max_nodes: 1, ..options }] {
        assert_eq!(faults(root, &blocks, &few, 1000).len(), 1);
    }
}

#[test]
fn nodes_without_keys_are_walked_no_deeper_than_there_are_layers() {
    let mut blocks = Blocks::default();
    let mut root = blocks.node(None, &[]);
    for _ in 0..2 * MAX_HEIGHT {
        root = blocks.node(Some(root), &[]);
    }
    let mut walk = Walk::new(root, &blocks, &TreeLimits::default());
    let mut faults = Vec::new();
    while let Some(step) = walk.next() {
        faults.extend(step.err().map(|error| error.fault));
    }
    assert_eq!(faults, [TreeFault::Untrimmed, TreeFault::Layer]);
    assert_eq!(walk.summary().nodes, u64::from(MAX_HEIGHT) + 1);
}

#[test]
fn a_node_of_more_entries_than_a_batch_is_checked_to_the_last() {
    let mut blocks = Blocks::default();
    let all: Vec<String> = (0..2000).map(|number| format!("c/{number:07}")).collect();
    let mut low: Vec<(&str, Option<Cid>)> = all
        .iter()
        .filter(|key| key_height(key.as_bytes()) == 0)
        .map(|key| (key.as_str(), None))
        .collect();
    assert!(low.len() > 1024 && low.len() < MAX_NODE_ENTRIES);
    let sound = blocks.node(None, &low);
    assert_eq!(check(sound, &blocks, &TreeLimits::default()).unwrap().records, low.len() as u64);
    let wrong = "d/last-of-all";
    let wrong = (0..).map(|n| format!("{wrong}{n}")).find(|key| key_height(key.as_bytes()) == 1);
    let wrong = wrong.unwrap();
    low.push((&wrong, None));
    let root = blocks.node(None, &low);
    let error = check(root, &blocks, &TreeLimits::default()).unwrap_err();
    assert_eq!((error.cid, error.fault), (Some(root), TreeFault::Layer));
    assert_eq!(key_of(&blocks.0[&root], error.offset), Some(wrong.into_bytes()));
}

#[test]
fn a_walk_in_an_archive_distinguishes_blocks_as_one_over_a_map_does() {
    let [a, b, c, d] = keys([0, 1, 0, 2]);
    let mut blocks = Blocks::default();
    let root = blocks.tree(&[&a, &b, &c, &d]);
    let mut archive = codec::car::Writer::new(Vec::new(), &[root]).unwrap();
    blocks.0.iter().for_each(|(cid, block)| archive.block(cid, block).unwrap());
    let archive = archive.into_inner();
    let read = codec::car::read(&archive, &codec::car::Options::default()).unwrap();
    let source: BTreeMap<Cid, &[u8]> =
        read.blocks.iter().map(|block| (block.cid.to_cid().unwrap(), block.data)).collect();
    let mut walk = Walk::in_archive(root, &source, &archive, &TreeLimits::default());
    while let Some(step) = walk.next() {
        step.unwrap();
    }
    assert_eq!(walk.summary(), check(root, &blocks, &TreeLimits::default()).unwrap());
    let mut blocks = BlockSet::for_archive(&archive);
    assert!(read.blocks.iter().all(|block| blocks.insert(block.data)));
    assert!(!read.blocks.iter().any(|block| blocks.insert(block.data)));
}
