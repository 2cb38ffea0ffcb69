//! Hosts of the simulated network: without a fault no host is accused, and every fault is found by its code.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::http::Client;
use net::identity::{self, Resolver};
use simnet::servers::{
    AccountChanges, AccountStatus, CursorPolicy, Fault, FaultSchedule, Server, Simulation, Spec,
    WriteRate,
};
use wireproof_host_judge::{Clients, Judgement, Options, judge};

fn spec() -> Spec {
    Spec { accounts: 8, records: 40, jetstreams: 0, ..Spec::default() }
}

fn options() -> Options {
    let mut options = Options::default();
    (options.accounts, options.requests_per_s) = (8, 500);
    (options.listen, options.idle) = (Duration::from_secs(3), Duration::from_secs(2));
    options.quiet = Duration::from_millis(500);
    options.max_repo_bytes = 4 << 20;
    options
}

fn clients(network: &Simulation) -> Clients {
    let dns = Arc::new(LoopbackDns);
    let http = Client::new(EgressPolicy::Loopback, dns.clone()).unwrap();
    let directory: net::http::Url = network.url(Server::Plc).parse().unwrap();
    let mut options = identity::Options::default();
    options.directory = directory.clone();
    options.min_refresh_interval = Duration::ZERO;
    options.development_port = Some(network.port(Server::Pds(0)));
    Clients { resolver: Resolver::new(http.clone(), dns, options), http, directory }
}

fn judged(network: &Simulation, server: Server, options: &Options) -> Judgement {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let url = network.url(server).parse().unwrap();
    runtime.unwrap().block_on(judge(&url, &clients(network), options))
}

/// All changes that accounts make.
fn make_changes(network: &Simulation, rounds: usize) {
    let mut changes = AccountChanges::new(7);
    for round in 0..rounds {
        changes.make_next(network);
        network.write_commits(3);
        let account = round % network.account_count();
        if network.account(account).status == AccountStatus::Active {
            match round % 4 {
                0 => network.rotate_key(account),
                1 => network.change_handle(account, &format!("new{round}.test")),
                2 => network.send_sync(account),
                _ => {
                    network.set_account_status(account, AccountStatus::Deactivated);
                    network.set_account_status(account, AccountStatus::Active);
                }
            }
        }
        std::thread::sleep(Duration::from_millis(25));
    }
}

#[test]
fn a_host_without_a_fault_is_not_accused_under_heavy_traffic() {
    let network = Simulation::start(Spec { accounts: 30, initial_commits: 300, ..spec() }).unwrap();
    network.set_write_rate(WriteRate::PerSecond(150));
    let mut options = options();
    options.listen = Duration::from_secs(4);
    options.accounts = 20;
    for server in [Server::Pds(0), Server::Pds(1), Server::Relay(0)] {
        let judgement = std::thread::scope(|scope| {
            let judged = scope.spawn(|| judged(&network, server, &options));
            make_changes(&network, 40);
            judged.join().unwrap()
        });
        assert_eq!(judgement.violations(), BTreeSet::new(), "{server}: {judgement:#?}");
        assert_eq!(judgement.verdict, "sound", "{server}: {judgement:#?}");
        assert!(judgement.stream.live > 100 && judgement.stream.proved > 200, "{judgement:#?}");
        let expected = if server == Server::Relay(0) { "relay" } else { "pds" };
        assert_eq!(judgement.kind, expected);
        assert!(server == Server::Relay(0) || judgement.repositories > 3, "{judgement:#?}");
    }
}

/// A fault that a host commits.
#[derive(Clone, Copy, Debug)]
struct Case {
    fault: Fault,
    schedule: FaultSchedule,
    server: Server,
    /// The code of the violation; `None` if the host may do this.
    code: Option<&'static str>,
}

const fn of(fault: Fault, schedule: FaultSchedule, code: &'static str) -> Case {
    Case { fault, schedule, server: Server::Pds(0), code: Some(code) }
}

const fn of_relay(fault: Fault, schedule: FaultSchedule, code: &'static str) -> Case {
    Case { server: Server::Relay(0), ..of(fault, schedule, code) }
}

/// Conduct that is allowed, or that decides nothing.
const fn no_violation(fault: Fault, schedule: FaultSchedule) -> Case {
    Case { fault, schedule, server: Server::Pds(0), code: None }
}

const ALWAYS: FaultSchedule = FaultSchedule::ALWAYS;
const ONCE: FaultSchedule = FaultSchedule::ONCE;
/// Once, on the live stream, after some of its frames.
const LIVE: FaultSchedule = FaultSchedule::ONCE.after(5);
const AGAIN: FaultSchedule = FaultSchedule::times(3).after(5);

const CASES: &[Case] = &[
    of(Fault::OddEntries, ALWAYS, "list/entry"),
    of(Fault::ListRepeats, ALWAYS, "list/repeated"),
    of(Fault::ListStuck, ALWAYS, "list/cursor"),
    of(Fault::ListUnserved, ALWAYS, "list/unserved"),
    of(Fault::ListOmits, ALWAYS, "list/omitted"),
    of(Fault::ListOldRev, ALWAYS, "list/rev"),
    of(Fault::ListActive, ALWAYS, "list/status"),
    of(Fault::StatusOther, ALWAYS, "status/account"),
    of(Fault::OldRev, ALWAYS, "repo/stated-rev"),
    of(Fault::UnknownActive, ALWAYS, "error/unknown-account"),
    of(Fault::RateHeaders, ALWAYS, "answer/rate-limit"),
    of(Fault::PrivateRedirect, ALWAYS, "answer/redirect"),
    of(Fault::NoBlocks, ALWAYS, "method/missing"),
    of(Fault::WithheldBlock, ALWAYS, "blocks/missing"),
    of(Fault::ExtraBlock, ALWAYS, "blocks/extra"),
    of(Fault::CutRepo, ALWAYS, "answer/cut"),
    of(Fault::StalledRepo, ALWAYS, "answer/stalled"),
    of(Fault::EndlessRepo, ALWAYS, "repo/endless"),
    of(Fault::BombRepo, ALWAYS, "answer/coding"),
    of(Fault::FutureRepo, ALWAYS, "repo/future-rev"),
    of(Fault::OldRepo, ALWAYS, "repo/stale"),
    of(Fault::ForeignRepo, ALWAYS, "signature/wrong"),
    of(Fault::OddTree, ALWAYS, "tree/untrimmed-root"),
    of(Fault::RepoWithoutRecord, ALWAYS, "record/missing"),
    of(Fault::DamagedRepo, ALWAYS, "car/hash"),
    of(Fault::ServesInactive, ALWAYS, "repo/served-inactive"),
    of(Fault::RefusesRepo, ALWAYS, "repo/unserved"),
    of(Fault::RecordWithoutNode, ALWAYS, "tree/missing-node"),
    of(Fault::RecordDenied, ALWAYS, "record/other"),
    of(Fault::NoPrevData, ONCE, "event/prev-data-missing"),
    of(Fault::WrongPrevData, ONCE, "event/prev-data"),
    of(Fault::WrongSince, ONCE, "event/since"),
    of(Fault::OpWithoutPrev, ONCE, "event/op"),
    of(Fault::HiddenOp, ONCE, "event/inversion"),
    of(Fault::EventWithoutNode, ONCE, "event/partial-tree"),
    of(Fault::EventWithoutRecord, ONCE, "event/record-missing"),
    of(Fault::WrongHash, ONCE, "car/hash"),
    of(Fault::TooBig, ONCE, "event/too-big"),
    of(Fault::WrongTime, ONCE, "event/time"),
    of(Fault::RepeatedCommit, ONCE, "event/stale-rev"),
    of(Fault::MalformedHandle, ONCE, "event/handle"),
    of(Fault::LargeSync, ONCE, "sync/limit"),
    of(Fault::ContradictoryAccount, ONCE, "account/contradiction"),
    of(Fault::OppositeAccount, ONCE, "account/other-status"),
    of(Fault::UpgradeNotFound, ALWAYS, "stream/missing"),
    of(Fault::UpgradeNotImplemented, ALWAYS, "stream/missing"),
    of(Fault::Cut, ALWAYS.with_amount(6_000), "stream/closes"),
    of(Fault::Close, FaultSchedule::times(3).every(4), "stream/closes"),
    of(Fault::Stall, LIVE, "stream/silent"),
    of(Fault::ErrorFrame, AGAIN, "stream/too-slow"),
    of(Fault::RepeatedSeq, LIVE, "seq/repeated"),
    of(Fault::MissingSeq, LIVE, "stream/lost-event"),
    of(Fault::ReversedSeq, LIVE, "seq/regressed"),
    of(Fault::ReusedSeq, LIVE, "seq/reused"),
    of(Fault::OversizedFrame, LIVE, "frame/limit"),
    of(Fault::GarbageFrame, LIVE, "frame/cbor"),
    of(Fault::WrongMessage, LIVE, "frame/text"),
    of(Fault::IgnoredCursor, ALWAYS, "cursor/ignored"),
    of(Fault::FalseOutdated, ALWAYS, "cursor/outdated"),
    of(Fault::AlteredReplay, ALWAYS, "replay/differs"),
    of(Fault::MissingReplay, ONCE.after(3), "replay/missing"),
    of_relay(Fault::OddEntries, ALWAYS, "list/entry"),
    of_relay(Fault::NoPrevData, ONCE, "event/prev-data-missing"),
    of_relay(Fault::MissingSeq, LIVE, "stream/lost-event"),
    of_relay(Fault::ReversedSeq, LIVE, "seq/regressed"),
    of_relay(Fault::OldRev, ALWAYS, "repo/stated-rev"),
    of_relay(Fault::IgnoredCursor, ALWAYS, "cursor/ignored"),
    no_violation(Fault::UnknownKind, ALWAYS),
    no_violation(Fault::UnknownOperation, ALWAYS),
    no_violation(Fault::LateAnswer, ALWAYS),
    no_violation(Fault::SlowRepo, ALWAYS),
    no_violation(Fault::RequestTooMany, ALWAYS.every(5)),
    no_violation(Fault::RequestTooManyUnstated, FaultSchedule::times(3).every(9)),
    no_violation(Fault::RequestUnavailable, ALWAYS.every(4)),
    no_violation(Fault::Drop, ALWAYS.every(4)),
    no_violation(Fault::UpgradeTooMany, ONCE),
    no_violation(Fault::UpgradeUnavailable, ONCE),
    no_violation(Fault::UpgradeForbidden, ALWAYS),
    no_violation(Fault::Close, LIVE),
];

/// The violations that are found of a host with one fault.
fn found(case: &Case) -> Judgement {
    let network = Simulation::start(Spec { accounts: 6, initial_commits: 24, ..spec() }).unwrap();
    network.set_account_status(4, AccountStatus::Deactivated);
    network.faults().enable(case.server, case.fault, case.schedule);
    let judgement = std::thread::scope(|scope| {
        let judged = scope.spawn(|| judged(&network, case.server, &options()));
        std::thread::sleep(Duration::from_millis(400));
        for round in 0..9 {
            network.write_commits(4);
            [0, 2].into_iter().for_each(|account| network.write_commit_as(account));
            match round {
                2 => network.change_handle(0, "other.test"),
                3 => network.send_sync(2),
                8 => network.set_account_status(2, AccountStatus::Active),
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(90));
        }
        judged.join().unwrap()
    });
    assert_eq!(network.faults().unfired(), [], "{case:?}");
    judgement
}

#[test]
fn every_fault_is_found_by_its_code_and_nothing_else_is() {
    let queue = std::sync::Mutex::new(CASES.iter());
    let wrong = std::sync::Mutex::new(Vec::new());
    let only = std::env::var("FAULT").ok();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let Some(case) = queue.lock().unwrap().next() else { return };
                    if only.as_ref().is_some_and(|only| only != case.fault.name()) {
                        continue;
                    }
                    let judgement = found(case);
                    let expected: BTreeSet<_> = case.code.into_iter().collect();
                    if judgement.violations() != expected {
                        let codes = judgement.violations();
                        let findings = judgement.findings.iter().take(4);
                        let findings: Vec<_> = findings
                            .map(|found| {
                                format!(
                                    "{} {} {:?} {}",
                                    found.code, found.method, found.seq, found.message
                                )
                            })
                            .collect();
                        let line = format!(
                            "{:?} of {}: {codes:?}, not {expected:?} {findings:#?}",
                            case.fault, case.server
                        );
                        wrong.lock().unwrap().push(line);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut faults: Vec<Fault> =
        CASES.iter().filter(|case| case.code.is_some()).map(|case| case.fault).collect();
    faults.sort_unstable();
    faults.dedup();
    assert!(faults.len() >= 30, "{} faults", faults.len());
}

/// Judges the first PDS while `act` runs.
fn judged_while(spec: Spec, act: impl FnOnce(&Simulation)) -> Judgement {
    let network = Simulation::start(Spec { accounts: 6, initial_commits: 24, ..spec }).unwrap();
    std::thread::scope(|scope| {
        let judged = scope.spawn(|| judged(&network, Server::Pds(0), &options()));
        std::thread::sleep(Duration::from_millis(400));
        network.write_commits(10);
        act(&network);
        std::thread::sleep(Duration::from_millis(200));
        network.write_commits(10);
        judged.join().unwrap()
    })
}

fn only(code: &'static str) -> BTreeSet<&'static str> {
    [code].into()
}

#[test]
fn a_commit_that_was_not_sent_is_a_gap() {
    let judgement = judged_while(spec(), |network| {
        network.write_commit_as(0);
        network.write_unannounced(0);
        network.write_commit_as(0);
    });
    assert_eq!(judgement.violations(), only("event/since"), "{judgement:#?}");
}

#[test]
fn a_key_of_nobody_is_found_in_the_stream_and_in_the_repository() {
    let judgement = judged_while(spec(), |network| network.sign_with_unregistered_key(0));
    assert_eq!(judgement.violations(), only("signature/wrong"), "{judgement:#?}");
    let methods: BTreeSet<_> = judgement.findings.iter().map(|found| found.method).collect();
    assert!(methods.contains("subscribeRepos"), "{judgement:#?}");
}

#[test]
fn commits_of_an_inactive_account_are_found() {
    let judgement = judged_while(spec(), |network| {
        network.set_account_status(0, AccountStatus::Deactivated);
        network.write_commit_as(0);
    });
    assert_eq!(judgement.violations(), only("account/inactive-commit"), "{judgement:#?}");
}

#[test]
fn commits_of_an_account_of_another_server_are_found() {
    let judgement = judged_while(spec(), |network| network.write_commit_at(1, 0));
    assert_eq!(judgement.violations(), only("event/host"), "{judgement:#?}");
}

#[test]
fn a_cursor_ahead_of_the_stream_must_be_refused() {
    let policy = CursorPolicy { rejects_future_cursor: false, ..CursorPolicy::REFERENCE_PDS };
    let judgement = judged_while(Spec { pds_cursor_policy: policy, ..spec() }, |_| ());
    assert_eq!(judgement.violations(), only("cursor/future"), "{judgement:#?}");
}

#[test]
fn either_meaning_of_a_cursor_is_accepted_and_an_unstated_gap_is_noted() {
    let inclusive = CursorPolicy::SPECIFIED;
    let silent = CursorPolicy { reports_outdated_cursor: false, ..CursorPolicy::REFERENCE_PDS };
    for (policy, notes) in [(inclusive, 0), (silent, 1)] {
        let few = Spec { pds_cursor_policy: policy, retained_events: 20, ..spec() };
        let judgement = judged_while(few, |network| network.write_commits(60));
        assert_eq!(judgement.violations(), BTreeSet::new(), "{judgement:#?}");
        let of_cursors = judgement.codes.iter().filter(|count| count.code == "cursor/unstated");
        assert_eq!(of_cursors.count(), notes, "{judgement:#?}");
    }
}

#[test]
fn a_host_that_is_away_is_not_accused() {
    let network = Simulation::start(spec()).unwrap();
    network.stop_server(Server::Pds(0));
    let judgement = judged(&network, Server::Pds(0), &options());
    assert_eq!(judgement.verdict, "unanswered", "{judgement:#?}");
    network.start_server(Server::Pds(0)).unwrap();
    network.faults().enable(Server::Pds(0), Fault::RequestUnavailable, FaultSchedule::times(2));
    assert_eq!(judged(&network, Server::Pds(0), &options()).verdict, "sound");
}

/// Restarts the first PDS, which numbers its next event with `seq` then.
fn restart_with(network: &Simulation, seq: i64) {
    network.stop_server(Server::Pds(0));
    network.renumber(Server::Pds(0), seq);
    network.start_server(Server::Pds(0)).unwrap();
}

#[test]
fn a_host_that_begins_its_numbers_again_is_found_with_the_number_and_a_command() {
    let rejecting = CursorPolicy::REFERENCE_PDS;
    let accepting = CursorPolicy { rejects_future_cursor: false, ..rejecting };
    for (policy, codes) in
        [(rejecting, only("seq/reset")), (accepting, ["seq/reset", "cursor/future"].into())]
    {
        let mut before = 0;
        let judgement = judged_while(Spec { pds_cursor_policy: policy, ..spec() }, |network| {
            std::thread::sleep(Duration::from_millis(100));
            before = network.last_seq(Server::Pds(0));
            restart_with(network, 1);
            // Until the judge has connected again, and after it.
            for _ in 0..12 {
                std::thread::sleep(Duration::from_millis(100));
                network.write_commit_as(0);
            }
        });
        assert_eq!(judgement.violations(), codes, "{judgement:#?}");
        assert_eq!(judgement.verdict, "faulty");
        let mut resets = judgement.findings.iter().filter(|found| found.code == "seq/reset");
        let (Some(found), None) = (resets.next(), resets.next()) else { panic!("{judgement:#?}") };
        assert!(found.seq.is_some_and(|seq| (1..before).contains(&seq)), "{found:?}");
        let again = format!("--host {}", judgement.host);
        assert!(found.command.contains(&again) && found.command.contains("--cursor"), "{found:?}");
        assert!(judgement.stream.live > 3, "the new numbers are judged: {judgement:#?}");
    }
}

#[test]
fn a_host_that_restarts_with_its_numbers_or_skips_forward_is_not_accused() {
    for skipped in [1, 2, 1_000_000] {
        let judgement = judged_while(spec(), |network| {
            restart_with(network, network.last_seq(Server::Pds(0)) + skipped);
            for _ in 0..12 {
                std::thread::sleep(Duration::from_millis(100));
                network.write_commit_as(0);
            }
        });
        assert_eq!(judgement.violations(), BTreeSet::new(), "{skipped}: {judgement:#?}");
        assert_eq!(judgement.verdict, "sound", "{skipped}: {judgement:#?}");
    }
}
