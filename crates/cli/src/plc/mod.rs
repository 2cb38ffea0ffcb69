//! `wireproof plc`: histories of did:plc identities, one at a time, or of a whole directory.

mod bundles;
mod checkpoint;
mod diff;
mod lookup;
mod mirror;
mod serve;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Output;

/// Verify histories of did:plc identities; mirror, serve and compare directories.
#[derive(Debug, Subcommand)]
pub(crate) enum PlcCommand {
    Verify(verify::PlcVerifyArgs),
    Mirror(Box<mirror::MirrorArgs>),
    Lookup(lookup::LookupArgs),
    Serve(serve::ServeArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Prove(checkpoint::ProveArgs),
    Diff(diff::DiffArgs),
    Import(bundles::ImportArgs),
    Export(bundles::ExportArgs),
}

pub(crate) fn run(command: &PlcCommand, output: Output) -> Result<(), Failure> {
    match command {
        PlcCommand::Verify(args) => verify::run(args, output),
        PlcCommand::Mirror(args) => mirror::run(args, output),
        PlcCommand::Lookup(args) => lookup::run(args, output),
        PlcCommand::Serve(args) => serve::run(args, output),
        PlcCommand::Checkpoint(args) => checkpoint::run(args, output),
        PlcCommand::Prove(args) => checkpoint::prove(args, output),
        PlcCommand::Diff(args) => diff::run(args, output),
        PlcCommand::Import(args) => bundles::import(args, output),
        PlcCommand::Export(args) => bundles::export(args, output),
    }
}
