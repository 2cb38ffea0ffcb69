//! Tables of odd multiples: of a key, which callers may cache, and of the generator.
//!
//! A table of a point Q holds Q, 3Q, 5Q, …, one [`Row`] each, so that the digit ±d of a window is
//! row ⌊d/2⌋ with the sign put on y.

use std::sync::OnceLock;

use super::Key;
#[cfg(target_arch = "x86_64")]
use super::lanes;
use super::modular::Field;
use super::portable::{Affine, G};
use super::scalar::{GENERATOR_WINDOW, KEY_WINDOW};

/// The rows of a key's table: Q to 31·Q.
pub(super) const KEY_ROWS: usize = 1 << (KEY_WINDOW - 1);

/// Two field elements below 2²⁵⁶ in one cache line: the words of x, then those of y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Row(pub(super) [u64; 8]);

impl Row {
    pub(super) const ZERO: Self = Self([0; 8]);

    pub(super) fn new([x0, x1, x2, x3]: [u64; 4], [y0, y1, y2, y3]: [u64; 4]) -> Self {
        Self([x0, x1, x2, x3, y0, y1, y2, y3])
    }

    pub(super) fn of_point(point: &Affine) -> Self {
        Self::new(point.x.words(), point.y.words())
    }

    /// The same point with coordinates below p.
    #[cfg(target_arch = "x86_64")]
    fn reduce(self) -> Self {
        let [x0, x1, x2, x3, y0, y1, y2, y3] = self.0;
        let [x, y] = [[x0, x1, x2, x3], [y0, y1, y2, y3]].map(Field::from_words_reduced);
        Self::of_point(&Affine { x, y })
    }

    /// The point of a row whose coordinates are below p.
    pub(super) fn to_affine(self) -> Affine {
        let [x0, x1, x2, x3, y0, y1, y2, y3] = self.0;
        Affine { x: Field::new([x0, x1, x2, x3]), y: Field::new([y0, y1, y2, y3]) }
    }
}

/// A checked public key with the odd multiples that a verification needs: 1 KiB.
///
/// Worth caching for a key that will be used again: a verification with it skips computing y and the
/// table, a fifth of the work.
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
pub struct KeyTable {
    /// The multiples in affine coordinates below p.
    rows: [Row; KEY_ROWS],
}

impl KeyTable {
    /// Checks a key and makes its table; `None` if the bytes are not a key. A cached key is copied.
    pub fn new(key: Key<'_>) -> Option<Self> {
        let parsed = key.parse().and_then(|(x, is_odd)| Affine::on_curve(x, is_odd));
        key.cached().or_else(|| parsed.map(Self::of_point))
    }

    /// [`KeyTable::new`] of each key, in SIMD lanes where this machine has them: 1 µs a key instead of 17.
    pub fn new_many(keys: &[Key<'_>]) -> Vec<Option<Self>> {
        #[cfg(target_arch = "x86_64")]
        if lanes::is_available() {
            return lanes::tables_of(keys);
        }
        keys.iter().map(|key| Self::new(*key)).collect()
    }

    /// Takes the odd multiples, with coordinates below 2²⁵⁶.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn of_rows(rows: &[Row; KEY_ROWS]) -> Self {
        Self { rows: rows.map(Row::reduce) }
    }

    pub(super) fn of_point(point: Affine) -> Self {
        let mut rows = [Row::ZERO; KEY_ROWS];
        for (row, multiple) in rows.iter_mut().zip(point.odd_multiples(KEY_ROWS)) {
            *row = Row::of_point(&multiple);
        }
        Self { rows }
    }

    pub(super) fn rows(&self) -> &[Row; KEY_ROWS] {
        &self.rows
    }

    /// Whether the key's own y is odd.
    pub(super) fn is_odd(&self) -> bool {
        self.rows[0].to_affine().y.is_odd()
    }
}

impl std::fmt::Debug for KeyTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KeyTable").field(&self.rows[0].to_affine()).finish()
    }
}

/// Rows of each of the generator's two tables.
pub(super) const GENERATOR_ROWS: usize = 1 << (GENERATOR_WINDOW - 1);

/// The odd multiples of the generator, or of 2¹²⁸ times it.
pub(super) type GeneratorTable = Box<[Row; GENERATOR_ROWS]>;

/// The tables of G and of 2¹²⁸·G, 256 KiB each. The first call makes them, which takes some
/// milliseconds.
pub(super) fn generator_tables() -> &'static [GeneratorTable; 2] {
    static TABLES: OnceLock<[GeneratorTable; 2]> = OnceLock::new();
    TABLES.get_or_init(|| {
        [G, G.double_times(128)].map(|point| {
            let rows: Vec<Row> =
                point.odd_multiples(GENERATOR_ROWS).iter().map(Row::of_point).collect();
            rows.try_into().expect("`odd_multiples` returns as many rows as requested")
        })
    })
}
