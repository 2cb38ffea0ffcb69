//! Tables of keys in lanes.

use super::super::portable::Affine;
use super::super::table::{KEY_ROWS, KeyTable, Row, Window};
use super::super::{Coordinates, Key};
use super::MOST_LANES;
use super::field::{Factor, Tight};
use super::point::{self, CoZ};
use super::rows::{read_rows, write_rows};
use super::vector::{Engine, Vector, Work};

/// The tables of the keys; `None` where the bytes are not a key.
pub(super) fn tables_of<E: Engine>(
    engine: E,
    keys: &[Key<'_, E::Curve>],
) -> Vec<Option<KeyTable<E::Curve>>> {
    let mut tables: Vec<Option<KeyTable<E::Curve>>> = keys.iter().map(|key| key.cached()).collect();
    let parsed: Vec<(usize, Coordinates<E::Curve>)> =
        keys.iter().enumerate().filter_map(|(i, key)| Some((i, key.parse()?))).collect();
    for parsed in parsed.chunks(2 * E::Vector::LANES) {
        engine.run(Tables { engine, parsed, tables: &mut tables });
    }
    tables
}

/// The tables of up to two vectors of keys, with their indices.
struct Tables<'a, E: Engine> {
    engine: E,
    parsed: &'a [(usize, Coordinates<E::Curve>)],
    tables: &'a mut [Option<KeyTable<E::Curve>>],
}

impl<E: Engine> Work for Tables<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { engine, parsed, tables } = self;
        let mut inputs = [Row::ZERO; MOST_LANES];
        let mut odd = [false; MOST_LANES];
        for (i, (_, coordinates)) in parsed.iter().enumerate() {
            inputs[i] = coordinates.row();
            odd[i] = coordinates.is_odd();
        }
        let lanes = E::Vector::LANES;
        let [x, _] = read_rows::<E, 2>(engine, &inputs.each_ref());
        let x = x.enter();
        let (y, on_curve) = point::y_of(&x, masks::<E::Vector, 2>(&odd));
        let windows = affine_windows(&x, &y);
        for (i, (index, coordinates)) in parsed.iter().enumerate() {
            let is_point = on_curve[i / lanes] >> (i % lanes) & 1 == 1;
            let table =
                is_point.then(|| KeyTable::of_window(windows[i].map(Row::reduce::<E::Curve>)));
            tables[*index] = table.filter(|table| coordinates.allow(table.point()));
        }
    }
}

/// The windows of the points.
pub(super) fn windows_of<E: Engine>(engine: E, points: &[Affine<E::Curve>]) -> Vec<Window> {
    let mut windows = Vec::with_capacity(points.len());
    for points in points.chunks(2 * E::Vector::LANES) {
        let made = engine.run(Windows { engine, points });
        windows
            .extend(made[..points.len()].iter().map(|window| window.map(Row::reduce::<E::Curve>)));
    }
    windows
}

/// The windows of up to two vectors of points.
struct Windows<'a, E: Engine> {
    engine: E,
    points: &'a [Affine<E::Curve>],
}

impl<E: Engine> Work for Windows<'_, E> {
    type Output = [Window; MOST_LANES];

    #[inline(always)]
    fn run(self) -> [Window; MOST_LANES] {
        let mut inputs = [Row::of_point(&self.points[0]); MOST_LANES];
        for (row, point) in inputs.iter_mut().zip(self.points) {
            *row = Row::of_point(point);
        }
        let [x, y] = read_rows::<E, 2>(self.engine, &inputs.each_ref());
        affine_windows(&x, &y)
    }
}

/// The odd multiples of points, with coordinates below 2²⁵⁶.
#[inline(always)]
fn affine_windows<V: Vector>(x: &Tight<V, 2>, y: &Tight<V, 2>) -> [Window; MOST_LANES] {
    let multiples = Multiples::of(x, y);
    let mut windows = [[Row::ZERO; KEY_ROWS]; MOST_LANES];
    multiples.write(&multiples.last_z().invert(), &mut windows[..2 * V::LANES]);
    windows
}

/// The odd multiples of the key in every lane, before they are written as rows.
pub(super) struct Multiples<V, const G: usize> {
    /// X and Y of Q, 3Q, 5Q, …, all with a Z of their own.
    points: [[Tight<V, G>; 2]; KEY_ROWS],
    /// `ratios[i]` is Z of `points[i]`, divided by the one before (for the first: Z itself).
    ratios: [Factor<V, G>; KEY_ROWS],
}

impl<V: Vector, const G: usize> Multiples<V, G> {
    /// The odd multiples of the points (x, y).
    #[inline(always)]
    pub(super) fn of(x: &Tight<V, G>, y: &Tight<V, G>) -> Self {
        let mut chain = CoZ::start(x, y);
        let mut points = [chain.current; KEY_ROWS];
        let mut ratios = [y.loose().twice().carry(); KEY_ROWS];
        for i in 1..KEY_ROWS {
            ratios[i] = chain.advance();
            points[i] = chain.current;
        }
        Self { points, ratios }
    }

    /// The Z of the last multiple.
    #[inline(always)]
    pub(super) fn last_z(&self) -> Factor<V, G> {
        let mut product = self.ratios[0];
        for ratio in &self.ratios[1..] {
            product = product.mul(ratio).carry();
        }
        product
    }

    /// Writes the multiples with the Z that is `scale` times the last one's, which is then the Z of
    /// all rows (for `scale` one), or with Z = 1 (for `scale` 1/Z).
    #[inline(always)]
    pub(super) fn write(&self, scale: &Factor<V, G>, tables: &mut [[Row; KEY_ROWS]]) {
        let mut to_shared = *scale;
        for i in (0..KEY_ROWS).rev() {
            let [x, y] = &self.points[i];
            let squared = to_shared.square().carry();
            let x = x.mul(&squared).tighten();
            let y = y.mul(&squared.mul(&to_shared).carry()).tighten();
            let mut rows = [Row::ZERO; MOST_LANES];
            write_rows(&x, &y, &mut rows);
            for (table, row) in tables.iter_mut().zip(rows) {
                table[i] = row;
            }
            if i > 0 {
                to_shared = to_shared.mul(&self.ratios[i]).carry();
            }
        }
    }
}

/// The masks of the vectors in which these lanes are set.
pub(super) fn masks<V: Vector, const G: usize>(set: &[bool; MOST_LANES]) -> [u8; G] {
    let mut masks = [0; G];
    for (lane, is_set) in set[..G * V::LANES].iter().enumerate() {
        masks[lane / V::LANES] |= u8::from(*is_set) << (lane % V::LANES);
    }
    masks
}
