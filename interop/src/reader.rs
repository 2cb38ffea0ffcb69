//! Consumers of event streams, and what they yield.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::kit::Kit;
use crate::program::Program;

/// A running consumer.
#[derive(Debug)]
pub struct Reader {
    name: &'static str,
    lines: Receiver<String>,
    _program: Program,
}

impl Reader {
    /// `@atproto/sync`, which follows `service` from the first event that is kept, asks the directory for
    /// keys and checks each operation.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atproto_sync(kit: &Kit, service: &str, plc_url: &str) -> Self {
        Self::start(kit, "atproto-sync", &[service, plc_url])
    }

    /// `@atcute/firehose`, which follows `service` from the first event that is kept and holds each
    /// against the lexicon.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn atcute_firehose(kit: &Kit, service: &str) -> Self {
        Self::start(kit, "atcute-firehose", &[service])
    }

    fn start(kit: &Kit, name: &'static str, args: &[&str]) -> Self {
        let dir = kit.path("readers");
        let mut command = Command::new(kit.node(&dir));
        command.arg(format!("{name}.mjs")).args(args).current_dir(&dir);
        let (program, out) = Program::start_heard(name, &command, &kit.log(name));
        let (sender, lines) = channel();
        thread::spawn(move || {
            let told = BufReader::new(out).lines().map_while(Result::ok);
            told.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
        });
        Self { name, lines, _program: program }
    }

    /// What it yields next: `kind`, `seq` and `did`, of a commit one operation with `rev`, `path` and
    /// `cid`.
    ///
    /// # Panics
    /// If it yields nothing, or an error.
    pub fn next(&self) -> Value {
        let name = self.name;
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => event(name, &line),
            Err(RecvTimeoutError::Timeout) => panic!("{name} yields nothing"),
            Err(RecvTimeoutError::Disconnected) => panic!("{name} has ended"),
        }
    }

    /// What it yields until nothing comes for a while.
    pub fn rest(&self) -> Vec<Value> {
        let lines = std::iter::from_fn(|| self.lines.recv_timeout(A_WHILE).ok());
        lines.map(|line| event(self.name, &line)).collect()
    }
}

fn event(name: &str, line: &str) -> Value {
    let event: Value = serde_json::from_str(line).expect("a line of JSON");
    assert_ne!(event["kind"], "error", "{name}: {line}");
    event
}

/// How long a reader may take to yield what must come, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a test waits for what must not come.
const A_WHILE: Duration = Duration::from_millis(500);
