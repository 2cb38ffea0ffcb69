//! Hosts that begin another sequence: with and without a word.

use std::time::{Duration, SystemTime};

use atproto::syntax::Tid;
use simnet::servers::{CursorPolicy, Fault, FaultSchedule, Server, Simulation, Spec};
use store::{Options, StateReader, Store};
use verify::sync::AccountState;

use crate::histories::Tables;
use crate::{Running, follow, seqs};

fn network(policy: CursorPolicy) -> Simulation {
    let spec = Spec {
        accounts: accounts(),
        records: 8,
        pds: 1,
        jetstreams: 0,
        initial_commits: 10,
        relay_cursor_policy: policy,
        ..Spec::default()
    };
    Simulation::start(spec).unwrap()
}

/// A cursor that the relay of the network has not reached.
fn ahead(sim: &Simulation) -> String {
    (sim.last_seq(Server::Relay(0)) + 1_000_000).to_string()
}

const POLICIES: [CursorPolicy; 2] = [CursorPolicy::SPECIFIED, CursorPolicy::DEPLOYED_RELAY];

#[test]
fn events_since_a_reset_are_read_from_the_oldest() {
    for policy in POLICIES {
        let (sim, dir) = (network(policy), tempfile::tempdir().unwrap());
        let mut command = crate::wireproof(&sim, "follow", &["--cursor", &ahead(&sim)]);
        command.arg("--state").arg(dir.path().join("state"));
        let mut running = Running::start(command);
        if policy == CursorPolicy::DEPLOYED_RELAY {
            running.wait_for_stderr("connected");
            sim.write_commit_as(0);
        }
        running.wait_for_stderr("the host has reset its sequence");
        let expected: Vec<u64> =
            sim.sent_events(Server::Relay(0)).iter().map(|event| event.seq as u64).collect();
        let lines = running.take(expected.len() + usize::from(policy == CursorPolicy::SPECIFIED));
        let mut seqs = seqs(&lines);
        seqs.sort_unstable();
        assert_eq!(seqs, expected, "{policy:?}");
        running.kill();
    }
}

#[test]
fn accounts_without_another_commit_are_fetched_again_after_a_reset() {
    for policy in POLICIES {
        let (sim, dir) = (network(policy), tempfile::tempdir().unwrap());
        let (tables, dids) = (Tables::new(dir.path()), all_dids(&sim));
        let to = tables.to();
        let args = ["--dids", &*dids, "--backfill", "--to", &*to];
        let running = Running::start(follow(&sim, dir.path(), &args));
        tables.wait_for_histories(accounts());
        let first = sim.last_seq(Server::Relay(0));
        wait_for_cursor(dir.path(), first);
        running.kill();
        // A host that has sent more than it does now, and whose events since are lost.
        set_cursor(dir.path(), first + 1_000_000);
        sim.write_unannounced(1);
        let mut running = Running::start(follow(&sim, dir.path(), &args));
        if policy == CursorPolicy::DEPLOYED_RELAY {
            running.wait_for_stderr("connected");
            sim.write_commit_as(0);
        }
        running.wait_for_stderr("the repositories of all accounts are fetched again");
        let outdated = "SELECT count(*) FROM event WHERE code = 'history/outdated'";
        tables.wait("all are incomplete", outdated, accounts());
        tables.wait_for_histories(accounts());
        let expected: usize = sim.expected_accounts().iter().map(|of| of.records.len()).sum();
        tables.wait("all records", "SELECT count(*) FROM record", expected);
        running.kill();
    }
}

#[test]
fn a_repository_whose_fetch_began_before_a_reset_does_not_complete_a_history() {
    let (sim, dir) = (network(CursorPolicy::DEPLOYED_RELAY), tempfile::tempdir().unwrap());
    let tables = Tables::new(dir.path());
    let dids = all_dids(&sim);
    let host = Server::Pds(0);
    let to = tables.to();
    let running = Running::start(follow(&sim, dir.path(), &["--dids", &*dids, "--to", &*to]));
    let last = sim.last_seq(Server::Relay(0));
    wait_for_cursor(dir.path(), last);
    running.kill();
    set_cursor(dir.path(), last + 1_000_000);
    let slow = FaultSchedule::times(4).with_amount(300);
    sim.faults().enable(host, Fault::SlowRepo, slow);
    let args = ["--dids", &*dids, "--backfill", "--to", &*to];
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    running.wait_for_stderr("connected");
    while sim.faults().fired(host, Fault::SlowRepo) < 4 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // It is in none of the repositories that are sent, and its event is lost.
    sim.write_unannounced(1);
    sim.write_commit_as(0);
    running.wait_for_stderr("the repositories of all accounts are fetched again");
    tables.wait_for_histories(accounts());
    let expected: usize = sim.expected_accounts().iter().map(|of| of.records.len()).sum();
    tables.wait("all records", "SELECT count(*) FROM record", expected);
    running.kill();
}

#[test]
fn a_check_of_all_accounts_goes_on_after_a_kill() {
    let (sim, dir) = (network(CursorPolicy::SPECIFIED), tempfile::tempdir().unwrap());
    let (tables, dids) = (Tables::new(dir.path()), all_dids(&sim));
    let to = tables.to();
    // Without histories: the accounts are only known by their commits.
    let args = ["--dids", &*dids, "--to", &*to];
    for account in 0..accounts() {
        sim.write_commit_as(account);
    }
    let running = Running::start(follow(&sim, dir.path(), &args));
    let last = sim.last_seq(Server::Relay(0));
    wait_for_cursor(dir.path(), last);
    running.kill();
    set_cursor(dir.path(), last + 1_000_000);
    sim.stop_server(Server::Pds(0));
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    running.wait_for_stderr("the repositories of all accounts are fetched again");
    assert!(dir.path().join("state/recheck.json").exists());
    running.kill();
    sim.start_server(Server::Pds(0)).unwrap();
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    running.wait_for_stderr("all accounts were checked");
    tables.wait_for_histories(accounts());
    let expected: usize = sim.expected_accounts().iter().map(|of| of.records.len()).sum();
    assert_eq!(tables.query("SELECT count(*) FROM record"), i64::try_from(expected).ok());
    assert!(!dir.path().join("state/recheck.json").exists());
    running.kill();
}

#[test]
fn an_account_whose_revisions_go_back_is_named_and_accepted_after_its_reset() {
    let (sim, dir) = (network(CursorPolicy::SPECIFIED), tempfile::tempdir().unwrap());
    let (tables, did) = (Tables::new(dir.path()), sim.account(0).did);
    let to = tables.to();
    let args = ["--dids", &*did, "--backfill", "--to", &*to];
    let running = Running::start(follow(&sim, dir.path(), &args));
    tables.wait_for_histories(1);
    wait_for_cursor(dir.path(), sim.last_seq(Server::Relay(0)));
    running.kill();
    // As a server that has lost the last two minutes would have it: all that follows is older.
    set_rev(dir.path(), &did, SystemTime::now() + Duration::from_secs(120));
    sim.write_commit_as(0);
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    let line = running.wait_for_stderr("--reset-account");
    assert!(line.contains(&did), "{line}");
    running.kill();
    let mut resetting = follow(&sim, dir.path(), &args);
    let running = Running::start({
        resetting.args(["--reset-account", &did]);
        resetting
    });
    let expected = sim.expected_accounts().remove(0).records.len();
    tables.wait("all records", "SELECT count(*) FROM record", expected);
    tables.wait_for_histories(1);
    running.kill();
}

#[test]
fn a_live_run_without_an_event_leaves_a_place_to_resume_at() {
    let spec = Spec { accounts: 2, records: 4, pds: 1, jetstreams: 0, ..Spec::default() };
    let (sim, dir) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let live = || {
        let mut command = crate::wireproof(&sim, "follow", &["--cursor", "live"]);
        command.arg("--state").arg(dir.path().join("state"));
        command
    };
    let mut running = Running::start(live());
    running.wait_for_stderr("connected, live");
    assert_eq!(running.interrupt().1, Some(130));
    sim.write_commit_as(0);
    let mut running = Running::start(live());
    running.wait_for_stderr("connected, resuming after 0");
    let sent = sim.sent_events(Server::Relay(0));
    let expected: Vec<u64> = sent.iter().map(|event| event.seq as u64).collect();
    let mut seqs = seqs(&running.take(expected.len()));
    seqs.sort_unstable();
    assert_eq!(seqs, expected);
    running.kill();
}

/// Number of accounts.
fn accounts() -> usize {
    if std::env::var_os("WIREPROOF_SOAK").is_some() { 1_000 } else { 4 }
}

fn all_dids(sim: &Simulation) -> String {
    let dids = (0..sim.account_count()).map(|at| sim.account(at).did);
    dids.collect::<Vec<_>>().join(",")
}

/// Waits until the cursor is at the last event.
fn wait_for_cursor(dir: &std::path::Path, seq: i64) {
    let path = dir.join("state/state.sqlite");
    let has_passed = |store: StateReader| {
        let cursors = store.cursors().unwrap_or_default();
        cursors.iter().any(|(_, cursor)| *cursor >= seq as u64)
    };
    while !StateReader::open(&path).is_ok_and(has_passed) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Stores another cursor of every stream.
fn set_cursor(dir: &std::path::Path, seq: i64) {
    let store = Store::open(&dir.join("state/state.sqlite"), Options::default()).unwrap();
    let cursors: Vec<(String, u64)> =
        store.cursors().unwrap().into_iter().map(|(stream, _)| (stream, seq as u64)).collect();
    store.checkpoint(&cursors, &[] as &[(&str, AccountState)]).unwrap();
}

/// Stores this time as the time of an account's newest revision.
fn set_rev(dir: &std::path::Path, did: &str, time: SystemTime) {
    let path = dir.join("state/state.sqlite");
    let mut state = StateReader::open(&path).unwrap().account(did).unwrap().unwrap();
    let micros = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    state.head.as_mut().unwrap().rev = Tid::new(micros as u64, 0);
    let store = Store::open(&path, Options::default()).unwrap();
    store.checkpoint(&[] as &[(&str, u64)], &[(did, state)]).unwrap();
}
