//! `wireproof plc import` and `wireproof plc export`: bundles of operations, as plcbundle keeps them.

use std::path::PathBuf;

use base::now_micros;
use clap::{Args, ValueHint};
use directory::{BundleError, BundleFolder, write_bundles};
use serde::Serialize;
use store::{PlcMirror, PlcMirrorReader};

use crate::failure::Failure;
use crate::log::{self, Level};
use crate::output::Output;
use crate::progress::ProgressLine;

/// Make a mirror of a folder of bundles, as plcbundle keeps them: verify their hashes, and every operation.
///
/// Bundles have no numbers of operations, so the mirror has its own, and does not continue from the directory. `plc diff` compares it
/// with a mirror of the directory. An interrupted import continues. Exit code 1 if an operation was refused, or if a bundle
/// differs from the index.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArgs {
    /// The folder, with plc_bundles.json.
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// The file of the mirror; it is created if it is missing.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    to: PathBuf,
    /// Print one JSON document at the end.
    #[arg(long)]
    json: bool,
}

pub(super) fn import(args: &ImportArgs, output: Output) -> Result<(), Failure> {
    let bundles = BundleFolder::open(&args.folder).map_err(failure)?;
    let mut mirror = PlcMirror::open(&args.to, &format!("bundles of {}", bundles.origin()))?;
    let (mut accepted, mut refused) = (0, 0);
    let mut progress = ProgressLine::new();
    // Bundles whose lines are all stored.
    let first = usize::try_from(mirror.totals().cursor / BUNDLE_OPERATIONS).unwrap_or(usize::MAX);
    for at in first..bundles.len() {
        progress.at("bundles".to_owned(), at as u64, bundles.len() as u64);
        for lines in bundles.lines(at).map_err(failure)?.chunks(PAGE) {
            let applied = mirror.apply(lines)?;
            accepted += applied.accepted;
            for of in applied.refused.iter().take(NAMED_REFUSALS.saturating_sub(refused)) {
                let text = format!(
                    "{}: operation {} is refused ({}): {}",
                    of.did, of.seq, of.code, of.message
                );
                progress.suspend(|| drop(log::print(Level::Warning, &text)));
            }
            refused += applied.refused.len();
        }
    }
    progress.end();
    let summary = ImportSummary {
        origin: bundles.origin().to_owned(),
        bundle_count: bundles.len() as u64,
        accepted_count: accepted,
        refused_count: refused as u64,
    };
    output.document(&summary, args.json, ImportSummary::to_text)?;
    match refused {
        0 => Ok(()),
        count => Err(Failure::Refused(format!("{count} operations were refused"))),
    }
}

/// The report, as JSON and text, of an import.
#[derive(Serialize)]
struct ImportSummary {
    origin: String,
    bundle_count: u64,
    accepted_count: u64,
    refused_count: u64,
}

impl ImportSummary {
    fn to_text(&self) -> String {
        let Self { origin, bundle_count, accepted_count, refused_count } = self;
        format!(
            "{bundle_count} bundles of {origin}: {accepted_count} operations accepted, {refused_count} refused\n"
        )
    }
}

/// Write the operations of a mirror as bundles, as plcbundle keeps them, into a new folder.
///
/// Every bundle has 10,000 operations in the order of their times; the last operations that fill no bundle are left out.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    /// The folder.
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// The file of the mirror.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    from: PathBuf,
}

pub(super) fn export(args: &ExportArgs, output: Output) -> Result<(), Failure> {
    let mirror = PlcMirrorReader::open(&args.from)?;
    let written =
        write_bundles(&mirror, &args.folder, now_micros().cast_signed()).map_err(failure)?;
    output.text(&format!("{written} bundles\n"))
}

fn failure(error: BundleError) -> Failure {
    match error {
        BundleError::Mirror(error) => error.into(),
        BundleError::File(..) => Failure::Local(error.to_string()),
        other => Failure::Refused(other.to_string()),
    }
}

const BUNDLE_OPERATIONS: u64 = 10_000;

/// Number of operations that are stored in a transaction.
const PAGE: usize = 1_000;

/// Refused operations that a run names.
const NAMED_REFUSALS: usize = 100;

const IMPORT_EXAMPLES: &str = "\
Examples:
  wireproof plc import bundles --to bundles.sqlite
  wireproof plc diff bundles.sqlite plc.sqlite";

const EXPORT_EXAMPLES: &str = "\
Examples:
  wireproof plc export bundles --from plc.sqlite";
