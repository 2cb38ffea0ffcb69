//! Every operation in lanes against big integers, points against the portable ones.
//!
//! Every test runs for every curve with every engine that this machine has.

use num_bigint::BigUint;

use super::super::modular::{Field, Modulus, Residue};
use super::super::table::{KEY_ROWS, Row};
use super::super::tests::{Noise, big, prime, words};
use super::super::{P256, portable};
use super::field::{
    Factor, LIFT, Limbs, Loose, MASK_48, MASK_52, Prime, PrimeOf, Tight, multiple_of_p, widest_top,
};
use super::point::{Affine, Jacobian, on_curve_lanes, y_of};
use super::rows::read_rows;
use super::table::Multiples;
use super::vector::{Engine, Vector};
use super::*;

/// Declares tests that run a body for every curve with every engine that is here.
macro_rules! in_lanes {
    ($($name:ident($engine:ident) $body:block)*) => {$(
        #[test]
        fn $name() {
            fn body<E: Engine>($engine: E) $body
            for backend in Backend::ALL {
                with_engine!(Secp256k1, backend, |engine| body(engine));
                with_engine!(P256, backend, |engine| body(engine));
            }
        }
    )*};
}

/// The representation of one in lanes, and its inverse.
fn form<C: Curve>() -> [BigUint; 2] {
    [big(&C::P::TO_LANES), big(&C::P::FROM_LANES)]
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

/// One number per lane.
fn into_lanes<E: Engine>(engine: E, numbers: &[[u64; 5]]) -> Limbs<E::Vector> {
    let row = |[l0, l1, l2, l3, l4]: &[u64; 5]| Row([*l0, *l1, *l2, *l3, *l4, 0, 0, 0]);
    let rows: Vec<Row> = numbers.iter().map(row).collect();
    let [l0, l1, l2, l3, l4, ..] = engine.read_rows(&Vec::from_iter(&rows));
    [l0, l1, l2, l3, l4]
}

/// The limbs of one lane.
fn lane<V: Vector>(limbs: &Limbs<V>, lane: usize) -> [u64; 5] {
    let [l0, l1, l2, l3, l4] = *limbs;
    let mut rows = vec![Row::ZERO; V::LANES];
    V::write_rows([l0, l1, l2, l3, l4, l4, l4, l4], &mut rows);
    *rows[lane].0.first_chunk().expect("eight words")
}

/// Two groups: the numbers, and the same in reverse.
fn two_groups<E: Engine>(engine: E, numbers: &[[u64; 5]]) -> [Limbs<E::Vector>; 2] {
    let backwards: Vec<[u64; 5]> = numbers.iter().rev().copied().collect();
    [into_lanes(engine, numbers), into_lanes(engine, &backwards)]
}

/// Checks each lane of both groups against the expected result of the numbers.
fn assert_lanes<V: Vector>(limbs: &[Limbs<V>; 2], check: &dyn Fn(usize, [u64; 5])) {
    for i in 0..V::LANES {
        check(i, lane(&limbs[0], i));
        check(i, lane(&limbs[1], V::LANES - 1 - i));
    }
}

/// Tight limbs at edges: every limb at 0, 1 and its maximum, multiples of p and their neighbours, and
/// random numbers up to 2²⁶⁰.
fn interesting<E: Engine>(_: E) -> Vec<[u64; 5]> {
    let ends = [0, 1, MASK_52 - 1, MASK_52];
    let widest = widest_top::<E::Vector>();
    let tops = [0, 1, MASK_48, MASK_48 + 1, widest];
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
    let prime = prime::<E::Curve>();
    let gap = (BigUint::from(1u8) << 256u16) - &prime;
    for multiple in 0..=15u8 {
        let near = &prime * multiple;
        list.extend([limbs_of(&near), limbs_of(&(&near + 1u8)), limbs_of(&(&near + &gap))]);
        list.extend((multiple > 0).then(|| limbs_of(&(&near - 1u8))));
    }
    let mut noise = Noise::new(31);
    list.extend((0..40).map(|_| {
        let [l0, l1, l2, l3, l4] = [(); 5].map(|()| noise.word() & MASK_52);
        [l0, l1, l2, l3, l4.min(widest)]
    }));
    list
}

/// The list in groups of as many as there are lanes, the last one padded with its first element.
fn groups<E: Engine>(_: E, list: &[[u64; 5]]) -> Vec<Vec<[u64; 5]>> {
    let lanes = E::Vector::LANES;
    let group = |group: &[[u64; 5]]| (0..lanes).map(|i| group[i % group.len()]).collect();
    list.chunks(lanes).map(group).collect()
}

fn each(numbers: &[[u64; 5]], change: impl Fn([u64; 5]) -> [u64; 5]) -> Vec<[u64; 5]> {
    numbers.iter().copied().map(change).collect()
}

/// The number of lanes.
fn lanes<E: Engine>(_: E) -> usize {
    E::Vector::LANES
}

in_lanes! {
    products_match_big_integers(engine) {
        let (prime, list) = (prime::<E::Curve>(), interesting(engine));
        let [_, from_lanes] = form::<E::Curve>();
        for rotation in 0..list.len() {
            let mut rotated = list.clone();
            rotated.rotate_left(rotation);
            for (a, b) in groups(engine, &list).iter().zip(&groups(engine, &rotated)) {
                let (x, y) = (Factor::widest(two_groups(engine, a)), Factor::widest(two_groups(engine, b)));
                let product = x.mul(&y);
                let tight = product.tighten();
                // A sum of four products stays below 2⁵²⁰.
                let half = (widest_top::<E::Vector>() >> 1) - 4 * E::Vector::SPARE;
                let halve = |[l0, l1, l2, l3, l4]: [u64; 5]| [l0, l1, l2, l3, (l4 >> 1).min(half)];
                let [half_a, half_b] = [a, b].map(|numbers| each(numbers, halve));
                let x = Loose::up_to(MASK_52, half, two_groups(engine, &half_a)).carry();
                let y = Loose::up_to(MASK_52, half, two_groups(engine, &half_b)).carry();
                let sum = x.wide_mul(&y).plus_product(&x, &x).plus(&y.wide_square().twice()).fold();
                assert_lanes(tight.limbs(), &|i, limbs| {
                    let product = value(a[i]) * value(b[i]);
                    assert!(limbs[4] <= top_of_product::<E>(&product) + 20);
                    let expected = product * &from_lanes % &prime;
                    assert_eq!(value(limbs) % &prime, expected, "{:x?} times {:x?}", a[i], b[i]);
                    assert!(limbs[..4].iter().all(|limb| *limb <= MASK_52));
                });
                assert_lanes(product.limbs_as_they_are(), &|i, limbs| {
                    let terms = 9 + PrimeOf::<E::Vector>::FOLD_TERMS + E::Vector::SPARE;
                    assert!(limbs[..4].iter().all(|limb| *limb <= terms * MASK_52));
                    assert!(limbs[4] <= top_of_product::<E>(&(value(a[i]) * value(b[i]))));
                });
                assert_lanes(sum.tighten().limbs(), &|i, limbs| {
                    let (a, b) = (value(half_a[i]), value(half_b[i]));
                    let expected = (&a * &b + &a * &a + &b * &b * 2u8) * &from_lanes % &prime;
                    assert_eq!(value(limbs) % &prime, expected);
                });
            }
        }
    }

    a_product_and_a_number_are_added_to_magnitude_one(engine) {
        let (prime, list) = (prime::<E::Curve>(), interesting(engine));
        let [_, from_lanes] = form::<E::Curve>();
        let mut others = list.clone();
        others.rotate_left(7);
        for (a, b) in groups(engine, &list).iter().zip(&groups(engine, &others)) {
            let quarter = each(a, |[l0, l1, l2, l3, l4]| [l0, l1, l2, l3, l4 >> 2]);
            let top = widest_top::<E::Vector>() >> 2;
            let x = Loose::up_to(MASK_52, top, two_groups(engine, &quarter)).carry();
            // As large as the negative of a sum of two numbers.
            let y = Loose::up_to(MASK_52, MASK_52 >> 2, two_groups(engine, &each(b, |[l0, l1, l2, l3, l4]| [l0, l1, l2, l3, l4 >> 2])));
            let y = y.plus(&y.negate::<5>().twice());
            let sum = x.wide_square().fold_with(&y).tighten();
            let offset = BigUint::from(10u8) * &prime;
            assert_lanes(sum.limbs(), &|i, limbs| {
                let (a, b) = (value(quarter[i]), value(each(&[b[i]], |[l0, l1, l2, l3, l4]| [l0, l1, l2, l3, l4 >> 2])[0]));
                let expected = (&a * &a * &from_lanes + &offset - b) % &prime;
                assert_eq!(value(limbs) % &prime, expected);
                assert!(limbs[4] < PrimeOf::<E::Vector>::FOLDABLE_TOP);
            });
        }
    }

    squares_match_big_integers(engine) {
        let prime = prime::<E::Curve>();
        let [_, from_lanes] = form::<E::Curve>();
        let choices = [0, 1, (1 << 51) + 5, MASK_52 - 1, MASK_52];
        let mut list = interesting(engine);
        for i in 0..5usize.pow(5) {
            let [l0, l1, l2, l3, l4] = [1, 5, 25, 125, 625].map(|place| choices[i / place % 5]);
            list.push([l0, l1, l2, l3, l4.min(widest_top::<E::Vector>())]);
        }
        for a in groups(engine, &list) {
            let x = Factor::widest(two_groups(engine, &a));
            assert_lanes(x.square().tighten().limbs(), &|i, limbs| {
                let square = value(a[i]).pow(2);
                assert!(limbs[4] <= top_of_product::<E>(&square) + 20);
                assert_eq!(value(limbs) % &prime, square * &from_lanes % &prime, "{:x?}", a[i]);
            });
            assert_lanes(x.square_times(3).tighten().limbs(), &|i, limbs| {
                let expected = value(a[i]).pow(8) * from_lanes.pow(7) % &prime;
                assert_eq!(value(limbs) % &prime, expected);
            });
        }
    }

    what_a_factor_carries_above_its_limbs_does_not_count(engine) {
        let mut noise = Noise::new(32);
        for _ in 0..100 {
            let mut numbers = || -> Vec<[u64; 5]> {
                (0..lanes(engine)).map(|_| [(); 5].map(|()| noise.word() >> 13)).collect()
            };
            let (a, b) = (numbers(), numbers());
            let high = |limbs: [u64; 5]| {
                let [l0, l1, l2, l3, l4] = limbs;
                [l0 | 5 << 52, l1 | 1 << 63, l2 | 0xfff << 52, l3 | 1 << 52, l4]
            };
            let x = Factor::widest(two_groups(engine, &each(&a, high)));
            let y = Factor::widest(two_groups(engine, &each(&b, high)));
            let (clean_x, clean_y) = (x.tighten(), y.tighten());
            assert_lanes(clean_x.limbs(), &|i, limbs| assert_eq!(limbs, a[i]));
            let expected = clean_x.mul(&clean_y);
            for i in 0..lanes(engine) {
                let product = lane(&x.mul(&y).limbs_as_they_are()[0], i);
                assert_eq!(product, lane(&expected.limbs_as_they_are()[0], i));
            }
        }
    }

    sums_and_carries_keep_the_value(engine) {
        for list in groups(engine, &interesting(engine)) {
            // Limbs 0 to 3 close to 64 bits, the top one as large as the carry allows.
            let a = each(&list, |l| [l[0] << 9 | 511, l[1] << 10, l[2] << 11, l[3] << 12, l[4] >> 2]);
            let b = each(&list, |l| [l[3] << 3, l[1] << 3, l[0] << 2, l[2], l[4] >> 3]);
            let x = Loose::up_to(u64::MAX - (1 << 61), MASK_52 >> 2, two_groups(engine, &each(&a, shorten)));
            let y = Loose::up_to((1 << 56) - 1, MASK_52 >> 3, two_groups(engine, &b));
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

    negation_works_up_to_its_stated_bounds(engine) {
        negation_up_to_its_bounds::<E, 2>(engine);
        negation_up_to_its_bounds::<E, 3>(engine);
        negation_up_to_its_bounds::<E, 4>(engine);
        negation_up_to_its_bounds::<E, 5>(engine);
        negation_up_to_its_bounds::<E, 6>(engine);
        negation_up_to_its_bounds::<E, 7>(engine);
    }

    normalising_finds_the_representative_below_p(engine) {
        let prime = prime::<E::Curve>();
        for a in groups(engine, &interesting(engine)) {
            let x = Factor::widest(two_groups(engine, &a)).tighten();
            assert_lanes(x.normalise().limbs(), &|i, limbs| {
                assert_eq!(value(limbs), value(a[i]) % &prime, "{:x?}", a[i]);
            });
            let [_, from_lanes] = form::<E::Curve>();
            let (zero, odd) = (x.zero_lanes(), x.odd_lanes());
            for i in 0..lanes(engine) {
                let residue = value(a[i]) % &prime;
                let last = lanes(engine) - 1;
                let both = |mask: [u8; 2]| (mask[0] >> i & 1, mask[1] >> (last - i) & 1);
                let expected_zero = u8::from(residue == BigUint::ZERO);
                assert_eq!(both(zero), (expected_zero, expected_zero));
                let expected_odd = u8::from((residue * &from_lanes % &prime).bit(0));
                assert_eq!(both(odd), (expected_odd, expected_odd));
            }
        }
    }

    settling_keeps_the_residue(engine) {
        let prime = prime::<E::Curve>();
        for a in groups(engine, &interesting(engine)) {
            let x = Loose::up_to(MASK_52, widest_top::<E::Vector>(), two_groups(engine, &a));
            let settled = x.settle().tighten();
            assert_lanes(settled.limbs(), &|i, limbs| {
                assert_eq!(value(limbs) % &prime, value(a[i]) % &prime, "{:x?}", a[i]);
                // Where a product is of magnitude 1, nothing is done.
                let is_of_magnitude_one = limbs[4] <= MASK_48 + (16 << 16);
                assert!(is_of_magnitude_one || limbs == a[i]);
            });
        }
    }

    magnitude_one_folds_below_2_to_the_256(engine) {
        let top = BigUint::from(1u8) << 256u16;
        let most_top = PrimeOf::<E::Vector>::FOLDABLE_TOP;
        let most = (BigUint::from(most_top) << 208u8) - 1u8;
        let list = [&top - 1u8, top.clone(), &top + 1u8, most, prime::<E::Curve>(), prime::<E::Curve>() - 1u8];
        let numbers = Vec::from_iter((0..lanes(engine)).map(|i| limbs_of(&list[i % list.len()])));
        let x = Loose::up_to(MASK_52, most_top - 1, two_groups(engine, &numbers)).tighten();
        assert_lanes(x.below_2_256().limbs(), &|i, limbs| {
            assert!(value(limbs) < top && limbs.iter().all(|limb| *limb <= MASK_52));
            assert_eq!(value(limbs) % prime::<E::Curve>(), value(numbers[i]) % prime::<E::Curve>());
        });
    }

    inverses_and_roots(engine) {
        let prime = prime::<E::Curve>();
        let [to_lanes, from_lanes] = form::<E::Curve>();
        let quarter = (&prime + 1u8) / 4u8;
        // Where the magnitude of a product grows with the magnitudes of its factors, they start with a quarter of the
        // greatest.
        let top = if to_lanes.bit(0) { widest_top::<E::Vector>() } else { MASK_52 >> 2 };
        for a in groups(engine, &interesting(engine)) {
            let a = each(&a, |[l0, l1, l2, l3, l4]| [l0, l1, l2, l3, l4.min(top)]);
            let x = Loose::up_to(MASK_52, top, two_groups(engine, &a)).carry();
            assert_lanes(x.invert().tighten().limbs(), &|i, limbs| {
                let inverse = value(a[i]).modpow(&(&prime - 2u8), &prime);
                assert_eq!(value(limbs) % &prime, inverse * &to_lanes * &to_lanes % &prime);
            });
            assert_lanes(x.root().tighten().limbs(), &|i, limbs| {
                let root = (value(a[i]) * &from_lanes).modpow(&quarter, &prime);
                assert_eq!(value(limbs) % &prime, root * &to_lanes % &prime);
            });
        }
    }

    rows_travel_through_lanes_unchanged(engine) {
        let mut noise = Noise::new(33);
        let count = lanes(engine);
        let rows = Vec::from_iter((0..2 * count).map(|_| Row([(); 8].map(|()| noise.word()))));
        let [first, second]: [Tight<E::Vector, 2>; 2] =
            read_rows(engine, &Vec::from_iter(&rows));
        for (number, words) in [(first, 0..4), (second, 4..8)] {
            for (i, row) in rows.iter().enumerate() {
                let limbs = lane(&number.limbs()[i / count], i % count);
                assert!(limbs.iter().all(|limb| *limb <= MASK_52));
                assert_eq!(value(limbs), big(&row.0[words.clone()]));
            }
        }
    }

    points_double_and_add_like_the_portable_ones(engine) {
        let mut noise = Noise::new(34);
        for _ in 0..30 {
            let sums = points(engine, &mut noise);
            let others = points(engine, &mut noise);
            let negative = noise.word() as u8 & E::Vector::ALL;
            let mut sum = with_any_z(engine, &sums, &mut noise);
            let other = Affine {
                x: tight(engine, others.iter().map(|point| point.x)),
                y: tight(engine, others.iter().map(|point| point.y)),
                negate: [negative],
            };
            // Twice, so that outputs at their bounds are inputs too: (4·(−S) … ) and so on.
            let mut expected = Vec::from_iter(sums.iter().map(|sum| portable::Jacobian::from(*sum)));
            for _ in 0..2 {
                sum.double_to_opposite();
                sum.double_to_opposite();
                sum.add(&other);
                sum.double_to_opposite();
                for (i, expected) in expected.iter_mut().enumerate() {
                    let other =
                        if negative >> i & 1 == 1 { others[i].negate() } else { others[i] };
                    let opposite = expected.double().double().add(other).double().to_affine();
                    *expected = opposite.negate().into();
                }
            }
            for (i, expected) in expected.iter().enumerate() {
                assert_eq!(affine(&sum, i), expected.to_affine());
            }
        }
    }

    points_with_a_z_add_like_the_portable_ones(engine) {
        let mut noise = Noise::new(37);
        for _ in 0..30 {
            let [first, second] = [points(engine, &mut noise), points(engine, &mut noise)];
            let [mut sum, other] = [&first, &second].map(|points| with_any_z(engine, points, &mut noise));
            // Twice, so that outputs at their bounds are inputs too.
            sum.add_jacobian(&other);
            sum.add_jacobian(&other);
            for i in 0..lanes(engine) {
                let twice = portable::Jacobian::from(second[i]).double().to_affine();
                let expected = portable::Jacobian::from(first[i]).add(twice).to_affine();
                assert_eq!(affine(&sum, i), expected);
            }
            let same = sum;
            sum.add_jacobian(&same);
            assert_eq!(sum.z.tighten().zero_lanes(), [E::Vector::ALL]);
            sum.add_jacobian(&other);
            assert_eq!(sum.z.tighten().zero_lanes(), [E::Vector::ALL]);
        }
    }

    lanes_are_exchanged_and_chosen(engine) {
        let mut noise = Noise::new(38);
        let [first, second] = [points(engine, &mut noise), points(engine, &mut noise)];
        let [x, y] = [&first, &second].map(|points| with_any_z(engine, points, &mut noise));
        let mask = 0b0110_1001 & E::Vector::ALL;
        let mut distance = lanes(engine) / 2;
        while distance > 0 {
            let (exchanged, chosen) = (x.exchange(distance), x.or_where([mask], &y));
            for i in 0..lanes(engine) {
                assert_eq!(affine(&exchanged, i), first[i ^ distance]);
                let expected = if mask >> i & 1 == 1 { second[i] } else { first[i] };
                assert_eq!(affine(&chosen, i), expected);
            }
            distance /= 2;
        }
    }

    a_y_of_no_point_is_noticed_in_its_lane(engine) {
        let points = points(engine, &mut Noise::new(39));
        let is_wrong = |i: usize| 0b0110_1001 >> i & 1 == 1;
        let x: Tight<E::Vector, 1> = tight(engine, points.iter().map(|point| point.x));
        let y = tight(engine, points.iter().enumerate().map(|(i, point)| {
            if is_wrong(i) { point.y.plus(Residue::ONE) } else { point.y }
        }));
        let [on_curve] = on_curve_lanes(&x, &y);
        for i in 0..lanes(engine) {
            assert_eq!(on_curve >> i & 1 == 1, !is_wrong(i));
        }
    }

    an_exceptional_addition_leaves_z_zero_for_good(engine) {
        let mut noise = Noise::new(35);
        let points = points(engine, &mut noise);
        let x = tight(engine, points.iter().map(|point| point.x));
        let y = tight(engine, points.iter().map(|point| point.y));
        // The point to itself in the even lanes, to its opposite in the odd ones.
        let same = Affine::<E::Vector, 1> { x, y, negate: [0b1010_1010 & E::Vector::ALL] };
        let mut sum = Jacobian { x, y, z: *x.one() };
        for _ in 0..20 {
            sum.add(&same);
            assert_eq!(sum.z.tighten().zero_lanes(), [E::Vector::ALL]);
            sum.double_to_opposite();
            assert_eq!(sum.z.tighten().zero_lanes(), [E::Vector::ALL]);
        }
    }

    tables_hold_the_odd_multiples(engine) {
        let mut noise = Noise::new(36);
        for _ in 0..5 {
            let points = points(engine, &mut noise);
            let odd_at = |(i, point): (usize, &portable::Affine<E::Curve>)| u8::from(point.y.is_odd()) << i;
            let odd = points.iter().enumerate().map(odd_at).sum();
            let x: Tight<E::Vector, 1> = tight(engine, points.iter().map(|point| point.x));
            let (y, on_curve) = y_of(&x, [odd]);
            assert_eq!(on_curve, [E::Vector::ALL]);
            let multiples = Multiples::of(&x, &y);
            let z = multiples.last_z();
            let mut rows = vec![[Row::ZERO; KEY_ROWS]; points.len()];
            multiples.write(&z.invert(), &mut rows);
            let mut shared = rows.clone();
            multiples.write(&x.one(), &mut shared);
            for (i, point) in points.iter().enumerate() {
                let z_inverse = field(&z.tighten(), i).invert();
                for (row, expected) in point.odd_multiples(KEY_ROWS).iter().enumerate() {
                    assert_eq!(reduced::<E::Curve>(&rows[i][row]), *expected);
                    let portable::Affine { x, y } = reduced::<E::Curve>(&shared[i][row]);
                    let scaled = portable::Jacobian { x, y, z: z_inverse.invert() };
                    assert_eq!(scaled.to_affine(), *expected);
                }
            }
        }
    }

    an_x_of_no_point_is_noticed_in_its_lane(engine) {
        for start in 0..40u64 {
            let x = |i: usize| Residue::new([start + i as u64, 0, 0, 0]);
            let xs: Tight<E::Vector, 1> = tight(engine, (0..lanes(engine)).map(x));
            let (_, [on_curve]) = y_of(&xs, [0b0110_1001 & E::Vector::ALL]);
            for i in 0..lanes(engine) {
                let expected = portable::Affine::<E::Curve>::on_curve(x(i), false).is_some();
                assert_eq!(on_curve >> i & 1 == 1, expected);
            }
        }
    }
}

/// The points, all over random Zs.
fn with_any_z<E: Engine>(
    engine: E,
    points: &[portable::Affine<E::Curve>],
    noise: &mut Noise,
) -> Jacobian<E::Vector, 1> {
    let zs = Vec::from_iter(points.iter().map(|_| Residue::from_bytes_reduced(&noise.bytes())));
    let scaled = |coordinate: &Coordinate<E::Curve>| {
        tight(engine, points.iter().zip(&zs).map(|(point, z)| coordinate(point, *z)))
    };
    Jacobian {
        x: scaled(&|point, z| point.x.times(z.square())),
        y: scaled(&|point, z| point.y.times(z.square()).times(z)),
        z: *scaled(&|_, z| z),
    }
}

/// The point in a lane.
fn affine<V: Vector>(point: &Jacobian<V, 1>, i: usize) -> portable::Affine<V::Curve> {
    let [x, y, z] = [point.x, point.y, point.z.tighten()].map(|number| field(&number, i));
    portable::Jacobian { x, y, z }.to_affine()
}

/// Halves the low limbs, so that a sum of two stays within 64 bits.
fn shorten([l0, l1, l2, l3, l4]: [u64; 5]) -> [u64; 5] {
    [l0 >> 1, l1 >> 1, l2 >> 1, l3 >> 1, l4]
}

fn negation_up_to_its_bounds<E: Engine, const K: u64>(engine: E) {
    let offset = multiple_of_p::<PrimeOf<E::Vector>>(K);
    assert_eq!(value(offset), prime::<E::Curve>() * K);
    let (low, top) = ((LIFT << 52) - LIFT, offset[4]);
    let mut noise = Noise::new(K);
    for round in 0..50 {
        let mut choose = |most: u64| match (round + noise.below(3)) % 4 {
            0 => 0,
            1 => most,
            2 => 1,
            _ => noise.word() % (most + 1),
        };
        let numbers = Vec::from_iter(
            (0..lanes(engine))
                .map(|_| [choose(low), choose(low), choose(low), choose(low), choose(top)]),
        );
        let x = Loose::up_to(low, top, two_groups(engine, &numbers));
        assert_lanes(x.negate::<K>().limbs_as_they_are(), &|i, limbs| {
            assert_eq!(value(limbs) + value(numbers[i]), prime::<E::Curve>() * K);
        });
        let ones = vec![[1, 0, 0, 0, 0]; lanes(engine)];
        let one = Loose::up_to(1, 0, two_groups(engine, &ones));
        assert_lanes(one.minus::<K>(&x).limbs_as_they_are(), &|i, limbs| {
            assert_eq!(value(limbs) + value(numbers[i]), prime::<E::Curve>() * K + 1u8);
        });
        // Even lanes of the first group, and the lanes of the second, which is in reverse, with the same numbers.
        let even = 0b0101_0101_u8;
        let same = if E::Vector::LANES == 1 { even } else { !even };
        let kept = x.negate_unless::<K>([even & E::Vector::ALL, same & E::Vector::ALL]);
        assert_lanes(kept.limbs_as_they_are(), &|i, limbs| {
            let number = value(numbers[i]);
            let expected = if i % 2 == 0 { number } else { prime::<E::Curve>() * K - number };
            assert_eq!(value(limbs), expected);
        });
    }
}

/// A coordinate of the point, to be scaled by powers of Z.
type Coordinate<'a, C> = dyn Fn(&portable::Affine<C>, Field<C>) -> Field<C> + 'a;

/// A random point of the curve.
fn point<C: Curve>(noise: &mut Noise) -> portable::Affine<C> {
    loop {
        let x = Residue::from_bytes_reduced(&noise.bytes());
        if let Some(point) = portable::Affine::on_curve(x, noise.word() & 1 == 1) {
            return point;
        }
    }
}

/// A random point per lane.
fn points<E: Engine>(_: E, noise: &mut Noise) -> Vec<portable::Affine<E::Curve>> {
    (0..E::Vector::LANES).map(|_| point(noise)).collect()
}

fn tight<E: Engine>(
    engine: E,
    numbers: impl Iterator<Item = Field<E::Curve>>,
) -> Tight<E::Vector, 1> {
    let limbs = Vec::from_iter(numbers.map(|number| limbs_of(&big(&number.to_lanes()))));
    Tight::from_limbs([into_lanes(engine, &limbs)])
}

fn field<V: Vector>(number: &Tight<V, 1>, i: usize) -> Field<V::Curve> {
    Residue::from_lanes(words(&(value(lane(&number.limbs()[0], i)) % prime::<V::Curve>())))
}

/// A row's point, of coordinates that need not be below p.
fn reduced<C: Curve>(row: &Row) -> portable::Affine<C> {
    let (x, y) = row.0.split_at(4);
    let coordinate = |half| Residue::from_lanes(words(&(big(half) % prime::<C>())));
    portable::Affine { x: coordinate(x), y: coordinate(y) }
}

/// The largest top limb after folding this product.
fn top_of_product<E: Engine>(product: &BigUint) -> u64 {
    let is_montgomery = PrimeOf::<E::Vector>::TO_LANES != [1, 0, 0, 0];
    let quotient = if is_montgomery { product >> (260 + 208u16) } else { BigUint::ZERO };
    // The start of a product's columns adds a little to its quotient.
    let start = if is_montgomery { 2 * E::Vector::SPARE + 2 } else { 0 };
    u64::try_from(quotient).expect("a limb") + MASK_48 + start
}

#[test]
fn the_factors_of_the_start_of_a_low_half_have_its_value() {
    let product: u128 = doubles::START.map(|factor| factor as u128).iter().product();
    assert_eq!(product, (1 << 104) + (3 << 51));
    assert!(doubles::START.iter().all(|factor| *factor as u128 as f64 == *factor));
}

/// The bounds that debug builds track: an operation that could overflow is rejected for any data.
#[cfg(debug_assertions)]
mod bounds {
    use super::*;

    fn one<E: Engine>(engine: E) -> Tight<E::Vector, 1> {
        Tight::from_limbs([into_lanes(engine, &vec![[1, 0, 0, 0, 0]; E::Vector::LANES])])
    }

    fn subtract_more_than_stated<E: Engine>(engine: E) {
        let one = one(engine).loose();
        let three = one.plus(&one).plus(&one);
        one.minus::<3>(&three);
    }

    fn make_a_factor_too_large<E: Engine>(engine: E) {
        let mut sum = one(engine).loose();
        for _ in 0..5 {
            sum = sum.twice();
        }
        sum.carry();
    }

    fn sum_products_beyond_2_to_the_520<E: Engine>(engine: E) {
        let limbs = vec![[MASK_52; 5]; E::Vector::LANES];
        let x: Factor<E::Vector, 1> = Factor::widest([into_lanes(engine, &limbs)]);
        x.wide_square().twice().fold().carry();
    }

    fn assert_panics(act: impl Fn()) {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err());
    }

    in_lanes! {
        a_subtraction_beyond_its_magnitude_panics(engine) {
            assert_panics(|| subtract_more_than_stated(engine));
        }

        a_factor_beyond_52_bits_panics(engine) {
            assert_panics(|| make_a_factor_too_large(engine));
        }

        a_sum_of_products_beyond_520_bits_panics(engine) {
            assert_panics(|| sum_products_beyond_2_to_the_520(engine));
        }
    }
}
