//! `cargo xtask fuzz`: runs fuzz targets under libFuzzer, or under the plain driver without a nightly toolchain.
//!
//! Corpora are kept in `target/fuzz/corpus/`. They begin with the seeds of `fuzz/src/seeds.rs`, real files among
//! them where `WIREPROOF_FIXTURES` names a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::process;

/// Targets and time.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Use the plain driver, which needs no nightly toolchain and has no coverage.
    #[arg(long)]
    plain: bool,
    /// Targets to run; all by default.
    targets: Vec<String>,
}

/// Runs all targets in turn, up to the first finding.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    if options.plain || !has_nightly() {
        println!("without libFuzzer: the plain driver");
        return run_plain(options);
    }
    let targets = match &options.targets[..] {
        [] => known_targets()?,
        chosen => chosen.to_vec(),
    };
    let tool = tool()?;
    for target in &targets {
        println!("\n=== {target}");
        run_with_coverage(&tool, target, options.seconds)?;
    }
    Ok(())
}

fn run_plain(options: &Options) -> Result<(), String> {
    let findings = process::target("fuzz/findings");
    let mut run = driver(&["run", "--seconds", &options.seconds.to_string(), "--findings"]);
    process::run(run.arg(findings).args(&options.targets))
}

/// Runs a target under libFuzzer.
fn run_with_coverage(tool: &Path, target: &str, seconds: u32) -> Result<(), String> {
    let corpus = process::target("fuzz/corpus").join(target);
    process::run(driver(&["seeds", target]).arg(&corpus))?;
    let limits = [
        format!("-max_total_time={seconds}"),
        "-timeout=10".to_owned(),
        "-rss_limit_mb=2048".to_owned(),
        "-max_len=65536".to_owned(),
    ];
    let mut run = nightly(tool);
    run.args(["fuzz", "run", "--fuzz-dir", "fuzz", "--features", "libfuzzer", "--target-dir"]);
    run.arg(process::target("fuzz")).arg("target").arg(corpus).arg("--").args(limits);
    // SQLite defines static tables of one name in several of its parts.
    run.env("ASAN_OPTIONS", "detect_odr_violation=0");
    process::run(run.env("WIREPROOF_FUZZ_TARGET", target))
}

fn known_targets() -> Result<Vec<String>, String> {
    let output = driver(&["list"]).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The program of `fuzz/src/main.rs`.
fn driver(arguments: &[&str]) -> Command {
    let mut command = process::command("cargo", &["run", "-q", "-p", "wireproof-fuzz", "--"]);
    command.args(arguments);
    command
}

/// The installed `cargo-fuzz`, or one installed now under `target/`.
fn tool() -> Result<PathBuf, String> {
    let own = process::target("tools/bin/cargo-fuzz");
    for candidate in [own.clone(), "cargo-fuzz".into()] {
        let probe = Command::new(&candidate).arg("--version").output();
        if probe.is_ok_and(|output| output.status.success()) {
            return Ok(candidate);
        }
    }
    let tools = process::target("tools");
    let mut install = process::command("cargo", &["install", "cargo-fuzz", "--locked", "--root"]);
    process::run(install.arg(tools))?;
    Ok(own)
}

fn has_nightly() -> bool {
    let probe = nightly(Path::new("rustc")).arg("--version").output();
    probe.is_ok_and(|output| output.status.success())
}

/// A command that uses the nightly toolchain instead of the one that built `xtask`, and links without
/// optimisation of the whole program.
fn nightly(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(process::root()).env("RUSTUP_TOOLCHAIN", "nightly");
    command
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "CARGO_TARGET_DIR"] {
        command.env_remove(variable);
    }
    command
}
