//! `wireproof report`: renders benchmark results as an HTML page and as SVG charts.

use std::path::{Path, PathBuf};

use ::bench::Results;
use ::bench::terminal::Baseline;
use ::report::publish::{self, Run};
use ::report::{Chart, Options};
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::failures::{of_publishing, read_results};
use crate::files;
use crate::output::Output;

/// Render results of `wireproof bench` as an HTML page, and as SVG charts for a document.
///
/// The page is one self-contained file, with the results next to it. Given several results, it shows the newest, and
/// the ratios of all of them over time. Prints the path of every file written, the page last.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Results that `wireproof bench` wrote.
    #[arg(value_name = "RESULTS.json|-", required = true, value_hint = ValueHint::FilePath)]
    results: Vec<PathBuf>,
    /// Folder for the page, created if missing [default: report; no page if only --svg is given].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Folder for the charts: one SVG per kind of work that several peers did.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    svg: Option<PathBuf>,
    /// Root of a copy of the repository whose documents and charts get the numbers of the run, which must lie in its
    /// bench/results/<run>/, and of the newest one there without AVX-512; a run that is too uneven is refused.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["svg", "out", "baseline"])]
    publish: Option<PathBuf>,
    /// The peer that ratios are relative to [default: as in `wireproof bench`].
    #[arg(long, value_name = "PEER[/VARIANT]")]
    baseline: Option<Baseline>,
}

pub(crate) fn run(args: &ReportArgs, output: Output) -> Result<(), Failure> {
    let runs: Vec<Results> =
        args.results.iter().map(|path| read_results(path)).collect::<Result<_, _>>()?;
    let mut written = Vec::new();
    if let Some(root) = &args.publish {
        return publish_run(&runs, &args.results, root, output);
    }
    if let Some(folder) = &args.svg {
        written.extend(write_charts(&runs, args.baseline.as_ref(), folder)?);
    }
    let default = args.svg.is_none().then(|| PathBuf::from("report"));
    if let Some(folder) = args.out.clone().or(default) {
        written.push(write_page(&runs, args.baseline.clone(), &folder)?);
    }
    written.iter().try_for_each(|path| output.text(&format!("{}\n", path.display())))
}

/// Writes the page and the results that it links to into the folder, and returns the page's path.
pub(crate) fn write_page(
    runs: &[Results],
    baseline: Option<Baseline>,
    folder: &Path,
) -> Result<PathBuf, Failure> {
    let page = ::report::page(runs, &Options { baseline }).expect("there is a run");
    let json = serde_json::to_string(newest(runs)).expect("text, numbers, lists and maps");
    write(folder, ::report::RAW, &format!("{json}\n"))?;
    write(folder, "index.html", &page)
}

fn newest(runs: &[Results]) -> &Results {
    runs.iter().max_by(|a, b| a.started.cmp(&b.started)).expect("there is a run")
}

/// Writes the documents of a run whose file is `bench/results/<run>/results.json` below the root, and of the newest one there
/// without AVX-512.
fn publish_run(
    runs: &[Results],
    paths: &[PathBuf],
    root: &Path,
    output: Output,
) -> Result<(), Failure> {
    let ([results], [path]) = (runs, paths) else {
        return Err(Failure::Usage("--publish takes one run".to_owned()));
    };
    let run = Run { name: run_name(root, path)?, results: results.clone() };
    let second = Run::newest(root, false).map_err(of_publishing)?;
    let refused = publish::refusal(results).map(|refusal| (&run.name, refusal));
    let of_second = || {
        let second = second.as_ref()?;
        Some((&second.name, publish::refusal_without_avx512(&second.results)?))
    };
    if let Some((name, refusal)) = refused.or_else(of_second) {
        return Err(Failure::Refused(format!("{name}: {refusal}")));
    }
    for document in publish::documents(root, &run, second.as_ref()).map_err(of_publishing)? {
        files::write(&root.join(&document.path), &document.text)?;
        output.text(&format!("{}\n", document.path))?;
    }
    Ok(())
}

/// The name of the folder of the run.
fn run_name(root: &Path, path: &Path) -> Result<String, Failure> {
    let canonical = |path: &Path| path.canonicalize().map_err(Failure::file(path));
    let folder = canonical(&root.join("bench/results"))?;
    let path = canonical(path)?;
    let inside = path.strip_prefix(&folder).ok().and_then(Path::to_str);
    let name = inside.and_then(|inside| inside.strip_suffix("/results.json"));
    name.filter(|name| !name.contains('/')).map(str::to_owned).ok_or_else(|| {
        let folder = folder.display();
        Failure::Usage(format!(
            "{}: a published run is {folder}/<run>/results.json",
            path.display()
        ))
    })
}

fn write_charts(
    runs: &[Results],
    baseline: Option<&Baseline>,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let charts = ::report::charts(newest(runs), baseline);
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
  wireproof report target/bench/results.json --baseline rust-rsky
  wireproof report bench/results/2026-11-26-zen4/results.json --publish .";
