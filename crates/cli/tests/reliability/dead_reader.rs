//! A reader of standard output that ends with lines unread loses none of them: the next run prints them again.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use simnet::servers::{Attack, Server, Simulation, Spec};

use crate::event_log::EventLog;
use crate::follow::{self, Follow, PrintedLine};

const RELAY: Server = Server::Relay(0);

#[test]
fn lines_that_a_dead_reader_left_in_the_pipe_are_printed_again_by_the_next_run() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let (mut child, mut out) = start(&sim, folder.path());
    let printed: Vec<PrintedLine> = (0..5).map(|_| next_line(&mut out)).collect();
    // Meanwhile the other lines are written into the pipe, and checkpoints into the state file.
    std::thread::sleep(Duration::from_millis(2_500));
    drop(out);
    let code = child.wait().unwrap().code();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(code, Some(4), "{errors}");
    assert!(errors.contains("the reader of standard output closed it"), "{errors}");

    let again = read_to_the_end(&sim, folder.path());
    let is_known = |line: &&PrintedLine| printed.iter().any(|known| known.seq == line.seq);
    assert!(again.iter().filter(is_known).all(|line| line.repeated), "repetitions are marked");
    EventLog::of(&sim).check(&[printed, again].concat());

    // After an end in order, nothing is marked.
    sim.attack(Attack::InvisibleText, 3);
    let new = read_to_the_end(&sim, folder.path());
    assert!(new.len() == 3 && new.iter().all(|line| !line.repeated), "{new:?}");
}

#[test]
fn after_a_kill_every_line_that_is_printed_again_is_marked() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let mut first = Follow::spawn(follow::command(&sim, folder.path(), &[]), 0);
    first.wait_for(15);
    let before = first.kill();
    let after = read_to_the_end(&sim, folder.path());
    let is_known = |line: &&PrintedLine| before.iter().any(|known| known.seq == line.seq);
    assert!(after.iter().any(|line| is_known(&line)), "some lines were not acknowledged");
    assert!(after.iter().filter(is_known).all(|line| line.repeated));
    EventLog::of(&sim).check(&[before, after].concat());
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

/// A small network with fewer events than a pipe holds, so that all of them are written at once.
fn sim() -> Simulation {
    let spec =
        Spec { accounts: 6, records: 5, jetstreams: 0, initial_commits: 40, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn start(sim: &Simulation, state: &Path) -> (Child, impl BufRead) {
    let mut command = follow::command(sim, state, &[]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Lines in the reader's own buffer are lost with it, too.
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
