//! Constructed signatures: chosen multipliers, chosen keys, numbers at their limits.

use num_bigint::BigUint;
use secp256k1::{PublicKey, SecretKey};

use super::super::modular::{Modulus, P};
use super::super::scalar::LAMBDA;
use super::{
    Backend, Claim, EcdsaItem, Form, Key, KeyTable, Noise, Scheme, TableSize, Verdict, assert_true,
    backends, big, bytes_of, order, verify,
};

fn prime() -> BigUint {
    big(&P::VALUE)
}

fn inverse(scalar: &BigUint) -> BigUint {
    scalar.modinv(&order()).expect("not zero modulo a prime")
}

/// `scalar` · G, unless that is infinity.
fn times_g(scalar: &BigUint) -> Option<PublicKey> {
    let secret = SecretKey::from_secret_bytes(bytes_of(&(scalar % order()))).ok()?;
    Some(PublicKey::from_secret_key(&secret))
}

fn coordinates(point: &PublicKey) -> [BigUint; 2] {
    let bytes = point.serialize_uncompressed();
    [&bytes[1..33], &bytes[33..]].map(BigUint::from_bytes_be)
}

fn signature(r: &BigUint, s: &BigUint) -> [u8; 64] {
    *[bytes_of(r), bytes_of(s)].concat().first_chunk().expect("twice 32 bytes")
}

/// The valid ECDSA claim that makes the verifier compute u1·G + u2·(d·G). Where that is at infinity
/// there is none, and an invalid one with the same multipliers is returned.
fn ecdsa_with(u1: &BigUint, u2: &BigUint, d: &BigUint) -> Claim {
    let order = order();
    let point = times_g(&(u1 + u2 * d));
    let r = point.map_or(BigUint::from(1u8), |point| coordinates(&point)[0].clone() % &order);
    let s = &r * inverse(u2) % &order;
    let z = u1 * &s % &order;
    let key = times_g(d).expect("d is not zero").serialize();
    Claim { hash: bytes_of(&z), signature: signature(&r, &s), key, valid: point.is_some() }
}

/// The BIP-340 claim with s·G − e·(d·G) for its R, d·G being of even y or else its opposite.
fn schnorr_with(s: &BigUint, e: &BigUint, d: &BigUint) -> Claim {
    let order = order();
    let key = times_g(d).expect("d is not zero").serialize();
    let d = if key[0] == 3 { &order - d } else { d.clone() };
    let point = times_g(&(s + (&order - e % &order) * d));
    let [r, y] = point.map_or([1u8, 1].map(BigUint::from), |point| coordinates(&point));
    Claim { hash: bytes_of(e), signature: signature(&r, s), key, valid: !y.bit(0) }
}

/// Verifies the claims by all back ends with all forms of keys, together and one by one. None may contradict the truth, and
/// where the same points are added in the same order, the same ones are undecided. Returns their number.
fn judge_everywhere(scheme: Scheme, claims: &[Claim], what: &str) -> usize {
    let expected = verify(Backend::Portable, scheme, claims, Form::Compressed);
    for backend in backends() {
        for form in [Form::Compressed, Form::Point] {
            assert_eq!(verify(backend, scheme, claims, form), expected, "{what}, {form:?}");
        }
        assert_true(&verify(backend, scheme, claims, Form::Cached), claims, what);
        // In threes, so that each size of table has its turn, but never more of a size than one.
        for claims in claims.chunks(3).filter(|_| backend != Backend::Portable) {
            assert_true(&verify(backend, scheme, claims, Form::Cached), claims, what);
        }
    }
    assert_true(&expected, claims, what)
}

/// Scalars likely to hit exceptions: small ones, powers of the base of the windows, halves, multiples of
/// λ, and the opposites of all.
fn special_scalars() -> Vec<BigUint> {
    let (order, lambda) = (order(), big(&LAMBDA.words()));
    let one = BigUint::from(1u8);
    let mut list: Vec<BigUint> = (1..=33u8).map(BigUint::from).collect();
    list.extend([5u8, 10, 13, 26, 64, 125, 127, 128, 129, 130, 255].map(|bit| &one << bit));
    list.extend([&order / 2u8, lambda.clone(), &lambda * &lambda % &order, &lambda + 1u8]);
    let opposites: Vec<BigUint> = list.iter().map(|scalar| &order - scalar).collect();
    list.extend(opposites);
    list
}

#[test]
fn keys_that_are_small_multiples_of_the_generator() {
    let mut noise = Noise::new(21);
    let (mut ecdsa, mut schnorr) = (Vec::new(), Vec::new());
    for d in special_scalars() {
        for _ in 0..2 {
            let (u1, u2) = (noise.scalar(), noise.scalar());
            ecdsa.push(ecdsa_with(&u1, &u2, &d));
            schnorr.push(schnorr_with(&u1, &u2, &d));
        }
    }
    judge_everywhere(Scheme::Ecdsa, &ecdsa, "small keys");
    judge_everywhere(Scheme::Schnorr, &schnorr, "small keys");
}

#[test]
fn multipliers_that_are_zero_small_or_special() {
    let mut noise = Noise::new(22);
    let (mut ecdsa, mut schnorr) = (Vec::new(), Vec::new());
    let mut multipliers = special_scalars();
    for u2 in &multipliers {
        ecdsa.push(ecdsa_with(&BigUint::ZERO, u2, &noise.scalar()));
    }
    multipliers.push(BigUint::ZERO);
    for u in &multipliers {
        let (other, d) = (noise.scalar(), noise.scalar());
        ecdsa.push(ecdsa_with(u, &other, &d));
        ecdsa.push(ecdsa_with(u, u.max(&BigUint::from(1u8)), &d));
        schnorr.push(schnorr_with(u, &other, &d));
        schnorr.push(schnorr_with(&other, u, &d));
        schnorr.push(schnorr_with(u, u, &d));
    }
    judge_everywhere(Scheme::Ecdsa, &ecdsa, "special multipliers");
    judge_everywhere(Scheme::Schnorr, &schnorr, "special multipliers");
}

#[test]
fn sums_that_end_equal_opposite_or_close() {
    let mut noise = Noise::new(23);
    let order = order();
    let (mut ecdsa, mut schnorr) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let (u2, d) = (noise.scalar(), noise.scalar());
        let product = &u2 * &d % &order;
        for close in 1..=4u8 {
            for u1 in [&product + close, &product + (&order - close)] {
                let u1 = u1 % &order;
                ecdsa.push(ecdsa_with(&u1, &u2, &d)); // almost a doubling
                ecdsa.push(ecdsa_with(&(&order - &u1), &u2, &d)); // almost infinity
                schnorr.push(schnorr_with(&u1, &u2, &d));
                schnorr.push(schnorr_with(&(&order - &u1), &u2, &d));
            }
        }
        ecdsa.push(ecdsa_with(&product, &u2, &d));
    }
    judge_everywhere(Scheme::Ecdsa, &ecdsa, "close to exceptions");
    judge_everywhere(Scheme::Schnorr, &schnorr, "close to exceptions");
}

#[test]
fn a_sum_at_infinity_is_undecided() {
    let mut noise = Noise::new(24);
    let order = order();
    let mut ecdsa = Vec::new();
    for _ in 0..20 {
        let (u2, d) = (noise.scalar(), noise.scalar());
        ecdsa.push(ecdsa_with(&(&order - &u2 * &d % &order), &u2, &d));
        assert!(!ecdsa[ecdsa.len() - 1].valid);
    }
    assert_eq!(judge_everywhere(Scheme::Ecdsa, &ecdsa, "infinity"), ecdsa.len());
    let schnorr = [schnorr_with(&BigUint::ZERO, &BigUint::ZERO, &BigUint::from(3u8))];
    assert_eq!(judge_everywhere(Scheme::Schnorr, &schnorr, "infinity"), 1);
}

#[test]
fn an_undecided_lane_affects_no_other() {
    let mut noise = Noise::new(25);
    let order = order();
    for scheme in [Scheme::Ecdsa, Scheme::Schnorr] {
        for at in 0..20 {
            let mut claims: Vec<Claim> = (0..20)
                .map(|_| match scheme {
                    Scheme::Ecdsa => ecdsa_with(&noise.scalar(), &noise.scalar(), &noise.scalar()),
                    Scheme::Schnorr => {
                        schnorr_with(&noise.scalar(), &noise.scalar(), &noise.scalar())
                    }
                })
                .collect();
            let (u2, d) = (noise.scalar(), noise.scalar());
            claims[at] = match scheme {
                Scheme::Ecdsa => ecdsa_with(&(&order - &u2 * &d % &order), &u2, &d),
                Scheme::Schnorr => schnorr_with(&BigUint::ZERO, &BigUint::ZERO, &d),
            };
            let verdicts = verify(Backend::best(), scheme, &claims, Form::Compressed);
            assert_eq!(assert_true(&verdicts, &claims, "one undecided"), 1);
            assert_eq!(verdicts[at], Verdict::Undecided);
        }
    }
}

/// The claim whose sum has this x and whose r is as given, if there is a point with the x: R is that
/// point and Q = (R − u1·G)/u2.
fn ecdsa_for_x(x: &BigUint, r: &BigUint, valid: bool, noise: &mut Noise) -> Option<Claim> {
    let order = order();
    let point = PublicKey::from_slice(&[&[2], bytes_of(x).as_slice()].concat()).ok()?;
    let (u1, u2) = (noise.scalar(), noise.scalar());
    let tweak = |scalar: &BigUint| secp256k1::Scalar::from_be_bytes(bytes_of(scalar)).unwrap();
    let key = point
        .add_exp_tweak(&tweak(&(&order - &u1)))
        .and_then(|point| point.mul_tweak(&tweak(&inverse(&u2))))
        .expect("not at infinity");
    let s = r * inverse(&u2) % &order;
    let hash = bytes_of(&(u1 * &s % &order));
    Some(Claim { hash, signature: signature(r, &s), key: key.serialize(), valid })
}

#[test]
fn an_x_between_the_order_and_the_prime_counts_by_its_residue() {
    let mut noise = Noise::new(26);
    let (order, mut claims) = (order(), Vec::new());
    for residue in (1..60u8).map(BigUint::from) {
        let x = &order + &residue;
        let Some(good) = ecdsa_for_x(&x, &residue, true, &mut noise) else { continue };
        // r has to be the residue, not x itself.
        let mut above = Claim { valid: false, ..good.clone() };
        above.signature[..32].copy_from_slice(&bytes_of(&x));
        claims.extend([good, above]);
    }
    assert!(claims.len() > 30, "half of all x are of points");
    assert_eq!(judge_everywhere(Scheme::Ecdsa, &claims, "x above n"), 0);
}

#[test]
fn a_residue_plus_the_order_does_not_wrap_around_the_prime() {
    let mut noise = Noise::new(30);
    // Were r + n reduced modulo p, this r would match x as well.
    let r_of = |x: &BigUint| x + prime() - order();
    let claims: Vec<Claim> = (0..60u8)
        .map(BigUint::from)
        .filter_map(|x| ecdsa_for_x(&x, &r_of(&x), false, &mut noise))
        .collect();
    assert!(claims.len() > 15, "half of all x are of points");
    assert_eq!(judge_everywhere(Scheme::Ecdsa, &claims, "wrapping"), 0);
}

#[test]
fn a_schnorr_r_beyond_the_prime_is_not_reduced() {
    let mut noise = Noise::new(41);
    let (order, mut claims) = (order(), Vec::new());
    for x in (1..60u8).map(BigUint::from) {
        // R is the even point with this x, and P = (s·G − R)/e; the other P goes with the other e.
        let x_bytes = bytes_of(&x);
        let Ok(point) = PublicKey::from_slice(&[&[2], x_bytes.as_slice()].concat()) else {
            continue;
        };
        let (s, e) = (noise.scalar(), noise.scalar());
        let tweak = |scalar: &BigUint| secp256k1::Scalar::from_be_bytes(bytes_of(scalar)).unwrap();
        let key = point
            .negate()
            .add_exp_tweak(&tweak(&s))
            .and_then(|point| point.mul_tweak(&tweak(&inverse(&e))))
            .expect("not at infinity")
            .serialize();
        let e = if key[0] == 3 { &order - e } else { e };
        let claim =
            |r, valid| Claim { hash: bytes_of(&e), signature: signature(r, &s), key, valid };
        claims.extend([claim(&x, true), claim(&(&x + prime()), false)]);
    }
    assert!(claims.len() > 30, "half of all x are of points");
    assert_eq!(judge_everywhere(Scheme::Schnorr, &claims, "r beyond p"), 0);
}

#[test]
fn r_and_s_at_the_limits_of_their_ranges() {
    let mut noise = Noise::new(27);
    let (order, prime) = (order(), prime());
    let top = (BigUint::from(1u8) << 256u16) - 1u8;
    let limits = [
        BigUint::ZERO,
        BigUint::from(1u8),
        &order / 2u8,
        &order / 2u8 + 1u8,
        &order - 1u8,
        order.clone(),
        &order + 1u8,
        &prime - 1u8,
        prime.clone(),
        top,
    ];
    let (mut ecdsa, mut schnorr) = (Vec::new(), Vec::new());
    for limit in &limits {
        // A valid signature with this s, if it is in range: z = s·k − r·d.
        let (k, d) = (noise.scalar(), noise.scalar());
        let r = &coordinates(&times_g(&k).expect("not zero"))[0] % &order;
        let z = (limit * &k + (&order - &r * &d % &order)) % &order;
        let key = times_g(&d).expect("not zero").serialize();
        let valid = *limit != BigUint::ZERO && *limit < order;
        ecdsa.push(Claim { hash: bytes_of(&z), signature: signature(&r, limit), key, valid });
        for other in &limits {
            let pair = signature(limit, other);
            ecdsa.push(Claim { hash: bytes_of(&z), signature: pair, key, valid: false });
            schnorr.push(Claim { hash: bytes_of(&z), signature: pair, key, valid: false });
        }
        // A right R with this s.
        let mut claim = schnorr_with(&(limit % &order), &noise.scalar(), &d);
        claim.signature[32..].copy_from_slice(&bytes_of(limit));
        claim.valid &= *limit < order;
        schnorr.push(claim);
    }
    judge_everywhere(Scheme::Ecdsa, &ecdsa, "limits");
    judge_everywhere(Scheme::Schnorr, &schnorr, "limits");
}

#[test]
fn digests_and_challenges_count_modulo_the_order() {
    let mut noise = Noise::new(28);
    let order = order();
    let (mut ecdsa, mut schnorr) = (Vec::new(), Vec::new());
    for z in [0u8, 1, 2, 3].map(BigUint::from) {
        let (k, d) = (noise.scalar(), noise.scalar());
        let r = &coordinates(&times_g(&k).expect("not zero"))[0] % &order;
        let s = (&z + &r * &d) * inverse(&k) % &order;
        let key = times_g(&d).expect("not zero").serialize();
        for hash in [&z, &(&z + &order)].map(bytes_of) {
            ecdsa.push(Claim { hash, signature: signature(&r, &s), key, valid: true });
        }
        let claim = schnorr_with(&noise.scalar(), &z, &d);
        schnorr.extend([Claim { hash: bytes_of(&(&z + &order)), ..claim.clone() }, claim]);
    }
    assert_eq!(judge_everywhere(Scheme::Ecdsa, &ecdsa, "digests"), 0);
    // Zero times the key is at infinity, and no point can be added to that.
    assert_eq!(judge_everywhere(Scheme::Schnorr, &schnorr, "challenges"), 2);
}

#[test]
fn malformed_keys_make_signatures_invalid() {
    let good = ecdsa_with(&BigUint::from(5u8), &BigUint::from(7u8), &BigUint::from(11u8));
    let mut keys = Vec::new();
    for prefix in 0..=255 {
        let mut key = good.key;
        key[0] = prefix;
        keys.push(key);
    }
    let prime = prime();
    let mut beyond_the_curve = 0;
    for x in (0..30u8).map(BigUint::from).chain([prime.clone() - 1u8, prime.clone(), prime + 1u8]) {
        let key = [&[2], bytes_of(&x).as_slice()].concat();
        beyond_the_curve += usize::from(PublicKey::from_slice(&key).is_err());
        keys.push(*key.first_chunk().expect("33 bytes"));
    }
    assert!(beyond_the_curve > 10, "half of all x are of no point");
    let claims: Vec<Claim> = keys
        .iter()
        .map(|key| Claim { key: *key, valid: *key == good.key, ..good.clone() })
        .collect();
    for key in &keys {
        let is_key = PublicKey::from_slice(key).is_ok();
        assert_eq!(KeyTable::new(Key::Compressed(key)).is_some(), is_key, "{key:x?}");
    }
    assert_eq!(judge_everywhere(Scheme::Ecdsa, &claims, "keys"), 0);
}

#[test]
fn tables_of_many_keys_are_those_of_one() {
    let mut noise = Noise::new(29);
    let bytes: Vec<[u8; 33]> = (0..40u8)
        .map(|i| {
            let mut key = times_g(&noise.scalar()).expect("not zero").serialize();
            key[32] ^= i % 3; // some are of no point
            key[0] ^= (i % 7 == 0) as u8 * 8; // some are malformed keys
            key
        })
        .collect();
    let mut keys: Vec<Key<'_>> = bytes.iter().map(Key::Compressed).collect();
    keys.push(Key::XOnly(bytes[1].last_chunk().expect("33 bytes")));
    let one = KeyTable::new(keys[40]);
    keys.extend(one.iter().map(Key::Cached));
    for len in [0, 1, 8, 9, 16, 17, keys.len()] {
        let expected: Vec<_> = keys[..len].iter().map(|key| KeyTable::new(*key)).collect();
        assert_eq!(KeyTable::new_many(&keys[..len]), expected);
    }
}

#[test]
fn a_table_knows_the_parity_of_its_key() {
    for d in 1..20u8 {
        let key = times_g(&BigUint::from(d)).expect("not zero").serialize();
        let table = KeyTable::new(Key::Compressed(&key)).expect("a key");
        assert_eq!(table.is_odd(), key[0] == 3);
        let x_only = KeyTable::new(Key::XOnly(key.last_chunk().expect("33 bytes"))).expect("a key");
        assert!(!x_only.is_odd());
        assert_eq!(KeyTable::new(Key::Cached(&table)), Some(table));
    }
}

#[test]
fn a_table_of_another_size_is_of_the_same_key() {
    let key = times_g(&BigUint::from(7u8)).expect("not zero").serialize();
    let table = KeyTable::new(Key::Compressed(&key)).expect("a key");
    assert_eq!(TableSize::ALL.map(TableSize::bytes), [1024, 4096, 26 * 1024]);
    for size in TableSize::ALL {
        let other = table.resized(size);
        assert_eq!((other.size(), other.point()), (size, table.point()));
        assert_eq!(other.resized(TableSize::Small), table);
    }
}

#[test]
fn a_y_that_is_not_of_the_point_makes_signatures_invalid() {
    let claim = ecdsa_with(&BigUint::from(5u8), &BigUint::from(7u8), &BigUint::from(11u8));
    let table = claim.table(TableSize::Small).expect("a key");
    let y = big(&table.point().y.words());
    let verdict = |backend: Backend, y: [u8; 32]| {
        let key = Key::Point { x: claim.x(), y: &y };
        let item = EcdsaItem { key, ..claim.ecdsa(Key::Cached(&table)) };
        assert_eq!(KeyTable::new(key).is_some(), KeyTable::new_many(&[key])[0].is_some());
        let mut verdict = [Verdict::Undecided];
        backend.verify_ecdsa(&[item], &mut verdict);
        (verdict[0], KeyTable::new(key).is_some())
    };
    for backend in backends() {
        assert_eq!(verdict(backend, bytes_of(&y)), (Verdict::Valid, true));
        // The opposite point is a key, but another one.
        assert_eq!(verdict(backend, bytes_of(&(prime() - &y))), (Verdict::Invalid, true));
        for wrong in [BigUint::ZERO, &y + 1u8, &y + 2u8, prime(), prime() + 1u8] {
            assert_eq!(verdict(backend, bytes_of(&wrong)), (Verdict::Invalid, false));
        }
    }
}
