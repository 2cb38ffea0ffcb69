//! `wireproof archive verify`: proves an archive again.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::time::Instant;

use archive::{Finding, Table, VerifyOptions, VerifyReport};
use clap::Args;
use serde::Serialize;

use super::arguments::{AddressArgs, checked_did, parse_time};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::output::Output;
use crate::progress::ProgressLine;
use program::clock::now_micros;

/// Prove an archive again.
///
/// Every file must match the hash in its name. Every verified event is judged again under the key that is stored with
/// it: signature, tree and operations; verified labels too; blobs are hashed again; and the key is compared with the account's history of keys, if `archive import
/// --plc-log` has stored it. Exit code 1 if anything is refused.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ArchiveVerifyArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// Prove the events, repositories and labels of this account alone, and labels about it; files without them are not read.
    #[arg(long, value_name = "DID")]
    did: Option<String>,
    /// Prove only events, repositories and labels that arrived since this time: 2026-07-01T00:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<i64>,
    /// Prove one account in N, different ones in every run. Every file is still compared with its name.
    #[arg(long, value_name = "N")]
    sample: Option<NonZeroU64>,
    /// Show every finding [default: the first 10].
    #[arg(long)]
    all: bool,
    /// Print one JSON document with all findings.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &ArchiveVerifyArgs, output: Output) -> Result<(), Failure> {
    let archive = args.address.open().await?;
    let started = Instant::now();
    let mut findings = Findings::new(output, args.json, args.all);
    let mut printed = Ok(());
    let mut print = |finding: Finding| {
        if printed.is_ok() {
            printed = findings.add(|| FindingLine::from(finding));
        }
    };
    let mut progress = ProgressLine::new();
    let rows = archive.table_stats(Table::Events).await?.rows;
    progress.step(format!("{rows} events"));
    let report = progress.during(archive.verify(&args.options()?, &mut print)).await?;
    progress.end();
    printed?;
    let summary = VerifySummary::new(&report, started.elapsed().as_secs_f64());
    findings.finish(&summary, VerifySummary::to_text)?;
    if !report.is_refused() {
        return Ok(());
    }
    let count = summary.refused_count;
    Err(Failure::Refused(format!("{}: {count} refusals", args.address.archive)))
}

impl ArchiveVerifyArgs {
    fn options(&self) -> Result<VerifyOptions, Failure> {
        let mut options = VerifyOptions::default();
        options.did = self.did.as_deref().map(checked_did).transpose()?;
        options.since = self.since;
        options.sample = self.sample;
        options.seed = now_micros() as u64;
        Ok(options)
    }
}

/// The refusals of a verification, with their places.
#[derive(Debug, Serialize)]
struct FindingLine {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
    code: &'static str,
    message: String,
}

impl From<Finding> for FindingLine {
    fn from(Finding { file, row, did, code, message, .. }: Finding) -> Self {
        Self { file, row, did, code, message }
    }
}

impl fmt::Display for FindingLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(row) = self.row {
            write!(f, ", row {row}")?;
        }
        if let Some(did) = &self.did {
            write!(f, ", {did}")?;
        }
        write!(f, ": refused ({}): {}", self.code, self.message)
    }
}

/// The report, as JSON and text, of a verification.
#[derive(Debug, Serialize)]
struct VerifySummary {
    /// Versions of the tables' logs.
    version_count: u64,
    file_count: u64,
    /// Files that another program wrote, by its name and operation.
    rewritten: BTreeMap<String, u64>,
    /// Parquet files in the tables' folders that no log names.
    unnamed_file_count: u64,
    event_count: u64,
    proved_count: u64,
    /// Proved events in compact form.
    compact_count: u64,
    gap_count: u64,
    snapshot_count: u64,
    proved_snapshot_count: u64,
    part_count: u64,
    proved_part_count: u64,
    blob_count: u64,
    proved_blob_count: u64,
    label_count: u64,
    proved_label_count: u64,
    /// Histories of the keys of did:plc accounts.
    key_history_count: u64,
    /// Keys that were compared with the history of their account.
    compared_key_count: u64,
    refused_count: u64,
    /// Refusals by code.
    refused: BTreeMap<String, u64>,
    /// Events and labels that were stored as not verified, by code.
    unverified: BTreeMap<String, u64>,
    seconds: f64,
}

impl VerifySummary {
    fn new(report: &VerifyReport, seconds: f64) -> Self {
        Self {
            version_count: report.versions,
            file_count: report.files,
            rewritten: report.rewritten.clone(),
            unnamed_file_count: report.unnamed_files,
            event_count: report.events,
            proved_count: report.proved,
            compact_count: report.compact,
            gap_count: report.gaps,
            snapshot_count: report.snapshots,
            proved_snapshot_count: report.proved_snapshots,
            part_count: report.parts,
            proved_part_count: report.proved_parts,
            blob_count: report.blobs,
            proved_blob_count: report.proved_blobs,
            label_count: report.labels,
            proved_label_count: report.proved_labels,
            key_history_count: report.key_histories,
            compared_key_count: report.compared_keys,
            refused_count: report.refused.values().sum(),
            refused: report.refused.clone(),
            unverified: report.unverified.clone(),
            seconds,
        }
    }

    fn to_text(&self) -> String {
        let counts = |counts: &BTreeMap<String, u64>| -> String {
            counts.iter().map(|(code, count)| format!("  {count} {code}\n")).collect()
        };
        let unverified: u64 = self.unverified.values().sum();
        let rewritten: String = self
            .rewritten
            .iter()
            .map(|(writer, count)| {
                format!("  {count} written by {writer}: proved by their content, without their unsigned rows\n")
            })
            .collect();
        rewritten
            + &format!(
                "{} versions, {} files{}, {} events: {} proved again ({} in compact form), {} after a gap, {unverified} stored as not verified\n{}\
             {} repositories: {} proved again\n{} parts of repositories: {} proved again\n{} blobs: {} proved again\n{} labels: {} proved again\n{} keys compared with {} histories of keys\n{} refused\n{}",
                self.version_count,
                self.file_count,
                match self.unnamed_file_count {
                    0 => String::new(),
                    count => format!(" and {count} that no log names"),
                },
                self.event_count,
                self.proved_count,
                self.compact_count,
                self.gap_count,
                counts(&self.unverified),
                self.snapshot_count,
                self.proved_snapshot_count,
                self.part_count,
                self.proved_part_count,
                self.blob_count,
                self.proved_blob_count,
                self.label_count,
                self.proved_label_count,
                self.compared_key_count,
                self.key_history_count,
                self.refused_count,
                counts(&self.refused),
            )
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof archive verify archive
  wireproof archive verify archive --since 2026-07-01T00:00:00Z --sample 100
  AWS_REGION=eu-central-1 wireproof archive verify s3://history/relay
  wireproof archive verify archive --json | jq .refused";
