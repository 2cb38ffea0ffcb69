//! The signature and key fixtures of the AT Protocol. (Project Wycheproof and the vectors of BIP-340 are
//! tests of `wireproof-crypto`.)

use data_encoding::{BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use serde_json::Value as Json;
use wireproof::crypto::{Curve, PublicKey, SecretKey, SignatureFault};
use wireproof_conformance::fixtures;

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
