//! `wireproof bench`: runs the benchmark and prints its tables; compares two runs.

#[cfg(feature = "archive")]
mod archive;
mod archive_args;
mod args;
mod claims;
mod collections;
mod collections_args;
mod progress;
mod step_log;
mod tables;
mod verify;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::bench::{Plan, Progress, Results, Row, RunnerCommand, own};
use ::report::compare::{CompareOptions, compare};
use kernels::cpu::Level;

use crate::failure::Failure;
use crate::failures::{self, read_results};
use crate::files;
use crate::output::Output;
use args::{BenchCommand, CompareArgs, RunArgs};
#[cfg(not(feature = "archive"))]
use program::programs::BENCH;
use progress::RunProgress;
use tables::Tables;

pub(crate) use args::BenchArgs;

/// `own` is this program as a runner.
pub(crate) fn run(args: &BenchArgs, own: RunnerCommand, output: Output) -> Result<(), Failure> {
    match &args.command {
        Some(BenchCommand::Verify(args)) => return verify::run(args, own, output),
        Some(BenchCommand::Compare(args)) => return run_compare(args, output),
        Some(BenchCommand::Claims(args)) => return claims::run(args, own, output),
        Some(BenchCommand::Collections(args)) => return collections::run(args, output),
        #[cfg(feature = "archive")]
        Some(BenchCommand::Archive(args)) => return archive::run(args, output),
        #[cfg(not(feature = "archive"))]
        Some(BenchCommand::Archive(_)) => {
            let missing = BENCH.missing_feature("`bench archive`", "archive");
            return Err(Failure::Usage(missing));
        }
        None => {}
    }
    let plan = plan(&args.run, own);
    let tasks = if args.tasks.is_empty() { plan.tasks } else { args.tasks.concat() };
    let plan = Plan { tasks, corpus: args.corpus.clone(), ..plan };
    measure(&plan, &args.run, output)
}

fn run_compare(args: &CompareArgs, output: Output) -> Result<(), Failure> {
    let (old, new) = (read_results(&args.old)?, read_results(&args.new)?);
    let options = CompareOptions {
        baseline: args.baseline.clone(),
        tolerance: args.tolerance,
        peers: args.peers.clone().or(CompareOptions::default().peers),
    };
    let comparison = compare(&old, &new, &options);
    output.styled(&comparison.to_string())?;
    if comparison.has_regressed() {
        Err(Failure::refused(&args.new, "regressed; the lines above name the rows"))
    } else {
        Ok(())
    }
}

/// Runs the plan, and prints a table as soon as its task was measured, or the JSON at the end.
fn measure(plan: &Plan, args: &RunArgs, output: Output) -> Result<(), Failure> {
    let is_stdout_json = args.json.as_deref().is_some_and(files::is_standard_stream);
    let mut progress = RunProgress::new(plan);
    let mut tables = (!is_stdout_json).then(|| Tables::new(args.baseline.clone(), output));
    let results = ::bench::run(plan, &mut |step| {
        progress.show(&step);
        if let (Progress::Measured { rows, missing }, Some(tables)) = (step, &mut tables) {
            progress.suspend(|| tables.print(rows, missing));
        }
    });
    progress.end();
    let results = results.map_err(failures::of_bench)?;
    match tables {
        None => output.stdout().write_all(&files::to_json(&results))?,
        Some(tables) => {
            let default = plan.work_dir.join("results.json");
            files::write_json(args.json.as_deref().unwrap_or(&default), &results)?;
            tables.finish(&results.unavailable)?;
        }
    }
    write_page(plan, args, &results, output)?;
    check_any_row(&results)?;
    check_our_cases(&results)
}

/// Writes the page, and prints its path. With `--json -`, only if `--report` is given, and to standard
/// error.
fn write_page(
    plan: &Plan,
    args: &RunArgs,
    results: &Results,
    output: Output,
) -> Result<(), Failure> {
    let is_stdout_json = args.json.as_deref().is_some_and(files::is_standard_stream);
    let default = (!is_stdout_json).then(|| plan.work_dir.join("report"));
    let Some(folder) = args.report.clone().or(default) else { return Ok(()) };
    let runs = std::slice::from_ref(results);
    let page = crate::report::write_page(runs, args.baseline.clone(), Path::new(&folder))?;
    let line = format!("report: {}\n", page.display());
    if is_stdout_json {
        Ok(anstream::stderr().write_all(line.as_bytes())?)
    } else {
        output.text(&format!("\n{line}"))
    }
}

/// The plan without its tasks and corpus.
fn plan(args: &RunArgs, own: RunnerCommand) -> Plan {
    let default = if args.all { Plan::default().all() } else { Plan::default() };
    let default = if args.quick { default.quick() } else { default };
    Plan {
        peers: args.peers.clone(),
        passes: args.passes.unwrap_or(default.passes),
        warmup: args.warmup.unwrap_or(default.warmup),
        fixtures: args.fixtures.clone(),
        runners: args.runners.clone().or(default.runners),
        work_dir: args.work_dir.clone().unwrap_or(default.work_dir),
        case_limit: Duration::from_secs(args.case_limit.into()),
        own: Some(own),
        ..default
    }
}

/// This program as a runner. `backend` is the limit that this process was given.
pub(crate) fn own_runner(program: PathBuf, backend: Option<Level>) -> RunnerCommand {
    let backend = backend.map(|level| level.name().to_owned());
    let limit = backend.iter().flat_map(|level| ["--backend".to_owned(), level.clone()]);
    let args = limit.chain(["runner".to_owned()]).collect();
    RunnerCommand { program, args, backend }
}

/// Fails if no peer has a row. A single peer that is missing or differs is a result.
fn check_any_row(results: &Results) -> Result<(), Failure> {
    let is_measured =
        |row: &Row| row.per_s.is_some() || row.sizes.is_some() || !row.cases.is_empty();
    if results.rows.iter().any(is_measured) {
        return Ok(());
    }
    Err(Failure::Local("no peer could be measured; the table above says why".to_owned()))
}

/// Fails if we judge a hostile case wrongly. The verdict of another peer is a result.
fn check_our_cases(results: &Results) -> Result<(), Failure> {
    let ours = results.rows.iter().filter(|row| row.peer == own::PEER);
    let wrong: Vec<&str> = ours
        .flat_map(|row| &row.cases)
        .filter(|case| !case.is_right())
        .map(|case| case.name.as_str())
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(format!("{} is wrong about {}", own::PEER, wrong.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_rows_are_measured_under_the_limit_of_the_command() {
        let arguments = |backend| own_runner(PathBuf::from("wireproof"), backend).args;
        assert_eq!(arguments(None), ["runner"]);
        assert_eq!(arguments(Some(Level::Avx2)), ["--backend", "avx2", "runner"]);
    }
}
