//! The signature schemes: how their claims are made and verified.

use std::marker::PhantomData;

use ::secp256k1 as library;
use num_bigint::BigUint;

use super::{Backend, Claim, Curve, Key, Library, Noise, Secp256k1, Verdict};
use super::{bytes_of, order};
use crate::sha256;

/// A signature scheme.
pub(super) trait Scheme {
    /// Its curve.
    type Curve: Library;

    /// Verifies claims under these keys.
    fn verify(backend: Backend, claims: &[Keyed<'_, Self::Curve>], verdicts: &mut [Verdict]);

    /// The valid claim that makes the verifier compute a·G ± b·(d·G), if there is one, else an invalid one that does.
    fn with(multipliers: [&BigUint; 2], d: &BigUint) -> Claim;

    /// A claim whose sum is infinity.
    fn at_infinity(noise: &mut Noise) -> Claim;

    /// Two valid signatures, and variants of them with a flipped bit in every part, with another key, with their
    /// halves swapped.
    fn claims(noise: &mut Noise) -> [Claim; 7];

    /// A random number from 1 to n − 1.
    fn scalar(noise: &mut Noise) -> BigUint {
        noise.scalar::<Self::Curve>()
    }
}

/// A claim with its key.
pub(super) type Keyed<'a, C> = (&'a Claim, Key<'a, C>);

/// ECDSA on a curve.
pub(super) struct Ecdsa<C>(PhantomData<C>);

impl<C: Library> Scheme for Ecdsa<C> {
    type Curve = C;

    fn verify(backend: Backend, claims: &[Keyed<'_, C>], verdicts: &mut [Verdict]) {
        let items: Vec<_> = claims.iter().map(|(claim, key)| claim.ecdsa(*key)).collect();
        backend.verify_ecdsa(&items, verdicts);
    }

    fn with([u1, u2]: [&BigUint; 2], d: &BigUint) -> Claim {
        let order = order::<C>();
        let point = C::times_g(&((u1 + u2 * d) % &order));
        let r = point.map_or(BigUint::from(1u8), |point| x_of(&point) % &order);
        let s = &r * inverse::<C>(u2) % &order;
        let hash = bytes_of(&(u1 * &s % &order));
        let key = C::times_g(d).expect("d is not zero");
        Claim { hash, signature: signature(&r, &s), key, valid: point.is_some() }
    }

    fn at_infinity(noise: &mut Noise) -> Claim {
        let (u2, d) = (noise.scalar::<C>(), noise.scalar::<C>());
        let u1 = order::<C>() - &u2 * &d % order::<C>();
        Self::with([&u1, &u2], &d)
    }

    fn claims(noise: &mut Noise) -> [Claim; 7] {
        let (secret, hash) = (noise.scalar::<C>(), noise.bytes());
        let signature = C::sign(&secret, &hash);
        let key = |secret: &BigUint| C::times_g(secret).expect("not zero");
        let good = Claim { hash, signature, key: key(&secret), valid: true };
        let mut claims = std::array::from_fn(|_| good.clone());
        let [_, other_s, in_hash, in_signature, in_key, other_key, swapped] = &mut claims;
        let s = order::<C>() - BigUint::from_bytes_be(&signature[32..]);
        other_s.signature[32..].copy_from_slice(&bytes_of(&s));
        flip_a_bit(noise, &mut in_hash.hash);
        flip_a_bit(noise, &mut in_signature.signature);
        flip_a_bit(noise, &mut in_key.key);
        other_key.key = key(&noise.scalar::<C>());
        swapped.signature.rotate_left(32);
        for claim in &mut claims {
            claim.valid = C::accepts(claim);
        }
        assert!(claims[0].valid && claims[1].valid);
        claims
    }
}

/// BIP-340.
pub(super) struct Schnorr;

impl Scheme for Schnorr {
    type Curve = Secp256k1;

    fn verify(backend: Backend, claims: &[Keyed<'_, Secp256k1>], verdicts: &mut [Verdict]) {
        let items: Vec<_> = claims.iter().map(|(claim, key)| claim.schnorr(*key)).collect();
        backend.verify_schnorr(&items, verdicts);
    }

    /// The claim with s·G − e·(d·G) for its R, d·G being of even y or else its opposite.
    fn with([s, e]: [&BigUint; 2], d: &BigUint) -> Claim {
        let order = order::<Secp256k1>();
        let key = Secp256k1::times_g(d).expect("d is not zero");
        let d = if key[0] == 3 { &order - d } else { d.clone() };
        let point = Secp256k1::times_g(&((s + (&order - e % &order) * d) % &order));
        let r = point.map_or(BigUint::from(1u8), |point| x_of(&point));
        let valid = point.is_some_and(|point| point[0] == 2);
        Claim { hash: bytes_of(e), signature: signature(&r, s), key, valid }
    }

    fn at_infinity(noise: &mut Noise) -> Claim {
        Self::with([&BigUint::ZERO; 2], &noise.scalar::<Secp256k1>())
    }

    /// The challenge follows from r, key and message.
    fn claims(noise: &mut Noise) -> [Claim; 7] {
        let mut pair = || {
            let secret = bytes_of(&noise.scalar::<Secp256k1>());
            library::Keypair::from_secret_bytes(secret).expect("from 1 to n − 1")
        };
        let (pair, other_pair) = (pair(), pair());
        let message = noise.bytes();
        let signature = library::schnorr::sign_no_aux_rand(&message, &pair).to_byte_array();
        let key = pair.public_key().serialize();
        let mut other_message = message;
        let mut other_signature = signature;
        let mut other_key = key;
        flip_a_bit(noise, &mut other_message);
        flip_a_bit(noise, &mut other_signature);
        flip_a_bit(noise, &mut other_key[1..]);
        let (mut opposite_key, mut swapped) = (key, signature);
        opposite_key[0] ^= 1;
        swapped.rotate_left(32);
        let claims = [
            schnorr_claim(&message, signature, key),
            schnorr_claim(&message, signature, opposite_key),
            schnorr_claim(&other_message, signature, key),
            schnorr_claim(&message, other_signature, key),
            schnorr_claim(&message, signature, other_key),
            schnorr_claim(&message, signature, other_pair.public_key().serialize()),
            schnorr_claim(&message, swapped, key),
        ];
        assert!(claims[0].valid && claims[1].valid);
        claims
    }
}

fn schnorr_claim(message: &[u8; 32], signature: [u8; 64], key: [u8; 33]) -> Claim {
    let x = key.last_chunk().expect("33 bytes");
    let valid = library::XOnlyPublicKey::from_byte_array(*x).is_ok_and(|key| {
        let signature = library::schnorr::Signature::from_byte_array(signature);
        library::schnorr::verify(&signature, message, &key).is_ok()
    });
    let tag = sha256::digest(b"BIP0340/challenge");
    let hash = sha256::digest(&[&tag, &tag, &signature[..32], x, message].concat());
    Claim { hash, signature, key, valid }
}

fn flip_a_bit(noise: &mut Noise, bytes: &mut [u8]) {
    let bit = noise.below(8 * bytes.len());
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// 1/u modulo the order.
pub(super) fn inverse<C: Curve>(u: &BigUint) -> BigUint {
    u.modinv(&order::<C>()).expect("not zero modulo a prime")
}

/// The x of a compressed point.
pub(super) fn x_of(key: &[u8; 33]) -> BigUint {
    BigUint::from_bytes_be(&key[1..])
}

pub(super) fn signature(r: &BigUint, s: &BigUint) -> [u8; 64] {
    *[bytes_of(r), bytes_of(s)].concat().first_chunk().expect("twice 32 bytes")
}
