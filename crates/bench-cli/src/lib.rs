//! The program `wireproof-bench`: `wireproof bench`, `report`, `corpus` and `sim`.
//!
//! `main.rs` and the Python package run it.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod corpus;
mod failures;
mod report;
mod sim;

use std::ffi::OsString;
use std::path::PathBuf;

use program::failure::Failure;
use program::programs::BENCH;
use program::{
    account, config, corpus_file, download, failure, files, interrupt, names, network, output,
    progress, stage,
};

use args::{Args, Command};

/// Runs the program with the arguments of a process, and returns its exit code.
///
/// `program` is a file that runs this program again when it is started: the benchmark measures it as a process of its own.
pub fn run(program: PathBuf, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match config::parse(&BENCH, &arguments).and_then(|args| execute(args, program)) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

fn execute(args: Args, program: PathBuf) -> Result<(), Failure> {
    let output = args.global.apply()?;
    match args.command {
        Command::Bench(of) => {
            bench::run(&of, bench::own_runner(program, args.global.backend), output)
        }
        Command::Report(args) => report::run(&args, output),
        Command::Corpus(command) => corpus::run(&command, output),
        Command::Sim(command) => sim::run(&command, output),
        Command::Runner => {
            Ok(::bench::own::serve(std::io::stdin().lock(), std::io::stdout().lock())?)
        }
    }
}
