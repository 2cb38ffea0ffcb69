//! The program `wireproof-bench`.

use std::process::ExitCode;

use allocator::Allocator;

/// The allocator of all programs, and of the runners in Rust that the benchmark compares.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    // Without it, a file that is cut while it is read ends the process by a signal.
    let _ = mapping::exit_on_cut_files(LOCAL_FAILURE);
    // An empty path: everything but `bench` works without it.
    let program = std::env::current_exe().unwrap_or_default();
    ExitCode::from(wireproof_bench_cli::run(program, std::env::args_os()))
}

/// The exit code after a failure of a local file.
const LOCAL_FAILURE: i32 = 4;
