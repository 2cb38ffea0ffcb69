//! The installed programs of other projects: which of them exist, and how they are started and stopped.
//!
//! `cargo xtask test` installs them and names the folder in `WIREPROOF_INTEROP`. A test whose programs are
//! missing is left out, which is not the same as passed; both outcomes are recorded
//! ([`conformance::record`]).
//!
//! A shell runs between the test and the program, in a separate process group. It waits for the end of
//! its input, which occurs when the [`Program`] is dropped or the test process is killed, and
//! then kills the group:
//!
//! ```text
//! test ──pipe──> sh ──starts──> program
//!                 └─ at the end of the pipe: kill -KILL 0
//! ```

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::http::Http;

/// A group of programs that is installed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The PDS and the PLC directory, which need Node.
    Pds,
    /// The PDS of arroba, which needs Python.
    Arroba,
    /// The relay, which needs Go.
    Relay,
    /// The readers, which need Node.
    Readers,
    /// The labeler of Skyware, which needs Node.
    Labeler,
    /// PostgreSQL, a package of Node.
    Postgres,
    /// The server of NATS, which needs Go.
    Nats,
    /// The server of S3, which needs Go.
    S3,
    /// The server of Azure blobs, a package of Node.
    Azure,
    /// Apache Kafka, which needs Java.
    Kafka,
    /// The relay of rust-nostr, which Cargo builds.
    NostrRelay,
    /// A program with nostrdb.
    Nostrdb,
    /// A Python client of hosted Jetstream archives.
    Jetstream,
    /// The Go client of Jetstream's authors.
    JetstreamClient,
    /// Readers with the SDK of Python.
    SdkPython,
    /// Readers with crates, which Cargo builds.
    SdkRust,
}

impl Part {
    /// A path that exists once the part is installed.
    fn product(self) -> &'static str {
        match self {
            Self::Pds => "pds/node_modules",
            Self::Arroba => "arroba/venv/bin/python",
            Self::Relay => "relay/verify",
            Self::Readers => "readers/node_modules",
            Self::Labeler => "labeler/node_modules",
            Self::Postgres => "postgres/node_modules",
            Self::Nats => "nats/nats-server",
            Self::S3 => "s3/versitygw",
            Self::Azure => "azure/node_modules",
            Self::Kafka => "kafka/lib",
            Self::NostrRelay => "nostr/nostr-relay",
            Self::Nostrdb => "nostrdb/store-events",
            Self::Jetstream => "jetstream/made-from",
            Self::JetstreamClient => "jetstream-go/jetstream-client",
            Self::SdkPython => "sdk-python/venv/bin/python",
            Self::SdkRust => "sdk-rust/sdk-rust",
        }
    }

    /// The toolchain without which it is left out, although it may have been installed before.
    fn toolchain(self) -> Option<&'static str> {
        match self {
            Self::Pds | Self::Readers | Self::Labeler | Self::Postgres | Self::Azure => {
                Some("node")
            }
            Self::Arroba => Some("python"),
            Self::Kafka => Some("java"),
            Self::Jetstream | Self::SdkPython => Some("python"),
            Self::Relay | Self::Nats | Self::S3 | Self::JetstreamClient => None,
            Self::NostrRelay | Self::Nostrdb | Self::SdkRust => None,
        }
    }
}

/// The installed programs, and a folder for the logs of one test.
#[derive(Clone, Debug)]
pub struct Kit {
    dir: PathBuf,
    logs: PathBuf,
}

impl Kit {
    /// Opens the kit for the test `test` and records that it runs; `None` records that it is left out.
    /// Called by [`kit!`](crate::kit!), which knows the name of the test.
    ///
    /// # Panics
    /// If the folder for logs cannot be created.
    pub fn open(test: &str, parts: &[Part]) -> Option<Self> {
        let dir = std::env::var_os("WIREPROOF_INTEROP").filter(|dir| !dir.is_empty());
        let dir = dir.map(PathBuf::from);
        let has_all = |dir: &PathBuf| parts.iter().all(|part| dir.join(part.product()).exists());
        let without = std::env::var("WIREPROOF_WITHOUT").unwrap_or_default();
        let is_left_out = |toolchain: &&str| without.split(',').any(|name| name == *toolchain);
        let missing = parts.iter().filter_map(|part| part.toolchain()).find(is_left_out);
        let dir = dir.filter(has_all).filter(|_| missing.is_none());
        conformance::record(test, missing.unwrap_or("WIREPROOF_INTEROP"), dir.is_some());
        let dir = dir?;
        let logs = dir.join("logs").join(test.replace("::", "."));
        // Remove the logs of an earlier run.
        let _ = fs::remove_dir_all(&logs);
        fs::create_dir_all(&logs).expect("a folder for logs");
        Some(Self { dir, logs })
    }

    /// A path in the folder of programs.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }
    /// The program that verifies repositories and frames with indigo.
    pub fn verifier(&self) -> PathBuf {
        self.path("relay/verify")
    }

    /// The program that stores events in a database of nostrdb.
    pub fn nostrdb(&self) -> PathBuf {
        self.path(Part::Nostrdb.product())
    }

    /// The interpreter with a client of hosted Jetstream archives, and the program that reads one.
    pub fn jetstream_reader(&self) -> (PathBuf, PathBuf) {
        (self.path("jetstream/venv/bin/python"), self.path("jetstream/read.py"))
    }

    /// The log file of a program.
    pub(crate) fn log(&self, program: &str) -> PathBuf {
        self.logs.join(format!("{program}.log"))
    }

    /// The Node binary of the packages in `folder`, or else the system's.
    pub(crate) fn node(&self, folder: &Path) -> PathBuf {
        let own = folder.join("node_modules/.bin/node");
        if own.exists() { own } else { PathBuf::from("node") }
    }
}

/// Opens the [`Kit`] for the enclosing test, or returns from that test after recording that it is left
/// out.
#[macro_export]
macro_rules! kit {
    ($($part:ident),+) => {
        match $crate::program::Kit::open(
            ::conformance::test_name!(),
            &[$($crate::program::Part::$part),+],
        ) {
            Some(kit) => kit,
            None => return,
        }
    };
}

/// A running program; dropping it kills it.
#[derive(Debug)]
pub struct Program {
    name: String,
    shell: Child,
    /// The program runs while this is open.
    lifeline: Option<ChildStdin>,
    log: PathBuf,
    is_paused: bool,
}

impl Program {
    /// Starts `command` and appends its output to `log`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(name: &str, command: &Command, log: &Path) -> Self {
        let out = append(log).expect("a log");
        Self::spawn(name, command, log, Stdio::from(out))
    }

    /// Starts `command` and returns its standard output; its standard error is appended to `log`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_piped(name: &str, command: &Command, log: &Path) -> (Self, ChildStdout) {
        let mut program = Self::spawn(name, command, log, Stdio::piped());
        let out = program.shell.stdout.take().expect("standard output is piped");
        (program, out)
    }

    fn spawn(name: &str, command: &Command, log: &Path, out: Stdio) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", SHELL_SCRIPT, name]).arg(command.get_program()).args(command.get_args());
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
        Self { name: name.to_owned(), shell, lifeline, log: log.to_owned(), is_paused: false }
    }

    /// Waits until `url` responds with success.
    ///
    /// # Panics
    /// If the program ends or the wait times out.
    pub async fn wait_for(&mut self, url: &str) {
        let http = Http::default();
        self.wait_until(async || http.is_ok(url).await).await;
    }

    /// Waits until the program is ready.
    ///
    /// # Panics
    /// If the program ends or the wait times out.
    pub async fn wait_until(&mut self, is_ready: impl AsyncFn() -> bool) {
        let deadline = Instant::now() + READY_TIMEOUT;
        while !is_ready().await {
            let ended = self.shell.try_wait().expect("the state of a child");
            let last_output = || self.end_of_log();
            assert!(ended.is_none(), "{} ended before it was ready: {}", self.name, last_output());
            assert!(Instant::now() < deadline, "{} is not ready: {}", self.name, last_output());
            tokio::time::sleep(POLL).await;
        }
    }

    /// Kills the program without notice and waits for its end.
    pub fn kill(self) {
        drop(self);
    }

    /// Stops the processes of the program where they are, or lets them go on.
    ///
    /// # Panics
    /// If they take no signals.
    pub(crate) fn pause(&mut self, is_paused: bool) {
        let signal = if is_paused { "STOP" } else { "CONT" };
        let group = format!("-{}", self.shell.id());
        let sent = Command::new("kill").args(["-s", signal, "--", &group]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{} takes no signals", self.name);
        self.is_paused = is_paused;
    }

    /// Kills a program, if it runs, and waits until its port is closed: the system ends a large process a moment later.
    ///
    /// # Panics
    /// If the port stays open.
    pub(crate) fn end(program: Option<Self>, port: u16) {
        let Some(program) = program else { return };
        let name = program.name.clone();
        program.kill();
        let deadline = Instant::now() + READY_TIMEOUT;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            assert!(Instant::now() < deadline, "{name} has ended, and its port is open");
            std::thread::sleep(POLL);
        }
    }

    /// The end of its log.
    fn end_of_log(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let end = String::from_utf8_lossy(&log[log.len().saturating_sub(2_000)..]).into_owned();
        format!("{end}\nsee {}", self.log.display())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        if self.is_paused {
            self.pause(false);
        }
        let _ = self.shell.wait();
    }
}

fn append(log: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(log)
}

/// A free port of 127.0.0.1, for a server that takes its port as an argument and keeps it over restarts. The system gives
/// it to no other program.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let count = u32::from(PORTS.end - PORTS.start);
    // Programs that run at once begin at different places.
    let first = std::process::id().wrapping_mul(97);
    let next = || first.wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed)) % count;
    let mut ports = (0..count).map(|_| PORTS.start + next() as u16);
    ports.find(is_free).expect("a free port")
}

/// Below the ports that systems give to sockets without one: from 32,768 on Linux.
const PORTS: Range<u16> = 10_000..32_000;

/// Starts the program, waits for the end of the input and kills the group; the group is also killed when
/// the program ends.
const SHELL_SCRIPT: &str = r#"("$@"; kill -KILL 0) </dev/null & read -r _; kill -KILL 0"#;

/// The time in which a program must be ready on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};

    use super::*;

    fn start(script: &str) -> (Program, ChildStdout, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (program, out) = Program::start_piped("script", &command, &dir.path().join("log"));
        (program, out, dir)
    }

    #[test]
    fn dropping_a_program_ends_it_and_its_children() {
        let (program, out, _dir) = start("sleep 600 & echo $$; wait");
        let mut out = BufReader::new(out);
        out.read_line(&mut String::new()).unwrap();
        program.kill();
        // The pipe closes at the end of the last process of the group.
        assert_eq!(out.read_to_end(&mut Vec::new()).unwrap(), 0);
    }

    #[tokio::test]
    #[should_panic(expected = "script ended before it was ready: no port is free")]
    async fn a_program_that_ends_before_it_is_ready_is_reported_with_the_end_of_its_log() {
        let (mut program, _out, _dir) = start("echo no port is free >&2; exit 1");
        program.wait_for(&format!("http://127.0.0.1:{}/", free_port())).await;
    }
}
