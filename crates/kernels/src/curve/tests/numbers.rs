//! Residues, the split of scalars, their digits, and the generator's tables.

use num_bigint::{BigInt, BigUint};

use super::super::digits::{Digits, GENERATOR_WINDOW, KEY_DIGITS, KEY_WINDOW, index_of_digit, odd};
use super::super::endomorphism::{LAMBDA, Signed, split};
use super::super::modular::{Modulus, Residue};
use super::super::table::generator_tables;
use super::*;

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

on_each_curve! {
    residues_match_big_integers<C> {
        residue_matches_big_integers::<C::P>();
        residue_matches_big_integers::<C::N>();
    }

    one_inversion_inverts_all<C> {
        for count in [0, 1, 2, 17] {
            let mut noise = Noise::new(2);
            let numbers: Vec<Residue<C::N>> =
                (0..count).map(|_| Residue::new(words(&noise.scalar::<C>()))).collect();
            let mut inverses = numbers.clone();
            Residue::invert_all(&mut inverses);
            for (number, inverse) in numbers.iter().zip(inverses) {
                assert_eq!(number.times(inverse), Residue::ONE);
            }
        }
    }

    every_number_has_an_inverse<C> {
        // Modulo the prime of secp256k1, these end more than one modulus below zero, as one number in 25,000 does.
        let rare = [
            [0xc5bd_3e05_b925_ddb2, 0x86df_f31e_3584_ba89, 0xe3c6_b2e5_9ce8_31bc, 0x2f82_f157_3b2a_076f],
            [0xd30e_c935_d456_3e88, 0x4c8c_f818_0c4a_30f5, 0x1eec_37e2_1b68_39d4, 0x18f6_2859_1d92_0e53],
            [0xf921_2c09_3bc8_8b47, 0x4bd4_de8c_9dd7_2b91, 0x5efd_6f04_9758_4186, 0x3f69_a35c_70ae_2842],
        ];
        let mut noise = Noise::new(4);
        let random = (0..150_000).map(|_| modular::words_of(&noise.bytes()));
        for words in rare.into_iter().chain(random) {
            let (field, scalar) = (Residue::<C::P>::from_words_reduced(words), Residue::<C::N>::from_words_reduced(words));
            assert_eq!(field.times(field.invert()), Residue::ONE, "{words:x?}");
            assert_eq!(scalar.times(scalar.invert()), Residue::ONE, "{words:x?}");
        }
    }

    a_root_exists_exactly_of_squares<C> {
        let mut noise = Noise::new(3);
        for _ in 0..50 {
            let x = Residue::<C::P>::from_bytes_reduced(&noise.bytes());
            let root = x.square().root().expect("a square");
            assert!(root == x || root == x.negate());
            // −1 is not a square modulo p.
            assert_eq!(x.square().negate().root(), None);
        }
    }

    what_lanes_hold_in_place_of_a_number_gives_it_back<C> {
        for number in interesting(&prime::<C>()) {
            let number = Residue::<C::P>::from_bytes_reduced(&bytes_of(&number));
            assert_eq!(Residue::from_lanes(number.to_lanes()), number);
        }
    }

    the_generator_tables_hold_the_odd_multiples<C> {
        for (i, table) in generator_tables::<C>().iter().enumerate() {
            let base = (BigUint::from(1u8) << (GENERATOR_WINDOW * i)) % order::<C>();
            let multiples = C::odd_multiples(&base, table.len());
            for (row, multiple) in table.iter().zip(multiples) {
                let point = row.to_affine::<C>();
                let prefix = 2 + u8::from(point.y.is_odd());
                assert_eq!((prefix, bytes_of(&big(&point.x.words()))), (multiple[0], x_of(&multiple)));
            }
        }
    }
}

/// The x of a compressed point.
fn x_of(key: &[u8; 33]) -> [u8; 32] {
    *key.last_chunk().expect("33 bytes end in 32")
}

#[test]
fn digits_of_a_whole_multiplier_encode_it() {
    let order = order::<P256>();
    let mut list = interesting(&order);
    let mut noise = Noise::new(5);
    list.extend((0..1_000).map(|_| noise.scalar::<P256>()));
    list.extend((0..40u8).flat_map(|small| [BigUint::from(small), &order - small]));
    for u in list {
        let u = u % &order;
        let scalar = Residue::new(words(&u));
        let whole = BigInt::from(big(&odd(scalar)));
        assert!(whole.bit(0));
        assert_congruent::<P256>(&whole, &u);
        let digits = Digits::of::<P256>([scalar, scalar]);
        assert_eq!(value(&digits.generator, GENERATOR_WINDOW), whole);
        assert_eq!(value(&digits.key, KEY_WINDOW), whole);
    }
}

fn signed(number: Signed) -> BigInt {
    let value = BigInt::from(big(&number));
    if number[2] >> 63 == 1 { value - (BigInt::from(1) << 192) } else { value }
}

fn assert_congruent<C: Curve>(left: &BigInt, right: &BigUint) {
    let order = BigInt::from(order::<C>());
    let left = ((left % &order) + &order) % &order;
    assert_eq!(left, BigInt::from(right.clone()));
}

fn split_is_odd_short_and_right(u: &BigUint) {
    let scalar = Residue::new(words(u));
    let bound = BigInt::from(1) << 130;
    let whole = BigInt::from(big(&odd(scalar)));
    assert!(whole.bit(0));
    assert_congruent::<Secp256k1>(&whole, u);
    let [k1, k2] = split(scalar).map(signed);
    assert_congruent::<Secp256k1>(&(&k1 + &k2 * BigInt::from(big(&LAMBDA.words()))), u);
    for part in [&k1, &k2] {
        assert!(part.bit(0) && -&bound < *part && *part < bound, "{part:x} of {u:x}");
    }
    let digits = Digits::of::<Secp256k1>([scalar, scalar]);
    assert_eq!(value(&digits.generator, GENERATOR_WINDOW), whole);
    let (first, second) = digits.key.split_at(KEY_DIGITS / 2);
    assert_eq!((value(first, KEY_WINDOW), value(second, KEY_WINDOW)), (k1, k2));
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
    let (order, lambda) = (order::<Secp256k1>(), big(&LAMBDA.words()));
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
        split_is_odd_short_and_right(&noise.scalar::<Secp256k1>());
    }
}

#[test]
fn the_endomorphism_multiplies_by_lambda() {
    let product = Secp256k1::times_g(&big(&LAMBDA.words())).expect("not zero");
    let (generator, beta) = (Secp256k1::GENERATOR, Secp256k1::BETA.expect("an endomorphism"));
    assert_eq!(x_of(&product), bytes_of(&big(&generator.x.times(beta).words())));
    assert_eq!(product[0], 2 + u8::from(generator.y.is_odd()));
}
