use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use atproto::commit::Commit;
use atproto::event::{Decoder, Event, Options};
use codec::{Cid, car, cbor};

use super::*;
use crate::corpus::digest_hex;
use crate::keys::PublicKey;
use crate::tree::reference;

static SET: LazyLock<CaseSet> = LazyLock::new(|| CaseSet::generate(&Spec::default()));

#[test]
fn the_published_set_is_the_pinned_one() {
    let manifest = serde_json::to_vec(&SET.manifest()).unwrap();
    assert_eq!(digest_hex(&manifest), MANIFEST_SHA256);
}

#[test]
fn the_same_seed_gives_the_same_files_and_another_seed_others() {
    let again = CaseSet::generate(&Spec::default());
    assert_eq!(again.manifest(), SET.manifest());
    let other = CaseSet::generate(&Spec { seed: 1 });
    let names =
        |set: &CaseSet| set.cases().iter().map(|case| case.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&other), names(&SET));
    let differ = other.cases().iter().zip(SET.cases()).filter(|(a, b)| a.bytes != b.bytes);
    // An empty file is the same for any seed, and so are a few bytes of a header.
    assert!(SET.cases().len() - differ.count() <= 3);
}

#[test]
fn every_case_has_a_unique_name_and_a_complete_manifest_entry() {
    let names: BTreeSet<&str> = SET.cases().iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), SET.cases().len());
    for row in SET.manifest().cases {
        let (layer, name) = row.name.split_once('/').expect("a layer and words");
        assert_eq!(layer, row.layer.name(), "{}", row.name);
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        assert!(name.bytes().all(is_plain), "{}", row.name);
        assert!(!row.rule.is_empty() && !row.section.is_empty() && !row.rule.ends_with('.'));
        assert_eq!(row.code.is_some(), row.expect != Expect::Accept, "{}", row.name);
        assert_eq!(row.context.now.is_some(), row.kind == InputKind::Frames, "{}", row.name);
    }
}

#[test]
fn every_code_of_a_file_has_a_case() {
    let broken: BTreeSet<&str> = SET.cases().iter().filter_map(|case| case.code).collect();
    let missing: Vec<&str> = CODES.into_iter().filter(|code| !broken.contains(code)).collect();
    assert_eq!(missing, [""; 0]);
    let unknown: Vec<&str> = broken.into_iter().filter(|code| !CODES.contains(code)).collect();
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn the_set_is_small() {
    let bytes: usize = SET.cases().iter().map(|case| case.bytes.len()).sum();
    assert!((1_000_000..9_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn archives_are_readable_unless_the_case_is_about_the_archive() {
    for case in SET.cases().iter().filter(|case| case.kind == InputKind::Repo) {
        let read = car::read(&case.bytes, &car::Options::default());
        // An archive without roots is readable.
        let is_whole = case.layer != Layer::Car || matches!(case.code, None | Some("car/roots"));
        assert_eq!(read.is_ok(), is_whole, "{}: {:?}", case.name, read.err());
    }
}

#[test]
fn all_frames_but_the_last_are_readable() {
    for case in SET.cases().iter().filter(|case| case.kind == InputKind::Frames) {
        let frames = atproto::corpus::read(&case.bytes).unwrap();
        let (last, before) = frames.split_last().expect("a frame at least");
        for frame in before {
            assert!(Decoder::new(Options::default()).decode(frame).is_ok(), "{}", case.name);
        }
        let is_read = Decoder::new(Options::default()).decode(last).is_ok();
        let is_wrong = matches!(case.layer, Layer::Frame | Layer::Car)
            || case.code == Some("event/limit")
            || case.code == Some("record/size");
        assert_eq!(is_read, !is_wrong, "{}", case.name);
    }
}

#[test]
fn accepted_repositories_equal_the_reference_tree_under_a_valid_signature() {
    let accepted = SET.cases().iter().filter(|case| case.expect != Expect::Refuse);
    for case in accepted.filter(|case| case.kind == InputKind::Repo) {
        let read = car::read(&case.bytes, &car::Options::default()).unwrap();
        let blocks: BTreeMap<Cid, &[u8]> =
            read.blocks.iter().filter_map(|b| Some((b.cid.to_cid()?, b.data))).collect();
        let root = read.roots.first().and_then(|root| root.to_cid()).unwrap();
        let commit = Commit::parse(blocks[&root]).unwrap();
        assert_eq!(commit.did, case.did, "{}", case.name);
        let key = PublicKey::from_did_key(&case.signing_key).unwrap();
        assert!(key.verifies(&commit.signing_bytes().to_vec(), commit.sig), "{}", case.name);
        let mut records = Vec::new();
        collect(&blocks, &commit.data, &mut records);
        assert!(records.iter().all(|(_, cid)| blocks.contains_key(cid)), "{}", case.name);
        let records: Vec<(&str, Cid)> =
            records.iter().map(|(key, cid)| (key.as_str(), *cid)).collect();
        assert_eq!(reference::build(&records).root(), commit.data, "{}", case.name);
    }
}

#[test]
fn the_last_frame_of_an_accepted_case_has_a_valid_signature() {
    let accepted = SET.cases().iter().filter(|case| case.expect != Expect::Refuse);
    for case in accepted.filter(|case| case.kind == InputKind::Frames) {
        let frames = atproto::corpus::read(&case.bytes).unwrap();
        let mut decoder = Decoder::new(Options::default());
        let event = decoder.decode(frames.last().unwrap()).unwrap();
        let name = match event {
            Event::Commit(commit) => commit.commit,
            Event::Sync(sync) => sync.root.and_then(|root| root.to_cid()).unwrap(),
            _ => panic!("{}", case.name),
        };
        let block = event.blocks().iter().find(|block| block.cid == name.as_cid_ref()).unwrap();
        let commit = Commit::parse(block.data).unwrap();
        let key = PublicKey::from_did_key(&case.signing_key).unwrap();
        assert!(key.verifies(&commit.signing_bytes().to_vec(), commit.sig), "{}", case.name);
    }
}

#[test]
fn the_doubling_tree_has_few_blocks_and_many_records() {
    let case = SET.cases().iter().find(|case| case.name == "tree/doubling-18-times").unwrap();
    let read = car::read(&case.bytes, &car::Options::default()).unwrap();
    // A commit, 19 nodes and their records.
    assert_eq!(read.blocks.len(), 1 + 19 + 19);
    let blocks: BTreeMap<Cid, &[u8]> =
        read.blocks.iter().filter_map(|b| Some((b.cid.to_cid()?, b.data))).collect();
    let root = read.roots.first().and_then(|root| root.to_cid()).unwrap();
    let mut records = Vec::new();
    collect(&blocks, &Commit::parse(blocks[&root]).unwrap().data, &mut records);
    assert_eq!(records.len(), (1 << 19) - 1);
}

/// Keys and values of the tree at `node` in traversal order.
fn collect(blocks: &BTreeMap<Cid, &[u8]>, node: &Cid, records: &mut Vec<(String, Cid)>) {
    let arena = bumpalo::Bump::new();
    let node = cbor::decode(blocks[node], &arena).unwrap();
    let child = |link: Option<&cbor::Value<'_>>, records: &mut _| {
        if let Some(cid) = link.and_then(|link| link.as_link()) {
            collect(blocks, &cid.to_cid().unwrap(), records);
        }
    };
    child(node.get("l"), records);
    let mut key = Vec::new();
    for entry in node.get("e").unwrap().as_array().unwrap() {
        let prefix = entry.get("p").and_then(|p| p.as_integer()).unwrap();
        key.truncate(prefix as usize);
        key.extend_from_slice(entry.get("k").and_then(|k| k.as_bytes()).unwrap());
        let value = entry.get("v").and_then(|v| v.as_link()).unwrap().to_cid().unwrap();
        records.push((String::from_utf8(key.clone()).unwrap(), value));
        child(entry.get("t"), records);
    }
}

/// The manifest of [`Spec::default`], on one line. It changes with the cases; a change needs a recorded reason.
const MANIFEST_SHA256: &str = "72b607fa8fbad6a7e9bc4f212da7f29ae06445f061a45371064f422d6a2c9b9c";

/// The codes of rules that a file can break. Three more depend on other knowledge of the account:
/// `signature/no-key`, `event/host` and `event/inactive`.
const CODES: [&str; 63] = [
    "frame/cbor",
    "frame/field",
    "car/header",
    "car/version",
    "car/roots",
    "car/truncated",
    "car/varint",
    "car/hash",
    "car/limit",
    "car/cid",
    "commit/missing-block",
    "commit/cbor",
    "commit/missing",
    "commit/field",
    "commit/version",
    "commit/signature-length",
    "commit/did",
    "commit/rev",
    "signature/high-s",
    "signature/range",
    "signature/wrong",
    "tree/cbor",
    "tree/shape",
    "tree/prefix",
    "tree/empty-key",
    "tree/order",
    "tree/layer",
    "tree/skipped-layer",
    "tree/empty-node",
    "tree/untrimmed-root",
    "tree/repeated-node",
    "tree/missing-node",
    "tree/link",
    "tree/limit",
    "record/missing",
    "record/cbor",
    "record/shape",
    "record/path",
    "record/size",
    "record/link",
    "event/did",
    "event/limit",
    "event/rev-syntax",
    "event/stale-rev",
    "event/future-rev",
    "event/root",
    "event/commit-cid",
    "event/did-mismatch",
    "event/rev-mismatch",
    "event/too-big",
    "event/rebase",
    "event/prev-data-missing",
    "event/since",
    "event/prev-data",
    "event/duplicate-path",
    "event/path",
    "event/op",
    "event/record-missing",
    "event/inversion",
    "event/partial-tree",
    "event/time",
    "event/seq",
    "event/handle",
];
