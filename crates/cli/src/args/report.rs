//! How shall results be shown?

use std::path::PathBuf;

use ::bench::terminal::Baseline;
use clap::{Args, ValueHint};

/// Shows results of `wireproof bench` as a page for a browser, and as pictures for a document.
///
/// The page is one file that asks no server for anything. Of several files it shows the newest, and the
/// ratios of all of them over time. The last line that is printed is its path.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Files that `wireproof bench` wrote.
    #[arg(value_name = "RESULTS.json", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) results: Vec<PathBuf>,
    /// The folder that the page goes to, made if it is not there [default: report, unless only
    /// pictures are wanted].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// The folder that the pictures go to: an SVG for each kind of work that several peers did.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) svg: Option<PathBuf>,
    /// What ratios are held against [default: as `wireproof bench` does].
    #[arg(long, value_name = "PEER[/VARIANT]")]
    pub(crate) baseline: Option<Baseline>,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  wireproof report target/bench/results.json
  wireproof report target/bench/results.json --svg docs/charts
  wireproof report bench/results/*/results.json --out history
  wireproof report target/bench/results.json --baseline rust-rsky";
