//! What can be asked about files of frames?

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Judges firehose frames in files.
#[derive(Debug, Subcommand)]
pub(crate) enum FramesCommand {
    /// Judges the frames of a file in their order.
    ///
    /// Each #commit and #sync is held against its account's key, against what the account's events
    /// before it left, and against its own tree: its operations are undone, which must lead to the
    /// tree before. The first event of an account is where its chain begins. Exit code 0 only if none
    /// was refused.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(FramesVerifyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FramesVerifyArgs {
    /// The frames: a 32-bit big-endian count, then each frame behind its 32-bit length.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The accounts' keys: JSON, an object of DIDs and their did:keys, or an array of objects with did
    /// and didDoc.
    #[arg(long, value_name = "accounts.json", value_hint = ValueHint::FilePath)]
    pub(crate) keys: PathBuf,
    /// Every refusal and break of a chain, instead of the first ten.
    #[arg(long)]
    pub(crate) all: bool,
    /// One JSON document, with every refusal.
    #[arg(long)]
    pub(crate) json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  wireproof frames verify firehose-frames.bin --keys accounts.json
  wireproof frames verify frames.bin --keys accounts.json --json | jq '.findings[] | {seq, code}'";
