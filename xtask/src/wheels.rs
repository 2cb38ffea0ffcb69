//! `cargo xtask wheels`: the wheels of the Python package, in `target/wheels/`.
//!
//! A wheel has one module, with the code of the command in it.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::process::{self, at};
use crate::venv;

/// What to build.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Build for these machines.
    #[arg(long, value_delimiter = ',', default_values = ["x86_64", "aarch64"])]
    machines: Vec<String>,
    /// Build for these C libraries.
    #[arg(long, value_delimiter = ',', default_values = ["gnu", "musl"])]
    libraries: Vec<String>,
}

/// Builds a wheel for each machine and C library, and imports those that run here.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let wheels = process::empty_folder("wheels")?;
    let python =
        venv::python(&process::target("wheel-tools"), "python3", &["packaging/requirements.txt"])?;
    for machine in &options.machines {
        for library in &options.libraries {
            build(&python, machine, library, &wheels)?;
        }
    }
    let mut built: Vec<PathBuf> = fs::read_dir(&wheels)
        .map_err(|error| at(&wheels, &error))?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    built.sort();
    for wheel in built {
        check(&wheel)?;
    }
    Ok(())
}

fn build(python: &Path, machine: &str, library: &str, wheels: &Path) -> Result<(), String> {
    let policy = POLICIES.iter().find(|(name, _)| *name == library);
    let (_, policy) = policy.ok_or_else(|| format!("there is no C library {library}"))?;
    let target = format!("{machine}-unknown-linux-{library}");
    println!("\n=== {target}, {policy}");
    process::run(&mut process::command("rustup", &["target", "add", &target]))?;
    let arguments = ["-m", "maturin", "build", "--locked", "--profile", "dist", "--zig"];
    let mut maturin = process::command(&python.to_string_lossy(), &arguments);
    maturin.args(["--manifest-path", "bindings/python/Cargo.toml", "--target", &target]);
    maturin.args(["--compatibility", policy, "--out"]).arg(wheels);
    process::run(&mut maturin)
}

/// Checks the size of a wheel, and imports it in an environment of its own if this machine can run it.
fn check(wheel: &Path) -> Result<(), String> {
    let bytes = fs::metadata(wheel).map_err(|error| at(wheel, &error))?.len();
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!("{name}: {:.1} MB", bytes as f64 / 1e6);
    if bytes > MAX_WHEEL_BYTES {
        return Err(format!("{name} has more than {MAX_WHEEL_BYTES} bytes"));
    }
    if !name.contains("manylinux") || !name.contains(std::env::consts::ARCH) {
        return Ok(());
    }
    let folder = process::empty_folder("wheel-check")?;
    let python = folder.join("bin/python");
    process::run(process::command("python3", &["-m", "venv"]).arg(&folder))?;
    let python = python.to_string_lossy();
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"];
    process::run(process::command(&python, &install).arg(wheel))?;
    let script = "import wireproof; print('imported', wireproof.__version__)";
    process::run(&mut process::command(&python, &["-c", script]))?;
    let command = folder.join("bin/wireproof");
    process::run(&mut process::command(&command.to_string_lossy(), &["--version"]))
}

/// The C libraries, with the policy that a wheel for each follows.
const POLICIES: [(&str, &str); 2] = [("gnu", "manylinux_2_17"), ("musl", "musllinux_1_2")];

/// Maximum size of a wheel in bytes.
const MAX_WHEEL_BYTES: u64 = 15_000_000;
