//! The simulated network makes the trees, keys and signatures that the interoperability vectors of the
//! protocol state.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use codec::Cid;
use data_encoding::{BASE64_NOPAD, HEXLOWER};
use serde_json::Value;
use simnet::keys::{Curve, PublicKey, SigningKey};
use simnet::tree::{Tree, TreeEntry, key_height, reference};
use wireproof_conformance::{Folder, fixtures};

#[test]
fn keys_have_the_heights_that_the_vectors_state() {
    let data = fixtures!(Captures);
    let vectors = json(&data, "atproto/interop/mst/key_heights.json");
    assert_eq!(vectors.len(), 9);
    for vector in vectors {
        let key = text(&vector, "key");
        assert_eq!(Some(u64::from(key_height(key))), vector["height"].as_u64(), "{key:?}");
    }
    let keys = data.text("atproto/interop/mst/example_keys.txt");
    assert_eq!(keys.lines().count(), 156);
    for key in keys.lines() {
        // The second character of these keys is their height.
        assert_eq!(key_height(key), key.as_bytes()[1] - b'0', "{key}");
    }
}

#[test]
fn trees_and_covering_proofs_are_those_of_the_commit_proof_vectors() {
    let data = fixtures!(Captures);
    let vectors = json(&data, "atproto/interop/firehose/commit-proof-fixtures.json");
    assert_eq!(vectors.len(), 6);
    for vector in vectors {
        let comment = text(&vector, "comment");
        let value = cid(text(&vector, "leafValue"));
        let before: BTreeSet<&str> = texts(&vector, "keys").collect();
        let (adds, dels) = (texts(&vector, "adds"), texts(&vector, "dels"));
        let mut after = before.clone();
        adds.clone().for_each(|key| assert!(after.insert(key), "{comment}: {key}"));
        dels.clone().for_each(|key| assert!(after.remove(key), "{comment}: {key}"));
        let proof: BTreeSet<Cid> = texts(&vector, "blocksInProof").map(cid).collect();

        let built = build(&after, value);
        assert_eq!(build(&before, value).root(), cid(text(&vector, "rootBeforeCommit")));
        assert_eq!(built.root(), cid(text(&vector, "rootAfterCommit")), "{comment}");
        let moved = || adds.clone().chain(dels.clone());
        assert_eq!(built.covering_proof(moved()), proof, "{comment}");

        let entries = before.iter().map(|key| TreeEntry { key: (*key).into(), value });
        let mut tree = Tree::new(entries.collect());
        adds.clone().for_each(|key| assert_eq!(tree.insert(key, value), None));
        dels.clone().for_each(|key| assert_eq!(tree.remove(key), Some(value)));
        let rehashed = tree.rehash();
        assert_eq!(rehashed.root, built.root(), "{comment}");
        assert!(rehashed.new_nodes.iter().all(|node| proof.contains(&node.cid)), "{comment}");
        assert!(tree.covering_proof(moved()).keys().eq(&proof), "{comment}");
    }
}

#[test]
fn private_keys_spell_the_did_keys_that_the_vectors_state() {
    let data = fixtures!(Captures);
    let vectors = json(&data, "atproto/interop/crypto/w3c_didkey_K256.json");
    assert_eq!(vectors.len(), 5);
    for vector in vectors {
        let bytes = HEXLOWER.decode(text(&vector, "privateKeyBytesHex").as_bytes());
        let bytes = bytes.expect("hexadecimal").try_into().expect("32 bytes");
        let key = SigningKey::from_bytes(Curve::K256, &bytes).expect("a private key");
        assert_eq!(key.did_key(), text(&vector, "publicDidKey"));
    }
}

#[test]
fn signatures_are_judged_as_the_vectors_state() {
    let data = fixtures!(Captures);
    let vectors = json(&data, "atproto/interop/crypto/signature-fixtures.json");
    assert_eq!(vectors.len(), 6);
    for vector in vectors {
        let key = PublicKey::from_did_key(text(&vector, "publicKeyDid")).expect("a did:key");
        let bytes = |name| BASE64_NOPAD.decode(text(&vector, name).as_bytes()).expect("base64");
        let (message, signature) = (bytes("messageBase64"), bytes("signatureBase64"));
        // A signature of another length has no place in a commit.
        let verified = signature.as_slice().try_into().is_ok_and(|raw| key.verifies(&message, raw));
        assert_eq!(Some(verified), vector["validSignature"].as_bool(), "{}", vector["comment"]);
    }
}

fn build(keys: &BTreeSet<&str>, value: Cid) -> reference::Built {
    let records: Vec<(&str, Cid)> = keys.iter().map(|key| (*key, value)).collect();
    reference::build(&records)
}

fn json(data: &Folder, path: &str) -> Vec<Value> {
    serde_json::from_str(&data.text(path)).expect("a list of vectors")
}

fn text<'v>(vector: &'v Value, name: &str) -> &'v str {
    vector[name].as_str().unwrap_or_else(|| panic!("{name} is text"))
}

fn texts<'v>(vector: &'v Value, name: &str) -> impl Iterator<Item = &'v str> + Clone {
    let list = vector[name].as_array().unwrap_or_else(|| panic!("{name} is a list"));
    list.iter().map(|item| item.as_str().expect("text"))
}

fn cid(text: &str) -> Cid {
    text.parse().expect("a CID")
}
