//! A connection to a running peer: a child process that receives one request line and owes one answer line within
//! a time limit, bound to one core where the system supports it.
//!
//! On one core no peer gains by spreading its garbage collector over others, and none loses time by being moved.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use protocol::{Failure, Request, one_line};
use serde::de::DeserializeOwned;

/// A running peer. Dropping it kills the process.
pub(crate) struct Connection {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<io::Result<String>>,
    limit: Duration,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error("cannot be started: {0}")]
    Start(io::Error),
    #[error("ended without an answer ({0})")]
    Ended(ExitStatus),
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    #[error("the answer does not follow the protocol: {0}")]
    Malformed(String),
    #[error("{0}")]
    Failed(String),
    #[error("cannot be read: {0}")]
    Pipe(io::Error),
}

impl Connection {
    /// Starts `command` on `core`, with its standard error going to `log`.
    pub(crate) fn start(
        mut command: Command,
        core: Option<Core>,
        log: File,
        limit: Duration,
    ) -> Result<Self, ConnectionError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let child = match core {
            Some(core) => core.while_bound(|| command.spawn()),
            None => command.spawn(),
        };
        let mut child = child.map_err(ConnectionError::Start)?;
        let requests = child.stdin.take().expect("standard input is piped");
        let stdout = child.stdout.take().expect("standard output is piped");
        let (sender, answers) = sync_channel(1);
        thread::spawn(move || forward_lines(stdout, &sender));
        Ok(Self { child, requests, answers, limit })
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn request<A: DeserializeOwned>(
        &mut self,
        request: &Request,
    ) -> Result<A, ConnectionError> {
        if self.send(request).is_err() {
            return Err(self.exit_error());
        }
        let line = match self.answers.recv_timeout(self.limit) {
            Ok(line) => line.map_err(ConnectionError::Pipe)?,
            Err(RecvTimeoutError::Timeout) => return Err(ConnectionError::Timeout(self.limit)),
            Err(RecvTimeoutError::Disconnected) => return Err(self.exit_error()),
        };
        parse_answer(&line)
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.requests.write_all(&line)?;
        self.requests.flush()
    }

    /// The exit status; a process that closed a pipe and does not exit is killed after a grace period.
    fn exit_error(&mut self) -> ConnectionError {
        thread::sleep(EXIT_GRACE);
        let _ = self.child.kill();
        self.child.wait().map_or_else(ConnectionError::Pipe, ConnectionError::Ended)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Forwards lines until the output ends, reading fails, or the receiver is gone.
fn forward_lines(stdout: ChildStdout, lines: &SyncSender<io::Result<String>>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = stdout.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        let line = match read {
            Ok(0) => return,
            Ok(_) => Ok(String::from_utf8_lossy(&line).into_owned()),
            Err(error) => Err(error),
        };
        if lines.send(line).is_err() {
            return;
        }
    }
}

fn parse_answer<A: DeserializeOwned>(line: &str) -> Result<A, ConnectionError> {
    if let Ok(Failure { error }) = serde_json::from_str(line) {
        return Err(ConnectionError::Failed(one_line(&error)));
    }
    serde_json::from_str(line).map_err(|_| ConnectionError::Malformed(one_line(line)))
}

/// Time that a process which closed its output has to exit by itself, so that its own exit status is reported.
const EXIT_GRACE: Duration = Duration::from_millis(50);

const MAX_LINE_BYTES: u64 = 1 << 20;

/// A core that processes can be bound to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core(#[cfg_attr(not(target_os = "linux"), expect(dead_code))] usize);

impl Core {
    /// The last allowed core, because the first ones serve more interrupts; `None` where binding is not supported.
    pub(crate) fn choose() -> Option<Self> {
        affinity::last_allowed().map(Self)
    }

    /// Calls `start` bound to this core. A process inherits the binding with all of its threads.
    fn while_bound<T>(self, start: impl FnOnce() -> T) -> T {
        affinity::while_bound(self, start)
    }
}

#[cfg(target_os = "linux")]
mod affinity {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::Core;

    pub(super) fn last_allowed() -> Option<usize> {
        let allowed = sched_getaffinity(None).ok()?;
        (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core))
    }

    /// Starts unbound if the system refuses: the run is then less even and still fair.
    pub(super) fn while_bound<T>(core: Core, start: impl FnOnce() -> T) -> T {
        let Ok(before) = sched_getaffinity(None) else { return start() };
        let mut one = CpuSet::new();
        one.set(core.0);
        let _ = sched_setaffinity(None, &one);
        let started = start();
        let _ = sched_setaffinity(None, &before);
        started
    }
}

#[cfg(not(target_os = "linux"))]
mod affinity {
    use super::Core;

    pub(super) fn last_allowed() -> Option<usize> {
        None
    }

    pub(super) fn while_bound<T>(_: Core, start: impl FnOnce() -> T) -> T {
        start()
    }
}
