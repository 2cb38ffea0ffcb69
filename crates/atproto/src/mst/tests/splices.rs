//! Commits inverted in the bytes of their nodes, against the arena.

use std::collections::BTreeMap;

use codec::cid::Codec;
use codec::{AnyCid, Cid, CidRef};
use proptest::prelude::*;

use super::forger::{Forger, forged_keys};
use super::support::*;
use crate::mst::inversion::{Inversion, Inverter, RecordOp};
use crate::mst::key_height;
use crate::mst::node::Writer;
use crate::mst::reference::Built;

type Source<'b> = BTreeMap<Cid, &'b [u8]>;

/// Inverts commits in both ways, and returns the roots of the spliced commits.
#[track_caller]
fn check(commits: &[Inversion<'_, '_, &Source<'_>>]) -> Vec<Option<Cid>> {
    let mut inverter = Inverter::new();
    let all: Vec<_> = commits.iter().collect();
    let expected = inverter.invert_in_arena(&all);
    let spliced = inverter.splice(commits);
    for (expected, spliced) in expected.iter().zip(&spliced) {
        assert!(
            spliced.is_none_or(|root| *expected == Ok(root)),
            "{expected:?}, spliced {spliced:?}"
        );
    }
    assert_eq!(inverter.invert_batch(commits), expected);
    spliced
}

/// Undoes one edit of a tree with all of its nodes; returns whether it was spliced.
#[track_caller]
fn is_spliced(before: &Records, after: &Records) -> bool {
    let (built, expected) = (build(after), build(before).root());
    let edit = before.iter().chain(after).find(|(key, _)| before.get(*key) != after.get(*key));
    let (key, _) = edit.expect("the records differ");
    let (cid, prev) = (after.get(key).cloned(), before.get(key).cloned());
    let (source, ops) = (blocks_of(&built), [undo(key, &cid, &prev)]);
    let spliced = check(&[Inversion { root: built.root(), source: &source, ops: &ops }]);
    assert!(spliced[0].is_none_or(|root| root == expected));
    spliced[0].is_some()
}

#[test]
fn each_edit_of_each_small_tree_is_undone_and_most_are_spliced() {
    let (mut spliced, mut all) = (0, 0);
    for heights in HEIGHTS {
        let keys = keys_of_heights(&heights);
        for bits in 1..1 << keys.len() {
            let after = subset(&keys, bits);
            for key in &keys {
                let mut before = after.clone();
                if before.remove(key).is_none() {
                    before.insert(key.clone(), value(50));
                }
                spliced += usize::from(is_spliced(&before, &after));
                all += 1;
                if after.contains_key(key) {
                    before.insert(key.clone(), value(50));
                    assert!(is_spliced(&before, &after), "an update");
                    all += 1;
                    spliced += 1;
                }
            }
        }
    }
    assert!(spliced * 3 > all * 2, "{spliced} of {all}");
}

#[test]
fn creates_with_children_on_both_sides_and_alone_in_their_nodes_are_spliced() {
    let keys = keys_of_heights(&[3, 0, 1, 0, 2, 0, 1, 0, 3]);
    let all = subset(&keys, (1 << keys.len()) - 1);
    for created in [1, 2, 4, 6] {
        for gone in 0..1 << keys.len() {
            let is_there = |index: usize| gone >> index & 1 == 0;
            if [0, keys.len() - 1, created].into_iter().all(is_there) {
                let after: Records = (0..keys.len())
                    .filter(|index| is_there(*index))
                    .map(|index| (keys[index].clone(), all[&keys[index]].clone()))
                    .collect();
                let mut before = after.clone();
                before.remove(&keys[created]);
                assert!(is_spliced(&before, &after), "{created} without {gone:b}");
            }
        }
    }
}

#[test]
fn a_node_with_more_entries_than_are_usual_is_left_to_the_arena() {
    for len in 20..28 {
        let keys = keys_of_heights(&vec![0; len]);
        let after = subset(&keys, (1 << len) - 1);
        let mut before = after.clone();
        before.remove(&keys[3]);
        assert_eq!(is_spliced(&before, &after), len <= 23, "a create, {len}");
        assert_eq!(is_spliced(&after, &before), len <= 23, "a delete, {len}");
    }
}

#[test]
fn two_nodes_are_joined_up_to_the_usual_number_of_entries() {
    for (left, right) in [(11, 12), (1, 22), (22, 1), (12, 12), (1, 23), (23, 1), (23, 0), (0, 23)]
    {
        let heights = [&[1][..], &vec![0; left], &[1], &vec![0; right]].concat();
        let keys = keys_of_heights(&heights);
        let after: Records = keys.iter().map(|key| (key.clone(), value(0))).collect();
        let mut before = after.clone();
        before.remove(&keys[1 + left]);
        assert_eq!(is_spliced(&before, &after), left + right <= 23, "{left} and {right}");
    }
}

#[test]
fn a_deleted_key_is_put_back_between_keys_without_a_child_in_any_layer() {
    for layer in 0..4 {
        let keys = keys_of_heights(&[layer; 5]);
        let before = subset(&keys, 0b11111);
        for gone in 0..5 {
            let after = subset(&keys, 0b11111 ^ 1 << gone);
            assert!(is_spliced(&before, &after), "key {gone} in layer {layer}");
        }
    }
}

#[test]
fn creates_before_long_keys_are_undone_one_after_the_other() {
    let is_leaf = |key: &Vec<u8>| key_height(key) == 0;
    let start = (b'a'..).map(|letter| vec![letter; 100]).find(is_leaf).unwrap();
    for len in 250..260 {
        let end = vec![b'x'; len - 106];
        let numbered = |number| [&start[..], format!("{number:06}").as_bytes(), &end].concat();
        let mut keys = vec![start.clone()];
        keys.extend((0..).map(numbered).filter(is_leaf).take(4));
        // The first key has shortened the one after it, and that the next.
        for (a, b) in [(0, 1), (0, 2), (1, 2), (2, 4)] {
            let built = build(&subset(&keys, 0b11111));
            let before = build(&subset(&keys, 0b11111 ^ 1 << a ^ 1 << b));
            let records = [a, b].map(|index| Some(value(index as u64)));
            let ops = [undo(&keys[a], &records[0], &None), undo(&keys[b], &records[1], &None)];
            let source = blocks_of(&built);
            let spliced = check(&[Inversion { root: built.root(), source: &source, ops: &ops }]);
            assert_eq!(spliced, [Some(before.root())], "{len} bytes, keys {a} and {b}");
        }
    }
}

#[test]
fn a_node_whose_prefixes_or_keys_break_a_rule_is_left_to_the_arena() {
    let [a, b] = forged_keys([0, 0]);
    let shared = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let record = value(0);
    let inverted = |first: &[u8], prefix_len: usize, second: &[u8]| {
        let mut block = Vec::new();
        let mut writer = Writer::new(&mut block, 2);
        writer.entry(0, first, record.as_cid_ref(), None);
        writer.entry(prefix_len, &second[prefix_len..], record.as_cid_ref(), None);
        writer.finish(None);
        let root = Cid::of(Codec::DagCbor, &block);
        let (source, cid) = (Source::from([(root, &block[..])]), Some(record.clone()));
        let ops = [undo(first, &cid, &None)];
        check(&[Inversion { root, source: &source, ops: &ops }])[0].is_some()
    };
    assert!(inverted(&a, shared, &b));
    assert!(!inverted(&a, shared - 1, &b), "the prefix is not whole");
    assert!(!inverted(&b, shared, &a), "the keys descend");
}

/// A tree of two nodes whose keys take many times as much memory as its blocks, and a key of the lower one.
fn tree_of_long_keys() -> (Built, Vec<u8>) {
    let mut numbered =
        (0u32..).map(|number| [&[b'k'; 240][..], format!("{number:08}").as_bytes()].concat());
    let heights = [vec![0; 20], vec![1; 3]].concat();
    let of_height = |height| numbered.find(|key| key_height(key) == height).unwrap();
    let keys: Vec<Vec<u8>> = heights.into_iter().map(of_height).collect();
    let records: Records = keys.iter().map(|key| (key.clone(), value(0))).collect();
    (build(&records), keys[0].clone())
}

/// Commits that take more memory than the bound.
const MANY: usize = 3_000;

#[test]
fn commits_beyond_the_memory_bound_are_left_to_the_arena_until_the_next_batch() {
    let (built, key) = tree_of_long_keys();
    let (source, record) = (blocks_of(&built), Some(value(0)));
    let ops = [undo(&key, &record, &None)];
    let commits = vec![Inversion { root: built.root(), source: &source, ops: &ops }; MANY];
    let mut inverter = Inverter::new();
    for _ in 0..2 {
        let spliced = inverter.splice(&commits);
        let first_left = spliced.iter().position(Option::is_none).unwrap();
        assert!((MANY / 4..MANY).contains(&first_left), "{first_left}");
        assert!(spliced[first_left..].iter().all(Option::is_none));
    }
}

#[test]
fn a_commit_that_is_left_to_the_arena_takes_no_memory_from_those_after_it() {
    let (built, key) = tree_of_long_keys();
    let (source, [record, other]) = (blocks_of(&built), [0, 1].map(|seed| Some(value(seed))));
    let (sound, wrong) = ([undo(&key, &record, &None)], [undo(&key, &other, &None)]);
    let mut commits = vec![Inversion { root: built.root(), source: &source, ops: &wrong }; MANY];
    commits.push(Inversion { ops: &sound, ..commits[0] });
    let spliced = Inverter::new().splice(&commits);
    assert!(spliced[..MANY].iter().all(Option::is_none) && spliced[MANY].is_some());
}

/// The fault of a commit.
#[derive(Clone, Debug)]
enum Fault {
    None,
    /// Nodes that are missing, by their number modulo the number of all nodes.
    Missing(Vec<usize>),
    /// A byte of a node that is changed.
    Byte {
        node: usize,
        at: usize,
        xor: u8,
    },
    /// A node in the place of another.
    Swapped(usize, usize),
    /// The record of an operation, after or before it.
    Record {
        op: usize,
        is_before: bool,
    },
}

fn any_fault() -> impl Strategy<Value = Fault> {
    let index = || any::<usize>();
    prop_oneof![
        4 => Just(Fault::None),
        1 => proptest::collection::vec(index(), 1..4).prop_map(Fault::Missing),
        2 => (index(), index(), 1..=255u8).prop_map(|(node, at, xor)| Fault::Byte { node, at, xor }),
        1 => (index(), index()).prop_map(|(a, b)| Fault::Swapped(a, b)),
        1 => (index(), any::<bool>()).prop_map(|(op, is_before)| Fault::Record { op, is_before }),
    ]
}

type Edits = BTreeMap<Vec<u8>, u64>;

/// A commit: the root and the nodes after it, and its operations.
struct Case {
    root: Cid,
    nodes: BTreeMap<Cid, Vec<u8>>,
    ops: Vec<(Vec<u8>, Option<AnyCid>, Option<AnyCid>)>,
}

impl Case {
    fn new(before: &Records, edits: &Edits, fault: &Fault) -> Self {
        let mut after = before.clone();
        let mut ops = Vec::new();
        for (key, what) in edits {
            let prev = after.remove(key);
            let cid = (*what > 4 || prev.is_none()).then(|| value(100 + what));
            after.extend(cid.clone().map(|cid| (key.clone(), cid)));
            ops.push((key.clone(), cid, prev));
        }
        let built = build(&after);
        let mut case = Self { root: built.root(), nodes: built.nodes().clone(), ops };
        case.break_by(fault);
        case
    }

    fn break_by(&mut self, fault: &Fault) {
        let cids: Vec<Cid> = self.nodes.keys().copied().collect();
        let cid = |index: &usize| cids[index % cids.len()];
        match fault {
            Fault::None => {}
            Fault::Missing(nodes) => {
                nodes.iter().for_each(|node| drop(self.nodes.remove(&cid(node))))
            }
            Fault::Byte { node, at, xor } => {
                let block = self.nodes.get_mut(&cid(node)).unwrap();
                let at = at % block.len();
                block[at] ^= xor;
            }
            Fault::Swapped(a, b) => {
                let block = self.nodes[&cid(a)].clone();
                self.nodes.insert(cid(b), block);
            }
            Fault::Record { op, is_before } => {
                let at = op % self.ops.len();
                let (_, cid, prev) = &mut self.ops[at];
                let record = if *is_before { prev } else { cid };
                *record = Some(value(7));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_is_wrong_with_a_commit_it_has_the_result_of_the_arena(
        cases in proptest::collection::vec(
            (any_records(), proptest::collection::btree_map(any_key(), 0..10u64, 1..6), any_fault()),
            1..4,
        ),
    ) {
        let cases: Vec<Case> = cases
            .iter()
            .map(|(before, edits, fault)| Case::new(before, edits, fault))
            .collect();
        let sources: Vec<Source<'_>> = cases
            .iter()
            .map(|case| case.nodes.iter().map(|(cid, block)| (*cid, &block[..])).collect())
            .collect();
        let ops: Vec<Vec<RecordOp<'_>>> = cases
            .iter()
            .map(|case| case.ops.iter().map(|(key, cid, prev)| undo(key, cid, prev)).collect())
            .collect();
        let commits: Vec<_> = cases
            .iter()
            .zip(&sources)
            .zip(&ops)
            .map(|((case, source), ops)| Inversion { root: case.root, source, ops })
            .collect();
        check(&commits);
    }

    #[test]
    fn a_value_of_any_kind_is_put_back(
        records in any_records(),
        index in any::<usize>(),
        digest in any::<[u8; 32]>(),
    ) {
        let Some((key, cid)) = records.iter().nth(index % records.len().max(1)) else { return Ok(()) };
        let built = build(&records);
        let source = blocks_of(&built);
        let foreign = [&[0x01, 0x55, 0x1b, 0x20][..], &digest].concat();
        let short = [&[0x01, 0x55, 0x00, 0x08][..], &digest[..8]].concat();
        for prev in [&foreign[..], &short, cid.as_bytes()] {
            let prev = Some(AnyCid::from(CidRef::from_bytes(prev).unwrap()));
            let cid = Some(cid.clone());
            let ops = [undo(key, &cid, &prev)];
            check(&[Inversion { root: built.root(), source: &source, ops: &ops }]);
        }
    }
}

#[test]
fn what_one_commit_searched_does_not_decide_which_nodes_of_the_next_are_read() {
    let [a, b, c, d, e] = forged_keys([0, 0, 1, 1, 0]);
    let mut forger = Forger::default();
    let left = forger.node(None, &[(&a, None), (&b, None)]);
    // A key of layer 1 in layer 0, next to the path of the commit.
    let wrong = forger.node(None, &[(&d, None)]);
    let root = forger.node(Some(left), &[(&c, Some(wrong))]);
    let flat = forger.node(None, &[(&a, None), (&b, None)]);
    let source = forger.source();
    let record = Some(value(0));
    let (deletes, creates) = ([undo(&e, &None, &record)], [undo(&a, &record, &None)]);
    // The first commit deletes a key after all others: searches after it begin at the last slots.
    let first = Inversion { root: flat, source: &source, ops: &deletes };
    let second = Inversion { root, source: &source, ops: &creates };
    let mut inverter = Inverter::new();
    let results = inverter.invert_in_arena(&[&first, &second]);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(inverter.invert_in_arena(&[&second]), results[1..]);
    check(&[first, second]);
}
