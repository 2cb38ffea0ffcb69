//! Slices prove what they hold and what they do not, and nothing when a piece is missing.

use atproto::mst::canonical;
use codec::cid::Codec;

use super::*;
use crate::repository::tests::{DID, Parts, path, record, secret};

/// The blocks that prove what stands at `path`, the commit first.
fn slice(parts: &Parts, path: &str) -> Vec<(Cid, Vec<u8>)> {
    let export = parts.export();
    let repository = Repository::read(&export, &car::Options::default()).unwrap();
    let found = canonical::search(repository.commit().data, &repository, path.as_bytes()).unwrap();
    let mut blocks = vec![(repository.root(), repository.commit_block().to_vec())];
    blocks.extend(found.nodes.iter().map(|(cid, block)| (*cid, block.to_vec())));
    let record = found.value.and_then(|value| value.to_cid());
    blocks.extend(record.map(|cid| (cid, repository.block(&cid).unwrap().to_vec())));
    blocks
}

fn archive(blocks: &[(Cid, Vec<u8>)]) -> Vec<u8> {
    let mut writer = car::Writer::new(Vec::new(), &[blocks[0].0]).unwrap();
    blocks.iter().for_each(|(cid, block)| writer.block(cid, block).unwrap());
    writer.into_inner()
}

fn check<'a>(
    slice: &'a [u8],
    path: &str,
) -> Result<Verified<RecordProof<'a>>, RepositoryRejection> {
    verify(slice, path, Some(DID), &secret().public_key(), &Options::default())
}

#[test]
fn a_record_is_proved_by_the_nodes_on_its_way() {
    let parts = Parts::of(500);
    for number in [0, 1, 77, 499] {
        let blocks = slice(&parts, &path(number));
        let slice = archive(&blocks);
        let proof = check(&slice, &path(number)).unwrap();
        let expected = record(&format!("number {number}"));
        assert_eq!(proof.record(), Some((Cid::of(Codec::DagCbor, &expected), &expected[..])));
        assert_eq!((proof.nodes(), proof.extra().blocks), (blocks.len() - 2, 0));
    }
}

#[test]
fn the_absence_of_a_record_is_proved_by_the_nodes_to_its_empty_place() {
    let parts = Parts::of(500);
    for wanted in ["app.aaa.first/0", "app.test.record/0000000000100a", "app.zzz.last/9"] {
        let blocks = slice(&parts, wanted);
        let slice = archive(&blocks);
        let proof = check(&slice, wanted).unwrap();
        assert_eq!((proof.record(), proof.commit().did), (None, DID));
        assert!(proof.nodes() > 1);
    }
    let empty = archive(&slice(&Parts::of(0), "app.test.record/0"));
    assert_eq!(check(&empty, "app.test.record/0").unwrap().record(), None);
}

#[test]
fn without_any_one_block_nothing_is_proved() {
    let parts = Parts::of(500);
    for wanted in [path(123), "app.test.record/0000000000123a".to_owned()] {
        let blocks = slice(&parts, &wanted);
        for gone in 1..blocks.len() {
            let mut fewer = blocks.clone();
            let (cid, _) = fewer.remove(gone);
            let refusal = check(&archive(&fewer), &wanted).unwrap_err();
            let is_node = gone < blocks.len() - 1 || wanted.ends_with('a');
            let code = if is_node { "tree/missing-node" } else { "record/missing" };
            assert_eq!((refusal.code(), refusal.cid), (code, Some(cid)));
        }
    }
}

#[test]
fn every_flipped_byte_is_refused() {
    let mut slice = archive(&slice(&Parts::of(60), &path(33)));
    for at in 0..slice.len() {
        slice[at] ^= 0x10;
        assert!(check(&slice, &path(33)).is_err(), "byte {at}");
        slice[at] ^= 0x10;
    }
}

#[test]
fn the_slice_of_one_path_proves_no_other_that_it_does_not_lead_to() {
    let parts = Parts::of(500);
    let slice = archive(&slice(&parts, &path(5)));
    let refusal = check(&slice, &path(400)).unwrap_err();
    assert!(matches!(refusal.code(), "tree/missing-node" | "record/missing"));
}

#[test]
fn what_is_beside_the_proof_is_counted() {
    let parts = Parts::of(100);
    let export = parts.export();
    let proof = check(&export, &path(7)).unwrap();
    let total = parts.records.len() + parts.nodes().1.len() + 1;
    assert_eq!(proof.extra().blocks as usize, total - proof.nodes() - 2);
}

#[test]
fn a_path_that_is_none_is_refused_unless_any_key_will_do() {
    let mut parts = Parts::of(5);
    parts.put("odd", record("odd"));
    let slice = archive(&slice(&parts, "odd"));
    assert_eq!(check(&slice, "odd").unwrap_err().code(), "record/path");
    let options = Options { allow_any_key: true, ..Options::default() };
    let proof = verify(&slice, "odd", None, &secret().public_key(), &options).unwrap();
    assert!(proof.record().is_some());
}
