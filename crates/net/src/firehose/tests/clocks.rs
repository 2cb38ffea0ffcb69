//! Events from the future, which wait until the local clock is compared with that of a server.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::super::*;
use super::support::*;
use crate::http::Url;
use crate::loopback_server::{response, serve};

/// The URL of a server whose clock is ahead of the local one.
async fn clock_server(ahead: Duration) -> Url {
    let date = httpdate::fmt_http_date(SystemTime::now() + ahead);
    let port = serve(move |_| response(200, &format!("date: {date}\r\n"), "")).await;
    format!("http://localhost:{port}/").parse().unwrap()
}

/// Runs a batch: an account that is a day ahead from its second event on, and one of the present after it.
async fn run_with(
    server_ahead: Duration,
    stop_after: usize,
) -> (Result<RunSummary, RunError>, Vec<(u64, &'static str)>, Option<u64>) {
    let (mut early, mut present) = (Writer::new(0), Writer::new(1));
    let options = Options {
        workers: 1,
        clock_servers: vec![clock_server(server_ahead).await],
        ..options(keys([&early, &present]))
    };
    let first = early.commit(1);
    early.skip_to(SystemTime::now() + DAY);
    let frames = [first, early.commit(2), early.commit(3), present.commit(4)];
    let recorder = Recorder::new(stop_after, AckMode::Immediate);
    let journal = Arc::<TestJournal>::default();
    let ended = run(options, Script::new(frames), &recorder, &journal).await;
    let events = recorder.events().into_iter().map(|event| (event.seq, event.code)).collect();
    (ended, events, journal.cursor(STREAM).unwrap())
}

#[tokio::test]
async fn an_account_ahead_of_all_clocks_is_refused_after_their_comparison_and_others_do_not_wait() {
    let (ended, events, cursor) = run_with(Duration::ZERO, 4).await;
    assert_eq!(ended.unwrap().unacknowledged, 0);
    let refused = "event/future-rev";
    assert_eq!(events, [(1, "verified"), (4, "verified"), (2, refused), (3, refused)]);
    assert_eq!(cursor, Some(4));
}

#[tokio::test]
async fn a_local_clock_that_is_behind_ends_the_run_with_the_cursor_before_the_event_of_the_future()
{
    let (ended, events, cursor) = run_with(DAY, usize::MAX).await;
    assert!(matches!(ended, Err(RunError::LocalClock { behind }) if behind > DAY / 2), "{ended:?}");
    assert_eq!(events, [(1, "verified"), (4, "verified")]);
    assert_eq!(cursor, Some(1));
}

const DAY: Duration = Duration::from_secs(86_400);
