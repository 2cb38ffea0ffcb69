use std::collections::BTreeMap;
use std::sync::LazyLock;

use codec::cbor::{self, Encoder, Value};

use super::*;
use crate::keys::PublicKey;

static QUICK: LazyLock<Vec<u8>> = LazyLock::new(|| Corpus::generate(&Spec::quick()).to_file());

#[test]
fn the_commits_are_the_pinned_ones() {
    for (spec, sha256) in [
        (Spec::quick(), QUICK_SHA256),
        (Spec::default(), DEFAULT_SHA256),
        (Spec::mixed(), MIXED_SHA256),
    ] {
        let corpus = Corpus::generate(&spec);
        assert_eq!(corpus.manifest(&corpus.to_file()).sha256, sha256, "{spec:?}");
    }
}

#[test]
fn the_counts_follow_from_the_specification() {
    let counts = |spec| {
        let counts = Corpus::generate(&spec).counts();
        assert_eq!(counts.valid_k256 + counts.valid_p256, counts.commits);
        (counts.valid_k256, counts.valid_p256)
    };
    assert_eq!(counts(Spec::quick()), (144, 48));
    assert_eq!(counts(Spec { accounts: 30, ..Spec::default() }), (240, 0));
    assert_eq!(counts(Spec { accounts: 30, ..Spec::mixed() }), (216, 24));
}

#[test]
fn every_commit_is_canonical_and_its_signature_covers_the_object_without_sig() {
    let mut keys: BTreeMap<[u8; POINT_LEN], String> = BTreeMap::new();
    for entry in read(&QUICK).unwrap() {
        let arena = bumpalo::Bump::new();
        let object = cbor::decode(entry.commit, &arena).unwrap();
        assert_eq!(cbor::encode(&object).unwrap(), entry.commit);
        let signature = object.get("sig").and_then(|sig| sig.as_bytes()).unwrap();
        let signature = signature.try_into().unwrap();
        let key = PublicKey::from_point(entry.curve, entry.key).unwrap();
        assert!(key.verifies(&unsigned(object), signature));
        assert!(!key.verifies(entry.commit, signature));
        let did = object.get("did").and_then(|did| did.as_text()).unwrap();
        assert_eq!(keys.entry(*entry.key).or_insert_with(|| did.to_owned()), did);
    }
    assert_eq!(keys.len(), 24);
}

/// The commit object without `sig`.
fn unsigned(object: Value<'_>) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(5);
    for key in ["did", "rev", "data", "prev", "version"] {
        out.text(key).value(object.get(key).expect("a field")).expect("no float");
    }
    out.into_bytes()
}

#[test]
fn every_account_commits_equally_often_and_no_commit_repeats() {
    let entries = read(&QUICK).unwrap();
    let mut commits: BTreeMap<&[u8; POINT_LEN], Vec<&[u8]>> = BTreeMap::new();
    entries.iter().for_each(|entry| commits.entry(entry.key).or_default().push(entry.commit));
    for commits in commits.values_mut() {
        commits.sort_unstable();
        commits.dedup();
        assert_eq!(commits.len(), 8);
    }
}

#[test]
fn entries_write_back_to_the_same_file_and_any_truncation_or_tail_is_rejected() {
    let entries = read(&QUICK).unwrap();
    assert_eq!(write(entries.iter().copied()), *QUICK);
    let two = write(entries[..2].iter().copied());
    assert!((0..two.len()).all(|len| read(&two[..len]).is_none()));
    assert!(read(&[two.as_slice(), &[0]].concat()).is_none());
}

#[test]
fn an_unknown_curve_code_is_rejected() {
    let mut file = write(read(&QUICK).unwrap().into_iter().take(1));
    for code in 2..=u8::MAX {
        file[4] = code;
        assert!(read(&file).is_none());
    }
}

#[test]
fn the_file_has_as_many_of_each_curve_as_the_counts_say() {
    let entries = read(&QUICK).unwrap();
    let of = |curve| entries.iter().filter(|entry| entry.curve == curve).count();
    assert_eq!((of(Curve::K256), of(Curve::P256)), (144, 48));
}

const QUICK_SHA256: &str = "fce89b29fc0240860de72ac29b8892b79bb4abc6bf8ef7939eb2050819de0eea";
const DEFAULT_SHA256: &str = "4092ddf035b2e22bfb026b64732cb3d90a226cd3cf8069c23fc8c6f5a7b6ba9b";
const MIXED_SHA256: &str = "bc8e512576d9a6a13afdb55cb9a439942339a11a4830b2d244467fe50ef845da";
