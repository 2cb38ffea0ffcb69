//! The odd multiples of G and of 2¹²⁸·G, made at first use and kept.

use std::sync::OnceLock;

use super::portable::G;
use super::scalar::GENERATOR_WINDOW;
use super::table::Row;

/// Rows of each of the two tables.
pub(super) const GENERATOR_ROWS: usize = 1 << (GENERATOR_WINDOW - 1);

/// The odd multiples of one point.
pub(super) type Table = Box<[Row; GENERATOR_ROWS]>;

/// The tables of G and of 2¹²⁸·G, 256 KiB each. The first call makes them, which takes some
/// milliseconds.
pub(super) fn tables() -> &'static [Table; 2] {
    static TABLES: OnceLock<[Table; 2]> = OnceLock::new();
    TABLES.get_or_init(|| {
        [G, G.double_times(128)].map(|point| {
            let rows: Vec<Row> =
                point.odd_multiples(GENERATOR_ROWS).iter().map(Row::of_point).collect();
            rows.try_into().expect("as many rows as were asked for")
        })
    })
}
