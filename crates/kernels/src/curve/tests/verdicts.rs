//! Random signatures, valid and damaged, in batches of every shape.

use super::{
    Backend, Claim, Ecdsa, Form, Key, Noise, P256, Scheme, Schnorr, Secp256k1, TableSize, Verdict,
    assert_true, backends, verify, with_each_scheme,
};

/// The number of claims in the random tests: `SIGNATURE_CLAIMS`, or this.
fn claim_count(default: usize) -> usize {
    std::env::var("SIGNATURE_CLAIMS").map_or(default, |count| count.parse().expect("a number"))
}

/// Verifies `count` claims in batches of uneven sizes; about one in a million is undecided by chance.
fn lanes_agree_with_the_library<S: Scheme>(seed: u64, count: usize) {
    let mut noise = Noise::new(seed);
    let (mut verified, mut undecided) = (0, 0);
    while verified < count {
        let groups = noise.below(150) + 1;
        let claims: Vec<Claim> = (0..groups).flat_map(|_| S::claims(&mut noise)).collect();
        for backend in backends().filter(|backend| *backend != Backend::Portable) {
            let verdicts = verify::<S>(backend, &claims, Form::Compressed);
            undecided += assert_true(&verdicts, &claims, "lanes");
            verified += claims.len();
        }
    }
    assert!(undecided <= verified / 10_000, "{undecided} of {verified} undecided");
}

#[test]
fn lanes_agree_with_the_library_on_ecdsa() {
    lanes_agree_with_the_library::<Ecdsa<Secp256k1>>(11, claim_count(200_000) / 2);
}

#[test]
fn lanes_agree_with_the_library_on_more_ecdsa() {
    lanes_agree_with_the_library::<Ecdsa<Secp256k1>>(12, claim_count(200_000) / 4);
}

#[test]
fn lanes_agree_with_the_library_on_schnorr() {
    lanes_agree_with_the_library::<Schnorr>(13, claim_count(200_000) / 4);
}

#[test]
fn lanes_agree_with_the_libraries_on_p256() {
    lanes_agree_with_the_library::<Ecdsa<P256>>(18, claim_count(20_000));
}

with_each_scheme! {
    every_back_end_and_form_of_key_gives_the_same_verdict<S> {
        let mut noise = Noise::new(14);
        let claims: Vec<Claim> = (0..60).flat_map(|_| S::claims(&mut noise)).collect();
        let expected = verify::<S>(Backend::Portable, &claims, Form::Compressed);
        assert_eq!(assert_true(&expected, &claims, "portable"), 0);
        for backend in backends() {
            for form in Form::ALL {
                let verdicts = verify::<S>(backend, &claims, form);
                assert_eq!(verdicts, expected, "{} {form:?}", backend.name());
            }
        }
    }

    one_bad_signature_is_found_at_each_position_of_each_batch<S> {
        let mut noise = Noise::new(15);
        let good: Vec<Claim> = (0..33).map(|_| S::claims(&mut noise)[0].clone()).collect();
        let bad = &S::claims(&mut noise)[2];
        for len in (0..=17).chain([33]) {
            for form in Form::ALL {
                let verdicts = verify::<S>(Backend::best(), &good[..len], form);
                assert_eq!(assert_true(&verdicts, &good[..len], "good"), 0);
            }
            for at in 0..len {
                let mut claims = good[..len].to_vec();
                claims[at] = bad.clone();
                let verdicts = verify::<S>(Backend::best(), &claims, Form::Compressed);
                assert_eq!(assert_true(&verdicts, &claims, "one bad"), 0);
            }
        }
    }

    equal_lanes_get_equal_verdicts<S> {
        for claim in S::claims(&mut Noise::new(16)) {
            let claims = vec![claim; 40];
            let verdicts = verify::<S>(Backend::best(), &claims, Form::Compressed);
            assert_eq!(assert_true(&verdicts, &claims, "equal"), 0);
        }
    }

    cached_and_other_keys_may_be_mixed<S> {
        let mut noise = Noise::new(17);
        let claims: Vec<Claim> = (0..40).map(|i| S::claims(&mut noise)[i % 7].clone()).collect();
        let sizes = TableSize::ALL.into_iter().cycle();
        let tables: Vec<_> =
            claims.iter().zip(sizes).map(|(claim, size)| claim.table(size)).collect();
        let keyed: Vec<_> = claims
            .iter()
            .enumerate()
            .map(|(i, claim)| match &tables[i] {
                Some(table) if i % 4 > 0 => (claim, Key::Cached(table)),
                _ => (claim, Key::Compressed(&claim.key)),
            })
            .collect();
        let mut verdicts = vec![Verdict::Undecided; claims.len()];
        S::verify(Backend::best(), &keyed, &mut verdicts);
        assert_eq!(assert_true(&verdicts, &claims, "mixed"), 0);
    }
}
