//! Complete runs: every event in order, with every fault; and accounts with gaps.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atproto::corpus;
use net::cursors::CursorStore;
use net::firehose::{FeedError, FlowLimits, FrameKind, Options, RunError};
use net::http::Limits;
use simnet::hostile;
use simnet::servers::{Fault, FaultSchedule, Server, Simulation};

use crate::follower::{EventRecorder, Follower, resync};
use crate::setup::{RELAY, sent, sim, sim_with, url};

/// Asserts that every event of the relay was delivered once, in order within an account.
fn assert_complete(sim: &Simulation, recorder: &EventRecorder) {
    let told_by_all = sent(sim, RELAY);
    assert_eq!(recorder.seqs(), told_by_all);
    let mut last = HashMap::new();
    for line in recorder.lines().into_iter().filter(|line| line.seq.is_some()) {
        let before = last.insert(line.did.clone(), line.seq);
        assert!(before.is_none_or(|before| before < line.seq), "{line:?} after {before:?}");
    }
}

#[tokio::test]
async fn every_event_is_verified_once_and_in_order_with_one_lookup_an_account() {
    let sim = sim(|spec| spec.initial_commits = 300);
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    sim.write_commits(300);
    follower.until_the_end(&sim).await;
    let (recorder, counters) = (follower.recorder.clone(), follower.counters.clone());
    let summary = follower.stop().await;
    assert_complete(&sim, &recorder);
    assert_eq!((recorder.count("verified"), summary.unacknowledged), (600, 0));
    assert_eq!(summary.cursors[0].1, Some(sim.last_seq(RELAY) as u64));
    let counts = counters.snapshot();
    assert_eq!((counts.key_lookups, counts.key_refreshes), (6, 0));
    assert_eq!((counts.verdicts["verified"], counts.delivered, counts.dropped), (600, 600, 0));
    assert_eq!((counts.in_flight, counts.in_flight_bytes, counts.awaiting_key), (0, 0, 0));
    assert_eq!(counts.cursors, counts.last_seqs);
}

#[tokio::test]
async fn connections_that_break_cost_nothing_but_time() {
    let sim = sim_with(Fault::Cut, FaultSchedule::times(20).with_amount(30_000));
    sim.faults().enable(RELAY, Fault::RepeatedSeq, FaultSchedule::times(20).every(7));
    sim.faults().enable(RELAY, Fault::UpgradeUnavailable, FaultSchedule::times(3).every(5));
    sim.write_commits(400);
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    let recorder = follower.recorder.clone();
    follower.stop().await;
    assert_complete(&sim, &recorder);
    assert_eq!(recorder.codes().into_iter().collect::<Vec<_>>(), [("verified", 440)]);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn what_is_no_event_is_handed_over_and_counted_too() {
    let sim = sim_with(Fault::GarbageFrame, FaultSchedule::times(3).every(10));
    sim.faults().enable(RELAY, Fault::UnknownKind, FaultSchedule::times(2).every(10));
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    let (recorder, counters) = (follower.recorder.clone(), follower.counters.clone());
    follower.stop().await;
    assert_complete(&sim, &recorder);
    let of_kind = |kind| recorder.lines().iter().filter(|line| line.kind == Some(kind)).count();
    assert_eq!((of_kind(FrameKind::Undecodable), of_kind(FrameKind::Unknown)), (3, 2));
    let counts: HashMap<FrameKind, u64> = counters.snapshot().events.into_iter().collect();
    assert_eq!((counts[&FrameKind::Undecodable], counts[&FrameKind::Unknown]), (3, 2));
    assert_eq!(counts[&FrameKind::Commit], 40);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_host_that_fails_is_left_for_another_and_every_event_comes() {
    let sim = sim(|spec| spec.relays = 2);
    let other = url(&sim, Server::Relay(1), "");
    let follower = Follower::start_with(&sim, |options| options.hosts.push(other));
    follower.until_the_end(&sim).await;
    sim.stop_server(RELAY);
    sim.write_commits(100);
    let all = sent(&sim, Server::Relay(1));
    follower
        .until(|recorder| all.iter().rev().take(100).all(|seq| recorder.seqs().contains(seq)))
        .await;
    let recorder = follower.recorder.clone();
    let summary = follower.stop().await;
    let new: Vec<_> = recorder.lines().into_iter().filter(|line| line.code == "verified").collect();
    assert_eq!(new.len(), 140, "what the first host sent is old when the second tells it");
    assert!(recorder.notices().contains(&"rotated"));
    let cursors: Vec<_> = summary.cursors.into_iter().map(|(_, cursor)| cursor).collect();
    assert_eq!(cursors[0], sent(&sim, RELAY).into_iter().nth(39));
    assert_eq!(cursors[1], all.last().copied());
}

#[tokio::test]
async fn the_next_run_goes_on_behind_what_was_acknowledged() {
    let sim = sim(|_| ());
    let first = Follower::start(&sim);
    first.until_the_end(&sim).await;
    let (recorder, cursors) = (first.recorder.clone(), first.cursors.clone());
    first.stop().await;
    sim.write_commits(60);
    let second = Follower::go_on(&sim, cursors, recorder.clone(), |_| ());
    second.until_the_end(&sim).await;
    second.stop().await;
    assert_complete(&sim, &recorder);
}

#[tokio::test]
async fn a_slow_handler_is_felt_by_the_server_and_loses_nothing() {
    const MAX_EVENTS: usize = 50;
    let sim = sim(|spec| spec.initial_commits = 12_000);
    let mut bounds = FlowLimits::default();
    bounds.max_events = MAX_EVENTS;
    let recorder = Arc::new(EventRecorder::default());
    recorder.shut();
    let change = |options: &mut Options| options.limits = bounds;
    let follower = Follower::go_on(&sim, Arc::default(), recorder.clone(), change);
    // The sent events fill the buffers of both ends, and then the stream stalls.
    let mut sent = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = sim.frames_sent();
        if now == sent && now > 0 {
            break;
        }
        sent = now;
    }
    assert!(sim.backlogs(RELAY)[0] > 0, "the server waits");
    let counts = follower.counters.snapshot();
    assert_eq!((counts.in_flight, counts.delivered), (MAX_EVENTS, 0));
    recorder.open();
    follower.until_the_end(&sim).await;
    follower.stop().await;
    assert_complete(&sim, &recorder);
}

#[tokio::test]
async fn a_key_that_did_not_sign_is_asked_for_once_more_and_then_it_did() {
    let sim = sim(|spec| spec.accounts = 3);
    sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ONCE);
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    let (recorder, counters) = (follower.recorder.clone(), follower.counters.clone());
    follower.stop().await;
    assert_complete(&sim, &recorder);
    assert_eq!(recorder.count("verified"), 40);
    let counts = counters.snapshot();
    assert_eq!((counts.key_lookups, counts.key_refreshes, counts.key_failures), (4, 1, 0));
    let asked: u64 = sim.request_counts(Server::Plc).values().sum();
    assert_eq!((asked, sim.faults().unfired()), (4, vec![]));
}

#[tokio::test]
async fn a_key_that_stays_wrong_is_asked_for_once_and_the_events_are_refused() {
    let sim = sim(|spec| (spec.accounts, spec.initial_commits) = (1, 20));
    sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    let recorder = follower.recorder.clone();
    follower.stop().await;
    assert_complete(&sim, &recorder);
    assert_eq!(recorder.count("signature/wrong"), 20);
    let asked: u64 = sim.request_counts(Server::Plc).values().sum();
    assert_eq!(asked, 2, "a lookup and a refresh");
}

#[tokio::test]
async fn a_rotated_key_is_looked_up_when_the_network_says_so() {
    let sim = sim(|_| ());
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    for _ in 0..3 {
        sim.rotate_key(2);
        sim.write_commits(10);
        follower.until_the_end(&sim).await;
    }
    let (recorder, did) = (follower.recorder.clone(), sim.account(2).did);
    follower.stop().await;
    assert_complete(&sim, &recorder);
    assert_eq!(
        recorder.codes().into_iter().collect::<Vec<_>>(),
        [("unchecked", 3), ("verified", 73)]
    );
    assert_eq!(sim.request_counts(Server::Plc)[&format!("/{did}")], 4);
}

#[tokio::test]
async fn while_the_directory_is_down_known_accounts_go_on_and_others_wait_for_it() {
    let sim = sim(|_| ());
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    sim.stop_server(Server::Plc);
    let stranger = sim.add_account();
    sim.write_commit_as(stranger);
    sim.write_commit_as(0);
    let did = sim.account(stranger).did;
    // `#identity` and `#account` need no key.
    let is_enough =
        |recorder: &EventRecorder| (recorder.count("verified"), recorder.of(&did).len()) == (41, 2);
    follower.until(is_enough).await;
    sim.start_server(Server::Plc).unwrap();
    follower.until_the_end(&sim).await;
    let recorder = follower.recorder.clone();
    follower.stop().await;
    assert_complete(&sim, &recorder);
    assert_eq!((recorder.count("verified"), recorder.count("signature/no-key")), (43, 0));
}

#[tokio::test]
async fn what_hostile_accounts_send_is_refused_by_the_rule_that_it_breaks() {
    let sim = sim(|_| ());
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    let mut expected = Vec::new();
    for (seed, code) in (1..).zip(HOSTILE) {
        let set = hostile::CaseSet::generate(&hostile::Spec { seed });
        let mut cases = set.cases().iter().filter(|case| case.kind == hostile::InputKind::Frames);
        let case = cases.find(|case| case.code == Some(code)).expect(code);
        sim.serve_case(case);
        expected.push((case.did.clone(), corpus::read(&case.bytes).unwrap().len(), code));
    }
    let is_there = |recorder: &EventRecorder| {
        expected.iter().all(|(did, count, _)| recorder.of(did).len() == *count)
    };
    follower.until(is_there).await;
    let recorder = follower.recorder.clone();
    follower.stop().await;
    for (did, _, code) in &expected {
        assert_eq!(recorder.of(did).last().map(|(_, code)| *code), Some(*code), "{did}");
    }
    assert_complete(&sim, &recorder);
}

/// Rules of several layers, all broken by different accounts.
const HOSTILE: [&str; 6] = [
    "signature/wrong",
    "signature/high-s",
    "event/inversion",
    "event/commit-cid",
    "event/did-mismatch",
    "commit/missing-block",
];

#[tokio::test]
async fn a_run_ends_with_an_error_if_no_host_may_be_followed() {
    let outside = |options: &mut Options| options.hosts = vec!["ws://10.0.0.1/".parse().unwrap()];
    let failure = Follower::start_with(&sim(|_| ()), outside).fails().await;
    assert!(matches!(failure, RunError::Feed(FeedError::NoHostLeft(_))), "{failure}");
}

#[tokio::test]
async fn the_cursor_is_written_while_the_run_goes_on() {
    let sim = sim(|_| ());
    let follower = Follower::start_with(&sim, |options| {
        options.checkpoint_interval = Duration::from_millis(5);
    });
    follower.until_the_end(&sim).await;
    let stream = format!("{}/xrpc/com.atproto.sync.subscribeRepos", sim.url(RELAY));
    let stream = stream.replace("http://", "ws://");
    let last = sim.last_seq(RELAY) as u64;
    follower.until(|_| follower.cursors.load(&stream).unwrap() == Some(last)).await;
    follower.stop().await;
}

const PDS: Server = Server::Pds(0);

/// Omits one commit of an account from the stream, and sends the next one.
fn leave_a_gap(sim: &Simulation, number: usize) {
    sim.write_unannounced(number);
    sim.write_commit_as(number);
}

/// Whether the account had no gap at its last delivery.
fn is_in_step(recorder: &EventRecorder, did: &str) -> bool {
    matches!(recorder.of(did).last(), Some((_, "verified" | "resynced" | "event/stale-rev")))
}

#[tokio::test]
async fn an_account_that_missed_something_has_its_repository_fetched_and_goes_on() {
    let sim = sim(|_| ());
    let follower = Follower::start_with(&sim, |options| options.resync = Some(resync(&sim)));
    follower.until_the_end(&sim).await;
    leave_a_gap(&sim, 1);
    follower.until(|recorder| recorder.count("resynced") == 1).await;
    sim.write_commit_as(1);
    follower.until_the_end(&sim).await;
    let (recorder, counters) = (follower.recorder.clone(), follower.counters.clone());
    follower.stop().await;
    let expected = sim.expected_accounts();
    let codes: Vec<_> =
        recorder.of(&expected[1].account.did).iter().map(|(_, code)| *code).collect();
    let [.., broken, resynced, last] = &codes[..] else { panic!("{codes:?}") };
    assert_eq!([*broken, *resynced, *last], ["verified/broken", "resynced", "verified"]);
    assert!(sim.request_counts(Server::Pds(1)).keys().any(|path| path.contains("getRepo")));
    let counts = counters.snapshot();
    assert_eq!(
        (counts.resyncs_done, counts.resyncs_failed, counts.resyncs_running, counts.awaiting_repo),
        (1, 0, 0, 0)
    );
}

#[tokio::test]
async fn without_the_option_an_account_stays_out_of_step() {
    let sim = sim(|_| ());
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    leave_a_gap(&sim, 1);
    sim.write_commit_as(1);
    follower.until_the_end(&sim).await;
    let (recorder, did) = (follower.recorder.clone(), sim.account(1).did);
    follower.stop().await;
    assert_eq!(recorder.of(&did).last().unwrap().1, "verified/unmended");
    let asked = [Server::Pds(0), Server::Pds(1)].map(|pds| sim.request_counts(pds));
    assert!(asked.iter().all(|paths| paths.keys().all(|path| !path.contains("getRepo"))));
}

#[tokio::test]
async fn of_a_hundred_accounts_in_resync_one_that_stalls_holds_up_no_other() {
    const ACCOUNTS: usize = 101;
    let sim = sim(|spec| (spec.accounts, spec.initial_commits) = (ACCOUNTS, 0));
    (0..ACCOUNTS).for_each(|number| sim.write_commit_as(number));
    let follower = Follower::start_with(&sim, |options| {
        let idle_timeout = Duration::from_secs(300);
        let limits = Limits { idle_timeout, min_bytes_per_s: 0, ..Limits::REPOSITORY };
        let mut resync = resync(&sim);
        resync.limits = limits;
        options.resync = Some(resync);
        options.limits.max_hold = Duration::from_secs(300);
    });
    follower.until_the_end(&sim).await;
    let dids: Vec<String> = (0..ACCOUNTS).map(|number| sim.account(number).did).collect();
    sim.faults().enable(PDS, Fault::StalledRepo, FaultSchedule::ONCE);
    (0..ACCOUNTS).for_each(|number| leave_a_gap(&sim, number));
    follower.until(|recorder| recorder.count("resynced") == ACCOUNTS - 1).await;
    let resynced = |recorder: &EventRecorder, did| {
        recorder.of(did).iter().any(|(_, code)| *code == "resynced")
    };
    let stalled = dids.iter().position(|did| !resynced(&follower.recorder, did)).unwrap();
    // The others go on while it still stalls.
    (0..ACCOUNTS).for_each(|number| sim.write_commit_as(number));
    let others = |recorder: &EventRecorder| {
        let others = dids.iter().enumerate().filter(|(number, _)| *number != stalled);
        others.filter(|(_, did)| matches!(recorder.of(did).last(), Some((_, "verified")))).count()
    };
    follower.until(|recorder| others(recorder) == ACCOUNTS - 1).await;
    assert_eq!(follower.recorder.of(&dids[stalled]).last().unwrap().1, "verified/broken");
    // Its second event is parked by then, or soon.
    let counters = follower.counters.clone();
    follower.until(|_| counters.snapshot().awaiting_repo == 1).await;
    assert_eq!(counters.snapshot().resyncs_running, 1);
    let recorder = follower.recorder.clone();
    let summary = follower.stop().await;
    assert_eq!(summary.unacknowledged, 0);
    assert_eq!(recorder.of(&dids[stalled]).last().unwrap().1, "verified/unmended");
    assert_eq!(sim.faults().fired(PDS, Fault::StalledRepo), 1);
}

#[tokio::test]
async fn a_repository_that_is_cut_off_is_fetched_again() {
    let sim = sim(|_| ());
    sim.faults().enable(PDS, Fault::CutRepo, FaultSchedule::ONCE);
    let follower = Follower::start_with(&sim, |options| options.resync = Some(resync(&sim)));
    follower.until_the_end(&sim).await;
    leave_a_gap(&sim, 0);
    follower.until(|recorder| recorder.count("resynced") == 1).await;
    let (recorder, did) = (follower.recorder.clone(), sim.account(0).did);
    follower.stop().await;
    assert!(is_in_step(&recorder, &did) && recorder.failures().is_empty());
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_repository_without_an_end_is_given_up_and_the_account_goes_on_out_of_step() {
    let sim = sim(|_| ());
    sim.faults().enable(PDS, Fault::EndlessRepo, FaultSchedule::ALWAYS);
    let follower = Follower::start_with(&sim, |options| {
        let max_time = Duration::from_secs(5);
        let limits = Limits { max_bytes: 1 << 20, max_time, ..Limits::REPOSITORY };
        let mut resync = resync(&sim);
        (resync.limits, resync.attempts) = (limits, 1);
        options.resync = Some(resync);
    });
    follower.until_the_end(&sim).await;
    leave_a_gap(&sim, 0);
    sim.write_commit_as(0);
    follower.until_the_end(&sim).await;
    follower.until(|recorder| !recorder.failures().is_empty()).await;
    let (recorder, did) = (follower.recorder.clone(), sim.account(0).did);
    follower.stop().await;
    assert_eq!(recorder.of(&did).last().unwrap().1, "verified/unmended");
    assert_eq!(recorder.failures()[0].0, did);
    assert_eq!(sim.faults().unfired(), []);
}
