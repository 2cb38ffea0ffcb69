//! A pause of Python's cyclic collector: it runs after every 700 new containers, and finds nothing in a tree that is
//! being made.

use pyo3::prelude::*;

/// The collector is paused until this is dropped.
pub(crate) struct CollectionPause<'py> {
    collector: Option<Bound<'py, PyModule>>,
}

impl<'py> CollectionPause<'py> {
    /// Pauses the collector for an input that is long enough to gain from it.
    #[inline]
    pub(crate) fn for_input(py: Python<'py>, len: usize) -> Self {
        let collector = if len < LEAST_BYTES { None } else { running_collector(py) };
        Self { collector }
    }
}

/// The collector, stopped; `None` if it does not run, or cannot be stopped for this thread alone.
#[cold]
fn running_collector(py: Python<'_>) -> Option<Bound<'_, PyModule>> {
    if cfg!(Py_GIL_DISABLED) {
        return None;
    }
    let collector = py.import("gc").ok()?;
    let is_running = collector.call_method0("isenabled").ok()?.is_truthy().ok()?;
    let is_stopped = is_running && collector.call_method0("disable").is_ok();
    is_stopped.then_some(collector)
}

impl Drop for CollectionPause<'_> {
    fn drop(&mut self) {
        if let Some(collector) = &self.collector {
            // It cannot fail; and if it did, the collector would stay off, which loses nothing.
            let _ = collector.call_method0("enable");
        }
    }
}

/// Below this length a pause costs more than it saves.
const LEAST_BYTES: usize = 16 << 10;
