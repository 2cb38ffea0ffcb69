//! The end of a run, and its cursor.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use verify::sync::{AccountState, MemoryState};

use super::super::*;
use super::support::*;

fn frames(writer: &mut Writer, count: u64) -> Vec<Vec<u8>> {
    (1..=count).map(|seq| writer.commit(seq)).collect()
}

async fn run_with(
    ack_mode: AckMode,
    stop_after: usize,
    journal: &Arc<TestJournal>,
) -> (Result<RunSummary, RunError>, Arc<Recorder>) {
    let mut writer = Writer::new(0);
    let options = Options { stop_timeout: Duration::from_millis(200), ..options(keys([&writer])) };
    let script = Script::new(frames(&mut writer, 20));
    let recorder = Recorder::new(stop_after, ack_mode);
    (run(options, script, &recorder, journal).await, recorder)
}

fn cursor(journal: &TestJournal) -> Option<u64> {
    journal.cursor(STREAM).unwrap()
}

#[tokio::test]
async fn an_event_that_is_dropped_ends_the_run_and_the_cursor_is_before_it() {
    let journal = Arc::default();
    let (ended, _) = run_with(AckMode::DropAt(7), usize::MAX, &journal).await;
    let Err(RunError::Unacknowledged { stream, seq }) = ended else { panic!("{ended:?}") };
    assert_eq!((&*stream, seq), (STREAM, Some(7)));
    assert!(cursor(&journal).is_none_or(|cursor| cursor < 7));
}

#[tokio::test]
async fn a_full_journal_ends_the_run_and_the_cursor_is_as_it_was() {
    let journal = Arc::<TestJournal>::default();
    journal.0.lock().unwrap().cursors.insert(STREAM.to_owned(), 3);
    journal.0.lock().unwrap().is_full = true;
    let before = journal.0.lock().unwrap().clone();
    let (ended, _) = run_with(AckMode::Immediate, 20, &journal).await;
    assert!(matches!(ended, Err(RunError::Journal(_))), "{ended:?}");
    assert_eq!(*journal.0.lock().unwrap(), before);
}

#[tokio::test]
async fn a_panic_of_the_handler_ends_the_run() {
    let journal = Arc::default();
    let (ended, _) = run_with(AckMode::PanicAt(7), usize::MAX, &journal).await;
    assert!(
        matches!(ended, Err(RunError::Panicked | RunError::Unacknowledged { .. })),
        "{ended:?}"
    );
    assert!(cursor(&journal).is_none_or(|cursor| cursor < 7));
}

#[tokio::test]
async fn a_stopped_run_delivers_the_events_in_flight_and_no_more() {
    let journal = Arc::default();
    let (ended, recorder) = run_with(AckMode::Immediate, 5, &journal).await;
    let summary = ended.unwrap();
    let seen = recorder.events().len() as u64;
    assert_eq!((summary.delivered, summary.unacknowledged), (seen, 0));
    assert_eq!(cursor(&journal), Some(seen));
    assert_eq!(summary.cursors, [(STREAM.to_owned(), Some(seen))]);
}

#[tokio::test]
async fn events_not_acknowledged_in_time_are_counted_and_left_to_the_next_run() {
    let journal = Arc::default();
    let (ended, recorder) = run_with(AckMode::Deferred, 20, &journal).await;
    assert_eq!((ended.unwrap().unacknowledged, cursor(&journal)), (20, Some(0)));
    assert!(journal.0.lock().unwrap().accounts.is_empty());
    recorder.ack_deferred();
    assert_eq!(cursor(&journal), Some(0), "a run that has ended writes no more");
}

#[tokio::test]
async fn a_stop_awaits_acknowledgements_that_come_after_all_events_are_delivered() {
    let (mut writer, journal) = (Writer::new(0), Arc::<TestJournal>::default());
    let options = Options { stop_timeout: Duration::MAX, ..options(keys([&writer])) };
    let script = Script::new(frames(&mut writer, 20));
    let recorder = Recorder::new(20, AckMode::Deferred);
    let mut run = pin!(run(options, script, &recorder, &journal));
    let delivered = async {
        recorded(&recorder, 20).await;
        sleep(A_WHILE).await;
    };
    tokio::select! {
        ended = &mut run => panic!("events are unacknowledged: {ended:?}"),
        () = delivered => {}
    }
    recorder.ack_deferred();
    assert_eq!((run.await.unwrap().unacknowledged, cursor(&journal)), (0, Some(20)));
}

#[tokio::test]
async fn a_paused_run_reads_nothing_until_it_is_resumed_and_can_be_stopped() {
    let (mut writer, journal) = (Writer::new(0), Arc::<TestJournal>::default());
    let (pause, recorder) = (PauseSignal::default(), Recorder::new(20, AckMode::Immediate));
    assert!(!pause.is_set());
    pause.set(true);
    let paused = || Options { pause: pause.clone(), ..options(keys([&Writer::new(0)])) };
    let mut ends = pin!(run(paused(), Script::new(frames(&mut writer, 20)), &recorder, &journal));
    tokio::select! {
        ended = &mut ends => panic!("the run is paused: {ended:?}"),
        () = sleep(A_WHILE) => assert!(pause.is_set() && recorder.events().is_empty()),
    }
    pause.set(false);
    assert_eq!((ends.await.unwrap().delivered, cursor(&journal)), (20, Some(20)));
    pause.set(true);
    let script = Script::new([writer.commit(21)]);
    let stopped = run(paused(), script, &recorder, &journal).await.unwrap();
    assert_eq!((stopped.delivered, cursor(&journal)), (0, Some(20)));
}

#[tokio::test]
async fn the_next_run_resumes_at_the_cursor_of_the_last() {
    let journal = Arc::default();
    run_with(AckMode::Immediate, 20, &journal).await.0.unwrap();
    assert_eq!(cursor(&journal), Some(20));
    let mut writer = Writer::new(1);
    let script = Script::new([writer.commit(25)]);
    let recorder = Recorder::new(1, AckMode::Immediate);
    run(options(keys([&writer])), script, &recorder, &journal).await.unwrap();
    assert_eq!(cursor(&journal), Some(25));
}

#[tokio::test]
async fn a_run_with_a_budget_ends_after_exactly_that_many_counted_events() {
    let (mut writers, journal) = ([0, 1, 2].map(Writer::new), Arc::<TestJournal>::default());
    let frames: Vec<_> = (1..=100).map(|seq| writers[seq as usize % 3].commit(seq)).collect();
    let recorder = Recorder::new(usize::MAX, AckMode::SkipOdd);
    let stop_timeout = Duration::MAX;
    let options = Options { max_events: Some(10), stop_timeout, ..options(keys(&writers)) };
    let summary = run(options, Script::new(frames), &recorder, &journal).await.unwrap();
    let even = recorder.events().iter().filter(|event| event.seq.is_multiple_of(2)).count();
    assert_eq!((even, recorder.events().len()), (10, 20), "odd sequence numbers do not count");
    assert_eq!((summary.unacknowledged, cursor(&journal)), (0, Some(20)));
}

/// Delivers to a closure.
struct Callback<F>(F);

impl<F: Fn(u64, Ack) + Send + Sync + 'static> Handler for Callback<F> {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        self.0(event.seq.unwrap_or_default(), ack);
    }
}

/// Runs 5,000 events of one account until `stop`, and returns the result and its time.
async fn run_backlog<F: Fn(u64, Ack) + Send + Sync + 'static>(
    handler: F,
    journal: impl Journal,
    stop: StopSignal,
) -> (Result<RunSummary, RunError>, Duration) {
    let mut writer = Writer::new(0);
    let stop_timeout = Duration::from_secs(1);
    let options = Options { stop_timeout, ..options(keys([&writer])) };
    let script = Script::new(frames(&mut writer, 5_000));
    let streams = vec![(STREAM.to_owned(), None)];
    let states = |_| MemoryState::new([7; 16]);
    let started = Instant::now();
    let run = firehose(options);
    let ended = run.run_source(script, streams, Callback(handler), journal, states, stop).await;
    (ended, started.elapsed())
}

#[tokio::test]
async fn a_stop_with_a_long_backlog_ends_in_its_time_and_leaves_the_rest_to_the_next_run() {
    let (journal, stop) = (Arc::<TestJournal>::default(), StopSignal::new());
    let signal = stop.clone();
    // The whole backlog would take eight minutes.
    let handler = move |seq, ack: Ack| {
        if seq == 5 {
            signal.request();
        }
        std::thread::sleep(Duration::from_millis(100));
        ack.done();
    };
    let (ended, time) = run_backlog(handler, journal.clone(), stop).await;
    let summary = ended.unwrap();
    assert!(time < GENEROUS, "{time:?}");
    assert!(summary.unacknowledged > 1_000, "{summary:?}");
    assert!(cursor(&journal).is_some_and(|cursor| cursor < 1_000), "{:?}", cursor(&journal));
}

#[tokio::test]
async fn a_handler_that_blocks_for_ever_is_left_behind_by_a_stop() {
    let (journal, stop) = (Arc::<TestJournal>::default(), StopSignal::new());
    let (signal, is_released) = (stop.clone(), Arc::new(AtomicBool::new(false)));
    let released = is_released.clone();
    let handler = move |seq, ack: Ack| {
        while seq == 3 && !released.load(Relaxed) {
            signal.request();
            std::thread::sleep(Duration::from_millis(1));
        }
        ack.done();
    };
    let (ended, time) = run_backlog(handler, journal.clone(), stop).await;
    assert!(time < GENEROUS && ended.unwrap().unacknowledged > 0, "{time:?}");
    assert!(cursor(&journal).is_some_and(|cursor| cursor < 3));
    is_released.store(true, Relaxed);
}

/// A journal whose disk hangs.
struct HungJournal {
    writes: AtomicUsize,
    is_released: Arc<AtomicBool>,
}

impl Journal for HungJournal {
    fn cursor(&self, _: &str) -> Result<Option<u64>, JournalError> {
        Ok(None)
    }

    fn checkpoint(
        &self,
        _: &[(&str, u64)],
        _: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError> {
        let is_first = self.writes.fetch_add(1, Relaxed) == 0;
        while !is_first && !self.is_released.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_disk_that_hangs_does_not_delay_the_end_beyond_the_time_of_a_stop() {
    let (stop, is_released) = (StopSignal::new(), Arc::new(AtomicBool::new(false)));
    let (signal, journal) = (stop.clone(), is_released.clone());
    let journal = HungJournal { writes: AtomicUsize::new(0), is_released: journal };
    let handler = move |_, ack: Ack| {
        signal.request();
        ack.done();
    };
    let (ended, time) = run_backlog(handler, journal, stop).await;
    assert!(time < GENEROUS, "{time:?}");
    assert!(matches!(ended, Err(RunError::Journal(_))), "{ended:?}");
    is_released.store(true, Relaxed);
}

#[tokio::test]
async fn the_cursor_before_the_first_event_is_durable_when_it_is_delivered() {
    let mut writer = Writer::new(0);
    let (journal, stop) = (Arc::<TestJournal>::default(), StopSignal::new());
    let hour = Duration::from_secs(3600);
    let options = Options { checkpoint_interval: hour, ..options(keys([&writer])) };
    let script = Script::new([writer.commit(71), writer.commit(72)]);
    let seen = Arc::new(AtomicUsize::new(0));
    let signal = stop.clone();
    let stored = journal.clone();
    let before_first = seen.clone();
    let handler = move |seq, ack: Ack| {
        if seq == 71 {
            before_first.store(cursor(&stored).unwrap_or_default() as usize, Relaxed);
        }
        signal.request();
        ack.done();
    };
    let streams = vec![(STREAM.to_owned(), None)];
    let states = |_| MemoryState::new([7; 16]);
    let run = firehose(options);
    run.run_source(script, streams, Callback(handler), journal, states, stop).await.unwrap();
    assert_eq!(seen.load(Relaxed), 70);
}

/// Much longer than a run takes to end.
const A_WHILE: Duration = Duration::from_millis(300);

/// Much longer than the timeout of the stop, and much shorter than the backlog.
const GENEROUS: Duration = Duration::from_secs(60);
