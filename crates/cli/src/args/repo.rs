//! What can be asked about repositories in files?

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// Reads repositories in CAR files.
///
/// Every hash is checked, and the tree is held to be canonical and whole; who signed it is for
/// `wireproof verify` to say.
#[derive(Debug, Subcommand)]
pub(crate) enum RepoCommand {
    /// Lists records: path, tab, CID, in the order of the paths.
    #[command(after_help = LS_EXAMPLES)]
    Ls(LsArgs),
    /// Prints a record as JSON. Exit code 1 if there is none at the path.
    #[command(after_help = GET_EXAMPLES)]
    Get(GetArgs),
    /// Tells which records differ between two repositories.
    ///
    /// A line for each: `+` created, `-` deleted or `~` changed, then path and CIDs, with tabs
    /// between.
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(DiffArgs),
    /// Writes a repository anew, in streamable order, or its records as lines of JSON.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Tells how many records, nodes and bytes there are, and in which collections.
    Stats(StatsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// The CAR file.
    #[arg(value_name = "FILE.car", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Only records of this collection.
    #[arg(long, value_name = "NSID")]
    pub(crate) collection: Option<String>,
    /// One JSON object a line: path, cid, bytes.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The CAR file.
    #[arg(value_name = "FILE.car", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The record: `collection/rkey`, or the at:// URI of it.
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
    /// The record's bytes as they were signed, instead of JSON.
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The CAR file of the repository before.
    #[arg(value_name = "OLD.car", value_hint = ValueHint::FilePath)]
    pub(crate) old: PathBuf,
    /// The CAR file of the repository after.
    #[arg(value_name = "NEW.car", value_hint = ValueHint::FilePath)]
    pub(crate) new: PathBuf,
    /// One JSON object a line: path, action, cid, prev.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The CAR file.
    #[arg(value_name = "FILE.car", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What to write.
    #[arg(long, value_enum, default_value_t = ExportFormat::Car)]
    pub(crate) format: ExportFormat,
    /// Where to; `-` for standard output.
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A CAR: the commit, then each node before its records and children, each block once.
    Car,
    /// A line of JSON for each record: path, cid, value.
    Ndjson,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// The CAR file.
    #[arg(value_name = "FILE.car", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// One JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

const LS_EXAMPLES: &str = "\
Examples:
  wireproof repo ls repository.car
  wireproof repo ls repository.car --collection app.bsky.feed.post | wc -l";

const GET_EXAMPLES: &str = "\
Examples:
  wireproof repo get repository.car app.bsky.actor.profile/self
  wireproof repo get repository.car at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.actor.profile/self";

const DIFF_EXAMPLES: &str = "\
Examples:
  wireproof repo diff yesterday.car today.car
  wireproof repo diff yesterday.car today.car --json | jq -r 'select(.action == \"delete\").path'";

const EXPORT_EXAMPLES: &str = "\
Examples:
  wireproof repo export repository.car --out streamable.car
  wireproof repo export repository.car --format ndjson | jq .value";
