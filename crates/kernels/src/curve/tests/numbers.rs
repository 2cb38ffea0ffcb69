//! Residues, the split of scalars, their digits, and the generator's tables.

use num_bigint::{BigInt, BigUint};

use super::super::modular::{Field, Modulus, N, P, Residue, Scalar};
use super::super::portable;
use super::super::scalar::{
    Digits, GENERATOR_WINDOW, KEY_WINDOW, LAMBDA, Signed, index_of_digit, odd_for_generator,
    split_for_key,
};
use super::super::table::generator_tables;
use super::{Noise, big, bytes_of, order, words};

/// Numbers below 2²⁵⁶ at the edges of carries and reductions, and random ones.
fn interesting(modulus: &BigUint) -> Vec<BigUint> {
    let one = BigUint::from(1u8);
    let top = BigUint::from(1u8) << 256u16;
    let mut list = vec![BigUint::ZERO, &top - 1u8, modulus / 2u8, modulus / 2u8 + 1u8];
    for bit in [0u16, 1, 52, 64, 128, 192, 255] {
        list.extend([&one << bit, (&one << bit) - 1u8, (&one << bit) + 1u8]);
    }
    for near in [modulus.clone(), &top - modulus] {
        list.extend([&near - 2u8, &near - 1u8, near.clone(), &near + 1u8]);
    }
    let mut noise = Noise::new(1);
    list.extend((0..30).map(|_| BigUint::from_bytes_be(&noise.bytes())));
    list
}

fn residue_matches_big_integers<M: Modulus>() {
    let modulus = big(&M::VALUE);
    assert_eq!(big(&M::GAP), (BigUint::from(1u8) << 256u16) - &modulus);
    let list = interesting(&modulus);
    for a in &list {
        assert_eq!(Residue::<M>::from_bytes(&bytes_of(a)).is_some(), *a < modulus);
        let x = Residue::<M>::from_bytes_reduced(&bytes_of(a));
        let a = a % &modulus;
        assert_eq!(big(&x.words()), a);
        assert_eq!(big(&x.negate().words()), (&modulus - &a) % &modulus);
        assert_eq!(big(&x.twice().words()), (&a * 2u8) % &modulus);
        assert_eq!(big(&x.square().words()), (&a * &a) % &modulus);
        assert_eq!(big(&x.invert().words()), a.modpow(&(&modulus - 2u8), &modulus));
        assert_eq!((x.is_odd(), x.is_zero()), (a.bit(0), a == BigUint::ZERO));
        for b in &list {
            let y = Residue::<M>::from_bytes_reduced(&bytes_of(b));
            let b = b % &modulus;
            assert_eq!(big(&x.plus(y).words()), (&a + &b) % &modulus);
            assert_eq!(big(&x.minus(y).words()), (&modulus + &a - &b) % &modulus);
            assert_eq!(big(&x.times(y).words()), (&a * &b) % &modulus);
        }
    }
}

#[test]
fn residues_modulo_p_match_big_integers() {
    residue_matches_big_integers::<P>();
}

#[test]
fn residues_modulo_n_match_big_integers() {
    residue_matches_big_integers::<N>();
}

#[test]
fn one_inversion_inverts_all() {
    for count in [0, 1, 2, 17] {
        let mut noise = Noise::new(2);
        let numbers: Vec<Scalar> =
            (0..count).map(|_| Scalar::new(words(&noise.scalar()))).collect();
        let mut inverses = numbers.clone();
        Scalar::invert_all(&mut inverses);
        for (number, inverse) in numbers.iter().zip(inverses) {
            assert_eq!(number.times(inverse), Scalar::ONE);
        }
    }
}

#[test]
fn a_root_exists_exactly_of_squares() {
    let mut noise = Noise::new(3);
    for _ in 0..50 {
        let x = Field::from_bytes_reduced(&noise.bytes());
        let root = x.square().root().expect("a square");
        assert!(root == x || root == x.negate());
        // −1 is not a square modulo p.
        assert_eq!(x.square().negate().root(), None);
    }
}

fn signed(number: Signed) -> BigInt {
    let value = BigInt::from(big(&number));
    if number[2] >> 63 == 1 { value - (BigInt::from(1) << 192) } else { value }
}

fn assert_congruent(left: &BigInt, right: &BigUint) {
    let order = BigInt::from(order());
    let left = ((left % &order) + &order) % &order;
    assert_eq!(left, BigInt::from(right.clone()));
}

fn split_is_odd_short_and_right(u: &BigUint) {
    let scalar = Scalar::new(words(u));
    let bound = BigInt::from(1) << 130;
    let whole = BigInt::from(big(&odd_for_generator(scalar)));
    assert!(whole.bit(0));
    assert_congruent(&whole, u);
    let [k1, k2] = split_for_key(scalar).map(signed);
    assert_congruent(&(&k1 + &k2 * BigInt::from(big(&LAMBDA.words()))), u);
    for part in [&k1, &k2] {
        assert!(part.bit(0) && -&bound < *part && *part < bound, "{part:x} of {u:x}");
    }
    let digits = Digits::of(scalar, scalar);
    assert_eq!(value(&digits.generator, GENERATOR_WINDOW), whole);
    assert_eq!(value(&digits.key[0], KEY_WINDOW), k1);
    assert_eq!(value(&digits.key[1], KEY_WINDOW), k2);
}

/// The number that the digits encode, by the rows they select.
fn value(digits: &[u16], window: usize) -> BigInt {
    digits.iter().rev().fold(BigInt::ZERO, |sum, digit| {
        let (row, negative) = index_of_digit(*digit, 1 << (window - 1));
        assert!(row < 1 << (window - 1));
        let odd = BigInt::from(2 * row + 1);
        (sum << window) + if negative { -odd } else { odd }
    })
}

#[test]
fn a_scalar_splits_into_odd_halves_and_their_digits() {
    let (order, lambda) = (order(), big(&LAMBDA.words()));
    for u in interesting(&order) {
        split_is_odd_short_and_right(&(u % &order));
    }
    for small in 0..40u8 {
        for u in [BigUint::from(small), &lambda * small, &lambda * &lambda * small, &lambda + small]
        {
            split_is_odd_short_and_right(&(&u % &order));
            split_is_odd_short_and_right(&((&order - &u % &order) % &order));
        }
        let half = (BigUint::from(1u8) << 128u8) * small;
        split_is_odd_short_and_right(&(&half % &order));
        split_is_odd_short_and_right(&((&order - half % &order) % &order));
    }
    let mut noise = Noise::new(4);
    for _ in 0..5_000 {
        split_is_odd_short_and_right(&noise.scalar());
    }
}

#[test]
fn the_endomorphism_multiplies_by_lambda() {
    let product = times_g(&big(&LAMBDA.words()));
    let by_beta = portable::Affine { x: portable::G.x.times(portable::BETA), ..portable::G };
    assert_eq!(product, by_beta);
}

/// A multiple of the generator by libsecp256k1.
fn times_g(scalar: &BigUint) -> portable::Affine {
    let secret = secp256k1::SecretKey::from_secret_bytes(bytes_of(scalar)).expect("below n");
    affine(&secp256k1::PublicKey::from_secret_key(&secret))
}

fn affine(key: &secp256k1::PublicKey) -> portable::Affine {
    let bytes = key.serialize_uncompressed();
    let (halves, _) = bytes[1..].as_chunks::<32>();
    let coordinate = |bytes| Field::from_bytes(bytes).expect("below p");
    portable::Affine { x: coordinate(&halves[0]), y: coordinate(&halves[1]) }
}

#[test]
fn the_generator_tables_hold_the_odd_multiples() {
    for (i, table) in generator_tables().iter().enumerate() {
        let base = (BigUint::from(1u8) << (GENERATOR_WINDOW * i)) % order();
        let key = |scalar: &BigUint| {
            let secret =
                secp256k1::SecretKey::from_secret_bytes(bytes_of(scalar)).expect("below n");
            secp256k1::PublicKey::from_secret_key(&secret)
        };
        let (mut multiple, step) = (key(&base), key(&(&base * 2u8)));
        for row in table.iter() {
            assert_eq!(row.to_affine(), affine(&multiple));
            multiple = multiple.combine(&step).expect("not at infinity");
        }
    }
}
