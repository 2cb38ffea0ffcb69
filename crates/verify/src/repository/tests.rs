//! Whole repositories are accepted, and every fault is rejected by its code.

use atproto::commit::UnsignedCommit;
use atproto::mst::{Tree, TreeFault};
use atproto::repo::{RepoError, RepoFault};
use codec::cbor::Encoder;
use codec::cid::Codec;
use codec::{AnyCid, Cid, car};
use crypto::{Curve, SecretKey};

use super::*;
use crate::InvalidRecord;

pub(crate) const DID: &str = "did:plc:wq4aajammjtxdomz3e23667t";
const REV: &str = "3mptbypluud2a";

pub(crate) fn secret() -> SecretKey {
    SecretKey::from_bytes(Curve::P256, &[7; 32]).unwrap()
}

/// The parts of a repository, to be exported with or without faults.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) did: String,
    pub(crate) rev: String,
    pub(crate) records: Vec<(String, AnyCid, Vec<u8>)>,
    /// Blocks to leave out of the export.
    pub(crate) without: Vec<Cid>,
    /// Blocks to add to the export.
    pub(crate) extra: Vec<Vec<u8>>,
}

pub(crate) fn record(text: &str) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(2).text("text").text(text).text("$type").text("app.test.record");
    out.into_bytes()
}

fn cid_of(block: &[u8]) -> Cid {
    Cid::of(Codec::DagCbor, block)
}

impl Parts {
    pub(crate) fn of(count: usize) -> Self {
        let mut parts = Self {
            did: DID.to_owned(),
            rev: REV.to_owned(),
            records: Vec::new(),
            without: Vec::new(),
            extra: Vec::new(),
        };
        for number in 0..count {
            parts.put(&path(number), record(&format!("number {number}")));
        }
        parts
    }

    pub(crate) fn put(&mut self, path: &str, record: Vec<u8>) -> Cid {
        let cid = cid_of(&record);
        self.records.push((path.to_owned(), cid.into(), record));
        cid
    }

    pub(crate) fn nodes(&self) -> (Cid, Vec<(Cid, Vec<u8>)>) {
        let mut tree = Tree::empty();
        for (path, cid, _) in &self.records {
            tree.insert(path.as_bytes(), cid.clone()).unwrap();
        }
        (tree.root(), tree.collect_blocks())
    }

    pub(crate) fn commit(&self) -> Vec<u8> {
        let data = self.nodes().0;
        let unsigned = UnsignedCommit { did: &self.did, rev: &self.rev, data, prev: None };
        unsigned.with_signature(&secret().sign(&unsigned.to_bytes()))
    }

    pub(crate) fn export(&self) -> Vec<u8> {
        let commit = self.commit();
        let root = cid_of(&commit);
        let mut blocks = vec![(root, commit)];
        blocks.extend(self.nodes().1);
        blocks.extend(self.records.iter().map(|(_, _, block)| (cid_of(block), block.clone())));
        blocks.extend(self.extra.iter().map(|block| (cid_of(block), block.clone())));
        let mut writer = car::Writer::new(Vec::new(), &[root]).unwrap();
        for (cid, block) in blocks.iter().filter(|(cid, _)| !self.without.contains(cid)) {
            writer.block(cid, block).unwrap();
        }
        writer.into_inner()
    }

    fn rejection(&self) -> RepositoryRejection {
        rejection_under(&self.export(), &Options::default())
    }
}

pub(crate) fn path(number: usize) -> String {
    format!("app.test.record/{number:013}")
}

fn check<'a>(
    export: &'a [u8],
    options: &Options,
) -> Result<Verified<WholeRepository<'a>>, RepositoryRejection> {
    verify(export, Some(DID), &secret().public_key(), options)
}

/// The rejection, which must also be the first of all faults.
fn rejection_under(export: &[u8], options: &Options) -> RepositoryRejection {
    let rejection = check(export, options).expect_err("rejected");
    assert_eq!(all_faults(export, options).first(), Some(&rejection));
    rejection
}

fn all_faults(export: &[u8], options: &Options) -> Vec<RepositoryRejection> {
    collect_rejections(export, Some(DID), Some(&secret().public_key()), options, 1000)
}

#[test]
fn a_whole_repository_is_accepted_and_so_is_its_export() {
    for count in [0, 1, 2, 100, 1000] {
        let parts = Parts::of(count);
        let export = parts.export();
        let whole = check(&export, &Options::default()).unwrap();
        assert_eq!(whole.tree().records, count as u64);
        assert_eq!(whole.tree().nodes, parts.nodes().1.len().max(1) as u64);
        assert_eq!(whole.extra(), BlockTotals::default());
        assert_eq!(whole.signature(), SignatureProof::Checked);
        assert_eq!(all_faults(&export, &Options::default()), []);
        let walked = parse(&export, &Options::default()).unwrap().without_signature().walk();
        let walked = walked.unwrap();
        assert_eq!((walked.rebuild(), walked.tree()), (Ok(()), whole.tree()));
        let again = whole.export(Vec::new()).unwrap();
        let judged = check(&again, &Options::default()).unwrap();
        assert_eq!((judged.root(), judged.tree()), (whole.root(), whole.tree()));
        assert_eq!(judged.export(Vec::new()).unwrap(), again);
    }
}

#[test]
fn every_truncation_is_rejected() {
    let export = Parts::of(12).export();
    for cut in 0..export.len() {
        rejection_under(&export[..cut], &Options::default());
    }
}

#[test]
fn every_flipped_byte_is_rejected() {
    let mut export = Parts::of(8).export();
    for at in 0..export.len() {
        for bit in [0x01, 0x80] {
            export[at] ^= bit;
            let rejection = check(&export, &Options::default()).map(|_| ());
            assert!(rejection.is_err(), "byte {at}");
            export[at] ^= bit;
        }
    }
}

#[test]
fn each_block_that_is_left_out_is_the_fault() {
    let sound = Parts::of(40);
    let (root, nodes) = sound.nodes();
    for (cid, _) in &nodes {
        let rejection = Parts { without: vec![*cid], ..sound.clone() }.rejection();
        assert_eq!((rejection.code(), rejection.cid), ("tree/missing-node", Some(*cid)));
    }
    assert!(nodes.iter().any(|(cid, _)| *cid == root));
    for (path, cid, _) in &sound.records {
        let without = vec![cid.to_cid().unwrap()];
        let rejection = Parts { without, ..sound.clone() }.rejection();
        assert_eq!(rejection.code(), "record/missing");
        assert_eq!((rejection.cid, rejection.path.as_deref()), (cid.to_cid(), Some(path.as_str())));
    }
    let commit = cid_of(&sound.commit());
    let rejection = Parts { without: vec![commit], ..sound }.rejection();
    assert_eq!((rejection.code(), rejection.cid), ("commit/missing-block", Some(commit)));
}

#[test]
fn a_commit_of_another_account_key_or_syntax_is_rejected() {
    let sound = Parts::of(1);
    let export = sound.export();
    let key = secret().public_key();
    let options = Options::default();
    let other = verify(&export, Some("did:plc:other"), &key, &options).unwrap_err();
    assert_eq!((other.code(), other.fault), ("commit/did", RepositoryFault::OtherAccount));
    assert!(verify(&export, None, &key, &options).is_ok());
    let stranger = SecretKey::from_bytes(Curve::P256, &[8; 32]).unwrap().public_key();
    let wrong = verify(&export, Some(DID), &stranger, &options).unwrap_err();
    assert_eq!(wrong.code(), "signature/wrong");
    let unsigned = verify_without_signature(&export, &options).unwrap();
    assert_eq!(unsigned.signature(), SignatureProof::NotChecked);
    let did = Parts { did: "did:plc".to_owned(), ..sound.clone() };
    assert_eq!(did.rejection().code(), "commit/did");
    let rev = Parts { rev: "tomorrow".to_owned(), ..sound };
    assert_eq!(rev.rejection().code(), "commit/rev");
}

#[test]
fn a_key_that_is_not_a_path_is_rejected_unless_any_key_is_allowed() {
    for key in ["app.test/a/b", "app.test.record/", "app.test.record", "notnsid/a", "app.test.r/.."]
    {
        let mut parts = Parts::of(3);
        parts.put(key, record("odd"));
        let rejection = parts.rejection();
        assert_eq!((rejection.code(), rejection.path.as_deref()), ("record/path", Some(key)));
        let options = Options { allow_any_key: true, ..Options::default() };
        assert!(check(&parts.export(), &options).is_ok());
    }
}

fn strict() -> Options {
    Options { strict_records: true, ..Options::default() }
}

/// Bytes that are no valid record, the code of the rule, and where they break it.
fn invalid_records() -> [(Vec<u8>, &'static str, usize); 4] {
    [
        (b"\x65hello".to_vec(), "record/shape", 0),
        (b"\xa1\x61a\x18\x01".to_vec(), "record/cbor", 3),
        (b"".to_vec(), "record/cbor", 0),
        (record(&"long".repeat(1 << 18)), "record/size", 0),
    ]
}

#[test]
fn a_repository_with_an_invalid_record_is_verified_and_reports_it() {
    for (block, code, offset) in invalid_records() {
        let mut parts = Parts::of(3);
        let cid = parts.put("app.test.record/odd", block.clone());
        let export = parts.export();
        let whole = check(&export, &Options::default()).unwrap();
        assert_eq!((whole.tree().records, whole.invalid_records().records), (4, 1));
        let invalid = whole.invalid_records().first.as_ref().unwrap();
        assert_eq!((&*invalid.path, invalid.cid), ("app.test.record/odd", cid));
        assert_eq!((invalid.error.code(), invalid.error.offset), (code, offset));
        let read = whole.records().map(Result::unwrap).find(|record| record.cid == cid).unwrap();
        assert_eq!(read.block, block, "the bytes are delivered");
        assert_eq!(InvalidRecord::of_record(&read, 1 << 20).as_ref(), Some(invalid));
        assert_eq!(all_faults(&export, &Options::default()), []);
    }
}

#[test]
fn a_repository_with_an_invalid_record_is_rejected_under_strict_options() {
    for (block, code, offset) in invalid_records() {
        let mut parts = Parts::of(3);
        let cid = parts.put("app.test.record/odd", block.clone());
        let export = parts.export();
        let rejection = rejection_under(&export, &strict());
        assert_eq!((rejection.code(), rejection.cid), (code, Some(cid)));
        assert_eq!(rejection.path.as_deref(), Some("app.test.record/odd"));
        let at = rejection.offset.unwrap() as usize - offset;
        assert_eq!(export[at..][..block.len()], block);
    }
}

#[test]
fn an_invalid_record_under_many_paths_is_counted_for_each_and_rejected_once() {
    let mut parts = Parts::of(3);
    for number in 1000..1050 {
        parts.put(&path(number), b"\x80".to_vec());
    }
    let export = parts.export();
    let whole = check(&export, &Options::default()).unwrap();
    let found = whole.invalid_records();
    assert_eq!((found.records, &*found.first.as_ref().unwrap().path), (50, &*path(1000)));
    let rejections = all_faults(&export, &strict());
    assert_eq!(rejections.len(), 1);
    assert_eq!(rejections[0].path.as_deref(), Some(&*path(1000)));
}

#[test]
fn a_block_that_nothing_links_to_may_be_anything() {
    let mut parts = Parts::of(3);
    parts.extra = invalid_records().map(|(block, ..)| block).to_vec();
    let export = parts.export();
    let whole = check(&export, &strict()).unwrap();
    assert_eq!((whole.extra().blocks, whole.invalid_records().records), (4, 0));
}

#[test]
fn a_record_must_be_named_by_a_dag_cbor_cid() {
    let mut parts = Parts::of(2);
    let raw = Cid::of(Codec::Raw, b"raw");
    parts.records.push(("app.test.record/raw".to_owned(), raw.into(), b"\xa0".to_vec()));
    let rejection = parts.rejection();
    assert_eq!((rejection.code(), rejection.cid), ("record/link", Some(raw)));
}

#[test]
fn extra_blocks_are_counted_and_may_be_limited() {
    let mut parts = Parts::of(5);
    parts.extra = vec![record("one"), record("two"), record("two"), record("number 3")];
    let export = parts.export();
    let whole = check(&export, &Options::default()).unwrap();
    let bytes = (record("one").len() + record("two").len()) as u64;
    assert_eq!(whole.extra(), BlockTotals { blocks: 2, bytes });
    let options = Options { max_extra_blocks: 1, ..Options::default() };
    assert_eq!(rejection_under(&export, &options).code(), "car/extra");
    let options = Options { max_extra_bytes: bytes - 1, ..Options::default() };
    assert_eq!(rejection_under(&export, &options).fault, RepositoryFault::ExtraBytes(bytes - 1));
    let options = Options { max_extra_bytes: bytes, max_extra_blocks: 2, ..options };
    assert!(check(&export, &options).is_ok());
}

#[test]
fn repeated_blocks_are_reached_once_in_any_order() {
    let sound = Parts::of(40).export();
    let streamable =
        verify_without_signature(&sound, &Options::default()).unwrap().export(Vec::new()).unwrap();
    let blocks = car::read(&streamable, &car::Options::default()).unwrap().blocks;
    let root = blocks[0].cid.to_cid().unwrap();
    for repeated in 0..blocks.len() {
        let mut writer = car::Writer::new(Vec::new(), &[root]).unwrap();
        for (at, block) in blocks.iter().enumerate() {
            for _ in 0..if at == repeated { 2 } else { 1 } {
                writer.block(&block.cid.to_cid().unwrap(), block.data).unwrap();
            }
        }
        let export = writer.into_inner();
        let whole = check(&export, &Options::default()).unwrap();
        assert_eq!(whole.extra(), BlockTotals::default());
        assert_eq!(whole.archive().block_count(), blocks.len() as u64 + 1);
    }
}

#[test]
fn a_block_with_a_wrong_hash_is_never_found_at_its_expected_offset() {
    let sound = Parts::of(40).export();
    let mut streamable =
        verify_without_signature(&sound, &Options::default()).unwrap().export(Vec::new()).unwrap();
    let at = streamable.windows(9).position(|window| window == b"number 20").unwrap();
    streamable[at] ^= 1;
    let codes: Vec<_> =
        all_faults(&streamable, &Options::default()).iter().map(|fault| fault.code()).collect();
    assert_eq!(codes, ["car/hash", "record/missing"]);
}

#[test]
fn paths_can_share_a_record_block() {
    let mut parts = Parts::of(0);
    for number in 0..50 {
        parts.put(&path(number), record("the same"));
    }
    let export = parts.export();
    let whole = check(&export, &Options::default()).unwrap();
    assert_eq!((whole.tree().records, whole.extra().blocks), (50, 0));
    parts.without = vec![cid_of(&record("the same"))];
    assert_eq!(all_faults(&parts.export(), &Options::default()).len(), 50);
    let mut faulty = Parts::of(0);
    for number in 0..50 {
        faulty.put(&path(number), b"\x01".to_vec());
    }
    assert_eq!(all_faults(&faulty.export(), &strict()).len(), 1);
}

#[test]
fn the_limits_of_the_archive_apply_and_its_hashes_are_always_checked() {
    let mut export = Parts::of(9).export();
    let mut options = Options::default();
    options.archive.max_blocks = 3;
    assert_eq!(rejection_under(&export, &options).code(), "car/limit");
    let at = export.windows(8).position(|window| window == b"number 7").unwrap();
    export[at] ^= 1;
    let mut options = Options::default();
    options.archive.trust_hashes = true;
    assert_eq!(rejection_under(&export, &options).code(), "car/hash");
}

#[test]
fn a_tree_that_is_not_canonical_has_another_root_when_rebuilt() {
    let mut parts = Parts::of(3);
    let mut node = Encoder::new();
    node.map(2).text("e").array(0).text("l").link(parts.nodes().0.as_cid_ref());
    parts.extra.push(node.as_bytes().to_vec());
    let data = cid_of(node.as_bytes());
    let unsigned = UnsignedCommit { did: DID, rev: REV, data, prev: None };
    let commit = unsigned.with_signature(&secret().sign(&unsigned.to_bytes()));
    parts.extra.push(commit.clone());
    let root = cid_of(&commit);
    let export = parts.export();
    let blocks = car::read(&export, &car::Options::default()).unwrap().blocks;
    let mut writer = car::Writer::new(Vec::new(), &[root]).unwrap();
    for block in blocks {
        writer.block(&block.cid.to_cid().unwrap(), block.data).unwrap();
    }
    let export = writer.into_inner();
    let ParsedRepository { repository, options, .. } = parse(&export, &Options::default()).unwrap();
    let signature = SignatureProof::NotChecked;
    let walked = WalkResult {
        tree: Summary::default(),
        unchecked: Vec::new(),
        extra: BlockTotals::default(),
    };
    let walked = WalkedRepository { repository, options, signature, walked };
    assert_eq!(walked.rebuild().unwrap_err().code(), "tree/rebuilt");
}

#[test]
fn a_fault_of_a_repository_keeps_its_rule_and_its_place() {
    let of = |fault, offset| RepositoryRejection::from(RepoError { offset, cid: None, fault });
    let link = of(RepoFault::RecordLink, 7);
    assert_eq!((link.code(), link.offset), ("record/link", Some(7)));
    assert_eq!(of(RepoFault::NoRoot, 0).offset, None);
}

#[test]
fn faults_are_collected_in_the_order_of_the_stages_up_to_the_maximum() {
    let mut parts = Parts::of(30);
    parts.did = "did:plc:somebodyelse".to_owned();
    parts.put("no path", record("a"));
    parts.put("app.test.record/odd", b"\x01".to_vec());
    let removed = parts.records[4].1.to_cid().unwrap();
    parts.without.push(removed);
    let mut export = parts.export();
    let flipped = export.windows(9).position(|window| window == b"number 20").unwrap();
    export[flipped] ^= 1;
    let found = all_faults(&export, &strict());
    let codes: Vec<_> = found.iter().map(RepositoryRejection::code).collect();
    let expected = [
        "car/hash",
        "commit/did",
        "record/missing",
        "record/missing",
        "record/path",
        "record/shape",
    ];
    assert_eq!(codes, expected);
    assert_eq!(found[0].cid, found[3].cid);
    for max in 0..8 {
        let key = secret().public_key();
        let few = collect_rejections(&export, Some(DID), Some(&key), &strict(), max);
        assert_eq!(few, found[..max.min(6)]);
    }
    for most in 1..8 {
        let (key, mut visited) = (secret().public_key(), 0);
        visit_rejections(&export, Some(DID), Some(&key), &strict(), |_| {
            visited += 1;
            if visited < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!(visited, most.min(6), "a visitor that breaks is not called again");
    }
}

#[test]
fn a_rejection_names_rule_and_place() {
    let mut parts = Parts::of(9);
    let (_, nodes) = parts.nodes();
    parts.without = vec![nodes[0].0];
    let rejection = parts.rejection();
    assert_eq!(rejection.fault, RepositoryFault::Tree(TreeFault::Missing));
    assert_eq!(rejection.to_string(), format!("tree: the node is missing, block {}", nodes[0].0));
    let cut = Parts::of(1).export();
    let rejection = rejection_under(&cut[..cut.len() - 1], &Options::default());
    assert!(rejection.to_string().starts_with("the archive ends inside this part, at byte "));
}
