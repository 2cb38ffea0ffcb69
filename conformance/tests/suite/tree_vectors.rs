//! Trees equal external test vectors and a reference construction.

use std::collections::{BTreeMap, BTreeSet};

use atproto::commit::Commit;
use atproto::corpus;
use atproto::event::{Action, Decoder, Event, Options};
use atproto::mst::inversion::{Inversion, InversionFault, Inverter, RecordOp, invert};
use atproto::mst::{
    Change, Tree, TreeFault, TreeLimits, diff, key_height, key_heights, node::Node,
};
use codec::cid::Codec;
use codec::{AnyCid, Cid, CidRef, car};
use serde_json::Value as Json;
use simnet::random::Seed;
use simnet::tree::reference;
use wireproof_conformance::{Folder, fixtures};

type Blocks<'a> = BTreeMap<Cid, &'a [u8]>;

fn json(data: &Folder, path: &str) -> Vec<Json> {
    serde_json::from_str(&data.text(path)).unwrap()
}

fn text(value: &Json) -> &str {
    value.as_str().expect("text")
}

fn cid(value: &Json) -> Cid {
    text(value).parse().expect("a CID")
}

fn texts(value: &Json) -> Vec<&str> {
    value.as_array().expect("an array").iter().map(text).collect()
}

fn cids(value: &Json) -> BTreeSet<Cid> {
    value.as_array().expect("an array").iter().map(cid).collect()
}

fn some_record() -> Cid {
    "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454".parse().unwrap()
}

#[test]
fn keys_have_their_published_heights() {
    let data = fixtures!(Captures);
    let cases = json(&data, "atproto/interop/mst/key_heights.json");
    let keys: Vec<&[u8]> = cases.iter().map(|case| text(&case["key"]).as_bytes()).collect();
    let heights: Vec<u64> = cases.iter().map(|case| case["height"].as_u64().unwrap()).collect();
    assert_eq!(heights.len(), 9);
    assert!(keys.iter().map(|key| u64::from(key_height(key))).eq(heights.iter().copied()));
    assert!(key_heights(&keys).into_iter().map(u64::from).eq(heights));
}

#[test]
fn neighbouring_keys_share_their_published_prefixes() {
    let data = fixtures!(Captures);
    let mut seen = 0;
    for case in json(&data, "atproto/interop/mst/common_prefix.json") {
        let mut keys = [text(&case["left"]), text(&case["right"])];
        keys.sort();
        let [a, b] = keys;
        // Only different keys of one height are adjacent in a node.
        if a.is_empty() || a == b || key_height(a.as_bytes()) != key_height(b.as_bytes()) {
            continue;
        }
        let mut tree = Tree::from_sorted(keys.map(|key| (key, some_record()))).unwrap();
        let (_, root) = tree.collect_blocks().swap_remove(0);
        let second = Node::parse(&root).unwrap().entries().nth(1).unwrap();
        assert_eq!(second.prefix_len as u64, case["len"].as_u64().unwrap(), "{a} {b}");
        seen += 1;
    }
    assert!(seen >= 4, "{seen} pairs stand in one node");
}

#[test]
fn the_example_keys_stand_where_their_names_say() {
    let data = fixtures!(Captures);
    let file = data.text("atproto/interop/mst/example_keys.txt");
    let keys: Vec<&str> = file.lines().collect();
    let records: Vec<(&str, Cid)> = keys.iter().map(|key| (*key, some_record())).collect();
    let built = reference::build(&records);
    for key in &keys {
        assert_eq!(
            u32::from(key_height(key.as_bytes())),
            key[1..2].parse::<u32>().unwrap(),
            "{key}"
        );
    }
    for start in 0..keys.len() {
        let mut tree = Tree::empty();
        for (key, value) in records[start..].iter().chain(&records[..start]) {
            tree.insert(key.as_bytes(), *value).unwrap();
        }
        assert_eq!(tree.root(), built.root());
    }
    let mut tree = Tree::from_sorted(records).unwrap();
    assert_eq!(tree.root(), built.root());
    let blocks = tree.collect_blocks();
    assert!(
        blocks
            .iter()
            .map(|(cid, _)| *cid)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .eq(built.nodes().keys().copied())
    );
}

/// A case of the published commit proofs.
struct CommitProof<'j> {
    case: &'j Json,
    record: Cid,
    adds: Vec<&'j str>,
    dels: Vec<&'j str>,
}

impl<'j> CommitProof<'j> {
    fn of(case: &'j Json) -> Self {
        let (adds, dels) = (texts(&case["adds"]), texts(&case["dels"]));
        Self { case, record: cid(&case["leafValue"]), adds, dels }
    }

    fn moved(&self) -> impl Iterator<Item = &'j [u8]> {
        self.adds.iter().chain(&self.dels).map(|key| key.as_bytes())
    }

    /// The tree after the commit, made by the tree before and the commit.
    fn tree_after(&self) -> Tree {
        let keys = texts(&self.case["keys"]);
        let mut tree =
            Tree::from_unsorted(keys.iter().map(|key| (*key, self.record)).collect()).unwrap();
        assert_eq!(tree.root(), cid(&self.case["rootBeforeCommit"]));
        tree.collect_blocks();
        for key in &self.adds {
            assert_eq!(tree.insert(key.as_bytes(), self.record), Ok(None));
        }
        for key in &self.dels {
            assert_eq!(tree.remove(key.as_bytes()), Ok(Some(self.record.into())));
        }
        assert_eq!(tree.root(), cid(&self.case["rootAfterCommit"]));
        tree
    }

    fn ops(&self) -> Vec<RecordOp<'_>> {
        let record = Some(self.record.as_cid_ref());
        let create = |key: &&'j str| RecordOp {
            action: Action::Create,
            key: key.as_bytes(),
            cid: record,
            prev: None,
        };
        let delete = |key: &&'j str| RecordOp {
            action: Action::Delete,
            key: key.as_bytes(),
            cid: None,
            prev: record,
        };
        self.adds.iter().map(create).chain(self.dels.iter().map(delete)).collect()
    }
}

#[test]
fn published_commits_have_exactly_their_proofs_and_are_undone_with_them_in_any_order() {
    let data = fixtures!(Captures);
    let cases = json(&data, "atproto/interop/firehose/commit-proof-fixtures.json");
    // As published: new nodes, and nodes in the proof.
    let mut counts = Vec::new();
    for case in &cases {
        let proof = CommitProof::of(case);
        let mut tree = proof.tree_after();
        let new: BTreeSet<Cid> = tree.collect_blocks().into_iter().map(|(cid, _)| cid).collect();
        let covering = tree.covering_proof(proof.moved()).unwrap();
        assert_eq!(covering, cids(&case["blocksInProof"]), "{}", case["comment"]);
        assert!(new.is_subset(&covering));
        counts.push((new.len(), covering.len()));

        let mut whole = Tree::from_sorted(tree.iter().map(Result::unwrap)).unwrap();
        let blocks = whole.collect_blocks();
        let source: Blocks<'_> = blocks
            .iter()
            .filter(|(cid, _)| covering.contains(cid))
            .map(|(cid, block)| (*cid, &block[..]))
            .collect();
        each_order(&mut proof.ops(), 0, &mut |ops| {
            assert_undone_only_with_its_proof(case, &source, ops);
        });
    }
    assert_eq!(counts, [(5, 5), (5, 5), (1, 3), (1, 5), (7, 7), (3, 3)]);
}

fn assert_undone_only_with_its_proof(case: &Json, source: &Blocks<'_>, ops: &[RecordOp<'_>]) {
    let (before, after) = (cid(&case["rootBeforeCommit"]), cid(&case["rootAfterCommit"]));
    assert_eq!(invert(after, source, ops), Ok(before), "{}", case["comment"]);
    let mut needed = 0;
    for missing in source.keys() {
        let mut less = source.clone();
        less.remove(missing);
        match invert(after, &less, ops) {
            Ok(root) => assert_eq!(root, before, "{}", case["comment"]),
            Err(error) => {
                let InversionFault::Tree(error) = error.fault else { panic!("{error}") };
                assert_eq!((error.fault, error.cid), (TreeFault::Missing, Some(*missing)));
                needed += 1;
            }
        }
    }
    assert!(needed > 0, "without {} the commit is undone", source.len());
}

fn each_order<T>(items: &mut [T], fixed: usize, visit: &mut impl FnMut(&[T])) {
    if fixed == items.len() {
        return visit(items);
    }
    for next in fixed..items.len() {
        items.swap(fixed, next);
        each_order(items, fixed + 1, visit);
        items.swap(fixed, next);
    }
}

const PAIRS: &str = "atproto/mst/mst-test-suite";

fn archive(data: &Folder, path: &Json) -> Vec<u8> {
    data.bytes(&format!("{PAIRS}/{}", text(path).trim_start_matches("./")))
}

fn open(archive: &[u8]) -> (Cid, Blocks<'_>) {
    let archive = car::read(archive, &car::Options::default()).unwrap();
    let root = archive.roots.iter().next().and_then(CidRef::to_cid).unwrap();
    let blocks = archive.blocks.iter().map(|block| (block.cid.to_cid().unwrap(), block.data));
    (root, blocks.collect())
}

#[test]
fn published_pairs_of_trees_differ_as_they_say_and_lead_back() {
    let data = fixtures!(Captures);
    let cases = data.text(&format!("{PAIRS}/mst-diff.jsonl"));
    let mut seen = 0;
    for line in cases.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let [a, b] = ["mst_a", "mst_b"].map(|side| archive(&data, &case["inputs"][side]));
        let ((root_a, blocks_a), (root_b, blocks_b)) = (open(&a), open(&b));
        let results = &case["results"];
        let load =
            |root, blocks| Tree::load_canonical(root, blocks, &TreeLimits::default()).unwrap();
        let (mut old, mut new) = (load(root_a, &blocks_a), load(root_b, &blocks_b));
        let found = diff(&mut old, &mut new).unwrap();
        assert_eq!(found.created_nodes, cids(&results["created_nodes"]), "{}", case["path"]);
        assert_eq!(found.deleted_nodes, cids(&results["deleted_nodes"]), "{}", case["path"]);
        let ops = results["record_ops"].as_array().unwrap();
        assert_eq!(found.changes.len(), ops.len());
        for (change, op) in found.changes.iter().zip(ops) {
            assert_eq!(change.key, text(&op["rpath"]).as_bytes());
            assert_eq!(
                change.old.as_ref().map(|cid| cid.to_string()).as_deref(),
                op["old_value"].as_str()
            );
            assert_eq!(
                change.new.as_ref().map(|cid| cid.to_string()).as_deref(),
                op["new_value"].as_str()
            );
        }

        // The one becomes the other by these operations, and makes these nodes.
        for change in &found.changes {
            match &change.new {
                Some(record) => old.insert(&change.key, record.clone()).unwrap(),
                None => old.remove(&change.key).unwrap(),
            };
        }
        assert_eq!(old.root(), root_b);
        let made: BTreeSet<Cid> = old.collect_blocks().into_iter().map(|(cid, _)| cid).collect();
        assert_eq!(made, found.created_nodes, "{}", case["path"]);

        let moved: Vec<_> = found
            .changes
            .iter()
            .map(|Change { key, old, new }| {
                let blessed = |cid: &Option<AnyCid>| cid.as_ref().and_then(AnyCid::to_cid);
                (key, blessed(old), blessed(new))
            })
            .collect();
        let undos: Vec<RecordOp<'_>> =
            moved.iter().map(|(key, prev, now)| undo(key, prev.as_ref(), now.as_ref())).collect();
        let only = |names: BTreeSet<Cid>| -> Blocks<'_> {
            names.into_iter().map(|cid| (cid, blocks_b[&cid])).collect()
        };
        let covering =
            new.covering_proof(found.changes.iter().map(|change| &change.key[..])).unwrap();
        assert_eq!(invert(root_b, only(covering), &undos), Ok(root_a), "{}", case["path"]);
        let inductive = only(cids(&results["inductive_proof_nodes"]));
        // Their smallest proofs suffice, too, in an order that is found.
        assert_eq!(invert(root_b, &inductive, &undos), Ok(root_a), "{}", case["path"]);
        seen += 1;
    }
    assert_eq!(seen, 1024);
}

#[test]
fn captured_commits_lead_back_to_the_trees_that_they_state() {
    let file = fixtures!(Captures).bytes("pds/frames.bin");
    let frames = corpus::read(&file).unwrap();
    let mut decoders: Vec<Decoder> =
        frames.iter().map(|_| Decoder::new(Options::default())).collect();
    let commits: Vec<_> = decoders
        .iter_mut()
        .zip(&frames)
        .filter_map(|(decoder, frame)| match decoder.decode(frame).unwrap() {
            Event::Commit(commit) => Some(commit),
            _ => None,
        })
        .collect();
    let sources: Vec<Blocks<'_>> = commits
        .iter()
        .map(|commit| {
            commit.blocks.iter().filter_map(|b| Some((b.cid.to_cid()?, b.data))).collect()
        })
        .collect();
    let ops: Vec<Vec<RecordOp<'_>>> =
        commits.iter().map(|commit| commit.ops.iter().map(RecordOp::from).collect()).collect();
    let inversions: Vec<Inversion<'_, '_, &Blocks<'_>>> = sources
        .iter()
        .zip(&commits)
        .zip(&ops)
        .map(|((source, commit), ops)| {
            let root = Commit::parse(source[&commit.commit]).unwrap().data;
            Inversion { root, source, ops }
        })
        .collect();
    let mut inverter = Inverter::new();
    let mut stated = 0;
    for (some, commits) in inversions.chunks(100).zip(commits.chunks(100)) {
        for ((answer, inversion), commit) in
            inverter.invert_batch(some).iter().zip(some).zip(commits)
        {
            assert_eq!(*answer, invert(inversion.root, inversion.source, inversion.ops));
            // The first commit of an account has no previous tree.
            if let Some(before) = commit.prev_data {
                assert_eq!(*answer, Ok(before));
                stated += 1;
            }
        }
    }
    assert_eq!((stated, commits.len()), (3400, 3410));
}

#[test]
fn a_changing_tree_is_the_plain_one_after_every_commit() {
    let mut random = Seed::new(1, "changing tree").stream(0);
    let mut records: BTreeMap<String, Cid> = BTreeMap::new();
    let mut tree = Tree::empty();
    let mut inverter = Inverter::new();
    for round in 0..300 {
        let before = plain(&records);
        let mut written: BTreeMap<String, (Option<Cid>, Option<Cid>)> = BTreeMap::new();
        for _ in 0..random.between(1, 6) {
            let key = format!("com.example.record/{}", random.below(400));
            let value = Cid::of(Codec::DagCbor, &random.next_u64().to_be_bytes());
            // By turns the tree grows and shrinks.
            let stays = random.chance(if (round / 100) % 2 == 0 { 8 } else { 3 }, 10);
            let prev = records.remove(&key);
            let now = stays.then_some(value);
            records.extend(now.map(|now| (key.clone(), now)));
            let changed = match now {
                Some(now) => tree.insert(key.as_bytes(), now),
                None => tree.remove(key.as_bytes()),
            };
            assert_eq!(changed, Ok(prev.map(Into::into)));
            written.entry(key).or_insert((prev, None)).1 = now;
        }
        written.retain(|_, (prev, now)| prev != now);
        let after = plain(&records);
        assert_eq!(tree.root(), after.root(), "round {round}");
        let made: BTreeSet<Cid> = tree.collect_blocks().into_iter().map(|(cid, _)| cid).collect();
        let new = after.nodes().keys().copied().filter(|cid| !before.nodes().contains_key(cid));
        assert!(made.into_iter().eq(new), "round {round}");
        let keys = || written.keys().map(String::as_str);
        let proof = tree.covering_proof(keys().map(str::as_bytes)).unwrap();
        assert_eq!(proof, after.covering_proof(keys()), "round {round}");

        let nodes = after.nodes();
        let source: Blocks<'_> = proof.iter().map(|cid| (*cid, &nodes[cid][..])).collect();
        let ops: Vec<RecordOp<'_>> = written
            .iter()
            .map(|(key, (prev, now))| undo(key.as_bytes(), prev.as_ref(), now.as_ref()))
            .collect();
        let commit = Inversion { root: after.root(), source: &source, ops: &ops };
        assert_eq!(inverter.invert_batch(&[commit]), [Ok(before.root())], "round {round}");
    }
}

fn plain(records: &BTreeMap<String, Cid>) -> reference::Built {
    let records: Vec<(&str, Cid)> = records.iter().map(|(key, cid)| (key.as_str(), *cid)).collect();
    reference::build(&records)
}

fn undo<'a>(key: &'a [u8], prev: Option<&'a Cid>, now: Option<&'a Cid>) -> RecordOp<'a> {
    let action = match (now, prev) {
        (Some(_), None) => Action::Create,
        (Some(_), Some(_)) => Action::Update,
        _ => Action::Delete,
    };
    RecordOp { action, key, cid: now.map(Cid::as_cid_ref), prev: prev.map(Cid::as_cid_ref) }
}
