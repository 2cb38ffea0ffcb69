//! Tables of odd multiples: of a key, which callers may cache, and of the generator.
//!
//! A window of a point Q holds Q, 3Q, 5Q, …, one [`Row`] each, so that the digit ±d of a multiplier is
//! row ⌊d/2⌋ with the sign put on y. A table is the windows of 2⁰·Q, 2ˢ·Q, 2²ˢ·Q, …: the more it has, the fewer doublings
//! are left. The generator has a window for every digit.

use std::marker::PhantomData;

use super::coordinates::Coordinates;
use super::digits::{GENERATOR_WINDOW, GENERATOR_WINDOWS, KEY_DIGITS, KEY_WINDOW, digits_a_part};
use super::modular::Residue;
use super::portable::{Affine, Jacobian, to_affine_all};
use super::{Curve, Key};

/// The rows of a window: Q to 31·Q.
pub(super) const KEY_ROWS: usize = 1 << (KEY_WINDOW - 1);

/// Two field elements below 2²⁵⁶ in one cache line: the words of x, then the words of y, as the lanes hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Row(pub(super) [u64; 8]);

impl Row {
    pub(super) const ZERO: Self = Self([0; 8]);

    pub(super) fn new([x0, x1, x2, x3]: [u64; 4], [y0, y1, y2, y3]: [u64; 4]) -> Self {
        Self([x0, x1, x2, x3, y0, y1, y2, y3])
    }

    pub(super) fn of_point<C: Curve>(point: &Affine<C>) -> Self {
        Self::new(point.x.to_lanes(), point.y.to_lanes())
    }

    /// The same point with coordinates below p.
    pub(super) fn reduce<C: Curve>(self) -> Self {
        let reduced = |words| Residue::<C::P>::from_words_reduced(words).words();
        let [x0, x1, x2, x3, y0, y1, y2, y3] = self.0;
        Self::new(reduced([x0, x1, x2, x3]), reduced([y0, y1, y2, y3]))
    }

    /// The point of a row whose coordinates are below p.
    pub(super) fn to_affine<C: Curve>(self) -> Affine<C> {
        let [x0, x1, x2, x3, y0, y1, y2, y3] = self.0;
        Affine {
            x: Residue::from_lanes([x0, x1, x2, x3]),
            y: Residue::from_lanes([y0, y1, y2, y3]),
        }
    }
}

/// A checked public key with the multiples that a verification needs.
///
/// Worth caching for a key that will be used again: a verification with it skips computing y and the
/// table, a fifth of the work; and with a [larger one](TableSize) most or all of the doublings.
///
/// ```
/// use wireproof::kernels::secp256k1::{Key, KeyTable};
///
/// let generator_x = [
///     0x79, 0xbe, 0x66, 0x7e, 0xf9, 0xdc, 0xbb, 0xac, 0x55, 0xa0, 0x62, 0x95, 0xce, 0x87, 0x0b,
///     0x07, 0x02, 0x9b, 0xfc, 0xdb, 0x2d, 0xce, 0x28, 0xd9, 0x59, 0xf2, 0x81, 0x5b, 0x16, 0xf8,
///     0x17, 0x98,
/// ];
/// assert!(KeyTable::new(Key::XOnly(&generator_x)).is_some());
/// assert!(KeyTable::new(Key::XOnly(&[0xff; 32])).is_none());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct KeyTable<C> {
    /// The multiples in affine coordinates below p. As many as a [`TableSize`] has.
    windows: Box<[Window]>,
    curve: PhantomData<C>,
}

/// The odd multiples of a point.
pub(super) type Window = [Row; KEY_ROWS];

/// How much of a verification a table has computed beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableSize {
    /// One window, 1 KiB: 125 doublings are left, for P-256 255.
    Small,
    /// Four windows, 4 KiB: 30 doublings are left, for P-256 60.
    Medium,
    /// Twenty-six windows, 26 KiB: no doubling is left, for P-256 5.
    Large,
}

impl TableSize {
    /// The sizes in ascending order.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The bytes of a table.
    pub const fn bytes(self) -> usize {
        self.windows() * size_of::<Window>()
    }

    pub(super) const fn windows(self) -> usize {
        match self {
            Self::Small => 1,
            Self::Medium => 4,
            Self::Large => KEY_DIGITS / 2,
        }
    }
}

/// The digits that windows of a table share: window q serves the digits from q times this number on.
pub(super) const fn digits_a_window<C: Curve>(windows: usize) -> usize {
    digits_a_part::<C>().div_ceil(windows)
}

impl<C: Curve> KeyTable<C> {
    /// Checks a key and makes its table; `None` if the bytes are not a key. A cached key is copied.
    pub fn new(key: Key<'_, C>) -> Option<Self> {
        let parsed = key.parse().and_then(Coordinates::to_point);
        key.cached().or_else(|| parsed.map(Self::of_point))
    }

    /// [`KeyTable::new`] of every key, in SIMD lanes where this machine has them: 1 µs a key instead of 17.
    pub fn new_many(keys: &[Key<'_, C>]) -> Vec<Option<Self>> {
        if let Some(tables) = C::tables_of(keys) {
            return tables;
        }
        keys.iter().map(|key| Self::new(*key)).collect()
    }

    /// The same key with a table of another size. A larger one takes as long to make as some fifty verifications in lanes.
    pub fn resized(&self, size: TableSize) -> Self {
        let shift = KEY_WINDOW * digits_a_window::<C>(size.windows());
        let mut points = vec![Jacobian::from(self.point())];
        while points.len() < size.windows() {
            points.push(points[points.len() - 1].double_times(shift));
        }
        let others = windows_of(&to_affine_all(&points[1..]));
        let windows = self.windows[..1].iter().copied().chain(others).collect();
        Self { windows, curve: PhantomData }
    }

    /// How large the table is.
    pub fn size(&self) -> TableSize {
        let is_of = |size: &TableSize| size.windows() == self.windows.len();
        TableSize::ALL.into_iter().find(is_of).expect("made of one of the sizes")
    }

    pub(super) fn of_window(window: Window) -> Self {
        Self { windows: Box::new([window]), curve: PhantomData }
    }

    pub(super) fn of_point(point: Affine<C>) -> Self {
        Self::of_window(window_of(&point))
    }

    pub(super) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// A copy with another row in a window.
    #[cfg(test)]
    pub(super) fn with_row(&self, window: usize, index: usize, row: Row) -> Self {
        let mut copy = self.clone();
        copy.windows[window][index] = row;
        copy
    }

    /// The key.
    pub(super) fn point(&self) -> Affine<C> {
        self.windows[0][0].to_affine()
    }

    /// Whether the key's own y is odd.
    pub(super) fn is_odd(&self) -> bool {
        self.point().y.is_odd()
    }
}

/// The windows of points, in lanes where this machine has them.
fn windows_of<C: Curve>(points: &[Affine<C>]) -> Vec<Window> {
    if let Some(windows) = C::windows_of(points) {
        return windows;
    }
    points.iter().map(window_of).collect()
}

fn window_of<C: Curve>(point: &Affine<C>) -> Window {
    let multiples = point.odd_multiples(KEY_ROWS);
    std::array::from_fn(|i| Row::of_point(&multiples[i]))
}

impl<C: Curve> std::fmt::Debug for KeyTable<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyTable").field("key", &self.point()).field("size", &self.size()).finish()
    }
}

/// Rows of a table of the generator.
pub(super) const GENERATOR_ROWS: usize = 1 << (GENERATOR_WINDOW - 1);

/// The odd multiples of the generator times a power of two.
pub(super) type GeneratorTable = Box<[Row; GENERATOR_ROWS]>;

/// The tables of a generator, one per digit of u1.
pub(super) type GeneratorTables = [GeneratorTable; GENERATOR_WINDOWS];

/// One table of 32 KiB per digit of u1. The first call makes them, which takes some
/// four milliseconds.
pub(super) fn generator_tables<C: Curve>() -> &'static GeneratorTables {
    C::generator_tables().get_or_init(|| {
        let mut point = C::GENERATOR;
        std::array::from_fn(|_| {
            let multiples = point.odd_multiples(GENERATOR_ROWS);
            point = Jacobian::from(point).double_times(GENERATOR_WINDOW).to_affine();
            let rows: Vec<Row> = multiples.iter().map(Row::of_point).collect();
            rows.try_into().expect("`odd_multiples` returns as many rows as requested")
        })
    })
}
