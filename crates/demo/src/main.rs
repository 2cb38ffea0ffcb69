//! A demonstration on a simulated network on this machine: verifies a repository, follows commits into a SQLite file, and
//! measures the first table of the benchmark. The README builds it first, so it has few dependencies.

#![forbid(unsafe_code)]

mod bench_table;
mod follow;
mod network;
mod record_writer;
mod records;
mod repository;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use allocator::Allocator;

use network::Network;

/// The allocator of the command and of the compared runners in Rust.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Any failure: it ends the demonstration.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        None => demonstrate(&mut io::stdout()),
        Some(bench_table::RUNNER) => bench_table::serve(),
        Some(_) => writeln!(io::stdout(), "{HELP}").map_err(Failure::from),
    };
    match outcome {
        Err(error) if !is_closed_output(&*error) => {
            // If standard error is closed, the exit code remains.
            let _ = writeln!(io::stderr(), "wireproof-demo: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Whether the reader of standard output has ended.
fn is_closed_output(error: &(dyn Error + 'static)) -> bool {
    let error: Option<&io::Error> = error.downcast_ref();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn demonstrate(out: &mut impl Write) -> Result<(), Failure> {
    let network = Network::start()?;
    writeln!(out, "A simulated network on this machine: {}.", network.summary())?;
    step("1. Verify a repository", out, |out| repository::verify(&network, out))?;
    step("2. Follow commits into a SQLite file", out, |out| follow::follow(&network, out))?;
    step("3. The first table of the benchmark", out, |out| bench_table::measure(out))?;
    Ok(writeln!(out, "\n{NEXT}")?)
}

/// Runs a step under its title, and prints how long it took.
fn step<W: Write>(
    title: &str,
    out: &mut W,
    run: impl FnOnce(&mut W) -> Result<(), Failure>,
) -> Result<(), Failure> {
    writeln!(out, "\n{title}")?;
    let since = Instant::now();
    run(out)?;
    Ok(writeln!(out, "   took {:.2} s", since.elapsed().as_secs_f64())?)
}

const HELP: &str = "\
Verify a repository, follow commits into a SQLite file, and measure the first table of the benchmark, on a simulated network
on this machine. There are no options: run it without arguments.";

const NEXT: &str = "\
Install the command, and do the same with the live network:
  cargo install --locked --path crates/cli
  wireproof verify atproto.com
  wireproof follow --collections app.bsky.feed.post --to sqlite:posts.db
The whole benchmark: cargo run --release -p wireproof-bench-cli -- bench";
