//! `wireproof bench`: a plan from the arguments, progress, the table, the JSON.

mod compare;
mod run_line;
mod verify;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use ::bench::{Plan, Results, Row, RunnerCommand, Task, own, terminal};

use crate::args::bench::{BenchArgs, ChainCommand, RunArgs};
use crate::failure::Failure;
use crate::output::Output;
use run_line::RunLine;

pub(crate) fn run(args: &BenchArgs, output: Output) -> Result<(), Failure> {
    match &args.chain {
        Some(ChainCommand::Verify(args)) => return verify::run(args, output),
        Some(ChainCommand::Compare(args)) => return compare::run(args, output),
        None => {}
    }
    let tasks = if args.tasks.is_empty() { Task::ALL.to_vec() } else { args.tasks.concat() };
    let plan = Plan { tasks, corpus: args.corpus.clone(), ..plan(&args.run)? };
    measure(&plan, &args.run, "", output)
}

/// Measures, and prints the table behind what there is to say before.
fn measure(plan: &Plan, args: &RunArgs, before: &str, output: Output) -> Result<(), Failure> {
    let mut line = RunLine::of(plan);
    let results = ::bench::run(plan, &mut |progress| line.show(&progress));
    line.end();
    let results = results?;
    let json = to_json(&results);
    match args.json.as_deref() {
        Some(path) if path == Path::new("-") => output.stdout().write_all(&json)?,
        path => {
            let usual = plan.work_dir.join("results.json");
            let path = path.unwrap_or(&usual);
            std::fs::write(path, json).map_err(Failure::file(path))?;
            let text = terminal::styled(&results, args.baseline.as_ref());
            output.stdout().write_all(format!("{before}{text}").as_bytes())?;
        }
    }
    show_page(plan, args, &results, output)?;
    something_was_found(&results)?;
    we_are_right(&results)
}

/// Writes the page, and prints its path; where standard output is the JSON's, only if it was asked for.
fn show_page(
    plan: &Plan,
    args: &RunArgs,
    results: &Results,
    output: Output,
) -> Result<(), Failure> {
    let is_for_json = args.json.as_deref() == Some(Path::new("-"));
    let usual = (!is_for_json).then(|| plan.work_dir.join("report"));
    let Some(folder) = args.report.clone().or(usual) else { return Ok(()) };
    let runs = std::slice::from_ref(results);
    let page = crate::report::write_page(runs, args.baseline.clone(), &folder)?;
    let line = format!("\nreport: {}\n", page.display());
    match is_for_json {
        true => anstream::stderr().write_all(line.trim_start().as_bytes())?,
        false => output.stdout().write_all(line.as_bytes())?,
    }
    Ok(())
}

/// The plan but for what is measured.
fn plan(args: &RunArgs) -> Result<Plan, Failure> {
    let usual = Plan::default();
    let (passes, warmup) = if args.quick { (3, 1) } else { (usual.passes, usual.warmup) };
    let program = std::env::current_exe()
        .map_err(|error| Failure::Local(format!("this program's own file: {error}")))?;
    Ok(Plan {
        peers: args.peers.clone(),
        passes: args.passes.unwrap_or(passes),
        warmup: args.warmup.unwrap_or(warmup),
        quick: args.quick,
        runners: args.runners.clone().unwrap_or(usual.runners),
        work_dir: args.work_dir.clone().unwrap_or(usual.work_dir),
        case_limit: Duration::from_secs(args.case_limit.into()),
        own: Some(RunnerCommand { program, args: vec!["runner".to_owned()] }),
        ..usual
    })
}

fn to_json(results: &Results) -> Vec<u8> {
    let mut json = serde_json::to_vec_pretty(results).expect("text, numbers, lists and maps");
    json.push(b'\n');
    json
}

/// A peer that is missing or differs is a finding; a run with no row at all has found nothing.
fn something_was_found(results: &Results) -> Result<(), Failure> {
    let is_something =
        |row: &Row| row.per_s.is_some() || row.sizes.is_some() || !row.cases.is_empty();
    if results.rows.iter().any(is_something) {
        return Ok(());
    }
    Err(Failure::Local("no peer could be measured; the table above says why".to_owned()))
}

/// What another peer makes of a hostile case is a finding; what we make of it must be right.
fn we_are_right(results: &Results) -> Result<(), Failure> {
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
