//! How is somebody else's program started, and how does it surely end?
//!
//! A shell stands between us and the program, in a process group of their own. It waits for its input
//! to end, which happens when the [`Program`] is dropped and also when this process is killed, and then
//! kills the group:
//!
//! ```text
//! test ──pipe──> sh ──starts──> program
//!                 └─ at the end of the pipe: kill -KILL 0
//! ```

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use crate::http::Http;

/// A running program; dropping it kills it.
#[derive(Debug)]
pub struct Program {
    name: String,
    shell: Child,
    /// While this is open the program runs.
    lifeline: Option<ChildStdin>,
    log: PathBuf,
}

impl Program {
    /// Starts `command`, whose output is appended to `log`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(name: &str, command: &Command, log: &Path) -> Self {
        let out = append(log).expect("a log");
        Self::spawn(name, command, log, Stdio::from(out))
    }

    /// Starts `command`, and hands over its standard output; only its errors are appended to `log`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_heard(name: &str, command: &Command, log: &Path) -> (Self, ChildStdout) {
        let mut program = Self::spawn(name, command, log, Stdio::piped());
        let out = program.shell.stdout.take().expect("piped one line up");
        (program, out)
    }

    fn spawn(name: &str, command: &Command, log: &Path, out: Stdio) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", KEEPER, name]).arg(command.get_program()).args(command.get_args());
        for (variable, value) in command.get_envs() {
            shell.env(variable, value.unwrap_or_default());
        }
        if let Some(dir) = command.get_current_dir() {
            shell.current_dir(dir);
        }
        shell.process_group(0).stdin(Stdio::piped()).stdout(out);
        shell.stderr(append(log).expect("a log"));
        let started = shell.spawn();
        let mut shell = started.unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let lifeline = shell.stdin.take();
        Self { name: name.to_owned(), shell, lifeline, log: log.to_owned() }
    }

    /// Waits until `url` answers with success.
    ///
    /// # Panics
    /// If the program ends, or that takes too long.
    pub async fn wait_for(&mut self, url: &str) {
        let (http, patience) = (Http::default(), Instant::now() + PATIENCE);
        while !http.is_well(url).await {
            let ended = self.shell.try_wait().expect("the state of a child");
            let complaint = || self.last_words();
            assert!(ended.is_none(), "{} ended before it was ready: {}", self.name, complaint());
            assert!(Instant::now() < patience, "{} is not ready: {}", self.name, complaint());
            tokio::time::sleep(POLL).await;
        }
    }

    /// Kills it, as a power cut would, and waits until it is gone.
    pub fn kill(self) {
        drop(self);
    }

    /// The end of its log.
    fn last_words(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let end = String::from_utf8_lossy(&log[log.len().saturating_sub(2_000)..]).into_owned();
        format!("{end}\nsee {}", self.log.display())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.shell.wait();
    }
}

fn append(log: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(log)
}

/// A port of 127.0.0.1 that was free a moment ago. What listens there must know its number beforehand,
/// and keep it when it is started again.
///
/// # Panics
/// If this machine has none.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Starts the program, waits for the end of the input, and kills the group; the program's own end is the
/// group's too.
const KEEPER: &str = r#"("$@"; kill -KILL 0) </dev/null & read -r _; kill -KILL 0"#;

/// How long a program may take to be ready on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};

    use super::*;

    fn start(script: &str) -> (Program, ChildStdout, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (program, out) = Program::start_heard("script", &command, &dir.path().join("log"));
        (program, out, dir)
    }

    #[test]
    fn a_program_and_what_it_started_end_when_it_is_dropped() {
        let (program, out, _dir) = start("sleep 600 & echo $$; wait");
        let mut out = BufReader::new(out);
        out.read_line(&mut String::new()).unwrap();
        program.kill();
        // The pipe closes when the last one of the group is gone.
        assert_eq!(out.read_to_end(&mut Vec::new()).unwrap(), 0);
    }

    #[tokio::test]
    #[should_panic(expected = "script ended before it was ready: no port is free")]
    async fn a_program_that_ends_before_it_is_ready_is_told_with_its_last_words() {
        let (mut program, _out, _dir) = start("echo no port is free >&2; exit 1");
        program.wait_for(&format!("http://127.0.0.1:{}/", free_port())).await;
    }
}
