//! Tests of reading exports in any order, of rejecting other archives, and of writing exports again.

use codec::AnyCid;
use codec::car::{CarFault, Writer};
use codec::cid::Codec;
use proptest::prelude::*;

use super::*;
use crate::commit::{CommitFault, UnsignedCommit};
use crate::mst::reference::encode_node;
use crate::mst::{TreeFault, key_height};

const DID: &str = "did:plc:wq4aajammjtxdomz3e23667t";
const REV: &str = "3mptbypluud2a";

/// The blocks of a repository of `count` records in one node, in streamable order.
fn blocks(count: usize) -> Vec<(Cid, Vec<u8>)> {
    let keys = (0..).map(|number| format!("app.test.record/{number:06}"));
    let keys: Vec<String> =
        keys.filter(|key| key_height(key.as_bytes()) == 0).take(count).collect();
    let records: Vec<(Cid, Vec<u8>)> = (0..count).map(|at| of(record(at))).collect();
    let values: Vec<AnyCid> = records.iter().map(|(cid, _)| (*cid).into()).collect();
    let entries: Vec<_> =
        keys.iter().zip(&values).map(|(key, value)| (key.as_bytes(), value, None)).collect();
    let tree = encode_node(None, &entries);
    let tree = of(tree);
    let unsigned = UnsignedCommit { did: DID, rev: REV, data: tree.0, prev: None };
    let commit = of(unsigned.with_signature(&[1; 64]));
    [commit, tree].into_iter().chain(records).collect()
}

fn of(block: Vec<u8>) -> (Cid, Vec<u8>) {
    (Cid::of(Codec::DagCbor, &block), block)
}

/// Every fourth record is the same.
fn record(at: usize) -> Vec<u8> {
    let number = if at % 4 == 3 { 3 } else { at as i64 };
    let mut out = codec::cbor::Encoder::new();
    out.map(1).text("number").integer(number);
    out.into_bytes()
}

fn archive(roots: &[Cid], blocks: &[(Cid, Vec<u8>)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), roots).unwrap();
    blocks.iter().for_each(|(cid, block)| writer.block(cid, block).unwrap());
    writer.into_inner()
}

fn export(blocks: &[(Cid, Vec<u8>)]) -> Vec<u8> {
    archive(&[blocks[0].0], blocks)
}

fn fault(export: &[u8]) -> RepoFault {
    Repository::read(export, &Options::default()).expect_err("an error").fault
}

fn rewrite(export: &[u8]) -> Vec<u8> {
    let repository = Repository::read(export, &Options::default()).unwrap();
    repository.export(Vec::new()).unwrap()
}

proptest! {
    #[test]
    fn any_order_and_any_repetition_reads_as_the_same_repository(
        count in 0usize..40,
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..80),
    ) {
        let mut blocks = blocks(count);
        let root = blocks[0].0;
        for at in order {
            let again = blocks[at.index(blocks.len())].clone();
            blocks.insert(at.index(blocks.len() + 1), again);
        }
        let shuffled = archive(&[root], &blocks);
        let repository = Repository::read(&shuffled, &Options::default()).unwrap();
        prop_assert_eq!(repository.root(), root);
        prop_assert_eq!(repository.archive().block_count(), blocks.len() as u64);
        let mut distinct: Vec<_> = blocks.iter().collect();
        distinct.sort();
        distinct.dedup();
        let bytes = distinct.iter().map(|(_, block)| block.len() as u64).sum();
        let extent = BlockTotals { blocks: distinct.len() as u64, bytes };
        prop_assert_eq!(repository.archive().distinct(), extent);
        for (cid, block) in &blocks {
            prop_assert_eq!(repository.block(cid), Some(block.as_slice()));
        }
        let records: Vec<_> = repository.records().map(|record| record.unwrap().block.to_vec()).collect();
        prop_assert_eq!(records, (0..count).map(record).collect::<Vec<_>>());
        prop_assert_eq!(repository.export(Vec::new()).unwrap(), rewrite(&export(&self::blocks(count))));
    }

    #[test]
    fn blocks_whose_digests_begin_alike_are_distinguished(seeds in proptest::collection::btree_set(any::<u16>(), 2..60)) {
        // Digests are given and not computed, so that they can share more bytes than mined ones would.
        let cids: Vec<Cid> = seeds.iter().map(|seed| {
            let mut digest = [7; 32];
            digest[30..].copy_from_slice(&seed.to_be_bytes());
            Cid::from_digest(if seed % 2 == 0 { Codec::DagCbor } else { Codec::Raw }, &digest)
        }).collect();
        let blocks: Vec<_> = cids.iter().map(|cid| (*cid, cid.as_bytes().to_vec())).collect();
        let bytes = archive(&[], &blocks);
        let mut options = Options::default();
        options.trust_hashes = true;
        let archive = Archive::read(&bytes, &options).unwrap();
        for (cid, block) in &blocks {
            prop_assert_eq!(archive.block(cid), Some(block.as_slice()));
        }
        for other in [6, 8] {
            let mut digest = [7; 32];
            digest[29] = other;
            prop_assert_eq!(archive.block(&Cid::from_digest(Codec::Raw, &digest)), None);
            prop_assert_eq!(archive.block(&Cid::from_digest(Codec::Raw, &[other; 32])), None);
        }
    }
}

#[test]
fn the_streamable_order_is_the_commit_then_each_node_then_its_records_and_each_block_once() {
    let mut blocks = blocks(6);
    let sound = export(&blocks);
    blocks[2..].reverse();
    assert_eq!(rewrite(&export(&blocks)), sound);
    let extra = of(b"\x65extra".to_vec());
    blocks.push(extra);
    assert_eq!(rewrite(&export(&blocks)), sound);
    let twice = self::blocks(8);
    let once: Vec<_> = twice[..9].to_vec();
    assert_eq!(rewrite(&export(&twice)), export(&once));
}

#[test]
fn every_truncation_is_rejected_or_found_to_lack_a_block() {
    let whole = export(&blocks(5));
    for cut in 0..whole.len() {
        if let Ok(repository) = Repository::read(&whole[..cut], &Options::default()) {
            assert!(repository.records().any(|record| record.is_err()), "cut at {cut}");
            let error = repository.export(Vec::new()).unwrap_err();
            assert!(matches!(error, ExportError::Repo(_)), "cut at {cut}");
        }
    }
}

#[test]
fn without_a_root_or_its_block_there_is_no_repository() {
    let blocks = blocks(1);
    assert_eq!(fault(&archive(&[], &blocks)), RepoFault::NoRoot);
    assert_eq!(fault(&archive(&[blocks[0].0], &blocks[1..])), RepoFault::MissingCommit);
    let raw = Cid::of(Codec::Raw, &blocks[0].1);
    assert_eq!(fault(&archive(&[raw], &blocks)), RepoFault::Root);
    assert_eq!(fault(b""), RepoFault::Car(CarFault::Truncated));
    let more = archive(&[blocks[0].0, raw], &blocks);
    assert!(Repository::read(&more, &Options::default()).is_ok());
}

#[test]
fn an_archive_without_roots_is_a_repository_given_its_commit() {
    let blocks = blocks(3);
    let bytes = archive(&[], &blocks);
    let archive = Archive::read(&bytes, &Options::default()).unwrap();
    assert!(archive.roots().is_empty());
    let repository = Repository::at_root(archive, blocks[0].0).unwrap();
    assert_eq!(repository.records().count(), 3);
}

#[test]
fn the_root_must_be_a_commit_of_version_3() {
    let [commit, tree, record] = <[_; 3]>::try_from(blocks(1)).unwrap();
    let bytes = archive(&[tree.0], &[commit.clone(), tree.clone(), record]);
    let error = Repository::read(&bytes, &Options::default()).unwrap_err();
    assert_eq!(error.fault, RepoFault::Commit(CommitFault::Missing("version")));
    assert_eq!(error.cid, Some(tree.0));
    let mut older = commit.1;
    *older.last_mut().unwrap() = 2;
    let older = of(older);
    let bytes = archive(&[older.0], &[older.clone(), tree]);
    let error = Repository::read(&bytes, &Options::default()).unwrap_err();
    assert_eq!(error.fault, RepoFault::Commit(CommitFault::Version2));
    let version = bytes.windows(7).rposition(|window| window == b"version").unwrap() + 7;
    assert_eq!(error.offset, version as u64);
    assert!(error.to_string().contains("version 2"), "{error}");
}

#[test]
fn a_block_with_a_wrong_hash_is_rejected_or_reported_and_omitted() {
    let mut blocks = blocks(300);
    let sound = export(&blocks);
    let (wrong, data) = &mut blocks[150];
    *data.last_mut().unwrap() ^= 1;
    let wrong = *wrong;
    let bytes = export(&blocks);
    assert_eq!(fault(&bytes), RepoFault::Car(CarFault::HashMismatch));
    let mut noted = Vec::new();
    let archive = Archive::read_with(&bytes, &Options::default(), &mut |error| {
        noted.push(error);
        Ok(())
    });
    let archive = archive.unwrap();
    assert_eq!(noted.len(), 1);
    assert_eq!(noted[0].fault, CarFault::HashMismatch);
    assert_eq!((archive.block_count(), archive.block(&wrong)), (302, None));
    let repository = Repository::at_first_root(archive).unwrap();
    let faults: Vec<_> = repository.records().filter_map(Result::err).collect();
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].cid, faults[0].fault), (Some(wrong), RepoFault::MissingRecord));
    assert!(Repository::read(&sound, &Options::default()).is_ok());
}

#[test]
fn a_record_has_its_json_and_a_missing_tree_is_reported_with_its_cid() {
    let mut blocks = blocks(2);
    let bytes = export(&blocks);
    let repository = Repository::read(&bytes, &Options::default()).unwrap();
    let first = repository.records().next().unwrap().unwrap();
    assert_eq!(first.to_json().unwrap(), r#"{"number":0}"#);
    assert!(first.path.starts_with("app.test.record/"));
    blocks.remove(1);
    let bytes = export(&blocks);
    let repository = Repository::read(&bytes, &Options::default()).unwrap();
    let error = repository.records().next().unwrap().unwrap_err();
    assert_eq!(error.fault, RepoFault::Tree(TreeFault::Missing));
    assert_eq!(error.cid, Some(repository.commit().data));
}

#[test]
fn a_diff_lists_the_changed_records() {
    let (old, new) = (export(&blocks(5)), export(&blocks(7)));
    let old = Repository::read(&old, &Options::default()).unwrap();
    let new = Repository::read(&new, &Options::default()).unwrap();
    let diff = old.diff(&new).unwrap();
    let created: Vec<_> = diff.changes.iter().map(|c| (c.old.is_none(), c.new.is_some())).collect();
    assert_eq!(created, [(true, true); 2]);
    assert_eq!(new.diff(&old).unwrap().changes.len(), 2);
    assert_eq!(new.diff(&new).unwrap().changes, []);
    let lacking = export(&blocks(6)[..1]);
    let lacking = Repository::read(&lacking, &Options::default()).unwrap();
    let error = old.diff(&lacking).unwrap_err();
    assert_eq!(
        (error.cid, error.fault),
        (Some(lacking.commit().data), RepoFault::Tree(TreeFault::Missing))
    );
}
