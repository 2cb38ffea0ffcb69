//! `wireproof bench archive`: bytes of archives, and the speed of proofs and queries.

mod corpus;
mod proofs;
mod queries;

use ::bench::Plan;
use serde::Serialize;

use super::archive_args::ArchiveArgs;
use crate::failure::Failure;
use crate::files;
use crate::network;
use crate::output::{self, Output};
use crate::progress::ProgressLine;
use corpus::ArchiveCorpus;
use proofs::Proofs;

/// The report, as JSON and text, of a measurement.
#[derive(Debug, Serialize)]
struct ArchiveResults {
    corpora: Vec<Proofs>,
    queries: queries::Queries,
}

pub(super) fn run(args: &ArchiveArgs, output: Output) -> Result<(), Failure> {
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
    progress.step("operations and queries".to_owned());
    let thousands = args.operations.unwrap_or(if args.quick { 100 } else { 10_000 });
    let queries = queries::measure(thousands, &folder.path().join("operations"), args.passes)?;
    let results = ArchiveResults { corpora: results, queries };
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
            "ratio",
            "compact",
            "repositories: records/s",
        ];
        let rates = output::table(header, self.corpora.iter().map(Proofs::rates_row));
        [bytes, repositories, rates, self.queries.to_text()].join("\n")
    }
}

/// The middle one of these values.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
