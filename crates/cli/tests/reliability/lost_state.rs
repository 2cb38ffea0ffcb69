//! A state that is deleted, emptied or opened twice during a run ends it with exit code 4 within a checkpoint, and
//! the message names the cursor with which the next run continues without a gap.

use std::fs;
use std::path::Path;

use simnet::servers::{Server, Simulation, Spec};

use crate::event_log::EventLog;
use crate::follow::{self, Ended, Follow};

const RELAY: Server = Server::Relay(0);

fn network() -> Simulation {
    let spec = Spec { accounts: 20, records: 3, jetstreams: 0, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

/// Follows until every event is printed, changes the files of the state while no event arrives, and waits for
/// the end.
fn ended_after(sim: &Simulation, state: &Path, harm: impl FnOnce(&Path)) -> Ended {
    sim.write_commits(30);
    let mut follow = Follow::spawn(follow::command(sim, state, &[]), 0);
    follow.wait_for(sim.sent_count(RELAY));
    harm(&state.join("state.sqlite"));
    follow.wait()
}

/// Checks the exit code and the message, and that a run from the named cursor misses nothing.
fn check_continued(sim: &Simulation, ended: Ended) {
    assert_eq!(ended.status.code(), Some(4), "{}", ended.errors);
    let cursor = sim.last_seq(RELAY).to_string();
    assert!(ended.errors.contains(&format!("--cursor {cursor}")), "{}", ended.errors);
    sim.write_commits(30);
    let new_state = tempfile::tempdir().unwrap();
    let mut follow =
        Follow::spawn(follow::command_from(sim, new_state.path(), &[RELAY], &cursor), 1);
    let last = sim.last_seq(RELAY);
    follow.wait_until("the last event", |follow| {
        follow.lines_from(0).iter().any(|printed| printed.seq == Some(last))
    });
    let printed = [ended.printed, follow.interrupt().printed].concat();
    assert_eq!(EventLog::of(sim).check(&printed).repeated, 0);
}

#[test]
fn a_deleted_state_folder_ends_the_run_and_the_named_cursor_continues_it() {
    let (sim, folder) = (network(), tempfile::tempdir().unwrap());
    let state = folder.path().join("state");
    let ended =
        ended_after(&sim, &state, |file| fs::remove_dir_all(file.parent().unwrap()).unwrap());
    assert!(ended.errors.contains("deleted or replaced"), "{}", ended.errors);
    check_continued(&sim, ended);
}

#[test]
fn an_emptied_state_file_ends_the_run_and_is_damage_for_the_next_one() {
    let (sim, folder) = (network(), tempfile::tempdir().unwrap());
    let ended = ended_after(&sim, folder.path(), |file| fs::write(file, "").unwrap());
    let again = Follow::spawn(follow::command(&sim, folder.path(), &[]), 1).wait();
    for ended in [&ended, &again] {
        assert_eq!(ended.status.code(), Some(4), "{}", ended.errors);
        assert!(ended.errors.contains("damaged: it has 0 bytes"), "{}", ended.errors);
    }
    assert!(again.printed.is_empty());
    check_continued(&sim, ended);
}

#[test]
fn a_second_process_on_the_same_folder_ends_the_first() {
    let (sim, folder) = (network(), tempfile::tempdir().unwrap());
    let second = || follow::command(&sim, folder.path(), &[]);
    let mut started = None;
    let ended = ended_after(&sim, folder.path(), |file| {
        let refused = Follow::spawn(second(), 1).wait();
        assert_eq!(refused.status.code(), Some(4), "{}", refused.errors);
        let message = "state.sqlite: another process uses this state file, and holds the lock file next to it";
        assert!(refused.errors.contains(message), "{}", refused.errors);
        fs::remove_file(file.with_extension("sqlite.lock")).unwrap();
        started = Some(Follow::spawn(second(), 2));
    });
    assert_eq!(ended.status.code(), Some(4), "{}", ended.errors);
    assert!(ended.errors.contains("state.sqlite.lock"), "{}", ended.errors);
    sim.write_commits(1);
    started.unwrap().wait_for(1);
}
