//! `cargo xtask test`: every stage that CI runs, in order, up to the first failure.

use std::fs;
use std::time::{Duration, Instant};

use crate::process::{self, cargo};
use crate::toolchains::{Toolchain, Without};
use crate::{browser, documents, interop, layers, peers, readers};

/// Runs every stage and prints the summary.
pub(crate) fn test(without: &Without) -> Result<(), String> {
    let mut summary = Summary::default();
    let outcome = run_stages(without, &mut summary);
    summary.print();
    outcome
}

fn run_stages(without: &Without, summary: &mut Summary) -> Result<(), String> {
    summary.stage("toolchains", || without.check_others())?;
    summary.stage("layers", layers::check_workspace)?;
    summary.stage("format", || cargo(&["fmt", "--all", "--check"]))?;
    summary.stage("lints", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    })?;
    summary.stage("documentation", || {
        let mut doc = process::command("cargo", &["doc", "--no-deps", "--workspace"]);
        process::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    summary.stage("servers of other projects", || interop::set_up(without))?;
    summary.stage("tests", || workspace_tests(without))?;
    summary.fixtures = FixtureLog::read()?;
    summary.stage("pure Rust signatures", pure_rust)?;
    summary.stage("examples outside the workspace", examples)?;
    if without.has(Toolchain::Python) {
        summary.stage("readers in Python", readers::run)?;
    }
    summary.stage("runners", || peers::shell_tests(without))?;
    summary.stage("peers", || peers::smoke_test(without))?;
    if without.has(Toolchain::Node) {
        summary.stage("report in a browser", browser::test)?;
    }
    summary.stage("commands in documents", documents::run_commands)
}

/// Runs the tests of the workspace. Each test that needs files or programs of other projects notes in a
/// log whether it had them.
fn workspace_tests(without: &Without) -> Result<(), String> {
    let log = process::target(FIXTURE_LOG);
    fs::write(&log, "").map_err(|error| process::at(&log, &error))?;
    let mut command = process::command("cargo", &["test", "--workspace", "--no-fail-fast"]);
    command.env("WIREPROOF_FIXTURE_LOG", &log);
    if without.has(Toolchain::Go) {
        command.env("WIREPROOF_INDIGO", interop::fetch_indigo()?);
    } else {
        command.env_remove("WIREPROOF_INDIGO");
    }
    interop::configure(&mut command, without);
    process::run(&mut command)
}

/// Tests the signatures without C libraries, and checks the libraries above them for WebAssembly, or for
/// this machine where that target cannot be installed.
fn pure_rust() -> Result<(), String> {
    let features = ["--no-default-features", "--features", "pure-rust,signing"];
    cargo(&[&["test", "-p", "wireproof-crypto"][..], &features].concat())?;
    let features = ["--no-default-features", "--features", "atproto,nostr,pure-rust"];
    let check = [&["check", "-p", "wireproof"][..], &features].concat();
    let install = process::run(&mut process::command("rustup", &["target", "add", WASM]));
    match install {
        Ok(()) => cargo(&[&check[..], &["--target", WASM]].concat()),
        Err(fault) => {
            println!("{fault}: checked for this machine instead");
            cargo(&check)
        }
    }
}

/// Compiles and runs the examples of the documentation with `wireproof` as their only import.
fn examples() -> Result<(), String> {
    let manifest = "conformance/outside/Cargo.toml";
    let mut test = process::command("cargo", &["test", "--locked", "--manifest-path", manifest]);
    process::run(test.arg("--target-dir").arg(process::target("")))
}

/// Times of the stages, and tests left out.
#[derive(Debug, Default)]
struct Summary {
    fixtures: FixtureLog,
    times: Vec<(&'static str, Duration)>,
}

impl Summary {
    fn stage(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        println!("\n=== {name}");
        let started = Instant::now();
        let outcome = work();
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
        println!(
            "tests that need files or programs of other projects: {ran} ran, {count} left out"
        );
        for name in left_out {
            println!("  left out: {name}");
        }
    }
}

/// Tests that need files or programs of other projects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FixtureLog {
    ran: u64,
    /// Names of the tests that were left out.
    left_out: Vec<String>,
}

impl FixtureLog {
    fn read() -> Result<Self, String> {
        let log = process::target(FIXTURE_LOG);
        fs::read_to_string(&log)
            .map(|text| Self::parse(&text))
            .map_err(|error| process::at(&log, &error))
    }

    /// Parses a line a test: `ran NAME` or `left out NAME`.
    fn parse(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("left out ") {
                log.left_out.push(name.to_owned());
            } else if line.starts_with("ran ") {
                log.ran += 1;
            }
        }
        log.left_out.sort();
        log
    }
}

const WASM: &str = "wasm32-unknown-unknown";
const FIXTURE_LOG: &str = "fixture-log";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_stage_is_named_and_timed() {
        let mut summary = Summary::default();
        assert_eq!(summary.stage("first", || Ok(())), Ok(()));
        let failed = summary.stage("second", || Err("no".to_owned()));
        assert_eq!(failed, Err("second: no".to_owned()));
        let stages: Vec<_> = summary.times.iter().map(|(name, _)| *name).collect();
        assert_eq!(stages, ["first", "second"]);
    }

    #[test]
    fn the_fixture_log_counts_tests_that_ran_and_names_the_others() {
        let log = FixtureLog::parse("ran a::b\nleft out z\nleft out c\nran d\n");
        assert_eq!(log, FixtureLog { ran: 2, left_out: vec!["c".to_owned(), "z".to_owned()] });
    }
}
