//! Constructed signatures: chosen multipliers, chosen keys, numbers at their limits.

use num_bigint::BigUint;

use super::super::digits::{Digits, GENERATOR_WINDOW, KEY_WINDOW, digits_a_part, index_of_digit};
use super::super::endomorphism::LAMBDA;
use super::super::modular::Residue;
use super::super::plan::{Addition, Order, Plan, Source, Term};
use super::super::portable::{Jacobian, SumOfMultiples};
use super::super::table::{KEY_ROWS, Row};
use super::schemes::{inverse, signature, x_of};
use super::*;

/// Verifies the claims by all back ends with all forms of keys, together, in a few and one by one. None may contradict the truth, and
/// where the same points are added in the same order, the same ones are undecided. Returns their number, in sequence.
fn judge_everywhere<S: Scheme>(claims: &[Claim], what: &str) -> usize {
    let portable = |claims: &[Claim]| verify::<S>(Backend::Portable, claims, Form::Compressed);
    let in_sequence: Vec<Verdict> = claims.chunks(1).flat_map(portable).collect();
    let in_rounds = portable(claims);
    for backend in backends() {
        for form in [Form::Compressed, Form::Point] {
            let verdicts = verify::<S>(backend, claims, form);
            for (i, verdict) in verdicts.iter().enumerate() {
                let expected = [in_sequence[i], in_rounds[i]];
                assert!(expected.contains(verdict), "{what}, {form:?}: {verdict:?} at {i}");
            }
        }
        assert_true(&verify::<S>(backend, claims, Form::Cached), claims, what);
    }
    for backend in backends().filter(|backend| *backend != Backend::Portable) {
        for form in [Form::Compressed, Form::Point] {
            let few = claims.chunks(7).flat_map(|claims| verify::<S>(backend, claims, form));
            assert_eq!(Vec::from_iter(few), in_sequence, "{what}, {form:?}");
        }
        // In threes, so that every size of table has its turn, but never more of a size than one.
        for claims in claims.chunks(3) {
            let what = format!("{what} in threes, {}", backend.name());
            assert_true(&verify::<S>(backend, claims, Form::Cached), claims, &what);
        }
    }
    assert_true(&in_rounds, claims, what);
    assert_true(&in_sequence, claims, what)
}

/// Scalars likely to hit exceptions: small ones, powers of the base of the windows, halves, multiples of
/// λ, and the opposites of all.
fn special_scalars<C: Curve>() -> Vec<BigUint> {
    let order = order::<C>();
    let lambda = big(&LAMBDA.words()) % &order;
    let one = BigUint::from(1u8);
    let mut list: Vec<BigUint> = (1..=34u8).map(BigUint::from).collect();
    list.extend([5u8, 10, 13, 26, 64, 125, 127, 128, 129, 130, 255].map(|bit| &one << bit));
    list.extend([&order / 2u8, lambda.clone(), &lambda * &lambda % &order, &lambda + 1u8]);
    let opposites: Vec<BigUint> = list.iter().map(|scalar| &order - scalar).collect();
    list.extend(opposites);
    list
}

with_each_scheme! {
    keys_that_are_small_multiples_of_the_generator<S> {
        let mut noise = Noise::new(21);
        let mut claims = Vec::new();
        for d in special_scalars::<S::Curve>() {
            for _ in 0..2 {
                claims.push(S::with([&S::scalar(&mut noise), &S::scalar(&mut noise)], &d));
            }
        }
        judge_everywhere::<S>(&claims, "small keys");
    }

    multipliers_that_are_zero_small_or_special<S> {
        let mut noise = Noise::new(22);
        let mut claims = Vec::new();
        for u in special_scalars::<S::Curve>() {
            let (other, d) = (S::scalar(&mut noise), S::scalar(&mut noise));
            for multipliers in [[&BigUint::ZERO, &u], [&u, &other], [&other, &u], [&u, &u]] {
                claims.push(S::with(multipliers, &d));
            }
        }
        judge_everywhere::<S>(&claims, "special multipliers");
    }

    sums_that_end_equal_opposite_or_close<S> {
        let mut noise = Noise::new(23);
        let order = order::<S::Curve>();
        let mut claims = Vec::new();
        for _ in 0..20 {
            let (u2, d) = (S::scalar(&mut noise), S::scalar(&mut noise));
            let product = &u2 * &d % &order;
            for close in 1..=4u8 {
                for u1 in [&product + close, &product + (&order - close)] {
                    let u1 = u1 % &order;
                    claims.push(S::with([&u1, &u2], &d)); // almost a doubling
                    claims.push(S::with([&(&order - &u1), &u2], &d)); // almost infinity
                }
            }
            claims.push(S::with([&product, &u2], &d));
        }
        judge_everywhere::<S>(&claims, "close to exceptions");
    }

    a_sum_at_infinity_is_undecided<S> {
        let mut noise = Noise::new(24);
        let claims: Vec<Claim> = (0..20).map(|_| S::at_infinity(&mut noise)).collect();
        assert!(claims.iter().all(|claim| !claim.valid));
        assert_eq!(judge_everywhere::<S>(&claims, "infinity"), claims.len());
    }

    an_undecided_lane_affects_no_other<S> {
        let mut noise = Noise::new(25);
        for at in 0..20 {
            let mut scalar = || S::scalar(&mut noise);
            let mut claims: Vec<Claim> =
                (0..20).map(|_| S::with([&scalar(), &scalar()], &scalar())).collect();
            claims[at] = S::at_infinity(&mut noise);
            let verdicts = verify::<S>(Backend::best(), &claims, Form::Compressed);
            assert_eq!(assert_true(&verdicts, &claims, "one undecided"), 1);
            assert_eq!(verdicts[at], Verdict::Undecided);
        }
    }
}

/// ± the odd number that a digit encodes, modulo the order.
fn digit_modulo_order<C: Curve>(bits: u16, window: usize) -> BigUint {
    let (row, negative) = index_of_digit(bits, 1 << (window - 1));
    let number = BigUint::from(2 * row + 1);
    if negative { order::<C>() - number } else { number }
}

fn digits_of<C: Curve>([u1, u2]: [&BigUint; 2]) -> Digits {
    Digits::of::<C>([u1, u2].map(|number| Residue::new(words(number))))
}

/// The ladder's additions for u1, in multiples of the generator.
fn generator_operands<C: Curve>(plan: &Plan, digits: &Digits) -> Vec<BigUint> {
    let order = order::<C>();
    let multiple = |term: Term| match term {
        Term::Generator { digit } => {
            digit_modulo_order::<C>(digits.generator[digit], GENERATOR_WINDOW)
                << (GENERATOR_WINDOW * digit)
        }
        Term::Key { .. } => BigUint::ZERO,
    };
    let number = |source: Source, sums: &[BigUint]| match source {
        Source::Term(term) => multiple(term),
        Source::Sum(index) => sums[index].clone(),
    };
    let mut sums: Vec<BigUint> = plan.sums.iter().map(|term| multiple(*term)).collect();
    for addition in plan.rounds.iter().flatten() {
        let number = number(addition.operand.source, &sums);
        sums[addition.sum] += number;
    }
    plan.generator.iter().map(|operand| number(operand.source, &sums) % &order).collect()
}

/// Two claims per addition of the ladder for u1: u2·d and the additions before come to the same point as is added, or to its
/// opposite.
fn claims_with_exceptional_generator<C: Library>(plan: &Plan, noise: &mut Noise) -> Vec<Claim> {
    let (order, mut claims) = (order::<C>(), Vec::new());
    for at in 0..plan.generator.len() {
        let (u1, u2) = (noise.scalar::<C>(), noise.scalar::<C>());
        let operands = generator_operands::<C>(plan, &digits_of::<C>([&u1, &u2]));
        let before = operands[..at].iter().sum::<BigUint>() % &order;
        for target in [operands[at].clone(), &order - &operands[at]] {
            let d = (target + &order - &before) * inverse::<C>(&u2) % &order;
            claims.push(Ecdsa::<C>::with([&u1, &u2], &d));
        }
    }
    claims
}

/// A claim and a table of which one row is wrong, so that the sum and the point of an addition have the same x; `None` if the
/// addition is one of the generator's.
fn colliding<C: Library>(
    (size, round): (TableSize, usize),
    addition: Addition,
    noise: &mut Noise,
) -> Option<(Claim, KeyTable<C>)> {
    let plan = Plan::of::<C>(size, Order::Rounds);
    let changed = match addition.operand.source {
        Source::Term(term) => term,
        Source::Sum(index) => plan.sums[index],
    };
    let Term::Key { window, part, digit } = changed else { return None };
    let lambda = |point: Jacobian<C>| {
        if addition.operand.times_lambda { point.times_lambda() } else { point }
    };
    // A row may serve several digits, so an attempt may fail.
    for _ in 0..100 {
        let u1 = noise.scalar::<C>();
        let u2 = noise.scalar::<C>();
        let d = noise.scalar::<C>();
        let claim = Ecdsa::<C>::with([&u1, &u2], &d);
        let (digits, table) = (digits_of::<C>([&u1, &u2]), claim.table(size).expect("a key"));
        let points = |table: &KeyTable<C>| {
            let multiples = SumOfMultiples { plan, table, digits: &digits };
            let sums = multiples.after_rounds(round);
            let changed = Jacobian::from(multiples.multiple(changed));
            let source = match addition.operand.source {
                Source::Term(_) => changed,
                Source::Sum(index) => sums[index],
            };
            [sums[addition.sum], source, changed]
        };
        let [sum, source, old] = points(&table);
        let target = if noise.word() & 1 == 1 { sum } else { opposite(sum) };
        // λ² is 1/λ.
        let target = lambda(lambda(target));
        let new = match addition.operand.source {
            Source::Term(_) => target,
            Source::Sum(_) => target.add_any(opposite(source)).add_any(old),
        };
        let digit = digits.key[part * digits_a_part::<C>() + digit];
        let (index, is_negative) = index_of_digit(digit, KEY_ROWS as u16);
        let row = if is_negative { opposite(new) } else { new };
        let table = table.with_row(window, index, Row::of_point(&row.to_affine()));
        let [sum, source, _] = points(&table);
        if sum.to_affine().x == lambda(source).to_affine().x
            && !sum.z.is_zero()
            && !source.z.is_zero()
        {
            return Some((claim, table));
        }
    }
    panic!("a table could be made for no addition")
}

fn opposite<C: Curve>(point: Jacobian<C>) -> Jacobian<C> {
    Jacobian { y: point.y.negate(), ..point }
}

on_each_curve! {
    each_addition_of_the_generator_may_be_exceptional<C> {
        let mut noise = Noise::new(42);
        let plan = Plan::of::<C>(TableSize::Small, Order::Sequence);
        let claims = claims_with_exceptional_generator::<C>(plan, &mut noise);
        let undecided = judge_everywhere::<Ecdsa<C>>(&claims, "generator's additions");
        assert_eq!(undecided, claims.len());
    }

    each_addition_of_a_sum_of_the_generators_multiples_may_be_exceptional<C> {
        let mut noise = Noise::new(45);
        let plan = Plan::of::<C>(TableSize::Small, Order::Rounds);
        let claims = claims_with_exceptional_generator::<C>(plan, &mut noise);
        let table = |claim: &Claim| claim.table(TableSize::Small).expect("a key");
        let tables: Vec<KeyTable<C>> = claims.iter().map(table).collect();
        let pairs = claims.iter().zip(&tables).cycle().take(MANY);
        let items: Vec<EcdsaItem<'_, C>> =
            pairs.map(|(claim, table)| claim.ecdsa(Key::Cached(table))).collect();
        for backend in backends() {
            let mut verdicts = [Verdict::Valid; MANY];
            backend.verify_ecdsa(&items, &mut verdicts);
            assert_eq!(verdicts, [Verdict::Undecided; MANY], "{}", backend.name());
        }
    }

    a_zero_difference_in_any_round_affects_only_its_own_signature<C> {
        let mut noise = Noise::new(44);
        for size in TableSize::ALL {
            let (mut cases, mut expected) = (Vec::new(), Vec::new());
            for (round, additions) in Plan::of::<C>(size, Order::Rounds).rounds.iter().enumerate() {
                for addition in additions {
                    if let Some(case) = colliding::<C>((size, round), *addition, &mut noise) {
                        cases.push(case);
                        expected.push(Verdict::Undecided);
                    }
                    let [u1, u2, d] = [(); 3].map(|()| noise.scalar::<C>());
                    let claim = Ecdsa::<C>::with([&u1, &u2], &d);
                    let table = claim.table(size).expect("a key");
                    cases.push((claim, table));
                    expected.push(Verdict::Valid);
                }
            }
            let items: Vec<EcdsaItem<'_, C>> =
                cases.iter().map(|(claim, table)| claim.ecdsa(Key::Cached(table))).collect();
            let items: Vec<EcdsaItem<'_, C>> = items.iter().cycle().take(MANY).copied().collect();
            let expected: Vec<Verdict> = expected.iter().cycle().take(MANY).copied().collect();
            for backend in backends() {
                let mut verdicts = vec![Verdict::Invalid; MANY];
                backend.verify_ecdsa(&items, &mut verdicts);
                assert_eq!(verdicts, expected, "{size:?}, {}", backend.name());
            }
        }
    }

    keys_of_no_point_affect_no_other_signature<C> {
        let mut noise = Noise::new(46);
        let mut claim = || {
            let [u1, u2, d] = [(); 3].map(|()| BigUint::from_bytes_be(&noise.bytes()[1..]));
            Ecdsa::<C>::with([&u1, &u2], &d)
        };
        let claims: Vec<Claim> = (0..MANY).map(|_| claim()).collect();
        let y = |(i, claim): (usize, &Claim)| {
            let table: KeyTable<C> = claim.table(TableSize::Small).expect("a key");
            let y = big(&table.point().y.words());
            bytes_of(&[BigUint::ZERO, y.clone() + 1u8, y.clone(), y.clone(), y][i % 5])
        };
        let ys: Vec<[u8; 32]> = claims.iter().enumerate().map(y).collect();
        let items: Vec<EcdsaItem<'_, C>> = claims
            .iter()
            .zip(&ys)
            .map(|(claim, y)| claim.ecdsa(Key::Point { x: claim.x(), y }))
            .collect();
        for backend in backends() {
            let mut verdicts = [Verdict::Undecided; MANY];
            backend.verify_ecdsa(&items, &mut verdicts);
            for (i, verdict) in verdicts.into_iter().enumerate() {
                let expected = if i % 5 < 2 { Verdict::Invalid } else { Verdict::Valid };
                assert_eq!(verdict, expected, "{i}, {}", backend.name());
            }
        }
    }

    an_x_between_the_order_and_the_prime_counts_by_its_residue<C> {
        let mut noise = Noise::new(26);
        let (order, mut claims) = (order::<C>(), Vec::new());
        for residue in (1..60u8).map(BigUint::from) {
            let x = &order + &residue;
            let Some(good) = claim_for_x::<C>(&x, &residue, true, &mut noise) else { continue };
            // r has to be the residue, not x itself.
            let mut above = Claim { valid: false, ..good.clone() };
            above.signature[..32].copy_from_slice(&bytes_of(&x));
            claims.extend([good, above]);
        }
        assert!(claims.len() > 30, "half of all x are of points");
        assert_eq!(judge_everywhere::<Ecdsa<C>>(&claims, "x above n"), 0);
    }

    a_residue_plus_the_order_does_not_wrap_around_the_prime<C> {
        let mut noise = Noise::new(30);
        // Were r + n reduced modulo p, this r would match x as well.
        let r_of = |x: &BigUint| x + prime::<C>() - order::<C>();
        let claims: Vec<Claim> = (0..60u8)
            .map(BigUint::from)
            .filter_map(|x| claim_for_x::<C>(&x, &r_of(&x), false, &mut noise))
            .collect();
        assert!(claims.len() > 15, "half of all x are of points");
        assert_eq!(judge_everywhere::<Ecdsa<C>>(&claims, "wrapping"), 0);
    }

    r_and_s_at_the_limits_of_their_ranges<C> {
        let mut noise = Noise::new(27);
        let order = order::<C>();
        let mut claims = Vec::new();
        for limit in &limits::<C>() {
            // A valid signature with this s, if it is in range: z = s·k − r·d.
            let (k, d) = (noise.scalar::<C>(), noise.scalar::<C>());
            let r = x_of(&C::times_g(&k).expect("not zero")) % &order;
            let z = (limit * &k + (&order - &r * &d % &order)) % &order;
            let key = C::times_g(&d).expect("not zero");
            let valid = *limit != BigUint::ZERO && *limit < order;
            claims.push(Claim { hash: bytes_of(&z), signature: signature(&r, limit), key, valid });
            for other in &limits::<C>() {
                let pair = signature(limit, other);
                claims.push(Claim { hash: bytes_of(&z), signature: pair, key, valid: false });
            }
        }
        judge_everywhere::<Ecdsa<C>>(&claims, "limits");
    }

    digests_count_modulo_the_order<C> {
        let mut noise = Noise::new(28);
        let order = order::<C>();
        let mut claims = Vec::new();
        for z in [0u8, 1, 2, 3].map(BigUint::from) {
            let (k, d) = (noise.scalar::<C>(), noise.scalar::<C>());
            let r = x_of(&C::times_g(&k).expect("not zero")) % &order;
            let s = (&z + &r * &d) * inverse::<C>(&k) % &order;
            let key = C::times_g(&d).expect("not zero");
            for hash in [&z, &(&z + &order)].map(bytes_of) {
                claims.push(Claim { hash, signature: signature(&r, &s), key, valid: true });
            }
        }
        assert_eq!(judge_everywhere::<Ecdsa<C>>(&claims, "digests"), 0);
    }

    malformed_keys_make_signatures_invalid<C> {
        let [five, seven, eleven] = [5u8, 7, 11].map(BigUint::from);
        let good = Ecdsa::<C>::with([&five, &seven], &eleven);
        let mut keys = Vec::new();
        for prefix in 0..=255 {
            let mut key = good.key;
            key[0] = prefix;
            keys.push(key);
        }
        let prime = prime::<C>();
        let limits = [prime.clone() - 1u8, prime.clone(), prime + 1u8];
        for x in (0..30u8).map(BigUint::from).chain(limits) {
            keys.push(compressed(2, &x));
        }
        let beyond_the_curve = keys[256..].iter().filter(|key| !C::is_key(key)).count();
        assert!(beyond_the_curve > 10, "half of all x are of no point");
        let claims: Vec<Claim> = keys
            .iter()
            .map(|key| Claim { key: *key, valid: *key == good.key, ..good.clone() })
            .collect();
        for key in &keys {
            let table = KeyTable::<C>::new(Key::Compressed(key));
            assert_eq!(table.is_some(), C::is_key(key), "{key:x?}");
        }
        assert_eq!(judge_everywhere::<Ecdsa<C>>(&claims, "keys"), 0);
    }

    tables_of_many_keys_are_those_of_one<C> {
        let mut noise = Noise::new(29);
        let bytes: Vec<[u8; 33]> = (0..40u8)
            .map(|i| {
                let mut key = C::times_g(&noise.scalar::<C>()).expect("not zero");
                key[32] ^= i % 3; // some are of no point
                key[0] ^= (i % 7 == 0) as u8 * 8; // some are malformed keys
                key
            })
            .collect();
        let mut keys: Vec<Key<'_, C>> = bytes.iter().map(Key::Compressed).collect();
        keys.push(Key::XOnly(bytes[1].last_chunk().expect("33 bytes")));
        let one = KeyTable::new(keys[40]);
        keys.extend(one.iter().map(Key::Cached));
        for len in [0, 1, 8, 9, 16, 17, keys.len()] {
            let expected: Vec<_> = keys[..len].iter().map(|key| KeyTable::new(*key)).collect();
            assert_eq!(KeyTable::new_many(&keys[..len]), expected);
        }
    }

    a_table_knows_the_parity_of_its_key<C> {
        for d in 1..20u8 {
            let key = C::times_g(&BigUint::from(d)).expect("not zero");
            let table = KeyTable::<C>::new(Key::Compressed(&key)).expect("a key");
            assert_eq!(table.is_odd(), key[0] == 3);
            let x_only = Key::XOnly(key.last_chunk().expect("33 bytes"));
            assert!(!KeyTable::<C>::new(x_only).expect("a key").is_odd());
            assert_eq!(KeyTable::new(Key::Cached(&table)), Some(table));
        }
    }

    a_table_of_another_size_is_of_the_same_key<C> {
        let key = C::times_g(&BigUint::from(7u8)).expect("not zero");
        let table = KeyTable::<C>::new(Key::Compressed(&key)).expect("a key");
        assert_eq!(TableSize::ALL.map(TableSize::bytes), [1024, 4096, 26 * 1024]);
        for size in TableSize::ALL {
            let other = table.resized(size);
            assert_eq!((other.size(), other.point()), (size, table.point()));
            assert_eq!(other.resized(TableSize::Small), table);
        }
    }

    a_y_that_is_not_of_the_point_makes_signatures_invalid<C> {
        let [five, seven, eleven] = [5u8, 7, 11].map(BigUint::from);
        let claim = Ecdsa::<C>::with([&five, &seven], &eleven);
        let table: KeyTable<C> = claim.table(TableSize::Small).expect("a key");
        let y = big(&table.point().y.words());
        let verdict = |backend: Backend, y: [u8; 32]| {
            let key = Key::Point { x: claim.x(), y: &y };
            let is_key = KeyTable::<C>::new(key).is_some();
            assert_eq!(is_key, KeyTable::new_many(&[key])[0].is_some());
            let mut verdict = [Verdict::Undecided];
            backend.verify_ecdsa(&[claim.ecdsa(key)], &mut verdict);
            (verdict[0], is_key)
        };
        let prime = prime::<C>();
        for backend in backends() {
            assert_eq!(verdict(backend, bytes_of(&y)), (Verdict::Valid, true));
            // The opposite point is a key, but another one.
            assert_eq!(verdict(backend, bytes_of(&(&prime - &y))), (Verdict::Invalid, true));
            for wrong in [BigUint::ZERO, &y + 1u8, &y + 2u8, prime.clone(), &prime + 1u8] {
                assert_eq!(verdict(backend, bytes_of(&wrong)), (Verdict::Invalid, false));
            }
        }
    }
}

/// Where u2 is not split, only its last digit can meet its own multiple: 32·s ≡ d modulo n for 32·s + d = u2 + n.
#[test]
fn the_last_addition_of_the_key_may_be_exceptional() {
    let mut noise = Noise::new(43);
    // n + 15 is 32·s, so n + 30 is 32·s + 15.
    assert_eq!((order::<P256>() + 15u8) % (1u8 << KEY_WINDOW), BigUint::ZERO);
    let u2 = BigUint::from(30u8);
    let claims: Vec<Claim> = (0..5)
        .map(|_| Ecdsa::<P256>::with([&noise.scalar::<P256>(), &u2], &noise.scalar::<P256>()))
        .collect();
    assert_eq!(judge_everywhere::<Ecdsa<P256>>(&claims, "last digit"), claims.len());
}

/// The claim whose sum has this x and whose r is as given, if there is a point with the x: R is that
/// point and Q = (R − u1·G)/u2.
fn claim_for_x<C: Library>(
    x: &BigUint,
    r: &BigUint,
    valid: bool,
    noise: &mut Noise,
) -> Option<Claim> {
    let order = order::<C>();
    let (u1, u2) = (noise.scalar::<C>(), noise.scalar::<C>());
    let inverse = inverse::<C>(&u2);
    let minus_quotient = (&order - &u1) * &inverse % &order;
    let key = C::combine(&compressed(2, x), [&inverse, &minus_quotient])?;
    let s = r * inverse % &order;
    let hash = bytes_of(&(u1 * &s % &order));
    Some(Claim { hash, signature: signature(r, &s), key, valid })
}

/// The compressed form of a point that may not exist.
fn compressed(prefix: u8, x: &BigUint) -> [u8; 33] {
    *[&[prefix], bytes_of(x).as_slice()].concat().first_chunk().expect("33 bytes")
}

/// Numbers at the limits of the ranges.
fn limits<C: Curve>() -> [BigUint; 10] {
    let (order, prime) = (order::<C>(), prime::<C>());
    let top = (BigUint::from(1u8) << 256u16) - 1u8;
    [
        BigUint::ZERO,
        BigUint::from(1u8),
        &order / 2u8,
        &order / 2u8 + 1u8,
        &order - 1u8,
        order.clone(),
        &order + 1u8,
        &prime - 1u8,
        prime,
        top,
    ]
}

#[test]
fn a_schnorr_r_beyond_the_prime_is_not_reduced() {
    let mut noise = Noise::new(41);
    let (order, mut claims) = (order::<Secp256k1>(), Vec::new());
    for x in (1..60u8).map(BigUint::from) {
        // R is the even point with this x, and P = (s·G − R)/e; the other P goes with the other e.
        let (s, e) = (noise.scalar::<Secp256k1>(), noise.scalar::<Secp256k1>());
        let inverse = inverse::<Secp256k1>(&e);
        let multipliers = [&(&order - &inverse), &(&s * &inverse % &order)];
        let Some(key) = Secp256k1::combine(&compressed(2, &x), multipliers) else { continue };
        let e = if key[0] == 3 { &order - e } else { e };
        let claim =
            |r, valid| Claim { hash: bytes_of(&e), signature: signature(r, &s), key, valid };
        claims.extend([claim(&x, true), claim(&(&x + prime::<Secp256k1>()), false)]);
    }
    assert!(claims.len() > 30, "half of all x are of points");
    assert_eq!(judge_everywhere::<Schnorr>(&claims, "r beyond p"), 0);
}

#[test]
fn schnorr_r_and_s_at_the_limits_of_their_ranges() {
    let mut noise = Noise::new(27);
    let order = order::<Secp256k1>();
    let mut claims = Vec::new();
    for limit in &limits::<Secp256k1>() {
        let (e, d) = (noise.scalar::<Secp256k1>(), noise.scalar::<Secp256k1>());
        // A right R with this s.
        let mut claim = Schnorr::with([&(limit % &order), &e], &d);
        claim.signature[32..].copy_from_slice(&bytes_of(limit));
        claim.valid &= *limit < order;
        for other in &limits::<Secp256k1>() {
            let pair = signature(limit, other);
            claims.push(Claim { signature: pair, valid: false, ..claim.clone() });
        }
        claims.push(claim);
    }
    judge_everywhere::<Schnorr>(&claims, "limits");
}

#[test]
fn schnorr_challenges_count_modulo_the_order() {
    let mut noise = Noise::new(28);
    let mut claims = Vec::new();
    for e in [0u8, 1, 2, 3].map(BigUint::from) {
        let s = BigUint::from_bytes_be(&noise.bytes()) % order::<Secp256k1>();
        let claim = Schnorr::with([&s, &e], &noise.scalar::<Secp256k1>());
        let hash = bytes_of(&(&e + order::<Secp256k1>()));
        claims.extend([Claim { hash, ..claim.clone() }, claim]);
    }
    // Zero times the key is at infinity, and no point can be added to that.
    assert_eq!(judge_everywhere::<Schnorr>(&claims, "challenges"), 2);
}

/// A number of signatures that every back end verifies in rounds.
const MANY: usize = 256;
