//! SIGHUP: the files of `--dids` are read again.

use std::fs;

use simnet::servers::{Server, Simulation, Spec};

use crate::jetstream;
use crate::{Running, follow, quiet};

/// The accounts of the next `count` lines.
fn accounts(running: &mut Running, count: usize) -> Vec<String> {
    let lines = running.take(count);
    let mut dids: Vec<_> =
        lines.iter().map(|line| line["did"].as_str().unwrap().to_owned()).collect();
    dids.sort();
    dids.dedup();
    dids
}

#[test]
fn accounts_of_a_file_are_added_and_removed_by_a_signal() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let (list, [first, second]) = (dir.path().join("dids"), [0, 1].map(|at| sim.account(at).did));
    fs::write(&list, &first).unwrap();
    let dids = format!("@{}", list.display());
    let mut running = Running::start(follow(&sim, dir.path(), &["--dids", &dids]));
    running.wait_for_stderr("connected");
    // Both write a commit by their rotation, and have an `#identity` event.
    let write = || (0..2).for_each(|account| sim.rotate_key(account));
    write();
    assert_eq!(accounts(&mut running, 2), std::slice::from_ref(&first));
    fs::write(&list, &second).unwrap();
    running.signal("HUP");
    running.wait_for_stderr("SIGHUP: 1 accounts are selected, 1 were");
    write();
    assert_eq!(accounts(&mut running, 2), std::slice::from_ref(&second));
    // A handle is the account that claims it, as people write it.
    fs::write(&list, format!("{first}\n @{}\n", sim.account(1).handle)).unwrap();
    running.signal("HUP");
    running.wait_for_stderr("SIGHUP: 2 accounts are selected, 1 were");
    write();
    let mut both = [first, second];
    both.sort();
    assert_eq!(accounts(&mut running, 4), both);
}

#[test]
fn a_list_that_is_empty_malformed_or_gone_changes_nothing() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let (list, first) = (dir.path().join("dids"), sim.account(0).did);
    fs::write(&list, &first).unwrap();
    let dids = format!("@{}", list.display());
    let mut running = Running::start(follow(&sim, dir.path(), &["--dids", &dids]));
    running.wait_for_stderr("connected");
    for text in ["# none\n", "not a did\n"] {
        fs::write(&list, text).unwrap();
        running.signal("HUP");
        running.wait_for_stderr("SIGHUP: the accounts stay as they were");
    }
    fs::remove_file(&list).unwrap();
    running.signal("HUP");
    running.wait_for_stderr("SIGHUP: the accounts stay as they were");
    (0..2).for_each(|account| sim.rotate_key(account));
    assert_eq!(accounts(&mut running, 2), [first]);
}

#[test]
fn without_a_file_the_signal_is_answered_and_changes_nothing() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    running.wait_for_stderr("connected");
    running.signal("HUP");
    running.wait_for_stderr("SIGHUP: --dids names no file");
    sim.rotate_key(0);
    assert_eq!(running.take(2).len(), 2);
}

#[test]
fn the_filter_of_a_jetstream_follows_the_file() {
    let spec = Spec { accounts: 6, records: 5, pds: 1, relays: 0, ..Spec::default() };
    let (sim, dir) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let (list, [first, second]) = (dir.path().join("dids"), [0, 1].map(|at| sim.account(at).did));
    fs::write(&list, &first).unwrap();
    let dids = format!("@{}", list.display());
    let args = ["--jetstream", "--dids", &dids, "--backoff-first-ms", "10"];
    let mut running = Running::start(jetstream::follow(&sim, dir.path(), &args));
    running.wait_for_stderr("connected");
    assert_eq!(sim.backlogs(Server::Jetstream(0)).len(), 1);
    sim.change_handle(0, "first.test");
    assert_eq!(accounts(&mut running, 1), [first]);
    fs::write(&list, &second).unwrap();
    running.signal("HUP");
    running.wait_for_stderr("SIGHUP: 1 accounts are selected");
    sim.change_handle(0, "again.test");
    sim.change_handle(1, "second.test");
    assert_eq!(accounts(&mut running, 1), [second]);
}
