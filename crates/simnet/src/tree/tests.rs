use std::collections::{BTreeMap, BTreeSet};

use codec::Cid;
use codec::cid::Codec;

use super::reference::{self, Built, KNOWN_ROOTS, KNOWN_VALUE};
use super::*;
use crate::random::{Random, Seed};

#[test]
fn both_implementations_have_the_known_roots() {
    let value: Cid = KNOWN_VALUE.parse().expect("a CID");
    for (rkeys, root) in KNOWN_ROOTS {
        let records: BTreeMap<String, Cid> = rkeys
            .split_whitespace()
            .map(|short| (format!("com.example.record/3jqfcqzm{short}2j"), value))
            .collect();
        assert_eq!(build(&records).root().to_string(), root, "{rkeys}");
        assert_eq!(tree(&records).root().to_string(), root, "{rkeys}");
    }
}

#[test]
fn after_any_edits_the_tree_equals_the_reference() {
    let mut random = Seed::new(1, "edits").stream(0);
    let keys = keys_of_all_heights(&mut random);
    let mut records = BTreeMap::new();
    let mut kept = tree(&records);
    let mut before = build(&records);
    for round in 0..400 {
        // The tree alternately grows towards all keys and shrinks towards none.
        let growing = (round / 100) % 2 == 0;
        let mut moved = BTreeSet::new();
        for _ in 0..random.between(1, 4) {
            let key = random.pick(&keys).as_str();
            let value = Cid::of(Codec::DagCbor, &random.next_u64().to_be_bytes());
            if random.chance(if growing { 8 } else { 2 }, 10) {
                assert_eq!(kept.insert(key, value), records.insert(key.to_owned(), value));
            } else {
                assert_eq!(kept.remove(key), records.remove(key));
            }
            moved.insert(key);
        }
        let rehashed = kept.rehash();
        let after = build(&records);
        assert_eq!(rehashed.root, after.root(), "round {round}");
        assert_eq!(cids(&rehashed.new_nodes), difference(&after, &before), "round {round}");
        let proof = kept.covering_proof(moved.iter().copied());
        assert!(proof.keys().eq(&after.covering_proof(moved)), "round {round}");
        before = after;
    }
}

#[test]
fn a_walk_visits_each_node_and_record_once_in_key_order() {
    let mut random = Seed::new(1, "walk").stream(0);
    let value: Cid = KNOWN_VALUE.parse().expect("a CID");
    let keys = keys_of_all_heights(&mut random);
    let records: BTreeMap<String, Cid> = keys.into_iter().map(|key| (key, value)).collect();
    let (mut nodes, mut walked) = (Vec::new(), Vec::new());
    let kept = tree(&records);
    kept.walk(&mut |visit| match visit {
        TreeItem::Node(node) => nodes.push(node.cid),
        TreeItem::Record(entry) => walked.push(entry.key.to_string()),
    });
    assert!(walked.iter().eq(records.keys()));
    assert_eq!(nodes[0], kept.root());
    let built = build(&records);
    assert_eq!(nodes.len(), built.nodes().len());
    assert_eq!(BTreeSet::from_iter(nodes), built.nodes().keys().copied().collect());
}

#[test]
#[should_panic(expected = "records are sorted by key")]
fn records_out_of_order_panic() {
    let value: Cid = KNOWN_VALUE.parse().expect("a CID");
    let entry = |key: &str| TreeEntry { key: key.into(), value };
    Tree::new(vec![entry("b/1"), entry("a/1")]);
}

/// 150 keys, with great heights over-represented so that a small tree has many layers.
fn keys_of_all_heights(random: &mut Random) -> Vec<String> {
    let mut wanted = [60, 30, 25, 20, 10, 5];
    let mut keys = Vec::new();
    while wanted.iter().any(|left| *left > 0) {
        let key = format!("com.example.record/{:x}", random.below(1 << 40));
        let height = usize::from(key_height(&key));
        if wanted.get(height).is_some_and(|left| *left > 0) {
            wanted[height] -= 1;
            keys.push(key);
        }
    }
    keys
}

fn build(records: &BTreeMap<String, Cid>) -> Built {
    let records: Vec<(&str, Cid)> =
        records.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    reference::build(&records)
}

fn tree(records: &BTreeMap<String, Cid>) -> Tree {
    let entry =
        |(key, value): (&String, &Cid)| TreeEntry { key: key.as_str().into(), value: *value };
    Tree::new(records.iter().map(entry).collect())
}

fn difference(after: &Built, before: &Built) -> BTreeSet<Cid> {
    let known = before.nodes();
    after.nodes().keys().copied().filter(|cid| !known.contains_key(cid)).collect()
}

fn cids(blocks: &[std::sync::Arc<crate::block::Block>]) -> BTreeSet<Cid> {
    blocks.iter().map(|block| block.cid).collect()
}
