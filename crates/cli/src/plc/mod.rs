//! `wireproof plc`: histories of did:plc identities, one at a time, or of a whole directory.

mod lookup;
mod mirror;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Output;

/// Verify histories of did:plc identities, and mirror a directory.
#[derive(Debug, Subcommand)]
pub(crate) enum PlcCommand {
    Verify(verify::PlcVerifyArgs),
    Mirror(Box<mirror::MirrorArgs>),
    Lookup(lookup::LookupArgs),
}

pub(crate) fn run(command: &PlcCommand, output: Output) -> Result<(), Failure> {
    match command {
        PlcCommand::Verify(args) => verify::run(args, output),
        PlcCommand::Mirror(args) => mirror::run(args, output),
        PlcCommand::Lookup(args) => lookup::run(args, output),
    }
}
