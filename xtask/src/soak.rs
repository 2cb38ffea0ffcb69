//! `cargo xtask soak`: the reliability tests, the model of the follower, logs of archives and many small
//! repositories, the backfill of a network, backfills on Ray, the comparison
//! with a Nostr relay and the longest interop tests at full length, which `cargo xtask test` runs shortened.

use clap::Args;

use crate::toolchains::Without;
use crate::{interop, process, python_package};

/// What to run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Tests to run, by a part of their names, `model`, `archive`, `backfill`, `ray`, `resets` or `selections`; all by default.
    tests: Vec<String>,
    /// Number of random schedules of `model` or `ray` [default: 100000 of `model`, 20 of `ray`].
    #[arg(long)]
    schedules: Option<u64>,
    /// The first seed of `model` and `ray`; the others follow it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the tests one after the other.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let runs_all = options.tests.is_empty();
    let is_named = |name: &str| options.tests.iter().any(|test| test == name);
    let others = options.tests.iter().filter(|test| !FORMS.contains(&&***test));
    let others: Vec<&String> = others.collect();
    if runs_all || is_named(MODEL_FORM) {
        model(options)?;
    }
    if runs_all || is_named(BACKFILL_FORM) {
        live("backfill_network")?;
    }
    if runs_all || is_named(ARCHIVE_FORM) {
        archive()?;
    }
    for module in LIVE_FORMS {
        if runs_all || is_named(module) {
            live(module)?;
        }
    }
    if runs_all || is_named(RAY_FORM) {
        ray(options)?;
    }
    if runs_all || !others.is_empty() {
        reliability(&others)?;
    }
    if !runs_all {
        return Ok(());
    }
    live("nostr_comparison")?;
    interop()
}

/// Holds the follower against its model under random schedules.
fn model(options: &Options) -> Result<(), String> {
    let args = ["test", "--release", "-p", "wireproof-net", "--lib", MODEL, "--", "--nocapture"];
    let mut command = process::command("cargo", &args);
    let schedules = options.schedules.unwrap_or(MODEL_SCHEDULES);
    command.env("WIREPROOF_MODEL_SCHEDULES", schedules.to_string());
    process::run(command.env("WIREPROOF_MODEL_SEED", options.seed.to_string()))
}

/// Takes every two files of a log away, and imports, proves and merges 100,000 small repositories.
fn archive() -> Result<(), String> {
    for (package, test, name) in [
        ("wireproof-archive", "logs", "files_of_a_log"),
        ("wireproof-cli", "commands", "small_repositories"),
    ] {
        let args = ["test", "--release", "-p", package, "--test", test, "--", name, "--nocapture"];
        process::run(process::command("cargo", &args).env("WIREPROOF_SOAK", "1"))?;
    }
    Ok(())
}

/// Kills processes of backfills on Ray by random schedules, and prints the outcomes.
fn ray(options: &Options) -> Result<(), String> {
    process::build_all()?;
    let package = python_package::built("tests")?;
    let mut tests = python_package::tests(&python_package::python()?, &package)?;
    let schedules = options.schedules.unwrap_or(RAY_SCHEDULES);
    tests.env("WIREPROOF_RAY_SCHEDULES", schedules.to_string());
    tests.env("WIREPROOF_RAY_SEED", options.seed.to_string());
    process::run(tests.args(["--capture=no", "bindings/python/tests/test_ray_chaos.py"]))
}

fn reliability(tests: &[&String]) -> Result<(), String> {
    let args = ["test", "--release", "-p", "wireproof-cli", "--test", "reliability", "--"];
    let mut command = process::command("cargo", &args);
    // One at a time, so that no test's load shows in the figures of another.
    command.args(["--test-threads", "1", "--nocapture"]).args(tests);
    process::run(command.env("WIREPROOF_SOAK", "1"))
}

/// Runs a module of the tests of commands in processes: `backfill_network` with 100,000 accounts on 200 hosts,
/// `nostr_comparison` with a Nostr relay of 100,000 events, `resets` and `selections` with 1,000 accounts.
fn live(module: &str) -> Result<(), String> {
    let args = ["test", "--release", "-p", "wireproof-cli", "--test", "live", "--"];
    let mut command = process::command("cargo", &args);
    command.args([module, "--nocapture"]);
    process::run(command.env("WIREPROOF_SOAK", "1"))
}

/// Runs the interop tests whose length can be chosen: the tests with the reference servers, of destinations that are killed,
/// and of the races for object stores.
fn interop() -> Result<(), String> {
    let without = Without::default();
    interop::set_up(&without)?;
    process::cargo(&[&["build", "--release"][..], &process::PROGRAM_PACKAGES].concat())?;
    let args = ["test", "--release", "-p", "wireproof-interop", "--test", "interop", "--"];
    let mut command = process::command("cargo", &args);
    command.args(["printed_state", "after_kills_of_either_side", "whichever_side_is_killed"]);
    command.arg("of_eight_writers").arg("eight_writers_that_race");
    command.arg("--nocapture");
    command.args(["--test-threads", "1"]);
    interop::configure(&mut command, &without);
    process::run(command.env("WIREPROOF_SOAK", "1"))
}

/// Names that are no part of the name of a test.
const FORMS: [&str; 6] =
    [MODEL_FORM, ARCHIVE_FORM, BACKFILL_FORM, RAY_FORM, LIVE_FORMS[0], LIVE_FORMS[1]];
const MODEL_FORM: &str = "model";
const ARCHIVE_FORM: &str = "archive";
const BACKFILL_FORM: &str = "backfill";
const RAY_FORM: &str = "ray";

/// Modules of the tests of commands in processes.
const LIVE_FORMS: [&str; 2] = ["resets", "selections"];

/// Number of random schedules.
const MODEL_SCHEDULES: u64 = 100_000;
const RAY_SCHEDULES: u64 = 20;

const MODEL: &str =
    "firehose::tests::model::the_follower_does_what_the_model_allows_under_random_schedules";
