//! `wireproof repo` and `wireproof ls`: read repositories, in CAR files or of accounts.

mod part;
mod records;
mod source;
mod stats;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use atproto::repo::{Options, Record, Repository};
use atproto::syntax::RepoPathChecker;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::batch::JobsArgs;
use crate::failure::Failure;
use crate::output::Output;
pub(crate) use source::DownloadedArgs;

/// Read CAR files, or the repositories of accounts.
///
/// These commands check every hash, and that the tree is canonical and complete. They do not check the signature of a
/// file: use `wireproof verify`. They download and prove the repository of an account. With --collection, only the part that can have
/// its records is read. `-` is standard input.
#[derive(Debug, Subcommand)]
pub(crate) enum RepoCommand {
    /// List records: path, tab, CID, in the order of the paths.
    #[command(after_help = LS_EXAMPLES)]
    Ls(Box<LsArgs>),
    /// Print a record as JSON. Exit code 1 if there is none at the path.
    #[command(after_help = GET_EXAMPLES)]
    Get(Box<GetArgs>),
    /// List the records that differ between two repositories.
    ///
    /// A line has `+` for created, `-` for deleted or `~` for changed, then path and CIDs, separated by tabs.
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(DiffArgs),
    /// Write a repository in streamable order, or its records as JSON lines.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(Box<ExportArgs>),
    /// Count records, nodes and bytes, and list the collections.
    #[command(after_help = STATS_EXAMPLES)]
    Stats(Box<StatsArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// A CAR file, or an account: a handle, a DID or an at:// URI, whose repository is downloaded and proved.
    #[arg(value_name = "FILE.car|ACCOUNT|-", value_hint = ValueHint::FilePath)]
    repository: String,
    /// List only the records of these collections. Of an account, only the part of the repository that proves them is downloaded.
    #[arg(long = "collection", value_name = "NSID,…", value_delimiter = ',')]
    collections: Vec<String>,
    /// Print one JSON object per line: collection, rkey, cid, bytes.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    downloaded: DownloadedArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// A CAR file, or an account: a handle, a DID or an at:// URI, whose repository is downloaded and proved.
    #[arg(value_name = "FILE.car|ACCOUNT|-", value_hint = ValueHint::FilePath)]
    repository: String,
    /// The record: `collection/rkey`, or its at:// URI.
    #[arg(value_name = "PATH")]
    path: String,
    /// Print the record's bytes as they were signed [default: JSON].
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    downloaded: DownloadedArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The CAR file of the earlier repository.
    #[arg(value_name = "OLD.car|-", value_hint = ValueHint::FilePath)]
    old: PathBuf,
    /// The CAR file of the later repository.
    #[arg(value_name = "NEW.car|-", value_hint = ValueHint::FilePath)]
    new: PathBuf,
    /// Print one JSON object per line: collection, rkey, action, cid, prev.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A CAR file, or an account: a handle, a DID or an at:// URI, whose repository is downloaded and proved.
    #[arg(value_name = "FILE.car|ACCOUNT|-", value_hint = ValueHint::FilePath)]
    repository: String,
    /// Write only these collections: their records and, in a CAR, the commit and nodes that prove them. Of an account, only this
    /// part is downloaded.
    #[arg(long = "collection", value_name = "NSID,…", value_delimiter = ',')]
    collections: Vec<String>,
    /// The format to write.
    #[arg(long, value_enum, default_value_t = ExportFormat::Car)]
    format: ExportFormat,
    /// The file to write; `-` for standard output.
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    out: PathBuf,
    #[command(flatten)]
    downloaded: DownloadedArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// A CAR: the commit, then every node before its records and children, without repeated blocks.
    Car,
    /// One line of JSON per record: collection, rkey, cid, record; for an invalid record, its bytes.
    Ndjson,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// CAR files, or accounts, whose repositories are downloaded and proved; a folder stands for all of its .car files,
    /// @LIST is a file with one per line, - is standard input.
    #[arg(value_name = "FILE.car|ACCOUNT|FOLDER|@LIST|-", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<String>,
    /// Print one JSON document; for several files, one per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    jobs: JobsArgs,
    #[command(flatten)]
    downloaded: DownloadedArgs,
}

/// Runs `wireproof ls`.
pub(crate) fn list(args: &LsArgs, output: Output) -> Result<(), Failure> {
    records::ls(args, output)
}

pub(crate) fn run(command: &RepoCommand, output: Output) -> Result<(), Failure> {
    match command {
        RepoCommand::Ls(args) => records::ls(args, output),
        RepoCommand::Get(args) => records::get(args, output),
        RepoCommand::Diff(args) => records::diff(args, output),
        RepoCommand::Export(args) => records::export(args, output),
        RepoCommand::Stats(args) => stats::run(args, output),
    }
}

/// Reads the repository in the bytes of `file`, and checks every hash.
fn read<'a>(
    file: &Path,
    bytes: &'a [u8],
    threads: NonZeroUsize,
) -> Result<Repository<'a>, Failure> {
    Repository::read_on_threads(bytes, &Options::default(), threads)
        .map_err(|error| Failure::refused(file, error))
}

/// The records of a repository in the order of their paths; they must be valid as for `wireproof verify`.
fn records<'a>(repository: &Repository<'a>) -> impl Iterator<Item = Result<Record<'a>, String>> {
    let mut paths = RepoPathChecker::default();
    repository.records().map(move |record| {
        let record = record.map_err(|error| error.to_string())?;
        let checked = paths.check(record.path.as_bytes());
        checked.map_err(|error| format!("the record path {:?}: {error}", record.path))?;
        Ok(record)
    })
}

pub(crate) const LS_EXAMPLES: &str = "\
Examples:
  wireproof repo ls repository.car
  wireproof repo ls repository.car --collection app.bsky.feed.post | wc -l
  wireproof ls atproto.com
  wireproof ls at://atproto.com/app.bsky.feed.post";

const GET_EXAMPLES: &str = "\
Examples:
  wireproof repo get repository.car app.bsky.actor.profile/self
  wireproof repo get repository.car at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.actor.profile/self";

const DIFF_EXAMPLES: &str = "\
Examples:
  wireproof repo diff yesterday.car today.car
  wireproof repo diff yesterday.car today.car --json | jq -r 'select(.action == \"delete\").rkey'";

const EXPORT_EXAMPLES: &str = "\
Examples:
  wireproof repo export repository.car --out streamable.car
  wireproof repo export repository.car --format ndjson | jq .record
  wireproof repo export at://atproto.com/app.bsky.feed.post --out posts.car";

const STATS_EXAMPLES: &str = "\
Examples:
  wireproof repo stats repository.car --json | jq '.collections[] | {collection, records}'
  wireproof repo stats archives/ --json | jq -s 'map(.records) | add'";
