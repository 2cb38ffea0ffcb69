//! `wireproof plc diff`: the histories that differ between two mirrors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use directory::{DiffCounts, Difference, diff};
use serde::Serialize;
use store::{PlcMirrorReader, StoreError};

use crate::failure::Failure;
use crate::output::Output;

/// Name the accounts whose histories differ between two mirrors: of two directories, or of one on two days.
///
/// `withheld`: a mirror lacks operations or an account that it must have seen. `rewritten`: operations are missing or added before
/// common ones. `diverging`: the histories continue differently. `redated`: an operation has two times. `newer`: one mirror is
/// ahead, which is no contradiction. Exit code 1 if the mirrors contradict each other.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The first mirror.
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    first: PathBuf,
    /// The second mirror.
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    second: PathBuf,
    /// Name accounts of which one mirror has newer operations, too.
    #[arg(long)]
    newer: bool,
    /// Maximum number of named accounts. All are counted.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: usize,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &DiffArgs, output: Output) -> Result<(), Failure> {
    let summary = output.or_failure_document(args.json, compare(args))?;
    output.document(&summary, args.json, DiffSummary::to_text)?;
    match summary.contradiction_count {
        0 => Ok(()),
        count => Err(Failure::Refused(format!("{count} histories contradict each other"))),
    }
}

fn compare(args: &DiffArgs) -> Result<DiffSummary, Failure> {
    let [first, second] = [&args.first, &args.second].map(|path| PlcMirrorReader::open(path));
    let (first, second) = (first?, second?);
    let mut summary = DiffSummary::default();
    let counts = diff(&first, &second, |difference| {
        summary.add(difference, args);
        Ok::<_, StoreError>(())
    })?;
    let DiffCounts { accounts, equal, .. } = counts;
    (summary.account_count, summary.equal_count) = (accounts, equal);
    Ok(summary)
}

/// The report, as JSON and text, of a comparison.
#[derive(Default, Serialize)]
struct DiffSummary {
    account_count: u64,
    equal_count: u64,
    contradiction_count: u64,
    /// Numbers of accounts by the kind of their difference.
    counts: BTreeMap<&'static str, u64>,
    differences: Vec<DifferenceSummary>,
}

#[derive(Serialize)]
struct DifferenceSummary {
    did: String,
    kind: &'static str,
    /// The place of the first operation that differs, from 0.
    index: u64,
    first: Option<String>,
    second: Option<String>,
}

impl DiffSummary {
    fn add(&mut self, difference: Difference, args: &DiffArgs) {
        let Difference { did, kind, index, first, second } = difference;
        *self.counts.entry(kind.name()).or_default() += 1;
        self.contradiction_count += u64::from(kind.is_contradiction());
        let is_named = kind.is_contradiction() || args.newer;
        if is_named && self.differences.len() < args.limit {
            let kind = kind.name();
            self.differences.push(DifferenceSummary { did, kind, index, first, second });
        }
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        for DifferenceSummary { did, kind, index, first, second } in &self.differences {
            let cid = |cid: &Option<String>| cid.clone().unwrap_or_else(|| "-".to_owned());
            text += &format!("{did} {kind} at operation {index}: {} {}\n", cid(first), cid(second));
        }
        let counts = self.counts.iter().map(|(kind, count)| format!(", {count} {kind}"));
        let counts: String = counts.collect();
        text + &format!("{} accounts: {} equal{counts}\n", self.account_count, self.equal_count)
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof plc diff monday.sqlite tuesday.sqlite
  wireproof plc diff plc.sqlite other-directory.sqlite --json";
