//! `wireproof bench archive`: bytes of archives, and the speed of proofs and queries.

mod corpus;
mod proofs;
#[cfg(feature = "query")]
mod queries;

use std::num::NonZeroU32;
use std::path::PathBuf;

use ::bench::Plan;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::failure::Failure;
#[cfg(not(feature = "query"))]
use crate::failure::missing_feature;
use crate::files;
use crate::network;
use crate::output::{self, Output};
use crate::progress::ProgressLine;
use corpus::ArchiveCorpus;
use proofs::Proofs;

/// Measure archives: bytes of each form, and the speed of proofs and queries.
///
/// Archives the frames that `bench commit` measures, with the repositories of their accounts, and commits of accounts that
/// begin with them, in full and in compact form, and prints bytes a commit beside those of the same frames compressed by
/// zstd. `archive verify` of both forms is measured in turn with the verdicts of `bench commit full/batch`, on one core, from
/// files that are cached. Queries are measured on all cores, over operations of unsigned commits.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ArchiveArgs {
    /// More frames to archive, from captures; each with a file of keys.
    #[arg(long, value_name = "FRAMES", requires = "keys", value_hint = ValueHint::FilePath)]
    frames: Vec<PathBuf>,
    /// The keys of their accounts, in the same order: JSON, an object of DID to did:key, or an array of objects with did and
    /// didDoc.
    #[arg(long, value_name = "accounts.json", requires = "frames", value_hint = ValueHint::FilePath)]
    keys: Vec<PathBuf>,
    /// Number of measured passes, after one that is not measured.
    #[arg(long, value_name = "N", default_value = "5")]
    passes: NonZeroU32,
    /// Number of operations that are queried, in thousands; needs the feature `query` [default: 10000, with --quick 100].
    #[arg(long, value_name = "THOUSANDS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    operations: Option<u32>,
    /// Use a corpus a tenth the size, to check that everything works.
    #[arg(long)]
    quick: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    /// Folder for the archives, which are deleted at the end [default: as that of `bench`].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_WORK_DIR", value_hint = ValueHint::DirPath)]
    work_dir: Option<PathBuf>,
}

/// What JSON and text say of a measurement.
#[derive(Debug, Serialize)]
struct ArchiveResults {
    corpora: Vec<Proofs>,
    #[cfg(feature = "query")]
    queries: queries::Queries,
}

pub(super) fn run(args: &ArchiveArgs, output: Output) -> Result<(), Failure> {
    #[cfg(not(feature = "query"))]
    if args.operations.is_some() {
        return Err(Failure::Usage(missing_feature("--operations", "query")));
    }
    if args.frames.len() != args.keys.len() {
        return Err(Failure::Usage("--frames and --keys: one file of keys for each".to_owned()));
    }
    let work_dir = args.work_dir.clone().unwrap_or(Plan::default().work_dir);
    files::create_folder(&work_dir)?;
    let folder = tempfile::tempdir_in(&work_dir).map_err(Failure::file(&work_dir))?;
    let mut progress = ProgressLine::new();
    progress.step("the frames".to_owned());
    let mut corpora = vec![ArchiveCorpus::generate(args.quick), ArchiveCorpus::chains(args.quick)?];
    for (frames, keys) in args.frames.iter().zip(&args.keys) {
        corpora.push(ArchiveCorpus::read(frames, keys)?);
    }
    let mut results = Vec::new();
    for (number, corpus) in corpora.iter().enumerate() {
        let name = format!("{}: archives and proofs", corpus.name);
        progress.step(name);
        let folder = folder.path().join(number.to_string());
        results.push(network::runtime()?.block_on(proofs::measure(
            corpus,
            &folder,
            args.passes,
        ))?);
    }
    let results = ArchiveResults {
        corpora: results,
        #[cfg(feature = "query")]
        queries: {
            progress.step("operations and queries".to_owned());
            let thousands = args.operations.unwrap_or(if args.quick { 100 } else { 10_000 });
            queries::measure(thousands, &folder.path().join("operations"), args.passes)?
        },
    };
    progress.end();
    output.document(&results, args.json, ArchiveResults::to_text)
}

impl ArchiveResults {
    fn to_text(&self) -> String {
        let header = [
            "bytes a commit",
            "commits",
            "raw",
            "zstd",
            "zstd, one stream",
            "Jetstream, zstd",
            "full",
            "compact",
        ];
        let bytes = output::table(header, self.corpora.iter().map(Proofs::bytes_row));
        let header = ["repositories", "number", "CAR", "CAR, zstd", "archive"];
        let stored = self.corpora.iter().filter_map(Proofs::repositories_row);
        let repositories = output::table(header, stored);
        let header = [
            "commits/s",
            "verdicts",
            "archive verify, full",
            "of verdicts",
            "compact",
            "repositories: records/s",
        ];
        let rates = output::table(header, self.corpora.iter().map(Proofs::rates_row));
        let tables = [bytes, repositories, rates];
        #[cfg(feature = "query")]
        let tables = [&tables[..], &[self.queries.to_text()]].concat();
        tables.join("\n")
    }
}

/// The middle one of these values.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

const EXAMPLES: &str = "\
Examples:
  wireproof bench archive
  wireproof bench archive --frames capture/firehose-frames.bin --keys capture/accounts.json
  wireproof bench archive --quick --json | jq '.corpora[0].full_bytes'";
