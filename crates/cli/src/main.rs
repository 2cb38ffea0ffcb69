//! The program `wireproof`.

use std::process::ExitCode;

use allocator::Allocator;

/// The allocator of the compared runners in Rust too.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    // An empty path: all commands but `bench` work without it.
    let program = std::env::current_exe().unwrap_or_default();
    ExitCode::from(wireproof_cli::run(program, std::env::args_os()))
}
