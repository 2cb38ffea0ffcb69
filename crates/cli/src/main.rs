//! The `wireproof` command: arguments, progress and printing. What it prints is worked out by the
//! libraries.

#![forbid(unsafe_code)]

mod account;
mod args;
mod bench;
mod capture;
mod completions;
mod config;
mod corpus;
mod failure;
mod fetched;
mod flagged;
mod follow;
mod frames;
mod hex;
mod inspect;
mod interrupt;
mod key;
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
mod table;
mod verify;

use std::process::ExitCode;

use args::config::ConfigCommand;
use args::{Args, Command, CorpusCommand, SigCommand};
use failure::Failure;
use output::Output;

/// The runners in Rust that we are compared with have it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match config::parse().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(args: Args) -> Result<(), Failure> {
    let output = Output::new(args.color);
    match args.command {
        Command::Bench(args) => bench::run(&args, output),
        Command::Report(args) => report::run(&args, output),
        Command::Corpus(CorpusCommand::Generate(args)) => corpus::generate(&args, output),
        Command::Corpus(CorpusCommand::Hostile(args)) => corpus::hostile(&args, output),
        Command::Corpus(CorpusCommand::Nostr(args)) => corpus::nostr(&args, output),
        Command::Inspect(args) => inspect::run(&args, output),
        Command::Key(args) => key::run(&args, output),
        Command::Sig(SigCommand::Verify(args)) => sig::verify(&args, output),
        Command::Resolve(args) => resolve::run(&args, output),
        Command::Verify(args) => verify::run(&args, output),
        Command::Repo(command) => repo::run(&command, output),
        Command::Frames(command) => frames::run(&command, output),
        Command::Plc(command) => plc::run(&command, output),
        Command::Nostr(command) => nostr::run(&command, output),
        Command::Sim(command) => sim::run(&command, output),
        Command::Follow(args) => follow::run(&args),
        Command::Capture(args) => capture::run(&args, output),
        Command::Config(ConfigCommand::Show(args)) => config::show(&args, output),
        Command::Runner => {
            Ok(::bench::own::serve(std::io::stdin().lock(), std::io::stdout().lock())?)
        }
        Command::Completions { shell } => completions::print(shell, output),
    }
}
