//! `wireproof archive query`: SQL over the tables of an archive.

#[cfg(feature = "query")]
mod answer;

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::arguments::AddressArgs;
use crate::failure::Failure;
use crate::output::Output;
#[cfg(not(feature = "query"))]
use program::programs::ARCHIVE;

/// Query the tables of an archive in SQL.
///
/// The tables are events, ops, snapshots, records, parts, part_records and hidden, without hidden rows; current_records has the newest
/// stored version of every record. Functions: cid(record), json(record), at_uri(did, collection, rkey), covers(collections,
/// collection), proof(did, collection, rkey), and record_text, record_integer, record_boolean, record_time and record_json of (record,
/// 'property'). Nothing is written to the archive.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// The statement; - reads it from standard input.
    #[arg(value_name = "SQL|-")]
    sql: String,
    /// Form of the rows.
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    format: Format,
    /// Write the rows to a file, which is replaced [default: standard output].
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Lexicons of collections, as JSON: app.bsky.feed.post becomes the view app_bsky_feed_post. A folder is searched
    /// for lexicons of records.
    #[arg(long = "lexicon", value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    lexicons: Vec<PathBuf>,
    /// Memory for sorts, joins and groups in MiB; larger ones use temporary files.
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u32).range(16..))]
    memory_mib: u32,
    /// Number of threads [default: one per processor].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns of text, for people: at most 1,000 rows, long values cut.
    Table,
    /// Comma-separated values, with a header.
    Csv,
    /// One JSON object per row.
    Ndjson,
    /// A Parquet file.
    Parquet,
    /// A stream of Apache Arrow.
    Arrow,
}

#[cfg(feature = "query")]
pub(super) fn run(args: &QueryArgs, output: Output) -> Result<(), Failure> {
    answer::run(args, output)
}

#[cfg(not(feature = "query"))]
pub(super) fn run(_: &QueryArgs, _: Output) -> Result<(), Failure> {
    Err(Failure::Usage(ARCHIVE.missing_feature("`archive query`", "query")))
}

const EXAMPLES: &str = "\
Examples:
  wireproof archive query archive 'SELECT collection, count(*) FROM ops GROUP BY collection ORDER BY 2 DESC'
  wireproof archive query archive \"SELECT json(record) FROM current_records WHERE collection = 'app.bsky.feed.post'\" --format csv
  wireproof archive query archive 'SELECT text, langs FROM app_bsky_feed_post' --lexicon lexicons --format parquet --output posts.parquet";
