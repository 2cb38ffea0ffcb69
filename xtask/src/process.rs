//! Programs run from the root of the repository.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the repository")
}

/// A path under `target/` of the repository.
pub(crate) fn target(path: &str) -> PathBuf {
    root().join("target").join(path)
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

/// Builds tests, examples and programs of the workspace, all together so that no dependency is built twice with
/// different features.
pub(crate) fn build_workspace() -> Result<(), String> {
    cargo(&["test", "--workspace", "--no-run"])
}

/// The path of a program or example that [`build_workspace`] has built. Stages do not build it again: they would wait
/// for those that run beside them.
pub(crate) fn program(path: &str) -> Result<String, String> {
    let program = target_folder()?.join("debug").join(path);
    match program.exists() {
        true => Ok(program.to_string_lossy().into_owned()),
        false => Err(format!("{} is missing: run `cargo xtask stage build`", program.display())),
    }
}

/// A command that runs in the root of the repository.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Runs a command to its end, with our own standard output and error.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    check(command, status)
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

/// User and system time of a process; zero where there is no `/proc`.
pub(crate) fn processor_time(pid: u32) -> Duration {
    ticks_in(&pid.to_string(), 11)
}

/// User and system time of the ended processes that this process has started, and of theirs.
pub(crate) fn processor_time_of_children() -> Duration {
    ticks_in("self", 13)
}

/// The sum of two fields of `/proc/…/stat`, the first of them `skipped` fields after the name.
fn ticks_in(process: &str, skipped: usize) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name may hold spaces.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(skipped).take(2);
    let ticks: u64 = ticks.filter_map(|number| number.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

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
    fn a_missing_process_has_no_processor_time() {
        assert_eq!(processor_time(u32::MAX), Duration::ZERO);
    }
}
