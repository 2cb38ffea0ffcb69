//! Runs as asynchronous streams.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use verify::sync::MemoryState;

use super::super::ack::{AckTracker, Batch, InFlightLimit, RunState};
use super::super::*;
use super::support::*;

fn stream(frames: Vec<Vec<u8>>, options: Options, journal: &Arc<TestJournal>) -> VerdictStream {
    let (firehose, journal) = (firehose(options), journal.clone());
    let streams = vec![(STREAM.to_owned(), None)];
    let states = |_| MemoryState::new([7; 16]);
    VerdictStream::spawn(2, |handler, stop| {
        firehose.run_source(Script::new(frames), streams, handler, journal, states, stop)
    })
}

fn commits(count: u64) -> (Vec<Vec<u8>>, Options) {
    let mut writer = Writer::new(0);
    let options = options(keys([&writer]));
    ((1..=count).map(|seq| writer.commit(seq)).collect(), options)
}

fn cursor(journal: &TestJournal) -> Option<u64> {
    journal.cursor(STREAM).unwrap()
}

#[tokio::test]
async fn a_stream_yields_verdicts_in_order_and_ends_after_the_last_event() {
    let (frames, mut options) = commits(20);
    options.max_events = Some(20);
    let journal = Arc::default();
    let mut items = stream(frames, options, &journal);
    for seq in 1..=20 {
        let item = items.next().await.unwrap().unwrap();
        let StreamItem::Event(event, ack) = item else { panic!("{item:?}") };
        assert_eq!((event.seq, event.code, event.is_verified), (Some(seq), "verified", true));
        ack.done();
    }
    assert!(items.next().await.is_none());
    assert_eq!((items.summary().unwrap().delivered, cursor(&journal)), (20, Some(20)));
}

#[tokio::test]
async fn a_dropped_stream_ends_the_run_and_only_used_acknowledgements_count() {
    let (frames, mut options) = commits(20);
    options.checkpoint_interval = Duration::from_millis(1);
    options.limits.max_batch = 1;
    let journal = Arc::<TestJournal>::default();
    let mut items = stream(frames, options, &journal);
    let mut held = Vec::new();
    for seq in 1..=3 {
        let item = items.next().await.unwrap().unwrap();
        let StreamItem::Event(_, ack) = item else { panic!("{item:?}") };
        if seq < 3 { ack.done() } else { held.push(ack) }
    }
    while cursor(&journal) != Some(2) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(items);
    while Arc::strong_count(&journal) > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(cursor(&journal), Some(2), "the third event was yielded, not acknowledged");
    held.into_iter().for_each(Ack::done);
}

#[tokio::test]
async fn a_run_that_has_nothing_to_deliver_ends_with_its_stream() {
    let (_, options) = commits(0);
    let journal = Arc::<TestJournal>::default();
    let items = stream(vec![], options, &journal);
    tokio::task::yield_now().await;
    drop(items);
    while Arc::strong_count(&journal) > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_stream_that_is_stopped_yields_what_was_received_and_ends() {
    let (frames, options) = commits(3);
    let mut items = stream(frames, options, &Arc::default());
    let stop = items.stop_signal();
    let mut count = 0;
    while let Some(item) = items.next().await {
        let StreamItem::Event(_, ack) = item.unwrap() else { continue };
        ack.done();
        count += 1;
        stop.request();
    }
    assert_eq!(count, items.summary().unwrap().delivered);
    assert!((1..=3).contains(&count));
}

#[tokio::test]
async fn an_event_that_is_not_verified_says_why() {
    let mut known = Writer::new(0);
    let mut forger = Writer::new(0);
    let mut unknown = Writer::new(1);
    forger.rotate();
    let mut options = options(keys([&known]));
    options.max_events = Some(4);
    let frames =
        vec![known.commit(1), forger.skip().commit(2), unknown.commit(3), b"garbage".to_vec()];
    let mut items = stream(frames, options, &Arc::default());
    let mut reasons = HashMap::new();
    while let Some(item) = items.next().await {
        let StreamItem::Event(event, ack) = item.unwrap() else { continue };
        reasons.insert(event.code, event.reason);
        ack.done();
    }
    let reason_of = |code| reasons[code].as_deref();
    assert_eq!(reason_of("verified"), None);
    let unknown = KeyError::UnknownAccount.to_string();
    assert_eq!(reason_of("signature/no-key"), Some(&*unknown));
    let others =
        reasons.iter().filter(|(code, _)| !["verified", "signature/no-key"].contains(code));
    let texts: Vec<_> = others.map(|(_, reason)| reason.as_deref()).collect();
    assert_eq!(texts.len(), 2, "a signature of another key, and no frame: {reasons:?}");
    assert!(texts.iter().all(|text| text.is_some_and(|text| !text.is_empty())));
}

#[tokio::test]
async fn resyncs_and_notices_are_items_too() {
    let mut items = VerdictStream::spawn(8, |handler, _| async move {
        let report = move || {
            handler.notice(&Notice::Repeated { host: HOST, seq: 7 });
            handler.resync_failed("did:x:y", &ResyncError::NoHost);
            let (tracker, in_flight) = (AckTracker::new([]), InFlightLimit::new(1, 1, None));
            let run = RunState::new(vec![], tracker, in_flight);
            let batch = Batch::open(&run, Box::default(), 0, Box::default());
            let mut writer = Writer::new(0);
            let repo = ResyncedRepo::new(&writer.did.clone(), writer.skip().head()).unwrap();
            handler.resynced(&Arc::new(repo), batch.ack(None));
        };
        tokio::task::spawn_blocking(report).await.unwrap();
        std::future::pending().await
    });
    let item = items.next().await.unwrap().unwrap();
    let notice = Notice::Repeated { host: HOST, seq: 7 };
    assert!(matches!(&item, StreamItem::Notice(found) if *found == notice), "{item:?}");
    let item = items.next().await.unwrap().unwrap();
    assert!(matches!(&item, StreamItem::ResyncFailed { did, .. } if &**did == "did:x:y"));
    let StreamItem::Resynced(repo, ack) = items.next().await.unwrap().unwrap() else {
        panic!("a resynced repository")
    };
    assert_eq!(*repo.did, *Writer::new(0).did);
    ack.done();
}

#[tokio::test]
async fn a_full_buffer_stops_delivery() {
    let (frames, mut options) = commits(100);
    (options.max_events, options.limits.max_events) = (Some(100), 10);
    let firehose_metrics = {
        let journal = Arc::default();
        let firehose = firehose(options);
        let metrics = firehose.metrics();
        let states = |_| MemoryState::new([7; 16]);
        let streams = vec![(STREAM.to_owned(), None)];
        let mut items = VerdictStream::spawn(2, |handler, stop| {
            let journal = Arc::<TestJournal>::clone(&journal);
            firehose.run_source(Script::new(frames), streams, handler, journal, states, stop)
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(metrics.snapshot().in_flight <= 10);
        let mut count = 0;
        while let Some(item) = items.next().await {
            let StreamItem::Event(_, ack) = item.unwrap() else { continue };
            count += 1;
            ack.done();
        }
        assert_eq!(count, 100);
        metrics
    };
    assert_eq!(firehose_metrics.snapshot().delivered, 100);
}

#[tokio::test]
async fn a_dropped_acknowledgement_fails_the_stream() {
    let (frames, options) = commits(3);
    let mut items = stream(frames, options, &Arc::default());
    drop(items.next().await);
    let mut last = None;
    while let Some(item) = items.next().await {
        match item {
            Ok(StreamItem::Event(_, ack)) => ack.done(),
            Ok(_) => {}
            Err(error) => last = Some(error),
        }
    }
    assert!(matches!(last, Some(RunError::Unacknowledged { .. })), "{last:?}");
}
