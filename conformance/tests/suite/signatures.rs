//! The signature and key fixtures of the AT Protocol, and real commits under the keys of their accounts.
//! Project Wycheproof and the vectors of BIP-340 are among the tests of `wireproof-crypto`.

use std::collections::HashMap;

use atproto::commit::{Commit, CommitFault, SigningBytes};
use atproto::event::{Decoder, Event, Options};
use atproto::{commit, corpus};
use codec::car;
use crypto::{
    Curve, KeyCache, KeyRef, PublicKey, SecretKey, SignatureCheck, SignatureFault, SignedData,
    verify_many, verify_many_cached,
};
use data_encoding::{BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use serde_json::Value as Json;
use wireproof_conformance::{Folder, fixtures};

use crate::frames::{LIVE, split_live};

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).unwrap()
}

#[test]
fn official_signature_fixtures_hold() {
    let data = fixtures!(Captures);
    let fixtures: Json =
        serde_json::from_str(&data.text("atproto/interop/crypto/signature-fixtures.json")).unwrap();
    let fixtures = fixtures.as_array().unwrap();
    assert_eq!(fixtures.len(), 6);
    for fixture in fixtures {
        let text = |name: &str| fixture[name].as_str().unwrap();
        let bytes = |name: &str| BASE64_NOPAD.decode(text(name).as_bytes()).unwrap();
        let key = PublicKey::from_did_key(text("publicKeyDid")).unwrap();
        assert_eq!(key.curve().jwt_algorithm(), text("algorithm"));
        let legacy = text("publicKeyMultibase");
        assert_eq!(
            PublicKey::from_verification_method(text("didDocSuite"), legacy),
            Ok(key.clone())
        );
        let (message, signature) = (bytes("messageBase64"), bytes("signatureBase64"));
        let verdict = key.verify(&message, &signature);
        let comment = text("comment");
        assert_eq!(verdict.is_ok(), fixture["validSignature"].as_bool().unwrap(), "{comment}");
        let lenient = key.verify_allowing_high_s(&message, &signature);
        match fixture["tags"][0].as_str() {
            None => assert_eq!((verdict, lenient), (Ok(()), Ok(()))),
            Some("high-s") => {
                assert_eq!((verdict, lenient), (Err(SignatureFault::HighS), Ok(())));
            }
            Some("der-encoded") => {
                let length = Err(SignatureFault::Length(signature.len()));
                assert_eq!((verdict, lenient), (length, length));
            }
            Some(other) => panic!("an unknown tag {other}"),
        }
    }
}

#[test]
fn official_did_keys_of_k256_are_those_of_their_secret_keys() {
    let data = fixtures!(Captures);
    let text = data.text("atproto/interop/crypto/w3c_didkey_K256.json");
    let secret = |fixture: &Json| hex(fixture["privateKeyBytesHex"].as_str().unwrap());
    assert_eq!(count_did_keys(Curve::K256, &text, secret), 5);
}

#[test]
fn the_official_did_key_of_p256_is_that_of_its_secret_key() {
    let data = fixtures!(Captures);
    let text = data.text("atproto/interop/crypto/w3c_didkey_P256.json");
    let secret = |fixture: &Json| {
        bs58::decode(fixture["privateKeyBytesBase58"].as_str().unwrap()).into_vec().unwrap()
    };
    assert_eq!(count_did_keys(Curve::P256, &text, secret), 1);
}

fn count_did_keys(curve: Curve, text: &str, secret: impl Fn(&Json) -> Vec<u8>) -> usize {
    let fixtures: Vec<Json> = serde_json::from_str(text).unwrap();
    for fixture in &fixtures {
        let secret = SecretKey::from_bytes(curve, &secret(fixture).try_into().unwrap()).unwrap();
        let did_key = fixture["publicDidKey"].as_str().unwrap();
        assert_eq!(secret.public_key().to_did_key(), did_key);
        assert_eq!(PublicKey::from_did_key(did_key), Ok(secret.public_key()));
    }
    fixtures.len()
}

#[test]
fn commits_of_the_live_network_are_signed_by_their_accounts() {
    let data = fixtures!(Captures);
    let documents: HashMap<String, Json> =
        serde_json::from_str(&data.text("atproto/frames/did_docs_dev.json")).unwrap();
    let keys = documents.iter().map(|(did, document)| (did.clone(), signing_key(document)));
    let file = data.bytes(LIVE);
    assert_all_signed(&commit_blocks(&split_live(&file)), &keys.collect(), 61);
}

#[test]
fn commits_of_the_reference_server_are_signed_by_their_accounts() {
    let data = fixtures!(Captures);
    let accounts: Vec<Json> = serde_json::from_str(&data.text("pds/accounts.json")).unwrap();
    let key = |account: &Json| {
        (account["did"].as_str().unwrap().to_owned(), signing_key(&account["didDoc"]))
    };
    let keys: HashMap<String, PublicKey> = accounts.iter().map(key).collect();
    let file = data.bytes("pds/frames.bin");
    let mut blocks = commit_blocks(&corpus::read(&file).unwrap());
    assert!(blocks.len() > 3_000, "{}", blocks.len());
    blocks.truncate(1_000);
    assert_all_signed(&blocks, &keys, 1_000);
}

/// The key of a DID document's first verification method, of any type.
fn signing_key(document: &Json) -> PublicKey {
    let method = &document["verificationMethod"][0];
    let text = |name: &str| method[name].as_str().unwrap();
    PublicKey::from_verification_method(text("type"), text("publicKeyMultibase")).unwrap()
}

/// The blocks of the commit and sync events.
fn commit_blocks(frames: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::new(Options::default());
    let mut blocks = Vec::new();
    for frame in frames {
        let event = decoder.decode(frame).unwrap();
        let root = match event {
            Event::Commit(commit) => commit.root,
            Event::Sync(sync) => sync.root,
            _ => continue,
        };
        let is_root = |block: &&atproto::event::Block<'_>| Some(block.cid) == root;
        blocks.push(event.blocks().iter().find(is_root).unwrap().data.to_vec());
    }
    blocks
}

/// Verifies the blocks alone, together, and together with a cache.
fn assert_all_signed(blocks: &[Vec<u8>], keys: &HashMap<String, PublicKey>, count: usize) {
    let commits: Vec<Commit<'_>> =
        blocks.iter().map(|block| Commit::parse(block).unwrap()).collect();
    assert_eq!(commits.len(), count);
    let signing_bytes: Vec<SigningBytes<'_>> = commits.iter().map(Commit::signing_bytes).collect();
    let digests = commit::digest_many(&signing_bytes);
    let pairs = commits.iter().zip(&digests);
    let checks: Vec<SignatureCheck<'_>> = pairs
        .map(|(commit, digest)| SignatureCheck {
            signed: SignedData::Digest(*digest),
            signature: commit.sig,
            key: KeyRef::Compressed(*keys[commit.did].as_compressed()),
        })
        .collect();
    assert_eq!(verify_many(&checks), vec![Ok(()); count]);
    let mut cache = KeyCache::new(1 << 20, [7; 16]);
    for _ in 0..2 {
        let mut verdicts = vec![Err(SignatureFault::Mismatch); count];
        verify_many_cached(&checks, &mut cache, &mut verdicts);
        assert_eq!(verdicts, vec![Ok(()); count]);
    }
    for commit in commits.iter().step_by(10) {
        let message = commit.signing_bytes().to_vec();
        assert_eq!(keys[commit.did].verify(&message, commit.sig), Ok(()));
    }
}

#[test]
fn commits_of_archived_repositories_are_signed_by_a_key_of_their_account() {
    let data = fixtures!(Captures);
    let known: HashMap<String, Vec<String>> =
        serde_json::from_str(&data.text("atproto/cars/keys.json")).unwrap();
    let mut verified = 0;
    for path in data.files("atproto/cars", ".car") {
        let block = root_block(&data, &path);
        let commit = match Commit::parse(&block) {
            Ok(commit) => commit,
            Err(error) => {
                assert!(path.ends_with("_v2.car"), "{path}: {error}");
                assert_eq!(error.fault, CommitFault::Version2);
                continue;
            }
        };
        let Some(keys) = known.get(commit.did) else { continue };
        let keys = keys.iter().map(|key| PublicKey::from_did_key(key).unwrap());
        let digest = commit.signing_bytes().digest();
        let fits = keys.filter(|key| key.verify_digest(&digest, commit.sig).is_ok()).count();
        assert_eq!(fits, 1, "{path}");
        verified += 1;
    }
    assert_eq!(verified, 3);
}

#[test]
fn commits_of_forged_repositories_are_refused_for_what_was_forged() {
    let data = fixtures!(Captures);
    let keys: Json = serde_json::from_str(&data.text("atproto/negative/keys.json")).unwrap();
    let key = PublicKey::from_did_key(keys["repos_keys"][0].as_str().unwrap()).unwrap();
    let verdict = |name: &str| {
        let block = root_block(&data, &format!("atproto/negative/repos/{name}"));
        let commit = Commit::parse(&block).map_err(|error| error.fault).unwrap();
        key.verify_digest(&commit.signing_bytes().digest(), commit.sig)
    };
    assert_eq!(verdict("r00_control_k256.car"), Ok(()));
    assert_eq!(verdict("r02_high_s.car"), Err(SignatureFault::HighS));
    assert_eq!(verdict("r25_empty_repo.car"), Ok(()));
    let unsigned = root_block(&data, "atproto/negative/repos/r20_commit_no_sig.car");
    assert_eq!(Commit::parse(&unsigned).unwrap_err().fault, CommitFault::Missing("sig"));
}

#[test]
fn a_flipped_bit_in_a_signature_is_the_only_fault_of_its_frame() {
    let data = fixtures!(Captures);
    let keys: Json = serde_json::from_str(&data.text("atproto/negative/keys.json")).unwrap();
    let key = PublicKey::from_did_key(keys["frames_keys"][0].as_str().unwrap()).unwrap();
    let verdict = |name: &str| {
        let frame = data.bytes(&format!("atproto/negative/frames/{name}"));
        let blocks = commit_blocks(&[&frame]);
        let commit = Commit::parse(&blocks[0]).unwrap();
        key.verify_digest(&commit.signing_bytes().digest(), commit.sig)
    };
    assert_eq!(verdict("f02_bad_signature.frame"), Err(SignatureFault::Mismatch));
    assert_eq!(verdict("f21_duplicate_block.frame"), Ok(()));
}

/// The first root of an archive, which is the commit.
fn root_block(data: &Folder, path: &str) -> Vec<u8> {
    let file = data.bytes(path);
    let archive = car::read(&file, &car::Options::default()).unwrap();
    let root = archive.roots.first().unwrap();
    archive.blocks.iter().find(|block| block.cid == root).unwrap().data.to_vec()
}
