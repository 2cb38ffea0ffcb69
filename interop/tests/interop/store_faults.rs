//! An object store that fails: events stored through it are stored once, and failures are reported in time.

use std::time::{Duration, Instant};

use archive::{Archive, ArchiveError, ArchiveFault, StoreProblem, Table, VerifyOptions, WorkId};
use wireproof_interop::faults::{Fault, FaultyProxy, Request};
use wireproof_interop::kit;
use wireproof_interop::s3::{S3, variables};

use crate::stores::{BUCKET, NOW, event, file_counts, open, seqs};

/// The archive behind a proxy, with a second per request.
fn behind(proxy: &FaultyProxy) -> Archive {
    let mut variables = variables(&proxy.url());
    variables.push(("AWS_TIMEOUT".to_owned(), "1s".to_owned()));
    open(&variables)
}

/// The first request for every path fails so.
fn at_first(fault: Fault) -> impl Fn(&Request) -> Option<Fault> + Send + Sync {
    move |request| (request.repetition == 0).then_some(fault)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_first_answers_fail_has_every_event_once() {
    let kit = kit!(S3);
    let is_put = |request: &Request| request.method == "PUT";
    let faults: [(&str, Plan); 6] = [
        ("503", Box::new(at_first(Fault::Unavailable))),
        ("lost answers", Box::new(at_first(Fault::LostAnswer))),
        ("delays", Box::new(at_first(Fault::Delay(Duration::from_millis(100))))),
        // Every other one, as the missing part is requested by a range of the same path; of listings, which share one path,
        // the first and the third.
        (
            "cut bodies",
            Box::new(|request| {
                let is_cut = if is_list(request) { request.repetition < 3 } else { true };
                (is_cut && request.repetition % 2 == 0).then_some(Fault::CutBody)
            }),
        ),
        (
            "silence",
            Box::new(move |request| at_first(Fault::Silence)(request).filter(|_| is_put(request))),
        ),
        (
            "late answers",
            Box::new(move |request| {
                // Carried out after the client has given up.
                let late = at_first(Fault::Delay(Duration::from_millis(1_500)));
                late(request).filter(|_| is_put(request))
            }),
        ),
    ];
    for (name, plan) in faults {
        let s3 = S3::start(&kit, BUCKET).await;
        let proxy = FaultyProxy::start(s3.port(), plan).await;
        write_all(&behind(&proxy)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(proxy.injected() > 5, "{name}: {} faults", proxy.injected());
        // A request that was given up may still be under way.
        tokio::time::sleep(Duration::from_millis(600)).await;
        let archive = open(&s3.variables());
        let mut expected: Vec<i64> = (0..EVENTS).chain(EVENTS..2 * EVENTS).collect();
        expected.retain(|seq| seq % 2 == 0);
        assert_eq!(seqs(&archive).await, expected, "{name}");
        let stats = archive.table_stats(Table::Events).await.expect("a log");
        // Two works and an erasure.
        assert_eq!(stats.versions, 3, "{name}");
        let (stored, listed) = file_counts(&s3, &archive).await;
        assert_eq!(stored as u64, listed, "{name}");
        let staged = s3.bucket(BUCKET).join("relays/one/staging");
        let left = std::fs::read_dir(staged).map_or(0, Iterator::count);
        assert_eq!(left, 1, "{name}: the object that checks conditional puts, once");
    }
}

fn is_list(request: &Request) -> bool {
    request.path.trim_matches('/') == BUCKET
}

type Plan = Box<dyn Fn(&Request) -> Option<Fault> + Send + Sync>;

/// Seals two works, one of them twice, proves them, and erases one of two accounts.
async fn write_all(archive: &Archive) -> Result<(), ArchiveError> {
    for number in [0, 1, 1] {
        let first = number * EVENTS;
        let frames: Vec<_> = (first..first + EVENTS).map(i64::to_be_bytes).collect();
        let events = (first..).zip(&frames).map(|(seq, frame)| event(seq, frame)).collect();
        archive.seal(events, &WorkId { writer: "test".to_owned(), number }).await?;
    }
    let report =
        archive.verify(&VerifyOptions::default(), &mut |finding| panic!("{finding:?}")).await?;
    assert_eq!(report.events, 2 * EVENTS as u64);
    archive.erase("did:web:bob.test", "deleted", NOW).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_recover_is_reported_in_time() {
    let kit = kit!(S3);
    let s3 = S3::start(&kit, BUCKET).await;
    write_all(&open(&s3.variables())).await.expect("a store without faults");
    let stored = seqs(&open(&s3.variables())).await;
    for fault in [Fault::Unavailable, Fault::Silence, Fault::LostAnswer, Fault::CutBody] {
        let proxy = FaultyProxy::start(s3.port(), move |_| Some(fault)).await;
        let (archive, started) = (behind(&proxy), Instant::now());
        let error = write_all(&archive).await.expect_err("a store that always fails");
        let ArchiveFault::Store(found) = &error.fault else { panic!("{fault:?}: {error}") };
        assert_eq!(found.problem, StoreProblem::Unavailable, "{fault:?}: {error}");
        assert!(error.is_temporary() && error.to_string().contains("try again"), "{error}");
        assert!(started.elapsed() < MAX_TIME, "{fault:?}: {:?}", started.elapsed());
    }
    assert_eq!(seqs(&open(&s3.variables())).await, stored);
}

/// Events of a work, half of them for each account.
const EVENTS: i64 = 20;

/// The time in which a store that always fails is reported: the duration of the retries, on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(120);
