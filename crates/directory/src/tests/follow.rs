//! The follower of a directory: no gap at the seams of pages and streams, whatever the stream does.

use std::sync::Arc;
use std::time::Duration;

use base::StopSignal;
use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::http::Client;
use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};
use store::PlcMirror;

use super::support::TestMirror;
use crate::{MirrorCounts, MirrorError, MirrorNews, MirrorOptions, MirrorRun};

/// A simulated directory whose accounts have two operations each at first.
fn network(accounts: usize) -> Simulation {
    let spec = Spec { accounts, records: 0, jetstreams: 0, relays: 0, pds: 2, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn options() -> MirrorOptions {
    MirrorOptions {
        max_rate: 1000.0,
        poll_interval: Duration::from_millis(20),
        quiet_time: Duration::from_millis(300),
        max_retry: Duration::from_millis(50),
    }
}

fn run(sim: &Simulation, mirror: &TestMirror) -> MirrorRun {
    let url = sim.url(Server::Plc);
    let http = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
    let opened = PlcMirror::open(&mirror.path(), &url).unwrap();
    MirrorRun::new(http, url.parse().unwrap(), opened, options())
}

/// The mirror of the whole export.
async fn whole(sim: &Simulation) -> TestMirror {
    let mirror = TestMirror::new();
    run(sim, &mirror).catch_up(&mut |_| {}).await.unwrap();
    mirror
}

/// Operations of all kinds, one after the other, while something follows.
async fn change(sim: &Simulation, rounds: usize) {
    for round in 0..rounds {
        sim.rotate_key(round % 3);
        sim.change_handle(3, &format!("round{round}.test"));
        if round % 4 == 0 {
            sim.add_account();
        }
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

/// Follows while accounts change, until the mirror has the whole export; the numbers of the run and what it reported.
async fn follow(
    sim: &Simulation,
    mirror: &TestMirror,
    rounds: usize,
) -> (MirrorCounts, Vec<String>) {
    follow_until(sim, mirror, rounds, &[]).await
}

/// The same with faults that end after the changes.
async fn follow_until(
    sim: &Simulation,
    mirror: &TestMirror,
    rounds: usize,
    faults: &[Fault],
) -> (MirrorCounts, Vec<String>) {
    let (mut follower, stop) = (run(sim, mirror), StopSignal::new());
    let (mut reports, reader) = (Vec::new(), mirror.reader());
    let changes = async {
        change(sim, rounds).await;
        faults.iter().for_each(|fault| sim.faults().disable(Server::Plc, *fault));
        let expected = whole(sim).await.reader().totals().unwrap().cursor;
        for _ in 0..2_000 {
            if reader.totals().unwrap().cursor >= expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.request();
    };
    let mut news = |news: MirrorNews<'_>| match news {
        MirrorNews::Stored { refused, .. } => assert_eq!(refused, []),
        other => reports.push(format!("{other:?}")),
    };
    let (ended, ()) = tokio::join!(follower.follow(&stop, &mut news), changes);
    ended.unwrap();
    (follower.counts(), reports)
}

async fn assert_whole(sim: &Simulation, mirror: &TestMirror) {
    let whole = whole(sim).await;
    let of = |mirror: &TestMirror| mirror.reader().operations_after(0, usize::MAX).unwrap();
    assert_eq!(of(mirror), of(&whole));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_operations_arrive_by_the_stream_after_the_pages_and_none_is_missing() {
    let (sim, mirror) = (network(600), TestMirror::new());
    let (counts, _) = follow(&sim, &mirror, 60).await;
    assert_whole(&sim, &mirror).await;
    assert_eq!((counts.streams, counts.refused, counts.left_out), (1, 0, 0));
    // Two pages at first; then one for each number that has no operation.
    assert!((2..=8).contains(&counts.requests), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_that_a_stream_leaves_out_are_found_in_the_export() {
    let (sim, mirror) = (network(5), TestMirror::new());
    sim.faults().enable(Server::Plc, Fault::MissingSeq, FaultSchedule::times(9).every(5));
    let (counts, reports) = follow(&sim, &mirror, 60).await;
    assert_whole(&sim, &mirror).await;
    assert!(counts.left_out >= 9, "{counts:?}");
    assert!(reports.iter().any(|report| report.starts_with("LeftOut")), "{reports:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_fault_of_a_stream_costs_an_operation() {
    let faults = [
        Fault::RepeatedSeq,
        Fault::ReversedSeq,
        Fault::OversizedFrame,
        Fault::GarbageFrame,
        Fault::UnknownKind,
        Fault::WrongMessage,
        Fault::ErrorFrame,
        Fault::Close,
        Fault::Stall,
        Fault::Cut,
        Fault::Drop,
        Fault::UpgradeTooMany,
        Fault::UpgradeUnavailable,
        Fault::UpgradeForbidden,
        Fault::UpgradeNotFound,
        Fault::UpgradeNotImplemented,
        Fault::RequestUnavailable,
    ];
    for fault in faults {
        let (sim, mirror) = (network(5), TestMirror::new());
        let mut schedule = FaultSchedule::times(2);
        if fault == Fault::Cut {
            schedule = schedule.with_amount(20_000);
        }
        sim.faults().enable(Server::Plc, fault, schedule);
        follow(&sim, &mirror, 40).await;
        assert_whole(&sim, &mirror).await;
        assert_eq!(sim.faults().unfired(), [], "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_streams_that_are_behind_each_other_lose_no_operation_and_store_none_twice() {
    let seams = [
        (Fault::PageBehind, Fault::Close),
        (Fault::PageBehind, Fault::MissingSeq),
        (Fault::StreamBehind, Fault::Close),
        (Fault::StreamBehind, Fault::MissingSeq),
    ];
    for (behind, end) in seams {
        for amount in [1, 4] {
            let (sim, mirror) = (network(5), TestMirror::new());
            let faults = sim.faults();
            faults.enable(Server::Plc, behind, FaultSchedule::ALWAYS.with_amount(amount));
            // Every one is a seam between a stream and pages, or makes the run compare them.
            faults.enable(Server::Plc, end, FaultSchedule::times(6).every(7));
            let (counts, _) = follow_until(&sim, &mirror, 60, &[behind, end]).await;
            assert_whole(&sim, &mirror).await;
            assert_eq!(counts.refused, 0, "{behind:?} by {amount}: none comes twice");
            assert_eq!(sim.faults().unfired(), [], "{behind:?} by {amount}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_is_behind_the_mirror_for_a_while_has_lost_nothing() {
    let (sim, mirror) = (network(5), TestMirror::new());
    follow(&sim, &mirror, 10).await;
    // Pages and the stream are of a server that is behind the one that was followed.
    for (behind, times) in [(Fault::PageBehind, 3), (Fault::StreamBehind, 1)] {
        sim.faults().enable(Server::Plc, behind, FaultSchedule::times(times).with_amount(25));
    }
    let (mut reports, mut again) = (Vec::new(), run(&sim, &mirror));
    again.catch_up(&mut |news| reports.push(format!("{news:?}"))).await.unwrap();
    assert!(reports.iter().any(|report| report.starts_with("ExportBehind")), "{reports:?}");
    drop(again);
    sim.faults().enable(Server::Plc, Fault::PageBehind, FaultSchedule::times(3).with_amount(25));
    let (_, reports) = follow(&sim, &mirror, 10).await;
    assert!(reports.iter().any(|report| report.contains("FutureCursor")), "{reports:?}");
    assert_whole(&sim, &mirror).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_without_a_stream_is_polled() {
    let (sim, mirror) = (network(5), TestMirror::new());
    sim.faults().enable(Server::Plc, Fault::UpgradeNotFound, FaultSchedule::ALWAYS);
    let (counts, reports) = follow(&sim, &mirror, 30).await;
    assert_whole(&sim, &mirror).await;
    assert_eq!(counts.streams, 0);
    assert!(reports.iter().all(|report| report.starts_with("NoStream")), "{reports:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outdated_cursor_leads_back_to_the_pages() {
    let (sim, mirror) = (network(5), TestMirror::new());
    sim.begin_export_streams(25);
    let (_, reports) = follow(&sim, &mirror, 30).await;
    assert_whole(&sim, &mirror).await;
    assert!(reports.iter().any(|report| report.contains("OutdatedCursor")), "{reports:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_begins_its_numbers_again_is_an_error() {
    let (sim, mirror) = (network(5), TestMirror::new());
    for _ in 0..3 {
        change(&sim, 10).await;
    }
    let line = r#"{"seq":5000,"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","operation":{},"cid":"","createdAt":""}"#;
    sim.add_to_export(line);
    run(&sim, &mirror).catch_up(&mut |_| {}).await.unwrap();
    sim.restart_export();
    let mut follower = run(&sim, &mirror);
    let error = follower.follow(&StopSignal::new(), &mut |_| {}).await.unwrap_err();
    assert!(matches!(error, MirrorError::Export(_)), "{error}");
    assert!(error.to_string().contains("the directory has lost lines"), "{error}");
}
