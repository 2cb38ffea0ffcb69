use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use atproto::event::{Action, Block, Commit, Decoder, Event, Options};
use codec::Cid;
use codec::cbor::{self, Encoder, Value};
use codec::cid::CidRef;

use super::*;
use crate::account::AccountHistory;
use crate::keys::PublicKey;
use crate::tree::{Tree, reference};

static QUICK: LazyLock<Corpus> = LazyLock::new(|| generate(&Spec::quick()));
static FULL: LazyLock<Corpus> = LazyLock::new(|| generate(&Spec::default()));

fn generate(spec: &Spec) -> Corpus {
    Corpus::generate(spec, &mut |_, _| {})
}

#[test]
fn the_quick_stream_is_the_pinned_one() {
    let manifest = QUICK.manifest(&QUICK.to_file());
    assert_eq!(manifest.sha256, QUICK_SHA256);
}

#[test]
fn the_full_stream_is_the_pinned_one() {
    let manifest = FULL.manifest(&FULL.to_file());
    assert_eq!(manifest.sha256, FULL_SHA256);
}

#[test]
fn another_seed_gives_other_frames() {
    let other = generate(&Spec { seed: 1, ..Spec::quick() });
    assert!(other.frames().iter().zip(QUICK.frames()).all(|(a, b)| a != b));
}

#[test]
fn progress_ends_at_all_frames() {
    let mut seen = Vec::new();
    Corpus::generate(&Spec::quick(), &mut |done, total| seen.push((done, total)));
    assert!(seen.is_sorted());
    assert_eq!(seen.last(), Some(&(160, 160)));
}

#[test]
fn the_full_stream_is_calibrated() {
    let figures = Figures::of(&FULL);
    let table = figures.table();
    println!("{table}");
    let frames = figures.frames as f64;
    assert_eq!(figures.frames, 3298, "{table}");
    assert!((figures.bytes as f64 / 16.2e6 - 1.0).abs() < 0.015, "{table}");
    assert!((figures.blocks as f64 / frames - 9.98).abs() < 0.1, "{table}");
    let ops: u64 = figures.actions.values().sum();
    for (action, percent) in [("create", 96.0), ("delete", 2.7), ("update", 1.3)] {
        let share = 100.0 * figures.actions[action] as f64 / ops as f64;
        assert!((share - percent).abs() < 0.7, "{action}: {share}\n{table}");
    }
    assert_eq!(figures.ops_per_commit[&3], 23, "{table}");
    assert_eq!(figures.ops_per_commit[&42], 1, "{table}");
    assert_eq!(*figures.heights.keys().last().expect("frames"), 12, "{table}");
}

#[test]
fn a_decoder_finds_the_written_counts() {
    for corpus in [&*QUICK, &*FULL] {
        let mut counts = FrameCounts::default();
        for_each_commit(corpus, |commit| {
            counts.frames += 1;
            for block in commit.blocks {
                let mut in_block = cbor::ItemCounts::default();
                cbor::count(block.data, &mut in_block).expect("canonical");
                counts.add_block(&in_block);
            }
        });
        assert_eq!(counts, *corpus.counts());
    }
}

#[test]
fn verdicts_count_the_operations_of_all_commits_and_the_first_commit_of_each_account() {
    let mut ops = 0;
    let mut accounts = BTreeSet::new();
    for_each_commit(&QUICK, |commit| {
        ops += commit.ops.len() as u64;
        accounts.insert(commit.repo.to_owned());
    });
    let first_sighting = accounts.len() as u64;
    let verdicts = VerdictCounts {
        frames: 160,
        commits: 160,
        accepted: 160 - first_sighting,
        first_sighting,
        ops,
        ..VerdictCounts::default()
    };
    assert_eq!(QUICK.verdicts(), verdicts);
}

#[test]
fn every_commit_is_signed_by_its_account() {
    for corpus in [&*QUICK, &*FULL] {
        let manifest = corpus.manifest(&corpus.to_file());
        let keys: BTreeMap<String, PublicKey> = manifest
            .details
            .accounts
            .into_iter()
            .map(|a| (a.did, PublicKey::from_did_key(&a.signing_key).expect("a did:key")))
            .collect();
        assert!(keys.values().any(|key| matches!(key, PublicKey::P256(_))));
        for_each_commit(corpus, |commit| {
            let object = object(commit, commit.commit.as_cid_ref()).expect("the commit object");
            let signature = object.get("sig").and_then(|sig| sig.as_bytes()).expect("sig");
            let signature = signature.try_into().expect("64 bytes");
            assert!(keys[commit.repo].verifies(&unsigned(object), signature));
        });
    }
}

#[test]
fn commits_continue_the_stream_and_their_repositories() {
    for corpus in [&*QUICK, &*FULL] {
        let (mut last_seq, mut last_time) = (0, String::new());
        let mut heads: BTreeMap<String, (String, Cid)> = BTreeMap::new();
        for_each_commit(corpus, |commit| {
            assert!(commit.seq > last_seq && *commit.time >= *last_time);
            (last_seq, last_time) = (commit.seq, commit.time.to_owned());
            let (since, prev_data) = (commit.since.expect("since"), commit.prev_data);
            assert!(since < commit.rev);
            assert_eq!(commit.root, Some(commit.commit.as_cid_ref()));
            let head = (commit.rev.to_owned(), data(commit));
            if let Some((rev, data)) = heads.insert(commit.repo.to_owned(), head) {
                assert_eq!((since, prev_data), (rev.as_str(), Some(data)));
            }
            let object = object(commit, commit.commit.as_cid_ref()).expect("the commit object");
            assert_eq!(object.get("did").and_then(|did| did.as_text()), Some(commit.repo));
            assert_eq!(object.get("rev").and_then(|rev| rev.as_text()), Some(commit.rev));
        });
        assert_eq!(heads.len(), corpus.accounts().len());
    }
}

#[test]
fn undoing_a_commit_gives_the_previous_tree_and_every_commit_carries_its_covering_proof() {
    for corpus in [&*QUICK, &*FULL] {
        for (account, mut commits) in changes(corpus) {
            let mut tree = corpus.repository(account).tree().clone();
            while let Some(change) = commits.pop() {
                assert_eq!(tree.root(), change.data);
                let proof = tree.covering_proof(change.moved());
                assert!(proof.keys().all(|cid| change.blocks.contains(cid)));
                change.undo(&mut tree);
                assert_eq!(tree.rehash().root, change.prev_data);
            }
        }
    }
}

#[test]
fn a_frame_holds_exactly_the_new_nodes_and_the_covering_proof_of_the_reference() {
    for (account, mut commits) in changes(&QUICK) {
        let mut tree = QUICK.repository(account).tree().clone();
        let mut after = build(&tree);
        while let Some(change) = commits.pop() {
            assert_eq!(after.root(), change.data);
            change.undo(&mut tree);
            let before = build(&tree);
            assert_eq!(before.root(), change.prev_data);
            let mut expected = after.covering_proof(change.moved());
            let known = before.nodes();
            expected.extend(after.nodes().keys().copied().filter(|cid| !known.contains_key(cid)));
            expected.extend(change.ops.iter().filter_map(|op| op.cid));
            expected.insert(change.commit);
            assert_eq!(change.blocks, expected);
            after = before;
        }
    }
}

#[test]
fn an_exported_repository_is_complete_and_has_the_last_commit() {
    let last = changes(&QUICK).into_iter().map(|(account, mut c)| (account, c.pop()));
    for (account, last) in last.take(8) {
        let repository = QUICK.repository(account);
        let file = repository.export_car();
        let blocks: Vec<(Cid, Vec<u8>)> = codec::car::Sections::new(&file, &Default::default())
            .expect("an archive")
            .map(|section| section.expect("a block"))
            .map(|block| (block.cid.to_cid().expect("blessed"), block.data.to_vec()))
            .collect();
        for (cid, data) in &blocks {
            assert_eq!(*cid, Cid::of(codec::cid::Codec::DagCbor, data));
        }
        assert_eq!(blocks[0].0, last.expect("a commit").commit);
        assert_eq!(blocks[1].0, repository.tree().root());
        let all: BTreeSet<Cid> = blocks.iter().map(|(cid, _)| *cid).collect();
        assert!(repository.tree().entries().iter().all(|entry| all.contains(&entry.value)));
        assert!(build(repository.tree()).nodes().keys().all(|cid| all.contains(cid)));
    }
}

#[test]
fn a_manifest_round_trips_through_json() {
    let manifest = QUICK.manifest(&QUICK.to_file());
    let json = serde_json::to_string(&manifest).expect("JSON");
    assert_eq!(serde_json::from_str::<Manifest>(&json).expect("a manifest"), manifest);
    assert!(manifest.details.accounts.is_sorted());
}

/// Decodes the frames with their hashes checked and passes their commits on.
fn for_each_commit(corpus: &Corpus, mut look: impl FnMut(&Commit<'_>)) {
    let mut decoder = Decoder::new(Options::default());
    for frame in corpus.frames() {
        match decoder.decode(frame).expect("a valid frame") {
            Event::Commit(commit) => look(&commit),
            other => panic!("{other:?} is no commit"),
        }
    }
}

fn block<'a>(commit: &Commit<'a>, cid: CidRef<'_>) -> Option<&'a Block<'a>> {
    commit.blocks.iter().find(|block| block.cid == cid)
}

fn object<'a>(commit: &Commit<'a>, cid: CidRef<'_>) -> Option<Value<'a>> {
    block(commit, cid)?.value
}

/// The field `data` of the commit object.
fn data(commit: &Commit<'_>) -> Cid {
    let object = object(commit, commit.commit.as_cid_ref()).expect("the commit object");
    let link = object.get("data").and_then(|data| data.as_link()).expect("data");
    link.to_cid().expect("blessed")
}

/// The signed bytes: the commit object without `sig`.
fn unsigned(object: Value<'_>) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(5);
    for key in ["did", "rev", "data", "prev", "version"] {
        out.text(key).value(object.get(key).expect("a field")).expect("no float");
    }
    out.into_bytes()
}

/// An owned commit of the stream.
struct Change {
    commit: Cid,
    data: Cid,
    prev_data: Cid,
    blocks: BTreeSet<Cid>,
    ops: Vec<Op>,
}

struct Op {
    action: Action,
    key: String,
    cid: Option<Cid>,
    prev: Option<Cid>,
}

impl Change {
    fn of(commit: &Commit<'_>) -> Self {
        let own = |cid: CidRef<'_>| cid.to_cid().expect("blessed");
        let ops = commit.ops.iter().map(|op| Op {
            action: op.action,
            key: op.path.to_owned(),
            cid: op.cid.map(own),
            prev: op.prev.map(own),
        });
        let blocks: BTreeSet<Cid> = commit.blocks.iter().map(|block| own(block.cid)).collect();
        assert_eq!(blocks.len(), commit.blocks.len(), "no block twice");
        assert!(commit.ops.iter().all(|op| op.cid.is_some() == op.record.is_some()));
        let prev_data = commit.prev_data.expect("prevData");
        Self { commit: commit.commit, data: data(commit), prev_data, blocks, ops: ops.collect() }
    }

    /// The created or deleted keys.
    fn moved(&self) -> impl Iterator<Item = &str> {
        self.ops.iter().filter(|op| op.action != Action::Update).map(|op| op.key.as_str())
    }

    fn undo(&self, tree: &mut Tree) {
        for op in self.ops.iter().rev() {
            let found = match op.prev {
                Some(prev) => tree.insert(&op.key, prev),
                None => tree.remove(&op.key),
            };
            assert_eq!(found, op.cid, "{}", op.key);
        }
    }
}

/// The commits by account, in order.
fn changes(corpus: &Corpus) -> Vec<(usize, Vec<Change>)> {
    let mut by_did: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    for_each_commit(corpus, |commit| {
        by_did.entry(commit.repo.to_owned()).or_default().push(Change::of(commit));
    });
    let dids = corpus.accounts().map(|account| account.did());
    dids.enumerate().map(|(at, did)| (at, by_did.remove(did).expect("commits"))).collect()
}

fn build(tree: &Tree) -> reference::Built {
    let records: Vec<(&str, Cid)> =
        tree.entries().iter().map(|entry| (&*entry.key, entry.value)).collect();
    reference::build(&records)
}

/// The calibrated figures.
#[derive(Default)]
struct Figures {
    frames: u64,
    bytes: u64,
    blocks: u64,
    nodes: u64,
    node_bytes: u64,
    records: u64,
    record_bytes: u64,
    outside_car_bytes: u64,
    actions: BTreeMap<&'static str, u64>,
    collections: BTreeMap<String, u64>,
    ops_per_commit: BTreeMap<usize, u64>,
    /// Frames by the number of tree nodes beyond root height + 1.
    extra_nodes: BTreeMap<usize, u64>,
    heights: BTreeMap<usize, u64>,
    /// By KiB.
    sizes: BTreeMap<usize, u64>,
    blocks_per_frame: BTreeMap<usize, u64>,
    /// Nodes, entries and bytes by depth.
    depths: BTreeMap<usize, [u64; 3]>,
}

impl Figures {
    fn of(corpus: &Corpus) -> Self {
        let mut figures = Self::default();
        let mut lens = corpus.frames().iter().map(Vec::len);
        for_each_commit(corpus, |commit| figures.add(commit, lens.next().expect("a frame")));
        figures
    }

    fn add(&mut self, commit: &Commit<'_>, frame_len: usize) {
        self.frames += 1;
        self.bytes += frame_len as u64;
        self.blocks += commit.blocks.len() as u64;
        self.outside_car_bytes += (frame_len - commit.car.len()) as u64;
        *self.sizes.entry(frame_len / 1024).or_default() += 1;
        *self.blocks_per_frame.entry(commit.blocks.len()).or_default() += 1;
        *self.ops_per_commit.entry(commit.ops.len()).or_default() += 1;
        for op in commit.ops {
            *self.actions.entry(op.action.as_str()).or_default() += 1;
            if let (Action::Create, Some(record)) = (op.action, op.record) {
                let collection = op.path.split('/').next().expect("a collection");
                *self.collections.entry(collection.to_owned()).or_default() += 1;
                self.records += 1;
                self.record_bytes += record.data.len() as u64;
            }
        }
        self.add_nodes(commit);
    }

    fn add_nodes(&mut self, commit: &Commit<'_>) {
        let mut pending = vec![(data(commit), 0)];
        let (mut nodes, mut deepest) = (0, 0);
        while let Some((cid, depth)) = pending.pop() {
            let Some(node) = block(commit, cid.as_cid_ref()) else { continue };
            let value = node.value.expect("a decoded node");
            let Some(Value::Array(entries)) = value.get("e") else { panic!("{cid} is no node") };
            let links = entries.iter().map(|entry| entry.get("t")).chain([value.get("l")]);
            let children = links.filter_map(|link| link?.as_link()?.to_cid());
            pending.extend(children.map(|child| (child, depth + 1)));
            (nodes, deepest) = (nodes + 1, deepest.max(depth));
            let at = self.depths.entry(depth).or_default();
            *at = [at[0] + 1, at[1] + entries.len() as u64, at[2] + node.data.len() as u64];
            self.nodes += 1;
            self.node_bytes += node.data.len() as u64;
        }
        // A path may end above the leaves.
        *self.extra_nodes.entry(nodes - deepest - 1).or_default() += 1;
        *self.heights.entry(heights()[commit.repo]).or_default() += 1;
    }

    fn table(&self) -> String {
        let mean = |sum: u64, of: u64| sum as f64 / of as f64;
        let mut table = format!(
            "                       here      calibration\n\
             frames                 {:<9} 3298\n\
             bytes                  {:<9} 16200000\n\
             bytes a frame          {:<9.0} 4913\n\
             blocks a frame         {:<9.2} 9.98\n\
             bytes a tree node      {:<9.0} 457\n\
             bytes a record         {:<9.0} 265\n\
             bytes outside the CAR  {:<9.0} 374\n",
            self.frames,
            self.bytes,
            mean(self.bytes, self.frames),
            mean(self.blocks, self.frames),
            mean(self.node_bytes, self.nodes),
            mean(self.record_bytes, self.records),
            mean(self.outside_car_bytes, self.frames),
        );
        for (depth, [nodes, entries, bytes]) in &self.depths {
            let (entries, bytes) = (mean(*entries, *nodes), mean(*bytes, *nodes));
            table += &format!("depth {depth:<2} entries, bytes {entries:<5.2} {bytes:.0}\n");
        }
        table += &format!("actions {:?}\n", self.actions);
        table += &format!("collections {:?}\n", self.collections);
        table += &format!("ops a commit {:?}\n", self.ops_per_commit);
        table += &format!("root heights {:?}\n", self.heights);
        table += &format!("nodes beyond a path {:?}\n", self.extra_nodes);
        table += &format!("blocks a frame {:?}\n", self.blocks_per_frame);
        table + &format!("KiB a frame {:?}\n", self.sizes)
    }
}

/// The heights of the trees of the full stream, by account.
fn heights() -> &'static BTreeMap<String, usize> {
    static HEIGHTS: LazyLock<BTreeMap<String, usize>> = LazyLock::new(|| {
        let heights = FULL.accounts().enumerate().map(|(at, account)| {
            let tree = FULL.repository(at).tree().root_height();
            assert_eq!(AccountHistory::Thinned(tree), account.history());
            (account.did().to_owned(), usize::from(tree))
        });
        heights.collect()
    });
    &HEIGHTS
}

/// The corpus file of [`Spec::quick`]. A change needs a recorded reason.
const QUICK_SHA256: &str = "3afb0c6ab24f471d8800308131020bd28a58363b1102e255b39905364861339f";

/// The corpus file of [`Spec::default`], which published measurements name.
const FULL_SHA256: &str = "4ee37674a1868b360692b3de78ee178fdb83130f2a65d87104eb0ebbab26f83c";
