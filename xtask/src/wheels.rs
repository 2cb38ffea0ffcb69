//! `cargo xtask wheels`: the wheels of the Python package, in `target/wheels/`.
//!
//! A wheel has one module, with the code of the command in it. Every wheel is checked as it is built:
//!
//! | wheel for | is imported by |
//! |---|---|
//! | glibc on this machine | `python3`, in a new environment with nothing else in it |
//! | glibc on 64-bit ARM | Debian's Python in an emulator |
//! | musl on this machine | the interpreter of `--musl-python` |
//! | an interpreter without a lock | this interpreter |

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::emulated_python;
use crate::process::{self, at};
use crate::zig::{self, Zig};

/// What to build.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Build for these machines.
    #[arg(long, value_delimiter = ',', default_values = ["x86_64", "aarch64"])]
    machines: Vec<String>,
    /// Build for these C libraries.
    #[arg(long, value_delimiter = ',', default_values = ["gnu", "musl"])]
    libraries: Vec<String>,
    /// Import the wheel for musl on this machine with this interpreter, which is built for musl.
    #[arg(long, value_name = "PYTHON")]
    musl_python: Option<PathBuf>,
    /// Build for this interpreter without a global lock too, which the wheels of the stable interface do not serve.
    #[arg(long, value_name = "PYTHON")]
    free_threaded: Option<PathBuf>,
}

/// Builds a wheel per machine and C library, and imports the ones that run here.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let wheels = process::empty_folder("wheels")?;
    let mut targets = Vec::new();
    for machine in &options.machines {
        for library in &options.libraries {
            targets.push(format!("{machine}-unknown-linux-{library}"));
        }
    }
    let zig = Zig::install(&targets)?;
    for target in &targets {
        let wheel = build(&zig, target, None, &wheels)?;
        let package = check(&wheel)?;
        let is_of_this_machine = target.starts_with(ARCH);
        match (target.ends_with("gnu"), &options.musl_python) {
            (true, _) if is_of_this_machine => import(&wheel, "python3")?,
            (true, _) if target.starts_with("aarch64") => import_emulated(&package)?,
            (false, Some(python)) if is_of_this_machine => {
                import(&wheel, &python.to_string_lossy())?
            }
            _ => println!("not imported: this machine has no interpreter for it"),
        }
    }
    if let Some(python) = &options.free_threaded {
        let python = python.to_string_lossy();
        let target = format!("{ARCH}-unknown-linux-gnu");
        let wheel = build(&zig, &target, Some(&python), &wheels)?;
        check(&wheel)?;
        import(&wheel, &python)?;
    }
    Ok(())
}

/// Builds the wheel for a target, with the stable interface or for one interpreter, and returns its path.
fn build(
    zig: &Zig,
    target: &str,
    interpreter: Option<&str>,
    wheels: &Path,
) -> Result<PathBuf, String> {
    let library = target.rsplit('-').next().unwrap_or_default();
    let policy = POLICIES.iter().find(|(name, _)| *name == library);
    let (_, policy) = policy.ok_or_else(|| format!("there is no C library {library}"))?;
    println!(
        "\n=== {target}, {policy}{}",
        if interpreter.is_some() { ", without a lock" } else { "" }
    );
    let folder = wheels.join(if interpreter.is_some() { "free-threaded" } else { target });
    let mut maturin = zig.command("maturin", target)?;
    maturin.args(["build", "--locked", "--profile", "dist", "--zig", "--target", target]);
    maturin.args(["--manifest-path", "bindings/python/Cargo.toml", "--compression-level", "9"]);
    maturin.args(["--compatibility", policy, "--out"]).arg(&folder);
    if let Some(interpreter) = interpreter {
        maturin.args(["--interpreter", interpreter]);
    }
    process::run(&mut maturin)?;
    let mut built = fs::read_dir(&folder).map_err(|error| at(&folder, &error))?.flatten();
    let built = built.next().ok_or_else(|| format!("{} has no wheel", folder.display()))?.path();
    let wheel = wheels.join(built.file_name().unwrap_or_default());
    fs::rename(&built, &wheel).map_err(|error| at(&wheel, &error))?;
    fs::remove_dir(&folder).map_err(|error| at(&folder, &error))?;
    Ok(wheel)
}

/// Checks the size of a wheel and that its module names no folder of this machine, and returns a folder with its content.
fn check(wheel: &Path) -> Result<PathBuf, String> {
    let bytes = fs::metadata(wheel).map_err(|error| at(wheel, &error))?.len();
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!("{name}: {:.1} MB", bytes as f64 / 1e6);
    if bytes > MAX_WHEEL_BYTES {
        return Err(format!("{name} has more than {MAX_WHEEL_BYTES} bytes"));
    }
    let unpacked = process::empty_folder("wheel-check/unpacked")?;
    let mut unpack = process::command("python3", &["-m", "zipfile", "-e"]);
    process::run(unpack.arg(wheel).arg(&unpacked))?;
    let module = module_in(&unpacked.join("wireproof"))?;
    let bytes = fs::read(&module).map_err(|error| at(&module, &error))?;
    println!("its module: {:.1} MB", bytes.len() as f64 / 1e6);
    match zig::folder_in(&bytes) {
        Some(folder) => Err(format!("{name} contains {folder}")),
        None => Ok(unpacked),
    }
}

/// The native module of the package.
fn module_in(package: &Path) -> Result<PathBuf, String> {
    let mut files = fs::read_dir(package).map_err(|error| at(package, &error))?.flatten();
    let module = files.find(|file| file.file_name().to_string_lossy().starts_with("_wireproof."));
    module.map(|file| file.path()).ok_or_else(|| format!("{} has no module", package.display()))
}

/// Installs a wheel alone into a new environment, runs its command, and verifies an archive in Python.
fn import(wheel: &Path, python: &str) -> Result<(), String> {
    let folder = process::empty_folder("wheel-check/environment")?;
    process::run(process::command(python, &["-m", "venv"]).arg(&folder))?;
    let python = folder.join("bin/python").to_string_lossy().into_owned();
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"];
    process::run(process::command(&python, &install).arg(wheel))?;
    let command = folder.join("bin/wireproof").to_string_lossy().into_owned();
    process::run(&mut process::command(&command, &["--version"]))?;
    process::run(process::command(&command, &GENERATE).arg(&folder))?;
    process::run(process::command(&python, &["-c", VERIFY]).arg(&folder))
}

/// Does the same in an emulator, where `package` is the content of the wheel.
fn import_emulated(package: &Path) -> Result<(), String> {
    let python = || emulated_python::command(package);
    let folder = process::empty_folder("wheel-check/environment")?;
    process::run(python()?.args(["-c", COMMAND, "--version"]))?;
    process::run(python()?.args(["-c", COMMAND]).args(GENERATE).arg(&folder))?;
    process::run(python()?.args(["-c", VERIFY]).arg(&folder))
}

/// Runs the command as its script does.
const COMMAND: &str = "import sys, wireproof._command; sys.argv[0] = 'wireproof'; sys.exit(wireproof._command.main())";

/// Makes an archive in the folder of the next argument.
const GENERATE: [&str; 6] = ["corpus", "generate", "repository", "--records", "100", "--out"];

/// Verifies the archive in the folder of the first argument.
const VERIFY: &str = "
import json, pathlib, sys, wireproof
folder = pathlib.Path(sys.argv[1])
key = json.loads((folder / 'repository.json').read_text())['signing_key']
repo = wireproof.verify_repo((folder / 'repository.car').read_bytes(), key=key)
assert len(repo) == 100, repo
print('imported', wireproof.__version__, repo)
";

/// The C libraries, with the policies that their wheels follow.
const POLICIES: [(&str, &str); 2] = [("gnu", "manylinux_2_17"), ("musl", "musllinux_1_2")];

/// Maximum size of a wheel in bytes: docs/decisions/python-package.md.
const MAX_WHEEL_BYTES: u64 = 24_000_000;
