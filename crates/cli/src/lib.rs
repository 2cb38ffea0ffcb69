//! The `wireproof` command: arguments, progress and output. The libraries do the work.
//!
//! The program in `main.rs` and the Python package run it.

#![forbid(unsafe_code)]

mod admin;
mod args;
mod capture;
mod collections;
mod delivery;
mod doctor;
mod frames;
mod get;
mod inspect;
mod key;
mod labels;
mod nostr;
mod page;
mod plc;
mod repo;
mod resolve;
mod sig;
mod verify;

use std::ffi::OsString;

use clap::CommandFactory;
use program::failure::Failure;
use program::programs::{self, WIREPROOF};
use program::{
    account, batch, config, connection, controls, corpus_file, download, failure, files, findings,
    first_contact, in_order, inputs, interrupt, json, key_files, log, manual, mirrored_accounts,
    names, network, output, progress, stage, standard_streams, stream,
};

use args::{Args, Command};

/// Runs the command with the arguments of a process, and returns its exit code.
///
/// A process that starts with `again` runs this command again: `nostr` reads databases in one.
pub fn run(again: Vec<OsString>, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    nostr::set_command(again);
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let program = programs::of(&arguments);
    if program != &WIREPROOF {
        return program.start(&arguments).report();
    }
    match config::parse(&WIREPROOF, &arguments).and_then(execute) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

fn execute(args: Args) -> Result<(), Failure> {
    let output = args.global.apply()?;
    let of_all_programs = || WIREPROOF.with_described_others(Args::command());
    match args.command {
        Command::Inspect(args) => inspect::run(&args, output),
        Command::Key(args) => key::run(&args, output),
        Command::Sig(command) => sig::run(&command, output),
        Command::Resolve(args) => resolve::run(&args, output),
        Command::Verify(args) => verify::run(&args, output),
        Command::Get(args) => get::run(&args, output),
        Command::Ls(args) => repo::list(&args, output),
        Command::Repo(command) => repo::run(&command, output),
        Command::Frames(command) => frames::run(&command, output),
        Command::Plc(command) => plc::run(&command, output),
        Command::Labels(command) => labels::run(&command, output),
        Command::Nostr(command) => nostr::run(&command, output),
        Command::Follow(args) => follower::run(*args),
        Command::Delivery(command) => delivery::run(&command, output),
        Command::Accounts(command) => admin::accounts(&command, output),
        Command::Collections(command) => admin::collections(&command, output),
        Command::Status(args) => admin::status(&args, output),
        Command::Pause(args) => admin::pause(&args, output),
        Command::Resume(args) => admin::resume(&args, output),
        Command::Capture(args) => capture::run(&args, output),
        Command::Config(command) => {
            config::run(&command, args.global.config.as_deref(), of_all_programs(), output)
        }
        Command::Doctor(args) => doctor::run(&args, output),
        Command::Page(args) => page::run(&args, output),
        Command::Completions { shell } => {
            manual::print_completions(of_all_programs(), shell, output)
        }
        Command::Man { folder } => manual::write_pages(of_all_programs(), &folder),
        #[cfg(feature = "nostr-lmdb")]
        Command::ReadDatabase { folder } => {
            Ok(nostr_lmdb::serve(&folder, std::io::stdout().lock())?)
        }
    }
}
