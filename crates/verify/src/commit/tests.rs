//! Commits that a key signed, and every way of not being one.

use atproto::commit::UnsignedCommit;
use codec::cid::{Cid, Codec};
use crypto::{Curve, SecretKey};

use super::*;

const DID: &str = "did:plc:wq4aajammjtxdomz3e23667t";
const REV: &str = "3mptbypluud2a";

fn key(curve: Curve) -> SecretKey {
    SecretKey::from_bytes(curve, &[7; 32]).unwrap()
}

fn unsigned<'a>(did: &'a str, rev: &'a str) -> UnsignedCommit<'a> {
    UnsignedCommit { did, rev, data: Cid::of(Codec::DagCbor, b"tree"), prev: None }
}

fn signed(did: &str, rev: &str, key: &SecretKey) -> Vec<u8> {
    let unsigned = unsigned(did, rev);
    unsigned.with_signature(&key.sign(&unsigned.to_bytes()))
}

fn code_of(block: &[u8], key: &SecretKey) -> &'static str {
    verify(block, &key.public_key()).expect_err("refused").code()
}

#[test]
fn what_the_key_signed_is_proved_on_either_curve() {
    for curve in Curve::ALL {
        let key = key(curve);
        let block = signed(DID, REV, &key);
        let commit = verify(&block, &key.public_key()).unwrap();
        assert_eq!((commit.did, commit.rev, commit.data), (DID, REV, unsigned(DID, REV).data));
        assert_eq!(commit.into_inner(), Commit::parse(&block).unwrap());
    }
}

#[test]
fn another_key_did_not_sign_it() {
    for curve in Curve::ALL {
        let stranger = SecretKey::from_bytes(curve, &[8; 32]).unwrap();
        assert_eq!(code_of(&signed(DID, REV, &key(curve)), &stranger), "signature/wrong");
    }
    assert_eq!(code_of(&signed(DID, REV, &key(Curve::K256)), &key(Curve::P256)), "signature/wrong");
}

#[test]
fn no_byte_of_a_commit_can_be_changed() {
    let key = key(Curve::K256);
    let block = signed(DID, REV, &key);
    for at in 0..block.len() {
        for bit in 0..8 {
            let mut forged = block.clone();
            forged[at] ^= 1 << bit;
            assert!(verify(&forged, &key.public_key()).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn the_twin_of_a_signature_is_refused() {
    for curve in Curve::ALL {
        let key = key(curve);
        let unsigned = unsigned(DID, REV);
        let twin = high_twin(curve, key.sign(&unsigned.to_bytes()));
        assert_eq!(code_of(&unsigned.with_signature(&twin), &key), "signature/high-s");
    }
}

#[test]
fn zeros_are_no_signature() {
    let key = key(Curve::K256);
    assert_eq!(code_of(&unsigned(DID, REV).with_signature(&[0; 64]), &key), "signature/range");
}

#[test]
fn an_account_must_be_a_did_and_a_revision_a_tid() {
    let key = key(Curve::K256);
    for did in ["", "did:plc:", "alice.example", "did:plc:wq4aajammjtxdomz3e23667t "] {
        assert_eq!(code_of(&signed(did, REV, &key), &key), "commit/did", "{did:?}");
    }
    for rev in ["", "3mptbypluud2", "zmptbypluud2a", "3MPTBYPLUUD2A"] {
        assert_eq!(code_of(&signed(DID, rev, &key), &key), "commit/rev", "{rev:?}");
    }
}

#[test]
fn an_object_that_is_no_commit_has_its_own_codes() {
    let key = key(Curve::K256);
    let good = signed(DID, REV, &key);
    let with = |from: &[u8], to: &[u8]| {
        let at = good.windows(from.len()).position(|window| window == from).unwrap();
        [&good[..at], to, &good[at + from.len()..]].concat()
    };
    assert_eq!(code_of(&good[..good.len() - 1], &key), "commit/cbor");
    assert_eq!(code_of(&[&good[..], &[0]].concat(), &key), "commit/cbor");
    assert_eq!(code_of(b"\xa1\x67version\x03", &key), "commit/missing");
    assert_eq!(code_of(&with(b"version\x03", b"version\x02"), &key), "commit/version");
    assert_eq!(code_of(&with(b"prev\xf6", b"prev\xf5"), &key), "commit/field");
    let long = with(b"sig\x58\x40", b"sig\x58\x41\x00");
    assert_eq!(code_of(&long, &key), "commit/signature-length");
}

/// r and n − s, which a verifier without the rule of low s takes for the same signature.
fn high_twin(curve: Curve, mut signature: [u8; 64]) -> [u8; 64] {
    let order: [u8; 32] = match curve {
        Curve::K256 => {
            *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\
            \xba\xae\xdc\xe6\xaf\x48\xa0\x3b\xbf\xd2\x5e\x8c\xd0\x36\x41\x41"
        }
        Curve::P256 => {
            *b"\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\
            \xbc\xe6\xfa\xad\xa7\x17\x9e\x84\xf3\xb9\xca\xc2\xfc\x63\x25\x51"
        }
    };
    let mut borrow = 0;
    for (s, n) in signature[32..].iter_mut().zip(order).rev() {
        let difference = i16::from(n) - i16::from(*s) - borrow;
        (*s, borrow) = (difference as u8, i16::from(difference < 0));
    }
    signature
}
