//! Every event once, in order per account, within the in-flight limit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use verify::sync::MemoryState;

use super::super::*;
use super::support::*;

/// Commits of all accounts in turn; numbers begin with 1.
fn rounds(writers: &mut [Writer], rounds: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for _ in 0..rounds {
        for writer in &mut *writers {
            let seq = frames.len() as u64 + 1;
            frames.push(writer.commit(seq));
        }
    }
    frames
}

fn writers(count: u8) -> Vec<Writer> {
    (0..count).map(Writer::new).collect()
}

#[tokio::test]
async fn every_event_is_verified_once_and_in_order_for_its_account() {
    let mut writers = writers(10);
    let keys = keys(&writers);
    let frames = rounds(&mut writers, 100);
    let (recorder, journal) = (Recorder::new(1_000, AckMode::Immediate), Arc::default());
    let summary = run(options(keys), Script::new(frames), &recorder, &journal).await.unwrap();
    assert_eq!((summary.delivered, summary.unacknowledged), (1_000, 0));
    for (number, writer) in (1..).zip(&writers) {
        let expected: Vec<_> = (0..100).map(|round| (round * 10 + number, "verified")).collect();
        assert_eq!(recorder.of(writer), expected);
    }
    assert_eq!(journal.0.lock().unwrap().cursors[STREAM], 1_000);
    assert_eq!(journal.0.lock().unwrap().accounts.len(), 10);
}

#[tokio::test]
async fn unverified_events_are_delivered_in_order_too() {
    let mut writers = writers(3);
    let frames = rounds(&mut writers, 50);
    let options =
        Options { verify: Verification::Off { decoding: Default::default() }, ..options(keys([])) };
    let (recorder, journal) = (Recorder::new(150, AckMode::Immediate), Arc::default());
    run(options, Script::new(frames), &recorder, &journal).await.unwrap();
    for (number, writer) in (1..).zip(&writers) {
        let expected: Vec<_> = (0..50).map(|round| (round * 3 + number, "not-asked")).collect();
        assert_eq!(recorder.of(writer), expected);
    }
    assert!(journal.0.lock().unwrap().accounts.is_empty());
}

#[tokio::test]
async fn bytes_that_are_not_a_frame_are_delivered_as_received() {
    let mut writer = Writer::new(0);
    let keys = keys([&writer]);
    let frames = vec![b"garbage".to_vec(), writer.commit(1), vec![]];
    let (recorder, journal) = (Recorder::new(3, AckMode::Immediate), Arc::default());
    run(options(keys), Script::new(frames), &recorder, &journal).await.unwrap();
    let mut codes: Vec<_> = recorder.events().iter().map(|event| event.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["frame/cbor", "frame/cbor", "verified"]);
}

#[tokio::test]
async fn inboxes_that_hold_one_event_deliver_every_event_in_order() {
    let mut writers = writers(5);
    let keys = keys(&writers);
    let frames = rounds(&mut writers, 20);
    let mut options = options(keys);
    (options.limits.max_queued_bytes, options.limits.max_batch, options.workers) = (1, 2, 2);
    let (recorder, journal) = (Recorder::new(100, AckMode::Immediate), Arc::default());
    run(options, Script::new(frames), &recorder, &journal).await.unwrap();
    for (number, writer) in (1..).zip(&writers) {
        let expected: Vec<_> = (0..20).map(|round| (round * 5 + number, "verified")).collect();
        assert_eq!(recorder.of(writer), expected);
    }
}

/// The number of events since the last end of a batch, and the numbers of the batches before.
#[derive(Default)]
struct Batches(Mutex<(usize, Vec<usize>)>);

impl Handler for Batches {
    fn event(&self, _: &DeliveredEvent<'_>, ack: Ack) {
        self.0.lock().unwrap().0 += 1;
        ack.done();
    }

    fn batch_end(&self) {
        let mut counts = self.0.lock().unwrap();
        let events = std::mem::take(&mut counts.0);
        counts.1.push(events);
    }
}

#[tokio::test]
async fn the_handler_is_called_at_the_end_of_each_batch() {
    let mut writers = writers(3);
    let mut options = options(keys(&writers));
    (options.limits.max_batch, options.workers, options.max_events) = (4, 1, Some(30));
    let script = Script::new(rounds(&mut writers, 10));
    let (batches, journal) = (Arc::<Batches>::default(), Arc::<TestJournal>::default());
    let (streams, states) =
        (vec![(STREAM.to_owned(), None)], |_| verify::sync::MemoryState::new([7; 16]));
    let (handler, stop) = (batches.clone(), StopSignal::new());
    let run = firehose(options).run_source(script, streams, handler, journal, states, stop);
    assert_eq!(run.await.unwrap().delivered, 30);
    let (pending, ended) = &*batches.0.lock().unwrap();
    assert_eq!((*pending, ended.iter().sum::<usize>()), (0, 30));
    assert!(ended.iter().all(|events| (1..=4).contains(events)), "{ended:?}");
}

#[tokio::test]
async fn reading_stops_at_the_in_flight_limit_and_continues_after_acknowledgements() {
    let mut writers = writers(4);
    let keys = keys(&writers);
    let frames = rounds(&mut writers, 25);
    let limits = FlowLimits { max_events: 10, ..FlowLimits::default() };
    let options = Options { limits, ..options(keys) };
    let (recorder, journal) = (Recorder::new(100, AckMode::Deferred), Arc::default());
    let script = Script::new(frames);
    let acks = async {
        let mut max = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(2)).await;
            max = max.max(recorder.deferred());
            recorder.ack_deferred();
            if recorder.events().len() == 100 && recorder.deferred() == 0 {
                break max;
            }
        }
    };
    let (summary, max) = tokio::join!(run(options, script, &recorder, &journal), acks);
    assert_eq!((summary.unwrap().delivered, recorder.events().len()), (100, 100));
    assert!(max <= 10, "{max} at once");
}

#[tokio::test]
async fn an_event_with_an_invalid_record_is_verified_and_its_record_is_counted() {
    let mut writer = Writer::new(0);
    let mut options = options(keys([&writer]));
    options.max_events = Some(2);
    // The number 5 in two bytes.
    let frames = [writer.commit(1), writer.create(2, "com.example.post/a", b"\xa1\x61n\x18\x05")];
    let recorder = Recorder::new(usize::MAX, AckMode::Immediate);
    let (streams, journal) = (vec![(STREAM.to_owned(), None)], Arc::<TestJournal>::default());
    let firehose = firehose(options);
    let metrics = firehose.metrics();
    let states = |_| MemoryState::new([7; 16]);
    let (handler, stop) = (recorder.clone(), recorder.stop());
    let ended = firehose.run_source(Script::new(frames), streams, handler, journal, states, stop);
    ended.await.unwrap();
    assert_eq!(recorder.of(&writer), [(1, "verified"), (2, "verified")]);
    assert_eq!(metrics.snapshot().invalid_records, 1);
}

/// Keeps which events could be decoded, and stops after two.
#[derive(Default)]
struct Decodable(Mutex<Vec<bool>>, StopSignal);

impl Handler for Decodable {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        let mut events = self.0.lock().unwrap();
        events.push(!matches!(event.verdict, Verdict::Undecodable(_)));
        if events.len() == 2 {
            self.1.request();
        }
        ack.done();
    }
}

#[tokio::test]
async fn bytes_that_are_no_frame_are_delivered_as_such() {
    let (mut writer, handler) = (Writer::new(0), Arc::<Decodable>::default());
    let frames = Script::new([b"no frame".to_vec(), writer.commit(1)]);
    let run = firehose(Options { workers: 1, ..options(keys([&writer])) });
    let streams = vec![(STREAM.to_owned(), None)];
    let (journal, stop) = (Arc::<TestJournal>::default(), handler.1.clone());
    let states = |_| MemoryState::new([7; 16]);
    run.run_source(frames, streams, handler.clone(), journal, states, stop).await.unwrap();
    assert_eq!(*handler.0.lock().unwrap(), [false, true]);
}
