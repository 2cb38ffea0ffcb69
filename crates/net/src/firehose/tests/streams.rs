//! Runs as asynchronous streams.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use verify::sync::MemoryState;

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
