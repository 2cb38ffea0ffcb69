use std::collections::BTreeSet;
use std::sync::LazyLock;

use k256::schnorr::signature::hazmat::PrehashVerifier;
use k256::schnorr::{Signature, VerifyingKey};
use kernels::{hex, sha256};
use serde_json::{Value, json};

use super::*;

static QUICK: LazyLock<Corpus> = LazyLock::new(|| Corpus::generate(&Spec::quick()));

#[test]
fn the_events_are_the_pinned_ones() {
    for (spec, sha256) in [(Spec::quick(), QUICK_SHA256), (Spec::default(), DEFAULT_SHA256)] {
        let corpus = Corpus::generate(&spec);
        assert_eq!(corpus.manifest(&corpus.to_file()).sha256, sha256, "{spec:?}");
    }
}

#[test]
fn every_signature_is_valid_for_its_id_only() {
    for event in QUICK.events() {
        let key = VerifyingKey::from_bytes((&event.pubkey).into()).unwrap();
        let signature = Signature::try_from(event.sig.as_slice()).unwrap();
        assert!(key.verify_prehash(&event.id, &signature).is_ok());
        assert!(key.verify_prehash(&[7; 32], &signature).is_err());
    }
}

#[test]
fn every_id_is_the_digest_of_the_text_of_another_serializer() {
    for event in parsed() {
        let [pubkey, created_at, kind] = ["pubkey", "created_at", "kind"].map(|name| &event[name]);
        let message = json!([0, pubkey, created_at, kind, event["tags"], event["content"]]);
        let id = sha256::digest(message.to_string().as_bytes());
        assert_eq!(event["id"].as_str(), Some(hex::encode(&id).as_str()));
    }
}

#[test]
fn every_line_holds_one_event_unchanged() {
    assert_eq!(parsed().len(), QUICK.events().len());
    for (parsed, event) in parsed().iter().zip(QUICK.events()) {
        assert_eq!(parsed["pubkey"].as_str(), Some(hex::encode(&event.pubkey).as_str()));
        assert_eq!(parsed["sig"].as_str(), Some(hex::encode(&event.sig).as_str()));
        assert_eq!(parsed["kind"].as_u64(), Some(event.unsigned.kind.into()));
        assert_eq!(parsed["created_at"].as_u64(), Some(event.unsigned.created_at));
        assert_eq!(parsed["content"].as_str(), Some(event.unsigned.content.as_str()));
        assert_eq!(parsed["tags"], json!(event.unsigned.tags));
    }
}

fn parsed() -> Vec<Value> {
    let file = QUICK.to_file();
    file.strip_suffix('\n').unwrap().split('\n').map(|line| line.parse().unwrap()).collect()
}

#[test]
fn kinds_and_lengths_follow_from_the_specification() {
    let of_kind = |kind| QUICK.events().iter().filter(move |event| event.unsigned.kind == kind);
    assert_eq!([0, 1, 3, 7, 1984].map(|kind| of_kind(kind).count()), [18, 141, 13, 77, 7]);
    let prose = of_kind(1).chain(of_kind(1984)).map(|event| event.unsigned.content.len());
    assert!(prose.into_iter().all(|len| (20..=400).contains(&len)));
    assert!(of_kind(3).all(|event| event.unsigned.tags.len() >= 10));
}

#[test]
fn events_are_in_order_of_time_and_all_differ() {
    assert!(QUICK.events().is_sorted_by_key(|event| event.unsigned.created_at));
    let ids: BTreeSet<_> = QUICK.events().iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), QUICK.events().len());
}

const QUICK_SHA256: &str = "3793f3758225ffb7f57c05260ca7118a8d3eacffba6efdb2f6a156f6825ea6a2";
const DEFAULT_SHA256: &str = "9d25d6284d9a77b1d445489ad2733ef4d459411e3fff54e3a629972ad6f3d213";
