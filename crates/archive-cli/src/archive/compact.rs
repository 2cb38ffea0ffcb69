//! `wireproof archive compact` and `thin`: fewer files, and fewer bytes for events of past days.

use archive::{Archive, Compacted, Table, Thinned};
use clap::Args;
use serde::Serialize;

use super::arguments::AddressArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::ProgressLine;
use program::clock::now_micros;

/// Merge the files of past days.
///
/// The hourly files of a day become a few files, in which the rows of an account are next to each other: they compress
/// better, and readers open fewer of them. Rows do not change. Run it once a day.
#[derive(Debug, Args)]
#[command(after_help = COMPACT_EXAMPLES)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// Merge the files of days that ended N days ago or earlier; 0 includes yesterday.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=36_500))]
    days: u32,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Store past commits in compact form.
///
/// A compact commit is its signature and its operations with their records, without tree nodes. It is proved by
/// building the tree: the chain of commits begins at a repository of the archive or at the account's first commit. A
/// commit that no chain proves stays as it is, and so do all other events. Frames of compact commits cannot be
/// replayed.
#[derive(Debug, Args)]
#[command(after_help = THIN_EXAMPLES)]
pub(crate) struct ThinArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// Days for which frames are kept.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=36_500))]
    days: u32,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) async fn compact(args: &CompactArgs, output: Output) -> Result<(), Failure> {
    let archive = args.address.open().await?;
    let mut progress = progress(&archive).await?;
    let compacted = progress.during(archive.compact(days_ago(args.days))).await?;
    progress.end();
    let summary = CompactSummary::new(&compacted);
    output.document(&summary, args.json, CompactSummary::to_text)
}

pub(super) async fn thin(args: &ThinArgs, output: Output) -> Result<(), Failure> {
    let archive = args.address.open().await?;
    let mut progress = progress(&archive).await?;
    let thinned = progress.during(archive.thin(days_ago(args.days))).await?;
    progress.end();
    let summary = ThinSummary::new(&thinned);
    output.document(&summary, args.json, ThinSummary::to_text)
}

/// A line with the size of the archive.
async fn progress(archive: &Archive) -> Result<ProgressLine, Failure> {
    let events = archive.table_stats(Table::Events).await?;
    let mut progress = ProgressLine::new();
    progress.step(format!("{} events in {} files", events.rows, events.files));
    Ok(progress)
}

/// The time so many days ago, in microseconds since 1970.
fn days_ago(days: u32) -> i64 {
    now_micros() - i64::from(days) * MICROS_A_DAY
}

/// The report, as JSON and text, of merged files.
#[derive(Debug, Serialize)]
struct CompactSummary {
    file_count: u64,
    file_count_after: u64,
    bytes: u64,
    bytes_after: u64,
}

impl CompactSummary {
    fn new(compacted: &Compacted) -> Self {
        Self {
            file_count: compacted.files,
            file_count_after: compacted.files_after,
            bytes: compacted.bytes_before,
            bytes_after: compacted.bytes_after,
        }
    }

    fn to_text(&self) -> String {
        format!(
            "{} files with {} bytes merged into {} with {}\n",
            self.file_count, self.bytes, self.file_count_after, self.bytes_after
        )
    }
}

/// The report, as JSON and text, of commits in compact form.
#[derive(Debug, Serialize)]
struct ThinSummary {
    commit_count: u64,
    /// Commits of that time that stay as they are.
    kept_count: u64,
    file_count: u64,
    bytes: u64,
    bytes_after: u64,
}

impl ThinSummary {
    fn new(thinned: &Thinned) -> Self {
        Self {
            commit_count: thinned.commits,
            kept_count: thinned.kept,
            file_count: thinned.files,
            bytes: thinned.bytes_before,
            bytes_after: thinned.bytes_after,
        }
    }

    fn to_text(&self) -> String {
        format!(
            "{} commits are in compact form now, {} stay as they are: no chain proves them\n\
             {} files replaced: {} bytes before, {} after\n",
            self.commit_count, self.kept_count, self.file_count, self.bytes, self.bytes_after
        )
    }
}

const MICROS_A_DAY: i64 = 24 * 3_600 * 1_000_000;

const COMPACT_EXAMPLES: &str = "\
Examples:
  wireproof archive compact archive
  wireproof archive compact archive --days 2 --json";

const THIN_EXAMPLES: &str = "\
Examples:
  wireproof archive thin archive
  wireproof archive thin archive --days 30 --json";
