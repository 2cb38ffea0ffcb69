//! `follow`, `capture` and interrupted downloads against a simulated network on loopback, run as processes.
//!
//! | module | |
//! |---|---|
//! | `archive_streams` | `archive serve` and `archive replay`: the events that consumers get |
//! | `archives` | `archive follow`, and the other commands about its archive |
//! | `admin` | `follow --admin`, and the commands that use it |
//! | `backfills` | `backfill`, and its status |
//! | `backfill_network` | `backfill` of a network whose hosts and accounts misbehave and change, killed at random times |
//! | `conditions` | `follow --where` |
//! | `line_proofs` | `follow --proof`, and `frames verify-lines` |
//! | `labels` | `labels follow`, `query` and `verify`: honest and hostile labelers, kills, key rotation |
//! | `lines` | the lines of events of every kind and verdict |
//! | `jetstream` | the lines of `follow --jetstream` |
//! | `jetstream_archives` | `archive import-jetstream`, its lines and its archive |
//! | `resume` | where a run resumes, and how it ends: interrupted, refused, disk full |
//! | `deliveries` | `follow --to` and `--ack-stdin`: the outbox and its destinations |
//! | `operations` | `follow --ops`: a line an operation |
//! | `clock` | a local clock that is behind, and accounts whose clock is ahead |
//! | `log` | levels and forms of messages |
//! | `nostr_comparison` | `nostr follow --negentropy`: the events that it fetches, and its bytes on the wire |
//! | `nostr_deliveries` | `nostr follow --to`: destinations after kills, and the refusals |
//! | `nostr_relays` | `nostr follow`, honest and hostile relays |
//! | `metrics` | the endpoints: metrics, health, readiness |
//! | `packaging` | the systemd unit and the compose file |
//! | `plc_directories` | mirrors that follow, served mirrors, checkpoints and differences |
//! | `plc_mirrors` | `plc mirror`, and the answers from its file |
//! | `readme` | the tasks of the README, as printed |
//! | `reload` | SIGHUP |
//! | `resets` | hosts that begin another sequence, and runs that end before their first event |
//! | `served` | `serve`: what it serves, its document, its end |
//! | `selections` | the selection of a run as a part of its state |
//! | `websockets` | `follow --to ws://…`: its clients |
//! | `schemas` | every line that these tests read follows the schema of its kind |
//! | `verify_levels` | `follow --verify-against`: the proofs, messages and refusals of every level |
//! | `terminal` | `follow` at a terminal: its display, and the state that it keeps |
//! | `tls` | streams and directories over TLS, and trusted authorities |
//! | `files` | the files of `capture` and of an interrupted `verify` |
//!
//! Tests that need a feature are built with it: `cargo xtask stage features`.

#![forbid(unsafe_code)]

mod account_changes;
mod admin;
mod archive_streams;
mod archives;
#[cfg(feature = "full")]
mod backfill_network;
#[cfg(feature = "full")]
mod backfills;
mod clock;
#[cfg(feature = "where")]
mod conditions;
mod deliveries;
mod files;
mod histories;
mod jetstream;
#[cfg(feature = "full")]
mod jetstream_archives;
mod labels;
mod line_proofs;
mod lines;
mod log;
mod metrics;
mod nostr_comparison;
mod nostr_deliveries;
mod nostr_relays;
mod operations;
mod packaging;
mod plc_directories;
mod plc_mirrors;
#[cfg(feature = "full")]
mod queries;
mod readme;
mod reload;
mod resets;
mod resume;
#[path = "../schemas/mod.rs"]
mod schemas;
mod selections;
mod served;
#[cfg(unix)]
mod terminal;
mod tls;
mod verify_levels;
#[path = "../webhook/mod.rs"]
mod webhook;
mod websockets;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use events::Line;
use serde_json::Value;
use simnet::servers::{Server, Simulation, Spec};

/// A small network with a relay, and without writes.
fn quiet() -> Simulation {
    let spec = Spec { accounts: 6, records: 5, pds: 1, jetstreams: 0, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

/// The same with commits that the relay replays.
fn with_commits(prepared: usize) -> Simulation {
    let spec = Spec {
        accounts: 6,
        records: 5,
        pds: 1,
        jetstreams: 0,
        initial_commits: prepared,
        ..Spec::default()
    };
    Simulation::start(spec).unwrap()
}

/// A command about the first relay of a network.
fn wireproof(sim: &Simulation, command: &str, args: &[&str]) -> Command {
    let mut process = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let port = sim.port(Server::Pds(0)).to_string();
    process.arg(command).args(["--host", &sim.url(Server::Relay(0))]);
    process.args(["--plc", &sim.url(Server::Plc), "--development-port", &port]).args(args);
    process.args(["--backoff-first-ms", "10", "--backoff-max-ms", "100"]);
    process.env("XDG_CONFIG_HOME", "/nonexistent");
    process
}

/// `follow` from the oldest event of the relay, with its state in `dir`.
fn follow(sim: &Simulation, dir: &Path, args: &[&str]) -> Command {
    let mut command = wireproof(sim, "follow", &["--cursor", "oldest"]);
    command.arg("--state").arg(dir.join("state")).args(args);
    command
}

/// The lines of a `follow` that ends by itself.
fn lines(mut command: Command) -> Vec<Value> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    parsed(&output.stdout)
}

fn parsed(out: &[u8]) -> Vec<Value> {
    str::from_utf8(out).unwrap().lines().map(parsed_line).collect()
}

/// The lines of all complete files in a folder, in their order.
fn file_lines(folder: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|name| name == "ndjson")).collect();
    files.sort();
    files.iter().flat_map(|path| parsed(&std::fs::read(path).unwrap())).collect()
}

/// Every line has the schema of its kind, and its type reads and writes it unchanged.
fn parsed_line(text: &str) -> Value {
    let line = serde_json::from_str(text).unwrap();
    schemas::check("follow", &line);
    let typed = Line::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut written = Vec::new();
    typed.append(&mut written);
    assert_eq!(String::from_utf8(written).unwrap().trim_end(), text.trim_end());
    line
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn seqs(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line["seq"].as_u64()).collect()
}

/// A running `follow`. Dropping it kills the process.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, out, errors }
    }

    /// Waits for the next lines.
    fn take(&mut self, count: usize) -> Vec<Value> {
        let next = |_| {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "the process has ended");
            parsed_line(&line)
        };
        (0..count).map(next).collect()
    }

    /// Waits for a line of standard error with this text.
    fn wait_for_stderr(&mut self, text: &str) -> String {
        // By reference, so that the reader's buffer is not lost.
        let mut lines = self.errors.by_ref().lines().map(Result::unwrap);
        lines.find(|line| line.contains(text)).expect("a line with this text")
    }

    /// Sends SIGINT, and returns the remaining lines and the exit code.
    fn interrupt(self) -> (Vec<Value>, Option<i32>) {
        self.signal("INT");
        self.wait()
    }

    /// Sends a signal.
    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for the end, and returns the remaining lines and the exit code.
    fn wait(mut self) -> (Vec<Value>, Option<i32>) {
        let mut rest = Vec::new();
        self.out.read_to_end(&mut rest).unwrap();
        (parsed(&rest), self.child.wait().unwrap().code())
    }

    /// Waits for the end of a command without lines in its output, and returns the exit code.
    fn wait_for_code(mut self) -> Option<i32> {
        self.out.read_to_end(&mut Vec::new()).unwrap();
        self.child.wait().unwrap().code()
    }

    /// Kills the process, as a power cut would.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
