//! Each operation in lanes against big integers, points against the portable ones.
//!
//! Every test is a function compiled with the features, called on machines that have them.

use std::arch::x86_64::*;

use num_bigint::BigUint;

use super::super::modular::{Field, Modulus, P};
use super::super::portable;
use super::super::table::{KEY_ROWS, Row};
use super::super::tests::{Noise, big, words};
use super::field::{Factor, LIFT, Limbs, Loose, MASK_48, MASK_52, Tight, multiple_of_p};
use super::is_available;
use super::point::{Affine, Jacobian, y_of};
use super::table::{Multiples, read_rows};

/// Declares a test that runs a body with the features on.
macro_rules! in_lanes {
    ($($name:ident $body:block)*) => {$(
        #[test]
        fn $name() {
            #[target_feature(enable = "avx512f,avx512ifma")]
            fn body() $body
            if is_available() {
                // SAFETY: the line above saw the instructions on this CPU.
                unsafe { body() }
            }
        }
    )*};
}

fn prime() -> BigUint {
    big(&P::VALUE)
}

/// Σ lᵢ·2⁵²ⁱ, for limbs of any size.
fn value(limbs: [u64; 5]) -> BigUint {
    limbs.iter().rev().fold(BigUint::ZERO, |sum, limb| (sum << 52u8) + *limb)
}

fn limbs_of(number: &BigUint) -> [u64; 5] {
    let mask = BigUint::from(MASK_52);
    let limb = |i: usize| -> BigUint { (number >> (52 * i)) & &mask };
    [0, 1, 2, 3, 4].map(|i| u64::try_from(limb(i)).expect("52 bits"))
}

/// Eight numbers, one in each lane.
#[target_feature(enable = "avx512f,avx512ifma")]
fn into_lanes(numbers: &[[u64; 5]; 8]) -> Limbs {
    let mut out = [_mm512_setzero_si512(); 5];
    for i in 0..5 {
        let [a, b, c, d, e, f, g, h] = numbers.map(|limbs| limbs[i] as i64);
        out[i] = _mm512_setr_epi64(a, b, c, d, e, f, g, h);
    }
    out
}

/// The limbs of one lane.
#[target_feature(enable = "avx512f,avx512ifma")]
fn lane(limbs: &Limbs, lane: usize) -> [u64; 5] {
    let mut out = [0; 5];
    for i in 0..5 {
        let index = _mm512_set1_epi64(lane as i64);
        let word = _mm512_permutexvar_epi64(index, limbs[i]);
        out[i] = _mm_cvtsi128_si64(_mm512_castsi512_si128(word)) as u64;
    }
    out
}

/// Two groups: the numbers, and the same in reverse.
#[target_feature(enable = "avx512f,avx512ifma")]
fn two_groups(numbers: &[[u64; 5]; 8]) -> [Limbs; 2] {
    let mut backwards = *numbers;
    backwards.reverse();
    [into_lanes(numbers), into_lanes(&backwards)]
}

/// Checks each lane of both groups against what is expected of the numbers.
#[target_feature(enable = "avx512f,avx512ifma")]
fn assert_lanes(limbs: &[Limbs; 2], check: &dyn Fn(usize, [u64; 5])) {
    for i in 0..8 {
        check(i, lane(&limbs[0], i));
        check(i, lane(&limbs[1], 7 - i));
    }
}

/// Tight limbs at edges: each limb at 0, 1 and its maximum, multiples of p and their neighbours, and
/// random numbers up to 2²⁶⁰.
fn interesting() -> Vec<[u64; 5]> {
    let ends = [0, 1, MASK_52 - 1, MASK_52];
    let tops = [0, 1, MASK_48, MASK_48 + 1, MASK_52];
    let mut list = Vec::new();
    for end in ends {
        for top in tops {
            list.push([end, end, end, end, top]);
            for at in 0..4 {
                let mut limbs = [MASK_52 - end; 5];
                limbs[4] = top;
                limbs[at] = end;
                list.push(limbs);
            }
        }
    }
    let prime = prime();
    let gap = (BigUint::from(1u8) << 256u16) - &prime;
    for multiple in 0..=15u8 {
        let near = &prime * multiple;
        list.extend([limbs_of(&near), limbs_of(&(&near + 1u8)), limbs_of(&(&near + &gap))]);
        list.extend((multiple > 0).then(|| limbs_of(&(&near - 1u8))));
    }
    let mut noise = Noise::new(31);
    list.extend((0..40).map(|_| [(); 5].map(|()| noise.word() & MASK_52)));
    list
}

/// The list in groups of eight, the last one padded with its first element.
fn eights(list: &[[u64; 5]]) -> Vec<[[u64; 5]; 8]> {
    let chunk = |chunk: &[[u64; 5]]| std::array::from_fn(|i| chunk[i % chunk.len()]);
    list.chunks(8).map(chunk).collect()
}

in_lanes! {
    products_match_big_integers {
        let (prime, list) = (prime(), interesting());
        for rotation in 0..list.len() {
            let mut rotated = list.clone();
            rotated.rotate_left(rotation);
            for (a, b) in eights(&list).iter().zip(eights(&rotated)) {
                let (x, y) = (Factor::widest(two_groups(a)), Factor::widest(two_groups(&b)));
                let product = x.mul(&y);
                let tight = product.tighten();
                let [half_a, half_b] = [*a, b].map(|numbers| numbers.map(halve));
                let x = Loose::up_to(MASK_52, MASK_52 / 2, two_groups(&half_a)).carry();
                let y = Loose::up_to(MASK_52, MASK_52 / 2, two_groups(&half_b)).carry();
                let sum = x.wide_mul(&y).plus_product(&x, &x).plus(&y.wide_square().twice()).fold();
                assert_lanes(tight.limbs(), &|i, limbs| {
                    let expected = value(a[i]) * value(b[i]) % &prime;
                    assert_eq!(value(limbs) % &prime, expected, "{:x?} times {:x?}", a[i], b[i]);
                    assert!(limbs[..4].iter().all(|limb| *limb <= MASK_52));
                    assert!(limbs[4] < MASK_48 + 20, "magnitude 1");
                });
                assert_lanes(product.limbs_as_they_are(), &|_, limbs| {
                    assert!(limbs[..4].iter().all(|limb| *limb <= 12 * MASK_52));
                    assert!(limbs[4] <= MASK_48);
                });
                assert_lanes(sum.tighten().limbs(), &|i, limbs| {
                    let (a, b) = (value(half_a[i]), value(half_b[i]));
                    assert_eq!(value(limbs) % &prime, (&a * &b + &a * &a + &b * &b * 2u8) % &prime);
                });
            }
        }
    }

    squares_match_big_integers {
        let prime = prime();
        let choices = [0, 1, (1 << 51) + 5, MASK_52 - 1, MASK_52];
        let mut list = interesting();
        for i in 0..5usize.pow(5) {
            list.push([1, 5, 25, 125, 625].map(|place| choices[i / place % 5]));
        }
        for a in eights(&list) {
            let x = Factor::widest(two_groups(&a));
            assert_lanes(x.square().tighten().limbs(), &|i, limbs| {
                assert_eq!(value(limbs) % &prime, value(a[i]).pow(2) % &prime, "{:x?}", a[i]);
                assert!(limbs[4] < MASK_48 + 20, "magnitude 1");
            });
            assert_lanes(x.square_times(3).tighten().limbs(), &|i, limbs| {
                assert_eq!(value(limbs) % &prime, value(a[i]).pow(8) % &prime);
            });
        }
    }

    what_a_factor_carries_above_its_limbs_does_not_count {
        let mut noise = Noise::new(32);
        for _ in 0..100 {
            let a = [(); 8].map(|()| [(); 5].map(|()| noise.word() & MASK_52));
            let b = [(); 8].map(|()| [(); 5].map(|()| noise.word() & MASK_52));
            let high = |limbs: [u64; 5]| {
                let [l0, l1, l2, l3, l4] = limbs;
                [l0 | 5 << 52, l1 | 1 << 63, l2 | 0xfff << 52, l3 | 1 << 52, l4]
            };
            let x = Factor::widest(two_groups(&a.map(high)));
            let y = Factor::widest(two_groups(&b.map(high)));
            let (clean_x, clean_y) = (x.tighten(), y.tighten());
            assert_lanes(clean_x.limbs(), &|i, limbs| assert_eq!(limbs, a[i]));
            let expected = clean_x.mul(&clean_y);
            for i in 0..8 {
                let product = lane(&x.mul(&y).limbs_as_they_are()[0], i);
                assert_eq!(product, lane(&expected.limbs_as_they_are()[0], i));
            }
        }
    }

    sums_and_carries_keep_the_value {
        for list in eights(&interesting()) {
            // Limbs 0 to 3 close to 64 bits, the top one as large as the carry allows.
            let a = list.map(|l| [l[0] << 9 | 511, l[1] << 10, l[2] << 11, l[3] << 12, l[4] >> 2]);
            let b = list.map(|l| [l[3] << 3, l[1] << 3, l[0] << 2, l[2], l[4] >> 3]);
            let x = Loose::up_to(u64::MAX - (1 << 61), MASK_52 >> 2, two_groups(&a.map(shorten)));
            let y = Loose::up_to((1 << 56) - 1, MASK_52 >> 3, two_groups(&b));
            let sum = x.plus(&y).tighten();
            assert_lanes(sum.limbs(), &|i, limbs| {
                assert_eq!(value(limbs), value(shorten(a[i])) + value(b[i]));
                assert!(limbs.iter().all(|limb| *limb <= MASK_52));
            });
            assert_lanes(y.twice().tighten().limbs(), &|i, limbs| {
                assert_eq!(value(limbs), value(b[i]) * 2u8);
            });
            assert_lanes(x.carry().limbs_as_they_are(), &|i, limbs| {
                let [l0, l1, l2, l3, l4] = limbs;
                let low = [l0 & MASK_52, l1 & MASK_52, l2 & MASK_52, l3 & MASK_52, l4];
                assert_eq!(value(low), value(shorten(a[i])));
            });
        }
    }

    negation_works_up_to_its_stated_bounds {
        negation_up_to_its_bounds::<2>();
        negation_up_to_its_bounds::<3>();
        negation_up_to_its_bounds::<4>();
        negation_up_to_its_bounds::<5>();
        negation_up_to_its_bounds::<6>();
        negation_up_to_its_bounds::<7>();
    }

    normalising_finds_the_representative_below_p {
        let prime = prime();
        for a in eights(&interesting()) {
            let x = Factor::widest(two_groups(&a)).tighten();
            assert_lanes(x.normalise().limbs(), &|i, limbs| {
                assert_eq!(value(limbs), value(a[i]) % &prime, "{:x?}", a[i]);
            });
            let (zero, odd) = (x.zero_lanes(), x.odd_lanes());
            for i in 0..8 {
                let residue = value(a[i]) % &prime;
                let both = |mask: [__mmask8; 2]| (mask[0] >> i & 1, mask[1] >> (7 - i) & 1);
                let expected_zero = u8::from(residue == BigUint::ZERO);
                assert_eq!(both(zero), (expected_zero, expected_zero));
                assert_eq!(both(odd), (u8::from(residue.bit(0)), u8::from(residue.bit(0))));
            }
        }
    }

    magnitude_one_folds_below_2_to_the_256 {
        let top = BigUint::from(1u8) << 256u16;
        let most = &top + (BigUint::from(1u8) << 228u8) - 1u8;
        let list = [&top - 1u8, top.clone(), &top + 1u8, most, prime(), prime() - 1u8];
        let numbers = std::array::from_fn(|i| limbs_of(&list[i % list.len()]));
        let x = Loose::up_to(MASK_52, MASK_48 + (1 << 20), two_groups(&numbers)).tighten();
        assert_lanes(x.below_2_256().limbs(), &|i, limbs| {
            assert!(value(limbs) < top && limbs.iter().all(|limb| *limb <= MASK_52));
            assert_eq!(value(limbs) % prime(), value(numbers[i]) % prime());
        });
    }

    inverses_and_roots {
        let prime = prime();
        let quarter = (&prime + 1u8) / 4u8;
        for a in eights(&interesting()) {
            let x = Factor::widest(two_groups(&a));
            assert_lanes(x.invert().tighten().limbs(), &|i, limbs| {
                let expected = value(a[i]).modpow(&(&prime - 2u8), &prime);
                assert_eq!(value(limbs) % &prime, expected);
            });
            assert_lanes(x.root().tighten().limbs(), &|i, limbs| {
                assert_eq!(value(limbs) % &prime, value(a[i]).modpow(&quarter, &prime));
            });
        }
    }

    rows_travel_through_lanes_unchanged {
        let mut noise = Noise::new(33);
        let rows = [(); 16].map(|()| Row([(); 8].map(|()| noise.word())));
        let [first, second] = read_rows(&[
            std::array::from_fn(|i| &rows[i]),
            std::array::from_fn(|i| &rows[15 - i]),
        ]);
        for (number, words) in [(first, 0..4), (second, 4..8)] {
            assert_lanes(number.limbs(), &|_, limbs| {
                assert!(limbs.iter().all(|limb| *limb <= MASK_52));
            });
            for i in 0..8 {
                assert_eq!(value(lane(&number.limbs()[0], i)), big(&rows[i].0[words.clone()]));
                assert_eq!(value(lane(&number.limbs()[1], i)), big(&rows[15 - i].0[words.clone()]));
            }
        }
    }

    points_double_and_add_like_the_portable_ones {
        let mut noise = Noise::new(34);
        for _ in 0..30 {
            let sums = [(); 8].map(|()| point(&mut noise));
            let others = [(); 8].map(|()| point(&mut noise));
            let zs = [(); 8].map(|()| Field::from_bytes_reduced(&noise.bytes()));
            let negative = noise.word() as __mmask8;
            let mut sum: Jacobian<1> = Jacobian {
                x: tight(std::array::from_fn(|i| sums[i].x.times(zs[i].square()))),
                y: tight(std::array::from_fn(|i| sums[i].y.times(zs[i].square()).times(zs[i]))),
                z: *tight(zs),
            };
            let other = Affine {
                x: tight(others.map(|point| point.x)),
                y: tight(others.map(|point| point.y)),
                negate: [negative],
            };
            // Twice, so that outputs at their bounds are inputs too: (4·(−S) … ) and so on.
            let mut expected = sums.map(portable::Jacobian::from);
            for _ in 0..2 {
                sum.double_to_opposite();
                sum.double_to_opposite();
                let z = sum.z;
                sum.add(&other, &z);
                sum.double_to_opposite();
                for i in 0..8 {
                    let other =
                        if negative >> i & 1 == 1 { others[i].negate() } else { others[i] };
                    let opposite = expected[i].double().double().add(other).double().to_affine();
                    expected[i] = opposite.negate().into();
                }
            }
            for i in 0..8 {
                let [x, y, z] = [sum.x, sum.y, sum.z.tighten()].map(|number| field(&number, i));
                assert_eq!(portable::Jacobian { x, y, z }.to_affine(), expected[i].to_affine());
            }
        }
    }

    an_exceptional_addition_leaves_z_zero_for_good {
        let mut noise = Noise::new(35);
        let points = [(); 8].map(|()| point(&mut noise));
        let (x, y) = (tight(points.map(|point| point.x)), tight(points.map(|point| point.y)));
        // The point to itself in the even lanes, to its opposite in the odd ones.
        let same = Affine::<1> { x, y, negate: [0b1010_1010] };
        let mut sum = Jacobian { x, y, z: *Tight::one() };
        for _ in 0..20 {
            let z = sum.z;
            sum.add(&same, &z);
            assert_eq!(sum.z.tighten().zero_lanes(), [!0]);
            sum.double_to_opposite();
            assert_eq!(sum.z.tighten().zero_lanes(), [!0]);
        }
    }

    tables_hold_the_odd_multiples {
        let mut noise = Noise::new(36);
        for _ in 0..5 {
            let points = [(); 8].map(|()| point(&mut noise));
            let odd = (0..8).fold(0, |mask, i| mask | __mmask8::from(points[i].y.is_odd()) << i);
            let x = tight(points.map(|point| point.x));
            let (y, on_curve) = y_of(&x, [odd]);
            assert_eq!(on_curve, [!0]);
            let multiples = Multiples::of(&x, &y);
            let z = multiples.last_z();
            let mut rows = [[[Row::ZERO; KEY_ROWS]; 8]];
            multiples.write(&z.invert(), &mut rows);
            let mut shared = [[[Row::ZERO; KEY_ROWS]; 8]];
            multiples.write(&Tight::one(), &mut shared);
            for i in 0..8 {
                let z_inverse = field(&z.tighten(), i).invert();
                for (row, expected) in points[i].odd_multiples(KEY_ROWS).iter().enumerate() {
                    assert_eq!(reduced(&rows[0][i][row]), *expected);
                    let portable::Affine { x, y } = reduced(&shared[0][i][row]);
                    let scaled = portable::Jacobian { x, y, z: z_inverse.invert() };
                    assert_eq!(scaled.to_affine(), *expected);
                }
            }
        }
    }

    an_x_of_no_point_is_noticed_in_its_lane {
        for start in 0..40u64 {
            let xs: [Field; 8] = std::array::from_fn(|i| Field::new([start + i as u64, 0, 0, 0]));
            let (_, [on_curve]) = y_of::<1>(&tight(xs), [0b0110_1001]);
            for i in 0..8 {
                let expected = portable::Affine::on_curve(xs[i], false).is_some();
                assert_eq!(on_curve >> i & 1 == 1, expected);
            }
        }
    }
}

/// Halves the top limb, so that a sum of four products stays below 2⁵²⁰.
fn halve([l0, l1, l2, l3, l4]: [u64; 5]) -> [u64; 5] {
    [l0, l1, l2, l3, l4 >> 1]
}

/// Halves the low limbs, so that a sum of two stays within 64 bits.
fn shorten([l0, l1, l2, l3, l4]: [u64; 5]) -> [u64; 5] {
    [l0 >> 1, l1 >> 1, l2 >> 1, l3 >> 1, l4]
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn negation_up_to_its_bounds<const K: u64>() {
    let offset = multiple_of_p(K);
    assert_eq!(value(offset), prime() * K);
    let (low, top) = ((LIFT << 52) - LIFT, offset[4]);
    let mut noise = Noise::new(K);
    for round in 0..50 {
        let mut choose = |most: u64| match (round + noise.below(3)) % 4 {
            0 => 0,
            1 => most,
            2 => 1,
            _ => noise.word() % (most + 1),
        };
        let numbers =
            [(); 8].map(|()| [choose(low), choose(low), choose(low), choose(low), choose(top)]);
        let x = Loose::up_to(low, top, two_groups(&numbers));
        assert_lanes(x.negate::<K>().limbs_as_they_are(), &|i, limbs| {
            assert_eq!(value(limbs) + value(numbers[i]), prime() * K);
        });
        let one = Tight::one().loose();
        assert_lanes(one.minus::<K>(&x).limbs_as_they_are(), &|i, limbs| {
            assert_eq!(value(limbs) + value(numbers[i]), prime() * K + 1u8);
        });
        let kept = x.negate_unless::<K>([0b1111_0000, 0b0000_1111]);
        assert_lanes(kept.limbs_as_they_are(), &|i, limbs| {
            let number = value(numbers[i]);
            let expected = if i >= 4 { number } else { prime() * K - number };
            assert_eq!(value(limbs), expected);
        });
    }
}

/// A random point of the curve.
fn point(noise: &mut Noise) -> portable::Affine {
    loop {
        let x = Field::from_bytes_reduced(&noise.bytes());
        if let Some(point) = portable::Affine::on_curve(x, noise.word() & 1 == 1) {
            return point;
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn tight(numbers: [Field; 8]) -> Tight<1> {
    Tight::from_limbs([into_lanes(&numbers.map(|number| limbs_of(&big(&number.words()))))])
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn field(number: &Tight<1>, i: usize) -> Field {
    Field::new(words(&(value(lane(&number.limbs()[0], i)) % prime())))
}

/// A row's point, of coordinates that need not be below p.
fn reduced(row: &Row) -> portable::Affine {
    let (x, y) = row.0.split_at(4);
    let coordinate = |half| Field::new(words(&(big(half) % prime())));
    portable::Affine { x: coordinate(x), y: coordinate(y) }
}

/// The bounds that debug builds track: an operation that could overflow is rejected for any data.
#[cfg(debug_assertions)]
mod bounds {
    use super::*;

    #[target_feature(enable = "avx512f,avx512ifma")]
    fn subtract_more_than_stated() {
        let one = Tight::<1>::one().loose();
        let three = one.plus(&one).plus(&one);
        one.minus::<3>(&three);
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    fn make_a_factor_too_large() {
        let mut sum = Tight::<1>::one().loose();
        for _ in 0..5 {
            sum = sum.twice();
        }
        sum.carry();
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    fn sum_products_beyond_2_to_the_520() {
        let x = Factor::widest([into_lanes(&[[MASK_52; 5]; 8])]);
        x.wide_square().twice().fold();
    }

    fn panics(act: unsafe fn()) {
        if is_available() {
            // SAFETY: the line above saw the instructions on this CPU.
            assert!(std::panic::catch_unwind(|| unsafe { act() }).is_err());
        }
    }

    #[test]
    fn a_subtraction_beyond_its_magnitude_panics() {
        panics(subtract_more_than_stated);
    }

    #[test]
    fn a_factor_beyond_52_bits_panics() {
        panics(make_a_factor_too_large);
    }

    #[test]
    fn a_sum_of_products_beyond_520_bits_panics() {
        panics(sum_products_beyond_2_to_the_520);
    }
}
