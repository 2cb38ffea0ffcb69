//! Everything that CI runs, in order, until something fails.

use std::fs;
use std::time::{Duration, Instant};

use crate::tally::{FixtureLog, Tally};
use crate::toolchains::{Toolchain, Without};
use crate::{browser, documents, indigo, interop, layers, peers, process, readers, room};

/// Runs every stage, says what failed, prints the summary, and answers whether all is well.
pub(crate) fn test(without: &Without) -> bool {
    let mut report = Report::default();
    let outcome = run_stages(without, &mut report);
    if let Err(fault) = &outcome {
        eprintln!("\nxtask: {fault}");
        report.tally.failed = report.tally.failed.max(1);
    }
    report.print();
    outcome.is_ok()
}

fn run_stages(without: &Without, report: &mut Report) -> Result<(), String> {
    report.stage("toolchains", |_| without.check_the_rest())?;
    report.stage("layers", |_| layers::check_workspace())?;
    report.stage("format", |_| cargo(&["fmt", "--all", "--check"]))?;
    report.stage("lints", |_| {
        cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    })?;
    report.stage("documentation", |_| {
        let mut doc = process::command("cargo", &["doc", "--no-deps", "--workspace"]);
        process::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    report.stage("other people's servers", |_| interop::set_up(without))?;
    report.stage("tests", |report| tests(without, report))?;
    report.stage("readers in Python", |report| readers::run(without, &mut report.tally))?;
    report.stage("runners", |report| peers::shell_tests(without, &mut report.tally))?;
    if room::is_short() {
        report.stage("room on the disk", |_| room::make())?;
    }
    report.stage("peers", |report| peers::smoke(without, &mut report.tally))?;
    report.stage("report in a browser", |report| browser::test(without, &mut report.tally))?;
    report.stage("commands in documents", |report| documents::run_commands(&mut report.tally))
}

fn cargo(args: &[&str]) -> Result<(), String> {
    process::run(&mut process::command("cargo", args))
}

/// Runs the workspace's tests, and notes which had the files and programs that they need.
fn tests(without: &Without, report: &mut Report) -> Result<(), String> {
    let log = process::target("fixture-log");
    fs::write(&log, "").map_err(|error| format!("{}: {error}", log.display()))?;
    let mut command = process::command("cargo", &["test", "--workspace", "--no-fail-fast"]);
    command.env("WIREPROOF_FIXTURE_LOG", &log);
    if without.has(Toolchain::Go) {
        command.env("WIREPROOF_INDIGO", indigo::fetch()?);
    } else {
        command.env_remove("WIREPROOF_INDIGO");
    }
    interop::tell(&mut command, without);
    let outcome = process::run_watched(&mut command, |line| report.tally.add_line(line));
    report.fixtures = FixtureLog::parse(&fs::read_to_string(&log).unwrap_or_default());
    report.tally.move_left_out(report.fixtures.left_out.len() as u64);
    outcome
}

/// What the stages found.
#[derive(Debug, Default)]
struct Report {
    tally: Tally,
    fixtures: FixtureLog,
    times: Vec<(&'static str, Duration)>,
}

impl Report {
    fn stage(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        println!("\n=== {name}");
        let started = Instant::now();
        let outcome = work(self);
        self.times.push((name, started.elapsed()));
        outcome.map_err(|fault| format!("{name}: {fault}"))
    }

    fn print(&self) {
        println!("\n=== summary");
        for (name, time) in &self.times {
            println!("{:>8.1} s  {name}", time.as_secs_f64());
        }
        let FixtureLog { ran, left_out } = &self.fixtures;
        let count = left_out.len();
        println!("tests that need other people's files or programs: {ran} ran, {count} left out");
        for name in left_out {
            println!("  left out: {name}");
        }
        println!("{}", self.tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_fails_is_named_and_timed() {
        let mut report = Report::default();
        assert_eq!(report.stage("first", |_| Ok(())), Ok(()));
        let failed = report.stage("second", |report| {
            report.tally.failed += 1;
            Err("no".to_owned())
        });
        assert_eq!(failed, Err("second: no".to_owned()));
        let stages: Vec<_> = report.times.iter().map(|(name, _)| *name).collect();
        assert_eq!((stages, report.tally.failed), (vec!["first", "second"], 1));
    }
}
