//! The wall clock in microseconds since 1970, the unit of revisions.

use std::time::{SystemTime, UNIX_EPOCH};

use verify::sync::{FutureWindow, Policy};

/// The time in microseconds since 1970.
pub(crate) fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// The revisions that `policy` allows at this time.
pub(crate) fn future_window(policy: &Policy) -> FutureWindow {
    FutureWindow::new(now_micros(), policy)
}
