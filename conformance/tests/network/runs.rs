//! Whole runs: every event, in order, whatever happens on the way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use simnet::hostile;
use simnet::servers::{Dose, Fault, Server, World};
use wireproof::atproto::corpus;
use wireproof::net::cursors::CursorStore;
use wireproof::net::firehose::{Bounds, FeedError, Kind, Options, RunError};

use crate::follower::{Book, Follower};
use crate::line::{RELAY, told, url, world, world_with};

/// Every event of the relay once, and those of each account in order.
fn assert_complete(world: &World, book: &Book) {
    let told_by_all = told(world, RELAY);
    assert_eq!(book.seqs(), told_by_all);
    let mut last = HashMap::new();
    for line in book.lines().into_iter().filter(|line| line.seq.is_some()) {
        let before = last.insert(line.did.clone(), line.seq);
        assert!(before.is_none_or(|before| before < line.seq), "{line:?} after {before:?}");
    }
}

#[tokio::test]
async fn every_event_is_verified_once_and_in_order_with_one_lookup_an_account() {
    let world = world(|spec| spec.prepared = 300);
    let follower = Follower::start(&world);
    follower.until_the_end(&world).await;
    world.write(300);
    follower.until_the_end(&world).await;
    let (book, counters) = (follower.book.clone(), follower.counters.clone());
    let summary = follower.stop().await;
    assert_complete(&world, &book);
    assert_eq!((book.count("verified"), summary.left), (600, 0));
    assert_eq!(summary.cursors[0].1, Some(world.last_seq(RELAY) as u64));
    let counts = counters.counts();
    assert_eq!((counts.key_lookups, counts.key_doubts), (6, 0));
    assert_eq!((counts.verdicts["verified"], counts.handed_over, counts.dropped), (600, 600, 0));
    assert_eq!((counts.under_way, counts.under_way_bytes, counts.parked), (0, 0, 0));
    assert_eq!(counts.cursors, counts.last_seqs);
}

#[tokio::test]
async fn connections_that_break_cost_nothing_but_time() {
    let world = world_with(Fault::Cut, Dose::times(20).of(30_000));
    world.faults().switch_on(RELAY, Fault::RepeatedSeq, Dose::times(20).every(7));
    world.faults().switch_on(RELAY, Fault::UpgradeUnavailable, Dose::times(3).every(5));
    world.write(400);
    let follower = Follower::start(&world);
    follower.until_the_end(&world).await;
    let book = follower.book.clone();
    follower.stop().await;
    assert_complete(&world, &book);
    assert_eq!(book.codes().into_iter().collect::<Vec<_>>(), [("verified", 440)]);
    assert_eq!(world.faults().unfired(), []);
}

#[tokio::test]
async fn what_is_no_event_is_handed_over_and_counted_too() {
    let world = world_with(Fault::GarbageFrame, Dose::times(3).every(10));
    world.faults().switch_on(RELAY, Fault::UnknownKind, Dose::times(2).every(10));
    let follower = Follower::start(&world);
    follower.until_the_end(&world).await;
    let (book, counters) = (follower.book.clone(), follower.counters.clone());
    follower.stop().await;
    assert_complete(&world, &book);
    let of_kind = |kind| book.lines().iter().filter(|line| line.kind == Some(kind)).count();
    assert_eq!((of_kind(Kind::Undecodable), of_kind(Kind::Unknown)), (3, 2));
    let counts: HashMap<Kind, u64> = counters.counts().events.into_iter().collect();
    assert_eq!((counts[&Kind::Undecodable], counts[&Kind::Unknown]), (3, 2));
    assert_eq!(counts[&Kind::Commit], 40);
    assert_eq!(world.faults().unfired(), []);
}

#[tokio::test]
async fn a_host_that_fails_is_left_for_another_and_every_event_comes() {
    let world = world(|spec| spec.relays = 2);
    let other = url(&world, Server::Relay(1), "");
    let follower = Follower::start_with(&world, |options| options.hosts.push(other));
    follower.until_the_end(&world).await;
    world.close(RELAY).unwrap();
    world.write(100);
    let all = told(&world, Server::Relay(1));
    follower.until(|book| all.iter().rev().take(100).all(|seq| book.seqs().contains(seq))).await;
    let book = follower.book.clone();
    let summary = follower.stop().await;
    let new: Vec<_> = book.lines().into_iter().filter(|line| line.code == "verified").collect();
    assert_eq!(new.len(), 140, "what the first host told is old when the second tells it");
    assert!(book.notices().contains(&"rotated"));
    let cursors: Vec<_> = summary.cursors.into_iter().map(|(_, cursor)| cursor).collect();
    assert_eq!(cursors[0], told(&world, RELAY).into_iter().nth(39));
    assert_eq!(cursors[1], all.last().copied());
}

#[tokio::test]
async fn the_next_run_goes_on_behind_what_was_acknowledged() {
    let world = world(|_| ());
    let first = Follower::start(&world);
    first.until_the_end(&world).await;
    let (book, cursors) = (first.book.clone(), first.cursors.clone());
    first.stop().await;
    world.write(60);
    let second = Follower::go_on(&world, cursors, book.clone(), |_| ());
    second.until_the_end(&world).await;
    second.stop().await;
    assert_complete(&world, &book);
}

#[tokio::test]
async fn a_slow_handler_is_felt_by_the_server_and_loses_nothing() {
    const MAX_EVENTS: usize = 50;
    let world = world(|spec| spec.prepared = 12_000);
    let bounds = Bounds { max_events: MAX_EVENTS, ..Bounds::default() };
    let book = Arc::new(Book::default());
    book.shut();
    let change = |options: &mut Options| options.bounds = bounds;
    let follower = Follower::go_on(&world, Arc::default(), book.clone(), change);
    // What the server has sent fills the buffers of both ends, and then nothing moves any more.
    let mut sent = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = world.frames();
        if now == sent && now > 0 {
            break;
        }
        sent = now;
    }
    assert!(world.backlogs(RELAY)[0] > 0, "the server waits");
    let counts = follower.counters.counts();
    assert_eq!((counts.under_way, counts.handed_over), (MAX_EVENTS, 0));
    book.open();
    follower.until_the_end(&world).await;
    follower.stop().await;
    assert_complete(&world, &book);
}

#[tokio::test]
async fn a_key_that_did_not_sign_is_asked_for_once_more_and_then_it_did() {
    let world = world(|spec| spec.accounts = 3);
    world.faults().switch_on(Server::Plc, Fault::StrangerKey, Dose::ONCE);
    let follower = Follower::start(&world);
    follower.until_the_end(&world).await;
    let (book, counters) = (follower.book.clone(), follower.counters.clone());
    follower.stop().await;
    assert_complete(&world, &book);
    assert_eq!(book.count("verified"), 40);
    let counts = counters.counts();
    assert_eq!((counts.key_lookups, counts.key_doubts, counts.key_failures), (4, 1, 0));
    let asked: u64 = world.requests(Server::Plc).values().sum();
    assert_eq!((asked, world.faults().unfired()), (4, vec![]));
}

#[tokio::test]
async fn a_key_that_stays_wrong_is_asked_for_once_and_the_events_are_refused() {
    let world = world(|spec| (spec.accounts, spec.prepared) = (1, 20));
    world.faults().switch_on(Server::Plc, Fault::StrangerKey, Dose::ALWAYS);
    let follower = Follower::start(&world);
    follower.until_the_end(&world).await;
    let book = follower.book.clone();
    follower.stop().await;
    assert_complete(&world, &book);
    assert_eq!(book.count("signature/wrong"), 20);
    let asked: u64 = world.requests(Server::Plc).values().sum();
    assert_eq!(asked, 2, "a lookup and a refresh");
}

#[tokio::test]
async fn a_rotated_key_is_looked_up_when_the_network_says_so() {
    let world = world(|_| ());
    let follower = Follower::start(&world);
    follower.until_the_end(&world).await;
    for _ in 0..3 {
        world.rotate_key(2);
        world.write(10);
        follower.until_the_end(&world).await;
    }
    let (book, did) = (follower.book.clone(), world.account(2).did);
    follower.stop().await;
    assert_complete(&world, &book);
    assert_eq!(book.codes().into_iter().collect::<Vec<_>>(), [("unchecked", 3), ("verified", 73)]);
    assert_eq!(world.requests(Server::Plc)[&format!("/{did}")], 4);
}

#[tokio::test]
async fn while_the_directory_is_down_known_accounts_go_on_and_others_have_no_key() {
    let world = world(|_| ());
    let follower = Follower::start(&world);
    follower.until_the_end(&world).await;
    world.close(Server::Plc).unwrap();
    let stranger = world.join();
    world.write_as(stranger);
    world.write_as(0);
    follower.until_the_end(&world).await;
    let did = world.account(stranger).did;
    follower.until(|book| book.of(&did).len() == 4).await;
    let book = follower.book.clone();
    follower.stop().await;
    assert_eq!(book.count("verified"), 41);
    assert_eq!(book.count("signature/no-key"), 2, "{:?}", book.of(&did));
}

#[tokio::test]
async fn what_hostile_accounts_send_is_refused_by_the_rule_that_it_breaks() {
    let world = world(|_| ());
    let follower = Follower::start(&world);
    follower.until_the_end(&world).await;
    let mut expected = Vec::new();
    for (seed, code) in (1..).zip(HOSTILE) {
        let set = hostile::Set::generate(&hostile::Spec { seed });
        let mut cases = set.cases().iter().filter(|case| case.kind == hostile::Kind::Frames);
        let case = cases.find(|case| case.code == Some(code)).expect(code);
        world.play(case);
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
    assert_complete(&world, &book);
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
    let world = world_with(Fault::UpgradeForbidden, Dose::ALWAYS);
    let failure = Follower::start(&world).fails().await;
    assert!(matches!(failure, RunError::Feed(FeedError::NoHostLeft(_))), "{failure}");
}

#[tokio::test]
async fn the_cursor_is_written_while_the_run_goes_on() {
    let world = world(|_| ());
    let follower = Follower::start_with(&world, |options| {
        options.checkpoint_every = Duration::from_millis(5);
    });
    follower.until_the_end(&world).await;
    let stream = format!("{}/xrpc/com.atproto.sync.subscribeRepos", world.url(RELAY));
    let stream = stream.replace("http://", "ws://");
    let last = world.last_seq(RELAY) as u64;
    follower.until(|_| follower.cursors.load(&stream).unwrap() == Some(last)).await;
    follower.stop().await;
}
