//! The AVX-512 IFMA back end: distributes equations over lanes and turns the resulting points into verdicts.

#![expect(
    clippy::needless_range_loop,
    reason = "iterator adaptors over vectors are closures, which are not compiled with the features \
              of the function around them"
)]

mod bound;
mod field;
mod ladder;
mod point;
mod table;
#[cfg(test)]
mod tests;

use std::arch::x86_64::__mmask8;

use super::equation::{Equation, Rule};
use super::modular::Field;
use super::portable::plus_order;
use super::table::{KEY_ROWS, KeyTable, Row, generator_tables};
use super::{Key, Verdict};
use field::{Factor, Tight};
use ladder::Ladder;
use point::Jacobian;
use table::{Multiples, read_rows};

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma")
}

/// Writes the verdict on each equation to `verdicts` at the equation's index.
pub(super) fn check_many(equations: &[Equation<'_>], rule: Rule, verdicts: &mut [Verdict]) {
    assert!(is_available(), "the dispatcher checked before");
    // SAFETY: the line above saw the instructions on this CPU.
    unsafe { check_in_lanes(equations, rule, verdicts) }
}

/// Cached keys need no table, so they share no lanes with others. Sixteen lanes hide each other's
/// latency; eight, used for the last few, cost more than half as much.
#[target_feature(enable = "avx512f,avx512ifma")]
fn check_in_lanes(equations: &[Equation<'_>], rule: Rule, verdicts: &mut [Verdict]) {
    let mut cached = Vec::new();
    let mut fresh = Vec::new();
    for equation in equations {
        let list = if matches!(equation.key, Key::Cached(_)) { &mut cached } else { &mut fresh };
        list.push(equation);
    }
    let mut parities = Vec::new();
    for list in [&fresh, &cached] {
        for equations in list.chunks(16) {
            if equations.len() > 8 {
                verify_group::<2>(equations, rule, verdicts, &mut parities);
            } else {
                verify_group::<1>(equations, rule, verdicts, &mut parities);
            }
        }
    }
    reject_odd(&parities, verdicts);
}

/// Writes the verdicts on up to 8·G equations, all with cached keys or all without. The parities that
/// [`Rule::XWithEvenY`] requires are left to the caller in `parities`.
#[target_feature(enable = "avx512f,avx512ifma")]
fn verify_group<const G: usize>(
    equations: &[&Equation<'_>],
    rule: Rule,
    verdicts: &mut [Verdict],
    parities: &mut Vec<Parity>,
) {
    let lanes: [[&Equation<'_>; 8]; G] = spread(equations);
    let inputs = lanes.map(|lanes| lanes.map(|equation| input_row(equation)));
    let [x, target] = read_rows(&views(&inputs));
    let mut rows = [[[Row::ZERO; KEY_ROWS]; 8]; G];
    let (shared_z, on_curve) = match lanes[0][0].key {
        Key::Cached(_) => (*Tight::one(), [!0; G]),
        Key::Compressed(_) | Key::XOnly(_) => make_tables(&x, odd_lanes(&lanes), &mut rows),
    };
    let ladder = Ladder {
        key: key_tables(&lanes, &rows),
        shared_z,
        generator: generator_tables(),
        digits: lanes.map(|lanes| lanes.map(|equation| &equation.digits)),
    };
    let sum = ladder.run();
    let z = sum.z.tighten();
    let exceptional = z.zero_lanes();
    let matching = match rule {
        Rule::XModuloOrder => x_matches_modulo_order(&sum, &target, &lanes),
        Rule::XWithEvenY => x_matches(&sum, &target),
    };
    for (i, equation) in equations.iter().enumerate() {
        let is_in = |mask: [__mmask8; G]| mask[i / 8] >> (i % 8) & 1 == 1;
        verdicts[equation.index] = match (is_in(on_curve), is_in(exceptional)) {
            (false, _) => Verdict::Invalid,
            (true, true) => Verdict::Undecided,
            (true, false) => Verdict::of(is_in(matching)),
        };
    }
    if rule == Rule::XWithEvenY {
        for (g, equations) in equations.chunks(8).enumerate() {
            let z = *z.group(g).or_where([exceptional[g]], &Tight::one());
            let indices = equations.iter().map(|equation| equation.index).collect();
            parities.push(Parity { y: sum.y.group(g), z, indices });
        }
    }
}

/// An equation for every lane: the spare ones repeat the last.
fn spread<'e, 'a, const G: usize>(equations: &[&'e Equation<'a>]) -> [[&'e Equation<'a>; 8]; G] {
    let mut lanes = [[equations[equations.len() - 1]; 8]; G];
    for (i, equation) in equations.iter().enumerate() {
        lanes[i / 8][i % 8] = equation;
    }
    lanes
}

/// The numbers of an equation, as they are loaded into lanes.
fn input_row(equation: &Equation<'_>) -> Row {
    Row::new(equation.key_x.words(), equation.target)
}

/// The tables that the ladder reads: cached ones in place, the others in `rows`.
fn key_tables<'a, const G: usize>(
    lanes: &[[&Equation<'a>; 8]; G],
    rows: &'a [[[Row; KEY_ROWS]; 8]; G],
) -> [[&'a [Row; KEY_ROWS]; 8]; G] {
    let mut tables = [[&rows[0][0]; 8]; G];
    for g in 0..G {
        for lane in 0..8 {
            tables[g][lane] = match lanes[g][lane].key {
                Key::Cached(table) => table.rows(),
                Key::Compressed(_) | Key::XOnly(_) => &rows[g][lane],
            };
        }
    }
    tables
}

/// The lanes in which y has to be odd.
fn odd_lanes<const G: usize>(lanes: &[[&Equation<'_>; 8]; G]) -> [__mmask8; G] {
    let mut odd = [0; G];
    for g in 0..G {
        for lane in 0..8 {
            odd[g] |= __mmask8::from(lanes[g][lane].key_is_odd) << lane;
        }
    }
    odd
}

/// Finds y for each x and fills the rows with odd multiples. Returns the Z of the rows and the
/// lanes whose x is of a point; the content of the others is meaningless.
#[target_feature(enable = "avx512f,avx512ifma")]
fn make_tables<const G: usize>(
    x: &Tight<G>,
    odd: [__mmask8; G],
    rows: &mut [[[Row; KEY_ROWS]; 8]; G],
) -> (Factor<G>, [__mmask8; G]) {
    let (y, on_curve) = point::y_of(x, odd);
    let multiples = Multiples::of(x, &y);
    multiples.write(&Tight::one(), rows);
    (multiples.last_z(), on_curve)
}

/// The table of each key; `None` where the bytes are not a key.
pub(super) fn tables_of(keys: &[Key<'_>]) -> Vec<Option<KeyTable>> {
    assert!(is_available(), "the caller checked before");
    let mut tables: Vec<Option<KeyTable>> = keys.iter().map(|key| key.cached()).collect();
    let parsed: Vec<(usize, (Field, bool))> =
        keys.iter().enumerate().filter_map(|(i, key)| Some((i, key.parse()?))).collect();
    for parsed in parsed.chunks(16) {
        // SAFETY: the assertion above saw the instructions on this CPU.
        unsafe { write_tables(parsed, &mut tables) }
    }
    tables
}

/// Writes the tables of up to sixteen keys, given by index, x and the parity of y.
#[target_feature(enable = "avx512f,avx512ifma")]
fn write_tables(parsed: &[(usize, (Field, bool))], tables: &mut [Option<KeyTable>]) {
    let mut inputs = [[Row::ZERO; 8]; 2];
    let mut odd: [__mmask8; 2] = [0; 2];
    for (i, (_, (x, is_odd))) in parsed.iter().enumerate() {
        inputs[i / 8][i % 8] = Row::new(x.words(), [0; 4]);
        odd[i / 8] |= __mmask8::from(*is_odd) << (i % 8);
    }
    let [x, _] = read_rows(&views(&inputs));
    let (y, on_curve) = point::y_of(&x, odd);
    let multiples = Multiples::of(&x, &y);
    let mut rows = [[[Row::ZERO; KEY_ROWS]; 8]; 2];
    multiples.write(&multiples.last_z().invert(), &mut rows);
    for (i, (index, _)) in parsed.iter().enumerate() {
        let is_point = on_curve[i / 8] >> (i % 8) & 1 == 1;
        tables[*index] = is_point.then(|| KeyTable::of_rows(&rows[i / 8][i % 8]));
    }
}

/// The lanes in which x is the target: X = target·Z².
#[target_feature(enable = "avx512f,avx512ifma")]
fn x_matches<const G: usize>(point: &Jacobian<G>, target: &Tight<G>) -> [__mmask8; G] {
    let zz = point.z.square().carry();
    target.mul(&zz).minus::<6>(&point.x.loose()).tighten().zero_lanes()
}

/// The lanes in which x mod n is the target. A second x is possible where target + n < p, which holds for
/// one random r in 2¹²⁷, or for an r chosen on purpose.
#[target_feature(enable = "avx512f,avx512ifma")]
fn x_matches_modulo_order<const G: usize>(
    point: &Jacobian<G>,
    target: &Tight<G>,
    lanes: &[[&Equation<'_>; 8]; G],
) -> [__mmask8; G] {
    let mut matching = x_matches(point, target);
    let seconds = lanes.map(|lanes| lanes.map(|equation| plus_order(&equation.target)));
    if seconds.as_flattened().iter().any(Option::is_some) {
        let mut targets = [[Row::ZERO; 8]; G];
        let mut possible = [0; G];
        for g in 0..G {
            for lane in 0..8 {
                if let Some(words) = seconds[g][lane] {
                    targets[g][lane] = Row::new(words, [0; 4]);
                    possible[g] |= 1 << lane;
                }
            }
        }
        let [target, _] = read_rows(&views(&targets));
        let second = x_matches(point, &target);
        for g in 0..G {
            matching[g] |= second[g] & possible[g];
        }
    }
    matching
}

/// Rejects the valid signatures whose point has an odd y, with one inversion for all (Montgomery's trick, see [`super::modular::Residue::invert_all`]).
#[target_feature(enable = "avx512f,avx512ifma")]
fn reject_odd(parities: &[Parity], verdicts: &mut [Verdict]) {
    if parities.is_empty() {
        return;
    }
    let mut before = Vec::with_capacity(parities.len());
    let mut product = *Tight::one();
    for parity in parities {
        before.push(product);
        product = product.mul(&parity.z).carry();
    }
    let mut inverse = product.invert();
    for (parity, before) in parities.iter().zip(before).rev() {
        let z_inverse = inverse.mul(&before).carry();
        inverse = inverse.mul(&parity.z).carry();
        let cube = z_inverse.square().carry().mul(&z_inverse).carry();
        let [odd] = parity.y.mul(&cube).tighten().odd_lanes();
        for (lane, index) in parity.indices.iter().enumerate() {
            if odd >> lane & 1 == 1 && verdicts[*index] == Verdict::Valid {
                verdicts[*index] = Verdict::Invalid;
            }
        }
    }
}

/// A point in each lane whose y must be even for the verdict to stay valid.
struct Parity {
    y: Tight<1>,
    /// Not zero in any lane.
    z: Factor<1>,
    /// The indices of the verdicts; fewer than eight at the end of a batch.
    indices: Vec<usize>,
}

/// A reference to each lane's row.
fn views<const G: usize>(rows: &[[Row; 8]; G]) -> [[&Row; 8]; G] {
    let mut views = [[&rows[0][0]; 8]; G];
    for g in 0..G {
        for lane in 0..8 {
            views[g][lane] = &rows[g][lane];
        }
    }
    views
}
