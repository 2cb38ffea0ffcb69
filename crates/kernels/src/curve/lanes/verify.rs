//! Verdicts on equations: distributes them over lanes, and compares the resulting points with r.

use std::any::Any;
use std::cell::RefCell;
use std::slice::ChunksExactMut;

use super::super::equation::{Equation, Rule};
use super::super::plan::{Order, Plan};
use super::super::portable::plus_order;
use super::super::table::{KEY_ROWS, Row, TableSize, Window};
use super::super::{Curve, Key, Parameters, Verdict};
use super::MOST_LANES;
use super::field::{Factor, Tight};
use super::ladder::Ladder;
use super::point::{self, Jacobian};
use super::rounds::{Rest, Rounds, Start, Sums};
use super::rows::read_rows;
use super::single::Single;
use super::table::{Multiples, masks};
use super::terms::Terms;
use super::vector::{Engine, Vector, Work, WorkOnEight};

/// Writes the verdicts on the equations to `verdicts` at the equations' indices.
///
/// Lanes take the same steps, so keys in different forms share no lanes. Many signatures are added up in rounds, a few in
/// sequence.
pub(super) fn check<E: Engine>(
    engine: E,
    equations: &[Equation<'_, E::Curve>],
    rule: Rule,
    verdicts: &mut [Verdict],
) {
    let mut lists: [Vec<&Equation<'_, E::Curve>>; FORMS] = Default::default();
    for equation in equations {
        lists[form(equation.key)].push(equation);
    }
    let mut checks = Checks { engine, rule, verdicts, parities: Vec::new() };
    for list in &lists {
        for equations in list.chunks(CHUNK) {
            checks.check(equations);
        }
    }
    engine.run(RejectOdd(&mut checks));
}

/// Which keys may share lanes: keys of the same form.
fn form<C: Curve>(key: Key<'_, C>) -> usize {
    match key {
        Key::Compressed(_) | Key::XOnly(_) => 0,
        Key::Point { .. } => 1,
        Key::Cached(table) => 2 + table.size() as usize,
    }
}

/// The size of the table of keys of the same form, cached or made on the way.
fn table_size<C: Curve>(key: Key<'_, C>) -> TableSize {
    match key {
        Key::Cached(table) => table.size(),
        _ => TableSize::Small,
    }
}

/// The forms of keys, with three sizes of cached ones.
const FORMS: usize = 5;

/// Verdicts on their way.
struct Checks<'v, E: Engine> {
    engine: E,
    rule: Rule,
    verdicts: &'v mut [Verdict],
    /// The checks that [`Rule::XWithEvenY`] leaves to do.
    parities: Vec<Parity<E::Vector>>,
}

impl<E: Engine> Checks<'_, E> {
    /// Writes the verdicts on equations whose keys have the same form.
    fn check(&mut self, equations: &[&Equation<'_, E::Curve>]) {
        let engine = self.engine;
        let is_cached = matches!(equations[0].key, Key::Cached(_));
        let is_worth_rounds = is_cached || E::Vector::ROUNDS_FOR_NEW_KEYS;
        if equations.len() < E::Vector::ROUNDS_FROM || !is_worth_rounds {
            for equations in equations.chunks(E::Vector::AT_ONCE * E::Vector::LANES) {
                self.check_in_sequence(equations);
            }
        } else if E::Vector::AT_ONCE == 2 {
            engine.run(Chunk::<E, 2> { checks: self, equations });
        } else {
            engine.run(Chunk::<E, 1> { checks: self, equations });
        }
    }

    /// Writes the verdicts on up to two vectors of equations. Two hide each other's latency; one, used for the last few,
    /// costs more than half as much.
    fn check_in_sequence(&mut self, equations: &[&Equation<'_, E::Curve>]) {
        let engine = self.engine;
        let is_fast_alone = |size| E::Vector::SPREAD_FROM.is_some_and(|least| size >= least);
        match equations[0].key {
            Key::Cached(table) if equations.len() <= SINGLES && is_fast_alone(table.size()) => {
                for equation in equations {
                    engine.run_on_eight(Alone { checks: self, equation });
                }
            }
            _ if equations.len() > E::Vector::LANES => {
                engine.run(Group::<E, 2> { checks: self, equations });
            }
            _ => engine.run(Group::<E, 1> { checks: self, equations }),
        }
    }

    /// Writes the verdicts on equations whose sums are in the lanes.
    #[inline(always)]
    fn conclude<const G: usize>(
        &mut self,
        equations: &[&Equation<'_, E::Curve>],
        sum: &Jacobian<E::Vector, G>,
        on_curve: [u8; G],
    ) {
        let lanes = E::Vector::LANES;
        let z = sum.z.tighten();
        let exceptional = z.zero_lanes();
        let matching = self.x_matches(sum, &spread(equations));
        for (i, equation) in equations.iter().enumerate() {
            let is_in = |mask: [u8; G]| mask[i / lanes] >> (i % lanes) & 1 == 1;
            self.verdicts[equation.index] = match (is_in(on_curve), is_in(exceptional)) {
                (false, _) => Verdict::Invalid,
                (true, true) => Verdict::Undecided,
                (true, false) => Verdict::of(is_in(matching)),
            };
        }
        if self.rule == Rule::XWithEvenY {
            for (g, equations) in equations.chunks(lanes).enumerate() {
                let z = z.group(g);
                let z = *z.or_where([exceptional[g]], &z.one());
                let indices = equations.iter().map(|equation| equation.index).collect();
                self.parities.push(Parity { y: sum.y.group(g), z, indices });
            }
        }
    }

    /// The lanes in which x is the target, for ECDSA modulo n. A second x is possible where target + n < p, which holds
    /// for one random r in 2¹²⁷, or for an r chosen on purpose.
    #[inline(always)]
    fn x_matches<const G: usize>(
        &self,
        sum: &Jacobian<E::Vector, G>,
        equations: &[&Equation<'_, E::Curve>; MOST_LANES],
    ) -> [u8; G] {
        let target = |equation: &Equation<'_, E::Curve>| Row::new(equation.target, [0; 4]);
        let [first, _] = numbers_of(self.engine, equations, target);
        let mut matching = x_is(sum, &first);
        let second = |equation: &Equation<'_, E::Curve>| plus_order::<E::Curve>(&equation.target);
        let possible = equations.map(|equation| second(equation).is_some());
        if self.rule == Rule::XModuloOrder && possible.contains(&true) {
            let target = |equation: &Equation<'_, E::Curve>| {
                Row::new(second(equation).unwrap_or_default(), [0; 4])
            };
            let [second, _] = numbers_of(self.engine, equations, target);
            let (second, possible) = (x_is(sum, &second), masks::<E::Vector, G>(&possible));
            for g in 0..G {
                matching[g] |= second[g] & possible[g];
            }
        }
        matching
    }
}

/// Up to `G` vectors of equations whose keys have the same form.
struct Group<'g, 'v, 'e, E: Engine, const G: usize> {
    checks: &'g mut Checks<'v, E>,
    equations: &'g [&'g Equation<'e, E::Curve>],
}

impl<E: Engine, const G: usize> Work for Group<'_, '_, '_, E, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { checks, equations } = self;
        let (engine, spread) = (checks.engine, spread(equations));
        let mut made = [[Row::ZERO; KEY_ROWS]; MOST_LANES];
        let (shared_z, on_curve) = make_windows(engine, &spread, &mut made[..G * E::Vector::LANES]);
        let plan = Plan::of::<E::Curve>(table_size(equations[0].key), Order::Sequence);
        let terms = Terms::of(engine, &spread, &made);
        let ladder = Ladder { plan, terms: &terms, sums: &[], shared_z };
        checks.conclude::<G>(equations, &ladder.run(), on_curve);
    }
}

/// Many equations whose keys have the same form.
struct Chunk<'g, 'v, 'e, E: Engine, const G: usize> {
    checks: &'g mut Checks<'v, E>,
    equations: &'g [&'g Equation<'e, E::Curve>],
}

impl<E: Engine, const G: usize> Work for Chunk<'_, '_, '_, E, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { checks, equations } = self;
        let (engine, lanes) = (checks.engine, G * E::Vector::LANES);
        let mut memory = Memory::<E::Vector, G>::take();
        let Memory { made, sums } = &mut *memory;
        let plan = Plan::of::<E::Curve>(table_size(equations[0].key), Order::Rounds);
        let spreads: Vec<_> = equations.chunks(lanes).map(spread).collect();
        let mut rounds = Rounds::of(engine, plan, spreads.len(), sums);
        let (mut keys, mut groups) = (Vec::new(), Vec::with_capacity(spreads.len()));
        let mut made = room_for_windows(made, equations, 2 * E::Vector::LANES);
        // The chain of squarings to a y is so long that one vector would wait for itself.
        for equations in equations.chunks(2 * E::Vector::LANES) {
            let made = made.next().unwrap_or_default();
            let (z, on_curve) = make_windows::<E, 2>(engine, &spread(equations), made);
            for g in 0..2 {
                keys.push((z.group(g), on_curve[g]));
            }
            let mut made = made.chunks(lanes);
            for _ in equations.chunks(lanes) {
                let group = groups.len();
                let terms = Terms::of(engine, &spreads[group], made.next().unwrap_or_default());
                let next = spreads.get(group + 1).map(|next| Terms::of(engine, next, &[]));
                let rounds = &mut rounds;
                engine.run(Start { rounds, group, terms: &terms, next: next.as_ref() });
                groups.push(terms);
            }
        }
        engine.run(Rest { rounds, groups: &groups });
        for (i, equations) in equations.chunks(lanes).enumerate() {
            let (mut z, mut on_curve) = ([keys[i * G].0; G], [0; G]);
            for g in 0..G {
                (z[g], on_curve[g]) = keys[i * G + g];
            }
            let shared_z = Factor::of_groups(&z);
            let ladder = Ladder { plan, terms: &groups[i], sums: sums.of_group(i), shared_z };
            let mut sum = ladder.run();
            sum.z = sum.z.or_where(sums.exceptional_lanes(i), &sum.z.splat([0; 5]));
            checks.conclude::<G>(equations, &sum, on_curve);
        }
        memory.keep();
    }
}

/// The working memory of a chunk of signatures, a megabyte at most.
struct Memory<V, const G: usize> {
    /// The windows of keys that are not cached.
    made: Vec<Window>,
    sums: Sums<V, G>,
}

thread_local! {
    /// The memory of this thread for every kind of vectors: to allocate it anew for every batch takes longer than rounds
    /// save.
    static MEMORIES: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

impl<V: Vector, const G: usize> Memory<V, G> {
    /// The memory of this thread, or new memory.
    fn take() -> Box<Self> {
        let kept = MEMORIES.with_borrow_mut(|memories| {
            let at = memories.iter().position(|memory| memory.is::<Self>())?;
            memories.swap_remove(at).downcast().ok()
        });
        kept.unwrap_or_else(|| Box::new(Self { made: Vec::new(), sums: Sums::default() }))
    }

    /// Keeps the memory for the next chunk.
    fn keep(self: Box<Self>) {
        MEMORIES.with_borrow_mut(|memories| memories.push(self));
    }
}

/// An equation whose cached key has several windows.
struct Alone<'g, 'v, 'e, E: Engine> {
    checks: &'g mut Checks<'v, E>,
    equation: &'g Equation<'e, E::Curve>,
}

impl<E: Engine> WorkOnEight for Alone<'_, '_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run<const G: usize>(self) {
        let Self { checks, equation } = self;
        if let Key::Cached(table) = equation.key {
            let (engine, windows) = (checks.engine, table.windows());
            let sum = Single { engine, windows, digits: &equation.digits }.sum::<G>();
            checks.conclude::<1>(&[equation], &sum, [E::Vector::ALL]);
        }
    }
}

/// Signatures whose additions share inversions. With more of them an inversion costs less per signature, and more memory is
/// in use.
const CHUNK: usize = 128;

/// The most signatures under keys with large tables that are faster one after the other, in all lanes.
const SINGLES: usize = 2;

/// An equation for every lane that any engine has: the spare ones repeat the last.
fn spread<'e, 'a, C: Curve>(
    equations: &[&'e Equation<'a, C>],
) -> [&'e Equation<'a, C>; MOST_LANES] {
    let mut lanes = [equations[equations.len() - 1]; MOST_LANES];
    lanes[..equations.len()].copy_from_slice(equations);
    lanes
}

/// Loads two numbers of every equation into lanes.
#[inline(always)]
fn numbers_of<E: Engine, const G: usize>(
    engine: E,
    equations: &[&Equation<'_, E::Curve>; MOST_LANES],
    numbers: impl Fn(&Equation<'_, E::Curve>) -> Row,
) -> [Tight<E::Vector, G>; 2] {
    let mut rows = [Row::ZERO; MOST_LANES];
    for (row, equation) in rows.iter_mut().zip(equations) {
        *row = numbers(equation);
    }
    let [first, second] = read_rows(engine, &rows.each_ref());
    [first.enter(), second.enter()]
}

/// Fills the windows with the odd multiples of keys that are not cached. Returns the Z of the rows and the lanes whose key
/// is a point; the content of the others is meaningless.
#[inline(always)]
fn make_windows<E: Engine, const G: usize>(
    engine: E,
    equations: &[&Equation<'_, E::Curve>; MOST_LANES],
    windows: &mut [Window],
) -> (Factor<E::Vector, G>, [u8; G]) {
    let [x, given_y] = numbers_of(engine, equations, |equation| equation.coordinates.row());
    let (y, on_curve) = match equations[0].key {
        Key::Cached(_) => return (*x.one(), [E::Vector::ALL; G]),
        Key::Point { .. } => (given_y, point::on_curve_lanes(&x, &given_y)),
        Key::Compressed(_) | Key::XOnly(_) => {
            let odd = equations.map(|equation| equation.coordinates.is_odd());
            point::y_of(&x, masks::<E::Vector, G>(&odd))
        }
    };
    let multiples = Multiples::of(&x, &y);
    let (one, z) = (*x.one(), multiples.last_z());
    // Where a is not 0, doubling holds for the curve itself only.
    let (scale, shared_z) = if E::Curve::A_IS_MINUS_3 { (z.invert(), one) } else { (one, z) };
    multiples.write(&scale, windows);
    (shared_z, on_curve)
}

/// Room for the windows of equations whose keys have the same form, in parts for `at_once` of them; none if they are cached.
fn room_for_windows<'m, C: Curve>(
    made: &'m mut Vec<Window>,
    equations: &[&Equation<'_, C>],
    at_once: usize,
) -> ChunksExactMut<'m, Window> {
    let is_cached = matches!(equations[0].key, Key::Cached(_));
    let count = if is_cached { 0 } else { equations.len().next_multiple_of(at_once) };
    made.resize(made.len().max(count), [Row::ZERO; KEY_ROWS]);
    made[..count].chunks_exact_mut(at_once)
}

/// The lanes in which x is the target: X = target·Z².
#[inline(always)]
fn x_is<V: Vector, const G: usize>(point: &Jacobian<V, G>, target: &Tight<V, G>) -> [u8; G] {
    let zz = point.z.square().carry();
    target.mul(&zz).minus::<6>(&point.x.loose()).tighten().zero_lanes()
}

/// Rejects the valid signatures whose point has an odd y, with one inversion for all (Montgomery's trick, see
/// [`super::super::modular::Residue::invert_all`]).
struct RejectOdd<'g, 'v, E: Engine>(&'g mut Checks<'v, E>);

impl<E: Engine> Work for RejectOdd<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Checks { verdicts, parities, .. } = self.0;
        if parities.is_empty() {
            return;
        }
        let mut before = Vec::with_capacity(parities.len());
        let mut product = *parities[0].z.one();
        for parity in parities.iter() {
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
}

/// A point per lane whose y must be even for the verdict to stay valid.
struct Parity<V> {
    y: Tight<V, 1>,
    /// Not zero in any lane.
    z: Factor<V, 1>,
    /// The indices of the verdicts; fewer than the lanes at the end of a batch.
    indices: Vec<usize>,
}
