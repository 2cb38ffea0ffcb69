//! The revisions that are accepted at this time.

use verify::sync::{FutureWindow, Policy};

/// The revisions that `policy` allows at this time.
pub(crate) fn future_window(policy: &Policy) -> FutureWindow {
    FutureWindow::new(base::now_micros(), policy)
}
