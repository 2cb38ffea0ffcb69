//! Event stream consumers of other projects, and their output.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::program::{Kit, Program};

/// A running consumer.
#[derive(Debug)]
pub struct Reader {
    name: &'static str,
    lines: Receiver<String>,
    program: Program,
}

impl Reader {
    /// `@atproto/sync`, which follows `service` from the first retained event, fetches keys from the
    /// directory and checks every operation.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atproto_sync(kit: &Kit, service: &str, plc_url: &str) -> Self {
        Self::start(kit, "atproto-sync", &[service, plc_url])
    }

    /// `@atcute/firehose`, which follows `service` from the first retained event and validates events against the
    /// lexicon.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atcute_firehose(kit: &Kit, service: &str) -> Self {
        Self::start(kit, "atcute-firehose", &[service])
    }

    /// `@atproto/tap`, which receives the events of the channel of `service` and acknowledges them when they are written.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn tap(kit: &Kit, service: &str, password: &str) -> Self {
        Self::start(kit, "tap", &[service, password])
    }

    /// `standardwebhooks`, which receives webhooks at a port of loopback and verifies every request.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn webhook(kit: &Kit, port: u16, secret: &str) -> Self {
        Self::start(kit, "webhook", &[&port.to_string(), secret])
    }

    /// The consumer of indigo, which follows `service` from a cursor on, fetches keys from the directory and verifies
    /// every event. It ends with the stream.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn indigo(kit: &Kit, service: &str, plc_url: &str, cursor: i64) -> Self {
        let mut command = Command::new(kit.verifier());
        command.args(["consume", service, plc_url, &cursor.to_string()]);
        Self::start_program(kit, "indigo", &command)
    }

    fn start(kit: &Kit, name: &'static str, args: &[&str]) -> Self {
        let dir = kit.path("readers");
        let mut command = Command::new(kit.node(&dir));
        command.arg(format!("{name}.mjs")).args(args).current_dir(&dir);
        Self::start_program(kit, name, &command)
    }

    fn start_program(kit: &Kit, name: &'static str, command: &Command) -> Self {
        let (program, out) = Program::start_piped(name, command, &kit.log(name));
        let (sender, lines) = channel();
        thread::spawn(move || {
            let output = BufReader::new(out).lines().map_while(Result::ok);
            output.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
        });
        Self { name, lines, program }
    }

    /// The next event: `kind`, `seq` and `did`, and one operation of a commit with `rev`, `path` and `cid`.
    ///
    /// # Panics
    /// If the reader times out, ends or reports an error.
    pub fn next(&self) -> Value {
        let name = self.name;
        match self.lines.recv_timeout(EVENT_TIMEOUT) {
            Ok(line) => event(name, &line),
            Err(RecvTimeoutError::Timeout) => panic!("{name} timed out"),
            Err(RecvTimeoutError::Disconnected) => panic!("{name} has ended"),
        }
    }

    /// Kills the consumer without notice, and returns its output.
    ///
    /// # Panics
    /// If it had reported an error.
    pub fn kill(self) -> Vec<Value> {
        let Self { name, lines, program } = self;
        program.kill();
        // A line that was cut off is not written.
        let whole = lines.iter().filter(|line| line.ends_with('}'));
        whole.map(|line| event(name, &line)).collect()
    }

    /// The remaining events, until none arrives for a while.
    pub fn rest(&self) -> Vec<Value> {
        let lines = std::iter::from_fn(|| self.lines.recv_timeout(IDLE_TIMEOUT).ok());
        lines.map(|line| event(self.name, &line)).collect()
    }
}

fn event(name: &str, line: &str) -> Value {
    let event: Value = serde_json::from_str(line).expect("a line of JSON");
    assert_ne!(event["kind"], "error", "{name}: {line}");
    event
}

/// The time in which an expected event must arrive on a busy machine.
const EVENT_TIMEOUT: Duration = Duration::from_secs(120);
/// The time without events after which a reader is idle.
const IDLE_TIMEOUT: Duration = Duration::from_millis(500);
