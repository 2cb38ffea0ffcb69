//! What can be asked about logs of did:plc?

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Judges histories of did:plc identities.
#[derive(Debug, Subcommand)]
pub(crate) enum PlcCommand {
    /// Judges a log of operations, as a directory answers at /log/audit or /log.
    ///
    /// The first operation must hash to the DID, each must be signed by a rotation key of the one it
    /// follows, and what a mightier key undid must have been undone within 72 hours. Exit code 0 if
    /// all holds.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(PlcVerifyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PlcVerifyArgs {
    /// The log, JSON; `-` for standard input.
    #[arg(value_name = "LOG|-", value_hint = ValueHint::FilePath)]
    pub(crate) log: PathBuf,
    /// Whose log it must be.
    #[arg(long, value_name = "DID")]
    pub(crate) did: Option<String>,
    /// One JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  wireproof plc verify log.json
  curl -s https://plc.directory/$DID/log/audit | wireproof plc verify - --did $DID";
