//! The command `wireproof`, run by a script of the package.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the command with the arguments of the process, the program first, and returns the exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let program = arguments.first().map(PathBuf::from).unwrap_or_default();
    py.detach(|| wireproof_cli::run(program, arguments))
}
