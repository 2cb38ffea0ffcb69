use std::collections::BTreeMap;
use std::sync::LazyLock;

use codec::cid::Codec;
use codec::{AnyCid, Cid};
use proptest::prelude::*;

use crate::mst::tests::{Records, build};
use crate::mst::{Builder, Limit, MAX_NODE_ENTRIES, Tree, TreeFault, key_height, key_heights};

fn key(number: usize) -> Vec<u8> {
    format!("com.example.post/{number:09}").into_bytes()
}

fn value(number: usize) -> Cid {
    Cid::of(Codec::DagCbor, &number.to_be_bytes())
}

type Blocks = BTreeMap<Cid, Vec<u8>>;
type Borrowed<'b> = BTreeMap<Cid, &'b [u8]>;

fn borrowed(blocks: &Blocks) -> Borrowed<'_> {
    blocks.iter().map(|(cid, block)| (*cid, &block[..])).collect()
}

/// A builder, the records that its tree must have, and the blocks that were known when it was created or
/// last returned its blocks.
struct Checked<'b> {
    builder: Builder<Borrowed<'b>>,
    records: Records,
    known: Blocks,
    /// Inserts after which the append buffer was in use.
    buffered: usize,
}

impl<'b> Checked<'b> {
    /// Continues a partial tree.
    fn of(records: Records, blocks: &'b Blocks) -> Self {
        let tree = Tree::load_partial(build(&records).root(), borrowed(blocks));
        Self { builder: tree.into(), records, known: blocks.clone(), buffered: 0 }
    }

    fn insert(&mut self, key: Vec<u8>, value: Cid) {
        let before = self.builder.insert(&key, value).unwrap();
        assert_eq!(before, self.records.insert(key, value.into()));
        self.buffered += usize::from(self.builder.append_buffer.is_some());
    }

    fn check_root(&mut self) {
        assert_eq!(self.builder.tree().root(), build(&self.records).root());
    }

    /// Checks the root of a copy, without flushing.
    fn check_root_of_copy(&self) {
        let mut tree = self.builder.clone().finish();
        assert_eq!(tree.root(), build(&self.records).root(), "{}", self.records.len());
    }

    fn check_key(&mut self, key: &[u8]) {
        let found = self.builder.tree().get(key).unwrap().map(AnyCid::from);
        assert_eq!(found.as_ref(), self.records.get(key));
    }

    /// Checks that the returned blocks are the new ones since the last call, without duplicates.
    fn check_blocks(&mut self) {
        let new = self.builder.tree().collect_blocks();
        let before = std::mem::replace(&mut self.known, blocks_of(&self.records));
        let is_new = |(cid, _): &(&Cid, &Vec<u8>)| !before.contains_key(*cid);
        assert_eq!(new.len(), self.known.iter().filter(is_new).count());
        assert!(new.iter().all(|(cid, block)| self.known.get(cid) == Some(block)));
        assert!(new.iter().all(|(cid, _)| !before.contains_key(cid)));
    }

    fn check_all(&mut self) {
        self.check_root_of_copy();
        let mut walked = self.builder.tree().iter().map(|record| record.unwrap());
        let records = self.records.iter().map(|(key, value)| (key.clone(), value.clone()));
        assert!(walked.by_ref().eq(records));
    }
}

type Step = fn(&mut Checked<'_>, &[u8], &[u8]);

/// Interruptions between two inserts, given a key that is in the tree and a lesser one that is not.
const STEPS: [Step; 12] = [
    |_, _, _| (),
    |checked, _, _| checked.check_root_of_copy(),
    |checked, _, _| checked.check_root(),
    |checked, there, absent| [there, absent].into_iter().for_each(|key| checked.check_key(key)),
    |checked, there, absent| {
        let found = checked.builder.tree().get_many(&[there, absent]).unwrap();
        assert_eq!(found[0].map(AnyCid::from).as_ref(), checked.records.get(there));
        assert_eq!(found[1], None);
    },
    |checked, there, absent| {
        assert_eq!(checked.builder.tree().remove(there), Ok(checked.records.remove(there)));
        assert_eq!(checked.builder.tree().remove(absent), Ok(None));
    },
    |checked, _, absent| checked.insert(absent.to_vec(), value(1)),
    |checked, there, _| checked.insert(there.to_vec(), value(2)),
    |checked, there, _| {
        let last = checked.records.keys().next_back().unwrap().clone();
        assert_eq!(checked.builder.tree().remove(&last), Ok(checked.records.remove(&last)));
        checked.check_key(there);
    },
    |checked, _, _| checked.check_all(),
    |checked, there, _| {
        let proof: Blocks =
            checked.builder.tree().record_proof(there).unwrap().into_iter().collect();
        let mut partial = Tree::load_partial(checked.builder.tree().root(), borrowed(&proof));
        let found = partial.get(there).unwrap().map(AnyCid::from);
        assert_eq!(found.as_ref(), checked.records.get(there));
    },
    |checked, _, _| checked.check_blocks(),
];

fn blocks_of(records: &Records) -> Blocks {
    build(records).nodes().clone()
}

#[test]
fn ascending_keys_make_the_tree_of_their_records_whatever_interrupts_them() {
    let none = blocks_of(&Records::new());
    for step in STEPS {
        let mut checked = Checked::of(Records::new(), &none);
        for at in (0..16_000).step_by(2) {
            checked.insert(key(at), value(at));
            let is_early = at < 2_400 && (at % 100 == 96 || at % 700 < 40);
            // Often at first, so that the right edge is opened at many keys; then after several full batches.
            if at > 0 && at.is_power_of_two() || is_early || at % 3_300 == 96 {
                step(&mut checked, &key(at), &key((at / 2) | 1));
            }
        }
        assert!(checked.buffered > 100, "{} inserts were buffered", checked.buffered);
        checked.check_all();
    }
}

#[test]
fn a_default_builder_has_the_empty_tree() {
    assert_eq!(Builder::default().finish().root(), Tree::empty().root());
}

#[test]
fn the_first_key_may_be_of_any_height() {
    for height in 0..4 {
        let key = (0..).map(key).find(|key| key_height(key) == height).unwrap();
        let mut builder = Builder::new();
        assert_eq!(builder.insert(&key, value(0)), Ok(None));
        let records = Records::from([(key, value(0).into())]);
        assert_eq!(builder.finish().root(), build(&records).root(), "height {height}");
    }
}

/// Nodes below others that close much later, when their layer has enough for a batch.
#[test]
fn the_trees_of_prefixes_of_ascending_keys_equal_the_reference() {
    let none = blocks_of(&Records::new());
    let mut checked = Checked::of(Records::new(), &none);
    for at in 0..30_000 {
        checked.insert(key(at), value(at));
        if at < 100 || at % 1_501 == 0 {
            checked.check_root_of_copy();
        }
    }
    assert_eq!(checked.buffered, 30_000 - 1, "all but the first, which loads the root");
}

/// Nodes next to the right edge of an existing tree may not be hashed yet.
#[test]
fn a_tree_built_in_no_order_is_continued_in_order() {
    let none = blocks_of(&Records::new());
    for first in [1, 2, 3, 10, 100, 1_000] {
        let mut checked = Checked::of(Records::new(), &none);
        for at in (0..first).map(|at| at * 389 % 1_009) {
            checked.insert(key(at), value(at));
        }
        for at in 1_009..6_000 {
            checked.insert(key(at), value(at));
        }
        checked.check_blocks();
        checked.check_all();
    }
}

#[test]
fn a_loaded_tree_is_continued_at_its_end_and_returns_the_new_blocks() {
    let records: Records = (0..500).map(|at| (key(at), value(at).into())).collect();
    let blocks = blocks_of(&records);
    let mut checked = Checked::of(records, &blocks);
    for at in 500..3_000 {
        checked.insert(key(at), value(at));
    }
    assert!(checked.builder.append_buffer.is_some());
    checked.check_blocks();
    checked.check_all();
    let source = borrowed(&checked.known);
    let root = checked.builder.tree().root();
    let mut loaded = Tree::load_canonical(root, source, &Default::default()).unwrap();
    assert_eq!(loaded.iter().count(), 3_000);
}

#[test]
fn a_full_node_rejects_further_keys_and_keeps_its_own() {
    let mut low = (0..).map(key).filter(|key| key_height(key) == 0);
    let mut builder = Builder::new();
    for key in low.by_ref().take(MAX_NODE_ENTRIES) {
        assert_eq!(builder.insert(&key, value(0)), Ok(None));
    }
    let before = builder.tree().root();
    for key in low.by_ref().take(20) {
        let fault = builder.insert(&key, value(0)).unwrap_err().fault;
        assert_eq!(fault, TreeFault::Limit(Limit::NodeEntries));
    }
    assert_eq!(builder.tree().root(), before);
    assert_eq!(builder.tree().iter().count(), MAX_NODE_ENTRIES);
}

/// The heights of the first keys.
static HEIGHTS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let keys: Vec<Vec<u8>> = (0..300_000).map(key).collect();
    key_heights(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>())
});

/// Ascending keys whose heights repeat a pattern, and the interruption after them.
#[derive(Clone, Debug)]
struct Run {
    heights: Vec<u8>,
    len: usize,
    step: usize,
    /// Picks the key for the interruption.
    there: prop::sample::Index,
}

impl Run {
    /// The keys after `last`, as many as exist.
    fn keys(&self, mut last: usize) -> Vec<usize> {
        let heights = self.heights.iter().cycle().take(self.len);
        let next = |height: &u8| {
            last += 2 + HEIGHTS.get(last + 2..)?.iter().step_by(2).position(|h| h == height)? * 2;
            Some(last)
        };
        heights.map_while(next).collect()
    }
}

/// Heights of usual, steep, gapped and flat trees, in short and long runs.
fn any_run() -> impl Strategy<Value = Run> {
    let heights = prop_oneof![
        3 => prop::collection::vec(prop_oneof![12 => Just(0), 3 => Just(1), 1 => Just(2)], 64),
        2 => prop::collection::vec(0..4u8, 1..7),
        1 => prop::collection::vec(prop_oneof![9 => Just(0), 1 => 2..6u8], 1..20),
        1 => Just(vec![0]),
    ];
    let len = prop_oneof![2 => 1..12usize, 2 => 12..60usize, 2 => 60..900usize,
        1 => 900..4_000usize];
    (heights, len, 0..STEPS.len(), any::<prop::sample::Index>())
        .prop_map(|(heights, len, step, there)| Run { heights, len, step, there })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn ascending_keys_of_any_heights_make_the_tree_of_their_records_whatever_interrupts_them(
        loaded in any_run(),
        is_loaded in any::<bool>(),
        runs in prop::collection::vec(any_run(), 1..16),
    ) {
        let of_run = |keys: &[usize]| keys.iter().map(|at| (key(*at), value(*at).into())).collect();
        let first = if is_loaded { loaded.keys(0) } else { Vec::new() };
        let mut last = first.last().copied().unwrap_or(0);
        let records: Records = of_run(&first);
        let blocks = blocks_of(&records);
        let mut checked = Checked::of(records, &blocks);
        for run in &runs {
            for at in run.keys(last) {
                checked.insert(key(at), value(at));
                last = at;
            }
            if !checked.records.is_empty() {
                let there = run.there.index(checked.records.len());
                let there = checked.records.keys().nth(there).unwrap().clone();
                // Ascending keys are even.
                let absent = (1..).step_by(2).map(key).find(|key| !checked.records.contains_key(key));
                STEPS[run.step](&mut checked, &there, &absent.unwrap());
            }
        }
        checked.check_all();
        checked.check_blocks();
    }
}
