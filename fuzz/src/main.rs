//! `wireproof-fuzz`: the plain driver, and the files that libFuzzer begins with.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use wireproof_fuzz::driver::{self, Effort};
use wireproof_fuzz::{TARGETS, Target, seeds};

/// Runs fuzz targets without coverage, on any toolchain.
#[derive(Debug, Parser)]
#[command(bin_name = "wireproof-fuzz")]
enum Command {
    /// List the targets.
    List,
    /// Run targets on their seeds and on mutations of them.
    Run {
        /// Seconds for each target.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Seed of the mutations.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Folder for inputs that fail.
        #[arg(long, default_value = "findings")]
        findings: PathBuf,
        /// Targets to run; all by default.
        targets: Vec<String>,
    },
    /// Write the seeds of a target into a folder.
    Seeds {
        /// The target.
        target: String,
        /// The folder.
        folder: PathBuf,
    },
    /// Save the inputs of a folder as the corpus of a target that the repository keeps.
    Save {
        /// The target.
        target: String,
        /// The folder.
        folder: PathBuf,
        /// Maximum size of the saved corpus in bytes.
        #[arg(long, default_value_t = 16 << 10)]
        max_bytes: usize,
    },
}

fn main() -> ExitCode {
    match execute(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wireproof-fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> Result<(), String> {
    match command {
        Command::List => TARGETS.iter().for_each(|target| println!("{}", target.name)),
        Command::Run { seconds, seed, findings, targets } => {
            for target in chosen(&targets)? {
                let effort = Effort::Time(Duration::from_secs(seconds));
                let inputs = driver::run(target, effort, seed, &findings).map_err(|finding| {
                    format!(
                        "{}: a property does not hold for {}",
                        finding.target,
                        finding.path.display()
                    )
                })?;
                println!("{}: {inputs} inputs", target.name);
            }
        }
        Command::Seeds { target, folder } => {
            let target = find(&target)?;
            seeds::write(target.name, &folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Command::Save { target, folder, max_bytes } => {
            let target = find(&target)?;
            let count = seeds::save(target.name, &folder, max_bytes)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            println!("{}: {count} inputs", target.name);
        }
    }
    Ok(())
}

/// The named targets, or all.
fn chosen(names: &[String]) -> Result<Vec<Target>, String> {
    match names {
        [] => Ok(TARGETS.to_vec()),
        names => names.iter().map(|name| find(name)).collect(),
    }
}

fn find(name: &str) -> Result<Target, String> {
    Target::find(name).ok_or_else(|| {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        format!("unknown target `{name}`; targets are {}", known.join(", "))
    })
}
