//! Keys that cannot be looked up: events wait for them within limits, others continue, and none is lost.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use simnet::servers::{Attack, Fault, FaultSchedule, Server, Simulation, Spec};

use crate::event_log::EventLog;
use crate::follow::{self, Follow};
use crate::{report, scaled};

#[test]
fn hosts_of_one_domain_that_never_answer_delay_no_account_with_a_known_key() {
    let (sim, folder) = (sim(20), tempfile::tempdir().unwrap());
    let mut follow = Follow::spawn(follow::command(&sim, folder.path(), &[]), 0);
    (0..sim.account_count()).for_each(|account| sim.write_commit_as(account));
    follow.wait_for(sim.sent_count(RELAY));

    let undisturbed = Delays::measure(&sim, &mut follow, |_| {});
    sim.attack(Attack::SilentHosts, SILENT_ACCOUNTS);
    let attacked = Delays::measure(&sim, &mut follow, |second| {
        if second > 0 {
            sim.attack(Attack::SilentHosts, SILENT_ACCOUNTS_A_SECOND);
        }
    });
    let of_silent = |follow: &Follow| {
        let printed = follow.lines_from(0);
        printed.iter().filter(|printed| printed.did.contains("silent.test")).count()
    };
    let waiting = sim.sent_count(RELAY) - follow.count();
    assert!(waiting > 0, "some events still wait for their keys");
    follow.wait_for(sim.sent_count(RELAY));
    assert!(of_silent(&follow) >= SILENT_ACCOUNTS as usize);

    let ended = follow.interrupt();
    assert!(ended.is_orderly(), "{}: {}", ended.status, ended.errors);
    EventLog::of(&sim).check(&ended.printed);
    let mut silent = ended.printed.iter().filter(|printed| printed.did.contains("silent.test"));
    assert!(silent.all(|printed| &*printed.verdict == "unknown-key"));
    report(&format!(
        "an account at {COMMITS_A_SECOND} commits/s: {undisturbed}; while {SILENT_ACCOUNTS} accounts of one \
         silent domain and more wait for keys: {attacked}"
    ));
}

/// The delays of an account's commits. A commit is written once the one before was printed.
struct Delays {
    /// In ascending order.
    delays: Vec<Duration>,
    time: Duration,
}

impl Delays {
    /// Calls `every_second` with the number of the second.
    fn measure(sim: &Simulation, follow: &mut Follow, every_second: impl Fn(u64)) -> Self {
        let (start, did) = (Instant::now(), sim.account(0).did);
        let mut delays = Vec::new();
        for number in 0..scaled(2, 60) * COMMITS_A_SECOND {
            if number % COMMITS_A_SECOND == 0 {
                every_second(number / COMMITS_A_SECOND);
            }
            let due = start + Duration::from_secs(1) * number as u32 / COMMITS_A_SECOND as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let (mut next, written) = (follow.count() as usize, Instant::now());
            sim.write_commit_as(0);
            follow.wait_until("the commit of an account whose key is known", |follow| {
                let lines = follow.lines_from(next);
                next += lines.len();
                lines.iter().any(|line| *line.did == *did && line.is_verified())
            });
            delays.push(written.elapsed());
        }
        delays.sort_unstable();
        Self { delays, time: start.elapsed() }
    }
}

impl std::fmt::Display for Delays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (count, seconds) = (self.delays.len(), self.time.as_secs_f64());
        let at = |share: usize| self.delays[(count - 1) * share / 100].as_secs_f64() * 1e3;
        let (median, most) = (at(50), at(99));
        write!(f, "all {count} in {seconds:.1} s, median {median:.1} ms, 99 % {most:.1} ms")
    }
}

#[test]
fn single_failures_of_the_directory_lose_no_event() {
    for fault in [Fault::RequestUnavailable, Fault::Drop] {
        let (sim, folder) = (sim(20), tempfile::tempdir().unwrap());
        sim.faults().enable(Server::Plc, fault, FaultSchedule::times(3));
        sim.write_commits(500);
        let mut follow = Follow::spawn(follow::command(&sim, folder.path(), &[]), 0);
        follow.wait_for(sim.sent_count(RELAY));
        EventLog::of(&sim).check(&follow.kill());
        assert_eq!(sim.faults().unfired(), []);
    }
}

#[test]
fn while_the_directory_is_away_events_wait_and_the_run_can_be_stopped() {
    let (sim, folder) = (sim(20), tempfile::tempdir().unwrap());
    sim.stop_server(Server::Plc);
    sim.write_commits(500);
    let run = |number| Follow::spawn(follow::command(&sim, folder.path(), &[]), number);
    let stopped = run(0);
    std::thread::sleep(Duration::from_secs(2));
    let stopped = stopped.interrupt();
    assert!(stopped.is_orderly(), "{}: {}", stopped.status, stopped.errors);
    assert_eq!(stopped.printed, [], "no event is judged without its key");

    let mut follow = run(1);
    std::thread::sleep(Duration::from_secs(2));
    sim.faults().enable(Server::Plc, Fault::RequestUnavailable, FaultSchedule::times(50));
    sim.start_server(Server::Plc).unwrap();
    sim.write_commits(500);
    follow.wait_for(sim.sent_count(RELAY));
    EventLog::of(&sim).check(&follow.kill());
    assert_eq!(sim.faults().unfired(), []);
}

#[test]
fn keys_and_hosts_outlive_a_restart_with_pds_while_the_directory_is_away() {
    for (server, code) in [(Server::Pds(0), "verified"), (RELAY, "event/host")] {
        let (sim, folder) = (sim(6), tempfile::tempdir().unwrap());
        let follow = |run| Follow::spawn(follow_server(&sim, folder.path(), server), run);
        for run in 0..2 {
            sim.write_commits(EVENTS);
            let ended = follow(run).wait();
            assert!(ended.is_orderly(), "{}: {}", ended.status, ended.errors);
            let codes: Vec<&str> = ended.printed.iter().map(|line| &*line.code).collect();
            assert_eq!(codes, [code; EVENTS], "run {run} of {server}");
            sim.stop_server(Server::Plc);
        }
    }
}

/// `follow --pds` of a server, for the events of one run.
fn follow_server(sim: &Simulation, state: &Path, server: Server) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["follow", "--pds", "--cursor", "oldest", "--host", &sim.url(server)]);
    command.args(["--plc", &sim.url(Server::Plc), "--events", &EVENTS.to_string()]);
    command.args(["--development-port", &sim.port(Server::Pds(0)).to_string()]);
    command.arg("--state").arg(state);
    command
}

/// A network with one PDS, and without a limit of the backlog.
fn sim(accounts: usize) -> Simulation {
    let spec = Spec {
        accounts,
        records: 1,
        pds: 1,
        jetstreams: 0,
        retained_events: usize::MAX,
        max_backlog: u64::MAX,
        ..Spec::default()
    };
    Simulation::start(spec).unwrap()
}

const RELAY: Server = Server::Relay(0);

/// More accounts than events may be in flight.
const SILENT_ACCOUNTS: u64 = 40_000;
const SILENT_ACCOUNTS_A_SECOND: u64 = 1_000;
const COMMITS_A_SECOND: u64 = 100;
const EVENTS: usize = 30;
