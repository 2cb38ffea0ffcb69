//! A `wireproof follow` that runs, and what it has printed so far.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use simnet::servers::{Server, Simulation};

use crate::heard::Heard;

/// A running command; dropping it kills it.
pub(crate) struct Follow {
    child: Child,
    shared: Arc<Shared>,
    readers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    heard: Mutex<Vec<Heard>>,
    count: AtomicU64,
    /// The last of what went to standard error.
    errors: Mutex<VecDeque<String>>,
    /// The least time between two lines that are read, in nanoseconds.
    pace_nanos: AtomicU64,
}

impl Follow {
    /// Starts `command`, the `run`th to work on the same state.
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

    /// Lets its output be read at so many lines a second from now on.
    pub(crate) fn read_at(&self, lines_per_second: u64) {
        let nanos = 1_000_000_000_u64.checked_div(lines_per_second).unwrap_or(0);
        self.shared.pace_nanos.store(nanos, Ordering::Relaxed);
    }

    /// How many lines have been read.
    pub(crate) fn count(&self) -> u64 {
        self.shared.count.load(Ordering::Relaxed)
    }

    /// The lines from the `from`th on.
    pub(crate) fn heard_from(&self, from: usize) -> Vec<Heard> {
        self.shared.heard.lock().unwrap()[from..].to_vec()
    }

    /// What went to standard error, as far as it is kept.
    pub(crate) fn errors(&self) -> String {
        let errors = self.shared.errors.lock().unwrap();
        errors.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Waits until `is_so`, as long as something is heard from time to time.
    ///
    /// # Panics
    /// If it ends before, or nothing more is heard.
    pub(crate) fn wait_until(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let (mut last, mut since) = (self.count(), Instant::now());
        while !is_so(self) {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("waiting for {what}, and it ended: {status}\n{}", self.errors());
            }
            if self.count() != last {
                (last, since) = (self.count(), Instant::now());
            }
            assert!(since.elapsed() < PATIENCE, "{what} does not come\n{}", self.errors());
            std::thread::sleep(MOMENT);
        }
    }

    /// Waits until so many lines have been read.
    pub(crate) fn wait_for(&mut self, count: u64) {
        self.wait_until(&format!("line {count}"), |follow| follow.count() >= count);
    }

    /// The process's number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it has ever had, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("a process that runs");
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
        let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse().ok());
        kilobytes.map(|kilobytes: u64| kilobytes << 10).expect("a number")
    }

    /// Kills it, as a power cut would; gives all that it had printed.
    pub(crate) fn kill(mut self) -> Vec<Heard> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.take_heard()
    }

    /// Asks it to end, as Ctrl-C does, and waits for that.
    pub(crate) fn interrupt(self) -> Ended {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
        self.wait()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        // A reader that was slow must not be what is waited for.
        self.read_at(0);
        let status = self.child.wait().unwrap();
        let heard = self.take_heard();
        Ended { status, heard, errors: self.errors() }
    }

    fn take_heard(&mut self) -> Vec<Heard> {
        self.readers.drain(..).for_each(|reader| reader.join().expect("lines that can be read"));
        std::mem::take(&mut *self.shared.heard.lock().unwrap())
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
    pub(crate) heard: Vec<Heard>,
    pub(crate) errors: String,
}

impl Ended {
    /// Whether it did what it was asked to, up to the interrupt.
    pub(crate) fn has_ended_well(&self) -> bool {
        matches!(self.status.code(), Some(0 | 130))
    }
}

impl Shared {
    fn read_lines(&self, run: usize, output: ChildStdout) {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let mut due = Instant::now();
        // What a kill cut off is no line.
        while output.read_line(&mut line).is_ok_and(|len| len > 0) && line.ends_with('\n') {
            self.heard.lock().unwrap().push(Heard::parse(run, &line));
            self.count.fetch_add(1, Ordering::Relaxed);
            line.clear();
            due = self.wait_for_turn(due);
        }
        let _ = output.read_to_end(&mut Vec::new());
    }

    fn wait_for_turn(&self, due: Instant) -> Instant {
        let pace = Duration::from_nanos(self.pace_nanos.load(Ordering::Relaxed));
        let now = Instant::now();
        if pace.is_zero() {
            return now;
        }
        // Sleeps are longer than they should be; what was slept too long is made up for.
        let due = due.max(now - MOMENT * 10) + pace;
        std::thread::sleep(due.saturating_duration_since(now));
        due
    }

    fn read_errors(&self, errors: ChildStderr) {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            let mut errors = self.errors.lock().unwrap();
            if errors.len() == KEPT_ERRORS {
                errors.pop_front();
            }
            errors.push_back(line);
        }
    }
}

/// `wireproof follow` of all relays, from the oldest event that they have.
pub(crate) fn command(sim: &Simulation, state: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.arg("follow");
    command.args(follow_args(sim, state)).args(args);
    command
}

/// The arguments of `follow` for all relays of a network.
pub(crate) fn follow_args(sim: &Simulation, state: &Path) -> Vec<String> {
    let port = sim.port(Server::Pds(0)).to_string();
    let state = AsRef::<OsStr>::as_ref(state).to_str().unwrap().to_owned();
    let fixed = [
        ("--plc", sim.url(Server::Plc)),
        ("--development-port", port),
        ("--state", state),
        ("--cursor", "oldest".to_owned()),
        // The usual waits, of up to a minute, would be most of the time.
        ("--backoff-first-ms", "10".to_owned()),
        ("--backoff-max-ms", "100".to_owned()),
    ];
    let hosts = (0..sim.spec().relays).map(|number| ("--host", sim.url(Server::Relay(number))));
    fixed.into_iter().chain(hosts).flat_map(|(name, value)| [name.to_owned(), value]).collect()
}

/// How long a test waits for what must come, and does not.
const PATIENCE: Duration = Duration::from_secs(180);

const MOMENT: Duration = Duration::from_millis(2);
const KEPT_ERRORS: usize = 2_000;
