//! Forks: threads and locks of a process are not there in its child, and objects that need them refuse to work
//! there.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The process that something was made in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner(u32);

impl Owner {
    /// This process.
    pub(crate) fn current() -> Self {
        Self(std::process::id())
    }

    /// Whether this is still that process, and not a child of it.
    pub(crate) fn is_here(self) -> bool {
        self.0 == std::process::id()
    }

    /// `RuntimeError` in a child of the process.
    pub(crate) fn check(self, what: &str) -> PyResult<()> {
        if self.is_here() {
            Ok(())
        } else {
            Err(PyRuntimeError::new_err(format!(
                "{what} belongs to process {}, which was forked: make another one in this process",
                self.0
            )))
        }
    }
}
