//! Captured frames of the network and of the reference server are valid; forged variants are not.

use std::collections::HashMap;

use atproto::corpus;
use crypto::{CompressedKey, PublicKey};
use serde_json::Value as Json;
use simnet::firehose::{Corpus, Spec};
use verify::sync::{AccountState, Chain, Outcome, Policy, SyncState};
use wireproof_conformance::{Folder, fixtures};

use super::fixture::{TestJudge, verdict};
use crate::frames::{LIVE, split_live};

#[test]
fn every_commit_of_the_reference_server_is_accepted() {
    let data = fixtures!(Captures);
    let file = data.bytes("pds/frames.bin");
    let mut judge = judge_of_the_reference_server(&data);
    let counts = tally(&mut judge, &corpus::read(&file).unwrap(), 512);
    // The capture has every account's first commit, and continues after the accounts were filled.
    let expected = [
        ("unjudged #account", 10),
        ("unjudged #identity", 10),
        ("first", 10),
        ("ignored 6 event/stale-rev", 10),
        ("broken 14 event/since", 10),
        ("still desynchronized", 3_390),
    ];
    assert_eq!(counts, expected.map(|(word, count)| (word.to_owned(), count)).into());
}

#[test]
fn the_commits_of_the_reference_server_chain_after_the_gap_in_the_capture() {
    let data = fixtures!(Captures);
    let file = data.bytes("pds/frames.bin");
    let mut judge = judge_of_the_reference_server(&data);
    let (mut mended, mut held) = (0, 0);
    for frame in corpus::read(&file).unwrap() {
        let Outcome::Commit(commit, chain) = judge.judge(frame).outcome else { continue };
        let did = commit.repo.to_owned();
        match chain {
            Chain::FirstSeen => {}
            Chain::Broken(_) => {
                let account = judge.account(&did);
                judge.state.put(&did, AccountState { sync: SyncState::Synchronized, ..account });
                mended += 1;
            }
            chain => {
                assert_eq!(chain, Chain::Intact, "{did}");
                held += 1;
            }
        }
    }
    assert_eq!((mended, held), (10, 3_390));
}

/// A verifier with the keys of the accounts of the reference server.
fn judge_of_the_reference_server(data: &Folder) -> TestJudge {
    let accounts: Vec<Json> = serde_json::from_str(&data.text("pds/accounts.json")).unwrap();
    let did = |account: &Json| account["did"].as_str().unwrap().to_owned();
    let mut judge = TestJudge::new(Policy::default());
    judge.keys.extend(accounts.iter().map(|a| (did(a), signing_key(&a["didDoc"]))));
    judge.now_micros = FAR_MICROS;
    judge
}

#[test]
fn every_commit_of_the_live_network_is_accepted() {
    let data = fixtures!(Captures);
    let documents: HashMap<String, Json> =
        serde_json::from_str(&data.text("atproto/frames/did_docs_dev.json")).unwrap();
    let mut judge = TestJudge::new(Policy::default());
    judge.keys.extend(documents.iter().map(|(did, document)| (did.clone(), signing_key(document))));
    judge.now_micros = FAR_MICROS;
    let file = data.bytes(LIVE);
    let counts = tally(&mut judge, &split_live(&file), 7);
    assert_eq!(counts.values().sum::<usize>(), 62);
    assert_eq!(counts["unjudged #account"], 1, "{counts:?}");
    assert!(counts.keys().all(|word| !word.starts_with("refused")), "{counts:?}");
}

#[test]
fn every_forged_frame_is_rejected_for_what_was_forged() {
    let data = fixtures!(Captures);
    let keys: Json = serde_json::from_str(&data.text("atproto/negative/keys.json")).unwrap();
    let key = CompressedKey::from_did_key(keys["frames_keys"][0].as_str().unwrap()).unwrap();
    let did = keys["frames_did"].as_str().unwrap();
    let verdict = |name: &str| {
        let mut judge = TestJudge::new(Policy::default());
        judge.keys.insert(did.to_owned(), key);
        judge.now_micros = FAR_MICROS;
        judge.verdict(&data.bytes(&format!("atproto/negative/frames/{name}.frame")))
    };
    assert_eq!(verdict("f01_record_hash_mismatch"), "rejected 8 car/hash");
    assert_eq!(verdict("f02_bad_signature"), "rejected 11 signature/wrong");
    assert_eq!(verdict("f05_missing_mst_node"), "rejected 16 event/partial-tree");
    assert_eq!(verdict("f11_trailing_byte"), "rejected 1 frame/cbor");
    assert_eq!(verdict("f12_truncated"), "rejected 1 frame/cbor");
    assert_eq!(verdict("f17_error_frame"), "unjudged error");
    assert_eq!(verdict("f18_info_frame"), "unjudged #info");
    assert_eq!(verdict("f21_duplicate_block"), "first");
}

#[test]
fn every_commit_of_the_calibrated_stream_is_accepted_and_chained() {
    let corpus = Corpus::generate(&Spec::quick(), &mut |_, _| {});
    let mut judge = TestJudge::of(corpus.accounts());
    judge.now_micros = FAR_MICROS;
    let frames: Vec<&[u8]> = corpus.frames().iter().map(Vec::as_slice).collect();
    let counts = tally(&mut judge, &frames, 64);
    assert_eq!(counts["first"], corpus.accounts().len(), "{counts:?}");
    let held = counts.get("intact").copied().unwrap_or(0);
    assert_eq!(counts["first"] + held, frames.len(), "{counts:?}");
    for (number, account) in corpus.accounts().enumerate() {
        let head = judge.account(account.did()).head.unwrap();
        let repository = corpus.repository(number);
        assert_eq!((head.data, head.commit), (repository.tree().root(), repository.head().cid));
    }
}

/// Counts of verdicts. Accepted commits include proved records only.
fn tally(judge: &mut TestJudge, frames: &[&[u8]], batch_len: usize) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for batch in frames.chunks(batch_len) {
        for judged in judge.judge_batch(batch) {
            if let Outcome::Commit(commit, _) = judged.outcome {
                assert!(commit.ops.iter().all(|op| op.cid == op.record.map(|record| record.cid)));
            }
            *counts.entry(verdict(&judged.outcome)).or_default() += 1;
        }
    }
    counts
}

/// The key of a DID document's first verification method, of any type.
fn signing_key(document: &Json) -> CompressedKey {
    let method = &document["verificationMethod"][0];
    let text = |name: &str| method[name].as_str().unwrap();
    let key = PublicKey::from_verification_method(text("type"), text("publicKeyMultibase"));
    *key.unwrap().as_compressed()
}

/// A time after all captures: 2030.
const FAR_MICROS: u64 = 1_893_456_000_000_000;
