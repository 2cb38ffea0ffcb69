//! `wireproof report`: renders benchmark results as an HTML page and as SVG charts.

use std::path::{Path, PathBuf};

use ::bench::Results;
use ::bench::terminal::Baseline;
use ::report::{Chart, Options};
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Render results of `wireproof bench` as an HTML page, and as SVG charts for a document.
///
/// The page is one self-contained file. Of several results it shows the newest, and the ratios of all of
/// them over time. Prints the path of each file written, that of the page last.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Results that `wireproof bench` wrote.
    #[arg(value_name = "RESULTS.json", required = true, value_hint = ValueHint::FilePath)]
    results: Vec<PathBuf>,
    /// Folder for the page, created if missing [default: report; no page if only --svg is given].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Folder for the charts: one SVG for each kind of work that several peers did.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    svg: Option<PathBuf>,
    /// The peer that ratios are relative to [default: as in `wireproof bench`].
    #[arg(long, value_name = "PEER[/VARIANT]")]
    baseline: Option<Baseline>,
}

pub(crate) fn run(args: &ReportArgs, output: Output) -> Result<(), Failure> {
    let runs: Vec<Results> =
        args.results.iter().map(|path| ::report::read(path)).collect::<Result<_, _>>()?;
    let mut written = Vec::new();
    if let Some(folder) = &args.svg {
        written.extend(write_charts(&runs, args.baseline.as_ref(), folder)?);
    }
    let default = args.svg.is_none().then(|| PathBuf::from("report"));
    if let Some(folder) = args.out.clone().or(default) {
        written.push(write_page(&runs, args.baseline.clone(), &folder)?);
    }
    written.iter().try_for_each(|path| output.text(&format!("{}\n", path.display())))
}

/// Writes the page into the folder, and returns its path.
pub(crate) fn write_page(
    runs: &[Results],
    baseline: Option<Baseline>,
    folder: &Path,
) -> Result<PathBuf, Failure> {
    let page = ::report::page(runs, &Options { baseline }).expect("there is a run");
    write(folder, "index.html", &page)
}

fn write_charts(
    runs: &[Results],
    baseline: Option<&Baseline>,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let newest = runs.iter().max_by(|a, b| a.started.cmp(&b.started)).expect("there is a run");
    let charts = ::report::charts(newest, baseline);
    charts.iter().map(|Chart { name, svg }| write(folder, &format!("{name}.svg"), svg)).collect()
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    files::create_folder(folder)?;
    let path = folder.join(name);
    files::write(&path, text)?;
    Ok(path)
}

const EXAMPLES: &str = "\
Examples:
  wireproof report target/bench/results.json
  wireproof report target/bench/results.json --svg docs/charts
  wireproof report bench/results/*/results.json --out history
  wireproof report target/bench/results.json --baseline rust-rsky";
