//! Accounts that are out of step, and their repositories.

use std::time::Duration;

use simnet::servers::{Dose, Fault, Server, World};
use wireproof::net::firehose::Resync;
use wireproof::net::http::Limits;

use crate::follower::{Book, Follower, resync};
use crate::line::world;

const PDS: Server = Server::Pds(0);

/// Lets an account miss a commit, and tells the next one.
fn leave_a_gap(world: &World, number: usize) {
    world.write_unseen(number);
    world.write_as(number);
}

/// Whether the account was in step when its last event was handed over, or is since.
fn is_in_step(book: &Book, did: &str) -> bool {
    matches!(book.of(did).last(), Some((_, "verified" | "resynced" | "event/stale-rev")))
}

#[tokio::test]
async fn an_account_that_missed_something_has_its_repository_fetched_and_goes_on() {
    let world = world(|_| ());
    let follower = Follower::start_with(&world, |options| options.resync = Some(resync(&world)));
    follower.until_the_end(&world).await;
    leave_a_gap(&world, 1);
    follower.until(|book| book.count("resynced") == 1).await;
    world.write_as(1);
    follower.until_the_end(&world).await;
    let (book, counters) = (follower.book.clone(), follower.counters.clone());
    follower.stop().await;
    let expected = world.expected();
    let codes: Vec<_> = book.of(&expected[1].account.did).iter().map(|(_, code)| *code).collect();
    let [.., broken, resynced, last] = &codes[..] else { panic!("{codes:?}") };
    assert_eq!([*broken, *resynced, *last], ["verified/broken", "resynced", "verified"]);
    assert!(world.requests(Server::Pds(1)).keys().any(|path| path.contains("getRepo")));
    let counts = counters.counts();
    assert_eq!(
        (counts.resynced, counts.resyncs_failed, counts.resyncing, counts.held),
        (1, 0, 0, 0)
    );
}

#[tokio::test]
async fn without_the_option_an_account_stays_out_of_step() {
    let world = world(|_| ());
    let follower = Follower::start(&world);
    follower.until_the_end(&world).await;
    leave_a_gap(&world, 1);
    world.write_as(1);
    follower.until_the_end(&world).await;
    let (book, did) = (follower.book.clone(), world.account(1).did);
    follower.stop().await;
    assert_eq!(book.of(&did).last().unwrap().1, "verified/unmended");
    let asked = [Server::Pds(0), Server::Pds(1)].map(|pds| world.requests(pds));
    assert!(asked.iter().all(|paths| paths.keys().all(|path| !path.contains("getRepo"))));
}

#[tokio::test]
async fn of_a_hundred_accounts_in_resync_one_that_stalls_holds_up_no_other() {
    const ACCOUNTS: usize = 101;
    let world = world(|spec| (spec.accounts, spec.prepared) = (ACCOUNTS, 0));
    (0..ACCOUNTS).for_each(|number| world.write_as(number));
    let follower = Follower::start_with(&world, |options| {
        let max_silence = Duration::from_secs(300);
        let limits = Limits { max_silence, min_bytes_per_s: 0, ..Limits::REPOSITORY };
        options.resync = Some(Resync { limits, ..resync(&world) });
        options.bounds.max_hold = Duration::from_secs(300);
    });
    follower.until_the_end(&world).await;
    let dids: Vec<String> = (0..ACCOUNTS).map(|number| world.account(number).did).collect();
    world.faults().switch_on(PDS, Fault::StalledRepo, Dose::ONCE);
    (0..ACCOUNTS).for_each(|number| leave_a_gap(&world, number));
    follower.until(|book| book.count("resynced") == ACCOUNTS - 1).await;
    let resynced = |book: &Book, did| book.of(did).iter().any(|(_, code)| *code == "resynced");
    let stalled = dids.iter().position(|did| !resynced(&follower.book, did)).unwrap();
    // The others go on while it still stalls.
    (0..ACCOUNTS).for_each(|number| world.write_as(number));
    let others = |book: &Book| {
        let others = dids.iter().enumerate().filter(|(number, _)| *number != stalled);
        others.filter(|(_, did)| matches!(book.of(did).last(), Some((_, "verified")))).count()
    };
    follower.until(|book| others(book) == ACCOUNTS - 1).await;
    assert_eq!(follower.book.of(&dids[stalled]).last().unwrap().1, "verified/broken");
    let counts = follower.counters.counts();
    assert_eq!((counts.resyncing, counts.held), (1, 1));
    let book = follower.book.clone();
    let summary = follower.stop().await;
    assert_eq!(summary.left, 0);
    assert_eq!(book.of(&dids[stalled]).last().unwrap().1, "verified/unmended");
    assert_eq!(world.faults().fired(PDS, Fault::StalledRepo), 1);
}

#[tokio::test]
async fn a_repository_that_is_cut_off_is_fetched_again() {
    let world = world(|_| ());
    world.faults().switch_on(PDS, Fault::CutRepo, Dose::ONCE);
    let follower = Follower::start_with(&world, |options| options.resync = Some(resync(&world)));
    follower.until_the_end(&world).await;
    leave_a_gap(&world, 0);
    follower.until(|book| book.count("resynced") == 1).await;
    let (book, did) = (follower.book.clone(), world.account(0).did);
    follower.stop().await;
    assert!(is_in_step(&book, &did) && book.failures().is_empty());
    assert_eq!(world.faults().unfired(), []);
}

#[tokio::test]
async fn a_repository_without_an_end_is_given_up_and_the_account_goes_on_out_of_step() {
    let world = world(|_| ());
    world.faults().switch_on(PDS, Fault::EndlessRepo, Dose::ALWAYS);
    let follower = Follower::start_with(&world, |options| {
        let max_time = Duration::from_secs(5);
        let limits = Limits { max_bytes: 1 << 20, max_time, ..Limits::REPOSITORY };
        options.resync =
            Some(wireproof::net::firehose::Resync { limits, attempts: 1, ..resync(&world) });
    });
    follower.until_the_end(&world).await;
    leave_a_gap(&world, 0);
    world.write_as(0);
    follower.until_the_end(&world).await;
    follower.until(|book| !book.failures().is_empty()).await;
    let (book, did) = (follower.book.clone(), world.account(0).did);
    follower.stop().await;
    assert_eq!(book.of(&did).last().unwrap().1, "verified/unmended");
    assert_eq!(book.failures()[0].0, did);
    assert_eq!(world.faults().unfired(), []);
}
