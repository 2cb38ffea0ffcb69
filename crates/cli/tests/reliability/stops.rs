//! A stop ends in its time under any load, and the next run loses nothing.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use simnet::servers::{AccountStatus, Server, Simulation, Spec};

use crate::event_log::EventLog;
use crate::follow::{self, Follow, PrintedLine};
use crate::report;

#[test]
fn a_stop_with_a_backlog_and_a_reader_that_never_reads_ends_in_its_time_and_loses_nothing() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let child = start(follow::command(&sim, folder.path(), &["--stop-seconds", "3"]));
    sim.write_commits(1);
    wait_for(|| !sim.backlogs(RELAY).is_empty(), "the connection");
    for number in 0..BACKLOG {
        match number % 200 {
            0 => sim.write_commits(1),
            // A repeated status, which is cheap to generate.
            _ => sim.set_account_status(number % sim.account_count(), AccountStatus::Active),
        }
    }
    wait_for(|| sim.backlogs(RELAY).iter().all(|backlog| *backlog == 0), "the backlog");

    let (status, time, mut printed) = terminate(child);
    assert_eq!(status.code(), Some(0));
    assert!(time < Duration::from_secs(3) + SLACK, "{time:?}");
    let taken = printed.len();
    assert!(taken < BACKLOG, "the reader was blocked");

    let mut follow = Follow::spawn(follow::command(&sim, folder.path(), &[]), 1);
    let last = sim.last_seq(RELAY);
    follow.wait_until("the last event", |follow| {
        follow.count() > 0 && follow.lines_from(0).iter().any(|line| line.seq == Some(last))
    });
    printed.extend(follow.interrupt().printed);
    let deliveries = EventLog::of(&sim).check(&printed);
    report(&format!(
        "a stop within 3 s took {:.1} s, with {} events and {taken} lines taken: none lost",
        time.as_secs_f64(),
        deliveries.events
    ));
}

#[test]
fn a_second_signal_ends_a_stop_at_once() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let args = ["--stop-seconds", "3600", "--ack-stdin"];
    let mut command = follow::command(&sim, folder.path(), &args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.env("XDG_CONFIG_HOME", "/nonexistent").spawn().unwrap();
    // A destination that does not acknowledge, and a reader that does not read.
    sim.write_commits(20_000);
    let pid = child.id().to_string();
    let terminate = || {
        assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    };
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    errors.find(|line| line.contains("connected")).unwrap();
    // From the first line on, the stop waits for an acknowledgement.
    let mut out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.read_line(&mut String::new()).unwrap() > 0);
    terminate();
    errors.find(|line| line.contains("once more to end at once")).unwrap();
    terminate();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "the stop alone ends with 0");
}

#[test]
fn a_jetstream_with_a_reader_that_never_reads_ends_in_its_time() {
    let spec = Spec { accounts: 5, relays: 0, initial_commits: 2_000, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let jetstream = Server::Jetstream(0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["follow", "--jetstream", "--development", "--cursor", "oldest"]);
    command.args(["--stop-seconds", "3", "--host", &sim.url(jetstream)]);
    command.arg("--state").arg(folder.path());
    let child = start(command);
    wait_for(|| sim.backlogs(jetstream).contains(&0), "the backlog");
    let (status, time, _) = terminate(child);
    assert_eq!(status.code(), Some(0));
    assert!(time < Duration::from_secs(3) + SLACK, "{time:?}");
}

#[test]
fn a_stopped_capture_writes_what_it_has_received() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["capture", "--development", "--seconds", "600", "--host", &sim.url(RELAY)]);
    command.arg("--out").arg(folder.path());
    let child = start(command);
    wait_for(|| !sim.backlogs(RELAY).is_empty(), "the connection");
    let before = sim.frames_sent();
    sim.write_commits(20);
    wait_for(|| sim.frames_sent() >= before + 20, "the frames");
    let (status, ..) = terminate(child);
    assert_eq!(status.code(), Some(0));
    assert!(folder.path().join("firehose-frames.bin").exists());
}

/// Starts a command whose output is not read.
fn start(mut command: Command) -> Child {
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Sends SIGTERM. The status, the time until the end, and the lines that lay in the pipe.
fn terminate(mut child: Child) -> (ExitStatus, Duration, Vec<PrintedLine>) {
    let (pid, since) = (child.id().to_string(), Instant::now());
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    let mut status = None;
    while status.is_none() && since.elapsed() < Duration::from_secs(3) + 2 * SLACK {
        std::thread::sleep(Duration::from_millis(10));
        status = child.try_wait().unwrap();
    }
    let time = since.elapsed();
    if status.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut output = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    // A line that was cut off is dropped.
    let end = output.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = str::from_utf8(&output[..end]).unwrap().lines();
    let parsed =
        lines.filter(|line| line.contains("\"seq\"")).map(|line| PrintedLine::parse(0, line));
    let status = status.unwrap_or_else(|| panic!("no end after {time:?}"));
    (status, time, parsed.collect())
}

fn wait_for(mut condition: impl FnMut() -> bool, what: &str) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < Duration::from_secs(120), "timeout waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A network that keeps every event.
fn sim() -> Simulation {
    let (retained_events, max_backlog) = (usize::MAX, u64::MAX);
    let spec = Spec {
        accounts: 20,
        records: 1,
        jetstreams: 0,
        retained_events,
        max_backlog,
        ..Spec::default()
    };
    Simulation::start(spec).unwrap()
}

const RELAY: Server = Server::Relay(0);

/// As many as may be in flight, nearly.
const BACKLOG: usize = 30_000;

/// For a busy machine.
const SLACK: Duration = Duration::from_secs(20);
