//! Hosts that serve repositories with a revision ahead of the clock, or slowly: no account is muted, and other
//! accounts are resynced.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use atproto::syntax::Tid;
use simnet::servers::{Attack, Fault, FaultSchedule, Server, Simulation, Spec, WriteRate};
use store::{Options, Store};
use verify::sync::{AccountState, Head};

use crate::follow::{self, Follow, PrintedLine};
use crate::{report, scaled};

const RELAY: Server = Server::Relay(0);
const PDS: Server = Server::Pds(0);

fn sim() -> Simulation {
    let spec = Spec { accounts: 4, records: 10, pds: 1, jetstreams: 0, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn follow(sim: &Simulation, state: &Path) -> Follow {
    Follow::spawn(follow::command(sim, state, &["--resync"]), 0)
}

/// Omits one commit of an account from the stream, and sends the next one.
fn leave_a_gap(sim: &Simulation, account: usize) {
    sim.write_unannounced(account);
    sim.write_commit_as(account);
}

/// The codes of an account's lines, in order; of a line of a resync its kind.
fn codes(lines: &[PrintedLine], did: &str) -> Vec<String> {
    let lines = lines.iter().filter(|line| *line.did == *did);
    let name = |line: &PrintedLine| match &*line.kind {
        "resync" => line.kind.to_string(),
        _ => line.code.to_string(),
    };
    lines.map(name).collect()
}

#[test]
fn a_repository_ahead_of_the_clock_does_not_mute_its_account() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    sim.faults().enable(PDS, Fault::FutureRepo, FaultSchedule::ALWAYS);
    let mut follow = follow(&sim, folder.path());
    sim.write_commit_as(0);
    leave_a_gap(&sim, 0);
    follow.wait_until("the fetch", |_| sim.faults().unfired().is_empty());
    (0..3).for_each(|_| sim.write_commit_as(0));
    follow.wait_for(sim.sent_count(RELAY));
    let expected = ["verified", "verified/broken", "verified/unmended"];
    let mut codes = codes(&follow.kill(), &sim.account(0).did);
    codes.dedup();
    assert_eq!(codes, expected);
}

#[test]
fn a_state_file_with_a_head_ahead_of_the_clock_is_healed() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    sim.write_commit_as(0);
    let expected = sim.expected_accounts().swap_remove(0);
    let year = Duration::from_secs(365 * 24 * 3600);
    let micros = (SystemTime::now() + year).duration_since(UNIX_EPOCH).unwrap().as_micros();
    let rev = Tid::new(micros as u64, 0);
    let head = Some(Head { rev, data: expected.data, commit: expected.commit });
    let did = expected.account.did;
    let store = Store::open(&folder.path().join("state.sqlite"), Options::default()).unwrap();
    let state = AccountState { head, ..AccountState::UNKNOWN };
    let cursors: [(&str, u64); 0] = [];
    store.checkpoint(&cursors, &[(did.as_str(), state)]).unwrap();
    drop(store);

    let mut follow = follow(&sim, folder.path());
    follow.wait_for(1);
    assert_eq!(codes(&follow.lines_from(0), &did)[0], "verified/unmended");
    follow.wait_until("the repository", |follow| codes(&follow.lines_from(0), &did).len() == 2);
    sim.write_commit_as(0);
    follow.wait_until("the next commit", |follow| codes(&follow.lines_from(0), &did).len() == 3);
    assert_eq!(codes(&follow.kill(), &did), ["verified/unmended", "resync", "verified"]);
}

#[test]
fn hosts_of_one_domain_that_serve_slowly_delay_no_event_and_no_resync_of_others() {
    for slow_accounts in [0, 64] {
        let Figures { resynced_after, share, delay } = run_beside(slow_accounts);
        report(&format!(
            "beside {slow_accounts} accounts on slow hosts: resynced after {resynced_after:.1?}, \
             {:.1} % of 100 commits/s delivered, median delay {delay:.1?}",
            share * 100.0
        ));
        assert!(resynced_after < PATIENCE, "slow hosts hold all permits");
        assert!(share > 0.9, "{share}");
    }
}

/// How honest accounts fare.
struct Figures {
    resynced_after: Duration,
    /// The delivered share of events.
    share: f64,
    /// The median time from an event to its line.
    delay: Duration,
}

/// Follows honest accounts while this number of accounts on slow hosts have to be resynced.
fn run_beside(slow_accounts: u64) -> Figures {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let mut follow = follow(&sim, folder.path());
    (0..sim.account_count()).for_each(|account| sim.write_commit_as(account));
    follow.wait_for(sim.sent_count(RELAY));
    sim.attack(Attack::SlowHosts, slow_accounts);
    follow.wait_until("slow fetches", |_| fetches(&sim) >= slow_accounts.min(8));
    sim.set_write_rate(WriteRate::PerSecond(100));
    std::thread::sleep(Duration::from_secs(1));
    let since = Instant::now();
    leave_a_gap(&sim, 0);
    let did = sim.account(0).did;
    let is_resynced =
        |follow: &Follow| codes(&follow.lines_from(0), &did).iter().any(|code| code == "resync");
    follow.wait_until("the repository", |follow| is_resynced(follow) || since.elapsed() > PATIENCE);
    let resynced_after = since.elapsed();
    std::thread::sleep(scaled(Duration::from_secs(5), Duration::from_secs(60)));
    sim.set_write_rate(WriteRate::Off);
    let (lines, sent) = (follow.kill(), sim.sent_count(RELAY));
    let mut delays: Vec<Duration> = lines.iter().filter_map(|line| line.delay).collect();
    delays.sort_unstable();
    Figures {
        resynced_after,
        share: delays.len() as f64 / sent as f64,
        delay: delays[delays.len() / 2],
    }
}

/// The number of requests for repositories.
fn fetches(sim: &Simulation) -> u64 {
    let counts = sim.request_counts(PDS).into_iter();
    counts.filter(|(path, _)| path.contains("getRepo")).map(|(_, count)| count).sum()
}

/// A slow fetch could go on for five minutes.
const PATIENCE: Duration = Duration::from_secs(60);
