//! The command `wireproof`, run by a script of the package: the module has all of its programs.

use std::ffi::OsString;
use std::path::PathBuf;

use program::programs::{self, ARCHIVE, BENCH};
use pyo3::prelude::*;

/// Runs the command with the arguments of the process, the program first, and returns the exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let program = arguments.first().map(PathBuf::from).unwrap_or_default();
    let again = again(py).unwrap_or_default();
    py.detach(|| match programs::of(&arguments) {
        of if *of == ARCHIVE => archive_cli::run(arguments),
        of if *of == BENCH => bench_cli::run(program, arguments),
        _ => wireproof_cli::run(again, arguments),
    })
}

/// The beginning of the arguments of a process that runs this command: the interpreter and the module.
fn again(py: Python<'_>) -> PyResult<Vec<OsString>> {
    let interpreter: OsString = py.import("sys")?.getattr("executable")?.extract()?;
    Ok(vec![interpreter, "-m".into(), "wireproof._command".into()])
}
