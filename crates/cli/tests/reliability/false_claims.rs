//! `#account` events are not signed. They do not deactivate an account of another host, a real deactivation is
//! confirmed by the account's own server, and events about invented accounts take no space.

use std::collections::HashSet;
use std::path::Path;

use simnet::servers::{AccountStatus, Attack, Server, Simulation, Spec};

use crate::follow::{self, Follow, PrintedLine};
use crate::{report, scaled};

const RELAYS: [Server; 2] = [Server::Relay(0), Server::Relay(1)];
const PDS: Server = Server::Pds(0);
const ACCOUNTS: usize = 8;

/// A network whose accounts have written, on two PDSs.
fn network() -> Simulation {
    let spec = Spec { accounts: ACCOUNTS, records: 2, relays: 2, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    write(&sim);
    sim
}

/// Writes a commit of every account.
fn write(sim: &Simulation) {
    (0..ACCOUNTS).for_each(|account| sim.write_commit_as(account));
}

/// Follows `host` until lines of all its events are printed, in any order: an account may wait for its server.
fn follow_all(sim: &Simulation, state: &Path, host: Server, cursor: i64) -> Vec<PrintedLine> {
    follow_all_with(sim, state, host, cursor, &[])
}

fn follow_all_with(
    sim: &Simulation,
    state: &Path,
    host: Server,
    cursor: i64,
    args: &[&str],
) -> Vec<PrintedLine> {
    let is_known = state.join("state.sqlite").exists();
    let stored = is_known.then(|| follow::stored_cursor(state, sim, host)).flatten();
    let after = stored.unwrap_or(cursor);
    let sent = sim.sent_events(host).into_iter().map(|event| event.seq);
    let sent: Vec<i64> = sent.filter(|seq| *seq > after).collect();
    let mut command = follow::command_from(sim, state, &[host], &cursor.to_string());
    command.args(args);
    let mut follow = Follow::spawn(command, 0);
    follow.wait_for(sent.len() as u64);
    follow.wait_until("a line of each event", |follow| {
        let lines = follow.lines_from(0);
        let printed: HashSet<i64> = lines.iter().filter_map(|printed| printed.seq).collect();
        sent.iter().all(|seq| printed.contains(seq))
    });
    follow.interrupt().printed
}

fn codes<'p>(printed: &'p [PrintedLine], kind: &str) -> Vec<&'p str> {
    let of_kind = printed.iter().filter(|printed| &*printed.kind == kind);
    of_kind.map(|printed| &*printed.code).collect()
}

/// How often the PDSs were asked for the status of an account.
fn status_requests(sim: &Simulation) -> u64 {
    let requests = |number| sim.request_counts(Server::Pds(number));
    let counts = [0, 1].map(|number| requests(number).get(GET_REPO_STATUS).copied().unwrap_or(0));
    counts.iter().sum()
}

#[test]
fn a_relay_that_calls_active_accounts_deactivated_mutes_none() {
    let (sim, state) = (network(), tempfile::tempdir().unwrap());
    sim.attack(Attack::FalseDeactivations, ACCOUNTS as u64);
    write(&sim);
    let printed = follow_all(&sim, state.path(), RELAYS[0], 0);
    assert_eq!(codes(&printed, "account"), ["unchecked"; ACCOUNTS]);
    assert_eq!(codes(&printed, "commit"), ["verified"; 2 * ACCOUNTS]);
    assert_eq!(status_requests(&sim), ACCOUNTS as u64, "each account's server is asked once");
}

#[test]
fn a_real_deactivation_mutes_and_a_reactivation_restores() {
    let (sim, state) = (network(), tempfile::tempdir().unwrap());
    let printed = |sim: &Simulation, from: i64| follow_all(sim, state.path(), RELAYS[0], from);
    printed(&sim, 0);
    sim.set_account_status(0, AccountStatus::Deactivated);
    sim.write_commit_as(0);
    sim.write_commit_as(0);
    assert_eq!(codes(&printed(&sim, 0), "commit"), ["event/inactive"; 2]);
    assert_eq!(status_requests(&sim), 1, "the answer holds for the second commit");
    sim.set_account_status(0, AccountStatus::Active);
    sim.write_commit_as(0);
    let restored = printed(&sim, 0);
    assert!(!codes(&restored, "commit").contains(&"event/inactive"), "{restored:?}");
}

#[test]
fn a_restart_against_another_relay_does_not_inherit_a_claim() {
    let (sim, state) = (network(), tempfile::tempdir().unwrap());
    sim.attack(Attack::FalseDeactivations, ACCOUNTS as u64);
    follow_all(&sim, state.path(), RELAYS[0], 0);
    assert_eq!(status_requests(&sim), 0, "no commit came after the claims");
    let from = sim.last_seq(RELAYS[1]);
    write(&sim);
    let printed = follow_all(&sim, state.path(), RELAYS[1], from);
    assert_eq!(codes(&printed, "commit"), ["verified"; ACCOUNTS]);
}

#[test]
fn a_pds_cannot_speak_for_the_accounts_of_another() {
    let (sim, state) = (network(), tempfile::tempdir().unwrap());
    follow_all(&sim, state.path(), RELAYS[0], 0);
    let (from, relay_from) = (sim.last_seq(PDS), sim.last_seq(RELAYS[0]));
    sim.attack(Attack::FalseDeactivations, ACCOUNTS as u64);
    let printed = follow_all_with(&sim, state.path(), PDS, from, &["--pds"]);
    let mut of_accounts = codes(&printed, "account");
    of_accounts.sort_unstable();
    // Accounts are assigned to the two PDSs in turn.
    let expected = [["event/host"; ACCOUNTS / 2], ["unchecked"; ACCOUNTS / 2]].concat();
    assert_eq!(of_accounts, expected);
    // The relay sends the same claims, which its commits disprove.
    write(&sim);
    let printed = follow_all(&sim, state.path(), RELAYS[0], relay_from);
    assert_eq!(codes(&printed, "commit"), ["verified"; ACCOUNTS]);
}

#[test]
fn events_about_invented_accounts_take_no_space() {
    let invented = scaled(8_000, 81_000);
    let (retained_events, max_backlog) = (100_000, 100_000);
    let spec = Spec { accounts: 3, records: 1, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(Spec { retained_events, max_backlog, ..spec }).unwrap();
    let state = tempfile::tempdir().unwrap();
    sim.write_commits(10);
    sim.attack(Attack::InventedAccounts, invented);
    sim.write_commits(1);
    let printed = follow_all(&sim, state.path(), RELAYS[0], 0);
    assert_eq!(codes(&printed, "account").len() as u64, invented);
    let bytes = state.path().join("state.sqlite").metadata().unwrap().len();
    report(&format!("state file after {invented} invented accounts: {bytes} bytes"));
    assert!(bytes <= 64 << 10, "{bytes} bytes");
}

const GET_REPO_STATUS: &str = "/xrpc/com.atproto.sync.getRepoStatus";
