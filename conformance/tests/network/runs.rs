//! Whole runs: every event, in order, whatever happens on the way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use simnet::hostile;
use simnet::servers::{Fault, FaultSchedule, Server, Simulation};
use wireproof::atproto::corpus;
use wireproof::net::cursors::CursorStore;
use wireproof::net::firehose::{FeedError, FlowLimits, FrameKind, Options, RunError};

use crate::follower::{Book, Follower};
use crate::line::{RELAY, sim, sim_with, told, url};

/// Every event of the relay once, and those of each account in order.
fn assert_complete(sim: &Simulation, book: &Book) {
    let told_by_all = told(sim, RELAY);
    assert_eq!(book.seqs(), told_by_all);
    let mut last = HashMap::new();
    for line in book.lines().into_iter().filter(|line| line.seq.is_some()) {
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
    let (book, counters) = (follower.book.clone(), follower.counters.clone());
    let summary = follower.stop().await;
    assert_complete(&sim, &book);
    assert_eq!((book.count("verified"), summary.unacknowledged), (600, 0));
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
    let book = follower.book.clone();
    follower.stop().await;
    assert_complete(&sim, &book);
    assert_eq!(book.codes().into_iter().collect::<Vec<_>>(), [("verified", 440)]);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn what_is_no_event_is_handed_over_and_counted_too() {
    let sim = sim_with(Fault::GarbageFrame, FaultSchedule::times(3).every(10));
    sim.faults().enable(RELAY, Fault::UnknownKind, FaultSchedule::times(2).every(10));
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    let (book, counters) = (follower.book.clone(), follower.counters.clone());
    follower.stop().await;
    assert_complete(&sim, &book);
    let of_kind = |kind| book.lines().iter().filter(|line| line.kind == Some(kind)).count();
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
    sim.stop_server(RELAY).unwrap();
    sim.write_commits(100);
    let all = told(&sim, Server::Relay(1));
    follower.until(|book| all.iter().rev().take(100).all(|seq| book.seqs().contains(seq))).await;
    let book = follower.book.clone();
    let summary = follower.stop().await;
    let new: Vec<_> = book.lines().into_iter().filter(|line| line.code == "verified").collect();
    assert_eq!(new.len(), 140, "what the first host told is old when the second tells it");
    assert!(book.notices().contains(&"rotated"));
    let cursors: Vec<_> = summary.cursors.into_iter().map(|(_, cursor)| cursor).collect();
    assert_eq!(cursors[0], told(&sim, RELAY).into_iter().nth(39));
    assert_eq!(cursors[1], all.last().copied());
}

#[tokio::test]
async fn the_next_run_goes_on_behind_what_was_acknowledged() {
    let sim = sim(|_| ());
    let first = Follower::start(&sim);
    first.until_the_end(&sim).await;
    let (book, cursors) = (first.book.clone(), first.cursors.clone());
    first.stop().await;
    sim.write_commits(60);
    let second = Follower::go_on(&sim, cursors, book.clone(), |_| ());
    second.until_the_end(&sim).await;
    second.stop().await;
    assert_complete(&sim, &book);
}

#[tokio::test]
async fn a_slow_handler_is_felt_by_the_server_and_loses_nothing() {
    const MAX_EVENTS: usize = 50;
    let sim = sim(|spec| spec.initial_commits = 12_000);
    let bounds = FlowLimits { max_events: MAX_EVENTS, ..FlowLimits::default() };
    let book = Arc::new(Book::default());
    book.shut();
    let change = |options: &mut Options| options.limits = bounds;
    let follower = Follower::go_on(&sim, Arc::default(), book.clone(), change);
    // What the server has sent fills the buffers of both ends, and then nothing moves any more.
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
    book.open();
    follower.until_the_end(&sim).await;
    follower.stop().await;
    assert_complete(&sim, &book);
}

#[tokio::test]
async fn a_key_that_did_not_sign_is_asked_for_once_more_and_then_it_did() {
    let sim = sim(|spec| spec.accounts = 3);
    sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ONCE);
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    let (book, counters) = (follower.book.clone(), follower.counters.clone());
    follower.stop().await;
    assert_complete(&sim, &book);
    assert_eq!(book.count("verified"), 40);
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
    let book = follower.book.clone();
    follower.stop().await;
    assert_complete(&sim, &book);
    assert_eq!(book.count("signature/wrong"), 20);
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
    let (book, did) = (follower.book.clone(), sim.account(2).did);
    follower.stop().await;
    assert_complete(&sim, &book);
    assert_eq!(book.codes().into_iter().collect::<Vec<_>>(), [("unchecked", 3), ("verified", 73)]);
    assert_eq!(sim.request_counts(Server::Plc)[&format!("/{did}")], 4);
}

#[tokio::test]
async fn while_the_directory_is_down_known_accounts_go_on_and_others_have_no_key() {
    let sim = sim(|_| ());
    let follower = Follower::start(&sim);
    follower.until_the_end(&sim).await;
    sim.stop_server(Server::Plc).unwrap();
    let stranger = sim.add_account();
    sim.write_commit_as(stranger);
    sim.write_commit_as(0);
    follower.until_the_end(&sim).await;
    let did = sim.account(stranger).did;
    follower.until(|book| book.of(&did).len() == 4).await;
    let book = follower.book.clone();
    follower.stop().await;
    assert_eq!(book.count("verified"), 41);
    assert_eq!(book.count("signature/no-key"), 2, "{:?}", book.of(&did));
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
    let is_there =
        |book: &Book| expected.iter().all(|(did, count, _)| book.of(did).len() == *count);
    follower.until(is_there).await;
    let book = follower.book.clone();
    follower.stop().await;
    for (did, _, code) in &expected {
        assert_eq!(book.of(did).last().map(|(_, code)| *code), Some(*code), "{did}");
    }
    assert_complete(&sim, &book);
}

/// Rules of several layers, each broken by an account of its own.
const HOSTILE: [&str; 6] = [
    "signature/wrong",
    "signature/high-s",
    "event/inversion",
    "event/commit-cid",
    "event/did-mismatch",
    "commit/missing-block",
];

#[tokio::test]
async fn where_nobody_would_have_us_the_run_ends_and_says_so() {
    let sim = sim_with(Fault::UpgradeForbidden, FaultSchedule::ALWAYS);
    let failure = Follower::start(&sim).fails().await;
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
