//! `wireproof report`: results as a page and as pictures.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use ::bench::Results;
use ::bench::terminal::Baseline;
use ::report::{Chart, Options};

use crate::args::report::ReportArgs;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(args: &ReportArgs, output: Output) -> Result<(), Failure> {
    let runs: Vec<Results> =
        args.results.iter().map(|path| ::report::read(path)).collect::<Result<_, _>>()?;
    let mut written = Vec::new();
    if let Some(folder) = &args.svg {
        written.extend(write_charts(&runs, args.baseline.as_ref(), folder)?);
    }
    let usual = args.svg.is_none().then(|| PathBuf::from("report"));
    if let Some(folder) = args.out.clone().or(usual) {
        written.push(write_page(&runs, args.baseline.clone(), &folder)?);
    }
    for path in written {
        writeln!(output.stdout(), "{}", path.display())?;
    }
    Ok(())
}

/// Writes the page of these runs into the folder, and answers its path.
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
    fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    let path = folder.join(name);
    fs::write(&path, text).map_err(Failure::file(&path))?;
    Ok(path)
}
