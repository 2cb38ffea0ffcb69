//! A cursor that cannot be stored ends the run with exit code 4, and the stored one stays.

use std::process::Command;

use simnet::servers::{Server, Simulation, Spec, WriteRate};

use crate::event_log::EventLog;
use crate::follow::{self, Follow};

const RELAY: Server = Server::Relay(0);

#[test]
fn a_cursor_that_cannot_be_stored_ends_the_run_with_exit_code_4_and_is_unchanged() {
    let spec = Spec { accounts: 300, records: 3, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    sim.set_write_rate(WriteRate::MatchReaders);
    let mut follow = Follow::spawn(limited(&sim, &folder), 0);
    follow.wait_for(1);
    let ended = follow.wait();
    sim.set_write_rate(WriteRate::Off);
    assert_eq!(ended.status.code(), Some(4), "{}", ended.errors);
    let cursor = follow::stored_cursor(folder.path(), &sim, RELAY);
    EventLog::of(&sim).check_cursor(sim.port(RELAY), cursor, &ended.printed);

    // With enough space the next run resumes there.
    let mut follow = Follow::spawn(follow::command(&sim, folder.path(), &[]), 1);
    let last = sim.last_seq(RELAY);
    follow.wait_until("the last event", |follow| {
        follow.lines_from(0).iter().any(|printed| printed.seq == Some(last))
    });
    let printed = [ended.printed, follow.interrupt().printed].concat();
    EventLog::of(&sim).check(&printed);
}

/// The command with files limited to 64 KiB, which fail like a full disk.
fn limited(sim: &Simulation, folder: &tempfile::TempDir) -> Command {
    let mut command = Command::new("sh");
    // SIGXFSZ would end the process before it can report the error.
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_wireproof"), "follow"]);
    command.args(follow::follow_args(sim, folder.path()));
    command
}
