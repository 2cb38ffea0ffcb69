//! Memory of `follow`: events that wait for a worker or a reader are bounded in bytes, and so is an account's memory.

use std::time::{Duration, Instant};

use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::event_log::EventLog;
use crate::follow::{self, Follow};
use crate::{report, scaled};

#[test]
fn large_frames_that_wait_for_a_slow_reader_take_bounded_memory() {
    let (sim, folder) = (sim(20, 1_000), tempfile::tempdir().unwrap());
    let large = FaultSchedule::ALWAYS.with_amount(LARGE_FRAME_BYTES);
    sim.faults().enable(RELAY, Fault::OversizedFrame, large);
    let follow = Follow::spawn(follow::command(&sim, folder.path(), &["--workers", "2"]), 0);
    follow.read_at(1);
    let waiting = steady_backlog(&sim);
    let peak = peak(&follow);
    let ended = follow.interrupt();
    assert!(ended.is_orderly(), "{}: {}", ended.status, ended.errors);
    assert!(waiting > 500, "the server waits with {waiting} events");
    assert!(peak <= MAX_BYTES, "{peak} bytes of memory");
    report(&format!(
        "frames of {LARGE_FRAME_BYTES} bytes that a slow reader delays: at most {} MiB of memory",
        peak >> 20
    ));
}

#[test]
fn an_account_takes_a_bounded_number_of_bytes() {
    let (few, many) = scaled((100, 2_100), (500, 50_500));
    let commits = 3 * many;
    let [of_few, of_many] = [few, many].map(|accounts| peak_after(accounts, commits));
    assert!(of_few <= MAX_BYTES, "{of_few} bytes of memory with {few} accounts");
    let bytes = of_many.saturating_sub(of_few) / (many - few) as u64;
    // In the short test, some megabytes of events that one of the runs had in memory are a few KiB of each account.
    let max = scaled(2 * MAX_ACCOUNT_BYTES, MAX_ACCOUNT_BYTES);
    assert!(bytes <= max, "{bytes} bytes an account");
    let [of_few, of_many] = [of_few, of_many].map(|bytes| bytes >> 20);
    report(&format!(
        "{commits} commits: at most {of_few} MiB of memory with {few} accounts, {of_many} MiB with {many}, so {bytes} bytes \
         for one more"
    ));
}

/// The peak of memory after as many commits of as many accounts.
fn peak_after(accounts: usize, commits: usize) -> u64 {
    let (sim, folder) = (sim(accounts, commits), tempfile::tempdir().unwrap());
    let mut follow = Follow::spawn(follow::command(&sim, folder.path(), &["--workers", "2"]), 0);
    follow.wait_for(sim.sent_count(RELAY));
    let peak = peak(&follow);
    let ended = follow.interrupt();
    assert!(ended.is_orderly(), "{}: {}", ended.status, ended.errors);
    assert_eq!(EventLog::of(&sim).check(&ended.printed).events, commits);
    peak
}

/// The peak of memory in bytes, in a test build without the pages of the program: their number depends on the
/// libraries' optimisation.
fn peak(follow: &Follow) -> u64 {
    let not_counted = if cfg!(debug_assertions) { follow.file_pages() } else { 0 };
    follow.peak_memory() - not_counted
}

/// The number of events that the server cannot send.
fn steady_backlog(sim: &Simulation) -> u64 {
    let (mut last, mut since) = (None, Instant::now());
    loop {
        let now = sim.backlogs(RELAY).into_iter().max();
        if now.is_none() || now != last {
            (last, since) = (now, Instant::now());
        }
        match last {
            Some(events) if since.elapsed() >= STEADY => return events,
            _ => std::thread::sleep(STEADY / 20),
        }
    }
}

fn sim(accounts: usize, commits: usize) -> Simulation {
    let spec = Spec {
        accounts,
        records: 1,
        jetstreams: 0,
        initial_commits: commits,
        max_backlog: u64::MAX,
        ..Spec::default()
    };
    Simulation::start(spec).unwrap()
}

const RELAY: Server = Server::Relay(0);
const LARGE_FRAME_BYTES: u64 = 1_000_000;
const STEADY: Duration = Duration::from_millis(2_000);

/// Maximum memory of `follow` with few accounts.
const MAX_BYTES: u64 = if cfg!(debug_assertions) { 48 << 20 } else { 96 << 20 };
/// Maximum memory of one more account: key, state, and a share of the memory of its events.
const MAX_ACCOUNT_BYTES: u64 = 4 << 10;
