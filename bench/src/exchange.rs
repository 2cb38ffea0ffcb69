//! How is a runner asked? A child process that gets one line and owes one line, within a limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::pin::Core;
use crate::protocol::{Failure, Request};

/// A running runner. It is ended when this is dropped.
pub(crate) struct Runner {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<io::Result<String>>,
    limit: Duration,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("cannot be started: {0}")]
    Start(io::Error),
    #[error("ended without an answer ({0})")]
    Ended(ExitStatus),
    #[error("no answer within {} s", .0.as_secs_f32())]
    Limit(Duration),
    #[error("an answer that is not the protocol's: {0}")]
    Foreign(String),
    #[error("{0}")]
    Refused(String),
    #[error("cannot be talked to: {0}")]
    Pipe(io::Error),
}

impl Runner {
    /// Starts `command` on `core`, with its standard error going to `log`.
    pub(crate) fn start(
        mut command: Command,
        core: Option<Core>,
        log: File,
        limit: Duration,
    ) -> Result<Self, Fault> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let child = match core {
            Some(core) => core.while_bound(|| command.spawn()),
            None => command.spawn(),
        };
        let mut child = child.map_err(Fault::Start)?;
        let requests = child.stdin.take().expect("standard input was asked for");
        let stdout = child.stdout.take().expect("standard output was asked for");
        let (sender, answers) = sync_channel(1);
        thread::spawn(move || forward_lines(stdout, &sender));
        Ok(Self { child, requests, answers, limit })
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask<A: DeserializeOwned>(&mut self, request: &Request) -> Result<A, Fault> {
        if self.send(request).is_err() {
            return Err(self.ended());
        }
        let line = match self.answers.recv_timeout(self.limit) {
            Ok(line) => line.map_err(Fault::Pipe)?,
            Err(RecvTimeoutError::Timeout) => return Err(Fault::Limit(self.limit)),
            Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
        };
        read_answer(&line)
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.requests.write_all(&line)?;
        self.requests.flush()
    }

    /// A runner that closed a pipe and lives on is ended here.
    fn ended(&mut self) -> Fault {
        thread::sleep(GRACE);
        let _ = self.child.kill();
        self.child.wait().map_or_else(Fault::Pipe, Fault::Ended)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends on each line until the output ends, an error comes, or nobody listens any more.
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

fn read_answer<A: DeserializeOwned>(line: &str) -> Result<A, Fault> {
    if let Ok(Failure { error }) = serde_json::from_str(line) {
        return Err(Fault::Refused(one_line(&error)));
    }
    serde_json::from_str(line).map_err(|_| Fault::Foreign(one_line(line)))
}

/// What a stranger printed, fit for a line of ours: cut short, with nothing that moves a cursor.
pub(crate) fn one_line(text: &str) -> String {
    let shown: String = text.trim().chars().take(SHOWN_CHARS).collect();
    let tail = if text.trim().len() > shown.len() { "…" } else { "" };
    shown.split(|c: char| c.is_control()).collect::<Vec<_>>().join(" ") + tail
}

/// How long a runner that closed its output may take to end by itself, so that its own exit status
/// can be told.
const GRACE: Duration = Duration::from_millis(50);

const MAX_LINE_BYTES: u64 = 1 << 20;
const SHOWN_CHARS: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stranger_prints_becomes_one_harmless_line() {
        assert_eq!(one_line("a\u{1b}[2Jb\nc\n"), "a [2Jb c");
        assert_eq!(one_line(&"x".repeat(1000)).chars().count(), SHOWN_CHARS + 1);
    }
}
