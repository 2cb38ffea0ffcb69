//! A `wireproof follow` process: the lines that it prints, and its stored cursor.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use atproto::syntax::Datetime;
use serde::Deserialize;
use simnet::servers::{Server, Simulation};
use store::{Options, Store};

use crate::{scaled, schemas};

/// Kills the first relay, and starts it again with commits that were written meanwhile. Whether it was read when it ended.
pub(crate) fn restart_source(sim: &Simulation) -> bool {
    let relay = Server::Relay(0);
    let is_read = !sim.backlogs(relay).is_empty();
    sim.stop_server(relay);
    sim.write_commits(10);
    std::thread::sleep(Duration::from_millis(40));
    sim.start_server(relay).unwrap();
    is_read
}

/// A line of the status of a process in bytes; `None` if it has ended.
pub(crate) fn memory_of(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

/// A running command. Dropping it kills the process.
pub(crate) struct Follow {
    child: Child,
    shared: Arc<Shared>,
    readers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    printed: Mutex<Vec<PrintedLine>>,
    count: AtomicU64,
    /// The last lines of standard error.
    errors: Mutex<VecDeque<String>>,
    /// Minimum time between two reads of a line, in nanoseconds.
    interval_nanos: AtomicU64,
}

impl Follow {
    /// Starts the `run`th command on the same state.
    pub(crate) fn spawn(mut command: Command, run: usize) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let shared = Arc::<Shared>::default();
        let (out, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (of_out, of_errors) = (shared.clone(), shared.clone());
        let readers = vec![
            std::thread::spawn(move || of_out.read_lines(run, out)),
            std::thread::spawn(move || of_errors.read_errors(errors)),
        ];
        Self { child, shared, readers }
    }

    /// Limits the reading of its output from now on.
    pub(crate) fn read_at(&self, lines_per_second: u64) {
        let nanos = 1_000_000_000_u64.checked_div(lines_per_second).unwrap_or(0);
        self.shared.interval_nanos.store(nanos, Ordering::Relaxed);
    }

    /// Number of lines read.
    pub(crate) fn count(&self) -> u64 {
        self.shared.count.load(Ordering::Acquire)
    }

    /// The lines from the `from`th on.
    pub(crate) fn lines_from(&self, from: usize) -> Vec<PrintedLine> {
        self.shared.printed.lock().unwrap()[from..].to_vec()
    }

    /// The last lines of standard error.
    pub(crate) fn errors(&self) -> String {
        let errors = self.shared.errors.lock().unwrap();
        errors.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Waits for a condition, as long as lines are printed from time to time.
    ///
    /// # Panics
    /// If the process ends before, or prints nothing for 3 minutes, or the condition does not come although it prints.
    pub(crate) fn wait_until(&mut self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        let (mut last, mut since) = (self.count(), Instant::now());
        let begun = since;
        while !condition(self) {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("waiting for {what}: the process ended: {status}\n{}", self.errors());
            }
            if self.count() != last {
                (last, since) = (self.count(), Instant::now());
            }
            let is_late = since.elapsed() >= TIMEOUT || begun.elapsed() >= whole_timeout();
            assert!(!is_late, "timeout waiting for {what}\n{}", self.errors());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until `count` lines have been read.
    pub(crate) fn wait_for(&mut self, count: u64) {
        self.wait_until(&format!("line {count}"), |follow| follow.count() >= count);
    }

    /// Waits until it reads the first relay.
    pub(crate) fn wait_for_connection(&mut self, sim: &Simulation) {
        self.wait_until("a connection", |_| !sim.backlogs(Server::Relay(0)).is_empty());
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Peak memory in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Resident pages of files in bytes; they belong to the program.
    pub(crate) fn file_pages(&self) -> u64 {
        self.memory("RssFile:")
    }

    fn memory(&self, name: &str) -> u64 {
        memory_of(self.pid(), name).expect("a process that runs")
    }

    /// Kills the process, as a power cut would, and returns its lines.
    pub(crate) fn kill(mut self) -> Vec<PrintedLine> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.take_lines()
    }

    /// Sends SIGINT, and waits for the end.
    pub(crate) fn interrupt(self) -> Ended {
        let pid = self.pid().to_string();
        // It may have ended since.
        let _ = Command::new("kill").args(["-s", "INT", &pid]).stderr(Stdio::null()).status();
        self.wait()
    }

    /// Sends SIGINT once the condition holds, if the process has not ended before, and waits for the end.
    ///
    /// # Panics
    /// If the process neither ends nor meets the condition within 3 minutes.
    pub(crate) fn interrupt_when(mut self, mut condition: impl FnMut(&Self) -> bool) -> Ended {
        let since = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if condition(&self) {
                return self.interrupt();
            }
            assert!(since.elapsed() < TIMEOUT, "no end in sight\n{}", self.errors());
            std::thread::sleep(POLL_INTERVAL);
        }
        self.wait()
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// If the process does not end within 3 minutes.
    pub(crate) fn wait(mut self) -> Ended {
        // A slow reader must not delay the end.
        self.read_at(0);
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(since.elapsed() < TIMEOUT, "the process does not end\n{}", self.errors());
            std::thread::sleep(POLL_INTERVAL);
        };
        let printed = self.take_lines();
        Ended { status, printed, errors: self.errors() }
    }

    fn take_lines(&mut self) -> Vec<PrintedLine> {
        self.readers.drain(..).for_each(|reader| reader.join().expect("lines that can be read"));
        std::mem::take(&mut *self.shared.printed.lock().unwrap())
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) printed: Vec<PrintedLine>,
    pub(crate) errors: String,
}

impl Ended {
    /// Whether it succeeded or was interrupted.
    pub(crate) fn is_orderly(&self) -> bool {
        matches!(self.status.code(), Some(0 | 130))
    }
}

impl Shared {
    fn read_lines(&self, run: usize, output: ChildStdout) {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let mut due = Instant::now();
        // A line cut off by a kill is dropped.
        while output.read_line(&mut line).is_ok_and(|len| len > 0) && line.ends_with('\n') {
            if self.count.load(Ordering::Relaxed) < CHECKED_LINES {
                schemas::check("follow", &serde_json::from_str(&line).unwrap());
            }
            self.printed.lock().unwrap().push(PrintedLine::parse(run, &line));
            // After the line: a test that waits for a count reads the lines at once.
            self.count.fetch_add(1, Ordering::Release);
            line.clear();
            due = self.wait_for_interval(due);
        }
        let _ = output.read_to_end(&mut Vec::new());
    }

    fn wait_for_interval(&self, due: Instant) -> Instant {
        let interval = Duration::from_nanos(self.interval_nanos.load(Ordering::Relaxed));
        let now = Instant::now();
        if interval.is_zero() {
            return now;
        }
        // Sleeps overrun: the excess is deducted from the next ones.
        let due = due.max(now - POLL_INTERVAL * 10) + interval;
        std::thread::sleep(due.saturating_duration_since(now));
        due
    }

    fn read_errors(&self, errors: ChildStderr) {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            let mut errors = self.errors.lock().unwrap();
            if errors.len() == MAX_ERROR_LINES {
                errors.pop_front();
            }
            errors.push_back(line);
        }
    }
}

/// `wireproof follow` of all relays from their oldest event.
pub(crate) fn command(sim: &Simulation, state: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.arg("follow");
    command.args(follow_args(sim, state)).args(args);
    command
}

/// `wireproof follow` of these hosts after a cursor.
pub(crate) fn command_from(
    sim: &Simulation,
    state: &Path,
    hosts: &[Server],
    cursor: &str,
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.arg("follow").args(args_from(sim, state, hosts, cursor));
    command
}

/// The arguments of `follow` for all relays of a network from their oldest event.
pub(crate) fn follow_args(sim: &Simulation, state: &Path) -> Vec<String> {
    let relays: Vec<Server> = (0..sim.spec().relays).map(Server::Relay).collect();
    args_from(sim, state, &relays, "oldest")
}

fn args_from(sim: &Simulation, state: &Path, hosts: &[Server], cursor: &str) -> Vec<String> {
    let port = sim.port(Server::Pds(0)).to_string();
    let state = AsRef::<OsStr>::as_ref(state).to_str().unwrap().to_owned();
    let fixed = [
        ("--plc", sim.url(Server::Plc)),
        ("--development-port", port),
        ("--state", state),
        ("--cursor", cursor.to_owned()),
        // The default delays of up to a minute would dominate.
        ("--backoff-first-ms", "10".to_owned()),
        ("--backoff-max-ms", "100".to_owned()),
    ];
    let hosts = hosts.iter().map(|host| ("--host", sim.url(*host)));
    fixed.into_iter().chain(hosts).flat_map(|(name, value)| [name.to_owned(), value]).collect()
}

/// A line of standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrintedLine {
    /// Number of the process, from 0.
    pub(crate) run: usize,
    /// The port of the host.
    pub(crate) port: u16,
    pub(crate) seq: Option<i64>,
    pub(crate) kind: Box<str>,
    pub(crate) did: Box<str>,
    pub(crate) rev: Box<str>,
    pub(crate) verdict: Box<str>,
    /// The stable name of the verdict.
    pub(crate) code: Box<str>,
    /// Whether an earlier run may have printed it.
    pub(crate) repeated: bool,
    /// The operations: path, and CID unless it is deleted.
    pub(crate) ops: Vec<(String, Option<String>)>,
    /// In a resync, the number of this line among its lines, and whether it is the last.
    pub(crate) piece: Option<(u64, bool)>,
    /// Whether the lines of the repository have all its records.
    pub(crate) is_whole: bool,
    /// The time from the event to the reading of its line.
    pub(crate) delay: Option<Duration>,
}

/// The fields of a line that tests read.
#[derive(Debug, Deserialize)]
struct Printed<'a> {
    #[serde(default)]
    host: &'a str,
    seq: Option<i64>,
    #[serde(default)]
    kind: &'a str,
    #[serde(default)]
    did: Option<&'a str>,
    #[serde(default)]
    rev: Option<&'a str>,
    #[serde(default)]
    verdict: Option<&'a str>,
    #[serde(default)]
    code: Option<&'a str>,
    #[serde(default)]
    repeated: bool,
    #[serde(default)]
    ops: Vec<PrintedOp>,
    piece: Option<u64>,
    #[serde(default)]
    whole: bool,
    last: Option<bool>,
    time: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
struct PrintedOp {
    collection: String,
    rkey: String,
    cid: Option<String>,
}

impl PrintedOp {
    fn into_path_and_cid(self) -> (String, Option<String>) {
        (format!("{}/{}", self.collection, self.rkey), self.cid)
    }
}

impl PrintedLine {
    /// Parses a line.
    ///
    /// # Panics
    /// If it is not a line of `follow`.
    pub(crate) fn parse(run: usize, line: &str) -> Self {
        let printed: Printed<'_> =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        let port = printed.host.trim_end_matches('/').rsplit(':').next().unwrap_or_default();
        Self {
            run,
            port: port.parse().unwrap_or(0),
            seq: printed.seq,
            kind: printed.kind.into(),
            did: printed.did.unwrap_or_default().into(),
            rev: printed.rev.unwrap_or_default().into(),
            verdict: printed.verdict.unwrap_or_default().into(),
            code: printed.code.unwrap_or_default().into(),
            repeated: printed.repeated,
            ops: printed.ops.into_iter().map(PrintedOp::into_path_and_cid).collect(),
            piece: printed.piece.zip(printed.last),
            is_whole: printed.whole,
            delay: printed.time.and_then(time_since),
        }
    }

    /// Whether the event is verified and continues its chain.
    pub(crate) fn is_verified(&self) -> bool {
        &*self.code == "verified"
    }
}

/// The time since the `time` of an event.
fn time_since(time: &str) -> Option<Duration> {
    let micros = Datetime::parse(time).ok()?.unix_micros();
    let then = UNIX_EPOCH + Duration::from_micros(micros.try_into().ok()?);
    SystemTime::now().duration_since(then).ok()
}

/// The stored cursor of a host. No process may use the state.
pub(crate) fn stored_cursor(state: &Path, sim: &Simulation, host: Server) -> Option<i64> {
    let store = Store::open(&file(state), Options::default()).expect("a state that can be read");
    let cursors = store.cursors().expect("cursors that can be read");
    let port = format!(":{}/", sim.port(host));
    let found = cursors.iter().find(|(stream, _)| stream.contains(&port));
    found.map(|(_, cursor)| i64::try_from(*cursor).expect("a number of a relay"))
}

/// The one database in the folder.
fn file(state: &Path) -> PathBuf {
    let files = state.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let is_database = |path: &PathBuf| path.extension().is_some_and(|name| name == "sqlite");
    { files }.find(is_database).expect("a state file")
}

/// Maximum time without a new line.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Maximum time of a wait, whatever is printed meanwhile.
fn whole_timeout() -> Duration {
    Duration::from_secs(scaled(900, 43_200))
}

/// Number of lines of a process that are checked against their schemas.
const CHECKED_LINES: u64 = 500;
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const MAX_ERROR_LINES: usize = 2_000;
