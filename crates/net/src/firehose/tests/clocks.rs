//! Events from the future, which wait until the local clock is compared with a server's.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::super::jobs::Job;
use super::super::*;
use super::support::*;
use super::test_worker::TestWorker;
use crate::http::Url;
use crate::loopback_server::{response, serve_after};

/// The URL of a server whose clock is ahead of the local one. It answers after the events that do not wait for it.
async fn clock_server(ahead: Duration, recorder: Arc<Recorder>) -> Url {
    let date = httpdate::fmt_http_date(SystemTime::now() + ahead);
    let at_once = async move {
        while recorder.events().len() < AT_ONCE.len() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let answer = move |_: &_| response(200, &format!("date: {date}\r\n"), "");
    let port = serve_after(at_once, answer).await;
    format!("http://localhost:{port}/").parse().unwrap()
}

/// Runs a batch with two accounts that are a day ahead, one from its second event on; one that is ahead and then not; and
/// one of the present.
async fn run_with(
    server_ahead: Duration,
    stop_after: usize,
) -> (Result<RunSummary, RunError>, Vec<(u64, &'static str)>, Option<u64>) {
    let mut writers = [0, 1, 2, 3].map(Writer::new);
    let recorder = Recorder::new(stop_after, AckMode::Immediate);
    let options = Options {
        workers: 1,
        clock_servers: vec![clock_server(server_ahead, recorder.clone()).await],
        stop_timeout: Duration::MAX,
        ..options(keys(&writers))
    };
    let [early, other, moody, present] = &mut writers;
    let (first, now) = (early.commit(1), SystemTime::now());
    [&mut *early, other, moody].into_iter().for_each(|writer| writer.skip_to(now + DAY));
    let ahead = [early.commit(2), early.commit(3), other.commit(4), moody.commit(5)];
    moody.skip_to(now);
    let frames = [first].into_iter().chain(ahead).chain([moody.commit(6), present.commit(7)]);
    let journal = Arc::<TestJournal>::default();
    let ended = run(options, Script::new(frames), &recorder, &journal).await;
    let events = recorder.events().into_iter().map(|event| (event.seq, event.code)).collect();
    (ended, events, journal.cursor(STREAM).unwrap())
}

#[tokio::test]
async fn an_account_ahead_of_all_clocks_is_refused_after_their_comparison_and_others_do_not_wait() {
    // The others are in flight when the run is stopped.
    let (ended, events, cursor) = run_with(Duration::ZERO, AT_ONCE.len()).await;
    assert_eq!(ended.unwrap().unacknowledged, 0);
    assert_eq!(events[..4], AT_ONCE);
    assert_eq!(events[4..], [2, 3, 4].map(|seq| (seq, "event/future-rev")));
    assert_eq!(cursor, Some(7));
}

#[tokio::test]
async fn a_local_clock_that_is_behind_ends_the_run_with_the_cursor_before_the_event_of_the_future()
{
    let (ended, events, cursor) = run_with(DAY, usize::MAX).await;
    assert!(matches!(ended, Err(RunError::LocalClock { behind }) if behind > DAY / 2), "{ended:?}");
    assert_eq!((events, cursor), (AT_ONCE.to_vec(), Some(1)));
}

/// The events that do not wait. An account with a later event of the present has a wrong clock itself.
const AT_ONCE: [(u64, &str); 4] =
    [(1, "verified"), (5, "event/future-rev"), (6, "verified"), (7, "verified")];

#[test]
fn an_account_with_an_event_of_the_future_waits_for_the_clock_alone() {
    let [mut keyless, mut ahead, mut inactive] = [0, 1, 2].map(Writer::new);
    let mut worker = TestWorker::new(&[&inactive]);
    worker.receive([inactive.commit(1), inactive.account(2, false)]);
    let mut frames = vec![keyless.commit(3), ahead.commit(4), inactive.commit(5)];
    ahead.skip_to(SystemTime::now() + DAY);
    frames.push(ahead.commit(6));
    worker.receive(frames);
    assert_eq!(worker.recorder.events().len(), 2);
    let jobs = [(); 3].map(|()| worker.jobs.try_recv().ok());
    let [Some(Job::LookUpKey { did: key, .. }), Some(Job::LookUpStatus { did: status, .. }), None] =
        jobs
    else {
        panic!("{jobs:?}")
    };
    assert_eq!((&*key, &*status), (&*keyless.did, &*inactive.did));
    let ready = worker.partition.ready.iter().map(|event| event.received.seq);
    assert_eq!(ready.collect::<Vec<_>>(), [Some(4), Some(6)]);
}

const DAY: Duration = Duration::from_secs(86_400);
