//! `wireproof delivery`: events that destinations refused.

mod replay;

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Output;
use replay::ReplayArgs;

/// Work with events that destinations of `follow` refused.
#[derive(Debug, Subcommand)]
pub(crate) enum DeliveryCommand {
    Replay(Box<ReplayArgs>),
}

pub(crate) fn run(command: &DeliveryCommand, output: Output) -> Result<(), Failure> {
    match command {
        DeliveryCommand::Replay(args) => replay::run(args, output),
    }
}
