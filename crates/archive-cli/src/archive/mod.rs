//! `wireproof archive`: verified history in open tables, which can be proved again.

pub(crate) mod arguments;
mod compact;
mod hide;
mod import;
mod import_jetstream;
mod query;
mod replay;
mod seal;
mod serve;
mod stats;
mod verify;

pub(crate) use import_jetstream::name_jetstream_import;

use clap::Subcommand;

use crate::failure::Failure;
use crate::follow::{ArchiveFollowArgs, run_to_archive};
use crate::labels::{self, ArchiveLabelsArgs};
use crate::network;
use crate::output::Output;

/// Keep verified history in open tables, and prove it again.
#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    Follow(Box<ArchiveFollowArgs>),
    Labels(Box<ArchiveLabelsArgs>),
    Import(import::ImportArgs),
    ImportJetstream(Box<import_jetstream::ImportJetstreamArgs>),
    Seal(seal::SealArgs),
    Compact(compact::CompactArgs),
    Thin(compact::ThinArgs),
    Verify(verify::ArchiveVerifyArgs),
    Stats(stats::StatsArgs),
    Replay(replay::ReplayArgs),
    Serve(serve::ServeArgs),
    Query(query::QueryArgs),
    Hide(hide::HideArgs),
    Unhide(hide::UnhideArgs),
    Erase(hide::EraseArgs),
}

pub(crate) fn run(command: ArchiveCommand, output: Output) -> Result<(), Failure> {
    let runtime = match command {
        ArchiveCommand::Follow(args) => return run_to_archive(*args),
        ArchiveCommand::Labels(args) => return labels::run(&args),
        ArchiveCommand::Query(args) => return query::run(&args, output),
        _ => network::runtime()?,
    };
    match &command {
        ArchiveCommand::Follow(_) | ArchiveCommand::Labels(_) => Ok(()),
        ArchiveCommand::Query(_) => Ok(()),
        ArchiveCommand::Import(args) => runtime.block_on(import::run(args, output)),
        ArchiveCommand::ImportJetstream(args) => {
            runtime.block_on(import_jetstream::run(args, output))
        }
        ArchiveCommand::Seal(args) => runtime.block_on(seal::run(args, output)),
        ArchiveCommand::Compact(args) => runtime.block_on(compact::compact(args, output)),
        ArchiveCommand::Thin(args) => runtime.block_on(compact::thin(args, output)),
        ArchiveCommand::Verify(args) => runtime.block_on(verify::run(args, output)),
        ArchiveCommand::Stats(args) => runtime.block_on(stats::run(args, output)),
        ArchiveCommand::Replay(args) => runtime.block_on(replay::run(args, output)),
        ArchiveCommand::Serve(args) => runtime.block_on(serve::run(args, output)),
        ArchiveCommand::Hide(args) => runtime.block_on(hide::hide(args, output)),
        ArchiveCommand::Unhide(args) => runtime.block_on(hide::unhide(args, output)),
        ArchiveCommand::Erase(args) => runtime.block_on(hide::erase(args, output)),
    }
}
