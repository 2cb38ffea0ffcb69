//! The program `wireproof-archive`: `wireproof archive` and `wireproof backfill`.
//!
//! `main.rs` and the Python package run it.

#![forbid(unsafe_code)]

mod archive;
mod args;
mod backfill;
mod blobs;
mod erasure_key;
mod follow;
mod labels;
mod serve;

use std::ffi::OsString;

use program::failure::Failure;
use program::programs::ARCHIVE;
use program::{
    config, failure, files, findings, interrupt, key_files, log, network, output, progress, stream,
};

use args::{Args, Command};

/// Runs the program with the arguments of a process, and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = archive::name_jetstream_import(arguments.into_iter().collect());
    match config::parse(&ARCHIVE, &arguments).and_then(execute) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

fn execute(args: Args) -> Result<(), Failure> {
    let output = args.global.apply()?;
    match args.command {
        Command::Archive(command) => archive::run(command, output),
        Command::Backfill(args) => backfill::run(&args, output),
        Command::Blobs(command) => blobs::run(&command, output),
        Command::Serve(args) => serve::run(*args, output),
    }
}
