//! The repository's commands: `cargo xtask COMMAND`. Their tools are set up under `target/`.

#![forbid(unsafe_code)]

mod browser;
mod check;
mod dist;
mod documents;
mod emulated_python;
mod findings;
mod fuzz;
mod interop;
mod js;
mod js_measured;
mod layers;
mod left_out;
mod mutants;
#[cfg(test)]
mod package_counts;
#[cfg(test)]
mod package_files;
mod page;
mod peers;
mod process;
mod programs;
mod python_package;
mod readers;
mod server;
#[cfg(test)]
mod shared_builds;
mod soak;
mod speed;
mod stages;
mod toolchains;
mod venv;
mod verdicts;
mod wheels;
mod words;
mod zig;

use std::process::ExitCode;

use clap::Parser;

/// Commands of the repository.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
enum Command {
    /// Run the tests of the default features; with --all, everything that CI runs.
    Test(stages::Options),
    /// Run one stage of `test` alone.
    Stage(stages::Alone),
    /// Check the format, layers and lints, and run the unit tests of what changed.
    Check,
    /// Run the tests with other projects' servers and readers.
    Interop(interop::Options),
    /// Have Python libraries read the Nostr events that we write.
    Readers,
    /// Run the tests of the Python package in the oldest and the newest Python that are here.
    Python(python_package::Options),
    /// Build the npm package, and test it in Node and in Chromium.
    Js(js::Options),
    /// Build the page that verifies in a browser, and test it in Chromium.
    Page(page::Options),
    /// Build the wheels of the Python package, and import each where this machine can.
    Wheels(wheels::Options),
    /// Count the phrases that our documents overuse.
    Words,
    /// Check every dependency between our crates against the layer table.
    Layers,
    /// Run fuzz targets under libFuzzer, or under the plain driver without a nightly toolchain.
    Fuzz(fuzz::Options),
    /// Run the reliability tests at full length.
    Soak(soak::Options),
    /// Run the scripts that state what other projects' software does with valid input.
    Findings(findings::Options),
    /// Measure `follow`: alone, into each destination, or next to another program.
    #[command(subcommand)]
    Speed(speed::Measurement),
    /// Build what is distributed: static binaries, archives, a container image.
    Dist(dist::Options),
    /// Run the tests against every mutant of the crates that decide verdicts.
    Mutants(mutants::Options),
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Test(options) => stages::test(&options),
        Command::Stage(alone) => stages::run_alone(&alone),
        Command::Check => check::run(),
        Command::Interop(options) => interop::run(&options),
        Command::Readers => process::build_all().and_then(|()| readers::run()),
        Command::Python(options) => python_package::run(&options),
        Command::Js(options) => js::run(&options),
        Command::Page(options) => page::run(&options),
        Command::Wheels(options) => wheels::run(&options),
        Command::Words => words::check(),
        Command::Layers => layers::check_workspace(),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Findings(options) => findings::run(&options),
        Command::Speed(measurement) => speed::measure(&measurement),
        Command::Dist(options) => dist::run(&options),
        Command::Mutants(options) => mutants::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
