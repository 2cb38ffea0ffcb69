//! The command `wireproof`, run by a script of the package.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the command with the arguments of the process, the program first, and returns the exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let program = arguments.first().map(PathBuf::from).unwrap_or_default();
    let again = again(py).unwrap_or_default();
    py.detach(|| wireproof_cli::run_within(program, again, arguments))
}

/// The beginning of the arguments of a process that runs this command: the interpreter and the module.
fn again(py: Python<'_>) -> PyResult<Vec<OsString>> {
    let interpreter: OsString = py.import("sys")?.getattr("executable")?.extract()?;
    Ok(vec![interpreter, "-m".into(), "wireproof._command".into()])
}
