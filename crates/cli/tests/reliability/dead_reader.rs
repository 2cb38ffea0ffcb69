//! A reader of standard output that ends with lines unread loses none of them: the next run prints them again.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use simnet::servers::{Server, Simulation, Spec};

use crate::event_log::EventLog;
use crate::follow::{self, Follow, PrintedLine};

const RELAY: Server = Server::Relay(0);

#[test]
fn lines_that_a_dead_reader_left_in_the_pipe_are_printed_again_by_the_next_run() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let (mut child, mut out) = start(&sim, folder.path());
    let mut printed: Vec<PrintedLine> = (0..20).map(|_| next_line(&mut out)).collect();
    // Meanwhile the pipe fills up, and checkpoints are written.
    std::thread::sleep(Duration::from_millis(2_500));
    drop(out);
    let code = child.wait().unwrap().code();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(code, Some(4), "{errors}");
    assert!(errors.contains("the reader of standard output closed it"), "{errors}");

    printed.extend(read_to_the_end(&sim, folder.path()));
    EventLog::of(&sim).check(&printed);
}

#[test]
fn a_reader_that_ends_while_nothing_happens_ends_the_run() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let (mut child, mut out) = start(&sim, folder.path());
    let last = sim.last_seq(RELAY);
    while next_line(&mut out).seq != Some(last) {}
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

/// A small network with enough events to fill a pipe.
fn sim() -> Simulation {
    let spec = Spec { accounts: 6, jetstreams: 0, initial_commits: 600, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn start(sim: &Simulation, state: &Path) -> (Child, impl BufRead) {
    let mut command = follow::command(sim, state, &[]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

fn next_line(out: &mut impl BufRead) -> PrintedLine {
    let mut line = String::new();
    assert!(out.read_line(&mut line).unwrap() > 0, "the process has ended");
    PrintedLine::parse(0, &line)
}

/// The lines of the next run, up to the last event.
fn read_to_the_end(sim: &Simulation, state: &Path) -> Vec<PrintedLine> {
    let mut follow = Follow::spawn(follow::command(sim, state, &[]), 1);
    let last = sim.last_seq(RELAY);
    follow.wait_until("the last event", |follow| {
        follow.lines_from(0).iter().any(|printed| printed.seq == Some(last))
    });
    follow.interrupt().printed
}
