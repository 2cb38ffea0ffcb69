//! `wireproof labels`: the labels of labelers, judged.

mod follow;
mod query;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Output;

use follow::FollowArgs;
use query::QueryArgs;
use verify::VerifyArgs;

/// Follow labelers, ask them, and verify labels in files.
#[derive(Debug, Subcommand)]
pub(crate) enum LabelsCommand {
    Follow(Box<FollowArgs>),
    Query(Box<QueryArgs>),
    Verify(Box<VerifyArgs>),
}

pub(crate) fn run(command: &LabelsCommand, output: Output) -> Result<(), Failure> {
    match command {
        LabelsCommand::Follow(args) => follow::run(args),
        LabelsCommand::Query(args) => query::run(args, output),
        LabelsCommand::Verify(args) => verify::run(args, output),
    }
}
