//! `cargo xtask dist`: the distribution, built into `target/packages/`.
//!
//! | step | result |
//! |---|---|
//! | page | the page that verifies in a browser, which the command embeds |
//! | binaries | the static programs for each target, stripped, without paths of this machine |
//! | unit tests | unit tests of the libraries for 64-bit ARM, under qemu |
//! | archives | programs, manual pages, completion scripts, systemd unit and licences of a target; unpacked and tried |
//! | Windows | the command compiles; it is built on Windows by `.github/workflows/release.yml` |
//! | image | a container image with the programs for x86-64 alone; tried in its own root |

mod trial;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::zig::{self, Zig};
use crate::{page, process, programs};
use trial::Trial;

/// What to build.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Build for these targets.
    #[arg(long, value_delimiter = ',', default_values = TARGETS)]
    targets: Vec<String>,
    /// Do not run the unit tests for 64-bit ARM.
    #[arg(long)]
    no_tests: bool,
    /// Do not build the container image.
    #[arg(long)]
    no_image: bool,
}

/// Builds, checks and tests everything.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let tools = Tools::install(&options.targets)?;
    page::build()?;
    for target in &options.targets {
        println!("\n=== {target}");
        let binaries = tools.build(target)?;
        PROGRAMS
            .iter()
            .try_for_each(|(name, max_bytes)| check(&binaries.join(name), *max_bytes))?;
        let folder = tools.package(target, &binaries)?;
        let file = archive(&folder)?;
        check_len(&file, MAX_ARCHIVE)?;
        try_archive(target, &file)?;
        if target == AARCH64 && !options.no_tests {
            tools.test(target)?;
        }
    }
    println!("\n=== {WINDOWS}");
    process::run(tools.cargo("check", WINDOWS)?.args(DISTRIBUTED))?;
    if options.targets.iter().any(|target| target == X86_64) && !options.no_image {
        tools.image()
    } else {
        Ok(())
    }
}

/// The compilers and the emulator.
struct Tools {
    zig: Zig,
}

impl Tools {
    fn install(targets: &[String]) -> Result<Self, String> {
        let targets: Vec<String> = targets.iter().cloned().chain([WINDOWS.to_owned()]).collect();
        Ok(Self { zig: Zig::install(&targets)? })
    }

    /// `cargo zigbuild` for `target`.
    fn cargo(&self, command: &str, target: &str) -> Result<Command, String> {
        let mut cargo = self.zig.command("cargo-zigbuild", target)?;
        cargo.args([command, "--locked", "--target", target]);
        Ok(cargo)
    }

    /// Builds the programs and returns their folder.
    fn build(&self, target: &str) -> Result<PathBuf, String> {
        let mut build = self.cargo("zigbuild", target)?;
        build.env("WIREPROOF_PAGE", process::target("page/wireproof.html"));
        process::run(build.args(["--profile", "dist"]).args(DISTRIBUTED))?;
        Ok(process::target(target).join("dist"))
    }

    /// Runs the unit tests of the libraries under the emulator.
    fn test(&self, target: &str) -> Result<(), String> {
        let emulator = programs::find_or_install(&EMULATORS, "qemu-user-static")?;
        let runner = format!("CARGO_TARGET_{}_RUNNER", target.replace('-', "_").to_uppercase());
        let mut test = self.cargo("test", target)?;
        test.arg("--lib").args(TESTED.iter().flat_map(|package| ["-p", package]));
        process::run(test.env(runner, emulator).env("SIGNATURE_CLAIMS", EMULATED_CLAIMS))
    }

    /// Puts the programs and what belongs to them into one folder.
    fn package(&self, target: &str, binaries: &Path) -> Result<PathBuf, String> {
        let folder = process::target("packages").join(format!("wireproof-{target}"));
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| process::at(&folder, &error))?;
        }
        fs::create_dir_all(folder.join("completions"))
            .map_err(|error| process::at(&folder, &error))?;
        copy_programs(binaries, &folder)?;
        for file in FILES {
            let source = process::root().join(file);
            copy(&source, &folder.join(source.file_name().unwrap_or_default()))?;
        }
        let command = || launch(target, &binaries.join(COMMAND));
        process::run(command()?.arg("man").arg(folder.join("man")))?;
        for (shell, file) in COMPLETIONS {
            let script = process::output(command()?.args(["completions", shell]))?;
            let path = folder.join("completions").join(file);
            fs::write(&path, script).map_err(|error| process::at(&path, &error))?;
        }
        Ok(folder)
    }

    /// Builds the container image and runs its program.
    fn image(&self) -> Result<(), String> {
        println!("\n=== container image");
        let context = process::target("packages/image");
        fs::create_dir_all(context.join("state")).map_err(|error| process::at(&context, &error))?;
        copy_programs(&process::target(X86_64).join("dist"), &context)?;
        copy(Path::new(CERTIFICATES), &context.join("ca-certificates.crt"))?;
        copy(&process::root().join("packaging/Containerfile"), &context.join("Containerfile"))?;
        let buildah = programs::find_or_install(&["buildah"], "buildah")?;
        let storage = |command: &str| {
            let mut buildah = Command::new(&buildah);
            let folder = process::target("packages/containers");
            buildah.args(["--storage-driver", "vfs", "--root"]).arg(folder.join("root"));
            buildah.arg("--runroot").arg(folder.join("run")).arg(command);
            buildah
        };
        process::run(
            storage("build").args(["--isolation", "chroot", "--tag", IMAGE]).arg(&context),
        )?;
        let container = process::output(storage("from").arg(IMAGE))?;
        let files = process::empty_folder("packages/image-trial")?;
        let bench = process::target(X86_64).join("dist").join(BENCH);
        // Not at the image's own volume, which would cover it.
        let volume = format!("{}:{TRIAL}", files.display());
        let launch = |program: &str, variables: &[(&str, &str)]| {
            let mut run = storage("run");
            run.args(["--isolation", "chroot", "--user", "0", "--volume", &volume]);
            run.args(variables.iter().map(|(name, value)| format!("--env={name}={value}")));
            run.arg(container.trim()).arg(format!("/{program}"));
            run
        };
        let outcome =
            Trial { launch: &launch, network: &bench, files: &files, seen_as: TRIAL }.run(true);
        process::run(storage("rm").arg(container.trim()))?;
        let file = process::target("packages/wireproof-image.tar");
        let _ = fs::remove_file(&file);
        process::run(storage("push").arg(IMAGE).arg(format!("oci-archive:{}", file.display())))?;
        check_len(&file, MAX_IMAGE)?;
        outcome
    }
}

/// Refuses a binary that is too large, needs a dynamic loader, or names folders of this machine.
fn check(binary: &Path, max_bytes: usize) -> Result<(), String> {
    let bytes = fs::read(binary).map_err(|error| process::at(binary, &error))?;
    let contains = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    println!("{}: {} bytes", binary.display(), bytes.len());
    if bytes.len() > max_bytes {
        return Err(format!("{}: more than {max_bytes} bytes", binary.display()));
    }
    if contains("/lib/ld-") || contains("/lib64/ld-") {
        return Err(format!("{}: it needs a dynamic loader", binary.display()));
    }
    match zig::folder_in(&bytes) {
        Some(folder) => Err(format!("{}: it contains {folder}", binary.display())),
        None => Ok(()),
    }
}

/// Refuses a file that is too large.
fn check_len(file: &Path, max_bytes: u64) -> Result<(), String> {
    let bytes = fs::metadata(file).map_err(|error| process::at(file, &error))?.len();
    println!("{}: {bytes} bytes", file.display());
    if bytes > max_bytes {
        return Err(format!("{}: more than {max_bytes} bytes", file.display()));
    }
    Ok(())
}

/// Unpacks an archive into an empty folder and tries its programs there, without this machine's variables.
fn try_archive(target: &str, file: &Path) -> Result<(), String> {
    let folder = process::empty_folder("packages/trial")?;
    process::run(process::command("tar", &["-xzf"]).arg(file).arg("-C").arg(&folder))?;
    let programs = folder.join(format!("wireproof-{target}"));
    let command = |program: &str| launch(target, &programs.join(program));
    let can_start_itself = target.starts_with(env::consts::ARCH)
        || Command::new(programs.join(COMMAND)).arg("--version").output().is_ok();
    let launch = |program: &str, variables: &[(&str, &str)]| {
        let mut command = command(program).expect("the emulator was found for the manual pages");
        command.env_clear().envs(variables.iter().copied()).current_dir(&folder);
        command
    };
    let seen_as = folder.display().to_string();
    let bench = process::target(NATIVE).join("dist").join(BENCH);
    Trial { launch: &launch, network: &bench, files: &folder, seen_as: &seen_as }
        .run(can_start_itself)
}

/// The folder as a compressed archive next to it.
fn archive(folder: &Path) -> Result<PathBuf, String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = folder.with_file_name(format!("{name}.tar.gz"));
    let mut tar = process::command("tar", &["--sort=name", "--owner=0", "--group=0", "-czf"]);
    tar.arg(&file).arg("-C").arg(process::target("packages")).arg(name);
    process::run(&mut tar)?;
    Ok(file)
}

/// The command that runs `binary` here.
fn launch(target: &str, binary: &Path) -> Result<Command, String> {
    if target.starts_with(env::consts::ARCH) {
        return Ok(Command::new(binary));
    }
    let mut command = Command::new(programs::find_or_install(&EMULATORS, "qemu-user-static")?);
    command.arg(binary);
    Ok(command)
}

fn copy_programs(from: &Path, to: &Path) -> Result<(), String> {
    PROGRAMS.iter().try_for_each(|(name, _)| copy(&from.join(name), &to.join(name)))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| process::at(from, &error))
}

/// Random claims of the tests of signatures under the emulator, a fiftieth of the usual number.
const EMULATED_CLAIMS: &str = "4000";

const X86_64: &str = "x86_64-unknown-linux-musl";
const AARCH64: &str = "aarch64-unknown-linux-musl";
const WINDOWS: &str = "x86_64-pc-windows-gnu";
const TARGETS: [&str; 2] = [X86_64, AARCH64];
const EMULATORS: [&str; 2] = ["qemu-aarch64-static", "qemu-aarch64"];
/// Packages whose unit tests run under the emulator.
const TESTED: [&str; 7] = [
    "wireproof-kernels",
    "wireproof-codec",
    "wireproof-crypto",
    "wireproof-atproto",
    "wireproof-nostr",
    "wireproof-nostr-formats",
    "wireproof-verify",
];
/// The target of programs that run here without an emulator.
const NATIVE: &str = if cfg!(target_arch = "aarch64") { AARCH64 } else { X86_64 };
/// The packages of the programs, and the features that are distributed: the benchmark of archives, which measures the SQL engine, is not.
const DISTRIBUTED: [&str; 7] = [
    "-p",
    "wireproof-cli",
    "-p",
    "wireproof-archive-cli",
    "-p",
    "wireproof-bench-cli",
    "--features=wireproof-cli/full,wireproof-archive-cli/full",
];
/// The program of the benchmark and of the simulated network.
const BENCH: &str = "wireproof-bench";
/// The program that starts the others.
const COMMAND: &str = "wireproof";
/// The programs and their size limits in bytes.
const PROGRAMS: [(&str, usize); 3] =
    [(COMMAND, 33 << 20), ("wireproof-archive", 94 << 20), (BENCH, 20 << 20)];
/// Size limits in bytes of the compressed archive of a target, and of the image.
const MAX_ARCHIVE: u64 = 60 << 20;
const MAX_IMAGE: u64 = 64 << 20;
const FILES: [&str; 6] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "packaging/wireproof.service",
    "packaging/wireproof-serve.service",
];
/// The shells, and the names that they expect of their scripts.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "wireproof"),
    ("elvish", "wireproof.elv"),
    ("fish", "wireproof.fish"),
    ("powershell", "_wireproof.ps1"),
    ("zsh", "_wireproof"),
];
const IMAGE: &str = "wireproof";
/// Where the files of the trial are in the container.
const TRIAL: &str = "/trial";
/// The bundle of certificate authorities of Debian and its relatives.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
