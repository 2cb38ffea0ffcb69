//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time in microseconds since 1970, the unit of revisions.
pub fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
