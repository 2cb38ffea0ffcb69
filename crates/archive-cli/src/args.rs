//! The top level of the command line. A command's arguments are next to its code.

use clap::{Parser, Subcommand};
use program::args::{EXIT_CODES, GlobalArgs};

use crate::archive::ArchiveCommand;
use crate::backfill::BackfillArgs;
use crate::blobs::BlobsCommand;
use crate::serve::ServeArgs;

/// Archives of verified events and repositories, the backfill into them, and the server of verified streams.
#[derive(Debug, Parser)]
#[command(name = "wireproof", bin_name = "wireproof", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(subcommand)]
    Archive(ArchiveCommand),
    Backfill(Box<BackfillArgs>),
    #[command(subcommand)]
    Blobs(BlobsCommand),
    Serve(Box<ServeArgs>),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use program::programs::ARCHIVE;

    use super::*;

    #[test]
    fn the_other_programs_know_the_arguments() {
        ARCHIVE.check_description(&Args::command()).unwrap();
    }
}
