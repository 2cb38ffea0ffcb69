//! Accounts that are out of step, and their repositories.

use std::time::Duration;

use simnet::servers::{Fault, FaultSchedule, Server, Simulation};
use wireproof::net::firehose::ResyncOptions;
use wireproof::net::http::Limits;

use crate::follower::{Book, Follower, resync};
use crate::line::sim;

const PDS: Server = Server::Pds(0);

/// Lets an account miss a commit, and tells the next one.
fn leave_a_gap(sim: &Simulation, number: usize) {
    sim.write_unannounced(number);
    sim.write_commit_as(number);
}

/// Whether the account was in step when its last event was handed over, or is since.
fn is_in_step(book: &Book, did: &str) -> bool {
    matches!(book.of(did).last(), Some((_, "verified" | "resynced" | "event/stale-rev")))
}

#[tokio::test]
async fn an_account_that_missed_something_has_its_repository_fetched_and_goes_on() {
    let sim = sim(|_| ());
    let follower = Follower::start_with(&sim, |options| options.resync = Some(resync(&sim)));
    follower.until_the_end(&sim).await;
    leave_a_gap(&sim, 1);
    follower.until(|book| book.count("resynced") == 1).await;
    sim.write_commit_as(1);
    follower.until_the_end(&sim).await;
    let (book, counters) = (follower.book.clone(), follower.counters.clone());
    follower.stop().await;
    let expected = sim.expected_accounts();
    let codes: Vec<_> = book.of(&expected[1].account.did).iter().map(|(_, code)| *code).collect();
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
    let (book, did) = (follower.book.clone(), sim.account(1).did);
    follower.stop().await;
    assert_eq!(book.of(&did).last().unwrap().1, "verified/unmended");
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
        options.resync = Some(ResyncOptions { limits, ..resync(&sim) });
        options.limits.max_hold = Duration::from_secs(300);
    });
    follower.until_the_end(&sim).await;
    let dids: Vec<String> = (0..ACCOUNTS).map(|number| sim.account(number).did).collect();
    sim.faults().enable(PDS, Fault::StalledRepo, FaultSchedule::ONCE);
    (0..ACCOUNTS).for_each(|number| leave_a_gap(&sim, number));
    follower.until(|book| book.count("resynced") == ACCOUNTS - 1).await;
    let resynced = |book: &Book, did| book.of(did).iter().any(|(_, code)| *code == "resynced");
    let stalled = dids.iter().position(|did| !resynced(&follower.book, did)).unwrap();
    // The others go on while it still stalls.
    (0..ACCOUNTS).for_each(|number| sim.write_commit_as(number));
    let others = |book: &Book| {
        let others = dids.iter().enumerate().filter(|(number, _)| *number != stalled);
        others.filter(|(_, did)| matches!(book.of(did).last(), Some((_, "verified")))).count()
    };
    follower.until(|book| others(book) == ACCOUNTS - 1).await;
    assert_eq!(follower.book.of(&dids[stalled]).last().unwrap().1, "verified/broken");
    let counts = follower.counters.snapshot();
    assert_eq!((counts.resyncs_running, counts.awaiting_repo), (1, 1));
    let book = follower.book.clone();
    let summary = follower.stop().await;
    assert_eq!(summary.unacknowledged, 0);
    assert_eq!(book.of(&dids[stalled]).last().unwrap().1, "verified/unmended");
    assert_eq!(sim.faults().fired(PDS, Fault::StalledRepo), 1);
}

#[tokio::test]
async fn a_repository_that_is_cut_off_is_fetched_again() {
    let sim = sim(|_| ());
    sim.faults().enable(PDS, Fault::CutRepo, FaultSchedule::ONCE);
    let follower = Follower::start_with(&sim, |options| options.resync = Some(resync(&sim)));
    follower.until_the_end(&sim).await;
    leave_a_gap(&sim, 0);
    follower.until(|book| book.count("resynced") == 1).await;
    let (book, did) = (follower.book.clone(), sim.account(0).did);
    follower.stop().await;
    assert!(is_in_step(&book, &did) && book.failures().is_empty());
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_repository_without_an_end_is_given_up_and_the_account_goes_on_out_of_step() {
    let sim = sim(|_| ());
    sim.faults().enable(PDS, Fault::EndlessRepo, FaultSchedule::ALWAYS);
    let follower = Follower::start_with(&sim, |options| {
        let max_time = Duration::from_secs(5);
        let limits = Limits { max_bytes: 1 << 20, max_time, ..Limits::REPOSITORY };
        options.resync =
            Some(wireproof::net::firehose::ResyncOptions { limits, attempts: 1, ..resync(&sim) });
    });
    follower.until_the_end(&sim).await;
    leave_a_gap(&sim, 0);
    sim.write_commit_as(0);
    follower.until_the_end(&sim).await;
    follower.until(|book| !book.failures().is_empty()).await;
    let (book, did) = (follower.book.clone(), sim.account(0).did);
    follower.stop().await;
    assert_eq!(book.of(&did).last().unwrap().1, "verified/unmended");
    assert_eq!(book.failures()[0].0, did);
    assert_eq!(sim.faults().unfired(), []);
}
