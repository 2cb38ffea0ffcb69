//! What happens when a cursor cannot be stored?

use std::process::Command;

use simnet::servers::{Server, Simulation, Spec, WriteRate};

use crate::child::{self, Follow};
use crate::ledger::Ledger;
use crate::state;

const RELAY: Server = Server::Relay(0);

#[test]
fn a_cursor_that_cannot_be_stored_ends_it_with_code_4_and_is_as_it_was() {
    let spec = Spec { accounts: 300, records: 3, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    sim.set_write_rate(WriteRate::MatchReaders);
    let mut follow = Follow::spawn(limited(&sim, &folder), 0);
    follow.wait_for(1);
    let ended = follow.wait();
    sim.set_write_rate(WriteRate::Off);
    assert_eq!(ended.status.code(), Some(4), "{}", ended.errors);
    let cursor = state::cursor(folder.path(), &sim, RELAY);
    Ledger::of(&sim).check_cursor(sim.port(RELAY), cursor, &ended.heard);

    // With room again, it goes on from there.
    let mut follow = Follow::spawn(child::command(&sim, folder.path(), &[]), 1);
    let last = sim.last_seq(RELAY);
    follow.wait_until("the last event", |follow| {
        follow.heard_from(0).iter().any(|heard| heard.seq == Some(last))
    });
    let heard = [ended.heard, follow.interrupt().heard].concat();
    Ledger::of(&sim).check(&heard);
}

/// The command, whose files may not become longer than 64 KiB: that is how a full disk looks to it.
fn limited(sim: &Simulation, folder: &tempfile::TempDir) -> Command {
    let mut command = Command::new("sh");
    // The signal that comes with the error would end it before it could say why.
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_wireproof"), "follow"]);
    command.args(child::follow_args(sim, folder.path()));
    command
}
