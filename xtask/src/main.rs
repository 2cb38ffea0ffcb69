//! Repository chores: what must hold, and how is it checked?
//!
//! | command | what it does |
//! |---|---|
//! | `cargo xtask test [--without go,python,node]` | everything that CI runs |
//! | `cargo xtask interop [--without go]` | the tests with other people's servers and readers alone |
//! | `cargo xtask readers` | has other languages' libraries read the events that we write |
//! | `cargo xtask layers` | holds every dependency between our crates against the layer table |
//! | `cargo xtask fuzz [--seconds N] [TARGET…]` | runs the fuzz targets, a minute each |
//! | `cargo xtask soak [--speed] [TEST…]` | runs the long tests whole, or measures `follow` |
//!
//! What needs setting up is set up under `target/`.

#![forbid(unsafe_code)]

mod browser;
mod documents;
mod fuzz;
mod indigo;
mod interop;
mod layers;
mod peers;
mod process;
mod readers;
mod room;
mod soak;
mod stages;
mod tally;
mod toolchains;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::from(1),
        Err(Failure::Found(message)) => {
            eprintln!("xtask: {message}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            eprintln!("xtask: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Why a command ends badly.
#[derive(Debug)]
enum Failure {
    /// The check found something, and has said what.
    Told,
    /// The check found something.
    Found(String),
    /// The command was called wrongly.
    Usage(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Found(message)
    }
}

fn run(args: &[&str]) -> Result<(), Failure> {
    match args {
        ["test", options @ ..] => {
            let without = toolchains::Without::parse(options).map_err(Failure::Usage)?;
            return if stages::test(&without) { Ok(()) } else { Err(Failure::Told) };
        }
        ["interop", options @ ..] => {
            interop::run(&toolchains::Without::parse(options).map_err(Failure::Usage)?)?;
        }
        ["readers"] => readers::run(&toolchains::Without::default(), &mut tally::Tally::default())?,
        ["layers"] => layers::check_workspace()?,
        ["fuzz", options @ ..] => {
            fuzz::run(&fuzz::Options::parse(options).map_err(Failure::Usage)?)?;
        }
        ["soak", options @ ..] => {
            soak::run(&soak::Options::parse(options).map_err(Failure::Usage)?)?;
        }
        ["help" | "--help" | "-h"] => println!("{USAGE}"),
        [] => return Err(Failure::Usage("a command is missing".to_owned())),
        [command, ..] => return Err(Failure::Usage(format!("no command is like `{command} …`"))),
    }
    Ok(())
}

const USAGE: &str = "\
cargo xtask test [--without go,python,node]   everything that CI runs
cargo xtask interop [--without go]            the tests with other people's servers alone
cargo xtask readers                           readers of events in Python alone
cargo xtask layers                            the layer check alone
cargo xtask fuzz [--seconds 60] [TARGET…]     the fuzz targets, on the nightly toolchain
cargo xtask soak [TEST…]                      the reliability tests, whole: an hour
cargo xtask soak --speed                      how fast `follow --verify` follows a simulated relay";
