use std::collections::BTreeSet;
use std::sync::LazyLock;

use codec::{Cid, car};

use super::*;
use crate::tree::reference;

static SMALL: LazyLock<Corpus> =
    LazyLock::new(|| Corpus::generate(&Spec { records: 1_000, ..Spec::quick() }));

#[test]
fn the_quick_repository_is_the_pinned_one() {
    let corpus = Corpus::generate(&Spec::quick());
    assert_eq!(Manifest::new(&corpus, &corpus.to_file()).sha256, QUICK_SHA256);
}

#[test]
fn the_tree_is_that_of_the_reference_and_a_record_stands_behind_each_key() {
    let (repository, counts) = (SMALL.repository(), SMALL.counts());
    let records: Vec<_> =
        repository.tree().entries().iter().map(|entry| (&*entry.key, entry.value)).collect();
    let built = reference::build(&records);
    assert_eq!((counts.records, &counts.root), (1_000, &built.root().to_string()));
    assert_eq!(counts.blocks, 1 + 1_000 + built.nodes().len() as u64);
    let file = SMALL.to_file();
    let blocks = car::read(&file, &car::Options::default()).unwrap().blocks;
    let found: BTreeSet<Cid> = blocks.iter().filter_map(|block| block.cid.to_cid()).collect();
    assert_eq!(blocks.len() as u64, counts.blocks);
    assert!(records.iter().all(|(_, cid)| found.contains(cid)));
    let of_records =
        blocks.iter().filter(|block| records.iter().any(|(_, cid)| cid.as_cid_ref() == block.cid));
    let record_bytes: u64 = of_records.map(|block| block.data.len() as u64).sum();
    assert_eq!(record_bytes, counts.record_bytes);
}

#[test]
fn a_shuffled_archive_has_the_same_blocks_in_no_order() {
    let spec = Spec { order: BlockOrder::Shuffled, ..SMALL.spec().clone() };
    let (streamable, shuffled) = (SMALL.to_file(), Corpus::generate(&spec).to_file());
    let cids = |file| {
        let car = car::read(file, &car::Options::default()).unwrap();
        car.blocks.iter().map(|block| block.cid.to_cid().unwrap()).collect::<Vec<_>>()
    };
    let (streamable, shuffled) = (cids(&streamable), cids(&shuffled));
    assert_ne!(streamable, shuffled);
    assert_eq!(BTreeSet::from_iter(streamable), BTreeSet::from_iter(shuffled));
}

#[test]
fn the_manifest_names_the_account_and_its_key_in_the_words_of_others() {
    let file = SMALL.to_file();
    let json = serde_json::to_value(Manifest::new(&SMALL, &file)).unwrap();
    let did = json["did"].as_str().unwrap();
    assert_eq!(json["didDoc"]["id"], did);
    let method = &json["didDoc"]["verificationMethod"][0];
    assert_eq!((&method["type"], &method["controller"]), (&"Multikey".into(), &did.into()));
    let key = method["publicKeyMultibase"].as_str().unwrap();
    assert_eq!(json["signing_key"], format!("did:key:{key}"));
    assert_eq!(json["data"], json["counts"]["root"]);
}

/// The archive of [`Spec::quick`]. It changes only with a reason, and the reason is written down.
const QUICK_SHA256: &str = "f98a1574f4c0f63313ff60d04ebae76e06736533533c40845f019c7694f89cdd";
