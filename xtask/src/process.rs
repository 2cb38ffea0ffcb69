//! Programs run from the root of the repository.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::layers;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the repository")
}

/// A path under `target/` of the repository.
pub(crate) fn target(path: &str) -> PathBuf {
    root().join("target").join(path)
}

/// An empty folder under `target/`.
pub(crate) fn empty_folder(path: &str) -> Result<PathBuf, String> {
    let folder = target(path);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| at(&folder, &error))?;
    Ok(folder)
}

/// What Cargo says of the workspace, without dependencies.
pub(crate) fn metadata() -> Result<Value, String> {
    let text = output(&mut command("cargo", &["metadata", "--format-version", "1", "--no-deps"]))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// The target folder of the workspace, which may lie elsewhere than under its root.
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    let metadata = metadata()?;
    Ok(metadata["target_directory"].as_str().ok_or("cargo metadata without a target")?.into())
}

/// The packages and features of a command of Cargo. Within one selection each library is built once, and both share the
/// libraries of others: `conformance/Cargo.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The default features, and the packages that need Rust and a C compiler alone.
    Default,
    /// Every package, and every feature of the command.
    All,
}

impl Selection {
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Default => &[
                "--workspace",
                "--exclude=wireproof-interop",
                "--exclude=wireproof-js",
                "--exclude=wireproof-page",
                "--exclude=wireproof-python",
                "--exclude=wireproof-query",
            ],
            Self::All => &["--workspace", FULL],
        }
    }

    /// `cargo test` of these targets.
    pub(crate) fn test(self, targets: &[&str]) -> Command {
        self.cargo("test", targets)
    }

    fn cargo(self, subcommand: &str, targets: &[&str]) -> Command {
        command("cargo", &[&[subcommand][..], self.arguments(), targets].concat())
    }
}

/// The packages of the programs, with every feature.
pub(crate) const PROGRAM_PACKAGES: [&str; 7] =
    ["-p", "wireproof-cli", "-p", "wireproof-archive-cli", "-p", "wireproof-bench-cli", FULL];

/// Every feature of each program.
const FULL: &str =
    "--features=wireproof-cli/full,wireproof-archive-cli/full,wireproof-bench-cli/full";

/// Builds the tests of the default features, and the command; not the examples, which lints check.
pub(crate) fn build_default() -> Result<(), String> {
    run(&mut Selection::Default.test(&["--lib", "--bins", "--tests", "--no-run"]))
}

/// Builds the programs with every feature, the Python module, and the tests that need them.
pub(crate) fn build_all() -> Result<(), String> {
    run(&mut Selection::All.cargo("build", &PROGRAMS))?;
    run(Selection::All.test(&FEATURE_TESTS).arg("--no-run"))
}

/// The programs that [`build_all`] builds. With examples among them Cargo selects the same features as for tests.
const PROGRAMS: [&str; 6] = [
    "--bin=wireproof",
    "--bin=wireproof-archive",
    "--bin=wireproof-bench",
    "--bin=wireproof-demo",
    "--example=nostr_encoded",
    "--example=nostr_verdict_texts",
];

/// The tests that [`build_all`] builds; `module` builds the Python module.
const FEATURE_TESTS: [&str; 7] = [
    "--lib",
    "--test=commands",
    "--test=files",
    "--test=hidden",
    "--test=interop",
    "--test=live",
    "--test=module",
];

/// Cargo's arguments for the test targets of the `wanted` packages of [`Selection::Default`]. They name targets because a selection
/// of packages has other features. The command's own target is left out: Cargo would link it while other tests start it.
pub(crate) fn test_targets(wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, String> {
    let metadata = metadata()?;
    let mut arguments = Vec::new();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    for package in packages.filter(|package| is_default(package) && wanted(&layers::name(package)))
    {
        for target in package["targets"].as_array().into_iter().flatten() {
            let name = target["name"].as_str().unwrap_or_default();
            match target["kind"][0].as_str() {
                Some("test") => arguments.push(format!("--test={name}")),
                Some("bin") if target["required-features"].is_null() => {
                    arguments.push(format!("--bin={name}"));
                }
                _ => {}
            }
        }
    }
    Ok(arguments)
}

/// Whether [`Selection::Default`] has a package.
fn is_default(package: &Value) -> bool {
    let excluded = package["name"].as_str().map(|name| format!("--exclude={name}"));
    !excluded.is_some_and(|argument| Selection::Default.arguments().contains(&&*argument))
}

/// The path of a program or example that [`build_all`] has built. Stages do not build it again: they would wait for the
/// stages that run at the same time.
pub(crate) fn program(path: &str) -> Result<String, String> {
    let program = target_folder()?.join("debug").join(path);
    if program.exists() {
        Ok(program.to_string_lossy().into_owned())
    } else {
        Err(format!("{} is missing: run `cargo xtask stage build-all`", program.display()))
    }
}

/// A command that runs in the root of the repository, without what Cargo sets for this program: build scripts would see other
/// values than in a build without it, and their crates be built again.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    for (name, _) in std::env::vars_os() {
        let is_of_package = |name: &str| OF_PACKAGE.iter().any(|start| name.starts_with(start));
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Starts of names of variables that describe the package of this program.
const OF_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Runs a command to its end, with our own standard output and error.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    check(command, status)
}

/// Runs a command to its end, which is an error after `limit`. Processes that it has started are not ended.
pub(crate) fn run_within(limit: Duration, command: &mut Command) -> Result<(), String> {
    let (mut child, started) = (start(command)?, Instant::now());
    loop {
        let ended = child.try_wait().map_err(|error| format!("{}: {error}", line_of(command)))?;
        match ended {
            Some(status) => return check(command, status),
            None if started.elapsed() < limit => std::thread::sleep(Duration::from_millis(100)),
            None => {
                let _ = child.kill();
                return Err(format!("{}: not ended after {limit:?}", line_of(command)));
            }
        }
    }
}

/// Runs `cargo` to its end.
pub(crate) fn cargo(args: &[&str]) -> Result<(), String> {
    run(&mut command("cargo", args))
}

/// Runs a command to its end and returns its standard output as text.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| not_started(command, &error))?;
    check(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Starts a command without waiting for its end.
pub(crate) fn start(command: &mut Command) -> Result<Child, String> {
    command.spawn().map_err(|error| not_started(command, &error))
}

/// Sends SIGTERM to a process and waits for its end. SIGINT would not do: background children of a shell
/// ignore it.
pub(crate) fn terminate(child: &mut Child) -> Result<(), String> {
    let pid = child.id().to_string();
    run(&mut command("kill", &["-s", "TERM", &pid]))?;
    let status = child.wait().map_err(|error| format!("process {pid}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("process {pid}: {status}")) }
}

/// The usage of a process so far; zero where there is no `/proc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Number of pages that were mapped on first use.
    pub(crate) page_faults: u64,
    pub(crate) resident_bytes: u64,
    pub(crate) peak_bytes: u64,
}

impl Usage {
    /// The usage of a process.
    pub(crate) fn of(pid: u32) -> Self {
        let process = pid.to_string();
        let stat = numbers_in_stat(&process);
        let number = |at: usize| stat.get(at).copied().unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            kilobytes.unwrap_or(0_u64) << 10
        };
        Self {
            user: ticks(number(USER_TIME)),
            system: ticks(number(USER_TIME + 1)),
            page_faults: number(MINOR_FAULTS),
            resident_bytes: bytes("VmRSS:"),
            peak_bytes: bytes("VmHWM:"),
        }
    }

    /// User and system time.
    pub(crate) fn processor_time(&self) -> Duration {
        self.user + self.system
    }
}

/// User and system time of the ended processes that this process has started, and of theirs.
pub(crate) fn processor_time_of_children() -> Duration {
    ticks(numbers_in_stat("self").iter().skip(USER_TIME + 2).take(2).sum())
}

/// The fields of `/proc/…/stat` after the name; a field that is no number is 0.
fn numbers_in_stat(process: &str) -> Vec<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name may hold spaces.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect()
}

fn ticks(count: u64) -> Duration {
    Duration::from_millis(count * 1000 / TICKS_PER_SECOND)
}

/// Fields of `/proc/…/stat` after the name: system time follows user time, and both times of ended children.
const MINOR_FAULTS: usize = 7;
const USER_TIME: usize = 11;

/// The unit of `/proc`, whatever the kernel's own clock.
const TICKS_PER_SECOND: u64 = 100;

/// An error of the file system as text, with the path.
pub(crate) fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn check(command: &Command, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", line_of(command))) }
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start {}: {error}", line_of(command))
}

/// The command line.
fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_command_that_does_not_end_is_an_error() {
        let limit = Duration::from_millis(300);
        let error = run_within(limit, &mut command("sleep", &["60"])).unwrap_err();
        assert_eq!(error, "sleep 60: not ended after 300ms");
        assert_eq!(run_within(Duration::from_secs(60), &mut command("true", &[])), Ok(()));
        assert!(run_within(limit, &mut command("false", &[])).is_err());
    }

    #[test]
    fn a_missing_process_has_used_nothing() {
        assert_eq!(Usage::of(u32::MAX), Usage::default());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_uses_memory_and_time() {
        let usage = Usage::of(std::process::id());
        assert!(usage.resident_bytes > 0 && usage.peak_bytes >= usage.resident_bytes, "{usage:?}");
        assert!(usage.page_faults > 0, "{usage:?}");
    }
}
