//! Slices of real repositories prove which records the repositories contain and which they do not.

use atproto::mst::{Tree, canonical};
use atproto::repo::{Options as CarOptions, Repository};
use codec::Cid;
use codec::car::Writer;
use crypto::PublicKey;
use verify::record::{self, Options};
use wireproof_conformance::fixtures;

/// The account of `bsky.app` and the key that it signs with.
const DID: &str = "did:plc:z72i7hdynmk6r22z27h6tvur";
const KEY: &str = "did:key:zQ3shQo6TF2moaqMTrUZEM1jeuYRQXeHEx4evX9751y2qPqRA";

/// The archive of the commit, the nodes on the way to `path`, and the record if there is one.
fn slice(repository: &Repository<'_>, path: &str) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &[repository.root()]).unwrap();
    writer.block(&repository.root(), repository.commit_block()).unwrap();
    let mut tree = Tree::load_partial(repository.commit().data, repository);
    for (cid, node) in tree.record_proof(path.as_bytes()).unwrap() {
        writer.block(&cid, &node).unwrap();
    }
    let found = tree.get(path.as_bytes()).unwrap().and_then(|value| value.to_cid());
    if let Some(cid) = found {
        writer.block(&cid, repository.block(&cid).unwrap()).unwrap();
    }
    writer.into_inner()
}

#[test]
fn every_record_of_a_real_repository_is_proved_by_its_slice_and_its_neighbour_by_none() {
    let data = fixtures!(Captures);
    let export = data.bytes("atproto/cars/bsky-app_3ld7z52fef622.car");
    let repository = Repository::read(&export, &CarOptions::default()).unwrap();
    let key = PublicKey::from_did_key(KEY).unwrap();
    let options = Options::default();
    let mut proved = 0;
    for found in repository.records().map(Result::unwrap) {
        let own = slice(&repository, &found.path);
        let proof = record::verify(&own, &found.path, Some(DID), &key, &options).unwrap();
        assert_eq!(proof.record(), Some((found.cid, found.block)));
        assert_eq!(proof.extra().blocks, 0, "{}", found.path);
        let other = format!("{}0", found.path);
        let none = slice(&repository, &other);
        let proof = record::verify(&none, &other, Some(DID), &key, &options).unwrap();
        assert_eq!((proof.record(), proof.extra().blocks), (None, 0), "{other}");
        proved += 1;
    }
    assert_eq!(proved, 604);
}

#[test]
fn a_slice_of_another_account_is_read_up_to_its_signature() {
    let data = fixtures!(Captures);
    let bytes = data.bytes("atproto/cars/attie_partial.car");
    let repository = Repository::read(&bytes, &CarOptions::default()).unwrap();
    let key = PublicKey::from_did_key(KEY).unwrap();
    let paths: Vec<String> = repository.records().flatten().map(|record| record.path).collect();
    assert_eq!(paths.len(), 1);
    let refusal = record::verify(&bytes, &paths[0], None, &key, &Options::default()).unwrap_err();
    assert_eq!(refusal.code(), "signature/wrong");
    let data = repository.commit().data;
    let found = canonical::search(data, &repository, paths[0].as_bytes()).unwrap();
    assert_eq!(found.nodes.len(), 3);
    let named: Option<Cid> = found.value.and_then(|value| value.to_cid());
    assert!(repository.block(&named.unwrap()).is_some());
}
