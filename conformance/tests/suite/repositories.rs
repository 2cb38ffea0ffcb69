//! Real repositories verify, with the records that other implementations found; forged and partial ones
//! are rejected with the matching error.

use std::collections::HashMap;
use std::io::{self, Read};

use atproto::did_document::{DidDocument, Options as DocumentOptions};
use atproto::mst::Tree;
use atproto::repo::{self, Archive, RepoFault, Repository};
use codec::car::{self, CarFault};
use codec::{AnyCid, Cid};
use crypto::PublicKey;
use serde_json::Value as Json;
use simnet::hostile::{CaseSet, Expect, InputKind, Spec as HostileSpec};
use simnet::repository_corpus::{BlockOrder, Corpus, Spec};
use simnet::tree::reference;
use verify::repository::stream::{self, StreamFailure, StreamOptions};
use verify::repository::{self, Options, RepositoryRejection, SignatureProof, WholeRepository};
use verify::{Flagged, identity};
use wireproof_conformance::{Folder, Manifest, fact, fixtures};

/// Verifies a whole repository with any of these keys, or without one; the repository exported from it, and both as
/// streams, must verify with the same result.
fn prove(export: &[u8], did: Option<&str>, keys: &[String]) -> Result<(), RepositoryRejection> {
    let options = Options::default();
    assert_stream_agrees(export, &options);
    let whole = under_any(export, did, keys, &options)?;
    assert_eq!(repository::collect_rejections(export, did, None, &options, 100), []);
    let again = whole.export(Vec::new()).unwrap();
    let judged = under_any(&again, did, keys, &options)?;
    assert_eq!((judged.root(), judged.tree()), (whole.root(), whole.tree()));
    assert_eq!((judged.signature(), judged.extra().blocks), (whole.signature(), 0));
    assert_eq!(judged.export(Vec::new()).unwrap(), again);
    assert_stream_agrees(&again, &options);
    let walked = repository::parse(export, &options)?.without_signature().walk()?;
    walked.rebuild()
}

/// Asserts that an export that is received in parts gets the verdict of the whole, without a key.
fn assert_stream_agrees(export: &[u8], options: &Options) {
    let whole = repository::verify_without_signature(export, options);
    let mut stream_options = StreamOptions::default();
    stream_options.repository = *options;
    stream_options.flag_records = true;
    let source = Pieces { rest: export, len: 1 };
    let opened = stream::open(source, &stream_options);
    match (opened.and_then(|opened| opened.without_signature().verify()), whole) {
        (Ok(streamed), Ok(whole)) => {
            assert_eq!((streamed.root(), streamed.tree()), (whole.root(), whole.tree()));
            assert_eq!(streamed.commit(), *whole.commit());
            assert_eq!(streamed.invalid_records(), whole.invalid_records());
            assert_eq!(streamed.extra(), whole.extra());
            assert_eq!(streamed.blocks(), whole.archive().block_count());
            assert_eq!(streamed.bytes(), export.len() as u64);
            assert_eq!(*streamed.flagged_records(), Flagged::of_repository(&whole));
        }
        (Err(StreamFailure::Rejected(streamed)), Err(whole)) => assert_eq!(*streamed, whole),
        (streamed, whole) => panic!("{:?}, {:?}", streamed.map(|_| ()), whole.map(|_| ())),
    }
}

/// A reader whose reads have the lengths 1, 2, 4 and so on up to 64 KiB, again and again.
struct Pieces<'a> {
    rest: &'a [u8],
    len: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.len.min(out.len());
        self.len = if self.len < 1 << 16 { 2 * self.len } else { 1 };
        self.rest.read(&mut out[..len])
    }
}

fn under_any<'a>(
    export: &'a [u8],
    did: Option<&str>,
    keys: &[String],
    options: &Options,
) -> Result<WholeRepository<'a>, RepositoryRejection> {
    let parsed = repository::parse(export, options)?;
    let keys = keys.iter().map(|key| PublicKey::from_did_key(key).unwrap());
    let mut signed = Err(None);
    for key in keys {
        match parsed.clone().verify_signature(did, &key) {
            Ok(found) => signed = Ok(found),
            Err(refusal) if signed.is_err() => signed = Err(Some(refusal)),
            Err(_) => {}
        }
    }
    let signed = match signed {
        Ok(signed) => signed,
        Err(None) => parsed.without_signature(),
        Err(Some(refusal)) => return Err(refusal),
    };
    Ok(signed.walk()?.verify_records()?.into_inner())
}

#[test]
fn archived_repositories_are_proved_with_the_records_that_others_found() {
    let data = fixtures!(Captures);
    let manifest = Manifest::of(&data);
    let known: HashMap<String, Vec<String>> =
        serde_json::from_str(&data.text("atproto/cars/keys.json")).unwrap();
    let (mut whole, mut signed) = (0, 0);
    for path in data.files("atproto/cars", ".car") {
        let facts = manifest.facts(path.strip_prefix("atproto/").unwrap());
        if fact(facts, "full_valid_repo") != Some("yes") {
            continue;
        }
        let export = data.bytes(&path);
        let did = fact(facts, "did").unwrap();
        let keys = known.get(did).cloned().unwrap_or_default();
        prove(&export, Some(did), &keys).unwrap_or_else(|refusal| panic!("{path}: {refusal}"));
        let repository = Repository::read(&export, &repo::Options::default()).unwrap();
        assert_eq!(Some(repository.root().to_string().as_str()), fact(facts, "root"));
        assert_eq!(Some(repository.commit().rev), fact(facts, "rev"));
        assert_records(&data, &path, &repository);
        assert_counts(&export, facts, &path);
        whole += 1;
        signed += usize::from(!keys.is_empty());
    }
    assert_eq!((whole, signed), (9, 3));
}

fn assert_counts(export: &[u8], facts: &str, path: &str) {
    let whole = repository::verify_without_signature(export, &Options::default()).unwrap();
    let tree = whole.tree();
    let count = |name: &str| fact(facts, name).unwrap().parse::<u64>().unwrap();
    assert_eq!(tree.records, count("records"), "{path}");
    assert_eq!(tree.nodes, count("mst_nodes"), "{path}");
    assert_eq!(tree.height.map_or(1, |height| u64::from(height) + 1), count("mst_layers"));
    assert_eq!(whole.archive().block_count(), count("blocks"), "{path}");
    assert_eq!(whole.signature(), SignatureProof::NotChecked);
}

fn assert_records(data: &Folder, path: &str, repository: &Repository<'_>) {
    let expected = path.replace("cars/", "cars/expected/");
    let table = data.text(&format!("{expected}.records.tsv"));
    let records: Vec<_> = repository.records().map(Result::unwrap).collect();
    let listed: Vec<String> =
        records.iter().map(|record| format!("{}\t{}", record.path, record.cid)).collect();
    assert_eq!(listed, table.lines().collect::<Vec<_>>(), "{path}");
    let name = format!("{expected}.records.jsonl");
    if !data.path(&name).exists() {
        return;
    }
    for (line, record) in data.text(&name).lines().zip(&records) {
        let line: Json = serde_json::from_str(line).unwrap();
        assert_eq!(line["path"], record.path);
        assert_eq!(line["cid"], record.cid.to_string());
        let value: Json = serde_json::from_str(&record.to_json().unwrap()).unwrap();
        assert_eq!(value, line["value"], "{path}: {}", record.path);
    }
}

#[test]
fn partial_repositories_are_refused_for_what_is_missing_and_old_ones_for_their_version() {
    let data = fixtures!(Captures);
    let code = |name: &str| {
        let export = data.bytes(&format!("atproto/cars/{name}"));
        assert_stream_agrees(&export, &Options::default());
        repository::verify_without_signature(&export, &Options::default()).unwrap_err().code()
    };
    assert_eq!(code("attie_partial.car"), "tree/missing-node");
    assert_eq!(code("divy_v2.car"), "commit/version");
    assert_eq!(code("repo_slice_v2.car"), "commit/version");
    let partial = data.bytes("atproto/cars/attie_partial.car");
    let all = repository::collect_rejections(&partial, None, None, &Options::default(), 1000);
    let count = |code: &str| all.iter().filter(|fault| fault.code() == code).count();
    // The manifest: 2 nodes and 12 records are missing.
    assert_eq!((count("tree/missing-node"), count("record/missing"), all.len()), (2, 12, 14));
}

#[test]
fn repositories_of_a_reference_server_are_proved_under_the_keys_of_their_did_documents() {
    let data = fixtures!(Captures);
    let accounts: Vec<Json> = serde_json::from_str(&data.text("pds/accounts.json")).unwrap();
    assert_eq!(accounts.len(), 10);
    for account in accounts {
        let did = account["did"].as_str().unwrap();
        let document = account["didDoc"].to_string();
        let document =
            DidDocument::parse(document.as_bytes(), &DocumentOptions::default()).unwrap();
        let key = identity::signing_key(&document).unwrap().expect("a key");
        let export = data.bytes(&format!("pds/{}.car", did.replace(':', "_")));
        prove(&export, Some(did), &[key.to_did_key()])
            .unwrap_or_else(|refusal| panic!("{did}: {refusal}"));
    }
}

#[test]
fn forged_repositories_are_refused_for_what_was_forged() {
    let data = fixtures!(Captures);
    let keys: Json = serde_json::from_str(&data.text("atproto/negative/keys.json")).unwrap();
    let did = keys["repos_did"].as_str();
    let key = keys["repos_keys"][0].as_str().unwrap().to_owned();
    let verdict = |name: &str| {
        let export = data.bytes(&format!("atproto/negative/repos/{name}"));
        prove(&export, did, std::slice::from_ref(&key)).map_err(|refusal| refusal.code())
    };
    assert_eq!(verdict("r00_control_k256.car"), Ok(()));
    assert_eq!(verdict("r25_empty_repo.car"), Ok(()));
    assert_eq!(verdict("r02_high_s.car"), Err("signature/high-s"));
    assert_eq!(verdict("r04_all_keys_one_node.car"), Err("tree/layer"));
    assert_eq!(verdict("r05_unsorted_keys.car"), Err("tree/order"));
    assert_eq!(verdict("r20_commit_no_sig.car"), Err("commit/missing"));
}

#[test]
fn archives_of_other_things_have_blocks_but_no_commit() {
    let data = fixtures!(Captures);
    for name in ["carv1-basic.car", "iroh_testv1.car"] {
        let bytes = data.bytes(&format!("atproto/car-format/{name}"));
        let archive = Archive::read(&bytes, &car::Options::default()).unwrap();
        let blocks = car::read(&bytes, &car::Options::default()).unwrap().blocks;
        assert_eq!(archive.block_count(), blocks.len() as u64, "{name}");
        for block in blocks {
            let found = block.cid.to_cid().map(|cid| archive.block(&cid));
            assert!(found.is_none() || found == Some(Some(block.data)), "{name}");
        }
        let fault = Repository::read(&bytes, &repo::Options::default()).unwrap_err().fault;
        assert!(matches!(fault, RepoFault::Root | RepoFault::Commit(_)), "{name}: {fault}");
    }
}

/// A generated account's repository, its DID and its key.
fn generated(seed: u64, order: BlockOrder) -> (Vec<u8>, String, String) {
    let records = 40 + 30 * seed as usize;
    let corpus = Corpus::generate(&Spec { seed, records, order });
    let account = corpus.repository().account();
    (corpus.to_file(), account.did().to_owned(), account.key().did_key())
}

#[test]
fn generated_repositories_are_proved_and_are_the_trees_of_the_reference() {
    for seed in 0..20 {
        let (export, did, key) = generated(seed, BlockOrder::Streamable);
        let (shuffled, ..) = generated(seed, BlockOrder::Shuffled);
        prove(&export, Some(&did), std::slice::from_ref(&key)).unwrap();
        prove(&shuffled, Some(&did), &[key]).unwrap();
        let repository = Repository::read(&shuffled, &repo::Options::default()).unwrap();
        // The written bytes equal other implementations' bytes for the same order.
        assert_eq!(repository.export(Vec::new()).unwrap(), export);
        let records: Vec<(String, Cid)> =
            repository.records().map(|record| record.map(|r| (r.path, r.cid)).unwrap()).collect();
        let items: Vec<(&str, Cid)> = records.iter().map(|(path, cid)| (&**path, *cid)).collect();
        let built = reference::build(&items);
        assert_eq!(built.root(), repository.commit().data);
        let nodes = repository::verify_without_signature(&export, &Options::default()).unwrap();
        assert_eq!(nodes.tree().nodes, built.nodes().len() as u64);
        let items = records.into_iter().map(|(path, cid)| (path, AnyCid::from(cid)));
        assert_eq!(Tree::from_sorted(items).unwrap().root(), built.root());
    }
}

#[test]
fn an_export_cut_anywhere_is_refused() {
    let (export, did, key) = generated(1, BlockOrder::Streamable);
    let cuts = (0..export.len()).step_by(101).chain(section_ends(&export));
    for cut in cuts.filter(|cut| *cut < export.len()) {
        let refusal = prove(&export[..cut], Some(&did), std::slice::from_ref(&key)).unwrap_err();
        let code = refusal.code();
        let is_cut = matches!(code, "car/truncated" | "commit/missing-block");
        assert!(is_cut || code == "tree/missing-node" || code == "record/missing", "{cut}: {code}");
    }
}

/// Where blocks end: an archive that is cut there is a shorter one.
fn section_ends(export: &[u8]) -> Vec<usize> {
    let archive = car::read(export, &car::Options::default()).unwrap();
    archive.blocks.iter().map(|block| block.data_offset() + block.data.len()).collect()
}

#[test]
fn a_hash_that_is_wrong_names_its_block() {
    let (mut export, did, key) = generated(2, BlockOrder::Streamable);
    let archive = car::read(&export, &car::Options::default()).unwrap();
    let last = archive.blocks.last().unwrap();
    let (cid, at) = (last.cid.to_cid(), last.offset);
    *export.last_mut().unwrap() ^= 1;
    let refusal = prove(&export, Some(&did), &[key]).unwrap_err();
    assert_eq!((refusal.code(), refusal.cid, refusal.offset), ("car/hash", cid, Some(at)));
    let fault = Repository::read(&export, &repo::Options::default()).unwrap_err().fault;
    assert_eq!(fault, RepoFault::Car(CarFault::HashMismatch));
}

#[test]
fn hostile_repositories_are_refused_by_the_rule_that_they_break_and_odd_ones_proved() {
    let set = CaseSet::generate(&HostileSpec::default());
    let mut judged = 0;
    for case in set.cases().iter().filter(|case| case.kind == InputKind::Repo) {
        let key = PublicKey::from_did_key(&case.signing_key).unwrap();
        let mut options = Options::default();
        options.strict_records = true;
        assert_stream_agrees(&case.bytes, &options);
        let options = Options::default();
        assert_stream_agrees(&case.bytes, &options);
        let verdict = repository::verify(&case.bytes, Some(&case.did), &key, &options);
        let all = repository::collect_rejections(
            &case.bytes,
            Some(&case.did),
            Some(&key),
            &options,
            1000,
        );
        match (case.expect, verdict) {
            (Expect::Accept | Expect::InvalidRecord, Ok(whole)) => {
                assert_eq!(all, [], "{}", case.name);
                let first = whole.invalid_records().first.as_ref();
                assert_eq!(first.map(|invalid| invalid.error.code()), case.code, "{}", case.name);
            }
            (Expect::Refuse, Err(refusal)) => {
                assert_eq!(Some(refusal.code()), case.code, "{}: {refusal}", case.name);
                assert_eq!(all.first(), Some(&refusal), "{}", case.name);
            }
            (_, verdict) => panic!("{}: {:?}", case.name, verdict.map(|_| ())),
        }
        judged += 1;
    }
    assert!(judged > 50, "{judged} repositories");
}
