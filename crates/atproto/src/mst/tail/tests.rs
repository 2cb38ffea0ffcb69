use std::collections::BTreeMap;
use std::sync::LazyLock;

use codec::cid::Codec;
use codec::{AnyCid, Cid};
use proptest::prelude::*;

use crate::mst::reference::{Records, build};
use crate::mst::{Limit, MAX_NODE_ENTRIES, Tree, TreeFault, key_height, key_heights};

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

/// A tree, what must be in it, and its blocks when it was made or last asked for them.
struct Tried<'b> {
    tree: Tree<Borrowed<'b>>,
    records: Records,
    known: Blocks,
    waited: usize,
}

impl<'b> Tried<'b> {
    /// A tree that is loaded as far as it is needed.
    fn of(records: Records, blocks: &'b Blocks) -> Self {
        let tree = Tree::load_partial(build(&records).root(), borrowed(blocks));
        Self { tree, records, known: blocks.clone(), waited: 0 }
    }

    fn insert(&mut self, key: Vec<u8>, value: Cid) {
        let before = self.tree.insert(&key, value).unwrap();
        assert_eq!(before, self.records.insert(key, value.into()));
        self.waited += usize::from(self.tree.tail.is_some());
    }

    fn check_root(&mut self) {
        assert_eq!(self.tree.root(), build(&self.records).root());
    }

    /// The root, while what waits goes on waiting.
    fn check_root_of_copy(&self) {
        assert_eq!(self.tree.clone().root(), build(&self.records).root(), "{}", self.records.len());
    }

    fn check_key(&mut self, key: &[u8]) {
        let found = self.tree.get(key).unwrap().map(AnyCid::from);
        assert_eq!(found.as_ref(), self.records.get(key));
    }

    /// What is handed out is what the tree has now and had not before, each block once.
    fn check_blocks(&mut self) {
        let new = self.tree.collect_blocks();
        let before = std::mem::replace(&mut self.known, build(&self.records).blocks);
        let is_new = |(cid, _): &(&Cid, &Vec<u8>)| !before.contains_key(*cid);
        assert_eq!(new.len(), self.known.iter().filter(is_new).count());
        assert!(new.iter().all(|(cid, block)| self.known.get(cid) == Some(block)));
        assert!(new.iter().all(|(cid, _)| !before.contains_key(cid)));
    }

    fn check_all(&mut self) {
        self.check_root_of_copy();
        let mut walked = self.tree.iter().map(|record| record.unwrap());
        let records = self.records.iter().map(|(key, value)| (key.clone(), value.clone()));
        assert!(walked.by_ref().eq(records));
    }
}

type Step = fn(&mut Tried<'_>, &[u8], &[u8]);

/// What may be done between two inserts, with a key that is there and one that is not, which is before
/// it in order.
const STEPS: [Step; 12] = [
    |_, _, _| (),
    |tried, _, _| tried.check_root_of_copy(),
    |tried, _, _| tried.check_root(),
    |tried, there, absent| [there, absent].into_iter().for_each(|key| tried.check_key(key)),
    |tried, there, absent| {
        let found = tried.tree.get_many(&[there, absent]).unwrap();
        assert_eq!(found[0].map(AnyCid::from).as_ref(), tried.records.get(there));
        assert_eq!(found[1], None);
    },
    |tried, there, absent| {
        assert_eq!(tried.tree.remove(there), Ok(tried.records.remove(there)));
        assert_eq!(tried.tree.remove(absent), Ok(None));
    },
    |tried, _, absent| tried.insert(absent.to_vec(), value(1)),
    |tried, there, _| tried.insert(there.to_vec(), value(2)),
    |tried, there, _| {
        let last = tried.records.keys().next_back().unwrap().clone();
        assert_eq!(tried.tree.remove(&last), Ok(tried.records.remove(&last)));
        tried.check_key(there);
    },
    |tried, _, _| tried.check_all(),
    |tried, there, _| {
        let proof: Blocks = tried.tree.record_proof(there).unwrap().into_iter().collect();
        let mut partial = Tree::load_partial(tried.tree.root(), borrowed(&proof));
        let found = partial.get(there).unwrap().map(AnyCid::from);
        assert_eq!(found.as_ref(), tried.records.get(there));
    },
    |tried, _, _| tried.check_blocks(),
];

fn of_none() -> Blocks {
    build(&Records::new()).blocks
}

#[test]
fn keys_in_order_make_the_tree_of_their_records_whatever_happens_between() {
    let none = of_none();
    for step in STEPS {
        let mut tried = Tried::of(Records::new(), &none);
        for at in (0..2_400).step_by(2) {
            tried.insert(key(at), value(at));
            // More and more seldom, so that the tail begins anew at many places.
            if at > 0 && at.is_power_of_two() || at % 100 == 96 || at % 700 < 40 {
                step(&mut tried, &key(at), &key((at / 2) | 1));
            }
        }
        assert!(tried.waited > 100, "{} inserts waited", tried.waited);
        tried.check_all();
    }
}

/// The nodes that the first few keys made, one by one, are below nodes that close much later, when
/// there are enough of their layer.
#[test]
fn the_tree_of_every_so_many_keys_in_order_is_the_one_built_anew() {
    let none = of_none();
    let mut tried = Tried::of(Records::new(), &none);
    for at in 0..6_000 {
        tried.insert(key(at), value(at));
        if at < 100 || at % 61 == 0 {
            tried.check_root_of_copy();
        }
    }
    assert_eq!(tried.waited, 6_000 - 8);
}

/// Nodes beside the right edge of a tree that is there have names only if someone asked.
#[test]
fn a_tree_made_in_no_order_goes_on_in_order() {
    let none = of_none();
    for first in [1, 2, 3, 10, 100, 1_000] {
        let mut tried = Tried::of(Records::new(), &none);
        for at in (0..first).map(|at| at * 389 % 1_009) {
            tried.insert(key(at), value(at));
        }
        for at in 1_009..3_000 {
            tried.insert(key(at), value(at));
        }
        tried.check_blocks();
        tried.check_all();
    }
}

#[test]
fn a_loaded_tree_goes_on_at_its_end_and_hands_out_what_is_new() {
    let records: Records = (0..500).map(|at| (key(at), value(at).into())).collect();
    let blocks = build(&records).blocks;
    let mut tried = Tried::of(records, &blocks);
    for at in 500..3_000 {
        tried.insert(key(at), value(at));
    }
    assert!(tried.tree.tail.is_some());
    tried.check_blocks();
    tried.check_all();
    let source = borrowed(&tried.known);
    let root = tried.tree.root();
    let mut loaded = Tree::load_canonical(root, source, &Default::default()).unwrap();
    assert_eq!(loaded.iter().count(), 3_000);
}

#[test]
fn a_node_that_is_full_refuses_what_comes_behind_and_keeps_what_it_has() {
    let mut low = (0..).map(key).filter(|key| key_height(key) == 0);
    let mut tree = Tree::empty();
    for key in low.by_ref().take(MAX_NODE_ENTRIES) {
        assert_eq!(tree.insert(&key, value(0)), Ok(None));
    }
    let before = tree.root();
    for key in low.by_ref().take(20) {
        let fault = tree.insert(&key, value(0)).unwrap_err().fault;
        assert_eq!(fault, TreeFault::Limit(Limit::NodeEntries));
    }
    assert_eq!(tree.root(), before);
    assert_eq!(tree.iter().count(), MAX_NODE_ENTRIES);
}

/// The heights of the first keys.
static HEIGHTS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let keys: Vec<Vec<u8>> = (0..300_000).map(key).collect();
    key_heights(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>())
});

/// Keys inserted in order, whose heights repeat a pattern, and what is done behind them.
#[derive(Clone, Debug)]
struct Run {
    heights: Vec<u8>,
    len: usize,
    step: usize,
    /// Which key is the one that is there, among all.
    there: prop::sample::Index,
}

impl Run {
    /// The keys, behind `last`: as many as there are.
    fn keys(&self, mut last: usize) -> Vec<usize> {
        let heights = self.heights.iter().cycle().take(self.len);
        let next = |height: &u8| {
            last += 2 + HEIGHTS.get(last + 2..)?.iter().step_by(2).position(|h| h == height)? * 2;
            Some(last)
        };
        heights.map_while(next).collect()
    }
}

/// Flat trees, as they are, steep ones, those with gaps between layers, in short runs and long ones.
fn any_run() -> impl Strategy<Value = Run> {
    let heights = prop_oneof![
        3 => prop::collection::vec(prop_oneof![12 => Just(0), 3 => Just(1), 1 => Just(2)], 64),
        2 => prop::collection::vec(0..4u8, 1..7),
        1 => prop::collection::vec(prop_oneof![9 => Just(0), 1 => 2..6u8], 1..20),
        1 => Just(vec![0]),
    ];
    let len = prop_oneof![2 => 1..12usize, 2 => 12..60usize, 2 => 60..900usize];
    (heights, len, 0..STEPS.len(), any::<prop::sample::Index>())
        .prop_map(|(heights, len, step, there)| Run { heights, len, step, there })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn keys_of_any_heights_in_order_with_anything_between_make_the_tree_of_their_records(
        loaded in any_run(),
        is_loaded in any::<bool>(),
        runs in prop::collection::vec(any_run(), 1..16),
    ) {
        let of_run = |keys: &[usize]| keys.iter().map(|at| (key(*at), value(*at).into())).collect();
        let first = if is_loaded { loaded.keys(0) } else { Vec::new() };
        let mut last = first.last().copied().unwrap_or(0);
        let records: Records = of_run(&first);
        let blocks = build(&records).blocks;
        let mut tried = Tried::of(records, &blocks);
        for run in &runs {
            for at in run.keys(last) {
                tried.insert(key(at), value(at));
                last = at;
            }
            if !tried.records.is_empty() {
                let there = run.there.index(tried.records.len());
                let there = tried.records.keys().nth(there).unwrap().clone();
                // Keys that come in order are even.
                let absent = (1..).step_by(2).map(key).find(|key| !tried.records.contains_key(key));
                STEPS[run.step](&mut tried, &there, &absent.unwrap());
            }
        }
        tried.check_all();
        tried.check_blocks();
    }
}
