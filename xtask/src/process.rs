//! Running other programs from the root of the repository: what did they say, and did they succeed?

use std::io::{BufRead, BufReader};
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

/// Runs to the end, with our own standard output and error.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    check(command, status)
}

/// Runs to the end; each line of standard output is printed as it comes and shown to `watch`.
pub(crate) fn run_watched(
    command: &mut Command,
    mut watch: impl FnMut(&str),
) -> Result<(), String> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| not_started(command, &error))?;
    let output = child.stdout.take().expect("piped two lines up");
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|error| format!("reading from {}: {error}", line_of(command)))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        watch(&line);
    }
    let status = child.wait().map_err(|error| not_started(command, &error))?;
    check(command, status)
}

/// Runs to the end, and answers standard output as text.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| not_started(command, &error))?;
    check(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Starts without waiting for the end.
pub(crate) fn start(command: &mut Command) -> Result<Child, String> {
    command.spawn().map_err(|error| not_started(command, &error))
}

/// Asks a process to end, and waits until it has. Not as Ctrl-C does: what runs in the background may have
/// been told not to hear that.
pub(crate) fn terminate(child: &mut Child) -> Result<(), String> {
    let pid = child.id().to_string();
    run(&mut command("kill", &["-s", "TERM", &pid]))?;
    let status = child.wait().map_err(|error| format!("process {pid}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("process {pid}: {status}")) }
}

fn check(command: &Command, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", line_of(command))) }
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("{} cannot be started: {error}", line_of(command))
}

/// The command as one would type it.
fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
