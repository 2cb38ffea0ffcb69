//! The `wireproof` command: arguments, progress and output. The libraries do the work.
//!
//! The program in `main.rs` and the Python package run it.

#![forbid(unsafe_code)]

mod admin;
mod archive;
mod args;
mod backfill;
mod batch;
mod bench;
mod capture;
mod config;
mod connection;
mod corpus;
mod delivery;
mod doctor;
mod download;
mod failure;
mod files;
mod findings;
mod follow;
mod frames;
mod in_order;
mod inputs;
mod inspect;
mod interrupt;
mod json;
mod key;
mod list_floor;
mod log;
mod manual;
mod network;
mod nostr;
mod output;
mod plc;
mod progress;
mod repo;
mod report;
mod resolve;
mod sig;
mod sim;
mod stage;
mod standard_streams;
mod stream;
mod verify;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::CommandFactory;
use kernels::cpu;

use args::{Args, Command};
use failure::Failure;
use output::Output;

/// Runs the command with the arguments of a process, and returns its exit code.
///
/// `program` is a file that runs this command again when it is started: `bench` measures it as a process of its own, and `nostr` reads
/// databases in one.
pub fn run(program: PathBuf, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let again = vec![program.clone().into_os_string()];
    run_within(program, again, arguments)
}

/// [`run`], where a process of this command is started by a program with arguments, `again`, to read databases.
pub fn run_within(
    program: PathBuf,
    again: Vec<OsString>,
    arguments: impl IntoIterator<Item = OsString>,
) -> u8 {
    nostr::set_command(again);
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match config::parse(&arguments).and_then(|args| execute(args, program)) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

fn execute(args: Args, program: PathBuf) -> Result<(), Failure> {
    let output = Output::new(args.color);
    args.log.apply();
    let backend = args.backend;
    if let Some(level) = backend {
        cpu::limit_to(level).map_err(|error| Failure::Usage(format!("--backend: {error}")))?;
    }
    match args.command {
        Command::Bench(args) => bench::run(&args, bench::own_runner(program, backend), output),
        Command::Report(args) => report::run(&args, output),
        Command::Corpus(command) => corpus::run(&command, output),
        Command::Inspect(args) => inspect::run(&args, output),
        Command::Key(args) => key::run(&args, output),
        Command::Sig(command) => sig::run(&command, output),
        Command::Resolve(args) => resolve::run(&args, output),
        Command::Verify(args) => verify::run(&args, output),
        Command::Repo(command) => repo::run(&command, output),
        Command::Frames(command) => frames::run(&command, output),
        Command::Plc(command) => plc::run(&command, output),
        Command::Nostr(command) => nostr::run(&command, output),
        Command::Sim(command) => sim::run(&command, output),
        Command::Follow(args) => follow::run(&args),
        Command::Archive(command) => archive::run(command, output),
        Command::Backfill(args) => backfill::run(&args, output),
        Command::Delivery(command) => delivery::run(&command, output),
        Command::Accounts(command) => admin::accounts(&command, output),
        Command::Collections(command) => admin::collections(&command, output),
        Command::Status(args) => admin::status(&args, output),
        Command::Pause(args) => admin::pause(&args, output),
        Command::Resume(args) => admin::resume(&args, output),
        Command::Capture(args) => capture::run(&args, output),
        Command::Config(command) => {
            config::run(&command, args.config.as_deref(), Args::command(), output)
        }
        Command::Doctor(args) => doctor::run(&args, output),
        Command::Completions { shell } => manual::print_completions(shell, output),
        Command::Man { folder } => manual::write_pages(&folder),
        #[cfg(feature = "nostr-lmdb")]
        Command::ReadDatabase { folder } => {
            Ok(nostr_lmdb::serve(&folder, std::io::stdout().lock())?)
        }
        Command::Runner => {
            Ok(::bench::own::serve(std::io::stdin().lock(), std::io::stdout().lock())?)
        }
    }
}
