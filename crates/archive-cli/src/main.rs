//! The program `wireproof-archive`.

use std::process::ExitCode;

use allocator::Allocator;

/// The allocator of all programs, and of the runners in Rust that the benchmark compares.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    // Without it, a file that is cut while it is read ends the process by a signal.
    let _ = mapping::exit_on_cut_files(LOCAL_FAILURE);
    ExitCode::from(wireproof_archive_cli::run(std::env::args_os()))
}

/// The exit code after a failure of a local file.
const LOCAL_FAILURE: i32 = 4;
