//! `cargo xtask test`: the tests of the default features, stages side by side, up to the first failure. With `--all` or
//! `--rest`, it adds what needs other toolchains, other projects or every feature.
//!
//! Stages that build in the same target folder wait for each other, and many stages mostly wait or use one core. So each
//! phase has lanes that run side by side:
//!
//! ```text
//! test      format     │ build                          │ libraries
//!                      │                                │ commands
//! --rest    toolchains │ build-all                      │ features, lints, documentation, examples, programs, pure-rust, documents
//!                      │ servers, runners, environments │ js, peers, browser, page, claims, readers, python
//!                      │                                │ interop
//! ```
//!
//! A stage is a process of its own, `cargo xtask stage NAME`. Its output goes to `target/stages/NAME.log` and is
//! printed when it ends; what says why it failed, once more before the summary.

use std::fs::{self, File};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::left_out::{self, LeftOut};
use crate::process::{self, Selection, at, cargo};
use crate::toolchains::{Toolchain, Without};
use crate::{browser, documents, interop, js, layers, page, peers, python_package, readers, words};

/// A part of the test command.
struct Stage {
    name: &'static str,
    /// The toolchain that it cannot run without.
    needs: Option<Toolchain>,
    run: fn(&Without) -> Result<(), String>,
}

const fn stage(name: &'static str, run: fn(&Without) -> Result<(), String>) -> Stage {
    Stage { name, needs: None, run }
}

impl Stage {
    const fn needs(self, toolchain: Toolchain) -> Self {
        Self { needs: Some(toolchain), ..self }
    }
}

/// Stages that run one after the other.
type Lane = &'static [Stage];

/// Lanes that run side by side.
type Phase = &'static [Lane];

/// What needs Rust and a C compiler alone. A phase begins when all stages of the one before have passed.
const DEFAULT: &[Phase] = &[
    &[&[stage("format", |_| format())]],
    &[&[stage("build", |_| process::build_default())]],
    &[&[stage("libraries", |_| library_tests())], &[stage("commands", |_| command_tests())]],
];

/// What else CI runs, in phases likewise.
const REST: &[Phase] = &[
    &[&[stage("toolchains", Without::check_others)]],
    &[
        &[stage("build-all", |_| process::build_all())],
        &[
            stage("servers", interop::set_up),
            stage("runners", peers::shell_tests),
            stage("environments", |_| make_environments()).needs(Toolchain::Python),
        ],
    ],
    // Two lanes of about the same length, and what mostly waits for servers. What builds in the workspace's target folder begins when
    // all programs are built.
    &[
        &[
            stage("features", feature_tests),
            stage("lints", |_| lints()),
            stage("documentation", |_| documentation()),
            stage("examples", |_| examples()),
            stage("programs", |_| programs()),
            stage("pure-rust", |_| pure_rust()),
            stage("documents", documents::run_commands),
        ],
        &[
            // `peers` measures the package that `js` builds.
            stage("js", |_| js::test()).needs(Toolchain::Node),
            stage("peers", peers::smoke_test),
            // `browser` reads the results of `peers`, and `claims` runs its builds.
            stage("browser", |_| browser::test()).needs(Toolchain::Node),
            stage("page", |_| page::test()).needs(Toolchain::Node),
            stage("claims", peers::prove_claims),
            stage("readers", |_| readers::run()).needs(Toolchain::Python),
            stage("python", |_| python_package::test()).needs(Toolchain::Python),
        ],
        &[stage("interop", interop::test)],
    ],
];

/// Which stages to run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Run everything that CI runs: other projects' servers, the benchmark's peers, Python, the browser, every feature, lints
    /// and documentation.
    #[arg(long, conflicts_with = "rest")]
    all: bool,
    /// Run what --all runs, without the tests of the default features.
    #[arg(long)]
    rest: bool,
    #[command(flatten)]
    without: Without,
}

/// Runs the stages and prints the summary.
pub(crate) fn test(options: &Options) -> Result<(), String> {
    left_out::clear()?;
    let (summary, started) = (Mutex::new(Summary::default()), Instant::now());
    let default = if options.rest { &[] } else { DEFAULT };
    let rest = if options.rest || options.all { REST } else { &[] };
    for lanes in default.iter().chain(rest) {
        thread::scope(|scope| {
            for lane in *lanes {
                scope.spawn(|| run_lane(lane, &options.without, &summary));
            }
        });
    }
    let summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.print(started.elapsed());
    let left_out = LeftOut::read()?;
    left_out.print();
    summary.outcome()?;
    left_out.check()
}

fn run_lane(lane: Lane, without: &Without, summary: &Mutex<Summary>) {
    for stage in lane {
        if lock(summary).outcome().is_err() {
            return;
        }
        let ended = run_stage(stage, without);
        lock(summary).add(ended);
    }
}

fn lock(summary: &Mutex<Summary>) -> MutexGuard<'_, Summary> {
    summary.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a stage in a process of its own.
fn run_stage(stage: &Stage, without: &Without) -> Ended {
    let started = Instant::now();
    let outcome = match stage.needs {
        Some(toolchain) if !without.has(toolchain) => left_out::note(stage.name, toolchain.name()),
        _ => start_stage(stage.name, without),
    };
    let time = started.elapsed();
    let log = fs::read_to_string(log_path(stage.name)).unwrap_or_default();
    Ended { name: stage.name, time, processor_time: processor_time_in(&log), outcome, log }
}

fn start_stage(name: &str, without: &Without) -> Result<(), String> {
    println!("=== {name}: started");
    let log = log_path(name);
    let created = log.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| File::create(&log));
    let (out, program) = (created.map_err(|error| at(&log, &error))?, std::env::current_exe());
    let program = program.map_err(|error| format!("xtask: {error}"))?;
    let errors = out.try_clone().map_err(|error| at(&log, &error))?;
    let mut command = process::command(&program.to_string_lossy(), &["stage", name]);
    process::run_within(STAGE_LIMIT, command.args(without.to_args()).stdout(out).stderr(errors))
}

fn log_path(name: &str) -> PathBuf {
    process::target("stages").join(format!("{name}.log"))
}

fn stages() -> impl Iterator<Item = &'static Stage> {
    DEFAULT.iter().chain(REST).copied().flatten().copied().flatten()
}

/// A stage to run alone.
#[derive(Args, Clone, Debug)]
pub(crate) struct Alone {
    /// The stage's name in the summary of `cargo xtask test`.
    name: String,
    #[command(flatten)]
    without: Without,
}

/// Runs one stage and prints the processor time of its programs.
pub(crate) fn run_alone(alone: &Alone) -> Result<(), String> {
    let stage = stages().find(|stage| stage.name == alone.name);
    let stage = stage.ok_or_else(|| {
        let names: Vec<&str> = stages().map(|stage| stage.name).collect();
        format!("unknown stage `{}`: expected one of {}", alone.name, names.join(", "))
    })?;
    let outcome = (stage.run)(&alone.without);
    // A program may have left its last line without an end.
    println!("\n{PROCESSOR_TIME}{:.1}", process::processor_time_of_children().as_secs_f64());
    outcome
}

/// Makes the Python environments of later stages, while the programs are built.
fn make_environments() -> Result<(), String> {
    readers::python()?;
    python_package::make_environments()
}

fn format() -> Result<(), String> {
    layers::check_workspace()?;
    words::check()?;
    cargo(&["fmt", "--all", "--check"])
}

/// Lints every target with every feature.
pub(crate) fn lints() -> Result<(), String> {
    let targets = ["--all-targets", "--", "-D", "warnings"];
    cargo(&[&["clippy"][..], Selection::All.arguments(), &targets].concat())
}

fn documentation() -> Result<(), String> {
    let arguments = [&["doc", "--no-deps"][..], Selection::All.arguments()].concat();
    process::run(process::command("cargo", &arguments).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Unit, property and conformance tests, all but the tests of the command.
fn library_tests() -> Result<(), String> {
    let targets = process::test_targets(|package| package != COMMAND_PACKAGE)?;
    run_tests(Selection::Default.test(&["--no-fail-fast", "--lib"]).args(targets))
}

/// The tests that run the command as a process. They mostly wait for it, so twice as many as cores run at a time.
fn command_tests() -> Result<(), String> {
    let targets = process::test_targets(|package| package == COMMAND_PACKAGE)?;
    let mut tests = Selection::Default.test(&["--no-fail-fast"]);
    if std::env::var_os(TEST_THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        tests.env(TEST_THREADS, (2 * cores).to_string());
    }
    run_tests(tests.args(targets))
}

/// The tests of features that are off by default, and the tests over the vectors of indigo.
fn feature_tests(without: &Without) -> Result<(), String> {
    let targets = ["--lib", "--test=commands", "--test=live", "--no-fail-fast", "--"];
    run_tests(Selection::All.test(&targets).args(OF_FEATURES))?;
    run_tests(&mut Selection::All.test(&["--test=files", "--test=hidden"]))?;
    if !without.has(Toolchain::Go) {
        return left_out::note("the vectors of indigo", Toolchain::Go.name());
    }
    let mut vectors = Selection::Default.test(&["--test=suite", "--", "indigo"]);
    run_tests(vectors.env("WIREPROOF_INDIGO", interop::fetch_indigo()?))
}

/// Runs tests, with the captures where they are.
fn run_tests(command: &mut Command) -> Result<(), String> {
    left_out::configure(command);
    process::run(command)
}

/// Lints every program alone, as `cargo install` and the README build it: with its default features, the features of its own
/// dependencies, and none that another package of the workspace asks for.
fn programs() -> Result<(), String> {
    let lint = |package: &&str| cargo(&["clippy", "-p", package, "--", "-D", "warnings"]);
    PROGRAMS.iter().try_for_each(lint)
}

/// Tests the signatures without C libraries, and checks the libraries above them for WebAssembly, and the calls of the system for
/// static programs.
fn pure_rust() -> Result<(), String> {
    let features = ["--no-default-features", "--features", "pure-rust,signing"];
    cargo(&[&["test", "-p", "wireproof-crypto"][..], &features].concat())?;
    let features = ["--no-default-features", "--features", "atproto,nostr,pure-rust"];
    check_for(WASM, &[&["check", "-p", "wireproof"][..], &features].concat())?;
    check_for(STATIC, &["check", "-p", "wireproof-mapping"])
}

/// Runs `check` for a target, or for this machine where the target cannot be installed.
fn check_for(target: &str, check: &[&str]) -> Result<(), String> {
    let install = process::run(&mut process::command("rustup", &["target", "add", target]));
    match install {
        Ok(()) => cargo(&[check, &["--target", target]].concat()),
        Err(fault) => {
            println!("{fault}: checked for this machine instead");
            cargo(check)
        }
    }
}

/// Compiles and runs the examples of the documentation with `wireproof` as their only import; the example of queries is compiled
/// only.
///
/// Libraries of others have more features in these programs than `wireproof` asks for, so that they are the libraries of the build with every
/// feature. That it asks for all that it needs is checked first.
fn examples() -> Result<(), String> {
    let of_outside = ["--locked", "--manifest-path", "conformance/outside/Cargo.toml"];
    let target = process::target_folder()?;
    let run = |command: &[&str]| {
        let mut command = process::command("cargo", &[command, &of_outside].concat());
        process::run(command.arg("--target-dir").arg(&target))
    };
    run(&["check", "--lib"])?;
    run(&["test", "--features", "query"])
}

/// The stages that ended, in the order of their ends.
#[derive(Debug, Default)]
struct Summary(Vec<Ended>);

/// A stage that ended.
#[derive(Clone, Debug)]
struct Ended {
    name: &'static str,
    time: Duration,
    /// Seconds of its programs on all cores, where they are known.
    processor_time: Option<f64>,
    outcome: Result<(), String>,
    /// Its output.
    log: String,
}

impl Summary {
    /// Prints the output of a stage.
    fn add(&mut self, ended: Ended) {
        println!("\n=== {}\n{}", ended.name, ended.log);
        self.0.push(ended);
    }

    /// The first failure.
    fn outcome(&self) -> Result<(), String> {
        let mut failures = self.0.iter().filter_map(|ended| {
            ended.outcome.as_ref().err().map(|fault| format!("{}: {fault}", ended.name))
        });
        failures.next().map_or(Ok(()), Err)
    }

    fn print(&self, whole: Duration) {
        for Ended { name, log, .. } in self.0.iter().filter(|ended| ended.outcome.is_err()) {
            println!("\n=== why {name} failed");
            failures_in(log).iter().for_each(|line| println!("{line}"));
        }
        println!("\n=== summary\n{:>10}  {:>14}  stage", "time", "processor time");
        for Ended { name, time, processor_time, outcome, .. } in &self.0 {
            let processor_time = processor_time.map(|seconds| format!("{seconds:.1} s"));
            let mark = if outcome.is_ok() { "" } else { ": FAILED" };
            let (time, processor_time) = (time.as_secs_f64(), processor_time.unwrap_or_default());
            println!("{time:>8.1} s  {processor_time:>14}  {name}{mark}");
        }
        println!("{:>8.1} s  in all, stages side by side", whole.as_secs_f64());
    }
}

/// The lines of an output from each `failures:` to the result of its tests, or the last lines if there are none. Long lines are
/// cut.
fn failures_in(log: &str) -> Vec<String> {
    let mut is_failure = false;
    let is_of_failure = |line: &&str| {
        let ends = is_failure && line.starts_with("test result: ");
        is_failure = !ends && (is_failure || *line == "failures:");
        is_failure || ends
    };
    let mut lines: Vec<&str> = log.lines().filter(is_of_failure).collect();
    if lines.is_empty() {
        lines = log.lines().collect();
        lines.drain(..lines.len().saturating_sub(LAST_LINES));
    }
    lines.iter().map(|line| line.chars().take(MAX_LINE_CHARS).collect()).collect()
}

/// The processor time in the output of [`run_alone`].
fn processor_time_in(log: &str) -> Option<f64> {
    log.lines().rev().find_map(|line| line.strip_prefix(PROCESSOR_TIME)?.parse().ok())
}

/// Maximum time of a stage, several times the longest one: the log names a test that waits for ever.
const STAGE_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Number of lines that are printed again of a stage that failed without a failed test.
const LAST_LINES: usize = 40;
/// Maximum length of a line that is printed again, in characters: an assertion can print a whole table.
const MAX_LINE_CHARS: usize = 400;

/// The variable by which a test program takes its number of threads.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// The package whose tests start the command.
const COMMAND_PACKAGE: &str = "cli";

/// Parts of the names of the tests that need a feature of the command.
const OF_FEATURES: [&str; 20] = [
    "a_deletion_of_a_record_that_no_longer_matches",
    "account_chains::",
    "another_condition_is_another_selection",
    "archives_are_smaller_in_each_form",
    "backfill_network::",
    "backfills::",
    "condition::",
    "conditions::",
    "database",
    "every_line_of_a_run_proves_again",
    "every_series_of_the_dashboard",
    "jetstream_archives::",
    "kafka::",
    "keys_of_archived_commits_are_compared",
    "nats::",
    "object_store",
    "queries::",
    "queue_message::",
    "server_address::",
    "sinks::",
];

const PROCESSOR_TIME: &str = "seconds of processor time: ";

/// The packages of programs.
const PROGRAMS: [&str; 4] =
    ["wireproof-demo", "wireproof-cli", "wireproof-archive-cli", "wireproof-bench-cli"];

const WASM: &str = "wasm32-unknown-unknown";

/// The system of the static programs that are distributed.
const STATIC: &str = "x86_64-unknown-linux-musl";

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(name: &'static str, outcome: Result<(), String>) -> Ended {
        let log = String::new();
        Ended { name, time: Duration::ZERO, processor_time: None, outcome, log }
    }

    #[test]
    fn the_first_failure_is_named_and_no_stage_starts_after_it() {
        let mut summary = Summary::default();
        summary.add(ended("first", Ok(())));
        assert_eq!(summary.outcome(), Ok(()));
        summary.add(ended("second", Err("no".to_owned())));
        summary.add(ended("third", Err("nor this".to_owned())));
        assert_eq!(summary.outcome(), Err("second: no".to_owned()));
        let summary = Mutex::new(summary);
        const NEVER: [Stage; 1] = [stage("never", |_| Ok(()))];
        run_lane(&NEVER, &Without::default(), &summary);
        assert_eq!(lock(&summary).0.len(), 3);
    }

    fn sorted_names() -> Vec<&'static str> {
        let mut names: Vec<_> = stages().map(|stage| stage.name).collect();
        names.sort_unstable();
        names
    }

    /// The names in the tests of the command that are built with a feature only, `name::` for all tests of a module.
    fn names_of_feature_tests() -> Vec<String> {
        let mut folders = vec![process::root().join("crates/cli/tests")];
        let mut names = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    names.extend(gated_names(&fs::read_to_string(path).unwrap()));
                }
            }
        }
        names
    }

    fn gated_names(text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let gated = lines.windows(3).filter(|lines| lines[1].starts_with("#[cfg(feature = "));
        let name = |lines: &[&str]| {
            let module = lines[2].strip_prefix("mod ").map(|name| name.replace(';', "::"));
            let test = lines[2].strip_prefix("fn ").filter(|_| lines[0] == "#[test]");
            module.or_else(|| Some(test?.split('(').next()?.to_owned()))
        };
        gated.filter_map(name).collect()
    }

    #[test]
    fn every_test_of_a_feature_is_run() {
        let names = names_of_feature_tests();
        assert!(names.len() > 5 && names.contains(&"queries::".to_owned()), "{names:?}");
        for name in names {
            assert!(OF_FEATURES.iter().any(|part| name.contains(part)), "{name}");
        }
        assert_eq!(gated_names("a\n#[cfg(feature = \"x\")]\nfn helper() {"), [""; 0]);
    }

    #[test]
    fn a_default_run_has_no_stage_that_needs_another_toolchain() {
        assert!(
            DEFAULT.iter().copied().flatten().copied().flatten().all(|stage| stage.needs.is_none())
        );
    }

    #[test]
    fn every_stage_has_a_name_of_its_own() {
        let mut names = sorted_names();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_page_for_contributors_names_every_stage_and_no_other() {
        let page = include_str!("../../CONTRIBUTING.md");
        let (_, table) = page.split_once("| stage | claim |\n|---|---|\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let cells = rows.map(|row| row.split('|').nth(1).unwrap());
        let mut named: Vec<&str> =
            cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        named.sort_unstable();
        assert_eq!(named, sorted_names());
    }

    #[test]
    fn a_failure_is_shown_from_its_output_to_its_result_and_else_the_last_lines() {
        let log = "test a ... ok\ntest result: ok. 1 passed\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\n\
                   left: 1\n\nfailures:\n    b\n\ntest result: FAILED. 0 passed\ntest result: ok. 3 passed\n";
        let shown = failures_in(log);
        assert_eq!(shown[0], "failures:");
        assert!(shown.contains(&"left: 1".to_owned()) && shown.contains(&"    b".to_owned()));
        assert_eq!(shown.last().unwrap(), "test result: FAILED. 0 passed");
        let log: String = (0..100).map(|line| format!("{line}\n")).collect();
        assert_eq!(failures_in(&log), (60..100).map(|line| line.to_string()).collect::<Vec<_>>());
        assert_eq!(failures_in(&"é".repeat(1_000))[0].chars().count(), MAX_LINE_CHARS);
    }

    #[test]
    fn the_processor_time_is_read_from_the_end_of_the_output() {
        let log = format!("test result: ok\n{PROCESSOR_TIME}12.5\nerror: after it\n");
        assert_eq!(processor_time_in(&log), Some(12.5));
        assert_eq!(processor_time_in("error: killed\n"), None);
    }
}
