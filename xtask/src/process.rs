//! Programs run from the root of the repository.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the repository")
}

/// A path under `target/` of the repository.
pub(crate) fn target(path: &str) -> PathBuf {
    root().join("target").join(path)
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
