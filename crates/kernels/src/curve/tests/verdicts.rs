//! Random signatures, valid and damaged, in batches of every shape.

use secp256k1 as library;

use super::super::modular::Scalar;
use super::{Backend, Claim, Form, Noise, Scheme, assert_true, backends, big, bytes_of, verify};
use crate::sha256;

/// The number of claims in the random tests: `SECP256K1_CLAIMS`, or 200,000.
fn claim_count() -> usize {
    std::env::var("SECP256K1_CLAIMS").map_or(200_000, |count| count.parse().expect("a number"))
}

/// The verdict of libsecp256k1 after s is made low: it rejects a high s, the kernel leaves that to callers.
fn library_accepts_ecdsa(claim: &Claim) -> bool {
    let Ok(mut signature) = library::ecdsa::Signature::from_compact(&claim.signature) else {
        return false;
    };
    signature.normalize_s();
    let Ok(key) = library::PublicKey::from_slice(&claim.key) else { return false };
    library::ecdsa::verify(&signature, library::Message::from_digest(claim.hash), &key).is_ok()
}

/// A random key pair.
fn pair(noise: &mut Noise) -> library::Keypair {
    library::Keypair::from_secret_bytes(bytes_of(&noise.scalar())).expect("from 1 to n − 1")
}

fn flip_a_bit(noise: &mut Noise, bytes: &mut [u8]) {
    let bit = noise.below(8 * bytes.len());
    bytes[bit / 8] ^= 1 << (bit % 8);
}

fn swap_halves(signature: &[u8; 64]) -> [u8; 64] {
    let mut swapped = *signature;
    swapped.rotate_left(32);
    swapped
}

/// A valid ECDSA signature and variants of it: with the other s, with a flipped bit in each part, with
/// another key, with its halves swapped.
fn ecdsa_claims(noise: &mut Noise) -> [Claim; 7] {
    let (pair, hash) = (pair(noise), noise.bytes());
    let message = library::Message::from_digest(hash);
    let signature = library::ecdsa::sign(message, &pair.secret_key()).serialize_compact();
    let good = Claim { hash, signature, key: pair.public_key().serialize(), valid: true };
    let mut claims = std::array::from_fn(|_| good.clone());
    let [_, other_s, in_hash, in_signature, in_key, other_key, swapped] = &mut claims;
    let s = Scalar::from_bytes(signature.last_chunk().expect("64 bytes")).expect("below n");
    other_s.signature[32..].copy_from_slice(&bytes_of(&big(&s.negate().words())));
    flip_a_bit(noise, &mut in_hash.hash);
    flip_a_bit(noise, &mut in_signature.signature);
    flip_a_bit(noise, &mut in_key.key);
    other_key.key = self::pair(noise).public_key().serialize();
    swapped.signature = swap_halves(&signature);
    for claim in &mut claims {
        claim.valid = library_accepts_ecdsa(claim);
    }
    assert!(claims[0].valid && claims[1].valid);
    claims
}

/// The same for BIP-340, where the challenge follows from r, key and message.
fn schnorr_claims(noise: &mut Noise) -> [Claim; 7] {
    let (pair, message) = (pair(noise), noise.bytes());
    let signature = library::schnorr::sign_no_aux_rand(&message, &pair).to_byte_array();
    let claim = |message: &[u8; 32], signature: [u8; 64], key: [u8; 33]| {
        let x = key.last_chunk().expect("33 bytes");
        let valid = library::XOnlyPublicKey::from_byte_array(*x).is_ok_and(|key| {
            let signature = library::schnorr::Signature::from_byte_array(signature);
            library::schnorr::verify(&signature, message, &key).is_ok()
        });
        let tag = sha256::digest(b"BIP0340/challenge");
        let hash = sha256::digest(&[&tag, &tag, &signature[..32], x, message].concat());
        Claim { hash, signature, key, valid }
    };
    let key = pair.public_key().serialize();
    let (mut other_message, mut other_signature, mut other_key) = (message, signature, key);
    flip_a_bit(noise, &mut other_message);
    flip_a_bit(noise, &mut other_signature);
    flip_a_bit(noise, &mut other_key[1..]);
    let mut opposite_key = key;
    opposite_key[0] ^= 1;
    let claims = [
        claim(&message, signature, key),
        claim(&message, signature, opposite_key),
        claim(&other_message, signature, key),
        claim(&message, other_signature, key),
        claim(&message, signature, other_key),
        claim(&message, signature, self::pair(noise).public_key().serialize()),
        claim(&message, swap_halves(&signature), key),
    ];
    assert!(claims[0].valid && claims[1].valid);
    claims
}

fn claims_of(scheme: Scheme, noise: &mut Noise) -> [Claim; 7] {
    match scheme {
        Scheme::Ecdsa => ecdsa_claims(noise),
        Scheme::Schnorr => schnorr_claims(noise),
    }
}

/// Verifies `count` claims in batches of uneven sizes; about one in a million is undecided by chance.
fn lanes_agree_with_the_library(scheme: Scheme, seed: u64, count: usize) {
    let mut noise = Noise::new(seed);
    let (mut verified, mut undecided) = (0, 0);
    while verified < count {
        let groups = noise.below(150) + 1;
        let claims: Vec<Claim> = (0..groups).flat_map(|_| claims_of(scheme, &mut noise)).collect();
        for backend in backends().filter(|backend| *backend != Backend::Portable) {
            let verdicts = verify(backend, scheme, &claims, Form::Compressed);
            undecided += assert_true(&verdicts, &claims, "lanes");
            verified += claims.len();
        }
    }
    assert!(undecided <= verified / 10_000, "{undecided} of {verified} undecided");
}

#[test]
fn lanes_agree_with_the_library_on_ecdsa() {
    lanes_agree_with_the_library(Scheme::Ecdsa, 11, claim_count() / 2);
}

#[test]
fn lanes_agree_with_the_library_on_more_ecdsa() {
    lanes_agree_with_the_library(Scheme::Ecdsa, 12, claim_count() / 4);
}

#[test]
fn lanes_agree_with_the_library_on_schnorr() {
    lanes_agree_with_the_library(Scheme::Schnorr, 13, claim_count() / 4);
}

#[test]
fn every_back_end_and_form_of_key_gives_the_same_verdict() {
    for scheme in [Scheme::Ecdsa, Scheme::Schnorr] {
        let mut noise = Noise::new(14);
        let claims: Vec<Claim> = (0..60).flat_map(|_| claims_of(scheme, &mut noise)).collect();
        let expected = verify(Backend::Portable, scheme, &claims, Form::Compressed);
        assert_eq!(assert_true(&expected, &claims, "portable"), 0);
        for backend in backends() {
            for form in Form::ALL {
                let verdicts = verify(backend, scheme, &claims, form);
                assert_eq!(verdicts, expected, "{} {form:?}", backend.name());
            }
        }
    }
}

#[test]
fn one_bad_signature_is_found_at_each_position_of_each_batch() {
    for scheme in [Scheme::Ecdsa, Scheme::Schnorr] {
        let mut noise = Noise::new(15);
        let good: Vec<Claim> = (0..33).map(|_| claims_of(scheme, &mut noise)[0].clone()).collect();
        let bad = &claims_of(scheme, &mut noise)[2];
        for len in (0..=17).chain([33]) {
            for form in Form::ALL {
                let verdicts = verify(Backend::best(), scheme, &good[..len], form);
                assert_eq!(assert_true(&verdicts, &good[..len], "good"), 0);
            }
            for at in 0..len {
                let mut claims = good[..len].to_vec();
                claims[at] = bad.clone();
                let verdicts = verify(Backend::best(), scheme, &claims, Form::Compressed);
                assert_eq!(assert_true(&verdicts, &claims, "one bad"), 0);
            }
        }
    }
}

#[test]
fn equal_lanes_get_equal_verdicts() {
    for scheme in [Scheme::Ecdsa, Scheme::Schnorr] {
        for claim in claims_of(scheme, &mut Noise::new(16)) {
            let claims = vec![claim; 40];
            let verdicts = verify(Backend::best(), scheme, &claims, Form::Compressed);
            assert_eq!(assert_true(&verdicts, &claims, "equal"), 0);
        }
    }
}

#[test]
fn cached_and_other_keys_may_be_mixed() {
    let mut noise = Noise::new(17);
    let claims: Vec<Claim> = (0..40).map(|i| ecdsa_claims(&mut noise)[i % 7].clone()).collect();
    let tables: Vec<_> = claims
        .iter()
        .enumerate()
        .map(|(i, claim)| claim.table(super::TableSize::ALL[i % 3]))
        .collect();
    let items: Vec<_> = claims
        .iter()
        .enumerate()
        .map(|(i, claim)| match &tables[i] {
            Some(table) if i % 4 > 0 => claim.ecdsa(super::Key::Cached(table)),
            _ => claim.ecdsa(super::Key::Compressed(&claim.key)),
        })
        .collect();
    let mut verdicts = vec![super::Verdict::Undecided; items.len()];
    super::verify_ecdsa_many(&items, &mut verdicts);
    assert_eq!(assert_true(&verdicts, &claims, "mixed"), 0);
}
