//! Measures the first table of the benchmark: decoding, next to the fastest other implementation, which is built for it.

use std::io::{Write, stdin, stdout};

use bench::terminal;
use bench::{Plan, Progress, RunnerCommand, Task, own, run};

use crate::Failure;

/// Builds the other implementation, measures both, and prints the table.
pub(crate) fn measure(out: &mut impl Write) -> Result<(), Failure> {
    let plan = plan()?;
    let (mut tables, mut printed) = (String::new(), Ok(()));
    let results = run(&plan, &mut |step| match step {
        Progress::Building { peers, .. } => {
            let line = writeln!(out, "   building {}", peers.join(" and "));
            printed = std::mem::replace(&mut printed, Ok(())).and(line);
        }
        Progress::Measured { rows, missing: [] } => tables += &terminal::of_task(rows, None),
        _ => {}
    })?;
    tables += &terminal::unavailable("not available", &results.unavailable);
    printed?;
    Ok(writeln!(out, "\n{}", terminal::plain(&tables))?)
}

fn plan() -> Result<Plan, Failure> {
    let program = std::env::current_exe()?;
    let own = RunnerCommand { program, args: vec![RUNNER.to_owned()], backend: None };
    let peers = [own::PEER, FASTEST_OTHER].map(str::to_owned);
    let plan = Plan {
        tasks: vec![Task::Decode],
        peers: Some(peers.into()),
        own: Some(own),
        ..Plan::default()
    };
    Ok(plan.quick())
}

/// Serves the benchmark: this program is our own runner.
pub(crate) fn serve() -> Result<(), Failure> {
    Ok(own::serve(stdin().lock(), stdout().lock())?)
}

/// The argument by which this program is a runner.
pub(crate) const RUNNER: &str = "runner";

/// A loop over a decoder written by hand, which checks the hashes.
const FASTEST_OTHER: &str = "rust-raw";
