//! Instants: microseconds since 1970 as timestamp identifiers and as datetimes.

use atproto::syntax::{DatetimeBuf, Tid};

/// The instant at which every simulated stream starts: 2026-07-01T00:00:00Z, in microseconds since 1970.
pub const START_MICROS: u64 = 1_782_864_000_000_000;

/// The same instant in seconds since 1970.
pub(crate) const START_SECOND: u64 = START_MICROS / 1_000_000;

/// A day in microseconds.
pub(crate) const DAY_MICROS: u64 = 86_400_000_000;

/// The identifier of the same clock `micros` microseconds later.
pub fn later(tid: Tid, micros: u64) -> Tid {
    Tid::new(tid.micros() + micros, tid.clock_id())
}

/// The datetime of an instant, in UTC with milliseconds: `2026-07-01T00:00:00.000Z`.
///
/// # Panics
/// If it is after the year 9999.
pub fn datetime(micros: u64) -> String {
    let datetime = DatetimeBuf::from_unix_micros(micros as i64).expect("a year of four digits");
    datetime.to_string()
}
